/* io/qlog_text.c: events as qlog says them. Every function writes the fields of one object, in the
 * order of the draft.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io/qlog.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cursor.h"

#define RECORD_SEPARATOR "\x1e"

static void put_text(leat_json *json, const char *key, leat_span text)
{
    leat_json_key(json, key);
    leat_json_text(json, text);
}

/* RFC 3339. */
static void put_date(leat_json *json, const char *key, uint64_t wall_ms)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm = {.tm_year = 0};
    char text[96];
    gmtime_r(&seconds, &tm);
    snprintf(text, sizeof(text), "%04d-%02d-%02dT%02d:%02d:%02d.%03uZ", tm.tm_year + 1900,
             tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
             (unsigned)(wall_ms % 1000));
    leat_json_put_string(json, key, text);
}

void leat_qlog_write_header(leat_json *json, const leat_event *event, uint64_t wall_ms)
{
    leat_json_raw(json, RECORD_SEPARATOR "{");
    leat_json_put_string(json, "file_schema", LEAT_QLOG_FILE_SCHEMA);
    leat_json_put_string(json, "serialization_format", "application/qlog+json-seq");
    leat_json_put_string(json, "title", "leat");
    leat_qlog_open_object(json, "trace");
    leat_qlog_open_object(json, "common_fields");
    if (!event->no_conn) {
        leat_json_put_hex(json, "group_id", event->odcid);
    }
    leat_json_put_string(json, "time_format", "relative_to_epoch");
    leat_qlog_open_object(json, "reference_time");
    leat_json_put_string(json, "clock_type", "monotonic");
    leat_json_put_string(json, "epoch", "unknown");
    put_date(json, "wall_clock_time", wall_ms);
    leat_json_raw(json, "}}");
    leat_qlog_open_object(json, "vantage_point");
    leat_json_put_string(json, "name", "leat");
    leat_json_put_string(json, "type", event->server ? "server" : "client");
    leat_json_raw(json, "}");
    leat_json_key(json, "event_schemas");
    leat_json_raw(json, "[\"" LEAT_QLOG_EVENT_SCHEMA "\"]}}\n");
}

/* ---- data types ------------------------------------------------------------------------------ */

static void version_text(uint32_t version, char out[9])
{
    for (int i = 0; i < 8; i++) {
        out[i] = "0123456789abcdef"[version >> (28 - 4 * i) & 15];
    }
    out[8] = '\0';
}

static void put_version(leat_json *json, const char *key, uint32_t version)
{
    char text[9];
    version_text(version, text);
    leat_json_put_string(json, key, text);
}

/* Four bytes each. */
static void put_versions(leat_json *json, const char *key, leat_span list)
{
    char text[9];
    leat_json_key(json, key);
    leat_json_raw(json, "[");
    for (size_t i = 0; i + 4 <= list.len; i += 4) {
        version_text(leat_load_u32(list.data + i), text);
        leat_json_item(json);
        leat_json_string(json, text);
    }
    leat_json_raw(json, "]");
}

/* Where it is known. */
static void put_cid(leat_json *json, const char *key, leat_span cid)
{
    if (cid.data != NULL) {
        leat_json_put_hex(json, key, cid);
    }
}

static void put_addr(leat_json *json, const leat_addr *addr)
{
    char text[INET6_ADDRSTRLEN];
    bool v4 = addr->family == 4;
    if (addr->family != 0 &&
        inet_ntop(v4 ? AF_INET : AF_INET6, addr->ip, text, sizeof(text)) != NULL) {
        leat_json_put_string(json, v4 ? "ip_v4" : "ip_v6", text);
        leat_json_put_u64(json, v4 ? "port_v4" : "port_v6", addr->port);
    }
}

/* TupleEndpointInfo: an end of a path, and the connection ID that packets to it carry. */
static void put_end(leat_json *json, const char *key, const leat_addr *addr, leat_span cid)
{
    leat_qlog_open_object(json, key);
    put_addr(json, addr);
    if (cid.data != NULL) {
        leat_json_key(json, "connection_ids");
        leat_json_raw(json, "[");
        leat_json_hex(json, cid);
        leat_json_raw(json, "]");
    }
    leat_json_raw(json, "}");
}

