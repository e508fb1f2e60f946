/* leat/nack.h: asking for packets again, and answering. */
#include "media_test.h"

#include <leat/limits.h>
#include <leat/nack.h>

static leat_mem *mem;
static leat_nack nack;
static leat_nack_settings settings;

static void restart(void)
{
    leat_nack_free(&nack);
    assert_int_equal(leat_nack_init(&nack, mem, &settings), LEAT_OK);
}

static int start(void **state)
{
    (void)state;
    mem = new_mem();
    nack = (leat_nack){.list = NULL};
    leat_nack_settings_init(&settings);
    restart();
    return 0;
}

static int finish(void **state)
{
    (void)state;
    leat_nack_free(&nack);
    leat_mem_free(mem);
    return 0;
}

static uint16_t asked[5000];

/* What is asked for at `now`, into asked[]; at most what `room` bytes take. */
static size_t ask(leat_time now, size_t room)
{
    static uint8_t out[65536];
    leat_rtcp_writer w;
    leat_rtcp_iter packets;
    leat_rtcp_packet p;
    leat_rtcp_nack_iter iter;
    size_t n, read = 0;

    leat_rtcp_writer_init(&w, out, room);
    n = leat_nack_write(&nack, now, 1, 2, &w);
    assert_true(w.len <= room);
    if (n == 0) {
        assert_int_equal(w.len, 0);
        return 0;
    }
    leat_rtcp_begin(&packets, (leat_span){out, w.len});
    assert_true(leat_rtcp_next(&packets, &p));
    assert_int_equal(leat_rtcp_nack_begin(&iter, &p), LEAT_OK);
    while (leat_rtcp_nack_next(&iter, &asked[read])) {
        read++;
    }
    assert_int_equal(read, n);
    return n;
}

static void got(uint16_t seq, leat_time now)
{
    leat_nack_on_packet(&nack, seq, now);
}

static void a_gap_is_asked_for_once_others_have_overtaken_it(void **state)
{
    (void)state;
    got(1, 0);
    got(3, MS);
    assert_int_equal(leat_nack_deadline(&nack), LEAT_TIME_NEVER); /* may be just reordered */
    assert_int_equal(ask(MS, 1200), 0);
    got(4, 2 * MS);
    assert_int_equal(leat_nack_deadline(&nack), 2 * MS);
    assert_int_equal(ask(2 * MS, 1200), 1);
    assert_int_equal(asked[0], 2);
    assert_int_equal(ask(50 * MS, 1200), 0);
    assert_int_equal(leat_nack_deadline(&nack), 102 * MS);
    assert_int_equal(ask(102 * MS, 1200), 1);
    got(2, 110 * MS);
    assert_int_equal(ask(LEAT_SECOND, 1200), 0);
    assert_int_equal(nack.recovered, 1);
    assert_int_equal(nack.asked, 2);
}

static void reordering_within_bounds_asks_for_nothing(void **state)
{
    (void)state;
    got(1, 0);
    for (uint16_t i = 2; i < 1000; i += 2) { /* 3 2 5 4 7 6 … */
        got((uint16_t)(i + 1), i * MS);
        assert_int_equal(ask(i * MS, 1200), 0);
        got(i, i * MS);
        assert_int_equal(ask(i * MS, 1200), 0);
    }
    assert_int_equal(nack.count, 0);
}

/* CASES: the highest packet again, late packets and the wrap do not give 65,535 NACKs. */
static void what_is_no_loss_is_not_asked_for(void **state)
{
    static const uint16_t odd[] = {100, 100, 99, 98, 50, 100, 0, 65535, 100, 101};

    (void)state;
    got(100, 0);
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        got(odd[i], i * MS);
        assert_int_equal(ask(i * MS, 1200), 0);
        assert_int_equal(nack.count, 0);
    }
    restart();
    for (unsigned i = 0; i < 200000; i++) { /* the wrap, each packet twice */
        got((uint16_t)i, i * MS);
        got((uint16_t)i, i * MS);
        assert_int_equal(nack.count, 0);
    }
    restart();
    got(65534, 0);
    got(2, 0);
    got(3, 0);
    got(4, 0);
    assert_int_equal(ask(0, 1200), 3);
    assert_int_equal(asked[0], 65535);
    assert_int_equal(asked[2], 1);
}

