/* HTTP over a QUIC that is not there: both protocols through the one interface, leat at both ends.
 *
 * SPDX-License-Identifier: MIT
 */
#include "world.h"

static void a_body_arrives_whole_however_it_is_cut(void **state)
{
    static const struct {
        size_t segment, window, span, take;
    } ways[] = {{1200, 100000, 16384, SIZE_MAX}, {65536, 1000000, 70000, SIZE_MAX},
                {1, 5000, 100, SIZE_MAX},        {7, 64, 64, SIZE_MAX},
                {1200, 30, 3, SIZE_MAX},         {1200, 100000, 65, 1000}};

    (void)state;
    for (size_t p = 0; p < 2; p++) {
        for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
            world w;

            world_open(&w, world_protocols[p], 3);
            w.net.segment = ways[i].segment;
            w.net.window = ways[i].window;
            w.net.span = ways[i].span;
            w.take = ways[i].take;
            w.size = w.announce = i < 2 ? 300000 : 20000;
            assert_int_equal(world_request(&w, "GET", "/dir/file%20name"), LEAT_OK);
            do {
                fake_net_run(&w.net);
                if (w.c.closes == 0) {
                    leat_http_resume(w.c.x); /* paused by `take` */
                }
            } while (w.c.closes == 0 && w.net.now < 10000 * LEAT_SECOND);
            fake_net_run(&w.net);
            world_assert_whole(&w);
            assert_string_equal(w.s.method, "GET");
            assert_string_equal(w.s.path, "/dir/file%20name");
            assert_string_equal(w.s.authority, "localhost");
            if (p == 0) {
                assert_int_equal(w.c.length, w.size);
                assert_string_equal(w.c.type, "text/plain");
            }
            fake_net_close(&w.net);
            assert_int_equal(w.closes[0], 1);
            assert_int_equal(w.closes[1], 1);
        }
    }
}

static void an_empty_body_and_one_of_unknown_length_arrive(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        for (int unknown = 0; unknown < 2; unknown++) {
            for (uint64_t size = 0; size < 70000; size = size * 3 + 1) {
                world w;

                world_open(&w, world_protocols[p], 3);
                w.size = size;
                w.announce = unknown ? LEAT_HTTP_LENGTH_UNKNOWN : size;
                assert_int_equal(world_request(&w, "GET", "/"), LEAT_OK);
                fake_net_run(&w.net);
                world_assert_whole(&w);
                fake_net_close(&w.net);
            }
        }
    }
}

static void head_gives_the_length_without_the_body(void **state)
{
    world w;

    (void)state;
    world_open(&w, "h3", 3);
    assert_int_equal(world_request(&w, "HEAD", "/file"), LEAT_OK);
    fake_net_run(&w.net);
    assert_int_equal(w.c.status, 200);
    assert_int_equal(w.c.length, 300000);
    assert_int_equal(w.c.body, 0);
    assert_int_equal(w.pulled, 0);
    assert_int_equal(w.c.end.err, LEAT_OK);
    fake_net_close(&w.net);
}

/* RFC 8470 s4: what goes as 0-RTT may be repeated by anybody. */
static void only_safe_requests_go_early(void **state)
{
    world w;

    (void)state;
    world_open(&w, "h3", 3);
    w.net.early = true;
    assert_int_equal(world_request(&w, "POST", "/file"), LEAT_ERR_STATE);
    assert_int_equal(world_request(&w, "DELETE", "/file"), LEAT_ERR_STATE);
    assert_int_equal(world_request(&w, "GET", "/file"), LEAT_OK);
    w.net.early = false;
    fake_net_run(&w.net);
    world_assert_whole(&w);
    assert_int_equal(world_request(&w, "POST", "/file"), LEAT_OK);
    fake_net_close(&w.net);
}

static void hq_knows_only_get(void **state)
{
    world w;

    (void)state;
    world_open(&w, "hq-interop", 3);
    assert_int_equal(world_request(&w, "HEAD", "/file"), LEAT_ERR_UNSUPPORTED);
    assert_int_equal(world_request(&w, "GET", "/a b"), LEAT_ERR_INVALID);
    assert_int_equal(world_request(&w, "GET", "/a\r\nGET /b"), LEAT_ERR_INVALID);
    assert_int_equal(world_request(&w, "GET", ""), LEAT_ERR_INVALID);
    fake_net_run(&w.net);
    assert_int_equal(w.s.heads, 0);
    fake_net_close(&w.net);
}

