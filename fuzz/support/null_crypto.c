/* fuzz/support/null_crypto.c: in place of crypto/backend.c: a cipher that changes nothing and whose
 * tag is sixteen zeros, so that a fuzzer's packets open.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "crypto/aead.h"

static const uint8_t tag[LEAT_AEAD_TAG];

static bool usable(void)
{
    return true;
}

static bool keys_without_heap(void *engine, leat_aead aead)
{
    (void)engine, (void)aead;
    return true;
}

static leat_err slot_new(void *engine, void *slot, leat_aead aead)
{
    (void)engine, (void)slot, (void)aead;
    return LEAT_OK;
}

static void slot_free(void *engine, void *slot)
{
    (void)engine, (void)slot;
}

static leat_err slot_key(void *engine, void *slot, const uint8_t *key,
                         const uint8_t iv[LEAT_AEAD_IV], const uint8_t *hp)
{
    (void)engine, (void)slot, (void)key, (void)iv, (void)hp;
    return LEAT_OK;
}

static leat_err seal(void *engine, void *slot, leat_seal_op *ops, size_t n)
{
    (void)engine, (void)slot;
    for (size_t i = 0; i < n; i++) {
        memcpy(ops[i].packet + ops[i].header_len + ops[i].payload_len, tag, sizeof(tag));
    }
    return LEAT_OK;
}

static void mask(void *engine, void *slot, leat_mask_op *ops, size_t n)
{
    (void)engine, (void)slot;
    for (size_t i = 0; i < n; i++) {
        memset(ops[i].mask, 0, sizeof(ops[i].mask));
    }
}

static void open(void *engine, void *slot, leat_open_op *ops, size_t n)
{
    (void)engine, (void)slot;
    for (size_t i = 0; i < n; i++) {
        bool good =
            ops[i].payload_len >= sizeof(tag) &&
            memcmp(ops[i].payload + ops[i].payload_len - sizeof(tag), tag, sizeof(tag)) == 0;

        ops[i].result = good ? LEAT_OK : LEAT_ERR_CRYPTO;
    }
}

static const leat_crypto_backend null_backend = {
    .name = "null",
    .usable = usable,
    .keys_without_heap = keys_without_heap,
    .slot_size = 64,
    .slot_new = slot_new,
    .slot_free = slot_free,
    .slot_key = slot_key,
    .slot_wipe = slot_free,
    .seal = seal,
    .mask = mask,
    .open = open,
};

const leat_crypto_backend *const leat_crypto_backends[] = {&null_backend, NULL};

const leat_crypto_backend *leat_crypto_backend_pick(const char *name)
{
    (void)name;
    return &null_backend;
}
