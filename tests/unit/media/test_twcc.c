/* leat/twcc.h: recorder, builder, parser, sender; the cases that went wrong elsewhere. */
#include "media_test.h"

#include <leat/limits.h>
#include <leat/rtcp.h>
#include <leat/twcc.h>

enum { MTU = 1200, MOST = 70000 };

static leat_mem *mem;
static leat_twcc_recorder recorder;
static uint8_t out[65536];

/* What all packets of one round of feedback said. */
static struct {
    leat_twcc_status status[MOST];
    size_t count;
    size_t packets;
    size_t longest;
    uint32_t reference; /* of the first */
} got;

static void start_with(size_t packets)
{
    mem = new_mem();
    assert_int_equal(leat_twcc_recorder_init(&recorder, mem, 0x11111111, packets), LEAT_OK);
}

static int start(void **state)
{
    (void)state;
    start_with(0);
    return 0;
}

static int finish(void **state)
{
    (void)state;
    leat_twcc_recorder_free(&recorder);
    leat_mem_free(mem);
    return 0;
}

static void record(uint16_t seq, leat_time at)
{
    leat_twcc_record(&recorder, 0x22222222, seq, at);
}

static void collect_packet(size_t len)
{
    bytes exact = bytes_copy(out, len);
    leat_twcc_iter it;
    size_t n;

    assert_int_equal(leat_twcc_parse(span_of(exact), &it), LEAT_OK);
    got.reference = got.packets == 0 ? it.reference : got.reference;
    while ((n = leat_twcc_read(&it, got.status + got.count, MOST - got.count)) > 0) {
        got.count += n;
    }
    got.packets++;
    got.longest = len > got.longest ? len : got.longest;
    free(exact.data);
}

static void collect(size_t mtu)
{
    size_t len;

    got.count = got.packets = got.longest = 0;
    while ((len = leat_twcc_build(&recorder, out, mtu)) > 0) {
        collect_packet(len);
    }
    assert_false(leat_twcc_pending(&recorder));
}

/* The statuses as "10011", from the number `from` on. */
static void assert_statuses(uint16_t from, const char *text)
{
    assert_int_equal(got.count, strlen(text));
    for (size_t i = 0; i < got.count; i++) {
        assert_int_equal(got.status[i].seq, (uint16_t)(from + i));
        assert_int_equal(got.status[i].received, text[i] == '1');
    }
}

static void nothing_recorded_makes_no_feedback(void **state)
{
    (void)state;
    assert_false(leat_twcc_pending(&recorder));
    assert_int_equal(leat_twcc_build(&recorder, out, MTU), 0);
    record(5, MS);
    assert_int_equal(leat_twcc_build(&recorder, out, LEAT_TWCC_BUILD_MIN - 1), 0);
    assert_true(leat_twcc_pending(&recorder));
}

/* Written by hand from the draft's drawing: base 5, 3 statuses, reference 1, count 0; a vector
 * 01 00 01; deltas of 36 ms less 64 (64 ms + 36 ms = 100 ms) and 1 ms. */
static void a_packet_has_the_drafts_bytes(void **state)
{
    (void)state;
    record(5, 100 * MS);
    record(7, 101 * MS);
    assert_bytes(out, leat_twcc_build(&recorder, out, MTU),
                 "8fcd0005 11111111 22222222 0005 0003 000001 00 d100 90 04");
    record(8, 101 * MS);
    assert_bytes(out, leat_twcc_build(&recorder, out, MTU),
                 "8fcd0005 11111111 22222222 0008 0001 000001 01 2001 94 00");
}

/* CASES: arrival deltas of 200 µs are rounded with the error carried over: never all zero, no
 * drift. */
static void deltas_of_200_us_neither_vanish_nor_drift(void **state)
{
    leat_time first = LEAT_SECOND, base;
    unsigned zero = 0;

    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        record((uint16_t)i, first + i * 200 * US);
    }
    collect(MTU);
    assert_int_equal(got.count, 1000);
    base = got.status[0].arrival;
    for (unsigned i = 0; i < 1000; i++) {
        int64_t error = (int64_t)(got.status[i].arrival - base) - (int64_t)(i * 200 * US);

        assert_true(error <= 125000 && error >= -125000);
        zero += i > 0 && got.status[i].arrival == got.status[i - 1].arrival;
    }
    assert_int_equal(zero, 200); /* one in five */
}

