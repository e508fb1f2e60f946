/* cli/perf_client.c: `leat perf client`: options, start and end.
 *
 * SPDX-License-Identifier: MIT
 */
#include "perf_client.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#define CLIENT_OPTIONS(X)                                                                          \
    X(TIME, "time", 't', "SECONDS", "measure for so long (default 10)")                            \
    X(BYTES, "bytes", 'n', "N", "move so many bytes, instead of for a time")                       \
    X(PARALLEL, "parallel", 'P', "N", "streams, requests or handshakes at once (default 1)")       \
    X(REVERSE, "reverse", 'R', NULL, "the server sends, the client receives")                      \
    X(REQUESTS, "requests", 0, NULL, "count requests a second: a stream each")                     \
    X(UP, "up", 0, "BYTES", "of a request (default 512)")                                          \
    X(DOWN, "down", 0, "BYTES", "of its answer (default 4000)")                                    \
    X(RATE, "rate", 0, "N", "start N requests a second, however long they take")                   \
    X(HANDSHAKES, "handshakes", 0, NULL, "count handshakes a second: a connection each")           \
    X(ALPN, "alpn", 0, "NAME",                                                                     \
      "for --handshakes: another protocol than perf, as the server has it")                        \
    X(COUNT, "count", 0, "N", "so many requests or handshakes, instead of for a time")             \
    X(INTERVAL, "interval", 'i', "SECONDS", "between lines (default 1; 0: the last line only)")    \
    X(CA, "ca", 0, "FILE", "check the server's certificate with these authorities, PEM")           \
    X(JSON, "json", 'J', NULL, "one JSON object, of iperf3's shape")

enum client_id {
    OPT_CLIENT_FIRST = LEAT_OPT_COMMON_END,
#define OPTION_ENUM(id, name, letter, arg, help) OPT_##id,
    CLIENT_OPTIONS(OPTION_ENUM)
#undef OPTION_ENUM
};

static const leat_cli_option options[] = {
#define OPTION_ROW(id, name, letter, arg, help) {OPT_##id, name, letter, arg, help},
    CLIENT_OPTIONS(OPTION_ROW)
#undef OPTION_ROW
#define OPTION_ROW(id, name, letter, arg, help) {LEAT_OPT_##id, name, letter, arg, help},
        LEAT_PERF_SHARED_OPTIONS(OPTION_ROW)
#undef OPTION_ROW
};

enum { OPTIONS = sizeof options / sizeof options[0], PARALLEL_MOST = 10000, RATE_MOST = 10000000 };

static volatile sig_atomic_t interrupted;
static leat_loop *volatile signalled; /* NULL once it goes: signals may come until the end */

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
    if (signalled) {
        leat_loop_stop(signalled);
    }
}

/* ---- options ---- */

static bool take(perf_client *c, int id)
{
    switch (id) {
    case OPT_TIME:
        return leat_cli_seconds("time", optarg, LEAT_CLI_ZERO_TOO, &c->time);
    case OPT_BYTES:
        return leat_cli_number("bytes", optarg, 1, UINT64_MAX >> 1, &c->bytes);
    case OPT_PARALLEL:
        return leat_cli_number("parallel", optarg, 1, PARALLEL_MOST, &c->parallel);
    case OPT_REVERSE:
        c->mode = PERF_DOWNLOAD;
        return true;
    case OPT_REQUESTS:
        c->mode = PERF_REQUESTS;
        return true;
    case OPT_HANDSHAKES:
        c->mode = PERF_HANDSHAKES;
        return true;
    case OPT_UP:
        return leat_cli_number("up", optarg, LEAT_PERF_HEAD, UINT64_MAX >> 1, &c->up);
    case OPT_DOWN:
        return leat_cli_number("down", optarg, 0, UINT64_MAX >> 1, &c->down);
    case OPT_ALPN:
        c->alpn = optarg;
        return true;
    case OPT_RATE:
        return leat_cli_number("rate", optarg, 1, RATE_MOST, &c->rate);
    case OPT_COUNT:
        return leat_cli_number("count", optarg, 1, UINT64_MAX >> 1, &c->count);
    case OPT_INTERVAL:
        return leat_cli_seconds("interval", optarg, LEAT_CLI_ZERO_TOO, &c->interval);
    case OPT_CA:
        c->ca_path = optarg;
        return true;
    case OPT_JSON:
        return c->json = true;
    default:
        return leat_cli_common_take(&c->common, id, optarg);
    }
}

