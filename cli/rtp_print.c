/* cli/rtp_print.c: packets as lines, for people or as JSON.
 *
 * One list of fields a packet: field_…() writes "name=value" or "\"name\":value" as the printer is
 * set.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rtp.h"

#include <leat/ccfb.h>
#include <leat/report.h>
#include <leat/twcc.h>

typedef leat_cli_rtp_printer printer;

static void field_name(printer *p, const char *name)
{
    fprintf(p->to, p->json ? ",\"%s\":" : " %s=", name);
}

static void field_number(printer *p, const char *name, uint64_t v)
{
    field_name(p, name);
    fprintf(p->to, "%llu", (unsigned long long)v);
}

static void field_signed(printer *p, const char *name, int64_t v)
{
    field_name(p, name);
    fprintf(p->to, "%lld", (long long)v);
}

/* An SSRC: hexadecimal for people, as Wireshark has it. */
static void field_ssrc(printer *p, const char *name, uint32_t ssrc)
{
    field_name(p, name);
    fprintf(p->to, p->json ? "%u" : "0x%08x", ssrc);
}

/* Text from the network: what is not plain ASCII is escaped. */
static void field_text(printer *p, const char *name, leat_span s)
{
    field_name(p, name);
    fputc('"', p->to);
    for (size_t i = 0; i < s.len; i++) {
        if (s.data[i] < 0x20 || s.data[i] > 0x7e || s.data[i] == '"' || s.data[i] == '\\') {
            fprintf(p->to, "\\u%04x", s.data[i]);
        } else {
            fputc(s.data[i], p->to);
        }
    }
    fputc('"', p->to);
}

static void field_string(printer *p, const char *name, const char *s)
{
    field_text(p, name, (leat_span){(const uint8_t *)s, strlen(s)});
}

static void field_hex(printer *p, const char *name, leat_span s)
{
    field_name(p, name);
    fputs(p->json ? "\"" : "", p->to);
    for (size_t i = 0; i < s.len; i++) {
        fprintf(p->to, "%02x", s.data[i]);
    }
    fputs(p->json ? "\"" : "", p->to);
}

/* Begins a line: time, addresses, what it is. */
static void begin(printer *p, const leat_cli_datagram *d, const char *kind)
{
    char from[LEAT_ADDR_TEXT_MAX], to[LEAT_ADDR_TEXT_MAX];

    if (p->json) {
        fprintf(p->to, "{\"time\":%llu.%09llu,\"kind\":\"%s\"",
                (unsigned long long)(d->time / LEAT_SECOND),
                (unsigned long long)(d->time % LEAT_SECOND), kind);
        if (d->from.family) {
            fprintf(p->to, ",\"from\":\"%s\",\"to\":\"%s\"", leat_addr_format(&d->from, from),
                    leat_addr_format(&d->to, to));
        }
        return;
    }
    fprintf(p->to, "%llu.%06llu", (unsigned long long)(d->time / LEAT_SECOND),
            (unsigned long long)(d->time % LEAT_SECOND / 1000));
    if (d->from.family) {
        fprintf(p->to, " %s > %s", leat_addr_format(&d->from, from), leat_addr_format(&d->to, to));
    }
    fprintf(p->to, " %s", kind);
}

static void end(printer *p)
{
    fputs(p->json ? "}\n" : "\n", p->to);
}

static void bad(printer *p, const leat_cli_datagram *d, size_t offset, const char *what,
                leat_err err)
{
    p->bad++;
    leat_cli_error("offset %llu: %s: %s", (unsigned long long)(d->offset + offset), what,
                   leat_err_text(err));
}

/* ---- RTP --------------------------------------------------------------------------------------
 */

static void print_rtp(printer *p, const leat_cli_datagram *d)
{
    leat_rtp_packet packet;
    leat_rtp_ext_iter iter;
    leat_rtp_ext ext;
    leat_err err = leat_rtp_parse(d->data, &packet);

    if (d->cut > 0 && d->data.data[0] & 0x20) {
        err = LEAT_ERR_TRUNCATED; /* how much of it is padding stands at its end */
    }
    if (err != LEAT_OK) {
        bad(p, d, 0, "RTP", err);
        return;
    }
    p->rtp++;
    begin(p, d, p->json ? "rtp" : "RTP");
    field_ssrc(p, "ssrc", packet.ssrc);
    field_number(p, "pt", packet.payload_type);
    field_number(p, "seq", packet.seq);
    field_number(p, "ts", packet.timestamp);
    field_number(p, "marker", packet.marker);
    field_number(p, "len", packet.payload.len + d->cut);
    if (d->cut) {
        field_number(p, "cut", d->cut);
    }
    if (packet.padding) {
        field_number(p, "padding", packet.padding);
    }
    for (unsigned i = 0; i < packet.csrc_count; i++) {
        char name[16];

        snprintf(name, sizeof name, "csrc%u", i);
        field_ssrc(p, name, leat_rtp_csrc(&packet, i));
    }
    leat_rtp_ext_begin(&iter, &packet);
    while (leat_rtp_ext_next(&iter, &ext)) {
        char name[16];

        snprintf(name, sizeof name, "ext%u", ext.id);
        field_hex(p, name, ext.data);
    }
    end(p);
    if (iter.bad) {
        bad(p, d, packet.header_len, "RTP header extension", LEAT_ERR_TRUNCATED);
    }
}

