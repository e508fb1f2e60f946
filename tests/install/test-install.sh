#!/bin/bash
# test-install.sh BUILD VERSION: installs BUILD under a temporary prefix; a C program and a C++ one
# are compiled against it as pkg-config says, with the shared library and with the static one, and run.
set -eu
build=$1
version=$2
here=$(realpath "$(dirname "$0")")
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
prefix="$temporary/a prefix with spaces"

fail() {
    echo "test-install: $*" >&2
    exit 1
}

# `make install` builds the target `installed`: what is installed, without tests and benchmarks.
installed=$(ninja -C "$build" -t inputs installed)
if grep -E '^(tests|bench/micro|bench/peers|examples)/|micro_|test_' <<<"$installed"; then
    fail "make install would build these"
fi

cmake --install "$build" --prefix "$prefix" >/dev/null
pc=$(find "$prefix" -name leat.pc)
[ -n "$pc" ] || fail "no leat.pc is installed"
libdir=$(dirname "$(dirname "$pc")")
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH

pkg-config --validate leat || fail "leat.pc is not valid"
[ "$(pkg-config --modversion leat)" = "$version" ] || fail "leat.pc does not say $version"
if grep -q "$(realpath "$here/../..")" "$pc"; then
    fail "leat.pc names the source tree"
fi

# pkg-config's words are the shell's: a space in them is escaped.
cflags=()
libs=()
eval "cflags=($(pkg-config --cflags leat))"

# use KIND LIBS…: builds and runs both programs with these libraries.
use() {
    local kind=$1
    shift
    cc -std=c11 -pedantic -Wall -Wextra -Werror "${cflags[@]}" "$here/user.c" -o "$prefix/user-c" "$@"
    c++ -std=c++17 -pedantic -Wall -Wextra -Werror "${cflags[@]}" "$here/user.cc" -o "$prefix/user-c++" \
        "$@"
    for program in "$prefix/user-c" "$prefix/user-c++"; do
        "$program" "$version" || fail "${program##*/} fails with the $kind library"
        if ldd "$program" | grep -q libleat; then
            [ "$kind" = shared ] || fail "${program##*/} should have no libleat.so and has"
        else
            [ "$kind" = static ] || fail "${program##*/} should use libleat.so and does not"
        fi
    done
}

eval "libs=($(pkg-config --libs leat))"
LD_LIBRARY_PATH=$libdir
export LD_LIBRARY_PATH
use shared "${libs[@]}"

# With the shared library gone, -lleat is the archive: leat.pc must then name all that it needs.
rm "$libdir"/libleat.so*
eval "libs=($(pkg-config --static --libs leat))"
use static "${libs[@]}"

# libleat-media stands alone: shared, then static, it needs nothing but the C library.
pkg-config --validate leat-media || fail "leat-media.pc is not valid"
eval "libs=($(pkg-config --libs leat-media))"
for kind in shared static; do
    cc -std=c11 -pedantic -Wall -Wextra -Werror "${cflags[@]}" "$here/media_user.c" -o "$prefix/user-media" \
        "${libs[@]}"
    "$prefix/user-media" || fail "user-media fails with the $kind library"
    if ldd "$prefix/user-media" | grep -q -e gnutls -e nghttp3; then
        fail "user-media needs TLS or HTTP with the $kind library"
    fi
    rm -f "$libdir"/libleat-media.so*
done

# The command, where this build has one, needs nothing from the build folder or from libleat.so.
if [ -e "$build/cli/leat" ]; then
    [ -x "$prefix/bin/leat" ] || fail "the leat command is not installed"
    "$prefix/bin/leat" --version | grep -qF "$version" || fail "leat --version does not say $version"
fi
echo "installed, compiled and run: C and C++, shared and static"
