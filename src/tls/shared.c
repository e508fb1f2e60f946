/* tls/shared.c: see leat/shared.h and tls/shared.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tls/shared.h"

#include <gnutls/gnutls.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "crypto/random.h"
#include "crypto/schedule.h"
#include "crypto/secret.h"
#include "tls/early.h"

#define BUCKET_WAYS 7 /* and one word that says whose turn it is: a cache line */

typedef struct leat_early_bucket {
    _Atomic uint64_t next;
    _Atomic uint64_t print[BUCKET_WAYS]; /* 0: free */
} leat_early_bucket;

/* The name of a key is the first 16 bytes of tickets made with it. GnuTLS derives the keys in use
 * from ours by the time, and with each a name: the newest two of both versions are known. */
enum { KEY_NAMES = 4 };

typedef struct leat_key_name {
    _Atomic uint64_t word[2];
} leat_key_name;

typedef struct leat_ticket_slot {
    _Atomic uint64_t key[LEAT_TLS_TICKET_KEY / 8];
    leat_key_name names[KEY_NAMES]; /* newest first */
} leat_ticket_slot;

struct leat_shared {
    leat_ticket_slot tickets[LEAT_SHARED_SLOTS];
    _Atomic uint64_t tokens[LEAT_SHARED_SLOTS][LEAT_SHARED_KEY / 8];
    _Atomic uint32_t ticket_generation; /* the current slot is this modulo their number */
    _Atomic uint32_t token_generation;
    uint8_t reset_key[LEAT_SHARED_KEY];
    leat_hash_key hash;
    gnutls_anti_replay_t anti_replay;
    leat_early_bucket *buckets;
    size_t bucket_mask;
    _Atomic uint64_t issued, accepted, refused;
};

/* ---- keys in atomic words ---- */

static void store_words(_Atomic uint64_t *words, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n / 8; i++) {
        uint64_t word;

        memcpy(&word, bytes + 8 * i, 8);
        atomic_store_explicit(&words[i], word, memory_order_relaxed);
    }
}

static void load_words(const _Atomic uint64_t *words, uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n / 8; i++) {
        uint64_t word = atomic_load_explicit(&words[i], memory_order_relaxed);

        memcpy(bytes + 8 * i, &word, 8);
    }
}

void leat_shared_rotate_tokens(leat_shared *shared, const uint8_t key[LEAT_SHARED_KEY])
{
    uint32_t next = atomic_load(&shared->token_generation) + 1;

    store_words(shared->tokens[next % LEAT_SHARED_SLOTS], key, LEAT_SHARED_KEY);
    atomic_store(&shared->token_generation, next);
}

void leat_shared_rotate_tickets(leat_shared *shared, const uint8_t key[LEAT_TLS_TICKET_KEY])
{
    static const uint8_t none[16];
    uint32_t next = atomic_load(&shared->ticket_generation) + 1;
    leat_ticket_slot *slot = &shared->tickets[next % LEAT_SHARED_SLOTS];

    for (int i = 0; i < KEY_NAMES; i++) {
        store_words(slot->names[i].word, none, sizeof none);
    }
    store_words(slot->key, key, LEAT_TLS_TICKET_KEY);
    atomic_store(&shared->ticket_generation, next);
}

uint8_t leat_shared_token_key(const leat_shared *shared, uint8_t key[LEAT_SHARED_KEY])
{
    uint32_t generation = atomic_load(&shared->token_generation);

    load_words(shared->tokens[generation % LEAT_SHARED_SLOTS], key, LEAT_SHARED_KEY);
    return (uint8_t)generation;
}

bool leat_shared_token_key_of(const leat_shared *shared, uint8_t number,
                              uint8_t key[LEAT_SHARED_KEY])
{
    uint32_t generation = atomic_load(&shared->token_generation);
    uint8_t age = (uint8_t)((uint8_t)generation - number);

    if (age >= LEAT_SHARED_SLOTS || age >= generation) { /* the first was number 1 */
        return false;
    }
    load_words(shared->tokens[number % LEAT_SHARED_SLOTS], key, LEAT_SHARED_KEY);
    return true;
}

const uint8_t *leat_shared_reset_key(const leat_shared *shared)
{
    return shared->reset_key;
}

/* ---- tickets ---- */

