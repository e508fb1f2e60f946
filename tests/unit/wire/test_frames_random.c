/* Frames with random values, there and back; every prefix of every frame; every room too small; and
 * bytes at random. */
#include "wire_test.h"

#include "any_frame.h"

enum { ROUNDS = 400, DATA_MAX = 40, RANGES_MAX = 80 };

/* A frame to be written, with what its spans and ranges point to. */
typedef struct sample {
    leat_frame frame;
    uint8_t data[DATA_MAX];
    leat_range ranges[RANGES_MAX]; /* of an ACK, ascending */
    size_t range_count;
} sample;

static void random_ack(leat_prng *prng, sample *s)
{
    uint64_t at = random_varint(prng) >> 2;

    s->range_count = leat_prng_between(prng, 1, RANGES_MAX);
    for (size_t i = 0; i < s->range_count; i++) {
        s->ranges[i].from = at;
        s->ranges[i].to = at + 1 + (random_varint(prng) >> 10);
        at = s->ranges[i].to + 1 + (random_varint(prng) >> 10);
    }
    s->frame.ack.largest = s->ranges[s->range_count - 1].to - 1;
    s->frame.ack.delay = random_varint(prng);
    s->frame.ack.has_ecn = leat_prng_below(prng, 2) == 1;
    s->frame.ack.ecn =
        (leat_ecn_counts){random_varint(prng), random_varint(prng), random_varint(prng)};
}

static void random_frame(leat_prng *prng, leat_frame_kind kind, sample *s)
{
    leat_frame *f = &s->frame;
    leat_span data = {s->data, leat_prng_below(prng, DATA_MAX)};

    memset(s, 0, sizeof *s);
    leat_prng_fill(prng, s->data, sizeof s->data);
    f->kind = kind;
    switch (kind) {
    case LEAT_FRAME_PADDING:
        f->padding.len = leat_prng_between(prng, 1, 60);
        break;
    case LEAT_FRAME_ACK:
        random_ack(prng, s);
        break;
    case LEAT_FRAME_RESET_STREAM:
        f->reset_stream = (leat_frame_reset_stream){random_varint(prng), random_varint(prng),
                                                    random_varint(prng)};
        break;
    case LEAT_FRAME_RESET_STREAM_AT:
        f->reset_stream_at = (leat_frame_reset_stream_at){random_varint(prng), random_varint(prng),
                                                          random_varint(prng), 0};
        f->reset_stream_at.reliable_size =
            leat_prng_between(prng, 0, f->reset_stream_at.final_size);
        break;
    case LEAT_FRAME_STOP_SENDING:
        f->stop_sending = (leat_frame_stop_sending){random_varint(prng), random_varint(prng)};
        break;
    case LEAT_FRAME_CRYPTO:
        f->crypto.offset = random_varint(prng) / 2;
        f->crypto.data = (leat_span){s->data, data.len + 1};
        break;
    case LEAT_FRAME_NEW_TOKEN:
        f->new_token.token = (leat_span){s->data, data.len + 1};
        break;
    case LEAT_FRAME_STREAM:
        f->stream.stream_id = random_varint(prng);
        f->stream.offset = random_varint(prng) / 2;
        f->stream.data = data;
        f->stream.fin = leat_prng_below(prng, 2) == 1;
        break;
    case LEAT_FRAME_MAX_DATA:
        f->max_data.max = random_varint(prng);
        break;
    case LEAT_FRAME_MAX_STREAM_DATA:
        f->max_stream_data = (leat_frame_max_stream_data){random_varint(prng), random_varint(prng)};
        break;
    case LEAT_FRAME_MAX_STREAMS:
        f->max_streams.max = random_varint(prng) >> 2;
        f->max_streams.bidi = leat_prng_below(prng, 2) == 1;
        break;
    case LEAT_FRAME_DATA_BLOCKED:
        f->data_blocked.limit = random_varint(prng);
        break;
    case LEAT_FRAME_STREAM_DATA_BLOCKED:
        f->stream_data_blocked =
            (leat_frame_stream_data_blocked){random_varint(prng), random_varint(prng)};
        break;
    case LEAT_FRAME_STREAMS_BLOCKED:
        f->streams_blocked.limit = random_varint(prng) >> 2;
        f->streams_blocked.bidi = leat_prng_below(prng, 2) == 1;
        break;
    case LEAT_FRAME_NEW_CONNECTION_ID:
        f->new_connection_id.sequence = random_varint(prng);
        f->new_connection_id.retire_prior_to =
            leat_prng_between(prng, 0, f->new_connection_id.sequence);
        leat_cid_set(&f->new_connection_id.cid, s->data, leat_prng_between(prng, 1, 20));
        leat_prng_fill(prng, f->new_connection_id.reset_token, 16);
        break;
    case LEAT_FRAME_RETIRE_CONNECTION_ID:
        f->retire_connection_id.sequence = random_varint(prng);
        break;
    case LEAT_FRAME_PATH_CHALLENGE:
    case LEAT_FRAME_PATH_RESPONSE:
        leat_prng_fill(prng, f->path_challenge.data, LEAT_PATH_DATA);
        break;
    case LEAT_FRAME_CONNECTION_CLOSE:
    case LEAT_FRAME_APPLICATION_CLOSE:
        f->connection_close.application = kind == LEAT_FRAME_APPLICATION_CLOSE;
        f->connection_close.error = random_varint(prng);
        f->connection_close.frame_type =
            kind == LEAT_FRAME_CONNECTION_CLOSE ? random_varint(prng) : 0;
        f->connection_close.reason = data;
        break;
    case LEAT_FRAME_DATAGRAM:
        f->datagram.data = data;
        break;
    case LEAT_FRAME_ACK_FREQUENCY:
        f->ack_frequency = (leat_frame_ack_frequency){random_varint(prng), random_varint(prng),
                                                      random_varint(prng), random_varint(prng)};
        break;
    case LEAT_FRAME_PING:
    case LEAT_FRAME_HANDSHAKE_DONE:
    case LEAT_FRAME_IMMEDIATE_ACK:
        break;
    case LEAT_FRAME_KINDS:
        fail();
    }
}

