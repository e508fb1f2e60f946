/* fuzz/support/world.h: a client's and a server's endpoint with the fake TLS and the cipher that
 * changes nothing, joined without a network: what one sends is there for the other at once.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_FUZZ_WORLD_H
#define LEAT_FUZZ_WORLD_H

#include "conn/conn.h"
#include "endpoint/endpoint.h"
#include "fuzz.h"

#define WORLD_QUEUE   64 /* datagrams under way */
#define WORLD_STREAMS 8  /* that an application holds */

typedef struct world world;

typedef struct world_app {
    world *world;
    leat_conn *conn; /* NULL: none, or closed */
    leat_stream *streams[WORLD_STREAMS];
    unsigned closed;
    bool lazy; /* reads nothing by itself */
} world_app;

typedef struct world_datagram {
    bool to_server;
    leat_addr from, to;
    size_t len;
    uint8_t data[1500];
} world_datagram;

struct world {
    leat_ctx *ctx;
    leat_endpoint *client, *server;
    world_app apps[2]; /* client's, server's */
    leat_time now;
    leat_addr client_addr, server_addr;
    unsigned drop; /* so many datagrams are lost next */
    world_datagram queue[WORLD_QUEUE];
    size_t queued;
};

/* Endpoints, and the client's first flight. handshake: runs it to its end. */
void world_open(world *w, bool handshake);
void world_close(world *w); /* and checks that nothing is left */
/* Turns and datagrams until nothing is left to do at this time. */
void world_settle(world *w);
void world_advance(world *w, leat_time time);
void world_inject(world *w, bool to_server, const leat_addr *client, leat_span datagram);
/* A packet with this payload under the keys of `from`, as it would send it. False: it has no keys
 * of that space. */
bool world_forge(world *w, bool from_server, leat_space space, leat_span payload);

#endif
