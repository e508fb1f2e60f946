/* tests/oom/test_quic.c: memory of leat's own fails in the transport: in each run another take, or
 * another growth, alone or with all after it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "conn/conn.h"
#include "world.h"

static void try_all(const oom_scenario *scenario, uint64_t takes_at_least)
{
    assert_true(leat_oom_try(scenario, LEAT_MEM_FAULT_TAKE, false) >= takes_at_least);
    leat_oom_try(scenario, LEAT_MEM_FAULT_TAKE, true);
    leat_oom_try(scenario, LEAT_MEM_FAULT_GROWTH, false);
    leat_oom_try(scenario, LEAT_MEM_FAULT_GROWTH, true);
}

/* ---- handshake ---- */

static void prepare_tickets(oom_world *w)
{
    w->setup.tickets = 2;
}

static void prepare_retry(oom_world *w)
{
    w->setup.server.conn.wait_for_validation = true;
    w->setup.server.conn.versions[0] = LEAT_QUIC_V2; /* and a change of version */
    w->setup.server.conn.version_count = 1;
}

static void play_handshake(oom_world *w)
{
    leat_oom_connect(w);
    leat_oom_run(w, LEAT_SECOND);
}

static void judge_handshake(oom_world *w, bool whole)
{
    assert_true(!whole || (w->client.connected && w->server.connected));
}

static void memory_fails_in_the_handshake(void **state)
{
    static const oom_scenario plain = {
        .prepare = prepare_tickets, .play = play_handshake, .judge = judge_handshake};
    static const oom_scenario retry = {
        .prepare = prepare_retry, .play = play_handshake, .judge = judge_handshake};

    (void)state;
    try_all(&plain, 50);
    try_all(&retry, 50);
}

/* ---- transfer ---- */

/* Small windows and a lossy way: reassembly, retransmission, credit. */
static void prepare_transfer(oom_world *w)
{
    w->setup.conn.max_data = w->setup.server.conn.max_data = 32768;
    w->setup.conn.max_stream_data_bidi_local = 16384;
    w->setup.server.conn.max_stream_data_bidi_remote = 16384;
    w->setup.conn.send_buffer = w->setup.server.conn.send_buffer = 16384;
}

static void play_transfer(oom_world *w)
{
    w->drop = 7;
    leat_oom_open(w, 40000);
    leat_oom_open(w, 15000);
    leat_oom_open(w, 1);
    leat_oom_run(w, 5 * LEAT_SECOND);
}

static void memory_fails_in_a_transfer(void **state)
{
    static const oom_scenario transfer = {
        .prepare = prepare_transfer, .connected = true, .play = play_transfer};

    (void)state;
    try_all(&transfer, 50);
}

/* ---- migration, key update ---- */

static void play_migration(oom_world *w)
{
    leat_addr elsewhere = {.family = 4, .port = 50000, .ip = {192, 168, 7, 7}};

    leat_conn_migrate(w->pair.conn, &elsewhere);
    leat_oom_open(w, 10000);
    leat_oom_run(w, LEAT_SECOND);
    if (w->pair.conn) {
        leat_conn_update_keys(w->pair.conn);
    }
    w->pair.nat = (leat_addr){.family = 4, .port = 1000, .ip = {172, 16, 0, 9}};
    leat_oom_open(w, 10000);
    leat_oom_run(w, LEAT_SECOND);
    w->pair.nat.family = 0;
    leat_oom_open(w, 100);
    leat_oom_run(w, 2 * LEAT_SECOND);
}

static void memory_fails_in_a_migration(void **state)
{
    static const oom_scenario migration = {.connected = true, .play = play_migration};

    (void)state;
    try_all(&migration, 30);
}

/* ---- close ---- */

static void play_close(oom_world *w)
{
    leat_oom_open(w, 10000);
    leat_pair_run(&w->pair, NULL, NULL, 3 * LEAT_MILLISECOND);
    if (w->pair.conn) {
        leat_conn_close(w->pair.conn, 77, (leat_span){(const uint8_t *)"for want of room", 16});
    }
    leat_pair_run(&w->pair, NULL, NULL, 10 * LEAT_SECOND);
}

static void judge_close(oom_world *w, bool whole)
{
    assert_true(w->client.closed);
    assert_true(!whole || w->server.info.code == 77);
}

