/* tests/alloc/test_features.c: with every feature on the steady state allocates nothing: streams
 * and datagrams both ways, loss, ECN, ACK frequency, key updates, a NAT that rebinds and a client
 * that migrates, at the server's preferred address, with a log of every packet and qlog files, too;
 * and requests by 0-RTT cost nothing beside their handshake.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dirent.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include <leat/log.h>
#include <leat/loop.h>

#include "echo.h"
#include "malloc_count.h"

enum { ROUNDS = 300 };

static leat_echo e;
static leat_conn_events client_events, server_events;
static uint64_t noise, datagrams_received, datagrams_done, early;
static unsigned loss; /* of 100 */
static uint8_t session[32768];
static size_t session_len;

static bool drop_some(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)to_server, (void)data, (void)len;
    noise = noise * 6364136223846793005u + 1442695040888963407u;
    return (noise >> 33) % 100 >= loss;
}

/* The server sends each datagram back. */
static void on_datagram(leat_conn *conn, leat_span data, void *user)
{
    (void)user;
    datagrams_received++;
    if (leat_conn_is_server(conn)) {
        leat_conn_send_datagram(conn, data, NULL);
    }
}

static void on_datagram_done(leat_conn *conn, uint64_t tag, leat_datagram_outcome outcome,
                             void *user)
{
    (void)conn, (void)tag, (void)outcome, (void)user;
    datagrams_done++;
}

static void on_early(leat_conn *conn, void *user)
{
    ((leat_echo_app *)user)->conn = conn;
    early++;
}

static void on_ticket(leat_conn *conn, leat_span ticket, void *user)
{
    (void)conn, (void)user;
    assert_true(ticket.len <= sizeof(session));
    memcpy(session, ticket.data, ticket.len);
    session_len = ticket.len;
}

static void prepare(leat_shared *shared, leat_event_sink *trace)
{
    leat_echo_prepare(&e);
    e.setup.server.events_sink = e.setup.client.events_sink = trace;
    client_events = leat_echo_client_events;
    client_events.datagram = on_datagram;
    client_events.datagram_done = on_datagram_done;
    client_events.ticket = on_ticket;
    server_events = leat_echo_server_events;
    server_events.datagram = on_datagram;
    server_events.early = on_early;
    e.setup.delay = LEAT_MILLISECOND;
    e.setup.tickets = 1;
    e.setup.server.events = &server_events;
    e.setup.server.shared = shared;
    e.setup.server.preferred_ip4 = (leat_addr){.family = 4, .port = 4444, .ip = {10, 0, 0, 3}};
    e.setup.server.conn.early_data = e.setup.conn.early_data = true;
    e.setup.server.conn.max_datagram_frame_size = e.setup.conn.max_datagram_frame_size = 65535;
    e.setup.server.conn.min_ack_delay = e.setup.conn.min_ack_delay = LEAT_MILLISECOND;
    e.setup.server.conn.key_update_packets = e.setup.conn.key_update_packets = 500;
    leat_pair_init(&e.pair, &e.setup);
}

static void send_datagrams(unsigned n)
{
    static const uint8_t data[1000];
    leat_datagram_options options = {.lifetime = 20 * LEAT_MILLISECOND, .notify = true};

    for (unsigned i = 0; i < n; i++) {
        if (leat_conn_send_datagram(e.pair.conn, (leat_span){data, sizeof(data)}, &options) !=
            LEAT_OK) {
            return; /* its queue is full */
        }
    }
}

/* Half of what it writes must arrive, and the rest need not (RESET_STREAM_AT). */
static void reset_half_way(void)
{
    static const uint8_t data[1000];
    size_t written, before = e.server.received;
    leat_stream *stream;

    assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
    assert_int_equal(leat_stream_write(stream, data, sizeof(data), &written), LEAT_OK);
    assert_int_equal(written, sizeof(data));
    assert_int_equal(leat_stream_reset_at(stream, 7, sizeof(data) / 2), LEAT_OK);
    leat_stream_stop(stream, 7);
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    assert_true(e.server.received >= before + sizeof(data) / 2);
}

/* ---- traces ---- */

enum { FILES = 2 }; /* the client's connection has one, and the server's */

static char folder[] = "/tmp/leat-alloc-XXXXXX", file[FILES][PATH_MAX];
static unsigned files;
static uint64_t lines;

/* Where the trace goes: a qlog writer behind a log. */
static leat_event_sink *trace_sink(leat_log *log, leat_log_fn *write, leat_qlog **qlog)
{
    assert_non_null(mkdtemp(folder));
    assert_int_equal(leat_qlog_open(folder, qlog), LEAT_OK);
    leat_log_init(log, LEAT_LOG_TRACE, write, NULL, leat_qlog_sink(*qlog));
    return &log->sink;
}

