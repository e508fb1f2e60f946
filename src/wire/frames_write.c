/* wire/frames_write.c: frames, written.
 *
 * Each writer works out the frame's size, takes that room from the leat_writer or gives up, and
 * fills it in one pass; room_for() and done() hold the two ends together. Data frames come in two
 * halves, fit and head, because the data itself may lie in several places: the caller copies it,
 * once, to where it will be sealed.
 */
#include "wire/frames.h"

/* Room for size bytes (at least 1), or NULL with the writer as it was. */
static uint8_t *room_for(leat_writer *w, size_t size)
{
    return size <= leat_writer_left(w) ? leat_writer_room(w, size) : NULL;
}

/* p is where the frame's last byte should have brought the writer. */
static bool done(const leat_writer *w, const uint8_t *p)
{
    LEAT_ASSERT(p == w->at);
    return true;
}

static uint8_t *put_bytes(uint8_t *p, const void *data, size_t len)
{
    if (len > 0) {
        memcpy(p, data, len);
    }
    return p + len;
}

/* ---- shapes that several frames share: a code of one byte and one, two or three numbers ---- */

static bool write_one(leat_writer *w, uint8_t code, uint64_t a)
{
    uint8_t *p = room_for(w, leat_frame_size_one(a));

    if (!p) {
        return false;
    }
    *p++ = code;
    p = leat_varint_put(p, a);
    return done(w, p);
}

static bool write_two(leat_writer *w, uint8_t code, uint64_t a, uint64_t b)
{
    uint8_t *p = room_for(w, leat_frame_size_two(a, b));

    if (!p) {
        return false;
    }
    *p++ = code;
    p = leat_varint_put(p, a);
    p = leat_varint_put(p, b);
    return done(w, p);
}

static bool write_code(leat_writer *w, uint8_t code)
{
    uint8_t *p = room_for(w, 1);

    if (!p) {
        return false;
    }
    *p++ = code;
    return done(w, p);
}

static bool write_path_data(leat_writer *w, uint8_t code, const uint8_t *data)
{
    uint8_t *p = room_for(w, LEAT_FRAME_SIZE_PATH_DATA);

    if (!p) {
        return false;
    }
    *p++ = code;
    p = put_bytes(p, data, LEAT_PATH_DATA);
    return done(w, p);
}

/* ---- acknowledgements ---- */

static size_t ecn_size(const leat_ecn_counts *ecn)
{
    return ecn ? leat_varint_len(ecn->ect0) + leat_varint_len(ecn->ect1) + leat_varint_len(ecn->ce)
               : 0;
}

/* Writes the ranges older than *newest, at most `most`, no further than end; returns how many. */
static size_t put_ack_ranges(uint8_t **at, const uint8_t *end, const leat_range *newest,
                             size_t most)
{
    uint8_t *p = *at;
    size_t n;

    for (n = 0; n < most; n++, newest--) {
        const leat_range *older = newest - 1;
        uint64_t gap = newest->from - older->to - 1;
        uint64_t len = older->to - older->from - 1;

        LEAT_DCHECK(older->from < older->to);
        LEAT_DCHECK(older->to < newest->from);
        if (leat_varint_len(gap) + leat_varint_len(len) > (size_t)(end - p)) {
            break;
        }
        p = leat_varint_put(p, gap);
        p = leat_varint_put(p, len);
    }
    *at = p;
    return n;
}

/* The count of further ranges stands ahead of them: its place is made for as many as could come, in
 * one byte or two, and the count that did fit is put there afterwards (no need for it to be in its
 * shortest form). */
