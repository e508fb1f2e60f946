/* tests/sim/sim.h: a run from inside: machines, clients and their connections.
 *
 *     machine   a context with an endpoint: the server, and each client
 *     client    a machine, its way to the server, and the applications at both ends of its present
 *               connection
 *     round     all clients connect; all connections come to their end; nothing is left. With
 *               plan.again they come back in another round, with what they keep from the last one
 *
 * begin.c makes them, run.c moves time and goes through the rounds, judge.c says what is wrong,
 * agree.c what the two ends see differently.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_SIM_SIM_H
#define LEAT_TESTS_SIM_SIM_H

#include "app.h"
#include "base/prng.h"
#include "base/time.h"
#include "endpoint/endpoint.h"
#include "mem/mem.h"
#include "net.h"
#include "run.h"

enum { LEAT_SIM_CLIENTS_MAX = 8 };

typedef struct leat_sim_machine {
    const leat_sim_end_plan *plan;
    leat_ctx *ctx;
    leat_endpoint *ep; /* NULL: it has been freed */
    leat_time ahead;   /* its clock, of the run's */
} leat_sim_machine;

/* What a client that forgot all has left at the server: a connection whose peer is silent. */
typedef struct leat_sim_ghost {
    leat_sim_plan plan;
    leat_sim_app app;
    bool has_token; /* an ID of the client's that it sends to came with a reset token */
} leat_sim_ghost;

/* Where a client is in its round. */
typedef enum leat_sim_phase {
    LEAT_SIM_WAITS,   /* for its time to connect */
    LEAT_SIM_RUNS,    /* until all streams have come to their end */
    LEAT_SIM_SETTLES, /* until nothing is under way */
    LEAT_SIM_READY,   /* for its end, which comes with that of others */
    LEAT_SIM_CLOSES   /* somebody has closed, or it was never there */
} leat_sim_phase;

typedef struct leat_sim_client {
    size_t index;
    leat_sim_plan plan; /* of its own content */
    leat_sim_machine machine;
    leat_sim_net net;
    leat_sim_app app[2];
    leat_conn *conn; /* the client's, once it has connected */
    leat_sim_phase phase;
    leat_time connect_at;
    leat_time least, most; /* settling: it takes so long, and no longer, but for what is lost */
    uint64_t swallowed;    /* datagrams, by its network when that began */
    bool starved;   /* when the first end timed out, the network had let nothing through for long */
    bool restarted; /* the server began anew after it had connected */
    bool unheard;   /* and this did not know by then that its handshake was over */
    bool returned;  /* with a session */
    bool reborn;    /* it forgot all, and connected again */
    leat_time reborn_at;   /* NEVER: not (any more) */
    leat_sim_ghost *ghost; /* or NULL */
} leat_sim_client;

typedef struct leat_sim {
    const leat_sim_options *options;
    const leat_sim_plan *plan;
    leat_sim_result *result;
    leat_prng prng;
    leat_time now;
    uint64_t at_one; /* steps since time last moved */
    uint64_t round;
    leat_time began;      /* the round */
    leat_time restart_at; /* NEVER: not (any more) */
    bool closing;         /* everything, early or not */
    bool early;           /* before all was done */
    bool restarted;       /* the server has begun anew in this round */
    bool slept;
    bool broken;   /* fault.h: by order */
    bool leapt[2]; /* the clients' clocks, the server's */
    leat_sim_end_plan server_plan;
    leat_sim_machine server;
    const leat_tls_config *tls[2]; /* tls.c */
    leat_shared *shared;
    leat_sim_door door;
    size_t count; /* of clients */
    leat_sim_client client[LEAT_SIM_CLIENTS_MAX];
    leat_pcap *pcap;
    FILE *keylog;
} leat_sim;

static inline leat_sim_machine *leat_sim_machine_of(leat_sim *s, leat_sim_client *c, int side)
{
    return side == 0 ? &c->machine : &s->server;
}

/* A client by an address of its network; NULL: there is none. */
static inline leat_sim_client *leat_sim_client_at(leat_sim *s, const leat_addr *addr)
{
    return addr->ip[1] < s->count ? &s->client[addr->ip[1]] : NULL;
}

#define LEAT_SIM_EACH_CONN(machine, l)                                                             \
    for (leat_link *l = (machine)->ep ? leat_list_first(&(machine)->ep->conns) : NULL; l;          \
         l = leat_list_next(&(machine)->ep->conns, l))

static inline leat_conn *leat_sim_conn_of(leat_link *link)
{
    return LEAT_CONTAINER_OF(link, leat_conn, host_link);
}

/* ---- begin.c ---- */

/* s: all zero. */
void leat_sim_begin(leat_sim *s, const leat_sim_options *options, leat_sim_result *result);
/* A client's connection begins. */
void leat_sim_connect(leat_sim *s, leat_sim_client *c);
/* The server's process ends and another takes its place, with the keys that it keeps. */
void leat_sim_restart(leat_sim *s);
/* A client forgets all, and is to connect again from the same address and port. */
void leat_sim_rebear(leat_sim *s, leat_sim_client *c);
/* All is over and the clients come back. */
void leat_sim_next_round(leat_sim *s);
void leat_sim_finish(leat_sim *s);

/* ---- tls.c ---- */

/* What both ends bring to a handshake, client and server: never freed, for all runs that want the
 * same have it. keys: where the client's go, or NULL. */
void leat_sim_tls(const leat_sim_options *options, FILE *keys, const leat_tls_config *out[2]);

/* ---- judge.c ---- */

/* After each step. */
void leat_sim_check_step(leat_sim *s);
/* Whether the peer's ID that a connection sends to came with a reset token. */
bool leat_sim_has_token(const leat_conn *conn);
/* Before a connection is closed: adds up its statistics. */
void leat_sim_sum_up(leat_sim *s, leat_sim_client *c);
/* Why did each connection of the round end? */
void leat_sim_explain(leat_sim *s);
/* The round has left nothing behind. */
void leat_sim_check_empty(leat_sim *s);
/* Adds up what the networks have carried, which begin to count anew. */
void leat_sim_sum_up_nets(leat_sim *s);

/* ---- agree.c ---- */

/* A failure when the two are not the same. */
void leat_sim_agree(const char *what, uint64_t a, uint64_t b);
/* Nothing of a connection is under way, neither packets nor the news of them. */
bool leat_sim_at_rest(const leat_sim_client *c);
/* At rest: both ends say the same. */
void leat_sim_compare(leat_sim *s, leat_sim_client *c);

#endif
