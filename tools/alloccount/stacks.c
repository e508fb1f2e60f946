/* tools/alloccount/stacks.c: see stacks.h.
 *
 * An entry belongs to a stack from the moment its hash is put in by compare-and-swap; its callers
 * are written after that by the one who won, and `ready` says when they are there. Another thread
 * with the same hash then waits for nothing: it counts, and trusts the hash (64 bits over at most
 * 16,384 stacks). Entries are never taken out.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stacks.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "walk.h"

#define EXPORT __attribute__((visibility("default")))

typedef struct entry {
    _Atomic uint64_t hash; /* 0: free */
    _Atomic uint32_t ready;
    uint32_t depth;
    _Atomic uint64_t calls[LEAT_ALLOC_KINDS];
    _Atomic uint64_t bytes;
    uintptr_t callers[LEAT_STACK_DEPTH];
} entry;

enum { MARKS = 64, MARK_NAME = 48 };

typedef struct mark {
    char name[MARK_NAME];
    uint64_t allocs, bytes;
} mark;

static entry *table;
static entry no_room;
static _Atomic uint64_t lost;
static _Atomic int on;
static mark marks[MARKS];
static _Atomic unsigned mark_count;

/* The unwinder may allocate: what it does is not charged to anybody. Static TLS, so that nothing is
 * allocated for it. */
static __thread int busy __attribute__((tls_model("initial-exec")));

/* ---- the table ---- */

static uint64_t hash_of(const uintptr_t *callers, uint32_t depth)
{
    uint64_t h = 0x9e3779b97f4a7c15u ^ depth;

    for (uint32_t i = 0; i < depth; i++) {
        h = (h ^ callers[i]) * 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    }
    return h ? h : 1;
}

static entry *find(const uintptr_t *callers, uint32_t depth)
{
    uint64_t hash = hash_of(callers, depth);

    for (uint32_t i = 0; i < LEAT_STACKS; i++) {
        entry *e = &table[(hash + i) & (LEAT_STACKS - 1)];
        uint64_t seen = atomic_load_explicit(&e->hash, memory_order_acquire);

        if (seen == 0 && atomic_compare_exchange_strong(&e->hash, &seen, hash)) {
            memcpy(e->callers, callers, depth * sizeof(*callers));
            e->depth = depth;
            atomic_store_explicit(&e->ready, 1, memory_order_release);
            return e;
        }
        if (seen == hash) {
            return e;
        }
        if (i == 64) {
            break; /* as good as full */
        }
    }
    atomic_fetch_add_explicit(&lost, 1, memory_order_relaxed);
    return &no_room;
}

