/* Random arrivals on several streams, recorder to bytes to parser: the same packets, marks and
 * times, in reports of every size. */
#include "media_test.h"

#include <leat/ccfb.h>
#include <leat/limits.h>

enum { SEEDS = SLOW_BUILD ? 15000 : 1000000, STREAMS = 5, NUMBERS = 512 };

typedef struct stream {
    uint32_t ssrc;
    uint64_t first, end, base; /* numbers, unwrapped by the test */
    bool came[NUMBERS];
    uint8_t ecn[NUMBERS];
    leat_time at[NUMBERS];
} stream;

typedef struct rig {
    uint64_t seed;
    leat_prng prng;
    leat_ccfb_recorder recorder;
    leat_time now;
    stream streams[STREAMS];
} rig;

static void arrive(rig *r)
{
    stream *s = &r->streams[leat_prng_below(&r->prng, STREAMS)];
    uint64_t dice = leat_prng_below(&r->prng, 10), seq = s->end, i;
    uint8_t ecn = (uint8_t)leat_prng_below(&r->prng, 4);

    r->now += leat_prng_below(&r->prng, 3 * MS);
    if (dice == 0 && s->end > s->first) {
        seq += leat_prng_below(&r->prng, 5);
    } else if (dice == 1 && s->end > s->first) {
        seq = s->first + leat_prng_below(&r->prng, s->end - s->first);
    }
    i = seq - s->first;
    if (i >= NUMBERS) {
        return;
    }
    assert_seed(leat_ccfb_record(&r->recorder, s->ssrc, (uint16_t)seq, r->now, ecn) == LEAT_OK,
                r->seed);
    if (s->came[i]) {
        s->ecn[i] |= ecn == 3 ? 3 : 0;
        return;
    }
    s->came[i] = true;
    s->ecn[i] = ecn;
    s->at[i] = r->now;
    s->end = seq >= s->end ? seq + 1 : s->end;
    s->base = seq < s->base ? seq : s->base;
}

static void check(rig *r, const leat_ccfb_status *status)
{
    for (unsigned n = 0; n < STREAMS; n++) {
        stream *s = &r->streams[n];
        uint64_t i = s->base - s->first;

        if (s->ssrc != status->ssrc) {
            continue;
        }
        assert_seed(status->seq == (uint16_t)s->base, r->seed);
        assert_seed(status->received == s->came[i], r->seed);
        if (s->came[i]) {
            /* half a unit, and what 1/65536 s rounds down of both clocks */
            int64_t ago = (int64_t)(r->now - s->at[i]);
            int64_t error = status->ato * (int64_t)LEAT_SECOND / 1024 - ago;

            assert_seed(status->ecn == s->ecn[i], r->seed);
            assert_seed(error < 505000 && error > -505000, r->seed);
        }
        s->base++;
        return;
    }
    fail_msg("a stream that is not there, seed %llu", (unsigned long long)r->seed);
}

static void report(rig *r)
{
    uint8_t out[1500];
    size_t size = (size_t)leat_prng_between(&r->prng, LEAT_CCFB_BUILD_MIN, sizeof out);

    do {
        size_t len = leat_ccfb_build(&r->recorder, r->now, out, size);
        bytes exact = bytes_copy(out, len);
        leat_ccfb_iter it;
        leat_ccfb_status status;

        assert_seed(len >= LEAT_CCFB_EMPTY && len <= size && len % 4 == 0, r->seed);
        assert_seed(leat_ccfb_parse(span_of(exact), &it) == LEAT_OK, r->seed);
        while (leat_ccfb_next(&it, &status)) {
            check(r, &status);
        }
        free(exact.data);
    } while (leat_ccfb_pending(&r->recorder));
    for (unsigned n = 0; n < STREAMS; n++) {
        assert_seed(r->streams[n].base == r->streams[n].end, r->seed);
    }
}

static void run(leat_mem *mem, uint64_t seed)
{
    static rig r;
    leat_ccfb_settings settings;

    r = (rig){.seed = seed};
    leat_prng_seed(&r.prng, seed);
    r.now = LEAT_SECOND + leat_prng_below(&r.prng, (uint64_t)1 << 58);
    for (unsigned n = 0; n < STREAMS; n++) {
        stream *s = &r.streams[n];

        s->ssrc = (uint32_t)leat_prng_u64(&r.prng) & ~7u;
        s->ssrc |= n;
        s->first = s->end = s->base = 65536 + leat_prng_below(&r.prng, 65536);
    }
    leat_ccfb_settings_init(&settings);
    settings.packets = NUMBERS;
    assert_int_equal(leat_ccfb_recorder_init(&r.recorder, mem, &settings), LEAT_OK);
    for (unsigned i = 0; i < 100; i++) {
        arrive(&r);
        if (leat_prng_below(&r.prng, 30) == 0) {
            report(&r);
        }
    }
    report(&r);
    leat_ccfb_recorder_free(&r.recorder);
}

static void what_arrives_is_what_is_reported(void **state)
{
    seeds s = seeds_start(SEEDS);
    leat_mem *mem = new_mem();

    (void)state;
    for (; s.next <= s.last; s.next++) {
        run(mem, s.next);
    }
    leat_mem_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_arrives_is_what_is_reported)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
