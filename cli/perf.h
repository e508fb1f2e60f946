/* cli/perf.h: the inside of `leat perf`: draft-banks-quic-performance over real sockets.
 *
 * The protocol (ALPN `perf`): on a stream that the client opens both ways, the first 8 bytes are a
 * number in network order: how many bytes the server sends back once the client has finished
 * sending. What else the client sends is read and dropped, as is everything on a one-way stream.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CLI_PERF_H
#define LEAT_CLI_PERF_H

#include "cli.h"

#define LEAT_PERF_ALPN "perf"

enum { LEAT_PERF_HEAD = 8, LEAT_PERF_PORT = 4433 };

/* Options of both ends, of the common ones; X as in LEAT_CLI_COMMON_OPTIONS, with their ids. */
#define LEAT_PERF_SHARED_OPTIONS(X)                                                                \
    X(CIPHERS, "ciphers", 0, "LIST",                                                               \
      "TLS ciphers, best first: aes-128-gcm, aes-256-gcm, chacha20-poly1305")                      \
    X(GROUPS, "groups", 0, "LIST", "key exchange groups, best first: x25519, p256, p384")          \
    X(WINDOW, "window", 'w', "BYTES",                                                              \
      "flow-control window of a stream at first; the connection's is double")                      \
    X(SEND_BUFFER, "send-buffer", 0, "BYTES", "bytes a stream buffers until acknowledged")         \
    X(UDP_PAYLOAD, "udp-payload", 0, "BYTES", "largest datagram sent (1200 to 65527)")             \
    X(KEY_UPDATE, "key-update", 0, "N", "update the keys every N packets")                         \
    X(NO_OFFLOAD, "no-offload", 0, NULL, "one datagram a packet: no GSO, no GRO")                  \
    X(KEYLOG, "keylog", 0, "FILE", "append TLS secrets to FILE (default: $SSLKEYLOGFILE)")         \
    X(QLOG, "qlog", 0, "DIR", "write a qlog file a connection into DIR (default: $QLOGDIR)")       \
    X(LOG_LEVEL, "log-level", 0, "LEVEL",                                                          \
      "tell on stderr what connections go through: error, warn, info, debug, trace")               \
    X(STATS, "stats", 0, NULL, "print statistics of each connection when it ends")                 \
    X(HELP, "help", 'h', NULL, "print this help")

/* Bytes to send on a stream, from one shared buffer of zeros, by reference. */
typedef struct leat_perf_source {
    leat_buf zeros;
} leat_perf_source;

leat_err leat_perf_source_init(leat_perf_source *source, leat_mem *mem);
void leat_perf_source_free(leat_perf_source *source);
/* Writes up to *left bytes, as there is room, and takes them off *left. LEAT_ERR_BLOCKED: the rest
 * waits for stream_writable. */
leat_err leat_perf_write(leat_perf_source *source, leat_stream *stream, uint64_t *left);

/* Reads and drops what is there; returns how many bytes. */
uint64_t leat_perf_drop(leat_stream *stream);

/* "1.25 Gbits/sec", as iperf3 has it. */
const char *leat_perf_rate_text(double bits, double seconds, char out[LEAT_CLI_TEXT]);

int leat_perf_server(int argc, char **argv);
int leat_perf_client(int argc, char **argv);

#endif
