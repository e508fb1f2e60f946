/* The parser of post-handshake messages, alone.
 *
 * SPDX-License-Identifier: MIT
 */
#include "pair.h"

#include <leat/limits.h>

#define TIMES 0, 0, 14, 16, 9, 8, 7, 6 /* lifetime, age_add */

/* Two tickets: one with a nonce, early data and an extension that nobody knows; one that is as
 * short as can be. */
static const uint8_t tickets[] = {
    4, 0,  0, 32, TIMES, 2,    'n',  'o',  0, 3, 't', 'k', 't',   0, 14, 0x7a, 0x7a, 0, 2, 1, 2,
    0, 42, 0, 4,  0xff,  0xff, 0xff, 0xff, 4, 0, 0,   14,  TIMES, 0, 0,  1,    't',  0, 0};

static void test_tickets_are_skipped_in_pieces_of_any_size(void **state)
{
    (void)state;
    for (size_t step = 1; step <= sizeof tickets; step++) {
        leat_tls_post post;
        leat_tls_post_init(&post, false);
        for (size_t at = 0; at < sizeof tickets; at += step) {
            size_t n = step < sizeof tickets - at ? step : sizeof tickets - at;
            assert_int_equal(leat_tls_post_recv(&post, tickets + at, n, NULL), 0);
        }
        assert_int_equal(post.tickets, 2);
        assert_int_equal(post.left, 0);
        assert_int_equal(post.have, 0);
    }
}

/* What bytes come to, in pieces of `step`. */
static uint64_t read_in_pieces(const uint8_t *bytes, size_t len, size_t step)
{
    leat_tls_post post;
    const char *text = NULL;
    uint64_t code = 0;

    leat_tls_post_init(&post, false);
    for (size_t at = 0; at < len && code == 0; at += step) {
        code = leat_tls_post_recv(&post, bytes + at, step < len - at ? step : len - at, &text);
        assert_int_equal(strlen(text) > 0, code != 0);
    }
    if (code != 0) { /* and so it stays */
        assert_int_equal(leat_tls_post_recv(&post, bytes, 1, &text), code);
    }
    return code;
}

static void expect(const uint8_t *bytes, size_t len, uint64_t code)
{
    for (size_t step = 1; step <= len; step++) {
        assert_int_equal(read_in_pieces(bytes, len, step), code);
    }
}

/* RFC 9001 §4.6.1. */
static void test_another_size_of_early_data_ends_the_connection(void **state)
{
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        uint8_t bytes[sizeof tickets];

        memcpy(bytes, tickets, sizeof bytes);
        bytes[32 + i] ^= 1;
        expect(bytes, sizeof bytes, LEAT_TE_PROTOCOL_VIOLATION);
    }
}

/* Each length that does not fit its message: one more, one less. */
static void test_a_malformed_ticket_ends_the_connection(void **state)
{
    static const uint8_t lengths[] = {12, 16, 21, 25, 31}; /* nonce, ticket, list, unknown, early */

    (void)state;
    expect(tickets, sizeof tickets, 0);
    for (size_t i = 0; i < sizeof lengths; i++) {
        for (int more = -1; more <= 1; more += 2) {
            uint8_t bytes[sizeof tickets];

            memcpy(bytes, tickets, sizeof bytes);
            bytes[lengths[i]] = (uint8_t)(bytes[lengths[i]] + more);
            expect(bytes, sizeof bytes, LEAT_TE_CRYPTO_ERROR + 50);
        }
    }
}

static void refused(bool is_server, uint8_t type, uint32_t len, uint64_t code)
{
    const uint8_t header[] = {type, (uint8_t)(len >> 16), (uint8_t)(len >> 8), (uint8_t)len};
    for (size_t step = 1; step <= sizeof header; step++) {
        leat_tls_post post;
        const char *text = NULL;
        uint64_t got = 0;
        leat_tls_post_init(&post, is_server);
        for (size_t at = 0; at < sizeof header && got == 0; at += step) {
            size_t n = step < sizeof header - at ? step : sizeof header - at;
            got = leat_tls_post_recv(&post, header + at, n, &text);
        }
        assert_int_equal(got, code);
        assert_true(strlen(text) > 0);
    }
}

static void test_everything_else_ends_the_connection(void **state)
{
    (void)state;
    for (unsigned type = 0; type < 256; type++) {
        refused(true, (uint8_t)type, 1, 0x10a);
        if (type == 13) {
            refused(false, 13, 1, LEAT_TE_PROTOCOL_VIOLATION);
        } else if (type != 4) {
            refused(false, (uint8_t)type, 1, 0x10a);
        }
    }
}

static void test_longest_ticket_passes_and_one_byte_more_does_not(void **state)
{
    (void)state;
    refused(false, 4, LEAT_TLS_POST_MESSAGE_DEFAULT + 1, LEAT_TE_CRYPTO_BUFFER_EXCEEDED);
    refused(false, 4, 0xffffff, LEAT_TE_CRYPTO_BUFFER_EXCEEDED);
    static uint8_t longest[4 + LEAT_TLS_POST_MESSAGE_DEFAULT] = {
        4, LEAT_TLS_POST_MESSAGE_DEFAULT >> 16, (LEAT_TLS_POST_MESSAGE_DEFAULT >> 8) & 0xff,
        LEAT_TLS_POST_MESSAGE_DEFAULT & 0xff};
    const size_t ticket = LEAT_TLS_POST_MESSAGE_DEFAULT - 13;
    longest[13] = (uint8_t)(ticket >> 8);
    longest[14] = (uint8_t)ticket;
    leat_tls_post post;
    leat_tls_post_init(&post, false);
    assert_int_equal(leat_tls_post_recv(&post, longest, sizeof longest, NULL), 0);
    assert_int_equal(post.left, 0);
}

static void test_state_is_small(void **state)
{
    (void)state;
    assert_true(sizeof(leat_tls_post) <= 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tickets_are_skipped_in_pieces_of_any_size),
        cmocka_unit_test(test_another_size_of_early_data_ends_the_connection),
        cmocka_unit_test(test_a_malformed_ticket_ends_the_connection),
        cmocka_unit_test(test_everything_else_ends_the_connection),
        cmocka_unit_test(test_longest_ticket_passes_and_one_byte_more_does_not),
        cmocka_unit_test(test_state_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
