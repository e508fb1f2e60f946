/* test_send.c: the sending part, RFC 9000 §3.1, without a connection.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stream_rig.h"

#define SEED 7u /* of the bytes */

typedef struct fixture {
    rig rig;
    leat_stream_send send;
    leat_flow_out conn;
} fixture;

static fixture *begin(uint64_t limit, size_t buffer)
{
    fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    rig_init(&f->rig, 0);
    leat_stream_send_init(&f->send, &f->rig.env, limit, buffer);
    leat_flow_out_init(&f->conn, 1 << 30);
    return f;
}

static void end(fixture *f)
{
    leat_stream_send_check(&f->send);
    leat_stream_send_free(&f->send);
    rig_free(&f->rig);
    free(f);
}

/* Writes the next n bytes of the test stream, all of which must find room. */
static void put(fixture *f, size_t n)
{
    uint8_t *bytes = malloc(n);
    size_t written;

    assert_non_null(bytes);
    rig_fill(bytes, SEED, f->send.end, n);
    assert_int_equal(leat_stream_send_write(&f->send, bytes, n, &written), LEAT_OK);
    assert_int_equal(written, n);
    free(bytes);
    leat_stream_send_check(&f->send);
}

/* Sends the next part, of which offset, length and FIN are expected. */
static void expect_sent(fixture *f, size_t max, uint64_t offset, size_t len, bool fin)
{
    leat_send_part part;
    uint8_t *bytes;

    assert_true(leat_stream_send_next(&f->send, max, &f->conn, &part));
    assert_int_equal(part.offset, offset);
    assert_int_equal(part.len, len);
    assert_int_equal(part.fin, fin);
    bytes = malloc(len + 1);
    assert_non_null(bytes);
    leat_stream_send_copy(&f->send, part.offset, part.len, bytes);
    rig_expect(bytes, SEED, offset, len);
    free(bytes);
    leat_stream_send_sent(&f->send, &part, &f->conn);
    leat_stream_send_check(&f->send);
}

static void expect_nothing(const fixture *f)
{
    leat_send_part part;

    assert_false(leat_stream_send_next(&f->send, 1000, &f->conn, &part));
}

static void acked(fixture *f, uint64_t offset, size_t len, bool fin)
{
    leat_stream_send_on_acked(&f->send, offset, len, fin);
    leat_stream_send_check(&f->send);
}

static void lost(fixture *f, uint64_t offset, size_t len, bool fin)
{
    leat_stream_send_on_lost(&f->send, offset, len, fin);
    leat_stream_send_check(&f->send);
}

/* ---- states ---- */

static void states_run_from_ready_to_data_recvd(void **state)
{
    fixture *f = begin(1000, 1000);

    (void)state;
    assert_int_equal(f->send.state, LEAT_SEND_READY);
    put(f, 100);
    expect_sent(f, 60, 0, 60, false);
    assert_int_equal(f->send.state, LEAT_SEND_SEND);
    assert_int_equal(leat_stream_send_finish(&f->send), LEAT_OK);
    expect_sent(f, 60, 60, 40, true);
    assert_int_equal(f->send.state, LEAT_SEND_DATA_SENT);
    acked(f, 60, 40, true);
    assert_false(leat_stream_send_ended(&f->send));
    acked(f, 0, 60, false);
    assert_int_equal(f->send.state, LEAT_SEND_DATA_RECVD);
    assert_true(leat_stream_send_ended(&f->send));
    assert_false(leat_stream_send_reset(&f->send, 1)); /* all arrived: nothing to reset */
    assert_int_equal(f->rig.budget.used, 0);
    end(f);
}

static void an_empty_stream_is_a_bare_fin(void **state)
{
    fixture *f = begin(0, 1000);

    (void)state;
    assert_int_equal(leat_stream_send_finish(&f->send), LEAT_OK);
    assert_true(leat_stream_send_has_free(&f->send));
    expect_sent(f, 0, 0, 0, true); /* no room, no credit needed */
    expect_nothing(f);
    lost(f, 0, 0, true);
    expect_sent(f, 0, 0, 0, true);
    acked(f, 0, 0, true);
    assert_int_equal(f->send.state, LEAT_SEND_DATA_RECVD);
    end(f);
}

