/* leat/roq.h: RTP and RTCP over a QUIC connection (draft-ietf-avtcore-rtp-over-quic-14).
 *
 * Token, framing, stream rules and error codes are those of revision 14: docs/REALTIME.md says what
 * of it is where, and which text it was checked against.
 *
 * A session carries flows, each named by a number that both sides know from elsewhere (the draft
 * leaves signalling to others). A packet goes in a DATAGRAM frame or on a unidirectional stream:
 *
 *     datagram:  flow identifier (i), packet
 *     stream:    flow identifier (i), then for each packet: length (i), packet
 *
 * and a receiver takes any of both at any time. It stands on leat/quic.h alone, and like it belongs
 * to the context's thread; events are called from leat_ctx_turn() only.
 *
 *   1. In the connection's `connected` event (or `early`, or with 0-RTT right after
 *      leat_conn_connect()): leat_roq_attach(). It takes over the connection's events and its user
 *      pointer.
 *   2. leat_roq_flow_open() for each flow, whether it sends, receives, or both.
 *   3. leat_roq_send() queues a packet, with the time after which it is of no use. What is late
 *      never goes out; a stream whose packet is late is reset (ROQ_FRAME_CANCELLED).
 *   4. The `packet` event has what comes. `result` tells what became of what was sent, out of
 *      QUIC's acknowledgements, where RTP over UDP needs RTCP for it.
 *   5. `closed` is the session's last event; its flows die with it.
 *
 * Memory: a flow's queue is bounded in bytes and packets, what is received in part is bounded a
 * session (LEAT_ROQ_… of leat/limits.h), and records come from the context's pools: nothing is
 * allocated for a packet once these have grown.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_ROQ_H
#define LEAT_ROQ_H

#include <leat/quic.h>

LEAT_BEGIN_DECLS

typedef struct leat_roq leat_roq;           /* RTP on one connection */
typedef struct leat_roq_flow leat_roq_flow; /* what one flow identifier stands for */
struct leat_estimate;                       /* leat/estimate.h */

/* The token of this draft (s4.1); the final one will be "roq". Any other may be agreed on: the
 * session does not look at the connection's. */
#define LEAT_ROQ_ALPN     "roq-14"

#define LEAT_ROQ_FLOW_MAX ((UINT64_C(1) << 62) - 1)

/* The application error codes (s7): X(name, value, text). */
#define LEAT_ROQ_ERROR_LIST(X)                                                                     \
    X(NO_ERROR, 0x00, "no error")                                                                  \
    X(GENERAL_ERROR, 0x01, "an error that no other code names")                                    \
    X(INTERNAL_ERROR, 0x02, "an internal error")                                                   \
    X(PACKET_ERROR, 0x03, "a payload that is not well formed")                                     \
    X(STREAM_CREATION_ERROR, 0x04, "a stream of a kind that may not be opened")                    \
    X(FRAME_CANCELLED, 0x05, "a frame is not wanted any more")                                     \
    X(UNKNOWN_FLOW_ID, 0x06, "a flow that this side does not know")                                \
    X(EXPECTATION_UNMET, 0x07, "the connection lacks what was agreed on")

#define LEAT_ROQ_ERROR_ENUM(name, value, text) LEAT_ROQ_##name = (value),
typedef enum leat_roq_error { LEAT_ROQ_ERROR_LIST(LEAT_ROQ_ERROR_ENUM) } leat_roq_error;
#undef LEAT_ROQ_ERROR_ENUM

/* "ROQ_PACKET_ERROR" and its text; for a code outside the list "ROQ_?" and "unknown error". Static
 * strings; any thread. */
LEAT_API const char *leat_roq_error_name(uint64_t code);
LEAT_API const char *leat_roq_error_text(uint64_t code);

/* ---- flows ---- */

/* How packets are sent: X(NAME, name, what it is) */
#define LEAT_ROQ_MODE_LIST(X)                                                                      \
    X(DATAGRAM, "datagram", "each packet in a DATAGRAM frame, never sent again when lost")         \
    X(PACKET, "packet", "each packet on a stream of its own")                                      \
    X(FRAME, "frame", "the packets of a media frame on a stream: of one SSRC and timestamp")       \
    X(FLOW, "flow", "all on one stream, in order; on another after what was cancelled")

