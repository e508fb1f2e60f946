#!/bin/bash
# memcheck.sh [BUILD [PATTERN]]: the unit tests of a build without sanitizers under valgrind's memcheck, as
# many at once as there are processors. BUILD: build/debug, which is made first; PATTERN: a part of the
# tests' names. Prints each test that fails with what valgrind says, and the totals.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build/debug}
pattern=${2:-}
[ -n "${1:-}" ] || scripts/build.sh debug || exit 1

check() {
    # A program that counts calls by a malloc of its own must keep it: then what it allocates is not checked.
    local own=()
    ! nm --defined-only "$1" | grep -qE ' [TW] malloc$' ||
        own=(--soname-synonyms=somalloc=nouserintercepts)
    if out=$(timeout 1200 valgrind -q "${own[@]}" --error-exitcode=99 --leak-check=full --errors-for-leak-kinds=definite \
        --suppressions=scripts/memcheck.supp "$1" 2>&1); then
        echo "ok ${1##*/}"
    else
        echo "FAIL ${1##*/}"
        grep -E '^==|\[  FAILED|\[   LINE' <<<"$out" | head -40
    fi
}
export -f check

log=$build/memcheck.log
# shellcheck disable=SC2016 # the inner shell expands it
find "$build/tests/unit" -type f -executable -name "test_*$pattern*" -print0 | sort -z |
    xargs -0 -r -n 1 -P "${JOBS:-$(nproc)}" bash -c 'check "$0"' | tee "$log"
good=$(grep -c '^ok ' "$log")
bad=$(grep -c '^FAIL ' "$log")
echo "memcheck: $good clean, $bad not"
[ "$bad" -eq 0 ] && [ "$good" -gt 0 ]
