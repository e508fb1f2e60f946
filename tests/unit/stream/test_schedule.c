/* test_schedule.c: which stream's turn it is: strict urgency, and round robin inside one.
 *
 * SPDX-License-Identifier: MIT
 */
#include "table_rig.h"

static side *begin(uint64_t max_data)
{
    leat_streams_settings settings = side_settings(false);
    leat_streams_peer peer = side_parameters(&settings);
    side *c = side_new_with(&settings, 0);

    peer.max_data = max_data;
    peer.max_streams_bidi = 100000;
    leat_streams_set_peer(&c->streams, &peer);
    return c;
}

static leat_stream *open_with(side *c, unsigned urgency, bool incremental, size_t bytes)
{
    leat_stream *stream;
    uint8_t *data = calloc(1, bytes + 1);
    size_t n;

    assert_non_null(data);
    assert_int_equal(leat_streams_open(&c->streams, true, &stream), LEAT_OK);
    assert_int_equal(leat_streams_set_priority(stream, urgency, incremental), LEAT_OK);
    if (bytes > 0) {
        assert_int_equal(leat_streams_write(stream, data, bytes, &n), LEAT_OK);
    }
    free(data);
    return stream;
}

static void expect_turn(side *c, const leat_stream *stream)
{
    record *r = side_send(c, 100);

    assert_non_null(r);
    assert_int_equal(r->what, 0);
    assert_int_equal(r->id, stream->id);
}

static void incremental_streams_take_turns(void **state)
{
    side *c = begin(1 << 20);
    leat_stream *s[3];

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        s[i] = open_with(c, 3, true, 300);
    }
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 3; i++) {
            expect_turn(c, s[i]);
        }
    }
    assert_null(side_send(c, 100));
    side_free(c);
}

static void others_are_sent_one_after_the_other(void **state)
{
    side *c = begin(1 << 20);
    leat_stream *a = open_with(c, 3, false, 300);
    leat_stream *b = open_with(c, 3, false, 200);

    (void)state;
    expect_turn(c, a);
    expect_turn(c, a);
    side_lost(c, 0);
    expect_turn(c, a); /* what was lost, and then on */
    expect_turn(c, a);
    expect_turn(c, b);
    expect_turn(c, b);
    assert_null(side_send(c, 100));
    side_free(c);
}

static void the_more_urgent_go_first(void **state)
{
    side *c = begin(1 << 20);
    leat_stream *late = open_with(c, 7, true, 200);
    leat_stream *mid = open_with(c, 3, true, 200);
    leat_stream *first;

    (void)state;
    expect_turn(c, mid);
    first = open_with(c, 0, true, 200);
    expect_turn(c, first);
    expect_turn(c, first);
    expect_turn(c, mid);
    assert_int_equal(leat_streams_set_priority(late, 1, true), LEAT_OK);
    expect_turn(c, late);
    expect_turn(c, late);
    assert_null(side_send(c, 100));
    assert_int_equal(leat_streams_set_priority(late, 8, true), LEAT_ERR_INVALID);
    side_free(c);
}

static void lost_bytes_keep_their_urgency(void **state)
{
    side *c = begin(1 << 20);
    leat_stream *low = open_with(c, 5, true, 200);
    leat_stream *high;

    (void)state;
    expect_turn(c, low);
    side_lost(c, 0);
    high = open_with(c, 4, true, 100);
    expect_turn(c, high);
    expect_turn(c, low);
    expect_turn(c, low);
    side_free(c);
}

static void a_connection_without_credit_still_sends_what_needs_none(void **state)
{
    side *c = begin(300);
    leat_stream *a = open_with(c, 0, true, 1000);
    leat_stream *b = open_with(c, 7, true, 1000);
    leat_stream *fin = open_with(c, 7, true, 0);

    (void)state;
    expect_turn(c, a);
    expect_turn(c, a);
    expect_turn(c, a);
    assert_int_equal(side_send(c, 100)->what, LEAT_CONTROL_DATA_BLOCKED);
    assert_null(side_send(c, 100));
    assert_int_equal(leat_streams_finish(fin), LEAT_OK);
    expect_turn(c, fin);
    side_lost(c, 1);
    expect_turn(c, a); /* the lost bytes */
    assert_null(side_send(c, 100));
    assert_int_equal(leat_streams_on_max_data(&c->streams, 100000), 0);
    expect_turn(c, a);
    assert_int_equal(leat_streams_set_priority(a, 7, true), LEAT_OK);
    expect_turn(c, b);
    side_free(c);
}

static void a_stream_without_its_own_credit_is_not_in_the_way(void **state)
{
    side *c = begin(1 << 20);
    leat_stream *a = open_with(c, 0, true, 30000); /* 20000 allowed */
    leat_stream *b;

    (void)state;
    while (leat_stream_send_has_new(&a->send)) {
        expect_turn(c, a);
    }
    assert_int_equal(side_send(c, 100)->what, LEAT_CONTROL_STREAM_DATA_BLOCKED);
    assert_null(side_send(c, 100));
    b = open_with(c, 7, true, 100);
    expect_turn(c, b);
    assert_int_equal(leat_streams_on_max_stream_data(&c->streams, a->id, 20100), 0);
    expect_turn(c, a);
    side_free(c);
}

static void thousands_of_streams_share_fairly(void **state)
{
    enum { STREAMS = 2000, ROUNDS = 3 };
    side *c = begin(UINT64_C(1) << 40);
    uint8_t *sent = calloc(STREAMS, 1);

    (void)state;
    assert_non_null(sent);
    for (unsigned i = 0; i < STREAMS; i++) {
        open_with(c, 3, true, 10 * ROUNDS);
    }
    for (unsigned round = 1; round <= ROUNDS; round++) {
        for (unsigned i = 0; i < STREAMS; i++) {
            leat_stream *stream = leat_streams_next_stream(&c->streams);
            leat_send_part part;

            assert_true(leat_stream_send_next(&stream->send, 10, &c->streams.flow_out, &part));
            leat_streams_stream_sent(&c->streams, stream, &part);
            assert_int_equal(++sent[stream->id / 4], round);
            leat_streams_record_dropped(&c->streams, stream);
        }
    }
    leat_streams_check(&c->streams);
    free(sent);
    side_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(incremental_streams_take_turns),
        cmocka_unit_test(others_are_sent_one_after_the_other),
        cmocka_unit_test(the_more_urgent_go_first),
        cmocka_unit_test(lost_bytes_keep_their_urgency),
        cmocka_unit_test(a_connection_without_credit_still_sends_what_needs_none),
        cmocka_unit_test(a_stream_without_its_own_credit_is_not_in_the_way),
        cmocka_unit_test(thousands_of_streams_share_fairly),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
