/* tests/unit/roq/world.c: see world.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <leat/rtp.h>

#include "roq/roq.h"

/* ---- packets ---- */

static uint8_t byte_at(uint16_t seq, size_t at)
{
    return (uint8_t)(seq * 31 + at * 7 + (at >> 8));
}

leat_span world_rtp(uint16_t seq, uint32_t timestamp, bool marker, size_t len)
{
    static uint8_t packet[1 << 20];
    leat_rtp_header header = {
        .ssrc = 0x1234, .seq = seq, .timestamp = timestamp, .marker = marker, .payload_type = 96};
    size_t head;

    assert_in_range(len, LEAT_RTP_HEADER, sizeof packet);
    assert_int_equal(leat_rtp_write(&header, packet, len, &head), LEAT_OK);
    for (size_t i = head; i < len; i++) {
        packet[i] = byte_at(seq, i);
    }
    return (leat_span){packet, len};
}

leat_err world_send(world *w, uint16_t seq, uint32_t timestamp, bool marker, size_t len)
{
    return leat_roq_send(w->flow, world_rtp(seq, timestamp, marker, len), NULL);
}

/* ---- the server ---- */

static void check_payload(const leat_rtp_packet *rtp, leat_span packet)
{
    for (size_t i = LEAT_RTP_HEADER; i < packet.len; i++) {
        if (packet.data[i] != byte_at(rtp->seq, i)) {
            fail_msg("packet %u: byte %zu is wrong", rtp->seq, i);
        }
    }
}

static void on_packet(leat_roq_flow *flow, leat_span packet, const leat_roq_arrival *how,
                      void *user)
{
    world *w = user;
    world_packet *got = &w->got[w->got_count++];
    leat_rtp_packet rtp = {.seq = 0};

    assert_true(w->got_count < WORLD_PACKETS);
    if (!how->rtcp) {
        assert_int_equal(leat_rtp_parse_header(packet, &rtp), LEAT_OK);
        if (!w->raw && !(packet.data[0] & 0x20)) {
            check_payload(&rtp, packet);
        }
    }
    *got = (world_packet){.flow = leat_roq_flow_id(flow),
                          .seq = rtp.seq,
                          .timestamp = rtp.timestamp,
                          .len = packet.len,
                          .rtcp = how->rtcp,
                          .stream = how->stream,
                          .at = w->pair.now};
    memcpy(got->first, packet.data, packet.len < 32 ? packet.len : 32);
    w->got_bytes += packet.len;
    w->big = packet.len > w->big ? packet.len : w->big;
    if (w->skip_in_packet) {
        leat_roq_flow_skip(flow);
    }
    if (w->close_in_packet) {
        leat_roq_close(w->server, LEAT_ROQ_NO_ERROR, "");
    }
}

static void on_unknown(leat_roq *roq, uint64_t id, void *user)
{
    world *w = user;
    leat_roq_flow *flow;

    w->unknown++;
    w->unknown_id = id;
    if (w->close_in_unknown) {
        leat_roq_close(roq, LEAT_ROQ_NO_ERROR, "");
        return;
    }
    if (w->server_opens) {
        assert_int_equal(leat_roq_flow_open(roq, id, &w->flow_settings, &flow), LEAT_OK);
    }
}

static void on_cancelled(leat_roq_flow *flow, uint64_t code, void *user)
{
    (void)flow;
    assert_int_equal(code, LEAT_ROQ_FRAME_CANCELLED);
    ((world *)user)->cancelled++;
}

static void on_server_closed(leat_roq *roq, const leat_close_info *info, void *user)
{
    world *w = user;

    (void)roq;
    w->server = NULL;
    w->server_closed = true;
    w->server_close = *info;
}

static const leat_roq_events server_roq = {
    .packet = on_packet,
    .unknown_flow = on_unknown,
    .cancelled = on_cancelled,
    .closed = on_server_closed,
};

static const leat_roq_events deaf_roq = {.closed = on_server_closed};

static void on_server_connected(leat_conn *conn, void *user)
{
    world *w = user;
    leat_roq_flow *flow;

    assert_int_equal(leat_roq_attach(conn, &w->settings, w->server_deaf ? &deaf_roq : &server_roq,
                                     w, &w->server),
                     LEAT_OK);
    if (w->server_knows_flow && !leat_conn_datagram_max(conn)) {
        return; /* closed for want of datagrams */
    }
    if (w->server_knows_flow) {
        assert_int_equal(leat_roq_flow_open(w->server, 1, &w->flow_settings, &flow), LEAT_OK);
    }
}

static const leat_conn_events server_events = {.connected = on_server_connected};

/* ---- the client ---- */

