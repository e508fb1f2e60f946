/* mem/shim.c: allocator hooks for other libraries: an array of leat_mem with its size in front.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem/shim.h"

#include <string.h>

#include "mem/mem.h"

/* As long as the alignment that arrays have, so that what follows it has it too. */
#define HEADER 16u

static size_t *size_of(void *p)
{
    return (size_t *)(void *)((char *)p - HEADER);
}

void *leat_shim_malloc(size_t size, void *mem)
{
    char *p;

    if (size > SIZE_MAX - HEADER) {
        return NULL;
    }
    p = (char *)leat_mem_take((leat_mem *)mem, size + HEADER);
    if (!p) {
        return NULL;
    }
    p += HEADER;
    *size_of(p) = size;
    return p;
}

void *leat_shim_calloc(size_t count, size_t size, void *mem)
{
    void *p;

    if (size && count > SIZE_MAX / size) {
        return NULL;
    }
    p = leat_shim_malloc(count * size, mem);
    if (p) {
        memset(p, 0, count * size);
    }
    return p;
}

void *leat_shim_realloc(void *p, size_t size, void *mem)
{
    char *q;

    if (!p) {
        return leat_shim_malloc(size, mem);
    }
    if (size > SIZE_MAX - HEADER) {
        return NULL;
    }
    q = (char *)leat_mem_regrow((leat_mem *)mem, size_of(p), *size_of(p) + HEADER, size + HEADER);
    if (!q) {
        return NULL;
    }
    q += HEADER;
    *size_of(q) = size;
    return q;
}

void leat_shim_free(void *p, void *mem)
{
    if (p) {
        leat_mem_give((leat_mem *)mem, size_of(p), *size_of(p) + HEADER);
    }
}