/* ---- RTCP -------------------------------------------------------------------------------------
 */

static void print_reports(printer *p, const leat_rtcp_packet *packet)
{
    leat_rtcp_report r;

    if (p->json) {
        fputs(",\"reports\":[", p->to);
    }
    for (unsigned i = 0; leat_rtcp_report_get(packet, i, &r) == LEAT_OK; i++) {
        if (p->json) {
            fprintf(p->to, "%s{\"ssrc\":%u", i ? "," : "", r.ssrc);
        } else {
            fprintf(p->to, " [ssrc=0x%08x", r.ssrc);
        }
        field_number(p, "fraction", r.fraction_lost);
        field_signed(p, "lost", r.lost);
        field_number(p, "highest", r.highest_seq);
        field_number(p, "jitter", r.jitter);
        field_number(p, "lsr", r.last_sr);
        field_number(p, "dlsr", r.delay_last_sr);
        fputc(p->json ? '}' : ']', p->to);
    }
    fputs(p->json ? "]" : "", p->to);
}

static leat_err print_sr(printer *p, const leat_rtcp_packet *packet)
{
    leat_rtcp_sender_info info;
    leat_err err = leat_rtcp_sr_parse(packet, &info);

    if (err == LEAT_OK) {
        field_ssrc(p, "ssrc", info.ssrc);
        field_number(p, "ntp", info.ntp);
        field_number(p, "ts", info.timestamp);
        field_number(p, "packets", info.packets);
        field_number(p, "octets", info.octets);
        print_reports(p, packet);
    }
    return err;
}

static leat_err print_rr(printer *p, const leat_rtcp_packet *packet)
{
    uint32_t ssrc;
    leat_err err = leat_rtcp_rr_parse(packet, &ssrc);

    if (err == LEAT_OK) {
        field_ssrc(p, "ssrc", ssrc);
        print_reports(p, packet);
    }
    return err;
}

static leat_err print_sdes(printer *p, const leat_rtcp_packet *packet)
{
    leat_rtcp_sdes_iter iter;
    leat_rtcp_sdes_item item;
    unsigned n = 0;

    fputs(p->json ? ",\"items\":[" : "", p->to);
    leat_rtcp_sdes_begin(&iter, packet);
    while (leat_rtcp_sdes_next(&iter, &item)) {
        fprintf(p->to, p->json ? "%s{\"ssrc\":%u" : "%s [ssrc=0x%08x", n++ && p->json ? "," : "",
                item.ssrc);
        field_number(p, "type", item.type);
        field_text(p, "text", item.text);
        fputc(p->json ? '}' : ']', p->to);
    }
    fputs(p->json ? "]" : "", p->to);
    return iter.err;
}

static leat_err print_bye(printer *p, const leat_rtcp_packet *packet)
{
    leat_span reason;
    leat_err err = leat_rtcp_bye_reason(packet, &reason);
    uint32_t ssrc;

    for (unsigned i = 0; leat_rtcp_bye_source(packet, i, &ssrc) == LEAT_OK; i++) {
        char name[16];

        snprintf(name, sizeof name, "ssrc%u", i);
        field_ssrc(p, name, ssrc);
    }
    if (err == LEAT_OK && reason.len > 0) {
        field_text(p, "reason", reason);
    }
    return err;
}

static leat_err print_nack(printer *p, const leat_rtcp_packet *packet)
{
    leat_rtcp_nack_iter iter;
    leat_err err = leat_rtcp_nack_begin(&iter, packet);
    uint16_t seq;
    unsigned n = 0;

    field_name(p, "seqs");
    fputs(p->json ? "[" : "", p->to);
    while (leat_rtcp_nack_next(&iter, &seq)) {
        fprintf(p->to, "%s%u", n++ ? "," : "", seq);
    }
    fputs(p->json ? "]" : "", p->to);
    return err;
}

