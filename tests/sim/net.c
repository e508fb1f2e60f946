/* tests/sim/net.c: see net.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "net.h"

#include <string.h>

#include "base/assert.h"
#include "endpoint/endpoint.h"

#define OWN_NET 100 /* the third byte of an address that no NAT hides, and its number */

/* What the settings of a pipe cannot say. */
static bool passes(void *user, leat_dgram *dgram, uint64_t index)
{
    const leat_sim_way *way = user;
    leat_time from = way->plan->outage_at_us * LEAT_MICROSECOND;

    if (way->plan->bleach == 2 && dgram->ecn != LEAT_ECN_NOT_ECT) {
        dgram->ecn = LEAT_ECN_CE;
    } else if (way->plan->bleach == 3 && dgram->ecn == LEAT_ECN_ECT0) {
        dgram->ecn = LEAT_ECN_ECT1;
    }
    if (way->dark &&
        (leat_addr_equal(&dgram->src, way->dark) || leat_addr_equal(&dgram->dst, way->dark))) {
        return false;
    }
    if (index < 64 && (way->plan->drop_first >> index & 1)) {
        return false;
    }
    return *way->now < from || *way->now - from >= way->plan->outage_us * LEAT_MICROSECOND;
}

static leat_pipe_settings pipe_settings(const leat_sim_net_plan *plan, leat_sim_way *way)
{
    return (leat_pipe_settings){
        .delay = (way->changed ? plan->change_delay_us : plan->delay_us) * LEAT_MICROSECOND,
        .jitter = plan->jitter_us * LEAT_MICROSECOND,
        .rate = way->changed ? plan->change_rate : plan->rate,
        .queue = plan->queue,
        .mark = plan->mark,
        .codel = plan->codel_us * LEAT_MICROSECOND,
        .mtu = way->changed ? plan->change_mtu : plan->mtu,
        .loss = (uint32_t)plan->loss,
        .loss_burst = (uint32_t)plan->loss_burst,
        .duplicate = (uint32_t)plan->duplicate,
        .reorder = (uint32_t)plan->reorder,
        .reorder_delay = plan->reorder_delay_us * LEAT_MICROSECOND,
        .corrupt = (uint32_t)plan->corrupt,
        .truncate = (uint32_t)plan->truncate,
        .bleach = plan->bleach == 1,
        .filter = passes,
        .filter_user = way,
    };
}

static void set_pipe(leat_sim_net *net, int i)
{
    leat_pipe_settings settings = pipe_settings(&net->plan->net[i], &net->way[i]);

    leat_pipe_set(&net->link.pipe[i], &settings);
}

/* A way becomes another, and what it was: delay, rate and MTU. */
static void change_ways(leat_sim_net *net)
{
    for (int i = 0; i < 2; i++) {
        const leat_sim_net_plan *plan = &net->plan->net[i];
        leat_time from = LEAT_SECOND + plan->change_at_us * LEAT_MICROSECOND;
        leat_time to = leat_time_add(
            from, plan->change_back_us ? plan->change_back_us * LEAT_MICROSECOND : LEAT_TIME_NEVER);
        bool changed = plan->change_at_us > 0 && net->now >= from && net->now < to;

        if (net->way[i].changed != changed) {
            net->way[i].changed = changed;
            net->changes++;
            set_pipe(net, i);
        }
    }
}

void leat_sim_net_again(leat_sim_net *net)
{
    for (int i = 0; i < 2; i++) {
        net->link.pipe[i].stats = (leat_pipe_stats){0};
        net->bytes_sent[i] = net->nobodys[i] = net->in_vain[i] = net->longest[i] = 0;
        net->vain[i] = (leat_sim_vain){0};
    }
    for (size_t i = 0; i < LEAT_SIM_ADDRESSES; i++) {
        net->outside[i].sent = net->outside[i].received = 0;
        net->outside[i].validated = false;
    }
    net->confirmed = net->met_elsewhere = false;
    net->stale = net->rebindings = net->changes = net->own = 0;
    net->rebind_at = net->migrate_at = LEAT_TIME_NEVER;
}

