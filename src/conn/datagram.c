/* conn/datagram.c: see conn/datagram.h. The first half is the part alone, the second joins it with
 * the connection: the application's calls, and its events.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/datagram.h"

#include <string.h>

#include "base/time.h"
#include "conn/conn.h"
#include "wire/frames.h"

/* How far one side may get ahead of the other: a batch. What was before counts no more. */
#define LEAD_MOST       65536

/* Short header, one frame without a length, and the tag. */
#define PACKET_OVERHEAD (1 + LEAT_PN_LEN_MAX + 1 + LEAT_AEAD_TAG)

/* ---- memory ---- */

/* Room for n in a queue. LEAT_ERR_BLOCKED: the budget has none. */
static leat_err make_room(leat_datagrams *dg, leat_queue *q, uint32_t n)
{
    size_t more;
    leat_err err;

    if (n <= q->cap) {
        return LEAT_OK;
    }
    more = leat_queue_growth(q, n);
    if (!leat_budget_charge_spare(dg->budget, LEAT_BUDGET_DATAGRAMS, more)) {
        return LEAT_ERR_BLOCKED;
    }
    err = leat_queue_reserve(q, n);
    if (err != LEAT_OK) {
        leat_budget_refund(dg->budget, LEAT_BUDGET_DATAGRAMS, more);
    }
    return err;
}

static void give_room(leat_datagrams *dg, leat_queue *q)
{
    leat_budget_refund(dg->budget, LEAT_BUDGET_DATAGRAMS, leat_queue_held(q));
    leat_queue_free(q);
}

static void give_room_if_empty(leat_datagrams *dg, leat_queue *q)
{
    if (leat_queue_empty(q)) {
        give_room(dg, q);
    }
}

static void release(leat_datagrams *dg, leat_buf *buf)
{
    leat_budget_refund(dg->budget, LEAT_BUDGET_DATAGRAMS, buf->len);
    leat_buf_release(buf);
}

void leat_datagrams_init(leat_datagrams *dg, leat_mem *mem, leat_budget *budget,
                         const leat_conn_settings *settings)
{
    *dg = (leat_datagrams){
        .budget = budget,
        .own_max = settings->max_datagram_frame_size,
        .limit = settings->datagram_queue,
        .urgency = settings->datagram_urgency,
    };
    leat_queue_init(&dg->out, mem, sizeof(leat_datagram_out));
    leat_queue_init(&dg->notices, mem, sizeof(leat_datagram_notice));
    leat_queue_init(&dg->early, mem, sizeof(leat_buf));
}

void leat_datagrams_clear(leat_datagrams *dg)
{
    leat_datagram_out *out;
    leat_buf *early;

    while ((out = leat_queue_pop(&dg->out)) != NULL) {
        release(dg, &out->buf);
    }
    while ((early = leat_queue_pop(&dg->early)) != NULL) {
        release(dg, early);
    }
    give_room(dg, &dg->out);
    give_room(dg, &dg->early);
    give_room(dg, &dg->notices);
    dg->untold = 0;
    dg->want_writable = false;
}

void leat_datagrams_shrink(leat_datagrams *dg)
{
    give_room_if_empty(dg, &dg->out);
    if (dg->untold == 0) {
        give_room_if_empty(dg, &dg->notices);
    }
    give_room_if_empty(dg, &dg->early);
}

/* ---- sending ---- */

void leat_datagrams_note(leat_datagrams *dg, uint64_t tag, leat_datagram_outcome outcome)
{
    leat_datagram_notice *notice;

    LEAT_ASSERT(leat_queue_count(&dg->notices) < dg->untold);
    notice = leat_queue_add(&dg->notices);
    *notice = (leat_datagram_notice){tag, outcome};
}

bool leat_datagrams_notice(leat_datagrams *dg, leat_datagram_notice *out)
{
    leat_datagram_notice *next = leat_queue_pop(&dg->notices);

    if (!next) {
        return false;
    }
    *out = *next;
    dg->untold--;
    return true;
}

/* Takes the first off, unsent. */
static void drop_first(leat_datagrams *dg, leat_datagram_outcome outcome)
{
    leat_datagram_out *first = leat_queue_pop(&dg->out);

    dg->count.expired += outcome == LEAT_DATAGRAM_EXPIRED;
    dg->count.dropped += outcome == LEAT_DATAGRAM_DROPPED;
    if (first->notify) {
        leat_datagrams_note(dg, first->tag, outcome);
    }
    release(dg, &first->buf);
}

static void drop_expired(leat_datagrams *dg, leat_time now)
{
    leat_datagram_out *first;

    while ((first = leat_queue_at(&dg->out, 0)) != NULL && first->expires_at <= now) {
        drop_first(dg, LEAT_DATAGRAM_EXPIRED);
    }
}

