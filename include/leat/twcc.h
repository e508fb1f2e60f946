/* leat/twcc.h: transport-wide congestion control feedback
 * (draft-holmer-rmcat-transport-wide-cc-extensions-01).
 *
 * Receiver: leat_twcc_record() every packet that carries the header extension; when
 * leat_fb_policy says that feedback is due, call leat_twcc_build() until it returns 0 and send each
 * packet that it writes.
 *
 * Sender: leat_twcc_sent() gives the number for the next packet's extension and remembers the
 * packet; leat_twcc_feedback() reads a feedback, leat_twcc_results() turns it into what became of
 * each packet.
 *
 * No call allocates, except those that initialise. An object belongs to the thread that has its
 * leat_mem. examples/media_feedback.c shows both sides.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TWCC_H
#define LEAT_TWCC_H

#include <leat/feedback.h>

LEAT_BEGIN_DECLS

#define LEAT_TWCC_EXT_URI                                                                          \
    "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"

#define LEAT_TWCC_TICK      (250 * LEAT_MICROSECOND) /* unit of the deltas */
#define LEAT_TWCC_REFERENCE (64 * LEAT_MILLISECOND)  /* unit of the reference time */
#define LEAT_TWCC_WINDOW    (500 * LEAT_MILLISECOND) /* how late a packet may be, and be reported */

enum {
    LEAT_TWCC_EXT = 2,         /* bytes of the extension's data */
    LEAT_TWCC_BUILD_MIN = 24,  /* bytes that leat_twcc_build() needs at least */
    LEAT_TWCC_STATUSES = 4096, /* most in one packet that it writes */
};

/* ---- receiver ---------------------------------------------------------------------------------
 */

typedef struct leat_twcc_recorder {
    leat_arrivals arrivals;
    uint32_t sender_ssrc;
    uint32_t media_ssrc; /* of the last packet recorded */
    uint8_t count;       /* of the next feedback packet */
} leat_twcc_recorder;

/* sender_ssrc: who sends the feedback. packets: how many are kept, a power of two,
 * LEAT_TWCC_RECORD_MIN to _MAX; 0: LEAT_TWCC_RECORD_DEFAULT. Four bytes each. LEAT_ERR_INVALID,
 * LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_twcc_recorder_init(leat_twcc_recorder *recorder, leat_mem *mem,
                                          uint32_t sender_ssrc, size_t packets);
LEAT_API void leat_twcc_recorder_free(leat_twcc_recorder *recorder);

/* Reads the number in the extension's data, as leat_rtp_ext_find() gives it; false unless it has
 * two bytes or more. */
static inline bool leat_twcc_ext_read(leat_span ext, uint16_t *seq)
{
    if (ext.len < LEAT_TWCC_EXT) {
        return false;
    }
    *seq = (uint16_t)((unsigned)ext.data[0] << 8 | ext.data[1]);
    return true;
}

/* A packet came. The first arrival of a number counts; one that is more than LEAT_TWCC_WINDOW
 * behind, among packets already reported, is left out. A late one otherwise takes the next feedback
 * back to its number. A leap forward costs time up to the size of the ring, once. */
LEAT_API void leat_twcc_record(leat_twcc_recorder *recorder, uint32_t ssrc, uint16_t seq,
                               leat_time arrival);

/* Whether leat_twcc_build() has something to write. */
static inline bool leat_twcc_pending(const leat_twcc_recorder *recorder)
{
    return recorder->arrivals.base != recorder->arrivals.end;
}

/* Writes one RTCP packet, of at most cap bytes, on packets not yet reported; returns its length.
 * Again until it returns 0: nothing is left, or cap is less than LEAT_TWCC_BUILD_MIN. Its length is
 * a multiple of four, filled up with zeros; its chunks are as few as its statuses allow. Times are
 * rounded to the nearest tick of one grid, so errors never add up. */
LEAT_API size_t leat_twcc_build(leat_twcc_recorder *recorder, uint8_t *out, size_t cap);

/* ---- reading feedback -------------------------------------------------------------------------
 */

typedef struct leat_twcc_status {
    leat_time arrival; /* LEAT_TIME_NEVER: not received */
    uint16_t seq;
    bool received;
} leat_twcc_status;

/* A feedback packet, checked, and the place in it. The bytes stay the caller's. */
typedef struct leat_twcc_iter {
    uint32_t sender_ssrc;
    uint32_t media_ssrc;
    uint32_t reference; /* as on the wire: 24 bits, in LEAT_TWCC_REFERENCE */
    uint16_t base;
    uint16_t status_count;
    uint8_t count; /* of feedback packets */
    /* the library's */
    uint8_t shift;
    uint16_t seq;
    uint16_t left;       /* statuses still to come, with those of the present chunk */
    uint16_t chunk_left; /* of the present chunk */
    uint32_t symbols;    /* of the present chunk, two bits each, the next on top */
    const uint8_t *chunk;
    const uint8_t *delta;
    leat_time time; /* of the last that was received */
} leat_twcc_iter;

