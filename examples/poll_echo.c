/* poll_echo: an echo client without leat's loop: a plain socket, poll(), and the sans-I/O endpoint.
 *
 *     poll_echo PORT TEXT            asks the echo_server on 127.0.0.1
 *
 * This is all that a loop of one's own has to do: keep the time, hand datagrams in, take a turn,
 * pull datagrams out, and wait until the socket is readable or the deadline has come. The
 * certificate is not checked: this is an example.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <time.h>
#include <unistd.h>

#include <leat/leat.h>

typedef struct asker {
    const char *question;
    size_t asked, answered; /* bytes */
    bool over, good;
} asker;

/* ---- the application ---- */

static void ask(asker *a, leat_stream *stream)
{
    size_t len = strlen(a->question), n;

    while (a->asked < len) {
        if (leat_stream_write(stream, a->question + a->asked, len - a->asked, &n) != LEAT_OK) {
            return;
        }
        a->asked += n;
    }
    leat_stream_finish(stream);
}

static void on_connected(leat_conn *conn, void *user)
{
    leat_stream *stream;

    if (leat_stream_open(conn, true, &stream) == LEAT_OK) {
        ask(user, stream);
    }
}

static void on_writable(leat_conn *conn, leat_stream *stream, void *user)
{
    (void)conn;
    ask(user, stream);
}

static void on_readable(leat_conn *conn, leat_stream *stream, void *user)
{
    asker *a = user;

    for (;;) {
        leat_span data = leat_stream_peek(stream);

        if (data.len == 0) {
            break;
        }
        fwrite(data.data, 1, data.len, stdout);
        a->answered += data.len;
        leat_stream_consume(stream, data.len);
    }
    if (leat_stream_recv_whole(stream)) {
        a->good = a->answered == strlen(a->question);
        leat_conn_close(conn, 0, (leat_span){NULL, 0});
        a->over = true;
    }
}

static void on_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    asker *a = user;

    (void)conn;
    if (!a->over) {
        fprintf(stderr, "closed: %s\n", info->detail ? info->detail : leat_err_text(info->err));
        a->over = true;
    }
}

static const leat_conn_events events = {
    .connected = on_connected,
    .stream_readable = on_readable,
    .stream_writable = on_writable,
    .closed = on_closed,
};

/* ---- the loop ---- */

static leat_time now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (leat_time)t.tv_sec * LEAT_SECOND + (leat_time)t.tv_nsec;
}

static int open_socket(uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof to) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Sends what there is. The endpoint writes several datagrams of `segment` bytes behind each other;
 * a plain socket sends them one by one. */
static void send_all(int fd, leat_endpoint *endpoint)
{
    static uint8_t buf[65536];
    leat_send_info info;
    size_t len;

    while ((len = leat_endpoint_send(endpoint, buf, sizeof buf, &info)) > 0) {
        for (size_t at = 0; at < len; at += info.segment) {
            size_t n = len - at < info.segment ? len - at : info.segment;

            send(fd, buf + at, n, 0); /* a datagram lost here is lost like any other */
        }
    }
}

static void receive_all(int fd, leat_endpoint *endpoint, const leat_recv_info *info)
{
    static uint8_t buf[65536];
    ssize_t n;

    while ((n = recv(fd, buf, sizeof buf, 0)) > 0) {
        leat_endpoint_recv_copy(endpoint, buf, (size_t)n, info);
    }
}

/* How long poll() may wait, in its milliseconds, rounded up. */
static int wait_ms(leat_time deadline)
{
    leat_time t = now();

    if (deadline == LEAT_TIME_NEVER) {
        return -1;
    }
    return deadline <= t ? 0 : (int)((deadline - t + LEAT_MILLISECOND - 1) / LEAT_MILLISECOND);
}

static void run(int fd, leat_ctx *ctx, leat_endpoint *endpoint, const leat_recv_info *info,
                const asker *a)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        leat_ctx_turn(ctx, now()); /* events happen here */
        send_all(fd, endpoint);
        if (a->over) {
            return;
        }
        if (poll(&p, 1, wait_ms(leat_ctx_deadline(ctx))) > 0) {
            receive_all(fd, endpoint, info);
        }
    }
}

/* ---- start ---- */

static leat_tls_config *make_tls(void)
{
    static const char *const alpn[] = {"echo"};
    leat_tls_settings settings;
    leat_tls_config *config = NULL;

    leat_tls_settings_init(&settings);
    settings.alpn = alpn;
    settings.alpn_count = 1;
    settings.verify = settings.verify_host = settings.system_ca = false;
    leat_tls_config_client(&settings, &config, NULL);
    return config;
}

static leat_ctx *make_ctx(void)
{
    leat_ctx_settings settings;
    leat_ctx *ctx = NULL;

    leat_ctx_settings_init(&settings);
    if (getrandom(settings.seed, sizeof settings.seed, 0) == (ssize_t)sizeof settings.seed) {
        leat_ctx_new(&settings, &ctx);
    }
    if (ctx) {
        leat_ctx_set_now(ctx, now());
    }
    return ctx;
}

int main(int argc, char **argv)
{
    leat_addr server = {
        .family = 4, .port = argc == 3 ? (uint16_t)atoi(argv[1]) : 0, .ip = {127, 0, 0, 1}};
    leat_recv_info info = {.remote = server};
    asker a = {.question = argc == 3 ? argv[2] : ""};
    leat_tls_config *tls = make_tls();
    leat_ctx *ctx = make_ctx();
    leat_connect how = {
        .remote = server, .server_name = "localhost", .tls = tls, .events = &events, .user = &a};
    leat_endpoint_settings settings;
    leat_endpoint *endpoint = NULL;
    leat_conn *conn;
    int fd = open_socket(server.port);

    if (argc != 3 || fd < 0 || !tls || !ctx) {
        fprintf(stderr, "usage: poll_echo PORT TEXT\n");
        return 1;
    }
    leat_endpoint_settings_init(&settings);
    if (leat_endpoint_new(ctx, &settings, &endpoint) == LEAT_OK &&
        leat_conn_connect(endpoint, &how, &conn) == LEAT_OK) {
        run(fd, ctx, endpoint, &info, &a);
    }
    leat_endpoint_free(endpoint);
    leat_ctx_free(ctx);
    leat_tls_config_free(tls);
    close(fd);
    putchar('\n');
    return a.good ? 0 : 1;
}
