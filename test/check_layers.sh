#!/usr/bin/env bash
# The layers of the library: who may include, call and link what.
. "$(dirname "$0")/common.sh"

LAYERS="base codec env wire interaction service coordinator" # lowest first

declare -A rank=()
for layer in $LAYERS; do
    rank[$layer]=${#rank[@]}
done

# --- includes -------------------------------------------------------------------------

# Prints "from to" for each include of a project's file, both as paths from the top; `to`
# is the text between the quotes when there is no such file.
includes() # folder...
{
    local from name to
    c_files "$@" | xargs -r grep -HE '^[[:space:]]*#[[:space:]]*include[[:space:]]*("|<coord)' |
        sed -E 's/^([^:]*):[^"<]*["<]([^">]*).*/\1 \2/' | while read -r from name; do
            for to in "${from%/*}/$name" "include/$name" "lib/$name" "$name"; do
                [ ! -f "$to" ] || break
            done
            [[ $to != *..* ]] || to=$(realpath -m --relative-to=. "$to")
            echo "$from $to"
        done
}

edges=$(includes lib include examples)

wrong_includes()
{
    local from to folder own
    while read -r from to; do
        folder=${from#*/} folder=${folder%%/*}
        own=${to#*/} own=${own%%/*}
        case $from:$to in
        :) ;;
        *:include/*) ;;
        include/*) echo "$from includes $to, which is not public" ;;
        examples/*:examples/"$folder"/*) ;;
        examples/elastic/*:support/fake_operator.h) ;; # it shows the fake, too
        examples/*) echo "$from includes $to: examples see public headers only" ;;
        lib/*/*:lib/*/*)
            if [ -n "${rank[$folder]-}" ] && [ "${rank[$own]-99}" -gt "${rank[$folder]}" ]; then
                echo "$from includes $to, which is higher"
            fi
            ;;
        *) echo "$from includes $to, which is neither public nor in a layer" ;;
        esac
    done <<< "$edges"
}

report "each file includes public headers, its own folder and lower ones" "$(wrong_includes)"
report "no include goes in a circle" "$(grep -v '^examples' <<< "$edges" | tsort 2>&1 > /dev/null)"
report "every file of lib is in a layer" "$(c_files lib | while read -r file; do
    folder=${file#lib/}
    [ -n "${rank[${folder%%/*}]-}" ] || echo "$file: the layers are $LAYERS"
done)"

# --- symbols --------------------------------------------------------------------------

# Prints "folder file symbol type" for all that the object files define or lack.
symbols()
{
    local source objects=()
    while read -r source; do
        objects+=("$BUILD/obj/${source%.c}.o")
        [ -f "${objects[-1]}" ] || echo "- $source - missing"
    done < <(c_files lib | grep '\.c$')
    nm -P -A "${objects[@]}" 2> /dev/null | awk -v top="$BUILD/obj/" '{
        file = substr($1, length(top) + 1)
        sub(/\.o:$/, ".c", file)
        split(file, part, "/")
        print part[2], file, $2, $3
    }'
}

wrong_symbols() # which: outside or upward
{
    awk -v which="$1" -v layers="$LAYERS" '
        function matches(name, folder) { return name ~ ("^(" pattern[folder] ")$") }
        BEGIN { count = split(layers, layer, " "); for (i = 1; i <= count; i++) rank[layer[i]] = i }
        FNR == NR {
            if ($0 ~ /^[ \t]*(#|$)/) next
            for (i = 2; i <= NF; i++) {
                gsub(/\*/, "[A-Za-z0-9_]*", $i)
                either = $1 in pattern ? "|" : "" # mawk misreads an empty alternative
                pattern[$1] = pattern[$1] either $i
            }
            next
        }
        $4 == "missing" { if (which == "outside") print $2 " is not compiled" }
        $4 ~ /^[A-TV-Z]$/ { home[$3] = $1; next }
        $4 ~ /^[Uwv]$/ { lacks[++lacking] = $0 }
        END {
            for (i = 1; i <= lacking; i++) {
                split(lacks[i], part, " "); folder = part[1]; file = part[2]; name = part[3]
                if (name ~ /^(coordi?|comm_coordinator)_/) {
                    if (which != "upward") continue
                    if (!(name in home)) print file " calls " name ", which lib does not define"
                    else if (rank[home[name]] > rank[folder])
                        print file " calls " name " of " home[name] ", which is higher"
                } else if (which == "outside") {
                    if (matches(name, "never")) print file " uses " name ", which no folder may"
                    else if (!matches(name, "*") && !matches(name, folder))
                        print file " uses " name ", which is not allowed in lib/" folder
                }
            }
        }' test/allowed_symbols.txt - <<< "$symbols"
}

symbols=$(symbols)
report "what the objects use of the outside is in test/allowed_symbols.txt" "$(wrong_symbols outside)"
report "calls go to the own folder and lower ones" "$(wrong_symbols upward)"

exit $status
