#!/bin/bash
# lint.sh [BUILD [PART]]: clang-tidy, with the checks of .clang-tidy, over src/, cli/ and examples/. BUILD has a
# compile_commands.json (build/clang, which is configured first); PART: only files with this in their names.
set -u
cd "$(dirname "$0")/.." || exit 1
build=${1:-build/clang}
part=${2:-}
[ -n "${1:-}" ] || cmake --preset clang --log-level=WARNING || exit 1

# Each file once, of those that this build compiles.
sed -n 's/^ *"file": "\(.*\)".*/\1/p' "$build/compile_commands.json" | sort -u |
    grep -E "^$PWD/(src|cli|examples|tools)/.*\.c$" | grep -F -- "$part" >"$build/lint.files"
if ! [ -s "$build/lint.files" ]; then
    echo "lint: no file"
    exit 1
fi
xargs -a "$build/lint.files" -n 4 -P "${JOBS:-$(nproc)}" \
    clang-tidy-14 --quiet -p "$build" >"$build/lint.log" 2>/dev/null
status=$?
sort -u "$build/lint.log" | grep -E '(warning|error): ' # a header's fault is found by each that includes it
echo "lint: $(wc -l <"$build/lint.files") files, $(grep -cE '(warning|error): ' "$build/lint.log") faults"
[ $status -eq 0 ]