static void count_line(leat_log_level level, const char *line, void *user)
{
    (void)level, (void)line, (void)user;
    lines++;
}

static void find_files(void)
{
    DIR *dir = opendir(folder);

    assert_non_null(dir);
    for (struct dirent *d; (d = readdir(dir)) != NULL;) {
        if (d->d_name[0] != '.') {
            assert_true(files < FILES);
            snprintf(file[files++], PATH_MAX, "%s/%s", folder, d->d_name);
        }
    }
    closedir(dir);
}

/* What was written takes no room on the disk any more. It is written on behind the hole. */
static void empty_files(void)
{
    for (unsigned i = 0; i < files; i++) {
        assert_int_equal(truncate(file[i], 0), 0);
    }
}

/* How much was written; the files and their folder go. */
static uint64_t remove_files(void)
{
    uint64_t bytes = 0;
    struct stat st;

    for (unsigned i = 0; i < files; i++) {
        assert_int_equal(stat(file[i], &st), 0);
        bytes += (uint64_t)st.st_size;
        assert_int_equal(unlink(file[i]), 0);
    }
    files = 0;
    assert_int_equal(rmdir(folder), 0);
    return bytes;
}

/* ---- everything ---- */

/* All of it, once; `load` times as much of what piles up. */
static void round_of_everything(unsigned number, unsigned load)
{
    leat_addr next = {.family = 4, .port = (uint16_t)(50000 + number), .ip = {192, 168, 1, 1}};

    send_datagrams(100 * load);
    leat_echo_bytes(&e, 200000 * load, 60 * LEAT_SECOND);
    next.ip[3] = (uint8_t)(1 + number % 200);
    if (number % 2 == 0) {
        leat_err err = leat_conn_migrate(e.pair.conn, &next);

        assert_true(err == LEAT_OK || err == LEAT_ERR_BLOCKED); /* IDs are on their way */
    } else {
        next.ip[0] = 172; /* the NAT, before the address at first, gives it another */
        e.pair.nat = next;
        leat_conn_migrate(e.pair.conn, &e.pair.client_addr);
    }
    send_datagrams(50 * load);
    leat_echo_bytes(&e, 100000 * load, 60 * LEAT_SECOND);
    reset_half_way();
    (void)leat_conn_update_keys(e.pair.conn);
    empty_files();
}

static leat_shared *make_shared(void)
{
    leat_shared_settings settings;
    leat_shared *shared;

    leat_shared_settings_init(&settings);
    settings.seed[0] = 1;
    assert_int_equal(leat_shared_new(&settings, &shared), LEAT_OK);
    return shared;
}

static void check_everything(leat_event_sink *trace)
{
    leat_shared *shared = make_shared();
    leat_conn_stats_data warm, stats, served;
    leat_malloc_count first, last;
    leat_mem_stats before, after;

    datagrams_received = datagrams_done = 0;
    prepare(shared, trace);
    leat_pair_connect(&e.pair, &e.setup, &client_events, &e.client);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, LEAT_SECOND));
    leat_echo_settle(&e, 5 * LEAT_SECOND);
    assert_int_equal(leat_conn_remote(e.pair.conn)->port, 4444);
    if (trace) {
        find_files();
    }
    e.pair.filter = drop_some;
    /* What grows with the largest burst (without loss), with what is lost together, and with what
     * lies about for long has seen twice of it then. */
    for (unsigned i = 0; i < 150; i++) {
        loss = i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : 5;
        round_of_everything(i, 2);
    }
    loss = 1;
    round_of_everything(150, 1);
    leat_conn_stats(e.pair.conn, &warm);
    first = leat_malloc_counted();
    leat_mem_stats_get(leat_ctx_mem(e.pair.ctx), &before);
    for (unsigned i = 0; i < ROUNDS; i++) {
        round_of_everything(i, 1);
    }
    last = leat_malloc_counted();
    leat_mem_stats_get(leat_ctx_mem(e.pair.ctx), &after);
    leat_conn_stats(e.pair.conn, &stats);
    leat_conn_stats(e.server.conn, &served);
    print_message("%llu moves, the server's %llu; %llu key updates, %llu lost, %llu datagrams; "
                  "%llu allocations\n",
                  (unsigned long long)(stats.migrations - warm.migrations),
                  (unsigned long long)served.migrations,
                  (unsigned long long)(stats.key_updates - warm.key_updates),
                  (unsigned long long)(stats.packets_lost - warm.packets_lost),
                  (unsigned long long)datagrams_received,
                  (unsigned long long)(leat_malloc_total(last) - leat_malloc_total(first)));
    assert_int_equal(leat_malloc_total(last), leat_malloc_total(first));
    assert_int_equal(last.free, first.free);
    assert_int_equal(after.grown, before.grown);
    assert_true(stats.migrations - warm.migrations >= ROUNDS / 2);
    assert_true(served.migrations >= ROUNDS);
    assert_true(stats.key_updates - warm.key_updates >= ROUNDS / 2);
    assert_true(stats.packets_lost - warm.packets_lost >= ROUNDS);
    assert_true(datagrams_received >= 5000 && datagrams_done >= 5000);
    e.pair.filter = NULL;
    e.pair.nat.family = 0;
    leat_echo_finish(&e);
    leat_shared_free(shared);
}

