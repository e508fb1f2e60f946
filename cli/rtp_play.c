/* cli/rtp_play.c: `leat rtp play`: a capture's RTP and RTCP again, at its pace.
 *
 * With --twcc the packets get transport-wide numbers of their own in the header extension, the
 * feedback that comes back is read, and what became of each packet is counted (and printed with
 * --results).
 *
 * SPDX-License-Identifier: MIT
 */
#include "rtp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <leat/twcc.h>

#define PLAY_OPTIONS(X)                                                                            \
    X(TO, "to", 't', "URL", "where the packets go: udp://HOST:PORT")                               \
    X(LISTEN, "listen", 'l', "URL", "where feedback comes in (default: any port)")                 \
    X(SPEED, "speed", 's', "FACTOR", "faster (2) or slower (0.5); 0: without pauses")              \
    X(LOOPS, "loops", 0, "N", "play so many times (default: 1)")                                   \
    X(TWCC, "twcc", 0, "ID",                                                                       \
      "number the packets in the header extension with this ID, and read "                         \
      "feedback")                                                                                  \
    X(LINGER, "linger", 0, "SECONDS", "wait so long for feedback that tells of all (default: 1)")  \
    X(RESULTS, "results", 0, NULL, "print what became of each packet, as JSON lines")              \
    X(QUIET, "quiet", 'q', NULL, "no sums at the end")                                             \
    X(HELP, "help", 'h', NULL, "print this help")

#define PLAY_ENUM(id, name, letter, arg, help) OPT_##id,
enum { OPT_FIRST = 256, PLAY_OPTIONS(PLAY_ENUM) OPT_END };
#define PLAY_ROW(id, name, letter, arg, help) {OPT_##id, name, letter, arg, help},
static const leat_cli_option options[] = {PLAY_OPTIONS(PLAY_ROW)};

enum { EXTS = 32, RESULTS = 256 };

/* X(name, what it counts) */
#define PLAY_STAT_LIST(X)                                                                          \
    X(packets, "datagrams sent")                                                                   \
    X(bytes, "their bytes")                                                                        \
    X(refused, "datagrams that the system refused")                                                \
    X(left_out, "datagrams that are neither RTP nor RTCP, or not there in full")                   \
    X(feedback, "feedback packets read")                                                           \
    X(feedback_bad, "feedback packets that cannot be read")                                        \
    X(arrived, "packets that arrived, as feedback tells")                                          \
    X(lost, "packets that were lost, as feedback tells")                                           \
    X(late, "of those that arrived, told lost before")

#define PLAY_STAT_MEMBER(name, text) uint64_t name;
typedef struct app {
    leat_addr to, local;
    double speed;
    uint64_t loops;
    uint8_t ext_id; /* 0: packets go out as they are */
    leat_time linger;
    bool results, quiet;
    leat_mem *mem;
    leat_twcc_sender sender;
    uint64_t numbered; /* packets sent with a number */
    int fd;
    struct {
        PLAY_STAT_LIST(PLAY_STAT_MEMBER)
    } sum;
    leat_cli_capture capture;
    uint8_t in[LEAT_CLI_DATAGRAM];
    uint8_t out[LEAT_CLI_DATAGRAM + 512];
} app;

/* ---- feedback ---------------------------------------------------------------------------------
 */

static void take_results(app *a, leat_twcc_iter *it)
{
    leat_fb_result r[RESULTS];
    size_t n;

    while ((n = leat_twcc_results(&a->sender, it, r, RESULTS)) > 0) {
        for (size_t i = 0; i < n; i++) {
            bool arrived = r[i].state == LEAT_FB_ARRIVED;

            a->sum.arrived += arrived;
            a->sum.late += r[i].late;
            a->sum.lost += !arrived;
            if (a->results) {
                printf("{\"seq\":%u,\"size\":%u,\"sent\":%llu,\"arrived\":%s", (uint16_t)r[i].seq,
                       r[i].size, (unsigned long long)r[i].sent, arrived ? "" : "null}\n");
            }
            if (a->results && arrived) {
                printf("%llu}\n", (unsigned long long)r[i].arrived);
            }
        }
    }
}

static void take_rtcp(app *a, leat_span data)
{
    leat_rtcp_iter iter;
    leat_rtcp_packet packet;
    leat_twcc_iter it;

    leat_rtcp_begin(&iter, data);
    while (leat_rtcp_next(&iter, &packet)) {
        if (packet.type != LEAT_RTCP_RTPFB || packet.count != LEAT_RTCP_FMT_TWCC) {
            continue;
        }
        if (leat_twcc_feedback(&a->sender, packet.whole, &it) != LEAT_OK) {
            a->sum.feedback_bad++;
            continue;
        }
        a->sum.feedback++;
        take_results(a, &it);
    }
}

