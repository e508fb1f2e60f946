/* The ready loop: timers, wake-ups from other threads, watches, sockets with an endpoint (a fake
 * one) behind them.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/assert.h"
#include "fake_endpoint.h"
#include "net/udpip.h"

static leat_loop *new_loop(void)
{
    leat_loop *loop;
    assert_int_equal(leat_loop_new(NULL, &loop), LEAT_OK);
    return loop;
}

static void turn(leat_loop *loop)
{
    assert_int_equal(leat_loop_turn(loop, LEAT_TIME_NEVER), LEAT_OK);
}

/* ---- timers and tasks ------------------------------------------------------------------------ */

static leat_loop *stopping; /* the loop that a callback stops */

static void stop_by_timer(leat_timer *timer, leat_time now)
{
    (void)timer;
    (void)now;
    leat_loop_stop(stopping);
}

static void timer_fires_not_before_its_time(void **state)
{
    (void)state;
    leat_loop *loop = stopping = new_loop();
    leat_timer timer;
    leat_timer_init(&timer, leat_loop_ctx(loop), stop_by_timer);
    leat_time at = leat_clock_now() + 3 * LEAT_MILLISECOND;
    leat_timer_set(&timer, at);
    assert_int_equal(leat_loop_run(loop), LEAT_OK);
    assert_true(leat_clock_now() >= at);
    assert_true(leat_ctx_now(leat_loop_ctx(loop)) >= at);
    leat_loop_free(loop);
}

static void turn_waits_at_most_until_the_deadline_given(void **state)
{
    (void)state;
    leat_loop *loop = new_loop();
    assert_int_equal(leat_loop_turn(loop, 0), LEAT_OK); /* has passed: does not wait */
    leat_time at = leat_clock_now() + LEAT_MILLISECOND;
    assert_int_equal(leat_loop_turn(loop, at), LEAT_OK);
    assert_true(leat_clock_now() >= at);
    leat_loop_free(loop);
}

static void count_down(leat_task *task)
{
    static int left = 5;
    if (--left > 0) {
        leat_ctx_run_soon(task->ctx, task);
    } else {
        left = 5;
        leat_loop_stop(stopping);
    }
}

static void waiting_tasks_keep_the_loop_from_sleeping(void **state)
{
    (void)state;
    leat_loop *loop = stopping = new_loop();
    leat_task task;
    leat_task_init(&task, leat_loop_ctx(loop), count_down);
    leat_ctx_run_soon(leat_loop_ctx(loop), &task);
    assert_int_equal(leat_loop_run(loop), LEAT_OK); /* nothing else would wake it */
    leat_loop_free(loop);
}

/* ---- other threads --------------------------------------------------------------------------- */

static void stop_by_task(leat_task *task)
{
    (void)task;
    leat_loop_stop(stopping);
}

static void *post_task(void *arg)
{
    leat_task *task = arg;
    leat_ctx_post(task->ctx, task);
    return NULL;
}

static void post_from_another_thread_wakes_the_loop(void **state)
{
    (void)state;
    leat_loop *loop = stopping = new_loop();
    leat_task task;
    pthread_t thread;
    leat_task_init(&task, leat_loop_ctx(loop), stop_by_task);
    for (int i = 0; i < 200; i++) {
        assert_int_equal(pthread_create(&thread, NULL, post_task, &task), 0);
        assert_int_equal(leat_loop_run(loop), LEAT_OK);
        pthread_join(thread, NULL);
    }
    leat_loop_free(loop);
}

static void *stop_loop(void *arg)
{
    leat_loop_stop(arg);
    return NULL;
}

static void another_thread_stops_the_loop(void **state)
{
    (void)state;
    leat_loop *loop = new_loop();
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, stop_loop, loop), 0);
    assert_int_equal(leat_loop_run(loop), LEAT_OK);
    pthread_join(thread, NULL);
    leat_loop_free(loop);
}

static void stop_by_signal(int number)
{
    (void)number;
    leat_loop_stop(stopping);
}

static void raise_by_task(leat_task *task)
{
    (void)task;
    raise(SIGUSR1);
}

static void signal_handler_stops_the_loop(void **state)
{
    (void)state;
    leat_loop *loop = stopping = new_loop();
    struct sigaction action = {.sa_handler = stop_by_signal}, old;
    assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
    leat_task task;
    leat_task_init(&task, leat_loop_ctx(loop), raise_by_task);
    leat_ctx_run_soon(leat_loop_ctx(loop), &task);
    assert_int_equal(leat_loop_run(loop), LEAT_OK);
    sigaction(SIGUSR1, &old, NULL);
    leat_loop_free(loop);
}

