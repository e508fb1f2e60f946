/* cli/rtp_feedback.c: `leat rtp feedback`: receives RTP and answers with transport-wide feedback or
 * RFC 8888.
 *
 * One thread, one poll: datagrams are recorded as they come, feedback goes out when the policy says
 * so, and a line of statistics once a second. All memory is taken before the first packet.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rtp_feedback.h"

#include <errno.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

#include <leat/limits.h>

#define FEEDBACK_OPTIONS(X)                                                                        \
    X(LISTEN, "listen", 'l', "URL", "where RTP comes in (default: udp://:5004)")                   \
    X(RTCP, "rtcp-listen", 0, "URL", "where RTCP comes in, if not there too")                      \
    X(TO, "to", 't', "URL", "where feedback goes (default: where the RTP came from)")              \
    X(FORMAT, "format", 'f', "NAME", "twcc or rfc8888 (default: twcc)")                            \
    X(EXT_ID, "ext-id", 'e', "N", "ID of the transport-wide header extension (default: 1)")        \
    X(CLOCK_RATE, "clock-rate", 0, "HZ", "of the RTP timestamps, for the jitter (default: 90000)") \
    X(INTERVAL, "interval", 'i', "SECONDS", "from one feedback to the next (default: 0.1)")        \
    X(MTU, "mtu", 0, "BYTES", "of a feedback datagram at most (default: 1200)")                    \
    X(REDUCED, "reduced-size", 0, NULL, "no receiver report before the feedback (RFC 5506)")       \
    X(PCAP, "pcap", 0, "FILE", "write what comes and goes into a capture")                         \
    X(TIME, "time", 0, "SECONDS", "end after so long (default: run until interrupted)")            \
    X(JSON, "json", 'j', NULL, "statistics as JSON lines, also on a terminal")                     \
    X(QUIET, "quiet", 'q', NULL, "no statistics, only the sums at the end")                        \
    X(HELP, "help", 'h', NULL, "print this help")

#define FEEDBACK_ENUM(id, name, letter, arg, help) OPT_##id,
enum { OPT_FIRST = 256, FEEDBACK_OPTIONS(FEEDBACK_ENUM) OPT_END };
#define FEEDBACK_ROW(id, name, letter, arg, help) {OPT_##id, name, letter, arg, help},
static const leat_cli_option options[] = {FEEDBACK_OPTIONS(FEEDBACK_ROW)};

enum {
    MTU_MIN = 128,    /* a report with one block, the name and a feedback packet */
    BURST = 256,      /* datagrams taken before anything else has its turn */
    LAST_BURSTS = 64, /* taken at the end: more than a socket's buffer holds */
};

/* ---- what comes -------------------------------------------------------------------------------
 */

static leat_report_source *source_of(feedback *a, uint32_t ssrc)
{
    for (size_t i = 0; i < a->source_count; i++) {
        if (a->sources[i].ssrc == ssrc) {
            return &a->sources[i];
        }
    }
    if (a->source_count == FEEDBACK_SOURCES) {
        return NULL;
    }
    leat_report_source_init(&a->sources[a->source_count], ssrc, a->clock_rate);
    return &a->sources[a->source_count++];
}

static void take_rtp(feedback *a, leat_span data, const leat_cli_arrival *arrival)
{
    leat_rtp_packet packet;
    leat_report_source *source;
    leat_span ext;
    uint16_t seq;

    if (leat_rtp_parse(data, &packet) != LEAT_OK) {
        a->sum.bad++;
        return;
    }
    a->peer = arrival->from;
    a->sum.packets++;
    a->sum.bytes += data.len;
    leat_cli_steady_add(&a->steady, data.len, a->mem);
    source = source_of(a, packet.ssrc);
    if (source) {
        leat_report_on_packet(source, packet.seq, packet.timestamp, arrival->at);
    }
    if (a->rfc8888) {
        leat_ccfb_record(&a->ccfb, packet.ssrc, packet.seq, arrival->at, arrival->ecn);
    } else if (leat_rtp_ext_find(&packet, a->ext_id, &ext) && leat_twcc_ext_read(ext, &seq)) {
        leat_twcc_record(&a->twcc, packet.ssrc, seq, arrival->at);
    } else {
        a->sum.without_ext++;
        return;
    }
    leat_fb_policy_on_packet(&a->policy, arrival->at);
}

