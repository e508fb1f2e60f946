/* cli/bench.c: `leat bench`: options, and the counter of heap calls; the works are in bench/.
 *
 * To count heap calls the command starts itself again with liballoccount.so preloaded, found beside
 * it. Where that is not there, or with --no-heap, the report leaves those figures out.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"
#include "preload.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/bench.h"

/* X(ID, name, letter, argument, help) */
#define BENCH_OPTIONS(X)                                                                           \
    X(COUNT, "count", 'n', "N", "operations measured (default: some seconds' worth)")              \
    X(WARM_UP, "warm-up", 0, "N", "operations before them that are not counted")                   \
    X(SIZE, "size", 's', "BYTES", "bytes of each message, packet, buffer or file")                 \
    X(TOTAL, "total", 0, "BYTES", "transfer: streams of so many bytes instead of messages")        \
    X(BURST, "burst", 0, "N", "transfer: messages a hop (default 1)")                              \
    X(CONCURRENT, "concurrent", 'c', "N", "streams: open at once (default 10); scale: this many")  \
    X(AMONG, "among", 0, "KIND", "scale: connections or streams (default: both)")                  \
    X(UP, "up", 0, "BYTES", "streams: bytes to the server (default 100)")                          \
    X(DOWN, "down", 0, "BYTES", "streams: bytes from the server (default 100)")                    \
    X(VERIFY, "verify", 0, NULL, "handshake: the client checks the certificate")                   \
    X(RESUME, "resume", 0, NULL, "handshake: resume a session")                                    \
    X(PROTO, "proto", 0, "udp|tcp", "socket: one of them (default: both)")                         \
    X(WORKERS, "workers", 0, "N", "readfile: threads (default 8)")                                 \
    X(FOLDER, "folder", 0, "DIR", "readfile: where the file is made (default: $TMPDIR or /tmp)")   \
    X(STACK, "stack", 0, "quic|udpip", "the link carries QUIC alone, or IP and UDP headers")       \
    X(DELAY, "delay", 0, "TIME", "the link's, one way: 20ms, 500us, 0.1s")                         \
    X(LOSS, "loss", 0, "P", "part of the packets that the link drops: 0.01 or 1%")                 \
    X(RATE, "rate", 0, "BITS", "bits a second that the link carries: 100M, 1G (powers of 1000)")   \
    X(UDP_PAYLOAD, "udp-payload", 0, "BYTES", "largest datagram sent (1200 to 65527)")             \
    X(KEY_UPDATE, "key-update", 0, "N", "update the keys every N packets")                         \
    X(WINDOW, "window", 0, "BYTES",                                                                \
      "flow-control window of a stream at first; the connection's is double")                      \
    X(PCAP, "pcap", 0, "FILE", "write what crosses the link, for Wireshark")                       \
    X(KEYLOG, "keylog", 0, "FILE", "append TLS secrets to FILE (default: $SSLKEYLOGFILE)")         \
    X(NO_HEAP, "no-heap", 0, NULL, "do not count heap calls")                                      \
    X(JSON, "json", 'j', NULL, "the report as one JSON object")                                    \
    X(HELP, "help", 'h', NULL, "print this help")

enum {
    OPT_FIRST = 256,
#define OPTION_ENUM(id, name, letter, arg, help) OPT_##id,
    BENCH_OPTIONS(OPTION_ENUM)
#undef OPTION_ENUM
};

static const leat_cli_option options[] = {
#define OPTION_ROW(id, name, letter, arg, help) {OPT_##id, name, letter, arg, help},
    BENCH_OPTIONS(OPTION_ROW)
#undef OPTION_ROW
};

enum { OPTIONS = sizeof options / sizeof options[0] };

typedef struct bench_command {
    leat_bench_options options;
    bool no_heap, help;
} bench_command;

/* ---- arguments ---- */

/* A number and one of `count` units, each worth so much; no unit: `plain`. */
typedef struct unit {
    const char *name;
    double worth;
} unit;

