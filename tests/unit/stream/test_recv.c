/* test_recv.c: the receiving part, RFC 9000 §3.2: states, final size, flow control, reassembly.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stream_rig.h"

#define SEED 3u /* of the bytes */

typedef struct fixture {
    rig rig;
    leat_stream_recv recv;
    leat_flow_in conn;
    unsigned news;
    bool unchecked; /* a long test walks now and then alone */
} fixture;

static fixture *begin_with(uint64_t window, uint32_t gaps, size_t budget)
{
    fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    rig_init(&f->rig, budget);
    leat_stream_recv_init(&f->recv, &f->rig.env, window, 0, gaps);
    leat_flow_in_init(&f->conn, 1 << 24, 0);
    return f;
}

static fixture *begin(uint64_t window)
{
    return begin_with(window, LEAT_STREAM_RECV_GAPS_DEFAULT, 0);
}

/* The walker, and that what it counts is what is charged. */
static void check(const fixture *f)
{
    leat_stream_recv_check(&f->recv);
    leat_flow_in_check(&f->conn);
    assert_int_equal(leat_reassembly_check(&f->recv.held),
                     f->rig.budget.by[LEAT_BUDGET_STREAM_RECV]);
}

static void end(fixture *f)
{
    check(f);
    leat_stream_recv_free(&f->recv);
    rig_free(&f->rig);
    free(f);
}

/* A frame in a packet of its own; the packet's own reference goes at once. */
static uint64_t frame(fixture *f, uint64_t offset, size_t len, bool fin)
{
    leat_buf packet = rig_packet(&f->rig, SEED, offset, len);
    leat_buf view = {.data = packet.data, .len = len, .block = packet.block};
    uint64_t code;

    f->news = 0;
    code = leat_stream_recv_on_data(&f->recv, offset, &view, fin, &f->conn, &f->news);
    leat_buf_release(&packet);
    if (!f->unchecked || offset % 997 == 0) {
        check(f);
    }
    return code;
}

static uint64_t reset(fixture *f, uint64_t code, uint64_t final_size)
{
    uint64_t result;

    f->news = 0;
    result = leat_stream_recv_on_reset(&f->recv, code, final_size, &f->conn, &f->news);
    check(f);
    return result;
}

/* Reads n bytes, which must be there and right. */
static void take(fixture *f, uint64_t n)
{
    while (n > 0) {
        leat_span span = leat_stream_recv_peek(&f->recv);
        size_t some = span.len < n ? span.len : (size_t)n;

        assert_true(span.len > 0);
        rig_expect(span.data, SEED, f->recv.flow.consumed, some);
        leat_stream_recv_consume(&f->recv, some, &f->conn);
        check(f);
        n -= some;
    }
}

/* ---- states ---- */

static void states_run_from_recv_to_data_read(void **state)
{
    fixture *f = begin(1000);

    (void)state;
    assert_int_equal(frame(f, 0, 10, false), 0);
    assert_int_equal(f->news, LEAT_RECV_READABLE);
    assert_int_equal(f->recv.state, LEAT_RECV_RECV);
    assert_int_equal(frame(f, 20, 10, true), 0);
    assert_int_equal(f->news, 0);
    assert_int_equal(f->recv.state, LEAT_RECV_SIZE_KNOWN);
    assert_int_equal(frame(f, 10, 10, false), 0);
    assert_int_equal(f->news, LEAT_RECV_READABLE);
    assert_int_equal(f->recv.state, LEAT_RECV_DATA_RECVD);
    assert_int_equal(leat_stream_recv_readable(&f->recv), 30);
    take(f, 29);
    assert_int_equal(f->recv.state, LEAT_RECV_DATA_RECVD);
    take(f, 1);
    assert_int_equal(f->recv.state, LEAT_RECV_DATA_READ);
    assert_true(leat_stream_recv_ended(&f->recv));
    assert_int_equal(f->rig.budget.used, 0);
    end(f);
}

