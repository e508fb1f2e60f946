/* The backend that works everywhere: AEADs by GnuTLS, header protection masks by Nettle.
 *
 * A slot holds one GnuTLS AEAD handle. ChaCha20-Poly1305's is made once and re-keyed by
 * gnutls_aead_cipher_set_key(), which allocates nothing. For AES-GCM that function is broken in
 * GnuTLS 3.7 where the processor has PCLMUL: it encrypts the former hash key where it should
 * encrypt zeros, so tags come out wrong as soon as a handle gets its second key. engine_new() tries
 * it out; where it fails, a handle is made anew for each key, at two allocations.
 * (backend_ipsecmb.c is free of this.)
 *
 * GnuTLS has no way at all to re-key the plain block cipher that a mask needs. Nettle's contexts
 * are plain structs in the slot and run the same instructions.
 *
 * GnuTLS decrypts before it compares the tag, so a refused payload is left as garbage: aead.h says
 * so.
 *
 * SPDX-License-Identifier: MIT
 */
#include "crypto/backend.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <nettle/aes.h>
#include <nettle/chacha.h>

#include "base/assert.h"
#include "crypto/secret.h"

typedef struct slot {
    gnutls_aead_cipher_hd_t handle;
    leat_aead aead;
    uint8_t iv[LEAT_AEAD_IV];
    union {
        struct aes128_ctx aes128;
        struct aes256_ctx aes256;
        struct chacha_ctx chacha;
    } hp;
} slot;

static const gnutls_cipher_algorithm_t ciphers[LEAT_AEAD_COUNT] = {
    [LEAT_AEAD_AES_128_GCM] = GNUTLS_CIPHER_AES_128_GCM,
    [LEAT_AEAD_AES_256_GCM] = GNUTLS_CIPHER_AES_256_GCM,
    [LEAT_AEAD_CHACHA20_POLY1305] = GNUTLS_CIPHER_CHACHA20_POLY1305,
};

/* An engine is one of these two: whether AES-GCM handles can be re-keyed. */
static const bool rekey_good = true;
static const bool rekey_broken = false;

static bool usable(void)
{
    return true;
}

static gnutls_datum_t key_datum(leat_aead aead, const uint8_t *key)
{
    return (gnutls_datum_t){(unsigned char *)key, leat_aead_info_get(aead)->key_len};
}

static leat_err open_handle(gnutls_aead_cipher_hd_t *handle, leat_aead aead, const uint8_t *key)
{
    gnutls_datum_t datum = key_datum(aead, key);
    int rc = gnutls_aead_cipher_init(handle, ciphers[aead], &datum);
    if (rc == 0) {
        return LEAT_OK;
    }
    *handle = NULL;
    return rc == GNUTLS_E_MEMORY_ERROR ? LEAT_ERR_NOMEM : LEAT_ERR_CRYPTO;
}

/* The tag of an empty packet. */
static bool tag_of_nothing(gnutls_aead_cipher_hd_t handle, uint8_t tag[LEAT_AEAD_TAG])
{
    const uint8_t nonce[LEAT_AEAD_IV] = {0};
    size_t len = LEAT_AEAD_TAG;
    return gnutls_aead_cipher_encrypt(handle, nonce, sizeof nonce, "aad", 3, LEAT_AEAD_TAG, "", 0,
                                      tag, &len) == 0;
}

/* Does a handle that got its key second say the same as one that was born with it? */
static leat_err engine_new(leat_mem *mem, void **engine)
{
    (void)mem;
    const leat_aead aead = LEAT_AEAD_AES_128_GCM;
    const uint8_t key[LEAT_AEAD_KEY_MAX] = {1};
    const uint8_t former[LEAT_AEAD_KEY_MAX] = {2};
    gnutls_datum_t datum = key_datum(aead, key);
    gnutls_aead_cipher_hd_t born;
    gnutls_aead_cipher_hd_t second;
    uint8_t want[LEAT_AEAD_TAG];
    uint8_t got[LEAT_AEAD_TAG];
    leat_err err = open_handle(&born, aead, key);
    if (err != LEAT_OK) {
        return err;
    }
    err = open_handle(&second, aead, former);
    if (err == LEAT_OK) {
        bool good = gnutls_aead_cipher_set_key(second, &datum) == 0 && tag_of_nothing(born, want) &&
                    tag_of_nothing(second, got) && memcmp(want, got, sizeof want) == 0;
        *engine = (void *)(good ? &rekey_good : &rekey_broken);
        gnutls_aead_cipher_deinit(second);
    }
    gnutls_aead_cipher_deinit(born);
    return err;
}

static bool keys_without_heap(void *engine, leat_aead aead)
{
    return aead == LEAT_AEAD_CHACHA20_POLY1305 || engine == &rekey_good;
}

static leat_err set_key(void *engine, slot *s, const uint8_t *key)
{
    if (keys_without_heap(engine, s->aead)) {
        gnutls_datum_t datum = key_datum(s->aead, key);
        return gnutls_aead_cipher_set_key(s->handle, &datum) == 0 ? LEAT_OK : LEAT_ERR_CRYPTO;
    }
    gnutls_aead_cipher_hd_t fresh;
    leat_err err = open_handle(&fresh, s->aead, key);
    if (err != LEAT_OK) {
        return err;
    }
    gnutls_aead_cipher_deinit(s->handle);
    s->handle = fresh;
    return LEAT_OK;
}

