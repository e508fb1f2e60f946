/* tests/unit/endpoint/test_load.c: a server with too many half-open connections asks for Retry.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <leat/event.h>
#include <leat/log.h>

#include "echo.h"
#include "endpoint/endpoint.h"

#define ABOVE 8u
#define FLOOD 1000000u

static leat_echo e;
static leat_echo_app nobody; /* the application of clients that are never answered */
static unsigned on, off, lines, retries;
static size_t half_open;

static void keep(leat_event_sink *sink, const leat_event *event)
{
    (void)sink;
    if (event->type == LEAT_EVENT_RETRY_MODE) {
        assert_int_equal(event->odcid.len, 0);
        on += event->retry_mode.on;
        off += !event->retry_mode.on;
        half_open = event->retry_mode.half_open;
    }
}

static void keep_line(leat_log_level level, const char *line, void *user)
{
    (void)user;
    lines += level == LEAT_LOG_WARN && strstr(line, "RETRY_MODE on, 9 half-open") != NULL;
}

static bool drop_answers(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)data, (void)len;
    return to_server;
}

static bool count_retries(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)len;
    retries += !to_server && (data[0] & 0xf0) == 0xf0;
    return true;
}

static leat_log the_log;
static leat_event_sink the_sink;

static void begin(size_t above)
{
    on = off = lines = retries = 0;
    memset(&nobody, 0, sizeof(nobody));
    the_sink = (leat_event_sink){keep};
    leat_log_init(&the_log, LEAT_LOG_WARN, keep_line, NULL, &the_sink);
    leat_echo_prepare(&e);
    e.setup.server.retry_above = above;
    e.setup.server.events_sink = &the_log.sink;
    leat_pair_init(&e.pair, &e.setup);
}

/* n clients that begin and hear nothing; then they are gone. */
static void leave_half_open(size_t n)
{
    size_t before = e.pair.server->handshakes;

    e.pair.filter = drop_answers;
    for (size_t i = 0; i < n; i++) {
        leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &nobody);
    }
    leat_pair_run(&e.pair, NULL, NULL, 100 * LEAT_MILLISECOND);
    assert_int_equal(e.pair.server->handshakes, before + n);
    leat_endpoint_free(e.pair.client);
    e.pair.conn = NULL;
    assert_int_equal(leat_endpoint_new(e.pair.ctx, &e.setup.client, &e.pair.client), LEAT_OK);
    e.pair.filter = count_retries;
}

static void connect_one(void)
{
    memset(&e.client, 0, sizeof(e.client));
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    leat_pair_run(&e.pair, NULL, NULL, LEAT_SECOND);
    assert_int_equal(e.client.connected, 1);
}

static void end(void)
{
    leat_pair_free(&e.pair);
}

/* Initials from addresses that nobody has, of which each gets at most a Retry. */
static void flood(uint32_t n)
{
    static uint8_t answer[65536];
    /* ID lengths 8 and 0, no token, the rest one packet. */
    uint8_t initial[1200] = {[0] = 0xc0,
                             [4] = 1,
                             [5] = 8,
                             [16] = 0x40 | (sizeof(initial) - 18) >> 8,
                             [17] = (sizeof(initial) - 18) & 0xff};
    leat_addr from = {.family = 4, .port = 4000, .ip = {198, 51, 100}};
    leat_send_info info;
    size_t len;

    leat_ctx_set_now(e.pair.ctx, e.pair.now);
    for (uint32_t i = 0; i < n; i++) {
        memcpy(initial + 6, &i, 4); /* another destination ID, and another address */
        memcpy(from.ip, &i, 4);
        leat_pair_inject_from(&e.pair, &from, initial, sizeof(initial));
        if (i % 64 == 63) {
            leat_ctx_turn(e.pair.ctx, e.pair.now);
            while ((len = leat_endpoint_send(e.pair.server, answer, sizeof(answer), &info)) > 0) {
                assert_true(len <= sizeof(initial));
                retries++;
            }
        }
    }
}

static void a_server_under_load_asks_for_retry(void **state)
{
    (void)state;
    begin(ABOVE);
    leave_half_open(ABOVE);
    assert_int_equal(on, 0);
    connect_one(); /* as many as may: no Retry */
    assert_int_equal(retries, 0);
    assert_int_equal(on, 1); /* it was one more for a moment */
    assert_int_equal(lines, 1);
    assert_true(e.pair.server->retry_mode);
    connect_one();
    assert_int_equal(retries, 1);
    end();
}

static void it_backs_off_when_half_of_them_are_gone(void **state)
{
    (void)state;
    begin(ABOVE);
    leave_half_open(ABOVE + 1);
    assert_int_equal(on, 1);
    assert_int_equal(half_open, ABOVE + 1);
    leat_pair_run(&e.pair, NULL, NULL, e.setup.server.conn.handshake_timeout + LEAT_SECOND);
    assert_int_equal(e.pair.server->handshakes, 0);
    assert_int_equal(off, 1);
    assert_int_equal(half_open, ABOVE / 2);
    connect_one();
    assert_int_equal(retries, 0);
    end();
}

static void zero_is_never(void **state)
{
    (void)state;
    begin(0);
    leave_half_open(4 * ABOVE);
    connect_one();
    assert_int_equal(retries, 0);
    assert_int_equal(on, 0);
    end();
}

static void a_flood_from_forged_addresses_takes_no_memory(void **state)
{
    leat_mem_stats before, after;

    (void)state;
    begin(ABOVE);
    leave_half_open(ABOVE + 1);
    flood(100 * 64); /* the queue of answers has its size */
    leat_mem_stats_get(leat_ctx_mem(e.pair.ctx), &before);
    retries = 0;
    flood(FLOOD);
    assert_int_equal(retries, FLOOD);
    leat_mem_stats_get(leat_ctx_mem(e.pair.ctx), &after);
    assert_int_equal(after.grown, before.grown);
    assert_int_equal(e.pair.server->handshakes, ABOVE + 1);
    retries = 0;
    connect_one(); /* one who can be reached gets through */
    assert_int_equal(retries, 1);
    end();
}

static void the_cap_holds_those_who_prove_their_address(void **state)
{
    (void)state;
    begin(2);
    e.pair.server->settings.max_handshakes = 4;
    leave_half_open(3);
    assert_true(e.pair.server->retry_mode);
    e.pair.server->handshakes += 1; /* four */
    memset(&e.client, 0, sizeof(e.client));
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    leat_pair_run(&e.pair, leat_echo_client_closed, &e, LEAT_SECOND);
    assert_int_equal(retries, 1);
    assert_int_equal(e.client.closed, 1);
    assert_int_equal(e.client.info.code, LEAT_TE_CONNECTION_REFUSED);
    e.pair.server->handshakes -= 1;
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_under_load_asks_for_retry),
        cmocka_unit_test(it_backs_off_when_half_of_them_are_gone),
        cmocka_unit_test(zero_is_never),
        cmocka_unit_test(a_flood_from_forged_addresses_takes_no_memory),
        cmocka_unit_test(the_cap_holds_those_who_prove_their_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
