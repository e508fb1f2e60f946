/* io/qlog.h: between the files of qlog: the sink with its files, and the writing of events.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_IO_QLOG_H
#define LEAT_IO_QLOG_H

#include <leat/event.h>
#include <leat/loop.h>

#include "io/json.h"

enum {
    LEAT_QLOG_RECORD_MAX = 16 * 1024, /* bytes of one record; one that is larger is left out */
    LEAT_QLOG_FRAMES_MAX = 12 * 1024, /* of these, the frames of a packet; the rest is left out */
};

/* The first record of a file. wall_ms: when the connection began, milliseconds since 1970. */
void leat_qlog_write_header(leat_json *json, const leat_event *event, uint64_t wall_ms);

/* A record for an event other than FRAME_SENT and FRAME_RECEIVED; frames are those of the packet.
 */
void leat_qlog_write_event(leat_json *json, const leat_event *event, leat_time since,
                           leat_span frames);

/* A frame, as an item of a list. */
void leat_qlog_write_frame(leat_json *json, const leat_event_frame *frame);

#endif
