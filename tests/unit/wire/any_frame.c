/* See any_frame.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "any_frame.h"

#include <string.h>

/* Data frames: only when all of it goes in, with its length. */
static bool write_data(leat_writer *w, const leat_frame *f)
{
    size_t left = leat_writer_left(w);
    leat_data_fit fit;

    if (f->kind == LEAT_FRAME_STREAM) {
        fit =
            leat_frame_fit_stream(left, f->stream.stream_id, f->stream.offset, f->stream.data.len);
        if (!fit.fits || fit.fills) {
            return false;
        }
        leat_frame_write_stream_head(w, f->stream.stream_id, f->stream.offset, &fit, f->stream.fin);
        leat_writer_bytes(w, f->stream.data.data, fit.len);
    } else if (f->kind == LEAT_FRAME_CRYPTO) {
        if (f->crypto.data.len == 0) {
            return false;
        }
        fit = leat_frame_fit_crypto(left, f->crypto.offset, f->crypto.data.len);
        if (!fit.fits || fit.len < f->crypto.data.len) {
            return false;
        }
        leat_frame_write_crypto_head(w, f->crypto.offset, &fit);
        leat_writer_bytes(w, f->crypto.data.data, fit.len);
    } else {
        fit = leat_frame_fit_datagram(left, f->datagram.data.len);
        if (!fit.fits || fit.fills) {
            return false;
        }
        leat_frame_write_datagram_head(w, &fit);
        leat_writer_bytes(w, f->datagram.data.data, fit.len);
    }
    return true;
}

bool write_frame(leat_writer *w, const leat_frame *f, const leat_range *ranges, size_t range_count)
{
    switch (f->kind) {
    case LEAT_FRAME_PADDING:
        return leat_frame_write_padding(w, f->padding.len);
    case LEAT_FRAME_PING:
        return leat_frame_write_ping(w);
    case LEAT_FRAME_ACK:
        return leat_frame_write_ack(w, ranges, range_count, range_count, f->ack.delay,
                                    f->ack.has_ecn ? &f->ack.ecn : NULL) > 0;
    case LEAT_FRAME_RESET_STREAM:
        return leat_frame_write_reset_stream(w, f->reset_stream.stream_id, f->reset_stream.error,
                                             f->reset_stream.final_size);
    case LEAT_FRAME_RESET_STREAM_AT:
        return leat_frame_write_reset_stream_at(w, &f->reset_stream_at);
    case LEAT_FRAME_STOP_SENDING:
        return leat_frame_write_stop_sending(w, f->stop_sending.stream_id, f->stop_sending.error);
    case LEAT_FRAME_CRYPTO:
    case LEAT_FRAME_STREAM:
    case LEAT_FRAME_DATAGRAM:
        return write_data(w, f);
    case LEAT_FRAME_NEW_TOKEN:
        return leat_frame_write_new_token(w, f->new_token.token);
    case LEAT_FRAME_MAX_DATA:
        return leat_frame_write_max_data(w, f->max_data.max);
    case LEAT_FRAME_MAX_STREAM_DATA:
        return leat_frame_write_max_stream_data(w, f->max_stream_data.stream_id,
                                                f->max_stream_data.max);
    case LEAT_FRAME_MAX_STREAMS:
        return leat_frame_write_max_streams(w, f->max_streams.bidi, f->max_streams.max);
    case LEAT_FRAME_DATA_BLOCKED:
        return leat_frame_write_data_blocked(w, f->data_blocked.limit);
    case LEAT_FRAME_STREAM_DATA_BLOCKED:
        return leat_frame_write_stream_data_blocked(w, f->stream_data_blocked.stream_id,
                                                    f->stream_data_blocked.limit);
    case LEAT_FRAME_STREAMS_BLOCKED:
        return leat_frame_write_streams_blocked(w, f->streams_blocked.bidi,
                                                f->streams_blocked.limit);
    case LEAT_FRAME_NEW_CONNECTION_ID:
        return leat_frame_write_new_connection_id(w, &f->new_connection_id);
    case LEAT_FRAME_RETIRE_CONNECTION_ID:
        return leat_frame_write_retire_connection_id(w, f->retire_connection_id.sequence);
    case LEAT_FRAME_PATH_CHALLENGE:
        return leat_frame_write_path_challenge(w, f->path_challenge.data);
    case LEAT_FRAME_PATH_RESPONSE:
        return leat_frame_write_path_response(w, f->path_response.data);
    case LEAT_FRAME_CONNECTION_CLOSE:
    case LEAT_FRAME_APPLICATION_CLOSE:
        return leat_frame_write_connection_close(w, &f->connection_close);
    case LEAT_FRAME_HANDSHAKE_DONE:
        return leat_frame_write_handshake_done(w);
    case LEAT_FRAME_IMMEDIATE_ACK:
        return leat_frame_write_immediate_ack(w);
    case LEAT_FRAME_ACK_FREQUENCY:
        return leat_frame_write_ack_frequency(w, &f->ack_frequency);
    case LEAT_FRAME_KINDS:
        break;
    }
    return false;
}

