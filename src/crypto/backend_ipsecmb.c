/* The fast backend for amd64: Intel's IPSec Multi-Buffer library, by its direct calls, which take
 * one packet and run it at once on the widest instructions that the processor has.
 *
 * The engine is the library's manager: a table of functions chosen for this processor, with queues
 * for its job interface that leat does not use. It lies in the context's memory. A slot holds
 * expanded keys as plain bytes, so keying one allocates nothing.
 *
 * Opening: the direct calls decrypt and put the tag out, comparing nothing. The tag is compared
 * here, in constant time and before the result is set; what a refused payload then holds is as
 * undefined as aead.h says.
 *
 * Masks: AES-128 has a call that encrypts one block. The other two go by Nettle, whose contexts are
 * plain structs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "crypto/backend.h"

#include <intel-ipsec-mb.h>
#include <nettle/aes.h>
#include <nettle/chacha.h>
#include <string.h>

#include "base/assert.h"
#include "crypto/secret.h"
#include "mem/mem.h"

enum { MANAGER_ALIGN = 64 };

typedef struct engine {
    IMB_MGR *manager; /* within block */
    void *block;
    size_t block_size;
} engine;

/* Expanded keys first: the library wants them aligned to 64 bytes, as slots are. */
typedef struct slot {
    union {
        struct gcm_key_data gcm;
        uint8_t chacha[32];
    } key;
    union {
        DECLARE_ALIGNED(uint8_t aes128[16 * 11], 16);
        struct aes256_ctx aes256;
        struct chacha_ctx chacha;
    } hp;
    uint8_t iv[LEAT_AEAD_IV];
    leat_aead aead;
} slot;

static bool usable(void)
{
    return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul") &&
           __builtin_cpu_supports("sse4.2");
}

static void engine_free(leat_mem *mem, void *opaque)
{
    engine *e = opaque;
    leat_mem_give(mem, e->block, e->block_size);
    leat_mem_give(mem, e, sizeof *e);
}

static leat_err engine_new(leat_mem *mem, void **out)
{
    engine *e = leat_mem_take(mem, sizeof *e);
    if (!e) {
        return LEAT_ERR_NOMEM;
    }
    e->block_size = imb_get_mb_mgr_size() + MANAGER_ALIGN;
    e->block = leat_mem_take(mem, e->block_size);
    if (!e->block) {
        leat_mem_give(mem, e, sizeof *e);
        return LEAT_ERR_NOMEM;
    }
    uint8_t *aligned = (uint8_t *)e->block + MANAGER_ALIGN - (uintptr_t)e->block % MANAGER_ALIGN;
    IMB_ARCH arch = IMB_ARCH_NONE;
    e->manager = imb_set_pointers_mb_mgr(aligned, 0, 1);
    if (e->manager) {
        init_mb_mgr_auto(e->manager, &arch);
    }
    if (!e->manager || imb_get_errno(e->manager) != 0 || arch == IMB_ARCH_NONE) {
        engine_free(mem, e);
        return LEAT_ERR_UNSUPPORTED;
    }
    *out = e;
    return LEAT_OK;
}

static bool keys_without_heap(void *opaque, leat_aead aead)
{
    (void)opaque;
    (void)aead;
    return true;
}

static leat_err slot_new(void *opaque, void *memory, leat_aead aead)
{
    (void)opaque;
    slot *s = memory;
    s->aead = aead;
    return LEAT_OK;
}

static void slot_wipe(void *opaque, void *memory)
{
    (void)opaque;
    slot *s = memory;
    leat_wipe(&s->key, sizeof s->key);
    leat_wipe(&s->hp, sizeof s->hp);
    leat_wipe(s->iv, sizeof s->iv);
}

static leat_err slot_key(void *opaque, void *memory, const uint8_t *key,
                         const uint8_t iv[LEAT_AEAD_IV], const uint8_t *hp)
{
    const engine *e = opaque;
    slot *s = memory;
    memcpy(s->iv, iv, LEAT_AEAD_IV);
    switch (s->aead) {
    case LEAT_AEAD_AES_128_GCM: {
        DECLARE_ALIGNED(uint8_t decrypt[16 * 11], 16); /* comes with the others; of no use */
        IMB_AES128_GCM_PRE(e->manager, key, &s->key.gcm);
        IMB_AES_KEYEXP_128(e->manager, hp, s->hp.aes128, decrypt);
        leat_wipe(decrypt, sizeof decrypt);
        break;
    }
    case LEAT_AEAD_AES_256_GCM:
        IMB_AES256_GCM_PRE(e->manager, key, &s->key.gcm);
        aes256_set_encrypt_key(&s->hp.aes256, hp);
        break;
    default:
        memcpy(s->key.chacha, key, sizeof s->key.chacha);
        chacha_set_key(&s->hp.chacha, hp);
        break;
    }
    return LEAT_OK;
}

