/* Sockets of several loops on one address: datagrams come to the loop that has their connection,
 * whatever port they are sent from, steered by the kernel or handed over.
 *
 * The client has one endpoint and many sockets, and sends what it has to say from another one all
 * the time, so that its connections move between ports under way.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "io/group.h"

enum {
    LOOPS = 3,
    CONNS = 12,
    PORTS = 8,
    FIRST = 100,     /* bytes there and back on each connection before it moves: RFC 9000 s9 */
    BYTES = 100000,  /* and while it moves */
    MOVE_AFTER = 60, /* datagrams */
    LIMIT_S = 60     /* for a machine that does other things */
};

/* ---- the parts ---- */

static void ids_tell_their_member(void **state)
{
    uint8_t datagram[20] = {0};

    (void)state;
    for (unsigned count = 1; count <= LEAT_UDP_GROUP_MAX; count++) {
        for (unsigned first = 0; first < 256; first++) {
            for (unsigned member = 0; member < count; member++) {
                uint8_t cid[8] = {(uint8_t)first};

                leat_group_mark(cid, count, member);
                datagram[0] = 0x40;
                datagram[1] = cid[0];
                assert_int_equal(leat_group_member_of(datagram, 20, count, 0), member);
                datagram[0] = 0xc0;
                datagram[5] = 8;
                datagram[6] = cid[0];
                assert_int_equal(leat_group_member_of(datagram, 20, count, 0), member);
            }
        }
    }
}

static void what_does_not_tell_stays(void **state)
{
    uint8_t no_id[20] = {0xc0, 0, 0, 0, 1, 0, 7};
    uint8_t short_one[6] = {0x40, 7, 7, 7, 7, 7};

    (void)state;
    assert_int_equal(leat_group_member_of(no_id, sizeof no_id, 5, 3), 3);
    assert_int_equal(leat_group_member_of(short_one, sizeof short_one, 5, 3), 3);
    assert_int_equal(leat_group_member_of(short_one, 0, 5, 3), 3);
}

static void no_work(leat_task *task)
{
    (void)task;
}

static void box_keeps_order_and_has_an_end(void **state)
{
    static uint8_t data[LEAT_GROUP_DATAGRAM + 1];
    leat_recv_info info = {.remote = {.family = 4, .port = 1}, .segment = 77}, out;
    leat_group_box *box;
    leat_loop *loop;
    leat_mem *mem;
    leat_buf buf;

    (void)state;
    assert_int_equal(leat_loop_new(NULL, &loop), LEAT_OK);
    mem = leat_ctx_mem(leat_loop_ctx(loop));
    assert_int_equal(leat_group_box_new(leat_loop_ctx(loop), no_work, NULL, &box), LEAT_OK);
    assert_false(leat_group_box_put(box, data, LEAT_GROUP_DATAGRAM + 1, &info));
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < LEAT_GROUP_BOX; i++) {
            data[0] = (uint8_t)i;
            assert_true(leat_group_box_put(box, data, i + 1, &info));
        }
        assert_false(leat_group_box_put(box, data, 1, &info));
        for (size_t i = 0; i < LEAT_GROUP_BOX; i++) {
            assert_int_equal(leat_group_box_take(box, mem, &buf, &out), LEAT_OK);
            assert_int_equal(buf.len, i + 1);
            assert_int_equal(buf.data[0], i);
            assert_same_addr(&out.remote, &info.remote);
            assert_int_equal(out.segment, 0);
            leat_buf_release(&buf);
        }
        assert_int_equal(leat_group_box_take(box, mem, &buf, &out), LEAT_ERR_BLOCKED);
    }
    leat_group_box_free(box);
    leat_loop_free(loop);
}

/* ---- the server: loops that echo ---- */

typedef struct member {
    leat_loop *loop;
    leat_udp *udp;
    pthread_t thread;
    unsigned accepted;
} member;

typedef struct world {
    leat_udp_group group;
    member members[LOOPS];
    leat_tls_config *server_tls, *client_tls;
    leat_shared *shared;
    leat_ctx *ctx; /* the client's */
    leat_endpoint *client;
    int socks[PORTS];
    leat_addr server;
    unsigned sent; /* datagrams, since they move */
    bool moving;
    unsigned ready, done, lost;
} world;

