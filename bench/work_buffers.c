/* bench/work_buffers.c: `leat bench buffers`: a buffer taken and released, against other
 * allocators, all in one run and in turn.
 *
 * The row is leat_buf_take() and leat_buf_release() as an application calls them. Its figures, each
 * the median round in nanoseconds: inline_ns, the same as the packet's way has it; slab8_ns, with
 * slabs of 8 KiB; glibc_ns; jemalloc_ns and mimalloc_ns where those libraries are installed. (glibc
 * by its own name for malloc, past whatever counts heap calls.) Nothing is written to the bytes.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mem/fast.h"
#include "mem/guard.h"

#include "bench.h"

enum { BATCH = 64, WAYS_MOST = 6 };

typedef struct way {
    const char *figure;
    leat_mem *mem; /* leat's ways */
    bool fast;
    void *(*take)(size_t size); /* the others */
    void (*give)(void *p);
    size_t size;
    unsigned pairs;
} way;

typedef struct ways {
    way list[WAYS_MOST];
    size_t count;
    leat_mem *mem, *mem8;
} ways;

/* ---- one at a time, and 64 then 64 in the order taken ---- */

static void leat_one(const way *w)
{
    for (unsigned i = 0; i < w->pairs; i++) {
        leat_buf buf;

        (void)leat_buf_take(w->mem, w->size, &buf);
        leat_bench_opaque(buf.data);
        leat_buf_release(&buf);
    }
}

static void fast_one(const way *w)
{
    for (unsigned i = 0; i < w->pairs; i++) {
        leat_buf buf;

        (void)leat_buf_take_fast(w->mem, w->size, &buf);
        leat_bench_opaque(buf.data);
        leat_buf_release_fast(&buf);
    }
}

static void malloc_one(const way *w)
{
    for (unsigned i = 0; i < w->pairs; i++) {
        void *p = w->take(w->size);

        leat_bench_opaque(p);
        w->give(p);
    }
}

static void one(void *arg)
{
    const way *w = arg;

    if (w->take) {
        malloc_one(w);
    } else if (w->fast) {
        fast_one(w);
    } else {
        leat_one(w);
    }
}

static void leat_many(const way *w)
{
    leat_buf bufs[BATCH];

    for (unsigned i = 0; i < w->pairs / BATCH; i++) {
        for (unsigned k = 0; k < BATCH; k++) {
            (void)leat_buf_take(w->mem, w->size, &bufs[k]);
            leat_bench_opaque(bufs[k].data);
        }
        for (unsigned k = 0; k < BATCH; k++) {
            leat_buf_release(&bufs[k]);
        }
    }
}

static void fast_many(const way *w)
{
    leat_buf bufs[BATCH];

    for (unsigned i = 0; i < w->pairs / BATCH; i++) {
        for (unsigned k = 0; k < BATCH; k++) {
            (void)leat_buf_take_fast(w->mem, w->size, &bufs[k]);
            leat_bench_opaque(bufs[k].data);
        }
        for (unsigned k = 0; k < BATCH; k++) {
            leat_buf_release_fast(&bufs[k]);
        }
    }
}

static void malloc_many(const way *w)
{
    void *blocks[BATCH];

    for (unsigned i = 0; i < w->pairs / BATCH; i++) {
        for (unsigned k = 0; k < BATCH; k++) {
            blocks[k] = w->take(w->size);
            leat_bench_opaque(blocks[k]);
        }
        for (unsigned k = 0; k < BATCH; k++) {
            w->give(blocks[k]);
        }
    }
}

static void many(void *arg)
{
    const way *w = arg;

    if (w->take) {
        malloc_many(w);
    } else if (w->fast) {
        fast_many(w);
    } else {
        leat_many(w);
    }
}

/* ---- the other allocators ---- */

static void add_library(ways *all, const char *figure, const char *library, const char *take,
                        const char *give)
{
    void *handle = library ? dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : RTLD_DEFAULT;
    void *take_it = handle || !library ? dlsym(handle, take) : NULL;
    void *give_it = handle || !library ? dlsym(handle, give) : NULL;
    way *w = &all->list[all->count];

    if (!take_it || !give_it) {
        fprintf(stderr, "leat: bench: without %s: %s\n", library ? library : "libc", dlerror());
        return;
    }
    *w = (way){.figure = figure};
    memcpy(&w->take, &take_it, sizeof w->take);
    memcpy(&w->give, &give_it, sizeof w->give);
    all->count++;
}

static void find_ways(ways *all)
{
    leat_mem_settings small;

    leat_bench_must(leat_mem_new(NULL, &all->mem), "memory");
    leat_mem_settings_init(&small);
    small.slab_size = 8192;
    leat_bench_must(leat_mem_new(&small, &all->mem8), "memory");
    all->list[all->count++] = (way){.figure = NULL, .mem = all->mem};
    all->list[all->count++] = (way){.figure = "inline_ns", .mem = all->mem, .fast = true};
    all->list[all->count++] = (way){.figure = "slab8_ns", .mem = all->mem8};
    add_library(all, "glibc_ns", NULL, "__libc_malloc", "__libc_free");
    if (!LEAT_MEM_ASAN) { /* which has malloc to itself */
        add_library(all, "jemalloc_ns", "libjemalloc.so.2", "malloc", "free");
        add_library(all, "mimalloc_ns", "libmimalloc.so.2", "mi_malloc", "mi_free");
    }
}

/* ---- the work ---- */

/* Joins the rows of all ways into the first: that is leat's. */
static void join_rows(leat_bench *b, const ways *all)
{
    leat_bench_row *rows = &b->rows[b->row_count - all->count];

    for (size_t i = 1; i < all->count; i++) {
        leat_bench_figure_add(&rows[0], all->list[i].figure, rows[i].figures[0].value);
    }
    b->row_count -= all->count - 1;
}

static void measure(leat_bench *b, ways *all, size_t size, leat_bench_round_fn *run,
                    const char *how)
{
    leat_bench_piece pieces[WAYS_MOST];
    char name[LEAT_BENCH_NAME], text[LEAT_BENCH_SIZE_TEXT];
    unsigned pairs = size < 65536 ? BATCH * 64 : BATCH * 16;

    snprintf(name, sizeof name, "%s, %s", leat_bench_size_text(size, text), how);
    for (size_t i = 0; i < all->count; i++) {
        all->list[i].size = size;
        all->list[i].pairs = pairs;
        pieces[i] = (leat_bench_piece){name, run, &all->list[i], pairs};
    }
    leat_bench_rounds(b, pieces, all->count, (b->options->count + pairs - 1) / pairs);
    join_rows(b, all);
}

void leat_bench_buffers(leat_bench *b)
{
    static ways all;
    size_t least = 64, most = 1048576;

    all = (ways){.count = 0};
    find_ways(&all);
    if (b->options->size) {
        least = most = (size_t)b->options->size;
    }
    for (size_t size = least; size <= most; size *= 2) {
        measure(b, &all, size, one, "one at a time");
        measure(b, &all, size, many, "64, then 64");
    }
    leat_mem_free(all.mem);
    leat_mem_free(all.mem8);
}
