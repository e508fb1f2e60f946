/* tests/support/pair.h: a client's and a server's endpoint in one process, joined without a
 * network, in virtual time.
 *
 * The two share a context, as in `leat bench`, and a clock that the test moves. Datagrams pass
 * through `filter`, which may look at them, change, drop or keep them. Applications are the test's:
 * `client_events` and `server_events`.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_PAIR_H
#define LEAT_TESTS_PAIR_H

#include <leat/quic.h>

typedef struct leat_pair leat_pair;

/* One datagram on its way. Return false to drop it. */
typedef bool leat_pair_filter(leat_pair *pair, bool to_server, uint8_t *data, size_t *len);

struct leat_pair {
    leat_ctx *ctx;
    leat_endpoint *client;
    leat_endpoint *server;
    leat_tls_config *client_tls;
    leat_tls_config *server_tls;
    leat_conn *conn;   /* the client's connection */
    bool memory_fails; /* by the test's order: a datagram may then be lost */
    leat_span session; /* that the next connection offers */
    leat_addr client_addr, server_addr;
    leat_addr nat;  /* what client_addr looks like to the server; family 0: as it is */
    leat_addr seen; /* where the newest datagram to the server came from */
    leat_time now;
    leat_time delay;     /* one way */
    uint64_t rate;       /* bits a second of the way to the server; 0: any */
    leat_time most_wait; /* what would have to wait for that longer is lost; 0: nothing */
    leat_time busy;      /* until then the way is */
    leat_pair_filter *filter;
    void *user;          /* the filter's */
    uint8_t ecn;         /* of the datagram that the filter looks at; it may change it */
    leat_addr from, to;  /* the same datagram's, as they were sent */
    size_t datagrams[2]; /* passed on: to the client, to the server */
    size_t bytes[2];
    struct leat_pair_datagram *queue; /* on their way */
    size_t queue_count, queue_cap;
};

typedef struct leat_pair_setup {
    leat_endpoint_settings client; /* filled with defaults by leat_pair_setup_init() */
    leat_endpoint_settings server;
    leat_conn_settings conn; /* the client's */
    leat_tls_cipher cipher;  /* 0: all */
    const char *client_alpn; /* "leat-test" */
    const char *server_alpn;
    leat_time delay;
    bool verify; /* the client checks the server's certificate against itself as authority */
    uint8_t seed;
    unsigned tickets; /* of each side's TLS settings */
} leat_pair_setup;

void leat_pair_setup_init(leat_pair_setup *setup);

/* Makes endpoints; no connection yet. Fails the test on any error. */
void leat_pair_init(leat_pair *pair, const leat_pair_setup *setup);
void leat_pair_free(leat_pair *pair);

/* Connects; the first flight waits to be sent. */
void leat_pair_connect(leat_pair *pair, const leat_pair_setup *setup,
                       const leat_conn_events *events, void *user);

/* Runs one step: all turns and datagrams that the present time allows, then moves to the next time
 * at which something happens, but not past `until`. False: nothing is left to happen before
 * `until`. */
bool leat_pair_step(leat_pair *pair, leat_time until);

/* Steps until done(arg), for at most `timeout` of virtual time; returns done(arg). done NULL: runs
 * it out. */
bool leat_pair_run(leat_pair *pair, bool (*done)(void *arg), void *arg, leat_time timeout);

/* Filters: a way that carries nothing; and one to the server that carries Initials alone. */
leat_pair_filter leat_pair_nothing_to_server, leat_pair_nothing_to_client,
    leat_pair_initials_to_server;

/* Delivers a datagram of the test's making now. */
void leat_pair_inject(leat_pair *pair, bool to_server, const void *data, size_t len);
/* The same to the server, from any address. */
void leat_pair_inject_from(leat_pair *pair, const leat_addr *from, const void *data, size_t len);

#endif
