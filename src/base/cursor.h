/* base/cursor.h: reading and writing bytes within bounds, with an error that sticks.
 *
 * A leat_cursor reads from bytes that somebody else owns. A read past the end returns 0 (or NULL),
 * moves the cursor to the end and sets its error; every later read fails too. So a parser reads all
 * its fields and asks leat_cursor_ok() once.
 *
 * A leat_writer writes into room that somebody else owns. A write that does not fit whole writes
 * nothing and sets its error, which sticks in the same way. leat_writer_len() tells what was
 * written; it means something only while leat_writer_ok().
 *
 * Numbers are big-endian, as on the wire. QUIC's variable-length integers are in wire/varint.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_BASE_CURSOR_H
#define LEAT_BASE_CURSOR_H

#include <string.h>

#include <leat/base.h>

#include "base/assert.h"

typedef struct leat_cursor {
    const uint8_t *at; /* the next byte */
    const uint8_t *end;
    bool failed;
} leat_cursor;

typedef struct leat_writer {
    uint8_t *start;
    uint8_t *at; /* where the next byte goes */
    uint8_t *end;
    bool failed;
} leat_writer;

/* Big-endian numbers at an address that is known to be within bounds. */
static inline uint16_t leat_load_u16(const uint8_t *p)
{
    return (uint16_t)((unsigned)p[0] << 8 | p[1]);
}

static inline uint32_t leat_load_u24(const uint8_t *p)
{
    return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline uint32_t leat_load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t leat_load_u64(const uint8_t *p)
{
    return (uint64_t)leat_load_u32(p) << 32 | leat_load_u32(p + 4);
}

static inline void leat_store_u16(uint8_t *p, uint16_t v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static inline void leat_store_u24(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 16);
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)v;
}

static inline void leat_store_u32(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 24);
    p[1] = (uint8_t)(v >> 16);
    p[2] = (uint8_t)(v >> 8);
    p[3] = (uint8_t)v;
}

static inline void leat_store_u64(uint8_t *p, uint64_t v)
{
    leat_store_u32(p, (uint32_t)(v >> 32));
    leat_store_u32(p + 4, (uint32_t)v);
}

/* data may be NULL when len is 0. */
static inline void leat_cursor_init(leat_cursor *c, const uint8_t *data, size_t len)
{
    static const uint8_t nothing[1];

    c->at = data ? data : nothing;
    c->end = c->at + (data ? len : 0);
    c->failed = false;
}

static inline size_t leat_cursor_left(const leat_cursor *c)
{
    return (size_t)(c->end - c->at);
}

static inline bool leat_cursor_ok(const leat_cursor *c)
{
    return !c->failed;
}

/* Sets the error: for a parser that reads a value it cannot accept. */
static inline void leat_cursor_fail(leat_cursor *c)
{
    c->at = c->end;
    c->failed = true;
}

/* The next n bytes, or NULL. The bytes stay their owner's. */
static inline const uint8_t *leat_cursor_bytes(leat_cursor *c, size_t n)
{
    const uint8_t *p = c->at;

    if (LEAT_UNLIKELY(n > leat_cursor_left(c) || c->failed)) {
        leat_cursor_fail(c);
        return NULL;
    }
    c->at += n;
    return p;
}

static inline void leat_cursor_skip(leat_cursor *c, size_t n)
{
    (void)leat_cursor_bytes(c, n);
}

/* Copies the next n bytes out; when there are fewer, fills out with zeros. */
static inline void leat_cursor_copy(leat_cursor *c, void *out, size_t n)
{
    const uint8_t *p = leat_cursor_bytes(c, n);

    if (n == 0) {
        return;
    }
    if (p) {
        memcpy(out, p, n);
    } else {
        memset(out, 0, n);
    }
}

/* A cursor of its own on the next n bytes, past which c moves. Failed if c fails. */
static inline leat_cursor leat_cursor_sub(leat_cursor *c, size_t n)
{
    const uint8_t *p = leat_cursor_bytes(c, n);
    leat_cursor sub;

    leat_cursor_init(&sub, p ? p : c->end, p ? n : 0);
    sub.failed = !p;
    return sub;
}

static inline uint8_t leat_cursor_u8(leat_cursor *c)
{
    const uint8_t *p = leat_cursor_bytes(c, 1);

    return p ? p[0] : 0;
}

static inline uint16_t leat_cursor_u16(leat_cursor *c)
{
    const uint8_t *p = leat_cursor_bytes(c, 2);

    return p ? leat_load_u16(p) : 0;
}

static inline uint32_t leat_cursor_u24(leat_cursor *c)
{
    const uint8_t *p = leat_cursor_bytes(c, 3);

    return p ? leat_load_u24(p) : 0;
}

static inline uint32_t leat_cursor_u32(leat_cursor *c)
{
    const uint8_t *p = leat_cursor_bytes(c, 4);

    return p ? leat_load_u32(p) : 0;
}

static inline uint64_t leat_cursor_u64(leat_cursor *c)
{
    const uint8_t *p = leat_cursor_bytes(c, 8);

    return p ? leat_load_u64(p) : 0;
}

static inline void leat_writer_init(leat_writer *w, uint8_t *data, size_t cap)
{
    static uint8_t nothing[1];

    w->start = data ? data : nothing;
    w->at = w->start;
    w->end = w->start + (data ? cap : 0);
    w->failed = false;
}

static inline size_t leat_writer_left(const leat_writer *w)
{
    return (size_t)(w->end - w->at);
}

static inline size_t leat_writer_len(const leat_writer *w)
{
    return (size_t)(w->at - w->start);
}

static inline bool leat_writer_ok(const leat_writer *w)
{
    return !w->failed;
}

static inline void leat_writer_fail(leat_writer *w)
{
    w->end = w->at;
    w->failed = true;
}

/* Room for n bytes that the caller fills at once or later, or NULL. Contents undefined. */
static inline uint8_t *leat_writer_room(leat_writer *w, size_t n)
{
    uint8_t *p = w->at;

    if (LEAT_UNLIKELY(n > leat_writer_left(w) || w->failed)) {
        leat_writer_fail(w);
        return NULL;
    }
    w->at += n;
    return p;
}

static inline void leat_writer_bytes(leat_writer *w, const void *data, size_t n)
{
    uint8_t *p = leat_writer_room(w, n);

    if (p && n) {
        memcpy(p, data, n);
    }
}

static inline void leat_writer_zero(leat_writer *w, size_t n)
{
    uint8_t *p = leat_writer_room(w, n);

    if (p && n) {
        memset(p, 0, n);
    }
}

static inline void leat_writer_u8(leat_writer *w, uint8_t v)
{
    uint8_t *p = leat_writer_room(w, 1);

    if (p) {
        p[0] = v;
    }
}

static inline void leat_writer_u16(leat_writer *w, uint16_t v)
{
    uint8_t *p = leat_writer_room(w, 2);

    if (p) {
        leat_store_u16(p, v);
    }
}

static inline void leat_writer_u24(leat_writer *w, uint32_t v)
{
    uint8_t *p = leat_writer_room(w, 3);

    LEAT_DCHECK(v <= 0xffffff);
    if (p) {
        leat_store_u24(p, v);
    }
}

static inline void leat_writer_u32(leat_writer *w, uint32_t v)
{
    uint8_t *p = leat_writer_room(w, 4);

    if (p) {
        leat_store_u32(p, v);
    }
}

static inline void leat_writer_u64(leat_writer *w, uint64_t v)
{
    uint8_t *p = leat_writer_room(w, 8);

    if (p) {
        leat_store_u64(p, v);
    }
}

#endif