void leat_sim_net_init(leat_sim_net *net, const leat_sim_plan *plan, size_t nth, uint64_t seed)
{
    *net = (leat_sim_net){
        .plan = plan, .digest = seed, .rebind_at = LEAT_TIME_NEVER, .migrate_at = LEAT_TIME_NEVER};
    LEAT_ASSERT(leat_mem_new(NULL, &net->mem) == LEAT_OK);
    leat_net_link_init(&net->link, net->mem, NULL, seed);
    for (int i = 0; i < 2; i++) {
        net->way[i] = (leat_sim_way){&plan->net[i], false, &net->now,
                                     plan->preferred == 3 ? &net->preferred : NULL};
        set_pipe(net, i);
        net->addr[i] = (leat_addr){.family = 4,
                                   .port = i == 0 ? 40000 : 4433,
                                   .ip = {10, i == 0 ? (uint8_t)nth : 0, 0, (uint8_t)(1 + i)}};
    }
    for (size_t i = 0; i < LEAT_SIM_OUTSIDE; i++) {
        net->outside[i].addr = net->addr[0];
        net->outside[i].addr.port = (uint16_t)(40000 + i);
        net->outside[i].addr.ip[2] = plan->rebind_ip ? (uint8_t)i : 0;
    }
    for (size_t i = LEAT_SIM_OUTSIDE; i < LEAT_SIM_ADDRESSES; i++) {
        net->outside[i].addr = net->addr[0];
        net->outside[i].addr.ip[2] = (uint8_t)(OWN_NET + i);
    }
    net->preferred = net->addr[1];
    net->preferred.port = 4444;
    net->preferred.ip[3] = plan->preferred == 1 ? net->preferred.ip[3] : 3;
}

void leat_sim_net_free(leat_sim_net *net)
{
    leat_mem_stats stats;

    leat_net_link_free(&net->link);
    leat_mem_stats_get(net->mem, &stats);
    LEAT_ASSERT(stats.buf_live == 0);
    leat_mem_free(net->mem);
}

/* ---- the NAT in front of the client ---- */

void leat_sim_net_confirmed(leat_sim_net *net)
{
    net->confirmed = true;
    if (net->plan->rebind_at_us > 0) {
        net->rebind_at = net->now + net->plan->rebind_at_us * LEAT_MICROSECOND;
    }
    if (net->plan->migrate_at_us > 0) {
        net->migrate_at = net->now + net->plan->migrate_at_us * LEAT_MICROSECOND;
    }
}

void leat_sim_net_unconfirmed(leat_sim_net *net)
{
    net->confirmed = false;
    net->rebind_at = net->migrate_at = LEAT_TIME_NEVER;
}

const leat_addr *leat_sim_net_migrate_to(const leat_sim_net *net)
{
    if (net->now < net->migrate_at || net->own == LEAT_SIM_OWN) {
        return NULL;
    }
    return &net->outside[LEAT_SIM_OUTSIDE + net->own].addr;
}

void leat_sim_net_migrated(leat_sim_net *net)
{
    net->own++;
    net->migrate_at = net->plan->migrate_every_us
                          ? net->now + net->plan->migrate_every_us * LEAT_MICROSECOND
                          : LEAT_TIME_NEVER;
}

leat_time leat_sim_net_restless(const leat_sim_net *net)
{
    uint64_t rebindings = LEAT_SIM_OUTSIDE - 1 - net->outside_now;
    uint64_t moves = LEAT_SIM_OWN - net->own;

    return (rebindings * net->plan->rebind_every_us + moves * net->plan->migrate_every_us) *
           LEAT_MICROSECOND;
}

static void rebind(leat_sim_net *net)
{
    if (net->now < net->rebind_at || net->outside_now + 1 == LEAT_SIM_OUTSIDE) {
        return;
    }
    net->outside_now++;
    net->rebindings++;
    net->rebind_at = net->plan->rebind_every_us
                         ? net->now + net->plan->rebind_every_us * LEAT_MICROSECOND
                         : LEAT_TIME_NEVER;
}

bool leat_sim_net_had(const leat_sim_net *net, size_t i)
{
    return i < LEAT_SIM_OUTSIDE ? i <= net->outside_now : i < LEAT_SIM_OUTSIDE + net->own;
}

/* As leat_sim_net_init() numbers them. */
size_t leat_sim_net_outside(const leat_sim_net *net, const leat_addr *addr)
{
    size_t i = addr->ip[2] >= OWN_NET ? (size_t)(addr->ip[2] - OWN_NET)
                                      : (size_t)addr->port - net->addr[0].port;

    LEAT_ASSERT(i < LEAT_SIM_ADDRESSES && leat_sim_net_had(net, i));
    LEAT_ASSERT(leat_addr_equal(addr, &net->outside[i].addr));
    return i;
}

