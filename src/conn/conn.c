/* conn/conn.c: a connection's beginning and end, and what can be asked of it.
 *
 * Who holds a connection: the endpoint's tables and lists, and the application until `closed` was
 * told. It frees itself in leat_conn_close_over(), or the endpoint does by leat_conn_drop().
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/conn.h"

#include <string.h>

#include "base/assert.h"
#include "conn/preferred.h"
#include "conn/trace.h"
#include "crypto/secret.h"

/* ---- settings ---- */

void leat_conn_settings_init(leat_conn_settings *settings)
{
    *settings = (leat_conn_settings){
        .idle_timeout = 30 * LEAT_SECOND,
        .handshake_timeout = 10 * LEAT_SECOND,
        .max_data = LEAT_CONN_WINDOW_DEFAULT,
        .max_stream_data_bidi_local = LEAT_STREAM_WINDOW_DEFAULT,
        .max_stream_data_bidi_remote = LEAT_STREAM_WINDOW_DEFAULT,
        .max_stream_data_uni = LEAT_STREAM_WINDOW_DEFAULT,
        .max_streams_bidi = LEAT_OPEN_STREAMS_DEFAULT,
        .max_streams_uni = LEAT_OPEN_STREAMS_DEFAULT,
        .max_ack_delay = 25 * LEAT_MILLISECOND,
        .send_buffer = LEAT_STREAM_SEND_BUFFER_DEFAULT,
        .memory = LEAT_CONN_MEMORY_DEFAULT,
        .udp_payload = LEAT_UDP_PAYLOAD_DEFAULT,
        .versions = {LEAT_QUIC_V1, LEAT_QUIC_V2},
        .version_count = LEAT_VERSIONS_DEFAULT,
        .datagram_queue = LEAT_DATAGRAM_QUEUE_DEFAULT,
        .datagram_urgency = 3,
    };
}

static bool window_valid(uint64_t window)
{
    return window <= LEAT_CONN_WINDOW_MAX;
}

static bool versions_valid(const leat_conn_settings *s)
{
    for (size_t i = 0; i < s->version_count && s->version_count <= LEAT_VERSIONS_MAX; i++) {
        if (!leat_version_known(s->versions[i])) {
            return false;
        }
    }
    return s->version_count >= LEAT_VERSIONS_MIN && s->version_count <= LEAT_VERSIONS_MAX &&
           (s->version == 0 || leat_version_known(s->version));
}

bool leat_conn_settings_valid(const leat_conn_settings *s)
{
    return window_valid(s->max_data) && window_valid(s->max_stream_data_bidi_local) &&
           window_valid(s->max_stream_data_bidi_remote) && window_valid(s->max_stream_data_uni) &&
           s->max_streams_bidi <= LEAT_OPEN_STREAMS_MAX &&
           s->max_streams_uni <= LEAT_OPEN_STREAMS_MAX &&
           s->max_ack_delay < ((leat_time)1 << 14) * LEAT_MILLISECOND &&
           s->send_buffer >= LEAT_STREAM_SEND_BUFFER_MIN &&
           s->send_buffer <= LEAT_STREAM_SEND_BUFFER_MAX && s->memory >= LEAT_CONN_MEMORY_MIN &&
           s->memory <= LEAT_CONN_MEMORY_MAX && s->udp_payload >= LEAT_UDP_PAYLOAD_MIN &&
           s->udp_payload <= LEAT_UDP_PAYLOAD_MAX && s->handshake_timeout > 0 &&
           versions_valid(s) && (unsigned)s->congestion < LEAT_CONGESTIONS &&
           s->max_datagram_frame_size <= LEAT_DATAGRAM_FRAME_MAX &&
           s->datagram_queue >= LEAT_DATAGRAM_QUEUE_MIN &&
           s->datagram_queue <= LEAT_DATAGRAM_QUEUE_MAX &&
           s->datagram_urgency < LEAT_STREAM_URGENCIES;
}

/* ---- parts ---- */

static void crypto_init(leat_conn *conn, leat_crypto *crypto, uint64_t sent, uint64_t read)
{
    leat_stream_send_init_crypto(&crypto->send, &conn->env, LEAT_CRYPTO_BUFFER_MAX, sent);
    leat_stream_recv_init_crypto(&crypto->recv, &conn->env, LEAT_CRYPTO_BUFFER_DEFAULT, read);
}

