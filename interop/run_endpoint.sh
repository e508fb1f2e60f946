#!/bin/bash
# run_endpoint.sh: leat as an endpoint of the public QUIC interop runner, or of a runner of one's own.
#
# From the environment: ROLE=client|server; TESTCASE; REQUESTS (URLs, space-separated; client);
# SERVER_PARAMS and CLIENT_PARAMS (more options for leat); SSLKEYLOGFILE; QLOGDIR.
# Exit: 0 done, 1 failed, 127 TESTCASE not known or not supported, decided before anything else.
# (leat's own exit codes say more: its messages do, too.)
#
# For runs without Docker, each with the runner's value as its default: LEAT (the command), WWW=/www,
# DOWNLOADS=/downloads, CERTS=/certs (cert.pem, priv.key, ca.pem), LISTEN=[::]:443,
# CONNECT_TO= (ADDR:PORT for every connection, whatever the URLs say), ALPN= (in place of the case's),
# PREFERRED= (ADDR:PORT, where the server of connectionmigration would be met).
set -u

leat=${LEAT:-leat}
www=${WWW:-/www}
downloads=${DOWNLOADS:-/downloads}
certs=${CERTS:-/certs}
listen=${LISTEN:-[::]:443}

# The addresses that a server prefers, one a family: another port, so that it is a path of its own.
preferred_addresses() {
    if [ -n "${PREFERRED:-}" ]; then
        echo "$PREFERRED"
    else
        hostname -I | tr ' ' '\n' |
            awk '/\./ && !v4++ { print $0 ":4443" } /:/ && !v6++ { print "[" $0 "]:4443" }'
    fi
}

unsupported() {
    echo "unsupported: $*" >&2
    exit 127
}

# ---- what the case asks for: options of `leat serve` and of `leat get` -----------------------------

alpn=hq-interop
server=()
client=()
connect=once
case ${TESTCASE:-} in
handshake) ;;
# Windows that the files of the case (2 to 10 MB) fill several times.
transfer) client=(--window 256k) ;;
chacha20) client=(--ciphers chacha20-poly1305) ;;
retry) server=(--retry) ;;
http3) alpn=h3 ;;
multiconnect) connect=each ;;
# Within the first megabyte, as the case wants it; the peer follows with new keys of its own.
keyupdate) client=(--key-update-at 256k) ;;
v2) server=(--versions "v2,v1") client=(--versions "v1,v2") ;;
resumption) connect=twice client=(--no-early-data) ;;
zerortt) connect=twice server=(--early-data) ;;
ecn) ;; # always
connectionmigration)
    for address in $(preferred_addresses); do
        server+=(--preferred-address "$address")
    done
    ;;
*) unsupported "TESTCASE '${TESTCASE:-}' is not known" ;;
esac

case ${ROLE:-} in
client) command=get options=("${client[@]}") params=${CLIENT_PARAMS:-} ;;
server) command=serve options=("${server[@]}") params=${SERVER_PARAMS:-} ;;
*) unsupported "ROLE '${ROLE:-}' is neither client nor server" ;;
esac

command -v "$leat" >/dev/null || {
    echo "there is no command '$leat'" >&2
    exit 1
}

# An option that this build of leat has not: it cannot play the case.
has() { # SUBCOMMAND OPTION
    "$leat" "$1" --help | grep -q -e " $2\b" || unsupported "leat $1 has no $2 yet"
}
for option in "${options[@]}"; do
    [ "${option#--}" = "$option" ] || has $command "$option"
done
options+=(--alpn "${ALPN:-$alpn}")
# shellcheck disable=SC2206 # words
options+=($params)

# Until it is told to end: what this script is told is passed on, and whatever fails is 1.
serve() {
    local pid status told=
    "$leat" serve "$www" --listen "$listen" --cert "$certs/cert.pem" --key "$certs/priv.key" \
        --handshake-timeout 60 --idle-timeout 60 --stats "${options[@]}" &
    pid=$!
    trap 'told=yes; kill -TERM $pid' TERM INT HUP
    wait $pid
    status=$?
    while [ -n "$told" ]; do # a signal ended the wait, not the server
        told=
        wait $pid
        status=$?
    done
    [ $status -eq 0 ] || exit 1
    exit 0
}

# ---- the endpoint ---------------------------------------------------------------------------------

# In the runner's container: routes, and the simulator in between.
if [ -x /setup.sh ] && [ -z "${CONNECT_TO:-}" ]; then
    /setup.sh
fi

if [ "$ROLE" = server ]; then
    serve
fi

if [ -x /wait-for-it.sh ] && [ -z "${CONNECT_TO:-}" ]; then
    /wait-for-it.sh sim:57832 -s -t 30
fi
options+=(-O --output-dir "$downloads" --connect-timeout 60 --idle-timeout 60 --stats)
if [ -n "${CONNECT_TO:-}" ]; then
    options+=(--connect-to "$CONNECT_TO")
fi
if [ -f "$certs/ca.pem" ]; then
    options+=(--ca "$certs/ca.pem")
else
    options+=(--insecure)
fi
read -r -a urls <<<"${REQUESTS:-}"
[ ${#urls[@]} -gt 0 ] || {
    echo "REQUESTS names no URL" >&2
    exit 1
}

case $connect in
once) "$leat" get "${urls[@]}" "${options[@]}" || exit 1 ;;
each)
    for url in "${urls[@]}"; do
        "$leat" get "$url" "${options[@]}" || exit 1
    done
    ;;
twice) # what the first connection learns lets the second resume
    session=$(mktemp) || exit 1
    trap 'rm -f "$session"' EXIT
    rm "$session"
    "$leat" get "${urls[0]}" "${options[@]}" --session-file "$session" || exit 1
    [ ${#urls[@]} -eq 1 ] || unset 'urls[0]' # the same file again, where there is but one
    "$leat" get "${urls[@]}" "${options[@]}" --session-file "$session" || exit 1
    ;;
esac
exit 0
