/* media/ccfb_record.c: a ring of arrivals for each stream.
 *
 * Streams stand in an array, their SSRCs beside them in one that is searched from end to end: there
 * are few, and packets of one stream come in a row. A peer that makes up SSRCs finds all places
 * taken and makes nothing grow.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/limits.h>

#include "base/time.h"
#include "media/ccfb_ring.h"
#include "mem/mem.h"

void leat_ccfb_settings_init(leat_ccfb_settings *s)
{
    *s = (leat_ccfb_settings){
        .streams = LEAT_CCFB_STREAMS_DEFAULT,
        .packets = LEAT_CCFB_RECORD_DEFAULT,
        .idle = 10 * LEAT_SECOND,
    };
}

leat_err leat_ccfb_recorder_init(leat_ccfb_recorder *r, leat_mem *mem, const leat_ccfb_settings *s)
{
    *r = (leat_ccfb_recorder){.set = *s, .mem = mem};
    if (s->streams < LEAT_CCFB_STREAMS_MIN || s->streams > LEAT_CCFB_STREAMS_MAX ||
        s->packets < LEAT_CCFB_RECORD_MIN || s->packets > LEAT_CCFB_RECORD_MAX ||
        (s->packets & (s->packets - 1)) != 0) {
        return LEAT_ERR_INVALID;
    }
    r->ssrcs = (uint32_t *)leat_mem_take(mem, s->streams * sizeof *r->ssrcs);
    r->streams = (leat_ccfb_stream *)leat_mem_take(mem, s->streams * sizeof *r->streams);
    if (!r->ssrcs || !r->streams) {
        leat_ccfb_recorder_free(r);
        return LEAT_ERR_NOMEM;
    }
    return LEAT_OK;
}

void leat_ccfb_recorder_free(leat_ccfb_recorder *r)
{
    for (size_t i = 0; i < r->count; i++) {
        leat_arrivals_free(&r->streams[i].arrivals);
    }
    if (r->ssrcs) {
        leat_mem_give(r->mem, r->ssrcs, r->set.streams * sizeof *r->ssrcs);
    }
    if (r->streams) {
        leat_mem_give(r->mem, r->streams, r->set.streams * sizeof *r->streams);
    }
    r->ssrcs = NULL;
    r->streams = NULL;
    r->count = 0;
    r->waiting = 0;
}

/* The place of a stream; r->count: it has none. */
static size_t find(const leat_ccfb_recorder *r, uint32_t ssrc)
{
    size_t i = r->recent;

    if (LEAT_LIKELY(i < r->count && r->ssrcs[i] == ssrc)) {
        return i;
    }
    for (i = 0; i < r->count && r->ssrcs[i] != ssrc; i++) {
    }
    return i;
}

static bool waits(const leat_ccfb_stream *s)
{
    return s->arrivals.base != s->arrivals.end;
}

/* The last stream takes the place of the one removed. */
static void remove_at(leat_ccfb_recorder *r, size_t i)
{
    r->waiting -= waits(&r->streams[i]);
    r->gone_duplicates += r->streams[i].arrivals.duplicates;
    r->gone_too_old += r->streams[i].arrivals.too_old;
    leat_arrivals_free(&r->streams[i].arrivals);
    r->count--;
    r->streams[i] = r->streams[r->count];
    r->ssrcs[i] = r->ssrcs[r->count];
    r->recent = 0;
    r->turn = 0;
}

leat_err leat_ccfb_remove(leat_ccfb_recorder *r, uint32_t ssrc)
{
    size_t i = find(r, ssrc);

    if (i == r->count) {
        return LEAT_ERR_NOT_FOUND;
    }
    remove_at(r, i);
    return LEAT_OK;
}

/* Removes the stream that has been silent for longest, if for long enough. */
static bool make_room(leat_ccfb_recorder *r, leat_time now)
{
    size_t oldest = 0;

    for (size_t i = 1; i < r->count; i++) {
        if (r->streams[i].last < r->streams[oldest].last) {
            oldest = i;
        }
    }
    if (leat_time_since(now, r->streams[oldest].last) < r->set.idle) {
        return false;
    }
    remove_at(r, oldest);
    return true;
}

static leat_err add(leat_ccfb_recorder *r, uint32_t ssrc, leat_time now)
{
    leat_ccfb_stream *s;
    leat_err err;

    if (r->count == r->set.streams && !make_room(r, now)) {
        r->refused++;
        return LEAT_ERR_LIMIT;
    }
    s = &r->streams[r->count];
    err = leat_arrivals_init(&s->arrivals, r->mem, r->set.packets);
    if (err != LEAT_OK) {
        r->refused++;
        return err;
    }
    s->last = now;
    r->ssrcs[r->count++] = ssrc;
    return LEAT_OK;
}

/* A packet that came with CE once counts as marked (§3.1), if its report is still to come. */
static void mark_again(leat_arrivals *a, uint16_t seq, uint8_t ecn)
{
    uint64_t full = a->end - (uint16_t)((uint16_t)a->end - seq);
    uint32_t *slot = leat_arrivals_slot(a, full);

    if (ecn == LEAT_CCFB_ECN_CE && a->end - full <= leat_arrivals_size(a) && *slot != 0) {
        *slot |= LEAT_CCFB_ECN_CE << 1;
    }
}

leat_err leat_ccfb_record(leat_ccfb_recorder *r, uint32_t ssrc, uint16_t seq, leat_time arrival,
                          uint8_t ecn)
{
    size_t i = find(r, ssrc);
    leat_ccfb_stream *s;
    bool waited;

    if (i == r->count) {
        leat_err err = add(r, ssrc, arrival);

        if (err != LEAT_OK) {
            return err;
        }
        i = r->count - 1;
    }
    r->recent = i;
    s = &r->streams[i];
    s->last = leat_time_max(s->last, arrival);
    waited = waits(s);
    if (leat_arrivals_put(&s->arrivals, seq, leat_ccfb_mark(leat_ccfb_units(arrival), ecn),
                          LEAT_CCFB_MARK_WINDOW) == LEAT_ARRIVAL_DUPLICATE) {
        mark_again(&s->arrivals, seq, ecn);
    }
    r->waiting += (size_t)(waits(s) - waited);
    return LEAT_OK;
}
