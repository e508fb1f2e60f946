/* tests/cc/test_lab.c: what CI runs of the experiments: the bounds of issue 5 on paths that take
 * seconds. `make cc` runs all of them (docs/CONGESTION.md).
 *
 * Time in an experiment is measured in round trips: a path of 1 Gbit/s and 20 ms has gone through
 * its slow start and its first losses after two seconds, as one of 300 ms has after 30.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/time.h"
#include "lab.h"

#define MBIT UINT64_C(1000000)

static const leat_congestion all[] = {LEAT_CONGESTION_CUBIC, LEAT_CONGESTION_NEWRENO,
                                      LEAT_CONGESTION_BBR};
enum { ALL = sizeof(all) / sizeof(all[0]) };

static double share_of(leat_lab *lab, const char *what)
{
    leat_lab_result result;

    leat_lab_run(lab, &result);
    print_message("%s, %s: %.1f %% of %llu Mbit/s, queue %.0f of %zu bytes, %llu dropped\n", what,
                  leat_congestion_name(lab->flow[0].congestion), result.share * 100,
                  (unsigned long long)(lab->rate / MBIT), result.queue, result.queue_limit,
                  (unsigned long long)result.dropped);
    return result.share;
}

static void fills(uint64_t rate, leat_time rtt, leat_time warm, leat_time end, const char *what)
{
    for (size_t i = 0; i < ALL; i++) {
        leat_lab lab;

        leat_lab_init(&lab);
        lab.rate = rate;
        lab.rtt = rtt;
        lab.warm = warm;
        lab.end = end;
        lab.flow[0].congestion = all[i];
        assert_true(share_of(&lab, what) >= 0.9);
    }
}

static void one_flow_fills_a_slow_path(void **state)
{
    (void)state;
    fills(10 * MBIT, LEAT_MILLISECOND, 10 * LEAT_SECOND, 30 * LEAT_SECOND, "1 ms");
    fills(10 * MBIT, 300 * LEAT_MILLISECOND, 10 * LEAT_SECOND, 30 * LEAT_SECOND, "300 ms");
}

/* The least that shows something where a packet is dear. */
static void one_flow_fills_a_short_path(void **state)
{
    (void)state;
    fills(10 * MBIT, LEAT_MILLISECOND, LEAT_SECOND, 4 * LEAT_SECOND, "1 ms");
}

static void one_flow_fills_a_fast_path(void **state)
{
    (void)state;
    fills(100 * MBIT, 40 * LEAT_MILLISECOND, 5 * LEAT_SECOND, 15 * LEAT_SECOND, "40 ms");
    fills(1000 * MBIT, 20 * LEAT_MILLISECOND, 2 * LEAT_SECOND, 4 * LEAT_SECOND, "20 ms");
}

/* Both have their half, within a tenth of it, when the second begins so much later. */
static void look_at_two(leat_time later)
{
    leat_lab_result result;
    leat_lab lab;
    double first;

    leat_lab_init(&lab);
    lab.rate = 20 * MBIT;
    lab.rtt = 20 * LEAT_MILLISECOND;
    lab.jitter = 200 * LEAT_MICROSECOND;
    lab.flows = 2;
    lab.flow[1].start = later;
    lab.warm = 30 * LEAT_SECOND;
    lab.end = 150 * LEAT_SECOND;
    leat_lab_run(&lab, &result);
    first = result.flow[0].goodput / (result.flow[0].goodput + result.flow[1].goodput);
    print_message("the first has %.1f %% of both, who have %.1f %% of the path\n", first * 100,
                  result.share * 100);
    assert_true(first >= 0.45 && first <= 0.55);
    assert_true(result.share >= 0.9);
}

/* On a path without chance two flows go in lock-step: whose packets the full queue drops hangs on
 * when they began, and stays so for minutes (docs/CONGESTION.md). A fifth of a millisecond of
 * chance ends that, and then each run is fair. */
static void two_cubic_flows_share_alike(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        look_at_two(5 * LEAT_SECOND + i * 37 * LEAT_MILLISECOND);
    }
}

/* Which packets are lost is chance, so it is a mean. */
static double share_with_loss(leat_congestion congestion)
{
    double share = 0;

    for (unsigned seed = 1; seed <= 3; seed++) {
        leat_lab lab;

        leat_lab_init(&lab);
        lab.loss = 10000; /* 1 % */
        lab.seed = seed;
        lab.flow[0].congestion = congestion;
        share += share_of(&lab, "1 % loss") / 3;
    }
    return share;
}

static void bbr_bears_random_loss_and_cubic_does_not(void **state)
{
    (void)state;
    assert_true(share_with_loss(LEAT_CONGESTION_CUBIC) < 0.8);
    assert_true(share_with_loss(LEAT_CONGESTION_BBR) >= 0.8);
}

/* HyStart++: the queue is not full when slow start ends, if there is one to speak of. NewReno,
 * which has no such thing, overruns it. */
static void hystart_spares_the_queue(void **state)
{
    leat_lab_result cubic, newreno;
    leat_lab lab;

    (void)state;
    leat_lab_init(&lab);
    lab.rtt = 200 * LEAT_MILLISECOND;
    lab.queue_bdp = 3;
    lab.warm = LEAT_SECOND;
    lab.end = 3 * LEAT_SECOND;
    leat_lab_run(&lab, &cubic);
    lab.flow[0].congestion = LEAT_CONGESTION_NEWRENO;
    leat_lab_run(&lab, &newreno);
    print_message("dropped in three seconds: cubic %llu, newreno %llu\n",
                  (unsigned long long)cubic.dropped, (unsigned long long)newreno.dropped);
    assert_true(newreno.dropped > 100);
    assert_true(cubic.dropped * 4 < newreno.dropped);
}

static void the_same_experiment_gives_the_same_numbers(void **state)
{
    leat_lab_result a, b;
    leat_lab lab;

    (void)state;
    leat_lab_init(&lab);
    lab.rate = 10 * MBIT;
    lab.loss = 5000;
    lab.warm = LEAT_SECOND;
    lab.end = 4 * LEAT_SECOND;
    lab.flow[0].congestion = LEAT_CONGESTION_BBR;
    leat_lab_run(&lab, &a);
    leat_lab_run(&lab, &b);
    assert_int_equal(a.flow[0].sent, b.flow[0].sent);
    assert_int_equal(a.flow[0].lost, b.flow[0].lost);
    assert_int_equal(a.dropped, b.dropped);
}

/* --quick leaves the fast paths out: sanitizers make them some ten times dearer. */
int main(int argc, char **argv)
{
    const struct CMUnitTest quick[] = {
        cmocka_unit_test(one_flow_fills_a_short_path),
        cmocka_unit_test(the_same_experiment_gives_the_same_numbers),
    };
    const struct CMUnitTest full[] = {
        cmocka_unit_test(one_flow_fills_a_slow_path),
        cmocka_unit_test(one_flow_fills_a_fast_path),
        cmocka_unit_test(two_cubic_flows_share_alike),
        cmocka_unit_test(bbr_bears_random_loss_and_cubic_does_not),
        cmocka_unit_test(hystart_spares_the_queue),
        cmocka_unit_test(the_same_experiment_gives_the_same_numbers),
    };

    if (argc > 1 && strcmp(argv[1], "--quick") == 0) {
        return cmocka_run_group_tests(quick, NULL, NULL);
    }
    return cmocka_run_group_tests(full, NULL, NULL);
}