static void fin_after_the_last_byte_was_sent_goes_alone(void **state)
{
    fixture *f = begin(10, 1000);

    (void)state;
    put(f, 10);
    expect_sent(f, 100, 0, 10, false);
    expect_nothing(f);
    assert_int_equal(leat_stream_send_finish(&f->send), LEAT_OK);
    expect_sent(f, 100, 10, 0, true);
    acked(f, 10, 0, true);
    acked(f, 0, 10, false);
    assert_int_equal(f->send.state, LEAT_SEND_DATA_RECVD);
    end(f);
}

static void reset_frees_everything_at_once_and_ends_when_acknowledged(void **state)
{
    fixture *f = begin(1000, 100000);

    (void)state;
    put(f, 50000);
    expect_sent(f, 300, 0, 300, false);
    expect_sent(f, 300, 300, 300, false);
    lost(f, 0, 300, false);
    assert_true(leat_stream_send_reset(&f->send, 42));
    assert_int_equal(f->send.state, LEAT_SEND_RESET_SENT);
    assert_int_equal(leat_stream_send_final_size(&f->send), 600);
    assert_int_equal(f->rig.budget.used, 0);
    assert_false(leat_stream_send_reset(&f->send, 43));
    assert_int_equal(f->send.reset_code, 42);
    expect_nothing(f);
    acked(f, 300, 300, false); /* outcomes may still come */
    lost(f, 0, 300, false);
    expect_nothing(f);
    leat_stream_send_on_reset_acked(&f->send);
    assert_int_equal(f->send.state, LEAT_SEND_RESET_RECVD);
    end(f);
}

static void writing_after_the_end_is_refused(void **state)
{
    fixture *f = begin(1000, 1000);
    leat_mspan span;
    leat_buf buf;
    size_t n;

    (void)state;
    put(f, 1);
    assert_int_equal(leat_stream_send_finish(&f->send), LEAT_OK);
    assert_int_equal(leat_stream_send_finish(&f->send), LEAT_ERR_STATE);
    assert_int_equal(leat_stream_send_write(&f->send, "x", 1, &n), LEAT_ERR_STATE);
    assert_int_equal(n, 0);
    assert_int_equal(leat_stream_send_reserve(&f->send, 1, &span), LEAT_ERR_STATE);
    assert_int_equal(leat_stream_send_writable(&f->send), 0);
    assert_true(leat_stream_send_reset(&f->send, 1));
    assert_int_equal(leat_stream_send_write(&f->send, "x", 1, &n), LEAT_ERR_CLOSED);
    assert_int_equal(leat_stream_send_finish(&f->send), LEAT_ERR_CLOSED);
    buf = rig_packet(&f->rig, SEED, 0, 8);
    assert_int_equal(leat_stream_send_append(&f->send, &buf), LEAT_ERR_CLOSED);
    assert_non_null(buf.block); /* still the caller's */
    leat_buf_release(&buf);
    end(f);
}

/* ---- credit ---- */

static void new_bytes_need_stream_and_connection_credit(void **state)
{
    fixture *f = begin(100, 1000);

    (void)state;
    leat_flow_out_init(&f->conn, 70);
    put(f, 200);
    expect_sent(f, 1000, 0, 70, false);
    expect_nothing(f);
    assert_true(leat_stream_send_has_new(&f->send)); /* the stream's own credit is left */
    assert_false(leat_stream_send_wants_blocked(&f->send));
    leat_flow_out_raise(&f->conn, 1000);
    expect_sent(f, 1000, 70, 30, false);
    expect_nothing(f);
    assert_false(leat_stream_send_has_new(&f->send));
    assert_true(leat_stream_send_wants_blocked(&f->send));
    assert_int_equal(f->conn.used, 100);
    end(f);
}

static void sending_again_needs_no_credit(void **state)
{
    fixture *f = begin(100, 1000);

    (void)state;
    leat_flow_out_init(&f->conn, 100);
    put(f, 200);
    expect_sent(f, 100, 0, 100, false);
    lost(f, 20, 30, false);
    assert_true(leat_stream_send_has_free(&f->send));
    expect_sent(f, 10, 20, 10, false);
    expect_sent(f, 100, 30, 20, false);
    expect_nothing(f);
    assert_int_equal(f->conn.used, 100);
    end(f);
}

