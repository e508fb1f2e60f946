/* tests/alloc/test_datagrams.c: sending and receiving datagrams, acknowledged, lost and too old
 * ones, allocates nothing once the queues have grown.
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
#include "malloc_count.h"

static leat_echo e;
static leat_conn_events client_events, server_events;
static uint64_t noise, received, done[4];

static bool drop_some(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)to_server, (void)data, (void)len;
    noise = noise * 6364136223846793005u + 1442695040888963407u;
    return (noise >> 33) % 100 != 0;
}

static void on_datagram(leat_conn *conn, leat_span data, void *user)
{
    (void)conn, (void)user;
    received += data.len > 0;
}

static void on_done(leat_conn *conn, uint64_t tag, leat_datagram_outcome outcome, void *user)
{
    (void)conn, (void)tag, (void)user;
    done[outcome]++;
}

/* Keeps the queue full until n more have been received: by copy and by reference in turn. */
static void exchange(uint64_t n)
{
    static const uint8_t data[1000];
    leat_datagram_options options = {.lifetime = 3 * LEAT_MILLISECOND, .notify = true};
    uint64_t until = received + n;
    unsigned turn = 0;

    while (received < until) {
        leat_err err = LEAT_OK;

        while (err == LEAT_OK) {
            if (turn++ % 2 == 0) {
                err =
                    leat_conn_send_datagram(e.pair.conn, (leat_span){data, sizeof(data)}, &options);
            } else {
                leat_buf buf;

                assert_int_equal(leat_buf_take(leat_ctx_mem(e.pair.ctx), 1100, &buf), LEAT_OK);
                err = leat_conn_send_datagram_buf(e.pair.conn, &buf, &options);
                leat_buf_release(&buf);
            }
        }
        assert_int_equal(err, LEAT_ERR_BLOCKED);
        assert_true(leat_pair_step(&e.pair, LEAT_TIME_NEVER - 1));
    }
}

static void datagrams_allocate_nothing(void **state)
{
    leat_malloc_count first, last;
    leat_mem_stats before, after;

    (void)state;
    client_events = leat_echo_client_events;
    server_events = leat_echo_server_events;
    server_events.datagram = on_datagram;
    client_events.datagram_done = on_done;
    leat_echo_prepare(&e);
    e.setup.delay = LEAT_MILLISECOND;
    e.setup.server.events = &server_events;
    e.setup.server.conn.max_datagram_frame_size = 65535;
    leat_pair_init(&e.pair, &e.setup);
    leat_pair_connect(&e.pair, &e.setup, &client_events, &e.client);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, LEAT_SECOND));
    leat_echo_settle(&e, LEAT_SECOND);
    e.pair.filter = drop_some;
    exchange(20000);
    first = leat_malloc_counted();
    leat_mem_stats_get(leat_ctx_mem(e.pair.ctx), &before);
    exchange(50000);
    last = leat_malloc_counted();
    leat_mem_stats_get(leat_ctx_mem(e.pair.ctx), &after);
    print_message("%llu received; %llu acked, %llu lost, %llu expired; %llu allocations\n",
                  (unsigned long long)received, (unsigned long long)done[LEAT_DATAGRAM_ACKED],
                  (unsigned long long)done[LEAT_DATAGRAM_LOST],
                  (unsigned long long)done[LEAT_DATAGRAM_EXPIRED],
                  (unsigned long long)(leat_malloc_total(last) - leat_malloc_total(first)));
    assert_int_equal(leat_malloc_total(last), leat_malloc_total(first));
    assert_int_equal(last.free, first.free);
    assert_int_equal(after.grown, before.grown);
    assert_true(done[LEAT_DATAGRAM_ACKED] > 40000);
    assert_true(done[LEAT_DATAGRAM_LOST] > 100);
    assert_true(done[LEAT_DATAGRAM_EXPIRED] > 100);
    e.pair.filter = NULL;
    leat_echo_finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datagrams_allocate_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
