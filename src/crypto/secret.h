/* crypto/secret.h: handling of bytes that must not leak.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CRYPTO_SECRET_H
#define LEAT_CRYPTO_SECRET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Overwrites n bytes with zeros, also where the compiler sees that nobody reads them afterwards. */
static inline void leat_wipe(void *data, size_t n)
{
    memset(data, 0, n);
    __asm__ __volatile__("" : : "r"(data) : "memory");
}

/* True when the n bytes are equal. The time depends on n alone. */
static inline bool leat_secret_equal(const void *a, const void *b, size_t n)
{
    const volatile uint8_t *x = (const volatile uint8_t *)a;
    const volatile uint8_t *y = (const volatile uint8_t *)b;
    uint8_t diff = 0;
    for (size_t i = 0; i < n; i++) {
        diff |= (uint8_t)(x[i] ^ y[i]);
    }
    return diff == 0;
}

#endif
