/* cli/compare_report.c: the result of `leat compare` as a table, as JSON and as a picture.
 *
 * SPDX-License-Identifier: MIT
 */
#include "compare.h"

#include <math.h>
#include <string.h>

/* ---- table ---- */

static void print_row(const leat_compare *c, size_t build, size_t metric, int width, FILE *to)
{
    leat_compare_result r;

    leat_compare_result_of(c, build, metric, NULL, &r);
    fprintf(to, "%-14s %-*s", c->builds[build].name, width, leat_compare_metric_name(c, metric));
    if (r.rounds == 0) {
        fprintf(to, " not measured\n");
        return;
    }
    fprintf(to, " %10.5g %10.5g", leat_compare_value_of(c, 0, metric),
            leat_compare_value_of(c, build, metric));
    fprintf(to, " %8.4f", r.median);
    if (r.coverage == 0) {
        fprintf(to, "  %zu rounds: too few for a verdict (%d at least)\n", r.rounds,
                LEAT_COMPARE_ROUNDS_MIN);
        return;
    }
    fprintf(to, "  [%.4f, %.4f]  %3zu/%-3zu  %6.2f %%  %s\n", r.low, r.high, r.better, r.rounds,
            100 * r.noise, leat_compare_verdict_text(r.verdict));
}

/* Columns that the longest name of a metric needs. */
static int name_width(const leat_compare *c)
{
    size_t width = strlen("metric");

    for (size_t m = 0; m < leat_compare_metric_count(c); m++) {
        size_t len = leat_compare_shows(c, m) ? strlen(leat_compare_metric_name(c, m)) : 0;

        width = len > width ? len : width;
    }
    return (int)width;
}

void leat_compare_print_table(const leat_compare *c, FILE *to)
{
    size_t metrics = leat_compare_metric_count(c);
    int width = name_width(c);

    fprintf(to, "%zu of %zu rounds; ratios to %s\n", c->done, c->rounds, c->builds[0].path);
    fprintf(to, "%-14s %-*s %10s %10s %8s  %-18s  %-7s  %8s  %s\n", "build", width, "metric",
            "base", "build", "ratio", "interval, 95 %", "better", "noise", "verdict");
    for (size_t m = 0; m < metrics; m++) {
        for (size_t b = 1; b < c->build_count && leat_compare_shows(c, m); b++) {
            print_row(c, b, m, width, to);
        }
    }
}

/* ---- JSON ---- */

static void print_string(const char *s, FILE *to)
{
    fputc('"', to);
    for (; *s; s++) {
        unsigned char ch = (unsigned char)*s;

        if (ch == '"' || ch == '\\') {
            fprintf(to, "\\%c", ch);
        } else if (ch < 0x20) {
            fprintf(to, "\\u%04x", ch);
        } else {
            fputc(ch, to);
        }
    }
    fputc('"', to);
}

/* JSON has no infinity. */
static void print_double(double v, FILE *to)
{
    if (isfinite(v)) {
        fprintf(to, "%.9g", v);
    } else {
        fputs("null", to);
    }
}

static void print_result(const leat_compare *c, size_t build, size_t metric, FILE *to)
{
    double ratios[LEAT_COMPARE_ROUNDS_MAX];
    leat_compare_result r;

    leat_compare_result_of(c, build, metric, ratios, &r);
    fputs("{\"build\": ", to);
    print_string(c->builds[build].name, to);
    fputs(", \"metric\": ", to);
    print_string(leat_compare_metric_name(c, metric), to);
    fputs(", \"base_value\": ", to);
    print_double(leat_compare_value_of(c, 0, metric), to);
    fputs(", \"value\": ", to);
    print_double(leat_compare_value_of(c, build, metric), to);
    fprintf(to, ", \"rounds\": %zu, \"better\": %zu, \"median\": ", r.rounds, r.better);
    print_double(r.median, to);
    fputs(", \"low\": ", to);
    print_double(r.low, to);
    fputs(", \"high\": ", to);
    print_double(r.high, to);
    fprintf(to, ", \"coverage\": %.4f, \"noise\": ", r.coverage);
    print_double(r.noise, to);
    fputs(", \"verdict\": ", to);
    print_string(r.coverage > 0 ? leat_compare_verdict_text(r.verdict) : "too few rounds", to);
    fputs(", \"ratios\": [", to);
    for (size_t i = 0; i < c->done; i++) {
        fputs(i ? ", " : "", to);
        print_double(ratios[i], to);
    }
    fputs("]}", to);
}

