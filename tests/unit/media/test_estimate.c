/* leat/estimate.h: the door, its bounds, and the estimator behind it as a whole. */
#include "media_test.h"

#include <leat/estimate.h>
#include <leat/limits.h>

/* ---- a path: packets in, results out, in virtual time ---- */

typedef struct path {
    leat_estimate e;
    leat_time now, free_at; /* when the bottleneck is done with what it has */
    uint64_t rate;          /* of the bottleneck */
    uint64_t seq;
    leat_fb_result waiting[4096];
    size_t count;
    unsigned loss; /* one in so many; 0: none */
    bool times_unknown;
} path;

static void path_init(path *p, uint64_t rate, const leat_estimate_settings *settings)
{
    *p = (path){.now = LEAT_SECOND, .rate = rate};
    assert_int_equal(leat_estimate_init(&p->e, NULL, settings, NULL), LEAT_OK);
}

static void send(path *p, uint32_t size)
{
    leat_fb_result *r = &p->waiting[p->count++];
    bool lost = p->loss && p->seq % p->loss == 0;

    assert_true(p->count < 4096);
    p->free_at = (p->free_at > p->now ? p->free_at : p->now) + size * 8 * LEAT_SECOND / p->rate;
    *r = (leat_fb_result){.seq = p->seq++,
                          .sent = p->now,
                          .arrived = lost ? LEAT_TIME_NEVER : p->free_at + 20 * MS,
                          .size = size,
                          .state = lost ? LEAT_FB_LOST : LEAT_FB_ARRIVED};
    leat_estimate_on_sent(&p->e, p->now, size);
}

/* Feedback on all that has arrived by now less the way back. */
static void feedback(path *p)
{
    size_t n = 0;

    while (n < p->count &&
           (p->waiting[n].state == LEAT_FB_LOST || p->waiting[n].arrived + 20 * MS <= p->now)) {
        n++;
    }
    for (size_t i = 0; p->times_unknown && i + 1 < n; i++) {
        p->waiting[i].arrived = LEAT_TIME_NEVER;
    }
    leat_estimate_on_results(&p->e, p->now, p->waiting, n);
    p->count -= n;
    memmove(p->waiting, p->waiting + n, p->count * sizeof *p->waiting);
}

/* Sends at the lesser of the pacing rate, 1.05 times the target and `most`, with feedback each
 * 50 ms. */
static void run(path *p, leat_time how_long, uint64_t most)
{
    leat_time end = p->now + how_long, next_feedback = p->now + 50 * MS, next_packet = p->now;

    for (; p->now < end; p->now += MS) {
        while (next_packet <= p->now) {
            uint64_t rate = p->e.probing ? p->e.pacing_rate : p->e.target_rate;

            rate = most && rate > most ? most : rate;
            send(p, 1000);
            next_packet += 8000 * LEAT_SECOND / rate;
        }
        if (p->now >= next_feedback) {
            feedback(p);
            next_feedback += 50 * MS;
        }
        leat_estimate_on_time(&p->e, p->now);
    }
}

/* ---- tests ---- */

static void settings_out_of_bounds_are_refused(void **state)
{
    static const leat_estimate_ops no_init = {.name = "none"};
    leat_estimate_settings s;
    leat_estimate e;

    (void)state;
    leat_estimate_settings_init(&s);
    assert_int_equal(leat_estimate_init(&e, NULL, &s, NULL), LEAT_OK);
    assert_int_equal(e.target_rate, LEAT_ESTIMATE_START_DEFAULT);
    assert_int_equal(leat_estimate_init(&e, &no_init, &s, NULL), LEAT_ERR_INVALID);
    s.max_rate = s.start_rate - 1;
    assert_int_equal(leat_estimate_init(&e, NULL, &s, NULL), LEAT_ERR_INVALID);
    leat_estimate_settings_init(&s);
    s.min_rate = 0;
    assert_int_equal(leat_estimate_init(&e, NULL, &s, NULL), LEAT_ERR_INVALID);
    leat_estimate_settings_init(&s);
    s.max_rate = (uint64_t)LEAT_ESTIMATE_MAX_RATE_MAX + 1;
    assert_int_equal(leat_estimate_init(&e, NULL, &s, NULL), LEAT_ERR_INVALID);
}

static void a_free_path_is_found_out_and_kept(void **state)
{
    path p;

    (void)state;
    path_init(&p, 5000000, NULL);
    run(&p, 5 * LEAT_SECOND, 0);
    assert_in_range(p.e.target_rate, 4250000, 5500000);
    run(&p, 30 * LEAT_SECOND, 0);
    assert_in_range(p.e.target_rate, 4000000, 5500000);
}

