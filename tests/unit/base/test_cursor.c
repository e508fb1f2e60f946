/* Cursors and writers: byte order, bounds, errors that stick.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base_test.h"

#include "base/cursor.h"

static const uint8_t bytes[] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x10,
                                0x32, 0x54, 0x76, 0x98, 0xba, 0xdc, 0xfe, 0x0f, 0x1e};

static void numbers_are_read_big_endian(void **state)
{
    leat_cursor c;

    (void)state;
    leat_cursor_init(&c, bytes, sizeof bytes);
    assert_int_equal(leat_cursor_u8(&c), 0x01);
    assert_int_equal(leat_cursor_u16(&c), 0x2345);
    assert_int_equal(leat_cursor_u24(&c), 0x6789ab);
    assert_int_equal(leat_cursor_u32(&c), 0xcdef1032);
    assert_true(leat_cursor_u64(&c) == 0x547698badcfe0f1eu);
    assert_int_equal(leat_cursor_left(&c), 0);
    assert_true(leat_cursor_ok(&c));
}

static void what_is_written_reads_back(void **state)
{
    uint8_t out[sizeof bytes];
    leat_writer w;

    (void)state;
    leat_writer_init(&w, out, sizeof out);
    leat_writer_u8(&w, 0x01);
    leat_writer_u16(&w, 0x2345);
    leat_writer_u24(&w, 0x6789ab);
    leat_writer_u32(&w, 0xcdef1032);
    leat_writer_u64(&w, 0x547698badcfe0f1eu);
    assert_true(leat_writer_ok(&w));
    assert_int_equal(leat_writer_len(&w), sizeof bytes);
    assert_memory_equal(out, bytes, sizeof bytes);
}

/* Each read in turn against each length that is too short for it. */
static void a_read_past_the_end_fails_gives_zero_and_sticks(void **state)
{
    (void)state;
    for (size_t width = 1; width <= 8; width++) {
        for (size_t have = 0; have < width; have++) {
            uint8_t *heap = (uint8_t *)test_malloc(have ? have : 1);
            uint64_t got = 0;
            leat_cursor c;

            memcpy(heap, bytes, have);
            leat_cursor_init(&c, heap, have);
            switch (width) {
            case 1:
                got = leat_cursor_u8(&c);
                break;
            case 2:
                got = leat_cursor_u16(&c);
                break;
            case 3:
                got = leat_cursor_u24(&c);
                break;
            case 4:
                got = leat_cursor_u32(&c);
                break;
            case 8:
                got = leat_cursor_u64(&c);
                break;
            default:
                assert_null(leat_cursor_bytes(&c, width));
            }
            assert_true(got == 0);
            assert_false(leat_cursor_ok(&c));
            assert_int_equal(leat_cursor_left(&c), 0);
            assert_null(leat_cursor_bytes(&c, 0));
            test_free(heap);
        }
    }
}

static void a_length_that_would_wrap_the_pointer_fails(void **state)
{
    leat_cursor c;
    leat_writer w;
    uint8_t out[4];

    (void)state;
    leat_cursor_init(&c, bytes, sizeof bytes);
    assert_null(leat_cursor_bytes(&c, SIZE_MAX));
    assert_false(leat_cursor_ok(&c));
    leat_writer_init(&w, out, sizeof out);
    assert_null(leat_writer_room(&w, SIZE_MAX));
    assert_false(leat_writer_ok(&w));
}

static void no_bytes_at_all_are_fine_until_one_is_read(void **state)
{
    leat_cursor c;
    leat_writer w;

    (void)state;
    leat_cursor_init(&c, NULL, 0);
    assert_non_null(leat_cursor_bytes(&c, 0));
    assert_true(leat_cursor_ok(&c));
    leat_cursor_skip(&c, 1);
    assert_false(leat_cursor_ok(&c));
    leat_writer_init(&w, NULL, 0);
    leat_writer_bytes(&w, NULL, 0);
    assert_true(leat_writer_ok(&w));
    leat_writer_u8(&w, 1);
    assert_false(leat_writer_ok(&w));
}

static void bytes_skip_copy_and_sub_move_by_their_length(void **state)
{
    leat_cursor c;
    leat_cursor sub;
    uint8_t copy[3];

    (void)state;
    leat_cursor_init(&c, bytes, sizeof bytes);
    assert_ptr_equal(leat_cursor_bytes(&c, 2), bytes);
    leat_cursor_skip(&c, 3);
    leat_cursor_copy(&c, copy, 3);
    assert_memory_equal(copy, bytes + 5, 3);
    sub = leat_cursor_sub(&c, 4);
    assert_int_equal(leat_cursor_left(&sub), 4);
    assert_int_equal(leat_cursor_u8(&sub), bytes[8]);
    leat_cursor_skip(&sub, 4);
    assert_false(leat_cursor_ok(&sub));
    assert_true(leat_cursor_ok(&c));
    assert_int_equal(leat_cursor_u8(&c), bytes[12]);
    sub = leat_cursor_sub(&c, 100);
    assert_false(leat_cursor_ok(&sub));
    assert_false(leat_cursor_ok(&c));
    leat_cursor_copy(&c, copy, 3);
    assert_memory_equal(copy, "\0\0\0", 3);
    leat_cursor_copy(&c, NULL, 0); /* nothing goes anywhere */
    assert_false(leat_cursor_ok(&c));
}

static void a_write_that_does_not_fit_writes_nothing_and_sticks(void **state)
{
    uint8_t out[6];
    leat_writer w;

    (void)state;
    memset(out, 0xee, sizeof out);
    leat_writer_init(&w, out, 5);
    leat_writer_u16(&w, 0x0102);
    leat_writer_u32(&w, 0x03040506);
    assert_false(leat_writer_ok(&w));
    leat_writer_u8(&w, 7);
    assert_false(leat_writer_ok(&w));
    assert_int_equal(leat_writer_len(&w), 2);
    assert_int_equal(leat_writer_left(&w), 0);
    assert_null(leat_writer_room(&w, 0)); /* not even nothing */
    leat_writer_u24(&w, 8);
    assert_int_equal(leat_writer_len(&w), 2);
    assert_memory_equal(out, "\x01\x02\xee\xee\xee\xee", 6);
}

static void room_zero_and_bytes_lie_one_after_the_other(void **state)
{
    uint8_t out[8];
    leat_writer w;
    uint8_t *room;

    (void)state;
    memset(out, 0xee, sizeof out);
    leat_writer_init(&w, out, sizeof out);
    room = leat_writer_room(&w, 2);
    leat_writer_zero(&w, 3);
    leat_writer_bytes(&w, "abc", 3);
    assert_non_null(room);
    leat_store_u16(room, 6);
    assert_true(leat_writer_ok(&w));
    assert_memory_equal(out, "\0\x06\0\0\0abc", 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_read_big_endian),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(a_read_past_the_end_fails_gives_zero_and_sticks),
        cmocka_unit_test(a_length_that_would_wrap_the_pointer_fails),
        cmocka_unit_test(no_bytes_at_all_are_fine_until_one_is_read),
        cmocka_unit_test(bytes_skip_copy_and_sub_move_by_their_length),
        cmocka_unit_test(a_write_that_does_not_fit_writes_nothing_and_sticks),
        cmocka_unit_test(room_zero_and_bytes_lie_one_after_the_other),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
