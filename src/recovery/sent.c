/* recovery/sent.c: the rings of sent packets and their frames: storage, and the sending side. The
 * other halves of recovery/sent.h stand in sent_ack.c and sent_loss.c.
 *
 * A packet's record lies at its number modulo the ring's size, so no search is ever made. Numbers
 * run without gaps from head to next_pn: one given up on purpose has a record too. Records leave at
 * the head alone, in order; one in the middle that is done with waits until those before it are.
 * Frames lie in their ring in the order of packets and leave with theirs.
 *
 * Growing moves the records to a ring twice the size; pointers into a ring hold only until the next
 * begin or add. Both rings go back to their leat_mem when the connection idles.
 *
 * Invariants (leat_sent_check() walks them): frames of successive packets follow each other; the
 * sums are those of the outstanding records; nothing below `open` is outstanding and in flight; all
 * numbers from an acked record's closed_from (or head) to it are acked.
 *
 * SPDX-License-Identifier: MIT
 */
#include "recovery/sent_ring.h"

#include <string.h>

void leat_sent_init(leat_sent *sent, leat_mem *mem, leat_flight *flight, const leat_frame_ops *ops,
                    void *ctx)
{
    *sent = (leat_sent){
        .mem = mem,
        .flight = flight,
        .ops = ops,
        .ctx = ctx,
        .loss_run_at = LEAT_TIME_NEVER,
        .packet_limit = LEAT_SENT_PACKETS_DEFAULT,
        .frame_limit = LEAT_SENT_FRAMES_DEFAULT,
    };
}

/* ---- storage ---- */

static size_t packet_bytes(uint32_t cap)
{
    return cap * sizeof(leat_sent_packet);
}

static size_t frame_bytes(uint32_t cap)
{
    return cap * sizeof(leat_sent_frame);
}

/* What is charged while so much is held. */
static size_t owed(size_t held)
{
    size_t least = packet_bytes(LEAT_SENT_PACKETS_LEAST) + frame_bytes(LEAT_SENT_FRAMES_LEAST);

    return held > least ? held : least;
}

/* Storage of n bytes more; for a while the old one and the new one are both there. NULL: *err says
 * why. */
static void *take(leat_sent *sent, size_t n, leat_err *err)
{
    size_t held = leat_sent_memory(sent);
    size_t more = owed(held + n) - owed(held);
    leat_budget *budget = sent->budget;
    void *taken;

    *err = LEAT_ERR_LIMIT;
    if (budget && more > 0) {
        size_t share = budget->limit / LEAT_SENT_BUDGET_SHARE;

        if (budget->limit != 0 && budget->by[LEAT_BUDGET_SENT] + more > share) {
            budget->refused++;
            return NULL;
        }
        if (!leat_budget_charge_spare(budget, LEAT_BUDGET_SENT, more)) {
            return NULL;
        }
    }
    taken = leat_mem_take(sent->mem, n);
    if (!taken) {
        *err = LEAT_ERR_NOMEM;
        if (budget) {
            leat_budget_refund(budget, LEAT_BUDGET_SENT, more);
        }
    }
    return taken;
}

/* Gives back n bytes that are not part of the rings any more. */
static void give(leat_sent *sent, void *storage, size_t n)
{
    size_t held = leat_sent_memory(sent);

    leat_mem_give(sent->mem, storage, n);
    if (sent->budget) {
        leat_budget_refund(sent->budget, LEAT_BUDGET_SENT, owed(held + n) - owed(held));
    }
}

static leat_err resize_packets(leat_sent *sent, uint32_t cap)
{
    leat_err err;
    leat_sent_packet *packets = take(sent, packet_bytes(cap), &err);
    leat_sent_packet *old = sent->packets;
    uint32_t old_cap = sent->packet_cap;

    LEAT_ASSERT(sent->next_pn - sent->head <= cap);
    if (!packets) {
        return err;
    }
    for (uint64_t pn = sent->head; pn < sent->next_pn; pn++) {
        packets[pn & (cap - 1)] = *leat_sent_at(sent, pn);
    }
    sent->packets = packets;
    sent->packet_cap = cap;
    give(sent, old, packet_bytes(old_cap));
    return LEAT_OK;
}

