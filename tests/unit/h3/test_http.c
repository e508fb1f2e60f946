/* HTTP over a QUIC that is not there: both protocols through the one interface.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <leat/h3.h>
#include <string.h>

#include "fake_quic.h"
#include "mem/mem.h"

enum { BODY_MOST = 400000 };

/* One end's view of one exchange. */
typedef struct side {
    leat_http_exchange *x;
    unsigned status;
    char method[16], path[256], authority[64], type[32];
    uint64_t length, body;
    int heads, completes, closes;
    bool bad; /* a body byte was not what was sent */
    leat_http_end end;
} side;

typedef struct world {
    fake_net net;
    leat_http *client, *server;
    side c, s; /* of the last exchange */
    unsigned answer;
    uint64_t size; /* of the body to answer with */
    uint64_t announce;
    uint64_t fail_at;  /* pull gives an error there */
    uint64_t end_at;   /* pull says end there */
    uint64_t stall_at; /* pull has nothing there, once */
    uint64_t pulled;
    uint64_t cancel_at; /* the client cancels inside the body event */
    uint64_t close_at;  /* the client closes the connection inside the body event */
    size_t take;        /* the client takes so many bytes a time */
    bool stalled, refuse_pull, may_fail;
    size_t header; /* bytes of an extra field in the answer */
    int goaways, availables;
    int closes[2];
    leat_close_info closed[2];
    int finished, rejected;
} world;

static uint8_t pattern(uint64_t at)
{
    return (uint8_t)(at * 131 + (at >> 8) * 7);
}

static leat_err pull(leat_http_exchange *x, leat_mspan room, size_t *got, bool *end, void *user)
{
    world *w = leat_http_user(leat_http_exchange_session(x));
    uint64_t *at = user ? user : &w->pulled;
    uint64_t to = w->size < w->end_at ? w->size : w->end_at;
    size_t n = room.len < to - *at ? room.len : (size_t)(to - *at);

    if (*at >= w->fail_at) {
        return LEAT_ERR_IO;
    }
    if (*at >= w->stall_at && !w->stalled) {
        w->stalled = true;
        return LEAT_OK;
    }
    for (size_t i = 0; i < n; i++) {
        room.data[i] = pattern(*at + i);
    }
    *at += n;
    *got = n;
    *end = *at == to;
    return LEAT_OK;
}

static void copy_text(char *to, size_t cap, leat_span s)
{
    size_t n = s.len < cap - 1 ? s.len : cap - 1;

    if (n) {
        memcpy(to, s.data, n);
    }
    to[n] = 0;
}

static void on_request(leat_http_exchange *x, const leat_http_head *head, void *user)
{
    static char big[20000];
    world *w = user;
    leat_http_field fields[2] = {
        {{(const uint8_t *)"content-type", 12}, {(const uint8_t *)"text/plain", 10}},
        {{(const uint8_t *)"x-big", 5}, {(const uint8_t *)big, w->header}}};
    leat_http_response_head answer = {.status = w->answer,
                                      .fields = fields,
                                      .field_count = w->header ? 2 : 1,
                                      .body = {w->refuse_pull ? NULL : pull, w->announce}};

    memset(big, 'x', sizeof big);
    w->s.x = x;
    w->s.heads++;
    copy_text(w->s.method, sizeof w->s.method, head->method);
    copy_text(w->s.path, sizeof w->s.path, head->path);
    copy_text(w->s.authority, sizeof w->s.authority, head->authority);
    if (w->may_fail) {
        if (leat_http_respond(x, &answer) != LEAT_OK) {
            leat_http_cancel(x, LEAT_H3_INTERNAL_ERROR);
        }
        return;
    }
    assert_int_equal(leat_http_respond(x, &answer), LEAT_OK);
    assert_int_equal(leat_http_respond(x, &answer), LEAT_ERR_STATE);
}

