/* bench/world.c: see world.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "world.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "net/udpip.h"

enum { DAY = 86400 };

/* ---- making ---- */

void leat_bench_make_certificate(char cert[LEAT_TLS_PEM_MAX], size_t *cert_len,
                                 char key[LEAT_TLS_PEM_MAX], size_t *key_len)
{
    static const char *const hosts[] = {"localhost"};
    leat_tls_self_signed request = {.hosts = hosts,
                                    .host_count = 1,
                                    .not_before = (int64_t)time(NULL) - DAY,
                                    .not_after = (int64_t)time(NULL) + DAY};
    leat_tls_error error;

    if (leat_tls_make_self_signed(&request, cert, cert_len, key, key_len, &error) != LEAT_OK) {
        leat_bench_fail("certificate: %s", error.text);
    }
}

static void make_tls(leat_bench_world *w, const leat_bench_options *options)
{
    static const char *const alpn[] = {"leat-bench"};
    leat_tls_settings tls;
    leat_tls_error error;

    leat_bench_make_certificate(w->cert, &w->cert_len, w->key, &w->key_len);
    leat_tls_settings_init(&tls);
    tls.alpn = alpn;
    tls.alpn_count = 1;
    tls.ciphers[0] = LEAT_TLS_AES_128_GCM_SHA256;
    tls.cipher_count = 1;
    tls.groups[0] = LEAT_TLS_GROUP_X25519;
    tls.group_count = 1;
    tls.system_ca = false;
    tls.tickets = options->resume ? 1 : 0;
    if (w->keylog) {
        tls.keylog = leat_keylog_write;
        tls.keylog_user = w->keylog;
    }
    tls.cert_pem = (leat_span){(const uint8_t *)w->cert, w->cert_len};
    tls.key_pem = (leat_span){(const uint8_t *)w->key, w->key_len};
    if (leat_tls_config_server(&tls, &w->tls[LEAT_BENCH_SERVER], &error) != LEAT_OK) {
        leat_bench_fail("server's TLS: %s", error.text);
    }
    tls.keylog = NULL; /* once is enough */
    tls.cert_pem = tls.key_pem = (leat_span){NULL, 0};
    tls.verify = tls.verify_host = options->verify;
    if (options->verify) {
        tls.ca_pem = (leat_span){(const uint8_t *)w->cert, w->cert_len};
    }
    if (leat_tls_config_client(&tls, &w->tls[LEAT_BENCH_CLIENT], &error) != LEAT_OK) {
        leat_bench_fail("client's TLS: %s", error.text);
    }
}

static void make_ctx(leat_bench_world *w)
{
    leat_ctx_settings settings;

    leat_ctx_settings_init(&settings);
    leat_bench_must(leat_entropy(settings.seed, sizeof settings.seed), "random device");
    leat_bench_must(leat_ctx_new(&settings, &w->ctx), "context");
    w->mem = leat_ctx_mem(w->ctx);
    w->now = leat_bench_clock();
    leat_ctx_set_now(w->ctx, w->now);
}

static void make_link(leat_bench_world *w, const leat_bench_options *options)
{
    leat_pipe_settings pipe = {
        .delay = options->delay,
        .rate = options->rate,
        .loss = (uint32_t)(options->loss * LEAT_PIPE_WHOLE),
    };

    leat_net_link_init(&w->link, w->mem, &pipe, 1);
    w->headers = !options->quic_stack;
    w->head_room = w->headers ? LEAT_IP4_UDP_HEADERS : 0;
    /* Faults and rates are each datagram's. */
    w->batches = !w->headers && !options->pcap && options->delay == 0 && options->rate == 0 &&
                 options->loss == 0;
}

static void open_files(leat_bench_world *w, const leat_bench_options *options)
{
    if (leat_keylog_open(options->keylog, &w->keylog) != LEAT_OK) {
        leat_bench_fail("cannot write the key log: %s", strerror(errno));
    }
    if (options->pcap && leat_pcap_open(options->pcap, &w->pcap) != LEAT_OK) {
        leat_bench_fail("cannot write %s: %s", options->pcap, strerror(errno));
    }
}

static void set_conn(leat_bench_world *w, const leat_bench_options *options)
{
    leat_conn_settings_init(&w->conn);
    if (options->udp_payload) {
        w->conn.udp_payload = (uint16_t)options->udp_payload;
    }
    if (options->window) {
        w->conn.max_stream_data_bidi_local = options->window;
        w->conn.max_stream_data_bidi_remote = options->window;
        w->conn.max_stream_data_uni = options->window;
        w->conn.max_data = options->window * 2;
    }
    if (options->concurrent > w->conn.max_streams_bidi) {
        w->conn.max_streams_bidi = options->concurrent;
    }
    w->conn.key_update_packets = options->key_update;
    w->payload = w->conn.udp_payload;
}

