/* io/clock.c: the clock.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/loop.h>

#include <time.h>

leat_time leat_clock_now(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts); /* cannot fail with this clock and a valid pointer */
    return (leat_time)ts.tv_sec * LEAT_SECOND + (leat_time)ts.tv_nsec;
}
