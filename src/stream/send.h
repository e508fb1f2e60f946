/* stream/send.h: the sending part of a stream, RFC 9000 §3.1.
 *
 * Bytes come in at `end`, go out in order at `next`, and are freed at `base` when everything up to
 * there is acknowledged:
 *
 *     0 ........ base ............ next ............ end
 *      (freed)    in flight, lost   not yet sent     room to write
 *
 * The protocol:
 *   1. The application adds bytes: leat_stream_send_write() copies, _reserve()/_commit() lets it
 * write in place, _append() passes a buffer by reference. _finish() ends the stream.
 *   2. When it may send, the connection asks leat_stream_send_next() for a chunk, copies its bytes
 *      into a packet with _copy(), and says _sent(). Lost bytes come first and need no credit.
 *   3. For each chunk sent it says, later and once, _on_acked() or _on_lost(), with the same
 * numbers. Bytes acknowledged by another copy meanwhile are not sent again: _next() passes them
 * over.
 *   4. _reset() gives up: buffered bytes go at once; then _on_reset_acked() ends the part, once the
 * frame that carries reset_code and final size arrived.
 *   5. _reset_at() gives up all but the first bytes (RESET_STREAM_AT): these are sent, again if
 * need be, and the part ends when they and the frame are acknowledged. The frame is due when they
 * have all been sent (_wants_reset_at()), so its final size is what was sent and within all credit.
 *
 * Also serves CRYPTO streams, without flow control and FIN.
 *
 * While bytes are sent and acknowledged in order no ranges are kept at all. Memory: buffers and the
 * ring that lists them are charged to LEAT_BUDGET_STREAM_SEND of the environment's budget.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_STREAM_SEND_H
#define LEAT_STREAM_SEND_H

#include <leat/buf.h>

#include "mem/ranges.h"
#include "stream/env.h"
#include "stream/flow.h"

/* RFC 9000 §3.1, figure 2. */
typedef enum leat_send_state {
    LEAT_SEND_NONE, /* a stream that only receives has no sending part */
    LEAT_SEND_READY,
    LEAT_SEND_SEND,
    LEAT_SEND_DATA_SENT,  /* everything and FIN were sent at least once */
    LEAT_SEND_RESET_AT,   /* reset by us, but for the bytes below `reliable` */
    LEAT_SEND_DATA_RECVD, /* and acknowledged: the end */
    LEAT_SEND_RESET_SENT, /* reset by us; the frame may still wait to be sent */
    LEAT_SEND_RESET_RECVD /* and acknowledged: the end */
} leat_send_state;

/* A buffer in the ring: its first `used` bytes are bytes [offset, offset + used) of the stream;
 * what is behind them may still be filled, in the last chunk alone. */
typedef struct leat_send_chunk {
    leat_buf buf;
    uint64_t offset;
    size_t used;
} leat_send_chunk;

#define LEAT_SEND_INLINE_CHUNKS 1

typedef struct leat_stream_send {
    leat_stream_env *env;
    uint64_t base;
    uint64_t end;
    leat_flow_out flow;    /* flow.used is `next`: the first byte never sent */
    leat_ranges lost;      /* sent, not acknowledged, to be sent again; within [base, next) */
    leat_ranges acked;     /* acknowledged, above base */
    leat_send_chunk *ring; /* NULL: the chunks are in first[] */
    leat_send_chunk first[LEAT_SEND_INLINE_CHUNKS];
    uint32_t ring_cap; /* a power of two */
    uint32_t ring_head;
    uint32_t ring_count;
    uint32_t ring_near; /* where in the ring the last byte was found that was asked for */
    size_t buffer_max;  /* bytes from base to end before the application is held back */
    uint64_t reset_code;
    uint64_t reliable;   /* RESET_AT: what is to arrive. `end` is that, or base when it is above */
    uint8_t state;       /* leat_send_state */
    uint8_t budget_user; /* leat_budget_user that pays */
    bool fin;            /* the application ended the stream: end is the final size */
    bool fin_sent;       /* a frame with FIN has been sent */
    bool fin_lost;       /* and lost: send it again */
    bool fin_acked;
    bool reset_sent;    /* RESET_AT: the frame with `reliable` has been sent, and is not lost */
    bool reset_acked;   /* and acknowledged */
    bool want_writable; /* the application was held back and wants to know when there is room */
    bool reserved;      /* the last chunk was handed out by reserve */
} leat_stream_send;

