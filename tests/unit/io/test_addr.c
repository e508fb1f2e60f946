/* Addresses as text, and the system's two simplest services.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io_fixture.h"

static void assert_reads_as(const char *text, const char *expected)
{
    char out[LEAT_ADDR_TEXT_MAX];
    leat_addr addr = parse_addr(text);
    assert_string_equal(leat_addr_format(&addr, out), expected);
}

static void addresses_are_read_and_written(void **state)
{
    (void)state;
    assert_reads_as("127.0.0.1:4433", "127.0.0.1:4433");
    assert_reads_as("0.0.0.0:0", "0.0.0.0:0");
    assert_reads_as("[::1]:443", "[::1]:443");
    assert_reads_as("[2001:db8::7]:65535", "[2001:db8::7]:65535");
    assert_reads_as("[::ffff:10.1.2.3]:9", "10.1.2.3:9");
    assert_reads_as("[fe80::1%7]:9", "[fe80::1%7]:9");
    assert_reads_as(":4433", "[::]:4433");
    assert_reads_as("4433", "[::]:4433");
}

static void what_is_no_address_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        ":",
        "127.0.0.1",
        "127.0.0.1:",
        "127.0.0.1:65536",
        "127.0.0.1:99999999999999999999",
        "127.0.0.1:-1",
        "127.0.0.1: 80",
        "127.0.0.256:80",
        "::1:80",
        "[::1]",
        "[::1:80",
        "::1]:80",
        "[127.0.0.1]:80",
        "[]:80",
        "localhost:80",
        "[fe80::1%]:80",
        "[fe80::1%no-such-if]:80",
        "[1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb:cccc:dddd:eeee:ffff]:80",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        leat_addr addr = {.port = 7};
        if (leat_addr_parse(bad[i], &addr) != LEAT_ERR_ADDRESS) {
            fail_msg("accepted: %s", bad[i]);
        }
        assert_int_equal(addr.port, 7); /* untouched */
    }
}

static void no_address_has_a_text(void **state)
{
    (void)state;
    char out[LEAT_ADDR_TEXT_MAX];
    leat_addr none = {0};
    assert_string_equal(leat_addr_format(&none, out), "(none)");
}

static void longest_address_fits_its_text(void **state)
{
    (void)state;
    char out[LEAT_ADDR_TEXT_MAX];
    leat_addr addr = {.family = 6, .port = 65535, .scope = UINT32_MAX};
    memset(addr.ip, 0xff, 16);
    assert_string_equal(leat_addr_format(&addr, out),
                        "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff%4294967295]:65535");
}

static void numbers_resolve_to_themselves(void **state)
{
    (void)state;
    leat_addr addrs[4];
    size_t count;
    assert_int_equal(leat_addr_resolve("127.0.0.1", 80, addrs, 4, &count), LEAT_OK);
    assert_int_equal(count, 1);
    leat_addr expected = parse_addr("127.0.0.1:80");
    assert_same_addr(&addrs[0], &expected);
    assert_int_equal(leat_addr_resolve("::1", 443, addrs, 4, &count), LEAT_OK);
    expected = parse_addr("[::1]:443");
    assert_same_addr(&addrs[0], &expected);
}

static void name_with_no_address_is_an_error(void **state)
{
    (void)state;
    leat_addr addrs[4];
    size_t count = 9;
    assert_int_equal(leat_addr_resolve("no-such-name.invalid", 80, addrs, 4, &count),
                     LEAT_ERR_ADDRESS);
    assert_int_equal(count, 0);
}

static void clock_does_not_step_back(void **state)
{
    (void)state;
    leat_time before = leat_clock_now();
    for (int i = 0; i < 1000; i++) {
        leat_time now = leat_clock_now();
        assert_true(now >= before);
        before = now;
    }
}

static void entropy_fills_the_whole_buffer(void **state)
{
    (void)state;
    static uint8_t bytes[5000];
    int zeros = 0;
    assert_int_equal(leat_entropy(bytes, sizeof(bytes)), LEAT_OK);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        zeros += bytes[i] == 0;
    }
    assert_in_range(zeros, 0, 100); /* 20 expected; more than 100 does not happen by chance */
    assert_int_equal(leat_entropy(bytes, 0), LEAT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_read_and_written),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(no_address_has_a_text),
        cmocka_unit_test(longest_address_fits_its_text),
        cmocka_unit_test(numbers_resolve_to_themselves),
        cmocka_unit_test(name_with_no_address_is_an_error),
        cmocka_unit_test(clock_does_not_step_back),
        cmocka_unit_test(entropy_fills_the_whole_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
