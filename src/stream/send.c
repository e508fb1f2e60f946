/* stream/send.c: what was sent, acknowledged and lost of a stream. How bytes get in is in
 * send_app.c.
 *
 * In the common case packets are acknowledged in order and `base` alone moves. Only when they are
 * not do ranges come in: `acked` for what was acknowledged above a hole, `lost` for what is to be
 * sent again. Both come from memory that may be refused. Then:
 *   - a range that cannot be added to `lost` is merged with its neighbour there over what lies
 * between: more is sent again than needed;
 *   - a range that cannot be added to `acked` is added to `lost`: it is sent again although it
 * arrived. So no outcome is ever forgotten, and the functions here cannot fail.
 *
 * Invariants: base <= next <= end; next <= the peer's limit; `lost` lies in [base, next), `acked`
 * in (base, next). A byte may be in both after memory was refused: it is then sent again.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stream/send.h"

#include <string.h>

#include <leat/limits.h>

#include "stream/send_chunks.h"

void leat_stream_send_init_none(leat_stream_send *send)
{
    memset(send, 0, sizeof *send);
    send->ring_cap = LEAT_SEND_INLINE_CHUNKS;
}

static void init(leat_stream_send *send, leat_stream_env *env, uint64_t limit, size_t buffer_max,
                 leat_budget_user user)
{
    /* Member by member: one in two is room that says nothing yet. */
    send->env = env;
    send->base = send->end = 0;
    leat_flow_out_init(&send->flow, limit);
    leat_ranges_init(&send->lost, env->pools->mem, LEAT_STREAM_SEND_RANGES_DEFAULT);
    leat_ranges_init(&send->acked, env->pools->mem, LEAT_STREAM_SEND_RANGES_DEFAULT);
    send->ring = NULL;
    send->ring_cap = LEAT_SEND_INLINE_CHUNKS;
    send->ring_head = send->ring_count = send->ring_near = 0;
    send->buffer_max = buffer_max;
    send->reset_code = send->reliable = 0;
    send->state = LEAT_SEND_READY;
    send->budget_user = (uint8_t)user;
    send->fin = send->fin_sent = send->fin_lost = send->fin_acked = false;
    send->reset_sent = send->reset_acked = false;
    send->want_writable = send->reserved = false;
}

void leat_stream_send_init(leat_stream_send *send, leat_stream_env *env, uint64_t limit,
                           size_t buffer_max)
{
    init(send, env, limit, buffer_max, LEAT_BUDGET_STREAM_SEND);
}

void leat_stream_send_init_crypto(leat_stream_send *send, leat_stream_env *env, size_t buffer_max,
                                  uint64_t offset)
{
    init(send, env, LEAT_STREAM_OFFSET_MAX, buffer_max, LEAT_BUDGET_CRYPTO);
    send->base = send->end = send->flow.used = offset;
}

static void free_ranges(leat_stream_send *send)
{
    leat_ranges_clear(&send->lost);
    leat_ranges_clear(&send->acked);
    if (send->lost.array) {
        leat_ranges_free(&send->lost);
    }
    if (send->acked.array) {
        leat_ranges_free(&send->acked);
    }
}

void leat_stream_send_free(leat_stream_send *send)
{
    if (send->state == LEAT_SEND_NONE || send->state == LEAT_SEND_DATA_RECVD) {
        send->state = LEAT_SEND_NONE; /* with the last acknowledgement all went */
        return;
    }
    send->reserved = false;
    leat_send_chunks_drop(send);
    free_ranges(send);
    send->state = LEAT_SEND_NONE;
}

/* ---- sending ---- */

static size_t least(uint64_t a, uint64_t b)
{
    return (size_t)(a < b ? a : b);
}

bool leat_stream_send_next(const leat_stream_send *send, size_t max_len, const leat_flow_out *conn,
                           leat_send_part *part)
{
    uint64_t len;

    if (!leat_stream_send_live(send)) {
        return false;
    }
    part->again = send->lost.count > 0;
    if (part->again) {
        leat_range first = leat_ranges_first(&send->lost);

        part->offset = first.from;
        len = first.to - first.from;
    } else {
        part->offset = send->flow.used;
        len = send->end > send->flow.used ? send->end - send->flow.used : 0;
        len = least(len, leat_flow_out_left(&send->flow));
        if (conn) {
            len = least(len, leat_flow_out_left(conn));
        }
    }
    part->len = least(len, max_len);
    part->fin = send->fin && part->offset + part->len == send->end;
    if (part->len > 0) {
        return true;
    }
    /* Only a FIN can go without bytes, and only when there are none before it to be sent. */
    part->again = send->fin_sent;
    return part->fin && send->lost.count == 0 && (!send->fin_sent || send->fin_lost);
}

