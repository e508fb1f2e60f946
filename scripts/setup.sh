#!/bin/sh
# setup.sh GROUP…: installs the Debian packages of the groups (build, test, tidy) that are missing.
# With all of them there it does nothing and asks nobody. setup.sh --check GROUP…: only says what is
# missing, and fails if something is.
set -eu

build="gcc make cmake ninja-build pkg-config libc6-dev libgnutls28-dev nettle-dev libnghttp3-dev
    libdw-dev libcmocka-dev"
# The fast packet protection: this library is for amd64 alone, and the build goes without it elsewhere.
[ "$(dpkg --print-architecture 2>/dev/null || true)" != amd64 ] || build="$build libipsec-mb-dev"
test="g++ python3 openssl gnutls-bin curl ngtcp2-client ngtcp2-server tshark valgrind
    python3-gi gir1.2-gst-plugins-base-1.0 gstreamer1.0-plugins-base gstreamer1.0-plugins-good
    golang-go golang-github-pion-interceptor-dev golang-github-pion-rtcp-dev"
peers="libjemalloc2 libmimalloc2.0 libuv1-dev libglib2.0-dev libngtcp2-dev libngtcp2-crypto-gnutls-dev libssl-dev
    golang-go golang-github-lucas-clemente-quic-go-dev nodejs"
realtime="gstreamer1.0-plugins-bad"
tidy="git python3 g++ clang clang-format clang-tidy libclang-rt-14-dev cppcheck shellcheck"

check=no
if [ "${1:-}" = --check ]; then
    check=yes
    shift
fi

wanted=
for group in "$@"; do
    case $group in
    build) wanted="$wanted $build" ;;
    peers) wanted="$wanted $peers" ;;
    realtime) wanted="$wanted $realtime" ;;
    test) wanted="$wanted $test" ;;
    tidy) wanted="$wanted $tidy" ;;
    *)
        echo "setup.sh: no group '$group' (build, test, tidy)" >&2
        exit 2
        ;;
    esac
done

if ! command -v dpkg-query >/dev/null; then
    # Not Debian: CMake says what it lacks.
    [ $check = yes ] || echo "setup.sh: this is not Debian, so install by hand:$wanted" >&2
    exit 0
fi

missing=
for package in $wanted; do
    state=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
    case $state in
    *" installed"*) ;;
    *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0

if [ $check = yes ]; then
    echo "missing Debian packages:$missing" >&2
    echo "'make setup' installs them; 'make run' and 'make test' do it by themselves" >&2
    exit 1
fi

as_root=
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
        echo "setup.sh: not root, and no sudo. As root, run:" >&2
        echo "    apt-get update && apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    as_root=sudo
fi

# DEBIAN_FRONTEND through env: sudo may not pass the environment on. tshark's package asks who may
# capture; its default, root alone, is fine.
apt() {
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@"
}

echo "setup: installing$missing"
if ! apt update; then
    echo "setup.sh: apt-get update failed; trying with the package lists that are here" >&2
fi
# shellcheck disable=SC2086 # a list of words
if ! apt install --no-install-recommends $missing; then
    echo "setup.sh: apt could not install:$missing" >&2
    exit 1
fi
