/* cli/rtp.c: `leat rtp`: finds the part and hands over.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rtp.h"

typedef struct part {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *text;
} part;

static const part parts[] = {
    {"feedback", leat_cli_rtp_feedback, "receive RTP and answer with TWCC or RFC 8888 feedback"},
    {"dump", leat_cli_rtp_dump, "print the RTP and RTCP of a capture, packet by packet"},
    {"play", leat_cli_rtp_play, "send a capture's RTP and RTCP again at its pace"},
    {"send", leat_cli_rtp_send, "carry RTP over QUIC, from UDP ports to a receiver"},
    {"recv", leat_cli_rtp_recv, "take RTP over QUIC and hand it on by UDP"},
    {"plot", leat_cli_rtp_plot, "draw rate, delay and loss over time from their statistics"},
};

enum { PARTS = sizeof parts / sizeof parts[0] };

volatile bool leat_cli_rtp_stopped;

static void on_signal(int number)
{
    (void)number;
    leat_cli_rtp_stopped = true;
}

void leat_cli_rtp_catch_signals(void)
{
    leat_cli_catch_signals(on_signal);
}

static void print_parts(FILE *to)
{
    fputs("usage: leat rtp PART [ARGUMENT...]\n\n", to);
    for (size_t i = 0; i < PARTS; i++) {
        fprintf(to, "  %-10s %s\n", parts[i].name, parts[i].text);
    }
    fputs("\n'leat rtp PART --help' says more.\n", to);
}

int leat_cli_rtp(int argc, char **argv)
{
    if (argc < 2) {
        print_parts(stderr);
        return LEAT_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_parts(stdout);
        return LEAT_EXIT_OK;
    }
    for (size_t i = 0; i < PARTS; i++) {
        if (strcmp(argv[1], parts[i].name) == 0) {
            return parts[i].run(argc - 1, argv + 1);
        }
    }
    leat_cli_error("no such part: rtp %s (try 'leat rtp --help')", argv[1]);
    return LEAT_EXIT_USAGE;
}