static void an_empty_stream_ends_at_once(void **state)
{
    fixture *f = begin(0);

    (void)state;
    assert_int_equal(frame(f, 0, 0, true), 0);
    assert_int_equal(f->news, LEAT_RECV_READABLE);
    assert_int_equal(f->recv.state, LEAT_RECV_DATA_READ);
    assert_int_equal(frame(f, 0, 0, true), 0); /* again */
    assert_int_equal(f->news, 0);
    end(f);
}

static void a_late_fin_ends_what_was_read(void **state)
{
    fixture *f = begin(100);

    (void)state;
    assert_int_equal(frame(f, 0, 10, false), 0);
    take(f, 10);
    assert_int_equal(frame(f, 10, 0, true), 0);
    assert_int_equal(f->news, LEAT_RECV_READABLE);
    assert_int_equal(f->recv.state, LEAT_RECV_DATA_READ);
    end(f);
}

static void a_reset_gives_credit_back_and_is_told(void **state)
{
    fixture *f = begin(1000);
    leat_span span;

    (void)state;
    assert_int_equal(frame(f, 0, 100, false), 0);
    assert_int_equal(frame(f, 200, 100, false), 0);
    take(f, 30);
    span = leat_stream_recv_peek(&f->recv);
    assert_int_equal(reset(f, 77, 500), 0);
    assert_int_equal(f->news, LEAT_RECV_RESET);
    assert_int_equal(f->recv.state, LEAT_RECV_RESET_RECVD);
    assert_int_equal(f->recv.reset_code, 77);
    assert_int_equal(f->conn.received, 500);
    assert_int_equal(f->conn.consumed, 500);
    rig_expect(span.data, SEED, 30,
               span.len); /* a span the application looks at stays until it knows */
    leat_stream_recv_consume(&f->recv, span.len, &f->conn);
    assert_int_equal(leat_stream_recv_peek(&f->recv).len, 0);
    assert_int_equal(reset(f, 78, 500), 0); /* again: not news */
    assert_int_equal(f->news, 0);
    assert_int_equal(f->recv.reset_code, 77);
    leat_stream_recv_reset_seen(&f->recv);
    assert_int_equal(f->recv.state, LEAT_RECV_RESET_READ);
    assert_int_equal(f->rig.budget.used, 0);
    assert_int_equal(frame(f, 100, 100, false), 0); /* late data */
    assert_int_equal(f->rig.budget.used, 0);
    end(f);
}

static void a_reset_after_all_data_is_ignored(void **state)
{
    fixture *f = begin(1000);

    (void)state;
    assert_int_equal(frame(f, 0, 100, true), 0);
    assert_int_equal(reset(f, 1, 100), 0);
    assert_int_equal(f->news, 0);
    assert_int_equal(f->recv.state, LEAT_RECV_DATA_RECVD);
    take(f, 100);
    assert_int_equal(reset(f, 1, 99), LEAT_TE_FINAL_SIZE_ERROR); /* but it is checked */
    end(f);
}

static void a_stopped_stream_drops_data_and_keeps_credit_moving(void **state)
{
    fixture *f = begin(1000);

    (void)state;
    assert_int_equal(frame(f, 0, 100, false), 0);
    assert_true(leat_stream_recv_stop(&f->recv, &f->conn));
    assert_false(leat_stream_recv_stop(&f->recv, &f->conn));
    assert_int_equal(f->conn.consumed, 100);
    assert_int_equal(frame(f, 300, 100, false), 0);
    assert_int_equal(f->news, 0);
    assert_int_equal(f->conn.consumed, 400);
    assert_int_equal(f->rig.budget.used, 0);
    assert_false(leat_stream_recv_wants_credit(&f->recv));
    assert_int_equal(frame(f, 500, 100, true), 0);
    assert_int_equal(f->recv.state, LEAT_RECV_DATA_READ);
    assert_int_equal(f->conn.consumed, 600);
    end(f);
}

