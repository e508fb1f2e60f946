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

#include "base/prng.h"
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

/* ---- the real one ---- */

enum { FRAMES_A_SECOND = 30, SAMPLES = FRAMES_A_SECOND * 60, WAITS = 400 };
#define LOOK (3 * LEAT_MILLISECOND)

/* An encoder that follows the estimate, and what came of it. As in tests/cc/ each frame is up to a
 * quarter larger or smaller. */
typedef struct encoder {
    leat_estimate estimate;
    uint64_t most; /* bits a second that it makes of it; 0: all */
    uint32_t frame;
    uint16_t seq;
    leat_prng prng;
    uint64_t target[SAMPLES]; /* by frame */
    size_t waits[WAITS];      /* of the path's queue, by millisecond */
} encoder;

static encoder enc;

/* The path: bits a second, a queue of 300 ms, 40 ms both ways. */
static void begin(uint64_t rate, uint64_t start_rate)
{
    leat_estimate_settings settings;

    enc = (encoder){.seq = 0};
    leat_prng_seed(&enc.prng, 1);
    world_init(&w);
    w.flow_settings.results = false;
    w.flow_settings.mode = LEAT_ROQ_MODE_FRAME;
    world_connect(&w);
    w.pair.rate = rate;
    w.pair.most_wait = 300 * LEAT_MILLISECOND;
    leat_estimate_settings_init(&settings);
    settings.start_rate = start_rate;
    assert_int_equal(leat_estimate_init(&enc.estimate, NULL, &settings, NULL), LEAT_OK);
    leat_roq_set_estimate(w.client, &enc.estimate);
}

/* What waits in the path's queue, looked at every 3 ms. */
static void look_at_queue(leat_time frame)
{
    for (leat_time at = 0; at < frame; at += LOOK) {
        size_t wait =
            w.pair.busy > w.pair.now ? (size_t)((w.pair.busy - w.pair.now) / LEAT_MILLISECOND) : 0;

        enc.waits[wait < WAITS ? wait : WAITS - 1]++;
        world_run(&w, frame - at < LOOK ? frame - at : LOOK);
    }
}

/* Encodes for so many seconds; gives the bits a second that arrived. */
static double encode(unsigned seconds)
{
    uint64_t before = w.got_bytes;

    for (unsigned i = 0; i < seconds * FRAMES_A_SECOND; i++, enc.frame++) {
        uint64_t target = enc.estimate.target_rate;
        uint64_t rate = enc.most && enc.most < target ? enc.most : target;
        size_t size =
            (size_t)(rate / 8 / FRAMES_A_SECOND * leat_prng_between(&enc.prng, 75, 125) / 100);
        size_t count = size / 1000 + 1;

        enc.target[enc.frame] = target;
        for (size_t k = 0; k < count; k++) {
            assert_int_equal(world_send(&w, enc.seq++, enc.frame * 3000, k + 1 == count,
                                        size / count + LEAT_RTP_HEADER),
                             LEAT_OK);
        }
        look_at_queue(LEAT_SECOND / FRAMES_A_SECOND);
        w.got_count = 0;
    }
    return (double)(w.got_bytes - before) * 8 / seconds;
}

/* Milliseconds that the queue stayed below for so many of a hundred looks. */
static unsigned wait_of(unsigned share)
{
    size_t all = 0, below = 0;
    unsigned ms = 0;

    for (size_t i = 0; i < WAITS; i++) {
        all += enc.waits[i];
    }
    while (ms < WAITS && below * 100 < all * share) {
        below += enc.waits[ms++];
    }
    return ms;
}

static uint64_t target_at(unsigned second)
{
    return enc.target[second * FRAMES_A_SECOND];
}

/* 85 % of it within ten seconds from 300 kbit/s, and kept from then on with a short queue. Without
 * padding it would have grown by 8 % a second. */
