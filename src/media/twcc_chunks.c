/* media/twcc_chunks.c: the fewest chunks for a row of symbols.
 *
 * A chunk is a run (any length, one symbol), a one-bit vector (exactly 14 symbols, none large) or a
 * two-bit vector (exactly 7). The last vector may reach past the end.
 *
 * In a row without large symbols the longest chunk each time is best. There a later start never
 * needs more chunks than an earlier one: what covers the row from i covers it from i + 1, a run
 * shortened by one and a vector moved on by one, which no symbol forbids, and so on behind it. So
 * the chunk that reaches furthest leaves the least to do. Most feedback is such rows.
 *
 * With large symbols a one-bit vector cannot move on past one, and a run may do better to stop
 * short, so that the vectors behind it line up with the next run. Then this goes backwards and
 * works out for each position the fewest chunks from there to the end:
 *
 *     fewest(i) = 1 + the least of fewest(i+7), of fewest(i+14) if none of these symbols is large,
 *                     and of fewest(j) for j in (i, end of the run that i lies in]
 *
 * The third least is kept up while going back through the run. Deep inside a run, 14 symbols or
 * more before its end, both vectors would end inside it, where the run could have ended as well.
 * There all positions have one answer and the way back leads straight to the start of the run.
 *
 * A candidate is one number, how many chunks above and where the chunk ends below, so that the
 * least of three has no branches in it: on a lossy path nobody could predict them.
 *
 *     0 1 2 3 ...                                    15
 *     +-+---+-----------------------------------------+
 *     |0| S |              run length                 |
 *     +-+-+-+-----------------------------------------+
 *     |1|0|             14 symbols of one bit         |
 *     +-+-+-------------------------------------------+
 *     |1|1|              7 symbols of two bits        |
 *     +-+-+-------------------------------------------+
 *
 * SPDX-License-Identifier: MIT
 */
#include "media/twcc_chunks.h"

#include "base/assert.h"
#include "base/cursor.h"

enum {
    RING = 16, /* fewest() of the positions just behind: a power of two over 14 */
    SHIFT = 16,
    KIND_RUN = 0,
    KIND_TWO = 1,
    KIND_ONE = 2,
    KIND_BITS = 2,
    KIND_MASK = 3,
};

static inline uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* A chunk of that kind which ends at `to`, from where `fewest` are needed. */
static inline uint32_t candidate(uint32_t fewest, uint32_t to, uint32_t kind)
{
    return fewest << SHIFT | to << KIND_BITS | kind;
}

typedef struct planner {
    uint32_t fewest[RING];
    uint32_t run;    /* the best candidate that ends within the present run */
    uint32_t behind; /* fewest(i + 1) */
    uint32_t clean;  /* symbols from here on that are not large */
    uint32_t symbol; /* of the present run */
    uint32_t same;   /* how many of it are planned */
} planner;

/* The start of the run that i lies in. */
static uint32_t run_start(const leat_twcc_row *row, uint32_t i)
{
    uint64_t all = row->symbol[i] * UINT64_C(0x0101010101010101), word;

    for (; i >= sizeof word; i -= sizeof word) {
        memcpy(&word, row->symbol + i - sizeof word, sizeof word);
        if (word != all) {
            break;
        }
    }
    while (i > 0 && row->symbol[i - 1] == (uint8_t)all) {
        i--;
    }
    return i;
}

/* From position i, planned and deep enough in its run, to the start of the run: returns that. Only
 * the positions that a vector from before the run can reach are filled in. */
static uint32_t plan_inside(planner *p, leat_twcc_row *row, uint32_t i)
{
    uint32_t start = run_start(row, i);
    uint32_t best = lesser(p->run, candidate(p->behind, i, KIND_RUN));

    p->behind = (best >> SHIFT) + 1;
    for (uint32_t at = start; at < i && at < start + RING; at++) {
        row->next[at] = (uint16_t)best;
        p->fewest[at % RING] = p->behind;
    }
    p->clean += p->symbol == LEAT_TWCC_LARGE ? 0 : i - start;
    return start;
}

