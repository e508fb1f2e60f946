/* h3/qpack.c: heads into field sections, by the static table alone.
 *
 * The table (RFC 9204, Appendix A) stands in its order, with its indices sorted by the length of
 * the name: an encoder asks for a name, and few names have the same length. A test reads every
 * entry back through another decoder.
 *
 * SPDX-License-Identifier: MIT
 */
#include "h3/qpack.h"

#include <string.h>

enum { ENTRIES = 99, NAME_MOST = 32, NONE = ENTRIES };
enum { COOKIE = 5, SET_COOKIE = 14, AUTHORIZATION = 84 }; /* indices */

typedef struct entry {
    const char *name, *value;
    size_t value_len;
} entry;

#define ENTRY(name, value)                                                                         \
    {                                                                                              \
        name, value, sizeof(value) - 1                                                             \
    }

static const entry table[ENTRIES] = {
    ENTRY(":authority", ""),
    ENTRY(":path", "/"),
    ENTRY("age", "0"),
    ENTRY("content-disposition", ""),
    ENTRY("content-length", "0"),
    ENTRY("cookie", ""),
    ENTRY("date", ""),
    ENTRY("etag", ""),
    ENTRY("if-modified-since", ""),
    ENTRY("if-none-match", ""),
    ENTRY("last-modified", ""),
    ENTRY("link", ""),
    ENTRY("location", ""),
    ENTRY("referer", ""),
    ENTRY("set-cookie", ""),
    ENTRY(":method", "CONNECT"),
    ENTRY(":method", "DELETE"),
    ENTRY(":method", "GET"),
    ENTRY(":method", "HEAD"),
    ENTRY(":method", "OPTIONS"),
    ENTRY(":method", "POST"),
    ENTRY(":method", "PUT"),
    ENTRY(":scheme", "http"),
    ENTRY(":scheme", "https"),
    ENTRY(":status", "103"),
    ENTRY(":status", "200"),
    ENTRY(":status", "304"),
    ENTRY(":status", "404"),
    ENTRY(":status", "503"),
    ENTRY("accept", "*/*"),
    ENTRY("accept", "application/dns-message"),
    ENTRY("accept-encoding", "gzip, deflate, br"),
    ENTRY("accept-ranges", "bytes"),
    ENTRY("access-control-allow-headers", "cache-control"),
    ENTRY("access-control-allow-headers", "content-type"),
    ENTRY("access-control-allow-origin", "*"),
    ENTRY("cache-control", "max-age=0"),
    ENTRY("cache-control", "max-age=2592000"),
    ENTRY("cache-control", "max-age=604800"),
    ENTRY("cache-control", "no-cache"),
    ENTRY("cache-control", "no-store"),
    ENTRY("cache-control", "public, max-age=31536000"),
    ENTRY("content-encoding", "br"),
    ENTRY("content-encoding", "gzip"),
    ENTRY("content-type", "application/dns-message"),
    ENTRY("content-type", "application/javascript"),
    ENTRY("content-type", "application/json"),
    ENTRY("content-type", "application/x-www-form-urlencoded"),
    ENTRY("content-type", "image/gif"),
    ENTRY("content-type", "image/jpeg"),
    ENTRY("content-type", "image/png"),
    ENTRY("content-type", "text/css"),
    ENTRY("content-type", "text/html; charset=utf-8"),
    ENTRY("content-type", "text/plain"),
    ENTRY("content-type", "text/plain;charset=utf-8"),
    ENTRY("range", "bytes=0-"),
    ENTRY("strict-transport-security", "max-age=31536000"),
    ENTRY("strict-transport-security", "max-age=31536000; includesubdomains"),
    ENTRY("strict-transport-security", "max-age=31536000; includesubdomains; preload"),
    ENTRY("vary", "accept-encoding"),
    ENTRY("vary", "origin"),
    ENTRY("x-content-type-options", "nosniff"),
    ENTRY("x-xss-protection", "1; mode=block"),
    ENTRY(":status", "100"),
    ENTRY(":status", "204"),
    ENTRY(":status", "206"),
    ENTRY(":status", "302"),
    ENTRY(":status", "400"),
    ENTRY(":status", "403"),
    ENTRY(":status", "421"),
    ENTRY(":status", "425"),
    ENTRY(":status", "500"),
    ENTRY("accept-language", ""),
    ENTRY("access-control-allow-credentials", "FALSE"),
    ENTRY("access-control-allow-credentials", "TRUE"),
    ENTRY("access-control-allow-headers", "*"),
    ENTRY("access-control-allow-methods", "get"),
    ENTRY("access-control-allow-methods", "get, post, options"),
    ENTRY("access-control-allow-methods", "options"),
    ENTRY("access-control-expose-headers", "content-length"),
    ENTRY("access-control-request-headers", "content-type"),
    ENTRY("access-control-request-method", "get"),
    ENTRY("access-control-request-method", "post"),
    ENTRY("alt-svc", "clear"),
    ENTRY("authorization", ""),
    ENTRY("content-security-policy", "script-src 'none'; object-src 'none'; base-uri 'none'"),
    ENTRY("early-data", "1"),
    ENTRY("expect-ct", ""),
    ENTRY("forwarded", ""),
    ENTRY("if-range", ""),
    ENTRY("origin", ""),
    ENTRY("purpose", "prefetch"),
    ENTRY("server", ""),
    ENTRY("timing-allow-origin", "*"),
    ENTRY("upgrade-insecure-requests", "1"),
    ENTRY("user-agent", ""),
    ENTRY("x-forwarded-for", ""),
    ENTRY("x-frame-options", "deny"),
    ENTRY("x-frame-options", "sameorigin"),
};

