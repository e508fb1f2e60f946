/* tests/sim/run.c: see run.h and sim.h.
 *
 * A step: what has arrived is handed over, all contexts turn, what they want to send goes into the
 * networks, everything is walked; then time moves on to the next thing that is to happen.
 *
 * A round: each client connects, runs until all streams have come to their end, settles until
 * nothing is under way (statistics are compared), and is closed; when all have, until nothing is
 * left, which is checked.
 *
 * SPDX-License-Identifier: MIT
 */
#include "run.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/assert.h"
#include "chance.h"
#include "fault.h"
#include "sim.h"

#define STEPS_AT_ONE 100000 /* steps without time passing: more are a hot loop */

static const char *const side_names[] = {"client", "server"};

static const leat_sim *running; /* for the message of a failure */

void leat_sim_fail(const char *format, ...)
{
    va_list args;

    fflush(stdout);
    fprintf(stderr, "seed %" PRIu64 ", %.6f s: ", running->options->seed,
            (double)running->now / 1e9);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    fflush(stderr);
    leat_pcap_close(running->pcap); /* what led there is of use */
    _exit(1);
}

/* ---- what befalls machines and networks ---- */

static bool is_confirmed(const leat_sim_client *c)
{
    return c->app[1].conn && c->app[1].conn->confirmed;
}

static void leap(leat_sim *s, leat_sim_machine *machine, int side)
{
    const leat_sim_end_plan *plan = machine->plan;

    if (s->round == 0 && plan->leap_us > 0 &&
        s->now >= s->began + plan->leap_at_us * LEAT_MICROSECOND && machine->ahead == 0) {
        machine->ahead = plan->leap_us * LEAT_MICROSECOND;
        s->leapt[side] = true;
    }
}

/* In the middle of its connection only: what is there before and after is the server's restart. */
static void rebear(leat_sim *s, leat_sim_client *c)
{
    if (s->now < c->reborn_at) {
        return;
    }
    c->reborn_at = LEAT_TIME_NEVER;
    if (!s->closing && !s->restarted && c->phase <= LEAT_SIM_SETTLES && c->app[0].conn &&
        c->app[1].conn) {
        leat_sim_rebear(s, c);
    }
}

static void accidents(leat_sim *s)
{
    if (s->plan->jump_us > 0 && !s->slept &&
        s->now >= LEAT_SECOND + s->plan->jump_at_us * LEAT_MICROSECOND) {
        s->slept = true;
        s->now += s->plan->jump_us * LEAT_MICROSECOND;
    }
    for (size_t i = 0; i < s->count; i++) {
        leap(s, &s->client[i].machine, 0);
    }
    leap(s, &s->server, 1);
    for (size_t i = 0; i < s->count; i++) {
        rebear(s, &s->client[i]);
    }
    if (!s->closing && s->now >= s->restart_at) {
        leat_sim_restart(s);
    }
}

/* Once the handshake is over, what is to happen so long after it has its time. */
static void note_confirmed(leat_sim *s)
{
    for (size_t i = 0; i < s->count; i++) {
        leat_sim_client *c = &s->client[i];

        if (is_confirmed(c) && !c->net.confirmed) {
            leat_sim_net_confirmed(&c->net);
            if (s->round == 0 && s->plan->reborn_at_us > 0 && !c->reborn) {
                c->reborn_at = s->now + s->plan->reborn_at_us * LEAT_MICROSECOND;
            }
            if (s->round == 0 && s->plan->restart_at_us > 0 && !s->restarted &&
                s->restart_at == LEAT_TIME_NEVER) {
                s->restart_at = s->now + s->plan->restart_at_us * LEAT_MICROSECOND;
            }
        }
    }
}

/* The client moves, when it is time to and it can. */
static void migrate(leat_sim *s, leat_sim_client *c)
{
    const leat_addr *to = leat_sim_net_migrate_to(&c->net);
    leat_err err;

    if (!c->machine.ep || !c->conn || c->app[0].closed) {
        return;
    }
    if (leat_addr_equal(leat_conn_remote(c->conn), &c->net.preferred)) {
        s->result->preferred += !c->net.met_elsewhere;
        c->net.met_elsewhere = true;
    }
    if (!to) {
        return;
    }
    err = leat_conn_migrate(c->conn, to);
    if (err == LEAT_OK) {
        leat_sim_net_migrated(&c->net);
        s->result->migrations++;
    } else if (err != LEAT_ERR_STATE && err != LEAT_ERR_BLOCKED && err != LEAT_ERR_LIMIT &&
               err != LEAT_ERR_CLOSED &&
               !(err == LEAT_ERR_UNSUPPORTED && s->plan->end[1].no_migration)) {
        leat_sim_fail("migrate gives %s", leat_err_name(err));
    }
}

