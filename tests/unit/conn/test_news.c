/* tests/unit/conn/test_news.c: `packet_news`: what an application learns of packets sent,
 * acknowledged and lost, and how far a stream's sending part is.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conn/conn.h"
#include "pair.h"

enum { TOLD_MOST = 4096 };

typedef struct world {
    leat_pair pair;
    leat_pair_setup setup;
    leat_packet_news told[TOLD_MOST];
    size_t told_count;
    size_t none_count; /* news of no packet */
    size_t sent_count, sent_bytes;
    size_t dropped;   /* datagrams to the server */
    size_t drop_from; /* drop the next ones from this one on … */
    size_t drop_count;
    size_t passed;
    bool close_in_event, closed;
} world;

static void on_packet_news(leat_conn *conn, const leat_packet_news *news, size_t count, void *user)
{
    world *w = user;

    w->none_count += count == 0;
    for (size_t i = 0; i < count; i++) {
        if (news[i].fate == LEAT_PACKET_SENT) {
            assert_true(news[i].sent == news[i].at);
            w->sent_count++;
            w->sent_bytes += news[i].size;
            continue;
        }
        assert_true(w->told_count < TOLD_MOST);
        w->told[w->told_count++] = news[i];
    }
    if (w->close_in_event) {
        leat_conn_close(conn, 0, (leat_span){NULL, 0});
    }
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    (void)conn;
    (void)info;
    ((world *)user)->closed = true;
}

static const leat_conn_events client_events = {.packet_news = on_packet_news, .closed = on_closed};
static const leat_conn_events server_events = {.connected = NULL};

static bool filter(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    world *w = pair->user;

    (void)data;
    (void)len;
    if (!to_server) {
        return true;
    }
    w->passed++;
    if (w->drop_count > 0 && w->passed >= w->drop_from) {
        w->drop_count--;
        w->dropped++;
        return false;
    }
    return true;
}

static bool confirmed(void *arg)
{
    return ((world *)arg)->pair.conn->confirmed;
}

static void open_world(world *w)
{
    memset(w, 0, sizeof *w);
    leat_pair_setup_init(&w->setup);
    w->setup.server.events = &server_events;
    leat_pair_init(&w->pair, &w->setup);
    w->pair.filter = filter;
    w->pair.user = w;
    leat_pair_connect(&w->pair, &w->setup, &client_events, w);
    assert_true(leat_pair_run(&w->pair, confirmed, w, LEAT_SECOND));
    leat_pair_run(&w->pair, NULL, NULL, 100 * LEAT_MILLISECOND);
    w->told_count = w->sent_count = w->sent_bytes = 0;
}

static void close_world(world *w)
{
    leat_pair_free(&w->pair);
}

static leat_stream *write_stream(world *w, size_t len)
{
    static uint8_t data[65536];
    leat_stream *stream;
    size_t written;

    assert_int_equal(leat_stream_open(w->pair.conn, false, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, data, len, &written), LEAT_OK);
    assert_int_equal(written, len);
    return stream;
}

static world w;

static void each_packet_is_told_once_in_order_with_its_size(void **state)
{
    uint64_t bytes = 0, last = 0;
    leat_conn_stats_data before, after;

    (void)state;
    open_world(&w);
    leat_conn_stats(w.pair.conn, &before);
    write_stream(&w, 20000);
    leat_pair_run(&w.pair, NULL, NULL, 200 * LEAT_MILLISECOND);
    leat_conn_stats(w.pair.conn, &after);
    assert_true(w.told_count >= 14);
    for (size_t i = 0; i < w.told_count; i++) {
        assert_false(w.told[i].fate == LEAT_PACKET_LOST);
        assert_true(i == 0 || w.told[i].number > last);
        assert_true(w.told[i].at >= w.told[i].sent + 2 * w.pair.delay);
        last = w.told[i].number;
        bytes += w.told[i].size;
    }
    assert_true(bytes > 20000);
    assert_int_equal(w.sent_count, w.told_count);
    assert_int_equal(w.sent_bytes, bytes);
    assert_true(bytes <= after.bytes_sent - before.bytes_sent);
    close_world(&w);
}