/* HOST, HOST:PORT, [ADDR6] or [ADDR6]:PORT, in place. */
static bool split_host(perf_client *c, char *text)
{
    char *host = text, *rest = text;
    uint64_t port = LEAT_PERF_PORT;

    if (*text == '[') {
        host = text + 1;
        rest = strchr(host, ']');
        if (!rest) {
            leat_cli_error("no ']' in %s", text);
            return false;
        }
        *rest++ = 0;
    } else if (strchr(text, ':') == strrchr(text, ':')) {
        rest = text + strcspn(text, ":");
    } else {
        rest = text + strlen(text); /* an IPv6 address without brackets */
    }
    if (*rest == ':') {
        *rest++ = 0;
        if (!leat_cli_number("port", rest, 1, 65535, &port)) {
            return false;
        }
    } else if (*rest) {
        leat_cli_error("cannot read the address %s", text);
        return false;
    }
    c->host = host;
    c->port = (uint16_t)port;
    return true;
}

static leat_cli_exit parse(perf_client *c, int argc, char **argv)
{
    leat_cli_parser parser;
    int id;

    leat_cli_parser_init(&parser, "perf client", options, OPTIONS);
    while ((id = leat_cli_option_next(&parser, argc, argv)) != -1) {
        if (id == '?' || !take(c, id)) {
            return LEAT_EXIT_USAGE;
        }
    }
    if (c->common.help) {
        return LEAT_EXIT_OK;
    }
    if (argc - optind != 1) {
        leat_cli_error("one server is wanted (try 'leat perf client --help')");
        return LEAT_EXIT_USAGE;
    }
    if (c->rate && c->mode != PERF_REQUESTS) {
        leat_cli_error("--rate is for --requests");
        return LEAT_EXIT_USAGE;
    }
    if (c->alpn && c->mode != PERF_HANDSHAKES) {
        leat_cli_error("--alpn is for --handshakes");
        return LEAT_EXIT_USAGE;
    }
    if (c->parallel == 0) {
        c->parallel = c->rate ? PARALLEL_MOST : 1;
    }
    if (c->bytes || c->count) {
        c->time = 0;
    } else if (c->time == 0) {
        c->time = 10 * LEAT_SECOND;
    }
    return split_host(c, argv[optind]) ? LEAT_EXIT_OK : LEAT_EXIT_USAGE;
}

/* ---- start-up ---- */

static leat_mem *mem_of(perf_client *c)
{
    return leat_ctx_mem(leat_loop_ctx(c->loop));
}

static leat_cli_exit make_tls(perf_client *c)
{
    leat_tls_settings *tls = &c->common.tls;

    tls->verify = tls->verify_host = c->ca_path != NULL;
    tls->system_ca = false;
    return leat_cli_tls_client(tls, mem_of(c), c->ca_path, &c->tls);
}

static leat_cli_exit open_socket(perf_client *c)
{
    leat_udp_settings udp;
    leat_endpoint_settings endpoint;
    size_t count;
    leat_err err;

    if (leat_addr_resolve(c->host, c->port, &c->remote, 1, &count) != LEAT_OK) {
        leat_cli_error("%s: there is no such host", c->host);
        return LEAT_EXIT_ADDRESS;
    }
    leat_udp_settings_init(&udp);
    udp.remote = c->remote;
    udp.no_offload = c->common.no_offload;
    leat_endpoint_settings_init(&endpoint);
    if (c->common.qlog) {
        endpoint.events_sink = leat_qlog_sink(c->common.qlog);
    }
    err = leat_udp_open(c->loop, &udp, &endpoint, &c->udp);
    if (err != LEAT_OK) {
        leat_cli_error("cannot open a socket: %s", leat_cli_why(err));
        return leat_cli_exit_of(err, LEAT_EXIT_ADDRESS);
    }
    return LEAT_EXIT_OK;
}

static void on_end(leat_timer *timer, leat_time now)
{
    perf_client *c = (perf_client *)(void *)((char *)timer - offsetof(perf_client, end_timer));

    (void)now;
    perf_load_stop(c);
}

static void on_interval(leat_timer *timer, leat_time now)
{
    perf_client *c = (perf_client *)(void *)((char *)timer - offsetof(perf_client, interval_timer));

    perf_report_line(c, now);
    leat_timer_set(timer, c->began + (c->lines + 1) * c->interval);
}

