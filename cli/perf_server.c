/* cli/perf_server.c: `leat perf server`.
 *
 * A stream keeps no more than how far it is: the 8 bytes of the head as they come, then what is
 * left to answer.
 *
 * SPDX-License-Identifier: MIT
 */
#include "perf.h"

#define SERVER_OPTIONS(X)                                                                          \
    X(ONE, "one-off", '1', NULL, "end when the first connection has ended")                        \
    X(JSON, "json", 'j', NULL, "one JSON object a connection, on stdout")

enum server_id {
    OPT_SERVER_FIRST = LEAT_OPT_SERVER_END,
#define OPTION_ENUM(id, name, letter, arg, help) OPT_##id,
    SERVER_OPTIONS(OPTION_ENUM)
#undef OPTION_ENUM
};

static const leat_cli_option options[] = {LEAT_CLI_SERVER_OPTIONS(LEAT_CLI_OPTION_ROW)
                                              LEAT_CLI_THREAD_OPTIONS(LEAT_CLI_OPTION_ROW)
#define OPTION_ROW(id, name, letter, arg, help) {OPT_##id, name, letter, arg, help},
                                                  SERVER_OPTIONS(OPTION_ROW)
#undef OPTION_ROW
#define OPTION_ROW(id, name, letter, arg, help) {LEAT_OPT_##id, name, letter, arg, help},
                                                      LEAT_PERF_SHARED_OPTIONS(OPTION_ROW)
#undef OPTION_ROW
};

enum { OPTIONS = sizeof options / sizeof options[0] };

typedef struct server {
    leat_cli_server server; /* first: leat_cli_server_run_all() */
    leat_perf_source source;
    leat_shared *shared; /* NULL with one thread */
    bool one, json;
} server;

typedef struct server_conn {
    server *app;
    leat_time started;
    uint64_t received, sent, requests;
    leat_cli_steady steady;
} server_conn;

typedef struct server_stream {
    uint8_t head[LEAT_PERF_HEAD];
    uint8_t have; /* bytes of the head */
    bool answering;
    uint64_t left; /* bytes to send back */
} server_stream;

static leat_mem *mem_of(server *app)
{
    return leat_cli_server_mem(&app->server);
}

/* ---- streams ---- */

