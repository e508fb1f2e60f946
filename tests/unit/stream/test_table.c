/* test_table.c: the streams of a connection: IDs, limits, lives, control frames. Scheduling is in
 * test_schedule.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "table_rig.h"

static leat_stream *open_stream(side *s, bool bidi)
{
    leat_stream *stream;

    assert_int_equal(leat_streams_open(&s->streams, bidi, &stream), LEAT_OK);
    leat_streams_check(&s->streams);
    return stream;
}

static void put(leat_stream *stream, size_t n)
{
    uint8_t *bytes = malloc(n);
    size_t written;

    assert_non_null(bytes);
    rig_fill(bytes, stream->id, stream->send.end, n);
    assert_int_equal(leat_streams_write(stream, bytes, n, &written), LEAT_OK);
    assert_int_equal(written, n);
    free(bytes);
}

static void expect_control(side *s, leat_control what, uint64_t value)
{
    record *r = side_send(s, 1000);

    assert_non_null(r);
    assert_int_equal(r->what, what);
    assert_int_equal(r->value, value);
}

static void expect_stream(side *s, uint64_t id, uint64_t offset, size_t len, bool fin)
{
    record *r = side_send(s, 1000);

    assert_non_null(r);
    assert_int_equal(r->what, 0);
    assert_int_equal(r->id, id);
    assert_int_equal(r->value, offset);
    assert_int_equal(r->len, len);
    assert_int_equal(r->fin, fin);
    rig_expect(r->bytes, id, offset, len);
}

static void expect_event(side *s, uint64_t id, unsigned expected)
{
    unsigned events;
    leat_stream *stream = leat_streams_next_event(&s->streams, &events);

    assert_non_null(stream);
    assert_int_equal(stream->id, id);
    assert_int_equal(events, expected);
    leat_streams_told(&s->streams, stream, events);
    leat_streams_check(&s->streams);
}

/* ---- IDs and kinds ---- */

static void ids_are_numbered_by_kind(void **state)
{
    side *c = side_new(false), *s = side_new(true);

    (void)state;
    assert_int_equal(open_stream(c, true)->id, 0);
    assert_int_equal(open_stream(c, true)->id, 4);
    assert_int_equal(open_stream(c, false)->id, 2);
    assert_int_equal(open_stream(s, true)->id, 1);
    assert_int_equal(open_stream(s, false)->id, 3);
    assert_int_equal(open_stream(s, false)->id, 7);
    side_free(c);
    side_free(s);
}

static void each_kind_has_its_parts_and_limits(void **state)
{
    side *c = side_new(false);
    leat_stream *local_bidi = open_stream(c, true);
    leat_stream *local_uni = open_stream(c, false);
    leat_stream *peer_bidi, *peer_uni;

    (void)state;
    assert_int_equal(side_data(c, 1, 0, 1, false), 0);
    assert_int_equal(side_data(c, 3, 0, 1, false), 0);
    peer_bidi = leat_streams_find(&c->streams, 1);
    peer_uni = leat_streams_find(&c->streams, 3);
    assert_int_equal(local_bidi->send.flow.limit, 20000); /* the peer calls it remote */
    assert_int_equal(local_bidi->recv.flow.limit, 10000);
    assert_int_equal(local_uni->send.flow.limit, 30000);
    assert_int_equal(local_uni->recv.state, LEAT_RECV_NONE);
    assert_int_equal(peer_bidi->send.flow.limit, 10000);
    assert_int_equal(peer_bidi->recv.flow.limit, 20000);
    assert_int_equal(peer_uni->send.state, LEAT_SEND_NONE);
    assert_int_equal(peer_uni->recv.flow.limit, 30000);
    side_free(c);
}

static void frames_in_the_wrong_direction_are_errors(void **state)
{
    side *c = side_new(false);

    (void)state;
    open_stream(c, false);
    /* Ours, unidirectional: nothing to receive. */
    assert_int_equal(side_data(c, 2, 0, 1, false), LEAT_TE_STREAM_STATE_ERROR);
    assert_int_equal(leat_streams_on_reset_stream(&c->streams, 2, 0, 0),
                     LEAT_TE_STREAM_STATE_ERROR);
    assert_int_equal(leat_streams_on_stream_data_blocked(&c->streams, 2, 0),
                     LEAT_TE_STREAM_STATE_ERROR);
    /* The peer's, unidirectional: nothing to send. */
    assert_int_equal(leat_streams_on_stop_sending(&c->streams, 3, 0), LEAT_TE_STREAM_STATE_ERROR);
    assert_int_equal(leat_streams_on_max_stream_data(&c->streams, 3, 0),
                     LEAT_TE_STREAM_STATE_ERROR);
    assert_null(leat_streams_find(&c->streams, 3));
    /* Ours, not opened. */
    assert_int_equal(side_data(c, 0, 0, 1, false), LEAT_TE_STREAM_STATE_ERROR);
    assert_int_equal(leat_streams_on_stop_sending(&c->streams, 0, 0), LEAT_TE_STREAM_STATE_ERROR);
    assert_int_equal(leat_streams_on_max_stream_data(&c->streams, 6, 9),
                     LEAT_TE_STREAM_STATE_ERROR);
    side_free(c);
}

