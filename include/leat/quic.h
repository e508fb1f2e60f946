/* leat/quic.h: QUIC endpoints, connections and streams.
 *
 * The interface is sans-I/O: the caller hands received datagrams in, pulls datagrams to send out,
 * and keeps the time. leat/loop.h does all three for those without a loop of their own. One pass of
 * a loop:
 *
 *     wait until the socket is readable or leat_ctx_deadline() has come
 *     leat_ctx_set_now(ctx, now)             datagrams are taken to have arrived now
 *     for each datagram read:                leat_endpoint_recv(endpoint, &buf, &info)
 *     leat_ctx_turn(ctx, now)                events happen here, and only here
 *     while leat_endpoint_send(...) > 0:     send what it wrote
 *
 * Everything belongs to the context's thread. Events (struct leat_conn_events) are called from
 * leat_ctx_turn() alone, never from inside another function of this header, so that a callback may
 * call anything here.
 *
 * Lifetimes: an endpoint lives until leat_endpoint_free(). A connection lives until its `closed`
 * event has returned, a stream until its `stream_closed` event has; after that the handle must not
 * be used.
 *
 * Sources: RFC 9000 (transport), RFC 9001 (TLS), RFC 9002 (recovery), RFC 8999 (invariants).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_QUIC_H
#define LEAT_QUIC_H

#include <leat/base.h>
#include <leat/buf.h>
#include <leat/limits.h>
#include <leat/sched.h>
#include <leat/shared.h>
#include <leat/tls.h>
#include <leat/transport_error.h>

LEAT_BEGIN_DECLS

typedef struct leat_endpoint leat_endpoint;
typedef struct leat_conn leat_conn;
typedef struct leat_stream leat_stream;
struct leat_event_sink; /* leat/event.h */

#define LEAT_QUIC_V1 UINT32_C(0x00000001) /* RFC 9000 */
#define LEAT_QUIC_V2 UINT32_C(0x6b3343cf) /* RFC 9369 */

/* ---- addresses ------------------------------------------------------------------------------- */

/* An IP address and a UDP port. IPv4 uses the first four bytes of ip. family 0: no address. */
typedef struct leat_addr {
    uint8_t family; /* 0, 4 or 6 */
    uint16_t port;  /* host byte order */
    uint32_t scope; /* IPv6 scope, 0 otherwise */
    uint8_t ip[16];
} leat_addr;

/* True when family, address, scope and port are the same. */
LEAT_API bool leat_addr_equal(const leat_addr *a, const leat_addr *b);

/* ---- settings -------------------------------------------------------------------------------- */

/* Congestion controllers. X(NAME, name, what it is) */
#define LEAT_CONGESTION_LIST(X)                                                                    \
    X(CUBIC, "cubic", "RFC 9438, with HyStart++ (RFC 9406): the default")                          \
    X(NEWRENO, "newreno", "RFC 9002 s7")                                                           \
    X(BBR, "bbr", "BBR version 3, draft-ietf-ccwg-bbr-06")                                         \
    X(FIXED, "fixed", "holds the window: for those that call leat_conn_set_rate()")

#define LEAT_CONGESTION_ENUM(name, text, what) LEAT_CONGESTION_##name,
typedef enum leat_congestion {
    LEAT_CONGESTION_LIST(LEAT_CONGESTION_ENUM) LEAT_CONGESTIONS
} leat_congestion;
#undef LEAT_CONGESTION_ENUM

/* "cubic" for LEAT_CONGESTION_CUBIC. Static strings; any thread. */
LEAT_API const char *leat_congestion_name(leat_congestion congestion);
/* The other way round; false: there is none of that name. */
LEAT_API bool leat_congestion_find(const char *name, leat_congestion *out);

