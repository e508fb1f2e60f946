/* cli/allocs_report.c: `leat allocs` in words, as JSON and as folded stacks. The flame graph is in
 * allocs_flame.c.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocs.h"

#define KIND_NAME(name, key) key,
static const char *const kinds[] = {LEAT_ALLOC_LIST(KIND_NAME)};
#undef KIND_NAME

enum { SHOWN = 12 }; /* callers of a stack in the table */

static double scaled(uint64_t n, const leat_allocs_scale *scale)
{
    return scale->per > 0 ? (double)n / scale->per : (double)n;
}

/* Whole numbers without a point. */
static void print_count(double v, int width, FILE *to)
{
    fprintf(to, v == (double)(uint64_t)v ? "%*.0f" : "%*.3f", width, v);
}

void leat_allocs_print_table(const leat_allocs_file *file, const leat_allocs_scale *scale,
                             size_t top, FILE *to)
{
    const char *unit = scale->per > 0 ? " an operation" : "";

    fprintf(to, "allocations%s: ", unit);
    print_count(scaled(file->allocs, scale), 0, to);
    fprintf(to, ", bytes%s: ", unit);
    print_count(scaled(file->bytes, scale), 0, to);
    fprintf(to, ", in %.3f s\n", scale->seconds);
    for (unsigned kind = 0; kind < LEAT_ALLOC_KINDS; kind++) {
        fprintf(to, "  %-16s ", kinds[kind]);
        print_count(scaled(file->calls[kind], scale), 14, to);
        fputc('\n', to);
    }
    if (file->lost > 0) {
        fprintf(to, "  %llu calls came from stacks that found no room in the table\n",
                (unsigned long long)file->lost);
    }
    for (size_t i = 0; i < file->mark_count; i++) {
        fprintf(to, "  mark %s: %llu allocations, %llu bytes so far\n", file->marks[i].name,
                (unsigned long long)file->marks[i].allocs,
                (unsigned long long)file->marks[i].bytes);
    }
    for (size_t i = 0; i < file->stack_count && i < top && file->stacks[i].allocs > 0; i++) {
        const leat_allocs_stack *s = &file->stacks[i];

        fputc('\n', to);
        print_count(scaled(s->allocs, scale), 12, to);
        fprintf(to, " allocations%s, ", unit);
        print_count(scaled(s->bytes, scale), 0, to);
        fputs(" bytes\n", to);
        for (uint32_t k = 0; k < s->depth && k < SHOWN; k++) {
            fprintf(to, "               %s\n", s->names[k]);
        }
    }
}

static void print_string(const char *s, FILE *to)
{
    fputc('"', to);
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;

        if (c == '"' || c == '\\') {
            fprintf(to, "\\%c", c);
        } else if (c < 0x20) {
            fprintf(to, "\\u%04x", c);
        } else {
            fputc(c, to);
        }
    }
    fputc('"', to);
}

void leat_allocs_print_json(const leat_allocs_file *file, const leat_allocs_scale *scale,
                            size_t top, FILE *to)
{
    fprintf(to,
            "{\"operations\": %.9g, \"allocations\": %.9g, \"bytes\": %.9g, \"seconds\": %.6f, "
            "\"lost\": %llu, ",
            scale->per, scaled(file->allocs, scale), scaled(file->bytes, scale), scale->seconds,
            (unsigned long long)file->lost);
    for (unsigned kind = 0; kind < LEAT_ALLOC_KINDS; kind++) {
        fprintf(to, "\"%s\": %.9g, ", kinds[kind], scaled(file->calls[kind], scale));
    }
    fputs("\"marks\": [", to);
    for (size_t i = 0; i < file->mark_count; i++) {
        fputs(i ? ", {\"name\": " : "{\"name\": ", to);
        print_string(file->marks[i].name, to);
        fprintf(to, ", \"allocations\": %llu, \"bytes\": %llu}",
                (unsigned long long)file->marks[i].allocs,
                (unsigned long long)file->marks[i].bytes);
    }
    fputs("], \"stacks\": [", to);
    for (size_t i = 0; i < file->stack_count && i < top && file->stacks[i].allocs > 0; i++) {
        const leat_allocs_stack *s = &file->stacks[i];

        fprintf(to, "%s\n  {\"allocations\": %.9g, \"bytes\": %.9g, \"callers\": [", i ? "," : "",
                scaled(s->allocs, scale), scaled(s->bytes, scale));
        for (uint32_t k = 0; k < s->depth; k++) {
            fputs(k ? ", " : "", to);
            print_string(s->names[k], to);
        }
        fputs("]}", to);
    }
    fputs("\n]}\n", to);
}

void leat_allocs_print_folded(const leat_allocs_file *file, FILE *to)
{
    for (size_t i = 0; i < file->stack_count; i++) {
        const leat_allocs_stack *s = &file->stacks[i];

        for (uint32_t k = s->depth; k > 0 && s->allocs > 0; k--) {
            fprintf(to, "%s%s", s->names[k - 1], k > 1 ? ";" : "");
        }
        if (s->allocs > 0) {
            fprintf(to, "%s %llu\n", s->depth ? "" : "(no stack)", (unsigned long long)s->allocs);
        }
    }
}
