/* tests/cli/test_compare.c: are the verdicts of `leat compare` right? Synthetic timings with a
 * known effect, and with none, thousands of experiments each; and what it reads of JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "compare_run.h"
#include "compare_stats.h"

enum { EXPERIMENTS = 4000, ROUNDS = 15 };

static leat_prng prng;

static double uniform(void)
{
    return (double)(leat_prng_u64(&prng) >> 11) / 9007199254740992.0;
}

static double normal(void)
{
    double sum = 0;

    for (int i = 0; i < 12; i++) {
        sum += uniform();
    }
    return sum - 6;
}

/* How a run's time strays: a machine that drifts by the round, small noise, and now and then a run
 * that is much too slow. */
static double run_time(double true_time, double drift, double spread)
{
    double t = true_time * drift * exp(spread * normal());

    return uniform() < 0.05 ? t * (1 + 3 * uniform()) : t;
}

/* One experiment: verdict on a build that takes `effect` times as long as the base. */
static leat_compare_verdict experiment(double effect, double spread, size_t rounds, bool rate)
{
    double own[ROUNDS], again[ROUNDS], drift = 1;
    leat_compare_result result;

    for (size_t i = 0; i < rounds; i++) {
        double base, candidate;

        drift *= exp(0.05 * normal());
        base = run_time(1, drift, spread);
        candidate = run_time(effect, drift, spread);
        again[i] = run_time(1, drift, spread) / base;
        own[i] = candidate / base;
        if (rate) {
            own[i] = 1 / own[i];
            again[i] = 1 / again[i];
        }
    }
    leat_compare_judge(own, rounds, again, rounds, rate, &result);
    return result.verdict;
}

static void count(double effect, double spread, size_t rounds, bool rate, unsigned counts[3])
{
    memset(counts, 0, 3 * sizeof(counts[0]));
    for (int i = 0; i < EXPERIMENTS; i++) {
        counts[experiment(effect, spread, rounds, rate)]++;
    }
}

/* Where there is no difference, a verdict is wrong in at most 5 of 100, as the confidence says. */
static void no_effect_is_rarely_called_one(void **state)
{
    (void)state;
    for (size_t rounds = LEAT_COMPARE_ROUNDS_MIN; rounds <= ROUNDS; rounds++) {
        unsigned counts[3];

        count(1, 0.01, rounds, false, counts);
        assert_true(counts[LEAT_COMPARE_SAME] >= 0.95 * EXPERIMENTS);
    }
}

/* An effect of several times the noise is seen nearly always, and never the wrong way round. */
static void a_clear_effect_is_seen(void **state)
{
    unsigned counts[3];

    (void)state;
    count(0.95, 0.01, ROUNDS, false, counts);
    assert_true(counts[LEAT_COMPARE_BETTER] >= 0.95 * EXPERIMENTS);
    assert_int_equal(counts[LEAT_COMPARE_WORSE], 0);
    count(1.05, 0.01, ROUNDS, false, counts);
    assert_true(counts[LEAT_COMPARE_WORSE] >= 0.95 * EXPERIMENTS);
    assert_int_equal(counts[LEAT_COMPARE_BETTER], 0);
    count(0.95, 0.01, ROUNDS, true, counts); /* as a rate */
    assert_true(counts[LEAT_COMPARE_BETTER] >= 0.95 * EXPERIMENTS);
    assert_int_equal(counts[LEAT_COMPARE_WORSE], 0);
}

/* What drowns in noise is not claimed. */
static void an_effect_below_the_noise_is_not_claimed(void **state)
{
    unsigned counts[3];

    (void)state;
    count(0.998, 0.03, 9, false, counts);
    assert_true(counts[LEAT_COMPARE_SAME] >= 0.95 * EXPERIMENTS);
}