static leat_err slot_new(void *engine, void *opaque, leat_aead aead)
{
    (void)engine;
    slot *s = opaque;
    const uint8_t zero[LEAT_AEAD_KEY_MAX] = {0};
    s->aead = aead;
    return open_handle(&s->handle, aead, zero);
}

static leat_err slot_key(void *engine, void *opaque, const uint8_t *key,
                         const uint8_t iv[LEAT_AEAD_IV], const uint8_t *hp)
{
    slot *s = opaque;
    leat_err err = set_key(engine, s, key);
    if (err != LEAT_OK) {
        return err;
    }
    memcpy(s->iv, iv, LEAT_AEAD_IV);
    switch (s->aead) {
    case LEAT_AEAD_AES_128_GCM:
        aes128_set_encrypt_key(&s->hp.aes128, hp);
        break;
    case LEAT_AEAD_AES_256_GCM:
        aes256_set_encrypt_key(&s->hp.aes256, hp);
        break;
    default:
        chacha_set_key(&s->hp.chacha, hp);
        break;
    }
    return LEAT_OK;
}

static void slot_wipe(void *engine, void *opaque)
{
    (void)engine;
    slot *s = opaque;
    const uint8_t zero[LEAT_AEAD_KEY_MAX] = {0};
    gnutls_datum_t key = key_datum(s->aead, zero);
    (void)gnutls_aead_cipher_set_key(s->handle, &key); /* overwrites the schedule and the tables */
    leat_wipe(s->iv, sizeof s->iv);
    leat_wipe(&s->hp, sizeof s->hp);
}

static void slot_free(void *engine, void *opaque)
{
    (void)engine;
    slot *s = opaque;
    if (s->handle) {
        gnutls_aead_cipher_deinit(s->handle); /* wipes what it frees */
    }
    leat_wipe(s, sizeof *s);
}

static void mask_one(slot *s, const uint8_t *sample, uint8_t mask[LEAT_HP_MASK])
{
    uint8_t block[LEAT_HP_SAMPLE];
    switch (s->aead) {
    case LEAT_AEAD_AES_128_GCM: /* RFC 9001 §5.4.3 */
        aes128_encrypt(&s->hp.aes128, sizeof block, block, sample);
        break;
    case LEAT_AEAD_AES_256_GCM:
        aes256_encrypt(&s->hp.aes256, sizeof block, block, sample);
        break;
    default: /* RFC 9001 §5.4.4: counter, then nonce; the nonce's setter clears the counter */
        chacha_set_nonce96(&s->hp.chacha, sample + 4);
        chacha_set_counter32(&s->hp.chacha, sample);
        memset(block, 0, LEAT_HP_MASK);
        chacha_crypt32(&s->hp.chacha, LEAT_HP_MASK, block, block);
        break;
    }
    memcpy(mask, block, LEAT_HP_MASK);
}

static void mask_many(void *engine, void *opaque, leat_mask_op *ops, size_t n)
{
    (void)engine;
    for (size_t i = 0; i < n; i++) {
        mask_one(opaque, ops[i].sample, ops[i].mask);
    }
}

static leat_err seal_many(void *engine, void *opaque, leat_seal_op *ops, size_t n)
{
    (void)engine;
    slot *s = opaque;
    for (size_t i = 0; i < n; i++) {
        const leat_seal_op *op = &ops[i];
        uint8_t *payload = op->packet + op->header_len;
        size_t sealed = op->payload_len + LEAT_AEAD_TAG;
        uint8_t nonce[LEAT_AEAD_IV];
        leat_aead_nonce(s->iv, op->pn, nonce);
        if (gnutls_aead_cipher_encrypt(s->handle, nonce, sizeof nonce, op->packet, op->header_len,
                                       LEAT_AEAD_TAG, payload, op->payload_len, payload,
                                       &sealed) != 0) {
            return LEAT_ERR_CRYPTO;
        }
        size_t pn_offset = op->header_len - op->pn_len;
        uint8_t mask[LEAT_HP_MASK];
        mask_one(s, op->packet + pn_offset + 4, mask);
        leat_hp_apply(op->packet, pn_offset, op->pn_len, mask);
    }
    return LEAT_OK;
}

static void open_many(void *engine, void *opaque, leat_open_op *ops, size_t n)
{
    (void)engine;
    slot *s = opaque;
    for (size_t i = 0; i < n; i++) {
        leat_open_op *op = &ops[i];
        if (op->payload_len < LEAT_AEAD_TAG) {
            op->result = LEAT_ERR_CRYPTO;
            continue;
        }
        size_t plain = op->payload_len - LEAT_AEAD_TAG;
        uint8_t nonce[LEAT_AEAD_IV];
        leat_aead_nonce(s->iv, op->pn, nonce);
        int rc = gnutls_aead_cipher_decrypt(s->handle, nonce, sizeof nonce, op->header,
                                            op->header_len, LEAT_AEAD_TAG, op->payload,
                                            op->payload_len, op->payload, &plain);
        op->result = rc == 0 ? LEAT_OK : LEAT_ERR_CRYPTO;
    }
}

const leat_crypto_backend leat_crypto_gnutls = {
    .name = "gnutls",
    .usable = usable,
    .engine_new = engine_new,
    .keys_without_heap = keys_without_heap,
    .slot_size = sizeof(slot),
    .slot_new = slot_new,
    .slot_free = slot_free,
    .slot_key = slot_key,
    .slot_wipe = slot_wipe,
    .seal = seal_many,
    .mask = mask_many,
    .open = open_many,
};
