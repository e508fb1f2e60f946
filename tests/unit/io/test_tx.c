/* The sending side against a kernel of our own: sendmmsg() and sendmsg() are wrapped by the linker,
 * write down which datagrams would be on the wire, and fail as the test says.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io_fixture.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>

#include "io/tx.h"

/* ---- the kernel ------------------------------------------------------------------------------ */

enum { WIRE_MAX = 4096 };

static struct kernel {
    /* What leaves: the first bytes of each datagram, as the test numbered them, and its length. */
    uint32_t numbers[WIRE_MAX];
    size_t lens[WIRE_MAX];
    int fds[WIRE_MAX];
    size_t count;
    unsigned calls;
    unsigned messages; /* taken */
    /* How it fails. */
    int gso_error;     /* every message with UDP_SEGMENT fails so; 0: none */
    size_t mtu;        /* a datagram larger than this fails with EMSGSIZE, */
    int gso_too_large; /* with GSO so: EINVAL or EMSGSIZE by version */
    int once;          /* the next message fails so, once */
    unsigned times;    /* or so many times */
    unsigned room;     /* messages that it takes before EAGAIN */
    unsigned per_call; /* messages that one call takes at most */
} kernel;

static void kernel_reset(void)
{
    memset(&kernel, 0, sizeof(kernel));
    kernel.room = UINT32_MAX;
    kernel.per_call = UINT32_MAX;
    kernel.mtu = 65507;
    kernel.gso_too_large = EINVAL;
}

static size_t segment_of(const struct msghdr *msg)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c != NULL;
         c = CMSG_NXTHDR((struct msghdr *)msg, c)) {
        if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_SEGMENT) {
            uint16_t segment;
            memcpy(&segment, CMSG_DATA(c), sizeof(segment));
            return segment;
        }
    }
    return 0;
}

/* Takes one message or fails with an errno. */
static int take(int fd, const struct msghdr *msg)
{
    size_t len = msg->msg_iov[0].iov_len;
    const uint8_t *data = msg->msg_iov[0].iov_base;
    size_t segment = segment_of(msg);
    size_t one = segment != 0 ? segment : len;
    if (kernel.once != 0) {
        int error = kernel.once;
        kernel.times -= kernel.times > 0;
        kernel.once = kernel.times > 0 ? error : 0;
        return error;
    }
    if (kernel.room == 0) {
        return EAGAIN;
    }
    if (segment != 0 && kernel.gso_error != 0) {
        return kernel.gso_error;
    }
    if (one > kernel.mtu) {
        return segment != 0 ? kernel.gso_too_large : EMSGSIZE;
    }
    assert_true(len <= 65507);
    assert_true((len + one - 1) / one <= 64);
    kernel.room--;
    kernel.messages++;
    for (size_t at = 0; at < len; at += one) {
        assert_true(kernel.count < WIRE_MAX);
        memcpy(&kernel.numbers[kernel.count], data + at, sizeof(uint32_t));
        kernel.fds[kernel.count] = fd;
        kernel.lens[kernel.count++] = len - at < one ? len - at : one;
    }
    return 0;
}

int __wrap_sendmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags);

int __wrap_sendmmsg(int fd, struct mmsghdr *msgs, unsigned n, int flags)
{
    assert_int_equal(flags & MSG_DONTWAIT, MSG_DONTWAIT);
    kernel.calls++;
    for (unsigned i = 0; i < n && i < kernel.per_call; i++) {
        int error = take(fd, &msgs[i].msg_hdr);
        if (error != 0 && i > 0) {
            return (int)i;
        }
        if (error != 0) {
            errno = error;
            return -1;
        }
    }
    return (int)(n < kernel.per_call ? n : kernel.per_call);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    assert_int_equal(flags & MSG_DONTWAIT, MSG_DONTWAIT);
    kernel.calls++;
    int error = take(fd, msg);
    if (error != 0) {
        errno = error;
        return -1;
    }
    return (ssize_t)msg->msg_iov[0].iov_len;
}

/* ---- the sender ------------------------------------------------------------------------------ */

static leat_mem *mem;
static leat_tx tx;
static leat_sock sock;
static leat_udp_stats stats;
static uint32_t next_number;

