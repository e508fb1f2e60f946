/* tests/cc/svg.c: see svg.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "svg.h"

#include <math.h>

#define WIDTH  800
#define PANEL  170 /* height of a panel with its title */
#define HEAD   36
#define FOOT   40
#define LEFT   64
#define RIGHT  16
#define INSIDE 24 /* title within a panel */
#define TICKS  5

static const char *const colours[LEAT_SVG_LINES] = {"#1f6fb4", "#d9541a", "#2a8f4a", "#8451a8"};

/* 1, 2 or 5 times a power of ten, so that about TICKS of them fit. */
static double nice_step(double range)
{
    double raw = range / TICKS, power = pow(10, floor(log10(raw > 0 ? raw : 1)));
    double f = raw / power;

    return (f <= 1 ? 1 : f <= 2 ? 2 : f <= 5 ? 5 : 10) * power;
}

static double greatest(const leat_svg_chart *chart, const leat_svg_panel *panel)
{
    double most = panel->limit;

    for (size_t l = 0; l < panel->lines; l++) {
        for (size_t i = 0; i < chart->count; i++) {
            most = fmax(most, panel->line[l].y[i]);
        }
    }
    return most > 0 ? most * 1.05 : 1;
}

typedef struct scale {
    double x0, x1, y1; /* data */
    double top, bottom;
} scale;

static double x_at(const scale *s, double x)
{
    return LEFT + (x - s->x0) / (s->x1 - s->x0) * (WIDTH - LEFT - RIGHT);
}

static double y_at(const scale *s, double y)
{
    return s->bottom - y / s->y1 * (s->bottom - s->top);
}

static void grid(FILE *f, const scale *s, const leat_svg_panel *panel)
{
    double step = nice_step(s->y1);

    for (double y = 0; y <= s->y1 * 1.0001; y += step) {
        fprintf(f,
                "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#dddddd\"/>\n"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                LEFT, y_at(s, y), WIDTH - RIGHT, y_at(s, y), LEFT - 6, y_at(s, y) + 4, y);
    }
    if (panel->limit > 0) {
        fprintf(f,
                "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#888888\" "
                "stroke-dasharray=\"6 4\"/>\n",
                LEFT, y_at(s, panel->limit), WIDTH - RIGHT, y_at(s, panel->limit));
    }
}

static void x_axis(FILE *f, const scale *s, double labels_at)
{
    double step = nice_step(s->x1 - s->x0);

    for (double x = ceil(s->x0 / step) * step; x <= s->x1 * 1.0001; x += step) {
        fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%g</text>\n", x_at(s, x),
                labels_at, x);
    }
    fprintf(f, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">seconds</text>\n", WIDTH - RIGHT,
            labels_at + 16);
}

static void lines(FILE *f, const leat_svg_chart *chart, const leat_svg_panel *panel, const scale *s)
{
    double at = WIDTH - RIGHT;

    for (size_t l = panel->lines; l-- > 0;) {
        fprintf(f, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.2\" points=\"",
                colours[l]);
        for (size_t i = 0; i < chart->count; i++) {
            fprintf(f, "%.1f,%.1f ", x_at(s, chart->x[i]),
                    y_at(s, fmin(panel->line[l].y[i], s->y1)));
        }
        fprintf(f, "\"/>\n");
        if (panel->lines > 1) {
            fprintf(f, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\" fill=\"%s\">%s</text>\n",
                    at, s->top - 6, colours[l], panel->line[l].name);
            at -= 90;
        }
    }
}

void leat_svg_write(FILE *f, const leat_svg_chart *chart)
{
    int height = HEAD + (int)chart->panels * PANEL + FOOT;
    scale s = {.x0 = 0, .x1 = chart->count ? chart->x[chart->count - 1] : 1};

    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"11\">\n"
            "<rect width=\"%d\" height=\"%d\" fill=\"#ffffff\"/>\n"
            "<text x=\"%d\" y=\"22\" font-size=\"14\">%s</text>\n",
            WIDTH, height, WIDTH, height, WIDTH, height, LEFT, chart->title);
    for (size_t p = 0; p < chart->panels; p++) {
        const leat_svg_panel *panel = &chart->panel[p];

        s.top = HEAD + (double)p * PANEL + INSIDE;
        s.bottom = HEAD + (double)(p + 1) * PANEL;
        s.y1 = panel->top > 0 ? panel->top : greatest(chart, panel);
        fprintf(f, "<text x=\"%d\" y=\"%.1f\">%s</text>\n", LEFT, s.top - 6, panel->title);
        grid(f, &s, panel);
        lines(f, chart, panel, &s);
    }
    x_axis(f, &s, s.bottom + 16);
    fprintf(f, "</svg>\n");
}
