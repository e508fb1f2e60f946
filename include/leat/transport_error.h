/* leat/transport_error.h: the error codes that a QUIC transport puts on the wire (RFC 9000 §20.1).
 *
 * They travel in CONNECTION_CLOSE frames of type 0x1c; errors of the application's protocol (type
 * 0x1d) are the application's own. leat_err (leat/base.h) is what functions return; these are what
 * peers tell each other.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TRANSPORT_ERROR_H
#define LEAT_TRANSPORT_ERROR_H

#include <leat/base.h>

LEAT_BEGIN_DECLS

/* X(name, value, text). CRYPTO_ERROR is the first of 256: its low byte is the TLS alert. */
#define LEAT_TRANSPORT_ERROR_LIST(X)                                                               \
    X(NO_ERROR, 0x00, "no error")                                                                  \
    X(INTERNAL_ERROR, 0x01, "the endpoint met an internal error")                                  \
    X(CONNECTION_REFUSED, 0x02, "the server refuses the connection")                               \
    X(FLOW_CONTROL_ERROR, 0x03, "more data received than was allowed")                             \
    X(STREAM_LIMIT_ERROR, 0x04, "more streams opened than were allowed")                           \
    X(STREAM_STATE_ERROR, 0x05, "a frame came for a stream in the wrong state")                    \
    X(FINAL_SIZE_ERROR, 0x06, "a stream's final size changed or was exceeded")                     \
    X(FRAME_ENCODING_ERROR, 0x07, "a frame is badly formatted")                                    \
    X(TRANSPORT_PARAMETER_ERROR, 0x08, "the transport parameters are not valid")                   \
    X(CONNECTION_ID_LIMIT_ERROR, 0x09, "more connection IDs provided than were allowed")           \
    X(PROTOCOL_VIOLATION, 0x0a, "the peer broke a rule of the protocol")                           \
    X(INVALID_TOKEN, 0x0b, "the token in an Initial is not valid")                                 \
    X(APPLICATION_ERROR, 0x0c, "the application closed the connection")                            \
    X(CRYPTO_BUFFER_EXCEEDED, 0x0d, "more handshake data received than can be buffered")           \
    X(KEY_UPDATE_ERROR, 0x0e, "a key update was not allowed")                                      \
    X(AEAD_LIMIT_REACHED, 0x0f, "the keys reached the limit of their use")                         \
    X(NO_VIABLE_PATH, 0x10, "no network path supports QUIC")                                       \
    X(VERSION_NEGOTIATION_ERROR, 0x11, "version negotiation was tampered with (RFC 9368)")         \
    X(CRYPTO_ERROR, 0x0100, "the TLS handshake failed with an alert")

#define LEAT_TRANSPORT_ERROR_ENUM(name, value, text) LEAT_TE_##name = (value),
typedef enum leat_transport_error {
    LEAT_TRANSPORT_ERROR_LIST(LEAT_TRANSPORT_ERROR_ENUM)
} leat_transport_error;
#undef LEAT_TRANSPORT_ERROR_ENUM

/* Whether a code is one of the 256 that carry a TLS alert, and which alert it carries. */
static inline bool leat_transport_error_is_crypto(uint64_t code)
{
    return code >> 8 == 1;
}

static inline uint8_t leat_transport_error_alert(uint64_t code)
{
    return (uint8_t)code;
}

/* The name ("FLOW_CONTROL_ERROR", as the RFC and qlog write it) and the text of a code; any code
 * from 0x0100 to 0x01ff is "CRYPTO_ERROR". For a code outside the list, "UNKNOWN" and "unknown
 * transport error". Static strings; any thread. */
LEAT_API const char *leat_transport_error_name(uint64_t code);
LEAT_API const char *leat_transport_error_text(uint64_t code);

LEAT_END_DECLS

#endif
