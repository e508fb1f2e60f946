/* stream/table.c: opening, finding and closing streams, and the limits on their number.
 *
 * Of the streams that the peer opens we advertise limit = closed + concurrent, told again when few
 * are left to the peer or many have closed since. A stream that the peer opened only by opening a
 * higher one is an index in `idle`: there are at most half as many ranges in it as streams may be
 * open at once.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stream/table.h"

#include <string.h>

#include <leat/limits.h>
#include <leat/transport_error.h>

#include "stream/output.h"

#define IDLE_RANGES_MAX (1u << 20)

/* ---- the whole ---- */

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void init_remote(leat_streams *streams, bool uni, uint64_t concurrent)
{
    leat_streams_remote *remote = &streams->remote[uni];
    /* Each idle index counts as open, and may stand alone among closed ones. */
    uint64_t ranges = concurrent > 0 ? concurrent : 1;

    concurrent = least(concurrent, LEAT_STREAMS_MAX);
    remote->concurrent = concurrent;
    remote->limit = concurrent;
    leat_ranges_init(&remote->idle, streams->env.pools->mem,
                     (uint32_t)least(ranges, IDLE_RANGES_MAX));
}

void leat_streams_init(leat_streams *streams, leat_stream_pools *pools, leat_budget *budget,
                       const leat_streams_settings *settings)
{
    memset(streams, 0, sizeof *streams);
    streams->env = (leat_stream_env){.pools = pools, .budget = budget};
    streams->settings = *settings;
    if (streams->settings.gaps_max == 0) {
        streams->settings.gaps_max = LEAT_STREAM_RECV_GAPS_DEFAULT;
    }
    leat_flow_in_init(&streams->flow_in, settings->max_data, settings->window_max);
    leat_flow_out_init(&streams->flow_out, 0);
    init_remote(streams, false, settings->max_streams_bidi);
    init_remote(streams, true, settings->max_streams_uni);
    leat_hmap_init(&streams->by_id, pools->mem, settings->hash_key);
    leat_list_init(&streams->controls);
    leat_list_init(&streams->events);
}

void leat_streams_free(leat_streams *streams)
{
    leat_stream *stream;
    unsigned events;

    leat_streams_close_all(streams);
    while ((stream = leat_streams_next_event(streams, &events)) != NULL) {
        leat_streams_told(streams, stream, events);
    }
    LEAT_ASSERT(streams->zombies == 0); /* else records still point to streams */
    leat_streams_shrink(streams);
    leat_ranges_free(&streams->remote[0].idle);
    leat_ranges_free(&streams->remote[1].idle);
}

void leat_streams_shrink(leat_streams *streams)
{
    if (leat_hmap_count(&streams->by_id) == 0) {
        leat_hmap_free(&streams->by_id);
        leat_pool_give(&streams->env.pools->lines, streams->lines);
        streams->lines = NULL;
    }
    for (unsigned uni = 0; uni < 2; uni++) {
        if (leat_ranges_count(&streams->remote[uni].idle) == 0) {
            leat_ranges_free(&streams->remote[uni].idle);
        }
    }
}

leat_stream *leat_streams_first(leat_streams *streams)
{
    leat_hnode *node = leat_hmap_next(&streams->by_id, NULL);

    return node ? LEAT_CONTAINER_OF(node, leat_stream, node.node) : NULL;
}

leat_stream *leat_streams_after(leat_streams *streams, const leat_stream *stream)
{
    leat_hnode *node = leat_hmap_next(&streams->by_id, &stream->node.node);

    return node ? LEAT_CONTAINER_OF(node, leat_stream, node.node) : NULL;
}

/* ---- one stream ---- */

static bool is_local(const leat_streams *streams, uint64_t id)
{
    return leat_stream_id_by_server(id) == streams->settings.is_server;
}

/* The credit that the peer's parameters give to a stream: "local" and "remote" there are the peer's
 * view. */
static uint64_t peer_limit(const leat_streams *streams, uint64_t id)
{
    if (leat_stream_id_is_uni(id)) {
        return streams->peer.max_stream_data_uni;
    }
    return is_local(streams, id) ? streams->peer.max_stream_data_bidi_remote
                                 : streams->peer.max_stream_data_bidi_local;
}