static void bounds_hold(void **state)
{
    leat_estimate_settings s;
    path p;

    (void)state;
    leat_estimate_settings_init(&s);
    s.max_rate = 1000000;
    s.min_rate = 200000;
    path_init(&p, 5000000, &s);
    run(&p, 5 * LEAT_SECOND, 0);
    assert_int_equal(p.e.target_rate, 1000000);
    p.rate = 50000; /* below the least */
    run(&p, 20 * LEAT_SECOND, 0);
    assert_int_equal(p.e.target_rate, 200000);
    assert_int_equal(leat_estimate_set_bounds(&p.e, 300000, 400000), LEAT_OK);
    assert_int_equal(p.e.target_rate, 300000);
    assert_int_equal(leat_estimate_set_bounds(&p.e, 400000, 300000), LEAT_ERR_INVALID);
    path_init(&p, 5000000, &s); /* and a higher one is made use of */
    run(&p, 5 * LEAT_SECOND, 0);
    assert_int_equal(p.e.target_rate, 1000000);
    assert_int_equal(leat_estimate_set_bounds(&p.e, 200000, 50000000), LEAT_OK);
    run(&p, 10 * LEAT_SECOND, 0);
    assert_true(p.e.target_rate > 4000000);
}

/* CASES.md: the estimate is bounded when the sender is application-limited. */
static void an_application_that_sends_little_bounds_the_estimate(void **state)
{
    leat_estimate_settings s;
    path p;

    (void)state;
    leat_estimate_settings_init(&s);
    path_init(&p, 50000000, &s);
    run(&p, 600 * LEAT_SECOND, 200000);
    assert_in_range(p.e.target_rate, 200000,
                    350000);      /* 1.5 times what a window measured, and 10 kbit/s */
    run(&p, 10 * LEAT_SECOND, 0); /* and what it needs is found at once */
    assert_true(p.e.target_rate > 5000000);
}

static void silence_halves_the_rate_each_second(void **state)
{
    path p;
    uint64_t before;

    (void)state;
    path_init(&p, 5000000, NULL);
    run(&p, 5 * LEAT_SECOND, 0);
    before = p.e.delay_rate;
    for (int i = 0; i < 3000; i++, p.now += MS) {
        if (i % 10 == 0) {
            leat_estimate_on_sent(&p.e, p.now, 1000);
        }
        leat_estimate_on_time(&p.e, p.now);
    }
    assert_in_range(p.e.target_rate, before / 8 - 1, before / 4 + 1);
    assert_true(leat_estimate_deadline(&p.e) <= p.now + LEAT_SECOND);
}

static void nothing_is_due_when_nothing_was_sent(void **state)
{
    leat_estimate e;

    (void)state;
    assert_int_equal(leat_estimate_init(&e, NULL, NULL, NULL), LEAT_OK);
    assert_int_equal(leat_estimate_deadline(&e), LEAT_TIME_NEVER);
    leat_estimate_on_time(&e, 1000 * LEAT_SECOND);
    leat_estimate_on_results(&e, 1000 * LEAT_SECOND, NULL, 0);
    assert_int_equal(e.target_rate, LEAT_ESTIMATE_START_DEFAULT);
}

static void heavy_loss_lowers_the_rate_and_light_loss_does_not(void **state)
{
    path p;

    (void)state;
    path_init(&p, 5000000, NULL);
    p.loss = 67; /* 1.5 % */
    run(&p, 10 * LEAT_SECOND, 0);
    assert_true(p.e.target_rate > 4000000);
    p.loss = 5; /* 20 % */
    run(&p, 5 * LEAT_SECOND, 0);
    assert_true(p.e.target_rate < 2500000);
    assert_true(p.e.loss > 0.15 && p.e.loss < 0.25);
}

/* As QUIC's acknowledgements tell: one arrival time for many packets. */
static void results_without_times_count_all_the_same(void **state)
{
    path p;

    (void)state;
    path_init(&p, 5000000, NULL);
    p.times_unknown = true;
    run(&p, 30 * LEAT_SECOND, 0);
    assert_in_range(p.e.target_rate, 500000, 6000000);
    assert_true(p.e.acked_rate > 0);
}

