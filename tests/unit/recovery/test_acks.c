/* recovery/acks.h: what was received, and when it is acknowledged (RFC 9000 §13.2).
 *
 * SPDX-License-Identifier: MIT
 */
#include "recovery_fixture.h"

#include "recovery/acks.h"

#define DELAY (25 * MS)

static leat_mem *mem;

static void got(leat_acks *acks, uint64_t pn, leat_time at)
{
    assert_false(leat_acks_is_duplicate(acks, pn));
    leat_acks_on_packet(acks, pn, at, LEAT_ECN_NOT_ECT, true);
    leat_acks_check(acks);
    assert_true(leat_acks_is_duplicate(acks, pn));
}

static void start(leat_acks *acks)
{
    leat_acks_init(acks, mem, DELAY);
}

static void assert_range(const leat_acks *acks, uint32_t i, uint64_t from, uint64_t to)
{
    assert_int_equal(leat_ranges_at(leat_acks_ranges(acks), i).from, from);
    assert_int_equal(leat_ranges_at(leat_acks_ranges(acks), i).to, to);
}

static void nothing_received_asks_for_nothing(void **state)
{
    leat_acks acks;

    (void)state;
    start(&acks);
    leat_acks_set_immediate(&acks);
    assert_true(leat_acks_is_empty(&acks));
    assert_false(leat_acks_is_due(&acks, 1000 * MS));
    assert_int_equal(leat_acks_deadline(&acks), LEAT_TIME_NEVER);
    assert_int_equal(leat_acks_expected(&acks), 0);
    leat_acks_free(&acks);
}

static void every_second_ack_eliciting_packet_makes_an_ack_due(void **state)
{
    leat_acks acks;

    (void)state;
    start(&acks);
    for (uint64_t pn = 0; pn < 10; pn += 2) {
        got(&acks, pn, 10 * MS);
        assert_true(leat_acks_has_news(&acks));
        assert_false(leat_acks_is_due(&acks, 10 * MS));
        assert_int_equal(leat_acks_deadline(&acks), 35 * MS);
        got(&acks, pn + 1, 11 * MS);
        assert_true(leat_acks_is_due(&acks, 11 * MS));
        leat_acks_on_sent(&acks);
        assert_false(leat_acks_has_news(&acks));
        assert_false(leat_acks_is_due(&acks, 1000 * MS));
        assert_int_equal(leat_acks_deadline(&acks), LEAT_TIME_NEVER);
    }
    assert_int_equal(leat_ranges_count(leat_acks_ranges(&acks)), 1);
    assert_range(&acks, 0, 0, 10);
    leat_acks_free(&acks);
}

static void a_single_packet_waits_for_max_ack_delay(void **state)
{
    leat_acks acks;

    (void)state;
    start(&acks);
    got(&acks, 0, 100 * MS);
    assert_false(leat_acks_is_due(&acks, 125 * MS - 1));
    assert_true(leat_acks_is_due(&acks, 125 * MS));
    /* the delay reported is from the arrival of the largest to the writing of the ACK */
    assert_int_equal(leat_acks_delay(&acks, 125 * MS), 25 * MS);
    assert_int_equal(leat_acks_delay(&acks, 99 * MS), 0);
    leat_acks_free(&acks);
}

static void the_initial_and_handshake_spaces_do_not_wait(void **state)
{
    leat_acks acks;

    (void)state;
    leat_acks_init(&acks, mem, 0);
    got(&acks, 0, 5 * MS);
    assert_true(leat_acks_is_due(&acks, 5 * MS));
    leat_acks_free(&acks);
}

static void what_elicits_no_ack_gets_none(void **state)
{
    leat_acks acks;

    (void)state;
    start(&acks);
    for (uint64_t pn = 0; pn < 20; pn += 2) { /* gaps, and CE, and all */
        leat_acks_on_packet(&acks, pn, 0, LEAT_ECN_CE, false);
    }
    assert_false(leat_acks_has_news(&acks));
    assert_false(leat_acks_is_due(&acks, 1000 * MS));
    assert_int_equal(acks.ce, 10);
    leat_acks_free(&acks);
}

