/* test_reset_at.c: RESET_STREAM_AT: a stream that is given up but for its first bytes.
 *
 * SPDX-License-Identifier: MIT
 */
#include "table_rig.h"

#define CODE 77u

static leat_stream *open_written(side *s, size_t n)
{
    leat_stream *stream;
    uint8_t *bytes = malloc(n + 1);
    size_t written;

    assert_non_null(bytes);
    assert_int_equal(leat_streams_open(&s->streams, false, &stream), LEAT_OK);
    rig_fill(bytes, stream->id, 0, n);
    assert_int_equal(leat_streams_write(stream, bytes, n, &written), LEAT_OK);
    assert_int_equal(written, n);
    free(bytes);
    return stream;
}

static void reset_at(side *s, leat_stream *stream, uint64_t reliable)
{
    assert_int_equal(leat_streams_reset_at(stream, CODE, reliable), LEAT_OK);
    leat_streams_check(&s->streams);
}

/* The next frame is RESET_STREAM_AT. */
static void expect_reset_at(side *s, uint64_t reliable, uint64_t final_size)
{
    const record *r = side_send(s, 1000);

    assert_non_null(r);
    assert_int_equal(r->what, LEAT_CONTROL_RESET_STREAM_AT);
    assert_int_equal(r->value, reliable);
    assert_int_equal(r->extra, final_size);
    assert_int_equal(r->code, CODE);
}

/* The next frame is of a stream. */
static void expect_data(side *s, size_t max, uint64_t offset, size_t len)
{
    const record *r = side_send(s, max);

    assert_non_null(r);
    assert_int_equal(r->what, 0);
    assert_int_equal(r->value, offset);
    assert_int_equal(r->len, len);
    assert_false(r->fin);
    rig_expect(r->bytes, r->id, offset, len);
}

/* ---- sending ---- */

static void what_was_sent_is_the_final_size_and_the_rest_is_dropped(void **state)
{
    side *s = side_new(false);
    leat_stream *stream = open_written(s, 5000);

    (void)state;
    expect_data(s, 600, 0, 600);
    expect_data(s, 600, 600, 600);
    reset_at(s, stream, 500);
    assert_int_equal(stream->send.state, LEAT_SEND_RESET_AT);
    expect_reset_at(s, 500, 1200);
    assert_null(side_send(s, 1000)); /* neither 1200 and on, nor a FIN */
    side_lost(s, 1);                 /* [600, 1200): not promised */
    assert_null(side_send(s, 1000));
    side_lost(s, 0);
    expect_data(s, 1000, 0, 500);
    side_acked(s, 1); /* the data */
    assert_int_equal(s->rig.budget.by[LEAT_BUDGET_STREAM_SEND], 0);
    assert_false(leat_stream_send_ended(&stream->send));
    side_acked(s, 0); /* the frame */
    assert_null(leat_streams_find(&s->streams, stream->id));
    side_tell(s);
    side_free(s);
}

static void the_frame_waits_until_all_that_it_promises_was_sent(void **state)
{
    side *s = side_new(false);
    leat_stream *stream = open_written(s, 3000);

    (void)state;
    expect_data(s, 1000, 0, 1000);
    reset_at(s, stream, 1500);
    expect_data(s, 1000, 1000, 500); /* not more */
    expect_reset_at(s, 1500, 1500);
    assert_null(side_send(s, 1000));
    side_acked(s, 2); /* the frame first: data is still on its way */
    assert_int_equal(stream->send.state, LEAT_SEND_RESET_AT);
    side_acked(s, 0);
    side_lost(s, 0);
    expect_data(s, 1000, 1000, 500);
    side_acked(s, 0);
    assert_null(leat_streams_find(&s->streams, stream->id));
    side_tell(s);
    side_free(s);
}

