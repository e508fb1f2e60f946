/* Sealing and opening of packets other than the RFC's: every cipher, many sizes, batches, and what
 * forgery gives.
 *
 * SPDX-License-Identifier: MIT
 */
#include "hex.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/prng.h"
#include "crypto/keys.h"

enum { BATCH = 32, ROOM = 1500 };

struct fixture {
    leat_mem *mem;
    leat_key_cache *cache;
    leat_prng prng;
};

static const leat_crypto_backend *backend_under_test;

static int set_up(void **state)
{
    static struct fixture f;
    const char *text = getenv("LEAT_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : (uint64_t)time(NULL);
    print_message("replay with LEAT_TEST_SEED=%llu\n", (unsigned long long)seed);
    leat_prng_seed(&f.prng, seed);
    *state = &f;
    if (leat_mem_new(NULL, &f.mem) != LEAT_OK) {
        return -1;
    }
    return leat_key_cache_new(f.mem, backend_under_test, 4, &f.cache);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    leat_key_cache_check(f->cache);
    leat_key_cache_free(f->cache);
    leat_mem_free(f->mem);
    return 0;
}

static leat_packet_keys some_keys(struct fixture *f, leat_aead aead)
{
    uint8_t secret[LEAT_SECRET_MAX];
    leat_packet_keys keys = {0};
    leat_prng_fill(&f->prng, secret, sizeof secret);
    leat_packet_keys_set(&keys, leat_schedule_for(1), aead, secret);
    return keys;
}

/* A packet as it was before sealing, to compare with. */
struct sample {
    uint8_t plain[ROOM];
    uint8_t packet[ROOM];
    leat_seal_op op;
};

static void make_sample(struct fixture *f, struct sample *s)
{
    unsigned pn_len = (unsigned)leat_prng_between(&f->prng, 1, 4);
    size_t header_len = pn_len + leat_prng_between(&f->prng, 1, 60);
    size_t payload_len = leat_prng_between(&f->prng, 4 - pn_len, ROOM - 64 - LEAT_AEAD_TAG);
    leat_prng_fill(&f->prng, s->packet, header_len + payload_len);
    s->packet[0] = (uint8_t)((s->packet[0] & 0xfc) | (pn_len - 1));
    memcpy(s->plain, s->packet, header_len + payload_len);
    s->op = (leat_seal_op){.packet = s->packet,
                           .pn = leat_prng_u64(&f->prng) >> 2,
                           .header_len = (uint32_t)header_len,
                           .payload_len = (uint32_t)payload_len,
                           .pn_len = (uint8_t)pn_len};
}

static leat_open_op open_of(const struct sample *s, uint8_t *packet)
{
    return (leat_open_op){.header = packet,
                          .payload = packet + s->op.header_len,
                          .pn = s->op.pn,
                          .header_len = s->op.header_len,
                          .payload_len = s->op.payload_len + LEAT_AEAD_TAG,
                          .result = LEAT_ERR_STATE};
}

static void test_random_batches_come_back_whole(void **state)
{
    struct fixture *f = *state;
    static struct sample samples[BATCH];
    for (int round = 0; round < 60; round++) {
        leat_packet_keys keys = some_keys(f, (leat_aead)(round % LEAT_AEAD_COUNT));
        size_t n = leat_prng_between(&f->prng, 1, BATCH);
        leat_seal_op seal[BATCH];
        leat_mask_op mask[BATCH];
        leat_open_op open[BATCH];
        for (size_t i = 0; i < n; i++) {
            make_sample(f, &samples[i]);
            seal[i] = samples[i].op;
        }
        assert_int_equal(leat_seal(f->cache, &keys, seal, n), LEAT_OK);
        assert_int_equal(keys.sealed, n);
        for (size_t i = 0; i < n; i++) {
            mask[i].sample =
                samples[i].packet + samples[i].op.header_len - samples[i].op.pn_len + 4;
        }
        assert_int_equal(leat_mask(f->cache, &keys, mask, n), LEAT_OK);
        for (size_t i = 0; i < n; i++) {
            const leat_seal_op *op = &samples[i].op;
            uint32_t pn;
            if (op->payload_len >= 16) { /* a shorter one might by chance stay as it is */
                assert_memory_not_equal(samples[i].packet + op->header_len,
                                        samples[i].plain + op->header_len, op->payload_len);
            }
            assert_int_equal(
                leat_hp_remove(samples[i].packet, op->header_len - op->pn_len, mask[i].mask, &pn),
                op->pn_len);
            assert_memory_equal(samples[i].packet, samples[i].plain, op->header_len);
            open[i] = open_of(&samples[i], samples[i].packet);
        }
        assert_int_equal(leat_open(f->cache, &keys, open, n), LEAT_OK);
        for (size_t i = 0; i < n; i++) {
            assert_int_equal(open[i].result, LEAT_OK);
            assert_memory_equal(samples[i].packet, samples[i].plain,
                                samples[i].op.header_len + samples[i].op.payload_len);
        }
        leat_packet_keys_drop(&keys, f->cache);
    }
}

/* A packet with its header already unprotected, ready to open. */
static void seal_and_unmask(struct fixture *f, leat_packet_keys *keys, struct sample *s)
{
    make_sample(f, s);
    size_t pn_offset = s->op.header_len - s->op.pn_len;
    leat_mask_op mask = {.sample = s->packet + pn_offset + 4};
    uint32_t pn;
    assert_int_equal(leat_seal(f->cache, keys, &s->op, 1), LEAT_OK);
    assert_int_equal(leat_mask(f->cache, keys, &mask, 1), LEAT_OK);
    leat_hp_remove(s->packet, pn_offset, mask.mask, &pn);
}

static void test_one_flipped_bit_anywhere_is_refused(void **state)
{
    struct fixture *f = *state;
    for (int aead = 0; aead < LEAT_AEAD_COUNT; aead++) {
        leat_packet_keys keys = some_keys(f, (leat_aead)aead);
        struct sample s;
        seal_and_unmask(f, &keys, &s);
        size_t total = s.op.header_len + s.op.payload_len + LEAT_AEAD_TAG;
        for (size_t bit = 0; bit < 8 * total; bit++) {
            uint8_t copy[ROOM];
            memcpy(copy, s.packet, total);
            copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
            leat_open_op open = open_of(&s, copy);
            assert_int_equal(leat_open(f->cache, &keys, &open, 1), LEAT_OK);
            assert_int_equal(open.result, LEAT_ERR_CRYPTO);
        }
        leat_open_op good = open_of(&s, s.packet);
        assert_int_equal(leat_open(f->cache, &keys, &good, 1), LEAT_OK);
        assert_int_equal(good.result, LEAT_OK);
        leat_packet_keys_drop(&keys, f->cache);
    }
}

static void test_wrong_number_key_or_length_is_refused(void **state)
{
    struct fixture *f = *state;
    for (int aead = 0; aead < LEAT_AEAD_COUNT; aead++) {
        leat_packet_keys keys = some_keys(f, (leat_aead)aead);
        leat_packet_keys other = some_keys(f, (leat_aead)aead);
        struct sample s;
        seal_and_unmask(f, &keys, &s);
        uint8_t copy[4][ROOM];
        leat_open_op open[4];
        for (int i = 0; i < 4; i++) {
            memcpy(copy[i], s.packet, sizeof copy[i]);
            open[i] = open_of(&s, copy[i]);
        }
        open[0].pn ^= UINT64_C(1) << 40;
        open[1].payload_len -= 1;
        open[2].payload_len = LEAT_AEAD_TAG - 1;
        assert_int_equal(leat_open(f->cache, &keys, open, 4), LEAT_OK);
        assert_int_equal(open[0].result, LEAT_ERR_CRYPTO);
        assert_int_equal(open[1].result, LEAT_ERR_CRYPTO);
        assert_int_equal(open[2].result, LEAT_ERR_CRYPTO);
        assert_int_equal(open[3].result, LEAT_OK); /* bad neighbours in a batch do no harm */
        open[0] = open_of(&s, s.packet);
        assert_int_equal(leat_open(f->cache, &other, open, 1), LEAT_OK);
        assert_int_equal(open[0].result, LEAT_ERR_CRYPTO);
        leat_packet_keys_drop(&keys, f->cache);
        leat_packet_keys_drop(&other, f->cache);
    }
}

static void test_key_update_chain_agrees_on_both_sides(void **state)
{
    struct fixture *f = *state;
    for (int aead = 0; aead < LEAT_AEAD_COUNT; aead++) {
        leat_packet_keys tx = some_keys(f, (leat_aead)aead);
        leat_packet_keys rx = tx;
        for (int phase = 0; phase < 10; phase++) {
            leat_packet_keys next_tx = {0};
            leat_packet_keys next_rx = {0};
            struct sample s;
            seal_and_unmask(f, &tx, &s);
            uint8_t copy[ROOM];
            memcpy(copy, s.packet, sizeof copy);
            leat_open_op open = open_of(&s, copy);
            leat_packet_keys_next(&rx, &next_rx);
            assert_int_equal(leat_open(f->cache, &next_rx, &open, 1), LEAT_OK);
            assert_int_equal(open.result, LEAT_ERR_CRYPTO); /* the next phase is another key */
            open = open_of(&s, s.packet);
            assert_int_equal(leat_open(f->cache, &rx, &open, 1), LEAT_OK);
            assert_int_equal(open.result, LEAT_OK);
            assert_memory_equal(next_rx.hp, rx.hp, sizeof rx.hp);

            leat_packet_keys_next(&tx, &next_tx);
            assert_int_equal(next_tx.sealed, 0);
            leat_packet_keys_drop(&tx, f->cache);
            leat_packet_keys_drop(&rx, f->cache);
            tx = next_tx;
            rx = next_rx;
        }
        leat_packet_keys_drop(&tx, f->cache);
        leat_packet_keys_drop(&rx, f->cache);
    }
}

/* Every backend makes the same packet of the same plaintext, and opens what the others have made.
 */
static void test_backends_agree(void **state)
{
    struct fixture *f = *state;
    leat_key_cache *cache;
    assert_int_equal(leat_key_cache_new(f->mem, leat_crypto_backend_pick("gnutls"), 4, &cache),
                     LEAT_OK);
    for (int round = 0; round < 300; round++) {
        leat_packet_keys ours = some_keys(f, (leat_aead)(round % LEAT_AEAD_COUNT));
        leat_packet_keys theirs = ours;
        struct sample a;
        make_sample(f, &a);
        struct sample b = a;
        b.op.packet = b.packet;
        assert_int_equal(leat_seal(f->cache, &ours, &a.op, 1), LEAT_OK);
        assert_int_equal(leat_seal(cache, &theirs, &b.op, 1), LEAT_OK);
        size_t total = a.op.header_len + a.op.payload_len + LEAT_AEAD_TAG;
        assert_memory_equal(a.packet, b.packet, total);
        memcpy(b.packet, b.plain, b.op.header_len);
        leat_open_op open = open_of(&b, b.packet);
        assert_int_equal(leat_open(f->cache, &ours, &open, 1), LEAT_OK);
        assert_int_equal(open.result, LEAT_OK);
        assert_memory_equal(b.packet, a.plain, total - LEAT_AEAD_TAG);
        leat_packet_keys_drop(&ours, f->cache);
        leat_packet_keys_drop(&theirs, cache);
    }
    leat_key_cache_free(cache);
}

/* The mask covers the packet number's bytes alone, however many these are. */
static void test_mask_on_packet_numbers(void **state)
{
    static const uint8_t mask[LEAT_HP_MASK] = {0xff, 0x11, 0x22, 0x33, 0x44};

    (void)state;
    for (unsigned pn_len = 1; pn_len <= 4; pn_len++) {
        uint8_t packet[] = {(uint8_t)(0x40 | (pn_len - 1)), 0xc0, 0x01, 0x02, 0x03, 0x04, 0x05};
        uint8_t plain[sizeof packet];
        uint32_t pn, expected = 0;

        memcpy(plain, packet, sizeof packet);
        leat_hp_apply(packet, 2, pn_len, mask);
        assert_int_equal(packet[0], plain[0] ^ 0x1f);
        assert_int_equal(packet[1], plain[1]);
        for (unsigned i = 0; i < 5; i++) {
            assert_int_equal(packet[2 + i], plain[2 + i] ^ (i < pn_len ? mask[1 + i] : 0));
            expected = i < pn_len ? expected << 8 | plain[2 + i] : expected;
        }
        assert_int_equal(leat_hp_remove(packet, 2, mask, &pn), pn_len);
        assert_memory_equal(packet, plain, sizeof packet);
        assert_int_equal(pn, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_batches_come_back_whole),
        cmocka_unit_test(test_one_flipped_bit_anywhere_is_refused),
        cmocka_unit_test(test_wrong_number_key_or_length_is_refused),
        cmocka_unit_test(test_key_update_chain_agrees_on_both_sides),
        cmocka_unit_test(test_backends_agree),
        cmocka_unit_test(test_mask_on_packet_numbers),
    };
    int failed = 0;
    for (size_t i = 0; leat_crypto_backends[i]; i++) {
        if (!leat_crypto_backends[i]->usable()) {
            continue;
        }
        backend_under_test = leat_crypto_backends[i];
        failed += cmocka_run_group_tests_name(backend_under_test->name, tests, set_up, tear_down);
    }
    return failed;
}
