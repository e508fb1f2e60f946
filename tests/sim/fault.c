/* tests/sim/fault.c: see fault.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "fault.h"

#include <string.h>

#include "base/assert.h"
#include "sim.h"

static const char *const names[] = {
#define NAME(name, text) #name,
    LEAT_SIM_FAULT_LIST(NAME)
#undef NAME
};

static const char *const texts[] = {
#define TEXT(name, text) text,
    LEAT_SIM_FAULT_LIST(TEXT)
#undef TEXT
};

const char *leat_sim_fault_name(int fault)
{
    return fault >= 0 && fault < LEAT_SIM_FAULTS ? names[fault] : NULL;
}

const char *leat_sim_fault_text(int fault)
{
    return fault >= 0 && fault < LEAT_SIM_FAULTS ? texts[fault] : NULL;
}

int leat_sim_fault_find(const char *name)
{
    for (int i = 0; i < LEAT_SIM_FAULTS; i++) {
        if (strcmp(names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

/* ---- faults ---- */

static void again(leat_timer *timer, leat_time now)
{
    leat_timer_set(timer, now);
}

static void spin(leat_ctx *ctx)
{
    static leat_timer timer;

    leat_timer_init(&timer, ctx, again);
    leat_timer_set(&timer, 0);
}

static void leave_stream(leat_ctx *ctx)
{
    leat_conn_shared *shared;

    LEAT_ASSERT(leat_conn_shared_get(ctx, &shared) == LEAT_OK);
    LEAT_ASSERT(leat_pool_take(&shared->streams.streams) != NULL);
}

static void leave_buffer(leat_ctx *ctx)
{
    leat_buf buf;

    LEAT_ASSERT(leat_buf_take(leat_ctx_mem(ctx), 100, &buf) == LEAT_OK);
}

/* The two ends are connected. */
static void break_connected(leat_sim *s, leat_sim_client *c)
{
    leat_conn *client = c->app[0].conn, *server = c->app[1].conn;

    switch (s->options->fault) {
    case LEAT_SIM_FAULT_over_budget:
        client->budget.used += s->plan->end[0].memory;
        break;
    case LEAT_SIM_FAULT_lost_credit:
        client->streams.flow_in.consumed += 1;
        break;
    case LEAT_SIM_FAULT_wrong_streams:
        server->streams.stat_opened++;
        break;
    case LEAT_SIM_FAULT_not_resumed:
        c->returned = true;
        break;
    case LEAT_SIM_FAULT_wrong_datagrams:
        client->count.datagrams_sent++;
        break;
    case LEAT_SIM_FAULT_wrong_count:
        server->streams.flow_out.used++;
        break;
    case LEAT_SIM_FAULT_hot_loop:
        spin(s->server.ctx);
        break;
    case LEAT_SIM_FAULT_closed_by_itself:
        leat_conn_close(client, 0, (leat_span){NULL, 0});
        break;
    case LEAT_SIM_FAULT_timed_out_by_itself:
        c->machine.ahead = LEAT_SECOND * 3600;
        break;
    case LEAT_SIM_FAULT_stream_left:
        leave_stream(s->server.ctx);
        break;
    case LEAT_SIM_FAULT_buffer_left:
        leave_buffer(c->machine.ctx);
        break;
    default:
        break;
    }
}

void leat_sim_fault(leat_sim *s)
{
    leat_sim_client *c = &s->client[0];

    if (s->options->fault == LEAT_SIM_FAULT_none || s->broken) {
        return;
    }
    c->app[1].fault = s->options->fault; /* some are the application's */
    if (s->options->fault == LEAT_SIM_FAULT_amplification) {
        c->net.outside[0].received += 1000000;
        s->broken = true;
    } else if (s->options->fault == LEAT_SIM_FAULT_ghost_closed) {
        if (c->ghost) {
            leat_conn_close(c->ghost->app.conn, 0, (leat_span){NULL, 0});
            s->broken = true;
        }
    } else if (s->options->fault == LEAT_SIM_FAULT_no_probes) {
        c->net.sent_at[0] = 0; /* whatever it has sent, after each step */
    } else if (c->app[0].connected && c->app[1].connected) {
        s->broken = true;
        break_connected(s, c);
    }
}