static bool write_sample(leat_writer *w, const sample *s)
{
    return write_frame(w, &s->frame, s->ranges, s->range_count);
}

static void assert_ack_equal(const leat_frame_ack *got, const sample *want)
{
    leat_ack_iter iter;
    leat_range r;
    size_t i = want->range_count;

    assert_int_equal(got->largest, want->frame.ack.largest);
    assert_int_equal(got->delay, want->frame.ack.delay);
    assert_int_equal(got->smallest, want->ranges[0].from);
    assert_int_equal(got->has_ecn, want->frame.ack.has_ecn);
    if (got->has_ecn) {
        assert_memory_equal(&got->ecn, &want->frame.ack.ecn, sizeof got->ecn);
    }
    leat_ack_iter_init(&iter, got);
    while (leat_ack_iter_next(&iter, &r)) {
        assert_true(i > 0);
        i--;
        assert_int_equal(r.from, want->ranges[i].from);
        assert_int_equal(r.to, want->ranges[i].to);
    }
    assert_int_equal(i, 0);
}

static void assert_frame_equal(const leat_frame *got, const sample *want)
{
    assert_int_equal(got->kind, want->frame.kind);
    if (got->kind == LEAT_FRAME_ACK) {
        assert_ack_equal(&got->ack, want);
    } else {
        assert_true(same_frame(got, &want->frame));
    }
}

/* Whole, then every prefix: nothing but the whole is a frame (but for a run of PADDING). */
static void check_reading(const sample *s, const uint8_t *encoded, size_t len)
{
    for (size_t n = 1; n <= len; n++) {
        bytes cut = bytes_copy(encoded, n);
        leat_frame got;
        leat_cursor c;
        uint64_t error;

        leat_cursor_init(&c, cut.data, cut.len);
        error = leat_frame_decode(&c, &got);
        if (n == len) {
            assert_int_equal(error, 0);
            assert_int_equal(leat_cursor_left(&c), 0);
            assert_frame_equal(&got, s);
        } else if (s->frame.kind != LEAT_FRAME_PADDING) {
            assert_int_equal(error, LEAT_TE_FRAME_ENCODING_ERROR);
        }
        free(cut.data);
    }
}

