/* crypto/schedule.h: HKDF-Expand-Label (RFC 8446 §7.1) and what QUIC derives with it (RFC 9001
 * §5.1, §5.2, §6.1; RFC 9369 §3.3). Nothing here allocates.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CRYPTO_SCHEDULE_H
#define LEAT_CRYPTO_SCHEDULE_H

#include "crypto/aead.h"

/* One row a QUIC version: what its keys are made with. */
typedef struct leat_schedule {
    uint32_t version;
    uint8_t initial_salt[20];
    const char *key; /* labels, without the "tls13 " in front */
    const char *iv;
    const char *hp;
    const char *ku;
    uint8_t retry_key[16];
    uint8_t retry_nonce[LEAT_AEAD_IV];
} leat_schedule;

/* The row of a version, static; NULL for a version that leat does not speak. */
const leat_schedule *leat_schedule_for(uint32_t version);

/* HMAC of the hash over the data; out has the hash's length (32 or 48 bytes). */
void leat_hmac(leat_hash hash, const uint8_t *key, size_t key_len, const uint8_t *data, size_t len,
               uint8_t *out);

/* HKDF-Extract; out has the hash's length. */
void leat_hkdf_extract(leat_hash hash, const uint8_t *salt, size_t salt_len, const uint8_t *ikm,
                       size_t ikm_len, uint8_t *out);

/* HKDF-Expand-Label with an empty context. The secret has the hash's length; out_len <= 64,
 * strlen(label) <= 32 (asserted). `label` goes without "tls13 ". */
void leat_hkdf_expand_label(leat_hash hash, const uint8_t *secret, const char *label, uint8_t *out,
                            size_t out_len);

/* Several labels under one secret: that is hashed but once. */
typedef struct leat_hkdf_label {
    const char *label;
    uint8_t *out;
    size_t out_len;
} leat_hkdf_label;
void leat_hkdf_expand_labels(leat_hash hash, const uint8_t *secret, const leat_hkdf_label *labels,
                             size_t count);

/* Both Initial secrets of a connection, from the Destination Connection ID of the client's first
 * Initial packet (after a Retry: of the first one that follows it). */
void leat_initial_secrets(const leat_schedule *schedule, const uint8_t *dcid, size_t dcid_len,
                          uint8_t client[32], uint8_t server[32]);

#endif
