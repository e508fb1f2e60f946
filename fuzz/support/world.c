/* fuzz/support/world.c: see world.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "world.h"

#include <string.h>

#include "wire/header.h"

#define TURNS_MAX 5000 /* at one time: more is a hot loop */

/* ---- applications ---- */

static void remember(world_app *a, leat_stream *stream)
{
    for (size_t i = 0; i < WORLD_STREAMS; i++) {
        if (!a->streams[i]) {
            a->streams[i] = stream;
            return;
        }
    }
}

static void on_connected(leat_conn *conn, void *user)
{
    ((world_app *)user)->conn = conn;
}

static void on_opened(leat_conn *conn, leat_stream *stream, void *user)
{
    (void)conn;
    remember(user, stream);
}

static void on_readable(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_span span;

    (void)conn;
    while (!((world_app *)user)->lazy && (span = leat_stream_peek(stream)).len > 0) {
        fuzz_check(span.data[0] + span.data[span.len - 1] >= 0); /* to be read */
        leat_stream_consume(stream, span.len);
    }
}

static void on_stream_closed(leat_conn *conn, leat_stream *stream, void *user)
{
    world_app *a = user;

    (void)conn;
    for (size_t i = 0; i < WORLD_STREAMS; i++) {
        if (a->streams[i] == stream) {
            a->streams[i] = NULL;
        }
    }
}

static void on_datagram(leat_conn *conn, leat_span data, void *user)
{
    if (user == &((world_app *)user)->world->apps[1] && data.len > 0 && data.data[0] & 1) {
        leat_conn_send_datagram(conn, data, NULL);
    }
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    world_app *a = user;

    (void)conn, (void)info;
    a->conn = NULL;
    a->closed++;
    for (size_t i = 0; i < WORLD_STREAMS; i++) {
        fuzz_check(a->streams[i] == NULL);
    }
}

static const leat_conn_events events = {
    .connected = on_connected,
    .stream_opened = on_opened,
    .stream_readable = on_readable,
    .stream_closed = on_stream_closed,
    .datagram = on_datagram,
    .closed = on_closed,
};

/* ---- the way between ---- */

static void hand_over(world *w, const world_datagram *d)
{
    leat_recv_info info = {.remote = d->from, .local = d->to};

    if (w->drop > 0) {
        w->drop--;
        return;
    }
    fuzz_check(leat_endpoint_recv_copy(d->to_server ? w->server : w->client, d->data, d->len,
                                       &info) == LEAT_OK);
}

static bool collect(world *w, bool from_server)
{
    static uint8_t buf[65536];
    leat_send_info info;
    bool any = false;
    size_t n;

    while (w->queued + 48 < WORLD_QUEUE &&
           (n = leat_endpoint_send(from_server ? w->server : w->client, buf, sizeof(buf), &info)) >
               0) {
        fuzz_check(info.segment > 0 && n <= 48 * info.segment);
        for (size_t at = 0; at < n; at += info.segment) {
            world_datagram *d = &w->queue[w->queued++];

            d->to_server = !from_server;
            d->from = from_server ? w->server_addr : w->client_addr;
            d->to = info.remote;
            d->len = n - at < info.segment ? n - at : info.segment;
            fuzz_check(d->len <= sizeof(d->data));
            memcpy(d->data, buf + at, d->len);
        }
        any = true;
    }
    return any;
}

static bool deliver(world *w)
{
    bool any = w->queued > 0;

    for (size_t i = 0; i < w->queued; i++) {
        hand_over(w, &w->queue[i]);
    }
    w->queued = 0;
    return any;
}

static void check(const world_app *a)
{
    leat_conn_stats_data stats;

    if (a->conn) {
        leat_conn_check(a->conn);
        leat_conn_stats(a->conn, &stats);
        /* What cannot be refused may stand above the budget for as long as a turn. */
        fuzz_check(stats.memory_used <= a->conn->settings->memory + 65536);
    }
}