static leat_err print_twcc(printer *p, const leat_rtcp_packet *packet)
{
    leat_twcc_iter it;
    leat_err err = leat_twcc_parse(packet->whole, &it);
    leat_twcc_status status;
    leat_time last = ((leat_time)it.reference + (1u << 24)) * LEAT_TWCC_REFERENCE;
    unsigned n = 0;

    if (err != LEAT_OK) {
        return err;
    }
    field_number(p, "base", it.base);
    field_number(p, "statuses", it.status_count);
    field_number(p, "reference", it.reference);
    field_number(p, "feedback", it.count);
    /* Each that came: its number and its delta in ticks of 250 µs. */
    field_name(p, "received");
    fputs(p->json ? "[" : "", p->to);
    while (leat_twcc_next(&it, &status)) {
        if (status.received) {
            fprintf(p->to, p->json ? "%s[%u,%lld]" : "%s%u:%lld", n++ ? "," : "", status.seq,
                    (long long)((int64_t)(status.arrival - last) / (int64_t)LEAT_TWCC_TICK));
            last = status.arrival;
        }
    }
    fputs(p->json ? "]" : "", p->to);
    return LEAT_OK;
}

static leat_err print_ccfb(printer *p, const leat_rtcp_packet *packet)
{
    leat_ccfb_iter it;
    leat_err err = leat_ccfb_parse(packet->whole, &it);
    leat_ccfb_status status;
    unsigned n = 0;

    if (err != LEAT_OK) {
        return err;
    }
    field_number(p, "report_time", it.report_time);
    field_name(p, "blocks");
    fputs(p->json ? "[" : "", p->to);
    while (leat_ccfb_next(&it, &status)) {
        fprintf(p->to, p->json ? "%s[%u,%u,%d,%u,%u]" : "%s0x%08x/%u:%d/%u/%u", n++ ? "," : "",
                status.ssrc, status.seq, status.received, status.ecn, status.ato);
    }
    fputs(p->json ? "]" : "", p->to);
    return LEAT_OK;
}

static leat_err print_fir(printer *p, const leat_rtcp_packet *packet)
{
    leat_rtcp_fir fir;

    for (unsigned i = 0; leat_rtcp_fir_get(packet, i, &fir) == LEAT_OK; i++) {
        char name[24];

        snprintf(name, sizeof name, "source%u", i);
        field_ssrc(p, name, fir.ssrc);
        snprintf(name, sizeof name, "command%u", i);
        field_number(p, name, fir.command);
    }
    return LEAT_OK;
}

static leat_err print_feedback(printer *p, const leat_rtcp_packet *packet)
{
    leat_rtcp_fb fb;
    leat_err err = leat_rtcp_fb_parse(packet, &fb);
    bool rtpfb = packet->type == LEAT_RTCP_RTPFB;

    if (rtpfb && packet->count == LEAT_RTCP_FMT_CCFB) {
        return print_ccfb(p, packet); /* has no media SSRC */
    }
    if (err != LEAT_OK) {
        return err;
    }
    field_ssrc(p, "sender", fb.sender_ssrc);
    field_ssrc(p, "media", fb.media_ssrc);
    if (rtpfb && packet->count == LEAT_RTCP_FMT_NACK) {
        return print_nack(p, packet);
    }
    if (rtpfb && packet->count == LEAT_RTCP_FMT_TWCC) {
        return print_twcc(p, packet);
    }
    if (!rtpfb && packet->count == LEAT_RTCP_FMT_FIR) {
        return print_fir(p, packet);
    }
    return LEAT_OK;
}

static leat_err print_body(printer *p, const leat_rtcp_packet *packet)
{
    switch (packet->type) {
    case LEAT_RTCP_SR:
        return print_sr(p, packet);
    case LEAT_RTCP_RR:
        return print_rr(p, packet);
    case LEAT_RTCP_SDES:
        return print_sdes(p, packet);
    case LEAT_RTCP_BYE:
        return print_bye(p, packet);
    case LEAT_RTCP_RTPFB:
    case LEAT_RTCP_PSFB:
        return print_feedback(p, packet);
    default:
        return LEAT_OK;
    }
}

static void print_rtcp(printer *p, const leat_cli_datagram *d)
{
    leat_rtcp_iter iter;
    leat_rtcp_packet packet;

    leat_rtcp_begin(&iter, d->data);
    while (leat_rtcp_next(&iter, &packet)) {
        const char *text = leat_rtcp_type_text(packet.type, packet.count);
        leat_err err;

        p->rtcp++;
        begin(p, d, p->json ? "rtcp" : "RTCP");
        field_number(p, "type", packet.type);
        field_number(p, "count", packet.count);
        field_string(p, "name", text);
        err = print_body(p, &packet);
        end(p);
        if (err != LEAT_OK) {
            bad(p, d, iter.offset - packet.whole.len, text, err);
        }
    }
    if (iter.err != LEAT_OK) {
        bad(p, d, iter.offset, "RTCP", iter.err);
    }
}

void leat_cli_rtp_print(printer *p, const leat_cli_datagram *d)
{
    if (d->data.len == 0 || d->data.data[0] >> 6 != 2) {
        p->other++; /* STUN, DTLS, anything */
    } else if (leat_rtp_is_rtcp(d->data)) {
        print_rtcp(p, d);
    } else {
        print_rtp(p, d);
    }
}