/* ---- watches --------------------------------------------------------------------------------- */

typedef struct watched {
    leat_watch *watch;
    leat_watch *other; /* removed, if set */
    int calls;
    uint32_t ready;
    bool remove;
    leat_loop *loop;
} watched;

static void watch_called(leat_watch *watch, int fd, uint32_t ready, void *user)
{
    watched *w = user;
    char byte;
    assert_ptr_equal(watch, w->watch);
    w->calls++;
    w->ready = ready;
    if ((ready & LEAT_WATCH_READ) != 0) {
        assert_true(read(fd, &byte, 1) <= 1);
    }
    if (w->other != NULL) {
        leat_watch_remove(w->other);
        w->other = NULL;
    }
    if (w->remove) {
        leat_watch_remove(watch);
        w->watch = NULL;
    }
}

static void watch_tells_when_ready(void **state)
{
    (void)state;
    leat_loop *loop = new_loop();
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    watched in = {0}, out = {0};
    assert_int_equal(leat_watch_add(loop, fds[0], LEAT_WATCH_READ, watch_called, &in, &in.watch),
                     LEAT_OK);
    assert_int_equal(leat_watch_add(loop, fds[1], 0, watch_called, &out, &out.watch), LEAT_OK);
    assert_int_equal(leat_loop_turn(loop, 0), LEAT_OK);
    assert_int_equal(in.calls + out.calls, 0);
    assert_int_equal(leat_watch_set(out.watch, LEAT_WATCH_WRITE), LEAT_OK);
    turn(loop);
    assert_int_equal(out.calls, 1);
    assert_int_equal(out.ready, LEAT_WATCH_WRITE);
    assert_int_equal(leat_watch_set(out.watch, 0), LEAT_OK);
    assert_int_equal(write(fds[1], "xy", 2), 2);
    turn(loop);
    turn(loop); /* level-triggered: the second byte is still there */
    assert_int_equal(in.calls, 2);
    assert_int_equal(in.ready, LEAT_WATCH_READ);
    leat_watch_remove(out.watch);
    close(fds[1]);
    turn(loop); /* hung up: ready for whatever it wants */
    assert_int_equal(in.calls, 3);
    leat_watch_remove(in.watch);
    assert_int_equal(leat_loop_turn(loop, 0), LEAT_OK);
    assert_int_equal(in.calls, 3);
    close(fds[0]);
    leat_loop_free(loop);
}

static void watch_may_remove_itself_and_others_that_are_ready(void **state)
{
    (void)state;
    leat_loop *loop = new_loop();
    int a[2], b[2];
    assert_int_equal(pipe(a), 0);
    assert_int_equal(pipe(b), 0);
    watched x = {.remove = true}, y = {.remove = true};
    assert_int_equal(leat_watch_add(loop, a[0], LEAT_WATCH_READ, watch_called, &x, &x.watch), 0);
    assert_int_equal(leat_watch_add(loop, b[0], LEAT_WATCH_READ, watch_called, &y, &y.watch), 0);
    x.other = y.watch; /* whichever is first removes both */
    y.other = x.watch;
    assert_int_equal(write(a[1], "x", 1), 1);
    assert_int_equal(write(b[1], "y", 1), 1);
    turn(loop);
    assert_int_equal(x.calls + y.calls, 1);
    assert_int_equal(leat_loop_turn(loop, 0), LEAT_OK);
    assert_int_equal(x.calls + y.calls, 1);
    leat_loop_free(loop);
    for (int i = 0; i < 2; i++) {
        close(a[i]);
        close(b[i]);
    }
}

static void watch_on_what_cannot_be_watched_is_refused(void **state)
{
    (void)state;
    leat_loop *loop = new_loop();
    leat_watch *watch;
    assert_int_equal(leat_watch_add(loop, -1, LEAT_WATCH_READ, watch_called, NULL, &watch),
                     LEAT_ERR_IO);
    assert_null(watch);
    leat_watch_remove(NULL);
    leat_loop_free(loop);
}

/* ---- sockets --------------------------------------------------------------------------------- */

