/* conn/frames.c: what each frame of an opened packet does.
 *
 * leat_frame_decode() has checked the syntax; the frame table of wire/frames.h says in which
 * packets a frame may come. Each frame has one handler here, bound by name through that same table,
 * so that a frame without a handler does not compile. A handler returns LEAT_TE_NO_ERROR or the
 * error to close with.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/conn.h"

#include <string.h>

#include "conn/migrate.h"
#include "conn/trace.h"
#include "stream/input.h"

static uint64_t on_padding(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    (void)conn, (void)in, (void)frame;
    return LEAT_TE_NO_ERROR;
}

static uint64_t on_ping(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    (void)conn, (void)in, (void)frame;
    return LEAT_TE_NO_ERROR;
}

static uint64_t on_ack(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    return leat_conn_on_ack(conn, in, &frame->ack);
}

static uint64_t on_reset_stream(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    const leat_frame_reset_stream *f = &frame->reset_stream;

    (void)in;
    return leat_streams_on_reset_stream(&conn->streams, f->stream_id, f->error, f->final_size);
}

static uint64_t on_reset_stream_at(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    const leat_frame_reset_stream_at *f = &frame->reset_stream_at;

    (void)in;
    if (conn->settings->disable_reset_stream_at) {
        return LEAT_TE_PROTOCOL_VIOLATION; /* it was not offered */
    }
    return leat_streams_on_reset_stream_at(&conn->streams, f->stream_id, f->error, f->final_size,
                                           f->reliable_size);
}

static uint64_t on_stop_sending(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    (void)in;
    return leat_streams_on_stop_sending(&conn->streams, frame->stop_sending.stream_id,
                                        frame->stop_sending.error);
}

/* Frame data as a buffer on the packet's block: it borrows the packet's reference. */
static leat_buf view(const leat_packet_in *in, leat_span data)
{
    return (leat_buf){
        .data = (uint8_t *)(uintptr_t)data.data, .len = data.len, .block = in->buf->block};
}

static uint64_t on_crypto(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    leat_crypto *crypto = leat_conn_crypto(conn, in->pn);
    leat_buf data = view(in, frame->crypto.data);
    unsigned news = 0;
    uint64_t error;

    if (!crypto) {
        return LEAT_TE_INTERNAL_ERROR;
    }
    if (frame->crypto.offset + data.len <= crypto->recv.flow.consumed) {
        leat_conn_on_crypto_again(conn);
    } else if (leat_conn_crypto_is_over(conn, in->pn)) {
        return LEAT_TE_PROTOCOL_VIOLATION; /* RFC 9001 s4.1.3 */
    }
    error =
        leat_stream_recv_on_data(&crypto->recv, frame->crypto.offset, &data, false, NULL, &news);
    if (error == LEAT_TE_NO_ERROR && (news & LEAT_RECV_READABLE)) {
        error = leat_conn_on_crypto(conn, in->pn);
    }
    return error;
}

/* What the application gets to keep begins with the version that the token is good for (RFC 9369
 * s5).
 */
static leat_buf token_to_tell(leat_conn *conn, leat_span token)
{
    uint8_t room[LEAT_TOKEN_VERSION + LEAT_TOKEN_MAX];

    leat_store_u32(room, conn->version);
    memcpy(room + LEAT_TOKEN_VERSION, token.data, token.len);
    return leat_conn_keep(conn, room, LEAT_TOKEN_VERSION + token.len);
}

static uint64_t on_new_token(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    leat_span token = frame->new_token.token;

    (void)in;
    if (conn->is_server) {
        return LEAT_TE_PROTOCOL_VIOLATION; /* RFC 9000 s19.7 */
    }
    if (token.len <= LEAT_TOKEN_MAX) {
        leat_buf_release(&conn->new_token);
        conn->new_token = token_to_tell(conn, token);
        leat_conn_tell(conn, LEAT_CONN_TELL_TOKEN);
    }
    return LEAT_TE_NO_ERROR;
}

static uint64_t on_stream(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    const leat_frame_stream *f = &frame->stream;
    leat_buf data = view(in, f->data);

    return leat_streams_on_stream(&conn->streams, f->stream_id, f->offset, &data, f->fin);
}

static uint64_t on_max_data(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    (void)in;
    return leat_streams_on_max_data(&conn->streams, frame->max_data.max);
}

static uint64_t on_max_stream_data(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    (void)in;
    return leat_streams_on_max_stream_data(&conn->streams, frame->max_stream_data.stream_id,
                                           frame->max_stream_data.max);
}

static uint64_t on_max_streams(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    (void)in;
    return leat_streams_on_max_streams(&conn->streams, frame->max_streams.bidi,
                                       frame->max_streams.max);
}

static uint64_t on_data_blocked(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    (void)in;
    return leat_streams_on_data_blocked(&conn->streams, frame->data_blocked.limit);
}

