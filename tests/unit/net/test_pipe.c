/* The in-memory link: each thing that it does to a datagram, and that a seed replays it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "net/link.h"

static leat_mem *mem;

static int make_mem(void **state)
{
    (void)state;
    return leat_mem_new(NULL, &mem) == LEAT_OK ? 0 : -1;
}

/* Everything must have come back; after a test that failed half-way it has not. */
static int free_mem(void **state)
{
    (void)state;
    leat_mem_stats stats;
    leat_mem_stats_get(mem, &stats);
    if (stats.buf_live != 0 || stats.obj_live != 0) {
        return -1;
    }
    leat_mem_free(mem);
    return 0;
}

/* Sends n bytes that begin with a number. */
static void send_number(leat_pipe *pipe, leat_time now, uint32_t number, size_t n)
{
    leat_dgram dgram = {.src = {.family = 4, .port = 1}, .dst = {.family = 4, .port = 2}};
    dgram.ecn = LEAT_ECN_ECT0;
    assert_true(n >= sizeof(number));
    assert_int_equal(leat_buf_take(mem, n, &dgram.buf), LEAT_OK);
    memset(dgram.buf.data, 0, n);
    memcpy(dgram.buf.data, &number, sizeof(number));
    leat_pipe_send(pipe, now, &dgram);
    assert_null(dgram.buf.block);
    leat_pipe_check(pipe);
}

/* Receives one datagram and returns its number, or -1; tells its length and ECN when asked. */
static int64_t recv_number(leat_pipe *pipe, leat_time now, size_t *len, uint8_t *ecn)
{
    leat_dgram dgram;
    uint32_t number = 0;
    if (!leat_pipe_recv(pipe, now, &dgram)) {
        return -1;
    }
    leat_pipe_check(pipe);
    if (dgram.buf.len >= sizeof(number)) {
        memcpy(&number, dgram.buf.data, sizeof(number));
    }
    if (len != NULL) {
        *len = dgram.buf.len;
    }
    if (ecn != NULL) {
        *ecn = dgram.ecn;
    }
    leat_buf_release(&dgram.buf);
    return number;
}

static int64_t recv_plain(leat_pipe *pipe, leat_time now)
{
    return recv_number(pipe, now, NULL, NULL);
}

static void plain_pipe_delivers_at_once_and_in_order(void **state)
{
    (void)state;
    leat_pipe pipe;
    leat_pipe_init(&pipe, mem, NULL, 1);
    assert_int_equal(leat_pipe_deadline(&pipe), LEAT_TIME_NEVER);
    for (uint32_t i = 0; i < 3; i++) {
        send_number(&pipe, 5, i, 100);
    }
    assert_int_equal(leat_pipe_deadline(&pipe), 5);
    assert_int_equal(leat_pipe_count(&pipe), 3);
    leat_dgram dgram;
    assert_true(leat_pipe_recv(&pipe, 5, &dgram));
    assert_int_equal(dgram.src.port, 1);
    assert_int_equal(dgram.dst.port, 2);
    assert_int_equal(dgram.buf.len, 100);
    leat_buf_release(&dgram.buf);
    assert_int_equal(recv_plain(&pipe, 5), 1);
    assert_int_equal(recv_plain(&pipe, 5), 2);
    assert_int_equal(recv_plain(&pipe, 5), -1);
    leat_pipe_free(&pipe);
}

static void delay_holds_each_for_its_time(void **state)
{
    (void)state;
    leat_pipe pipe;
    leat_pipe_settings s = {.delay = 50};
    leat_pipe_init(&pipe, mem, &s, 1);
    send_number(&pipe, 100, 1, 10);
    send_number(&pipe, 110, 2, 10);
    assert_int_equal(leat_pipe_deadline(&pipe), 150);
    assert_int_equal(recv_plain(&pipe, 149), -1);
    assert_int_equal(recv_plain(&pipe, 150), 1);
    assert_int_equal(recv_plain(&pipe, 150), -1);
    assert_int_equal(leat_pipe_deadline(&pipe), 160);
    assert_int_equal(recv_plain(&pipe, 1000), 2);
    leat_pipe_free(&pipe);
}

