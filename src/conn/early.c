/* conn/early.c: see conn/early.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/conn.h"

#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/time.h"
#include "conn/trace.h"
#include "crypto/secret.h"

static leat_early_work *take_work(leat_conn *conn)
{
    leat_early_work *work = leat_pool_take_zeroed(&leat_conn_shared_of(conn)->early_works);

    if (work) {
        work->drop_at = LEAT_TIME_NEVER;
    }
    return work;
}

static void drop_session(leat_early_work *work)
{
    if (work->session.block) {
        leat_wipe(work->session.data, work->session.len);
        leat_buf_release(&work->session);
    }
}

static void drop_keys(leat_conn *conn)
{
    leat_early_work *work = conn->early_work;

    if (leat_packet_keys_ready(&work->keys)) {
        leat_packet_keys_drop(&work->keys, leat_conn_shared_of(conn)->keys);
        leat_trace_key(conn, LEAT_EVENT_KEY_DISCARDED, LEAT_LEVEL_ZERO_RTT,
                       conn->is_server ? LEAT_RX : LEAT_TX, "tls", 0);
    }
}

static void drop_work(leat_conn *conn)
{
    if (conn->early_work) {
        drop_keys(conn);
        drop_session(conn->early_work);
        leat_wipe(conn->early_work, sizeof(*conn->early_work));
        leat_pool_give(&leat_conn_shared_of(conn)->early_works, conn->early_work);
        conn->early_work = NULL;
    }
}

/* ---- client: the offer ---- */

static bool same_text(leat_span span, const char *text)
{
    size_t len = text ? strlen(text) : 0;

    return span.len == len && (len == 0 || memcmp(span.data, text, len) == 0);
}

/* A certificate that was not checked then is not checked now: such a session is no good where one
 * wants that. */
static bool usable(const leat_conn *conn, const leat_connect *how, const leat_session *session)
{
    unsigned trust = leat_tls_config_trust(how->tls);

    return same_text(session->server_name, how->server_name) && (session->trust & trust) == trust &&
           leat_schedule_for(session->version) != NULL &&
           leat_version_spoken(conn->settings, session->version) &&
           (conn->settings->version == 0 || conn->settings->version == session->version);
}

static leat_err prepare_tickets(leat_conn *conn, const leat_connect *how)
{
    leat_tickets *tickets;
    unsigned wanted = leat_tls_config_tickets(how->tls);

    if (wanted == 0) {
        return LEAT_OK;
    }
    tickets = leat_pool_take_zeroed(&leat_conn_shared_of(conn)->tickets);
    if (!tickets) {
        return LEAT_ERR_NOMEM;
    }
    conn->tickets = tickets;
    tickets->wanted = wanted;
    tickets->trust = (uint8_t)leat_tls_config_trust(how->tls);
    tickets->until = LEAT_TIME_NEVER;
    if (how->server_name) {
        tickets->name = leat_conn_keep(conn, how->server_name, strlen(how->server_name));
        return tickets->name.block ? LEAT_OK : LEAT_ERR_NOMEM;
    }
    return LEAT_OK;
}

leat_err leat_early_prepare(leat_conn *conn, const leat_connect *how)
{
    leat_early_work *work;
    leat_session session;
    leat_err err = prepare_tickets(conn, how);

    if (err != LEAT_OK || !leat_session_decode(how->session, &session) ||
        !usable(conn, how, &session)) {
        return err;
    }
    conn->early_work = work = take_work(conn);
    if (!work) {
        return LEAT_ERR_NOMEM;
    }
    conn->version = session.version; /* a ticket is good for its version (RFC 9369 s5) */
    conn->hs->version.original = session.version;
    work->session = leat_conn_keep(conn, session.tls.data, session.tls.len);
    work->remembered = session.params;
    work->offer = session.early && conn->settings->early_data &&
                  leat_tls_config_has_alpn(how->tls, session.alpn);
    if (work->offer) {
        conn->alpn = leat_conn_keep_long(conn, session.alpn.data, session.alpn.len);
    }
    return work->session.block && (!work->offer || conn->alpn.data) ? LEAT_OK : LEAT_ERR_NOMEM;
}

