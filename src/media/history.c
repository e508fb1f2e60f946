/* media/history.c: the packets sent last.
 *
 * A ring by number. Slots of [next - size, next) are valid at all times, LEAT_FB_NONE where no
 * packet was sent. in_flight is the sum of the sizes in [reported, next).
 *
 * A sender may send far back numbers again, so that one alone says nothing; a row of them that
 * follow each other is an encoder that began anew.
 *
 * SPDX-License-Identifier: MIT
 */
#include "media/history.h"

#include <leat/limits.h>
#include <leat/rtp.h>

#include "base/assert.h"
#include "media/restart.h"
#include "mem/mem.h"

enum { ORIGIN = 1 << 20 }; /* above any ring's size, and its low 16 bits are 0 */

leat_err leat_fb_history_init(leat_fb_history *h, leat_mem *mem, size_t packets)
{
    *h = (leat_fb_history){.next = ORIGIN, .reported = ORIGIN, .mem = mem};
    if (packets < LEAT_FB_HISTORY_MIN || packets > LEAT_FB_HISTORY_MAX ||
        (packets & (packets - 1)) != 0) {
        return LEAT_ERR_INVALID;
    }
    h->mask = packets - 1;
    h->ring = (leat_fb_sent *)leat_mem_take_zeroed(mem, packets * sizeof *h->ring);
    return h->ring ? LEAT_OK : LEAT_ERR_NOMEM;
}

void leat_fb_history_free(leat_fb_history *h)
{
    if (h->ring) {
        leat_mem_give(h->mem, h->ring, (h->mask + 1) * sizeof *h->ring);
        h->ring = NULL;
    }
}

void leat_fb_history_advance(leat_fb_history *h, uint64_t end)
{
    end = end < h->next ? end : h->next;
    for (; h->reported < end; h->reported++) {
        h->in_flight -= leat_fb_history_slot(h, h->reported)->size;
    }
}

/* Moves the end of the history to `next`: the slots passed over hold no packet. */
static void leap(leat_fb_history *h, uint64_t next)
{
    uint64_t n = next - h->next;

    if (n > h->mask) {
        leat_fb_history_advance(h, h->next);
        h->next = next - h->mask - 1;
        h->reported = h->next;
    }
    for (; h->next < next; h->next++) {
        if (h->next - h->reported > h->mask) {
            leat_fb_history_advance(h, h->reported + 1);
        }
        *leat_fb_history_slot(h, h->next) = (leat_fb_sent){.state = LEAT_FB_NONE};
    }
}

/* The number in full, the history moved up to it. */
static uint64_t place(leat_fb_history *h, uint16_t seq)
{
    uint64_t full;

    if (h->started) {
        full = leat_seq_unwrap(h->next, seq);
    } else {
        full = h->next + seq;
        h->next = full;
        h->reported = full;
    }
    if (full > h->next) {
        leap(h, full);
    }
    return full;
}

uint64_t leat_fb_history_add(leat_fb_history *h, uint16_t seq, leat_time now, uint32_t size)
{
    uint64_t full = place(h, seq);
    leat_fb_sent *slot;

    if (h->next - full > h->mask + 1) {
        if (!leat_restart_on_far(&h->restart, seq, LEAT_RESTART_ROW)) {
            return full;
        }
        full = h->next + (uint16_t)(seq - (uint16_t)h->next);
        leap(h, full);
    }
    h->restart.count = 0;
    if (full == h->next) {
        return leat_fb_history_append(h, now, size);
    }
    slot = leat_fb_history_slot(h, full);
    if (full >= h->reported) {
        h->in_flight += (uint64_t)size - slot->size;
    }
    *slot = (leat_fb_sent){.at = now, .size = size, .state = LEAT_FB_SENT};
    return full;
}
