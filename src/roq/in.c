/* roq/in.c: what is received.
 *
 * A stream is read one packet at a time: looked at, told, then consumed, so that a callback may
 * close whatever it likes and nothing is touched after it. A packet that lies whole in what QUIC
 * shows is told where it lies; one that comes in pieces is gathered in a buffer of its length,
 * which is charged to the session's `unread` at once: a peer that announces much and sends little
 * is refused early.
 *
 * A stream of a flow that is not open is not read beyond its identifier: its bytes wait within
 * QUIC's flow control. Datagrams of such flows are copied, a few of them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "roq/roq.h"

static void in_timer(leat_timer *timer, leat_time now);

/* ---- one packet ---- */

/* False: it is neither RTP nor RTCP. */
static bool tell(leat_roq_flow *flow, leat_span packet, bool stream)
{
    leat_roq_arrival how = {.stream = stream};

    if (!leat_roq_is_rtp(packet, &how.rtcp)) {
        flow->stats.recv_malformed++;
        return false;
    }
    flow->stats.packets_received++;
    flow->stats.bytes_received += packet.len;
    flow->stats.rtcp_received += how.rtcp;
    flow->stats.stream_packets_received += stream;
    if (flow->roq->events->packet) {
        flow->roq->events->packet(flow, packet, &how, flow->roq->user);
    }
    return true;
}

/* ---- streams ---- */

static void drop_packet(leat_roq_in *in)
{
    if (in->packet.data) {
        in->roq->unread -= in->packet.len;
        leat_buf_release(&in->packet);
    }
    in->have = 0;
    leat_timer_unset(&in->timer);
}

static void over(leat_roq_in *in)
{
    drop_packet(in);
    in->roq->waiting -= in->state == LEAT_ROQ_IN_WAIT;
    in->state = LEAT_ROQ_IN_OVER;
}

void leat_roq_in_stop(leat_roq_in *in, uint64_t code)
{
    if (in->state != LEAT_ROQ_IN_OVER) {
        over(in);
        leat_stream_stop(in->stream, code);
    }
}

static void in_timer(leat_timer *timer, leat_time now)
{
    leat_roq_in *in = LEAT_ROQ_OF(timer, leat_roq_in, timer);

    (void)now;
    in->flow->stats.recv_late++;
    leat_roq_in_stop(in, LEAT_ROQ_FRAME_CANCELLED);
}

static void malformed(leat_roq *roq, const char *why)
{
    leat_roq_close(roq, LEAT_ROQ_PACKET_ERROR, why);
}

void leat_roq_in_opened(leat_roq *roq, leat_stream *stream)
{
    leat_roq_in *in = leat_pool_take_zeroed(roq->in_pool);

    if (!in) {
        leat_stream_stop(stream, LEAT_ROQ_INTERNAL_ERROR);
        return;
    }
    in->roq = roq;
    in->stream = stream;
    leat_timer_init(&in->timer, roq->ctx, in_timer);
    leat_stream_set_user(stream, in);
    in->next = roq->ins;
    if (in->next) {
        in->next->prev = in;
    }
    roq->ins = in;
    leat_roq_in_read(in);
}

/* Gathers a varint: true when it is whole; *used is what of data went into it. */
static bool gather_varint(leat_roq_in *in, leat_span data, uint64_t *out, size_t *used)
{
    *used = 0;
    while (*used < data.len) { /* whole after LEAT_ROQ_VARINT bytes at most */
        in->head[in->head_len++] = data.data[(*used)++];
        if (leat_roq_varint_read((leat_span){in->head, in->head_len}, out) > 0) {
            in->head_len = 0;
            return true;
        }
    }
    return false;
}

/* The peer may open streams of its own in one direction alone (s5.2). */
static bool refuse_bidi(leat_roq_in *in)
{
    if (!leat_stream_is_bidi(in->stream)) {
        return false;
    }
    if (leat_roq_flow_find(in->roq, in->id)) {
        leat_roq_close(in->roq, LEAT_ROQ_STREAM_CREATION_ERROR, "a flow on a bidirectional stream");
    } else {
        leat_roq_in_stop(in, LEAT_ROQ_UNKNOWN_FLOW_ID);
        leat_stream_reset(in->stream, LEAT_ROQ_UNKNOWN_FLOW_ID);
    }
    return true;
}

