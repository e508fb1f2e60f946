/* mem/hmap.c: a chained hash map of intrusive nodes that grows a little at a time.
 *
 * While a map grows it has two arrays. Bucket b of the old one holds its nodes until it is moved;
 * the buckets below `moved` are empty and their nodes are in the new array. So each hash has
 * exactly one bucket at any time (bucket_of), and finding, inserting and removing look nowhere
 * else. Each insert moves MOVE_STEP buckets: the old array is empty long before the new one is
 * full. Only inserts move, so that a walk may remove as it goes.
 *
 * Invariants: a node is in bucket_of(its hash); old is NULL or moved <= old_mask; count is the
 * number of nodes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem/hmap.h"

#include <string.h>

#include "base/assert.h"

#define ONE_MAX     4u /* nodes that the one bucket within the map takes before there is an array */
#define FIRST_ARRAY 8u /* buckets of the first array: one cache line */
#define MOVE_STEP   4u

void leat_hmap_init(leat_hmap *map, leat_mem *mem, leat_hash_key key)
{
    memset(map, 0, sizeof *map);
    map->mem = mem;
    map->key = key;
}

static void give_array(const leat_hmap *map, leat_hnode **array, size_t mask)
{
    leat_mem_give(map->mem, array, (mask + 1) * sizeof(leat_hnode *));
}

void leat_hmap_free(leat_hmap *map)
{
    give_array(map, map->buckets, map->mask);
    give_array(map, map->old, map->old_mask);
    leat_hmap_init(map, map->mem, map->key);
}

size_t leat_hmap_held(const leat_hmap *map)
{
    return (map->buckets ? (map->mask + 1) * sizeof(leat_hnode *) : 0) +
           (map->old ? (map->old_mask + 1) * sizeof(leat_hnode *) : 0);
}

static bool in_old(const leat_hmap *map, uint64_t hash)
{
    return LEAT_UNLIKELY(map->old != NULL) && (hash & map->old_mask) >= map->moved;
}

static leat_hnode **bucket_of(leat_hmap *map, uint64_t hash)
{
    if (in_old(map, hash)) {
        return &map->old[hash & map->old_mask];
    }
    return map->buckets ? &map->buckets[hash & map->mask] : &map->one;
}

static leat_hnode *first_of(const leat_hmap *map, uint64_t hash)
{
    if (in_old(map, hash)) {
        return map->old[hash & map->old_mask];
    }
    return map->buckets ? map->buckets[hash & map->mask] : map->one;
}

static void put(leat_hnode **bucket, leat_hnode *node)
{
    node->next = *bucket;
    *bucket = node;
}

/* Puts a chain of the old array's into the buckets of the new one. */
static void move_chain(leat_hmap *map, leat_hnode *node)
{
    while (node) {
        leat_hnode *next = node->next;

        put(&map->buckets[node->hash & map->mask], node);
        node = next;
    }
}

static void move_some(leat_hmap *map)
{
    for (unsigned i = 0; i < MOVE_STEP; i++) {
        leat_hnode *chain = map->old[map->moved];

        map->old[map->moved] = NULL;
        map->moved++;
        move_chain(map, chain);
        if (map->moved > map->old_mask) {
            give_array(map, map->old, map->old_mask);
            map->old = NULL;
            return;
        }
    }
}

/* Begins to grow. Without memory everything stays as it is. */
static void grow(leat_hmap *map)
{
    size_t n = map->buckets ? (map->mask + 1) * 2 : FIRST_ARRAY;
    leat_hnode **array = (leat_hnode **)leat_mem_take_zeroed(map->mem, n * sizeof(leat_hnode *));

    if (!array) {
        return;
    }
    if (map->buckets) {
        map->old = map->buckets;
        map->old_mask = map->mask;
        map->moved = 0;
    }
    map->buckets = array;
    map->mask = n - 1;
    move_chain(map, map->one);
    map->one = NULL;
}

static void insert(leat_hmap *map, leat_hnode *node, uint64_t hash)
{
    if (map->old) {
        move_some(map);
    } else if (map->count >= (map->buckets ? map->mask + 1 : ONE_MAX)) {
        grow(map);
    }
    node->hash = hash;
    put(bucket_of(map, hash), node);
    map->count++;
}