/* CASES: no drift from one feedback to the next either. */
static void feedbacks_follow_each_other_without_drift(void **state)
{
    leat_twcc_sender sender;
    leat_time start_at = 5 * LEAT_SECOND;
    uint64_t offset = 0;
    unsigned n = 0;

    (void)state;
    assert_int_equal(leat_twcc_sender_init(&sender, mem, 0), LEAT_OK);
    for (unsigned round = 0; round < 1000; round++) {
        leat_twcc_iter it;
        leat_twcc_status status;
        size_t len;

        for (unsigned i = 0; i < 7; i++, n++) {
            record((uint16_t)n, start_at + n * (leat_time)1234567);
        }
        len = leat_twcc_build(&recorder, out, MTU);
        assert_int_equal(leat_twcc_feedback(&sender, (leat_span){out, len}, &it), LEAT_OK);
        n -= 7;
        while (leat_twcc_next(&it, &status)) {
            int64_t error;

            offset = offset ? offset : status.arrival - start_at;
            error = (int64_t)(status.arrival - start_at - offset) - n * (int64_t)1234567;
            assert_true(error <= 250000 && error >= -250000);
            n++;
        }
    }
    assert_int_equal(sender.feedbacks, 1000);
    assert_int_equal(sender.feedbacks_lost, 0);
    leat_twcc_sender_free(&sender);
}

/* CASES: loss between two feedbacks is reported in the next. */
static void loss_between_two_feedbacks_is_in_the_next(void **state)
{
    (void)state;
    record(10, 10 * MS);
    collect(MTU);
    record(14, 20 * MS);
    collect(MTU);
    assert_statuses(11, "0001");
}

/* CASES: a late packet before the window's base re-bases it. */
static void a_late_packet_takes_the_next_feedback_back_to_it(void **state)
{
    (void)state;
    record(10, 10 * MS);
    record(12, 12 * MS);
    record(13, 13 * MS);
    collect(MTU);
    assert_statuses(10, "1011");
    record(11, 20 * MS);
    record(15, 21 * MS);
    collect(MTU);
    assert_statuses(11, "11101");
    assert_int_equal(got.status[0].arrival - got.status[1].arrival, 8 * MS);
}

static void a_packet_before_the_very_first_is_reported(void **state)
{
    (void)state;
    record(10, 10 * MS);
    record(8, 11 * MS);
    collect(MTU);
    assert_statuses(8, "101");
    record(7, 12 * MS);
    collect(MTU);
    assert_statuses(7, "1101");
}

static void a_packet_more_than_500_ms_late_is_left_out(void **state)
{
    (void)state;
    record(10, 10 * MS);
    record(12, 12 * MS);
    collect(MTU);
    record(13, 512 * MS);
    record(11, 512 * MS); /* 12 is 500 ms old */
    collect(MTU);
    assert_statuses(11, "111");
    record(20, 700 * MS);
    record(21, 1100 * MS);
    collect(MTU);
    record(14, 1100 * MS); /* 20 is 400 ms old */
    collect(MTU);
    assert_int_equal(got.status[0].seq, 14);
    record(22, 1201 * MS);
    record(15, 1201 * MS); /* now it is 501 */
    collect(MTU);
    assert_statuses(22, "1");
    assert_int_equal(recorder.arrivals.too_old, 1);
}

/* By the packet that follows it, if that is among the next 63 numbers: behind a longer gap nobody
 * can tell, and it is taken. */
