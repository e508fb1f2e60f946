/* Frames written: bytes by hand, ACKs that do not fit, data that fills a packet, exact room. */
#include "wire_test.h"

#include "wire/frames.h"

static void frames_are_written_byte_for_byte(void **state)
{
    static const uint8_t path[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    leat_frame_new_connection_id id = {
        .sequence = 3, .retire_prior_to = 1, .cid = {.len = 4, .data = {0xc1, 0xc2, 0xc3, 0xc4}}};
    leat_frame_connection_close close = {.error = 10, .frame_type = 6};
    uint8_t out[256];
    leat_writer w;

    (void)state;
    close.reason = (leat_span){(const uint8_t *)"no", 2};
    memset(id.reset_token, 0xee, sizeof id.reset_token);
    leat_writer_init(&w, out, sizeof out);
    assert_true(leat_frame_write_padding(&w, 3));
    assert_true(leat_frame_write_ping(&w));
    assert_true(leat_frame_write_reset_stream(&w, 5, 256, 65535));
    assert_true(leat_frame_write_stop_sending(&w, 5, 256));
    assert_true(leat_frame_write_new_token(&w, (leat_span){path, 2}));
    assert_true(leat_frame_write_max_data(&w, 1 << 20));
    assert_true(leat_frame_write_max_stream_data(&w, 8, 1 << 20));
    assert_true(leat_frame_write_max_streams(&w, true, 5));
    assert_true(leat_frame_write_max_streams(&w, false, 5));
    assert_true(leat_frame_write_data_blocked(&w, 9));
    assert_true(leat_frame_write_stream_data_blocked(&w, 4, 9));
    assert_true(leat_frame_write_streams_blocked(&w, true, 5));
    assert_true(leat_frame_write_streams_blocked(&w, false, 5));
    assert_true(leat_frame_write_new_connection_id(&w, &id));
    assert_true(leat_frame_write_retire_connection_id(&w, 64));
    assert_true(leat_frame_write_path_challenge(&w, path));
    assert_true(leat_frame_write_path_response(&w, path));
    assert_true(leat_frame_write_connection_close(&w, &close));
    close.application = true;
    assert_true(leat_frame_write_connection_close(&w, &close));
    assert_true(leat_frame_write_handshake_done(&w));
    assert_bytes(out, leat_writer_len(&w),
                 "000000 01 04054100 8000ffff 05054100 07020102 1080100000 110880100000"
                 "1205 1305 1409 150409 1605 1705"
                 "18030104c1c2c3c4 eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee"
                 "194040 1a0102030405060708 1b0102030405060708 1c0a06026e6f 1d0a026e6f 1e");
}

static void writing_nothing_is_no_error(void **state)
{
    uint8_t out[1];
    leat_writer w;

    (void)state;
    leat_writer_init(&w, out, 0);
    assert_true(leat_frame_write_padding(&w, 0));
    assert_false(leat_frame_write_ping(&w));
    assert_true(leat_writer_ok(&w));
}

/* ---- acknowledgements ---- */

static void an_ack_is_written_byte_for_byte(void **state)
{
    static const leat_range ranges[] = {{0, 991}, {995, 996}, {998, 1001}};
    static const leat_ecn_counts ecn = {5, 64, 7};
    uint8_t out[64];
    leat_writer w;

    (void)state;
    leat_writer_init(&w, out, sizeof out);
    assert_int_equal(leat_frame_write_ack(&w, ranges, 3, 32, 16, NULL), 3);
    assert_bytes(out, leat_writer_len(&w), "02 43e8 10 02 02 0100 0343de");
    leat_writer_init(&w, out, sizeof out);
    assert_int_equal(leat_frame_write_ack(&w, ranges, 3, 2, 16, &ecn), 2);
    assert_bytes(out, leat_writer_len(&w), "03 43e8 10 01 02 0100 05404007");
    leat_writer_init(&w, out, sizeof out);
    assert_int_equal(leat_frame_write_ack(&w, ranges, 1, 1, 0, NULL), 1);
    assert_bytes(out, leat_writer_len(&w), "02 43de 00 00 43de");
}

/* Decodes the ACK that was written and compares it with the newest n of count ranges. */
static void assert_ack(bytes out, size_t len, const leat_range *ranges, size_t count, size_t n)
{
    leat_ack_iter iter;
    leat_range r;
    leat_frame f;
    leat_cursor c;

    leat_cursor_init(&c, out.data, len);
    assert_int_equal(leat_frame_decode(&c, &f), 0);
    assert_int_equal(leat_cursor_left(&c), 0);
    assert_int_equal(f.kind, LEAT_FRAME_ACK);
    assert_int_equal(f.ack.range_count, n - 1);
    assert_int_equal(f.ack.smallest, ranges[count - n].from);
    leat_ack_iter_init(&iter, &f.ack);
    for (size_t i = 0; i < n; i++) {
        assert_true(leat_ack_iter_next(&iter, &r));
        assert_int_equal(r.from, ranges[count - 1 - i].from);
        assert_int_equal(r.to, ranges[count - 1 - i].to);
    }
    assert_false(leat_ack_iter_next(&iter, &r));
}

/* From the field: too many gaps for the room there is. The newest are kept, whatever the room. */
static void an_ack_keeps_the_newest_ranges_that_fit(void **state)
{
    enum { COUNT = 200, EACH = 4 }; /* EACH: bytes a range, gap and length being 64 or more */
    static const leat_ecn_counts ecn = {1000, 0, 100000};
    leat_range ranges[COUNT];

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        ranges[i] = (leat_range){1000 * i, 1000 * i + 100};
    }
    for (size_t room = 0; room < 1000; room++) {
        for (size_t tail = 0; tail <= 7; tail += 7) {
            bytes out = {malloc(room), room};
            size_t fixed = 1 + 4 + 1 + 2 + tail; /* type, largest, delay, first range, ECN */
            size_t n;
            leat_writer w;

            leat_writer_init(&w, out.data, room);
            n = leat_frame_write_ack(&w, ranges, COUNT, COUNT, 9, tail ? &ecn : NULL);
            assert_true(leat_writer_ok(&w));
            if (n == 0) {
                assert_int_equal(leat_writer_len(&w), 0);
                assert_true(room < fixed + 1);
            } else {
                assert_ack(out, leat_writer_len(&w), ranges, COUNT, n);
                if (n < COUNT && n > 1) { /* not one more would have fitted */
                    assert_true(fixed + 2 + EACH * n > room);
                }
            }
            free(out.data);
        }
    }
}

