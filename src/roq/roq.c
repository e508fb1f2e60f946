/* roq/roq.c: a session: the events of its connection, and its end.
 *
 * The user pointer of a stream is its leat_roq_out or leat_roq_in: whose the stream is says which.
 *
 * SPDX-License-Identifier: MIT
 */
#include "roq/roq.h"

void leat_roq_settings_init(leat_roq_settings *settings)
{
    *settings = (leat_roq_settings){
        .max_flows = LEAT_ROQ_FLOWS_DEFAULT,
        .max_packet = LEAT_ROQ_PACKET_DEFAULT,
        .max_unread = LEAT_ROQ_UNREAD_DEFAULT,
        .max_unknown = LEAT_ROQ_UNKNOWN_DEFAULT,
    };
}

void leat_roq_close(leat_roq *roq, uint64_t code, const char *reason)
{
    if (!roq->closing) {
        roq->closing = true;
        leat_conn_close(roq->conn, code, (leat_span){(const uint8_t *)reason, strlen(reason)});
    }
}

/* ---- the connection's events ---- */

static void check_datagrams(leat_roq *roq)
{
    if (roq->settings.require_datagrams && leat_conn_datagram_max(roq->conn) == 0) {
        leat_roq_close(roq, LEAT_ROQ_EXPECTATION_UNMET, "the peer takes no datagrams");
    }
}

static void on_connected(leat_conn *conn, void *user)
{
    leat_roq *roq = user;

    (void)conn;
    check_datagrams(roq);
    if (!roq->closing && roq->events->connected) {
        roq->events->connected(roq, roq->user);
    }
    leat_roq_pump(roq);
}

static void on_stream_opened(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_roq *roq = user;

    (void)conn;
    if (!roq->closing) {
        leat_roq_in_opened(roq, stream);
    }
}

static void on_stream_readable(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_roq *roq = user;
    leat_roq_in *in = leat_stream_user(stream);

    (void)conn;
    if (!roq->closing && in && !leat_stream_is_local(stream)) {
        leat_roq_in_read(in);
    }
}

static void on_stream_writable(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_roq *roq = user;

    (void)conn;
    (void)stream;
    leat_roq_pump(roq); /* others may have waited for the same memory */
}

static void on_stream_reset(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    leat_roq_in *in = leat_stream_user(stream);

    (void)conn;
    (void)user;
    if (in && !leat_stream_is_local(stream)) {
        leat_roq_in_reset(in, code);
    }
}

static void on_stream_stopped(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    leat_roq_out *out = leat_stream_user(stream);

    (void)conn;
    (void)code;
    (void)user;
    if (out && leat_stream_is_local(stream)) {
        leat_roq_out_stopped(out);
    }
}

static void on_stream_closed(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_roq *roq = user;
    void *end = leat_stream_user(stream);

    (void)conn;
    if (end && leat_stream_is_local(stream)) {
        leat_roq_out_closed(roq, end);
    } else if (end) {
        leat_roq_in_closed(end);
    }
}

static void on_streams_available(leat_conn *conn, bool bidi, void *user)
{
    (void)conn;
    if (!bidi) {
        leat_roq_pump(user);
    }
}

static void on_datagram(leat_conn *conn, leat_span data, void *user)
{
    (void)conn;
    leat_roq_in_datagram(user, data);
}

static void on_datagram_done(leat_conn *conn, uint64_t tag, leat_datagram_outcome outcome,
                             void *user)
{
    static const leat_roq_outcome outcomes[] = {
        [LEAT_DATAGRAM_ACKED] = LEAT_ROQ_OUTCOME_ACKED,
        [LEAT_DATAGRAM_LOST] = LEAT_ROQ_OUTCOME_LOST,
        [LEAT_DATAGRAM_EXPIRED] = LEAT_ROQ_OUTCOME_LATE,
        [LEAT_DATAGRAM_DROPPED] = LEAT_ROQ_OUTCOME_DROPPED,
    };
    leat_roq *roq = user;
    leat_roq_packet *p = (void *)(uintptr_t)tag; /* ours: send.c gave it */

    (void)conn;
    leat_roq_list_remove(p->flow ? &p->flow->flight : &roq->lost, p);
    if (outcome == LEAT_DATAGRAM_EXPIRED || outcome == LEAT_DATAGRAM_DROPPED) {
        leat_roq_gate_unsent_datagram(roq);
        if (p->flow && !p->rtcp) { /* the rest of its frame is of no use */
            leat_roq_cancel_frame(p->flow, p->ssrc, p->timestamp, outcomes[outcome]);
        }
    }
    leat_roq_packet_done(roq, p, outcomes[outcome]);
}