static void stop_needs_no_frame_once_the_end_is_known(void **state)
{
    fixture *f = begin(1000);

    (void)state;
    assert_int_equal(frame(f, 50, 50, true), 0);
    assert_false(leat_stream_recv_stop(&f->recv, &f->conn));
    assert_int_equal(f->recv.state, LEAT_RECV_DATA_READ);
    assert_int_equal(f->conn.consumed, 100);
    end(f);
    f = begin(1000);
    assert_int_equal(reset(f, 5, 10), 0);
    assert_false(leat_stream_recv_stop(&f->recv, &f->conn));
    assert_int_equal(f->recv.state, LEAT_RECV_RESET_READ);
    end(f);
    f = begin(1000);
    assert_true(leat_stream_recv_stop(&f->recv, &f->conn));
    assert_int_equal(reset(f, 5, 10), 0); /* the answer to it: not news */
    assert_int_equal(f->news, 0);
    assert_int_equal(f->recv.state, LEAT_RECV_RESET_READ);
    end(f);
}

/* ---- checks ---- */

static void a_final_size_that_changes_is_an_error(void **state)
{
    fixture *f = begin(1000);

    (void)state;
    assert_int_equal(frame(f, 0, 100, false), 0);
    assert_int_equal(frame(f, 0, 50, true), LEAT_TE_FINAL_SIZE_ERROR); /* below what was received */
    assert_int_equal(reset(f, 0, 99), LEAT_TE_FINAL_SIZE_ERROR);
    assert_int_equal(frame(f, 150, 50, true), 0);
    assert_int_equal(frame(f, 150, 50, true), 0);
    assert_int_equal(frame(f, 150, 51, false), LEAT_TE_FINAL_SIZE_ERROR); /* above it */
    assert_int_equal(frame(f, 150, 49, true), LEAT_TE_FINAL_SIZE_ERROR);
    assert_int_equal(frame(f, 0, 0, true), LEAT_TE_FINAL_SIZE_ERROR);
    assert_int_equal(reset(f, 0, 201), LEAT_TE_FINAL_SIZE_ERROR);
    assert_int_equal(frame(f, 100, 50, false), 0);
    take(f, 200);
    assert_int_equal(frame(f, 200, 1, false), LEAT_TE_FINAL_SIZE_ERROR); /* at the end, too */
    end(f);
}

static void more_than_the_streams_limit_is_an_error(void **state)
{
    fixture *f = begin(100);

    (void)state;
    assert_int_equal(frame(f, 0, 101, false), LEAT_TE_FLOW_CONTROL_ERROR);
    assert_int_equal(frame(f, 90, 10, false), 0);
    assert_int_equal(frame(f, 100, 1, false), LEAT_TE_FLOW_CONTROL_ERROR);
    assert_int_equal(reset(f, 0, 101), LEAT_TE_FLOW_CONTROL_ERROR);
    assert_int_equal(frame(f, 100, 0, true), 0);
    end(f);
}

static void more_than_the_connections_limit_is_an_error(void **state)
{
    fixture *f = begin(1000);

    (void)state;
    leat_flow_in_init(&f->conn, 100, 0);
    assert_int_equal(frame(f, 50, 50, false), 0);
    assert_int_equal(f->conn.received, 100);
    assert_int_equal(frame(f, 0, 50, false), 0); /* below the highest offset: counted already */
    assert_int_equal(f->conn.received, 100);
    assert_int_equal(frame(f, 100, 1, false), LEAT_TE_FLOW_CONTROL_ERROR);
    end(f);
}

/* CASES: STREAM at offset 2^62-1 with length 1 or more. */
static void an_end_above_the_largest_offset_is_an_error(void **state)
{
    fixture *f = begin(LEAT_STREAM_OFFSET_MAX);

    (void)state;
    leat_flow_in_init(&f->conn, LEAT_STREAM_OFFSET_MAX, 0);
    assert_int_equal(frame(f, LEAT_STREAM_OFFSET_MAX, 1, false), LEAT_TE_FRAME_ENCODING_ERROR);
    assert_int_equal(frame(f, LEAT_STREAM_OFFSET_MAX - 5, 6, false), LEAT_TE_FRAME_ENCODING_ERROR);
    assert_int_equal(f->conn.received, 0);
    assert_int_equal(frame(f, LEAT_STREAM_OFFSET_MAX - 5, 5, false), 0); /* as far as it goes */
    assert_int_equal(frame(f, LEAT_STREAM_OFFSET_MAX, 0, true), 0);
    end(f);
}

