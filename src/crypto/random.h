/* crypto/random.h: the random bytes that a context puts on the wire.
 *
 * ChaCha20 with fast key erasure: each refill makes one buffer of key stream, whose first 32 bytes
 * are the next key; bytes given out are wiped. Who reads the state learns nothing about former
 * output. Seeded by the owner (leat_ctx_settings.seed); the same seed gives the same bytes, so a
 * simulation replays. One a context; not thread-safe. Nothing allocates.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CRYPTO_RANDOM_H
#define LEAT_CRYPTO_RANDOM_H

#include <stddef.h>
#include <stdint.h>

enum { LEAT_RANDOM_SEED = 32, LEAT_RANDOM_BUFFER = 480 };

typedef struct leat_random {
    uint8_t key[LEAT_RANDOM_SEED];
    uint8_t buffer[LEAT_RANDOM_BUFFER];
    uint32_t left; /* bytes at the buffer's end not yet given out */
} leat_random;

void leat_random_init(leat_random *random, const uint8_t seed[LEAT_RANDOM_SEED]);
void leat_random_wipe(leat_random *random);
void leat_random_fill(leat_random *random, void *out, size_t n);
uint64_t leat_random_u64(leat_random *random);

/* Uniform in [0, bound), bound > 0 (asserted). */
uint64_t leat_random_below(leat_random *random, uint64_t bound);

#endif