static void on_result(leat_roq_flow *flow, const leat_roq_result *result, void *user)
{
    world *w = user;

    (void)flow;
    assert_true(w->result_count < WORLD_PACKETS);
    w->results[w->result_count++] = *result;
    w->outcomes[result->outcome]++;
}

/* It promises half of the queue. */
static void on_writable(leat_roq_flow *flow, void *user)
{
    assert_true(flow->stats.queue_packets <= flow->settings.queue_packets / 2);
    assert_true(flow->stats.queue_bytes <= flow->settings.queue_bytes / 2);
    ((world *)user)->writable++;
}

static void on_estimated(leat_roq *roq, uint64_t target_rate, void *user)
{
    world *w = user;

    (void)roq;
    w->estimate = target_rate;
    w->estimates++;
}

static void on_client_closed(leat_roq *roq, const leat_close_info *info, void *user)
{
    world *w = user;

    (void)roq;
    w->client = NULL;
    w->flow = NULL;
    w->client_closed = true;
    w->client_close = *info;
}

static void on_connected(leat_roq *roq, void *user)
{
    (void)roq;
    ((world *)user)->connected++;
}

static const leat_roq_events client_roq = {
    .connected = on_connected,
    .result = on_result,
    .writable = on_writable,
    .estimated = on_estimated,
    .closed = on_client_closed,
};

static void attach_client(world *w, leat_conn *conn)
{
    leat_roq_settings settings;

    leat_roq_settings_init(&settings);
    settings.require_datagrams = w->client_wants_datagrams;
    assert_int_equal(leat_roq_attach(conn, &settings, &client_roq, w, &w->client), LEAT_OK);
    assert_int_equal(leat_roq_flow_open(w->client, 1, &w->flow_settings, &w->flow), LEAT_OK);
}

static void on_client_connected(leat_conn *conn, void *user)
{
    world *w = user;

    if (!w->raw) {
        attach_client(w, conn);
    }
}

static void raw_stopped(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    (void)conn;
    (void)stream;
    ((world *)user)->client_stopped = code;
}

static void raw_reset(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    (void)conn;
    (void)stream;
    ((world *)user)->client_reset = code;
}

static void raw_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    world *w = user;

    (void)conn;
    w->client_closed = true;
    w->client_close = *info;
}

static const leat_conn_events client_events = {
    .connected = on_client_connected,
    .stream_stopped = raw_stopped,
    .stream_reset = raw_reset,
    .closed = raw_closed,
};

/* ---- the path ---- */

static bool filter(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    world *w = pair->user;

    (void)data;
    (void)len;
    if (!to_server) {
        return true;
    }
    w->seen++;
    return !w->dark && !(w->drop_nth && w->seen % w->drop_nth == 0);
}

void world_init(world *w)
{
    memset(w, 0, sizeof *w);
    leat_pair_setup_init(&w->setup);
    leat_roq_settings_init(&w->settings);
    leat_roq_flow_settings_init(&w->flow_settings);
    w->flow_settings.results = true;
    w->setup.conn.max_datagram_frame_size = 65535;
    w->setup.server.conn.max_datagram_frame_size = 65535;
    w->setup.server.events = &server_events;
    w->setup.server.user = w;
    w->setup.delay = 20 * LEAT_MILLISECOND;
    w->server_knows_flow = true;
    w->client_reset = w->client_stopped = UINT64_MAX;
}

static bool both_attached(void *arg)
{
    world *w = arg;

    return w->server_closed ||
           (w->server && (w->raw ? leat_conn_is_connected(w->pair.conn) : w->client != NULL));
}

void world_connect(world *w)
{
    leat_pair_init(&w->pair, &w->setup);
    w->pair.filter = filter;
    w->pair.user = w;
    leat_pair_connect(&w->pair, &w->setup, &client_events, w);
    if (w->early) {
        attach_client(w, w->pair.conn);
    }
    assert_true(leat_pair_run(&w->pair, both_attached, w, 2 * LEAT_SECOND));
    world_run(w, 100 * LEAT_MILLISECOND); /* the handshake's last packets */
}

void world_free(world *w)
{
    if (!w->client_closed) {
        leat_conn_close(w->pair.conn, 0, (leat_span){NULL, 0});
    }
    w->dark = false;
    w->drop_nth = 0;
    world_run(w, 5 * LEAT_SECOND);
    assert_true(w->server_closed);
    leat_pair_free(&w->pair); /* asserts that nothing is left of it */
}

void world_run(world *w, leat_time time)
{
    leat_time until = w->pair.now + time;

    while (leat_pair_step(&w->pair, until)) {
        if (w->client) {
            leat_roq_check(w->client);
        }
        if (w->server) {
            leat_roq_check(w->server);
        }
    }
    w->pair.now = until;
    leat_ctx_set_now(w->pair.ctx, until);
}