/* Whether all packets that were numbered have arrived, as feedback tells. */
static bool is_told(const app *a)
{
    return a->sum.arrived == a->numbered;
}

/* Waits until `until`, reading feedback meanwhile; no longer than until is_told(), if that is to
 * end it. */
static void wait_until(app *a, leat_time until, bool told_ends)
{
    leat_time now = leat_clock_now();

    do {
        struct pollfd fd = {.fd = a->fd, .events = POLLIN};
        struct timespec pause = {.tv_sec = 0};
        leat_cli_arrival arrival;
        ssize_t n;

        if (until > now) {
            pause.tv_sec = (time_t)((until - now) / LEAT_SECOND);
            pause.tv_nsec = (long)((until - now) % LEAT_SECOND);
        }
        ppoll(&fd, 1, &pause, NULL);
        while ((n = leat_cli_udp_recv(a->fd, a->in, sizeof a->in, &arrival)) >= 0) {
            if (a->ext_id) {
                take_rtcp(a, (leat_span){a->in, (size_t)n});
            }
        }
        now = leat_clock_now();
    } while (now < until && !leat_cli_rtp_stopped && !(told_ends && is_told(a)));
}

/* ---- sending ----------------------------------------------------------------------------------
 */

/* The packet with the extension's element put in or replaced; its length, 0: it cannot be. */
static size_t number_packet(app *a, leat_span data)
{
    leat_rtp_packet packet;
    leat_rtp_ext_iter iter;
    leat_rtp_ext exts[EXTS];
    uint8_t number[LEAT_TWCC_EXT];
    uint32_t csrcs[LEAT_RTP_CSRCS_MAX];
    leat_rtp_header h = {.csrcs = csrcs, .exts = exts};
    size_t len;

    if (leat_rtp_parse(data, &packet) != LEAT_OK) {
        return 0;
    }
    h.ssrc = packet.ssrc;
    h.timestamp = packet.timestamp;
    h.seq = packet.seq;
    h.payload_type = packet.payload_type;
    h.marker = packet.marker;
    h.csrc_count = packet.csrc_count;
    h.padding = packet.padding > 0;
    for (unsigned i = 0; i < packet.csrc_count; i++) {
        csrcs[i] = leat_rtp_csrc(&packet, i);
    }
    leat_twcc_ext_write(number, leat_twcc_next_seq(&a->sender));
    exts[h.ext_count++] = (leat_rtp_ext){a->ext_id, {number, sizeof number}};
    leat_rtp_ext_begin(&iter, &packet);
    while (h.ext_count < EXTS && leat_rtp_ext_next(&iter, &exts[h.ext_count])) {
        h.ext_count += exts[h.ext_count].id != a->ext_id;
    }
    if (leat_rtp_write(&h, a->out, sizeof a->out - data.len, &len) != LEAT_OK) {
        return 0;
    }
    memcpy(a->out + len, packet.payload.data, packet.payload.len + packet.padding);
    return len + packet.payload.len + packet.padding;
}

static void send_datagram(app *a, const leat_cli_datagram *d)
{
    leat_span data = d->data;
    bool rtcp = leat_rtp_is_rtcp(data), sent;

    if (data.len < 2 || data.data[0] >> 6 != 2 || d->cut > 0) {
        a->sum.left_out++;
        return;
    }
    if (a->ext_id && !rtcp) {
        size_t len = number_packet(a, data);

        if (len == 0) {
            a->sum.left_out++;
            return;
        }
        data = (leat_span){a->out, len};
        leat_twcc_sent(&a->sender, leat_clock_now(), (uint32_t)len);
        a->numbered++;
    }
    sent = leat_cli_udp_send(a->fd, data.data, data.len, &a->to);
    a->sum.packets += sent;
    a->sum.bytes += sent ? data.len : 0;
    a->sum.refused += !sent;
}

/* When what came `time` after the first is to go out. At a speed of next to nothing that is some
 * thirty years off. */
static leat_time due(const app *a, leat_time start, leat_time time)
{
    double after = a->speed > 0 ? (double)time / a->speed : 0;

    return after < 1e18 ? start + (leat_time)after : start + 1000000000 * LEAT_SECOND;
}

static leat_cli_exit play_once(app *a, const char *path)
{
    leat_cli_exit code = leat_cli_capture_open(&a->capture, path);
    leat_time start = leat_clock_now();
    leat_cli_datagram d;

    while (code == LEAT_EXIT_OK && !leat_cli_rtp_stopped &&
           leat_cli_capture_next(&a->capture, &d)) {
        wait_until(a, due(a, start, d.time), false);
        if (!leat_cli_rtp_stopped) {
            send_datagram(a, &d);
        }
    }
    leat_cli_capture_close(&a->capture);
    return code;
}