static void a_paused_exchange_holds_the_sender_until_it_goes_on(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        world w;
        uint64_t before;

        world_open(&w, world_protocols[p], 3);
        w.net.window = 10000;
        w.take = 100;
        assert_int_equal(world_request(&w, "GET", "/"), LEAT_OK);
        fake_net_run(&w.net);
        assert_int_equal(w.c.body, 100);
        assert_true(w.pulled <= 10000 + 2 * 1200);
        for (int i = 0; i < 5; i++) {
            before = w.c.body;
            leat_http_resume(w.c.x);
            fake_net_run(&w.net);
            assert_int_equal(w.c.body, before + 100);
        }
        w.take = SIZE_MAX;
        leat_http_resume(w.c.x);
        fake_net_run(&w.net);
        world_assert_whole(&w);
        fake_net_close(&w.net);
    }
}

static void a_body_that_stalls_goes_on_when_resumed(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        world w;

        world_open(&w, world_protocols[p], 3);
        w.stall_at = 50000;
        assert_int_equal(world_request(&w, "GET", "/"), LEAT_OK);
        fake_net_run(&w.net);
        assert_true(w.c.body < 100000);
        assert_int_equal(w.c.completes, 0);
        leat_http_resume(w.s.x);
        fake_net_run(&w.net);
        world_assert_whole(&w);
        fake_net_close(&w.net);
    }
}

static void a_body_that_fails_or_is_too_short_is_reset_not_ended(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        for (int kind = 0; kind < 2; kind++) {
            world w;

            world_open(&w, world_protocols[p], 3);
            if (kind == 0) {
                w.fail_at = 70000;
            } else {
                w.end_at = 70000;
            }
            assert_int_equal(world_request(&w, "GET", "/"), LEAT_OK);
            fake_net_run(&w.net);
            assert_int_equal(w.c.completes, 0);
            assert_int_equal(w.c.end.err, LEAT_ERR_RESET);
            assert_int_equal(w.c.end.code, LEAT_H3_INTERNAL_ERROR);
            assert_int_equal(w.s.end.err, LEAT_ERR_IO);
            assert_non_null(w.client); /* the connection lives */
            fake_net_close(&w.net);
        }
    }
}

/* A resumed reader may look at the stream when the reset is known and its event not yet told. */
static void a_reset_is_never_taken_for_the_end(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        world w;

        world_open(&w, world_protocols[p], 3);
        w.net.window = 10000;
        w.take = 100;
        w.announce = LEAT_HTTP_LENGTH_UNKNOWN;
        assert_int_equal(world_request(&w, "GET", "/"), LEAT_OK);
        fake_net_run(&w.net);
        w.take = SIZE_MAX;
        leat_http_cancel(w.s.x, LEAT_H3_INTERNAL_ERROR);
        leat_http_resume(w.c.x);
        fake_net_run(&w.net);
        assert_int_equal(w.c.completes, 0);
        assert_int_equal(w.c.end.err, LEAT_ERR_RESET);
        fake_net_close(&w.net);
    }
}

static void cancelling_inside_the_body_event_ends_both_sides(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        world w;

        world_open(&w, world_protocols[p], 3);
        w.cancel_at = 40000;
        assert_int_equal(world_request(&w, "GET", "/"), LEAT_OK);
        fake_net_run(&w.net);
        assert_int_equal(w.c.completes, 0);
        assert_int_equal(w.c.closes, 1);
        assert_int_equal(w.c.end.err, LEAT_ERR_CLOSED);
        assert_int_equal(w.c.end.code, LEAT_H3_REQUEST_CANCELLED);
        assert_int_equal(w.s.closes, 1);
        assert_int_equal(w.s.end.err, LEAT_ERR_RESET);
        assert_true(w.c.body < 40000 + 2000);
        fake_net_close(&w.net);
    }
}