/* One position. */
static inline void plan_at(planner *p, leat_twcc_row *row, uint32_t i)
{
    uint32_t two = i + LEAT_TWCC_TWO_BIT, one = i + LEAT_TWCC_ONE_BIT;
    bool goes_on = row->symbol[i] == p->symbol;
    uint32_t best;

    two = candidate(p->fewest[two % RING], two, KIND_TWO);
    one = candidate(p->fewest[one % RING], one, KIND_ONE);
    p->run = lesser(goes_on ? p->run : UINT32_MAX, candidate(p->behind, i + 1, KIND_RUN));
    p->same = goes_on ? p->same + 1 : 1;
    p->symbol = row->symbol[i];
    p->clean = p->symbol == LEAT_TWCC_LARGE ? 0 : p->clean + 1;
    one = p->clean >= LEAT_TWCC_ONE_BIT ? one : UINT32_MAX;
    best = lesser(lesser(one, two), p->run);
    row->next[i] = (uint16_t)best;
    p->behind = (best >> SHIFT) + 1;
    p->fewest[i % RING] = p->behind;
}

/* Where the run that begins at i ends. */
static uint32_t run_end(const leat_twcc_row *row, uint32_t i)
{
    uint64_t all = row->symbol[i] * UINT64_C(0x0101010101010101), word;

    for (; i + sizeof word <= row->n; i += sizeof word) {
        memcpy(&word, row->symbol + i, sizeof word);
        if (word != all) {
            return i + (uint32_t)__builtin_ctzll(word ^ all) / 8;
        }
    }
    while (i < row->n && row->symbol[i] == (uint8_t)all) {
        i++;
    }
    return i;
}

uint32_t leat_twcc_plan_small(leat_twcc_row *row)
{
    uint32_t count = 0;

    LEAT_DCHECK(row->n > 0);
    for (uint32_t i = 0; i < row->n; count++) {
        uint32_t run = run_end(row, i), to = i + LEAT_TWCC_ONE_BIT, kind = KIND_ONE;

        if (run >= to || run == row->n) {
            to = run;
            kind = KIND_RUN;
        } else if (i + LEAT_TWCC_TWO_BIT >= row->n) { /* as leat_twcc_plan() would */
            to = i + LEAT_TWCC_TWO_BIT;
            kind = KIND_TWO;
        }
        row->next[i] = (uint16_t)(to << KIND_BITS | kind);
        i = to;
    }
    return count;
}

uint32_t leat_twcc_plan(leat_twcc_row *row)
{
    planner p = {.clean = LEAT_TWCC_ONE_BIT,
                 .symbol = UINT32_MAX}; /* past the end, none are needed */

    LEAT_DCHECK(row->n > 0);
    for (uint32_t i = row->n; i-- > 0;) {
        plan_at(&p, row, i);
        if (LEAT_UNLIKELY(p.same == LEAT_TWCC_ONE_BIT) && i > 0 && row->symbol[i - 1] == p.symbol) {
            i = plan_inside(&p, row, i);
        }
    }
    return p.behind;
}

/* The symbols of a vector at `at`, of `bits` bits each; past the end they are 0. */
static inline uint16_t vector(const uint8_t *at, unsigned count, unsigned bits)
{
    unsigned chunk = 0;

    for (unsigned i = 0; i < count; i++) {
        chunk = chunk << bits | at[i];
    }
    return (uint16_t)chunk;
}

uint8_t *leat_twcc_write_chunks(leat_twcc_row *row, uint8_t *out)
{
    uint32_t to;

    memset(row->symbol + row->n, 0, LEAT_TWCC_ONE_BIT);
    for (uint32_t i = 0; i < row->n; i = to) {
        const uint8_t *at = row->symbol + i;
        uint16_t chunk;

        to = row->next[i] >> KIND_BITS;
        switch (row->next[i] & KIND_MASK) {
        case KIND_ONE:
            chunk = 0x8000 | vector(at, LEAT_TWCC_ONE_BIT, 1);
            break;
        case KIND_TWO:
            chunk = 0xc000 | vector(at, LEAT_TWCC_TWO_BIT, 2);
            break;
        default:
            chunk = leat_twcc_run_chunk(*at, to - i);
            break;
        }
        leat_store_u16(out, chunk);
        out += 2;
    }
    return out;
}