leat_crypto *leat_conn_crypto(leat_conn *conn, leat_pnspace *pn)
{
    if (!pn->crypto) {
        LEAT_ASSERT(pn == &conn->app);
        pn->crypto = leat_pool_take(&leat_conn_shared_of(conn)->cryptos);
        if (pn->crypto) {
            crypto_init(conn, pn->crypto, conn->crypto_sent, conn->crypto_read);
        }
    }
    return pn->crypto;
}

static void crypto_free(leat_conn *conn, leat_pnspace *pn)
{
    if (!pn->crypto) {
        return;
    }
    leat_stream_send_free(&pn->crypto->send);
    leat_stream_recv_free(&pn->crypto->recv);
    if (pn == &conn->app) {
        leat_pool_give(&leat_conn_shared_of(conn)->cryptos, pn->crypto);
    }
    pn->crypto = NULL;
}

void leat_conn_crypto_shrink(leat_conn *conn)
{
    leat_crypto *crypto = conn->app.crypto;

    if (crypto && leat_stream_send_is_empty(&crypto->send) &&
        crypto->recv.flow.consumed == crypto->recv.flow.received) {
        conn->crypto_sent = crypto->send.base;
        conn->crypto_read = crypto->recv.flow.consumed;
        crypto_free(conn, &conn->app);
    }
}

void leat_conn_space_open(leat_conn *conn, leat_pnspace *pn, leat_space space)
{
    leat_mem *mem = leat_conn_shared_of(conn)->mem;
    bool app = space == LEAT_SPACE_APP;

    memset(pn, 0, sizeof(*pn));
    pn->space = space;
    pn->open = true;
    pn->keys = app ? NULL : &conn->hs->keys[space];
    leat_acks_init(&pn->acks, mem, app ? conn->settings->max_ack_delay : 0);
    leat_sent_init(&pn->sent, mem, &conn->flight, leat_conn_frame_ops, conn);
    leat_sent_set_budget(&pn->sent, &conn->budget);
    if (!app) {
        pn->crypto = &conn->hs->crypto[space];
        crypto_init(conn, pn->crypto, 0, 0);
    }
    leat_loss_set_space(&conn->loss, space, &pn->sent);
}

void leat_conn_space_close(leat_conn *conn, leat_pnspace *pn)
{
    leat_key_cache *cache = leat_conn_shared_of(conn)->keys;

    if (!pn->open) {
        return;
    }
    leat_sent_forget(&pn->sent, false);
    leat_loss_set_space(&conn->loss, pn->space, NULL);
    leat_sent_free(&pn->sent);
    leat_acks_free(&pn->acks);
    crypto_free(conn, pn);
    if (pn->keys) {
        leat_packet_keys_drop(&pn->keys->tx, cache);
        leat_packet_keys_drop(&pn->keys->rx, cache);
    }
    pn->open = false;
    pn->probes = 0;
}

leat_buf leat_conn_keep(leat_conn *conn, const void *data, size_t len)
{
    leat_buf buf, kept;

    if (leat_buf_take(leat_conn_shared_of(conn)->mem, len + 1, &buf) != LEAT_OK) {
        return (leat_buf){.data = NULL};
    }
    if (len > 0) {
        memcpy(buf.data, data, len);
    }
    buf.data[len] = 0;
    kept = leat_buf_slice(&buf, 0, len); /* and not trimmed: the zero stays */
    leat_buf_release(&buf);
    return kept;
}

leat_kept leat_conn_keep_long(leat_conn *conn, const void *data, size_t len)
{
    uint8_t *kept = leat_mem_take(leat_conn_shared_of(conn)->mem, len + 1);

    if (!kept) {
        return (leat_kept){.data = NULL};
    }
    if (len > 0) {
        memcpy(kept, data, len);
    }
    kept[len] = 0;
    return (leat_kept){kept, len};
}

void leat_conn_let_go(leat_conn *conn, leat_kept *kept)
{
    leat_mem_give(leat_conn_shared_of(conn)->mem, kept->data, kept->len + 1);
    *kept = (leat_kept){.data = NULL};
}

leat_err leat_conn_add_local_cid(leat_conn *conn, const leat_cid *cid)
{
    leat_err err = conn->host->ops->route_add(conn->host, conn, cid);

    conn->routes += err == LEAT_OK;
    return err;
}

