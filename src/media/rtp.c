/* media/rtp.c: RTP packets read in place.
 *
 *      0                   1                   2                   3
 *      0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
 *     +---+-+-+-------+-+-------------+-------------------------------+
 *     | 2 |P|X|  CC   |M|     PT      |           sequence            |
 *     +---+-+-+-------+-+-------------+-------------------------------+
 *     |                           timestamp                           |
 *     +---------------------------------------------------------------+
 *     |                             SSRC                              |
 *     +---------------------------------------------------------------+
 *     |                        CC words of CSRC                       |
 *     +-------------------------------+-------------------------------+
 *  X: |            profile            |        length in words        |
 *     +-------------------------------+-------------------------------+
 *     |     the extension's words, the payload, P: the padding        |
 *
 * One pass with a cursor whose error sticks; the fields are looked at once all of them are there.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/rtp.h>

#include "base/cursor.h"

enum {
    VERSION = 2,
    ONE_BYTE_END = 15, /* the ID at which a list in the one-byte form ends */
};

/* Takes the padding off the end of what the cursor has left. */
static leat_err trim_padding(leat_cursor *c, uint8_t *padding)
{
    uint8_t n;

    if (leat_cursor_left(c) == 0) {
        return LEAT_ERR_MALFORMED;
    }
    n = c->end[-1];
    if (n == 0 || n > leat_cursor_left(c)) {
        return LEAT_ERR_MALFORMED;
    }
    c->end -= n;
    *padding = n;
    return LEAT_OK;
}

static leat_err parse(leat_span data, bool encrypted, leat_rtp_packet *out)
{
    leat_cursor c;
    uint8_t first, second;

    leat_cursor_init(&c, data.data, data.len);
    first = leat_cursor_u8(&c);
    second = leat_cursor_u8(&c);
    out->seq = leat_cursor_u16(&c);
    out->timestamp = leat_cursor_u32(&c);
    out->ssrc = leat_cursor_u32(&c);
    if (data.len > 0 && first >> 6 != VERSION) {
        return LEAT_ERR_MALFORMED;
    }
    out->csrc_count = first & 0x0f;
    out->csrcs = leat_cursor_bytes(&c, (size_t)out->csrc_count * 4);
    out->marker = second >> 7;
    out->payload_type = second & 0x7f;
    out->has_ext = (first & 0x10) != 0;
    if (out->has_ext) {
        out->ext_profile = leat_cursor_u16(&c);
        out->ext.len = (size_t)leat_cursor_u16(&c) * 4;
        out->ext.data = leat_cursor_bytes(&c, out->ext.len);
    }
    if (!leat_cursor_ok(&c)) {
        return LEAT_ERR_TRUNCATED;
    }
    out->header_len = data.len - leat_cursor_left(&c);
    if ((first & 0x20) && !encrypted) {
        leat_err err = trim_padding(&c, &out->padding);

        if (err != LEAT_OK) {
            return err;
        }
    }
    out->payload = (leat_span){c.at, leat_cursor_left(&c)};
    return LEAT_OK;
}

static leat_err parse_or_clear(leat_span data, bool encrypted, leat_rtp_packet *out)
{
    leat_err err;

    *out = (leat_rtp_packet){.ssrc = 0};
    err = parse(data, encrypted, out);
    if (err != LEAT_OK) {
        *out = (leat_rtp_packet){.ssrc = 0};
    }
    return err;
}

leat_err leat_rtp_parse(leat_span data, leat_rtp_packet *out)
{
    return parse_or_clear(data, false, out);
}

leat_err leat_rtp_parse_header(leat_span data, leat_rtp_packet *out)
{
    return parse_or_clear(data, true, out);
}

uint32_t leat_rtp_csrc(const leat_rtp_packet *packet, unsigned i)
{
    return i < packet->csrc_count ? leat_load_u32(packet->csrcs + (size_t)i * 4) : 0;
}

void leat_rtp_ext_begin(leat_rtp_ext_iter *iter, const leat_rtp_packet *packet)
{
    *iter = (leat_rtp_ext_iter){.at = NULL};
    if (!packet->has_ext || packet->ext.len == 0) {
        return;
    }
    iter->two_byte = (packet->ext_profile & 0xfff0) == LEAT_RTP_EXT_TWO_BYTE;
    if (!iter->two_byte && packet->ext_profile != LEAT_RTP_EXT_ONE_BYTE) {
        return;
    }
    iter->at = packet->ext.data;
    iter->end = packet->ext.data + packet->ext.len;
}

static bool stop(leat_rtp_ext_iter *iter, bool bad)
{
    iter->at = iter->end;
    iter->bad |= bad;
    return false;
}

bool leat_rtp_ext_next(leat_rtp_ext_iter *iter, leat_rtp_ext *out)
{
    size_t len, header = iter->two_byte ? 2 : 1;

    while (iter->at < iter->end && *iter->at == 0) { /* padding, in both forms */
        iter->at++;
    }
    if (iter->at == iter->end) {
        return false;
    }
    if ((size_t)(iter->end - iter->at) < header) {
        return stop(iter, true);
    }
    if (iter->two_byte) {
        out->id = iter->at[0];
        len = iter->at[1];
    } else {
        out->id = iter->at[0] >> 4;
        len = (size_t)(iter->at[0] & 0x0f) + 1;
        /* Both end the list: ID 15, and ID 0 with a length (RFC 8285 §4.2). */
        if (out->id == ONE_BYTE_END || out->id == 0) {
            return stop(iter, out->id == 0);
        }
    }
    iter->at += header;
    if (len > (size_t)(iter->end - iter->at)) {
        return stop(iter, true);
    }
    out->data = (leat_span){iter->at, len};
    iter->at += len;
    return true;
}

bool leat_rtp_ext_find(const leat_rtp_packet *packet, uint8_t id, leat_span *out)
{
    leat_rtp_ext_iter iter;
    leat_rtp_ext ext;

    leat_rtp_ext_begin(&iter, packet);
    while (leat_rtp_ext_next(&iter, &ext)) {
        if (ext.id == id) {
            *out = ext.data;
            return true;
        }
    }
    *out = (leat_span){NULL, 0};
    return false;
}