/* ---- a step ---- */

static void deliver(leat_sim *s, leat_sim_client *c, int side)
{
    leat_sim_machine *machine = leat_sim_machine_of(s, c, side);

    leat_ctx_set_now(machine->ctx, s->now + machine->ahead);
    if (machine->ep) {
        leat_sim_net_deliver(&c->net, side, machine->ep, machine->plan->group);
    } else {
        leat_sim_net_discard(&c->net, side);
    }
}

static void turn(leat_sim *s, leat_sim_machine *machine)
{
    leat_time now = s->now + machine->ahead;

    if (leat_prng_chance(&s->prng, s->plan->steps_back, LEAT_SIM_WHOLE)) {
        leat_ctx_turn(machine->ctx, now - leat_prng_below(&s->prng, now));
    }
    leat_ctx_turn(machine->ctx, now);
}

static void send_all(leat_sim *s, leat_sim_machine *machine, leat_sim_client *from)
{
    static uint8_t buf[65536];
    leat_send_info info;
    size_t n;

    if (!machine->ep) {
        return;
    }
    while ((n = leat_endpoint_send(machine->ep, buf, machine->plan->send_cap, &info)) > 0) {
        leat_sim_client *c = from ? from : leat_sim_client_at(s, &info.remote);

        if (!c) {
            leat_sim_fail("the server sends to nowhere");
        }
        leat_sim_net_send(&c->net, from ? 0 : 1, buf, n, &info);
    }
    if (leat_endpoint_wants_send(machine->ep)) {
        leat_sim_fail("the %s wants to send, and sends nothing", side_names[!from]);
    }
}

static leat_time deadline(const leat_sim_machine *machine)
{
    leat_time at = leat_ctx_deadline(machine->ctx);

    return at == LEAT_TIME_NEVER ? at : at > machine->ahead ? at - machine->ahead : 0;
}

static leat_time next_time(const leat_sim *s)
{
    leat_time next = deadline(&s->server);

    for (size_t i = 0; i < s->count; i++) {
        const leat_sim_client *c = &s->client[i];

        next = leat_time_min(next, deadline(&c->machine));
        next = leat_time_min(next, leat_net_link_deadline(&c->net.link));
        next = leat_time_min(next, c->phase == LEAT_SIM_WAITS ? c->connect_at : LEAT_TIME_NEVER);
        next = leat_time_min(next, c->reborn_at);
    }
    return s->closing ? next : leat_time_min(next, s->restart_at);
}

/* Moves time on; false: nothing is left to happen before `until`. */
static bool advance(leat_sim *s, leat_time until)
{
    leat_time next = next_time(s);

    if (next > until) {
        return false;
    }
    if (next <= s->now) {
        if (++s->at_one > STEPS_AT_ONE) {
            leat_sim_fail("a hot loop: %d steps without time passing", STEPS_AT_ONE);
        }
        return true;
    }
    s->at_one = 0;
    s->now = next;
    if (s->plan->late_us > 0) {
        s->now = leat_time_min(
            until, next + leat_prng_below(&s->prng, s->plan->late_us * LEAT_MICROSECOND));
    }
    return true;
}

static void begin_step(leat_sim *s)
{
    accidents(s);
    leat_sim_chance_time(s->now);
    s->result->steps++;
    for (size_t i = 0; i < s->count; i++) {
        leat_sim_client *c = &s->client[i];

        c->net.now = s->now;
        if (c->phase == LEAT_SIM_WAITS && s->now >= c->connect_at) {
            leat_sim_connect(s, c);
        }
    }
}

/* One step at the present time, then on to the next. False: nothing happens until then. */
static bool step(leat_sim *s, leat_time until)
{
    begin_step(s);
    for (size_t i = 0; i < s->count; i++) {
        deliver(s, &s->client[i], 0);
        deliver(s, &s->client[i], 1);
    }
    for (size_t i = 0; i < s->count; i++) {
        turn(s, &s->client[i].machine);
    }
    turn(s, &s->server);
    for (size_t i = 0; i < s->count; i++) {
        migrate(s, &s->client[i]);
        send_all(s, &s->client[i].machine, &s->client[i]);
    }
    send_all(s, &s->server, NULL);
    note_confirmed(s);
    leat_sim_fault(s);
    leat_sim_check_step(s);
    return advance(s, until);
}

