/* cli/perf_client.c: `leat perf client`: options, start and end.
 *
 * SPDX-License-Identifier: MIT
 */
#include "perf_client.h"

#include <errno.h>
#include <pthread.h>
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
    X(PATH, "path", 0, "PATH", "for --requests: GET this over HTTP/3, from any server of that")    \
    X(CONNECTIONS, "connections", 'c', "N",                                                        \
      "so many, with their shares of -P, -n, --count and --rate (default: one a thread)")          \
    X(THREADS, "threads", 0, "N", "that the connections are spread over (default 1)")              \
    X(PIN, "pin", 0, NULL, "each thread on a core of its own")                                     \
    X(BUSY_POLL, "busy-poll", 0, "MICROSECONDS",                                                   \
      "look for packets so long before it sleeps: less delay for more processor time")             \
    X(OWN_LOOP, "own-loop", 0, NULL,                                                               \
      "connections of a thread go to the server's of the same number: it has as many")             \
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

enum { CONNECTIONS_MOST = 10000 };

struct perf_thread {
    leat_loop *loop;
    bool pin;
    perf_client *clients;
    size_t count, running; /* clients */
    pthread_t id;
    int error; /* errno of a loop that failed, or 0 */
};

static volatile sig_atomic_t interrupted;
static perf_thread threads[LEAT_UDP_GROUP_MAX];
static volatile size_t thread_count; /* 0 before they go: signals may come until the end */

void perf_stop_all(void)
{
    for (size_t i = 0; i < thread_count; i++) {
        leat_loop_stop(threads[i].loop);
    }
}

void perf_client_over(perf_client *c)
{
    if (--c->thread->running == 0) {
        leat_loop_stop(c->loop);
    }
}

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
    perf_stop_all();
}

/* ---- options ---- */

