/* The context's random bytes. The expected key stream is the first test vector of RFC 8439's
 * ChaCha20 with an all-zero key and nonce (appendix A.1, block counter 0 and 1).
 *
 * SPDX-License-Identifier: MIT
 */
#include "hex.h"

#include "crypto/random.h"

static void test_output_is_the_cipher_stream_behind_the_next_key(void **state)
{
    (void)state;
    const uint8_t seed[LEAT_RANDOM_SEED] = {0};
    leat_random random;
    uint8_t out[96];
    leat_random_init(&random, seed);
    leat_random_fill(&random, out, sizeof out);
    /* A.1 #1, second half of the block; A.1 #2, the whole block. */
    assert_hex(out, 96,
               "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
               "9f07e7be5551387a98ba977c732d080dcb0f29a048e3656912c6533e32ee7aed"
               "29b721769ce64e43d57133b074d839d531ed1f28510afb45ace10a1f4b794d6f");
    /* A.1 #1, first half, is the key that replaces the seed. */
    assert_hex(random.key, 32, "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7");
}

static void test_bytes_given_out_are_wiped_from_the_state(void **state)
{
    (void)state;
    const uint8_t seed[LEAT_RANDOM_SEED] = {7};
    const uint8_t zero[64] = {0};
    leat_random random;
    uint8_t out[64];
    leat_random_init(&random, seed);
    leat_random_fill(&random, out, sizeof out);
    assert_memory_equal(random.buffer, zero, sizeof zero);
    assert_memory_not_equal(out, zero, sizeof zero);
}

static void test_same_seed_same_bytes_whatever_the_pieces(void **state)
{
    (void)state;
    uint8_t seed[LEAT_RANDOM_SEED] = {42};
    leat_random a;
    leat_random b;
    uint8_t whole[2000];
    uint8_t pieces[2000];
    leat_random_init(&a, seed);
    leat_random_init(&b, seed);
    leat_random_fill(&a, whole, sizeof whole);
    for (size_t at = 0, n = 1; at < sizeof pieces; at += n, n = n * 2 + 1) {
        if (n > sizeof pieces - at) {
            n = sizeof pieces - at;
        }
        leat_random_fill(&b, pieces + at, n);
    }
    assert_memory_equal(whole, pieces, sizeof whole);
    seed[31] = 1;
    leat_random_init(&b, seed);
    leat_random_fill(&b, pieces, sizeof pieces);
    assert_memory_not_equal(whole, pieces, 32);
}

static void test_below_stays_below_and_reaches_everything(void **state)
{
    (void)state;
    const uint8_t seed[LEAT_RANDOM_SEED] = {3};
    leat_random random;
    unsigned seen[7] = {0};
    leat_random_init(&random, seed);
    for (int i = 0; i < 7000; i++) {
        uint64_t v = leat_random_below(&random, 7);
        assert_true(v < 7);
        seen[v]++;
    }
    for (int i = 0; i < 7; i++) {
        assert_in_range(seen[i], 850, 1150); /* 5 standard deviations of a fair one; fixed seed */
    }
    assert_int_equal(leat_random_below(&random, 1), 0);
    uint64_t big = (UINT64_C(1) << 63) + 1; /* half of all draws are thrown away */
    for (int i = 0; i < 100; i++) {
        assert_true(leat_random_below(&random, big) < big);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_output_is_the_cipher_stream_behind_the_next_key),
        cmocka_unit_test(test_bytes_given_out_are_wiped_from_the_state),
        cmocka_unit_test(test_same_seed_same_bytes_whatever_the_pieces),
        cmocka_unit_test(test_below_stays_below_and_reaches_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