static leat_fb_result packet_at(unsigned i, bool late)
{
    return (leat_fb_result){.seq = i,
                            .sent = LEAT_SECOND + i * MS,
                            .arrived = LEAT_SECOND + (i + (late ? 60 : 20)) * MS,
                            .size = 1000,
                            .state = LEAT_FB_ARRIVED,
                            .late = late};
}

/* Of a hundred packets, one a millisecond, `lost` of each ten are told of as lost. */
static void tell_hundred(leat_estimate *e, unsigned first, unsigned lost, leat_time now)
{
    leat_fb_result r[100];

    for (unsigned i = 0; i < 100; i++) {
        leat_estimate_on_sent(e, LEAT_SECOND + (first + i) * MS, 1000);
        r[i] = packet_at(first + i, false);
        if (i % 10 < lost) {
            r[i].state = LEAT_FB_LOST;
            r[i].arrived = LEAT_TIME_NEVER;
        }
    }
    leat_estimate_on_results(e, now, r, 100);
}

static void the_round_trip_is_that_of_the_newest_packet_that_came(void **state)
{
    leat_estimate e;

    (void)state;
    assert_int_equal(leat_estimate_init(&e, NULL, NULL, NULL), LEAT_OK);
    tell_hundred(&e, 0, 0, LEAT_SECOND + 150 * MS);
    assert_int_equal(e.rtt, 51 * MS);
}

/* It was told of as lost before: that it took long says nothing of the path's queue. */
static void what_comes_late_makes_no_queue(void **state)
{
    leat_estimate e, other;
    leat_fb_result r[20];
    double trend;

    (void)state;
    assert_int_equal(leat_estimate_init(&e, NULL, NULL, NULL), LEAT_OK);
    for (unsigned i = 0; i < 10; i++) {
        tell_hundred(&e, i * 100, 0, LEAT_SECOND + (i * 100 + 150) * MS);
    }
    other = e;
    trend = e.trend;
    for (unsigned i = 0; i < 20; i++) {
        r[i] = packet_at(995 + i / 5, true); /* of the present group, most of them */
    }
    leat_estimate_on_results(&e, LEAT_SECOND + 1160 * MS, r, 20);
    assert_true(e.trend == trend);
    for (unsigned i = 10; i < 20; i++) {
        tell_hundred(&e, i * 100, 0, LEAT_SECOND + (i * 100 + 150) * MS);
        tell_hundred(&other, i * 100, 0, LEAT_SECOND + (i * 100 + 150) * MS);
    }
    assert_true(e.trend == other.trend);
}

/* A receiver may claim what it likes, and clocks may step back. */
/* Thirty of a hundred are told of as lost, and come before loss is judged. */
static void what_comes_late_is_not_lost_any_more(void **state)
{
    leat_fb_result r[30];
    leat_estimate e;

    (void)state;
    assert_int_equal(leat_estimate_init(&e, NULL, NULL, NULL), LEAT_OK);
    tell_hundred(&e, 0, 3, LEAT_SECOND + 150 * MS);
    for (unsigned i = 0; i < 30; i++) {
        r[i] = packet_at(i / 3 * 10 + i % 3, true);
    }
    leat_estimate_on_results(&e, 5 * LEAT_SECOND, r, 30);
    assert_true(e.loss == 0);
    tell_hundred(&e, 100, 3, 10 * LEAT_SECOND); /* these do not come */
    assert_true(e.loss > 0.29);
}

/* A window of half a second has the first packet's 1000 bytes alone: those behind it came with the
 * last, which ends it. */
static void what_came_at_a_time_unknown_came_when_the_next_one_did(void **state)
{
    leat_fb_result r[42];
    leat_estimate e;

    (void)state;
    assert_int_equal(leat_estimate_init(&e, NULL, NULL, NULL), LEAT_OK);
    for (unsigned i = 0; i < 42; i++) {
        leat_estimate_on_sent(&e, LEAT_SECOND + i * MS, 1000);
        r[i] = packet_at(i, false);
        r[i].arrived = i == 0 ? 2 * LEAT_SECOND : i < 41 ? LEAT_TIME_NEVER : 2500 * MS;
    }
    leat_estimate_on_results(&e, 2600 * MS, r, 42);
    assert_int_equal(e.acked_rate, 16000);
}