static void mask_one(const engine *e, slot *s, const uint8_t *sample, uint8_t mask[LEAT_HP_MASK])
{
    static const uint8_t zero[LEAT_HP_SAMPLE];
    uint8_t block[LEAT_HP_SAMPLE];
    switch (s->aead) {
    case LEAT_AEAD_AES_128_GCM: /* RFC 9001 §5.4.3; in CFB mode, zeros come out as the encrypted IV
                                 */
        IMB_AES128_CFB_ONE(e->manager, block, zero, sample, s->hp.aes128, sizeof block);
        break;
    case LEAT_AEAD_AES_256_GCM:
        aes256_encrypt(&s->hp.aes256, sizeof block, block, sample);
        break;
    default: /* RFC 9001 §5.4.4: counter, then nonce; the nonce's setter clears the counter */
        chacha_set_nonce96(&s->hp.chacha, sample + 4);
        chacha_set_counter32(&s->hp.chacha, sample);
        chacha_crypt32(&s->hp.chacha, sizeof block, block, zero);
        break;
    }
    memcpy(mask, block, LEAT_HP_MASK);
}

static void mask_many(void *opaque, void *memory, leat_mask_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        mask_one(opaque, memory, ops[i].sample, ops[i].mask);
    }
}

/* Encrypts or decrypts `len` bytes in place and computes the tag. */
static void run(const engine *e, slot *s, bool seal, uint64_t pn, const uint8_t *aad,
                size_t aad_len, uint8_t *text, size_t len, uint8_t tag[LEAT_AEAD_TAG])
{
    uint8_t nonce[LEAT_AEAD_IV];
    struct gcm_context_data gcm;
    struct chacha20_poly1305_context_data chacha;
    leat_aead_nonce(s->iv, pn, nonce);
    switch (s->aead) {
    case LEAT_AEAD_AES_128_GCM:
        if (seal) {
            IMB_AES128_GCM_ENC(e->manager, &s->key.gcm, &gcm, text, text, len, nonce, aad, aad_len,
                               tag, LEAT_AEAD_TAG);
        } else {
            IMB_AES128_GCM_DEC(e->manager, &s->key.gcm, &gcm, text, text, len, nonce, aad, aad_len,
                               tag, LEAT_AEAD_TAG);
        }
        break;
    case LEAT_AEAD_AES_256_GCM:
        if (seal) {
            IMB_AES256_GCM_ENC(e->manager, &s->key.gcm, &gcm, text, text, len, nonce, aad, aad_len,
                               tag, LEAT_AEAD_TAG);
        } else {
            IMB_AES256_GCM_DEC(e->manager, &s->key.gcm, &gcm, text, text, len, nonce, aad, aad_len,
                               tag, LEAT_AEAD_TAG);
        }
        break;
    default:
        IMB_CHACHA20_POLY1305_INIT(e->manager, s->key.chacha, &chacha, nonce, aad, aad_len);
        if (seal) {
            IMB_CHACHA20_POLY1305_ENC_UPDATE(e->manager, s->key.chacha, &chacha, text, text, len);
        } else {
            IMB_CHACHA20_POLY1305_DEC_UPDATE(e->manager, s->key.chacha, &chacha, text, text, len);
        }
        IMB_CHACHA20_POLY1305_ENC_FINALIZE(e->manager, &chacha, tag, LEAT_AEAD_TAG);
        break;
    }
}

static leat_err seal_many(void *opaque, void *memory, leat_seal_op *ops, size_t n)
{
    const engine *e = opaque;
    slot *s = memory;
    for (size_t i = 0; i < n; i++) {
        const leat_seal_op *op = &ops[i];
        uint8_t *payload = op->packet + op->header_len;
        run(e, s, true, op->pn, op->packet, op->header_len, payload, op->payload_len,
            payload + op->payload_len);
        size_t pn_offset = op->header_len - op->pn_len;
        uint8_t mask[LEAT_HP_MASK];
        mask_one(e, s, op->packet + pn_offset + 4, mask);
        leat_hp_apply(op->packet, pn_offset, op->pn_len, mask);
    }
    return LEAT_OK;
}

static void open_many(void *opaque, void *memory, leat_open_op *ops, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        leat_open_op *op = &ops[i];
        uint8_t tag[LEAT_AEAD_TAG] = {0};
        op->result = LEAT_ERR_CRYPTO;
        if (op->payload_len < LEAT_AEAD_TAG) {
            continue;
        }
        size_t plain = op->payload_len - LEAT_AEAD_TAG;
        run(opaque, memory, false, op->pn, op->header, op->header_len, op->payload, plain, tag);
        if (leat_secret_equal(tag, op->payload + plain, LEAT_AEAD_TAG)) {
            op->result = LEAT_OK;
        }
    }
}

const leat_crypto_backend leat_crypto_ipsecmb = {
    .name = "ipsec-mb",
    .usable = usable,
    .engine_new = engine_new,
    .engine_free = engine_free,
    .keys_without_heap = keys_without_heap,
    .slot_size = sizeof(slot),
    .slot_new = slot_new,
    .slot_free = slot_wipe,
    .slot_key = slot_key,
    .slot_wipe = slot_wipe,
    .seal = seal_many,
    .mask = mask_many,
    .open = open_many,
};