#define LEAT_ROQ_MODE_ENUM(name, text, what) LEAT_ROQ_MODE_##name,
typedef enum leat_roq_mode { LEAT_ROQ_MODE_LIST(LEAT_ROQ_MODE_ENUM) LEAT_ROQ_MODES } leat_roq_mode;
#undef LEAT_ROQ_MODE_ENUM

/* "frame" for LEAT_ROQ_MODE_FRAME. Static strings; any thread. */
LEAT_API const char *leat_roq_mode_name(leat_roq_mode mode);
/* The other way round; false: there is none of that name. */
LEAT_API bool leat_roq_mode_find(const char *name, leat_roq_mode *out);

typedef struct leat_roq_flow_settings {
    leat_roq_mode mode;
    leat_time lifetime;      /* of a packet, from leat_roq_send() until it is acknowledged on a
                                stream, or sent as a datagram; 0: for ever. A media frame that
                                could not be at the peer by then is not begun; what leaves at the
                                end of it comes later by the way */
    leat_time recv_lifetime; /* a packet that has not come whole on its stream so long after its
                                first byte is given up (STOP_SENDING); 0: never */
    size_t queue_bytes;      /* of packets that wait to be sent */
    uint32_t queue_packets;
    uint8_t urgency; /* of its streams, as leat_stream_set_priority() has it; datagrams have the
                        connection's */
    bool results;    /* the `result` event tells of each packet */
    void *user;
} leat_roq_flow_settings;

/* Datagrams, 200 ms to live, LEAT_ROQ_QUEUE_… of leat/limits.h. */
LEAT_API void leat_roq_flow_settings_init(leat_roq_flow_settings *settings);

/* How a packet came. */
typedef struct leat_roq_arrival {
    bool rtcp;   /* by its packet type (RFC 5761 s4) */
    bool stream; /* on a stream; otherwise in a datagram */
} leat_roq_arrival;

/* What became of a packet: X(NAME, text) */
#define LEAT_ROQ_OUTCOME_LIST(X)                                                                   \
    X(ACKED, "acknowledged")                                                                       \
    X(LOST, "sent as a datagram, and lost or not acknowledged in time")                            \
    X(LATE, "its lifetime was over or too short for what waited, or it was cancelled on a stream") \
    X(OVERFLOW, "pushed out of a full queue by newer ones")                                        \
    X(STOPPED, "the receiver did not want the stream any more")                                    \
    X(DROPPED, "not sent for want of memory, or too long for the path")

#define LEAT_ROQ_OUTCOME_ENUM(name, text) LEAT_ROQ_OUTCOME_##name,
typedef enum leat_roq_outcome {
    LEAT_ROQ_OUTCOME_LIST(LEAT_ROQ_OUTCOME_ENUM) LEAT_ROQ_OUTCOMES
} leat_roq_outcome;
#undef LEAT_ROQ_OUTCOME_ENUM

typedef struct leat_roq_result {
    uint64_t tag;     /* leat_roq_send()'s */
    leat_time queued; /* when leat_roq_send() was called */
    uint32_t ssrc;    /* of an RTP packet, as its sequence number */
    uint16_t seq;
    size_t len;
    bool rtcp;
    leat_roq_outcome outcome;
} leat_roq_result;

/* ---- sessions ---- */

/* What a session tells its owner. Any member may be NULL. `user` is leat_roq_attach()'s. A callback
 * may call anything of this header but leat_roq_flow_close() on the flow that it is told of. */
typedef struct leat_roq_events {
    /* The handshake is complete, of a session that was attached before. */
    void (*connected)(leat_roq *roq, void *user);
    /* An RTP or RTCP packet came. Its bytes live until the event returns, or gives its flow's
     * streams up (leat_roq_flow_skip()) or the connection. */
    void (*packet)(leat_roq_flow *flow, leat_span packet, const leat_roq_arrival *how, void *user);
    /* The peer uses a flow that is not open. Opened by this event, it is served; otherwise it waits
     * for leat_roq_flow_open() within the session's limits. Told once for each stream and datagram
     * that begins so. */
    void (*unknown_flow)(leat_roq *roq, uint64_t id, void *user);
    /* What became of a packet sent, in the order in which it is known. */
    void (*result)(leat_roq_flow *flow, const leat_roq_result *result, void *user);
    /* leat_roq_send() gave LEAT_ERR_BLOCKED before; now half of the queue is free. */
    void (*writable)(leat_roq_flow *flow, void *user);
    /* The peer gave up a stream in the middle of a packet (RESET_STREAM); a translator between two
     * sessions has to do the same to what it forwards (s5.2.2). */
    void (*cancelled)(leat_roq_flow *flow, uint64_t code, void *user);
    /* Client: as leat/quic.h has them. */
    void (*token)(leat_roq *roq, leat_span token, void *user);
    void (*ticket)(leat_roq *roq, leat_span session, void *user);
    /* The estimator of leat_roq_set_estimate() has another target: bits a second, for all that the
     * encoders send together, headers included. */
    void (*estimated)(leat_roq *roq, uint64_t target_rate, void *user);
    /* What is new of the connection's packets, as leat/quic.h has it: for a bandwidth estimator. */
    void (*packet_news)(leat_roq *roq, const leat_packet_news *news, size_t count, void *user);
    /* The connection is closed: the last event. The session and its flows die when it returns. */
    void (*closed)(leat_roq *roq, const leat_close_info *info, void *user);
} leat_roq_events;

