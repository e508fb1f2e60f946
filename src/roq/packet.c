/* roq/packet.c: a packet's record: made by leat_roq_send(), freed when its result has been told.
 *
 * SPDX-License-Identifier: MIT
 */
#include "roq/roq.h"

enum { RTCP_HEADER = 4 };

/* ---- lists ---- */

void leat_roq_list_push(leat_roq_list *list, leat_roq_packet *p)
{
    p->prev = list->last;
    p->next = NULL;
    *(list->last ? &list->last->next : &list->first) = p;
    list->last = p;
}

void leat_roq_list_push_front(leat_roq_list *list, leat_roq_packet *p)
{
    p->prev = NULL;
    p->next = list->first;
    *(list->first ? &list->first->prev : &list->last) = p;
    list->first = p;
}

void leat_roq_list_remove(leat_roq_list *list, leat_roq_packet *p)
{
    *(p->prev ? &p->prev->next : &list->first) = p->next;
    *(p->next ? &p->next->prev : &list->last) = p->prev;
    p->prev = p->next = NULL;
}

/* ---- one packet ---- */

bool leat_roq_is_rtp(leat_span packet, bool *rtcp)
{
    leat_rtp_packet rtp;

    *rtcp = leat_rtp_is_rtcp(packet);
    return *rtcp ? packet.len >= RTCP_HEADER : leat_rtp_parse_header(packet, &rtp) == LEAT_OK;
}

bool leat_roq_same_frame(const leat_roq_packet *p, const leat_roq_packet *q)
{
    return !p->rtcp && !q->rtcp && p->ssrc == q->ssrc && p->timestamp == q->timestamp;
}

/* Its flow's header fields; the caller has checked that it is RTP or RTCP. */
static void note_header(leat_roq_packet *p, leat_span packet)
{
    leat_rtp_packet rtp;

    p->rtcp = leat_rtp_is_rtcp(packet);
    if (!p->rtcp && leat_rtp_parse_header(packet, &rtp) == LEAT_OK) {
        p->ssrc = rtp.ssrc;
        p->timestamp = rtp.timestamp;
        p->seq = rtp.seq;
        p->marker = rtp.marker;
    }
}

leat_roq_packet *leat_roq_packet_new(leat_roq_flow *flow, leat_span packet,
                                     const leat_roq_send_options *options)
{
    leat_time now = leat_roq_now(flow->roq);
    leat_time lifetime = options->lifetime ? options->lifetime : flow->settings.lifetime;
    leat_roq_packet *p = leat_pool_take(flow->roq->packet_pool);

    if (!p) {
        return NULL;
    }
    *p = (leat_roq_packet){
        .flow = flow,
        .tag = options->tag,
        .queued = now,
        .deadline = lifetime && lifetime < LEAT_TIME_NEVER - now ? now + lifetime : LEAT_TIME_NEVER,
        .len = (uint32_t)packet.len,
        .mode = (uint8_t)(options->use_mode ? options->mode : flow->settings.mode),
    };
    if (leat_buf_take(flow->roq->mem, LEAT_ROQ_HEAD + packet.len, &p->buf) != LEAT_OK) {
        leat_pool_give(flow->roq->packet_pool, p);
        return NULL;
    }
    memcpy(p->buf.data + LEAT_ROQ_HEAD, packet.data, packet.len);
    note_header(p, packet);
    return p;
}

leat_buf leat_roq_packet_frame(leat_roq_packet *p, bool id, bool length)
{
    size_t head =
        (id ? leat_roq_varint_len(p->flow->id) : 0) + (length ? leat_roq_varint_len(p->len) : 0);
    uint8_t *at = p->buf.data + LEAT_ROQ_HEAD - head;

    if (id) {
        at += leat_roq_varint_write(at, p->flow->id);
    }
    if (length) {
        leat_roq_varint_write(at, p->len);
    }
    return leat_buf_slice(&p->buf, LEAT_ROQ_HEAD - head, head + p->len);
}

void leat_roq_packet_free(leat_roq *roq, leat_roq_packet *p)
{
    leat_buf_release(&p->buf);
    leat_pool_give(roq->packet_pool, p);
}

/* Sources may change; numbers count on within one. */
static void note_acked(leat_roq_flow *flow, const leat_roq_packet *p)
{
    uint64_t seq;

    flow->stats.packets_acked++;
    if (p->rtcp) {
        return;
    }
    if (flow->highest == 0 || flow->highest_ssrc != p->ssrc) {
        flow->highest_ssrc = p->ssrc;
        flow->highest = UINT64_C(65536) + p->seq;
        return;
    }
    seq = leat_seq_unwrap(flow->highest, p->seq);
    flow->highest = seq > flow->highest ? seq : flow->highest;
}

static void count(leat_roq_flow *flow, const leat_roq_packet *p, leat_roq_outcome outcome)
{
    switch (outcome) {
    case LEAT_ROQ_OUTCOME_ACKED:
        note_acked(flow, p);
        break;
    case LEAT_ROQ_OUTCOME_LOST:
        flow->stats.packets_lost++;
        break;
    case LEAT_ROQ_OUTCOME_LATE:
        flow->stats.packets_late++;
        break;
    case LEAT_ROQ_OUTCOME_OVERFLOW:
        flow->stats.packets_overflow++;
        break;
    case LEAT_ROQ_OUTCOME_STOPPED:
        flow->stats.packets_stopped++;
        break;
    default:
        flow->stats.packets_dropped++;
        break;
    }
}

void leat_roq_packet_done(leat_roq *roq, leat_roq_packet *p, leat_roq_outcome outcome)
{
    if (!p->flow) {
        leat_roq_packet_free(roq, p);
        return;
    }
    count(p->flow, p, outcome);
    if (!p->flow->settings.results || !roq->events->result || roq->closing) {
        leat_roq_packet_free(roq, p);
        return;
    }
    leat_buf_release(&p->buf);
    p->outcome = (uint8_t)outcome;
    leat_roq_list_push(&roq->done, p);
    leat_ctx_run_soon(roq->ctx, &roq->task);
}

void leat_roq_tell_results(leat_roq *roq)
{
    leat_roq_packet *p;

    while ((p = roq->done.first) != NULL && !roq->closing) {
        leat_roq_flow *flow = p->flow;
        leat_roq_result result = {
            .tag = p->tag,
            .queued = p->queued,
            .ssrc = p->ssrc,
            .seq = p->seq,
            .len = p->len,
            .rtcp = p->rtcp,
            .outcome = (leat_roq_outcome)p->outcome,
        };

        leat_roq_list_remove(&roq->done, p);
        leat_roq_packet_free(roq, p);
        roq->events->result(flow, &result, roq->user);
    }
}
