/* Header fields while they arrive, alone: what is kept, what is too much, and what is left then.
 *
 * SPDX-License-Identifier: MIT
 */
#include "world.h"

#include "h3/http.h"

static leat_http http;
static leat_http_fields f;

static int setup(void **state)
{
    (void)state;
    assert_int_equal(leat_mem_new(NULL, &http.mem), LEAT_OK);
    http.settings.max_header_bytes = 40;
    http.settings.max_header_fields = 3;
    f = (leat_http_fields){.bytes = NULL};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    leat_http_fields_free(&http, &f);
    leat_mem_free(http.mem);
    return 0;
}

static leat_span text(const char *s)
{
    return (leat_span){(const uint8_t *)s, strlen(s)};
}

static void add(const char *name, const char *value)
{
    leat_http_fields_add(&http, &f, text(name), text(value));
}

static void assert_is(leat_span s, const char *what)
{
    assert_int_equal(s.len, strlen(what));
    assert_memory_equal(s.data, what, s.len);
}

static void fields_are_kept_in_their_order(void **state)
{
    leat_http_head head = {.content_length = 0};

    (void)state;
    add("a", "1");
    add("empty", "");
    add("b", "2");
    assert_int_equal(f.count, 3);
    leat_http_fields_finish(&f);
    head.fields = f.list;
    head.field_count = f.count;
    assert_is(leat_http_head_find(&head, "a"), "1");
    assert_is(leat_http_head_find(&head, "b"), "2"); /* as long as "a", which comes before it */
    assert_is(leat_http_head_find(&head, "empty"), "");
    assert_null(leat_http_head_find(&head, "none").data);
}

/* The last that fits, then one byte or one field more; after that nothing is taken. */
static void what_is_beyond_a_limit_is_dropped_with_all_that_follows(void **state)
{
    static const struct {
        const char *name, *value;
    } cases[] = {
        {"0123456789012345678901234567890123456", ""}, /* a name of 37, where 36 bytes are left */
        {"01234567890123456789", "01234567890123456"}, /* a value of 17, where 16 are left */
        {"", "0123456789012345678901234567890123456"},
    };

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        add("abc", "d");
        add(cases[i].name, cases[i].value);
        assert_true(f.too_large);
        assert_int_equal(f.count, 1);
        add("e", "");
        assert_int_equal(f.count, 1);
        leat_http_fields_free(&http, &f);
        assert_false(f.too_large);
    }
    add("abc", "d");
    add("01234567890123456789", "0123456789012345"); /* to the last byte */
    assert_false(f.too_large);
    leat_http_fields_free(&http, &f);
    for (int i = 0; i < 4; i++) {
        assert_false(f.too_large);
        add("a", "1");
    }
    assert_true(f.too_large);
    assert_int_equal(f.count, 3);
}

static void a_line_beyond_the_limit_is_refused_and_so_it_stays(void **state)
{
    (void)state;
    assert_true(leat_http_fields_bytes(&http, &f, text("01234567890123456789")));
    assert_true(leat_http_fields_bytes(&http, &f, text("")));
    assert_true(leat_http_fields_bytes(&http, &f, text("01234567890123456789")));
    assert_false(leat_http_fields_bytes(&http, &f, text("0")));
    assert_true(f.too_large);
    assert_false(leat_http_fields_bytes(&http, &f, text("")));
    assert_int_equal(f.bytes_len, 40);
}

static void without_memory_nothing_more_is_taken(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= 2; nth++) { /* the bytes, then the list */
        leat_mem_fault_set(http.mem, LEAT_MEM_FAULT_TAKE, nth, false);
        add("a", "1");
        assert_int_equal(leat_mem_fault_count(http.mem), 1);
        assert_true(f.no_memory);
        add("a", "1");
        assert_false(leat_http_fields_bytes(&http, &f, text("a")));
        assert_int_equal(f.count, 0);
        leat_http_fields_free(&http, &f);
        assert_false(f.no_memory);
    }
    leat_mem_fault_set(http.mem, LEAT_MEM_FAULT_TAKE, 1, false);
    assert_false(leat_http_fields_bytes(&http, &f, text("a")));
    assert_true(f.no_memory);
    leat_mem_fault_set(http.mem, LEAT_MEM_FAULT_NONE, 0, false);
}

static void a_number_is_digits_and_fits(void **state)
{
    static const char *const bad[] = {
        "", "-1", "1 ", "0x1", "1:", "/", "18446744073709551616", "99999999999999999999"};
    uint64_t value;

    (void)state;
    assert_true(leat_http_number(text("0"), &value));
    assert_int_equal(value, 0);
    assert_true(leat_http_number(text("18446744073709551615"), &value));
    assert_true(value == UINT64_MAX);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(leat_http_number(text(bad[i]), &value));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fields_are_kept_in_their_order, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_beyond_a_limit_is_dropped_with_all_that_follows,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_line_beyond_the_limit_is_refused_and_so_it_stays, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(without_memory_nothing_more_is_taken, setup, teardown),
        cmocka_unit_test(a_number_is_digits_and_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