static void on_response(leat_http_exchange *x, const leat_http_head *head, void *user)
{
    world *w = user;

    (void)x;
    w->c.heads++;
    w->c.status = head->status;
    w->c.length = head->content_length;
    copy_text(w->c.type, sizeof w->c.type, leat_http_head_find(head, "content-type"));
}

static size_t on_body(leat_http_exchange *x, leat_span data, void *user)
{
    world *w = user;
    size_t n = data.len < w->take ? data.len : w->take;

    for (size_t i = 0; i < n; i++) {
        w->c.bad |= data.data[i] != pattern(w->c.body + i);
    }
    w->c.body += n;
    if (w->c.body > w->cancel_at) {
        w->cancel_at = UINT64_MAX;
        leat_http_cancel(x, LEAT_H3_REQUEST_CANCELLED);
    }
    if (w->c.body > w->close_at) {
        w->close_at = UINT64_MAX;
        leat_http_close(leat_http_exchange_session(x), LEAT_H3_INTERNAL_ERROR);
    }
    return n;
}

static void on_complete(leat_http_exchange *x, void *user)
{
    world *w = user;

    (void)x;
    w->c.completes++;
}

static void on_exchange_closed(leat_http_exchange *x, const leat_http_end *end, void *user)
{
    world *w = user;

    (void)x;
    w->c.closes++;
    w->c.end = *end;
    w->finished += end->err == LEAT_OK;
    w->rejected += end->rejected;
}

static void on_server_complete(leat_http_exchange *x, void *user)
{
    world *w = user;

    (void)x;
    w->s.completes++;
}

static void on_server_closed_exchange(leat_http_exchange *x, const leat_http_end *end, void *user)
{
    world *w = user;

    (void)x;
    w->s.closes++;
    w->s.end = *end;
}

static void on_available(leat_http *http, void *user)
{
    (void)http;
    ((world *)user)->availables++;
}

static void on_goaway(leat_http *http, void *user)
{
    (void)http;
    ((world *)user)->goaways++;
}

static void on_closed(leat_http *http, const leat_close_info *info, void *user)
{
    world *w = user;
    int server = http == w->server;

    w->closes[server]++;
    w->closed[server] = *info;
    if (server) {
        w->server = NULL;
    } else {
        w->client = NULL;
    }
}

static const leat_http_events client_events = {.response = on_response,
                                               .body = on_body,
                                               .complete = on_complete,
                                               .exchange_closed = on_exchange_closed,
                                               .available = on_available,
                                               .goaway = on_goaway,
                                               .closed = on_closed};
static const leat_http_events server_events = {.request = on_request,
                                               .complete = on_server_complete,
                                               .exchange_closed = on_server_closed_exchange,
                                               .closed = on_closed};

/* Opens the net; `ends`: 1 the client's session, 2 the server's, 3 both. */
static void open_world(world *w, const char *alpn, int ends)
{
    *w = (world){.net = {.segment = 1200, .window = 100000, .span = 16384, .max_bidi = 100},
                 .answer = 200,
                 .size = 300000,
                 .announce = 300000,
                 .fail_at = UINT64_MAX,
                 .end_at = UINT64_MAX,
                 .stall_at = UINT64_MAX,
                 .cancel_at = UINT64_MAX,
                 .close_at = UINT64_MAX,
                 .take = SIZE_MAX};
    fake_net_open(&w->net, alpn);
    if (ends & 1) {
        assert_int_equal(leat_http_attach(w->net.client, NULL, &client_events, w, &w->client),
                         LEAT_OK);
    }
    if (ends & 2) {
        assert_int_equal(leat_http_attach(w->net.server, NULL, &server_events, w, &w->server),
                         LEAT_OK);
    }
}

static leat_span text(const char *s)
{
    return (leat_span){(const uint8_t *)s, strlen(s)};
}

static leat_err request(world *w, const char *method, const char *path)
{
    leat_http_request_head head = {
        .method = text(method), .authority = text("localhost"), .path = text(path)};

    return leat_http_request(w->client, &head, NULL, &w->c.x);
}

