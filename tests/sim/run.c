/* tests/sim/run.c: see run.h.
 *
 * A step: what has arrived is handed over, both contexts turn, what they want to send goes into the
 * network, everything is walked; then time moves on to the next thing that is to happen.
 *
 * Phases: until all streams have come to their end; until nothing is under way (statistics are
 * compared); until both ends have closed; until nothing is left, which is checked.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app.h"
#include "base/assert.h"
#include "base/time.h"
#include "chance.h"
#include "endpoint/endpoint.h"
#include "mem/mem.h"
#include "net.h"

#define CLOSE_CODE    0x1eab
#define STEPS_AT_ONE  100000 /* steps without time passing: more are a hot loop */

/* Datagrams lost in a row that explain a timeout. */
#define LOST_IN_A_ROW 4

typedef struct sim {
    const leat_sim_options *options;
    const leat_sim_plan *plan;
    leat_sim_result *result;
    leat_time now;
    leat_time step_back_until;
    uint64_t at_one; /* steps since time last moved */
    bool closing;    /* the plan's end, early or not, has begun */
    bool early;      /* before all was done */
    bool restarted;  /* the server has begun anew */
    bool unheard;    /* and the client did not know by then that its handshake was over */
    bool slept;
    leat_time restart_at; /* NEVER: not (any more) */
    bool starved; /* when the first end timed out, the network had let nothing through for long */
    leat_prng prng;
    leat_sim_net net;
    leat_ctx *ctx[2];
    leat_endpoint *ep[2];
    leat_tls_config *tls[2];
    leat_sim_app app[2];
    leat_conn *client;
    FILE *keylog;
} sim;

static const sim *running; /* for the message of a failure */

void leat_sim_fail(const char *format, ...)
{
    va_list args;

    fflush(stdout);
    fprintf(stderr, "seed %" PRIu64 ", %.6f s: ", running->options->seed,
            (double)running->now / 1e9);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    fflush(stderr);
    _exit(1);
}

static const char *side_name(int side)
{
    return side == 0 ? "client" : "server";
}

/* ---- beginning ---- */

static void log_key(void *user, const char *line)
{
    fprintf(user, "%s\n", line);
}

static void make_tls(sim *s)
{
    static const leat_tls_cipher ciphers[] = {LEAT_TLS_AES_128_GCM_SHA256,
                                              LEAT_TLS_AES_256_GCM_SHA384,
                                              LEAT_TLS_CHACHA20_POLY1305_SHA256};
    static const char *const alpn = "leat-sim";
    const leat_sim_identity *id = s->options->identity;
    leat_tls_settings tls;
    leat_tls_error error;

    leat_tls_settings_init(&tls);
    if (s->plan->cipher > 0) {
        tls.ciphers[0] = ciphers[(s->plan->cipher - 1) % LEAT_TLS_CIPHERS];
        tls.cipher_count = 1;
    }
    tls.alpn = &alpn;
    tls.alpn_count = 1;
    tls.system_ca = false;
    tls.cert_pem = (leat_span){(const uint8_t *)id->cert, id->cert_len};
    tls.key_pem = (leat_span){(const uint8_t *)id->key, id->key_len};
    LEAT_ASSERT(leat_tls_config_server(&tls, &s->tls[1], &error) == LEAT_OK);
    tls.cert_pem = tls.key_pem = (leat_span){NULL, 0};
    tls.verify = tls.verify_host = s->plan->verify != 0;
    if (tls.verify) {
        tls.ca_pem = (leat_span){(const uint8_t *)id->cert, id->cert_len};
    }
    if (s->keylog) {
        tls.keylog = log_key;
        tls.keylog_user = s->keylog;
    }
    LEAT_ASSERT(leat_tls_config_client(&tls, &s->tls[0], &error) == LEAT_OK);
}

static leat_conn_settings conn_settings(const leat_sim_end_plan *end)
{
    leat_conn_settings c;

    leat_conn_settings_init(&c);
    c.idle_timeout = end->idle_ms * LEAT_MILLISECOND;
    c.keep_alive = end->keep_alive_ms * LEAT_MILLISECOND;
    c.handshake_timeout = end->handshake_ms * LEAT_MILLISECOND;
    c.max_data = end->max_data;
    c.max_stream_data_bidi_local = end->max_stream_data;
    c.max_stream_data_bidi_remote = end->max_stream_data;
    c.max_stream_data_uni = end->max_stream_data;
    c.max_streams_bidi = end->max_streams_bidi;
    c.max_streams_uni = end->max_streams_uni;
    c.max_ack_delay = end->max_ack_delay_ms * LEAT_MILLISECOND;
    c.send_buffer = end->send_buffer;
    c.memory = end->memory;
    c.udp_payload = (uint16_t)end->udp_payload;
    c.key_update_packets = end->key_update_packets;
    c.max_datagram_frame_size = end->datagram_frame;
    return c;
}

