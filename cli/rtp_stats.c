/* cli/rtp_stats.c: the numbers of `leat rtp send` and `recv`, each interval: one line on a terminal
 * that is drawn again, JSON lines otherwise. A line is made in one buffer, so that nothing is
 * allocated. Media never wait for a reader of them: what a pipe does not take now is kept, and
 * lines that come meanwhile are dropped, so that each that is there is whole.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rtp_carry.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- lines ---- */

/* The most that a flow has in a line: its own numbers and the library's, at full length. */
#define NUMBER_MOST(name, text) +sizeof(",\"" #name "\":18446744073709551615")
enum { FLOW_MOST = 320 LEAT_ROQ_STAT_LIST(NUMBER_MOST) };
#undef NUMBER_MOST

_Static_assert(CARRY_FLOWS *FLOW_MOST + 1024 <= CARRY_LINE, "a line holds all flows");

typedef struct line {
    char text[CARRY_LINE];
    size_t len;
} line;

__attribute__((format(printf, 2, 3))) static void add(line *l, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(l->text + l->len, sizeof l->text - l->len, format, args);
    va_end(args);
    if (n > 0) {
        l->len += (size_t)n < sizeof l->text - l->len ? (size_t)n : sizeof l->text - l->len - 1;
    }
}

/* Writes what the file takes within so many milliseconds; returns how much. A pipe that is ready
 * takes PIPE_BUF bytes at least. */
static size_t put_some(int fd, const char *text, size_t len, int patience)
{
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    size_t at = 0;

    while (at < len && poll(&ready, 1, patience) > 0 && (ready.revents & POLLOUT)) {
        ssize_t n = write(fd, text + at, len - at < PIPE_BUF ? len - at : PIPE_BUF);

        if (n < 0 && errno != EINTR && errno != EAGAIN) {
            return len; /* a reader that is gone: media go on */
        }
        at += n > 0 ? (size_t)n : 0;
    }
    return ready.revents & (POLLERR | POLLNVAL) ? len : at;
}

/* False: the line is dropped. */
static bool put(carry_reader *to, const char *text, size_t len, int patience)
{
    size_t n;

    if (to->len > 0) {
        n = put_some(to->fd, to->rest, to->len, patience);
        to->len -= n;
        memmove(to->rest, to->rest + n, to->len);
    }
    if (to->len > 0 || len > sizeof to->rest) {
        return false;
    }
    n = put_some(to->fd, text, len, patience);
    if (n > 0 && n < len) {
        to->len = len - n;
        memcpy(to->rest, text + n, to->len);
    }
    return n > 0;
}

/* The last line is worth waiting for, but not for ever. */
static int patience_of(const carry *app)
{
    return app->ending ? 500 : 0;
}

static void put_log(carry *app, const line *l)
{
    errno = 0;
    (void)put(&app->log, l->text, l->len, patience_of(app));
    if (errno == ENOSPC || errno == EIO || errno == EFBIG || errno == EDQUOT) {
        leat_cli_error("cannot write %s: %s", app->log_path, strerror(errno));
        close(app->log.fd);
        app->log.fd = -1;
        app->log_failed = true;
    }
}

static void put_json(carry *app, line *l)
{
    add(l, "\n");
    if (app->log.fd >= 0) {
        put_log(app, l);
    }
    if (!app->live && !app->server.common.quiet) {
        (void)put(&app->out, l->text, l->len, patience_of(app));
    }
}

/* Milliseconds with three places, in integers: nothing here wants a locale. */
static void add_ms(line *l, const char *name, leat_time time)
{
    add(l, ",\"%s\":%llu.%03llu", name, (unsigned long long)(time / LEAT_MILLISECOND),
        (unsigned long long)(time / LEAT_MICROSECOND % 1000));
}

static void add_fraction(line *l, const char *name, uint64_t part, uint64_t whole)
{
    uint64_t millionths = whole ? part * 1000000 / whole : 0;

    add(l, ",\"%s\":%llu.%06llu", name, (unsigned long long)(millionths / 1000000),
        (unsigned long long)(millionths % 1000000));
}

