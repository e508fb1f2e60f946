/* cli/serve.c: `leat serve`: the files of a folder, over whatever HTTP the client's ALPN picks.
 *
 * A request finds its file in the loop's cache (cache.c) or opens it, the response's pull function
 * reads it straight into the stream's send buffer, and the end of the exchange closes it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cache.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

static const leat_time DRAIN = 5 * LEAT_SECOND; /* for running transfers, at the end */

#define SERVE_OPTIONS(X)                                                                           \
    X(PREFERRED_ADDRESS, "preferred-address", 0, "ADDR:PORT",                                      \
      "listen there too, and ask clients to move there; once a family")                            \
    X(RETRY, "retry", 0, NULL, "have clients prove their address by a Retry packet")               \
    X(RETRY_ABOVE, "retry-above", 0, "N",                                                          \
      "the same while more than N handshakes are under way (default: 1024; 0: never)")             \
    X(TICKET_KEY, "ticket-key", 0, "FILE",                                                         \
      "64 bytes, kept so that session tickets outlive a restart; made when there is no such file") \
    X(EARLY_DATA, "early-data", 0, NULL,                                                           \
      "take requests as 0-RTT; each ticket is good for it once")                                   \
    X(MAX_CONNS, "max-conns", 0, "N", "connections at once")                                       \
    X(CACHE, "cache", 0, "BYTES",                                                                  \
      "of small files that each thread keeps in memory for a second at a time (default: 16M)")     \
    X(MAX_REQUESTS, "max-requests", 0, "N", "requests that a client may have open at once")        \
    X(HANDSHAKE_TIMEOUT, "handshake-timeout", 0, "SECONDS",                                        \
      "give up a handshake that takes longer (default: 10)")                                       \
    X(ONCE, "once", 0, NULL, "end after the first connection")

enum serve_id {
    LEAT_OPT_SERVE_FIRST = LEAT_OPT_SERVER_END,
    SERVE_OPTIONS(LEAT_CLI_OPTION_ENUM) LEAT_OPT_SERVE_END
};

static const leat_cli_option options[] = {
    LEAT_CLI_SERVER_OPTIONS(LEAT_CLI_OPTION_ROW) LEAT_CLI_THREAD_OPTIONS(LEAT_CLI_OPTION_ROW)
        SERVE_OPTIONS(LEAT_CLI_OPTION_ROW) LEAT_CLI_COMMON_OPTIONS(LEAT_CLI_OPTION_ROW)};

enum { OPTIONS = sizeof options / sizeof options[0] };

typedef struct serve_conn serve_conn;

typedef struct serve_app {
    leat_cli_server server; /* first: leat_cli_server_run_all() */
    const char *folder, *ticket_key_path;
    leat_addr preferred_ip4, preferred_ip6; /* family 0: none */
    uint64_t max_conns;
    uint64_t retry_above;
    uint64_t cache_bytes;
    bool once;
    int root;
    leat_cli_cache cache;
    leat_shared *shared;
    serve_conn *first; /* sessions */
} serve_app;

struct serve_conn {
    serve_app *app;
    leat_http *http;
    serve_conn *prev, *next;
    leat_cli_run run;
    leat_cli_steady steady;
};

/* One file on its way. */
typedef struct serve_file {
    leat_cli_served served;
    uint64_t offset;
} serve_file;

static leat_mem *mem_of(const serve_app *app)
{
    return leat_cli_server_mem(&app->server);
}

/* ---- requests ---- */

static leat_err pull(leat_http_exchange *x, leat_mspan room, size_t *got, bool *end, void *user)
{
    serve_file *f = user;
    serve_conn *conn = leat_http_user(leat_http_exchange_session(x));
    leat_err err = leat_cli_served_read(&f->served, f->offset, room, got);

    if (err != LEAT_OK) {
        return err;
    }
    f->offset += *got;
    *end = f->offset == f->served.file.size;
    conn->run.body_bytes += *got;
    leat_cli_steady_add(&conn->steady, *got, mem_of(conn->app));
    return LEAT_OK;
}