/* Credit: the final size stays within it, so the frame waits with the data. */
static void it_waits_for_credit_with_its_data(void **state)
{
    side *s = side_new(false);
    leat_stream *stream = open_written(s, 40000); /* may send 30000 */

    (void)state;
    expect_data(s, 50000, 0, 30000);
    reset_at(s, stream, 35000);
    {
        const record *r = side_send(s, 1000);

        assert_non_null(r);
        assert_int_equal(r->what, LEAT_CONTROL_STREAM_DATA_BLOCKED);
    }
    assert_null(side_send(s, 1000));
    assert_int_equal(leat_streams_on_max_stream_data(&s->streams, stream->id, 90000), 0);
    expect_data(s, 50000, 30000, 5000);
    expect_reset_at(s, 35000, 35000);
    assert_int_equal(s->streams.flow_out.used, 35000);
    assert_null(side_send(s, 1000));
    side_free(s);
}

static void it_is_sent_until_it_arrives(void **state)
{
    side *s = side_new(false);
    leat_stream *stream = open_written(s, 100);

    (void)state;
    expect_data(s, 1000, 0, 100);
    side_acked(s, 0);
    reset_at(s, stream, 40);
    expect_reset_at(s, 40, 100);
    side_probe(s, 0);
    expect_reset_at(s, 40, 100);
    side_lost(s, 1);
    expect_reset_at(s, 40, 100);
    side_lost(s, 1);
    side_acked(s, 0); /* the first has arrived after all: no further one */
    assert_null(side_send(s, 1000));
    assert_null(leat_streams_find(&s->streams, stream->id));
    side_tell(s);
    side_free(s);
}

static void the_promise_can_only_shrink(void **state)
{
    side *s = side_new(false);
    leat_stream *stream = open_written(s, 1000);

    (void)state;
    expect_data(s, 2000, 0, 1000);
    assert_int_equal(leat_streams_reset_at(stream, CODE, 1001), LEAT_ERR_INVALID);
    reset_at(s, stream, 600);
    expect_reset_at(s, 600, 1000);
    reset_at(s, stream, 600);
    assert_null(side_send(s, 1000));
    assert_int_equal(leat_streams_reset_at(stream, CODE, 700), LEAT_ERR_INVALID);
    assert_int_equal(leat_streams_reset_at(stream, CODE + 1, 300), LEAT_OK);
    expect_reset_at(s, 300, 1000); /* with the first code */
    side_acked(s, 1);              /* the frame that promised more: does not count */
    assert_int_equal(stream->send.state, LEAT_SEND_RESET_AT);
    side_lost(s, 0);
    expect_data(s, 2000, 0, 300);
    side_lost(s, 0);
    expect_reset_at(s, 300, 1000);
    side_acked(s, 1);
    side_acked(s, 0);
    assert_null(leat_streams_find(&s->streams, stream->id));
    side_tell(s);
    side_free(s);
}

static void reset_stream_takes_the_whole_promise_back(void **state)
{
    side *s = side_new(false);
    leat_stream *stream = open_written(s, 1000);
    const record *r;

    (void)state;
    expect_data(s, 400, 0, 400);
    reset_at(s, stream, 200);
    expect_reset_at(s, 200, 400);
    side_lost(s, 1); /* waits to be sent again */
    leat_streams_reset(stream, CODE + 1);
    r = side_send(s, 1000);
    assert_non_null(r);
    assert_int_equal(r->what, LEAT_CONTROL_RESET_STREAM);
    assert_int_equal(r->value, CODE);
    assert_int_equal(r->extra, 400);
    assert_null(side_send(s, 1000));
    side_lost(s, 0); /* data: not needed any more */
    assert_null(side_send(s, 1000));
    side_acked(s, 0);
    assert_null(leat_streams_find(&s->streams, stream->id));
    side_tell(s);
    side_free(s);
}

static void of_no_bytes_it_is_a_reset(void **state)
{
    side *s = side_new(false);
    leat_streams_peer old = s->streams.peer;
    leat_stream *stream = open_written(s, 100);
    const record *r;

    (void)state;
    old.reset_stream_at = false;
    leat_streams_set_peer(&s->streams, &old);
    expect_data(s, 1000, 0, 100);
    assert_int_equal(leat_streams_reset_at(stream, CODE, 100), LEAT_ERR_UNSUPPORTED);
    assert_int_equal(stream->send.state, LEAT_SEND_SEND);
    reset_at(s, stream, 0);
    r = side_send(s, 1000);
    assert_non_null(r);
    assert_int_equal(r->what, LEAT_CONTROL_RESET_STREAM);
    assert_int_equal(r->value, CODE);
    side_free(s);
}