/* ---- loss ---- */

static void lost_bytes_go_before_new_ones(void **state)
{
    fixture *f = begin(1000, 1000);

    (void)state;
    put(f, 300);
    expect_sent(f, 100, 0, 100, false);
    expect_sent(f, 100, 100, 100, false);
    lost(f, 100, 100, false);
    lost(f, 0, 50, false);
    expect_sent(f, 1000, 0, 50, false);
    expect_sent(f, 1000, 100, 100, false);
    expect_sent(f, 1000, 200, 100, false);
    end(f);
}

/* CASES: a retransmission found unnecessary when its turn comes. */
static void what_arrived_after_all_is_not_sent_again(void **state)
{
    fixture *f = begin(1000, 1000);

    (void)state;
    put(f, 300);
    assert_int_equal(leat_stream_send_finish(&f->send), LEAT_OK);
    expect_sent(f, 100, 0, 100, false);
    expect_sent(f, 100, 100, 100, false);
    expect_sent(f, 100, 200, 100, true);
    lost(f, 100, 100, false);
    lost(f, 200, 100, true);
    acked(f, 100, 100, false); /* late, but there */
    expect_sent(f, 1000, 200, 100, true);
    lost(f, 200, 100, true);
    acked(f, 200, 100, true); /* the first copy */
    expect_nothing(f);
    acked(f, 0, 100, false);
    expect_nothing(f);
    assert_int_equal(f->send.state, LEAT_SEND_DATA_RECVD);
    lost(f, 200, 100, true); /* an outcome after the end */
    expect_nothing(f);
    end(f);
}

static void loss_of_what_was_acknowledged_by_another_copy_is_nothing(void **state)
{
    fixture *f = begin(1000, 1000);

    (void)state;
    put(f, 300);
    expect_sent(f, 300, 0, 300, false);
    acked(f, 100, 100, false);
    lost(f, 50, 200, false); /* around the hole */
    expect_sent(f, 1000, 50, 50, false);
    expect_sent(f, 1000, 200, 50, false);
    expect_nothing(f);
    acked(f, 0, 250, false);
    lost(f, 0, 200, false);
    expect_nothing(f);
    assert_int_equal(f->send.base, 250);
    end(f);
}

/* What was sent as one is lost, goes again in pieces of which some arrive, and arrives itself after
 * all: base passes over several ranges at once. It stood still below the last of them, for ever. */
static void what_arrives_late_reaches_over_pieces_that_arrived(void **state)
{
    fixture *f = begin(1000, 1000);

    (void)state;
    put(f, 120);
    assert_int_equal(leat_stream_send_finish(&f->send), LEAT_OK);
    expect_sent(f, 100, 0, 100, false);
    lost(f, 0, 100, false);
    expect_sent(f, 50, 0, 50, false);
    expect_sent(f, 20, 50, 20, false);
    expect_sent(f, 20, 70, 20, false);
    expect_sent(f, 30, 90, 10, false); /* the rest of what was lost */
    expect_sent(f, 100, 100, 20, true);
    acked(f, 50, 20, false);
    acked(f, 90, 10, false);
    acked(f, 100, 20, true); /* it joins the one before, and reaches above what comes now */
    acked(f, 0, 100, false);
    assert_int_equal(f->send.state, LEAT_SEND_DATA_RECVD);
    end(f);
}

static void a_fin_that_arrived_is_not_sent_again(void **state)
{
    fixture *f = begin(1000, 1000);

    (void)state;
    put(f, 100);
    expect_sent(f, 50, 0, 50, false);
    assert_int_equal(leat_stream_send_finish(&f->send), LEAT_OK);
    expect_sent(f, 50, 50, 50, true);
    lost(f, 50, 50, true);
    expect_sent(f, 50, 50, 50, true);
    acked(f, 50, 50, true); /* one copy */
    lost(f, 50, 50, true);  /* and the other */
    expect_nothing(f);
    assert_false(leat_stream_send_has_free(&f->send));
    acked(f, 0, 50, false);
    assert_int_equal(f->send.state, LEAT_SEND_DATA_RECVD);
    end(f);
}

