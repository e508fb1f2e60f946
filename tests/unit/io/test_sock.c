/* Sockets over the loopback: addresses, ECN, GSO into GRO, small and large messages, memory that is
 * short. Datagrams over the loopback have arrived when the send call returns: nothing waits.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io_fixture.h"

#include <errno.h>
#include <sys/socket.h>

#include "io/rx.h"
#include "io/tx.h"

enum { KEPT = 64 };

/* One end: a socket with its two sides, and what it received. */
typedef struct end {
    leat_sock sock;
    leat_rx rx;
    leat_tx tx;
    leat_udp_stats stats;
    leat_buf bufs[KEPT];
    leat_recv_info infos[KEPT];
    size_t count;
} end;

static leat_mem *mem;

static int make_mem(void **state)
{
    (void)state;
    return leat_mem_new(NULL, &mem) == LEAT_OK ? 0 : -1;
}

static int free_mem(void **state)
{
    (void)state;
    leat_mem_stats stats;
    leat_mem_stats_get(mem, &stats);
    if (stats.buf_live != 0) {
        return -1;
    }
    leat_mem_free(mem);
    return 0;
}

static leat_udp_settings settings_for(const char *local, const leat_addr *remote)
{
    leat_udp_settings s;
    leat_udp_settings_init(&s);
    if (local != NULL) {
        s.local = parse_addr(local);
    }
    if (remote != NULL) {
        s.remote = *remote;
    }
    return s;
}

static void end_open(end *e, const leat_udp_settings *s)
{
    memset(e, 0, sizeof(*e));
    assert_int_equal(leat_sock_open(&e->sock, s), LEAT_OK);
    assert_int_equal(leat_rx_init(&e->rx, mem), LEAT_OK);
    assert_int_equal(leat_tx_init(&e->tx, mem), LEAT_OK);
}

static void end_listen(end *e, const char *local)
{
    leat_udp_settings s = settings_for(local, NULL);
    end_open(e, &s);
}

static void end_connect(end *e, const leat_addr *remote)
{
    leat_udp_settings s = settings_for(NULL, remote);
    end_open(e, &s);
}

static void end_forget(end *e)
{
    for (size_t i = 0; i < e->count; i++) {
        leat_buf_release(&e->bufs[i]);
    }
    e->count = 0;
}

static void end_close(end *e)
{
    end_forget(e);
    leat_tx_free(&e->tx);
    leat_rx_free(&e->rx);
    leat_sock_close(&e->sock);
}

static void keep(void *user, leat_buf *buf, const leat_recv_info *info)
{
    end *e = user;
    assert_true(e->count < KEPT);
    e->bufs[e->count] = *buf;
    e->infos[e->count++] = *info;
    *buf = (leat_buf){0};
}

static void end_read(end *e)
{
    while (leat_rx_read(&e->rx, &e->sock, &e->stats, keep, e)) {
    }
}

static void end_add(end *e, const leat_send_info *info, size_t len)
{
    uint8_t *room = leat_tx_room(&e->tx);
    assert_non_null(room);
    for (size_t i = 0; i < len; i++) {
        room[i] = (uint8_t)(i / info->segment);
    }
    leat_tx_add(&e->tx, &e->sock, len, info);
}

static void end_send(end *e, const leat_addr *to, size_t len, size_t segment, uint8_t ecn)
{
    leat_send_info info = {.remote = *to, .segment = segment, .ecn = ecn};
    end_add(e, &info, len);
    assert_int_equal(leat_tx_flush(&e->tx, &e->stats), LEAT_TX_DONE);
}

static leat_addr at_loopback(const end *e, uint8_t family)
{
    leat_addr addr = parse_addr(family == 4 ? "127.0.0.1:0" : "[::1]:0");
    addr.port = e->sock.local.port;
    return addr;
}

static bool has_ip6(void)
{
    leat_sock sock;
    leat_udp_settings s = settings_for("[::1]:0", NULL);
    bool has = leat_sock_open(&sock, &s) == LEAT_OK;
    if (has) {
        leat_sock_close(&sock);
    }
    return has;
}

