/* recovery/sent.h against a plain list that is searched from end to end: random traffic, random
 * ACKs with many ranges, losses, probes, lack of memory. Each packet ends once, each frame is told
 * once.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sent_fixture.h"

enum { MODEL_PACKETS = 6000 };

typedef enum fate { UNSENT, FLYING, ACKED, LOST, SKIPPED } fate;

typedef struct model_packet {
    fate fate;
    bool in_flight;
    bool eliciting;
    bool told;    /* its frames have been, by a probe */
    bool arrived; /* at the model's peer */
    bool aside;   /* sent on a path that does not count */
    uint16_t size;
    uint32_t first, count; /* frames */
    leat_time sent_at;
} model_packet;

typedef struct model {
    model_packet packets[MODEL_PACKETS];
    uint64_t next;
    uint64_t largest_end;
    uint32_t frames;
    uint64_t bytes; /* in flight, on the path that counts */
    uint64_t aside; /* on another */
    leat_time now;
} model;

static leat_mem *mem;
static model m;
static told t;
static leat_flight flight;
static leat_sent sent;
static leat_prng prng;

static uint64_t *sum_of(const model_packet *p)
{
    return p->aside ? &m.aside : &m.bytes;
}

static void model_send(void)
{
    model_packet *p = &m.packets[m.next];
    bool must = leat_prng_chance(&prng, 1, 10);
    uint32_t frames = (uint32_t)leat_prng_below(&prng, leat_prng_chance(&prng, 1, 50) ? 60 : 4);

    if (leat_prng_chance(&prng, 1, 40) && leat_sent_skip(&sent)) {
        p->fate = SKIPPED;
        m.next++;
        return;
    }
    assert_int_equal(leat_sent_begin(&sent, must), LEAT_OK);
    p->fate = FLYING;
    p->in_flight = leat_prng_chance(&prng, 9, 10);
    p->eliciting = p->in_flight && leat_prng_chance(&prng, 9, 10);
    p->arrived = leat_prng_chance(&prng, 4, 5);
    p->aside = leat_prng_chance(&prng, 1, 10);
    p->size = (uint16_t)leat_prng_between(&prng, 30, 1452);
    p->first = m.frames;
    for (uint32_t i = 0; i < frames; i++) {
        assert_int_equal(leat_sent_add(&sent, KIND_BOTH, &t, p->first + i, 0, 0), LEAT_OK);
    }
    if (leat_prng_chance(&prng, 1, 20)) {
        leat_sent_abort(&sent);
        p->fate = UNSENT;
        return;
    }
    p->count = p->in_flight ? frames : 0; /* of the others none are kept */
    m.frames += frames;
    p->sent_at = m.now;
    *sum_of(p) += p->in_flight ? p->size : 0;
    leat_sent_commit(&sent, m.now, p->size,
                     (uint8_t)((p->in_flight ? LEAT_SENT_IN_FLIGHT : 0) |
                               (p->eliciting ? LEAT_SENT_ELICITING : 0)),
                     p->aside);
    m.next++;
}

/* The model's peer acknowledges from a random number down, whatever has arrived there, in at most
 * `most` ranges: often what it has acknowledged many times before. */
static void model_ack(uint32_t most)
{
    uint64_t newly = 0, bytes = 0, to = m.next - leat_prng_below(&prng, m.next < 20 ? m.next : 20);
    leat_sent_acked acked;

    while (to > 0 && !(m.packets[to - 1].fate != SKIPPED && m.packets[to - 1].arrived)) {
        to--;
    }
    if (to == 0) {
        return;
    }
    m.largest_end = to > m.largest_end ? to : m.largest_end;
    assert_int_equal(leat_sent_ack_start(&sent, &acked, to - 1, m.now, 0), LEAT_OK);
    for (uint32_t r = 0; r < most && to > 0; r++) {
        uint64_t from = to;

        while (from > 0 && m.packets[from - 1].fate != SKIPPED && m.packets[from - 1].arrived) {
            model_packet *p = &m.packets[--from];

            if (p->fate == FLYING && p->in_flight) {
                newly++;
                bytes += p->aside ? 0 : p->size;
                *sum_of(p) -= p->size;
            }
            if (p->fate == FLYING || p->fate == LOST) {
                p->fate = ACKED;
            }
        }
        if (from < to) {
            assert_int_equal(leat_sent_ack_range(&sent, &acked, from, to), LEAT_OK);
        }
        to = from ? from - 1 : 0;
        while (to > 0 && !(m.packets[to - 1].fate != SKIPPED && m.packets[to - 1].arrived)) {
            to--;
        }
    }
    leat_sent_ack_finish(&sent, &acked, 0);
    assert_int_equal(acked.bytes, bytes);
    assert_true(acked.packets >= newly); /* and those not in flight, if recorded */
}

