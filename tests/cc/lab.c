/* tests/cc/lab.c: see lab.h.
 *
 * The queue is never smaller than QUEUE_LEAST datagrams: a BDP of 10 Mbit/s and 1 ms is less than
 * one datagram, while RFC 9002 lets every sender begin with a burst of ten.
 *
 * SPDX-License-Identifier: MIT
 */
#include "lab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/time.h"
#include "conn/conn.h"
#include "endpoint/endpoint.h"
#include "media_flow.h"
#include "net/link.h"
#include "roq_flow.h"
#include "sched/ctx.h"

#define QUEUE_LEAST 10
#define DATAGRAM    1452
#define MEDIA_PORT  5004
#define STALL_STEP  (250 * LEAT_MICROSECOND) /* of time, while one end stands still */
#define DELAYS      4000                     /* of DELAY_STEP each, and more */
#define DELAY_STEP  (100 * LEAT_MICROSECOND)

typedef struct flow {
    leat_conn *conn;
    leat_stream *stream;
    uint64_t received; /* by the server */
    uint64_t sampled;  /* of these, in samples */
    uint64_t warm;     /* of these, before the result counts */
    uint64_t lost;
    leat_time from;
    leat_lab_flow_result result;
} flow;

typedef struct run {
    const leat_lab *lab;
    leat_lab_result *result;
    leat_ctx *ctx;
    leat_endpoint *client, *server;
    leat_tls_config *client_tls, *server_tls;
    leat_addr addr[2];
    leat_net_link link;
    leat_time now, begin;
    flow flow[LEAT_LAB_FLOWS];
    size_t started;
    leat_media_flow media; /* over UDP */
    leat_roq_media roq;    /* over QUIC */
    leat_endpoint *media_client;
    leat_conn *media_conn;
    uint64_t media_received; /* bytes of datagrams */
    uint64_t media_sampled, media_warm, media_lost;
    uint32_t delays[DELAYS]; /* of the media flow's datagrams in the queue */
    uint64_t rate;           /* of the bottleneck, now */
    leat_time warm_at;
    double queue_sum;
    uint64_t queue_count;
    uint64_t bursts, burst_datagrams;
    bool warm;
} run;

static void must(bool ok, const char *what)
{
    if (!ok) {
        fprintf(stderr, "lab: %s\n", what);
        exit(1);
    }
}

static bool over_udp(const run *r)
{
    return r->lab->media && r->lab->media_feedback != LEAT_LAB_QUIC;
}

static const leat_estimate *estimate(const run *r)
{
    return over_udp(r) ? &r->media.estimate : &r->roq.estimate;
}

/* Packets of the media flow that were lost. */
static uint64_t media_lost(const run *r)
{
    leat_conn_stats_data stats;

    if (!r->media_conn) {
        return r->media.lost;
    }
    leat_conn_stats(r->media_conn, &stats);
    return stats.packets_lost;
}

/* What this share of the media flow's datagrams waited in the queue at most. */
static leat_time delay(const run *r, double share)
{
    uint64_t sum = 0, below = 0;
    size_t i;

    for (i = 0; i < DELAYS; i++) {
        sum += r->delays[i];
    }
    for (i = 0; i < DELAYS && (double)below < share * (double)sum; i++) {
        below += r->delays[i];
    }
    return i * DELAY_STEP;
}

void leat_lab_init(leat_lab *lab)
{
    *lab = (leat_lab){
        .rate = 100000000,
        .rtt = 40 * LEAT_MILLISECOND,
        .queue_bdp = 1,
        .flows = 1,
        .warm = 10 * LEAT_SECOND,
        .end = 30 * LEAT_SECOND,
        .interval = 100 * LEAT_MILLISECOND,
        .media_spread = 25,
        .seed = 1,
    };
}

/* ---- applications ---- */

static void write_all(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_mspan room;

    (void)conn;
    (void)user;
    while (leat_stream_reserve(stream, 65536, &room) == LEAT_OK) {
        memset(room.data, 'x', room.len);
        leat_stream_commit(stream, room.len);
    }
}

static void on_connected(leat_conn *conn, void *user)
{
    flow *f = user;

    must(leat_stream_open(conn, false, &f->stream) == LEAT_OK, "no stream");
    write_all(conn, f->stream, f);
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    (void)conn;
    (void)user;
    fprintf(stderr, "lab: a connection closed: %d, code %#llx: %s\n", info->kind,
            (unsigned long long)info->code, info->detail ? info->detail : "");
    exit(1);
}