typedef struct leat_roq_settings {
    size_t max_flows;   /* flows open at once */
    size_t max_packet;  /* bytes of a packet taken from a stream; a stream with a longer one is
                           stopped (ROQ_GENERAL_ERROR) */
    size_t max_unread;  /* bytes of packets that have come in part, together: a stream that would
                           pass it is stopped (ROQ_FRAME_CANCELLED) */
    size_t max_unknown; /* streams, and as many datagrams, of flows not open that wait; of more,
                           the newest stream is stopped (ROQ_UNKNOWN_FLOW_ID) and the oldest
                           datagram dropped (s5.1) */
    bool require_datagrams; /* close with ROQ_EXPECTATION_UNMET when the peer takes none (s5.3) */
} leat_roq_settings;

/* Fills in the defaults of leat/limits.h. */
LEAT_API void leat_roq_settings_init(leat_roq_settings *settings);

/* Makes the session on a connection and takes over its events. NULL settings: defaults. `events` is
 * borrowed until `closed`. LEAT_ERR_INVALID: a setting out of bounds; LEAT_ERR_NOMEM. After an
 * error the connection is as before. */
LEAT_API leat_err leat_roq_attach(leat_conn *conn, const leat_roq_settings *settings,
                                  const leat_roq_events *events, void *user, leat_roq **out);

LEAT_API leat_conn *leat_roq_conn(leat_roq *roq);
LEAT_API void leat_roq_set_user(leat_roq *roq, void *user);
LEAT_API void *leat_roq_user(const leat_roq *roq);

/* Closes the connection with a code of LEAT_ROQ_ERROR_LIST (s6). What waits is dropped. */
LEAT_API void leat_roq_close(leat_roq *roq, uint64_t code, const char *reason);

/* Opens a flow; what waits for it is told in the next turn. NULL settings: defaults.
 * LEAT_ERR_INVALID: an identifier above LEAT_ROQ_FLOW_MAX, or a setting out of bounds;
 * LEAT_ERR_STATE: open already; LEAT_ERR_LIMIT: max_flows are; LEAT_ERR_CLOSED, LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_roq_flow_open(leat_roq *roq, uint64_t id,
                                     const leat_roq_flow_settings *settings, leat_roq_flow **out);
/* Drops what waits and resets its streams; what comes for it from then on is of an unknown flow. */
LEAT_API void leat_roq_flow_close(leat_roq_flow *flow);
/* The open flow of that identifier; NULL: there is none. */
LEAT_API leat_roq_flow *leat_roq_flow_find(leat_roq *roq, uint64_t id);

LEAT_API leat_roq *leat_roq_flow_session(leat_roq_flow *flow);
LEAT_API uint64_t leat_roq_flow_id(const leat_roq_flow *flow);
LEAT_API void leat_roq_flow_set_user(leat_roq_flow *flow, void *user);
LEAT_API void *leat_roq_flow_user(const leat_roq_flow *flow);

/* For packets from now on. LEAT_ERR_INVALID. */
LEAT_API leat_err leat_roq_flow_set_mode(leat_roq_flow *flow, leat_roq_mode mode);

/* Receiver: goes on with newer frames: what has come in part on the flow's streams is given up
 * (STOP_SENDING with ROQ_FRAME_CANCELLED), the sender continues on others (s5.2.2). */
LEAT_API void leat_roq_flow_skip(leat_roq_flow *flow);

/* ---- the rate ---- */

