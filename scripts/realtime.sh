#!/bin/sh
# realtime.sh [SECONDS]: the same clip over leat and over SRT across the same bad path, by GStreamer at both
# ends, for three drafts of chance; prints the rows of docs/REALTIME.md.
set -eu
cd "$(dirname "$0")/.."
seconds=${1:-30}

echo "| over | seed | frames | lost | median ms | 95 % | 99 % | most |"
echo "| --- | --- | --- | --- | --- | --- | --- | --- |"
failed=0
for seed in 1 2 3; do
    /usr/bin/python3 tests/media/clip_over.py build/release/cli/leat build/release/tests/support/udplink/udplink \
        --seconds "$seconds" --seed "$seed" --rows || failed=1
done
exit $failed
