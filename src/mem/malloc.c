/* mem/malloc.c: malloc and its kin on a context's memory (leat/buf.h), for what has no fixed size
 * and for libraries that take an allocator: an array of leat_mem with its size in front.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/buf.h>
#include <string.h>

#include "mem/mem.h"

/* As long as the alignment that arrays have, so that what follows it has it too. */
#define HEADER 16u

static size_t *size_of(void *p)
{
    return (size_t *)(void *)((char *)p - HEADER);
}

void *leat_mem_malloc(leat_mem *mem, size_t size)
{
    char *p;

    if (size > SIZE_MAX - HEADER) {
        return NULL;
    }
    p = (char *)leat_mem_take(mem, size + HEADER);
    if (!p) {
        return NULL;
    }
    p += HEADER;
    *size_of(p) = size;
    return p;
}

void *leat_mem_calloc(leat_mem *mem, size_t count, size_t size)
{
    void *p;

    if (size && count > SIZE_MAX / size) {
        return NULL;
    }
    p = leat_mem_malloc(mem, count * size);
    if (p) {
        memset(p, 0, count * size);
    }
    return p;
}

void *leat_mem_realloc(leat_mem *mem, void *block, size_t size)
{
    char *p;

    if (!block) {
        return leat_mem_malloc(mem, size);
    }
    if (size > SIZE_MAX - HEADER) {
        return NULL;
    }
    p = (char *)leat_mem_regrow(mem, size_of(block), *size_of(block) + HEADER, size + HEADER);
    if (!p) {
        return NULL;
    }
    p += HEADER;
    *size_of(p) = size;
    return p;
}

void leat_mem_release(leat_mem *mem, void *block)
{
    if (block) {
        leat_mem_give(mem, size_of(block), *size_of(block) + HEADER);
    }
}