static leat_span text(const char *s)
{
    return (leat_span){(const uint8_t *)s, strlen(s)};
}

static void log_request(leat_http_exchange *x, const leat_http_head *head, unsigned status)
{
    char remote[LEAT_ADDR_TEXT_MAX], method[LEAT_CLI_SAFE], path[LEAT_CLI_SAFE];
    leat_conn *conn = leat_http_conn(leat_http_exchange_session(x));

    fprintf(stderr, "%s %s %s %u\n", leat_addr_format(leat_conn_remote(conn), remote),
            leat_cli_safe(head->method, method), leat_cli_safe(head->path, path), status);
}

static bool is(leat_span s, const char *what)
{
    return s.len == strlen(what) && memcmp(s.data, what, s.len) == 0;
}

/* Answers with a status and no body. */
static leat_err answer_status(leat_http_exchange *x, unsigned status)
{
    leat_http_field allow = {text("allow"), text("GET, HEAD")};
    leat_http_response_head answer = {
        .status = status, .fields = &allow, .field_count = status == 405 ? 1 : 0};

    return leat_http_respond(x, &answer);
}

static leat_err answer_file(leat_http_exchange *x, leat_cli_served *served)
{
    serve_conn *conn = leat_http_user(leat_http_exchange_session(x));
    serve_file *f = leat_mem_calloc(mem_of(conn->app), 1, sizeof *f);
    leat_http_field type = {text("content-type"), text(served->file.type)};
    leat_http_response_head answer = {
        .status = 200, .fields = &type, .field_count = 1, .body = {pull, served->file.size}};

    if (!f) {
        leat_cli_served_close(served);
        return answer_status(x, 503);
    }
    f->served = *served;
    leat_http_exchange_set_user(x, f); /* closed with the exchange */
    return leat_http_respond(x, &answer);
}

static void on_request(leat_http_exchange *x, const leat_http_head *head, void *user)
{
    serve_conn *conn = user;
    leat_cli_served served;
    unsigned status = 405;
    leat_err err;

    if (is(head->method, "GET") || is(head->method, "HEAD")) {
        leat_time now = leat_ctx_now(leat_loop_ctx(conn->app->server.loop));

        status = leat_cli_cache_open(&conn->app->cache, head->path, now, &served);
    }
    if (conn->app->server.common.verbose) {
        log_request(x, head, status);
    }
    err = status == 200 ? answer_file(x, &served) : answer_status(x, status);
    if (err != LEAT_OK) {
        leat_http_cancel(x, LEAT_H3_INTERNAL_ERROR);
    }
}

static void on_exchange_closed(leat_http_exchange *x, const leat_http_end *end, void *user)
{
    serve_conn *conn = user;
    serve_file *f = leat_http_exchange_user(x);

    if (f) {
        leat_cli_served_close(&f->served);
        leat_mem_release(mem_of(conn->app), f);
    }
    if (end->err != LEAT_OK && conn->app->server.common.verbose) {
        fprintf(stderr, "a transfer ended early: %s\n", leat_err_text(end->err));
    }
}

/* ---- connections ---- */

static void on_http_closed(leat_http *http, const leat_close_info *info, void *user)
{
    serve_conn *conn = user;
    serve_app *app = conn->app;

    (void)info;
    if (app->server.common.stats) {
        flockfile(stderr); /* lines of one connection stay together */
        leat_cli_print_stats(leat_http_conn(http), app->server.udp, &conn->run, &conn->steady);
        funlockfile(stderr);
    }
    leat_cli_common_warn(&app->server.common);
    *(conn->prev ? &conn->prev->next : &app->first) = conn->next;
    if (conn->next) {
        conn->next->prev = conn->prev;
    }
    leat_mem_release(mem_of(app), conn);
    if (app->once) {
        leat_cli_server_stop();
    }
}