size_t leat_frame_write_ack(leat_writer *w, const leat_range *ranges, size_t count,
                            size_t max_ranges, uint64_t delay, const leat_ecn_counts *ecn)
{
    const leat_range *newest = &ranges[count - 1];
    size_t most = (count < max_ranges ? count : max_ranges) - 1;
    uint64_t largest = newest->to - 1;
    uint64_t first = largest - newest->from;
    size_t tail = ecn_size(ecn);
    size_t fixed =
        1 + leat_varint_len(largest) + leat_varint_len(delay) + leat_varint_len(first) + tail;
    size_t left = leat_writer_left(w);
    size_t count_len;
    size_t written;
    uint8_t *p = w->at;
    uint8_t *count_at;

    LEAT_ASSERT(count >= 1);
    LEAT_ASSERT(max_ranges >= 1);
    if (fixed + 1 > left) {
        return 0;
    }
    most = most < 16383 ? most : 16383;
    most = fixed + 2 <= left ? most : 0;
    count_len = leat_varint_len(most);
    *p++ = LEAT_FRAME_CODE_ACK + (ecn != NULL);
    p = leat_varint_put(p, largest);
    p = leat_varint_put(p, delay);
    count_at = p;
    p = leat_varint_put(p + count_len, first);
    written = put_ack_ranges(&p, w->end - tail, newest, most);
    if (count_len == 1) {
        *count_at = (uint8_t)written;
    } else {
        leat_varint_put2(count_at, written);
    }
    if (ecn) {
        p = leat_varint_put(p, ecn->ect0);
        p = leat_varint_put(p, ecn->ect1);
        p = leat_varint_put(p, ecn->ce);
    }
    w->at = p;
    LEAT_ASSERT(w->at <= w->end);
    return 1 + written;
}

/* ---- data ---- */

/* Fits want bytes behind a head (code and fields, without the length) of so many bytes. splits:
 * less than all of it will do. Dropping the length lets a frame that ends the packet use the bytes
 * of the length for data; what is then still free, less than a length takes, goes ahead of it as
 * PADDING, since nothing can follow. */
static leat_data_fit fit_data(size_t left, size_t head, size_t want, bool splits)
{
    leat_data_fit fit = {0};
    size_t room;

    if (left < head) {
        return fit;
    }
    room = left - head;
    if (want + leat_varint_len(want) <= room) {
        return (leat_data_fit){.len = want, .fits = true};
    }
    if (want > room && (!splits || room == 0)) {
        return fit;
    }
    fit.len = want < room ? want : room;
    fit.pad = (uint8_t)(room - fit.len);
    fit.fits = true;
    fit.fills = true;
    return fit;
}

/* The writer must be as far from its end as it was when the fit was found. */
static void check_data(const leat_writer *w, const uint8_t *p, const leat_data_fit *fit)
{
    LEAT_ASSERT(fit->len <= (size_t)(w->end - p));
    LEAT_ASSERT(!fit->fills || fit->len == (size_t)(w->end - p));
}

static size_t head_size_stream(uint64_t stream_id, uint64_t offset)
{
    return 1 + leat_varint_len(stream_id) + (offset > 0 ? leat_varint_len(offset) : 0);
}

leat_data_fit leat_frame_fit_stream(size_t left, uint64_t stream_id, uint64_t offset, size_t want)
{
    LEAT_DCHECK(offset + want <= LEAT_VARINT_MAX);
    return fit_data(left, head_size_stream(stream_id, offset), want, true);
}

void leat_frame_write_stream_head(leat_writer *w, uint64_t stream_id, uint64_t offset,
                                  const leat_data_fit *fit, bool fin)
{
    size_t size = fit->pad + head_size_stream(stream_id, offset) +
                  (fit->fills ? 0 : leat_varint_len(fit->len));
    uint8_t *p = room_for(w, size);

    LEAT_ASSERT(fit->fits);
    LEAT_ASSERT(p != NULL);
    if (fit->pad > 0) {
        memset(p, LEAT_FRAME_CODE_PADDING, fit->pad);
        p += fit->pad;
    }
    *p++ = (uint8_t)(LEAT_FRAME_CODE_STREAM | (offset > 0 ? LEAT_STREAM_OFF : 0) |
                     (fit->fills ? 0 : LEAT_STREAM_LEN) | (fin ? LEAT_STREAM_FIN : 0));
    p = leat_varint_put(p, stream_id);
    if (offset > 0) {
        p = leat_varint_put(p, offset);
    }
    if (!fit->fills) {
        p = leat_varint_put(p, fit->len);
    }
    check_data(w, p, fit);
    done(w, p);
}

/* How much of want goes into room together with its length. */
static size_t len_with_length(size_t room, size_t want)
{
    if (want + leat_varint_len(want) <= room) {
        return want;
    }
    return room > leat_varint_len(room) ? room - leat_varint_len(room) : 0;
}

leat_data_fit leat_frame_fit_crypto(size_t left, uint64_t offset, size_t want)
{
    size_t head = 1 + leat_varint_len(offset);
    size_t len = left > head ? len_with_length(left - head, want) : 0;

    LEAT_ASSERT(want > 0);
    LEAT_DCHECK(offset + want <= LEAT_VARINT_MAX);
    return (leat_data_fit){.len = len, .fits = len > 0};
}

