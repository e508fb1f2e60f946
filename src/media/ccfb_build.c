/* media/ccfb_build.c: reports written from the streams' rings (RFC 8888 §3.1).
 *
 *     +---------------------------------------------------------------+
 *     |           RTCP header, sender's SSRC (8 bytes)                |
 *     +---------------------------------------------------------------+
 *     |                     SSRC of the 1st stream                    |
 *     +-------------------------------+-------------------------------+
 *     |           begin_seq           |          num_reports          |
 *     +-+---+-------------------------+-+---+-------------------------+
 *     |R|ECN|  arrival time offset    | the next, zeros if none is    |
 *     +-+---+-------------------------+-------------------------------+
 *     |  more streams, then the report timestamp (32 bits, 1/65536 s) |
 *
 * num_reports is how many metric blocks there are (erratum 8166). Streams take turns: a report
 * begins where the last one ended for want of room, so none is starved.
 *
 * An arrival is told as an offset from the report's timestamp as it stands in the packet, and
 * rounded to the nearest 1/1024 s: the error is below half of that, and does not add up.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/rtcp.h>

#include "base/cursor.h"
#include "media/ccfb_ring.h"

enum {
    HEAD = 8,
    STREAM_HEAD = 8,
    TIMESTAMP = 4,
    REPORT_MAX = 65536 * 4, /* what the header's length can say */
    UNIT_SHIFT = 6,         /* from 1/65536 s to 1/1024 s */
};

/* The metric block of a slot. `now` in 1/65536 s; the mark's time has 29 bits of that. */
static uint16_t metric(uint32_t slot, uint64_t now)
{
    uint32_t age, ato, mask = UINT32_MAX >> LEAT_CCFB_MARK_SHIFT;

    if (slot == 0) {
        return 0;
    }
    age = ((uint32_t)now - (slot >> LEAT_CCFB_MARK_SHIFT)) & mask;
    if (age > mask / 2) {
        ato = LEAT_CCFB_ATO_NONE; /* after the report */
    } else {
        ato = (age + (1u << UNIT_SHIFT) / 2) >> UNIT_SHIFT;
        ato = ato > LEAT_CCFB_ATO_OVER ? LEAT_CCFB_ATO_OVER : ato;
    }
    return (uint16_t)(0x8000 | (unsigned)leat_ccfb_mark_ecn(slot) << 13 | ato);
}

/* Writes what fits of a stream; returns how many numbers that were. */
static size_t write_stream(leat_writer *w, leat_arrivals *a, uint32_t ssrc, uint64_t now)
{
    size_t left = leat_writer_left(w), n;

    leat_arrivals_settle(a);
    if (left < STREAM_HEAD + 4) {
        return 0;
    }
    n = (left - STREAM_HEAD) / 4 * 2; /* blocks go in pairs */
    n = n > LEAT_CCFB_STREAM_REPORTS ? LEAT_CCFB_STREAM_REPORTS : n;
    n = n > a->end - a->base ? (size_t)(a->end - a->base) : n;
    leat_writer_u32(w, ssrc);
    leat_writer_u16(w, (uint16_t)a->base);
    leat_writer_u16(w, (uint16_t)n);
    for (size_t i = 0; i < n; i++) {
        leat_writer_u16(w, metric(*leat_arrivals_slot(a, a->base + i), now));
    }
    if (n % 2) {
        leat_writer_u16(w, 0);
    }
    a->base += n;
    return n;
}

size_t leat_ccfb_build(leat_ccfb_recorder *r, leat_time now, uint8_t *out, size_t cap)
{
    uint64_t units = leat_ccfb_units(now);
    leat_writer w;

    if (cap < LEAT_CCFB_BUILD_MIN) {
        return 0;
    }
    cap = cap > REPORT_MAX ? REPORT_MAX : cap & ~(size_t)3;
    leat_writer_init(&w, out, cap - TIMESTAMP);
    leat_writer_zero(&w, 4);
    leat_writer_u32(&w, r->set.sender_ssrc);
    for (size_t tried = 0; tried < r->count && r->waiting > 0; tried++) {
        leat_arrivals *a;

        r->turn = r->turn < r->count ? r->turn : 0;
        a = &r->streams[r->turn].arrivals;
        if (a->base != a->end && write_stream(&w, a, r->ssrcs[r->turn], units) == 0) {
            break;
        }
        if (a->base != a->end) {
            break; /* the rest of it comes first next time */
        }
        r->turn++;
    }
    r->waiting = 0;
    for (size_t i = 0; i < r->count; i++) {
        r->waiting += r->streams[i].arrivals.base != r->streams[i].arrivals.end;
    }
    w.end += TIMESTAMP;
    leat_writer_u32(&w, (uint32_t)(units + (r->set.ntp_zero >> 16)));
    LEAT_ASSERT(leat_writer_ok(&w));
    out[0] = 0x80 | LEAT_RTCP_FMT_CCFB;
    out[1] = LEAT_RTCP_RTPFB;
    leat_store_u16(out + 2, (uint16_t)(leat_writer_len(&w) / 4 - 1));
    return leat_writer_len(&w);
}
