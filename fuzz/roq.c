/* fuzz/roq.c: libFuzzer on what a peer may send to an RTP-over-QUIC session: datagrams, and streams
 * in pieces, ended, reset, in any order; of flows open, opened late and closed.
 *
 * The session is given a QUIC that is not there: just the calls of leat/quic.h that it makes, whose
 * streams hold what the input says. Each span handed out is a copy that dies as soon as the
 * interface allows, so that AddressSanitizer sees late reads; the session's walker runs after each
 * step.
 *
 * The input is a list of steps: a byte that says what, a byte for which stream (or how many bytes),
 * then bytes.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "roq/roq.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STREAMS = 8, HELD = 4096 };

struct leat_stream {
    leat_conn *conn;
    uint64_t id;
    void *user;
    uint8_t held[HELD]; /* received and not yet read */
    size_t from, to;
    uint8_t *peeked;
    bool used, fin, stopped, reset;
    uint64_t written; /* of those that the session opens */
};

struct leat_conn {
    leat_ctx *ctx;
    const leat_conn_events *events;
    void *user;
    leat_stream streams[STREAMS]; /* the peer's */
    leat_stream own[STREAMS];
    bool closing;
    uint64_t tags[64];
    size_t tag_count;
};

static void check(bool good)
{
    if (!good) {
        abort();
    }
}

/* ---- leat/quic.h ---- */

leat_endpoint *leat_conn_endpoint(leat_conn *conn)
{
    return (leat_endpoint *)conn;
}

leat_ctx *leat_endpoint_ctx(leat_endpoint *endpoint)
{
    return ((leat_conn *)endpoint)->ctx;
}

bool leat_conn_is_connected(const leat_conn *conn)
{
    return !conn->closing;
}

void leat_conn_set_events(leat_conn *conn, const leat_conn_events *events, void *user)
{
    conn->events = events;
    conn->user = user;
}

void leat_conn_close(leat_conn *conn, uint64_t code, leat_span reason)
{
    (void)reason;
    check(code <= LEAT_ROQ_EXPECTATION_UNMET);
    conn->closing = true;
    for (int i = 0; i < STREAMS; i++) { /* what was shown is gone */
        free(conn->streams[i].peeked);
        conn->streams[i].peeked = NULL;
    }
}

void leat_conn_stats(const leat_conn *conn, leat_conn_stats_data *out)
{
    (void)conn;
    *out = (leat_conn_stats_data){0};
}

leat_err leat_conn_set_rate(leat_conn *conn, uint64_t cwnd, uint64_t pacing_rate)
{
    (void)conn;
    (void)cwnd;
    (void)pacing_rate;
    return LEAT_OK;
}

leat_err leat_conn_set_padding(leat_conn *conn, size_t bytes)
{
    (void)conn;
    (void)bytes;
    return LEAT_OK;
}

size_t leat_conn_datagram_max(const leat_conn *conn)
{
    (void)conn;
    return 1200;
}

leat_err leat_conn_send_datagram_buf(leat_conn *conn, leat_buf *buf,
                                     const leat_datagram_options *options)
{
    if (conn->closing || conn->tag_count == 64) {
        return conn->closing ? LEAT_ERR_CLOSED : LEAT_ERR_BLOCKED;
    }
    conn->tags[conn->tag_count++] = options->tag;
    leat_buf_release(buf);
    return LEAT_OK;
}

leat_err leat_stream_open(leat_conn *conn, bool bidi, leat_stream **out)
{
    check(!bidi);
    for (int i = 0; i < STREAMS; i++) {
        if (!conn->own[i].used) {
            conn->own[i] = (leat_stream){.conn = conn, .id = (uint64_t)i * 4 + 3, .used = true};
            *out = &conn->own[i];
            return LEAT_OK;
        }
    }
    return LEAT_ERR_BLOCKED;
}

bool leat_stream_is_bidi(const leat_stream *stream)
{
    return !(stream->id & 2);
}

bool leat_stream_is_local(const leat_stream *stream)
{
    return stream->id & 1;
}

void leat_stream_set_user(leat_stream *stream, void *user)
{
    stream->user = user;
}

void *leat_stream_user(const leat_stream *stream)
{
    return stream->user;
}

leat_err leat_stream_set_priority(leat_stream *stream, unsigned urgency, bool incremental)
{
    (void)stream;
    (void)incremental;
    return urgency < 8 ? LEAT_OK : LEAT_ERR_INVALID;
}