static void rate_spaces_datagrams(void **state)
{
    (void)state;
    leat_pipe pipe;
    leat_pipe_settings s = {.rate = 8000000, .delay = 7}; /* a byte a microsecond */
    leat_pipe_init(&pipe, mem, &s, 1);
    send_number(&pipe, 0, 1, 100);
    send_number(&pipe, 0, 2, 200);
    send_number(&pipe, 500000, 3, 10); /* the pipe has been idle since 300 us */
    assert_int_equal(leat_pipe_deadline(&pipe), 100007);
    assert_int_equal(recv_plain(&pipe, 100007), 1);
    assert_int_equal(leat_pipe_deadline(&pipe), 300007);
    assert_int_equal(recv_plain(&pipe, 300007), 2);
    assert_int_equal(leat_pipe_deadline(&pipe), 510007);
    leat_pipe_free(&pipe);
}

static void full_queue_drops_the_newest(void **state)
{
    (void)state;
    leat_pipe pipe;
    leat_pipe_settings s = {.rate = 8000000, .queue = 250};
    leat_pipe_init(&pipe, mem, &s, 1);
    for (uint32_t i = 0; i < 5; i++) {
        send_number(&pipe, 0, i, 100);
    }
    assert_int_equal(pipe.stats.overflowed, 3);
    send_number(&pipe, 100000, 5, 100); /* one is through: room again */
    assert_int_equal(recv_plain(&pipe, LEAT_SECOND), 0);
    assert_int_equal(recv_plain(&pipe, LEAT_SECOND), 1);
    assert_int_equal(recv_plain(&pipe, LEAT_SECOND), 5);
    assert_int_equal(recv_plain(&pipe, LEAT_SECOND), -1);
    leat_pipe_free(&pipe);
}

static void datagram_larger_than_an_idle_queue_passes(void **state)
{
    (void)state;
    leat_pipe pipe;
    leat_pipe_settings s = {.rate = 8000000, .queue = 50};
    leat_pipe_init(&pipe, mem, &s, 1);
    send_number(&pipe, 0, 1, 100);
    send_number(&pipe, 0, 2, 100);
    assert_int_equal(recv_plain(&pipe, LEAT_SECOND), 1);
    assert_int_equal(recv_plain(&pipe, LEAT_SECOND), -1);
    leat_pipe_free(&pipe);
}

static void long_queue_marks_and_bleaching_clears(void **state)
{
    (void)state;
    leat_pipe pipe;
    leat_pipe_settings s = {.rate = 8000000, .mark = 150};
    uint8_t ecn;
    leat_pipe_init(&pipe, mem, &s, 1);
    const uint8_t expected[] = {LEAT_ECN_ECT0, LEAT_ECN_ECT0, LEAT_ECN_CE};
    for (uint32_t i = 0; i < 3; i++) {
        send_number(&pipe, 0, i, 100);
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(recv_number(&pipe, LEAT_SECOND, NULL, &ecn), i);
        assert_int_equal(ecn, expected[i]);
    }
    s = (leat_pipe_settings){.bleach = true};
    leat_pipe_set(&pipe, &s);
    send_number(&pipe, LEAT_SECOND, 4, 100);
    assert_int_equal(recv_number(&pipe, LEAT_SECOND, NULL, &ecn), 4);
    assert_int_equal(ecn, LEAT_ECN_NOT_ECT);
    leat_pipe_free(&pipe);
}

/* RFC 8289: a queue that stays above the target for an interval loses one, and then one each
 * interval/sqrt(n): 26 in the 870 ms that are left of a second, by that rule. */
