/* mem/shim.h: malloc, calloc, realloc and free on a leat_mem, for libraries that take such hooks.
 *
 * `mem` is a leat_mem, passed as void pointer because hooks do. Each block has a header of 16 bytes
 * that holds its size. Results are aligned to 16; NULL when memory is refused or sizes overflow; a
 * request for 0 bytes gives a pointer to free. A failed realloc leaves the old block as it was;
 * realloc to 0 bytes keeps a block of 0 bytes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEM_SHIM_H
#define LEAT_MEM_SHIM_H

#include <stddef.h>

void *leat_shim_malloc(size_t size, void *mem);
void *leat_shim_calloc(size_t count, size_t size, void *mem);
void *leat_shim_realloc(void *p, size_t size, void *mem);
void leat_shim_free(void *p, void *mem);

#endif