static void assert_whole(const world *w)
{
    assert_int_equal(w->c.heads, 1);
    assert_int_equal(w->c.status, 200);
    assert_int_equal(w->c.body, w->size);
    assert_false(w->c.bad);
    assert_int_equal(w->c.completes, 1);
    assert_int_equal(w->c.closes, 1);
    assert_int_equal(w->c.end.err, LEAT_OK);
    assert_int_equal(w->s.heads, 1);
    assert_int_equal(w->s.closes, 1);
    assert_int_equal(w->s.end.err, LEAT_OK);
}

static const char *const protocols[] = {"h3", "hq-interop"};

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

            open_world(&w, protocols[p], 3);
            w.net.segment = ways[i].segment;
            w.net.window = ways[i].window;
            w.net.span = ways[i].span;
            w.take = ways[i].take;
            w.size = w.announce = i < 2 ? 300000 : 20000;
            assert_int_equal(request(&w, "GET", "/dir/file%20name"), LEAT_OK);
            do {
                fake_net_run(&w.net);
                if (w.c.closes == 0) {
                    leat_http_resume(w.c.x); /* paused by `take` */
                }
            } while (w.c.closes == 0 && w.net.now < 10000 * LEAT_SECOND);
            fake_net_run(&w.net);
            assert_whole(&w);
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

                open_world(&w, protocols[p], 3);
                w.size = size;
                w.announce = unknown ? LEAT_HTTP_LENGTH_UNKNOWN : size;
                assert_int_equal(request(&w, "GET", "/"), LEAT_OK);
                fake_net_run(&w.net);
                assert_whole(&w);
                fake_net_close(&w.net);
            }
        }
    }
}

static void head_gives_the_length_without_the_body(void **state)
{
    world w;

    (void)state;
    open_world(&w, "h3", 3);
    assert_int_equal(request(&w, "HEAD", "/file"), LEAT_OK);
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
    open_world(&w, "h3", 3);
    w.net.early = true;
    assert_int_equal(request(&w, "POST", "/file"), LEAT_ERR_STATE);
    assert_int_equal(request(&w, "DELETE", "/file"), LEAT_ERR_STATE);
    assert_int_equal(request(&w, "GET", "/file"), LEAT_OK);
    w.net.early = false;
    fake_net_run(&w.net);
    assert_whole(&w);
    assert_int_equal(request(&w, "POST", "/file"), LEAT_OK);
    fake_net_close(&w.net);
}

static void hq_knows_only_get(void **state)
{
    world w;

    (void)state;
    open_world(&w, "hq-interop", 3);
    assert_int_equal(request(&w, "HEAD", "/file"), LEAT_ERR_UNSUPPORTED);
    assert_int_equal(request(&w, "GET", "/a b"), LEAT_ERR_INVALID);
    assert_int_equal(request(&w, "GET", "/a\r\nGET /b"), LEAT_ERR_INVALID);
    assert_int_equal(request(&w, "GET", ""), LEAT_ERR_INVALID);
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

        open_world(&w, protocols[p], 3);
        w.net.window = 10000;
        w.take = 100;
        assert_int_equal(request(&w, "GET", "/"), LEAT_OK);
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
        assert_whole(&w);
        fake_net_close(&w.net);
    }
}

static void a_body_that_stalls_goes_on_when_resumed(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        world w;

        open_world(&w, protocols[p], 3);
        w.stall_at = 50000;
        assert_int_equal(request(&w, "GET", "/"), LEAT_OK);
        fake_net_run(&w.net);
        assert_true(w.c.body < 100000);
        assert_int_equal(w.c.completes, 0);
        leat_http_resume(w.s.x);
        fake_net_run(&w.net);
        assert_whole(&w);
        fake_net_close(&w.net);
    }
}

