/* IP and UDP headers: checksums worked by hand, every bound, random round trips.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "net/udpip.h"

static leat_addr addr4(uint8_t last, uint16_t port)
{
    return (leat_addr){.family = 4, .port = port, .ip = {10, 0, 0, last}};
}

static leat_addr addr6(uint8_t last, uint16_t port)
{
    leat_addr addr = {.family = 6, .port = port};
    addr.ip[15] = last;
    return addr;
}

static void assert_addr_equal(const leat_addr *a, const leat_addr *b)
{
    assert_int_equal(a->family, b->family);
    assert_int_equal(a->port, b->port);
    assert_memory_equal(a->ip, b->ip, sizeof(a->ip));
}

static void checksum_agrees_with_worked_examples(void **state)
{
    (void)state;
    /* RFC 1071 s3: the sum is ddf2. */
    const uint8_t words[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    assert_int_equal(leat_checksum_end(leat_checksum_add(0, words, 8)), 0xffff - 0xddf2);
    /* 0001 + f200: an odd end is filled up with zero. */
    assert_int_equal(leat_checksum_end(leat_checksum_add(0, words, 3)), 0xffff - 0xf201);
    assert_int_equal(leat_checksum_end(0), 0xffff);
    /* Carries fold more than once: ffff + ffff + 0001 = 1ffff -> 0001 + ffff -> 1 0000 -> 0001. */
    const uint8_t carries[] = {0xff, 0xff, 0xff, 0xff, 0x00, 0x01};
    assert_int_equal(leat_checksum_end(leat_checksum_add(0, carries, 6)), 0xffff - 0x0001);
    /* In two parts as in one. */
    uint64_t sum = leat_checksum_add(leat_checksum_add(0, words, 2), words + 2, 6);
    assert_int_equal(leat_checksum_end(sum), 0xffff - 0xddf2);
}

/* 10.0.0.1:1000 to 10.0.0.2:2000, "hi!", ECT(0).
 * IP:  4502+001f+0000+4000+4011+0a00+0001+0a00+0002 = d935, checksum 26ca.
 * UDP: pseudo 0a00+0001+0a00+0002+0011+000b = 141f, header 03e8+07d0+000b = 0bc3,
 *      payload 6869+2100 = 8969; all a94b, checksum 56b4. */
static const uint8_t hi4[] = {
    0x45, 0x02, 0x00, 0x1f, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x26, 0xca, 10,  0,   0,   1,
    10,   0,    0,    2,    0x03, 0xe8, 0x07, 0xd0, 0x00, 0x0b, 0x56, 0xb4, 'h', 'i', '!',
};

/* [::1]:1 to [::2]:2, bytes ffd4, CE: the UDP sum is 1+2+000a+0011 + 1+2+000a + ffd4 = ffff, whose
 * complement 0 is sent as ffff. */
/* clang-format off */
static const uint8_t zero6[] = {
    0x60, 0x30, 0, 0, 0, 10, 17, 64,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2,
    0, 1, 0, 2, 0, 10, 0xff, 0xff,
    0xff, 0xd4,
};
/* clang-format on */

static void ip4_packet_is_built_as_worked_by_hand(void **state)
{
    (void)state;
    uint8_t packet[sizeof(hi4)];
    memcpy(packet + LEAT_IP4_UDP_HEADERS, "hi!", 3);
    leat_udpip how = {.src = addr4(1, 1000), .dst = addr4(2, 2000), .ecn = LEAT_ECN_ECT0};
    assert_int_equal(leat_udpip_build(&how, packet + LEAT_IP4_UDP_HEADERS, 3), LEAT_OK);
    assert_memory_equal(packet, hi4, sizeof(hi4));
}

