/* cli/rtp_carry.c: flows: UDP on one side, RTP over QUIC on the other.
 *
 * A packet that comes in by UDP is queued on its flow's session at once; without a session it is
 * dropped, for it is of no use later. What the session has goes out by UDP as it comes. RTCP goes
 * both ways; on the sending side it goes back to where RTCP came from last.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rtp_carry.h"

#include <unistd.h>

enum { BATCH = 256 }; /* datagrams read from one port a turn, so that others get theirs */

/* ---- options ---- */

enum {
#define OPTION_ENUM(id, name, letter, arg, help) CARRY_##id,
    CARRY_OPTIONS(OPTION_ENUM)
#undef OPTION_ENUM
};

static void flow_init(carry *app, carry_flow *flow)
{
    *flow = (carry_flow){.app = app, .fd = -1, .rtcp_fd = -1, .clock_rate = 90000};
    leat_roq_flow_settings_init(&flow->settings);
    flow->settings.user = flow;
}

/* flows[0] holds the defaults until the first --in or --out makes a flow of it. */
void carry_init(carry *app, bool sender)
{
    leat_conn_settings *conn = &app->server.common.conn;

    *app = (carry){.sender = sender,
                   .alpn = LEAT_ROQ_ALPN,
                   .interval = LEAT_SECOND,
                   .out = {.fd = STDOUT_FILENO},
                   .log = {.fd = -1},
                   .encoder = {.fd = -1}};
    leat_cli_server_init(&app->server);
    conn->max_datagram_frame_size = 65535;
    conn->max_streams_uni = 1024; /* a packet each, 10 Mbit/s of them within a second */
    conn->max_streams_bidi = 0;
    conn->idle_timeout = 5 * LEAT_SECOND;
    flow_init(app, &app->flows[0]);
}

carry_flow *carry_add_flow(carry *app, const leat_addr *media)
{
    carry_flow *flow = &app->flows[app->flow_count];

    if (app->flow_count == CARRY_FLOWS) {
        leat_cli_error("no more than %d flows", CARRY_FLOWS);
        return NULL;
    }
    if (app->flow_count > 0) {
        flow_init(app, flow);
    }
    app->flow_count++;
    flow->media = *media;
    return flow;
}

static bool take_mode(carry_flow *flow, const char *arg)
{
    if (leat_roq_mode_find(arg, &flow->settings.mode) &&
        flow->settings.mode != LEAT_ROQ_MODE_DATAGRAM) {
        return true;
    }
    leat_cli_error("--stream-per wants packet, frame or flow, not '%s'", arg);
    return false;
}

bool carry_take(carry *app, int id, int first, const char *arg)
{
    carry_flow *flow = &app->flows[app->flow_count ? app->flow_count - 1 : 0];
    uint64_t n = 0;
    bool good;

    switch (id - first) {
    case CARRY_FLOW:
        flow->id_given = true;
        return leat_cli_number("flow", arg, 0, LEAT_ROQ_FLOW_MAX, &flow->id);
    case CARRY_DATAGRAMS:
        flow->settings.mode = LEAT_ROQ_MODE_DATAGRAM;
        return true;
    case CARRY_STREAM_PER:
        return take_mode(flow, arg);
    case CARRY_LIFETIME:
        return leat_cli_seconds("lifetime", arg, LEAT_CLI_ZERO_TOO, &flow->settings.lifetime);
    case CARRY_QUEUE:
        good =
            leat_cli_number("queue", arg, LEAT_ROQ_QUEUE_BYTES_MIN, LEAT_ROQ_QUEUE_BYTES_MAX, &n);
        flow->settings.queue_bytes = (size_t)n;
        return good;
    case CARRY_URGENCY:
        good = leat_cli_number("urgency", arg, 0, 7, &n);
        flow->settings.urgency = (uint8_t)n;
        return good;
    case CARRY_RTCP_MUX:
        flow->mux = true;
        return true;
    case CARRY_RTCP_TO:
        return leat_cli_udp_target("rtcp-to", arg, &flow->rtcp_to);
    case CARRY_CLOCK_RATE:
        good = leat_cli_number("clock-rate", arg, 1, UINT32_MAX, &n);
        flow->clock_rate = (uint32_t)n;
        return good;
    case CARRY_INTERVAL:
        return leat_cli_seconds("interval", arg, LEAT_CLI_NOT_ZERO, &app->interval);
    case CARRY_LOG:
        app->log_path = arg;
        return true;
    default:
        return false;
    }
}

static bool is_taken(const carry *app, uint64_t id)
{
    for (size_t i = 0; i < app->flow_count; i++) {
        if (app->flows[i].id_given && app->flows[i].id == id) {
            return true;
        }
    }
    return false;
}

