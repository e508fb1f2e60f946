/* io/json.h: a bounded writer of JSON text.
 *
 * The sign of having run out of room is sticky: what comes after it is not written, and the caller
 * throws the text away. Commas are the caller's, by leat_json_key() and leat_json_item(): both put
 * one unless the object or array has just begun.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_IO_JSON_H
#define LEAT_IO_JSON_H

#include <leat/base.h>

typedef struct leat_json {
    char *text;
    size_t len;
    size_t cap;
    bool full;
} leat_json;

static inline leat_json leat_json_begin(char *text, size_t cap)
{
    return (leat_json){.text = text, .cap = cap};
}

/* Text as it is. */
void leat_json_raw(leat_json *json, const char *text);
void leat_json_bytes(leat_json *json, const char *text, size_t len);

/* "key":, with a comma before it where one is due. */
void leat_json_key(leat_json *json, const char *key);
/* The comma before an item of an array, where one is due. */
void leat_json_item(leat_json *json);

/* Values. A text may be anything: what is not printable ASCII is escaped, byte by byte. */
void leat_json_text(leat_json *json, leat_span text);
void leat_json_string(leat_json *json, const char *text);
void leat_json_u64(leat_json *json, uint64_t value);
void leat_json_hex(leat_json *json, leat_span bytes);
/* Nanoseconds, as milliseconds with all their decimals. */
void leat_json_ms(leat_json *json, leat_time value);

/* Key and value. */
void leat_json_put_string(leat_json *json, const char *key, const char *text);
void leat_json_put_u64(leat_json *json, const char *key, uint64_t value);
void leat_json_put_hex(leat_json *json, const char *key, leat_span bytes);
void leat_json_put_ms(leat_json *json, const char *key, leat_time value);
void leat_json_put_bool(leat_json *json, const char *key, bool value);

#endif
