/* leat/feedback.h: when feedback is due, and the history of what was sent. */
#include "media_test.h"

#include <leat/feedback.h>
#include <leat/limits.h>

#include "media/history.h"

/* ---- policy -----------------------------------------------------------------------------------
 */

static void feedback_is_due_an_interval_after_the_last(void **state)
{
    leat_fb_policy p;

    (void)state;
    leat_fb_policy_init(&p, 100 * MS, 0);
    assert_int_equal(leat_fb_policy_deadline(&p), LEAT_TIME_NEVER);
    assert_false(leat_fb_policy_is_due(&p, LEAT_TIME_NEVER));
    leat_fb_policy_on_packet(&p, 10 * MS);
    leat_fb_policy_on_packet(&p, 50 * MS);
    assert_int_equal(leat_fb_policy_deadline(&p), 110 * MS);
    assert_false(leat_fb_policy_is_due(&p, 110 * MS - 1));
    assert_true(leat_fb_policy_is_due(&p, 110 * MS));
    leat_fb_policy_on_sent(&p, 112 * MS);
    assert_int_equal(leat_fb_policy_deadline(&p), LEAT_TIME_NEVER); /* nothing waits */
    leat_fb_policy_on_packet(&p, 120 * MS);
    assert_int_equal(leat_fb_policy_deadline(&p), 212 * MS);
    leat_fb_policy_on_sent(&p, 212 * MS);
    leat_fb_policy_on_packet(&p, 900 * MS); /* after a pause: at once */
    assert_true(leat_fb_policy_is_due(&p, 900 * MS));
}

static void feedback_is_due_when_many_wait_or_when_asked(void **state)
{
    leat_fb_policy p;

    (void)state;
    leat_fb_policy_init(&p, LEAT_SECOND, 3);
    leat_fb_policy_on_packet(&p, 0);
    leat_fb_policy_on_packet(&p, 0);
    assert_false(leat_fb_policy_is_due(&p, 0));
    leat_fb_policy_on_packet(&p, 0);
    assert_true(leat_fb_policy_is_due(&p, 0));
    leat_fb_policy_on_sent(&p, 0);
    leat_fb_policy_ask(&p);
    assert_true(leat_fb_policy_is_due(&p, 0));
    leat_fb_policy_on_sent(&p, 0);
    assert_false(leat_fb_policy_is_due(&p, LEAT_SECOND));
}

static void the_interval_follows_the_rate(void **state)
{
    (void)state;
    assert_int_equal(leat_fb_interval_for_rate(0, 68), 250 * MS);
    assert_int_equal(leat_fb_interval_for_rate(1000, 68), 250 * MS);
    assert_int_equal(leat_fb_interval_for_rate(108800, 68), 100 * MS); /* 68 * 8 * 20 / 0.1 s */
    assert_int_equal(leat_fb_interval_for_rate(100000000, 68), 50 * MS);
    assert_int_equal(leat_fb_interval_for_rate(UINT64_MAX, UINT32_MAX), 50 * MS);
}

/* ---- history ----------------------------------------------------------------------------------
 */

static leat_mem *mem;
static leat_fb_history h;

static int start(void **state)
{
    (void)state;
    mem = new_mem();
    assert_int_equal(leat_fb_history_init(&h, mem, 64), LEAT_OK);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    leat_fb_history_free(&h);
    leat_mem_free(mem);
    return 0;
}

static bool take(uint16_t seq, bool received, leat_fb_result *out)
{
    return leat_fb_history_take(&h, leat_fb_history_unwrap(&h, seq), received, 1, out);
}

static void packets_are_found_by_number(void **state)
{
    leat_fb_result r = {0};

    (void)state;
    for (uint16_t i = 65500; i != 10; i++) {
        leat_fb_history_add(&h, i, i, i);
    }
    assert_true(take(65530, true, &r));
    assert_int_equal(r.size, 65530);
    assert_int_equal(r.sent, 65530);
    assert_false(take(65530, true, &r)); /* told already */
    assert_true(take(9, false, &r));
    assert_int_equal(r.state, LEAT_FB_LOST);
    assert_false(take(9, false, &r));
    assert_true(take(9, true, &r));
    assert_true(r.late);
    assert_false(take(9, false, &r));
    assert_false(take(10, true, &r)); /* the next to be sent */
    assert_false(take(65499, true, &r));
    assert_false(take(30000, true, &r));
}

