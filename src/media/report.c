/* media/report.c: what reports say, counted (RFC 3550 A.1, A.3, A.8).
 *
 * Numbers are unwrapped; the extended highest sequence number of a report is the low half of that.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/report.h>
#include <leat/rtp.h>

#include "base/time.h"
#include "media/restart.h"

enum {
    ORIGIN = 1 << 20,    /* of unwrapped numbers; its low 16 bits are 0 */
    DROPOUT_MAX = 3000,  /* A.1: a gap that is still taken for loss */
    MISORDER_MAX = 100,  /* A.1: how far back a packet is still taken for a late one */
    RESTART = 2,         /* A.1: packets in a row that make a new start */
    NTP_TO_UNIX = 25567, /* days from 1900 to 1970 */
};

#define UNIX_OFFSET ((uint64_t)NTP_TO_UNIX * 86400)

uint64_t leat_ntp_from_unix(leat_time t)
{
    uint64_t seconds = t / LEAT_SECOND + UNIX_OFFSET;

    return seconds << 32 | ((t % LEAT_SECOND) << 32) / LEAT_SECOND;
}

leat_time leat_ntp_to_unix(uint64_t ntp)
{
    uint64_t seconds = ntp >> 32;

    /* The second era begins in 2036. */
    seconds += seconds < UNIX_OFFSET ? (uint64_t)1 << 32 : 0;
    return (seconds - UNIX_OFFSET) * LEAT_SECOND + ((ntp & UINT32_MAX) * LEAT_SECOND >> 32);
}

uint32_t leat_ntp_short(leat_time t)
{
    if (t / LEAT_SECOND > UINT16_MAX) {
        return UINT32_MAX;
    }
    return (uint32_t)(((t / LEAT_SECOND) << 16) + ((t % LEAT_SECOND) << 16) / LEAT_SECOND);
}

leat_time leat_ntp_short_time(uint32_t s)
{
    return (uint64_t)s * LEAT_SECOND >> 16;
}

/* A time in units of a timestamp, modulo 2^32. */
static uint32_t in_units(leat_time t, uint32_t clock_rate)
{
    return (uint32_t)(t / LEAT_SECOND * clock_rate + t % LEAT_SECOND * clock_rate / LEAT_SECOND);
}

/* ---- a source that is received ----------------------------------------------------------------
 */

void leat_report_source_init(leat_report_source *s, uint32_t ssrc, uint32_t clock_rate)
{
    *s = (leat_report_source){.ssrc = ssrc, .clock_rate = clock_rate};
}

/* The counts begin (anew) with this packet. */
static void begin(leat_report_source *s, uint16_t seq)
{
    s->first = ORIGIN + (uint64_t)seq;
    s->end = s->first + 1;
    s->received = 1;
    s->expected_prior = 0;
    s->received_prior = 0;
    s->restart.count = 0;
}

/* Whether a packet belongs to the source as it is known. */
static bool count_packet(leat_report_source *s, uint16_t seq)
{
    uint64_t full = leat_seq_unwrap(s->end, seq);

    if (full >= s->end ? full - s->end < DROPOUT_MAX : s->end - full <= MISORDER_MAX) {
        s->end = full >= s->end ? full + 1 : s->end;
        s->received++;
        s->restart.count = 0;
        return true;
    }
    if (!leat_restart_on_far(&s->restart, seq, RESTART)) {
        return false;
    }
    begin(s, seq);
    return true;
}

void leat_report_on_packet(leat_report_source *s, uint16_t seq, uint32_t timestamp,
                           leat_time arrival)
{
    uint32_t transit = in_units(arrival, s->clock_rate) - timestamp;
    uint32_t d;

    if (s->end == 0) {
        begin(s, seq);
    } else if (!count_packet(s, seq)) {
        return;
    }
    d = transit - s->transit;
    s->transit = transit;
    if (s->received > 1) { /* timestamps that begin anew, with the numbers, are no jitter */
        d = (int32_t)d < 0 ? -d : d;
        s->jitter += d - ((s->jitter + 8) >> 4); /* A.8, in sixteenths */
    }
}

void leat_report_on_sr(leat_report_source *s, const leat_rtcp_sender_info *info, leat_time arrival)
{
    s->last_sr = leat_ntp_middle(info->ntp);
    s->last_sr_at = arrival;
}

int64_t leat_report_lost(const leat_report_source *s)
{
    return (int64_t)(s->end - s->first) - (int64_t)s->received;
}

leat_time leat_report_jitter(const leat_report_source *s)
{
    return s->clock_rate ? (uint64_t)(s->jitter >> 4) * LEAT_SECOND / s->clock_rate : 0;
}

bool leat_report_block(leat_report_source *s, leat_time now, leat_rtcp_report *out)
{
    uint64_t expected = s->end - s->first, interval = expected - s->expected_prior;
    uint64_t came = s->received - s->received_prior;
    int64_t lost = leat_report_lost(s);

    *out = (leat_rtcp_report){.ssrc = s->ssrc};
    if (s->end == 0) {
        return false;
    }
    if (interval > came) {
        out->fraction_lost = (uint8_t)(((interval - came) << 8) / interval);
    }
    lost = lost > 0x7fffff ? 0x7fffff : lost;
    out->lost = (int32_t)(lost < -0x800000 ? -0x800000 : lost);
    out->highest_seq = (uint32_t)(s->end - 1 - ORIGIN);
    out->jitter = s->jitter >> 4;
    out->last_sr = s->last_sr;
    out->delay_last_sr = s->last_sr ? leat_ntp_short(leat_time_since(now, s->last_sr_at)) : 0;
    s->expected_prior = expected;
    s->received_prior = s->received;
    return true;
}

/* ---- a source that is sent --------------------------------------------------------------------
 */

void leat_report_sender_init(leat_report_sender *s, uint32_t ssrc, uint32_t clock_rate)
{
    *s = (leat_report_sender){.ssrc = ssrc, .clock_rate = clock_rate};
}

void leat_report_on_sent(leat_report_sender *s, uint32_t timestamp, uint32_t payload, leat_time now)
{
    s->packets++;
    s->octets += payload;
    s->timestamp = timestamp;
    s->sent_at = now;
}

void leat_report_sender_info(const leat_report_sender *s, uint64_t ntp, leat_time now,
                             leat_rtcp_sender_info *out)
{
    leat_time since = leat_time_since(now, s->sent_at);

    *out = (leat_rtcp_sender_info){
        .ssrc = s->ssrc,
        .ntp = ntp,
        .timestamp = s->timestamp + (s->packets ? in_units(since, s->clock_rate) : 0),
        .packets = s->packets,
        .octets = s->octets,
    };
}

bool leat_report_on_block(leat_report_sender *s, const leat_rtcp_report *block, uint64_t ntp)
{
    uint32_t passed = leat_ntp_middle(ntp) - block->last_sr;
    leat_time rtt;

    if (block->ssrc != s->ssrc || block->last_sr == 0 || block->delay_last_sr > passed ||
        passed > INT32_MAX) {
        return false;
    }
    rtt = leat_ntp_short_time(passed - block->delay_last_sr);
    s->rtt_min = s->rtt == 0 || rtt < s->rtt_min ? rtt : s->rtt_min;
    s->rtt = s->rtt == 0 ? rtt : (s->rtt * 7 + rtt) / 8;
    s->rtt_latest = rtt;
    return true;
}
