/* tests/sim/agree.c: see sim.h: what two ends that have come to rest must agree on.
 *
 * All that was sent has arrived, or was sent again and has. What is counted, promised, given out
 * and taken back on one side is then known on the other: where it is not, a frame was lost and
 * nobody has sent it again.
 *
 * SPDX-License-Identifier: MIT
 */
#include <inttypes.h>

#include "sim.h"

void leat_sim_agree(const char *what, uint64_t a, uint64_t b)
{
    if (a != b) {
        leat_sim_fail("%s: %" PRIu64 " is not %" PRIu64, what, a, b);
    }
}

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

    leat_sim_agree("credit used and received", out->used, in->received);
    leat_sim_agree("credit received and given back", in->received, in->consumed);
    if (out->limit > in->limit) {
        leat_sim_fail("a limit of %" PRIu64 " where %" PRIu64 " was given", out->limit, in->limit);
    }
}

static void compare_datagrams(leat_sim_client *c, const leat_conn_stats_data *from,
                              const leat_conn_stats_data *to, int side)
{
    const leat_sim_app *sender = &c->app[side], *receiver = &c->app[1 - side];

    leat_sim_agree("datagrams acknowledged", from->datagram_frames_acked, sender->datagrams_acked);
    /* What comes before the application knows of the connection may be dropped. */
    if (sender->datagrams_acked > receiver->datagrams_seen + to->datagram_frames_dropped) {
        leat_sim_fail("%" PRIu64 " datagrams acknowledged, and %" PRIu64 " came",
                      sender->datagrams_acked, receiver->datagrams_seen);
    }
}