/* The other side has forgotten: a stateless reset. */
static void play_reset(oom_world *w)
{
    leat_conn_drop(w->server.conn);
    leat_oom_open(w, 10000);
    leat_oom_open(w, 10000); /* when the first could not be opened */
    leat_pair_run(&w->pair, NULL, NULL, 40 * LEAT_SECOND);
}

static void judge_reset(oom_world *w, bool whole)
{
    assert_true(w->client.closed);
    assert_true(!whole || w->client.info.kind == LEAT_CLOSE_RESET);
}

static void memory_fails_in_a_close(void **state)
{
    static const oom_scenario close = {
        .connected = true, .closes = true, .play = play_close, .judge = judge_close};

    static const oom_scenario reset = {
        .connected = true, .closes = true, .play = play_reset, .judge = judge_reset};

    (void)state;
    try_all(&close, 5);
    try_all(&reset, 3);
}

/* ---- datagrams ---- */

static void prepare_datagrams(oom_world *w)
{
    w->setup.conn.max_datagram_frame_size = w->setup.server.conn.max_datagram_frame_size = 65535;
    w->setup.conn.datagram_queue = w->setup.server.conn.datagram_queue = 8;
}

static void play_datagrams(oom_world *w)
{
    static const uint8_t data[1000];
    leat_datagram_options options = {.notify = true};

    for (int i = 0; i < 20 && w->pair.conn; i++) {
        leat_buf buf;
        leat_err err = leat_conn_send_datagram(
            w->pair.conn, (leat_span){data, 10u + 40u * (unsigned)i}, &options);

        assert_true(err == LEAT_OK || err == LEAT_ERR_NOMEM || err == LEAT_ERR_BLOCKED ||
                    err == LEAT_ERR_CLOSED);
        if (leat_buf_take(leat_ctx_mem(w->pair.ctx), 300, &buf) == LEAT_OK) {
            memset(buf.data, 0, buf.len);
            if (leat_conn_send_datagram_buf(w->pair.conn, &buf, NULL) != LEAT_OK) {
                leat_buf_release(&buf);
            }
        }
        if (i % 4 == 3) {
            leat_pair_run(&w->pair, NULL, NULL, 5 * LEAT_MILLISECOND);
        }
    }
    leat_oom_run(w, LEAT_SECOND);
}

static void judge_datagrams(oom_world *w, bool whole)
{
    assert_true(!whole || (w->server.datagrams > 20 && w->client.datagrams > 20));
}

static void memory_fails_with_datagrams(void **state)
{
    static const oom_scenario datagrams = {.prepare = prepare_datagrams,
                                           .connected = true,
                                           .play = play_datagrams,
                                           .judge = judge_datagrams};

    (void)state;
    try_all(&datagrams, 30);
}

/* ---- what is made before all that ---- */

static bool make_endpoint(uint64_t nth, bool lasting)
{
    leat_endpoint_settings settings;
    leat_endpoint *endpoint;
    leat_ctx_settings how;
    leat_ctx *ctx;
    leat_mem *mem;
    leat_err err;
    bool hit;

    leat_ctx_settings_init(&how);
    memset(how.seed, 1, sizeof(how.seed));
    assert_int_equal(leat_ctx_new(&how, &ctx), LEAT_OK);
    mem = leat_ctx_mem(ctx);
    leat_endpoint_settings_init(&settings);
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, nth, lasting);
    err = leat_endpoint_new(ctx, &settings, &endpoint);
    hit = leat_mem_fault_count(mem) > 0;
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
    assert_int_equal(err, hit ? LEAT_ERR_NOMEM : LEAT_OK);
    leat_endpoint_free(endpoint);
    leat_ctx_free(ctx);
    return hit;
}

static void memory_fails_for_an_endpoint(void **state)
{
    uint64_t n = 1;

    (void)state;
    while (make_endpoint(n, n % 2)) {
        n++;
    }
    assert_true(n > 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_fails_for_an_endpoint),
        cmocka_unit_test(memory_fails_in_the_handshake),
        cmocka_unit_test(memory_fails_in_a_transfer),
        cmocka_unit_test(memory_fails_in_a_migration),
        cmocka_unit_test(memory_fails_in_a_close),
        cmocka_unit_test(memory_fails_with_datagrams),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