static void lateness_is_told_by_a_packet_near_by(void **state)
{
    (void)state;
    for (unsigned gap = 63; gap <= 64; gap++) {
        uint16_t first = gap == 63 ? 10 : 210;
        leat_time t = gap * LEAT_SECOND;
        uint64_t before;

        record(first, t);
        record((uint16_t)(first + 1 + gap), t + 2 * MS);
        record((uint16_t)(first + 2 + gap), t + 600 * MS);
        collect(MTU);
        before = recorder.arrivals.too_old;
        record((uint16_t)(first + 1), t + 600 * MS);
        assert_int_equal(recorder.arrivals.too_old - before, gap == 63);
        record((uint16_t)(first + 3 + gap), t + 601 * MS);
        collect(MTU);
        assert_int_equal(got.status[0].seq, gap == 63 ? first + 3 + gap : first + 1u);
    }
}

/* A damaged number makes a gap of thousands: the stream goes on before it, for longer than the
 * window, and each of its packets is reported. */
static void a_number_far_ahead_does_not_silence_the_stream(void **state)
{
    (void)state;
    record(1, 0);
    record(5001, MS);
    collect(MTU);
    for (uint16_t i = 2; i < 200; i++) {
        record(i, i * 10 * MS);
        collect(MTU);
        assert_true(got.count > 0);
        assert_int_equal(got.status[0].seq, i);
        assert_true(got.status[0].received);
    }
    assert_int_equal(recorder.arrivals.too_old, 0);
}

/* CASES: a duplicate is counted once, and the first arrival stands. */
static void a_duplicate_counts_once_with_its_first_arrival(void **state)
{
    (void)state;
    record(1, 0);
    record(2, 10 * MS);
    record(2, 50 * MS);
    collect(MTU);
    assert_statuses(1, "11");
    assert_int_equal(got.status[1].arrival - got.status[0].arrival, 10 * MS);
    record(2, 60 * MS);
    assert_false(leat_twcc_pending(&recorder));
    assert_int_equal(recorder.arrivals.duplicates, 2);
}

/* CASES: a span of more than 65,535 numbers. Each leap is below 2^15, as it must be. */
static void a_span_of_more_than_65535_numbers_is_handled(void **state)
{
    static const uint16_t leaps[] = {0, 30000, 60000, 90000 - 65536, 120000 - 65536};

    finish(state);
    start_with(LEAT_TWCC_RECORD_MAX);
    for (size_t i = 0; i < 5; i++) {
        record(leaps[i], (leat_time)i * MS);
    }
    collect(MTU);
    assert_int_equal(got.count, 65536); /* what the ring holds */
    assert_int_equal(got.status[got.count - 1].seq, leaps[4]);
    for (size_t i = 0; i < got.count; i++) {
        uint16_t back = (uint16_t)(leaps[4] - got.status[i].seq);

        assert_int_equal(got.status[i].received, back % 30000 == 0);
    }
    assert_int_equal(recorder.arrivals.unreported, 120001 - 65536);
    assert_true(got.packets > 1);
    assert_true(got.longest <= MTU);
}

static void every_number_of_a_full_ring_is_reported(void **state)
{
    finish(state);
    start_with(LEAT_TWCC_RECORD_MAX);
    for (unsigned i = 0; i < 65536; i++) {
        record((uint16_t)(i + 100), i * 30 * US);
    }
    collect(MTU);
    assert_int_equal(got.count, 65536);
    for (size_t i = 0; i < got.count; i++) {
        assert_true(got.status[i].received);
        assert_int_equal(got.status[i].seq, (uint16_t)(i + 100));
    }
    assert_true(got.longest <= MTU);
}

/* CASES: the sequence number wraps. */
static void numbers_wrap(void **state)
{
    (void)state;
    record(65534, 0);
    record(65535, MS);
    record(1, 2 * MS);
    collect(MTU);
    assert_statuses(65534, "1101");
    record(0, 3 * MS);
    collect(MTU);
    assert_statuses(0, "11");
    for (unsigned i = 2; i < 200000; i++) {
        record((uint16_t)i, i * MS);
        if (i % 50 == 0) {
            collect(MTU);
            assert_int_equal(got.count, i == 50 ? 49 : 50);
        }
    }
}

