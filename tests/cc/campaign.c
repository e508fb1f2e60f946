/* tests/cc/campaign.c: all experiments of docs/CONGESTION.md: the record as Markdown on stdout, the
 * plots as SVG into a folder. Fails when a result is not what issue 5 asks for.
 *
 *     leat-cc-campaign FOLDER [alone|loss|two|grid]
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/time.h"
#include "lab.h"
#include "svg.h"

#define SAMPLES 4000

static const leat_congestion all[] = {LEAT_CONGESTION_CUBIC, LEAT_CONGESTION_NEWRENO,
                                      LEAT_CONGESTION_BBR};
enum { ALL = sizeof(all) / sizeof(all[0]) };

static const char *folder;
static unsigned misses;

/* ---- samples ---- */

typedef struct tape {
    double x[SAMPLES];
    double goodput[LEAT_LAB_FLOWS][SAMPLES];
    double cwnd[LEAT_LAB_FLOWS][SAMPLES];
    double queue[SAMPLES];
    size_t count;
    double rate;
} tape;

static tape tapes[ALL];

static void record(void *user, const leat_lab_sample *s)
{
    tape *t = user;

    if (t->count == SAMPLES) {
        return;
    }
    t->x[t->count] = (double)s->at / 1e9;
    t->queue[t->count] = s->queue * 8 / t->rate * 1e3;
    for (size_t i = 0; i < LEAT_LAB_FLOWS; i++) {
        t->goodput[i][t->count] = s->flow[i].goodput / 1e6;
        t->cwnd[i][t->count] = (double)s->flow[i].cwnd / 1e3;
    }
    t->count++;
}

static void run(leat_lab *lab, tape *t, leat_lab_result *result)
{
    if (t) {
        t->count = 0;
        t->rate = (double)lab->rate;
        lab->sample = record;
        lab->user = t;
    }
    leat_lab_run(lab, result);
    fprintf(stderr, ".");
}

static void write_chart(const char *name, const leat_svg_chart *chart)
{
    char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s.svg", folder, name);
    file = fopen(path, "w");
    if (!file) {
        perror(path);
        exit(1);
    }
    leat_svg_write(file, chart);
    fclose(file);
}

/* A mark for the tables. */
static const char *judge(bool good)
{
    misses += !good;
    return good ? "" : " **miss**";
}

/* ---- one flow ---- */

static void grid(void)
{
    static const unsigned rates[] = {10, 100, 1000}, rtts[] = {1, 30, 300};

    printf("### One flow, a queue of one BDP\n\n"
           "Goodput in percent of the rate, from 10 to 30 s; in brackets the mean queue in percent "
           "of its\nlimit. At least 90 is asked for.\n\n"
           "| rate, RTT | cubic | newreno | bbr |\n| --- | --- | --- | --- |\n");
    for (size_t r = 0; r < 3; r++) {
        for (size_t t = 0; t < 3; t++) {
            printf("| %u Mbit/s, %u ms |", rates[r], rtts[t]);
            for (size_t c = 0; c < ALL; c++) {
                leat_lab_result result;
                leat_lab lab;

                leat_lab_init(&lab);
                lab.rate = rates[r] * UINT64_C(1000000);
                lab.rtt = rtts[t] * LEAT_MILLISECOND;
                lab.flow[0].congestion = all[c];
                run(&lab, NULL, &result);
                printf(" %.1f (%.0f)%s |", result.share * 100,
                       result.queue / (double)result.queue_limit * 100, judge(result.share >= 0.9));
                fflush(stdout);
            }
            printf("\n");
        }
    }
    printf("\n");
}