static void ip6_packet_is_built_as_worked_by_hand(void **state)
{
    (void)state;
    uint8_t packet[sizeof(zero6)];
    packet[LEAT_IP6_UDP_HEADERS] = 0xff;
    packet[LEAT_IP6_UDP_HEADERS + 1] = 0xd4;
    leat_udpip how = {.src = addr6(1, 1), .dst = addr6(2, 2), .ecn = LEAT_ECN_CE};
    assert_int_equal(leat_udpip_build(&how, packet + LEAT_IP6_UDP_HEADERS, 2), LEAT_OK);
    assert_memory_equal(packet, zero6, sizeof(zero6));
}

static void packets_are_read(void **state)
{
    (void)state;
    leat_udpip how;
    leat_span payload;
    assert_int_equal(leat_udpip_parse(hi4, sizeof(hi4), &how, &payload), LEAT_OK);
    leat_addr src4 = addr4(1, 1000), dst4 = addr4(2, 2000);
    assert_addr_equal(&how.src, &src4);
    assert_addr_equal(&how.dst, &dst4);
    assert_int_equal(how.ecn, LEAT_ECN_ECT0);
    assert_int_equal(payload.len, 3);
    assert_memory_equal(payload.data, "hi!", 3);
    assert_int_equal(leat_udpip_parse(zero6, sizeof(zero6), &how, &payload), LEAT_OK);
    leat_addr src6 = addr6(1, 1), dst6 = addr6(2, 2);
    assert_addr_equal(&how.src, &src6);
    assert_addr_equal(&how.dst, &dst6);
    assert_int_equal(how.ecn, LEAT_ECN_CE);
    assert_int_equal(payload.len, 2);
}

/* A copy that ends where its block ends, so that AddressSanitizer sees a read beyond. */
static leat_err parse_copy(const uint8_t *packet, size_t len)
{
    uint8_t *exact = malloc(len > 0 ? len : 1);
    assert_non_null(exact);
    memcpy(exact, packet, len);
    leat_udpip how;
    leat_span payload;
    leat_err err = leat_udpip_parse(exact, len, &how, &payload);
    if (err == LEAT_OK) {
        assert_true(payload.data >= exact && payload.data + payload.len <= exact + len);
    }
    free(exact);
    return err;
}

static void every_truncation_is_seen(void **state)
{
    (void)state;
    for (size_t len = 0; len < sizeof(hi4); len++) {
        assert_int_equal(parse_copy(hi4, len), LEAT_ERR_TRUNCATED);
    }
    for (size_t len = 0; len < sizeof(zero6); len++) {
        assert_int_equal(parse_copy(zero6, len), LEAT_ERR_TRUNCATED);
    }
}

static void every_flipped_bit_is_seen(void **state)
{
    (void)state;
    uint8_t packet[sizeof(zero6)];
    for (size_t bit = 0; bit < sizeof(hi4) * 8; bit++) {
        memcpy(packet, hi4, sizeof(hi4));
        packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(parse_copy(packet, sizeof(hi4)), LEAT_OK);
    }
    for (size_t bit = 0; bit < sizeof(zero6) * 8; bit++) {
        /* No checksum covers the traffic class, the flow label and the hop limit. */
        bool covered = bit >= 32 ? bit / 8 != 7 : bit < 8 && bit % 8 >= 4;
        if (covered) {
            memcpy(packet, zero6, sizeof(zero6));
            packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_not_equal(parse_copy(packet, sizeof(zero6)), LEAT_OK);
        }
    }
}

/* Changes 16 bits of the IPv4 packet and mends the header checksum. */
static leat_err parse_with(size_t at, uint16_t value)
{
    uint8_t packet[sizeof(hi4)];
    memcpy(packet, hi4, sizeof(hi4));
    packet[at] = (uint8_t)(value >> 8);
    packet[at + 1] = (uint8_t)value;
    if (at < 20) {
        packet[10] = packet[11] = 0;
        uint16_t sum = leat_checksum_end(leat_checksum_add(0, packet, 20));
        packet[10] = (uint8_t)(sum >> 8);
        packet[11] = (uint8_t)sum;
    }
    return parse_copy(packet, sizeof(hi4));
}

