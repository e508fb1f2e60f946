/* The parser of post-handshake messages, alone.
 *
 * SPDX-License-Identifier: MIT
 */
#include "pair.h"

#include <leat/limits.h>

/* Two tickets of 3 and 0 bytes. */
static const uint8_t tickets[] = {4, 0, 0, 3, 'a', 'b', 'c', 4, 0, 0, 0};

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
        cmocka_unit_test(test_everything_else_ends_the_connection),
        cmocka_unit_test(test_longest_ticket_passes_and_one_byte_more_does_not),
        cmocka_unit_test(test_state_is_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