static void one_flow(leat_congestion congestion, const char *title)
{
    tape *t = &tapes[0];
    leat_lab_result result;
    leat_svg_chart chart = {.title = title, .x = t->x, .panels = 3};
    leat_lab lab;

    leat_lab_init(&lab);
    lab.flow[0].congestion = congestion;
    run(&lab, t, &result);
    chart.count = t->count;
    chart.panel[0] = (leat_svg_panel){"goodput, Mbit/s", 110, 100, {{"", t->goodput[0]}}, 1};
    chart.panel[1] = (leat_svg_panel){"window, kB", 0, 500, {{"", t->cwnd[0]}}, 1};
    chart.panel[2] = (leat_svg_panel){"queue, ms", 44, 40, {{"", t->queue}}, 1};
    write_chart(leat_congestion_name(congestion), &chart);
}

/* ---- two flows ---- */

typedef struct path {
    unsigned rate, rtt; /* Mbit/s, ms */
    unsigned end;       /* s */
    unsigned runs;      /* of two CUBIC flows: each with another beginning */
} path;

/* What the first of two has of both, in percent, when the second begins 5 s later, and some for
 * each run. */
static double two(leat_congestion a, leat_congestion b, const path *p, unsigned run_no, tape *t)
{
    leat_lab_result result;
    leat_lab lab;

    leat_lab_init(&lab);
    lab.rate = p->rate * UINT64_C(1000000);
    lab.rtt = p->rtt * LEAT_MILLISECOND;
    lab.jitter = 200 * LEAT_MICROSECOND;
    lab.seed = 1 + run_no;
    lab.flows = 2;
    lab.flow[0].congestion = a;
    lab.flow[1].congestion = b;
    lab.flow[1].start = 5 * LEAT_SECOND + run_no * 37 * LEAT_MILLISECOND;
    lab.warm = 60 * LEAT_SECOND;
    lab.end = p->end * LEAT_SECOND;
    run(&lab, t, &result);
    return result.flow[0].goodput / (result.flow[0].goodput + result.flow[1].goodput) * 100;
}

/* All runs of two CUBIC flows on a path; the first is taped. */
static void two_cubic(const path *p, tape *t)
{
    double least = 100, most = 0, sum = 0;

    for (unsigned i = 0; i < p->runs; i++) {
        double share = two(all[0], all[0], p, i, i == 0 ? t : NULL);

        sum += share;
        least = share < least ? share : least;
        most = share > most ? share : most;
    }
    if (p->runs == 1) {
        printf(" %.1f%s |", sum, judge(least >= 45 && most <= 55));
    } else {
        printf(" %.1f (%.1f to %.1f)%s |", sum / p->runs, least, most,
               judge(least >= 45 && most <= 55));
    }
}

static void fairness(void)
{
    /* On the last a stage of the cubic takes ten seconds, so it needs a longer look for as many
     * losses. */
    static const path paths[] = {{10, 40, 360, 8},
                                 {20, 20, 360, 8},
                                 {50, 20, 360, 8},
                                 {100, 10, 360, 8},
                                 {100, 40, 1500, 1}};
    tape *t = &tapes[0];
    leat_svg_chart chart = {.title = "Two CUBIC flows, 100 Mbit/s, 40 ms, the second from 5 s on",
                            .x = t->x,
                            .panels = 2};

    printf(
        "### Two flows, a queue of one BDP\n\n"
        "What the first has of both, in percent, from 60 to 360 s (on the last path to 1500 s). "
        "The second\nbegins at 5 s; of CUBIC with CUBIC the mean of eight beginnings, 37 ms apart, "
        "and the least and\nmost of them (on the last path one). For these 45 to 55 is asked for: "
        "each within 10 %% of its\nhalf. The others are for information. ACKs come up to 200 us "
        "late.\n\n"
        "| path | cubic, cubic | newreno, newreno | bbr, bbr | cubic, newreno | cubic, bbr |\n"
        "| --- | --- | --- | --- | --- | --- |\n");
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        const path *p = &paths[i];

        printf("| %u Mbit/s, %u ms |", p->rate, p->rtt);
        two_cubic(p, t);
        chart.count = t->count;
        if (p->rate == 100 && p->rtt == 40) {
            chart.panel[0] = (leat_svg_panel){"goodput, Mbit/s",
                                              110,
                                              50,
                                              {{"first", t->goodput[0]}, {"second", t->goodput[1]}},
                                              2};
            chart.panel[1] = (leat_svg_panel){
                "window, kB", 0, 0, {{"first", t->cwnd[0]}, {"second", t->cwnd[1]}}, 2};
            write_chart("two-cubic", &chart);
        }
        if (p->rate == 100) {
            printf(" | | | |\n"); /* for information, and dear */
            fflush(stdout);
            continue;
        }
        printf(" %.1f |", two(all[1], all[1], p, 0, NULL));
        printf(" %.1f |", two(all[2], all[2], p, 0, NULL));
        printf(" %.1f |", two(all[0], all[1], p, 0, NULL));
        printf(" %.1f |\n", two(all[0], all[2], p, 0, NULL));
        fflush(stdout);
    }
    printf("\n");
}

