/* tests/unit/roq/test_rate.c: an estimator that drives the connection: one of the test's, which
 * sees what it is told, and the real one on a path with a rate.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <leat/estimate.h>

#include "roq/roq.h"
#include "world.h"

static world w;

/* What the test's estimator was told. */
typedef struct seen {
    size_t sent, arrived, lost, timed, ticks;
    uint64_t sent_bytes, result_bytes;
    uint64_t seq;   /* the last result's, in its call */
    leat_time last; /* what was sent last */
} seen;

static void fake_init(leat_estimate *e)
{
    e->target_rate = 1000000;
    e->pacing_rate = 2000000;
    e->window = 40000;
    e->deadline = LEAT_TIME_NEVER;
}

static void fake_sent(leat_estimate *e, leat_time now, uint32_t size)
{
    seen *s = e->user;

    assert_true(now >= s->last);
    s->last = now;
    s->sent++;
    s->sent_bytes += size;
    if (e->deadline == LEAT_TIME_NEVER) {
        e->deadline = now + 50 * LEAT_MILLISECOND;
    }
}

static void fake_results(leat_estimate *e, leat_time now, const leat_fb_result *results, size_t n)
{
    seen *s = e->user;

    for (size_t i = 0; i < n; i++) {
        assert_true(i == 0 || results[i].seq > results[i - 1].seq);
        assert_true(results[i].sent <= now);
        s->arrived += results[i].state == LEAT_FB_ARRIVED;
        s->lost += results[i].state == LEAT_FB_LOST;
        s->timed += results[i].arrived != LEAT_TIME_NEVER;
        s->result_bytes += results[i].size;
    }
    e->target_rate += 1000;
    e->window += 1;
}

static void fake_time(leat_estimate *e, leat_time now)
{
    ((seen *)e->user)->ticks++;
    e->deadline = now + 50 * LEAT_MILLISECOND;
}

static const leat_estimate_ops fake = {.name = "fake",
                                       .init = fake_init,
                                       .on_sent = fake_sent,
                                       .on_results = fake_results,
                                       .on_time = fake_time};

static void send_some(unsigned frames)
{
    for (unsigned i = 0; i < frames; i++) {
        for (unsigned k = 0; k < 3; k++) {
            assert_int_equal(world_send(&w, (uint16_t)(i * 3 + k), i * 3000, k == 2, 1000),
                             LEAT_OK);
        }
        world_run(&w, LEAT_SECOND / 30);
    }
}

static void an_estimator_hears_of_each_packet_and_drives_the_connection(void **state)
{
    leat_conn_stats_data before, after, own;
    leat_estimate e;
    seen s = {.sent = 0};

    (void)state;
    world_init(&w);
    world_connect(&w);
    leat_conn_stats(w.pair.conn, &before);
    assert_int_equal(leat_estimate_init(&e, &fake, NULL, &s), LEAT_OK);
    leat_roq_set_estimate(w.client, &e);
    leat_conn_stats(w.pair.conn, &own);
    assert_int_equal(own.cwnd, 40000);
    w.drop_nth = 20;
    send_some(60);
    w.drop_nth = 0;
    world_run(&w, 500 * LEAT_MILLISECOND);
    leat_conn_stats(w.pair.conn, &after);
    assert_true(s.sent >= 180);
    assert_int_equal(s.arrived + s.lost, s.sent);
    assert_int_equal(s.result_bytes, s.sent_bytes);
    assert_int_equal(s.lost, after.packets_lost - before.packets_lost);
    assert_true(s.lost > 0);
    assert_true(s.timed > 50 && s.timed <= s.arrived);
    assert_true(s.ticks >= 30);
    assert_int_equal(after.cwnd, e.window);
    assert_int_equal(w.estimate, e.target_rate);
    assert_true(w.estimates > 10);
    leat_roq_set_estimate(w.client, NULL);
    leat_conn_stats(w.pair.conn, &after);
    assert_true(after.cwnd != e.window); /* its own controller again, from the start */
    send_some(3);
    world_run(&w, 500 * LEAT_MILLISECOND);
    assert_int_equal(w.estimate, e.target_rate);
    world_free(&w);
}

/* An encoder that follows the estimate on a path of 2 Mbit/s, from 1 Mbit/s on: after ten seconds
 * most of it is used, and nearly nothing is late. */
static void the_estimate_finds_the_rate_of_the_path(void **state)
{
    leat_estimate_settings settings;
    leat_estimate e;
    uint16_t seq = 0;
    uint64_t bytes = 0;
    leat_roq_stats stats;

    (void)state;
    world_init(&w);
    w.flow_settings.results = false;
    world_connect(&w);
    w.pair.rate = 2000000;
    w.pair.most_wait = 300 * LEAT_MILLISECOND;
    leat_estimate_settings_init(&settings);
    settings.start_rate = 1000000;
    assert_int_equal(leat_estimate_init(&e, NULL, &settings, NULL), LEAT_OK);
    leat_roq_set_estimate(w.client, &e);
    for (unsigned i = 0; i < 450; i++) {
        size_t frame = (size_t)(e.target_rate / 8 / 30);
        size_t count = frame / 1000 + 1;

        if (i == 300) {
            bytes = w.got_bytes;
        }
        for (size_t k = 0; k < count; k++, seq++) {
            assert_int_equal(world_send(&w, seq, i * 3000, k + 1 == count, frame / count + 12),
                             LEAT_OK);
        }
        world_run(&w, LEAT_SECOND / 30);
        w.got_count = 0;
    }
    leat_roq_flow_stats(w.flow, &stats);
    bytes = w.got_bytes - bytes;
    assert_in_range(bytes * 8 / 5, 1200000, 2000000); /* of the last five seconds */
    assert_true(stats.packets_late * 20 < stats.packets_sent);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_estimator_hears_of_each_packet_and_drives_the_connection),
        cmocka_unit_test(the_estimate_finds_the_rate_of_the_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
