/* The test generator: its published sequence, its ranges.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base_test.h"

static void the_sequence_is_xoshiro256starstar(void **state)
{
    /* The generator's published first outputs for the state 1, 2, 3, 4. */
    leat_prng prng = {.s = {1, 2, 3, 4}};

    (void)state;
    assert_true(leat_prng_u64(&prng) == 11520u);
    assert_true(leat_prng_u64(&prng) == 0u);
    assert_true(leat_prng_u64(&prng) == 1509978240u);
    assert_true(leat_prng_u64(&prng) == 1215971899390074240u);
}

static void the_seed_goes_through_splitmix64(void **state)
{
    leat_prng prng;

    (void)state;
    leat_prng_seed(&prng, 1234567);
    assert_true(prng.s[0] == 6457827717110365317u);
    assert_true(prng.s[1] == 3203168211198807973u);
    assert_true(prng.s[2] == 9817491932198370423u);
    assert_true(prng.s[3] == 4593380528125082431u);
}

static void below_reaches_every_value_evenly(void **state)
{
    leat_prng prng;
    unsigned seen[7] = {0};

    (void)state;
    leat_prng_seed(&prng, 1);
    for (unsigned i = 0; i < 70000; i++) {
        uint64_t v = leat_prng_below(&prng, 7);

        assert_true(v < 7);
        seen[v]++;
    }
    for (unsigned i = 0; i < 7; i++) {
        assert_in_range(seen[i], 9500, 10500);
    }
}

/* Of three quarters of 2^64 the lowest third must not come up oftener: a plain remainder gives 1/2.
 */
static void below_has_no_bias_with_a_large_bound(void **state)
{
    leat_prng prng;
    unsigned low = 0;

    (void)state;
    leat_prng_seed(&prng, 4);
    for (unsigned i = 0; i < 30000; i++) {
        low += leat_prng_below(&prng, (uint64_t)3 << 62) < (uint64_t)1 << 62;
    }
    assert_in_range(low, 9500, 10500);
}

static void between_includes_both_ends(void **state)
{
    leat_prng prng;
    bool low = false;
    bool high = false;

    (void)state;
    leat_prng_seed(&prng, 2);
    for (unsigned i = 0; i < 1000; i++) {
        uint64_t v = leat_prng_between(&prng, 10, 13);

        assert_in_range(v, 10, 13);
        low = low || v == 10;
        high = high || v == 13;
    }
    assert_true(low);
    assert_true(high);
    assert_true(leat_prng_between(&prng, 5, 5) == 5);
    (void)leat_prng_between(&prng, 0, UINT64_MAX);
}

static void fill_is_the_sequence_in_little_endian(void **state)
{
    leat_prng a;
    leat_prng b;
    uint8_t out[21];

    (void)state;
    leat_prng_seed(&a, 3);
    leat_prng_seed(&b, 3);
    leat_prng_fill(&a, out, sizeof out);
    for (unsigned i = 0; i < sizeof out; i += 8) {
        uint64_t v = leat_prng_u64(&b);

        for (unsigned k = 0; k < 8 && i + k < sizeof out; k++) {
            assert_int_equal(out[i + k], (uint8_t)(v >> (8 * k)));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sequence_is_xoshiro256starstar),
        cmocka_unit_test(the_seed_goes_through_splitmix64),
        cmocka_unit_test(below_reaches_every_value_evenly),
        cmocka_unit_test(below_has_no_bias_with_a_large_bound),
        cmocka_unit_test(between_includes_both_ends),
        cmocka_unit_test(fill_is_the_sequence_in_little_endian),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
