/* bench/limit/pair.c: see pair.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "pair.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

void leat_limit_must(bool good, const char *what)
{
    if (!good) {
        fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
        exit(1);
    }
}

double leat_limit_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

double leat_limit_cpu(void)
{
    struct rusage use;

    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) / 1e6;
}

void leat_limit_stay_on(unsigned i)
{
    cpu_set_t all, one;

    CPU_ZERO(&one);
    leat_limit_must(sched_getaffinity(0, sizeof all, &all) == 0, "affinity");
    for (unsigned core = 0, n = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &all) && n++ == i % (unsigned)CPU_COUNT(&all)) {
            CPU_SET(core, &one);
        }
    }
    leat_limit_must(sched_setaffinity(0, sizeof one, &one) == 0, "affinity");
}
