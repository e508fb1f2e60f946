/* media/twcc_iter.h: the iterator's step for the inside, chunks and all, so that a loop on a local
 * copy keeps it in registers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEDIA_TWCC_ITER_H
#define LEAT_MEDIA_TWCC_ITER_H

#include <leat/twcc.h>

#include "base/cursor.h"
#include "media/twcc_chunks.h"

/* The 14 low bits, each in a pair of bits of its own, from bit 31 down: Morton spreading. */
static inline uint32_t leat_twcc_spread(uint32_t bits)
{
    uint32_t v = bits << 2; /* 16 bits, of which the top is the first symbol's */

    v = (v | v << 8) & 0x00ff00ffu;
    v = (v | v << 4) & 0x0f0f0f0fu;
    v = (v | v << 2) & 0x33333333u;
    v = (v | v << 1) & 0x55555555u;
    return v;
}

/* What a chunk says of at most `left` statuses. */
typedef struct leat_twcc_chunk {
    uint32_t symbols;
    uint32_t n;
    uint8_t shift;
} leat_twcc_chunk;

static inline leat_twcc_chunk leat_twcc_read_chunk(const uint8_t *at, uint32_t left)
{
    uint32_t word = leat_load_u16(at);
    leat_twcc_chunk c;

    if ((word & 0x8000) == 0) {
        c.symbols = word << 17; /* the symbol's two bits on top; the rest is never looked at */
        c.n = word & 0x1fff;
        c.shift = 0;
    } else if ((word & 0x4000) == 0) {
        c.symbols = leat_twcc_spread(word & 0x3fff);
        c.n = LEAT_TWCC_ONE_BIT;
        c.shift = 2;
    } else {
        c.symbols = word << 18;
        c.n = LEAT_TWCC_TWO_BIT;
        c.shift = 2;
    }
    c.n = c.n < left ? c.n : left;
    return c;
}

static inline void leat_twcc_take_chunk(leat_twcc_iter *it)
{
    leat_twcc_chunk c = leat_twcc_read_chunk(it->chunk, it->left);

    it->chunk += 2;
    it->symbols = c.symbols;
    it->shift = c.shift;
    it->chunk_left = (uint16_t)c.n;
}

/* leat_twcc_next() */
static inline bool leat_twcc_step(leat_twcc_iter *it, leat_twcc_status *out)
{
    if (it->chunk_left == 0 && it->left > 0) {
        leat_twcc_take_chunk(it);
    }
    return leat_twcc_next(it, out);
}

#endif
