/* conn/trace.c: events for the endpoint's sink (leat/event.h). All of it is off the way when there
 * is no sink.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/conn.h"

#include "conn/frames_out.h"
#include "wire/frames.h"

#define LEAT_EVENT_NAME(name, member, text) [LEAT_EVENT_##name] = #name,
static const char *const upper_names[LEAT_EVENT_TYPES] = {LEAT_EVENT_LIST(LEAT_EVENT_NAME)};
#undef LEAT_EVENT_NAME

const char *leat_event_name(leat_event_type type)
{
    return (unsigned)type < LEAT_EVENT_TYPES ? upper_names[type] : "?";
}

static leat_event begin(const leat_conn *conn, leat_event_type type)
{
    return (leat_event){
        .type = type,
        .now = leat_conn_now(conn),
        .odcid = leat_cid_span(&conn->odcid),
        .server = conn->is_server,
    };
}

static void emit(const leat_conn *conn, const leat_event *event)
{
    conn->host->sink->emit(conn->host->sink, event);
}

static const char *type_name(leat_packet_type type)
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
    event = begin(conn, LEAT_EVENT_CONNECTION_STARTED);
    event.started.local = *leat_conn_local(conn);
    event.started.remote = *leat_conn_remote(conn);
    event.started.version = conn->version;
    event.started.dcid = leat_cid_span(leat_remote_cids_current(&conn->remote_cids));
    event.started.scid = leat_cid_span(&conn->local_cids.entry[0].cid);
    emit(conn, &event);
}

void leat_trace_closed(leat_conn *conn)
{
    leat_event event;

    if (!leat_trace_on(conn)) {
        return;
    }
    event = begin(conn, LEAT_EVENT_CONNECTION_CLOSED);
    event.closed = conn->closing.info;
    emit(conn, &event);
}

static void trace_preferred(leat_event_parameters *event, const leat_preferred_address *preferred)
{
    event->preferred_ip4 = (leat_addr){.family = 4, .port = preferred->ipv4_port};
    event->preferred_ip6 = (leat_addr){.family = 6, .port = preferred->ipv6_port};
    memcpy(event->preferred_ip4.ip, preferred->ipv4, sizeof(preferred->ipv4));
    memcpy(event->preferred_ip6.ip, preferred->ipv6, sizeof(preferred->ipv6));
    event->preferred_cid = leat_cid_span(&preferred->cid);
}

void leat_trace_params(leat_conn *conn, bool local, const leat_tparams *params)
{
    leat_event event;

    if (!leat_trace_on(conn)) {
        return;
    }
    event = begin(conn, LEAT_EVENT_PARAMETERS_SET);
    event.parameters = (leat_event_parameters){
        .local = local,
        .max_idle_timeout_ms = params->max_idle_timeout,
        .max_udp_payload_size = params->max_udp_payload_size,
        .initial_max_data = params->initial_max_data,
        .initial_max_stream_data_bidi_local = params->initial_max_stream_data_bidi_local,
        .initial_max_stream_data_bidi_remote = params->initial_max_stream_data_bidi_remote,
        .initial_max_stream_data_uni = params->initial_max_stream_data_uni,
        .initial_max_streams_bidi = params->initial_max_streams_bidi,
        .initial_max_streams_uni = params->initial_max_streams_uni,
        .ack_delay_exponent = params->ack_delay_exponent,
        .max_ack_delay_ms = params->max_ack_delay,
        .active_connection_id_limit = params->active_connection_id_limit,
        .max_datagram_frame_size = params->max_datagram_frame_size,
        .disable_active_migration = leat_tparams_has(params, LEAT_TP_disable_active_migration),
    };
    if (leat_tparams_has(params, LEAT_TP_preferred_address)) {
        trace_preferred(&event.parameters, &params->preferred_address);
    }
    emit(conn, &event);
}

void leat_trace_packet(leat_conn *conn, leat_event_type type, leat_packet_type packet,
                       uint64_t number, size_t len, bool eliciting, bool phase)
{
    leat_event event = begin(conn, type);

    event.packet = (leat_event_packet){
        .type = type_name(packet),
        .number = number,
        .len = len,
        .ack_eliciting = eliciting,
        .key_phase = phase,
    };
    emit(conn, &event);
}

void leat_trace_dropped(leat_conn *conn, leat_packet_type packet, size_t len, const char *reason)
{
    leat_event event;

    if (!leat_trace_on(conn)) {
        return;
    }
    event = begin(conn, LEAT_EVENT_PACKET_DROPPED);
    event.dropped.packet = type_name(packet);
    event.dropped.len = len;
    event.dropped.reason = reason;
    emit(conn, &event);
}

static void number(leat_event_frame *out, const char *key, uint64_t value)
{
    out->key[out->values] = key;
    out->value[out->values++] = value;
}

static void data(leat_event_frame *out, const char *key, leat_span span)
{
    out->data_key = key;
    out->data = span;
}

/* The newest ranges of an ACK, into room of the caller's. */
static size_t ack_ranges(const leat_frame_ack *ack, leat_event_ack_range out[LEAT_EVENT_RANGES])
{
    leat_ack_iter iter;
    leat_range range;
    size_t n = 0;

    leat_ack_iter_init(&iter, ack);
    while (n < LEAT_EVENT_RANGES && leat_ack_iter_next(&iter, &range)) {
        out[n++] = (leat_event_ack_range){range.from, range.to - 1};
    }
    return n;
}