void leat_early_begun(leat_conn *conn)
{
    leat_early_work *work = conn->early_work;

    if (!work || conn->is_server || conn->early != LEAT_EARLY_NONE) {
        return;
    }
    drop_session(work);
    if (leat_packet_keys_ready(&work->keys)) {
        leat_streams_peer limits = leat_conn_stream_limits(&work->remembered);

        conn->early = LEAT_EARLY_OFFERED;
        leat_trace_restored(conn, &work->remembered);
        leat_streams_set_peer(&conn->streams, &limits);
        conn->datagrams.peer_max = work->remembered.max_datagram_frame_size;
    } else {
        drop_work(conn);
        leat_conn_let_go(conn, &conn->alpn);
    }
}

void leat_early_give_up(leat_conn *conn)
{
    leat_early_work *work = conn->early_work;

    if (!work) {
        return;
    }
    drop_session(work);
    drop_keys(conn);
    work->offer = false;
    if (conn->early == LEAT_EARLY_OFFERED) {
        conn->early = LEAT_EARLY_REJECTED; /* to be told when the handshake is complete */
        conn->early_end = leat_sent_next_pn(&conn->app.sent);
        leat_sent_forget(&conn->app.sent, true);
    } else {
        drop_work(conn);
        leat_conn_let_go(conn, &conn->alpn);
    }
}

bool leat_early_hold_params(leat_conn *conn, const leat_tparams *params)
{
    leat_early_work *work = conn->early_work;

    if (conn->is_server || conn->early == LEAT_EARLY_NONE || !work) {
        return false;
    }
    work->fresh = *params;
    work->fresh.version_information.available = (leat_span){NULL, 0}; /* pointed into TLS's bytes */
    work->has_fresh = true;
    return true;
}

leat_packet_keys *leat_early_tx(leat_conn *conn)
{
    leat_early_work *work = conn->early_work;

    return work && !conn->is_server && leat_packet_keys_ready(&work->keys) ? &work->keys : NULL;
}

/* ---- client: the answer ---- */

/* RFC 9001 s4.6.2: what was sent counts as never sent. */
static void restart(leat_conn *conn)
{
    leat_streams_peer limits = leat_conn_stream_limits(&conn->early_work->fresh);

    conn->early = LEAT_EARLY_REJECTED;
    conn->early_end = leat_sent_next_pn(&conn->app.sent);
    leat_sent_forget(&conn->app.sent, true);
    leat_streams_restart(&conn->streams, &limits);
}

static uint64_t client_complete(leat_conn *conn)
{
    leat_early_work *work = conn->early_work;
    leat_tparams fresh;

    if (!work || !work->has_fresh) {
        drop_work(conn);
        return LEAT_TE_NO_ERROR;
    }
    if (conn->early == LEAT_EARLY_OFFERED && leat_tls_early_accepted(conn->hs->tls)) {
        if (!leat_session_limits_kept(&work->remembered, &work->fresh)) {
            leat_conn_fail(conn, LEAT_TE_PROTOCOL_VIOLATION, LEAT_FRAME_CODE_CRYPTO,
                           "0-RTT was accepted with lower limits than before");
            return LEAT_TE_PROTOCOL_VIOLATION;
        }
        conn->early = LEAT_EARLY_ACCEPTED;
    } else {
        restart(conn);
    }
    fresh = work->fresh;
    drop_work(conn);
    leat_conn_apply_params(conn, &fresh);
    return LEAT_TE_NO_ERROR;
}

/* ---- server ---- */

leat_packet_keys *leat_early_rx(leat_conn *conn, const leat_header *header, bool *wait)
{
    leat_early_work *work = conn->early_work;

    *wait = false;
    if (!conn->is_server) {
        return NULL;
    }
    if (work && leat_packet_keys_ready(&work->keys)) {
        return header->version == work->keys.schedule->version ? &work->keys : NULL;
    }
    /* With its Handshake keys TLS has read the ClientHello, and decided. */
    *wait = conn->settings->early_data && conn->hs && conn->state == LEAT_CONN_HANDSHAKE &&
            !leat_packet_keys_ready(&conn->hs->keys[LEAT_SPACE_HANDSHAKE].tx);
    return NULL;
}

