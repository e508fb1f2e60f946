/* tests/support/pair.c: see pair.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "pair.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include <leat/event.h>

#include "wire/header.h"

/* LEAT_TEST_TRACE=1 prints what happens, one line an event. */
static void print_event(leat_event_sink *sink, const leat_event *e)
{
    (void)sink;
    fprintf(stderr, "%12.6f %s %s", (double)e->now / 1e9, e->server ? "server" : "client",
            leat_event_name(e->type));
    switch (e->type) {
    case LEAT_EVENT_FRAME_SENT:
    case LEAT_EVENT_FRAME_RECEIVED:
        fprintf(stderr, " %#llx", (unsigned long long)e->frame.type);
        for (size_t i = 0; i < e->frame.values; i++) {
            fprintf(stderr, " %llu", (unsigned long long)e->frame.value[i]);
        }
        break;
    case LEAT_EVENT_PACKET_SENT:
    case LEAT_EVENT_PACKET_RECEIVED:
    case LEAT_EVENT_PACKET_LOST:
        fprintf(stderr, " %s %llu, %zu bytes", e->packet.type, (unsigned long long)e->packet.number,
                e->packet.len);
        break;
    case LEAT_EVENT_PACKET_DROPPED:
        fprintf(stderr, " %s, %zu bytes: %s", e->dropped.packet, e->dropped.len, e->dropped.reason);
        break;
    case LEAT_EVENT_CONNECTION_CLOSED:
        fprintf(stderr, " %#llx %s", (unsigned long long)e->closed.code,
                e->closed.detail ? e->closed.detail : "");
        break;
    case LEAT_EVENT_KEY_UPDATED:
    case LEAT_EVENT_KEY_DISCARDED:
        fprintf(stderr, " %s", e->key.name);
        break;
    default:
        break;
    }
    fprintf(stderr, "\n");
}

static leat_event_sink printer = {print_event};

#define DATAGRAM_MAX 1500

struct leat_pair_datagram {
    leat_time at;
    uint64_t order;
    bool to_server;
    leat_addr from, to;
    uint8_t ecn;
    size_t len;
    uint8_t data[DATAGRAM_MAX];
};

void leat_pair_setup_init(leat_pair_setup *setup)
{
    memset(setup, 0, sizeof(*setup));
    leat_endpoint_settings_init(&setup->client);
    leat_endpoint_settings_init(&setup->server);
    leat_conn_settings_init(&setup->conn);
    setup->client_alpn = setup->server_alpn = "leat-test";
    setup->delay = 5 * LEAT_MILLISECOND;
}

static void make_tls(leat_pair *pair, const leat_pair_setup *setup)
{
    static char cert[LEAT_TLS_PEM_MAX], key[LEAT_TLS_PEM_MAX];
    static size_t cert_len, key_len;
    static const char *const hosts[] = {"localhost", "127.0.0.1"};
    leat_tls_settings tls;
    leat_tls_error error;

    if (cert_len == 0) {
        leat_tls_self_signed request = {.hosts = hosts,
                                        .host_count = 2,
                                        .not_before = (int64_t)time(NULL) - 3600,
                                        .not_after = (int64_t)time(NULL) + 86400};

        assert_int_equal(
            leat_tls_make_self_signed(&request, cert, &cert_len, key, &key_len, &error), LEAT_OK);
    }
    leat_tls_settings_init(&tls);
    if (setup->cipher) {
        tls.ciphers[0] = setup->cipher;
        tls.cipher_count = 1;
    }
    tls.alpn = &setup->server_alpn;
    tls.alpn_count = 1;
    tls.cert_pem = (leat_span){(const uint8_t *)cert, cert_len};
    tls.key_pem = (leat_span){(const uint8_t *)key, key_len};
    tls.system_ca = false;
    tls.tickets = setup->tickets;
    assert_int_equal(leat_tls_config_server(&tls, &pair->server_tls, &error), LEAT_OK);
    tls.cert_pem = tls.key_pem = (leat_span){NULL, 0};
    tls.alpn = &setup->client_alpn;
    tls.verify = tls.verify_host = setup->verify;
    if (setup->verify) {
        tls.ca_pem = (leat_span){(const uint8_t *)cert, cert_len};
    }
    assert_int_equal(leat_tls_config_client(&tls, &pair->client_tls, &error), LEAT_OK);
}