static void on_datagram_writable(leat_conn *conn, void *user)
{
    (void)conn;
    leat_roq_pump(user);
}

/* Whether packets may have been acknowledged: news that there was no memory for may tell so. */
static bool may_be_acked(const leat_packet_news *news, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (news[i].fate == LEAT_PACKET_ACKED) {
            return true;
        }
    }
    return count == 0;
}

/* Of what is on streams the acknowledgements are the only word: without a look when they come,
 * those who asked for results would hear of the last packets with the next one, or never. */
static void look_for_results(leat_roq *roq, const leat_packet_news *news, size_t count)
{
    if (!may_be_acked(news, count)) {
        return;
    }
    for (leat_roq_flow *flow = roq->flows; flow && !roq->closing; flow = flow->next) {
        for (leat_roq_out *out = flow->outs; out && flow->settings.results; out = out->next) {
            leat_roq_out_look(out);
        }
    }
}

static void on_packet_news(leat_conn *conn, const leat_packet_news *news, size_t count, void *user)
{
    leat_roq *roq = user;

    (void)conn;
    if (roq->rate.estimate && !roq->closing) {
        leat_roq_rate_news(roq, news, count);
    }
    look_for_results(roq, news, count);
    if (roq->events->packet_news) {
        roq->events->packet_news(roq, news, count, roq->user);
    }
}

static void on_token(leat_conn *conn, leat_span token, void *user)
{
    leat_roq *roq = user;

    (void)conn;
    if (roq->events->token) {
        roq->events->token(roq, token, roq->user);
    }
}

static void on_ticket(leat_conn *conn, leat_span session, void *user)
{
    leat_roq *roq = user;

    (void)conn;
    if (roq->events->ticket) {
        roq->events->ticket(roq, session, roq->user);
    }
}

static void drop_list(leat_roq *roq, leat_roq_list *list)
{
    leat_roq_packet *p;

    while ((p = list->first) != NULL) {
        leat_roq_list_remove(list, p);
        leat_roq_packet_free(roq, p);
    }
}

/* What a session is made of; some of it may not be there. */
static void release(leat_roq *roq)
{
    leat_pool_delete(roq->packet_pool);
    leat_pool_delete(roq->out_pool);
    leat_pool_delete(roq->in_pool);
    leat_mem_release(roq->mem, roq->buckets);
    leat_mem_release(roq->mem, roq);
}

/* Every stream has had its `stream_closed` by now. */
static void free_session(leat_roq *roq)
{
    leat_roq_in_drop_strays(roq);
    while (roq->flows) {
        leat_roq_flow_free(roq->flows);
    }
    while (roq->orphans) {
        leat_roq_out_free(roq, roq->orphans);
    }
    drop_list(roq, &roq->lost);
    drop_list(roq, &roq->done);
    leat_task_cancel(&roq->task);
    leat_timer_unset(&roq->rate.timer);
    leat_timer_unset(&roq->gate.timer);
    release(roq);
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    leat_roq *roq = user;

    (void)conn;
    roq->closing = true;
    if (roq->events->closed) {
        roq->events->closed(roq, info, roq->user);
    }
    free_session(roq);
}

#define CONN_EVENTS                                                                                \
    .connected = on_connected, .stream_opened = on_stream_opened,                                  \
    .stream_readable = on_stream_readable, .stream_writable = on_stream_writable,                  \
    .stream_reset = on_stream_reset, .stream_stopped = on_stream_stopped,                          \
    .stream_closed = on_stream_closed, .streams_available = on_streams_available,                  \
    .datagram = on_datagram, .datagram_done = on_datagram_done,                                    \
    .datagram_writable = on_datagram_writable, .token = on_token, .ticket = on_ticket,             \
    .closed = on_closed

static const leat_conn_events conn_events = {CONN_EVENTS};
static const leat_conn_events conn_events_and_news = {CONN_EVENTS, .packet_news = on_packet_news};
#undef CONN_EVENTS

