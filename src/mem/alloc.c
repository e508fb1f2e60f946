/* mem/alloc.c: the public malloc on a context's memory, for the parts that see public headers only.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/buf.h>

#include "mem/shim.h"

void *leat_mem_malloc(leat_mem *mem, size_t size)
{
    return leat_shim_malloc(size, mem);
}

void *leat_mem_calloc(leat_mem *mem, size_t count, size_t size)
{
    return leat_shim_calloc(count, size, mem);
}

void *leat_mem_realloc(leat_mem *mem, void *block, size_t size)
{
    return leat_shim_realloc(block, size, mem);
}

void leat_mem_release(leat_mem *mem, void *block)
{
    leat_shim_free(block, mem);
}