static void take_rtcp(feedback *a, leat_span data, leat_time at)
{
    leat_rtcp_iter iter;
    leat_rtcp_packet packet;
    leat_rtcp_sender_info info;

    leat_rtcp_begin(&iter, data);
    while (leat_rtcp_next(&iter, &packet)) {
        a->sum.rtcp++;
        if (leat_rtcp_sr_parse(&packet, &info) == LEAT_OK) {
            leat_report_source *source = source_of(a, info.ssrc);

            if (source) {
                leat_report_on_sr(source, &info, at);
            }
        }
    }
    a->sum.bad += iter.err != LEAT_OK;
}

/* Takes what waits in a socket, a burst at most; whether there was a whole burst. */
static bool take(feedback *a, int fd)
{
    leat_cli_arrival arrival;

    for (unsigned i = 0; i < BURST; i++) {
        ssize_t n = leat_cli_udp_recv(fd, a->in, sizeof a->in, &arrival);
        leat_span data = {a->in, n > 0 ? (size_t)n : 0};

        if (n < 0) {
            return false;
        }
        if (a->pcap) {
            leat_pcap_write(a->pcap, arrival.at, &arrival.from, &a->local, arrival.ecn, data);
        }
        if (leat_rtp_is_rtcp(data)) {
            take_rtcp(a, data, arrival.at);
        } else {
            take_rtp(a, data, &arrival);
        }
    }
    return true;
}

/* ---- what goes --------------------------------------------------------------------------------
 */

/* The receiver report and the name that a compound packet begins with; blocks in the first alone.
 */
static size_t write_report(feedback *a, leat_time now, bool with_blocks)
{
    static const char name[] = "leat";
    leat_rtcp_sdes_item item = {
        a->ssrc, LEAT_RTCP_SDES_CNAME, {(const uint8_t *)name, sizeof name - 1}};
    leat_rtcp_report blocks[FEEDBACK_SOURCES];
    leat_rtcp_writer w;
    size_t count = 0, most = (a->mtu - MTU_MIN) / 24 + 1;

    leat_rtcp_writer_init(&w, a->out, a->mtu);
    for (size_t i = 0; with_blocks && i < a->source_count && count < most; i++) {
        count += leat_report_block(&a->sources[i], now, &blocks[count]);
    }
    leat_rtcp_write_rr(&w, a->ssrc, blocks, count);
    leat_rtcp_write_sdes(&w, &item, 1);
    return w.len;
}

static void send_datagram(feedback *a, leat_time now, size_t len)
{
    const leat_addr *to = a->to.family ? &a->to : &a->peer;

    if (!leat_cli_udp_send(a->fd, a->out, len, to)) {
        a->sum.send_errors++;
        return;
    }
    a->sum.feedback_packets++;
    a->sum.feedback_bytes += len;
    if (a->pcap) {
        leat_pcap_write(a->pcap, now, &a->local, to, 0, (leat_span){a->out, len});
    }
}

static void send_feedback(feedback *a, leat_time now)
{
    bool first = true, more = true;

    while (more) {
        size_t len = a->reduced ? 0 : write_report(a, now, first);
        size_t n = a->rfc8888 ? leat_ccfb_build(&a->ccfb, now, a->out + len, a->mtu - len)
                              : leat_twcc_build(&a->twcc, a->out + len, a->mtu - len);

        more = a->rfc8888 ? leat_ccfb_pending(&a->ccfb) : leat_twcc_pending(&a->twcc);
        if (n > 0) {
            send_datagram(a, now, len + n);
        }
        first = false;
    }
    leat_fb_policy_on_sent(&a->policy, now);
}

/* ---- the loop ---------------------------------------------------------------------------------
 */