/* What one connection allows its peer and uses itself. */
typedef struct leat_conn_settings {
    leat_time idle_timeout;      /* RFC 9000 s10.1; 0: none from this side */
    leat_time keep_alive;        /* a PING after so long without a packet; 0: none */
    leat_time ask_after;         /* a PING, once a silence, when nothing came for so long and a
                                    stream is open: whoever only receives would learn nothing of a
                                    path that died, nor its peer of a new address; 0: none */
    leat_time handshake_timeout; /* the handshake must be complete by then */
    uint64_t max_data;           /* initial_max_data: bytes on all streams together. It and the
                                    next three are windows at first: one that holds the peer back
                                    grows, to a quarter of `memory` at most */
    uint64_t max_stream_data_bidi_local;
    uint64_t max_stream_data_bidi_remote;
    uint64_t max_stream_data_uni;
    uint64_t max_streams_bidi; /* streams that the peer may have open at once */
    uint64_t max_streams_uni;
    leat_time max_ack_delay;    /* RFC 9000 s13.2.1; whole milliseconds */
    size_t send_buffer;         /* bytes a stream buffers until acknowledged */
    size_t memory;              /* bytes that the connection may retain, all told (leat/limits.h) */
    uint16_t udp_payload;       /* bytes a datagram sent; 1200 to LEAT_UDP_PAYLOAD_MAX */
    leat_congestion congestion; /* the controller of each path */
    /* The versions of QUIC spoken, best first (RFC 9368, RFC 9369); at first 1, then 2. A server
     * moves a client that lists it to the first of these. */
    uint32_t versions[LEAT_VERSIONS_MAX];
    uint8_t version_count;
    uint32_t version; /* client: what it starts with; 0: that of the session or token it brings, or
                         else the first of the above. 1 or 2, if it is not among the above, is sent
                         to see how a server negotiates that does not speak it either */
    uint64_t key_update_packets; /* packets sealed with one key before it is updated; 0: by the
                                    AEAD's limits (RFC 9001 s6.6) */
    leat_time min_ack_delay;     /* the least delay of ACKs that the peer may ask for, in whole
                                    microseconds; 0: no ACK_FREQUENCY, either way (draft-ietf-quic-
                                    ack-frequency) */
    bool disable_ecn;            /* no ECT(0) on what is sent (RFC 9000 s13.4) */
    bool disable_spin;           /* no spin bit (RFC 9000 s17.4) */
    bool disable_grease; /* no reserved parameter, and the QUIC bit always set (RFC 9287): for a
                            port shared with protocols that are told apart by it */
    uint64_t max_datagram_frame_size; /* the largest DATAGRAM frame taken, all of it counted
                                         (RFC 9221 s3); 0: none, 65535: any */
    uint32_t datagram_queue;          /* datagrams that may wait to be sent */
    uint8_t datagram_urgency;         /* 0 to 7, as leat_stream_set_priority() has it */
    bool early_data; /* 0-RTT. Client: offer it with a session that allows it. Server: accept it,
                        which needs leat_endpoint_settings.shared, and TLS settings with tickets */
    bool disable_reset_stream_at; /* does not offer the peer to take RESET_STREAM_AT
                                     (leat_stream_reset_at()) */
    bool disable_migration;   /* asks the peer not to move to another address (RFC 9000 s18.2) */
    bool ignore_preferred;    /* client: stays at the address that it connected to, whichever one
                                 the server prefers (RFC 9000 s9.6) */
    bool wait_for_validation; /* server: send a Retry first (RFC 9000 s8.1.2) */
} leat_conn_settings;

/* Fills in the defaults of leat/limits.h. */
LEAT_API void leat_conn_settings_init(leat_conn_settings *settings);

/* ---- events ---------------------------------------------------------------------------------- */

typedef enum leat_close_kind {
    LEAT_CLOSE_LOCAL,             /* this side closed, by the application or for an error it saw */
    LEAT_CLOSE_PEER,              /* CONNECTION_CLOSE arrived */
    LEAT_CLOSE_IDLE,              /* the idle timeout passed */
    LEAT_CLOSE_HANDSHAKE_TIMEOUT, /* the peer did not complete the handshake in time */
    LEAT_CLOSE_RESET,             /* a stateless reset arrived */
    LEAT_CLOSE_VERSION,           /* the peer speaks none of our versions */
    LEAT_CLOSE_DROPPED            /* the endpoint was freed */
} leat_close_kind;

/* Why a connection ended. The texts live as long as the `closed` event runs. */
typedef struct leat_close_info {
    leat_close_kind kind;
    bool application;    /* code is the application's, not the transport's */
    uint64_t code;       /* RFC 9000 s20, or the application's own */
    uint64_t frame_type; /* what caused it, if the transport knows; 0 otherwise */
    leat_span reason;    /* the peer's words, or our own: not terminated, not trusted */
    leat_err err;        /* the same as an error of this library */
    const char *detail;  /* what failed, in words: "certificate has expired"; may be NULL */
} leat_close_info;

/* What became of a datagram. A lost one may still have arrived: its packet was not acknowledged in
 * time. What waits or is under way when the connection closes is not told of. */
typedef enum leat_datagram_outcome {
    LEAT_DATAGRAM_ACKED,
    LEAT_DATAGRAM_LOST,    /* declared lost, or not acknowledged until a probe timeout */
    LEAT_DATAGRAM_EXPIRED, /* never sent: its lifetime was over before its turn */
    LEAT_DATAGRAM_DROPPED  /* never sent: the path carries less than when it was queued */
} leat_datagram_outcome;

#define LEAT_SESSION_MAGIC "leaS"

/* Whether a session is one that this library can read. leat_conn_connect() passes a damaged one
 * over, and one of another release: the connection then begins a new session. Any thread. */
LEAT_API bool leat_session_is_whole(leat_span session);