void leat_conn_remove_local_cid(leat_conn *conn, const leat_cid *cid)
{
    conn->host->ops->route_remove(conn->host, conn, cid);
    conn->routes--;
}

/* Without memory a reset in answer to this ID goes unnoticed until the idle timeout. */
void leat_conn_heed_reset(leat_conn *conn, const leat_remote_cid *entry)
{
    LEAT_ASSERT(entry->taken);
    if (entry->has_token) {
        (void)conn->host->ops->reset_add(conn->host, conn, entry->reset_token);
    }
}

void leat_conn_issue_cids(leat_conn *conn)
{
    leat_local_cid *entry;

    while ((entry = leat_local_cids_wanted(&conn->local_cids)) != NULL) {
        leat_cid cid = leat_conn_host_new_cid(conn->host);

        if (leat_conn_add_local_cid(conn, &cid) != LEAT_OK) {
            return; /* the peer has fewer in reserve: no harm */
        }
        leat_local_cids_fill(&conn->local_cids, entry, &cid);
    }
    leat_conn_want_send(conn);
}

/* ---- beginning ---- */

/* A hole takes a packet lost and one received: with every second packet of a full window lost there
 * are so many. A sender that overruns a long path does lose every second packet. */
static uint32_t gaps_of(size_t window)
{
    size_t gaps = window / (2 * LEAT_MTU_BASE);

    if (gaps < LEAT_STREAM_RECV_GAPS_DEFAULT) {
        return LEAT_STREAM_RECV_GAPS_DEFAULT;
    }
    return gaps < LEAT_STREAM_RECV_GAPS_MAX ? (uint32_t)gaps : LEAT_STREAM_RECV_GAPS_MAX;
}

static void init_streams(leat_conn *conn)
{
    const leat_conn_settings *s = conn->settings;
    leat_conn_shared *shared = leat_conn_shared_of(conn);
    leat_streams_settings streams = {
        .is_server = conn->is_server,
        .hash_key = {.k = {leat_random_u64(&shared->random), leat_random_u64(&shared->random)}},
        .max_data = s->max_data,
        .max_stream_data_bidi_local = s->max_stream_data_bidi_local,
        .max_stream_data_bidi_remote = s->max_stream_data_bidi_remote,
        .max_stream_data_uni = s->max_stream_data_uni,
        .max_streams_bidi = s->max_streams_bidi,
        .max_streams_uni = s->max_streams_uni,
        .window_max = s->memory / 4,
        .stream_window_max = s->memory / 4,
        .gaps_max = gaps_of(s->memory / 4),
        .send_buffer = s->send_buffer,
    };

    conn->env = (leat_stream_env){.pools = &shared->streams, .budget = &conn->budget};
    leat_streams_init(&conn->streams, &shared->streams, &conn->budget, &streams);
}

