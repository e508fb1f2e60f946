/* tests/unit/conn/test_resume.c: sessions that are resumed, and those that are not.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "early_rig.h"

static void a_session_is_resumed(void **state)
{
    (void)state;
    prepare();
    t.echo.setup.conn.early_data = false;
    t.echo.setup.verify = true;
    first_connection();
    for (int i = 0; i < 3; i++) {
        connect_again();
        assert_int_equal(leat_conn_early(t.echo.pair.conn), LEAT_EARLY_NONE);
        assert_true(leat_pair_run(&t.echo.pair, both_connected, NULL, 5 * LEAT_SECOND));
        assert_true(leat_conn_resumed(t.echo.client.conn));
        assert_true(leat_conn_resumed(t.echo.server.conn));
        leat_echo_settle(&t.echo, LEAT_SECOND);
        assert_int_equal(t.tickets, 1);
        close_it();
        t.echo.pair.session = (leat_span){t.session, t.session_len};
    }
    finish();
}

static void tls_goes_when_the_tickets_have_come_or_after_a_while(void **state)
{
    (void)state;
    prepare();
    leat_pair_init(&t.echo.pair, &t.echo.setup);
    connect_again();
    assert_true(leat_pair_run(&t.echo.pair, both_connected, NULL, 5 * LEAT_SECOND));
    leat_echo_settle(&t.echo, 100 * LEAT_MILLISECOND);
    assert_null(t.echo.pair.conn->hs);
    assert_null(t.echo.pair.conn->tickets);
    close_it();
    finish();

    prepare();
    t.echo.setup.tickets = 3; /* of which a session keeps as many as it has room for */
    leat_pair_init(&t.echo.pair, &t.echo.setup);
    connect_again();
    assert_true(leat_pair_run(&t.echo.pair, both_connected, NULL, 5 * LEAT_SECOND));
    leat_echo_settle(&t.echo, 100 * LEAT_MILLISECOND);
    assert_int_equal(t.tickets, 3);
    assert_null(t.echo.pair.conn->tickets);
    close_it();
    finish();

    prepare();
    leat_pair_init(&t.echo.pair, &t.echo.setup);
    connect_again();
    t.echo.pair.conn->tickets->wanted = 2; /* the server sends one */
    assert_true(leat_pair_run(&t.echo.pair, both_connected, NULL, 5 * LEAT_SECOND));
    leat_echo_settle(&t.echo, 100 * LEAT_MILLISECOND);
    assert_null(t.echo.pair.conn->hs);
    assert_non_null(t.echo.pair.conn->tickets->tls);
    assert_int_equal(t.tickets, 1);
    leat_echo_bytes(&t.echo, 10000, 5 * LEAT_SECOND);
    leat_echo_settle(&t.echo, LEAT_TICKET_WAIT);
    assert_null(t.echo.pair.conn->tickets);
    leat_echo_bytes(&t.echo, 10000, 5 * LEAT_SECOND);
    close_it();
    finish();
}

static void tickets_outlive_a_server_and_early_data_is_then_refused(void **state)
{
    static const uint8_t key[LEAT_TLS_TICKET_KEY] = {3, 1, 4};
    leat_shared *next;

    (void)state;
    prepare_with(key);
    first_connection();
    next = make_shared(9, key);
    another_server(next);
    connect_and_ask(STREAMS);
    answers_come(5 * LEAT_SECOND, STREAM_SIZE);
    assert_true(leat_conn_resumed(t.echo.server.conn));
    assert_int_equal(leat_conn_early(t.echo.client.conn), LEAT_EARLY_REJECTED);
    assert_int_equal(t.early_told, 0);
    close_it();
    finish();
    leat_shared_free(next);
}

static void a_session_that_was_not_verified_is_not_used_where_that_is_wanted(void **state)
{
    (void)state;
    begin();
    assert_int_equal(t.echo.setup.verify, false);
    leat_pair_free(&t.echo.pair);
    t.echo.setup.verify = true;
    leat_pair_init(&t.echo.pair, &t.echo.setup);
    t.echo.pair.session = (leat_span){t.session, t.session_len};
    connect_again();
    assert_int_equal(leat_conn_early(t.echo.pair.conn), LEAT_EARLY_NONE);
    assert_true(leat_pair_run(&t.echo.pair, both_connected, NULL, 5 * LEAT_SECOND));
    assert_false(leat_conn_resumed(t.echo.pair.conn));
    close_it();
    finish();
}

static void a_damaged_session_is_passed_over(void **state)
{
    (void)state;
    begin();
    for (size_t i = 0; i < t.session_len; i += 1 + t.session_len / 40) {
        t.session[i] ^= 0x20;
        connect_again();
        assert_int_equal(leat_conn_early(t.echo.pair.conn), LEAT_EARLY_NONE);
        t.session[i] ^= 0x20;
        close_it();
    }
    for (size_t i = 0; i < t.session_len; i += 1 + t.session_len / 40) {
        t.echo.pair.session.len = i;
        connect_again();
        assert_int_equal(leat_conn_early(t.echo.pair.conn), LEAT_EARLY_NONE);
        close_it();
    }
    finish();
}

static void a_session_past_its_time_is_not_resumed(void **state)
{
    static const int64_t hours[] = {5, 7, 24 * 8}; /* a ticket lives for six */

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        begin();
        clock_skew = hours[i] * 3600;
        connect_again();
        if (leat_conn_early(t.echo.pair.conn) == LEAT_EARLY_OFFERED) {
            ask(1, STREAM_SIZE);
        }
        assert_true(leat_pair_run(&t.echo.pair, both_connected, NULL, 5 * LEAT_SECOND));
        assert_true(leat_conn_resumed(t.echo.pair.conn) == (i == 0));
        assert_true((leat_conn_early(t.echo.pair.conn) == LEAT_EARLY_ACCEPTED) == (i == 0));
        close_it();
        clock_skew = 0;
        finish();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_resumed),
        cmocka_unit_test(tls_goes_when_the_tickets_have_come_or_after_a_while),
        cmocka_unit_test(tickets_outlive_a_server_and_early_data_is_then_refused),
        cmocka_unit_test(a_session_that_was_not_verified_is_not_used_where_that_is_wanted),
        cmocka_unit_test(a_damaged_session_is_passed_over),
        cmocka_unit_test(a_session_past_its_time_is_not_resumed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
