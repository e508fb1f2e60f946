/* cli/perf_server.c: `leat perf server`.
 *
 * A stream keeps no more than how far it is: the 8 bytes of the head as they come, then what is
 * left to answer.
 *
 * SPDX-License-Identifier: MIT
 */
#include "perf.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#define SERVER_OPTIONS(X)                                                                          \
    X(LISTEN, "listen", 'l', "ADDR:PORT", "where to listen (default :4433; port 0: any)")          \
    X(CERT, "cert", 0, "FILE", "certificate chain, PEM (default: self-signed)")                    \
    X(KEY, "key", 0, "FILE", "its private key, PEM")                                               \
    X(ONE, "one-off", '1', NULL, "end when the first connection has ended")                        \
    X(JSON, "json", 'j', NULL, "one JSON object a connection, on stdout")

enum server_id {
    OPT_SERVER_FIRST = LEAT_OPT_COMMON_END,
#define OPTION_ENUM(id, name, letter, arg, help) OPT_##id,
    SERVER_OPTIONS(OPTION_ENUM)
#undef OPTION_ENUM
};

static const leat_cli_option options[] = {
#define OPTION_ROW(id, name, letter, arg, help) {OPT_##id, name, letter, arg, help},
    SERVER_OPTIONS(OPTION_ROW)
#undef OPTION_ROW
#define OPTION_ROW(id, name, letter, arg, help) {LEAT_OPT_##id, name, letter, arg, help},
        LEAT_PERF_SHARED_OPTIONS(OPTION_ROW)
#undef OPTION_ROW
};

enum {
    OPTIONS = sizeof options / sizeof options[0],
    PEM_MOST = 1 << 20,
    DAY = 86400,
    CERT_DAYS = 7
};

typedef struct server {
    leat_cli_common common;
    leat_loop *loop;
    leat_udp *udp;
    leat_tls_config *tls;
    leat_perf_source source;
    const char *listen, *cert_path, *key_path;
    bool one, json;
} server;

typedef struct server_conn {
    server *app;
    leat_time started;
    uint64_t received, sent, requests;
} server_conn;

typedef struct server_stream {
    uint8_t head[LEAT_PERF_HEAD];
    uint8_t have; /* bytes of the head */
    bool answering;
    uint64_t left; /* bytes to send back */
} server_stream;

static leat_loop *signalled;

static void on_signal(int number)
{
    (void)number;
    leat_loop_stop(signalled);
}

static leat_mem *mem_of(server *app)
{
    return leat_ctx_mem(leat_loop_ctx(app->loop));
}

/* ---- streams ---- */

static void answer(server_conn *conn, leat_stream *stream, server_stream *s)
{
    uint64_t before = s->left;
    leat_err err = leat_perf_write(&conn->app->source, stream, &s->left);

    conn->sent += before - s->left;
    if (err == LEAT_OK) {
        leat_stream_finish(stream);
        conn->requests++;
        s->answering = false;
    }
}

/* The head may come in pieces. */
static void read_head(server_conn *conn, leat_stream *stream, server_stream *s)
{
    leat_span span;

    while (s->have < LEAT_PERF_HEAD && (span = leat_stream_peek(stream)).len > 0) {
        size_t want = (size_t)(LEAT_PERF_HEAD - s->have);
        size_t n = span.len < want ? span.len : want;

        memcpy(s->head + s->have, span.data, n);
        s->have = (uint8_t)(s->have + n);
        conn->received += n;
        leat_stream_consume(stream, n);
    }
}

static void on_opened(leat_conn *quic, leat_stream *stream, void *user)
{
    server_conn *conn = user;

    (void)quic;
    if (leat_stream_is_bidi(stream)) {
        server_stream *s = leat_mem_calloc(mem_of(conn->app), 1, sizeof *s);

        if (!s) {
            leat_stream_stop(stream, 0);
            leat_stream_reset(stream, 0);
            return;
        }
        leat_stream_set_user(stream, s);
    }
}

static void on_readable(leat_conn *quic, leat_stream *stream, void *user)
{
    server_conn *conn = user;
    server_stream *s = leat_stream_user(stream);

    (void)quic;
    if (s) {
        read_head(conn, stream, s);
    }
    conn->received += leat_perf_drop(stream);
    if (!s || !leat_stream_recv_whole(stream) || s->answering) {
        return;
    }
    for (size_t i = 0; i < s->have; i++) {
        s->left = s->left << 8 | s->head[i];
    }
    if (s->have < LEAT_PERF_HEAD) {
        leat_stream_reset(stream, 0); /* ended before it had asked for anything */
        return;
    }
    s->answering = true;
    answer(conn, stream, s);
}

static void on_writable(leat_conn *quic, leat_stream *stream, void *user)
{
    server_stream *s = leat_stream_user(stream);

    (void)quic;
    if (s && s->answering) {
        answer(user, stream, s);
    }
}

static void on_stream_closed(leat_conn *quic, leat_stream *stream, void *user)
{
    (void)quic;
    leat_mem_release(mem_of(((server_conn *)user)->app), leat_stream_user(stream));
}