static void codel_drops_ever_more_often_while_the_queue_stands(void **state)
{
    (void)state;
    leat_pipe pipe;
    leat_pipe_settings s = {.rate = 8000000, .codel = 5 * LEAT_MILLISECOND};
    leat_pipe_init(&pipe, mem, &s, 1);
    for (uint32_t i = 0; i < 500; i++) { /* half of what the rate carries: no queue */
        send_number(&pipe, i * 2 * LEAT_MILLISECOND, i, 1000);
    }
    assert_int_equal(pipe.stats.codel, 0);
    for (uint32_t i = 0; i < 1000; i++) { /* twice of it, until a second's worth has passed */
        send_number(&pipe, LEAT_SECOND + i * LEAT_MILLISECOND / 2, i, 1000);
    }
    assert_in_range(pipe.stats.codel, 22, 30);
    assert_int_equal(pipe.stats.overflowed, 0);
    leat_pipe_free(&pipe);
}

static void mtu_drops_what_is_larger(void **state)
{
    (void)state;
    leat_pipe pipe;
    leat_pipe_settings s = {.mtu = 1200};
    leat_pipe_init(&pipe, mem, &s, 1);
    send_number(&pipe, 0, 1, 1201);
    send_number(&pipe, 0, 2, 1200);
    assert_int_equal(recv_plain(&pipe, 0), 2);
    assert_int_equal(recv_plain(&pipe, 0), -1);
    assert_int_equal(pipe.stats.too_large, 1);
    leat_pipe_free(&pipe);
}

static bool drop_third_and_move_source(void *user, leat_dgram *dgram, uint64_t index)
{
    dgram->src.port = *(uint16_t *)user;
    return index != 2;
}

static void filter_sees_and_changes_each(void **state)
{
    (void)state;
    leat_pipe pipe;
    uint16_t port = 4444;
    leat_pipe_settings s = {.filter = drop_third_and_move_source, .filter_user = &port};
    leat_pipe_init(&pipe, mem, &s, 1);
    for (uint32_t i = 0; i < 4; i++) {
        send_number(&pipe, 0, i, 10);
    }
    leat_dgram dgram;
    assert_true(leat_pipe_recv(&pipe, 0, &dgram));
    assert_int_equal(dgram.src.port, 4444);
    leat_buf_release(&dgram.buf);
    assert_int_equal(recv_plain(&pipe, 0), 1);
    assert_int_equal(recv_plain(&pipe, 0), 3);
    assert_int_equal(pipe.stats.filtered, 1);
    leat_pipe_free(&pipe);
}

enum { MANY = 20000 };

static void loss_is_as_often_as_asked(void **state)
{
    (void)state;
    leat_pipe pipe;
    leat_pipe_settings s = {.loss = 20000};
    leat_pipe_init(&pipe, mem, &s, 3);
    for (uint32_t i = 0; i < MANY; i++) {
        send_number(&pipe, 0, i, 4);
        recv_plain(&pipe, 0);
    }
    /* 400 expected; the standard deviation is 20. */
    assert_in_range(pipe.stats.lost, 300, 500);
    assert_int_equal(pipe.stats.delivered + pipe.stats.lost, MANY);
    leat_pipe_free(&pipe);
}

static void losses_come_in_bursts_when_asked(void **state)
{
    (void)state;
    leat_pipe pipe;
    leat_pipe_settings s = {.loss = 10000, .loss_burst = 8};
    leat_pipe_init(&pipe, mem, &s, 3);
    int bursts = 0;
    bool lost_before = false;
    for (uint32_t i = 0; i < MANY; i++) {
        send_number(&pipe, 0, i, 4);
        bool lost = recv_plain(&pipe, 0) < 0;
        bursts += lost && !lost_before;
        lost_before = lost;
    }
    assert_in_range(bursts, 100, 300);
    double mean = (double)pipe.stats.lost / bursts;
    assert_true(mean > 6 && mean < 10.5);
    leat_pipe_free(&pipe);
}

