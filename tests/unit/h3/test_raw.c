/* HTTP against a peer that speaks raw bytes: what it may say, and what each fault costs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "world.h"

static void raw(leat_stream *s, const void *data, size_t len, bool fin)
{
    size_t n = 0;

    assert_int_equal(leat_stream_write(s, data, len, &n), LEAT_OK);
    assert_int_equal(n, len);
    if (fin) {
        assert_int_equal(leat_stream_finish(s), LEAT_OK);
    }
}

static leat_stream *raw_open(leat_conn *conn, bool bidi)
{
    leat_stream *s;

    assert_int_equal(leat_stream_open(conn, bidi, &s), LEAT_OK);
    return s;
}

/* GET https://a/ as QPACK: static table indices, and literals for the authority. */
static const uint8_t get_a[] = {0x01, 0x08, 0, 0, 0xd1, 0xd7, 0xc1, 0x50, 0x01, 'a'};
static const uint8_t settings[] = {0x00, 0x04, 0x00};

/* A server's session facing a raw client. */
static void open_raw_client(world *w)
{
    world_open(w, "h3", 2);
    leat_conn_set_events(w->net.client, &world_no_events, NULL);
}

static void a_raw_request_is_answered(void **state)
{
    world w;
    leat_stream *s;

    (void)state;
    open_raw_client(&w);
    raw(raw_open(w.net.client, false), settings, sizeof settings, false);
    s = raw_open(w.net.client, true);
    raw(s, get_a, sizeof get_a, true);
    fake_net_run(&w.net);
    assert_int_equal(w.s.heads, 1);
    assert_string_equal(w.s.authority, "a");
    assert_string_equal(w.s.path, "/");
    assert_int_equal(w.s.completes, 1);
    fake_net_close(&w.net);
}

static void a_small_answer_is_a_head_and_one_data_frame(void **state)
{
    world w;
    leat_stream *s;
    leat_span data;
    size_t head;

    (void)state;
    open_raw_client(&w);
    w.net.segment = 4096;
    w.size = w.announce = 1024;
    raw(raw_open(w.net.client, false), settings, sizeof settings, false);
    s = raw_open(w.net.client, true);
    raw(s, get_a, sizeof get_a, true);
    fake_net_run(&w.net);
    data = leat_stream_peek(s);
    assert_true(data.len > 2);
    assert_int_equal(data.data[0], 1);
    assert_true(data.data[1] < 64);
    head = 2u + data.data[1];
    assert_int_equal(data.len, head + 3 + 1024);
    assert_memory_equal(data.data + head, "\0\x44\0", 3); /* DATA, of 1024 bytes */
    leat_stream_consume(s, data.len);
    fake_net_run(&w.net);
    assert_true(leat_stream_recv_whole(s));
    fake_net_close(&w.net);
}

static void assert_closed_with(world *w, uint64_t code)
{
    fake_net_run(&w->net);
    assert_int_equal(w->closes[1], 1);
    assert_int_equal(w->closed[1].kind, LEAT_CLOSE_LOCAL);
    assert_int_equal(w->closed[1].code, code);
    fake_net_close(&w->net);
}