/* Reads an RTCP packet from its first byte (RTPFB, format 15), data being all of it. Times count
 * from a whole period of the reference (2^24 units) before its zero, so that no delta leads below
 * 0; leat_twcc_feedback() makes them go on from feedback to feedback. LEAT_ERR_INVALID: another
 * kind of packet; LEAT_ERR_TRUNCATED: chunks or deltas are missing; LEAT_ERR_MALFORMED: bad length
 * or padding, no status, or the reserved symbol. Then the iterator is at its end. */
LEAT_API leat_err leat_twcc_parse(leat_span data, leat_twcc_iter *out);

/* What a large delta at that place comes to, of two's complement. The library's. */
static inline leat_time leat_twcc_large(const uint8_t *delta)
{
    int16_t ticks = (int16_t)((unsigned)delta[0] << 8 | delta[1]);

    return (leat_time)((int64_t)ticks * (int64_t)LEAT_TWCC_TICK);
}

/* Prepares the next chunk. The library's, for leat_twcc_next(). */
LEAT_API void leat_twcc_load_chunk(leat_twcc_iter *iter);

/* The next status, in the order of numbers; false at the end. Symbols that only fill up the last
 * chunk are not statuses. */
static inline bool leat_twcc_next(leat_twcc_iter *iter, leat_twcc_status *out)
{
    uint32_t symbol;

    if (iter->chunk_left == 0) {
        if (iter->left == 0) {
            return false;
        }
        leat_twcc_load_chunk(iter);
    }
    symbol = iter->symbols >> 30;
    iter->symbols <<= iter->shift;
    iter->chunk_left--;
    iter->left--;
    out->seq = iter->seq++;
    out->received = symbol != 0;
    if (symbol == 0) {
        out->arrival = LEAT_TIME_NEVER;
        return true;
    }
    if (symbol == 1) {
        iter->time += *iter->delta * LEAT_TWCC_TICK;
        iter->delta++;
    } else {
        iter->time += leat_twcc_large(iter->delta);
        iter->delta += 2;
    }
    out->arrival = iter->time;
    return true;
}

/* The next statuses, at most max, into an array; returns how many, 0 at the end. Faster for many
 * than one at a time. */
LEAT_API size_t leat_twcc_read(leat_twcc_iter *iter, leat_twcc_status *out, size_t max);

/* ---- sender -----------------------------------------------------------------------------------
 */

typedef struct leat_twcc_sender {
    leat_fb_history sent;
    uint64_t reference;      /* of the last feedback, unwrapped */
    uint64_t feedbacks;      /* read so far */
    uint64_t feedbacks_lost; /* as the gaps in their count tell */
    uint8_t count;           /* of the last */
} leat_twcc_sender;

/* packets: how many sent packets are remembered, a power of two; 0: LEAT_FB_HISTORY_DEFAULT. 16
 * bytes each. LEAT_ERR_INVALID, LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_twcc_sender_init(leat_twcc_sender *sender, leat_mem *mem, size_t packets);
LEAT_API void leat_twcc_sender_free(leat_twcc_sender *sender);

/* Writes the extension's data. */
static inline void leat_twcc_ext_write(uint8_t out[LEAT_TWCC_EXT], uint16_t seq)
{
    out[0] = (uint8_t)(seq >> 8);
    out[1] = (uint8_t)seq;
}

/* The number that leat_twcc_sent() will give next. */
static inline uint16_t leat_twcc_next_seq(const leat_twcc_sender *sender)
{
    return (uint16_t)sender->sent.next;
}

/* A packet of `size` bytes goes out: returns the number for its extension. */
LEAT_API uint16_t leat_twcc_sent(leat_twcc_sender *sender, leat_time now, uint32_t size);

/* leat_twcc_parse(), with the reference time made to go on from the last feedback's. */
LEAT_API leat_err leat_twcc_feedback(leat_twcc_sender *sender, leat_span data, leat_twcc_iter *out);

/* What became of the packets that the feedback tells of, at most max of them; again until it
 * returns 0. A packet has one result that says lost at the most, and one that says arrived. Numbers
 * that were never sent, or that the history has forgotten, have none. */
LEAT_API size_t leat_twcc_results(leat_twcc_sender *sender, leat_twcc_iter *iter,
                                  leat_fb_result *out, size_t max);

LEAT_END_DECLS

#endif