static void stop_sending_makes_it_a_plain_reset(void **state)
{
    side *s = side_new(false);
    leat_stream *stream = open_written(s, 1000);
    leat_stream *told;
    unsigned events;
    const record *r;

    (void)state;
    expect_data(s, 400, 0, 400);
    reset_at(s, stream, 300);
    assert_int_equal(leat_streams_on_stop_sending(&s->streams, stream->id, 5), 0);
    r = side_send(s, 1000);
    assert_non_null(r);
    assert_int_equal(r->what, LEAT_CONTROL_RESET_STREAM);
    assert_int_equal(r->value, CODE); /* two codes for one stream would be an error */
    assert_int_equal(r->extra, 400);
    assert_null(side_send(s, 1000));
    told = leat_streams_next_event(&s->streams, &events);
    assert_ptr_equal(told, stream);
    assert_int_equal(events, LEAT_STREAM_EVENT_STOPPED);
    leat_streams_told(&s->streams, told, events);
    side_free(s);
}

static void after_fin_it_keeps_the_final_size(void **state)
{
    side *s = side_new(false);
    leat_stream *stream = open_written(s, 1000);
    const record *r;

    (void)state;
    assert_int_equal(leat_streams_finish(stream), LEAT_OK);
    r = side_send(s, 2000);
    assert_non_null(r);
    assert_true(r->fin);
    reset_at(s, stream, 10);
    expect_reset_at(s, 10, 1000);
    side_lost(s, 0); /* data with FIN */
    expect_data(s, 2000, 0, 10);
    side_acked(s, 0);
    side_acked(s, 0);
    assert_null(leat_streams_find(&s->streams, stream->id));
    side_tell(s);
    side_free(s);
}

/* FIN was not sent: the bytes that nobody wants are not either. */
static void a_fin_not_yet_sent_is_forgotten(void **state)
{
    side *s = side_new(false);
    leat_stream *stream = open_written(s, 1000);

    (void)state;
    expect_data(s, 200, 0, 200);
    assert_int_equal(leat_streams_finish(stream), LEAT_OK);
    reset_at(s, stream, 300);
    expect_data(s, 2000, 200, 100);
    expect_reset_at(s, 300, 300);
    assert_null(side_send(s, 1000));
    side_free(s);
}

static void after_all_has_arrived_there_is_nothing_to_reset(void **state)
{
    side *s = side_new(false);
    leat_stream *stream;

    (void)state;
    assert_int_equal(leat_streams_open(&s->streams, true, &stream), LEAT_OK);
    assert_int_equal(leat_streams_finish(stream), LEAT_OK);
    assert_non_null(side_send(s, 100));
    side_acked(s, 0);
    assert_int_equal(stream->send.state, LEAT_SEND_DATA_RECVD);
    reset_at(s, stream, 5);
    assert_int_equal(stream->send.state, LEAT_SEND_DATA_RECVD);
    assert_null(side_send(s, 100));
    side_free(s);
}

static void writing_after_it_is_refused_and_a_reservation_void(void **state)
{
    side *s = side_new(false);
    leat_stream *stream = open_written(s, 100);
    size_t written;
    leat_mspan span;

    (void)state;
    assert_int_equal(leat_streams_reserve(stream, 5000, &span), LEAT_OK);
    reset_at(s, stream, 60);
    memset(span.data, 1, span.len); /* still there */
    leat_streams_commit(stream, span.len);
    leat_streams_check(&s->streams);
    assert_int_equal(leat_streams_write(stream, "x", 1, &written), LEAT_ERR_CLOSED);
    assert_int_equal(leat_streams_finish(stream), LEAT_ERR_CLOSED);
    expect_data(s, 1000, 0, 60);
    expect_reset_at(s, 60, 60);
    assert_null(side_send(s, 1000));
    side_free(s);
}