static void whatever_comes_no_more_is_missing_than_the_list_holds(void **state)
{
    seeds s = seeds_start(SLOW_BUILD ? 200 : 3000);

    (void)state;
    for (; s.next <= s.last; s.next++) {
        leat_prng prng;
        uint16_t at;

        leat_prng_seed(&prng, s.next);
        settings.missing = 16;
        settings.leap = (uint16_t)leat_prng_between(&prng, 1, 2000);
        restart();
        at = (uint16_t)leat_prng_u64(&prng);
        for (unsigned i = 0; i < 300; i++) {
            uint64_t dice = leat_prng_below(&prng, 10);

            at = (uint16_t)(dice == 0 ? leat_prng_u64(&prng) : at + leat_prng_below(&prng, dice));
            got(at, i * MS);
            assert_seed(nack.count <= 16, s.next);
            for (size_t k = 1; k < nack.count; k++) {
                assert_seed(nack.list[k].seq > nack.list[k - 1].seq, s.next);
            }
            assert_seed(nack.count == 0 || nack.list[nack.count - 1].seq < nack.end, s.next);
            assert_seed(ask(i * MS, 1200) <= 16, s.next);
        }
    }
}

static void the_oldest_are_given_up_for_newer_ones(void **state)
{
    (void)state;
    settings.missing = 16;
    restart();
    got(0, 0);
    got(11, 0);
    got(22, 0);
    got(23, 0);
    assert_int_equal(nack.count, 16);
    assert_int_equal(ask(0, 1200), 16);
    assert_int_equal(asked[0], 5);
    assert_int_equal(nack.given_up, 4);
    got(123, 0);
    assert_int_equal(nack.count, 16);
    assert_int_equal((uint16_t)nack.list[0].seq, 107);
}

static void a_number_is_given_up_after_tries_or_time(void **state)
{
    (void)state;
    settings.tries = 3;
    settings.reorder = 0;
    restart();
    got(0, 0);
    got(2, 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(ask(i * 100 * MS, 1200), 1);
    }
    assert_int_equal(ask(300 * MS, 1200), 0);
    assert_int_equal(nack.given_up, 1);
    settings.patience = 150 * MS;
    restart();
    got(0, 0);
    got(2, 0);
    assert_int_equal(ask(0, 1200), 1);
    assert_int_equal(ask(100 * MS, 1200), 1);
    assert_int_equal(ask(200 * MS, 1200), 0);
    assert_int_equal(nack.count, 0);
}

static void what_does_not_fit_stays_due(void **state)
{
    size_t total = 0, n;

    (void)state;
    settings.reorder = 0;
    restart();
    got(0, 0);
    for (uint16_t i = 1; i < 20; i++) {
        got((uint16_t)(i * 20), 0); /* 19 numbers each: two pairs */
    }
    assert_int_equal(ask(0, 15), 0);
    while ((n = ask(0, 28)) > 0) {
        assert_true(n <= 4 * 17);
        total += n;
    }
    assert_int_equal(total, 19 * 19);
}

static void a_leap_is_a_new_start_once_others_follow(void **state)
{
    (void)state;
    got(100, 0);
    got(30000, 0); /* one strange packet */
    got(101, 0);
    assert_int_equal(nack.count, 0);
    got(40000, 0);
    got(40001, 0);
    got(40002, 0);
    got(40004, 0);
    assert_int_equal(nack.count, 1);
    assert_int_equal((uint16_t)nack.list[0].seq, 40003);
}

/* ---- sending again ----------------------------------------------------------------------------
 */

static leat_resend resend;

static void keep(uint16_t seq, size_t len, leat_time now)
{
    leat_buf buf;

    assert_int_equal(leat_buf_take(mem, len, &buf), LEAT_OK);
    memset(buf.data, (uint8_t)seq, len);
    leat_resend_keep(&resend, seq, now, &buf);
    assert_int_equal(buf.len, 0);
}

static bool find(uint16_t seq, leat_time now)
{
    leat_span s;
    bool found = leat_resend_find(&resend, seq, now, &s);

    assert_true(!found || s.data[s.len - 1] == (uint8_t)seq);
    return found;
}