static void on_rate(leat_timer *timer, leat_time now)
{
    (void)now;
    perf_load_start_due((perf_client *)(void *)((char *)timer - offsetof(perf_client, rate_timer)));
}

static leat_cli_exit start(perf_client *c)
{
    leat_cli_exit exit_code;

    c->common.alpn[c->common.alpn_count++] = c->alpn ? c->alpn : LEAT_PERF_ALPN;
    exit_code = leat_cli_common_open(&c->common);
    if (exit_code == LEAT_EXIT_OK) {
        exit_code = leat_cli_loop_new(&c->loop);
    }
    if (exit_code != LEAT_EXIT_OK) {
        return exit_code;
    }
    if (leat_perf_source_init(&c->source, mem_of(c)) != LEAT_OK) {
        leat_cli_no_memory();
    }
    leat_timer_init(&c->end_timer, leat_loop_ctx(c->loop), on_end);
    leat_timer_init(&c->interval_timer, leat_loop_ctx(c->loop), on_interval);
    leat_timer_init(&c->rate_timer, leat_loop_ctx(c->loop), on_rate);
    exit_code = make_tls(c);
    return exit_code == LEAT_EXIT_OK ? open_socket(c) : exit_code;
}

/* ---- running ---- */

static void watch_signals(perf_client *c)
{
    signalled = c->loop;
    leat_cli_catch_signals(on_signal);
}

/* The summary of what was measured, also when it was cut short. */
static void sum_up(perf_client *c)
{
    leat_timer_unset(&c->interval_timer);
    leat_timer_unset(&c->end_timer);
    leat_timer_unset(&c->rate_timer);
    if (c->began == 0) {
        return;
    }
    if (c->ended == 0) {
        c->ended = leat_clock_now();
    }
    if (c->interval && c->ended > c->line_from + c->interval / 2) {
        perf_report_line(c, c->ended);
    }
    perf_report_end(c);
}

static leat_cli_exit run(perf_client *c)
{
    leat_err err = perf_load_start(c);

    if (err != LEAT_OK) {
        leat_cli_error("cannot connect: %s", leat_cli_why(err));
        return leat_cli_exit_of(err, LEAT_EXIT_FAILURE);
    }
    watch_signals(c);
    leat_cli_warm(mem_of(c));
    err = c->over ? LEAT_OK : leat_loop_run(c->loop);
    sum_up(c);
    if (err != LEAT_OK) {
        leat_cli_error("the loop failed: %s", strerror(errno));
        return LEAT_EXIT_FAILURE;
    }
    if (c->common.stats && c->conn) {
        leat_cli_run ran = {.started = c->began, .body_bytes = perf_load_moved(c)};
        leat_cli_steady none = {.bytes = 0};

        leat_cli_print_stats(c->conn, c->udp, &ran, &none);
    }
    return interrupted ? LEAT_EXIT_INTERRUPTED : c->exit_code;
}

static leat_cli_exit release(perf_client *c, leat_cli_exit exit_code)
{
    c->over = true; /* events that still come mean nothing */
    if (c->conn) {
        leat_conn_close(c->conn, 0, (leat_span){NULL, 0});
    }
    if (c->loop) {
        leat_udp_close(c->udp);
        leat_perf_source_free(&c->source);
    }
    signalled = NULL;
    leat_loop_free(c->loop);
    leat_tls_config_free(c->tls);
    return leat_cli_common_close(&c->common, exit_code);
}

int leat_perf_client(int argc, char **argv)
{
    static perf_client c;
    leat_cli_exit exit_code;

    c = (perf_client){.up = 512, .down = 4000, .interval = LEAT_SECOND};
    leat_cli_common_init(&c.common);
    exit_code = parse(&c, argc, argv);
    if (exit_code != LEAT_EXIT_OK) {
        return exit_code;
    }
    if (c.common.help) {
        puts("usage: leat perf client HOST[:PORT] [OPTION...]\n\n"
             "Measures throughput to a perf server (default port 4433), or with --requests and\n"
             "--handshakes how many of those it answers. The server's certificate is checked only\n"
             "with --ca.\n");
        leat_cli_print_options(options, OPTIONS);
        leat_cli_print_exit_codes();
        return LEAT_EXIT_OK;
    }
    exit_code = start(&c);
    if (exit_code == LEAT_EXIT_OK) {
        exit_code = run(&c);
    }
    return release(&c, exit_code);
}
