/* tests/unit/conn/test_ecn.c: ECN marks, their validation, and what bleached and mangled ones lead
 * to (RFC 9000 s13.4).
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
#include "forge.h"

/* ---- alone ---- */

typedef struct state_test {
    leat_ecn_path path;
    leat_ecn_space space;
} state_test;

static uint64_t ack(state_test *t, uint32_t newly, uint64_t ect0, uint64_t ect1, uint64_t ce)
{
    leat_frame_ack frame = {.has_ecn = ect0 + ect1 + ce > 0, .ecn = {ect0, ect1, ce}};
    leat_sent_acked acked = {.ect0 = newly, .packets = newly, .bytes = 1200 * newly};

    return leat_ecn_on_ack(&t->path, &t->space, &frame, &acked);
}

static void mark(state_test *t, unsigned n)
{
    leat_ecn_init(&t->path, true);
    memset(&t->space, 0, sizeof(t->space));
    for (unsigned i = 0; i < n; i++) {
        leat_ecn_on_sent(&t->path, &t->space);
    }
}

static void right_counts_make_a_path_capable(void **state)
{
    state_test t;

    (void)state;
    mark(&t, 3);
    assert_int_equal(leat_ecn_mark(&t.path), LEAT_ECN_ECT0);
    assert_int_equal(ack(&t, 2, 2, 0, 0), 0);
    assert_int_equal(t.path.state, LEAT_ECN_IS_CAPABLE);
    assert_int_equal(ack(&t, 1, 2, 0, 1), 1); /* one was marked on the way */
    assert_int_equal(t.path.state, LEAT_ECN_IS_CAPABLE);
    assert_int_equal(leat_ecn_mark(&t.path), LEAT_ECN_ECT0);
}

static void testing_marks_a_few_packets_only(void **state)
{
    state_test t;

    (void)state;
    mark(&t, LEAT_ECN_TESTING);
    assert_int_equal(t.path.state, LEAT_ECN_IS_UNKNOWN);
    assert_int_equal(leat_ecn_mark(&t.path), LEAT_ECN_NOT_ECT);
    ack(&t, 1, 1, 0, 0);
    assert_int_equal(leat_ecn_mark(&t.path), LEAT_ECN_ECT0);
}

static void wrong_counts_fail_it(void **state)
{
    /* Newly acknowledged; ECT(0), ECT(1), CE as reported; of five sent. */
    static const struct {
        uint32_t newly;
        uint64_t ect0, ect1, ce;
    } wrong[] = {
        {2, 0, 0, 0},  /* bleached: no counts at all */
        {3, 1, 0, 1},  /* too few */
        {2, 0, 2, 0},  /* rewritten to ECT(1) */
        {2, 2, 1, 0},  /* ECT(1), which nobody sent, besides */
        {2, 6, 0, 0},  /* more than were sent */
        {2, 0, 0, 60}, /* the same as CE */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        state_test t;

        mark(&t, 5);
        assert_int_equal(ack(&t, wrong[i].newly, wrong[i].ect0, wrong[i].ect1, wrong[i].ce), 0);
        assert_int_equal(t.path.state, LEAT_ECN_IS_FAILED);
        assert_int_equal(leat_ecn_mark(&t.path), LEAT_ECN_NOT_ECT);
    }
    {
        state_test t;

        mark(&t, 5);
        ack(&t, 3, 3, 0, 0);
        ack(&t, 1, 2, 0, 0); /* counts do not shrink */
        assert_int_equal(t.path.state, LEAT_ECN_IS_FAILED);
        assert_int_equal(ack(&t, 1, 3, 0, 2), 0); /* nor is it trusted again */
    }
}

static void losing_all_marked_packets_fails_it(void **state)
{
    state_test t;

    (void)state;
    mark(&t, LEAT_ECN_TESTING);
    for (int i = 0; i < LEAT_ECN_TESTING - 1; i++) {
        leat_ecn_on_lost(&t.path);
    }
    assert_int_equal(t.path.state, LEAT_ECN_IS_UNKNOWN);
    leat_ecn_on_lost(&t.path);
    assert_int_equal(t.path.state, LEAT_ECN_IS_FAILED);
}

/* ---- between a client and a server ---- */

static struct {
    uint8_t becomes; /* what marked datagrams to the server turn into */
    unsigned every;  /* so many-th only; 0: none */
    unsigned marked[2], unmarked[2];
    bool lose_marked;
} path;

static bool along(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)data, (void)len;
    if (pair->ecn == LEAT_ECN_NOT_ECT) {
        path.unmarked[to_server]++;
        return true;
    }
    path.marked[to_server]++;
    if (to_server && path.lose_marked) {
        return false;
    }
    if (to_server && path.every > 0 && path.marked[1] % path.every == 0) {
        pair->ecn = path.becomes;
    }
    return true;
}

static void begin(leat_echo *e, uint8_t becomes, unsigned every)
{
    memset(&path, 0, sizeof(path));
    path.becomes = becomes;
    path.every = every;
    leat_echo_prepare(e);
    leat_pair_init(&e->pair, &e->setup);
    e->pair.filter = along;
    leat_pair_connect(&e->pair, &e->setup, &leat_echo_client_events, &e->client);
    assert_true(leat_pair_run(&e->pair, leat_echo_both_connected, e, 5 * LEAT_SECOND));
}

