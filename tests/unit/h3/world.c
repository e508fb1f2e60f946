/* The world of world.h: what its ends do in their events.
 *
 * SPDX-License-Identifier: MIT
 */
#include "world.h"

const char *const world_protocols[2] = {"h3", "hq-interop"};
const leat_conn_events world_no_events;

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
    if (w->close_in_request) {
        leat_http_close(leat_http_exchange_session(x), LEAT_H3_INTERNAL_ERROR);
        return;
    }
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

const leat_http_events world_client_events = {.response = on_response,
                                              .body = on_body,
                                              .complete = on_complete,
                                              .exchange_closed = on_exchange_closed,
                                              .available = on_available,
                                              .goaway = on_goaway,
                                              .closed = on_closed};
const leat_http_events world_server_events = {.request = on_request,
                                              .complete = on_server_complete,
                                              .exchange_closed = on_server_closed_exchange,
                                              .closed = on_closed};

void world_open(world *w, const char *alpn, int ends)
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
        assert_int_equal(leat_http_attach(w->net.client, NULL, &world_client_events, w, &w->client),
                         LEAT_OK);
    }
    if (ends & 2) {
        assert_int_equal(leat_http_attach(w->net.server, NULL, &world_server_events, w, &w->server),
                         LEAT_OK);
    }
}

static leat_span text(const char *s)
{
    return (leat_span){(const uint8_t *)s, strlen(s)};
}

leat_err world_request(world *w, const char *method, const char *path)
{
    leat_http_request_head head = {
        .method = text(method), .authority = text("localhost"), .path = text(path)};

    return leat_http_request(w->client, &head, NULL, &w->c.x);
}

void world_assert_whole(const world *w)
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
