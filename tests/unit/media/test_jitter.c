/* leat/jitter.h: order, pace and bounds of the jitter buffer. */
#include "media_test.h"

#include <leat/jitter.h>
#include <leat/limits.h>

enum { RATE = 90000, UNITS_MS = 90 };

static leat_mem *mem;
static leat_jitter jitter;
static leat_jitter_settings settings;

static void restart(void)
{
    leat_jitter_free(&jitter);
    assert_int_equal(leat_jitter_init(&jitter, mem, &settings), LEAT_OK);
}

static int start(void **state)
{
    (void)state;
    mem = new_mem();
    jitter = (leat_jitter){.ring = NULL};
    leat_jitter_settings_init(&settings, RATE);
    settings.delay_min = settings.delay_max = 50 * MS;
    restart();
    return 0;
}

static int finish(void **state)
{
    (void)state;
    leat_jitter_free(&jitter);
    leat_mem_free(mem);
    return 0;
}

static leat_err push_bytes(uint16_t seq, uint32_t timestamp, leat_time now, size_t len)
{
    leat_rtp_packet packet = {.seq = seq, .timestamp = timestamp};
    leat_buf buf;
    leat_err err;

    assert_int_equal(leat_buf_take(mem, len, &buf), LEAT_OK);
    memset(buf.data, (uint8_t)seq, len);
    err = leat_jitter_push(&jitter, &packet, &buf, now);
    assert_int_equal(buf.len, 0);
    leat_jitter_check(&jitter);
    return err;
}

static leat_err push(uint16_t seq, uint32_t timestamp, leat_time now)
{
    return push_bytes(seq, timestamp, now, 100);
}

static bool pop(leat_time now, leat_jitter_packet *p)
{
    bool popped = leat_jitter_pop(&jitter, now, p);

    if (popped) {
        assert_int_equal(p->buf.data[0], (uint8_t)p->seq);
        leat_buf_release(&p->buf);
    }
    leat_jitter_check(&jitter);
    return popped;
}

static void assert_pops(leat_time now, uint16_t seq, bool gap)
{
    leat_jitter_packet p;

    assert_true(pop(now, &p));
    assert_int_equal((uint16_t)p.seq, seq);
    assert_int_equal(p.gap, gap);
}

static void packets_go_out_in_order_at_the_pace_of_their_timestamps(void **state)
{
    leat_jitter_packet p;

    (void)state;
    assert_int_equal(leat_jitter_deadline(&jitter), LEAT_TIME_NEVER);
    assert_false(pop(LEAT_SECOND, &p));
    push(65535, 0, 0);
    push(1, 40 * UNITS_MS, 41 * MS);
    push(0, 20 * UNITS_MS, 42 * MS);
    assert_int_equal(leat_jitter_deadline(&jitter), 50 * MS);
    assert_false(pop(50 * MS - 1, &p));
    assert_pops(50 * MS, 65535, false);
    assert_int_equal(leat_jitter_deadline(&jitter), 70 * MS);
    assert_false(pop(60 * MS, &p));
    assert_pops(70 * MS, 0, false);
    assert_pops(91 * MS, 1, false);
}

static void the_packets_of_a_frame_go_out_together(void **state)
{
    leat_jitter_packet p;

    (void)state;
    for (uint16_t i = 0; i < 5; i++) {
        push(i, 0, i * MS);
    }
    push(5, 33 * UNITS_MS, 33 * MS);
    for (uint16_t i = 0; i < 5; i++) {
        assert_pops(50 * MS, i, false);
    }
    assert_false(pop(50 * MS, &p));
}

static void a_gap_is_waited_for_and_then_passed(void **state)
{
    (void)state;
    push(0, 0, 0);
    push(2, 40 * UNITS_MS, 40 * MS);
    assert_pops(50 * MS, 0, false);
    assert_int_equal(leat_jitter_deadline(&jitter), 90 * MS);
    assert_pops(90 * MS, 2, true);
    assert_int_equal(push(1, 20 * UNITS_MS, 91 * MS), LEAT_ERR_STATE);
    assert_int_equal(jitter.stats.missing, 1);
    assert_int_equal(jitter.stats.late, 1);
    assert_int_equal(push(2, 40 * UNITS_MS, 91 * MS), LEAT_ERR_STATE);
}