/* What both sides have in common. On an error nothing is left. */
static leat_err conn_new(leat_conn_host *host, bool is_server, const leat_conn_settings *settings,
                         const leat_conn_events *events, void *user, const leat_addr *local,
                         const leat_addr *remote, uint32_t version, leat_conn **out)
{
    leat_conn_shared *shared = host->shared;
    leat_conn *conn;
    leat_time now = leat_ctx_now(host->ctx);

    if (!leat_conn_settings_valid(settings)) {
        return LEAT_ERR_INVALID;
    }
    conn = leat_pool_take_zeroed(&shared->conns);
    if (!conn) {
        return LEAT_ERR_NOMEM;
    }
    conn->hs = leat_pool_take_zeroed(&shared->handshakes);
    conn->settings = leat_conn_terms_take(shared, settings);
    if (!conn->hs || !conn->settings) {
        if (conn->settings) {
            leat_conn_terms_give(shared, conn->settings);
        }
        leat_pool_give(&shared->handshakes, conn->hs);
        leat_pool_give(&shared->conns, conn);
        return LEAT_ERR_NOMEM;
    }
    conn->host = host;
    conn->is_server = is_server;
    conn->events = events;
    conn->user = user;
    conn->version = version ? version : settings->versions[0];
    conn->hs->version.original = conn->version;
    conn->send_at = LEAT_TIME_NEVER;
    conn->last_received = now;
    conn->last_sent = now;
    conn->ack_only_idle = true;
    conn->handshake_until = leat_time_add(now, settings->handshake_timeout);
    leat_budget_init(&conn->budget, settings->memory);
    leat_budget_force(&conn->budget, LEAT_BUDGET_OBJECTS, sizeof(*conn));
    leat_paths_init(&conn->paths, &shared->paths, local, remote, !is_server);
    leat_mtu_init(&conn->mtu, settings->udp_payload);
    leat_ecn_init(&conn->ecn, !settings->disable_ecn);
    conn->ackfreq.own_min = leat_time_min(settings->min_ack_delay, settings->max_ack_delay);
    leat_grease_init(&conn->grease, &shared->random, settings->disable_spin,
                     settings->disable_grease);
    leat_flight_init(&conn->flight);
    leat_conn_congestion_init(conn, now);
    leat_pacer_init(&conn->pacer, conn->mtu.size);
    leat_loss_init(&conn->loss, is_server, 0, now);
    conn->loss.peer_validated = is_server;
    conn->loss.visit = leat_conn_on_packet_lost;
    conn->loss.visit_ctx = conn;
    init_streams(conn);
    leat_datagrams_init(&conn->datagrams, shared->mem, &conn->budget, settings);
    leat_news_init(&conn->news, shared->mem, &conn->budget);
    leat_rekey_init(&conn->rekey, settings->key_update_packets);
    leat_conn_space_open(conn, &conn->hs->spaces[LEAT_SPACE_INITIAL], LEAT_SPACE_INITIAL);
    leat_conn_space_open(conn, &conn->hs->spaces[LEAT_SPACE_HANDSHAKE], LEAT_SPACE_HANDSHAKE);
    leat_conn_space_open(conn, &conn->app, LEAT_SPACE_APP);
    leat_queue_init(&conn->inbound, shared->mem, sizeof(leat_inbound));
    leat_task_init(&conn->recv_task, host->ctx, leat_conn_recv_task);
    leat_task_init(&conn->event_task, host->ctx, leat_conn_event_task);
    leat_timer_init(&conn->timer, host->ctx, leat_conn_timer_fired);
    *out = conn;
    return LEAT_OK;
}

/* A new connection ID of our own: the first of the connection. */
static leat_err first_local_cid(leat_conn *conn)
{
    leat_cid cid = leat_conn_host_new_cid(conn->host);

    leat_local_cids_init(&conn->local_cids, &cid);
    return leat_conn_add_local_cid(conn, &cid);
}

static leat_err start_handshake(leat_conn *conn, const leat_tls_config *tls, const char *name)
{
    conn->hs->tls_config = tls;
    if (name) {
        conn->hs->tls_name = leat_conn_keep(conn, name, strlen(name));
        if (!conn->hs->tls_name.block) {
            return LEAT_ERR_NOMEM;
        }
    }
    return leat_conn_handshake_new(conn);
}

/* Nothing was told and nothing was sent, and the endpoint does not count it yet: takes it back. */
static void unmake(leat_conn *conn)
{
    conn->state = LEAT_CONN_GONE;
    leat_conn_free(conn);
}

static uint32_t version_of_token(leat_span token)
{
    return token.len > LEAT_TOKEN_VERSION ? leat_load_u32(token.data) : 0;
}

/* What the settings say, or else the version that the token is good for; 0: the first. (A session's
 * comes before both.) */
static uint32_t first_version(const leat_conn_settings *settings, leat_span token)
{
    uint32_t version = version_of_token(token);

    return settings->version || !leat_version_spoken(settings, version) ? settings->version
                                                                        : version;
}

/* A token of another version stays at home (RFC 9369 s5). */
static void take_token(leat_conn *conn, leat_span token)
{
    if (version_of_token(token) == conn->version) {
        conn->hs->token =
            leat_conn_keep(conn, token.data + LEAT_TOKEN_VERSION, token.len - LEAT_TOKEN_VERSION);
    }
}

