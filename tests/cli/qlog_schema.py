"""What draft-ietf-quic-qlog-quic-events-12 (in files of draft-ietf-quic-qlog-main-schema-13) allows: the
events and frames, their fields and the values of these, written down from the draft's CDDL; and, apart from
it, what leat adds at the draft's extension points. check_file() raises ValueError at the first thing that is
neither.

SPDX-License-Identifier: MIT
"""
import json
import re

EVENT_SCHEMA = "urn:ietf:params:qlog:events:quic-12"


# ---- types: each is a function of a value that raises ValueError ------------------------------------------

def fail(value, what):
    raise ValueError(f"{value!r} is not {what}")


def number(bits):
    def check(value):
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << bits:
            fail(value, f"a number of {bits} bits")
    return check


def real(value):
    if not isinstance(value, (int, float)) or isinstance(value, bool) or value < 0:
        fail(value, "a number that is not negative")


def flag(value):
    if not isinstance(value, bool):
        fail(value, "true or false")


def text(value):
    if not isinstance(value, str):
        fail(value, "a text")


def hexes(value):
    if not isinstance(value, str) or not re.fullmatch("(?:[0-9a-f]{2})*", value):
        fail(value, "a string of hex digits")


def one_of(*values):
    def check(value):
        if value not in values:
            fail(value, "one of " + ", ".join(map(str, values)))
    return check


def list_of(item, least=0, most=None):
    def check(value):
        if not isinstance(value, list) or len(value) < least or (most and len(value) > most):
            fail(value, "a list as it should be")
        for each in value:
            item(each)
    return check


def anything(_value):
    pass


def matches(pattern):
    def check(value):
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            fail(value, pattern)
    return check


def either(*types):
    def check(value):
        for each in types:
            try:
                return each(value)
            except ValueError:
                pass
        return fail(value, "any of its types")
    return check


class Fields:
    """An object: a field whose name begins with '?' may be left out; `beyond` are leat's own."""

    def __init__(self, fields, beyond=None):
        self.needed = {k: v for k, v in fields.items() if k[0] != "?"}
        self.known = {k.lstrip("?"): v for k, v in fields.items()} | (beyond or {})

    def __call__(self, value):
        if not isinstance(value, dict):
            fail(value, "an object")
        for name in self.needed:
            if name not in value:
                fail(value, f"complete without '{name}'")
        for name, each in value.items():
            if name not in self.known:
                fail(name, f"a field here: {value}")
            try:
                self.known[name](each)
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None


u8, u16, u32, u64 = number(8), number(16), number(32), number(64)
version = hexes
cid = hexes
initiator = one_of("local", "remote")
stream_type = one_of("unidirectional", "bidirectional")
space = one_of("initial", "handshake", "application_data")
raw = Fields({"?length": u64, "?payload_length": u64, "?data": hexes})
raw_length = Fields({"length": u64})
ecn = one_of("Not-ECT", "ECT(1)", "ECT(0)", "CE")
end = Fields({"?ip_v4": text, "?port_v4": u16, "?ip_v6": text, "?port_v6": u16,
              "?connection_ids": list_of(cid, 1)})
transport_error = either(
    one_of("no_error", "internal_error", "connection_refused", "flow_control_error", "stream_limit_error",
           "stream_state_error", "final_size_error", "frame_encoding_error", "transport_parameter_error",
           "connection_id_limit_error", "protocol_violation", "invalid_token", "application_error",
           "crypto_buffer_exceeded", "key_update_error", "aead_limit_reached", "no_viable_path", "unknown"),
    matches("crypto_error_0x1[0-9a-f][0-9a-f]"))
application_error = one_of("unknown")
token = Fields({"?type": one_of("retry", "resumption"), "?details": anything, "?raw": raw})
packet_header = Fields({
    "packet_type": one_of("initial", "handshake", "0RTT", "1RTT", "retry", "version_negotiation",
                          "stateless_reset", "unknown"),
    "?packet_type_bytes": u64, "?spin_bit": flag, "?key_phase": u64, "?key_phase_bit": flag,
    "?packet_number_length": u8, "?packet_number": u64, "?token": token, "?length": u16,
    "?version": version, "?scil": u8, "?dcil": u8, "?scid": cid, "?dcid": cid})
alpn = Fields({"?byte_value": hexes, "?string_value": text})
preferred_address = Fields({
    "?ip_v4": text, "?port_v4": u16, "?ip_v6": text, "?port_v6": u16, "connection_id": cid,
    "?stateless_reset_token": hexes})  # the draft wants the token: a secret, which leat leaves out
migration_state = one_of("probing_started", "probing_abandoned", "probing_successful",
                         "migration_started", "migration_abandoned", "migration_complete")