/* One datagram each way: what each end learns of the other. */
static void exchange(const char *listen, uint8_t family)
{
    static end server, client;
    end_listen(&server, listen);
    leat_addr to = at_loopback(&server, family);
    end_connect(&client, &to);
    end_send(&client, &to, 100, 100, LEAT_ECN_ECT0);
    end_read(&server);
    assert_int_equal(server.count, 1);
    assert_int_equal(server.bufs[0].len, 100);
    assert_int_equal(server.infos[0].ecn, LEAT_ECN_ECT0);
    assert_int_equal(server.infos[0].segment, 0);
    assert_same_addr(&server.infos[0].remote, &client.sock.local);
    assert_same_addr(&server.infos[0].local, &to);

    leat_send_info info = {.remote = server.infos[0].remote,
                           .local = server.infos[0].local,
                           .segment = 50,
                           .ecn = LEAT_ECN_CE};
    end_add(&server, &info, 50);
    assert_int_equal(leat_tx_flush(&server.tx, &server.stats), LEAT_TX_DONE);
    end_read(&client);
    assert_int_equal(client.count, 1);
    assert_int_equal(client.infos[0].ecn, LEAT_ECN_CE);
    assert_same_addr(&client.infos[0].remote, &to);
    assert_same_addr(&client.infos[0].local, &client.sock.local);
    end_close(&server);
    end_close(&client);
}

static void datagrams_carry_addresses_and_ecn_over_ip4(void **state)
{
    (void)state;
    exchange("127.0.0.1:0", 4);
    exchange("0.0.0.0:0", 4);
}

static void datagrams_carry_addresses_and_ecn_over_ip6(void **state)
{
    (void)state;
    if (!has_ip6()) {
        skip();
    }
    exchange("[::1]:0", 6);
    exchange("[::]:0", 6);
}

static void one_socket_serves_both_families(void **state)
{
    (void)state;
    if (!has_ip6()) {
        skip();
    }
    exchange(":0", 4);
    exchange(":0", 6);
}

static void server_answers_from_the_address_asked(void **state)
{
    (void)state;
    static end server, client;
    end_listen(&server, "0.0.0.0:0");
    leat_addr to = parse_addr("127.0.0.5:0"); /* all of 127/8 is this host */
    to.port = server.sock.local.port;
    end_connect(&client, &to);
    end_send(&client, &to, 10, 10, 0);
    end_read(&server);
    assert_int_equal(server.count, 1);
    assert_same_addr(&server.infos[0].local, &to);
    leat_send_info info = {
        .remote = server.infos[0].remote, .local = server.infos[0].local, .segment = 10};
    end_add(&server, &info, 10);
    assert_int_equal(leat_tx_flush(&server.tx, &server.stats), LEAT_TX_DONE);
    end_read(&client); /* connected: it takes datagrams from that address alone */
    assert_int_equal(client.count, 1);
    end_close(&server);
    end_close(&client);
}

/* The datagrams of all kept messages, in order: their number as the sender counted them and their
 * length. */
static size_t split_all(const end *e, uint8_t numbers[], size_t lens[], size_t max)
{
    size_t n = 0;
    for (size_t i = 0; i < e->count; i++) {
        size_t segment = e->infos[i].segment != 0 ? e->infos[i].segment : e->bufs[i].len;
        for (size_t at = 0; at < e->bufs[i].len; at += segment) {
            size_t left = e->bufs[i].len - at;
            assert_true(n < max);
            numbers[n] = e->bufs[i].data[at];
            lens[n++] = left < segment ? left : segment;
        }
    }
    return n;
}

static void send_batch_of_44(bool no_offload)
{
    static end server, client;
    leat_udp_settings s = settings_for("127.0.0.1:0", NULL);
    s.no_offload = no_offload;
    end_open(&server, &s);
    leat_addr to = at_loopback(&server, 4);
    s = settings_for(NULL, &to);
    s.no_offload = no_offload;
    end_open(&client, &s);
    bool gso = client.sock.gso;
    end_send(&client, &to, 43 * 1400 + 77, 1400, 0);
    end_read(&server);
    uint8_t numbers[64];
    size_t lens[64];
    assert_int_equal(split_all(&server, numbers, lens, 64), 44);
    for (size_t i = 0; i < 44; i++) {
        assert_int_equal(numbers[i], i);
        assert_int_equal(lens[i], i < 43 ? 1400 : 77);
    }
    assert_int_equal(server.stats.recv_datagrams, 44);
    assert_int_equal(server.stats.recv_bytes, 43 * 1400 + 77);
    assert_int_equal(client.stats.send_datagrams, 44);
    assert_int_equal(client.stats.send_bytes, 43 * 1400 + 77);
    assert_int_equal(client.stats.send_calls, 1);
    assert_int_equal(client.stats.send_messages, gso ? 1 : 44);
    assert_false(no_offload && gso);
    end_close(&server);
    end_close(&client);
}

