/* tests/unit/conn/test_grease.c: spin bit, QUIC bit, reserved transport parameter; and what an idle
 * connection holds.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conn/conn.h"
#include "echo.h"

/* What somebody on the path sees of short headers. */
static struct {
    unsigned set[2], clear[2]; /* QUIC bit */
    unsigned edges[2];         /* of the spin bit */
    bool last[2];
} seen;

static bool watch(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    bool spin = (data[0] & LEAT_FIRST_SPIN) != 0;

    (void)pair, (void)len;
    if (data[0] & LEAT_FIRST_LONG) {
        assert_true(data[0] & LEAT_FIRST_FIXED);
        return true;
    }
    if (data[0] & LEAT_FIRST_FIXED) {
        seen.set[to_server]++;
    } else {
        seen.clear[to_server]++;
    }
    seen.edges[to_server] += spin != seen.last[to_server];
    seen.last[to_server] = spin;
    return true;
}

static void begin(leat_echo *e)
{
    memset(&seen, 0, sizeof(seen));
    leat_pair_init(&e->pair, &e->setup);
    e->pair.filter = watch;
    leat_pair_connect(&e->pair, &e->setup, &leat_echo_client_events, &e->client);
    assert_true(leat_pair_run(&e->pair, leat_echo_both_connected, e, 5 * LEAT_SECOND));
    leat_echo_settle(e, LEAT_SECOND);
}

/* ---- spin bit ---- */

static void the_spin_bit_turns_once_a_round_trip(void **state)
{
    enum { ROUNDS = 20 };
    leat_echo e;
    leat_time from;
    unsigned rounds;

    (void)state;
    leat_echo_prepare(&e);
    e.setup.delay = 50 * LEAT_MILLISECOND;
    begin(&e);
    e.pair.conn->grease.spins = e.server.conn->grease.spins = true;
    from = e.pair.now;
    seen.edges[0] = seen.edges[1] = 0;
    for (int i = 0; i < ROUNDS; i++) {
        leat_echo_bytes(&e, 100, LEAT_SECOND);
    }
    /* At least with each question and answer; no more often than the path allows. */
    rounds = (unsigned)((e.pair.now - from) / (100 * LEAT_MILLISECOND));
    assert_in_range(seen.edges[1], ROUNDS - 1, rounds + 1);
    assert_in_range(seen.edges[0], ROUNDS - 1, rounds + 1);
    leat_echo_finish(&e);
}

static void without_it_the_bit_stands_still(void **state)
{
    leat_echo e;

    (void)state;
    leat_echo_prepare(&e);
    e.setup.conn.disable_spin = true;
    begin(&e);
    seen.edges[0] = seen.edges[1] = 0;
    for (int i = 0; i < 20; i++) {
        leat_echo_bytes(&e, 100, LEAT_SECOND);
    }
    assert_int_equal(seen.edges[1], 0);
    assert_true(seen.edges[0] <= 1); /* the server reflects what stands still */
    leat_echo_finish(&e);
}

static void one_connection_in_sixteen_does_not_spin(void **state)
{
    uint8_t seed[32] = {1};
    leat_random random;
    unsigned off = 0, ones = 0;

    (void)state;
    leat_random_init(&random, seed);
    for (int i = 0; i < 16000; i++) {
        leat_grease grease;

        leat_grease_init(&grease, &random, false, false);
        off += !grease.spins;
        ones += !grease.spins && grease.spin;
    }
    assert_in_range(off, 900, 1100);
    assert_in_range(ones, off / 2 - 100, off / 2 + 100);
}

/* ---- QUIC bit ---- */

static void the_quic_bit_is_clear_in_half_of_the_packets(void **state)
{
    leat_echo e;

    (void)state;
    leat_echo_prepare(&e);
    begin(&e);
    leat_echo_bytes(&e, 300000, 20 * LEAT_SECOND);
    for (int to_server = 0; to_server < 2; to_server++) {
        unsigned all = seen.set[to_server] + seen.clear[to_server];

        assert_true(all > 100);
        assert_in_range(seen.clear[to_server], all * 2 / 5, all * 3 / 5);
    }
    leat_echo_finish(&e);
}

