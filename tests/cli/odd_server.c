/* A server that answers what `leat serve` never does. Prints two ports. At the first the path says
 * what:
 *
 *     /206       status 206, with a body
 *     /bytes     a header field with bytes outside ASCII
 *
 * At the second every answer is a head without a status. Runs until it is killed.
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <leat/h3.h>
#include <leat/loop.h>

static leat_span text(const char *s)
{
    return (leat_span){(const uint8_t *)s, strlen(s)};
}

static leat_err pull(leat_http_exchange *x, leat_mspan room, size_t *got, bool *end, void *user)
{
    (void)x;
    (void)user;
    *got = 4 < room.len ? 4 : room.len;
    memcpy(room.data, "part", *got);
    *end = true;
    return LEAT_OK;
}

static void on_request(leat_http_exchange *x, const leat_http_head *head, void *user)
{
    leat_http_field odd = {text("x-odd"), text("\xc4\x9b"
                                               "2J\xff")};
    leat_http_response_head answer = {.status = 200, .fields = &odd, .body = {pull, 4}};

    (void)user;
    if (head->path.len == 4 && memcmp(head->path.data, "/206", 4) == 0) {
        answer.status = 206;
    } else {
        answer.field_count = 1;
    }
    leat_http_respond(x, &answer);
}

static const leat_http_events http_events = {.request = on_request};

static void on_connected(leat_conn *conn, void *user)
{
    leat_http *http;

    (void)user;
    leat_http_attach(conn, NULL, &http_events, NULL, &http);
}

static const leat_conn_events conn_events = {.connected = on_connected};

/* ---- HTTP/3 by hand ---- */

static void send_raw(leat_stream *stream, const void *bytes, size_t len)
{
    size_t n;

    leat_stream_write(stream, bytes, len, &n);
}

static void on_raw_connected(leat_conn *conn, void *user)
{
    static const uint8_t settings[] = {0x00, 0x04, 0x00}; /* a control stream, no settings */
    leat_stream *control;

    (void)user;
    if (leat_stream_open(conn, false, &control) == LEAT_OK) {
        send_raw(control, settings, sizeof settings);
    }
}

static void on_raw_opened(leat_conn *conn, leat_stream *stream, void *user)
{
    static const uint8_t headers[] = {0x01, 6, 0, 0, 0x21, 'x', 1, 'y'}; /* "x: y", in full */

    (void)conn;
    (void)user;
    if (leat_stream_is_bidi(stream)) {
        send_raw(stream, headers, sizeof headers);
        leat_stream_finish(stream);
    }
}

static const leat_conn_events raw_events = {.connected = on_raw_connected,
                                            .stream_opened = on_raw_opened};

static leat_err make_tls(leat_tls_config **out)
{
    static char cert[LEAT_TLS_PEM_MAX], key[LEAT_TLS_PEM_MAX];
    static const char *const hosts[] = {"localhost"}, *const alpn[] = {LEAT_HTTP_ALPN_H3};
    leat_tls_self_signed request = {.hosts = hosts,
                                    .host_count = 1,
                                    .not_before = (int64_t)time(NULL) - 3600,
                                    .not_after = (int64_t)time(NULL) + 3600};
    leat_tls_settings settings;
    size_t cert_len, key_len;
    leat_err err = leat_tls_make_self_signed(&request, cert, &cert_len, key, &key_len, NULL);

    leat_tls_settings_init(&settings);
    settings.alpn = alpn;
    settings.alpn_count = 1;
    settings.cert_pem = (leat_span){(const uint8_t *)cert, cert_len};
    settings.key_pem = (leat_span){(const uint8_t *)key, key_len};
    return err == LEAT_OK ? leat_tls_config_server(&settings, out, NULL) : err;
}

int main(void)
{
    const leat_conn_events *const events[] = {&conn_events, &raw_events};
    leat_endpoint_settings endpoint;
    leat_udp_settings settings;
    leat_tls_config *tls;
    leat_loop *loop;
    leat_udp *udp;

    leat_endpoint_settings_init(&endpoint);
    leat_udp_settings_init(&settings);
    if (make_tls(&tls) != LEAT_OK || leat_loop_new(NULL, &loop) != LEAT_OK ||
        leat_addr_parse("127.0.0.1:0", &settings.local) != LEAT_OK) {
        return 1;
    }
    endpoint.server_tls = tls;
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        endpoint.events = events[i];
        if (leat_udp_open(loop, &settings, &endpoint, &udp) != LEAT_OK) {
            return 1;
        }
        printf("%u\n", leat_udp_local(udp).port);
    }
    fflush(stdout);
    leat_loop_run(loop);
    return 0;
}
