/* cli/rtp_plot.c: `leat rtp plot`: rate, estimate, delay and loss over time, as an SVG, from the
 * JSON lines of `leat rtp send` or `recv`.
 *
 * Each line is looked through for the numbers by their names; lines of other events mark the time
 * axis. The lines are these commands' own, flat and in a known order, so this is no JSON reader.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rtp.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define PLOT_OPTIONS(X)                                                                            \
    X(OUTPUT, "output", 'o', "FILE", "write the SVG there (default: standard output)")             \
    X(TITLE, "title", 't', "TEXT", "what stands above (default: the log's name)")                  \
    X(HELP, "help", 'h', NULL, "print this help")

enum plot_id {
    OPT_FIRST = 256,
#define OPTION_ENUM(id, name, letter, arg, help) OPT_##id,
    PLOT_OPTIONS(OPTION_ENUM)
#undef OPTION_ENUM
};

static const leat_cli_option options[] = {
#define OPTION_ROW(id, name, letter, arg, help) {OPT_##id, name, letter, arg, help},
    PLOT_OPTIONS(OPTION_ROW)
#undef OPTION_ROW
};

enum {
    LINE_MOST = 65536,
    WIDTH = 900,
    LEFT = 70,
    RIGHT = 150,
    PANEL = 190, /* with its gap */
    INNER = 140,
    TOP = 50
};

static const double MOST = 1e15; /* no number of a log is larger */

/* One interval. NAN: not known. */
typedef struct point {
    double time, rate, estimate, rtt, jitter, queue, loss;
} point;

typedef struct mark {
    double time;
    char what[24];
} mark;

typedef struct plot {
    point *points;
    size_t count, cap;
    mark marks[64];
    size_t mark_count;
    double from, to; /* seconds */
} plot;

/* ---- reading ---- */

/* The number behind "name": in a line; NAN when there is none. */
static double number(const char *line, const char *name)
{
    char key[32];
    const char *at;
    char *end;
    double value;

    snprintf(key, sizeof key, "\"%s\":", name);
    at = strstr(line, key);
    if (!at) {
        return NAN;
    }
    at += strlen(key);
    value = strtod(at, &end);
    return end == at || !(fabs(value) < MOST) ? NAN : value;
}

static void read_event(const char *line, char out[24])
{
    const char *at = strstr(line, "\"event\":\"");
    size_t n = 0;

    if (at) {
        at += strlen("\"event\":\"");
        while (n < 23 && at[n] && at[n] != '"') {
            out[n] = at[n];
            n++;
        }
    }
    out[n] = 0;
}

static bool add_point(plot *p, const point *new)
{
    if (p->count == p->cap) {
        size_t cap = p->cap ? 2 * p->cap : 1024;
        point *points = realloc(p->points, cap * sizeof *points);

        if (!points) {
            leat_cli_error("out of memory");
            return false;
        }
        p->points = points;
        p->cap = cap;
    }
    p->points[p->count++] = *new;
    return true;
}

/* A log that several runs were appended to goes on where the one before ended. */
static bool read_line(plot *p, const char *line, double *base)
{
    char event[24];
    point new = {.time = number(line, "time")};

    read_event(line, event);
    if (line[0] != '{' || event[0] == 0 || isnan(new.time)) {
        return false;
    }
    if (p->count > 0 && new.time + *base < p->to) {
        *base = p->to;
    }
    new.time += *base;
    p->to = new.time > p->to ? new.time : p->to;
    if (strcmp(event, "stats") != 0) {
        if (strcmp(event, "end") != 0 && p->mark_count < sizeof p->marks / sizeof p->marks[0]) {
            mark *m = &p->marks[p->mark_count++];

            m->time = new.time;
            memcpy(m->what, event, sizeof m->what);
        }
        return true;
    }
    new.rate = number(line, "rate") / 1e6;
    new.estimate = number(line, "estimate") / 1e6;
    new.rtt = number(line, "rtt");
    new.jitter = number(line, "jitter");
    new.queue = number(line, "queue_delay");
    new.loss = number(line, "loss") * 100;
    return add_point(p, &new);
}