static const leat_http_events http_events = {
    .request = on_request,
    .exchange_closed = on_exchange_closed,
    .closed = on_http_closed,
};

static void on_connected(leat_conn *quic, void *user)
{
    serve_app *app = user;
    serve_conn *conn = leat_mem_calloc(mem_of(app), 1, sizeof *conn);
    leat_http_settings settings;
    leat_err err = LEAT_ERR_NOMEM;

    leat_http_settings_init(&settings);
    settings.max_requests = (size_t)app->server.common.conn.max_streams_bidi;
    if (conn) {
        conn->app = app;
        conn->run.started = leat_ctx_now(leat_loop_ctx(app->server.loop));
        err = leat_http_attach(quic, &settings, &http_events, conn, &conn->http);
    }
    if (err != LEAT_OK) {
        leat_mem_release(mem_of(app), conn);
        leat_conn_close(quic, LEAT_H3_INTERNAL_ERROR, text(leat_err_text(err)));
        return;
    }
    conn->next = app->first;
    if (conn->next) {
        conn->next->prev = conn;
    }
    app->first = conn;
}

/* A connection that never got so far as to speak HTTP. */
static void on_failed(leat_conn *quic, const leat_close_info *info, void *user)
{
    serve_app *app = user;
    char remote[LEAT_ADDR_TEXT_MAX];

    if (app->server.common.verbose) {
        fprintf(stderr, "%s: no connection: %s\n", leat_addr_format(leat_conn_remote(quic), remote),
                info->detail ? info->detail : leat_err_text(info->err));
    }
    leat_cli_common_warn(&app->server.common);
}

/* With 0-RTT a session begins before the handshake is complete, and has the events from then on. */
static const leat_conn_events conn_events = {
    .early = on_connected, .connected = on_connected, .closed = on_failed};

/* ---- start-up ---- */

static void print_help(void)
{
    puts(
        "usage: leat serve [DIR] [OPTION...]\n\n"
        "Serves the files under DIR (default: the current folder) over HTTP/3 and hq-interop, and\n"
        "nothing outside it. Prints 'listening on ADDR:PORT' on stderr when it does. SIGINT and\n"
        "SIGTERM end it once running transfers are done; a second signal ends it at once.\n");
    leat_cli_print_options(options, OPTIONS);
    leat_cli_print_exit_codes();
}

/* A place that clients can be sent to: one address, one port. */
static bool take_preferred(serve_app *app, const char *arg)
{
    static const uint8_t any[16];
    leat_addr addr, *to;

    if (leat_addr_parse(arg, &addr) != LEAT_OK || addr.port == 0 ||
        memcmp(addr.ip, any, sizeof any) == 0) {
        leat_cli_error("--preferred-address wants ADDR:PORT or [ADDR6]:PORT, one address and one "
                       "port, not '%s'",
                       arg);
        return false;
    }
    to = addr.family == 4 ? &app->preferred_ip4 : &app->preferred_ip6;
    if (to->family) {
        leat_cli_error("--preferred-address takes one IPv%u address", addr.family);
        return false;
    }
    *to = addr;
    return true;
}

static bool take(serve_app *app, int id)
{
    uint64_t n;

    switch (id) {
    case LEAT_OPT_PREFERRED_ADDRESS:
        return take_preferred(app, optarg);
    case LEAT_OPT_TICKET_KEY:
        app->ticket_key_path = optarg;
        return true;
    case LEAT_OPT_EARLY_DATA:
        app->server.common.conn.early_data = true;
        return true;
    case LEAT_OPT_RETRY:
        app->server.common.conn.wait_for_validation = true;
        return true;
    case LEAT_OPT_RETRY_ABOVE:
        return leat_cli_number("retry-above", optarg, 0, LEAT_RETRY_ABOVE_MAX, &app->retry_above);
    case LEAT_OPT_MAX_CONNS:
        return leat_cli_number("max-conns", optarg, 1, LEAT_CONNS_MAX, &app->max_conns);
    case LEAT_OPT_CACHE:
        return leat_cli_number("cache", optarg, LEAT_FILE_CACHE_MIN, LEAT_FILE_CACHE_MAX,
                               &app->cache_bytes);
    case LEAT_OPT_MAX_REQUESTS:
        if (!leat_cli_number("max-requests", optarg, LEAT_HTTP_REQUESTS_MIN, LEAT_HTTP_REQUESTS_MAX,
                             &n)) {
            return false;
        }
        app->server.common.conn.max_streams_bidi = n;
        return true;
    case LEAT_OPT_HANDSHAKE_TIMEOUT:
        return leat_cli_seconds("handshake-timeout", optarg, LEAT_CLI_NOT_ZERO,
                                &app->server.common.conn.handshake_timeout);
    case LEAT_OPT_ONCE:
        app->once = true;
        return true;
    default:
        return leat_cli_server_take(&app->server, id, optarg);
    }
}

