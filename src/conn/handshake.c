/* conn/handshake.c: TLS joined to the connection: its bytes go in CRYPTO frames, its secrets become
 * keys, the transport parameters ride in it (RFC 9001 s4).
 *
 * The handshake goes through these steps:
 *   complete   TLS says so: the application is told, streams may be used
 *   confirmed  a server at once; a client by HANDSHAKE_DONE. All that is needed for the handshake
 * alone is then dropped: TLS, the Initial and Handshake spaces and their keys
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/conn.h"

#include <string.h>

#include "base/assert.h"
#include "conn/preferred.h"
#include "conn/trace.h"
#include "crypto/retry.h"
#include "crypto/token.h"

/* ---- transport parameters ---- */

/* All but the reserved parameter; versions must live until they are encoded. */
static void local_params(const leat_conn *conn, uint8_t versions[4 * LEAT_VERSIONS_MAX],
                         leat_tparams *params)
{
    const leat_conn_settings *s = conn->settings;

    leat_tparams_init(params);
    params->max_idle_timeout = s->idle_timeout / LEAT_MILLISECOND;
    params->initial_max_data = s->max_data;
    params->initial_max_stream_data_bidi_local = s->max_stream_data_bidi_local;
    params->initial_max_stream_data_bidi_remote = s->max_stream_data_bidi_remote;
    params->initial_max_stream_data_uni = s->max_stream_data_uni;
    params->initial_max_streams_bidi = s->max_streams_bidi;
    params->initial_max_streams_uni = s->max_streams_uni;
    params->ack_delay_exponent = LEAT_ACK_DELAY_EXPONENT;
    params->max_ack_delay = s->max_ack_delay / LEAT_MILLISECOND;
    params->active_connection_id_limit = LEAT_REMOTE_CIDS_MAX;
    params->max_datagram_frame_size = s->max_datagram_frame_size;
    params->initial_scid = conn->local_cids.entry[0].cid;
    params->present = LEAT_TP_initial_scid;
    if (s->disable_migration) {
        params->present |= LEAT_TP_disable_active_migration;
    }
    if (conn->is_server) {
        params->original_dcid = conn->odcid;
        leat_reset_token(conn->host->reset_key, params->initial_scid.data, params->initial_scid.len,
                         params->stateless_reset_token);
        params->present |= LEAT_TP_original_dcid | LEAT_TP_stateless_reset_token;
        if (conn->hs->has_retry) {
            params->retry_scid = conn->hs->retry_scid;
            params->present |= LEAT_TP_retry_scid;
        }
        leat_preferred_offer(conn, params);
    }
    if (!s->disable_reset_stream_at) {
        params->present |= LEAT_TP_reset_stream_at;
    }
    if (conn->ackfreq.own_min > 0) {
        params->present |= LEAT_TP_min_ack_delay;
        params->min_ack_delay = conn->ackfreq.own_min / LEAT_MICROSECOND;
    }
    leat_version_offer(conn, params, versions);
}

size_t leat_conn_local_params(const leat_conn *conn, uint8_t out[LEAT_TPARAMS_MAX])
{
    uint8_t versions[4 * LEAT_VERSIONS_MAX];
    uint8_t grease[16];
    leat_tparams params;
    leat_writer w;

    local_params(conn, versions, &params);
    leat_grease_params(&conn->grease, &leat_conn_shared_of(conn)->random, &params, grease);
    leat_writer_init(&w, out, LEAT_TPARAMS_MAX);
    bool fits = leat_tparams_encode(&params, &w);
    LEAT_ASSERT(fits);
    return leat_writer_len(&w);
}

void leat_conn_trace_local_params(leat_conn *conn)
{
    uint8_t versions[4 * LEAT_VERSIONS_MAX];
    leat_tparams params;

    if (leat_trace_on(conn)) {
        local_params(conn, versions, &params);
        params.present |= conn->grease.accepts ? LEAT_TP_grease_quic_bit : 0;
        leat_trace_params(conn, true, &params);
    }
}