/* ---- random loss ---- */

static void lossy_path(unsigned rate, unsigned rtt)
{
    double share[ALL] = {0};

    for (size_t c = 0; c < ALL; c++) {
        for (unsigned seed = 1; seed <= 3; seed++) {
            leat_lab_result result;
            leat_lab lab;

            leat_lab_init(&lab);
            lab.rate = rate * UINT64_C(1000000);
            lab.rtt = rtt * LEAT_MILLISECOND;
            lab.loss = 10000;
            lab.end = 40 * LEAT_SECOND;
            lab.seed = seed;
            lab.flow[0].congestion = all[c];
            run(&lab, &tapes[c], &result);
            share[c] += result.share * 100 / 3;
        }
    }
    printf("| %u Mbit/s, %u ms | %.1f%s | %.1f | %.1f%s |\n", rate, rtt, share[0],
           judge(share[0] < 80), share[1], share[2], judge(share[2] >= 80));
    fflush(stdout);
}

static void random_loss(void)
{
    leat_svg_chart chart = {
        .title = "1 % random loss, 100 Mbit/s, 40 ms", .x = tapes[0].x, .panels = 1};

    printf(
        "### 1 %% random loss\n\n"
        "Goodput in percent of the rate, from 10 to 40 s, mean of three seeds. BBR is to keep at "
        "least 80,\nwhich CUBIC does not.\n\n"
        "| rate, RTT | cubic | newreno | bbr |\n| --- | --- | --- | --- |\n");
    lossy_path(10, 40);
    lossy_path(20, 100);
    lossy_path(100, 10);
    lossy_path(100, 100);
    lossy_path(100, 40);
    printf("\n");
    chart.count = tapes[0].count;
    chart.panel[0] =
        (leat_svg_panel){.title = "goodput, Mbit/s", .top = 110, .limit = 100, .lines = 3};
    for (size_t c = 0; c < ALL; c++) {
        chart.panel[0].line[c] = (leat_svg_line){leat_congestion_name(all[c]), tapes[c].goodput[0]};
    }
    write_chart("random-loss", &chart);
}

static bool wanted(int argc, char **argv, const char *part)
{
    return argc == 2 || strcmp(argv[2], part) == 0;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fputs("usage: leat-cc-campaign FOLDER [alone|loss|two|grid]\n", stderr);
        return 2;
    }
    folder = argv[1];
    if (wanted(argc, argv, "alone")) {
        one_flow(LEAT_CONGESTION_CUBIC, "CUBIC, 100 Mbit/s, 40 ms, a queue of one BDP");
        one_flow(LEAT_CONGESTION_NEWRENO, "NewReno, 100 Mbit/s, 40 ms, a queue of one BDP");
        one_flow(LEAT_CONGESTION_BBR, "BBRv3, 100 Mbit/s, 40 ms, a queue of one BDP");
    }
    if (wanted(argc, argv, "grid")) {
        grid();
    }
    if (wanted(argc, argv, "two")) {
        fairness();
    }
    if (wanted(argc, argv, "loss")) {
        random_loss();
    }
    fprintf(stderr, "\n%u misses\n", misses);
    return misses > 0;
}
