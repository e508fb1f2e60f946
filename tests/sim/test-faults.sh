#!/bin/bash
# test-faults.sh LEAT-SIM: each fault that can be put in is found, by the check that is there for it; and
# the same plan without a fault is whole.
set -u
sim=$1
plan=idle_ms=1000000,limit_s=900,datagrams=20,bidi=3
run() {
    "$sim" --plain --seed 5 --plan "$plan$extra" "$@" 2>&1
}
extra=
out=$(run) || { echo "without a fault: $out"; exit 1; }
count=0
while read -r name text; do
    count=$((count + 1))
    extra=
    [ "$name" != ghost_closed ] || extra=,reborn_at_us=1000
    [ "$name" != no_probes ] || extra=,outage_at_us=1041000,outage_us=200000000
    if out=$(run --fault "$name"); then
        echo "$name is not found: $out"
        exit 1
    fi
    grep -qF -- "$text" <<<"$out" || { echo "$name is found by another check: $out"; exit 1; }
done < <("$sim" --faults)
[ "$count" -ge 15 ] || { echo "$count faults only"; exit 1; }
echo "$count faults, each found"