static void model_detect(void)
{
    leat_sent_loss_rule rule = usual_rule(m.now);
    uint32_t packets = 0;
    leat_sent_lost lost;
    leat_time next = LEAT_TIME_NEVER;

    leat_sent_detect_lost(&sent, &rule, &lost);
    for (uint64_t pn = 0; pn < m.largest_end; pn++) {
        model_packet *p = &m.packets[pn];

        if (p->fate != FLYING || !p->in_flight) {
            continue;
        }
        if (m.largest_end - 1 - pn >= 3 || p->sent_at + rule.delay <= m.now) {
            p->fate = LOST;
            *sum_of(p) -= p->size;
            packets++;
        } else {
            next = leat_time_min(next, p->sent_at + rule.delay);
        }
    }
    assert_int_equal(lost.packets, packets);
    assert_int_equal(lost.next_at, next);
}

static void model_requeue(void)
{
    uint32_t left = (uint32_t)leat_prng_between(&prng, 1, 2);
    uint32_t found = leat_sent_requeue(&sent, left);

    for (uint64_t pn = 0; pn < m.next && left > 0; pn++) {
        model_packet *p = &m.packets[pn];

        if (p->fate == FLYING && p->eliciting && !p->told && p->count > 0) {
            p->told = true;
            left--;
            found--;
        }
    }
    assert_int_equal(found, 0);
}

static void check_frames(bool all_told)
{
    for (uint64_t pn = 0; pn < m.next; pn++) {
        const model_packet *p = &m.packets[pn];

        for (uint32_t i = p->first; i < p->first + p->count; i++) {
            assert_true(t.acked[i] + t.lost[i] <= 1);
            if (p->fate == FLYING && !p->told && !all_told) {
                assert_int_equal(t.acked[i] + t.lost[i], 0);
            } else {
                assert_int_equal(t.acked[i] + t.lost[i], 1);
            }
            if (p->fate == LOST || p->told) {
                assert_int_equal(t.lost[i], 1);
            }
        }
    }
}

static void run(uint64_t seed)
{
    uint64_t weight_send, weight_ack;

    leat_prng_seed(&prng, seed);
    memset(&m, 0, sizeof m);
    memset(&t, 0, sizeof t);
    leat_flight_init(&flight);
    leat_sent_init(&sent, mem, &flight, frame_ops, &t);
    /* frames are counted modulo 2^32: most runs pass through it */
    sent.frame_head = UINT32_MAX - (uint32_t)leat_prng_below(&prng, 2000);
    sent.frame_tail = sent.frame_head;
    weight_send = leat_prng_between(&prng, 1, 30);
    weight_ack = leat_prng_between(&prng, 1, 6);
    while (m.next + 40 < MODEL_PACKETS / 4) {
        m.now += leat_prng_below(&prng, 5 * MS);
        for (uint64_t i = leat_prng_below(&prng, weight_send + 1); i > 0; i--) {
            model_send();
        }
        for (uint64_t i = leat_prng_below(&prng, weight_ack); i > 0 && m.next > 0; i--) {
            model_ack((uint32_t)leat_prng_between(&prng, 1, 20));
            if (leat_prng_chance(&prng, 3, 4)) {
                model_detect();
            }
        }
        if (leat_prng_chance(&prng, 1, 30)) {
            model_requeue();
        }
        if (leat_prng_chance(&prng, 1, 100)) {
            leat_sent_shrink(&sent);
        }
        leat_sent_check(&sent);
        assert_int_equal(flight.bytes, m.bytes);
        assert_int_equal(sent.aside, m.aside);
    }
    check_frames(false);
    leat_sent_forget(&sent, true);
    leat_sent_check(&sent);
    assert_int_equal(flight.bytes, 0);
    check_frames(true);
    leat_sent_free(&sent);
}