typedef enum leat_packet_fate {
    LEAT_PACKET_SENT,
    LEAT_PACKET_ACKED,
    LEAT_PACKET_LOST /* declared lost; it may have arrived all the same */
} leat_packet_fate;

/* What is new of an ack-eliciting packet under the application's keys. */
typedef struct leat_packet_news {
    uint64_t number;
    leat_time sent;
    leat_time at;      /* sent: the same; acked: when the ACK came; lost: when that was found */
    leat_time arrived; /* acked, of the largest packet of an ACK: `at` less the delay that the peer
                          reports, so half a round trip late by any clock. LEAT_TIME_NEVER of the
                          others, which came before it */
    uint32_t size;     /* bytes of UDP payload */
    leat_packet_fate fate;
} leat_packet_news;

/* What a connection tells its owner. Any member may be NULL. `user` is what leat_conn_set_user() or
 * leat_conn_connect() was given; for an accepted connection, at first, the endpoint's. */
typedef struct leat_conn_events {
    /* Server: early data (0-RTT) was accepted. ALPN and server name are known, streams may be
     * opened and answered, and events of the client's streams may come from now on, before
     * `connected`. Somebody may have recorded and repeated what such a stream says, until then: do
     * only what is safe to do twice. leat_shared sees to it that it is not done twice here; a
     * server elsewhere with the same ticket key could. The place to choose a protocol by ALPN, as
     * in `connected`. */
    void (*early)(leat_conn *conn, void *user);
    /* The handshake is complete: streams may be opened, ALPN and peer are known. Called before any
     * stream event but those after `early`. The place to choose a protocol by ALPN with
     * leat_conn_set_events(). A client that offered 0-RTT learns by leat_conn_early() what became
     * of it; its streams go on in any case, and what the server rejected is sent again. */
    void (*connected)(leat_conn *conn, void *user);
    /* The peer opened a stream; data may wait. */
    void (*stream_opened)(leat_conn *conn, leat_stream *stream, void *user);
    /* There is something to read, or the end has come (leat_stream_recv_done()). Told once, and
     * again only after more has arrived: read until nothing is left. */
    void (*stream_readable)(leat_conn *conn, leat_stream *stream, void *user);
    /* leat_stream_write() and its kin gave LEAT_ERR_BLOCKED before, or wrote less than asked for;
     * now there is room. */
    void (*stream_writable)(leat_conn *conn, leat_stream *stream, void *user);
    /* The peer will send no more (RESET_STREAM), or wants no more (STOP_SENDING). The sending part
     * of a stopped stream has been reset with the same code by then. */
    void (*stream_reset)(leat_conn *conn, leat_stream *stream, uint64_t code, void *user);
    void (*stream_stopped)(leat_conn *conn, leat_stream *stream, uint64_t code, void *user);
    /* Both parts are at their end, or the connection is: the last event of the stream. */
    void (*stream_closed)(leat_conn *conn, leat_stream *stream, void *user);
    /* More streams of a kind may be opened, after LEAT_ERR_BLOCKED from leat_stream_open(). */
    void (*streams_available)(leat_conn *conn, bool bidi, void *user);
    /* A DATAGRAM arrived (RFC 9221): its bytes lie in the packet, until the event returns. */
    void (*datagram)(leat_conn *conn, leat_span data, void *user);
    /* What became of a datagram that was sent with `notify`. */
    void (*datagram_done)(leat_conn *conn, uint64_t tag, leat_datagram_outcome outcome, void *user);
    /* leat_conn_send_datagram() gave LEAT_ERR_BLOCKED before; now half of its queue is free. */
    void (*datagram_writable)(leat_conn *conn, void *user);
    /* What is new of packets, for a bandwidth estimator, in the order in which it happened, and of
     * one ACK in order of number. What was sent is told with the next turn that there is for other
     * reasons. Path MTU probes are left out. A count of 0: there was no memory for some. */
    void (*packet_news)(leat_conn *conn, const leat_packet_news *news, size_t count, void *user);
    /* Client: a token for the next connection to this server (NEW_TOKEN); copy it out. */
    void (*token)(leat_conn *conn, leat_span token, void *user);
    /* Client: a session for the next connection to this server (leat_connect.session). It begins
     * with LEAT_SESSION_MAGIC, by which a file with one can be told from others; copy it out, keep
     * it secret, and use it once: twice would show an observer that it is the same client (RFC 8446
     * sC.4). As many come as the server sends, up to the tickets of the TLS settings. */
    void (*ticket)(leat_conn *conn, leat_span session, void *user);
    /* What there was to tell now has been told: the place for what many events ask for together, as
     * the answers to all that was read. What it writes goes out with what they wrote. Not called of
     * a connection that closes. */
    void (*told)(leat_conn *conn, void *user);
    /* The last event of the connection; each open stream has had its stream_closed before. */
    void (*closed)(leat_conn *conn, const leat_close_info *info, void *user);
} leat_conn_events;