static bool is_name(const leat_key_name *name, const uint8_t bytes[16])
{
    static const uint8_t none[16];
    uint8_t own[16];

    load_words(name->word, own, sizeof own);
    return memcmp(own, bytes, sizeof own) == 0 && memcmp(own, none, sizeof own) != 0;
}

static bool has_name(const leat_ticket_slot *slot, const uint8_t bytes[16])
{
    for (int i = 0; i < KEY_NAMES; i++) {
        if (is_name(&slot->names[i], bytes)) {
            return true;
        }
    }
    return false;
}

void leat_shared_ticket_key(const leat_shared *shared, leat_span ticket,
                            uint8_t key[LEAT_TLS_TICKET_KEY], uint8_t *slot)
{
    *slot = (uint8_t)(atomic_load(&shared->ticket_generation) % LEAT_SHARED_SLOTS);
    for (uint8_t i = 0; ticket.len >= 16 && i < LEAT_SHARED_SLOTS; i++) {
        if (has_name(&shared->tickets[i], ticket.data)) {
            *slot = i;
            break;
        }
    }
    load_words(shared->tickets[*slot].key, key, LEAT_TLS_TICKET_KEY);
}

/* Two threads that see a new name at once may both write it: the older is then forgotten early, and
 * a ticket of that name is taken for one of the current key. */
static void learn_name(leat_ticket_slot *slot, const uint8_t bytes[16])
{
    uint8_t former[16];

    if (has_name(slot, bytes)) {
        return;
    }
    for (int i = KEY_NAMES - 1; i > 0; i--) {
        load_words(slot->names[i - 1].word, former, sizeof former);
        store_words(slot->names[i].word, former, sizeof former);
    }
    store_words(slot->names[0].word, bytes, 16);
}

static uint64_t fingerprint(const leat_shared *shared, leat_span ticket, uint64_t context)
{
    leat_hash_key key = {{shared->hash.k[0] ^ context, shared->hash.k[1]}};
    uint64_t print = leat_hash_bytes(&key, ticket.data, ticket.len);

    return print ? print : 1;
}

static leat_early_bucket *bucket_of(const leat_shared *shared, uint64_t print)
{
    return &shared->buckets[(print >> 20) & shared->bucket_mask];
}

void leat_shared_issued(leat_shared *shared, uint8_t slot, leat_span ticket, uint64_t context,
                        bool early)
{
    if (ticket.len >= 16) {
        learn_name(&shared->tickets[slot], ticket.data);
    }
    atomic_fetch_add_explicit(&shared->issued, 1, memory_order_relaxed);
    if (early && shared->buckets) {
        uint64_t print = fingerprint(shared, ticket, context);
        leat_early_bucket *bucket = bucket_of(shared, print);
        uint64_t turn = atomic_fetch_add_explicit(&bucket->next, 1, memory_order_relaxed);

        atomic_store_explicit(&bucket->print[turn % BUCKET_WAYS], print, memory_order_relaxed);
    }
}

bool leat_shared_claim(leat_shared *shared, leat_span ticket, uint64_t context)
{
    if (shared->buckets && ticket.len > 0) {
        uint64_t print = fingerprint(shared, ticket, context);
        leat_early_bucket *bucket = bucket_of(shared, print);

        for (size_t i = 0; i < BUCKET_WAYS; i++) {
            uint64_t expected = print;

            if (atomic_compare_exchange_strong(&bucket->print[i], &expected, 0)) {
                atomic_fetch_add_explicit(&shared->accepted, 1, memory_order_relaxed);
                return true;
            }
        }
    }
    atomic_fetch_add_explicit(&shared->refused, 1, memory_order_relaxed);
    return false;
}

uint64_t leat_shared_hash(const leat_shared *shared, const void *data, size_t len)
{
    return leat_hash_bytes(&shared->hash, data, len);
}

struct gnutls_anti_replay_st *leat_shared_anti_replay(const leat_shared *shared)
{
    return shared->anti_replay;
}

void leat_shared_stats(const leat_shared *shared, leat_shared_stats_data *out)
{
    out->tickets_issued = atomic_load_explicit(&shared->issued, memory_order_relaxed);
    out->early_accepted = atomic_load_explicit(&shared->accepted, memory_order_relaxed);
    out->early_refused = atomic_load_explicit(&shared->refused, memory_order_relaxed);
}

