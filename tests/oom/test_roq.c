/* tests/oom/test_roq.c: memory fails while RTP runs over QUIC, in each mode: in sessions and flows,
 * in packets that wait or have come in part, and in QUIC below.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include <leat/roq.h>

#include "world.h"

enum { PACKETS = 6, PACKET = 700 };

static struct {
    leat_roq *client, *server;
    leat_roq_flow *flows[LEAT_ROQ_MODES];
    uint8_t queued[LEAT_ROQ_MODES][PACKETS]; /* taken by leat_roq_send() */
    uint8_t came[LEAT_ROQ_MODES][PACKETS];
    uint8_t told[LEAT_ROQ_MODES][PACKETS]; /* what became of it */
} r;

/* An RTP packet (version 2, type 96, the last of its frame) whose bytes follow from flow and
 * number. */
static leat_span rtp(size_t flow, size_t n)
{
    static uint8_t packet[PACKET];

    for (size_t i = 0; i < sizeof(packet); i++) {
        packet[i] = (uint8_t)(flow * 31 + n * 7 + i);
    }
    memcpy(packet, (uint8_t[12]){0x80, 0x80 | 96, 0, (uint8_t)n, 0, 0, 0, (uint8_t)n, 1, 2, 3, 4},
           12);
    return (leat_span){packet, sizeof(packet)};
}

/* ---- server ---- */

static void on_packet(leat_roq_flow *flow, leat_span packet, const leat_roq_arrival *how,
                      void *user)
{
    uint64_t id = leat_roq_flow_id(flow);

    (void)how, (void)user;
    assert_true(id < LEAT_ROQ_MODES && packet.len == PACKET && packet.data[3] < PACKETS);
    assert_memory_equal(packet.data, rtp(id, packet.data[3]).data, packet.len);
    assert_int_equal(r.came[id][packet.data[3]]++, 0);
}

static void on_unknown(leat_roq *roq, uint64_t id, void *user)
{
    leat_roq_flow *flow;
    leat_err err = leat_roq_flow_open(roq, id, NULL, &flow);

    (void)user;
    assert_true(err == LEAT_OK || err == LEAT_ERR_NOMEM);
}

static void server_closed(leat_roq *roq, const leat_close_info *info, void *user)
{
    (void)roq;
    r.server = NULL;
    leat_oom_server_events.closed(NULL, info, user);
}

static const leat_roq_events server_roq = {
    .packet = on_packet, .unknown_flow = on_unknown, .closed = server_closed};

/* ---- client ---- */

static void on_result(leat_roq_flow *flow, const leat_roq_result *result, void *user)
{
    (void)user;
    assert_int_equal(r.told[leat_roq_flow_id(flow)][result->tag]++, 0);
}

static void client_closed(leat_roq *roq, const leat_close_info *info, void *user)
{
    (void)roq;
    r.client = NULL;
    leat_oom_client_events.closed(NULL, info, user);
}

static const leat_roq_events client_roq = {.result = on_result, .closed = client_closed};

static void open_flows(void)
{
    leat_roq_flow_settings settings;

    leat_roq_flow_settings_init(&settings);
    settings.results = true;
    settings.lifetime = 0;
    for (size_t i = 0; i < LEAT_ROQ_MODES; i++) {
        leat_err err;

        settings.mode = (leat_roq_mode)i;
        err = leat_roq_flow_open(r.client, i, &settings, &r.flows[i]);
        assert_true(err == LEAT_OK || err == LEAT_ERR_NOMEM);
        if (err != LEAT_OK) {
            r.flows[i] = NULL;
        }
    }
}

/* ---- both ---- */

static void prepare(oom_world *w)
{
    w->setup.client_alpn = w->setup.server_alpn = LEAT_ROQ_ALPN;
    w->setup.conn.max_datagram_frame_size = w->setup.server.conn.max_datagram_frame_size = 65535;
}

static void attach(oom_world *w)
{
    leat_err err = leat_roq_attach(w->server.conn, NULL, &server_roq, w, &r.server);

    assert_true(err == LEAT_OK || err == LEAT_ERR_NOMEM);
    if (err != LEAT_OK) {
        leat_conn_close(w->server.conn, LEAT_ROQ_INTERNAL_ERROR, (leat_span){NULL, 0});
    }
    err = leat_roq_attach(w->client.conn, NULL, &client_roq, w, &r.client);
    assert_true(err == LEAT_OK || err == LEAT_ERR_NOMEM);
    if (err != LEAT_OK) {
        r.client = NULL;
        leat_conn_close(w->client.conn, LEAT_ROQ_INTERNAL_ERROR, (leat_span){NULL, 0});
    }
}

static void play(oom_world *w)
{
    memset(&r, 0, sizeof(r));
    attach(w);
    if (r.client) {
        open_flows();
    }
    w->drop = 11;
    for (size_t n = 0; n < PACKETS; n++) {
        for (size_t i = 0; i < LEAT_ROQ_MODES && r.client; i++) {
            leat_roq_send_options options = {.tag = n};
            leat_err err =
                r.flows[i] ? leat_roq_send(r.flows[i], rtp(i, n), &options) : LEAT_ERR_NOMEM;

            assert_true(err == LEAT_OK || err == LEAT_ERR_NOMEM || err == LEAT_ERR_CLOSED ||
                        err == LEAT_ERR_STATE);
            r.queued[i][n] = err == LEAT_OK;
        }
        leat_pair_run(&w->pair, NULL, NULL, 5 * LEAT_MILLISECOND);
    }
    leat_pair_run(&w->pair, NULL, NULL, 5 * LEAT_SECOND);
}

/* What was taken is told of once, unless the connection has ended; what streams carry arrives when
 * nothing fails. */
static void judge(oom_world *w, bool whole)
{
    w->drop = 0;
    leat_pair_run(&w->pair, NULL, NULL, 20 * LEAT_SECOND);
    for (size_t i = 0; i < LEAT_ROQ_MODES; i++) {
        for (size_t n = 0; n < PACKETS; n++) {
            assert_true(!whole || r.queued[i][n]);
            assert_true(!whole || i == LEAT_ROQ_MODE_DATAGRAM || r.came[i][n]);
            if (r.client && r.told[i][n] != r.queued[i][n]) {
                fail_msg("mode %zu, packet %zu: taken %u times, told of %u times", i, n,
                         r.queued[i][n], r.told[i][n]);
            }
            assert_true(r.queued[i][n] || !r.came[i][n]);
        }
    }
    if (r.client) {
        leat_roq_close(r.client, LEAT_ROQ_NO_ERROR, "");
        w->pair.conn = NULL;
    }
}

static void memory_fails_under_rtp(void **state)
{
    static const oom_scenario roq = {
        .prepare = prepare, .connected = true, .play = play, .judge = judge};

    (void)state;
    assert_true(leat_oom_try(&roq, LEAT_MEM_FAULT_TAKE, false) > 60);
    leat_oom_try(&roq, LEAT_MEM_FAULT_TAKE, true);
    leat_oom_try(&roq, LEAT_MEM_FAULT_GROWTH, false);
    leat_oom_try(&roq, LEAT_MEM_FAULT_GROWTH, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_fails_under_rtp),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