static int set_up(void **state)
{
    (void)state;
    kernel_reset();
    next_number = 0;
    memset(&stats, 0, sizeof(stats));
    sock = (leat_sock){.fd = -1, .family = 4, .gso = true, .any = true};
    return leat_mem_new(NULL, &mem) == LEAT_OK && leat_tx_init(&tx, mem) == LEAT_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    leat_tx_free(&tx);
    leat_mem_free(mem);
    return 0;
}

/* Adds a batch whose datagrams begin with rising numbers. */
static void add_for(leat_sock *to, size_t len, size_t segment)
{
    uint8_t *room = leat_tx_room(&tx);
    assert_non_null(room);
    leat_send_info info = {.remote = parse_addr("127.0.0.1:9"), .segment = segment};
    for (size_t at = 0; at + sizeof(next_number) <= len; at += segment, next_number++) {
        memcpy(room + at, &next_number, sizeof(next_number));
    }
    leat_tx_add(&tx, to, len, &info);
}

static void add(size_t len, size_t segment)
{
    add_for(&sock, len, segment);
}

static leat_tx_result flush(void)
{
    return leat_tx_flush(&tx, &stats);
}

/* Everything added has left once and in order. */
static void assert_wire_has_all(void)
{
    assert_int_equal(kernel.count, next_number);
    for (uint32_t i = 0; i < kernel.count; i++) {
        assert_int_equal(kernel.numbers[i], i);
    }
    assert_true(leat_tx_empty(&tx));
    assert_int_equal(stats.send_datagrams, kernel.count);
    assert_int_equal(stats.send_messages, kernel.messages);
    assert_int_equal(stats.send_calls, kernel.calls);
    assert_int_equal(stats.send_failed, 0);
}

static void batches_leave_with_one_call(void **state)
{
    (void)state;
    add(44 * 1400 + 100, 1400);
    add(1200, 1200);
    add(3 * 1200, 1200);
    assert_int_equal(flush(), LEAT_TX_DONE);
    assert_wire_has_all();
    assert_int_equal(kernel.calls, 1);
    assert_int_equal(kernel.messages, 3);
    assert_int_equal(kernel.lens[44], 100);
}

static void gso_message_stays_within_the_kernels_limits(void **state)
{
    (void)state;
    add(65527, 1200); /* beyond what IPv4 takes in one message */
    add(65000, 100);  /* more than 64 datagrams */
    assert_int_equal(flush(), LEAT_TX_DONE);
    assert_wire_has_all();
    assert_int_equal(stats.send_bytes, 65527 + 65000);
}

static void room_ends_when_a_whole_batch_may_not_fit(void **state)
{
    (void)state;
    int n = 0;
    for (; leat_tx_room(&tx) != NULL; n++) {
        add(65000, 1300);
    }
    assert_int_equal(n, 4); /* 262144 bytes: the fourth begins at 195000, 67144 before the end */
    assert_int_equal(flush(), LEAT_TX_DONE);
    for (n = 0; leat_tx_room(&tx) != NULL; n++) {
        add(100, 100);
    }
    assert_int_equal(n, LEAT_TX_BATCHES);
    assert_int_equal(flush(), LEAT_TX_DONE);
    assert_wire_has_all();
}

static void fails_over(int error)
{
    kernel.gso_error = error;
    add(10 * 1200, 1200);
    add(1200, 1200);
    add(5 * 1200 + 7, 1200);
    assert_int_equal(flush(), LEAT_TX_DONE);
    assert_wire_has_all();
    assert_false(sock.gso);
    assert_int_equal(stats.gso_failed, 1);
    kernel.gso_error = 0;
    add(3 * 1200, 1200);
    unsigned before = kernel.messages;
    assert_int_equal(flush(), LEAT_TX_DONE);
    assert_int_equal(kernel.messages - before, 3); /* it stays off */
    assert_wire_has_all();
}

static void gso_that_fails_with_eio_goes_out_singly(void **state)
{
    (void)state;
    fails_over(EIO);
}

static void gso_that_fails_with_einval_goes_out_singly(void **state)
{
    (void)state;
    fails_over(EINVAL);
}