/* What the network sees as the source. */
static leat_addr source(const leat_sim_net *net, int from, const leat_send_info *info)
{
    bool home = info->local.family == 0 || leat_addr_equal(&info->local, &net->addr[from]);

    if (from == 0) {
        return home ? net->outside[net->outside_now].addr
                    : net->outside[leat_sim_net_outside(net, &info->local)].addr;
    }
    LEAT_ASSERT(home || leat_addr_equal(&info->local, &net->preferred));
    return home ? net->addr[1] : net->preferred;
}

/* ---- sending ---- */

static void mix(uint64_t *digest, uint64_t value)
{
    *digest = (*digest ^ value) * UINT64_C(0xff51afd7ed558ccd);
    *digest ^= *digest >> 32;
}

static void digest(leat_sim_net *net, int from, const leat_buf *buf)
{
    size_t at = 0;
    uint64_t word;

    mix(&net->digest, net->now);
    mix(&net->digest, (uint64_t)buf->len * 2 + (uint64_t)from);
    for (; at + sizeof(word) <= buf->len; at += sizeof(word)) {
        memcpy(&word, buf->data + at, sizeof(word));
        mix(&net->digest, word);
    }
    for (; at < buf->len; at++) {
        mix(&net->digest, buf->data[at]);
    }
}

/* Where it goes it never gets through: that is the sender's doing, and no bad luck. */
static bool is_too_large(const leat_sim_net *net, int from, size_t len)
{
    const leat_sim_net_plan *plan = &net->plan->net[from];
    uint64_t mtu = net->way[from].changed ? plan->change_mtu : plan->mtu;

    return mtu > 0 && len > mtu;
}

static void send_one(leat_sim_net *net, int from, const uint8_t *data, size_t len,
                     const leat_send_info *info)
{
    leat_dgram dgram = {
        .src = source(net, from, info),
        .dst = info->remote,
        .ecn = info->ecn,
    };

    LEAT_ASSERT(leat_buf_take(net->mem, len, &dgram.buf) == LEAT_OK);
    memcpy(dgram.buf.data, data, len);
    digest(net, from, &dgram.buf);
    if (net->pcap) {
        leat_pcap_write(net->pcap, net->now, &dgram.src, &dgram.dst, info->ecn,
                        (leat_span){data, len});
    }
    net->bytes_sent[from] += len;
    if (!is_too_large(net, from, len)) {
        net->in_vain[1 - from]++;
        net->vain[from].sent++;
        net->vain[1 - from].answered++;
    }
    net->sent_at[from] = net->now;
    leat_net_link_send(&net->link, from, net->now, &dgram);
}

void leat_sim_net_send(leat_sim_net *net, int from, const uint8_t *data, size_t len,
                       const leat_send_info *info)
{
    size_t count = 0;

    rebind(net);
    change_ways(net);
    if (from == 0) {
        LEAT_ASSERT(leat_addr_equal(&info->remote, &net->addr[1]) ||
                    (net->plan->preferred && leat_addr_equal(&info->remote, &net->preferred)));
    } else {
        net->outside[leat_sim_net_outside(net, &info->remote)].received += len;
    }
    LEAT_ASSERT(info->segment > 0);
    for (size_t at = 0; at < len; at += info->segment) {
        send_one(net, from, data + at, len - at < info->segment ? len - at : info->segment, info);
        count++;
    }
    LEAT_ASSERT(count == info->datagrams);
}

/* ---- arriving ---- */

typedef struct arrival {
    uint8_t data[65536];
    size_t len;
    size_t count;
    leat_recv_info info;
} arrival;

static void hand_over(leat_endpoint *endpoint, arrival *a)
{
    if (a->count > 0) {
        a->info.segment = a->count > 1 ? a->info.segment : 0;
        LEAT_ASSERT(leat_endpoint_recv_copy(endpoint, a->data, a->len, &a->info) == LEAT_OK);
        a->len = a->count = 0;
    }
}

/* UDP GRO's rule: one size, only the last may be shorter. */
static bool belongs(const arrival *a, const leat_dgram *dgram, uint64_t group)
{
    return a->count > 0 && a->count < group && a->info.ecn == dgram->ecn &&
           leat_addr_equal(&a->info.remote, &dgram->src) &&
           leat_addr_equal(&a->info.local, &dgram->dst) && a->len == a->count * a->info.segment &&
           dgram->buf.len > 0 && dgram->buf.len <= a->info.segment &&
           a->len + dgram->buf.len <= sizeof(a->data);
}

static void gather(arrival *a, const leat_dgram *dgram)
{
    if (a->count == 0) {
        a->info = (leat_recv_info){.remote = dgram->src,
                                   .local = dgram->dst,
                                   .ecn = dgram->ecn,
                                   .segment = dgram->buf.len};
    }
    if (dgram->buf.len > 0) {
        memcpy(a->data + a->len, dgram->buf.data, dgram->buf.len);
    }
    a->len += dgram->buf.len;
    a->count++;
}