static bool with_unit(const char *what, const char *text, const unit *units, size_t count,
                      double most, double *out)
{
    char *end;
    double v = strtod(text, &end);

    for (size_t i = 0; end != text && i < count; i++) {
        if (strcasecmp(end, units[i].name) == 0) {
            v *= units[i].worth;
            if (v >= 0 && v <= most) {
                *out = v;
                return true;
            }
        }
    }
    leat_cli_error("--%s: cannot use '%s' (try 'leat bench --help')", what, text);
    return false;
}

static bool take_delay(leat_bench_options *o, const char *text)
{
    static const unit units[] = {{"", 1e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};
    double v;

    if (!with_unit("delay", text, units, 5, 60e9, &v)) {
        return false;
    }
    o->delay = (leat_time)v;
    return true;
}

static bool take_rate(leat_bench_options *o, const char *text)
{
    static const unit units[] = {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}};
    double v;

    if (!with_unit("rate", text, units, 4, 1e15, &v)) {
        return false;
    }
    o->rate = (uint64_t)v;
    return true;
}

static bool take_loss(leat_bench_options *o, const char *text)
{
    static const unit units[] = {{"", 1}, {"%", 0.01}};

    return with_unit("loss", text, units, 2, 0.9, &o->loss);
}

/* One word of two. */
static bool take_word(const char *what, const char *text, const char *first, const char *second)
{
    if (strcmp(text, first) == 0 || strcmp(text, second) == 0) {
        return true;
    }
    leat_cli_error("--%s wants %s or %s, not '%s'", what, first, second, text);
    return false;
}

static bool take_number(leat_bench_options *o, int id)
{
    static const struct {
        int id;
        const char *name;
        size_t member;
        uint64_t least, most;
    } numbers[] = {
        {OPT_COUNT, "count", offsetof(leat_bench_options, count), 1, 1ull << 40},
        {OPT_WARM_UP, "warm-up", offsetof(leat_bench_options, warm_up), 1, 1ull << 40},
        {OPT_SIZE, "size", offsetof(leat_bench_options, size), 1, 1u << 30},
        {OPT_TOTAL, "total", offsetof(leat_bench_options, total), 1, 1ull << 40},
        {OPT_BURST, "burst", offsetof(leat_bench_options, burst), 1, 1u << 20},
        {OPT_CONCURRENT, "concurrent", offsetof(leat_bench_options, concurrent), 1, 65536},
        {OPT_UP, "up", offsetof(leat_bench_options, up), 1, 1ull << 40},
        {OPT_DOWN, "down", offsetof(leat_bench_options, down), 1, 1ull << 40},
        {OPT_WORKERS, "workers", offsetof(leat_bench_options, workers), 1, 256},
        {OPT_UDP_PAYLOAD, "udp-payload", offsetof(leat_bench_options, udp_payload),
         LEAT_UDP_PAYLOAD_MIN, LEAT_UDP_PAYLOAD_MAX},
        {OPT_KEY_UPDATE, "key-update", offsetof(leat_bench_options, key_update), 1, UINT64_MAX},
        {OPT_WINDOW, "window", offsetof(leat_bench_options, window), 16384, 1u << 30},
    };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i].id == id) {
            uint64_t *to = (uint64_t *)(void *)((char *)o + numbers[i].member);

            return leat_cli_number(numbers[i].name, optarg, numbers[i].least, numbers[i].most, to);
        }
    }
    return false;
}

static bool take(bench_command *c, int id)
{
    leat_bench_options *o = &c->options;

    switch (id) {
    case OPT_VERIFY:
        return o->verify = true;
    case OPT_RESUME:
        return o->resume = true;
    case OPT_AMONG:
        o->among = optarg;
        return take_word("among", optarg, "connections", "streams");
    case OPT_PROTO:
        o->proto = optarg;
        return take_word("proto", optarg, "udp", "tcp");
    case OPT_FOLDER:
        o->folder = optarg;
        return true;
    case OPT_STACK:
        o->quic_stack = strcmp(optarg, "quic") == 0;
        return take_word("stack", optarg, "quic", "udpip");
    case OPT_DELAY:
        return take_delay(o, optarg);
    case OPT_LOSS:
        return take_loss(o, optarg);
    case OPT_RATE:
        return take_rate(o, optarg);
    case OPT_PCAP:
        o->pcap = optarg;
        return true;
    case OPT_KEYLOG:
        o->keylog = optarg;
        return true;
    case OPT_NO_HEAP:
        return c->no_heap = true;
    case OPT_JSON:
        return o->json = true;
    case OPT_HELP:
        return c->help = true;
    default:
        return take_number(o, id);
    }
}

