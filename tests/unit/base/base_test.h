/* base_test.h: what the tests of base and mem share: cmocka's headers, seeds, and death tests.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_BASE_TEST_H
#define LEAT_TESTS_BASE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/prng.h"

/* Seeds a generator from LEAT_TEST_SEED, or from the clock, and prints the seed. */
static inline leat_prng test_prng(const char *what)
{
    const char *given = getenv("LEAT_TEST_SEED");
    uint64_t seed =
        given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL) * 1000003u + (uint64_t)getpid();
    leat_prng prng;

    printf("%s: LEAT_TEST_SEED=%llu replays it\n", what, (unsigned long long)seed);
    leat_prng_seed(&prng, seed);
    return prng;
}

static const char *death_text;

static inline void die_quietly(const char *file, int line, const char *text)
{
    (void)file;
    (void)line;
    _exit(death_text && strstr(text, death_text) ? 42 : 43);
}

/* Runs fn in a child and tells whether it ended in leat_panic() with a text that contains `text`.
 */
static inline bool panics(void (*fn)(void), const char *text)
{
    int status = 0;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        death_text = text;
        leat_panic_set_hook(die_quietly);
        fn();
        _exit(0);
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 42;
}

#endif
