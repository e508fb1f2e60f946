/* cli/allocs_flame.c: allocations as a flame graph: a box a function, as wide as its share, callers
 * below callees.
 *
 * The stacks are sorted by name from the outermost caller on; then each box is a run of neighbours
 * that agree so far, and no tree has to be built.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocs.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1200, ROW = 18, TOP = 40 };

static const char *frame(const leat_allocs_stack *s, uint32_t level)
{
    return level < s->depth ? s->names[s->depth - 1 - level] : NULL;
}

static int by_frames(const void *a, const void *b)
{
    const leat_allocs_stack *x = *(const leat_allocs_stack *const *)a;
    const leat_allocs_stack *y = *(const leat_allocs_stack *const *)b;

    for (uint32_t level = 0;; level++) {
        const char *p = frame(x, level), *q = frame(y, level);
        int order;

        if (!p || !q) {
            return (p != NULL) - (q != NULL);
        }
        order = strcmp(p, q);
        if (order != 0) {
            return order;
        }
    }
}

static void print_escaped(const char *s, size_t most, FILE *to)
{
    for (size_t i = 0; i < most && s[i]; i++) {
        switch (s[i]) {
        case '<':
            fputs("&lt;", to);
            break;
        case '>':
            fputs("&gt;", to);
            break;
        case '&':
            fputs("&amp;", to);
            break;
        default:
            fputc(s[i], to);
        }
    }
}

/* A warm colour that depends on the name alone. */
static void print_colour(const char *s, FILE *to)
{
    unsigned h = 5381;

    for (; *s; s++) {
        h = h * 33 + (unsigned char)*s;
    }
    fprintf(to, "rgb(%u,%u,%u)", 205 + h % 50, 80 + (h >> 8) % 130, (h >> 16) % 60);
}

static void draw_box(const char *text, double x, double width, double y, uint64_t count,
                     uint64_t all, FILE *to)
{
    fprintf(to, "<g><title>");
    print_escaped(text, SIZE_MAX, to);
    fprintf(to,
            ": %llu allocations, %.2f %%</title><rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" "
            "height=\"%d\" fill=\"",
            (unsigned long long)count, 100.0 * (double)count / (double)all, x, y, width, ROW - 1);
    print_colour(text, to);
    fputs("\"/>", to);
    if (width > 30) {
        fprintf(to, "<text x=\"%.2f\" y=\"%.1f\">", x + 3, y + ROW - 5);
        print_escaped(text, (size_t)(width / 7), to);
        fputs("</text>", to);
    }
    fputs("</g>\n", to);
}

/* Boxes of one level over stacks [from, to), which agree below it. */
static void draw(const leat_allocs_stack **stacks, size_t from, size_t end, uint32_t level,
                 double x, double per, uint32_t depth, uint64_t all, FILE *to)
{
    while (from < end) {
        const char *name = frame(stacks[from], level);
        uint64_t count = 0;
        size_t next = from;

        while (next < end && frame(stacks[next], level) &&
               (!name || strcmp(frame(stacks[next], level), name) == 0)) {
            count += stacks[next++]->allocs;
        }
        if (!name) {
            x += (double)stacks[from]->allocs * per; /* it ends below */
            from++;
            continue;
        }
        if ((double)count * per > 0.2) {
            draw_box(name, x, (double)count * per, TOP + (double)(depth - 1 - level) * ROW, count,
                     all, to);
            draw(stacks, from, next, level + 1, x, per, depth, all, to);
        }
        x += (double)count * per;
        from = next;
    }
}

void leat_allocs_print_svg(const leat_allocs_file *file, const char *title, FILE *to)
{
    const leat_allocs_stack **stacks = calloc(file->stack_count + 1, sizeof(*stacks));
    uint32_t depth = 1;
    uint64_t all = 0;

    for (size_t i = 0; stacks && i < file->stack_count; i++) {
        stacks[i] = &file->stacks[i];
        all += stacks[i]->allocs;
        depth = stacks[i]->depth > depth ? stacks[i]->depth : depth;
    }
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
            "font-family=\"monospace\" "
            "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
            "<text x=\"10\" y=\"22\" font-size=\"14\">",
            WIDTH, TOP + depth * ROW + 10);
    print_escaped(title, SIZE_MAX, to);
    fprintf(to, ": %llu allocations</text>\n", (unsigned long long)all);
    if (stacks && all > 0) {
        qsort(stacks, file->stack_count, sizeof(*stacks), by_frames);
        draw(stacks, 0, file->stack_count, 0, 0, (double)WIDTH / (double)all, depth, all, to);
    }
    fputs("</svg>\n", to);
    free(stacks);
}
