/* cli/rtp_send.c: `leat rtp send`: takes RTP by UDP and carries it to `leat rtp recv`, or whoever
 * else speaks RTP over QUIC.
 *
 * The connection is made anew when it is lost, with the session of the one before, at once and then
 * at growing intervals; media that comes meanwhile is dropped. The socket is bound to the address
 * that the system sends from; each second it is asked again, and when another is the answer
 * (another network, a cable pulled) the connection moves to a socket there.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/estimate.h>

#include "rtp_carry.h"

#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define SEND_OPTIONS(X)                                                                            \
    X(IN, "in", 0, "URL", "take a flow's RTP at udp://[ADDR]:PORT; options for it follow")         \
    X(ESTIMATE_TO, "estimate-to", 0, "URL",                                                        \
      "tell an encoder its rate, each second: udp://HOST:PORT or fd:N")                            \
    X(START_RATE, "start-rate", 0, "BITS", "a second, before the path is known (default 1000000)") \
    X(MAX_RATE, "max-rate", 0, "BITS", "a second that are sent at most (default 100000000)")       \
    X(INSECURE, "insecure", 'k', NULL, "accept any certificate")                                   \
    X(CA, "ca", 0, "FILE", "believe the authorities in FILE, PEM (default: the system's)")         \
    X(NAME, "name", 0, "NAME", "the name that the certificate must have (default: HOST)")          \
    X(SESSION_FILE, "session-file", 0, "FILE", "resume the session in FILE, and keep the next")    \
    X(TIMEOUT, "timeout", 0, "SECONDS", "for a connection to be made (default 5)")                 \
    X(WAIT, "wait", 0, NULL, "keep trying where the first connection cannot be made")              \
    X(NO_RECONNECT, "no-reconnect", 0, NULL, "end when the connection is lost")

enum send_id {
    LEAT_OPT_SEND_FIRST = LEAT_OPT_SERVER_END,
    SEND_OPTIONS(LEAT_CLI_OPTION_ENUM) CARRY_OPTIONS(LEAT_CLI_OPTION_ENUM)
};

static const leat_cli_option options[] = {SEND_OPTIONS(LEAT_CLI_OPTION_ROW) CARRY_OPTIONS(
    LEAT_CLI_OPTION_ROW) CARRY_COMMON_OPTIONS(LEAT_CLI_OPTION_ROW)};

static const leat_time RETRY_FIRST = 100 * LEAT_MILLISECOND, RETRY_MOST = 2 * LEAT_SECOND,
                       LOOK_EVERY = LEAT_SECOND;

typedef struct send_app {
    carry carry; /* first: carry_main() knows it alone */
    const char *ca_path, *session_path, *name, *estimate_to;
    char host[256];
    leat_addr remote;
    bool insecure, wait, no_reconnect;
    bool was_connected;
    leat_cli_exit exit_code;
    leat_conn *conn;
    leat_cli_session session;
    leat_timer retry;
    leat_time retry_after;
    leat_timer look;     /* at the address that we send from */
    bool own_congestion; /* --congestion: no estimator */
    leat_estimate estimate;
    leat_estimate_settings rates;
} send_app;

/* ---- the address ---- */

/* The address from which the system would send to the peer; family 0: none, there is no way. */
static leat_addr source_address(const leat_addr *remote)
{
    struct sockaddr_storage s = {.ss_family = AF_UNSPEC};
    leat_addr local = {.family = 0};
    socklen_t len;
    int fd;

    if (remote->family == 6) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&s;

        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(remote->port);
        in6->sin6_scope_id = remote->scope;
        memcpy(&in6->sin6_addr, remote->ip, 16);
        len = sizeof *in6;
    } else {
        struct sockaddr_in *in = (struct sockaddr_in *)&s;

        in->sin_family = AF_INET;
        in->sin_port = htons(remote->port);
        memcpy(&in->sin_addr, remote->ip, 4);
        len = sizeof *in;
    }
    fd = socket(s.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0) {
        if (connect(fd, (struct sockaddr *)&s, len) == 0) {
            local = leat_cli_udp_local(fd);
        }
        close(fd);
    }
    return local;
}