static void a_body_that_fails_or_is_too_short_is_reset_not_ended(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        for (int kind = 0; kind < 2; kind++) {
            world w;

            open_world(&w, protocols[p], 3);
            if (kind == 0) {
                w.fail_at = 70000;
            } else {
                w.end_at = 70000;
            }
            assert_int_equal(request(&w, "GET", "/"), LEAT_OK);
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

        open_world(&w, protocols[p], 3);
        w.net.window = 10000;
        w.take = 100;
        w.announce = LEAT_HTTP_LENGTH_UNKNOWN;
        assert_int_equal(request(&w, "GET", "/"), LEAT_OK);
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

        open_world(&w, protocols[p], 3);
        w.cancel_at = 40000;
        assert_int_equal(request(&w, "GET", "/"), LEAT_OK);
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

        open_world(&w, protocols[p], 3);
        w.close_at = 40000;
        assert_int_equal(request(&w, "GET", "/"), LEAT_OK);
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

        open_world(&w, protocols[p], 3);
        w.answer = 404;
        w.announce = 0;
        w.refuse_pull = true;
        assert_int_equal(request(&w, "GET", "/none"), LEAT_OK);
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

        open_world(&w, protocols[p], 3);
        w.net.max_bidi = 40;
        w.size = w.announce = 0;
        for (int tries = 0; made < 500 && tries < 1000; tries++) {
            leat_err err = LEAT_OK;

            while (made < 500 && (err = request(&w, "GET", "/")) == LEAT_OK) {
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
    open_world(&w, "h3", 3);
    assert_int_equal(request(&w, "GET", path), LEAT_OK);
    fake_net_run(&w.net);
    assert_int_equal(w.s.heads, 0);
    assert_int_equal(w.c.status, 431);
    assert_int_equal(w.s.end.err, LEAT_ERR_LIMIT);
    fake_net_close(&w.net);

    open_world(&w, "h3", 3);
    w.header = 18000;
    assert_int_equal(request(&w, "GET", "/"), LEAT_OK);
    fake_net_run(&w.net);
    assert_int_equal(w.c.heads, 0);
    assert_int_equal(w.c.end.err, LEAT_ERR_LIMIT);
    assert_int_equal(w.s.end.err, LEAT_ERR_RESET);
    fake_net_close(&w.net);

    open_world(&w, "hq-interop", 3);
    assert_int_equal(request(&w, "GET", path), LEAT_OK);
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
    open_world(&w, "h3", 3);
    assert_int_equal(request(&w, "GET", path), LEAT_ERR_LIMIT);
    fake_net_run(&w.net);
    assert_int_equal(w.s.heads, 0);
    assert_int_equal(request(&w, "GET", "/"), LEAT_OK);
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

        open_world(&w, protocols[p], 3);
        assert_int_equal(request(&w, "GET", "/"), LEAT_OK);
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
            assert_int_equal(request(&w, "GET", "/late"), LEAT_ERR_CLOSED);
        }
        fake_net_run(&w.net);
        assert_whole(&w);
        assert_int_equal(w.closes[0], 1);
        assert_int_equal(w.closed[0].code, p == 0 ? LEAT_H3_NO_ERROR : 0);
        fake_net_close(&w.net);
    }
}

static void an_idle_session_shuts_down_at_once(void **state)
{
    world w;

    (void)state;
    open_world(&w, "h3", 3);
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

        open_world(&w, protocols[p], 3);
        w.size = w.announce = 5000000;
        assert_int_equal(request(&w, "GET", "/"), LEAT_OK);
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
        assert_whole(&w);
        fake_net_close(&w.net);
    }
}

/* ---- a peer that speaks raw bytes ---- */

static void raw(leat_stream *s, const void *data, size_t len, bool fin)
{
    size_t n = 0;

    assert_int_equal(leat_stream_write(s, data, len, &n), LEAT_OK);
    assert_int_equal(n, len);
    if (fin) {
        assert_int_equal(leat_stream_finish(s), LEAT_OK);
    }
}

