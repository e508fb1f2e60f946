/* Hashes: SipHash-1-3 against another implementation's values; the number hash spreads.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base_test.h"

#include "base/hash.h"

typedef struct vector {
    size_t n;
    uint64_t hash;
} vector;

static void expect(const leat_hash_key *key, const vector *vectors, size_t n)
{
    uint8_t data[64];

    for (unsigned i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)i;
    }
    for (size_t i = 0; i < n; i++) {
        assert_true(leat_hash_bytes(key, data, vectors[i].n) == vectors[i].hash);
    }
}

/* From CPython 3.11, whose hash of bytes is SipHash-1-3: PYTHONHASHSEED=0 makes its key zeros and
 * PYTHONHASHSEED=7 the second key here; hash(bytes(range(n))). */
static void bytes_hash_as_siphash_1_3(void **state)
{
    static const vector zero[] = {
        {1, 0x68a914128e01e473u},  {7, 0x2f098ab0c751325au},  {8, 0xead411e67ebe2eeau},
        {15, 0xf30eb725bb91c9eau}, {20, 0x639e355ae68c0100u}, {63, 0x385d3e39e5f37359u},
    };
    static const vector seven[] = {
        {1, 0x7e255bf0210f9775u},  {7, 0x987cfd95990dd34bu},  {8, 0x8450991e34fe08deu},
        {15, 0x1517e7dc54a43f5bu}, {20, 0xeed21668d559ec9cu}, {63, 0xb1eaa0579bb21aa3u},
    };
    leat_hash_key key = {{0, 0}};

    (void)state;
    expect(&key, zero, LEAT_COUNT_OF(zero));
    key = (leat_hash_key){{0x12c874a1806f0e3du, 0x470a89d2f9d2784fu}};
    expect(&key, seven, LEAT_COUNT_OF(seven));
}

/* The IDs of streams of one kind are 4 apart; their low bits choose buckets. */
static void stream_ids_spread_over_the_low_bits(void **state)
{
    leat_prng prng = test_prng("hash");
    leat_hash_key key;
    unsigned bucket[256] = {0};

    (void)state;
    leat_prng_fill(&prng, &key, sizeof key);
    for (uint64_t id = 0; id < 4 * 16384; id += 4) {
        bucket[leat_hash_u64(&key, id) & 255]++;
    }
    for (unsigned i = 0; i < 256; i++) {
        assert_in_range(bucket[i], 1, 256); /* 64 each, were it even */
    }
}

static void another_key_gives_another_hash(void **state)
{
    leat_hash_key a = {{1, 2}};
    leat_hash_key b = {{1, 4}};
    leat_hash_key c = {{9, 2}};

    (void)state;
    assert_true(leat_hash_u64(&a, 4) != leat_hash_u64(&b, 4));
    assert_true(leat_hash_u64(&a, 4) != leat_hash_u64(&c, 4));
    assert_true(leat_hash_bytes(&a, "leat", 4) != leat_hash_bytes(&b, "leat", 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_hash_as_siphash_1_3),
        cmocka_unit_test(stream_ids_spread_over_the_low_bits),
        cmocka_unit_test(another_key_gives_another_hash),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
