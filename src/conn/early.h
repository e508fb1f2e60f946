/* conn/early.h: resumed sessions, and 0-RTT (RFC 9001 §4.6, RFC 9000 §7.4.1).
 *
 * Client. A session that leat_connect brings is offered; with settings.early_data, and if its
 * ticket allows, 0-RTT too: the server's limits of last time hold, 0-RTT keys are there, streams
 * may be used. What the server answers counts when the handshake is complete: accepted   its limits
 * may not be lower than remembered; what was sent stays sent rejected   whatever was sent counts as
 * never sent, and the new limits hold A Retry keeps 0-RTT going and has it sent again; Version
 * Negotiation ends it as a rejection.
 *
 * Server. TLS says after the ClientHello whether 0-RTT is accepted. Its packets that came before
 * wait with the others that came before their keys; those that come late are read for three PTOs
 * after the handshake is complete. 0-RTT and 1-RTT packets share a number space.
 *
 * Tickets. A client that wants tickets keeps TLS after the handshake until they have come, or for
 * LEAT_TICKET_WAIT; each is told to the application as a blob (conn/session.h).
 *
 * The work in progress is in objects of their own (leat_early_work, leat_tickets), which are there
 * for as long as they are needed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_EARLY_H
#define LEAT_CONN_EARLY_H

#include <leat/quic.h>

#include "conn/session.h"
#include "crypto/keys.h"
#include "tls/tls.h"
#include "wire/header.h"

#define LEAT_TICKET_WAIT (3 * LEAT_SECOND)

typedef struct leat_early_work {
    leat_packet_keys keys; /* of 0-RTT: a client sends with them, a server receives */
    leat_time drop_at;     /* server: when they go; LEAT_TIME_NEVER before it is known */
    leat_buf session;      /* client: TLS's part of the session, until it was offered */
    bool offer;            /* client: 0-RTT too */
    bool has_fresh;
    leat_tparams remembered; /* client */
    leat_tparams fresh;      /* client: the server's of today, until the handshake is complete */
} leat_early_work;

typedef struct leat_tickets {
    leat_tls *tls;   /* after the handshake; NULL before, and when it is over */
    leat_time until; /* when TLS goes, tickets or not */
    leat_buf name;   /* the server's */
    unsigned wanted;
    uint8_t trust;
    uint8_t count;
    leat_buf blob[LEAT_SESSIONS_PENDING_MAX]; /* to be told */
} leat_tickets;

/* ---- client ---- */

/* Before the handshake begins: takes from leat_connect what can be used of its session. A session
 * that is not good for this connection is passed over. LEAT_ERR_NOMEM. */
leat_err leat_early_prepare(leat_conn *conn, const leat_connect *how);

/* TLS could not begin with the session, or begins again in another version: goes on without it. */
void leat_early_give_up(leat_conn *conn);

/* TLS has begun. */
void leat_early_begun(leat_conn *conn);

/* The server's parameters are kept until the handshake is complete; false: apply them now. */
bool leat_early_hold_params(leat_conn *conn, const leat_tparams *params);

/* The keys to send 0-RTT with, or NULL: it is not offered, or over. */
leat_packet_keys *leat_early_tx(leat_conn *conn);

/* ---- server ---- */

/* The keys for a 0-RTT packet, or NULL. *wait: they may still come. */
leat_packet_keys *leat_early_rx(leat_conn *conn, const leat_header *header, bool *wait);

/* TLS has read something: has it accepted 0-RTT? */
void leat_early_review(leat_conn *conn);

/* What a ticket's early data depends on here, for a version of QUIC. */
uint64_t leat_early_tag(const leat_conn *conn, uint32_t version);

/* ---- both ---- */

/* The secret of 0-RTT. */
leat_err leat_early_secret(leat_conn *conn, leat_dir dir, leat_aead aead, const uint8_t *secret);

/* The handshake is complete. LEAT_TE_NO_ERROR, or the connection is closed already. */
uint64_t leat_early_complete(leat_conn *conn);

/* The handshake's part is about to be freed: keeps TLS if tickets are still wanted. */
void leat_tickets_keep_tls(leat_conn *conn);

/* TLS's hook. */
void leat_tickets_on_ticket(leat_conn *conn, leat_span session, bool early);

/* TLS has read something after the handshake. */
void leat_tickets_review(leat_conn *conn);

void leat_tickets_tell(leat_conn *conn);

leat_time leat_early_deadline(const leat_conn *conn);
void leat_early_on_time(leat_conn *conn, leat_time now);
void leat_early_free(leat_conn *conn);

#endif
