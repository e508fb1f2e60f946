/* Random arrivals, recorder to bytes to parser, against a model that knows every packet by its full
 * number: loss, reordering, duplicates, the wrap, leaps ahead, pauses, a clock that steps back. */
#include "media_test.h"

#include <leat/limits.h>
#include <leat/twcc.h>

enum {
    SEEDS = SLOW_BUILD ? 20000 : 1000000,
    MODEL = 1 << 17, /* numbers the model remembers */
    LOOK = 64,       /* as media/arrivals.c */
    BUFFER = 1500,
};

/* What the model knows of a number. */
typedef struct packet {
    uint64_t seq; /* whose place it is; 0: nobody's */
    leat_time arrival;
} packet;

typedef struct rig {
    uint64_t seed;
    leat_prng prng;
    leat_twcc_recorder recorder;
    uint64_t size; /* of its ring */
    leat_time now;
    leat_time newest;
    uint64_t end;       /* one past the highest */
    uint64_t base;      /* first not reported */
    uint64_t reference; /* of the last feedback, unwrapped, in 64 ms */
    uint64_t statuses;
    uint64_t below; /* the last number that lay below the ring */
    size_t mtu;
    unsigned style;
    uint8_t count;
} rig;

static packet model[MODEL];

static uint64_t tick_of(leat_time t)
{
    return (t + LEAT_TWCC_TICK / 2) / LEAT_TWCC_TICK;
}

static bool came(uint64_t seq)
{
    return model[seq % MODEL].seq == seq;
}

static uint64_t ring_begin(const rig *r)
{
    return r->end - r->size;
}

/* Whether the recorder is to leave a late packet out. */
static bool is_refused(const rig *r, uint64_t seq)
{
    uint64_t base = r->base > ring_begin(r) ? r->base : ring_begin(r);

    if (seq < ring_begin(r)) {
        return true;
    }
    for (uint64_t s = seq + 1; s < base && s < seq + LOOK; s++) {
        if (came(s)) {
            return tick_of(r->newest) - tick_of(model[s % MODEL].arrival) >
                   LEAT_TWCC_WINDOW / LEAT_TWCC_TICK;
        }
    }
    return false;
}

static void arrive(rig *r, uint64_t seq)
{
    if (seq < ring_begin(r)) {
        if (seq == r->below + 1) {
            return; /* some of these would be a new start: test_twcc.c has that */
        }
        r->below = seq;
    }
    leat_twcc_record(&r->recorder, 7, (uint16_t)seq, r->now);
    if (seq >= r->end) {
        r->end = seq + 1;
    } else if (came(seq) || is_refused(r, seq)) {
        return;
    }
    model[seq % MODEL] = (packet){seq, r->now};
    r->newest = r->now > r->newest ? r->now : r->newest;
    r->base = seq < r->base ? seq : r->base;
}

/* The next number to arrive, and when. */
static uint64_t step(rig *r)
{
    uint64_t dice = leat_prng_below(&r->prng, 100);

    switch (leat_prng_below(&r->prng, r->style)) {
    case 0:
        r->now += 200 * US;
        break;
    case 1:
        r->now += leat_prng_below(&r->prng, 5 * MS);
        break;
    case 2:
        r->now += leat_prng_below(&r->prng, 200 * MS);
        break;
    case 3: /* more than 16 bits of ticks */
        r->now += dice < 10 ? leat_prng_below(&r->prng, 20 * LEAT_SECOND) : 0;
        break;
    default: /* the clock is not what it should be */
        r->now -= dice < 10 ? leat_prng_below(&r->prng, 50 * MS) : 0;
        break;
    }
    if (dice < 70) {
        return r->end;
    }
    if (dice < 80) {
        return r->end + leat_prng_below(&r->prng, 20);
    }
    if (dice < 90) {
        return r->end - 1 - leat_prng_below(&r->prng, 30);
    }
    if (dice < 97) {
        return r->end - 1 - leat_prng_below(&r->prng, 2 * r->size);
    }
    return r->end + leat_prng_below(&r->prng, 32768);
}