/* CASES: the 24-bit reference time wraps from 0x7FFFFF to 0x800000, and from 0xFFFFFF to 0. */
static void the_reference_time_wraps(void **state)
{
    static const uint32_t before[] = {0x7fffff, 0xffffff};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        leat_time at = (leat_time)before[i] * LEAT_TWCC_REFERENCE + 63 * MS;
        leat_twcc_sender sender;
        leat_twcc_iter it;
        leat_twcc_status a = {0}, b = {0};
        size_t len;

        finish(state);
        start_with(0);
        assert_int_equal(leat_twcc_sender_init(&sender, mem, 0), LEAT_OK);
        record(1, at);
        len = leat_twcc_build(&recorder, out, MTU);
        assert_int_equal(leat_twcc_feedback(&sender, (leat_span){out, len}, &it), LEAT_OK);
        assert_int_equal(it.reference, before[i]);
        assert_true(leat_twcc_next(&it, &a));
        record(2, at + 2 * MS);
        len = leat_twcc_build(&recorder, out, MTU);
        assert_int_equal(leat_twcc_feedback(&sender, (leat_span){out, len}, &it), LEAT_OK);
        assert_int_equal(it.reference, (before[i] + 1) & 0xffffff);
        assert_true(leat_twcc_next(&it, &b));
        assert_int_equal(b.arrival - a.arrival, 2 * MS);
        leat_twcc_sender_free(&sender);
    }
}

/* CASES: a feedback never exceeds the MTU: it is split. */
static void feedback_is_split_at_every_size(void **state)
{
    (void)state;
    for (size_t mtu = LEAT_TWCC_BUILD_MIN; mtu < 300; mtu++) {
        leat_prng prng;
        leat_time at = 0;
        uint16_t seq = 0;
        unsigned received = 0, reported = 0;

        finish(state);
        start_with(0);
        leat_prng_seed(&prng, mtu);
        for (unsigned i = 0; i < 500; i++) {
            at += leat_prng_below(&prng, 3) ? 300 * US : 100 * MS;
            seq = (uint16_t)(seq + 1 + (leat_prng_below(&prng, 4) ? 0 : leat_prng_below(&prng, 9)));
            record(seq, at);
            received++;
        }
        collect(mtu);
        assert_true(got.longest <= mtu);
        assert_true(got.packets > 1);
        for (size_t i = 0; i < got.count; i++) {
            reported += got.status[i].received;
        }
        assert_int_equal(reported, received);
        assert_int_equal(recorder.count, (uint8_t)got.packets);
    }
}

/* A packet is filled well: of 1200 bytes not more than a chunk and the padding are left over while
 * statuses follow. */
static void a_split_wastes_little(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 4000; i++) {
        record((uint16_t)i, i * MS);
    }
    assert_true(leat_twcc_build(&recorder, out, MTU) >= MTU - 4);
}

static void a_pause_beyond_16_bits_of_ticks_begins_a_new_packet(void **state)
{
    (void)state;
    record(1, 0);
    record(2, 9 * LEAT_SECOND);
    record(3, 9 * LEAT_SECOND + 8 * LEAT_SECOND);
    collect(MTU);
    assert_int_equal(got.packets, 2);
    assert_statuses(1, "111");
}

/* CASES: symbols that pad the last status vector are not losses. */
static void padding_of_the_last_vector_is_no_loss(void **state)
{
    (void)state;
    for (uint16_t i = 0; i < 15; i++) {
        if (i % 2 == 0) {
            record(i, i * MS);
        }
    }
    collect(MTU);
    assert_statuses(0, "101010101010101");
}

/* CASES: a leap ahead by thousands neither allocates nor stalls. (tests/alloc counts for the whole
 * process.) */
static void a_leap_ahead_neither_allocates_nor_loses_the_way(void **state)
{
    leat_mem_stats before, after;

    (void)state;
    leat_mem_stats_get(mem, &before);
    record(1, 0);
    collect(MTU);
    for (unsigned i = 1; i < 10000; i++) {
        record((uint16_t)(i * 20000), i * MS);
        if (i % 3 == 0) {
            while (leat_twcc_build(&recorder, out, MTU) > 0) {
            }
        }
    }
    leat_mem_stats_get(mem, &after);
    assert_int_equal(before.grown, after.grown);
    assert_int_equal(before.system_high, after.system_high);
    record((uint16_t)(9999u * 20000u + 2), 10000 * MS);
    collect(MTU);
    assert_true(got.status[got.count - 1].received);
    assert_false(got.status[got.count - 2].received);
}

