/* tests/unit/conn/test_told.c: `told`, the event behind those of a turn.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "echo.h"

enum { STREAMS = 40 };

typedef struct world {
    leat_echo f;
    leat_stream *asked[STREAMS]; /* read to their end, and not answered */
    size_t asked_count;
    size_t answered, told, told_in_vain;
    bool close, closed; /* when told */
} world;

static void on_readable(leat_conn *conn, leat_stream *stream, void *user)
{
    world *w = user;
    leat_span span;

    (void)conn;
    assert_false(w->closed);
    while ((span = leat_stream_peek(stream)).len > 0) {
        leat_stream_consume(stream, span.len);
    }
    if (leat_stream_recv_whole(stream)) {
        assert_true(w->asked_count < STREAMS);
        w->asked[w->asked_count++] = stream;
    }
}

static void on_told(leat_conn *conn, void *user)
{
    world *w = user;

    assert_false(w->closed);
    w->told++;
    w->told_in_vain += w->asked_count == 0;
    for (size_t i = 0; i < w->asked_count; i++) {
        size_t written;

        assert_int_equal(leat_stream_write(w->asked[i], "answer", 6, &written), LEAT_OK);
        assert_int_equal(written, 6);
        leat_stream_finish(w->asked[i]);
    }
    w->answered += w->asked_count;
    w->asked_count = 0;
    if (w->close) {
        leat_conn_close(conn, 0, (leat_span){NULL, 0});
        w->closed = true;
    }
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    leat_echo_server_events.closed(conn, info, &((world *)user)->f.server);
}

static const leat_conn_events server_events = {
    .stream_readable = on_readable,
    .told = on_told,
    .closed = on_closed,
};

/* Asks on all streams in one packet. */
static void ask(world *w)
{
    memset(w, 0, sizeof(*w));
    leat_echo_establish(&w->f);
    leat_conn_set_events(leat_echo_server_conn(&w->f), &server_events, w);
    for (size_t i = 0; i < STREAMS; i++) {
        leat_stream *stream;
        size_t written;

        assert_int_equal(leat_stream_open(w->f.pair.conn, true, &stream), LEAT_OK);
        assert_int_equal(leat_stream_write(stream, "ask", 3, &written), LEAT_OK);
        leat_stream_finish(stream);
    }
}

static void many_streams_are_answered_in_a_few_calls(void **state)
{
    world w;

    (void)state;
    ask(&w);
    leat_echo_settle(&w.f, LEAT_SECOND);
    assert_int_equal(w.answered, STREAMS);
    assert_int_equal(w.asked_count, 0); /* it came behind the last one */
    assert_int_equal(w.f.client.received, STREAMS * 6);
    assert_int_equal(w.f.client.stream_closed, STREAMS);
    assert_in_range(w.told - w.told_in_vain, 1, STREAMS / 4);
    leat_echo_finish(&w.f);
}

static void it_is_not_called_once_the_connection_closes(void **state)
{
    world w;

    (void)state;
    ask(&w);
    w.close = true;
    assert_true(leat_pair_run(&w.f.pair, leat_echo_both_closed, &w.f, LEAT_SECOND));
    assert_int_equal(w.told, 1);
    leat_echo_finish(&w.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_streams_are_answered_in_a_few_calls),
        cmocka_unit_test(it_is_not_called_once_the_connection_closes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