bool carry_finish_flows(carry *app)
{
    uint64_t next = 1;

    for (size_t i = 0; i < app->flow_count; i++) {
        carry_flow *flow = &app->flows[i];

        if (flow->id_given) {
            flow->id_given = false;
            if (is_taken(app, flow->id)) {
                leat_cli_error("--flow %llu is there twice", (unsigned long long)flow->id);
                return false;
            }
            flow->id_given = true;
            continue;
        }
        while (is_taken(app, next)) {
            next++;
        }
        flow->id = next;
        flow->id_given = true;
    }
    return true;
}

/* ---- from UDP to QUIC ---- */

static bool send_on(carry_flow *flow, leat_span packet)
{
    if (!flow->flow || leat_roq_send(flow->flow, packet, NULL) != LEAT_OK) {
        flow->refused++;
        return false;
    }
    flow->in_packets++;
    flow->in_bytes += packet.len;
    leat_cli_steady_add(&flow->app->steady, packet.len, leat_cli_server_mem(&flow->app->server));
    return true;
}

/* The port is open to anybody: what comes back goes to who sent RTP or RTCP, not garbage. */
static void read_port(carry_flow *flow, int fd, leat_addr *seen)
{
    static uint8_t data[LEAT_CLI_DATAGRAM];
    leat_cli_arrival arrival;
    ssize_t n;

    leat_ctx_set_now(leat_loop_ctx(flow->app->server.loop), leat_clock_now());
    for (int i = 0; i < BATCH && (n = leat_cli_udp_recv(fd, data, sizeof data, &arrival)) >= 0;
         i++) {
        if (send_on(flow, (leat_span){data, (size_t)n})) {
            *seen = arrival.from;
        }
    }
}

static void on_media(leat_watch *watch, int fd, uint32_t ready, void *user)
{
    carry_flow *flow = user;

    (void)watch;
    (void)ready;
    read_port(flow, fd, &flow->seen);
}

static void on_rtcp(leat_watch *watch, int fd, uint32_t ready, void *user)
{
    carry_flow *flow = user;

    (void)watch;
    (void)ready;
    read_port(flow, fd, &flow->rtcp_seen);
}

/* ---- from QUIC to UDP ---- */

static const leat_addr *destination(const carry_flow *flow, bool rtcp)
{
    if (!rtcp) {
        return flow->app->sender ? &flow->seen : &flow->media;
    }
    if (flow->rtcp_to.family) {
        return &flow->rtcp_to;
    }
    return flow->rtcp_seen.family ? &flow->rtcp_seen : &flow->seen;
}

static void note_media(carry_flow *flow, leat_span packet)
{
    leat_rtp_packet rtp;

    if (leat_rtp_parse_header(packet, &rtp) != LEAT_OK) {
        return;
    }
    if (!flow->source_known || flow->source.ssrc != rtp.ssrc) {
        flow->source_known = true;
        leat_report_source_init(&flow->source, rtp.ssrc, flow->clock_rate);
    }
    leat_report_on_packet(&flow->source, rtp.seq, rtp.timestamp,
                          leat_ctx_now(leat_loop_ctx(flow->app->server.loop)));
}

void carry_on_packet(leat_roq_flow *roq_flow, leat_span packet, const leat_roq_arrival *how,
                     void *user)
{
    carry_flow *flow = leat_roq_flow_user(roq_flow);
    const leat_addr *to = destination(flow, how->rtcp);
    int fd = how->rtcp && flow->rtcp_fd >= 0 ? flow->rtcp_fd : flow->fd;

    (void)user;
    if (!how->rtcp) {
        note_media(flow, packet);
    }
    if (to->family && leat_cli_udp_send(fd, packet.data, packet.len, to)) {
        flow->out_packets++;
        flow->out_bytes += packet.len;
    } else {
        flow->unsent++;
    }
    leat_cli_steady_add(&flow->app->steady, packet.len, leat_cli_server_mem(&flow->app->server));
}

/* ---- ports ---- */

static bool watch_port(carry_flow *flow, const leat_addr *local, const leat_addr *remote, int *fd,
                       leat_watch_fn *fn, leat_watch **watch)
{
    leat_err err;

    *fd = leat_cli_udp_open(local, remote);
    if (*fd < 0) {
        return false;
    }
    err = leat_watch_add(flow->app->server.loop, *fd, LEAT_WATCH_READ, fn, flow, watch);
    if (err != LEAT_OK) {
        leat_cli_error("cannot watch a port: %s", leat_err_text(err));
        return false;
    }
    return true;
}

