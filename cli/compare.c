/* cli/compare.c: `leat compare`: runs builds in rotating order and says which is faster, beyond
 * noise.
 *
 * In round r the builds run one after the other, beginning with the r-th; the base stands twice in
 * the rotation, so that its spread against itself is measured under the same conditions.
 *
 * SPDX-License-Identifier: MIT
 */
#include "compare.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli.h"

#define COMPARE_OPTIONS(X)                                                                         \
    X(ROUNDS, "rounds", 'n', "N", "rounds, each build once in each, the base twice (default: 9)")  \
    X(TIME, "time", 't', NULL, "compare run time, processor time and memory alone: any command")   \
    X(METRIC, "metric", 'm', "PATTERN", "show the metrics of such names alone: '*.ns_per_op'")     \
    X(JSON, "json", 'j', NULL, "print the result as JSON")                                         \
    X(SVG, "svg", 0, "FILE", "draw the ratios of all rounds")

enum compare_id {
    LEAT_OPT_COMPARE_FIRST = LEAT_OPT_COMMON_END,
    COMPARE_OPTIONS(LEAT_CLI_OPTION_ENUM) LEAT_OPT_COMPARE_END
};

static const leat_cli_option options[] = {
    COMPARE_OPTIONS(LEAT_CLI_OPTION_ROW){LEAT_OPT_QUIET, "quiet", 'q', NULL, "no progress line"},
    {LEAT_OPT_HELP, "help", 'h', NULL, "print this help"},
};

enum { OPTIONS = sizeof(options) / sizeof(options[0]) };

typedef struct asked {
    uint64_t rounds;
    bool time_only, json, quiet, help;
    const char *svg, *metric;
} asked;

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
    (void)number;
    stop = 1;
}

static void print_help(void)
{
    puts("usage: leat compare [OPTION...] base=PROGRAM NAME=PROGRAM... -- ARGUMENT...\n\n"
         "Runs the programs with the same arguments in rotating order, pairs each run with the\n"
         "base's of the same round, and prints for each metric the median ratio, its interval at\n"
         "95 %, in how many rounds it was better, and whether that is beyond noise. Noise is what\n"
         "the base differs from itself. Metrics are the numbers that a program prints as JSON\n"
         "(leat bench ... --json), and its run time, processor time and memory.\n");
    leat_cli_print_options(options, OPTIONS);
    leat_cli_print_exit_codes();
}

/* ---- arguments ---- */

static bool take_option(asked *ask, int id)
{
    switch (id) {
    case LEAT_OPT_ROUNDS:
        return leat_cli_number("rounds", optarg, 1, LEAT_COMPARE_ROUNDS_MAX, &ask->rounds);
    case LEAT_OPT_TIME:
        ask->time_only = true;
        return true;
    case LEAT_OPT_METRIC:
        ask->metric = optarg;
        return true;
    case LEAT_OPT_JSON:
        ask->json = true;
        return true;
    case LEAT_OPT_SVG:
        ask->svg = optarg;
        return true;
    case LEAT_OPT_QUIET:
        ask->quiet = true;
        return true;
    case LEAT_OPT_HELP:
        ask->help = true;
        return true;
    default:
        return false;
    }
}

/* NAME=PROGRAM. */
static bool take_build(leat_compare *c, char *text)
{
    char *equals = strchr(text, '=');

    if (!equals || equals == text || !equals[1]) {
        leat_cli_error("'%s' is not NAME=PROGRAM", text);
        return false;
    }
    if (c->build_count == LEAT_COMPARE_BUILDS) {
        leat_cli_error("at most %d programs can be compared", LEAT_COMPARE_BUILDS);
        return false;
    }
    *equals = 0;
    for (size_t i = 0; i < c->build_count; i++) {
        if (strcmp(c->builds[i].name, text) == 0) {
            leat_cli_error("two programs are called %s", text);
            return false;
        }
    }
    c->builds[c->build_count++] = (leat_compare_build){.name = text, .path = equals + 1};
    return true;
}

