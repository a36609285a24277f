#!/usr/bin/env bash
# The example of a host's unit tests passes, with other seeds too, and says what README
# shows.
. "$(dirname "$0")/../common.sh"

program=$BUILD/examples/unit_test
"$program" # its tests count like all others

shown=$(sed -n 's/^    \(\[       OK \] .*\)/\1/p' README)
said=$("$program" 2>&1 | grep '^\[       OK \]')
report "README shows what it says" "$(diff <(echo "$shown") <(echo "$said"))"

other_seeds()
{
    local seed
    for seed in 2 3 5 7; do
        SEED=$seed "$program" > /dev/null 2>&1 || echo "SEED=$seed $program fails"
    done
}
report "it passes with other seeds" "$(other_seeds)"

exit $status
