#!/bin/sh
# build.sh PRESET [TARGET…]: configures and builds one preset of CMakePresets.json, or targets of it.
set -eu
cd "$(dirname "$0")/.."

preset=$1
shift
scripts/setup.sh --check build
cmake --preset "$preset" --log-level=WARNING
cmake --build --preset "$preset" --parallel "${JOBS:-$(nproc)}" ${1:+--target "$@"}
