/* conn/shared.c: see conn/shared.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/shared.h"

#include "conn/conn.h"
#include "crypto/secret.h"

static void shared_free(leat_ctx *ctx, void *value)
{
    leat_conn_shared *shared = value;

    leat_queue_free(&shared->batch);
    leat_stream_pools_free(&shared->streams);
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
    leat_pool_init(&shared->conns, shared->mem, sizeof(leat_conn), "conns");
    leat_pool_init(&shared->handshakes, shared->mem, sizeof(leat_handshake), "handshakes");
    leat_pool_init(&shared->early_works, shared->mem, sizeof(leat_early_work), "early works");
    leat_pool_init(&shared->tickets, shared->mem, sizeof(leat_tickets), "tickets");
    leat_stream_pools_init(&shared->streams, shared->mem);
    leat_queue_init(&shared->batch, shared->mem, sizeof(leat_inbound));
    leat_ctx_slot_set(ctx, LEAT_CTX_SLOT_CONN, shared, shared_free);
    *out = shared;
    return LEAT_OK;
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