/* 0-RTT, of either version. */
static bool is_early(const uint8_t *data)
{
    uint32_t version = (uint32_t)data[1] << 24 | data[2] << 16 | data[3] << 8 | data[4];

    return (data[0] >> 4 & 3) == (version == LEAT_QUIC_V2 ? 2 : 1);
}

/* Whether its destination ID (RFC 8999 s5) is no connection's any more, or not yet: what comes as
 * 0-RTT before the Initial that it belongs to. */
static bool is_nobodys(const leat_sim_net *net, int at, leat_endpoint *endpoint,
                       const leat_dgram *dgram)
{
    const uint8_t *data = dgram->buf.data;
    bool is_long = dgram->buf.len > 5 && (data[0] & 0x80);
    size_t len = is_long ? data[5] : net->plan->end[at].cid_len;
    size_t before = is_long ? 6 : 1;

    return (net->confirmed || (is_long && is_early(data))) && dgram->buf.len >= before + len &&
           !leat_endpoint_find(endpoint, data + before, len);
}

/* Through the NAT, with the addresses that the end sees; false: it knows the old one no more. */
static bool reaches(leat_sim_net *net, int at, leat_dgram *dgram)
{
    size_t outside;

    if (at == 1) {
        net->outside[leat_sim_net_outside(net, &dgram->src)].sent += dgram->buf.len;
        return true;
    }
    outside = leat_sim_net_outside(net, &dgram->dst);
    if (outside >= LEAT_SIM_OUTSIDE) {
        return true;
    }
    if (outside != net->outside_now && !net->plan->rebind_keep) {
        net->stale++;
        return false;
    }
    dgram->dst = net->addr[0];
    return true;
}

uint64_t leat_sim_net_lost(const leat_sim_net *net, int at)
{
    uint64_t under_way = leat_pipe_count(&net->link.pipe[1 - at]);

    return net->in_vain[at] > under_way ? net->in_vain[at] - under_way : 0;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

bool leat_sim_net_tried(const leat_sim_net *net, int at, uint64_t least)
{
    const leat_sim_vain *vain = &net->vain[at];
    uint64_t there = less(
        vain->sent, vain->arrived + leat_pipe_count(&net->link.pipe[at])); /* lost on the way */
    uint64_t back = less(vain->answered, leat_pipe_count(&net->link.pipe[1 - at]));

    return there + back >= least && 2 * back >= vain->arrived;
}

uint64_t leat_sim_net_swallowed(const leat_sim_net *net)
{
    uint64_t sum = net->stale;

    for (int i = 0; i < 2; i++) {
        const leat_pipe_stats *stats = &net->link.pipe[i].stats;

        sum += stats->lost + stats->filtered + stats->overflowed + stats->codel + stats->damaged;
    }
    return sum;
}

/* A row of losses ends with this one, which is counted in it. What is damaged is heard by nobody.
 */
static void note_arrival(leat_sim_net *net, int at, const leat_dgram *dgram)
{
    uint64_t lost = leat_sim_net_lost(net, at);

    if (!dgram->damaged) {
        net->vain[at] = (leat_sim_vain){0};
        net->vain[1 - at].arrived++;
    }

    if (lost > net->longest[at] + 1) {
        net->longest[at] = lost - 1;
    }
    net->in_vain[at] = 0;
}

size_t leat_sim_net_deliver(leat_sim_net *net, int at, leat_endpoint *endpoint, uint64_t group)
{
    static arrival a;
    leat_dgram dgram;
    size_t count = 0;

    while (leat_net_link_recv(&net->link, at, net->now, &dgram)) {
        if (!reaches(net, at, &dgram)) {
            leat_buf_release(&dgram.buf);
            continue;
        }
        note_arrival(net, at, &dgram);
        net->nobodys[at] += is_nobodys(net, at, endpoint, &dgram);
        if (!belongs(&a, &dgram, group)) {
            hand_over(endpoint, &a);
        }
        gather(&a, &dgram);
        leat_buf_release(&dgram.buf);
        count++;
    }
    hand_over(endpoint, &a);
    return count;
}

void leat_sim_net_discard(leat_sim_net *net, int at)
{
    leat_dgram dgram;

    while (leat_net_link_recv(&net->link, at, net->now, &dgram)) {
        leat_buf_release(&dgram.buf);
    }
}
