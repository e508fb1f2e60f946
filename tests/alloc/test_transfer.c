/* tests/alloc/test_transfer.c: in the steady state of a transfer nothing in the process allocates:
 * not leat, not the TLS library, not the test. Counted between the first and the last megabyte,
 * with loss and key updates on the way.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "echo.h"
#include "malloc_count.h"

#define MEGABYTE (1024 * 1024)
#define TOTAL    (64 * MEGABYTE)

static leat_echo e;
static uint64_t noise;

/* 1 % of the datagrams in both directions. */
static bool drop_some(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)to_server, (void)data, (void)len;
    noise = noise * 6364136223846793005u + 1442695040888963407u;
    return (noise >> 33) % 100 != 0;
}

typedef struct mark {
    leat_malloc_count count;
    leat_mem_stats mem;
    uint64_t key_updates;
} mark;

static mark take_mark(void)
{
    mark m = {.count = leat_malloc_counted()};
    leat_conn_stats_data stats;

    leat_mem_stats_get(leat_ctx_mem(e.pair.ctx), &m.mem);
    leat_conn_stats(e.pair.conn, &stats);
    m.key_updates = stats.key_updates;
    return m;
}

/* Writes TOTAL bytes to the server, which only counts; takes a mark after the first megabyte and
 * before the last. */
static void transfer(mark *first, mark *last)
{
    static uint8_t data[65536];
    leat_stream *stream;
    size_t sent = 0;

    assert_int_equal(leat_stream_open(e.pair.conn, false, &stream), LEAT_OK);
    while (sent < TOTAL) {
        size_t written = 0;
        leat_err err = leat_stream_write(stream, data, sizeof(data), &written);

        if (sent < MEGABYTE && sent + written >= MEGABYTE) {
            *first = take_mark();
        }
        if (sent < TOTAL - MEGABYTE && sent + written >= TOTAL - MEGABYTE) {
            *last = take_mark();
        }
        sent += written;
        if (err == LEAT_ERR_BLOCKED) {
            assert_true(leat_pair_step(&e.pair, LEAT_TIME_NEVER - 1));
        } else {
            assert_int_equal(err, LEAT_OK);
        }
    }
    assert_int_equal(leat_stream_finish(stream), LEAT_OK);
    leat_echo_settle(&e, 10 * LEAT_SECOND);
    assert_int_equal(e.server.received, sent);
}

static void run(bool lossy, uint64_t key_update_packets)
{
    mark first, last;
    leat_conn_stats_data stats;

    leat_echo_prepare(&e);
    e.setup.delay = LEAT_MILLISECOND;
    e.setup.conn.key_update_packets = key_update_packets;
    leat_echo_connect(&e);
    e.pair.filter = lossy ? drop_some : NULL;
    /* What a connection grows to, it has grown to after two transfers: windows, rings, queues. (In
     * the first one the window still opens, so more is under way at once in the second.) */
    transfer(&first, &last);
    e.server.received = 0;
    transfer(&first, &last);
    e.server.received = 0;
    transfer(&first, &last);
    leat_conn_stats(e.pair.conn, &stats);
    print_message(
        "%llu packets, %llu lost, %llu key updates, %llu allocations\n",
        (unsigned long long)stats.packets_sent, (unsigned long long)stats.packets_lost,
        (unsigned long long)(last.key_updates - first.key_updates),
        (unsigned long long)(leat_malloc_total(last.count) - leat_malloc_total(first.count)));
    assert_int_equal(leat_malloc_total(last.count), leat_malloc_total(first.count));
    assert_int_equal(last.count.free, first.count.free);
    assert_int_equal(last.mem.grown, first.mem.grown);
    assert_int_equal(last.mem.system_high, first.mem.system_high);
    assert_true(!lossy || stats.packets_lost > 100);
    assert_true(key_update_packets == 0 || last.key_updates - first.key_updates > 10);
    e.pair.filter = NULL;
    leat_echo_finish(&e);
}

static void a_transfer_allocates_nothing(void **state)
{
    (void)state;
    run(false, 0);
}

static void loss_and_key_updates_allocate_nothing(void **state)
{
    (void)state;
    run(true, 1000);
}

/* The counter itself works. */
static void an_allocation_is_seen(void **state)
{
    uint64_t before = leat_malloc_total(leat_malloc_counted());
    void *volatile p;

    (void)state;
    p = malloc(10);
    free(p);
    assert_int_equal(leat_malloc_total(leat_malloc_counted()), before + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_allocation_is_seen),
        cmocka_unit_test(a_transfer_allocates_nothing),
        cmocka_unit_test(loss_and_key_updates_allocate_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