/* What came before the end is counted and reported. */
static void finish(feedback *a)
{
    for (unsigned i = 0; i < LAST_BURSTS && take(a, a->fd); i++) {
    }
    if (a->rfc8888 ? leat_ccfb_pending(&a->ccfb) : leat_twcc_pending(&a->twcc)) {
        send_feedback(a, leat_clock_now());
    }
}

static leat_cli_exit run(feedback *a)
{
    struct pollfd fds[2] = {{.fd = a->fd, .events = POLLIN}, {.fd = a->rtcp_fd, .events = POLLIN}};
    leat_time now = leat_clock_now();

    a->started = now;
    a->next_line = now + LEAT_SECOND;
    a->end = a->end ? now + a->end : LEAT_TIME_NEVER;
    while (!leat_cli_rtp_stopped && now < a->end) {
        leat_time next = leat_fb_policy_deadline(&a->policy);

        next = next < a->next_line ? next : a->next_line;
        next = next < a->end ? next : a->end;
        if (poll(fds, a->rtcp_fd >= 0 ? 2 : 1,
                 next > now ? (int)((next - now + 999999) / 1000000) : 0) < 0 &&
            errno != EINTR) {
            leat_cli_error("poll: %s", strerror(errno));
            return LEAT_EXIT_FAILURE;
        }
        take(a, a->fd);
        if (a->rtcp_fd >= 0) {
            take(a, a->rtcp_fd);
        }
        now = leat_clock_now();
        if (leat_fb_policy_is_due(&a->policy, now)) {
            send_feedback(a, now);
        }
        if (now >= a->next_line) {
            a->next_line = now + LEAT_SECOND;
            if (!a->quiet) {
                feedback_print_line(a, now);
            }
        }
    }
    finish(a);
    feedback_print_sums(a, leat_clock_now());
    return LEAT_EXIT_OK;
}

static leat_cli_exit prepare(feedback *a)
{
    struct timespec real;
    leat_ccfb_settings ccfb;
    char text[LEAT_ADDR_TEXT_MAX];

    leat_entropy(&a->ssrc, sizeof a->ssrc);
    leat_ccfb_settings_init(&ccfb);
    ccfb.sender_ssrc = a->ssrc;
    clock_gettime(CLOCK_REALTIME, &real);
    ccfb.ntp_zero = leat_ntp_from_unix((leat_time)real.tv_sec * LEAT_SECOND +
                                       (leat_time)real.tv_nsec - leat_clock_now());
    leat_fb_policy_init(&a->policy, a->interval, LEAT_TWCC_RECORD_DEFAULT / 2);
    if (leat_mem_new(NULL, &a->mem) != LEAT_OK ||
        leat_twcc_recorder_init(&a->twcc, a->mem, a->ssrc, 0) != LEAT_OK ||
        leat_ccfb_recorder_init(&a->ccfb, a->mem, &ccfb) != LEAT_OK) {
        leat_cli_error("out of memory");
        return LEAT_EXIT_MEMORY;
    }
    if (a->pcap_path && leat_pcap_open(a->pcap_path, &a->pcap) != LEAT_OK) {
        leat_cli_error("cannot write %s: %s", a->pcap_path, strerror(errno));
        return LEAT_EXIT_FILE;
    }
    a->fd = leat_cli_udp_open(&a->listen, NULL);
    a->rtcp_fd = a->rtcp_listen.family ? leat_cli_udp_open(&a->rtcp_listen, NULL) : -1;
    if (a->fd < 0 || (a->rtcp_listen.family && a->rtcp_fd < 0)) {
        return LEAT_EXIT_ADDRESS;
    }
    a->local = leat_cli_udp_local(a->fd);
    fprintf(stderr, "listening on %s\n", leat_addr_format(&a->local, text));
    return LEAT_EXIT_OK;
}

static leat_cli_exit release(feedback *a, leat_cli_exit code)
{
    if (a->fd >= 0) {
        close(a->fd);
    }
    if (a->rtcp_fd >= 0) {
        close(a->rtcp_fd);
    }
    leat_twcc_recorder_free(&a->twcc);
    leat_ccfb_recorder_free(&a->ccfb);
    if (leat_pcap_close(a->pcap) != LEAT_OK) {
        leat_cli_error("%s could not be written whole", a->pcap_path);
        code = code == LEAT_EXIT_OK ? LEAT_EXIT_FILE : code;
    }
    leat_mem_free(a->mem);
    return code;
}

