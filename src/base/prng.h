/* base/prng.h: a fast generator for tests and simulation: xoshiro256**, seeded by splitmix64.
 *
 * Predictable: nothing that goes on the wire may come from it. One seed always gives one sequence.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_BASE_PRNG_H
#define LEAT_BASE_PRNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct leat_prng {
    uint64_t s[4];
} leat_prng;

/* Any seed will do, 0 too. */
void leat_prng_seed(leat_prng *prng, uint64_t seed);

uint64_t leat_prng_u64(leat_prng *prng);

/* Evenly in [0, n), without bias. n > 0. */
uint64_t leat_prng_below(leat_prng *prng, uint64_t n);

/* Evenly in [least, most]. */
uint64_t leat_prng_between(leat_prng *prng, uint64_t least, uint64_t most);

/* True with the probability of `parts` in `whole`. whole > 0. */
bool leat_prng_chance(leat_prng *prng, uint64_t parts, uint64_t whole);

void leat_prng_fill(leat_prng *prng, void *out, size_t n);

#endif
