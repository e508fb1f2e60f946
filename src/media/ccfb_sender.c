/* media/ccfb_sender.c: the histories of the streams that are sent, and what reports say of them.
 *
 * The report's timestamp wraps after 18 hours; times go on, as each is taken to be nearest to the
 * one before.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/ccfb.h>
#include <leat/limits.h>

#include "base/assert.h"
#include "media/history.h"
#include "mem/mem.h"

leat_err leat_ccfb_sender_init(leat_ccfb_sender *s, leat_mem *mem, size_t streams, size_t packets)
{
    *s = (leat_ccfb_sender){
        .mem = mem,
        .most = streams,
        .packets = packets ? packets : LEAT_FB_HISTORY_DEFAULT,
    };
    if (streams < LEAT_CCFB_STREAMS_MIN || streams > LEAT_CCFB_STREAMS_MAX ||
        s->packets < LEAT_FB_HISTORY_MIN || s->packets > LEAT_FB_HISTORY_MAX ||
        (s->packets & (s->packets - 1)) != 0) {
        return LEAT_ERR_INVALID;
    }
    s->ssrcs = (uint32_t *)leat_mem_take(mem, streams * sizeof *s->ssrcs);
    s->histories = (leat_fb_history *)leat_mem_take(mem, streams * sizeof *s->histories);
    if (!s->ssrcs || !s->histories) {
        leat_ccfb_sender_free(s);
        return LEAT_ERR_NOMEM;
    }
    return LEAT_OK;
}

void leat_ccfb_sender_free(leat_ccfb_sender *s)
{
    for (size_t i = 0; i < s->count; i++) {
        leat_fb_history_free(&s->histories[i]);
    }
    if (s->ssrcs) {
        leat_mem_give(s->mem, s->ssrcs, s->most * sizeof *s->ssrcs);
    }
    if (s->histories) {
        leat_mem_give(s->mem, s->histories, s->most * sizeof *s->histories);
    }
    s->ssrcs = NULL;
    s->histories = NULL;
    s->count = 0;
}

/* The place of a stream; s->count: it has none. */
static size_t find(leat_ccfb_sender *s, uint32_t ssrc)
{
    size_t i = s->recent;

    if (LEAT_LIKELY(i < s->count && s->ssrcs[i] == ssrc)) {
        return i;
    }
    for (i = 0; i < s->count && s->ssrcs[i] != ssrc; i++) {
    }
    s->recent = i;
    return i;
}

leat_err leat_ccfb_sent(leat_ccfb_sender *s, uint32_t ssrc, uint16_t seq, leat_time now,
                        uint32_t size)
{
    size_t i = find(s, ssrc);

    if (i == s->count) {
        leat_err err;

        if (s->count == s->most) {
            return LEAT_ERR_LIMIT;
        }
        err = leat_fb_history_init(&s->histories[i], s->mem, s->packets);
        if (err != LEAT_OK) {
            return err;
        }
        s->ssrcs[i] = ssrc;
        s->count++;
    }
    leat_fb_history_add(&s->histories[i], seq, now, size);
    return LEAT_OK;
}

leat_err leat_ccfb_sender_remove(leat_ccfb_sender *s, uint32_t ssrc)
{
    size_t i = find(s, ssrc);

    if (i == s->count) {
        return LEAT_ERR_NOT_FOUND;
    }
    leat_fb_history_free(&s->histories[i]);
    s->count--;
    s->histories[i] = s->histories[s->count]; /* the last one takes its place */
    s->ssrcs[i] = s->ssrcs[s->count];
    return LEAT_OK;
}

leat_err leat_ccfb_feedback(leat_ccfb_sender *s, leat_span data, leat_ccfb_iter *out)
{
    leat_err err = leat_ccfb_parse(data, out);
    uint64_t period = (uint64_t)1 << 32;

    if (err != LEAT_OK) {
        return err;
    }
    if (s->report == 0) {
        s->report = out->report;
    } else {
        s->report += (uint64_t)(int64_t)(int32_t)(out->report_time - (uint32_t)s->report);
    }
    s->report += s->report < period ? period : 0;
    out->report = s->report;
    return LEAT_OK;
}

size_t leat_ccfb_results(leat_ccfb_sender *s, leat_ccfb_iter *it, leat_fb_result *out, size_t max)
{
    leat_ccfb_status status;
    size_t n = 0;

    while (n < max && leat_ccfb_next(it, &status)) {
        size_t i = find(s, status.ssrc);
        leat_fb_history *h;
        uint64_t seq;

        if (i == s->count) {
            continue;
        }
        h = &s->histories[i];
        seq = leat_fb_history_unwrap(h, status.seq);
        if (leat_fb_history_take(h, seq, status.received, status.arrival, &out[n])) {
            out[n].ssrc = status.ssrc;
            out[n].ecn = status.ecn;
            n++;
        }
    }
    return n;
}