static void datagrams_too_large_for_the_path_do_not_end_gso(void **state)
{
    (void)state;
    for (int how = 0; how < 2; how++) {
        kernel.gso_too_large = how ? EMSGSIZE : EINVAL;
        kernel.mtu = 1300;
        kernel.count = 0;
        stats.send_failed = 0;
        uint32_t first = next_number;
        add(3 * 1400, 1400);
        uint32_t after = next_number;
        add(4 * 1200, 1200);
        assert_int_equal(flush(), LEAT_TX_DONE);
        assert_true(sock.gso);
        assert_int_equal(stats.gso_failed, 0);
        assert_int_equal(stats.send_failed, after - first);
        assert_int_equal(kernel.count, 4);
        assert_int_equal(kernel.numbers[0], after);
        assert_true(leat_tx_empty(&tx));
    }
}

static void probe_too_large_for_the_path_is_lost_alone(void **state)
{
    (void)state;
    kernel.mtu = 1300;
    add(1400, 1400);
    add(1200, 1200);
    assert_int_equal(flush(), LEAT_TX_DONE);
    assert_int_equal(stats.send_failed, 1);
    assert_int_equal(kernel.count, 1);
    assert_int_equal(kernel.numbers[0], 1);
}

static void full_socket_keeps_the_rest_for_later(void **state)
{
    (void)state;
    sock.gso = false;
    kernel.room = 3;
    add(5 * 1200, 1200);
    add(2 * 1200, 1200);
    assert_int_equal(flush(), LEAT_TX_BLOCKED);
    assert_int_equal(kernel.count, 3);
    assert_false(leat_tx_empty(&tx));
    assert_int_equal(stats.send_blocked, 1);
    assert_int_equal(flush(), LEAT_TX_BLOCKED);
    kernel.room = 2;
    assert_int_equal(flush(), LEAT_TX_BLOCKED);
    kernel.room = 100;
    assert_int_equal(flush(), LEAT_TX_DONE);
    assert_wire_has_all();
}

static void socket_that_fills_up_during_the_fail_over_loses_nothing(void **state)
{
    (void)state;
    kernel.gso_error = EIO;
    kernel.room = 0;
    add(3 * 1200, 1200);
    kernel.once = EIO; /* the batch is refused, and its first datagram finds the socket full */
    assert_int_equal(flush(), LEAT_TX_BLOCKED);
    assert_true(sock.gso);
    kernel.room = 100;
    assert_int_equal(flush(), LEAT_TX_DONE);
    assert_false(sock.gso);
    assert_wire_has_all();
}

/* Whatever an ICMP message, true or forged, leaves on a connected socket for the next call. */
static void error_of_an_icmp_message_costs_nothing(void **state)
{
    static const int errors[] = {ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EMSGSIZE, ENOPROTOOPT,
                                 EHOSTDOWN,    ENONET,       EPROTO,      EACCES,   EOPNOTSUPP};
    (void)state;
    for (size_t i = 0; i < sizeof(errors) / sizeof(*errors); i++) {
        add(1200, 1200);
        add(3 * 1200, 1200);
        kernel.once = errors[i]; /* for the batches */
        assert_int_equal(flush(), LEAT_TX_DONE);
        assert_wire_has_all();
        add(3 * 1200, 1200);
        kernel.once = errors[i];
        kernel.times = 3; /* and again for the datagram alone */
        assert_int_equal(flush(), LEAT_TX_DONE);
        assert_wire_has_all();
        assert_true(sock.gso);
        assert_int_equal(stats.gso_failed, 0);
    }
}

static void interrupted_call_is_made_again(void **state)
{
    (void)state;
    add(1200, 1200);
    kernel.once = EINTR;
    assert_int_equal(flush(), LEAT_TX_DONE);
    assert_int_equal(kernel.count, 1);
}

static void refused_datagram_is_lost_and_the_rest_go(void **state)
{
    (void)state;
    add(1200, 1200);
    add(1200, 1200);
    kernel.once = EPERM; /* a firewall, which does not change its mind */
    kernel.times = 4;
    assert_int_equal(flush(), LEAT_TX_DONE);
    assert_int_equal(stats.send_failed, 1);
    assert_int_equal(kernel.count, 1);
    assert_int_equal(kernel.numbers[0], 1);
}

static void calls_that_take_a_part_go_on_behind_it(void **state)
{
    (void)state;
    kernel.per_call = 2;
    for (int i = 0; i < 7; i++) {
        add(5 * 1200, 1200);
    }
    assert_int_equal(flush(), LEAT_TX_DONE);
    assert_int_equal(kernel.calls, 4);
    assert_wire_has_all();
}