static void closing_inside_the_body_event_is_safe(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        world w;

        world_open(&w, world_protocols[p], 3);
        w.close_at = 40000;
        assert_int_equal(world_request(&w, "GET", "/"), LEAT_OK);
        fake_net_run(&w.net);
        assert_int_equal(w.closes[0], 1);
        assert_int_equal(w.closes[1], 1);
        assert_int_equal(w.closed[1].code, LEAT_H3_INTERNAL_ERROR);
        assert_int_equal(w.c.end.err, LEAT_ERR_CLOSED);
        fake_net_close(&w.net);
    }
}

static void an_error_status_reaches_the_client(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        world w;

        world_open(&w, world_protocols[p], 3);
        w.answer = 404;
        w.announce = 0;
        w.refuse_pull = true;
        assert_int_equal(world_request(&w, "GET", "/none"), LEAT_OK);
        fake_net_run(&w.net);
        if (p == 0) {
            assert_int_equal(w.c.status, 404);
            assert_int_equal(w.c.end.err, LEAT_OK);
        } else {
            assert_int_equal(w.c.heads, 0);
            assert_int_equal(w.c.end.err, LEAT_ERR_RESET);
            assert_int_equal(w.c.end.code, 404);
        }
        fake_net_close(&w.net);
    }
}

static void many_requests_wait_for_their_turn(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        world w;
        int made = 0;

        world_open(&w, world_protocols[p], 3);
        w.net.max_bidi = 40;
        w.size = w.announce = 0;
        for (int tries = 0; made < 500 && tries < 1000; tries++) {
            leat_err err = LEAT_OK;

            while (made < 500 && (err = world_request(&w, "GET", "/")) == LEAT_OK) {
                made++;
            }
            assert_true(made == 500 || err == LEAT_ERR_BLOCKED);
            fake_net_run(&w.net);
        }
        assert_int_equal(made, 500);
        assert_int_equal(w.finished, 500);
        assert_true(w.availables >= 12);
        assert_int_equal(leat_http_exchanges(w.client), 0);
        assert_int_equal(leat_http_exchanges(w.server), 0);
        fake_net_close(&w.net);
    }
}

static void a_head_beyond_the_limit_is_refused(void **state)
{
    static char path[20000];
    world w;

    (void)state;
    memset(path, 'a', sizeof path - 1);
    path[0] = '/';
    world_open(&w, "h3", 3);
    assert_int_equal(world_request(&w, "GET", path), LEAT_OK);
    fake_net_run(&w.net);
    assert_int_equal(w.s.heads, 0);
    assert_int_equal(w.c.status, 431);
    assert_int_equal(w.s.end.err, LEAT_ERR_LIMIT);
    fake_net_close(&w.net);

    world_open(&w, "h3", 3);
    w.header = 18000;
    assert_int_equal(world_request(&w, "GET", "/"), LEAT_OK);
    fake_net_run(&w.net);
    assert_int_equal(w.c.heads, 0);
    assert_int_equal(w.c.end.err, LEAT_ERR_LIMIT);
    assert_int_equal(w.s.end.err, LEAT_ERR_RESET);
    fake_net_close(&w.net);

    world_open(&w, "hq-interop", 3);
    assert_int_equal(world_request(&w, "GET", path), LEAT_OK);
    fake_net_run(&w.net);
    assert_int_equal(w.s.heads, 0);
    assert_int_equal(w.c.end.err, LEAT_ERR_RESET);
    assert_int_equal(w.c.end.code, 431);
    fake_net_close(&w.net);
}

/* Sent, it would cost the connection: a QPACK decoder gives up on so long a value. */
static void a_head_that_no_server_takes_is_not_sent(void **state)
{
    static char path[120000];
    world w;

    (void)state;
    memset(path, 'a', sizeof path - 1);
    path[0] = '/';
    world_open(&w, "h3", 3);
    assert_int_equal(world_request(&w, "GET", path), LEAT_ERR_LIMIT);
    fake_net_run(&w.net);
    assert_int_equal(w.s.heads, 0);
    assert_int_equal(world_request(&w, "GET", "/"), LEAT_OK);
    fake_net_run(&w.net);
    assert_int_equal(w.c.status, 200);
    assert_int_equal(w.c.end.err, LEAT_OK);
    fake_net_close(&w.net);
}

