/* media/twcc_sender.c: numbers for packets, and what feedback says became of them.
 *
 * The reference time has 24 bits of 64 ms, about 12 days; the feedbacks' times go on through the
 * wrap, as each is taken to be nearest to the one before. A feedback packet may come late, so the
 * time may step back.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/limits.h>
#include <leat/twcc.h>

#include "base/assert.h"
#include "media/history.h"
#include "media/twcc_iter.h"

enum { REFERENCE_BITS = 24 };

leat_err leat_twcc_sender_init(leat_twcc_sender *s, leat_mem *mem, size_t packets)
{
    *s = (leat_twcc_sender){.reference = 0};
    return leat_fb_history_init(&s->sent, mem, packets ? packets : LEAT_FB_HISTORY_DEFAULT);
}

void leat_twcc_sender_free(leat_twcc_sender *s)
{
    leat_fb_history_free(&s->sent);
}

uint16_t leat_twcc_sent(leat_twcc_sender *s, leat_time now, uint32_t size)
{
    return (uint16_t)leat_fb_history_append(&s->sent, now, size);
}

/* The value nearest to `near` with these low 24 bits. */
static uint64_t unwrap_reference(uint64_t near, uint32_t reference)
{
    uint32_t ahead = (reference - (uint32_t)near) << (32 - REFERENCE_BITS);

    return near + (uint64_t)(int64_t)((int32_t)ahead >> (32 - REFERENCE_BITS));
}

leat_err leat_twcc_feedback(leat_twcc_sender *s, leat_span data, leat_twcc_iter *out)
{
    leat_err err = leat_twcc_parse(data, out);
    uint64_t period = (uint64_t)1 << REFERENCE_BITS;
    uint8_t ahead;

    if (err != LEAT_OK) {
        return err;
    }
    if (s->feedbacks == 0) {
        s->reference = out->reference + period;
        s->count = out->count;
    } else {
        s->reference = unwrap_reference(s->reference, out->reference);
        ahead = (uint8_t)(out->count - s->count);
        if (ahead < 128) { /* otherwise a packet overtaken by another, which counted it as lost */
            s->feedbacks_lost += ahead > 1 ? ahead - 1u : 0;
            s->count = out->count;
        } else if (s->feedbacks_lost > 0) {
            s->feedbacks_lost--;
        }
    }
    /* A sender that steps its clock back again and again does not get below zero. */
    s->reference += s->reference < period ? period : 0;
    s->feedbacks++;
    out->time = s->reference * LEAT_TWCC_REFERENCE;
    return LEAT_OK;
}

size_t leat_twcc_results(leat_twcc_sender *s, leat_twcc_iter *iter, leat_fb_result *out, size_t max)
{
    leat_fb_history *h = &s->sent;
    leat_twcc_iter it = *iter;
    leat_twcc_status status;
    uint64_t base, seq;
    size_t n = 0;

    if (it.left == 0) {
        return 0;
    }
    /* All the feedback's numbers count from its first, however many there are. */
    base = leat_fb_history_unwrap(h, it.base);
    seq = base + (uint16_t)(it.seq - it.base);
    while (n < max && leat_twcc_step(&it, &status)) {
        if (leat_fb_history_take(h, seq, status.received, status.arrival, &out[n])) {
            out[n].ssrc = it.media_ssrc;
            out[n].ecn = 0;
            n++;
        }
        seq++;
    }
    leat_fb_history_advance(h, seq);
    *iter = it;
    return n;
}
