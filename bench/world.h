/* bench/world.h: client and server in one process, on one context, joined by an in-memory link.
 *
 * A datagram travels as it would outside: the endpoint writes it behind room for headers, the
 * headers are built before it (unless --stack quic), the packet passes the link, is checked and
 * read, and the payload goes to the other endpoint without having been copied. With --stack quic
 * and a link without faults, what a send call with segmentation offload would take travels whole.
 *
 * The world has a clock of its own: a pass of its loop takes LEAT_BENCH_PASS, and when nothing can
 * be done before the next deadline (a delayed packet, a timer) the clock jumps there. So waiting
 * takes none of the time that is measured, and the same packets cross on an idle machine and on one
 * that has no time for the process: neither a probe nor a larger queue comes of somebody else's
 * load.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_BENCH_WORLD_H
#define LEAT_BENCH_WORLD_H

#include <leat/loop.h>

#include "bench.h"
#include "net/link.h"

enum { LEAT_BENCH_CLIENT, LEAT_BENCH_SERVER };

#define LEAT_BENCH_BATCH 65536
/* About what a pass with a packet or two takes. */
#define LEAT_BENCH_PASS  (5 * LEAT_MICROSECOND)

typedef struct leat_bench_world {
    leat_ctx *ctx;
    leat_mem *mem;
    leat_endpoint *end[2];
    leat_addr addr[2];
    leat_tls_config *tls[2];
    leat_span session;       /* for the next connection, or empty; borrowed */
    leat_conn_settings conn; /* of both sides; leat_bench_world_open() fills it in */
    leat_net_link link;
    leat_time now;
    leat_time skipped; /* of it, what was waited for */
    bool headers;      /* real IP and UDP headers */
    bool batches;      /* the link carries batches of datagrams */
    size_t head_room;  /* bytes before each payload */
    size_t payload;    /* the largest datagram's */
    leat_buf spare;    /* taken for a datagram that was not written */
    leat_pcap *pcap;
    leat_keylog *keylog;
    char cert[LEAT_TLS_PEM_MAX], key[LEAT_TLS_PEM_MAX]; /* of the server; zero-ended */
    size_t cert_len, key_len;
} leat_bench_world;

/* Makes both ends; `events` and `user` are for the connections that the server accepts. Fails the
 * work on any error. */
void leat_bench_world_open(leat_bench_world *w, const leat_bench_options *options,
                           const leat_conn_events *events, void *user);
void leat_bench_world_close(leat_bench_world *w);

/* A certificate of the server's for a day, self-signed: ECDSA P-256. */
void leat_bench_make_certificate(char cert[LEAT_TLS_PEM_MAX], size_t *cert_len,
                                 char key[LEAT_TLS_PEM_MAX], size_t *key_len);

leat_conn *leat_bench_world_connect(leat_bench_world *w, const leat_conn_events *events,
                                    void *user);

/* Passes of a loop, what has arrived, a turn, what is to be sent, until *flag is true; fails the
 * work when nothing more happens, or after an hour of the world's time. The clock does not move on
 * once the flag is set: what the caller does next happens then. */
void leat_bench_world_until(leat_bench_world *w, const bool *flag, const char *what);

/* Passes through so much of the world's time, or until nothing is left to happen in it. */
void leat_bench_world_settle(leat_bench_world *w, leat_time time);

#endif