void leat_early_review(leat_conn *conn)
{
    leat_span alpn, sni;

    if (!conn->is_server || conn->early != LEAT_EARLY_NONE || !conn->early_work ||
        !leat_tls_early_accepted(conn->hs->tls)) {
        return;
    }
    conn->early = LEAT_EARLY_ACCEPTED;
    alpn = leat_tls_alpn(conn->hs->tls);
    sni = leat_tls_sni(conn->hs->tls);
    conn->alpn = leat_conn_keep_long(conn, alpn.data, alpn.len);
    if (!conn->alpn.data) { /* nobody could tell what the streams say */
        leat_conn_fail_as(conn, LEAT_ERR_NOMEM, LEAT_TE_INTERNAL_ERROR, NULL);
        return;
    }
    if (sni.len > 0) {
        conn->server_name = leat_conn_keep_long(conn, sni.data, sni.len);
    }
    leat_conn_tell(conn, LEAT_CONN_TELL_EARLY);
}

uint64_t leat_early_tag(const leat_conn *conn, uint32_t version)
{
    static const leat_hash_key key = {{0x6c656174, 0x30525454}};
    const leat_conn_settings *s = conn->settings;
    const uint64_t promised[] = {
        version,
        s->max_data,
        s->max_stream_data_bidi_local,
        s->max_stream_data_bidi_remote,
        s->max_stream_data_uni,
        s->max_streams_bidi,
        s->max_streams_uni,
        s->max_datagram_frame_size,
        !s->disable_reset_stream_at,
    };

    return leat_hash_bytes(&key, promised, sizeof(promised));
}

/* ---- both ---- */

leat_err leat_early_secret(leat_conn *conn, leat_dir dir, leat_aead aead, const uint8_t *secret)
{
    if ((dir == LEAT_RX) != conn->is_server) {
        return LEAT_OK;
    }
    if (conn->is_server && !conn->early_work) {
        conn->early_work = take_work(conn);
    }
    if (!conn->early_work) {
        return LEAT_OK; /* no memory: 0-RTT packets are as good as lost */
    }
    leat_packet_keys_set(&conn->early_work->keys, leat_schedule_for(conn->hs->version.original),
                         aead, secret);
    return LEAT_OK;
}

uint64_t leat_early_complete(leat_conn *conn)
{
    conn->resumed = leat_tls_resumed(conn->hs->tls);
    if (!conn->is_server) {
        return client_complete(conn);
    }
    if (conn->early_work) {
        conn->early_work->drop_at = leat_time_add(
            leat_conn_now(conn), leat_time_mul(leat_loss_pto(&conn->loss, LEAT_SPACE_APP), 3));
    }
    return LEAT_TE_NO_ERROR;
}

leat_time leat_early_deadline(const leat_conn *conn)
{
    leat_time at = conn->early_work ? conn->early_work->drop_at : LEAT_TIME_NEVER;

    return conn->tickets && conn->tickets->tls ? leat_time_min(at, conn->tickets->until) : at;
}

static void end_tickets(leat_conn *conn)
{
    leat_tickets *tickets = conn->tickets;

    if (tickets->tls) {
        leat_tls_leave(tickets->tls, &conn->post);
        leat_tls_free(tickets->tls);
        tickets->tls = NULL;
    }
    if (tickets->count == 0) {
        leat_buf_release(&tickets->name);
        leat_pool_give(&leat_conn_shared_of(conn)->tickets, tickets);
        conn->tickets = NULL;
    }
}

void leat_early_on_time(leat_conn *conn, leat_time now)
{
    if (conn->early_work && now >= conn->early_work->drop_at) {
        drop_work(conn);
    }
    if (conn->tickets && conn->tickets->tls && now >= conn->tickets->until) {
        end_tickets(conn);
    }
}

void leat_early_free(leat_conn *conn)
{
    drop_work(conn);
    if (conn->tickets) {
        for (uint8_t i = 0; i < conn->tickets->count; i++) {
            leat_buf_release(&conn->tickets->blob[i]);
        }
        conn->tickets->count = 0;
        leat_tls_free(conn->tickets->tls);
        conn->tickets->tls = NULL;
        end_tickets(conn);
    }
}