static void headers_that_lie_are_refused(void **state)
{
    (void)state;
    assert_int_equal(parse_with(0, 0x4502), LEAT_OK);              /* as it is */
    assert_int_equal(parse_with(0, 0x4402), LEAT_ERR_MALFORMED);   /* header of 16 bytes */
    assert_int_equal(parse_with(0, 0x4f02), LEAT_ERR_MALFORMED);   /* header beyond the packet */
    assert_int_equal(parse_with(0, 0x5502), LEAT_ERR_MALFORMED);   /* version 5 */
    assert_int_equal(parse_with(2, 19), LEAT_ERR_MALFORMED);       /* total below the header */
    assert_int_equal(parse_with(2, 27), LEAT_ERR_TRUNCATED);       /* no room for UDP */
    assert_int_equal(parse_with(2, 30), LEAT_ERR_TRUNCATED);       /* UDP longer than IP */
    assert_int_equal(parse_with(6, 0x2000), LEAT_ERR_UNSUPPORTED); /* more fragments */
    assert_int_equal(parse_with(6, 0x0001), LEAT_ERR_UNSUPPORTED); /* a later fragment */
    assert_int_equal(parse_with(8, 0x4006), LEAT_ERR_UNSUPPORTED); /* TCP */
    assert_int_equal(parse_with(24, 7), LEAT_ERR_MALFORMED);       /* UDP below its header */
    assert_int_equal(parse_with(24, 12), LEAT_ERR_TRUNCATED);      /* UDP beyond IP */
    assert_int_equal(parse_with(26, 0), LEAT_OK);                  /* no UDP checksum */
    assert_int_equal(parse_with(26, 0x56b5), LEAT_ERR_MALFORMED);
    uint8_t packet6[sizeof(zero6)];
    memcpy(packet6, zero6, sizeof(zero6));
    packet6[46] = packet6[47] = 0;
    assert_int_equal(parse_copy(packet6, sizeof(zero6)), LEAT_ERR_MALFORMED);
    memcpy(packet6, zero6, sizeof(zero6));
    packet6[6] = 44; /* a fragment header */
    assert_int_equal(parse_copy(packet6, sizeof(zero6)), LEAT_ERR_UNSUPPORTED);
}

static void ip_options_and_padding_behind_are_skipped(void **state)
{
    (void)state;
    uint8_t packet[sizeof(hi4) + 4 + 5] = {0};
    memcpy(packet, hi4, 20);
    packet[0] = 0x46;
    packet[3] = 0x1f + 4;
    packet[20] = 1; /* no operation, three times, and end of options */
    packet[21] = 1;
    packet[22] = 1;
    memcpy(packet + 24, hi4 + 20, sizeof(hi4) - 20);
    packet[10] = packet[11] = 0;
    uint16_t sum = leat_checksum_end(leat_checksum_add(0, packet, 24));
    packet[10] = (uint8_t)(sum >> 8);
    packet[11] = (uint8_t)sum;
    leat_udpip how;
    leat_span payload;
    assert_int_equal(leat_udpip_parse(packet, sizeof(packet), &how, &payload), LEAT_OK);
    assert_int_equal(payload.len, 3);
    assert_memory_equal(payload.data, "hi!", 3);
}

