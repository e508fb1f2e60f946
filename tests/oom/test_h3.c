/* tests/oom/test_h3.c: memory fails while HTTP/3 runs on the transport: in nghttp3, which takes its
 * memory from the context too, in leat's own half, and in QUIC below.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include <leat/h3.h>

#include "world.h"

#define BODY     30000u
#define REQUESTS 3

typedef struct asked {
    leat_http_exchange *exchange;
    size_t received;
    bool complete, closed;
    leat_http_end end;
} asked;

static struct {
    leat_http *client, *server;
    asked asked[REQUESTS];
    size_t sent[REQUESTS]; /* by the server, an exchange */
    size_t answers;
} h;

/* ---- server ---- */

static leat_err pull(leat_http_exchange *x, leat_mspan room, size_t *got, bool *end, void *user)
{
    size_t *sent = user;
    size_t n = BODY - *sent < room.len ? BODY - *sent : room.len;

    (void)x;
    for (size_t i = 0; i < n; i++) {
        room.data[i] = (uint8_t)(*sent + i);
    }
    *sent += n;
    *got = n;
    *end = *sent == BODY;
    return LEAT_OK;
}

static void on_request(leat_http_exchange *x, const leat_http_head *head, void *user)
{
    leat_http_response_head answer = {.status = 200, .body = {.pull = pull, .length = BODY}};

    (void)head, (void)user;
    assert_true(h.answers < REQUESTS);
    leat_http_exchange_set_user(x, &h.sent[h.answers++]);
    if (leat_http_respond(x, &answer) != LEAT_OK) {
        leat_http_cancel(x, LEAT_H3_INTERNAL_ERROR);
    }
}

static void server_closed(leat_http *http, const leat_close_info *info, void *user)
{
    (void)http;
    h.server = NULL;
    leat_oom_server_events.closed(NULL, info, user);
}

static const leat_http_events server_http = {.request = on_request, .closed = server_closed};

/* ---- client ---- */

static size_t on_body(leat_http_exchange *x, leat_span data, void *user)
{
    asked *a = leat_http_exchange_user(x);

    (void)user;
    for (size_t i = 0; i < data.len; i++) {
        assert_int_equal(data.data[i], (uint8_t)(a->received + i));
    }
    a->received += data.len;
    return data.len;
}

static void on_complete(leat_http_exchange *x, void *user)
{
    (void)user;
    ((asked *)leat_http_exchange_user(x))->complete = true;
}

static void on_exchange_closed(leat_http_exchange *x, const leat_http_end *end, void *user)
{
    asked *a = leat_http_exchange_user(x);

    (void)user;
    a->closed = true;
    a->end = *end;
    a->exchange = NULL;
}

static void client_closed(leat_http *http, const leat_close_info *info, void *user)
{
    (void)http;
    h.client = NULL;
    leat_oom_client_events.closed(NULL, info, user);
}

static const leat_http_events client_http = {.body = on_body,
                                             .complete = on_complete,
                                             .exchange_closed = on_exchange_closed,
                                             .closed = client_closed};

/* ---- both ---- */

static void prepare(oom_world *w)
{
    w->setup.client_alpn = w->setup.server_alpn = LEAT_HTTP_ALPN_H3;
}

static bool answered(void *arg)
{
    bool all = true;

    (void)arg;
    for (size_t i = 0; i < REQUESTS; i++) {
        all = all && (h.asked[i].exchange == NULL);
    }
    return all;
}

static void play(oom_world *w)
{
    leat_http_request_head head = {.method = {(const uint8_t *)"GET", 3},
                                   .scheme = {(const uint8_t *)"https", 5},
                                   .authority = {(const uint8_t *)"localhost", 9},
                                   .path = {(const uint8_t *)"/a/path/that/is/long", 20}};

    memset(&h, 0, sizeof(h));
    if (leat_http_attach(w->server.conn, NULL, &server_http, w, &h.server) != LEAT_OK) {
        leat_conn_close(w->server.conn, LEAT_H3_INTERNAL_ERROR, (leat_span){NULL, 0});
    }
    if (leat_http_attach(w->client.conn, NULL, &client_http, w, &h.client) != LEAT_OK) {
        leat_conn_close(w->client.conn, LEAT_H3_INTERNAL_ERROR, (leat_span){NULL, 0});
    }
    w->drop = 9;
    for (size_t i = 0; i < REQUESTS && h.client; i++) {
        leat_err err = leat_http_request(h.client, &head, &h.asked[i], &h.asked[i].exchange);

        assert_true(err == LEAT_OK || err == LEAT_ERR_NOMEM || err == LEAT_ERR_CLOSED);
        if (err != LEAT_OK) {
            h.asked[i].exchange = NULL;
        }
    }
    leat_pair_run(&w->pair, answered, w, 5 * LEAT_SECOND);
}

/* Afterwards: each exchange is over, and whole when nothing failed. */
static void judge(oom_world *w, bool whole)
{
    w->drop = 0;
    assert_true(leat_pair_run(&w->pair, answered, w, 60 * LEAT_SECOND));
    for (size_t i = 0; i < REQUESTS; i++) {
        const asked *a = &h.asked[i];

        assert_true(!a->complete || a->received == BODY);
        assert_true(!whole || a->complete);
        if (a->closed && a->end.err == LEAT_OK) {
            assert_true(a->complete);
        }
    }
    if (h.client) {
        leat_http_close(h.client, LEAT_H3_NO_ERROR);
        w->pair.conn = NULL;
    }
}

static void memory_fails_in_http(void **state)
{
    static const oom_scenario http = {
        .prepare = prepare, .connected = true, .play = play, .judge = judge};

    (void)state;
    assert_true(leat_oom_try(&http, LEAT_MEM_FAULT_TAKE, false) > 100);
    leat_oom_try(&http, LEAT_MEM_FAULT_TAKE, true);
    leat_oom_try(&http, LEAT_MEM_FAULT_GROWTH, false);
    leat_oom_try(&http, LEAT_MEM_FAULT_GROWTH, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_fails_in_http),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
