/* tls/post.h: post-handshake CRYPTO bytes (level ONE_RTT) once the TLS state is gone.
 *
 * A streaming parser of 16 bytes that keeps one number of a message at a time. A client reads and
 * forgets NewSessionTicket (RFC 8446 §4.6.1); one whose parts do not fit it ends the connection
 * with decode_error, one that allows another size of early data than 0xffffffff with
 * PROTOCOL_VIOLATION (RFC 9001 §4.6.1). Everything else ends it too: KeyUpdate with
 * unexpected_message (RFC 9001 §6), CertificateRequest with PROTOCOL_VIOLATION (RFC 9001 §4.4), any
 * other message with unexpected_message; a message longer than LEAT_TLS_POST_MESSAGE_DEFAULT
 * (leat/limits.h) with CRYPTO_BUFFER_EXCEEDED. A server accepts nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TLS_POST_H
#define LEAT_TLS_POST_H

#include <leat/base.h>

typedef struct leat_tls_post {
    uint32_t left;     /* bytes of the present message's body still to come */
    uint32_t tickets;  /* messages accepted, for statistics */
    uint8_t number[4]; /* the number that is being read, as far as it has come */
    uint16_t want;     /* bytes still to come of the present field */
    uint8_t field : 7; /* enum field of post.c; 0 between messages and within a header */
    bool is_server : 1;
    uint8_t have; /* bytes of the number */
} leat_tls_post;

void leat_tls_post_init(leat_tls_post *post, bool is_server);

/* Takes the next bytes, in order, each once. Returns 0, or the transport error code to close with,
 * and the same for all bytes that follow; *text (may be NULL) then says why. */
uint64_t leat_tls_post_recv(leat_tls_post *post, const uint8_t *data, size_t len,
                            const char **text);

/* The verdict on one message header: 0 or a transport error code. Used by the parser above, and by
 * TLS while its state is still there. */
uint64_t leat_tls_post_judge(bool is_server, uint8_t type, uint32_t len, const char **text);

#endif