static void in_order_acks_keep_no_ranges(void **state)
{
    fixture *f = begin(1 << 20, 1 << 20);

    (void)state;
    put(f, 100000);
    for (uint64_t at = 0; at < 100000; at += 1000) {
        expect_sent(f, 1000, at, 1000, false);
    }
    for (uint64_t at = 0; at < 100000; at += 1000) {
        acked(f, at, 1000, false);
        assert_int_equal(f->send.acked.count, 0);
        assert_int_equal(f->send.lost.count, 0);
    }
    assert_int_equal(leat_ranges_held(&f->send.acked), 0);
    assert_int_equal(f->send.base, 100000);
    end(f);
}

/* Memory for ranges is refused from some point on: nothing is forgotten, more is sent. */
static void nothing_is_forgotten_when_ranges_cannot_grow(void **state)
{
    fixture *f = begin(1 << 20, 1 << 20);
    leat_send_part part;
    uint64_t covered = 0;

    (void)state;
    put(f, 20000);
    for (uint64_t at = 0; at < 20000; at += 100) {
        expect_sent(f, 100, at, 100, false);
    }
    leat_mem_fault_set(f->rig.mem, LEAT_MEM_FAULT_TAKE, 1, true);
    for (uint64_t at = 100; at < 20000; at += 400) {
        acked(f, at, 100, false);
    }
    for (uint64_t at = 200; at < 20000; at += 400) {
        lost(f, at, 100, false);
    }
    assert_true(leat_mem_fault_count(f->rig.mem) > 0);
    leat_mem_fault_set(f->rig.mem, LEAT_MEM_FAULT_NONE, 0, false);
    /* Everything lost is sent again, whatever else is. */
    for (uint64_t at = 200; at < 20000; at += 400) {
        while (covered < at + 100) {
            assert_true(leat_stream_send_next(&f->send, 1 << 20, &f->conn, &part));
            assert_true(part.offset <= at);
            covered = part.offset + part.len;
            leat_stream_send_sent(&f->send, &part, &f->conn);
        }
    }
    acked(f, 0, 20000, false);
    assert_int_equal(f->send.base, 20000);
    expect_nothing(f);
    end(f);
}

static void after_rejected_early_data_all_is_sent_anew(void **state)
{
    fixture *f = begin(1000, 1000);

    (void)state;
    put(f, 300);
    assert_int_equal(leat_stream_send_finish(&f->send), LEAT_OK);
    expect_sent(f, 200, 0, 200, false);
    expect_sent(f, 200, 200, 100, true);
    lost(f, 0, 200, false);
    leat_stream_send_restart(&f->send, 250);
    leat_flow_out_init(&f->conn, 1000);
    leat_stream_send_check(&f->send);
    expect_sent(f, 1000, 0, 250, false);
    expect_nothing(f);
    assert_true(leat_flow_out_raise(&f->send.flow, 300));
    expect_sent(f, 1000, 250, 50, true);
    end(f);
}

/* ---- ways in ---- */

static void reserve_and_commit_write_in_place(void **state)
{
    fixture *f = begin(1000, 1000);
    leat_mspan a, b;

    (void)state;
    assert_int_equal(leat_stream_send_reserve(&f->send, 100, &a), LEAT_OK);
    assert_int_equal(a.len, 100);
    rig_fill(a.data, SEED, 0, 60);
    leat_stream_send_commit(&f->send, 60);
    assert_int_equal(leat_stream_send_reserve(&f->send, 40, &b), LEAT_OK);
    assert_ptr_equal(b.data, a.data + 60); /* into the partly filled buffer */
    rig_fill(b.data, SEED, 60, b.len);
    leat_stream_send_commit(&f->send, b.len);
    leat_stream_send_check(&f->send);
    expect_sent(f, 1000, 0, 100, false);
    acked(f, 0, 100, false);
    assert_int_equal(f->rig.budget.used, 0);
    end(f);
}

static void a_reserved_span_outlives_a_reset(void **state)
{
    fixture *f = begin(1000, 1000);
    leat_mspan span;

    (void)state;
    put(f, 10);
    assert_int_equal(leat_stream_send_reserve(&f->send, 100, &span), LEAT_OK);
    assert_true(leat_stream_send_reset(&f->send, 9));
    memset(span.data, 'x', span.len); /* ASan would tell */
    leat_stream_send_commit(&f->send, span.len);
    assert_int_equal(f->rig.budget.used, 0);
    leat_stream_send_check(&f->send);
    end(f);
}

