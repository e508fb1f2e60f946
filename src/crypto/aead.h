/* crypto/aead.h: the door to packet protection (RFC 9001 §5), and the table that a backend fills.
 *
 * The connection never calls a backend: it calls leat_seal(), leat_mask() and leat_open() of
 * crypto/keys.h, which find the expanded key in the context's cache and pass the batch on.
 *
 * A batch is an array of operations under one key. Everything happens in place:
 *   - seal: the caller has written header and plaintext one after the other, with LEAT_AEAD_TAG
 *     bytes of room behind. Afterwards the packet is ready to send: payload encrypted, tag
 *     appended, header protection applied.
 *   - open, first step: leat_mask() computes header protection masks from samples;
 *     leat_hp_remove() applies one and reads the truncated packet number. Second step: once the
 *     packet number is restored, leat_open() decrypts. Each operation has its own result; when it
 *     is LEAT_ERR_CRYPTO the payload bytes are undefined (a backend may have decrypted before it
 *     knew) and must not be looked at; the header is untouched.
 *
 * Adding a backend: one file with one leat_crypto_backend, one row in leat_crypto_backends
 * (crypto/backend.c, best first); the tests of tests/unit/crypto run on every row by themselves.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CRYPTO_AEAD_H
#define LEAT_CRYPTO_AEAD_H

#include <leat/base.h>
#include <leat/buf.h>

#include "base/cursor.h"
#include "wire/header.h" /* LEAT_AEAD_TAG, LEAT_HP_SAMPLE */

enum {
    LEAT_AEAD_IV = 12,      /* bytes of IV and nonce */
    LEAT_AEAD_KEY_MAX = 32, /* bytes of the longest key, AEAD's and header protection's */
    LEAT_HP_MASK = 5,       /* bytes of mask used */
    LEAT_SECRET_MAX = 48    /* bytes of the longest traffic secret (SHA-384) */
};

typedef enum leat_aead {
    LEAT_AEAD_AES_128_GCM,
    LEAT_AEAD_AES_256_GCM,
    LEAT_AEAD_CHACHA20_POLY1305,
    LEAT_AEAD_COUNT
} leat_aead;

typedef enum leat_hash { LEAT_HASH_SHA256, LEAT_HASH_SHA384 } leat_hash;

typedef struct leat_aead_info {
    const char *name;         /* "TLS_AES_128_GCM_SHA256" */
    uint16_t cipher_suite;    /* number of the TLS cipher suite */
    uint8_t key_len;          /* bytes of key; header protection's key is as long */
    uint8_t secret_len;       /* bytes of a traffic secret: the hash's length */
    leat_hash hash;           /* of the key schedule */
    uint64_t seal_limit;      /* packets sealed with one key (confidentiality), RFC 9001 §6.6 */
    uint64_t open_fail_limit; /* forged packets in a connection's life (integrity), RFC 9001 §6.6 */
} leat_aead_info;

/* Facts about an algorithm. Static; aead must be in the list (asserted). */
const leat_aead_info *leat_aead_info_get(leat_aead aead);

/* The algorithm of a TLS cipher suite. False when QUIC leat does not carry it. */
bool leat_aead_from_suite(uint16_t cipher_suite, leat_aead *out);

/* One packet to seal. `packet` holds header_len bytes of header, the last pn_len of which are the
 * packet number (1 to 4), then payload_len bytes of plaintext, then LEAT_AEAD_TAG bytes of room.
 * pn_len + payload_len >= 4, so that there is a whole sample (asserted). */
typedef struct leat_seal_op {
    uint8_t *packet;
    uint64_t pn;
    uint32_t header_len;
    uint32_t payload_len;
    uint8_t pn_len;
} leat_seal_op;

/* One mask to compute. `sample` points at LEAT_HP_SAMPLE bytes, 4 bytes behind the place where the
 * packet number begins. */
typedef struct leat_mask_op {
    const uint8_t *sample;
    uint8_t mask[LEAT_HP_MASK];
} leat_mask_op;

/* One packet to open. `payload` is ciphertext and tag, payload_len their bytes together; on LEAT_OK
 * the first payload_len - LEAT_AEAD_TAG are plaintext. A payload shorter than a tag gives
 * LEAT_ERR_CRYPTO. `header` is the unprotected header, packet number included. */
typedef struct leat_open_op {
    const uint8_t *header;
    uint8_t *payload;
    uint64_t pn;
    uint32_t header_len;
    uint32_t payload_len;
    leat_err result;
} leat_open_op;

