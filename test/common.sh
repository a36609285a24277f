# Sourced by the check scripts. Each check is one line "ok - what" or "not ok - what",
# which test/run counts.

set -u
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 2
export LC_ALL=C
: "${BUILD:=$PWD/build}" "${CC:=cc}" "${CXX:=c++}" "${TMPDIR:=/tmp}"
status=0

# One result. Problems, one a line, make it a failure and are listed under it.
report() # what, problems
{
    if [ -z "$2" ]; then
        echo "ok - $1"
    else
        echo "not ok - $1"
        printf '%s\n' "$2" | sed 's/^/    /'
        status=1
    fi
}

# What a command says, if it fails.
complaint() # command...
{
    local said
    said=$("$@" 2>&1) || printf '%s\nexit status %d: %s\n' "$said" "$?" "$*"
}

# Prints "file:line:text" of C files, without their comments and with every literal emptied;
# a // stays, without what follows it.
bare_c() # file...
{
    [ $# -gt 0 ] || return 0
    awk '
        FNR == 1 { in_comment = 0 }
        {
            rest = $0
            bare = ""
            while (rest != "") {
                if (in_comment) {
                    end = index(rest, "*/")
                    if (end == 0) break
                    rest = substr(rest, end + 2)
                    in_comment = 0
                    continue
                }
                if (!match(rest, /"([^"\\]|\\.)*"|\047([^\047\\]|\\.)*\047|\/\*|\/\//)) {
                    bare = bare rest
                    break
                }
                found = substr(rest, RSTART, RLENGTH)
                bare = bare substr(rest, 1, RSTART - 1)
                rest = substr(rest, RSTART + RLENGTH)
                if (found == "/*") { in_comment = 1; bare = bare " " }
                else if (found == "//") { bare = bare found; break }
                else bare = bare substr(found, 1, 1) substr(found, 1, 1)
            }
            print FILENAME ":" FNR ":" bare
        }' "$@"
}

# The C files of folders that may not be there yet.
c_files() # folder...
{
    find "$@" -name '*.[ch]' 2> /dev/null | sort
}
