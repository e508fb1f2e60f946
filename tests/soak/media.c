/* tests/soak/media.c: RTP over QUIC: a flow whose packets must all arrive, in order, and two whose
 * packets may be late.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "soak.h"

enum { FLOWS = 3, SURE = 1, LOOSE = 2, FRAMES = 3, PAYLOAD = 1000 };

struct soak_media {
    leat_roq *roq;
    leat_roq_flow *flow[FLOWS + 1];
    bool client;
    uint32_t ssrc;
    uint64_t sent, acked; /* of the flow whose packets must arrive */
    uint64_t next;        /* server: of that flow, the number that must come next */
    void *user;
};

static const leat_roq_mode modes[FLOWS + 1] = {
    [SURE] = LEAT_ROQ_MODE_FLOW, [LOOSE] = LEAT_ROQ_MODE_DATAGRAM, [FRAMES] = LEAT_ROQ_MODE_FRAME};

static bool open_flow(soak_media *m, uint64_t id)
{
    leat_roq_flow_settings settings;
    leat_err err;

    leat_roq_flow_settings_init(&settings);
    settings.mode = modes[id];
    settings.lifetime = id == SURE ? 0 : 200 * LEAT_MILLISECOND;
    settings.results = m->client;
    err = leat_roq_flow_open(m->roq, id, &settings, &m->flow[id]);
    if (err != LEAT_OK && err != LEAT_ERR_CLOSED) {
        soak_fault("flow %llu: %s", (unsigned long long)id, leat_err_text(err));
    }
    return err == LEAT_OK;
}

static uint64_t key_of(uint32_t ssrc, uint16_t seq)
{
    return (uint64_t)ssrc << 16 | seq;
}

static void on_packet(leat_roq_flow *flow, leat_span data, const leat_roq_arrival *how, void *user)
{
    soak_media *m = user;
    uint64_t id = leat_roq_flow_id(flow);
    leat_rtp_packet rtp;

    (void)how;
    if (leat_rtp_parse(data, &rtp) != LEAT_OK ||
        !soak_same(key_of(rtp.ssrc, rtp.seq), 0, rtp.payload.data, rtp.payload.len)) {
        soak_fault("a packet of flow %llu is not what was sent", (unsigned long long)id);
        return;
    }
    if (id != SURE) {
        soak_count.media_loose_arrived++;
        return;
    }
    if (rtp.seq != (uint16_t)m->next) {
        soak_fault("packet %u of the sure flow came, not %llu", rtp.seq,
                   (unsigned long long)m->next);
    }
    m->next++;
    soak_count.media_arrived++;
}

static void on_result(leat_roq_flow *flow, const leat_roq_result *result, void *user)
{
    soak_media *m = user;

    if (leat_roq_flow_id(flow) != SURE) {
        soak_count.media_loose_arrived += result->outcome == LEAT_ROQ_OUTCOME_ACKED;
    } else if (result->outcome == LEAT_ROQ_OUTCOME_ACKED) {
        m->acked++;
        soak_count.media_arrived++;
    } else {
        soak_fault("packet %u of the sure flow: outcome %d", result->seq, (int)result->outcome);
    }
}

static void on_ticket(leat_roq *roq, leat_span session, void *user)
{
    soak_media *m = user;

    (void)roq;
    soak_worker_ticket(m->user, true, session);
}

static void on_connected(leat_roq *roq, void *user)
{
    soak_media *m = user;
    leat_conn *conn = leat_roq_conn(roq);

    if (m->client) {
        soak_count.connected++;
        soak_count.resumed += leat_conn_resumed(conn);
        soak_count.early_accepted += leat_conn_early(conn) == LEAT_EARLY_ACCEPTED;
        soak_count.early_rejected += leat_conn_early(conn) == LEAT_EARLY_REJECTED;
    } else {
        soak_count.connected++;
        soak_count.resumed += leat_conn_resumed(conn);
    }
}

static void on_closed(leat_roq *roq, const leat_close_info *info, void *user)
{
    soak_media *m = user;

    if (m->client) {
        soak_worker_closed(m->user, leat_roq_conn(roq), info);
    } else {
        soak_server_closed(leat_roq_conn(roq));
    }
    free(m);
}

static const leat_roq_events events = {
    .connected = on_connected,
    .packet = on_packet,
    .result = on_result,
    .ticket = on_ticket,
    .closed = on_closed,
};

soak_media *soak_media_begin(leat_conn *conn, bool client, uint32_t ssrc, void *user)
{
    soak_media *m = calloc(1, sizeof *m);
    leat_err err;

    m->client = client;
    m->ssrc = ssrc;
    m->user = user;
    err = leat_roq_attach(conn, NULL, &events, m, &m->roq);
    if (err != LEAT_OK) {
        soak_fault("media: %s", leat_err_text(err));
        free(m);
        return NULL;
    }
    for (uint64_t id = 1; id <= FLOWS; id++) {
        open_flow(m, id);
    }
    return m;
}

static leat_err send_on(soak_media *m, unsigned id, uint16_t seq)
{
    uint8_t packet[64 + PAYLOAD];
    leat_rtp_header header = {.ssrc = m->ssrc + id,
                              .timestamp = (uint32_t)seq / 3 * 3000,
                              .seq = seq,
                              .payload_type = 96};
    size_t len;

    if (!m->flow[id] || leat_rtp_write(&header, packet, sizeof packet, &len) != LEAT_OK) {
        return LEAT_ERR_STATE;
    }
    soak_fill(key_of(header.ssrc, seq), 0, packet + len, PAYLOAD);
    return leat_roq_send(m->flow[id], (leat_span){packet, len + PAYLOAD}, NULL);
}

void soak_media_send(soak_media *m)
{
    uint16_t seq = (uint16_t)m->sent;

    if (send_on(m, SURE, seq) != LEAT_OK) {
        return; /* full: nothing is to be left out */
    }
    m->sent++;
    soak_count.media++;
    for (unsigned id = LOOSE; id <= FRAMES; id++) {
        soak_count.media_loose += send_on(m, id, seq) == LEAT_OK;
    }
}

bool soak_media_settled(const soak_media *m)
{
    return m->acked == m->sent;
}

leat_conn *soak_media_conn(soak_media *m)
{
    return leat_roq_conn(m->roq);
}