void leat_stream_send_sent(leat_stream_send *send, const leat_send_part *part, leat_flow_out *conn)
{
    LEAT_ASSERT(leat_stream_send_live(send));
    if (part->len > 0 && part->again) {
        /* From the lowest lost byte on: cannot split a range, so cannot fail. */
        leat_err err = leat_ranges_remove(&send->lost, part->offset, part->offset + part->len);

        LEAT_ASSERT(err == LEAT_OK);
    } else if (part->len > 0) {
        LEAT_ASSERT(part->offset == send->flow.used);
        leat_flow_out_use(&send->flow, part->len);
        if (conn) {
            leat_flow_out_use(conn, part->len);
        }
    }
    if (send->state == LEAT_SEND_READY) {
        send->state = LEAT_SEND_SEND;
    }
    if (part->fin) {
        send->fin_sent = true;
        send->fin_lost = false;
        send->state = LEAT_SEND_DATA_SENT;
    }
}

/* ---- outcomes ---- */

/* Adds [from, to) to `lost`, if need be with more around it. */
static void add_lost(leat_stream_send *send, uint64_t from, uint64_t to)
{
    leat_ranges *lost = &send->lost;
    uint32_t i;
    leat_err err = leat_ranges_add(lost, from, to);

    if (LEAT_LIKELY(err == LEAT_OK)) {
        return;
    }
    i = leat_ranges_find(lost, from);
    if (i < lost->count) {
        err = leat_ranges_add(lost, from, leat_ranges_at(lost, i).from);
    } else {
        err = leat_ranges_add(lost, leat_ranges_last(lost).to, to);
    }
    LEAT_ASSERT(err == LEAT_OK);
}

/* Adds to `lost` what of [from, to) has not been acknowledged. */
static void add_lost_unacked(leat_stream_send *send, uint64_t from, uint64_t to)
{
    const leat_ranges *acked = &send->acked;

    while (from < to) {
        uint32_t i;
        uint64_t stop = to;

        from = leat_ranges_next_missing(acked, from);
        if (from >= to) {
            return;
        }
        i = leat_ranges_find(acked, from);
        if (i < acked->count && leat_ranges_at(acked, i).from < to) {
            stop = leat_ranges_at(acked, i).from;
        }
        add_lost(send, from, stop);
        from = stop;
    }
}

void leat_stream_send_on_lost(leat_stream_send *send, uint64_t offset, size_t len, bool fin)
{
    uint64_t from = offset > send->base ? offset : send->base;
    uint64_t to = offset + len;

    if (!leat_stream_send_live(send)) {
        return;
    }
    LEAT_ASSERT(to <= send->flow.used);
    if (fin && send->fin && !send->fin_acked) {
        send->fin_lost = true;
    }
    to = to < send->end ? to : send->end; /* what RESET_STREAM_AT left out */
    if (from < to) {
        add_lost_unacked(send, from, to);
    }
}

/* base may have reached what was acknowledged above it, and more of it than one range: what was
 * sent at once and is acknowledged late may have been sent again in pieces. */
static void absorb_acked(leat_stream_send *send)
{
    while (send->acked.count > 0 && leat_ranges_first(&send->acked).from <= send->base) {
        uint64_t to = leat_ranges_first(&send->acked).to;

        if (to > send->base) {
            send->base = to;
        }
        leat_ranges_remove_below(&send->acked, send->base);
    }
}

/* RESET_STREAM_AT: the end, when all that it promised has arrived and the frame has. */
static void end_reset_at(leat_stream_send *send)
{
    if (send->state == LEAT_SEND_RESET_AT && send->reset_acked && send->base == send->end) {
        send->state = LEAT_SEND_RESET_RECVD;
        free_ranges(send);
        leat_send_chunks_drop(send);
    }
}

static void ack_bytes(leat_stream_send *send, uint64_t offset, uint64_t to)
{
    if (offset <= send->base) {
        send->base = to;
        absorb_acked(send);
    } else if (leat_ranges_add(&send->acked, offset, to) != LEAT_OK) {
        add_lost(send, offset, to);
        return;
    }
    if (send->lost.count > 0) {
        leat_ranges_remove_below(&send->lost, send->base);
        /* It may fail where it would split a range: then these bytes go once more. */
        (void)leat_ranges_remove(&send->lost, offset, to);
    }
    leat_send_chunks_free_below(send, send->base);
}