static bool is_of(leat_conn *conn, leat_conn *client)
{
    leat_span a = leat_conn_odcid(client), b = leat_conn_odcid(conn);

    return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* Which flow a server's connection belongs to. */
static void on_accepted(leat_conn *conn, void *user)
{
    run *r = user;

    if (r->media_conn && is_of(conn, r->media_conn)) {
        leat_roq_media_receive_on(&r->roq, conn);
        return;
    }
    for (size_t i = 0; i < r->started; i++) {
        if (is_of(conn, r->flow[i].conn)) {
            leat_conn_set_user(conn, &r->flow[i]);
            return;
        }
    }
    must(false, "a connection that nobody opened");
}

static void read_all(leat_conn *conn, leat_stream *stream, void *user)
{
    flow *f = user;
    leat_span span;

    (void)conn;
    while ((span = leat_stream_peek(stream)).len > 0) {
        f->received += span.len;
        leat_stream_consume(stream, span.len);
    }
}

static const leat_conn_events client_events = {
    .connected = on_connected,
    .stream_writable = write_all,
    .closed = on_closed,
};

static void on_media_connected(leat_conn *conn, void *user)
{
    leat_roq_media_send_on(&((run *)user)->roq, conn);
}

static const leat_conn_events media_events = {
    .connected = on_media_connected,
    .closed = on_closed,
};

static const leat_conn_events server_events = {
    .connected = on_accepted,
    .stream_readable = read_all,
    .closed = on_closed,
};

/* ---- making it ---- */

static leat_conn_settings settings_of(const leat_lab *lab)
{
    leat_conn_settings s;

    leat_conn_settings_init(&s);
    s.max_data = s.max_stream_data_uni = LEAT_CONN_WINDOW_MAX;
    s.memory = LEAT_CONN_MEMORY_MAX;
    s.send_buffer = (size_t)(lab->rate / 8 / 1000 * (lab->rtt / LEAT_MILLISECOND) * 5) + 1048576;
    s.send_buffer = s.send_buffer < LEAT_CONN_WINDOW_MAX ? s.send_buffer : LEAT_CONN_WINDOW_MAX;
    return s;
}

static void make_tls(run *r)
{
    static char cert[LEAT_TLS_PEM_MAX], key[LEAT_TLS_PEM_MAX];
    static size_t cert_len, key_len;
    static const char *const host = "localhost", *const alpn = "leat-lab";
    leat_tls_settings tls;
    leat_tls_error error;

    if (cert_len == 0) {
        leat_tls_self_signed request = {.hosts = &host,
                                        .host_count = 1,
                                        .not_before = (int64_t)time(NULL) - 3600,
                                        .not_after = (int64_t)time(NULL) + 86400};

        must(leat_tls_make_self_signed(&request, cert, &cert_len, key, &key_len, &error) == LEAT_OK,
             "no certificate");
    }
    leat_tls_settings_init(&tls);
    tls.alpn = &alpn;
    tls.alpn_count = 1;
    tls.system_ca = false;
    tls.cert_pem = (leat_span){(const uint8_t *)cert, cert_len};
    tls.key_pem = (leat_span){(const uint8_t *)key, key_len};
    must(leat_tls_config_server(&tls, &r->server_tls, &error) == LEAT_OK, "server's TLS");
    tls.cert_pem = tls.key_pem = (leat_span){NULL, 0};
    tls.verify = tls.verify_host = false;
    must(leat_tls_config_client(&tls, &r->client_tls, &error) == LEAT_OK, "client's TLS");
}

/* The bottleneck at a rate, its queue as long as the first rate's in bytes. */
static void set_bottleneck(run *r, uint64_t rate)
{
    leat_pipe_settings pipe = r->link.pipe[0].settings;

    pipe.rate = rate;
    leat_pipe_set(&r->link.pipe[0], &pipe);
    r->rate = rate;
}

static void make_network(run *r)
{
    const leat_lab *lab = r->lab;
    leat_pipe_settings pipe = {.delay = lab->rtt / 2, .jitter = lab->jitter};
    double bdp = (double)lab->rate / 8 * (double)lab->rtt / 1e9;
    double queue = bdp * lab->queue_bdp;

    leat_net_link_init(&r->link, leat_ctx_mem(r->ctx), &pipe, lab->seed);
    pipe.jitter = lab->way_jitter;
    pipe.rate = lab->rate;
    pipe.queue = (size_t)(queue > QUEUE_LEAST * DATAGRAM ? queue : QUEUE_LEAST * DATAGRAM);
    pipe.loss = lab->loss;
    leat_pipe_set(&r->link.pipe[0], &pipe);
    r->result->queue_limit = pipe.queue;
}

static void connect_media(run *r)
{
    leat_connect how = {
        .remote = r->addr[1],
        .local = r->addr[0],
        .server_name = "localhost",
        .tls = r->client_tls,
        .events = &media_events,
        .user = r,
    };

    how.local.port = MEDIA_PORT;
    must(leat_conn_connect(r->media_client, &how, &r->media_conn) == LEAT_OK, "cannot connect");
}

static void make_media(run *r, leat_endpoint_settings *ep)
{
    const leat_lab *lab = r->lab;
    leat_media_encoder encoder = {.next = r->now,
                                  .most = lab->media_most,
                                  .deaf = lab->media_deaf,
                                  .spread = lab->media_spread};

    leat_prng_seed(&encoder.prng, lab->seed);
    if (lab->media_feedback != LEAT_LAB_QUIC) {
        leat_media_flow_init(&r->media, leat_ctx_mem(r->ctx), lab->media_feedback == LEAT_LAB_CCFB,
                             &encoder);
        return;
    }
    leat_roq_media_init(&r->roq, &encoder, lab->media_datagrams);
    ep->server_tls = NULL;
    must(leat_endpoint_new(r->ctx, ep, &r->media_client) == LEAT_OK, "no endpoint");
    connect_media(r);
}

static void make(run *r)
{
    leat_ctx_settings ctx;
    leat_endpoint_settings ep;

    r->now = r->begin = LEAT_SECOND;
    r->addr[0] = (leat_addr){.family = 4, .port = 40000, .ip = {10, 0, 0, 1}};
    r->addr[1] = (leat_addr){.family = 4, .port = 4433, .ip = {10, 0, 0, 2}};
    leat_ctx_settings_init(&ctx);
    memset(ctx.seed, 1 + (int)((r->lab->seed - 1) % 255), sizeof(ctx.seed)); /* never zero */
    must(leat_ctx_new(&ctx, &r->ctx) == LEAT_OK, "no context");
    leat_ctx_set_now(r->ctx, r->now);
    make_tls(r);
    leat_endpoint_settings_init(&ep);
    ep.conn = settings_of(r->lab);
    ep.events = &server_events;
    ep.user = r;
    must(leat_endpoint_new(r->ctx, &ep, &r->client) == LEAT_OK, "no endpoint");
    ep.server_tls = r->server_tls;
    must(leat_endpoint_new(r->ctx, &ep, &r->server) == LEAT_OK, "no endpoint");
    make_network(r);
    if (r->lab->media) {
        make_media(r, &ep);
    }
    set_bottleneck(r, r->lab->rate);
}

static void unmake(run *r)
{
    leat_net_link_free(&r->link);
    if (over_udp(r)) {
        leat_media_flow_free(&r->media);
    }
    r->roq.over = true;
    for (size_t i = 0; i < r->started; i++) {
        leat_conn_set_events(r->flow[i].conn, NULL, NULL);
    }
    for (leat_link *l = leat_list_first(&r->server->conns); l;
         l = leat_list_next(&r->server->conns, l)) {
        leat_conn *conn = LEAT_CONTAINER_OF(l, leat_conn, host_link);

        if (!r->media_conn || !is_of(conn, r->media_conn)) {
            leat_conn_set_events(conn, NULL, NULL);
        }
    }
    leat_endpoint_free(r->client);
    if (r->media_client) {
        leat_endpoint_free(r->media_client);
    }
    leat_endpoint_free(r->server);
    leat_ctx_free(r->ctx);
    leat_tls_config_free(r->client_tls);
    leat_tls_config_free(r->server_tls);
}

static void start_flow(run *r)
{
    flow *f = &r->flow[r->started];
    leat_conn_settings settings = settings_of(r->lab);
    leat_connect how = {
        .remote = r->addr[1],
        .local = r->addr[0],
        .server_name = "localhost",
        .tls = r->client_tls,
        .settings = &settings,
        .events = &client_events,
        .user = f,
    };

    settings.congestion = r->lab->flow[r->started].congestion;
    f->from = r->now;
    must(leat_conn_connect(r->client, &how, &f->conn) == LEAT_OK, "cannot connect");
    r->started++;
}

/* ---- running it ---- */

/* The datagram goes to its queue; `media` if it is the media flow's and counts. */
static void send_on(run *r, int from, leat_dgram *dgram)
{
    bool media = dgram->src.port == MEDIA_PORT && from == 0;
    size_t step = leat_time_since(r->link.pipe[0].idle_at, r->now) / DELAY_STEP;

    if (media && r->warm) {
        r->delays[step < DELAYS ? step : DELAYS - 1]++;
    }
    leat_net_link_send(&r->link, from, r->now, dgram);
}

/* Both ends look for larger datagrams from the first on, also the one that sends ACKs alone: what
 * is measured begins with the size that it goes on with. */
static void find_sizes(leat_endpoint *endpoint)
{
    for (leat_link *l = leat_list_first(&endpoint->conns); l;
         l = leat_list_next(&endpoint->conns, l)) {
        leat_conn *conn = LEAT_CONTAINER_OF(l, leat_conn, host_link);

        if (conn->confirmed) {
            leat_mtu_enable(&conn->mtu);
        }
    }
}

static void collect(run *r, int from, leat_endpoint *endpoint)
{
    static uint8_t buf[65536];
    leat_send_info info;
    size_t n;

    find_sizes(endpoint);
    while ((n = leat_endpoint_send(endpoint, buf, sizeof(buf), &info)) > 0) {
        if (endpoint == r->client && r->warm) {
            r->bursts++;
            r->burst_datagrams += info.datagrams;
        }
        for (size_t at = 0; at < n; at += info.segment) {
            size_t len = n - at < info.segment ? n - at : info.segment;
            leat_dgram dgram = {.src = info.local, .dst = info.remote, .ecn = info.ecn};

            must(leat_buf_take(leat_ctx_mem(r->ctx), len, &dgram.buf) == LEAT_OK, "no memory");
            memcpy(dgram.buf.data, buf + at, len);
            send_on(r, from, &dgram);
        }
    }
}

/* A datagram of the media flow's. */
static void send_media(void *user, int from, const uint8_t *data, size_t len)
{
    run *r = user;
    leat_dgram dgram = {.src = r->addr[from], .dst = r->addr[1 - from]};

    dgram.src.port = dgram.dst.port = MEDIA_PORT;
    must(leat_buf_take(leat_ctx_mem(r->ctx), len, &dgram.buf) == LEAT_OK, "no memory");
    memcpy(dgram.buf.data, data, len);
    send_on(r, from, &dgram);
}

static void deliver(run *r, int at)
{
    leat_dgram dgram;

    while (leat_net_link_recv(&r->link, at, r->now, &dgram)) {
        leat_recv_info info = {.remote = dgram.src, .local = dgram.dst, .ecn = dgram.ecn};
        leat_endpoint *endpoint = at == 1 ? r->server : r->client;

        if (at == 1 && dgram.src.port == MEDIA_PORT) {
            r->media_received += dgram.buf.len;
        }
        if (dgram.dst.port == MEDIA_PORT && over_udp(r)) {
            leat_media_flow_recv(&r->media, at, (leat_span){dgram.buf.data, dgram.buf.len}, r->now);
            leat_buf_release(&dgram.buf);
            continue;
        }
        if (dgram.dst.port == MEDIA_PORT) {
            endpoint = r->media_client;
        }
        leat_endpoint_recv(endpoint, &dgram.buf, &info);
    }
}

static double queue_bytes(const run *r)
{
    leat_time wait = leat_time_since(r->link.pipe[0].idle_at, r->now);

    return (double)wait / 1e9 * (double)r->rate / 8;
}

static void take_sample(run *r)
{
    leat_lab_sample s = {.at = r->now - r->begin, .queue = queue_bytes(r)};

    for (size_t i = 0; i < r->started; i++) {
        flow *f = &r->flow[i];
        leat_conn_stats_data stats;

        leat_conn_stats(f->conn, &stats);
        s.flow[i] = (leat_lab_flow_sample){
            .goodput = (double)(f->received - f->sampled) * 8e9 / (double)r->lab->interval,
            .rtt = stats.rtt_smoothed,
            .cwnd = stats.cwnd,
            .lost = stats.packets_lost - f->lost,
            .state = leat_cc_state_name(&f->conn->cc),
        };
        f->sampled = f->received;
        f->lost = stats.packets_lost;
    }
    s.media = (leat_lab_media_sample){
        .goodput = (double)(r->media_received - r->media_sampled) * 8e9 / (double)r->lab->interval,
        .target = (double)estimate(r)->target_rate,
        .lost = media_lost(r) - r->media_lost,
    };
    r->media_sampled = r->media_received;
    r->media_lost = media_lost(r);
    if (r->warm) {
        r->queue_sum += s.queue;
        r->queue_count++;
    }
    if (r->lab->sample) {
        r->lab->sample(r->lab->user, &s);
    }
}

static void warmed_up(run *r)
{
    r->warm = true;
    r->warm_at = r->now;
    r->media_warm = r->media_received;
    for (size_t i = 0; i < r->started; i++) {
        r->flow[i].warm = r->flow[i].received;
        r->flow[i].from = r->now;
    }
}

/* Whether this end stands still. What it would have done, and what comes for it, waits. */
static bool stands_still(const run *r, int end)
{
    const leat_lab_stall *s = &r->lab->stall;
    leat_time passed = leat_time_since(r->now, r->begin + s->at);

    if (s->last == 0 || s->end != end || r->now < r->begin + s->at) {
        return false;
    }
    return (s->every ? passed % s->every : passed) < s->last;
}

/* One end's datagrams and media; when its media are to happen next. */
static leat_time step_end(run *r, int end)
{
    leat_time next = LEAT_TIME_NEVER;

    if (stands_still(r, end)) {
        return r->now + STALL_STEP;
    }
    deliver(r, end);
    if (over_udp(r)) {
        next = leat_media_flow_turn(&r->media, end, r->now, send_media, r);
    } else if (r->media_client && end == 0) {
        next = leat_roq_media_turn(&r->roq, r->now);
    }
    return next;
}

static void collect_end(run *r, int end)
{
    if (stands_still(r, end)) {
        return;
    }
    collect(r, end, end == 0 ? r->client : r->server);
    if (r->media_client && end == 0) {
        collect(r, 0, r->media_client);
    }
}

/* All that is to happen now; when something is to happen next. */
static leat_time step(run *r)
{
    leat_time next, next_media;
    bool stall = stands_still(r, 0) || stands_still(r, 1);

    leat_ctx_set_now(r->ctx, r->now);
    next_media = step_end(r, 1);
    next_media = leat_time_min(next_media, step_end(r, 0));
    next = leat_ctx_turn(r->ctx, r->now);
    collect_end(r, 0);
    collect_end(r, 1);
    if (next > r->now) {
        next = leat_ctx_deadline(r->ctx);
    }
    next = leat_time_min(next, next_media);
    next = leat_time_min(next, leat_net_link_deadline(&r->link));
    if (stall) { /* what waits is always due */
        return r->now + STALL_STEP;
    }
    if (next > r->now && next - r->now < r->lab->turn) {
        next = r->now + r->lab->turn;
    }
    return next;
}

static void finish(run *r)
{
    double seconds;

    for (size_t i = 0; i < r->started; i++) {
        flow *f = &r->flow[i];
        leat_conn_stats_data stats;

        leat_conn_stats(f->conn, &stats);
        seconds = (double)(r->now - f->from) / 1e9;
        r->result->flow[i] = (leat_lab_flow_result){
            .goodput = (double)(f->received - f->warm) * 8 / seconds,
            .sent = stats.packets_sent,
            .lost = stats.packets_lost,
            .spurious = stats.packets_spurious,
        };
        r->result->share += r->result->flow[i].goodput / (double)r->lab->rate;
    }
    r->result->queue = r->queue_count ? r->queue_sum / (double)r->queue_count : 0;
    r->result->queue_time = r->result->queue * 8 / (double)r->lab->rate;
    r->result->burst = r->bursts ? (double)r->burst_datagrams / (double)r->bursts : 0;
    if (r->lab->media) {
        seconds = (double)(r->now - r->warm_at) / 1e9;
        r->result->media_goodput = (double)(r->media_received - r->media_warm) * 8 / seconds;
        r->result->media_target = (double)estimate(r)->target_rate;
        r->result->media_delay95 = delay(r, 0.95);
        r->result->media_lost = media_lost(r);
    }
    r->result->dropped = r->link.pipe[0].stats.overflowed;
    r->result->datagrams = r->link.pipe[0].stats.sent + r->link.pipe[1].stats.sent;
}

void leat_lab_run(const leat_lab *lab, leat_lab_result *result)
{
    static run r;
    leat_time sample_at, next;
    size_t idle = 0;

    r = (run){.lab = lab, .result = result};
    *result = (leat_lab_result){0};
    make(&r);
    sample_at = r.begin + lab->interval;
    while (r.now < r.begin + lab->end) {
        while (r.started < lab->flows && r.now - r.begin >= lab->flow[r.started].start) {
            start_flow(&r);
        }
        if (!r.warm && r.now - r.begin >= lab->warm) {
            warmed_up(&r);
        }
        if (r.now >= sample_at) {
            take_sample(&r);
            sample_at += lab->interval;
        }
        if (lab->change_rate && r.now - r.begin >= lab->change_at && r.rate != lab->change_rate) {
            set_bottleneck(&r, lab->change_rate);
        }
        next = step(&r);
        idle = next > r.now ? 0 : idle + 1;
        must(idle < 100000, "a hot loop");
        r.now = leat_time_max(r.now, leat_time_min(next, sample_at));
    }
    finish(&r);
    unmake(&r);
}