/* In every room too small: no frame, or a lesser one where ranges or a reason may be left out. */
static void check_writing(const sample *s, size_t len)
{
    bool may_shrink = s->frame.kind == LEAT_FRAME_ACK ||
                      s->frame.kind == LEAT_FRAME_CONNECTION_CLOSE ||
                      s->frame.kind == LEAT_FRAME_APPLICATION_CLOSE;

    for (size_t room = 0; room < len; room++) {
        bytes out = {malloc(room), room};
        leat_writer w;
        bool written;

        leat_writer_init(&w, out.data, room);
        written = write_sample(&w, s);
        assert_true(leat_writer_ok(&w));
        if (written) {
            leat_frame got;
            leat_cursor c;

            assert_true(may_shrink);
            leat_cursor_init(&c, out.data, leat_writer_len(&w));
            assert_int_equal(leat_frame_decode(&c, &got), 0);
            assert_int_equal(leat_cursor_left(&c), 0);
            assert_int_equal(got.kind, s->frame.kind);
        } else {
            assert_int_equal(leat_writer_len(&w), 0);
        }
        free(out.data);
    }
}

static void every_frame_comes_back_and_no_part_of_one_is_a_frame(void **state)
{
    leat_prng prng;

    (void)state;
    leat_prng_seed(&prng, test_seed(11));
    for (int round = 0; round < ROUNDS; round++) {
        for (leat_frame_kind kind = 0; kind < LEAT_FRAME_KINDS; kind++) {
            uint8_t out[4096];
            leat_writer w;
            sample s;

            random_frame(&prng, kind, &s);
            leat_writer_init(&w, out, sizeof out);
            assert_true(write_sample(&w, &s));
            check_reading(&s, out, leat_writer_len(&w));
            check_writing(&s, leat_writer_len(&w));
        }
    }
}

static void sizes_are_those_of_what_is_written(void **state)
{
    leat_prng prng;

    (void)state;
    leat_prng_seed(&prng, test_seed(12));
    for (int round = 0; round < ROUNDS; round++) {
        size_t size[LEAT_FRAME_KINDS] = {0};
        sample s[LEAT_FRAME_KINDS];

        for (leat_frame_kind kind = 0; kind < LEAT_FRAME_KINDS; kind++) {
            random_frame(&prng, kind, &s[kind]);
        }
#define F(kind) s[LEAT_FRAME_##kind].frame
        size[LEAT_FRAME_RESET_STREAM] = leat_frame_size_reset_stream(
            F(RESET_STREAM).reset_stream.stream_id, F(RESET_STREAM).reset_stream.error,
            F(RESET_STREAM).reset_stream.final_size);
        size[LEAT_FRAME_RESET_STREAM_AT] =
            leat_frame_size_reset_stream_at(&F(RESET_STREAM_AT).reset_stream_at);
        size[LEAT_FRAME_STOP_SENDING] = leat_frame_size_stop_sending(
            F(STOP_SENDING).stop_sending.stream_id, F(STOP_SENDING).stop_sending.error);
        size[LEAT_FRAME_NEW_TOKEN] = leat_frame_size_new_token(F(NEW_TOKEN).new_token.token.len);
        size[LEAT_FRAME_MAX_DATA] = leat_frame_size_one(F(MAX_DATA).max_data.max);
        size[LEAT_FRAME_MAX_STREAMS] = leat_frame_size_one(F(MAX_STREAMS).max_streams.max);
        size[LEAT_FRAME_MAX_STREAM_DATA] = leat_frame_size_two(
            F(MAX_STREAM_DATA).max_stream_data.stream_id, F(MAX_STREAM_DATA).max_stream_data.max);
        size[LEAT_FRAME_NEW_CONNECTION_ID] =
            leat_frame_size_new_connection_id(&F(NEW_CONNECTION_ID).new_connection_id);
        size[LEAT_FRAME_PATH_CHALLENGE] = LEAT_FRAME_SIZE_PATH_DATA;
#undef F
        for (leat_frame_kind kind = 0; kind < LEAT_FRAME_KINDS; kind++) {
            uint8_t out[4096];
            leat_writer w;

            leat_writer_init(&w, out, sizeof out);
            assert_true(write_sample(&w, &s[kind]));
            assert_true(size[kind] == 0 || size[kind] == leat_writer_len(&w));
        }
    }
}