/* ---- options ----------------------------------------------------------------------------------
 */

static void print_help(void)
{
    puts("usage: leat rtp feedback [OPTION...]\n\n"
         "Receives RTP over UDP and answers with transport-wide feedback (the packets then carry\n"
         "the header extension " LEAT_TWCC_EXT_URI ")\n"
         "or with RFC 8888. Statistics once a second: a line on a terminal, or JSON lines.\n");
    leat_cli_print_options(options, sizeof options / sizeof options[0]);
    leat_cli_print_exit_codes();
}

static bool take_format(feedback *a, const char *name)
{
    a->rfc8888 = strcmp(name, "rfc8888") == 0 || strcmp(name, "ccfb") == 0;
    if (!a->rfc8888 && strcmp(name, "twcc") != 0) {
        leat_cli_error("--format wants twcc or rfc8888, not '%s'", name);
        return false;
    }
    return true;
}

static bool take_option(feedback *a, int id)
{
    uint64_t n = 0;
    bool good = true;

    switch (id) {
    case OPT_LISTEN:
        return leat_cli_udp_url("listen", optarg, &a->listen);
    case OPT_RTCP:
        return leat_cli_udp_url("rtcp-listen", optarg, &a->rtcp_listen);
    case OPT_TO:
        return leat_cli_udp_target("to", optarg, &a->to);
    case OPT_FORMAT:
        return take_format(a, optarg);
    case OPT_EXT_ID:
        good = leat_cli_number("ext-id", optarg, 1, 255, &n);
        a->ext_id = (uint8_t)n;
        return good;
    case OPT_CLOCK_RATE:
        good = leat_cli_number("clock-rate", optarg, 1, 1000000000, &n);
        a->clock_rate = (uint32_t)n;
        return good;
    case OPT_MTU:
        good = leat_cli_number("mtu", optarg, MTU_MIN, FEEDBACK_MTU_MAX, &n);
        a->mtu = (size_t)n;
        return good;
    case OPT_INTERVAL:
        return leat_cli_seconds("interval", optarg, LEAT_CLI_ZERO_TOO, &a->interval);
    case OPT_TIME:
        return leat_cli_seconds("time", optarg, LEAT_CLI_ZERO_TOO, &a->end);
    case OPT_REDUCED:
        a->reduced = true;
        return true;
    case OPT_PCAP:
        a->pcap_path = optarg;
        return true;
    case OPT_JSON:
        a->json = true;
        return true;
    case OPT_QUIET:
        a->quiet = true;
        return true;
    default:
        return false;
    }
}

int leat_cli_rtp_feedback(int argc, char **argv)
{
    static feedback a;
    static char line[BUFSIZ]; /* stdio would take one of its own when the first line is printed */
    leat_cli_exit code;
    leat_cli_parser parser;
    int id;

    a = (feedback){.listen = {.family = 4, .port = 5004},
                   .ext_id = 1,
                   .clock_rate = 90000,
                   .interval = 100 * LEAT_MILLISECOND,
                   .mtu = 1200,
                   .fd = -1,
                   .rtcp_fd = -1};
    leat_cli_parser_init(&parser, "rtp feedback", options, sizeof options / sizeof options[0]);
    while ((id = leat_cli_option_next(&parser, argc, argv)) != -1) {
        if (id == OPT_HELP) {
            print_help();
            return LEAT_EXIT_OK;
        }
        if (!take_option(&a, id)) {
            return LEAT_EXIT_USAGE;
        }
    }
    if (optind != argc) {
        leat_cli_error("no argument is wanted (try 'leat rtp feedback --help')");
        return LEAT_EXIT_USAGE;
    }
    leat_cli_rtp_catch_signals();
    setvbuf(stdout, line, isatty(STDOUT_FILENO) ? _IOLBF : _IOFBF, sizeof line);
    code = prepare(&a);
    if (code == LEAT_EXIT_OK) {
        code = run(&a);
    }
    return release(&a, code);
}
