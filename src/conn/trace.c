/* conn/trace.c: see conn/trace.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/trace.h"

#include <string.h>

#include "base/assert.h"
#include "base/cursor.h"

#define LEAT_EVENT_NAME(name, member, text) [LEAT_EVENT_##name] = #name,
static const char *const upper_names[LEAT_EVENT_TYPES] = {LEAT_EVENT_LIST(LEAT_EVENT_NAME)};
#undef LEAT_EVENT_NAME

const char *leat_event_name(leat_event_type type)
{
    return (unsigned)type < LEAT_EVENT_TYPES ? upper_names[type] : "?";
}

leat_event leat_trace_begin(const leat_conn *conn, leat_event_type type)
{
    return (leat_event){
        .type = type,
        .now = leat_conn_now(conn),
        .odcid = leat_cid_span(&conn->odcid),
        .server = conn->is_server,
    };
}

const char *leat_trace_packet_type(leat_packet_type type)
{
    switch (type) {
    case LEAT_PACKET_INITIAL:
        return "initial";
    case LEAT_PACKET_ZERO_RTT:
        return "0RTT";
    case LEAT_PACKET_HANDSHAKE:
        return "handshake";
    case LEAT_PACKET_ONE_RTT:
        return "1RTT";
    case LEAT_PACKET_RETRY:
        return "retry";
    case LEAT_PACKET_VERSION_NEGOTIATION:
        return "version_negotiation";
    case LEAT_PACKET_UNKNOWN_VERSION:
        break;
    }
    return "unknown";
}

void leat_trace_started(leat_conn *conn)
{
    leat_event event;

    if (!leat_trace_on(conn)) {
        return;
    }
    event = leat_trace_begin(conn, LEAT_EVENT_CONNECTION_STARTED);
    event.started.local = *leat_conn_local(conn);
    event.started.remote = *leat_conn_remote(conn);
    event.started.version = conn->version;
    event.started.dcid = leat_cid_span(leat_remote_cids_current(&conn->remote_cids));
    event.started.scid = leat_cid_span(&conn->local_cids.entry[0].cid);
    leat_trace_emit(conn, &event);
}

void leat_trace_closed(leat_conn *conn)
{
    leat_event event;

    if (!leat_trace_on(conn)) {
        return;
    }
    event = leat_trace_begin(conn, LEAT_EVENT_CONNECTION_CLOSED);
    event.closed = conn->closing.info;
    leat_trace_emit(conn, &event);
}

static void trace_preferred(leat_event_parameters *event, const leat_preferred_address *preferred)
{
    event->preferred_ip4 = (leat_addr){.family = 4, .port = preferred->ipv4_port};
    event->preferred_ip6 = (leat_addr){.family = 6, .port = preferred->ipv6_port};
    memcpy(event->preferred_ip4.ip, preferred->ipv4, sizeof(preferred->ipv4));
    memcpy(event->preferred_ip6.ip, preferred->ipv6, sizeof(preferred->ipv6));
    event->preferred_cid = leat_cid_span(&preferred->cid);
}

static leat_span cid_if(const leat_tparams *params, uint32_t bit, const leat_cid *cid)
{
    return leat_tparams_has(params, bit) ? leat_cid_span(cid) : (leat_span){NULL, 0};
}

/* What a client may remember, too. */
static leat_event_parameters limits_of(const leat_tparams *params)
{
    return (leat_event_parameters){
        .max_idle_timeout_ms = params->max_idle_timeout,
        .max_udp_payload_size = params->max_udp_payload_size,
        .initial_max_data = params->initial_max_data,
        .initial_max_stream_data_bidi_local = params->initial_max_stream_data_bidi_local,
        .initial_max_stream_data_bidi_remote = params->initial_max_stream_data_bidi_remote,
        .initial_max_stream_data_uni = params->initial_max_stream_data_uni,
        .initial_max_streams_bidi = params->initial_max_streams_bidi,
        .initial_max_streams_uni = params->initial_max_streams_uni,
        .active_connection_id_limit = params->active_connection_id_limit,
        .max_datagram_frame_size = params->max_datagram_frame_size,
        .disable_active_migration = leat_tparams_has(params, LEAT_TP_disable_active_migration),
        .reset_stream_at = leat_tparams_has(params, LEAT_TP_reset_stream_at),
    };
}