static void the_window_follows_what_is_read(void **state)
{
    fixture *f = begin(1000);

    (void)state;
    assert_int_equal(frame(f, 0, 1000, false), 0);
    assert_false(leat_stream_recv_wants_credit(&f->recv)); /* received is not read */
    take(f, 499);
    assert_false(leat_stream_recv_wants_credit(&f->recv));
    take(f, 1);
    assert_true(leat_stream_recv_wants_credit(&f->recv));
    assert_int_equal(leat_flow_in_update(&f->recv.flow, 1, 1, UINT64_MAX), 1500);
    assert_int_equal(frame(f, 1000, 500, true), 0);
    take(f, 900);
    assert_false(leat_stream_recv_wants_credit(&f->recv)); /* the size is known: of no use */
    end(f);
}

/* ---- reassembly ---- */

static void data_in_order_is_not_copied(void **state)
{
    fixture *f = begin(100000);
    leat_buf packet = rig_packet(&f->rig, SEED, 0, 1200);
    leat_buf view = {.data = packet.data, .len = 1200, .block = packet.block};
    leat_buf out;

    (void)state;
    assert_int_equal(leat_stream_recv_on_data(&f->recv, 0, &view, false, &f->conn, &f->news), 0);
    assert_ptr_equal(leat_stream_recv_peek(&f->recv).data, packet.data);
    take(f, 200);
    assert_ptr_equal(leat_stream_recv_peek(&f->recv).data, packet.data + 200);
    leat_buf_release(&packet);
    assert_int_equal(leat_stream_recv_peek_buf(&f->recv, &out), LEAT_OK);
    assert_ptr_equal(out.data, leat_stream_recv_peek(&f->recv).data);
    take(f, 1000);
    rig_expect(out.data, SEED, 200, out.len); /* it has a reference of its own */
    leat_buf_release(&out);
    assert_int_equal(leat_stream_recv_peek_buf(&f->recv, &out), LEAT_ERR_NOT_FOUND);
    end(f);
}

static void neighbours_on_one_slab_pay_for_it_once(void **state)
{
    fixture *f = begin(100000);
    leat_buf packet = rig_packet(&f->rig, SEED, 0, 12000);
    size_t slab = leat_buf_pinned(&packet);

    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        leat_buf view = {.data = packet.data + i * 1200, .len = 1200, .block = packet.block};

        assert_int_equal(
            leat_stream_recv_on_data(&f->recv, i * 1200, &view, false, &f->conn, &f->news), 0);
        check(f);
        assert_int_equal(f->rig.budget.used, slab + (i + 1) * sizeof(leat_recv_segment));
    }
    take(f, 1300);
    assert_int_equal(f->rig.budget.used, slab + 9 * sizeof(leat_recv_segment));
    leat_buf_release(&packet);
    take(f, 10700);
    assert_int_equal(f->rig.budget.used, 0);
    end(f);
}

static void bytes_that_nobody_counts_are_copied(void **state)
{
    fixture *f = begin(1000);
    uint8_t bytes[200];
    leat_buf view = {.data = bytes, .len = sizeof bytes};

    (void)state;
    rig_fill(bytes, SEED, 0, sizeof bytes);
    assert_int_equal(leat_stream_recv_on_data(&f->recv, 0, &view, false, &f->conn, &f->news), 0);
    memset(bytes, 0, sizeof bytes);
    take(f, 200);
    end(f);
}

