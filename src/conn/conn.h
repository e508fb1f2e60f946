/* conn/conn.h: a connection, as the files of conn/ and the endpoint see it.
 *
 * A connection is made of parts, each with a file of its own:
 *
 *     recv.c       datagrams in: protection off, duplicates dropped
 *     frames.c     what each frame does
 *     ack.c        ACK frames, loss, congestion control
 *     ackfreq.c    how often the other side acknowledges
 *     congestion.c which controller, and control from outside
 *     send.c       packets out: which frames go in, sealing
 *     sentframes.c what becomes of frames when their packet is acknowledged or lost
 *     handshake.c  TLS in CRYPTO frames, keys, transport parameters
 *     version.c    versions of QUIC, and changing them
 *     early.c      0-RTT, resumed sessions, tickets; session.c: what a client stores
 *     rekey.c      1-RTT keys and their updates
 *     datagram.c   DATAGRAM frames
 *     news.c       what became of packets, for a bandwidth estimator
 *     cid.c        connection IDs
 *     path.c       addresses and their validation; migrate.c: moving between paths;
 *     preferred.c  the server's preferred address
 *     mtu.c, ecn.c datagram size; explicit congestion notification
 *     grease.c     spin bit, QUIC bit, reserved parameters
 *     close.c      how it ends
 *     timers.c     the one deadline
 *     idle.c       what is given back when nothing happens
 *     events.c     what the application is told
 *     streams.c    the application's calls on streams
 *     trace.c      what sinks are told; trace_frames.c: of frames; log.c: as lines of text
 *     pathstats.c  what is known of the paths
 *
 * This struct holds the parts together; a part's functions take the part, and the connection only
 * where they join several.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_CONN_H
#define LEAT_CONN_CONN_H

#include <leat/quic.h>

#include "base/list.h"
#include "cc/cc.h"
#include "cc/pacer.h"
#include "conn/ackfreq.h"
#include "conn/cid.h"
#include "conn/datagram.h"
#include "conn/news.h"
#include "conn/early.h"
#include "conn/ecn.h"
#include "conn/grease.h"
#include "conn/host.h"
#include "conn/mtu.h"
#include "conn/path.h"
#include "conn/pnspace.h"
#include "conn/rekey.h"
#include "conn/version.h"
#include "mem/budget.h"
#include "recovery/loss.h"
#include "stream/table.h"
#include "tls/post.h"
#include "tls/tls.h"
#include "wire/header.h"
#include "wire/tparams.h"

/* Ours, and everybody's in the handshake, where the parameters may not be there yet: the default of
 * RFC 9000 s18.2. */
#define LEAT_ACK_DELAY_EXPONENT 3

typedef enum leat_conn_state {
    LEAT_CONN_HANDSHAKE, /* not complete */
    LEAT_CONN_ACTIVE,
    LEAT_CONN_CLOSING,  /* CONNECTION_CLOSE was sent, or is to be (RFC 9000 s10.2.1) */
    LEAT_CONN_DRAINING, /* the peer closed, or reset: nothing is sent (s10.2.2) */
    LEAT_CONN_GONE      /* nothing is left but to be freed */
} leat_conn_state;

/* What the application is to be told besides stream events. In the order in which it is told. */
enum leat_conn_pending_event {
    LEAT_CONN_TELL_CONNECTED = 1,
    LEAT_CONN_TELL_TOKEN = 2,
    LEAT_CONN_TELL_CLOSED = 4,
    LEAT_CONN_TELL_EARLY = 8,
    LEAT_CONN_TELL_TICKETS = 16
};

/* Frames of the connection that wait to be sent, besides those that conn/cid.h, conn/path.h and the
 * streams keep for themselves. */
enum leat_conn_pending_frame {
    LEAT_CONN_SEND_HANDSHAKE_DONE = 1,
    LEAT_CONN_SEND_NEW_TOKEN = 2,
    LEAT_CONN_SEND_PING = 4
};

