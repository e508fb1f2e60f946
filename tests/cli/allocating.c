/* tests/cli/allocating.c: a program whose heap calls are known, for test_allocs_command.py.
 *
 * usage: allocating N [threads|part|fail|int|term]
 *
 * int, term: it ends by SIGINT to its process group, as Ctrl-C comes, or by SIGTERM to itself.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#ifdef __clang__
#    define OUTSIDE __attribute__((noinline, optnone))
#else
#    define OUTSIDE __attribute__((noinline, noipa))
#endif

/* So that the compiler leaves every call alone. */
static __thread void *volatile sink;

OUTSIDE void makes_one(void);
OUTSIDE void makes_many(void);
OUTSIDE void at_start(void);

OUTSIDE void makes_one(void)
{
    sink = malloc(100);
    free(sink);
}

OUTSIDE void makes_many(void)
{
    void *p = NULL;

    sink = calloc(2, 8);
    free(sink);
    sink = calloc(1, 8);
    sink = realloc(sink, 64);
    free(sink);
    if (posix_memalign(&p, 64, 64) == 0) {
        sink = p;
        free(sink);
    }
    sink = aligned_alloc(64, 128);
    free(sink);
}

OUTSIDE void at_start(void)
{
    for (int i = 0; i < 17; i++) {
        sink = malloc(10);
        free(sink);
    }
}

static long count;

static void *work(void *arg)
{
    for (long i = 0; i < count; i++) {
        makes_one();
        makes_many();
    }
    return arg;
}

typedef void mark_fn(const char *name);
typedef void switch_fn(void);

static void *library_function(const char *name)
{
    void *f = dlsym(RTLD_DEFAULT, name);

    if (!f) {
        exit(4);
    }
    return f;
}

static void part(void)
{
    mark_fn *mark = (mark_fn *)library_function("leat_allocs_mark");
    switch_fn *start = (switch_fn *)library_function("leat_allocs_start");
    switch_fn *stop = (switch_fn *)library_function("leat_allocs_stop");

    mark("begun");
    start();
    work(NULL);
    stop();
    mark("done");
    at_start(); /* not looked at */
}

int main(int argc, char **argv)
{
    const char *how = argc > 2 ? argv[2] : "";
    pthread_t threads[8];

    count = argc > 1 ? atol(argv[1]) : 0;
    at_start();
    if (strcmp(how, "threads") == 0) {
        for (int i = 0; i < 8; i++) {
            pthread_create(&threads[i], NULL, work, NULL);
        }
        for (int i = 0; i < 8; i++) {
            pthread_join(threads[i], NULL);
        }
    } else if (strcmp(how, "part") == 0) {
        part();
    } else {
        work(NULL);
    }
    if (strcmp(how, "int") == 0) {
        kill(0, SIGINT);
    } else if (strcmp(how, "term") == 0) {
        raise(SIGTERM);
    }
    return strcmp(how, "fail") == 0 ? 3 : 0;
}
