#!/bin/bash
# rtp.sh SECONDS [TARGET…]: builds the fuzz targets of media/ and of the captures that `leat rtp` reads
# (fuzz/rtp*.c) with clang, libFuzzer, ASan and UBSan, and runs each for so long on its corpus
# (fuzz/corpus/TARGET), which grows in build/fuzz.
set -eu
cd "$(dirname "$0")/.."
seconds=$1
shift
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for source in fuzz/rtp*.c; do
        target=${source##*/}
        targets+=("${target%.c}")
    done
fi

out=build/fuzz
mkdir -p "$out"
inside=(src/media/*.c src/mem/*.c src/base/assert.c src/base/hash.c)
for target in "${targets[@]}"; do
    more=() flags=()
    if [ "$target" = rtp_file ]; then
        more=(cli/rtp_file.c cli/rtp_print.c src/base/error.c)
        flags=(-I. "-DLEAT_VERSION_STRING=\"fuzz\"")
    fi
    clang -g -O1 -std=gnu11 -D_GNU_SOURCE -DLEAT_DEBUG=1 -Iinclude -Isrc "${flags[@]}" \
        -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
        -o "$out/$target" "fuzz/$target.c" "${inside[@]}" "${more[@]}"
    mkdir -p "$out/corpus/$target"
    "$out/$target" -max_total_time="$seconds" -max_len=1500 -timeout=10 -artifact_prefix="$out/$target-" \
        -print_final_stats=1 "$out/corpus/$target" "fuzz/corpus/$target" 2>"$out/$target.log" ||
        { tail -30 "$out/$target.log" >&2; exit 1; }
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$out/$target.log") runs, no fault"
done
