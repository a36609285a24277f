#!/usr/bin/env bash
# Rules of style that a few lines of awk can tell. Those that need a compiler are clang-tidy's.
. "$(dirname "$0")/common.sh"

LINES_MAX=800
LINES_GOOD=500
FUNCTION_MAX=80

mapfile -t lib < <(c_files lib)
mapfile -t all < <(c_files lib include examples test)

lines=$(wc -l "${all[@]}" | awk '$2 != "total"')
awk -v good=$LINES_GOOD '$1 > good { print "# long: " $2 ", " $1 " lines" }' <<< "$lines"
report "no file is longer than $LINES_MAX lines" \
    "$(awk -v max=$LINES_MAX '$1 > max { print $2 ": " $1 " lines" }' <<< "$lines")"

# With this brace style a function's body is what stands between { and } in column 1.
report "no function of lib is longer than $FUNCTION_MAX lines" \
    "$(bare_c "${lib[@]}" | awk -F: -v max=$FUNCTION_MAX '
        { text = substr($0, length($1) + length($2) + 3) }
        text ~ /^\{/ { start = $2 }
        text ~ /^\}/ && start { if ($2 - start - 1 > max) print $1 ":" start ": " $2 - start - 1 " lines"
                                start = 0 }')"

report "neither lib nor tests sleep" \
    "$(bare_c $(c_files lib test) | grep -E '[^a-z_](u?sleep|nanosleep|clock_nanosleep)\(')"

report "nothing is left to be done" "$(grep -nE '\<(TODO|FIXME)\>' "${all[@]}")"

report "comments are /* */" "$(bare_c "${all[@]}" | grep -E '//')"

report "public names are not static" \
    "$(bare_c "${lib[@]}" | grep -E ':static [^=;]*\<(coord|comm_coordinator)_[a-z0-9_]+(\(|\[| =|;)')"

exit $status