/* ---- endpoints ------------------------------------------------------------------------------- */

typedef struct leat_endpoint_settings {
    /* NULL: connections are not accepted. Borrowed: must outlive the endpoint. */
    const leat_tls_config *server_tls;
    /* For accepted connections; the events are borrowed. */
    leat_conn_settings conn;
    const leat_conn_events *events;
    void *user;
    /* Makes what is special in a connection ID that this endpoint gives out, a route to it say: cid
     * holds len (cid_len) random bytes, of which it changes some. What is left must be random
     * enough that no two are the same, at least 4 bytes. NULL: all are random. It must not call
     * back into the endpoint. */
    void (*make_cid)(uint8_t *cid, size_t len, void *make_cid_user);
    void *make_cid_user;
    uint8_t cid_len;       /* bytes in the connection IDs that this endpoint gives out, 4 to 20 */
    uint8_t reset_key[32]; /* stateless resets (RFC 9000 s10.3.2): keep it over restarts */
    uint8_t token_key[32]; /* address validation tokens (RFC 9000 s8.1) */
    leat_time token_life;  /* how long a NEW_TOKEN token is good for */
    leat_shared *shared;   /* keys in common with other endpoints, instead of those two and of the
                              TLS config's ticket key; or NULL. Borrowed: must outlive it */
    /* A server's other addresses, one a family, to which clients are asked to move once they are
     * connected (RFC 9000 s9.6): datagrams that arrive there must come to leat_endpoint_recv() too,
     * with leat_recv_info.local. family 0: none. */
    leat_addr preferred_ip4, preferred_ip6;
    size_t max_conns;      /* connections at once */
    size_t max_handshakes; /* of these, not yet confirmed: more are refused */
    size_t retry_above;    /* server: with more than so many not yet confirmed, a client without a
                              token proves its address by a Retry first, until half as many are left
                              (LEAT_EVENT_RETRY_MODE); 0: never by itself */
    struct leat_event_sink *events_sink; /* trace of all connections, or NULL; borrowed */
    /* Called when there is something to send after there was nothing, so that a loop outside its
     * turn knows; may be NULL. It must not call back into the endpoint. */
    void (*want_send)(void *want_send_user);
    void *want_send_user;
} leat_endpoint_settings;

/* Fills in defaults; keys are left zero, which leat_endpoint_new() replaces by random ones. */
LEAT_API void leat_endpoint_settings_init(leat_endpoint_settings *settings);

/* Makes an endpoint: one local UDP port's worth of connections, both directions. LEAT_ERR_NOMEM,
 * LEAT_ERR_INVALID: a setting out of its bounds, or a context without a seed; *out is NULL then.
 * The settings are copied. */
LEAT_API leat_err leat_endpoint_new(leat_ctx *ctx, const leat_endpoint_settings *settings,
                                    leat_endpoint **out);

/* Ends the endpoint and, without sending anything more, its connections: each gets its last events
 * with LEAT_CLOSE_DROPPED. Must not be called from an event. NULL is allowed. */
LEAT_API void leat_endpoint_free(leat_endpoint *endpoint);

/* Closes every connection with an application code, and refuses new ones from now on. */
LEAT_API void leat_endpoint_close(leat_endpoint *endpoint, uint64_t code);

LEAT_API leat_ctx *leat_endpoint_ctx(leat_endpoint *endpoint);
/* Connections that have not had their `closed` event. */
LEAT_API size_t leat_endpoint_conns(const leat_endpoint *endpoint);

/* Connection IDs that a load balancer routes by: the plaintext form of
 * draft-ietf-quic-load-balancers-21. For settings: make_cid = leat_routable_make, make_cid_user =
 * the struct (borrowed), cid_len = leat_routable_len(). */
typedef struct leat_routable {
    uint8_t config;        /* 0 to 6 */
    uint8_t server_id_len; /* 1 to 15 */
    uint8_t nonce_len;     /* 4 to 18; 19 with server_id_len at most */
    uint8_t server_id[15];
    bool hide_length; /* the first octet does not tell the length of the ID */
} leat_routable;

/* LEAT_ERR_INVALID: out of these bounds. */
LEAT_API leat_err leat_routable_check(const leat_routable *routable);

static inline uint8_t leat_routable_len(const leat_routable *routable)
{
    return (uint8_t)(1 + routable->server_id_len + routable->nonce_len);
}

LEAT_API void leat_routable_make(uint8_t *cid, size_t len, void *routable);
/* The server ID in a connection ID of this configuration, whatever its server; false: it is of
 * another one. The span lies in cid. */
LEAT_API bool leat_routable_read(const leat_routable *routable, leat_span cid,
                                 leat_span *server_id);