static void answer(server_conn *conn, leat_stream *stream, server_stream *s)
{
    uint64_t before = s->left;
    leat_err err = leat_perf_write(&conn->app->source, stream, &s->left);

    conn->sent += before - s->left;
    leat_cli_steady_add(&conn->steady, (size_t)(before - s->left), mem_of(conn->app));
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
    uint64_t got;

    (void)quic;
    if (s) {
        read_head(conn, stream, s);
    }
    got = leat_perf_drop(stream);
    conn->received += got;
    leat_cli_steady_add(&conn->steady, (size_t)got, mem_of(conn->app));
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
    double seconds =
        (double)(leat_ctx_now(leat_loop_ctx(conn->app->server.loop)) - conn->started) / 1e9;
    char remote[LEAT_ADDR_TEXT_MAX], in[LEAT_CLI_TEXT], out[LEAT_CLI_TEXT];

    leat_addr_format(leat_conn_remote(quic), remote);
    if (conn->app->json) {
        leat_conn_stats_data stats;

        leat_conn_stats(quic, &stats);
        printf("{\"remote\": \"%s\", \"thread\": %zu, \"seconds\": %.6f, \"received\": %llu, "
               "\"sent\": %llu, \"requests\": %llu, \"key_updates\": %llu",
               remote, conn->app->server.number, seconds, (unsigned long long)conn->received,
               (unsigned long long)conn->sent, (unsigned long long)conn->requests,
               (unsigned long long)stats.key_updates);
        leat_cli_steady_json(&conn->steady);
        printf("}\n");
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
    if (app->server.common.stats) {
        leat_cli_run run = {.started = conn->started, .body_bytes = conn->received + conn->sent};

        flockfile(stderr); /* lines of one connection stay together */
        leat_cli_print_stats(quic, app->server.udp, &run, &conn->steady);
        funlockfile(stderr);
    }
    leat_cli_common_warn(&app->server.common);
    leat_mem_release(mem_of(app), conn);
    if (app->one) {
        leat_cli_server_stop();
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
    conn->started = leat_ctx_now(leat_loop_ctx(app->server.loop));
    leat_conn_set_events(quic, &conn_events, conn);
}

static const leat_conn_events accept_events = {.connected = on_connected};

/* ---- start-up ---- */

static bool take(server *app, int id)
{
    switch (id) {
    case OPT_ONE:
        return app->one = true;
    case OPT_JSON:
        return app->json = true;
    default:
        return leat_cli_server_take(&app->server, id, optarg);
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
    return leat_cli_server_check(&app->server) ? LEAT_EXIT_OK : LEAT_EXIT_USAGE;
}

/* What threads have in common besides their address: the keys of tokens and resets. */
static leat_cli_exit make_shared(server *app)
{
    leat_shared_settings settings;
    leat_err err = LEAT_ERR_IO;

    if (app->server.threads == 1) {
        return LEAT_EXIT_OK;
    }
    leat_shared_settings_init(&settings);
    settings.early_tickets = 0;
    if (leat_cli_random(settings.seed, sizeof settings.seed)) {
        err = leat_shared_new(&settings, &app->shared);
    }
    explicit_bzero(&settings, sizeof settings);
    return err == LEAT_OK ? LEAT_EXIT_OK : LEAT_EXIT_FAILURE;
}

static leat_cli_exit listen_one(server *app)
{
    leat_endpoint_settings endpoint;

    if (leat_perf_source_init(&app->source, mem_of(app)) != LEAT_OK) {
        leat_cli_no_memory();
    }
    leat_endpoint_settings_init(&endpoint);
    endpoint.events = &accept_events;
    endpoint.user = app;
    endpoint.shared = app->shared;
    return leat_cli_server_listen(&app->server, &endpoint);
}

/* apps[0] has the options; the others are made here. */
static leat_cli_exit start(server *apps)
{
    leat_cli_exit exit_code;

    apps->server.common.alpn[apps->server.common.alpn_count++] = LEAT_PERF_ALPN;
    exit_code = leat_cli_server_start(&apps->server);
    if (exit_code == LEAT_EXIT_OK) {
        exit_code = make_shared(apps);
    }
    if (exit_code == LEAT_EXIT_OK) {
        exit_code = listen_one(apps);
    }
    for (size_t i = 1; i < apps->server.threads && exit_code == LEAT_EXIT_OK; i++) {
        apps[i] = (server){.shared = apps->shared, .one = apps->one, .json = apps->json};
        exit_code = leat_cli_server_join(&apps[i].server, &apps->server);
        if (exit_code == LEAT_EXIT_OK) {
            exit_code = listen_one(&apps[i]);
        }
    }
    return exit_code;
}

static void say_goodbye(leat_cli_server *thread)
{
    leat_cli_server_goodbye(thread, 0);
}

static leat_cli_exit release(server *apps, leat_cli_exit exit_code)
{
    for (size_t i = apps->server.threads; i-- > 0;) {
        if (apps[i].server.loop) {
            leat_udp_close(apps[i].server.udp); /* before the buffer that it may still send */
            leat_perf_source_free(&apps[i].source);
            leat_cli_server_leave(&apps[i].server);
        }
    }
    exit_code = leat_cli_server_release(&apps->server, exit_code);
    leat_shared_free(apps->shared);
    return exit_code;
}

int leat_perf_server(int argc, char **argv)
{
    static server apps[LEAT_UDP_GROUP_MAX]; /* one a thread */
    leat_cli_exit exit_code;

    leat_cli_server_init(&apps->server);
    exit_code = parse(apps, argc, argv);
    if (exit_code != LEAT_EXIT_OK) {
        return exit_code;
    }
    if (apps->server.common.help) {
        puts("usage: leat perf server [OPTION...]\n\n"
             "Answers leat perf client, and any other client of draft-banks-quic-performance.\n"
             "SIGINT and SIGTERM end it.\n");
        leat_cli_print_options(options, OPTIONS);
        leat_cli_print_exit_codes();
        return LEAT_EXIT_OK;
    }
    exit_code = start(apps);
    if (exit_code == LEAT_EXIT_OK) {
        exit_code = leat_cli_server_run_all(&apps->server, sizeof *apps, say_goodbye);
    }
    return release(apps, exit_code);
}