/* A reservation in a chunk of its own, all of which is cut off. */
static void a_reservation_beyond_the_promise_is_void(void **state)
{
    side *s = side_new(false);
    leat_stream *stream = open_written(s, 256); /* a chunk of that size */
    leat_mspan span;

    (void)state;
    assert_int_equal(leat_streams_reserve(stream, 5000, &span), LEAT_OK);
    reset_at(s, stream, 7);
    memset(span.data, 1, span.len);
    expect_data(s, 1000, 0, 7);
    side_acked(s, 0);
    leat_streams_commit(stream, span.len);
    leat_streams_check(&s->streams);
    expect_reset_at(s, 7, 7);
    side_acked(s, 0);
    assert_int_equal(s->rig.budget.by[LEAT_BUDGET_STREAM_SEND], 0);
    side_tell(s);
    side_free(s);
}

static void rejected_early_data_starts_anew(void **state)
{
    side *s = side_new(false);
    leat_streams_peer peer = s->streams.peer;
    leat_stream *stream = open_written(s, 1000);
    leat_stream *other;
    const record *r;

    (void)state;
    expect_data(s, 800, 0, 800);
    reset_at(s, stream, 100);
    expect_reset_at(s, 100, 800);
    side_drop_records(s);
    leat_streams_restart(&s->streams, &peer);
    leat_streams_check(&s->streams);
    expect_data(s, 800, 0, 100);
    expect_reset_at(s, 100, 100);
    side_drop_records(s);
    /* The server does not know the frame any more. */
    other = open_written(s, 1000);
    reset_at(s, other, 100);
    peer.reset_stream_at = false;
    leat_streams_restart(&s->streams, &peer);
    leat_streams_check(&s->streams);
    for (unsigned i = 0; i < 2; i++) {
        r = side_send(s, 1000);
        assert_non_null(r);
        assert_int_equal(r->what, LEAT_CONTROL_RESET_STREAM);
        assert_int_equal(r->extra, 0);
    }
    assert_null(side_send(s, 1000));
    side_free(s);
}

/* ---- receiving: a server's stream 3 ---- */

#define ID 3u

static uint64_t on_reset_at(side *s, uint64_t code, uint64_t final_size, uint64_t reliable)
{
    uint64_t error = leat_streams_on_reset_stream_at(&s->streams, ID, code, final_size, reliable);

    leat_streams_check(&s->streams);
    return error;
}

static leat_stream *the_stream(side *s)
{
    leat_stream *stream = leat_streams_find(&s->streams, ID);

    assert_non_null(stream);
    return stream;
}

static void take(side *s, uint64_t n)
{
    leat_stream *stream = the_stream(s);

    while (n > 0) {
        leat_span span = leat_streams_peek(stream);
        size_t some = span.len < n ? span.len : (size_t)n;

        assert_true(span.len > 0);
        rig_expect(span.data, ID, stream->recv.held.read, some);
        leat_streams_consume(stream, some);
        leat_streams_check(&s->streams);
        n -= some;
    }
}

/* All events that wait. */
static unsigned told(side *s)
{
    leat_stream *stream;
    unsigned events, all = 0;

    while ((stream = leat_streams_next_event(&s->streams, &events)) != NULL) {
        assert_int_equal(stream->id, ID);
        leat_streams_told(&s->streams, stream, events);
        leat_streams_check(&s->streams);
        all |= events;
    }
    return all;
}

static void the_reset_is_told_when_the_promised_bytes_were_read(void **state)
{
    side *s = side_new(false);

    (void)state;
    assert_int_equal(side_data(s, ID, 0, 100, false), 0);
    assert_int_equal(told(s), LEAT_STREAM_EVENT_OPENED | LEAT_STREAM_EVENT_READABLE);
    assert_int_equal(on_reset_at(s, CODE, 5000, 300), 0);
    assert_int_equal(told(s), 0);
    assert_false(leat_streams_recv_done(the_stream(s)));
    assert_int_equal(s->streams.flow_in.received, 5000);
    assert_int_equal(s->streams.flow_in.consumed, 4700); /* what will not be read */
    assert_int_equal(side_data(s, ID, 200, 500, false), 0);
    take(s, 100);
    assert_int_equal(leat_streams_peek(the_stream(s)).len, 0);
    assert_int_equal(told(s), 0);
    assert_int_equal(side_data(s, ID, 50, 200, false), 0); /* overlaps */
    assert_int_equal(told(s), LEAT_STREAM_EVENT_READABLE);
    take(s, 199);
    assert_int_equal(told(s), 0);
    take(s, 1);
    assert_true(leat_streams_recv_done(the_stream(s)));
    assert_false(leat_streams_recv_whole(the_stream(s)));
    assert_int_equal(the_stream(s)->recv.reset_code, CODE);
    assert_int_equal(told(s), LEAT_STREAM_EVENT_RESET | LEAT_STREAM_EVENT_CLOSED);
    assert_int_equal(s->streams.flow_in.consumed, 5000);
    assert_int_equal(s->rig.budget.by[LEAT_BUDGET_STREAM_RECV], 0);
    side_free(s);
}

