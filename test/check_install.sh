#!/usr/bin/env bash
# What `make install` lays down is complete: the program that README shows builds with it,
# shared and static, as a user would build it.
. "$(dirname "$0")/common.sh"

work=$(mktemp -d "$TMPDIR/install.XXXXXX") || exit 2
trap 'rm -rf "$work"' EXIT
prefix=$work/usr
version=$(sed -n 's/^#define COORD_VERSION "\(.*\)"/\1/p' include/coord/api.h)

# Staged as a package builder does, then moved to where it says that it is.
report "make install DESTDIR= succeeds" "$(complaint make --no-print-directory install \
    BUILD="${BUILD#"$PWD"/}" PREFIX="$prefix" DESTDIR="$work/stage")"
report "nothing is installed outside DESTDIR" "$(find "$prefix" 2> /dev/null)"
report "nothing is installed outside PREFIX" \
    "$(find "$work/stage" ! -type d ! -path "$work/stage$prefix/*" 2>&1)"
[ $status = 0 ] || exit $status
mv "$work/stage$prefix" "$prefix"

missing()
{
    local file
    for file in include/coord.h lib/libcoord.a lib/libcoord.so lib/libcoord.so.0 \
        "lib/libcoord.so.$version" lib/pkgconfig/libcoord.pc \
        $(cd include && find coord -name '*.h' | sed 's|^|include/|') \
        $(cd lib && find man -name '*.3' 2> /dev/null | sed 's|^man|share/man/man3|'); do
        [ -f "$prefix/$file" ] || echo "$file is not there"
    done
    readelf -d "$prefix/lib/libcoord.so" | grep -q 'SONAME.*\[libcoord.so.0\]' ||
        echo "the SONAME is not libcoord.so.0"
}
report "headers, libraries and man pages are there" "$(missing)"

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
pc_faults()
{
    [ "$(pkg-config --modversion libcoord)" = "$version" ] || echo "its version is not $version"
    [ "$(pkg-config --variable=prefix libcoord)" = "$prefix" ] || echo "its prefix is not PREFIX"
    [ "$(pkg-config --variable=libdir libcoord)" = "$prefix/lib" ] || echo "its libdir is not LIBDIR"
    pkg-config --libs libcoord | grep -qE 'curl|microhttpd|jansson|sodium' &&
        echo "shared linking asks for what only the library uses"
    grep -nE "@[A-Z]+@|$work/stage" "$prefix/lib/pkgconfig/libcoord.pc"
}
report "libcoord.pc is right" "$(pc_faults)"

if [ ! -f README ]; then
    report "README shows whole programs" "there is no README yet"
    exit 1
fi

# The static library with the packages that libcoord.pc names, themselves shared.
static="-L$prefix/lib -l:libcoord.a -pthread
    $(pkg-config --libs $(pkg-config --print-requires-private libcoord))"

# The first C block of README after these words is built as a user would build it. Begun by
# ```c run, it is a program that needs nobody else, and is run too.
check_snippet() # words, name of the program
{
    local source=$work/$2.c shared=$work/$2-shared fixed=$work/$2-static fence
    fence=$(awk -v words="$1" 'index($0, words) { on = 1 } on && /^```c/ { print; exit }' README)
    awk -v words="$1" 'index($0, words) { on = 1 }
        inside && /^```/ { exit }
        inside
        on && /^```c/ { inside = 1 }' README > "$source"
    report "README shows $2" "$([ -s "$source" ] || echo "no \`\`\`c block after \"$1\"")"
    [ -s "$source" ] || return
    report "$2 builds with the shared library" "$(complaint $CC -Wall -Wextra "$source" \
        -o "$shared" $(pkg-config --cflags --libs libcoord))"
    report "$2 finds the installed shared library" \
        "$(LD_LIBRARY_PATH=$prefix/lib ldd -r "$shared" 2>&1 |
            grep -E "not found|undefined|libcoord.so.0 => " |
            grep -v "=> $prefix/lib/libcoord.so.0 ")"
    report "$2 builds with the static library" "$(complaint $CC -Wall -Wextra "$source" \
        -o "$fixed" $(pkg-config --cflags libcoord) $static)"
    if [[ $fence == *run* ]]; then
        report "$2 runs, shared" "$(LD_LIBRARY_PATH=$prefix/lib complaint timeout 30 "$shared")"
        report "$2 runs, static" "$(complaint timeout 30 "$fixed")"
    fi
}

check_snippet "A whole host" host
check_snippet "Testing your host" test

exit $status
