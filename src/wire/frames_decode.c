/* wire/frames_decode.c: frames, read.
 *
 * One function a frame takes its fields off the cursor, whose error sticks: values are looked at as
 * they come, and leat_frame_decode() asks once at the end whether all of them were there. The
 * functions therefore must come out right, whatever they return, when fed with the zeros of a
 * failed cursor. They return false for a value that cannot be.
 *
 * An ACK is validated whole before anybody acts on it, so that its ranges can be walked afterwards
 * without checks: no number in it is below zero (§19.3.1). Each range takes two bytes at least, so
 * the packet's size bounds the work.
 */
#include "wire/frames.h"

/* Runs of PADDING fill most of a handshake's datagrams: eight bytes at a time. */
static bool decode_padding(leat_cursor *c, leat_frame_padding *out)
{
    const uint8_t *p = c->at;
    uint64_t word;

    while (c->end - p >= 8) {
        memcpy(&word, p, 8);
        if (word != 0) {
            break;
        }
        p += 8;
    }
    while (p < c->end && *p == 0) {
        p++;
    }
    out->len = 1 + (size_t)(p - c->at); /* and the type, which is taken already */
    c->at = p;
    return true;
}

/* Takes the ranges after the first, the lowest number so far being *smallest. */
static bool decode_ack_ranges(leat_cursor *c, uint64_t count, uint64_t *smallest)
{
    uint64_t low = *smallest;

    if (count > leat_cursor_left(c) / 2) {
        return false;
    }
    for (; count > 0; count--) {
        uint64_t skip = leat_cursor_varint(c) + 2; /* down to the range's largest (§19.3.1) */
        uint64_t len = leat_cursor_varint(c);

        if (low < skip || low - skip < len) {
            return false;
        }
        low -= skip + len;
    }
    *smallest = low;
    return true;
}

static bool decode_ack(leat_cursor *c, leat_frame_ack *out, bool has_ecn)
{
    uint64_t first;

    out->largest = leat_cursor_varint(c);
    out->delay = leat_cursor_varint(c);
    out->range_count = leat_cursor_varint(c);
    first = leat_cursor_varint(c);
    if (first > out->largest) {
        return false;
    }
    out->smallest_first = out->largest - first;
    out->smallest = out->smallest_first;
    out->ranges = c->at;
    if (!decode_ack_ranges(c, out->range_count, &out->smallest)) {
        return false;
    }
    out->has_ecn = has_ecn;
    out->ecn = (leat_ecn_counts){0};
    if (has_ecn) {
        out->ecn.ect0 = leat_cursor_varint(c);
        out->ecn.ect1 = leat_cursor_varint(c);
        out->ecn.ce = leat_cursor_varint(c);
    }
    return true;
}

static bool decode_reset_stream(leat_cursor *c, leat_frame_reset_stream *out)
{
    out->stream_id = leat_cursor_varint(c);
    out->error = leat_cursor_varint(c);
    out->final_size = leat_cursor_varint(c);
    return true;
}

static bool decode_reset_stream_at(leat_cursor *c, leat_frame_reset_stream_at *out)
{
    out->stream_id = leat_cursor_varint(c);
    out->error = leat_cursor_varint(c);
    out->final_size = leat_cursor_varint(c);
    out->reliable_size = leat_cursor_varint(c);
    return out->reliable_size <= out->final_size;
}

static bool decode_stop_sending(leat_cursor *c, leat_frame_stop_sending *out)
{
    out->stream_id = leat_cursor_varint(c);
    out->error = leat_cursor_varint(c);
    return true;
}

/* No byte of a stream lies at 2^62 - 1 or beyond (§19.6, §19.8). */
static bool end_is_possible(uint64_t offset, size_t len)
{
    return offset + len <= LEAT_VARINT_MAX;
}

static bool decode_crypto(leat_cursor *c, leat_frame_crypto *out)
{
    out->offset = leat_cursor_varint(c);
    out->data = leat_cursor_varint_span(c);
    return end_is_possible(out->offset, out->data.len);
}

static bool decode_new_token(leat_cursor *c, leat_frame_new_token *out)
{
    out->token = leat_cursor_varint_span(c);
    return out->token.len > 0; /* §19.7 */
}

