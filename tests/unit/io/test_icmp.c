/* ICMP against the kernel itself: a forged "packet too big" for a connected socket (RFC 9000
 * s14.2.1), in a network namespace of the test's own, for the forgery changes what the kernel knows
 * of the loopback's MTU.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io_fixture.h"

#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip_icmp.h>
#include <netinet/udp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/rx.h"
#include "io/tx.h"

enum { DATAGRAMS = 5, SEGMENT = 1200, FORGED_MTU = 600 };

static leat_mem *mem;
static leat_udp_stats stats;
static size_t received;

/* Its loopback is up. False: this system gives no namespaces to this user. */
static bool enter_a_namespace(void)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) {
        return false;
    }
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
    close(fd);
    return true;
}

static uint16_t checksum(const void *data, size_t len)
{
    const uint8_t *p = data;
    uint32_t sum = 0;
    for (size_t i = 0; i + 1 < len; i += 2) {
        sum += (uint32_t)p[i] << 8 | p[i + 1];
    }
    sum = (sum >> 16) + (sum & 0xffff);
    return (uint16_t) ~(sum + (sum >> 16));
}

/* As a router would answer a datagram of ours that does not fit. */
static void forge_too_big(uint16_t from_port, uint16_t to_port)
{
    struct {
        struct icmphdr icmp;
        struct iphdr ip;
        struct udphdr udp;
    } __attribute__((packed)) m = {
        .icmp = {.type = ICMP_DEST_UNREACH, .code = ICMP_FRAG_NEEDED},
        .ip = {.version = 4,
               .ihl = 5,
               .tot_len = htons(28 + SEGMENT),
               .frag_off = htons(IP_DF),
               .ttl = 64,
               .protocol = IPPROTO_UDP,
               .saddr = htonl(INADDR_LOOPBACK),
               .daddr = htonl(INADDR_LOOPBACK)},
        .udp = {.source = htons(from_port), .dest = htons(to_port), .len = htons(8 + SEGMENT)},
    };
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    m.icmp.un.frag.mtu = htons(FORGED_MTU);
    m.icmp.checksum = htons(checksum(&m, sizeof(m)));
    int fd = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
    assert_true(fd >= 0);
    assert_int_equal(sendto(fd, &m, sizeof(m), 0, (struct sockaddr *)&to, sizeof(to)),
                     (ssize_t)sizeof(m));
    close(fd);
}

static void count(void *user, leat_buf *buf, const leat_recv_info *info)
{
    (void)user, (void)info;
    received += buf->len / SEGMENT;
    leat_buf_release(buf);
}

/* Sends a batch of so many datagrams; all of them arrive. */
static void batch_arrives(leat_tx *tx, leat_sock *from, leat_rx *rx, leat_sock *to, size_t n)
{
    leat_send_info info = {.remote = parse_addr("127.0.0.1:0"), .segment = SEGMENT};
    uint8_t *room = leat_tx_room(tx);
    info.remote.port = to->local.port;
    memset(room, 0x55, n * SEGMENT);
    leat_tx_add(tx, from, n * SEGMENT, &info);
    assert_int_equal(leat_tx_flush(tx, &stats), LEAT_TX_DONE);
    received = 0;
    while (leat_rx_read(rx, to, &stats, count, NULL)) {
    }
    assert_int_equal(received, n);
    assert_int_equal(stats.send_failed, 0);
}

static void a_forged_packet_too_big_costs_neither_a_datagram_nor_gso(void **state)
{
    leat_udp_settings s;
    leat_sock server, client;
    leat_tx tx;
    leat_rx rx;
    (void)state;
    if (!enter_a_namespace()) {
        print_message("no network namespace for this user\n");
        skip();
    }
    assert_int_equal(leat_mem_new(NULL, &mem), LEAT_OK);
    leat_udp_settings_init(&s);
    s.local = parse_addr("127.0.0.1:0");
    assert_int_equal(leat_sock_open(&server, &s), LEAT_OK);
    leat_udp_settings_init(&s);
    s.remote = parse_addr("127.0.0.1:1");
    s.remote.port = server.local.port;
    assert_int_equal(leat_sock_open(&client, &s), LEAT_OK);
    assert_int_equal(leat_tx_init(&tx, mem), LEAT_OK);
    assert_int_equal(leat_rx_init(&rx, mem), LEAT_OK);
    bool gso = client.gso;
    batch_arrives(&tx, &client, &rx, &server, DATAGRAMS);
    for (size_t n = 1; n <= DATAGRAMS; n++) {
        int error = 0;
        socklen_t len = sizeof(error);
        forge_too_big(client.local.port, server.local.port);
        assert_int_equal(getsockopt(client.fd, SOL_SOCKET, SO_ERROR, &error, &len), 0);
        assert_int_equal(error, EMSGSIZE); /* so it is the kernel that this is about */
        forge_too_big(client.local.port, server.local.port);
        batch_arrives(&tx, &client, &rx, &server, n);
    }
    assert_int_equal(client.gso, gso);
    assert_int_equal(stats.gso_failed, 0);
    leat_rx_free(&rx);
    leat_tx_free(&tx);
    leat_sock_close(&client);
    leat_sock_close(&server);
    leat_mem_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forged_packet_too_big_costs_neither_a_datagram_nor_gso),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