void leat_trace_params(leat_conn *conn, bool local, const leat_tparams *params)
{
    leat_event_parameters *told;
    leat_event event;

    if (!leat_trace_on(conn)) {
        return;
    }
    event = leat_trace_begin(conn, LEAT_EVENT_PARAMETERS_SET);
    told = &event.parameters;
    *told = limits_of(params);
    told->local = local;
    told->ack_delay_exponent = params->ack_delay_exponent;
    told->max_ack_delay_ms = params->max_ack_delay;
    told->grease_quic_bit = leat_tparams_has(params, LEAT_TP_grease_quic_bit);
    if (leat_tparams_has(params, LEAT_TP_min_ack_delay)) {
        told->min_ack_delay_us = params->min_ack_delay;
    }
    told->original_dcid = cid_if(params, LEAT_TP_original_dcid, &params->original_dcid);
    told->initial_scid = cid_if(params, LEAT_TP_initial_scid, &params->initial_scid);
    told->retry_scid = cid_if(params, LEAT_TP_retry_scid, &params->retry_scid);
    if (leat_tparams_has(params, LEAT_TP_version_information)) {
        told->chosen_version = params->version_information.chosen;
        told->available_versions = params->version_information.available;
    }
    if (leat_tparams_has(params, LEAT_TP_preferred_address)) {
        trace_preferred(told, &params->preferred_address);
    }
    leat_trace_emit(conn, &event);
}

void leat_trace_restored(leat_conn *conn, const leat_tparams *params)
{
    leat_event event;

    if (leat_trace_on(conn)) {
        event = leat_trace_begin(conn, LEAT_EVENT_PARAMETERS_RESTORED);
        event.parameters = limits_of(params);
        leat_trace_emit(conn, &event);
    }
}

void leat_trace_versions(leat_conn *conn, leat_span peer, uint32_t chosen)
{
    const leat_conn_settings *s = conn->settings;
    uint8_t room[4 * LEAT_VERSIONS_MAX];
    leat_span ours = {room, 4 * (size_t)s->version_count};
    leat_event event;

    if (!leat_trace_on(conn)) {
        return;
    }
    for (size_t i = 0; i < s->version_count; i++) {
        leat_store_u32(room + 4 * i, s->versions[i]);
    }
    event = leat_trace_begin(conn, LEAT_EVENT_VERSION_INFORMATION);
    event.versions = (leat_event_versions){
        .server = conn->is_server ? ours : peer,
        .client = conn->is_server ? peer : ours,
        .chosen = chosen,
    };
    leat_trace_emit(conn, &event);
}

/* ---- packets ---- */

static void emit_packet(leat_conn *conn, leat_event_type type, const leat_event_packet *packet)
{
    leat_event event = leat_trace_begin(conn, type);

    event.packet = *packet;
    leat_trace_emit(conn, &event);
}

/* What a header says. Its first byte is for the caller: it may be protected. */
static leat_event_packet packet_of(const leat_conn *conn, const leat_header *header, size_t len)
{
    leat_event_packet packet = {
        .type = leat_trace_packet_type(header->type),
        .len = len,
        .version = header->version,
        .dcid = header->dcid,
        .scid = header->scid,
        .retry_token = conn->hs && conn->hs->has_retry,
    };

    if (header->type == LEAT_PACKET_INITIAL || header->type == LEAT_PACKET_RETRY) {
        packet.token = header->token;
        packet.retry_token |= header->type == LEAT_PACKET_RETRY;
    }
    if (header->type == LEAT_PACKET_VERSION_NEGOTIATION) {
        packet.versions = header->rest;
    }
    return packet;
}

static void read_first(leat_event_packet *packet, leat_packet_type type, uint8_t first)
{
    packet->pn_len = (uint8_t)leat_header_pn_len(first);
    packet->spin = type == LEAT_PACKET_ONE_RTT && leat_header_spin(first);
}

/* The phase that is meant by its low bit: keys of two are held. */
static uint64_t phase_received(const leat_conn *conn, uint8_t first)
{
    uint64_t phase = conn->rekey.rx_phase;

    return leat_header_key_phase(first) == (phase & 1) ? phase : phase - 1;
}

