/* conn/shared.c: see conn/shared.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/shared.h"

#include <string.h>

#include "conn/conn.h"
#include "crypto/secret.h"

static void shared_free(leat_ctx *ctx, void *value)
{
    leat_conn_shared *shared = value;

    leat_queue_free(&shared->batch);
    leat_stream_pools_free(&shared->streams);
    LEAT_ASSERT(leat_list_empty(&shared->terms));
    leat_pool_free(&shared->paths);
    leat_pool_free(&shared->terms_pool);
    leat_pool_free(&shared->cryptos);
    leat_pool_free(&shared->tickets);
    leat_pool_free(&shared->early_works);
    leat_pool_free(&shared->handshakes);
    leat_pool_free(&shared->conns);
    leat_key_cache_free(shared->keys);
    leat_random_wipe(&shared->random);
    leat_mem_give(leat_ctx_mem(ctx), shared, sizeof(*shared));
}

leat_err leat_conn_shared_get(leat_ctx *ctx, leat_conn_shared **out)
{
    leat_conn_shared *shared = leat_ctx_slot_get(ctx, LEAT_CTX_SLOT_CONN);
    uint8_t seed[LEAT_CTX_SEED_LEN];
    leat_err err;

    if (shared) {
        *out = shared;
        return LEAT_OK;
    }
    shared = leat_mem_take_zeroed(leat_ctx_mem(ctx), sizeof(*shared));
    if (!shared) {
        return LEAT_ERR_NOMEM;
    }
    shared->mem = leat_ctx_mem(ctx);
    err = leat_key_cache_new(shared->mem, NULL, 0, &shared->keys);
    if (err == LEAT_OK) {
        err = leat_ctx_seed_take(ctx, seed);
        if (err != LEAT_OK) {
            leat_key_cache_free(shared->keys);
        }
    }
    if (err != LEAT_OK) {
        leat_mem_give(shared->mem, shared, sizeof(*shared));
        return err;
    }
    leat_random_init(&shared->random, seed);
    leat_wipe(seed, sizeof(seed));
    leat_pool_init_aligned(&shared->conns, shared->mem, sizeof(leat_conn), "conns");
    leat_pool_init(&shared->handshakes, shared->mem, sizeof(leat_handshake), "handshakes");
    leat_pool_init(&shared->early_works, shared->mem, sizeof(leat_early_work), "early works");
    leat_pool_init(&shared->tickets, shared->mem, sizeof(leat_tickets), "tickets");
    leat_pool_init(&shared->terms_pool, shared->mem, sizeof(leat_conn_terms), "terms");
    leat_pool_init(&shared->paths, shared->mem, (LEAT_PATHS_MAX - 1) * sizeof(leat_path), "paths");
    leat_list_init(&shared->terms);
    leat_pool_init(&shared->cryptos, shared->mem, sizeof(leat_crypto), "crypto streams");
    leat_stream_pools_init(&shared->streams, shared->mem);
    leat_queue_init(&shared->batch, shared->mem, sizeof(leat_inbound));
    leat_ctx_slot_set(ctx, LEAT_CTX_SLOT_CONN, shared, shared_free);
    *out = shared;
    return LEAT_OK;
}

#define TERMS_LOOKED_AT 8 /* an application has few kinds of connections */

const leat_conn_settings *leat_conn_terms_take(leat_conn_shared *shared,
                                               const leat_conn_settings *settings)
{
    leat_conn_terms *terms;
    int looked_at = 0;

    for (leat_link *l = leat_list_first(&shared->terms); l && looked_at < TERMS_LOOKED_AT;
         l = leat_list_next(&shared->terms, l), looked_at++) {
        terms = LEAT_CONTAINER_OF(l, leat_conn_terms, link);
        /* Unlike padding makes a copy more, no harm. */
        if (memcmp(&terms->settings, settings, sizeof(*settings)) == 0) {
            terms->users++;
            return &terms->settings;
        }
    }
    terms = leat_pool_take(&shared->terms_pool);
    if (!terms) {
        return NULL;
    }
    memcpy(&terms->settings, settings, sizeof(*settings));
    terms->users = 1;
    leat_link_init(&terms->link);
    leat_list_push_front(&shared->terms, &terms->link);
    return &terms->settings;
}

void leat_conn_terms_give(leat_conn_shared *shared, const leat_conn_settings *settings)
{
    leat_conn_terms *terms = LEAT_CONTAINER_OF(settings, leat_conn_terms, settings);

    LEAT_ASSERT(terms->users > 0);
    if (--terms->users == 0) {
        leat_link_remove(&terms->link);
        leat_pool_give(&shared->terms_pool, terms);
    }
}

leat_cid leat_conn_host_new_cid(leat_conn_host *host)
{
    leat_cid cid = {.len = host->cid_len};

    leat_random_fill(&host->shared->random, cid.data, cid.len);
    if (host->make_cid) {
        host->make_cid(cid.data, cid.len, host->make_cid_user);
    }
    return cid;
}
