/* tools/alloccount/walk.h: the callers of a function, fast.
 *
 * The unwinder that C++ exceptions use reads the unwind tables anew for each frame of each walk.
 * Here what the tables say of a return address is kept: how far the caller's frame is from the
 * stack or frame pointer, and where the frame pointer was saved. With that a frame costs a look
 * into a table and two loads. Where the tables say more than that (signal frames, realigned stacks,
 * expressions, code without tables in the expected form), and on other machines than x86-64, the
 * whole walk is left to the unwinder: the answers are the same.
 *
 * From any thread and from signal handlers; no locks; 256 KiB.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_ALLOC_WALK_H
#define LEAT_ALLOC_WALK_H

#include <stdint.h>

/* Fills callers[] with the return addresses from the caller of this function's caller on, innermost
 * first, after passing over `skip` of them; at most `most`. Returns how many. */
uint32_t leat_walk(uintptr_t *callers, uint32_t most, uint32_t skip);

/* The same by the unwinder alone. */
uint32_t leat_walk_slowly(uintptr_t *callers, uint32_t most, uint32_t skip);

/* Code was unloaded: what is kept may be of code that is not there any more. */
void leat_walk_forget(void);

#endif
