/* tests/sim/chance.h: the clock and the random device of a simulated process.
 *
 * GnuTLS asks libc for both. chance.c defines these functions in the program itself, so that shared
 * libraries find them there first: time comes from the simulation, random bytes from its seed.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_SIM_CHANCE_H
#define LEAT_TESTS_SIM_CHANCE_H

#include <leat/base.h>

/* What 0 of the simulation's time is for the clocks of libc, in seconds since 1970. */
#define LEAT_SIM_EPOCH INT64_C(1767225600) /* 2026-01-01 */

/* From now on random bytes follow from this seed. Before the first call they follow from 0. */
void leat_sim_chance_seed(uint64_t seed);

/* Sets what the clocks say. */
void leat_sim_chance_time(leat_time now);

/* Random bytes asked for so far: none would mean that nobody asked here. */
uint64_t leat_sim_chance_drawn(void);

#endif