static uint64_t on_stream_data_blocked(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    (void)in;
    return leat_streams_on_stream_data_blocked(&conn->streams, frame->stream_data_blocked.stream_id,
                                               frame->stream_data_blocked.limit);
}

static uint64_t on_streams_blocked(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    (void)in;
    return leat_streams_on_streams_blocked(&conn->streams, frame->streams_blocked.bidi,
                                           frame->streams_blocked.limit);
}

static uint64_t on_new_connection_id(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    leat_conn_host *host = conn->host;
    leat_cids_change change;
    leat_cid before = *leat_remote_cids_current(&conn->remote_cids);
    uint64_t error = leat_remote_cids_add(&conn->remote_cids, &frame->new_connection_id, &change);

    (void)in;
    for (uint8_t i = 0; i < change.dropped_count; i++) {
        host->ops->reset_remove(host, conn, change.dropped[i]);
    }
    if (error == LEAT_TE_NO_ERROR && change.taken) {
        leat_trace_cid(conn, &before, &change.taken->cid);
        leat_conn_heed_reset(conn, change.taken);
    }
    return error;
}

static uint64_t on_retire_connection_id(leat_conn *conn, leat_packet_in *in,
                                        const leat_frame *frame)
{
    leat_cid retired;
    uint64_t error;

    if (in->type == LEAT_PACKET_ZERO_RTT) {
        return LEAT_TE_PROTOCOL_VIOLATION; /* nobody has got an ID to retire yet (RFC 9000 s12.5) */
    }
    error = leat_local_cids_retire(&conn->local_cids, frame->retire_connection_id.sequence,
                                   in->dcid, &retired);

    if (error == LEAT_TE_NO_ERROR && retired.len > 0) {
        leat_conn_remove_local_cid(conn, &retired);
        leat_conn_issue_cids(conn);
    }
    return error;
}

static uint64_t on_path_challenge(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    leat_migrate_on_challenge(conn, in, frame->path_challenge.data);
    return LEAT_TE_NO_ERROR;
}

/* An answer to no challenge is ignored (RFC 9000 s19.18 allows it). */
static uint64_t on_path_response(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    (void)in;
    leat_migrate_on_response(conn, frame->path_response.data);
    return LEAT_TE_NO_ERROR;
}

static uint64_t on_connection_close(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    leat_conn_on_close(conn, &frame->connection_close, in->buf);
    return LEAT_TE_NO_ERROR;
}

static uint64_t on_handshake_done(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    (void)in, (void)frame;
    return leat_conn_on_handshake_done(conn);
}

static uint64_t on_immediate_ack(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    (void)frame;
    if (conn->ackfreq.own_min == 0) {
        return LEAT_TE_PROTOCOL_VIOLATION;
    }
    in->ack_now = true;
    return LEAT_TE_NO_ERROR;
}

static uint64_t on_ack_frequency(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    return leat_ackfreq_received(&conn->ackfreq, &frame->ack_frequency, &in->pn->acks);
}

static uint64_t on_datagram(leat_conn *conn, leat_packet_in *in, const leat_frame *frame)
{
    (void)in;
    return leat_conn_on_datagram(conn, frame);
}

typedef uint64_t frame_handler(leat_conn *conn, leat_packet_in *in, const leat_frame *frame);

#define HANDLER(kind, member, first, last, packets, props, name) on_##member,
static frame_handler *const handlers[LEAT_FRAME_KINDS] = {LEAT_FRAME_LIST(HANDLER)};
#undef HANDLER

static LEAT_SELDOM uint64_t fail(leat_conn *conn, uint64_t error, const leat_frame *frame,
                                 const char *detail)
{
    leat_conn_fail(conn, error, frame->code, detail);
    return error;
}

uint64_t leat_conn_on_payload(leat_conn *conn, leat_packet_in *in, leat_span payload)
{
    leat_cursor cursor;
    leat_frame frame;

    leat_cursor_init(&cursor, payload.data, payload.len);
    while (leat_cursor_left(&cursor) > 0) {
        uint64_t error = leat_frame_decode(&cursor, &frame);

        if (error != LEAT_TE_NO_ERROR) {
            return fail(conn, error, &frame, "a frame does not parse");
        }
        if (!leat_frame_allowed(frame.kind, in->type)) {
            return fail(conn, LEAT_TE_PROTOCOL_VIOLATION, &frame,
                        "a frame of this type is not allowed in this packet");
        }
        in->eliciting |= leat_frame_is_ack_eliciting(frame.kind);
        in->probing &= leat_frame_is_probing(frame.kind);
        if (leat_trace_on(conn)) {
            leat_trace_frame(conn, LEAT_EVENT_FRAME_RECEIVED, in->pn->space, &frame);
        }
        error = handlers[frame.kind](conn, in, &frame);
        if (error != LEAT_TE_NO_ERROR) {
            return fail(conn, error, &frame, NULL);
        }
        if (!leat_conn_is_open(conn)) {
            return LEAT_TE_NO_ERROR;
        }
    }
    return LEAT_TE_NO_ERROR;
}
