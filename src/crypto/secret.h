/* crypto/secret.h: handling of bytes that must not leak.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CRYPTO_SECRET_H
#define LEAT_CRYPTO_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/wipe.h"

/* True when the n bytes are equal. The time depends on n alone. */
static inline bool leat_secret_equal(const void *a, const void *b, size_t n)
{
    const uint8_t *x = (const uint8_t *)a;
    const uint8_t *y = (const uint8_t *)b;
    uint64_t diff = 0;
    for (; n >= 8; n -= 8, x += 8, y += 8) {
        uint64_t p, q;
        memcpy(&p, x, 8);
        memcpy(&q, y, 8);
        diff |= p ^ q;
        __asm__ __volatile__("" : "+r"(diff)); /* no early end, which tells how many were right */
    }
    for (; n > 0; n--) {
        diff |= (uint64_t)(*x++ ^ *y++);
        __asm__ __volatile__("" : "+r"(diff));
    }
    return diff == 0;
}

#endif
