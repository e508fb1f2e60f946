/* conn/ackfreq.c: see conn/ackfreq.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/ackfreq.h"

#include "base/time.h"

#define USUAL_PACKETS 2 /* RFC 9000 s13.2.2 */

void leat_ackfreq_set_peer(leat_ackfreq *af, leat_time min_ack_delay)
{
    af->peer_takes = af->own_min > 0;
    af->peer_min = min_ack_delay;
}

static uint32_t cut(uint64_t n)
{
    return n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

uint64_t leat_ackfreq_received(leat_ackfreq *af, const leat_frame_ack_frequency *frame,
                               leat_acks *acks)
{
    leat_time delay = leat_time_mul(frame->max_delay, LEAT_MICROSECOND);

    if (af->own_min == 0 || delay < af->own_min || delay >= LEAT_ACKFREQ_DELAY_MAX) {
        return LEAT_TE_PROTOCOL_VIOLATION;
    }
    if (frame->sequence < af->next_received) {
        return LEAT_TE_NO_ERROR; /* overtaken */
    }
    af->next_received = frame->sequence + 1;
    acks->eliciting_threshold = cut(frame->threshold + 1);
    acks->reorder_threshold = cut(frame->reorder);
    acks->max_delay = delay;
    return LEAT_TE_NO_ERROR;
}

static bool doubled_or_halved(uint64_t now, uint64_t before)
{
    return now >= 2 * before || before >= 2 * now;
}

void leat_ackfreq_update(leat_ackfreq *af, const leat_ackfreq_path *path)
{
    uint64_t packets = path->cwnd / path->mds / LEAT_ACKFREQ_SHARE;
    leat_time delay = leat_time_min(path->srtt / 4, path->peer_max);

    if (!af->peer_takes || af->pending) {
        return;
    }
    packets = packets > LEAT_ACKFREQ_MOST ? LEAT_ACKFREQ_MOST : packets;
    packets = packets < USUAL_PACKETS ? USUAL_PACKETS : packets;
    delay = leat_time_max(leat_time_max(delay, af->peer_min), LEAT_MICROSECOND);
    if (af->packets == 0 && packets == USUAL_PACKETS) {
        return; /* as it does by itself */
    }
    if (af->packets > 0 && !doubled_or_halved(packets, af->packets) &&
        !doubled_or_halved(delay, af->delay)) {
        return;
    }
    af->packets = (uint32_t)packets;
    af->delay = delay;
    af->reorder = path->reorder;
    af->pending = true;
}

leat_frame_ack_frequency leat_ackfreq_frame(const leat_ackfreq *af)
{
    return (leat_frame_ack_frequency){
        .sequence = af->next_sent,
        .threshold = af->packets - 1,
        .max_delay = (af->delay + LEAT_MICROSECOND - 1) / LEAT_MICROSECOND,
        .reorder = af->reorder,
    };
}

void leat_ackfreq_sent(leat_ackfreq *af)
{
    af->next_sent++;
    af->pending = false;
}
