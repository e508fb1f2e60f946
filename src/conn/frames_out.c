/* conn/frames_out.c: which frames go into a packet, in which order: CRYPTO first, what keeps the
 * connection alive and its IDs fresh, flow control, and then datagrams and stream data until the
 * packet is full.
 *
 * Every record is added before its frame is written, so that a frame is never sent that nobody will
 * hear of.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/frames_out.h"

#include <string.h>

#include "base/assert.h"
#include "crypto/token.h"
#include "stream/output.h"

/* The most that a frame with four numbers takes: enough room to look for one more control frame.
 */
#define LEAT_CONTROL_ROOM 34

static bool record(leat_packet_out *out, leat_record_kind kind, void *owner, uint64_t value,
                   size_t len, unsigned flags)
{
    return leat_sent_add(&out->pn->sent, (uint8_t)kind, owner, value, (uint32_t)len,
                         (uint16_t)flags) == LEAT_OK;
}

static void wrote(leat_packet_out *out, bool fits)
{
    LEAT_ASSERT(fits); /* the room was looked at before the record was made */
    out->eliciting = true;
}

/* ---- ACK ---- */

void leat_frames_ack(leat_packet_out *out)
{
    leat_pnspace *pn = out->pn;
    const leat_ranges *ranges = leat_acks_ranges(&pn->acks);
    uint64_t delay =
        (leat_acks_delay(&pn->acks, out->now) / LEAT_MICROSECOND) >> LEAT_ACK_DELAY_EXPONENT;
    leat_ecn_counts ecn = {pn->acks.ect0, pn->acks.ect1, pn->acks.ce};

    if (leat_acks_is_empty(&pn->acks) || leat_writer_left(&out->w) < LEAT_FRAME_ACK_ONE_MAX ||
        !record(out, LEAT_RECORD_ACK, pn, leat_acks_expected(&pn->acks) - 1, 0, 0)) {
        return;
    }
    if (leat_frame_write_ack(&out->w, leat_ranges_all(ranges), leat_ranges_count(ranges),
                             LEAT_ACK_RANGES_WRITTEN_DEFAULT, delay,
                             leat_acks_has_ecn(&pn->acks) ? &ecn : NULL) > 0) {
        leat_acks_on_sent(&pn->acks);
    }
}

/* ---- CRYPTO ---- */

static LEAT_SELDOM void fill_crypto(leat_packet_out *out)
{
    leat_stream_send *send = out->pn->crypto ? &out->pn->crypto->send : NULL;
    leat_send_part part;

    while (send && leat_stream_send_next(send, leat_writer_left(&out->w), NULL, &part)) {
        leat_data_fit fit = leat_frame_fit_crypto(leat_writer_left(&out->w), part.offset, part.len);

        if (!fit.fits || fit.len == 0 ||
            !record(out, LEAT_RECORD_CRYPTO, out->pn, part.offset, fit.len, 0)) {
            return;
        }
        part.len = fit.len;
        leat_frame_write_crypto_head(&out->w, part.offset, &fit);
        leat_stream_send_copy(send, part.offset, part.len, leat_writer_room(&out->w, part.len));
        leat_stream_send_sent(send, &part, NULL);
        out->eliciting = true;
    }
}

/* ---- the connection's own frames ---- */