static uint64_t own_window(const leat_streams *streams, uint64_t id)
{
    if (leat_stream_id_is_uni(id)) {
        return streams->settings.max_stream_data_uni;
    }
    return is_local(streams, id) ? streams->settings.max_stream_data_bidi_local
                                 : streams->settings.max_stream_data_bidi_remote;
}

static void init_parts(leat_streams *streams, leat_stream *stream)
{
    bool local = is_local(streams, stream->id);
    bool uni = leat_stream_id_is_uni(stream->id);

    if (!uni || local) {
        leat_stream_send_init(&stream->send, &streams->env, peer_limit(streams, stream->id),
                              streams->settings.send_buffer);
    } else {
        leat_stream_send_init_none(&stream->send);
    }
    if (!uni || !local) {
        leat_stream_recv_init(&stream->recv, &streams->env, own_window(streams, stream->id),
                              streams->settings.stream_window_max, streams->settings.gaps_max);
    } else {
        leat_stream_recv_init_none(&stream->recv);
    }
}

static bool make_lines(leat_streams *streams)
{
    streams->lines = leat_pool_take(&streams->env.pools->lines);
    for (unsigned u = 0; streams->lines && u < LEAT_STREAM_URGENCIES; u++) {
        leat_list_init(&streams->lines->free[u]);
        leat_list_init(&streams->lines->fresh[u]);
    }
    return streams->lines != NULL;
}

static leat_stream *make_stream(leat_streams *streams, uint64_t id)
{
    leat_stream *stream;

    if (LEAT_UNLIKELY(!streams->lines) && !make_lines(streams)) {
        return NULL;
    }
    if (!leat_budget_charge(streams->env.budget, LEAT_BUDGET_OBJECTS, sizeof *stream)) {
        return NULL;
    }
    stream = leat_pool_take(&streams->env.pools->streams);
    if (!stream) {
        leat_budget_refund(streams->env.budget, LEAT_BUDGET_OBJECTS, sizeof *stream);
        return NULL;
    }
    memset(stream, 0, offsetof(leat_stream, send));
    stream->id = id;
    stream->streams = streams;
    stream->urgency = LEAT_STREAM_URGENCY_DEFAULT;
    stream->incremental = true;
    stream->in_table = true;
    init_parts(streams, stream);
    leat_hmap_insert_u64(&streams->by_id, &stream->node, id);
    streams->stat_opened++;
    return stream;
}

static void leave_table(leat_streams *streams, leat_stream *stream)
{
    leat_hmap_remove(&streams->by_id, &stream->node.node);
    stream->in_table = false;
    streams->zombies++;
    if (stream->queue != LEAT_STREAM_QUEUE_NONE) {
        leat_streams_requeue(streams, stream);
    }
    leat_streams_unwant_control(streams, stream, ~0u);
}

/* Told, and no record points to it any more. */
static void recycle(leat_streams *streams, leat_stream *stream)
{
    LEAT_ASSERT(!stream->in_table);
    LEAT_ASSERT(stream->events == 0);
    leat_stream_send_free(&stream->send);
    leat_stream_recv_free(&stream->recv);
    leat_pool_give(&streams->env.pools->streams, stream);
    leat_budget_refund(streams->env.budget, LEAT_BUDGET_OBJECTS, sizeof *stream);
    streams->zombies--;
}

void leat_streams_release(leat_streams *streams, leat_stream *stream)
{
    LEAT_ASSERT(stream->records > 0);
    stream->records--;
    if (stream->records == 0 && stream->closed_told) {
        recycle(streams, stream);
    }
}

/* Whether it is time to allow the peer more streams of a kind. */
static void review_remote_limit(leat_streams *streams, bool uni)
{
    const leat_streams_remote *remote = &streams->remote[uni];
    uint64_t waiting = remote->closed + remote->concurrent - remote->limit;

    if (remote->limit - remote->opened <= remote->concurrent / 4 ||
        waiting >= remote->concurrent / 2) {
        leat_streams_raise_remote(streams, !uni);
    }
}