/* The base comes first, wherever it was named. */
static bool base_first(leat_compare *c)
{
    for (size_t i = 0; i < c->build_count; i++) {
        if (strcmp(c->builds[i].name, "base") == 0) {
            leat_compare_build base = c->builds[i];

            memmove(&c->builds[1], &c->builds[0], i * sizeof(base));
            c->builds[0] = base;
            return true;
        }
    }
    leat_cli_error("one program must be called base: base=PROGRAM");
    return false;
}

/* Words up to "--" name programs, those behind it are their arguments. */
static int find_dashes(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--") == 0) {
            return i;
        }
    }
    return argc;
}

static bool parse(int argc, char **argv, asked *ask, leat_compare *c)
{
    leat_cli_parser parser;
    int dashes = find_dashes(argc, argv);
    int id;

    leat_cli_parser_init(&parser, "compare", options, OPTIONS);
    while ((id = leat_cli_option_next(&parser, dashes, argv)) != -1) {
        if (!take_option(ask, id)) {
            return false;
        }
    }
    if (ask->help) {
        return true;
    }
    for (int i = optind; i < dashes; i++) {
        if (!take_build(c, argv[i])) {
            return false;
        }
    }
    if (c->build_count < 2) {
        leat_cli_error(
            "compare wants base=PROGRAM and at least one more (try 'leat compare --help')");
        return false;
    }
    c->rounds = ask->rounds;
    c->pattern = ask->metric;
    c->args = argv + (dashes < argc ? dashes + 1 : argc);
    c->arg_count = dashes < argc ? argc - dashes - 1 : 0;
    return base_first(c);
}

/* ---- running ---- */

static void show_progress(const leat_compare *c, const asked *ask, size_t run)
{
    size_t total = c->rounds * leat_compare_slots(c);

    if (!ask->quiet && isatty(STDERR_FILENO)) {
        fprintf(stderr, "\rrun %zu of %zu", run, total);
        if (run == total) {
            fputs("\r\033[K", stderr);
        }
        fflush(stderr);
    }
}

/* One run of the slot'th in the rotation; false: stop. */
static bool run_slot(leat_compare *c, const asked *ask, size_t round, size_t slot, char **argv,
                     leat_cli_exit *code)
{
    size_t build = slot == c->build_count ? 0 : slot;
    bool interrupted;

    argv[0] = c->builds[build].path;
    if (leat_compare_run_once(argv, !ask->time_only, &c->runs[round * leat_compare_slots(c) + slot],
                              &interrupted)) {
        return true;
    }
    *code = interrupted || stop ? LEAT_EXIT_INTERRUPTED : LEAT_EXIT_FAILURE;
    return false;
}

static leat_cli_exit run_all(leat_compare *c, const asked *ask)
{
    size_t slots = leat_compare_slots(c), runs = 0;
    char **argv = calloc((size_t)c->arg_count + 2, sizeof(*argv));
    leat_cli_exit code = LEAT_EXIT_OK;

    c->runs = calloc(c->rounds * slots, sizeof(*c->runs));
    if (!argv || !c->runs) {
        leat_cli_error("out of memory");
        free(argv);
        return LEAT_EXIT_FAILURE;
    }
    for (int i = 0; i < c->arg_count; i++) {
        argv[i + 1] = c->args[i];
    }
    for (size_t round = 0; round < c->rounds; round++) {
        for (size_t i = 0; i < slots; i++) {
            if (stop || !run_slot(c, ask, round, (round + i) % slots, argv, &code)) {
                free(argv);
                return stop ? LEAT_EXIT_INTERRUPTED : code;
            }
            show_progress(c, ask, ++runs);
        }
        c->done = round + 1;
    }
    free(argv);
    return code;
}

/* ---- results ---- */