static void whatever_results_come_the_bounds_hold(void **state)
{
    seeds s = seeds_start(SLOW_BUILD ? 300 : 3000);

    (void)state;
    for (; s.next <= s.last; s.next++) {
        leat_fb_result r[8];
        leat_estimate e;
        leat_prng prng;
        leat_time now = LEAT_SECOND;

        leat_prng_seed(&prng, s.next);
        assert_int_equal(leat_estimate_init(&e, NULL, NULL, NULL), LEAT_OK);
        for (int i = 0; i < 300; i++) {
            size_t n = leat_prng_below(&prng, 9);
            leat_time spread = (leat_time)1 << leat_prng_below(&prng, 64);

            now += leat_prng_below(&prng, 100 * MS);
            for (size_t j = 0; j < n; j++) {
                bool lost = leat_prng_below(&prng, 4) == 0;

                r[j] = (leat_fb_result){
                    .seq = leat_prng_u64(&prng),
                    .sent = now - leat_prng_below(&prng, spread),
                    .arrived = lost || leat_prng_below(&prng, 4) == 0
                                   ? LEAT_TIME_NEVER
                                   : leat_prng_below(&prng, spread),
                    .size =
                        (uint32_t)leat_prng_below(&prng, (uint64_t)1 << leat_prng_below(&prng, 33)),
                    .state = lost ? LEAT_FB_LOST : LEAT_FB_ARRIVED,
                    .late = !lost && leat_prng_below(&prng, 8) == 0,
                };
                leat_estimate_on_sent(&e, now, r[j].size);
            }
            leat_estimate_on_results(&e, now, r, n);
            leat_estimate_on_time(&e, now);
            assert_seed(e.target_rate >= e.settings.min_rate, s.next);
            assert_seed(e.target_rate <= e.settings.max_rate, s.next);
            assert_seed(e.pacing_rate >= e.target_rate, s.next);
            assert_seed(e.pacing_rate <= 2 * e.settings.max_rate, s.next);
            assert_seed(e.window >= LEAT_ESTIMATE_WINDOW_DEFAULT, s.next);
            assert_seed(e.threshold >= 6 && e.threshold <= 600, s.next);
            assert_seed(e.loss >= 0 && e.loss <= 1, s.next);
        }
    }
}

/* ---- another estimator behind the door ---- */

typedef struct echo {
    uint64_t results;
} echo;

static void echo_init(leat_estimate *e)
{
    echo *x = leat_estimate_state(e);

    assert_int_equal(x->results, 0);
    assert_string_equal(e->user, "user");
    e->target_rate = 1;
}

static void echo_results(leat_estimate *e, leat_time now, const leat_fb_result *r, size_t n)
{
    echo *x = leat_estimate_state(e);

    (void)now;
    (void)r;
    x->results += n;
    e->target_rate = UINT64_MAX;
}

static void another_estimator_may_stand_behind_the_door(void **state)
{
    static const leat_estimate_ops ops = {
        .name = "echo", .state_size = sizeof(echo), .init = echo_init, .on_results = echo_results};
    static char user[] = "user";
    leat_fb_result results[3] = {{.seq = 0}};
    leat_estimate e;

    (void)state;
    assert_int_equal(leat_estimate_init(&e, &ops, NULL, user), LEAT_OK);
    assert_int_equal(e.target_rate, LEAT_ESTIMATE_MIN_RATE_DEFAULT); /* bounds hold */
    leat_estimate_on_sent(&e, 1, 1);
    leat_estimate_on_time(&e, 1);
    leat_estimate_on_results(&e, 1, results, 3);
    assert_int_equal(e.target_rate, LEAT_ESTIMATE_MAX_RATE_DEFAULT);
    assert_true(e.pacing_rate >= e.target_rate);
    assert_int_equal(((echo *)leat_estimate_state(&e))->results, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_out_of_bounds_are_refused),
        cmocka_unit_test(a_free_path_is_found_out_and_kept),
        cmocka_unit_test(bounds_hold),
        cmocka_unit_test(the_round_trip_is_that_of_the_newest_packet_that_came),
        cmocka_unit_test(what_comes_late_makes_no_queue),
        cmocka_unit_test(what_comes_late_is_not_lost_any_more),
        cmocka_unit_test(what_came_at_a_time_unknown_came_when_the_next_one_did),
        cmocka_unit_test(an_application_that_sends_little_bounds_the_estimate),
        cmocka_unit_test(silence_halves_the_rate_each_second),
        cmocka_unit_test(nothing_is_due_when_nothing_was_sent),
        cmocka_unit_test(heavy_loss_lowers_the_rate_and_light_loss_does_not),
        cmocka_unit_test(results_without_times_count_all_the_same),
        cmocka_unit_test(whatever_results_come_the_bounds_hold),
        cmocka_unit_test(another_estimator_may_stand_behind_the_door),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