/* TupleID: a text. The handshake's path is the empty one, which nothing needs to say. */
static void put_tuple(leat_json *json, const char *key, uint32_t path)
{
    char text[12];
    snprintf(text, sizeof(text), "%u", (unsigned)path);
    leat_json_put_string(json, key, path == 0 ? "" : text);
}

/* ---- events: connectivity -------------------------------------------------------------------- */

static void write_started(leat_json *json, const leat_event *event)
{
    put_end(json, "local", &event->started.local, event->started.scid);
    put_end(json, "remote", &event->started.remote, event->started.dcid);
}

static void write_closed(leat_json *json, const leat_event *event)
{
    static const char *const triggers[] = {
        [LEAT_CLOSE_LOCAL] = "error",           [LEAT_CLOSE_PEER] = "error",
        [LEAT_CLOSE_IDLE] = "idle_timeout",     [LEAT_CLOSE_HANDSHAKE_TIMEOUT] = "aborted",
        [LEAT_CLOSE_RESET] = "stateless_reset", [LEAT_CLOSE_VERSION] = "version_mismatch",
        [LEAT_CLOSE_DROPPED] = "aborted",
    };
    const leat_close_info *info = &event->closed;
    bool by_close = info->kind == LEAT_CLOSE_LOCAL || info->kind == LEAT_CLOSE_PEER;
    const char *trigger = triggers[info->kind];
    if (by_close && info->application) {
        trigger = "application"; /* only the application knows which of its codes are errors */
    } else if (by_close && info->code == 0) {
        trigger = "unspecified";
    }
    leat_json_put_string(json, "initiator", info->kind == LEAT_CLOSE_PEER ? "remote" : "local");
    if (by_close) {
        leat_qlog_put_error(json, info->application ? "application_error" : "connection_error",
                            info->application, info->code);
    }
    if (info->reason.len > 0) {
        put_text(json, "reason", info->reason);
    } else if (info->detail != NULL) {
        leat_json_put_string(json, "reason", info->detail);
    } else if (info->kind == LEAT_CLOSE_HANDSHAKE_TIMEOUT) {
        leat_json_put_string(json, "reason", "handshake timeout");
    }
    leat_json_put_string(json, "trigger", trigger);
}

static void write_cid(leat_json *json, const leat_event *event)
{
    leat_json_put_string(json, "initiator", event->cid.local ? "local" : "remote");
    leat_json_put_hex(json, "old", event->cid.from);
    leat_json_put_hex(json, "new", event->cid.to);
}

static void write_spin(leat_json *json, const leat_event *event)
{
    leat_json_put_bool(json, "state", event->spin);
}

/* Extensions: resumed, early_data. */
static void write_handshake(leat_json *json, const leat_event *event)
{
    static const char *const fates[] = {
        [LEAT_EARLY_NONE] = "none",
        [LEAT_EARLY_OFFERED] = "offered",
        [LEAT_EARLY_ACCEPTED] = "accepted",
        [LEAT_EARLY_REJECTED] = "rejected",
    };
    const leat_event_handshake *h = &event->handshake;
    leat_json_put_string(json, "new", h->confirmed ? "handshake_confirmed" : "handshake_complete");
    if (!h->confirmed) {
        leat_json_put_bool(json, "resumed", h->resumed);
        leat_json_put_string(json, "early_data", fates[h->early]);
    }
}

static void write_alpn(leat_json *json, const leat_event *event)
{
    leat_qlog_open_object(json, "chosen_alpn");
    put_text(json, "string_value", event->handshake.alpn);
    leat_json_raw(json, "}");
}

static void write_path(leat_json *json, const leat_event *event)
{
    const leat_event_path *path = &event->path;
    put_tuple(json, "tuple_id", path->id);
    if (!path->gone) {
        put_end(json, "tuple_remote", &path->remote, path->dcid);
        put_end(json, "tuple_local", &path->local, path->scid);
    }
}

static void write_migration(leat_json *json, const leat_event *event)
{
    const leat_span none = {NULL, 0};
    leat_json_put_string(json, "new", event->migration.state);
    put_tuple(json, "tuple_id", event->migration.path);
    put_end(json, "tuple_remote", &event->migration.remote, none);
    put_end(json, "tuple_local", &event->migration.local, none);
}

static void write_mtu(leat_json *json, const leat_event *event)
{
    leat_json_put_u64(json, "old", event->mtu.from);
    leat_json_put_u64(json, "new", event->mtu.to);
}