void leat_streams_raise_remote(leat_streams *streams, bool bidi)
{
    leat_streams_remote *remote = &streams->remote[!bidi];
    uint64_t target = least(remote->closed + remote->concurrent, LEAT_STREAMS_MAX);

    if (target > remote->limit) {
        remote->limit = target;
        streams->control |= bidi ? LEAT_CONTROL_MAX_STREAMS_BIDI : LEAT_CONTROL_MAX_STREAMS_UNI;
    }
}

void leat_streams_settle(leat_streams *streams, leat_stream *stream)
{
    if (!stream->in_table || !leat_stream_send_ended(&stream->send) ||
        !leat_stream_recv_ended(&stream->recv)) {
        return;
    }
    leave_table(streams, stream);
    if (!is_local(streams, stream->id)) {
        bool uni = leat_stream_id_is_uni(stream->id);

        streams->remote[uni].closed++;
        review_remote_limit(streams, uni);
    }
    leat_streams_tell(streams, stream, LEAT_STREAM_EVENT_CLOSED);
}

void leat_streams_close_all(leat_streams *streams)
{
    leat_stream *stream;

    while ((stream = leat_streams_first(streams)) != NULL) {
        leave_table(streams, stream);
        leat_streams_tell(streams, stream, LEAT_STREAM_EVENT_CLOSED);
    }
    for (leat_link *l = leat_list_first(&streams->events); l;
         l = leat_list_next(&streams->events, l)) {
        leat_stream *told = LEAT_CONTAINER_OF(l, leat_stream, event_link);

        told->events &= LEAT_STREAM_EVENT_OPENED | LEAT_STREAM_EVENT_CLOSED;
    }
    streams->control = 0;
    streams->available = 0;
}

/* ---- events ---- */

void leat_streams_tell(leat_streams *streams, leat_stream *stream, unsigned events)
{
    if (stream->events == 0 && events != 0) {
        leat_list_push_back(&streams->events, &stream->event_link);
    }
    stream->events |= (uint8_t)events;
}

leat_stream *leat_streams_next_event(leat_streams *streams, unsigned *events)
{
    leat_link *link = leat_list_pop_front(&streams->events);
    leat_stream *stream;

    *events = 0;
    if (!link) {
        return NULL;
    }
    stream = LEAT_CONTAINER_OF(link, leat_stream, event_link);
    *events = stream->events;
    stream->events = 0;
    return stream;
}

void leat_streams_told(leat_streams *streams, leat_stream *stream, unsigned events)
{
    if (events & LEAT_STREAM_EVENT_RESET) {
        leat_stream_recv_reset_seen(&stream->recv);
        leat_streams_settle(streams, stream);
    }
    if (events & LEAT_STREAM_EVENT_CLOSED) {
        LEAT_ASSERT(!stream->in_table);
        stream->closed_told = true;
        if (stream->records == 0) {
            recycle(streams, stream);
        }
    }
}

/* ---- opening and finding ---- */

leat_stream *leat_streams_find(leat_streams *streams, uint64_t id)
{
    leat_hnode_u64 *node = leat_hmap_find_u64(&streams->by_id, id);

    return node ? LEAT_CONTAINER_OF(node, leat_stream, node) : NULL;
}

leat_err leat_streams_open(leat_streams *streams, bool bidi, leat_stream **out)
{
    leat_streams_local *local = &streams->local[!bidi];
    uint64_t id = local->opened << 2 | (bidi ? 0 : LEAT_STREAM_UNI) |
                  (streams->settings.is_server ? LEAT_STREAM_BY_SERVER : 0);

    *out = NULL;
    if (local->opened >= local->limit) {
        local->blocked = true;
        if (local->reported != local->limit + 1) {
            streams->control |=
                bidi ? LEAT_CONTROL_STREAMS_BLOCKED_BIDI : LEAT_CONTROL_STREAMS_BLOCKED_UNI;
        }
        return LEAT_ERR_BLOCKED;
    }
    *out = make_stream(streams, id);
    if (!*out) {
        return LEAT_ERR_NOMEM;
    }
    local->opened++;
    return LEAT_OK;
}

