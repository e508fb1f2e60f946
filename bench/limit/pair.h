/* bench/limit/pair.h: what both pairs of processes need.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_BENCH_LIMIT_PAIR_H
#define LEAT_BENCH_LIMIT_PAIR_H

#include <stdbool.h>

/* Ends the process with what it was and errno's text, unless it is good. */
void leat_limit_must(bool good, const char *what);

double leat_limit_now(void); /* seconds */
double leat_limit_cpu(void); /* seconds of this process */

/* Keeps this process to core i, where there are so many. */
void leat_limit_stay_on(unsigned i);

#endif