leat_span leat_stream_peek(leat_stream *stream)
{
    size_t n = stream->to - stream->from;

    if (stream->conn->closing || stream->stopped || stream->reset || n == 0) {
        return (leat_span){NULL, 0};
    }
    free(stream->peeked);
    stream->peeked = malloc(n);
    check(stream->peeked != NULL);
    memcpy(stream->peeked, stream->held + stream->from, n);
    return (leat_span){stream->peeked, n};
}

void leat_stream_consume(leat_stream *stream, size_t n)
{
    if (stream->conn->closing) {
        return;
    }
    check(!stream->stopped && n <= stream->to - stream->from);
    stream->from += n;
    free(stream->peeked);
    stream->peeked = NULL;
}

bool leat_stream_recv_whole(const leat_stream *stream)
{
    return stream->fin && stream->from == stream->to && !stream->stopped && !stream->reset;
}

void leat_stream_stop(leat_stream *stream, uint64_t code)
{
    check(code <= LEAT_ROQ_EXPECTATION_UNMET);
    stream->stopped = true;
    free(stream->peeked);
    stream->peeked = NULL;
}

leat_err leat_stream_write_buf(leat_stream *stream, leat_buf *buf)
{
    if (stream->conn->closing || stream->reset) {
        return LEAT_ERR_CLOSED;
    }
    stream->written += buf->len;
    leat_buf_release(buf);
    return LEAT_OK;
}

leat_err leat_stream_finish(leat_stream *stream)
{
    stream->fin = true;
    return LEAT_OK;
}

void leat_stream_reset(leat_stream *stream, uint64_t code)
{
    check(code <= LEAT_ROQ_EXPECTATION_UNMET);
    stream->reset = true;
}

void leat_stream_reset_if_lost(leat_stream *stream, uint64_t code)
{
    check(code <= LEAT_ROQ_EXPECTATION_UNMET && stream->fin);
}

/* Half of what is written is sent, or all once it is finished, and a quarter acknowledged. */
void leat_stream_progress_get(const leat_stream *stream, leat_stream_progress *out)
{
    uint64_t sent = stream->fin ? stream->written : stream->written / 2;

    *out = (leat_stream_progress){stream->written, sent, stream->written / 4};
}

/* ---- the application ---- */

static leat_roq *session;
static uint8_t whim; /* what callbacks do, of the input's choosing */

static void on_packet(leat_roq_flow *flow, leat_span packet, const leat_roq_arrival *how,
                      void *user)
{
    uint8_t sum = 0;

    (void)user;
    check(how->rtcp || packet.len >= 12);
    for (size_t i = 0; i < packet.len; i++) {
        sum ^= packet.data[i]; /* each byte may be read */
    }
    if (whim & 2) {
        leat_roq_send(flow, packet, NULL);
    }
    if (whim & 1) {
        leat_roq_flow_skip(flow); /* the packet's bytes are gone now */
    }
    if ((whim & 12) == 12 && sum == 0) {
        leat_roq_close(session, LEAT_ROQ_NO_ERROR, "");
    }
}

static void on_unknown(leat_roq *roq, uint64_t id, void *user)
{
    leat_roq_flow *flow;

    (void)user;
    if (whim & 16) {
        (void)leat_roq_flow_open(roq, id, NULL, &flow);
    }
}

static void on_result(leat_roq_flow *flow, const leat_roq_result *result, void *user)
{
    (void)flow;
    (void)user;
    check(result->outcome < LEAT_ROQ_OUTCOMES);
}

static void on_closed(leat_roq *roq, const leat_close_info *info, void *user)
{
    (void)roq;
    (void)info;
    (void)user;
    session = NULL;
}

static const leat_roq_events events = {
    .packet = on_packet, .unknown_flow = on_unknown, .result = on_result, .closed = on_closed};

/* ---- steps ---- */

static void end_stream(leat_stream *stream)
{
    if (stream->used) {
        stream->conn->events->stream_closed(stream->conn, stream, stream->conn->user);
        free(stream->peeked);
        stream->peeked = NULL;
        stream->used = false;
    }
}

