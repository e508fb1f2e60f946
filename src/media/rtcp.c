/* media/rtcp.c: RTCP packets read in place.
 *
 * Every packet begins with version, padding bit, a count of five bits (a format in feedback), the
 * type and its length in words less one. leat_rtcp_next() checks these; the readers of one kind
 * then work on the body, whose length is known, with a cursor.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/rtcp.h>

#include "base/cursor.h"

enum {
    VERSION = 2,
    HEADER = 4,
    SENDER_INFO = 20, /* what an SR has after the SSRC */
    REPORT = 24,
    FB_HEAD = 8, /* sender's and media's SSRC */
};

const char *leat_rtcp_type_text(uint8_t type, uint8_t fmt)
{
#define FMT_CASE(name, of, number, text)                                                           \
    if (type == LEAT_RTCP_##of && fmt == (number)) {                                               \
        return text;                                                                               \
    }
    LEAT_RTCP_FMT_LIST(FMT_CASE)
#undef FMT_CASE
    switch (type) {
#define TYPE_CASE(name, number, text)                                                              \
    case (number):                                                                                 \
        return text;
        LEAT_RTCP_TYPE_LIST(TYPE_CASE)
#undef TYPE_CASE
    default:
        return "unknown";
    }
}

/* ---- the packets of a datagram ----------------------------------------------------------------
 */

void leat_rtcp_begin(leat_rtcp_iter *iter, leat_span data)
{
    *iter = (leat_rtcp_iter){.all = data};
}

/* Reads the packet at the start of `data`. */
static leat_err read_packet(leat_span data, leat_rtcp_packet *out)
{
    const uint8_t *p = data.data;
    size_t len;

    *out = (leat_rtcp_packet){.type = 0};
    if (data.len < HEADER) {
        return LEAT_ERR_TRUNCATED;
    }
    if (p[0] >> 6 != VERSION) {
        return LEAT_ERR_MALFORMED;
    }
    len = ((size_t)leat_load_u16(p + 2) + 1) * 4;
    if (len > data.len) {
        return LEAT_ERR_TRUNCATED;
    }
    if (p[0] & 0x20) {
        uint8_t padding = p[len - 1];

        if (padding == 0 || padding > len - HEADER) {
            return LEAT_ERR_MALFORMED;
        }
        out->padding = padding;
    }
    out->type = p[1];
    out->count = p[0] & 0x1f;
    out->whole = (leat_span){p, len};
    out->body = (leat_span){p + HEADER, len - HEADER - out->padding};
    return LEAT_OK;
}

bool leat_rtcp_next(leat_rtcp_iter *iter, leat_rtcp_packet *out)
{
    leat_span rest;

    if (iter->err != LEAT_OK || iter->offset == iter->all.len) {
        return false;
    }
    rest = (leat_span){iter->all.data + iter->offset, iter->all.len - iter->offset};
    iter->err = read_packet(rest, out);
    if (iter->err != LEAT_OK) {
        return false;
    }
    iter->offset += out->whole.len;
    return true;
}

leat_err leat_rtcp_check(leat_span data, bool reduced_size)
{
    leat_rtcp_iter iter;
    leat_rtcp_packet packet;
    bool first = true;

    if (data.len == 0) {
        return LEAT_ERR_TRUNCATED;
    }
    leat_rtcp_begin(&iter, data);
    while (leat_rtcp_next(&iter, &packet)) {
        if (first && !reduced_size && packet.type != LEAT_RTCP_SR && packet.type != LEAT_RTCP_RR) {
            return LEAT_ERR_MALFORMED;
        }
        if (packet.padding && iter.offset != data.len) {
            return LEAT_ERR_MALFORMED;
        }
        first = false;
    }
    return iter.err;
}

/* ---- reports ----------------------------------------------------------------------------------
 */

leat_err leat_rtcp_sr_parse(const leat_rtcp_packet *packet, leat_rtcp_sender_info *out)
{
    leat_cursor c;

    *out = (leat_rtcp_sender_info){.ssrc = 0};
    if (packet->type != LEAT_RTCP_SR) {
        return LEAT_ERR_INVALID;
    }
    if (packet->body.len < 4 + SENDER_INFO + (size_t)packet->count * REPORT) {
        return LEAT_ERR_TRUNCATED;
    }
    leat_cursor_init(&c, packet->body.data, packet->body.len);
    out->ssrc = leat_cursor_u32(&c);
    out->ntp = leat_cursor_u64(&c);
    out->timestamp = leat_cursor_u32(&c);
    out->packets = leat_cursor_u32(&c);
    out->octets = leat_cursor_u32(&c);
    return LEAT_OK;
}