static void a_reservation_not_used_leaves_nothing(void **state)
{
    fixture *f = begin(1000, 1000);
    leat_mspan span;
    leat_buf buf;

    (void)state;
    assert_int_equal(leat_stream_send_reserve(&f->send, 100, &span), LEAT_OK);
    leat_stream_send_commit(&f->send, 0);
    assert_int_equal(f->rig.budget.used, 0);
    assert_int_equal(leat_stream_send_reserve(&f->send, 100, &span), LEAT_OK);
    buf = rig_packet(&f->rig, SEED, 0, 50);
    assert_int_equal(leat_stream_send_append(&f->send, &buf), LEAT_OK); /* voids it */
    leat_stream_send_check(&f->send);
    assert_int_equal(f->rig.budget.used, 50);
    assert_int_equal(leat_stream_send_reserve(&f->send, 0, &span), LEAT_ERR_INVALID);
    end(f);
}

static void a_buffer_is_taken_by_reference(void **state)
{
    fixture *f = begin(1 << 20, 1000);
    leat_buf buf = rig_packet(&f->rig, SEED, 0, 600);
    const uint8_t *bytes = buf.data;
    leat_span span;

    (void)state;
    assert_int_equal(leat_stream_send_append(&f->send, &buf), LEAT_OK);
    assert_null(buf.block);
    span = leat_stream_send_span(&f->send, 100, 1000);
    assert_ptr_equal(span.data, bytes + 100);
    assert_int_equal(span.len, 500);
    put(f, 300);
    expect_sent(f, 1000, 0, 900, false); /* across both */
    buf = rig_packet(&f->rig, SEED, 900, 101);
    assert_int_equal(leat_stream_send_append(&f->send, &buf), LEAT_ERR_BLOCKED);
    assert_non_null(buf.block);
    leat_buf_release(&buf);
    acked(f, 0, 900, false);
    buf = rig_packet(&f->rig, SEED, 900, 5000); /* larger than the whole, but it is alone */
    assert_int_equal(leat_stream_send_append(&f->send, &buf), LEAT_OK);
    assert_int_equal(leat_stream_send_writable(&f->send), 0);
    buf = (leat_buf){0};
    assert_int_equal(leat_stream_send_append(&f->send, &buf), LEAT_OK);
    end(f);
}

static void a_short_stream_takes_little_memory(void **state)
{
    fixture *f = begin(1000, 1 << 20);

    (void)state;
    put(f, 100);
    assert_true(f->rig.budget.used <= 256);
    assert_int_equal(leat_stream_send_finish(&f->send), LEAT_OK);
    assert_int_equal(f->rig.budget.used, 100);
    assert_null(f->send.ring);
    end(f);
}

/* What a chunk keeps from everybody else stays charged, also where but a few bytes of it are used:
 * small pieces, copied and by reference in turn, once held ten times the budget. */
static void what_cannot_be_given_back_stays_charged(void **state)
{
    fixture *f = begin(1 << 20, 1 << 20);
    leat_mem_stats before, stats;

    (void)state;
    put(f, 40000); /* so that chunks are large */
    leat_mem_stats_get(f->rig.mem, &before);
    for (int i = 0; i < 1000; i++) {
        uint8_t piece[3];
        leat_buf buf;
        size_t n;

        rig_fill(piece, SEED, f->send.end, sizeof piece);
        assert_int_equal(leat_stream_send_write(&f->send, piece, sizeof piece, &n), LEAT_OK);
        assert_int_equal(leat_buf_take(f->rig.mem, sizeof piece, &buf), LEAT_OK);
        rig_fill(buf.data, SEED, f->send.end, buf.len);
        assert_int_equal(leat_stream_send_append(&f->send, &buf), LEAT_OK);
    }
    leat_mem_stats_get(f->rig.mem, &stats);
    assert_true(stats.buf_pinned - before.buf_pinned <= 2 * f->rig.budget.used);
    end(f);
}

/* ---- back-pressure ---- */

