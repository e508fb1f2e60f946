/* leat/twcc.h: what feedback of others' making does to a sender's history. */
#include "media_test.h"

#include <leat/twcc.h>

enum { RING = 64 };

static leat_mem *mem;
static leat_twcc_sender sender;

static int start(void **state)
{
    (void)state;
    assert_int_equal(leat_mem_new(NULL, &mem), LEAT_OK);
    return leat_twcc_sender_init(&sender, mem, RING) == LEAT_OK ? 0 : -1;
}

static int finish(void **state)
{
    (void)state;
    leat_twcc_sender_free(&sender);
    leat_mem_free(mem);
    return 0;
}

/* Feedback of one chunk: `n` packets from `base` on came at once; n is at most 6. */
static size_t feed(uint8_t count, uint16_t base, uint8_t n)
{
    uint8_t raw[32] = {0x8f, 205, 0, 6, 0, 0, 0, 1, 0, 0, 0, 2};
    leat_fb_result results[8];
    leat_twcc_iter it;

    raw[12] = (uint8_t)(base >> 8);
    raw[13] = (uint8_t)base;
    raw[15] = n;
    raw[18] = 1; /* the reference time */
    raw[19] = count;
    raw[20] = 0x20; /* a run of small deltas */
    raw[21] = n;
    assert_int_equal(leat_twcc_feedback(&sender, (leat_span){raw, 28}, &it), LEAT_OK);
    return leat_twcc_results(&sender, &it, results, 8);
}

/* They lie in the slots of others that were sent and told of, or were not. */
static void numbers_that_were_not_sent_yet_change_nothing(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RING + 10; i++) {
        leat_twcc_sent(&sender, i * MS, 1000);
    }
    assert_int_equal(feed(0, RING + 4, 6), 6);
    assert_int_equal(leat_fb_history_in_flight(&sender.sent), 0);
    assert_int_equal(feed(1, RING + 10, 6), 0);
    assert_int_equal(leat_fb_history_in_flight(&sender.sent), 0);
    leat_twcc_sent(&sender, 100 * MS, 1000);
    assert_int_equal(leat_fb_history_in_flight(&sender.sent), 1000);
    assert_int_equal(feed(2, RING + 10, 6), 1); /* one of six was sent meanwhile */
    assert_int_equal(leat_fb_history_in_flight(&sender.sent), 0);
}

static void feedback_that_was_overtaken_was_not_lost(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        leat_twcc_sent(&sender, i * MS, 1000);
    }
    feed(255, 0, 2);
    feed(2, 6, 2); /* 0 and 1 are missing */
    assert_int_equal(sender.feedbacks_lost, 2);
    feed(1, 4, 2);
    assert_int_equal(sender.feedbacks_lost, 1);
    feed(3, 8, 2); /* counted from the newest */
    assert_int_equal(sender.feedbacks_lost, 1);
    feed(0, 2, 2);
    assert_int_equal(sender.feedbacks_lost, 0);
}

#define case_of(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        case_of(numbers_that_were_not_sent_yet_change_nothing),
        case_of(feedback_that_was_overtaken_was_not_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