static void what_breaks_the_connection_closes_it_with_its_code(void **state)
{
    static const struct {
        uint8_t bytes[8];
        size_t len;
        bool bidi, fin;
        uint64_t code;
    } cases[] = {
        {{0x00, 0x04, 0x00}, 3, false, true, LEAT_H3_CLOSED_CRITICAL_STREAM},
        {{0x02, 0x00}, 1, false, true, LEAT_H3_CLOSED_CRITICAL_STREAM},
        {{0x00, 0x07, 0x01, 0x00}, 4, false, false, LEAT_H3_MISSING_SETTINGS},
        {{0x00, 0x04, 0x00, 0x00, 0x00}, 5, false, false, LEAT_H3_FRAME_UNEXPECTED},
        {{0x01, 0x00}, 2, false, false, LEAT_H3_STREAM_CREATION_ERROR}, /* push by a client */
        {{0x00, 0x04, 0x02, 0x02, 0x00}, 5, false, false, LEAT_H3_SETTINGS_ERROR},
        {{0x00, 0x01, 0x00}, 3, true, false, LEAT_H3_FRAME_UNEXPECTED}, /* DATA before HEADERS */
        {{0x01, 0x02, 0xff, 0xff}, 4, true, false, LEAT_H3_QPACK_DECOMPRESSION_FAILED},
        {{0x01, 0x10, 0, 0, 0xd1}, 5, true, true, 0 /* see below */},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        world w;
        leat_stream *s;

        open_raw_client(&w);
        s = raw_open(w.net.client, cases[i].bidi);
        raw(s, cases[i].bytes, cases[i].len, cases[i].fin);
        if (cases[i].code == 0) {
            /* No whole head before the end: the stream's own fault. */
            fake_net_run(&w.net);
            assert_non_null(w.server);
            assert_int_equal(w.s.end.err, LEAT_ERR_MALFORMED);
            assert_int_equal(w.s.end.code, LEAT_H3_REQUEST_INCOMPLETE);
            fake_net_close(&w.net);
            continue;
        }
        assert_closed_with(&w, cases[i].code);
    }
}

static void a_reset_control_stream_closes_the_connection(void **state)
{
    world w;
    leat_stream *s;

    (void)state;
    open_raw_client(&w);
    s = raw_open(w.net.client, false);
    raw(s, settings, sizeof settings, false);
    fake_net_run(&w.net);
    leat_stream_reset(s, 7);
    assert_closed_with(&w, LEAT_H3_CLOSED_CRITICAL_STREAM);
}

static leat_stream *stopped_stream;
static uint64_t stopped_code, reset_code;

static void raw_stopped(leat_conn *conn, leat_stream *s, uint64_t code, void *user)
{
    (void)conn;
    (void)user;
    stopped_stream = s;
    stopped_code = code;
}

static void raw_reset(leat_conn *conn, leat_stream *s, uint64_t code, void *user)
{
    (void)conn;
    (void)s;
    (void)user;
    reset_code = code;
}

static const leat_conn_events watching = {.stream_stopped = raw_stopped, .stream_reset = raw_reset};

static void a_stream_of_unknown_type_is_stopped_and_the_connection_lives(void **state)
{
    static const uint8_t unknown[] = {0x21, 'x', 'y', 'z'};
    world w;
    leat_stream *s;

    (void)state;
    open_raw_client(&w);
    leat_conn_set_events(w.net.client, &watching, NULL);
    stopped_stream = NULL;
    s = raw_open(w.net.client, false);
    raw(s, unknown, sizeof unknown, false);
    fake_net_run(&w.net);
    assert_ptr_equal(stopped_stream, s);
    assert_int_equal(stopped_code, LEAT_H3_STREAM_CREATION_ERROR);
    assert_non_null(w.server);
    fake_net_close(&w.net);
}

static void a_malformed_request_costs_its_stream_alone(void **state)
{
    /* No :path; a field name in upper case. */
    static const uint8_t no_path[] = {0x01, 0x07, 0, 0, 0xd1, 0xd7, 0x50, 0x01, 'a'};
    static const uint8_t upper[] = {0x01, 0x0c, 0,   0,    0xd1, 0xd7, 0xc1,
                                    0x50, 0x01, 'a', 0x21, 'X',  0x00};
    const struct {
        const uint8_t *bytes;
        size_t len;
    } cases[] = {{no_path, sizeof no_path}, {upper, sizeof upper}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        world w;

        open_raw_client(&w);
        leat_conn_set_events(w.net.client, &watching, NULL);
        reset_code = 0;
        raw(raw_open(w.net.client, true), cases[i].bytes, cases[i].len, true);
        fake_net_run(&w.net);
        assert_int_equal(w.s.heads, 0);
        assert_int_equal(reset_code, LEAT_H3_MESSAGE_ERROR);
        assert_int_equal(w.s.end.err, LEAT_ERR_MALFORMED);
        assert_non_null(w.server);
        raw(raw_open(w.net.client, true), get_a, sizeof get_a, true);
        fake_net_run(&w.net);
        assert_int_equal(w.s.heads, 1);
        fake_net_close(&w.net);
    }
}

