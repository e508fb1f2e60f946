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

/* `count` statuses of the present chunk, of numbers that feedback has not told of before, all of
 * them in the history: nearly all are. */
static size_t take_fresh(leat_fb_history *h, leat_twcc_iter *it, uint64_t seq, size_t count,
                         leat_fb_result *out)
{
    leat_fb_sent *ring = h->ring;
    uint64_t mask = h->mask, end = seq + count, bytes = 0;
    const uint8_t *delta = it->delta;
    uint32_t symbols = it->symbols, ssrc = it->media_ssrc;
    uint8_t shift = it->shift;
    leat_time time = it->time;
    size_t n = 0;

    for (; seq < end; seq++) {
        leat_fb_sent *sent = &ring[seq & mask];
        uint32_t symbol = symbols >> 30;
        leat_time arrival = leat_twcc_arrival(symbol, &delta, &time);

        symbols <<= shift;
        bytes += sent->size;
        out[n].ssrc = ssrc;
        out[n].ecn = 0;
        n += leat_fb_sent_take(sent, seq, symbol != LEAT_TWCC_MISSING, arrival, &out[n]);
    }
    it->symbols = symbols;
    it->delta = delta;
    it->time = time;
    leat_twcc_pass(it, count);
    h->in_flight -= bytes;
    h->reported = end;
    return n;
}

/* The same for any numbers. */
static size_t take_any(leat_fb_history *h, leat_twcc_iter *it, uint64_t seq, size_t count,
                       leat_fb_result *out)
{
    leat_twcc_status status;
    size_t n = 0;

    for (uint64_t end = seq + count; seq < end && leat_twcc_next(it, &status); seq++) {
        out[n].ssrc = it->media_ssrc;
        out[n].ecn = 0;
        n += leat_fb_history_take(h, seq, status.received, status.arrival, &out[n]);
    }
    return n;
}

size_t leat_twcc_results(leat_twcc_sender *s, leat_twcc_iter *it, leat_fb_result *out, size_t max)
{
    leat_fb_history *h = &s->sent;
    /* All the feedback's numbers count from its first, however many there are. */
    uint64_t seq = leat_fb_history_unwrap(h, it->base) + (uint16_t)(it->seq - it->base);
    size_t n = 0;

    while (n < max && it->left > 0) {
        size_t count;

        if (it->chunk_left == 0) {
            leat_twcc_take_chunk(it);
        }
        count = it->chunk_left < max - n ? it->chunk_left : max - n;
        n += (seq == h->reported && count <= h->next - seq ? take_fresh : take_any)(h, it, seq,
                                                                                    count, out + n);
        seq += count;
    }
    return n;
}
