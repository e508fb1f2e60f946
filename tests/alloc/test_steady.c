/* tests/alloc/test_steady.c: zero means zero: after warm-up no heap call is made by a message, a
 * short stream, a task, a timer, a batch through a queue, a buffer, or a set of transport
 * parameters. Counted over the whole process; no clock is read. (A long transfer, with loss and key
 * updates, is test_transfer.c's.)
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
#include "mem/queue.h"
#include "wire/tparams.h"

/* Does the work `times` times, and counts the heap calls of the last half. */
static void assert_no_heap_calls(void (*work)(void *arg), void *arg, unsigned times)
{
    leat_malloc_count before, after;

    for (unsigned i = 0; i < times / 2; i++) {
        work(arg);
    }
    before = leat_malloc_counted();
    for (unsigned i = 0; i < times / 2; i++) {
        work(arg);
    }
    after = leat_malloc_counted();
    assert_int_equal(leat_malloc_total(after) - leat_malloc_total(before), 0);
    assert_int_equal(after.free - before.free, 0);
}

/* ---- over a connection ---- */

typedef struct client {
    leat_echo echo;
    leat_stream *stream;
} client;

static bool echoed(void *arg)
{
    leat_echo *e = arg;

    return e->client.received == e->server.received && e->client.received >= 1200;
}

static void one_message(void *arg)
{
    static const uint8_t message[1200];
    client *c = arg;
    size_t written;

    c->echo.client.received = c->echo.server.received = 0;
    assert_int_equal(leat_stream_write(c->stream, message, sizeof message, &written), LEAT_OK);
    assert_int_equal(written, sizeof message);
    assert_true(leat_pair_run(&c->echo.pair, echoed, &c->echo, LEAT_SECOND));
}

static void a_message_allocates_nothing(void **state)
{
    static client c;

    (void)state;
    leat_echo_prepare(&c.echo);
    leat_echo_connect(&c.echo);
    assert_int_equal(leat_stream_open(c.echo.pair.conn, true, &c.stream), LEAT_OK);
    assert_no_heap_calls(one_message, &c, 4000);
    leat_echo_finish(&c.echo);
}

/* Sixteen written in one turn: datagrams are filled, and one ACK is for many. */
static void sixteen_messages(void *arg)
{
    static const uint8_t message[1200];
    client *c = arg;
    size_t written;

    c->echo.client.received = c->echo.server.received = 0;
    for (int i = 0; i < 16; i++) {
        assert_int_equal(leat_stream_write(c->stream, message, sizeof message, &written), LEAT_OK);
        assert_int_equal(written, sizeof message);
    }
    assert_true(leat_pair_run(&c->echo.pair, echoed, &c->echo, LEAT_SECOND));
}

static void sixteen_messages_a_turn_allocate_nothing(void **state)
{
    static client c;

    (void)state;
    leat_echo_prepare(&c.echo);
    leat_echo_connect(&c.echo);
    assert_int_equal(leat_stream_open(c.echo.pair.conn, true, &c.stream), LEAT_OK);
    assert_no_heap_calls(sixteen_messages, &c, 1000);
    leat_echo_finish(&c.echo);
}

static void one_stream(void *arg)
{
    client *c = arg;

    leat_echo_bytes(&c->echo, 300, LEAT_SECOND);
}

/* Opened, answered and closed: more than a context keeps open at once. */
static void a_stream_allocates_nothing(void **state)
{
    static client c;
    unsigned closed;

    (void)state;
    leat_echo_prepare(&c.echo);
    leat_echo_connect(&c.echo);
    assert_no_heap_calls(one_stream, &c, 2000);
    leat_echo_settle(&c.echo, LEAT_SECOND);
    closed = c.echo.client.stream_closed;
    assert_int_equal(closed, 2000);
    leat_echo_finish(&c.echo);
}

static void one_transfer(void *arg)
{
    client *c = arg;

    leat_echo_bytes(&c->echo, 500000, 10 * LEAT_SECOND);
}

