#!/usr/bin/env bash
# The example of workers that come and go says what it has to, which README shows, and takes
# its processes along however it ends.
. "$(dirname "$0")/../common.sh"

program=$BUILD/examples/elastic
expected=examples/elastic/EXPECTED
work=$(mktemp -d "$TMPDIR/elastic.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT

"$program" > "$work/said" 2> "$work/complaints"
code=$?
report "it succeeds" "$([ $code = 0 ] || { echo "exit status $code"; cat "$work/complaints"; })"
report "it says what is expected" "$(diff "$expected" "$work/said")"
report "README shows that" "$(sed -n '/build\/examples\/elastic$/,/^$/s/^    //p' README |
    sed 1d | diff "$expected" -)"
report "it knows no other argument" \
    "$("$program" what > /dev/null 2>&1; [ $? = 2 ] || echo "the exit status is not 2")"

# Prints the addresses at which workers listened and still do, after some patience.
still_there()
{
    local address try
    for address in $(sed -n 's/.* listening on \(127[0-9.]*:[0-9]*\)$/\1/p' "$work/log"); do
        for try in {1..100}; do
            (: <> "/dev/tcp/${address%:*}/${address#*:}") 2> /dev/null || continue 2
            sleep 0.1
        done
        echo "somebody listens at $address"
    done
}

# Ends it in the middle.
end_by() # signal, exit status
{
    local pid code
    "$program" -v > "$work/log" 2>&1 &
    pid=$!
    until grep -q 'scaled up' "$work/log"; do
        kill -0 $pid 2> /dev/null || break
        sleep 0.05
    done
    kill -"$1" $pid
    wait $pid 2> /dev/null
    code=$?
    [ $code = "$2" ] || { echo "exit status $code"; tail -n 5 "$work/log"; }
    grep -q 'listening on 127' "$work/log" || echo "no worker has started"
    still_there
}
report "SIGINT in the middle ends it and all of its workers" "$(end_by INT 1)"
report "SIGTERM does, too" "$(end_by TERM 1)"
report "its workers do not outlive it when it is killed" "$(end_by KILL 137)"

exit $status