void leat_pair_init(leat_pair *pair, const leat_pair_setup *setup)
{
    leat_ctx_settings ctx;
    leat_endpoint_settings server = setup->server, client = setup->client;

    memset(pair, 0, sizeof(*pair));
    pair->now = LEAT_SECOND;
    pair->delay = setup->delay;
    pair->client_addr = (leat_addr){.family = 4, .port = 40000, .ip = {10, 0, 0, 1}};
    pair->server_addr = (leat_addr){.family = 4, .port = 4433, .ip = {10, 0, 0, 2}};
    leat_ctx_settings_init(&ctx);
    memset(ctx.seed, setup->seed, sizeof(ctx.seed));
    ctx.seed[0] = 0x5a; /* all zero would be no seed */
    assert_int_equal(leat_ctx_new(&ctx, &pair->ctx), LEAT_OK);
    leat_ctx_set_now(pair->ctx, pair->now);
    make_tls(pair, setup);
    server.server_tls = pair->server_tls;
    if (getenv("LEAT_TEST_TRACE")) {
        server.events_sink = client.events_sink = &printer;
    }
    assert_int_equal(leat_endpoint_new(pair->ctx, &server, &pair->server), LEAT_OK);
    assert_int_equal(leat_endpoint_new(pair->ctx, &client, &pair->client), LEAT_OK);
}

void leat_pair_connect(leat_pair *pair, const leat_pair_setup *setup,
                       const leat_conn_events *events, void *user)
{
    leat_connect how = {
        .remote = pair->server_addr,
        .local = pair->client_addr,
        .server_name = "localhost",
        .tls = pair->client_tls,
        .settings = &setup->conn,
        .session = pair->session,
        .events = events,
        .user = user,
    };

    assert_int_equal(leat_conn_connect(pair->client, &how, &pair->conn), LEAT_OK);
}

void leat_pair_free(leat_pair *pair)
{
    leat_endpoint_free(pair->client);
    leat_endpoint_free(pair->server);
    leat_ctx_free(pair->ctx);
    leat_tls_config_free(pair->client_tls);
    leat_tls_config_free(pair->server_tls);
    free(pair->queue);
}

/* When a datagram has gone through what has a rate; LEAT_TIME_NEVER: its queue is full. */
static leat_time through(leat_pair *pair, size_t len)
{
    leat_time from = pair->busy > pair->now ? pair->busy : pair->now;

    if (pair->most_wait && from - pair->now > pair->most_wait) {
        return LEAT_TIME_NEVER;
    }
    pair->busy = from + len * 8 * LEAT_SECOND / pair->rate;
    return pair->busy;
}

static void enqueue(leat_pair *pair, bool to_server, const leat_send_info *info,
                    const uint8_t *data, size_t len)
{
    static uint64_t order;
    leat_time sent = to_server && pair->rate ? through(pair, len) : pair->now;
    struct leat_pair_datagram *d;

    if (sent == LEAT_TIME_NEVER) {
        return;
    }
    if (pair->queue_count == pair->queue_cap) {
        pair->queue_cap = pair->queue_cap ? 2 * pair->queue_cap : 64;
        pair->queue = realloc(pair->queue, pair->queue_cap * sizeof(*pair->queue));
        assert_non_null(pair->queue);
    }
    d = &pair->queue[pair->queue_count++];
    d->at = sent + pair->delay;
    d->order = order++;
    d->to_server = to_server;
    d->to = info->remote;
    d->from = info->local;
    if (d->from.family == 0) {
        d->from = to_server ? pair->client_addr : pair->server_addr;
    }
    if (to_server && pair->nat.family && leat_addr_equal(&d->from, &pair->client_addr)) {
        d->from = pair->nat;
    }
    d->ecn = info->ecn;
    d->len = len;
    assert_true(len <= DATAGRAM_MAX);
    memcpy(d->data, data, len);
}

static void collect(leat_pair *pair, leat_endpoint *from, bool to_server)
{
    static uint8_t buf[65536];
    leat_send_info info;
    size_t n;

    while ((n = leat_endpoint_send(from, buf, sizeof(buf), &info)) > 0) {
        assert_true(info.segment > 0);
        for (size_t at = 0; at < n; at += info.segment) {
            enqueue(pair, to_server, &info, buf + at,
                    n - at < info.segment ? n - at : info.segment);
        }
    }
}

