/* tests/cc/test_estimate.c: the bandwidth estimate over a bottleneck in virtual time: alone on the
 * link, when the link gets slower and faster, with little to send, and beside a CUBIC flow.
 *
 * Time is virtual and chance comes from seeds: the figures are the same each time.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "lab.h"

enum { SAMPLES = 4000 };

static struct {
    leat_lab_sample at[SAMPLES];
    size_t count;
} tape;

static void record(void *user, const leat_lab_sample *sample)
{
    (void)user;
    assert_true(tape.count < SAMPLES);
    tape.at[tape.count++] = *sample;
}

static leat_lab media_on(unsigned mbit, unsigned rtt_ms, uint64_t seed)
{
    leat_lab lab;

    leat_lab_init(&lab);
    lab.flows = 0;
    lab.media = true;
    lab.rate = mbit * UINT64_C(1000000);
    lab.rtt = rtt_ms * LEAT_MILLISECOND;
    lab.queue_bdp = 3;
    lab.end = 60 * LEAT_SECOND;
    lab.seed = seed;
    lab.sample = record;
    tape.count = 0;
    return lab;
}

static const leat_lab_sample *sample_at(leat_time at)
{
    for (size_t i = 0; i < tape.count; i++) {
        if (tape.at[i].at >= at) {
            return &tape.at[i];
        }
    }
    fail();
    return NULL;
}

static void alone_it_takes_the_link_and_keeps_the_queue_short(void **state)
{
    static const unsigned rates[] = {1, 3, 10}, rtts[] = {20, 40, 100};

    (void)state;
    for (unsigned i = 0; i < 9; i++) {
        unsigned mbit = rates[i % 3], rtt = rtts[i / 3];

        for (uint64_t seed = 1; seed <= 5; seed++) {
            leat_lab lab = media_on(mbit, rtt, seed);
            leat_lab_result result;
            leat_time reached = 0;

            leat_lab_run(&lab, &result);
            while (sample_at(reached)->media.target < 0.85 * (double)lab.rate) {
                reached += lab.interval;
            }
            print_message(
                "%u Mbit/s, %u ms, seed %u: %.1f %%, reached after %.1f s, delay %.1f ms\n", mbit,
                rtt, (unsigned)seed, result.media_goodput / (double)lab.rate * 100,
                (double)reached / 1e9, (double)result.media_delay95 / 1e6);
            assert_true(reached <= 10 * LEAT_SECOND);
            assert_true(result.media_goodput >= 0.85 * (double)lab.rate);
            assert_true(result.media_delay95 < 50 * LEAT_MILLISECOND);
        }
    }
}

static void it_is_down_within_a_second_of_a_drop_to_a_third(void **state)
{
    static const unsigned rates[] = {3, 9};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        for (uint64_t seed = 1; seed <= 10; seed++) {
            leat_lab lab = media_on(rates[i], 40, seed);
            leat_lab_result result;

            lab.change_at = 30 * LEAT_SECOND;
            lab.change_rate = lab.rate / 3;
            leat_lab_run(&lab, &result);
            print_message("%u Mbit/s, seed %u: target %.3f a second after\n", rates[i],
                          (unsigned)seed, sample_at(31 * LEAT_SECOND)->media.target / 1e6);
            assert_true(sample_at(30 * LEAT_SECOND)->media.target > 0.7 * (double)lab.rate);
            assert_true(sample_at(31 * LEAT_SECOND)->media.target <= (double)lab.change_rate);
            assert_true(sample_at(59 * LEAT_SECOND)->media.target > 0.7 * (double)lab.change_rate);
        }
    }
}

static void a_link_that_gets_faster_is_found_out(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        leat_lab lab = media_on(1, 40, seed);
        leat_lab_result result;

        lab.change_at = 20 * LEAT_SECOND;
        lab.change_rate = 3000000;
        leat_lab_run(&lab, &result);
        assert_true(sample_at(40 * LEAT_SECOND)->media.target > 0.7 * 3000000);
    }
}

/* CASES.md: the estimate is bounded when the sender is application-limited. */
static void with_little_to_send_the_estimate_stays_near_it(void **state)
{
    leat_lab lab = media_on(10, 40, 1);
    leat_lab_result result;

    (void)state;
    lab.media_most = 200000;
    lab.end = 300 * LEAT_SECOND;
    leat_lab_run(&lab, &result);
    assert_true(result.media_target < 2.5 * 200000); /* of media, without their headers */
    assert_true(result.media_target >= 200000);
}

static void beside_a_cubic_flow_it_keeps_a_fifth(void **state)
{
    static const unsigned rates[] = {3, 10};

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        for (uint64_t seed = 1; seed <= 3; seed++) {
            leat_lab lab = media_on(rates[i % 2], 40, seed);
            leat_lab_result result;
            double share;

            lab.queue_bdp = i / 2 ? 3 : 1;
            lab.flows = 1;
            lab.flow[0].congestion = LEAT_CONGESTION_CUBIC;
            lab.end = 120 * LEAT_SECOND;
            leat_lab_run(&lab, &result);
            share = result.media_goodput / (result.media_goodput + result.flow[0].goodput);
            print_message("%u Mbit/s, %.0f BDP, seed %u: %.1f %%\n", rates[i % 2], lab.queue_bdp,
                          (unsigned)seed, share * 100);
            assert_true(share >= 0.2);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_it_takes_the_link_and_keeps_the_queue_short),
        cmocka_unit_test(it_is_down_within_a_second_of_a_drop_to_a_third),
        cmocka_unit_test(a_link_that_gets_faster_is_found_out),
        cmocka_unit_test(with_little_to_send_the_estimate_stays_near_it),
        cmocka_unit_test(beside_a_cubic_flow_it_keeps_a_fifth),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