void leat_frame_write_crypto_head(leat_writer *w, uint64_t offset, const leat_data_fit *fit)
{
    uint8_t *p = room_for(w, 1 + leat_varint_len(offset) + leat_varint_len(fit->len));

    LEAT_ASSERT(fit->fits);
    LEAT_ASSERT(p != NULL);
    *p++ = LEAT_FRAME_CODE_CRYPTO;
    p = leat_varint_put(p, offset);
    p = leat_varint_put(p, fit->len);
    check_data(w, p, fit);
    done(w, p);
}

leat_data_fit leat_frame_fit_datagram(size_t left, size_t len)
{
    return fit_data(left, 1, len, false);
}

void leat_frame_write_datagram_head(leat_writer *w, const leat_data_fit *fit)
{
    uint8_t *p = room_for(w, fit->pad + 1 + (fit->fills ? 0 : leat_varint_len(fit->len)));

    LEAT_ASSERT(fit->fits);
    LEAT_ASSERT(p != NULL);
    memset(p, LEAT_FRAME_CODE_PADDING, fit->pad);
    p += fit->pad;
    *p++ = LEAT_FRAME_CODE_DATAGRAM | !fit->fills;
    if (!fit->fills) {
        p = leat_varint_put(p, fit->len);
    }
    check_data(w, p, fit);
    done(w, p);
}

/* ---- the others ---- */

bool leat_frame_write_padding(leat_writer *w, size_t len)
{
    uint8_t *p = room_for(w, len);

    if (!p) {
        return false;
    }
    memset(p, LEAT_FRAME_CODE_PADDING, len);
    return true;
}

bool leat_frame_write_ping(leat_writer *w)
{
    return write_code(w, LEAT_FRAME_CODE_PING);
}

bool leat_frame_write_reset_stream(leat_writer *w, uint64_t stream_id, uint64_t error,
                                   uint64_t final_size)
{
    uint8_t *p = room_for(w, leat_frame_size_reset_stream(stream_id, error, final_size));

    if (!p) {
        return false;
    }
    *p++ = LEAT_FRAME_CODE_RESET_STREAM;
    p = leat_varint_put(p, stream_id);
    p = leat_varint_put(p, error);
    p = leat_varint_put(p, final_size);
    return done(w, p);
}

bool leat_frame_write_reset_stream_at(leat_writer *w, const leat_frame_reset_stream_at *frame)
{
    uint8_t *p = room_for(w, leat_frame_size_reset_stream_at(frame));

    LEAT_ASSERT(frame->reliable_size <= frame->final_size);
    if (!p) {
        return false;
    }
    *p++ = LEAT_FRAME_CODE_RESET_STREAM_AT;
    p = leat_varint_put(p, frame->stream_id);
    p = leat_varint_put(p, frame->error);
    p = leat_varint_put(p, frame->final_size);
    p = leat_varint_put(p, frame->reliable_size);
    return done(w, p);
}

bool leat_frame_write_stop_sending(leat_writer *w, uint64_t stream_id, uint64_t error)
{
    return write_two(w, LEAT_FRAME_CODE_STOP_SENDING, stream_id, error);
}

bool leat_frame_write_new_token(leat_writer *w, leat_span token)
{
    uint8_t *p = room_for(w, leat_frame_size_new_token(token.len));

    LEAT_ASSERT(token.len > 0);
    if (!p) {
        return false;
    }
    *p++ = LEAT_FRAME_CODE_NEW_TOKEN;
    p = leat_varint_put(p, token.len);
    p = put_bytes(p, token.data, token.len);
    return done(w, p);
}

bool leat_frame_write_max_data(leat_writer *w, uint64_t max)
{
    return write_one(w, LEAT_FRAME_CODE_MAX_DATA, max);
}

bool leat_frame_write_max_stream_data(leat_writer *w, uint64_t stream_id, uint64_t max)
{
    return write_two(w, LEAT_FRAME_CODE_MAX_STREAM_DATA, stream_id, max);
}

bool leat_frame_write_max_streams(leat_writer *w, bool bidi, uint64_t max)
{
    LEAT_ASSERT(max <= LEAT_MAX_STREAMS_LIMIT);
    return write_one(w, LEAT_FRAME_CODE_MAX_STREAMS + !bidi, max);
}

bool leat_frame_write_data_blocked(leat_writer *w, uint64_t limit)
{
    return write_one(w, LEAT_FRAME_CODE_DATA_BLOCKED, limit);
}