static void begin(carry *app, line *l, const char *event)
{
    leat_time t = leat_clock_now() - app->started;

    l->len = 0;
    add(l, "{\"event\":\"%s\",\"time\":%llu.%03llu", event, (unsigned long long)(t / LEAT_SECOND),
        (unsigned long long)(t / LEAT_MILLISECOND % 1000));
}

/* ---- the numbers ---- */

static uint64_t dropped_of(const leat_roq_stats *s)
{
    return s->packets_late + s->packets_overflow + s->packets_stopped + s->packets_dropped;
}

/* Of a flow, all its sessions together. */
static leat_roq_stats stats_of(const carry_flow *flow)
{
    leat_roq_stats all = flow->past, now;

    if (flow->flow) {
        leat_roq_flow_stats(flow->flow, &now);
#define SUM(name, text) all.name += now.name;
        LEAT_ROQ_STAT_LIST(SUM)
#undef SUM
    }
    return all;
}

static carry_sum sum_of(const carry *app, leat_time *queue_delay, uint64_t *queue_bytes)
{
    carry_sum sum = {0};

    *queue_delay = 0;
    *queue_bytes = 0;
    for (size_t i = 0; i < app->flow_count; i++) {
        leat_roq_stats s = stats_of(&app->flows[i]);

        sum.sent += s.packets_sent;
        sum.sent_bytes += s.bytes_sent;
        sum.acked += s.packets_acked;
        sum.lost += s.packets_lost;
        sum.dropped += dropped_of(&s);
        sum.received += s.packets_received;
        sum.received_bytes += s.bytes_received;
        *queue_bytes += s.queue_bytes;
        *queue_delay = s.queue_delay > *queue_delay ? s.queue_delay : *queue_delay;
    }
    return sum;
}

static leat_time jitter_of(const carry *app, const leat_conn_stats_data *conn)
{
    leat_time most = 0;

    if (app->sender) {
        return conn->rtt_var;
    }
    for (size_t i = 0; i < app->flow_count; i++) {
        if (app->flows[i].source_known) {
            leat_time jitter = leat_report_jitter(&app->flows[i].source);

            most = jitter > most ? jitter : most;
        }
    }
    return most;
}

/* Packets that should have come and did not, of the receiving side's sources. */
static uint64_t missing_of(const carry *app)
{
    uint64_t missing = 0;

    for (size_t i = 0; i < app->flow_count; i++) {
        int64_t lost = app->flows[i].source_known ? leat_report_lost(&app->flows[i].source) : 0;

        missing += lost > 0 ? (uint64_t)lost : 0;
    }
    return missing;
}

typedef struct numbers {
    carry_sum all, now; /* since the start; in this interval */
    uint64_t rate;      /* bits a second */
    uint64_t lost, of;  /* in this interval */
    leat_time rtt, jitter, queue_delay;
    uint64_t queue_bytes, cwnd, missing;
} numbers;

/* A session is there as soon as a connection is asked for; what is known of the path before
 * somebody answers is a guess. */
static bool is_connected(const carry *app)
{
    return app->roq && leat_conn_is_connected(leat_roq_conn(app->roq));
}

static numbers look(carry *app)
{
    leat_time now = leat_clock_now();
    leat_time since = now > app->last ? now - app->last : 1;
    leat_conn_stats_data conn = {0};
    uint64_t missing = missing_of(app);
    numbers n = {.missing = missing};

    if (is_connected(app)) {
        leat_conn_stats(leat_roq_conn(app->roq), &conn);
    }
    n.all = sum_of(app, &n.queue_delay, &n.queue_bytes);
    n.now = (carry_sum){
        .sent = n.all.sent - app->before.sent,
        .sent_bytes = n.all.sent_bytes - app->before.sent_bytes,
        .acked = n.all.acked - app->before.acked,
        .lost = n.all.lost - app->before.lost,
        .dropped = n.all.dropped - app->before.dropped,
        .received = n.all.received - app->before.received,
        .received_bytes = n.all.received_bytes - app->before.received_bytes,
    };
    n.rate = (uint64_t)((double)(app->sender ? n.now.sent_bytes : n.now.received_bytes) * 8 *
                        (double)LEAT_SECOND / (double)since);
    if (app->sender) {
        n.lost = n.now.lost + n.now.dropped;
        n.of = n.now.acked + n.lost;
    } else {
        n.lost = missing > app->missing_before ? missing - app->missing_before : 0;
        n.of = n.now.received + n.lost;
    }
    n.rtt = conn.rtt_smoothed;
    n.jitter = jitter_of(app, &conn);
    n.cwnd = conn.cwnd;
    app->before = n.all;
    app->missing_before = missing;
    app->last = now;
    return n;
}

