/* io/json.c: a bounded writer of JSON text.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io/json.h"

#include <string.h>

static const char hex_digits[] = "0123456789abcdef";

void leat_json_bytes(leat_json *json, const char *text, size_t len)
{
    if (json->full || json->cap - json->len < len) {
        json->full = true;
        return;
    }
    memcpy(json->text + json->len, text, len);
    json->len += len;
}

void leat_json_raw(leat_json *json, const char *text)
{
    leat_json_bytes(json, text, strlen(text));
}

void leat_json_item(leat_json *json)
{
    char last = json->len > 0 ? json->text[json->len - 1] : '{';
    if (last != '{' && last != '[') {
        leat_json_bytes(json, ",", 1);
    }
}

void leat_json_key(leat_json *json, const char *key)
{
    leat_json_item(json);
    leat_json_string(json, key);
    leat_json_bytes(json, ":", 1);
}

void leat_json_text(leat_json *json, leat_span text)
{
    leat_json_bytes(json, "\"", 1);
    for (size_t i = 0; i < text.len; i++) {
        uint8_t c = text.data[i];
        char plain = (char)c;
        if (c == '"' || c == '\\') {
            leat_json_bytes(json, "\\", 1);
            leat_json_bytes(json, &plain, 1);
        } else if (c >= 0x20 && c < 0x7f) {
            leat_json_bytes(json, &plain, 1);
        } else {
            char escape[] = {'\\', 'u', '0', '0', hex_digits[c >> 4], hex_digits[c & 15]};
            leat_json_bytes(json, escape, sizeof(escape));
        }
    }
    leat_json_bytes(json, "\"", 1);
}

void leat_json_string(leat_json *json, const char *text)
{
    leat_json_text(json, (leat_span){(const uint8_t *)text, strlen(text)});
}

/* The digits of value, at least `least` of them. */
static void digits(leat_json *json, uint64_t value, size_t least)
{
    char text[20];
    size_t n = 0;
    while (value > 0 || n < least) {
        text[sizeof(text) - ++n] = (char)('0' + value % 10);
        value /= 10;
    }
    leat_json_bytes(json, text + sizeof(text) - n, n);
}

void leat_json_u64(leat_json *json, uint64_t value)
{
    digits(json, value, 1);
}

void leat_json_hex(leat_json *json, leat_span bytes)
{
    leat_json_bytes(json, "\"", 1);
    for (size_t i = 0; i < bytes.len; i++) {
        char pair[] = {hex_digits[bytes.data[i] >> 4], hex_digits[bytes.data[i] & 15]};
        leat_json_bytes(json, pair, sizeof(pair));
    }
    leat_json_bytes(json, "\"", 1);
}

void leat_json_ms(leat_json *json, leat_time value)
{
    digits(json, value / LEAT_MILLISECOND, 1);
    leat_json_bytes(json, ".", 1);
    digits(json, value % LEAT_MILLISECOND, 6);
}

void leat_json_put_string(leat_json *json, const char *key, const char *text)
{
    leat_json_key(json, key);
    leat_json_string(json, text);
}

void leat_json_put_u64(leat_json *json, const char *key, uint64_t value)
{
    leat_json_key(json, key);
    leat_json_u64(json, value);
}

void leat_json_put_hex(leat_json *json, const char *key, leat_span bytes)
{
    leat_json_key(json, key);
    leat_json_hex(json, bytes);
}

void leat_json_put_ms(leat_json *json, const char *key, leat_time value)
{
    leat_json_key(json, key);
    leat_json_ms(json, value);
}

void leat_json_put_bool(leat_json *json, const char *key, bool value)
{
    leat_json_key(json, key);
    leat_json_raw(json, value ? "true" : "false");
}