static void who_does_not_say_so_gets_it_set(void **state)
{
    leat_echo e;

    (void)state;
    leat_echo_prepare(&e);
    e.setup.conn.disable_grease = true; /* the client: neither takes nor sends it */
    begin(&e);
    leat_echo_bytes(&e, 100000, 20 * LEAT_SECOND);
    assert_int_equal(seen.clear[0], 0);
    assert_int_equal(seen.clear[1], 0);
    leat_echo_finish(&e);
}

static bool clear_quic_bit(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)len;
    if (!to_server) {
        data[0] &= (uint8_t)~LEAT_FIRST_FIXED;
    }
    return true;
}

/* Clearing it on the way breaks authenticity; but who does not take it drops such a packet before
 * it looks further. */
static void a_clear_bit_not_agreed_on_is_dropped(void **state)
{
    leat_conn_stats_data before, after;
    leat_echo e;

    (void)state;
    leat_echo_prepare(&e);
    e.setup.conn.disable_grease = true;
    begin(&e);
    leat_conn_stats(e.pair.conn, &before);
    e.pair.filter = clear_quic_bit;
    leat_conn_update_keys(e.server.conn);
    leat_echo_settle(&e, LEAT_SECOND / 2);
    leat_conn_stats(e.pair.conn, &after);
    assert_true(after.packets_dropped > before.packets_dropped);
    assert_int_equal(e.pair.conn->rekey.forged, 0);
    e.pair.filter = NULL;
    leat_echo_finish(&e);
}

/* ---- reserved parameter ---- */

static void parameters_are_greased_with_a_reserved_one(void **state)
{
    uint8_t seed[32] = {2}, out[LEAT_TPARAMS_MAX], room[16];
    leat_random random;

    (void)state;
    leat_random_init(&random, seed);
    for (int i = 0; i < 1000; i++) {
        leat_grease grease;
        leat_tparams params, decoded;
        const char *why;
        leat_writer w;

        leat_grease_init(&grease, &random, false, false);
        leat_tparams_init(&params);
        params.present = LEAT_TP_initial_scid;
        leat_grease_params(&grease, &random, &params, room);
        assert_int_equal(params.grease_id % 31, 27);
        leat_writer_init(&w, out, sizeof(out));
        assert_true(leat_tparams_encode(&params, &w));
        assert_int_equal(
            leat_tparams_decode((leat_span){out, leat_writer_len(&w)}, false, &decoded, &why),
            LEAT_TE_NO_ERROR);
        assert_true(leat_tparams_has(&decoded, LEAT_TP_grease_quic_bit));
    }
}

/* ---- idle ---- */

static size_t in_use(const leat_echo *e)
{
    leat_mem_stats stats;

    leat_mem_stats_get(leat_ctx_mem(e->pair.ctx), &stats);
    return stats.obj_live + stats.buf_used;
}

/* Both ends of a second connection, so that what the context keeps for all is not counted, after a
 * transfer, and then after nothing. */
static void an_idle_connection_gives_its_storage_back(void **state)
{
    leat_echo e;
    leat_conn_stats_data stats;
    size_t none, busy, idle;

    (void)state;
    leat_echo_prepare(&e);
    e.setup.server.conn.max_datagram_frame_size = 65535;
    leat_pair_init(&e.pair, &e.setup);
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 5 * LEAT_SECOND));
    leat_echo_bytes(&e, 500000, 20 * LEAT_SECOND);
    leat_echo_settle(&e, 10 * LEAT_SECOND);
    /* Expanded keys are the context's. */
    assert_int_equal(
        leat_key_cache_warm(leat_conn_shared_of(e.pair.conn)->keys, LEAT_AEAD_AES_128_GCM, 32),
        LEAT_OK);
    none = in_use(&e);
    e.client.connected = e.server.connected = 0;
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 5 * LEAT_SECOND));
    leat_echo_bytes(&e, 500000, 20 * LEAT_SECOND);
    leat_echo_settle(&e, LEAT_SECOND);
    busy = in_use(&e) - none;
    leat_echo_settle(&e, 10 * LEAT_SECOND);
    idle = in_use(&e) - none;
    leat_conn_stats(e.pair.conn, &stats);
    print_message("sizeof(leat_conn) %zu; both ends: %zu bytes after a transfer, %zu when idle; "
                  "budget of one: %llu\n",
                  sizeof(leat_conn), busy, idle, (unsigned long long)stats.memory_used);
    assert_true(idle < busy);