/* A stream that begins anew below what the ring holds is followed from its third packet on. */
static void a_stream_that_begins_anew_is_followed(void **state)
{
    (void)state;
    for (uint16_t i = 40000; i < 40100; i++) {
        record(i, i * MS);
    }
    collect(MTU);
    for (uint16_t i = 10000; i < 10010; i++) {
        record(i, 50000 * MS + i * MS);
    }
    collect(MTU);
    assert_statuses(10002, "11111111");
    assert_int_equal(recorder.arrivals.too_old, 2);
}

/* Three old packets in a row are no new start while the stream goes on. */
static void old_packets_among_new_ones_are_no_new_start(void **state)
{
    (void)state;
    for (uint16_t i = 40000; i < 40100; i++) {
        record(i, i * MS);
        record((uint16_t)(i - 30000), i * MS);
    }
    collect(MTU);
    assert_int_equal(got.count, 100);
    assert_int_equal(got.status[0].seq, 40000);
}

static void settings_out_of_bounds_are_refused(void **state)
{
    leat_twcc_recorder r;
    leat_twcc_sender s;

    (void)state;
    assert_int_equal(leat_twcc_recorder_init(&r, mem, 0, 100), LEAT_ERR_INVALID);
    assert_int_equal(leat_twcc_recorder_init(&r, mem, 0, 32), LEAT_ERR_INVALID);
    assert_int_equal(leat_twcc_recorder_init(&r, mem, 0, 131072), LEAT_ERR_INVALID);
    leat_twcc_recorder_free(&r);
    assert_int_equal(leat_twcc_sender_init(&s, mem, 3), LEAT_ERR_INVALID);
    leat_twcc_sender_free(&s);
}

/* ---- parser -----------------------------------------------------------------------------------
 */

static leat_err parse_hex(const char *hex, leat_twcc_iter *it)
{
    bytes b = bytes_hex(hex);
    leat_err err = leat_twcc_parse(span_of(b), it);
    leat_twcc_status status;

    while (leat_twcc_next(it, &status)) { /* ASan sees a step too far */
    }
    free(b.data);
    return err;
}

#define HEAD "11111111 22222222 0005 "