static leat_err resize_frames(leat_sent *sent, uint32_t cap)
{
    leat_err err;
    leat_sent_frame *frames = take(sent, frame_bytes(cap), &err);
    leat_sent_frame *old = sent->frames;
    uint32_t old_cap = sent->frame_cap;

    LEAT_ASSERT(sent->frame_pending - sent->frame_head <= cap);
    if (!frames) {
        return err;
    }
    for (uint32_t i = sent->frame_head; i != sent->frame_pending; i++) {
        frames[i & (cap - 1)] = sent->frames[i & (sent->frame_cap - 1)];
    }
    sent->frames = frames;
    sent->frame_cap = cap;
    give(sent, old, frame_bytes(old_cap));
    return LEAT_OK;
}

static leat_err grow_packets(leat_sent *sent)
{
    uint32_t cap = sent->packet_cap ? sent->packet_cap * 2 : LEAT_SENT_PACKETS_LEAST;

    return cap <= sent->packet_limit ? resize_packets(sent, cap) : LEAT_ERR_LIMIT;
}

static leat_err grow_frames(leat_sent *sent)
{
    uint32_t cap = sent->frame_cap ? sent->frame_cap * 2 : LEAT_SENT_FRAMES_LEAST;

    return cap <= sent->frame_limit ? resize_frames(sent, cap) : LEAT_ERR_LIMIT;
}

static void give_storage(leat_sent *sent)
{
    leat_sent_packet *packets = sent->packets;
    leat_sent_frame *frames = sent->frames;
    size_t packets_held = packet_bytes(sent->packet_cap);
    size_t frames_held = frame_bytes(sent->frame_cap);

    sent->packets = NULL;
    sent->packet_cap = 0;
    give(sent, packets, packets_held);
    sent->frames = NULL;
    sent->frame_cap = 0;
    give(sent, frames, frames_held);
}

void leat_sent_set_budget(leat_sent *sent, leat_budget *budget)
{
    LEAT_ASSERT(!sent->budget && leat_sent_memory(sent) == 0);
    sent->budget = budget;
    leat_budget_force(budget, LEAT_BUDGET_SENT, leat_sent_charged(sent));
}

void leat_sent_free(leat_sent *sent)
{
    sent->flight->bytes -= sent->bytes;
    sent->bytes = 0;
    sent->aside = 0;
    give_storage(sent);
    if (sent->budget) {
        leat_budget_refund(sent->budget, LEAT_BUDGET_SENT, leat_sent_charged(sent));
        sent->budget = NULL;
    }
}

size_t leat_sent_memory(const leat_sent *sent)
{
    return packet_bytes(sent->packet_cap) + frame_bytes(sent->frame_cap);
}

size_t leat_sent_charged(const leat_sent *sent)
{
    return sent->budget ? owed(leat_sent_memory(sent)) : 0;
}

/* ---- leaving at the head ---- */

static void pop(leat_sent *sent, const leat_sent_packet *p)
{
    sent->frame_head = p->frame_first + p->frame_count;
    sent->head++;
}

static bool is_done(const leat_sent *sent, const leat_sent_packet *p, leat_time now)
{
    switch (p->state) {
    case LEAT_SENT_OUTSTANDING:
        return (p->flags & LEAT_SENT_IN_FLIGHT) == 0;
    case LEAT_SENT_LOST:
        return leat_time_since(now, p->lost_at) >= sent->keep;
    default:
        return true;
    }
}