static bool next_port(const leat_addr *addr, leat_addr *next)
{
    *next = *addr;
    next->port++;
    if (next->port == 0) {
        leat_cli_error("there is no port above 65535 for RTCP: --rtcp-mux, or another port");
        return false;
    }
    return true;
}

static void say_port(const carry_flow *flow, const char *what, int fd)
{
    leat_addr local = leat_cli_udp_local(fd);
    char text[LEAT_ADDR_TEXT_MAX];

    if (!flow->app->server.common.quiet) {
        fprintf(stderr, "flow %llu takes %s at %s\n", (unsigned long long)flow->id, what,
                leat_addr_format(&local, text));
    }
}

static bool open_rtcp_port(carry_flow *flow, const leat_addr *local)
{
    if (!watch_port(flow, local, NULL, &flow->rtcp_fd, on_rtcp, &flow->rtcp_watch)) {
        return false;
    }
    say_port(flow, "RTCP", flow->rtcp_fd);
    return true;
}

static bool open_sending_ports(carry_flow *flow)
{
    leat_addr local, next;

    if (!watch_port(flow, &flow->media, NULL, &flow->fd, on_media, &flow->watch)) {
        return false;
    }
    say_port(flow, "RTP", flow->fd);
    if (flow->mux) {
        return true;
    }
    local = leat_cli_udp_local(flow->fd);
    return next_port(&local, &next) && open_rtcp_port(flow, &next);
}

static bool open_receiving_ports(carry_flow *flow)
{
    leat_addr any = {.family = 0};

    if (flow->rtcp_to.family == 0) {
        flow->rtcp_to = flow->media;
        if (!flow->mux && !next_port(&flow->media, &flow->rtcp_to)) {
            return false;
        }
    }
    if (!watch_port(flow, &any, &flow->media, &flow->fd, on_media, &flow->watch)) {
        return false;
    }
    return flow->rtcp_in.family == 0 || open_rtcp_port(flow, &flow->rtcp_in);
}

leat_cli_exit carry_open_ports(carry *app)
{
    for (size_t i = 0; i < app->flow_count; i++) {
        if (!(app->sender ? open_sending_ports(&app->flows[i])
                          : open_receiving_ports(&app->flows[i]))) {
            return LEAT_EXIT_ADDRESS;
        }
    }
    return LEAT_EXIT_OK;
}

void carry_close_ports(carry *app)
{
    for (size_t i = 0; i < app->flow_count; i++) {
        carry_flow *flow = &app->flows[i];

        leat_watch_remove(flow->watch);
        leat_watch_remove(flow->rtcp_watch);
        if (flow->fd >= 0) {
            close(flow->fd);
        }
        if (flow->rtcp_fd >= 0) {
            close(flow->rtcp_fd);
        }
    }
    if (app->encoder.fd >= 0 && app->estimate_to.family) {
        close(app->encoder.fd);
    }
}

/* ---- the commands ---- */

static bool parse(carry *app, const carry_command *command, int argc, char **argv)
{
    leat_cli_parser parser;
    int id;

    leat_cli_parser_init(&parser, command->name, command->options, command->option_count);
    while ((id = leat_cli_option_next(&parser, argc, argv)) != -1) {
        if (id == '?' || !command->take(app, id)) {
            return false;
        }
    }
    return true;
}

static void print_help(const carry_command *command)
{
    command->help();
    leat_cli_print_options(command->options, command->option_count);
    leat_cli_print_exit_codes();
}

int carry_main(carry *app, const carry_command *command, int argc, char **argv)
{
    leat_cli_common *common = &app->server.common;
    leat_cli_exit exit_code;

    if (!parse(app, command, argc, argv)) {
        return LEAT_EXIT_USAGE;
    }
    if (common->help) {
        print_help(command);
        return LEAT_EXIT_OK;
    }
    argc -= optind;
    argv += optind;
    exit_code = command->check(app, argc, argv);
    if (exit_code != LEAT_EXIT_OK || !carry_finish_flows(app)) {
        return LEAT_EXIT_USAGE;
    }
    if (app->log_path && !carry_log_open(app, app->log_path)) {
        return LEAT_EXIT_FILE;
    }
    common->alpn[0] = app->alpn;
    common->alpn_count = 1;
    exit_code = command->start(app, argv);
    if (exit_code == LEAT_EXIT_OK) {
        carry_stats_start(app);
        exit_code = command->run(app);
        carry_stats_stop(app);
        leat_cli_server_goodbye(&app->server, LEAT_ROQ_NO_ERROR);
    }
    app->ending = true;
    carry_close_ports(app);
    exit_code = command->release(app, exit_code);
    return app->log_failed && exit_code == LEAT_EXIT_OK ? LEAT_EXIT_FILE : exit_code;
}