static void make_endpoint(sim *s, int side)
{
    const leat_sim_end_plan *end = &s->plan->end[side];
    leat_endpoint_settings ep;

    leat_endpoint_settings_init(&ep);
    ep.server_tls = side == 1 ? s->tls[1] : NULL;
    ep.conn = conn_settings(end);
    ep.conn.wait_for_validation = s->plan->retry != 0;
    ep.events = &leat_sim_app_events;
    ep.user = &s->app[side];
    if (side == 1 && s->plan->preferred) {
        ep.preferred_ip4 = s->net.preferred;
    }
    ep.cid_len = (uint8_t)end->cid_len;
    ep.events_sink = s->options->sink;
    memset(ep.reset_key, 0x5e + side, sizeof(ep.reset_key)); /* kept over a restart */
    if (leat_endpoint_new(s->ctx[side], &ep, &s->ep[side]) != LEAT_OK) {
        leat_sim_fail("the %s's settings are refused", side_name(side));
    }
}

static void make_end(sim *s, int side)
{
    const leat_sim_end_plan *end = &s->plan->end[side];
    leat_ctx_settings ctx;

    leat_ctx_settings_init(&ctx);
    ctx.mem.slab_size = end->slab_size;
    leat_prng_fill(&s->prng, ctx.seed, sizeof(ctx.seed));
    LEAT_ASSERT(leat_ctx_new(&ctx, &s->ctx[side]) == LEAT_OK);
    leat_ctx_set_now(s->ctx[side], s->now);
    leat_sim_app_init(&s->app[side], s->plan, side, s->ctx[side]);
    make_endpoint(s, side);
}

static void connect_client(sim *s)
{
    leat_conn_settings settings = conn_settings(&s->plan->end[0]);
    leat_connect how = {
        .remote = s->net.addr[1],
        .local = s->net.addr[0],
        .server_name = "localhost",
        .tls = s->tls[0],
        .settings = &settings,
        .events = &leat_sim_app_events,
        .user = &s->app[0],
    };
    leat_err err = leat_conn_connect(s->ep[0], &how, &s->client);

    if (err != LEAT_OK) {
        leat_sim_fail("connect gives %s", leat_err_name(err));
    }
    s->app[0].conn = s->client;
}

static FILE *open_keylog(const char *path)
{
    FILE *file = path ? fopen(path, "w") : NULL;

    if (path && !file) {
        leat_sim_fail("%s cannot be written", path);
    }
    return file;
}

static void begin(sim *s, const leat_sim_options *options, leat_sim_result *result)
{
    *s = (sim){.options = options,
               .plan = &options->plan,
               .result = result,
               .now = LEAT_SECOND,
               .restart_at = LEAT_TIME_NEVER};
    running = s;
    *result = (leat_sim_result){.digest = 0};
    leat_sim_chance_seed(options->seed);
    leat_sim_chance_time(s->now);
    leat_prng_seed(&s->prng, options->seed ^ UINT64_C(0x51a7e));
    leat_sim_net_init(&s->net, s->plan, options->seed);
    s->net.now = s->now;
    if (options->pcap && leat_pcap_open(options->pcap, &s->net.pcap) != LEAT_OK) {
        leat_sim_fail("%s cannot be written", options->pcap);
    }
    s->keylog = open_keylog(options->keylog);
    make_tls(s);
    make_end(s, 0);
    make_end(s, 1);
    connect_client(s);
}

/* ---- a step ---- */

#define EACH_CONN(s, side, l)                                                                      \
    for (leat_link *l = (s)->ep[side] ? leat_list_first(&(s)->ep[side]->conns) : NULL; l;          \
         l = leat_list_next(&(s)->ep[side]->conns, l))

static leat_conn *conn_of(leat_link *link)
{
    return LEAT_CONTAINER_OF(link, leat_conn, host_link);
}