static leat_udp *open_udp(leat_loop *loop, const char *local, const leat_addr *remote)
{
    leat_udp_settings s;
    leat_endpoint_settings e = {0};
    leat_udp *udp;
    leat_udp_settings_init(&s);
    if (local != NULL) {
        s.local = parse_addr(local);
    }
    if (remote != NULL) {
        s.remote = *remote;
    }
    assert_int_equal(leat_udp_open(loop, &s, &e, &udp), LEAT_OK);
    return udp;
}

static void nothing(leat_timer *timer, leat_time now)
{
    (void)timer;
    (void)now;
}

/* Turns among ten, each until a timer, in which the thread did not give up its core. */
static int turns_awake(int busy_poll)
{
    leat_loop *loop = new_loop();
    leat_endpoint_settings e = {0};
    leat_udp_settings s;
    leat_udp *udp;
    leat_timer timer;
    int awake = 0;

    leat_udp_settings_init(&s);
    s.local = parse_addr("127.0.0.1:0");
    s.busy_poll = busy_poll;
    assert_int_equal(leat_udp_open(loop, &s, &e, &udp), LEAT_OK);
    leat_timer_init(&timer, leat_loop_ctx(loop), nothing);
    for (int i = 0; i < 10; i++) {
        struct rusage before, after;
        leat_time at = leat_clock_now() + 5 * LEAT_MILLISECOND;

        leat_timer_set(&timer, at);
        assert_int_equal(getrusage(RUSAGE_THREAD, &before), 0);
        turn(loop);
        assert_int_equal(getrusage(RUSAGE_THREAD, &after), 0);
        assert_true(leat_clock_now() >= at);
        awake += after.ru_nvcsw == before.ru_nvcsw;
    }
    leat_loop_free(loop);
    return awake;
}

/* A minute of it: no turn may last so long, for its timer is due before. */
static void busy_poll_looks_instead_of_sleeping_until_the_deadline(void **state)
{
    (void)state;
    assert_true(turns_awake(0) < 10); /* a machine that is held up may find some timers due */
    assert_true(turns_awake(60000000) > 0);
}

static void sockets_carry_batches_between_endpoints(void **state)
{
    (void)state;
    leat_loop *loop = new_loop();
    leat_udp *server = open_udp(loop, "127.0.0.1:0", NULL);
    leat_addr at = leat_udp_local(server);
    leat_udp *client = open_udp(loop, NULL, &at);
    leat_endpoint *from = leat_udp_endpoint(client);
    leat_endpoint *to = leat_udp_endpoint(server);
    to->echo = true;
    for (int i = 0; i < 20; i++) {
        fake_queue(from, &at, 10 * 1300, 1300, (uint8_t)(i + 1), LEAT_ECN_ECT0);
    }
    leat_udp_stats stats = {0};
    while (stats.recv_datagrams < 200) {
        turn(loop); /* a batch that waits keeps it from sleeping, and so does what has come */
        leat_udp_stats_get(client, &stats);
    }
    assert_int_equal(stats.recv_datagrams, 200);
    assert_int_equal(stats.send_datagrams, 200);
    assert_int_equal(stats.recv_bytes, 20 * 10 * 1300);
    uint8_t fill = 0;
    for (size_t i = 0; i < from->received_count; i++) {
        assert_same_addr(&from->received[i].info.remote, &at);
        assert_int_equal(from->received[i].info.ecn, LEAT_ECN_ECT0);
        assert_true(from->received[i].buf.data[0] >= fill);
        fill = from->received[i].buf.data[0];
    }
    assert_int_equal(fill, 20);
    leat_udp_close(client);
    leat_loop_free(loop); /* closes the other */
}

static void closing_sends_what_waits(void **state)
{
    (void)state;
    leat_loop *loop = new_loop();
    leat_udp *server = open_udp(loop, "127.0.0.1:0", NULL);
    leat_addr at = leat_udp_local(server);
    leat_udp *client = open_udp(loop, NULL, &at);
    fake_queue(leat_udp_endpoint(client), &at, 30, 30, 1, 0);
    leat_udp_close(client);
    turn(loop);
    assert_int_equal(leat_udp_endpoint(server)->received_count, 1);
    leat_loop_free(loop);
}

