/* bench/micro_tparams.c: what transport parameters cost: encoding into the caller's buffer,
 * decoding with every check. Three sets: what a client and a server of leat's send (11 and 14
 * parameters), and the largest that a server can make of all parameters there are.
 *
 * A round is many operations between two readings of the clock; the best of the rounds is shown
 * beside the median, since on a shared machine the rest is noise. The compiler is kept from knowing
 * what is in the set, and from dropping results that nobody uses.
 *
 * SPDX-License-Identifier: MIT
 */
#include "wire/tparams.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { OPERATIONS = 5000, WARM_UP = 20, ROUNDS = 401 };

static uint64_t clock_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * LEAT_SECOND + (uint64_t)ts.tv_nsec;
}

/* As far as the compiler knows, this reads and writes all memory. */
static inline void opaque(const void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

static leat_tparams client_set(void)
{
    leat_tparams t;

    leat_tparams_init(&t);
    t.present = LEAT_TP_initial_scid | LEAT_TP_grease_quic_bit;
    t.max_idle_timeout = 30000;
    t.max_udp_payload_size = 1472;
    t.initial_max_data = 16 << 20;
    t.initial_max_stream_data_bidi_local = 1 << 20;
    t.initial_max_stream_data_bidi_remote = 1 << 20;
    t.initial_max_stream_data_uni = 1 << 20;
    t.initial_max_streams_bidi = 100;
    t.initial_max_streams_uni = 100;
    t.active_connection_id_limit = 8;
    t.max_datagram_frame_size = 65535;
    leat_cid_set(&t.initial_scid, (const uint8_t *)"\1\2\3\4\5\6\7\10", 8);
    return t;
}

static leat_tparams server_set(void)
{
    leat_tparams t = client_set();

    t.present |= LEAT_TP_original_dcid | LEAT_TP_stateless_reset_token;
    leat_cid_set(&t.original_dcid, (const uint8_t *)"abcdefghijklmnopqr", 18);
    memset(t.stateless_reset_token, 0x5a, sizeof t.stateless_reset_token);
    return t;
}

static leat_tparams largest_set(void)
{
    static const uint8_t versions[4 * LEAT_TPARAMS_VERSIONS_MAX] = {
        [0 ... 4 * LEAT_TPARAMS_VERSIONS_MAX - 1] = 0x1a};
    static const uint8_t grease[LEAT_TPARAMS_GREASE_MAX];
    leat_tparams t = server_set();

    for (size_t i = 0; i < LEAT_TPARAM_NUMBERS; i++) {
        t.numbers[i] = UINT64_C(1) << 60;
    }
    t.ack_delay_exponent = 20;
    t.max_ack_delay = 16383;
    t.present = LEAT_TP_original_dcid | LEAT_TP_initial_scid | LEAT_TP_retry_scid |
                LEAT_TP_stateless_reset_token | LEAT_TP_preferred_address |
                LEAT_TP_disable_active_migration | LEAT_TP_grease_quic_bit |
                LEAT_TP_version_information;
    t.original_dcid.len = t.initial_scid.len = t.retry_scid.len = LEAT_CID_MAX;
    t.preferred_address.cid.len = LEAT_CID_MAX;
    t.version_information.chosen = 1;
    t.version_information.available = (leat_span){versions, sizeof versions};
    t.grease_id = LEAT_VARINT_MAX / 31 * 31 - 4;
    t.grease = (leat_span){grease, sizeof grease};
    return t;
}

static double encode_round(const leat_tparams *set, size_t *len)
{
    uint8_t out[LEAT_TPARAMS_MAX];
    uint64_t begin = clock_ns();

    for (int i = 0; i < OPERATIONS; i++) {
        leat_writer w;

        opaque(set);
        leat_writer_init(&w, out, sizeof out);
        if (!leat_tparams_encode(set, &w)) {
            abort();
        }
        opaque(out);
        *len = leat_writer_len(&w);
    }
    return (double)(clock_ns() - begin) / OPERATIONS;
}

static double decode_round(leat_span encoded, bool from_server)
{
    uint64_t begin = clock_ns();

    for (int i = 0; i < OPERATIONS; i++) {
        leat_tparams t;
        const char *why;

        opaque(encoded.data);
        if (leat_tparams_decode(encoded, from_server, &t, &why) != LEAT_TE_NO_ERROR) {
            abort();
        }
        opaque(&t);
    }
    return (double)(clock_ns() - begin) / OPERATIONS;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static void show(const char *name, size_t len, double *ns)
{
    qsort(ns, ROUNDS, sizeof ns[0], by_value);
    printf("%-16s %4zu bytes   best %6.1f ns   median %6.1f ns\n", name, len, ns[0],
           ns[ROUNDS / 2]);
}

static void measure(const char *encode_name, const char *decode_name, const leat_tparams *set,
                    bool from_server)
{
    uint8_t encoded[LEAT_TPARAMS_MAX];
    leat_writer w;
    double encode[ROUNDS];
    double decode[ROUNDS];
    size_t len = 0;

    leat_writer_init(&w, encoded, sizeof encoded);
    if (!leat_tparams_encode(set, &w)) {
        abort();
    }
    for (int i = -WARM_UP; i < ROUNDS; i++) {
        double e = encode_round(set, &len);
        double d = decode_round((leat_span){encoded, leat_writer_len(&w)}, from_server);

        if (i >= 0) {
            encode[i] = e;
            decode[i] = d;
        }
    }
    show(encode_name, len, encode);
    show(decode_name, len, decode);
}

int main(void)
{
    leat_tparams client = client_set();
    leat_tparams server = server_set();
    leat_tparams largest = largest_set();

    measure("encode client", "decode client", &client, false);
    measure("encode server", "decode server", &server, true);
    measure("encode largest", "decode largest", &largest, true);
    return 0;
}