static void a_full_buffer_holds_back_until_half_is_free(void **state)
{
    fixture *f = begin(1 << 20, 1000);
    uint8_t bytes[2000];
    size_t n;

    (void)state;
    rig_fill(bytes, SEED, 0, sizeof bytes);
    assert_int_equal(leat_stream_send_write(&f->send, bytes, 600, &n), LEAT_OK);
    assert_false(leat_stream_send_take_writable(&f->send)); /* nobody was held back */
    assert_int_equal(leat_stream_send_write(&f->send, bytes + 600, 1400, &n), LEAT_OK);
    assert_int_equal(n, 400);
    assert_int_equal(leat_stream_send_write(&f->send, bytes, 1, &n), LEAT_ERR_BLOCKED);
    expect_sent(f, 2000, 0, 1000, false);
    acked(f, 0, 499, false);
    assert_false(leat_stream_send_take_writable(&f->send));
    acked(f, 499, 1, false);
    assert_true(leat_stream_send_take_writable(&f->send));
    assert_false(leat_stream_send_take_writable(&f->send)); /* once */
    assert_int_equal(leat_stream_send_writable(&f->send), 500);
    end(f);
}

static void the_budget_holds_back_too(void **state)
{
    fixture *f = begin(1 << 20, 1 << 20);
    uint8_t bytes[4096];
    size_t n, total = 0;

    (void)state;
    f->rig.budget.limit = 3000;
    rig_fill(bytes, SEED, 0, sizeof bytes);
    while (leat_stream_send_write(&f->send, bytes, 100, &n) == LEAT_OK) {
        total += n;
    }
    assert_true(total > 1000);
    assert_true(f->rig.budget.high <= 3000);
    assert_int_equal(leat_stream_send_write(&f->send, bytes, 1, &n), LEAT_ERR_BLOCKED);
    leat_stream_send_check(&f->send);
    f->rig.budget.limit = 100;
    assert_true(leat_stream_send_reset(&f->send, 0));
    leat_stream_send_free(&f->send);
    leat_stream_send_init(&f->send, &f->rig.env, 1000, 1000);
    /* With nothing in flight no acknowledgement will ever make room. */
    assert_int_equal(leat_stream_send_write(&f->send, bytes, 1, &n), LEAT_ERR_NOMEM);
    end(f);
}

static void every_refusal_of_memory_leaves_a_whole_stream(void **state)
{
    for (uint64_t nth = 1;; nth++) {
        fixture *f = begin(1 << 20, 1 << 20);
        uint64_t faults;
        size_t n;

        leat_mem_fault_set(f->rig.mem, LEAT_MEM_FAULT_TAKE, nth, false);
        for (unsigned i = 0; i < 40; i++) {
            uint8_t bytes[3000];

            rig_fill(bytes, SEED, f->send.end, sizeof bytes);
            (void)leat_stream_send_write(&f->send, bytes, sizeof bytes, &n);
            leat_stream_send_check(&f->send);
        }
        faults = leat_mem_fault_count(f->rig.mem);
        leat_mem_fault_set(f->rig.mem, LEAT_MEM_FAULT_NONE, 0, false);
        assert_true(f->send.end > 0);
        expect_sent(f, 1 << 20, 0, (size_t)f->send.end, false);
        end(f);
        if (faults == 0) {
            assert_true(nth > 3);
            break;
        }
    }
    (void)state;
}

static void a_crypto_stream_needs_no_credit(void **state)
{
    rig r;
    leat_stream_send send;
    leat_send_part part;
    uint8_t bytes[3000] = {1};
    size_t n;

    (void)state;
    rig_init(&r, 0);
    leat_stream_send_init_crypto(&send, &r.env, 65536, 0);
    assert_int_equal(leat_stream_send_write(&send, bytes, sizeof bytes, &n), LEAT_OK);
    assert_true(r.budget.by[LEAT_BUDGET_CRYPTO] >= 3000);
    assert_int_equal(r.budget.by[LEAT_BUDGET_STREAM_SEND], 0);
    assert_true(leat_stream_send_next(&send, 1200, NULL, &part));
    assert_int_equal(part.len, 1200);
    leat_stream_send_sent(&send, &part, NULL);
    leat_stream_send_on_acked(&send, 0, 1200, false);
    leat_stream_send_check(&send);
    leat_stream_send_free(&send);
    rig_free(&r);
}

