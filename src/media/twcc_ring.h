/* media/twcc_ring.h: how TWCC marks arrivals: the tick, and below it the bit that is always set.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEDIA_TWCC_RING_H
#define LEAT_MEDIA_TWCC_RING_H

#include <leat/twcc.h>

#include "media/arrivals.h"

#define LEAT_TWCC_MARK_WINDOW ((uint32_t)(LEAT_TWCC_WINDOW / LEAT_TWCC_TICK) << 1)

static inline uint64_t leat_twcc_mark(uint64_t tick)
{
    return tick << 1 | 1;
}

static inline uint64_t leat_twcc_mark_tick(uint64_t mark)
{
    return mark >> 1;
}

#endif