/* Has an estimator (leat/estimate.h) drive the connection, in place of the controller that it has:
 * it is fed with QUIC's acknowledgements, its window and pacing are the connection's
 * (leat_conn_set_rate()), so that no two controllers are nested (s8.2), and `estimated` has its
 * target for the encoders. Borrowed until `closed` or the next call. NULL: the connection's own
 * controller takes over again. */
LEAT_API void leat_roq_set_estimate(leat_roq *roq, struct leat_estimate *estimate);

/* ---- sending ---- */

typedef struct leat_roq_send_options {
    leat_time lifetime; /* instead of the flow's; 0: the flow's */
    uint64_t tag;       /* what `result` names it by */
    bool use_mode;      /* `mode` instead of the flow's */
    leat_roq_mode mode;
} leat_roq_send_options;

/* Queues a packet, which is copied. options NULL: all zero. It goes out in the next turn, or when
 * the path, flow control and streams allow; a datagram that is longer than the path takes goes on a
 * stream of its own.
 *
 * Where more waits than leaves within a packet's lifetime, by the rate at which packets have left,
 * the oldest media frames of which none has left are dropped for newer ones, each with all of its
 * packets. A full queue drops its oldest media frame that has a lifetime, and so on until there is
 * room; where nothing waits but packets to be kept for ever: LEAT_ERR_BLOCKED, `writable` tells
 * when there is room. LEAT_ERR_INVALID: neither RTP nor RTCP (RFC 3550 version 2); LEAT_ERR_LIMIT:
 * longer than the whole queue may be; LEAT_ERR_CLOSED, LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_roq_send(leat_roq_flow *flow, leat_span packet,
                                const leat_roq_send_options *options);

/* ---- what is known ---- */

/* X(name, what it counts since the flow was opened, unless it says "now") */
#define LEAT_ROQ_STAT_LIST(X)                                                                      \
    X(packets_sent, "packets handed to QUIC")                                                      \
    X(bytes_sent, "their bytes")                                                                   \
    X(packets_acked, "of these, acknowledged")                                                     \
    X(packets_lost, "of these, lost datagrams")                                                    \
    X(packets_late, "packets cancelled because they were late")                                    \
    X(packets_overflow, "packets pushed out of a full queue")                                      \
    X(packets_stopped, "packets that the receiver did not want any more")                          \
    X(packets_dropped, "packets dropped for want of memory, or too long for the path")             \
    X(packets_oversize, "packets too long for a datagram, sent on a stream")                       \
    X(streams_opened, "streams opened")                                                            \
    X(streams_reset, "of these, reset because a packet on them was late")                          \
    X(queue_packets, "packets that wait, now")                                                     \
    X(queue_bytes, "their bytes, now")                                                             \
    X(queue_delay, "nanoseconds that the oldest of them has waited, now")                          \
    X(packets_received, "packets received")                                                        \
    X(bytes_received, "their bytes")                                                               \
    X(rtcp_received, "of these packets, RTCP")                                                     \
    X(stream_packets_received, "of these packets, on streams")                                     \
    X(recv_cancelled, "streams reset by the peer within a packet")                                 \
    X(recv_late, "streams given up because a packet on them was late")                             \
    X(recv_malformed, "packets received that are neither RTP nor RTCP")

#define LEAT_ROQ_STAT_MEMBER(name, text) uint64_t name;
typedef struct leat_roq_stats {
    LEAT_ROQ_STAT_LIST(LEAT_ROQ_STAT_MEMBER)
} leat_roq_stats;
#undef LEAT_ROQ_STAT_MEMBER

LEAT_API void leat_roq_flow_stats(const leat_roq_flow *flow, leat_roq_stats *out);

/* What a receiver report would say of the packets sent, out of QUIC's acknowledgements and its RTT
 * (s10): for the whole flow, whatever its sources. The fraction is that since the last call. A
 * packet on a stream counts as received when all of it is acknowledged, so that loss on the way
 * which QUIC repaired does not show. */
typedef struct leat_roq_report {
    uint8_t fraction_lost; /* in 1/256, rounded down; 255: all */
    uint64_t lost;         /* packets that did not arrive, for whatever reason */
    uint64_t acked;        /* packets that did */
    uint32_t highest_seq;  /* RFC 3550's extended highest sequence number acknowledged */
    leat_time rtt;         /* smoothed; 0: not known */
    leat_time rtt_min;
} leat_roq_report;

LEAT_API void leat_roq_flow_report(leat_roq_flow *flow, leat_roq_report *out);

LEAT_END_DECLS

#endif
