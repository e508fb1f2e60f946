/* cli/cores.c: which core a thread runs on.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <sched.h>

/* The number-th core of a set, counted from 0 and round and round; false: the set is empty. */
static bool core_of(const cpu_set_t *set, size_t number, cpu_set_t *out)
{
    int count = CPU_COUNT(set);
    size_t left = count > 0 ? number % (size_t)count : 0;

    for (size_t core = 0; count > 0 && core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, set) && left-- == 0) {
            CPU_ZERO(out);
            CPU_SET(core, out);
            return true;
        }
    }
    return false;
}

bool leat_cli_pin(size_t number)
{
    cpu_set_t all, one;

    /* 0: the thread that calls. */
    return sched_getaffinity(0, sizeof all, &all) == 0 && core_of(&all, number, &one) &&
           sched_setaffinity(0, sizeof one, &one) == 0;
}