leat_hnode_u64 *leat_hmap_find_u64(const leat_hmap *map, uint64_t key)
{
    uint64_t hash = leat_hash_u64(&map->key, key);

    for (leat_hnode *n = first_of(map, hash); n; n = n->next) {
        leat_hnode_u64 *node = LEAT_CONTAINER_OF(n, leat_hnode_u64, node);

        if (node->key == key) {
            return node;
        }
    }
    return NULL;
}

leat_hnode_bytes *leat_hmap_find_bytes(const leat_hmap *map, const uint8_t *key, size_t len)
{
    uint64_t hash = leat_hash_bytes(&map->key, key, len);

    for (leat_hnode *n = first_of(map, hash); n; n = n->next) {
        leat_hnode_bytes *node = LEAT_CONTAINER_OF(n, leat_hnode_bytes, node);

        if (n->hash == hash && node->len == len && (len == 0 || !memcmp(node->key, key, len))) {
            return node;
        }
    }
    return NULL;
}

void leat_hmap_insert_u64(leat_hmap *map, leat_hnode_u64 *node, uint64_t key)
{
    LEAT_DCHECK(!leat_hmap_find_u64(map, key));
    node->key = key;
    insert(map, &node->node, leat_hash_u64(&map->key, key));
}

void leat_hmap_insert_bytes(leat_hmap *map, leat_hnode_bytes *node, const uint8_t *key, size_t len)
{
    LEAT_ASSERT(len <= LEAT_HMAP_BYTES_MAX);
    LEAT_DCHECK(!leat_hmap_find_bytes(map, key, len));
    node->len = (uint8_t)len;
    if (len) {
        memcpy(node->key, key, len);
    }
    insert(map, &node->node, leat_hash_bytes(&map->key, key, len));
}

void leat_hmap_remove(leat_hmap *map, leat_hnode *node)
{
    leat_hnode **at = bucket_of(map, node->hash);

    while (*at != node) {
        LEAT_ASSERT(*at != NULL);
        at = &(*at)->next;
    }
    *at = node->next;
    node->next = NULL;
    map->count--;
}

static leat_hnode *first_from(leat_hnode **array, size_t mask, size_t bucket)
{
    for (; bucket <= mask; bucket++) {
        if (array[bucket]) {
            return array[bucket];
        }
    }
    return NULL;
}

/* First the new array, then what is left of the old one. */
leat_hnode *leat_hmap_next(leat_hmap *map, const leat_hnode *node)
{
    leat_hnode *next = NULL;
    bool old = node && in_old(map, node->hash);

    if (node && node->next) {
        return node->next;
    }
    if (!map->buckets) {
        return node ? NULL : map->one;
    }
    if (!old) {
        next = first_from(map->buckets, map->mask, node ? (node->hash & map->mask) + 1 : 0);
    }
    if (!next && map->old) {
        next = first_from(map->old, map->old_mask,
                          old ? (node->hash & map->old_mask) + 1 : map->moved);
    }
    return next;
}

static size_t check_chain(const leat_hmap *map, const leat_hnode *node, const leat_hnode *first)
{
    size_t n = 0;

    for (; node; node = node->next) {
        LEAT_ASSERT(first_of(map, node->hash) == first);
        n++;
    }
    return n;
}

void leat_hmap_check(const leat_hmap *map)
{
    size_t n = check_chain(map, map->one, map->one);

    LEAT_ASSERT(!map->one || !map->buckets);
    LEAT_ASSERT(!map->old || map->moved <= map->old_mask);
    for (size_t i = 0; map->buckets && i <= map->mask; i++) {
        n += check_chain(map, map->buckets[i], map->buckets[i]);
    }
    for (size_t i = 0; map->old && i <= map->old_mask; i++) {
        LEAT_ASSERT(i >= map->moved || !map->old[i]);
        n += check_chain(map, map->old[i], map->old[i]);
    }
    LEAT_ASSERT(n == map->count);
}