/* Indices by the length of their names, and where each length begins. */
static const uint8_t by_length[ENTRIES] = {
    2,  6,  7,  11, 59, 60, 1,  55, 5,  29, 30, 90, 92, 13, 15, 16, 17, 18, 19, 20,
    21, 22, 23, 24, 25, 26, 27, 28, 63, 64, 65, 66, 67, 68, 69, 70, 71, 83, 91, 12,
    89, 87, 88, 0,  14, 86, 95, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 9,  10,
    32, 36, 37, 38, 39, 40, 41, 84, 4,  31, 72, 96, 97, 98, 42, 43, 62, 8,  3,  93,
    61, 85, 56, 57, 58, 94, 35, 33, 34, 75, 76, 77, 78, 79, 81, 82, 80, 73, 74,
};
static const uint8_t begins[NAME_MOST + 2] = {
    0,  0,  0,  0,  1,  6,  8,  13, 39, 41, 43, 47, 47, 58, 68, 69, 74,
    77, 78, 78, 80, 80, 80, 81, 82, 82, 86, 86, 87, 93, 96, 97, 97, 99,
};

/* The entry of that name and value, or one of that name, or NONE. */
static unsigned find(const leat_http_field *field, bool *whole)
{
    unsigned found = NONE;
    size_t len = field->name.len;

    *whole = false;
    if (len == 0 || len > NAME_MOST) {
        return NONE;
    }
    for (unsigned i = begins[len]; i < begins[len + 1]; i++) {
        const entry *e = &table[by_length[i]];

        /* The last byte tells most of them apart. */
        if (e->name[len - 1] != (char)field->name.data[len - 1] ||
            memcmp(e->name, field->name.data, len) != 0) {
            continue;
        }
        if (field->value.len == e->value_len &&
            (e->value_len == 0 || memcmp(e->value, field->value.data, e->value_len) == 0)) {
            *whole = true;
            return by_length[i];
        }
        if (found == NONE) {
            found = by_length[i];
        }
    }
    return found;
}

/* A prefixed integer (RFC 9204 s4.1.1): the low `bits` of the first byte and more behind it. */
static uint8_t *put_integer(uint8_t *p, uint8_t pattern, unsigned bits, uint64_t value)
{
    uint64_t most = (1u << bits) - 1;

    if (value < most) {
        *p++ = (uint8_t)(pattern | value);
        return p;
    }
    *p++ = (uint8_t)(pattern | most);
    for (value -= most; value >= 0x80; value >>= 7) {
        *p++ = (uint8_t)(0x80 | (value & 0x7f));
    }
    *p++ = (uint8_t)value;
    return p;
}

/* Its length ahead, as it is: without Huffman's code (s4.1.2). */
static uint8_t *put_text(uint8_t *p, uint8_t pattern, unsigned bits, leat_span text)
{
    p = put_integer(p, pattern, bits, text.len);
    if (text.len > 0) {
        memcpy(p, text.data, text.len);
    }
    return p + text.len;
}

/* What no intermediary may put into a table (s7.1.3): it could be guessed from there. */
static bool is_secret(unsigned index, leat_span name)
{
    static const char proxy[] = "proxy-authorization";

    if (index != NONE) {
        return index == COOKIE || index == SET_COOKIE || index == AUTHORIZATION;
    }
    return name.len == sizeof proxy - 1 && memcmp(name.data, proxy, name.len) == 0;
}

uint8_t *leat_qpack_begin(uint8_t *p)
{
    *p++ = 0; /* Required Insert Count */
    *p++ = 0; /* Base */
    return p;
}

uint8_t *leat_qpack_field(uint8_t *p, const leat_http_field *field)
{
    bool whole;
    unsigned index = find(field, &whole);
    bool secret = !whole && is_secret(index, field->name);

    if (whole) {
        return put_integer(p, 0xc0, 6, index); /* s4.5.2 */
    }
    if (index != NONE) {
        p = put_integer(p, secret ? 0x70 : 0x50, 4, index); /* s4.5.4 */
    } else {
        p = put_text(p, secret ? 0x30 : 0x20, 3, field->name); /* s4.5.6 */
    }
    return put_text(p, 0, 7, field->value);
}
