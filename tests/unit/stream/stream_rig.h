/* stream_rig.h: what the tests of src/stream share: a context's memory, pools, a budget, and
 * buffers that stand for received packets.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef STREAM_RIG_H
#define STREAM_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <leat/buf.h>
#include <leat/limits.h>
#include <leat/transport_error.h>

#include "base/prng.h"
#include "stream/app.h"
#include "stream/input.h"
#include "stream/output.h"

typedef struct rig {
    leat_mem *mem;
    leat_stream_pools pools;
    leat_budget budget;
    leat_stream_env env;
} rig;

static inline void rig_init(rig *r, size_t budget)
{
    assert_int_equal(leat_mem_new(NULL, &r->mem), LEAT_OK);
    leat_stream_pools_init(&r->pools, r->mem);
    leat_budget_init(&r->budget, budget);
    r->env = (leat_stream_env){.pools = &r->pools, .budget = &r->budget};
}

/* Everything must have come back: bytes, objects, budget. */
static inline void rig_free(rig *r)
{
    leat_mem_stats stats;

    leat_budget_check(&r->budget);
    assert_int_equal(r->budget.used, 0);
    assert_int_equal(leat_pool_live(&r->pools.streams), 0);
    assert_int_equal(leat_pool_live(&r->pools.segments), 0);
    leat_stream_pools_free(&r->pools);
    leat_mem_stats_get(r->mem, &stats);
    assert_int_equal(stats.buf_live, 0);
    assert_int_equal(stats.obj_live, 0);
    leat_mem_free(r->mem);
}

/* The byte that every test stream has at an offset: no short period, so that a shift shows. */
static inline uint8_t rig_byte(uint64_t seed, uint64_t offset)
{
    uint64_t x = (offset + seed * 0x9e3779b97f4a7c15u) * 0xd1342543de82ef95u;

    return (uint8_t)(x >> 56);
}

static inline void rig_fill(uint8_t *out, uint64_t seed, uint64_t offset, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        out[i] = rig_byte(seed, offset + i);
    }
}

static inline void rig_expect(const uint8_t *data, uint64_t seed, uint64_t offset, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] != rig_byte(seed, offset + i)) {
            fail_msg("wrong byte at offset %llu", (unsigned long long)(offset + i));
        }
    }
}

/* A packet's buffer with the stream bytes [offset, offset + len) in it. */
static inline leat_buf rig_packet(rig *r, uint64_t seed, uint64_t offset, size_t len)
{
    leat_buf buf;

    assert_int_equal(leat_buf_take(r->mem, len, &buf), LEAT_OK);
    rig_fill(buf.data, seed, offset, len);
    return buf;
}

/* The seed of a random test: LEAT_TEST_SEED replays one; printed when the test begins. */
static inline uint64_t rig_seed(const char *test, uint64_t fallback)
{
    const char *text = getenv("LEAT_TEST_SEED");
    uint64_t seed = text ? strtoull(text, NULL, 0) : fallback;

    print_message("%s: replay with LEAT_TEST_SEED=%llu\n", test, (unsigned long long)seed);
    return seed;
}

#endif