static void a_crypto_stream_goes_on_where_it_stopped(void **state)
{
    rig r;
    leat_stream_send send;
    leat_send_part part;
    uint8_t bytes[300] = {1};
    size_t n;

    (void)state;
    rig_init(&r, 0);
    leat_stream_send_init_crypto(&send, &r.env, 65536, 5000);
    leat_stream_send_check(&send);
    assert_true(leat_stream_send_is_empty(&send));
    assert_int_equal(leat_stream_send_write(&send, bytes, sizeof bytes, &n), LEAT_OK);
    assert_false(leat_stream_send_is_empty(&send));
    assert_true(leat_stream_send_next(&send, 1200, NULL, &part));
    assert_int_equal(part.offset, 5000);
    leat_stream_send_sent(&send, &part, NULL);
    leat_stream_send_on_acked(&send, 4000, 1000, false); /* of an older copy */
    assert_false(leat_stream_send_is_empty(&send));
    leat_stream_send_on_acked(&send, 5000, 300, false);
    assert_true(leat_stream_send_is_empty(&send));
    leat_stream_send_check(&send);
    leat_stream_send_free(&send);
    rig_free(&r);
}

/* ---- against a model ---- */

#define MODEL_SIZE   60000u
#define MODEL_FLIGHT 400u

enum byte_state { NOT_SENT, IN_FLIGHT, ACKED };

typedef struct model {
    fixture *f;
    leat_prng prng;
    uint8_t *bytes; /* enum byte_state */
    leat_send_part flight[MODEL_FLIGHT];
    size_t in_flight;
    bool fin_acked;
} model;

static void model_write(model *m)
{
    uint64_t left = MODEL_SIZE - m->f->send.end;
    size_t want = (size_t)leat_prng_below(&m->prng, left < 5000 ? left + 1 : 5000);
    uint8_t bytes[5000];
    leat_mspan span;
    leat_buf buf;
    size_t n;

    if (want == 0) {
        return;
    }
    rig_fill(bytes, SEED, m->f->send.end, want);
    switch (leat_prng_below(&m->prng, 3)) {
    case 0:
        (void)leat_stream_send_write(&m->f->send, bytes, want, &n);
        break;
    case 1:
        buf = rig_packet(&m->f->rig, SEED, m->f->send.end, want);
        if (leat_stream_send_append(&m->f->send, &buf) != LEAT_OK) {
            leat_buf_release(&buf);
        }
        break;
    default:
        if (leat_stream_send_reserve(&m->f->send, want, &span) == LEAT_OK) {
            n = (size_t)leat_prng_below(&m->prng, span.len + 1);
            memcpy(span.data, bytes, n);
            leat_stream_send_commit(&m->f->send, n);
        }
    }
}

static void model_send(model *m)
{
    size_t max = (size_t)leat_prng_between(&m->prng, 1, 1300);
    leat_send_part *part = &m->flight[m->in_flight];
    uint8_t bytes[1300];

    if (m->in_flight == MODEL_FLIGHT ||
        !leat_stream_send_next(&m->f->send, max, &m->f->conn, part)) {
        return;
    }
    assert_true(part->len <= max);
    assert_true(part->len > 0 || part->fin);
    leat_stream_send_copy(&m->f->send, part->offset, part->len, bytes);
    rig_expect(bytes, SEED, part->offset, part->len);
    for (size_t i = 0; i < part->len; i++) {
        uint8_t *byte = &m->bytes[part->offset + i];

        assert_int_not_equal(*byte, ACKED); /* never again once it has arrived */
        assert_true((*byte == NOT_SENT) == !part->again);
        *byte = IN_FLIGHT;
    }
    leat_stream_send_sent(&m->f->send, part, &m->f->conn);
    m->in_flight++;
}

static void model_outcome(model *m)
{
    size_t i;
    leat_send_part part;

    if (m->in_flight == 0) {
        return;
    }
    i = leat_prng_chance(&m->prng, 1, 2) ? 0 : (size_t)leat_prng_below(&m->prng, m->in_flight);
    part = m->flight[i];
    if (leat_prng_chance(&m->prng, 1, 5)) {
        /* A probe or a loss found spurious later: the record stays, and is told again. */
        leat_stream_send_on_lost(&m->f->send, part.offset, part.len, part.fin);
        return;
    }
    memmove(&m->flight[i], &m->flight[i + 1], (m->in_flight - i - 1) * sizeof part);
    m->in_flight--;
    if (leat_prng_chance(&m->prng, 1, 4)) {
        leat_stream_send_on_lost(&m->f->send, part.offset, part.len, part.fin);
        return;
    }
    leat_stream_send_on_acked(&m->f->send, part.offset, part.len, part.fin);
    memset(m->bytes + part.offset, ACKED, part.len);
    m->fin_acked = m->fin_acked || part.fin;
}

