#!/bin/bash
# coverage.sh [BUILD]: every test that counts nothing of its own, on a build that counts lines and branches
# (build/coverage, which is made first); then what they reached of src/, by file. Fails below 92 % of the lines,
# or when a parser has a branch that no test takes and coverage.txt has no reason for.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build/coverage}
[ -n "${1:-}" ] || scripts/build.sh coverage || exit 1

find "$build" -name '*.gcda' -delete
if ! ctest --test-dir "$build" -LE '^plain$' -j "${JOBS:-$(nproc)}" >"$build/coverage.log"; then
    grep -A 100 'tests failed' "$build/coverage.log"
    exit 1
fi
scripts/coverage.py "$build" --least 92 --parsers