static void duplicate_has_bytes_of_its_own(void **state)
{
    (void)state;
    leat_pipe pipe;
    leat_pipe_settings s = {.duplicate = LEAT_PIPE_WHOLE};
    leat_pipe_init(&pipe, mem, &s, 1);
    send_number(&pipe, 0, 7, 64);
    leat_dgram a, b;
    assert_true(leat_pipe_recv(&pipe, 0, &a));
    assert_true(leat_pipe_recv(&pipe, 0, &b));
    assert_int_equal(a.buf.len, b.buf.len);
    assert_memory_equal(a.buf.data, b.buf.data, 64);
    memset(a.buf.data, 0xff, 64); /* as decryption in place would */
    uint32_t number;
    memcpy(&number, b.buf.data, sizeof(number));
    assert_int_equal(number, 7);
    leat_buf_release(&a.buf);
    leat_buf_release(&b.buf);
    assert_int_equal(pipe.stats.duplicated, 1);
    leat_pipe_free(&pipe);
}

static void held_back_are_overtaken(void **state)
{
    (void)state;
    leat_pipe pipe;
    leat_pipe_settings s = {.delay = 10, .reorder = LEAT_PIPE_WHOLE, .reorder_delay = 100};
    leat_pipe_init(&pipe, mem, &s, 1);
    send_number(&pipe, 0, 1, 10);
    s.reorder = 0;
    leat_pipe_set(&pipe, &s);
    send_number(&pipe, 1, 2, 10);
    send_number(&pipe, 200, 3, 10);
    assert_int_equal(leat_pipe_deadline(&pipe), 11);
    assert_int_equal(recv_plain(&pipe, 1000), 2);
    assert_int_equal(leat_pipe_deadline(&pipe), 110);
    assert_int_equal(recv_plain(&pipe, 1000), 1);
    assert_int_equal(recv_plain(&pipe, 1000), 3);
    leat_pipe_free(&pipe);
}

static void jitter_keeps_the_order(void **state)
{
    (void)state;
    leat_pipe pipe;
    leat_pipe_settings s = {.delay = 100, .jitter = 50};
    leat_pipe_init(&pipe, mem, &s, 9);
    for (uint32_t i = 0; i < 200; i++) {
        send_number(&pipe, i, i, 10);
    }
    leat_time latest = 0;
    bool varied = false;
    for (uint32_t i = 0; i < 200; i++) {
        leat_time at = leat_pipe_deadline(&pipe);
        assert_true(at >= i + 100);
        varied |= at != i + 100;
        assert_true(at >= latest);
        latest = at;
        assert_int_equal(recv_plain(&pipe, at), i);
    }
    assert_true(varied);
    leat_pipe_free(&pipe);
}

static void damage_flips_one_bit_or_shortens(void **state)
{
    (void)state;
    leat_pipe pipe;
    leat_pipe_settings s = {.corrupt = LEAT_PIPE_WHOLE};
    leat_pipe_init(&pipe, mem, &s, 5);
    for (int i = 0; i < 50; i++) {
        leat_dgram dgram;
        int bits = 0;
        send_number(&pipe, 0, 0, 20);
        assert_true(leat_pipe_recv(&pipe, 0, &dgram));
        assert_int_equal(dgram.buf.len, 20);
        for (size_t k = 0; k < 20; k++) {
            bits += __builtin_popcount(dgram.buf.data[k]);
        }
        assert_int_equal(bits, 1);
        leat_buf_release(&dgram.buf);
    }
    s = (leat_pipe_settings){.truncate = LEAT_PIPE_WHOLE};
    leat_pipe_set(&pipe, &s);
    for (int i = 0; i < 50; i++) {
        size_t len;
        send_number(&pipe, 0, 0, 20);
        assert_true(recv_number(&pipe, 0, &len, NULL) >= 0);
        assert_true(len < 20);
    }
    assert_int_equal(pipe.stats.damaged, 100);
    leat_pipe_free(&pipe);
}

static void free_releases_what_is_under_way(void **state)
{
    (void)state;
    leat_pipe pipe;
    leat_pipe_settings s = {.delay = 1000, .reorder = LEAT_PIPE_WHOLE / 2};
    leat_pipe_init(&pipe, mem, &s, 1);
    for (uint32_t i = 0; i < 100; i++) {
        send_number(&pipe, 0, i, 1200);
    }
    assert_int_equal(leat_pipe_count(&pipe), 100);
    leat_pipe_free(&pipe); /* the fixture looks for buffers left */
}

