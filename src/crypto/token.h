/* crypto/token.h: small blobs that a server hands out and gets back (Retry and NEW_TOKEN tokens,
 * RFC 9000 §8.1), and stateless reset tokens (RFC 9000 §10.3.2). Nothing here allocates.
 *
 * A sealed blob is salt (16 random bytes), ciphertext, tag (16). Each is sealed with
 * ChaCha20-Poly1305 under a key of its own, HMAC-SHA256(server key, salt): salts of 128 bits may be
 * random for as long as a server lives, which the AEAD's nonces of 96 bits may not. What the blob
 * says, its expiry, and which of several server keys to try are the caller's matters. Keys are
 * read-only here: threads may share them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CRYPTO_TOKEN_H
#define LEAT_CRYPTO_TOKEN_H

#include <leat/base.h>

#include "crypto/random.h"

enum { LEAT_TOKEN_KEY = 32, LEAT_TOKEN_OVERHEAD = 32, LEAT_RESET_TOKEN = 16 };

/* Seals len bytes into out, which has room for len + LEAT_TOKEN_OVERHEAD; returns that many. `aad`
 * (the client's address, say) is not in the blob but must be the same when it is opened. */
size_t leat_token_seal(const uint8_t key[LEAT_TOKEN_KEY], leat_random *random, leat_span aad,
                       const uint8_t *plain, size_t len, uint8_t *out);

/* Opens a blob into out, which has room for len - LEAT_TOKEN_OVERHEAD bytes, and says in *out_len
 * how many they are. LEAT_ERR_CRYPTO when it is not ours, changed, or too short; out is then wiped.
 */
leat_err leat_token_open(const uint8_t key[LEAT_TOKEN_KEY], leat_span aad, const uint8_t *blob,
                         size_t len, uint8_t *out, size_t *out_len);

/* The stateless reset token of a connection ID: HMAC-SHA256(key, cid), the first 16 bytes. Compare
 * with leat_secret_equal(). */
void leat_reset_token(const uint8_t key[LEAT_TOKEN_KEY], const uint8_t *cid, size_t cid_len,
                      uint8_t out[LEAT_RESET_TOKEN]);

#endif
