/* base/bits.h: what C has no operator for.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_BASE_BITS_H
#define LEAT_BASE_BITS_H

#include <stdint.h>

/* v turned to the left by n bits; 0 < n < 64. */
static inline uint64_t leat_rotl64(uint64_t v, unsigned n)
{
    return v << n | v >> (64 - n);
}

#endif