/* The peer names a stream of its own that is not in the table: opens it if it may. */
static uint64_t open_remote(leat_streams *streams, uint64_t id, leat_stream **out)
{
    bool uni = leat_stream_id_is_uni(id);
    leat_streams_remote *remote = &streams->remote[uni];
    uint64_t index = id >> 2;
    leat_err err;

    if (index >= remote->limit) {
        return LEAT_TE_STREAM_LIMIT_ERROR;
    }
    if (index >= remote->opened) {
        err = leat_ranges_add(&remote->idle, remote->opened, index);
    } else if (leat_ranges_contains(&remote->idle, index)) {
        err = leat_ranges_remove(&remote->idle, index, index + 1);
    } else {
        return 0; /* closed: the frame is late */
    }
    if (err != LEAT_OK) {
        return LEAT_TE_INTERNAL_ERROR;
    }
    *out = make_stream(streams, id);
    if (!*out) {
        return LEAT_TE_INTERNAL_ERROR;
    }
    if (index >= remote->opened) {
        remote->opened = index + 1;
        review_remote_limit(streams, uni);
    }
    leat_streams_tell(streams, *out, LEAT_STREAM_EVENT_OPENED);
    return 0;
}

uint64_t leat_streams_for_frame(leat_streams *streams, uint64_t id, bool needs_recv,
                                leat_stream **out)
{
    bool local = is_local(streams, id);

    *out = NULL;
    if (leat_stream_id_is_uni(id) && local == needs_recv) {
        return LEAT_TE_STREAM_STATE_ERROR; /* a frame for the part that the stream does not have */
    }
    if (local && id >> 2 >= streams->local[leat_stream_id_is_uni(id)].opened) {
        return LEAT_TE_STREAM_STATE_ERROR; /* ours to open, and we have not */
    }
    *out = leat_streams_find(streams, id);
    if (*out || local) {
        return 0;
    }
    return open_remote(streams, id, out);
}

/* ---- the peer's parameters ---- */

void leat_streams_set_peer(leat_streams *streams, const leat_streams_peer *peer)
{
    streams->peer = *peer;
    leat_flow_out_raise(&streams->flow_out, peer->max_data);
    leat_streams_raise_local(streams, true, peer->max_streams_bidi);
    leat_streams_raise_local(streams, false, peer->max_streams_uni);
    for (leat_stream *s = leat_streams_first(streams); s; s = leat_streams_after(streams, s)) {
        if (leat_stream_send_live(&s->send)) {
            leat_flow_out_raise(&s->send.flow, peer_limit(streams, s->id));
            leat_streams_requeue(streams, s);
        }
    }
}

void leat_streams_raise_local(leat_streams *streams, bool bidi, uint64_t limit)
{
    leat_streams_local *local = &streams->local[!bidi];

    if (limit <= local->limit) {
        return;
    }
    local->limit = limit;
    streams->control &=
        ~(unsigned)(bidi ? LEAT_CONTROL_STREAMS_BLOCKED_BIDI : LEAT_CONTROL_STREAMS_BLOCKED_UNI);
    if (local->blocked && local->opened < limit) {
        local->blocked = false;
        streams->available |= bidi ? LEAT_STREAMS_AVAILABLE_BIDI : LEAT_STREAMS_AVAILABLE_UNI;
    }
    if (streams->held) {
        leat_streams_requeue_all(streams);
    }
}

/* A stream of ours that the peer does not allow, as its limit fell when it rejected 0-RTT. */
bool leat_streams_is_held(const leat_streams *streams, const leat_stream *stream)
{
    return streams->held && is_local(streams, stream->id) &&
           stream->id >> 2 >= streams->local[leat_stream_id_is_uni(stream->id)].limit;
}

static void restart_stream(leat_streams *streams, leat_stream *stream)
{
    leat_stream_send_restart(&stream->send, peer_limit(streams, stream->id));
    leat_streams_unwant_control(streams, stream, LEAT_CONTROL_RESET_STREAM_AT);
    if (stream->send.state == LEAT_SEND_RESET_AT && !streams->peer.reset_stream_at) {
        /* No more than before the peer knew the frame can be done. */
        leat_stream_send_reset(&stream->send, stream->send.reset_code);
    }
    if (stream->send.state == LEAT_SEND_RESET_SENT) {
        leat_streams_want_control(streams, stream, LEAT_CONTROL_RESET_STREAM);
    }
    if (stream->recv.state == LEAT_RECV_RECV && stream->recv.stopped) {
        leat_streams_want_control(streams, stream, LEAT_CONTROL_STOP_SENDING);
    }
}

