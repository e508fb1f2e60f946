/* tests/unit/h3/world.h: a client and a server that speak HTTP over the QUIC that is not there.
 * Each session, or neither, may be left out: then the test itself is that end of the connection.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TEST_H3_WORLD_H
#define LEAT_TEST_H3_WORLD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <leat/h3.h>
#include <string.h>

#include "fake_quic.h"
#include "mem/mem.h"

/* One end's view of one exchange. */
typedef struct side {
    leat_http_exchange *x;
    unsigned status;
    char method[16], path[256], authority[64], type[32];
    uint64_t length, body;
    int heads, completes, closes;
    bool bad; /* a body byte was not what was sent */
    leat_http_end end;
} side;

typedef struct world {
    fake_net net;
    leat_http *client, *server;
    side c, s; /* of the last exchange */
    unsigned answer;
    uint64_t size; /* of the body to answer with */
    uint64_t announce;
    uint64_t fail_at;  /* pull gives an error there */
    uint64_t end_at;   /* pull says end there */
    uint64_t stall_at; /* pull has nothing there, once */
    uint64_t pulled;
    uint64_t cancel_at; /* the client cancels inside the body event */
    uint64_t close_at;  /* the client closes the connection inside the body event */
    size_t take;        /* the client takes so many bytes a time */
    bool stalled, refuse_pull, may_fail;
    bool close_in_request; /* the server closes the connection, having said nothing */
    size_t header;         /* bytes of an extra field in the answer */
    int goaways, availables;
    int closes[2];
    leat_close_info closed[2];
    int finished, rejected;
} world;

extern const char *const world_protocols[2]; /* the ALPNs */
extern const leat_http_events world_client_events, world_server_events;
extern const leat_conn_events world_no_events;

/* Opens the net, and sessions on it. `ends`: 1 the client's, 2 the server's, 3 both. */
void world_open(world *w, const char *alpn, int ends);

/* Asks, as w->c. */
leat_err world_request(world *w, const char *method, const char *path);

/* The last exchange ended as it should, all of its body was there. */
void world_assert_whole(const world *w);

#endif
