/* tests/cc/svg.h: a small writer of line charts as SVG: panels one above the other, with a common x
 * axis in seconds.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_CC_SVG_H
#define LEAT_TESTS_CC_SVG_H

#include <stddef.h>
#include <stdio.h>

#define LEAT_SVG_LINES  4
#define LEAT_SVG_PANELS 4

typedef struct leat_svg_line {
    const char *name;
    double *y; /* one for each x of the chart */
} leat_svg_line;

typedef struct leat_svg_panel {
    const char *title; /* what y is, with its unit */
    double top;        /* of the y axis; 0: as the data have it */
    double limit;      /* a dashed line there; 0: none */
    leat_svg_line line[LEAT_SVG_LINES];
    size_t lines;
} leat_svg_panel;

typedef struct leat_svg_chart {
    const char *title;
    const double *x;
    size_t count;
    leat_svg_panel panel[LEAT_SVG_PANELS];
    size_t panels;
} leat_svg_chart;

void leat_svg_write(FILE *file, const leat_svg_chart *chart);

#endif