static void it_may_come_first_and_often(void **state)
{
    side *s = side_new(false);

    (void)state;
    assert_int_equal(on_reset_at(s, CODE, 1000, 10), 0);
    assert_int_equal(on_reset_at(s, CODE, 1000, 10), 0);
    assert_int_equal(told(s), LEAT_STREAM_EVENT_OPENED);
    assert_int_equal(side_data(s, ID, 5, 995, true), 0);
    assert_int_equal(side_data(s, ID, 0, 6, false), 0);
    take(s, 10);
    assert_int_equal(told(s), LEAT_STREAM_EVENT_READABLE | LEAT_STREAM_EVENT_RESET |
                                  LEAT_STREAM_EVENT_CLOSED);
    /* Closed by now: ignored. */
    assert_int_equal(on_reset_at(s, CODE, 1000, 10), 0);
    assert_int_equal(side_data(s, ID, 0, 10, false), 0);
    assert_int_equal(told(s), 0);
    side_free(s);
}

static void the_smallest_promise_counts_in_any_order(void **state)
{
    side *s = side_new(false);

    (void)state;
    assert_int_equal(on_reset_at(s, CODE, 1000, 900), 0);
    assert_int_equal(side_data(s, ID, 100, 400, false), 0);
    assert_int_equal(side_data(s, ID, 600, 200, false), 0);
    assert_int_equal(on_reset_at(s, CODE, 1000, 300), 0); /* cuts into the first piece */
    assert_int_equal(leat_reassembly_end(&the_stream(s)->recv.held), 300);
    assert_int_equal(s->streams.flow_in.consumed, 700);
    assert_int_equal(on_reset_at(s, CODE, 1000, 800), 0); /* overtaken */
    assert_int_equal(s->streams.flow_in.consumed, 700);
    assert_int_equal(side_data(s, ID, 0, 100, false), 0);
    take(s, 300);
    assert_true(leat_streams_recv_done(the_stream(s)));
    assert_true((told(s) & LEAT_STREAM_EVENT_RESET) != 0);
    side_free(s);
}

/* What can be read already is not taken away: the application may be looking at it. */
static void what_is_readable_stays_readable(void **state)
{
    side *s = side_new(false);
    leat_span span;

    (void)state;
    assert_int_equal(side_data(s, ID, 0, 500, false), 0);
    (void)told(s);
    span = leat_streams_peek(the_stream(s));
    assert_int_equal(span.len, 500);
    assert_int_equal(on_reset_at(s, CODE, 2000, 100), 0);
    rig_expect(span.data, ID, 0, span.len);
    leat_streams_consume(the_stream(s), span.len);
    assert_int_equal(told(s), LEAT_STREAM_EVENT_RESET | LEAT_STREAM_EVENT_CLOSED);
    assert_int_equal(s->streams.flow_in.consumed, 2000);
    side_free(s);
}

static void what_was_read_needs_no_waiting(void **state)
{
    side *s = side_new(false);

    (void)state;
    assert_int_equal(side_data(s, ID, 0, 500, false), 0);
    take(s, 500);
    (void)told(s);
    assert_int_equal(side_data(s, ID, 700, 100, false), 0); /* goes at once */
    assert_int_equal(on_reset_at(s, CODE, 2000, 500), 0);
    assert_int_equal(told(s), LEAT_STREAM_EVENT_RESET | LEAT_STREAM_EVENT_CLOSED);
    assert_int_equal(s->streams.flow_in.consumed, 2000);
    side_free(s);
}

