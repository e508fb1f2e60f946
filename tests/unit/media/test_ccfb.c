/* leat/ccfb.h: RFC 8888 feedback: recorder, builder, parser, sender. */
#include "media_test.h"

#include <leat/ccfb.h>
#include <leat/limits.h>

enum { MTU = 1200 };

static leat_mem *mem;
static leat_ccfb_recorder recorder;
static leat_ccfb_settings settings;
static uint8_t out[65536];

static void restart(void)
{
    leat_ccfb_recorder_free(&recorder);
    assert_int_equal(leat_ccfb_recorder_init(&recorder, mem, &settings), LEAT_OK);
}

static int start(void **state)
{
    (void)state;
    mem = new_mem();
    leat_ccfb_settings_init(&settings);
    settings.sender_ssrc = 0x11111111;
    assert_int_equal(leat_ccfb_recorder_init(&recorder, mem, &settings), LEAT_OK);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    leat_ccfb_recorder_free(&recorder);
    leat_mem_free(mem);
    return 0;
}

static void record(uint32_t ssrc, uint16_t seq, leat_time at, uint8_t ecn)
{
    assert_int_equal(leat_ccfb_record(&recorder, ssrc, seq, at, ecn), LEAT_OK);
}

static size_t parse(size_t len, leat_ccfb_status *status, size_t max)
{
    bytes exact = bytes_copy(out, len);
    leat_ccfb_iter it;
    size_t n = 0;

    assert_int_equal(leat_ccfb_parse(span_of(exact), &it), LEAT_OK);
    while (n < max && leat_ccfb_next(&it, &status[n])) {
        n++;
    }
    free(exact.data);
    return n;
}

/* CASES: zero streams give a legal packet. */
static void no_stream_gives_a_legal_packet(void **state)
{
    (void)state;
    assert_bytes(out, leat_ccfb_build(&recorder, 2 * LEAT_SECOND, out, MTU),
                 "8bcd0002 11111111 00020000");
    assert_int_equal(leat_ccfb_build(&recorder, 0, out, LEAT_CCFB_BUILD_MIN - 1), 0);
}

/* By hand from the RFC's drawing: two streams; of the first, 5 and 7 of 3 numbers: num_reports is 3
 * (erratum 8166), and two bytes of padding follow; ATO 1024 is one second, ECN 3 is CE. */
static void a_packet_has_the_rfcs_bytes(void **state)
{
    (void)state;
    record(0x0a0a0a0a, 5, 1 * LEAT_SECOND, 0);
    record(0x0b0b0b0b, 65535, LEAT_SECOND + 500 * MS, 3);
    record(0x0a0a0a0a, 7, 2 * LEAT_SECOND, 1);
    record(0x0b0b0b0b, 0, 2 * LEAT_SECOND, 2);
    assert_bytes(out, leat_ccfb_build(&recorder, 2 * LEAT_SECOND, out, MTU),
                 "8bcd0009 11111111"
                 "0a0a0a0a 0005 0003 8400 0000 a000 0000"
                 "0b0b0b0b ffff 0002 e200 c000"
                 "00020000");
    assert_false(leat_ccfb_pending(&recorder));
}

static void the_reports_clock_is_that_of_the_sender_reports(void **state)
{
    (void)state;
    settings.ntp_zero = 0x1234567800000000;
    restart();
    record(1, 1, LEAT_SECOND, 0);
    assert_bytes(out, leat_ccfb_build(&recorder, LEAT_SECOND, out, MTU),
                 "8bcd0005 11111111 00000001 0001 0001 8000 0000 56790000");
}

static void times_out_of_range_are_said_to_be(void **state)
{
    leat_ccfb_status status[4];

    (void)state;
    record(1, 1, LEAT_SECOND, 0);
    record(1, 2, 9 * LEAT_SECOND, 0); /* 8189/1024 s and 8190/1024 s ago, below */
    record(1, 3, 20 * LEAT_SECOND, 0);
    assert_int_equal(parse(leat_ccfb_build(&recorder, 9 * LEAT_SECOND, out, MTU), status, 4), 3);
    assert_int_equal(status[0].ato, LEAT_CCFB_ATO_OVER);
    assert_true(status[0].received);
    assert_int_equal(status[1].ato, 0);
    assert_int_equal(status[2].ato, LEAT_CCFB_ATO_NONE); /* after the report */
    assert_true(status[2].received);
    assert_int_equal(status[2].arrival, LEAT_TIME_NEVER);
}

