/* tools/alloccount/stacks.h: heap calls by call stack.
 *
 * Off until leat_stacks_open(). Then each heap call is charged to the stack that made it, in a
 * table of fixed size: 16,384 stacks of up to 24 callers, 5 MB in all. Stacks that find no room are
 * charged to one entry without callers, and counted, so that totals are always right. From any
 * thread and from signal handlers; no locks; nothing here allocates.
 *
 * Costs a walk of the stack for each call (walk.h): some 0.1 µs.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_ALLOC_STACKS_H
#define LEAT_ALLOC_STACKS_H

#include <stddef.h>

#include "alloccount.h"

enum { LEAT_STACK_DEPTH = 24, LEAT_STACKS = 16384 };

/* Takes the table from the system, counting at once unless `paused`. False: there is no memory. */
int leat_stacks_open(int paused);

/* Charges a call to the stack that leads to the caller of the heap function. */
void leat_stacks_count(leat_alloc_kind kind, size_t size);

/* Writes the table and the process's map of modules. Lines, in this order:
 *     lost N                                     calls whose stack found no room
 *     map FROM-TO OFFSET PATH                    executable parts of modules, hexadecimal
 *     stack MALLOC CALLOC … FREE BYTES ADDRESS…  calls by kind, bytes asked for, callers from the
 * innermost, hexadecimal mark NAME                                  what leat_allocs_mark() was
 * told, with the totals at that time: mark ALLOCS BYTES NAME */
void leat_stacks_write(int fd);

#endif
