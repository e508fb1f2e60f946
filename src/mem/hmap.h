/* mem/hmap.h: a hash map of intrusive nodes, keyed by numbers or by short byte strings.
 *
 * Embed a leat_hnode_u64 or leat_hnode_bytes in what is found. Hashes are keyed (base/hash.h).
 * Nodes are chained from an array of buckets, a power of two: one bucket within the structure at
 * first, then an array from the owner's leat_mem that doubles when there are as many nodes as
 * buckets. Because the nodes are the caller's, inserting cannot fail: when the array cannot grow
 * the chains get longer, and the next insert tries again. A growing map moves its nodes a few
 * buckets at a time with each insert, so that no single one pays for all (but for zeroing the new
 * array).
 *
 * A map holds keys of one kind. The structure may be moved as bytes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEM_HMAP_H
#define LEAT_MEM_HMAP_H

#include "base/hash.h"
#include "mem/mem.h"

#define LEAT_HMAP_BYTES_MAX 20u /* the longest key: a connection ID */

typedef struct leat_hnode leat_hnode;
struct leat_hnode {
    leat_hnode *next;
    uint64_t hash;
};

typedef struct leat_hnode_u64 {
    leat_hnode node;
    uint64_t key;
} leat_hnode_u64;

typedef struct leat_hnode_bytes {
    leat_hnode node;
    uint8_t len;
    uint8_t key[LEAT_HMAP_BYTES_MAX];
} leat_hnode_bytes;

typedef struct leat_hmap {
    leat_hnode **buckets; /* NULL: one */
    leat_hnode *one;
    leat_hnode **old; /* while growing: the array before, its buckets from `moved` on still full */
    leat_mem *mem;
    size_t mask; /* buckets - 1 */
    size_t old_mask;
    size_t moved;
    size_t count;
    leat_hash_key key;
} leat_hmap;

/* Takes no memory. */
void leat_hmap_init(leat_hmap *map, leat_mem *mem, leat_hash_key key);

/* Gives the array back. Nodes still in it are the caller's and are forgotten. The map is then
 * empty. */
void leat_hmap_free(leat_hmap *map);

static inline size_t leat_hmap_count(const leat_hmap *map)
{
    return map->count;
}

/* The node, or NULL. */
leat_hnode_u64 *leat_hmap_find_u64(const leat_hmap *map, uint64_t key);
leat_hnode_bytes *leat_hmap_find_bytes(const leat_hmap *map, const uint8_t *key, size_t len);

/* Sets the node's key and puts it in. The key must not be in the map yet (checked in debug builds).
 * The node stays in place until it is removed. len <= LEAT_HMAP_BYTES_MAX. */
void leat_hmap_insert_u64(leat_hmap *map, leat_hnode_u64 *node, uint64_t key);
void leat_hmap_insert_bytes(leat_hmap *map, leat_hnode_bytes *node, const uint8_t *key, size_t len);

/* Takes a node out that is in the map (asserted). */
void leat_hmap_remove(leat_hmap *map, leat_hnode *node);

/* Every node once, in no order that means anything: next of NULL is the first, NULL ends. The map
 * must not change meanwhile, except that the node just returned may be removed after its next was
 * fetched. */
leat_hnode *leat_hmap_next(leat_hmap *map, const leat_hnode *node);

/* Bytes of memory held beyond the structure itself. */
size_t leat_hmap_held(const leat_hmap *map);

/* Asserts that every node is in its bucket and the count is right. */
void leat_hmap_check(const leat_hmap *map);

#endif
