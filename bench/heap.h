/* bench/heap.h: how many heap calls there have been, and whose: asks tools/alloccount when that is
 * preloaded.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_BENCH_HEAP_H
#define LEAT_BENCH_HEAP_H

#include "bench.h"

/* Finds the counter and tells it whose code lies where. False: none is preloaded. */
bool leat_bench_heap_open(void);

/* So far. Zero when nothing counts. */
leat_bench_heap leat_bench_heap_now(void);

#endif