static void the_estimate_finds_the_rate_of_the_path(void **state)
{
    static const unsigned mbits[] = {1, 2, 3, 10};

    (void)state;
    for (size_t i = 0; i < sizeof mbits / sizeof mbits[0]; i++) {
        double rate = mbits[i] * 1e6, got;
        leat_roq_stats stats;
        unsigned reached = 0;

        begin(mbits[i] * UINT64_C(1000000), 300000);
        encode(10);
        while (reached < enc.frame && (double)enc.target[reached] < 0.85 * rate) {
            reached++;
        }
        memset(enc.waits, 0, sizeof enc.waits);
        got = encode(20);
        leat_roq_flow_stats(w.flow, &stats);
        print_message("%u Mbit/s: 85 %% after %.1f s, %.1f %% arrives, queue %u ms\n", mbits[i],
                      (double)reached / FRAMES_A_SECOND, got / rate * 100, wait_of(95));
        assert_true(reached < 10 * FRAMES_A_SECOND);
        assert_true(got >= 0.85 * rate);
        assert_true(wait_of(95) < 50);
        assert_true(stats.packets_late * 100 < stats.packets_sent);
        world_free(&w);
    }
}

static void the_estimate_is_down_within_a_second_of_a_drop_to_a_third(void **state)
{
    (void)state;
    for (unsigned mbit = 3; mbit <= 9; mbit += 3) {
        uint64_t third = mbit * UINT64_C(1000000) / 3;

        begin(3 * third, 1000000);
        encode(15);
        w.pair.rate = third;
        encode(15);
        print_message("%u Mbit/s: %.2f before the drop, %.2f a second after, %.2f at the end\n",
                      mbit, (double)target_at(15) / 1e6, (double)target_at(16) / 1e6,
                      (double)target_at(29) / 1e6);
        assert_true(target_at(15) > third * 2);
        assert_true(target_at(16) <= third);
        assert_true(target_at(29) > third * 7 / 10);
        world_free(&w);
    }
}

/* An encoder that needs 200 kbit/s only on a path of 10 Mbit/s: it is not asked every five seconds
 * whether there is more, which would cost as much as the media do. */
static void little_media_are_padded_little(void **state)
{
    leat_conn_stats_data before, after;
    double media, sent;

    (void)state;
    begin(10000000, 300000);
    enc.most = 200000;
    encode(5);
    leat_conn_stats(w.pair.conn, &before);
    media = encode(40);
    leat_conn_stats(w.pair.conn, &after);
    sent = (double)(after.bytes_sent - before.bytes_sent) * 8 / 40;
    print_message("%.0f kbit/s of media, %.0f sent, target %.0f\n", media / 1e3, sent / 1e3,
                  (double)enc.estimate.target_rate / 1e3);
    assert_true(sent < 1.2 * media);
    world_free(&w);
}

/* Without probes nothing is padded, and the estimate grows by what the media show alone. */
static void without_probes_nothing_is_padded(void **state)
{
    leat_conn_stats_data before, after;
    double media, sent;

    (void)state;
    begin(10000000, 300000);
    enc.estimate.settings.probe = false;
    leat_conn_stats(w.pair.conn, &before);
    media = encode(10);
    leat_conn_stats(w.pair.conn, &after);
    sent = (double)(after.bytes_sent - before.bytes_sent) * 8 / 10;
    print_message("%.0f kbit/s of media, %.0f sent, target %.0f\n", media / 1e3, sent / 1e3,
                  (double)enc.estimate.target_rate / 1e3);
    assert_true(sent < 1.2 * media);
    assert_in_range(enc.estimate.target_rate, 500000, 1000000);
    world_free(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_estimator_hears_of_each_packet_and_drives_the_connection),
        cmocka_unit_test(the_estimate_finds_the_rate_of_the_path),
        cmocka_unit_test(the_estimate_is_down_within_a_second_of_a_drop_to_a_third),
        cmocka_unit_test(little_media_are_padded_little),
        cmocka_unit_test(without_probes_nothing_is_padded),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
