/* cli/perf_report.c: what `leat perf client` prints: a line an interval and a last one, in iperf3's
 * manner, or one JSON object of iperf3's shape: start, intervals, end.
 *
 * SPDX-License-Identifier: MIT
 */
#include "perf_client.h"

#include <sys/resource.h>

/* ---- times by size ---- */

/* Values below PARTS have a bucket each; above, an octave has PARTS buckets. */
static size_t bucket_of(leat_time value)
{
    unsigned log = value < PERF_HISTOGRAM_PARTS ? 5 : 63 - (unsigned)__builtin_clzll(value);
    size_t octave = log - 5;

    return value < PERF_HISTOGRAM_PARTS ? (size_t)value
                                        : (octave + 1) * PERF_HISTOGRAM_PARTS +
                                              (size_t)((value >> octave) - PERF_HISTOGRAM_PARTS);
}

static leat_time value_of(size_t bucket)
{
    size_t octave = bucket / PERF_HISTOGRAM_PARTS;
    leat_time part = bucket % PERF_HISTOGRAM_PARTS;

    return octave == 0 ? part : (part + PERF_HISTOGRAM_PARTS) << (octave - 1);
}

void perf_histogram_add(perf_histogram *h, leat_time value)
{
    h->buckets[bucket_of(value)]++;
    h->count++;
}

void perf_histogram_merge(perf_histogram *h, const perf_histogram *more)
{
    for (size_t i = 0; i < PERF_HISTOGRAM; i++) {
        h->buckets[i] += more->buckets[i];
    }
    h->count += more->count;
}

leat_time perf_histogram_quantile(const perf_histogram *h, double part)
{
    uint64_t want = (uint64_t)(part * (double)h->count), seen = 0;

    for (size_t i = 0; i < PERF_HISTOGRAM; i++) {
        seen += h->buckets[i];
        if (seen > want || (seen == h->count && seen > 0)) {
            return value_of(i);
        }
    }
    return 0;
}

/* ---- lines ---- */

static const char *const mode_names[] = {"upload", "download", "requests", "handshakes"};

static bool is_throughput(const perf_client *c)
{
    return c->mode == PERF_UPLOAD || c->mode == PERF_DOWNLOAD;
}

static double seconds_since(leat_time from, leat_time to)
{
    return (double)(to - from) / (double)LEAT_SECOND;
}

void perf_report_begin(perf_client *c)
{
    char remote[LEAT_ADDR_TEXT_MAX];
    const char *cipher = c->conn ? leat_conn_cipher(c->conn) : NULL;

    leat_addr_format(&c->remote, remote);
    if (c->json) {
        printf("{\"start\": {\"tool\": \"leat perf\", \"version\": \"%s\", \"remote\": \"%s\", "
               "\"mode\": \"%s\", \"parallel\": %llu, \"connections\": %llu, \"threads\": %llu, "
               "\"cipher\": \"%s\"}, \"intervals\": [",
               leat_version(), remote, mode_names[c->mode], (unsigned long long)c->parallel,
               (unsigned long long)c->connections, (unsigned long long)c->threads,
               cipher ? cipher : "");
        return;
    }
    printf("%s to %s, %llu at once%s%s\n", mode_names[c->mode], remote,
           (unsigned long long)c->parallel, cipher ? ", " : "", cipher ? cipher : "");
    printf(is_throughput(c)
               ? "Interval           Transfer     Bitrate          Lost   Cwnd         RTT\n"
               : "Interval           Number       a second\n");
    fflush(stdout);
}

static void conn_stats(const perf_client *c, leat_conn_stats_data *out)
{
    *out = c->last;
    if (c->conn) {
        leat_conn_stats(c->conn, out);
    }
}