/* What to put into one STREAM (or CRYPTO) frame. len is 0 only with fin. */
typedef struct leat_send_part {
    uint64_t offset;
    size_t len;
    bool fin;
    bool again; /* sent before */
} leat_send_part;

/* buffer_max: bytes, LEAT_STREAM_SEND_BUFFER of limits.h. limit: the peer's initial credit. */
void leat_stream_send_init(leat_stream_send *send, leat_stream_env *env, uint64_t limit,
                           size_t buffer_max);
/* A CRYPTO stream: no limit, no FIN; charged to LEAT_BUDGET_CRYPTO. It goes on at `offset`. */
void leat_stream_send_init_crypto(leat_stream_send *send, leat_stream_env *env, size_t buffer_max,
                                  uint64_t offset);
/* Frees what is buffered, in whatever state. The state is NONE then. */
void leat_stream_send_free(leat_stream_send *send);
/* For a stream without a sending part. */
void leat_stream_send_init_none(leat_stream_send *send);

/* ---- the application's side ---- */

/* Lengths fit size_t; a stream ends at 2^62-1. A buffer passed by reference is charged with its
 * length: the slab it lies in is the application's to care for. */

/* Bytes that may be written now. 0 after finish or reset. */
size_t leat_stream_send_writable(const leat_stream_send *send);

/* Copies in what there is room for, *written bytes. LEAT_ERR_BLOCKED when that is none (and len is
 * not), LEAT_ERR_STATE after finish, LEAT_ERR_CLOSED after reset. When memory or the budget
 * refuses: LEAT_ERR_BLOCKED if acknowledgements of this stream are still to come and bring room,
 * else LEAT_ERR_NOMEM. Whatever was not taken makes leat_stream_send_take_writable() say so when
 * there is room. */
leat_err leat_stream_send_write(leat_stream_send *send, const void *data, size_t len,
                                size_t *written);
/* A span in the buffer of 1 to want bytes; void at the next call here. Errors as write's. */
leat_err leat_stream_send_reserve(leat_stream_send *send, size_t want, leat_mspan *out);
/* The first n bytes of the reserved span are now written. */
void leat_stream_send_commit(leat_stream_send *send, size_t n);
/* Takes over *buf (emptied) on LEAT_OK only. A buffer larger than the room is refused with
 * LEAT_ERR_BLOCKED, unless nothing is buffered. Empty buffers are taken and released. */
leat_err leat_stream_send_append(leat_stream_send *send, leat_buf *buf);
/* FIN after what was written. LEAT_ERR_STATE if finished already, LEAT_ERR_CLOSED after reset. */
leat_err leat_stream_send_finish(leat_stream_send *send);
/* Gives up, with the application's code; true if RESET_STREAM is now to be sent (not when
 * everything was acknowledged, or it was reset before). */
bool leat_stream_send_reset(leat_stream_send *send, uint64_t code);
/* Gives up what lies at `reliable` (<= end) and above. After an earlier one only less may be given:
 * its code stays, and a later reset keeps it too. True if something changed: RESET_STREAM_AT is to
 * be sent when _wants_reset_at() says so. */
bool leat_stream_send_reset_at(leat_stream_send *send, uint64_t code, uint64_t reliable);
/* Once after the application was held back: there is room for at least half the buffer again. */
bool leat_stream_send_take_writable(leat_stream_send *send);

/* ---- the connection's side ---- */

/* The next part to send in at most max_len bytes of payload. conn: the connection's credit, NULL
 * for CRYPTO. False: nothing to send, or no credit. */