static leat_cli_exit play(app *a, const char *path)
{
    leat_cli_exit code = LEAT_EXIT_OK;
    char text[LEAT_ADDR_TEXT_MAX];

    if (leat_mem_new(NULL, &a->mem) != LEAT_OK ||
        leat_twcc_sender_init(&a->sender, a->mem, 0) != LEAT_OK) {
        leat_cli_error("out of memory");
        return LEAT_EXIT_MEMORY;
    }
    a->fd = leat_cli_udp_open(&a->local, &a->to);
    if (a->fd < 0) {
        return LEAT_EXIT_ADDRESS;
    }
    for (uint64_t i = 0; i < a->loops && code == LEAT_EXIT_OK && !leat_cli_rtp_stopped; i++) {
        code = play_once(a, path);
    }
    if (a->ext_id && code == LEAT_EXIT_OK && !leat_cli_rtp_stopped) {
        wait_until(a, leat_clock_now() + a->linger, true);
    }
    if (code == LEAT_EXIT_OK && a->sum.packets == 0 && a->sum.refused > 0) {
        leat_cli_error("nothing could be sent to %s", leat_addr_format(&a->to, text));
        code = LEAT_EXIT_ADDRESS;
    }
    if (!a->quiet && (code == LEAT_EXIT_OK || code == LEAT_EXIT_ADDRESS)) {
        fflush(stdout);
#define STAT_LINE(name, text)                                                                      \
    fprintf(stderr, "%-14s %10llu  %s\n", #name, (unsigned long long)a->sum.name, text);
        PLAY_STAT_LIST(STAT_LINE)
#undef STAT_LINE
    }
    return code;
}

/* ---- options ----------------------------------------------------------------------------------
 */

static void print_help(void)
{
    puts("usage: leat rtp play [OPTION...] --to URL FILE.pcap|FILE.rtpdump|-\n\n"
         "Sends the RTP and RTCP of a capture again, at its pace.\n");
    leat_cli_print_options(options, sizeof options / sizeof options[0]);
    leat_cli_print_exit_codes();
}

static bool take_speed(app *a, const char *text)
{
    char *end;

    a->speed = strtod(text, &end);
    if (end == text || *end || !(a->speed >= 0 && a->speed <= 1e6)) {
        leat_cli_error("--speed wants a factor such as 2 or 0.5, not '%s'", text);
        return false;
    }
    return true;
}

static bool take_option(app *a, int id)
{
    uint64_t n = 0;
    bool good;

    switch (id) {
    case OPT_TO:
        return leat_cli_udp_target("to", optarg, &a->to);
    case OPT_LISTEN:
        return leat_cli_udp_url("listen", optarg, &a->local);
    case OPT_SPEED:
        return take_speed(a, optarg);
    case OPT_LOOPS:
        return leat_cli_number("loops", optarg, 1, UINT64_MAX, &a->loops);
    case OPT_TWCC:
        good = leat_cli_number("twcc", optarg, 1, 255, &n);
        a->ext_id = (uint8_t)n;
        return good;
    case OPT_LINGER:
        return leat_cli_seconds("linger", optarg, LEAT_CLI_ZERO_TOO, &a->linger);
    case OPT_RESULTS:
        a->results = true;
        return true;
    case OPT_QUIET:
        a->quiet = true;
        return true;
    default:
        return false;
    }
}

int leat_cli_rtp_play(int argc, char **argv)
{
    static app a;
    leat_cli_exit code;
    leat_cli_parser parser;
    int id;

    a = (app){.speed = 1, .loops = 1, .linger = LEAT_SECOND, .fd = -1};
    leat_cli_parser_init(&parser, "rtp play", options, sizeof options / sizeof options[0]);
    while ((id = leat_cli_option_next(&parser, argc, argv)) != -1) {
        if (id == OPT_HELP) {
            print_help();
            return LEAT_EXIT_OK;
        }
        if (!take_option(&a, id)) {
            return LEAT_EXIT_USAGE;
        }
    }
    if (argc - optind != 1 || a.to.family == 0) {
        leat_cli_error("one file and --to are wanted (try 'leat rtp play --help')");
        return LEAT_EXIT_USAGE;
    }
    leat_cli_rtp_catch_signals();
    code = play(&a, argv[optind]);
    if (a.fd >= 0) {
        close(a.fd);
    }
    leat_twcc_sender_free(&a.sender);
    leat_mem_free(a.mem);
    return code;
}