/* One receive call's worth of datagrams for one connection. */
typedef struct leat_inbound {
    leat_buf buf;
    leat_time at;
    leat_recv_info info;
} leat_inbound;

/* A name kept for the connection's life, with a zero behind: an array of its own, for a buffer
 * would keep its slab. data NULL: none. */
typedef struct leat_kept {
    uint8_t *data;
    size_t len;
} leat_kept;

/* How often duplicate CRYPTO is answered ahead of the PTO (RFC 9002 s6.2.3). */
#define LEAT_CONN_HURRIES  2

/* Bytes of the version ahead of a token that the application keeps. */
#define LEAT_TOKEN_VERSION 4

/* What is needed until the handshake is confirmed, and dropped then: an idle connection is small.
 */
typedef struct leat_handshake {
    leat_tls *tls;
    const leat_tls_config *tls_config;
    leat_buf tls_name; /* client: the server's name, for a second beginning */
    leat_version_state version;
    leat_pnspace spaces[2]; /* Initial and Handshake */
    leat_level_keys keys[2];
    leat_crypto crypto[2];
    leat_buf token;      /* client: goes into Initials */
    leat_cid first_scid; /* the peer's, from its first packet: checked against its parameters */
    leat_cid retry_scid;
    leat_addr preferred; /* client: where the server would be met, or family 0 */
    bool has_retry;
    bool saw_packet; /* client: a packet of the server's was authentic: Retry and VN are too late */
    bool saw_first_scid;
    bool fresh_keys; /* keys to receive with came: early packets may be read now */
    uint8_t hurried; /* times that CRYPTO went again because the peer's came again */
    uint8_t early_count;
    leat_inbound early[LEAT_EARLY_PACKETS_MAX]; /* packets that came before their keys */
} leat_handshake;

/* The peer's transport parameters that matter after the handshake. */
typedef struct leat_conn_peer {
    leat_time max_ack_delay;
    leat_time idle_timeout; /* 0: none */
    uint64_t max_udp_payload;
    uint64_t cid_limit; /* active_connection_id_limit */
    uint8_t ack_delay_exponent;
    bool no_migration; /* disable_active_migration */
    bool known;
} leat_conn_peer;

/* How the connection ended, kept until the application has been told. */
typedef struct leat_conn_closing {
    leat_close_info info;
    leat_buf reason;    /* what info.reason points into */
    leat_buf detail;    /* what info.detail points into */
    leat_time until;    /* end of the closing or draining period */
    uint64_t received;  /* packets since CONNECTION_CLOSE was sent */
    uint64_t answer_at; /* answer again when so many have come: doubles each time */
    bool send;          /* CONNECTION_CLOSE is to be sent */
    bool told;          /* `closed` has been told */
} leat_conn_closing;

typedef struct leat_conn_counters {
    uint64_t datagrams_sent, datagrams_received, packets_sent, packets_received, packets_dropped;
    uint64_t bytes_sent, bytes_received, migrations;
} leat_conn_counters;

/* In the order of use: what a turn touches, what a packet does, what is seldom looked at. Of an
 * idle connection only the first lines are, when its neighbours in a list come or go. */
struct leat_conn {
    leat_conn_host *host;
    leat_link send_link; /* in the endpoint's list of those that want to send */
    const leat_conn_events *events;
    void *user;
    const leat_conn_settings *settings; /* held in common (conn/shared.h) */
    uint32_t version;
    uint8_t state; /* leat_conn_state */
    bool is_server;
    bool confirmed;
    bool resumed;       /* an earlier session was: there was no certificate */
    uint8_t early;      /* leat_early: 0-RTT */
    bool settled;       /* host.settled was called */
    bool is_small;      /* idle, and its storage was given back (idle.c) */
    bool timer_waits;   /* until what has arrived is read */
    bool timer_settled; /* set for all that packets can only put off (timers.c) */
    bool asked;         /* a PING asked in this silence (settings.ask_after) */
    bool ack_only_idle; /* no ack-eliciting packet was sent since one was received (s10.1) */
    bool more;          /* after leat_conn_send(): another call may find more to send */
    uint8_t tell;       /* leat_conn_pending_event */
    uint8_t pending;    /* leat_conn_pending_frame */

