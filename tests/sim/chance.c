/* tests/sim/chance.c: see chance.h.
 *
 * GnuTLS 3.7 calls getrandom, time and clock_gettime, and seeds its own generator from them when
 * it is loaded, after a fork, and now and then (nm -D shows the names, the replay test that these
 * are all). The first calls come before main().
 *
 * SPDX-License-Identifier: MIT
 */
#include "chance.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>

#include "base/prng.h"

static leat_prng prng;
static bool seeded;
static uint64_t drawn;
static leat_time clock_now;

void leat_sim_chance_seed(uint64_t seed)
{
    leat_prng_seed(&prng, seed);
    seeded = true;
}

void leat_sim_chance_time(leat_time now)
{
    clock_now = now;
}

uint64_t leat_sim_chance_drawn(void)
{
    return drawn;
}

static void draw(void *out, size_t n)
{
    if (!seeded) {
        leat_sim_chance_seed(0);
    }
    leat_prng_fill(&prng, out, n);
    drawn += n;
}

/* ---- libc's names ---- */

#pragma GCC visibility push(default)

ssize_t getrandom(void *buffer, size_t length, unsigned int flags)
{
    (void)flags;
    draw(buffer, length);
    return (ssize_t)length;
}

int getentropy(void *buffer, size_t length)
{
    draw(buffer, length);
    return 0;
}

int clock_gettime(clockid_t id, struct timespec *out)
{
    (void)id;
    out->tv_sec = (time_t)(LEAT_SIM_EPOCH + (int64_t)(clock_now / LEAT_SECOND));
    out->tv_nsec = (long)(clock_now % LEAT_SECOND);
    return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    (void)zone;
    out->tv_sec = (time_t)(LEAT_SIM_EPOCH + (int64_t)(clock_now / LEAT_SECOND));
    out->tv_usec = (suseconds_t)(clock_now % LEAT_SECOND / LEAT_MICROSECOND);
    return 0;
}

time_t time(time_t *out)
{
    time_t now = (time_t)(LEAT_SIM_EPOCH + (int64_t)(clock_now / LEAT_SECOND));

    if (out) {
        *out = now;
    }
    return now;
}

#pragma GCC visibility pop