leat_streams_peer leat_conn_stream_limits(const leat_tparams *params)
{
    return (leat_streams_peer){
        .max_data = params->initial_max_data,
        .max_stream_data_bidi_local = params->initial_max_stream_data_bidi_local,
        .max_stream_data_bidi_remote = params->initial_max_stream_data_bidi_remote,
        .max_stream_data_uni = params->initial_max_stream_data_uni,
        .max_streams_bidi = params->initial_max_streams_bidi,
        .max_streams_uni = params->initial_max_streams_uni,
        .reset_stream_at = leat_tparams_has(params, LEAT_TP_reset_stream_at),
    };
}

void leat_conn_apply_params(leat_conn *conn, const leat_tparams *params)
{
    leat_streams_peer streams = leat_conn_stream_limits(params);
    uint64_t cids = params->active_connection_id_limit;

    conn->peer = (leat_conn_peer){
        .max_ack_delay = params->max_ack_delay * LEAT_MILLISECOND,
        .idle_timeout = params->max_idle_timeout > LEAT_TIME_NEVER / LEAT_MILLISECOND
                            ? LEAT_TIME_NEVER
                            : params->max_idle_timeout * LEAT_MILLISECOND,
        .max_udp_payload = params->max_udp_payload_size,
        .cid_limit = params->active_connection_id_limit,
        .ack_delay_exponent = (uint8_t)params->ack_delay_exponent,
        .no_migration = leat_tparams_has(params, LEAT_TP_disable_active_migration),
        .known = true,
    };
    conn->loss.max_ack_delay = conn->peer.max_ack_delay;
    conn->datagrams.peer_max = params->max_datagram_frame_size;
    if (leat_tparams_has(params, LEAT_TP_min_ack_delay)) {
        leat_ackfreq_set_peer(&conn->ackfreq, params->min_ack_delay * LEAT_MICROSECOND);
    }
    conn->grease.quic_bit =
        conn->grease.accepts && leat_tparams_has(params, LEAT_TP_grease_quic_bit);
    leat_mtu_limit(&conn->mtu, params->max_udp_payload_size);
    leat_streams_set_peer(&conn->streams, &streams);
    conn->local_cids.want =
        (uint8_t)(cids < LEAT_LOCAL_CIDS_DEFAULT ? cids : LEAT_LOCAL_CIDS_DEFAULT);
    if (params->present & LEAT_TP_stateless_reset_token) {
        leat_remote_cids_set_token(&conn->remote_cids, params->stateless_reset_token);
        leat_conn_heed_reset(conn, &conn->remote_cids.entry[0]);
    }
    leat_preferred_on_params(conn, params);
}

/* Both sides have said what they have to say. */
static void trace_agreed(leat_conn *conn, const leat_tparams *peer)
{
    if (conn->is_server) { /* a client has told of its own before */
        leat_conn_trace_local_params(conn);
    }
    leat_trace_params(conn, false, peer);
    if (leat_tparams_has(peer, LEAT_TP_version_information)) {
        leat_trace_versions(conn, peer->version_information.available, conn->version);
    }
}

/* TLS passes the peer's parameters on. A HelloRetryRequest makes them come twice. */
static uint64_t hook_params(void *user, const uint8_t *data, size_t len)
{
    leat_conn *conn = user;
    leat_handshake *hs = conn->hs;
    leat_tparams params;
    const char *why = NULL;
    bool changed = false;
    uint64_t error = leat_tparams_decode((leat_span){data, len}, !conn->is_server, &params, &why);

    if (error == LEAT_TE_NO_ERROR) {
        error = leat_tparams_check_cids(&params, !conn->is_server, &hs->first_scid, &conn->odcid,
                                        hs->has_retry ? &hs->retry_scid : NULL, &why);
    }
    if (error == LEAT_TE_NO_ERROR && !conn->peer.known) {
        error = leat_version_on_params(conn, &params, &changed, &why);
    }
    if (changed) {
        uint8_t ours[LEAT_TPARAMS_MAX];

        leat_tls_set_params(hs->tls, (leat_span){ours, leat_conn_local_params(conn, ours)});
    }
    if (error != LEAT_TE_NO_ERROR) {
        leat_conn_fail(conn, error, LEAT_FRAME_CODE_CRYPTO, why);
        return error;
    }
    if (!conn->peer.known) {
        trace_agreed(conn, &params);
        if (!leat_early_hold_params(conn, &params)) {
            leat_conn_apply_params(conn, &params);
        }
    }
    return LEAT_TE_NO_ERROR;
}