leat_err leat_rtcp_rr_parse(const leat_rtcp_packet *packet, uint32_t *ssrc)
{
    *ssrc = 0;
    if (packet->type != LEAT_RTCP_RR) {
        return LEAT_ERR_INVALID;
    }
    if (packet->body.len < 4 + (size_t)packet->count * REPORT) {
        return LEAT_ERR_TRUNCATED;
    }
    *ssrc = leat_load_u32(packet->body.data);
    return LEAT_OK;
}

leat_err leat_rtcp_report_get(const leat_rtcp_packet *packet, unsigned i, leat_rtcp_report *out)
{
    size_t before = 4 + (packet->type == LEAT_RTCP_SR ? SENDER_INFO : 0) + (size_t)i * REPORT;
    leat_cursor c;
    uint32_t lost;

    *out = (leat_rtcp_report){.ssrc = 0};
    if (packet->type != LEAT_RTCP_SR && packet->type != LEAT_RTCP_RR) {
        return LEAT_ERR_INVALID;
    }
    if (i >= packet->count) {
        return LEAT_ERR_NOT_FOUND;
    }
    leat_cursor_init(&c, packet->body.data, packet->body.len);
    leat_cursor_skip(&c, before);
    out->ssrc = leat_cursor_u32(&c);
    out->fraction_lost = leat_cursor_u8(&c);
    lost = leat_cursor_u24(&c);
    out->lost = (int32_t)(lost ^ 0x800000u) - 0x800000; /* 24 bits with a sign */
    out->highest_seq = leat_cursor_u32(&c);
    out->jitter = leat_cursor_u32(&c);
    out->last_sr = leat_cursor_u32(&c);
    out->delay_last_sr = leat_cursor_u32(&c);
    if (!leat_cursor_ok(&c)) {
        *out = (leat_rtcp_report){.ssrc = 0};
        return LEAT_ERR_TRUNCATED;
    }
    return LEAT_OK;
}

/* ---- SDES and BYE -----------------------------------------------------------------------------
 */

void leat_rtcp_sdes_begin(leat_rtcp_sdes_iter *iter, const leat_rtcp_packet *packet)
{
    *iter = (leat_rtcp_sdes_iter){
        .at = packet->body.data,
        .end = packet->body.data + packet->body.len,
        .chunks_left = packet->count,
    };
    if (packet->type != LEAT_RTCP_SDES) {
        iter->err = LEAT_ERR_INVALID;
        iter->chunks_left = 0;
    }
}

static bool sdes_fail(leat_rtcp_sdes_iter *iter)
{
    iter->err = LEAT_ERR_TRUNCATED;
    iter->chunks_left = 0;
    iter->in_chunk = false;
    return false;
}

/* A chunk ends in one to four zero bytes, up to a word's boundary. False: the body ends before. */
static bool end_chunk(leat_rtcp_sdes_iter *iter)
{
    size_t used = (size_t)(iter->at - iter->chunk);
    size_t pad = 4 - used % 4;

    if ((size_t)(iter->end - iter->at) < pad) {
        return false;
    }
    iter->at += pad;
    iter->in_chunk = false;
    return true;
}

bool leat_rtcp_sdes_next(leat_rtcp_sdes_iter *iter, leat_rtcp_sdes_item *out)
{
    for (;;) {
        if (!iter->in_chunk) {
            if (iter->chunks_left == 0) {
                return false;
            }
            if (iter->end - iter->at < 4) {
                return sdes_fail(iter);
            }
            iter->chunks_left--;
            iter->chunk = iter->at;
            iter->ssrc = leat_load_u32(iter->at);
            iter->at += 4;
            iter->in_chunk = true;
        }
        if (iter->at == iter->end) {
            return sdes_fail(iter);
        }
        if (*iter->at != 0) {
            break;
        }
        if (!end_chunk(iter)) {
            return sdes_fail(iter);
        }
    }
    if (iter->end - iter->at < 2 || iter->end - iter->at - 2 < iter->at[1]) {
        return sdes_fail(iter);
    }
    out->ssrc = iter->ssrc;
    out->type = iter->at[0];
    out->text = (leat_span){iter->at + 2, iter->at[1]};
    iter->at += 2 + out->text.len;
    return true;
}

