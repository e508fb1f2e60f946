#!/bin/sh
# bench.sh: runs every measurement of build/release that is built, one after the other, and writes what they say
# into docs/BENCHMARKS.md: micro-benchmarks (printed alone), `leat bench` and its peers, instructions and time among
# many, the limit, other QUIC libraries over sockets, latency, a second core. Some twenty minutes; the machine
# should have nothing else to do. BENCH_ROUNDS: rounds of each.
set -eu
cd "$(dirname "$0")/.."
doc=docs/BENCHMARKS.md
rounds=${BENCH_ROUNDS:-5}
peers=build/release/bench/peers

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
failed=0

# part PROGRAM ARG…: what fails stops no other.
part() {
    echo "== $1"
    "$@" || failed=1
}

part bench/run.py build/release/cli/leat --peers "$peers" --rounds "$rounds" --write "$doc"
part bench/linear.py --rounds "$rounds" --doc "$doc" 100 10000
part bench/limit/run.py --rounds "$rounds" --doc "$doc"
bench/peers/backports.sh "$peers/backports" || echo "bench.sh: without the ngtcp2 of the backports" >&2
part bench/peers/ngtcp2.py --rounds "$rounds" --doc "$doc"
part bench/peers/rates.py --rounds "$rounds" --doc "$doc"
part bench/latency.py --rounds "$rounds" --doc "$doc"
part bench/cores.py --rounds "$rounds" --doc "$doc"
exit $failed