static void reset_stream_ends_the_wait(void **state)
{
    side *s = side_new(false);

    (void)state;
    assert_int_equal(side_data(s, ID, 0, 10, false), 0);
    assert_int_equal(on_reset_at(s, CODE, 1000, 900), 0);
    (void)told(s);
    assert_int_equal(leat_streams_on_reset_stream(&s->streams, ID, CODE, 1000), 0);
    leat_streams_check(&s->streams);
    assert_int_equal(leat_streams_peek(the_stream(s)).len, 0);
    assert_int_equal(told(s), LEAT_STREAM_EVENT_RESET | LEAT_STREAM_EVENT_CLOSED);
    assert_int_equal(s->streams.flow_in.consumed, 1000);
    side_free(s);
}

static void fin_and_reset_at_agree_in_either_order(void **state)
{
    side *s = side_new(false);

    (void)state;
    assert_int_equal(side_data(s, ID, 500, 500, true), 0); /* the size is known */
    assert_int_equal(on_reset_at(s, CODE, 999, 10), LEAT_TE_FINAL_SIZE_ERROR);
    assert_int_equal(on_reset_at(s, CODE, 1000, 10), 0);
    assert_int_equal(side_data(s, ID, 0, 999, true), LEAT_TE_FINAL_SIZE_ERROR);
    assert_int_equal(side_data(s, ID, 0, 1001, false), LEAT_TE_FINAL_SIZE_ERROR);
    assert_int_equal(side_data(s, ID, 500, 500, true), 0);
    assert_int_equal(side_data(s, ID, 0, 500, false), 0);
    take(s, 10);
    assert_true(leat_streams_recv_done(the_stream(s)));
    side_free(s);
}

static void after_all_data_it_is_ignored(void **state)
{
    side *s = side_new(false);

    (void)state;
    assert_int_equal(side_data(s, ID, 0, 100, true), 0);
    assert_int_equal(on_reset_at(s, CODE, 100, 10), 0);
    assert_int_equal(on_reset_at(s, CODE, 101, 10), LEAT_TE_FINAL_SIZE_ERROR);
    take(s, 100);
    assert_int_equal(told(s), LEAT_STREAM_EVENT_OPENED | LEAT_STREAM_EVENT_READABLE |
                                  LEAT_STREAM_EVENT_CLOSED);
    side_free(s);
}

static void its_errors_are_those_of_the_draft(void **state)
{
    side *s = side_new(false);

    (void)state;
    assert_int_equal(on_reset_at(s, CODE, 30001, 10), LEAT_TE_FLOW_CONTROL_ERROR);
    assert_int_equal(side_data(s, ID, 0, 600, false), 0);
    assert_int_equal(on_reset_at(s, CODE, 599, 10), LEAT_TE_FINAL_SIZE_ERROR);
    assert_int_equal(on_reset_at(s, CODE, 1000, 800), 0);
    assert_int_equal(on_reset_at(s, CODE + 1, 1000, 700), LEAT_TE_STREAM_STATE_ERROR);
    assert_int_equal(on_reset_at(s, CODE, 1001, 700), LEAT_TE_FINAL_SIZE_ERROR);
    assert_int_equal(leat_streams_on_reset_stream(&s->streams, ID, CODE + 1, 1000),
                     LEAT_TE_STREAM_STATE_ERROR);
    /* Of a stream that only we send on; of one that was never opened. */
    assert_int_equal(leat_streams_on_reset_stream_at(&s->streams, 2, CODE, 0, 0),
                     LEAT_TE_STREAM_STATE_ERROR);
    assert_int_equal(leat_streams_on_reset_stream_at(&s->streams, 4 * 1000 + 3, CODE, 0, 0),
                     LEAT_TE_STREAM_LIMIT_ERROR);
    side_free(s);
}