static bool take(perf_client *c, int id)
{
    switch (id) {
    case OPT_TIME:
        return leat_cli_seconds("time", optarg, LEAT_CLI_NOT_ZERO, &c->time);
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
    case OPT_BUSY_POLL:
        return leat_cli_number("busy-poll", optarg, 0, 1000000, &c->busy_poll);
    case OPT_PATH:
        c->path = optarg;
        return true;
    case OPT_CONNECTIONS:
        return leat_cli_number("connections", optarg, 1, CONNECTIONS_MOST, &c->connections);
    case OPT_THREADS:
        return leat_cli_number("threads", optarg, 1, LEAT_UDP_GROUP_MAX, &c->threads);
    case OPT_PIN:
        return c->pin = true;
    case OPT_OWN_LOOP:
        return c->own_loop = true;
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

/* Whether there is work for each of several connections; false after a message. */
static bool check_shares(perf_client *c)
{
    uint64_t least = c->connections;

    if (c->threads > c->connections) {
        leat_cli_error("--threads wants as many --connections");
        return false;
    }
    if ((c->parallel && c->parallel < least) || (c->count && c->count < least) ||
        (c->bytes && c->bytes < least) || (c->rate && c->rate < least)) {
        leat_cli_error("each of the connections wants a share of -P, -n, --count and --rate");
        return false;
    }
    if (c->threads > 1 && c->common.qlog_dir) {
        leat_cli_error("qlog files are written with --threads 1 alone");
        return false;
    }
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
    if (!!c->time + !!c->bytes + !!c->count > 1) {
        leat_cli_error("only one of --time, --bytes and --count can say when it ends");
        return LEAT_EXIT_USAGE;
    }
    if (c->alpn && c->mode != PERF_HANDSHAKES) {
        leat_cli_error("--alpn is for --handshakes");
        return LEAT_EXIT_USAGE;
    }
    if (c->own_loop && c->mode == PERF_HANDSHAKES) {
        leat_cli_error("--own-loop is not for --handshakes");
        return LEAT_EXIT_USAGE;
    }
    if (c->path && (c->mode != PERF_REQUESTS || c->path[0] != '/')) {
        leat_cli_error("--path is for --requests, and begins with '/'");
        return LEAT_EXIT_USAGE;
    }
    if (c->connections == 0) {
        c->connections = c->threads;
    }
    if (!check_shares(c)) {
        return LEAT_EXIT_USAGE;
    }
    if (c->parallel == 0) {
        c->parallel = c->rate ? PARALLEL_MOST : c->connections;
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
    leat_err err;

    leat_udp_settings_init(&udp);
    udp.remote = c->remote;
    udp.no_offload = c->common.no_offload;
    udp.busy_poll = (int)c->busy_poll;
    leat_endpoint_settings_init(&endpoint);
    endpoint.events_sink = leat_cli_common_sink(&c->common);
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

    if (c->reports) {
        perf_report_line(c, now);
    } else {
        perf_lines_tell(c, now);
    }
    leat_timer_set(timer, c->began + (c->lines + 1) * c->interval);
}

static void on_rate(leat_timer *timer, leat_time now)
{
    (void)now;
    perf_load_start_more(
        (perf_client *)(void *)((char *)timer - offsetof(perf_client, rate_timer)));
}

/* The part of one of several. Nothing stays nothing. */
static uint64_t share_of(uint64_t all, uint64_t count, uint64_t i)
{
    return all / count + (i < all % count ? 1 : 0);
}

/* Makes the connection of that number, all but the connecting. */
static leat_cli_exit make_client(const perf_client *asked, size_t i, perf_thread *thread,
                                 perf_client *c)
{
    uint64_t n = asked->connections;
    leat_ctx *ctx = leat_loop_ctx(thread->loop);

    *c = *asked;
    c->parallel = share_of(asked->parallel, n, i);
    c->count = share_of(asked->count, n, i);
    c->bytes = share_of(asked->bytes, n, i);
    c->rate = share_of(asked->rate, n, i);
    c->reports = n == 1;
    c->thread = thread;
    c->thread_number = (size_t)(thread - threads);
    c->loop = thread->loop;
    thread->running++;
    leat_timer_init(&c->end_timer, ctx, on_end);
    leat_timer_init(&c->interval_timer, ctx, on_interval);
    leat_timer_init(&c->rate_timer, ctx, on_rate);
    if (leat_perf_source_init(&c->source, mem_of(c)) != LEAT_OK) {
        leat_cli_no_memory();
    }
    return open_socket(c);
}

/* Threads, and the connections of each. */
static leat_cli_exit make_clients(const perf_client *asked)
{
    perf_client *next = leat_cli_alloc(asked->connections, sizeof *next);
    leat_cli_exit exit_code = LEAT_EXIT_OK;
    size_t made = 0;

    perf_lines_open(asked);
    threads[0].clients = next; /* the block, to be freed */
    for (size_t t = 0; t < asked->threads; t++) {
        size_t count = (size_t)share_of(asked->connections, asked->threads, t);

        threads[t].clients = next;
        threads[t].pin = asked->pin;
        next += count;
        for (size_t i = 0; i < count && exit_code == LEAT_EXIT_OK; i++) {
            exit_code = make_client(asked, made++, &threads[t], &threads[t].clients[i]);
            threads[t].count++;
        }
    }
    return exit_code;
}

static leat_cli_exit start(perf_client *c)
{
    leat_cli_exit exit_code;
    size_t count;

    c->common.alpn[c->common.alpn_count++] =
        c->path ? LEAT_HTTP_ALPN_H3 : (c->alpn ? c->alpn : LEAT_PERF_ALPN);
    exit_code = leat_cli_common_open(&c->common);
    for (size_t t = 0; t < c->threads && exit_code == LEAT_EXIT_OK; t++) {
        exit_code = leat_cli_loop_new(&threads[t].loop);
    }
    if (exit_code != LEAT_EXIT_OK) {
        return exit_code;
    }
    c->loop = threads[0].loop;
    exit_code = make_tls(c);
    if (exit_code != LEAT_EXIT_OK) {
        return exit_code;
    }
    if (leat_addr_resolve(c->host, c->port, &c->remote, 1, &count) != LEAT_OK) {
        leat_cli_error("%s: there is no such host", c->host);
        return LEAT_EXIT_ADDRESS;
    }
    return make_clients(c);
}

/* ---- running ---- */

/* No more is measured, also when it was cut short. */
static void end_client(perf_client *c)
{
    leat_timer_unset(&c->interval_timer);
    leat_timer_unset(&c->end_timer);
    leat_timer_unset(&c->rate_timer);
    if (c->began > 0 && c->ended == 0) {
        c->ended = leat_clock_now();
    }
    if (c->began > 0 && !c->reports) {
        perf_lines_end(c);
    }
}

static void give_up(perf_thread *thread)
{
    thread->error = errno;
    perf_stop_all();
}

static void *run_thread(void *user)
{
    perf_thread *thread = user;

    if (thread->pin && !leat_cli_pin((size_t)(thread - threads))) {
        give_up(thread);
        return NULL;
    }
    for (size_t i = 0; i < thread->count; i++) {
        leat_err err = perf_load_start(&thread->clients[i]);

        if (err != LEAT_OK) {
            leat_cli_error("cannot connect: %s", leat_cli_why(err));
            thread->clients[i].exit_code = leat_cli_exit_of(err, LEAT_EXIT_FAILURE);
            perf_stop_all();
        }
    }
    if (leat_loop_run(thread->loop) != LEAT_OK) {
        give_up(thread);
    }
    for (size_t i = 0; i < thread->count; i++) {
        end_client(&thread->clients[i]);
    }
    return NULL;
}

/* Runs all, this thread the first of them, to their ends. */
static leat_cli_exit run_threads(const perf_client *asked)
{
    size_t started = 1;

    for (size_t t = 0; t < asked->threads; t++) {
        leat_cli_warm(leat_ctx_mem(leat_loop_ctx(threads[t].loop)));
    }
    thread_count = asked->threads;
    leat_cli_catch_signals(on_signal);
    while (started < thread_count &&
           pthread_create(&threads[started].id, NULL, run_thread, &threads[started]) == 0) {
        started++;
    }
    if (started < thread_count) {
        leat_cli_error("cannot start %zu threads", (size_t)thread_count);
        perf_stop_all();
    }
    run_thread(&threads[0]);
    for (size_t t = 1; t < started; t++) {
        pthread_join(threads[t].id, NULL);
    }
    return started < thread_count ? LEAT_EXIT_FAILURE : LEAT_EXIT_OK;
}

/* Adds what one connection did to the sum of several. */
static void add_up(perf_client *sum, const perf_client *c)
{
    leat_conn_stats_data stats = c->last;

    if (c->began == 0) {
        return;
    }
    if (c->conn) {
        leat_conn_stats(c->conn, &stats);
    }
    sum->began = sum->began == 0 || c->began < sum->began ? c->began : sum->began;
    sum->ended = c->ended > sum->ended ? c->ended : sum->ended;
    sum->done += c->done;
    sum->moved += c->moved;
    sum->last.stream_bytes_sent += stats.stream_bytes_sent;
    sum->last.packets_lost += stats.packets_lost;
    sum->last.key_updates += stats.key_updates;
    sum->last.cwnd += stats.cwnd;
    sum->last.rtt_smoothed = stats.rtt_smoothed; /* of one of them */
    perf_histogram_merge(&sum->times, &c->times);
}

static void report(perf_client *asked)
{
    perf_client *only = &threads[0].clients[0];

    if (only->reports) {
        if (only->began > 0 && only->interval &&
            only->ended > only->line_from + only->interval / 2) {
            perf_report_line(only, only->ended);
        }
        if (only->began > 0) {
            perf_report_end(only);
        }
        return;
    }
    for (size_t t = 0; t < asked->threads; t++) {
        for (size_t i = 0; i < threads[t].count; i++) {
            add_up(asked, &threads[t].clients[i]);
        }
    }
    if (asked->began > 0) {
        perf_lines_close(asked->ended);
        perf_report_end(asked);
    }
}

static leat_cli_exit run(perf_client *asked)
{
    leat_cli_exit exit_code = run_threads(asked);

    report(asked);
    for (size_t t = 0; t < asked->threads; t++) {
        if (threads[t].error) {
            leat_cli_error("thread %zu failed: %s", t, strerror(threads[t].error));
            return LEAT_EXIT_FAILURE;
        }
        for (size_t i = 0; i < threads[t].count; i++) {
            const perf_client *c = &threads[t].clients[i];

            if (c->common.stats && c->conn) {
                leat_cli_run ran = {.started = c->began, .body_bytes = perf_load_moved(c)};

                leat_cli_print_stats(c->conn, c->udp, &ran, &c->steady);
            }
            exit_code = exit_code == LEAT_EXIT_OK ? c->exit_code : exit_code;
        }
    }
    return interrupted ? LEAT_EXIT_INTERRUPTED : exit_code;
}

static void release_client(perf_client *c)
{
    c->over = true; /* events that still come mean nothing */
    if (c->http) {
        leat_http_close(c->http, LEAT_H3_NO_ERROR);
    } else if (c->conn) {
        leat_conn_close(c->conn, 0, (leat_span){NULL, 0});
    }
    leat_udp_close(c->udp);
    leat_perf_source_free(&c->source);
}

static leat_cli_exit release(perf_client *asked, leat_cli_exit exit_code)
{
    thread_count = 0;
    for (size_t t = 0; t < asked->threads; t++) {
        for (size_t i = 0; i < threads[t].count; i++) {
            release_client(&threads[t].clients[i]);
        }
        leat_loop_free(threads[t].loop);
    }
    free(threads[0].clients);
    leat_tls_config_free(asked->tls);
    return leat_cli_common_close(&asked->common, exit_code);
}

int leat_perf_client(int argc, char **argv)
{
    static perf_client c;
    leat_cli_exit exit_code;

    c = (perf_client){.up = 512, .down = 4000, .interval = LEAT_SECOND, .threads = 1};
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