static void check_budget(sim *s, int side)
{
    EACH_CONN(s, side, l)
    {
        leat_conn_stats_data stats;

        leat_conn_stats(conn_of(l), &stats);
        if (stats.memory_used > s->plan->end[side].memory) {
            leat_sim_fail("the %s uses %" PRIu64 " bytes of a budget of %" PRIu64, side_name(side),
                          stats.memory_used, s->plan->end[side].memory);
        }
    }
}

static void check_all(sim *s)
{
    for (int side = 0; side < 2; side++) {
        EACH_CONN(s, side, l)
        {
            leat_conn_check(conn_of(l));
        }
    }
    for (int i = 0; i < 2; i++) {
        leat_pipe_check(&s->net.link.pipe[i]);
        if (s->result->steps % (64 * s->options->check) == 0) {
            leat_mem_check(leat_ctx_mem(s->ctx[i]));
        }
    }
}

/* An address that the server has proved. One that differs from a proved one in its port may be
 * taken for proved. */
static void note_validated(sim *s, const leat_path *path)
{
    for (size_t i = 0; i < LEAT_SIM_CLIENTS; i++) {
        if (path->used && (path->validated || path->known_peer) &&
            leat_addr_equal(&path->remote, &s->net.outside[i].addr)) {
            s->net.outside[i].validated = true;
        }
    }
}

/* The handshake is over: what happens some time after it has its time now. */
static void plan_accidents(sim *s)
{
    if (s->plan->restart_at_us > 0 && s->restart_at == LEAT_TIME_NEVER) {
        s->restart_at = s->now + s->plan->restart_at_us * LEAT_MICROSECOND;
    }
}

/* The server's process ends and another takes its place: it knows the reset key and no more. */
static void restart(sim *s)
{
    s->restart_at = LEAT_TIME_NEVER;
    s->restarted = true;
    s->unheard = !s->app[0].conn || !s->app[0].conn->confirmed;
    s->app[0].shutdown = s->app[1].shutdown = true;
    leat_ctx_set_now(s->ctx[1], s->now);
    leat_endpoint_free(s->ep[1]);
    make_endpoint(s, 1);
}

/* What befalls the machines. */
static void accidents(sim *s)
{
    if (s->plan->jump_us > 0 && !s->slept &&
        s->now >= LEAT_SECOND + s->plan->jump_at_us * LEAT_MICROSECOND) {
        s->slept = true;
        s->now += s->plan->jump_us * LEAT_MICROSECOND;
    }
    if (!s->closing && s->now >= s->restart_at) {
        restart(s);
    }
}

/* RFC 9000 s8.1, counted here and not by the server. */
static void check_amplification(sim *s)
{
    EACH_CONN(s, 1, l)
    {
        for (size_t i = 0; i < LEAT_PATHS_MAX; i++) {
            note_validated(s, &conn_of(l)->paths.list[i]);
        }
        if (conn_of(l)->confirmed && !s->restarted) {
            leat_sim_net_confirmed(&s->net);
            plan_accidents(s);
        }
    }
    for (size_t i = 0; i < LEAT_SIM_CLIENTS; i++) {
        const leat_sim_outside *o = &s->net.outside[i];

        if (!o->validated && o->received > 3 * o->sent) {
            leat_sim_fail("the server sent %" PRIu64 " bytes to an address that sent %" PRIu64,
                          o->received, o->sent);
        }
    }
}

/* The client moves, when it is time to and it can. */
static void migrate(sim *s)
{
    const leat_addr *to = leat_sim_net_migrate_to(&s->net);
    leat_err err;

    if (!s->ep[0] || s->app[0].closed) {
        return;
    }
    if (leat_addr_equal(leat_conn_remote(s->client), &s->net.preferred)) {
        s->result->preferred = 1;
    }
    if (!to) {
        return;
    }
    err = leat_conn_migrate(s->client, to);
    if (err == LEAT_OK) {
        leat_sim_net_migrated(&s->net);
        s->result->migrations++;
    } else if (err != LEAT_ERR_STATE && err != LEAT_ERR_BLOCKED && err != LEAT_ERR_LIMIT &&
               err != LEAT_ERR_CLOSED) {
        leat_sim_fail("migrate gives %s", leat_err_name(err));
    }
}

