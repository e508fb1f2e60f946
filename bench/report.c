/* bench/report.c: the report of a work: a table for people, or one JSON object a line for machines.
 *
 * JSON, one object:
 *   {"tool": "leat bench", "version": "0.1.0", "work": "transfer", "unit": "message",
 *    "max_rss_kib": 1, "results": [{"name": "…", "operations": 1, "seconds": 1.0,
 *    "ns_per_op": 1.0, "cpu_ns_per_op": 1.0, "ops_per_second": 1.0,
 *    "allocs_per_op": {"leat": 0, "tls": 0, "rest": 0, "all": 0},
 *    "alloc_bytes_per_op": {the same}, further figures by name}]}
 * allocs_per_op and alloc_bytes_per_op are null when nothing counted; a row without time has its
 * figures only.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <sys/resource.h>

#include "bench.h"

static long max_rss_kib(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss : 0;
}

static double per_op(const leat_bench_row *row, uint64_t sum)
{
    return row->operations ? (double)sum / (double)row->operations : 0;
}

static double ops_per_second(const leat_bench_row *row)
{
    return row->time ? (double)row->operations / ((double)row->time / (double)LEAT_SECOND) : 0;
}

static uint64_t all(const uint64_t counts[LEAT_BENCH_WHOSE])
{
    return counts[LEAT_BENCH_LEAT] + counts[LEAT_BENCH_TLS] + counts[LEAT_BENCH_REST];
}

/* ---- JSON ---- */

static void json_heap(const leat_bench_row *row, const char *name,
                      const uint64_t counts[LEAT_BENCH_WHOSE])
{
    if (!leat_bench_counts()) {
        printf(", \"%s\": null", name);
        return;
    }
    printf(", \"%s\": {\"leat\": %.6g, \"tls\": %.6g, \"rest\": %.6g, \"all\": %.6g}", name,
           per_op(row, counts[LEAT_BENCH_LEAT]), per_op(row, counts[LEAT_BENCH_TLS]),
           per_op(row, counts[LEAT_BENCH_REST]), per_op(row, all(counts)));
}

static void json_row(const leat_bench_row *row)
{
    printf("{\"name\": \"%s\"", row->name);
    if (row->timed) {
        printf(", \"operations\": %llu, \"seconds\": %.9f, \"ns_per_op\": %.3f, "
               "\"cpu_ns_per_op\": %.3f, \"ops_per_second\": %.3f",
               (unsigned long long)row->operations, (double)row->time / (double)LEAT_SECOND,
               per_op(row, row->time), per_op(row, row->cpu), ops_per_second(row));
        json_heap(row, "allocs_per_op", row->heap.calls);
        json_heap(row, "alloc_bytes_per_op", row->heap.bytes);
    }
    for (size_t i = 0; i < row->figure_count; i++) {
        printf(", \"%s\": %.9g", row->figures[i].name, row->figures[i].value);
    }
    printf("}");
}

static void report_json(const leat_bench *b)
{
    printf("{\"tool\": \"leat bench\", \"version\": \"%s\", \"work\": \"%s\", \"unit\": \"%s\", "
           "\"max_rss_kib\": %ld, \"results\": [",
           leat_version(), b->work, b->unit, max_rss_kib());
    for (size_t i = 0; i < b->row_count; i++) {
        printf("%s", i ? ", " : "");
        json_row(&b->rows[i]);
    }
    printf("]}\n");
}

/* ---- the table ---- */

static const char *duration(double ns, char out[32])
{
    if (ns < 1e4) {
        snprintf(out, 32, "%.1f ns", ns);
    } else if (ns < 1e7) {
        snprintf(out, 32, "%.2f us", ns / 1e3);
    } else {
        snprintf(out, 32, "%.2f ms", ns / 1e6);
    }
    return out;
}

static void table_row(const leat_bench_row *row)
{
    char time[32], cpu[32];

    printf("%-28s", row->name);
    if (row->timed) {
        printf(" %10llu %12s %12s %12.0f", (unsigned long long)row->operations,
               duration(per_op(row, row->time), time), duration(per_op(row, row->cpu), cpu),
               ops_per_second(row));
        if (leat_bench_counts()) {
            printf(" %9.2f %9.2f %9.2f %11.1f", per_op(row, row->heap.calls[LEAT_BENCH_LEAT]),
                   per_op(row, row->heap.calls[LEAT_BENCH_TLS]),
                   per_op(row, row->heap.calls[LEAT_BENCH_REST]),
                   per_op(row, all(row->heap.bytes)));
        } else {
            printf(" %9s %9s %9s %11s", "-", "-", "-", "-");
        }
    }
    printf("\n");
    for (size_t i = 0; i < row->figure_count; i++) {
        printf("%s%s %.6g", i ? ", " : "    ", row->figures[i].name, row->figures[i].value);
    }
    printf(row->figure_count ? "\n" : "");
}

static void report_table(const leat_bench *b)
{
    printf("%-28s %10s %12s %12s %12s %9s %9s %9s %11s\n", "", "", "", "", "", "heap", "calls", "a",
           "bytes");
    printf("%-28s %10s %12s %12s %12s %9s %9s %9s %11s\n", b->work, b->unit, "time", "cpu",
           "a second", "leat", "TLS", "rest", "asked for");
    for (size_t i = 0; i < b->row_count; i++) {
        table_row(&b->rows[i]);
    }
    printf("largest resident size: %ld KiB\n", max_rss_kib());
    if (!leat_bench_counts()) {
        printf("heap calls were not counted: liballoccount.so is not preloaded\n");
    }
}

void leat_bench_report(const leat_bench *b)
{
    if (b->options->json) {
        report_json(b);
    } else {
        report_table(b);
    }
}
