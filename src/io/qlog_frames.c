/* io/qlog_frames.c: frames as qlog has them, and what they share with events: error codes, tokens.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io/qlog.h"

#include <string.h>

#include <leat/transport_error.h>

/* "FLOW_CONTROL_ERROR", or NULL: the draft has no name for it. */
#define ERROR_NAME(name, value, text) {value, #name},
static const char *error_name(uint64_t code)
{
    static const struct {
        uint64_t code;
        const char *name;
    } errors[] = {LEAT_TRANSPORT_ERROR_LIST(ERROR_NAME)};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        if (errors[i].code == code && code != LEAT_TE_VERSION_NEGOTIATION_ERROR) {
            return errors[i].name;
        }
    }
    return NULL;
}

static void put_crypto_error(leat_json *json, const char *key, uint8_t alert)
{
    char text[] = "crypto_error_0x1..";
    text[sizeof(text) - 3] = "0123456789abcdef"[alert >> 4];
    text[sizeof(text) - 2] = "0123456789abcdef"[alert & 15];
    leat_json_put_string(json, key, text);
}

static void put_lower(leat_json *json, const char *key, const char *name)
{
    char text[40];
    size_t len = 0;
    for (; len < sizeof(text) - 1 && name[len] != '\0'; len++) {
        text[len] = name[len] >= 'A' && name[len] <= 'Z' ? (char)(name[len] | 0x20) : name[len];
    }
    text[len] = '\0';
    leat_json_put_string(json, key, text);
}

void leat_qlog_put_error(leat_json *json, const char *key, bool application, uint64_t code)
{
    if (!application && leat_transport_error_is_crypto(code)) {
        put_crypto_error(json, key, leat_transport_error_alert(code));
    } else if (!application && error_name(code) != NULL) {
        put_lower(json, key, error_name(code));
    } else {
        leat_json_put_string(json, key, "unknown");
        leat_json_put_u64(json, "error_code", code);
    }
}

/* Whoever holds it passes for an address that has been proved: its length is enough. */
void leat_qlog_put_token(leat_json *json, const char *type, size_t len)
{
    leat_qlog_open_object(json, "token");
    if (type != NULL) {
        leat_json_put_string(json, "type", type);
    }
    leat_qlog_put_length(json, "length", len);
    leat_json_raw(json, "}");
}

void leat_qlog_put_length(leat_json *json, const char *which, uint64_t len)
{
    leat_qlog_open_object(json, "raw");
    leat_json_put_u64(json, which, len);
    leat_json_raw(json, "}");
}

static void write_ranges(leat_json *json, const leat_event_frame *frame)
{
    leat_json_key(json, "acked_ranges");
    leat_json_raw(json, "[");
    for (size_t i = 0; i < frame->range_count; i++) {
        leat_json_item(json);
        leat_json_raw(json, "[");
        leat_json_u64(json, frame->ranges[i].first);
        if (frame->ranges[i].last != frame->ranges[i].first) {
            leat_json_raw(json, ",");
            leat_json_u64(json, frame->ranges[i].last);
        }
        leat_json_raw(json, "]");
    }
    leat_json_raw(json, "]");
}

/* Only CONNECTION_CLOSE of type 0x1c has an error of the transport's. */
static bool of_application(const leat_event_frame *frame)
{
    return frame->type != 0x1c;
}

static void write_value(leat_json *json, const leat_event_frame *frame, const char *key,
                        uint64_t value)
{
    if (strcmp(key, "fin") == 0) {
        leat_json_put_bool(json, key, value != 0);
    } else if (strcmp(key, "ack_delay") == 0) {
        leat_json_put_ms(json, key, value);
    } else if (strcmp(key, "stream_type") == 0) {
        leat_json_put_string(json, key, value == 0 ? "bidirectional" : "unidirectional");
    } else if (strcmp(key, "error_code") == 0) {
        leat_qlog_put_error(json, "error", of_application(frame), value);
    } else if (strcmp(key, "length") == 0 || strcmp(key, "payload_length") == 0) {
        leat_qlog_put_length(json, key, value);
    } else {
        leat_json_put_u64(json, key, value);
    }
}

static void write_frame_data(leat_json *json, const leat_event_frame *frame)
{
    if (strcmp(frame->data_key, "reason") == 0) {
        leat_json_key(json, frame->data_key);
        leat_json_text(json, frame->data);
    } else if (strcmp(frame->data_key, "token") == 0) {
        leat_qlog_put_token(json, "resumption", frame->data.len);
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
        leat_json_put_string(json, "error_space",
                             of_application(frame) ? "application" : "transport");
    }
    for (size_t i = 0; i < frame->values; i++) {
        write_value(json, frame, frame->key[i], frame->value[i]);
    }
    if (frame->range_count != 0) {
        write_ranges(json, frame);
    }
    if (frame->data_key != NULL) {
        write_frame_data(json, frame);
    }
    leat_json_raw(json, "}");
}