/* The ECN bits of an IP header (RFC 3168). */
enum leat_ecn { LEAT_ECN_NOT_ECT = 0, LEAT_ECN_ECT1 = 1, LEAT_ECN_ECT0 = 2, LEAT_ECN_CE = 3 };

/* How a datagram arrived. */
typedef struct leat_recv_info {
    leat_addr remote;
    leat_addr local; /* family 0 when the system does not tell */
    uint8_t ecn;     /* enum leat_ecn */
    size_t segment;  /* the buffer holds several datagrams, each of so many bytes but the last, as
                        UDP GRO delivers them; 0: one datagram */
} leat_recv_info;

/* Takes in what one receive call brought: hands the buffer over (*buf is empty afterwards). The
 * bytes are decrypted in place and may be kept by streams until read. Work is done in the next
 * turn. Every error is the datagram's own (malformed, unknown): nothing that the caller has to do.
 */
LEAT_API void leat_endpoint_recv(leat_endpoint *endpoint, leat_buf *buf,
                                 const leat_recv_info *info);

/* The same for bytes of the caller's, which are copied. LEAT_ERR_NOMEM: dropped. */
LEAT_API leat_err leat_endpoint_recv_copy(leat_endpoint *endpoint, const void *data, size_t len,
                                          const leat_recv_info *info);

/* How to send what leat_endpoint_send() wrote. */
typedef struct leat_send_info {
    leat_addr remote;
    leat_addr local; /* the address to send from; family 0: any */
    uint8_t ecn;
    size_t segment; /* bytes a datagram; only the last may be shorter (UDP GSO's rule) */
    size_t datagrams;
} leat_send_info;

/* Writes datagrams to one remote address into buf, one after the other, as many as fit and may be
 * sent now, and returns how many bytes. 0: nothing to send now. cap must be at least the largest
 * udp_payload of the settings in use; 64 KiB lets a batch be sent with one call. */
LEAT_API size_t leat_endpoint_send(leat_endpoint *endpoint, uint8_t *buf, size_t cap,
                                   leat_send_info *info);

/* True when leat_endpoint_send() would write something. */
LEAT_API bool leat_endpoint_wants_send(const leat_endpoint *endpoint);

/* ---- connections ----------------------------------------------------------------------------- */

typedef struct leat_connect {
    leat_addr remote;
    leat_addr local;            /* or family 0 */
    const char *server_name;    /* SNI and the name that the certificate must have; copied */
    const leat_tls_config *tls; /* borrowed until the connection is closed */
    leat_span token;            /* from an earlier connection's `token` event, or empty; copied. It
                                   is good for that connection's version: passed over where this
                                   one begins with another */
    leat_span session; /* from an earlier connection's `ticket` event, or empty; copied. Passed over
                          when it is damaged, too old, of another server name, or of a connection
                          that checked the certificate less strictly */
    const leat_conn_settings *settings; /* NULL: defaults; copied */
    const leat_conn_events *events;     /* borrowed until the connection is closed */
    void *user;
} leat_connect;

/* Starts a client connection. Its first datagram is there to be sent. LEAT_ERR_NOMEM,
 * LEAT_ERR_INVALID, LEAT_ERR_LIMIT (max_conns), LEAT_ERR_TLS. */
LEAT_API leat_err leat_conn_connect(leat_endpoint *endpoint, const leat_connect *how,
                                    leat_conn **out);

/* Closes with an application error code and a short reason (cut at what fits a packet). Streams are
 * dropped. The `closed` event comes in a later turn, when the closing period is over the state is
 * gone; what is called on the connection in between gives LEAT_ERR_CLOSED. */
LEAT_API void leat_conn_close(leat_conn *conn, uint64_t code, leat_span reason);

LEAT_API leat_endpoint *leat_conn_endpoint(leat_conn *conn);
LEAT_API bool leat_conn_is_server(const leat_conn *conn);
/* The handshake is complete, and the connection not closed. */
LEAT_API bool leat_conn_is_connected(const leat_conn *conn);
/* The handshake went on from an earlier session: no certificate was sent. */
LEAT_API bool leat_conn_resumed(const leat_conn *conn);

/* What became of 0-RTT. */
typedef enum leat_early {
    LEAT_EARLY_NONE,    /* there is none */
    LEAT_EARLY_OFFERED, /* client: streams may be used; the server's answer is awaited */
    LEAT_EARLY_ACCEPTED,
    LEAT_EARLY_REJECTED /* client: sent again, by itself, once the handshake is complete */
} leat_early;

/* Right after leat_conn_connect() it says OFFERED when streams may be opened and written at once,
 * within the limits that the server gave last time; leat_conn_alpn() is the protocol of last time
 * then, the only one that this connection offers. */
LEAT_API leat_early leat_conn_early(const leat_conn *conn);

