/* tests/unit/endpoint/test_late.c: copies of a client's first datagram that come late begin no
 * second connection; a client that was never answered begins again.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "echo.h"
#include "endpoint/endpoint.h"

static leat_echo e;
static struct {
    uint8_t data[1500];
    size_t len;
} initial[2]; /* the client's first two datagrams */
static size_t initials;
static size_t answers_lost; /* from now on */

static bool record(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair;
    if (to_server && initials < 2) {
        memcpy(initial[initials].data, data, *len);
        initial[initials++].len = *len;
    }
    if (!to_server && answers_lost > 0) {
        answers_lost--;
        return false;
    }
    return true;
}

static void connect(bool retry)
{
    leat_echo_prepare(&e);
    e.setup.server.conn.wait_for_validation = retry;
    initials = answers_lost = 0;
    leat_echo_begin(&e);
    e.pair.filter = record;
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 5 * LEAT_SECOND));
    leat_echo_settle(&e, LEAT_SECOND);
}

static void copies_come(size_t which)
{
    for (int i = 0; i < 20; i++) {
        uint8_t copy[1500];

        memcpy(copy, initial[which].data, initial[which].len);
        leat_pair_inject(&e.pair, true, copy, initial[which].len);
        leat_ctx_turn(e.pair.ctx, e.pair.now);
        e.pair.now += 10 * LEAT_MILLISECOND;
        leat_ctx_set_now(e.pair.ctx, e.pair.now);
    }
}

static void late_copies_begin_nothing(void **state)
{
    (void)state;
    connect(false);
    assert_int_equal(leat_endpoint_conns(e.pair.server), 1);
    copies_come(0);
    assert_int_equal(leat_endpoint_conns(e.pair.server), 1);
    /* Nor after the connection is over. */
    leat_conn_close(e.pair.conn, 0, (leat_span){NULL, 0});
    assert_true(leat_pair_run(&e.pair, leat_echo_both_closed, &e, 60 * LEAT_SECOND));
    leat_echo_settle(&e, 60 * LEAT_SECOND);
    copies_come(0);
    assert_int_equal(leat_endpoint_conns(e.pair.server), 0);
    leat_echo_finish(&e);
}

/* The second carries the token; its ID is the one of the Retry. */
static void late_copies_after_a_retry_begin_nothing(void **state)
{
    (void)state;
    connect(true);
    assert_int_equal(initials, 2);
    copies_come(1);
    assert_int_equal(leat_endpoint_conns(e.pair.server), 1);
    copies_come(0); /* these are sent a Retry each */
    assert_int_equal(leat_endpoint_conns(e.pair.server), 1);
    leat_echo_finish(&e);
}

/* The server has given up before its client has: both begin anew, with the same datagram. */
static void a_client_that_was_not_answered_begins_again(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    initials = 0;
    answers_lost = 100;
    e.setup.server.conn.handshake_timeout = 2 * LEAT_SECOND;
    e.setup.conn.handshake_timeout = 60 * LEAT_SECOND;
    leat_echo_begin(&e);
    e.pair.filter = record;
    leat_echo_settle(&e, 6 * LEAT_SECOND);
    assert_int_equal(e.server.connected, 0);
    answers_lost = 0;
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 30 * LEAT_SECOND));
    leat_echo_bytes(&e, 10000, 5 * LEAT_SECOND);
    leat_echo_finish(&e);
}

/* What is remembered does not grow, and the newest is among it. */
static void what_is_remembered_is_bounded(void **state)
{
    leat_conn_host *host;
    leat_mem_stats before, after;
    leat_prng prng;
    leat_cid cid;
    size_t kept = 0;

    (void)state;
    leat_prng_seed(&prng, 7);
    connect(false);
    host = &e.pair.server->host;
    leat_mem_stats_get(leat_ctx_mem(e.pair.ctx), &before);
    for (size_t i = 0; i < 20 * LEAT_RECENT_DCIDS_MAX; i++) {
        uint8_t bytes[8];

        leat_prng_fill(&prng, bytes, sizeof(bytes));
        leat_cid_set(&cid, bytes, sizeof(bytes));
        assert_false(leat_endpoint_is_recent(e.pair.server, leat_cid_span(&cid)));
        host->ops->dcid_done(host, &cid);
        assert_true(leat_endpoint_is_recent(e.pair.server, leat_cid_span(&cid)));
    }
    leat_mem_stats_get(leat_ctx_mem(e.pair.ctx), &after);
    assert_int_equal(after.grown, before.grown);
    /* Of as many as there are places, most are still known, and nothing older. */
    leat_prng_seed(&prng, 7);
    for (size_t i = 0; i < 20 * LEAT_RECENT_DCIDS_MAX; i++) {
        uint8_t bytes[8];
        bool known;

        leat_prng_fill(&prng, bytes, sizeof(bytes));
        known = leat_endpoint_is_recent(e.pair.server, (leat_span){bytes, sizeof(bytes)});
        kept += i >= 19 * LEAT_RECENT_DCIDS_MAX && known;
    }
    assert_in_range(kept, LEAT_RECENT_DCIDS_MAX / 2, LEAT_RECENT_DCIDS_MAX);
    leat_echo_finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_copies_begin_nothing),
        cmocka_unit_test(late_copies_after_a_retry_begin_nothing),
        cmocka_unit_test(a_client_that_was_not_answered_begins_again),
        cmocka_unit_test(what_is_remembered_is_bounded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