static bool same_host(const leat_addr *a, const leat_addr *b)
{
    return a->family == b->family && a->scope == b->scope && memcmp(a->ip, b->ip, 16) == 0;
}

/* The socket is bound to all addresses: what the connection names is what packets leave from. */
static void look_at_address(leat_timer *timer, leat_time now)
{
    send_app *app = (send_app *)(void *)((char *)timer - offsetof(send_app, look));
    char text[LEAT_ADDR_TEXT_MAX];

    leat_timer_set(timer, now + LOOK_EVERY);
    if (app->conn && leat_conn_is_connected(app->conn)) {
        leat_addr local = source_address(&app->remote);
        const leat_addr *present = leat_conn_local(app->conn);

        if (local.family && !same_host(&local, present)) {
            local.port = leat_udp_local(app->carry.server.udp).port;
            if (leat_conn_migrate(app->conn, &local) == LEAT_OK) {
                carry_say(&app->carry, "migrating", leat_addr_format(&local, text));
            }
        }
    }
}

/* ---- the connection ---- */

static void try_again(send_app *app);

static leat_cli_exit exit_of(const leat_close_info *info)
{
    switch (info->kind) {
    case LEAT_CLOSE_HANDSHAKE_TIMEOUT:
    case LEAT_CLOSE_IDLE:
        return LEAT_EXIT_TIMEOUT;
    default:
        return info->err == LEAT_ERR_CERTIFICATE ? LEAT_EXIT_CERTIFICATE : LEAT_EXIT_BROKEN;
    }
}

/* The peer said why, and it will say so again. */
static bool is_final(const send_app *app, const leat_close_info *info)
{
    if (info->kind == LEAT_CLOSE_PEER && info->application && info->code != LEAT_ROQ_NO_ERROR) {
        return true;
    }
    if (info->err == LEAT_ERR_CERTIFICATE) {
        return true;
    }
    return app->was_connected ? app->no_reconnect : !app->wait;
}

static void on_roq_closed(leat_roq *roq, const leat_close_info *info, void *user)
{
    send_app *app = user;
    char text[CARRY_WHY];

    (void)carry_over(&app->carry, roq);
    app->conn = NULL;
    if (app->carry.ending) {
        return;
    }
    carry_say(&app->carry, app->was_connected ? "closed" : "no connection", carry_why(info, text));
    if (is_final(app, info)) {
        leat_cli_error("%s: %s", app->host, carry_why(info, text));
        app->exit_code = exit_of(info);
        leat_loop_stop(app->carry.server.loop);
        return;
    }
    try_again(app);
}

static void on_token(leat_roq *roq, leat_span token, void *user)
{
    send_app *app = user;

    (void)roq;
    leat_cli_session_keep_token(&app->session, token);
}

static void on_ticket(leat_roq *roq, leat_span session, void *user)
{
    send_app *app = user;

    (void)roq;
    leat_cli_session_keep(&app->session, session);
}

/* The encoder's rate; what comes before the first packet is a guess that nobody needs to hear. */
static void on_estimated(leat_roq *roq, uint64_t target_rate, void *user)
{
    send_app *app = user;

    (void)roq;
    app->rates.start_rate = target_rate; /* for the next connection */
    carry_estimate_set(&app->carry, target_rate);
}

static void start_estimate(send_app *app)
{
    if (!app->own_congestion &&
        leat_estimate_init(&app->estimate, NULL, &app->rates, NULL) == LEAT_OK) {
        leat_roq_set_estimate(app->carry.roq, &app->estimate);
    }
}

static void on_roq_connected(leat_roq *roq, void *user)
{
    send_app *app = user;
    char remote[LEAT_ADDR_TEXT_MAX], text[LEAT_ADDR_TEXT_MAX + 32];
    leat_conn *conn = leat_roq_conn(roq);

    app->carry.reconnects += app->was_connected;
    app->was_connected = true;
    app->retry_after = RETRY_FIRST;
    snprintf(text, sizeof text, "%s%s", leat_addr_format(leat_conn_remote(conn), remote),
             leat_conn_resumed(conn) ? ", session resumed" : "");
    carry_say(&app->carry, "connected", text);
}