leat_err leat_conn_new_client(leat_conn_host *host, const leat_connect *how, leat_conn **out)
{
    leat_conn_settings defaults;
    const leat_conn_settings *settings;
    leat_conn *conn;
    leat_cid dcid = {.len = 8};
    leat_err err;

    if (!how->tls || leat_tls_config_is_server(how->tls) || how->remote.family == 0 ||
        how->token.len > LEAT_TOKEN_VERSION + LEAT_TOKEN_MAX) {
        return LEAT_ERR_INVALID;
    }
    leat_conn_settings_init(&defaults);
    settings = how->settings ? how->settings : &defaults;
    err = conn_new(host, false, settings, how->events, how->user, &how->local, &how->remote,
                   first_version(settings, how->token), &conn);
    if (err != LEAT_OK) {
        return err;
    }
    /* RFC 9000 s7.2: at least 8 unpredictable bytes. */
    leat_random_fill(&host->shared->random, dcid.data, dcid.len);
    conn->odcid = dcid;
    leat_remote_cids_init(&conn->remote_cids, &dcid);
    err = first_local_cid(conn);
    if (err == LEAT_OK) {
        err = leat_early_prepare(conn, how);
    }
    if (err == LEAT_OK) {
        take_token(conn, how->token);
        leat_trace_started(conn);
        leat_trace_versions(conn, (leat_span){NULL, 0}, conn->version);
        leat_version_initial_keys(conn, &dcid);
        leat_conn_trace_local_params(conn);
        err = start_handshake(conn, how->tls, how->server_name);
    }
    if (err != LEAT_OK) {
        unmake(conn);
        return err;
    }
    leat_conn_rearm(conn);
    leat_conn_want_send(conn);
    *out = conn;
    return LEAT_OK;
}

leat_err leat_conn_new_server(leat_conn_host *host, const leat_accept *how, leat_conn **out)
{
    leat_conn *conn;
    leat_cid scid, dcid;
    leat_err err;

    err = conn_new(host, true, how->settings, how->events, how->user, &how->local, &how->remote,
                   how->version, &conn);
    if (err != LEAT_OK) {
        return err;
    }
    leat_cid_set(&dcid, how->dcid.data, how->dcid.len);
    leat_cid_set(&scid, how->scid.data, how->scid.len);
    conn->odcid = how->odcid ? *how->odcid : dcid;
    conn->hs->has_retry = how->odcid != NULL;
    conn->hs->retry_scid = dcid;
    conn->hs->first_scid = scid;
    conn->hs->saw_first_scid = true;
    leat_remote_cids_init(&conn->remote_cids, &scid);
    if (how->validated) {
        leat_path_validate(leat_paths_active(&conn->paths));
    }
    err = first_local_cid(conn);
    if (err == LEAT_OK) {
        err = leat_conn_add_local_cid(conn, &dcid);
        conn->first_dcid = err == LEAT_OK ? dcid : (leat_cid){.len = 0};
    }
    if (err == LEAT_OK) {
        err = leat_preferred_prepare(conn);
    }
    if (err == LEAT_OK) {
        leat_trace_started(conn);
        leat_trace_versions(conn, (leat_span){NULL, 0}, conn->version);
        leat_version_initial_keys(conn, &dcid);
        err = start_handshake(conn, how->tls, NULL);
    }
    if (err != LEAT_OK) {
        unmake(conn);
        return err;
    }
    leat_conn_rearm(conn);
    *out = conn;
    return LEAT_OK;
}

void leat_conn_deliver(leat_conn *conn, leat_buf *buf, const leat_recv_info *info)
{
    leat_inbound *in = NULL;

    if (leat_queue_count(&conn->inbound) < LEAT_INBOUND_QUEUE_DEFAULT) {
        in = leat_queue_push(&conn->inbound);
    }
    if (!in) {
        conn->count.packets_dropped++;
        leat_buf_release(buf);
        return;
    }
    *in = (leat_inbound){.buf = *buf, .at = leat_conn_now(conn), .info = *info};
    *buf = (leat_buf){.data = NULL};
    leat_ctx_run_soon(conn->host->ctx, &conn->recv_task);
}

/* ---- end ---- */

static void free_inbound(leat_conn *conn)
{
    leat_inbound *in;

    while ((in = leat_queue_pop(&conn->inbound)) != NULL) {
        leat_buf_release(&in->buf);
    }
    leat_queue_free(&conn->inbound);
}

static void free_routes(leat_conn *conn)
{
    leat_conn_host *host = conn->host;

    for (size_t i = 0; i < LEAT_LOCAL_CIDS_MAX; i++) {
        if (conn->local_cids.entry[i].state != LEAT_CID_FREE && conn->routes > 0) {
            leat_conn_remove_local_cid(conn, &conn->local_cids.entry[i].cid);
        }
    }
    if (conn->first_dcid.len > 0) {
        leat_conn_remove_local_cid(conn, &conn->first_dcid);
        conn->first_dcid.len = 0;
    }
    for (size_t i = 0; i < LEAT_REMOTE_CIDS_MAX; i++) {
        const leat_remote_cid *entry = &conn->remote_cids.entry[i];

        if (entry->used && entry->taken && entry->has_token) {
            host->ops->reset_remove(host, conn, entry->reset_token);
        }
    }
}