void world_settle(world *w)
{
    size_t turns = 0;
    bool more = true;

    while (more) {
        more = leat_ctx_turn(w->ctx, w->now) <= w->now;
        more = collect(w, false) || more;
        more = collect(w, true) || more;
        more = deliver(w) || more;
        fuzz_check(++turns < TURNS_MAX);
    }
    check(&w->apps[0]);
    check(&w->apps[1]);
}

void world_advance(world *w, leat_time time)
{
    leat_time until = w->now + time;

    for (int i = 0; i < 64; i++) {
        leat_time next = leat_ctx_deadline(w->ctx);

        if (next > until) {
            break;
        }
        w->now = next > w->now ? next : w->now;
        world_settle(w);
    }
    w->now = until;
    leat_ctx_set_now(w->ctx, w->now);
    world_settle(w);
}

void world_inject(world *w, bool to_server, const leat_addr *client, leat_span datagram)
{
    world_datagram d = {.to_server = to_server,
                        .from = to_server ? *client : w->server_addr,
                        .to = to_server ? w->server_addr : *client,
                        .len = datagram.len};

    memcpy(d.data, datagram.data, d.len);
    w->drop = 0;
    hand_over(w, &d);
}

bool world_forge(world *w, bool from_server, leat_space space, leat_span payload)
{
    leat_conn *from = w->apps[from_server].conn;
    uint8_t packet[1500];
    leat_pnspace *pn = from && leat_conn_is_open(from) ? leat_conn_space(from, space) : NULL;
    leat_packet_keys *keys;
    leat_seal_op op = {.packet = packet, .pn_len = 4};
    const leat_cid *dcid;
    leat_long_packet header;
    leat_writer out;

    if (!pn) {
        return false;
    }
    keys = space == LEAT_SPACE_APP ? &from->rekey.tx : &pn->keys->tx;
    if (!leat_packet_keys_ready(keys)) {
        return false;
    }
    dcid = leat_remote_cids_current(&from->remote_cids);
    op.pn = leat_sent_next_pn(&pn->sent);
    leat_writer_init(&out, packet, sizeof(packet) - LEAT_AEAD_TAG);
    if (space == LEAT_SPACE_APP) {
        leat_header_write_short(&out, dcid, false, from->rekey.tx_phase & 1, op.pn, 4);
    } else {
        leat_header_write_long(
            &out, &header,
            space == LEAT_SPACE_INITIAL ? LEAT_PACKET_INITIAL : LEAT_PACKET_HANDSHAKE,
            from->version, dcid, &from->local_cids.entry[0].cid, (leat_span){NULL, 0}, op.pn, 4);
    }
    op.header_len = (uint32_t)leat_writer_len(&out);
    leat_writer_bytes(&out, payload.data, payload.len);
    if (space == LEAT_SPACE_INITIAL && leat_writer_len(&out) < 1200 - LEAT_AEAD_TAG) {
        leat_writer_zero(&out, 1200 - LEAT_AEAD_TAG - leat_writer_len(&out));
    }
    fuzz_check(leat_writer_ok(&out));
    op.payload_len = (uint32_t)leat_writer_len(&out) - op.header_len;
    if (space != LEAT_SPACE_APP) {
        leat_header_finish_long(&header, op.payload_len + LEAT_AEAD_TAG);
    }
    if (leat_sent_begin(&pn->sent, true) != LEAT_OK) {
        return false; /* as many are under way as may be */
    }
    leat_sent_commit(&pn->sent, w->now, 0, 0, 0);
    fuzz_check(leat_seal(from->host->shared->keys, keys, &op, 1) == LEAT_OK);
    world_inject(w, !from_server, &w->client_addr,
                 (leat_span){packet, leat_writer_len(&out) + LEAT_AEAD_TAG});
    return true;
}

/* ---- beginning and end ---- */

