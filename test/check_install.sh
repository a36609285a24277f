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

# The first C block of README after the words "A whole host". Begun by ```c run, it is a
# program that needs nobody else, and is run too.
if [ ! -f README ]; then
    report "README shows a whole host" "there is no README yet"
    exit 1
fi
fence=$(awk '/A whole host/ { on = 1 } on && /^```c/ { print; exit }' README)
awk '/A whole host/ { on = 1 }
     inside && /^```/ { exit }
     inside
     on && /^```c/ { inside = 1 }' README > "$work/host.c"
report "README shows a whole host" "$([ -s "$work/host.c" ] || echo 'no ```c block after those words')"
[ -s "$work/host.c" ] || exit 1

cd "$work" || exit 2
report "it builds with the shared library" \
    "$(complaint $CC -Wall -Wextra host.c -o shared $(pkg-config --cflags --libs libcoord))"
report "it finds the installed shared library" "$(LD_LIBRARY_PATH=$prefix/lib ldd -r shared 2>&1 |
    grep -E "not found|undefined|libcoord.so.0 => " | grep -v "=> $prefix/lib/libcoord.so.0 ")"

# The static library with the packages that libcoord.pc names, themselves shared.
static="-L$prefix/lib -l:libcoord.a -pthread
    $(pkg-config --libs $(pkg-config --print-requires-private libcoord))"
report "it builds with the static library" \
    "$(complaint $CC -Wall -Wextra host.c -o static $(pkg-config --cflags libcoord) $static)"

if [[ $fence == *run* ]]; then
    export LD_LIBRARY_PATH=$prefix/lib
    report "it runs, shared" "$(complaint timeout 30 ./shared)"
    report "it runs, static" "$(complaint timeout 30 ./static)"
fi

exit $status