static void bad_feedback_is_refused_with_the_right_error(void **state)
{
    static const struct {
        const char *hex;
        leat_err err;
    } cases[] = {
        {"8fcd", LEAT_ERR_TRUNCATED},
        {"8fcd0003 11111111 22222222 00050001", LEAT_ERR_TRUNCATED}, /* no reference */
        {"8fcd0004" HEAD "0001 000001 00", LEAT_ERR_TRUNCATED},      /* no chunk */
        {"8fcd0005" HEAD "0001 000001 00 2001 90 00", LEAT_OK},
        {"8fcd0006" HEAD "0001 000001 00 2001 90 00", LEAT_ERR_MALFORMED}, /* longer than it is */
        {"8fcd0004" HEAD "0001 000001 00 2001 90 00", LEAT_ERR_MALFORMED},
        {"4fcd0005" HEAD "0001 000001 00 2001 90 00", LEAT_ERR_MALFORMED}, /* version 1 */
        {"8ecd0005" HEAD "0001 000001 00 2001 90 00", LEAT_ERR_INVALID},   /* another format */
        {"8fce0005" HEAD "0001 000001 00 2001 90 00", LEAT_ERR_INVALID},   /* PSFB */
        {"8fcd0005" HEAD "0000 000001 00 2001 90 00", LEAT_ERR_MALFORMED}, /* no status */
        {"8fcd0005" HEAD "0001 000001 00 2000 90 00", LEAT_ERR_MALFORMED}, /* a run of none */
        {"8fcd0005" HEAD "0001 000001 00 6001 90 00", LEAT_ERR_MALFORMED}, /* reserved, run */
        {"8fcd0005" HEAD "0001 000001 00 f000 90 00", LEAT_ERR_MALFORMED}, /* reserved, vector */
        {"8fcd0005" HEAD "0001 000001 00 d0c0 90 00", LEAT_OK}, /* reserved, past the last */
        {"8fcd0005" HEAD "0003 000001 00 2003 90 00", LEAT_ERR_TRUNCATED}, /* deltas missing */
        {"8fcd0005" HEAD "0002 000001 00 4002 90 00", LEAT_ERR_TRUNCATED},
        {"8fcd0005" HEAD "2003 000001 00 1fff 20 04",
         LEAT_ERR_TRUNCATED},                                   /* 4 deltas, none there */
        {"8fcd0005" HEAD "2003 000001 00 1fff 00 04", LEAT_OK}, /* two runs of losses */
        {"afcd0005" HEAD "0001 000001 00 2001 90 01", LEAT_OK},
        {"afcd0005" HEAD "0001 000001 00 2001 90 00", LEAT_ERR_MALFORMED}, /* no padding at all */
        {"afcd0005" HEAD "0001 000001 00 2001 90 02",
         LEAT_ERR_TRUNCATED}, /* the delta padded away */
        {"afcd0005" HEAD "0001 000001 00 2001 90 ff", LEAT_ERR_MALFORMED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        leat_twcc_iter it;
        leat_err err = parse_hex(cases[i].hex, &it);

        if (err != cases[i].err) {
            fail_msg("case %zu: %s, not %s", i, leat_err_name(err), leat_err_name(cases[i].err));
        }
        assert_int_equal(it.left, 0);
    }
}

/* A packet made by hand with every kind of chunk, large and negative deltas. */
static void every_kind_of_chunk_is_read(void **state)
{
    bytes b = bytes_hex("afcd0009" HEAD "001a 000002 07"
                        " a800"      /* 1 0 1, then eleven losses */
                        " d240"      /* two bits: 1 0 2 1 0 0 0 */
                        " 2003 0002" /* three small, two losses */
                        " 04 08 04 ff38 00 01 02 03 000003");
    static const int64_t ticks[] = {4, 12, 16, -184, -184, -183, -181, -178};
    static const uint16_t at[] = {0, 2, 14, 16, 17, 21, 22, 23};
    leat_twcc_iter it;
    leat_twcc_status status;
    size_t n = 0, seen = 0;

    (void)state;
    assert_int_equal(leat_twcc_parse(span_of(b), &it), LEAT_OK);
    assert_int_equal(it.count, 7);
    assert_int_equal(it.status_count, 26);
    while (leat_twcc_next(&it, &status)) {
        assert_int_equal(status.seq, 5 + n);
        if (status.received) {
            int64_t since =
                (int64_t)status.arrival - (int64_t)((2 + (1 << 24)) * LEAT_TWCC_REFERENCE);

            assert_int_equal(n, at[seen]);
            assert_int_equal(since, ticks[seen] * (int64_t)LEAT_TWCC_TICK);
            seen++;
        }
        n++;
    }
    assert_int_equal(n, 26);
    assert_int_equal(seen, 8);
    free(b.data);
}

static void one_at_a_time_and_many_at_once_read_the_same(void **state)
{
    leat_prng prng;

    (void)state;
    leat_prng_seed(&prng, 3);
    for (int round = 0; round < 300; round++) {
        static leat_twcc_status many[4096];
        leat_time at = (leat_time)round * LEAT_SECOND;
        leat_twcc_iter one, all;
        leat_twcc_status status = {0};
        size_t len, n, count = 0;

        for (int i = 0; i < 300; i++) {
            at += leat_prng_below(&prng, leat_prng_below(&prng, 20) ? MS : 80 * MS);
            if (leat_prng_below(&prng, 100) >= (uint64_t)round % 40) {
                record((uint16_t)(round * 300 + i), at);
            }
        }
        len = leat_twcc_build(&recorder, out, MTU);
        assert_int_equal(leat_twcc_parse((leat_span){out, len}, &one), LEAT_OK);
        all = one;
        while ((n = leat_twcc_read(&all, many + count, leat_prng_between(&prng, 1, 40))) > 0) {
            count += n;
        }
        assert_int_equal(count, one.status_count);
        for (size_t i = 0; i < count; i++) {
            assert_true(leat_twcc_next(&one, &status));
            assert_int_equal(status.seq, many[i].seq);
            assert_int_equal(status.received, many[i].received);
            assert_int_equal(status.arrival, many[i].arrival);
        }
        assert_false(leat_twcc_next(&one, &status));
    }
}

static void random_bytes_are_refused_or_read_within_bounds(void **state)
{
    seeds s = seeds_start(SLOW_BUILD ? 20000 : 200000);

    (void)state;
    for (; s.next <= s.last; s.next++) {
        uint8_t buf[64];
        leat_prng prng;
        size_t len;
        bytes exact;
        leat_twcc_iter it;
        leat_twcc_status status;
        unsigned n = 0;

        leat_prng_seed(&prng, s.next);
        leat_prng_fill(&prng, buf, sizeof buf);
        len = 4 * leat_prng_between(&prng, 1, 16);
        buf[0] = leat_prng_below(&prng, 4) ? 0x8f : 0xaf;
        buf[1] = 205;
        buf[2] = 0;
        buf[3] = (uint8_t)(len / 4 - 1);
        buf[14] = 0;
        buf[len - 1] = (uint8_t)leat_prng_below(&prng, 8);
        exact = bytes_copy(buf, len);
        if (leat_twcc_parse(span_of(exact), &it) == LEAT_OK) {
            while (leat_twcc_next(&it, &status)) {
                n++;
            }
            assert_seed(n == it.status_count, s.next);
        }
        free(exact.data);
    }
}

/* ---- sender -----------------------------------------------------------------------------------
 */

static leat_twcc_sender sender;
static leat_fb_result results[300];

/* Builds what is pending and reads it at the sender; returns the number of results. */
static size_t feed_back(void)
{
    size_t len = leat_twcc_build(&recorder, out, MTU);
    leat_twcc_iter it;

    assert_int_equal(leat_twcc_feedback(&sender, (leat_span){out, len}, &it), LEAT_OK);
    return leat_twcc_results(&sender, &it, results, 300);
}

static void results_tell_what_became_of_each_packet(void **state)
{
    (void)state;
    assert_int_equal(leat_twcc_sender_init(&sender, mem, 0), LEAT_OK);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(leat_twcc_next_seq(&sender), i);
        assert_int_equal(leat_twcc_sent(&sender, i * MS, 100 + i), i);
    }
    assert_int_equal(sender.sent.in_flight, 1045);
    for (unsigned i = 0; i < 8; i++) {
        if (i != 3) {
            record((uint16_t)i, 50 * MS + i * MS);
        }
    }
    assert_int_equal(feed_back(), 8);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal((uint16_t)results[i].seq, i);
        assert_int_equal(results[i].sent, i * MS);
        assert_int_equal(results[i].size, 100 + i);
        assert_int_equal(results[i].state, i == 3 ? LEAT_FB_LOST : LEAT_FB_ARRIVED);
        assert_int_equal(results[i].ssrc, 0x22222222);
        assert_false(results[i].late);
        if (i != 3) {
            assert_int_equal(results[i].arrived - results[0].arrived, i * MS);
        } else {
            assert_int_equal(results[i].arrived, LEAT_TIME_NEVER);
        }
    }
    assert_int_equal(leat_fb_history_in_flight(&sender.sent), 108 + 109);
    /* 3 comes late; 4 to 7 are told of again, which is no news. */
    record(3, 60 * MS);
    assert_int_equal(feed_back(), 1);
    assert_int_equal((uint16_t)results[0].seq, 3);
    assert_int_equal(results[0].state, LEAT_FB_ARRIVED);
    assert_true(results[0].late);
    leat_twcc_sender_free(&sender);
}

