/* tests/sim/content.c: see content.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "content.h"

#include <string.h>

#include "base/prng.h"

static uint64_t word(uint64_t key, uint64_t index)
{
    uint64_t x = (key + index) * UINT64_C(0x9e3779b97f4a7c15);

    return x ^ x >> 29;
}

void leat_sim_content(uint64_t key, uint64_t offset, uint8_t *out, size_t n)
{
    while (n > 0) {
        uint64_t w = word(key, offset / 8);
        size_t skip = offset % 8, part = 8 - skip < n ? 8 - skip : n;

        memcpy(out, (const uint8_t *)&w + skip, part);
        out += part;
        offset += part;
        n -= part;
    }
}

size_t leat_sim_content_wrong(uint64_t key, uint64_t offset, const uint8_t *data, size_t n)
{
    size_t at = 0;

    while (at < n) {
        uint64_t w = word(key, (offset + at) / 8);
        size_t skip = (offset + at) % 8, part = 8 - skip < n - at ? 8 - skip : n - at;

        if (memcmp(data + at, (const uint8_t *)&w + skip, part) != 0) {
            while (data[at] == ((const uint8_t *)&w)[(offset + at) % 8]) {
                at++;
            }
            return at;
        }
        at += part;
    }
    return n;
}

/* Sizes: nothing, one byte, some, and a few that need many packets. */
static uint64_t some_size(leat_prng *prng, uint64_t most)
{
    switch (leat_prng_below(prng, 8)) {
    case 0:
        return 0;
    case 1:
        return most > 0 ? 1 : 0;
    case 2:
    case 3:
        return leat_prng_between(prng, 0, most < 100 ? most : 100);
    case 4:
    case 5:
        return leat_prng_between(prng, 0, most < 3000 ? most : 3000);
    default:
        return leat_prng_between(prng, 0, most);
    }
}

leat_sim_fate leat_sim_fate_of(const leat_sim_plan *plan, uint64_t stream_id, int sender)
{
    leat_prng prng;
    leat_sim_fate fate = {.reset_at = LEAT_SIM_NO, .stop_at = LEAT_SIM_NO};

    leat_prng_seed(&prng, plan->content ^ (stream_id * 2 + (uint64_t)sender) << 20);
    fate.key = leat_prng_u64(&prng);
    fate.size = some_size(&prng, plan->other_size);
    fate.reset_code = leat_prng_below(&prng, UINT64_C(1) << 62);
    fate.stop_code = leat_prng_below(&prng, UINT64_C(1) << 62);
    fate.after = leat_prng_chance(&prng, 1, 2);
    if (stream_id == 0 && sender == 1) { /* the file: always whole */
        fate.size = plan->size;
        return fate;
    }
    if (leat_prng_chance(&prng, plan->resets, LEAT_SIM_WHOLE)) {
        fate.reset_at = leat_prng_between(&prng, 0, fate.size);
    }
    if (leat_prng_chance(&prng, plan->stops, LEAT_SIM_WHOLE)) {
        fate.stop_at = leat_prng_between(&prng, 0, fate.size);
    }
    if (fate.reset_at != LEAT_SIM_NO && !plan->end[1 - sender].no_reset_at &&
        leat_prng_chance(&prng, plan->reliable, LEAT_SIM_WHOLE)) {
        fate.reliable = leat_prng_between(&prng, 0, fate.reset_at);
    }
    return fate;
}