/* Everything at once; the journal of what came out when, of which bytes. */
typedef struct trace {
    uint64_t hash;
    uint64_t count;
} trace;

static void trace_add(trace *t, uint64_t value)
{
    t->hash = (t->hash ^ value) * 0x100000001b3u;
}

static void trace_dgram(trace *t, leat_time at, leat_dgram *dgram)
{
    trace_add(t, at);
    trace_add(t, dgram->ecn);
    for (size_t i = 0; i < dgram->buf.len; i++) {
        trace_add(t, dgram->buf.data[i]);
    }
    t->count++;
    leat_buf_release(&dgram->buf);
}

static trace run_everything(uint64_t seed)
{
    leat_pipe_settings s = {
        .delay = 50 * LEAT_MILLISECOND,
        .jitter = 5 * LEAT_MILLISECOND,
        .rate = 15000000,
        .queue = 30000,
        .mark = 20000,
        .loss = 20000,
        .loss_burst = 3,
        .duplicate = 10000,
        .reorder = 30000,
        .reorder_delay = 20 * LEAT_MILLISECOND,
        .corrupt = 5000,
        .truncate = 5000,
    };
    leat_net_link link;
    trace t = {.hash = 0xcbf29ce484222325u};
    leat_net_link_init(&link, mem, &s, seed);
    leat_time now = 0;
    leat_dgram dgram;
    for (uint32_t i = 0; i < 5000; i++) {
        now += 150 * LEAT_MICROSECOND;
        send_number(&link.pipe[i % 3 == 0], now, i, 4 + i % 1200);
        while (leat_net_link_deadline(&link) <= now) {
            leat_time at = leat_net_link_deadline(&link);
            int end = leat_pipe_deadline(&link.pipe[0]) == at ? 1 : 0;
            assert_true(leat_net_link_recv(&link, end, at, &dgram));
            trace_dgram(&t, at, &dgram);
        }
    }
    const leat_pipe_stats *st = &link.pipe[0].stats;
    assert_true(st->lost > 0);
    assert_true(st->overflowed > 0);
    assert_true(st->duplicated > 0);
    assert_true(st->reordered > 0);
    assert_true(st->damaged > 0);
    assert_true(st->marked > 0);
    leat_net_link_free(&link);
    return t;
}

static void seed_replays_everything(void **state)
{
    (void)state;
    trace a = run_everything(77);
    trace b = run_everything(77);
    trace c = run_everything(78);
    assert_true(a.count > 3000);
    assert_int_equal(a.count, b.count);
    assert_int_equal(a.hash, b.hash);
    assert_int_not_equal(a.hash, c.hash);
}

int main(void)
{
#define PIPE_TEST(f) cmocka_unit_test_setup_teardown(f, make_mem, free_mem)
    const struct CMUnitTest tests[] = {
        PIPE_TEST(plain_pipe_delivers_at_once_and_in_order),
        PIPE_TEST(delay_holds_each_for_its_time),
        PIPE_TEST(rate_spaces_datagrams),
        PIPE_TEST(full_queue_drops_the_newest),
        PIPE_TEST(datagram_larger_than_an_idle_queue_passes),
        PIPE_TEST(long_queue_marks_and_bleaching_clears),
        PIPE_TEST(codel_drops_ever_more_often_while_the_queue_stands),
        PIPE_TEST(mtu_drops_what_is_larger),
        PIPE_TEST(filter_sees_and_changes_each),
        PIPE_TEST(loss_is_as_often_as_asked),
        PIPE_TEST(losses_come_in_bursts_when_asked),
        PIPE_TEST(duplicate_has_bytes_of_its_own),
        PIPE_TEST(held_back_are_overtaken),
        PIPE_TEST(jitter_keeps_the_order),
        PIPE_TEST(damage_flips_one_bit_or_shortens),
        PIPE_TEST(free_releases_what_is_under_way),
        PIPE_TEST(seed_replays_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
