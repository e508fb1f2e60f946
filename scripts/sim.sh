#!/bin/bash
# sim.sh FIRST COUNT: the simulator at length, on the release build: one file of 1 GiB over the lossy
# network of issue 2, then so many seeds.
set -eu
cd "$(dirname "$0")/.."
sim=build/release/tests/sim/leat-sim

"$sim" --plain --size 1073741824 --check 10000 \
    --plan loss=20000,reorder=50000,reorder_delay_us=10000,duplicate=20000,delay_us=25000
"$sim" --seed "$1" --count "$2"