/* For one more to be sent; len bytes are charged. */
static leat_err room_for(leat_datagrams *dg, size_t len, bool notify)
{
    leat_err err = LEAT_OK;

    if (leat_queue_count(&dg->out) >= dg->limit) {
        return LEAT_ERR_BLOCKED;
    }
    if (notify) {
        err = make_room(dg, &dg->notices, dg->untold + 1);
    }
    if (err == LEAT_OK) {
        err = make_room(dg, &dg->out, leat_queue_count(&dg->out) + 1);
    }
    if (err == LEAT_OK && !leat_budget_charge_spare(dg->budget, LEAT_BUDGET_DATAGRAMS, len)) {
        err = LEAT_ERR_BLOCKED;
    }
    return err;
}

leat_err leat_datagrams_push(leat_datagrams *dg, leat_buf *buf, size_t most,
                             const leat_datagram_options *options, leat_time now)
{
    static const leat_datagram_options none;
    leat_datagram_out *out;
    leat_err err;

    options = options ? options : &none;
    if (buf->len > most) {
        return LEAT_ERR_LIMIT;
    }
    drop_expired(dg, now);
    err = room_for(dg, buf->len, options->notify);
    if (err != LEAT_OK) {
        dg->want_writable |= err == LEAT_ERR_BLOCKED;
        return err;
    }
    out = leat_queue_add(&dg->out);
    dg->untold += options->notify;
    *out = (leat_datagram_out){
        .buf = *buf,
        .expires_at = options->lifetime ? leat_time_add(now, options->lifetime) : LEAT_TIME_NEVER,
        .tag = options->tag,
        .notify = options->notify,
    };
    *buf = (leat_buf){.data = NULL};
    return LEAT_OK;
}

const leat_datagram_out *leat_datagrams_next(leat_datagrams *dg, size_t most, leat_time now)
{
    leat_datagram_out *first;

    drop_expired(dg, now);
    while ((first = leat_queue_at(&dg->out, 0)) != NULL &&
           (!leat_datagrams_taken(dg) || first->buf.len > most)) {
        drop_first(dg, LEAT_DATAGRAM_DROPPED); /* path or peer take less than they did */
        drop_expired(dg, now);
    }
    return first;
}

void leat_datagrams_sent(leat_datagrams *dg)
{
    leat_datagram_out *first = leat_queue_pop(&dg->out);

    dg->count.sent++;
    release(dg, &first->buf);
}

void leat_datagrams_shared(leat_datagrams *dg, bool datagram, size_t len)
{
    dg->lead += datagram ? (int64_t)len : -(int64_t)len;
    dg->lead = dg->lead > LEAD_MOST ? LEAD_MOST : dg->lead;
    dg->lead = dg->lead < -LEAD_MOST ? -LEAD_MOST : dg->lead;
}

/* ---- receiving ---- */

uint64_t leat_datagrams_check_size(const leat_datagrams *dg, size_t frame_len)
{
    return frame_len <= dg->own_max ? LEAT_TE_NO_ERROR : LEAT_TE_PROTOCOL_VIOLATION;
}

void leat_datagrams_keep(leat_datagrams *dg, leat_span data)
{
    uint32_t count = leat_queue_count(&dg->early);
    leat_buf buf;

    if (count >= LEAT_DATAGRAM_EARLY_DEFAULT || make_room(dg, &dg->early, count + 1) != LEAT_OK ||
        !leat_budget_charge_spare(dg->budget, LEAT_BUDGET_DATAGRAMS, data.len)) {
        dg->count.dropped++;
        return;
    }
    if (leat_buf_take(dg->early.mem, data.len, &buf) != LEAT_OK) {
        leat_budget_refund(dg->budget, LEAT_BUDGET_DATAGRAMS, data.len);
        dg->count.dropped++;
        return;
    }
    if (data.len > 0) {
        memcpy(buf.data, data.data, data.len);
    }
    *(leat_buf *)leat_queue_add(&dg->early) = buf;
}

bool leat_datagrams_early(leat_datagrams *dg, leat_buf *out)
{
    leat_buf *early = leat_queue_pop(&dg->early);

    if (!early) {
        return false;
    }
    *out = *early;
    leat_budget_refund(dg->budget, LEAT_BUDGET_DATAGRAMS, out->len);
    return true;
}

void leat_datagrams_check(const leat_datagrams *dg)
{
    size_t bytes =
        leat_queue_held(&dg->out) + leat_queue_held(&dg->notices) + leat_queue_held(&dg->early);

    leat_queue_check(&dg->out);
    leat_queue_check(&dg->notices);
    leat_queue_check(&dg->early);
    for (uint32_t i = 0; i < leat_queue_count(&dg->out); i++) {
        bytes += ((const leat_datagram_out *)leat_queue_at(&dg->out, i))->buf.len;
    }
    for (uint32_t i = 0; i < leat_queue_count(&dg->early); i++) {
        bytes += ((const leat_buf *)leat_queue_at(&dg->early, i))->len;
    }
    LEAT_ASSERT(bytes == dg->budget->by[LEAT_BUDGET_DATAGRAMS]);
    LEAT_ASSERT(leat_queue_count(&dg->out) <= dg->limit);
    LEAT_ASSERT(leat_queue_count(&dg->notices) <= dg->untold);
    LEAT_ASSERT(dg->untold <= dg->notices.cap);
    LEAT_ASSERT(leat_queue_count(&dg->early) <= LEAT_DATAGRAM_EARLY_DEFAULT);
}

