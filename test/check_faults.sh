#!/usr/bin/env bash
# test/FAULTS names every fault of the reference once, and for each of them a test that
# there is, or a reason.
. "$(dirname "$0")/common.sh"

wanted()
{
    local group
    for group in M:20 S:10 R:4 C:19 O:2; do
        seq -f "F-${group%:*}%g" "${group#*:}"
    done
}

# Prints "id file test" for each test that is named, and "id -" where it can't be.
entries()
{
    awk '
        /^F-[A-Z][0-9]+ /                        { id = $1; next }
        /^[^ ]/                                  { id = "" }
        id != "" && /^ +can.t be: ./             { print id, "-" }
        id != "" && /^ +[a-z]+\/[a-z_]+\.c: [a-z0-9_]+$/ { sub(/:$/, "", $1); print id, $1, $2 }
    ' test/FAULTS
}

entries=$(entries)

report "each fault of the reference stands in test/FAULTS, once" \
    "$(wanted | while read -r id; do
        times=$(grep -cE "^$id +[^ ]" test/FAULTS)
        [ "$times" = 1 ] || echo "$id stands there $times times"
    done)"

report "each has a test, or a reason why it can't be" \
    "$(wanted | while read -r id; do
        grep -q "^$id " <<< "$entries" || echo "$id has neither"
    done)"

report "the tests that it names are there, and are run" \
    "$(while read -r id file test; do
        [ "$file" != - ] || continue
        grep -qsE "^static void $test\(void \*\*state\)" "test/$file" || echo "$id: test/$file has no $test"
        grep -qsE "cmocka_unit_test[a-z_]*\($test[,)]" "test/$file" || echo "$id: test/$file does not run $test"
        short=${id#F-} short=f_${short,,}_
        [[ $test == "$short"* ]] || echo "$id: $test is not named after it"
    done <<< "$entries")"

report "no test of a fault is missing in it" \
    "$(grep -ohE '^static void f_[a-z][0-9]+_[a-z0-9_]+' test/unit/test_faults*.c test/sim/test_faults*.c |
        awk '{ print $3 }' | while read -r test; do
            grep -qE ": $test\$" test/FAULTS || echo "$test"
        done)"

exit $status