/* ---- connections ---- */

static void print_conn(server_conn *conn, leat_conn *quic)
{
    double seconds = (double)(leat_ctx_now(leat_loop_ctx(conn->app->loop)) - conn->started) / 1e9;
    char remote[LEAT_ADDR_TEXT_MAX], in[LEAT_CLI_TEXT], out[LEAT_CLI_TEXT];

    leat_addr_format(leat_conn_remote(quic), remote);
    if (conn->app->json) {
        printf("{\"remote\": \"%s\", \"seconds\": %.6f, \"received\": %llu, \"sent\": %llu, "
               "\"requests\": %llu}\n",
               remote, seconds, (unsigned long long)conn->received, (unsigned long long)conn->sent,
               (unsigned long long)conn->requests);
        fflush(stdout);
        return;
    }
    fprintf(stderr, "%s: %.2f s, in %s, out %s, %llu answers\n", remote, seconds,
            leat_cli_bytes_text(conn->received, in), leat_cli_bytes_text(conn->sent, out),
            (unsigned long long)conn->requests);
}

static void on_closed(leat_conn *quic, const leat_close_info *info, void *user)
{
    server_conn *conn = user;
    server *app = conn->app;

    (void)info;
    if (conn->received || app->json) {
        print_conn(conn, quic);
    }
    if (app->common.stats) {
        leat_cli_run run = {.started = conn->started, .body_bytes = conn->received + conn->sent};
        leat_cli_steady none = {.bytes = 0};

        leat_cli_print_stats(quic, app->udp, &run, &none);
    }
    leat_mem_release(mem_of(app), conn);
    if (app->one) {
        leat_loop_stop(app->loop);
    }
}

static const leat_conn_events conn_events = {
    .stream_opened = on_opened,
    .stream_readable = on_readable,
    .stream_writable = on_writable,
    .stream_closed = on_stream_closed,
    .closed = on_closed,
};

static void on_connected(leat_conn *quic, void *user)
{
    server *app = user;
    server_conn *conn = leat_mem_calloc(mem_of(app), 1, sizeof *conn);

    if (!conn) {
        leat_conn_close(quic, 0, (leat_span){NULL, 0});
        return;
    }
    conn->app = app;
    conn->started = leat_ctx_now(leat_loop_ctx(app->loop));
    leat_conn_set_events(quic, &conn_events, conn);
}

static const leat_conn_events accept_events = {.connected = on_connected};

/* ---- start-up ---- */

static bool take(server *app, int id)
{
    switch (id) {
    case OPT_LISTEN:
        app->listen = optarg;
        return true;
    case OPT_CERT:
        app->cert_path = optarg;
        return true;
    case OPT_KEY:
        app->key_path = optarg;
        return true;
    case OPT_ONE:
        return app->one = true;
    case OPT_JSON:
        return app->json = true;
    default:
        return leat_cli_common_take(&app->common, id, optarg);
    }
}

static leat_cli_exit parse(server *app, int argc, char **argv)
{
    leat_cli_parser parser;
    int id;

    leat_cli_parser_init(&parser, "perf server", options, OPTIONS);
    while ((id = leat_cli_option_next(&parser, argc, argv)) != -1) {
        if (id == '?' || !take(app, id)) {
            return LEAT_EXIT_USAGE;
        }
    }
    if (optind < argc) {
        leat_cli_error("perf server takes no argument '%s'", argv[optind]);
        return LEAT_EXIT_USAGE;
    }
    if (!app->cert_path != !app->key_path) {
        leat_cli_error("--cert and --key go together");
        return LEAT_EXIT_USAGE;
    }
    return LEAT_EXIT_OK;
}

static leat_cli_exit make_config(server *app, leat_span cert, leat_span key)
{
    leat_tls_error error = {.text = ""};

    app->common.tls.cert_pem = cert;
    app->common.tls.key_pem = key;
    if (leat_tls_config_server(&app->common.tls, &app->tls, &error) != LEAT_OK) {
        leat_cli_error("%s", error.text[0] ? error.text : "cannot use the certificate");
        return LEAT_EXIT_CERTIFICATE;
    }
    return LEAT_EXIT_OK;
}

static leat_cli_exit tls_from_files(server *app)
{
    leat_buf cert = {NULL, 0, NULL}, key = {NULL, 0, NULL};
    leat_cli_exit exit_code = LEAT_EXIT_FILE;

    if (leat_file_read(mem_of(app), app->cert_path, PEM_MOST, &cert) != LEAT_OK ||
        leat_file_read(mem_of(app), app->key_path, PEM_MOST, &key) != LEAT_OK) {
        leat_cli_error("cannot read %s or %s", app->cert_path, app->key_path);
    } else {
        exit_code = make_config(app, (leat_span){cert.data, cert.len - 1},
                                (leat_span){key.data, key.len - 1});
    }
    leat_buf_release(&cert);
    leat_buf_release(&key);
    return exit_code;
}

