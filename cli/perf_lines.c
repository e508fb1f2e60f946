/* cli/perf_lines.c: the lines of `leat perf client` for several connections, of which each runs on
 * its thread and knows itself alone.
 *
 * Each has a timer of the interval, and then adds what it did since the last time to a sum that all
 * have in common; the one that completes a round of tellings prints the line. So nothing is counted
 * twice or left out, and a line covers the time since the one before, an interval as a rule.
 *
 * SPDX-License-Identifier: MIT
 */
#include "perf_client.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Guarded by it. */
static perf_client sum;     /* as one client without a connection, for perf_report.c */
static size_t active, told; /* connections that measure; tellings since the last line */

void perf_lines_open(const perf_client *asked)
{
    sum = *asked;
    active = told = 0;
}

static void add(perf_client *c)
{
    leat_conn_stats_data stats = c->last;
    uint64_t moved = perf_load_moved(c);

    if (c->conn) {
        leat_conn_stats(c->conn, &stats);
    }
    sum.moved += moved - c->line_moved;
    sum.done += c->done - c->line_done;
    sum.last.stream_bytes_sent = sum.moved; /* what an upload has moved */
    sum.last.packets_lost += stats.packets_lost - c->line_stats.packets_lost;
    sum.last.key_updates += stats.key_updates - c->line_stats.key_updates;
    sum.last.cwnd += stats.cwnd - c->line_stats.cwnd; /* may be less */
    sum.last.rtt_smoothed = stats.rtt_smoothed;       /* of one of them */
    c->line_moved = moved;
    c->line_done = c->done;
    c->line_stats = stats;
}

void perf_lines_begin(perf_client *c)
{
    pthread_mutex_lock(&lock);
    active++;
    if (sum.began == 0) {
        sum.began = sum.line_from = c->began;
        perf_report_begin(&sum);
    }
    pthread_mutex_unlock(&lock);
}

void perf_lines_tell(perf_client *c, leat_time now)
{
    pthread_mutex_lock(&lock);
    add(c);
    c->lines++;
    if (++told >= active && now > sum.line_from) {
        told = 0;
        perf_report_line(&sum, now);
    }
    pthread_mutex_unlock(&lock);
}

void perf_lines_end(perf_client *c)
{
    pthread_mutex_lock(&lock);
    add(c);
    active--;
    pthread_mutex_unlock(&lock);
}

void perf_lines_close(leat_time ended)
{
    pthread_mutex_lock(&lock);
    if (sum.began > 0 && sum.interval && ended > sum.line_from + sum.interval / 2) {
        perf_report_line(&sum, ended);
    }
    pthread_mutex_unlock(&lock);
}
