/* media/rtcp_write.c: RTCP packets appended to a datagram in the making.
 *
 * start() reserves the header; finish() fills in the length and takes the packet into the datagram,
 * or drops it whole when something did not fit.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/rtcp.h>

#include "base/cursor.h"

enum { COUNT_MAX = 31, TEXT_MAX = 255 };

static leat_writer start(leat_rtcp_writer *w, uint8_t type, size_t count)
{
    leat_writer out;

    leat_writer_init(&out, w->data + w->len, w->cap - w->len);
    leat_writer_u8(&out, (uint8_t)(0x80 | count));
    leat_writer_u8(&out, type);
    leat_writer_u16(&out, 0);
    return out;
}

static leat_err finish(leat_rtcp_writer *w, leat_writer *out)
{
    size_t len = leat_writer_len(out);

    if (!leat_writer_ok(out)) {
        return LEAT_ERR_TRUNCATED;
    }
    LEAT_ASSERT(len % 4 == 0);
    if (len / 4 - 1 > UINT16_MAX) {
        return LEAT_ERR_INVALID;
    }
    leat_store_u16(out->start + 2, (uint16_t)(len / 4 - 1));
    w->len += len;
    return LEAT_OK;
}

static void write_report(leat_writer *out, const leat_rtcp_report *r)
{
    int32_t lost = r->lost;

    lost = lost > 0x7fffff ? 0x7fffff : lost;
    lost = lost < -0x800000 ? -0x800000 : lost;
    leat_writer_u32(out, r->ssrc);
    leat_writer_u8(out, r->fraction_lost);
    leat_writer_u24(out, (uint32_t)lost & 0xffffff);
    leat_writer_u32(out, r->highest_seq);
    leat_writer_u32(out, r->jitter);
    leat_writer_u32(out, r->last_sr);
    leat_writer_u32(out, r->delay_last_sr);
}

leat_err leat_rtcp_write_sr(leat_rtcp_writer *w, const leat_rtcp_sender_info *info,
                            const leat_rtcp_report *reports, size_t count)
{
    leat_writer out;

    if (count > COUNT_MAX) {
        return LEAT_ERR_INVALID;
    }
    out = start(w, LEAT_RTCP_SR, count);
    leat_writer_u32(&out, info->ssrc);
    leat_writer_u64(&out, info->ntp);
    leat_writer_u32(&out, info->timestamp);
    leat_writer_u32(&out, info->packets);
    leat_writer_u32(&out, info->octets);
    for (size_t i = 0; i < count; i++) {
        write_report(&out, &reports[i]);
    }
    return finish(w, &out);
}

leat_err leat_rtcp_write_rr(leat_rtcp_writer *w, uint32_t ssrc, const leat_rtcp_report *reports,
                            size_t count)
{
    leat_writer out;

    if (count > COUNT_MAX) {
        return LEAT_ERR_INVALID;
    }
    out = start(w, LEAT_RTCP_RR, count);
    leat_writer_u32(&out, ssrc);
    for (size_t i = 0; i < count; i++) {
        write_report(&out, &reports[i]);
    }
    return finish(w, &out);
}

/* Ends a chunk: a zero, and zeros up to the next word. */
static void end_chunk(leat_writer *out)
{
    leat_writer_zero(out, 4 - leat_writer_len(out) % 4);
}

leat_err leat_rtcp_write_sdes(leat_rtcp_writer *w, const leat_rtcp_sdes_item *items, size_t count)
{
    size_t chunks = 0;
    leat_writer out;

    for (size_t i = 0; i < count; i++) {
        chunks += i == 0 || items[i].ssrc != items[i - 1].ssrc;
        if (items[i].type == 0 || items[i].text.len > TEXT_MAX) {
            return LEAT_ERR_INVALID;
        }
    }
    if (chunks > COUNT_MAX) {
        return LEAT_ERR_INVALID;
    }
    out = start(w, LEAT_RTCP_SDES, chunks);
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || items[i].ssrc != items[i - 1].ssrc) {
            if (i > 0) {
                end_chunk(&out);
            }
            leat_writer_u32(&out, items[i].ssrc);
        }
        leat_writer_u8(&out, items[i].type);
        leat_writer_u8(&out, (uint8_t)items[i].text.len);
        leat_writer_bytes(&out, items[i].text.data, items[i].text.len);
    }
    if (count > 0) {
        end_chunk(&out);
    }
    return finish(w, &out);
}

leat_err leat_rtcp_write_bye(leat_rtcp_writer *w, const uint32_t *ssrcs, size_t count,
                             leat_span reason)
{
    leat_writer out;

    if (count > COUNT_MAX || reason.len > TEXT_MAX) {
        return LEAT_ERR_INVALID;
    }
    out = start(w, LEAT_RTCP_BYE, count);
    for (size_t i = 0; i < count; i++) {
        leat_writer_u32(&out, ssrcs[i]);
    }
    if (reason.len > 0) {
        leat_writer_u8(&out, (uint8_t)reason.len);
        leat_writer_bytes(&out, reason.data, reason.len);
        leat_writer_zero(&out, (size_t)(-leat_writer_len(&out) % 4));
    }
    return finish(w, &out);
}

static leat_writer start_fb(leat_rtcp_writer *w, uint8_t type, uint8_t fmt, uint32_t sender_ssrc,
                            uint32_t media_ssrc)
{
    leat_writer out = start(w, type, fmt);

    leat_writer_u32(&out, sender_ssrc);
    leat_writer_u32(&out, media_ssrc);
    return out;
}

leat_err leat_rtcp_write_nack(leat_rtcp_writer *w, uint32_t sender_ssrc, uint32_t media_ssrc,
                              const uint16_t *seqs, size_t count)
{
    leat_writer out;

    if (count == 0) {
        return LEAT_ERR_INVALID;
    }
    out = start_fb(w, LEAT_RTCP_RTPFB, LEAT_RTCP_FMT_NACK, sender_ssrc, media_ssrc);
    for (size_t i = 0; i < count;) {
        uint16_t pid = seqs[i++];
        uint16_t following = 0;

        /* A number that comes twice in the list shares its bit. */
        while (i < count && (uint16_t)(seqs[i] - pid) <= 16) {
            uint16_t ahead = (uint16_t)(seqs[i++] - pid);

            following |= ahead ? (uint16_t)(1u << (ahead - 1)) : 0;
        }
        leat_writer_u16(&out, pid);
        leat_writer_u16(&out, following);
    }
    return finish(w, &out);
}

leat_err leat_rtcp_write_pli(leat_rtcp_writer *w, uint32_t sender_ssrc, uint32_t media_ssrc)
{
    leat_writer out = start_fb(w, LEAT_RTCP_PSFB, LEAT_RTCP_FMT_PLI, sender_ssrc, media_ssrc);

    return finish(w, &out);
}

leat_err leat_rtcp_write_fir(leat_rtcp_writer *w, uint32_t sender_ssrc,
                             const leat_rtcp_fir *entries, size_t count)
{
    leat_writer out;

    if (count == 0) {
        return LEAT_ERR_INVALID;
    }
    out = start_fb(w, LEAT_RTCP_PSFB, LEAT_RTCP_FMT_FIR, sender_ssrc, 0);
    for (size_t i = 0; i < count; i++) {
        leat_writer_u32(&out, entries[i].ssrc);
        leat_writer_u8(&out, entries[i].command);
        leat_writer_zero(&out, 3);
    }
    return finish(w, &out);
}
