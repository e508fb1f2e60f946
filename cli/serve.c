/* cli/serve.c: `leat serve`: the files of a folder, over whatever HTTP the client's ALPN picks.
 *
 * A request opens its file, the response's pull function reads it straight into the stream's send
 * buffer, and the end of the exchange closes it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    PEM_MOST = 1 << 20, /* bytes of a certificate or key file */
    CERT_DAYS = 30,     /* how long a certificate made at start-up lasts */
    DAY = 86400
};
static const leat_time DRAIN = 5 * LEAT_SECOND; /* for running transfers, at the end */

#define SERVE_OPTIONS(X)                                                                           \
    X(LISTEN, "listen", 'l', "ADDR:PORT", "where to listen (default: :4433, any address)")         \
    X(CERT, "cert", 0, "FILE", "certificate chain, PEM (default: self-signed, made at start-up)")  \
    X(KEY, "key", 0, "FILE", "its private key, PEM")                                               \
    X(RETRY, "retry", 0, NULL, "have clients prove their address by a Retry packet")               \
    X(TICKET_KEY, "ticket-key", 0, "FILE",                                                         \
      "64 bytes, kept so that session tickets outlive a restart; made when there is no such file") \
    X(EARLY_DATA, "early-data", 0, NULL,                                                           \
      "take requests as 0-RTT; each ticket is good for it once")                                   \
    X(MAX_CONNS, "max-conns", 0, "N", "connections at once")                                       \
    X(MAX_REQUESTS, "max-requests", 0, "N", "requests that a client may have open at once")        \
    X(HANDSHAKE_TIMEOUT, "handshake-timeout", 0, "SECONDS",                                        \
      "give up a handshake that takes longer (default: 10)")                                       \
    X(ONCE, "once", 0, NULL, "end after the first connection")

enum serve_id {
    LEAT_OPT_SERVE_FIRST = LEAT_OPT_COMMON_END,
    SERVE_OPTIONS(LEAT_CLI_OPTION_ENUM) LEAT_OPT_SERVE_END
};

static const leat_cli_option options[] = {SERVE_OPTIONS(LEAT_CLI_OPTION_ROW)
                                              LEAT_CLI_COMMON_OPTIONS(LEAT_CLI_OPTION_ROW)};

enum { OPTIONS = sizeof options / sizeof options[0] };

typedef struct serve_conn serve_conn;

typedef struct serve_app {
    leat_cli_common common;
    const char *folder, *listen, *cert_path, *key_path, *ticket_key_path;
    uint64_t max_conns;
    bool once;
    int root;
    leat_loop *loop;
    leat_udp *udp;
    leat_tls_config *tls;
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
    leat_cli_file file;
    uint64_t offset;
} serve_file;

static volatile sig_atomic_t signals;
static leat_loop *signalled_loop;

static void on_signal(int number)
{
    (void)number;
    signals++;
    leat_loop_stop(signalled_loop);
}

/* ---- requests ---- */

