#!/bin/sh
# cc.sh: runs every congestion control experiment (tests/cc/campaign.c) and writes its record and
# plots into docs/congestion/ and the record into docs/CONGESTION.md, between its two marks. Takes
# 10 to 30 minutes. Fails when a result misses what is asked for.
set -eu
cd "$(dirname "$0")/.."

mkdir -p docs/congestion
status=0
build/release/tests/cc/leat-cc-campaign docs/congestion >build/cc-record.md || status=$?
[ -s build/cc-record.md ] || exit 1
awk -v record=build/cc-record.md '
    /<!-- record: end -->/ { skipping = 0 }
    !skipping { print }
    /<!-- record: begin -->/ {
        skipping = 1
        print ""
        while ((getline line < record) > 0) {
            print line
        }
    }' docs/CONGESTION.md >build/CONGESTION.md
mv build/CONGESTION.md docs/CONGESTION.md
exit $status
