/* The table of algorithms. Limits: RFC 9001 §6.6; the confidentiality limit of ChaCha20-Poly1305 is
 * above the number of packets that a connection can have, so the row says 2^62.
 *
 * SPDX-License-Identifier: MIT
 */
#include "crypto/aead.h"

#include "base/assert.h"

static const leat_aead_info infos[LEAT_AEAD_COUNT] = {
    [LEAT_AEAD_AES_128_GCM] = {.name = "TLS_AES_128_GCM_SHA256",
                               .cipher_suite = 0x1301,
                               .key_len = 16,
                               .secret_len = 32,
                               .hash = LEAT_HASH_SHA256,
                               .seal_limit = UINT64_C(1) << 23,
                               .open_fail_limit = UINT64_C(1) << 52},
    [LEAT_AEAD_AES_256_GCM] = {.name = "TLS_AES_256_GCM_SHA384",
                               .cipher_suite = 0x1302,
                               .key_len = 32,
                               .secret_len = 48,
                               .hash = LEAT_HASH_SHA384,
                               .seal_limit = UINT64_C(1) << 23,
                               .open_fail_limit = UINT64_C(1) << 52},
    [LEAT_AEAD_CHACHA20_POLY1305] = {.name = "TLS_CHACHA20_POLY1305_SHA256",
                                     .cipher_suite = 0x1303,
                                     .key_len = 32,
                                     .secret_len = 32,
                                     .hash = LEAT_HASH_SHA256,
                                     .seal_limit = UINT64_C(1) << 62,
                                     .open_fail_limit = UINT64_C(1) << 36},
};

const leat_aead_info *leat_aead_info_get(leat_aead aead)
{
    LEAT_ASSERT((unsigned)aead < LEAT_AEAD_COUNT);
    return &infos[aead];
}

bool leat_aead_from_suite(uint16_t cipher_suite, leat_aead *out)
{
    for (unsigned i = 0; i < LEAT_AEAD_COUNT; i++) {
        if (infos[i].cipher_suite == cipher_suite) {
            *out = (leat_aead)i;
            return true;
        }
    }
    return false;
}
