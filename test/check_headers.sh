#!/usr/bin/env bash
# Every public header stands alone, in C and in C++.
. "$(dirname "$0")/common.sh"

LINES_MAX=250
WARNINGS="-Wall -Wextra -Wpedantic -Werror"

mapfile -t headers < <(find include -name '*.h' | sort)
# Only coord/json.h needs anything of ours but the headers.
flags="-Iinclude $(pkg-config --cflags jansson)"

# Includes the header twice, so that it needs a guard.
compile() # language, standard, header, compiler
{
    local name=${3#include/}
    printf '#include "%s"\n#include "%s"\n' "$name" "$name" |
        $4 -x "$1" -std="$2" $WARNINGS $flags -fsyntax-only - 2>&1
}

each_header() # language, standard, compiler
{
    local header
    for header in "${headers[@]}"; do
        compile "$1" "$2" "$header" "$3" || echo "$header does not compile alone"
    done
}

report "each header compiles alone as C11" "$(each_header c c11 "$CC")"

cxx=
for candidate in "$CXX" g++ clang++; do
    if command -v "${candidate%% *}" > /dev/null; then
        cxx=$candidate
        break
    fi
done
if [ -n "$cxx" ]; then
    report "each header compiles alone as C++17" "$(each_header c++ c++17 "$cxx")"
else
    echo "ok - skipped: no C++ compiler to try the headers with"
fi

report "no header is longer than $LINES_MAX lines" \
    "$(wc -l "${headers[@]}" | awk -v max=$LINES_MAX '$1 > max && $2 != "total" { print $2 ": " $1 }')"

umbrella()
{
    local header
    if [ ! -f include/coord.h ]; then
        echo "include/coord.h is missing"
        return
    fi
    for header in include/coord/*.h; do
        header=${header#include/}
        if [ "$header" = coord/json.h ]; then
            ! grep -q "\"$header\"" include/coord.h || echo "coord.h includes $header"
        else
            grep -q "^#include \"$header\"" include/coord.h || echo "coord.h lacks $header"
        fi
    done
    $CC -Iinclude -M -x c include/coord.h | grep -o '[^ ]*jansson[^ ]*'
}
report "coord.h includes every header but coord/json.h, and no jansson" "$(umbrella)"

exit $status
