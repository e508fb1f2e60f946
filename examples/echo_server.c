/* echo_server: sends back what it receives, on leat's ready loop.
 *
 *     echo_server [ADDR:PORT]        (default: 127.0.0.1:0, which finds a free port)
 *
 * Prints "listening on ADDR:PORT" and runs until SIGINT or SIGTERM. Its certificate is made at
 * start-up; its application protocol is called "echo". Try it with echo_client or poll_echo.
 *
 * SPDX-License-Identifier: MIT
 */
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include <leat/leat.h>

static leat_loop *loop;

static void on_signal(int number)
{
    (void)number;
    leat_loop_stop(loop);
}

/* Copies from the receiving part of a stream to its sending part while there are bytes and room.
 * What does not fit stays unread: flow control then slows the peer down. */
static void echo(leat_stream *stream)
{
    for (;;) {
        leat_span data = leat_stream_peek(stream);
        size_t written;

        if (data.len == 0) {
            break;
        }
        if (leat_stream_write(stream, data.data, data.len, &written) != LEAT_OK) {
            return; /* no room: stream_writable will come; or closed: stream_closed will */
        }
        leat_stream_consume(stream, written);
    }
    if (leat_stream_recv_whole(stream)) {
        leat_stream_finish(stream);
    }
}

static void on_stream(leat_conn *conn, leat_stream *stream, void *user)
{
    (void)conn;
    (void)user;
    if (leat_stream_is_bidi(stream)) {
        echo(stream);
    }
}

static void on_reset(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    (void)conn;
    (void)user;
    leat_stream_reset(stream, code); /* the client gave up: so do we */
}

static const leat_conn_events events = {
    .stream_opened = on_stream,
    .stream_readable = on_stream,
    .stream_writable = on_stream,
    .stream_reset = on_reset,
};

/* A config with a self-signed certificate for localhost, good for a day. */
static leat_tls_config *make_tls(void)
{
    static const char *const hosts[] = {"localhost", "127.0.0.1", "::1"};
    static const char *const alpn[] = {"echo"};
    char cert[LEAT_TLS_PEM_MAX], key[LEAT_TLS_PEM_MAX];
    leat_tls_self_signed request = {.hosts = hosts,
                                    .host_count = 3,
                                    .not_before = time(NULL) - 3600,
                                    .not_after = time(NULL) + 86400};
    leat_tls_settings settings;
    leat_tls_config *config = NULL;
    leat_tls_error error;
    size_t cert_len, key_len;

    leat_tls_settings_init(&settings);
    settings.alpn = alpn;
    settings.alpn_count = 1;
    if (leat_tls_make_self_signed(&request, cert, &cert_len, key, &key_len, &error) != LEAT_OK) {
        fprintf(stderr, "no certificate: %s\n", error.text);
        return NULL;
    }
    settings.cert_pem = (leat_span){(const uint8_t *)cert, cert_len};
    settings.key_pem = (leat_span){(const uint8_t *)key, key_len};
    if (leat_tls_config_server(&settings, &config, &error) != LEAT_OK) {
        fprintf(stderr, "TLS: %s\n", error.text);
    }
    return config;
}

int main(int argc, char **argv)
{
    leat_tls_config *tls = make_tls();
    leat_udp_settings udp_settings;
    leat_endpoint_settings settings;
    leat_udp *udp;
    leat_addr local;
    char text[LEAT_ADDR_TEXT_MAX];
    leat_err err;

    leat_udp_settings_init(&udp_settings);
    if (!tls ||
        leat_addr_parse(argc > 1 ? argv[1] : "127.0.0.1:0", &udp_settings.local) != LEAT_OK) {
        fprintf(stderr, "usage: echo_server [ADDR:PORT]\n");
        return 1;
    }
    leat_endpoint_settings_init(&settings);
    settings.server_tls = tls;
    settings.events = &events;

    err = leat_loop_new(NULL, &loop);
    if (err == LEAT_OK) {
        err = leat_udp_open(loop, &udp_settings, &settings, &udp);
    }
    if (err != LEAT_OK) {
        fprintf(stderr, "cannot listen: %s\n", leat_err_text(err));
        return 1;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    local = leat_udp_local(udp);
    printf("listening on %s\n", leat_addr_format(&local, text));
    fflush(stdout);

    err = leat_loop_run(loop);
    leat_loop_free(loop);
    leat_tls_config_free(tls);
    return err == LEAT_OK ? 0 : 1;
}
