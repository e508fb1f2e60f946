/* roq/flow.c: the flows of a session.
 *
 * SPDX-License-Identifier: MIT
 */
#include "roq/roq.h"

static const char *const mode_names[LEAT_ROQ_MODES] = {
#define MODE_NAME(name, text, what) text,
    LEAT_ROQ_MODE_LIST(MODE_NAME)
#undef MODE_NAME
};

const char *leat_roq_mode_name(leat_roq_mode mode)
{
    return (unsigned)mode < LEAT_ROQ_MODES ? mode_names[mode] : "unknown";
}

bool leat_roq_mode_find(const char *name, leat_roq_mode *out)
{
    for (int i = 0; i < LEAT_ROQ_MODES; i++) {
        if (strcmp(mode_names[i], name) == 0) {
            *out = (leat_roq_mode)i;
            return true;
        }
    }
    return false;
}

void leat_roq_flow_settings_init(leat_roq_flow_settings *settings)
{
    *settings = (leat_roq_flow_settings){
        .mode = LEAT_ROQ_MODE_DATAGRAM,
        .lifetime = 200 * LEAT_MILLISECOND,
        .queue_bytes = LEAT_ROQ_QUEUE_BYTES_DEFAULT,
        .queue_packets = LEAT_ROQ_QUEUE_PACKETS_DEFAULT,
        .urgency = 3,
    };
}

/* ---- finding ---- */

static leat_roq_flow **bucket(leat_roq *roq, uint64_t id)
{
    return &roq->buckets[(id ^ id >> 16 ^ id >> 40) & (roq->bucket_count - 1)];
}

leat_roq_flow *leat_roq_flow_find(leat_roq *roq, uint64_t id)
{
    leat_roq_flow *flow = *bucket(roq, id);

    while (flow && flow->id != id) {
        flow = flow->hash_next;
    }
    return flow;
}

/* ---- opening ---- */

static bool is_valid(uint64_t id, const leat_roq_flow_settings *s)
{
    return id <= LEAT_ROQ_FLOW_MAX && (unsigned)s->mode < LEAT_ROQ_MODES && s->urgency <= 7 &&
           s->queue_bytes >= LEAT_ROQ_QUEUE_BYTES_MIN &&
           s->queue_bytes <= LEAT_ROQ_QUEUE_BYTES_MAX &&
           s->queue_packets >= LEAT_ROQ_QUEUE_PACKETS_MIN &&
           s->queue_packets <= LEAT_ROQ_QUEUE_PACKETS_MAX;
}

leat_err leat_roq_flow_open(leat_roq *roq, uint64_t id, const leat_roq_flow_settings *settings,
                            leat_roq_flow **out)
{
    leat_roq_flow_settings defaults;
    leat_roq_flow *flow;

    *out = NULL;
    leat_roq_flow_settings_init(&defaults);
    settings = settings ? settings : &defaults;
    if (!is_valid(id, settings)) {
        return LEAT_ERR_INVALID;
    }
    if (roq->closing) {
        return LEAT_ERR_CLOSED;
    }
    if (leat_roq_flow_find(roq, id)) {
        return LEAT_ERR_STATE;
    }
    if (roq->flow_count >= roq->settings.max_flows) {
        return LEAT_ERR_LIMIT;
    }
    flow = leat_mem_calloc(roq->mem, 1, sizeof *flow);
    if (!flow) {
        return LEAT_ERR_NOMEM;
    }
    flow->roq = roq;
    flow->id = id;
    flow->settings = *settings;
    leat_timer_init(&flow->timer, roq->ctx, leat_roq_queue_timer);
    flow->hash_next = *bucket(roq, id);
    *bucket(roq, id) = flow;
    flow->next = roq->flows;
    if (flow->next) {
        flow->next->prev = flow;
    }
    roq->flows = flow;
    roq->flow_count++;
    roq->opened = true;
    if (settings->results && !roq->results) {
        roq->results = true;
        leat_roq_listen(roq);
    }
    leat_ctx_run_soon(roq->ctx, &roq->task);
    *out = flow;
    return LEAT_OK;
}

