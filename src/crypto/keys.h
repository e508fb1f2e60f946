/* crypto/keys.h: the keys of one direction at one level, and the context's cache of expanded keys.
 *
 * A leat_packet_keys keeps secrets only, about 160 bytes: an idle connection holds no cipher state.
 * What a cipher needs to run (key schedule, hash tables, the backend's handle) lives in a slot of
 * the context's leat_key_cache and is made again when it has been pushed out.
 *
 *   1. leat_packet_keys_init() makes an unset one (all zeros is the same).
 *   2. leat_packet_keys_set() derives key, IV and header protection key from a traffic secret;
 *      leat_packet_keys_initial() makes both directions of the Initial level.
 *   3. leat_seal(), leat_mask(), leat_open() use them.
 *   4. leat_packet_keys_next() derives the keys of the next key phase (RFC 9001 §6) into another;
 *      the header protection key stays.
 *   5. leat_packet_keys_drop() wipes, here and in the cache. It may be called on an unset one.
 *
 * A leat_packet_keys may be moved in memory by struct assignment; wipe what is left behind.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CRYPTO_KEYS_H
#define LEAT_CRYPTO_KEYS_H

#include "crypto/aead.h"
#include "crypto/schedule.h"

typedef struct leat_packet_keys {
    const leat_schedule *schedule; /* NULL: unset */
    uint64_t sealed;               /* packets sealed with this key: compare with seal_limit */
    uint64_t slot_id;              /* which keying of the slot is ours; 0: none */
    uint32_t slot;                 /* where in the cache we were last */
    uint8_t aead;                  /* enum leat_aead */
    uint8_t iv[LEAT_AEAD_IV];
    uint8_t key[LEAT_AEAD_KEY_MAX];
    uint8_t hp[LEAT_AEAD_KEY_MAX];
    uint8_t secret[LEAT_SECRET_MAX]; /* the traffic secret, from which the next phase comes */
} leat_packet_keys;

typedef struct leat_key_cache leat_key_cache;

typedef struct leat_key_cache_stats {
    uint64_t hits;
    uint64_t misses;  /* a key was expanded into a slot */
    uint64_t evicted; /* and pushed another one out */
    size_t slots;     /* slots made so far, of all algorithms: flat once warm */
} leat_key_cache_stats;

/* Makes the cache of a context. backend NULL: leat_crypto_backend_pick(NULL). `entries`: slots for
 * each algorithm, LEAT_KEY_CACHE_MIN to _MAX of leat/limits.h, 0: the default. Slots are made when
 * first wanted and then kept. LEAT_ERR_NOMEM, LEAT_ERR_INVALID. */
leat_err leat_key_cache_new(leat_mem *mem, const leat_crypto_backend *backend, size_t entries,
                            leat_key_cache **out);

/* Wipes and frees. NULL is allowed. Keys that were used with it stay valid with another cache. */
void leat_key_cache_free(leat_key_cache *cache);

/* Makes `entries` slots of one algorithm now, so that nothing allocates later. */
leat_err leat_key_cache_warm(leat_key_cache *cache, leat_aead aead, size_t entries);

const leat_crypto_backend *leat_key_cache_backend(const leat_key_cache *cache);
void leat_key_cache_stats_get(const leat_key_cache *cache, leat_key_cache_stats *out);

/* Whether, once its slots are made, the cache allocates nothing for keys of this algorithm; the
 * backend says. */
bool leat_key_cache_without_heap(const leat_key_cache *cache, leat_aead aead);

/* Walks the cache and asserts its invariants. */
void leat_key_cache_check(const leat_key_cache *cache);

static inline void leat_packet_keys_init(leat_packet_keys *keys)
{
    *keys = (leat_packet_keys){0};
}

static inline bool leat_packet_keys_ready(const leat_packet_keys *keys)
{
    return keys->schedule != NULL;
}

static inline const leat_aead_info *leat_packet_keys_info(const leat_packet_keys *keys)
{
    return leat_aead_info_get((leat_aead)keys->aead);
}

/* Derives the keys from a traffic secret of the algorithm's secret_len bytes. keys must be unset or
 * dropped. */
void leat_packet_keys_set(leat_packet_keys *keys, const leat_schedule *schedule, leat_aead aead,
                          const uint8_t *secret);

/* The two directions of the Initial level: `client` is what the client sends with. */
void leat_packet_keys_initial(leat_packet_keys *client, leat_packet_keys *server,
                              const leat_schedule *schedule, const uint8_t *dcid, size_t dcid_len);

/* The next key phase of `now` into `next`, which must be unset or dropped. 1-RTT keys only. */
void leat_packet_keys_next(const leat_packet_keys *now, leat_packet_keys *next);

/* Wipes the secrets and the expanded key, if the cache still has it. cache may be NULL for keys
 * never used. */
void leat_packet_keys_drop(leat_packet_keys *keys, leat_key_cache *cache);

/* Seals n packets in place (see crypto/aead.h) and adds n to keys->sealed. The caller watches the
 * limit. LEAT_OK; LEAT_ERR_NOMEM when a first slot could not be made (nothing was sealed: try again
 * later); LEAT_ERR_CRYPTO when the library failed (the packets must not be sent). */
leat_err leat_seal(leat_key_cache *cache, leat_packet_keys *keys, leat_seal_op *ops, size_t n);

/* Computes n header protection masks. LEAT_OK or LEAT_ERR_NOMEM. */
leat_err leat_mask(leat_key_cache *cache, leat_packet_keys *keys, leat_mask_op *ops, size_t n);

/* Opens n packets in place; each ops[i].result is LEAT_OK or LEAT_ERR_CRYPTO. Returns LEAT_OK when
 * all were tried, LEAT_ERR_NOMEM when none was. The caller counts failures against open_fail_limit.
 */
leat_err leat_open(leat_key_cache *cache, leat_packet_keys *keys, leat_open_op *ops, size_t n);

#endif
