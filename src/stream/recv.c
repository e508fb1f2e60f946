/* stream/recv.c: see recv.h. Checks come first and change nothing; then credit is counted, then the
 * state and the bytes follow.
 *
 * Invariants: flow.consumed is what was read, or all that was received once bytes are dropped as
 * they come (after stop or reset); held.front <= flow.received; from SIZE_KNOWN on flow.received <=
 * final_size.
 *
 * In RESET_AT all of final_size counts as received and what lies above read_to as consumed; nothing
 * above read_to is held. read_to is the peer's reliable size, or the end of what could be read when
 * the frame came: the application may hold a span of it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stream/recv.h"

#include <string.h>

#include <leat/limits.h>
#include <leat/transport_error.h>

void leat_stream_recv_init_none(leat_stream_recv *recv)
{
    memset(recv, 0, sizeof *recv);
}

void leat_stream_recv_init(leat_stream_recv *recv, leat_stream_env *env, uint64_t window,
                           uint64_t window_max, uint32_t gaps_max)
{
    leat_flow_in_init(&recv->flow, window, window_max);
    leat_reassembly_init(&recv->held, env, LEAT_BUDGET_STREAM_RECV, gaps_max);
    recv->final_size = recv->reset_code = recv->read_to = 0;
    recv->state = LEAT_RECV_RECV;
    recv->crypto = recv->stopped = recv->reset_at = false;
}

void leat_stream_recv_init_crypto(leat_stream_recv *recv, leat_stream_env *env, size_t buffer_max,
                                  uint64_t offset)
{
    memset(recv, 0, sizeof *recv);
    recv->state = LEAT_RECV_RECV;
    recv->crypto = true;
    leat_flow_in_init(&recv->flow, buffer_max, 0);
    leat_reassembly_init(&recv->held, env, LEAT_BUDGET_CRYPTO, LEAT_STREAM_RECV_GAPS_DEFAULT);
    recv->flow.limit += offset;
    recv->flow.received = recv->flow.consumed = offset;
    recv->held.front = recv->held.read = offset;
}

void leat_stream_recv_free(leat_stream_recv *recv)
{
    if (recv->state != LEAT_RECV_NONE) {
        leat_reassembly_clear(&recv->held);
        recv->state = LEAT_RECV_NONE;
    }
}

/* ---- frames ---- */

/* Checks an end offset, or with fin a final size, against what is known (RFC 9000 §4.5). */
static uint64_t check_size(const leat_stream_recv *recv, uint64_t end, bool fin)
{
    if (recv->state != LEAT_RECV_RECV) {
        if (end > recv->final_size || (fin && end != recv->final_size)) {
            return LEAT_TE_FINAL_SIZE_ERROR;
        }
    } else if (fin && end < recv->flow.received) {
        return LEAT_TE_FINAL_SIZE_ERROR;
    }
    return 0;
}

/* Counts bytes up to end, on the stream and on the connection. */
static uint64_t use_credit(leat_stream_recv *recv, uint64_t end, leat_flow_in *conn)
{
    uint64_t more;

    if (end <= recv->flow.received) {
        return 0;
    }
    more = end - recv->flow.received;
    if (!leat_flow_in_receive(&recv->flow, more)) {
        return recv->crypto ? LEAT_TE_CRYPTO_BUFFER_EXCEEDED : LEAT_TE_FLOW_CONTROL_ERROR;
    }
    if (conn && !leat_flow_in_receive(conn, more)) {
        return LEAT_TE_FLOW_CONTROL_ERROR;
    }
    return 0;
}

static void consume_credit(leat_stream_recv *recv, uint64_t n, leat_flow_in *conn)
{
    leat_flow_in_consume(&recv->flow, n);
    if (conn) {
        leat_flow_in_consume(conn, n);
    }
    if (recv->crypto) {
        leat_flow_in_update(&recv->flow, 0, 0, 0);
    }
}

/* Nothing of what was received will be read: its credit comes back. */
static void give_up(leat_stream_recv *recv, leat_flow_in *conn)
{
    consume_credit(recv, recv->flow.received - recv->flow.consumed, conn);
}

static bool takes_data(const leat_stream_recv *recv)
{
    return recv->state == LEAT_RECV_RECV || recv->state == LEAT_RECV_SIZE_KNOWN ||
           recv->state == LEAT_RECV_RESET_AT;
}