void leat_trace_received(leat_conn *conn, const leat_header *header, const leat_packet_in *in,
                         uint8_t first)
{
    leat_event_packet packet = packet_of(conn, header, header->packet_len);

    read_first(&packet, header->type, first);
    packet.number = in->number;
    packet.ecn = in->ecn;
    packet.ack_eliciting = in->eliciting;
    packet.path = in->path ? in->path->id : 0;
    if (header->type == LEAT_PACKET_ONE_RTT) {
        packet.key_phase = phase_received(conn, first);
    }
    emit_packet(conn, LEAT_EVENT_PACKET_RECEIVED, &packet);
}

void leat_trace_unprotected(leat_conn *conn, const leat_header *header)
{
    leat_event_packet packet;

    if (leat_trace_on(conn)) {
        packet = packet_of(conn, header, header->packet_len);
        emit_packet(conn, LEAT_EVENT_PACKET_RECEIVED, &packet);
    }
}

void leat_trace_buffered(leat_conn *conn, const leat_header *header)
{
    leat_event_packet packet;

    if (leat_trace_on(conn)) {
        packet = packet_of(conn, header, header->packet_len);
        emit_packet(conn, LEAT_EVENT_PACKET_BUFFERED, &packet);
    }
}

#define LEAT_DROP_TRIGGER(name, trigger, reason) [LEAT_DROP_##name] = trigger,
#define LEAT_DROP_REASON(name, trigger, reason)  [LEAT_DROP_##name] = reason,
void leat_trace_dropped(leat_conn *conn, leat_packet_type packet, size_t len, leat_drop why)
{
    static const char *const triggers[] = {LEAT_DROP_LIST(LEAT_DROP_TRIGGER)};
    static const char *const reasons[] = {LEAT_DROP_LIST(LEAT_DROP_REASON)};
    leat_event event;

    if (!leat_trace_on(conn)) {
        return;
    }
    event = leat_trace_begin(conn, LEAT_EVENT_PACKET_DROPPED);
    event.dropped = (leat_event_dropped){
        .packet = leat_trace_packet_type(packet),
        .len = len,
        .reason = reasons[why],
        .trigger = triggers[why],
    };
    leat_trace_emit(conn, &event);
}

/* Its header is as it was written: sealing comes later. */
static leat_event_packet packet_of_out(const leat_packet_out *out, size_t len)
{
    size_t header_len = (size_t)(out->payload - out->start);
    size_t short_dcid = out->type == LEAT_PACKET_ONE_RTT ? header_len - 1 - out->pn_len : 0;
    leat_header header;
    leat_event_packet packet;
    leat_err err = leat_header_parse(out->start, len, short_dcid, &header);

    LEAT_ASSERT(err == LEAT_OK);
    packet = packet_of(out->conn, &header, len);
    read_first(&packet, header.type, out->start[0]);
    return packet;
}

void leat_trace_out(const leat_packet_out *out, const leat_path *path, uint64_t number, size_t len,
                    uint8_t ecn)
{
    leat_event_packet packet = packet_of_out(out, len);
    leat_cursor cursor;
    leat_frame frame;

    leat_cursor_init(&cursor, out->payload, (size_t)(out->w.at - out->payload));
    while (leat_cursor_left(&cursor) > 0 &&
           leat_frame_decode(&cursor, &frame) == LEAT_TE_NO_ERROR) {
        leat_trace_frame(out->conn, LEAT_EVENT_FRAME_SENT, out->pn->space, &frame);
    }
    packet.number = number;
    packet.ecn = ecn;
    packet.ack_eliciting = out->eliciting;
    packet.mtu_probe = out->probe;
    packet.path = path->id;
    if (out->type == LEAT_PACKET_ONE_RTT) {
        packet.key_phase = out->conn->rekey.tx_phase;
    }
    emit_packet(out->conn, LEAT_EVENT_PACKET_SENT, &packet);
}

void leat_trace_lost(leat_conn *conn, leat_space space, const leat_sent_loss *loss)
{
    static const leat_packet_type types[LEAT_SPACES] = {LEAT_PACKET_INITIAL, LEAT_PACKET_HANDSHAKE,
                                                        LEAT_PACKET_ONE_RTT};
    const leat_pnspace *pn = leat_conn_space(conn, space);
    bool overtaken = pn && loss->pn + conn->loss.packet_threshold < leat_sent_acked_end(&pn->sent);
    leat_event_packet packet = {
        .type = leat_trace_packet_type(types[space]),
        .number = loss->pn,
        .len = loss->size,
        .ack_eliciting = (loss->flags & LEAT_SENT_ELICITING) != 0,
        .mtu_probe = (loss->flags & LEAT_SENT_MTU_PROBE) != 0,
        .trigger = overtaken ? "reordering_threshold" : "time_threshold",
    };

    emit_packet(conn, LEAT_EVENT_PACKET_LOST, &packet);
}