static void duplicates_wait_once(void **state)
{
    leat_jitter_packet p;

    (void)state;
    push(0, 0, 0);
    assert_int_equal(push(0, 0, MS), LEAT_ERR_STATE);
    assert_int_equal(jitter.stats.duplicates, 1);
    assert_pops(50 * MS, 0, false);
    assert_false(pop(LEAT_SECOND, &p));
}

static void a_stream_may_begin_out_of_order(void **state)
{
    (void)state;
    push(2, 40 * UNITS_MS, 40 * MS);
    push(0, 0, 41 * MS);
    push(1, 20 * UNITS_MS, 42 * MS);
    assert_int_equal(leat_jitter_deadline(&jitter), 50 * MS);
    assert_pops(LEAT_SECOND, 0, false);
    assert_pops(LEAT_SECOND, 1, false);
    assert_pops(LEAT_SECOND, 2, false);
}

static void the_delay_rises_at_once_and_sinks_slowly(void **state)
{
    leat_jitter_packet p;
    uint16_t seq = 0;
    leat_time at = 0, high;

    (void)state;
    settings.delay_min = 20 * MS;
    settings.delay_max = 200 * MS;
    restart();
    for (; seq < 100; seq++, at += 20 * MS) {
        push(seq, (uint32_t)(seq * 20 * UNITS_MS), at);
    }
    assert_int_equal(jitter.delay, 20 * MS);
    push(seq, (uint32_t)(seq * 20 * UNITS_MS), at + 120 * MS);
    assert_int_equal(jitter.delay, 120 * MS);
    seq++;
    push(seq, (uint32_t)(seq * 20 * UNITS_MS), at + 20 * MS + 400 * MS);
    assert_int_equal(jitter.delay, 200 * MS); /* no more than it may be */
    high = jitter.delay;
    for (seq++; seq < 3000; seq++) {
        at = seq * 20 * MS;
        push(seq, (uint32_t)(seq * 20 * UNITS_MS), at);
        while (pop(at, &p)) {
        }
        assert_true(jitter.delay <= high);
        high = jitter.delay;
    }
    assert_in_range(high, 20 * MS, 110 * MS);
}

/* The timestamps count on while the clock of the sender is a thousandth too slow: the delay does
 * not grow for ever. */
static void a_drifting_clock_is_followed(void **state)
{
    leat_jitter_packet p;
    leat_time at = 0;

    (void)state;
    settings.delay_min = 20 * MS;
    settings.delay_max = 2000 * MS;
    restart();
    for (unsigned i = 0; i < 50000; i++, at += 20 * MS + 20 * US) {
        push((uint16_t)i, i * 20 * UNITS_MS, at);
        while (pop(at, &p)) {
        }
    }
    assert_in_range(jitter.delay, 20 * MS, 40 * MS);
    assert_int_equal(jitter.stats.late, 0);
}

static void timestamps_that_leap_begin_the_pace_anew(void **state)
{
    (void)state;
    push(0, 1000000000, 0);
    push(1, 1000000000 - 3600u * RATE, 20 * MS); /* an hour back */
    assert_pops(50 * MS, 0, false);
    assert_pops(70 * MS, 1, false);
    push(2, 1000000000, 80 * MS); /* and forth */
    assert_int_equal(leat_jitter_deadline(&jitter), 130 * MS);
    assert_int_equal(jitter.stats.restarts, 2);
}

/* Each packet's timestamp is as far ahead of the last, or behind it, as it can be told: after some
 * ten thousand the sum has left what 64 bits of ns hold. Each is played after the delay. */