static void check_head(rig *r, const uint8_t *data, size_t len, const leat_twcc_iter *it)
{
    assert_seed(len <= r->mtu, r->seed);
    assert_seed(len % 4 == 0, r->seed);
    assert_seed(it->sender_ssrc == 5, r->seed);
    assert_seed(it->media_ssrc == 7, r->seed);
    assert_seed(it->count == r->count, r->seed);
    assert_seed(it->base == (uint16_t)r->base, r->seed);
    assert_seed((data[0] & 0x20) == 0, r->seed); /* GStreamer refuses padding of less than a word */
    r->count++;
}

/* One feedback packet: exactly the numbers from base on, as the model has them. */
static void check_packet(rig *r, const uint8_t *data, size_t len)
{
    leat_twcc_iter it;
    leat_twcc_status status;
    bytes exact = bytes_copy(data, len);
    int64_t step_back;

    assert_seed(leat_twcc_parse(span_of(exact), &it) == LEAT_OK, r->seed);
    check_head(r, data, len, &it);
    step_back = (int32_t)((it.reference - (uint32_t)r->reference) << 8) >> 8;
    r->reference += (uint64_t)step_back;
    it.time = r->reference * LEAT_TWCC_REFERENCE;
    while (leat_twcc_next(&it, &status)) {
        const packet *p = &model[r->base % MODEL];

        assert_seed(status.seq == (uint16_t)r->base, r->seed);
        assert_seed(status.received == came(r->base), r->seed);
        if (status.received) {
            int64_t error = (int64_t)(status.arrival - p->arrival);

            assert_seed(error <= 125000 && error >= -125000, r->seed);
        } else {
            assert_seed(status.arrival == LEAT_TIME_NEVER, r->seed);
        }
        r->base++;
        r->statuses++;
    }
    free(exact.data);
}

static void report(rig *r)
{
    uint8_t out[BUFFER];
    size_t len;

    r->mtu = leat_prng_between(&r->prng, LEAT_TWCC_BUILD_MIN, sizeof out);
    r->base = r->base > ring_begin(r) ? r->base : ring_begin(r);
    assert_seed(leat_twcc_pending(&r->recorder) == (r->base < r->end), r->seed);
    while ((len = leat_twcc_build(&r->recorder, out, r->mtu)) > 0) {
        check_packet(r, out, len);
    }
    assert_seed(r->base == r->end, r->seed);
    assert_seed(!leat_twcc_pending(&r->recorder), r->seed);
}

static void run(leat_mem *mem, uint64_t seed, unsigned records)
{
    rig r = {.seed = seed};

    leat_prng_seed(&r.prng, seed);
    r.size = (uint64_t)LEAT_TWCC_RECORD_MIN << leat_prng_below(&r.prng, 4);
    r.style = (unsigned)leat_prng_between(&r.prng, 1, 5);
    r.now = LEAT_SECOND + leat_prng_below(&r.prng, (uint64_t)1 << 60);
    r.reference = r.now / LEAT_TWCC_REFERENCE;
    r.end = (seed << 24) + leat_prng_below(&r.prng, 65536); /* no other seed's numbers */
    r.base = r.end;
    assert_int_equal(leat_twcc_recorder_init(&r.recorder, mem, 5, r.size), LEAT_OK);
    for (unsigned i = 0; i < records; i++) {
        arrive(&r, i == 0 ? r.end : step(&r));
        if (leat_prng_below(&r.prng, 20) == 0) {
            report(&r);
        }
    }
    report(&r);
    leat_twcc_recorder_free(&r.recorder);
}

static void what_arrives_is_what_is_reported(void **state)
{
    seeds s = seeds_start(SEEDS);
    leat_mem *mem = new_mem();

    (void)state;
    for (; s.next <= s.last; s.next++) {
        run(mem, s.next, 40);
    }
    leat_mem_free(mem);
}

static void it_stays_so_for_long(void **state)
{
    seeds s = seeds_start(SLOW_BUILD ? 5 : 50);
    leat_mem *mem = new_mem();

    (void)state;
    for (; s.next <= s.last; s.next++) {
        run(mem, s.next, 20000);
    }
    leat_mem_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_arrives_is_what_is_reported),
        cmocka_unit_test(it_stays_so_for_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