static void a_stopped_stream_does_not_wait(void **state)
{
    side *s = side_new(false);

    (void)state;
    assert_int_equal(side_data(s, ID, 0, 10, false), 0);
    (void)told(s);
    leat_streams_stop(the_stream(s), 1);
    assert_int_equal(on_reset_at(s, CODE, 1000, 900), 0);
    assert_int_equal(told(s), LEAT_STREAM_EVENT_CLOSED);
    assert_int_equal(s->streams.flow_in.consumed, 1000);
    assert_null(side_send(s, 100)); /* STOP_SENDING has no use any more */
    side_free(s);
}

static void stopping_ends_the_wait(void **state)
{
    side *s = side_new(false);

    (void)state;
    assert_int_equal(side_data(s, ID, 20, 10, false), 0);
    assert_int_equal(on_reset_at(s, CODE, 1000, 900), 0);
    (void)told(s);
    leat_streams_stop(the_stream(s), 1);
    leat_streams_check(&s->streams);
    assert_int_equal(told(s), LEAT_STREAM_EVENT_CLOSED);
    assert_int_equal(s->streams.flow_in.consumed, 1000);
    assert_null(side_send(s, 100));
    side_free(s);
}

/* Pieces on one block pay for it once, also after some of them are cut off. */
static void what_is_cut_off_pays_back_what_it_cost(void **state)
{
    side *s = side_new(false);
    leat_buf packet = rig_packet(&s->rig, ID, 0, 8000);

    (void)state;
    for (uint64_t at = 1000; at < 8000; at += 700) {
        leat_buf view = {.data = packet.data + at, .len = 500, .block = packet.block};

        assert_int_equal(leat_streams_on_stream(&s->streams, ID, at, &view, false), 0);
        view.data += 500;
        view.len = 200;
        if (at % 3 != 0) {
            assert_int_equal(leat_streams_on_stream(&s->streams, ID, at + 500, &view, false), 0);
        }
    }
    leat_buf_release(&packet);
    for (uint64_t to = 9000; to > 900; to -= 100) {
        assert_int_equal(on_reset_at(s, CODE, 9000, to), 0);
        assert_int_equal(leat_reassembly_check(&the_stream(s)->recv.held),
                         s->rig.budget.by[LEAT_BUDGET_STREAM_RECV]);
    }
    assert_int_equal(s->rig.budget.by[LEAT_BUDGET_STREAM_RECV], 0);
    side_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sent_is_the_final_size_and_the_rest_is_dropped),
        cmocka_unit_test(the_frame_waits_until_all_that_it_promises_was_sent),
        cmocka_unit_test(it_waits_for_credit_with_its_data),
        cmocka_unit_test(it_is_sent_until_it_arrives),
        cmocka_unit_test(the_promise_can_only_shrink),
        cmocka_unit_test(reset_stream_takes_the_whole_promise_back),
        cmocka_unit_test(of_no_bytes_it_is_a_reset),
        cmocka_unit_test(stop_sending_makes_it_a_plain_reset),
        cmocka_unit_test(after_fin_it_keeps_the_final_size),
        cmocka_unit_test(a_fin_not_yet_sent_is_forgotten),
        cmocka_unit_test(after_all_has_arrived_there_is_nothing_to_reset),
        cmocka_unit_test(writing_after_it_is_refused_and_a_reservation_void),
        cmocka_unit_test(a_reservation_beyond_the_promise_is_void),
        cmocka_unit_test(rejected_early_data_starts_anew),
        cmocka_unit_test(the_reset_is_told_when_the_promised_bytes_were_read),
        cmocka_unit_test(it_may_come_first_and_often),
        cmocka_unit_test(the_smallest_promise_counts_in_any_order),
        cmocka_unit_test(what_is_readable_stays_readable),
        cmocka_unit_test(what_was_read_needs_no_waiting),
        cmocka_unit_test(reset_stream_ends_the_wait),
        cmocka_unit_test(fin_and_reset_at_agree_in_either_order),
        cmocka_unit_test(after_all_data_it_is_ignored),
        cmocka_unit_test(its_errors_are_those_of_the_draft),
        cmocka_unit_test(a_stopped_stream_does_not_wait),
        cmocka_unit_test(stopping_ends_the_wait),
        cmocka_unit_test(what_is_cut_off_pays_back_what_it_cost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
