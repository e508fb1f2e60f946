/* fuzz/rtp.c: libFuzzer on the RTP parser: whatever it accepts is walked to the end, written anew,
 * and must read the same.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include <leat/rtp.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

static unsigned touch(leat_span s)
{
    unsigned sum = 0;

    for (size_t i = 0; i < s.len; i++) {
        sum += s.data[i];
    }
    return sum;
}

/* The header written from what was read. */
static void rewrite(const leat_rtp_packet *p)
{
    static uint8_t out[300000];
    uint32_t csrcs[LEAT_RTP_CSRCS_MAX];
    leat_rtp_ext exts[255];
    leat_rtp_ext_iter iter;
    leat_rtp_header h = {.ssrc = p->ssrc,
                         .timestamp = p->timestamp,
                         .seq = p->seq,
                         .payload_type = p->payload_type,
                         .marker = p->marker,
                         .csrc_count = p->csrc_count,
                         .csrcs = csrcs,
                         .exts = exts};
    leat_rtp_packet again;
    size_t len;

    for (unsigned i = 0; i < p->csrc_count; i++) {
        csrcs[i] = leat_rtp_csrc(p, i);
    }
    leat_rtp_ext_begin(&iter, p);
    while (h.ext_count < 255 && leat_rtp_ext_next(&iter, &exts[h.ext_count])) {
        h.ext_count++;
    }
    check(leat_rtp_write(&h, out, sizeof out, &len) == LEAT_OK);
    check(len == leat_rtp_header_len(&h));
    check(leat_rtp_parse((leat_span){out, len}, &again) == LEAT_OK);
    check(again.ssrc == p->ssrc && again.seq == p->seq && again.timestamp == p->timestamp);
    check(again.header_len == len && again.payload.len == 0);
    leat_rtp_ext_begin(&iter, &again);
    for (unsigned i = 0; i < h.ext_count; i++) {
        leat_rtp_ext e;

        check(leat_rtp_ext_next(&iter, &e));
        check(e.id == exts[i].id && e.data.len == exts[i].data.len);
        check(e.data.len == 0 || memcmp(e.data.data, exts[i].data.data, e.data.len) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat_rtp_packet p;
    leat_rtp_ext_iter iter;
    leat_rtp_ext ext;
    leat_span found;
    volatile unsigned sum = 0;

    if (leat_rtp_parse((leat_span){data, size}, &p) != LEAT_OK) {
        check(p.payload.data == NULL && p.header_len == 0);
        return 0;
    }
    check(p.header_len + p.payload.len + p.padding == size);
    sum += touch(p.payload) + touch(p.ext) + leat_rtp_csrc(&p, 15);
    leat_rtp_ext_begin(&iter, &p);
    while (leat_rtp_ext_next(&iter, &ext)) {
        sum += touch(ext.data);
        check(leat_rtp_ext_find(&p, ext.id, &found));
    }
    rewrite(&p);
    (void)sum;
    return 0;
}