static void write_retry_mode(leat_json *json, const leat_event *event)
{
    leat_json_put_bool(json, "retry_required", event->retry_mode.on);
}

/* ---- events: transport ----------------------------------------------------------------------- */

static void write_versions(leat_json *json, const leat_event *event)
{
    const leat_event_versions *v = &event->versions;
    if (v->server.len > 0) {
        put_versions(json, "server_versions", v->server);
    }
    if (v->client.len > 0) {
        put_versions(json, "client_versions", v->client);
    }
    if (v->chosen != 0) {
        put_version(json, "chosen_version", v->chosen);
    }
}

/* Without its reset token, which lets whoever reads it end the connection. */
static void write_preferred(leat_json *json, const leat_event_parameters *p)
{
    leat_qlog_open_object(json, "preferred_address");
    if (p->preferred_ip4.port != 0) {
        put_addr(json, &p->preferred_ip4);
    }
    if (p->preferred_ip6.port != 0) {
        put_addr(json, &p->preferred_ip6);
    }
    leat_json_put_hex(json, "connection_id", p->preferred_cid);
    leat_json_raw(json, "}");
}

static void write_limits(leat_json *json, const leat_event_parameters *p)
{
    leat_json_put_bool(json, "disable_active_migration", p->disable_active_migration);
    leat_json_put_u64(json, "max_idle_timeout", p->max_idle_timeout_ms);
    leat_json_put_u64(json, "max_udp_payload_size", p->max_udp_payload_size);
    leat_json_put_u64(json, "active_connection_id_limit", p->active_connection_id_limit);
    leat_json_put_u64(json, "initial_max_data", p->initial_max_data);
    leat_json_put_u64(json, "initial_max_stream_data_bidi_local",
                      p->initial_max_stream_data_bidi_local);
    leat_json_put_u64(json, "initial_max_stream_data_bidi_remote",
                      p->initial_max_stream_data_bidi_remote);
    leat_json_put_u64(json, "initial_max_stream_data_uni", p->initial_max_stream_data_uni);
    leat_json_put_u64(json, "initial_max_streams_bidi", p->initial_max_streams_bidi);
    leat_json_put_u64(json, "initial_max_streams_uni", p->initial_max_streams_uni);
    leat_json_put_u64(json, "max_datagram_frame_size", p->max_datagram_frame_size);
}

/* Extensions: min_ack_delay (microseconds, as on the wire), version_information. */
static void write_parameters(leat_json *json, const leat_event *event)
{
    const leat_event_parameters *p = &event->parameters;
    leat_json_put_string(json, "initiator", p->local ? "local" : "remote");
    put_cid(json, "original_destination_connection_id", p->original_dcid);
    put_cid(json, "initial_source_connection_id", p->initial_scid);
    put_cid(json, "retry_source_connection_id", p->retry_scid);
    leat_json_put_u64(json, "ack_delay_exponent", p->ack_delay_exponent);
    leat_json_put_u64(json, "max_ack_delay", p->max_ack_delay_ms);
    write_limits(json, p);
    leat_json_put_bool(json, "grease_quic_bit", p->grease_quic_bit);
    leat_json_put_bool(json, "reset_stream_at", p->reset_stream_at);
    if (p->preferred_cid.len > 0) {
        write_preferred(json, p);
    }
    if (p->min_ack_delay_us != 0) {
        leat_json_put_u64(json, "min_ack_delay", p->min_ack_delay_us);
    }
    if (p->chosen_version != 0) {
        leat_qlog_open_object(json, "version_information");
        put_version(json, "chosen_version", p->chosen_version);
        put_versions(json, "available_versions", p->available_versions);
        leat_json_raw(json, "}");
    }
}

static void write_restored(leat_json *json, const leat_event *event)
{
    write_limits(json, &event->parameters);
}

/* What TLS has settled: of no side, and beside the sides' parameters. */
static void write_tls(leat_json *json, const leat_event *event)
{
    leat_json_put_bool(json, "early_data_enabled", event->handshake.early == LEAT_EARLY_ACCEPTED);
    put_text(json, "tls_cipher", event->handshake.cipher);
}

static bool is_type(const leat_event_packet *packet, const char *type)
{
    return strcmp(packet->type, type) == 0;
}

