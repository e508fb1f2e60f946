/* wire/varint.h: QUIC's variable-length integers (RFC 9000 §16).
 *
 * The two high bits of the first byte give the length, 1, 2, 4 or 8 bytes; the rest is the value in
 * network order:
 *
 *      00 + 6 bits     01 + 14 bits     10 + 30 bits     11 + 62 bits
 *
 * Writers use the shortest form, but for the fixed 2- and 4-byte forms, which hold the place of a
 * length that is not known yet. Readers accept every form; where the shortest is demanded (frame
 * types, §12.4), leat_cursor_varint_minimal() tells.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_WIRE_VARINT_H
#define LEAT_WIRE_VARINT_H

#include <string.h>

#include <leat/base.h>

#include "base/assert.h"
#include "base/cursor.h"

#define LEAT_VARINT_MAX     ((UINT64_C(1) << 62) - 1)
#define LEAT_VARINT_MAX_LEN 8

/* Bytes of the shortest form of v <= LEAT_VARINT_MAX. */
static inline size_t leat_varint_len(uint64_t v)
{
    return v < 64 ? 1 : v < 16384 ? 2 : v < (UINT64_C(1) << 30) ? 4 : 8;
}

/* Bytes of the integer that begins with this byte. */
static inline size_t leat_varint_len_of(uint8_t first)
{
    return (size_t)1 << (first >> 6);
}

/* Writes v in its shortest form at p, where there is room; returns the byte after it. */
static inline uint8_t *leat_varint_put(uint8_t *p, uint64_t v)
{
    LEAT_DCHECK(v <= LEAT_VARINT_MAX);
    if (v < 64) {
        *p = (uint8_t)v;
        return p + 1;
    }
    if (v < 16384) {
        leat_store_u16(p, (uint16_t)(v | 0x4000));
        return p + 2;
    }
    if (v < (UINT64_C(1) << 30)) {
        leat_store_u32(p, (uint32_t)v | UINT32_C(0x80000000));
        return p + 4;
    }
    leat_store_u64(p, v | UINT64_C(0xc000000000000000));
    return p + 8;
}

/* Writes v at p in 2 bytes (v < 2^14) or 4 bytes (v < 2^30) whatever its value. */
static inline void leat_varint_put2(uint8_t *p, uint64_t v)
{
    LEAT_DCHECK(v < 16384);
    leat_store_u16(p, (uint16_t)(v | 0x4000));
}

static inline void leat_varint_put4(uint8_t *p, uint64_t v)
{
    LEAT_DCHECK(v < (UINT64_C(1) << 30));
    leat_store_u32(p, (uint32_t)v | UINT32_C(0x80000000));
}

/* Reads the integer at p, all of whose bytes are there; *end is set to the byte after it. */
static inline uint64_t leat_varint_get(const uint8_t *p, const uint8_t **end)
{
    size_t len = leat_varint_len_of(*p);

    *end = p + len;
    switch (len) {
    case 1:
        return *p;
    case 2:
        return leat_load_u16(p) & 0x3fff;
    case 4:
        return leat_load_u32(p) & 0x3fffffff;
    default:
        return leat_load_u64(p) & LEAT_VARINT_MAX;
    }
}

/* The next integer; 0 and a failed cursor when it is cut short. With eight bytes there, as nearly
 * always, they are read in one: the two bits of the length go at the top, what follows the integer
 * at the bottom. */
static inline uint64_t leat_cursor_varint(leat_cursor *c)
{
    if (LEAT_LIKELY(leat_cursor_left(c) >= LEAT_VARINT_MAX_LEN)) {
        uint64_t word = leat_load_u64(c->at);
        size_t len = (size_t)1 << (word >> 62);

        c->at += len;
        return word << 2 >> (66 - 8 * len);
    }
    if (LEAT_UNLIKELY(c->at >= c->end || leat_varint_len_of(*c->at) > leat_cursor_left(c))) {
        leat_cursor_fail(c);
        return 0;
    }
    return leat_varint_get(c->at, &c->at);
}

/* The same, and whether it came in its shortest form. */
static inline uint64_t leat_cursor_varint_minimal(leat_cursor *c, bool *minimal)
{
    const uint8_t *start = c->at;
    uint64_t v = leat_cursor_varint(c);

    *minimal = leat_varint_len(v) == (size_t)(c->at - start);
    return v;
}

/* A length, and so many bytes: the span stays the input's. Empty on failure. */
static inline leat_span leat_cursor_varint_span(leat_cursor *c)
{
    uint64_t len = leat_cursor_varint(c);

    if (LEAT_UNLIKELY(len > leat_cursor_left(c))) {
        leat_cursor_fail(c);
        len = 0;
    }
    return (leat_span){leat_cursor_bytes(c, (size_t)len), (size_t)len};
}

/* Writes v in its shortest form; the writer fails when it does not fit. */
static inline void leat_writer_varint(leat_writer *w, uint64_t v)
{
    uint8_t *p = leat_writer_room(w, leat_varint_len(v));

    if (p) {
        (void)leat_varint_put(p, v);
    }
}

/* Writes v in 2 or 4 bytes, and returns where, so that leat_varint_put2() or _put4() can put the
 * true value there later; NULL when it does not fit. */
static inline uint8_t *leat_writer_varint2(leat_writer *w, uint64_t v)
{
    uint8_t *p = leat_writer_room(w, 2);

    if (p) {
        leat_varint_put2(p, v);
    }
    return p;
}

static inline uint8_t *leat_writer_varint4(leat_writer *w, uint64_t v)
{
    uint8_t *p = leat_writer_room(w, 4);

    if (p) {
        leat_varint_put4(p, v);
    }
    return p;
}

#endif