static uint32_t hook_version(void *user, leat_span params)
{
    return leat_version_foreseen(user, params);
}

/* ---- keys ---- */

static leat_err hook_secret(void *user, leat_level level, leat_dir dir, leat_aead aead,
                            const uint8_t *secret, size_t len)
{
    leat_conn *conn = user;
    const leat_schedule *schedule = leat_schedule_for(conn->version);
    leat_pnspace *pn;

    (void)len;
    switch (level) {
    case LEAT_LEVEL_HANDSHAKE:
        pn = &conn->hs->spaces[LEAT_SPACE_HANDSHAKE];
        leat_packet_keys_set(dir == LEAT_RX ? &pn->keys->rx : &pn->keys->tx, schedule, aead,
                             secret);
        break;
    case LEAT_LEVEL_ONE_RTT:
        if (dir == LEAT_RX) {
            leat_rekey_set_rx(&conn->rekey, schedule, aead, secret);
        } else {
            leat_rekey_set_tx(&conn->rekey, schedule, aead, secret);
        }
        break;
    case LEAT_LEVEL_ZERO_RTT:
        if (leat_early_secret(conn, dir, aead, secret) != LEAT_OK) {
            return LEAT_ERR_NOMEM;
        }
        break;
    case LEAT_LEVEL_INITIAL:
    case LEAT_LEVEL_COUNT:
        return LEAT_OK;
    }
    if (dir == LEAT_RX) {
        conn->hs->fresh_keys = true;
    }
    leat_trace_key(conn, LEAT_EVENT_KEY_UPDATED, level, dir, "tls", 0);
    return LEAT_OK;
}

static leat_err hook_send(void *user, leat_level level, const uint8_t *data, size_t len)
{
    leat_conn *conn = user;
    leat_pnspace *pn = leat_conn_space(conn, leat_level_space(level));
    size_t written = 0;
    leat_err err;

    if (!pn) {
        return LEAT_ERR_STATE;
    }
    if (!leat_conn_crypto(conn, pn)) {
        return LEAT_ERR_NOMEM;
    }
    err = leat_stream_send_write(&pn->crypto->send, data, len, &written);
    if (err == LEAT_OK && written < len) {
        err = LEAT_ERR_LIMIT;
    }
    leat_conn_want_send(conn);
    return err;
}

static void hook_ticket(void *user, leat_span session, bool early)
{
    leat_tickets_on_ticket(user, session, early);
}

static const leat_tls_hooks hooks = {.secret = hook_secret,
                                     .send = hook_send,
                                     .params = hook_params,
                                     .version = hook_version,
                                     .ticket = hook_ticket};

/* ---- beginning and end ---- */

static leat_err begin_tls(leat_conn *conn)
{
    leat_early_work *early = conn->early_work;
    uint8_t params[LEAT_TPARAMS_MAX];
    const char *alpn = (const char *)conn->alpn.data;
    leat_tls_params tls = {
        .config = conn->hs->tls_config,
        .server_name = (const char *)conn->hs->tls_name.data,
        .transport_params = {params, leat_conn_local_params(conn, params)},
        .hooks = &hooks,
        .user = conn,
        .early_data = conn->is_server ? conn->settings->early_data : early && early->offer,
        .shared = conn->host->common,
        .early_tag = leat_early_tag(conn, conn->hs->version.original),
    };
    leat_err err;

    if (early) {
        tls.session = (leat_span){early->session.data, early->session.len};
    }
    if (alpn) { /* 0-RTT speaks it already */
        tls.alpn = &alpn;
        tls.alpn_count = 1;
    }
    err = leat_tls_new(leat_conn_shared_of(conn)->mem, &tls, &conn->hs->tls);
    leat_ctx_yield(conn->host->ctx);
    return err == LEAT_OK ? leat_tls_start(conn->hs->tls) : err;
}

/* Gives up what TLS has begun. */
static void undo_tls(leat_conn *conn)
{
    leat_pnspace *pn = &conn->hs->spaces[LEAT_SPACE_INITIAL];

    leat_sent_forget(&pn->sent, false);
    leat_stream_send_free(&pn->crypto->send);
    leat_stream_send_init_crypto(&pn->crypto->send, &conn->env, LEAT_CRYPTO_BUFFER_MAX, 0);
    leat_tls_free(conn->hs->tls);
    conn->hs->tls = NULL;
}