static void what_is_held_wins_over_what_comes_again(void **state)
{
    fixture *f = begin(1000);
    uint8_t other[100];
    leat_buf view = {.data = other, .len = sizeof other};

    (void)state;
    memset(other, 0, sizeof other);
    assert_int_equal(frame(f, 0, 40, false), 0);
    assert_int_equal(frame(f, 60, 40, false), 0);
    rig_fill(other + 40, SEED, 40, 20); /* right in the hole alone */
    assert_int_equal(leat_stream_recv_on_data(&f->recv, 0, &view, false, &f->conn, &f->news), 0);
    check(f);
    take(f, 100);
    end(f);
}

static void one_frame_fills_many_holes(void **state)
{
    fixture *f = begin(10000);

    (void)state;
    for (uint64_t at = 10; at < 5000; at += 20) {
        assert_int_equal(frame(f, at, 10, false), 0);
    }
    assert_int_equal(f->recv.held.run_count, 250);
    assert_int_equal(frame(f, 2005, 1000, false), 0); /* begins and ends within holes */
    assert_int_equal(f->recv.held.run_count, 201);
    assert_int_equal(frame(f, 0, 5000, false), 0);
    assert_int_equal(f->recv.held.run_count, 0);
    take(f, 5000);
    end(f);
}

static void frames_in_falling_order_join(void **state)
{
    fixture *f = begin(200000);

    (void)state;
    for (uint64_t at = 100000; at > 0; at -= 500) {
        assert_int_equal(frame(f, at - 500, 500, at == 100000), 0);
        assert_true(f->recv.held.run_count <= 1);
    }
    assert_int_equal(f->recv.state, LEAT_RECV_DATA_RECVD);
    take(f, 100000);
    end(f);
}

/* ---- floods ---- */

/* CASES: a flood of tiny STREAM frames with gaps. */
static void tiny_frames_with_gaps_end_in_an_error_within_memory(void **state)
{
    fixture *f = begin_with(1 << 20, 512, 1 << 20);
    uint64_t code = 0;
    uint64_t at;

    (void)state;
    for (at = 1; code == 0; at += 2) {
        code = frame(f, at, 1, false);
    }
    assert_int_equal(code, LEAT_TE_INTERNAL_ERROR);
    assert_int_equal(f->recv.held.run_count, 512);
    /* A segment, a copy of the least size and a pointer for each gap; nothing pins a slab. */
    assert_true(f->rig.budget.high <=
                512 * (sizeof(leat_recv_segment) + 16 + 2 * sizeof(void *)) + 4096);
    end(f);
}

static void byte_by_byte_costs_little_more_than_the_bytes(void **state)
{
    fixture *f = begin_with(1 << 20, 512, 1 << 20);

    (void)state;
    f->unchecked = true;
    for (uint64_t at = 0; at < 100000; at++) {
        assert_int_equal(frame(f, at, 1, false), 0);
    }
    /* The first frame holds a slab, as it would be read at once; the others are gathered. */
    assert_true(f->rig.budget.high <= 65536 + 110000);
    take(f, 100000);
    assert_int_equal(f->rig.budget.used, 0);
    end(f);
}

static void byte_by_byte_backwards_stays_within_the_budget(void **state)
{
    const size_t budget = 1 << 20;
    fixture *f = begin_with(1 << 20, 512, budget);
    uint64_t code = 0;

    (void)state;
    f->unchecked = true;
    for (uint64_t at = 1 << 20; at > 0 && code == 0; at--) {
        code = frame(f, at - 1, 1, false);
        assert_true(f->rig.budget.used <= budget);
    }
    assert_int_equal(code, LEAT_TE_INTERNAL_ERROR); /* the budget's end */
    end(f);
}

/* Each frame lies in a slab of its own that has nothing else of use. */
static void sparse_frames_are_copied_when_memory_gets_short(void **state)
{
    const size_t budget = 1 << 20;
    fixture *f = begin_with(1 << 20, 4096, budget);
    leat_mem_stats stats;

    (void)state;
    for (unsigned i = 0; i < 900; i++) {
        leat_buf block, view;

        assert_int_equal(leat_buf_take(f->rig.mem, 65536, &block), LEAT_OK);
        rig_fill(block.data, SEED, i * 301u, 300);
        view = (leat_buf){.data = block.data, .len = 300, .block = block.block};
        assert_int_equal(
            leat_stream_recv_on_data(&f->recv, i * 301u, &view, false, &f->conn, &f->news), 0);
        leat_buf_release(&block);
        assert_true(f->rig.budget.used <= budget);
    }
    check(f);
    leat_mem_stats_get(f->rig.mem, &stats);
    assert_true(stats.buf_pinned <= budget); /* what is really held, not what we say */
    end(f);
}

