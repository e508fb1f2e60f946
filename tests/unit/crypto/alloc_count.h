/* Counts the allocations of the whole process, libraries' too: by the sanitizer's hooks where there
 * is one, else by standing in front of the C library's functions. Include in one file of a test
 * program.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TEST_ALLOC_COUNT_H
#define LEAT_TEST_ALLOC_COUNT_H

#include <stddef.h>

static size_t alloc_count;

#if defined(__has_feature)
#    if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                     \
        __has_feature(memory_sanitizer)
#        define ALLOC_COUNT_SANITIZER 1
#    endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#    define ALLOC_COUNT_SANITIZER 1
#endif

#if defined(ALLOC_COUNT_SANITIZER)

/* Returns 0 when it fails. Of sanitizer/allocator_interface.h, which gcc does not always bring. */
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
                                              void (*on_free)(const volatile void *));

static void alloc_seen(const volatile void *p, size_t n)
{
    (void)p;
    (void)n;
    alloc_count++;
}

static void free_seen(const volatile void *p)
{
    (void)p;
}

static inline void alloc_count_start(void)
{
    static int installed;
    if (!installed) {
        installed = __sanitizer_install_malloc_and_free_hooks(alloc_seen, free_seen);
    }
}

#else

/* The tree is built with hidden visibility; libraries must see these. */
#    define ALLOC_COUNT_SEEN __attribute__((visibility("default")))

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void *__libc_memalign(size_t align, size_t n);
ALLOC_COUNT_SEEN void *malloc(size_t n);
ALLOC_COUNT_SEEN void *calloc(size_t n, size_t size);
ALLOC_COUNT_SEEN void *realloc(void *p, size_t n);
ALLOC_COUNT_SEEN void *aligned_alloc(size_t align, size_t n);
ALLOC_COUNT_SEEN int posix_memalign(void **out, size_t align, size_t n);

void *malloc(size_t n)
{
    alloc_count++;
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    alloc_count++;
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    alloc_count++;
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    alloc_count++;
    return __libc_memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n)
{
    alloc_count++;
    *out = __libc_memalign(align, n);
    return *out ? 0 : 12;
}

static inline void alloc_count_start(void)
{
}

#endif

#endif
