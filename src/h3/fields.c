/* h3/fields.c: the header fields of a head while it arrives.
 *
 * Bytes and descriptors grow by doubling in two arrays from the context's memory. Growing moves the
 * bytes, so descriptors hold offsets until leat_http_fields_finish(). What a peer can make this
 * take is bounded by max_header_bytes and max_header_fields; over either, the head is marked and
 * the rest of it is dropped.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "h3/http.h"

enum { FIELD_BYTES_FIRST = 1024, FIELD_LIST_FIRST = 16 };

static bool room_for_bytes(leat_http *http, leat_http_fields *f, size_t n)
{
    size_t cap = f->bytes_cap ? f->bytes_cap : FIELD_BYTES_FIRST;
    uint8_t *moved;

    while (cap - f->bytes_len < n) {
        cap *= 2;
    }
    if (cap == f->bytes_cap) {
        return true;
    }
    moved = leat_mem_realloc(http->mem, f->bytes, cap);
    if (!moved) {
        return false;
    }
    f->bytes = moved;
    f->bytes_cap = (uint32_t)cap;
    return true;
}

static bool room_for_one(leat_http *http, leat_http_fields *f)
{
    uint32_t cap = f->cap ? f->cap * 2 : FIELD_LIST_FIRST;
    leat_http_field *moved;

    if (f->count < f->cap) {
        return true;
    }
    moved = leat_mem_realloc(http->mem, f->list, cap * sizeof *moved);
    if (!moved) {
        return false;
    }
    f->list = moved;
    f->cap = cap;
    return true;
}

bool leat_http_fields_bytes(leat_http *http, leat_http_fields *f, leat_span data)
{
    if (f->too_large || f->no_memory) {
        return false;
    }
    if (data.len > http->settings.max_header_bytes - f->bytes_len) {
        f->too_large = true;
        return false;
    }
    if (!room_for_bytes(http, f, data.len)) {
        f->no_memory = true;
        return false;
    }
    if (data.len) {
        memcpy(f->bytes + f->bytes_len, data.data, data.len);
    }
    f->bytes_len += (uint32_t)data.len;
    return true;
}

/* Copies one half of a field and returns its offset as a span that is not yet a pointer. */
static leat_span kept(leat_http_fields *f, leat_span data)
{
    leat_span at = {(const uint8_t *)(uintptr_t)f->bytes_len, data.len};

    if (data.len) {
        memcpy(f->bytes + f->bytes_len, data.data, data.len);
    }
    f->bytes_len += (uint32_t)data.len;
    return at;
}

void leat_http_fields_add(leat_http *http, leat_http_fields *f, leat_span name, leat_span value)
{
    size_t left = http->settings.max_header_bytes - f->bytes_len;

    if (f->too_large || f->no_memory) {
        return;
    }
    if (f->count >= http->settings.max_header_fields || name.len > left ||
        value.len > left - name.len) {
        f->too_large = true;
        return;
    }
    if (!room_for_bytes(http, f, name.len + value.len) || !room_for_one(http, f)) {
        f->no_memory = true;
        return;
    }
    f->list[f->count].name = kept(f, name);
    f->list[f->count].value = kept(f, value);
    f->count++;
}

void leat_http_fields_finish(leat_http_fields *f)
{
    for (uint32_t i = 0; i < f->count; i++) {
        leat_http_field *field = &f->list[i];

        field->name.data = f->bytes + (uintptr_t)field->name.data;
        field->value.data = f->bytes + (uintptr_t)field->value.data;
    }
}

void leat_http_fields_free(leat_http *http, leat_http_fields *f)
{
    leat_mem_release(http->mem, f->bytes);
    leat_mem_release(http->mem, f->list);
    *f = (leat_http_fields){.bytes = NULL};
}

bool leat_http_number(leat_span s, uint64_t *out)
{
    uint64_t v = 0;

    if (s.len == 0) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        unsigned digit = (unsigned)s.data[i] - '0';

        if (digit > 9 || v > (UINT64_MAX - digit) / 10) {
            return false;
        }
        v = v * 10 + digit;
    }
    *out = v;
    return true;
}

leat_span leat_http_head_find(const leat_http_head *head, const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < head->field_count; i++) {
        const leat_http_field *field = &head->fields[i];

        if (field->name.len == len && memcmp(field->name.data, name, len) == 0) {
            return field->value;
        }
    }
    return (leat_span){NULL, 0};
}
