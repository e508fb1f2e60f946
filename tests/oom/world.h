/* tests/oom/world.h: a client and a server in virtual time whose memory fails by order.
 *
 * leat_oom_try() plays a scenario over and over; in its nth run the nth operation of a kind fails
 * (alone, or with all that come after it), until a run needs no nth. Each run is then judged:
 *
 *   - every stream that the application opened came to an end that it was told of: whole and right,
 *     reset, or closed with its connection;
 *   - a connection that closed was told a reason that names a failure at one of the two ends, never
 *     silence, unless memory failed for good;
 *   - a connection that lives carries data as before;
 *   - a new connection of the same endpoints works;
 *   - nothing is left: connections, objects, buffers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_OOM_WORLD_H
#define LEAT_TESTS_OOM_WORLD_H

#include "mem/mem.h"
#include "pair.h"

#define OOM_STREAMS 16

typedef enum oom_end { OOM_OPEN, OOM_WHOLE, OOM_RESET, OOM_GONE } oom_end;

typedef struct oom_world oom_world;

/* A stream that the client opened; the server sends back what comes. */
typedef struct oom_stream {
    oom_world *world;
    leat_stream *stream; /* NULL: closed */
    size_t size, written, received;
    bool finished;
    oom_end end;
} oom_stream;

typedef struct oom_side {
    leat_conn *conn; /* NULL: none, or closed */
    unsigned connected, closed, datagrams;
    leat_close_info info; /* without its texts */
} oom_side;

struct oom_world {
    leat_pair pair;
    leat_pair_setup setup;
    oom_side client, server;
    oom_stream streams[OOM_STREAMS];
    size_t stream_count;
    bool lasting;
    bool failing;  /* an operation failed by order in this run */
    void *extra;   /* the scenario's */
    unsigned drop; /* of so many datagrams one is lost; 0: none */
    unsigned passed;
};

typedef struct oom_scenario {
    void (*prepare)(oom_world *world); /* changes world->setup; may be NULL */
    bool connected;                    /* memory fails once the handshake is confirmed */
    bool closes;                       /* streams end with their connection */
    void (*play)(oom_world *world);    /* what is done while memory may fail */
    /* What else must hold; `whole`: nothing has failed. May be NULL. */
    void (*judge)(oom_world *world, bool whole);
    uint64_t step; /* tries each so-manieth operation, from a first that moves; 0: each */
} oom_scenario;

/* Returns how many operations the scenario needs. */
uint64_t leat_oom_try(const oom_scenario *scenario, leat_mem_fault kind, bool lasting);

/* For other ways to fail: `arm` orders the nth to fail, 0 disarms; returns how many have. */
typedef uint64_t oom_arm_fn(oom_world *world, uint64_t nth, bool lasting);
uint64_t leat_oom_try_with(const oom_scenario *scenario, oom_arm_fn *arm, bool lasting);

/* For a scenario: connects; opens a stream and writes; goes on until all is over or nothing
 * happens any more for so long. */
void leat_oom_connect(oom_world *world);
void leat_oom_open(oom_world *world, size_t size);
void leat_oom_run(oom_world *world, leat_time timeout);
/* Passes on events of the connection to the scenario's own code. */
extern const leat_conn_events leat_oom_client_events, leat_oom_server_events;

#endif
