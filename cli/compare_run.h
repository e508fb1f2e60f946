/* cli/compare_run.h: runs one build once: time, processor time, memory, and the numbers that it
 * prints as JSON.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CLI_COMPARE_RUN_H
#define LEAT_CLI_COMPARE_RUN_H

#include <stdbool.h>
#include <stddef.h>

enum { LEAT_COMPARE_METRICS = 640, LEAT_COMPARE_NAME = 96, LEAT_COMPARE_OUTPUT = 1 << 20 };

typedef struct leat_compare_metric {
    char name[LEAT_COMPARE_NAME];
    double value;
} leat_compare_metric;

typedef struct leat_compare_run {
    leat_compare_metric metrics[LEAT_COMPARE_METRICS];
    size_t count;
} leat_compare_run;

/* Adds a metric, as far as there is room. The first of a name stands: what a program says of itself
 * under the name of what was measured here (leat bench: "max_rss_kib") is left out. */
void leat_compare_add(leat_compare_run *run, const char *name, double value);

/* Runs argv[0] with its arguments (NULL at the end), standard error passed through. with_json:
 * reads standard output as JSON, numbers by their path ("handshake.ns_per_op"), the first
 * LEAT_COMPARE_OUTPUT bytes of it. False after a message: it could not be run, or ended badly.
 * *interrupted: it was, by a signal to this process. */
bool leat_compare_run_once(char *const *argv, bool with_json, leat_compare_run *out,
                           bool *interrupted);

/* Collects the numbers in a JSON text; booleans and strings passed over. A member of an array goes
 * by its "name" if it is an object that begins with one, else by its index. False: not JSON. */
bool leat_compare_numbers(const char *text, size_t len, leat_compare_run *out);

/* Whether more of this metric is better, by its name: rates end in "_per_s", "_s" or "bit_s". */
bool leat_compare_higher_is_better(const char *name);

#endif
