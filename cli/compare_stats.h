/* cli/compare_stats.h: is one build faster than another? The arithmetic of `leat compare`, without
 * processes or files.
 *
 * Each round runs every build once, the base twice. A build's run is paired with the base's run of
 * the same round, and what is looked at is the ratio of the two: what slows a machine down for a
 * while slows both. Over the rounds:
 *
 *   median     of the ratios
 *   interval   of the median, without assumptions about how ratios are spread: two order statistics
 * between which the true median lies with at least LEAT_COMPARE_CONFIDENCE (the sign test turned
 * round) noise      the same interval for the base against itself: how far from 1 a build that
 * differs in nothing may seem to be, on this machine and today verdict    faster or slower when 1
 * lies outside the interval and the median is further from 1 than the noise; what lies between says
 * "no difference seen"
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CLI_COMPARE_STATS_H
#define LEAT_CLI_COMPARE_STATS_H

#include <stdbool.h>
#include <stddef.h>

#define LEAT_COMPARE_CONFIDENCE 0.95

/* With fewer rounds no interval reaches the confidence: 1 - 2 / 2^6. */
enum { LEAT_COMPARE_ROUNDS_MIN = 6, LEAT_COMPARE_ROUNDS_MAX = 999 };

typedef enum leat_compare_verdict {
    LEAT_COMPARE_SAME,   /* no difference beyond noise was seen */
    LEAT_COMPARE_BETTER, /* lower, or higher where higher is better */
    LEAT_COMPARE_WORSE
} leat_compare_verdict;

typedef struct leat_compare_result {
    size_t rounds; /* with a value of both */
    size_t better; /* rounds in which it was better */
    double median; /* of candidate / base */
    double low, high;
    double coverage; /* what the interval really covers, at least the confidence; 0: too few rounds,
                        and then there is no interval and no verdict */
    double noise;    /* how far from 1 the base against itself may lie: 0.013 is 1.3 % */
    leat_compare_verdict verdict;
} leat_compare_result;

/* The ratios of n rounds, NaN where one of the two is missing; again: those of the base against
 * itself. Sorts both. */
void leat_compare_judge(double *ratios, size_t n, double *again, size_t again_n,
                        bool higher_is_better, leat_compare_result *out);

/* Indexes of the order statistics of an interval for the median of n values; the true coverage, or
 * 0 when n is too small. */
double leat_compare_interval(size_t n, size_t *low, size_t *high);

const char *leat_compare_verdict_text(leat_compare_verdict verdict);

#endif
