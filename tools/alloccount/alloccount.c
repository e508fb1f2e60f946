/* tools/alloccount/alloccount.c: counts the heap calls of any dynamically linked program.
 *
 *     LD_PRELOAD=liballoccount.so LEAT_ALLOCS_OUT=FILE PROGRAM…
 *
 * Writes totals to FILE when the process exits, one key=value a line. A program that wants to look
 * while it runs finds leat_allocs_now() with dlsym(). LEAT_ALLOCS_STACKS=FILE records call stacks
 * too (stacks.h); `leat allocs` sets it and reads the file.
 *
 * Each call goes on to the C library's own allocator under its second name (__libc_malloc and so
 * on), so nothing has to be looked up, and nothing here allocates. Counters are plain atomics:
 * exact from any thread and from signal handlers, and no locks. calloc and realloc count as what
 * they are called as; realloc(NULL) counts as a realloc. glibc only.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "alloccount.h"
#include "stacks.h"
#include "walk.h"

#define EXPORT __attribute__((visibility("default")))

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *p, size_t size);
extern void *__libc_memalign(size_t align, size_t size);
extern void __libc_free(void *p);

static _Atomic uint64_t counts[LEAT_ALLOC_KINDS];
static _Atomic uint64_t bytes;

/* Pieces of code whose calls are counted apart, by the return address. */
static struct {
    uintptr_t from, to;
    unsigned group;
} ranges[LEAT_ALLOC_RANGES];
static unsigned range_count;
static _Atomic uint64_t group_calls[LEAT_ALLOC_GROUPS];
static _Atomic uint64_t group_bytes[LEAT_ALLOC_GROUPS];

static _Atomic int stacks_wanted; /* -1: not asked for; 0: not known yet; 1: recorded */

static unsigned group_of(uintptr_t caller)
{
    for (unsigned i = 0; i < range_count; i++) {
        if (caller - ranges[i].from < ranges[i].to - ranges[i].from) {
            return ranges[i].group;
        }
    }
    return 0;
}

/* At the first call that finds the environment there: libraries allocate in their constructors,
 * before any of ours would run. The first thread is the only one then. */
static void find_out(void)
{
    const char *path;

    if (!environ) {
        return;
    }
    path = getenv("LEAT_ALLOCS_STACKS");
    atomic_store(&stacks_wanted,
                 path && *path && leat_stacks_open(getenv("LEAT_ALLOCS_PAUSED") != NULL) ? 1 : -1);
}

/* Inlined: leat_stacks_count() passes over the frames of count_from() and of the heap function. */
static inline __attribute__((always_inline)) void count_stack(leat_alloc_kind kind, size_t size)
{
    if (atomic_load_explicit(&stacks_wanted, memory_order_relaxed) == 0) {
        find_out();
    }
    if (atomic_load_explicit(&stacks_wanted, memory_order_relaxed) > 0) {
        leat_stacks_count(kind, size);
    }
}

/* Not inlined: leat_stacks_count() passes over its frame. */
static __attribute__((noinline)) void count_from(leat_alloc_kind kind, size_t size, void *caller)
{
    atomic_fetch_add_explicit(&counts[kind], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes, size, memory_order_relaxed);
    if (atomic_load_explicit(&stacks_wanted, memory_order_relaxed) >= 0) {
        count_stack(kind, size);
    }
    if (range_count && kind != LEAT_ALLOC_FREE) {
        unsigned group = group_of((uintptr_t)caller);

        atomic_fetch_add_explicit(&group_calls[group], 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&group_bytes[group], size, memory_order_relaxed);
    }
}

/* In the function that the program called. */
#define count(kind, size) count_from(kind, size, __builtin_return_address(0))

/* ---- the heap calls ---- */

EXPORT void *malloc(size_t size)
{
    count(LEAT_ALLOC_MALLOC, size);
    return __libc_malloc(size);
}

EXPORT void *calloc(size_t n, size_t size)
{
    count(LEAT_ALLOC_CALLOC, n * size);
    return __libc_calloc(n, size);
}

EXPORT void *realloc(void *p, size_t size)
{
    count(LEAT_ALLOC_REALLOC, size);
    return __libc_realloc(p, size);
}

EXPORT void *reallocarray(void *p, size_t n, size_t size)
{
    size_t all;

    if (__builtin_mul_overflow(n, size, &all)) {
        errno = ENOMEM;
        return NULL;
    }
    count(LEAT_ALLOC_REALLOC, all);
    return __libc_realloc(p, all);
}

EXPORT void *memalign(size_t align, size_t size)
{
    count(LEAT_ALLOC_MEMALIGN, size);
    return __libc_memalign(align, size);
}

EXPORT void *aligned_alloc(size_t align, size_t size)
{
    count(LEAT_ALLOC_ALIGNED_ALLOC, size);
    return __libc_memalign(align, size);
}

EXPORT int posix_memalign(void **out, size_t align, size_t size)
{
    void *p;

    count(LEAT_ALLOC_POSIX_MEMALIGN, size);
    if (align < sizeof(void *) || (align & (align - 1))) {
        return EINVAL;
    }
    p = __libc_memalign(align, size);
    if (!p) {
        return ENOMEM;
    }
    *out = p;
    return 0;
}

