/* crypto/retry.h: the integrity tag of a Retry packet (RFC 9001 §5.8). Nothing here allocates.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CRYPTO_RETRY_H
#define LEAT_CRYPTO_RETRY_H

#include "crypto/schedule.h"

/* Computes the tag. `packet` is the Retry packet from its first byte to the token's end, without
 * tag; odcid the Destination Connection ID of the Initial that it answers (up to 20 bytes,
 * asserted). */
void leat_retry_tag(const leat_schedule *schedule, const uint8_t *odcid, size_t odcid_len,
                    const uint8_t *packet, size_t len, uint8_t tag[LEAT_AEAD_TAG]);

/* True when the last LEAT_AEAD_TAG bytes of `packet` are its right tag. len counts them; too short
 * is false. */
bool leat_retry_verify(const leat_schedule *schedule, const uint8_t *odcid, size_t odcid_len,
                       const uint8_t *packet, size_t len);

#endif
