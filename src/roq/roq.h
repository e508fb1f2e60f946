/* roq/roq.h: the inside of a leat_roq: sessions, flows, packets on their way, and the streams in
 * both directions.
 *
 *   roq.c      a session: the connection's events, settings, its end
 *   flow.c     flows: opening, finding, closing, counting
 *   packet.c   a packet's record, from leat_roq_send() until its result is told
 *   send.c     a flow's queue: what goes out next, what is late, what a full queue drops
 *   gate.c     how much QUIC is given, whose turn it is, what is not worth beginning
 *   out.c      a stream that we send on: which packets lie on it, and when one of them is late
 *   in.c       streams and datagrams received, in pieces, of flows known and unknown
 *   check.c    the walker
 *   rate.c     a bandwidth estimator that drives the connection
 *   wire.c     the two varints in front of a packet
 *
 * A packet's record is in one list at a time: its flow's `queue` (waits), its flow's `flight` (a
 * datagram handed over), its stream's `packets`, or the session's `done` (its result is to be
 * told). Records of packets and streams come from pools of the session's.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_ROQ_ROQ_H
#define LEAT_ROQ_ROQ_H

#include <string.h>

#include <leat/roq.h>
#include <leat/rtp.h>

typedef struct leat_roq_packet leat_roq_packet;
typedef struct leat_roq_out leat_roq_out;
typedef struct leat_roq_in leat_roq_in;

enum {
    LEAT_ROQ_BEGUN = 4,                 /* sources whose last frame begun a flow remembers */
    LEAT_ROQ_VARINT = 8,                /* bytes of a varint at most */
    LEAT_ROQ_HEAD = 2 * LEAT_ROQ_VARINT /* room before a packet: flow identifier and length */
};

/* ---- packets ---- */

typedef struct leat_roq_list {
    leat_roq_packet *first, *last;
} leat_roq_list;

struct leat_roq_packet {
    leat_roq_packet *prev, *next;
    leat_roq_flow *flow; /* NULL: closed while a datagram of it was under way */
    leat_buf buf;        /* LEAT_ROQ_HEAD bytes of room, then the packet; empty when handed over for
                            good */
    uint64_t tag;
    leat_time queued;
    leat_time deadline; /* LEAT_TIME_NEVER: none */
    uint64_t from, to;  /* on its stream, with what stands before it */
    uint32_t ssrc, timestamp;
    uint32_t len;
    uint16_t seq;
    uint8_t mode; /* leat_roq_mode */
    uint8_t outcome;
    bool rtcp, marker;
};

/* ---- flows ---- */

/* A frame of which something was handed over. */
typedef struct leat_roq_begun {
    uint32_t ssrc, timestamp;
    bool known;
} leat_roq_begun;

struct leat_roq_flow {
    leat_roq *roq;
    leat_roq_flow *prev, *next; /* the session's */
    leat_roq_flow *hash_next;
    uint64_t id;
    leat_roq_flow_settings settings;
    leat_roq_list queue;   /* waits to be sent */
    leat_roq_list flight;  /* datagrams handed over */
    leat_roq_out *outs;    /* streams not closed yet */
    leat_roq_out *current; /* mode FLOW: where the next packet goes; NULL: open one */
    leat_timer timer;      /* the first in the queue becomes late */
    bool want_writable;    /* leat_roq_send() said BLOCKED */
    bool waiting;          /* its queue is not empty: it is among the session's `waits` */
    leat_roq_flow *waits_prev, *waits_next;
    bool blocked;    /* QUIC took no more of it in this turn */
    uint64_t unsent; /* bytes on its streams that have not left */
    uint64_t moved;  /* leat_roq_gate.left when last some did */
    uint64_t given;  /* bytes handed over, for its turn among others */
    leat_roq_begun begun[LEAT_ROQ_BEGUN];
    unsigned begun_next; /* the one to forget */
    bool dead_known;     /* packets of this frame are not wanted any more */
    uint8_t dead_outcome;
    uint32_t dead_ssrc, dead_timestamp;
    uint64_t highest; /* acknowledged, unwrapped; 0: none */
    uint32_t highest_ssrc;
    uint64_t report_acked, report_lost; /* as the last report had them */
    leat_roq_stats stats;
};