static leat_cli_exit parse(serve_app *app, int argc, char **argv)
{
    leat_cli_common *common = &app->server.common;
    leat_cli_parser parser;
    int id;

    leat_cli_parser_init(&parser, "serve", options, OPTIONS);
    while ((id = leat_cli_option_next(&parser, argc, argv)) != -1) {
        if (id == '?' || !take(app, id)) {
            return LEAT_EXIT_USAGE;
        }
    }
    if (argc - optind > 1) {
        leat_cli_error("one folder, not %d (try 'leat serve --help')", argc - optind);
        return LEAT_EXIT_USAGE;
    }
    app->folder = optind < argc ? argv[optind] : ".";
    if (!leat_cli_server_check(&app->server)) {
        return LEAT_EXIT_USAGE;
    }
    if (common->alpn_count == 0) {
        common->alpn[common->alpn_count++] = LEAT_HTTP_ALPN_H3;
        common->alpn[common->alpn_count++] = LEAT_HTTP_ALPN_HQ;
    }
    return LEAT_EXIT_OK;
}

static leat_cli_exit open_folder(serve_app *app)
{
    struct rlimit files;

    app->root = open(app->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (app->root < 0) {
        leat_cli_error("cannot serve %s: %s", app->folder, strerror(errno));
        return LEAT_EXIT_FILE;
    }
    /* Each running request may hold a file open. */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    return LEAT_EXIT_OK;
}

/* Receives at a preferred address, too. */
static leat_cli_exit open_preferred(serve_app *app, const leat_addr *at)
{
    char text[LEAT_ADDR_TEXT_MAX];
    leat_udp_settings udp;
    leat_addr local;
    leat_err err;

    if (!at->family) {
        return LEAT_EXIT_OK;
    }
    leat_udp_settings_init(&udp);
    udp.local = *at;
    udp.no_offload = app->server.common.no_offload;
    err = leat_udp_add(app->server.udp, &udp, &local);
    if (err == LEAT_OK) {
        return LEAT_EXIT_OK;
    }
    leat_cli_error("cannot listen on %s: %s", leat_addr_format(at, text), leat_cli_why(err));
    return leat_cli_exit_of(err, LEAT_EXIT_ADDRESS);
}

static leat_cli_exit listen_one(serve_app *app)
{
    leat_endpoint_settings endpoint;
    leat_cli_exit exit_code;

    leat_endpoint_settings_init(&endpoint);
    endpoint.events = &conn_events;
    endpoint.user = app;
    endpoint.shared = app->shared;
    endpoint.preferred_ip4 = app->preferred_ip4;
    endpoint.preferred_ip6 = app->preferred_ip6;
    /* Each thread's share. */
    endpoint.retry_above =
        (size_t)((app->retry_above + app->server.threads - 1) / app->server.threads);
    if (app->max_conns) {
        endpoint.max_conns =
            (size_t)((app->max_conns + app->server.threads - 1) / app->server.threads);
    }
    leat_cli_cache_init(&app->cache, mem_of(app), app->root, app->cache_bytes, leat_cli_wall);
    exit_code = leat_cli_server_listen(&app->server, &endpoint);
    if (exit_code == LEAT_EXIT_OK) {
        exit_code = open_preferred(app, &app->preferred_ip4);
    }
    return exit_code == LEAT_EXIT_OK ? open_preferred(app, &app->preferred_ip6) : exit_code;
}

/* apps[0] has the options; the others are made here. */
static leat_cli_exit start(serve_app *apps)
{
    leat_cli_exit exit_code = open_folder(apps);

    if (apps->server.threads > 1 && (apps->preferred_ip4.family || apps->preferred_ip6.family)) {
        leat_cli_error("--preferred-address goes with --threads 1 alone");
        return LEAT_EXIT_USAGE;
    }
    if (exit_code == LEAT_EXIT_OK) {
        apps->server.common.tls.tickets = 1;
        exit_code = leat_cli_server_start(&apps->server);
    }
    if (exit_code == LEAT_EXIT_OK) {
        exit_code = leat_cli_shared_new(apps->ticket_key_path, apps->server.common.conn.early_data,
                                        &apps->shared);
    }
    if (exit_code == LEAT_EXIT_OK) {
        exit_code = listen_one(apps);
    }
    for (size_t i = 1; i < apps->server.threads && exit_code == LEAT_EXIT_OK; i++) {
        apps[i] = apps[0];
        exit_code = leat_cli_server_join(&apps[i].server, &apps->server);
        if (exit_code == LEAT_EXIT_OK) {
            exit_code = listen_one(&apps[i]);
        }
    }
    return exit_code;
}

/* ---- the end ---- */

static size_t running(const serve_app *app)
{
    size_t n = 0;

    for (const serve_conn *conn = app->first; conn; conn = conn->next) {
        n += leat_http_exchanges(conn->http);
    }
    return n;
}

/* Takes no new requests, lets those there finish, and says goodbye. */
static void wind_down(leat_cli_server *server)
{
    serve_app *app = (serve_app *)(void *)server;
    leat_time deadline = leat_clock_now() + DRAIN;
    int before = leat_cli_server_signals();

    for (serve_conn *conn = app->first; conn; conn = conn->next) {
        leat_http_shutdown(conn->http);
    }
    while (running(app) && leat_cli_server_signals() == before && leat_clock_now() < deadline) {
        if (leat_loop_turn(app->server.loop, deadline) != LEAT_OK) {
            break;
        }
    }
    leat_cli_server_goodbye(&app->server, LEAT_H3_NO_ERROR);
}

static leat_cli_exit release(serve_app *apps, leat_cli_exit exit_code)
{
    for (size_t i = 0; i < apps->server.threads; i++) {
        if (apps[i].server.loop) {
            leat_cli_cache_free(&apps[i].cache);
        }
    }
    for (size_t i = 1; i < apps->server.threads; i++) {
        leat_cli_server_leave(&apps[i].server);
    }
    exit_code = leat_cli_server_release(&apps->server, exit_code);
    leat_shared_free(apps->shared);
    if (apps->root >= 0) {
        close(apps->root);
    }
    return exit_code;
}

int leat_cli_serve(int argc, char **argv)
{
    static serve_app apps[LEAT_UDP_GROUP_MAX]; /* one a thread */
    leat_cli_exit exit_code;

    apps->root = -1;
    apps->retry_above = LEAT_RETRY_ABOVE_DEFAULT;
    apps->cache_bytes = LEAT_FILE_CACHE_DEFAULT;
    leat_cli_server_init(&apps->server);
    exit_code = parse(apps, argc, argv);
    if (exit_code != LEAT_EXIT_OK) {
        return exit_code;
    }
    if (apps->server.common.help) {
        print_help();
        return LEAT_EXIT_OK;
    }
    exit_code = start(apps);
    if (exit_code == LEAT_EXIT_OK) {
        exit_code = leat_cli_server_run_all(&apps->server, sizeof *apps, wind_down);
    }
    return release(apps, exit_code);
}
