/* leat/nack.h: asking for packets again, and answering (RFC 4585 §6.2.1).
 *
 * Receiver: leat_nack_on_packet() for every packet; at leat_nack_deadline(), leat_nack_write()
 * writes a generic NACK for what is missing. Sender: leat_resend_keep() every packet sent; for each
 * number of a NACK, leat_resend_find() finds the bytes to send again.
 *
 * Memory is taken once, when one is initialised. An object belongs to the thread that has its
 * leat_mem.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_NACK_H
#define LEAT_NACK_H

#include <leat/buf.h>
#include <leat/rtcp.h>
#include <leat/rtp.h>

LEAT_BEGIN_DECLS

/* ---- receiver: what is missing ----------------------------------------------------------------
 */

typedef struct leat_nack_settings {
    size_t missing;   /* most numbers missing at once; LEAT_NACK_MISSING_MIN to _MAX. The oldest are
                         given up for newer ones */
    uint16_t leap;    /* a gap longer than this is a new start, not a loss */
    uint16_t reorder; /* packets that may overtake one before it is asked for */
    uint16_t tries;   /* how often a number is asked for */
    leat_time interval; /* from one request for a number to the next: about the round-trip time */
    leat_time
        patience; /* a number missing for so long is given up: its time to be played has passed */
} leat_nack_settings;

typedef struct leat_nack_missing {
    uint64_t seq;
    leat_time since;
    leat_time next; /* when to ask (again) */
    uint32_t tries;
} leat_nack_missing;

typedef struct leat_nack {
    leat_nack_settings set;
    leat_nack_missing *list; /* in the order of numbers */
    size_t count;
    uint64_t end; /* one past the highest that came; 0: none yet */
    leat_seq_restart restart;
    leat_mem *mem;
    uint64_t asked;     /* numbers asked for, each time counted */
    uint64_t recovered; /* numbers that came after they were asked for */
    uint64_t given_up;
} leat_nack;

LEAT_API void leat_nack_settings_init(leat_nack_settings *settings);
/* LEAT_ERR_INVALID, LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_nack_init(leat_nack *nack, leat_mem *mem,
                                 const leat_nack_settings *settings);
LEAT_API void leat_nack_free(leat_nack *nack);

/* A packet came, in or out of order, again or for the first time. */
LEAT_API void leat_nack_on_packet(leat_nack *nack, uint16_t seq, leat_time now);

/* When leat_nack_write() has something to ask for: LEAT_TIME_NEVER, 0 for at once. */
LEAT_API leat_time leat_nack_deadline(const leat_nack *nack);

/* The round-trip time was measured: requests are repeated after that long. */
LEAT_API void leat_nack_set_interval(leat_nack *nack, leat_time interval);

/* Appends a NACK for the numbers that are due, as many as fit, and returns how many those are;
 * nothing is appended for 0. What did not fit stays due. */
LEAT_API size_t leat_nack_write(leat_nack *nack, leat_time now, uint32_t sender_ssrc,
                                uint32_t media_ssrc, leat_rtcp_writer *w);

/* ---- sender: what can be sent again -----------------------------------------------------------
 */

typedef struct leat_resend_packet {
    leat_buf buf;
    uint64_t seq;
    leat_time sent; /* the last time */
} leat_resend_packet;

typedef struct leat_resend {
    leat_resend_packet *ring;
    uint64_t mask;
    uint64_t end;   /* one past the highest kept */
    uint64_t begin; /* nothing below is kept */
    size_t bytes;   /* of the buffers kept */
    size_t most_bytes;
    leat_time interval;
    leat_mem *mem;
    leat_seq_restart restart;
    bool started;
} leat_resend;

/* packets: most that are kept, a power of two, LEAT_RESEND_PACKETS_MIN to _MAX. bytes: most of
 * their bytes; the oldest go first. interval: a packet is not sent again sooner than that after the
 * last time, as the answer may still be on its way. LEAT_ERR_INVALID, LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_resend_init(leat_resend *resend, leat_mem *mem, size_t packets, size_t bytes,
                                   leat_time interval);
LEAT_API void leat_resend_free(leat_resend *resend);

/* Takes the buffer over (it is emptied), also when it is not kept: too large, or too far back. The
 * third in a row that is too far back, each following the other, begins the numbers anew. */
LEAT_API void leat_resend_keep(leat_resend *resend, uint16_t seq, leat_time now, leat_buf *packet);

/* The bytes to send again, good until the next call on this object; false when there are none, or
 * when it went out less than the interval ago. Counts as sent now. */
LEAT_API bool leat_resend_find(leat_resend *resend, uint16_t seq, leat_time now, leat_span *out);

LEAT_END_DECLS

#endif