static void results_come_in_pieces_that_fit(void **state)
{
    leat_twcc_iter it;
    size_t len, n, total = 0;

    (void)state;
    assert_int_equal(leat_twcc_sender_init(&sender, mem, 0), LEAT_OK);
    for (unsigned i = 0; i < 100; i++) {
        record(leat_twcc_sent(&sender, i, 10), i * MS);
    }
    len = leat_twcc_build(&recorder, out, MTU);
    assert_int_equal(leat_twcc_feedback(&sender, (leat_span){out, len}, &it), LEAT_OK);
    while ((n = leat_twcc_results(&sender, &it, results, 7)) > 0) {
        for (size_t i = 0; i < n; i++) {
            assert_int_equal((uint16_t)results[i].seq, total++);
        }
    }
    assert_int_equal(total, 100);
    assert_int_equal(leat_fb_history_in_flight(&sender.sent), 0);
    leat_twcc_sender_free(&sender);
}

static void feedback_on_what_was_never_sent_has_no_result(void **state)
{
    (void)state;
    assert_int_equal(leat_twcc_sender_init(&sender, mem, 64), LEAT_OK);
    record(1000, 0);
    record(1001, MS);
    assert_int_equal(feed_back(), 0);
    for (unsigned i = 0; i < 1100; i++) { /* 1000 was sent, and 64 are remembered */
        leat_twcc_sent(&sender, i, 10);
    }
    record(1002, 2 * MS);
    record(1050, 3 * MS);
    assert_int_equal(feed_back(), 15); /* 1036 to 1050 */
    assert_int_equal(results[0].seq % 65536, 1036);
    leat_twcc_sender_free(&sender);
}

