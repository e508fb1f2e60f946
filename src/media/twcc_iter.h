/* media/twcc_iter.h: the iterator's steps for the inside: chunk by chunk, for loops that keep the
 * rest in registers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEDIA_TWCC_ITER_H
#define LEAT_MEDIA_TWCC_ITER_H

#include <leat/twcc.h>

#include "base/assert.h"
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

/* The next chunk becomes the present one. */
static inline void leat_twcc_take_chunk(leat_twcc_iter *it)
{
    leat_twcc_chunk c = leat_twcc_read_chunk(it->chunk, it->left);

    it->chunk += 2;
    it->symbols = c.symbols;
    it->shift = c.shift;
    it->chunk_left = (uint16_t)c.n;
}

/* So many statuses of the present chunk were taken, with what that needs of symbols and deltas. */
static inline void leat_twcc_pass(leat_twcc_iter *it, size_t n)
{
    it->seq = (uint16_t)(it->seq + n);
    it->chunk_left = (uint16_t)(it->chunk_left - n);
    it->left = (uint16_t)(it->left - n);
}

/* When the packet of that symbol came, LEAT_TIME_NEVER. *time is the arrival before it, and *delta
 * the place of its delta, if it has one: both go on. */
static inline leat_time leat_twcc_arrival(uint32_t symbol, const uint8_t **delta, leat_time *time)
{
    if (LEAT_LIKELY(symbol == LEAT_TWCC_SMALL)) {
        *time += **delta * LEAT_TWCC_TICK;
        *delta += 1;
    } else if (symbol == LEAT_TWCC_MISSING) {
        return LEAT_TIME_NEVER;
    } else {
        *time += leat_twcc_large(*delta);
        *delta += 2;
    }
    return *time;
}

#endif
