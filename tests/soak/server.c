/* tests/soak/server.c: checks what comes up, sends what is asked for, sends datagrams back.
 *
 * SIGTERM ends it: connections are closed, and what is left then is told of, and a fault if
 * anything is.
 *
 * SPDX-License-Identifier: MIT
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soak.h"

typedef struct served {
    uint8_t head[SOAK_HEAD];
    size_t head_len;
    uint64_t key, up, down;
    uint64_t got, sent;
} served;

static leat_loop *loop;
static volatile sig_atomic_t leaving;
static leat_udp *udp;

static void on_signal(int number)
{
    (void)number;
    leaving = 1;
    leat_loop_stop(loop);
}

static uint64_t number_at(const uint8_t *at)
{
    uint64_t n;

    memcpy(&n, at, sizeof n);
    return n;
}

static served *served_of(leat_stream *stream)
{
    served *s = leat_stream_user(stream);

    if (!s) {
        s = calloc(1, sizeof *s);
        leat_stream_set_user(stream, s);
    }
    return s;
}

static size_t take_head(served *s, leat_span data)
{
    size_t n = SOAK_HEAD - s->head_len < data.len ? SOAK_HEAD - s->head_len : data.len;

    memcpy(s->head + s->head_len, data.data, n);
    s->head_len += n;
    if (s->head_len == SOAK_HEAD) {
        s->key = number_at(s->head);
        s->up = number_at(s->head + 8);
        s->down = number_at(s->head + 16);
    }
    return n;
}

static void read_up(leat_stream *stream, served *s)
{
    leat_span data;

    while ((data = leat_stream_peek(stream)).len > 0) {
        size_t n = data.len;

        if (s->head_len < SOAK_HEAD) {
            n = take_head(s, data);
        } else if (s->got + n > s->up || !soak_same(s->key, s->got, data.data, n)) {
            soak_fault("stream %llu: bytes at %llu are not what was sent",
                       (unsigned long long)leat_stream_id(stream), (unsigned long long)s->got);
            leat_stream_stop(stream, SOAK_CODE_FAULT);
            leat_stream_reset(stream, SOAK_CODE_FAULT);
            return;
        } else {
            s->got += n;
            soak_count.bytes_up += n;
        }
        leat_stream_consume(stream, n);
    }
}

static void write_down(leat_stream *stream, served *s)
{
    leat_mspan room;

    while (s->sent < s->down && leat_stream_reserve(stream, s->down - s->sent, &room) == LEAT_OK) {
        size_t n = room.len < s->down - s->sent ? room.len : (size_t)(s->down - s->sent);

        soak_fill(~s->key, s->sent, room.data, n);
        leat_stream_commit(stream, n);
        s->sent += n;
    }
    if (s->sent == s->down && leat_stream_finish(stream) == LEAT_OK) {
        soak_count.streams++;
    }
}

static void on_stream(leat_conn *conn, leat_stream *stream, void *user)
{
    served *s = served_of(stream);

    (void)conn;
    (void)user;
    read_up(stream, s);
    if (leat_stream_recv_whole(stream)) {
        if (s->head_len < SOAK_HEAD || s->got != s->up) {
            soak_fault("stream %llu ends after %llu bytes of %llu",
                       (unsigned long long)leat_stream_id(stream), (unsigned long long)s->got,
                       (unsigned long long)s->up);
            leat_stream_reset(stream, SOAK_CODE_FAULT);
            return;
        }
        write_down(stream, s);
    }
}

static void on_reset(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    (void)conn;
    (void)user;
    if (code != SOAK_CODE_CANCEL) {
        soak_fault("a stream was reset with code %llu", (unsigned long long)code);
    }
    leat_stream_reset(stream, SOAK_CODE_CANCEL);
}

static void on_stopped(leat_conn *conn, leat_stream *stream, uint64_t code, void *user)
{
    (void)conn;
    (void)stream;
    (void)user;
    if (code != SOAK_CODE_CANCEL) {
        soak_fault("a stream was stopped with code %llu", (unsigned long long)code);
    }
    leat_stream_stop(stream, SOAK_CODE_CANCEL);
    soak_count.cancelled++;
}

static void on_stream_closed(leat_conn *conn, leat_stream *stream, void *user)
{
    (void)conn;
    (void)user;
    free(leat_stream_user(stream));
}

static void on_datagram(leat_conn *conn, leat_span data, void *user)
{
    (void)user;
    soak_count.datagrams++;
    if (data.len < 8 || !soak_same(number_at(data.data), 0, data.data + 8, data.len - 8)) {
        soak_fault("a DATAGRAM of %zu bytes is not what was sent", data.len);
        return;
    }
    soak_count.datagrams_back += leat_conn_send_datagram(conn, data, NULL) == LEAT_OK;
}

/* By protocol, once it is known: with early data, or when connected. */
static void begin(leat_conn *conn)
{
    leat_span alpn = leat_conn_alpn(conn);

    if (alpn.len == strlen(LEAT_ROQ_ALPN) && memcmp(alpn.data, LEAT_ROQ_ALPN, alpn.len) == 0) {
        soak_media_begin(conn, false, 0, NULL);
    }
}