/* ---- a client's round ---- */

static bool is_closed(const leat_sim_client *c)
{
    return c->app[0].closed || c->app[1].closed;
}

static void mark_closing(leat_sim_client *c)
{
    c->phase = LEAT_SIM_CLOSES;
    c->app[0].shutdown = c->app[1].shutdown = true;
}

static void close_conn(leat_sim *s, leat_sim_client *c)
{
    int side = (int)s->plan->closer;
    leat_sim_machine *machine = leat_sim_machine_of(s, c, side);

    leat_ctx_set_now(machine->ctx, s->now + machine->ahead);
    leat_sim_sum_up(s, c);
    mark_closing(c);
    leat_conn_close(c->app[side].conn, LEAT_SIM_CLOSE_CODE,
                    (leat_span){(const uint8_t *)"done", 4});
}

static void close_endpoint(leat_sim *s, leat_sim_machine *machine)
{
    leat_ctx_set_now(machine->ctx, s->now + machine->ahead);
    if (s->plan->close_how == 2) {
        leat_endpoint_free(machine->ep);
        machine->ep = NULL;
    } else {
        leat_endpoint_close(machine->ep, LEAT_SIM_CLOSE_CODE);
    }
}

/* All at once, as the plan has it: whoever is to close does. */
static void close_all(leat_sim *s)
{
    bool endpoints = s->plan->close_how > 0;

    s->closing = true;
    for (size_t i = 0; i < s->count; i++) {
        leat_sim_client *c = &s->client[i];

        endpoints |= c->phase != LEAT_SIM_CLOSES && !c->app[s->plan->closer].conn;
    }
    for (size_t i = 0; i < s->count; i++) {
        leat_sim_client *c = &s->client[i];

        if (!endpoints) {
            if (c->phase != LEAT_SIM_CLOSES) {
                close_conn(s, c);
            }
            continue;
        }
        if (c->phase != LEAT_SIM_CLOSES) {
            leat_sim_sum_up(s, c);
            mark_closing(c);
        }
        if (s->plan->closer == 0) {
            close_endpoint(s, &c->machine);
        }
    }
    if (endpoints && s->plan->closer == 1) {
        close_endpoint(s, &s->server);
    }
}

/* Where both machines slept in the first round trip, or the clock of one leapt, that is the first
 * sample of how long one takes: each lost probe of a search for the datagram size, of which there
 * are some twenty at most, is then waited for three times as long, and a little less each time. */
static leat_time after_sleep(const leat_sim *s)
{
    uint64_t us = s->slept ? s->plan->jump_us : 0;

    for (int side = 0; side < 2; side++) {
        us += s->round == 0 && s->leapt[side] ? s->plan->end[side].leap_us : 0;
    }
    return 20 * 3 * us * LEAT_MICROSECOND;
}

/* Until when a client may settle: each datagram lost meanwhile may have been a round of probes, the
 * next of which comes after a minute. */
static leat_time settled_by(const leat_sim_client *c)
{
    return c->most + (leat_sim_net_swallowed(&c->net) - c->swallowed) * LEAT_LOSS_BACKOFF_MAX;
}

/* The next phase, if it is time for it. */
static void go_on(leat_sim *s, leat_sim_client *c)
{
    if (is_closed(c)) {
        return;
    }
    if (c->phase == LEAT_SIM_RUNS && leat_sim_app_done(&c->app[0]) &&
        leat_sim_app_done(&c->app[1])) {
        c->phase = s->plan->settle && !s->plan->harsh ? LEAT_SIM_SETTLES : LEAT_SIM_READY;
        c->least = s->now + 3 * LEAT_SECOND;
        c->swallowed = leat_sim_net_swallowed(&c->net);
        c->most = s->now + 600 * LEAT_SECOND + leat_sim_net_restless(&c->net) + after_sleep(s);
    }
    if (c->phase == LEAT_SIM_SETTLES && s->now >= c->least && leat_sim_at_rest(c)) {
        leat_sim_compare(s, c);
        c->phase = LEAT_SIM_READY;
    }
    if (c->phase == LEAT_SIM_SETTLES && s->now >= settled_by(c)) {
        leat_sim_fail("all streams are done, and there is no rest: in flight %" PRIu64
                      " and %" PRIu64,
                      c->app[0].conn->flight.bytes, c->app[1].conn->flight.bytes);
    }
    if (c->phase == LEAT_SIM_READY && s->plan->close_how == 0) {
        close_conn(s, c);
    }
}

