/* The parser of post-handshake messages; post.h says what passes. Numbers are put together, 4 bytes
 * at most; all else is skipped, never kept.
 *
 * SPDX-License-Identifier: MIT
 */
#include "tls/post.h"

#include <string.h>

#include <leat/limits.h>
#include <leat/transport_error.h>

#include "base/cursor.h"
#include "tls/message.h"

/* A message's header, then what a NewSessionTicket consists of (RFC 8446 §4.6.1), then what cannot
 * go on. */
enum field {
    HEADER,
    TIMES, /* lifetime and age_add */
    NONCE_LEN,
    NONCE,
    TICKET_LEN,
    TICKET,
    LIST_LEN,  /* of extensions */
    EXTENSION, /* type and length */
    BODY,
    EARLY_DATA,
    BAD_FORM,
    BAD_SIZE
};

void leat_tls_post_init(leat_tls_post *post, bool is_server)
{
    *post = (leat_tls_post){.is_server = is_server, .want = LEAT_TLS_MESSAGE_HEADER};
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

/* The field that follows; one that the message has no room for is an error, which wants no byte. */
static void begin(leat_tls_post *post, enum field field, uint16_t len)
{
    bool fits = len <= post->left || field == HEADER;

    post->field = fits ? field : BAD_FORM;
    post->want = fits ? len : 0;
    post->have = 0;
}

static void next_extension(leat_tls_post *post)
{
    if (post->left > 0) {
        begin(post, EXTENSION, 4);
    } else {
        begin(post, HEADER, LEAT_TLS_MESSAGE_HEADER);
    }
}

static void begin_body(leat_tls_post *post, uint16_t type, uint16_t len)
{
    if (type != LEAT_TLS_EARLY_DATA) {
        begin(post, BODY, len);
    } else if (len == 4) {
        begin(post, EARLY_DATA, len);
    } else {
        post->field = BAD_FORM;
    }
}

static uint64_t on_header(leat_tls_post *post, const char **text)
{
    uint32_t len = leat_tls_message_len(post->number);
    uint64_t code = leat_tls_post_judge(post->is_server, post->number[0], len, text);

    if (code == 0) {
        post->left = len;
        post->tickets++;
        begin(post, TIMES, 8);
    }
    return code;
}

/* A field is complete, or it was bad. */
static uint64_t on_field(leat_tls_post *post, const char **text)
{
    const uint8_t *number = post->number;

    switch ((enum field)post->field) {
    case HEADER:
        return on_header(post, text);
    case TIMES:
        begin(post, NONCE_LEN, 1);
        break;
    case NONCE_LEN:
        begin(post, NONCE, number[0]);
        break;
    case NONCE:
        begin(post, TICKET_LEN, 2);
        break;
    case TICKET_LEN:
        begin(post, TICKET, leat_load_u16(number));
        break;
    case TICKET:
        begin(post, LIST_LEN, 2);
        break;
    case LIST_LEN:
        if (leat_load_u16(number) != post->left) {
            post->field = BAD_FORM;
            break;
        }
        next_extension(post);
        break;
    case EXTENSION:
        begin_body(post, leat_load_u16(number), leat_load_u16(number + 2));
        break;
    case EARLY_DATA:
        if (leat_load_u32(number) != LEAT_TLS_EARLY_DATA_MAX) {
            post->field = BAD_SIZE;
            break;
        }
        next_extension(post);
        break;
    case BODY:
        next_extension(post);
        break;
    case BAD_FORM:
        return verdict(LEAT_TE_CRYPTO_ERROR + LEAT_TLS_ALERT_DECODE_ERROR,
                       "malformed TLS session ticket", text);
    default: /* BAD_SIZE */
        return verdict(LEAT_TE_PROTOCOL_VIOLATION,
                       "TLS session ticket with another size of early data", text);
    }
    return 0;
}

/* As much of the present field as there is. Returns the bytes taken. */
static size_t take(leat_tls_post *post, const uint8_t *data, size_t len)
{
    size_t n = len < post->want ? len : post->want;

    if (post->field != TIMES && post->field != NONCE && post->field != TICKET &&
        post->field != BODY) {
        memcpy(post->number + post->have, data, n);
        post->have += (uint8_t)n;
    }
    if (post->field != HEADER) {
        post->left -= (uint32_t)n;
    }
    post->want -= (uint16_t)n;
    return n;
}

uint64_t leat_tls_post_recv(leat_tls_post *post, const uint8_t *data, size_t len, const char **text)
{
    uint64_t code = verdict(0, "", text);

    while (code == 0) {
        if (post->want > 0) {
            size_t n = take(post, data, len);

            data += n;
            len -= n;
            if (post->want > 0) {
                break;
            }
        }
        code = on_field(post, text);
    }
    return code;
}
