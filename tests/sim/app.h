/* tests/sim/app.h: the application at one end: opens streams, writes, reads, checks each byte.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_SIM_APP_H
#define LEAT_TESTS_SIM_APP_H

#include <leat/quic.h>

#include "base/list.h"
#include "base/prng.h"
#include "content.h"

enum { LEAT_SIM_SESSION, LEAT_SIM_TOKEN, LEAT_SIM_KEEPS, LEAT_SIM_DATAGRAMS_MAX = 4096 };
enum { LEAT_SIM_CLOSE_CODE = 0x1eab };

typedef struct leat_sim_app {
    const leat_sim_plan *plan;
    const leat_sim_end_plan *end;
    int side; /* 0: client, 1: server */
    leat_ctx *ctx;
    leat_conn *conn; /* once connected, until closed */
    leat_prng prng;
    leat_timer tick;
    unsigned vain_ticks; /* in a row */
    leat_timer datagram_timer;
    leat_timer rekey_timer;
    leat_list streams;   /* open ones */
    uint64_t to_open[2]; /* bidirectional, unidirectional: not yet opened */
    uint64_t opened;     /* by either side */
    uint64_t ended;
    uint64_t bytes_read;
    uint64_t bytes_written;
    uint64_t resets_seen, stops_seen;
    uint64_t datagrams_sent, datagrams_over; /* queued; told what became of them */
    uint64_t datagrams_acked, datagrams_seen;
    uint64_t datagrams_late; /* given up: the queue was full, or they were too long by then */
    bool connected;
    bool closed;   /* the connection, or at the server one that never was connected */
    int fault;     /* fault.h */
    bool shutdown; /* somebody has closed: streams may end in any way */
    uint8_t datagram_seen[LEAT_SIM_DATAGRAMS_MAX]; /* of the peer's: it has arrived */
    uint8_t datagram_over[LEAT_SIM_DATAGRAMS_MAX]; /* of ours: its end was told */
    leat_span keep[LEAT_SIM_KEEPS]; /* client: what it has been given for the next connection */
    bool short_of_memory;           /* streams could not be opened: the budget was used up */
    unsigned extra;   /* server: connections that late Initials began, and that came to nothing */
    bool turned_away; /* server: the client came a second time, and was not let in */
    leat_close_info info;
    char detail[128];
} leat_sim_app;

extern const leat_conn_events leat_sim_app_events;

/* For the server: until it is known whose a connection is, it comes by the door. */
typedef struct leat_sim_door {
    leat_sim_app *(*find)(void *user, const leat_addr *remote);
    void *user;
} leat_sim_door;

extern const leat_conn_events leat_sim_door_events; /* user: leat_sim_door */

void leat_sim_app_init(leat_sim_app *app, const leat_sim_plan *plan, int side, leat_ctx *ctx);
void leat_sim_app_free(leat_sim_app *app);

/* Its connection and streams go on as those of `to`, whatever becomes of them, with a plan of its
 * own. `from` is to be begun anew. */
void leat_sim_app_move(leat_sim_app *from, leat_sim_app *to, const leat_sim_plan *plan);

/* The client's connection has begun: with 0-RTT its streams do, too. */
void leat_sim_app_begin(leat_sim_app *app, leat_conn *conn);
/* What is kept is used once. */
void leat_sim_app_forget(leat_sim_app *app);

/* All streams of the plan, this side's and the peer's, have come to their end, and so have the
 * datagrams that this side sends. */
bool leat_sim_app_done(const leat_sim_app *app);

/* Ends the run as a failure. */
_Noreturn void leat_sim_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