int leat_stacks_open(int paused)
{
    void *room = mmap(NULL, LEAT_STACKS * sizeof(entry), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (room == MAP_FAILED) {
        return 0;
    }
    table = room;
    atomic_store_explicit(&on, !paused, memory_order_release);
    return 1;
}

void leat_stacks_count(leat_alloc_kind kind, size_t size)
{
    uintptr_t callers[LEAT_STACK_DEPTH];
    uint32_t depth;
    entry *e;

    if (busy || !atomic_load_explicit(&on, memory_order_acquire)) {
        return;
    }
    busy = 1;
    depth = leat_walk(callers, LEAT_STACK_DEPTH, 2); /* past count_from() and malloc() itself */
    e = find(callers, depth);
    atomic_fetch_add_explicit(&e->calls[kind], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&e->bytes, size, memory_order_relaxed);
    busy = 0;
}

/* ---- for programs that link or look them up ---- */

EXPORT void leat_allocs_start(void)
{
    atomic_store_explicit(&on, table != NULL, memory_order_release);
}

EXPORT void leat_allocs_stop(void)
{
    atomic_store_explicit(&on, 0, memory_order_release);
}

EXPORT void leat_allocs_mark(const char *name)
{
    unsigned i = atomic_fetch_add_explicit(&mark_count, 1, memory_order_relaxed);

    if (i >= MARKS) {
        atomic_store_explicit(&mark_count, MARKS, memory_order_relaxed);
        return;
    }
    strncpy(marks[i].name, name, MARK_NAME - 1);
    marks[i].allocs = leat_allocs_now();
    marks[i].bytes = leat_allocs_bytes();
}

/* ---- writing ---- */

/* Lines are gathered on the stack, so that writing allocates nothing. */
typedef struct writer {
    int fd;
    size_t len;
    char text[8192];
} writer;

static void flush(writer *w)
{
    for (size_t at = 0; at < w->len;) {
        ssize_t n = write(w->fd, w->text + at, w->len - at);

        if (n <= 0) {
            break;
        }
        at += (size_t)n;
    }
    w->len = 0;
}

static void put(writer *w, const char *text)
{
    for (; *text; text++) {
        if (w->len == sizeof(w->text)) {
            flush(w);
        }
        w->text[w->len++] = *text;
    }
}

static void put_number(writer *w, uint64_t n, unsigned base)
{
    char digits[24];
    size_t at = sizeof(digits) - 1;

    digits[at] = 0;
    do {
        digits[--at] = "0123456789abcdef"[n % base];
        n /= base;
    } while (n);
    put(w, digits + at);
}

static void write_entry(writer *w, const entry *e)
{
    put(w, "stack");
    for (unsigned kind = 0; kind < LEAT_ALLOC_KINDS; kind++) {
        put(w, " ");
        put_number(w, atomic_load_explicit(&e->calls[kind], memory_order_relaxed), 10);
    }
    put(w, " ");
    put_number(w, atomic_load_explicit(&e->bytes, memory_order_relaxed), 10);
    for (uint32_t i = 0; i < e->depth; i++) {
        put(w, " ");
        put_number(w, e->callers[i], 16);
    }
    put(w, "\n");
}

/* A line of /proc/self/maps, "FROM-TO rwxp OFFSET DEV INODE PATH", when it is code with a path. */
static void write_map(writer *w, char *line)
{
    char *words[6] = {NULL};

    for (int i = 0; i < 6 && *line; i++) {
        words[i] = line;
        line += strcspn(line, i < 5 ? " " : "");
        if (i < 5 && *line) {
            *line++ = 0;
            line += strspn(line, " ");
        }
    }
    if (words[5] && words[5][0] == '/' && words[1][2] == 'x') {
        put(w, "map ");
        put(w, words[0]);
        put(w, " ");
        put(w, words[2]);
        put(w, " ");
        put(w, words[5]);
        put(w, "\n");
    }
}

static void write_maps(writer *w)
{
    char room[8192], line[8192 + 1];
    size_t have = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    ssize_t n;

    while (fd >= 0 && (n = read(fd, room + have, sizeof(room) - have)) > 0) {
        char *at = room, *end;

        have += (size_t)n;
        while ((end = memchr(at, '\n', have - (size_t)(at - room))) != NULL) {
            size_t len = (size_t)(end - at);

            memcpy(line, at, len);
            line[len] = 0;
            write_map(w, line);
            at = end + 1;
        }
        have -= (size_t)(at - room);
        memmove(room, at, have);
        if (have == sizeof(room)) {
            break; /* a path of 8 KiB: there is none */
        }
    }
    if (fd >= 0) {
        close(fd);
    }
}

void leat_stacks_write(int fd)
{
    writer w = {.fd = fd};

    leat_allocs_stop();
    put(&w, "lost ");
    put_number(&w, atomic_load_explicit(&lost, memory_order_relaxed), 10);
    put(&w, "\n");
    write_maps(&w);
    for (unsigned i = 0; i < atomic_load_explicit(&mark_count, memory_order_relaxed); i++) {
        put(&w, "mark ");
        put_number(&w, marks[i].allocs, 10);
        put(&w, " ");
        put_number(&w, marks[i].bytes, 10);
        put(&w, " ");
        put(&w, marks[i].name);
        put(&w, "\n");
    }
    for (uint32_t i = 0; table && i < LEAT_STACKS; i++) {
        if (atomic_load_explicit(&table[i].ready, memory_order_acquire)) {
            write_entry(&w, &table[i]);
        }
    }
    write_entry(&w, &no_room);
    flush(&w);
}