static void collect(sim *s, int side)
{
    static uint8_t buf[65536];
    leat_send_info info;
    size_t n;

    if (!s->ep[side]) {
        return;
    }
    while ((n = leat_endpoint_send(s->ep[side], buf, s->plan->end[side].send_cap, &info)) > 0) {
        leat_sim_net_send(&s->net, side, buf, n, &info);
    }
    if (leat_endpoint_wants_send(s->ep[side])) {
        leat_sim_fail("the %s wants to send, and sends nothing", side_name(side));
    }
}

static void deliver(sim *s, int side)
{
    leat_ctx_set_now(s->ctx[side], s->now);
    if (s->ep[side]) {
        leat_sim_net_deliver(&s->net, side, s->ep[side], s->plan->end[side].group);
    } else {
        leat_sim_net_discard(&s->net, side);
    }
}

static void turn(sim *s, int side)
{
    if (leat_prng_chance(&s->prng, s->plan->steps_back, LEAT_SIM_WHOLE)) {
        leat_ctx_turn(s->ctx[side], s->now - leat_prng_below(&s->prng, s->now));
    }
    leat_ctx_turn(s->ctx[side], s->now);
}

static leat_time next_time(const sim *s)
{
    leat_time next = leat_time_min(leat_ctx_deadline(s->ctx[0]), leat_ctx_deadline(s->ctx[1]));

    next = leat_time_min(next, leat_net_link_deadline(&s->net.link));
    return s->closing ? next : leat_time_min(next, s->restart_at);
}

/* Moves time on; false: nothing is left to happen before `until`. */
static bool advance(sim *s, leat_time until)
{
    leat_time next = next_time(s);

    if (next > until) {
        return false;
    }
    if (next <= s->now) {
        if (++s->at_one > STEPS_AT_ONE) {
            leat_sim_fail("a hot loop: %d steps without time passing", STEPS_AT_ONE);
        }
        return true;
    }
    s->at_one = 0;
    s->now = next;
    if (s->plan->late_us > 0) {
        s->now = leat_time_min(
            until, next + leat_prng_below(&s->prng, s->plan->late_us * LEAT_MICROSECOND));
    }
    return true;
}

/* Whether bad luck explains that an end gives up: so many datagrams in a row were lost. */
static void note_timeouts(sim *s)
{
    for (int side = 0; side < 2; side++) {
        const leat_sim_app *app = &s->app[side];

        if (app->closed &&
            (app->info.kind == LEAT_CLOSE_IDLE || app->info.kind == LEAT_CLOSE_HANDSHAKE_TIMEOUT)) {
            s->starved |= s->net.in_vain[0] >= LOST_IN_A_ROW || s->net.in_vain[1] >= LOST_IN_A_ROW;
        }
    }
}

/* One step at the present time, then on to the next. False: nothing happens until then. */
static bool step(sim *s, leat_time until)
{
    accidents(s);
    s->net.now = s->now;
    leat_sim_chance_time(s->now);
    s->result->steps++;
    for (int i = 0; i < 2; i++) {
        deliver(s, i);
    }
    for (int i = 0; i < 2; i++) {
        turn(s, i);
    }
    migrate(s);
    for (int i = 0; i < 2; i++) {
        collect(s, i);
        check_budget(s, i);
    }
    check_amplification(s);
    if (!s->starved) {
        note_timeouts(s);
    }
    if (s->result->steps % s->options->check == 0) {
        check_all(s);
    }
    return advance(s, until);
}

/* ---- the end ---- */

static void close_endpoint(sim *s, int side)
{
    if (s->plan->close_how == 2) {
        leat_endpoint_free(s->ep[side]);
        s->ep[side] = NULL;
    } else {
        leat_endpoint_close(s->ep[side], CLOSE_CODE);
    }
}

/* As the plan has it: whoever is to close does. */
static void close_now(sim *s)
{
    int side = (int)s->plan->closer;
    leat_conn *conn = s->app[side].conn;

    leat_ctx_set_now(s->ctx[side], s->now);
    s->closing = true;
    s->app[0].shutdown = s->app[1].shutdown = true;
    if (s->plan->close_how > 0 || !conn) {
        close_endpoint(s, side);
    } else {
        leat_conn_close(conn, CLOSE_CODE, (leat_span){(const uint8_t *)"done", 4});
    }
}

/* A connection that has ended. */
static bool is_closed(const sim *s, int side)
{
    return s->app[side].closed;
}