static void any_frame_opens_a_stream_of_the_peers(void **state)
{
    side *c = side_new(false);

    (void)state;
    assert_int_equal(leat_streams_on_max_stream_data(&c->streams, 1, 50000), 0);
    assert_int_equal(leat_streams_find(&c->streams, 1)->send.flow.limit, 50000);
    assert_int_equal(leat_streams_on_stream_data_blocked(&c->streams, 5, 0), 0);
    assert_non_null(leat_streams_find(&c->streams, 5));
    assert_int_equal(leat_streams_on_stop_sending(&c->streams, 9, 3), 0);
    expect_event(c, 1, LEAT_STREAM_EVENT_OPENED);
    expect_event(c, 5, LEAT_STREAM_EVENT_OPENED);
    expect_event(c, 9, LEAT_STREAM_EVENT_OPENED | LEAT_STREAM_EVENT_STOPPED);
    assert_false(leat_streams_has_events(&c->streams));
    side_free(c);
}

/* ---- limits on streams ---- */

static void more_streams_than_allowed_are_an_error(void **state)
{
    side *c = side_new(false);

    (void)state;
    assert_int_equal(side_data(c, 10 * 4 + 1, 0, 1, false), LEAT_TE_STREAM_LIMIT_ERROR);
    assert_int_equal(side_data(c, 4 * 4 + 3, 0, 1, false), LEAT_TE_STREAM_LIMIT_ERROR);
    assert_int_equal(side_data(c, (UINT64_C(1) << 62) - 3, 0, 1, false),
                     LEAT_TE_STREAM_LIMIT_ERROR);
    assert_int_equal(side_data(c, 9 * 4 + 1, 0, 1, false), 0);
    assert_int_equal(side_data(c, 3 * 4 + 3, 0, 1, false), 0);
    side_free(c);
}

static void a_higher_id_opens_the_lower_ones_without_memory(void **state)
{
    leat_streams_settings settings = side_settings(false);
    side *c;
    leat_mem_stats before, after;

    (void)state;
    settings.max_streams_bidi = 1 << 20;
    c = side_new_with(&settings, 0);
    assert_int_equal(side_data(c, 1, 0, 1, false), 0);
    leat_mem_stats_get(c->rig.mem, &before);
    assert_int_equal(side_data(c, ((UINT64_C(1) << 20) - 1) * 4 + 1, 0, 1, false), 0);
    leat_mem_stats_get(c->rig.mem, &after);
    assert_true(after.obj_live - before.obj_live < 4096);
    assert_int_equal(leat_hmap_count(&c->streams.by_id), 2);
    /* They are there all the same. */
    assert_int_equal(side_data(c, 1001, 0, 1, false), 0);
    assert_non_null(leat_streams_find(&c->streams, 1001));
    assert_int_equal(leat_hmap_count(&c->streams.by_id), 3);
    side_free(c);
}

/* Each idle stream stands alone among closed ones: as many ranges as streams may be open. */
static void idle_streams_among_closed_ones_are_remembered(void **state)
{
    leat_streams_settings settings = side_settings(false);
    side *c;

    (void)state;
    settings.max_streams_uni = 10;
    c = side_new_with(&settings, 0);
    for (uint64_t i = 1; i < 18; i += 2) {
        assert_int_equal(side_data(c, i * 4 + 3, 0, 1, true), 0);
        leat_streams_consume(leat_streams_find(&c->streams, i * 4 + 3), 1);
        side_tell(c);
        while (side_send(c, 1000)) {
        }
    }
    for (uint64_t i = 0; i < 18; i += 2) {
        assert_int_equal(side_data(c, i * 4 + 3, 0, 1, true), 0);
        assert_non_null(leat_streams_find(&c->streams, i * 4 + 3));
    }
    side_free(c);
}