static LEAT_SELDOM void fill_pending(leat_packet_out *out)
{
    leat_conn *conn = out->conn;

    if ((conn->pending & LEAT_CONN_SEND_HANDSHAKE_DONE) && leat_writer_left(&out->w) >= 1 &&
        record(out, LEAT_RECORD_HANDSHAKE_DONE, NULL, 0, 0, 0)) {
        wrote(out, leat_frame_write_handshake_done(&out->w));
        conn->pending &= (uint8_t)~LEAT_CONN_SEND_HANDSHAKE_DONE;
    }
    if ((conn->pending & LEAT_CONN_SEND_NEW_TOKEN) &&
        leat_writer_left(&out->w) >= leat_frame_size_new_token(conn->new_token.len) &&
        record(out, LEAT_RECORD_NEW_TOKEN, NULL, leat_conn_token_mark(conn), 0, 0)) {
        wrote(out, leat_frame_write_new_token(
                       &out->w, (leat_span){conn->new_token.data, conn->new_token.len}));
        conn->pending &= (uint8_t)~LEAT_CONN_SEND_NEW_TOKEN;
    }
    if (conn->ackfreq.pending) {
        leat_frame_ack_frequency frame = leat_ackfreq_frame(&conn->ackfreq);

        if (leat_writer_left(&out->w) >= leat_frame_size_ack_frequency(&frame) &&
            record(out, LEAT_RECORD_ACK_FREQUENCY, NULL, frame.sequence, 0, 0)) {
            wrote(out, leat_frame_write_ack_frequency(&out->w, &frame));
            leat_ackfreq_sent(&conn->ackfreq);
            /* Until it is acknowledged the greater of both counts. */
            conn->loss.max_ack_delay = leat_time_max(conn->loss.max_ack_delay, conn->ackfreq.delay);
        }
    }
    if ((conn->pending & LEAT_CONN_SEND_PING) && leat_writer_left(&out->w) >= 1) {
        leat_frames_ping(out);
        conn->pending &= (uint8_t)~LEAT_CONN_SEND_PING;
    }
}

static LEAT_SELDOM void fill_cids(leat_packet_out *out)
{
    leat_conn *conn = out->conn;
    leat_local_cid *entry;
    leat_retiring *retiring;

    while ((entry = leat_local_cids_pending(&conn->local_cids)) != NULL) {
        leat_frame_new_connection_id frame = {.sequence = entry->sequence, .cid = entry->cid};

        if (leat_writer_left(&out->w) < leat_frame_size_new_connection_id(&frame) ||
            !record(out, LEAT_RECORD_NEW_CID, NULL, entry->sequence, 0, 0)) {
            return;
        }
        leat_reset_token(conn->host->reset_key, entry->cid.data, entry->cid.len, frame.reset_token);
        wrote(out, leat_frame_write_new_connection_id(&out->w, &frame));
        leat_local_cids_sent(&conn->local_cids, entry);
    }
    while ((retiring = leat_remote_cids_to_retire(&conn->remote_cids)) != NULL) {
        if (leat_writer_left(&out->w) < leat_frame_size_one(retiring->sequence) ||
            !record(out, LEAT_RECORD_RETIRE_CID, NULL, retiring->sequence, 0, 0)) {
            return;
        }
        wrote(out, leat_frame_write_retire_connection_id(&out->w, retiring->sequence));
        retiring->sent = true;
    }
}

/* ---- streams ---- */

static bool write_control(leat_writer *w, const leat_control_frame *frame)
{
    uint64_t id = frame->stream ? frame->stream->id : 0;

    switch (frame->what) {
    case LEAT_CONTROL_RESET_STREAM:
        return leat_frame_write_reset_stream(w, id, frame->value, frame->extra);
    case LEAT_CONTROL_RESET_STREAM_AT:
        return leat_frame_write_reset_stream_at(
            w, &(leat_frame_reset_stream_at){.stream_id = id,
                                             .error = frame->stream->send.reset_code,
                                             .final_size = frame->extra,
                                             .reliable_size = frame->value});
    case LEAT_CONTROL_STOP_SENDING:
        return leat_frame_write_stop_sending(w, id, frame->value);
    case LEAT_CONTROL_MAX_STREAM_DATA:
        return leat_frame_write_max_stream_data(w, id, frame->value);
    case LEAT_CONTROL_STREAM_DATA_BLOCKED:
        return leat_frame_write_stream_data_blocked(w, id, frame->value);
    case LEAT_CONTROL_MAX_DATA:
        return leat_frame_write_max_data(w, frame->value);
    case LEAT_CONTROL_DATA_BLOCKED:
        return leat_frame_write_data_blocked(w, frame->value);
    case LEAT_CONTROL_MAX_STREAMS_BIDI:
        return leat_frame_write_max_streams(w, true, frame->value);
    case LEAT_CONTROL_MAX_STREAMS_UNI:
        return leat_frame_write_max_streams(w, false, frame->value);
    case LEAT_CONTROL_STREAMS_BLOCKED_BIDI:
        return leat_frame_write_streams_blocked(w, true, frame->value);
    case LEAT_CONTROL_STREAMS_BLOCKED_UNI:
        return leat_frame_write_streams_blocked(w, false, frame->value);
    }
    return false;
}