/* CASES: 250 streams give legal packets within the size asked for, at every size. */
static void many_streams_fit_any_size_in_turn(void **state)
{
    static leat_ccfb_status status[600];

    (void)state;
    for (size_t mtu = LEAT_CCFB_BUILD_MIN; mtu < 1500; mtu += mtu < 60 ? 1 : 97) {
        static unsigned seen[250];
        size_t packets = 0;

        restart();
        memset(seen, 0, sizeof seen);
        for (uint32_t ssrc = 0; ssrc < 250; ssrc++) {
            record(ssrc, 9, LEAT_SECOND, 0);
            record(ssrc, 11, LEAT_SECOND, 0);
        }
        do {
            size_t len = leat_ccfb_build(&recorder, LEAT_SECOND, out, mtu), n;

            assert_in_range(len, LEAT_CCFB_BUILD_MIN, mtu);
            n = parse(len, status, 600);
            for (size_t i = 0; i < n; i++) {
                assert_int_equal(status[i].seq, 9 + seen[status[i].ssrc]);
                assert_int_equal(status[i].received, status[i].seq != 10);
                seen[status[i].ssrc]++;
            }
            packets++;
        } while (leat_ccfb_pending(&recorder));
        for (size_t i = 0; i < 250; i++) {
            assert_int_equal(seen[i], 3);
        }
        assert_true(packets >= 250 * 12 / mtu);
    }
}

static void a_full_report_does_not_starve_the_last_streams(void **state)
{
    static leat_ccfb_status status[600];
    bool seen[250] = {false};

    (void)state;
    for (unsigned round = 0; round < 4; round++) { /* one packet a round: 96 of 250 streams fit */
        size_t n;

        for (uint32_t ssrc = 0; ssrc < 250; ssrc++) {
            record(ssrc, (uint16_t)round, round * 20 * MS, 0);
        }
        n = parse(leat_ccfb_build(&recorder, LEAT_SECOND, out, MTU), status, 600);
        for (size_t i = 0; i < n; i++) {
            seen[status[i].ssrc] = true;
        }
    }
    for (size_t i = 0; i < 250; i++) {
        assert_true(seen[i]);
    }
}

static void a_flood_of_made_up_streams_is_refused(void **state)
{
    (void)state;
    settings.streams = 10;
    restart();
    for (uint32_t ssrc = 0; ssrc < 10; ssrc++) {
        record(ssrc, 0, ssrc * LEAT_SECOND, 0);
    }
    for (uint32_t ssrc = 100; ssrc < 1000; ssrc++) {
        assert_int_equal(leat_ccfb_record(&recorder, ssrc, 0, 9 * LEAT_SECOND, 0), LEAT_ERR_LIMIT);
    }
    assert_int_equal(recorder.refused, 900);
    /* Stream 0 has been silent for ten seconds. */
    record(100, 0, 10 * LEAT_SECOND, 0);
    assert_int_equal(leat_ccfb_remove(&recorder, 0), LEAT_ERR_NOT_FOUND);
    assert_int_equal(leat_ccfb_remove(&recorder, 5), LEAT_OK);
    record(101, 0, 10 * LEAT_SECOND, 0);
    assert_int_equal(recorder.count, 10);
    assert_int_equal(recorder.waiting, 10);
}

