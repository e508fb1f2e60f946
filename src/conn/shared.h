/* conn/shared.h: what all connections of a context draw on: pools, randomness, the cache of keys.
 *
 * One a context, made when first asked for, kept in the context's slots and freed with it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_SHARED_H
#define LEAT_CONN_SHARED_H

#include "crypto/keys.h"
#include "crypto/random.h"
#include "mem/pool.h"
#include "mem/queue.h"
#include "sched/ctx.h"
#include "stream/env.h"

typedef struct leat_conn_shared {
    leat_mem *mem;
    leat_random random;
    leat_key_cache *keys;
    leat_pool conns;       /* struct leat_conn */
    leat_pool handshakes;  /* struct leat_handshake */
    leat_pool early_works; /* struct leat_early_work */
    leat_pool tickets;     /* struct leat_tickets */
    leat_stream_pools streams;
    leat_queue batch; /* where a connection drains its inbound queue to: used within one call */
} leat_conn_shared;

/* The context's, made if it has none yet. LEAT_ERR_NOMEM. */
leat_err leat_conn_shared_get(leat_ctx *ctx, leat_conn_shared **out);

#endif
