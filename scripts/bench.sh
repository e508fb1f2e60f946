#!/bin/sh
# bench.sh: runs every micro-benchmark of build/release, then `leat bench` and the peers that are built
# (`make bench-peers`), bench/latency.py and bench/cores.py, and writes what these say into docs/BENCHMARKS.md.
# BENCH_ROUNDS: runs of each work.
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
bench/run.py build/release/cli/leat --peers build/release/bench/peers --rounds "${BENCH_ROUNDS:-5}" \
    --write docs/BENCHMARKS.md
bench/latency.py --doc docs/BENCHMARKS.md
bench/cores.py --doc docs/BENCHMARKS.md