void leat_sent_sweep(leat_sent *sent, leat_time now)
{
    while (!leat_sent_is_empty(sent)) {
        leat_sent_packet *p = leat_sent_at(sent, sent->head);

        if (!is_done(sent, p, now)) {
            break;
        }
        /* Acknowledged before the loss detector came by: it ends a run of losses all the same. */
        if (p->state == LEAT_SENT_ACKED && sent->head >= sent->open) {
            sent->loss_run_at = LEAT_TIME_NEVER;
        }
        pop(sent, p);
    }
    if (sent->open < sent->head) {
        sent->open = sent->head;
    }
}

void leat_sent_tell_lost(leat_sent *sent, leat_sent_packet *p)
{
    if (p->flags & LEAT_SENT_REQUEUED) {
        return;
    }
    p->flags |= LEAT_SENT_REQUEUED;
    for (uint32_t i = 0; i < p->frame_count; i++) {
        const leat_sent_frame *f = &sent->frames[(p->frame_first + i) & (sent->frame_cap - 1)];

        if (sent->ops[f->kind].on_lost) {
            sent->ops[f->kind].on_lost(sent->ctx, f);
        }
    }
}

/* The oldest packet makes room for a new one that must go out. */
static void evict(leat_sent *sent)
{
    leat_sent_packet *p = leat_sent_at(sent, sent->head);

    if (p->state == LEAT_SENT_OUTSTANDING) {
        leat_sent_leave(sent, p);
        if (leat_sent_counts(sent, p)) {
            sent->bytes -= p->size;
            sent->flight->bytes -= p->size;
        }
        leat_sent_leave_aside(sent, p->flags, p->size);
        leat_sent_tell_lost(sent, p);
    }
    pop(sent, p);
    if (sent->open < sent->head) {
        sent->open = sent->head;
    }
}

void leat_sent_forget(leat_sent *sent, bool lost)
{
    LEAT_ASSERT(!sent->busy);
    sent->busy = true;
    sent->flight->bytes -= sent->bytes;
    sent->bytes = 0;
    sent->aside = 0;
    sent->outstanding = 0;
    sent->eliciting = 0;
    for (uint64_t pn = sent->head; lost && pn < sent->next_pn; pn++) {
        leat_sent_packet *p = leat_sent_at(sent, pn);

        if (p->state == LEAT_SENT_OUTSTANDING) {
            leat_sent_tell_lost(sent, p);
        }
    }
    sent->head = sent->next_pn;
    sent->open = sent->next_pn;
    sent->frame_head = sent->frame_tail;
    sent->frame_pending = sent->frame_tail;
    sent->loss_run_at = LEAT_TIME_NEVER;
    sent->busy = false;
    give_storage(sent);
}

void leat_sent_shrink(leat_sent *sent)
{
    uint32_t packets = LEAT_SENT_PACKETS_LEAST, frames = LEAT_SENT_FRAMES_LEAST;

    LEAT_ASSERT(!sent->busy);
    leat_sent_sweep(sent, LEAT_TIME_NEVER);
    if (leat_sent_is_empty(sent)) {
        give_storage(sent);
        return;
    }
    while (packets < sent->next_pn - sent->head) {
        packets *= 2;
    }
    while (frames < sent->frame_tail - sent->frame_head) {
        frames *= 2;
    }
    /* Short of memory it stays as it is. */
    if (packets < sent->packet_cap) {
        (void)resize_packets(sent, packets);
    }
    if (frames < sent->frame_cap) {
        (void)resize_frames(sent, frames);
    }
}

/* ---- sending ---- */

static bool has_packet_room(const leat_sent *sent)
{
    return sent->next_pn - sent->head < sent->packet_cap;
}

/* By growing, else by forgetting lost packets, else (if it must be) by giving up the oldest ones.
 */
static leat_err find_room(leat_sent *sent, bool must)
{
    while (!leat_sent_has_room(sent)) {
        leat_err err = has_packet_room(sent) ? grow_frames(sent) : grow_packets(sent);

        if (err == LEAT_OK) {
            continue;
        }
        leat_sent_sweep(sent, LEAT_TIME_NEVER);
        if (leat_sent_has_room(sent)) {
            break;
        }
        if (!must || leat_sent_is_empty(sent)) {
            return err;
        }
        evict(sent);
    }
    return LEAT_OK;
}

