/* crypto/level.h: the encryption levels of a connection (RFC 9001 §2.1), in the order in which they
 * come. Packet number spaces: INITIAL and HANDSHAKE have one each, ZERO_RTT and ONE_RTT share one.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CRYPTO_LEVEL_H
#define LEAT_CRYPTO_LEVEL_H

typedef enum leat_level {
    LEAT_LEVEL_INITIAL,
    LEAT_LEVEL_ZERO_RTT,
    LEAT_LEVEL_HANDSHAKE,
    LEAT_LEVEL_ONE_RTT,
    LEAT_LEVEL_COUNT
} leat_level;

/* The direction that a key or secret serves, seen from this end. */
typedef enum leat_dir { LEAT_RX, LEAT_TX } leat_dir;

/* "initial", "0rtt", "handshake", "1rtt". Static. */
static inline const char *leat_level_name(leat_level level)
{
    static const char *const names[LEAT_LEVEL_COUNT] = {"initial", "0rtt", "handshake", "1rtt"};
    return (unsigned)level < LEAT_LEVEL_COUNT ? names[level] : "?";
}

#endif