static void frames_for_closed_streams_are_ignored(void **state)
{
    side *c = side_new(false);

    (void)state;
    assert_int_equal(side_data(c, 3, 0, 10, true), 0);
    leat_streams_consume(leat_streams_find(&c->streams, 3), 10);
    assert_null(leat_streams_find(&c->streams, 3));
    side_tell(c);
    assert_int_equal(side_data(c, 3, 0, 10, true), 0);
    assert_int_equal(side_data(c, 3, 5000, 10, false), 0);
    assert_int_equal(leat_streams_on_reset_stream(&c->streams, 3, 1, 5), 0);
    assert_null(leat_streams_find(&c->streams, 3));
    assert_false(leat_streams_has_events(&c->streams));
    assert_int_equal(c->rig.budget.by[LEAT_BUDGET_STREAM_RECV], 0);
    assert_int_equal(c->streams.flow_in.received, 10);
    side_free(c);
}

static void closed_streams_make_room_for_others(void **state)
{
    side *c = side_new(false); /* 4 unidirectional */

    (void)state;
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(side_data(c, i * 4 + 3, 0, 1, true), 0);
    }
    assert_null(side_send(c, 1000));
    assert_int_equal(side_data(c, 4 * 4 + 3, 0, 1, true), LEAT_TE_STREAM_LIMIT_ERROR);
    leat_streams_consume(leat_streams_find(&c->streams, 3), 1);
    leat_streams_consume(leat_streams_find(&c->streams, 7), 1);
    expect_control(c, LEAT_CONTROL_MAX_STREAMS_UNI, 6); /* both in one */
    assert_null(side_send(c, 1000));
    assert_int_equal(side_data(c, 5 * 4 + 3, 0, 1, true), 0);
    side_lost(c, 0);
    expect_control(c, LEAT_CONTROL_MAX_STREAMS_UNI, 6);
    leat_streams_consume(leat_streams_find(&c->streams, 11), 1);
    side_lost(c, 0); /* a frame about a limit long passed */
    expect_control(c, LEAT_CONTROL_MAX_STREAMS_UNI, 7);
    assert_null(side_send(c, 1000));
    side_free(c);
}

static void a_peer_that_says_it_is_blocked_gets_what_there_is(void **state)
{
    leat_streams_settings settings = side_settings(false);
    side *c;

    (void)state;
    settings.max_streams_uni = 100;
    c = side_new_with(&settings, 0);
    assert_int_equal(side_data(c, 3, 0, 0, true), 0);
    side_tell(c);
    assert_null(side_send(c, 1000)); /* one of a hundred: not worth a frame */
    assert_int_equal(leat_streams_on_streams_blocked(&c->streams, false, 100), 0);
    expect_control(c, LEAT_CONTROL_MAX_STREAMS_UNI, 101);
    assert_int_equal(leat_streams_on_streams_blocked(&c->streams, true, LEAT_STREAMS_MAX), 0);
    assert_int_equal(leat_streams_on_streams_blocked(&c->streams, true, LEAT_STREAMS_MAX + 1),
                     LEAT_TE_FRAME_ENCODING_ERROR);
    side_free(c);
}

static void opening_beyond_the_peers_limit_waits(void **state)
{
    side *c = side_new(false);
    leat_stream *stream;

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        open_stream(c, false);
    }
    assert_int_equal(leat_streams_open(&c->streams, false, &stream), LEAT_ERR_BLOCKED);
    assert_null(stream);
    expect_control(c, LEAT_CONTROL_STREAMS_BLOCKED_UNI, 4);
    assert_int_equal(leat_streams_open(&c->streams, false, &stream), LEAT_ERR_BLOCKED);
    assert_null(side_send(c, 1000)); /* told once */
    side_lost(c, 0);
    expect_control(c, LEAT_CONTROL_STREAMS_BLOCKED_UNI, 4);
    assert_int_equal(leat_streams_on_max_streams(&c->streams, false, 3), 0); /* lower: ignored */
    assert_false(leat_streams_has_events(&c->streams));
    assert_int_equal(leat_streams_on_max_streams(&c->streams, false, 5), 0);
    assert_int_equal(c->streams.available, LEAT_STREAMS_AVAILABLE_UNI);
    open_stream(c, false);
    side_lost(c, 0);
    assert_null(side_send(c, 1000)); /* that limit is no more */
    side_free(c);
}