static const leat_roq_events roq_events = {
    .connected = on_roq_connected,
    .packet = carry_on_packet,
    .unknown_flow = carry_on_unknown,
    .estimated = on_estimated,
    .token = on_token,
    .ticket = on_ticket,
    .closed = on_roq_closed,
};

/* For the moment between leat_conn_connect() and the session that takes over. */
static const leat_conn_events no_events = {.connected = NULL};

static leat_err connect_quic(send_app *app)
{
    leat_addr local = source_address(&app->remote);
    leat_connect how = {
        .remote = app->remote,
        .server_name = app->name ? app->name : app->host,
        .tls = app->carry.server.tls,
        .settings = &app->carry.server.common.conn,
        .events = &no_events,
        .session = {app->session.data, app->session.len},
        .token = app->session.token,
    };
    leat_err err;

    local.port = leat_udp_local(app->carry.server.udp).port;
    how.local = local;
    err = leat_conn_connect(leat_udp_endpoint(app->carry.server.udp), &how, &app->conn);
    if (err == LEAT_OK) {
        app->session.len = 0; /* each is good for once */
        leat_cli_session_token_used(&app->session);
        err = carry_attach(&app->carry, app->conn, &roq_events);
    }
    if (err == LEAT_OK) {
        start_estimate(app);
    }
    return err;
}

static void on_retry(leat_timer *timer, leat_time now)
{
    send_app *app = (send_app *)(void *)((char *)timer - offsetof(send_app, retry));
    leat_err err = connect_quic(app);

    (void)now;
    if (err != LEAT_OK) {
        carry_say(&app->carry, "no connection", leat_err_text(err));
        try_again(app);
    }
}

static void try_again(send_app *app)
{
    leat_timer_set(&app->retry,
                   leat_ctx_now(leat_loop_ctx(app->carry.server.loop)) + app->retry_after);
    app->retry_after = 2 * app->retry_after < RETRY_MOST ? 2 * app->retry_after : RETRY_MOST;
}

/* ---- start-up ---- */

static void help(void)
{
    puts("usage: leat rtp send [OPTION...] --in URL [OPTION...] [--in URL...] HOST:PORT\n\n"
         "Takes RTP and RTCP by UDP and carries them over QUIC, as\n"
         "draft-ietf-avtcore-rtp-over-quic-14 has it, to `leat rtp recv` at HOST:PORT; RTCP\n"
         "comes back the same way. Options behind an --in are that flow's, those before the\n"
         "first are the first one's. Statistics are a line on a terminal, JSON lines elsewhere.\n"
         "SIGINT and SIGTERM end it.\n");
}

static bool take_in(carry *app, const char *arg)
{
    leat_addr addr;

    return leat_cli_udp_url("in", arg, &addr) && carry_add_flow(app, &addr);
}

/* Bits a second: units are thousands, as rates have them, not 1024 as sizes. */
static bool take_rate(const char *what, const char *arg, uint64_t *out)
{
    static const char units[] = "kMG";
    char *end;
    unsigned long long v = strtoull(arg, &end, 10);
    const char *unit = *end ? strchr(units, *end == 'K' ? 'k' : *end) : NULL;
    bool good = end != arg && *arg != '-' && v <= LEAT_ESTIMATE_MAX_RATE_MAX &&
                (*end == 0 || (unit && end[1] == 0));

    for (const char *u = units; good && unit && u <= unit; u++) {
        v *= 1000;
    }
    if (!good || v < LEAT_ESTIMATE_MIN_RATE_MIN || v > LEAT_ESTIMATE_MAX_RATE_MAX) {
        leat_cli_error("--%s wants bits a second from %llu to %llu, k, M and G allowed, not '%s'",
                       what, (unsigned long long)LEAT_ESTIMATE_MIN_RATE_MIN,
                       (unsigned long long)LEAT_ESTIMATE_MAX_RATE_MAX, arg);
        return false;
    }
    *out = v;
    return true;
}

