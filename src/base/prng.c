/* base/prng.c: xoshiro256** (Blackman and Vigna), its state filled by splitmix64 so that no seed
 * gives the all-zero state.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/prng.h"

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"

void leat_prng_seed(leat_prng *prng, uint64_t seed)
{
    for (size_t i = 0; i < LEAT_COUNT_OF(prng->s); i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15u;

        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        prng->s[i] = z ^ z >> 31;
    }
}

uint64_t leat_prng_u64(leat_prng *prng)
{
    uint64_t *s = prng->s;
    uint64_t result = leat_rotl64(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = leat_rotl64(s[3], 45);
    return result;
}

uint64_t leat_prng_below(leat_prng *prng, uint64_t n)
{
    /* Values below 2^64 mod n are drawn again: what is left is a whole multiple of n. */
    uint64_t reject;
    uint64_t v;

    LEAT_ASSERT(n > 0);
    reject = (0 - n) % n;
    do {
        v = leat_prng_u64(prng);
    } while (v < reject);
    return v % n;
}

uint64_t leat_prng_between(leat_prng *prng, uint64_t least, uint64_t most)
{
    uint64_t width = most - least;

    LEAT_ASSERT(least <= most);
    return least + (width == UINT64_MAX ? leat_prng_u64(prng) : leat_prng_below(prng, width + 1));
}

bool leat_prng_chance(leat_prng *prng, uint64_t parts, uint64_t whole)
{
    return leat_prng_below(prng, whole) < parts;
}

void leat_prng_fill(leat_prng *prng, void *out, size_t n)
{
    uint8_t *p = (uint8_t *)out;

    while (n > 0) {
        uint64_t v = leat_prng_u64(prng);
        uint8_t bytes[8];
        size_t part = n < sizeof bytes ? n : sizeof bytes;

        /* Byte by byte: the sequence is the same on every machine. */
        for (size_t i = 0; i < sizeof bytes; i++) {
            bytes[i] = (uint8_t)(v >> (8 * i));
        }
        memcpy(p, bytes, part);
        p += part;
        n -= part;
    }
}