/* CASES: MAX_STREAMS above 2^60: close; exactly 2^60: accepted. */
static void max_streams_has_a_bound(void **state)
{
    side *c = side_new(false);

    (void)state;
    assert_int_equal(leat_streams_on_max_streams(&c->streams, true, LEAT_STREAMS_MAX + 1),
                     LEAT_TE_FRAME_ENCODING_ERROR);
    assert_int_equal(leat_streams_on_max_streams(&c->streams, true, LEAT_STREAMS_MAX), 0);
    assert_int_equal(c->streams.local[0].limit, LEAT_STREAMS_MAX);
    side_free(c);
}

static void our_limit_on_streams_stops_at_the_largest_number(void **state)
{
    leat_streams_settings settings = side_settings(false);
    side *c;

    (void)state;
    settings.max_streams_uni = UINT64_MAX;
    c = side_new_with(&settings, 0);
    assert_int_equal(c->streams.remote[1].limit, LEAT_STREAMS_MAX);
    assert_int_equal(side_data(c, 3, 0, 0, true), 0);
    side_tell(c);
    assert_int_equal(leat_streams_on_streams_blocked(&c->streams, false, 1), 0);
    assert_null(side_send(c, 1000));
    side_free(c);
}

/* ---- lives ---- */

static void a_request_and_its_answer_run_through(void **state)
{
    side *c = side_new(false);
    leat_stream *stream = open_stream(c, true);

    (void)state;
    put(stream, 100);
    assert_int_equal(leat_streams_finish(stream), LEAT_OK);
    expect_stream(c, 0, 0, 100, true);
    assert_int_equal(side_data(c, 0, 0, 50, true), 0);
    expect_event(c, 0, LEAT_STREAM_EVENT_READABLE);
    rig_expect(leat_streams_peek(stream).data, 0, 0, 50);
    leat_streams_consume(stream, 50);
    assert_true(leat_streams_recv_done(stream));
    assert_false(leat_streams_has_events(&c->streams)); /* our own end is not acknowledged */
    side_acked(c, 0);
    assert_null(leat_streams_find(&c->streams, 0));
    expect_event(c, 0, LEAT_STREAM_EVENT_CLOSED);
    assert_int_equal(leat_pool_live(&c->rig.pools.streams), 0);
    side_free(c);
}

/* An object that a record points to stays, and goes with the last record. */
static void a_stream_outlives_the_records_that_point_to_it(void **state)
{
    side *c = side_new(false);
    leat_stream *stream = open_stream(c, false);

    (void)state;
    put(stream, 100);
    assert_int_equal(leat_streams_finish(stream), LEAT_OK);
    expect_stream(c, 2, 0, 100, true);
    leat_streams_stream_probe(&c->streams, stream, 0, 100, true);
    expect_stream(c, 2, 0, 100, true);
    side_acked(c, 1);
    expect_event(c, 2, LEAT_STREAM_EVENT_CLOSED);
    assert_int_equal(leat_pool_live(&c->rig.pools.streams), 1);
    side_lost(c, 0);
    assert_null(side_send(c, 1000));
    assert_int_equal(leat_pool_live(&c->rig.pools.streams), 0);
    side_free(c);
}

static void a_reset_is_sent_until_it_arrives(void **state)
{
    side *c = side_new(false);
    leat_stream *stream = open_stream(c, false);

    (void)state;
    put(stream, 2000);
    expect_stream(c, 2, 0, 1000, false);
    leat_streams_reset(stream, 55);
    leat_streams_reset(stream, 56);
    expect_control(c, LEAT_CONTROL_RESET_STREAM, 55);
    assert_int_equal(c->records[1].extra, 1000); /* what was sent */
    assert_null(side_send(c, 1000));
    side_lost(c, 1);
    side_lost(c, 0);
    expect_control(c, LEAT_CONTROL_RESET_STREAM, 55);
    assert_null(side_send(c, 1000));
    side_acked(c, 0);
    expect_event(c, 2, LEAT_STREAM_EVENT_CLOSED);
    side_free(c);
}

/* All is under way: what arrives is acknowledged, and what is lost brings the reset. */
static void a_reset_if_lost_waits_for_a_loss(void **state)
{
    side *c = side_new(false);
    leat_stream *stream = open_stream(c, false);

    (void)state;
    put(stream, 1500);
    assert_int_equal(leat_streams_finish(stream), LEAT_OK);
    expect_stream(c, 2, 0, 1000, false);
    expect_stream(c, 2, 1000, 500, true);
    leat_streams_reset_if_lost(stream, 55);
    assert_null(side_send(c, 1000));
    side_acked(c, 0);
    assert_int_equal(stream->send.base, 1000);
    side_lost(c, 0);
    expect_control(c, LEAT_CONTROL_RESET_STREAM, 55);
    assert_null(side_send(c, 1000));
    side_acked(c, 0);
    expect_event(c, 2, LEAT_STREAM_EVENT_CLOSED);
    side_free(c);
}

