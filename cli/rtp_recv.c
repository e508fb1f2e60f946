/* cli/rtp_recv.c: `leat rtp recv`: takes one sender's RTP over QUIC and hands it on by UDP.
 *
 * The newest connection is the one that counts: a sender that lost its path comes back before the
 * old connection has timed out here. The old one is told that it was replaced.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rtp_carry.h"

#define RECV_OPTIONS(X)                                                                            \
    X(OUT, "out", 'o', "URL", "send a flow's RTP to udp://HOST:PORT; options for it follow")       \
    X(RTCP_IN, "rtcp-in", 0, "URL",                                                                \
      "take the program's RTCP at udp://HOST:PORT (default: its answers)")                         \
    X(RETRY, "retry", 0, NULL, "have senders prove their address by a Retry packet")               \
    X(TICKET_KEY, "ticket-key", 0, "FILE",                                                         \
      "64 bytes, kept so that sessions outlive a restart, and senders hear of it; made when"       \
      " there is no such file")                                                                    \
    X(ONCE, "once", 0, NULL, "end after the first connection")

enum recv_id {
    LEAT_OPT_RECV_FIRST = LEAT_OPT_SERVER_END,
    RECV_OPTIONS(LEAT_CLI_OPTION_ENUM) CARRY_OPTIONS(LEAT_CLI_OPTION_ENUM)
};

static const leat_cli_option options[] = {
    LEAT_CLI_SERVER_OPTIONS(LEAT_CLI_OPTION_ROW) RECV_OPTIONS(LEAT_CLI_OPTION_ROW)
        CARRY_OPTIONS(LEAT_CLI_OPTION_ROW) CARRY_COMMON_OPTIONS(LEAT_CLI_OPTION_ROW)};

typedef struct recv_app {
    carry carry; /* first: carry_main() knows it alone */
    bool once;
    const char *ticket_key_path;
    leat_shared *shared;
} recv_app;

/* ---- sessions ---- */

static void on_closed(leat_roq *roq, const leat_close_info *info, void *user)
{
    recv_app *app = user;
    char text[CARRY_WHY];

    if (!carry_over(&app->carry, roq)) {
        return; /* it was replaced */
    }
    carry_say(&app->carry, "closed", carry_why(info, text));
    if (app->once) {
        leat_loop_stop(app->carry.server.loop);
    }
}

static const leat_roq_events roq_events = {
    .packet = carry_on_packet, .unknown_flow = carry_on_unknown, .closed = on_closed};

/* The present connection, if there is one, makes place for another. */
static void replace(recv_app *app, const leat_conn *by)
{
    leat_roq *old = app->carry.roq;
    char before[LEAT_ADDR_TEXT_MAX], after[LEAT_ADDR_TEXT_MAX], text[2 * LEAT_ADDR_TEXT_MAX + 8];

    carry_detach(&app->carry);
    if (old) {
        app->carry.reconnects++;
        snprintf(text, sizeof text, "%s by %s",
                 leat_addr_format(leat_conn_remote(leat_roq_conn(old)), before),
                 leat_addr_format(leat_conn_remote(by), after));
        carry_say(&app->carry, "replaced", text);
        leat_roq_close(old, LEAT_ROQ_GENERAL_ERROR, "another connection took over");
    }
}

static void on_connected(leat_conn *conn, void *user)
{
    recv_app *app = user;
    char remote[LEAT_ADDR_TEXT_MAX];
    leat_err err;

    replace(app, conn);
    err = carry_attach(&app->carry, conn, &roq_events);
    if (err != LEAT_OK) {
        leat_conn_close(conn, LEAT_ROQ_INTERNAL_ERROR, (leat_span){NULL, 0});
        return;
    }
    carry_say(&app->carry, "connected", leat_addr_format(leat_conn_remote(conn), remote));
}

static const leat_conn_events conn_events = {.connected = on_connected};

/* ---- start-up ---- */

static void help(void)
{
    puts("usage: leat rtp recv [OPTION...] --out URL [OPTION...] [--out URL...]\n\n"
         "Takes RTP and RTCP over QUIC (draft-ietf-avtcore-rtp-over-quic-14) and hands each\n"
         "flow on by UDP; RTCP goes back the same way. Options behind an --out are that flow's,\n"
         "those before the first are the first one's. Says 'listening on ADDR:PORT' on stderr.\n"
         "Statistics are a line on a terminal, JSON lines elsewhere. SIGINT and SIGTERM end it.\n");
}

static bool take_out(carry *app, const char *arg)
{
    leat_addr addr;

    return leat_cli_udp_target("out", arg, &addr) && carry_add_flow(app, &addr);
}

static bool take(carry *app, int id)
{
    switch (id) {
    case LEAT_OPT_OUT:
        return take_out(app, optarg);
    case LEAT_OPT_RTCP_IN:
        return leat_cli_udp_url("rtcp-in", optarg,
                                &app->flows[app->flow_count ? app->flow_count - 1 : 0].rtcp_in);
    case LEAT_OPT_RETRY:
        app->server.common.conn.wait_for_validation = true;
        return true;
    case LEAT_OPT_TICKET_KEY:
        ((recv_app *)app)->ticket_key_path = optarg;
        return true;
    case LEAT_OPT_ONCE:
        ((recv_app *)app)->once = true;
        return true;
    case LEAT_OPT_ALPN:
        app->alpn = optarg;
        return true;
    default:
        return id >= LEAT_OPT_FLOW ? carry_take(app, id, LEAT_OPT_FLOW, optarg)
                                   : leat_cli_server_take(&app->server, id, optarg);
    }
}

static leat_cli_exit check(carry *app, int argc, char **argv)
{
    (void)argv;
    if (argc != 0 || app->flow_count == 0) {
        leat_cli_error(
            "one --out or more are wanted, and no arguments (try 'leat rtp recv --help')");
        return LEAT_EXIT_USAGE;
    }
    return leat_cli_server_check(&app->server) ? LEAT_EXIT_OK : LEAT_EXIT_USAGE;
}

static leat_cli_exit start(carry *app, char **argv)
{
    recv_app *recv = (recv_app *)app;
    leat_endpoint_settings endpoint;
    leat_cli_exit exit_code;

    (void)argv;
    app->server.common.tls.tickets = 1;
    exit_code = leat_cli_server_start(&app->server);
    if (exit_code == LEAT_EXIT_OK) {
        exit_code = leat_cli_shared_new(recv->ticket_key_path, false, &recv->shared);
    }
    if (exit_code == LEAT_EXIT_OK) {
        exit_code = carry_open_ports(app);
    }
    if (exit_code != LEAT_EXIT_OK) {
        return exit_code;
    }
    leat_endpoint_settings_init(&endpoint);
    endpoint.events = &conn_events;
    endpoint.user = app;
    endpoint.shared = recv->shared;
    return leat_cli_server_listen(&app->server, &endpoint);
}

static leat_cli_exit run(carry *app)
{
    return leat_cli_server_run(&app->server);
}

static leat_cli_exit release(carry *app, leat_cli_exit exit_code)
{
    exit_code = leat_cli_server_release(&app->server, exit_code);
    leat_shared_free(((recv_app *)app)->shared);
    return exit_code;
}

int leat_cli_rtp_recv(int argc, char **argv)
{
    static const carry_command command = {
        .name = "rtp recv",
        .options = options,
        .option_count = sizeof options / sizeof options[0],
        .help = help,
        .take = take,
        .check = check,
        .start = start,
        .run = run,
        .release = release,
    };
    static recv_app app;

    carry_init(&app.carry, false);
    return carry_main(&app.carry, &command, argc, argv);
}
