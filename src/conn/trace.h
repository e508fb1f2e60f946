/* conn/trace.h: what the endpoint's sink is told of a connection (leat/event.h).
 *
 * Without a sink all of it does nothing. Where packets pass, the caller asks leat_trace_on() first:
 * that is all that a packet costs then. No function changes the connection but for what it has
 * told last, nor draws random numbers: a run is the same with a sink and without. None allocates.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_TRACE_H
#define LEAT_CONN_TRACE_H

#include <leat/event.h>

#include "conn/conn.h"
#include "conn/frames_out.h"

static inline bool leat_trace_on(const leat_conn *conn)
{
    return LEAT_UNLIKELY(conn->host->sink != NULL);
}

/* ---- how the connection goes ---- */

void leat_trace_started(leat_conn *conn) LEAT_SELDOM;
void leat_trace_closed(leat_conn *conn) LEAT_SELDOM;
void leat_trace_handshake(leat_conn *conn) LEAT_SELDOM;
/* peer: its versions, four bytes each, where they are known. chosen 0: none in common. */
void leat_trace_versions(leat_conn *conn, leat_span peer, uint32_t chosen) LEAT_SELDOM;
void leat_trace_params(leat_conn *conn, bool local, const leat_tparams *params) LEAT_SELDOM;
/* A client's 0-RTT goes by these. */
void leat_trace_restored(leat_conn *conn, const leat_tparams *params) LEAT_SELDOM;

/* ---- keys ---- */

void leat_trace_key(leat_conn *conn, leat_event_type type, leat_level level, leat_dir dir,
                    const char *trigger, uint64_t phase) LEAT_SELDOM;
/* TLS's keys of a level, both ways. */
void leat_trace_keys(leat_conn *conn, leat_event_type type, leat_level level) LEAT_SELDOM;

/* The phases of the 1-RTT keys. */
typedef struct leat_key_phases {
    uint64_t tx, rx;
    bool has_prev; /* keys of the phase before rx are held */
} leat_key_phases;

static inline leat_key_phases leat_key_phases_of(const leat_rekey *rekey)
{
    return (leat_key_phases){rekey->tx_phase, rekey->rx_phase,
                             leat_packet_keys_ready(&rekey->rx_prev)};
}

/* What came and went since `before`. */
void leat_trace_rekey(leat_conn *conn, leat_key_phases before, const char *trigger) LEAT_SELDOM;

/* ---- packets ---- */

/* Why a packet is dropped: X(NAME, how qlog sorts it, what a line says). */
#define LEAT_DROP_LIST(X)                                                                          \
    X(DUPLICATE, "duplicate", "duplicate")                                                         \
    X(FORGED, "decryption_failure", "not authentic")                                               \
    X(NO_KEYS, "key_unavailable", "no keys")                                                       \
    X(NO_KEYS_YET, "key_unavailable", "no keys yet, shelf full")                                   \
    X(KEYS_GONE, "key_unavailable", "keys are gone")                                               \
    X(NO_EARLY, "key_unavailable", "0-RTT is not accepted")                                        \
    X(NO_MEMORY, "internal_error", "out of memory")                                                \
    X(OTHER_VERSION, "unsupported", "another version")                                             \
    X(TOO_SHORT, "invalid", "too short for its protection")                                        \
    X(MALFORMED, "invalid", "not a QUIC packet")                                                   \
    X(FIXED_BIT, "invalid", "fixed bit is clear")                                                  \
    X(SERVER_TOKEN, "invalid", "a server's Initial with a token")                                  \
    X(SMALL_INITIAL, "invalid", "an Initial in a small datagram")                                  \
    X(BAD_RETRY, "rejected", "a Retry that cannot be followed")                                    \
    X(BAD_NEGOTIATION, "rejected", "a Version Negotiation that cannot be followed")                \
    X(OTHER_SCID, "rejected", "another source connection ID")                                      \
    X(OTHER_ADDRESS, "rejected", "from another address")                                           \
    X(OTHER_CONN, "connection_unknown", "coalesced packet for another connection")

#define LEAT_DROP_ENUM(name, trigger, reason) LEAT_DROP_##name,
typedef enum leat_drop { LEAT_DROP_LIST(LEAT_DROP_ENUM) LEAT_DROPS } leat_drop;
#undef LEAT_DROP_ENUM

void leat_trace_dropped(leat_conn *conn, leat_packet_type packet, size_t len,
                        leat_drop why) LEAT_SELDOM;
void leat_trace_buffered(leat_conn *conn, const leat_header *header) LEAT_SELDOM;
/* first: of the header, unprotected. */
void leat_trace_received(leat_conn *conn, const leat_header *header, const leat_packet_in *in,
                         uint8_t first) LEAT_SELDOM;
/* A Retry or Version Negotiation that is followed. */
void leat_trace_unprotected(leat_conn *conn, const leat_header *header) LEAT_SELDOM;
/* The frames of a packet that is not sealed yet, then the packet. */
void leat_trace_out(const leat_packet_out *out, const leat_path *path, uint64_t number, size_t len,
                    uint8_t ecn) LEAT_SELDOM;
void leat_trace_lost(leat_conn *conn, leat_space space, const leat_sent_loss *loss) LEAT_SELDOM;
/* trace_frames.c */
void leat_trace_frame(leat_conn *conn, leat_event_type type, leat_space space,
                      const leat_frame *frame) LEAT_SELDOM;

/* ---- the path ---- */

void leat_trace_metrics(leat_conn *conn) LEAT_SELDOM;
/* Does nothing when ECN's state is still `before`. */
void leat_trace_ecn(leat_conn *conn, leat_ecn_path before) LEAT_SELDOM;
void leat_trace_mtu(leat_conn *conn, uint16_t before) LEAT_SELDOM;
/* Nothing unless the congestion controller's state is another than last time. */
void leat_trace_congestion(leat_conn *conn) LEAT_SELDOM;
/* Nothing unless the spin bit is another than last time. */
void leat_trace_spin(leat_conn *conn) LEAT_SELDOM;
/* This side sends to another ID of the peer's. Nothing when they are equal. */
void leat_trace_cid(leat_conn *conn, const leat_cid *from, const leat_cid *to) LEAT_SELDOM;
/* The peer sends to another of ours. from is empty before its first 1-RTT packet, to where it is
 * not known yet. */
void leat_trace_addressed(leat_conn *conn, leat_cid from, const leat_cid *to) LEAT_SELDOM;
/* A path was added, or is about to be dropped. */
void leat_trace_path(leat_conn *conn, const leat_path *path, bool gone) LEAT_SELDOM;
/* state: static, see leat_event_migration. */
void leat_trace_migration(leat_conn *conn, const leat_path *path, const char *state) LEAT_SELDOM;

/* ---- for both files ---- */

leat_event leat_trace_begin(const leat_conn *conn, leat_event_type type);

static inline void leat_trace_emit(const leat_conn *conn, const leat_event *event)
{
    conn->host->sink->emit(conn->host->sink, event);
}

/* "initial" and so on, as qlog has them. */
const char *leat_trace_packet_type(leat_packet_type type);

#endif