/* ---- streams ---- */

struct leat_roq_out {
    leat_roq_flow *flow; /* NULL: closed; the stream is reset */
    leat_roq_out *prev, *next;
    leat_stream *stream;
    leat_roq_list packets; /* on it, not yet known to be acknowledged */
    leat_timer timer;      /* the first of them becomes late */
    uint64_t written;
    uint64_t left; /* of these, known to have been sent, or given up */
    leat_roq_out *busy_prev, *busy_next;
    bool busy;                /* not all has left: it is among the gate's */
    uint32_t ssrc, timestamp; /* mode FRAME */
    uint8_t mode;
    bool rtcp;
    bool finished; /* FIN is written */
    bool over;     /* reset, or stopped by the peer */
};

typedef enum leat_roq_in_state {
    LEAT_ROQ_IN_ID,
    LEAT_ROQ_IN_WAIT, /* its flow is not open */
    LEAT_ROQ_IN_LENGTH,
    LEAT_ROQ_IN_PACKET,
    LEAT_ROQ_IN_OVER /* stopped, or at its end */
} leat_roq_in_state;

struct leat_roq_in {
    leat_roq *roq;
    leat_roq_in *prev, *next;
    leat_stream *stream;
    leat_roq_flow *flow;
    uint64_t id;
    leat_roq_in_state state;
    uint8_t head[LEAT_ROQ_VARINT]; /* of a varint that came in pieces */
    size_t head_len;
    size_t need;     /* bytes of the present packet */
    leat_buf packet; /* it, when it came in pieces … */
    size_t have;     /* … so much of it */
    leat_timer timer;
};

/* A datagram of a flow that is not open. */
typedef struct leat_roq_stray {
    struct leat_roq_stray *next;
    uint64_t id;
    leat_buf data; /* behind the identifier */
} leat_roq_stray;

/* ---- sessions ---- */

/* What the estimator has decided, and the connection was told. */
typedef struct leat_roq_rate {
    struct leat_estimate *estimate; /* NULL: the connection has its own controller */
    uint64_t window, pacing, target, padding;
    leat_timer timer;
} leat_roq_rate;

/* What QUIC was given and has not sent, and how fast it sends: see gate.c. */
typedef struct leat_roq_gate {
    leat_roq_out *busy;   /* streams with bytes that have not left */
    uint64_t unsent;      /* these bytes */
    uint64_t datagrams;   /* handed over, and not known to have left */
    uint64_t frames_sent; /* the connection's count at the last look */
    uint32_t datagram_len;
    uint64_t left; /* bytes that have left since the start */
    bool closed;   /* something waited for it ever since the last look */
    leat_time looked;
    leat_time rate_time; /* with a backlog, and … */
    uint64_t rate_bytes; /* … what left in it */
    uint64_t rate;       /* bytes a second; 0: not known */
    leat_time way;       /* to the peer, with the queue on it */
    uint64_t turn;       /* leat_roq_flow.given of the one that was served last */
    leat_timer timer;
} leat_roq_gate;

struct leat_roq {
    leat_conn *conn;
    leat_ctx *ctx;
    leat_mem *mem;
    leat_pool *packet_pool, *out_pool, *in_pool; /* records: one a packet or stream */
    leat_roq_settings settings;
    const leat_roq_events *events;
    void *user;
    leat_roq_flow *flows;
    size_t flow_count;
    leat_roq_flow **buckets; /* by identifier */
    size_t bucket_count;     /* a power of two */
    leat_roq_in *ins;
    leat_roq_out *orphans; /* streams of closed flows */
    leat_roq_list lost;    /* datagrams under way of closed flows */
    leat_roq_list done;    /* results to tell */
    size_t unread;         /* bytes of leat_roq_in.packet */
    size_t waiting;        /* streams in LEAT_ROQ_IN_WAIT */
    leat_roq_stray *strays, *strays_last;
    size_t stray_count;
    leat_roq_rate rate;
    leat_roq_gate gate;
    leat_roq_flow *waits; /* flows with something in their queue */
    bool pumping;
    leat_task task; /* tells results and `writable`, serves flows newly opened */
    bool opened;    /* a flow was opened: somebody may have waited for it */
    bool results;   /* a flow was opened whose owner wants to hear of each packet */
    bool closing;
};