void leat_roq_listen(leat_roq *roq)
{
    bool news = roq->rate.estimate || roq->events->packet_news || roq->results;

    leat_conn_set_events(roq->conn, news ? &conn_events_and_news : &conn_events, roq);
}

/* ---- the session's own task ---- */

static void tell_writable(leat_roq *roq)
{
    leat_roq_flow *next;

    for (leat_roq_flow *flow = roq->flows; flow && !roq->closing; flow = next) {
        next = flow->next;
        if (flow->want_writable && leat_roq_has_room(flow)) {
            flow->want_writable = false;
            if (roq->events->writable) {
                roq->events->writable(flow, roq->user);
                next = flow->next;
            }
        }
    }
}

static void run(leat_task *task)
{
    leat_roq *roq = LEAT_ROQ_OF(task, leat_roq, task);

    if (roq->opened && !roq->closing) {
        roq->opened = false;
        leat_roq_in_opened_flows(roq);
    }
    leat_roq_tell_results(roq);
    tell_writable(roq);
}

/* ---- the public face ---- */

static bool is_valid(const leat_roq_settings *s)
{
    return s->max_flows >= LEAT_ROQ_FLOWS_MIN && s->max_flows <= LEAT_ROQ_FLOWS_MAX &&
           s->max_packet >= LEAT_ROQ_PACKET_MIN && s->max_packet <= LEAT_ROQ_PACKET_MAX &&
           s->max_unread >= LEAT_ROQ_UNREAD_MIN && s->max_unread <= LEAT_ROQ_UNREAD_MAX &&
           s->max_unknown <= LEAT_ROQ_UNKNOWN_MAX;
}

static size_t buckets_for(size_t flows)
{
    size_t count = 16;

    while (count < flows && count < 4096) {
        count *= 2;
    }
    return count;
}

/* False: no memory. */
static bool take_memory(leat_roq *roq)
{
    roq->bucket_count = buckets_for(roq->settings.max_flows);
    roq->buckets = leat_mem_calloc(roq->mem, roq->bucket_count, sizeof(void *));
    return roq->buckets &&
           leat_pool_new(roq->mem, sizeof(leat_roq_packet), "RoQ packets", &roq->packet_pool) ==
               LEAT_OK &&
           leat_pool_new(roq->mem, sizeof(leat_roq_out), "RoQ streams out", &roq->out_pool) ==
               LEAT_OK &&
           leat_pool_new(roq->mem, sizeof(leat_roq_in), "RoQ streams in", &roq->in_pool) == LEAT_OK;
}

leat_err leat_roq_attach(leat_conn *conn, const leat_roq_settings *settings,
                         const leat_roq_events *events, void *user, leat_roq **out)
{
    leat_ctx *ctx = leat_endpoint_ctx(leat_conn_endpoint(conn));
    leat_mem *mem = leat_ctx_mem(ctx);
    leat_roq_settings defaults;
    leat_roq *roq;

    *out = NULL;
    leat_roq_settings_init(&defaults);
    settings = settings ? settings : &defaults;
    if (!is_valid(settings)) {
        return LEAT_ERR_INVALID;
    }
    roq = leat_mem_calloc(mem, 1, sizeof *roq);
    if (!roq) {
        return LEAT_ERR_NOMEM;
    }
    roq->mem = mem;
    roq->settings = *settings;
    if (!take_memory(roq)) {
        release(roq);
        return LEAT_ERR_NOMEM;
    }
    roq->conn = conn;
    roq->ctx = ctx;
    roq->events = events;
    roq->user = user;
    leat_task_init(&roq->task, ctx, run);
    leat_timer_init(&roq->rate.timer, ctx, leat_roq_rate_timer);
    leat_timer_init(&roq->gate.timer, ctx, leat_roq_gate_timer);
    leat_roq_listen(roq);
    *out = roq;
    if (leat_conn_is_connected(conn)) {
        check_datagrams(roq);
    }
    return LEAT_OK;
}

leat_conn *leat_roq_conn(leat_roq *roq)
{
    return roq->conn;
}

void leat_roq_set_user(leat_roq *roq, void *user)
{
    roq->user = user;
}

void *leat_roq_user(const leat_roq *roq)
{
    return roq->user;
}