static void a_gap_makes_an_ack_due_at_once(void **state)
{
    leat_acks acks;

    (void)state;
    start(&acks);
    got(&acks, 0, 0);
    leat_acks_on_sent(&acks);
    got(&acks, 2, 0);
    assert_true(leat_acks_is_due(&acks, 0));
    leat_acks_on_sent(&acks);
    got(&acks, 3, 0); /* in order again, though 1 is still missing */
    assert_false(leat_acks_is_due(&acks, 0));
    leat_acks_on_sent(&acks);
    got(&acks, 1, 0); /* out of order */
    assert_true(leat_acks_is_due(&acks, 0));
    leat_acks_on_sent(&acks);
    /* 4 elicits nothing; 5 follows it without a gap */
    leat_acks_on_packet(&acks, 4, 0, LEAT_ECN_NOT_ECT, false);
    got(&acks, 5, 0);
    assert_false(leat_acks_is_due(&acks, 0));
    leat_acks_on_sent(&acks);
    /* 7 elicits nothing, but 6 is missing below it when 8 comes */
    leat_acks_on_packet(&acks, 7, 0, LEAT_ECN_NOT_ECT, false);
    assert_false(leat_acks_is_due(&acks, 0));
    got(&acks, 8, 0);
    assert_true(leat_acks_is_due(&acks, 0));
    leat_acks_free(&acks);
}

static void a_first_packet_that_is_not_number_0_is_behind_a_gap(void **state)
{
    leat_acks acks;

    (void)state;
    start(&acks);
    got(&acks, 3, 0);
    assert_true(leat_acks_is_due(&acks, 0));
    leat_acks_free(&acks);
}

static void a_congestion_mark_makes_an_ack_due_at_once(void **state)
{
    leat_acks acks;

    (void)state;
    start(&acks);
    leat_acks_on_packet(&acks, 0, 0, LEAT_ECN_ECT0, true);
    assert_false(leat_acks_is_due(&acks, 0));
    leat_acks_on_sent(&acks);
    leat_acks_on_packet(&acks, 1, 0, LEAT_ECN_CE, true);
    assert_true(leat_acks_is_due(&acks, 0));
    leat_acks_on_packet(&acks, 2, 0, LEAT_ECN_ECT1, true);
    assert_true(leat_acks_has_ecn(&acks));
    assert_int_equal(acks.ect0, 1);
    assert_int_equal(acks.ect1, 1);
    assert_int_equal(acks.ce, 1);
    leat_acks_free(&acks);
}

/* Where ACKs were asked to be few, a run of marks calls for one ACK, not for one each
 * (draft-ietf-quic-ack-frequency-14 s6.3). */
static void of_a_run_of_marks_the_first_makes_an_ack_due(void **state)
{
    leat_acks acks;

    (void)state;
    start(&acks);
    acks.eliciting_threshold = 10;
    leat_acks_on_packet(&acks, 0, 0, LEAT_ECN_CE, true);
    assert_true(leat_acks_is_due(&acks, 0));
    leat_acks_on_sent(&acks);
    leat_acks_on_packet(&acks, 1, 0, LEAT_ECN_CE, true);
    leat_acks_on_packet(&acks, 2, 0, LEAT_ECN_CE, true);
    assert_false(leat_acks_is_due(&acks, 0));
    leat_acks_on_packet(&acks, 3, 0, LEAT_ECN_ECT0, true);
    assert_false(leat_acks_is_due(&acks, 0));
    leat_acks_on_packet(&acks, 4, 0, LEAT_ECN_CE, true);
    assert_true(leat_acks_is_due(&acks, 0));
    leat_acks_on_sent(&acks);
    acks.eliciting_threshold = 2; /* the default: each (RFC 9000 s13.2.1) */
    leat_acks_on_packet(&acks, 5, 0, LEAT_ECN_CE, true);
    assert_true(leat_acks_is_due(&acks, 0));
    leat_acks_free(&acks);
}

static void the_thresholds_can_be_set(void **state)
{
    leat_acks acks;

    (void)state;
    start(&acks);
    acks.eliciting_threshold = 10;
    acks.max_delay = 100 * MS;
    for (uint64_t pn = 0; pn < 9; pn++) {
        got(&acks, pn, 0);
        assert_false(leat_acks_is_due(&acks, 99 * MS));
    }
    got(&acks, 9, 0);
    assert_true(leat_acks_is_due(&acks, 0));
    leat_acks_on_sent(&acks);
    got(&acks, 10, 0);
    leat_acks_set_immediate(&acks);
    assert_true(leat_acks_is_due(&acks, 0));
    assert_int_equal(leat_acks_deadline(&acks), 0);
    leat_acks_free(&acks);
}

