/* Sealed tokens, stateless reset tokens, comparing and wiping.
 *
 * SPDX-License-Identifier: MIT
 */
#include "hex.h"

#include "crypto/schedule.h"
#include "crypto/secret.h"
#include "crypto/token.h"

static const uint8_t key[LEAT_TOKEN_KEY] = {1, 2, 3};
static const uint8_t other_key[LEAT_TOKEN_KEY] = {1, 2, 4};

static leat_random *some_random(void)
{
    static const uint8_t seed[LEAT_RANDOM_SEED] = {9};
    static leat_random random;
    leat_random_init(&random, seed);
    return &random;
}

static leat_span span(const char *text)
{
    return (leat_span){(const uint8_t *)text, strlen(text)};
}

static void test_token_comes_back_and_any_change_is_refused(void **state)
{
    (void)state;
    const char plain[] = "odcid and time";
    uint8_t blob[sizeof plain + LEAT_TOKEN_OVERHEAD];
    uint8_t out[sizeof plain];
    size_t n;
    assert_int_equal(leat_token_seal(key, some_random(), span("192.0.2.1"), (const uint8_t *)plain,
                                     sizeof plain, blob),
                     sizeof blob);
    assert_int_equal(leat_token_open(key, span("192.0.2.1"), blob, sizeof blob, out, &n), LEAT_OK);
    assert_int_equal(n, sizeof plain);
    assert_memory_equal(out, plain, n);

    const uint8_t zero[sizeof plain] = {0};
    for (size_t bit = 0; bit < 8 * sizeof blob; bit++) {
        blob[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(leat_token_open(key, span("192.0.2.1"), blob, sizeof blob, out, &n),
                         LEAT_ERR_CRYPTO);
        assert_int_equal(n, 0);
        assert_memory_equal(out, zero, sizeof zero);
        blob[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(leat_token_open(key, span("192.0.2.2"), blob, sizeof blob, out, &n),
                     LEAT_ERR_CRYPTO);
    assert_int_equal(leat_token_open(other_key, span("192.0.2.1"), blob, sizeof blob, out, &n),
                     LEAT_ERR_CRYPTO);
    for (size_t len = 0; len < sizeof blob; len++) {
        assert_int_equal(leat_token_open(key, span("192.0.2.1"), blob, len, out, &n),
                         LEAT_ERR_CRYPTO);
    }
}

static void test_two_tokens_of_one_text_have_nothing_in_common(void **state)
{
    (void)state;
    const uint8_t plain[16] = {0};
    uint8_t a[48];
    uint8_t b[48];
    leat_random *random = some_random();
    leat_token_seal(key, random, span(""), plain, sizeof plain, a);
    leat_token_seal(key, random, span(""), plain, sizeof plain, b);
    assert_memory_not_equal(a, b, 16);
    assert_memory_not_equal(a + 16, b + 16, 16);
    assert_memory_not_equal(a + 32, b + 32, 16);
}

static void test_empty_token_text_is_allowed(void **state)
{
    (void)state;
    uint8_t blob[LEAT_TOKEN_OVERHEAD];
    uint8_t out[1];
    size_t n = 99;
    assert_int_equal(leat_token_seal(key, some_random(), span("a"), out, 0, blob), sizeof blob);
    assert_int_equal(leat_token_open(key, span("a"), blob, sizeof blob, out, &n), LEAT_OK);
    assert_int_equal(n, 0);
}

/* RFC 4231 test case 1 for HMAC, which a reset token is the beginning of; its key is 20 bytes long,
 * so the token itself is held against leat_hmac(). */
static void test_reset_token_is_hmac_of_the_connection_id(void **state)
{
    (void)state;
    uint8_t mac[48];
    uint8_t rfc_key[20];
    memset(rfc_key, 0x0b, sizeof rfc_key);
    leat_hmac(LEAT_HASH_SHA256, rfc_key, sizeof rfc_key, (const uint8_t *)"Hi There", 8, mac);
    assert_hex(mac, 32, "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    leat_hmac(LEAT_HASH_SHA384, rfc_key, sizeof rfc_key, (const uint8_t *)"Hi There", 8, mac);
    assert_hex(mac, 48,
               "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59c"
               "faea9ea9076ede7f4af152e8b2fa9cb6");

    const uint8_t cid[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    uint8_t token[LEAT_RESET_TOKEN];
    uint8_t again[LEAT_RESET_TOKEN];
    leat_reset_token(key, cid, sizeof cid, token);
    leat_hmac(LEAT_HASH_SHA256, key, sizeof key, cid, sizeof cid, mac);
    assert_memory_equal(token, mac, sizeof token);
    leat_reset_token(key, cid, sizeof cid - 1, again);
    assert_memory_not_equal(token, again, sizeof token);
    leat_reset_token(other_key, cid, sizeof cid, again);
    assert_memory_not_equal(token, again, sizeof token);
}

static void test_compare_and_wipe(void **state)
{
    (void)state;
    uint8_t a[33];
    uint8_t b[33];
    memset(a, 0x5a, sizeof a);
    memcpy(b, a, sizeof b);
    assert_true(leat_secret_equal(a, b, sizeof a));
    assert_true(leat_secret_equal(a, b, 0));
    for (size_t i = 0; i < 8 * sizeof a; i++) {
        b[i / 8] ^= (uint8_t)(1u << i % 8);
        assert_false(leat_secret_equal(a, b, sizeof a));
        b[i / 8] ^= (uint8_t)(1u << i % 8);
    }
    const uint8_t zero[33] = {0};
    leat_wipe(a, sizeof a);
    assert_memory_equal(a, zero, sizeof a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_token_comes_back_and_any_change_is_refused),
        cmocka_unit_test(test_two_tokens_of_one_text_have_nothing_in_common),
        cmocka_unit_test(test_empty_token_text_is_allowed),
        cmocka_unit_test(test_reset_token_is_hmac_of_the_connection_id),
        cmocka_unit_test(test_compare_and_wipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