    leat_queue inbound; /* leat_inbound */
    leat_task recv_task;
    leat_task event_task;

    leat_handshake *hs;          /* NULL once confirmed */
    leat_early_work *early_work; /* NULL but while 0-RTT is going on */
    leat_time last_received;     /* idle time counts from here (s10.1) */
    leat_time last_sent;         /* of an ack-eliciting packet */
    leat_time send_at;           /* the pacer's word: LEAT_TIME_NEVER when it holds nothing back */
    leat_time handshake_until;   /* LEAT_TIME_NEVER once complete */
    uint64_t skip_at;            /* the packet number that is left out next; 0: not yet drawn */
    leat_tickets *tickets;       /* client: NULL when it wants none any more */

    leat_conn_counters count;
    leat_timer timer;
    uint64_t skip_period;
    size_t padding; /* bytes that go out when nothing else waits: leat_conn_set_padding() */

    leat_pnspace app;
    leat_streams streams;
    leat_flight flight;
    leat_pacer pacer;
    leat_mtu mtu;
    leat_ecn_path ecn;
    leat_grease grease;
    leat_loss loss;
    leat_cc cc;
    leat_paths paths;
    leat_rekey rekey;
    leat_remote_cids remote_cids;
    leat_local_cids local_cids;
    leat_budget budget;
    leat_stream_env env;
    leat_datagrams datagrams;
    leat_news news;
    leat_ackfreq ackfreq;
    leat_conn_peer peer;

    leat_link host_link;  /* in the endpoint's list of connections */
    const char *cc_state; /* as last traced */
    const char *cipher;
    uint64_t early_end; /* client: packet numbers below were of 0-RTT that was rejected */
    uint64_t crypto_sent, crypto_read; /* where the application's CRYPTO streams go on */
    leat_tls_post post;                /* CRYPTO after the handshake */
    leat_cid odcid;                    /* what the client first sent to: the connection's name */
    leat_cid first_dcid;               /* server: also a route until the handshake is confirmed */
    uint32_t routes; /* entries in the endpoint's tables; 0 when the connection may go */
    leat_kept alpn;
    leat_kept server_name;
    leat_buf new_token; /* to be sent (server) or told (client) */
    leat_conn_closing closing;
};

/* ---- conn.c: the endpoint's calls ---- */

/* A client's. The connection is known to the endpoint by its routes; its first flight waits to be
 * sent. */
leat_err leat_conn_new_client(leat_conn_host *host, const leat_connect *how, leat_conn **out);

/* A server's, for an Initial that the endpoint has looked at. */
typedef struct leat_accept {
    const leat_tls_config *tls;
    const leat_conn_settings *settings;
    const leat_conn_events *events;
    void *user;
    leat_addr local, remote;
    uint32_t version;
    leat_span dcid, scid;  /* of the Initial */
    const leat_cid *odcid; /* of the Initial before the Retry; NULL: there was no Retry */
    bool validated;        /* the token proves the address */
} leat_accept;

leat_err leat_conn_new_server(leat_conn_host *host, const leat_accept *how, leat_conn **out);

/* Within the bounds of leat/limits.h. A connection with others is refused: LEAT_ERR_INVALID. */
bool leat_conn_settings_valid(const leat_conn_settings *settings);

/* Frees it at once: the endpoint ends. The application is told what it has not been told yet. */
void leat_conn_drop(leat_conn *conn);

/* Frees a server's connection of which no packet was authentic: nobody is told. */
void leat_conn_abandon(leat_conn *conn);

/* Hands over datagrams for this connection (*buf is emptied); they are worked on in the next turn.
 */
void leat_conn_deliver(leat_conn *conn, leat_buf *buf, const leat_recv_info *info);

/* Writes datagrams, see leat_endpoint_send(). 0: nothing to send now. */
size_t leat_conn_send(leat_conn *conn, uint8_t *buf, size_t cap, leat_send_info *info);

