/* fuzz/quic_frame.c: frames. What decodes is within its payload and has possible values; what can
 * be written again decodes to the same.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "support/fuzz.h"
#include "wire/frames.h"

static void check_ack(const leat_frame_ack *ack)
{
    leat_ack_iter iter;
    leat_range range;
    uint64_t below = ack->largest + 1, count = 0;

    leat_ack_iter_init(&iter, ack);
    while (leat_ack_iter_next(&iter, &range)) {
        fuzz_check(range.from < range.to);
        fuzz_check(range.to <= below && (count == 0 || range.to < below));
        below = range.from;
        count++;
    }
    fuzz_check(count == ack->range_count + 1);
    fuzz_check(below == ack->smallest);
}

static bool within(leat_span payload, leat_span part)
{
    return part.len == 0 ||
           (part.data >= payload.data && part.data + part.len <= payload.data + payload.len);
}

static bool write_again(leat_writer *w, const leat_frame *f)
{
    switch (f->kind) {
    case LEAT_FRAME_PING:
        return leat_frame_write_ping(w);
    case LEAT_FRAME_RESET_STREAM:
        return leat_frame_write_reset_stream(w, f->reset_stream.stream_id, f->reset_stream.error,
                                             f->reset_stream.final_size);
    case LEAT_FRAME_STOP_SENDING:
        return leat_frame_write_stop_sending(w, f->stop_sending.stream_id, f->stop_sending.error);
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
    case LEAT_FRAME_HANDSHAKE_DONE:
        return leat_frame_write_handshake_done(w);
    case LEAT_FRAME_IMMEDIATE_ACK:
        return leat_frame_write_immediate_ack(w);
    case LEAT_FRAME_ACK_FREQUENCY:
        return leat_frame_write_ack_frequency(w, &f->ack_frequency);
    default:
        return false;
    }
}

static void check_again(const leat_frame *f)
{
    static uint8_t out[65536];
    leat_frame again;
    leat_cursor c;
    leat_writer w;

    leat_writer_init(&w, out, sizeof(out));
    if (!write_again(&w, f)) {
        return;
    }
    leat_cursor_init(&c, out, leat_writer_len(&w));
    fuzz_check(leat_frame_decode(&c, &again) == LEAT_TE_NO_ERROR);
    fuzz_check(leat_cursor_left(&c) == 0);
    fuzz_check(again.kind == f->kind);
    if (f->kind == LEAT_FRAME_NEW_TOKEN) {
        fuzz_check(again.new_token.token.len == f->new_token.token.len);
    } else if (f->kind == LEAT_FRAME_RESET_STREAM) {
        fuzz_check(again.reset_stream.final_size == f->reset_stream.final_size);
    } else if (f->kind == LEAT_FRAME_NEW_CONNECTION_ID) {
        fuzz_check(leat_cid_equal(&again.new_connection_id.cid, &f->new_connection_id.cid));
    } else if (f->kind == LEAT_FRAME_ACK_FREQUENCY) {
        fuzz_check(again.ack_frequency.reorder == f->ack_frequency.reorder);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat_span payload = {data, size};
    leat_cursor c;
    leat_frame f;

    leat_cursor_init(&c, data, size);
    while (leat_cursor_left(&c) > 0) {
        size_t left = leat_cursor_left(&c);

        if (leat_frame_decode(&c, &f) != LEAT_TE_NO_ERROR) {
            return 0;
        }
        fuzz_check(leat_cursor_left(&c) < left);
        fuzz_check(f.kind < LEAT_FRAME_KINDS);
        switch (f.kind) {
        case LEAT_FRAME_ACK:
            check_ack(&f.ack);
            break;
        case LEAT_FRAME_STREAM:
            fuzz_check(within(payload, f.stream.data));
            fuzz_check(f.stream.offset + f.stream.data.len <= LEAT_VARINT_MAX);
            break;
        case LEAT_FRAME_CRYPTO:
            fuzz_check(within(payload, f.crypto.data));
            fuzz_check(f.crypto.offset + f.crypto.data.len <= LEAT_VARINT_MAX);
            break;
        case LEAT_FRAME_CONNECTION_CLOSE:
        case LEAT_FRAME_APPLICATION_CLOSE:
            fuzz_check(within(payload, f.connection_close.reason));
            break;
        case LEAT_FRAME_DATAGRAM:
            fuzz_check(within(payload, f.datagram.data));
            break;
        default:
            break;
        }
        check_again(&f);
    }
    return 0;
}
