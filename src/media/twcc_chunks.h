/* media/twcc_chunks.h: packet status chunks: the fewest that a row of symbols needs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEDIA_TWCC_CHUNKS_H
#define LEAT_MEDIA_TWCC_CHUNKS_H

#include <leat/base.h>

/* Symbols (draft §3.1.1): what the two bits say, and how many bytes of delta go with them. */
enum {
    LEAT_TWCC_MISSING = 0,
    LEAT_TWCC_SMALL = 1,
    LEAT_TWCC_LARGE = 2,
};

enum {
    LEAT_TWCC_ROW = 4096, /* symbols in a row at most: bounds the work space, and less than the
                             8,191 of a run-length chunk */
    LEAT_TWCC_RUN_MAX = 8191,
    LEAT_TWCC_ONE_BIT = 14, /* symbols of a vector chunk of one bit each */
    LEAT_TWCC_TWO_BIT = 7,
};

/* A row of symbols, and for each position, once planned, the kind and the end of the chunk that
 * begins there. Only those at which a chunk does begin are sure to be filled in. */
typedef struct leat_twcc_row {
    uint32_t n;
    uint8_t symbol[LEAT_TWCC_ROW + LEAT_TWCC_ONE_BIT];
    uint16_t next[LEAT_TWCC_ROW];
} leat_twcc_row;

static inline uint16_t leat_twcc_run_chunk(uint8_t symbol, uint32_t len)
{
    return (uint16_t)((unsigned)symbol << 13 | len);
}

/* Plans the fewest chunks for the n > 0 symbols of the row; returns how many. */
uint32_t leat_twcc_plan(leat_twcc_row *row);

/* The same, quicker, for a row in which no symbol is LEAT_TWCC_LARGE. */
uint32_t leat_twcc_plan_small(leat_twcc_row *row);

/* Writes the chunks planned, two bytes each; returns where they end. */
uint8_t *leat_twcc_write_chunks(leat_twcc_row *row, uint8_t *out);

#endif
