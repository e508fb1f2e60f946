/* tests/unit/conn/test_log.c: events as lines, by level.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <leat/log.h>

#include "echo.h"
#include "forge.h"

static unsigned lines[LEAT_LOG_LEVELS], passed_on;
static char text_of[LEAT_LOG_LEVELS][1 << 15]; /* all lines of a level; the last of them all fit */
static bool saw_dirt;

static void keep(leat_log_level level, const char *text, void *user)
{
    char *all = text_of[level];
    size_t len = strlen(all);

    (void)user;
    lines[level]++;
    if (len + strlen(text) + 2 < sizeof(text_of[0])) {
        strcat(strcat(all, text), "\n");
    }
    for (const char *p = text; *p; p++) {
        saw_dirt |= *p < 0x20 || *p > 0x7e;
    }
}

static void count(leat_event_sink *sink, const leat_event *event)
{
    (void)sink, (void)event;
    passed_on++;
}

static leat_event_sink next = {count};
static leat_log log_of_server;
static leat_echo e;

static void prepare(leat_log_level level)
{
    memset(lines, 0, sizeof(lines));
    memset(text_of, 0, sizeof(text_of));
    passed_on = 0;
    saw_dirt = false;
    leat_log_init(&log_of_server, level, keep, NULL, &next);
    leat_echo_prepare(&e);
    e.setup.server.events_sink = &log_of_server.sink;
}

static bool says(leat_log_level level, const char *text)
{
    return strstr(text_of[level], text) != NULL;
}

static void run(leat_log_level level)
{
    prepare(level);
    leat_echo_connect(&e);
    leat_echo_bytes(&e, 20000, LEAT_SECOND);
    leat_conn_close(e.pair.conn, 42, (leat_span){(const uint8_t *)"\x1b[31m\n", 6});
    leat_echo_finish(&e);
}

static void levels_filter(void **state)
{
    (void)state;
    run(LEAT_LOG_INFO);
    assert_int_equal(lines[LEAT_LOG_INFO], 4); /* begin, complete, confirmed, end */
    assert_int_equal(lines[LEAT_LOG_ERROR] + lines[LEAT_LOG_WARN], 0);
    assert_int_equal(lines[LEAT_LOG_DEBUG] + lines[LEAT_LOG_TRACE], 0);
    assert_false(saw_dirt); /* what a peer says cannot move the cursor */
    assert_true(passed_on > 50);
    run(LEAT_LOG_NOTHING);
    for (int i = 0; i < LEAT_LOG_LEVELS; i++) {
        assert_int_equal(lines[i], 0);
    }
    assert_true(passed_on > 50); /* the next sink gets all of it */
    run(LEAT_LOG_TRACE);
    assert_true(lines[LEAT_LOG_TRACE] > 50);
    assert_true(lines[LEAT_LOG_DEBUG] > 3);
}

static void lines_tell_what_happened(void **state)
{
    (void)state;
    run(LEAT_LOG_INFO);
    assert_true(says(LEAT_LOG_INFO, " CONNECTION_STARTED "));
    assert_true(says(LEAT_LOG_INFO, ", QUIC v1\n"));
    assert_true(says(LEAT_LOG_INFO, " HANDSHAKE complete, QUIC v1, leat-test, TLS_"));
    assert_true(
        says(LEAT_LOG_INFO, " CONNECTION_CLOSED by the peer, application code 0x2a: ?[31m?\n"));
}

static void a_fault_is_an_error_and_says_which(void **state)
{
    static const uint8_t frames[] = {0x1e}; /* HANDSHAKE_DONE, to a server */

    (void)state;
    prepare(LEAT_LOG_INFO);
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    leat_forge(&e.pair, e.pair.conn, frames, sizeof(frames));
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(lines[LEAT_LOG_ERROR], 1);
    assert_true(
        says(LEAT_LOG_ERROR, " CONNECTION_CLOSED here, transport code 0xa (PROTOCOL_VIOLATION)"));
    leat_pair_free(&e.pair);
}

static void silence_is_no_error(void **state)
{
    (void)state;
    prepare(LEAT_LOG_INFO);
    e.setup.server.conn.idle_timeout = e.setup.conn.idle_timeout = LEAT_SECOND;
    leat_echo_connect(&e);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_closed, &e, 60 * LEAT_SECOND));
    assert_int_equal(lines[LEAT_LOG_ERROR], 0);
    assert_true(says(LEAT_LOG_INFO, " CONNECTION_CLOSED idle timeout\n"));
    leat_pair_free(&e.pair);
}

static void a_path_and_keys_that_change_are_told(void **state)
{
    static const leat_addr elsewhere = {.family = 4, .port = 50000, .ip = {192, 168, 7, 7}};

    (void)state;
    prepare(LEAT_LOG_DEBUG);
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(leat_conn_update_keys(e.pair.conn), LEAT_OK);
    leat_echo_bytes(&e, 1000, LEAT_SECOND);
    assert_int_equal(leat_conn_migrate(e.pair.conn, &elsewhere), LEAT_OK);
    leat_echo_settle(&e, 100 * LEAT_MILLISECOND);
    leat_echo_bytes(&e, 1000, LEAT_SECOND);
    assert_true(says(LEAT_LOG_DEBUG, " KEY_UPDATED server_1rtt_secret 1, remote_update\n"));
    assert_true(says(LEAT_LOG_INFO, " MIGRATION migration_started on path 1, "));
    assert_true(says(LEAT_LOG_INFO, " to 192.168.7.7:50000\n"));
    assert_true(says(LEAT_LOG_DEBUG, " CONNECTION_ID of the peer's "));
    assert_true(says(LEAT_LOG_DEBUG, " PATH 1 added, "));
    leat_echo_finish(&e);
}

static void levels_have_names(void **state)
{
    (void)state;
    assert_string_equal(leat_log_level_name(LEAT_LOG_ERROR), "ERROR");
    assert_string_equal(leat_log_level_name(LEAT_LOG_TRACE), "TRACE");
    assert_string_equal(leat_log_level_name(LEAT_LOG_LEVELS), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_filter),
        cmocka_unit_test(lines_tell_what_happened),
        cmocka_unit_test(a_fault_is_an_error_and_says_which),
        cmocka_unit_test(silence_is_no_error),
        cmocka_unit_test(a_path_and_keys_that_change_are_told),
        cmocka_unit_test(levels_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