/* ---- wire.c ---- */

/* Reads a varint (RFC 9000 s16) at the start of data; its length, or 0 when data is too short. */
size_t leat_roq_varint_read(leat_span data, uint64_t *out);
size_t leat_roq_varint_len(uint64_t value);
/* Writes it; returns its length. */
size_t leat_roq_varint_write(uint8_t *out, uint64_t value);

/* ---- packet.c ---- */

/* Whether it begins as RTP does, with a whole header, or as RTCP does, *rtcp: what a flow carries.
 * What is behind may be encrypted. */
bool leat_roq_is_rtp(leat_span packet, bool *rtcp);
void leat_roq_list_push(leat_roq_list *list, leat_roq_packet *p);
void leat_roq_list_push_front(leat_roq_list *list, leat_roq_packet *p);
void leat_roq_list_remove(leat_roq_list *list, leat_roq_packet *p);
/* Asserts what must hold. */
void leat_roq_list_check(const leat_roq_list *list);

/* NULL: no memory. The packet is copied; the record is in no list. */
leat_roq_packet *leat_roq_packet_new(leat_roq_flow *flow, leat_span packet,
                                     const leat_roq_send_options *options);
/* Writes the flow identifier (if `id`) and the length (if `length`) before the packet, and gives a
 * buffer of all; the record keeps its own reference. */
leat_buf leat_roq_packet_frame(leat_roq_packet *p, bool id, bool length);
/* Its fate is known: counts it, and tells or frees it. It is in no list any more. */
void leat_roq_packet_done(leat_roq *roq, leat_roq_packet *p, leat_roq_outcome outcome);
void leat_roq_packet_free(leat_roq *roq, leat_roq_packet *p);
/* Both are of one media frame. */
bool leat_roq_same_frame(const leat_roq_packet *p, const leat_roq_packet *q);
/* Tells results, until one of them closes the session's connection. */
void leat_roq_tell_results(leat_roq *roq);

/* ---- send.c ---- */

/* Hands over what can be, of all flows. */
void leat_roq_pump(leat_roq *roq);
/* Something of the packet's frame was handed over. */
bool leat_roq_is_begun(const leat_roq_flow *flow, const leat_roq_packet *p);
/* This frame is given up: what of it comes is dropped as it comes. */
void leat_roq_frame_dies(leat_roq_flow *flow, uint32_t ssrc, uint32_t timestamp,
                         leat_roq_outcome outcome);
/* The same, and takes it out of the queue, and off a stream of its own. */
void leat_roq_cancel_frame(leat_roq_flow *flow, uint32_t ssrc, uint32_t timestamp,
                           leat_roq_outcome outcome);
/* A packet comes back from a stream that was given up before any of it was sent. */
void leat_roq_unsend(leat_roq_flow *flow, leat_roq_packet *p);
void leat_roq_queue_timer(leat_timer *timer, leat_time now);
void leat_roq_queue_drop(leat_roq_flow *flow);

/* ---- gate.c ---- */