EXPORT void *valloc(size_t size)
{
    count(LEAT_ALLOC_MEMALIGN, size);
    return __libc_memalign((size_t)sysconf(_SC_PAGESIZE), size);
}

EXPORT void free(void *p)
{
    if (p) {
        count(LEAT_ALLOC_FREE, 0);
    }
    __libc_free(p);
}

/* What the addresses of unloaded code meant is no longer known. */
EXPORT int dlclose(void *handle)
{
    static int (*_Atomic next)(void *);
    int (*close_it)(void *) = atomic_load_explicit(&next, memory_order_relaxed);

    if (!close_it) {
        void *found = dlsym(RTLD_NEXT, "dlclose");

        memcpy(&close_it, &found, sizeof close_it);
        atomic_store_explicit(&next, close_it, memory_order_relaxed);
    }
    leat_walk_forget();
    return close_it(handle);
}

/* ---- the counts ---- */

EXPORT uint64_t leat_allocs_of(leat_alloc_kind kind)
{
    return (unsigned)kind < LEAT_ALLOC_KINDS
               ? atomic_load_explicit(&counts[kind], memory_order_relaxed)
               : 0;
}

EXPORT uint64_t leat_allocs_now(void)
{
    uint64_t sum = 0;

    for (unsigned kind = 0; kind < LEAT_ALLOC_KINDS; kind++) {
        sum += kind == LEAT_ALLOC_FREE ? 0 : leat_allocs_of((leat_alloc_kind)kind);
    }
    return sum;
}

EXPORT uint64_t leat_allocs_bytes(void)
{
    return atomic_load_explicit(&bytes, memory_order_relaxed);
}

EXPORT int leat_allocs_range(const void *from, const void *to, unsigned group)
{
    if (range_count == LEAT_ALLOC_RANGES || group >= LEAT_ALLOC_GROUPS) {
        return 0;
    }
    ranges[range_count].from = (uintptr_t)from;
    ranges[range_count].to = (uintptr_t)to;
    ranges[range_count].group = group;
    range_count++;
    return 1;
}

EXPORT void leat_allocs_group(unsigned group, uint64_t *calls, uint64_t *size)
{
    int known = group < LEAT_ALLOC_GROUPS;

    if (calls) {
        *calls = known ? atomic_load_explicit(&group_calls[group], memory_order_relaxed) : 0;
    }
    if (size) {
        *size = known ? atomic_load_explicit(&group_bytes[group], memory_order_relaxed) : 0;
    }
}

static void report(void);

static void report_stacks(void)
{
    const char *path = getenv("LEAT_ALLOCS_STACKS");
    int fd;

    atomic_store(&stacks_wanted, -1);
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        dprintf(STDERR_FILENO, "liballoccount: cannot write %s\n", path);
        return;
    }
    leat_stacks_write(fd);
    close(fd);
}

/* Ctrl-C and kill: a program that leaves them to the system is ended without destructors. */
static void on_end(int number)
{
    report();
    raise(number);
}

static void heed_end(int number)
{
    struct sigaction action;

    if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_DFL) {
        action.sa_handler = on_end;
        action.sa_flags = SA_RESETHAND | SA_NODEFER;
        sigaction(number, &action, NULL);
    }
}

/* At start; also of a program that then makes no heap call. */
__attribute__((constructor)) static void begin(void)
{
    if (atomic_load(&stacks_wanted) == 0) {
        find_out();
    }
    if (atomic_load(&stacks_wanted) > 0) {
        heed_end(SIGINT);
        heed_end(SIGTERM);
    }
}

/* At exit; writes with the stack's memory alone, so that the writing is not counted. */
__attribute__((destructor)) static void report(void)
{
#define COUNT_NAME(name, text) text,
    static const char *const names[] = {LEAT_ALLOC_LIST(COUNT_NAME)};
#undef COUNT_NAME
    static _Atomic int done;
    const char *path = getenv("LEAT_ALLOCS_OUT");
    char text[1024];
    int n, fd;

    if (atomic_exchange(&done, 1)) {
        return;
    }
    if (atomic_load(&stacks_wanted) > 0) {
        report_stacks();
    }
    if (!path || !*path) {
        return;
    }
    n = snprintf(text, sizeof text, "allocs=%llu\nbytes=%llu\n",
                 (unsigned long long)leat_allocs_now(),
                 (unsigned long long)atomic_load_explicit(&bytes, memory_order_relaxed));
    for (unsigned kind = 0; kind < LEAT_ALLOC_KINDS; kind++) {
        n += snprintf(text + n, sizeof text - (size_t)n, "%s=%llu\n", names[kind],
                      (unsigned long long)leat_allocs_of((leat_alloc_kind)kind));
    }
    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0 || write(fd, text, (size_t)n) != n) {
        dprintf(STDERR_FILENO, "liballoccount: cannot write %s\n", path);
    }
    if (fd >= 0) {
        close(fd);
    }
}

/* Shells and children after fork() end without destructors. */
EXPORT __attribute__((noreturn)) void _exit(int code)
{
    report();
    syscall(SYS_exit_group, code);
    __builtin_unreachable();
}

EXPORT __attribute__((noreturn)) void _Exit(int code)
{
    _exit(code);
}