/* Both ends have nothing open. */
static bool over(const sim *s)
{
    return (!s->ep[0] || leat_endpoint_conns(s->ep[0]) == 0) &&
           (!s->ep[1] || leat_endpoint_conns(s->ep[1]) == 0);
}

static bool nothing_left(const sim *s)
{
    for (int side = 0; side < 2; side++) {
        if (s->ep[side] && !leat_list_empty(&s->ep[side]->conns)) {
            return false;
        }
    }
    return leat_net_link_deadline(&s->net.link) == LEAT_TIME_NEVER;
}

static leat_time limit(const sim *s)
{
    return (s->plan->limit_s + s->plan->size / 10000) * LEAT_SECOND;
}

static void run_streams(sim *s)
{
    leat_time close_at = s->plan->close_at_us
                             ? LEAT_SECOND + s->plan->close_at_us * LEAT_MICROSECOND
                             : LEAT_TIME_NEVER;

    while (!(leat_sim_app_done(&s->app[0]) && leat_sim_app_done(&s->app[1]))) {
        if (is_closed(s, 0) || is_closed(s, 1) || over(s)) {
            return;
        }
        if (!step(s, leat_time_min(close_at, limit(s)))) {
            if (is_closed(s, 0) || is_closed(s, 1) || over(s)) {
                return;
            }
            if (close_at == LEAT_TIME_NEVER || (s->now > close_at && !s->slept)) {
                leat_sim_fail("not done: client %" PRIu64 " of %" PRIu64 " streams ended, server "
                              "%" PRIu64 " of %" PRIu64,
                              s->app[0].ended, s->app[0].opened, s->app[1].ended, s->app[1].opened);
            }
            s->now = leat_time_max(s->now, close_at);
            s->early = true;
            close_now(s);
            return;
        }
    }
}

/* ---- statistics ---- */

static bool at_rest(sim *s)
{
    return s->app[0].conn && s->app[1].conn && s->app[0].conn->flight.bytes == 0 &&
           s->app[1].conn->flight.bytes == 0 &&
           s->app[0].datagrams_sent == s->app[0].datagrams_over &&
           s->app[1].datagrams_sent == s->app[1].datagrams_over &&
           leat_net_link_deadline(&s->net.link) == LEAT_TIME_NEVER;
}

static void agree(const char *what, uint64_t a, uint64_t b)
{
    if (a != b) {
        leat_sim_fail("%s: %" PRIu64 " is not %" PRIu64, what, a, b);
    }
}

/* What one end has used of the connection's credit is what the other has counted, and all of it has
 * come back. */
static void compare_credit(sim *s, int side)
{
    const leat_flow_out *out = &s->app[side].conn->streams.flow_out;
    const leat_flow_in *in = &s->app[1 - side].conn->streams.flow_in;

    agree("credit used and received", out->used, in->received);
    agree("credit received and given back", in->received, in->consumed);
    if (out->limit > in->limit) {
        leat_sim_fail("a limit of %" PRIu64 " where %" PRIu64 " was given", out->limit, in->limit);
    }
}

static void compare_datagrams(sim *s, const leat_conn_stats_data *from,
                              const leat_conn_stats_data *to, int side)
{
    const leat_sim_app *sender = &s->app[side], *receiver = &s->app[1 - side];

    agree("datagrams acknowledged", from->datagram_frames_acked, sender->datagrams_acked);
    /* What comes before the application knows of the connection may be dropped. */
    if (sender->datagrams_acked > receiver->datagrams_seen + to->datagram_frames_dropped) {
        leat_sim_fail("%" PRIu64 " datagrams acknowledged, and %" PRIu64 " came",
                      sender->datagrams_acked, receiver->datagrams_seen);
    }
}

