/* cli/perf.c: `leat perf`: which end, and what both share.
 *
 * SPDX-License-Identifier: MIT
 */
#include "perf.h"

enum { ZEROS = 65536 };

leat_err leat_perf_source_init(leat_perf_source *source, leat_mem *mem)
{
    leat_err err = leat_buf_take(mem, ZEROS, &source->zeros);

    if (err == LEAT_OK) {
        memset(source->zeros.data, 0, source->zeros.len);
    }
    return err;
}

void leat_perf_source_free(leat_perf_source *source)
{
    leat_buf_release(&source->zeros);
}

leat_err leat_perf_write(leat_perf_source *source, leat_stream *stream, uint64_t *left)
{
    while (*left > 0) {
        size_t room = leat_stream_writable(stream);
        size_t n = *left < ZEROS ? (size_t)*left : ZEROS;
        leat_buf part;
        leat_err err;

        n = room && room < n ? room : n; /* without room the library says so, and tells when */
        part = leat_buf_slice(&source->zeros, 0, n);
        err = leat_stream_write_buf(stream, &part);
        if (err != LEAT_OK) {
            leat_buf_release(&part);
            return err;
        }
        *left -= n;
    }
    return LEAT_OK;
}

uint64_t leat_perf_drop(leat_stream *stream)
{
    uint64_t sum = 0;
    leat_span span;

    while ((span = leat_stream_peek(stream)).len > 0) {
        sum += span.len;
        leat_stream_consume(stream, span.len);
    }
    return sum;
}

const char *leat_perf_rate_text(double bits, double seconds, char out[LEAT_CLI_TEXT])
{
    double rate = seconds > 0 ? bits / seconds : 0;
    const char *unit = rate >= 1e9 ? "Gbits/sec" : rate >= 1e6 ? "Mbits/sec" : "Kbits/sec";

    rate /= rate >= 1e9 ? 1e9 : rate >= 1e6 ? 1e6 : 1e3;
    snprintf(out, LEAT_CLI_TEXT,
             rate < 10    ? "%.2f %s"
             : rate < 100 ? "%.1f %s"
                          : "%.0f %s",
             rate, unit);
    return out;
}

static void print_help(FILE *to)
{
    fputs("usage: leat perf server [OPTION...]\n"
          "       leat perf client HOST[:PORT] [OPTION...]\n\n"
          "Measures throughput, requests a second and handshakes a second over real sockets,\n"
          "as draft-banks-quic-performance has it (ALPN perf).\n\n"
          "'leat perf server --help' and 'leat perf client --help' say more.\n",
          to);
}

int leat_cli_perf(int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "server") == 0) {
        return leat_perf_server(argc - 1, argv + 1);
    }
    if (argc >= 2 && strcmp(argv[1], "client") == 0) {
        return leat_perf_client(argc - 1, argv + 1);
    }
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        print_help(stdout);
        return LEAT_EXIT_OK;
    }
    print_help(stderr);
    return LEAT_EXIT_USAGE;
}