static bool parse(bench_command *c, int argc, char **argv)
{
    leat_cli_parser parser;
    int id;

    leat_cli_parser_init(&parser, "bench", options, OPTIONS);
    while ((id = leat_cli_option_next(&parser, argc, argv)) != -1) {
        if (id == '?' || !take(c, id)) {
            return false;
        }
    }
    if (!c->help && argc - optind != 1) {
        leat_cli_error("one work is wanted (try 'leat bench --help')");
        return false;
    }
    return true;
}

static void print_help(void)
{
    puts(
        "usage: leat bench WORK [OPTION...]\n\n"
        "Measures one work: client and server in one process, on one context and, where there is\n"
        "a network, on a link in memory that carries real IP and UDP headers. Waiting (a delay of\n"
        "the link, a timer) is left out of the time.\n\n"
        "Works:");
#define WORK_LINE(name, unit, text) printf("  %-28s %s\n", #name, text);
    LEAT_BENCH_WORK_LIST(WORK_LINE)
#undef WORK_LINE
    puts("\nOptions:");
    leat_cli_print_options(options, OPTIONS);
    leat_cli_print_exit_codes();
}

/* ---- the counter of heap calls ---- */

/* Starts the command again with what only the loader can do, or returns if that cannot be: the
 * counter ahead of all others, if `counted`, and room in the static TLS block for the allocators
 * that `buffers` loads to compare with. */
static void start_again(int argc, char **argv, bool counted)
{
    char counter[4200], preload[8400];
    const char *others = getenv("LD_PRELOAD");
    char **args;

    if (getenv("LEAT_BENCH_AGAIN")) {
        return;
    }
    if (counted) {
        if (dlsym(RTLD_DEFAULT, "leat_allocs_range") ||
            !leat_cli_preload_path(counter, sizeof counter)) {
            return;
        }
        snprintf(preload, sizeof preload, "%s%s%s", counter, others ? ":" : "",
                 others ? others : "");
    }
    args = calloc((size_t)argc + 2, sizeof *args);
    if (!args) {
        return;
    }
    args[0] = program_invocation_name;
    memcpy(args + 1, argv, (size_t)argc * sizeof *args);
    if (counted) {
        setenv("LD_PRELOAD", preload, 1);
    }
    setenv("LEAT_BENCH_AGAIN", "1", 1);
    setenv("GLIBC_TUNABLES", "glibc.rtld.optional_static_tls=16384", 0);
    execv("/proc/self/exe", args);
    free(args);
}

int leat_cli_bench(int argc, char **argv)
{
    bench_command c = {.help = false};
    leat_bench_err err;

    if (!parse(&c, argc, argv)) {
        return LEAT_EXIT_USAGE;
    }
    if (c.help) {
        print_help();
        return LEAT_EXIT_OK;
    }
    /* A debugger or profiler wants the process that it was given: uncounted, `buffers` alone is
     * started again, and not where $GLIBC_TUNABLES says what it wants. */
    if (!c.no_heap || (strcmp(argv[optind], "buffers") == 0 && !getenv("GLIBC_TUNABLES"))) {
        start_again(argc, argv, !c.no_heap);
    }
    err = leat_bench_run(argv[optind], &c.options);
    if (err == LEAT_BENCH_UNKNOWN) {
        leat_cli_error("no such work: %s (try 'leat bench --help')", argv[optind]);
        return LEAT_EXIT_USAGE;
    }
    if (err == LEAT_BENCH_NO_LINK) {
        leat_cli_error("bench %s has no link: without --stack, --delay, --loss, --rate, --pcap and "
                       "--keylog",
                       argv[optind]);
        return LEAT_EXIT_USAGE;
    }
    if (err == LEAT_BENCH_FAILED) {
        leat_cli_error("bench %s: %s", argv[optind], leat_bench_error());
        return LEAT_EXIT_FAILURE;
    }
    return LEAT_EXIT_OK;
}