key = {"key_type": matches("(server|client)_(initial|handshake|0rtt|1rtt)_secret"), "?key_phase": u64,
       "?trigger": one_of("tls", "remote_update", "local_update")}
restored = {name: u64 for name in (
    "?max_idle_timeout", "?max_udp_payload_size", "?active_connection_id_limit", "?initial_max_data",
    "?initial_max_stream_data_bidi_local", "?initial_max_stream_data_bidi_remote",
    "?initial_max_stream_data_uni", "?initial_max_streams_bidi", "?initial_max_streams_uni",
    "?max_datagram_frame_size")} | {"?disable_active_migration": flag}

# ---- frames ------------------------------------------------------------------------------------------------

error_code = {"error": application_error, "?error_code": u64}
FRAMES = {
    "padding": {},
    "ping": {},
    "ack": {"?ack_delay": real, "?acked_ranges": list_of(list_of(u64, 1, 2), 1), "?ect1": u64,
            "?ect0": u64, "?ce": u64},
    "reset_stream": {"stream_id": u64, "final_size": u64} | error_code,
    "reset_stream_at": {"stream_id": u64, "final_size": u64, "reliable_size": u64} | error_code,
    "stop_sending": {"stream_id": u64} | error_code,
    "crypto": {"offset": u64, "raw": raw_length},
    "new_token": {"token": token},
    "stream": {"stream_id": u64, "?offset": u64, "?fin": flag},
    "max_data": {"maximum": u64},
    "max_stream_data": {"stream_id": u64, "maximum": u64},
    "max_streams": {"stream_type": stream_type, "maximum": u64},
    "data_blocked": {"limit": u64},
    "stream_data_blocked": {"stream_id": u64, "limit": u64},
    "streams_blocked": {"stream_type": stream_type, "limit": u64},
    "new_connection_id": {"sequence_number": u64, "retire_prior_to": u64, "connection_id": cid,
                          "?connection_id_length": u8},
    "retire_connection_id": {"sequence_number": u64},
    "path_challenge": {"?data": matches("[0-9a-f]{16}")},
    "path_response": {"?data": matches("[0-9a-f]{16}")},
    "connection_close": {"?error_space": one_of("transport", "application"),
                         "?error": transport_error, "?error_code": u64, "?reason": text,
                         "?reason_bytes": hexes, "?trigger_frame_type": either(u64, text)},
    "handshake_done": {},
    "datagram": {},
}
FRAMES_BEYOND = {  # draft-ietf-quic-ack-frequency
    "ack_frequency": {"sequence_number": u64, "ack_eliciting_threshold": u64,
                      "requested_max_ack_delay": u64, "reordering_threshold": u64},
    "immediate_ack": {},
}
FRAME_FIELDS = {name: Fields({"?raw": raw, "frame_type": text} | fields)
                for name, fields in (FRAMES | FRAMES_BEYOND).items()}


def frame(value):
    if not isinstance(value, dict) or value.get("frame_type") not in FRAME_FIELDS:
        fail(value, "a frame")
    FRAME_FIELDS[value["frame_type"]](value)


# ---- events ------------------------------------------------------------------------------------------------

frames = list_of(frame)
packet = {"header": packet_header, "?frames": frames, "?supported_versions": list_of(version, 1),
          "?raw": raw, "?datagram_id": u32}