static void socket_survives_a_peer_that_is_gone(void **state)
{
    (void)state;
    leat_loop *loop = new_loop();
    leat_udp *server = open_udp(loop, "127.0.0.1:0", NULL);
    leat_addr at = leat_udp_local(server);
    leat_udp *client = open_udp(loop, NULL, &at);
    leat_udp_close(server);
    for (int i = 0; i < 3; i++) {
        fake_queue(leat_udp_endpoint(client), &at, 30, 30, 1, 0);
        turn(loop); /* sends; ICMP comes back and is a report of the next turn */
    }
    assert_int_equal(leat_loop_turn(loop, 0), LEAT_OK);
    leat_udp_settings s;
    leat_endpoint_settings e = {0};
    leat_udp_settings_init(&s);
    s.local = at;
    assert_int_equal(leat_udp_open(loop, &s, &e, &server), LEAT_OK);
    fake_queue(leat_udp_endpoint(client), &at, 30, 30, 2, 0);
    while (leat_udp_endpoint(server)->received_count == 0) {
        turn(loop);
    }
    leat_loop_free(loop);
}

/* ---- several sockets of an endpoint ---- */

static leat_addr add_socket(leat_udp *udp, const char *local, const leat_addr *remote)
{
    leat_udp_settings s;
    leat_addr at;
    leat_udp_settings_init(&s);
    if (local != NULL) {
        s.local = parse_addr(local);
    }
    if (remote != NULL) {
        s.remote = *remote;
    }
    assert_int_equal(leat_udp_add(udp, &s, &at), LEAT_OK);
    return at;
}

/* Turns until so many messages have come. */
static void await(leat_loop *loop, leat_udp *udp, size_t count)
{
    while (leat_udp_endpoint(udp)->received_count < count) {
        turn(loop);
    }
    assert_int_equal(leat_udp_endpoint(udp)->received_count, count);
}

static void a_server_answers_from_where_it_was_asked(void **state)
{
    (void)state;
    leat_loop *loop = new_loop();
    leat_udp *server = open_udp(loop, "127.0.0.1:0", NULL);
    leat_addr at[2] = {leat_udp_local(server), add_socket(server, "127.0.0.1:0", NULL)};
    leat_udp *client = open_udp(loop, "127.0.0.1:0", NULL);
    leat_endpoint *from = leat_udp_endpoint(client);
    assert_int_not_equal(at[0].port, at[1].port);
    leat_udp_endpoint(server)->echo = true;
    for (size_t i = 0; i < 6; i++) {
        fake_queue(from, &at[i % 2], 3 * 1200, 1200, (uint8_t)i, 0);
        leat_udp_stats stats = {0};
        while (stats.recv_datagrams < 3 * (i + 1)) {
            turn(loop);
            leat_udp_stats_get(client, &stats);
        }
        assert_same_addr(&from->received[from->received_count - 1].info.remote, &at[i % 2]);
    }
    leat_loop_free(loop);
}

/* Where a server would be met. Its socket is connected to the server, and to nobody else. */
static void a_connected_client_opens_a_way_to_another_address(void **state)
{
    (void)state;
    leat_loop *loop = new_loop();
    leat_udp *server = open_udp(loop, "127.0.0.1:0", NULL);
    leat_addr first = leat_udp_local(server), second = add_socket(server, "127.0.0.1:0", NULL);
    leat_udp *client = open_udp(loop, NULL, &first);
    leat_endpoint *from = leat_udp_endpoint(client), *to = leat_udp_endpoint(server);
    fake_queue(from, &first, 30, 30, 1, 0);
    fake_queue(from, &second, 30, 30, 2, 0);
    await(loop, server, 2);
    leat_addr here[2] = {to->received[0].info.remote, to->received[1].info.remote};
    assert_same_addr(&to->received[0].info.local, &first);
    assert_same_addr(&to->received[1].info.local, &second);
    assert_int_not_equal(here[0].port, here[1].port);
    leat_addr local = leat_udp_local(client);
    assert_same_addr(&here[0], &local);
    /* It stays the way there, and both hear the answers. */
    fake_queue_from(from, &here[1], &second, 30, 30, 3, 0);
    fake_queue(from, &second, 30, 30, 4, 0);
    await(loop, server, 4);
    assert_same_addr(&to->received[2].info.remote, &here[1]);
    assert_same_addr(&to->received[3].info.remote, &here[1]);
    fake_queue_from(to, &second, &here[1], 30, 30, 5, 0);
    fake_queue_from(to, &first, &here[0], 30, 30, 6, 0);
    await(loop, client, 2);
    for (size_t i = 0; i < 2; i++) {
        size_t which = from->received[i].buf.data[0] == 5 ? 1 : 0;
        assert_same_addr(&from->received[i].info.local, &here[which]);
        assert_same_addr(&from->received[i].info.remote, which ? &second : &first);
    }
    leat_loop_free(loop);
}

