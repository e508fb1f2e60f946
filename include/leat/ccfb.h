/* leat/ccfb.h: RTCP congestion control feedback (RFC 8888, with erratum 8166: num_reports is how
 * many metric blocks there are, not one less and not a number at which they end).
 *
 * The shape is leat/twcc.h's, but numbers are those of each RTP stream, times are told in 1/1024 s
 * before the report, and the ECN mark comes along. A call that meets a new stream takes memory for
 * it; no other does, once an object is initialised.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CCFB_H
#define LEAT_CCFB_H

#include <leat/feedback.h>

LEAT_BEGIN_DECLS

enum {
    LEAT_CCFB_EMPTY = 12,             /* bytes of a report on no stream */
    LEAT_CCFB_BUILD_MIN = 24,         /* bytes that a report on one packet takes */
    LEAT_CCFB_STREAM_REPORTS = 16384, /* most metric blocks of a stream in one report (§3.1) */
    LEAT_CCFB_ATO_OVER = 0x1FFE,      /* arrived that long before the report, or longer */
    LEAT_CCFB_ATO_NONE = 0x1FFF,      /* arrived at a time that cannot be told */
};

/* ---- receiver ---------------------------------------------------------------------------------
 */

typedef struct leat_ccfb_stream {
    leat_arrivals arrivals;
    leat_time last; /* arrival of the newest packet */
} leat_ccfb_stream;

typedef struct leat_ccfb_settings {
    uint32_t sender_ssrc; /* who sends the feedback */
    uint64_t ntp_zero;    /* what the NTP clock (32.32) of its sender reports showed at time 0 */
    size_t streams;       /* most at once: LEAT_CCFB_STREAMS_MIN to _MAX */
    size_t packets;       /* kept of each stream, a power of two: LEAT_CCFB_RECORD_MIN to _MAX; four
                             bytes each, taken when the stream begins */
    leat_time idle;       /* a stream that is silent for so long makes room for a new one */
} leat_ccfb_settings;

typedef struct leat_ccfb_recorder {
    leat_ccfb_settings set;
    leat_mem *mem;
    uint32_t *ssrcs; /* beside streams, to be searched fast */
    leat_ccfb_stream *streams;
    size_t count;
    size_t recent;                          /* the stream of the last packet */
    size_t turn;                            /* the stream with which the next report begins */
    size_t waiting;                         /* streams with packets to report */
    uint64_t refused;                       /* packets of streams for which there was no room */
    uint64_t gone_duplicates, gone_too_old; /* of streams that were removed, as in their arrivals */
} leat_ccfb_recorder;

LEAT_API void leat_ccfb_settings_init(leat_ccfb_settings *settings);

/* LEAT_ERR_INVALID, LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_ccfb_recorder_init(leat_ccfb_recorder *recorder, leat_mem *mem,
                                          const leat_ccfb_settings *settings);
LEAT_API void leat_ccfb_recorder_free(leat_ccfb_recorder *recorder);

/* A packet came, with its IP header's ECN field (0 to 3). A packet that comes again with CE makes
 * its mark CE (§3.1); otherwise the first arrival counts. A new stream takes memory;
 * LEAT_ERR_LIMIT: there are as many as there may be, and none is idle; LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_ccfb_record(leat_ccfb_recorder *recorder, uint32_t ssrc, uint16_t seq,
                                   leat_time arrival, uint8_t ecn);

/* Forgets a stream, as after its BYE. LEAT_ERR_NOT_FOUND. */
LEAT_API leat_err leat_ccfb_remove(leat_ccfb_recorder *recorder, uint32_t ssrc);

/* Whether packets wait to be reported. */
static inline bool leat_ccfb_pending(const leat_ccfb_recorder *recorder)
{
    return recorder->waiting != 0;
}

/* Writes one report, of at most cap bytes, as of `now`; returns its length. It is legal with no
 * stream at all. Again while leat_ccfb_pending(), for what did not fit. 0: cap is less than
 * LEAT_CCFB_BUILD_MIN. */
