/* media/ccfb_ring.h: how RFC 8888 recorders mark arrivals: the time in 1/65536 s, which is what the
 * report's timestamp counts in; below it the two bits of ECN, and the bit that is always set.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEDIA_CCFB_RING_H
#define LEAT_MEDIA_CCFB_RING_H

#include <leat/ccfb.h>

#include "media/arrivals.h"

enum {
    LEAT_CCFB_MARK_SHIFT = 3,
    LEAT_CCFB_ECN_CE = 3,
};

/* How late a packet may be, and be reported: as for TWCC, 500 ms. */
#define LEAT_CCFB_MARK_WINDOW ((uint32_t)(65536 / 2) << LEAT_CCFB_MARK_SHIFT)

/* A time in 1/65536 s, rounded down. */
static inline uint64_t leat_ccfb_units(leat_time time)
{
    return ((time / LEAT_SECOND) << 16) + ((time % LEAT_SECOND) << 16) / LEAT_SECOND;
}

static inline uint64_t leat_ccfb_mark(uint64_t units, uint8_t ecn)
{
    return units << LEAT_CCFB_MARK_SHIFT | (unsigned)(ecn & 3) << 1 | 1;
}

static inline uint8_t leat_ccfb_mark_ecn(uint32_t slot)
{
    return slot >> 1 & 3;
}

#endif