void leat_streams_restart(leat_streams *streams, const leat_streams_peer *peer)
{
    streams->peer = *peer;
    leat_flow_out_init(&streams->flow_out, peer->max_data);
    for (unsigned uni = 0; uni < 2; uni++) {
        leat_streams_local *local = &streams->local[uni];

        local->limit = uni ? peer->max_streams_uni : peer->max_streams_bidi;
        local->reported = 0;
        streams->held = streams->held || local->opened > local->limit;
    }
    for (leat_stream *s = leat_streams_first(streams); s; s = leat_streams_after(streams, s)) {
        restart_stream(streams, s);
    }
    leat_streams_requeue_all(streams);
}

/* ---- walking ---- */

static void check_queues(const leat_streams *streams, const leat_list *queues, uint32_t mask,
                         enum leat_stream_queue which)
{
    for (unsigned u = 0; u < LEAT_STREAM_URGENCIES; u++) {
        leat_list_check(&queues[u]);
        LEAT_ASSERT(leat_list_empty(&queues[u]) == ((mask >> u & 1) == 0));
        for (leat_link *l = leat_list_first(&queues[u]); l; l = leat_list_next(&queues[u], l)) {
            const leat_stream *stream = LEAT_CONTAINER_OF(l, leat_stream, send_link);

            LEAT_ASSERT(stream->streams == streams);
            LEAT_ASSERT(stream->urgency == u);
            LEAT_ASSERT(stream->queue == (uint8_t)which);
        }
    }
}

static void check_remote(const leat_streams_remote *remote)
{
    leat_ranges_check(&remote->idle);
    LEAT_ASSERT(remote->opened <= remote->limit);
    LEAT_ASSERT(remote->closed <= remote->opened);
    LEAT_ASSERT(remote->opened - remote->closed <= remote->concurrent);
    LEAT_ASSERT(remote->limit <= remote->closed + remote->concurrent);
}

void leat_streams_check(leat_streams *streams)
{
    size_t held = 0;

    leat_hmap_check(&streams->by_id);
    leat_flow_in_check(&streams->flow_in);
    LEAT_ASSERT(streams->flow_out.used <= streams->flow_out.limit);
    check_remote(&streams->remote[0]);
    check_remote(&streams->remote[1]);
    LEAT_ASSERT(streams->lines || (streams->free_mask | streams->new_mask) == 0);
    if (streams->lines) {
        check_queues(streams, streams->lines->free, streams->free_mask, LEAT_STREAM_QUEUE_FREE);
        check_queues(streams, streams->lines->fresh, streams->new_mask, LEAT_STREAM_QUEUE_NEW);
    }
    leat_list_check(&streams->controls);
    leat_list_check(&streams->events);
    for (leat_stream *s = leat_streams_first(streams); s; s = leat_streams_after(streams, s)) {
        LEAT_ASSERT(s->in_table);
        LEAT_ASSERT(leat_link_listed(&s->control_link) ==
                    (s->control != 0 && !leat_streams_is_held(streams, s)));
        LEAT_ASSERT(!leat_stream_send_ended(&s->send) || !leat_stream_recv_ended(&s->recv));
        leat_stream_check(s);
        held += s->recv.state == LEAT_RECV_NONE ? 0 : leat_reassembly_check(&s->recv.held);
    }
    LEAT_ASSERT(held <= streams->env.budget->by[LEAT_BUDGET_STREAM_RECV]);
    LEAT_ASSERT(streams->env.budget->by[LEAT_BUDGET_OBJECTS] >=
                (leat_hmap_count(&streams->by_id) + streams->zombies) * sizeof(leat_stream));
}

/* Of a stream that is out of the table all is consumed. */
void leat_streams_check_credit(leat_streams *streams)
{
    uint64_t unread = 0;

    for (leat_stream *s = leat_streams_first(streams); s; s = leat_streams_after(streams, s)) {
        unread += s->recv.flow.received - s->recv.flow.consumed;
    }
    LEAT_ASSERT(unread == streams->flow_in.received - streams->flow_in.consumed);
}