/* The identifier is known: is the flow? */
static void begin_flow(leat_roq_in *in)
{
    leat_roq *roq = in->roq;

    if (refuse_bidi(in)) {
        return;
    }
    in->flow = leat_roq_flow_find(roq, in->id);
    if (!in->flow && roq->events->unknown_flow) {
        roq->events->unknown_flow(roq, in->id, roq->user);
        in->flow = leat_roq_flow_find(roq, in->id);
    }
    if (in->flow) {
        in->state = LEAT_ROQ_IN_LENGTH;
    } else if (roq->waiting < roq->settings.max_unknown) {
        in->state = LEAT_ROQ_IN_WAIT;
        roq->waiting++;
    } else {
        leat_roq_in_stop(in, LEAT_ROQ_UNKNOWN_FLOW_ID);
    }
}

static void read_id(leat_roq_in *in, leat_span data)
{
    size_t used;
    bool whole = gather_varint(in, data, &in->id, &used);

    leat_stream_consume(in->stream, used);
    if (whole) {
        begin_flow(in);
    }
}

static void read_length(leat_roq_in *in, leat_span data)
{
    leat_time lifetime = in->flow->settings.recv_lifetime;
    uint64_t need;
    size_t used;

    if (in->head_len == 0 && lifetime) {
        leat_timer_set(&in->timer, leat_roq_now(in->roq) + lifetime);
    }
    if (!gather_varint(in, data, &need, &used)) {
        leat_stream_consume(in->stream, used);
        return;
    }
    leat_stream_consume(in->stream, used);
    if (need > in->roq->settings.max_packet) {
        leat_roq_in_stop(in, LEAT_ROQ_GENERAL_ERROR);
        return;
    }
    in->need = (size_t)need;
    in->state = LEAT_ROQ_IN_PACKET;
}

/* A packet is whole, n bytes of it lie in QUIC's buffer still. */
static void end_packet(leat_roq_in *in, leat_span packet, size_t n)
{
    bool good = tell(in->flow, packet, true);

    if (in->state == LEAT_ROQ_IN_OVER) {
        return; /* the callback gave it up */
    }
    drop_packet(in);
    in->state = LEAT_ROQ_IN_LENGTH;
    leat_stream_consume(in->stream, n);
    if (!good) {
        leat_roq_in_stop(in, LEAT_ROQ_PACKET_ERROR);
    }
}

static bool begin_gathering(leat_roq_in *in)
{
    leat_roq *roq = in->roq;

    if (roq->unread + in->need > roq->settings.max_unread ||
        leat_buf_take(roq->mem, in->need, &in->packet) != LEAT_OK) {
        leat_roq_in_stop(in, LEAT_ROQ_FRAME_CANCELLED);
        return false;
    }
    roq->unread += in->need;
    in->have = 0;
    return true;
}

static void read_packet(leat_roq_in *in, leat_span data)
{
    size_t n;

    if (!in->packet.data && data.len >= in->need) {
        end_packet(in, (leat_span){data.data, in->need}, in->need);
        return;
    }
    if (!in->packet.data && !begin_gathering(in)) {
        return;
    }
    n = in->need - in->have < data.len ? in->need - in->have : data.len;
    memcpy(in->packet.data + in->have, data.data, n);
    in->have += n;
    leat_stream_consume(in->stream, n);
    if (in->have == in->need) {
        /* The buffer is the event's alone while it runs, so that a callback may give the stream up.
         */
        leat_buf packet = in->packet;

        in->roq->unread -= packet.len;
        in->packet = (leat_buf){.data = NULL};
        end_packet(in, (leat_span){packet.data, packet.len}, 0);
        leat_buf_release(&packet);
    }
}

/* In the middle of a packet, or of what stands before it. */
static bool is_partial(const leat_roq_in *in)
{
    return in->head_len > 0 || in->state == LEAT_ROQ_IN_PACKET;
}

/* All has been read, and FIN was there. */
static void ended(leat_roq_in *in)
{
    if (in->state == LEAT_ROQ_IN_ID) {
        malformed(in->roq, "a stream without a flow identifier");
    } else if (is_partial(in)) {
        malformed(in->roq, "a stream that ends within a packet");
    } else {
        over(in);
    }
}

void leat_roq_in_read(leat_roq_in *in)
{
    while (!in->roq->closing && in->state != LEAT_ROQ_IN_OVER && in->state != LEAT_ROQ_IN_WAIT) {
        leat_span data = leat_stream_peek(in->stream);

        if (in->state == LEAT_ROQ_IN_PACKET && in->need == 0) {
            end_packet(in, (leat_span){NULL, 0}, 0); /* refused: it is no packet */
            continue;
        }
        if (data.len == 0) {
            break;
        }
        switch (in->state) {
        case LEAT_ROQ_IN_ID:
            read_id(in, data);
            break;
        case LEAT_ROQ_IN_LENGTH:
            read_length(in, data);
            break;
        default:
            read_packet(in, data);
            break;
        }
    }
    if (!in->roq->closing && in->state != LEAT_ROQ_IN_OVER && in->state != LEAT_ROQ_IN_WAIT &&
        leat_stream_recv_whole(in->stream)) {
        ended(in);
    }
}

