/* tests/sim/judge.c: see sim.h: what must hold after a step, at rest, and at the end.
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "base/assert.h"
#include "sim.h"

/* Datagrams lost in a row that explain a timeout. Where both machines slept in a round trip, that
 * is a sample of how long it takes, and there is time for fewer probes. */
#define LOST_IN_A_ROW             4
#define LOST_IN_A_ROW_AFTER_SLEEP 2

/* And so many at any time of a handshake, two a probe timeout and each as long as all before it:
 * the few that are left may be lost as well, one by one. */
#define LOST_IN_A_HANDSHAKE       12

static const char *const side_names[] = {"client", "server"};

/* ---- after each step ---- */

static void check_budget(const leat_sim_machine *machine, int side)
{
    LEAT_SIM_EACH_CONN(machine, l)
    {
        uint64_t used = leat_sim_conn_of(l)->budget.used;

        if (used > machine->plan->memory) {
            leat_sim_fail("the %s uses %" PRIu64 " bytes of a budget of %" PRIu64, side_names[side],
                          used, machine->plan->memory);
        }
    }
}

/* An address that the server has proved. One that differs from a proved one in its port may be
 * taken for proved. */
static void note_validated(leat_sim *s, const leat_path *path)
{
    leat_sim_client *c = path->used ? leat_sim_client_at(s, &path->remote) : NULL;

    if (c && (path->validated || path->known_peer)) {
        c->net.outside[leat_sim_net_outside(&c->net, &path->remote)].validated = true;
    }
}

static void check_outside(const leat_sim_outside *o)
{
    if (!o->validated && o->received > 3 * o->sent) {
        leat_sim_fail("the server sent %" PRIu64 " bytes to an address that sent %" PRIu64,
                      o->received, o->sent);
    }
}

/* RFC 9000 s8.1, counted here and not by the server. */
static void check_amplification(leat_sim *s)
{
    LEAT_SIM_EACH_CONN(&s->server, l)
    {
        for (size_t i = 0; i < leat_paths_room(&leat_sim_conn_of(l)->paths); i++) {
            note_validated(s, leat_paths_at(&leat_sim_conn_of(l)->paths, i));
        }
    }
    for (size_t k = 0; k < s->count; k++) {
        const leat_sim_net *net = &s->client[k].net;

        /* net.c lets nothing out to an address that the client has not had yet. */
        for (size_t i = 0; i <= net->outside_now; i++) {
            check_outside(&net->outside[i]);
        }
        for (size_t i = 0; i < net->own; i++) {
            check_outside(&net->outside[LEAT_SIM_OUTSIDE + i]);
        }
    }
}

/* Whether bad luck explains that an end gives up: so many datagrams in a row were lost, or all that
 * it tried since it last heard anything. That it went on trying is check_probes()'s to say. */
static void note_timeouts(const leat_sim *s, leat_sim_client *c)
{
    uint64_t least = s->slept ? LOST_IN_A_ROW_AFTER_SLEEP : LOST_IN_A_ROW;

    for (int side = 0; side < 2; side++) {
        const leat_sim_app *app = &c->app[side];

        if (app->closed &&
            (app->info.kind == LEAT_CLOSE_IDLE || app->info.kind == LEAT_CLOSE_HANDSHAKE_TIMEOUT)) {
            c->starved |= leat_sim_net_lost(&c->net, 0) >= least ||
                          leat_sim_net_lost(&c->net, 1) >= least ||
                          leat_sim_net_tried(&c->net, side, least);
        }
        if (app->closed && app->info.kind == LEAT_CLOSE_HANDSHAKE_TIMEOUT) {
            c->starved |= c->net.longest[0] >= LOST_IN_A_HANDSHAKE ||
                          c->net.longest[1] >= LOST_IN_A_HANDSHAKE;
        }
    }
}

