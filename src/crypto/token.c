/* Sealed blobs and reset tokens; token.h tells the format and why each blob has a key of its own.
 *
 * SPDX-License-Identifier: MIT
 */
#include "crypto/token.h"

#include <nettle/chacha-poly1305.h>
#include <nettle/hmac.h>
#include <string.h>

#include "crypto/secret.h"

enum { SALT = 16, TAG = 16 };

/* Ready to encrypt or decrypt under the blob's own key, with the associated data taken in. */
static void begin(struct chacha_poly1305_ctx *aead, const uint8_t key[LEAT_TOKEN_KEY],
                  const uint8_t salt[SALT], leat_span aad)
{
    static const uint8_t nonce[CHACHA_POLY1305_NONCE_SIZE] = {0}; /* the key is used once */
    struct hmac_sha256_ctx mac;
    uint8_t own[CHACHA_POLY1305_KEY_SIZE];
    hmac_sha256_set_key(&mac, LEAT_TOKEN_KEY, key);
    hmac_sha256_update(&mac, SALT, salt);
    hmac_sha256_digest(&mac, sizeof own, own);
    chacha_poly1305_set_key(aead, own);
    chacha_poly1305_set_nonce(aead, nonce);
    chacha_poly1305_update(aead, aad.len, aad.data);
    leat_wipe(own, sizeof own);
    leat_wipe(&mac, sizeof mac);
}

size_t leat_token_seal(const uint8_t key[LEAT_TOKEN_KEY], leat_random *random, leat_span aad,
                       const uint8_t *plain, size_t len, uint8_t *out)
{
    struct chacha_poly1305_ctx aead;
    leat_random_fill(random, out, SALT);
    begin(&aead, key, out, aad);
    chacha_poly1305_encrypt(&aead, len, out + SALT, plain);
    chacha_poly1305_digest(&aead, TAG, out + SALT + len);
    leat_wipe(&aead, sizeof aead);
    return len + LEAT_TOKEN_OVERHEAD;
}

leat_err leat_token_open(const uint8_t key[LEAT_TOKEN_KEY], leat_span aad, const uint8_t *blob,
                         size_t len, uint8_t *out, size_t *out_len)
{
    *out_len = 0;
    if (len < LEAT_TOKEN_OVERHEAD) {
        return LEAT_ERR_CRYPTO;
    }
    size_t plain = len - LEAT_TOKEN_OVERHEAD;
    struct chacha_poly1305_ctx aead;
    uint8_t tag[TAG];
    begin(&aead, key, blob, aad);
    chacha_poly1305_decrypt(&aead, plain, out, blob + SALT);
    chacha_poly1305_digest(&aead, TAG, tag);
    leat_wipe(&aead, sizeof aead);
    if (!leat_secret_equal(tag, blob + SALT + plain, TAG)) {
        leat_wipe(out, plain);
        return LEAT_ERR_CRYPTO;
    }
    *out_len = plain;
    return LEAT_OK;
}

void leat_reset_token(const uint8_t key[LEAT_TOKEN_KEY], const uint8_t *cid, size_t cid_len,
                      uint8_t out[LEAT_RESET_TOKEN])
{
    struct hmac_sha256_ctx mac;
    hmac_sha256_set_key(&mac, LEAT_TOKEN_KEY, key);
    hmac_sha256_update(&mac, cid_len, cid);
    hmac_sha256_digest(&mac, LEAT_RESET_TOKEN, out);
    leat_wipe(&mac, sizeof mac);
}
