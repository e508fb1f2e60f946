/* tests/cc/main.c: one experiment from the command line: its samples as CSV, its result as a line.
 *
 *     leat-cc-lab --flow cubic --flow bbr:5 --rate 100 --rtt 40 --queue 1 --loss 0 --end 30
 *
 * SPDX-License-Identifier: MIT
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lab.h"

static void print_sample(void *user, const leat_lab_sample *s)
{
    const leat_lab *lab = user;

    printf("%.3f,%.0f", (double)s->at / 1e9, s->queue);
    if (lab->media) {
        printf(",%.3f,%.3f,%llu", s->media.goodput / 1e6, s->media.target / 1e6,
               (unsigned long long)s->media.lost);
    }
    for (size_t i = 0; i < lab->flows; i++) {
        printf(",%.3f,%llu,%.3f,%llu,%s", s->flow[i].goodput / 1e6,
               (unsigned long long)s->flow[i].cwnd, (double)s->flow[i].rtt / 1e6,
               (unsigned long long)s->flow[i].lost, s->flow[i].state ? s->flow[i].state : "");
    }
    printf("\n");
}

static void usage(void)
{
    fputs(
        "usage: leat-cc-lab [--flow NAME[:START_S]]... [--rate MBIT] [--rtt MS] [--queue BDPS]\n"
        "                   [--loss PERCENT] [--jitter US] [--warm S] [--end S] [--interval MS]\n"
        "                   [--turn US] [--seed N] [--csv]\n"
        "                   [--media twcc|ccfb|quic] [--media-most MBIT] [--media-spread PERCENT]\n"
        "                   [--media-deaf MBIT] [--media-datagrams]\n"
        "                   [--way-jitter US] [--change-at S --change-rate MBIT]\n"
        "                   [--stall MS [--stall-at S] [--stall-every MS] [--stall-end 0|1]]\n",
        stderr);
    exit(2);
}

static void add_flow(leat_lab *lab, char *text)
{
    char *colon = strchr(text, ':');

    if (lab->flows == LEAT_LAB_FLOWS) {
        usage();
    }
    if (colon) {
        *colon = 0;
        lab->flow[lab->flows].start = (leat_time)(atof(colon + 1) * 1e9);
    }
    if (!leat_congestion_find(text, &lab->flow[lab->flows].congestion)) {
        usage();
    }
    lab->flows++;
}

static leat_lab_feedback feedback_of(const char *name)
{
    static const char *const names[] = {"twcc", "ccfb", "quic"};

    for (unsigned i = 0; i < LEAT_LAB_FEEDBACKS; i++) {
        if (strcmp(name, names[i]) == 0) {
            return (leat_lab_feedback)i;
        }
    }
    usage();
    return LEAT_LAB_TWCC;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"flow", required_argument, NULL, 'f'},
        {"rate", required_argument, NULL, 'r'},
        {"rtt", required_argument, NULL, 't'},
        {"queue", required_argument, NULL, 'q'},
        {"loss", required_argument, NULL, 'l'},
        {"jitter", required_argument, NULL, 'j'},
        {"warm", required_argument, NULL, 'w'},
        {"end", required_argument, NULL, 'e'},
        {"seed", required_argument, NULL, 's'},
        {"interval", required_argument, NULL, 'i'},
        {"turn", required_argument, NULL, 'u'},
        {"csv", no_argument, NULL, 'c'},
        {"media", required_argument, NULL, 'm'},
        {"media-most", required_argument, NULL, 'M'},
        {"media-spread", required_argument, NULL, 'S'},
        {"media-deaf", required_argument, NULL, 'D'},
        {"media-datagrams", no_argument, NULL, 'G'},
        {"way-jitter", required_argument, NULL, 'J'},
        {"stall", required_argument, NULL, 'x'},
        {"stall-at", required_argument, NULL, 'y'},
        {"stall-every", required_argument, NULL, 'z'},
        {"stall-end", required_argument, NULL, 'Z'},
        {"change-at", required_argument, NULL, 'a'},
        {"change-rate", required_argument, NULL, 'b'},
        {NULL, 0, NULL, 0},
    };
    leat_lab lab;
    leat_lab_result result;
    struct timespec from, to;
    int c;

    leat_lab_init(&lab);
    lab.flows = 0;
    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        double v = optarg ? atof(optarg) : 0;

        switch (c) {
        case 'f':
            add_flow(&lab, optarg);
            break;
        case 'r':
            lab.rate = (uint64_t)(v * 1e6);
            break;
        case 't':
            lab.rtt = (leat_time)(v * 1e6);
            break;
        case 'q':
            lab.queue_bdp = v;
            break;
        case 'l':
            lab.loss = (uint32_t)(v * 1e4);
            break;
        case 'j':
            lab.jitter = (leat_time)(v * 1e3);
            break;
        case 'w':
            lab.warm = (leat_time)(v * 1e9);
            break;
        case 'e':
            lab.end = (leat_time)(v * 1e9);
            break;
        case 's':
            lab.seed = (uint64_t)v;
            break;
        case 'i':
            lab.interval = (leat_time)(v * 1e6);
            break;
        case 'u':
            lab.turn = (leat_time)(v * 1e3);
            break;
        case 'm':
            lab.media = true;
            lab.media_feedback = feedback_of(optarg);
            break;
        case 'S':
            lab.media_spread = (uint32_t)v;
            break;
        case 'J':
            lab.way_jitter = (leat_time)(v * 1e3);
            break;
        case 'M':
            lab.media_most = (uint64_t)(v * 1e6);
            break;
        case 'D':
            lab.media_deaf = (uint64_t)(v * 1e6);
            break;
        case 'G':
            lab.media_datagrams = true;
            break;
        case 'x':
            lab.stall.last = (leat_time)(v * 1e6);
            break;
        case 'y':
            lab.stall.at = (leat_time)(v * 1e9);
            break;
        case 'z':
            lab.stall.every = (leat_time)(v * 1e6);
            break;
        case 'Z':
            lab.stall.end = v != 0;
            break;
        case 'a':
            lab.change_at = (leat_time)(v * 1e9);
            break;
        case 'b':
            lab.change_rate = (uint64_t)(v * 1e6);
            break;
        case 'c':
            lab.sample = print_sample;
            lab.user = &lab;
            break;
        default:
            usage();
        }
    }
    if (lab.flows == 0 && !lab.media) {
        lab.flows = 1;
    }
    clock_gettime(CLOCK_MONOTONIC, &from);
    leat_lab_run(&lab, &result);
    clock_gettime(CLOCK_MONOTONIC, &to);
    for (size_t i = 0; i < lab.flows; i++) {
        fprintf(stderr, "%s %.3f Mbit/s, sent %llu, lost %llu, spurious %llu\n",
                leat_congestion_name(lab.flow[i].congestion), result.flow[i].goodput / 1e6,
                (unsigned long long)result.flow[i].sent, (unsigned long long)result.flow[i].lost,
                (unsigned long long)result.flow[i].spurious);
    }
    if (lab.media) {
        fprintf(stderr, "media %.3f Mbit/s, target %.3f, delay %.1f ms, lost %llu\n",
                result.media_goodput / 1e6, result.media_target / 1e6,
                (double)result.media_delay95 / 1e6, (unsigned long long)result.media_lost);
    }
    fprintf(
        stderr,
        "share %.4f queue %.0f of %zu bytes (%.3f ms) dropped %llu, burst %.1f, %llu datagrams, "
        "%.2f s\n",
        result.share, result.queue, result.queue_limit, result.queue_time * 1e3,
        (unsigned long long)result.dropped, result.burst, (unsigned long long)result.datagrams,
        (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9);
    return 0;
}