static void packets_kept_are_found_until_newer_ones_need_the_room(void **state)
{
    (void)state;
    assert_int_equal(leat_resend_init(&resend, mem, 16, 1000000, 0), LEAT_OK);
    for (unsigned i = 65530; i < 65536 + 20; i++) {
        keep((uint16_t)i, 100, 0);
    }
    assert_false(find(3, 0));
    for (uint16_t i = 4; i < 20; i++) {
        assert_true(find(i, 0));
    }
    assert_false(find(20, 0));
    keep(100, 50, 0); /* a leap */
    assert_true(find(100, 0));
    assert_false(find(19, 0));
    assert_int_equal(resend.bytes, 50);
    keep(90, 50, 0); /* out of order */
    assert_true(find(90, 0));
    keep(10, 50, 0); /* too far back */
    assert_false(find(10, 0));
    keep(90, 70, 0); /* again */
    assert_int_equal(resend.bytes, 120);
    leat_resend_free(&resend);
}

static void packets_of_a_stream_that_begins_anew_are_kept_from_the_third_on(void **state)
{
    (void)state;
    assert_int_equal(leat_resend_init(&resend, mem, 16, 1000000, 0), LEAT_OK);
    keep(40000, 100, 0);
    keep(20000, 100, 0);
    keep(40001, 100, 0);
    keep(20001, 100, 0);
    keep(20002, 100, 0);
    assert_false(find(20002, 0));
    assert_true(find(40000, 0));
    keep(20003, 100, 0);
    keep(20004, 100, 0);
    assert_true(find(20003, 0));
    assert_true(find(20004, 0));
    assert_false(find(40001, 0));
    assert_int_equal(resend.bytes, 200);
    leat_resend_free(&resend);
}

static void bytes_are_bounded(void **state)
{
    (void)state;
    assert_int_equal(leat_resend_init(&resend, mem, 1024, 1000, 0), LEAT_OK);
    for (uint16_t i = 0; i < 100; i++) {
        keep(i, 300, 0);
        assert_true(resend.bytes <= 1000);
    }
    assert_true(find(99, 0));
    assert_true(find(97, 0));
    assert_false(find(96, 0));
    keep(100, 1001, 0);
    assert_false(find(100, 0));
    assert_true(find(99, 0));
    leat_resend_free(&resend);
    assert_int_equal(leat_resend_init(&resend, mem, 15, 1000, 0), LEAT_ERR_INVALID);
    leat_resend_free(&resend);
}

static void a_packet_is_not_sent_again_too_soon(void **state)
{
    (void)state;
    assert_int_equal(leat_resend_init(&resend, mem, 16, 1000, 50 * MS), LEAT_OK);
    keep(1, 10, 0);
    assert_false(find(1, 49 * MS));
    assert_true(find(1, 50 * MS));
    assert_false(find(1, 99 * MS));
    assert_true(find(1, 100 * MS));
    leat_resend_free(&resend);
}

static void random_use_keeps_within_bounds_and_gives_everything_back(void **state)
{
    seeds s = seeds_start(100);

    (void)state;
    for (; s.next <= s.last; s.next++) {
        leat_prng prng;
        uint16_t at = 0;
        size_t sum;

        leat_prng_seed(&prng, s.next);
        assert_int_equal(leat_resend_init(&resend, mem, 16, 2000, 0), LEAT_OK);
        for (unsigned i = 0; i < 1000; i++) {
            at = (uint16_t)(at + leat_prng_below(&prng, 3) - leat_prng_below(&prng, 2) * 5);
            at = (uint16_t)(leat_prng_below(&prng, 50) ? at : leat_prng_u64(&prng));
            keep(at, (size_t)leat_prng_between(&prng, 1, 900), i);
            find((uint16_t)(at - leat_prng_below(&prng, 20)), i);
            sum = 0;
            for (unsigned k = 0; k < 16; k++) {
                sum += resend.ring[k].buf.len;
            }
            assert_seed(sum == resend.bytes && sum <= 2000, s.next);
        }
        leat_resend_free(&resend);
    }
}

#define case_of(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        case_of(a_gap_is_asked_for_once_others_have_overtaken_it),
        case_of(reordering_within_bounds_asks_for_nothing),
        case_of(what_is_no_loss_is_not_asked_for),
        case_of(whatever_comes_no_more_is_missing_than_the_list_holds),
        case_of(the_oldest_are_given_up_for_newer_ones),
        case_of(a_number_is_given_up_after_tries_or_time),
        case_of(what_does_not_fit_stays_due),
        case_of(a_leap_is_a_new_start_once_others_follow),
        case_of(packets_kept_are_found_until_newer_ones_need_the_room),
        case_of(packets_of_a_stream_that_begins_anew_are_kept_from_the_third_on),
        case_of(bytes_are_bounded),
        case_of(a_packet_is_not_sent_again_too_soon),
        case_of(random_use_keeps_within_bounds_and_gives_everything_back),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
