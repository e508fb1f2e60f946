/* cli/rtp_feedback_stats.c: the numbers of `leat rtp feedback`: a line on a terminal that is drawn
 * again, JSON lines otherwise, and the sums at the end.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rtp_feedback.h"

#include <unistd.h>

static int64_t lost(const feedback *a)
{
    int64_t sum = 0;

    for (size_t i = 0; i < a->source_count; i++) {
        sum += a->sources[i].end ? leat_report_lost(&a->sources[i]) : 0;
    }
    return sum;
}

static double jitter_ms(const feedback *a)
{
    return a->source_count ? (double)leat_report_jitter(&a->sources[0]) / 1e6 : 0;
}

/* Packets that came and are in no feedback. */
typedef struct left_out {
    uint64_t duplicates, too_old;
    uint64_t refused; /* of streams for which there was no room */
} left_out;

static left_out left_out_of(const feedback *a)
{
    left_out left = {
        .duplicates = a->twcc.arrivals.duplicates + a->ccfb.gone_duplicates,
        .too_old = a->twcc.arrivals.too_old + a->ccfb.gone_too_old,
        .refused = a->ccfb.refused,
    };

    for (size_t i = 0; i < a->ccfb.count; i++) {
        left.duplicates += a->ccfb.streams[i].arrivals.duplicates;
        left.too_old += a->ccfb.streams[i].arrivals.too_old;
    }
    return left;
}

static void print_json(const feedback *a, leat_time now, double rate, bool at_end)
{
    left_out left = left_out_of(a);

    printf("{\"time\":%.3f,\"end\":%s,\"rate\":%.0f,\"lost\":%lld,\"jitter_ms\":%.3f",
           (double)(now - a->started) / 1e9, at_end ? "true" : "false", rate, (long long)lost(a),
           jitter_ms(a));
#define STAT_JSON(name, text) printf(",\"%s\":%llu", #name, (unsigned long long)a->sum.name);
    FEEDBACK_STAT_LIST(STAT_JSON)
#undef STAT_JSON
    leat_cli_steady_json(&a->steady);
    printf(",\"duplicates\":%llu,\"too_old\":%llu,\"refused\":%llu}\n",
           (unsigned long long)left.duplicates, (unsigned long long)left.too_old,
           (unsigned long long)left.refused);
    fflush(stdout);
}

void feedback_print_line(feedback *a, leat_time now)
{
    double rate = (double)(a->sum.bytes - a->last.bytes) * 8;

    if (a->json || !isatty(STDOUT_FILENO)) {
        print_json(a, now, rate, false);
    } else {
        printf("\r%9.3f Mbit/s %8llu packets %6lld lost %8.3f ms jitter %4llu feedback ",
               rate / 1e6, (unsigned long long)a->sum.packets, (long long)lost(a), jitter_ms(a),
               (unsigned long long)(a->sum.feedback_packets - a->last.feedback_packets));
        fflush(stdout);
    }
    a->last = a->sum;
}

void feedback_print_sums(const feedback *a, leat_time now)
{
    double seconds = (double)(now - a->started) / 1e9;

    if (a->json || !isatty(STDOUT_FILENO)) {
        print_json(a, now, seconds > 0 ? (double)a->sum.bytes * 8 / seconds : 0, true);
        return;
    }
    putchar('\n');
#define STAT_LINE(name, text) printf("%10llu %s\n", (unsigned long long)a->sum.name, text);
    FEEDBACK_STAT_LIST(STAT_LINE)
#undef STAT_LINE
    printf("%10lld packets lost\n", (long long)lost(a));
}
