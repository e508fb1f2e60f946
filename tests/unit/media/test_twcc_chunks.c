/* media/twcc_chunks.h: as few chunks as can be, and the same symbols when they are read back. */
#include "media_test.h"

#include "base/cursor.h"
#include "media/twcc_chunks.h"

static leat_twcc_row row;
static uint8_t chunks[2 * LEAT_TWCC_ROW];

/* The fewest chunks by trying everything: every kind of chunk, every length of run. */
static uint32_t fewest_by_trying(const leat_twcc_row *r)
{
    static uint32_t fewest[LEAT_TWCC_ROW + LEAT_TWCC_ONE_BIT + 1];

    memset(fewest, 0, sizeof fewest);
    for (uint32_t i = r->n; i-- > 0;) {
        uint32_t least = fewest[i + LEAT_TWCC_TWO_BIT], clean = 0;

        for (uint32_t j = i; j < i + LEAT_TWCC_ONE_BIT; j++) {
            clean += j >= r->n || r->symbol[j] != LEAT_TWCC_LARGE;
        }
        if (clean == LEAT_TWCC_ONE_BIT && fewest[i + LEAT_TWCC_ONE_BIT] < least) {
            least = fewest[i + LEAT_TWCC_ONE_BIT];
        }
        for (uint32_t j = i + 1; j <= r->n && r->symbol[j - 1] == r->symbol[i]; j++) {
            least = fewest[j] < least ? fewest[j] : least;
        }
        fewest[i] = least + 1;
    }
    return fewest[0];
}

/* What the draft says that chunks say, one symbol at a time. */
static void read_back(const uint8_t *at, const uint8_t *end, uint8_t *out, uint32_t n)
{
    uint32_t got = 0;

    while (at < end) {
        uint16_t chunk = leat_load_u16(at);
        uint32_t count = chunk & 0x8000 ? (chunk & 0x4000 ? 7 : 14) : chunk & 0x1fff;

        assert_true(got < n);
        assert_true(count > 0);
        for (uint32_t i = 0; i < count && got < n; i++, got++) {
            out[got] = !(chunk & 0x8000) ? chunk >> 13 & 3
                       : chunk & 0x4000  ? chunk >> (12 - 2 * i) & 3
                                         : chunk >> (13 - i) & 1;
        }
        at += 2;
    }
    assert_int_equal(got, n);
}

/* Writes the row as planned, reads it back. */
static void check_plan(uint32_t planned)
{
    static uint8_t before[LEAT_TWCC_ROW], after[LEAT_TWCC_ROW];
    uint8_t *end;

    memcpy(before, row.symbol, row.n);
    end = leat_twcc_write_chunks(&row, chunks);
    assert_int_equal(end - chunks, 2 * planned);
    read_back(chunks, end, after, row.n);
    assert_memory_equal(before, after, row.n);
}

/* Plans the row, in both ways where both may be had; returns how many chunks it took. */
static uint32_t check_row(void)
{
    uint32_t planned;

    if (!memchr(row.symbol, LEAT_TWCC_LARGE, row.n)) {
        planned = leat_twcc_plan_small(&row);
        check_plan(planned);
        assert_int_equal(leat_twcc_plan(&row), planned);
    }
    planned = leat_twcc_plan(&row);
    check_plan(planned);
    return planned;
}

/* "5*1 0 2": five times 1, then 0, then 2 */
static void fill(const char *text)
{
    row.n = 0;
    while (*text) {
        unsigned long times = strtoul(text, (char **)&text, 10), symbol = times;

        if (*text == '*') {
            symbol = strtoul(text + 1, (char **)&text, 10);
        } else {
            times = 1;
        }
        for (; times > 0; times--) {
            row.symbol[row.n++] = (uint8_t)symbol;
        }
        text += *text == ' ';
    }
}

static void assert_chunks(const char *text, const char *hex)
{
    fill(text);
    assert_bytes(chunks, 2 * check_row(), hex);
}

static void each_kind_of_chunk_is_used_where_it_is_shortest(void **state)
{
    (void)state;
    assert_chunks("100*1", "2064");
    assert_chunks("4096*0", "1000");
    assert_chunks("9*2", "4009");
    assert_chunks("1 0 1 0 1 0 1 0 1 0 1 0 1 0", "aaaa");
    assert_chunks("2 1 0 2 1 0 2", "e492"); /* 10 01 00 10 01 00 10 */
    assert_chunks("1", "2001");
    assert_chunks("1 0", "d000");
}

/* The longest run first would take three: 15 ones, then 13 that need a vector, then the twos. */
static void a_run_stops_short_where_that_saves_a_chunk(void **state)
{
    (void)state;
    fill("14*1 1 0 1 0 1 0 1 0 1 0 1 0 1 0 50*2");
    assert_int_equal(check_row(), 3);
    fill("15*1 0 1 0 1 0 1 0 1 0 1 0 1 0 50*2");
    assert_int_equal(check_row(), 3);
}

static void no_row_of_up_to_nine_symbols_takes_more_than_it_must(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= 9; n++) {
        uint32_t all = 1;

        for (uint32_t i = 0; i < n; i++) {
            all *= 3;
        }
        for (uint32_t code = 0; code < all; code++) {
            uint32_t c = code;

            row.n = n;
            for (uint32_t i = 0; i < n; i++, c /= 3) {
                row.symbol[i] = (uint8_t)(c % 3);
            }
            assert_int_equal(check_row(), fewest_by_trying(&row));
        }
    }
}

/* Rows of runs: the lengths around which something changes come up often. */
static void random_rows_take_no_more_than_they_must(void **state)
{
    static const uint32_t lengths[] = {1,  1,  2,  3,  6,  7,  8,  13, 14,
                                       15, 16, 20, 28, 29, 30, 60, 200};
    seeds s = seeds_start(SLOW_BUILD ? 3000 : 60000);

    (void)state;
    for (; s.next <= s.last; s.next++) {
        uint32_t most, kinds;
        leat_prng prng;

        leat_prng_seed(&prng, s.next);
        most = (uint32_t)leat_prng_between(&prng, 1, 400);
        kinds = (uint32_t)leat_prng_between(&prng, 2, 3);
        for (row.n = 0; row.n < most;) {
            uint8_t symbol = (uint8_t)leat_prng_below(&prng, kinds);
            uint32_t len = lengths[leat_prng_below(
                &prng, leat_prng_below(&prng, 3) ? 4 : LEAT_COUNT_OF(lengths))];

            for (; len > 0 && row.n < most; len--) {
                row.symbol[row.n++] = symbol;
            }
        }
        assert_seed(check_row() == fewest_by_trying(&row), s.next);
    }
}

static void the_longest_row_fits(void **state)
{
    (void)state;
    row.n = LEAT_TWCC_ROW;
    for (uint32_t i = 0; i < row.n; i++) {
        row.symbol[i] = i % 3;
    }
    assert_int_equal(check_row(), (LEAT_TWCC_ROW + 6) / 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_of_chunk_is_used_where_it_is_shortest),
        cmocka_unit_test(a_run_stops_short_where_that_saves_a_chunk),
        cmocka_unit_test(no_row_of_up_to_nine_symbols_takes_more_than_it_must),
        cmocka_unit_test(random_rows_take_no_more_than_they_must),
        cmocka_unit_test(the_longest_row_fits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