leat_err leat_conn_handshake_new(leat_conn *conn)
{
    leat_err err = begin_tls(conn);

    if (err != LEAT_OK && conn->early_work && conn->early_work->session.len > 0) {
        undo_tls(conn); /* a session past its time, say: a new one will do */
        leat_early_give_up(conn);
        err = begin_tls(conn);
    }
    if (err == LEAT_OK) {
        leat_early_begun(conn);
    }
    return err;
}

void leat_conn_handshake_free(leat_conn *conn)
{
    leat_handshake *hs = conn->hs;

    if (!hs) {
        return;
    }
    for (uint8_t i = 0; i < hs->early_count; i++) {
        leat_budget_refund(&conn->budget, LEAT_BUDGET_PACKETS, hs->early[i].buf.len);
        leat_buf_release(&hs->early[i].buf);
    }
    leat_conn_space_close(conn, &hs->spaces[LEAT_SPACE_INITIAL]);
    leat_conn_space_close(conn, &hs->spaces[LEAT_SPACE_HANDSHAKE]);
    leat_tls_free(hs->tls);
    leat_buf_release(&hs->token);
    leat_buf_release(&hs->tls_name);
    leat_version_free(conn);
    leat_pool_give(&leat_conn_shared_of(conn)->handshakes, hs);
    conn->hs = NULL;
}

void leat_conn_drop_initial(leat_conn *conn)
{
    if (conn->hs && conn->hs->spaces[LEAT_SPACE_INITIAL].open) {
        leat_conn_space_close(conn, &conn->hs->spaces[LEAT_SPACE_INITIAL]);
        leat_trace_keys(conn, LEAT_EVENT_KEY_DISCARDED, LEAT_LEVEL_INITIAL);
    }
}

/* RFC 9001 s4.1.2: from here on the peer needs nothing of the handshake any more. */
static void confirm(leat_conn *conn)
{
    conn->confirmed = true;
    conn->loss.confirmed = true;
    conn->loss.peer_validated = true;
    leat_path_validate(leat_paths_active(&conn->paths));
    if (conn->first_dcid.len > 0) {
        leat_conn_remove_local_cid(conn, &conn->first_dcid);
        conn->host->ops->dcid_done(conn->host, &conn->first_dcid);
        conn->first_dcid.len = 0;
    }
    leat_conn_issue_cids(conn);
    leat_preferred_follow(conn);
    leat_trace_handshake(conn);
    if (!conn->settled) {
        conn->settled = true;
        conn->host->ops->settled(conn->host, conn);
    }
}

/* Frees what the handshake alone needed. Not from inside a call of TLS, nor while one of its
 * packets is worked on: conn/recv.c asks between receive calls. */
void leat_conn_handshake_retire(leat_conn *conn)
{
    if (!conn->hs || !conn->confirmed || conn->hs->early_count > 0 || conn->hs->fresh_keys) {
        return;
    }
    leat_tls_leave(conn->hs->tls, &conn->post);
    leat_tickets_keep_tls(conn);
    leat_conn_drop_initial(conn);
    leat_trace_keys(conn, LEAT_EVENT_KEY_DISCARDED, LEAT_LEVEL_HANDSHAKE);
    leat_conn_handshake_free(conn);
}

void leat_conn_offer_token(leat_conn *conn)
{
    uint8_t token[LEAT_TOKEN_DEFAULT];
    size_t len = conn->host->ops->new_token(conn->host, leat_conn_remote(conn), conn->version,
                                            token, sizeof(token));

    if (len > 0) {
        leat_buf_release(&conn->new_token);
        conn->new_token = leat_conn_keep(conn, token, len);
        conn->pending &= (uint8_t)~LEAT_CONN_SEND_NEW_TOKEN;
        conn->pending |= conn->new_token.len > 0 ? LEAT_CONN_SEND_NEW_TOKEN : 0;
    }
}