static void timestamps_that_leap_without_end_overflow_nothing(void **state)
{
    static const struct {
        uint32_t rate, leap;
    } cases[] = {
        {8000, 0x7fffffff}, {8000, 0x80000001u}, {1, 0x7fffffff}, {90000, 0x7fffffff}, {1, 5},
        {1, 0u - 5}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t timestamp = 0;
        leat_time now = LEAT_SECOND;

        settings.clock_rate = cases[i].rate;
        restart();
        for (unsigned n = 0; n < 400000; n++) {
            leat_rtp_packet packet = {.seq = (uint16_t)n, .timestamp = timestamp};
            leat_jitter_packet p;
            leat_buf buf;

            assert_int_equal(leat_buf_take(mem, 8, &buf), LEAT_OK);
            assert_int_equal(leat_jitter_push(&jitter, &packet, &buf, now), LEAT_OK);
            assert_true(leat_jitter_deadline(&jitter) <= now + 50 * MS);
            assert_true(leat_jitter_pop(&jitter, now + 50 * MS, &p));
            assert_int_equal((uint32_t)p.timestamp, timestamp);
            leat_buf_release(&p.buf);
            timestamp += cases[i].leap;
            now += MS;
        }
    }
}

/* Timestamps that creep ahead, a little less than a leap each, end far from where they began: at
 * one unit a second 250 million packets would take them over the end. */
static void timestamps_far_from_the_first_begin_the_pace_anew(void **state)
{
    (void)state;
    settings.clock_rate = 1;
    restart();
    push(0, 0, 0);
    jitter.last_timestamp += (uint64_t)1 << 62; /* as if they had */
    assert_int_equal(push(1, 5, MS), LEAT_OK);
    assert_int_equal(jitter.stats.restarts, 1);
    assert_pops(51 * MS, 0, false);
    assert_pops(51 * MS, 1, false);
}

static void timestamps_wrap(void **state)
{
    (void)state;
    for (uint16_t i = 0; i < 10; i++) {
        push(i, (uint32_t)(i * 20u * UNITS_MS) - 100 * UNITS_MS, i * 20 * MS);
    }
    for (uint16_t i = 0; i < 10; i++) {
        assert_int_equal(leat_jitter_deadline(&jitter), (i * 20 + 50) * MS);
        assert_pops((i * 20 + 50) * MS, i, false);
    }
}

static void too_many_packets_push_the_oldest_out(void **state)
{
    (void)state;
    settings.packets = 16;
    restart();
    for (uint16_t i = 0; i < 40; i++) {
        assert_int_equal(push(i, i * UNITS_MS, 0), LEAT_OK);
        assert_true(jitter.count <= 16);
    }
    assert_int_equal(jitter.stats.overflowed, 24);
    assert_pops(LEAT_SECOND, 24, false);
}

static void too_many_bytes_push_the_oldest_out(void **state)
{
    (void)state;
    settings.bytes = LEAT_JITTER_BYTES_MIN;
    restart();
    for (uint16_t i = 0; i < 40; i++) {
        assert_int_equal(push_bytes(i, 0, 0, 400), LEAT_OK);
        assert_true(jitter.bytes <= LEAT_JITTER_BYTES_MIN);
    }
    assert_int_equal(push_bytes(40, 0, 0, LEAT_JITTER_BYTES_MIN + 1), LEAT_ERR_LIMIT);
    assert_pops(LEAT_SECOND, 37, false);
}

static void a_leap_of_numbers_is_believed_from_the_third_on(void **state)
{
    (void)state;
    push(0, 0, 0);
    assert_int_equal(push(30000, 0, 0), LEAT_ERR_LIMIT);
    assert_int_equal(push(1, 0, 0), LEAT_OK);
    assert_int_equal(push(20000, 0, 0), LEAT_ERR_LIMIT);
    assert_int_equal(push(20001, 0, 0), LEAT_ERR_LIMIT);
    assert_int_equal(push(20002, 0, 0), LEAT_OK);
    assert_int_equal(push(20001, 0, 0), LEAT_OK);
    assert_int_equal(jitter.stats.restarts, 1);
    assert_pops(LEAT_SECOND, 20001, false);
    assert_pops(LEAT_SECOND, 20002, false);
}