static void a_reset_if_lost_is_none_when_all_arrives(void **state)
{
    side *c = side_new(false);
    leat_stream *stream = open_stream(c, false);

    (void)state;
    put(stream, 500);
    assert_int_equal(leat_streams_finish(stream), LEAT_OK);
    expect_stream(c, 2, 0, 500, true);
    leat_streams_reset_if_lost(stream, 55);
    side_acked(c, 0);
    assert_null(side_send(c, 1000));
    expect_event(c, 2, LEAT_STREAM_EVENT_CLOSED);
    side_free(c);
}

static void a_reset_if_lost_is_one_where_not_all_was_sent(void **state)
{
    (void)state;
    for (int finished = 0; finished < 2; finished++) {
        side *c = side_new(false);
        leat_stream *stream = open_stream(c, false);

        put(stream, 1500);
        if (finished) {
            assert_int_equal(leat_streams_finish(stream), LEAT_OK);
        }
        expect_stream(c, 2, 0, 1000, false);
        leat_streams_reset_if_lost(stream, 55);
        expect_control(c, LEAT_CONTROL_RESET_STREAM, 55);
        side_free(c);
    }
}

static void stop_sending_resets_with_its_code(void **state)
{
    side *c = side_new(false);
    leat_stream *stream = open_stream(c, true);
    size_t n;

    (void)state;
    put(stream, 100);
    assert_int_equal(leat_streams_on_stop_sending(&c->streams, 0, 9), 0);
    assert_int_equal(stream->stop_code, 9);
    expect_event(c, 0, LEAT_STREAM_EVENT_STOPPED);
    assert_int_equal(leat_streams_write(stream, "x", 1, &n), LEAT_ERR_CLOSED);
    expect_control(c, LEAT_CONTROL_RESET_STREAM, 9);
    assert_int_equal(leat_streams_on_stop_sending(&c->streams, 0, 10), 0);
    assert_false(leat_streams_has_events(&c->streams));
    assert_null(side_send(c, 1000));
    side_free(c);
}

static void stop_is_sent_until_the_end_is_known(void **state)
{
    side *c = side_new(false);
    leat_stream *stream;

    (void)state;
    assert_int_equal(side_data(c, 3, 0, 100, false), 0);
    stream = leat_streams_find(&c->streams, 3);
    side_tell(c);
    leat_streams_stop(stream, 12);
    expect_control(c, LEAT_CONTROL_STOP_SENDING, 12);
    side_lost(c, 0);
    expect_control(c, LEAT_CONTROL_STOP_SENDING, 12);
    assert_int_equal(leat_streams_on_reset_stream(&c->streams, 3, 12, 700), 0);
    side_lost(c, 0);
    assert_null(side_send(c, 1000));
    expect_event(c, 3, LEAT_STREAM_EVENT_CLOSED);
    assert_int_equal(c->streams.flow_in.consumed, 700);
    side_free(c);
}

/* CASES: a flood of RESET_STREAM on fresh streams. */
static void a_flood_of_resets_stays_within_the_limits(void **state)
{
    side *c = side_new(false);

    (void)state;
    for (uint64_t i = 0; i < 10000; i++) {
        uint64_t code = leat_streams_on_reset_stream(&c->streams, i * 4 + 3, 1, 3);

        if (code == LEAT_TE_STREAM_LIMIT_ERROR) {
            /* What the peer may: as many as it was told. */
            assert_true(i >= c->streams.remote[1].limit);
            side_tell(c);
            assert_int_equal(side_send(c, 1000)->what, LEAT_CONTROL_MAX_STREAMS_UNI);
            side_acked(c, 0);
            code = leat_streams_on_reset_stream(&c->streams, i * 4 + 3, 1, 3);
        }
        assert_int_equal(code, 0);
        assert_true(leat_pool_live(&c->rig.pools.streams) <= 4);
        while (c->streams.flow_in.limit - c->streams.flow_in.received < 10) {
            assert_non_null(side_send(c, 1000));
            side_acked(c, 0);
        }
    }
    assert_true(c->rig.budget.high <= 4 * sizeof(leat_stream));
    side_free(c);
}

