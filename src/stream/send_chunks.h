/* stream/send_chunks.h: the ring of buffers that hold [base, end) of a stream. For send.c and
 * send_app.c.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_STREAM_SEND_CHUNKS_H
#define LEAT_STREAM_SEND_CHUNKS_H

#include "stream/send.h"

/* The i-th chunk from the oldest, i < ring_count. */
static inline leat_send_chunk *leat_send_chunk_at(const leat_stream_send *send, uint32_t i)
{
    const leat_send_chunk *ring = send->ring ? send->ring : send->first;

    return (leat_send_chunk *)&ring[(send->ring_head + i) & (send->ring_cap - 1)];
}

/* The newest chunk, or NULL. */
static inline leat_send_chunk *leat_send_chunk_last(const leat_stream_send *send)
{
    return send->ring_count > 0 ? leat_send_chunk_at(send, send->ring_count - 1) : NULL;
}

/* Whether the budget has room for n more bytes. What the application writes may use half of it, and
 * of what others leave all but the reserve. */
bool leat_send_chunks_fit(const leat_stream_send *send, size_t n);

/* Puts a buffer at the end of the ring, of which `used` bytes are the stream's next. Charges its
 * length and takes it over on LEAT_OK alone. LEAT_ERR_LIMIT: the budget refuses. LEAT_ERR_NOMEM. */
leat_err leat_send_chunks_push(leat_stream_send *send, leat_buf *buf, size_t used);

/* Gives back the unused end of the newest chunk, all of it if nothing of it is used. An end that
 * nobody else could have stays with the chunk, and charged. */
void leat_send_chunks_trim(leat_stream_send *send);

/* Frees all chunks whose bytes lie below `below`; the newest stays while it is reserved. */
void leat_send_chunks_free_below(leat_stream_send *send, uint64_t below);

/* Gives back what of the chunks lies at `end` and above; the newest stays while it is reserved. */
void leat_send_chunks_cut(leat_stream_send *send);

/* Frees all chunks and the ring; the newest stays while it is reserved. */
void leat_send_chunks_drop(leat_stream_send *send);

void leat_send_chunks_check(const leat_stream_send *send);

#endif