/* A stateless reset for it arrived. */
void leat_conn_on_reset(leat_conn *conn) LEAT_SELDOM;

/* Walks everything. */
void leat_conn_check(leat_conn *conn);

/* ---- between the files of this folder ---- */

static inline leat_conn_shared *leat_conn_shared_of(const leat_conn *conn)
{
    return conn->host->shared;
}

static inline leat_time leat_conn_now(const leat_conn *conn)
{
    return leat_ctx_now(conn->host->ctx);
}

static inline bool leat_conn_is_open(const leat_conn *conn)
{
    return conn->state <= LEAT_CONN_ACTIVE;
}

/* The space, or NULL when it is not there (any more). */
static inline leat_pnspace *leat_conn_space(leat_conn *conn, leat_space space)
{
    if (space == LEAT_SPACE_APP) {
        return &conn->app;
    }
    return conn->hs && conn->hs->spaces[space].open ? &conn->hs->spaces[space] : NULL;
}

static inline void leat_conn_want_send(leat_conn *conn)
{
    if (!leat_link_listed(&conn->send_link)) {
        conn->host->ops->want_send(conn->host, conn);
    }
}

/* conn.c */
void leat_conn_free(leat_conn *conn);
void leat_conn_space_open(leat_conn *conn, leat_pnspace *pn, leat_space space);
void leat_conn_space_close(leat_conn *conn, leat_pnspace *pn);
/* A space's CRYPTO streams, made if they are not there; NULL: no memory. */
leat_crypto *leat_conn_crypto(leat_conn *conn, leat_pnspace *pn);
/* Gives the application's back while nothing is in them. */
void leat_conn_crypto_shrink(leat_conn *conn);
/* Keeps a copy of bytes, with a zero behind; an empty buffer when there is no memory. */
leat_buf leat_conn_keep(leat_conn *conn, const void *data, size_t len);
/* The same, for long. */
leat_kept leat_conn_keep_long(leat_conn *conn, const void *data, size_t len);
void leat_conn_let_go(leat_conn *conn, leat_kept *kept);
leat_err leat_conn_add_local_cid(leat_conn *conn, const leat_cid *cid);
void leat_conn_remove_local_cid(leat_conn *conn, const leat_cid *cid);
/* Packets go to this ID of the peer's: its token resets the connection from now on. */
void leat_conn_heed_reset(leat_conn *conn, const leat_remote_cid *entry);
/* Makes the IDs that the peer should have in reserve. */
void leat_conn_issue_cids(leat_conn *conn);

/* Begins a key update, which may be (leat_rekey_may_update()). */
void leat_conn_begin_update(leat_conn *conn) LEAT_SELDOM;
/* How long one waits for the other (RFC 9001 s6.5). */
static inline leat_time leat_conn_rekey_wait(const leat_conn *conn)
{
    return leat_time_mul(leat_loss_pto(&conn->loss, LEAT_SPACE_APP), 3);
}

/* send.c: the loss timer waits where nothing could be sent, for the anti-amplification limit. */
void leat_conn_note_blocked(leat_conn *conn);

/* recv.c: there is a path to this address, whichever of ours it begins at. */
bool leat_conn_sends_to(const leat_conn *conn, const leat_addr *remote) LEAT_SELDOM;

/* recv.c: where a frame came from, for its handler. */
typedef struct leat_packet_in {
    leat_pnspace *pn;
    uint64_t number;
    leat_time at;
    leat_packet_type type;
    uint8_t ecn;
    bool eliciting; /* set by the frames */
    bool ack_now;   /* IMMEDIATE_ACK */
    bool probing;   /* the same: all of them are probing (RFC 9000 s9.1) */
    size_t datagram_len;
    leat_span dcid;
    leat_path *path;     /* that it came on; NULL: there was none when it came */
    const leat_buf *buf; /* the whole receive buffer that frame data points into */
    const leat_recv_info *info;
} leat_packet_in;