static leat_tls_config *tls_of(bool server)
{
    static leat_tls_config *configs[2];
    static const char *const alpn = "fuzz";
    static const char *const hosts[] = {"localhost"};

    if (!configs[server]) {
        static char pem[LEAT_TLS_PEM_MAX], key[LEAT_TLS_PEM_MAX];
        leat_tls_settings tls;
        leat_tls_error error;
        size_t pem_len = 0, key_len = 0;

        leat_tls_settings_init(&tls);
        tls.alpn = &alpn;
        tls.alpn_count = 1;
        tls.system_ca = false;
        tls.verify = tls.verify_host = false;
        tls.tickets = 1;
        if (server) {
            leat_tls_self_signed request = {
                .hosts = hosts, .host_count = 1, .not_before = 0, .not_after = 4102444800};

            fuzz_check(leat_tls_make_self_signed(&request, pem, &pem_len, key, &key_len, &error) ==
                       LEAT_OK);
            tls.cert_pem = (leat_span){(const uint8_t *)pem, pem_len};
            tls.key_pem = (leat_span){(const uint8_t *)key, key_len};
        }
        fuzz_check((server ? leat_tls_config_server
                           : leat_tls_config_client)(&tls, &configs[server], &error) == LEAT_OK);
    }
    return configs[server];
}

static void settings_of(leat_conn_settings *s)
{
    s->max_data = 65536;
    s->max_stream_data_bidi_local = s->max_stream_data_bidi_remote = 32768;
    s->max_stream_data_uni = 16384;
    s->max_streams_bidi = 8;
    s->max_streams_uni = 4;
    s->memory = 1048576;
    s->send_buffer = 16384;
    s->max_datagram_frame_size = 1200;
    s->datagram_queue = 8;
    s->min_ack_delay = LEAT_MILLISECOND;
    s->disable_grease = true;
}

void world_open(world *w, bool handshake)
{
    leat_ctx_settings ctx;
    leat_endpoint_settings ep;
    leat_conn_settings client;
    leat_connect how;

    memset(w, 0, sizeof(*w));
    w->now = LEAT_SECOND;
    w->client_addr = (leat_addr){.family = 4, .port = 40000, .ip = {10, 0, 0, 1}};
    w->server_addr = (leat_addr){.family = 4, .port = 4433, .ip = {10, 0, 0, 2}};
    w->apps[0].world = w->apps[1].world = w;
    leat_ctx_settings_init(&ctx);
    memset(ctx.seed, 7, sizeof(ctx.seed));
    fuzz_check(leat_ctx_new(&ctx, &w->ctx) == LEAT_OK);
    leat_ctx_set_now(w->ctx, w->now);
    leat_endpoint_settings_init(&ep);
    settings_of(&ep.conn);
    fuzz_check(leat_endpoint_new(w->ctx, &ep, &w->client) == LEAT_OK);
    ep.server_tls = tls_of(true);
    ep.events = &events;
    ep.user = &w->apps[1];
    fuzz_check(leat_endpoint_new(w->ctx, &ep, &w->server) == LEAT_OK);
    leat_conn_settings_init(&client);
    settings_of(&client);
    how = (leat_connect){.remote = w->server_addr,
                         .local = w->client_addr,
                         .server_name = "localhost",
                         .tls = tls_of(false),
                         .settings = &client,
                         .events = &events,
                         .user = &w->apps[0]};
    fuzz_check(leat_conn_connect(w->client, &how, &w->apps[0].conn) == LEAT_OK);
    if (handshake) {
        world_settle(w);
        fuzz_check(w->apps[0].conn && w->apps[1].conn && w->apps[0].conn->confirmed);
    }
}

void world_close(world *w)
{
    leat_mem_stats stats;

    leat_endpoint_free(w->client);
    leat_endpoint_free(w->server);
    leat_mem_stats_get(leat_ctx_mem(w->ctx), &stats);
    fuzz_check(stats.buf_live == 0);
    leat_ctx_free(w->ctx); /* asserts that all objects came back */
}