EVENTS = {
    "server_listening": Fields({"?ip_v4": text, "?port_v4": u16, "?ip_v6": text, "?port_v6": u16,
                                "?retry_required": flag}),
    "connection_started": Fields({"local": end, "remote": end}),
    "connection_closed": Fields({
        "?initiator": initiator, "?connection_error": transport_error,
        "?application_error": application_error, "?error_code": u64, "?internal_code": u64,
        "?reason": text,
        "?trigger": one_of("idle_timeout", "application", "error", "version_mismatch", "stateless_reset",
                           "aborted", "unspecified")}),
    "connection_id_updated": Fields({"initiator": initiator, "?old": cid, "?new": cid}),
    "spin_bit_updated": Fields({"state": flag}),
    "connection_state_updated": Fields({
        "?old": text,
        "new": one_of("attempted", "handshake_started", "handshake_complete", "closed", "peer_validated",
                      "early_write", "handshake_confirmed", "closing", "draining")},
        beyond={"resumed": flag, "early_data": one_of("none", "offered", "accepted", "rejected")}),
    "tuple_assigned": Fields({"tuple_id": text, "?tuple_remote": end, "?tuple_local": end}),
    "mtu_updated": Fields({"?old": u32, "new": u32, "?done": flag}),
    "version_information": Fields({"?server_versions": list_of(version, 1),
                                   "?client_versions": list_of(version, 1), "?chosen_version": version}),
    "alpn_information": Fields({"?server_alpns": list_of(alpn), "?client_alpns": list_of(alpn),
                                "?chosen_alpn": alpn}),
    "parameters_set": Fields({
        "?initiator": initiator, "?resumption_allowed": flag, "?early_data_enabled": flag,
        "?tls_cipher": text, "?original_destination_connection_id": cid,
        "?initial_source_connection_id": cid, "?retry_source_connection_id": cid,
        "?ack_delay_exponent": u64, "?max_ack_delay": u64, "?preferred_address": preferred_address,
        "?grease_quic_bit": flag, "?reset_stream_at": flag} | restored,
        beyond={"min_ack_delay": u64,
                "version_information": Fields({"chosen_version": version,
                                               "available_versions": list_of(version)})}),
    "parameters_restored": Fields(restored),
    "packet_sent": Fields(packet | {"?is_mtu_probe_packet": flag, "?trigger": text}, beyond={"ecn": ecn}),
    "packet_received": Fields(packet | {"?trigger": one_of("keys_available")}, beyond={"ecn": ecn}),
    "packet_dropped": Fields({
        "?header": packet_header, "?raw": raw, "?datagram_id": u32, "?details": anything,
        "?trigger": one_of("internal_error", "rejected", "unsupported", "invalid", "duplicate",
                           "connection_unknown", "decryption_failure", "key_unavailable", "general")}),
    "packet_buffered": Fields({"?header": packet_header, "?raw": raw, "?datagram_id": u32,
                               "?trigger": one_of("backpressure", "keys_unavailable")}),
    "migration_state_updated": Fields({"?old": migration_state, "new": migration_state, "?tuple_id": text,
                                       "?tuple_remote": end, "?tuple_local": end}),
    "key_updated": Fields(key | {"?old": hexes, "?new": hexes}),
    "key_discarded": Fields(key | {"?key": hexes}),
    "recovery_metrics_updated": Fields({
        "?min_rtt": real, "?smoothed_rtt": real, "?latest_rtt": real, "?rtt_variance": real,
        "?pto_count": u16, "?congestion_window": u64, "?bytes_in_flight": u64, "?ssthresh": u64,
        "?packets_in_flight": u64, "?pacing_rate": u64}),
    "congestion_state_updated": Fields({"?old": text, "new": text, "?trigger": text}),
    "packet_lost": Fields({"?header": packet_header, "?frames": frames, "?is_mtu_probe_packet": flag,
                           "?trigger": one_of("reordering_threshold", "time_threshold", "pto_expired")}),
    "ecn_state_updated": Fields({"?old": one_of("testing", "unknown", "failed", "capable"),
                                 "new": one_of("testing", "unknown", "failed", "capable")}),
}
EVENT = Fields({"time": real, "name": matches("quic:[a-z_]+"), "data": anything, "?tuple": text,
                "?group_id": text})
HEADER = Fields({
    "file_schema": one_of("urn:ietf:params:qlog:file:sequential"),
    "serialization_format": one_of("application/qlog+json-seq"), "?title": text,
    "trace": Fields({
        "?common_fields": Fields({
            "?group_id": text, "?time_format": one_of("relative_to_epoch", "relative_to_previous_event"),
            "?reference_time": Fields({
                "clock_type": one_of("monotonic"), "epoch": one_of("unknown"),
                "?wall_clock_time": matches(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")})}),
        "?vantage_point": Fields({"?name": text, "type": one_of("client", "server")}),
        "event_schemas": list_of(one_of(EVENT_SCHEMA), 1)})})

KEYED = {"secret", "old", "new", "key"}  # what key events may have, and a trace without secrets has not


def check_event(event):
    EVENT(event)
    name = event["name"].split(":")[1]
    if name not in EVENTS:
        fail(name, "an event of the draft")
    try:
        EVENTS[name](event["data"])
    except ValueError as error:
        raise ValueError(f"{event['name']}: {error}") from None
    if name.startswith("key_") and KEYED & event["data"].keys():
        fail(event, "without a key")


def check_file(path):
    """The events of a file, all of them as the draft says, in the order of their times."""
    with open(path, "rb") as f:
        records = f.read().split(b"\x1e")
    if records.pop(0) != b"" or any(not record.endswith(b"\n") for record in records):
        raise ValueError(f"{path} is no JSON text sequence")
    header, *events = map(json.loads, records)
    HEADER(header)
    last = 0
    for event in events:
        check_event(event)
        if event["time"] < last:
            fail(event, "in its order")
        last = event["time"]
    return header, events