static leat_err pull(leat_http_exchange *x, leat_mspan room, size_t *got, bool *end, void *user)
{
    serve_file *f = user;
    serve_conn *conn = leat_http_user(leat_http_exchange_session(x));
    ssize_t n;

    do {
        n = pread(f->file.fd, room.data, room.len, (off_t)f->offset);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) {
        return LEAT_ERR_IO; /* unreadable, or shorter than it was */
    }
    f->offset += (uint64_t)n;
    *got = (size_t)n;
    *end = f->offset == f->file.size;
    conn->run.body_bytes += (uint64_t)n;
    leat_cli_steady_add(&conn->steady, (size_t)n);
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

static leat_err answer_file(leat_http_exchange *x, const leat_cli_file *file)
{
    serve_conn *conn = leat_http_user(leat_http_exchange_session(x));
    serve_file *f = leat_mem_calloc(leat_ctx_mem(leat_loop_ctx(conn->app->loop)), 1, sizeof *f);
    leat_http_field type = {text("content-type"), text(file->type)};
    leat_http_response_head answer = {
        .status = 200, .fields = &type, .field_count = 1, .body = {pull, file->size}};

    if (!f) {
        close(file->fd);
        return answer_status(x, 503);
    }
    f->file = *file;
    leat_http_exchange_set_user(x, f); /* closed with the exchange */
    return leat_http_respond(x, &answer);
}

static void on_request(leat_http_exchange *x, const leat_http_head *head, void *user)
{
    serve_conn *conn = user;
    leat_cli_file file;
    unsigned status = 405;
    leat_err err;

    if (is(head->method, "GET") || is(head->method, "HEAD")) {
        status = leat_cli_file_open(conn->app->root, head->path, &file);
    }
    if (conn->app->common.verbose) {
        log_request(x, head, status);
    }
    err = status == 200 ? answer_file(x, &file) : answer_status(x, status);
    if (err != LEAT_OK) {
        leat_http_cancel(x, LEAT_H3_INTERNAL_ERROR);
    }
}

static void on_exchange_closed(leat_http_exchange *x, const leat_http_end *end, void *user)
{
    serve_conn *conn = user;
    serve_file *f = leat_http_exchange_user(x);

    if (f) {
        close(f->file.fd);
        leat_mem_release(leat_ctx_mem(leat_loop_ctx(conn->app->loop)), f);
    }
    if (end->err != LEAT_OK && conn->app->common.verbose) {
        fprintf(stderr, "a transfer ended early: %s\n", leat_err_text(end->err));
    }
}

/* ---- connections ---- */

static void on_http_closed(leat_http *http, const leat_close_info *info, void *user)
{
    serve_conn *conn = user;
    serve_app *app = conn->app;

    (void)info;
    if (app->common.stats) {
        leat_cli_print_stats(leat_http_conn(http), app->udp, &conn->run, &conn->steady);
    }
    *(conn->prev ? &conn->prev->next : &app->first) = conn->next;
    if (conn->next) {
        conn->next->prev = conn->prev;
    }
    leat_mem_release(leat_ctx_mem(leat_loop_ctx(app->loop)), conn);
    if (app->once) {
        leat_loop_stop(app->loop);
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
    serve_conn *conn = leat_mem_calloc(leat_ctx_mem(leat_loop_ctx(app->loop)), 1, sizeof *conn);
    leat_http_settings settings;
    leat_err err = LEAT_ERR_NOMEM;

    leat_http_settings_init(&settings);
    settings.max_requests = (size_t)app->common.conn.max_streams_bidi;
    if (conn) {
        conn->app = app;
        conn->run.started = leat_ctx_now(leat_loop_ctx(app->loop));
        err = leat_http_attach(quic, &settings, &http_events, conn, &conn->http);
    }
    if (err != LEAT_OK) {
        leat_mem_release(leat_ctx_mem(leat_loop_ctx(app->loop)), conn);
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

    if (app->common.verbose) {
        fprintf(stderr, "%s: no connection: %s\n", leat_addr_format(leat_conn_remote(quic), remote),
                info->detail ? info->detail : leat_err_text(info->err));
    }
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

static bool take(serve_app *app, int id)
{
    uint64_t n;

    switch (id) {
    case LEAT_OPT_LISTEN:
        app->listen = optarg;
        return true;
    case LEAT_OPT_CERT:
        app->cert_path = optarg;
        return true;
    case LEAT_OPT_KEY:
        app->key_path = optarg;
        return true;
    case LEAT_OPT_TICKET_KEY:
        app->ticket_key_path = optarg;
        return true;
    case LEAT_OPT_EARLY_DATA:
        app->common.conn.early_data = true;
        return true;
    case LEAT_OPT_RETRY:
        app->common.conn.wait_for_validation = true;
        return true;
    case LEAT_OPT_MAX_CONNS:
        return leat_cli_number("max-conns", optarg, 1, UINT32_MAX, &app->max_conns);
    case LEAT_OPT_MAX_REQUESTS:
        if (!leat_cli_number("max-requests", optarg, LEAT_HTTP_REQUESTS_MIN, LEAT_HTTP_REQUESTS_MAX,
                             &n)) {
            return false;
        }
        app->common.conn.max_streams_bidi = n;
        return true;
    case LEAT_OPT_HANDSHAKE_TIMEOUT:
        return leat_cli_seconds("handshake-timeout", optarg, &app->common.conn.handshake_timeout);
    case LEAT_OPT_ONCE:
        app->once = true;
        return true;
    default:
        return leat_cli_common_take(&app->common, id, optarg);
    }
}

static leat_cli_exit parse(serve_app *app, int argc, char **argv)
{
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
    if (!app->cert_path != !app->key_path) {
        leat_cli_error("--cert and --key go together");
        return LEAT_EXIT_USAGE;
    }
    if (app->common.alpn_count == 0) {
        app->common.alpn[app->common.alpn_count++] = LEAT_HTTP_ALPN_H3;
        app->common.alpn[app->common.alpn_count++] = LEAT_HTTP_ALPN_HQ;
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
    /* Each running request holds a file open. */
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    return LEAT_EXIT_OK;
}

static leat_cli_exit read_pem(serve_app *app, const char *path, leat_buf *out)
{
    leat_err err = leat_file_read(leat_ctx_mem(leat_loop_ctx(app->loop)), path, PEM_MOST, out);

    if (err == LEAT_OK) {
        return LEAT_EXIT_OK;
    }
    leat_cli_error("cannot read %s: %s", path,
                   err == LEAT_ERR_IO ? strerror(errno) : leat_err_text(err));
    return LEAT_EXIT_FILE;
}

static leat_cli_exit make_tls(serve_app *app, leat_span cert, leat_span key)
{
    leat_tls_error error = {.text = ""};
    leat_err err;

    app->common.tls.tickets = 1;
    app->common.tls.cert_pem = cert;
    app->common.tls.key_pem = key;
    err = leat_tls_config_server(&app->common.tls, &app->tls, &error);
    if (err == LEAT_OK) {
        return LEAT_EXIT_OK;
    }
    leat_cli_error("%s%s%s", app->cert_path ? app->cert_path : "TLS", ": ",
                   error.text[0] ? error.text : leat_err_text(err));
    return err == LEAT_ERR_CERTIFICATE ? LEAT_EXIT_CERTIFICATE : LEAT_EXIT_FAILURE;
}

static leat_cli_exit tls_from_files(serve_app *app)
{
    leat_buf cert = {NULL, 0, NULL}, key = {NULL, 0, NULL};
    leat_cli_exit exit_code = read_pem(app, app->cert_path, &cert);

    if (exit_code == LEAT_EXIT_OK) {
        exit_code = read_pem(app, app->key_path, &key);
    }
    if (exit_code == LEAT_EXIT_OK) {
        /* The zero byte at the end is not PEM. */
        exit_code =
            make_tls(app, (leat_span){cert.data, cert.len - 1}, (leat_span){key.data, key.len - 1});
    }
    leat_buf_release(&cert);
    leat_buf_release(&key);
    return exit_code;
}

static leat_cli_exit tls_self_signed(serve_app *app)
{
    static char cert[LEAT_TLS_PEM_MAX], key[LEAT_TLS_PEM_MAX], host[256];
    const char *hosts[4] = {"localhost", "127.0.0.1", "::1", host};
    int64_t now = (int64_t)time(NULL);
    leat_tls_self_signed request = {.hosts = hosts,
                                    .host_count = 3,
                                    .not_before = now - DAY,
                                    .not_after = now + CERT_DAYS * DAY};
    size_t cert_len, key_len;
    leat_tls_error error = {.text = ""};
    leat_err err;

    if (gethostname(host, sizeof host - 1) == 0 && host[0] && strcmp(host, hosts[0]) != 0) {
        request.host_count++;
    }
    err = leat_tls_make_self_signed(&request, cert, &cert_len, key, &key_len, &error);
    if (err != LEAT_OK) {
        leat_cli_error("cannot make a certificate: %s",
                       error.text[0] ? error.text : leat_err_text(err));
        return LEAT_EXIT_CERTIFICATE;
    }
    return make_tls(app, (leat_span){(const uint8_t *)cert, cert_len},
                    (leat_span){(const uint8_t *)key, key_len});
}

static leat_cli_exit make_shared(serve_app *app)
{
    uint8_t key[LEAT_TLS_TICKET_KEY];
    leat_shared_settings settings;
    leat_err err = LEAT_ERR_IO;

    leat_shared_settings_init(&settings);
    if (app->ticket_key_path) {
        if (!leat_cli_ticket_key(app->ticket_key_path, key)) {
            return LEAT_EXIT_FILE;
        }
        settings.ticket_key = (leat_span){key, sizeof key};
    }
    if (!app->common.conn.early_data) {
        settings.early_tickets = 0;
    }
    if (leat_cli_random(settings.seed, sizeof settings.seed)) {
        err = leat_shared_new(&settings, &app->shared);
    }
    explicit_bzero(key, sizeof key);
    explicit_bzero(&settings, sizeof settings);
    return err == LEAT_OK ? LEAT_EXIT_OK : LEAT_EXIT_FAILURE;
}

static leat_cli_exit open_socket(serve_app *app)
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
    endpoint.events = &conn_events;
    endpoint.user = app;
    endpoint.shared = app->shared;
    if (app->max_conns) {
        endpoint.max_conns = (size_t)app->max_conns;
    }
    if (app->common.qlog) {
        endpoint.events_sink = leat_qlog_sink(app->common.qlog);
    }
    err = leat_udp_open(app->loop, &udp, &endpoint, &app->udp);
    if (err != LEAT_OK) {
        leat_cli_error("cannot listen on %s: %s", app->listen,
                       err == LEAT_ERR_IO ? strerror(errno) : leat_err_text(err));
        return err == LEAT_ERR_IO || err == LEAT_ERR_ADDRESS ? LEAT_EXIT_ADDRESS
                                                             : LEAT_EXIT_FAILURE;
    }
    return LEAT_EXIT_OK;
}

static leat_cli_exit start(serve_app *app)
{
    leat_cli_exit exit_code = open_folder(app);
    leat_err err;

    if (exit_code == LEAT_EXIT_OK) {
        exit_code = leat_cli_common_open(&app->common);
    }
    if (exit_code != LEAT_EXIT_OK) {
        return exit_code;
    }
    err = leat_loop_new(NULL, &app->loop);
    if (err != LEAT_OK) {
        leat_cli_error("cannot start: %s", leat_err_text(err));
        return LEAT_EXIT_FAILURE;
    }
    exit_code = app->cert_path ? tls_from_files(app) : tls_self_signed(app);
    if (exit_code == LEAT_EXIT_OK) {
        exit_code = make_shared(app);
    }
    return exit_code == LEAT_EXIT_OK ? open_socket(app) : exit_code;
}

static void watch_signals(serve_app *app)
{
    struct sigaction action = {.sa_handler = on_signal};

    signalled_loop = app->loop;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
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
static void wind_down(serve_app *app)
{
    leat_time deadline = leat_clock_now() + DRAIN;
    int before = signals;

    for (serve_conn *conn = app->first; conn; conn = conn->next) {
        leat_http_shutdown(conn->http);
    }
    while (running(app) && signals == before && leat_clock_now() < deadline) {
        if (leat_loop_turn(app->loop, deadline) != LEAT_OK) {
            break;
        }
    }
    leat_endpoint_close(leat_udp_endpoint(app->udp), LEAT_H3_NO_ERROR);
    leat_loop_turn(app->loop, 0); /* sends the CONNECTION_CLOSE frames */
}

static void release(serve_app *app)
{
    leat_loop_free(app->loop);
    leat_tls_config_free(app->tls);
    leat_shared_free(app->shared);
    leat_cli_common_close(&app->common);
    if (app->root >= 0) {
        close(app->root);
    }
}

int leat_cli_serve(int argc, char **argv)
{
    serve_app app = {.listen = ":4433", .root = -1};
    char local[LEAT_ADDR_TEXT_MAX];
    leat_cli_exit exit_code;
    leat_addr addr;

    leat_cli_common_init(&app.common);
    exit_code = parse(&app, argc, argv);
    if (exit_code != LEAT_EXIT_OK) {
        return exit_code;
    }
    if (app.common.help) {
        print_help();
        return LEAT_EXIT_OK;
    }
    exit_code = start(&app);
    if (exit_code == LEAT_EXIT_OK) {
        const char *warning = leat_udp_warning(app.udp);

        watch_signals(&app);
        leat_cli_warm(leat_ctx_mem(leat_loop_ctx(app.loop)));
        leat_cli_allocs_now();
        if (warning && app.common.verbose) {
            fprintf(stderr, "%s\n", warning);
        }
        addr = leat_udp_local(app.udp);
        fprintf(stderr, "listening on %s\n", leat_addr_format(&addr, local));
        fflush(stderr);
        if (leat_loop_run(app.loop) != LEAT_OK) {
            leat_cli_error("the loop failed: %s", strerror(errno));
            exit_code = LEAT_EXIT_FAILURE;
        }
        wind_down(&app);
    }
    release(&app);
    return exit_code;
}