static void describe_stream_frame(const leat_frame *f, leat_event_frame *out)
{
    switch (f->kind) {
    case LEAT_FRAME_RESET_STREAM:
        number(out, "stream_id", f->reset_stream.stream_id);
        number(out, "error_code", f->reset_stream.error);
        number(out, "final_size", f->reset_stream.final_size);
        break;
    case LEAT_FRAME_RESET_STREAM_AT:
        number(out, "stream_id", f->reset_stream_at.stream_id);
        number(out, "error_code", f->reset_stream_at.error);
        number(out, "final_size", f->reset_stream_at.final_size);
        number(out, "reliable_size", f->reset_stream_at.reliable_size);
        break;
    case LEAT_FRAME_STOP_SENDING:
        number(out, "stream_id", f->stop_sending.stream_id);
        number(out, "error_code", f->stop_sending.error);
        break;
    case LEAT_FRAME_STREAM:
        number(out, "stream_id", f->stream.stream_id);
        number(out, "offset", f->stream.offset);
        number(out, "length", f->stream.data.len);
        number(out, "fin", f->stream.fin);
        break;
    case LEAT_FRAME_MAX_DATA:
        number(out, "maximum", f->max_data.max);
        break;
    case LEAT_FRAME_MAX_STREAM_DATA:
        number(out, "stream_id", f->max_stream_data.stream_id);
        number(out, "maximum", f->max_stream_data.max);
        break;
    case LEAT_FRAME_MAX_STREAMS:
        number(out, "stream_type", f->code & 1);
        number(out, "maximum", f->max_streams.max);
        break;
    case LEAT_FRAME_DATA_BLOCKED:
        number(out, "limit", f->data_blocked.limit);
        break;
    case LEAT_FRAME_STREAM_DATA_BLOCKED:
        number(out, "stream_id", f->stream_data_blocked.stream_id);
        number(out, "limit", f->stream_data_blocked.limit);
        break;
    case LEAT_FRAME_STREAMS_BLOCKED:
        number(out, "stream_type", f->code & 1);
        number(out, "limit", f->streams_blocked.limit);
        break;
    default:
        break;
    }
}

/* The frame's fields in the order of RFC 9000 s19. */
static void describe(const leat_frame *f, leat_event_frame *out)
{
    switch (f->kind) {
    case LEAT_FRAME_PADDING:
        number(out, "payload_length", f->padding.len);
        break;
    case LEAT_FRAME_CRYPTO:
        number(out, "offset", f->crypto.offset);
        number(out, "length", f->crypto.data.len);
        break;
    case LEAT_FRAME_NEW_TOKEN:
        data(out, "token", f->new_token.token);
        break;
    case LEAT_FRAME_NEW_CONNECTION_ID:
        number(out, "sequence_number", f->new_connection_id.sequence);
        number(out, "retire_prior_to", f->new_connection_id.retire_prior_to);
        data(out, "connection_id", leat_cid_span(&f->new_connection_id.cid));
        break;
    case LEAT_FRAME_RETIRE_CONNECTION_ID:
        number(out, "sequence_number", f->retire_connection_id.sequence);
        break;
    case LEAT_FRAME_PATH_CHALLENGE:
    case LEAT_FRAME_PATH_RESPONSE:
        data(out, "data", (leat_span){f->path_challenge.data, LEAT_PATH_DATA});
        break;
    case LEAT_FRAME_CONNECTION_CLOSE:
        number(out, "error_code", f->connection_close.error);
        number(out, "trigger_frame_type", f->connection_close.frame_type);
        data(out, "reason", f->connection_close.reason);
        break;
    case LEAT_FRAME_APPLICATION_CLOSE:
        number(out, "error_code", f->connection_close.error);
        data(out, "reason", f->connection_close.reason);
        break;
    case LEAT_FRAME_ACK_FREQUENCY:
        number(out, "sequence_number", f->ack_frequency.sequence);
        number(out, "ack_eliciting_threshold", f->ack_frequency.threshold);
        number(out, "requested_max_ack_delay", f->ack_frequency.max_delay);
        number(out, "reordering_threshold", f->ack_frequency.reorder);
        break;
    case LEAT_FRAME_DATAGRAM:
        number(out, "length", f->datagram.data.len);
        break;
    default:
        describe_stream_frame(f, out);
        break;
    }
}