static leat_span rest_of(leat_cursor *c)
{
    size_t left = leat_cursor_left(c);

    return (leat_span){leat_cursor_bytes(c, left), left};
}

static bool decode_stream(leat_cursor *c, leat_frame_stream *out, uint64_t code)
{
    out->stream_id = leat_cursor_varint(c);
    out->offset = code & LEAT_STREAM_OFF ? leat_cursor_varint(c) : 0;
    out->data = code & LEAT_STREAM_LEN ? leat_cursor_varint_span(c) : rest_of(c);
    out->fin = (code & LEAT_STREAM_FIN) != 0;
    return end_is_possible(out->offset, out->data.len);
}

static bool decode_max_data(leat_cursor *c, leat_frame_max_data *out)
{
    out->max = leat_cursor_varint(c);
    return true;
}

static bool decode_max_stream_data(leat_cursor *c, leat_frame_max_stream_data *out)
{
    out->stream_id = leat_cursor_varint(c);
    out->max = leat_cursor_varint(c);
    return true;
}

static bool decode_max_streams(leat_cursor *c, leat_frame_max_streams *out, uint64_t code)
{
    out->max = leat_cursor_varint(c);
    out->bidi = code == LEAT_FRAME_CODE_MAX_STREAMS;
    return out->max <= LEAT_MAX_STREAMS_LIMIT; /* §19.11 */
}

static bool decode_data_blocked(leat_cursor *c, leat_frame_data_blocked *out)
{
    out->limit = leat_cursor_varint(c);
    return true;
}

static bool decode_stream_data_blocked(leat_cursor *c, leat_frame_stream_data_blocked *out)
{
    out->stream_id = leat_cursor_varint(c);
    out->limit = leat_cursor_varint(c);
    return true;
}

static bool decode_streams_blocked(leat_cursor *c, leat_frame_streams_blocked *out, uint64_t code)
{
    out->limit = leat_cursor_varint(c);
    out->bidi = code == LEAT_FRAME_CODE_STREAMS_BLOCKED;
    return out->limit <= LEAT_MAX_STREAMS_LIMIT; /* §19.14 */
}

static bool decode_new_connection_id(leat_cursor *c, leat_frame_new_connection_id *out)
{
    size_t len;

    out->sequence = leat_cursor_varint(c);
    out->retire_prior_to = leat_cursor_varint(c);
    len = leat_cursor_u8(c);
    if (len < 1 || len > LEAT_CID_MAX || out->retire_prior_to > out->sequence) { /* §19.15 */
        return false;
    }
    out->cid = (leat_cid){.len = (uint8_t)len};
    leat_cursor_copy(c, out->cid.data, len);
    leat_cursor_copy(c, out->reset_token, sizeof out->reset_token);
    return true;
}

static bool decode_retire_connection_id(leat_cursor *c, leat_frame_retire_connection_id *out)
{
    out->sequence = leat_cursor_varint(c);
    return true;
}

static bool decode_path_data(leat_cursor *c, leat_frame_path_data *out)
{
    leat_cursor_copy(c, out->data, sizeof out->data);
    return true;
}

static bool decode_connection_close(leat_cursor *c, leat_frame_connection_close *out,
                                    bool application)
{
    out->application = application;
    out->error = leat_cursor_varint(c);
    out->frame_type = application ? 0 : leat_cursor_varint(c);
    out->reason = leat_cursor_varint_span(c);
    return true;
}

static bool decode_datagram(leat_cursor *c, leat_frame_datagram *out, uint64_t code)
{
    size_t left = leat_cursor_left(c);

    out->data = code == LEAT_FRAME_CODE_DATAGRAM ? rest_of(c) : leat_cursor_varint_span(c);
    out->size = 1 + left - leat_cursor_left(c); /* its type is in its shortest form */
    return true;
}

static bool decode_ack_frequency(leat_cursor *c, leat_frame_ack_frequency *out)
{
    out->sequence = leat_cursor_varint(c);
    out->threshold = leat_cursor_varint(c);
    out->max_delay = leat_cursor_varint(c);
    out->reorder = leat_cursor_varint(c);
    return true;
}

