/* See fake_quic.h. SPDX-License-Identifier: MIT */
#include "fake_quic.h"

#include <stdlib.h>
#include <string.h>

/* One direction of a stream. */
typedef struct pipe_half {
    uint8_t *data;
    size_t cap, written, delivered, read;
    bool fin, fin_told, reset, reset_told, stopped, stop_told, blocked;
    uint64_t code, stop_code;
} pipe_half;

typedef struct fake_stream fake_stream;

struct leat_stream {
    leat_conn *conn;
    fake_stream *both;
    void *user;
    uint8_t *peeked, *reserved;
    bool opened, closed, urgency_set;
};

struct fake_stream {
    fake_stream *next;
    uint64_t id;
    pipe_half half[2]; /* written by the client, by the server */
    leat_stream end[2];
};

struct leat_conn {
    leat_endpoint *endpoint;
    fake_net *net;
    bool server, closing, told;
    const leat_conn_events *events;
    void *user;
    uint64_t next[2]; /* bidi, uni */
    bool want_bidi;
    char reason[64];
    leat_close_info info;
};

struct leat_endpoint {
    leat_ctx *ctx;
    fake_stream *streams;
    const char *alpn;
};

static pipe_half *sending(const leat_stream *s)
{
    return &s->both->half[s->conn->server];
}

static pipe_half *receiving(const leat_stream *s)
{
    return &s->both->half[!s->conn->server];
}

static leat_conn *new_conn(fake_net *net, bool server)
{
    leat_conn *conn = calloc(1, sizeof *conn);

    conn->endpoint = net->endpoint;
    conn->net = net;
    conn->server = server;
    return conn;
}

void fake_net_open(fake_net *net, const char *alpn)
{
    leat_ctx_settings settings;

    leat_ctx_settings_init(&settings);
    if (leat_ctx_new(&settings, &net->ctx) != LEAT_OK) {
        abort();
    }
    net->endpoint = calloc(1, sizeof *net->endpoint);
    net->endpoint->ctx = net->ctx;
    net->endpoint->alpn = alpn;
    net->client = new_conn(net, false);
    net->server = new_conn(net, true);
}

static void end_closed(leat_stream *s)
{
    if (!s->opened || s->closed) {
        return;
    }
    s->closed = true;
    free(s->peeked);
    free(s->reserved);
    s->peeked = s->reserved = NULL;
    if (s->conn->events && s->conn->events->stream_closed) {
        s->conn->events->stream_closed(s->conn, s, s->conn->user);
    }
}

static void tell_closed(fake_net *net, leat_conn **at, bool local)
{
    leat_conn *conn = *at;

    if (!conn) {
        return;
    }
    conn->closing = true;
    for (fake_stream *f = net->endpoint->streams; f; f = f->next) {
        end_closed(&f->end[conn->server]);
    }
    conn->info.kind = local ? LEAT_CLOSE_LOCAL : LEAT_CLOSE_PEER;
    if (conn->events && conn->events->closed) {
        conn->events->closed(conn, &conn->info, conn->user);
    }
    free(conn);
    *at = NULL;
}

static bool step_close(fake_net *net)
{
    leat_conn *client = net->client, *server = net->server;

    if (!client || !server || (!client->closing && !server->closing)) {
        return false;
    }
    if (client->closing) {
        server->info = client->info;
        tell_closed(net, &net->client, true);
        tell_closed(net, &net->server, false);
    } else {
        client->info = server->info;
        tell_closed(net, &net->server, true);
        tell_closed(net, &net->client, false);
    }
    return true;
}

void fake_net_close(fake_net *net)
{
    if (net->client) {
        leat_conn_close(net->client, 0, (leat_span){NULL, 0});
        step_close(net);
    }
    while (net->endpoint->streams) {
        fake_stream *f = net->endpoint->streams;

        net->endpoint->streams = f->next;
        free(f->half[0].data);
        free(f->half[1].data);
        free(f);
    }
    free(net->endpoint);
    leat_ctx_free(net->ctx);
}

/* What one end is to be told about the direction that it reads. */
static bool step_reading(fake_net *net, leat_stream *s)
{
    pipe_half *h = receiving(s);
    const leat_conn_events *events = s->conn->events;
    void *user = s->conn->user;
    bool news = false;

    if (!s->opened) {
        if (h->written == 0 && !h->fin && !h->reset) {
            return false;
        }
        s->opened = true;
        if (events->stream_opened) {
            events->stream_opened(s->conn, s, user);
        }
        news = true;
    }
    if (h->reset && !h->reset_told) {
        h->reset_told = true;
        if (!h->stopped && events->stream_reset) {
            events->stream_reset(s->conn, s, h->code, user);
        }
        return true;
    }
    if (h->delivered < h->written) {
        size_t more = h->written - h->delivered;

        h->delivered += more < net->segment ? more : net->segment;
        news = true;
    }
    if (h->fin && h->delivered == h->written && !h->fin_told) {
        h->fin_told = true;
        news = true;
    }
    if (news && !h->stopped && events->stream_readable) {
        events->stream_readable(s->conn, s, user);
    }
    return news;
}

