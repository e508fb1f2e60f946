/* base/hash.c: SipHash-1-3 (Aumasson and Bernstein; one round a word, three to finish).
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/hash.h"

#include "base/bits.h"

static inline void round_once(uint64_t v[4])
{
    v[0] += v[1];
    v[1] = leat_rotl64(v[1], 13) ^ v[0];
    v[0] = leat_rotl64(v[0], 32);
    v[2] += v[3];
    v[3] = leat_rotl64(v[3], 16) ^ v[2];
    v[0] += v[3];
    v[3] = leat_rotl64(v[3], 21) ^ v[0];
    v[2] += v[1];
    v[1] = leat_rotl64(v[1], 17) ^ v[2];
    v[2] = leat_rotl64(v[2], 32);
}

static uint64_t load_little(const uint8_t *p, size_t n)
{
    uint64_t v = 0;

    for (size_t i = 0; i < n; i++) {
        v |= (uint64_t)p[i] << (8 * i);
    }
    return v;
}

uint64_t leat_hash_bytes(const leat_hash_key *key, const void *data, size_t n)
{
    const uint8_t *p = (const uint8_t *)data;
    uint64_t length = (uint64_t)n << 56;
    uint64_t v[4] = {
        key->k[0] ^ 0x736f6d6570736575u,
        key->k[1] ^ 0x646f72616e646f6du,
        key->k[0] ^ 0x6c7967656e657261u,
        key->k[1] ^ 0x7465646279746573u,
    };
    uint64_t m;

    for (; n >= 8; n -= 8, p += 8) {
        m = load_little(p, 8);
        v[3] ^= m;
        round_once(v);
        v[0] ^= m;
    }
    m = length | load_little(p, n);
    v[3] ^= m;
    round_once(v);
    v[0] ^= m;
    v[2] ^= 0xff;
    round_once(v);
    round_once(v);
    round_once(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