/* ---- tickets ---- */

void leat_tickets_keep_tls(leat_conn *conn)
{
    leat_tickets *tickets = conn->tickets;

    if (!tickets) {
        return;
    }
    tickets->tls = conn->hs->tls;
    conn->hs->tls = NULL;
    tickets->until = leat_time_add(leat_conn_now(conn), LEAT_TICKET_WAIT);
    leat_tickets_review(conn);
    leat_conn_rearm(conn);
}

void leat_tickets_review(leat_conn *conn)
{
    leat_tickets *tickets = conn->tickets;

    if (tickets && tickets->tls && leat_tls_tickets_seen(tickets->tls) >= tickets->wanted) {
        end_tickets(conn);
    }
}

/* What is to be remembered of the server's parameters. */
static void remember(const leat_conn *conn, leat_tparams *params)
{
    const leat_streams_peer *limits = &conn->streams.peer;

    leat_tparams_init(params);
    params->max_idle_timeout = conn->peer.idle_timeout / LEAT_MILLISECOND;
    params->max_udp_payload_size = conn->peer.max_udp_payload;
    params->initial_max_data = limits->max_data;
    params->initial_max_stream_data_bidi_local = limits->max_stream_data_bidi_local;
    params->initial_max_stream_data_bidi_remote = limits->max_stream_data_bidi_remote;
    params->initial_max_stream_data_uni = limits->max_stream_data_uni;
    params->initial_max_streams_bidi = limits->max_streams_bidi;
    params->initial_max_streams_uni = limits->max_streams_uni;
    params->active_connection_id_limit = conn->peer.cid_limit;
    params->max_datagram_frame_size = conn->datagrams.peer_max;
    params->present = conn->peer.no_migration ? LEAT_TP_disable_active_migration : 0;
    if (limits->reset_stream_at) {
        params->present |= LEAT_TP_reset_stream_at;
    }
}

void leat_tickets_on_ticket(leat_conn *conn, leat_span tls, bool early)
{
    leat_tickets *tickets = conn->tickets;
    leat_session session = {
        .early = early,
        .version = conn->version,
        .alpn = {conn->alpn.data, conn->alpn.len},
        .tls = tls,
    };
    leat_buf blob;
    size_t size;

    if (!tickets || tickets->count == LEAT_SESSIONS_PENDING_MAX || !leat_conn_is_open(conn)) {
        return;
    }
    session.trust = tickets->trust;
    session.server_name = (leat_span){tickets->name.data, tickets->name.len};
    remember(conn, &session.params);
    size = leat_session_size(&session);
    if (size > LEAT_SESSION_MAX ||
        leat_buf_take(leat_conn_shared_of(conn)->mem, size, &blob) != LEAT_OK) {
        return; /* without it the next connection is a new one */
    }
    size = leat_session_encode(&session, blob.data, size);
    if (size == 0) {
        leat_buf_release(&blob);
        return;
    }
    leat_buf_trim(&blob, size);
    tickets->blob[tickets->count++] = blob;
    leat_conn_tell(conn, LEAT_CONN_TELL_TICKETS);
}

void leat_tickets_tell(leat_conn *conn)
{
    leat_tickets *tickets = conn->tickets;

    if (!tickets) {
        return;
    }
    for (uint8_t i = 0; i < tickets->count; i++) {
        if (conn->events->ticket) {
            conn->events->ticket(conn, (leat_span){tickets->blob[i].data, tickets->blob[i].len},
                                 conn->user);
        }
        leat_wipe(tickets->blob[i].data, tickets->blob[i].len);
        leat_buf_release(&tickets->blob[i]);
    }
    tickets->count = 0;
    if (!tickets->tls && !conn->hs) {
        end_tickets(conn);
    }
}

/* ---- questions ---- */

leat_early leat_conn_early(const leat_conn *conn)
{
    return (leat_early)conn->early;
}

bool leat_conn_resumed(const leat_conn *conn)
{
    return conn->resumed;
}