leat_err leat_rtcp_bye_source(const leat_rtcp_packet *packet, unsigned i, uint32_t *ssrc)
{
    *ssrc = 0;
    if (packet->type != LEAT_RTCP_BYE) {
        return LEAT_ERR_INVALID;
    }
    if (i >= packet->count) {
        return LEAT_ERR_NOT_FOUND;
    }
    if (packet->body.len < ((size_t)i + 1) * 4) {
        return LEAT_ERR_TRUNCATED;
    }
    *ssrc = leat_load_u32(packet->body.data + (size_t)i * 4);
    return LEAT_OK;
}

leat_err leat_rtcp_bye_reason(const leat_rtcp_packet *packet, leat_span *reason)
{
    size_t before = (size_t)packet->count * 4;
    const uint8_t *at;

    *reason = (leat_span){NULL, 0};
    if (packet->type != LEAT_RTCP_BYE) {
        return LEAT_ERR_INVALID;
    }
    if (packet->body.len < before) {
        return LEAT_ERR_TRUNCATED;
    }
    if (packet->body.len == before) {
        return LEAT_OK;
    }
    at = packet->body.data + before;
    if (packet->body.len - before - 1 < at[0]) {
        return LEAT_ERR_TRUNCATED;
    }
    *reason = (leat_span){at + 1, at[0]};
    return LEAT_OK;
}

/* ---- feedback ---------------------------------------------------------------------------------
 */

leat_err leat_rtcp_fb_parse(const leat_rtcp_packet *packet, leat_rtcp_fb *out)
{
    *out = (leat_rtcp_fb){.sender_ssrc = 0};
    if (packet->type != LEAT_RTCP_RTPFB && packet->type != LEAT_RTCP_PSFB) {
        return LEAT_ERR_INVALID;
    }
    if (packet->body.len < FB_HEAD) {
        return LEAT_ERR_TRUNCATED;
    }
    out->sender_ssrc = leat_load_u32(packet->body.data);
    out->media_ssrc = leat_load_u32(packet->body.data + 4);
    out->fci = (leat_span){packet->body.data + FB_HEAD, packet->body.len - FB_HEAD};
    return LEAT_OK;
}

leat_err leat_rtcp_nack_begin(leat_rtcp_nack_iter *iter, const leat_rtcp_packet *packet)
{
    leat_rtcp_fb fb;
    leat_err err = leat_rtcp_fb_parse(packet, &fb);

    *iter = (leat_rtcp_nack_iter){.at = NULL};
    if (packet->type != LEAT_RTCP_RTPFB || packet->count != LEAT_RTCP_FMT_NACK) {
        return LEAT_ERR_INVALID;
    }
    if (err != LEAT_OK) {
        return err;
    }
    if (fb.fci.len == 0 || fb.fci.len % 4 != 0) {
        return LEAT_ERR_MALFORMED;
    }
    iter->at = fb.fci.data;
    iter->end = fb.fci.data + fb.fci.len;
    return LEAT_OK;
}

bool leat_rtcp_nack_next(leat_rtcp_nack_iter *iter, uint16_t *seq)
{
    if (iter->mask == 0) {
        if (iter->at == iter->end) {
            return false;
        }
        iter->pid = leat_load_u16(iter->at);
        iter->mask = (uint32_t)leat_load_u16(iter->at + 2) << 1 | 1;
        iter->at += 4;
    }
    *seq = (uint16_t)(iter->pid + __builtin_ctz(iter->mask));
    iter->mask &= iter->mask - 1;
    return true;
}

leat_err leat_rtcp_fir_get(const leat_rtcp_packet *packet, unsigned i, leat_rtcp_fir *out)
{
    leat_rtcp_fb fb;
    leat_err err = leat_rtcp_fb_parse(packet, &fb);
    const uint8_t *at;

    *out = (leat_rtcp_fir){.ssrc = 0};
    if (packet->type != LEAT_RTCP_PSFB || packet->count != LEAT_RTCP_FMT_FIR) {
        return LEAT_ERR_INVALID;
    }
    if (err != LEAT_OK) {
        return err;
    }
    if (i >= fb.fci.len / 8) {
        return LEAT_ERR_NOT_FOUND;
    }
    at = fb.fci.data + (size_t)i * 8;
    out->ssrc = leat_load_u32(at);
    out->command = at[4];
    return LEAT_OK;
}
