#!/bin/bash
# A plan that cannot be kept (no time at all to be done in) shrinks to that one number, and what is
# printed fails again.
set -u
sim=$1
out=$("$sim" --seed 998 --plan limit_s=0,client.idle_ms=300000 --shrink 2>&1)
[ $? -eq 1 ] || { echo "did not fail: $out"; exit 1; }
plan=$(sed -n 's/.*--plain --plan //p' <<<"$out")
[ "$(tr ',' '\n' <<<"$plan" | wc -l)" -le 3 ] || { echo "not small: $plan"; exit 1; }
grep -q 'limit_s=0' <<<"$plan" || { echo "lost what it fails by: $plan"; exit 1; }
"$sim" --seed 998 --plain --plan "$plan" 2>/dev/null && { echo "does not fail again: $plan"; exit 1; }
exit 0
