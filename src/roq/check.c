/* roq/check.c: the walker of a session, for tests and the fuzzer.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>

#include "roq/roq.h"

static void must(bool good)
{
    if (!good) {
        abort();
    }
}

void leat_roq_list_check(const leat_roq_list *list)
{
    const leat_roq_packet *before = NULL;

    for (const leat_roq_packet *p = list->first; p; p = p->next) {
        must(p->prev == before);
        before = p;
    }
    must(list->last == before);
}

static void check_out(const leat_roq_out *out)
{
    uint64_t at = 0;

    leat_roq_list_check(&out->packets);
    must(!out->over || !out->packets.first);
    for (const leat_roq_packet *p = out->packets.first; p; p = p->next) {
        must(p->flow == out->flow);
        must(p->from >= at && p->to > p->from && p->to <= out->written);
        at = p->to;
    }
}

static void check_flow(const leat_roq_flow *flow)
{
    uint64_t packets = 0, bytes = 0;

    leat_roq_list_check(&flow->queue);
    leat_roq_list_check(&flow->flight);
    for (const leat_roq_packet *p = flow->queue.first; p; p = p->next) {
        must(p->flow == flow && p->buf.data);
        packets++;
        bytes += p->len;
    }
    must(packets == flow->stats.queue_packets && bytes == flow->stats.queue_bytes);
    for (const leat_roq_packet *p = flow->flight.first; p; p = p->next) {
        must(p->flow == flow);
    }
    for (const leat_roq_out *out = flow->outs; out; out = out->next) {
        must(out->flow == flow);
        must(!out->next || out->next->prev == out);
        check_out(out);
    }
    must(!flow->current || !flow->current->over);
    must(flow->waiting == (flow->queue.first != NULL));
}

static void check_gate(const leat_roq *roq)
{
    uint64_t unsent = 0, by_flow = 0;

    for (const leat_roq_out *out = roq->gate.busy; out; out = out->busy_next) {
        must(!out->busy_next || out->busy_next->busy_prev == out);
        must(out->busy && out->flow && out->left < out->written);
        unsent += out->written - out->left;
    }
    for (const leat_roq_flow *flow = roq->flows; flow; flow = flow->next) {
        by_flow += flow->unsent;
    }
    must(unsent == roq->gate.unsent && by_flow == unsent);
}

void leat_roq_check(const leat_roq *roq)
{
    size_t flows = 0, unread = 0, waiting = 0, strays = 0;

    for (const leat_roq_flow *flow = roq->flows; flow; flow = flow->next) {
        check_flow(flow);
        flows++;
    }
    check_gate(roq);
    must(flows == roq->flow_count && flows <= roq->settings.max_flows);
    for (const leat_roq_in *in = roq->ins; in; in = in->next) {
        must(!in->next || in->next->prev == in);
        must(!in->packet.data || in->packet.len == in->need);
        must(in->have <= in->need || !in->packet.data);
        unread += in->packet.data ? in->packet.len : 0;
        waiting += in->state == LEAT_ROQ_IN_WAIT;
    }
    must(unread == roq->unread && unread <= roq->settings.max_unread);
    must(waiting == roq->waiting && waiting <= roq->settings.max_unknown);
    for (const leat_roq_stray *stray = roq->strays; stray; stray = stray->next) {
        must(stray->next || stray == roq->strays_last);
        strays++;
    }
    must(strays == roq->stray_count && strays <= roq->settings.max_unknown);
    leat_roq_list_check(&roq->lost);
    leat_roq_list_check(&roq->done);
}
