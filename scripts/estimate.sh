#!/bin/sh
# estimate.sh: runs the experiments of the bandwidth estimate (tests/cc/estimate_campaign.c) and writes
# their record into docs/ESTIMATE.md, between its two marks, and the plots into docs/estimate/. Takes
# seconds. Fails when a result misses what is asked for.
set -eu
cd "$(dirname "$0")/.."

mkdir -p docs/estimate
status=0
build/release/tests/cc/leat-estimate-campaign docs/estimate >build/estimate-record.md || status=$?
[ -s build/estimate-record.md ] || exit 1
awk -v record=build/estimate-record.md '
    /<!-- record: end -->/ { skipping = 0 }
    !skipping { print }
    /<!-- record: begin -->/ {
        skipping = 1
        print ""
        while ((getline line < record) > 0) {
            print line
        }
    }' docs/ESTIMATE.md >build/ESTIMATE.md
mv build/ESTIMATE.md docs/ESTIMATE.md
exit $status
