/* stream/reassembly.h: received bytes of a stream, from any order back into theirs.
 *
 * What has arrived is kept as segments. Those that follow the read offset without a hole are the
 * front run and can be read; the others form further runs, without holes inside. A segment is a
 * reference on the packet's buffer or, where that would retain too much memory for few bytes, a
 * copy.
 *
 * Bytes that are held win over bytes that come again, so each byte is delivered once.
 *
 * Memory is charged as it is retained: segments next to each other on one block pay for the block
 * once, copies pay for their size class, and segments and the array of runs for themselves.
 * Inserting costs O(log runs) and, between runs, a move of up to gaps_max pointers.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_STREAM_REASSEMBLY_H
#define LEAT_STREAM_REASSEMBLY_H

#include <leat/buf.h>

#include "stream/env.h"

typedef struct leat_recv_segment leat_recv_segment;
struct leat_recv_segment {
    leat_recv_segment *next; /* in the run */
    uint64_t offset;         /* of the first byte */
    leat_buf buf;            /* a copy has no block */
    uint32_t len;            /* bytes of the stream */
    uint32_t size;           /* of a copy: bytes that there is room for; 0: a reference */
    /* In the first segment of a run other than the front: */
    leat_recv_segment *run_last;
    uint64_t run_to; /* one past the run's last byte */
};

typedef struct leat_reassembly {
    leat_stream_env *env;
    uint64_t read;            /* the next byte to read */
    uint64_t front;           /* [read, front) is held */
    leat_recv_segment *first; /* the front run, or NULL */
    leat_recv_segment *last;
    leat_recv_segment **runs; /* the first segments of the other runs, by offset */
    uint32_t run_count;
    uint32_t run_cap;
    uint32_t gaps_max;   /* the most runs there may be */
    uint8_t budget_user; /* leat_budget_user that pays */
} leat_reassembly;

void leat_reassembly_init(leat_reassembly *held, leat_stream_env *env, leat_budget_user user,
                          uint32_t gaps_max);

/* Drops all that is held; what is to be read next stays. */
void leat_reassembly_clear(leat_reassembly *held);

/* Takes in [offset, offset + data->len), offset + len < 2^62. data is a view without a reference of
 * its own. LEAT_ERR_LIMIT: more than gaps_max gaps. LEAT_ERR_NOMEM: memory or the budget is
 * exhausted. A part may have been taken in then. */
leat_err leat_reassembly_insert(leat_reassembly *held, uint64_t offset, const leat_buf *data);

/* The first bytes to read, up to the end of their segment; valid until the next call but insert. */
static inline leat_span leat_reassembly_peek(const leat_reassembly *held)
{
    const leat_recv_segment *first = held->first;
    size_t skip;

    if (!first) {
        return (leat_span){0};
    }
    skip = (size_t)(held->read - first->offset);
    return (leat_span){.data = first->buf.data + skip, .len = first->len - skip};
}

/* The same as a buffer with a reference; of a copied segment, a copy. LEAT_ERR_NOT_FOUND,
 * LEAT_ERR_NOMEM. */
leat_err leat_reassembly_peek_buf(const leat_reassembly *held, leat_buf *out);

/* Drops what is held at `to` and above, front <= to: it will not be read. */
void leat_reassembly_cut(leat_reassembly *held, uint64_t to);

/* One past the last byte that is held. */
static inline uint64_t leat_reassembly_end(const leat_reassembly *held)
{
    return held->run_count > 0 ? held->runs[held->run_count - 1]->run_to : held->front;
}

/* The first n bytes are read, n <= readable. */
void leat_reassembly_consume(leat_reassembly *held, uint64_t n);

static inline uint64_t leat_reassembly_readable(const leat_reassembly *held)
{
    return held->front - held->read;
}

/* Asserts what must hold; returns the bytes that should be charged for what is held. */
size_t leat_reassembly_check(const leat_reassembly *held);

#endif