static void duplicates_count_once_but_ce_stands(void **state)
{
    leat_ccfb_status status[4];

    (void)state;
    record(1, 1, 100 * MS, 1);
    record(1, 1, 200 * MS, 3);
    record(1, 2, 300 * MS, 3);
    record(1, 2, 400 * MS, 1);
    assert_int_equal(parse(leat_ccfb_build(&recorder, 612500 * US, out, MTU), status, 4), 2);
    assert_int_equal(status[0].ecn, 3);
    assert_int_equal(status[0].ato, 525); /* 512.5 ms: the first arrival's */
    assert_int_equal(status[1].ecn, 3);
    assert_int_equal(status[1].ato, 320);
}

static void late_packets_and_the_wrap_are_told(void **state)
{
    leat_ccfb_status status[8];

    (void)state;
    record(1, 65535, 10 * MS, 0);
    record(1, 2, 20 * MS, 0);
    assert_int_equal(parse(leat_ccfb_build(&recorder, 20 * MS, out, MTU), status, 8), 4);
    record(1, 0, 30 * MS, 0);
    assert_int_equal(parse(leat_ccfb_build(&recorder, 30 * MS, out, MTU), status, 8), 3);
    assert_int_equal(status[0].seq, 0);
    assert_true(status[0].received);
    assert_false(status[1].received);
    assert_true(status[2].received);
}

/* A mark that CE has raised above the newest is not an old one (seed 6990 of test_ccfb_random). */
static void a_late_packet_before_one_marked_again_is_reported(void **state)
{
    leat_ccfb_status status[4];

    (void)state;
    record(1, 1, 100 * MS, 0);
    record(1, 3, 110 * MS, 0);
    assert_int_equal(parse(leat_ccfb_build(&recorder, 110 * MS, out, MTU), status, 4), 3);
    record(1, 3, 111 * MS, 3);
    record(1, 2, 110 * MS, 0);
    assert_int_equal(parse(leat_ccfb_build(&recorder, 120 * MS, out, MTU), status, 4), 2);
    assert_true(status[0].received);
    assert_int_equal(status[1].ecn, 3);
}

static void settings_out_of_bounds_are_refused(void **state)
{
    leat_ccfb_settings bad = settings;
    leat_ccfb_recorder r;

    (void)state;
    bad.streams = 0;
    assert_int_equal(leat_ccfb_recorder_init(&r, mem, &bad), LEAT_ERR_INVALID);
    bad.streams = LEAT_CCFB_STREAMS_MAX + 1;
    assert_int_equal(leat_ccfb_recorder_init(&r, mem, &bad), LEAT_ERR_INVALID);
    bad = settings;
    bad.packets = 100;
    assert_int_equal(leat_ccfb_recorder_init(&r, mem, &bad), LEAT_ERR_INVALID);
    leat_ccfb_recorder_free(&r);
}

