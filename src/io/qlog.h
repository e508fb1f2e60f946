/* io/qlog.h: between the files of qlog: the sink with its files, and the writing of events.
 *
 * Files are of draft-ietf-quic-qlog-main-schema-13, events of draft-ietf-quic-qlog-quic-events-12,
 * in the JSON-SEQ form of RFC 7464: each record is a record separator, a JSON object and a line
 * feed. What leat tells beyond the draft stands at the draft's extension points
 * (docs/EXTENSIONS.md).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_IO_QLOG_H
#define LEAT_IO_QLOG_H

#include <leat/event.h>
#include <leat/loop.h>

#include "io/json.h"

#define LEAT_QLOG_FILE_SCHEMA  "urn:ietf:params:qlog:file:sequential"
#define LEAT_QLOG_EVENT_SCHEMA "urn:ietf:params:qlog:events:quic-12"

enum {
    LEAT_QLOG_RECORD_MAX = 16 * 1024, /* bytes of one record; one that is larger is left out */
    LEAT_QLOG_FRAMES_MAX = 12 * 1024, /* of these, the frames of a packet; the rest is left out */
};

/* The first record of a file. wall_ms: when it begins, milliseconds since 1970. Without an odcid in
 * the event it is the endpoint's file, each of whose records names its connection. */
void leat_qlog_write_header(leat_json *json, const leat_event *event, uint64_t wall_ms);

/* The records for an event other than FRAME_SENT and FRAME_RECEIVED; frames are those of the
 * packet.
 */
void leat_qlog_write_event(leat_json *json, const leat_event *event, leat_time since,
                           leat_span frames);

/* A frame, as an item of a list. */
void leat_qlog_write_frame(leat_json *json, const leat_event_frame *frame);

/* ---- shared by the writers ---- */

/* Opens an object under a key; what closes it is a plain "}". */
static inline void leat_qlog_open_object(leat_json *json, const char *key)
{
    leat_json_key(json, key);
    leat_json_raw(json, "{");
}

/* The name of a code, and the code where it has none. */
void leat_qlog_put_error(leat_json *json, const char *key, bool application, uint64_t code);
/* type: "retry", "resumption", NULL. */
void leat_qlog_put_token(leat_json *json, const char *type, size_t len);
/* "raw": {which: len} */
void leat_qlog_put_length(leat_json *json, const char *which, uint64_t len);

#endif
