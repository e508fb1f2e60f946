#!/bin/bash
# test.sh PRESET…: builds and tests each preset, goes on to the next when one fails, then prints the
# totals as one line, 'N passed, N failed'. Fails when a build or a test failed, or when no test ran.
# CTest's results stay in build/results/PRESET.log and .xml, the totals in build/results/totals.
set -u
cd "$(dirname "$0")/.." || exit 1

jobs=${JOBS:-$(nproc)}
results=$PWD/build/results
mkdir -p "$results"
rm -f "$results"/*

# The sanitizers' fixed address ranges and 32 random bits of mmap do not go together (gcc 12): run
# them without randomisation where the kernel has it that wide.
without_aslr=()
if [ "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)" -gt 28 ] &&
    setarch "$(uname -m)" -R true 2>/dev/null; then
    without_aslr=(setarch "$(uname -m)" -R)
fi
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}

passed=0
failed=0
skipped=0
for preset in "$@"; do
    echo "== $preset: build"
    if ! scripts/build.sh "$preset"; then
        echo "test.sh: $preset does not build"
        failed=$((failed + 1))
        continue
    fi
    echo "== $preset: test"
    log=$results/$preset.log
    "${without_aslr[@]}" ctest --preset "$preset" -j "$jobs" --output-junit "$results/$preset.xml" |
        tee "$log"
    status=${PIPESTATUS[0]}

    # ctest's own summary: "97% tests passed, 2 tests failed out of 61". It counts a skipped test as
    # passed; a program that is not there as failed (its JUnit file calls that one skipped).
    read -r bad ran < <(sed -n 's/^.* \([0-9]*\) tests\? failed out of \([0-9]*\)$/\1 \2/p' "$log")
    if [ -z "${ran:-}" ] || [ "$ran" -eq 0 ]; then
        echo "test.sh: $preset ran no test"
        failed=$((failed + 1))
        continue
    fi
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        echo "test.sh: ctest ended with status $status and names no test"
        failed=$((failed + 1))
    fi
    away=$(grep -c '^[[:space:]]*[0-9]* - .* (Skipped)$' "$log")
    passed=$((passed + ran - bad - away))
    failed=$((failed + bad))
    skipped=$((skipped + away))
done

if [ $skipped -gt 0 ]; then
    echo "$skipped skipped"
fi
echo "passed=$passed failed=$failed" >"$results/totals"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
