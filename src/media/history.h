/* media/history.h: looking packets up in a sender's history.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEDIA_HISTORY_H
#define LEAT_MEDIA_HISTORY_H

#include <leat/feedback.h>

#include "base/assert.h"

static inline leat_fb_sent *leat_fb_history_slot(const leat_fb_history *h, uint64_t seq)
{
    return &h->ring[seq & h->mask];
}

/* The number that a feedback means: the newest one sent with these low 16 bits, which may be some
 * few ahead of the last one sent if the feedback is wrong. */
static inline uint64_t leat_fb_history_unwrap(const leat_fb_history *h, uint16_t seq)
{
    return h->next - (uint16_t)((uint16_t)h->next - seq);
}

/* Feedback told of numbers up to and without `end`: what is in flight is what was sent after. */
void leat_fb_history_advance(leat_fb_history *h, uint64_t end);

/* A packet with the number next() goes out. */
static inline uint64_t leat_fb_history_append(leat_fb_history *h, leat_time now, uint32_t size)
{
    uint64_t seq = h->next;
    leat_fb_sent *slot = leat_fb_history_slot(h, seq);

    /* No feedback for as long as the ring goes: the packet that was in this slot is forgotten. */
    if (LEAT_UNLIKELY(seq - h->reported > h->mask)) {
        h->in_flight -= slot->size;
        h->reported++;
    }
    *slot = (leat_fb_sent){.at = now, .size = size, .state = LEAT_FB_SENT};
    h->in_flight += size;
    h->next = seq + 1;
    h->started = true;
    return seq;
}

/* Takes one status of a number in the history; true: *out is a result, but for ssrc and ecn. */
static inline bool leat_fb_sent_take(leat_fb_sent *sent, uint64_t seq, bool received,
                                     leat_time arrival, leat_fb_result *out)
{
    uint32_t was = sent->state;

    /* Nothing new: never sent, arrived before, or lost before and not arrived now. */
    if (LEAT_UNLIKELY(was != LEAT_FB_SENT) && (was != LEAT_FB_LOST || !received)) {
        return false;
    }
    sent->state = received ? LEAT_FB_ARRIVED : LEAT_FB_LOST;
    out->seq = seq;
    out->sent = sent->at;
    out->arrived = arrival;
    out->size = sent->size;
    out->state = received ? LEAT_FB_ARRIVED : LEAT_FB_LOST;
    out->late = was == LEAT_FB_LOST;
    return true;
}

/* The same for any number: true for none that was never sent or is forgotten. What is in flight is
 * what was sent after it. */
static inline bool leat_fb_history_take(leat_fb_history *h, uint64_t seq, bool received,
                                        leat_time arrival, leat_fb_result *out)
{
    leat_fb_history_advance(h, seq + 1);
    return h->next - seq - 1 <= h->mask &&
           leat_fb_sent_take(leat_fb_history_slot(h, seq), seq, received, arrival, out);
}

#endif
