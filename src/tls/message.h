/* tls/message.h: the little of TLS 1.3's handshake messages (RFC 8446 §4) that leat looks at
 * itself.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TLS_MESSAGE_H
#define LEAT_TLS_MESSAGE_H

#include <stdint.h>

enum { LEAT_TLS_MESSAGE_HEADER = 4 }; /* type, then length in 3 bytes */

enum leat_tls_message_type {
    LEAT_TLS_CLIENT_HELLO = 1,
    LEAT_TLS_NEW_SESSION_TICKET = 4,
    LEAT_TLS_END_OF_EARLY_DATA = 5,
    LEAT_TLS_ENCRYPTED_EXTENSIONS = 8,
    LEAT_TLS_CERTIFICATE_REQUEST = 13,
    LEAT_TLS_KEY_UPDATE = 24
};

/* Its extensions that leat looks at itself. */
enum leat_tls_extension {
    LEAT_TLS_PRE_SHARED_KEY = 41,
    LEAT_TLS_EARLY_DATA = 42,
    LEAT_TLS_KEY_SHARE = 51,
    LEAT_TLS_QUIC_PARAMS = 57
};

#define LEAT_TLS_EARLY_DATA_MAX 0xffffffffu /* what a ticket for QUIC allows, RFC 9001 §4.6.1 */

/* The alerts that leat raises by itself (RFC 8446 §6). */
enum leat_tls_alert {
    LEAT_TLS_ALERT_UNEXPECTED_MESSAGE = 10,
    LEAT_TLS_ALERT_BAD_CERTIFICATE = 42,
    LEAT_TLS_ALERT_CERTIFICATE_REVOKED = 44,
    LEAT_TLS_ALERT_CERTIFICATE_EXPIRED = 45,
    LEAT_TLS_ALERT_UNKNOWN_CA = 48,
    LEAT_TLS_ALERT_DECODE_ERROR = 50,
    LEAT_TLS_ALERT_INTERNAL_ERROR = 80,
    LEAT_TLS_ALERT_MISSING_EXTENSION = 109,
    LEAT_TLS_ALERT_NO_APPLICATION_PROTOCOL = 120
};

/* The body's length from a message's header. */
static inline uint32_t leat_tls_message_len(const uint8_t header[LEAT_TLS_MESSAGE_HEADER])
{
    return ((uint32_t)header[1] << 16) | ((uint32_t)header[2] << 8) | header[3];
}

#endif
