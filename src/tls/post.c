/* The parser of post-handshake messages; post.h says what passes. A message's body is skipped,
 * never kept, so a header of 4 bytes is all that must be put together.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tls/post.h"

#include <leat/limits.h>
#include <leat/transport_error.h>

#include "tls/message.h"

void leat_tls_post_init(leat_tls_post *post, bool is_server)
{
    *post = (leat_tls_post){.is_server = is_server};
}

static uint64_t verdict(uint64_t code, const char *why, const char **text)
{
    if (text) {
        *text = why;
    }
    return code;
}

uint64_t leat_tls_post_judge(bool is_server, uint8_t type, uint32_t len, const char **text)
{
    const uint64_t unexpected = LEAT_TE_CRYPTO_ERROR + LEAT_TLS_ALERT_UNEXPECTED_MESSAGE;
    if (type == LEAT_TLS_KEY_UPDATE) {
        return verdict(unexpected, "TLS KeyUpdate message", text);
    }
    if (type == LEAT_TLS_CERTIFICATE_REQUEST && !is_server) {
        return verdict(LEAT_TE_PROTOCOL_VIOLATION, "post-handshake CertificateRequest", text);
    }
    if (type != LEAT_TLS_NEW_SESSION_TICKET || is_server) {
        return verdict(unexpected, "unexpected TLS message after the handshake", text);
    }
    if (len > LEAT_TLS_POST_MESSAGE_DEFAULT) {
        return verdict(LEAT_TE_CRYPTO_BUFFER_EXCEEDED, "TLS session ticket too long", text);
    }
    return verdict(0, "", text);
}

uint64_t leat_tls_post_recv(leat_tls_post *post, const uint8_t *data, size_t len, const char **text)
{
    if (text) {
        *text = "";
    }
    while (len > 0) {
        if (post->left > 0) {
            size_t skip = len < post->left ? len : post->left;
            post->left -= (uint32_t)skip;
            data += skip;
            len -= skip;
            continue;
        }
        post->header[post->have++] = *data++;
        len--;
        if (post->have < LEAT_TLS_MESSAGE_HEADER) {
            continue;
        }
        uint32_t body = leat_tls_message_len(post->header);
        uint64_t code = leat_tls_post_judge(post->is_server, post->header[0], body, text);
        post->have = 0;
        if (code != 0) {
            return code;
        }
        post->left = body;
        post->tickets++;
    }
    return 0;
}