static const leat_compare_run *run_at(const leat_compare *c, size_t round, size_t slot)
{
    return &c->runs[round * leat_compare_slots(c) + slot];
}

size_t leat_compare_metric_count(const leat_compare *c)
{
    return c->done > 0 ? run_at(c, 0, 0)->count : 0;
}

const char *leat_compare_metric_name(const leat_compare *c, size_t metric)
{
    return run_at(c, 0, 0)->metrics[metric].name;
}

static double value_of(const leat_compare_run *run, const char *name)
{
    for (size_t i = 0; i < run->count; i++) {
        if (strcmp(run->metrics[i].name, name) == 0) {
            return run->metrics[i].value;
        }
    }
    return NAN;
}

bool leat_compare_shows(const leat_compare *c, size_t metric)
{
    return !c->pattern || fnmatch(c->pattern, leat_compare_metric_name(c, metric), 0) == 0;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double leat_compare_value_of(const leat_compare *c, size_t slot, size_t metric)
{
    double values[LEAT_COMPARE_ROUNDS_MAX];
    size_t n = 0;

    for (size_t round = 0; round < c->done; round++) {
        double v = value_of(run_at(c, round, slot), leat_compare_metric_name(c, metric));

        if (!isnan(v)) {
            values[n++] = v;
        }
    }
    if (n == 0) {
        return NAN;
    }
    qsort(values, n, sizeof(values[0]), by_value);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

/* The same on both sides is 1, also when it is 0: allocation counts are. */
static double ratio(double value, double base)
{
    return value == base ? 1 : value / base;
}

static void ratios_of(const leat_compare *c, size_t slot, const char *name, double *out)
{
    for (size_t round = 0; round < c->done; round++) {
        out[round] =
            ratio(value_of(run_at(c, round, slot), name), value_of(run_at(c, round, 0), name));
    }
}

void leat_compare_result_of(const leat_compare *c, size_t build, size_t metric, double *ratios,
                            leat_compare_result *out)
{
    const char *name = leat_compare_metric_name(c, metric);
    double own[LEAT_COMPARE_ROUNDS_MAX], again[LEAT_COMPARE_ROUNDS_MAX];

    ratios_of(c, build, name, own);
    ratios_of(c, c->build_count, name, again);
    if (ratios) {
        memcpy(ratios, own, c->done * sizeof(*ratios));
    }
    leat_compare_judge(own, c->done, again, c->done, leat_compare_higher_is_better(name), out);
}

static leat_cli_exit report(const leat_compare *c, const asked *ask)
{
    FILE *svg;

    if (ask->json) {
        leat_compare_print_json(c, stdout);
    } else {
        leat_compare_print_table(c, stdout);
    }
    if (!ask->svg) {
        return LEAT_EXIT_OK;
    }
    svg = fopen(ask->svg, "w");
    if (!svg) {
        leat_cli_error("cannot write %s: %s", ask->svg, strerror(errno));
        return LEAT_EXIT_FILE;
    }
    leat_compare_print_svg(c, svg);
    if (fclose(svg) != 0) {
        leat_cli_error("cannot write %s: %s", ask->svg, strerror(errno));
        return LEAT_EXIT_FILE;
    }
    return LEAT_EXIT_OK;
}

int leat_cli_compare(int argc, char **argv)
{
    asked ask = {.rounds = 9};
    leat_compare c = {.done = 0};
    leat_cli_exit code, told;

    if (!parse(argc, argv, &ask, &c)) {
        return LEAT_EXIT_USAGE;
    }
    if (ask.help) {
        print_help();
        return LEAT_EXIT_OK;
    }
    leat_cli_catch_signals(on_signal);
    code = run_all(&c, &ask);
    if (code == LEAT_EXIT_OK || code == LEAT_EXIT_INTERRUPTED) {
        told = report(&c, &ask); /* an interrupted run tells what it has */
        code = code == LEAT_EXIT_OK ? told : code;
    }
    free(c.runs);
    return code;
}
