/* tests/sim/net.h: the network between a client and the server, what it was given to carry, and the
 * capture.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_SIM_NET_H
#define LEAT_TESTS_SIM_NET_H

#include <leat/loop.h>

#include "net/link.h"
#include "plan.h"

/* What one direction's own rule needs to know: chance is the pipe's, the rest is here. */
typedef struct leat_sim_way {
    const leat_sim_net_plan *plan;
    bool changed; /* it goes by the other numbers */
    const leat_time *now;
    const leat_addr *dark; /* nothing to or from there gets through; or NULL */
} leat_sim_way;

enum {
    LEAT_SIM_OUTSIDE = 64, /* addresses that the NAT may give to the client */
    LEAT_SIM_OWN = 32,     /* those that it may migrate to, which no NAT hides */
    LEAT_SIM_ADDRESSES = LEAT_SIM_OUTSIDE + LEAT_SIM_OWN
};

/* How the server sees one of them. */
typedef struct leat_sim_outside {
    leat_addr addr;
    uint64_t sent;     /* bytes by the client, that arrived */
    uint64_t received; /* bytes by the server, to it */
    bool validated;
} leat_sim_outside;

/* What an end has tried since something whole last arrived there. */
typedef struct leat_sim_vain {
    uint64_t sent;     /* datagrams by it, but for those that are too large */
    uint64_t arrived;  /* whole, at its peer */
    uint64_t answered; /* datagrams by its peer, but for those that are too large */
} leat_sim_vain;

typedef struct leat_sim_net {
    leat_mem *mem;
    leat_net_link link;
    leat_sim_way way[2];
    const leat_sim_plan *plan;
    leat_time now;
    leat_time rebind_at;                          /* NEVER: no more */
    leat_time migrate_at;                         /* NEVER: no more */
    leat_sim_outside outside[LEAT_SIM_ADDRESSES]; /* the NAT's, then its own */
    size_t outside_now;                           /* the one that the NAT gives it */
    size_t own;                                   /* of its own, so many have been used */
    leat_addr addr[2];                            /* as each end knows its own */
    leat_addr preferred;                          /* another of the server's */
    uint64_t bytes_sent[2];                       /* by end i */
    bool confirmed;                               /* the server has confirmed the handshake */
    uint64_t
        nobodys[2]; /* datagrams that came to end i too late, or too early: their ID is nobody's */
    uint64_t stale; /* datagrams to an address that the NAT knew no more */
    uint64_t rebindings, changes; /* of addresses, of ways */
    bool met_elsewhere;           /* the client has gone to the preferred address */
    uint64_t in_vain[2];          /* datagrams sent to end i since one arrived there, but for those
                                     that are too large */
    uint64_t longest[2];          /* so many in a row were lost, at most */
    leat_sim_vain vain[2];        /* of end i */
    leat_time sent_at[2];         /* when end i last sent */
    uint64_t digest;              /* of every datagram sent and when */
    leat_pcap *pcap;              /* or NULL */
} leat_sim_net;

/* The way of the nth client: its addresses are 10.n.x.y, the server's are the same for all. */
void leat_sim_net_init(leat_sim_net *net, const leat_sim_plan *plan, size_t nth, uint64_t seed);
/* Nothing is under way, and the client connects again: what is counted, is counted anew. */
void leat_sim_net_again(leat_sim_net *net);
void leat_sim_net_free(leat_sim_net *net);

/* The handshake is over: from now on the client's outside address changes as the plan has it. */
void leat_sim_net_confirmed(leat_sim_net *net);

/* There is another handshake: the address stays as it is until that is over. */
void leat_sim_net_unconfirmed(leat_sim_net *net);

/* It is time for the client to migrate: where to, or NULL. leat_sim_net_migrated() when it has
 * begun to. */
const leat_addr *leat_sim_net_migrate_to(const leat_sim_net *net);
void leat_sim_net_migrated(leat_sim_net *net);

/* How long its address may go on changing at most. Each change begins a search for the datagram
 * size of a new path, so that there may be no rest before. */
leat_time leat_sim_net_restless(const leat_sim_net *net);

/* Whether the client has had the ith of the outside addresses yet. */
bool leat_sim_net_had(const leat_sim_net *net, size_t i);
/* Which of them it is; one that the client never had is a failure. */
size_t leat_sim_net_outside(const leat_sim_net *net, const leat_addr *addr);

/* End `from` sends what leat_endpoint_send() wrote. */
void leat_sim_net_send(leat_sim_net *net, int from, const uint8_t *data, size_t len,
                       const leat_send_info *info);

/* Datagrams sent to end `at` in a row that did not arrive, and are not under way either. */
uint64_t leat_sim_net_lost(const leat_sim_net *net, int at);

/* Whether end `at` has tried in vain, `least` datagrams lost at least: since something whole last
 * arrived there, what it sent was lost or answered, and the answers were lost. An answer may be for
 * two datagrams. */
bool leat_sim_net_tried(const leat_sim_net *net, int at, uint64_t least);

/* Datagrams that both ways have swallowed or damaged, but for those that were too large. */
uint64_t leat_sim_net_swallowed(const leat_sim_net *net);

/* Hands over to an endpoint what has arrived at its end, up to `group` datagrams of one size a
 * call. How many datagrams. */
size_t leat_sim_net_deliver(leat_sim_net *net, int at, leat_endpoint *endpoint, uint64_t group);

/* Drops what has arrived at an end that is not there any more. */
void leat_sim_net_discard(leat_sim_net *net, int at);

#endif