void leat_bench_world_open(leat_bench_world *w, const leat_bench_options *options,
                           const leat_conn_events *events, void *user)
{
    leat_endpoint_settings endpoint;

    *w = (leat_bench_world){
        .addr = {{.family = 4, .port = 40000, .ip = {10, 0, 0, 1}},
                 {.family = 4, .port = 4433, .ip = {10, 0, 0, 2}}},
    };
    open_files(w, options);
    set_conn(w, options);
    make_ctx(w);
    make_tls(w, options);
    make_link(w, options);
    leat_endpoint_settings_init(&endpoint);
    endpoint.max_conns = LEAT_CONNS_MAX; /* idle: as many as are asked for */
    leat_bench_must(leat_endpoint_new(w->ctx, &endpoint, &w->end[LEAT_BENCH_CLIENT]), "client");
    endpoint.server_tls = w->tls[LEAT_BENCH_SERVER];
    endpoint.conn = w->conn;
    endpoint.events = events;
    endpoint.user = user;
    leat_bench_must(leat_endpoint_new(w->ctx, &endpoint, &w->end[LEAT_BENCH_SERVER]), "server");
}

void leat_bench_world_close(leat_bench_world *w)
{
    leat_endpoint_free(w->end[LEAT_BENCH_CLIENT]);
    leat_endpoint_free(w->end[LEAT_BENCH_SERVER]);
    leat_net_link_free(&w->link);
    leat_buf_release(&w->spare);
    leat_ctx_free(w->ctx);
    leat_tls_config_free(w->tls[LEAT_BENCH_CLIENT]);
    leat_tls_config_free(w->tls[LEAT_BENCH_SERVER]);
    leat_keylog_close(w->keylog);
    leat_bench_must(leat_pcap_close(w->pcap), "capture");
}

leat_conn *leat_bench_world_connect(leat_bench_world *w, const leat_conn_events *events, void *user)
{
    leat_connect how = {
        .remote = w->addr[LEAT_BENCH_SERVER],
        .local = w->addr[LEAT_BENCH_CLIENT],
        .server_name = "localhost",
        .tls = w->tls[LEAT_BENCH_CLIENT],
        .session = w->session,
        .settings = &w->conn,
        .events = events,
        .user = user,
    };
    leat_conn *conn;

    leat_bench_must(leat_conn_connect(w->end[LEAT_BENCH_CLIENT], &how, &conn), "connect");
    return conn;
}

/* ---- running ---- */

/* Puts a datagram, whose payload begins after the head room of buf, on the link. */
static void put_on_link(leat_bench_world *w, int from, leat_buf *buf, size_t len,
                        const leat_send_info *info)
{
    leat_dgram dgram = {.buf = *buf, .src = w->addr[from], .dst = info->remote, .ecn = info->ecn};

    *buf = (leat_buf){NULL, 0, NULL};
    leat_buf_trim(&dgram.buf, w->head_room + len);
    if (w->headers) {
        leat_udpip how = {.src = dgram.src, .dst = dgram.dst, .ecn = dgram.ecn};

        leat_bench_must(leat_udpip_build(&how, dgram.buf.data + w->head_room, len), "headers");
    }
    leat_net_link_send(&w->link, from, w->now, &dgram);
}

/* A second datagram behind the first in buf: copied out, since it has no room for headers. */
static void copy_to_link(leat_bench_world *w, int from, const uint8_t *data, size_t len,
                         const leat_send_info *info)
{
    leat_buf copy;

    leat_bench_must(leat_buf_take(w->mem, w->head_room + len, &copy), "buffer");
    memcpy(copy.data + w->head_room, data, len);
    put_on_link(w, from, &copy, len, info);
}

/* What a send call with segmentation offload would take goes on the link whole. The batches lie one
 * behind the other in a buffer that they share, so that a small one holds no more than its bytes.
 */
static bool send_batches_from(leat_bench_world *w, int from)
{
    bool any = false;

    for (;;) {
        leat_send_info info;
        leat_dgram dgram;
        leat_buf rest;
        size_t n;

        if (w->spare.len < w->payload) {
            leat_buf_release(&w->spare);
            leat_bench_must(leat_buf_take(w->mem, LEAT_BENCH_BATCH, &w->spare), "buffer");
        }
        n = leat_endpoint_send(w->end[from], w->spare.data, w->spare.len, &info);
        if (n == 0) {
            return any;
        }
        any = true;
        dgram = (leat_dgram){.buf = leat_buf_slice(&w->spare, 0, n),
                             .src = w->addr[from],
                             .dst = info.remote,
                             .ecn = info.ecn,
                             .segment = info.segment};
        rest = leat_buf_slice(&w->spare, n, w->spare.len - n);
        leat_buf_release(&w->spare);
        w->spare = rest;
        leat_net_link_send(&w->link, from, w->now, &dgram);
    }
}

