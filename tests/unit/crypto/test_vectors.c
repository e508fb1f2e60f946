/* RFC 9001 appendix A (version 1) and RFC 9369 appendix A (version 2), byte by byte, on every
 * backend of this build that this processor can run.
 *
 * SPDX-License-Identifier: MIT
 */
#include "hex.h"
#include "vectors.h"

#include "crypto/keys.h"
#include "crypto/retry.h"

struct fixture {
    leat_mem *mem;
    leat_key_cache *cache;
};

static int set_up(void **state, const leat_crypto_backend *backend)
{
    static struct fixture f;
    *state = &f;
    if (leat_mem_new(NULL, &f.mem) != LEAT_OK) {
        return -1;
    }
    return leat_key_cache_new(f.mem, backend, 4, &f.cache);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    leat_key_cache_check(f->cache);
    leat_key_cache_free(f->cache);
    leat_mem_free(f->mem);
    return 0;
}

static void initial_keys(const struct vectors *v, leat_packet_keys *client,
                         leat_packet_keys *server)
{
    uint8_t dcid[8];
    size_t n = unhex(VECTOR_DCID, dcid, sizeof dcid);
    leat_packet_keys_init(client);
    leat_packet_keys_init(server);
    leat_packet_keys_initial(client, server, leat_schedule_for(v->version), dcid, n);
}

static void assert_direction(const leat_packet_keys *keys, const struct direction *want)
{
    assert_hex(keys->secret, 32, want->secret);
    assert_hex(keys->key, 16, want->key);
    assert_hex(keys->iv, 12, want->iv);
    assert_hex(keys->hp, 16, want->hp);
}

static void test_a1_initial_keys_are_those_of_the_rfc(void **state)
{
    (void)state;
    for (int i = 0; i < VECTORS; i++) {
        leat_packet_keys client;
        leat_packet_keys server;
        initial_keys(&vectors[i], &client, &server);
        assert_direction(&client, &vectors[i].client);
        assert_direction(&server, &vectors[i].server);
    }
}

/* Seals the plaintext and finds the RFC's packet; then opens that and finds the plaintext. */
static void round_trip(leat_key_cache *cache, leat_packet_keys *keys, const char *header,
                       unsigned pn_len, uint64_t pn, const uint8_t *plain, size_t plain_len,
                       const char *sample, const char *mask, const char *packet)
{
    uint8_t buffer[1500];
    size_t header_len = unhex(header, buffer, sizeof buffer);
    memcpy(buffer + header_len, plain, plain_len);
    leat_seal_op seal = {.packet = buffer,
                         .pn = pn,
                         .header_len = (uint32_t)header_len,
                         .payload_len = (uint32_t)plain_len,
                         .pn_len = (uint8_t)pn_len};
    assert_int_equal(leat_seal(cache, keys, &seal, 1), LEAT_OK);
    assert_hex(buffer, header_len + plain_len + LEAT_AEAD_TAG, packet);

    size_t pn_offset = header_len - pn_len;
    leat_mask_op hp = {.sample = buffer + pn_offset + 4};
    assert_hex(hp.sample, LEAT_HP_SAMPLE, sample);
    assert_int_equal(leat_mask(cache, keys, &hp, 1), LEAT_OK);
    assert_hex(hp.mask, sizeof hp.mask, mask);
    uint32_t truncated;
    assert_int_equal(leat_hp_remove(buffer, pn_offset, hp.mask, &truncated), pn_len);
    assert_int_equal(truncated, pn & ((UINT64_C(1) << (8 * pn_len)) - 1));
    assert_hex(buffer, header_len, header);

    leat_open_op open = {.header = buffer,
                         .payload = buffer + header_len,
                         .pn = pn,
                         .header_len = (uint32_t)header_len,
                         .payload_len = (uint32_t)(plain_len + LEAT_AEAD_TAG)};
    assert_int_equal(leat_open(cache, keys, &open, 1), LEAT_OK);
    assert_int_equal(open.result, LEAT_OK);
    assert_memory_equal(buffer + header_len, plain, plain_len);
}

static void test_a2_client_initial(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < VECTORS; i++) {
        const struct direction *v = &vectors[i].client;
        leat_packet_keys client;
        leat_packet_keys server;
        initial_keys(&vectors[i], &client, &server);
        uint8_t plain[VECTOR_CLIENT_PAYLOAD] = {0};
        unhex(VECTOR_CLIENT_FRAME, plain, sizeof plain);
        round_trip(f->cache, &client, v->header, 4, 2, plain, sizeof plain, v->sample, v->mask,
                   v->packet);
        leat_packet_keys_drop(&client, f->cache);
    }
}