/* What one end is to be told about the direction that it writes. */
static bool step_writing(fake_net *net, leat_stream *s)
{
    pipe_half *h = sending(s);
    const leat_conn_events *events = s->conn->events;

    if (h->stopped && !h->stop_told && s->opened) {
        h->stop_told = true;
        if (!h->fin_told && !h->reset) {
            h->reset = true;
            h->code = h->stop_code;
            if (events->stream_stopped) {
                events->stream_stopped(s->conn, s, h->stop_code, s->conn->user);
            }
            return true;
        }
    }
    if (h->blocked && h->written - h->read < net->window && !h->reset) {
        h->blocked = false;
        if (events->stream_writable) {
            events->stream_writable(s->conn, s, s->conn->user);
        }
        return true;
    }
    return false;
}

static bool half_over(const pipe_half *h)
{
    return (h->reset && h->reset_told) || (h->fin && (h->read == h->written || h->stopped));
}

static bool step_stream(fake_net *net, fake_stream *f)
{
    bool bidi = !(f->id & 2), moved = false;

    for (int i = 0; i < 2; i++) {
        leat_stream *s = &f->end[i];

        if (s->closed || s->conn->closing) {
            continue;
        }
        if (bidi || !leat_stream_is_local(s)) {
            moved |= step_reading(net, s);
        }
        if (!s->closed && !s->conn->closing && (bidi || leat_stream_is_local(s))) {
            moved |= step_writing(net, s);
        }
        if (!s->conn->closing && s->opened && !s->closed &&
            ((bidi && half_over(&f->half[0]) && half_over(&f->half[1])) ||
             (!bidi && half_over(&f->half[f->id & 1])))) {
            end_closed(s);
            moved = true;
        }
    }
    return moved;
}

static size_t open_bidi(fake_net *net)
{
    size_t n = 0;

    for (fake_stream *f = net->endpoint->streams; f; f = f->next) {
        n += !(f->id & 2) && !(f->end[0].closed && f->end[1].closed);
    }
    return n;
}

/* The step's events have been told. */
static void tell_told(leat_conn *conn)
{
    if (!conn->closing && conn->events && conn->events->told) {
        conn->events->told(conn, conn->user);
    }
}

bool fake_net_step(fake_net *net)
{
    bool moved = false;

    net->now += LEAT_MILLISECOND;
    moved |= leat_ctx_turn(net->ctx, net->now) <= net->now;
    if (!net->client || !net->server) {
        return moved;
    }
    for (fake_stream *f = net->endpoint->streams; f; f = f->next) {
        moved |= step_stream(net, f);
    }
    if (net->client->want_bidi && !net->client->closing && open_bidi(net) < net->max_bidi) {
        net->client->want_bidi = false;
        moved = true;
        if (net->client->events->streams_available) {
            net->client->events->streams_available(net->client, true, net->client->user);
        }
    }
    tell_told(net->client);
    tell_told(net->server);
    return step_close(net) || moved;
}

bool fake_net_run(fake_net *net)
{
    bool any = false;

    for (int i = 0; i < 1000000 && fake_net_step(net); i++) {
        any = true;
    }
    return any;
}

/* ---- leat/quic.h ---- */

leat_ctx *leat_endpoint_ctx(leat_endpoint *endpoint)
{
    return endpoint->ctx;
}

leat_endpoint *leat_conn_endpoint(leat_conn *conn)
{
    return conn->endpoint;
}

