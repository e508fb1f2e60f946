#!/bin/bash
# roq.sh SECONDS: builds the fuzz target of roq/ (fuzz/roq.c) with clang, libFuzzer, ASan and UBSan, and
# runs it for so long on its corpus (fuzz/corpus/roq), which grows in build/fuzz.
set -eu
cd "$(dirname "$0")/.."
seconds=$1

out=build/fuzz
mkdir -p "$out/corpus/roq"
clang -g -O1 -std=gnu11 -D_GNU_SOURCE -DLEAT_DEBUG=1 -Iinclude -Isrc \
    -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
    -o "$out/roq" fuzz/roq.c src/roq/*.c src/media/rtp.c src/media/estimate.c src/media/gcc*.c src/sched/*.c src/mem/*.c src/base/assert.c src/base/hash.c
"$out/roq" -max_total_time="$seconds" -max_len=2000 -timeout=10 -artifact_prefix="$out/roq-" \
    -print_final_stats=1 "$out/corpus/roq" fuzz/corpus/roq 2>"$out/roq.log" ||
    { tail -30 "$out/roq.log" >&2; exit 1; }
echo "roq: $(sed -n 's/^stat::number_of_executed_units: *//p' "$out/roq.log") runs, no fault"