static void write_packet_header(leat_json *json, const leat_event_packet *packet)
{
    bool one_rtt = is_type(packet, "1RTT");
    leat_qlog_open_object(json, "header");
    leat_json_put_string(json, "packet_type", packet->type);
    if (one_rtt && packet->pn_len != 0) {
        leat_json_put_bool(json, "spin_bit", packet->spin);
        leat_json_put_u64(json, "key_phase", packet->key_phase);
    }
    if (packet->pn_len != 0) {
        leat_json_put_u64(json, "packet_number_length", packet->pn_len);
    }
    if (one_rtt || is_type(packet, "0RTT") || is_type(packet, "handshake") ||
        is_type(packet, "initial")) {
        leat_json_put_u64(json, "packet_number", packet->number);
    }
    if (packet->token.len > 0) {
        leat_qlog_put_token(json, packet->retry_token ? "retry" : "resumption", packet->token.len);
    }
    if (packet->version != 0) {
        put_version(json, "version", packet->version);
    }
    if (!one_rtt) {
        put_cid(json, "scid", packet->scid);
    }
    put_cid(json, "dcid", packet->dcid);
    leat_json_raw(json, "}");
}

/* Extension: ecn, where the datagram is marked. */
static void write_packet(leat_json *json, const leat_event *event, leat_span frames)
{
    static const char *const marks[] = {"Not-ECT", "ECT(1)", "ECT(0)", "CE"};
    const leat_event_packet *packet = &event->packet;
    write_packet_header(json, packet);
    if (frames.len > 0) {
        leat_json_key(json, "frames");
        leat_json_raw(json, "[");
        leat_json_bytes(json, (const char *)frames.data, frames.len);
        leat_json_raw(json, "]");
    }
    if (packet->versions.len > 0) {
        put_versions(json, "supported_versions", packet->versions);
    }
    leat_qlog_put_length(json, "length", packet->len);
    if (packet->mtu_probe) {
        leat_json_put_bool(json, "is_mtu_probe_packet", true);
    }
    if (packet->ecn != LEAT_ECN_NOT_ECT) {
        leat_json_put_string(json, "ecn", marks[packet->ecn & 3]);
    }
}

static void write_buffered(leat_json *json, const leat_event *event)
{
    leat_qlog_open_object(json, "header");
    leat_json_put_string(json, "packet_type", event->packet.type);
    put_cid(json, "dcid", event->packet.dcid);
    leat_json_raw(json, "}");
    leat_qlog_put_length(json, "length", event->packet.len);
    leat_json_put_string(json, "trigger", "keys_unavailable");
}

static void write_dropped(leat_json *json, const leat_event *event)
{
    const leat_event_dropped *dropped = &event->dropped;
    leat_qlog_open_object(json, "header");
    leat_json_put_string(json, "packet_type", dropped->packet);
    leat_json_raw(json, "}");
    leat_qlog_put_length(json, "length", dropped->len);
    leat_qlog_open_object(json, "details");
    leat_json_put_string(json, "reason", dropped->reason);
    leat_json_raw(json, "}");
    leat_json_put_string(json, "trigger", dropped->trigger);
}

/* ---- events: security, recovery -------------------------------------------------------------- */

static void write_key(leat_json *json, const leat_event *event)
{
    leat_json_put_string(json, "key_type", event->key.name);
    if (strstr(event->key.name, "1rtt") != NULL) {
        leat_json_put_u64(json, "key_phase", event->key.phase);
    }
    leat_json_put_string(json, "trigger", event->key.trigger);
}

