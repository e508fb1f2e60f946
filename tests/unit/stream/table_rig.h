/* table_rig.h: one side's streams, and the records of what it sent, as a connection would keep
 * them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TABLE_RIG_H
#define TABLE_RIG_H

#include "stream_rig.h"

#define SIDE_RECORDS 4096u

/* A frame that was sent and whose fate is open. */
typedef struct record {
    leat_stream *stream;
    leat_control what; /* 0: STREAM */
    uint64_t id;
    uint64_t value; /* of a control frame; offset of a STREAM frame */
    uint64_t extra;
    uint64_t code; /* of a reset */
    size_t len;
    bool fin;
    uint8_t *bytes; /* of a STREAM frame */
} record;

typedef struct side {
    rig rig;
    leat_streams streams;
    record records[SIDE_RECORDS];
    size_t count;
    leat_time now;
} side;

static inline leat_streams_settings side_settings(bool is_server)
{
    return (leat_streams_settings){
        .is_server = is_server,
        .hash_key = {{1, 2}},
        .max_data = 100000,
        .max_stream_data_bidi_local = 10000,
        .max_stream_data_bidi_remote = 20000,
        .max_stream_data_uni = 30000,
        .max_streams_bidi = 10,
        .max_streams_uni = 4,
        .send_buffer = 50000,
    };
}

/* What the other side would learn of these settings. */
static inline leat_streams_peer side_parameters(const leat_streams_settings *s)
{
    return (leat_streams_peer){
        .max_data = s->max_data,
        .max_stream_data_bidi_local = s->max_stream_data_bidi_local,
        .max_stream_data_bidi_remote = s->max_stream_data_bidi_remote,
        .max_stream_data_uni = s->max_stream_data_uni,
        .max_streams_bidi = s->max_streams_bidi,
        .max_streams_uni = s->max_streams_uni,
        .reset_stream_at = true,
    };
}

static inline side *side_new_with(const leat_streams_settings *settings, size_t budget)
{
    side *s = calloc(1, sizeof *s);

    assert_non_null(s);
    rig_init(&s->rig, budget);
    leat_streams_init(&s->streams, &s->rig.pools, &s->rig.budget, settings);
    s->now = LEAT_SECOND;
    return s;
}

/* A side whose peer has the same settings. */
static inline side *side_new(bool is_server)
{
    leat_streams_settings settings = side_settings(is_server);
    leat_streams_peer peer = side_parameters(&settings);
    side *s = side_new_with(&settings, 0);

    leat_streams_set_peer(&s->streams, &peer);
    return s;
}

static inline record side_forget(side *s, size_t i)
{
    record r = s->records[i];

    memmove(&s->records[i], &s->records[i + 1], (s->count - i - 1) * sizeof r);
    s->count--;
    return r;
}

static inline void side_acked(side *s, size_t i)
{
    record r = side_forget(s, i);

    if (r.what) {
        leat_streams_control_acked(&s->streams, r.stream, r.what, r.value);
    } else {
        leat_streams_stream_acked(&s->streams, r.stream, r.value, r.len, r.fin);
    }
    free(r.bytes);
    leat_streams_check(&s->streams);
}

static inline void side_lost(side *s, size_t i)
{
    record r = side_forget(s, i);

    if (r.what) {
        leat_streams_control_lost(&s->streams, r.stream, r.what, r.value);
    } else {
        leat_streams_stream_lost(&s->streams, r.stream, r.value, r.len, r.fin);
    }
    free(r.bytes);
    leat_streams_check(&s->streams);
}

/* A probe sends it again while its fate stays open. */
static inline void side_probe(side *s, size_t i)
{
    const record *r = &s->records[i];

    if (r->what) {
        leat_streams_control_probe(&s->streams, r->stream, r->what, r->value);
    } else {
        leat_streams_stream_probe(&s->streams, r->stream, r->value, r->len, r->fin);
    }
    leat_streams_check(&s->streams);
}

static inline void side_drop_records(side *s)
{
    while (s->count > 0) {
        record r = side_forget(s, s->count - 1);

        leat_streams_record_dropped(&s->streams, r.stream);
        free(r.bytes);
    }
}

static inline void side_free(side *s)
{
    side_drop_records(s);
    leat_streams_check(&s->streams);
    leat_streams_free(&s->streams);
    rig_free(&s->rig);
    free(s);
}

/* Sends the next frame, control first; NULL: nothing to send. The record stays valid until the next
 * change. */
static inline record *side_send(side *s, size_t max)
{
    leat_control_frame frame;
    leat_send_part part;
    leat_stream *stream;
    record *r = &s->records[s->count];

    assert_true(s->count < SIDE_RECORDS);
    *r = (record){0};
    if (leat_streams_next_control(&s->streams, s->now, 20 * LEAT_MILLISECOND, &frame)) {
        *r = (record){.stream = frame.stream,
                      .what = frame.what,
                      .id = frame.stream ? frame.stream->id : 0,
                      .value = frame.value,
                      .extra = frame.extra,
                      .code = frame.stream ? frame.stream->send.reset_code : 0};
        leat_streams_control_sent(&s->streams, &frame);
    } else {
        stream = leat_streams_next_stream(&s->streams);
        if (!stream) {
            return NULL;
        }
        assert_true(leat_stream_send_next(&stream->send, max, &s->streams.flow_out, &part));
        *r = (record){.stream = stream,
                      .id = stream->id,
                      .value = part.offset,
                      .len = part.len,
                      .fin = part.fin,
                      .bytes = malloc(part.len + 1)};
        assert_non_null(r->bytes);
        leat_stream_send_copy(&stream->send, part.offset, part.len, r->bytes);
        leat_streams_stream_sent(&s->streams, stream, &part);
    }
    s->count++;
    leat_streams_check(&s->streams);
    return r;
}

/* Tells all events to nobody. */
static inline void side_tell(side *s)
{
    leat_stream *stream;
    unsigned events;

    while ((stream = leat_streams_next_event(&s->streams, &events)) != NULL) {
        leat_streams_told(&s->streams, stream, events);
        leat_streams_check(&s->streams);
    }
}

/* A STREAM frame arrives. */
static inline uint64_t side_data(side *s, uint64_t id, uint64_t offset, size_t len, bool fin)
{
    leat_buf packet = rig_packet(&s->rig, id, offset, len);
    uint64_t code = leat_streams_on_stream(&s->streams, id, offset, &packet, fin);

    leat_buf_release(&packet);
    leat_streams_check(&s->streams);
    return code;
}

#endif