/* ---- closing ---- */

static void unlink_flow(leat_roq_flow *flow)
{
    leat_roq *roq = flow->roq;
    leat_roq_flow **at = bucket(roq, flow->id);

    while (*at != flow) {
        at = &(*at)->hash_next;
    }
    *at = flow->hash_next;
    *(flow->prev ? &flow->prev->next : &roq->flows) = flow->next;
    if (flow->next) {
        flow->next->prev = flow->prev;
    }
    roq->flow_count--;
}

static void drop_results(leat_roq_flow *flow)
{
    leat_roq_packet *next;

    for (leat_roq_packet *p = flow->roq->done.first; p; p = next) {
        next = p->next;
        if (p->flow == flow) {
            leat_roq_list_remove(&flow->roq->done, p);
            leat_roq_packet_free(flow->roq, p);
        }
    }
}

void leat_roq_flow_free(leat_roq_flow *flow)
{
    leat_roq *roq = flow->roq;
    leat_roq_packet *p;

    leat_roq_queue_drop(flow);
    drop_results(flow);
    while (flow->outs) {
        leat_roq_out_orphan(flow->outs);
    }
    while ((p = flow->flight.first) != NULL) { /* QUIC still has their tags */
        leat_roq_list_remove(&flow->flight, p);
        p->flow = NULL;
        leat_roq_list_push(&roq->lost, p);
    }
    leat_timer_unset(&flow->timer);
    unlink_flow(flow);
    leat_mem_release(roq->mem, flow);
}

void leat_roq_flow_close(leat_roq_flow *flow)
{
    leat_roq_in_flow_closed(flow);
    leat_roq_flow_free(flow);
}

/* ---- the rest ---- */

leat_roq *leat_roq_flow_session(leat_roq_flow *flow)
{
    return flow->roq;
}

uint64_t leat_roq_flow_id(const leat_roq_flow *flow)
{
    return flow->id;
}

void leat_roq_flow_set_user(leat_roq_flow *flow, void *user)
{
    flow->settings.user = user;
}

void *leat_roq_flow_user(const leat_roq_flow *flow)
{
    return flow->settings.user;
}

leat_err leat_roq_flow_set_mode(leat_roq_flow *flow, leat_roq_mode mode)
{
    if ((unsigned)mode >= LEAT_ROQ_MODES) {
        return LEAT_ERR_INVALID;
    }
    flow->settings.mode = mode;
    return LEAT_OK;
}

void leat_roq_flow_skip(leat_roq_flow *flow)
{
    for (leat_roq_in *in = flow->roq->ins; in; in = in->next) {
        if (in->flow == flow) {
            leat_roq_in_stop(in, LEAT_ROQ_FRAME_CANCELLED);
        }
    }
}

void leat_roq_flow_stats(const leat_roq_flow *flow, leat_roq_stats *out)
{
    *out = flow->stats;
    out->queue_delay = flow->queue.first ? leat_roq_now(flow->roq) - flow->queue.first->queued : 0;
}

void leat_roq_flow_report(leat_roq_flow *flow, leat_roq_report *out)
{
    const leat_roq_stats *s = &flow->stats;
    uint64_t lost = s->packets_lost + s->packets_late + s->packets_overflow + s->packets_stopped +
                    s->packets_dropped;
    uint64_t new_lost = lost - flow->report_lost;
    uint64_t new_all = new_lost + s->packets_acked - flow->report_acked;
    uint64_t share = new_all ? new_lost * 256 / new_all : 0;
    leat_conn_stats_data conn;

    leat_conn_stats(flow->roq->conn, &conn);
    *out = (leat_roq_report){
        .fraction_lost = (uint8_t)(share < 256 ? share : 255), /* RFC 3550 s6.4.1 */
        .lost = lost,
        .acked = s->packets_acked,
        .highest_seq = flow->highest ? (uint32_t)(flow->highest - 65536) : 0,
        .rtt = conn.rtt_smoothed,
        .rtt_min = conn.rtt_min,
    };
    flow->report_lost = lost;
    flow->report_acked = s->packets_acked;
}
