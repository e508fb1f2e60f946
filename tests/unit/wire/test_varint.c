/* Variable-length integers: the vectors of RFC 9000 §A.1, the bounds of each length, truncation. */
#include "wire_test.h"

#include "wire/varint.h"

static void the_rfc_vectors_decode(void **state)
{
    static const struct {
        const char *hex;
        uint64_t value;
    } vectors[] = {
        {"c2197c5eff14e88c", UINT64_C(151288809941952652)},
        {"9d7f3e7d", 494878333},
        {"7bbd", 15293},
        {"25", 37},
        {"4025", 37},
    };

    (void)state;
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        bytes in = bytes_hex(vectors[i].hex);
        leat_cursor c;

        leat_cursor_init(&c, in.data, in.len);
        assert_int_equal(leat_cursor_varint(&c), vectors[i].value);
        assert_true(leat_cursor_ok(&c));
        assert_int_equal(leat_cursor_left(&c), 0);
        free(in.data);
    }
}

static const struct bound {
    uint64_t value;
    size_t len;
    const char *hex;
} bounds[] = {
    {0, 1, "00"},
    {63, 1, "3f"},
    {64, 2, "4040"},
    {16383, 2, "7fff"},
    {16384, 4, "80004000"},
    {1073741823, 4, "bfffffff"},
    {1073741824, 8, "c000000040000000"},
    {LEAT_VARINT_MAX, 8, "ffffffffffffffff"},
};

static void the_shortest_form_is_written_at_every_bound(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        bytes out = bytes_copy("12345678", bounds[i].len);
        leat_writer w;
        leat_cursor c;
        bool minimal = false;

        leat_writer_init(&w, out.data, out.len);
        leat_writer_varint(&w, bounds[i].value);
        assert_true(leat_writer_ok(&w));
        assert_int_equal(leat_varint_len(bounds[i].value), bounds[i].len);
        assert_bytes(out.data, leat_writer_len(&w), bounds[i].hex);
        leat_cursor_init(&c, out.data, out.len);
        assert_int_equal(leat_cursor_varint_minimal(&c, &minimal), bounds[i].value);
        assert_true(minimal);
        free(out.data);
    }
}

static void a_cut_integer_fails_and_is_not_read_past(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        bytes whole = bytes_hex(bounds[i].hex);

        for (size_t len = 0; len < whole.len; len++) {
            bytes cut = bytes_copy(whole.data, len);
            leat_cursor c;

            leat_cursor_init(&c, cut.data, cut.len);
            assert_int_equal(leat_cursor_varint(&c), 0);
            assert_false(leat_cursor_ok(&c));
            free(cut.data);
        }
        free(whole.data);
    }
}

static void an_integer_at_the_end_of_the_input_is_not_read(void **state)
{
    bytes in = bytes_hex("25");
    leat_cursor c;

    (void)state;
    leat_cursor_init(&c, in.data, in.len);
    assert_int_equal(leat_cursor_varint(&c), 37);
    assert_int_equal(leat_cursor_varint(&c), 0);
    assert_false(leat_cursor_ok(&c));
    free(in.data);
}

static void a_writer_without_room_fails(void **state)
{
    uint8_t out[7];
    leat_writer w;

    (void)state;
    leat_writer_init(&w, out, sizeof out);
    leat_writer_varint(&w, LEAT_VARINT_MAX);
    assert_false(leat_writer_ok(&w));
    assert_int_equal(leat_writer_len(&w), 0);
    leat_writer_init(&w, out, 1);
    assert_null(leat_writer_varint2(&w, 1));
    leat_writer_init(&w, out, 3);
    assert_null(leat_writer_varint4(&w, 1));
}

static void placeholders_are_filled_in_later(void **state)
{
    uint8_t out[6];
    leat_writer w;
    uint8_t *two;
    uint8_t *four;

    (void)state;
    leat_writer_init(&w, out, sizeof out);
    two = leat_writer_varint2(&w, 0);
    four = leat_writer_varint4(&w, 0);
    assert_bytes(out, leat_writer_len(&w), "4000 80000000");
    leat_varint_put2(two, 37);
    leat_varint_put4(four, 494878333);
    assert_bytes(out, sizeof out, "4025 9d7f3e7d");
}

static void longer_forms_are_told_from_the_shortest(void **state)
{
    static const char *const longer[] = {"4025", "80000025", "80003fff", "c000000000000000",
                                         "c00000003fffffff"};

    (void)state;
    for (size_t i = 0; i < sizeof longer / sizeof longer[0]; i++) {
        bytes in = bytes_hex(longer[i]);
        bool minimal = true;
        leat_cursor c;

        leat_cursor_init(&c, in.data, in.len);
        leat_cursor_varint_minimal(&c, &minimal);
        assert_true(leat_cursor_ok(&c));
        assert_false(minimal);
        free(in.data);
    }
}

static void a_span_longer_than_the_input_fails(void **state)
{
    static const char *const cases[] = {"", "01", "02ff", "ffffffffffffffff00", "40"};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bytes in = bytes_hex(cases[i]);
        leat_cursor c;
        leat_span span;

        leat_cursor_init(&c, in.data, in.len);
        span = leat_cursor_varint_span(&c);
        assert_false(leat_cursor_ok(&c));
        assert_int_equal(span.len, 0);
        free(in.data);
    }
}

/* Eight bytes are read at once where they are there: what follows must not matter. */
static void an_integer_reads_alike_whatever_follows(void **state)
{
    static const struct {
        uint8_t bytes[8];
        size_t len;
        uint64_t value;
    } cases[] = {
        {{0x00}, 1, 0},
        {{0x3f}, 1, 63},
        {{0x40, 0x00}, 2, 0},
        {{0x7f, 0xff}, 2, 16383},
        {{0x80, 0, 0, 0}, 4, 0},
        {{0xbf, 0xff, 0xff, 0xff}, 4, (1u << 30) - 1},
        {{0xc0, 0, 0, 0, 0, 0, 0, 1}, 8, 1},
        {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, 8, LEAT_VARINT_MAX},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (size_t more = 0; more <= 8; more++) {
            size_t len = cases[i].len + more;
            uint8_t *in = malloc(len); /* exactly, so that reading past it is seen */
            leat_cursor c;

            memset(in, 0xff, len);
            memcpy(in, cases[i].bytes, cases[i].len);
            leat_cursor_init(&c, in, len);
            assert_int_equal(leat_cursor_varint(&c), cases[i].value);
            assert_true(leat_cursor_ok(&c));
            assert_int_equal(leat_cursor_left(&c), more);
            free(in);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_rfc_vectors_decode),
        cmocka_unit_test(the_shortest_form_is_written_at_every_bound),
        cmocka_unit_test(a_cut_integer_fails_and_is_not_read_past),
        cmocka_unit_test(an_integer_at_the_end_of_the_input_is_not_read),
        cmocka_unit_test(a_writer_without_room_fails),
        cmocka_unit_test(placeholders_are_filled_in_later),
        cmocka_unit_test(longer_forms_are_told_from_the_shortest),
        cmocka_unit_test(a_span_longer_than_the_input_fails),
        cmocka_unit_test(an_integer_reads_alike_whatever_follows),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