static void everything_at_once_allocates_nothing(void **state)
{
    (void)state;
    check_everything(NULL);
}

static void nor_does_the_trace_of_everything(void **state)
{
    leat_qlog *qlog;
    leat_log log;
    uint64_t bytes;

    (void)state;
    check_everything(trace_sink(&log, count_line, &qlog));
    assert_int_equal(leat_qlog_close(qlog), LEAT_OK);
    bytes = remove_files();
    print_message("%llu lines, %llu bytes of qlog\n", (unsigned long long)lines,
                  (unsigned long long)bytes);
    assert_true(lines >= datagrams_received);
    assert_true(bytes >= 100 * datagrams_received);
}

/* ---- 0-RTT ---- */

/* A connection that asks by 0-RTT; how many allocations it took until all was answered. */
static uint64_t ask_early(unsigned requests)
{
    static const uint8_t request[100];
    leat_malloc_count first, last;
    uint64_t before = early;

    e.client = (leat_echo_app){.conn = NULL};
    e.server = (leat_echo_app){.conn = NULL};
    e.pair.session = (leat_span){session, session_len};
    first = leat_malloc_counted();
    leat_pair_connect(&e.pair, &e.setup, &client_events, &e.client);
    assert_int_equal(leat_conn_early(e.pair.conn), LEAT_EARLY_OFFERED);
    for (unsigned i = 0; i < requests; i++) {
        leat_stream *stream;
        size_t written;

        assert_int_equal(leat_stream_open(e.pair.conn, true, &stream), LEAT_OK);
        assert_int_equal(leat_stream_write(stream, request, sizeof(request), &written), LEAT_OK);
        assert_int_equal(leat_stream_finish(stream), LEAT_OK);
    }
    leat_echo_settle(&e, LEAT_SECOND);
    last = leat_malloc_counted();
    assert_int_equal(early, before + 1);
    assert_int_equal(e.client.received, requests * sizeof(request));
    leat_conn_close(e.pair.conn, 0, (leat_span){NULL, 0});
    assert_true(leat_pair_run(&e.pair, leat_echo_both_closed, &e, 60 * LEAT_SECOND));
    leat_echo_settle(&e, 60 * LEAT_SECOND);
    return leat_malloc_total(last) - leat_malloc_total(first);
}

/* The fewest of some connections: what TLS allocates depends a little on the numbers that it draws.
 */
static uint64_t ask_early_often(unsigned requests)
{
    uint64_t fewest = UINT64_MAX;

    for (int i = 0; i < 20; i++) {
        uint64_t n = ask_early(requests);

        fewest = n < fewest ? n : fewest;
    }
    return fewest;
}

static void requests_by_0rtt_allocate_nothing(void **state)
{
    leat_shared *shared = make_shared();
    leat_mem_stats before, after;
    uint64_t one, forty;

    (void)state;
    prepare(shared, NULL);
    leat_pair_connect(&e.pair, &e.setup, &client_events, &e.client);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, LEAT_SECOND));
    leat_echo_settle(&e, LEAT_SECOND);
    assert_true(session_len > 0);
    leat_conn_close(e.pair.conn, 0, (leat_span){NULL, 0});
    leat_echo_settle(&e, 60 * LEAT_SECOND);
    ask_early_often(40); /* the process is warm */
    leat_mem_stats_get(leat_ctx_mem(e.pair.ctx), &before);
    one = ask_early_often(1);
    forty = ask_early_often(40);
    leat_mem_stats_get(leat_ctx_mem(e.pair.ctx), &after);
    print_message("allocations of a connection by 0-RTT: %llu with one request, %llu with forty\n",
                  (unsigned long long)one, (unsigned long long)forty);
    assert_int_equal(forty, one);
    assert_int_equal(after.grown, before.grown);
    leat_pair_free(&e.pair);
    leat_shared_free(shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_at_once_allocates_nothing),
        cmocka_unit_test(nor_does_the_trace_of_everything),
        cmocka_unit_test(requests_by_0rtt_allocate_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
