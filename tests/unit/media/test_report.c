/* leat/report.h: the numbers of sender and receiver reports. */
#include "media_test.h"

#include <leat/report.h>

enum { RATE = 90000 };

static leat_report_source source;

static void start_source(void)
{
    leat_report_source_init(&source, 7, RATE);
}

static leat_rtcp_report block(leat_time now)
{
    leat_rtcp_report r;

    assert_true(leat_report_block(&source, now, &r));
    assert_int_equal(r.ssrc, 7);
    return r;
}

static void a_source_that_sent_nothing_has_no_report(void **state)
{
    leat_rtcp_report r;

    (void)state;
    start_source();
    assert_false(leat_report_block(&source, 0, &r));
}

static void losses_are_counted_in_all_and_since_the_last_report(void **state)
{
    leat_rtcp_report r;

    (void)state;
    start_source();
    for (unsigned i = 65530; i < 65536 + 4; i++) { /* ten, across the wrap, two lost */
        if (i != 65533 && i != 65536) {
            leat_report_on_packet(&source, (uint16_t)i, i * 900, i * 10 * MS);
        }
    }
    r = block(LEAT_SECOND);
    assert_int_equal(r.lost, 2);
    assert_int_equal(r.fraction_lost, 2 * 256 / 10);
    assert_int_equal(r.highest_seq, 0x10003);
    assert_int_equal(r.jitter, 0);
    for (unsigned i = 4; i < 12; i++) {
        leat_report_on_packet(&source, (uint16_t)i, i, 0);
    }
    r = block(LEAT_SECOND);
    assert_int_equal(r.lost, 2);
    assert_int_equal(r.fraction_lost, 0);
    r = block(LEAT_SECOND); /* nothing in between */
    assert_int_equal(r.fraction_lost, 0);
    for (unsigned i = 0; i < 5; i++) {
        leat_report_on_packet(&source, 11, 0, 0);
    }
    assert_int_equal(block(0).lost, -3); /* duplicates count as received (A.3) */
}

/* RFC 3550 A.8: one packet 16 units late: 1 unit; then again on time. */
static void jitter_is_the_rfcs(void **state)
{
    (void)state;
    start_source();
    for (unsigned i = 0; i < 10; i++) {
        leat_report_on_packet(&source, (uint16_t)i, i * 90, i * MS);
    }
    assert_int_equal(block(0).jitter, 0);
    leat_report_on_packet(&source, 10, 10 * 90 - 160, 10 * MS); /* 160 units late */
    assert_int_equal(block(0).jitter, 10);
    leat_report_on_packet(&source, 11, 11 * 90, 11 * MS);
    assert_int_equal(block(0).jitter, 19); /* 10 + (160 - 10) / 16 */
    assert_int_equal(leat_report_jitter(&source), 19 * LEAT_SECOND / RATE);
    for (unsigned i = 0; i < 1000; i++) {
        leat_report_on_packet(&source, (uint16_t)(12 + i), 90 * (12 + i), (12 + i) * MS);
    }
    assert_int_equal(block(0).jitter, 0);
}

static void a_leap_is_believed_from_the_second_packet_on(void **state)
{
    leat_rtcp_report r;

    (void)state;
    start_source();
    leat_report_on_packet(&source, 10, 0, 0);
    leat_report_on_packet(&source, 20000, 0, 0);
    leat_report_on_packet(&source, 11, 0, 0);
    assert_int_equal(block(0).highest_seq, 11);
    assert_int_equal(block(0).lost, 0);
    leat_report_on_packet(&source, 30000, 0, 0);
    leat_report_on_packet(&source, 30001, 0, 0);
    r = block(0);
    assert_int_equal(r.highest_seq, 30001);
    assert_int_equal(r.lost, 0);
    leat_report_on_packet(&source, 29950, 0, 0); /* late, and counted */
    assert_int_equal(block(0).lost, -1);
}

