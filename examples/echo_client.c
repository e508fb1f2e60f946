/* echo_client: sends standard input to an echo_server and writes what comes back to standard
 * output.
 *
 *     echo_client ADDR:PORT <question >answer
 *
 * On leat's ready loop. The server's certificate is not checked: this is an example.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <unistd.h>

#include <leat/leat.h>

typedef struct client {
    leat_stream *stream;
    bool sent_all;
    bool over, failed;
} client;

/* Reads standard input straight into the stream's send buffer, as far as there is room. */
static void send_some(client *c)
{
    leat_mspan room;

    while (!c->sent_all && leat_stream_reserve(c->stream, 16384, &room) == LEAT_OK) {
        ssize_t n = read(STDIN_FILENO, room.data, room.len);

        leat_stream_commit(c->stream, n > 0 ? (size_t)n : 0);
        if (n <= 0) {
            c->sent_all = true;
            leat_stream_finish(c->stream);
        }
    }
}

static void on_connected(leat_conn *conn, void *user)
{
    client *c = user;

    if (leat_stream_open(conn, true, &c->stream) == LEAT_OK) {
        send_some(c);
    } else {
        c->over = c->failed = true;
    }
}

static void on_writable(leat_conn *conn, leat_stream *stream, void *user)
{
    (void)conn;
    (void)stream;
    send_some(user);
}

static void on_readable(leat_conn *conn, leat_stream *stream, void *user)
{
    client *c = user;

    for (;;) {
        leat_span data = leat_stream_peek(stream);

        if (data.len == 0) {
            break;
        }
        c->failed |= fwrite(data.data, 1, data.len, stdout) != data.len;
        leat_stream_consume(stream, data.len);
    }
    if (leat_stream_recv_whole(stream)) {
        c->over = true;
        leat_conn_close(conn, 0, (leat_span){NULL, 0});
    }
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    client *c = user;

    (void)conn;
    if (!c->over) {
        fprintf(stderr, "closed: %s\n", info->detail ? info->detail : leat_err_text(info->err));
        c->over = c->failed = true;
    }
}

static const leat_conn_events events = {
    .connected = on_connected,
    .stream_readable = on_readable,
    .stream_writable = on_writable,
    .closed = on_closed,
};

static leat_tls_config *make_tls(void)
{
    static const char *const alpn[] = {"echo"};
    leat_tls_settings settings;
    leat_tls_config *config = NULL;
    leat_tls_error error;

    leat_tls_settings_init(&settings);
    settings.alpn = alpn;
    settings.alpn_count = 1;
    settings.verify = settings.verify_host = settings.system_ca = false;
    if (leat_tls_config_client(&settings, &config, &error) != LEAT_OK) {
        fprintf(stderr, "TLS: %s\n", error.text);
    }
    return config;
}

int main(int argc, char **argv)
{
    client c = {.stream = NULL};
    leat_connect how = {
        .server_name = "localhost", .tls = make_tls(), .events = &events, .user = &c};
    leat_udp_settings udp_settings;
    leat_endpoint_settings settings;
    leat_loop *loop;
    leat_udp *udp;
    leat_conn *conn;
    leat_err err;

    if (argc != 2 || !how.tls || leat_addr_parse(argv[1], &how.remote) != LEAT_OK) {
        fprintf(stderr, "usage: echo_client ADDR:PORT\n");
        return 1;
    }
    leat_udp_settings_init(&udp_settings);
    udp_settings.remote = how.remote;
    leat_endpoint_settings_init(&settings);
    err = leat_loop_new(NULL, &loop);
    if (err == LEAT_OK) {
        err = leat_udp_open(loop, &udp_settings, &settings, &udp);
    }
    if (err == LEAT_OK) {
        err = leat_conn_connect(leat_udp_endpoint(udp), &how, &conn);
    }
    while (err == LEAT_OK && !c.over) {
        err = leat_loop_turn(loop, LEAT_TIME_NEVER);
    }
    if (err != LEAT_OK) {
        fprintf(stderr, "%s\n", leat_err_text(err));
        return 1;
    }
    leat_loop_free(loop); /* sends the close on its way out */
    leat_tls_config_free((leat_tls_config *)(uintptr_t)how.tls);
    return c.failed || fflush(stdout) != 0;
}