static void shutdown_lets_the_running_request_finish_and_takes_no_new_one(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        world w;

        world_open(&w, world_protocols[p], 3);
        assert_int_equal(world_request(&w, "GET", "/"), LEAT_OK);
        for (int i = 0; i < 10; i++) {
            fake_net_step(&w.net);
        }
        assert_int_equal(w.s.heads, 1);
        assert_int_equal(w.c.completes, 0);
        leat_http_shutdown(w.server);
        for (int i = 0; i < 5; i++) {
            fake_net_step(&w.net);
        }
        if (p == 0) {
            assert_int_equal(w.goaways, 1);
            assert_int_equal(world_request(&w, "GET", "/late"), LEAT_ERR_CLOSED);
        }
        fake_net_run(&w.net);
        world_assert_whole(&w);
        assert_int_equal(w.closes[0], 1);
        assert_int_equal(w.closed[0].code, p == 0 ? LEAT_H3_NO_ERROR : 0);
        fake_net_close(&w.net);
    }
}

static void an_idle_session_shuts_down_at_once(void **state)
{
    world w;

    (void)state;
    world_open(&w, "h3", 3);
    fake_net_run(&w.net);
    leat_http_shutdown(w.client);
    fake_net_run(&w.net);
    assert_int_equal(w.closed[1].code, LEAT_H3_NO_ERROR);
    fake_net_close(&w.net);
}

static void a_long_body_needs_no_new_memory(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        leat_mem_stats before, after;
        world w;

        world_open(&w, world_protocols[p], 3);
        w.size = w.announce = 5000000;
        assert_int_equal(world_request(&w, "GET", "/"), LEAT_OK);
        while (w.c.body < 1000000) {
            fake_net_step(&w.net);
        }
        leat_mem_stats_get(leat_ctx_mem(w.net.ctx), &before);
        while (w.c.body < 4000000) {
            fake_net_step(&w.net);
        }
        leat_mem_stats_get(leat_ctx_mem(w.net.ctx), &after);
        assert_int_equal(after.grown, before.grown);
        assert_int_equal(after.obj_live, before.obj_live);
        fake_net_run(&w.net);
        world_assert_whole(&w);
        fake_net_close(&w.net);
    }
}

/* One exchange while the nth take of memory fails; false when there is no nth. */
static bool run_short_of_memory(const char *alpn, uint64_t nth, bool lasting)
{
    world w;
    bool hit;

    world_open(&w, alpn, 0);
    w.size = w.announce = 60000;
    leat_mem_fault_set(leat_ctx_mem(w.net.ctx), LEAT_MEM_FAULT_TAKE, nth, lasting);
    if (leat_http_attach(w.net.client, NULL, &world_client_events, &w, &w.client) != LEAT_OK) {
        leat_conn_set_events(w.net.client, &world_no_events, NULL);
    }
    if (leat_http_attach(w.net.server, NULL, &world_server_events, &w, &w.server) != LEAT_OK) {
        leat_conn_set_events(w.net.server, &world_no_events, NULL);
    }
    w.may_fail = true;
    if (w.client) {
        w.take = 50000; /* what is not taken is copied out, which takes memory too */
        if (world_request(&w, "GET", "/file") == LEAT_OK) {
            fake_net_run(&w.net);
            w.take = SIZE_MAX;
            if (w.c.closes == 0) {
                leat_http_resume(w.c.x);
            }
        }
    }
    fake_net_run(&w.net);
    hit = leat_mem_fault_count(leat_ctx_mem(w.net.ctx)) > 0;
    leat_mem_fault_set(leat_ctx_mem(w.net.ctx), LEAT_MEM_FAULT_NONE, 0, false);
    assert_false(w.c.bad);
    assert_true(w.c.completes == 0 || w.c.body == w.size);
    assert_true(hit || w.c.completes == 1);
    leat_mem_check(leat_ctx_mem(w.net.ctx));
    fake_net_close(&w.net); /* asserts that everything was given back */
    return hit;
}