static bool decode_body(leat_cursor *c, leat_frame *out)
{
    switch (out->kind) {
    case LEAT_FRAME_PADDING:
        return decode_padding(c, &out->padding);
    case LEAT_FRAME_PING:
    case LEAT_FRAME_HANDSHAKE_DONE:
    case LEAT_FRAME_IMMEDIATE_ACK:
        return true;
    case LEAT_FRAME_ACK:
        return decode_ack(c, &out->ack, out->code != LEAT_FRAME_CODE_ACK);
    case LEAT_FRAME_RESET_STREAM:
        return decode_reset_stream(c, &out->reset_stream);
    case LEAT_FRAME_RESET_STREAM_AT:
        return decode_reset_stream_at(c, &out->reset_stream_at);
    case LEAT_FRAME_STOP_SENDING:
        return decode_stop_sending(c, &out->stop_sending);
    case LEAT_FRAME_CRYPTO:
        return decode_crypto(c, &out->crypto);
    case LEAT_FRAME_NEW_TOKEN:
        return decode_new_token(c, &out->new_token);
    case LEAT_FRAME_STREAM:
        return decode_stream(c, &out->stream, out->code);
    case LEAT_FRAME_MAX_DATA:
        return decode_max_data(c, &out->max_data);
    case LEAT_FRAME_MAX_STREAM_DATA:
        return decode_max_stream_data(c, &out->max_stream_data);
    case LEAT_FRAME_MAX_STREAMS:
        return decode_max_streams(c, &out->max_streams, out->code);
    case LEAT_FRAME_DATA_BLOCKED:
        return decode_data_blocked(c, &out->data_blocked);
    case LEAT_FRAME_STREAM_DATA_BLOCKED:
        return decode_stream_data_blocked(c, &out->stream_data_blocked);
    case LEAT_FRAME_STREAMS_BLOCKED:
        return decode_streams_blocked(c, &out->streams_blocked, out->code);
    case LEAT_FRAME_NEW_CONNECTION_ID:
        return decode_new_connection_id(c, &out->new_connection_id);
    case LEAT_FRAME_RETIRE_CONNECTION_ID:
        return decode_retire_connection_id(c, &out->retire_connection_id);
    case LEAT_FRAME_PATH_CHALLENGE:
        return decode_path_data(c, &out->path_challenge);
    case LEAT_FRAME_PATH_RESPONSE:
        return decode_path_data(c, &out->path_response);
    case LEAT_FRAME_CONNECTION_CLOSE:
        return decode_connection_close(c, &out->connection_close, false);
    case LEAT_FRAME_APPLICATION_CLOSE:
        return decode_connection_close(c, &out->connection_close, true);
    case LEAT_FRAME_DATAGRAM:
        return decode_datagram(c, &out->datagram, out->code);
    case LEAT_FRAME_ACK_FREQUENCY:
        return decode_ack_frequency(c, &out->ack_frequency);
    case LEAT_FRAME_KINDS:
        break;
    }
    return false;
}

uint64_t leat_frame_decode(leat_cursor *cursor, leat_frame *out)
{
    bool minimal;

    out->code = leat_cursor_varint_minimal(cursor, &minimal);
    if (!leat_cursor_ok(cursor)) {
        return LEAT_TE_FRAME_ENCODING_ERROR;
    }
    if (!minimal) {
        return LEAT_TE_PROTOCOL_VIOLATION;
    }
    out->kind = leat_frame_kind_of(out->code);
    if (!decode_body(cursor, out) || !leat_cursor_ok(cursor)) {
        return LEAT_TE_FRAME_ENCODING_ERROR;
    }
    return LEAT_TE_NO_ERROR;
}

/* ---- ranges of an ACK ---- */

void leat_ack_iter_init(leat_ack_iter *iter, const leat_frame_ack *ack)
{
    *iter = (leat_ack_iter){
        .next = ack->ranges,
        .left = 1 + ack->range_count,
        .from = ack->smallest_first,
        .to = ack->largest + 1,
    };
}

bool leat_ack_iter_next(leat_ack_iter *iter, leat_range *out)
{
    if (iter->left == 0) {
        return false;
    }
    *out = (leat_range){.from = iter->from, .to = iter->to};
    iter->left--;
    if (iter->left > 0) {
        iter->to = iter->from - leat_varint_get(iter->next, &iter->next) - 1;
        iter->from = iter->to - leat_varint_get(iter->next, &iter->next) - 1;
    }
    return true;
}