static void server_connected(leat_conn *conn, void *user)
{
    (void)conn;
    ((member *)user)->accepted++;
}

static void echo_back(leat_conn *conn, leat_stream *stream, void *user)
{
    leat_span span;

    (void)conn, (void)user;
    while ((span = leat_stream_peek(stream)).len > 0) {
        size_t written = 0;

        if (leat_stream_write(stream, span.data, span.len, &written) != LEAT_OK) {
            return; /* stream_writable comes */
        }
        leat_stream_consume(stream, written);
    }
    if (leat_stream_recv_done(stream)) {
        leat_stream_finish(stream);
    }
}

static const leat_conn_events server_events = {
    .connected = server_connected, .stream_readable = echo_back, .stream_writable = echo_back};

static void *run_member(void *user)
{
    member *m = user;

    return leat_loop_run(m->loop) == LEAT_OK ? m : NULL;
}

static void make_tls(world *w)
{
    static char cert[LEAT_TLS_PEM_MAX], key[LEAT_TLS_PEM_MAX];
    static const char *const hosts[] = {"localhost"}, *const alpn[] = {"leat-test"};
    int64_t now = (int64_t)time(NULL);
    leat_tls_self_signed request = {
        .hosts = hosts, .host_count = 1, .not_before = now - 3600, .not_after = now + 86400};
    leat_tls_settings tls;
    leat_tls_error error;
    size_t cert_len, key_len;

    assert_int_equal(leat_tls_make_self_signed(&request, cert, &cert_len, key, &key_len, &error),
                     LEAT_OK);
    leat_tls_settings_init(&tls);
    tls.alpn = alpn;
    tls.alpn_count = 1;
    tls.system_ca = false;
    tls.cert_pem = (leat_span){(const uint8_t *)cert, cert_len};
    tls.key_pem = (leat_span){(const uint8_t *)key, key_len};
    assert_int_equal(leat_tls_config_server(&tls, &w->server_tls, &error), LEAT_OK);
    tls.cert_pem = tls.key_pem = (leat_span){NULL, 0};
    tls.verify = tls.verify_host = false;
    assert_int_equal(leat_tls_config_client(&tls, &w->client_tls, &error), LEAT_OK);
}

static void open_members(world *w)
{
    leat_shared_settings shared;
    leat_udp_settings udp;
    leat_endpoint_settings endpoint;

    leat_shared_settings_init(&shared);
    assert_int_equal(leat_entropy(shared.seed, sizeof shared.seed), LEAT_OK);
    assert_int_equal(leat_shared_new(&shared, &w->shared), LEAT_OK);
    w->group.count = LOOPS;
    leat_udp_settings_init(&udp);
    udp.local = parse_addr("127.0.0.1:0");
    udp.group = &w->group;
    for (unsigned i = 0; i < LOOPS; i++) {
        member *m = &w->members[i];

        assert_int_equal(leat_loop_new(NULL, &m->loop), LEAT_OK);
        leat_endpoint_settings_init(&endpoint);
        endpoint.server_tls = w->server_tls;
        endpoint.events = &server_events;
        endpoint.user = m;
        endpoint.shared = w->shared;
        assert_int_equal(leat_udp_open(m->loop, &udp, &endpoint, &m->udp), LEAT_OK);
    }
    w->server = leat_udp_local(w->members[0].udp);
    for (unsigned i = 1; i < LOOPS; i++) {
        leat_addr local = leat_udp_local(w->members[i].udp);

        assert_same_addr(&local, &w->server);
    }
    /* It is full. */
    assert_int_equal(leat_udp_open(w->members[0].loop, &udp, &endpoint, &w->members[0].udp),
                     LEAT_ERR_INVALID);
    w->members[0].udp = w->group.members[0];
    for (unsigned i = 0; i < LOOPS; i++) {
        assert_int_equal(pthread_create(&w->members[i].thread, NULL, run_member, &w->members[i]),
                         0);
    }
}