static void what_cannot_be_built_is_refused(void **state)
{
    (void)state;
    static uint8_t packet[70000];
    uint8_t *payload = packet + LEAT_UDPIP_HEADERS_MAX;
    leat_udpip how = {.src = addr4(1, 1), .dst = addr6(2, 2)};
    assert_int_equal(leat_udpip_build(&how, payload, 1), LEAT_ERR_INVALID);
    how = (leat_udpip){0};
    assert_int_equal(leat_udpip_build(&how, payload, 1), LEAT_ERR_INVALID);
    how = (leat_udpip){.src = addr4(1, 1), .dst = addr4(2, 2)};
    assert_int_equal(leat_udpip_build(&how, payload, 65508), LEAT_ERR_INVALID);
    assert_int_equal(leat_udpip_build(&how, payload, 65507), LEAT_OK);
    how = (leat_udpip){.src = addr6(1, 1), .dst = addr6(2, 2)};
    assert_int_equal(leat_udpip_build(&how, payload, 65528), LEAT_ERR_INVALID);
    assert_int_equal(leat_udpip_build(&how, payload, 65527), LEAT_OK);
    leat_span read;
    assert_int_equal(leat_udpip_parse(packet, LEAT_IP6_UDP_HEADERS + 65527, &how, &read), LEAT_OK);
    assert_int_equal(read.len, 65527);
}

static uint64_t test_seed(uint64_t fallback)
{
    const char *given = getenv("LEAT_TEST_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 0) : fallback;
    print_message("replay with LEAT_TEST_SEED=%llu\n", (unsigned long long)seed);
    return seed;
}

static void random_datagrams_come_back(void **state)
{
    (void)state;
    leat_prng prng;
    leat_prng_seed(&prng, test_seed(0x1b));
    static uint8_t packet[LEAT_UDPIP_HEADERS_MAX + 2000];
    static uint8_t sent[2000];
    for (int i = 0; i < 5000; i++) {
        leat_udpip how = {.ecn = (uint8_t)leat_prng_below(&prng, 4)};
        how.src.family = how.dst.family = leat_prng_chance(&prng, 1, 2) ? 4 : 6;
        size_t ip = how.src.family == 4 ? 4 : 16;
        leat_prng_fill(&prng, how.src.ip, ip);
        leat_prng_fill(&prng, how.dst.ip, ip);
        how.src.port = (uint16_t)leat_prng_u64(&prng);
        how.dst.port = (uint16_t)leat_prng_u64(&prng);
        size_t len = leat_prng_below(&prng, sizeof(sent) + 1);
        leat_prng_fill(&prng, sent, len);
        size_t headers = leat_udpip_headers(how.src.family);
        memcpy(packet + headers, sent, len);
        assert_int_equal(leat_udpip_build(&how, packet + headers, len), LEAT_OK);
        leat_udpip read;
        leat_span payload;
        assert_int_equal(leat_udpip_parse(packet, headers + len, &read, &payload), LEAT_OK);
        assert_addr_equal(&read.src, &how.src);
        assert_addr_equal(&read.dst, &how.dst);
        assert_int_equal(read.ecn, how.ecn);
        assert_int_equal(payload.len, len);
        assert_memory_equal(payload.data, sent, len);
    }
}

static void random_bytes_are_never_read_beyond(void **state)
{
    (void)state;
    leat_prng prng;
    leat_prng_seed(&prng, test_seed(0x1c));
    uint8_t packet[80];
    for (int i = 0; i < 50000; i++) {
        size_t len = leat_prng_below(&prng, sizeof(packet) + 1);
        leat_prng_fill(&prng, packet, len);
        if (len > 0) { /* mostly something like IP, to get deeper */
            packet[0] = leat_prng_chance(&prng, 1, 2) ? 0x45 : 0x60;
        }
        parse_copy(packet, len);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checksum_agrees_with_worked_examples),
        cmocka_unit_test(ip4_packet_is_built_as_worked_by_hand),
        cmocka_unit_test(ip6_packet_is_built_as_worked_by_hand),
        cmocka_unit_test(packets_are_read),
        cmocka_unit_test(every_truncation_is_seen),
        cmocka_unit_test(every_flipped_bit_is_seen),
        cmocka_unit_test(headers_that_lie_are_refused),
        cmocka_unit_test(ip_options_and_padding_behind_are_skipped),
        cmocka_unit_test(what_cannot_be_built_is_refused),
        cmocka_unit_test(random_datagrams_come_back),
        cmocka_unit_test(random_bytes_are_never_read_beyond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
