/* cli/stats.c: what --stats prints, and the count of heap calls in the steady state.
 *
 * Each line is `name: value  text`, so that people and awk can read it. Times are in milliseconds.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <dlfcn.h>
#include <sys/resource.h>

enum { STEADY_STEP = 1 << 20 };

leat_cli_allocs leat_cli_allocs_now(void)
{
    static uint64_t (*count)(void);
    static bool looked;

    if (!looked) {
        void *symbol = dlsym(RTLD_DEFAULT, "leat_allocs_now");

        looked = true;
        memcpy(&count, &symbol, sizeof count);
    }
    return (leat_cli_allocs){count != NULL, count ? count() : 0};
}

void leat_cli_steady_look(leat_cli_steady *steady, leat_mem *mem)
{
    leat_mem_stats stats;

    if (steady->next == 0) {
        leat_cli_allocs_now(); /* the look-up may allocate: not while it counts */
    } else {
        leat_mem_stats_get(mem, &stats);
        steady->allocs_last = leat_cli_allocs_now();
        steady->memory_last = stats.system_high;
        if (steady->looks++ == 0) {
            steady->allocs_first = steady->allocs_last;
            steady->memory_first = steady->memory_last;
        }
    }
    steady->next = steady->bytes + STEADY_STEP;
}

enum {
    WARM_LARGE = 65535, /* the largest UDP message: what a socket receives into */
    WARM_SMALL = 32000, /* nearly half a slab: two make one */
    WARM_COUNT = 64,    /* of each */
    WARM_TABLES = 4     /* arrays of each power of two from 1 KiB to 256 KiB */
};

static void warm_tables(leat_mem *mem)
{
    void *tables[9 * WARM_TABLES];
    size_t count = 0;

    for (size_t size = 1024; size <= 262144; size *= 2) {
        for (int i = 0; i < WARM_TABLES; i++) {
            tables[count++] = leat_mem_malloc(mem, size - 64);
        }
    }
    while (count) {
        leat_mem_release(mem, tables[--count]);
    }
}

void leat_cli_warm(leat_mem *mem)
{
    static leat_buf bufs[2 * WARM_COUNT];

    for (size_t i = 0; i < 2 * WARM_COUNT; i++) {
        if (leat_buf_take(mem, i % 2 ? WARM_SMALL : WARM_LARGE, &bufs[i]) != LEAT_OK) {
            break; /* then it has to do without */
        }
    }
    for (size_t i = 0; i < 2 * WARM_COUNT; i++) {
        leat_buf_release(&bufs[i]);
    }
    warm_tables(mem);
}

/* Values end in one column. */
static void line_text(const char *name, const char *value, const char *text)
{
    fprintf(stderr, "  %s: %*s  %s\n", name, 38 - (int)strlen(name), value, text);
}

static void line(const char *name, uint64_t value, const char *text)
{
    char number[LEAT_CLI_TEXT];

    snprintf(number, sizeof number, "%llu", (unsigned long long)value);
    line_text(name, number, text);
}

static void line_ms(const char *name, leat_time value, const char *text)
{
    char number[LEAT_CLI_TEXT];

    snprintf(number, sizeof number, "%.3f", (double)value / (double)LEAT_MILLISECOND);
    line_text(name, number, text);
}

static void print_transfer(const leat_cli_run *run)
{
    double seconds = (double)(leat_clock_now() - run->started) / (double)LEAT_SECOND;
    char text[LEAT_CLI_TEXT];

    line("body_bytes", run->body_bytes, "bytes of bodies");
    snprintf(text, sizeof text, "%.6f", seconds);
    line_text("seconds", text, "from the start of the connection");
    snprintf(text, sizeof text, "%.1f",
             seconds > 0 ? (double)run->body_bytes * 8 / seconds / 1e6 : 0.0);
    line_text("mbit_s", text, "bodies, in million bits a second");
}