/* The answer of a raw server to the client's request. */
static const uint8_t *answer_bytes;
static size_t answer_len;
static bool answer_fin;

static void raw_answer(leat_conn *conn, leat_stream *s, void *user)
{
    (void)conn;
    (void)user;
    if (leat_stream_is_bidi(s)) {
        raw(s, answer_bytes, answer_len, answer_fin);
    }
}

static const leat_conn_events answering = {.stream_opened = raw_answer};

static void a_body_that_disagrees_with_its_length_is_not_whole(void **state)
{
    /* :status 200, content-length: 10, then 5 or 12 bytes. */
    static const uint8_t shorter[] = {0x01, 0x07, 0, 0,   0xd9, 0x54, 0x02, '1',
                                      '0',  0x00, 5, 'a', 'b',  'c',  'd',  'e'};
    static const uint8_t longer[] = {0x01, 0x07, 0,   0,   0xd9, 0x54, 0x02, '1',
                                     '0',  0x00, 12,  'a', 'b',  'c',  'd',  'e',
                                     'f',  'g',  'h', 'i', 'j',  'k',  'l'};
    static const struct {
        const uint8_t *bytes;
        size_t len;
        bool fin;
    } cases[] = {{shorter, sizeof shorter, true}, {longer, sizeof longer, false}};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        world w;

        world_open(&w, "h3", 1);
        leat_conn_set_events(w.net.server, &answering, NULL);
        answer_bytes = cases[i].bytes;
        answer_len = cases[i].len;
        answer_fin = cases[i].fin;
        assert_int_equal(world_request(&w, "GET", "/"), LEAT_OK);
        fake_net_run(&w.net);
        assert_int_equal(w.c.status, 200);
        assert_int_equal(w.c.length, 10);
        assert_int_equal(w.c.completes, 0);
        assert_int_equal(w.c.end.err, LEAT_ERR_MALFORMED);
        assert_int_equal(w.c.end.code, LEAT_H3_MESSAGE_ERROR);
        assert_non_null(w.client);
        fake_net_close(&w.net);
    }
}

static void an_interim_response_is_passed_over(void **state)
{
    /* :status 103 with a literal, then 200 without a body. */
    static const uint8_t bytes[] = {0x01, 0x03, 0, 0, 0xd8, 0x01, 0x03, 0, 0, 0xd9};
    world w;

    (void)state;
    world_open(&w, "h3", 1);
    leat_conn_set_events(w.net.server, &answering, NULL);
    answer_bytes = bytes;
    answer_len = sizeof bytes;
    answer_fin = true;
    assert_int_equal(world_request(&w, "GET", "/"), LEAT_OK);
    fake_net_run(&w.net);
    assert_int_equal(w.c.heads, 1);
    assert_int_equal(w.c.status, 200);
    assert_int_equal(w.c.completes, 1);
    fake_net_close(&w.net);
}

static void a_server_may_not_open_request_streams(void **state)
{
    world w;

    (void)state;
    world_open(&w, "h3", 1);
    leat_conn_set_events(w.net.server, &world_no_events, NULL);
    raw(raw_open(w.net.server, true), "x", 1, false);
    fake_net_run(&w.net);
    assert_int_equal(w.closed[0].kind, LEAT_CLOSE_LOCAL);
    assert_int_equal(w.closed[0].code, LEAT_H3_STREAM_CREATION_ERROR);
    fake_net_close(&w.net);
}

