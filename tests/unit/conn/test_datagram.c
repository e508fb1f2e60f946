/* tests/unit/conn/test_datagram.c: DATAGRAM frames (RFC 9221) between a client and a server.
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
#include "forge.h"

/* What the tests see of both ends. */
typedef struct seen {
    unsigned received, connected_before, outcome[4], writable;
    size_t bytes, last_len;
    uint8_t last[2048];
    uint64_t last_tag;
} seen;

static seen at_client, at_server;
static leat_conn_events client_events, server_events;
static leat_conn *close_on_datagram;

static seen *seen_by(leat_conn *conn)
{
    return leat_conn_is_server(conn) ? &at_server : &at_client;
}

static void on_datagram(leat_conn *conn, leat_span data, void *user)
{
    seen *s = seen_by(conn);

    s->received++;
    s->bytes += data.len;
    s->last_len = data.len;
    s->connected_before += ((leat_echo_app *)user)->connected;
    if (data.len > 0) {
        memcpy(s->last, data.data, data.len);
    }
    if (conn == close_on_datagram) {
        leat_conn_close(conn, 3, (leat_span){NULL, 0});
    }
}

static void on_done(leat_conn *conn, uint64_t tag, leat_datagram_outcome outcome, void *user)
{
    seen *s = seen_by(conn);

    (void)user;
    s->outcome[outcome]++;
    s->last_tag = tag;
}

static void on_writable(leat_conn *conn, void *user)
{
    (void)user;
    seen_by(conn)->writable++;
}

static void prepare(leat_echo *e)
{
    memset(&at_client, 0, sizeof(at_client));
    memset(&at_server, 0, sizeof(at_server));
    close_on_datagram = NULL;
    client_events = leat_echo_client_events;
    server_events = leat_echo_server_events;
    client_events.datagram = server_events.datagram = on_datagram;
    client_events.datagram_done = server_events.datagram_done = on_done;
    client_events.datagram_writable = server_events.datagram_writable = on_writable;
    leat_echo_prepare(e);
    e->setup.server.events = &server_events;
    e->setup.server.conn.max_datagram_frame_size = 65535;
    e->setup.conn.max_datagram_frame_size = 65535;
}

static void start(leat_echo *e)
{
    leat_pair_init(&e->pair, &e->setup);
    leat_pair_connect(&e->pair, &e->setup, &client_events, &e->client);
    assert_true(leat_pair_run(&e->pair, leat_echo_both_connected, e, 5 * LEAT_SECOND));
}

static void begin(leat_echo *e)
{
    prepare(e);
    start(e);
    leat_echo_settle(e, LEAT_SECOND);
}

static void end(leat_echo *e)
{
    leat_conn_check(e->pair.conn);
    leat_echo_finish(e);
}

static leat_span text(const char *s)
{
    return (leat_span){(const uint8_t *)s, strlen(s)};
}

static void they_go_both_ways_and_are_told_of(void **state)
{
    leat_datagram_options options = {.tag = 77, .notify = true};
    leat_conn_stats_data stats;
    leat_echo e;

    (void)state;
    begin(&e);
    assert_int_equal(leat_conn_send_datagram(e.pair.conn, text("one"), &options), LEAT_OK);
    assert_int_equal(leat_conn_send_datagram(e.pair.conn, text(""), NULL), LEAT_OK);
    assert_int_equal(leat_conn_send_datagram(e.server.conn, text("three"), NULL), LEAT_OK);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(at_server.received, 2);
    assert_int_equal(at_server.bytes, 3);
    assert_int_equal(at_server.last_len, 0);
    assert_int_equal(at_client.received, 1);
    assert_memory_equal(at_client.last, "three", 5);
    assert_int_equal(at_client.outcome[LEAT_DATAGRAM_ACKED], 1);
    assert_int_equal(at_client.last_tag, 77);
    leat_conn_stats(e.pair.conn, &stats);
    assert_int_equal(stats.datagram_frames_sent, 2);
    assert_int_equal(stats.datagram_frames_acked, 2);
    assert_int_equal(stats.datagram_frames_received, 1);
    end(&e);
}