static void the_budget_bounds_streams(void **state)
{
    leat_streams_settings settings = side_settings(false);
    leat_stream *stream;
    uint64_t code = 0;
    side *c;

    (void)state;
    settings.max_streams_bidi = 1000;
    c = side_new_with(&settings, 20 * sizeof(leat_stream));
    for (uint64_t i = 0; code == 0; i++) {
        code = side_data(c, i * 4 + 1, 0, 0, false);
    }
    assert_int_equal(code, LEAT_TE_INTERNAL_ERROR);
    assert_int_equal(leat_hmap_count(&c->streams.by_id), 20);
    c->streams.local[0].limit = 1;
    assert_int_equal(leat_streams_open(&c->streams, true, &stream), LEAT_ERR_NOMEM);
    assert_int_equal(c->streams.local[0].opened, 0);
    side_free(c);
}

/* Writes use half of the budget, so that the peer's bytes find room; a stream that finds others
 * holding that half waits, and is told when they have let go. */
static void writers_share_half_of_the_budget(void **state)
{
    static const uint8_t bytes[1000];
    leat_streams_settings settings = side_settings(false);
    leat_streams_peer peer = side_parameters(&settings);
    leat_stream *waits;
    unsigned events;
    leat_err err;
    size_t n;
    side *c;

    (void)state;
    settings.send_buffer = 1 << 20;
    peer.max_data = peer.max_stream_data_bidi_remote = 1 << 20;
    c = side_new_with(&settings, 600000);
    leat_streams_set_peer(&c->streams, &peer);
    do { /* until one finds nothing left at all */
        waits = open_stream(c, true);
        while ((err = leat_streams_write(waits, bytes, 1000, &n)) == LEAT_OK) {
        }
        assert_int_equal(err, LEAT_ERR_BLOCKED);
    } while (waits->send.end > 0);
    assert_in_range(c->rig.budget.by[LEAT_BUDGET_STREAM_SEND], 200000, 300000);
    assert_int_equal(side_data(c, 3, 0, 20000, false), 0);
    side_tell(c);
    while (leat_streams_next_event(&c->streams, &events) != waits) {
        assert_true(leat_streams_has_events(&c->streams) || side_send(c, 1000));
        while (c->count > 0) {
            side_acked(c, 0);
        }
    }
    assert_int_equal(events, LEAT_STREAM_EVENT_WRITABLE);
    assert_int_equal(leat_streams_write(waits, bytes, 1000, &n), LEAT_OK);
    side_free(c);
}

static void closing_all_tells_each_once(void **state)
{
    side *c = side_new(false);
    leat_stream *stream = open_stream(c, true);

    (void)state;
    put(stream, 5000);
    expect_stream(c, 0, 0, 1000, false);
    assert_int_equal(side_data(c, 3, 0, 100, false), 0);
    side_tell(c);
    assert_int_equal(side_data(c, 3, 100, 100, false), 0);
    assert_int_equal(side_data(c, 7, 0, 100, false), 0); /* not told yet */
    leat_streams_close_all(&c->streams);
    leat_streams_check(&c->streams);
    assert_null(side_send(c, 1000));
    expect_event(c, 3, LEAT_STREAM_EVENT_CLOSED);
    expect_event(c, 7, LEAT_STREAM_EVENT_OPENED | LEAT_STREAM_EVENT_CLOSED);
    expect_event(c, 0, LEAT_STREAM_EVENT_CLOSED);
    assert_false(leat_streams_has_events(&c->streams));
    assert_int_equal(leat_pool_live(&c->rig.pools.streams), 1); /* a record points to it */
    side_drop_records(c);
    assert_int_equal(leat_pool_live(&c->rig.pools.streams), 0);
    side_free(c);
}

/* ---- flow control ---- */

static void credit_is_given_as_data_is_read(void **state)
{
    side *c = side_new(false);
    leat_stream *stream;

    (void)state;
    assert_int_equal(side_data(c, 1, 0, 20000, false), 0);
    stream = leat_streams_find(&c->streams, 1);
    side_tell(c);
    leat_streams_consume(stream, 9999);
    assert_null(side_send(c, 1000));
    leat_streams_consume(stream, 1);
    expect_control(c, LEAT_CONTROL_MAX_STREAM_DATA, 30000);
    side_lost(c, 0);
    expect_control(c, LEAT_CONTROL_MAX_STREAM_DATA, 30000);
    leat_streams_consume(stream, 10000);
    expect_control(c, LEAT_CONTROL_MAX_STREAM_DATA, 40000);
    side_lost(c, 0); /* 30000 is out of date */
    assert_null(side_send(c, 1000));
    assert_int_equal(side_data(c, 1, 20000, 20000, true), 0);
    side_lost(c, 0); /* 40000, but the size is known */
    assert_null(side_send(c, 1000));
    side_free(c);
}