/* ---- the path ---- */

void leat_trace_metrics(leat_conn *conn)
{
    const leat_rtt *rtt = &conn->loss.rtt;
    leat_event event = leat_trace_begin(conn, LEAT_EVENT_METRICS_UPDATED);

    event.metrics = (leat_event_metrics){
        .rtt_latest = rtt->latest,
        .rtt_smoothed = rtt->smoothed,
        .rtt_min = rtt->min,
        .rtt_var = rtt->var,
        .cwnd = conn->cc.cwnd,
        .bytes_in_flight = conn->flight.bytes,
        .ssthresh = conn->cc.ssthresh,
        .pto_count = conn->loss.pto_count,
    };
    leat_trace_emit(conn, &event);
}

void leat_trace_congestion(leat_conn *conn)
{
    const char *state = leat_cc_state_name(&conn->cc);
    leat_event event;

    if (state == conn->cc_state) { /* static strings, one a state */
        return;
    }
    event = leat_trace_begin(conn, LEAT_EVENT_CONGESTION_STATE);
    event.congestion.from = conn->cc_state;
    event.congestion.to = state;
    conn->cc_state = state;
    leat_trace_emit(conn, &event);
}

void leat_trace_ecn(leat_conn *conn, leat_ecn_path before)
{
    leat_event event;

    if (!leat_trace_on(conn) || before.state == conn->ecn.state) {
        return;
    }
    event = leat_trace_begin(conn, LEAT_EVENT_ECN_STATE);
    event.ecn.from = leat_ecn_state_name(&before);
    event.ecn.to = leat_ecn_state_name(&conn->ecn);
    leat_trace_emit(conn, &event);
}

void leat_trace_mtu(leat_conn *conn, uint16_t before)
{
    leat_event event;

    if (!leat_trace_on(conn)) {
        return;
    }
    event = leat_trace_begin(conn, LEAT_EVENT_MTU_UPDATED);
    event.mtu.from = before;
    event.mtu.to = conn->mtu.size;
    leat_trace_emit(conn, &event);
}

void leat_trace_spin(leat_conn *conn)
{
    leat_event event;

    if (conn->grease.spin != conn->grease.spin_told) {
        conn->grease.spin_told = conn->grease.spin;
        event = leat_trace_begin(conn, LEAT_EVENT_SPIN_BIT);
        event.spin = conn->grease.spin;
        leat_trace_emit(conn, &event);
    }
}

static void trace_cid(leat_conn *conn, bool local, const leat_cid *from, const leat_cid *to)
{
    leat_event event;

    if (!leat_trace_on(conn) || leat_cid_equal(from, to)) {
        return;
    }
    event = leat_trace_begin(conn, LEAT_EVENT_CONNECTION_ID);
    event.cid = (leat_event_cid){local, leat_cid_span(from), leat_cid_span(to)};
    leat_trace_emit(conn, &event);
}

void leat_trace_cid(leat_conn *conn, const leat_cid *from, const leat_cid *to)
{
    if (!leat_cid_equal(from, to)) { /* empty ones are */
        trace_cid(conn, false, from, to);
    }
}

void leat_trace_addressed(leat_conn *conn, leat_cid from, const leat_cid *to)
{
    if (to->len > 0) {
        trace_cid(conn, true, from.len > 0 ? &from : &conn->local_cids.entry[0].cid, to);
    }
}

/* The ID that packets go to on a path; data NULL: not chosen yet. */
static leat_span dcid_of(const leat_conn *conn, const leat_path *path)
{
    const leat_remote_cids *cids = &conn->remote_cids;

    if (path == leat_paths_active_const(&conn->paths)) {
        return leat_cid_span(leat_remote_cids_current(cids));
    }
    for (size_t i = 0; i < LEAT_REMOTE_CIDS_MAX; i++) {
        if (cids->entry[i].used && cids->entry[i].sequence == path->cid) {
            return leat_cid_span(&cids->entry[i].cid);
        }
    }
    return (leat_span){NULL, 0};
}