static void a_buffer_is_taken_only_when_queued(void **state)
{
    leat_echo e;
    leat_buf buf;

    (void)state;
    begin(&e);
    assert_int_equal(leat_buf_take(leat_ctx_mem(e.pair.ctx), 2000, &buf), LEAT_OK);
    assert_int_equal(leat_conn_send_datagram_buf(e.pair.conn, &buf, NULL), LEAT_ERR_LIMIT);
    assert_int_equal(buf.len, 2000);
    leat_buf_trim(&buf, 1000);
    memset(buf.data, 'x', 1000);
    assert_int_equal(leat_conn_send_datagram_buf(e.pair.conn, &buf, NULL), LEAT_OK);
    assert_null(buf.block);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(at_server.last_len, 1000);
    assert_int_equal(at_server.last[999], 'x');
    end(&e);
}

/* ---- sizes ---- */

static void the_largest_goes_and_one_more_byte_is_refused(void **state)
{
    static const uint8_t data[2048] = {1, 2, 3};
    leat_echo e;
    size_t most;

    (void)state;
    prepare(&e);
    start(&e);
    /* Before the path is known to carry more, and after. */
    for (int i = 0; i < 2; i++) {
        most = leat_conn_datagram_max(e.pair.conn);
        assert_int_equal(most, (i == 0 ? 1200 : 1452) - 1 - 8 - 4 - 1 - 16);
        assert_int_equal(leat_conn_send_datagram(e.pair.conn, (leat_span){data, most + 1}, NULL),
                         LEAT_ERR_LIMIT);
        assert_int_equal(leat_conn_send_datagram(e.pair.conn, (leat_span){data, most}, NULL),
                         LEAT_OK);
        leat_echo_settle(&e, LEAT_SECOND);
        assert_int_equal(at_server.received, i + 1);
        assert_int_equal(at_server.last_len, most);
    }
    end(&e);
}

static void the_peers_limit_counts_the_whole_frame(void **state)
{
    static const uint8_t data[2048];
    leat_echo e;

    (void)state;
    prepare(&e);
    e.setup.server.conn.max_datagram_frame_size = 100;
    start(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(leat_conn_datagram_max(e.pair.conn), 97); /* type, two bytes of length */
    assert_int_equal(leat_conn_send_datagram(e.pair.conn, (leat_span){data, 98}, NULL),
                     LEAT_ERR_LIMIT);
    assert_int_equal(leat_conn_send_datagram(e.pair.conn, (leat_span){data, 97}, NULL), LEAT_OK);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(at_server.last_len, 97);
    assert_int_equal(e.server.closed, 0);
    end(&e);
}

/* Has the client send a DATAGRAM of this frame size; returns what the server closed with. */
static uint64_t forged(leat_echo *e, size_t frame_size)
{
    uint8_t payload[1400] = {LEAT_FRAME_CODE_DATAGRAM};

    leat_forge(&e->pair, e->pair.conn, payload, frame_size);
    leat_echo_settle(e, LEAT_SECOND);
    return e->server.closed ? e->server.info.code : 0;
}

/* RFC 9221 s5.4: they wait for the congestion window, or are dropped unsent. */
static void the_congestion_window_holds_them_back(void **state)
{
    static const uint8_t data[1000];
    leat_conn *client;
    leat_echo e;

    (void)state;
    begin(&e);
    client = e.pair.conn;
    assert_int_equal(leat_conn_set_rate(client, 1, 0), LEAT_OK); /* two packets */
    e.pair.filter = leat_pair_nothing_to_server;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(leat_conn_send_datagram(client, (leat_span){data, sizeof(data)}, NULL),
                         LEAT_OK);
    }
    leat_echo_settle(&e, LEAT_MILLISECOND);
    assert_true(client->flight.bytes > 0 && client->flight.bytes <= client->cc.cwnd);
    assert_true(client->datagrams.count.sent < 3);
    e.pair.filter = NULL;
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    assert_int_equal(client->datagrams.count.sent, 10);
    assert_true(at_server.received >= 7);
    end(&e);
}

