/* fuzz/rtp_rtcp.c: libFuzzer on the RTCP readers: every packet of a datagram by every reader.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>

#include <leat/rtcp.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static volatile unsigned sum;

static void touch(leat_span s)
{
    for (size_t i = 0; i < s.len; i++) {
        sum += s.data[i];
    }
}

static void read_reports(const leat_rtcp_packet *p)
{
    leat_rtcp_sender_info info;
    leat_rtcp_report report;
    uint32_t ssrc;
    bool sr = leat_rtcp_sr_parse(p, &info) == LEAT_OK;
    bool rr = leat_rtcp_rr_parse(p, &ssrc) == LEAT_OK;

    for (unsigned i = 0; i < 32; i++) {
        leat_err err = leat_rtcp_report_get(p, i, &report);

        if ((sr || rr) && (err == LEAT_OK) != (i < p->count)) {
            abort();
        }
    }
}

static void read_packet(const leat_rtcp_packet *p)
{
    leat_rtcp_sdes_iter sdes;
    leat_rtcp_sdes_item item;
    leat_rtcp_nack_iter nack;
    leat_rtcp_fir fir;
    leat_rtcp_fb fb;
    leat_span reason;
    uint32_t ssrc;
    uint16_t seq;

    touch(p->whole);
    touch(p->body);
    sum += (unsigned char)leat_rtcp_type_text(p->type, p->count)[0];
    read_reports(p);
    leat_rtcp_sdes_begin(&sdes, p);
    while (leat_rtcp_sdes_next(&sdes, &item)) {
        touch(item.text);
    }
    for (unsigned i = 0; leat_rtcp_bye_source(p, i, &ssrc) == LEAT_OK; i++) {
    }
    if (leat_rtcp_bye_reason(p, &reason) == LEAT_OK) {
        touch(reason);
    }
    if (leat_rtcp_fb_parse(p, &fb) == LEAT_OK) {
        touch(fb.fci);
    }
    if (leat_rtcp_nack_begin(&nack, p) == LEAT_OK) {
        while (leat_rtcp_nack_next(&nack, &seq)) {
            sum += seq;
        }
    }
    for (unsigned i = 0; leat_rtcp_fir_get(p, i, &fir) == LEAT_OK; i++) {
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat_rtcp_iter iter;
    leat_rtcp_packet packet;
    size_t total = 0;

    leat_rtcp_begin(&iter, (leat_span){data, size});
    while (leat_rtcp_next(&iter, &packet)) {
        read_packet(&packet);
        total += packet.whole.len;
    }
    if ((iter.err == LEAT_OK) != (total == size)) {
        abort();
    }
    if (leat_rtcp_check((leat_span){data, size}, true) == LEAT_OK && iter.err != LEAT_OK) {
        abort();
    }
    return 0;
}