/* As its reader takes it. */
static leat_time ack_delay(const leat_conn *conn, leat_event_type type, leat_space space,
                           const leat_frame_ack *ack)
{
    return type == LEAT_EVENT_FRAME_RECEIVED
               ? leat_conn_ack_delay(conn, space, ack)
               : (ack->delay << LEAT_ACK_DELAY_EXPONENT) * LEAT_MICROSECOND;
}

void leat_trace_frame(leat_conn *conn, leat_event_type type, leat_space space,
                      const leat_frame *frame)
{
    leat_event_ack_range ranges[LEAT_EVENT_RANGES];
    leat_event event = begin(conn, type);

    event.frame = (leat_event_frame){.type = frame->code, .name = leat_frame_name(frame->kind)};
    describe(frame, &event.frame);
    if (frame->kind == LEAT_FRAME_ACK) {
        number(&event.frame, "ack_delay", ack_delay(conn, type, space, &frame->ack));
        event.frame.ranges = ranges;
        event.frame.range_count = ack_ranges(&frame->ack, ranges);
    }
    emit(conn, &event);
}

void leat_trace_out(const leat_packet_out *out, leat_packet_type type, uint64_t number, size_t len)
{
    leat_cursor cursor;
    leat_frame frame;

    leat_cursor_init(&cursor, out->payload, (size_t)(out->w.at - out->payload));
    while (leat_cursor_left(&cursor) > 0 &&
           leat_frame_decode(&cursor, &frame) == LEAT_TE_NO_ERROR) {
        leat_trace_frame(out->conn, LEAT_EVENT_FRAME_SENT, out->pn->space, &frame);
    }
    leat_trace_packet(out->conn, LEAT_EVENT_PACKET_SENT, type, number, len, out->eliciting,
                      type == LEAT_PACKET_ONE_RTT && (out->conn->rekey.tx_phase & 1));
}

void leat_trace_metrics(leat_conn *conn)
{
    const leat_rtt *rtt = &conn->loss.rtt;
    leat_event event = begin(conn, LEAT_EVENT_METRICS_UPDATED);

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
    emit(conn, &event);
}

void leat_trace_congestion(leat_conn *conn)
{
    const char *state = leat_cc_state_name(&conn->cc);
    leat_event event;

    if (state == conn->cc_state) { /* static strings, one a state */
        return;
    }
    event = begin(conn, LEAT_EVENT_CONGESTION_STATE);
    event.congestion.from = conn->cc_state;
    event.congestion.to = state;
    conn->cc_state = state;
    emit(conn, &event);
}

void leat_trace_ecn(leat_conn *conn, leat_ecn_path before)
{
    leat_event event;

    if (!leat_trace_on(conn) || before.state == conn->ecn.state) {
        return;
    }
    event = begin(conn, LEAT_EVENT_ECN_STATE);
    event.ecn.from = leat_ecn_state_name(&before);
    event.ecn.to = leat_ecn_state_name(&conn->ecn);
    emit(conn, &event);
}

void leat_trace_mtu(leat_conn *conn, uint16_t before)
{
    leat_event event;

    if (!leat_trace_on(conn)) {
        return;
    }
    event = begin(conn, LEAT_EVENT_MTU_UPDATED);
    event.mtu.from = before;
    event.mtu.to = conn->mtu.size;
    emit(conn, &event);
}

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
    event = begin(conn, type);
    event.key.name = names[level][conn->is_server == (dir == LEAT_TX)];
    event.key.trigger = trigger;
    event.key.phase = phase;
    emit(conn, &event);
}

void leat_trace_handshake(leat_conn *conn)
{
    leat_event event;

    if (!leat_trace_on(conn)) {
        return;
    }
    event = begin(conn, LEAT_EVENT_HANDSHAKE);
    event.handshake.confirmed = conn->confirmed;
    event.handshake.alpn = leat_conn_alpn(conn);
    event.handshake.cipher = (leat_span){(const uint8_t *)leat_conn_cipher(conn), 0};
    for (const char *p = leat_conn_cipher(conn); *p; p++) {
        event.handshake.cipher.len++;
    }
    emit(conn, &event);
}
