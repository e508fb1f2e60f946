/* cli/allocs_read.c: the file that liballoccount.so leaves. It is this program's own, but may be
 * cut short by a program that was killed: what is whole in it counts.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

/* Room for one more of an array that doubles; NULL after a message. */
static void *grow(void **array, size_t count, size_t size)
{
    if ((count & (count - 1)) == 0) {
        void *larger = realloc(*array, (count ? 2 * count : 1) * size);

        if (!larger) {
            leat_cli_error("out of memory");
            return NULL;
        }
        *array = larger;
    }
    return (char *)*array + count * size;
}

static bool read_map(leat_allocs_file *file, char *line)
{
    leat_allocs_map map;
    int at = 0;

    if (sscanf(line, "%lx-%lx %lx %n", &map.from, &map.to, &map.offset, &at) < 3 || at == 0) {
        return true;
    }
    map.path = strdup(line + at);
    leat_allocs_map *slot = grow((void **)&file->maps, file->map_count, sizeof(map));
    if (!slot || !map.path) {
        free(map.path);
        return false;
    }
    *slot = map;
    file->map_count++;
    return true;
}

static bool read_mark(leat_allocs_file *file, char *line)
{
    leat_allocs_mark_line mark;
    int at = 0;

    if (sscanf(line, "%lu %lu %n", &mark.allocs, &mark.bytes, &at) < 2 || at == 0) {
        return true;
    }
    mark.name = strdup(line + at);
    leat_allocs_mark_line *slot = grow((void **)&file->marks, file->mark_count, sizeof(mark));
    if (!slot || !mark.name) {
        free(mark.name);
        return false;
    }
    *slot = mark;
    file->mark_count++;
    return true;
}

static bool read_stack(leat_allocs_file *file, char *line)
{
    leat_allocs_stack stack = {.bytes = 0};
    leat_allocs_stack *slot;
    char *at = line;

    for (unsigned kind = 0; kind < LEAT_ALLOC_KINDS; kind++) {
        stack.calls[kind] = strtoull(at, &at, 10);
        file->calls[kind] += stack.calls[kind];
        stack.allocs += kind == LEAT_ALLOC_FREE ? 0 : stack.calls[kind];
    }
    stack.bytes = strtoull(at, &at, 10);
    while (*at == ' ' && stack.depth < LEAT_STACK_DEPTH) {
        stack.callers[stack.depth++] = strtoull(at, &at, 16);
    }
    file->allocs += stack.allocs;
    file->bytes += stack.bytes;
    if (stack.allocs == 0) {
        return true; /* where memory was only freed: in the totals */
    }
    slot = grow((void **)&file->stacks, file->stack_count, sizeof(stack));
    if (!slot) {
        return false;
    }
    *slot = stack;
    file->stack_count++;
    return true;
}

static bool read_line(leat_allocs_file *file, char *line)
{
    if (strncmp(line, "map ", 4) == 0) {
        return read_map(file, line + 4);
    }
    if (strncmp(line, "stack ", 6) == 0) {
        return read_stack(file, line + 6);
    }
    if (strncmp(line, "mark ", 5) == 0) {
        return read_mark(file, line + 5);
    }
    if (strncmp(line, "lost ", 5) == 0) {
        file->lost = strtoull(line + 5, NULL, 10);
    }
    return true;
}

bool leat_allocs_read(const char *path, leat_allocs_file *out)
{
    FILE *from = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    bool good = true;

    *out = (leat_allocs_file){.lost = 0};
    if (!from) {
        leat_cli_error(
            "the program left no counts (%s: %s): is it statically linked, or was it killed?", path,
            strerror(errno));
        return false;
    }
    while (good && (n = getline(&line, &cap, from)) > 0) {
        if (line[n - 1] == '\n') {
            line[n - 1] = 0;
            good = read_line(out, line);
        }
    }
    free(line);
    fclose(from);
    if (!good) {
        leat_allocs_free(out);
    }
    return good;
}

void leat_allocs_free(leat_allocs_file *file)
{
    for (size_t i = 0; i < file->map_count; i++) {
        free(file->maps[i].path);
    }
    for (size_t i = 0; i < file->mark_count; i++) {
        free(file->marks[i].name);
    }
    free(file->maps);
    free(file->marks);
    free(file->stacks);
    *file = (leat_allocs_file){.lost = 0};
}

/* ---- two runs ---- */

static bool same_names(const leat_allocs_stack *a, const leat_allocs_stack *b)
{
    for (uint32_t i = 0; i < a->depth && a->depth == b->depth; i++) {
        if (strcmp(a->names[i], b->names[i]) != 0) {
            return false;
        }
    }
    return a->depth == b->depth;
}

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* By names: addresses differ between runs. Two stacks of one run that have the same names (another
 * line of the same function) are taken together first. */
static void merge(leat_allocs_file *file)
{
    size_t kept = 0;

    for (size_t i = 0; i < file->stack_count; i++) {
        leat_allocs_stack *s = &file->stacks[i];
        size_t k = 0;

        while (k < kept && !same_names(&file->stacks[k], s)) {
            k++;
        }
        if (k == kept) {
            file->stacks[kept++] = *s;
            continue;
        }
        for (unsigned kind = 0; kind < LEAT_ALLOC_KINDS; kind++) {
            file->stacks[k].calls[kind] += s->calls[kind];
        }
        file->stacks[k].bytes += s->bytes;
        file->stacks[k].allocs += s->allocs;
    }
    file->stack_count = kept;
}

bool leat_allocs_subtract(leat_allocs_file *longer, const leat_allocs_file *shorter)
{
    leat_allocs_file other = *shorter;

    other.stacks = malloc((shorter->stack_count + 1) * sizeof(*other.stacks));
    if (!other.stacks) {
        leat_cli_error("out of memory");
        return false;
    }
    memcpy(other.stacks, shorter->stacks, shorter->stack_count * sizeof(*other.stacks));
    merge(longer);
    merge(&other);
    for (size_t i = 0; i < longer->stack_count; i++) {
        leat_allocs_stack *a = &longer->stacks[i];

        for (size_t k = 0; k < other.stack_count; k++) {
            const leat_allocs_stack *b = &other.stacks[k];

            if (same_names(a, b)) {
                for (unsigned kind = 0; kind < LEAT_ALLOC_KINDS; kind++) {
                    a->calls[kind] = less(a->calls[kind], b->calls[kind]);
                }
                a->bytes = less(a->bytes, b->bytes);
                a->allocs = less(a->allocs, b->allocs);
            }
        }
    }
    for (unsigned kind = 0; kind < LEAT_ALLOC_KINDS; kind++) {
        longer->calls[kind] = less(longer->calls[kind], shorter->calls[kind]);
    }
    longer->allocs = less(longer->allocs, shorter->allocs);
    longer->bytes = less(longer->bytes, shorter->bytes);
    free(other.stacks);
    return true;
}

static int by_allocs(const void *a, const void *b)
{
    const leat_allocs_stack *x = a, *y = b;

    if (x->allocs != y->allocs) {
        return x->allocs < y->allocs ? 1 : -1;
    }
    return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

void leat_allocs_sort(leat_allocs_file *file)
{
    if (file->stack_count > 0) {
        qsort(file->stacks, file->stack_count, sizeof(*file->stacks), by_allocs);
    }
}
