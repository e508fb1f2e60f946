/* tests/support/budget.c: see budget.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "budget.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "endpoint/endpoint.h"

/* Requests to valgrind, which cost nothing without it. Where its header is missing, instructions.py
 * finds no counts and says so. */
#if defined(__has_include) && __has_include(<valgrind/callgrind.h>)
#    include <valgrind/callgrind.h>
#else
#    define CALLGRIND_ZERO_STATS          ((void)0)
#    define CALLGRIND_DUMP_STATS_AT(name) ((void)(name))
#endif

void hostile_count(void)
{
    CALLGRIND_ZERO_STATS;
}

void hostile_counted(const char *test, uint64_t bytes)
{
    CALLGRIND_DUMP_STATS_AT(test);
    printf("counted %s %llu\n", test, (unsigned long long)bytes);
    fflush(stdout);
}

static void count(leat_event_sink *sink, const leat_event *e)
{
    (void)e;
    LEAT_CONTAINER_OF(sink, hostile, sink)->work++;
}

void hostile_prepare(hostile *h)
{
    memset(h, 0, sizeof(*h));
    leat_echo_prepare(&h->echo);
    h->sink.emit = count;
    h->echo.setup.server.events_sink = &h->sink;
}

void hostile_prepare_against_client(hostile *h)
{
    hostile_prepare(h);
    h->against_client = true;
    h->echo.setup.server.events_sink = NULL;
    h->echo.setup.client.events_sink = &h->sink;
}

void hostile_connect(hostile *h)
{
    leat_echo_connect(&h->echo);
    leat_echo_settle(&h->echo, LEAT_SECOND);
}

static size_t memory_of(const hostile *h)
{
    leat_mem_stats stats;

    leat_mem_stats_get(leat_ctx_mem(h->echo.pair.ctx), &stats);
    return stats.system_high;
}

bool hostile_deaf(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    hostile *h = pair->user;

    (void)data;
    if (to_server == h->against_client) {
        h->unheard += *len;
        h->unheard_datagrams++;
        return false;
    }
    return true;
}

void hostile_begin(hostile *h)
{
    h->echo.pair.user = h;
    h->work = 0;
    h->unheard = h->unheard_datagrams = 0;
    h->in = h->echo.pair.bytes[!h->against_client];
    h->out = h->echo.pair.bytes[h->against_client];
    h->datagrams_out = h->echo.pair.datagrams[h->against_client];
    h->memory = memory_of(h);
    h->held = 0;
    if (!h->many) {
        hostile_count();
    }
}

void hostile_settle(hostile *h, leat_time time)
{
    leat_time until = h->echo.pair.now + time;
    const leat_endpoint *victim;

    leat_echo_settle(&h->echo, time);
    /* Time passes where nothing happens in it, too. */
    h->echo.pair.now = h->echo.pair.now > until ? h->echo.pair.now : until;
    victim = h->against_client ? h->echo.pair.client : h->echo.pair.server;
    for (leat_link *at = leat_list_first(&victim->conns); at;
         at = leat_list_next(&victim->conns, at)) {
        leat_conn_stats_data stats;

        leat_conn_stats(LEAT_CONTAINER_OF(at, leat_conn, host_link), &stats);
        h->held = stats.memory_used > h->held ? stats.memory_used : h->held;
    }
}

void hostile_assert_named(const char *test, const hostile *h, const hostile_budget *budget)
{
    uint64_t in = h->echo.pair.bytes[!h->against_client] - h->in;
    uint64_t out = h->echo.pair.bytes[h->against_client] - h->out + h->unheard;

    if (!h->many) {
        hostile_counted(test, in);
    }
    print_message("  %llu bytes in, %llu out, %llu events, %zu bytes grown, %llu held\n",
                  (unsigned long long)in, (unsigned long long)out, (unsigned long long)h->work,
                  memory_of(h) - h->memory, (unsigned long long)h->held);
    assert_true(in > 0);
    assert_true(h->work * 1000 <= budget->work_per_1000 * in);
    assert_true(out * 1000 <= budget->answer_per_1000 * in);
    assert_true(memory_of(h) - h->memory <= budget->growth);
    assert_true(h->held <= budget->held);
}