LEAT_API void leat_conn_set_user(leat_conn *conn, void *user);
LEAT_API void *leat_conn_user(const leat_conn *conn);
/* From the next event on. Borrowed until the connection is closed. */
LEAT_API void leat_conn_set_events(leat_conn *conn, const leat_conn_events *events, void *user);

/* Client: moves to another local address, from which the caller must be able to send: what
 * leat_endpoint_send() writes names it in leat_send_info.local. The new path is validated first;
 * leat_conn_local() tells when it has moved. LEAT_ERR_STATE before the handshake is confirmed,
 * LEAT_ERR_UNSUPPORTED when the server forbids it or has empty connection IDs (RFC 9000 s9.5),
 * LEAT_ERR_BLOCKED when it has given no spare one, LEAT_ERR_INVALID for an address of another
 * family or the present one. RFC 9000 s9.2. */
LEAT_API leat_err leat_conn_migrate(leat_conn *conn, const leat_addr *local);

/* What the handshake agreed on. Spans live as long as the connection; empty before. */
LEAT_API leat_span leat_conn_alpn(const leat_conn *conn);
LEAT_API leat_span leat_conn_server_name(const leat_conn *conn);
LEAT_API const char *leat_conn_cipher(const leat_conn *conn); /* "AES-128-GCM" */
LEAT_API const leat_addr *leat_conn_remote(const leat_conn *conn);
LEAT_API const leat_addr *leat_conn_local(const leat_conn *conn);
/* The connection ID that the client first sent to: the name of the connection in logs. */
LEAT_API leat_span leat_conn_odcid(const leat_conn *conn);
/* The version in use; it may change until the handshake is complete. */
LEAT_API uint32_t leat_conn_version(const leat_conn *conn);

/* Starts a key update (RFC 9001 s6.1). LEAT_ERR_STATE before the handshake is confirmed, or while
 * the last update is not yet acknowledged, and for three probe timeouts after that (s6.5). */
LEAT_API leat_err leat_conn_update_keys(leat_conn *conn);

/* Congestion control from outside, as by the estimator of a media sender: from the first call on
 * the connection has no controller of its own, so that two never nest, and sends as it is told.
 * cwnd: bytes in flight at most, raised to two datagrams and cut at LEAT_CWND_MAX. pacing_rate:
 * bytes a second, kept even by the millisecond; 0: twice the window in a round trip. cwnd 0: the
 * settings' controller takes over again, from its start. After a move to another path the window is
 * the initial one until the next call. What the path does is read with leat_conn_stats().
 * LEAT_ERR_CLOSED. */
LEAT_API leat_err leat_conn_set_rate(leat_conn *conn, uint64_t cwnd, uint64_t pacing_rate);

/* Padding for whoever asks the path for more than there is to send: so many bytes go out as full
 * packets of PING (or IMMEDIATE_ACK) and PADDING whenever nothing else waits, as window and pacing
 * let them. Takes the place of what is left of the last call; 0: none. Nothing is padded before the
 * handshake is confirmed. LEAT_ERR_CLOSED. */
LEAT_API leat_err leat_conn_set_padding(leat_conn *conn, size_t bytes);

/* X(type, name, what it is). All counted from the start of the connection unless it says "now". */
#define LEAT_CONN_STAT_LIST(X)                                                                     \
    X(uint64_t, datagrams_sent, "datagrams sent")                                                  \
    X(uint64_t, datagrams_received, "datagrams received, good or bad")                             \
    X(uint64_t, packets_sent, "packets sent")                                                      \
    X(uint64_t, packets_received, "packets received and authenticated")                            \
    X(uint64_t, packets_lost, "packets declared lost")                                             \
    X(uint64_t, packets_spurious, "packets declared lost that were acknowledged later")            \
    X(uint64_t, packets_dropped, "packets received and not processed, for any reason")             \
    X(uint64_t, bytes_sent, "bytes of UDP payload sent")                                           \
    X(uint64_t, bytes_received, "bytes of UDP payload received")                                   \
    X(uint64_t, stream_bytes_sent, "stream bytes sent for the first time")                         \
    X(uint64_t, stream_bytes_resent, "stream bytes sent again")                                    \
    X(uint64_t, stream_bytes_received, "stream bytes received, without duplicates")                \
    X(uint64_t, streams_opened, "streams opened by either side")                                   \
    X(uint64_t, datagram_frames_sent, "DATAGRAM frames sent")                                      \
    X(uint64_t, datagram_frames_received, "DATAGRAM frames received")                              \
    X(uint64_t, datagram_frames_acked, "DATAGRAM frames sent and acknowledged")                    \
    X(uint64_t, datagram_frames_lost, "DATAGRAM frames sent and given up for lost")                \
    X(uint64_t, datagram_frames_expired, "datagrams not sent within their lifetime")               \
    X(uint64_t, datagram_frames_dropped, "datagrams dropped for want of room, either way")         \
    X(uint64_t, pto_count, "probe timeouts")                                                       \
    X(uint64_t, migrations, "moves to another path")                                               \
    X(uint64_t, key_updates, "key updates, by either side")                                        \
    X(leat_time, rtt_latest, "latest round trip sample, now")                                      \
    X(leat_time, rtt_smoothed, "smoothed round trip time, now")                                    \
    X(leat_time, rtt_min, "least round trip time, now")                                            \
    X(leat_time, rtt_var, "round trip time variation, now")                                        \
    X(uint64_t, cwnd, "congestion window in bytes, now")                                           \
    X(uint64_t, bytes_in_flight, "bytes in flight, now")                                           \
    X(uint64_t, memory_used, "bytes of the connection's budget in use, now")                       \
    X(uint64_t, memory_high, "the most that it has been")                                          \
    X(uint64_t, memory_stream_recv, "of memory_used: received and not yet read")                   \
    X(uint64_t, memory_stream_send, "of memory_used: written and not yet acknowledged")            \
    X(uint64_t, memory_datagrams, "of memory_used: datagrams that wait")                           \
    X(uint64_t, memory_sent_packets,                                                               \
      "of memory_used: records of sent packets, the first of them set aside")