/* The interval holds the true median as often as it says. */
static void the_interval_covers_what_it_claims(void **state)
{
    (void)state;
    for (size_t n = LEAT_COMPARE_ROUNDS_MIN; n <= 40; n++) {
        size_t low, high, inside = 0;
        double coverage = leat_compare_interval(n, &low, &high);
        double values[40];

        assert_true(coverage >= LEAT_COMPARE_CONFIDENCE && coverage < 1);
        for (int e = 0; e < EXPERIMENTS; e++) {
            size_t below = 0;

            for (size_t i = 0; i < n; i++) {
                values[i] = uniform(); /* true median 0.5 */
                below += values[i] < 0.5;
            }
            /* The low-th smallest lies below 0.5 when more than `low` do, the high-th above when
             * not too many do. */
            inside += below > low && below <= high;
        }
        assert_true(fabs((double)inside / EXPERIMENTS - coverage) < 0.02);
    }
}

/* Worked by hand: of 9 values the 2nd and 8th, 1 - 2 * (1 + 9) / 512. */
static void intervals_of_small_counts(void **state)
{
    size_t low, high;

    (void)state;
    assert_true(fabs(leat_compare_interval(9, &low, &high) - 0.9609375) < 1e-12);
    assert_int_equal(low, 1);
    assert_int_equal(high, 7);
    assert_true(fabs(leat_compare_interval(6, &low, &high) - 0.96875) < 1e-12);
    assert_int_equal(low, 0);
    assert_int_equal(high, 5);
    assert_true(leat_compare_interval(5, &low, &high) == 0);
}

static void too_few_rounds_give_no_verdict(void **state)
{
    double own[] = {0.5, 0.5, 0.5, 0.5, 0.5}, again[] = {1, 1, 1, 1, 1};
    leat_compare_result result;

    (void)state;
    leat_compare_judge(own, 5, again, 5, false, &result);
    assert_true(result.coverage == 0);
    assert_int_equal(result.verdict, LEAT_COMPARE_SAME);
    assert_true(result.median == 0.5);
}

static void missing_rounds_are_left_out(void **state)
{
    double own[] = {0.5, NAN, 0.5, 0.5, NAN, 0.5, 0.5, 0.5}, again[] = {1, 1, 1, 1, 1, 1, 1, 1};
    leat_compare_result result;

    (void)state;
    leat_compare_judge(own, 8, again, 8, false, &result);
    assert_int_equal(result.rounds, 6);
    assert_int_equal(result.better, 6);
    assert_int_equal(result.verdict, LEAT_COMPARE_BETTER);
}

/* Counts: none against some is a difference, however many, and none against none is not. */
static void none_against_some_is_a_verdict(void **state)
{
    leat_compare_result result;

    (void)state;
    for (int i = 0; i < 3; i++) {
        static const leat_compare_verdict verdicts[] = {LEAT_COMPARE_BETTER, LEAT_COMPARE_SAME,
                                                        LEAT_COMPARE_WORSE};
        static const double ratios[] = {0, 1, INFINITY};
        double own[8], again[] = {1, 1, 1, 1, 1, 1, 1, 1};

        for (int k = 0; k < 8; k++) {
            own[k] = ratios[i];
        }
        leat_compare_judge(own, 8, again, 8, false, &result);
        assert_int_equal(result.rounds, 8);
        assert_true(result.median == ratios[i]);
        assert_int_equal(result.verdict, verdicts[i]);
        for (int k = 0; k < 8; k++) {
            own[k] = ratios[i];
        }
        for (int k = 0; k < 4; k++) { /* the base is not at one with itself */
            again[k] = INFINITY;
        }
        leat_compare_judge(own, 8, again, 8, false, &result);
        assert_int_equal(result.verdict, LEAT_COMPARE_SAME);
    }
}

/* ---- JSON ---- */

static bool numbers(const char *text, leat_compare_run *run)
{
    run->count = 0;
    return leat_compare_numbers(text, strlen(text), run);
}

static void numbers_are_found_by_their_path(void **state)
{
    leat_compare_run run;

    (void)state;
    assert_true(
        numbers("{\"a\": 1, \"b\": {\"c\": -2.5e3, \"d\": [7, {\"e\": 8}]}, \"f\": \"x\\\"y\", "
                "\"g\": true, \"h\": null}\n",
                &run));
    assert_int_equal(run.count, 4);
    assert_string_equal(run.metrics[0].name, "a");
    assert_string_equal(run.metrics[1].name, "b.c");
    assert_true(run.metrics[1].value == -2500);
    assert_string_equal(run.metrics[2].name, "b.d.0");
    assert_string_equal(run.metrics[3].name, "b.d.1.e");
}

