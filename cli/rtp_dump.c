/* cli/rtp_dump.c: `leat rtp dump`: a capture, packet by packet.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rtp.h"

#include <errno.h>

#define DUMP_OPTIONS(X)                                                                            \
    X(JSON, "json", 'j', NULL, "one JSON object a line")                                           \
    X(QUIET, "quiet", 'q', NULL, "no summary at the end")                                          \
    X(HELP, "help", 'h', NULL, "print this help")

#define DUMP_ENUM(id, name, letter, arg, help) OPT_##id,
enum { OPT_FIRST = 256, DUMP_OPTIONS(DUMP_ENUM) OPT_END };
#define DUMP_ROW(id, name, letter, arg, help) {OPT_##id, name, letter, arg, help},

static const leat_cli_option options[] = {DUMP_OPTIONS(DUMP_ROW)};

static void print_help(void)
{
    puts("usage: leat rtp dump [OPTION...] FILE.pcap|FILE.rtpdump|-\n\n"
         "Prints the RTP and RTCP of a capture, packet by packet. Bad packets make a message with\n"
         "their offset in the file, and reading goes on.\n");
    leat_cli_print_options(options, sizeof options / sizeof options[0]);
    leat_cli_print_exit_codes();
}

static void summary(const leat_cli_rtp_printer *p, const leat_cli_capture *c)
{
    fprintf(stderr, "%llu RTP, %llu RTCP, %llu bad, %llu other datagrams, %llu other packets\n",
            (unsigned long long)p->rtp, (unsigned long long)p->rtcp, (unsigned long long)p->bad,
            (unsigned long long)p->other, (unsigned long long)c->skipped);
}

static int dump(const char *path, bool json, bool quiet)
{
    static leat_cli_capture capture;
    leat_cli_rtp_printer printer = {.to = stdout, .json = json};
    leat_cli_exit code = leat_cli_capture_open(&capture, path);
    leat_cli_datagram datagram;

    while (code == LEAT_EXIT_OK && !ferror(stdout) && leat_cli_capture_next(&capture, &datagram)) {
        leat_cli_rtp_print(&printer, &datagram);
    }
    if (code == LEAT_EXIT_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        leat_cli_error("cannot write the output: %s", strerror(errno));
        code = LEAT_EXIT_FILE;
    }
    if (code == LEAT_EXIT_OK && !quiet) {
        summary(&printer, &capture);
    }
    leat_cli_capture_close(&capture);
    return code;
}

int leat_cli_rtp_dump(int argc, char **argv)
{
    bool json = false, quiet = false;
    leat_cli_parser parser;
    int id;

    leat_cli_parser_init(&parser, "rtp dump", options, sizeof options / sizeof options[0]);
    while ((id = leat_cli_option_next(&parser, argc, argv)) != -1) {
        switch (id) {
        case OPT_HELP:
            print_help();
            return LEAT_EXIT_OK;
        case OPT_JSON:
            json = true;
            break;
        case OPT_QUIET:
            quiet = true;
            break;
        default:
            return LEAT_EXIT_USAGE;
        }
    }
    if (argc - optind != 1) {
        leat_cli_error("one file is wanted (try 'leat rtp dump --help')");
        return LEAT_EXIT_USAGE;
    }
    return dump(argv[optind], json, quiet);
}