static void all_packets_of_a_clean_path_are_marked(void **state)
{
    leat_echo e;

    (void)state;
    begin(&e, 0, 0);
    leat_echo_bytes(&e, 200000, 20 * LEAT_SECOND);
    assert_int_equal(path.unmarked[0], 0);
    assert_int_equal(path.unmarked[1], 0);
    assert_int_equal(e.pair.conn->ecn.state, LEAT_ECN_IS_CAPABLE);
    assert_int_equal(e.server.conn->ecn.state, LEAT_ECN_IS_CAPABLE);
    leat_conn_close(e.pair.conn, 0, (leat_span){NULL, 0}); /* its last words as well */
    assert_true(leat_pair_run(&e.pair, leat_echo_both_closed, &e, 5 * LEAT_SECOND));
    assert_int_equal(path.unmarked[0], 0);
    assert_int_equal(path.unmarked[1], 0);
    leat_echo_finish(&e);
}

static void ce_marks_slow_the_sender_without_loss(void **state)
{
    leat_conn_stats_data stats;
    leat_echo e;

    (void)state;
    begin(&e, LEAT_ECN_CE, 50);
    leat_echo_bytes(&e, 500000, 60 * LEAT_SECOND);
    leat_conn_stats(e.pair.conn, &stats);
    assert_int_equal(stats.packets_lost, 0);
    assert_int_equal(e.pair.conn->ecn.state, LEAT_ECN_IS_CAPABLE);
    assert_true(e.pair.conn->cc.recovery_start > 0);
    assert_true(e.pair.conn->cc.ssthresh < 500000);
    assert_int_equal(e.server.conn->cc.recovery_start, 0); /* its direction is clean */
    leat_echo_finish(&e);
}

static void a_bleaching_path_is_noticed(void **state)
{
    leat_echo e;

    (void)state;
    begin(&e, LEAT_ECN_NOT_ECT, 1);
    leat_echo_bytes(&e, 100000, 20 * LEAT_SECOND);
    assert_int_equal(e.pair.conn->ecn.state, LEAT_ECN_IS_FAILED);
    assert_int_equal(e.server.conn->ecn.state, LEAT_ECN_IS_CAPABLE);
    assert_true(path.marked[1] <= 20);
    assert_true(path.unmarked[1] > 20);
    leat_echo_finish(&e);
}

static void a_path_that_rewrites_marks_is_noticed(void **state)
{
    leat_echo e;

    (void)state;
    begin(&e, LEAT_ECN_ECT1, 3);
    leat_echo_bytes(&e, 100000, 20 * LEAT_SECOND);
    assert_int_equal(e.pair.conn->ecn.state, LEAT_ECN_IS_FAILED);
    leat_echo_finish(&e);
}

static void a_path_that_drops_what_is_marked_still_carries_a_handshake(void **state)
{
    leat_echo e;

    (void)state;
    memset(&path, 0, sizeof(path));
    path.lose_marked = true;
    leat_echo_prepare(&e);
    e.setup.conn.handshake_timeout = 60 * LEAT_SECOND;
    leat_pair_init(&e.pair, &e.setup);
    e.pair.filter = along;
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 60 * LEAT_SECOND));
    leat_echo_bytes(&e, 20000, 60 * LEAT_SECOND);
    leat_echo_finish(&e);
}

static void it_can_be_turned_off(void **state)
{
    leat_echo e;

    (void)state;
    memset(&path, 0, sizeof(path));
    leat_echo_prepare(&e);
    e.setup.conn.disable_ecn = true;
    leat_pair_init(&e.pair, &e.setup);
    e.pair.filter = along;
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 5 * LEAT_SECOND));
    leat_echo_bytes(&e, 20000, 20 * LEAT_SECOND);
    assert_int_equal(path.marked[1], 0);
    assert_true(path.marked[0] > 0);
    leat_echo_finish(&e);
}

/* An ACK that was overtaken names fewer marks than the one before: that is no failure. */
static void an_overtaken_ack_is_not_judged(void **state)
{
    static const uint8_t old[] = {0x02, 0x00, 0x00, 0x00, 0x00}; /* ACK of packet 0, no counts */
    leat_echo e;

    (void)state;
    begin(&e, 0, 0);
    leat_echo_bytes(&e, 20000, 20 * LEAT_SECOND);
    leat_forge(&e.pair, e.server.conn, old, sizeof(old));
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(e.pair.conn->ecn.state, LEAT_ECN_IS_CAPABLE);
    leat_echo_finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(right_counts_make_a_path_capable),
        cmocka_unit_test(testing_marks_a_few_packets_only),
        cmocka_unit_test(wrong_counts_fail_it),
        cmocka_unit_test(losing_all_marked_packets_fails_it),
        cmocka_unit_test(all_packets_of_a_clean_path_are_marked),
        cmocka_unit_test(ce_marks_slow_the_sender_without_loss),
        cmocka_unit_test(a_bleaching_path_is_noticed),
        cmocka_unit_test(a_path_that_rewrites_marks_is_noticed),
        cmocka_unit_test(a_path_that_drops_what_is_marked_still_carries_a_handshake),
        cmocka_unit_test(it_can_be_turned_off),
        cmocka_unit_test(an_overtaken_ack_is_not_judged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
