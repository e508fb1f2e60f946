/* bench/work_protect.c: `leat bench protect`: what packet protection alone costs, the least that
 * any packet does: sealing and masking on one side, masking and opening on the other. Batches of as
 * many packets as a burst has, one key, by the door that the connection uses.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include "crypto/keys.h"
#include "wire/version.h"

#include "bench.h"

enum {
    BATCH = 16,
    ROUND = 2000 / BATCH * BATCH,
    CID = 8,
    PN = 2,
    HEADER = 1 + CID + PN,
    PACKET_MOST = 65527,
};

typedef struct protect {
    leat_key_cache *cache;
    leat_packet_keys keys;
    size_t size; /* of the datagram */
    uint64_t pn;
    bool opens;
    uint8_t *packets; /* BATCH of them */
} protect;

static void seal_batch(protect *p)
{
    leat_seal_op ops[BATCH];

    for (size_t i = 0; i < BATCH; i++) {
        uint8_t *packet = p->packets + i * p->size;

        packet[0] = LEAT_FIRST_FIXED | (PN - 1);
        packet[1 + CID] = (uint8_t)((p->pn + i) >> 8);
        packet[1 + CID + 1] = (uint8_t)(p->pn + i);
        ops[i] = (leat_seal_op){.packet = packet,
                                .pn = p->pn + i,
                                .header_len = HEADER,
                                .payload_len = (uint32_t)(p->size - HEADER - LEAT_AEAD_TAG),
                                .pn_len = PN};
    }
    leat_bench_must(leat_seal(p->cache, &p->keys, ops, BATCH), "seal");
}

static void open_batch(protect *p)
{
    for (size_t i = 0; i < BATCH; i++) {
        uint8_t *packet = p->packets + i * p->size;
        leat_mask_op mask = {.sample = packet + 1 + CID + LEAT_PN_LEN_MAX};
        leat_open_op op = {.header = packet, .pn = p->pn + i};
        uint32_t truncated;

        leat_bench_must(leat_mask(p->cache, &p->keys, &mask, 1), "mask");
        op.header_len =
            (uint32_t)(1 + CID + leat_hp_remove(packet, 1 + CID, mask.mask, &truncated));
        op.payload = packet + op.header_len;
        op.payload_len = (uint32_t)(p->size - op.header_len);
        leat_bench_must(leat_open(p->cache, &p->keys, &op, 1), "open");
        leat_bench_must(op.result, "open");
    }
}

static void round_of(void *arg)
{
    protect *p = arg;

    for (size_t i = 0; i < ROUND; i += BATCH) {
        seal_batch(p);
        if (p->opens) {
            open_batch(p);
        }
        p->pn += BATCH;
    }
}

void leat_bench_protect(leat_bench *b)
{
    static const uint8_t secret[LEAT_SECRET_MAX] = {0x6c, 0x65, 0x61, 0x74};
    static uint8_t packets[BATCH * PACKET_MOST];
    const leat_bench_options *o = b->options;
    uint64_t count = leat_bench_or(o->count, ROUND * LEAT_BENCH_ROUNDS);
    char sealed[LEAT_BENCH_NAME], both[LEAT_BENCH_NAME], size[LEAT_BENCH_SIZE_TEXT];
    protect seal = {.size = (size_t)leat_bench_or(o->size, 1252), .packets = packets}, all;
    leat_mem *mem;

    if (seal.size < HEADER + LEAT_PN_LEN_MAX + LEAT_AEAD_TAG || seal.size > PACKET_MOST) {
        leat_bench_fail("--size: %d to %d", HEADER + LEAT_PN_LEN_MAX + LEAT_AEAD_TAG, PACKET_MOST);
    }
    leat_bench_must(leat_mem_new(NULL, &mem), "memory");
    leat_bench_must(leat_key_cache_new(mem, NULL, 0, &seal.cache), "key cache");
    leat_packet_keys_init(&seal.keys);
    leat_packet_keys_set(&seal.keys, leat_schedule_for(LEAT_VERSION_1), LEAT_AEAD_AES_128_GCM,
                         secret);
    all = seal;
    all.opens = true;
    snprintf(sealed, sizeof sealed, "seal %s", leat_bench_size_text(seal.size, size));
    snprintf(both, sizeof both, "seal and open %s", leat_bench_size_text(seal.size, size));
    const leat_bench_piece pieces[] = {
        {sealed, round_of, &seal, ROUND},
        {both, round_of, &all, ROUND},
    };
    leat_bench_rounds(b, pieces, 2, (count + ROUND - 1) / ROUND);
    leat_packet_keys_drop(&seal.keys, seal.cache);
    leat_key_cache_free(seal.cache);
    leat_mem_free(mem);
}