/* The bits of the first byte that header protection covers. */
static inline uint8_t leat_hp_bits(uint8_t first)
{
    return (first & 0x80) ? 0x0f : 0x1f;
}

/* Applies a mask to the header of a packet that is being sealed. pn_len is 1 to 4; all of the four
 * bytes in front of the sample are there, whatever pn_len. */
static inline void leat_hp_apply(uint8_t *packet, size_t pn_offset, unsigned pn_len,
                                 const uint8_t mask[LEAT_HP_MASK])
{
    uint8_t *pn = packet + pn_offset;
    uint32_t bits = leat_load_u32(mask + 1) & (UINT32_MAX << (32 - 8 * pn_len));
    packet[0] ^= mask[0] & leat_hp_bits(packet[0]);
    leat_store_u32(pn, leat_load_u32(pn) ^ bits);
}

/* Removes header protection in place. Returns the packet number's length in bytes, 1 to 4, and its
 * truncated value in *pn. The caller has checked that the packet reaches to the sample's end. */
static inline unsigned leat_hp_remove(uint8_t *packet, size_t pn_offset,
                                      const uint8_t mask[LEAT_HP_MASK], uint32_t *pn)
{
    packet[0] ^= mask[0] & leat_hp_bits(packet[0]);
    unsigned pn_len = (packet[0] & 0x03) + 1u;
    unsigned behind = 32 - 8 * pn_len; /* bits of payload in the four bytes */
    uint32_t bytes = leat_load_u32(packet + pn_offset);
    bytes ^= leat_load_u32(mask + 1) & (UINT32_MAX << behind);
    leat_store_u32(packet + pn_offset, bytes);
    *pn = bytes >> behind;
    return pn_len;
}

/* The nonce of a packet: the IV with the packet number XORed into its end (RFC 9001 §5.3). */
static inline void leat_aead_nonce(const uint8_t iv[LEAT_AEAD_IV], uint64_t pn,
                                   uint8_t nonce[LEAT_AEAD_IV])
{
    memcpy(nonce, iv, 4);
    leat_store_u64(nonce + 4, leat_load_u64(iv + 4) ^ pn);
}

/* What a backend is: functions over an engine (one a context) and slots (one expanded key each:
 * AEAD key, IV and header protection key). A slot is made for one algorithm and keyed many times.
 * Only engine_new and slot_new may allocate; the rest is on the packet's way. */
typedef struct leat_crypto_backend {
    const char *name;
    /* True when this processor can run it. */
    bool (*usable)(void);
    /* May be NULL, as may engine_free: the engine is then NULL. */
    leat_err (*engine_new)(leat_mem *mem, void **engine);
    void (*engine_free)(leat_mem *mem, void *engine);
    /* Whether slot_key allocates nothing for this algorithm. */
    bool (*keys_without_heap)(void *engine, leat_aead aead);
    /* Bytes of a slot; the cache takes them from the context's memory, zeroed and 64-byte aligned.
     */
    size_t slot_size;
    leat_err (*slot_new)(void *engine, void *slot, leat_aead aead);
    /* Gives back what slot_new took and wipes the slot. */
    void (*slot_free)(void *engine, void *slot);
    /* Expands a key into the slot, replacing the former. key and hp have the algorithm's length. */
    leat_err (*slot_key)(void *engine, void *slot, const uint8_t *key,
                         const uint8_t iv[LEAT_AEAD_IV], const uint8_t *hp);
    /* Wipes the expanded key; the slot can be keyed again. */
    void (*slot_wipe)(void *engine, void *slot);
    /* Sealing under a good key cannot fail for a reason of the peer's: LEAT_ERR_CRYPTO means a
     * broken library, and the connection closes. */
    leat_err (*seal)(void *engine, void *slot, leat_seal_op *ops, size_t n);
    void (*mask)(void *engine, void *slot, leat_mask_op *ops, size_t n);
    void (*open)(void *engine, void *slot, leat_open_op *ops, size_t n);
} leat_crypto_backend;

/* All backends of this build, best first, NULL at the end; the last one is always usable. */
extern const leat_crypto_backend *const leat_crypto_backends[];

/* The first usable backend, or with a name the one of that name if usable (NULL otherwise). */
const leat_crypto_backend *leat_crypto_backend_pick(const char *name);

#endif