bool leat_frame_write_stream_data_blocked(leat_writer *w, uint64_t stream_id, uint64_t limit)
{
    return write_two(w, LEAT_FRAME_CODE_STREAM_DATA_BLOCKED, stream_id, limit);
}

bool leat_frame_write_streams_blocked(leat_writer *w, bool bidi, uint64_t limit)
{
    LEAT_ASSERT(limit <= LEAT_MAX_STREAMS_LIMIT);
    return write_one(w, LEAT_FRAME_CODE_STREAMS_BLOCKED + !bidi, limit);
}

bool leat_frame_write_new_connection_id(leat_writer *w, const leat_frame_new_connection_id *frame)
{
    uint8_t *p = room_for(w, leat_frame_size_new_connection_id(frame));

    LEAT_ASSERT(frame->cid.len >= 1);
    LEAT_ASSERT(frame->cid.len <= LEAT_CID_MAX);
    LEAT_ASSERT(frame->retire_prior_to <= frame->sequence);
    if (!p) {
        return false;
    }
    *p++ = LEAT_FRAME_CODE_NEW_CONNECTION_ID;
    p = leat_varint_put(p, frame->sequence);
    p = leat_varint_put(p, frame->retire_prior_to);
    *p++ = frame->cid.len;
    p = put_bytes(p, frame->cid.data, frame->cid.len);
    p = put_bytes(p, frame->reset_token, sizeof frame->reset_token);
    return done(w, p);
}

bool leat_frame_write_retire_connection_id(leat_writer *w, uint64_t sequence)
{
    return write_one(w, LEAT_FRAME_CODE_RETIRE_CONNECTION_ID, sequence);
}

bool leat_frame_write_path_challenge(leat_writer *w, const uint8_t data[LEAT_PATH_DATA])
{
    return write_path_data(w, LEAT_FRAME_CODE_PATH_CHALLENGE, data);
}

bool leat_frame_write_path_response(leat_writer *w, const uint8_t data[LEAT_PATH_DATA])
{
    return write_path_data(w, LEAT_FRAME_CODE_PATH_RESPONSE, data);
}

/* How much of a text of UTF-8 to keep, at most len bytes: not the first bytes of a character alone,
 * which is four bytes at most. */
static size_t cut_text(leat_span text, size_t len)
{
    size_t cut = len;

    while (cut > 0 && cut < text.len && len - cut < 3 && (text.data[cut] & 0xc0) == 0x80) {
        cut--;
    }
    return cut;
}

bool leat_frame_write_connection_close(leat_writer *w, const leat_frame_connection_close *frame)
{
    size_t head = 1 + leat_varint_len(frame->error) +
                  (frame->application ? 0 : leat_varint_len(frame->frame_type));
    size_t left = leat_writer_left(w);
    size_t len;
    uint8_t *p;

    if (left < head + 1) {
        return false;
    }
    len = cut_text(frame->reason, len_with_length(left - head, frame->reason.len));
    p = room_for(w, head + leat_varint_len(len) + len);
    LEAT_ASSERT(p != NULL); /* `left` was found to be enough */
    *p++ =
        frame->application ? LEAT_FRAME_CODE_APPLICATION_CLOSE : LEAT_FRAME_CODE_CONNECTION_CLOSE;
    p = leat_varint_put(p, frame->error);
    if (!frame->application) {
        p = leat_varint_put(p, frame->frame_type);
    }
    p = leat_varint_put(p, len);
    p = put_bytes(p, frame->reason.data, len);
    return done(w, p);
}

bool leat_frame_write_handshake_done(leat_writer *w)
{
    return write_code(w, LEAT_FRAME_CODE_HANDSHAKE_DONE);
}

bool leat_frame_write_immediate_ack(leat_writer *w)
{
    return write_code(w, LEAT_FRAME_CODE_IMMEDIATE_ACK);
}

bool leat_frame_write_ack_frequency(leat_writer *w, const leat_frame_ack_frequency *frame)
{
    uint8_t *p = room_for(w, leat_frame_size_ack_frequency(frame));

    if (!p) {
        return false;
    }
    p = leat_varint_put(p, LEAT_FRAME_CODE_ACK_FREQUENCY);
    p = leat_varint_put(p, frame->sequence);
    p = leat_varint_put(p, frame->threshold);
    p = leat_varint_put(p, frame->max_delay);
    p = leat_varint_put(p, frame->reorder);
    return done(w, p);
}