static void a_client_sends_from_the_socket_that_it_migrates_to(void **state)
{
    (void)state;
    leat_loop *loop = new_loop();
    leat_udp *server = open_udp(loop, "127.0.0.1:0", NULL);
    leat_addr at = leat_udp_local(server);
    leat_udp *client = open_udp(loop, NULL, &at);
    leat_endpoint *from = leat_udp_endpoint(client), *to = leat_udp_endpoint(server);
    leat_addr old = leat_udp_local(client);
    for (size_t i = 0; i < 20; i++) { /* with room again after each */
        leat_addr next = add_socket(client, NULL, &at);
        fake_queue_from(from, &old, &at, 30, 30, 1, 0);
        fake_queue_from(from, &next, &at, 30, 30, 2, 0);
        await(loop, server, 2);
        assert_same_addr(&to->received[0].info.remote, &old);
        assert_same_addr(&to->received[1].info.remote, &next);
        fake_forget(to);
        leat_udp_remove(client, &next);
    }
    /* The first stays. */
    leat_udp_remove(client, &old);
    fake_queue(from, &at, 30, 30, 3, 0);
    await(loop, server, 1);
    leat_loop_free(loop);
}

static void what_is_refused_of_further_sockets(void **state)
{
    (void)state;
    leat_loop *loop = new_loop();
    leat_udp *udp = open_udp(loop, "127.0.0.1:0", NULL), *any = open_udp(loop, ":0", NULL);
    leat_udp_settings s;
    leat_addr at;
    leat_udp_settings_init(&s);
    assert_int_equal(leat_udp_add(udp, &s, &at), LEAT_ERR_ADDRESS);
    s.local = leat_udp_local(udp);
    assert_int_equal(leat_udp_add(udp, &s, &at), LEAT_ERR_IO); /* in use */
    s.send_buffer = 0;
    assert_int_equal(leat_udp_add(udp, &s, &at), LEAT_ERR_INVALID);
    for (unsigned i = 1; i < LEAT_UDP_SOCKETS_MAX; i++) {
        add_socket(udp, "127.0.0.1:0", NULL);
    }
    leat_udp_settings_init(&s);
    s.local = parse_addr("127.0.0.1:0");
    assert_int_equal(leat_udp_add(udp, &s, &at), LEAT_ERR_LIMIT);
    /* Bound to any address: one of them, with the same port, is there already. */
    s.local.port = leat_udp_local(any).port;
    for (unsigned i = 0; i < 2 * LEAT_UDP_SOCKETS_MAX; i++) {
        assert_int_equal(leat_udp_add(any, &s, &at), LEAT_OK);
        assert_same_addr(&at, &s.local);
    }
    /* What leads nowhere does not end anything. */
    leat_udp *client = open_udp(loop, NULL, &s.local);
    leat_addr dark = parse_addr("[2001:db8::1]:9");
    fake_queue(leat_udp_endpoint(client), &dark, 30, 30, 1, 0);
    fake_queue(leat_udp_endpoint(client), &s.local, 30, 30, 1, 0);
    await(loop, any, 1);
    leat_loop_free(loop);
}

/* How many records a capture file holds, from which port each comes, and that each is a whole
 * packet. */
static int read_capture(const char *path, uint16_t ports[], int max)
{
    leat_mem *mem;
    leat_buf buf;
    int n = 0;
    assert_int_equal(leat_mem_new(NULL, &mem), LEAT_OK);
    assert_int_equal(leat_file_read(mem, path, 100000, &buf), LEAT_OK);
    for (size_t at = 24; at + 16 < buf.len; n++) {
        uint32_t len;
        leat_udpip how;
        leat_span payload;
        memcpy(&len, buf.data + at + 8, sizeof(len));
        assert_true(n < max);
        assert_int_equal(leat_udpip_parse(buf.data + at + 16, len, &how, &payload), LEAT_OK);
        ports[n] = how.src.port;
        at += 16 + len;
    }
    leat_buf_release(&buf);
    leat_mem_free(mem);
    return n;
}

