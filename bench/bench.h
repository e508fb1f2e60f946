/* bench/bench.h: the works of `leat bench`, and what they share: options, measuring, the report.
 *
 * The command parses the options (cli/bench.c) and calls leat_bench_run(). A work sets itself up,
 * runs once for warm-up, and then, between leat_bench_start() and leat_bench_stop(), so many
 * operations that are counted; each pair makes one row of the report.
 *
 * What is measured of a row: the time and the processor time of the process (all threads), and heap
 * calls with their bytes by who made them: leat (code of the command itself, which holds the whole
 * library), the TLS library (GnuTLS and what it stands on), and the rest (the C library on anyone's
 * behalf). The heap is counted by tools/alloccount, preloaded: without it those figures are absent,
 * never zero.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_BENCH_BENCH_H
#define LEAT_BENCH_BENCH_H

#include <leat/base.h>

/* X(name, what an operation is, what it does) */
#define LEAT_BENCH_WORK_LIST(X)                                                                    \
    X(transfer, "message", "messages on one stream (--size), or streams of --total bytes")         \
    X(handshake, "handshake", "connections made and closed, beside the TLS library's own")         \
    X(streams, "stream", "streams opened, answered and closed")                                    \
    X(protect, "packet", "packets sealed, and sealed and opened: the least that any packet costs") \
    X(scale, "message", "messages in bursts among 1 to 10,000 connections or streams")             \
    X(udpip, "packet", "packets built and read by the IP and UDP layer alone")                     \
    X(socket, "message", "echo and one way over the kernel's sockets, for comparison")             \
    X(tparams, "set", "transport parameters encoded and decoded")                                  \
    X(twcc, "packet", "arrivals recorded, feedback written and read, a feedback every 100")        \
    X(estimate, "feedback", "a feedback on 100 packets through history and bandwidth estimate")    \
    X(tasks, "task", "tasks run: posted by the owner, by another thread, by themselves")           \
    X(queue, "element", "elements through the batch queue")                                        \
    X(buffers, "buffer", "buffers taken and released, 64 B to 1 MiB, against malloc")              \
    X(readfile, "file", "files read into buffers with slabs of 8 and 64 KiB, and by malloc")       \
    X(idle, "connection", "what connected, idle connections cost in memory")

typedef struct leat_bench_options {
    /* 0 in these: the work's own default. */
    uint64_t count;      /* operations measured */
    uint64_t warm_up;    /* operations before them */
    uint64_t size;       /* bytes a message, packet or file */
    uint64_t total;      /* bytes a transfer; not 0: transfers instead of messages */
    uint64_t burst;      /* messages a hop */
    uint64_t concurrent; /* streams at once */
    uint64_t up, down;   /* bytes a stream, each way */
    uint64_t workers;    /* threads that read files */
    uint64_t udp_payload;
    uint64_t window;
    uint64_t key_update; /* packets sealed with one key; 0: by the cipher's limit */
    /* The link. */
    leat_time delay; /* one way */
    double loss;     /* of 1 */
    uint64_t rate;   /* bits a second */
    bool quic_stack; /* no IP and UDP headers */
    const char *pcap;
    const char *keylog;
    bool verify;
    bool resume;
    const char *among;  /* scale: "connections", "streams"; NULL: both */
    const char *proto;  /* socket: "udp", "tcp"; NULL: both */
    const char *folder; /* readfile: where the files are made; NULL: TMPDIR or /tmp */
    bool json;
} leat_bench_options;

typedef enum leat_bench_err {
    LEAT_BENCH_OK,
    LEAT_BENCH_UNKNOWN, /* no such work */
    LEAT_BENCH_NO_LINK, /* options are of a link, which the work has not */
    LEAT_BENCH_FAILED   /* leat_bench_error() says why */
} leat_bench_err;

/* Runs one work and prints its report on stdout. After LEAT_BENCH_FAILED nothing was printed. */
leat_bench_err leat_bench_run(const char *work, const leat_bench_options *options);
/* What failed, in words; never NULL. */
const char *leat_bench_error(void);

/* ---- for the works ---- */

typedef enum leat_bench_whose {
    LEAT_BENCH_REST,
    LEAT_BENCH_LEAT,
    LEAT_BENCH_TLS,
    LEAT_BENCH_WHOSE
} leat_bench_whose;