static void fill_controls(leat_packet_out *out)
{
    leat_streams *streams = &out->conn->streams;
    leat_control_frame frame;

    while (leat_writer_left(&out->w) >= LEAT_CONTROL_ROOM &&
           leat_streams_next_control(streams, out->now, out->conn->loss.rtt.smoothed, &frame)) {
        if (!record(out, LEAT_RECORD_CONTROL, frame.stream, frame.value, 0, frame.what)) {
            return;
        }
        wrote(out, write_control(&out->w, &frame));
        leat_streams_control_sent(streams, &frame);
    }
}

/* Datagrams wait, and are as urgent as this stream. */
static bool shares_with_datagrams(const leat_conn *conn, const leat_stream *stream)
{
    return leat_datagrams_wait(&conn->datagrams) && conn->datagrams.urgency == stream->urgency;
}

static void fill_streams(leat_packet_out *out)
{
    leat_streams *streams = &out->conn->streams;
    leat_stream *stream;
    leat_send_part part;

    while (leat_writer_left(&out->w) > 0 && (stream = leat_streams_next_stream(streams)) != NULL) {
        size_t left = leat_writer_left(&out->w);
        leat_data_fit fit;

        if (!leat_stream_send_next(&stream->send, left, &streams->flow_out, &part)) {
            return;
        }
        fit = leat_frame_fit_stream(left, stream->id, part.offset, part.len);
        if (!fit.fits || (fit.len == 0 && part.len > 0)) {
            return;
        }
        part.fin = part.fin && fit.len == part.len;
        part.len = fit.len;
        if (!record(out, LEAT_RECORD_STREAM, stream, part.offset, part.len, part.fin)) {
            return;
        }
        if (shares_with_datagrams(out->conn, stream)) {
            leat_datagrams_shared(&out->conn->datagrams, false, part.len);
        }
        leat_frame_write_stream_head(&out->w, stream->id, part.offset, &fit, part.fin);
        leat_stream_send_copy(&stream->send, part.offset, part.len,
                              leat_writer_room(&out->w, part.len));
        leat_streams_stream_sent(streams, stream, &part);
        out->eliciting = true;
    }
}

/* ---- datagrams ---- */

static void fill_datagrams(leat_packet_out *out)
{
    leat_conn *conn = out->conn;
    leat_datagrams *dg = &conn->datagrams;
    size_t most = leat_conn_datagram_max(conn);
    const leat_stream *stream = leat_streams_next_stream(&conn->streams);
    const leat_datagram_out *next;

    while ((next = leat_datagrams_next(dg, most, out->now)) != NULL) {
        size_t len = next->buf.len;
        leat_data_fit fit = leat_frame_fit_datagram(leat_writer_left(&out->w), len);

        if (!fit.fits || !record(out, LEAT_RECORD_DATAGRAM, NULL, next->tag, len, next->notify)) {
            return;
        }
        leat_frame_write_datagram_head(&out->w, &fit);
        if (len > 0) {
            memcpy(leat_writer_room(&out->w, len), next->buf.data, len);
        }
        if (stream && shares_with_datagrams(conn, stream)) {
            leat_datagrams_shared(dg, true, len);
        }
        leat_datagrams_sent(dg);
        out->eliciting = true;
    }
}