static uint64_t complete(leat_conn *conn)
{
    uint64_t error;
    leat_tls *tls = conn->hs->tls;
    leat_span alpn = leat_tls_alpn(tls), sni = leat_tls_sni(tls);
    leat_aead aead;

    conn->state = LEAT_CONN_ACTIVE;
    conn->handshake_until = LEAT_TIME_NEVER;
    conn->hs->fresh_keys = true; /* 1-RTT packets that waited for this may be read */
    if (!conn->alpn.data) {      /* 0-RTT has it already */
        conn->alpn = leat_conn_keep_long(conn, alpn.data, alpn.len);
        if (!conn->alpn.data) {
            leat_conn_fail_as(conn, LEAT_ERR_NOMEM, LEAT_TE_INTERNAL_ERROR, NULL);
            return LEAT_TE_INTERNAL_ERROR;
        }
    }
    if (sni.len > 0 && !conn->server_name.data) {
        conn->server_name = leat_conn_keep_long(conn, sni.data, sni.len);
    }
    conn->cipher = leat_tls_aead(tls, &aead) ? leat_aead_info_get(aead)->name : NULL;
    leat_tls_post_init(&conn->post, conn->is_server);
    error = leat_early_complete(conn);
    if (error != LEAT_TE_NO_ERROR) {
        return error;
    }
    leat_trace_handshake(conn);
    leat_conn_tell(conn, LEAT_CONN_TELL_CONNECTED);
    if (conn->is_server) {
        leat_tls_set_early_tag(tls, leat_early_tag(conn, conn->version));
        leat_tls_send_tickets(tls);
        conn->pending |= LEAT_CONN_SEND_HANDSHAKE_DONE;
        leat_conn_offer_token(conn);
        confirm(conn);
    }
    return LEAT_TE_NO_ERROR;
}

/* ---- CRYPTO ---- */

static uint64_t feed_tls(leat_conn *conn, leat_tls *tls, leat_pnspace *pn, leat_span data)
{
    leat_err err = leat_tls_recv(tls, leat_space_level(pn->space), data.data, data.len);
    leat_tls_failure failure;

    leat_ctx_yield(conn->host->ctx);
    if (err == LEAT_OK || !leat_conn_is_open(conn)) {
        return LEAT_TE_NO_ERROR;
    }
    failure = leat_tls_fail(tls);
    leat_conn_fail_as(conn, err, failure.code, failure.text);
    return failure.code;
}

static uint64_t feed_post(leat_conn *conn, leat_span data)
{
    const char *text = NULL;
    uint64_t error = leat_tls_post_recv(&conn->post, data.data, data.len, &text);

    if (error != LEAT_TE_NO_ERROR) {
        leat_conn_fail(conn, error, LEAT_FRAME_CODE_CRYPTO, text);
    }
    return error;
}

/* TLS, while it is there. */
static leat_tls *tls_of(const leat_conn *conn)
{
    if (conn->hs) {
        return conn->hs->tls;
    }
    return conn->tickets ? conn->tickets->tls : NULL;
}

bool leat_conn_crypto_is_over(const leat_conn *conn, const leat_pnspace *pn)
{
    return conn->hs && conn->hs->tls &&
           leat_space_level(pn->space) < leat_tls_read_level(conn->hs->tls);
}

/* RFC 9001 s4.1.3: TLS has gone on, and what came behind a gap would never be read. */
static uint64_t refuse_leftover(leat_conn *conn, const leat_pnspace *pn)
{
    const leat_flow_in *flow = &pn->crypto->recv.flow;

    if (flow->received == flow->consumed || !leat_conn_crypto_is_over(conn, pn)) {
        return LEAT_TE_NO_ERROR;
    }
    leat_conn_fail(conn, LEAT_TE_PROTOCOL_VIOLATION, LEAT_FRAME_CODE_CRYPTO,
                   "CRYPTO data beyond the end of its encryption level");
    return LEAT_TE_PROTOCOL_VIOLATION;
}