/* A frame whose packet lies among others' data. */
static uint64_t frame_among_others(fixture *f, uint64_t offset, size_t len)
{
    leat_buf others = rig_packet(&f->rig, SEED, 0, 40000);
    uint64_t code = frame(f, offset, len, false);

    leat_buf_release(&others);
    return code;
}

/* Little data in many packets retains half of the budget; all that is written then leaves room for
 * what the peer may send: a connection ended of its own application's writing. */
static void what_is_written_leaves_room_for_what_comes(void **state)
{
    const size_t budget = 1 << 20;
    fixture *f = begin_with(1 << 20, 4096, budget);
    leat_stream_send send;
    leat_err err = LEAT_OK;
    uint64_t offset = 1;
    size_t n;

    (void)state;
    f->unchecked = true;
    for (; f->rig.budget.used < budget / 2 - 65536; offset += 82) {
        assert_int_equal(frame_among_others(f, offset, 81), 0);
    }
    leat_stream_send_init(&send, &f->rig.env, 1 << 20, 1 << 20);
    while (err == LEAT_OK) {
        uint8_t bytes[1000] = {0};

        err = leat_stream_send_write(&send, bytes, sizeof bytes, &n);
    }
    assert_int_equal(err, LEAT_ERR_BLOCKED);
    assert_true(send.end > 0);
    for (unsigned i = 0; i < 150; i++, offset += 1001) {
        assert_int_equal(frame_among_others(f, offset, 1000), 0);
    }
    assert_true(f->rig.budget.high <= budget);
    leat_stream_send_free(&send);
    end(f);
}

static void crypto_data_is_bounded(void **state)
{
    rig r;
    leat_stream_recv recv;
    uint8_t bytes[2000];
    leat_buf view = {.data = bytes, .len = 1000};
    unsigned news = 0;

    (void)state;
    rig_init(&r, 0);
    leat_stream_recv_init_crypto(&recv, &r.env, 4096, 0);
    rig_fill(bytes, SEED, 0, sizeof bytes);
    assert_int_equal(leat_stream_recv_on_data(&recv, 3096, &view, false, NULL, &news), 0);
    assert_int_equal(leat_stream_recv_on_data(&recv, 3097, &view, false, NULL, &news),
                     LEAT_TE_CRYPTO_BUFFER_EXCEEDED);
    assert_int_equal(news, 0);
    assert_int_equal(leat_stream_recv_on_data(&recv, 0, &view, false, NULL, &news), 0);
    assert_int_equal(news, LEAT_RECV_READABLE);
    assert_true(r.budget.by[LEAT_BUDGET_CRYPTO] > 0);
    assert_int_equal(r.budget.by[LEAT_BUDGET_STREAM_RECV], 0);
    leat_stream_recv_consume(&recv, 1000, NULL);
    /* The limit follows what was read. */
    assert_int_equal(leat_stream_recv_on_data(&recv, 4096, &view, false, NULL, &news), 0);
    assert_int_equal(leat_stream_recv_on_data(&recv, 4097, &view, false, NULL, &news),
                     LEAT_TE_CRYPTO_BUFFER_EXCEEDED);
    leat_stream_recv_check(&recv);
    leat_stream_recv_free(&recv);
    rig_free(&r);
}