/* No acknowledgement is put off for longer than the end has said that it may be. */
static void check_acks(const leat_sim_machine *machine, const leat_conn *conn)
{
    leat_time most =
        leat_time_max(conn->app.acks.max_delay, machine->plan->max_ack_delay_ms * LEAT_MILLISECOND);

    if (conn->app.open && conn->app.acks.deadline != LEAT_TIME_NEVER &&
        conn->app.acks.deadline > leat_ctx_now(machine->ctx) + most) {
        leat_sim_fail("an ACK is to wait for longer than %" PRIu64 " ns", most);
    }
}

/* RFC 9002 s6.2: who waits for an acknowledgement asks for it, each time after twice as long, up to
 * a minute or what the path takes. Seen by the network, and not by the timer that this is for. */
static void check_probes(const leat_sim *s, const leat_sim_client *c, int side)
{
    const leat_conn *conn = c->app[side].conn;
    leat_time most;

    if (!conn || conn->state != LEAT_CONN_ACTIVE || !conn->confirmed ||
        (side == 1 && conn->loss.blocked) || !leat_sent_has_eliciting(&conn->app.sent)) {
        return;
    }
    most = leat_time_max(leat_loss_pto(&conn->loss, LEAT_SPACE_APP), LEAT_LOSS_BACKOFF_MAX) +
           s->plan->late_us * LEAT_MICROSECOND;
    if (s->now > c->net.sent_at[side] + most) {
        leat_sim_fail("the %s waits for an acknowledgement, and has not probed for %" PRIu64 " ns",
                      side_names[side], s->now - c->net.sent_at[side]);
    }
}

static void check_machine(leat_sim *s, const leat_sim_machine *machine)
{
    LEAT_SIM_EACH_CONN(machine, l)
    {
        leat_conn_check(leat_sim_conn_of(l));
        check_acks(machine, leat_sim_conn_of(l));
    }
    if (s->result->steps % (64 * s->options->check) == 0) {
        leat_mem_check(leat_ctx_mem(machine->ctx));
    }
}

void leat_sim_check_step(leat_sim *s)
{
    bool walk = s->result->steps % s->options->check == 0;

    for (size_t i = 0; i < s->count; i++) {
        leat_sim_client *c = &s->client[i];

        check_budget(&c->machine, 0);
        if (!c->starved) {
            note_timeouts(s, c);
        }
        check_probes(s, c, 0);
        check_probes(s, c, 1);
        if (walk) {
            check_machine(s, &c->machine);
            leat_pipe_check(&c->net.link.pipe[0]);
            leat_pipe_check(&c->net.link.pipe[1]);
        }
    }
    check_budget(&s->server, 1);
    check_amplification(s);
    if (walk) {
        check_machine(s, &s->server);
    }
}

bool leat_sim_has_token(const leat_conn *conn)
{
    return conn->remote_cids.entry[conn->remote_cids.current].has_token;
}

/* ---- sums ---- */

static void sum_up_end(leat_sim *s, leat_sim_client *c, int side)
{
    leat_conn_stats_data stats;
    leat_sim_result *r = s->result;
    const leat_sim_app *app = &c->app[side];

    if (!app->conn) {
        return;
    }
    leat_conn_stats(app->conn, &stats);
    r->lost += stats.packets_lost;
    r->spurious += stats.packets_spurious;
    r->probes += stats.pto_count;
    r->key_updates += stats.key_updates;
    r->streams += side == 0 ? stats.streams_opened : 0;
    r->stream_bytes += app->bytes_read;
    r->resets += app->resets_seen;
    r->stops += app->stops_seen;
    r->datagram_frames += app->datagrams_seen;
    if (side == 0) {
        r->resumed += leat_conn_resumed(app->conn);
        r->early_accepted += leat_conn_early(app->conn) == LEAT_EARLY_ACCEPTED;
        r->early_rejected += leat_conn_early(app->conn) == LEAT_EARLY_REJECTED;
        r->version_2 += leat_conn_version(app->conn) == LEAT_QUIC_V2;
    }
}