#define LEAT_CONN_STAT_MEMBER(type, name, text) type name;
typedef struct leat_conn_stats_data {
    LEAT_CONN_STAT_LIST(LEAT_CONN_STAT_MEMBER)
} leat_conn_stats_data;
#undef LEAT_CONN_STAT_MEMBER

LEAT_API void leat_conn_stats(const leat_conn *conn, leat_conn_stats_data *out);

/* One path of a connection, now. What stands behind `active` is known of the active path alone and
 * 0 of others; it begins anew with each move to another host. */
typedef struct leat_path_stats {
    leat_addr local, remote;
    uint64_t bytes_sent, bytes_received; /* UDP payload */
    bool validated;
    bool active;
    uint16_t udp_payload;   /* bytes a datagram may have */
    const char *ecn;        /* "testing", "unknown", "capable", "failed"; NULL of others */
    const char *congestion; /* the controller's name, "cubic" say; NULL of others */
    uint64_t ce_marks;      /* congestion marks that the peer has reported */
    leat_time rtt_smoothed, rtt_min, rtt_var;
    uint64_t cwnd, bytes_in_flight;
} leat_path_stats;

/* The paths that there are, the active one first, at most max of them (LEAT_PATHS_MAX is enough).
 * Returns how many. */
LEAT_API size_t leat_conn_paths(const leat_conn *conn, leat_path_stats *out, size_t max);

/* ---- streams (RFC 9000 s2 and s3) ------------------------------------------------------------ */

/* Opens a stream. LEAT_ERR_STATE: the handshake is not complete, and there is no 0-RTT.
 * LEAT_ERR_BLOCKED: the peer allows no more now, `streams_available` tells when;
 * LEAT_ERR_CLOSED, LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_stream_open(leat_conn *conn, bool bidi, leat_stream **out);

LEAT_API uint64_t leat_stream_id(const leat_stream *stream);
LEAT_API leat_conn *leat_stream_conn(leat_stream *stream);
LEAT_API bool leat_stream_is_bidi(const leat_stream *stream);
LEAT_API bool leat_stream_is_local(const leat_stream *stream); /* opened by this side */
LEAT_API void leat_stream_set_user(leat_stream *stream, void *user);
LEAT_API void *leat_stream_user(const leat_stream *stream);

/* Urgency 0 (first) to 7 (last), 3 at first; an incremental stream shares its level round robin,
 * others are sent one after the other (RFC 9218's model). LEAT_ERR_INVALID. */
LEAT_API leat_err leat_stream_set_priority(leat_stream *stream, unsigned urgency, bool incremental);

/* Reading. Looks at the next bytes in order, without taking them; the span (empty when nothing is
 * there) lives until leat_stream_consume() or the end of the stream. */
LEAT_API leat_span leat_stream_peek(leat_stream *stream);
/* Takes n bytes of what peek showed: gives their memory and flow-control credit back. */
LEAT_API void leat_stream_consume(leat_stream *stream, size_t n);
/* Nothing more will come: all bytes up to the end have been taken, the peer has reset the stream,
 * or it was stopped. */
LEAT_API bool leat_stream_recv_done(const leat_stream *stream);
/* The first of the three: FIN was seen and every byte before it taken. Where the end of the stream
 * is the end of a message, this is what says that the message is whole: a reset may be known before
 * its event is told. */
