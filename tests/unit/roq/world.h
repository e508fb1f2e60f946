/* tests/unit/roq/world.h: a client and a server that speak RTP over QUIC, in virtual time, with a
 * path between them that has a rate and loses what the test says. The server is always a session;
 * the client is one, or a raw connection whose bytes the test writes itself.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TEST_ROQ_WORLD_H
#define LEAT_TEST_ROQ_WORLD_H

#include <leat/roq.h>

#include "pair.h"

enum { WORLD_PACKETS = 8192, WORLD_PACKET = 1500 };

typedef struct world_packet {
    uint64_t flow;
    uint16_t seq;
    uint32_t timestamp;
    size_t len;
    bool rtcp, stream;
    leat_time at;
    uint8_t first[32]; /* of its bytes */
} world_packet;

typedef struct world {
    leat_pair pair;
    leat_pair_setup setup;
    leat_roq_settings settings;  /* the server's session */
    bool raw;                    /* the client is no session */
    bool early;                  /* the client's session is there before it is connected … */
    bool client_wants_datagrams; /* … and requires datagrams */
    leat_roq *client, *server;
    leat_roq_flow *flow; /* the client's: flow 1 */
    leat_roq_flow_settings flow_settings;
    bool server_knows_flow; /* opens flow 1 when it is connected */
    bool server_opens;      /* opens any flow when it is asked for */

    world_packet got[WORLD_PACKETS]; /* by the server */
    size_t got_count;
    uint64_t got_bytes;
    leat_roq_result results[WORLD_PACKETS]; /* at the client */
    size_t result_count;
    size_t outcomes[LEAT_ROQ_OUTCOMES];
    size_t unknown, cancelled, writable, connected;
    uint64_t estimate;
    size_t estimates;
    uint64_t unknown_id;
    size_t big;     /* bytes of the largest packet received */
    bool big_right; /* it was what send_big() sent */
    bool skip_in_packet, close_in_packet, close_in_unknown;
    bool server_deaf;                      /* it listens to no event but the end */
    uint64_t client_reset, client_stopped; /* raw: the codes of stream events; UINT64_MAX: none */
    bool client_closed, server_closed;
    leat_close_info client_close, server_close;

    unsigned drop_nth; /* each n-th datagram to the server is lost; 0: none */
    bool dark;         /* everything to the server is lost */
    size_t seen;
} world;

/* Sets defaults; change them, then connect. */
void world_init(world *w);
void world_connect(world *w);
void world_free(world *w);

/* Runs so long. */
void world_run(world *w, leat_time time);

/* An RTP packet of len bytes (12 at least) whose payload follows from its number. */
leat_span world_rtp(uint16_t seq, uint32_t timestamp, bool marker, size_t len);
/* Queues it on the client's flow 1. */
leat_err world_send(world *w, uint16_t seq, uint32_t timestamp, bool marker, size_t len);

#endif
