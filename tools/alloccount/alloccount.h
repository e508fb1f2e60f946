/* tools/alloccount/alloccount.h: what liballoccount.so counts, for programs that ask while they
 * run. They find the functions with dlsym(): the library is preloaded, not linked.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_ALLOCCOUNT_H
#define LEAT_ALLOCCOUNT_H

#include <stdint.h>

/* X(NAME, key in the report) */
#define LEAT_ALLOC_LIST(X)                                                                         \
    X(MALLOC, "malloc")                                                                            \
    X(CALLOC, "calloc")                                                                            \
    X(REALLOC, "realloc")                                                                          \
    X(MEMALIGN, "memalign")                                                                        \
    X(ALIGNED_ALLOC, "aligned_alloc")                                                              \
    X(POSIX_MEMALIGN, "posix_memalign")                                                            \
    X(FREE, "free")

#define LEAT_ALLOC_ENUM(name, key) LEAT_ALLOC_##name,
typedef enum leat_alloc_kind { LEAT_ALLOC_LIST(LEAT_ALLOC_ENUM) LEAT_ALLOC_KINDS } leat_alloc_kind;
#undef LEAT_ALLOC_ENUM

/* Calls so far that gave out memory, all kinds but free. Any thread, signal handlers too. */
uint64_t leat_allocs_now(void);
/* Bytes that these calls asked for. */
uint64_t leat_allocs_bytes(void);
/* Calls so far of one kind. */
uint64_t leat_allocs_of(leat_alloc_kind kind);

/* Calls by who made them: a program names pieces of code, and the group that each belongs to. Calls
 * from no such piece belong to group 0. */
enum { LEAT_ALLOC_GROUPS = 4, LEAT_ALLOC_RANGES = 64 };
/* Calls from [from, to) count for the group from now on. False: too many ranges, or no such group.
 * One thread, before others allocate. */
int leat_allocs_range(const void *from, const void *to, unsigned group);
/* Calls of a group so far that gave out memory, and the bytes they asked for. NULL: not wanted. */
void leat_allocs_group(unsigned group, uint64_t *calls, uint64_t *bytes);

/* When stacks are recorded (`leat allocs`): begins and stops, for a program that wants a part of
 * its run looked at (LEAT_ALLOCS_PAUSED=1 begins stopped), and notes the totals under a name. */
void leat_allocs_start(void);
void leat_allocs_stop(void);
void leat_allocs_mark(const char *name);

#endif