static void random_traffic_agrees_with_a_plain_list(void **state)
{
    uint64_t seed = fixture_seed("random_traffic", 9002);

    (void)state;
    mem = fixture_mem();
    for (uint64_t i = 0; i < 60; i++) {
        run(seed + i);
    }
    leat_mem_free(mem);
}

static uint64_t deaf_packet(void)
{
    uint64_t pn = leat_sent_next_pn(&sent);

    assert_int_equal(leat_sent_begin(&sent, false), LEAT_OK);
    leat_sent_commit(&sent, 0, 1000, DATA, 0);
    return pn;
}

/* A peer that makes up ranges to have the same numbers walked again and again: the first packet
 * stays out, thousands above it are acknowledged one by one, then named in ever shorter ranges. */
static void stale_ranges_cost_no_walk(void **state)
{
    enum { PACKETS = 60000 };
    uint64_t jumps = 0;
    leat_sent_acked acked;

    (void)state;
    mem = fixture_mem();
    leat_flight_init(&flight);
    leat_sent_init(&sent, mem, &flight, frame_ops, &t);
    for (int i = 0; i < PACKETS; i++) {
        deaf_packet();
    }
    for (uint64_t pn = 1; pn < PACKETS; pn++) {
        assert_int_equal(leat_sent_ack_start(&sent, &acked, pn, 0, 0), LEAT_OK);
        assert_int_equal(leat_sent_ack_range(&sent, &acked, pn, pn + 1), LEAT_OK);
        leat_sent_ack_finish(&sent, &acked, 0);
        assert_int_equal(acked.packets, 1);
        assert_int_equal(acked.jumps, 0);
    }
    for (uint64_t pn = PACKETS - 1; pn > 1; pn--) {
        assert_int_equal(leat_sent_ack_start(&sent, &acked, pn, 0, 0), LEAT_OK);
        assert_int_equal(leat_sent_ack_range(&sent, &acked, 1, pn + 1), LEAT_OK);
        leat_sent_ack_finish(&sent, &acked, 0);
        assert_int_equal(acked.packets, 0);
        jumps += acked.jumps;
    }
    /* walked in full it would be 30,000 a range */
    assert_true(jumps < 10 * PACKETS);
    assert_int_equal(flight.bytes, 1000);
    leat_sent_free(&sent);
    leat_mem_free(mem);
}

/* What every peer does: a range that grows at the top, above a packet that stays out. */
static void a_growing_range_costs_one_step_beyond_what_is_new(void **state)
{
    leat_sent_acked acked;

    (void)state;
    mem = fixture_mem();
    leat_flight_init(&flight);
    leat_sent_init(&sent, mem, &flight, frame_ops, &t);
    deaf_packet();
    for (uint64_t next = 1; next < 10000; next += 20) {
        for (int i = 0; i < 20; i++) {
            deaf_packet();
        }
        assert_int_equal(leat_sent_ack_start(&sent, &acked, next + 19, 0, 0), LEAT_OK);
        assert_int_equal(leat_sent_ack_range(&sent, &acked, 1, next + 20), LEAT_OK);
        leat_sent_ack_finish(&sent, &acked, 0);
        assert_int_equal(acked.packets, 20);
        assert_true(acked.jumps <= 1);
    }
    leat_sent_free(&sent);
    leat_mem_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_traffic_agrees_with_a_plain_list),
        cmocka_unit_test(stale_ranges_cost_no_walk),
        cmocka_unit_test(a_growing_range_costs_one_step_beyond_what_is_new),
    };

    return cmocka_run_group_tests_name("recovery.sent_model", tests, NULL, NULL);
}