static void an_ack_is_capped_at_the_ranges_asked_for(void **state)
{
    enum { COUNT = 200 };
    static const size_t caps[] = {1, 2, 63, 64, 65, 199, 200, 1000};
    leat_range ranges[COUNT];

    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        ranges[i] = (leat_range){2 * i, 2 * i + 1};
    }
    for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++) {
        bytes out = {malloc(2000), 2000};
        size_t want = caps[i] < COUNT ? caps[i] : COUNT;
        leat_writer w;

        leat_writer_init(&w, out.data, out.len);
        assert_int_equal(leat_frame_write_ack(&w, ranges, COUNT, caps[i], 0, NULL), want);
        assert_ack(out, leat_writer_len(&w), ranges, COUNT, want);
        free(out.data);
    }
}

static void the_largest_ack_of_one_range_has_the_size_said(void **state)
{
    static const leat_ecn_counts ecn = {LEAT_VARINT_MAX, LEAT_VARINT_MAX, LEAT_VARINT_MAX};
    leat_range range = {0, LEAT_VARINT_MAX + 1};
    uint8_t out[LEAT_FRAME_ACK_ONE_MAX];
    leat_writer w;

    (void)state;
    leat_writer_init(&w, out, sizeof out);
    assert_int_equal(leat_frame_write_ack(&w, &range, 1, 1, LEAT_VARINT_MAX, &ecn), 1);
    assert_int_equal(leat_writer_len(&w), LEAT_FRAME_ACK_ONE_MAX);
}

/* ---- data ---- */

static uint8_t pattern(size_t i)
{
    return (uint8_t)(0xa0 + i % 7);
}

static void put_pattern(leat_writer *w, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        leat_writer_u8(w, pattern(i));
    }
}

static void assert_pattern(leat_span data, size_t len)
{
    assert_int_equal(data.len, len);
    for (size_t i = 0; i < len; i++) {
        assert_int_equal(data.data[i], pattern(i));
    }
}

/* Takes the frame that was written off the packet, and the padding that may stand ahead of it. */
static leat_frame written_frame(bytes out, size_t len, const leat_data_fit *fit)
{
    leat_frame f;
    leat_cursor c;

    leat_cursor_init(&c, out.data, len);
    assert_int_equal(leat_frame_decode(&c, &f), 0);
    if (fit->pad > 0) {
        assert_int_equal(f.kind, LEAT_FRAME_PADDING);
        assert_int_equal(f.padding.len, fit->pad);
        assert_int_equal(leat_frame_decode(&c, &f), 0);
    }
    assert_int_equal(leat_cursor_left(&c), 0);
    return f;
}