static void assert_within(leat_span span, bytes b)
{
    if (span.len > 0) {
        assert_true(span.data >= b.data);
        assert_true(span.data + span.len <= b.data + b.len);
    }
}

/* Whatever comes, decoding stays in the packet, moves on, and gives values that are legal. */
static void check_random_packet(bytes b)
{
    leat_cursor c;
    leat_frame f;

    leat_cursor_init(&c, b.data, b.len);
    while (leat_cursor_left(&c) > 0) {
        size_t left = leat_cursor_left(&c);
        uint64_t error = leat_frame_decode(&c, &f);

        if (error) {
            assert_true(error == LEAT_TE_FRAME_ENCODING_ERROR ||
                        error == LEAT_TE_PROTOCOL_VIOLATION);
            return;
        }
        assert_true(leat_cursor_left(&c) < left);
        if (f.kind == LEAT_FRAME_STREAM) {
            assert_within(f.stream.data, b);
            assert_true(f.stream.offset + f.stream.data.len <= LEAT_VARINT_MAX);
        } else if (f.kind == LEAT_FRAME_CRYPTO) {
            assert_within(f.crypto.data, b);
        } else if (f.kind == LEAT_FRAME_DATAGRAM) {
            assert_within(f.datagram.data, b);
        } else if (f.kind == LEAT_FRAME_ACK) {
            uint64_t below = f.ack.largest + 2;
            leat_ack_iter iter;
            leat_range r = {0, 0};

            leat_ack_iter_init(&iter, &f.ack);
            while (leat_ack_iter_next(&iter, &r)) {
                assert_true(r.from < r.to);
                assert_true(r.to < below);
                below = r.from;
            }
            assert_int_equal(r.from, f.ack.smallest);
        }
    }
}

static void random_bytes_stay_within_bounds(void **state)
{
    leat_prng prng;

    (void)state;
    leat_prng_seed(&prng, test_seed(13));
    for (int round = 0; round < 200000; round++) {
        uint8_t buf[64];
        bytes b;

        leat_prng_fill(&prng, buf, sizeof buf);
        buf[0] &= 0x1f;
        for (size_t i = 1; i < 8; i++) {
            buf[i] &= round & 1 ? 0x3f : 0xff; /* small numbers, so that more of them get far */
        }
        b = bytes_copy(buf, leat_prng_between(&prng, 1, sizeof buf));
        check_random_packet(b);
        free(b.data);
    }
}

/* One bit or byte wrong in frames that were right. */
static void damaged_frames_stay_within_bounds(void **state)
{
    leat_prng prng;

    (void)state;
    leat_prng_seed(&prng, test_seed(14));
    for (int round = 0; round < 2000; round++) {
        for (leat_frame_kind kind = 0; kind < LEAT_FRAME_KINDS; kind++) {
            uint8_t out[4096];
            leat_writer w;
            sample s;
            bytes b;

            random_frame(&prng, kind, &s);
            leat_writer_init(&w, out, sizeof out);
            assert_true(write_sample(&w, &s));
            b = bytes_copy(out, leat_writer_len(&w));
            b.data[leat_prng_below(&prng, b.len)] ^= (uint8_t)leat_prng_between(&prng, 1, 255);
            check_random_packet(b);
            free(b.data);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_frame_comes_back_and_no_part_of_one_is_a_frame),
        cmocka_unit_test(sizes_are_those_of_what_is_written),
        cmocka_unit_test(random_bytes_stay_within_bounds),
        cmocka_unit_test(damaged_frames_stay_within_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
