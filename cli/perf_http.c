/* cli/perf_http.c: requests of `leat perf client --path`, over HTTP/3.
 *
 * An exchange's user is the request: when it was due. What an answer brings is counted and dropped.
 *
 * SPDX-License-Identifier: MIT
 */
#include "perf_client.h"

typedef struct perf_request {
    leat_time opened;
    bool whole;
} perf_request;

static leat_mem *mem_of(const perf_client *c)
{
    return leat_ctx_mem(leat_loop_ctx(c->loop));
}

static leat_span text(const char *s)
{
    return (leat_span){(const uint8_t *)s, strlen(s)};
}

bool perf_http_request(perf_client *c)
{
    leat_http_request_head head = {.authority = text(c->host), .path = text(c->path)};
    perf_request *r = leat_mem_malloc(mem_of(c), sizeof *r);
    leat_http_exchange *x;
    leat_err err = LEAT_ERR_NOMEM;

    if (r) {
        *r = (perf_request){.opened = perf_load_due(c)};
        err = leat_http_request(c->http, &head, r, &x);
    }
    if (err == LEAT_OK) {
        c->running++;
        c->started++;
        return true;
    }
    leat_mem_release(mem_of(c), r);
    if (err == LEAT_ERR_BLOCKED) {
        c->blocked = true; /* on_available() tells */
    } else {
        perf_load_fail(c, leat_cli_exit_of(err, LEAT_EXIT_BROKEN), leat_err_text(err));
    }
    return false;
}

static void on_response(leat_http_exchange *x, const leat_http_head *head, void *user)
{
    (void)x;
    if (head->status < 200 || head->status > 299) {
        char what[64];

        snprintf(what, sizeof what, "the server answered %u", head->status);
        perf_load_fail(user, head->status == 404 ? LEAT_EXIT_NOT_FOUND : LEAT_EXIT_STATUS, what);
    }
}

static size_t on_body(leat_http_exchange *x, leat_span data, void *user)
{
    (void)x;
    ((perf_client *)user)->moved += data.len;
    return data.len;
}

static void on_complete(leat_http_exchange *x, void *user)
{
    perf_request *r = leat_http_exchange_user(x);

    r->whole = true;
    ((perf_client *)user)->running--;
    perf_load_answered(user, r->opened);
}

static void on_exchange_closed(leat_http_exchange *x, const leat_http_end *end, void *user)
{
    perf_client *c = user;
    perf_request *r = leat_http_exchange_user(x);

    if (!r->whole) {
        c->running--;
        if (end->err != LEAT_ERR_CLOSED || end->code != 0) { /* else the connection's end tells */
            perf_load_fail(c, LEAT_EXIT_BROKEN, leat_err_text(end->err));
        }
    }
    leat_mem_release(mem_of(c), r);
}

static void on_available(leat_http *http, void *user)
{
    perf_client *c = user;

    (void)http;
    c->blocked = false;
    perf_load_start_more(c);
}

static void on_closed(leat_http *http, const leat_close_info *info, void *user)
{
    (void)http;
    perf_load_closed(user, info);
}

static const leat_http_events events = {
    .response = on_response,
    .body = on_body,
    .complete = on_complete,
    .exchange_closed = on_exchange_closed,
    .available = on_available,
    .closed = on_closed,
};

leat_err perf_http_attach(perf_client *c, leat_conn *conn)
{
    return leat_http_attach(conn, NULL, &events, c, &c->http);
}
