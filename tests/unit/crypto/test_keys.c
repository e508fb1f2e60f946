/* The cache of expanded keys: what it keeps, what it forgets, and that it stops allocating.
 *
 * SPDX-License-Identifier: MIT
 */
#include "hex.h"

#include <stdlib.h>

#include "alloc_count.h"
#include "crypto/keys.h"
#include "crypto/random.h"
#include "crypto/retry.h"
#include "mem/mem.h"

enum { ENTRIES = 4, CONNECTIONS = 10 };

struct fixture {
    leat_mem *mem;
    leat_key_cache *cache;
};

static const leat_crypto_backend *backend_under_test;

static int set_up(void **state)
{
    static struct fixture f;
    *state = &f;
    if (leat_mem_new(NULL, &f.mem) != LEAT_OK) {
        return -1;
    }
    return leat_key_cache_new(f.mem, backend_under_test, ENTRIES, &f.cache);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    leat_key_cache_check(f->cache);
    leat_key_cache_free(f->cache);
    leat_mem_free(f->mem);
    return 0;
}

static leat_packet_keys keys_number(leat_aead aead, unsigned number)
{
    uint8_t secret[LEAT_SECRET_MAX];
    leat_packet_keys keys = {0};
    memset(secret, (int)number + 1, sizeof secret);
    leat_packet_keys_set(&keys, leat_schedule_for(1), aead, secret);
    return keys;
}

/* Seals and opens one packet with a key, and finds the plaintext again. */
static void use(struct fixture *f, leat_packet_keys *keys)
{
    uint8_t packet[64] = {0x41, 0, 0, 7, 'p', 'i', 'n', 'g'};
    leat_seal_op seal = {
        .packet = packet, .pn = 7, .header_len = 4, .payload_len = 20, .pn_len = 2};
    leat_mask_op mask = {.sample = packet + 6};
    leat_open_op open = {
        .header = packet, .payload = packet + 4, .pn = 7, .header_len = 4, .payload_len = 36};
    uint32_t pn;
    assert_int_equal(leat_seal(f->cache, keys, &seal, 1), LEAT_OK);
    assert_int_equal(leat_mask(f->cache, keys, &mask, 1), LEAT_OK);
    assert_int_equal(leat_hp_remove(packet, 2, mask.mask, &pn), 2);
    assert_int_equal(pn, 7);
    assert_int_equal(leat_open(f->cache, keys, &open, 1), LEAT_OK);
    assert_int_equal(open.result, LEAT_OK);
    assert_memory_equal(packet + 4, "ping", 4);
}

static leat_key_cache_stats stats(const struct fixture *f)
{
    leat_key_cache_stats s;
    leat_key_cache_stats_get(f->cache, &s);
    return s;
}

static void test_more_keys_than_slots_all_work(void **state)
{
    struct fixture *f = *state;
    leat_packet_keys keys[LEAT_AEAD_COUNT][CONNECTIONS];
    for (int a = 0; a < LEAT_AEAD_COUNT; a++) {
        for (unsigned i = 0; i < CONNECTIONS; i++) {
            keys[a][i] = keys_number((leat_aead)a, i);
        }
    }
    for (int round = 0; round < 3; round++) {
        for (int a = 0; a < LEAT_AEAD_COUNT; a++) {
            for (unsigned i = 0; i < CONNECTIONS; i++) {
                use(f, &keys[a][i]);
            }
        }
        leat_key_cache_check(f->cache);
    }
    assert_int_equal(stats(f).slots, LEAT_AEAD_COUNT * ENTRIES);
    assert_int_equal(stats(f).misses, 3 * LEAT_AEAD_COUNT * CONNECTIONS);
    for (int a = 0; a < LEAT_AEAD_COUNT; a++) {
        for (unsigned i = 0; i < CONNECTIONS; i++) {
            leat_packet_keys_drop(&keys[a][i], f->cache);
        }
    }
}

static void test_least_recently_used_goes_first(void **state)
{
    struct fixture *f = *state;
    leat_packet_keys keys[ENTRIES + 1];
    for (unsigned i = 0; i <= ENTRIES; i++) {
        keys[i] = keys_number(LEAT_AEAD_AES_128_GCM, i);
    }
    for (unsigned i = 0; i < ENTRIES; i++) {
        use(f, &keys[i]);
    }
    use(f, &keys[0]);       /* key 1 is now the one unused for longest */
    use(f, &keys[ENTRIES]); /* pushes it out */
    uint64_t misses = stats(f).misses;
    assert_int_equal(stats(f).evicted, 1);
    use(f, &keys[0]);
    use(f, &keys[2]);
    use(f, &keys[3]);
    assert_int_equal(stats(f).misses, misses);
    use(f, &keys[1]);
    assert_int_equal(stats(f).misses, misses + 1);
    for (unsigned i = 0; i <= ENTRIES; i++) {
        leat_packet_keys_drop(&keys[i], f->cache);
    }
}