static leat_cli_exit read_log(plot *p, const char *path)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "re");
    leat_cli_exit exit_code = LEAT_EXIT_OK;
    static char line[LINE_MOST];
    unsigned long at = 0;
    double base = 0;

    if (!file) {
        leat_cli_error("cannot read %s: %s", path, strerror(errno));
        return LEAT_EXIT_FILE;
    }
    while (exit_code == LEAT_EXIT_OK && fgets(line, sizeof line, file)) {
        at++;
        if (line[strspn(line, " \t\r\n")] && !read_line(p, line, &base)) {
            leat_cli_error("%s, line %lu: no statistics of leat rtp send or recv", path, at);
            exit_code = LEAT_EXIT_FILE;
        }
    }
    if (exit_code == LEAT_EXIT_OK && ferror(file)) {
        leat_cli_error("cannot read %s: %s", path, strerror(errno));
        exit_code = LEAT_EXIT_FILE;
    }
    if (!standard) {
        fclose(file);
    }
    if (exit_code == LEAT_EXIT_OK && p->count < 2) {
        leat_cli_error("%s: fewer than two intervals: nothing to draw", path);
        exit_code = LEAT_EXIT_FILE;
    }
    return exit_code;
}

/* ---- drawing ---- */

typedef struct series {
    const char *name, *colour;
    size_t member; /* offset in point */
} series;

typedef struct chart {
    const char *title;
    series lines[3];
    size_t count;
    double least_top; /* of the axis */
} chart;

static const chart charts[] = {
    {"rate, Mbit/s",
     {{"rate", "#1f77b4", offsetof(point, rate)},
      {"estimate", "#ff7f0e", offsetof(point, estimate)}},
     2,
     0.1},
    {"delay, ms",
     {{"RTT", "#2ca02c", offsetof(point, rtt)},
      {"jitter", "#9467bd", offsetof(point, jitter)},
      {"queue", "#8c564b", offsetof(point, queue)}},
     3,
     10},
    {"loss, %", {{"loss", "#d62728", offsetof(point, loss)}}, 1, 1},
};

enum { CHARTS = sizeof charts / sizeof charts[0] };

static double value_of(const point *p, const series *s)
{
    double value;

    memcpy(&value, (const char *)p + s->member, sizeof value);
    return value;
}

/* 1, 2 or 5 times a power of ten. */
static double round_up(double value)
{
    double power = pow(10, floor(log10(value)));
    double digit = value / power;

    return power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
}

static double top_of(const plot *p, const chart *c)
{
    double top = c->least_top;

    for (size_t i = 0; i < p->count; i++) {
        for (size_t k = 0; k < c->count; k++) {
            double value = value_of(&p->points[i], &c->lines[k]);

            top = value > top ? value : top; /* false for NAN */
        }
    }
    return round_up(top);
}

static double x_of(const plot *p, double time)
{
    double span = p->to > p->from ? p->to - p->from : 1;

    return LEFT + (time - p->from) / span * (WIDTH - LEFT - RIGHT);
}

static void draw_line(FILE *f, const plot *p, const series *s, double y0, double top)
{
    bool open = false;

    for (size_t i = 0; i < p->count; i++) {
        double value = value_of(&p->points[i], s);

        if (isnan(value)) {
            if (open) {
                fputs("\"/>\n", f);
            }
            open = false;
            continue;
        }
        if (!open) {
            fprintf(f, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"",
                    s->colour);
        }
        open = true;
        fprintf(f, "%.1f,%.1f ", x_of(p, p->points[i].time), y0 + INNER - value / top * INNER);
    }
    if (open) {
        fputs("\"/>\n", f);
    }
}