static void a_larger_frame_than_allowed_closes(void **state)
{
    leat_echo e;

    (void)state;
    prepare(&e);
    e.setup.server.conn.max_datagram_frame_size = 100;
    start(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(forged(&e, 100), 0);
    assert_int_equal(at_server.last_len, 99);
    assert_int_equal(forged(&e, 101), LEAT_TE_PROTOCOL_VIOLATION);
    assert_int_equal(e.server.info.frame_type, LEAT_FRAME_CODE_DATAGRAM);
    leat_echo_finish(&e);
}

/* RFC 9221 s3: the whole frame, whose length may take more bytes than it needs. */
static void a_frame_counts_as_it_was_encoded(void **state)
{
    uint8_t payload[101] = {LEAT_FRAME_CODE_DATAGRAM + 1, 0xc0};
    leat_echo e;

    (void)state;
    prepare(&e);
    e.setup.server.conn.max_datagram_frame_size = 100;
    start(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    payload[8] = 91; /* the length, in eight bytes */
    leat_forge(&e.pair, e.pair.conn, payload, 100);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(e.server.closed, 0);
    assert_int_equal(at_server.last_len, 91);
    payload[8] = 92;
    leat_forge(&e.pair, e.pair.conn, payload, 101);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(e.server.info.code, LEAT_TE_PROTOCOL_VIOLATION);
    leat_echo_finish(&e);
}

static void who_offered_none_gets_none(void **state)
{
    leat_echo e;

    (void)state;
    prepare(&e);
    e.setup.server.conn.max_datagram_frame_size = 0;
    start(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(leat_conn_datagram_max(e.pair.conn), 0);
    assert_int_equal(leat_conn_send_datagram(e.pair.conn, text("x"), NULL), LEAT_ERR_UNSUPPORTED);
    assert_int_equal(leat_conn_send_datagram(e.server.conn, text("x"), NULL), LEAT_OK);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(at_client.received, 1); /* each direction for itself */
    assert_int_equal(forged(&e, 20), LEAT_TE_PROTOCOL_VIOLATION);
    leat_echo_finish(&e);
}

/* ---- the queue ---- */

static bool drop_all(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)to_server, (void)data, (void)len;
    return false;
}

/* Sends until the queue refuses; returns how many were taken. */
static unsigned flood(leat_echo *e, const leat_datagram_options *options)
{
    static const uint8_t data[1100];
    unsigned n = 0;
    leat_err err;

    while ((err = leat_conn_send_datagram(e->pair.conn, (leat_span){data, sizeof(data)},
                                          options)) == LEAT_OK) {
        n++;
        assert_true(n <= 100000);
    }
    assert_int_equal(err, LEAT_ERR_BLOCKED);
    return n;
}

static void the_queue_is_capped_and_tells_when_there_is_room(void **state)
{
    leat_echo e;

    (void)state;
    prepare(&e);
    e.setup.conn.datagram_queue = 50;
    start(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_int_equal(flood(&e, NULL), 50);
    leat_conn_check(e.pair.conn);
    assert_int_equal(at_client.writable, 0);
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    assert_int_equal(at_client.writable, 1);
    assert_int_equal(at_server.received, 50);
    end(&e);
}

static void what_waits_too_long_is_dropped_unsent(void **state)
{
    leat_datagram_options options = {.lifetime = 50 * LEAT_MILLISECOND, .notify = true};
    leat_conn_stats_data stats;
    leat_echo e;
    unsigned n;

    (void)state;
    begin(&e);
    e.pair.filter = drop_all;
    n = flood(&e, &options); /* more than the window */
    leat_echo_settle(&e, 2 * LEAT_SECOND);
    e.pair.filter = NULL;
    leat_echo_settle(&e, 10 * LEAT_SECOND);
    leat_conn_stats(e.pair.conn, &stats);
    assert_true(at_client.outcome[LEAT_DATAGRAM_EXPIRED] > 100);
    assert_int_equal(stats.datagram_frames_expired, at_client.outcome[LEAT_DATAGRAM_EXPIRED]);
    assert_true(at_client.outcome[LEAT_DATAGRAM_LOST] > 5);
    assert_int_equal(at_client.outcome[LEAT_DATAGRAM_EXPIRED] +
                         at_client.outcome[LEAT_DATAGRAM_LOST] +
                         at_client.outcome[LEAT_DATAGRAM_ACKED],
                     n); /* each is told of once */
    assert_int_equal(stats.memory_datagrams, 0);
    leat_conn_check(e.pair.conn);
    end(&e);
}

static bool drop_next(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)data, (void)len;
    if (to_server) {
        pair->filter = NULL;
        return false;
    }
    return true;
}

static void a_lost_one_is_told_of_and_not_sent_again(void **state)
{
    leat_datagram_options options = {.tag = 5, .notify = true};
    leat_echo e;

    (void)state;
    begin(&e);
    e.pair.filter = drop_next;
    assert_int_equal(leat_conn_send_datagram(e.pair.conn, text("gone"), &options), LEAT_OK);
    leat_echo_settle(&e, 2 * LEAT_SECOND);
    assert_int_equal(at_server.received, 0);
    assert_int_equal(at_client.outcome[LEAT_DATAGRAM_LOST], 1);
    assert_int_equal(at_client.last_tag, 5);
    end(&e);
}

/* ---- together with streams ---- */

/* Keeps a stream and the datagram queue full; returns the datagrams' share of what the
 * server received, in percent. */
static unsigned share(leat_echo *e, unsigned datagram_urgency)
{
    static const uint8_t data[1400]; /* one fills a packet */
    leat_stream *stream;
    leat_time until;
    unsigned percent;

    prepare(e);
    e->setup.conn.datagram_urgency = (uint8_t)datagram_urgency;
    e->setup.conn.datagram_queue = 4096;
    start(e);
    leat_echo_settle(e, LEAT_SECOND);
    assert_int_equal(leat_stream_open(e->pair.conn, false, &stream), LEAT_OK);
    until = e->pair.now + LEAT_SECOND;
    while (at_server.bytes + e->server.received < 2000000) {
        size_t written;

        while (leat_stream_write(stream, data, sizeof(data), &written) == LEAT_OK) {
        }
        while (leat_conn_send_datagram(e->pair.conn, (leat_span){data, sizeof(data)}, NULL) ==
               LEAT_OK) {
        }
        assert_true(leat_pair_step(&e->pair, until));
    }
    percent = (unsigned)(100 * at_server.bytes / (at_server.bytes + e->server.received));
    leat_stream_reset(stream, 0);
    end(e);
    return percent;
}

static void streams_of_the_same_urgency_get_half(void **state)
{
    leat_echo e;
    unsigned percent = share(&e, 3);

    (void)state;
    assert_in_range(percent, 45, 55);
}

static void the_more_urgent_goes_first(void **state)
{
    leat_echo e;

    (void)state;
    assert_in_range(share(&e, 2), 90, 100);
    assert_in_range(share(&e, 4), 0, 10);
}

/* ---- order of events ---- */

static void send_at_once(leat_conn *conn, void *user)
{
    leat_echo_client_events.connected(conn, user);
    for (unsigned i = 0; i < 40; i++) {
        assert_int_equal(leat_conn_send_datagram(conn, text("early"), NULL), LEAT_OK);
    }
}

/* The client's first datagrams travel with the end of its handshake. */
static void those_with_the_handshake_wait_for_the_connected_event(void **state)
{
    leat_echo e;

    (void)state;
    prepare(&e);
    client_events.connected = send_at_once;
    start(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    assert_true(at_server.received >= LEAT_DATAGRAM_EARLY_DEFAULT);
    assert_int_equal(at_server.connected_before, at_server.received);
    assert_memory_equal(at_server.last, "early", 5);
    leat_conn_check(e.server.conn);
    end(&e);
}

/* Room for the notice is kept from the call on: an application that waits for the end of each would
 * else wait for ever. */
static void without_memory_the_end_of_each_is_told(void **state)
{
    enum { COUNT = 100 };
    leat_datagram_options options = {.notify = true};
    leat_conn_settings settings;
    leat_datagram_notice notice;
    leat_datagrams dg;
    leat_budget budget;
    leat_mem *mem;
    leat_buf buf;

    (void)state;
    leat_conn_settings_init(&settings);
    leat_budget_init(&budget, 1 << 20);
    assert_int_equal(leat_mem_new(NULL, &mem), LEAT_OK);
    leat_datagrams_init(&dg, mem, &budget, &settings);
    for (options.tag = 0; options.tag < COUNT; options.tag++) {
        assert_int_equal(leat_buf_take(mem, 10, &buf), LEAT_OK);
        assert_int_equal(leat_datagrams_push(&dg, &buf, 1000, &options, 1), LEAT_OK);
        leat_datagrams_sent(&dg);
    }
    leat_mem_fault_set(mem, LEAT_MEM_FAULT_TAKE, 1, true);
    for (uint64_t tag = 0; tag < COUNT; tag++) {
        leat_datagrams_note(&dg, tag, LEAT_DATAGRAM_ACKED);
    }
    for (uint64_t tag = 0; tag < COUNT; tag++) {
        assert_true(leat_datagrams_notice(&dg, &notice));
        assert_int_equal(notice.tag, tag);
    }
    assert_false(leat_datagrams_notice(&dg, &notice));
    leat_datagrams_check(&dg);
    leat_datagrams_clear(&dg);
    leat_mem_free(mem);
}

/* What the queues hold is charged before they grow: the budget is used to its end and no further.
 */
static void a_budget_used_up_blocks_and_is_not_overrun(void **state)
{
    leat_datagram_options options = {.notify = true};
    leat_conn_settings settings;
    leat_datagrams dg;
    leat_budget budget;
    leat_mem *mem;
    leat_buf buf;
    leat_err err;

    (void)state;
    leat_conn_settings_init(&settings);
    settings.datagram_queue = 1000;
    assert_int_equal(leat_mem_new(NULL, &mem), LEAT_OK);
    for (size_t limit = 1; limit < 3000; limit += 7) {
        leat_budget_init(&budget, limit);
        leat_datagrams_init(&dg, mem, &budget, &settings);
        do {
            assert_int_equal(leat_buf_take(mem, 10, &buf), LEAT_OK);
            err = leat_datagrams_push(&dg, &buf, 1000, &options, 1);
            leat_buf_release(&buf);
            leat_datagrams_check(&dg);
        } while (err == LEAT_OK);
        assert_int_equal(err, LEAT_ERR_BLOCKED);
        assert_true(dg.want_writable);
        for (int i = 0; i < 20; i++) {
            leat_datagrams_keep(&dg, text("early"));
        }
        leat_datagrams_check(&dg);
        assert_int_equal(dg.count.dropped + leat_queue_count(&dg.early), 20);
        assert_true(budget.high <= budget.limit);
        leat_datagrams_clear(&dg);
        leat_datagrams_check(&dg);
        assert_int_equal(budget.used, 0);
    }
    leat_mem_free(mem);
}

static void the_event_may_close_the_connection(void **state)
{
    leat_echo e;

    (void)state;
    begin(&e);
    close_on_datagram = e.server.conn;
    flood(&e, NULL);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_closed, &e, LEAT_SECOND));
    assert_int_equal(at_server.received, 1);
    assert_int_equal(e.client.info.code, 3);
    assert_int_equal(leat_conn_send_datagram(e.pair.conn, text("late"), NULL), LEAT_ERR_CLOSED);
    leat_echo_finish(&e);
}

static void settings_out_of_bounds_are_refused(void **state)
{
    leat_conn_settings *conn;
    leat_connect how;
    leat_conn *out;
    leat_echo e;

    (void)state;
    prepare(&e);
    leat_pair_init(&e.pair, &e.setup);
    conn = &e.setup.conn;
    how = (leat_connect){.remote = e.pair.server_addr, .tls = e.pair.client_tls, .settings = conn};
    conn->max_datagram_frame_size = 65536;
    assert_int_equal(leat_conn_connect(e.pair.client, &how, &out), LEAT_ERR_INVALID);
    conn->max_datagram_frame_size = 0;
    conn->datagram_queue = 0;
    assert_int_equal(leat_conn_connect(e.pair.client, &how, &out), LEAT_ERR_INVALID);
    conn->datagram_queue = 1;
    conn->datagram_urgency = 8;
    assert_int_equal(leat_conn_connect(e.pair.client, &how, &out), LEAT_ERR_INVALID);
    conn->datagram_urgency = 7;
    assert_int_equal(leat_conn_connect(e.pair.client, &how, &out), LEAT_OK);
    assert_int_equal(leat_conn_send_datagram(out, text("x"), NULL), LEAT_ERR_STATE);
    leat_pair_free(&e.pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_go_both_ways_and_are_told_of),
        cmocka_unit_test(a_buffer_is_taken_only_when_queued),
        cmocka_unit_test(the_largest_goes_and_one_more_byte_is_refused),
        cmocka_unit_test(the_peers_limit_counts_the_whole_frame),
        cmocka_unit_test(the_congestion_window_holds_them_back),
        cmocka_unit_test(a_larger_frame_than_allowed_closes),
        cmocka_unit_test(a_frame_counts_as_it_was_encoded),
        cmocka_unit_test(who_offered_none_gets_none),
        cmocka_unit_test(the_queue_is_capped_and_tells_when_there_is_room),
        cmocka_unit_test(what_waits_too_long_is_dropped_unsent),
        cmocka_unit_test(a_lost_one_is_told_of_and_not_sent_again),
        cmocka_unit_test(streams_of_the_same_urgency_get_half),
        cmocka_unit_test(the_more_urgent_goes_first),
        cmocka_unit_test(without_memory_the_end_of_each_is_told),
        cmocka_unit_test(a_budget_used_up_blocks_and_is_not_overrun),
        cmocka_unit_test(those_with_the_handshake_wait_for_the_connected_event),
        cmocka_unit_test(the_event_may_close_the_connection),
        cmocka_unit_test(settings_out_of_bounds_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