static void a_transfer_of_500_kb_allocates_nothing(void **state)
{
    static client c;

    (void)state;
    leat_echo_prepare(&c.echo);
    leat_echo_connect(&c.echo);
    assert_no_heap_calls(one_transfer, &c, 40);
    leat_echo_finish(&c.echo);
}

/* ---- handshakes: what the TLS library allocates is its own; leat takes nothing from the system
 * ---- */

static void one_connection(leat_echo *e)
{
    e->client = e->server = (leat_echo_app){0};
    leat_pair_connect(&e->pair, &e->setup, &leat_echo_client_events, &e->client);
    assert_true(leat_pair_run(&e->pair, leat_echo_both_connected, e, 10 * LEAT_SECOND));
    leat_echo_settle(e, LEAT_SECOND);
    leat_conn_close(e->pair.conn, 0, (leat_span){NULL, 0});
    leat_echo_settle(e, 60 * LEAT_SECOND);
    assert_int_equal(e->client.closed, 1);
    assert_int_equal(e->server.closed, 1);
}

static void a_handshake_takes_nothing_from_the_system(void **state)
{
    static leat_echo e;
    leat_mem_stats first, last;
    leat_malloc_count before;

    (void)state;
    leat_echo_prepare(&e);
    leat_pair_init(&e.pair, &e.setup);
    for (int i = 0; i < 20; i++) {
        one_connection(&e);
    }
    leat_mem_stats_get(leat_ctx_mem(e.pair.ctx), &first);
    before = leat_malloc_counted();
    for (int i = 0; i < 100; i++) {
        one_connection(&e);
    }
    leat_mem_stats_get(leat_ctx_mem(e.pair.ctx), &last);
    assert_int_equal(last.grown, first.grown);
    assert_true(leat_malloc_total(leat_malloc_counted()) - leat_malloc_total(before) > 100 * 100);
    leat_pair_free(&e.pair);
}

/* ---- the scheduler ---- */

typedef struct scheduler {
    leat_ctx *ctx;
    leat_task tasks[64];
    leat_timer timers[64];
    leat_time now;
    unsigned ran, fired;
} scheduler;

static scheduler sched;

static void count_run(leat_task *task)
{
    (void)task;
    sched.ran++;
}

static void count_fire(leat_timer *timer, leat_time now)
{
    (void)timer, (void)now;
    sched.fired++;
}

static void tasks_and_timers(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 64; i++) {
        if (i % 2) {
            leat_ctx_run_soon(sched.ctx, &sched.tasks[i]);
        } else {
            assert_true(leat_ctx_post(sched.ctx, &sched.tasks[i]));
        }
        leat_timer_set(&sched.timers[i], sched.now + 1 + i * 7 % 64);
    }
    sched.now += 100;
    leat_ctx_turn(sched.ctx, sched.now);
}

static void a_task_and_a_timer_allocate_nothing(void **state)
{
    (void)state;
    memset(&sched, 0, sizeof sched);
    assert_int_equal(leat_ctx_new(NULL, &sched.ctx), LEAT_OK);
    for (unsigned i = 0; i < 64; i++) {
        leat_task_init(&sched.tasks[i], sched.ctx, count_run);
        leat_timer_init(&sched.timers[i], sched.ctx, count_fire);
    }
    assert_no_heap_calls(tasks_and_timers, NULL, 1000);
    assert_int_equal(sched.ran, 64 * 1000);
    assert_int_equal(sched.fired, 64 * 1000);
    leat_ctx_free(sched.ctx);
}

/* ---- memory ---- */

static void buffers_of_all_sizes(void *arg)
{
    leat_mem *mem = arg;
    leat_buf bufs[15];
    leat_buf slice;
    unsigned n = 0;

    for (size_t size = 64; size <= 1048576; size *= 2) {
        assert_int_equal(leat_buf_take(mem, size, &bufs[n++]), LEAT_OK);
    }
    slice = leat_buf_slice(&bufs[0], 8, 8);
    leat_buf_release(&slice);
    while (n > 0) {
        leat_buf_release(&bufs[--n]);
    }
}