void leat_sim_sum_up(leat_sim *s, leat_sim_client *c)
{
    sum_up_end(s, c, 0);
    sum_up_end(s, c, 1);
}

void leat_sim_sum_up_nets(leat_sim *s)
{
    leat_sim_result *r = s->result;

    for (size_t i = 0; i < s->count; i++) {
        const leat_sim_net *net = &s->client[i].net;

        for (int side = 0; side < 2; side++) {
            const leat_pipe_stats *pipe = &net->link.pipe[side].stats;

            r->datagrams += pipe->sent;
            r->bytes += net->bytes_sent[side];
            r->dropped +=
                pipe->lost + pipe->filtered + pipe->too_large + pipe->overflowed + pipe->codel;
            r->damaged += pipe->damaged;
            r->extra_conns += s->client[i].app[side].extra;
        }
        r->stale += net->stale;
        r->rebindings += net->rebindings;
        r->changes += net->changes;
        r->digest = r->digest * 31 + net->digest;
    }
}

/* ---- why did it end ---- */

/* The versions of an end, as a set. */
static unsigned versions_of(const leat_sim_end_plan *end)
{
    return end->versions % 4 == 1 ? 1 : end->versions % 4 == 2 ? 2 : 3;
}

static bool expected(leat_sim *s, const leat_sim_client *c, int side)
{
    const leat_sim_plan *plan = s->plan;
    const leat_close_info *info = &c->app[side].info;
    bool mine = plan->closer == (uint64_t)side;
    bool closing = c->phase == LEAT_SIM_CLOSES;

    switch (info->kind) {
    case LEAT_CLOSE_LOCAL:
        return closing && mine && info->application && info->code == LEAT_SIM_CLOSE_CODE;
    case LEAT_CLOSE_PEER:
        /* A Retry's token is good for 15 s. */
        if ((plan->retry || plan->retry_above) && side == 0 &&
            info->code == LEAT_TE_INVALID_TOKEN && !c->app[1].conn) {
            return s->now + s->server.ahead > s->began + 15 * LEAT_SECOND;
        }
        if (side == 0 && c->app[1].turned_away && info->application) {
            return info->code == LEAT_SIM_CLOSE_CODE; /* the server's own end is looked at, too */
        }
        return closing && !mine &&
               (info->application ? info->code == LEAT_SIM_CLOSE_CODE
                                  : info->code == LEAT_TE_APPLICATION_ERROR ||
                                        (side == 0 && info->code == LEAT_TE_CONNECTION_REFUSED));
    case LEAT_CLOSE_IDLE:
    case LEAT_CLOSE_HANDSHAKE_TIMEOUT:
        /* Nobody resets a handshake: the client asks in vain for its end. */
        return (c->restarted && c->unheard) || plan->harsh || closing || c->starved ||
               c->phase == LEAT_SIM_READY || (side == 1 && c->app[1].turned_away);
    case LEAT_CLOSE_RESET:
        return side == 0 && ((closing && !mine) || c->restarted || plan->harsh || c->starved);
    case LEAT_CLOSE_VERSION:
        return side == 0 && (plan->net[1].corrupt > 0 ||
                             (versions_of(&plan->end[0]) & versions_of(&plan->end[1])) == 0);
    case LEAT_CLOSE_DROPPED:
        return (c->restarted && side == 1) || (closing && mine && plan->close_how == 2);
    }
    return false;
}

static const char *kind_name(leat_close_kind kind)
{
    static const char *const names[] = {"local", "peer",    "idle",   "handshake timeout",
                                        "reset", "version", "dropped"};

    return names[kind];
}