void leat_roq_in_reset(leat_roq_in *in, uint64_t code)
{
    leat_roq_flow *flow = in->flow;
    leat_roq *roq = in->roq;
    bool tells = flow && in->state != LEAT_ROQ_IN_OVER && is_partial(in);

    over(in);
    if (tells) {
        flow->stats.recv_cancelled++;
        if (roq->events->cancelled) {
            roq->events->cancelled(flow, code, roq->user);
        }
    }
}

void leat_roq_in_closed(leat_roq_in *in)
{
    leat_roq *roq = in->roq;

    over(in);
    leat_stream_set_user(in->stream, NULL);
    *(in->prev ? &in->prev->next : &roq->ins) = in->next;
    if (in->next) {
        in->next->prev = in->prev;
    }
    leat_pool_give(roq->in_pool, in);
}

/* ---- datagrams ---- */

static void drop_stray(leat_roq *roq)
{
    leat_roq_stray *stray = roq->strays;

    roq->strays = stray->next;
    roq->strays_last = roq->strays ? roq->strays_last : NULL;
    roq->stray_count--;
    leat_buf_release(&stray->data);
    leat_mem_release(roq->mem, stray);
}

static void keep_stray(leat_roq *roq, uint64_t id, leat_span packet)
{
    leat_roq_stray *stray;

    if (roq->settings.max_unknown == 0) {
        return;
    }
    if (roq->stray_count >= roq->settings.max_unknown) {
        drop_stray(roq);
    }
    stray = leat_mem_calloc(roq->mem, 1, sizeof *stray);
    if (!stray) {
        return;
    }
    if (leat_buf_take(roq->mem, packet.len, &stray->data) != LEAT_OK) {
        leat_mem_release(roq->mem, stray);
        return;
    }
    if (packet.len > 0) {
        memcpy(stray->data.data, packet.data, packet.len);
    }
    stray->id = id;
    *(roq->strays_last ? &roq->strays_last->next : &roq->strays) = stray;
    roq->strays_last = stray;
    roq->stray_count++;
}

void leat_roq_in_datagram(leat_roq *roq, leat_span data)
{
    uint64_t id;
    size_t head = leat_roq_varint_read(data, &id);
    leat_roq_flow *flow;
    leat_span packet;

    if (roq->closing) {
        return;
    }
    if (head == 0) {
        malformed(roq, "a datagram without a flow identifier");
        return;
    }
    packet = (leat_span){data.data + head, data.len - head};
    flow = leat_roq_flow_find(roq, id);
    if (!flow && roq->events->unknown_flow) {
        roq->events->unknown_flow(roq, id, roq->user);
        flow = roq->closing ? NULL : leat_roq_flow_find(roq, id);
    }
    if (flow) {
        tell(flow, packet, false);
    } else if (!roq->closing) {
        keep_stray(roq, id, packet);
    }
}

/* ---- flows that open and close ---- */

static void tell_strays(leat_roq *roq)
{
    leat_roq_stray **at = &roq->strays;

    roq->strays_last = NULL;
    while (*at) {
        leat_roq_stray *stray = *at;
        leat_roq_flow *flow = roq->closing ? NULL : leat_roq_flow_find(roq, stray->id);

        if (!flow) {
            roq->strays_last = stray;
            at = &stray->next;
            continue;
        }
        *at = stray->next;
        roq->stray_count--;
        tell(flow, (leat_span){stray->data.data, stray->data.len}, false);
        leat_buf_release(&stray->data);
        leat_mem_release(roq->mem, stray);
    }
}

void leat_roq_in_opened_flows(leat_roq *roq)
{
    leat_roq_in *next;

    for (leat_roq_in *in = roq->ins; in && !roq->closing; in = next) {
        next = in->next;
        if (in->state == LEAT_ROQ_IN_WAIT) {
            in->flow = leat_roq_flow_find(roq, in->id);
            if (in->flow) {
                roq->waiting--;
                in->state = LEAT_ROQ_IN_LENGTH;
                leat_roq_in_read(in);
            }
        }
    }
    tell_strays(roq);
}

void leat_roq_in_flow_closed(leat_roq_flow *flow)
{
    for (leat_roq_in *in = flow->roq->ins; in; in = in->next) {
        if (in->flow == flow) {
            leat_roq_in_stop(in, LEAT_ROQ_UNKNOWN_FLOW_ID);
            in->flow = NULL;
        }
    }
}

void leat_roq_in_drop_strays(leat_roq *roq)
{
    while (roq->strays) {
        drop_stray(roq);
    }
}
