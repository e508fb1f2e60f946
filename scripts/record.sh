#!/bin/sh
# record.sh CAMPAIGN DOC PLOTS: runs a campaign of experiments (build/release/CAMPAIGN), which draws its plots into
# the folder PLOTS, and puts what it prints into DOC, between the two marks of its record. Fails when a result
# misses what is asked for.
set -eu
cd "$(dirname "$0")/.."
campaign=$1 doc=$2 plots=$3
record=build/$(basename "$campaign").md

mkdir -p "$plots"
status=0
"build/release/$campaign" "$plots" >"$record" || status=$?
[ -s "$record" ] || exit 1
awk -v record="$record" '
    /<!-- record: end -->/ { skipping = 0 }
    !skipping { print }
    /<!-- record: begin -->/ {
        skipping = 1
        print ""
        while ((getline line < record) > 0) {
            print line
        }
    }' "$doc" >"build/$(basename "$doc")"
mv "build/$(basename "$doc")" "$doc"
exit $status
