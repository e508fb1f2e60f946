/* bench/work_idle.c: `leat bench idle`: what a connected, idle connection costs in memory.
 *
 * So many connections are made, a group at a time, and left alone until nothing more is sent. What
 * has grown by then, divided by the connections, is the cost of one with both its ends: bytes that
 * the context's memory took from the system and that are handed out of it, and of these what each
 * pool holds; live bytes of the heap (the context's memory and whatever the TLS library has kept);
 * resident size of the process. What a handshake and the seconds after it need is there once for a
 * group, and was before the first one that counts.
 *
 * SPDX-License-Identifier: MIT
 */
#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

#include "endpoint/endpoint.h"
#include "mem/mem.h"
#include "world.h"

typedef struct idle {
    leat_bench_world world;
    uint64_t connected; /* both sides count */
    uint64_t target;
    bool all;
} idle;

#define GROUP 256 /* connections that become idle together */

/* What connections draw on: X(name, pool). */
#define POOLS(X)                                                                                   \
    X(conns, shared->conns)                                                                        \
    X(routes, end[LEAT_BENCH_CLIENT]->routes)                                                      \
    X(server_routes, end[LEAT_BENCH_SERVER]->routes)                                               \
    X(handshakes, shared->handshakes)                                                              \
    X(tickets, shared->tickets)                                                                    \
    X(crypto_streams, shared->cryptos)                                                             \
    X(paths, shared->paths)                                                                        \
    X(streams, shared->streams.streams)                                                            \
    X(lines, shared->streams.lines)

#define FIELD(name, pool) double name;
typedef struct footprint {
    double system, handed_out, heap, rss;
    POOLS(FIELD)
} footprint;
#undef FIELD

static void on_connected(leat_conn *conn, void *user)
{
    idle *i = user;

    (void)conn;
    i->connected++;
    i->all = i->connected == i->target;
}

static const leat_conn_events events = {.connected = on_connected};

static double resident(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;

    if (!file || fscanf(file, "%*u %lu", &pages) != 1) {
        leat_bench_fail("cannot read /proc/self/statm");
    }
    fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static double pool_bytes(const leat_pool *pool)
{
    return (double)leat_pool_live(pool) * pool->stride;
}

static footprint measure(idle *i)
{
    leat_endpoint **end = i->world.end;
    const leat_conn_shared *shared = end[0]->host.shared;
    leat_mem_stats stats;

    leat_mem_reclaim(i->world.mem);
    malloc_trim(0);
    leat_mem_stats_get(i->world.mem, &stats);
#define MEASURE(name, pool) .name = pool_bytes(&pool),
    return (footprint){
        POOLS(MEASURE).system = (double)stats.system,
        .handed_out = (double)stats.obj_live + (double)stats.buf_used,
        .heap = (double)mallinfo2().uordblks,
        .rss = resident(),
    };
#undef MEASURE
}

static void connect_some(idle *i, uint64_t count)
{
    enum { AT_ONCE = 16 };
    uint64_t made = 0;

    while (count > 0) {
        uint64_t some = count < AT_ONCE ? count : AT_ONCE;

        if (made > 0 && made % GROUP == 0) {
            leat_bench_world_settle(&i->world, 5 * LEAT_SECOND);
        }
        made += some;

        i->connected = 0;
        i->target = 2 * some;
        i->all = false;
        for (uint64_t n = 0; n < some; n++) {
            leat_bench_world_connect(&i->world, &events, i);
        }
        leat_bench_world_until(&i->world, &i->all, "handshakes");
        count -= some;
    }
    /* Until HANDSHAKE_DONE, ACKs and path MTU probes are through, and what they took is back. */
    leat_bench_world_settle(&i->world, 5 * LEAT_SECOND);
}

/* A pool that holds nothing of an idle connection is no news. */
static void tell_pool(leat_bench_row *row, const char *name, double bytes)
{
    if (bytes > 0) {
        leat_bench_figure_add(row, name, bytes);
    }
}

void leat_bench_idle(leat_bench *b)
{
    static idle i;
    leat_bench_options options = *b->options;
    uint64_t count = leat_bench_or(options.count, 2000);
    uint64_t warm_up = leat_bench_or(options.warm_up, GROUP);
    footprint before, after;
    leat_bench_row *row;

    i = (idle){.connected = 0};
    leat_bench_world_open(&i.world, &options, &events, &i);
    i.world.conn.idle_timeout = 0;
    i.world.end[LEAT_BENCH_SERVER]->settings.conn.idle_timeout = 0; /* its own is a copy */
    connect_some(&i, warm_up);
    before = measure(&i);
    connect_some(&i, count);
    after = measure(&i);
    row = leat_bench_note(b, "both ends of a connection");
    leat_bench_figure_add(row, "connections", (double)count);
    leat_bench_figure_add(row, "pool_bytes", (after.system - before.system) / (double)count);
    leat_bench_figure_add(row, "pool_bytes_in_use",
                          (after.handed_out - before.handed_out) / (double)count);
    leat_bench_figure_add(row, "heap_bytes", (after.heap - before.heap) / (double)count);
    leat_bench_figure_add(row, "rss_bytes", (after.rss - before.rss) / (double)count);
#define TELL(name, pool) tell_pool(row, #name "_bytes", (after.name - before.name) / (double)count);
    POOLS(TELL)
#undef TELL
    leat_bench_world_close(&i.world);
}