static void batch_arrives_with_offload(void **state)
{
    (void)state;
    send_batch_of_44(false);
}

static void batch_arrives_without_offload(void **state)
{
    (void)state;
    send_batch_of_44(true);
}

static void small_message_does_not_pin_a_large_buffer(void **state)
{
    (void)state;
    static end server, client;
    end_listen(&server, "127.0.0.1:0");
    leat_addr to = at_loopback(&server, 4);
    end_connect(&client, &to);
    leat_mem_stats before, after;
    leat_mem_stats_get(mem, &before);
    for (int i = 0; i < 20; i++) {
        end_send(&client, &to, 1200, 1200, 0);
    }
    end_read(&server);
    assert_int_equal(server.count, 20);
    leat_mem_stats_get(mem, &after);
    assert_true(after.buf_pinned - before.buf_pinned <= LEAT_SLAB_SIZE_DEFAULT);
    assert_int_equal(server.stats.recv_copied, 20);
    end_close(&server);
    end_close(&client);
}

static void large_message_is_not_copied(void **state)
{
    (void)state;
    static end server, client;
    end_listen(&server, "127.0.0.1:0");
    leat_addr to = at_loopback(&server, 4);
    end_connect(&client, &to);
    const uint8_t *first_slot = server.rx.bufs[0].data;
    end_send(&client, &to, 30000, 30000, 0);
    end_read(&server);
    assert_int_equal(server.count, 1);
    assert_ptr_equal(server.bufs[0].data, first_slot);
    assert_int_equal(server.bufs[0].len, 30000);
    assert_int_equal(server.stats.recv_copied, 0);
    assert_ptr_not_equal(server.rx.bufs[0].data, first_slot);
    end_close(&server);
    end_close(&client);
}

static void message_is_dropped_when_memory_is_short(void **state)
{
    (void)state;
    static end server, client;
    leat_mem *all = mem;
    leat_mem_settings limited;
    leat_mem_settings_init(&limited);
    limited.limit = (LEAT_RX_SLOTS + 16) * 65536; /* and the arena of the sending side */
    assert_int_equal(leat_mem_new(&limited, &mem), LEAT_OK);
    leat_mem *few = mem;
    end_listen(&server, "127.0.0.1:0");
    mem = all;
    leat_addr to = at_loopback(&server, 4);
    end_connect(&client, &to);
    for (int i = 0; i < 40; i++) {
        end_send(&client, &to, 20000, 20000, 0);
        end_read(&server);
    }
    assert_true(server.stats.recv_dropped > 0);
    assert_true(server.count > 0);
    assert_int_equal(server.count + server.stats.recv_dropped, 40);
    end_forget(&server);
    end_send(&client, &to, 20000, 20000, 0); /* with memory back, it receives again */
    end_read(&server);
    assert_int_equal(server.count, 1);
    end_close(&server);
    end_close(&client);
    leat_mem_free(few);
}

static void datagram_to_a_closed_port_does_not_kill_the_socket(void **state)
{
    (void)state;
    static end server, client;
    end_listen(&server, "127.0.0.1:0");
    leat_udp_settings again = settings_for("127.0.0.1:0", NULL);
    again.local.port = server.sock.local.port;
    leat_addr to = at_loopback(&server, 4);
    end_connect(&client, &to);
    end_close(&server);
    end_send(&client, &to, 10, 10, 0); /* answered by ICMP: port unreachable */
    end_read(&client);
    end_send(&client, &to, 10, 10, 0);
    end_open(&server, &again);
    end_send(&client, &to, 10, 10, 0); /* takes the error of the one before, and tries again */
    end_read(&server);
    assert_int_equal(server.count, 1);
    end_close(&server);
    end_close(&client);
}

