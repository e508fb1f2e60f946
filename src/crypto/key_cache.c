/* The cache of expanded keys, and the three calls that work through it.
 *
 * Each algorithm has a shelf: an array of entries, of which the first `made` own a slot of the
 * backend, and a list of these from most to least recently used, kept in that order once the shelf
 * is full. A slot is re-keyed, never freed, so the cache asks for memory only until every shelf in
 * use is full.
 *
 * Keys find their entry without a look-up: they remember its index and the number of the keying
 * (slot_id) under which they were put there. Numbers are never used twice, so keys whose slot was
 * given to others, or wiped, or which were copied, see that it is not theirs any more and are
 * expanded again.
 *
 * Invariants: entries with id 0 (wiped) stand at the list's end; the list holds exactly the `made`
 * entries.
 *
 * SPDX-License-Identifier: MIT
 */
#include "crypto/key_cache.h"

#include <leat/limits.h>

#include "base/assert.h"
#include "base/list.h"
#include "crypto/secret.h"
#include "mem/mem.h"

enum { SLOT_ALIGN = 64 };

typedef struct key_entry {
    leat_link lru;
    uint64_t id; /* number of the keying; 0: wiped */
    void *slot;  /* aligned within block */
    void *block;
} key_entry;

typedef struct key_shelf {
    key_entry *entries; /* NULL until the algorithm is first used */
    size_t made;
    leat_list lru;
} key_shelf;

struct leat_key_cache {
    leat_mem *mem;
    const leat_crypto_backend *backend;
    void *engine;
    size_t entries; /* slots a shelf may have */
    uint64_t last_id;
    leat_key_cache_stats stats;
    key_shelf shelves[LEAT_AEAD_COUNT];
};

static size_t block_size(const leat_key_cache *cache)
{
    return cache->backend->slot_size + SLOT_ALIGN;
}

leat_err leat_key_cache_new(leat_mem *mem, const leat_crypto_backend *backend, size_t entries,
                            leat_key_cache **out)
{
    *out = NULL;
    if (entries == 0) {
        entries = LEAT_KEY_CACHE_DEFAULT;
    }
    if (entries < LEAT_KEY_CACHE_MIN || entries > LEAT_KEY_CACHE_MAX) {
        return LEAT_ERR_INVALID;
    }
    leat_key_cache *cache = leat_mem_take_zeroed(mem, sizeof *cache);
    if (!cache) {
        return LEAT_ERR_NOMEM;
    }
    cache->mem = mem;
    cache->backend = backend ? backend : leat_crypto_backend_pick(NULL);
    cache->entries = entries;
    for (size_t i = 0; i < LEAT_AEAD_COUNT; i++) {
        leat_list_init(&cache->shelves[i].lru);
    }
    if (cache->backend->engine_new) {
        leat_err err = cache->backend->engine_new(mem, &cache->engine);
        if (err != LEAT_OK) {
            leat_mem_give(mem, cache, sizeof *cache);
            return err;
        }
    }
    *out = cache;
    return LEAT_OK;
}

static void shelf_free(leat_key_cache *cache, key_shelf *shelf)
{
    for (size_t i = 0; i < shelf->made; i++) {
        cache->backend->slot_free(cache->engine, shelf->entries[i].slot);
        leat_mem_give(cache->mem, shelf->entries[i].block, block_size(cache));
    }
    leat_mem_give(cache->mem, shelf->entries, cache->entries * sizeof(key_entry));
}

void leat_key_cache_free(leat_key_cache *cache)
{
    if (!cache) {
        return;
    }
    for (size_t i = 0; i < LEAT_AEAD_COUNT; i++) {
        shelf_free(cache, &cache->shelves[i]);
    }
    if (cache->backend->engine_free) {
        cache->backend->engine_free(cache->mem, cache->engine);
    }
    leat_mem_give(cache->mem, cache, sizeof *cache);
}