static void connected_socket_names_no_address(void **state)
{
    (void)state;
    sock.connected = parse_addr("127.0.0.1:9");
    add(1200, 1200);
    assert_int_equal(flush(), LEAT_TX_DONE);
    assert_null(tx.msgs[0].msg_hdr.msg_name);
    sock.connected.port = 10; /* the peer is not where the socket is connected to */
    add(1200, 1200);
    assert_int_equal(flush(), LEAT_TX_DONE);
    assert_non_null(tx.msgs[0].msg_hdr.msg_name);
}

/* ---- several sockets ---- */

static leat_sock other;

static void batches_leave_from_their_own_sockets(void **state)
{
    (void)state;
    other = sock;
    other.fd = -2;
    add(2 * 1400, 1400);
    add(1200, 1200);
    add_for(&other, 1200, 1200);
    add_for(&other, 2 * 1300, 1300);
    add(1200, 1200);
    kernel.room = 3;
    assert_int_equal(flush(), LEAT_TX_BLOCKED);
    assert_ptr_equal(leat_tx_blocked(&tx), &other);
    kernel.room = 1;
    assert_int_equal(flush(), LEAT_TX_BLOCKED);
    assert_ptr_equal(leat_tx_blocked(&tx), &sock);
    kernel.room = 1;
    assert_int_equal(flush(), LEAT_TX_DONE);
    assert_wire_has_all();
    static const int fds[] = {-1, -1, -1, -2, -2, -2, -1};
    assert_int_equal(kernel.count, 7);
    assert_memory_equal(kernel.fds, fds, sizeof(fds));
}

/* GSO that fails on one socket stays on for the others. */
static void gso_is_each_sockets_own(void **state)
{
    (void)state;
    other = sock;
    other.fd = -2;
    other.gso = false;
    add(3 * 1200, 1200);
    add_for(&other, 3 * 1200, 1200);
    assert_int_equal(flush(), LEAT_TX_DONE);
    assert_wire_has_all();
    assert_int_equal(kernel.messages, 1 + 3);
}

static void what_waits_for_a_closed_socket_is_lost(void **state)
{
    (void)state;
    other = sock;
    other.fd = -2;
    add(1200, 1200);
    add_for(&other, 3 * 1200, 1200);
    add(1200, 1200);
    add_for(&other, 1200, 1200);
    kernel.room = 2;
    other.gso = false; /* so that a part of the batch has left */
    assert_int_equal(flush(), LEAT_TX_BLOCKED);
    leat_tx_forget(&tx, &other);
    kernel.room = 10;
    assert_int_equal(flush(), LEAT_TX_DONE);
    assert_true(leat_tx_empty(&tx));
    assert_int_equal(kernel.count, 3);
    assert_int_equal(kernel.numbers[2], 4);
    assert_int_equal(kernel.fds[2], -1);
    assert_int_equal(stats.send_failed, 2 + 1);
    assert_int_equal(stats.send_datagrams, 3);
}

int main(void)
{
#define TX_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TX_TEST(batches_leave_with_one_call),
        TX_TEST(gso_message_stays_within_the_kernels_limits),
        TX_TEST(room_ends_when_a_whole_batch_may_not_fit),
        TX_TEST(gso_that_fails_with_eio_goes_out_singly),
        TX_TEST(gso_that_fails_with_einval_goes_out_singly),
        TX_TEST(datagrams_too_large_for_the_path_do_not_end_gso),
        TX_TEST(probe_too_large_for_the_path_is_lost_alone),
        TX_TEST(full_socket_keeps_the_rest_for_later),
        TX_TEST(socket_that_fills_up_during_the_fail_over_loses_nothing),
        TX_TEST(error_of_an_icmp_message_costs_nothing),
        TX_TEST(interrupted_call_is_made_again),
        TX_TEST(refused_datagram_is_lost_and_the_rest_go),
        TX_TEST(calls_that_take_a_part_go_on_behind_it),
        TX_TEST(connected_socket_names_no_address),
        TX_TEST(batches_leave_from_their_own_sockets),
        TX_TEST(gso_is_each_sockets_own),
        TX_TEST(what_waits_for_a_closed_socket_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