static void running_out_of_memory_anywhere_breaks_no_more_than_it_must(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        for (int lasting = 0; lasting < 2; lasting++) {
            uint64_t n = 1;

            while (run_short_of_memory(world_protocols[p], n, lasting)) {
                n++;
            }
            assert_true(n > 3);
        }
    }
}

static void another_alpn_is_not_taken(void **state)
{
    fake_net net = {.segment = 1, .window = 1, .span = 1, .max_bidi = 1};
    leat_http *http;

    (void)state;
    fake_net_open(&net, "h3-29");
    assert_int_equal(leat_http_attach(net.client, NULL, &world_client_events, NULL, &http),
                     LEAT_ERR_UNSUPPORTED);
    assert_null(http);
    leat_conn_set_events(net.client, &world_no_events, NULL);
    leat_conn_set_events(net.server, &world_no_events, NULL);
    fake_net_close(&net);
}

static void settings_out_of_bounds_are_refused(void **state)
{
    static const struct {
        size_t bytes, fields, requests, table;
    } bad[] = {
        {LEAT_HTTP_HEADER_BYTES_MIN - 1, 128, 128, 0},
        {LEAT_HTTP_HEADER_BYTES_MAX + 1, 128, 128, 0},
        {16384, LEAT_HTTP_HEADER_FIELDS_MIN - 1, 128, 0},
        {16384, LEAT_HTTP_HEADER_FIELDS_MAX + 1, 128, 0},
        {16384, 128, LEAT_HTTP_REQUESTS_MIN - 1, 0},
        {16384, 128, LEAT_HTTP_REQUESTS_MAX + 1, 0},
        {16384, 128, 128, LEAT_QPACK_TABLE_MAX + 1},
    };
    leat_http_settings settings;
    leat_http *http;
    world w;

    (void)state;
    world_open(&w, "h3", 3);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        settings = (leat_http_settings){bad[i].bytes, bad[i].fields, bad[i].requests, bad[i].table};
        assert_int_equal(leat_http_attach(w.net.client, &settings, &world_client_events, &w, &http),
                         LEAT_ERR_INVALID);
        assert_null(http);
    }
    fake_net_close(&w.net);
}

static void codes_have_names(void **state)
{
    (void)state;
    assert_string_equal(leat_h3_error_name(0x10b), "H3_REQUEST_REJECTED");
    assert_string_equal(leat_h3_error_name(0x200), "QPACK_DECOMPRESSION_FAILED");
    assert_string_equal(leat_h3_error_name(404), "H3_?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_body_arrives_whole_however_it_is_cut),
        cmocka_unit_test(an_empty_body_and_one_of_unknown_length_arrive),
        cmocka_unit_test(head_gives_the_length_without_the_body),
        cmocka_unit_test(only_safe_requests_go_early),
        cmocka_unit_test(hq_knows_only_get),
        cmocka_unit_test(a_paused_exchange_holds_the_sender_until_it_goes_on),
        cmocka_unit_test(a_body_that_stalls_goes_on_when_resumed),
        cmocka_unit_test(a_body_that_fails_or_is_too_short_is_reset_not_ended),
        cmocka_unit_test(a_reset_is_never_taken_for_the_end),
        cmocka_unit_test(cancelling_inside_the_body_event_ends_both_sides),
        cmocka_unit_test(closing_inside_the_body_event_is_safe),
        cmocka_unit_test(an_error_status_reaches_the_client),
        cmocka_unit_test(many_requests_wait_for_their_turn),
        cmocka_unit_test(a_head_beyond_the_limit_is_refused),
        cmocka_unit_test(a_head_that_no_server_takes_is_not_sent),
        cmocka_unit_test(shutdown_lets_the_running_request_finish_and_takes_no_new_one),
        cmocka_unit_test(an_idle_session_shuts_down_at_once),
        cmocka_unit_test(a_long_body_needs_no_new_memory),
        cmocka_unit_test(running_out_of_memory_anywhere_breaks_no_more_than_it_must),
        cmocka_unit_test(another_alpn_is_not_taken),
        cmocka_unit_test(settings_out_of_bounds_are_refused),
        cmocka_unit_test(codes_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