void leat_conn_free(leat_conn *conn)
{
    leat_conn_host *host = conn->host;
    leat_conn_shared *shared = host->shared;

    leat_timer_unset(&conn->timer);
    leat_task_cancel(&conn->recv_task);
    leat_task_cancel(&conn->event_task);
    free_routes(conn);
    free_inbound(conn);
    leat_conn_space_close(conn, &conn->app);
    leat_early_free(conn);
    leat_conn_handshake_free(conn);
    leat_streams_free(&conn->streams);
    leat_datagrams_clear(&conn->datagrams);
    leat_news_clear(&conn->news);
    leat_rekey_free(&conn->rekey, shared->keys);
    leat_buf_release(&conn->new_token);
    leat_conn_let_go(conn, &conn->alpn);
    leat_conn_let_go(conn, &conn->server_name);
    leat_buf_release(&conn->closing.reason);
    leat_buf_release(&conn->closing.detail);
    host->ops->gone(host, conn);
    leat_paths_free(&conn->paths);
    leat_conn_terms_give(shared, conn->settings);
    leat_wipe(conn, sizeof(*conn));
    leat_pool_give(&shared->conns, conn);
}

void leat_conn_abandon(leat_conn *conn)
{
    leat_conn_host *host = conn->host;

    LEAT_ASSERT(leat_conn_is_open(conn) && conn->tell == 0);
    if (!conn->settled) {
        host->ops->settled(host, conn);
    }
    host->ops->closed(host, conn);
    conn->state = LEAT_CONN_GONE;
    leat_conn_free(conn);
}

void leat_conn_drop(leat_conn *conn)
{
    if (leat_conn_is_open(conn)) {
        leat_conn_end(conn, LEAT_CLOSE_DROPPED, LEAT_ERR_CLOSED);
    }
    leat_conn_tell_now(conn);
    conn->state = LEAT_CONN_GONE;
    leat_conn_free(conn);
}

/* ---- questions ---- */

leat_endpoint *leat_conn_endpoint(leat_conn *conn)
{
    return conn->host->endpoint;
}

bool leat_conn_is_server(const leat_conn *conn)
{
    return conn->is_server;
}

bool leat_conn_is_connected(const leat_conn *conn)
{
    return conn->state == LEAT_CONN_ACTIVE;
}

void leat_conn_set_user(leat_conn *conn, void *user)
{
    conn->user = user;
}

void *leat_conn_user(const leat_conn *conn)
{
    return conn->user;
}

void leat_conn_set_events(leat_conn *conn, const leat_conn_events *events, void *user)
{
    conn->events = events;
    conn->user = user;
}

leat_span leat_conn_alpn(const leat_conn *conn)
{
    return (leat_span){conn->alpn.data, conn->alpn.len};
}

leat_span leat_conn_server_name(const leat_conn *conn)
{
    return (leat_span){conn->server_name.data, conn->server_name.len};
}

const char *leat_conn_cipher(const leat_conn *conn)
{
    return conn->cipher ? conn->cipher : "";
}

const leat_addr *leat_conn_remote(const leat_conn *conn)
{
    return &leat_paths_active_const(&conn->paths)->remote;
}

const leat_addr *leat_conn_local(const leat_conn *conn)
{
    return &leat_paths_active_const(&conn->paths)->local;
}

leat_span leat_conn_odcid(const leat_conn *conn)
{
    return leat_cid_span(&conn->odcid);
}

uint32_t leat_conn_version(const leat_conn *conn)
{
    return conn->version;
}

leat_err leat_conn_update_keys(leat_conn *conn)
{
    if (!leat_conn_is_open(conn)) {
        return LEAT_ERR_CLOSED;
    }
    if (!conn->confirmed ||
        !leat_rekey_should_update(&conn->rekey, leat_conn_now(conn), leat_conn_rekey_wait(conn))) {
        return LEAT_ERR_STATE;
    }
    leat_conn_begin_update(conn);
    return LEAT_OK;
}