static void draw_chart(FILE *f, const plot *p, const chart *c, double y0)
{
    double top = top_of(p, c);

    fprintf(f, "<text x=\"%d\" y=\"%.0f\" font-weight=\"bold\">%s</text>\n", LEFT, y0 - 8,
            c->title);
    for (int i = 0; i <= 4; i++) {
        double y = y0 + INNER - i * INNER / 4.0;

        fprintf(f,
                "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n",
                LEFT, WIDTH - RIGHT, y, y, LEFT - 6, y + 4, top * i / 4);
    }
    for (size_t i = 0; i < p->mark_count; i++) {
        fprintf(f,
                "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.0f\" stroke=\"#999\" "
                "stroke-dasharray=\"3,3\"><title>%s</title></line>\n",
                x_of(p, p->marks[i].time), x_of(p, p->marks[i].time), y0, y0 + INNER,
                p->marks[i].what);
    }
    for (size_t k = 0; k < c->count; k++) {
        draw_line(f, p, &c->lines[k], y0, top);
        fprintf(f, "<text x=\"%d\" y=\"%.0f\" fill=\"%s\">%s</text>\n", WIDTH - RIGHT + 10,
                y0 + 14 + 18.0 * (double)k, c->lines[k].colour, c->lines[k].name);
    }
}

static void draw_text(FILE *f, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '<':
            fputs("&lt;", f);
            break;
        case '&':
            fputs("&amp;", f);
            break;
        default:
            fputc((unsigned char)*text < ' ' ? '?' : *text, f);
            break;
        }
    }
}

static void draw(FILE *f, const plot *p, const char *title)
{
    int height = TOP + CHARTS * PANEL + 20;

    fprintf(f,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<text x=\"%d\" y=\"22\" "
            "font-size=\"15\">",
            WIDTH, height, WIDTH, height, LEFT);
    draw_text(f, title);
    fputs("</text>\n", f);
    for (int i = 0; i < CHARTS; i++) {
        draw_chart(f, p, &charts[i], TOP + 10 + i * PANEL);
    }
    for (int i = 0; i <= 5; i++) {
        double time = p->from + (p->to - p->from) * i / 5;

        fprintf(f, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.1f s</text>\n",
                x_of(p, time), height - 25, time);
    }
    fputs("</svg>\n", f);
}

/* ---- the command ---- */

static leat_cli_exit write_svg(const plot *p, const char *path, const char *title)
{
    bool standard = !path || strcmp(path, "-") == 0;
    FILE *file = standard ? stdout : fopen(path, "we");
    bool good;

    if (file) {
        draw(file, p, title);
        good = !ferror(file);
        good = (standard ? fflush(file) : fclose(file)) == 0 && good;
        if (good) {
            return LEAT_EXIT_OK;
        }
    }
    leat_cli_error("cannot write %s: %s", standard ? "standard output" : path, strerror(errno));
    return LEAT_EXIT_FILE;
}

static void print_help(void)
{
    puts("usage: leat rtp plot [OPTION...] LOG|-\n\n"
         "Draws the statistics that leat rtp send or recv wrote (standard output, or --log\n"
         "FILE) as an SVG: rate and estimate, RTT, jitter and queue, loss, over time.\n");
    leat_cli_print_options(options, sizeof options / sizeof options[0]);
    leat_cli_print_exit_codes();
}

int leat_cli_rtp_plot(int argc, char **argv)
{
    plot p = {.points = NULL};
    const char *output = NULL, *title = NULL;
    leat_cli_exit exit_code;
    leat_cli_parser parser;
    int id;

    leat_cli_parser_init(&parser, "rtp plot", options, sizeof options / sizeof options[0]);
    while ((id = leat_cli_option_next(&parser, argc, argv)) != -1) {
        switch (id) {
        case OPT_OUTPUT:
            output = optarg;
            break;
        case OPT_TITLE:
            title = optarg;
            break;
        case OPT_HELP:
            print_help();
            return LEAT_EXIT_OK;
        default:
            return LEAT_EXIT_USAGE;
        }
    }
    if (argc - optind != 1) {
        leat_cli_error("one log is wanted (try 'leat rtp plot --help')");
        return LEAT_EXIT_USAGE;
    }
    exit_code = read_log(&p, argv[optind]);
    if (exit_code == LEAT_EXIT_OK) {
        p.from = p.points[0].time < p.from ? p.points[0].time : p.from;
        exit_code = write_svg(&p, output, title ? title : argv[optind]);
    }
    free(p.points);
    return exit_code;
}