static leat_cli_exit tls_self_signed(server *app)
{
    static char cert[LEAT_TLS_PEM_MAX], key[LEAT_TLS_PEM_MAX];
    static const char *const hosts[] = {"localhost", "127.0.0.1", "::1"};
    leat_tls_self_signed request = {.hosts = hosts,
                                    .host_count = 3,
                                    .not_before = (int64_t)time(NULL) - DAY,
                                    .not_after = (int64_t)time(NULL) + CERT_DAYS * DAY};
    size_t cert_len, key_len;
    leat_tls_error error = {.text = ""};

    if (leat_tls_make_self_signed(&request, cert, &cert_len, key, &key_len, &error) != LEAT_OK) {
        leat_cli_error("cannot make a certificate: %s", error.text);
        return LEAT_EXIT_CERTIFICATE;
    }
    return make_config(app, (leat_span){(const uint8_t *)cert, cert_len},
                       (leat_span){(const uint8_t *)key, key_len});
}

static leat_cli_exit open_socket(server *app)
{
    leat_udp_settings udp;
    leat_endpoint_settings endpoint;
    leat_err err;

    leat_udp_settings_init(&udp);
    udp.no_offload = app->common.no_offload;
    if (leat_addr_parse(app->listen, &udp.local) != LEAT_OK) {
        leat_cli_error("--listen wants ADDR:PORT, [ADDR6]:PORT, :PORT or PORT, not '%s'",
                       app->listen);
        return LEAT_EXIT_USAGE;
    }
    leat_endpoint_settings_init(&endpoint);
    endpoint.server_tls = app->tls;
    endpoint.conn = app->common.conn;
    endpoint.events = &accept_events;
    endpoint.user = app;
    if (app->common.qlog) {
        endpoint.events_sink = leat_qlog_sink(app->common.qlog);
    }
    err = leat_udp_open(app->loop, &udp, &endpoint, &app->udp);
    if (err != LEAT_OK) {
        leat_cli_error("cannot listen on %s: %s", app->listen,
                       err == LEAT_ERR_IO ? strerror(errno) : leat_err_text(err));
        return LEAT_EXIT_ADDRESS;
    }
    return LEAT_EXIT_OK;
}

static leat_cli_exit start(server *app)
{
    static const char *const alpn[] = {LEAT_PERF_ALPN};
    leat_cli_exit exit_code = leat_cli_common_open(&app->common);

    if (exit_code != LEAT_EXIT_OK) {
        return exit_code;
    }
    app->common.tls.alpn = alpn;
    app->common.tls.alpn_count = 1;
    if (leat_loop_new(NULL, &app->loop) != LEAT_OK ||
        leat_perf_source_init(&app->source, mem_of(app)) != LEAT_OK) {
        leat_cli_error("cannot start: out of memory");
        return LEAT_EXIT_FAILURE;
    }
    exit_code = app->cert_path ? tls_from_files(app) : tls_self_signed(app);
    return exit_code == LEAT_EXIT_OK ? open_socket(app) : exit_code;
}

static leat_cli_exit run(server *app)
{
    struct sigaction action = {.sa_handler = on_signal};
    char local[LEAT_ADDR_TEXT_MAX];
    leat_addr addr = leat_udp_local(app->udp);
    leat_err err;

    signalled = app->loop;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    leat_cli_warm(mem_of(app));
    fprintf(stderr, "listening on %s\n", leat_addr_format(&addr, local));
    err = leat_loop_run(app->loop);
    leat_endpoint_close(leat_udp_endpoint(app->udp), 0);
    leat_loop_turn(app->loop, 0); /* sends the CONNECTION_CLOSE frames */
    if (err != LEAT_OK) {
        leat_cli_error("the loop failed: %s", strerror(errno));
        return LEAT_EXIT_FAILURE;
    }
    return LEAT_EXIT_OK;
}

static void release(server *app)
{
    if (app->loop) {
        leat_udp_close(app->udp); /* before the buffer that its connections may still send */
        leat_perf_source_free(&app->source);
    }
    leat_loop_free(app->loop);
    leat_tls_config_free(app->tls);
    leat_cli_common_close(&app->common);
}

int leat_perf_server(int argc, char **argv)
{
    server app = {.listen = ":4433"};
    leat_cli_exit exit_code;

    leat_cli_common_init(&app.common);
    exit_code = parse(&app, argc, argv);
    if (exit_code != LEAT_EXIT_OK) {
        return exit_code;
    }
    if (app.common.help) {
        puts("usage: leat perf server [OPTION...]\n\n"
             "Answers leat perf client, and any other client of draft-banks-quic-performance.\n"
             "SIGINT and SIGTERM end it.\n");
        leat_cli_print_options(options, OPTIONS);
        leat_cli_print_exit_codes();
        return LEAT_EXIT_OK;
    }
    exit_code = start(&app);
    if (exit_code == LEAT_EXIT_OK) {
        exit_code = run(&app);
    }
    release(&app);
    return exit_code;
}
