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

static unsigned lines[LEAT_LOG_LEVELS], passed_on;
static bool saw_handshake, saw_code, saw_dirt;

static void keep(leat_log_level level, const char *text, void *user)
{
    (void)user;
    lines[level]++;
    saw_handshake |= strstr(text, " HANDSHAKE confirmed, leat-test") != NULL;
    saw_code |= strstr(text, "application code 0x2a") != NULL;
    for (const char *p = text; *p; p++) {
        saw_dirt |= *p < 0x20 || *p > 0x7e;
    }
}

static void count(leat_event_sink *sink, const leat_event *event)
{
    (void)sink, (void)event;
    passed_on++;
}

static void run(leat_log_level level)
{
    leat_event_sink next = {count};
    leat_log log;
    leat_echo e;

    memset(lines, 0, sizeof(lines));
    passed_on = 0;
    saw_handshake = saw_code = saw_dirt = false;
    leat_log_init(&log, level, keep, NULL, &next);
    leat_echo_prepare(&e);
    e.setup.server.events_sink = &log.sink;
    leat_echo_connect(&e);
    leat_echo_bytes(&e, 20000, LEAT_SECOND);
    leat_conn_close(e.pair.conn, 42, (leat_span){(const uint8_t *)"\x1b[31m\n", 6});
    leat_echo_finish(&e);
}

static void levels_filter(void **state)
{
    (void)state;
    run(LEAT_LOG_INFO);
    assert_true(lines[LEAT_LOG_INFO] >= 2); /* begin, handshake */
    assert_int_equal(lines[LEAT_LOG_ERROR], 1);
    assert_int_equal(lines[LEAT_LOG_DEBUG] + lines[LEAT_LOG_TRACE], 0);
    assert_true(saw_handshake);
    assert_true(saw_code);
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
        cmocka_unit_test(levels_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