static void bad_reports_are_refused_with_the_right_error(void **state)
{
    static const struct {
        const char *hex;
        leat_err err;
    } cases[] = {
        {"8bcd0002 11111111 00010000", LEAT_OK},
        {"8bcd0001 11111111", LEAT_ERR_TRUNCATED},
        {"8bcd0003 11111111 00010000", LEAT_ERR_MALFORMED},
        {"8fcd0002 11111111 00010000", LEAT_ERR_INVALID},
        {"8bcd0003 11111111 00000001 00010000", LEAT_ERR_TRUNCATED},
        {"8bcd0004 11111111 00000001 0001 0000 00010000", LEAT_OK}, /* a stream without blocks */
        {"8bcd0004 11111111 00000001 0001 0001 00010000", LEAT_ERR_TRUNCATED},
        {"8bcd0005 11111111 00000001 0001 0001 8000 0000 00010000", LEAT_OK},
        {"8bcd0005 11111111 00000001 0001 0003 8000 0000 00010000", LEAT_ERR_TRUNCATED},
        {"abcd0003 11111111 00010000 00000004", LEAT_OK}, /* padded */
        {"abcd0003 11111111 00010000 00000005", LEAT_ERR_TRUNCATED},
        {"abcd0003 11111111 00010000 00000000", LEAT_ERR_MALFORMED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes b = bytes_hex(cases[i].hex);
        leat_ccfb_iter it;
        leat_ccfb_status status;
        leat_err err = leat_ccfb_parse(span_of(b), &it);

        if (err != cases[i].err) {
            fail_msg("case %zu: %s, not %s", i, leat_err_name(err), leat_err_name(cases[i].err));
        }
        while (leat_ccfb_next(&it, &status)) {
            assert_int_equal(err, LEAT_OK);
        }
        free(b.data);
    }
}

static void more_blocks_than_the_rfc_allows_are_refused(void **state)
{
    size_t len = 4 + 4 + 8 + 16386 * 2 + 4;
    bytes b = {calloc(1, len), len};
    leat_ccfb_iter it;

    (void)state;
    assert_non_null(b.data);
    memcpy(b.data, "\x8b\xcd", 2);
    b.data[2] = (uint8_t)((len / 4 - 1) >> 8);
    b.data[3] = (uint8_t)(len / 4 - 1);
    b.data[14] = 16386 >> 8;
    b.data[15] = 16386 & 0xff;
    assert_int_equal(leat_ccfb_parse(span_of(b), &it), LEAT_ERR_MALFORMED);
    free(b.data);
}

/* ---- sender -----------------------------------------------------------------------------------
 */

static void results_tell_what_became_of_each_packet(void **state)
{
    leat_ccfb_sender sender;
    leat_fb_result results[16];
    leat_ccfb_iter it;
    size_t len;

    (void)state;
    assert_int_equal(leat_ccfb_sender_init(&sender, mem, 2, 0), LEAT_OK);
    for (uint16_t i = 0; i < 4; i++) {
        assert_int_equal(leat_ccfb_sent(&sender, 10, (uint16_t)(65534 + i), i * MS, 100), LEAT_OK);
        assert_int_equal(leat_ccfb_sent(&sender, 20, i, i * MS, 200), LEAT_OK);
    }
    assert_int_equal(leat_ccfb_sent(&sender, 30, 0, 0, 1), LEAT_ERR_LIMIT);
    record(10, 65534, LEAT_SECOND, 0);
    record(10, 0, LEAT_SECOND + 10 * MS, 3);
    record(20, 1, LEAT_SECOND + 20 * MS, 1);
    record(40, 1, LEAT_SECOND, 1); /* never sent */
    len = leat_ccfb_build(&recorder, LEAT_SECOND + 50 * MS, out, MTU);
    assert_int_equal(leat_ccfb_feedback(&sender, (leat_span){out, len}, &it), LEAT_OK);
    assert_int_equal(leat_ccfb_results(&sender, &it, results, 2), 2);
    assert_int_equal(leat_ccfb_results(&sender, &it, results + 2, 14), 2);
    assert_int_equal(leat_ccfb_results(&sender, &it, results, 1), 0);
    assert_int_equal(results[1].ssrc, 10);
    assert_int_equal((uint16_t)results[1].seq, 65535);
    assert_int_equal(results[1].state, LEAT_FB_LOST);
    assert_int_equal(results[2].state, LEAT_FB_ARRIVED);
    assert_int_equal(results[2].ecn, 3);
    assert_in_range(results[2].arrived - results[0].arrived, 10 * MS - MS, 10 * MS + MS);
    assert_int_equal(results[3].ssrc, 20);
    assert_int_equal(results[3].sent, MS);
    assert_int_equal(results[3].size, 200);
    assert_int_equal(leat_fb_history_in_flight(&sender.histories[0]), 100);
    leat_ccfb_sender_free(&sender);
}

static void a_stream_that_ended_makes_room_for_another(void **state)
{
    leat_ccfb_sender sender;
    leat_fb_result results[16];
    leat_ccfb_iter it;
    size_t len;

    (void)state;
    assert_int_equal(leat_ccfb_sender_init(&sender, mem, 2, 64), LEAT_OK);
    assert_int_equal(leat_ccfb_sent(&sender, 10, 1, 0, 100), LEAT_OK);
    assert_int_equal(leat_ccfb_sent(&sender, 20, 1, 0, 200), LEAT_OK);
    assert_int_equal(leat_ccfb_sent(&sender, 30, 1, 0, 300), LEAT_ERR_LIMIT);
    assert_int_equal(leat_ccfb_in_flight(&sender), 300);
    assert_int_equal(leat_ccfb_sender_remove(&sender, 30), LEAT_ERR_NOT_FOUND);
    assert_int_equal(leat_ccfb_sender_remove(&sender, 10), LEAT_OK);
    assert_int_equal(leat_ccfb_sender_remove(&sender, 10), LEAT_ERR_NOT_FOUND);
    assert_int_equal(leat_ccfb_in_flight(&sender), 200);
    assert_int_equal(leat_ccfb_sent(&sender, 30, 1, 0, 300), LEAT_OK);
    assert_int_equal(leat_ccfb_in_flight(&sender), 500);
    record(10, 1, LEAT_SECOND, 0);
    record(20, 1, LEAT_SECOND, 0);
    record(30, 1, LEAT_SECOND, 0);
    len = leat_ccfb_build(&recorder, LEAT_SECOND, out, MTU);
    assert_int_equal(leat_ccfb_feedback(&sender, (leat_span){out, len}, &it), LEAT_OK);
    assert_int_equal(leat_ccfb_results(&sender, &it, results, 16), 2);
    assert_int_equal(results[0].size, 200);
    assert_int_equal(results[1].size, 300);
    assert_int_equal(leat_ccfb_in_flight(&sender), 0);
    leat_ccfb_sender_free(&sender);
}

static void time_goes_on_when_the_reports_clock_wraps(void **state)
{
    leat_ccfb_sender sender;
    leat_ccfb_iter it;
    leat_ccfb_status status;
    leat_time last = 0, at = 65530 * LEAT_SECOND;

    (void)state;
    assert_int_equal(leat_ccfb_sender_init(&sender, mem, 2, 0), LEAT_OK);
    for (unsigned i = 0; i < 12; i++, at += LEAT_SECOND) {
        size_t len;

        record(1, (uint16_t)i, at, 0);
        len = leat_ccfb_build(&recorder, at, out, MTU);
        assert_int_equal(leat_ccfb_feedback(&sender, (leat_span){out, len}, &it), LEAT_OK);
        assert_true(leat_ccfb_next(&it, &status));
        assert_true(i == 0 || status.arrival - last == LEAT_SECOND);
        last = status.arrival;
    }
    leat_ccfb_sender_free(&sender);
}

static void a_packet_that_did_not_come_has_no_mark(void **state)
{
    bytes b = bytes_hex("8bcd0005 00000001 00000002 00050001 6000 0000 00010000");
    leat_ccfb_status status;
    leat_ccfb_iter it;

    (void)state;
    assert_int_equal(leat_ccfb_parse((leat_span){b.data, b.len}, &it), LEAT_OK);
    assert_true(leat_ccfb_next(&it, &status));
    assert_false(status.received);
    assert_int_equal(status.ecn, 0);
    assert_false(leat_ccfb_next(&it, &status));
    free(b.data);
}

#define case_of(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_packet_that_did_not_come_has_no_mark),
        case_of(no_stream_gives_a_legal_packet),
        case_of(a_packet_has_the_rfcs_bytes),
        case_of(the_reports_clock_is_that_of_the_sender_reports),
        case_of(times_out_of_range_are_said_to_be),
        case_of(many_streams_fit_any_size_in_turn),
        case_of(a_full_report_does_not_starve_the_last_streams),
        case_of(a_flood_of_made_up_streams_is_refused),
        case_of(duplicates_count_once_but_ce_stands),
        case_of(late_packets_and_the_wrap_are_told),
        case_of(a_late_packet_before_one_marked_again_is_reported),
        case_of(settings_out_of_bounds_are_refused),
        case_of(bad_reports_are_refused_with_the_right_error),
        case_of(more_blocks_than_the_rfc_allows_are_refused),
        case_of(results_tell_what_became_of_each_packet),
        case_of(a_stream_that_ended_makes_room_for_another),
        case_of(time_goes_on_when_the_reports_clock_wraps),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
