/* base/hash.h: keyed hashes for tables whose keys a peer chooses.
 *
 * The owner draws the key from the context's random source; a peer that does not know it cannot
 * choose keys that collide. Not a message authentication code, and never sent.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_BASE_HASH_H
#define LEAT_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

typedef struct leat_hash_key {
    uint64_t k[2];
} leat_hash_key;

/* SipHash-1-3 of n bytes. */
uint64_t leat_hash_bytes(const leat_hash_key *key, const void *data, size_t n);

/* For numbers: two folded 64x64->128 multiplications under the key. Faster than leat_hash_bytes and
 * weaker: for tables that hold few (stream IDs, capped by the limit on streams). */
static inline uint64_t leat_hash_fold(uint64_t a, uint64_t b)
{
#if defined(__SIZEOF_INT128__)
    unsigned __int128 p = (unsigned __int128)a * b;

    return (uint64_t)p ^ (uint64_t)(p >> 64);
#else
    uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    uint64_t low = a0 * b0;
    uint64_t mid = a1 * b0 + (low >> 32);
    uint64_t mid2 = a0 * b1 + (uint32_t)mid;

    return (mid2 << 32 | (uint32_t)low) ^ (a1 * b1 + (mid >> 32) + (mid2 >> 32));
#endif
}

static inline uint64_t leat_hash_u64(const leat_hash_key *key, uint64_t v)
{
    uint64_t h = leat_hash_fold(v ^ key->k[0], key->k[1] | 1);

    return leat_hash_fold(h ^ key->k[1], 0x9e3779b97f4a7c15u);
}

#endif