static void on_early(leat_conn *conn, void *user)
{
    (void)user;
    soak_count.early_accepted++;
    begin(conn);
}

static void on_connected(leat_conn *conn, void *user)
{
    (void)user;
    soak_count.connected++;
    soak_count.resumed += leat_conn_resumed(conn);
    if (leat_conn_early(conn) != LEAT_EARLY_ACCEPTED) {
        begin(conn);
    }
}

void soak_server_closed(leat_conn *conn)
{
    leat_conn_stats_data stats;

    leat_conn_stats(conn, &stats);
    soak_count.conns++;
    soak_count.migrations += stats.migrations;
    soak_count.key_updates += stats.key_updates;
    soak_count.bytes_resent += stats.stream_bytes_resent;
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    (void)info;
    (void)user;
    soak_server_closed(conn);
}

static const leat_conn_events events = {
    .early = on_early,
    .connected = on_connected,
    .stream_opened = on_stream,
    .stream_readable = on_stream,
    .stream_writable = on_stream,
    .stream_reset = on_reset,
    .stream_stopped = on_stopped,
    .stream_closed = on_stream_closed,
    .datagram = on_datagram,
    .closed = on_closed,
};

static leat_err read_file(const char *path, leat_buf *out)
{
    leat_err err = leat_file_read(leat_ctx_mem(leat_loop_ctx(loop)), path, 65536, out);

    if (err != LEAT_OK) {
        fprintf(stderr, "leat-soak: %s: %s\n", path, leat_err_text(err));
    } else {
        leat_buf_trim(out, out->len - 1); /* the zero behind it */
    }
    return err;
}

/* The ticket key is the one of the process before: tickets, tokens and resets outlive it. */
static leat_err make_keys(const soak_options *o, leat_tls_config **tls, leat_shared **shared)
{
    static const char *const alpn[] = {SOAK_ALPN, LEAT_ROQ_ALPN};
    leat_tls_settings settings;
    leat_shared_settings shared_settings;
    leat_tls_error error = {{0}};
    leat_buf cert = {0}, key = {0}, ticket = {0};
    leat_err err;

    leat_tls_settings_init(&settings);
    leat_shared_settings_init(&shared_settings);
    err = read_file(o->cert, &cert);
    if (err == LEAT_OK) {
        err = read_file(o->key, &key);
    }
    if (err == LEAT_OK) {
        err = read_file(o->ticket_key, &ticket);
    }
    if (err == LEAT_OK) {
        settings.cert_pem = (leat_span){cert.data, cert.len};
        settings.key_pem = (leat_span){key.data, key.len};
        settings.alpn = alpn;
        settings.alpn_count = 2;
        settings.tickets = 2;
        settings.ticket_key = (leat_span){ticket.data, ticket.len};
        shared_settings.ticket_key = settings.ticket_key;
        err = leat_entropy(shared_settings.seed, sizeof shared_settings.seed);
    }
    if (err == LEAT_OK) {
        err = leat_tls_config_server(&settings, tls, &error);
    }
    if (err == LEAT_OK) {
        err = leat_shared_new(&shared_settings, shared);
    }
    leat_buf_release(&cert);
    leat_buf_release(&key);
    leat_buf_release(&ticket);
    if (err != LEAT_OK) {
        fprintf(stderr, "leat-soak: keys: %s %s\n", leat_err_text(err), error.text);
    }
    return err;
}

