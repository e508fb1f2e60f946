/* bench/reproduce/twcc.c: src/media/twcc_record.c and twcc_build.c with the allocations of the old
 * way. For measurement only: it stands before libleat in the link, whose two files are then left
 * out.
 *
 * The old way takes a piece of the heap for every packet recorded (the unwrapped number, whose
 * address was taken) and, when feedback is built, one for each delta, gathered in an array that
 * grows; all go once the feedback is written. What is recorded and written is the same.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/twcc.h>

#include <stdlib.h>

void leat_twcc_record_plain(leat_twcc_recorder *r, uint32_t ssrc, uint16_t seq, leat_time arrival);
size_t leat_twcc_build_plain(leat_twcc_recorder *r, uint8_t *out, size_t cap);
#define leat_twcc_record leat_twcc_record_plain
#define leat_twcc_build  leat_twcc_build_plain
#include "media/twcc_record.c"
#include "media/twcc_build.c"
#undef leat_twcc_record
#undef leat_twcc_build

typedef struct recv_delta {
    uint32_t mark;
    uint8_t symbol;
} recv_delta;

/* As far as the compiler knows, somebody reads what p points to. */
static void escape(const void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

void leat_twcc_record(leat_twcc_recorder *r, uint32_t ssrc, uint16_t seq, leat_time arrival)
{
    uint64_t *start = malloc(sizeof *start);

    LEAT_ASSERT(start);
    *start = seq;
    escape(start);
    leat_twcc_record_plain(r, ssrc, seq, arrival);
    free(start);
}

/* A delta for each packet that came of those that the next feedback may tell of. */
static size_t make_deltas(const leat_arrivals *a, recv_delta ***out)
{
    uint64_t end = a->end - a->base > LEAT_TWCC_ROW ? a->base + LEAT_TWCC_ROW : a->end;
    size_t count = 0, cap = 0;

    for (uint64_t seq = a->base; seq < end; seq++) {
        uint32_t slot = *leat_arrivals_slot(a, seq);

        if (slot == 0) {
            continue;
        }
        if (count == cap) {
            cap = cap ? 2 * cap : 1;
            *out = realloc(*out, cap * sizeof **out);
            LEAT_ASSERT(*out);
        }
        (*out)[count] = malloc(sizeof ***out);
        LEAT_ASSERT((*out)[count]);
        *(*out)[count++] = (recv_delta){slot, LEAT_TWCC_SMALL};
    }
    return count;
}

size_t leat_twcc_build(leat_twcc_recorder *r, uint8_t *out, size_t cap)
{
    recv_delta **deltas = NULL;
    size_t count, len;

    leat_arrivals_settle(&r->arrivals);
    count = make_deltas(&r->arrivals, &deltas);
    escape(deltas);
    len = leat_twcc_build_plain(r, out, cap);
    while (count > 0) {
        free(deltas[--count]);
    }
    free(deltas);
    return len;
}
