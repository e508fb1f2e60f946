/* fuzz/h3.c: HTTP/3 and hq-interop against a peer whose streams say anything: as a server facing
 * raw streams, and as a client whose requests are answered raw. The transport is the tests' fake
 * one (tests/unit/h3/fake_quic.h), which frees every span as soon as it may.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include <leat/h3.h>

#include "fake_quic.h"
#include "support/fuzz.h"

#define STREAMS 8

typedef struct peer {
    leat_stream *streams[STREAMS];
} peer;

static peer raw;

/* ---- the raw side ---- */

static void keep(leat_stream *s)
{
    for (size_t i = 0; i < STREAMS; i++) {
        if (!raw.streams[i]) {
            raw.streams[i] = s;
            return;
        }
    }
}

static void raw_opened(leat_conn *conn, leat_stream *s, void *user)
{
    (void)conn, (void)user;
    keep(s);
}

static void raw_readable(leat_conn *conn, leat_stream *s, void *user)
{
    leat_span span;

    (void)conn, (void)user;
    while ((span = leat_stream_peek(s)).len > 0) {
        leat_stream_consume(s, span.len);
    }
}

static void raw_closed(leat_conn *conn, leat_stream *s, void *user)
{
    (void)conn, (void)user;
    for (size_t i = 0; i < STREAMS; i++) {
        if (raw.streams[i] == s) {
            raw.streams[i] = NULL;
        }
    }
}

static const leat_conn_events raw_events = {
    .stream_opened = raw_opened, .stream_readable = raw_readable, .stream_closed = raw_closed};

/* ---- the session ---- */

static unsigned exchanges, ended;
static leat_http *session;

static leat_err pull(leat_http_exchange *x, leat_mspan room, size_t *got, bool *end, void *user)
{
    (void)x, (void)user;
    memset(room.data, 'x', room.len);
    *got = room.len < 700 ? room.len : 700;
    *end = true;
    return LEAT_OK;
}

static void look(const leat_http_head *head)
{
    size_t sum = head->method.len + head->path.len + head->authority.len + head->scheme.len;

    for (size_t i = 0; i < head->field_count; i++) {
        const leat_http_field *f = &head->fields[i];

        for (size_t j = 0; j < f->name.len; j++) {
            sum += f->name.data[j];
        }
        for (size_t j = 0; j < f->value.len; j++) {
            sum += f->value.data[j];
        }
    }
    fuzz_check(head->field_count <= LEAT_HTTP_HEADER_FIELDS_MAX);
    fuzz_check(sum < SIZE_MAX / 2);
}

static void on_request(leat_http_exchange *x, const leat_http_head *head, void *user)
{
    leat_http_response_head answer = {.status = 200, .body = {.pull = pull}};

    (void)user;
    exchanges++;
    look(head);
    answer.body.length = head->path.len % 2 ? 700 : LEAT_HTTP_LENGTH_UNKNOWN;
    leat_http_respond(x, &answer);
}

static void on_response(leat_http_exchange *x, const leat_http_head *head, void *user)
{
    (void)x, (void)user;
    look(head);
}

static size_t on_body(leat_http_exchange *x, leat_span data, void *user)
{
    (void)x, (void)user;
    return data.len;
}

static void on_exchange_closed(leat_http_exchange *x, const leat_http_end *end, void *user)
{
    (void)x, (void)user, (void)end;
    ended++;
}

static void on_closed(leat_http *http, const leat_close_info *info, void *user)
{
    (void)http, (void)info, (void)user;
    session = NULL;
}

static const leat_http_events events = {.request = on_request,
                                        .response = on_response,
                                        .body = on_body,
                                        .exchange_closed = on_exchange_closed,
                                        .closed = on_closed};

static void ask(void)
{
    leat_http_request_head head = {.authority = {(const uint8_t *)"a", 1},
                                   .path = {(const uint8_t *)"/", 1}};
    leat_http_exchange *x;

    exchanges += leat_http_request(session, &head, NULL, &x) == LEAT_OK;
}

static void act(fake_net *net, leat_conn *conn, fuzz_input *in)
{
    uint8_t op = fuzz_byte(in);
    leat_span bytes = fuzz_bytes(in, fuzz_byte(in) * (op & 0x80 ? 5u : 1u));
    leat_stream *s = NULL;
    size_t written;

    if (op & 0x40) {
        if (leat_stream_open(conn, (op & 0x20) != 0, &s) == LEAT_OK) {
            keep(s);
        }
    } else {
        s = raw.streams[op % STREAMS];
    }
    if (s) {
        if (bytes.len > 0) {
            leat_stream_write(s, bytes.data, bytes.len, &written);
        }
        if (op & 0x08) {
            leat_stream_finish(s);
        } else if ((op & 0x17) == 0x17) {
            leat_stream_reset(s, 0x10c);
        } else if ((op & 0x17) == 0x16) {
            leat_stream_stop(s, 0x10c);
        }
    }
    if (op & 0x10) {
        fake_net_run(net);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input in = {data, data + size};
    uint8_t how = fuzz_byte(&in);
    fake_net net = {.segment = how & 4 ? 3 : 1200, .window = 100000, .span = 16384, .max_bidi = 8};
    bool server = how & 1;

    memset(&raw, 0, sizeof(raw));
    exchanges = ended = 0;
    fake_net_open(&net, how & 2 ? LEAT_HTTP_ALPN_HQ : LEAT_HTTP_ALPN_H3);
    leat_conn_set_events(server ? net.client : net.server, &raw_events, NULL);
    fuzz_check(leat_http_attach(server ? net.server : net.client, NULL, &events, NULL, &session) ==
               LEAT_OK);
    if (!server) {
        ask();
        ask();
        fake_net_run(&net);
    }
    while (fuzz_left(&in) && net.client && net.server) {
        act(&net, server ? net.client : net.server, &in);
    }
    fake_net_run(&net);
    fake_net_close(&net); /* asserts that all memory came back */
    /* A server is told the end of exchanges whose request never came whole, too. */
    fuzz_check(server ? exchanges <= ended : exchanges == ended);
    return 0;
}
