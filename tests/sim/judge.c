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

static const char *const side_names[] = {"client", "server"};

#define EACH_CONN(machine, l)                                                                      \
    for (leat_link *l = (machine)->ep ? leat_list_first(&(machine)->ep->conns) : NULL; l;          \
         l = leat_list_next(&(machine)->ep->conns, l))

static leat_conn *conn_of(leat_link *link)
{
    return LEAT_CONTAINER_OF(link, leat_conn, host_link);
}

static void agree(const char *what, uint64_t a, uint64_t b)
{
    if (a != b) {
        leat_sim_fail("%s: %" PRIu64 " is not %" PRIu64, what, a, b);
    }
}

/* ---- after each step ---- */

static void check_budget(const leat_sim_machine *machine, int side)
{
    EACH_CONN(machine, l)
    {
        uint64_t used = conn_of(l)->budget.used;

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
    EACH_CONN(&s->server, l)
    {
        for (size_t i = 0; i < leat_paths_room(&conn_of(l)->paths); i++) {
            note_validated(s, leat_paths_at(&conn_of(l)->paths, i));
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

/* Datagrams sent to an end in a row that did not arrive, and are not under way either. */
static uint64_t lost_in_a_row(const leat_sim_client *c, int side)
{
    uint64_t under_way = leat_pipe_count(&c->net.link.pipe[1 - side]);

    return c->net.in_vain[side] > under_way ? c->net.in_vain[side] - under_way : 0;
}

/* Whether bad luck explains that an end gives up: so many datagrams in a row were lost. */
static void note_timeouts(const leat_sim *s, leat_sim_client *c)
{
    uint64_t least = s->slept ? LOST_IN_A_ROW_AFTER_SLEEP : LOST_IN_A_ROW;

    for (int side = 0; side < 2; side++) {
        const leat_sim_app *app = &c->app[side];

        if (app->closed &&
            (app->info.kind == LEAT_CLOSE_IDLE || app->info.kind == LEAT_CLOSE_HANDSHAKE_TIMEOUT)) {
            c->starved |= lost_in_a_row(c, 0) >= least || lost_in_a_row(c, 1) >= least;
        }
    }
}

static void check_machine(leat_sim *s, const leat_sim_machine *machine)
{
    EACH_CONN(machine, l)
    {
        leat_conn_check(conn_of(l));
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

/* ---- at rest ---- */

bool leat_sim_at_rest(const leat_sim_client *c)
{
    return c->app[0].conn && c->app[1].conn && c->app[0].conn->flight.bytes == 0 &&
           c->app[1].conn->flight.bytes == 0 &&
           c->app[0].datagrams_sent == c->app[0].datagrams_over &&
           c->app[1].datagrams_sent == c->app[1].datagrams_over &&
           leat_net_link_deadline(&c->net.link) == LEAT_TIME_NEVER;
}

/* What one end has used of the connection's credit is what the other has counted, and all of it has
 * come back. */
static void compare_credit(leat_sim_client *c, int side)
{
    const leat_flow_out *out = &c->app[side].conn->streams.flow_out;
    const leat_flow_in *in = &c->app[1 - side].conn->streams.flow_in;

    agree("credit used and received", out->used, in->received);
    agree("credit received and given back", in->received, in->consumed);
    if (out->limit > in->limit) {
        leat_sim_fail("a limit of %" PRIu64 " where %" PRIu64 " was given", out->limit, in->limit);
    }
}

static void compare_datagrams(leat_sim_client *c, const leat_conn_stats_data *from,
                              const leat_conn_stats_data *to, int side)
{
    const leat_sim_app *sender = &c->app[side], *receiver = &c->app[1 - side];

    agree("datagrams acknowledged", from->datagram_frames_acked, sender->datagrams_acked);
    /* What comes before the application knows of the connection may be dropped. */
    if (sender->datagrams_acked > receiver->datagrams_seen + to->datagram_frames_dropped) {
        leat_sim_fail("%" PRIu64 " datagrams acknowledged, and %" PRIu64 " came",
                      sender->datagrams_acked, receiver->datagrams_seen);
    }
}

static size_t conns_of(leat_sim *s, const leat_sim_client *c)
{
    size_t count = 0;

    EACH_CONN(&s->server, l)
    {
        count += leat_sim_client_at(s, leat_conn_remote(conn_of(l))) == c;
    }
    return count;
}

/* Whether each datagram is this connection's: no answers of the endpoint's (Retry, Version
 * Negotiation, stateless reset), no second connection, nothing that came too late for its ID. */
static bool all_its_own(leat_sim *s, const leat_sim_client *c)
{
    const leat_net_link *link = &c->net.link;

    return !s->plan->retry && !s->plan->retry_above && !s->plan->end[0].version &&
           !s->plan->end[0].versions && !s->plan->end[1].versions && c->app[1].extra == 0 &&
           !c->reborn && conns_of(s, c) == 1 && c->net.nobodys[0] + c->net.nobodys[1] == 0 &&
           link->pipe[0].stats.damaged + link->pipe[1].stats.damaged == 0;
}

static void compare_network(leat_sim *s, leat_sim_client *c, const leat_conn_stats_data *from,
                            const leat_conn_stats_data *to, int side)
{
    const leat_pipe_stats *pipe = &c->net.link.pipe[side].stats;
    const leat_sim_net_plan *net = &s->plan->net[side];
    bool filtered = c->net.stale + net->drop_first + net->outage_us > 0 || s->plan->preferred == 3;

    agree("datagrams sent, by connection and network", from->datagrams_sent, pipe->sent);
    agree("bytes sent, by connection and network", from->bytes_sent, c->net.bytes_sent[side]);
    agree("datagrams received, by connection and network", to->datagrams_received,
          pipe->delivered - (side == 1 ? c->net.stale : 0));
    if (!filtered && net->loss + net->duplicate == 0 &&
        pipe->overflowed + pipe->too_large + pipe->codel == 0) {
        agree("packets sent and received", from->packets_sent,
              to->packets_received + to->packets_dropped);
    }
}

static void compare_way(leat_sim *s, leat_sim_client *c, const leat_conn_stats_data *from,
                        const leat_conn_stats_data *to, int side)
{
    agree("stream bytes sent and received", from->stream_bytes_sent, to->stream_bytes_received);
    agree("bytes in flight at rest", from->bytes_in_flight, 0);
    agree("memory of streams at rest, received", from->memory_stream_recv, 0);
    agree("memory of streams at rest, sent", from->memory_stream_send, 0);
    compare_credit(c, side);
    compare_datagrams(c, from, to, side);
    if (all_its_own(s, c)) {
        compare_network(s, c, from, to, side);
    }
}

/* What both ends say of the handshake. */
static void compare_handshake(leat_sim *s, const leat_sim_client *c)
{
    const leat_conn *client = c->app[0].conn, *server = c->app[1].conn;
    leat_early early = leat_conn_early(client);

    agree("version", leat_conn_version(client), leat_conn_version(server));
    agree("resumed", leat_conn_resumed(client), leat_conn_resumed(server));
    agree("0-RTT accepted", early == LEAT_EARLY_ACCEPTED,
          leat_conn_early(server) == LEAT_EARLY_ACCEPTED);
    if (early == LEAT_EARLY_OFFERED) {
        leat_sim_fail("the fate of 0-RTT is unknown at rest");
    }
    if (c->returned && !leat_conn_resumed(client) && s->plan->end[0].version == 0 &&
        s->plan->end[0].versions == s->plan->end[1].versions) {
        leat_sim_fail("a session was brought, and not resumed");
    }
}

void leat_sim_compare(leat_sim *s, leat_sim_client *c)
{
    leat_conn_stats_data stats[2];

    leat_conn_stats(c->app[0].conn, &stats[0]);
    leat_conn_stats(c->app[1].conn, &stats[1]);
    compare_way(s, c, &stats[0], &stats[1], 0);
    compare_way(s, c, &stats[1], &stats[0], 1);
    agree("streams opened", stats[0].streams_opened, stats[1].streams_opened);
    compare_handshake(s, c);
}

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
               c->phase == LEAT_SIM_READY;
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
    agree("connections left", leat_pool_live(&shared->conns), 0);
    agree("handshakes left", leat_pool_live(&shared->handshakes), 0);
    agree("0-RTT left", leat_pool_live(&shared->early_works), 0);
    agree("TLS that waits for tickets left", leat_pool_live(&shared->tickets), 0);
    agree("streams left", leat_pool_live(&shared->streams.streams), 0);
    agree("received segments left", leat_pool_live(&shared->streams.segments), 0);
    if (machine->ep) {
        agree("routes left", leat_pool_live(&machine->ep->routes), 0);
    }
    leat_mem_check(leat_ctx_mem(machine->ctx));
    leat_mem_stats_get(leat_ctx_mem(machine->ctx), &stats);
    agree("buffers left", stats.buf_live, 0);
}

void leat_sim_check_empty(leat_sim *s)
{
    for (size_t i = 0; i < s->count; i++) {
        check_empty(&s->client[i].machine);
    }
    check_empty(&s->server);
}
