#!/bin/bash
# test-replay.sh LEAT-SIM FOLDER ARGUMENT…: runs one seed in two processes; the captures must be the
# same byte for byte, and another seed's capture must differ.
set -eu
sim=$1
folder=$2
shift 2

capture() {
    "$sim" "$@" --pcap "$folder/replay-$name.pcap" --keylog "$folder/replay-$name.keys"
}
name=a && capture --seed 7 "$@"
name=b && capture --seed 7 "$@"
name=c && capture --seed 8 "$@"
cmp "$folder/replay-a.pcap" "$folder/replay-b.pcap"
cmp "$folder/replay-a.keys" "$folder/replay-b.keys"
if cmp -s "$folder/replay-a.pcap" "$folder/replay-c.pcap"; then
    echo "two seeds gave one capture"
    exit 1
fi
size=$(stat -c %s "$folder/replay-a.pcap")
[ "$size" -gt 1000000 ] || { echo "the capture has $size bytes only"; exit 1; }
echo "two captures of $size bytes are the same"