leat_err leat_sent_make_room(leat_sent *sent, bool must)
{
    leat_err err = find_room(sent, must);

    sent->busy = err == LEAT_OK;
    sent->frame_pending = sent->frame_tail;
    return err;
}

leat_err leat_sent_add_slow(leat_sent *sent, const leat_sent_frame *frame)
{
    leat_err err = grow_frames(sent);

    if (err == LEAT_OK) {
        sent->frames[sent->frame_pending++ & (sent->frame_cap - 1)] = *frame;
    }
    return err;
}

/* A packet that is not in flight: recorded only where packets before it still are, so that numbers
 * stay without gaps. */
static void commit_not_in_flight(leat_sent *sent, leat_time now, uint16_t size, uint8_t flags,
                                 uint8_t path)
{
    sent->frame_pending = sent->frame_tail;
    if (sent->outstanding == 0) {
        leat_sent_sweep(sent, now);
    }
    if (leat_sent_is_empty(sent)) {
        sent->head++;
        sent->open = sent->head;
        sent->frame_head = sent->frame_tail;
    } else {
        *leat_sent_at(sent, sent->next_pn) = (leat_sent_packet){
            .sent_at = now,
            .frame_first = sent->frame_tail,
            .size = size,
            .flags = flags,
            .path = path,
            .state = LEAT_SENT_OUTSTANDING,
        };
    }
    sent->next_pn++;
}

/* Everything is read before anything is written: the compiler need not fear that *p is *flight. */
static inline void record(leat_sent_packet *p, const leat_sent *sent, leat_time now, uint16_t size,
                          unsigned flags, uint8_t path)
{
    const leat_flight flight = *sent->flight;
    uint32_t frame_first = sent->frame_tail;
    uint16_t frame_count = (uint16_t)(sent->frame_pending - sent->frame_tail);

    p->sent_at = now;
    p->delivered_at = flight.delivered_at;
    p->first_sent_at = flight.first_sent_at;
    p->delivered = flight.delivered;
    p->lost = flight.lost;
    p->in_flight = flight.bytes;
    p->frame_first = frame_first;
    p->frame_count = frame_count;
    p->size = size;
    p->flags = (uint8_t)flags;
    p->state = LEAT_SENT_OUTSTANDING;
    p->path = path;
    p->zero = 0;
}

void leat_sent_commit(leat_sent *sent, leat_time now, uint16_t size, uint8_t flags, uint8_t path)
{
    leat_flight *flight = sent->flight;

    LEAT_ASSERT(sent->busy);
    sent->busy = false;
    now = leat_time_max(now, sent->last_sent_at);
    sent->last_sent_at = now;
    if (!(flags & LEAT_SENT_IN_FLIGHT)) {
        LEAT_ASSERT(!(flags & LEAT_SENT_ELICITING));
        commit_not_in_flight(sent, now, size, flags, path);
        return;
    }
    LEAT_ASSERT(sent->frame_pending - sent->frame_tail <= UINT16_MAX);
    if (path == sent->path) {
        if (flight->bytes == 0) {
            /* The sampler starts afresh: the time before does not belong to any delivery. */
            flight->first_sent_at = now;
            flight->delivered_at = now;
        }
        flight->bytes += size;
        sent->bytes += size;
    } else {
        flags |= LEAT_SENT_ASIDE;
        sent->aside += size;
    }
    record(leat_sent_at(sent, sent->next_pn), sent, now, size,
           flight->app_limited ? flags | LEAT_SENT_APP_LIMITED : flags, path);
    sent->frame_tail = sent->frame_pending;
    sent->next_pn++;
    sent->outstanding++;
    if (flags & LEAT_SENT_ELICITING) {
        sent->eliciting++;
        sent->last_eliciting_at = now;
    }
}

void leat_sent_abort(leat_sent *sent)
{
    LEAT_ASSERT(sent->busy);
    sent->busy = false;
    sent->frame_pending = sent->frame_tail;
}