/* The delay that the server reports is taken off, so that arrivals keep the distance of the way. */
static void the_largest_of_an_ack_has_a_time_of_arrival(void **state)
{
    size_t known = 0;

    (void)state;
    open_world(&w);
    write_stream(&w, 20000);
    leat_pair_run(&w.pair, NULL, NULL, 200 * LEAT_MILLISECOND);
    for (size_t i = 0; i < w.told_count; i++) {
        const leat_packet_news *news = &w.told[i];

        if (news->arrived != LEAT_TIME_NEVER) {
            known++;
            assert_true(news->arrived <= news->at);
            /* 5 ms there and 5 ms back: what remains is rounding of the reported delay */
            assert_in_range(news->arrived - news->sent, 10 * LEAT_MILLISECOND,
                            10 * LEAT_MILLISECOND + 20 * LEAT_MICROSECOND);
        }
    }
    assert_true(known > 0);
    assert_true(w.told[w.told_count - 1].arrived != LEAT_TIME_NEVER);
    close_world(&w);
}

static void lost_packets_are_told_and_counted(void **state)
{
    leat_conn_stats_data before, after;
    size_t lost = 0;

    (void)state;
    open_world(&w);
    leat_conn_stats(w.pair.conn, &before);
    w.drop_from = w.passed + 2;
    w.drop_count = 3;
    write_stream(&w, 30000);
    leat_pair_run(&w.pair, NULL, NULL, 500 * LEAT_MILLISECOND);
    leat_conn_stats(w.pair.conn, &after);
    assert_int_equal(w.dropped, 3);
    for (size_t i = 0; i < w.told_count; i++) {
        lost += w.told[i].fate == LEAT_PACKET_LOST;
        assert_true(w.told[i].fate != LEAT_PACKET_LOST || w.told[i].arrived == LEAT_TIME_NEVER);
    }
    assert_int_equal(lost, 3);
    assert_int_equal(after.packets_lost - before.packets_lost, 3);
    close_world(&w);
}

/* Who goes by the news to look how far a stream is must not miss the last of it. */
static void without_memory_it_is_told_that_there_was_some(void **state)
{
    leat_mem *mem;
    size_t told;

    (void)state;
    open_world(&w);
    mem = leat_ctx_mem(w.pair.ctx);
    leat_news_clear(&w.pair.conn->news);
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, 1, true);
    leat_news_lost(&w.pair.conn->news, &(leat_sent_loss){.flags = LEAT_SENT_ELICITING});
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
    assert_true(leat_news_waits(&w.pair.conn->news));
    told = w.told_count;
    leat_conn_tell_news(w.pair.conn);
    assert_int_equal(w.told_count, told);
    assert_int_equal(w.none_count, 1);
    assert_false(leat_news_waits(&w.pair.conn->news));
    close_world(&w);
}

static void a_budget_used_up_is_not_overrun_and_it_is_told(void **state)
{
    leat_budget *budget;
    size_t limit;

    (void)state;
    open_world(&w);
    budget = &w.pair.conn->budget;
    limit = budget->limit;
    leat_news_clear(&w.pair.conn->news);
    budget->limit = budget->used;
    leat_news_lost(&w.pair.conn->news, &(leat_sent_loss){.flags = LEAT_SENT_ELICITING});
    assert_int_equal(budget->used, budget->limit);
    leat_conn_tell_news(w.pair.conn);
    assert_int_equal(w.none_count, 1);
    budget->limit = limit;
    close_world(&w);
}

static void the_event_may_close_the_connection(void **state)
{
    (void)state;
    open_world(&w);
    w.close_in_event = true;
    write_stream(&w, 60000);
    leat_pair_run(&w.pair, NULL, NULL, LEAT_SECOND);
    assert_true(w.sent_count + w.told_count > 0);
    assert_true(w.closed);
    close_world(&w);
}

static void a_stream_tells_how_far_it_is(void **state)
{
    leat_stream_progress progress;
    leat_stream *stream;

    (void)state;
    open_world(&w);
    stream = write_stream(&w, 1000);
    leat_stream_progress_get(stream, &progress);
    assert_int_equal(progress.written, 1000);
    assert_int_equal(progress.sent, 0);
    assert_int_equal(progress.acked, 0);
    leat_pair_step(&w.pair, w.pair.now);
    leat_stream_progress_get(stream, &progress);
    assert_int_equal(progress.sent, 1000);
    assert_int_equal(progress.acked, 0);
    leat_pair_run(&w.pair, NULL, NULL, 200 * LEAT_MILLISECOND);
    leat_stream_progress_get(stream, &progress);
    assert_int_equal(progress.acked, 1000);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_packet_is_told_once_in_order_with_its_size),
        cmocka_unit_test(the_largest_of_an_ack_has_a_time_of_arrival),
        cmocka_unit_test(lost_packets_are_told_and_counted),
        cmocka_unit_test(without_memory_it_is_told_that_there_was_some),
        cmocka_unit_test(a_budget_used_up_is_not_overrun_and_it_is_told),
        cmocka_unit_test(the_event_may_close_the_connection),
        cmocka_unit_test(a_stream_tells_how_far_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
