/* cli/compare.h: what `leat compare` has measured, and how it is told.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CLI_COMPARE_H
#define LEAT_CLI_COMPARE_H

#include <stdio.h>

#include "compare_run.h"
#include "compare_stats.h"

enum { LEAT_COMPARE_BUILDS = 8 };

typedef struct leat_compare_build {
    const char *name;
    char *path;
} leat_compare_build;

/* builds[0] is the base; runs[round * (build_count + 1) + i]: build i, and i == build_count: the
 * base again. */
typedef struct leat_compare {
    leat_compare_build builds[LEAT_COMPARE_BUILDS];
    size_t build_count;
    size_t rounds;
    size_t done; /* whole rounds */
    leat_compare_run *runs;
    const char *pattern; /* of the names of the metrics to be shown; NULL: all */
    char **args;         /* of every build */
    int arg_count;
} leat_compare;

static inline size_t leat_compare_slots(const leat_compare *c)
{
    return c->build_count + 1;
}

/* Names of the metrics that the base gave in its first run, and their number. */
size_t leat_compare_metric_count(const leat_compare *c);
const char *leat_compare_metric_name(const leat_compare *c, size_t metric);

/* The verdict on one build by one metric. ratios, if not NULL, has room for `rounds` and gets them
 * in order of the rounds. */
void leat_compare_result_of(const leat_compare *c, size_t build, size_t metric, double *ratios,
                            leat_compare_result *out);

/* The median over the rounds of what a slot of the rotation measured; NAN: nothing. */
double leat_compare_value_of(const leat_compare *c, size_t slot, size_t metric);

/* Whether the metric is to be shown. */
bool leat_compare_shows(const leat_compare *c, size_t metric);

/* compare_report.c */
void leat_compare_print_table(const leat_compare *c, FILE *to);
void leat_compare_print_json(const leat_compare *c, FILE *to);
void leat_compare_print_svg(const leat_compare *c, FILE *to);

#endif
