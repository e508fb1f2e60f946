/* tests/sim/plan.c: see plan.h.
 *
 * A random plan is kept such that a correct stack must finish it: windows are not so small, queues
 * not so short, readers not so slow that an idle timeout could come first. Where that cannot be
 * had, `harsh` is set.
 *
 * SPDX-License-Identifier: MIT
 */
#include "plan.h"

#include <stdlib.h>
#include <string.h>

#include <leat/quic.h>

#include "base/prng.h"

/* ---- names ---- */

typedef struct plan_key {
    const char *name;
    size_t offset; /* in its own struct */
    uint64_t value;
    const char *text;
} plan_key;

#define RUN_KEY(n, value, text) {#n, offsetof(leat_sim_plan, n), value, text},
#define NET_KEY(n, value, text) {#n, offsetof(leat_sim_net_plan, n), value, text},
#define END_KEY(n, value, text) {#n, offsetof(leat_sim_end_plan, n), value, text},
static const plan_key run_keys[] = {LEAT_SIM_RUN_LIST(RUN_KEY)};
static const plan_key net_keys[] = {LEAT_SIM_NET_LIST(NET_KEY)};
static const plan_key end_keys[] = {LEAT_SIM_END_LIST(END_KEY)};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The structs that a list's keys are in, and what names them. */
typedef struct plan_part {
    const char *prefix;
    size_t offset; /* in the plan */
    const plan_key *keys;
    size_t count;
} plan_part;

static const plan_part parts[] = {
    {"", 0, run_keys, COUNT(run_keys)},
    {"up.", offsetof(leat_sim_plan, net[0]), net_keys, COUNT(net_keys)},
    {"down.", offsetof(leat_sim_plan, net[1]), net_keys, COUNT(net_keys)},
    {"client.", offsetof(leat_sim_plan, end[0]), end_keys, COUNT(end_keys)},
    {"server.", offsetof(leat_sim_plan, end[1]), end_keys, COUNT(end_keys)},
};

static uint64_t *member(leat_sim_plan *plan, const plan_part *part, const plan_key *key)
{
    return (uint64_t *)(void *)((char *)plan + part->offset + key->offset);
}

void leat_sim_plan_plain(leat_sim_plan *plan)
{
    for (size_t p = 0; p < COUNT(parts); p++) {
        for (size_t k = 0; k < parts[p].count; k++) {
            *member(plan, &parts[p], &parts[p].keys[k]) = parts[p].keys[k].value;
        }
    }
}

static bool named(const plan_part *part, const plan_key *key, const char *name, size_t len)
{
    size_t prefix = strlen(part->prefix);

    if (len == strlen(key->name) && memcmp(name, key->name, len) == 0) {
        return true;
    }
    return len == prefix + strlen(key->name) && memcmp(name, part->prefix, prefix) == 0 &&
           memcmp(name + prefix, key->name, len - prefix) == 0;
}

static bool set_one(leat_sim_plan *plan, const char *name, size_t len, uint64_t value)
{
    bool any = false;

    for (size_t p = 0; p < COUNT(parts); p++) {
        for (size_t k = 0; k < parts[p].count; k++) {
            if (named(&parts[p], &parts[p].keys[k], name, len)) {
                *member(plan, &parts[p], &parts[p].keys[k]) = value;
                any = true;
            }
        }
    }
    return any;
}

bool leat_sim_plan_set(leat_sim_plan *plan, const char *text, const char **wrong)
{
    while (*text) {
        const char *equals = strchr(text, '=');
        char *end;
        uint64_t value;

        *wrong = text;
        if (!equals) {
            return false;
        }
        value = strtoull(equals + 1, &end, 0);
        if (end == equals + 1 || (*end && *end != ',') ||
            !set_one(plan, text, (size_t)(equals - text), value)) {
            return false;
        }
        text = *end ? end + 1 : end;
    }
    return true;
}