static void lost_feedback_is_counted(void **state)
{
    (void)state;
    assert_int_equal(leat_twcc_sender_init(&sender, mem, 0), LEAT_OK);
    record(1, MS);
    feed_back();
    for (unsigned i = 2; i < 5; i++) {
        record((uint16_t)i, i * MS);
        leat_twcc_build(&recorder, out, MTU);
    }
    record(5, 5 * MS);
    feed_back();
    assert_int_equal(sender.feedbacks, 2);
    assert_int_equal(sender.feedbacks_lost, 3);
    leat_twcc_sender_free(&sender);
}

#define case_of(test) cmocka_unit_test_setup_teardown(test, start, finish)

int main(void)
{
    const struct CMUnitTest tests[] = {
        case_of(nothing_recorded_makes_no_feedback),
        case_of(a_packet_has_the_drafts_bytes),
        case_of(deltas_of_200_us_neither_vanish_nor_drift),
        case_of(feedbacks_follow_each_other_without_drift),
        case_of(loss_between_two_feedbacks_is_in_the_next),
        case_of(a_late_packet_takes_the_next_feedback_back_to_it),
        case_of(a_packet_before_the_very_first_is_reported),
        case_of(a_packet_more_than_500_ms_late_is_left_out),
        case_of(lateness_is_told_by_a_packet_near_by),
        case_of(a_number_far_ahead_does_not_silence_the_stream),
        case_of(a_duplicate_counts_once_with_its_first_arrival),
        case_of(a_span_of_more_than_65535_numbers_is_handled),
        case_of(every_number_of_a_full_ring_is_reported),
        case_of(numbers_wrap),
        case_of(the_reference_time_wraps),
        case_of(feedback_is_split_at_every_size),
        case_of(a_split_wastes_little),
        case_of(a_pause_beyond_16_bits_of_ticks_begins_a_new_packet),
        case_of(padding_of_the_last_vector_is_no_loss),
        case_of(a_leap_ahead_neither_allocates_nor_loses_the_way),
        case_of(a_stream_that_begins_anew_is_followed),
        case_of(old_packets_among_new_ones_are_no_new_start),
        case_of(settings_out_of_bounds_are_refused),
        case_of(bad_feedback_is_refused_with_the_right_error),
        case_of(every_kind_of_chunk_is_read),
        case_of(one_at_a_time_and_many_at_once_read_the_same),
        case_of(random_bytes_are_refused_or_read_within_bounds),
        case_of(results_tell_what_became_of_each_packet),
        case_of(results_come_in_pieces_that_fit),
        case_of(feedback_on_what_was_never_sent_has_no_result),
        case_of(lost_feedback_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