void leat_conn_begin_update(leat_conn *conn)
{
    leat_key_phases before = leat_key_phases_of(&conn->rekey);

    leat_rekey_update(&conn->rekey, leat_conn_shared_of(conn)->keys,
                      leat_sent_next_pn(&conn->app.sent));
    leat_trace_rekey(conn, before, "local_update");
    /* Something must be sent for the peer to follow, and so that the update is acknowledged. */
    conn->pending |= LEAT_CONN_SEND_PING;
    leat_conn_want_send(conn);
}

void leat_conn_stats(const leat_conn *conn, leat_conn_stats_data *out)
{
    const leat_rtt *rtt = &conn->loss.rtt;

    *out = (leat_conn_stats_data){
        .datagrams_sent = conn->count.datagrams_sent,
        .datagrams_received = conn->count.datagrams_received,
        .packets_sent = conn->count.packets_sent,
        .packets_received = conn->count.packets_received,
        .packets_lost = conn->loss.lost_packets,
        .packets_spurious = conn->loss.spurious_packets,
        .packets_dropped = conn->count.packets_dropped,
        .bytes_sent = conn->count.bytes_sent,
        .bytes_received = conn->count.bytes_received,
        .stream_bytes_sent = conn->streams.flow_out.used,
        .stream_bytes_resent = conn->streams.stat_resent,
        .stream_bytes_received = conn->streams.flow_in.received,
        .streams_opened = conn->streams.stat_opened,
        .datagram_frames_sent = conn->datagrams.count.sent,
        .datagram_frames_received = conn->datagrams.count.received,
        .datagram_frames_acked = conn->datagrams.count.acked,
        .datagram_frames_lost = conn->datagrams.count.lost,
        .datagram_frames_expired = conn->datagrams.count.expired,
        .datagram_frames_dropped = conn->datagrams.count.dropped,
        .pto_count = conn->loss.pto_total,
        .migrations = conn->count.migrations,
        .key_updates = conn->rekey.updates,
        .rtt_latest = rtt->latest,
        .rtt_smoothed = rtt->smoothed,
        .rtt_min = rtt->min,
        .rtt_var = rtt->var,
        .cwnd = conn->cc.cwnd,
        .bytes_in_flight = conn->flight.bytes,
        .memory_used = conn->budget.used,
        .memory_high = conn->budget.high,
        .memory_stream_recv = conn->budget.by[LEAT_BUDGET_STREAM_RECV],
        .memory_stream_send = conn->budget.by[LEAT_BUDGET_STREAM_SEND],
        .memory_datagrams = conn->budget.by[LEAT_BUDGET_DATAGRAMS],
        .memory_sent_packets = conn->budget.by[LEAT_BUDGET_SENT],
    };
}

/* What was sent is walked by leat_loss_check(), which has it while the space is open. Returns what
 * its records are charged. */
static size_t check_space(const leat_conn *conn, const leat_pnspace *pn, leat_space space)
{
    bool open = pn && pn->open;

    LEAT_ASSERT(conn->loss.spaces[space] == (open ? &pn->sent : NULL));
    if (!open) {
        return 0;
    }
    leat_acks_check(&pn->acks);
    return leat_sent_charged(&pn->sent);
}

void leat_conn_check(leat_conn *conn)
{
    size_t sent;

    leat_paths_check(&conn->paths);
    leat_local_cids_check(&conn->local_cids);
    leat_remote_cids_check(&conn->remote_cids);
    leat_budget_check(&conn->budget);
    leat_streams_check(&conn->streams);
    if (leat_conn_is_open(conn)) {
        leat_streams_check_credit(&conn->streams);
    }
    leat_datagrams_check(&conn->datagrams);
    leat_news_check(&conn->news);
    leat_loss_check(&conn->loss);
    leat_cc_check(&conn->cc);
    leat_rekey_check(&conn->rekey);
    leat_queue_check(&conn->inbound);
    leat_conn_timer_check(conn);
    sent = check_space(conn, &conn->app, LEAT_SPACE_APP);
    for (int i = 0; i < 2; i++) {
        sent += check_space(conn, conn->hs ? &conn->hs->spaces[i] : NULL, (leat_space)i);
    }
    LEAT_ASSERT(sent == conn->budget.by[LEAT_BUDGET_SENT]);
    LEAT_ASSERT(conn->hs || conn->confirmed || !leat_conn_is_open(conn));
}