LEAT_API size_t leat_ccfb_build(leat_ccfb_recorder *recorder, leat_time now, uint8_t *out,
                                size_t cap);

/* ---- reading feedback -------------------------------------------------------------------------
 */

typedef struct leat_ccfb_status {
    leat_time arrival; /* LEAT_TIME_NEVER: not received, or at a time that is not told */
    uint32_t ssrc;
    uint16_t seq;
    uint16_t ato; /* as on the wire */
    uint8_t ecn;
    bool received;
} leat_ccfb_status;

typedef struct leat_ccfb_iter {
    uint32_t sender_ssrc;
    uint32_t report_time; /* as on the wire: the middle of an NTP time, in 1/65536 s */
    /* the library's */
    uint32_t ssrc;
    uint16_t seq;
    uint16_t left; /* of the present stream */
    bool odd;      /* it ends in two bytes of padding */
    const uint8_t *at, *end;
    uint64_t report; /* report_time, unwrapped */
} leat_ccfb_iter;

/* Reads an RTCP packet from its first byte (RTPFB, format 11), data being all of it. Times count
 * from a whole period of the report timestamp (2^32 units of 1/65536 s) before its zero;
 * leat_ccfb_feedback() makes them go on. LEAT_ERR_INVALID: another kind; LEAT_ERR_TRUNCATED: a
 * stream's blocks are missing; LEAT_ERR_MALFORMED: bad length or padding, or more than
 * LEAT_CCFB_STREAM_REPORTS blocks. Then the iterator is at its end. */
LEAT_API leat_err leat_ccfb_parse(leat_span data, leat_ccfb_iter *out);

/* The next status: stream by stream, in the order of numbers. False at the end. */
LEAT_API bool leat_ccfb_next(leat_ccfb_iter *iter, leat_ccfb_status *out);

/* ---- sender -----------------------------------------------------------------------------------
 */

typedef struct leat_ccfb_sender {
    leat_mem *mem;
    uint32_t *ssrcs;
    leat_fb_history *histories;
    size_t count;
    size_t most;
    size_t packets;
    size_t recent;
    uint64_t report; /* of the last feedback, unwrapped */
} leat_ccfb_sender;

/* streams: most that are sent at once, as for the recorder. packets: remembered of each, a power of
 * two; 0: LEAT_FB_HISTORY_DEFAULT. LEAT_ERR_INVALID, LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_ccfb_sender_init(leat_ccfb_sender *sender, leat_mem *mem, size_t streams,
                                        size_t packets);
LEAT_API void leat_ccfb_sender_free(leat_ccfb_sender *sender);

/* An RTP packet of `size` bytes goes out. A new stream takes memory. LEAT_ERR_LIMIT: there are as
 * many as there may be; leat_ccfb_sender_remove() those that have ended. LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_ccfb_sent(leat_ccfb_sender *sender, uint32_t ssrc, uint16_t seq,
                                 leat_time now, uint32_t size);

/* Forgets a stream that will not be sent any more, to make room for another. LEAT_ERR_NOT_FOUND. */
LEAT_API leat_err leat_ccfb_sender_remove(leat_ccfb_sender *sender, uint32_t ssrc);

/* leat_ccfb_parse(), with the report's time made to go on from the last one's. */
LEAT_API leat_err leat_ccfb_feedback(leat_ccfb_sender *sender, leat_span data, leat_ccfb_iter *out);

/* As leat_twcc_results(). */
LEAT_API size_t leat_ccfb_results(leat_ccfb_sender *sender, leat_ccfb_iter *iter,
                                  leat_fb_result *out, size_t max);

/* Bytes of all streams sent after the last packet of each that feedback told of: what may not be
 * more than an estimate's window. */
static inline uint64_t leat_ccfb_in_flight(const leat_ccfb_sender *sender)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < sender->count; i++) {
        sum += leat_fb_history_in_flight(&sender->histories[i]);
    }
    return sum;
}

LEAT_END_DECLS

#endif
