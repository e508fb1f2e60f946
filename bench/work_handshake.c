/* bench/work_handshake.c: `leat bench handshake`: connections made and closed, one after another.
 *
 * The TLS library's bare handshake runs in turn with ours, batch by batch, so that what disturbs
 * one disturbs the other: `over_tls` is how much longer ours takes, of 1, by the clock, and
 * over_tls_cpu in processor time, each the median of the rounds' ratios.
 *
 * With --resume every connection goes on from the session of the one before, and is given the next:
 * each has the cost of a ticket made and read.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include "bare_tls.h"
#include "world.h"

typedef struct handshake {
    leat_bench_world world;
    bool connected[2], closed[2];
    bool decided;    /* both connected, or the client closed */
    leat_time delay; /* of the link, one way */
    bool resume;     /* sessions are kept */
    bool ticket;     /* one has come */
    bool resumed;
    leat_bare_tls *bare;
    uint64_t batch; /* handshakes of each sort in turn */
    uint8_t session[LEAT_SESSION_MAX];
    leat_close_info info;
} handshake;

enum { BATCH_MOST = 50 };

static void on_connected(leat_conn *conn, void *user)
{
    handshake *h = user;

    h->connected[leat_conn_is_server(conn)] = true;
    h->decided = h->connected[0] && h->connected[1];
    h->resumed = leat_conn_resumed(conn);
}

static void on_ticket(leat_conn *conn, leat_span session, void *user)
{
    handshake *h = user;

    (void)conn;
    h->ticket = true;
    memcpy(h->session, session.data, session.len);
    h->world.session = (leat_span){h->session, session.len};
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    handshake *h = user;

    h->closed[leat_conn_is_server(conn)] = true;
    h->decided = true;
    h->info = *info;
}

static const leat_conn_events events = {
    .connected = on_connected, .ticket = on_ticket, .closed = on_closed};

static void one(handshake *h)
{
    bool had_session = h->world.session.len > 0;
    leat_conn *conn;

    h->ticket = false;
    h->connected[0] = h->connected[1] = h->closed[0] = h->closed[1] = h->decided = false;
    conn = leat_bench_world_connect(&h->world, &events, h);
    leat_bench_world_until(&h->world, &h->decided, "handshake");
    if (h->closed[0] || h->closed[1]) {
        leat_bench_fail("no connection: %s",
                        h->info.detail ? h->info.detail : leat_err_text(h->info.err));
    }
    /* HANDSHAKE_DONE arrives: confirmed on both sides. */
    leat_bench_world_settle(&h->world, 2 * h->delay + LEAT_MILLISECOND);
    if (h->resume) {
        leat_bench_world_until(&h->world, &h->ticket, "ticket");
        if (had_session && !h->resumed) {
            leat_bench_fail("the session was not resumed");
        }
    }
    leat_conn_close(conn, 0, (leat_span){NULL, 0});
    leat_bench_world_until(&h->world, &h->closed[0], "closing");
    leat_bench_world_until(&h->world, &h->closed[1], "closing");
    /* The closing periods pass, and both ends are gone. */
    leat_bench_world_settle(&h->world, 60 * LEAT_SECOND);
}

static void run_ours(void *arg)
{
    handshake *h = arg;

    for (uint64_t i = 0; i < h->batch; i++) {
        one(h);
    }
}

static void run_bare(void *arg)
{
    handshake *h = arg;

    for (uint64_t i = 0; i < h->batch; i++) {
        leat_bare_tls_handshake(h->bare);
    }
}

void leat_bench_handshake(leat_bench *b)
{
    static handshake h;
    const leat_bench_options *o = b->options;
    uint64_t count = leat_bench_or(o->count, 1000);
    uint64_t rounds = (count + BATCH_MOST - 1) / BATCH_MOST;
    uint64_t batch = (count + rounds - 1) / rounds;

    h = (handshake){.delay = o->delay, .resume = o->resume, .batch = batch};
    leat_bench_world_open(&h.world, o, &events, &h);
    h.bare = leat_bare_tls_new((leat_span){(const uint8_t *)h.world.cert, h.world.cert_len},
                               (leat_span){(const uint8_t *)h.world.key, h.world.key_len},
                               o->verify, o->resume);
    const leat_bench_piece pieces[] = {
        {o->resume   ? "handshake, resumed"
         : o->verify ? "handshake, verified"
                     : "handshake, not verified",
         run_ours, &h, batch},
        {"the TLS library alone", run_bare, &h, batch},
    };
    for (uint64_t i = 0; i < leat_bench_or(o->warm_up, BATCH_MOST); i++) {
        one(&h);
    }
    leat_bench_rounds(b, pieces, 2, rounds);
    leat_bench_figure_add(&b->rows[0], "over_tls", leat_bench_rounds_ratio(0, 1, false) - 1);
    leat_bench_figure_add(&b->rows[0], "over_tls_cpu", leat_bench_rounds_ratio(0, 1, true) - 1);
    leat_bare_tls_free(h.bare);
    leat_bench_world_close(&h.world);
}