typedef struct leat_bench_heap {
    uint64_t calls[LEAT_BENCH_WHOSE];
    uint64_t bytes[LEAT_BENCH_WHOSE];
} leat_bench_heap;

enum { LEAT_BENCH_ROWS = 128, LEAT_BENCH_FIGURES = 16, LEAT_BENCH_NAME = 48 };

/* A figure of the row's own: "p50_ns". Static names. */
typedef struct leat_bench_figure {
    const char *name;
    double value;
} leat_bench_figure;

typedef struct leat_bench_row {
    char name[LEAT_BENCH_NAME];
    bool timed;          /* false: only figures of its own */
    uint64_t operations; /* what the sums below are divided by */
    leat_time time;
    leat_time cpu;
    leat_bench_heap heap;
    leat_bench_figure figures[LEAT_BENCH_FIGURES];
    size_t figure_count;
} leat_bench_row;

typedef void leat_bench_round_fn(void *arg);

typedef struct leat_bench {
    const leat_bench_options *options;
    const char *work, *unit;
    leat_time time, cpu; /* at leat_bench_start() */
    leat_bench_heap heap;
    leat_bench_row rows[LEAT_BENCH_ROWS];
    size_t row_count;
    leat_bench_round_fn *prepare; /* see leat_bench_rounds() */
} leat_bench;

/* CLOCK_MONOTONIC; processor time of all threads. */
leat_time leat_bench_clock(void);
leat_time leat_bench_cpu(void);
/* Whether heap calls are counted. */
bool leat_bench_counts(void);

void leat_bench_start(leat_bench *b);
/* The row lives as long as the bench. */
leat_bench_row *leat_bench_stop(leat_bench *b, const char *name, uint64_t operations);
/* A row of figures without time. */
leat_bench_row *leat_bench_note(leat_bench *b, const char *name);
void leat_bench_figure_add(leat_bench_row *row, const char *name, double value);
/* For scripts of `size` and the like: "64 KiB" as "64k". Returns out. */
enum { LEAT_BENCH_SIZE_TEXT = 24 };
const char *leat_bench_size_text(uint64_t bytes, char out[LEAT_BENCH_SIZE_TEXT]);

/* A small piece of work, over and over: one row, whose time is that of all rounds, with the best
 * and the median round as figures (nanoseconds an operation). One round before is not counted. */
enum { LEAT_BENCH_ROUNDS = 101 };
/* So many pieces in turn, each round in another order: what disturbs, disturbs all alike. */
typedef struct leat_bench_piece {
    const char *name;
    leat_bench_round_fn *run;
    void *arg;
    uint64_t operations; /* a round */
} leat_bench_piece;
enum { LEAT_BENCH_PIECES = 8 };
/* `prepare`, unless it is NULL, is called before each round, with what the round is called with,
 * and is no part of its time. */
void leat_bench_rounds(leat_bench *b, const leat_bench_piece *pieces, size_t count,
                       uint64_t rounds);
/* Of the last leat_bench_rounds(): how much longer one piece's operation took than another's, by
 * the clock or in processor time. The median of the rounds' ratios: what comes and goes in some
 * milliseconds disturbs one or both of a round, and few rounds. */
double leat_bench_rounds_ratio(size_t piece, size_t base, bool cpu);

/* Fails the work: does not return. */
_Noreturn void leat_bench_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* For what cannot go wrong unless all has. */
void leat_bench_must(leat_err err, const char *what);

/* The value, or the default when it is 0. */
static inline uint64_t leat_bench_or(uint64_t value, uint64_t otherwise)
{
    return value ? value : otherwise;
}

/* Orders n values and returns the one below which `part` (0 to 1) of them lie. */
double leat_bench_quantile(double *values, size_t n, double part);

/* As far as the compiler knows, this reads and writes all memory. */
static inline void leat_bench_opaque(const void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

/* Between two looks of a thread that spins: it leaves the cache line to the one that it waits for.
 */
static inline void leat_bench_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

typedef void leat_bench_work_fn(leat_bench *b);
#define LEAT_BENCH_DECLARE(name, unit, text) leat_bench_work_fn leat_bench_##name;
LEAT_BENCH_WORK_LIST(LEAT_BENCH_DECLARE)
#undef LEAT_BENCH_DECLARE

/* Prints the report (report.c). */
void leat_bench_report(const leat_bench *b);

#endif