/* Takes in what of the frame is of use. */
static leat_err hold(leat_stream_recv *recv, uint64_t offset, const leat_buf *data)
{
    leat_buf part = *data;

    if (recv->state == LEAT_RECV_RESET_AT) {
        if (offset >= recv->read_to) {
            return LEAT_OK;
        }
        if (part.len > recv->read_to - offset) {
            part.len = (size_t)(recv->read_to - offset);
        }
    }
    return leat_reassembly_insert(&recv->held, offset, &part);
}

/* The front may have reached the end. */
static void note_progress(leat_stream_recv *recv, uint64_t front_before, unsigned *news)
{
    if (recv->held.front > front_before) {
        *news |= LEAT_RECV_READABLE;
    }
    if (recv->state == LEAT_RECV_SIZE_KNOWN && recv->held.front == recv->final_size) {
        bool all_read = recv->flow.consumed == recv->final_size;

        recv->state = all_read ? LEAT_RECV_DATA_READ : LEAT_RECV_DATA_RECVD;
        *news |= LEAT_RECV_READABLE;
    }
}

uint64_t leat_stream_recv_on_data(leat_stream_recv *recv, uint64_t offset, const leat_buf *data,
                                  bool fin, leat_flow_in *conn, unsigned *news)
{
    uint64_t end = offset + data->len;
    uint64_t front = recv->held.front;
    uint64_t code;
    leat_err err;

    LEAT_ASSERT(recv->state != LEAT_RECV_NONE);
    if (offset > LEAT_STREAM_OFFSET_MAX || data->len > LEAT_STREAM_OFFSET_MAX - offset) {
        return LEAT_TE_FRAME_ENCODING_ERROR;
    }
    code = check_size(recv, end, fin);
    if (code == 0) {
        code = use_credit(recv, end, conn);
    }
    if (code != 0) {
        return code;
    }
    if (!takes_data(recv)) {
        return 0;
    }
    if (fin && recv->state == LEAT_RECV_RECV) {
        recv->state = LEAT_RECV_SIZE_KNOWN;
        recv->final_size = end;
    }
    if (recv->stopped) {
        give_up(recv, conn);
        if (recv->state == LEAT_RECV_SIZE_KNOWN) {
            recv->state = LEAT_RECV_DATA_READ;
        }
        return 0;
    }
    err = hold(recv, offset, data);
    if (err != LEAT_OK) {
        return LEAT_TE_INTERNAL_ERROR;
    }
    note_progress(recv, front, news);
    return 0;
}

/* The checks that both kinds of reset have; credit for all of final_size is used. */
static uint64_t check_reset(leat_stream_recv *recv, uint64_t reset_code, uint64_t final_size,
                            leat_flow_in *conn)
{
    uint64_t code = check_size(recv, final_size, true);

    LEAT_ASSERT(recv->state != LEAT_RECV_NONE);
    LEAT_ASSERT(!recv->crypto);
    if (code == 0 && recv->reset_at && reset_code != recv->reset_code) {
        code = LEAT_TE_STREAM_STATE_ERROR;
    }
    return code != 0 ? code : use_credit(recv, final_size, conn);
}

static void end_by_reset(leat_stream_recv *recv, leat_flow_in *conn, unsigned *news)
{
    give_up(recv, conn);
    recv->state = recv->stopped ? LEAT_RECV_RESET_READ : LEAT_RECV_RESET_RECVD;
    if (!recv->stopped) {
        *news |= LEAT_RECV_RESET;
    }
}

uint64_t leat_stream_recv_on_reset(leat_stream_recv *recv, uint64_t reset_code, uint64_t final_size,
                                   leat_flow_in *conn, unsigned *news)
{
    uint64_t code = check_reset(recv, reset_code, final_size, conn);

    if (code != 0 || !takes_data(recv)) {
        return code;
    }
    recv->final_size = final_size;
    recv->reset_code = reset_code;
    end_by_reset(recv, conn, news);
    return 0;
}

uint64_t leat_stream_recv_on_reset_at(leat_stream_recv *recv, uint64_t reset_code,
                                      uint64_t final_size, uint64_t reliable, leat_flow_in *conn,
                                      unsigned *news)
{
    uint64_t code = check_reset(recv, reset_code, final_size, conn);
    uint64_t read_to = reliable > recv->held.front ? reliable : recv->held.front;

    if (code != 0 || !takes_data(recv)) {
        return code;
    }
    recv->final_size = final_size;
    recv->reset_code = reset_code;
    recv->reset_at = true;
    if (recv->stopped) {
        end_by_reset(recv, conn, news);
        return 0;
    }
    if (recv->state != LEAT_RECV_RESET_AT) {
        recv->state = LEAT_RECV_RESET_AT;
        recv->read_to = final_size;
    }
    if (read_to < recv->read_to) {
        consume_credit(recv, recv->read_to - read_to, conn);
        recv->read_to = read_to;
        leat_reassembly_cut(&recv->held, read_to);
    }
    if (recv->held.read == recv->read_to) {
        end_by_reset(recv, conn, news);
    }
    return 0;
}