void leat_sim_plan_print(const leat_sim_plan *plan, FILE *file)
{
    const char *comma = "";

    for (size_t p = 0; p < COUNT(parts); p++) {
        for (size_t k = 0; k < parts[p].count; k++) {
            const plan_key *key = &parts[p].keys[k];
            uint64_t value;

            memcpy(&value, (const char *)plan + parts[p].offset + key->offset, sizeof(value));
            if (value != key->value) {
                fprintf(file, "%s%s%s=%llu", comma, parts[p].prefix, key->name,
                        (unsigned long long)value);
                comma = ",";
            }
        }
    }
    fprintf(file, "\n");
}

uint64_t *leat_sim_plan_at(leat_sim_plan *plan, size_t i, uint64_t *plain)
{
    for (size_t p = 0; p < COUNT(parts); p++) {
        if (i < parts[p].count) {
            *plain = parts[p].keys[i].value;
            return member(plan, &parts[p], &parts[p].keys[i]);
        }
        i -= parts[p].count;
    }
    return NULL;
}

void leat_sim_plan_help(FILE *file)
{
    for (size_t p = 0; p < COUNT(parts); p++) {
        if (p == 2 || p == 4) {
            continue; /* the same names again */
        }
        fprintf(file, "\n%s\n",
                p == 0   ? "of the run:"
                : p == 1 ? "of the network (up., down., or both):"
                         : "of an end (client., server., or both):");
        for (size_t k = 0; k < parts[p].count; k++) {
            const plan_key *key = &parts[p].keys[k];

            fprintf(file, "  %-20s %10llu  %s\n", key->name, (unsigned long long)key->value,
                    key->text);
        }
    }
}

/* ---- chance ---- */

typedef leat_prng dice;

static bool one_in(dice *d, unsigned n)
{
    return leat_prng_chance(d, 1, n);
}

/* Evenly by magnitude: as many below 10 as between 10 and 100. */
static uint64_t by_size(dice *d, uint64_t least, uint64_t most)
{
    unsigned doublings = 0;
    uint64_t value;

    while (least << doublings < most) {
        doublings++;
    }
    value = least << leat_prng_below(d, doublings + 1);
    value = leat_prng_between(d, value, value * 2);
    return value < most ? value : most;
}

static void draw_net(dice *d, leat_sim_net_plan *net)
{
    net->delay_us = by_size(d, 50, 100000);
    net->jitter_us = one_in(d, 2) ? leat_prng_between(d, 0, net->delay_us) : 0;
    net->loss = one_in(d, 2) ? 0 : by_size(d, 1000, 100000);
    /* Bursts count packets, however rare: long ones would starve even probes. */
    net->loss_burst = one_in(d, 2) ? 0 : leat_prng_between(d, 1, 3);
    net->duplicate = one_in(d, 2) ? 0 : by_size(d, 1000, 100000);
    net->reorder = one_in(d, 2) ? 0 : by_size(d, 1000, 200000);
    net->reorder_delay_us = by_size(d, 100, 50000);
    net->corrupt = one_in(d, 3) ? by_size(d, 1000, 50000) : 0;
    net->truncate = one_in(d, 4) ? by_size(d, 1000, 50000) : 0;
    net->mtu = one_in(d, 4) ? leat_prng_between(d, 1200, 1500) : 0;
    net->bleach = one_in(d, 8) ? leat_prng_between(d, 1, 3) : 0;
    net->drop_first = one_in(d, 4) ? leat_prng_below(d, 16) : 0;
    if (one_in(d, 2)) {
        net->rate = by_size(d, 1000000, 1000000000);
        /* A path's queue holds at least ten packets, and often a round trip's worth. */
        net->queue = one_in(d, 4) ? 0 : 15000 + by_size(d, 1000, 200000);
        net->mark = one_in(d, 4) ? 5000 + by_size(d, 1000, 100000) : 0;
    }
    if (one_in(d, 10)) {
        net->outage_at_us = by_size(d, 1000, 2000000);
        net->outage_us = by_size(d, 10000, 3000000);
    }
}