static void a_buffer_allocates_nothing(void **state)
{
    leat_mem *mem;

    (void)state;
    assert_int_equal(leat_mem_new(NULL, &mem), LEAT_OK);
    assert_no_heap_calls(buffers_of_all_sizes, mem, 2000);
    leat_mem_free(mem);
}

typedef struct queues {
    leat_queue queue, batch;
} queues;

static void batches(void *arg)
{
    queues *q = arg;

    for (unsigned i = 0; i < 100; i++) {
        uint64_t *e = leat_queue_push(&q->queue);

        assert_non_null(e);
        *e = i;
    }
    assert_int_equal(leat_queue_drain(&q->queue, &q->batch), LEAT_OK);
    assert_int_equal(leat_queue_append(&q->queue, &q->batch), LEAT_OK);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(*(uint64_t *)leat_queue_pop(&q->queue), i);
    }
}

static void a_batch_allocates_nothing(void **state)
{
    leat_mem *mem;
    queues q;

    (void)state;
    assert_int_equal(leat_mem_new(NULL, &mem), LEAT_OK);
    leat_queue_init(&q.queue, mem, sizeof(uint64_t));
    leat_queue_init(&q.batch, mem, sizeof(uint64_t));
    assert_no_heap_calls(batches, &q, 2000);
    leat_queue_free(&q.queue);
    leat_queue_free(&q.batch);
    leat_mem_free(mem);
}

/* ---- transport parameters ---- */

static void encode_and_decode(void *arg)
{
    uint8_t bytes[LEAT_TPARAMS_MAX];
    leat_tparams out;
    const char *why;
    leat_writer w;

    leat_writer_init(&w, bytes, sizeof bytes);
    assert_true(leat_tparams_encode(arg, &w));
    assert_int_equal(leat_tparams_decode((leat_span){bytes, leat_writer_len(&w)}, true, &out, &why),
                     LEAT_TE_NO_ERROR);
    assert_int_equal(out.initial_max_data, ((leat_tparams *)arg)->initial_max_data);
}

static void transport_parameters_allocate_nothing(void **state)
{
    leat_tparams params;

    (void)state;
    leat_tparams_init(&params);
    params.present = LEAT_TP_initial_scid | LEAT_TP_original_dcid | LEAT_TP_stateless_reset_token;
    leat_cid_set(&params.initial_scid, (const uint8_t *)"12345678", 8);
    leat_cid_set(&params.original_dcid, (const uint8_t *)"abcdefgh", 8);
    params.initial_max_data = 1 << 20;
    params.initial_max_streams_bidi = 100;
    /* From the first: this has nothing to warm up. */
    assert_no_heap_calls(encode_and_decode, &params, 2);
    assert_no_heap_calls(encode_and_decode, &params, 1000);
}

/* The counter itself works, and sees what shared libraries allocate: strdup() is in one. */
static void two_mallocs(void)
{
    char *(*volatile copy)(const char *) = strdup;
    void *volatile p = malloc(10);

    free(p);
    free(copy("text"));
}

static void a_heap_call_is_seen(void **state)
{
    leat_malloc_count before = leat_malloc_counted(), after;

    (void)state;
    two_mallocs();
    after = leat_malloc_counted();
    assert_int_equal(leat_malloc_total(after) - leat_malloc_total(before), 2);
    assert_int_equal(after.free - before.free, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_heap_call_is_seen),
        cmocka_unit_test(a_message_allocates_nothing),
        cmocka_unit_test(sixteen_messages_a_turn_allocate_nothing),
        cmocka_unit_test(a_stream_allocates_nothing),
        cmocka_unit_test(a_transfer_of_500_kb_allocates_nothing),
        cmocka_unit_test(a_handshake_takes_nothing_from_the_system),
        cmocka_unit_test(a_task_and_a_timer_allocate_nothing),
        cmocka_unit_test(a_buffer_allocates_nothing),
        cmocka_unit_test(a_batch_allocates_nothing),
        cmocka_unit_test(transport_parameters_allocate_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
