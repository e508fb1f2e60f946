/* conn/sentframes.c: what becomes of frames when their packet is acknowledged or lost. A record is
 * told once (recovery/sent.h); after the connection has ended it only lets go of what it points to.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/conn.h"

#include "conn/migrate.h"
#include "stream/output.h"

/* ACK: when the peer has it, older ranges need not be told again (RFC 9000 s13.2.4). A lost one is
 * not sent again: the next says more. */
static void ack_acked(void *ctx, const leat_sent_frame *frame)
{
    leat_pnspace *pn = frame->owner;

    (void)ctx;
    leat_acks_on_acked(&pn->acks, frame->value);
}

static void crypto_acked(void *ctx, const leat_sent_frame *frame)
{
    leat_pnspace *pn = frame->owner;

    (void)ctx;
    if (pn->crypto) { /* else all has arrived, and this is an older copy */
        leat_stream_send_on_acked(&pn->crypto->send, frame->value, frame->len, false);
    }
}

static void crypto_lost(void *ctx, const leat_sent_frame *frame)
{
    leat_pnspace *pn = frame->owner;

    (void)ctx;
    if (pn->crypto) {
        leat_stream_send_on_lost(&pn->crypto->send, frame->value, frame->len, false);
    }
}

static void stream_acked(void *ctx, const leat_sent_frame *frame)
{
    leat_conn *conn = ctx;

    if (leat_conn_is_open(conn)) {
        leat_streams_stream_acked(&conn->streams, frame->owner, frame->value, frame->len,
                                  frame->flags != 0);
    } else {
        leat_streams_record_dropped(&conn->streams, frame->owner);
    }
}

static void stream_lost(void *ctx, const leat_sent_frame *frame)
{
    leat_conn *conn = ctx;

    if (leat_conn_is_open(conn)) {
        leat_streams_stream_lost(&conn->streams, frame->owner, frame->value, frame->len,
                                 frame->flags != 0);
    } else {
        leat_streams_record_dropped(&conn->streams, frame->owner);
    }
}

static void control_acked(void *ctx, const leat_sent_frame *frame)
{
    leat_conn *conn = ctx;

    if (leat_conn_is_open(conn)) {
        leat_streams_control_acked(&conn->streams, frame->owner, (leat_control)frame->flags,
                                   frame->value);
    } else if (frame->owner) {
        leat_streams_record_dropped(&conn->streams, frame->owner);
    }
}

static void control_lost(void *ctx, const leat_sent_frame *frame)
{
    leat_conn *conn = ctx;

    if (leat_conn_is_open(conn)) {
        leat_streams_control_lost(&conn->streams, frame->owner, (leat_control)frame->flags,
                                  frame->value);
    } else if (frame->owner) {
        leat_streams_record_dropped(&conn->streams, frame->owner);
    }
}

static void new_cid_lost(void *ctx, const leat_sent_frame *frame)
{
    leat_conn *conn = ctx;

    leat_local_cids_lost(&conn->local_cids, frame->value);
}

static void retire_cid_acked(void *ctx, const leat_sent_frame *frame)
{
    leat_conn *conn = ctx;

    leat_remote_cids_retire_acked(&conn->remote_cids, frame->value);
    leat_migrate_retire_cids(conn); /* others may have waited for room */
}

static void retire_cid_lost(void *ctx, const leat_sent_frame *frame)
{
    leat_conn *conn = ctx;

    leat_remote_cids_retire_lost(&conn->remote_cids, frame->value);
}

static void handshake_done_lost(void *ctx, const leat_sent_frame *frame)
{
    leat_conn *conn = ctx;

    (void)frame;
    conn->pending |= LEAT_CONN_SEND_HANDSHAKE_DONE;
}

uint64_t leat_conn_token_mark(const leat_conn *conn)
{
    const leat_buf *token = &conn->new_token; /* it ends in an authentication tag */

    return token->len >= 8 ? leat_load_u64(token->data + token->len - 8) : 0;
}

static void new_token_acked(void *ctx, const leat_sent_frame *frame)
{
    leat_conn *conn = ctx;

    if (frame->value == leat_conn_token_mark(conn)) {
        leat_buf_release(&conn->new_token);
        conn->pending &= (uint8_t)~LEAT_CONN_SEND_NEW_TOKEN;
    }
}

static void new_token_lost(void *ctx, const leat_sent_frame *frame)
{
    leat_conn *conn = ctx;

    if (conn->new_token.len > 0 && frame->value == leat_conn_token_mark(conn)) {
        conn->pending |= LEAT_CONN_SEND_NEW_TOKEN;
    }
}

/* A probe of a path that was left says nothing about this one. */
static bool is_of_active_path(const leat_conn *conn, const leat_sent_frame *frame)
{
    return frame->flags == leat_paths_active_const(&conn->paths)->number;
}

static void probe_acked(void *ctx, const leat_sent_frame *frame)
{
    leat_conn *conn = ctx;

    if (is_of_active_path(conn, frame) && leat_mtu_probe_acked(&conn->mtu, (uint16_t)frame->len)) {
        leat_conn_on_mtu(conn);
    }
}

static void probe_lost(void *ctx, const leat_sent_frame *frame)
{
    leat_conn *conn = ctx;

    if (is_of_active_path(conn, frame)) {
        leat_mtu_probe_lost(&conn->mtu);
    }
}

static void ack_frequency_acked(void *ctx, const leat_sent_frame *frame)
{
    leat_conn *conn = ctx;

    if (leat_ackfreq_is_newest(&conn->ackfreq, frame->value)) {
        conn->loss.max_ack_delay = conn->ackfreq.delay;
    }
}

static void ack_frequency_lost(void *ctx, const leat_sent_frame *frame)
{
    leat_conn *conn = ctx;

    conn->ackfreq.pending |= leat_ackfreq_is_newest(&conn->ackfreq, frame->value);
}

static void datagram_acked(void *ctx, const leat_sent_frame *frame)
{
    leat_conn_datagram_done(ctx, frame, true);
}

static void datagram_lost(void *ctx, const leat_sent_frame *frame)
{
    leat_conn_datagram_done(ctx, frame, false);
}

const leat_frame_ops leat_conn_frame_ops[LEAT_RECORD_KINDS] = {
    [LEAT_RECORD_ACK] = {ack_acked, NULL},
    [LEAT_RECORD_CRYPTO] = {crypto_acked, crypto_lost},
    [LEAT_RECORD_STREAM] = {stream_acked, stream_lost},
    [LEAT_RECORD_CONTROL] = {control_acked, control_lost},
    [LEAT_RECORD_NEW_CID] = {NULL, new_cid_lost},
    [LEAT_RECORD_RETIRE_CID] = {retire_cid_acked, retire_cid_lost},
    [LEAT_RECORD_HANDSHAKE_DONE] = {NULL, handshake_done_lost},
    [LEAT_RECORD_NEW_TOKEN] = {new_token_acked, new_token_lost},
    [LEAT_RECORD_PROBE] = {probe_acked, probe_lost},
    [LEAT_RECORD_ACK_FREQUENCY] = {ack_frequency_acked, ack_frequency_lost},
    [LEAT_RECORD_DATAGRAM] = {datagram_acked, datagram_lost},
};