static void print_throughput(const perf_client *c, double from, double to, uint64_t bytes)
{
    char moved[LEAT_CLI_TEXT], rate[LEAT_CLI_TEXT], cwnd[LEAT_CLI_TEXT];
    leat_conn_stats_data stats;

    conn_stats(c, &stats);
    printf("%6.2f-%-6.2f sec  %-12s %-16s %-6llu %-12s %.3f ms\n", from, to,
           leat_cli_bytes_text(bytes, moved),
           leat_perf_rate_text((double)bytes * 8, to - from, rate),
           (unsigned long long)stats.packets_lost, leat_cli_bytes_text(stats.cwnd, cwnd),
           (double)stats.rtt_smoothed / (double)LEAT_MILLISECOND);
}

static void print_number(double from, double to, uint64_t number)
{
    printf("%6.2f-%-6.2f sec  %-12llu %.1f\n", from, to, (unsigned long long)number,
           to > from ? (double)number / (to - from) : 0);
}

static void json_line(const perf_client *c, double from, double to, uint64_t bytes, uint64_t number)
{
    double seconds = to - from;
    leat_conn_stats_data stats;

    conn_stats(c, &stats);
    printf("{\"start\": %.6f, \"end\": %.6f, \"seconds\": %.6f, \"bytes\": %llu, "
           "\"bits_per_second\": %.1f, \"operations\": %llu, \"ops_per_second\": %.3f, "
           "\"packets_lost\": %llu, \"key_updates\": %llu, \"cwnd\": %llu, \"rtt_ns\": %llu}",
           from, to, seconds, (unsigned long long)bytes,
           seconds > 0 ? (double)bytes * 8 / seconds : 0, (unsigned long long)number,
           seconds > 0 ? (double)number / seconds : 0, (unsigned long long)stats.packets_lost,
           (unsigned long long)stats.key_updates, (unsigned long long)stats.cwnd,
           (unsigned long long)stats.rtt_smoothed);
}

void perf_report_line(perf_client *c, leat_time now)
{
    double from = seconds_since(c->began, c->line_from), to = seconds_since(c->began, now);
    uint64_t moved = perf_load_moved(c);

    if (c->json) {
        printf("%s", c->lines ? ", " : "");
        json_line(c, from, to, moved - c->line_moved, c->done - c->line_done);
    } else if (is_throughput(c)) {
        print_throughput(c, from, to, moved - c->line_moved);
    } else {
        print_number(from, to, c->done - c->line_done);
    }
    fflush(stdout);
    c->lines++;
    c->line_from = now;
    c->line_moved = moved;
    c->line_done = c->done;
}

/* ---- the end ---- */

static double cpu_seconds(void)
{
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) != 0) {
        return 0;
    }
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           ((double)usage.ru_utime.tv_usec + (double)usage.ru_stime.tv_usec) / 1e6;
}

static double quantile_us(const perf_client *c, double part)
{
    return (double)perf_histogram_quantile(&c->times, part) / 1e3;
}

void perf_report_end(perf_client *c)
{
    double seconds = seconds_since(c->began, c->ended);
    uint64_t moved = perf_load_moved(c);

    if (c->json) {
        printf("], \"end\": {\"cpu_seconds\": %.6f, \"p50_us\": %.1f, \"p99_us\": %.1f, "
               "\"p99_9_us\": %.1f, \"sum\": ",
               cpu_seconds(), quantile_us(c, 0.5), quantile_us(c, 0.99), quantile_us(c, 0.999));
        json_line(c, 0, seconds, moved, c->done);
        leat_cli_steady_json(&c->steady);
        printf("}}\n");
        return;
    }
    printf("- - - - - - - - - - - - - - - - - - - - - - - - -\n");
    if (is_throughput(c)) {
        print_throughput(c, 0, seconds, moved);
    } else {
        print_number(0, seconds, c->done);
        if (c->times.count > 0) {
            printf("time of one: p50 %.1f us, p99 %.1f us, p99.9 %.1f us\n", quantile_us(c, 0.5),
                   quantile_us(c, 0.99), quantile_us(c, 0.999));
        }
    }
    printf("processor time of this end: %.2f s\n", cpu_seconds());
}