#if !LEAT_MEM_GUARD
    assert_true(idle <= 2 * (size_t)6144); /* what an idle end may hold, all told */
#endif
    assert_int_equal(leat_sent_memory(&e.pair.conn->app.sent), 0);
    leat_echo_bytes(&e, 100000, 20 * LEAT_SECOND); /* and is as good as new */
    leat_conn_check(e.pair.conn);
    leat_pair_free(&e.pair);
}

/* Records of packets under way take room, too: where the budget has none they do not grow, what is
 * new waits for what is acknowledged, and all arrives. */
static void a_budget_used_up_is_not_overrun_by_what_is_under_way(void **state)
{
    enum { BYTES = 400000 };
    static const uint8_t data[BYTES];
    leat_stream *stream;
    leat_budget *budget;
    leat_echo e;
    size_t written, held;
    uint32_t cap;

    (void)state;
    leat_echo_prepare(&e);
    e.setup.delay = 50 * LEAT_MILLISECOND;
    leat_echo_connect(&e);
    leat_echo_settle(&e, 200 * LEAT_MILLISECOND);
    assert_int_equal(leat_stream_open(e.pair.conn, false, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, data, BYTES, &written), LEAT_OK);
    assert_int_equal(written, BYTES);
    budget = &e.pair.conn->budget;
    held = budget->limit - budget->used;
    cap = e.pair.conn->app.sent.packet_cap;
    assert_true(leat_budget_charge(budget, LEAT_BUDGET_OTHER, held));
    leat_echo_settle(&e, 10 * LEAT_SECOND);
    assert_int_equal(e.server.received, BYTES);
    assert_true(budget->high <= budget->limit);
    assert_true(e.pair.conn->app.sent.packet_cap <= cap || cap == 0);
    leat_budget_refund(budget, LEAT_BUDGET_OTHER, held);
    leat_echo_finish(&e);
}

/* ---- windows ---- */

/* On a path of 200 ms windows of 64 KiB would carry 320 KB a second. They grow as they are used. */
static void windows_tune_themselves_on_a_long_path(void **state)
{
    enum { BYTES = 6000000 };
    static uint8_t data[65536];
    leat_stream *stream;
    leat_echo e;
    leat_time from;
    size_t sent = 0;

    (void)state;
    leat_echo_prepare(&e);
    e.setup.delay = 100 * LEAT_MILLISECOND;
    e.setup.server.conn.max_data = 131072;
    e.setup.server.conn.max_stream_data_uni = 65536;
    e.setup.conn.send_buffer = 16 << 20;
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    from = e.pair.now;
    assert_int_equal(leat_stream_open(e.pair.conn, false, &stream), LEAT_OK);
    while (sent < BYTES) {
        size_t written;

        assert_int_equal(leat_stream_write(stream, data, sizeof(data), &written), LEAT_OK);
        sent += written;
    }
    assert_int_equal(leat_stream_finish(stream), LEAT_OK);
    while (e.server.received < sent) {
        assert_true(leat_pair_step(&e.pair, from + 60 * LEAT_SECOND));
    }
    print_message("%zu bytes in %.2f s of 200 ms round trips\n", sent,
                  (double)(e.pair.now - from) / 1e9);
    assert_true(e.pair.now - from < 6 * LEAT_SECOND); /* 18.3 with the windows as they were */
    assert_true(e.server.conn->streams.flow_in.window > 1000000);
    assert_true(e.server.conn->streams.flow_in.window <= e.server.conn->budget.limit / 2);
    leat_echo_finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_spin_bit_turns_once_a_round_trip),
        cmocka_unit_test(without_it_the_bit_stands_still),
        cmocka_unit_test(one_connection_in_sixteen_does_not_spin),
        cmocka_unit_test(the_quic_bit_is_clear_in_half_of_the_packets),
        cmocka_unit_test(who_does_not_say_so_gets_it_set),
        cmocka_unit_test(a_clear_bit_not_agreed_on_is_dropped),
        cmocka_unit_test(parameters_are_greased_with_a_reserved_one),
        cmocka_unit_test(an_idle_connection_gives_its_storage_back),
        cmocka_unit_test(a_budget_used_up_is_not_overrun_by_what_is_under_way),
        cmocka_unit_test(windows_tune_themselves_on_a_long_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