static void crypto_data_goes_on_where_it_stopped(void **state)
{
    rig r;
    leat_stream_recv recv;
    uint8_t bytes[1000];
    leat_buf view = {.data = bytes, .len = 1000};
    unsigned news = 0;

    (void)state;
    rig_init(&r, 0);
    leat_stream_recv_init_crypto(&recv, &r.env, 4096, 500);
    rig_fill(bytes, SEED, 0, sizeof bytes);
    leat_stream_recv_check(&recv);
    assert_int_equal(leat_stream_recv_on_data(&recv, 0, &view, false, NULL, &news), 0);
    assert_int_equal(leat_stream_recv_readable(&recv), 500); /* the first half is an old copy */
    assert_memory_equal(leat_stream_recv_peek(&recv).data, bytes + 500, 500);
    leat_stream_recv_consume(&recv, 500, NULL);
    assert_int_equal(leat_stream_recv_on_data(&recv, 4096, &view, false, NULL, &news), 0);
    assert_int_equal(leat_stream_recv_on_data(&recv, 4097, &view, false, NULL, &news),
                     LEAT_TE_CRYPTO_BUFFER_EXCEEDED);
    leat_stream_recv_check(&recv);
    leat_stream_recv_free(&recv);
    rig_free(&r);
}

/* CASES: a ClientHello split over several Initials, its frames shuffled; and a flood with gaps. */
static void crypto_frames_are_put_in_order(void **state)
{
    static const uint16_t cuts[][2] = {{900, 300}, {0, 1},     {700, 200},
                                       {1, 99},    {300, 400}, {100, 200}};
    rig r;
    leat_stream_recv recv;
    uint64_t read = 0;
    unsigned news = 0;

    (void)state;
    rig_init(&r, 0);
    leat_stream_recv_init_crypto(&recv, &r.env, 65536, 0);
    for (size_t i = 0; i < LEAT_COUNT_OF(cuts); i++) {
        leat_buf packet = rig_packet(&r, SEED, cuts[i][0], cuts[i][1]);

        assert_int_equal(leat_stream_recv_on_data(&recv, cuts[i][0], &packet, false, NULL, &news),
                         0);
        leat_buf_release(&packet);
        leat_stream_recv_check(&recv);
    }
    while (leat_stream_recv_readable(&recv) > 0) {
        leat_span span = leat_stream_recv_peek(&recv);

        rig_expect(span.data, SEED, read, span.len);
        read += span.len;
        leat_stream_recv_consume(&recv, span.len, NULL);
    }
    assert_int_equal(read, 1200);
    leat_stream_recv_free(&recv);
    rig_free(&r);
}

static void every_refusal_of_memory_is_an_error_and_leaves_order(void **state)
{
    (void)state;
    for (uint64_t nth = 1;; nth++) {
        fixture *f = begin(100000);
        uint64_t faults;

        for (uint64_t at = 100; at < 20000; at += 200) {
            leat_buf packet = rig_packet(&f->rig, SEED, at, 50 + at % 77);
            uint64_t code;

            if (at == 100) {
                leat_mem_fault_set(f->rig.mem, LEAT_MEM_FAULT_TAKE, nth, false);
            }
            code = leat_stream_recv_on_data(&f->recv, at, &packet, false, &f->conn, &f->news);
            leat_buf_release(&packet);
            check(f);
            if (code != 0) {
                assert_int_equal(code, LEAT_TE_INTERNAL_ERROR);
                break;
            }
            /* Let packets themselves be taken. */
            faults = leat_mem_fault_count(f->rig.mem);
            if (faults > 0) {
                break;
            }
            leat_mem_fault_set(f->rig.mem, LEAT_MEM_FAULT_NONE, 0, false);
            leat_mem_fault_set(f->rig.mem, LEAT_MEM_FAULT_TAKE, nth + 1, false);
        }
        faults = leat_mem_fault_count(f->rig.mem);
        leat_mem_fault_set(f->rig.mem, LEAT_MEM_FAULT_NONE, 0, false);
        end(f);
        if (faults == 0) {
            assert_true(nth > 2);
            break;
        }
    }
}

/* ---- against a model ---- */

#define MODEL_SIZE 30000u

