/* media/arrivals.h: the ring of arrivals that TWCC and RFC 8888 recorders share.
 *
 * A mark is a time in the owner's ticks, shifted up to make room for its flags, of which the lowest
 * bit is set: so no mark is 0. The ring keeps the low 32 bits; leat_arrivals_mark() gives back all
 * of it, for marks within 2^31 of the newest.
 *
 * What must hold: base - begin and end - base may each be more than the ring holds; then the ring
 * has moved on, and leat_arrivals_settle() makes both right. Slots of [end - size, end) are valid
 * at all times: 0 where nothing came. The number end - 1 came, unless nothing did.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEDIA_ARRIVALS_H
#define LEAT_MEDIA_ARRIVALS_H

#include <leat/feedback.h>

#include "base/assert.h"

typedef enum leat_arrival {
    LEAT_ARRIVAL_NEW,
    LEAT_ARRIVAL_DUPLICATE,
    LEAT_ARRIVAL_TOO_OLD,
} leat_arrival;

/* packets: a power of two. LEAT_ERR_NOMEM. */
leat_err leat_arrivals_init(leat_arrivals *a, leat_mem *mem, size_t packets);
void leat_arrivals_free(leat_arrivals *a);

static inline uint32_t *leat_arrivals_slot(const leat_arrivals *a, uint64_t seq)
{
    return &a->ring[seq & a->mask];
}

static inline uint64_t leat_arrivals_size(const leat_arrivals *a)
{
    return (uint64_t)a->mask + 1;
}

/* leat_arrivals_put() for a number that does not follow the last one. window: how much older than
 * the newest a mark is that no late packet needs any more. */
leat_arrival leat_arrivals_put_apart(leat_arrivals *a, uint16_t seq, uint64_t mark, uint32_t window)
    __attribute__((noinline));

/* A packet came. */
static inline leat_arrival leat_arrivals_put(leat_arrivals *a, uint16_t seq, uint64_t mark,
                                             uint32_t window)
{
    if (LEAT_UNLIKELY(seq != (uint16_t)a->end)) {
        return leat_arrivals_put_apart(a, seq, mark, window);
    }
    *leat_arrivals_slot(a, a->end) = (uint32_t)mark;
    a->newest = mark > a->newest ? mark : a->newest;
    a->end++;
    return LEAT_ARRIVAL_NEW;
}

/* Moves begin and base up to where the ring begins. Before reading. */
void leat_arrivals_settle(leat_arrivals *a);

/* The whole mark of a slot that is not 0. */
static inline uint64_t leat_arrivals_mark(const leat_arrivals *a, uint32_t slot)
{
    return a->newest + (uint64_t)(int64_t)(int32_t)(slot - (uint32_t)a->newest);
}

/* A walker: asserts what must hold. */
void leat_arrivals_check(const leat_arrivals *a);

#endif