void leat_stream_send_on_acked(leat_stream_send *send, uint64_t offset, size_t len, bool fin)
{
    uint64_t to = offset + len;

    if (!leat_stream_send_live(send)) {
        return;
    }
    LEAT_ASSERT(to <= send->flow.used);
    if (fin && send->fin) {
        send->fin_acked = true;
        send->fin_lost = false;
    }
    to = to < send->end ? to : send->end;
    if (to > send->base && to > offset) {
        ack_bytes(send, offset, to);
    }
    if (send->fin_acked && send->base == send->end) {
        send->state = LEAT_SEND_DATA_RECVD;
        send->want_writable = false;
        free_ranges(send);
        leat_send_chunks_drop(send);
    }
    end_reset_at(send);
}

void leat_stream_send_on_reset_acked(leat_stream_send *send)
{
    if (send->state == LEAT_SEND_RESET_SENT) {
        send->state = LEAT_SEND_RESET_RECVD;
    }
}

void leat_stream_send_reset_at_sent(leat_stream_send *send)
{
    LEAT_ASSERT(leat_stream_send_wants_reset_at(send));
    send->reset_sent = true;
}

/* Another reliable size: the frame is out of date, one with less is to be sent or under way. */
static bool is_newest_reset(const leat_stream_send *send, uint64_t reliable)
{
    return send->state == LEAT_SEND_RESET_AT && reliable == send->reliable;
}

void leat_stream_send_on_reset_at_acked(leat_stream_send *send, uint64_t reliable)
{
    if (is_newest_reset(send, reliable)) {
        send->reset_sent = true; /* one that was lost before has arrived after all */
        send->reset_acked = true;
        end_reset_at(send);
    }
}

void leat_stream_send_on_reset_at_lost(leat_stream_send *send, uint64_t reliable)
{
    if (is_newest_reset(send, reliable) && !send->reset_acked) {
        send->reset_sent = false;
    }
}

void leat_stream_send_restart(leat_stream_send *send, uint64_t limit)
{
    if (send->state == LEAT_SEND_NONE) {
        return;
    }
    /* Acknowledged 0-RTT was not rejected. */
    LEAT_ASSERT(send->base == 0);
    LEAT_ASSERT(!send->fin_acked);
    leat_ranges_clear(&send->lost);
    leat_ranges_clear(&send->acked);
    leat_flow_out_init(&send->flow, limit);
    send->fin_sent = false;
    send->fin_lost = false;
    send->reset_sent = false;
    if (leat_stream_send_live(send) && send->state != LEAT_SEND_RESET_AT) {
        send->state = LEAT_SEND_READY;
    }
}

/* ---- walking ---- */

void leat_stream_send_check(const leat_stream_send *send)
{
    if (send->state == LEAT_SEND_NONE) {
        return;
    }
    leat_ranges_check(&send->lost);
    leat_ranges_check(&send->acked);
    LEAT_ASSERT(send->flow.used <= send->flow.limit);
    LEAT_ASSERT(send->base <= send->flow.used);
    LEAT_ASSERT(send->base <= send->end);
    LEAT_ASSERT(send->flow.used <= send->end || send->state >= LEAT_SEND_RESET_AT);
    if (send->lost.count > 0) {
        LEAT_ASSERT(leat_ranges_first(&send->lost).from >= send->base);
        LEAT_ASSERT(leat_ranges_last(&send->lost).to <= send->flow.used);
        LEAT_ASSERT(leat_ranges_last(&send->lost).to <= send->end);
    }
    if (send->acked.count > 0) {
        LEAT_ASSERT(leat_ranges_first(&send->acked).from > send->base);
        LEAT_ASSERT(leat_ranges_last(&send->acked).to <= send->flow.used);
        LEAT_ASSERT(leat_ranges_last(&send->acked).to <= send->end);
    }
    LEAT_ASSERT(!send->fin_sent || send->fin);
    LEAT_ASSERT(!send->fin_lost || send->fin_sent);
    LEAT_ASSERT(!send->fin_acked || send->fin_sent);
    LEAT_ASSERT(!send->fin_sent || send->flow.used == send->end);
    if (send->state == LEAT_SEND_RESET_AT) {
        LEAT_ASSERT(!send->fin);
        LEAT_ASSERT(send->end >= send->reliable);
        LEAT_ASSERT(send->end == send->reliable || send->end == send->base);
        LEAT_ASSERT(!send->reset_acked || send->base < send->end);
        LEAT_ASSERT(!send->reset_sent || send->flow.used >= send->reliable);
    }
    if (!leat_stream_send_live(send)) {
        LEAT_ASSERT(send->lost.count == 0);
        LEAT_ASSERT(send->acked.count == 0);
    }
    leat_send_chunks_check(send);
}