static void test_a3_server_initial(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < VECTORS; i++) {
        const struct direction *v = &vectors[i].server;
        leat_packet_keys client;
        leat_packet_keys server;
        initial_keys(&vectors[i], &client, &server);
        uint8_t plain[128];
        size_t n = unhex(VECTOR_SERVER_PAYLOAD, plain, sizeof plain);
        round_trip(f->cache, &server, v->header, 2, 1, plain, n, v->sample, v->mask, v->packet);
        leat_packet_keys_drop(&server, f->cache);
    }
}

static void test_a4_retry(void **state)
{
    (void)state;
    for (int i = 0; i < VECTORS; i++) {
        const leat_schedule *schedule = leat_schedule_for(vectors[i].version);
        uint8_t dcid[8];
        uint8_t packet[64];
        uint8_t tag[LEAT_AEAD_TAG];
        unhex(VECTOR_DCID, dcid, sizeof dcid);
        size_t n = unhex(vectors[i].retry, packet, sizeof packet);
        leat_retry_tag(schedule, dcid, sizeof dcid, packet, n - LEAT_AEAD_TAG, tag);
        assert_memory_equal(tag, packet + n - LEAT_AEAD_TAG, LEAT_AEAD_TAG);
        assert_true(leat_retry_verify(schedule, dcid, sizeof dcid, packet, n));
        for (size_t bit = 0; bit < 8 * n; bit++) {
            packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_false(leat_retry_verify(schedule, dcid, sizeof dcid, packet, n));
            packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        dcid[0] ^= 1;
        assert_false(leat_retry_verify(schedule, dcid, sizeof dcid, packet, n));
        assert_false(leat_retry_verify(schedule, dcid, sizeof dcid, packet, LEAT_AEAD_TAG - 1));
    }
}

static void test_a5_chacha20_short_packet_and_key_update(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < VECTORS; i++) {
        leat_packet_keys keys = {0};
        leat_packet_keys next = {0};
        uint8_t secret[32];
        uint8_t nonce[LEAT_AEAD_IV];
        unhex(VECTOR_CHACHA_SECRET, secret, sizeof secret);
        leat_packet_keys_set(&keys, leat_schedule_for(vectors[i].version),
                             LEAT_AEAD_CHACHA20_POLY1305, secret);
        assert_hex(keys.key, 32, vectors[i].chacha.key);
        assert_hex(keys.iv, 12, vectors[i].chacha.iv);
        assert_hex(keys.hp, 32, vectors[i].chacha.hp);
        leat_packet_keys_next(&keys, &next);
        assert_hex(next.secret, 32, vectors[i].chacha.ku);
        assert_memory_equal(next.hp, keys.hp, 32);
        leat_aead_nonce(keys.iv, VECTOR_CHACHA_PN, nonce);
        assert_hex(nonce, sizeof nonce, vectors[i].chacha.nonce);

        const uint8_t ping = 0x01;
        round_trip(f->cache, &keys, vectors[i].chacha.header, 3, VECTOR_CHACHA_PN, &ping, 1,
                   vectors[i].chacha.sample, vectors[i].chacha.mask, vectors[i].chacha.packet);
        leat_packet_keys_drop(&keys, f->cache);
        leat_packet_keys_drop(&next, f->cache);
    }
}

static void test_unknown_version_has_no_schedule(void **state)
{
    (void)state;
    assert_null(leat_schedule_for(0));
    assert_null(leat_schedule_for(0x1a2a3a4a));
}

static const leat_crypto_backend *backend_under_test;

static int set_up_backend(void **state)
{
    return set_up(state, backend_under_test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a1_initial_keys_are_those_of_the_rfc),
        cmocka_unit_test(test_a2_client_initial),
        cmocka_unit_test(test_a3_server_initial),
        cmocka_unit_test(test_a4_retry),
        cmocka_unit_test(test_a5_chacha20_short_packet_and_key_update),
        cmocka_unit_test(test_unknown_version_has_no_schedule),
    };
    int failed = 0;
    for (size_t i = 0; leat_crypto_backends[i]; i++) {
        if (!leat_crypto_backends[i]->usable()) {
            continue;
        }
        backend_under_test = leat_crypto_backends[i];
        failed +=
            cmocka_run_group_tests_name(backend_under_test->name, tests, set_up_backend, tear_down);
    }
    return failed;
}
