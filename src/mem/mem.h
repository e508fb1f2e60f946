/* mem/mem.h: arrays from a context's memory, and faults to order.
 *
 * The public half of leat_mem (making, freeing, statistics, buffers) is <leat/buf.h>. This half is
 * for what grows with use: tables, queues, arrays. Sizes are rounded up to classes that are powers
 * of two from 16 bytes; small ones are cut from slabs, large ones are blocks of their own; what is
 * given back is kept for the next of its class. When the limit stands in the way, memory kept and
 * unused is given back to the system first. Objects of one fixed size belong in a leat_pool
 * (mem/pool.h).
 *
 * Every take may fail. One that fails changes nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEM_MEM_H
#define LEAT_MEM_MEM_H

#include <leat/buf.h>

/* n bytes, contents undefined, aligned to 16; NULL when the system or the limit refuses. n > 0. */
void *leat_mem_take(leat_mem *mem, size_t n);

/* The same, zeroed. */
void *leat_mem_take_zeroed(leat_mem *mem, size_t n);

/* Gives back what leat_mem_take(mem, n) gave: the same n. p may be NULL. */
void leat_mem_give(leat_mem *mem, void *p, size_t n);

/* Makes an array of old_n bytes one of n bytes; the content up to the smaller size stays. May
 * return p itself. NULL: p stands untouched. p NULL with old_n 0 takes anew. n > 0. */
void *leat_mem_regrow(leat_mem *mem, void *p, size_t old_n, size_t n);

/* How many bytes a take of n could use: the size of its class. */
size_t leat_mem_class_size(size_t n);

/* Gives back to the system what is kept and wholly unused: free slabs and blocks. Returns the
 * bytes. For an idle context; nothing on a hot path needs it. */
size_t leat_mem_reclaim(leat_mem *mem);

/* Faults to order, for tests of what happens when memory runs out. */
typedef enum leat_mem_fault {
    LEAT_MEM_FAULT_NONE,
    LEAT_MEM_FAULT_GROWTH, /* asking the system for memory */
    LEAT_MEM_FAULT_TAKE,   /* any take: buffer, array, pool object; a fresh slab or none */
} leat_mem_fault;

/* From now on the nth operation of that kind (1: the next) fails, and if `lasting` every one after
 * it. Counts from this call. LEAT_MEM_FAULT_NONE ends it. */
void leat_mem_fault_set(leat_mem *mem, leat_mem_fault kind, uint64_t nth, bool lasting);

/* How many operations failed by order since leat_mem_fault_set(): 0 tells a test that tries n = 1,
 * 2, 3 … that it has tried them all. */
uint64_t leat_mem_fault_count(const leat_mem *mem);

/* A walker: asserts what must hold in all slabs, blocks and free lists. O(memory). */
void leat_mem_check(const leat_mem *mem);

#endif
