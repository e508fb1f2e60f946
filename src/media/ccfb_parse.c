/* media/ccfb_parse.c: reports read in place. leat_ccfb_parse() walks the streams' heads once and
 * checks that all blocks are there; leat_ccfb_next() then reads without looking at bounds.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/ccfb.h>

#include "base/cursor.h"
#include "media/feedback_head.h"

enum {
    HEAD = 4, /* of the body: the sender's SSRC */
    TIMESTAMP = 4,
};

static leat_err check_streams(const uint8_t *at, size_t len)
{
    leat_cursor c;

    leat_cursor_init(&c, at, len);
    while (leat_cursor_left(&c) > 0) {
        uint16_t n;

        leat_cursor_skip(&c, 6);
        n = leat_cursor_u16(&c);
        leat_cursor_skip(&c, ((size_t)n + n % 2) * 2);
        if (!leat_cursor_ok(&c)) {
            return LEAT_ERR_TRUNCATED;
        }
        if (n > LEAT_CCFB_STREAM_REPORTS) {
            return LEAT_ERR_MALFORMED;
        }
    }
    return LEAT_OK;
}

leat_err leat_ccfb_parse(leat_span data, leat_ccfb_iter *out)
{
    leat_ccfb_iter it = {.left = 0};
    leat_span body;
    leat_err err;

    *out = it;
    err = leat_feedback_head(data, LEAT_RTCP_FMT_CCFB, &body);
    if (err != LEAT_OK) {
        return err;
    }
    if (body.len < HEAD + TIMESTAMP) {
        return LEAT_ERR_TRUNCATED;
    }
    it.sender_ssrc = leat_load_u32(body.data);
    it.at = body.data + HEAD;
    it.end = body.data + body.len - TIMESTAMP;
    it.report_time = leat_load_u32(it.end);
    it.report = it.report_time + ((uint64_t)1 << 32);
    err = check_streams(it.at, (size_t)(it.end - it.at));
    if (err != LEAT_OK) {
        return err;
    }
    *out = it;
    return LEAT_OK;
}

/* The time of an arrival: offset before the report, in 1/1024 s. */
static leat_time arrival(const leat_ccfb_iter *it, uint16_t ato)
{
    uint64_t units;

    if (ato == LEAT_CCFB_ATO_NONE) {
        return LEAT_TIME_NEVER;
    }
    units = it->report - ((uint64_t)ato << 6);
    return (units >> 16) * LEAT_SECOND + ((units & 0xffff) * LEAT_SECOND >> 16);
}

bool leat_ccfb_next(leat_ccfb_iter *it, leat_ccfb_status *out)
{
    uint16_t block;

    while (it->left == 0) { /* a stream may have no blocks */
        if (it->at == it->end) {
            return false;
        }
        it->ssrc = leat_load_u32(it->at);
        it->seq = leat_load_u16(it->at + 4);
        it->left = leat_load_u16(it->at + 6);
        it->odd = it->left % 2 != 0;
        it->at += 8;
    }
    block = leat_load_u16(it->at);
    it->at += 2;
    it->left--;
    if (it->left == 0 && it->odd) {
        it->at += 2;
    }
    out->ssrc = it->ssrc;
    out->seq = it->seq++;
    out->received = (block & 0x8000) != 0;
    out->ecn = out->received ? (uint8_t)(block >> 13 & 3) : 0;
    out->ato = block & 0x1fff;
    out->arrival = out->received ? arrival(it, out->ato) : LEAT_TIME_NEVER;
    return true;
}
