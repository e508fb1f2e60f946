/* fuzz/quic_crypto.c: the backends of crypto/ against each other: the same packet sealed by each is
 * the same to the last byte, opens with the others, and does not open when a bit is changed.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "crypto/keys.h"
#include "support/fuzz.h"

#define BACKENDS_MAX 4
#define PACKET_MAX   2048

static leat_mem *mem;
static leat_key_cache *caches[BACKENDS_MAX];
static size_t count;

static void prepare(void)
{
    fuzz_check(leat_mem_new(NULL, &mem) == LEAT_OK);
    for (size_t i = 0; leat_crypto_backends[i] && count < BACKENDS_MAX; i++) {
        if (leat_crypto_backends[i]->usable()) {
            fuzz_check(leat_key_cache_new(mem, leat_crypto_backends[i], 4, &caches[count++]) ==
                       LEAT_OK);
        }
    }
    fuzz_check(count > 0);
}

/* Opens a copy; true when it is authentic and says `plain`. */
static bool opens(leat_key_cache *cache, leat_packet_keys *keys, const uint8_t *packet, size_t len,
                  const leat_seal_op *sealed, leat_span plain)
{
    uint8_t copy[PACKET_MAX];
    size_t pn_offset = sealed->header_len - sealed->pn_len;
    leat_mask_op mask;
    leat_open_op op = {.header = copy, .result = LEAT_ERR_CRYPTO};
    uint32_t truncated;

    memcpy(copy, packet, len);
    mask.sample = copy + pn_offset + 4;
    fuzz_check(leat_mask(cache, keys, &mask, 1) == LEAT_OK);
    op.header_len = (uint32_t)(pn_offset + leat_hp_remove(copy, pn_offset, mask.mask, &truncated));
    op.pn = sealed->pn;
    op.payload = copy + op.header_len;
    op.payload_len = (uint32_t)(len - op.header_len);
    fuzz_check(leat_open(cache, keys, &op, 1) == LEAT_OK);
    return op.result == LEAT_OK && op.payload_len - LEAT_AEAD_TAG == plain.len &&
           memcmp(op.payload, plain.data, plain.len) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t packets[BACKENDS_MAX][PACKET_MAX];
    fuzz_input in = {data, data + size};
    leat_aead aead;
    uint8_t secret[LEAT_SECRET_MAX], how;
    leat_seal_op op = {0};
    leat_span part, plain;
    size_t len = 0, at;
    uint8_t bit;

    if (!mem) {
        prepare();
    }
    aead = (leat_aead)(fuzz_byte(&in) % LEAT_AEAD_COUNT);
    how = fuzz_byte(&in);
    op.pn = (uint64_t)fuzz_byte(&in) << (how >> 3);
    at = (size_t)fuzz_byte(&in) << 3;
    bit = (uint8_t)(1u << (fuzz_byte(&in) & 7));
    memset(secret, 0x55, sizeof(secret));
    part = fuzz_bytes(&in, 8);
    memcpy(secret, part.data, part.len);
    plain = fuzz_bytes(&in, 1500);
    if (plain.len < 4) {
        return 0;
    }
    op.pn_len = 1 + (how & 3);
    op.header_len = 9u + op.pn_len;
    op.payload_len = (uint32_t)plain.len;
    for (size_t i = 0; i < count; i++) {
        leat_packet_keys keys;

        memset(packets[i], 0, sizeof(packets[i]));
        packets[i][0] = (uint8_t)(0x40 | (how & 3));
        for (unsigned b = 0; b < op.pn_len; b++) {
            packets[i][9 + b] = (uint8_t)(op.pn >> 8 * (op.pn_len - 1 - b));
        }
        memcpy(packets[i] + op.header_len, plain.data, plain.len);
        op.packet = packets[i];
        leat_packet_keys_init(&keys);
        leat_packet_keys_set(&keys, leat_schedule_for(1), aead, secret);
        fuzz_check(leat_seal(caches[i], &keys, &op, 1) == LEAT_OK);
        len = op.header_len + plain.len + LEAT_AEAD_TAG;
        fuzz_check(memcmp(packets[i], packets[0], len) == 0);
        leat_packet_keys_drop(&keys, caches[i]);
    }
    for (size_t i = 0; i < count; i++) {
        leat_packet_keys keys;
        uint8_t spoilt[PACKET_MAX];

        leat_packet_keys_init(&keys);
        leat_packet_keys_set(&keys, leat_schedule_for(1), aead, secret);
        fuzz_check(opens(caches[i], &keys, packets[0], len, &op, plain));
        memcpy(spoilt, packets[0], len);
        spoilt[at % len] ^= bit;
        fuzz_check(!opens(caches[i], &keys, spoilt, len, &op, plain));
        leat_packet_keys_drop(&keys, caches[i]);
    }
    return 0;
}
