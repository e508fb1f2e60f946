/* media/twcc_parse.c: feedback read in place.
 *
 * leat_twcc_parse() walks the chunks once and adds up the bytes of delta that they announce, with a
 * few operations a chunk. After that leat_twcc_next() need not check anything: chunks and deltas
 * are there.
 *
 * A chunk becomes a word of two-bit symbols, the next one on top, and a shift of 2; a run is its
 * symbol with a shift of 0. So next() does the same for all three kinds.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/twcc.h>

#include "media/feedback_head.h"
#include "media/twcc_iter.h"

enum {
    HEAD = 16, /* of the body: both SSRCs, base, count, reference and feedback count */
    RESERVED = 3,
};

/* The bytes of delta of a chunk's statuses; UINT32_MAX: one of them is the reserved symbol. */
static uint32_t delta_bytes(const leat_twcc_chunk *c)
{
    uint32_t used, low, high;

    if (c->shift == 0) {
        uint32_t symbol = c->symbols >> 30;

        return symbol == RESERVED ? UINT32_MAX : symbol * c->n;
    }
    used = c->symbols & ~(UINT32_MAX >> (2 * c->n)); /* n is 1 to 14 here */
    low = used & 0x55555555u;
    high = used >> 1 & 0x55555555u;
    if (low & high) {
        return UINT32_MAX;
    }
    return (uint32_t)(__builtin_popcount(low) + 2 * __builtin_popcount(high));
}

/* Walks the chunks; on success the iterator knows where the deltas begin. */
static leat_err check_chunks(leat_twcc_iter *it, const uint8_t *at, const uint8_t *end)
{
    uint32_t left = it->status_count;
    size_t deltas = 0;

    it->chunk = at;
    while (left > 0) {
        leat_twcc_chunk c;
        uint32_t bytes;

        if (end - at < 2) {
            return LEAT_ERR_TRUNCATED;
        }
        c = leat_twcc_read_chunk(at, left);
        at += 2;
        if (c.n == 0) {
            return LEAT_ERR_MALFORMED; /* a run of none */
        }
        bytes = delta_bytes(&c);
        if (bytes == UINT32_MAX) {
            return LEAT_ERR_MALFORMED;
        }
        deltas += bytes;
        left -= c.n;
    }
    if ((size_t)(end - at) < deltas) {
        return LEAT_ERR_TRUNCATED;
    }
    it->delta = at;
    return LEAT_OK;
}

leat_err leat_twcc_parse(leat_span data, leat_twcc_iter *out)
{
    leat_twcc_iter it = {.left = 0};
    leat_span body;
    leat_err err;

    *out = it;
    err = leat_feedback_head(data, LEAT_RTCP_FMT_TWCC, &body);
    if (err != LEAT_OK) {
        return err;
    }
    if (body.len < HEAD) {
        return LEAT_ERR_TRUNCATED;
    }
    it.sender_ssrc = leat_load_u32(body.data);
    it.media_ssrc = leat_load_u32(body.data + 4);
    it.base = leat_load_u16(body.data + 8);
    it.status_count = leat_load_u16(body.data + 10);
    it.reference = leat_load_u24(body.data + 12);
    it.count = body.data[15];
    if (it.status_count == 0) {
        return LEAT_ERR_MALFORMED;
    }
    err = check_chunks(&it, body.data + HEAD, body.data + body.len);
    if (err != LEAT_OK) {
        return err;
    }
    it.seq = it.base;
    it.left = it.status_count;
    it.time = ((uint64_t)it.reference + (1u << 24)) * LEAT_TWCC_REFERENCE;
    *out = it;
    return LEAT_OK;
}

void leat_twcc_load_chunk(leat_twcc_iter *it)
{
    leat_twcc_take_chunk(it);
}

/* n statuses of a run of small deltas: most feedback is such runs. */
static void read_run(leat_twcc_iter *it, leat_twcc_status *out, size_t n)
{
    const uint8_t *delta = it->delta;
    leat_time time = it->time;
    uint16_t seq = it->seq;

    for (size_t i = 0; i < n; i++) {
        time += delta[i] * LEAT_TWCC_TICK;
        out[i] = (leat_twcc_status){.arrival = time, .seq = seq, .received = true};
        seq++;
    }
    it->delta = delta + n;
    it->time = time;
}

/* n statuses of any chunk. */
static void read_symbols(leat_twcc_iter *it, leat_twcc_status *out, size_t n)
{
    const uint8_t *delta = it->delta;
    uint32_t symbols = it->symbols;
    leat_time time = it->time;
    uint16_t seq = it->seq;

    for (size_t i = 0; i < n; i++) {
        uint32_t symbol = symbols >> 30;

        out[i] = (leat_twcc_status){.arrival = leat_twcc_arrival(symbol, &delta, &time),
                                    .seq = seq,
                                    .received = symbol != LEAT_TWCC_MISSING};
        symbols <<= it->shift;
        seq++;
    }
    it->symbols = symbols;
    it->delta = delta;
    it->time = time;
}

size_t leat_twcc_read(leat_twcc_iter *iter, leat_twcc_status *out, size_t max)
{
    leat_twcc_iter it = *iter;
    size_t n = 0;

    while (n < max && it.left > 0) {
        size_t count;

        if (it.chunk_left == 0) {
            leat_twcc_take_chunk(&it);
        }
        count = it.chunk_left < max - n ? it.chunk_left : max - n;
        if (it.shift == 0 && it.symbols >> 30 == LEAT_TWCC_SMALL) {
            read_run(&it, out + n, count);
        } else {
            read_symbols(&it, out + n, count);
        }
        leat_twcc_pass(&it, count);
        n += count;
    }
    *iter = it;
    return n;
}