uint64_t leat_conn_on_crypto(leat_conn *conn, leat_pnspace *pn)
{
    uint64_t error = LEAT_TE_NO_ERROR;
    leat_span data;

    while (error == LEAT_TE_NO_ERROR && leat_conn_is_open(conn) &&
           (data = leat_stream_recv_peek(&pn->crypto->recv)).len > 0) {
        leat_tls *tls = tls_of(conn);

        error = tls ? feed_tls(conn, tls, pn, data) : feed_post(conn, data);
        leat_stream_recv_consume(&pn->crypto->recv, data.len, NULL);
    }
    if (!leat_conn_is_open(conn)) {
        return error;
    }
    if (!conn->hs) {
        leat_tickets_review(conn);
        return error;
    }
    error = refuse_leftover(conn, pn);
    if (error != LEAT_TE_NO_ERROR) {
        return error;
    }
    leat_early_review(conn);
    if (conn->state == LEAT_CONN_HANDSHAKE && leat_tls_complete(conn->hs->tls)) {
        error = complete(conn);
    }
    return error;
}

uint64_t leat_conn_on_handshake_done(leat_conn *conn)
{
    if (conn->is_server || conn->state != LEAT_CONN_ACTIVE) {
        return LEAT_TE_PROTOCOL_VIOLATION; /* RFC 9000 s19.20 */
    }
    if (!conn->confirmed) {
        confirm(conn);
    }
    return LEAT_TE_NO_ERROR;
}

/* ---- Retry and Version Negotiation ---- */

/* RFC 9000 s17.2.5: at most one, before anything else of the server's, with a good tag and a token.
 */
void leat_conn_on_retry(leat_conn *conn, const leat_header *header, leat_span packet)
{
    leat_handshake *hs = conn->hs;
    leat_pnspace *pn = leat_conn_space(conn, LEAT_SPACE_INITIAL);
    const leat_schedule *schedule = leat_schedule_for(conn->version);
    leat_buf token;

    if (conn->is_server || !hs || !pn || hs->saw_packet || hs->has_retry ||
        leat_cid_equal_span(&conn->odcid, header->scid) || header->token.len > LEAT_TOKEN_MAX ||
        !leat_retry_verify(schedule, conn->odcid.data, conn->odcid.len, packet.data, packet.len)) {
        conn->count.packets_dropped++;
        leat_trace_dropped(conn, LEAT_PACKET_RETRY, packet.len, LEAT_DROP_BAD_RETRY);
        return;
    }
    token = leat_conn_keep(conn, header->token.data, header->token.len);
    if (!token.block) {
        return; /* no memory: as if it was lost */
    }
    leat_buf_release(&hs->token);
    hs->token = token;
    hs->has_retry = true;
    leat_cid_set(&hs->retry_scid, header->scid.data, header->scid.len);
    leat_trace_unprotected(conn, header);
    leat_trace_cid(conn, leat_remote_cids_current(&conn->remote_cids), &hs->retry_scid);
    leat_remote_cids_replace(&conn->remote_cids, &hs->retry_scid);
    leat_version_initial_keys(conn, &hs->retry_scid);
    leat_sent_forget(&pn->sent, true);
    leat_sent_forget(&conn->app.sent, true); /* 0-RTT, which the server has not kept either */
    leat_loss_restart(&conn->loss);
    leat_conn_want_send(conn);
}

/* Begins again in another version (RFC 9368 s2.1): a ClientHello that says so, numbers go on. A
 * session is of one version, so it is not offered again. */
static void begin_again(leat_conn *conn)
{
    leat_err err;

    undo_tls(conn);
    leat_loss_restart(&conn->loss);
    leat_early_give_up(conn);
    leat_buf_release(&conn->hs->token); /* it is of the other version (RFC 9369 s5) */
    err = leat_conn_handshake_new(conn);
    if (err != LEAT_OK) {
        leat_conn_fail_as(conn, err, LEAT_TE_INTERNAL_ERROR,
                          "cannot begin again in another version");
        return;
    }
    leat_conn_want_send(conn);
}

void leat_conn_on_version_negotiation(leat_conn *conn, const leat_header *header)
{
    bool give_up;

    if (leat_version_on_negotiation(conn, header, &give_up)) {
        begin_again(conn);
    } else if (give_up) {
        leat_conn_end(conn, LEAT_CLOSE_VERSION, LEAT_ERR_UNSUPPORTED);
    } else {
        conn->count.packets_dropped++;
        leat_trace_dropped(conn, LEAT_PACKET_VERSION_NEGOTIATION, header->packet_len,
                           LEAT_DROP_BAD_NEGOTIATION);
    }
}