/* Whose turn it is to go into the packet first, where datagrams wait: the more urgent, or who is
 * behind. */
static bool datagrams_go_first(leat_conn *conn)
{
    const leat_stream *stream = leat_streams_next_stream(&conn->streams);

    if (!stream) {
        return true;
    }
    if (stream->urgency != conn->datagrams.urgency) {
        return conn->datagrams.urgency < stream->urgency;
    }
    return conn->datagrams.lead <= 0;
}

/* ---- all of them ---- */

static bool has_crypto(const leat_pnspace *pn)
{
    const leat_crypto *crypto = pn->crypto;

    return crypto &&
           (leat_stream_send_has_free(&crypto->send) || leat_stream_send_has_new(&crypto->send));
}

static bool has_pending(const leat_conn *conn)
{
    return conn->pending != 0 || conn->ackfreq.pending;
}

static bool has_cids(const leat_conn *conn)
{
    return leat_local_cids_any_pending(&conn->local_cids) ||
           leat_remote_cids_any_to_retire(&conn->remote_cids);
}

bool leat_frames_waiting(const leat_conn *conn, const leat_pnspace *pn)
{
    if (has_crypto(pn)) {
        return true;
    }
    if (pn->space != LEAT_SPACE_APP) {
        return false;
    }
    return has_pending(conn) || has_cids(conn) || leat_datagrams_wait(&conn->datagrams) ||
           leat_streams_wants_send(&conn->streams);
}

void leat_frames_fill(leat_packet_out *out)
{
    if (has_crypto(out->pn)) {
        fill_crypto(out);
    }
    if (out->pn->space != LEAT_SPACE_APP) {
        return;
    }
    if (has_pending(out->conn)) {
        fill_pending(out);
    }
    if (has_cids(out->conn)) {
        fill_cids(out);
    }
    fill_controls(out);
    if (!leat_datagrams_wait(&out->conn->datagrams)) {
        fill_streams(out);
    } else if (datagrams_go_first(out->conn)) {
        fill_datagrams(out);
        fill_streams(out);
    } else {
        fill_streams(out);
        fill_datagrams(out);
    }
}

void leat_frames_ping(leat_packet_out *out)
{
    /* It is sent for its ACK: at once, where that can be asked for. */
    bool now = out->type == LEAT_PACKET_ONE_RTT && out->conn->ackfreq.peer_takes;

    if (now ? leat_frame_write_immediate_ack(&out->w) : leat_frame_write_ping(&out->w)) {
        out->eliciting = true;
    }
}

void leat_frames_path(leat_packet_out *out, leat_path *path, bool full, leat_time pto)
{
    const uint8_t *response;
    uint8_t data[LEAT_PATH_DATA];

    /* Neither is sent again when lost: challenges have their own timer, and the peer asks again
     * (RFC 9000 s13.3). */
    while ((response = leat_path_response(path)) != NULL &&
           leat_writer_left(&out->w) >= LEAT_FRAME_SIZE_PATH_DATA) {
        wrote(out, leat_frame_write_path_response(&out->w, response));
        leat_path_responded(path);
    }
    if (path->challenge_due && leat_writer_left(&out->w) >= LEAT_FRAME_SIZE_PATH_DATA) {
        leat_random_fill(&leat_conn_shared_of(out->conn)->random, data, sizeof(data));
        wrote(out, leat_frame_write_path_challenge(&out->w, data));
        leat_path_challenge_sent(path, data, full, out->now, pto);
    }
}

bool leat_frames_mtu_probe(leat_packet_out *out, size_t size)
{
    if (!record(out, LEAT_RECORD_PROBE, NULL, 0, size, out->path)) {
        return false;
    }
    leat_frames_ping(out);
    leat_frame_write_padding(&out->w, leat_writer_left(&out->w));
    out->probe = true;
    out->in_flight = true;
    return true;
}
