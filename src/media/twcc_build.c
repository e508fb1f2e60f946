/* media/twcc_build.c: feedback written from the ring of arrivals.
 *
 *     +---------------------------------------------------------------+
 *     |      RTCP header, sender's SSRC, media SSRC (12 bytes)        |
 *     +-------------------------------+-------------------------------+
 *     |         base sequence         |         status count          |
 *     +-------------------------------+---------------+---------------+
 *     |         reference time (24 bits, 64 ms)       |     count     |
 *     +-----------------------------------------------+---------------+
 *     |  chunks, two bytes each | deltas, a byte or two | padding     |
 *
 * gather() goes through the ring once and makes the row of symbols and the deltas. Usually all of
 * it fits and the chunks are planned and written. What does not fit is cut where a bound on its
 * size says that it does; the next packet begins there. A packet ends early, too, where a delta
 * does not fit 16 bits: the next one has a reference time of its own.
 *
 * Up to three zeros fill the last word. The padding bit stays clear: RTCP's padding comes in words
 * (RFC 3550 §6.4.1), GStreamer refuses any other, and what follows the last delta concerns nobody.
 *
 * The first packet received of a feedback has a delta to the reference time, which is its own time
 * rounded down: below 256 ticks.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/rtcp.h>

#include "base/cursor.h"
#include "media/twcc_chunks.h"
#include "media/twcc_ring.h"

enum {
    HEAD = 20,
    BLOCK = 8,             /* slots that gather() tries at once */
    REFERENCE_TICKS = 256, /* 64 ms */
    PACKET_MAX = 16384,    /* bytes at most, whatever room there is */
};

typedef struct work {
    leat_twcc_row row;
    uint8_t deltas[2 * LEAT_TWCC_ROW + BLOCK]; /* written ahead of what is counted */
    size_t deltas_len;
    uint64_t reference;      /* in ticks: that of the first received, rounded down */
    uint32_t prev;           /* the mark from which the next delta counts */
    uint32_t missing, large; /* symbols of these kinds in the row */
} work;

/* Whether BLOCK slots have packets that all came, with small deltas, as most have; then these are
 * written. */
static inline bool gather_block(const uint32_t *slots, uint32_t prev, uint8_t *delta)
{
    uint32_t high = (slots[0] - prev) >> 1, all = slots[0];

    delta[0] = (uint8_t)high;
    for (int i = 1; i < BLOCK; i++) {
        uint32_t d = (slots[i] - slots[i - 1]) >> 1;

        delta[i] = (uint8_t)d;
        high |= d;
        all &= slots[i];
    }
    return (all & 1) != 0 && high <= UINT8_MAX;
}

/* Goes through the slots from `base` on until the row is full, the deltas alone fill `room`, one
 * does not fit its 16 bits, or the end. On a lossy path nobody could predict what came and what did
 * not, so one slot is taken without branches on that: a small delta is its first byte, one that is
 * none is nothing, and the length tells. */
static void gather(work *w, const leat_arrivals *a, size_t room)
{
    const uint8_t *deltas_end = w->deltas + (room < 2 * LEAT_TWCC_ROW ? room : 2 * LEAT_TWCC_ROW);
    uint64_t seq = a->base, end = a->end;
    uint8_t *symbol = w->row.symbol, *delta = w->deltas;
    uint32_t prev = w->prev, missing = 0, large = 0;

    end = end - seq > LEAT_TWCC_ROW ? seq + LEAT_TWCC_ROW : end;
    while (seq < end && delta <= deltas_end) {
        uint64_t at = seq & a->mask, stop = end - seq < BLOCK ? end : seq + BLOCK;

        if (stop - seq == BLOCK && at + BLOCK <= leat_arrivals_size(a) &&
            gather_block(a->ring + at, prev, delta)) {
            memset(symbol, LEAT_TWCC_SMALL, BLOCK);
            symbol += BLOCK;
            delta += BLOCK;
            seq += BLOCK;
            prev = a->ring[at + BLOCK - 1];
            continue;
        }
        for (; seq < stop; seq++) {
            uint32_t slot = *leat_arrivals_slot(a, seq), came = slot & 1;
            int32_t d = (int32_t)((slot - prev) * came) / 2; /* of an even number: exact */
            uint32_t is_large = (uint32_t)d > UINT8_MAX;

            if (LEAT_UNLIKELY(d < INT16_MIN || d > INT16_MAX)) {
                goto out;
            }
            leat_store_u16(delta, (uint16_t)((uint32_t)d << (is_large ? 0 : 8)));
            *symbol++ = (uint8_t)(came + is_large);
            delta += came + is_large;
            large += is_large;
            missing += came ^ 1;
            prev = came ? slot : prev;
        }
    }
out:
    w->row.n = (uint32_t)(symbol - w->row.symbol);
    w->deltas_len = (size_t)(delta - w->deltas);
    w->missing = missing;
    w->large = large;
}