/* The two things that decide: is there room for a length, and does all of it go in? */
static void a_stream_that_fills_the_packet_has_no_length(void **state)
{
    leat_data_fit fit;

    (void)state;
    fit = leat_frame_fit_stream(100, 4, 0, 1000); /* 2 bytes of head */
    assert_true(fit.fits && fit.fills && fit.len == 98 && fit.pad == 0);
    fit = leat_frame_fit_stream(100, 4, 0, 98);
    assert_true(fit.fits && fit.fills && fit.len == 98 && fit.pad == 0);
    fit = leat_frame_fit_stream(100, 4, 0, 97); /* no room for a length of 2 bytes */
    assert_true(fit.fits && fit.fills && fit.len == 97 && fit.pad == 1);
    fit = leat_frame_fit_stream(100, 4, 0, 96);
    assert_true(fit.fits && !fit.fills && fit.len == 96);
    fit = leat_frame_fit_stream(100, 4, 0, 10);
    assert_true(fit.fits && !fit.fills && fit.len == 10);
    fit = leat_frame_fit_stream(100, 4, 1 << 20, 1000); /* 4 bytes of offset */
    assert_true(fit.fits && fit.fills && fit.len == 94);
    fit = leat_frame_fit_stream(3, 4, 0, 1000);
    assert_true(fit.fits && fit.fills && fit.len == 1);
    fit = leat_frame_fit_stream(2, 4, 0, 1000); /* no data without a byte for it */
    assert_false(fit.fits);
    fit = leat_frame_fit_stream(2, 4, 0, 0); /* but a bare FIN */
    assert_true(fit.fits && fit.fills && fit.len == 0);
    fit = leat_frame_fit_stream(3, 4, 0, 0);
    assert_true(fit.fits && !fit.fills && fit.len == 0);
    fit = leat_frame_fit_stream(1, 4, 0, 0);
    assert_false(fit.fits);
}

static void a_stream_is_written_byte_for_byte(void **state)
{
    leat_data_fit fit;
    uint8_t out[8];
    leat_writer w;

    (void)state;
    leat_writer_init(&w, out, 8);
    fit = leat_frame_fit_stream(8, 4, 1024, 3);
    leat_frame_write_stream_head(&w, 4, 1024, &fit, true);
    put_pattern(&w, fit.len);
    assert_bytes(out, leat_writer_len(&w), "0f 04 4400 03 a0a1a2");
    leat_writer_init(&w, out, 8);
    fit = leat_frame_fit_stream(8, 4, 0, 100);
    leat_frame_write_stream_head(&w, 4, 0, &fit, false);
    put_pattern(&w, fit.len);
    assert_bytes(out, leat_writer_len(&w), "08 04 a0a1a2a3a4a5");
}

static void every_stream_fits_as_said(void **state)
{
    static const uint64_t ids[] = {0, 64, LEAT_VARINT_MAX};
    static const uint64_t offsets[] = {0, 1, 20000};

    (void)state;
    for (size_t left = 0; left < 150; left++) {
        for (size_t want = 0; want < 150; want++) {
            for (size_t i = 0; i < 9; i++) {
                uint64_t id = ids[i / 3];
                uint64_t offset = offsets[i % 3];
                leat_data_fit fit = leat_frame_fit_stream(left, id, offset, want);
                bytes out;
                leat_frame f;
                leat_writer w;

                if (!fit.fits) {
                    continue;
                }
                out = (bytes){malloc(left), left};
                leat_writer_init(&w, out.data, left);
                leat_frame_write_stream_head(&w, id, offset, &fit, want == fit.len);
                put_pattern(&w, fit.len);
                assert_true(leat_writer_ok(&w));
                assert_true(!fit.fills || leat_writer_left(&w) == 0);
                f = written_frame(out, leat_writer_len(&w), &fit);
                assert_int_equal(f.kind, LEAT_FRAME_STREAM);
                assert_int_equal(f.stream.stream_id, id);
                assert_int_equal(f.stream.offset, offset);
                assert_int_equal(f.stream.fin, want == fit.len);
                assert_pattern(f.stream.data, fit.len);
                free(out.data);
            }
        }
    }
}