static bool send_from(leat_bench_world *w, int from)
{
    bool any = false;

    for (;;) {
        leat_send_info info;
        size_t n;

        if (w->spare.len == 0) {
            leat_bench_must(leat_buf_take(w->mem, w->head_room + w->payload, &w->spare), "buffer");
        }
        n = leat_endpoint_send(w->end[from], w->spare.data + w->head_room, w->payload, &info);
        if (n == 0) {
            leat_buf_release(&w->spare); /* or its slab would never be empty, and begin anew */
            return any;
        }
        any = true;
        for (size_t at = info.segment; at < n; at += info.segment) {
            copy_to_link(w, from, w->spare.data + w->head_room + at,
                         n - at < info.segment ? n - at : info.segment, &info);
        }
        put_on_link(w, from, &w->spare, n < info.segment ? n : info.segment, &info);
    }
}

/* What arrived, without its headers. */
static leat_buf unpack(leat_bench_world *w, leat_dgram *dgram)
{
    leat_buf payload;
    leat_udpip how;
    leat_span span;

    if (!w->headers) {
        payload = dgram->buf;
        dgram->buf = (leat_buf){NULL, 0, NULL};
        return payload;
    }
    leat_bench_must(leat_udpip_parse(dgram->buf.data, dgram->buf.len, &how, &span), "packet");
    dgram->src = how.src;
    dgram->dst = how.dst;
    dgram->ecn = how.ecn;
    payload = leat_buf_slice(&dgram->buf, (size_t)(span.data - dgram->buf.data), span.len);
    leat_buf_release(&dgram->buf);
    return payload;
}

static bool deliver_to(leat_bench_world *w, int at)
{
    leat_dgram dgram;
    bool any = false;

    while (leat_net_link_recv(&w->link, at, w->now, &dgram)) {
        leat_buf payload = unpack(w, &dgram);
        leat_recv_info info = {
            .remote = dgram.src, .local = dgram.dst, .ecn = dgram.ecn, .segment = dgram.segment};

        if (w->pcap) {
            leat_pcap_write(w->pcap, w->now, &dgram.src, &dgram.dst, dgram.ecn,
                            (leat_span){payload.data, payload.len});
        }
        leat_endpoint_recv(w->end[at], &payload, &info);
        any = true;
    }
    return any;
}

/* One pass. True: the next has something to do at once. */
static bool pass(leat_bench_world *w)
{
    bool any;
    leat_time next;

    w->now += LEAT_BENCH_PASS;
    leat_ctx_set_now(w->ctx, w->now);
    any = deliver_to(w, LEAT_BENCH_SERVER);
    any |= deliver_to(w, LEAT_BENCH_CLIENT);
    next = leat_ctx_turn(w->ctx, w->now);
    for (int from = LEAT_BENCH_CLIENT; from <= LEAT_BENCH_SERVER; from++) {
        any |= w->batches ? send_batches_from(w, from) : send_from(w, from);
    }
    return any || next <= w->now;
}

static leat_time next_deadline(const leat_bench_world *w)
{
    return leat_time_min(leat_ctx_deadline(w->ctx), leat_net_link_deadline(&w->link));
}

/* Moves the clock to what comes next; false when that is after `limit`. */
static bool wait_for_next(leat_bench_world *w, leat_time limit)
{
    leat_time next = next_deadline(w);

    if (next == LEAT_TIME_NEVER || next > limit) {
        return false;
    }
    if (next > w->now) {
        w->skipped += next - w->now;
        w->now = next;
    }
    return true;
}

void leat_bench_world_until(leat_bench_world *w, const bool *flag, const char *what)
{
    leat_time limit = w->now + 3600 * LEAT_SECOND;

    while (!*flag) {
        if (pass(w) || *flag || wait_for_next(w, limit)) {
            continue;
        }
        if (next_deadline(w) != LEAT_TIME_NEVER) {
            leat_bench_fail("%s: not done after an hour of the link's time: fewer (-n, --warm-up) "
                            "or a faster link would be",
                            what);
        }
        leat_bench_fail("%s: nothing more happens", what);
    }
}

void leat_bench_world_settle(leat_bench_world *w, leat_time time)
{
    leat_time limit = w->now + time;

    while (w->now < limit && (pass(w) || wait_for_next(w, limit))) {
    }
}