bool leat_sent_skip(leat_sent *sent)
{
    LEAT_ASSERT(!sent->busy);
    if (sent->outstanding == 0 || !has_packet_room(sent)) {
        return false;
    }
    *leat_sent_at(sent, sent->next_pn) = (leat_sent_packet){
        .sent_at = sent->last_sent_at,
        .frame_first = sent->frame_tail,
        .state = LEAT_SENT_SKIPPED,
    };
    sent->next_pn++;
    return true;
}

void leat_sent_set_path(leat_sent *sent, leat_flight *flight, uint8_t path)
{
    sent->flight->bytes -= sent->bytes;
    sent->bytes = 0;
    sent->flight = flight;
    sent->path = path;
    for (uint64_t pn = sent->open; pn < sent->next_pn; pn++) {
        leat_sent_packet *p = leat_sent_at(sent, pn);

        if (p->state == LEAT_SENT_OUTSTANDING && leat_sent_counts(sent, p)) {
            sent->bytes += p->size;
            leat_sent_leave_aside(sent, p->flags, p->size);
            p->flags &= (uint8_t)~LEAT_SENT_ASIDE;
        }
    }
    flight->bytes += sent->bytes;
}

/* ---- the walker ---- */

static void check_record(const leat_sent *sent, uint64_t pn, uint32_t frame_first)
{
    const leat_sent_packet *p = leat_sent_at(sent, pn);

    LEAT_ASSERT(p->frame_first == frame_first);
    LEAT_ASSERT(p->state <= LEAT_SENT_ACKED);
    if (p->state == LEAT_SENT_OUTSTANDING && (p->flags & LEAT_SENT_IN_FLIGHT)) {
        LEAT_ASSERT(pn >= sent->open);
    }
    if (p->state == LEAT_SENT_ACKED) {
        LEAT_ASSERT(p->closed_from <= pn);
        for (uint64_t at = pn; at > p->closed_from && at > sent->head; at--) {
            LEAT_ASSERT(leat_sent_at(sent, at - 1)->state == LEAT_SENT_ACKED);
        }
    }
}

void leat_sent_check(const leat_sent *sent)
{
    uint64_t bytes = 0, aside = 0;
    uint32_t outstanding = 0, eliciting = 0, frames = sent->frame_head;

    LEAT_ASSERT((sent->packet_cap & (sent->packet_cap - 1)) == 0);
    LEAT_ASSERT((sent->frame_cap & (sent->frame_cap - 1)) == 0);
    LEAT_ASSERT(sent->next_pn - sent->head <= sent->packet_cap);
    LEAT_ASSERT(sent->frame_tail - sent->frame_head <= sent->frame_cap);
    LEAT_ASSERT(sent->head <= sent->open);
    LEAT_ASSERT(sent->open <= sent->next_pn);
    LEAT_ASSERT(sent->largest_acked_end <= sent->next_pn);
    for (uint64_t pn = sent->head; pn < sent->next_pn; pn++) {
        const leat_sent_packet *p = leat_sent_at(sent, pn);

        check_record(sent, pn, frames);
        frames += p->frame_count;
        if (p->state == LEAT_SENT_OUTSTANDING && (p->flags & LEAT_SENT_IN_FLIGHT)) {
            outstanding++;
            eliciting += p->flags & LEAT_SENT_ELICITING;
            bytes += leat_sent_counts(sent, p) ? p->size : 0;
            aside += p->flags & LEAT_SENT_ASIDE ? p->size : 0;
        }
    }
    LEAT_ASSERT(frames == sent->frame_tail);
    LEAT_ASSERT(outstanding == sent->outstanding);
    LEAT_ASSERT(eliciting == sent->eliciting);
    LEAT_ASSERT(bytes == sent->bytes);
    LEAT_ASSERT(aside == sent->aside);
    LEAT_ASSERT(sent->flight->bytes >= bytes);
}