/* The mark that the reference time is taken from: of the first packet received. */
static uint64_t first_mark(const leat_arrivals *a)
{
    for (uint64_t seq = a->base; seq < a->end; seq++) {
        uint32_t slot = *leat_arrivals_slot(a, seq);

        if (slot != 0) {
            return leat_arrivals_mark(a, slot);
        }
    }
    LEAT_UNREACHABLE(); /* the packet end - 1 came */
    return 0;
}

static size_t size_of(size_t chunks, size_t deltas)
{
    return (HEAD + 2 * chunks + deltas + 3) & ~(size_t)3;
}

/* Cuts the row to a length for which a simple bound says that it fits: a chunk for each run, or
 * vectors throughout. */
static void cut(work *w, size_t cap)
{
    size_t deltas = 0, runs = 0;
    bool large = false;
    uint32_t n = 0;

    while (n < w->row.n) {
        uint8_t symbol = w->row.symbol[n];
        size_t vectors;

        runs += n == 0 || symbol != w->row.symbol[n - 1];
        large |= symbol == LEAT_TWCC_LARGE;
        vectors = n / (large ? LEAT_TWCC_TWO_BIT : LEAT_TWCC_ONE_BIT) + 1;
        if (size_of(runs < vectors ? runs : vectors, deltas + symbol) > cap) {
            break;
        }
        deltas += symbol; /* which is its number of bytes */
        n++;
    }
    w->row.n = n;
    w->deltas_len = deltas;
}

static void write_head(const leat_twcc_recorder *r, const work *w, size_t size, uint8_t *out)
{
    out[0] = 0x80 | LEAT_RTCP_FMT_TWCC;
    out[1] = LEAT_RTCP_RTPFB;
    leat_store_u16(out + 2, (uint16_t)(size / 4 - 1));
    leat_store_u32(out + 4, r->sender_ssrc);
    leat_store_u32(out + 8, r->media_ssrc);
    leat_store_u16(out + 12, (uint16_t)r->arrivals.base);
    leat_store_u16(out + 14, (uint16_t)w->row.n);
    leat_store_u24(out + 16, (uint32_t)(w->reference / REFERENCE_TICKS) & 0xffffff);
    out[19] = r->count;
}

/* All symbols alike: one run. */
static bool is_plain(const work *w)
{
    return w->missing + w->large == 0 || w->missing == w->row.n || w->large == w->row.n;
}

size_t leat_twcc_build(leat_twcc_recorder *r, uint8_t *out, size_t cap)
{
    leat_arrivals *a = &r->arrivals;
    size_t chunks = 1, size, padding;
    uint8_t *at = out + HEAD;
    bool plain;
    work w;

    cap = cap > PACKET_MAX ? PACKET_MAX : cap;
    leat_arrivals_settle(a);
    if (a->base == a->end || cap < LEAT_TWCC_BUILD_MIN) {
        return 0;
    }
    w.reference = leat_twcc_mark_tick(first_mark(a)) & ~(uint64_t)(REFERENCE_TICKS - 1);
    w.prev = (uint32_t)leat_twcc_mark(w.reference);
    gather(&w, a, cap - HEAD);
    plain = is_plain(&w);
    if (!plain) {
        chunks = w.large ? leat_twcc_plan(&w.row) : leat_twcc_plan_small(&w.row);
    }
    if (size_of(chunks, w.deltas_len) > cap) {
        cut(&w, cap);
        chunks = leat_twcc_plan(&w.row);
        plain = false;
    }
    size = size_of(chunks, w.deltas_len);
    padding = size - (HEAD + 2 * chunks + w.deltas_len);
    LEAT_ASSERT(w.row.n > 0);
    LEAT_ASSERT(size <= cap);
    write_head(r, &w, size, out);
    if (plain) {
        leat_store_u16(at, leat_twcc_run_chunk(w.row.symbol[0], w.row.n));
        at += 2;
    } else {
        at = leat_twcc_write_chunks(&w.row, at);
    }
    memcpy(at, w.deltas, w.deltas_len);
    memset(out + size - padding, 0, padding);
    a->base += w.row.n;
    r->count++;
    return size;
}
