/* media/arrivals.c: numbers that do not follow each other.
 *
 * Ahead: the slots passed over are cleared, at most the whole ring. Behind: a late packet goes into
 * its slot and takes `base` back to itself, so that what lies between is reported once more, with
 * the times that the ring still has.
 *
 * A stream that begins anew below the ring is recognised by a row of packets that follow
 * each other. Its numbers then go on above all that came before.
 *
 * SPDX-License-Identifier: MIT
 */
#include "media/arrivals.h"

#include <string.h>

#include "media/restart.h"
#include "mem/mem.h"

enum {
    ORIGIN = 1 << 20, /* of unwrapped numbers: above any ring's size, and its low 16 bits are 0 */
    FEW = 8,          /* slots that are cleared one by one */
    LOOK = 64,        /* numbers looked at to tell how old a late packet is */
};

leat_err leat_arrivals_init(leat_arrivals *a, leat_mem *mem, size_t packets)
{
    LEAT_ASSERT(packets > 0);
    LEAT_ASSERT((packets & (packets - 1)) == 0);
    *a = (leat_arrivals){
        .mask = (uint32_t)packets - 1,
        .end = ORIGIN,
        .base = ORIGIN,
        .begin = ORIGIN - packets,
        .mem = mem,
    };
    a->ring = (uint32_t *)leat_mem_take_zeroed(mem, packets * sizeof *a->ring);
    return a->ring ? LEAT_OK : LEAT_ERR_NOMEM;
}

void leat_arrivals_free(leat_arrivals *a)
{
    if (a->ring) {
        leat_mem_give(a->mem, a->ring, leat_arrivals_size(a) * sizeof *a->ring);
        a->ring = NULL;
    }
}

void leat_arrivals_settle(leat_arrivals *a)
{
    uint64_t least = a->end - leat_arrivals_size(a);

    a->begin = a->begin > least ? a->begin : least;
    if (a->base < a->begin) {
        a->unreported += a->begin - a->base;
        a->base = a->begin;
    }
}

/* Empties the slots of [from, to). */
static void clear(leat_arrivals *a, uint64_t from, uint64_t to)
{
    uint64_t size = leat_arrivals_size(a);
    uint64_t first = from & a->mask, n = to - from, tail;

    if (n < FEW) {
        for (; from < to; from++) {
            *leat_arrivals_slot(a, from) = 0;
        }
        return;
    }
    if (n >= size) {
        memset(a->ring, 0, size * sizeof *a->ring);
        return;
    }
    tail = size - first;
    tail = n < tail ? n : tail;
    memset(a->ring + first, 0, tail * sizeof *a->ring);
    memset(a->ring, 0, (n - tail) * sizeof *a->ring);
}

/* Whether a packet behind the reported ones comes too late: the one that follows it is older than
 * the window. Where a long gap follows it is taken: one damaged number far ahead, which makes such
 * a gap, must not silence the stream that goes on behind it. */
static bool is_too_old(const leat_arrivals *a, uint64_t full, uint32_t window)
{
    for (uint64_t seq = full; seq < a->base && seq < full + LOOK; seq++) {
        uint32_t slot = *leat_arrivals_slot(a, seq);

        if (slot != 0) {
            /* With its sign: flags set later may lift a mark above the newest. */
            return (int32_t)((uint32_t)a->newest - slot) > (int32_t)window;
        }
    }
    return false;
}

/* The packet is the highest so far. */
static leat_arrival put_ahead(leat_arrivals *a, uint64_t full, uint64_t mark)
{
    clear(a, a->end, full);
    a->end = full;
    a->restart.count = 0;
    *leat_arrivals_slot(a, full) = (uint32_t)mark;
    a->newest = mark > a->newest ? mark : a->newest;
    a->end++;
    return LEAT_ARRIVAL_NEW;
}

/* The stream begins, or begins anew: nothing before it is missing. */
static leat_arrival put_first(leat_arrivals *a, uint16_t seq, uint64_t mark)
{
    uint64_t full = a->end + (uint16_t)(seq - (uint16_t)a->end);

    clear(a, a->end, a->end + leat_arrivals_size(a));
    leat_arrivals_settle(a);
    a->unreported += a->newest != 0 ? a->end - a->base : 0;
    a->base = full;
    a->begin = full - leat_arrivals_size(a);
    a->end = full;
    return put_ahead(a, full, mark);
}

/* The number lies below the ring. */
static leat_arrival put_below(leat_arrivals *a, uint16_t seq, uint64_t mark)
{
    a->restart.count = a->end == a->restart_end ? a->restart.count : 0;
    a->restart_end = a->end;
    if (leat_restart_on_far(&a->restart, seq, LEAT_RESTART_ROW)) {
        return put_first(a, seq, mark);
    }
    a->too_old++;
    return LEAT_ARRIVAL_TOO_OLD;
}

leat_arrival leat_arrivals_put_apart(leat_arrivals *a, uint16_t seq, uint64_t mark, uint32_t window)
{
    int16_t ahead = (int16_t)(uint16_t)(seq - (uint16_t)a->end);
    uint64_t full = a->end + (uint64_t)(int64_t)ahead;
    uint32_t *slot;

    if (a->newest == 0) {
        return put_first(a, seq, mark);
    }
    if (ahead >= 0) {
        return put_ahead(a, full, mark);
    }
    leat_arrivals_settle(a);
    if (full < a->begin) {
        return put_below(a, seq, mark);
    }
    a->restart.count = 0;
    slot = leat_arrivals_slot(a, full);
    if (*slot != 0) {
        a->duplicates++;
        return LEAT_ARRIVAL_DUPLICATE;
    }
    if (is_too_old(a, full, window)) {
        a->too_old++;
        return LEAT_ARRIVAL_TOO_OLD;
    }
    *slot = (uint32_t)mark;
    a->newest = mark > a->newest ? mark : a->newest;
    a->base = full < a->base ? full : a->base;
    return LEAT_ARRIVAL_NEW;
}

void leat_arrivals_check(const leat_arrivals *a)
{
    LEAT_ASSERT(a->base <= a->end);
    LEAT_ASSERT(a->begin <= a->base);
    if (a->newest == 0) {
        LEAT_ASSERT(a->base == a->end);
        return;
    }
    LEAT_ASSERT(*leat_arrivals_slot(a, a->end - 1) != 0);
}
