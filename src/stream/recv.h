/* stream/recv.h: the receiving part of a stream, RFC 9000 §3.2: reassembly, final size, flow
 * control.
 *
 *   1. leat_stream_recv_on_data() for each STREAM or CRYPTO frame. Bytes already held win over
 * bytes that come again; each byte is delivered once.
 *   2. leat_stream_recv_peek() and _consume() to read.
 *   3. When flow.wants_update: MAX_STREAM_DATA (not for CRYPTO).
 *
 * What bounds it: bytes by flow control (or buffer_max for CRYPTO), gaps by LEAT_STREAM_RECV_GAPS,
 * and memory by the budget (stream/reassembly.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_STREAM_RECV_H
#define LEAT_STREAM_RECV_H

#include <leat/buf.h>

#include "stream/flow.h"
#include "stream/reassembly.h"

/* RFC 9000 §3.2, figure 3. */
typedef enum leat_recv_state {
    LEAT_RECV_NONE, /* a stream that only sends has no receiving part */
    LEAT_RECV_RECV,
    LEAT_RECV_SIZE_KNOWN,
    LEAT_RECV_RESET_AT, /* RESET_STREAM_AT: some more is to be read before the reset */
    LEAT_RECV_DATA_RECVD,
    LEAT_RECV_DATA_READ, /* the end */
    LEAT_RECV_RESET_RECVD,
    LEAT_RECV_RESET_READ /* the end */
} leat_recv_state;

/* Where on_data() and on_reset() report what changed. */
enum {
    LEAT_RECV_READABLE = 1, /* bytes can be read that could not before, or the end is now visible */
    LEAT_RECV_RESET = 2     /* the peer's reset is news */
};

typedef struct leat_stream_recv {
    leat_flow_in flow;    /* flow.received: highest offset; flow.consumed: the read offset */
    leat_reassembly held; /* what has arrived and not been read */
    uint64_t final_size;  /* valid in SIZE_KNOWN and after */
    uint64_t reset_code;  /* the peer's, in RESET_AT, RESET_RECVD and after */
    uint64_t read_to;     /* RESET_AT: what is read before the reset is told */
    uint8_t state;        /* leat_recv_state */
    bool crypto;          /* the limit follows what was read without telling the peer */
    bool stopped;         /* the application wants no more: bytes are dropped as they come */
    bool reset_at;        /* a RESET_STREAM_AT came: the code may not change any more */
} leat_stream_recv;

/* window: the initial limit that the peer knows by transport parameter; window_max: how far it may
 * grow. gaps_max: LEAT_STREAM_RECV_GAPS. */
void leat_stream_recv_init(leat_stream_recv *recv, leat_stream_env *env, uint64_t window,
                           uint64_t window_max, uint32_t gaps_max);
/* A CRYPTO stream: may run buffer_max bytes ahead of what was read (RFC 9000 §7.5: at least 4096).
 * It goes on at `offset`. */
void leat_stream_recv_init_crypto(leat_stream_recv *recv, leat_stream_env *env, size_t buffer_max,
                                  uint64_t offset);
void leat_stream_recv_init_none(leat_stream_recv *recv);
/* Frees what is held, in whatever state. */
void leat_stream_recv_free(leat_stream_recv *recv);

/* Takes a frame in. data is a view on the packet's buffer without a reference of its own,
 * {frame.data, frame.len, packet.block}; a reference is taken of what is kept (block NULL: what is
 * kept is copied). conn: the connection's flow control, which counts and is checked too; NULL for
 * CRYPTO. *news gains LEAT_RECV_ bits. Returns 0 or the transport error to close with:
 * - FRAME_ENCODING_ERROR: it ends above 2^62-1;
 * - FINAL_SIZE_ERROR: it ends above the final size, or gives another one (§4.5);
 * - FLOW_CONTROL_ERROR: it exceeds the stream's or the connection's limit (§4.1);
 * - CRYPTO_BUFFER_EXCEEDED: the same for CRYPTO (§7.5);
 * - INTERNAL_ERROR: more gaps than gaps_max, or the budget or memory is exhausted. Bytes of a
 * packet that will be acknowledged cannot be dropped, so there is no other way out (§21.6 leaves
 * the defence to us). */
uint64_t leat_stream_recv_on_data(leat_stream_recv *recv, uint64_t offset, const leat_buf *data,
                                  bool fin, leat_flow_in *conn, unsigned *news);

/* RESET_STREAM. What is held will not be read: the connection's credit for it comes back at once,
 * its memory when the application has seen the reset, so that a span it looks at stays. Ignored,
 * but for the checks, when all data has arrived. Returns 0, FINAL_SIZE_ERROR or FLOW_CONTROL_ERROR.
 */
uint64_t leat_stream_recv_on_reset(leat_stream_recv *recv, uint64_t code, uint64_t final_size,
                                   leat_flow_in *conn, unsigned *news);

/* RESET_STREAM_AT: what lies below `reliable`, and what can be read already, is read first, and
 * then the reset told: by *news when that is so now, else consume() goes to RESET_RECVD. A later
 * frame may lower `reliable`; one that does not is ignored, but for the checks. The connection's
 * credit for what will not be read comes back at once. Returns as on_reset, and STREAM_STATE_ERROR
 * when a later frame, RESET_STREAM too, has another code. */
uint64_t leat_stream_recv_on_reset_at(leat_stream_recv *recv, uint64_t code, uint64_t final_size,
                                      uint64_t reliable, leat_flow_in *conn, unsigned *news);

/* The next readable bytes, up to the end of a segment; valid until consume. Empty: none. */
leat_span leat_stream_recv_peek(const leat_stream_recv *recv);
/* The next readable bytes as a buffer with a reference of its own, if they are one (a copied
 * segment is copied again into a buffer of the caller's memory). LEAT_ERR_NOT_FOUND when none,
 * LEAT_ERR_NOMEM. Not consumed. */
leat_err leat_stream_recv_peek_buf(const leat_stream_recv *recv, leat_buf *out);
/* n bytes are taken; n may span segments but not exceed what is readable. After a reset: nothing.
 */
void leat_stream_recv_consume(leat_stream_recv *recv, uint64_t n, leat_flow_in *conn);

/* Bytes that can be read. */
static inline uint64_t leat_stream_recv_readable(const leat_stream_recv *recv)
{
    return recv->state < LEAT_RECV_RESET_RECVD ? leat_reassembly_readable(&recv->held) : 0;
}

/* The application learns of the end: call when it has seen the reset (RESET_RECVD -> RESET_READ).
 * DATA_READ comes by itself when the last byte is consumed, or at once for an empty end. */
void leat_stream_recv_reset_seen(leat_stream_recv *recv);

/* The application wants no more: drops what is held and what will come. True if STOP_SENDING is to
 * be sent (§3.5: not once the final size is known and all is here, nor after a reset). */
bool leat_stream_recv_stop(leat_stream_recv *recv, leat_flow_in *conn);

static inline bool leat_stream_recv_ended(const leat_stream_recv *recv)
{
    return recv->state == LEAT_RECV_NONE || recv->state == LEAT_RECV_DATA_READ ||
           recv->state == LEAT_RECV_RESET_READ;
}

/* Whether more credit is of use to the peer: RECV only (§3.2). */
static inline bool leat_stream_recv_wants_credit(const leat_stream_recv *recv)
{
    return recv->state == LEAT_RECV_RECV && !recv->stopped &&
           leat_flow_in_wants_update(&recv->flow);
}

/* Asserts what must hold, walking all segments. */
void leat_stream_recv_check(const leat_stream_recv *recv);

#endif