static void the_connections_credit_covers_all_streams(void **state)
{
    leat_streams_settings settings = side_settings(false);
    side *c;

    (void)state;
    settings.max_data = 1000;
    c = side_new_with(&settings, 0);
    assert_int_equal(side_data(c, 1, 0, 600, false), 0);
    assert_int_equal(side_data(c, 3, 0, 401, false), LEAT_TE_FLOW_CONTROL_ERROR);
    assert_int_equal(side_data(c, 7, 0, 400, false), 0);
    leat_streams_consume(leat_streams_find(&c->streams, 1), 500);
    expect_control(c, LEAT_CONTROL_MAX_DATA, 1500);
    side_lost(c, 0);
    expect_control(c, LEAT_CONTROL_MAX_DATA, 1500);
    assert_int_equal(side_data(c, 7, 400, 500, false), 0);
    leat_streams_consume(leat_streams_find(&c->streams, 7), 900);
    expect_control(c, LEAT_CONTROL_MAX_DATA, 2400);
    side_lost(c, 0); /* 1500 is out of date */
    assert_null(side_send(c, 1000));
    side_free(c);
}

static void a_known_end_calls_off_what_was_to_be_sent_about_the_rest(void **state)
{
    side *c = side_new(false);

    (void)state;
    assert_int_equal(side_data(c, 1, 0, 15000, false), 0);
    leat_streams_consume(leat_streams_find(&c->streams, 1), 12000);
    assert_true(leat_streams_wants_send(&c->streams)); /* MAX_STREAM_DATA */
    assert_int_equal(side_data(c, 1, 15000, 10, true), 0);
    assert_null(side_send(c, 1000));
    side_free(c);
}

static void being_blocked_is_told_once_a_limit(void **state)
{
    leat_streams_settings settings = side_settings(false);
    leat_streams_peer peer = side_parameters(&settings);
    side *c = side_new_with(&settings, 0);
    leat_stream *stream;

    (void)state;
    peer.max_data = 1500;
    peer.max_stream_data_uni = 1000;
    leat_streams_set_peer(&c->streams, &peer);
    stream = open_stream(c, false);
    put(stream, 5000);
    expect_stream(c, 2, 0, 1000, false);
    expect_control(c, LEAT_CONTROL_STREAM_DATA_BLOCKED, 1000);
    assert_null(side_send(c, 1000));
    side_lost(c, 1);
    expect_control(c, LEAT_CONTROL_STREAM_DATA_BLOCKED, 1000);
    assert_int_equal(leat_streams_on_max_stream_data(&c->streams, 2, 3000), 0);
    side_lost(c, 1); /* no longer true */
    expect_stream(c, 2, 1000, 500, false);
    expect_control(c, LEAT_CONTROL_DATA_BLOCKED, 1500);
    assert_null(side_send(c, 1000));
    assert_false(leat_streams_wants_send(&c->streams)); /* no hot loop */
    side_lost(c, 2);
    expect_control(c, LEAT_CONTROL_DATA_BLOCKED, 1500);
    assert_int_equal(leat_streams_on_max_data(&c->streams, 10000), 0);
    assert_true(leat_streams_wants_send(&c->streams));
    expect_stream(c, 2, 1500, 1000, false);
    side_free(c);
}

/* s4.1: whoever has waited for long says it again; and nothing that is true no more. */
static void being_blocked_is_told_again_when_asked_to(void **state)
{
    leat_streams_settings settings = side_settings(false);
    leat_streams_peer peer = side_parameters(&settings);
    side *c = side_new_with(&settings, 0);
    leat_stream *stream;

    (void)state;
    peer.max_data = 1000;
    peer.max_stream_data_uni = 1000;
    leat_streams_set_peer(&c->streams, &peer);
    stream = open_stream(c, false);
    put(stream, 1000);
    expect_stream(c, 2, 0, 1000, false);
    leat_streams_blocked_again(&c->streams);
    assert_null(side_send(c, 1000)); /* there is no more to send */
    put(stream, 1000);
    for (int i = 0; i < 2; i++) {
        expect_control(c, LEAT_CONTROL_STREAM_DATA_BLOCKED, 1000);
        assert_null(side_send(c, 1000));
        leat_streams_blocked_again(&c->streams);
    }
    expect_control(c, LEAT_CONTROL_STREAM_DATA_BLOCKED, 1000);
    assert_int_equal(leat_streams_on_max_stream_data(&c->streams, 2, 3000), 0);
    for (int i = 0; i < 2; i++) {
        expect_control(c, LEAT_CONTROL_DATA_BLOCKED, 1000);
        assert_null(side_send(c, 1000));
        leat_streams_blocked_again(&c->streams);
    }
    side_free(c);
}