LEAT_API bool leat_stream_recv_whole(const leat_stream *stream);
/* Wants no more: STOP_SENDING. What has arrived is dropped. Does nothing when the end was seen. */
LEAT_API void leat_stream_stop(leat_stream *stream, uint64_t code);

/* Writing. How many bytes could be written now. */
LEAT_API size_t leat_stream_writable(const leat_stream *stream);
/* Room for up to `want` bytes in the send buffer itself; at least 1 byte unless an error is
 * returned. The span lives until leat_stream_commit() or any other write on this stream.
 * LEAT_ERR_BLOCKED, LEAT_ERR_CLOSED, LEAT_ERR_STATE (finished, or not ours to write),
 * LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_stream_reserve(leat_stream *stream, size_t want, leat_mspan *out);
/* Sends the first n bytes of the reserved span. */
LEAT_API void leat_stream_commit(leat_stream *stream, size_t n);
/* Copies in as much as there is room for and says how much. Errors as reserve's when it is nothing.
 */
LEAT_API leat_err leat_stream_write(leat_stream *stream, const void *data, size_t len,
                                    size_t *written);
/* Passes a buffer by reference: taken (*buf is empty) on LEAT_OK, unchanged otherwise. The bytes
 * must not change until acknowledged. A buffer larger than the whole room is accepted when the
 * stream's buffer is empty. */
LEAT_API leat_err leat_stream_write_buf(leat_stream *stream, leat_buf *buf);
/* No more bytes after those written: FIN. LEAT_ERR_STATE when finished or reset already. */
LEAT_API leat_err leat_stream_finish(leat_stream *stream);
/* Gives up sending: RESET_STREAM with the application's code. Does nothing when all is
 * acknowledged. */
LEAT_API void leat_stream_reset(leat_stream *stream, uint64_t code);
/* The same, but the first `reliable` bytes of the stream are delivered before: RESET_STREAM_AT
 * (draft-ietf-quic-reliable-stream-reset). The peer reads them and then learns of the reset. May be
 * called again with fewer bytes; the code stays the first. With 0 bytes it is leat_stream_reset().
 * LEAT_ERR_UNSUPPORTED: the peer does not know the frame. LEAT_ERR_INVALID: more bytes than were
 * written. LEAT_ERR_STATE: not ours to write; LEAT_ERR_CLOSED. */
LEAT_API leat_err leat_stream_reset_at(leat_stream *stream, uint64_t code, uint64_t reliable);

/* Sends nothing of the stream again: it is reset with the code as soon as something of it is lost
 * or was never sent, now or later. What is under way may still arrive, and be acknowledged: for
 * what is of no use when it comes late. Only once finished; before, it is leat_stream_reset(). */
LEAT_API void leat_stream_reset_if_lost(leat_stream *stream, uint64_t code);

/* How far the sending part is, in bytes from its start: acked <= sent <= written. */
typedef struct leat_stream_progress {
    uint64_t written; /* by the application */
    uint64_t sent;    /* at least once */
    uint64_t acked;   /* without a gap; after a reset it moves no more */
} leat_stream_progress;

LEAT_API void leat_stream_progress_get(const leat_stream *stream, leat_stream_progress *out);

/* ---- datagrams (RFC 9221) --------------------------------------------------------------------
 *
 * Messages that arrive whole or not at all, in any order, and are not sent again when lost.
 * Congestion control and pacing hold them back like streams; they are taken into packets in the
 * order of the calls. Against streams: the more urgent goes first; where datagrams and the stream
 * whose turn it is have the same urgency, each gets half of the bytes while both have some to send.
 * Whether datagrams arrive at all is up to both sides' max_datagram_frame_size. */

typedef struct leat_datagram_options {
    leat_time lifetime; /* dropped when not sent within it; 0: never */
    uint64_t tag;       /* what `datagram_done` names it by */
    bool notify;        /* `datagram_done` tells what becomes of it */
} leat_datagram_options;

/* The longest datagram that can be sent now; 0: none. Grows and shrinks with the path's MTU. */
LEAT_API size_t leat_conn_datagram_max(const leat_conn *conn);

/* Queues a datagram, copied, or passed by reference: then *buf is empty on LEAT_OK and unchanged
 * otherwise. options NULL: all zero. LEAT_ERR_LIMIT: longer than leat_conn_datagram_max();
 * LEAT_ERR_BLOCKED: as many wait as may, `datagram_writable` tells when there is room;
 * LEAT_ERR_UNSUPPORTED: the peer takes none; LEAT_ERR_STATE: its parameters have not come yet;
 * LEAT_ERR_CLOSED, LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_conn_send_datagram(leat_conn *conn, leat_span data,
                                          const leat_datagram_options *options);
LEAT_API leat_err leat_conn_send_datagram_buf(leat_conn *conn, leat_buf *buf,
                                              const leat_datagram_options *options);

LEAT_END_DECLS

#endif