/* The flow whose turn it is; NULL: nothing waits, or nothing can be handed over now. */
leat_roq_flow *leat_roq_gate_next(leat_roq *roq);
/* A packet of it was handed over. */
void leat_roq_gate_given(leat_roq_flow *flow, size_t len);
/* Something waits again. */
void leat_roq_gate_waits(leat_roq_flow *flow);
/* All that can be has been handed over: when to look again. */
void leat_roq_gate_pumped(leat_roq *roq);
void leat_roq_gate_timer(leat_timer *timer, leat_time now);
/* What QUIC was given: on a stream, in a datagram; that datagram was dropped unsent; what has not
 * left of the stream never will. */
void leat_roq_gate_written(leat_roq_out *out, size_t len);
void leat_roq_gate_datagram(leat_roq *roq, size_t len);
void leat_roq_gate_unsent_datagram(leat_roq *roq);
void leat_roq_gate_forget(leat_roq_out *out);
/* Drops frames for newer ones, if what waits is more than can leave in time. */
void leat_roq_gate_shed(leat_roq_flow *flow);
/* The frame that begins with the packet would not be through in time. */
bool leat_roq_gate_is_hopeless(const leat_roq_packet *p);

/* ---- out.c ---- */

/* Where the packet goes: an open stream, or a new one. LEAT_ERR_BLOCKED, LEAT_ERR_STATE,
 * LEAT_ERR_CLOSED, LEAT_ERR_NOMEM. */
leat_err leat_roq_out_for(leat_roq_packet *p, uint8_t mode, leat_roq_out **out);
/* Puts the packet, which is in no list, on the stream; it is in the stream's list then. Errors as
 * leat_stream_write_buf()'s. */
leat_err leat_roq_out_write(leat_roq_out *out, leat_roq_packet *p);
/* Takes off what has been acknowledged. */
void leat_roq_out_look(leat_roq_out *out);
/* Gives the stream up, and what is on it; in mode FLOW what was not sent goes back to the queue. */
void leat_roq_out_cancel(leat_roq_out *out, leat_roq_outcome outcome);
void leat_roq_out_stopped(leat_roq_out *out);
/* The stream is closed: frees it. */
void leat_roq_out_closed(leat_roq *roq, leat_roq_out *out);
/* Its flow is closed. */
void leat_roq_out_orphan(leat_roq_out *out);
void leat_roq_out_free(leat_roq *roq, leat_roq_out *out);

/* ---- in.c ---- */

void leat_roq_in_opened(leat_roq *roq, leat_stream *stream);
void leat_roq_in_read(leat_roq_in *in);
void leat_roq_in_reset(leat_roq_in *in, uint64_t code);
void leat_roq_in_closed(leat_roq_in *in);
/* Stops it; it is OVER then. */
void leat_roq_in_stop(leat_roq_in *in, uint64_t code);
void leat_roq_in_datagram(leat_roq *roq, leat_span data);
/* Serves what waited for flows that are open by now. */
void leat_roq_in_opened_flows(leat_roq *roq);
/* The flow is closed: its streams are of no flow any more. */
void leat_roq_in_flow_closed(leat_roq_flow *flow);
void leat_roq_in_drop_strays(leat_roq *roq);

/* ---- rate.c ---- */

void leat_roq_rate_news(leat_roq *roq, const leat_packet_news *news, size_t count);
void leat_roq_rate_timer(leat_timer *timer, leat_time now);

/* ---- roq.c ---- */

/* Takes the connection's events: with news of packets if anybody wants them, which costs. */
void leat_roq_listen(leat_roq *roq);

/* ---- flow.c ---- */

void leat_roq_flow_free(leat_roq_flow *flow);
/* Asserts what must hold of a session and all that is in it. */
void leat_roq_check(const leat_roq *roq);

/* `writable` may tell of it: half of the queue is free. */
static inline bool leat_roq_has_room(const leat_roq_flow *flow)
{
    return flow->stats.queue_packets <= flow->settings.queue_packets / 2 &&
           flow->stats.queue_bytes <= flow->settings.queue_bytes / 2;
}

static inline leat_time leat_roq_now(const leat_roq *roq)
{
    return leat_ctx_now(roq->ctx);
}

/* The member's struct. */
#define LEAT_ROQ_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