static void test_dropped_keys_are_wiped_and_their_slot_is_taken_first(void **state)
{
    struct fixture *f = *state;
    leat_packet_keys a = keys_number(LEAT_AEAD_AES_256_GCM, 1);
    leat_packet_keys b = keys_number(LEAT_AEAD_AES_256_GCM, 2);
    const leat_packet_keys zero = {0};
    use(f, &a);
    leat_packet_keys copy = a;
    leat_packet_keys_drop(&a, f->cache);
    assert_memory_equal(&a, &zero, sizeof a);
    assert_false(leat_packet_keys_ready(&a));
    leat_key_cache_check(f->cache);
    use(f, &b);
    assert_int_equal(stats(f).slots, 1);
    assert_int_equal(stats(f).evicted, 0);
    use(f, &copy); /* finds its slot taken by another key, and does not use that one */
    assert_int_equal(stats(f).slots, 2);
    leat_packet_keys_drop(&copy, f->cache);
    leat_packet_keys_drop(&b, f->cache);
    leat_packet_keys_drop(&b, f->cache); /* twice does no harm */
}

static void test_moved_keys_keep_their_slot(void **state)
{
    struct fixture *f = *state;
    leat_packet_keys a = keys_number(LEAT_AEAD_AES_128_GCM, 1);
    use(f, &a);
    uint64_t misses = stats(f).misses;
    leat_packet_keys moved = a;
    memset(&a, 0, sizeof a);
    use(f, &moved);
    assert_int_equal(stats(f).misses, misses);
    leat_packet_keys_drop(&moved, f->cache);
}

/* Misses, key updates, drops: each of many keys in turn, with fewer slots than keys. */
static void churn(struct fixture *f, leat_aead aead)
{
    leat_packet_keys keys[CONNECTIONS];
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        keys[i] = keys_number(aead, i);
    }
    for (int round = 0; round < 3; round++) {
        for (unsigned i = 0; i < CONNECTIONS; i++) {
            leat_packet_keys next = {0};
            use(f, &keys[i]);
            leat_packet_keys_next(&keys[i], &next);
            use(f, &next);
            leat_packet_keys_drop(&keys[i], f->cache);
            keys[i] = next;
        }
    }
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        leat_packet_keys_drop(&keys[i], f->cache);
    }
}

/* A hit never allocates. Nor does a miss where the backend says so; where it says otherwise, it
 * does. */
static void test_nothing_allocates_once_warm(void **state)
{
    struct fixture *f = *state;
    alloc_count_start();
    for (int a = 0; a < LEAT_AEAD_COUNT; a++) {
        leat_aead aead = (leat_aead)a;
        leat_packet_keys keys = keys_number(aead, 0);
        assert_int_equal(leat_key_cache_warm(f->cache, aead, ENTRIES), LEAT_OK);
        use(f, &keys);
        size_t before = alloc_count;
        for (int i = 0; i < 100; i++) {
            use(f, &keys);
        }
        assert_int_equal(alloc_count, before);
        churn(f, aead);
        print_message("%s, %s: %zu allocations in %d keyings\n",
                      leat_key_cache_backend(f->cache)->name, leat_aead_info_get(aead)->name,
                      alloc_count - before, 6 * CONNECTIONS);
        if (leat_key_cache_without_heap(f->cache, aead)) {
            assert_int_equal(alloc_count, before);
        } else {
            assert_true(alloc_count > before);
        }
        leat_packet_keys_drop(&keys, f->cache);
    }
}

