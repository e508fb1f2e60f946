/* twcc_lines: transport-wide feedback as lines of hexadecimal digits, so that another
 * implementation can be held against leat: twcc_lines SEED COUNT writes COUNT packets or some more.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>

#include <leat/twcc.h>

#include "base/prng.h"

/* Some packets of a path: of steady pace, or with pauses, loss and reordering. */
static void record_some(leat_twcc_recorder *r, leat_prng *prng, uint16_t *seq, leat_time *now)
{
    uint64_t rough = leat_prng_below(prng, 4);

    for (uint64_t n = leat_prng_between(prng, 1, 60); n > 0; n--) {
        uint64_t dice = leat_prng_below(prng, 20);

        *now += leat_prng_below(prng, 4 * LEAT_MILLISECOND);
        *now += rough > 1 && dice == 0 ? leat_prng_below(prng, 200 * LEAT_MILLISECOND) : 0;
        *seq = (uint16_t)(*seq + 1 + (rough > 0 && dice == 1 ? leat_prng_below(prng, 40) : 0));
        if (rough == 3 && dice == 2) { /* overtaken */
            leat_twcc_record(r, 7, (uint16_t)(*seq + 1), *now);
            leat_twcc_record(r, 7, *seq, *now + 10 * LEAT_MILLISECOND);
            (*seq)++;
        } else {
            leat_twcc_record(r, 7, *seq, *now);
        }
    }
}

static void write_hex(const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        printf("%02x", data[i]);
    }
    putchar('\n');
}

int main(int argc, char **argv)
{
    leat_time now = LEAT_SECOND;
    leat_twcc_recorder r;
    uint8_t out[1200];
    uint16_t seq = 65000;
    leat_prng prng;
    leat_mem *mem;
    long count;
    size_t len;

    if (argc != 3 || leat_mem_new(NULL, &mem) != LEAT_OK ||
        leat_twcc_recorder_init(&r, mem, 5, 0) != LEAT_OK) {
        return 2;
    }
    leat_prng_seed(&prng, strtoull(argv[1], NULL, 0));
    for (count = strtol(argv[2], NULL, 0); count > 0;) {
        record_some(&r, &prng, &seq, &now);
        while ((len = leat_twcc_build(&r, out, (size_t)leat_prng_between(&prng, 24, sizeof out))) >
               0) {
            write_hex(out, len);
            count--;
        }
    }
    leat_twcc_recorder_free(&r);
    leat_mem_free(mem);
    return 0;
}
