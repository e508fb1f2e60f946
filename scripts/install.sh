#!/bin/sh
# install.sh PREFIX: installs build/release under PREFIX (and DESTDIR, where packagers set it).
set -eu
cd "$(dirname "$0")/.."

prefix=$1
cmake --install build/release --prefix "$prefix"

# The loader finds a library in its own folders only through its cache.
case $prefix in
/usr | /usr/local)
    if [ -z "${DESTDIR:-}" ] && [ "$(id -u)" -eq 0 ]; then
        ldconfig
    fi
    ;;
esac