static leat_sim_ending ending(const leat_sim *s, const leat_sim_client *c)
{
    bool done = leat_sim_app_done(&c->app[0]) && leat_sim_app_done(&c->app[1]);

    return c->app[0].info.kind == LEAT_CLOSE_VERSION                 ? LEAT_SIM_version
           : c->app[0].info.kind == LEAT_CLOSE_RESET && c->restarted ? LEAT_SIM_restarted
           : c->phase == LEAT_SIM_CLOSES && done                     ? LEAT_SIM_complete
           : s->early                                                ? LEAT_SIM_closed_early
                                                                     : LEAT_SIM_timed_out;
}

/* The connection of a client that has forgotten it: nothing but silence comes, or a stateless reset
 * where that can be told (RFC 9000 s10.3), or this end's own close. */
static void explain_ghost(leat_sim *s, const leat_sim_ghost *ghost)
{
    const leat_close_info *info = &ghost->app.info;
    bool closes = s->closing && s->plan->closer == 1;
    bool reset = info->kind == LEAT_CLOSE_RESET && ghost->has_token;
    bool local = info->kind == LEAT_CLOSE_LOCAL && closes && info->code == LEAT_SIM_CLOSE_CODE;
    bool dropped =
        info->kind == LEAT_CLOSE_DROPPED && (s->restarted || (closes && s->plan->close_how == 2));

    if (!ghost->app.closed) {
        leat_sim_fail("the server's application was not told that a client has gone");
    }
    if (info->kind != LEAT_CLOSE_IDLE && !reset && !local && !dropped) {
        leat_sim_fail("a connection that its client has forgotten ended: %s, code %#" PRIx64 ", %s",
                      kind_name(info->kind), info->code, ghost->app.detail);
    }
}

void leat_sim_explain(leat_sim *s)
{
    for (size_t i = 0; i < s->count; i++) {
        leat_sim_client *c = &s->client[i];

        if (c->ghost) {
            explain_ghost(s, c->ghost);
        }
        for (int side = 0; side < 2; side++) {
            const leat_sim_app *app = &c->app[side];

            if (app->conn) {
                leat_sim_fail("the %s's application was not told of the end", side_names[side]);
            }
            if (app->closed && !expected(s, c, side)) {
                leat_sim_fail("the %s's connection ended: %s, code %#" PRIx64 ", frame %#" PRIx64
                              ", %s %s",
                              side_names[side], kind_name(app->info.kind), app->info.code,
                              app->info.frame_type, leat_err_name(app->info.err), app->detail);
            }
        }
        if (s->result->ending == LEAT_SIM_complete) {
            s->result->ending = ending(s, c);
        }
    }
}

/* ---- nothing is left ---- */

static void check_empty(const leat_sim_machine *machine)
{
    leat_conn_shared *shared;
    leat_mem_stats stats;

    LEAT_ASSERT(leat_conn_shared_get(machine->ctx, &shared) == LEAT_OK);
    leat_sim_agree("connections left", leat_pool_live(&shared->conns), 0);
    leat_sim_agree("handshakes left", leat_pool_live(&shared->handshakes), 0);
    leat_sim_agree("0-RTT left", leat_pool_live(&shared->early_works), 0);
    leat_sim_agree("TLS that waits for tickets left", leat_pool_live(&shared->tickets), 0);
    leat_sim_agree("streams left", leat_pool_live(&shared->streams.streams), 0);
    leat_sim_agree("received segments left", leat_pool_live(&shared->streams.segments), 0);
    if (machine->ep) {
        leat_sim_agree("routes left", leat_pool_live(&machine->ep->routes), 0);
    }
    leat_mem_check(leat_ctx_mem(machine->ctx));
    leat_mem_stats_get(leat_ctx_mem(machine->ctx), &stats);
    leat_sim_agree("buffers left", stats.buf_live, 0);
}

void leat_sim_check_empty(leat_sim *s)
{
    for (size_t i = 0; i < s->count; i++) {
        check_empty(&s->client[i].machine);
    }
    check_empty(&s->server);
}