static void draw_streams(dice *d, leat_sim_end_plan *end)
{
    end->bidi = one_in(d, 2) ? leat_prng_below(d, 4) : leat_prng_below(d, 30);
    end->uni = one_in(d, 2) ? 0 : leat_prng_below(d, 10);
    if (one_in(d, 20)) {
        end->bidi = leat_prng_between(d, 100, 400);
    }
    end->max_streams_bidi = one_in(d, 2) ? 128 : leat_prng_between(d, 1, 20);
    end->max_streams_uni = one_in(d, 2) ? 128 : leat_prng_between(d, 1, 20);
    end->priorities = one_in(d, 2);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Windows: never so small that a file takes more than some hundreds of round trips. */
static void draw_memory(dice *d, const leat_sim_plan *plan, leat_sim_end_plan *end)
{
    uint64_t most = larger(plan->size, plan->other_size);

    if (one_in(d, 2)) {
        end->max_data = by_size(d, 1024 + most / 64, 8388608);
        end->max_stream_data = by_size(d, 256 + most / 200, 4194304);
    }
    end->send_buffer = one_in(d, 2) ? end->send_buffer : by_size(d, 1024 + most / 200, 1048576);
    if (one_in(d, 3)) {
        end->memory = by_size(d, 1048576, 8388608);
    }
    if (end->max_data > end->memory / 8) {
        end->max_data = end->memory / 8;
    }
    if (end->send_buffer > end->memory / 4) {
        end->send_buffer = end->memory / 4;
    }
    end->slab_size = UINT64_C(4096) << leat_prng_below(d, 6);
}

static void draw_end(dice *d, const leat_sim_plan *plan, leat_sim_end_plan *end)
{
    uint64_t most = larger(plan->size, plan->other_size);

    end->idle_ms = end->handshake_ms =
        300000; /* so that no bad luck in the handshake comes to it */
    draw_streams(d, end);
    draw_memory(d, plan, end);
    end->udp_payload = one_in(d, 8)   ? leat_prng_between(d, 1200, 9000)
                       : one_in(d, 2) ? leat_prng_between(d, 1200, 1500)
                                      : 1452;
    end->max_ack_delay_ms = one_in(d, 2) ? 25 : leat_prng_between(d, 0, 100);
    end->key_update_packets = one_in(d, 2) ? 0 : by_size(d, 10, 1000);
    end->cid_len = one_in(d, 2) ? 8 : leat_prng_between(d, 4, 20);
    end->send_cap = one_in(d, 2) ? 65536 : leat_prng_between(d, end->udp_payload, 20000);
    end->group = one_in(d, 2) ? 0 : leat_prng_between(d, 2, 40);
    end->tick_us = by_size(d, 1000, 50000);
    /* Slow applications take some 50 ticks a stream: hundreds of streams may come one by one. */
    end->read_chunk = one_in(d, 5) ? most / 50 + by_size(d, 16, 4096) : 0;
    end->write_chunk = one_in(d, 5) ? most / 50 + by_size(d, 16, 4096) : 0;
    end->piece = one_in(d, 2) ? 65536 : by_size(d, 1 + plan->size / 1000, 65536);
    end->write_how = leat_prng_below(d, 4);
}

static void draw_ending(dice *d, leat_sim_plan *plan)
{
    plan->closer = leat_prng_below(d, 2);
    plan->settle = !one_in(d, 3);
    if (one_in(d, 6)) {
        plan->close_at_us = by_size(d, 1000, 2000000);
        plan->close_how = leat_prng_below(d, 3);
    }
    if (one_in(d, 20)) {
        plan->harsh = 1;
        for (int i = 0; i < 2; i++) {
            plan->net[i].loss = leat_prng_between(d, 200000, 700000);
            plan->net[i].loss_burst = leat_prng_between(d, 0, 10);
            plan->end[i].idle_ms = leat_prng_between(d, 200, 10000);
            plan->end[i].keep_alive_ms = one_in(d, 2) ? 0 : plan->end[i].idle_ms / 3;
            plan->end[i].handshake_ms = leat_prng_between(d, 200, 60000);
        }
    }
}

/* A client that only waits must send now and then, or nobody learns of its new address; and a path
 * takes some round trips to validate. */
static void draw_nat(dice *d, leat_sim_plan *plan)
{
    if (!one_in(d, 6)) {
        return;
    }
    plan->rebind_at_us = by_size(d, 1000, 3000000);
    plan->rebind_every_us = one_in(d, 2) ? 0 : by_size(d, 3000000, 20000000);
    plan->rebind_ip = one_in(d, 2);
    plan->rebind_keep = one_in(d, 2);
    plan->end[0].keep_alive_ms =
        plan->harsh ? plan->end[0].keep_alive_ms : leat_prng_between(d, 500, 3000);
}

static void draw_moves(dice *d, leat_sim_plan *plan)
{
    plan->preferred = one_in(d, 4) ? leat_prng_between(d, 1, 3) : 0;
    if (one_in(d, 6)) {
        plan->migrate_at_us = by_size(d, 1000, 3000000);
        plan->migrate_every_us = one_in(d, 2) ? 0 : by_size(d, 300000, 20000000);
    }
}

static void draw_datagrams(dice *d, leat_sim_end_plan *end)
{
    if (!one_in(d, 3)) {
        end->datagram_frame = one_in(d, 2) ? 0 : 65535;
        return;
    }
    end->datagrams = by_size(d, 1, 300);
    end->datagram_size = by_size(d, 1, 1300);
    end->datagram_every_us = by_size(d, 100, 20000);
    end->datagram_life_us = one_in(d, 2) ? 0 : by_size(d, 1000, 100000);
}

/* A server that begins anew resets what it knew: the client must ask to learn of it. */
static void draw_accidents(dice *d, leat_sim_plan *plan)
{
    if (one_in(d, 12)) {
        plan->jump_at_us = by_size(d, 1000, 1000000);
        plan->jump_us = by_size(d, 1000, 20000000);
    }
    if (one_in(d, 16) && !plan->harsh) {
        plan->restart_at_us = by_size(d, 1000, 1000000);
        plan->end[0].keep_alive_ms = leat_prng_between(d, 100, 3000);
    }
}

/* Ways that become others: a shorter one, a slower one, one that carries less. */
static void draw_change(dice *d, leat_sim_net_plan *net)
{
    net->change_delay_us = net->delay_us;
    net->change_rate = net->rate;
    net->change_mtu = net->mtu;
    if (!one_in(d, 6)) {
        return;
    }
    net->change_at_us = by_size(d, 1000, 2000000);
    net->change_back_us = one_in(d, 2) ? 0 : by_size(d, 10000, 3000000);
    net->change_mtu = one_in(d, 3) ? 0 : leat_prng_between(d, 1200, 1500);
    net->change_delay_us = one_in(d, 2) ? net->delay_us : by_size(d, 100, 200000);
    if (net->rate > 0 && one_in(d, 2)) {
        net->change_rate = by_size(d, 1000000, 1000000000);
    }
}

static void draw_settings(dice *d, leat_sim_end_plan *end)
{
    end->congestion = one_in(d, 2) ? 0 : leat_prng_below(d, LEAT_CONGESTIONS);
    end->min_ack_delay_us = one_in(d, 2) ? 0 : by_size(d, 1, 25000);
    end->no_ecn = one_in(d, 6);
    end->no_spin = one_in(d, 6);
    end->no_grease = one_in(d, 6);
    end->no_reset_at = one_in(d, 6);
    end->no_migration = one_in(d, 8);
    end->ignore_preferred = one_in(d, 8);
    end->rekey_every_us = one_in(d, 8) ? by_size(d, 1000, 1000000) : 0;
    end->datagram_queue = one_in(d, 3) ? by_size(d, 1, 256) : end->datagram_queue;
    end->datagram_urgency = one_in(d, 3) ? leat_prng_below(d, 8) : end->datagram_urgency;
    if (one_in(d, 16)) {
        end->leap_at_us = by_size(d, 1000, 1000000);
        end->leap_us = by_size(d, 1000, 20000000);
    }
}

/* Mostly versions in common. */
static void draw_versions(dice *d, leat_sim_plan *plan)
{
    if (!one_in(d, 3)) {
        return;
    }
    plan->end[0].versions = leat_prng_below(d, 4);
    plan->end[1].versions = leat_prng_below(d, 4);
    plan->end[0].version = one_in(d, 2) ? 0 : leat_prng_below(d, 3);
    if (plan->end[0].versions + plan->end[1].versions == 3 && plan->end[0].versions % 3 != 0 &&
        !one_in(d, 8)) {
        plan->end[1].versions = 0; /* version 1 alone met version 2 alone */
    }
    if (plan->end[0].versions % 3 != 0 && plan->end[0].version != plan->end[0].versions &&
        plan->end[1].versions != plan->end[0].versions) {
        plan->end[0].version = 0; /* the server speaks what the client only tries */
    }
}

static void draw_clients(dice *d, leat_sim_plan *plan)
{
    plan->hello_retry = one_in(d, 10);
    plan->retry_above = one_in(d, 8) ? leat_prng_between(d, 1, 2) : 0;
    if (one_in(d, 4)) {
        plan->clients = leat_prng_between(d, 2, one_in(d, 4) ? 6 : 3);
        plan->stagger_us = one_in(d, 2) ? 0 : by_size(d, 100, 300000);
    }
    if (one_in(d, 4)) {
        plan->again = leat_prng_between(d, 1, 2);
        plan->again_after_us = by_size(d, 1, 100000000);
        plan->resume = !one_in(d, 6);
        plan->token = !one_in(d, 3);
        plan->shrinks = one_in(d, 6);
        for (int i = 0; i < 2; i++) {
            plan->end[i].tickets = one_in(d, 8) ? 0 : leat_prng_between(d, 1, 3);
            plan->end[i].early_data = !one_in(d, 4);
        }
    }
}

void leat_sim_plan_random(leat_sim_plan *plan, uint64_t seed)
{
    dice d;

    leat_prng_seed(&d, seed);
    leat_sim_plan_plain(plan);
    plan->content = leat_prng_u64(&d);
    plan->size = one_in(&d, 20) ? by_size(&d, 65536, 1048576) : by_size(&d, 1, 65536);
    plan->size = one_in(&d, 400) ? by_size(&d, 1048576, 8388608) : plan->size;
    plan->other_size = one_in(&d, 10) ? by_size(&d, 4096, 65536) : by_size(&d, 1, 4096);
    plan->resets = one_in(&d, 2) ? 0 : by_size(&d, 10000, 400000);
    plan->stops = one_in(&d, 2) ? 0 : by_size(&d, 10000, 400000);
    plan->cipher = one_in(&d, 2) ? 0 : leat_prng_between(&d, 1, 3);
    plan->verify = one_in(&d, 2);
    plan->retry = one_in(&d, 4);
    plan->late_us = one_in(&d, 3) ? by_size(&d, 10, 5000) : 0;
    plan->steps_back = one_in(&d, 10) ? 10000 : 0;
    draw_net(&d, &plan->net[0]);
    if (one_in(&d, 2)) {
        plan->net[1] = plan->net[0];
    } else {
        draw_net(&d, &plan->net[1]);
    }
    draw_end(&d, plan, &plan->end[0]);
    draw_end(&d, plan, &plan->end[1]);
    if (plan->end[0].bidi == 0) {
        plan->end[0].bidi = 1;
    }
    draw_ending(&d, plan);
    draw_nat(&d, plan);
    plan->reliable = one_in(&d, 2) ? 0 : by_size(&d, 200000, 1000000);
    draw_moves(&d, plan);
    draw_datagrams(&d, &plan->end[0]);
    draw_datagrams(&d, &plan->end[1]);
    draw_accidents(&d, plan);
    for (int i = 0; i < 2; i++) {
        if (plan->net[i].rate > 0 && one_in(&d, 4)) {
            plan->net[i].codel_us = by_size(&d, 2000, 20000);
        }
        draw_change(&d, &plan->net[i]);
        draw_settings(&d, &plan->end[i]);
    }
    draw_versions(&d, plan);
    draw_clients(&d, plan);
    if (one_in(&d, 16) && !plan->harsh && !plan->restart_at_us) {
        plan->reborn_at_us = by_size(&d, 1000, 1000000);
    }
}
