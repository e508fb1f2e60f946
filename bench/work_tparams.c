/* bench/work_tparams.c: `leat bench tparams`: transport parameters, as a client and a server of
 * leat's send them, encoded into the caller's buffer and decoded with every check.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "wire/tparams.h"

#include "bench.h"

enum { BATCH = 5000 };

typedef struct sets {
    leat_tparams params;
    bool server;
    uint8_t encoded[LEAT_TPARAMS_MAX];
    size_t len;
} sets;

static void fill(sets *s, bool server)
{
    leat_tparams *t = &s->params;

    leat_tparams_init(t);
    s->server = server;
    t->present = LEAT_TP_initial_scid | LEAT_TP_grease_quic_bit;
    t->max_idle_timeout = 30000;
    t->max_udp_payload_size = 1472;
    t->initial_max_data = 16 << 20;
    t->initial_max_stream_data_bidi_local = 1 << 20;
    t->initial_max_stream_data_bidi_remote = 1 << 20;
    t->initial_max_stream_data_uni = 1 << 20;
    t->initial_max_streams_bidi = 100;
    t->initial_max_streams_uni = 100;
    t->active_connection_id_limit = 8;
    t->max_datagram_frame_size = 65535;
    leat_cid_set(&t->initial_scid, (const uint8_t *)"\1\2\3\4\5\6\7\10", 8);
    if (server) {
        t->present |= LEAT_TP_original_dcid | LEAT_TP_stateless_reset_token;
        leat_cid_set(&t->original_dcid, (const uint8_t *)"abcdefghijklmnopqr", 18);
        memset(t->stateless_reset_token, 0x5a, sizeof t->stateless_reset_token);
    }
}

static void encode(void *arg)
{
    sets *s = arg;

    for (int i = 0; i < BATCH; i++) {
        leat_writer w;

        leat_bench_opaque(s);
        leat_writer_init(&w, s->encoded, sizeof s->encoded);
        if (!leat_tparams_encode(&s->params, &w)) {
            leat_bench_fail("encoding failed");
        }
        s->len = leat_writer_len(&w);
    }
}

static void decode(void *arg)
{
    sets *s = arg;

    for (int i = 0; i < BATCH; i++) {
        leat_tparams t;
        const char *why;

        leat_bench_opaque(s);
        if (leat_tparams_decode((leat_span){s->encoded, s->len}, s->server, &t, &why) !=
            LEAT_TE_NO_ERROR) {
            leat_bench_fail("decoding: %s", why);
        }
        leat_bench_opaque(&t);
    }
}

void leat_bench_tparams(leat_bench *b)
{
    static sets client, server;
    uint64_t count = leat_bench_or(b->options->count, BATCH * 201);
    const leat_bench_piece pieces[] = {
        {"encode, client's", encode, &client, BATCH},
        {"encode, server's", encode, &server, BATCH},
        {"decode, client's", decode, &client, BATCH},
        {"decode, server's", decode, &server, BATCH},
    };

    fill(&client, false);
    fill(&server, true);
    encode(&client);
    encode(&server);
    leat_bench_rounds(b, pieces, 4, (count + BATCH - 1) / BATCH);
}