/* One more slot, wiped, at the list's end. */
static leat_err shelf_grow(leat_key_cache *cache, leat_aead aead)
{
    key_shelf *shelf = &cache->shelves[aead];
    if (!shelf->entries) {
        shelf->entries = leat_mem_take_zeroed(cache->mem, cache->entries * sizeof(key_entry));
        if (!shelf->entries) {
            return LEAT_ERR_NOMEM;
        }
    }
    uint8_t *block = leat_mem_take_zeroed(cache->mem, block_size(cache));
    if (!block) {
        return LEAT_ERR_NOMEM;
    }
    key_entry *e = &shelf->entries[shelf->made];
    e->id = 0;
    e->block = block;
    e->slot = block + (SLOT_ALIGN - (uintptr_t)block % SLOT_ALIGN);
    leat_err err = cache->backend->slot_new(cache->engine, e->slot, aead);
    if (err != LEAT_OK) {
        leat_mem_give(cache->mem, block, block_size(cache));
        return err;
    }
    leat_list_push_back(&shelf->lru, &e->lru);
    shelf->made++;
    cache->stats.slots++;
    return LEAT_OK;
}

leat_err leat_key_cache_warm(leat_key_cache *cache, leat_aead aead, size_t entries)
{
    if (entries > cache->entries) {
        return LEAT_ERR_INVALID;
    }
    while (cache->shelves[aead].made < entries) {
        leat_err err = shelf_grow(cache, aead);
        if (err != LEAT_OK) {
            return err;
        }
    }
    return LEAT_OK;
}

static key_entry *least_used(const key_shelf *shelf)
{
    leat_link *last = leat_list_last(&shelf->lru);
    return last ? LEAT_CONTAINER_OF(last, key_entry, lru) : NULL;
}

/* Expands the keys into a slot: a wiped one, a new one, or the one that nobody used for longest. */
static LEAT_SELDOM leat_err expand(leat_key_cache *cache, leat_packet_keys *keys, key_entry **out)
{
    leat_aead aead = (leat_aead)keys->aead;
    key_shelf *shelf = &cache->shelves[aead];
    key_entry *e = least_used(shelf);
    if (!e || (e->id != 0 && shelf->made < cache->entries)) {
        leat_err err = shelf_grow(cache, aead);
        if (err != LEAT_OK && !e) {
            return err;
        }
        e = least_used(shelf);
    }
    if (e->id != 0) {
        cache->stats.evicted++;
    }
    e->id = 0;
    leat_err err = cache->backend->slot_key(cache->engine, e->slot, keys->key, keys->iv, keys->hp);
    if (err != LEAT_OK) {
        return err;
    }
    cache->stats.misses++;
    e->id = ++cache->last_id;
    keys->slot = (uint32_t)(e - shelf->entries);
    keys->slot_id = e->id;
    leat_link_remove(&e->lru);
    leat_list_push_front(&shelf->lru, &e->lru);
    *out = e;
    return LEAT_OK;
}

/* The entry that holds these keys now, or NULL. */
static inline key_entry *held(const leat_key_cache *cache, const leat_packet_keys *keys)
{
    const key_shelf *shelf = &cache->shelves[keys->aead];
    if (keys->slot_id == 0 || keys->slot >= shelf->made) {
        return NULL;
    }
    key_entry *e = &shelf->entries[keys->slot];
    return e->id == keys->slot_id ? e : NULL;
}

/* Not where they were put last, or no longer first in the order. */
static LEAT_SELDOM leat_err find_slowly(leat_key_cache *cache, leat_packet_keys *keys, void **slot)
{
    LEAT_ASSERT(leat_packet_keys_ready(keys));
    key_entry *e = held(cache, keys);
    if (!e) {
        leat_err err = expand(cache, keys, &e);
        if (err != LEAT_OK) {
            return err;
        }
    } else {
        cache->stats.hits++;
        leat_link_remove(&e->lru);
        leat_list_push_front(&cache->shelves[keys->aead].lru, &e->lru);
    }
    *slot = e->slot;
    return LEAT_OK;
}