/* ---- beginning and end ---- */

void leat_shared_settings_init(leat_shared_settings *settings)
{
    *settings = (leat_shared_settings){.early_tickets = LEAT_EARLY_TICKETS_DEFAULT};
}

static bool has_seed(const leat_shared_settings *settings)
{
    uint8_t any = 0;

    for (size_t i = 0; i < sizeof settings->seed; i++) {
        any |= settings->seed[i];
    }
    return any != 0;
}

static bool key_valid(leat_span key, size_t len)
{
    return key.len == 0 || key.len == len;
}

static bool settings_valid(const leat_shared_settings *s)
{
    return key_valid(s->ticket_key, LEAT_TLS_TICKET_KEY) &&
           key_valid(s->token_key, LEAT_SHARED_KEY) && key_valid(s->reset_key, LEAT_SHARED_KEY) &&
           (s->ticket_key.len > 0 || has_seed(s)) && s->early_tickets <= LEAT_EARLY_TICKETS_MAX;
}

/* Each key from what is given, or under a label of its own from the root. */
static void choose_key(leat_span given, const uint8_t root[32], const char *label, uint8_t *out,
                       size_t len)
{
    if (given.len > 0) {
        memcpy(out, given.data, len);
    } else {
        leat_hkdf_expand_label(LEAT_HASH_SHA256, root, label, out, len);
    }
}

static void make_keys(leat_shared *shared, const leat_shared_settings *s)
{
    static const uint8_t salt[] = "leat shared keys";
    leat_span from = s->ticket_key.len > 0 ? s->ticket_key : (leat_span){s->seed, sizeof s->seed};
    uint8_t root[32], key[LEAT_TLS_TICKET_KEY];
    leat_random random;

    leat_hkdf_extract(LEAT_HASH_SHA256, salt, sizeof salt, from.data, from.len, root);
    choose_key(s->ticket_key, root, "tickets", key, LEAT_TLS_TICKET_KEY);
    leat_shared_rotate_tickets(shared, key);
    choose_key(s->token_key, root, "tokens", key, LEAT_SHARED_KEY);
    leat_shared_rotate_tokens(shared, key);
    choose_key(s->reset_key, root, "resets", shared->reset_key, LEAT_SHARED_KEY);
    leat_hkdf_extract(LEAT_HASH_SHA256, s->seed, sizeof s->seed, root, sizeof root, key);
    leat_random_init(&random, key);
    shared->hash.k[0] = leat_random_u64(&random);
    shared->hash.k[1] = leat_random_u64(&random);
    leat_random_wipe(&random);
    leat_wipe(root, sizeof root);
    leat_wipe(key, sizeof key);
}

static leat_err make_buckets(leat_shared *shared, size_t tickets)
{
    size_t buckets = 1;

    if (tickets == 0) {
        return LEAT_OK;
    }
    while (buckets * BUCKET_WAYS < tickets) {
        buckets *= 2;
    }
    shared->buckets = calloc(buckets, sizeof *shared->buckets);
    shared->bucket_mask = buckets - 1;
    return shared->buckets ? LEAT_OK : LEAT_ERR_NOMEM;
}

leat_err leat_shared_new(const leat_shared_settings *settings, leat_shared **out)
{
    leat_shared *shared;

    *out = NULL;
    if (!settings_valid(settings)) {
        return LEAT_ERR_INVALID;
    }
    shared = calloc(1, sizeof *shared);
    if (!shared) {
        return LEAT_ERR_NOMEM;
    }
    make_keys(shared, settings);
    if (make_buckets(shared, settings->early_tickets) != LEAT_OK ||
        gnutls_anti_replay_init(&shared->anti_replay) != 0) {
        leat_shared_free(shared);
        return LEAT_ERR_NOMEM;
    }
    leat_tls_early_prepare(shared->anti_replay);
    *out = shared;
    return LEAT_OK;
}

void leat_shared_free(leat_shared *shared)
{
    if (!shared) {
        return;
    }
    if (shared->anti_replay) {
        gnutls_anti_replay_deinit(shared->anti_replay);
    }
    free(shared->buckets);
    leat_wipe(shared, sizeof *shared);
    free(shared);
}
