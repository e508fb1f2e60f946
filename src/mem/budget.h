/* mem/budget.h: how much memory one owner (a connection) may hold, and who in it holds how much.
 *
 * What is charged is memory retained, not bytes counted: a span that pins a slab is charged what it
 * pins. A charge that does not fit is refused and changes nothing; the user then pushes back,
 * copies sparse data out, or drops what may be dropped. What can wait leaves a part to what cannot:
 * a peer that sends no more than it may must not find the budget used up by what is written to it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEM_BUDGET_H
#define LEAT_MEM_BUDGET_H

#include <leat/base.h>

#include "base/assert.h"

/* Who uses a budget: X(NAME, what). */
#define LEAT_BUDGET_LIST(X)                                                                        \
    X(STREAM_RECV, "stream data received and not yet consumed")                                    \
    X(STREAM_SEND, "stream data to send or not yet acknowledged")                                  \
    X(CRYPTO, "handshake data, both ways")                                                         \
    X(SENT, "records of packets sent")                                                             \
    X(ACKS, "ranges of packet numbers received")                                                   \
    X(DATAGRAMS, "datagram frames queued, both ways")                                              \
    X(CIDS, "connection IDs and their tables")                                                     \
    X(PACKETS, "received packets that wait for keys or a turn")                                    \
    X(EVENTS, "tasks and events queued")                                                           \
    X(OBJECTS, "the connection itself, its streams and paths")                                     \
    X(OTHER, "everything else")

#define LEAT_BUDGET_ENUM(name, what) LEAT_BUDGET_##name,
typedef enum leat_budget_user {
    LEAT_BUDGET_LIST(LEAT_BUDGET_ENUM) LEAT_BUDGET_USERS
} leat_budget_user;
#undef LEAT_BUDGET_ENUM

#define LEAT_BUDGET_RESERVE 4 /* of the limit: the part that is left to what cannot wait */

typedef struct leat_budget {
    size_t limit; /* 0: none */
    size_t used;
    size_t high; /* the most that was used */
    uint64_t refused;
    size_t by[LEAT_BUDGET_USERS];
} leat_budget;

static inline void leat_budget_init(leat_budget *b, size_t limit)
{
    *b = (leat_budget){.limit = limit};
}

/* Would a charge of n fit now? */
static inline bool leat_budget_fits(const leat_budget *b, size_t n)
{
    return b->limit == 0 || (b->used <= b->limit && n <= b->limit - b->used);
}

/* Would a charge of n fit now, for what can wait: bytes and datagrams to send, and the records of
 * packets under way? */
static inline bool leat_budget_spares(const leat_budget *b, size_t n)
{
    return leat_budget_fits(b, n + b->limit / LEAT_BUDGET_RESERVE);
}

/* Charges n bytes whether they fit or not: for what cannot be refused. */
static inline void leat_budget_force(leat_budget *b, leat_budget_user user, size_t n)
{
    b->used += n;
    b->by[user] += n;
    if (b->used > b->high) {
        b->high = b->used;
    }
}

/* Charges n bytes to the user; false, and nothing is charged, if they do not fit. */
static inline bool leat_budget_charge(leat_budget *b, leat_budget_user user, size_t n)
{
    if (LEAT_UNLIKELY(!leat_budget_fits(b, n))) {
        b->refused++;
        return false;
    }
    leat_budget_force(b, user, n);
    return true;
}

/* The same for what can wait. */
static inline bool leat_budget_charge_spare(leat_budget *b, leat_budget_user user, size_t n)
{
    if (LEAT_UNLIKELY(!leat_budget_spares(b, n))) {
        b->refused++;
        return false;
    }
    leat_budget_force(b, user, n);
    return true;
}

/* Takes back n bytes that were charged to the user (asserted). */
static inline void leat_budget_refund(leat_budget *b, leat_budget_user user, size_t n)
{
    LEAT_ASSERT(n <= b->by[user]);
    b->by[user] -= n;
    b->used -= n;
}

/* Asserts that the users sum up to what is used. */
void leat_budget_check(const leat_budget *b);

#endif
