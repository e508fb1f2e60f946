/* media/rtp_write.c: RTP headers written. The length is worked out first, so that a header that
 * does not fit leaves nothing behind.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/rtp.h>

#include "base/cursor.h"

/* Whether all elements fit the one-byte form: one byte less each, and what most receivers expect.
 */
static bool is_one_byte(const leat_rtp_header *h)
{
    for (unsigned i = 0; i < h->ext_count; i++) {
        if (h->exts[i].id > 14 || h->exts[i].data.len == 0 || h->exts[i].data.len > 16) {
            return false;
        }
    }
    return true;
}

/* Bytes of the elements, not yet rounded up to words; SIZE_MAX: one of them cannot be written. */
static size_t elements_len(const leat_rtp_header *h, bool one_byte)
{
    size_t len = 0;

    for (unsigned i = 0; i < h->ext_count; i++) {
        if (h->exts[i].id == 0 || h->exts[i].data.len > 255) {
            return SIZE_MAX;
        }
        len += (one_byte ? 1 : 2) + h->exts[i].data.len;
    }
    return len;
}

static size_t round_up(size_t n)
{
    return (n + 3) & ~(size_t)3;
}

size_t leat_rtp_header_len(const leat_rtp_header *h)
{
    size_t len = LEAT_RTP_HEADER + (size_t)h->csrc_count * 4;
    size_t elements;

    if (h->payload_type > 127 || h->csrc_count > LEAT_RTP_CSRCS_MAX) {
        return 0;
    }
    if (h->ext_count == 0) {
        return len;
    }
    elements = elements_len(h, is_one_byte(h));
    return elements == SIZE_MAX ? 0 : len + 4 + round_up(elements);
}

static void write_ext(const leat_rtp_header *h, leat_writer *w)
{
    bool one_byte = is_one_byte(h);
    size_t len = elements_len(h, one_byte);

    leat_writer_u16(w, one_byte ? LEAT_RTP_EXT_ONE_BYTE : LEAT_RTP_EXT_TWO_BYTE);
    leat_writer_u16(w, (uint16_t)(round_up(len) / 4));
    for (unsigned i = 0; i < h->ext_count; i++) {
        const leat_rtp_ext *e = &h->exts[i];

        if (one_byte) {
            leat_writer_u8(w, (uint8_t)((unsigned)e->id << 4 | (unsigned)(e->data.len - 1)));
        } else {
            leat_writer_u8(w, e->id);
            leat_writer_u8(w, (uint8_t)e->data.len);
        }
        leat_writer_bytes(w, e->data.data, e->data.len);
    }
    leat_writer_zero(w, round_up(len) - len);
}

leat_err leat_rtp_write(const leat_rtp_header *h, uint8_t *out, size_t cap, size_t *len)
{
    size_t need = leat_rtp_header_len(h);
    leat_writer w;

    *len = 0;
    if (need == 0) {
        return LEAT_ERR_INVALID;
    }
    if (need > cap) {
        return LEAT_ERR_TRUNCATED;
    }
    leat_writer_init(&w, out, need);
    leat_writer_u8(
        &w, (uint8_t)(0x80 | (h->padding ? 0x20 : 0) | (h->ext_count ? 0x10 : 0) | h->csrc_count));
    leat_writer_u8(&w, (uint8_t)((h->marker ? 0x80 : 0) | h->payload_type));
    leat_writer_u16(&w, h->seq);
    leat_writer_u32(&w, h->timestamp);
    leat_writer_u32(&w, h->ssrc);
    for (unsigned i = 0; i < h->csrc_count; i++) {
        leat_writer_u32(&w, h->csrcs[i]);
    }
    if (h->ext_count) {
        write_ext(h, &w);
    }
    LEAT_ASSERT(leat_writer_ok(&w));
    LEAT_ASSERT(leat_writer_len(&w) == need);
    *len = need;
    return LEAT_OK;
}

void leat_rtp_write_padding(uint8_t *out, uint8_t n)
{
    LEAT_ASSERT(n > 0);
    memset(out, 0, n);
    out[n - 1] = n;
}
