/* Buffers against a model: whatever is taken, sliced, trimmed, advanced and released, each keeps
 * the bytes that its owner wrote, no two that were taken apart overlap, and the statistics are
 * exact.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem_test.h"

#define HELD_MAX 400u
#define STEPS    30000u

typedef struct held {
    leat_buf buf;
    unsigned origin; /* which take the bytes came from */
    uint8_t fill;
} held;

typedef struct model {
    leat_mem *mem;
    leat_prng prng;
    held held[HELD_MAX];
    unsigned count;
    unsigned takes;
} model;

static void check_bytes(const held *h)
{
    assert_true(leat_guard_all(h->buf.data, h->buf.len, h->fill));
}

static size_t some_size(leat_prng *prng)
{
    switch (leat_prng_below(prng, 8)) {
    case 0:
        return leat_prng_below(prng, 9);
    case 1:
        return leat_prng_between(prng, 2000, 2100);
    case 2:
        return leat_prng_between(prng, 2000, 20000);
    default:
        return leat_prng_below(prng, 1500);
    }
}

static void do_take(model *m)
{
    held *h = &m->held[m->count];
    size_t n = some_size(&m->prng);

    if (leat_buf_take(m->mem, n, &h->buf) != LEAT_OK) {
        assert_null(h->buf.block);
        return;
    }
    assert_int_equal(h->buf.len, n);
    assert_int_equal((uintptr_t)h->buf.data % 8, 0);
    h->origin = m->takes++;
    h->fill = (uint8_t)leat_prng_u64(&m->prng);
    memset(h->buf.data, h->fill, n);
    m->count++;
}

static void do_slice(model *m)
{
    const held *from = &m->held[leat_prng_below(&m->prng, m->count)];
    held *h = &m->held[m->count];
    size_t offset = leat_prng_below(&m->prng, from->buf.len + 1);

    *h = *from;
    h->buf =
        leat_buf_slice(&from->buf, offset, leat_prng_below(&m->prng, from->buf.len - offset + 1));
    m->count++;
}

static void do_shorten(model *m)
{
    held *h = &m->held[m->count - 1 - leat_prng_below(&m->prng, m->count < 3 ? m->count : 3)];

    leat_buf_trim(&h->buf, leat_prng_below(&m->prng, h->buf.len + 1));
}

static void do_release(model *m)
{
    held *h = &m->held[leat_prng_below(&m->prng, m->count)];

    check_bytes(h);
    leat_buf_release(&h->buf);
    *h = m->held[--m->count];
}

/* Every byte of each is what its owner wrote, so none of another origin lies on it; and the sums.
 */
static void check_all(const model *m)
{
    leat_mem_stats s = stats_of(m->mem);
    size_t used = 0;
    size_t pinned = 0;

    for (unsigned i = 0; i < m->count; i++) {
        const held *h = &m->held[i];
        bool counted = false;

        check_bytes(h);
        used += h->buf.len;
        for (unsigned k = 0; k < i; k++) {
            const held *other = &m->held[k];

            counted = counted || other->buf.block == h->buf.block;
            if (other->origin != h->origin && h->buf.len && other->buf.len) {
                assert_true(h->buf.data + h->buf.len <= other->buf.data ||
                            other->buf.data + other->buf.len <= h->buf.data);
            }
        }
        pinned += counted ? 0 : leat_buf_pinned(&h->buf);
    }
    assert_int_equal(s.buf_live, m->count);
    assert_int_equal(s.buf_used, used);
    assert_int_equal(s.buf_pinned, pinned);
}

static void run(size_t limit)
{
    static model m;

    m = (model){.mem = new_mem(4096, limit), .prng = test_prng("buf")};
    for (unsigned step = 0; step < STEPS; step++) {
        /* Swings between filling up and running dry. */
        unsigned fill = step / 500 % 2 ? 2 : 6;
        unsigned what = (unsigned)leat_prng_below(&m.prng, 10);

        if (what < fill && m.count < HELD_MAX) {
            if (m.count && leat_prng_chance(&m.prng, 1, 3)) {
                do_slice(&m);
            } else {
                do_take(&m);
            }
        } else if (m.count && what == 9) {
            do_shorten(&m);
        } else if (m.count) {
            do_release(&m);
        }
        if (step % 97 == 0) {
            check_all(&m);
        }
    }
    while (m.count) {
        do_release(&m);
    }
    check_all(&m);
    leat_mem_free(m.mem);
}

static void buffers_keep_their_bytes_and_the_counts_are_exact(void **state)
{
    (void)state;
    run(0);
}

static void so_they_do_with_memory_short(void **state)
{
    (void)state;
    run(300000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(buffers_keep_their_bytes_and_the_counts_are_exact),
        cmocka_unit_test(so_they_do_with_memory_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
