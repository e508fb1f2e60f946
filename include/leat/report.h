/* leat/report.h: the numbers of sender and receiver reports (RFC 3550 §6.4, A.1, A.3, A.8).
 *
 * A leat_report_source follows one source that is received and makes report blocks; a
 * leat_report_sender follows one that is sent, makes sender information, and finds the round-trip
 * time in the report blocks that come back. They are small, take no memory, and write nothing
 * themselves: leat/rtcp.h does.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_REPORT_H
#define LEAT_REPORT_H

#include <leat/rtcp.h>
#include <leat/rtp.h>

LEAT_BEGIN_DECLS

/* The middle 32 bits of an NTP time, as report blocks carry it. */
static inline uint32_t leat_ntp_middle(uint64_t ntp)
{
    return (uint32_t)(ntp >> 16);
}

/* An NTP time (32.32 seconds since 1900) from nanoseconds since 1970, and back. */
LEAT_API uint64_t leat_ntp_from_unix(leat_time unix_time);
LEAT_API leat_time leat_ntp_to_unix(uint64_t ntp);

/* A length of time in 1/65536 s, rounded down and capped, and back. */
LEAT_API uint32_t leat_ntp_short(leat_time time);
LEAT_API leat_time leat_ntp_short_time(uint32_t s);

/* ---- a source that is received ----------------------------------------------------------------
 */

typedef struct leat_report_source {
    uint32_t ssrc;
    uint32_t clock_rate; /* units of the timestamp in a second */
    uint64_t first;      /* numbers, unwrapped */
    uint64_t end;        /* one past the highest; 0: nothing came yet */
    uint64_t received;   /* duplicates too, as the RFC counts */
    uint64_t expected_prior;
    uint64_t received_prior;
    uint32_t transit; /* arrival less timestamp of the last packet, in its units */
    uint32_t jitter;  /* in sixteenths of a unit */
    uint32_t last_sr;
    leat_time last_sr_at;
    leat_seq_restart restart;
} leat_report_source;

LEAT_API void leat_report_source_init(leat_report_source *source, uint32_t ssrc,
                                      uint32_t clock_rate);
/* An RTP packet of the source came. A number far off is not believed until the next one follows it
 * (A.1): then the counts begin anew. */
LEAT_API void leat_report_on_packet(leat_report_source *source, uint16_t seq, uint32_t timestamp,
                                    leat_time arrival);
/* A sender report of the source came. */
LEAT_API void leat_report_on_sr(leat_report_source *source, const leat_rtcp_sender_info *info,
                                leat_time arrival);
/* Makes the report block; the fraction lost is that since the last call. False when nothing came
 * since the source was initialised. */
LEAT_API bool leat_report_block(leat_report_source *source, leat_time now, leat_rtcp_report *out);
/* Packets expected less packets received since the start; below 0 with duplicates. */
LEAT_API int64_t leat_report_lost(const leat_report_source *source);
LEAT_API leat_time leat_report_jitter(const leat_report_source *source);

/* ---- a source that is sent --------------------------------------------------------------------
 */

typedef struct leat_report_sender {
    uint32_t ssrc;
    uint32_t clock_rate;
    uint32_t packets;
    uint32_t octets;    /* of payload, without header and padding */
    uint32_t timestamp; /* of the last packet … */
    leat_time sent_at;  /* … and when it was sent */
    leat_time rtt;      /* smoothed; 0: not known */
    leat_time rtt_latest;
    leat_time rtt_min;
} leat_report_sender;

LEAT_API void leat_report_sender_init(leat_report_sender *sender, uint32_t ssrc,
                                      uint32_t clock_rate);
LEAT_API void leat_report_on_sent(leat_report_sender *sender, uint32_t timestamp, uint32_t payload,
                                  leat_time now);
/* Sender information as of `now`, at which the sender's NTP clock shows `ntp`. */
LEAT_API void leat_report_sender_info(const leat_report_sender *sender, uint64_t ntp, leat_time now,
                                      leat_rtcp_sender_info *out);
/* A report block came about some source of ours, when our NTP clock showed `ntp`. The round-trip
 * time is what has passed since our sender report, less the time that the receiver held it
 * (§6.4.1). False: the block is about another source, answers no sender report, or makes no sense.
 */
LEAT_API bool leat_report_on_block(leat_report_sender *sender, const leat_rtcp_report *block,
                                   uint64_t ntp);

LEAT_END_DECLS

#endif
