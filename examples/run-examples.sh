#!/bin/bash
# run-examples.sh FOLDER: runs the examples as built in FOLDER against each other.
# SPDX-License-Identifier: MIT
set -eu

programs=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/leat-examples.XXXXXX")
server=
cleanup() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT

fail() {
    echo "examples: $*" >&2
    exit 1
}

mkfifo "$work/out"
"$programs/echo_server" 127.0.0.1:0 >"$work/out" &
server=$!
read -r line <"$work/out" || fail "the server said nothing"
address=${line#listening on }
[ "$address" != "$line" ] || fail "the server said '$line'"

head -c 3000000 /dev/urandom >"$work/question"
timeout 100 "$programs/echo_client" "$address" <"$work/question" >"$work/answer"
cmp "$work/question" "$work/answer" || fail "echo_client got another answer"

: >"$work/empty"
[ -z "$(timeout 100 "$programs/echo_client" "$address" <"$work/empty")" ] || fail "an answer to nothing"

answer=$(timeout 100 "$programs/poll_echo" "${address##*:}" "a question for poll")
[ "$answer" = "a question for poll" ] || fail "poll_echo got '$answer'"

answer=$("$programs/media_feedback")
[ "$answer" = "200 packets: 180 arrived, 20 lost" ] || fail "media_feedback said '$answer'"

kill -TERM $server
wait $server || fail "the server ended with status $?"
server=