static void every_piece_of_crypto_fits_as_said(void **state)
{
    (void)state;
    for (size_t left = 0; left < 200; left++) {
        for (size_t want = 1; want < 200; want++) {
            uint64_t offset = want * 7;
            size_t head = 1 + leat_varint_len(offset);
            leat_data_fit fit = leat_frame_fit_crypto(left, offset, want);
            bytes out;
            leat_frame f;
            leat_writer w;

            assert_false(fit.fills);
            if (!fit.fits) {
                assert_true(left < head + 2);
                continue;
            }
            if (fit.len < want) { /* as much as there is room for, but for the step of the length */
                assert_true(head + 2 + fit.len + 1 >= left);
            }
            out = (bytes){malloc(left), left};
            leat_writer_init(&w, out.data, left);
            leat_frame_write_crypto_head(&w, offset, &fit);
            put_pattern(&w, fit.len);
            assert_true(leat_writer_ok(&w));
            f = written_frame(out, leat_writer_len(&w), &fit);
            assert_int_equal(f.kind, LEAT_FRAME_CRYPTO);
            assert_int_equal(f.crypto.offset, offset);
            assert_pattern(f.crypto.data, fit.len);
            free(out.data);
        }
    }
}

static void a_datagram_fits_whole_or_not_at_all(void **state)
{
    (void)state;
    for (size_t left = 0; left < 150; left++) {
        for (size_t len = 0; len < 150; len++) {
            leat_data_fit fit = leat_frame_fit_datagram(left, len);
            bytes out;
            leat_frame f;
            leat_writer w;

            assert_int_equal(fit.fits, left > len);
            if (!fit.fits) {
                continue;
            }
            assert_true(len <= leat_frame_datagram_room(left));
            assert_int_equal(fit.len, len);
            out = (bytes){malloc(left), left};
            leat_writer_init(&w, out.data, left);
            leat_frame_write_datagram_head(&w, &fit);
            put_pattern(&w, fit.len);
            assert_true(leat_writer_ok(&w));
            f = written_frame(out, leat_writer_len(&w), &fit);
            assert_int_equal(f.kind, LEAT_FRAME_DATAGRAM);
            assert_pattern(f.datagram.data, len);
            free(out.data);
        }
    }
}

/* ---- CONNECTION_CLOSE ---- */

static void a_reason_is_cut_to_what_fits_between_characters(void **state)
{
    /* a, e with an accent (2 bytes), the euro sign (3), a musical note (4) */
    static const char reason[] = "a\xc3\xa9\xe2\x82\xac\xf0\x9d\x84\x9e";
    static const size_t whole[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10};
    leat_frame_connection_close close = {
        .application = true, .error = 1, .reason = {(const uint8_t *)reason, 10}};

    (void)state;
    for (size_t room = 0; room <= 10; room++) {
        bytes out = {malloc(3 + room), 3 + room};
        leat_frame f;
        leat_cursor c;
        leat_writer w;

        leat_writer_init(&w, out.data, out.len);
        assert_true(leat_frame_write_connection_close(&w, &close));
        leat_cursor_init(&c, out.data, leat_writer_len(&w));
        assert_int_equal(leat_frame_decode(&c, &f), 0);
        assert_int_equal(f.connection_close.reason.len, whole[room]);
        assert_memory_equal(f.connection_close.reason.data, reason, whole[room]);
        free(out.data);
    }
}

static void a_close_without_room_for_its_codes_is_not_written(void **state)
{
    leat_frame_connection_close close = {.error = 1, .frame_type = 2};
    uint8_t out[4];
    leat_writer w;

    (void)state;
    for (size_t room = 0; room <= 4; room++) {
        leat_writer_init(&w, out, room);
        assert_int_equal(leat_frame_write_connection_close(&w, &close), room == 4);
        assert_int_equal(leat_writer_len(&w), room == 4 ? 4 : 0);
        assert_true(leat_writer_ok(&w));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_are_written_byte_for_byte),
        cmocka_unit_test(writing_nothing_is_no_error),
        cmocka_unit_test(an_ack_is_written_byte_for_byte),
        cmocka_unit_test(an_ack_keeps_the_newest_ranges_that_fit),
        cmocka_unit_test(an_ack_is_capped_at_the_ranges_asked_for),
        cmocka_unit_test(the_largest_ack_of_one_range_has_the_size_said),
        cmocka_unit_test(a_stream_that_fills_the_packet_has_no_length),
        cmocka_unit_test(a_stream_is_written_byte_for_byte),
        cmocka_unit_test(every_stream_fits_as_said),
        cmocka_unit_test(every_piece_of_crypto_fits_as_said),
        cmocka_unit_test(a_datagram_fits_whole_or_not_at_all),
        cmocka_unit_test(a_reason_is_cut_to_what_fits_between_characters),
        cmocka_unit_test(a_close_without_room_for_its_codes_is_not_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