static void compare(sim *s, const leat_conn_stats_data *from, const leat_conn_stats_data *to,
                    int side)
{
    const leat_pipe_stats *pipe = &s->net.link.pipe[side].stats;
    const leat_sim_net_plan *net = &s->plan->net[side];

    agree("stream bytes sent and received", from->stream_bytes_sent, to->stream_bytes_received);
    agree("bytes in flight at rest", from->bytes_in_flight, 0);
    agree("memory of streams at rest, received", from->memory_stream_recv, 0);
    agree("memory of streams at rest, sent", from->memory_stream_send, 0);
    compare_credit(s, side);
    compare_datagrams(s, from, to, side);
    /* Without answers that are no connection's (Retry, Version Negotiation, stateless reset),
     * without datagrams that are no connection's, and without a second connection. */
    if (!s->plan->retry && s->app[1].extra == 0 && leat_endpoint_conns(s->ep[1]) == 1 &&
        s->net.nobodys[0] + s->net.nobodys[1] == 0 &&
        s->net.link.pipe[0].stats.damaged + s->net.link.pipe[1].stats.damaged == 0) {
        agree("datagrams sent, by connection and network", from->datagrams_sent, pipe->sent);
        agree("bytes sent, by connection and network", from->bytes_sent, s->net.bytes_sent[side]);
        agree("datagrams received, by connection and network", to->datagrams_received,
              pipe->delivered - (side == 1 ? s->net.stale : 0));
        if (s->net.stale + net->loss + net->drop_first + net->outage_us + net->duplicate == 0 &&
            s->plan->preferred != 3 && pipe->overflowed + pipe->too_large + pipe->codel == 0) {
            agree("packets sent and received", from->packets_sent,
                  to->packets_received + to->packets_dropped);
        }
    }
}

static void settle(sim *s)
{
    leat_time least = s->now + 3 * LEAT_SECOND, most = s->now + 600 * LEAT_SECOND;
    leat_conn_stats_data stats[2];

    while (step(s, least)) {
    }
    s->now = leat_time_max(s->now, least);
    while (!at_rest(s)) {
        if (is_closed(s, 0) || is_closed(s, 1)) {
            return; /* explain() will have a word on it */
        }
        if (!step(s, most) && !is_closed(s, 0) && !is_closed(s, 1) && !at_rest(s)) {
            leat_sim_fail("all streams are done, and there is no rest: in flight %" PRIu64
                          " and %" PRIu64,
                          s->app[0].conn->flight.bytes, s->app[1].conn->flight.bytes);
        }
    }
    leat_conn_stats(s->app[0].conn, &stats[0]);
    leat_conn_stats(s->app[1].conn, &stats[1]);
    compare(s, &stats[0], &stats[1], 0);
    compare(s, &stats[1], &stats[0], 1);
    agree("streams opened", stats[0].streams_opened, stats[1].streams_opened);
}

static void sum_up(sim *s, int side)
{
    leat_conn_stats_data stats;
    leat_sim_result *r = s->result;

    if (!s->app[side].conn) {
        return;
    }
    leat_conn_stats(s->app[side].conn, &stats);
    r->lost += stats.packets_lost;
    r->spurious += stats.packets_spurious;
    r->probes += stats.pto_count;
    r->key_updates += stats.key_updates;
    r->streams += side == 0 ? stats.streams_opened : 0;
    r->stream_bytes += s->app[side].bytes_read;
    r->resets += s->app[side].resets_seen;
    r->stops += s->app[side].stops_seen;
    r->datagram_frames += s->app[side].datagrams_seen;
}

/* ---- why did it end ---- */

static bool expected(sim *s, int side, const leat_close_info *info)
{
    const leat_sim_plan *plan = s->plan;
    bool mine = plan->closer == (uint64_t)side;

    switch (info->kind) {
    case LEAT_CLOSE_LOCAL:
        return s->closing && mine && info->application && info->code == CLOSE_CODE;
    case LEAT_CLOSE_PEER:
        /* A Retry's token is good for 15 s. */
        if (plan->retry && side == 0 && info->code == LEAT_TE_INVALID_TOKEN && !s->app[1].conn) {
            return s->now > 16 * LEAT_SECOND;
        }
        return s->closing && !mine &&
               (info->application ? info->code == CLOSE_CODE
                                  : info->code == LEAT_TE_APPLICATION_ERROR ||
                                        (side == 0 && info->code == LEAT_TE_CONNECTION_REFUSED));
    case LEAT_CLOSE_IDLE:
    case LEAT_CLOSE_HANDSHAKE_TIMEOUT:
        /* Nobody resets a handshake: the client asks in vain for its end. */
        return (s->restarted && s->unheard) || plan->harsh || s->closing || s->starved;
    case LEAT_CLOSE_RESET:
        return side == 0 && ((s->closing && !mine) || s->restarted || plan->harsh || s->starved);
    case LEAT_CLOSE_VERSION:
        return side == 0 && plan->net[1].corrupt > 0;
    case LEAT_CLOSE_DROPPED:
        return (s->restarted && side == 1) || (s->closing && mine && plan->close_how == 2);
    }
    return false;
}