bool leat_stream_send_next(const leat_stream_send *send, size_t max_len, const leat_flow_out *conn,
                           leat_send_part *part);
/* Copies [offset, offset + len), which must be sent or sendable and not freed. */
void leat_stream_send_copy(leat_stream_send *send, uint64_t offset, size_t len, uint8_t *dst);
/* The contiguous bytes at offset, up to max: to seal from without a copy. */
leat_span leat_stream_send_span(leat_stream_send *send, uint64_t offset, size_t max);
/* The part went into a packet. Uses stream and connection credit for new bytes. */
void leat_stream_send_sent(leat_stream_send *send, const leat_send_part *part, leat_flow_out *conn);
/* The fate of one part. Both may come after reset, and then do nothing. When there is no memory to
 * note it, more is sent again than would be needed; nothing else comes of it. */
void leat_stream_send_on_acked(leat_stream_send *send, uint64_t offset, size_t len, bool fin);
void leat_stream_send_on_lost(leat_stream_send *send, uint64_t offset, size_t len, bool fin);
void leat_stream_send_on_reset_acked(leat_stream_send *send);
/* RESET_STREAM_AT with this reliable size went into a packet, was acknowledged, or was lost. */
void leat_stream_send_reset_at_sent(leat_stream_send *send);
void leat_stream_send_on_reset_at_acked(leat_stream_send *send, uint64_t reliable);
void leat_stream_send_on_reset_at_lost(leat_stream_send *send, uint64_t reliable);

/* Everything sent (0-RTT that was rejected) counts as never sent: credit comes back, offset 0 is
 * next. limit: the peer's initial credit as the new parameters tell it. */
void leat_stream_send_restart(leat_stream_send *send, uint64_t limit);

/* ---- questions ---- */

static inline bool leat_stream_send_ended(const leat_stream_send *send)
{
    return send->state == LEAT_SEND_NONE || send->state == LEAT_SEND_DATA_RECVD ||
           send->state == LEAT_SEND_RESET_RECVD;
}

/* READY, SEND, DATA_SENT or RESET_AT: there may be something to send. */
static inline bool leat_stream_send_live(const leat_stream_send *send)
{
    return send->state >= LEAT_SEND_READY && send->state <= LEAT_SEND_RESET_AT;
}

/* RESET_STREAM_AT is to be sent: all that it promises has been sent. */
static inline bool leat_stream_send_wants_reset_at(const leat_stream_send *send)
{
    return send->state == LEAT_SEND_RESET_AT && !send->reset_sent &&
           send->flow.used >= send->reliable;
}

/* The final size for RESET_STREAM and RESET_STREAM_AT: what was sent, RFC 9000 §4.5. */
static inline uint64_t leat_stream_send_final_size(const leat_stream_send *send)
{
    return send->flow.used;
}

/* Lost bytes wait, or a FIN without bytes: can be sent without any credit. */
static inline bool leat_stream_send_has_free(const leat_stream_send *send)
{
    if (!leat_stream_send_live(send)) {
        return false;
    }
    if (send->lost.count > 0) {
        return true;
    }
    return send->fin && send->flow.used == send->end && (!send->fin_sent || send->fin_lost);
}

/* All that was written has arrived. */
static inline bool leat_stream_send_is_empty(const leat_stream_send *send)
{
    return send->base == send->end && !send->reserved;
}

/* New bytes wait and the stream's credit allows some. */
static inline bool leat_stream_send_has_new(const leat_stream_send *send)
{
    return leat_stream_send_live(send) && send->flow.used < send->end &&
           leat_flow_out_left(&send->flow) > 0;
}

/* New bytes wait, no stream credit is left, and the peer has not been told. */
static inline bool leat_stream_send_wants_blocked(const leat_stream_send *send)
{
    return leat_stream_send_live(send) && send->flow.used < send->end &&
           leat_flow_out_wants_report(&send->flow);
}

/* Asserts what must hold. */
void leat_stream_send_check(const leat_stream_send *send);

#endif