static void add_flow(line *l, const carry_flow *flow, bool first)
{
    leat_roq_stats s = stats_of(flow);

    add(l,
        "%s{\"flow\":%llu,\"in_packets\":%llu,\"in_bytes\":%llu,\"out_packets\":%llu,"
        "\"out_bytes\":%llu,\"refused\":%llu,\"unsent\":%llu",
        first ? "" : ",", (unsigned long long)flow->id, (unsigned long long)flow->in_packets,
        (unsigned long long)flow->in_bytes, (unsigned long long)flow->out_packets,
        (unsigned long long)flow->out_bytes, (unsigned long long)flow->refused,
        (unsigned long long)flow->unsent);
#define ADD(name, text)                                                                            \
    if (strcmp(#name, "queue_delay") == 0) {                                                       \
        add_ms(l, #name, s.name);                                                                  \
    } else {                                                                                       \
        add(l, ",\"%s\":%llu", #name, (unsigned long long)s.name);                                 \
    }
    LEAT_ROQ_STAT_LIST(ADD)
#undef ADD
    add(l, "}");
}

static void write_json(carry *app, const numbers *n, const char *event)
{
    static line l;

    begin(app, &l, event);
    add(&l, ",\"connected\":%s,\"rate\":%llu", is_connected(app) ? "true" : "false",
        (unsigned long long)n->rate);
    add_fraction(&l, "loss", n->lost, n->of);
    add_ms(&l, "rtt", n->rtt);
    add_ms(&l, "jitter", n->jitter);
    if (app->estimate) {
        add(&l, ",\"estimate\":%llu", (unsigned long long)app->estimate);
    } else {
        add(&l, ",\"estimate\":null");
    }
    add_ms(&l, "queue_delay", n->queue_delay);
    add(&l, ",\"queue_bytes\":%llu,\"cwnd\":%llu,\"reconnects\":%llu,\"unknown\":%llu,\"flows\":[",
        (unsigned long long)n->queue_bytes, (unsigned long long)n->cwnd,
        (unsigned long long)app->reconnects, (unsigned long long)app->unknown);
    for (size_t i = 0; i < app->flow_count; i++) {
        add_flow(&l, &app->flows[i], i == 0);
    }
    add(&l, "]}");
    put_json(app, &l);
}

static void write_live(carry *app, const numbers *n)
{
    static line l;

    l.len = 0;
    add(&l, "\r\033[K%s %.2f Mbit/s, loss %.1f %%, RTT %.0f ms, jitter %.1f ms",
        is_connected(app) ? (app->sender ? "sending" : "receiving") : "no connection",
        (double)n->rate / 1e6, n->of ? 100.0 * (double)n->lost / (double)n->of : 0.0,
        (double)n->rtt / 1e6, (double)n->jitter / 1e6);
    if (app->estimate) {
        add(&l, ", estimate %.2f Mbit/s", (double)app->estimate / 1e6);
    }
    add(&l, ", queue %.0f ms", (double)n->queue_delay / 1e6);
    (void)put(&app->out, l.text, l.len, 0);
}

static void tick(leat_timer *timer, leat_time now)
{
    carry *app = (carry *)(void *)((char *)timer - offsetof(carry, stats_timer));
    numbers n = look(app);

    if (app->live) {
        write_live(app, &n);
    }
    write_json(app, &n, "stats");
    leat_timer_set(timer, now + app->interval);
}

/* ---- the public face ---- */

bool carry_log_open(carry *app, const char *path)
{
    app->log.fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (app->log.fd < 0) {
        leat_cli_error("cannot write %s: %s", path, strerror(errno));
        return false;
    }
    return true;
}

void carry_stats_start(carry *app)
{
    app->live = isatty(STDOUT_FILENO) && !app->server.common.quiet;
    app->started = app->last = leat_clock_now();
    leat_timer_init(&app->stats_timer, leat_loop_ctx(app->server.loop), tick);
    leat_timer_set(&app->stats_timer, app->started + app->interval);
}

void carry_stats_stop(carry *app)
{
    numbers n = look(app);

    app->ending = true;
    leat_timer_unset(&app->stats_timer);
    if (app->encoder.fd >= 0) {
        leat_timer_unset(&app->estimate_timer);
    }
    if (app->live) {
        (void)put(&app->out, "\r\033[K", 4, 0);
    }
    write_json(app, &n, "end");
    app->ended = true;
    if (app->log.fd >= 0) {
        close(app->log.fd);
        app->log.fd = -1;
    }
}

void carry_say(carry *app, const char *event, const char *detail)
{
    static line l;

    if (app->ended) {
        return;
    }
    if (app->live) {
        (void)put(&app->out, "\r\033[K", 4, 0);
    }
    if (!app->server.common.quiet) {
        l.len = 0;
        add(&l, "%s%s%s\n", event, detail ? ": " : "", detail ? detail : "");
        (void)put_some(STDERR_FILENO, l.text, l.len, 0);
    }
    begin(app, &l, event);
    if (detail) {
        add(&l, ",\"detail\":\"");
        for (const char *c = detail; *c; c++) {
            add(&l, *c == '"' || *c == '\\' || (unsigned char)*c < ' ' ? "?" : "%c", *c);
        }
        add(&l, "\"");
    }
    add(&l, "}");
    put_json(app, &l);
}

/* ---- the rate for an encoder ---- */

static const leat_time TELL_EVERY = LEAT_SECOND; /* one who begins to listen late */

static void tell(carry *app)
{
    char text[32];
    int n = snprintf(text, sizeof text, "%llu\n", (unsigned long long)app->estimate);
    bool taken;

    if (app->estimate_to.family) {
        taken =
            leat_cli_udp_send(app->encoder.fd, (const uint8_t *)text, (size_t)n, &app->estimate_to);
    } else {
        taken = put(&app->encoder, text, (size_t)n, 0);
    }
    if (taken) {
        app->estimate_told = app->estimate;
    }
    leat_timer_set(&app->estimate_timer,
                   leat_ctx_now(leat_loop_ctx(app->server.loop)) + TELL_EVERY);
}

static void tell_again(leat_timer *timer, leat_time now)
{
    (void)now;
    tell((carry *)(void *)((char *)timer - offsetof(carry, estimate_timer)));
}

bool carry_estimate_open(carry *app, const char *text)
{
    const char *scheme = strstr(text, "://");

    leat_timer_init(&app->estimate_timer, leat_loop_ctx(app->server.loop), tell_again);
    if (strncmp(text, "fd:", 3) == 0) {
        uint64_t fd = 0;

        if (!leat_cli_number("estimate-to", text + 3, 0, 65535, &fd)) {
            return false;
        }
        if (fcntl((int)fd, F_GETFD) < 0) {
            leat_cli_error("--estimate-to: file descriptor %d is not open", (int)fd);
            return false;
        }
        app->encoder.fd = (int)fd;
        return true;
    }
    if (!strchr(text, ':') || (scheme && strncmp(text, "udp://", 6) != 0)) {
        leat_cli_error("--estimate-to wants udp://HOST:PORT or fd:N, not '%s'", text);
        return false;
    }
    if (!leat_cli_udp_target("estimate-to", text, &app->estimate_to)) {
        return false;
    }
    app->encoder.fd = leat_cli_udp_open(&(leat_addr){.family = 0}, &app->estimate_to);
    return app->encoder.fd >= 0;
}

/* A line with the bits a second, when they have changed by a hundredth of what was told last. */
void carry_estimate_set(carry *app, uint64_t estimate)
{
    uint64_t told = app->estimate_told;
    uint64_t change = estimate > told ? estimate - told : told - estimate;

    app->estimate = estimate;
    if (app->encoder.fd >= 0 && change * 100 >= told && estimate != told) {
        tell(app);
    }
}