static void every_byte_is_sent_until_it_is_acknowledged(void **state)
{
    uint64_t seed = rig_seed("every_byte_is_sent_until_it_is_acknowledged", 1);

    (void)state;
    for (uint64_t run = 0; run < 60; run++) {
        model m = {.f = begin(MODEL_SIZE / 2, 20000)};
        uint64_t base = 0;

        leat_prng_seed(&m.prng, seed + run);
        m.bytes = calloc(1, MODEL_SIZE);
        assert_non_null(m.bytes);
        while (m.f->send.state != LEAT_SEND_DATA_RECVD) {
            model_write(&m);
            for (uint64_t i = leat_prng_below(&m.prng, 8); i > 0; i--) {
                model_send(&m);
                leat_stream_send_check(&m.f->send);
            }
            for (uint64_t i = leat_prng_below(&m.prng, 8); i > 0; i--) {
                model_outcome(&m);
                leat_stream_send_check(&m.f->send);
            }
            while (base < m.f->send.end && m.bytes[base] == ACKED) {
                base++;
            }
            assert_int_equal(m.f->send.base, base); /* freed what can be, no more */
            leat_flow_out_raise(&m.f->send.flow,
                                m.f->send.flow.limit + leat_prng_below(&m.prng, 300));
            if (m.f->send.end == MODEL_SIZE && !m.f->send.fin) {
                assert_int_equal(leat_stream_send_finish(&m.f->send), LEAT_OK);
            }
        }
        assert_true(m.fin_acked);
        assert_int_equal(base, MODEL_SIZE);
        assert_int_equal(m.f->rig.budget.used, 0);
        free(m.bytes);
        end(m.f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_run_from_ready_to_data_recvd),
        cmocka_unit_test(an_empty_stream_is_a_bare_fin),
        cmocka_unit_test(fin_after_the_last_byte_was_sent_goes_alone),
        cmocka_unit_test(reset_frees_everything_at_once_and_ends_when_acknowledged),
        cmocka_unit_test(writing_after_the_end_is_refused),
        cmocka_unit_test(new_bytes_need_stream_and_connection_credit),
        cmocka_unit_test(sending_again_needs_no_credit),
        cmocka_unit_test(lost_bytes_go_before_new_ones),
        cmocka_unit_test(what_arrived_after_all_is_not_sent_again),
        cmocka_unit_test(what_arrives_late_reaches_over_pieces_that_arrived),
        cmocka_unit_test(loss_of_what_was_acknowledged_by_another_copy_is_nothing),
        cmocka_unit_test(a_fin_that_arrived_is_not_sent_again),
        cmocka_unit_test(in_order_acks_keep_no_ranges),
        cmocka_unit_test(nothing_is_forgotten_when_ranges_cannot_grow),
        cmocka_unit_test(after_rejected_early_data_all_is_sent_anew),
        cmocka_unit_test(reserve_and_commit_write_in_place),
        cmocka_unit_test(a_reserved_span_outlives_a_reset),
        cmocka_unit_test(a_reservation_not_used_leaves_nothing),
        cmocka_unit_test(a_buffer_is_taken_by_reference),
        cmocka_unit_test(a_short_stream_takes_little_memory),
        cmocka_unit_test(a_full_buffer_holds_back_until_half_is_free),
        cmocka_unit_test(what_cannot_be_given_back_stays_charged),
        cmocka_unit_test(the_budget_holds_back_too),
        cmocka_unit_test(every_refusal_of_memory_leaves_a_whole_stream),
        cmocka_unit_test(a_crypto_stream_needs_no_credit),
        cmocka_unit_test(a_crypto_stream_goes_on_where_it_stopped),
        cmocka_unit_test(every_byte_is_sent_until_it_is_acknowledged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
