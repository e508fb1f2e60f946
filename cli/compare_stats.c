/* cli/compare_stats.c: see compare_stats.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "compare_stats.h"

#include <math.h>
#include <stdlib.h>

/* The k-th and the (n+1-k)-th smallest of n enclose the true median unless at least n+1-k values
 * lie on one side of it: 1 - 2 * P(Bin(n, 1/2) < k). The largest k that keeps the confidence is
 * taken. */
double leat_compare_interval(size_t n, size_t *low, size_t *high)
{
    double tail = 0, coverage = 0;
    double term = exp2(-(double)n); /* P(Bin(n, 1/2) = 0) */

    *low = *high = 0;
    for (size_t k = 0; 2 * (k + 1) <= n; k++) {
        tail += term;
        if (1 - 2 * tail < LEAT_COMPARE_CONFIDENCE) {
            break;
        }
        coverage = 1 - 2 * tail;
        *low = k;
        *high = n - 1 - k;
        term *= (double)(n - k) / (double)(k + 1);
    }
    return coverage;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Moves the missing ones out and sorts the rest; returns how many they are. A ratio may be 0 or
 * infinite: counts are, where one side has none. */
static size_t tidy(double *values, size_t n)
{
    size_t kept = 0;

    for (size_t i = 0; i < n; i++) {
        if (!isnan(values[i]) && values[i] >= 0) {
            values[kept++] = values[i];
        }
    }
    qsort(values, kept, sizeof(*values), by_value);
    return kept;
}

static double median(const double *sorted, size_t n)
{
    double low = sorted[(n - 1) / 2], high = sorted[n / 2];

    return low == high ? low : sqrt(low) * sqrt(high);
}

static double distance(double ratio)
{
    return fabs(log(ratio));
}

/* How far from 1 the interval of the base against itself reaches. */
static double floor_of(const double *sorted, size_t n)
{
    size_t low, high;

    if (leat_compare_interval(n, &low, &high) == 0) {
        return INFINITY;
    }
    return fmax(distance(sorted[low]), distance(sorted[high]));
}

void leat_compare_judge(double *ratios, size_t n, double *again, size_t again_n,
                        bool higher_is_better, leat_compare_result *out)
{
    size_t low, high;
    double floor;

    *out = (leat_compare_result){.rounds = tidy(ratios, n)};
    n = out->rounds;
    floor = floor_of(again, tidy(again, again_n));
    out->noise = expm1(floor);
    for (size_t i = 0; i < n; i++) {
        out->better += higher_is_better ? ratios[i] > 1 : ratios[i] < 1;
    }
    if (n == 0) {
        return;
    }
    out->median = median(ratios, n);
    out->coverage = leat_compare_interval(n, &low, &high);
    if (out->coverage == 0) {
        return;
    }
    out->low = ratios[low];
    out->high = ratios[high];
    if ((out->low > 1 || out->high < 1) && distance(out->median) > floor) {
        out->verdict =
            (out->median > 1) == higher_is_better ? LEAT_COMPARE_BETTER : LEAT_COMPARE_WORSE;
    }
}

const char *leat_compare_verdict_text(leat_compare_verdict verdict)
{
    switch (verdict) {
    case LEAT_COMPARE_BETTER:
        return "better";
    case LEAT_COMPARE_WORSE:
        return "worse";
    case LEAT_COMPARE_SAME:
        break;
    }
    return "no difference seen";
}