static bool take(carry *c, int id)
{
    send_app *app = (send_app *)c;

    switch (id) {
    case LEAT_OPT_IN:
        return take_in(c, optarg);
    case LEAT_OPT_ESTIMATE_TO:
        app->estimate_to = optarg;
        return true;
    case LEAT_OPT_START_RATE:
        return take_rate("start-rate", optarg, &app->rates.start_rate);
    case LEAT_OPT_MAX_RATE:
        return take_rate("max-rate", optarg, &app->rates.max_rate);
    case LEAT_OPT_CONGESTION:
        app->own_congestion = true;
        return leat_cli_common_take(&c->server.common, id, optarg);
    case LEAT_OPT_INSECURE:
        app->insecure = true;
        return true;
    case LEAT_OPT_CA:
        app->ca_path = optarg;
        return true;
    case LEAT_OPT_NAME:
        app->name = optarg;
        return true;
    case LEAT_OPT_SESSION_FILE:
        app->session_path = optarg;
        return true;
    case LEAT_OPT_TIMEOUT:
        return leat_cli_seconds("timeout", optarg, LEAT_CLI_NOT_ZERO,
                                &c->server.common.conn.handshake_timeout);
    case LEAT_OPT_WAIT:
        app->wait = true;
        return true;
    case LEAT_OPT_NO_RECONNECT:
        app->no_reconnect = true;
        return true;
    case LEAT_OPT_ALPN:
        c->alpn = optarg;
        return true;
    default:
        return id >= LEAT_OPT_FLOW ? carry_take(c, id, LEAT_OPT_FLOW, optarg)
                                   : leat_cli_common_take(&c->server.common, id, optarg);
    }
}

/* The host alone, without brackets, is the name to check the certificate for. */
static bool take_peer(send_app *app, const char *text)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;

    if (len == 0 || len >= sizeof app->host) {
        leat_cli_error("HOST:PORT is wanted, not '%s'", text);
        return false;
    }
    memcpy(app->host, text, len);
    if (app->host[0] == '[' && app->host[len - 1] == ']') {
        memmove(app->host, app->host + 1, len - 2);
        len -= 2;
    }
    app->host[len] = 0;
    return true;
}

static leat_cli_exit check(carry *c, int argc, char **argv)
{
    send_app *app = (send_app *)c;

    if (argc != 1 || c->flow_count == 0) {
        leat_cli_error("HOST:PORT and one --in or more are wanted (try 'leat rtp send --help')");
        return LEAT_EXIT_USAGE;
    }
    if (app->rates.start_rate > app->rates.max_rate) {
        app->rates.start_rate = app->rates.max_rate;
    }
    return take_peer(app, argv[0]) ? LEAT_EXIT_OK : LEAT_EXIT_USAGE;
}

static leat_cli_exit open_quic(send_app *app, const char *peer)
{
    const char *port = strrchr(peer, ':') + 1;
    leat_udp_settings udp;
    leat_endpoint_settings endpoint;
    size_t count = 0;
    leat_err err;

    char *end;
    unsigned long number = strtoul(port, &end, 10);

    if (*end || *port < '0' || *port > '9' || number == 0 || number > UINT16_MAX) {
        leat_cli_error("HOST:PORT wants a port from 1 to 65535, not '%s'", port);
        return LEAT_EXIT_USAGE;
    }
    if (leat_addr_resolve(app->host, (uint16_t)number, &app->remote, 1, &count) != LEAT_OK ||
        count == 0) {
        leat_cli_error("%s: there is no such host", app->host);
        return LEAT_EXIT_ADDRESS;
    }
    leat_udp_settings_init(&udp);
    udp.local.family = app->remote.family;
    udp.no_offload = app->carry.server.common.no_offload;
    leat_endpoint_settings_init(&endpoint);
    endpoint.events_sink = leat_cli_common_sink(&app->carry.server.common);
    err = leat_udp_open(app->carry.server.loop, &udp, &endpoint, &app->carry.server.udp);
    if (err == LEAT_OK) {
        err = connect_quic(app);
    }
    if (err != LEAT_OK) {
        leat_cli_error("cannot connect to %s: %s", peer,
                       err == LEAT_ERR_IO ? strerror(errno) : leat_err_text(err));
        return LEAT_EXIT_ADDRESS;
    }
    return LEAT_EXIT_OK;
}