static void goaway_rejects_the_requests_it_leaves_out(void **state)
{
    /* SETTINGS, then GOAWAY 0: not even the first request was looked at. */
    static const uint8_t bytes[] = {0x00, 0x04, 0x00, 0x07, 0x01, 0x00};
    world w;

    (void)state;
    world_open(&w, "h3", 1);
    leat_conn_set_events(w.net.server, &world_no_events, NULL);
    assert_int_equal(world_request(&w, "GET", "/"), LEAT_OK);
    fake_net_run(&w.net);
    raw(raw_open(w.net.server, false), bytes, sizeof bytes, false);
    fake_net_run(&w.net);
    assert_int_equal(w.goaways, 1);
    assert_int_equal(w.rejected, 1);
    assert_int_equal(w.c.end.err, LEAT_ERR_CLOSED);
    assert_int_equal(world_request(&w, "GET", "/"), LEAT_ERR_CLOSED);
    fake_net_close(&w.net);
}

static void hq_refuses_what_is_not_a_request_line(void **state)
{
    static const char *const lines[] = {"POST /x\r\n", "GET x\r\n", "GET\r\n",
                                        "\r\n",        "\r\r\n",    ""};

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        world w;

        world_open(&w, "hq-interop", 2);
        leat_conn_set_events(w.net.client, &watching, NULL);
        reset_code = 0;
        raw(raw_open(w.net.client, true), lines[i], strlen(lines[i]), true);
        fake_net_run(&w.net);
        assert_int_equal(w.s.heads, 0);
        assert_int_equal(reset_code, 400);
        assert_non_null(w.server);
        fake_net_close(&w.net);
    }
}

static void hq_takes_a_request_without_its_line_end(void **state)
{
    static const char *const lines[] = {"GET /x\r\n", "GET /x\n", "GET /x", "GET /x\r\nmore"};

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        world w;

        world_open(&w, "hq-interop", 2);
        w.net.segment = 3;
        leat_conn_set_events(w.net.client, &world_no_events, NULL);
        raw(raw_open(w.net.client, true), lines[i], strlen(lines[i]), true);
        fake_net_run(&w.net);
        assert_int_equal(w.s.heads, 1);
        assert_string_equal(w.s.path, "/x");
        assert_int_equal(w.s.completes, 1);
        fake_net_close(&w.net);
    }
}

static void closing_inside_the_request_event_is_safe(void **state)
{
    static const char line[] = "GET /x\r\nmore";

    (void)state;
    for (int i = 0; i < 2; i++) {
        world w;

        world_open(&w, world_protocols[i], 2);
        leat_conn_set_events(w.net.client, &world_no_events, NULL);
        w.close_in_request = true;
        if (i == 0) {
            raw(raw_open(w.net.client, true), get_a, sizeof get_a, true);
        } else {
            raw(raw_open(w.net.client, true), line, sizeof line - 1, true);
        }
        fake_net_run(&w.net);
        assert_int_equal(w.s.heads, 1);
        assert_int_equal(w.s.completes, 0);
        assert_int_equal(w.s.closes, 1);
        assert_int_equal(w.closes[1], 1);
        fake_net_close(&w.net);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_raw_request_is_answered),
        cmocka_unit_test(a_small_answer_is_a_head_and_one_data_frame),
        cmocka_unit_test(what_breaks_the_connection_closes_it_with_its_code),
        cmocka_unit_test(a_reset_control_stream_closes_the_connection),
        cmocka_unit_test(a_stream_of_unknown_type_is_stopped_and_the_connection_lives),
        cmocka_unit_test(a_malformed_request_costs_its_stream_alone),
        cmocka_unit_test(a_body_that_disagrees_with_its_length_is_not_whole),
        cmocka_unit_test(an_interim_response_is_passed_over),
        cmocka_unit_test(a_server_may_not_open_request_streams),
        cmocka_unit_test(goaway_rejects_the_requests_it_leaves_out),
        cmocka_unit_test(hq_refuses_what_is_not_a_request_line),
        cmocka_unit_test(hq_takes_a_request_without_its_line_end),
        cmocka_unit_test(closing_inside_the_request_event_is_safe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
