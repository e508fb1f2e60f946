/* bench/work_readfile.c: `leat bench readfile`: whole files read by several threads, in the shape
 * of Node's benchmark: open, fstat, a buffer, read, close.
 *
 * The buffer comes from a memory of the thread's own with slabs of 8 KiB, from one with slabs of
 * 64 KiB, from one with slabs as leat has them when nobody sets their size, or from malloc; these
 * run in turn, round by round. Every thread reads one and the same file, which therefore is in the
 * page cache.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <leat/buf.h>

#include "bench.h"

enum { WORKERS_MOST = 256, WAYS = 4 };

static const struct {
    const char *name;
    size_t slab; /* 0: the default */
    bool heap;   /* malloc, no slabs */
} ways[WAYS] = {
    {"slabs of 8 KiB", 8192, false},
    {"slabs of 64 KiB", 65536, false},
    {"default slabs", 0, false},
    {"malloc", 0, true},
};

typedef struct files {
    char path[4096];
    uint64_t each; /* files a worker reads in a round */
    unsigned way;  /* of the present round */
    bool end;
    pthread_barrier_t begin, finish;
    size_t system[WAYS]; /* bytes of the first worker's memories */
    bool failed;         /* atomic */
} files;

typedef struct worker {
    pthread_t thread;
    files *files;
    leat_mem *mem[WAYS];
} worker;

typedef struct piece {
    files *files;
    unsigned way;
} piece;

static bool read_all(int fd, void *to, size_t size)
{
    size_t got = 0;

    while (got < size) {
        ssize_t n = read(fd, (char *)to + got, size - got);

        if (n <= 0) {
            return false;
        }
        got += (size_t)n;
    }
    return true;
}

static bool read_one(const char *path, leat_mem *mem)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat info;
    bool good = fd >= 0 && fstat(fd, &info) == 0;

    if (good && mem) {
        leat_buf buf;

        good = leat_buf_take(mem, (size_t)info.st_size, &buf) == LEAT_OK &&
               read_all(fd, buf.data, (size_t)info.st_size);
        leat_buf_release(&buf);
    } else if (good) {
        void *bytes = malloc((size_t)info.st_size);

        good = bytes && read_all(fd, bytes, (size_t)info.st_size);
        free(bytes);
    }
    if (fd >= 0) {
        close(fd);
    }
    return good;
}

static void *work(void *arg)
{
    worker *w = arg;
    files *f = w->files;

    for (;;) {
        pthread_barrier_wait(&f->begin);
        if (f->end) {
            return NULL;
        }
        for (uint64_t i = 0; i < f->each; i++) {
            if (!read_one(f->path, w->mem[f->way])) {
                __atomic_store_n(&f->failed, true, __ATOMIC_RELAXED);
                break;
            }
        }
        pthread_barrier_wait(&f->finish);
    }
}

static void run_round(void *arg)
{
    piece *p = arg;

    p->files->way = p->way;
    pthread_barrier_wait(&p->files->begin);
    pthread_barrier_wait(&p->files->finish);
}

/* ---- the work ---- */

static void make_file(const leat_bench_options *o, files *f, size_t size)
{
    const char *folder = o->folder ? o->folder : getenv("TMPDIR");
    char *content = calloc(1, size);
    int fd;

    snprintf(f->path, sizeof f->path, "%s/leat-bench-XXXXXX", folder ? folder : "/tmp");
    fd = mkstemp(f->path);
    if (fd < 0 || !content || write(fd, content, size) != (ssize_t)size) {
        leat_bench_fail("cannot make a file %s: %s", f->path, strerror(errno));
    }
    close(fd);
    free(content);
}

static void make_worker(worker *w, files *f)
{
    w->files = f;
    for (unsigned way = 0; way < WAYS; way++) {
        leat_mem_settings settings;

        w->mem[way] = NULL;
        if (!ways[way].heap) {
            leat_mem_settings_init(&settings);
            settings.slab_size = ways[way].slab ? ways[way].slab : settings.slab_size;
            leat_bench_must(leat_mem_new(&settings, &w->mem[way]), "memory");
        }
    }
    if (pthread_create(&w->thread, NULL, work, w) != 0) {
        leat_bench_fail("cannot start a thread");
    }
}

static void free_worker(worker *w)
{
    pthread_join(w->thread, NULL);
    for (unsigned way = 0; way < WAYS; way++) {
        leat_mem_free(w->mem[way]);
    }
}

/* Some seconds' worth: what takes longer is the copying. */
static uint64_t default_count(size_t size)
{
    uint64_t fit = (UINT64_C(1) << 30) / size;

    return fit < 60000 ? fit : 60000;
}

static void measure(leat_bench *b, worker *workers, unsigned count, size_t size)
{
    static files f;
    char names[WAYS][LEAT_BENCH_NAME], text[LEAT_BENCH_SIZE_TEXT];
    leat_bench_piece pieces[WAYS];
    piece args[WAYS];
    uint64_t files_in_all = leat_bench_or(b->options->count, default_count(size));
    enum { ROUNDS = 21 };

    memset(&f, 0, sizeof f);
    f.each = files_in_all / ROUNDS / count + 1;
    make_file(b->options, &f, size);
    pthread_barrier_init(&f.begin, NULL, count + 1);
    pthread_barrier_init(&f.finish, NULL, count + 1);
    for (unsigned i = 0; i < count; i++) {
        make_worker(&workers[i], &f);
    }
    for (unsigned way = 0; way < WAYS; way++) {
        snprintf(names[way], sizeof names[way], "%s, %s", leat_bench_size_text(size, text),
                 ways[way].name);
        args[way] = (piece){&f, way};
        pieces[way] = (leat_bench_piece){names[way], run_round, &args[way], f.each * count};
    }
    leat_bench_rounds(b, pieces, WAYS, ROUNDS);
    for (unsigned way = 0; way < WAYS; way++) {
        leat_mem_stats stats = {0};

        if (workers[0].mem[way]) {
            leat_mem_stats_get(workers[0].mem[way], &stats);
        }
        leat_bench_figure_add(&b->rows[b->row_count - WAYS + way], "mem_bytes",
                              (double)stats.system_high);
    }
    f.end = true;
    pthread_barrier_wait(&f.begin);
    for (unsigned i = 0; i < count; i++) {
        free_worker(&workers[i]);
    }
    unlink(f.path);
    if (f.failed) {
        leat_bench_fail("cannot read %s", f.path);
    }
}

void leat_bench_readfile(leat_bench *b)
{
    static const size_t sizes[] = {4096, 8192, 16384, 65536, 1048576};
    static worker workers[WORKERS_MOST];
    unsigned count = (unsigned)leat_bench_or(b->options->workers, 8);

    if (count > WORKERS_MOST) {
        leat_bench_fail("--workers: at most %d", WORKERS_MOST);
    }
    if (b->options->size) {
        measure(b, workers, count, (size_t)b->options->size);
        return;
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        measure(b, workers, count, sizes[i]);
    }
}