static void hand_over(leat_pair *pair, bool to_server, const leat_addr *from, const leat_addr *to,
                      const void *data, size_t len)
{
    leat_recv_info info = {.remote = *from, .local = *to, .ecn = pair->ecn};
    leat_err err;

    pair->datagrams[to_server]++;
    pair->bytes[to_server] += len;
    if (to_server) {
        pair->seen = *from;
    }
    err = leat_endpoint_recv_copy(to_server ? pair->server : pair->client, data, len, &info);
    assert_true(err == LEAT_OK || (pair->memory_fails && err == LEAT_ERR_NOMEM));
}

void leat_pair_inject(leat_pair *pair, bool to_server, const void *data, size_t len)
{
    const leat_addr *client = pair->nat.family ? &pair->nat : &pair->client_addr;

    pair->ecn = LEAT_ECN_NOT_ECT;
    hand_over(pair, to_server, to_server ? client : &pair->server_addr,
              to_server ? &pair->server_addr : &pair->client_addr, data, len);
}

void leat_pair_inject_from(leat_pair *pair, const leat_addr *from, const void *data, size_t len)
{
    pair->ecn = LEAT_ECN_NOT_ECT;
    hand_over(pair, true, from, &pair->server_addr, data, len);
}

/* Where a datagram to the client ends up behind the NAT; false: at a mapping that is gone. */
static bool translate(const leat_pair *pair, leat_addr *to)
{
    if (pair->nat.family == 0) {
        return true;
    }
    if (leat_addr_equal(to, &pair->nat)) {
        *to = pair->client_addr;
        return true;
    }
    return !leat_addr_equal(to, &pair->client_addr) && to->ip[0] != pair->nat.ip[0];
}

/* Delivers what has arrived, in order of arrival. */
static bool deliver(leat_pair *pair)
{
    bool any = false;

    for (;;) {
        size_t best = pair->queue_count;
        struct leat_pair_datagram d;
        size_t len;

        for (size_t i = 0; i < pair->queue_count; i++) {
            struct leat_pair_datagram *q = &pair->queue[i];

            if (q->at <= pair->now &&
                (best == pair->queue_count || q->at < pair->queue[best].at ||
                 (q->at == pair->queue[best].at && q->order < pair->queue[best].order))) {
                best = i;
            }
        }
        if (best == pair->queue_count) {
            return any;
        }
        d = pair->queue[best];
        pair->queue[best] = pair->queue[--pair->queue_count];
        len = d.len;
        pair->ecn = d.ecn;
        pair->from = d.from;
        pair->to = d.to;
        any = true;
        if (!pair->filter || pair->filter(pair, d.to_server, d.data, &len)) {
            if (d.to_server || translate(pair, &d.to)) {
                hand_over(pair, d.to_server, &d.from, &d.to, d.data, len);
            }
        }
    }
}

bool leat_pair_step(leat_pair *pair, leat_time until)
{
    leat_time next;

    leat_ctx_set_now(pair->ctx, pair->now);
    deliver(pair);
    next = leat_ctx_turn(pair->ctx, pair->now);
    collect(pair, pair->client, true);
    collect(pair, pair->server, false);
    if (next > pair->now) {
        next = leat_ctx_deadline(pair->ctx);
    }
    for (size_t i = 0; i < pair->queue_count; i++) {
        next = pair->queue[i].at < next ? pair->queue[i].at : next;
    }
    if (next > until) {
        return false;
    }
    pair->now = next > pair->now ? next : pair->now;
    return true;
}

bool leat_pair_run(leat_pair *pair, bool (*done)(void *arg), void *arg, leat_time timeout)
{
    leat_time until = pair->now + timeout;
    size_t steps = 0;

    while (!(done && done(arg)) && leat_pair_step(pair, until)) {
        /* A hot loop would never come to an end. */
        assert_true(++steps < 10000000);
    }
    return done ? done(arg) : true;
}

/* ---- filters ---- */

bool leat_pair_nothing_to_server(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)data, (void)len;
    return !to_server;
}

bool leat_pair_nothing_to_client(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)data, (void)len;
    return to_server;
}

bool leat_pair_initials_to_server(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    leat_header header;

    (void)pair;
    for (size_t at = 0; to_server && at < *len; at += header.packet_len) {
        if (leat_header_parse(data + at, *len - at, LEAT_CID_LEN_DEFAULT, &header) != LEAT_OK ||
            header.type != LEAT_PACKET_INITIAL) {
            return false;
        }
    }
    return true;
}
