/* ChaCha20 with fast key erasure; random.h says what that gives. 512 bytes of key stream a refill:
 * 32 are the next key, 480 are given out, from the buffer's beginning on.
 *
 * SPDX-License-Identifier: MIT
 */
#include "crypto/random.h"

#include <nettle/chacha.h>
#include <string.h>

#include "base/assert.h"
#include "crypto/secret.h"

static void refill(leat_random *random)
{
    static const uint8_t nonce[CHACHA_NONCE96_SIZE] = {0};
    uint8_t stream[LEAT_RANDOM_SEED + LEAT_RANDOM_BUFFER] = {0};
    struct chacha_ctx chacha;
    chacha_set_key(&chacha, random->key);
    chacha_set_nonce96(&chacha, nonce);
    chacha_crypt32(&chacha, sizeof stream, stream, stream);
    memcpy(random->key, stream, LEAT_RANDOM_SEED);
    memcpy(random->buffer, stream + LEAT_RANDOM_SEED, LEAT_RANDOM_BUFFER);
    random->left = LEAT_RANDOM_BUFFER;
    leat_wipe(stream, sizeof stream);
    leat_wipe(&chacha, sizeof chacha);
}

void leat_random_init(leat_random *random, const uint8_t seed[LEAT_RANDOM_SEED])
{
    memcpy(random->key, seed, LEAT_RANDOM_SEED);
    memset(random->buffer, 0, sizeof random->buffer);
    random->left = 0;
}

void leat_random_wipe(leat_random *random)
{
    leat_wipe(random, sizeof *random);
}

void leat_random_fill(leat_random *random, void *out, size_t n)
{
    uint8_t *to = out;
    while (n > 0) {
        if (random->left == 0) {
            refill(random);
        }
        size_t part = n < random->left ? n : random->left;
        uint8_t *from = random->buffer + LEAT_RANDOM_BUFFER - random->left;
        memcpy(to, from, part);
        leat_wipe(from, part);
        random->left -= (uint32_t)part;
        to += part;
        n -= part;
    }
}

uint64_t leat_random_u64(leat_random *random)
{
    uint8_t bytes[8];
    uint64_t value = 0;
    leat_random_fill(random, bytes, sizeof bytes);
    for (unsigned i = 0; i < sizeof bytes; i++) {
        value = (value << 8) | bytes[i];
    }
    return value;
}

uint64_t leat_random_below(leat_random *random, uint64_t bound)
{
    LEAT_ASSERT(bound > 0);
    /* Values below 2^64 mod bound are thrown away: the rest is a whole number of bounds. */
    uint64_t skip = (0 - bound) % bound;
    uint64_t value;
    do {
        value = leat_random_u64(random);
    } while (value < skip);
    return value % bound;
}