/* ---- the client ---- */

typedef struct transfer {
    world *w;
    leat_conn *conn;
    size_t left, back; /* of the present stream */
    bool ready, ended;
} transfer;

static void write_more(leat_conn *conn, leat_stream *stream, void *user)
{
    static const uint8_t zeros[4096];
    transfer *t = user;

    (void)conn;
    while (t->left > 0) {
        size_t n = t->left < sizeof zeros ? t->left : sizeof zeros, written = 0;

        if (leat_stream_write(stream, zeros, n, &written) != LEAT_OK) {
            return;
        }
        t->left -= written;
    }
    leat_stream_finish(stream);
}

static void echo(transfer *t, size_t bytes)
{
    leat_stream *stream;

    t->left = bytes;
    t->back = 0;
    assert_int_equal(leat_stream_open(t->conn, true, &stream), LEAT_OK);
    write_more(t->conn, stream, t);
}

static void client_connected(leat_conn *conn, void *user)
{
    (void)conn;
    echo(user, FIRST);
}

static void read_back(leat_conn *conn, leat_stream *stream, void *user)
{
    transfer *t = user;
    leat_span span;

    (void)conn;
    while ((span = leat_stream_peek(stream)).len > 0) {
        t->back += span.len;
        leat_stream_consume(stream, span.len);
    }
    if (!leat_stream_recv_done(stream)) {
        return;
    }
    if (!t->ready) {
        t->ready = true;
        t->w->ready += t->back == FIRST;
    } else if (!t->ended) {
        t->ended = true;
        t->w->done += t->back == BYTES;
    }
}

static void client_closed(leat_conn *conn, const leat_close_info *info, void *user)
{
    transfer *t = user;

    (void)conn;
    if (!t->ended) {
        t->w->lost++;
        print_message("lost: %s (%#llx)\n", info->detail ? info->detail : leat_err_text(info->err),
                      (unsigned long long)info->code);
    }
}

static const leat_conn_events client_events = {.connected = client_connected,
                                               .stream_readable = read_back,
                                               .stream_writable = write_more,
                                               .closed = client_closed};

static void open_client(world *w)
{
    leat_ctx_settings ctx;
    leat_endpoint_settings endpoint;

    leat_ctx_settings_init(&ctx);
    assert_int_equal(leat_entropy(ctx.seed, sizeof ctx.seed), LEAT_OK);
    assert_int_equal(leat_ctx_new(&ctx, &w->ctx), LEAT_OK);
    leat_ctx_set_now(w->ctx, leat_clock_now());
    leat_endpoint_settings_init(&endpoint);
    assert_int_equal(leat_endpoint_new(w->ctx, &endpoint, &w->client), LEAT_OK);
    for (unsigned i = 0; i < PORTS; i++) {
        struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

        w->socks[i] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        assert_true(w->socks[i] >= 0);
        assert_int_equal(bind(w->socks[i], (struct sockaddr *)&any, sizeof any), 0);
    }
}

static void start(world *w, transfer *t)
{
    leat_connect how = {.remote = w->server,
                        .server_name = "localhost",
                        .tls = w->client_tls,
                        .events = &client_events,
                        .user = t};

    *t = (transfer){.w = w};
    assert_int_equal(leat_conn_connect(w->client, &how, &t->conn), LEAT_OK);
}

/* Sends from the port whose turn it is, once they move. What the kernel does not take is lost, and
 * comes again. */
static void client_send(world *w)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(w->server.port)};
    uint8_t data[2048];
    leat_send_info info;
    size_t n;

    memcpy(&to.sin_addr, w->server.ip, 4);
    while ((n = leat_endpoint_send(w->client, data, sizeof data, &info)) > 0) {
        for (size_t at = 0; at < n; at += info.segment) {
            size_t len = n - at < info.segment ? n - at : info.segment;
            int sock = w->socks[w->sent / MOVE_AFTER % PORTS];
            ssize_t ignored =
                sendto(sock, data + at, len, 0, (const struct sockaddr *)&to, sizeof to);

            (void)ignored;
            w->sent += w->moving;
        }
    }
}