static void settings_out_of_bounds_are_refused(void **state)
{
    leat_jitter_settings bad = settings;
    leat_jitter j;

    (void)state;
    bad.clock_rate = 0;
    assert_int_equal(leat_jitter_init(&j, mem, &bad), LEAT_ERR_INVALID);
    bad = settings;
    bad.packets = 1000;
    assert_int_equal(leat_jitter_init(&j, mem, &bad), LEAT_ERR_INVALID);
    bad = settings;
    bad.bytes = LEAT_JITTER_BYTES_MIN - 1;
    assert_int_equal(leat_jitter_init(&j, mem, &bad), LEAT_ERR_INVALID);
    bad.bytes = (size_t)LEAT_JITTER_BYTES_MAX + 1;
    assert_int_equal(leat_jitter_init(&j, mem, &bad), LEAT_ERR_INVALID);
    bad = settings;
    bad.delay_min = bad.delay_max + 1;
    assert_int_equal(leat_jitter_init(&j, mem, &bad), LEAT_ERR_INVALID);
    leat_jitter_free(&j);
}

/* Whatever comes: the walker holds, numbers rise, and what came is popped, dropped or still there.
 */
static void random_use_holds_together(void **state)
{
    seeds s = seeds_start(SLOW_BUILD ? 150 : 2000);

    (void)state;
    for (; s.next <= s.last; s.next++) {
        uint64_t last = 0, restarts = 0;
        leat_jitter_packet p;
        leat_time now = LEAT_SECOND;
        leat_prng prng;
        uint16_t at;

        leat_prng_seed(&prng, s.next);
        settings.packets = 16u << leat_prng_below(&prng, 4);
        settings.bytes = (size_t)leat_prng_between(&prng, LEAT_JITTER_BYTES_MIN, 20000);
        settings.delay_min = leat_prng_below(&prng, 50) * MS;
        settings.delay_max = settings.delay_min + leat_prng_below(&prng, 300) * MS;
        restart();
        at = (uint16_t)leat_prng_u64(&prng);
        for (unsigned i = 0; i < 600; i++) {
            uint16_t seq = (uint16_t)(at + leat_prng_below(&prng, 6) - 3);

            seq = leat_prng_below(&prng, 60) ? seq : (uint16_t)leat_prng_u64(&prng);
            at = leat_prng_below(&prng, 200) ? (uint16_t)(at + 1) : (uint16_t)leat_prng_u64(&prng);
            now += leat_prng_below(&prng, 30 * MS);
            push_bytes(seq,
                       leat_prng_below(&prng, 100) ? seq * 10u * UNITS_MS
                                                   : (uint32_t)leat_prng_u64(&prng),
                       now, (size_t)leat_prng_between(&prng, 1, 1200));
            while (leat_prng_below(&prng, 4) && pop(now, &p)) {
                assert_seed(p.seq > last || jitter.stats.restarts != restarts, s.next);
                assert_seed(p.due <= now, s.next);
                last = p.seq;
                restarts = jitter.stats.restarts;
            }
        }
    }
}

#define case_of(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        case_of(packets_go_out_in_order_at_the_pace_of_their_timestamps),
        case_of(the_packets_of_a_frame_go_out_together),
        case_of(a_gap_is_waited_for_and_then_passed),
        case_of(duplicates_wait_once),
        case_of(a_stream_may_begin_out_of_order),
        case_of(the_delay_rises_at_once_and_sinks_slowly),
        case_of(a_drifting_clock_is_followed),
        case_of(timestamps_that_leap_begin_the_pace_anew),
        case_of(timestamps_that_leap_without_end_overflow_nothing),
        case_of(timestamps_far_from_the_first_begin_the_pace_anew),
        case_of(timestamps_wrap),
        case_of(too_many_packets_push_the_oldest_out),
        case_of(too_many_bytes_push_the_oldest_out),
        case_of(a_leap_of_numbers_is_believed_from_the_third_on),
        case_of(settings_out_of_bounds_are_refused),
        case_of(random_use_holds_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
