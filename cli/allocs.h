/* cli/allocs.h: heap calls by stack, as `leat allocs` reads, names and prints them.
 *
 * The command runs a program with liballoccount.so preloaded, which leaves a file of counts
 * (tools/alloccount/stacks.h); allocs_read.c reads it, allocs_symbols.c finds names for addresses,
 * allocs_report.c prints.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CLI_ALLOCS_H
#define LEAT_CLI_ALLOCS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/alloccount/stacks.h"

typedef struct leat_allocs_map {
    uint64_t from, to, offset;
    char *path;
} leat_allocs_map;

typedef struct leat_allocs_stack {
    uint64_t calls[LEAT_ALLOC_KINDS];
    uint64_t bytes;
    uint64_t allocs; /* all kinds but free */
    uint32_t depth;
    uint64_t callers[LEAT_STACK_DEPTH];
    const char *names[LEAT_STACK_DEPTH]; /* by leat_allocs_name() */
} leat_allocs_stack;

typedef struct leat_allocs_mark_line {
    char *name;
    uint64_t allocs, bytes;
} leat_allocs_mark_line;

/* One run of a program. */
typedef struct leat_allocs_file {
    leat_allocs_map *maps;
    size_t map_count;
    leat_allocs_stack *stacks;
    size_t stack_count;
    leat_allocs_mark_line *marks;
    size_t mark_count;
    uint64_t lost; /* calls whose stack found no room */
    uint64_t calls[LEAT_ALLOC_KINDS];
    uint64_t allocs, bytes;
} leat_allocs_file;

/* False after a message. */
bool leat_allocs_read(const char *path, leat_allocs_file *out);
void leat_allocs_free(leat_allocs_file *file);

/* Gives each caller of each stack a name: function, or module and offset. The names live until
 * leat_allocs_names_free(). */
typedef struct leat_allocs_names leat_allocs_names;
leat_allocs_names *leat_allocs_name(leat_allocs_file *file);
void leat_allocs_names_free(leat_allocs_names *names);

/* How counts are told: a run's as they are, or per operation. */
typedef struct leat_allocs_scale {
    double per;     /* operations of the run; 0: totals */
    double seconds; /* that the run took */
} leat_allocs_scale;

/* What the longer of two runs has more than the shorter, stack by stack (matched by their names).
 */
bool leat_allocs_subtract(leat_allocs_file *longer, const leat_allocs_file *shorter);

/* The stacks with the most allocations first. */
void leat_allocs_sort(leat_allocs_file *file);

void leat_allocs_print_table(const leat_allocs_file *file, const leat_allocs_scale *scale,
                             size_t top, FILE *to);
void leat_allocs_print_json(const leat_allocs_file *file, const leat_allocs_scale *scale,
                            size_t top, FILE *to);
/* One line a stack, outermost first, separated by ';', and the count: what flame graph programs
 * read. */
void leat_allocs_print_folded(const leat_allocs_file *file, FILE *to);
void leat_allocs_print_svg(const leat_allocs_file *file, const char *title, FILE *to);

#endif
