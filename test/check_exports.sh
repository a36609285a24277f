#!/usr/bin/env bash
# What the shared library exports, what lib/libcoord.map lists and what the headers declare
# are the same, and documented.
. "$(dirname "$0")/common.sh"

PUBLIC='^(coord|comm_coordinator)_[a-z0-9_]+$'

# Lines only in the first list, then lines only in the second, each with what is wrong.
differences() # list, list, about the first's surplus, about the second's
{
    comm -23 <(sort -u <<< "$1") <(sort -u <<< "$2") | sed "/^\$/d; s|\$| $3|"
    comm -13 <(sort -u <<< "$1") <(sort -u <<< "$2") | sed "/^\$/d; s|\$| $4|"
}

shared=$BUILD/libcoord.so.$(sed -n 's/^#define COORD_VERSION "\(.*\)"/\1/p' include/coord/api.h)
exported=$(nm -D --defined-only "$shared" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }')
listed=$(sed -n '/global:/,/local:/s/^ *\([a-z0-9_]*\);$/\1/p' lib/libcoord.map)

# Prints "name file:line documented" for each COORD_API declaration. The name is what stands
# before the first parenthesis that follows a public name.
declarations()
{
    find include -name '*.h' | sort | xargs -r awk '
        FNR == 1 { documented = in_comment = 0; text = "" }
        in_comment { if (/\*\//) in_comment = 0; next }
        text == "" && /^[ \t]*\/\*/ {
            documented = /^[ \t]*\/\*\*([^<*\/]|$)/
            in_comment = !/\*\//
            next
        }
        text == "" && /^[ \t]*$/ { next }
        text == "" && /^[^#]*COORD_API/ { where = FILENAME ":" FNR; was = documented; begun = 1 }
        begun {
            text = text " " $0
            if (/;/) {
                if (match(text, /(coord|comm_coordinator)_[a-z0-9_]*[ ]*\(/)) {
                    name = substr(text, RSTART, RLENGTH - 1)
                    sub(/ +$/, "", name)
                } else {
                    name = "(unreadable)"
                }
                print name, where, was
                text = ""
                begun = 0
            }
        }
        { documented = 0 }'
}
declared=$(declarations)

report "the shared library exports what lib/libcoord.map lists" \
    "$(differences "$exported" "$listed" "is exported, not listed" "is listed, not defined")"
report "exported names begin with coord_ or comm_coordinator_" "$(grep -vE "$PUBLIC" <<< "$exported")"
report "lib/libcoord.map lists what the headers mark COORD_API" \
    "$(differences "$listed" "$(cut -d' ' -f1 <<< "$declared")" \
        "is listed, not declared COORD_API in include/" "is declared COORD_API, not listed")"
report "lib/libcoord.map lists each symbol once, in order" "$(sort -uc <<< "$listed" 2>&1)"
report "every exported function is documented" \
    "$(awk '$3 == 0 { print $2 ": " $1 " has no /** comment */ before it" }' <<< "$declared")"
report "the shared library needs its packages and libc, nothing else" \
    "$(readelf -d "$shared" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
        grep -vE '^(libcurl|libmicrohttpd|libjansson|libsodium|libsqlite3|libc|ld-linux.*)\.so')"

# Programs that link the static library share one name space with its inside.
report "global names of the static library are ours" \
    "$(nm -P "$BUILD/libcoord.a" 2> /dev/null | awk '$2 ~ /^[A-TV-Z]$/ { print $1 }' |
        grep -vE '^(coordi?|comm_coordinator)_')"

exit $status