void leat_conn_recv_task(leat_task *task);

/* frames.c: works through a payload; LEAT_TE_NO_ERROR, or the connection is closed already. */
uint64_t leat_conn_on_payload(leat_conn *conn, leat_packet_in *in, leat_span payload);

/* ack.c */
leat_time leat_conn_ack_delay(const leat_conn *conn, leat_space space, const leat_frame_ack *ack);
uint64_t leat_conn_on_ack(leat_conn *conn, leat_packet_in *in, const leat_frame_ack *ack);
void leat_conn_on_loss_timeout(leat_conn *conn, leat_time now) LEAT_SELDOM;
/* CRYPTO that was here came again. */
void leat_conn_on_crypto_again(leat_conn *conn) LEAT_SELDOM;
void leat_conn_on_packet_lost(void *user, const leat_sent_loss *loss) LEAT_SELDOM;
/* The path's datagram size changed. */
void leat_conn_on_mtu(leat_conn *conn) LEAT_SELDOM;

/* congestion.c: the settings' controller, for a new connection; mtu.size is known. */
void leat_conn_congestion_init(leat_conn *conn, leat_time now);

/* sentframes.c: kinds of leat_sent_frame records, and their table. */
typedef enum leat_record_kind {
    LEAT_RECORD_ACK,        /* value: largest acknowledged by it; owner: leat_pnspace */
    LEAT_RECORD_CRYPTO,     /* value: offset, len; owner: leat_pnspace */
    LEAT_RECORD_STREAM,     /* value: offset, len, flags 1: fin; owner: leat_stream */
    LEAT_RECORD_CONTROL,    /* flags: leat_control, value; owner: leat_stream or NULL */
    LEAT_RECORD_NEW_CID,    /* value: sequence number */
    LEAT_RECORD_RETIRE_CID, /* value: sequence number */
    LEAT_RECORD_HANDSHAKE_DONE,
    LEAT_RECORD_NEW_TOKEN,     /* value: leat_conn_token_mark() */
    LEAT_RECORD_PROBE,         /* len: datagram size; flags: number of the path */
    LEAT_RECORD_ACK_FREQUENCY, /* value: its sequence number */
    LEAT_RECORD_DATAGRAM,      /* value: the tag; flags 1: tell the application */
    LEAT_RECORD_KINDS
} leat_record_kind;
extern const leat_frame_ops leat_conn_frame_ops[LEAT_RECORD_KINDS];
/* Tells the token that is offered now from others. */
uint64_t leat_conn_token_mark(const leat_conn *conn);

/* handshake.c */
/* Begins, or begins again in another version, with the config and name in the handshake. */
leat_err leat_conn_handshake_new(leat_conn *conn);
void leat_conn_handshake_free(leat_conn *conn);
/* Frees what the confirmed handshake needs no more; does nothing before. */
void leat_conn_handshake_retire(leat_conn *conn);
/* TLS is past this level: nothing new may come at it. */
bool leat_conn_crypto_is_over(const leat_conn *conn, const leat_pnspace *pn);
/* CRYPTO data in order has become readable at this level. */
uint64_t leat_conn_on_crypto(leat_conn *conn, leat_pnspace *pn);
void leat_conn_on_retry(leat_conn *conn, const leat_header *header, leat_span packet) LEAT_SELDOM;
void leat_conn_on_version_negotiation(leat_conn *conn, const leat_header *header) LEAT_SELDOM;
uint64_t leat_conn_on_handshake_done(leat_conn *conn);
/* Server: sends a token for the client's next connection from where it is now (RFC 9000 s8.1.3). */
void leat_conn_offer_token(leat_conn *conn);
/* A Handshake packet was processed (server) or sent (client): Initial keys go (RFC 9001 s4.9.1). */
void leat_conn_drop_initial(leat_conn *conn);
/* The peer's transport parameters hold from now on. */
void leat_conn_apply_params(leat_conn *conn, const leat_tparams *params);
/* What the parameters say of streams. */
leat_streams_peer leat_conn_stream_limits(const leat_tparams *params);
/* The transport parameters of this side, encoded. */
size_t leat_conn_local_params(const leat_conn *conn, uint8_t out[LEAT_TPARAMS_MAX]);
/* Tells a sink of them (conn/trace.h). */
void leat_conn_trace_local_params(leat_conn *conn) LEAT_SELDOM;

