/* io/qlog_text.c: events as qlog 0.3 says them (draft-ietf-quic-qlog-main-schema, -quic-events), in
 * the JSON-SEQ form of RFC 7464: each record is a record separator, a JSON object and a line feed.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io/qlog.h"

#include <arpa/inet.h>
#include <string.h>

#define RECORD_SEPARATOR "\x1e"

static void put_text(leat_json *json, const char *key, leat_span text)
{
    leat_json_key(json, key);
    leat_json_text(json, text);
}

/* Opens an object under a key; what closes it is a plain "}". */
static void open_object(leat_json *json, const char *key)
{
    leat_json_key(json, key);
    leat_json_raw(json, "{");
}

void leat_qlog_write_header(leat_json *json, const leat_event *event, uint64_t wall_ms)
{
    leat_json_raw(json, RECORD_SEPARATOR "{");
    leat_json_put_string(json, "qlog_version", "0.3");
    leat_json_put_string(json, "qlog_format", "JSON-SEQ");
    leat_json_put_string(json, "title", "leat");
    open_object(json, "trace");
    open_object(json, "vantage_point");
    leat_json_put_string(json, "name", "leat");
    leat_json_put_string(json, "type", event->server ? "server" : "client");
    leat_json_raw(json, "}");
    open_object(json, "common_fields");
    leat_json_put_hex(json, "ODCID", event->odcid);
    leat_json_put_string(json, "time_format", "relative");
    leat_json_put_u64(json, "reference_time", wall_ms);
    leat_json_raw(json, "}}}\n");
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void write_ranges(leat_json *json, const leat_event_frame *frame)
{
    leat_json_key(json, "acked_ranges");
    leat_json_raw(json, "[");
    for (size_t i = 0; i < frame->range_count; i++) {
        leat_json_item(json);
        leat_json_raw(json, "[");
        leat_json_u64(json, frame->ranges[i].first);
        leat_json_raw(json, ",");
        leat_json_u64(json, frame->ranges[i].last);
        leat_json_raw(json, "]");
    }
    leat_json_raw(json, "]");
}

static void write_value(leat_json *json, const char *key, uint64_t value)
{
    if (strcmp(key, "fin") == 0) {
        leat_json_put_bool(json, key, value != 0);
    } else if (strcmp(key, "ack_delay") == 0) {
        leat_json_put_ms(json, key, value);
    } else if (strcmp(key, "stream_type") == 0) {
        leat_json_put_string(json, key, value == 0 ? "bidirectional" : "unidirectional");
    } else {
        leat_json_put_u64(json, key, value);
    }
}

static void write_frame_data(leat_json *json, const leat_event_frame *frame)
{
    if (strcmp(frame->data_key, "reason") == 0) {
        put_text(json, frame->data_key, frame->data);
    } else if (strcmp(frame->data_key, "token") == 0) {
        /* Whoever holds it passes for an address that has been proved: its length is enough. */
        open_object(json, frame->data_key);
        open_object(json, "raw");
        leat_json_put_u64(json, "length", frame->data.len);
        leat_json_raw(json, "}}");
    } else {
        leat_json_put_hex(json, frame->data_key, frame->data);
    }
}

void leat_qlog_write_frame(leat_json *json, const leat_event_frame *frame)
{
    leat_json_item(json);
    leat_json_raw(json, "{");
    leat_json_put_string(json, "frame_type", frame->name);
    if (strcmp(frame->name, "connection_close") == 0) {
        leat_json_put_string(json, "error_space", frame->type & 1 ? "application" : "transport");
    }
    for (size_t i = 0; i < frame->values; i++) {
        write_value(json, frame->key[i], frame->value[i]);
    }
    if (frame->range_count != 0) {
        write_ranges(json, frame);
    }
    if (frame->data_key != NULL) {
        write_frame_data(json, frame);
    }
    leat_json_raw(json, "}");
}

/* ---- events ---------------------------------------------------------------------------------- */

static void put_ip(leat_json *json, const char *key, const leat_addr *addr)
{
    char text[INET6_ADDRSTRLEN];
    if (inet_ntop(addr->family == 4 ? AF_INET : AF_INET6, addr->ip, text, sizeof(text)) != NULL) {
        leat_json_put_string(json, key, text);
    }
}

static void write_addresses(leat_json *json, const leat_event_started *started)
{
    leat_json_put_string(json, "ip_version", started->remote.family == 4 ? "v4" : "v6");
    if (started->local.family != 0) {
        put_ip(json, "src_ip", &started->local);
        leat_json_put_u64(json, "src_port", started->local.port);
    }
    put_ip(json, "dst_ip", &started->remote);
    leat_json_put_u64(json, "dst_port", started->remote.port);
}

static void write_started(leat_json *json, const leat_event_started *started)
{
    char version[9];
    for (int i = 0; i < 8; i++) {
        version[i] = "0123456789abcdef"[started->version >> (28 - 4 * i) & 15];
    }
    version[8] = '\0';
    write_addresses(json, started);
    leat_json_put_hex(json, "src_cid", started->scid);
    leat_json_put_hex(json, "dst_cid", started->dcid);
    leat_json_put_string(json, "quic_version", version);
}

static void write_closed(leat_json *json, const leat_close_info *info)
{
    static const char *const triggers[] = {
        [LEAT_CLOSE_LOCAL] = "error",
        [LEAT_CLOSE_PEER] = "error",
        [LEAT_CLOSE_IDLE] = "idle_timeout",
        [LEAT_CLOSE_HANDSHAKE_TIMEOUT] = "handshake_timeout",
        [LEAT_CLOSE_RESET] = "stateless_reset",
        [LEAT_CLOSE_VERSION] = "version_mismatch",
        [LEAT_CLOSE_DROPPED] = "aborted",
    };
    bool by_close = info->kind == LEAT_CLOSE_LOCAL || info->kind == LEAT_CLOSE_PEER;
    const char *trigger = triggers[info->kind];
    if (by_close && info->application) {
        trigger = "application"; /* only the application knows which of its codes are errors */
    } else if (by_close && info->code == 0) {
        trigger = "clean";
    }
    leat_json_put_string(json, "owner", info->kind == LEAT_CLOSE_PEER ? "remote" : "local");
    if (by_close) {
        leat_json_put_u64(json, info->application ? "application_code" : "connection_code",
                          info->code);
    }
    leat_json_put_string(json, "trigger", trigger);
    if (info->reason.len > 0) {
        put_text(json, "reason", info->reason);
    }
}

/* Without its reset token, which lets whoever reads it end the connection. */
static void write_preferred(leat_json *json, const leat_event_parameters *p)
{
    open_object(json, "preferred_address");
    if (p->preferred_ip4.port != 0) {
        put_ip(json, "ip_v4", &p->preferred_ip4);
        leat_json_put_u64(json, "port_v4", p->preferred_ip4.port);
    }
    if (p->preferred_ip6.port != 0) {
        put_ip(json, "ip_v6", &p->preferred_ip6);
        leat_json_put_u64(json, "port_v6", p->preferred_ip6.port);
    }
    leat_json_put_hex(json, "connection_id", p->preferred_cid);
    leat_json_raw(json, "}");
}

static void write_parameters(leat_json *json, const leat_event_parameters *p)
{
    leat_json_put_string(json, "owner", p->local ? "local" : "remote");
    leat_json_put_bool(json, "disable_active_migration", p->disable_active_migration);
    leat_json_put_u64(json, "max_idle_timeout", p->max_idle_timeout_ms);
    leat_json_put_u64(json, "max_udp_payload_size", p->max_udp_payload_size);
    leat_json_put_u64(json, "ack_delay_exponent", p->ack_delay_exponent);
    leat_json_put_u64(json, "max_ack_delay", p->max_ack_delay_ms);
    leat_json_put_u64(json, "active_connection_id_limit", p->active_connection_id_limit);
    leat_json_put_u64(json, "max_datagram_frame_size", p->max_datagram_frame_size);
    leat_json_put_u64(json, "initial_max_data", p->initial_max_data);
    leat_json_put_u64(json, "initial_max_stream_data_bidi_local",
                      p->initial_max_stream_data_bidi_local);
    leat_json_put_u64(json, "initial_max_stream_data_bidi_remote",
                      p->initial_max_stream_data_bidi_remote);
    leat_json_put_u64(json, "initial_max_stream_data_uni", p->initial_max_stream_data_uni);
    leat_json_put_u64(json, "initial_max_streams_bidi", p->initial_max_streams_bidi);
    leat_json_put_u64(json, "initial_max_streams_uni", p->initial_max_streams_uni);
    if (p->preferred_cid.len > 0) {
        write_preferred(json, p);
    }
}

static void write_packet(leat_json *json, const leat_event_packet *packet, leat_span frames)
{
    open_object(json, "header");
    leat_json_put_string(json, "packet_type", packet->type);
    leat_json_put_u64(json, "packet_number", packet->number);
    leat_json_raw(json, "}");
    open_object(json, "raw");
    leat_json_put_u64(json, "length", packet->len);
    leat_json_raw(json, "}");
    if (frames.len > 0) {
        leat_json_key(json, "frames");
        leat_json_raw(json, "[");
        leat_json_bytes(json, (const char *)frames.data, frames.len);
        leat_json_raw(json, "]");
    }
}

static void write_dropped(leat_json *json, const leat_event_dropped *dropped)
{
    open_object(json, "header");
    leat_json_put_string(json, "packet_type", dropped->packet);
    leat_json_raw(json, "}");
    open_object(json, "raw");
    leat_json_put_u64(json, "length", dropped->len);
    leat_json_raw(json, "}");
    leat_json_put_string(json, "details", dropped->reason);
}

static void write_metrics(leat_json *json, const leat_event_metrics *m)
{
    leat_json_put_ms(json, "min_rtt", m->rtt_min);
    leat_json_put_ms(json, "smoothed_rtt", m->rtt_smoothed);
    leat_json_put_ms(json, "latest_rtt", m->rtt_latest);
    leat_json_put_ms(json, "rtt_variance", m->rtt_var);
    leat_json_put_u64(json, "pto_count", m->pto_count);
    leat_json_put_u64(json, "congestion_window", m->cwnd);
    leat_json_put_u64(json, "bytes_in_flight", m->bytes_in_flight);
    if (m->ssthresh != UINT64_MAX) {
        leat_json_put_u64(json, "ssthresh", m->ssthresh);
    }
}

static void write_key(leat_json *json, const leat_event_key *key)
{
    leat_json_put_string(json, "key_type", key->name);
    leat_json_put_string(json, "trigger", key->trigger);
    if (strstr(key->name, "1rtt") != NULL) {
        leat_json_put_u64(json, "key_phase", key->phase);
    }
}

static void write_handshake(leat_json *json, const leat_event_handshake *handshake)
{
    leat_json_put_string(json, "new",
                         handshake->confirmed ? "handshake_confirmed" : "handshake_complete");
    put_text(json, "alpn", handshake->alpn);
    put_text(json, "cipher", handshake->cipher);
}

static void write_data(leat_json *json, const leat_event *event, leat_span frames)
{
    switch (event->type) {
    case LEAT_EVENT_CONNECTION_STARTED:
        write_started(json, &event->started);
        break;
    case LEAT_EVENT_CONNECTION_CLOSED:
        write_closed(json, &event->closed);
        break;
    case LEAT_EVENT_PARAMETERS_SET:
        write_parameters(json, &event->parameters);
        break;
    case LEAT_EVENT_PACKET_SENT:
    case LEAT_EVENT_PACKET_RECEIVED:
    case LEAT_EVENT_PACKET_LOST:
        write_packet(json, &event->packet, frames);
        break;
    case LEAT_EVENT_PACKET_DROPPED:
        write_dropped(json, &event->dropped);
        break;
    case LEAT_EVENT_METRICS_UPDATED:
        write_metrics(json, &event->metrics);
        break;
    case LEAT_EVENT_CONGESTION_STATE:
        leat_json_put_string(json, "old", event->congestion.from);
        leat_json_put_string(json, "new", event->congestion.to);
        break;
    case LEAT_EVENT_ECN_STATE:
        leat_json_put_string(json, "old", event->ecn.from);
        leat_json_put_string(json, "new", event->ecn.to);
        break;
    case LEAT_EVENT_MTU_UPDATED:
        leat_json_put_u64(json, "old", event->mtu.from);
        leat_json_put_u64(json, "new", event->mtu.to);
        break;
    case LEAT_EVENT_KEY_UPDATED:
    case LEAT_EVENT_KEY_DISCARDED:
        write_key(json, &event->key);
        break;
    case LEAT_EVENT_HANDSHAKE:
        write_handshake(json, &event->handshake);
        break;
    case LEAT_EVENT_FRAME_SENT:
    case LEAT_EVENT_FRAME_RECEIVED:
    case LEAT_EVENT_RETRY_MODE: /* of no connection: in no file */
    case LEAT_EVENT_TYPES:
        break;
    }
}

/* Where qlog puts each event. */
static const char *const names[LEAT_EVENT_TYPES] = {
    [LEAT_EVENT_CONNECTION_STARTED] = "connectivity:connection_started",
    [LEAT_EVENT_CONNECTION_CLOSED] = "connectivity:connection_closed",
    [LEAT_EVENT_PARAMETERS_SET] = "transport:parameters_set",
    [LEAT_EVENT_PACKET_SENT] = "transport:packet_sent",
    [LEAT_EVENT_PACKET_RECEIVED] = "transport:packet_received",
    [LEAT_EVENT_PACKET_DROPPED] = "transport:packet_dropped",
    [LEAT_EVENT_PACKET_LOST] = "recovery:packet_lost",
    [LEAT_EVENT_METRICS_UPDATED] = "recovery:metrics_updated",
    [LEAT_EVENT_CONGESTION_STATE] = "recovery:congestion_state_updated",
    [LEAT_EVENT_ECN_STATE] = "recovery:ecn_state_updated",
    [LEAT_EVENT_MTU_UPDATED] = "transport:mtu_updated",
    [LEAT_EVENT_KEY_UPDATED] = "security:key_updated",
    [LEAT_EVENT_KEY_DISCARDED] = "security:key_discarded",
    [LEAT_EVENT_HANDSHAKE] = "connectivity:connection_state_updated",
};

void leat_qlog_write_event(leat_json *json, const leat_event *event, leat_time since,
                           leat_span frames)
{
    if ((unsigned)event->type >= LEAT_EVENT_TYPES || names[event->type] == NULL) {
        return;
    }
    leat_json_raw(json, RECORD_SEPARATOR "{");
    leat_json_put_ms(json, "time", since);
    leat_json_put_string(json, "name", names[event->type]);
    open_object(json, "data");
    write_data(json, event, frames);
    leat_json_raw(json, "}}\n");
}