static const char *kind_name(leat_close_kind kind)
{
    static const char *const names[] = {"local", "peer",    "idle",   "handshake timeout",
                                        "reset", "version", "dropped"};

    return names[kind];
}

static void explain(sim *s)
{
    leat_sim_result *r = s->result;
    bool done = leat_sim_app_done(&s->app[0]) && leat_sim_app_done(&s->app[1]);

    for (int side = 0; side < 2; side++) {
        const leat_sim_app *app = &s->app[side];

        if (app->closed && !expected(s, side, &app->info)) {
            leat_sim_fail("the %s's connection ended: %s, code %#" PRIx64 ", frame %#" PRIx64
                          ", %s %s",
                          side_name(side), kind_name(app->info.kind), app->info.code,
                          app->info.frame_type, leat_err_name(app->info.err), app->detail);
        }
    }
    r->ending = s->app[0].info.kind == LEAT_CLOSE_VERSION                 ? LEAT_SIM_version
                : s->app[0].info.kind == LEAT_CLOSE_RESET && s->restarted ? LEAT_SIM_restarted
                : s->early                                                ? LEAT_SIM_closed_early
                : s->closing && done                                      ? LEAT_SIM_complete
                                                                          : LEAT_SIM_timed_out;
}

/* ---- nothing is left ---- */

static void check_empty(sim *s, int side)
{
    leat_conn_shared *shared;
    leat_mem_stats stats;

    LEAT_ASSERT(leat_conn_shared_get(s->ctx[side], &shared) == LEAT_OK);
    agree("connections left", leat_pool_live(&shared->conns), 0);
    agree("handshakes left", leat_pool_live(&shared->handshakes), 0);
    agree("streams left", leat_pool_live(&shared->streams.streams), 0);
    agree("received segments left", leat_pool_live(&shared->streams.segments), 0);
    if (s->ep[side]) {
        agree("routes left", leat_pool_live(&s->ep[side]->routes), 0);
    }
    leat_mem_check(leat_ctx_mem(s->ctx[side]));
    leat_mem_stats_get(leat_ctx_mem(s->ctx[side]), &stats);
    agree("buffers left", stats.buf_live, 0);
}

static void end(sim *s)
{
    leat_sim_result *r = s->result;

    for (int side = 0; side < 2; side++) {
        const leat_pipe_stats *pipe = &s->net.link.pipe[side].stats;

        r->datagrams += pipe->sent;
        r->bytes += s->net.bytes_sent[side];
        r->dropped +=
            pipe->lost + pipe->filtered + pipe->too_large + pipe->overflowed + pipe->codel;
        r->damaged += pipe->damaged;
        r->extra_conns += s->app[side].extra;
    }
    r->rebindings = s->net.outside_now;
    r->stale = s->net.stale;
    r->digest = s->net.digest;
    r->took = s->now - LEAT_SECOND;
    for (int side = 0; side < 2; side++) {
        check_empty(s, side);
        leat_sim_app_free(&s->app[side]);
        leat_endpoint_free(s->ep[side]);
        leat_ctx_free(s->ctx[side]);
        leat_tls_config_free(s->tls[side]);
    }
    if (leat_pcap_close(s->net.pcap) != LEAT_OK || (s->keylog && fclose(s->keylog) != 0)) {
        leat_sim_fail("the capture cannot be written");
    }
    leat_sim_net_free(&s->net);
}

static void run_until(sim *s, bool (*done)(const sim *s), const char *what)
{
    while (!done(s)) {
        if (!step(s, limit(s)) && !done(s)) {
            leat_sim_fail("nothing happens any more, and %s", what);
        }
    }
}

void leat_sim_run(const leat_sim_options *options, leat_sim_result *result)
{
    sim s;

    begin(&s, options, result);
    run_streams(&s);
    if (!s.closing && !is_closed(&s, 0) && !is_closed(&s, 1) && !over(&s)) {
        if (s.plan->settle && !s.plan->harsh) {
            settle(&s);
        }
        sum_up(&s, 0);
        sum_up(&s, 1);
        close_now(&s);
    }
    run_until(&s, over, "a connection is still open");
    explain(&s);
    run_until(&s, nothing_left, "a connection is still there");
    end(&s);
}
