/* conn/datagram.h: DATAGRAM frames (RFC 9221): what waits to be sent, what came too early, what the
 * application is to be told.
 *
 * Sending. A datagram waits in a queue in the order of the calls until a packet has room for it
 * whole; one whose lifetime is over, or that the path no longer carries, is dropped when its turn
 * comes. Its bytes are released when it is written into a packet: a lost one is not sent again
 * (s5), it is only told of.
 *
 * Datagrams obey congestion control and the pacer like streams (s5.4). Between the two an urgency
 * decides, the same scale as streams'; where the most urgent stream has the same one, `lead` keeps
 * the balance of bytes, so that each of the two gets half while both wait.
 *
 * Receiving. The application is told of a datagram from the frame's handler, in the turn in which
 * the packet was opened, with a span into the packet: nothing is copied or kept. Only what comes
 * before `connected` was told is copied and waits for that.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_DATAGRAM_H
#define LEAT_CONN_DATAGRAM_H

#include <leat/quic.h>

#include "mem/budget.h"
#include "mem/queue.h"

typedef struct leat_datagram_out {
    leat_buf buf;
    leat_time expires_at; /* NEVER: it does not */
    uint64_t tag;
    bool notify;
} leat_datagram_out;

typedef struct leat_datagram_notice {
    uint64_t tag;
    leat_datagram_outcome outcome;
} leat_datagram_notice;

typedef struct leat_datagram_counters {
    uint64_t sent, received, acked, lost, expired, dropped;
} leat_datagram_counters;

typedef struct leat_datagrams {
    leat_budget *budget;
    leat_queue out;     /* leat_datagram_out */
    leat_queue notices; /* leat_datagram_notice */
    leat_queue early;   /* leat_buf */
    uint64_t own_max;   /* the largest frame that we take; 0: none */
    uint64_t peer_max;  /* the largest that the peer takes; 0: none, or not known yet */
    int64_t lead;       /* bytes that datagrams are ahead of streams of their urgency */
    uint32_t limit;     /* datagrams that may wait */
    uint32_t untold;    /* queued with `notify`, and their end not told yet: room for it is kept */
    uint8_t urgency;
    bool want_writable; /* one was refused: tell when there is room */
    leat_datagram_counters count;
} leat_datagrams;

/* The peer takes some: the shortest frame that may stand before others has two bytes. */
static inline bool leat_datagrams_taken(const leat_datagrams *dg)
{
    return dg->peer_max > 1;
}

void leat_datagrams_init(leat_datagrams *dg, leat_mem *mem, leat_budget *budget,
                         const leat_conn_settings *settings);

/* Drops everything, untold. Ready for use again, and may be called twice. */
void leat_datagrams_clear(leat_datagrams *dg);

/* For a connection that has become idle. */
void leat_datagrams_shrink(leat_datagrams *dg);

/* ---- sending ---- */

/* Takes *buf on LEAT_OK. LEAT_ERR_LIMIT: longer than `most`. LEAT_ERR_BLOCKED: as many wait as may.
 * LEAT_ERR_NOMEM. */
leat_err leat_datagrams_push(leat_datagrams *dg, leat_buf *buf, size_t most,
                             const leat_datagram_options *options, leat_time now);

/* The next to send, or NULL. Drops those before it that are too old, or longer than `most`, or not
 * taken by the peer at all, the data that a packet of its own could carry. */
const leat_datagram_out *leat_datagrams_next(leat_datagrams *dg, size_t most, leat_time now);

/* That one was written into a packet. */
void leat_datagrams_sent(leat_datagrams *dg);

static inline bool leat_datagrams_wait(const leat_datagrams *dg)
{
    return !leat_queue_empty(&dg->out);
}

/* `len` bytes of a datagram, or of a stream of the same urgency, were written while the other one
 * waited too. */
void leat_datagrams_shared(leat_datagrams *dg, bool datagram, size_t len);

/* ---- receiving and telling ---- */

/* A frame of `frame_len` bytes came: LEAT_TE_NO_ERROR, or PROTOCOL_VIOLATION when it is larger than
 * we allow (s3). */
uint64_t leat_datagrams_check_size(const leat_datagrams *dg, size_t frame_len);

/* Keeps a copy until leat_datagrams_early() takes it; drops it when too many are there. */
void leat_datagrams_keep(leat_datagrams *dg, leat_span data);
bool leat_datagrams_early(leat_datagrams *dg, leat_buf *out);

/* What became of one that was queued with `notify`. Its room was kept since then: a notice that is
 * lost for want of memory would leave the application waiting for ever. */
void leat_datagrams_note(leat_datagrams *dg, uint64_t tag, leat_datagram_outcome outcome);
/* The next to tell; false: there is none. */
bool leat_datagrams_notice(leat_datagrams *dg, leat_datagram_notice *out);

/* One was refused, and now half of the queue is free. */
static inline bool leat_datagrams_has_room(const leat_datagrams *dg)
{
    return dg->want_writable && leat_queue_count(&dg->out) <= dg->limit / 2;
}

static inline bool leat_datagrams_has_events(const leat_datagrams *dg)
{
    return !leat_queue_empty(&dg->notices) || !leat_queue_empty(&dg->early) ||
           leat_datagrams_has_room(dg);
}

void leat_datagrams_check(const leat_datagrams *dg);

#endif
