/* conn/session.h: what a client stores of a connection, to resume it later: one opaque blob.
 *
 *     magic (4) "leaS"   format (1)   flags (1)   trust (1)   QUIC version (4)
 *     ALPN (1 + n)   server name (1 + n)   transport parameters (2 + n)
 *     TLS session (4 + n)   check sum (16)
 *
 * Of the server's transport parameters those are there that RFC 9000 §7.4.1 lets a client remember;
 * ack_delay_exponent, max_ack_delay, connection IDs, reset token and preferred address never are.
 * The check sum finds accidents: GnuTLS reads its part unchecked. Who can write the blob has the
 * secrets in it anyway.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CONN_SESSION_H
#define LEAT_CONN_SESSION_H

#include <leat/base.h>

#include "wire/tparams.h"

typedef struct leat_session {
    bool early;       /* the ticket allows 0-RTT */
    uint8_t trust;    /* leat_tls_config_trust() of the connection it is from */
    uint32_t version; /* of QUIC, at its end */
    leat_span alpn;
    leat_span server_name;
    leat_span tls;
    leat_tparams params; /* decoded: what may be remembered, the rest as if absent */
} leat_session;

/* Most bytes that leat_session_encode() writes. */
size_t leat_session_size(const leat_session *session);

/* Writes the blob and returns its length; 0: it does not fit. */
size_t leat_session_encode(const leat_session *session, uint8_t *out, size_t cap);

/* Reads a blob; the spans point into it. False: it is none, or of another format, or damaged. */
bool leat_session_decode(leat_span blob, leat_session *out);

/* The parameters that limit what a client sends are no lower than remembered (RFC 9000 §7.4.1, RFC
 * 9221 §3). */
bool leat_session_limits_kept(const leat_tparams *remembered, const leat_tparams *now);

#endif