void leat_compare_print_json(const leat_compare *c, FILE *to)
{
    size_t metrics = leat_compare_metric_count(c);
    const char *comma = "";

    fprintf(to, "{\"rounds\": %zu, \"rounds_done\": %zu, \"base\": ", c->rounds, c->done);
    print_string(c->builds[0].path, to);
    fputs(", \"results\": [", to);
    for (size_t m = 0; m < metrics; m++) {
        for (size_t b = 1; b < c->build_count && leat_compare_shows(c, m); b++) {
            fprintf(to, "%s\n  ", comma);
            print_result(c, b, m, to);
            comma = ",";
        }
    }
    fputs("\n]}\n", to);
}

/* ---- picture ---- */

enum { WIDTH = 900, LEFT = 430, RIGHT = 40, ROW = 26, TOP = 50 };

/* Where a ratio lies: 1 in the middle, the furthest at the edge, and there those of or to 0 too. */
static double x_of(double ratio, double reach)
{
    double at = fmax(-1, fmin(1, log(ratio) / reach));

    return LEFT + (WIDTH - LEFT - RIGHT) * (0.5 + 0.5 * at);
}

static double reach_of(const leat_compare *c)
{
    double reach = log(1.02), ratios[LEAT_COMPARE_ROUNDS_MAX];
    leat_compare_result r;

    for (size_t m = 0; m < leat_compare_metric_count(c); m++) {
        for (size_t b = 1; b < c->build_count && leat_compare_shows(c, m); b++) {
            leat_compare_result_of(c, b, m, ratios, &r);
            for (size_t i = 0; i < c->done; i++) {
                if (isfinite(ratios[i]) && ratios[i] > 0) {
                    reach = fmax(reach, fabs(log(ratios[i])));
                }
            }
        }
    }
    return reach;
}

static void draw_text(double x, double y, const char *anchor, const char *text, FILE *to)
{
    fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    for (; *text; text++) {
        if (*text == '<' || *text == '&') {
            fputs(*text == '<' ? "&lt;" : "&amp;", to);
        } else {
            fputc(*text, to);
        }
    }
    fputs("</text>\n", to);
}

static void draw_row(const leat_compare *c, size_t build, size_t metric, double y, double reach,
                     FILE *to)
{
    static const char *const colours[] = {"#777", "#1a7f37", "#c0392b"};
    double ratios[LEAT_COMPARE_ROUNDS_MAX];
    leat_compare_result r;
    char label[160];

    leat_compare_result_of(c, build, metric, ratios, &r);
    snprintf(label, sizeof(label), "%s %s", c->builds[build].name,
             leat_compare_metric_name(c, metric));
    draw_text(LEFT - 10, y + 4, "end", label, to);
    if (r.coverage > 0) {
        fprintf(to,
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"%s\" "
                "stroke-width=\"3\"/>\n",
                x_of(r.low, reach), x_of(r.high, reach), y, y, colours[r.verdict]);
    }
    for (size_t i = 0; i < c->done; i++) {
        if (isfinite(ratios[i]) && ratios[i] > 0) {
            fprintf(to,
                    "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\" fill-opacity=\"0.5\"/>\n",
                    x_of(ratios[i], reach), y, colours[r.verdict]);
        }
    }
}

void leat_compare_print_svg(const leat_compare *c, FILE *to)
{
    size_t metrics = leat_compare_metric_count(c), rows = 0;
    double reach = reach_of(c), y = TOP;
    char text[64];

    for (size_t m = 0; m < metrics; m++) {
        rows += leat_compare_shows(c, m) ? c->build_count - 1 : 0;
    }
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, TOP + rows * ROW + 20);
    snprintf(text, sizeof(text), "ratio to the base, %zu rounds", c->done);
    draw_text(LEFT + (WIDTH - LEFT - RIGHT) / 2.0, 18, "middle", text, to);
    for (int i = -1; i <= 1; i++) {
        double x = x_of(exp(i * reach), reach);

        snprintf(text, sizeof(text), "%.3f", exp(i * reach));
        draw_text(x, 36, "middle", text, to);
        fprintf(to, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"40\" y2=\"%zu\" stroke=\"#ccc\"/>\n", x, x,
                TOP + rows * ROW);
    }
    for (size_t m = 0; m < metrics; m++) {
        for (size_t b = 1; b < c->build_count && leat_compare_shows(c, m); b++) {
            draw_row(c, b, m, y, reach, to);
            y += ROW;
        }
    }
    fputs("</svg>\n", to);
}