static void numbers_left_out_were_never_sent(void **state)
{
    leat_fb_result r = {0};

    (void)state;
    leat_fb_history_add(&h, 100, 0, 1);
    leat_fb_history_add(&h, 105, 0, 2);
    assert_false(take(103, true, &r));
    leat_fb_history_add(&h, 103, 0, 3); /* out of order */
    assert_true(take(103, true, &r));
    assert_int_equal(r.size, 3);
    leat_fb_history_add(&h, (uint16_t)(105 + 30000), 0, 4); /* past the ring's size */
    assert_false(take(105, true, &r));
    assert_true(take((uint16_t)(105 + 30000), true, &r));
    leat_fb_history_add(&h, 105, 0, 5); /* too far back to be remembered */
    assert_false(take(105, true, &r));
}

/* An encoder that begins anew has numbers far back, for half of the number space. */
static void numbers_that_begin_anew_are_remembered_from_the_third_on(void **state)
{
    leat_fb_result r = {0};
    uint64_t high;

    (void)state;
    high = leat_fb_history_add(&h, 40000, 0, 1);
    leat_fb_history_add(&h, 20000, 0, 1); /* one alone, and one that does not follow it */
    leat_fb_history_add(&h, 20002, 0, 1);
    leat_fb_history_add(&h, 40001, 0, 1);
    leat_fb_history_add(&h, 20003, 0, 1);
    assert_true(take(40001, true, &r));
    assert_false(take(20003, true, &r));
    leat_fb_history_add(&h, 20004, 0, 1);
    assert_false(take(20004, true, &r));
    assert_true(leat_fb_history_add(&h, 20005, 7, 5) > high);
    leat_fb_history_add(&h, 20006, 8, 6);
    assert_int_equal(leat_fb_history_in_flight(&h), 11);
    assert_true(take(20005, true, &r));
    assert_int_equal(r.size, 5);
    assert_int_equal(r.sent, 7);
    assert_true(take(20006, false, &r));
    assert_false(take(40000, true, &r));
}

/* The sum of what was sent after the last reported, by a model that keeps everything. */
static void bytes_in_flight_are_the_sum_of_what_is_not_reported(void **state)
{
    seeds s = seeds_start(200);

    (void)state;
    for (; s.next <= s.last; s.next++) {
        static uint32_t size[1 << 16];
        uint64_t from = 1 << 20, next = from, reported = from, sum;
        leat_prng prng;

        leat_prng_seed(&prng, s.next);
        memset(size, 0, sizeof size);
        leat_fb_history_free(&h);
        assert_int_equal(leat_fb_history_init(&h, mem, 64), LEAT_OK);
        for (unsigned i = 0; i < 2000; i++) {
            uint64_t dice = leat_prng_below(&prng, 10), skip = dice == 0 ? 100 : dice == 1 ? 3 : 0;

            next += leat_prng_below(&prng, skip + 1);
            size[next & 0xffff] = (uint32_t)leat_prng_between(&prng, 1, 1500);
            leat_fb_history_add(&h, (uint16_t)next, i, size[next & 0xffff]);
            reported = i == 0 ? next : reported;
            next++;
            reported = next - reported > 64 ? next - 64 : reported;
            if (leat_prng_below(&prng, 20) == 0) {
                uint64_t end = next - leat_prng_below(&prng, 80);

                leat_fb_history_advance(&h, end);
                reported = end > reported ? end : reported;
            }
            sum = 0;
            for (uint64_t at = reported; at < next; at++) {
                sum += size[at & 0xffff];
            }
            assert_seed(leat_fb_history_in_flight(&h) == sum, s.next);
            for (uint64_t at = next; at < next + 200; at++) {
                size[at & 0xffff] = 0;
            }
        }
    }
}

#define case_of(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(feedback_is_due_an_interval_after_the_last),
        cmocka_unit_test(feedback_is_due_when_many_wait_or_when_asked),
        cmocka_unit_test(the_interval_follows_the_rate),
        case_of(packets_are_found_by_number),
        case_of(numbers_left_out_were_never_sent),
        case_of(numbers_that_begin_anew_are_remembered_from_the_third_on),
        case_of(bytes_in_flight_are_the_sum_of_what_is_not_reported),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
