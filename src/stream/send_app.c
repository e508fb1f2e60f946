/* stream/send_app.c: how bytes get into the sending part.
 *
 * Copies and reservations go into chunks of leat's own, whose size follows what the stream has
 * buffered: a short stream takes little, a long one whole CHUNK_MAX. Chunks are small against the
 * send buffer, so memory comes back as acknowledgements come in. Buffers passed by reference become
 * chunks as they are.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "stream/send_chunks.h"

#define CHUNK_MIN 256u   /* a short request or answer */
#define CHUNK_MAX 16384u /* a few of these to a slab; freed one by one */

/* LEAT_OK when the application may add bytes. */
static leat_err may_add(const leat_stream_send *send)
{
    switch ((leat_send_state)send->state) {
    case LEAT_SEND_READY:
    case LEAT_SEND_SEND:
        return send->fin ? LEAT_ERR_STATE : LEAT_OK;
    case LEAT_SEND_RESET_AT:
    case LEAT_SEND_RESET_SENT:
    case LEAT_SEND_RESET_RECVD:
        return LEAT_ERR_CLOSED;
    case LEAT_SEND_NONE:
    case LEAT_SEND_DATA_SENT:
    case LEAT_SEND_DATA_RECVD:
        break;
    }
    return LEAT_ERR_STATE;
}

/* What may be added when anything may. */
static size_t room_left(const leat_stream_send *send)
{
    uint64_t buffered = send->end - send->base;
    uint64_t room;

    if (buffered >= send->buffer_max) {
        return 0;
    }
    room = send->buffer_max - buffered;
    if (room > LEAT_STREAM_OFFSET_MAX - send->end) {
        room = LEAT_STREAM_OFFSET_MAX - send->end;
    }
    return (size_t)room;
}

size_t leat_stream_send_writable(const leat_stream_send *send)
{
    return may_add(send) == LEAT_OK ? room_left(send) : 0;
}

bool leat_stream_send_take_writable(leat_stream_send *send)
{
    if (!send->want_writable || leat_stream_send_writable(send) < send->buffer_max / 2) {
        return false;
    }
    send->want_writable = false;
    return true;
}

/* Memory or the budget refused. */
static leat_err refused(leat_stream_send *send)
{
    if (send->end == send->base) {
        return LEAT_ERR_NOMEM;
    }
    send->want_writable = true;
    return LEAT_ERR_BLOCKED;
}

/* As much as is buffered, and at most twice the last chunk: where little is written between buffers
 * of the application's, it stays small. */
static leat_err add_chunk(leat_stream_send *send, size_t want)
{
    const leat_send_chunk *last = leat_send_chunk_last(send);
    uint64_t buffered = send->end - send->base;
    size_t grown = !last ? 0 : buffered < 2 * last->buf.len ? (size_t)buffered : 2 * last->buf.len;
    size_t size = want > grown ? want : grown;
    leat_buf buf;
    leat_err err;

    size = size < CHUNK_MIN ? CHUNK_MIN : size > CHUNK_MAX ? CHUNK_MAX : size;
    err = leat_buf_take(send->env->pools->mem, size, &buf);
    if (err == LEAT_OK) {
        err = leat_send_chunks_push(send, &buf, 0);
        leat_buf_release(&buf);
    }
    return err;
}

leat_err leat_stream_send_reserve(leat_stream_send *send, size_t want, leat_mspan *out)
{
    leat_err err = may_add(send);
    size_t room = room_left(send);
    leat_send_chunk *last;
    size_t n;

    *out = (leat_mspan){0};
    if (err != LEAT_OK) {
        return err;
    }
    if (want == 0) {
        return LEAT_ERR_INVALID;
    }
    if (room == 0) {
        send->want_writable = true;
        return LEAT_ERR_BLOCKED;
    }
    want = want < room ? want : room;
    last = leat_send_chunk_last(send);
    if (!last || last->used == last->buf.len) {
        if (add_chunk(send, want) != LEAT_OK) {
            return refused(send);
        }
        last = leat_send_chunk_last(send);
    }
    send->reserved = true;
    n = last->buf.len - last->used;
    *out = (leat_mspan){.data = last->buf.data + last->used, .len = n < want ? n : want};
    return LEAT_OK;
}