static void print_conn(leat_conn *conn)
{
    leat_conn_stats_data stats;
    bool times;

    leat_conn_stats(conn, &stats);
/* rtt_... are times, the rest are counts: the type tells them apart in the list only. */
#define STAT_LINE(type, name, text)                                                                \
    times = strcmp(#type, "leat_time") == 0;                                                       \
    if (times) {                                                                                   \
        line_ms(#name, (leat_time)stats.name, text " (ms)");                                       \
    } else {                                                                                       \
        line(#name, stats.name, text);                                                             \
    }
    LEAT_CONN_STAT_LIST(STAT_LINE)
#undef STAT_LINE
}

static void print_path(leat_conn *conn)
{
    leat_path_stats path;

    leat_conn_paths(conn, &path, 1);
    line_text("congestion", path.congestion, "the congestion controller");
    line("datagram_size", path.udp_payload, "bytes that a datagram may have on the path");
    line_text("ecn", path.ecn, "what is known of ECN on the path");
    line("ecn_ce", path.ce_marks, "congestion marks that the peer has reported");
}

static void print_socket(const leat_udp *udp)
{
    leat_udp_stats stats;

    leat_udp_stats_get(udp, &stats);
#define STAT_LINE(name, text) line("udp_" #name, stats.name, text);
    LEAT_UDP_STAT_LIST(STAT_LINE)
#undef STAT_LINE
}

static void print_memory(leat_mem *mem)
{
    leat_mem_stats stats;

    leat_mem_stats_get(mem, &stats);
    line("mem_system", stats.system, "bytes of memory taken from the system");
    line("mem_system_high", stats.system_high, "the most that it has been");
    line("mem_slabs", stats.slabs, "slabs held");
    line("mem_slabs_free", stats.slabs_free, "of these, kept for reuse");
    line("mem_buf_pinned", stats.buf_pinned, "bytes that live buffers keep from reuse");
    line("mem_buf_used", stats.buf_used, "bytes of live buffers");
    line("mem_grown", stats.grown, "times that memory was asked of the system");
}

void leat_cli_steady_json(const leat_cli_steady *steady)
{
    if (steady->looks > 1 && steady->allocs_first.known) {
        printf(", \"steady_bytes\": %llu, \"steady_heap_calls\": %llu",
               (unsigned long long)steady->bytes,
               (unsigned long long)(steady->allocs_last.now - steady->allocs_first.now));
    }
}

static void print_process(const leat_cli_steady *steady)
{
    leat_cli_allocs allocs = leat_cli_allocs_now();
    struct rusage usage;

    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        line_ms("cpu_user",
                (leat_time)usage.ru_utime.tv_sec * LEAT_SECOND +
                    (leat_time)usage.ru_utime.tv_usec * LEAT_MICROSECOND,
                "processor time of the process (ms)");
        line_ms("cpu_system",
                (leat_time)usage.ru_stime.tv_sec * LEAT_SECOND +
                    (leat_time)usage.ru_stime.tv_usec * LEAT_MICROSECOND,
                "the same in the kernel (ms)");
        line("max_rss_kib", (uint64_t)usage.ru_maxrss, "largest resident size, KiB");
    }
    if (allocs.known) {
        line("heap_calls", allocs.now, "heap allocations of the process");
    }
    if (steady->looks && allocs.known) {
        line("steady_heap_calls", steady->allocs_last.now - steady->allocs_first.now,
             "of these, between the first megabyte and the last");
    }
    if (steady->looks) {
        line("steady_mem_growth", steady->memory_last - steady->memory_first,
             "bytes by which mem_system_high rose between the two");
    }
}

static void print_session(leat_conn *conn)
{
    static const char *const early[] = {"none", "offered", "accepted", "rejected"};
    uint32_t version = leat_conn_version(conn);

    line_text("version",
              version == LEAT_QUIC_V1   ? "v1"
              : version == LEAT_QUIC_V2 ? "v2"
                                        : "unknown",
              "the version of QUIC");
    line_text("resumed", leat_conn_resumed(conn) ? "yes" : "no", "an earlier session went on");
    line_text("early_data", early[leat_conn_early(conn)], "what became of 0-RTT");
}

void leat_cli_print_stats(leat_conn *conn, const leat_udp *udp, const leat_cli_run *run,
                          const leat_cli_steady *steady)
{
    char remote[LEAT_ADDR_TEXT_MAX];
    leat_span alpn = leat_conn_alpn(conn);
    const char *cipher = leat_conn_cipher(conn);

    fprintf(stderr, "connection %s %.*s %s\n", leat_addr_format(leat_conn_remote(conn), remote),
            (int)alpn.len, alpn.len ? (const char *)alpn.data : "", cipher ? cipher : "");
    print_session(conn);
    print_transfer(run);
    print_conn(conn);
    print_path(conn);
    if (udp) {
        print_socket(udp);
    }
    print_memory(leat_ctx_mem(leat_endpoint_ctx(leat_conn_endpoint(conn))));
    print_process(steady);
    fflush(stderr);
}