static void test_derivation_and_random_bytes_allocate_nothing(void **state)
{
    (void)state;
    uint8_t seed[LEAT_RANDOM_SEED] = {1};
    uint8_t dcid[2000];
    leat_random random;
    alloc_count_start();
    size_t before = alloc_count;
    leat_random_init(&random, seed);
    leat_random_fill(&random, dcid, sizeof dcid);
    leat_packet_keys client = {0};
    leat_packet_keys server = {0};
    leat_packet_keys next = {0};
    leat_packet_keys_initial(&client, &server, leat_schedule_for(1), dcid, 8);
    leat_packet_keys_next(&client, &next);
    uint8_t tag[LEAT_AEAD_TAG];
    leat_retry_tag(leat_schedule_for(1), dcid, 20, dcid, sizeof dcid, tag);
    assert_int_equal(alloc_count, before);
    void *volatile proof = malloc(1); /* the counter does count */
    assert_int_equal(alloc_count, before + 1);
    free(proof);
}

static void test_without_memory_a_first_key_fails_and_a_later_one_evicts(void **state)
{
    struct fixture *f = *state;
    leat_packet_keys a = keys_number(LEAT_AEAD_AES_128_GCM, 1);
    leat_packet_keys b = keys_number(LEAT_AEAD_AES_128_GCM, 2);
    uint8_t sample[LEAT_HP_SAMPLE] = {0};
    leat_mask_op mask = {.sample = sample};
    for (uint64_t nth = 1; nth <= 2; nth++) {
        leat_mem_fault_set(f->mem, LEAT_MEM_FAULT_TAKE, nth, false);
        assert_int_equal(leat_mask(f->cache, &a, &mask, 1), LEAT_ERR_NOMEM);
        leat_key_cache_check(f->cache);
    }
    leat_mem_fault_set(f->mem, LEAT_MEM_FAULT_NONE, 0, false);
    use(f, &a);
    leat_mem_fault_set(f->mem, LEAT_MEM_FAULT_TAKE, 1, true);
    use(f, &b);
    use(f, &a);
    leat_mem_fault_set(f->mem, LEAT_MEM_FAULT_NONE, 0, false);
    assert_int_equal(stats(f).slots, 1);
    assert_int_equal(stats(f).evicted, 2);
    leat_packet_keys_drop(&a, f->cache);
    leat_packet_keys_drop(&b, f->cache);
}

static void test_facts_about_the_algorithms(void **state)
{
    (void)state;
    leat_aead aead;
    assert_true(leat_aead_from_suite(0x1303, &aead));
    assert_int_equal(aead, LEAT_AEAD_CHACHA20_POLY1305);
    assert_false(leat_aead_from_suite(0x1304, &aead)); /* CCM */
    assert_int_equal(leat_aead_info_get(LEAT_AEAD_AES_256_GCM)->secret_len, 48);
    assert_int_equal(leat_aead_info_get(LEAT_AEAD_AES_128_GCM)->seal_limit, 8388608);
    assert_int_equal(leat_aead_info_get(LEAT_AEAD_CHACHA20_POLY1305)->open_fail_limit, UINT64_C(1)
                                                                                           << 36);
    assert_non_null(leat_crypto_backend_pick(NULL));
    assert_non_null(leat_crypto_backend_pick("gnutls"));
    assert_null(leat_crypto_backend_pick("abacus"));
}

static void test_cache_size_out_of_bounds_is_refused(void **state)
{
    struct fixture *f = *state;
    leat_key_cache *cache;
    assert_int_equal(leat_key_cache_new(f->mem, NULL, 65537, &cache), LEAT_ERR_INVALID);
    assert_null(cache);
    assert_int_equal(leat_key_cache_warm(f->cache, LEAT_AEAD_AES_128_GCM, ENTRIES + 1),
                     LEAT_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_more_keys_than_slots_all_work, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_least_recently_used_goes_first, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dropped_keys_are_wiped_and_their_slot_is_taken_first,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_moved_keys_keep_their_slot, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nothing_allocates_once_warm, set_up, tear_down),
        cmocka_unit_test(test_derivation_and_random_bytes_allocate_nothing),
        cmocka_unit_test_setup_teardown(
            test_without_memory_a_first_key_fails_and_a_later_one_evicts, set_up, tear_down),
        cmocka_unit_test(test_facts_about_the_algorithms),
        cmocka_unit_test_setup_teardown(test_cache_size_out_of_bounds_is_refused, set_up,
                                        tear_down),
    };
    int failed = 0;
    for (size_t i = 0; leat_crypto_backends[i]; i++) {
        if (!leat_crypto_backends[i]->usable()) {
            continue;
        }
        backend_under_test = leat_crypto_backends[i];
        failed += cmocka_run_group_tests_name(backend_under_test->name, tests, NULL, NULL);
    }
    return failed;
}