static void client_receive(world *w, const struct pollfd *polled)
{
    uint8_t data[2048];
    ssize_t n;

    for (unsigned i = 0; i < PORTS; i++) {
        leat_recv_info info = {.remote = w->server};

        while (polled[i].revents && (n = recv(w->socks[i], data, sizeof data, 0)) > 0) {
            assert_int_equal(leat_endpoint_recv_copy(w->client, data, (size_t)n, &info), LEAT_OK);
        }
    }
}

static void client_turn(world *w)
{
    struct pollfd polled[PORTS];
    leat_time deadline = leat_ctx_deadline(w->ctx), now = leat_clock_now();
    int wait = deadline <= now ? 0 : 1000;

    if (deadline > now && deadline - now < LEAT_SECOND) {
        wait = (int)((deadline - now) / LEAT_MILLISECOND) + 1;
    }
    for (unsigned i = 0; i < PORTS; i++) {
        polled[i] = (struct pollfd){.fd = w->socks[i], .events = POLLIN};
    }
    assert_true(poll(polled, PORTS, wait) >= 0);
    now = leat_clock_now();
    leat_ctx_set_now(w->ctx, now);
    client_receive(w, polled);
    leat_ctx_turn(w->ctx, now);
    client_send(w);
}

static void close_all(world *w)
{
    for (unsigned i = 0; i < LOOPS; i++) {
        void *result;

        leat_loop_stop(w->members[i].loop);
        assert_int_equal(pthread_join(w->members[i].thread, &result), 0);
        assert_non_null(result);
    }
    leat_endpoint_free(w->client);
    leat_ctx_free(w->ctx);
    for (unsigned i = 0; i < PORTS; i++) {
        close(w->socks[i]);
    }
}

/* Moves every connection between ports all the time; returns what the loops handed over. */
static uint64_t move_connections(bool no_steering)
{
    static world w;
    static transfer transfers[CONNS];
    leat_time limit = leat_clock_now() + LIMIT_S * LEAT_SECOND;
    uint64_t handed = 0;
    unsigned accepted = 0;

    memset(&w, 0, sizeof w);
    w.group.no_steering = no_steering;
    make_tls(&w);
    open_members(&w);
    assert_int_equal(w.group.steered, !no_steering);
    open_client(&w);
    for (unsigned i = 0; i < CONNS; i++) {
        start(&w, &transfers[i]);
    }
    client_send(&w);
    while (w.ready < CONNS && w.lost == 0 && leat_clock_now() < limit) {
        client_turn(&w);
    }
    assert_int_equal(w.ready, CONNS);
    w.moving = true;
    for (unsigned i = 0; i < CONNS; i++) {
        echo(&transfers[i], BYTES);
    }
    while (w.done < CONNS && w.lost == 0 && leat_clock_now() < limit) {
        client_turn(&w);
    }
    assert_int_equal(w.lost, 0);
    assert_int_equal(w.done, CONNS);
    assert_true(w.sent > 10 * MOVE_AFTER); /* they did move: 1.2 MB are over 800 datagrams */
    close_all(&w);
    for (unsigned i = 0; i < LOOPS; i++) {
        leat_udp_stats stats;

        leat_udp_stats_get(w.members[i].udp, &stats);
        handed += stats.handed_over;
        accepted += w.members[i].accepted;
        leat_loop_free(w.members[i].loop);
    }
    assert_int_equal(accepted, CONNS); /* no connection began twice */
    leat_shared_free(w.shared);
    leat_tls_config_free(w.server_tls);
    leat_tls_config_free(w.client_tls);
    return handed;
}

static void kernel_steers_by_connection_id(void **state)
{
    (void)state;
    assert_int_equal(move_connections(false), 0);
}

static void loops_hand_over_what_lands_wrong(void **state)
{
    (void)state;
    assert_true(move_connections(true) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_tell_their_member),
        cmocka_unit_test(what_does_not_tell_stays),
        cmocka_unit_test(box_keeps_order_and_has_an_end),
        cmocka_unit_test(kernel_steers_by_connection_id),
        cmocka_unit_test(loops_hand_over_what_lands_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