void leat_stream_send_commit(leat_stream_send *send, size_t n)
{
    leat_send_chunk *last = leat_send_chunk_last(send);

    if (!send->reserved) {
        LEAT_ASSERT(n == 0);
        return;
    }
    send->reserved = false;
    LEAT_ASSERT(last != NULL);
    LEAT_ASSERT(n <= last->buf.len - last->used);
    if (!leat_stream_send_live(send)) {
        leat_send_chunks_drop(send); /* reset since it was reserved */
        return;
    }
    if (send->state == LEAT_SEND_RESET_AT) {
        n = 0;
    }
    last->used += n;
    send->end += n;
    if (n == 0) {
        /* It was kept for this reservation alone. */
        if (last->used == 0) {
            leat_send_chunks_trim(send);
        }
        leat_send_chunks_free_below(send, send->base);
    }
}

leat_err leat_stream_send_write(leat_stream_send *send, const void *data, size_t len,
                                size_t *written)
{
    const uint8_t *from = data;
    size_t done = 0;
    leat_err err = may_add(send);

    while (err == LEAT_OK && done < len) {
        leat_mspan room;

        err = leat_stream_send_reserve(send, len - done, &room);
        if (err == LEAT_OK) {
            memcpy(room.data, from + done, room.len);
            leat_stream_send_commit(send, room.len);
            done += room.len;
        }
    }
    *written = done;
    return done > 0 ? LEAT_OK : err;
}

/* A reservation ends without a commit. */
static void void_reservation(leat_stream_send *send)
{
    if (send->reserved) {
        leat_stream_send_commit(send, 0);
    }
}

leat_err leat_stream_send_append(leat_stream_send *send, leat_buf *buf)
{
    leat_err err = may_add(send);
    size_t len = buf->len;

    if (err != LEAT_OK) {
        return err;
    }
    void_reservation(send);
    if (len == 0) {
        leat_buf_release(buf);
        return LEAT_OK;
    }
    if (len > leat_stream_send_writable(send) && send->end > send->base) {
        send->want_writable = true;
        return LEAT_ERR_BLOCKED;
    }
    if (len > LEAT_STREAM_OFFSET_MAX - send->end) {
        return LEAT_ERR_INVALID;
    }
    leat_send_chunks_trim(send);
    if (leat_send_chunks_push(send, buf, len) != LEAT_OK) {
        return refused(send);
    }
    send->end += len;
    return LEAT_OK;
}

leat_err leat_stream_send_finish(leat_stream_send *send)
{
    leat_err err = may_add(send);

    if (err != LEAT_OK) {
        return err;
    }
    void_reservation(send);
    leat_send_chunks_trim(send);
    send->fin = true;
    send->want_writable = false;
    return LEAT_OK;
}

bool leat_stream_send_reset(leat_stream_send *send, uint64_t code)
{
    if (!leat_stream_send_live(send)) {
        return false;
    }
    if (send->state != LEAT_SEND_RESET_AT) {
        send->reset_code = code;
    }
    send->state = LEAT_SEND_RESET_SENT;
    send->want_writable = false;
    leat_ranges_free(&send->lost);
    leat_ranges_free(&send->acked);
    leat_send_chunks_drop(send);
    return true;
}

/* Nothing at `end` and above is kept. */
static void cut(leat_stream_send *send)
{
    leat_err err = leat_ranges_remove(&send->lost, send->end, UINT64_MAX);

    LEAT_ASSERT(err == LEAT_OK); /* the upper end goes: no range is split */
    err = leat_ranges_remove(&send->acked, send->end, UINT64_MAX);
    LEAT_ASSERT(err == LEAT_OK);
    leat_send_chunks_cut(send);
    leat_send_chunks_free_below(send, send->base);
}

bool leat_stream_send_reset_at(leat_stream_send *send, uint64_t code, uint64_t reliable)
{
    if (!leat_stream_send_live(send)) {
        return false;
    }
    if (send->state == LEAT_SEND_RESET_AT && reliable >= send->reliable) {
        return false;
    }
    LEAT_ASSERT(reliable <= send->end);
    if (send->state != LEAT_SEND_RESET_AT) {
        send->state = LEAT_SEND_RESET_AT;
        send->reset_code = code;
    }
    send->reliable = reliable;
    send->reset_sent = false;
    send->reset_acked = false;
    send->fin = false;
    send->fin_sent = false;
    send->fin_lost = false;
    send->fin_acked = false;
    send->want_writable = false;
    send->end = reliable > send->base ? reliable : send->base;
    cut(send);
    return true;
}