static inline leat_err find(leat_key_cache *cache, leat_packet_keys *keys, void **slot)
{
    key_shelf *shelf = &cache->shelves[keys->aead];
    key_entry *e = held(cache, keys);
    /* While slots can still be made none is pushed out, and the order does not matter. */
    if (LEAT_LIKELY(e != NULL) &&
        (shelf->made < cache->entries || leat_list_first(&shelf->lru) == &e->lru)) {
        cache->stats.hits++;
        *slot = e->slot;
        return LEAT_OK;
    }
    return find_slowly(cache, keys, slot);
}

void leat_key_cache_forget(leat_key_cache *cache, const leat_packet_keys *keys)
{
    key_entry *e = held(cache, keys);
    if (!e) {
        return;
    }
    cache->backend->slot_wipe(cache->engine, e->slot);
    e->id = 0;
    leat_link_remove(&e->lru);
    leat_list_push_back(&cache->shelves[keys->aead].lru, &e->lru);
}

leat_err leat_seal(leat_key_cache *cache, leat_packet_keys *keys, leat_seal_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        LEAT_ASSERT(ops[i].pn_len >= 1);
        LEAT_ASSERT(ops[i].pn_len <= 4);
        LEAT_ASSERT(ops[i].header_len > ops[i].pn_len);
        LEAT_ASSERT(ops[i].pn_len + ops[i].payload_len >= 4);
    }
    void *slot;
    leat_err err = find(cache, keys, &slot);
    if (err != LEAT_OK) {
        return err;
    }
    keys->sealed += n;
    return cache->backend->seal(cache->engine, slot, ops, n);
}

leat_err leat_mask(leat_key_cache *cache, leat_packet_keys *keys, leat_mask_op *ops, size_t n)
{
    void *slot;
    leat_err err = find(cache, keys, &slot);
    if (err != LEAT_OK) {
        return err;
    }
    cache->backend->mask(cache->engine, slot, ops, n);
    return LEAT_OK;
}

leat_err leat_open(leat_key_cache *cache, leat_packet_keys *keys, leat_open_op *ops, size_t n)
{
    void *slot;
    leat_err err = find(cache, keys, &slot);
    if (err != LEAT_OK) {
        return err;
    }
    cache->backend->open(cache->engine, slot, ops, n);
    return LEAT_OK;
}

const leat_crypto_backend *leat_key_cache_backend(const leat_key_cache *cache)
{
    return cache->backend;
}

bool leat_key_cache_without_heap(const leat_key_cache *cache, leat_aead aead)
{
    return cache->backend->keys_without_heap(cache->engine, aead);
}

void leat_key_cache_stats_get(const leat_key_cache *cache, leat_key_cache_stats *out)
{
    *out = cache->stats;
}

void leat_key_cache_check(const leat_key_cache *cache)
{
    size_t slots = 0;
    for (size_t i = 0; i < LEAT_AEAD_COUNT; i++) {
        const key_shelf *shelf = &cache->shelves[i];
        bool wiped = false;
        size_t listed = 0;
        for (leat_link *l = leat_list_first(&shelf->lru); l; l = leat_list_next(&shelf->lru, l)) {
            const key_entry *e = LEAT_CONTAINER_OF(l, key_entry, lru);
            LEAT_ASSERT(e->id <= cache->last_id);
            LEAT_ASSERT(!wiped || e->id == 0);
            LEAT_ASSERT((uintptr_t)e->slot % SLOT_ALIGN == 0);
            wiped = e->id == 0;
            listed++;
        }
        LEAT_ASSERT(listed == shelf->made);
        LEAT_ASSERT(shelf->made <= cache->entries);
        slots += shelf->made;
    }
    LEAT_ASSERT(slots == cache->stats.slots);
}
