#!/bin/sh
# bench.sh: runs every micro-benchmark of build/release, one after another.
set -eu
cd "$(dirname "$0")/.."

ran=0
for program in build/release/bench/micro_*; do
    if [ -f "$program" ] && [ -x "$program" ]; then
        echo "== ${program##*/}"
        "$program"
        ran=$((ran + 1))
    fi
done
if [ $ran -eq 0 ]; then
    echo "bench.sh: no micro-benchmark is built" >&2
    exit 1
fi