/* ---- reading ---- */

leat_span leat_stream_recv_peek(const leat_stream_recv *recv)
{
    if (recv->state >= LEAT_RECV_RESET_RECVD) {
        return (leat_span){0};
    }
    return leat_reassembly_peek(&recv->held);
}

leat_err leat_stream_recv_peek_buf(const leat_stream_recv *recv, leat_buf *out)
{
    if (recv->state >= LEAT_RECV_RESET_RECVD) {
        *out = (leat_buf){0};
        return LEAT_ERR_NOT_FOUND;
    }
    return leat_reassembly_peek_buf(&recv->held, out);
}

void leat_stream_recv_consume(leat_stream_recv *recv, uint64_t n, leat_flow_in *conn)
{
    if (n == 0 || recv->state >= LEAT_RECV_RESET_RECVD) {
        return;
    }
    leat_reassembly_consume(&recv->held, n);
    consume_credit(recv, n, conn);
    if (recv->state == LEAT_RECV_DATA_RECVD && recv->flow.consumed == recv->final_size) {
        recv->state = LEAT_RECV_DATA_READ;
    } else if (recv->state == LEAT_RECV_RESET_AT && recv->held.read == recv->read_to) {
        recv->state = LEAT_RECV_RESET_RECVD;
    }
}

void leat_stream_recv_reset_seen(leat_stream_recv *recv)
{
    if (recv->state == LEAT_RECV_RESET_RECVD) {
        recv->state = LEAT_RECV_RESET_READ;
        leat_reassembly_clear(&recv->held);
    }
}

bool leat_stream_recv_stop(leat_stream_recv *recv, leat_flow_in *conn)
{
    if (leat_stream_recv_ended(recv) || recv->stopped) {
        return false;
    }
    recv->stopped = true;
    leat_reassembly_clear(&recv->held);
    if (recv->state == LEAT_RECV_RESET_RECVD) {
        recv->state = LEAT_RECV_RESET_READ;
        return false;
    }
    give_up(recv, conn);
    if (recv->state == LEAT_RECV_RECV) {
        return true;
    }
    /* The final size is known: nothing more is needed of the peer, though it may not know. */
    recv->state = recv->state == LEAT_RECV_RESET_AT ? LEAT_RECV_RESET_READ : LEAT_RECV_DATA_READ;
    return false;
}

/* ---- walking ---- */

void leat_stream_recv_check(const leat_stream_recv *recv)
{
    if (recv->state == LEAT_RECV_NONE) {
        return;
    }
    leat_flow_in_check(&recv->flow);
    (void)leat_reassembly_check(&recv->held);
    LEAT_ASSERT(recv->held.front <= recv->flow.received);
    if (recv->state != LEAT_RECV_RECV) {
        LEAT_ASSERT(recv->flow.received <= recv->final_size);
    }
    if (recv->state == LEAT_RECV_RESET_AT) {
        LEAT_ASSERT(!recv->stopped);
        LEAT_ASSERT(recv->reset_at);
        LEAT_ASSERT(recv->flow.received == recv->final_size);
        LEAT_ASSERT(recv->held.read < recv->read_to);
        LEAT_ASSERT(recv->held.front <= recv->read_to);
        LEAT_ASSERT(leat_reassembly_end(&recv->held) <= recv->read_to);
        LEAT_ASSERT(recv->held.read + recv->final_size - recv->read_to == recv->flow.consumed);
    } else if (takes_data(recv) && !recv->stopped) {
        LEAT_ASSERT(recv->held.read == recv->flow.consumed);
    }
    if (recv->stopped || leat_stream_recv_ended(recv)) {
        LEAT_ASSERT(recv->held.first == NULL);
        LEAT_ASSERT(recv->held.run_count == 0);
        LEAT_ASSERT(recv->flow.consumed == recv->flow.received);
    }
    if (recv->state == LEAT_RECV_RESET_RECVD) {
        LEAT_ASSERT(recv->flow.consumed == recv->flow.received);
    }
}