static void more(leat_conn *conn, leat_stream *stream, leat_span bytes, bool bidi)
{
    if (!stream->used) {
        uint64_t n = (uint64_t)(stream - conn->streams);

        *stream = (leat_stream){.conn = conn, .id = n * 4 + (bidi ? 0 : 2), .used = true};
    } else if (stream->fin || stream->reset || stream->stopped) {
        end_stream(stream);
        return;
    }
    if (stream->from == stream->to) {
        stream->from = stream->to = 0;
    }
    if (bytes.len > HELD - stream->to) {
        bytes.len = HELD - stream->to;
    }
    memcpy(stream->held + stream->to, bytes.data, bytes.len);
    stream->to += bytes.len;
    if (!stream->user) {
        conn->events->stream_opened(conn, stream, conn->user);
    } else {
        conn->events->stream_readable(conn, stream, conn->user);
    }
}

static void step(leat_conn *conn, uint8_t what, uint8_t which, leat_span bytes)
{
    leat_stream *stream = &conn->streams[which % STREAMS];
    leat_roq_flow *flow;
    uint64_t id = which % 4;

    switch (what % 10) {
    case 0:
        conn->events->datagram(conn, bytes, conn->user);
        break;
    case 1:
        more(conn, stream, bytes, which & 128);
        break;
    case 2:
        if (stream->used && !stream->fin && !stream->reset) {
            stream->fin = true;
            conn->events->stream_readable(conn, stream, conn->user);
        }
        break;
    case 3:
        if (stream->used && !stream->reset && !stream->stopped) {
            stream->reset = true;
            conn->events->stream_reset(conn, stream, which, conn->user);
        }
        break;
    case 4:
        end_stream(stream);
        break;
    case 5:
        (void)leat_roq_flow_open(session, id, NULL, &flow);
        break;
    case 6:
        flow = leat_roq_flow_find(session, id);
        if (flow) {
            leat_roq_flow_close(flow);
        }
        break;
    case 7:
        flow = leat_roq_flow_find(session, id);
        if (flow) {
            leat_roq_flow_set_mode(flow, (leat_roq_mode)(which / 4 % LEAT_ROQ_MODES));
            leat_roq_send(flow, bytes, NULL);
        }
        break;
    case 8:
        if (conn->tag_count > 0) {
            conn->events->datagram_done(conn, conn->tags[--conn->tag_count],
                                        (leat_datagram_outcome)(which % 4), conn->user);
        }
        break;
    default:
        if (conn->own[which % STREAMS].used) {
            if (which & 64) {
                conn->own[which % STREAMS].reset = true;
                conn->events->stream_stopped(conn, &conn->own[which % STREAMS], 5, conn->user);
            }
            end_stream(&conn->own[which % STREAMS]);
            conn->events->streams_available(conn, false, conn->user);
        }
        break;
    }
}

static void finish(leat_conn *conn)
{
    leat_close_info info = {.kind = LEAT_CLOSE_LOCAL};

    conn->closing = true;
    for (int i = 0; i < STREAMS; i++) {
        end_stream(&conn->streams[i]);
        end_stream(&conn->own[i]);
    }
    conn->events->closed(conn, &info, conn->user);
    check(session == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static leat_conn conn;
    leat_ctx_settings ctx;
    leat_roq_settings settings;
    leat_time now = 1;

    if (size < 2) {
        return 0;
    }
    memset(&conn, 0, sizeof conn);
    leat_ctx_settings_init(&ctx);
    check(leat_ctx_new(&ctx, &conn.ctx) == LEAT_OK);
    leat_roq_settings_init(&settings);
    settings.max_packet = LEAT_ROQ_PACKET_MIN;
    settings.max_unread = LEAT_ROQ_UNREAD_MIN;
    settings.max_unknown = 2;
    settings.max_flows = 3;
    check(leat_roq_attach(&conn, &settings, &events, NULL, &session) == LEAT_OK);
    whim = *data++;
    size--;
    while (size >= 3 && !conn.closing) {
        size_t len = data[2] < size - 3 ? data[2] : size - 3;

        step(&conn, data[0], data[1], (leat_span){data + 3, len});
        leat_roq_check(session);
        now += (leat_time)data[2] * LEAT_MILLISECOND;
        leat_ctx_turn(conn.ctx, now);
        leat_roq_check(session);
        data += 3 + len;
        size -= 3 + len;
    }
    finish(&conn);
    leat_ctx_free(conn.ctx);
    return 0;
}