/* With a threshold of 3, each arrival, whether it makes an ACK due, and why. */
static void a_reordering_threshold_bears_smaller_gaps(void **state)
{
    static const struct {
        uint64_t pn;
        bool due;
    } steps[] = {
        {0, false},  {1, false},  {3, false},  {4, false}, {5, true}, /* 2 missing, 3 below 5 */
        {8, false},  /* 6 and 7 missing; 2 reported */
        {9, true},   /* 6 is 3 below */
        {10, true},  /* 7 is, and not yet reported */
        {11, false}, /* all reported */
        {7, true},   /* 3 below what was acknowledged: the sender thinks it lost */
        {12, false}, {14, false}, {13, false}, /* late, but not so much */
    };
    leat_acks acks;

    (void)state;
    start(&acks);
    acks.eliciting_threshold = 100;
    acks.reorder_threshold = 3;
    for (size_t i = 0; i < LEAT_COUNT_OF(steps); i++) {
        got(&acks, steps[i].pn, 0);
        assert_int_equal(leat_acks_is_due(&acks, 0), steps[i].due);
        if (steps[i].due) {
            leat_acks_on_sent(&acks);
        }
    }
    acks.reorder_threshold = 0; /* order does not matter at all */
    got(&acks, 50, 0);
    got(&acks, 40, 0);
    assert_false(leat_acks_is_due(&acks, 0));
    leat_acks_free(&acks);
}

static void ranges_are_capped_and_the_newest_kept(void **state)
{
    leat_acks acks;
    const uint64_t n = 3 * LEAT_ACK_RANGES_DEFAULT;

    (void)state;
    start(&acks);
    for (uint64_t i = 0; i < n; i++) {
        got(&acks, 10 * i, 0);
        assert_true(leat_ranges_count(leat_acks_ranges(&acks)) <= LEAT_ACK_RANGES_DEFAULT);
    }
    assert_int_equal(leat_ranges_count(leat_acks_ranges(&acks)), LEAT_ACK_RANGES_DEFAULT);
    assert_int_equal(leat_acks_expected(&acks), 10 * (n - 1) + 1);
    /* what fell out cannot be taken twice */
    for (uint64_t i = 0; i < n; i++) {
        assert_true(leat_acks_is_duplicate(&acks, 10 * i));
    }
    /* a late one between those kept still can be taken, and pushes the lowest out */
    got(&acks, 10 * (n - 3) + 5, 0);
    assert_int_equal(leat_ranges_count(leat_acks_ranges(&acks)), LEAT_ACK_RANGES_DEFAULT);
    assert_range(&acks, 0, 10 * (n - LEAT_ACK_RANGES_DEFAULT + 1),
                 10 * (n - LEAT_ACK_RANGES_DEFAULT + 1) + 1);
    /* one that lies below all finds no room, and is a duplicate afterwards all the same */
    got(&acks, 10 * (n - LEAT_ACK_RANGES_DEFAULT) + 5, 0);
    assert_range(&acks, 0, 10 * (n - LEAT_ACK_RANGES_DEFAULT + 1),
                 10 * (n - LEAT_ACK_RANGES_DEFAULT + 1) + 1);
    leat_acks_free(&acks);
}

static void an_acknowledged_ack_prunes_what_it_told(void **state)
{
    leat_acks acks;

    (void)state;
    start(&acks);
    got(&acks, 0, 0);
    got(&acks, 1, 0);
    got(&acks, 5, 0);
    got(&acks, 6, 0);
    got(&acks, 9, 0);
    leat_acks_on_acked(&acks, 6); /* an ACK that named 6 as its largest */
    leat_acks_check(&acks);
    assert_int_equal(leat_ranges_count(leat_acks_ranges(&acks)), 2);
    assert_range(&acks, 0, 5, 7);
    assert_range(&acks, 1, 9, 10);
    assert_true(leat_acks_is_duplicate(&acks, 0));
    assert_true(leat_acks_is_duplicate(&acks, 3)); /* an RTT late: the peer gave it up */
    assert_false(leat_acks_is_duplicate(&acks, 8));
    leat_acks_on_acked(&acks, 1); /* an older one, acknowledged later */
    leat_acks_on_acked(&acks, 8); /* a number that was never there */
    leat_acks_on_acked(&acks, 100);
    assert_int_equal(leat_ranges_count(leat_acks_ranges(&acks)), 2);
    assert_false(leat_acks_is_duplicate(&acks, 8));
    leat_acks_free(&acks);
}