bool leat_conn_is_server(const leat_conn *conn)
{
    return conn->server;
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

leat_early leat_conn_early(const leat_conn *conn)
{
    return conn->net->early ? LEAT_EARLY_OFFERED : LEAT_EARLY_NONE;
}

leat_span leat_conn_alpn(const leat_conn *conn)
{
    const char *alpn = conn->endpoint->alpn;

    return (leat_span){(const uint8_t *)alpn, strlen(alpn)};
}

leat_span leat_conn_server_name(const leat_conn *conn)
{
    (void)conn;
    return (leat_span){(const uint8_t *)"localhost", 9};
}

void leat_conn_close(leat_conn *conn, uint64_t code, leat_span reason)
{
    if (conn->closing) {
        return;
    }
    conn->closing = true;
    conn->info.application = true;
    conn->info.code = code;
    (void)reason;
}

leat_err leat_stream_open(leat_conn *conn, bool bidi, leat_stream **out)
{
    fake_stream *f, **at = &conn->endpoint->streams;

    if (conn->closing) {
        return LEAT_ERR_CLOSED;
    }
    if (bidi && open_bidi(conn->net) >= conn->net->max_bidi) {
        conn->want_bidi = true;
        return LEAT_ERR_BLOCKED;
    }
    f = calloc(1, sizeof *f);
    f->id = conn->next[!bidi]++ * 4 + (bidi ? 0 : 2) + conn->server;
    f->end[0] = (leat_stream){.conn = conn->net->client, .both = f, .opened = !conn->server};
    f->end[1] = (leat_stream){.conn = conn->net->server, .both = f, .opened = conn->server};
    while (*at) {
        at = &(*at)->next;
    }
    *at = f;
    *out = &f->end[conn->server];
    return LEAT_OK;
}

uint64_t leat_stream_id(const leat_stream *s)
{
    return s->both->id;
}

bool leat_stream_is_bidi(const leat_stream *s)
{
    return !(s->both->id & 2);
}

bool leat_stream_is_local(const leat_stream *s)
{
    return (s->both->id & 1) == (unsigned)s->conn->server;
}

void leat_stream_set_user(leat_stream *s, void *user)
{
    s->user = user;
}

void *leat_stream_user(const leat_stream *s)
{
    return s->user;
}

leat_err leat_stream_set_priority(leat_stream *s, unsigned urgency, bool incremental)
{
    (void)incremental;
    s->urgency_set = true;
    return urgency > 7 ? LEAT_ERR_INVALID : LEAT_OK;
}

leat_span leat_stream_peek(leat_stream *s)
{
    pipe_half *h = receiving(s);
    size_t n = h->delivered - h->read;

    if (n > s->conn->net->segment) {
        n = s->conn->net->segment;
    }
    if (h->reset || h->stopped || n == 0) {
        return (leat_span){NULL, 0};
    }
    free(s->peeked);
    s->peeked = malloc(n);
    memcpy(s->peeked, h->data + h->read, n);
    return (leat_span){s->peeked, n};
}

void leat_stream_consume(leat_stream *s, size_t n)
{
    receiving(s)->read += n;
    free(s->peeked);
    s->peeked = NULL;
}

bool leat_stream_recv_done(const leat_stream *s)
{
    const pipe_half *h = receiving(s);

    return h->reset || h->stopped || (h->fin_told && h->read == h->written);
}

bool leat_stream_recv_whole(const leat_stream *s)
{
    const pipe_half *h = receiving(s);

    return !h->reset && !h->stopped && h->fin_told && h->read == h->written;
}

void leat_stream_stop(leat_stream *s, uint64_t code)
{
    pipe_half *h = receiving(s);

    if (!h->stopped) {
        h->stopped = true;
        h->stop_code = code;
        free(s->peeked);
        s->peeked = NULL;
    }
}

static size_t room(leat_stream *s)
{
    pipe_half *h = sending(s);
    size_t used = h->written - h->read;

    return used < s->conn->net->window ? s->conn->net->window - used : 0;
}

static void append(leat_stream *s, const void *data, size_t n)
{
    pipe_half *h = sending(s);

    if (h->written + n >= h->cap) {
        h->cap = (h->written + n + 1) * 2;
        h->data = realloc(h->data, h->cap);
    }
    memcpy(h->data + h->written, data, n);
    h->written += n;
}

leat_err leat_stream_reserve(leat_stream *s, size_t want, leat_mspan *out)
{
    size_t n = room(s);

    if (s->conn->closing || sending(s)->reset) {
        return LEAT_ERR_CLOSED;
    }
    if (sending(s)->fin) {
        return LEAT_ERR_STATE;
    }
    if (n < want) {
        sending(s)->blocked = true;
    }
    if (n == 0) {
        return LEAT_ERR_BLOCKED;
    }
    n = n < want ? n : want;
    n = n < s->conn->net->span ? n : s->conn->net->span;
    free(s->reserved);
    s->reserved = malloc(n);
    *out = (leat_mspan){s->reserved, n};
    return LEAT_OK;
}

void leat_stream_commit(leat_stream *s, size_t n)
{
    append(s, s->reserved, n);
    free(s->reserved);
    s->reserved = NULL;
}

leat_err leat_stream_write(leat_stream *s, const void *data, size_t len, size_t *written)
{
    size_t n = room(s);

    if (s->conn->closing || sending(s)->reset) {
        return LEAT_ERR_CLOSED;
    }
    if (n < len) {
        sending(s)->blocked = true;
        if (n == 0) {
            return LEAT_ERR_BLOCKED;
        }
        len = n;
    }
    append(s, data, len);
    *written = len;
    return LEAT_OK;
}

leat_err leat_stream_write_buf(leat_stream *s, leat_buf *buf)
{
    append(s, buf->data, buf->len);
    leat_buf_release(buf);
    return LEAT_OK;
}

leat_err leat_stream_finish(leat_stream *s)
{
    if (sending(s)->fin || sending(s)->reset) {
        return LEAT_ERR_STATE;
    }
    sending(s)->fin = true;
    return LEAT_OK;
}

void leat_stream_reset(leat_stream *s, uint64_t code)
{
    pipe_half *h = sending(s);

    if (!h->reset && !(h->fin && h->read == h->written)) {
        h->reset = true;
        h->code = code;
        h->fin = false;
    }
}
