/* The Retry integrity tag: AES-128-GCM over an empty text, with the packet and the connection ID
 * that it answers as associated data, under a key that everybody knows.
 *
 * Nettle's context stands on the stack. It wants associated data in pieces of 16 bytes but for the
 * last, so the connection ID and the packet's beginning are joined in a small buffer first; the
 * packet may be of any length.
 *
 * SPDX-License-Identifier: MIT
 */
#include "crypto/retry.h"

#include <nettle/gcm.h>
#include <string.h>

#include "base/assert.h"
#include "crypto/secret.h"

void leat_retry_tag(const leat_schedule *schedule, const uint8_t *odcid, size_t odcid_len,
                    const uint8_t *packet, size_t len, uint8_t tag[LEAT_AEAD_TAG])
{
    LEAT_ASSERT(odcid_len <= 20);
    uint8_t head[2 * GCM_BLOCK_SIZE];
    size_t n = 0;
    head[n++] = (uint8_t)odcid_len;
    memcpy(head + n, odcid, odcid_len);
    n += odcid_len;
    size_t joined = sizeof head - n < len ? sizeof head - n : len;
    memcpy(head + n, packet, joined);
    n += joined;

    struct gcm_aes128_ctx gcm;
    gcm_aes128_set_key(&gcm, schedule->retry_key);
    gcm_aes128_set_iv(&gcm, LEAT_AEAD_IV, schedule->retry_nonce);
    gcm_aes128_update(&gcm, n, head);
    if (joined < len) {
        gcm_aes128_update(&gcm, len - joined, packet + joined);
    }
    gcm_aes128_digest(&gcm, LEAT_AEAD_TAG, tag);
}

bool leat_retry_verify(const leat_schedule *schedule, const uint8_t *odcid, size_t odcid_len,
                       const uint8_t *packet, size_t len)
{
    if (len < LEAT_AEAD_TAG) {
        return false;
    }
    uint8_t tag[LEAT_AEAD_TAG];
    leat_retry_tag(schedule, odcid, odcid_len, packet, len - LEAT_AEAD_TAG, tag);
    return leat_secret_equal(tag, packet + len - LEAT_AEAD_TAG, LEAT_AEAD_TAG);
}
