#!/bin/bash
# run-demo.sh [MIB]: the main job end to end. A server with a certificate that it makes at start-up, a
# client that fetches one file of 256 MiB (or MIB) from it over UDP on loopback; the SHA-256 of both
# ends compared; then throughput, CPU time and heap allocations a packet. LEAT_BUILD: the build folder
# (default: build/release).
set -eu
cd "$(dirname "$0")/.."

mib=${1:-256}
build=${LEAT_BUILD:-build/release}
leat=$build/cli/leat
counter=$(realpath -m "$build/tools/liballoccount.so")

fail() {
    echo "demo: $*" >&2
    exit 1
}

[ -x "$leat" ] || fail "$leat is not there: run 'make' first"
[ -f "$counter" ] || fail "$counter is not there: run 'make' first"

work=$(mktemp -d "${TMPDIR:-/tmp}/leat-demo.XXXXXX")
server=
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# key FILE NAME…: the sum of these `name=value` lines of the file.
key() {
    local file=$1
    shift
    awk -F= -v names=" $* " 'index(names, " " $1 " ") { sum += $2; seen = 1 }
                             END { if (!seen) exit 1; printf "%.0f\n", sum }' "$file"
}

# CPU seconds of a process that still runs, user and system together.
cpu_of() {
    awk -v hz="$(getconf CLK_TCK)" '{ sub(/^.*\) /, ""); print ($12 + $13) / hz }' "/proc/$1/stat"
}

mkdir "$work/www"
echo "making a file of $mib MiB"
head -c $((mib * 1048576)) /dev/urandom >"$work/www/file"
want=$(sha256sum <"$work/www/file")

LD_PRELOAD=$counter LEAT_ALLOCS_OUT=$work/server.allocs \
    "$leat" serve "$work/www" --listen 127.0.0.1:0 --stats 2>"$work/server.log" &
server=$!
address=
for _ in $(seq 100); do
    address=$(sed -n 's/.*listening on \([^ ]*\).*/\1/p' "$work/server.log" | head -n 1)
    [ -z "$address" ] || break
    kill -0 $server 2>/dev/null || break
    sleep 0.1
done
if [ -z "$address" ]; then
    cat "$work/server.log" >&2
    fail "the server did not start"
fi

echo "fetching it from https://$address/file"
TIMEFORMAT='%R %U %S'
if ! { time LD_PRELOAD=$counter LEAT_ALLOCS_OUT=$work/client.allocs \
    "$leat" get "https://$address/file" --insecure -o "$work/got" --stats \
    >"$work/client.out" 2>"$work/client.log"; } 2>"$work/time"; then
    cat "$work/client.log" "$work/server.log" >&2
    fail "the client failed"
fi
server_cpu=$(cpu_of $server)
kill -TERM $server
wait $server || fail "the server ended with status $?"
server=

got=$(sha256sum <"$work/got")
[ "$got" = "$want" ] || fail "the file came out wrong: SHA-256 ${got%% *}, not ${want%% *}"

for end in client server; do
    sed -n 's/^ *\([a-z_]*\): *\([0-9.]*\).*/\1=\2/p' "$work/$end.log" >"$work/$end.stats"
done
packets=$(key "$work/client.stats" packets_sent packets_received) || fail "leat get --stats names no packets"
rate=$(key "$work/client.stats" mbit_s) || fail "leat get --stats names no rate"
client_steady=$(key "$work/client.stats" steady_heap_calls) || fail "the client did not count the steady state"
server_steady=$(key "$work/server.stats" steady_heap_calls) || fail "the server did not count the steady state"
read -r wall user system <"$work/time"
client_allocs=$(key "$work/client.allocs" allocs) || fail "the client left no count of allocations"
server_allocs=$(key "$work/server.allocs" allocs) || fail "the server left no count of allocations"

awk -v rate="$rate" -v wall="$wall" -v user="$user" -v sys="$system" -v server="$server_cpu" \
    -v packets="$packets" -v ca="$client_allocs" -v sa="$server_allocs" -v cs="$client_steady" \
    -v ss="$server_steady" -v sha="${want%% *}" 'BEGIN {
    printf "SHA-256      %s, the same at both ends\n", sha
    printf "throughput   %.2f Gbit/s (%.2f s from start to exit of the client)\n", rate / 1000, wall
    printf "CPU time     client %.2f s, server %.2f s\n", user + sys, server
    printf "packets      %d, sent and received by the client\n", packets
    printf "heap         client %d calls, server %d, from start to exit: mostly the TLS handshake\n", ca, sa
    printf "a packet     client %.4f heap calls, server %.4f\n", ca / packets, sa / packets
    printf "steady state client %d heap calls, server %d, between the first megabyte and the last\n", cs, ss
}'