/* Connections are closed and their closing periods waited out: then nothing may be left. */
static void leave(const leat_mem_stats *before)
{
    leat_endpoint *endpoint = leat_udp_endpoint(udp);
    leat_time give_up = leat_clock_now() + 30 * LEAT_SECOND;
    leat_mem_stats after;

    leat_endpoint_close(endpoint, SOAK_CODE_LEAVING);
    while (leat_endpoint_conns(endpoint) > 0 && leat_clock_now() < give_up) {
        leat_loop_turn(loop, leat_clock_now() + 100 * LEAT_MILLISECOND);
    }
    leat_mem_stats_get(leat_ctx_mem(leat_loop_ctx(loop)), &after);
    printf("memory_high=%zu\n", after.system_high);
    if (leat_endpoint_conns(endpoint) > 0) {
        soak_fault("%zu connections are left", leat_endpoint_conns(endpoint));
    }
    if (after.buf_live > before->buf_live + 64) { /* those that the socket will receive into */
        soak_fault("%zu buffers are left of %zu", after.buf_live, before->buf_live);
    }
}

int soak_server(const soak_options *o)
{
    leat_tls_config *tls = NULL;
    leat_shared *shared = NULL;
    leat_udp_settings udp_settings;
    leat_endpoint_settings settings;
    leat_mem_stats before;
    leat_addr local;
    char text[LEAT_ADDR_TEXT_MAX];
    unsigned fds = soak_fds();
    leat_err err = leat_loop_new(NULL, &loop);

    if (err != LEAT_OK || make_keys(o, &tls, &shared) != LEAT_OK) {
        return 1;
    }
    leat_udp_settings_init(&udp_settings);
    udp_settings.local = o->listen;
    leat_endpoint_settings_init(&settings);
    settings.server_tls = tls;
    settings.shared = shared;
    settings.events = &events;
    settings.conn.early_data = true;
    settings.conn.max_datagram_frame_size = 65535;
    settings.conn.max_streams_uni = 1024;
    settings.conn.idle_timeout = 8 * LEAT_SECOND;
    settings.conn.key_update_packets = 20000;
    err = leat_udp_open(loop, &udp_settings, &settings, &udp);
    if (err != LEAT_OK) {
        fprintf(stderr, "leat-soak: cannot listen: %s\n", leat_err_text(err));
        return 1;
    }
    signal(SIGTERM, on_signal);
    local = leat_udp_local(udp);
    printf("listening on %s\n", leat_addr_format(&local, text));
    fflush(stdout);
    leat_mem_stats_get(leat_ctx_mem(leat_loop_ctx(loop)), &before);
    while (!leaving && err == LEAT_OK) {
        err = leat_loop_run(loop);
    }
    if (err != LEAT_OK) {
        soak_fault("the loop ended: %s", leat_err_text(err));
    }
    leave(&before);
    leat_loop_free(loop);
    leat_shared_free(shared);
    leat_tls_config_free(tls);
    if (soak_fds() != fds) {
        soak_fault("%u file descriptors at the end, %u at the start", soak_fds(), fds);
    }
    return 0;
}