static void model_frame(fixture *f, leat_prng *prng, uint64_t size, uint8_t *have)
{
    uint64_t far = leat_prng_chance(prng, 1, 3) ? size : f->recv.flow.consumed + 3000;
    uint64_t from = leat_prng_below(prng, (far < size ? far : size) + 1);
    uint64_t most = leat_prng_chance(prng, 1, 3) ? 20 : 1400;
    uint64_t len = leat_prng_below(prng, most);
    uint64_t code;

    if (from + len > size) {
        len = size - from;
    }
    code = frame(f, from, (size_t)len, from + len == size && leat_prng_chance(prng, 1, 2));
    if (code == LEAT_TE_INTERNAL_ERROR) {
        fail_msg("out of gaps or memory");
    }
    assert_int_equal(code, 0);
    memset(have + from, 1, len);
}

static void bytes_come_out_once_and_in_order(void **state)
{
    uint64_t seed = rig_seed("bytes_come_out_once_and_in_order", 1);

    (void)state;
    for (uint64_t run = 0; run < 40; run++) {
        fixture *f = begin_with(MODEL_SIZE, 4096, 4 << 20);
        leat_prng prng;
        uint64_t size, front = 0;
        uint8_t *have = calloc(1, MODEL_SIZE + 1);

        assert_non_null(have);
        leat_prng_seed(&prng, seed + run);
        size = leat_prng_below(&prng, MODEL_SIZE + 1);
        while (!leat_stream_recv_ended(&f->recv)) {
            model_frame(f, &prng, size, have);
            while (front < size && have[front]) {
                front++;
            }
            if (f->recv.state < LEAT_RECV_DATA_READ) {
                assert_int_equal(f->recv.held.front, front);
            }
            if (leat_prng_chance(&prng, 1, 3)) {
                take(f, leat_prng_below(&prng, leat_stream_recv_readable(&f->recv) + 1));
            }
        }
        assert_int_equal(f->recv.flow.consumed, size);
        assert_int_equal(f->conn.consumed, size);
        assert_int_equal(f->rig.budget.used, 0);
        free(have);
        end(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_run_from_recv_to_data_read),
        cmocka_unit_test(an_empty_stream_ends_at_once),
        cmocka_unit_test(a_late_fin_ends_what_was_read),
        cmocka_unit_test(a_reset_gives_credit_back_and_is_told),
        cmocka_unit_test(a_reset_after_all_data_is_ignored),
        cmocka_unit_test(a_stopped_stream_drops_data_and_keeps_credit_moving),
        cmocka_unit_test(stop_needs_no_frame_once_the_end_is_known),
        cmocka_unit_test(a_final_size_that_changes_is_an_error),
        cmocka_unit_test(more_than_the_streams_limit_is_an_error),
        cmocka_unit_test(more_than_the_connections_limit_is_an_error),
        cmocka_unit_test(an_end_above_the_largest_offset_is_an_error),
        cmocka_unit_test(the_window_follows_what_is_read),
        cmocka_unit_test(data_in_order_is_not_copied),
        cmocka_unit_test(neighbours_on_one_slab_pay_for_it_once),
        cmocka_unit_test(bytes_that_nobody_counts_are_copied),
        cmocka_unit_test(what_is_held_wins_over_what_comes_again),
        cmocka_unit_test(one_frame_fills_many_holes),
        cmocka_unit_test(frames_in_falling_order_join),
        cmocka_unit_test(tiny_frames_with_gaps_end_in_an_error_within_memory),
        cmocka_unit_test(byte_by_byte_costs_little_more_than_the_bytes),
        cmocka_unit_test(byte_by_byte_backwards_stays_within_the_budget),
        cmocka_unit_test(sparse_frames_are_copied_when_memory_gets_short),
        cmocka_unit_test(what_is_written_leaves_room_for_what_comes),
        cmocka_unit_test(crypto_data_is_bounded),
        cmocka_unit_test(crypto_data_goes_on_where_it_stopped),
        cmocka_unit_test(crypto_frames_are_put_in_order),
        cmocka_unit_test(every_refusal_of_memory_is_an_error_and_leaves_order),
        cmocka_unit_test(bytes_come_out_once_and_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