static size_t conns_of(leat_sim *s, const leat_sim_client *c)
{
    size_t count = 0;

    LEAT_SIM_EACH_CONN(&s->server, l)
    {
        count += leat_sim_client_at(s, leat_conn_remote(leat_sim_conn_of(l))) == c;
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

    leat_sim_agree("datagrams sent, by connection and network", from->datagrams_sent, pipe->sent);
    leat_sim_agree("bytes sent, by connection and network", from->bytes_sent,
                   c->net.bytes_sent[side]);
    leat_sim_agree("datagrams received, by connection and network", to->datagrams_received,
                   pipe->delivered - (side == 1 ? c->net.stale : 0));
    if (!filtered && net->loss + net->duplicate == 0 &&
        pipe->overflowed + pipe->too_large + pipe->codel == 0) {
        leat_sim_agree("packets sent and received", from->packets_sent,
                       to->packets_received + to->packets_dropped);
    }
}

static void compare_way(leat_sim *s, leat_sim_client *c, const leat_conn_stats_data *from,
                        const leat_conn_stats_data *to, int side)
{
    leat_sim_agree("stream bytes sent and received", from->stream_bytes_sent,
                   to->stream_bytes_received);
    leat_sim_agree("bytes in flight at rest", from->bytes_in_flight, 0);
    leat_sim_agree("memory of streams at rest, received", from->memory_stream_recv, 0);
    leat_sim_agree("memory of streams at rest, sent", from->memory_stream_send, 0);
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

    leat_sim_agree("version", leat_conn_version(client), leat_conn_version(server));
    leat_sim_agree("resumed", leat_conn_resumed(client), leat_conn_resumed(server));
    leat_sim_agree("0-RTT accepted", early == LEAT_EARLY_ACCEPTED,
                   leat_conn_early(server) == LEAT_EARLY_ACCEPTED);
    if (early == LEAT_EARLY_OFFERED) {
        leat_sim_fail("the fate of 0-RTT is unknown at rest");
    }
    if (c->returned && !leat_conn_resumed(client) && s->plan->end[0].version == 0 &&
        s->plan->end[0].versions == s->plan->end[1].versions) {
        leat_sim_fail("a session was brought, and not resumed");
    }
}

/* ---- what frames have told ---- */

static const leat_local_cid *given(const leat_conn *conn, uint64_t sequence)
{
    for (size_t i = 0; i < LEAT_LOCAL_CIDS_MAX; i++) {
        const leat_local_cid *entry = &conn->local_cids.entry[i];

        if (entry->state != LEAT_CID_FREE && entry->sequence == sequence) {
            return entry;
        }
    }
    return NULL;
}

static bool knows(const leat_conn *conn, uint64_t sequence)
{
    for (size_t i = 0; i < conn->remote_cids.retiring_count; i++) {
        if (conn->remote_cids.retiring[i].sequence == sequence) {
            return true; /* it goes, as soon as the pacer lets that be said */
        }
    }
    for (size_t i = 0; i < LEAT_REMOTE_CIDS_MAX; i++) {
        const leat_remote_cid *entry = &conn->remote_cids.entry[i];

        if (entry->used && entry->sequence == sequence) {
            return true;
        }
    }
    return false;
}

/* Connection IDs: what one end has given out and not been told to forget, the other has. The ID of
 * a preferred address is told otherwise, and may be ignored. */
static void compare_ids(const leat_sim *s, const leat_conn *from, const leat_conn *to)
{
    for (size_t i = 0; i < LEAT_LOCAL_CIDS_MAX; i++) {
        const leat_local_cid *entry = &from->local_cids.entry[i];

        if (entry->state == LEAT_CID_SENT && !knows(to, entry->sequence) &&
            !(entry->sequence == 1 && s->plan->preferred)) {
            leat_sim_fail("ID %" PRIu64 " was given, and is not there", entry->sequence);
        }
    }
    for (size_t i = 0; i < LEAT_REMOTE_CIDS_MAX; i++) {
        const leat_remote_cid *entry = &to->remote_cids.entry[i];

        if (entry->used && !given(from, entry->sequence)) {
            leat_sim_fail("ID %" PRIu64 " is in use, and was never given", entry->sequence);
        }
    }
}

/* Each end follows the other's keys; of its own update it hears when a packet is acknowledged. */
static void compare_keys(const leat_conn *from, const leat_conn *to)
{
    if (from->rekey.acked) {
        leat_sim_agree("phases of the keys", from->rekey.tx_phase, to->rekey.rx_phase);
    }
}

static void compare_told(const leat_sim *s, const leat_sim_client *c, int side)
{
    const leat_conn *from = c->app[side].conn, *to = c->app[1 - side].conn;

    compare_ids(s, from, to);
    compare_keys(from, to);
    leat_sim_agree("ACK_FREQUENCY sent and received", from->ackfreq.next_sent,
                   to->ackfreq.next_received);
    leat_sim_agree("token not acknowledged at rest", from->is_server ? from->new_token.len : 0, 0);
    leat_sim_agree("probe of the datagram size at rest", from->mtu.probe, 0);
}

/* ---- where nothing goes wrong ---- */

static bool is_kind(const leat_sim_net_plan *net)
{
    return net->loss + net->corrupt + net->truncate + net->drop_first + net->outage_us + net->mtu +
               net->rate + net->change_at_us + net->bleach + net->reorder ==
           0;
}

/* A network and machines without trouble: what may fail for that reason must not. */
static void compare_kind(const leat_sim *s, const leat_sim_client *c)
{
    const leat_sim_plan *plan = s->plan;
    const leat_sim_net *net = &c->net;

    if (!is_kind(&plan->net[0]) || !is_kind(&plan->net[1]) || c->reborn || s->restarted ||
        plan->jump_us + plan->end[0].leap_us + plan->end[1].leap_us + plan->preferred > 0) {
        return;
    }
    if (net->own > 0 && !leat_addr_equal(leat_conn_local(c->app[0].conn),
                                         &net->outside[LEAT_SIM_OUTSIDE + net->own - 1].addr)) {
        leat_sim_fail("the client has not got to where it migrated");
    }
    for (int side = 0; side < 2; side++) {
        if (!plan->end[side].no_ecn && c->app[side].conn->ecn.state == LEAT_ECN_IS_FAILED) {
            leat_sim_fail("ECN is taken for broken");
        }
    }
}

void leat_sim_compare(leat_sim *s, leat_sim_client *c)
{
    leat_conn_stats_data stats[2];

    leat_conn_stats(c->app[0].conn, &stats[0]);
    leat_conn_stats(c->app[1].conn, &stats[1]);
    compare_way(s, c, &stats[0], &stats[1], 0);
    compare_way(s, c, &stats[1], &stats[0], 1);
    leat_sim_agree("streams opened", stats[0].streams_opened, stats[1].streams_opened);
    compare_handshake(s, c);
    compare_told(s, c, 0);
    compare_told(s, c, 1);
    compare_kind(s, c);
}