static send_app *running; /* for the signals */

static void on_signal(int number)
{
    (void)number;
    leat_cli_rtp_stopped = true;
    if (running->carry.server.loop) {
        leat_loop_stop(running->carry.server.loop);
    }
}

static leat_cli_exit make_tls(send_app *app)
{
    leat_cli_server *server = &app->carry.server;
    leat_tls_settings *tls = &server->common.tls;

    tls->tickets = 1;
    tls->verify = tls->verify_host = !app->insecure;
    tls->system_ca = !app->ca_path && !app->insecure;
    return leat_cli_tls_client(tls, leat_cli_server_mem(server), app->ca_path, &server->tls);
}

/* What a connection needs before it is made. */
static leat_cli_exit prepare(send_app *app)
{
    leat_cli_server *server = &app->carry.server;
    leat_cli_exit exit_code;

    exit_code = leat_cli_common_open(&server->common);
    if (exit_code == LEAT_EXIT_OK) {
        exit_code = leat_cli_loop_new(&server->loop);
    }
    if (exit_code != LEAT_EXIT_OK) {
        return exit_code;
    }
    leat_timer_init(&app->retry, leat_loop_ctx(server->loop), on_retry);
    leat_timer_init(&app->look, leat_loop_ctx(server->loop), look_at_address);
    if (!app->session_path) {
        leat_cli_session_init(&app->session);
    } else if (!leat_cli_session_load(&app->session, app->session_path)) {
        return LEAT_EXIT_FILE;
    }
    if (app->estimate_to && !carry_estimate_open(&app->carry, app->estimate_to)) {
        return LEAT_EXIT_USAGE;
    }
    return make_tls(app);
}

static leat_cli_exit start(carry *c, char **argv)
{
    send_app *app = (send_app *)c;
    leat_cli_exit exit_code = prepare(app);
    leat_ctx *ctx;

    if (exit_code != LEAT_EXIT_OK) {
        return exit_code;
    }
    running = app;
    leat_cli_catch_signals(on_signal);
    signal(SIGPIPE, SIG_IGN); /* a reader of the statistics that went away */
    leat_cli_warm(leat_cli_server_mem(&c->server));
    leat_cli_allocs_now();
    ctx = leat_loop_ctx(c->server.loop);
    leat_ctx_set_now(ctx, leat_clock_now());
    leat_timer_set(&app->look, leat_ctx_now(ctx) + LOOK_EVERY);
    app->retry_after = RETRY_FIRST;
    exit_code = carry_open_ports(c);
    return exit_code == LEAT_EXIT_OK ? open_quic(app, argv[0]) : exit_code;
}

static leat_cli_exit run(carry *c)
{
    send_app *app = (send_app *)c;

    if (leat_loop_run(c->server.loop) != LEAT_OK) {
        leat_cli_error("the loop failed: %s", strerror(errno));
        app->exit_code = LEAT_EXIT_FAILURE;
    }
    return app->exit_code;
}

/* The loop's end tells the connection's `closed`. */
static leat_cli_exit release(carry *c, leat_cli_exit exit_code)
{
    send_app *app = (send_app *)c;

    if (c->server.loop) {
        leat_timer_unset(&app->retry);
        leat_timer_unset(&app->look);
    }
    exit_code = leat_cli_server_release(&c->server, exit_code);
    if (app->session_path && !leat_cli_session_save(&app->session) && exit_code == LEAT_EXIT_OK) {
        exit_code = LEAT_EXIT_FILE;
    }
    leat_cli_session_free(&app->session);
    return exit_code;
}

int leat_cli_rtp_send(int argc, char **argv)
{
    static const carry_command command = {
        .name = "rtp send",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .help = help,
        .take = take,
        .check = check,
        .start = start,
        .run = run,
        .release = release,
    };
    static send_app app;

    carry_init(&app.carry, true);
    leat_estimate_settings_init(&app.rates);
    app.rates.start_rate = 1000000;
    app.carry.server.common.conn.handshake_timeout = 5 * LEAT_SECOND;
    app.carry.server.common.conn.keep_alive = LEAT_SECOND;
    return carry_main(&app.carry, &command, argc, argv);
}