static void port_in_use_is_told_by_errno(void **state)
{
    (void)state;
    leat_sock a, b;
    leat_udp_settings s = settings_for("127.0.0.1:0", NULL);
    assert_int_equal(leat_sock_open(&a, &s), LEAT_OK);
    s.local.port = a.local.port;
    assert_int_equal(leat_sock_open(&b, &s), LEAT_ERR_IO);
    assert_int_equal(errno, EADDRINUSE);
    assert_int_equal(b.fd, -1);
    leat_sock_close(&a);
}

static void addresses_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    leat_sock sock;
    leat_udp_settings s;
    leat_udp_settings_init(&s);
    assert_int_equal(leat_sock_open(&sock, &s), LEAT_ERR_ADDRESS);
    leat_addr six = parse_addr("[::1]:9");
    s = settings_for("127.0.0.1:0", &six);
    assert_int_equal(leat_sock_open(&sock, &s), LEAT_ERR_ADDRESS);
}

/* A forged "packet too big" must not make datagrams smaller (RFC 9000 s14.2.1): the kernel sends
 * what it is given, unfragmented, whatever it was told of the path. */
static void icmp_does_not_set_the_size(void **state)
{
    (void)state;
    leat_sock sock;
    leat_udp_settings s = settings_for("127.0.0.1:0", NULL);
    int how = -1;
    socklen_t len = sizeof(how);
    assert_int_equal(leat_sock_open(&sock, &s), LEAT_OK);
    assert_int_equal(getsockopt(sock.fd, IPPROTO_IP, IP_MTU_DISCOVER, &how, &len), 0);
    assert_int_equal(how, IP_PMTUDISC_PROBE);
    leat_sock_close(&sock);
    s = settings_for("[::1]:0", NULL);
    if (leat_sock_open(&sock, &s) == LEAT_OK) { /* there may be no IPv6 */
        len = sizeof(how);
        assert_int_equal(getsockopt(sock.fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &how, &len), 0);
        assert_int_equal(how, IPV6_PMTUDISC_PROBE);
        leat_sock_close(&sock);
    }
}

static void buffers_smaller_than_asked_give_a_warning(void **state)
{
    (void)state;
    leat_sock sock;
    leat_udp_settings s = settings_for("127.0.0.1:0", NULL);
    s.recv_buffer = 4096;
    s.send_buffer = 4096;
    assert_int_equal(leat_sock_open(&sock, &s), LEAT_OK);
    assert_string_equal(sock.warning, "");
    leat_sock_close(&sock);
    s.recv_buffer = INT32_MAX / 2 + 1; /* more than any kernel grants, with privileges too */
    assert_int_equal(leat_sock_open(&sock, &s), LEAT_OK);
    int granted;
    socklen_t len = sizeof(granted);
    assert_int_equal(getsockopt(sock.fd, SOL_SOCKET, SO_RCVBUF, &granted, &len), 0);
    bool granted_all = granted / 2 >= s.recv_buffer;
    assert_int_equal(strstr(sock.warning, "net.core.rmem_max") == NULL, granted_all);
    leat_sock_close(&sock);
}

int main(void)
{
#define SOCK_TEST(f) cmocka_unit_test_setup_teardown(f, make_mem, free_mem)
    const struct CMUnitTest tests[] = {
        SOCK_TEST(datagrams_carry_addresses_and_ecn_over_ip4),
        SOCK_TEST(datagrams_carry_addresses_and_ecn_over_ip6),
        SOCK_TEST(one_socket_serves_both_families),
        SOCK_TEST(server_answers_from_the_address_asked),
        SOCK_TEST(batch_arrives_with_offload),
        SOCK_TEST(batch_arrives_without_offload),
        SOCK_TEST(small_message_does_not_pin_a_large_buffer),
        SOCK_TEST(large_message_is_not_copied),
        SOCK_TEST(message_is_dropped_when_memory_is_short),
        SOCK_TEST(datagram_to_a_closed_port_does_not_kill_the_socket),
        SOCK_TEST(port_in_use_is_told_by_errno),
        SOCK_TEST(addresses_that_do_not_fit_are_refused),
        SOCK_TEST(icmp_does_not_set_the_size),
        SOCK_TEST(buffers_smaller_than_asked_give_a_warning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