static void a_stream_that_begins_anew_has_no_jitter_from_that(void **state)
{
    (void)state;
    start_source();
    for (unsigned i = 0; i < 10; i++) {
        leat_report_on_packet(&source, (uint16_t)i, i * 90, i * MS);
    }
    for (unsigned i = 10; i < 20; i++) { /* another number, another timestamp */
        leat_report_on_packet(&source, (uint16_t)(30000 + i), 0x50000000 + i * 90, i * MS);
    }
    assert_int_equal(block(0).highest_seq, 30019);
    assert_int_equal(block(0).jitter, 0);
}

static void ntp_times_are_converted(void **state)
{
    (void)state;
    assert_int_equal(leat_ntp_from_unix(0) >> 32, 2208988800u);
    assert_int_equal(leat_ntp_from_unix(LEAT_SECOND / 2) & UINT32_MAX, 0x80000000);
    for (leat_time t = 0; t < 4000000000u * LEAT_SECOND; t += 123456789 * LEAT_SECOND + 1234567) {
        assert_in_range(t - leat_ntp_to_unix(leat_ntp_from_unix(t)), 0, 1);
    }
    assert_int_equal(leat_ntp_short(LEAT_SECOND + LEAT_SECOND / 4), 0x14000);
    assert_int_equal(leat_ntp_short(LEAT_TIME_NEVER), UINT32_MAX);
    assert_int_equal(leat_ntp_short_time(0x14000), LEAT_SECOND + LEAT_SECOND / 4);
    assert_int_equal(leat_ntp_middle(0x1234567890abcdef), 0x567890ab);
}

/* Both ends: a report goes out, is answered 300 ms later, and is back after a round trip of 80 ms.
 */
static void the_round_trip_is_what_passed_less_what_the_receiver_held(void **state)
{
    leat_report_sender sender;
    leat_rtcp_sender_info info;
    leat_rtcp_report r;
    leat_time unix_time = 1700000000 * LEAT_SECOND;

    (void)state;
    start_source();
    leat_report_sender_init(&sender, 7, RATE);
    leat_report_on_sent(&sender, 1000, 500, 0);
    leat_report_on_sent(&sender, 2000, 700, LEAT_SECOND);
    leat_report_sender_info(&sender, leat_ntp_from_unix(unix_time), LEAT_SECOND + 10 * MS, &info);
    assert_int_equal(info.packets, 2);
    assert_int_equal(info.octets, 1200);
    assert_int_equal(info.timestamp, 2900); /* 10 ms after the last packet */
    leat_report_on_packet(&source, 1, 2000, 0);
    r = block(50 * MS);
    assert_int_equal(r.last_sr, 0);
    assert_false(leat_report_on_block(&sender, &r, leat_ntp_from_unix(unix_time)));
    leat_report_on_sr(&source, &info, 50 * MS);
    r = block(350 * MS);
    assert_true(leat_report_on_block(&sender, &r, leat_ntp_from_unix(unix_time + 380 * MS)));
    assert_in_range(sender.rtt, 80 * MS - 40 * US, 80 * MS + 40 * US);
    assert_true(leat_report_on_block(&sender, &r, leat_ntp_from_unix(unix_time + 460 * MS)));
    assert_in_range(sender.rtt, 90 * MS - 40 * US, 90 * MS + 40 * US);
    assert_in_range(sender.rtt_min, 80 * MS - 40 * US, 80 * MS + 40 * US);
    assert_false(leat_report_on_block(&sender, &r, leat_ntp_from_unix(unix_time + 200 * MS)));
    assert_false(leat_report_on_block(&sender, &r, leat_ntp_from_unix(unix_time - MS)));
    r.ssrc = 8;
    assert_false(leat_report_on_block(&sender, &r, leat_ntp_from_unix(unix_time + 380 * MS)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_source_that_sent_nothing_has_no_report),
        cmocka_unit_test(losses_are_counted_in_all_and_since_the_last_report),
        cmocka_unit_test(jitter_is_the_rfcs),
        cmocka_unit_test(a_leap_is_believed_from_the_second_packet_on),
        cmocka_unit_test(a_stream_that_begins_anew_has_no_jitter_from_that),
        cmocka_unit_test(ntp_times_are_converted),
        cmocka_unit_test(the_round_trip_is_what_passed_less_what_the_receiver_held),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