static const leat_conn_events no_events;

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
    open_world(w, "h3", 2);
    leat_conn_set_events(w->net.client, &no_events, NULL);
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

        open_world(&w, "h3", 1);
        leat_conn_set_events(w.net.server, &answering, NULL);
        answer_bytes = cases[i].bytes;
        answer_len = cases[i].len;
        answer_fin = cases[i].fin;
        assert_int_equal(request(&w, "GET", "/"), LEAT_OK);
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
    open_world(&w, "h3", 1);
    leat_conn_set_events(w.net.server, &answering, NULL);
    answer_bytes = bytes;
    answer_len = sizeof bytes;
    answer_fin = true;
    assert_int_equal(request(&w, "GET", "/"), LEAT_OK);
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
    open_world(&w, "h3", 1);
    leat_conn_set_events(w.net.server, &no_events, NULL);
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
    open_world(&w, "h3", 1);
    leat_conn_set_events(w.net.server, &no_events, NULL);
    assert_int_equal(request(&w, "GET", "/"), LEAT_OK);
    fake_net_run(&w.net);
    raw(raw_open(w.net.server, false), bytes, sizeof bytes, false);
    fake_net_run(&w.net);
    assert_int_equal(w.goaways, 1);
    assert_int_equal(w.rejected, 1);
    assert_int_equal(w.c.end.err, LEAT_ERR_CLOSED);
    assert_int_equal(request(&w, "GET", "/"), LEAT_ERR_CLOSED);
    fake_net_close(&w.net);
}

static void hq_refuses_what_is_not_a_request_line(void **state)
{
    static const char *const lines[] = {"POST /x\r\n", "GET x\r\n", "GET\r\n", "\r\n", ""};

    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        world w;

        open_world(&w, "hq-interop", 2);
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

        open_world(&w, "hq-interop", 2);
        w.net.segment = 3;
        leat_conn_set_events(w.net.client, &no_events, NULL);
        raw(raw_open(w.net.client, true), lines[i], strlen(lines[i]), true);
        fake_net_run(&w.net);
        assert_int_equal(w.s.heads, 1);
        assert_string_equal(w.s.path, "/x");
        assert_int_equal(w.s.completes, 1);
        fake_net_close(&w.net);
    }
}

/* One exchange while the nth take of memory fails; false when there is no nth. */
static bool run_short_of_memory(const char *alpn, uint64_t nth, bool lasting)
{
    world w;
    bool hit;

    open_world(&w, alpn, 0);
    w.size = w.announce = 60000;
    leat_mem_fault_set(leat_ctx_mem(w.net.ctx), LEAT_MEM_FAULT_TAKE, nth, lasting);
    if (leat_http_attach(w.net.client, NULL, &client_events, &w, &w.client) != LEAT_OK) {
        leat_conn_set_events(w.net.client, &no_events, NULL);
    }
    if (leat_http_attach(w.net.server, NULL, &server_events, &w, &w.server) != LEAT_OK) {
        leat_conn_set_events(w.net.server, &no_events, NULL);
    }
    w.may_fail = true;
    if (w.client) {
        w.take = 50000; /* what is not taken is copied out, which takes memory too */
        if (request(&w, "GET", "/file") == LEAT_OK) {
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

            while (run_short_of_memory(protocols[p], n, lasting)) {
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
    assert_int_equal(leat_http_attach(net.client, NULL, &client_events, NULL, &http),
                     LEAT_ERR_UNSUPPORTED);
    assert_null(http);
    leat_conn_set_events(net.client, &no_events, NULL);
    leat_conn_set_events(net.server, &no_events, NULL);
    fake_net_close(&net);
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
        cmocka_unit_test(a_raw_request_is_answered),
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
        cmocka_unit_test(running_out_of_memory_anywhere_breaks_no_more_than_it_must),
        cmocka_unit_test(another_alpn_is_not_taken),
        cmocka_unit_test(codes_have_names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