/* ---- the connection's ---- */

size_t leat_conn_datagram_max(const leat_conn *conn)
{
    const leat_cid *dcid = &conn->remote_cids.entry[conn->remote_cids.current].cid;
    size_t path = conn->mtu.size - PACKET_OVERHEAD - dcid->len;
    uint64_t peer = conn->datagrams.peer_max;
    size_t head = 1 + leat_varint_len(peer); /* the frame may carry its length */

    if (!leat_conn_is_open(conn) || peer <= head) {
        return 0;
    }
    return peer - head < path ? (size_t)(peer - head) : path;
}

static leat_err may_send(const leat_conn *conn)
{
    if (!leat_conn_is_open(conn)) {
        return LEAT_ERR_CLOSED;
    }
    if (!conn->peer.known && conn->early == LEAT_EARLY_NONE) {
        return LEAT_ERR_STATE;
    }
    return leat_datagrams_taken(&conn->datagrams) ? LEAT_OK : LEAT_ERR_UNSUPPORTED;
}

leat_err leat_conn_send_datagram_buf(leat_conn *conn, leat_buf *buf,
                                     const leat_datagram_options *options)
{
    leat_err err = may_send(conn);

    if (err == LEAT_OK) {
        err = leat_datagrams_push(&conn->datagrams, buf, leat_conn_datagram_max(conn), options,
                                  leat_conn_now(conn));
    }
    leat_conn_tell_more(conn); /* of those that were too old */
    if (err == LEAT_OK) {
        leat_conn_want_send(conn);
    }
    return err;
}

leat_err leat_conn_send_datagram(leat_conn *conn, leat_span data,
                                 const leat_datagram_options *options)
{
    leat_err err = may_send(conn);
    leat_buf buf;

    if (err != LEAT_OK) {
        return err;
    }
    if (data.len > leat_conn_datagram_max(conn)) {
        return LEAT_ERR_LIMIT;
    }
    err = leat_buf_take(leat_conn_shared_of(conn)->mem, data.len, &buf);
    if (err == LEAT_OK) {
        if (data.len > 0) {
            memcpy(buf.data, data.data, data.len);
        }
        err = leat_conn_send_datagram_buf(conn, &buf, options);
        leat_buf_release(&buf);
    }
    return err;
}

/* The application knows of the connection: it may be told of a datagram at once. */
static bool was_told(const leat_conn *conn)
{
    return conn->state == LEAT_CONN_ACTIVE && !(conn->tell & LEAT_CONN_TELL_CONNECTED) &&
           conn->events && leat_queue_empty(&conn->datagrams.early);
}

uint64_t leat_conn_on_datagram(leat_conn *conn, const leat_frame *frame)
{
    leat_span data = frame->datagram.data;
    uint64_t error = leat_datagrams_check_size(&conn->datagrams, frame->datagram.size);

    if (error != LEAT_TE_NO_ERROR) {
        return error;
    }
    conn->datagrams.count.received++;
    if (!was_told(conn)) {
        leat_datagrams_keep(&conn->datagrams, data);
        leat_conn_tell_more(conn);
    } else if (conn->events->datagram) {
        conn->events->datagram(conn, data, conn->user);
    }
    return LEAT_TE_NO_ERROR;
}

void leat_conn_datagram_done(leat_conn *conn, const leat_sent_frame *frame, bool acked)
{
    leat_datagrams *dg = &conn->datagrams;

    dg->count.acked += acked;
    dg->count.lost += !acked;
    if (frame->flags && leat_conn_is_open(conn)) {
        leat_datagrams_note(dg, frame->value, acked ? LEAT_DATAGRAM_ACKED : LEAT_DATAGRAM_LOST);
    }
}

/* A callback may close the connection, which empties the queues. */
void leat_conn_tell_datagrams(leat_conn *conn)
{
    leat_datagrams *dg = &conn->datagrams;
    uint32_t notices = leat_queue_count(&dg->notices);
    leat_datagram_notice notice;
    leat_buf early;

    while (leat_datagrams_early(dg, &early)) {
        if (conn->events->datagram) {
            conn->events->datagram(conn, (leat_span){early.data, early.len}, conn->user);
        }
        leat_buf_release(&early);
    }
    while (notices-- > 0 && leat_datagrams_notice(dg, &notice)) {
        if (conn->events->datagram_done) {
            conn->events->datagram_done(conn, notice.tag, notice.outcome, conn->user);
        }
    }
    if (leat_datagrams_has_room(dg) && leat_conn_is_open(conn)) {
        dg->want_writable = false;
        if (conn->events->datagram_writable) {
            conn->events->datagram_writable(conn, conn->user);
        }
    }
}