static void rejected_early_data_starts_anew_under_the_new_limits(void **state)
{
    leat_streams_settings settings = side_settings(false);
    leat_streams_peer peer = side_parameters(&settings);
    side *c = side_new(false);
    leat_stream *first, *second, *third;

    (void)state;
    first = open_stream(c, true);
    second = open_stream(c, true);
    third = open_stream(c, true);
    put(first, 100);
    put(second, 100);
    put(third, 100);
    expect_stream(c, 0, 0, 100, false);
    expect_stream(c, 4, 0, 100, false);
    expect_stream(c, 8, 0, 100, false);
    leat_streams_reset(third, 3);
    expect_control(c, LEAT_CONTROL_RESET_STREAM, 3);
    side_drop_records(c);
    peer.max_data = 150;
    peer.max_streams_bidi = 1; /* the second and third must wait */
    leat_streams_restart(&c->streams, &peer);
    leat_streams_check(&c->streams);
    assert_int_equal(c->streams.flow_out.used, 0);
    expect_stream(c, 0, 0, 100, false);
    assert_null(side_send(c, 1000));
    assert_int_equal(leat_streams_on_max_streams(&c->streams, true, 3), 0);
    expect_control(c, LEAT_CONTROL_RESET_STREAM, 3);
    assert_int_equal(c->records[1].extra, 0); /* nothing of it was sent */
    expect_stream(c, 4, 0, 50, false);
    side_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_numbered_by_kind),
        cmocka_unit_test(each_kind_has_its_parts_and_limits),
        cmocka_unit_test(frames_in_the_wrong_direction_are_errors),
        cmocka_unit_test(any_frame_opens_a_stream_of_the_peers),
        cmocka_unit_test(more_streams_than_allowed_are_an_error),
        cmocka_unit_test(a_higher_id_opens_the_lower_ones_without_memory),
        cmocka_unit_test(idle_streams_among_closed_ones_are_remembered),
        cmocka_unit_test(frames_for_closed_streams_are_ignored),
        cmocka_unit_test(closed_streams_make_room_for_others),
        cmocka_unit_test(a_peer_that_says_it_is_blocked_gets_what_there_is),
        cmocka_unit_test(opening_beyond_the_peers_limit_waits),
        cmocka_unit_test(max_streams_has_a_bound),
        cmocka_unit_test(our_limit_on_streams_stops_at_the_largest_number),
        cmocka_unit_test(a_request_and_its_answer_run_through),
        cmocka_unit_test(a_stream_outlives_the_records_that_point_to_it),
        cmocka_unit_test(a_reset_is_sent_until_it_arrives),
        cmocka_unit_test(a_reset_if_lost_waits_for_a_loss),
        cmocka_unit_test(a_reset_if_lost_is_none_when_all_arrives),
        cmocka_unit_test(a_reset_if_lost_is_one_where_not_all_was_sent),
        cmocka_unit_test(stop_sending_resets_with_its_code),
        cmocka_unit_test(stop_is_sent_until_the_end_is_known),
        cmocka_unit_test(a_flood_of_resets_stays_within_the_limits),
        cmocka_unit_test(the_budget_bounds_streams),
        cmocka_unit_test(writers_share_half_of_the_budget),
        cmocka_unit_test(closing_all_tells_each_once),
        cmocka_unit_test(credit_is_given_as_data_is_read),
        cmocka_unit_test(the_connections_credit_covers_all_streams),
        cmocka_unit_test(a_known_end_calls_off_what_was_to_be_sent_about_the_rest),
        cmocka_unit_test(being_blocked_is_told_once_a_limit),
        cmocka_unit_test(being_blocked_is_told_again_when_asked_to),
        cmocka_unit_test(rejected_early_data_starts_anew_under_the_new_limits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