void leat_trace_path(leat_conn *conn, const leat_path *path, bool gone)
{
    leat_event event;

    if (!leat_trace_on(conn)) {
        return;
    }
    event = leat_trace_begin(conn, LEAT_EVENT_PATH);
    event.path = (leat_event_path){
        .id = path->id,
        .gone = gone,
        .local = path->local,
        .remote = path->remote,
        .dcid = dcid_of(conn, path),
    };
    if (path->addressed.len > 0) {
        event.path.scid = leat_cid_span(&path->addressed);
    }
    leat_trace_emit(conn, &event);
}

void leat_trace_migration(leat_conn *conn, const leat_path *path, const char *state)
{
    leat_event event;

    if (!leat_trace_on(conn)) {
        return;
    }
    event = leat_trace_begin(conn, LEAT_EVENT_MIGRATION);
    event.migration = (leat_event_migration){
        .state = state,
        .path = path->id,
        .local = path->local,
        .remote = path->remote,
    };
    leat_trace_emit(conn, &event);
}

/* ---- keys, handshake ---- */

void leat_trace_key(leat_conn *conn, leat_event_type type, leat_level level, leat_dir dir,
                    const char *trigger, uint64_t phase)
{
    /* As qlog names them: the side that seals with the key comes first. */
    static const char *const names[LEAT_LEVEL_COUNT][2] = {
        [LEAT_LEVEL_INITIAL] = {"client_initial_secret", "server_initial_secret"},
        [LEAT_LEVEL_ZERO_RTT] = {"client_0rtt_secret", "server_0rtt_secret"},
        [LEAT_LEVEL_HANDSHAKE] = {"client_handshake_secret", "server_handshake_secret"},
        [LEAT_LEVEL_ONE_RTT] = {"client_1rtt_secret", "server_1rtt_secret"},
    };
    leat_event event;

    if (!leat_trace_on(conn)) {
        return;
    }
    event = leat_trace_begin(conn, type);
    event.key.name = names[level][conn->is_server == (dir == LEAT_TX)];
    event.key.trigger = trigger;
    event.key.phase = phase;
    leat_trace_emit(conn, &event);
}

void leat_trace_keys(leat_conn *conn, leat_event_type type, leat_level level)
{
    leat_trace_key(conn, type, level, LEAT_TX, "tls", 0);
    leat_trace_key(conn, type, level, LEAT_RX, "tls", 0);
}

void leat_trace_rekey(leat_conn *conn, leat_key_phases before, const char *trigger)
{
    leat_key_phases now = leat_key_phases_of(&conn->rekey);

    if (!leat_trace_on(conn)) {
        return;
    }
    if (before.has_prev && (!now.has_prev || now.rx != before.rx)) {
        leat_trace_key(conn, LEAT_EVENT_KEY_DISCARDED, LEAT_LEVEL_ONE_RTT, LEAT_RX, trigger,
                       before.rx - 1);
    }
    if (now.rx != before.rx) {
        leat_trace_key(conn, LEAT_EVENT_KEY_UPDATED, LEAT_LEVEL_ONE_RTT, LEAT_RX, trigger, now.rx);
    }
    if (now.tx != before.tx) {
        leat_trace_key(conn, LEAT_EVENT_KEY_DISCARDED, LEAT_LEVEL_ONE_RTT, LEAT_TX, trigger,
                       before.tx);
        leat_trace_key(conn, LEAT_EVENT_KEY_UPDATED, LEAT_LEVEL_ONE_RTT, LEAT_TX, trigger, now.tx);
    }
}

void leat_trace_handshake(leat_conn *conn)
{
    const char *cipher = leat_conn_cipher(conn);
    leat_event event;

    if (!leat_trace_on(conn)) {
        return;
    }
    event = leat_trace_begin(conn, LEAT_EVENT_HANDSHAKE);
    event.handshake = (leat_event_handshake){
        .confirmed = conn->confirmed,
        .resumed = conn->resumed,
        .early = (leat_early)conn->early,
        .version = conn->version,
        .alpn = leat_conn_alpn(conn),
        .cipher = {(const uint8_t *)cipher, strlen(cipher)},
    };
    leat_trace_emit(conn, &event);
}