static void members_of_an_array_go_by_their_names(void **state)
{
    leat_compare_run run;

    (void)state;
    assert_true(numbers("{\"results\": [{\"name\": \"push, pop\", \"ns\": 1}, {\"ns\": 2, "
                        "\"name\": \"late\"}, {\"name\": 3}, { \"name\" : \"x\" }]}",
                        &run));
    assert_int_equal(run.count, 3);
    assert_string_equal(run.metrics[0].name, "results.push, pop.ns");
    assert_string_equal(run.metrics[1].name, "results.1.ns");
    assert_string_equal(run.metrics[2].name, "results.2.name");
}

static void what_is_no_json_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "{",
                                      "{\"a\"}",
                                      "{\"a\": }",
                                      "[1,",
                                      "[1 2]",
                                      "x",
                                      "{\"a\": 1} x",
                                      "\"",
                                      "{\"a\\",
                                      "tru",
                                      "1e",
                                      "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["};
    leat_compare_run run;

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        /* A copy of just that size, so that a read past its end is seen. */
        size_t len = strlen(bad[i]);
        char *copy = malloc(len + 1);

        assert_non_null(copy);
        memcpy(copy, bad[i], len);
        run.count = 0;
        if (leat_compare_numbers(copy, len, &run)) {
            fail_msg("accepted: %s", bad[i]);
        }
        free(copy);
    }
}

static void the_first_of_a_name_stands(void **state)
{
    leat_compare_run run = {.count = 0};

    (void)state;
    leat_compare_add(&run, "max_rss_kib", 100);
    assert_true(leat_compare_numbers("{\"max_rss_kib\": 90, \"ns\": 1, \"ns\": 2}", 37, &run));
    assert_int_equal(run.count, 2);
    assert_string_equal(run.metrics[0].name, "max_rss_kib");
    assert_true(run.metrics[0].value == 100);
    assert_string_equal(run.metrics[1].name, "ns");
    assert_true(run.metrics[1].value == 1);
}

static void metrics_past_the_room_are_left_out(void **state)
{
    static leat_compare_run run;
    char name[16];

    (void)state;
    for (unsigned i = 0; i < LEAT_COMPARE_METRICS + 2; i++) {
        snprintf(name, sizeof(name), "m%u", i);
        leat_compare_add(&run, name, i);
    }
    assert_int_equal(run.count, LEAT_COMPARE_METRICS);
    assert_true(run.metrics[LEAT_COMPARE_METRICS - 1].value == LEAT_COMPARE_METRICS - 1);
}

static void rates_are_known_by_their_names(void **state)
{
    (void)state;
    assert_true(leat_compare_higher_is_better("ops_per_s"));
    assert_true(leat_compare_higher_is_better("bulk.gbit_s"));
    assert_false(leat_compare_higher_is_better("ns_per_op"));
    assert_false(leat_compare_higher_is_better("wall_seconds"));
    assert_false(leat_compare_higher_is_better("allocs_per_op"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_effect_is_rarely_called_one),
        cmocka_unit_test(a_clear_effect_is_seen),
        cmocka_unit_test(an_effect_below_the_noise_is_not_claimed),
        cmocka_unit_test(the_interval_covers_what_it_claims),
        cmocka_unit_test(intervals_of_small_counts),
        cmocka_unit_test(too_few_rounds_give_no_verdict),
        cmocka_unit_test(missing_rounds_are_left_out),
        cmocka_unit_test(none_against_some_is_a_verdict),
        cmocka_unit_test(members_of_an_array_go_by_their_names),
        cmocka_unit_test(numbers_are_found_by_their_path),
        cmocka_unit_test(what_is_no_json_is_refused),
        cmocka_unit_test(the_first_of_a_name_stands),
        cmocka_unit_test(metrics_past_the_room_are_left_out),
        cmocka_unit_test(rates_are_known_by_their_names),
    };

    leat_prng_seed(&prng, 20261130); /* the same experiments each time */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