static void an_idle_space_gives_its_memory_back(void **state)
{
    leat_acks acks;

    (void)state;
    start(&acks);
    for (uint64_t pn = 0; pn < 100; pn += 2) {
        got(&acks, pn, 0);
    }
    assert_true(leat_ranges_held(leat_acks_ranges(&acks)) > 0);
    leat_acks_on_acked(&acks, 98);
    leat_acks_shrink(&acks);
    assert_int_equal(leat_ranges_held(leat_acks_ranges(&acks)), 0);
    assert_range(&acks, 0, 98, 99);
    leat_acks_shrink(&acks);
    got(&acks, 99, 0);
    leat_acks_free(&acks);
}

static void largest_arrival_time_is_that_of_the_largest(void **state)
{
    leat_acks acks;

    (void)state;
    start(&acks);
    got(&acks, 5, 10 * MS);
    got(&acks, 3, 20 * MS);
    assert_int_equal(leat_acks_delay(&acks, 30 * MS), 20 * MS);
    leat_acks_free(&acks);
}

/* Against a plain table of what arrived: nothing is taken twice, what is reported did arrive. */
static void random_arrivals_agree_with_a_table(void **state)
{
    enum { NUMBERS = 3000 };
    uint64_t seed = fixture_seed("random_arrivals", 20261130);

    (void)state;
    for (int round = 0; round < 50; round++) {
        bool arrived[NUMBERS] = {false};
        leat_acks acks;
        leat_prng prng;
        uint64_t next = 0;
        uint64_t spread;

        leat_prng_seed(&prng, seed + (uint64_t)round);
        spread = leat_prng_between(&prng, 1, 60);
        start(&acks);
        while (next < NUMBERS) {
            uint64_t back = leat_prng_below(&prng, spread);
            uint64_t pn = next > back ? next - back : 0;

            if (!leat_acks_is_duplicate(&acks, pn)) {
                assert_false(arrived[pn]);
                arrived[pn] = true;
                leat_acks_on_packet(&acks, pn, next, LEAT_ECN_NOT_ECT,
                                    leat_prng_chance(&prng, 3, 4));
                leat_acks_check(&acks);
                assert_true(leat_acks_is_duplicate(&acks, pn));
            } else {
                /* refused: it arrived, or lies below all that is still known */
                assert_true(arrived[pn] || pn < acks.floor);
            }
            if (leat_acks_is_due(&acks, next)) {
                leat_acks_on_sent(&acks);
                if (leat_prng_chance(&prng, 1, 5)) {
                    leat_acks_on_acked(&acks, leat_acks_expected(&acks) - 1);
                }
            }
            next += leat_prng_below(&prng, 3);
        }
        for (uint32_t i = 0; i < leat_ranges_count(leat_acks_ranges(&acks)); i++) {
            leat_range r = leat_ranges_at(leat_acks_ranges(&acks), i);

            for (uint64_t pn = r.from; pn < r.to; pn++) {
                assert_true(arrived[pn]);
            }
        }
        leat_acks_free(&acks);
    }
}

static int set_up(void **state)
{
    (void)state;
    mem = fixture_mem();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    leat_mem_free(mem);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_received_asks_for_nothing),
        cmocka_unit_test(every_second_ack_eliciting_packet_makes_an_ack_due),
        cmocka_unit_test(a_single_packet_waits_for_max_ack_delay),
        cmocka_unit_test(the_initial_and_handshake_spaces_do_not_wait),
        cmocka_unit_test(what_elicits_no_ack_gets_none),
        cmocka_unit_test(a_gap_makes_an_ack_due_at_once),
        cmocka_unit_test(a_first_packet_that_is_not_number_0_is_behind_a_gap),
        cmocka_unit_test(a_congestion_mark_makes_an_ack_due_at_once),
        cmocka_unit_test(of_a_run_of_marks_the_first_makes_an_ack_due),
        cmocka_unit_test(the_thresholds_can_be_set),
        cmocka_unit_test(a_reordering_threshold_bears_smaller_gaps),
        cmocka_unit_test(ranges_are_capped_and_the_newest_kept),
        cmocka_unit_test(an_acknowledged_ack_prunes_what_it_told),
        cmocka_unit_test(an_idle_space_gives_its_memory_back),
        cmocka_unit_test(largest_arrival_time_is_that_of_the_largest),
        cmocka_unit_test(random_arrivals_agree_with_a_table),
    };

    return cmocka_run_group_tests_name("recovery.acks", tests, set_up, tear_down);
}
