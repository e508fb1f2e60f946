/* conn/shared.h: what all connections of a context draw on: pools, randomness, the cache of keys.
 *
 * One a context, made when first asked for, kept in the context's slots and freed with it.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_SHARED_H
#define LEAT_CONN_SHARED_H

#include <leat/quic.h>

#include "base/list.h"
#include "crypto/keys.h"
#include "crypto/random.h"
#include "mem/pool.h"
#include "mem/queue.h"
#include "sched/ctx.h"
#include "stream/env.h"

/* Settings, held once for all the connections that have the same. */
typedef struct leat_conn_terms {
    leat_conn_settings settings;
    leat_link link; /* in leat_conn_shared.terms */
    uint32_t users;
} leat_conn_terms;

typedef struct leat_conn_shared {
    leat_mem *mem;
    leat_random random;
    leat_key_cache *keys;
    leat_pool conns;       /* struct leat_conn */
    leat_pool handshakes;  /* struct leat_handshake */
    leat_pool early_works; /* struct leat_early_work */
    leat_pool tickets;     /* struct leat_tickets */
    leat_pool cryptos;     /* leat_crypto */
    leat_pool terms_pool;  /* leat_conn_terms */
    leat_pool paths;       /* LEAT_PATHS_MAX - 1 leat_path, for a connection that has several */
    leat_list terms;       /* in use */
    leat_stream_pools streams;
    leat_queue batch; /* where a connection drains its inbound queue to: used within one call */
} leat_conn_shared;

/* The context's, made if it has none yet. LEAT_ERR_NOMEM. */
leat_err leat_conn_shared_get(leat_ctx *ctx, leat_conn_shared **out);

/* These settings, copied when they are like none of the newest ones in use; NULL: no memory. */
const leat_conn_settings *leat_conn_terms_take(leat_conn_shared *shared,
                                               const leat_conn_settings *settings);
void leat_conn_terms_give(leat_conn_shared *shared, const leat_conn_settings *settings);

#endif