static void write_metrics(leat_json *json, const leat_event *event)
{
    const leat_event_metrics *m = &event->metrics;
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

static void write_congestion(leat_json *json, const leat_event *event)
{
    leat_json_put_string(json, "old", event->congestion.from);
    leat_json_put_string(json, "new", event->congestion.to);
}

static void write_lost(leat_json *json, const leat_event *event)
{
    write_packet_header(json, &event->packet);
    if (event->packet.mtu_probe) {
        leat_json_put_bool(json, "is_mtu_probe_packet", true);
    }
    if (event->packet.trigger != NULL) {
        leat_json_put_string(json, "trigger", event->packet.trigger);
    }
}

static void write_ecn(leat_json *json, const leat_event *event)
{
    leat_json_put_string(json, "old", event->ecn.from);
    leat_json_put_string(json, "new", event->ecn.to);
}

/* ---- records --------------------------------------------------------------------------------- */

typedef void write_fn(leat_json *json, const leat_event *event);

/* The name of each event, and who writes its data; PACKET_SENT and _RECEIVED have frames besides.
 */
static const struct {
    const char *name;
    write_fn *write;
} records[LEAT_EVENT_TYPES] = {
    [LEAT_EVENT_CONNECTION_STARTED] = {"connection_started", write_started},
    [LEAT_EVENT_CONNECTION_CLOSED] = {"connection_closed", write_closed},
    [LEAT_EVENT_VERSION_INFORMATION] = {"version_information", write_versions},
    [LEAT_EVENT_PARAMETERS_SET] = {"parameters_set", write_parameters},
    [LEAT_EVENT_PARAMETERS_RESTORED] = {"parameters_restored", write_restored},
    [LEAT_EVENT_PACKET_SENT] = {"packet_sent", NULL},
    [LEAT_EVENT_PACKET_RECEIVED] = {"packet_received", NULL},
    [LEAT_EVENT_PACKET_BUFFERED] = {"packet_buffered", write_buffered},
    [LEAT_EVENT_PACKET_DROPPED] = {"packet_dropped", write_dropped},
    [LEAT_EVENT_PACKET_LOST] = {"packet_lost", write_lost},
    [LEAT_EVENT_METRICS_UPDATED] = {"recovery_metrics_updated", write_metrics},
    [LEAT_EVENT_CONGESTION_STATE] = {"congestion_state_updated", write_congestion},
    [LEAT_EVENT_ECN_STATE] = {"ecn_state_updated", write_ecn},
    [LEAT_EVENT_MTU_UPDATED] = {"mtu_updated", write_mtu},
    [LEAT_EVENT_SPIN_BIT] = {"spin_bit_updated", write_spin},
    [LEAT_EVENT_KEY_UPDATED] = {"key_updated", write_key},
    [LEAT_EVENT_KEY_DISCARDED] = {"key_discarded", write_key},
    [LEAT_EVENT_HANDSHAKE] = {"connection_state_updated", write_handshake},
    [LEAT_EVENT_CONNECTION_ID] = {"connection_id_updated", write_cid},
    [LEAT_EVENT_PATH] = {"tuple_assigned", write_path},
    [LEAT_EVENT_MIGRATION] = {"migration_state_updated", write_migration},
    [LEAT_EVENT_RETRY_MODE] = {"server_listening", write_retry_mode},
};

static void begin_record(leat_json *json, const leat_event *event, leat_time since,
                         const char *name)
{
    leat_json_raw(json, RECORD_SEPARATOR "{");
    leat_json_put_ms(json, "time", since);
    leat_json_key(json, "name");
    leat_json_raw(json, "\"quic:");
    leat_json_raw(json, name);
    leat_json_raw(json, "\"");
    if (event->no_conn && event->odcid.len > 0) {
        leat_json_put_hex(json, "group_id", event->odcid);
    }
}

static void write_record(leat_json *json, const leat_event *event, leat_time since,
                         const char *name, write_fn *write)
{
    begin_record(json, event, since, name);
    leat_qlog_open_object(json, "data");
    write(json, event);
    leat_json_raw(json, "}}\n");
}

static void write_packet_record(leat_json *json, const leat_event *event, leat_time since,
                                leat_span frames)
{
    begin_record(json, event, since, records[event->type].name);
    if (event->packet.path != 0) {
        put_tuple(json, "tuple", event->packet.path);
    }
    leat_qlog_open_object(json, "data");
    write_packet(json, event, frames);
    leat_json_raw(json, "}}\n");
}

void leat_qlog_write_event(leat_json *json, const leat_event *event, leat_time since,
                           leat_span frames)
{
    if ((unsigned)event->type >= LEAT_EVENT_TYPES || records[event->type].name == NULL) {
        return;
    }
    if (records[event->type].write == NULL) {
        write_packet_record(json, event, since, frames);
        return;
    }
    write_record(json, event, since, records[event->type].name, records[event->type].write);
    if (event->type == LEAT_EVENT_HANDSHAKE && !event->handshake.confirmed) {
        write_record(json, event, since, "alpn_information", write_alpn);
        write_record(json, event, since, "parameters_set", write_tls);
    }
}
