/* tests/support/malloc_count.c: see malloc_count.h. glibc only: it keeps its own functions under
 * these names.
 *
 * SPDX-License-Identifier: MIT
 */
#include "malloc_count.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
void __libc_free(void *p);

static leat_malloc_count counted;

/* Exported, or shared libraries would go past them to the C library's. */
#pragma GCC visibility push(default)
void *malloc(size_t n);
void *calloc(size_t n, size_t size);
void *realloc(void *p, size_t n);
void *memalign(size_t align, size_t n);
void *aligned_alloc(size_t align, size_t n);
int posix_memalign(void **out, size_t align, size_t n);
void free(void *p);
#pragma GCC visibility pop

leat_malloc_count leat_malloc_counted(void)
{
    return counted;
}

static void count(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t n)
{
    count(&counted.malloc);
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    count(&counted.calloc);
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    count(&counted.realloc);
    return __libc_realloc(p, n);
}

void *memalign(size_t align, size_t n)
{
    count(&counted.aligned);
    return __libc_memalign(align, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    count(&counted.aligned);
    return __libc_memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n)
{
    void *p;

    count(&counted.aligned);
    p = __libc_memalign(align, n);
    if (!p) {
        return ENOMEM;
    }
    *out = p;
    return 0;
}

void free(void *p)
{
    if (p) {
        count(&counted.free);
    }
    __libc_free(p);
}