static bool same_span(leat_span a, leat_span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static bool same_ack(const leat_frame_ack *a, const leat_frame_ack *b)
{
    leat_ack_iter at[2];
    leat_range r[2];

    leat_ack_iter_init(&at[0], a);
    leat_ack_iter_init(&at[1], b);
    while (leat_ack_iter_next(&at[0], &r[0])) {
        if (!leat_ack_iter_next(&at[1], &r[1]) || r[0].from != r[1].from || r[0].to != r[1].to) {
            return false;
        }
    }
    return !leat_ack_iter_next(&at[1], &r[1]) && a->delay == b->delay && a->has_ecn == b->has_ecn &&
           (!a->has_ecn || memcmp(&a->ecn, &b->ecn, sizeof a->ecn) == 0);
}

/* Of two structs of numbers alone. */
#define SAME(member) (memcmp(&a->member, &b->member, sizeof a->member) == 0)

bool same_frame(const leat_frame *a, const leat_frame *b)
{
    if (a->kind != b->kind) {
        return false;
    }
    switch (a->kind) {
    case LEAT_FRAME_PADDING:
        return a->padding.len == b->padding.len;
    case LEAT_FRAME_ACK:
        return same_ack(&a->ack, &b->ack);
    case LEAT_FRAME_RESET_STREAM:
        return SAME(reset_stream);
    case LEAT_FRAME_RESET_STREAM_AT:
        return SAME(reset_stream_at);
    case LEAT_FRAME_STOP_SENDING:
        return SAME(stop_sending);
    case LEAT_FRAME_CRYPTO:
        return a->crypto.offset == b->crypto.offset && same_span(a->crypto.data, b->crypto.data);
    case LEAT_FRAME_NEW_TOKEN:
        return same_span(a->new_token.token, b->new_token.token);
    case LEAT_FRAME_STREAM:
        return a->stream.stream_id == b->stream.stream_id && a->stream.offset == b->stream.offset &&
               a->stream.fin == b->stream.fin && same_span(a->stream.data, b->stream.data);
    case LEAT_FRAME_MAX_DATA:
        return a->max_data.max == b->max_data.max;
    case LEAT_FRAME_MAX_STREAM_DATA:
        return SAME(max_stream_data);
    case LEAT_FRAME_MAX_STREAMS:
        return a->max_streams.max == b->max_streams.max &&
               a->max_streams.bidi == b->max_streams.bidi;
    case LEAT_FRAME_DATA_BLOCKED:
        return a->data_blocked.limit == b->data_blocked.limit;
    case LEAT_FRAME_STREAM_DATA_BLOCKED:
        return SAME(stream_data_blocked);
    case LEAT_FRAME_STREAMS_BLOCKED:
        return a->streams_blocked.limit == b->streams_blocked.limit &&
               a->streams_blocked.bidi == b->streams_blocked.bidi;
    case LEAT_FRAME_NEW_CONNECTION_ID:
        return a->new_connection_id.sequence == b->new_connection_id.sequence &&
               a->new_connection_id.retire_prior_to == b->new_connection_id.retire_prior_to &&
               leat_cid_equal(&a->new_connection_id.cid, &b->new_connection_id.cid) &&
               SAME(new_connection_id.reset_token);
    case LEAT_FRAME_RETIRE_CONNECTION_ID:
        return a->retire_connection_id.sequence == b->retire_connection_id.sequence;
    case LEAT_FRAME_PATH_CHALLENGE:
    case LEAT_FRAME_PATH_RESPONSE:
        return SAME(path_challenge);
    case LEAT_FRAME_CONNECTION_CLOSE:
    case LEAT_FRAME_APPLICATION_CLOSE:
        return a->connection_close.application == b->connection_close.application &&
               a->connection_close.error == b->connection_close.error &&
               a->connection_close.frame_type == b->connection_close.frame_type &&
               same_span(a->connection_close.reason, b->connection_close.reason);
    case LEAT_FRAME_DATAGRAM:
        return same_span(a->datagram.data, b->datagram.data);
    case LEAT_FRAME_ACK_FREQUENCY:
        return SAME(ack_frequency);
    case LEAT_FRAME_PING:
    case LEAT_FRAME_HANDSHAKE_DONE:
    case LEAT_FRAME_IMMEDIATE_ACK:
        return true;
    case LEAT_FRAME_KINDS:
        break;
    }
    return false;
}
