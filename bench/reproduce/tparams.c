/* bench/reproduce/tparams.c: src/wire/tparams.c encoding piece by piece into a growing buffer. For
 * measurement only: it stands before libleat in the link, whose tparams.c is then left out.
 *
 * The old way appends each id, length and value to a buffer on the heap that begins with 64 bytes
 * and doubles when it is full, and copies the buffer out at the end. Varints of more than one byte
 * are pieces of the heap themselves, as they were where the change was made: the bytes were handed
 * over as a slice that outlives the call.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wire/tparams.h"

#include <stdlib.h>

bool leat_tparams_encode_at_once(const leat_tparams *params, leat_writer *w);
#define leat_tparams_encode leat_tparams_encode_at_once
#include "wire/tparams.c"
#undef leat_tparams_encode

typedef struct growing {
    uint8_t *data;
    size_t len, cap;
} growing;

enum { GROWING_FIRST = 64 };

static void append(growing *g, const void *bytes, size_t len)
{
    if (len > g->cap - g->len) {
        g->cap = g->cap == 0 && len <= GROWING_FIRST ? GROWING_FIRST : 2 * g->cap + len;
        g->data = realloc(g->data, g->cap);
        LEAT_ASSERT(g->data);
    }
    if (len > 0) {
        memcpy(g->data + g->len, bytes, len);
        g->len += len;
    }
}

static void append_varint(growing *g, uint64_t v)
{
    uint8_t *piece, byte = (uint8_t)v;

    if (v < 64) {
        append(g, &byte, 1);
        return;
    }
    piece = malloc(LEAT_VARINT_MAX_LEN);
    LEAT_ASSERT(piece);
    append(g, piece, (size_t)(leat_varint_put(piece, v) - piece));
    free(piece);
}

static void append_bytes(growing *g, uint64_t id, const void *bytes, size_t len)
{
    append_varint(g, id);
    append_varint(g, len);
    append(g, bytes, len);
}

static void append_cid(growing *g, uint64_t id, const leat_cid *cid)
{
    append_bytes(g, id, cid->data, cid->len);
}

static void append_number(growing *g, uint64_t id, uint64_t v)
{
    append_varint(g, id);
    append_varint(g, leat_varint_len(v));
    append_varint(g, v);
}

/* What only some endpoints send goes in one piece: the sets that are measured have none of it. */
static void append_rare(growing *g, const leat_tparams *t)
{
    uint8_t buf[LEAT_TPARAMS_MAX];

    append(g, buf, (size_t)(put_rare(buf, t) - buf));
}

#define APPEND_NUMBER(name, id, def, least, most, why)                                             \
    if (t->name != (def)) {                                                                        \
        append_number(g, (id), t->name);                                                           \
    }

/* In the order of put_all(), so that the bytes are the same. */
static void append_all(growing *g, const leat_tparams *t)
{
    LEAT_TPARAM_NUMBER_LIST(APPEND_NUMBER)
    if (leat_tparams_has(t, LEAT_TP_original_dcid)) {
        append_cid(g, LEAT_TP_ID_original_dcid, &t->original_dcid);
    }
    if (leat_tparams_has(t, LEAT_TP_initial_scid)) {
        append_cid(g, LEAT_TP_ID_initial_scid, &t->initial_scid);
    }
    if (leat_tparams_has(t, LEAT_TP_stateless_reset_token)) {
        append_bytes(g, LEAT_TP_ID_stateless_reset_token, t->stateless_reset_token,
                     sizeof t->stateless_reset_token);
    }
    if (leat_tparams_has(t, LEAT_TP_disable_active_migration)) {
        append_bytes(g, LEAT_TP_ID_disable_active_migration, NULL, 0);
    }
    if (leat_tparams_has(t, LEAT_TP_reset_stream_at)) {
        append_bytes(g, LEAT_TP_ID_reset_stream_at, NULL, 0);
    }
    if (leat_tparams_has(t, LEAT_TP_grease_quic_bit)) {
        append_bytes(g, LEAT_TP_ID_grease_quic_bit, NULL, 0);
    }
    if (leat_tparams_has(t, RARE) || t->grease_id != 0) {
        append_rare(g, t);
    }
}

bool leat_tparams_encode(const leat_tparams *params, leat_writer *w)
{
    growing g = {.data = NULL};
    bool fits;

    append_all(&g, params);
    fits = g.len <= leat_writer_left(w);
    if (fits) {
        leat_writer_bytes(w, g.data, g.len);
    }
    free(g.data);
    return fits && leat_writer_ok(w);
}