/* close.c */
/* The peer broke a rule, or something failed here: closes with a transport error. detail: static or
 * kept by leat_conn_close_detail(); may be NULL. Does nothing when the connection is closed
 * already. */
void leat_conn_fail(leat_conn *conn, uint64_t code, uint64_t frame_type,
                    const char *detail) LEAT_SELDOM;
/* The same with what this library calls it. */
void leat_conn_fail_as(leat_conn *conn, leat_err err, uint64_t code,
                       const char *detail) LEAT_SELDOM;
void leat_conn_on_close(leat_conn *conn, const leat_frame_connection_close *frame,
                        const leat_buf *buf) LEAT_SELDOM;
/* Ends without a word to the peer: idle, handshake timeout, reset, version. */
void leat_conn_end(leat_conn *conn, leat_close_kind kind, leat_err err) LEAT_SELDOM;
/* A datagram came in the closing state. */
void leat_conn_close_poke(leat_conn *conn) LEAT_SELDOM;
/* Whether CONNECTION_CLOSE is to be sent now; asked once each time. */
bool leat_conn_close_due(leat_conn *conn);
/* Whether it goes out in this space: the peer may not have the keys of the highest level yet, so
 * until the handshake is confirmed each level that can says it (RFC 9000 s10.2.3). */
bool leat_conn_close_level(leat_conn *conn, leat_space space);
/* The frame. An application's close before 1-RTT would show what it should not: said as
 * APPLICATION_ERROR (s10.2.3). */
leat_frame_connection_close leat_conn_close_frame(const leat_conn *conn, leat_space space);
void leat_conn_close_over(leat_conn *conn) LEAT_SELDOM;

/* timers.c */
void leat_conn_timer_fired(leat_timer *timer, leat_time now);
/* Something changed that may bring the deadline forward. */
void leat_conn_rearm(leat_conn *conn);
/* The timer is set early enough for all that is waited for: between turns. */
void leat_conn_timer_check(leat_conn *conn);
/* Nothing did but packets that were sent and received. */
void leat_conn_rearm_usual(leat_conn *conn);
/* The connection is about to send or receive: its storage may grow again. */
static inline void leat_conn_not_small(leat_conn *conn)
{
    if (LEAT_UNLIKELY(conn->is_small)) {
        conn->is_small = false;
        conn->timer_settled = false; /* it is to shrink again some time */
    }
}
leat_time leat_conn_idle_deadline(const leat_conn *conn);
/* There is something new to wait for: settings.ask_after counts again. */
void leat_conn_may_ask(leat_conn *conn) LEAT_SELDOM;

/* idle.c: gives back the storage that an idle connection does not need. */
leat_time leat_conn_shrink_at(const leat_conn *conn);
void leat_conn_shrink(leat_conn *conn) LEAT_SELDOM;

/* events.c */
void leat_conn_event_task(leat_task *task);
/* Tells all that there is to tell, now. */
void leat_conn_tell_now(leat_conn *conn);
void leat_conn_tell(leat_conn *conn, unsigned events);
/* Streams and datagrams may have events: has them told. */
void leat_conn_tell_more(leat_conn *conn);

/* datagram.c */
uint64_t leat_conn_on_datagram(leat_conn *conn, const leat_frame *frame);
void leat_conn_datagram_done(leat_conn *conn, const leat_sent_frame *frame, bool acked);
/* From the event task, after `connected`. */
void leat_conn_tell_datagrams(leat_conn *conn);
/* The application wants news of packets, and these are its own. */
bool leat_conn_tells_news(const leat_conn *conn, leat_space space);
void leat_conn_tell_news(leat_conn *conn);

#endif