static void capture_has_each_datagram_of_both_directions(void **state)
{
    (void)state;
    char path[] = "/tmp/leat-capture-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    leat_pcap *pcap;
    leat_loop *loop = new_loop();
    leat_udp *server = open_udp(loop, ":0", NULL); /* both families: the addresses are IPv4 */
    leat_addr at = parse_addr("127.0.0.1:0");
    at.port = leat_udp_local(server).port;
    leat_udp *client = open_udp(loop, NULL, &at);
    leat_udp_endpoint(server)->echo = true;
    assert_int_equal(leat_pcap_open(path, &pcap), LEAT_OK);
    leat_udp_capture(server, pcap);
    fake_queue(leat_udp_endpoint(client), &at, 2 * 1300 + 5, 1300, 1, 0);
    leat_udp_stats stats = {0};
    while (stats.recv_datagrams < 3) {
        turn(loop);
        leat_udp_stats_get(client, &stats);
    }
    leat_udp_capture(server, NULL);
    assert_int_equal(leat_pcap_close(pcap), LEAT_OK);
    uint16_t ports[6];
    assert_int_equal(read_capture(path, ports, 6), 6);
    for (int i = 0; i < 6; i++) {
        const leat_udp *from = i < 3 ? client : server;
        assert_int_equal(ports[i], leat_udp_local(from).port);
    }
    unlink(path);
    leat_loop_free(loop);
}

static void settings_out_of_bounds_are_refused(void **state)
{
    (void)state;
    leat_loop *loop = new_loop();
    leat_udp_settings s;
    leat_endpoint_settings e = {0};
    leat_udp *udp;
    leat_udp_settings_init(&s);
    assert_int_equal(leat_udp_open(loop, &s, &e, &udp), LEAT_ERR_ADDRESS);
    s.local = parse_addr("127.0.0.1:0");
    s.recv_buffer = LEAT_SOCKET_BUFFER_MIN - 1;
    assert_int_equal(leat_udp_open(loop, &s, &e, &udp), LEAT_ERR_INVALID);
    assert_null(udp);
    leat_udp_close(NULL);
    leat_loop_free(loop);
    leat_loop_free(NULL);
}

static void steady_exchange_does_not_grow_memory(void **state)
{
    (void)state;
    leat_loop *loop = new_loop();
    leat_udp *server = open_udp(loop, "127.0.0.1:0", NULL);
    leat_addr at = leat_udp_local(server);
    leat_udp *client = open_udp(loop, NULL, &at);
    leat_udp_endpoint(server)->echo = true;
    leat_mem_stats warm = {0}, end;
    leat_udp_stats stats = {0};
    for (uint64_t round = 0; round < 200; round++) {
        fake_queue(leat_udp_endpoint(client), &at, 44 * 1400, 1400, 1, 0); /* handed on as it is */
        fake_queue(leat_udp_endpoint(client), &at, 1200, 1200, 2, 0);      /* copied */
        while (stats.recv_datagrams < (round + 1) * 45) {
            turn(loop);
            leat_udp_stats_get(client, &stats);
        }
        fake_forget(leat_udp_endpoint(client));
        if (round == 20) {
            leat_mem_stats_get(leat_ctx_mem(leat_loop_ctx(loop)), &warm);
        }
    }
    leat_mem_stats_get(leat_ctx_mem(leat_loop_ctx(loop)), &end);
    assert_int_equal(end.grown, warm.grown);
    assert_int_equal(end.system_high, warm.system_high);
    leat_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timer_fires_not_before_its_time),
        cmocka_unit_test(turn_waits_at_most_until_the_deadline_given),
        cmocka_unit_test(waiting_tasks_keep_the_loop_from_sleeping),
        cmocka_unit_test(post_from_another_thread_wakes_the_loop),
        cmocka_unit_test(another_thread_stops_the_loop),
        cmocka_unit_test(signal_handler_stops_the_loop),
        cmocka_unit_test(watch_tells_when_ready),
        cmocka_unit_test(watch_may_remove_itself_and_others_that_are_ready),
        cmocka_unit_test(watch_on_what_cannot_be_watched_is_refused),
        cmocka_unit_test(busy_poll_looks_instead_of_sleeping_until_the_deadline),
        cmocka_unit_test(sockets_carry_batches_between_endpoints),
        cmocka_unit_test(closing_sends_what_waits),
        cmocka_unit_test(socket_survives_a_peer_that_is_gone),
        cmocka_unit_test(a_server_answers_from_where_it_was_asked),
        cmocka_unit_test(a_connected_client_opens_a_way_to_another_address),
        cmocka_unit_test(a_client_sends_from_the_socket_that_it_migrates_to),
        cmocka_unit_test(what_is_refused_of_further_sockets),
        cmocka_unit_test(capture_has_each_datagram_of_both_directions),
        cmocka_unit_test(settings_out_of_bounds_are_refused),
        cmocka_unit_test(steady_exchange_does_not_grow_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
