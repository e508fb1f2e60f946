#!/bin/bash
# run.sh SECONDS [TARGET…]: builds the fuzz targets (fuzz/*.c) with clang, libFuzzer, ASan and UBSan,
# and runs each for so long on its corpus (fuzz/corpus/TARGET, with fuzz/dict/TARGET.dict when there is
# one), which grows in build/fuzz. Prints, for each, the runs and the edges covered, of those that there are.
# The first fault ends it; the input is in build/fuzz/TARGET-crash-….
#
# run.sh --merge TARGET…: takes over into fuzz/corpus the few of the grown corpus that together cover every edge.
set -eu
cd "$(dirname "$0")/.."

if [ "$1" = --merge ]; then
    shift
    for target in "$@"; do
        mkdir -p "fuzz/corpus/$target"
        "build/fuzz/$target" -set_cover_merge=1 -use_counters=0 -max_len=600 "fuzz/corpus/$target" \
            "build/fuzz/corpus/$target" 2>/dev/null
        echo "$target: $(find "fuzz/corpus/$target" -type f | wc -l) files"
    done
    exit
fi

seconds=$1
shift
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for source in fuzz/*.c; do
        target=${source##*/}
        targets+=("${target%.c}")
    done
fi

out=build/fuzz
flags=(-g -O1 -std=gnu11 -D_GNU_SOURCE -DLEAT_DEBUG=1 '-DLEAT_VERSION_STRING="fuzz"' -Iinclude -Isrc -Ifuzz/support -Itests/unit/h3 -Itests/unit/wire
       -fno-sanitize-recover=all)
mkdir -p "$out/obj"

# Objects are made once: those of src/ that any target needs.
compile() { # OBJECT SOURCE FLAGS…
    local object=$1 source=$2
    shift 2
    if [ ! -e "$object" ] || [ "$source" -nt "$object" ] || [ -n "$(find src include fuzz -newer "$object" -name '*.h' -print -quit)" ]; then
        ${CMAKE_C_COMPILER_LAUNCHER:-} clang "${flags[@]}" -fsanitize=fuzzer-no-link,address,undefined "$@" -c -o "$object" "$source"
    fi
}

objects_of() { # FOLDER…
    local folder source object
    for folder in "$@"; do
        for source in "src/$folder"/*.c; do
            object=$out/obj/${source//\//_}.o
            case $source in
            # In their place stand support/fake_tls.c and null_crypto.c, or, for the one target that
            # is about the backends, they themselves.
            src/tls/tls_gnutls.c | src/tls/tls_hooks.c | src/tls/tls_session.c | \
                src/crypto/backend*.c) continue ;;
            esac
            compile "$object" "$source"
            echo "$object"
        done
    done
}

whole=(base mem sched wire crypto tls recovery cc stream conn endpoint)
for target in "${targets[@]}"; do
    libs=()
    extra=()
    case $target in
    rtp_file)
        mapfile -t objects < <(objects_of base mem media)
        extra=(-I. cli/rtp_file.c cli/rtp_print.c)
        ;;
    rtp*) mapfile -t objects < <(objects_of base mem media) ;;
    roq) mapfile -t objects < <(objects_of base mem sched media roq) ;;
    quic_frame)
        mapfile -t objects < <(objects_of base mem wire)
        extra=(tests/unit/wire/any_frame.c)
        ;;
    quic_tparams) mapfile -t objects < <(objects_of base mem wire) ;;
    quic_crypto)
        mapfile -t objects < <(objects_of base mem wire crypto)
        extra=(-DLEAT_HAVE_IPSEC_MB=1 src/crypto/backend.c src/crypto/backend_gnutls.c
               src/crypto/backend_ipsecmb.c)
        libs=(-lgnutls -lnettle -lhogweed -lIPSec_MB)
        ;;
    h3)
        mapfile -t objects < <(objects_of base mem sched wire h3)
        extra=(tests/unit/h3/fake_quic.c)
        libs=(-lnghttp3)
        ;;
    *)
        mapfile -t objects < <(objects_of "${whole[@]}")
        extra=(fuzz/support/fake_tls.c fuzz/support/null_crypto.c fuzz/support/world.c)
        libs=(-lgnutls -lnettle)
        ;;
    esac
    clang "${flags[@]}" -fsanitize=fuzzer,address,undefined -o "$out/$target" "fuzz/$target.c" \
        "${extra[@]}" "${objects[@]}" "${libs[@]}"
    mkdir -p "$out/corpus/$target" "fuzz/corpus/$target"
    dict=()
    [ -e "fuzz/dict/$target.dict" ] && dict=("-dict=fuzz/dict/$target.dict")
    edges=$("$out/$target" -runs=0 2>&1 | sed -n 's/.*Loaded 1 modules *(\([0-9]*\) inline.*/\1/p')
    "$out/$target" -max_total_time="$seconds" -max_len=2000 -timeout=20 -rss_limit_mb=1500 \
        -artifact_prefix="$out/$target-" -print_final_stats=1 "${dict[@]}" \
        "$out/corpus/$target" "fuzz/corpus/$target" 2>"$out/$target.log" ||
        { grep -v '^#' "$out/$target.log" | tail -60 >&2; exit 1; }
    echo "$target: $(sed -n 's/^stat::number_of_executed_units: *//p' "$out/$target.log") runs," \
         "$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$out/$target.log" | tail -1) of $edges edges, no fault"
done