/* Whether all clients have come to the end of their round, or as far as they get. */
static bool all_there(const leat_sim *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const leat_sim_client *c = &s->client[i];

        if (c->phase < LEAT_SIM_READY && !is_closed(c)) {
            return false;
        }
    }
    return true;
}

static leat_time limit(const leat_sim *s)
{
    return s->began + (s->plan->limit_s + s->plan->size / 10000) * LEAT_SECOND;
}

/* When a step may have to do something that no timer tells. */
static leat_time next_mark(const leat_sim *s, leat_time close_at)
{
    leat_time mark = leat_time_min(close_at, limit(s));

    for (size_t i = 0; i < s->count; i++) {
        const leat_sim_client *c = &s->client[i];

        if (c->phase == LEAT_SIM_SETTLES && !is_closed(c)) {
            mark = leat_time_min(mark, s->now < c->least ? c->least : settled_by(c));
        }
    }
    return mark;
}

static void fail_not_done(const leat_sim *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const leat_sim_app *app = s->client[i].app;

        if (s->client[i].phase < LEAT_SIM_READY) {
            leat_sim_fail("not done: client %zu %" PRIu64 " of %" PRIu64 " streams ended, server "
                          "%" PRIu64 " of %" PRIu64,
                          i, app[0].ended, app[0].opened, app[1].ended, app[1].opened);
        }
    }
}

static void run_clients(leat_sim *s)
{
    bool may_close = s->plan->close_at_us && s->round == s->plan->again;
    leat_time close_at =
        may_close ? s->began + s->plan->close_at_us * LEAT_MICROSECOND : LEAT_TIME_NEVER;

    while (!all_there(s)) {
        leat_time mark = next_mark(s, close_at);

        if (!step(s, mark) && !all_there(s)) {
            s->now = leat_time_max(s->now, mark);
        }
        for (size_t i = 0; i < s->count; i++) {
            go_on(s, &s->client[i]);
        }
        if (s->now >= close_at && !all_there(s)) {
            s->early = true;
            close_all(s);
        } else if (s->now >= limit(s) && !s->slept) {
            fail_not_done(s);
        }
    }
}

/* ---- the end of a round ---- */

static bool over(const leat_sim *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const leat_endpoint *ep = s->client[i].machine.ep;

        if (ep && leat_endpoint_conns(ep) > 0) {
            return false;
        }
    }
    return !s->server.ep || leat_endpoint_conns(s->server.ep) == 0;
}

static bool nothing_left(const leat_sim *s)
{
    for (size_t i = 0; i < s->count; i++) {
        const leat_sim_client *c = &s->client[i];

        if ((c->machine.ep && !leat_list_empty(&c->machine.ep->conns)) ||
            leat_net_link_deadline(&c->net.link) != LEAT_TIME_NEVER) {
            return false;
        }
    }
    return !s->server.ep || leat_list_empty(&s->server.ep->conns);
}

static void run_until(leat_sim *s, bool (*done)(const leat_sim *s), const char *what)
{
    leat_time most = leat_time_max(s->now, limit(s)) + 3600 * LEAT_SECOND;

    while (!done(s)) {
        if (!step(s, most) && !done(s)) {
            leat_sim_fail("nothing happens any more, and %s", what);
        }
    }
}

static void run_round(leat_sim *s)
{
    run_clients(s);
    for (size_t i = 0; i < s->count; i++) {
        if (s->client[i].phase == LEAT_SIM_READY && !is_closed(&s->client[i])) {
            close_all(s); /* one waits for it: no other is open any more */
        }
    }
    run_until(s, over, "a connection is still open");
    leat_sim_explain(s);
    run_until(s, nothing_left, "a connection is still there");
    leat_sim_check_empty(s);
    leat_sim_sum_up_nets(s);
}

void leat_sim_run(const leat_sim_options *options, leat_sim_result *result)
{
    leat_sim *s = calloc(1, sizeof(*s));

    LEAT_ASSERT(s != NULL);
    running = s;
    leat_sim_begin(s, options, result);
    run_round(s);
    while (s->round < s->plan->again) {
        leat_sim_next_round(s);
        run_round(s);
    }
    result->took = s->now - LEAT_SECOND;
    leat_sim_finish(s);
    free(s);
}
