/* tests/support/udplink/main.c: options, flows, the loop.
 *
 * A turn: rebind what is due, send what is due, wait for a socket or the next time, take in what
 * came. SIGTERM and SIGINT end it; then it prints what it has counted, a line a direction.
 *
 * SPDX-License-Identifier: MIT
 */
#include "udplink.h"

#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLOWS = 256, ECN_CE = 3, TAKE_AT_ONCE = 64, OUTSIDE = 1 };

typedef struct link_flow {
    leat_addr client;
    int back; /* -1: not used */
    leat_addr local;
    leat_time used;
    leat_time rebind_at; /* LEAT_TIME_NEVER: never */
} link_flow;

typedef struct udplink {
    leat_addr listen, to;
    int front;
    leat_addr front_local;
    link_direction up, down;
    link_later later;
    link_flow flows[FLOWS];
    uint8_t addresses; /* source addresses used up by rebindings */
    bool rebind_address;
    leat_time rebind_after, rebind_every; /* 0: none */
    leat_pcap *client_pcap, *server_pcap;
} udplink;

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
}

static bool same_addr(const leat_addr *a, const leat_addr *b)
{
    return a->family == b->family && a->port == b->port && a->scope == b->scope &&
           memcmp(a->ip, b->ip, a->family == 6 ? 16 : 4) == 0;
}

static void capture(leat_pcap *pcap, leat_time now, const leat_addr *from, const leat_addr *to,
                    const link_datagram *d)
{
    if (pcap) {
        leat_pcap_write(pcap, now, from, to, d->ecn, (leat_span){d->data, d->len});
    }
}

/* ---- flows -------------------------------------------------------------------------------------
 */

/* The address towards the server: any, or the next of 127.0.0.0/8 after a change of address. */
static leat_addr back_address(udplink *app)
{
    leat_addr local = {.family = app->to.family};

    if (app->to.family == 4) {
        memcpy(local.ip, (uint8_t[]){127, 0, 0, (uint8_t)(1 + app->addresses)}, 4);
        if (app->to.ip[0] != 127) {
            memset(local.ip, 0, 4);
        }
    }
    return local;
}

static bool bind_flow(udplink *app, link_flow *flow)
{
    leat_addr local = back_address(app);
    int fd = link_sock_open(&local);

    if (fd < 0) {
        return false;
    }
    flow->back = fd;
    flow->local = link_sock_local(fd);
    return true;
}

/* The flow of a client; NULL when there can be none. The one longest unused makes room. */
static link_flow *find_flow(udplink *app, const leat_addr *client, leat_time now)
{
    link_flow *oldest = &app->flows[0];

    for (size_t i = 0; i < FLOWS; i++) {
        link_flow *flow = &app->flows[i];

        if (flow->back >= 0 && same_addr(&flow->client, client)) {
            flow->used = now;
            return flow;
        }
        if (flow->back < 0 || flow->used < oldest->used) {
            oldest = flow;
            if (flow->back < 0) {
                break;
            }
        }
    }
    if (oldest->back >= 0) {
        close(oldest->back);
        oldest->back = -1;
    }
    *oldest =
        (link_flow){.client = *client,
                    .back = -1,
                    .used = now,
                    .rebind_at = app->rebind_after ? now + app->rebind_after : LEAT_TIME_NEVER};
    return bind_flow(app, oldest) ? oldest : NULL;
}

/* Like a NAT that forgets: what still comes to the old socket is lost. It stays open, so that the
 * server's system gets no refusal. */
static void rebind_flow(udplink *app, link_flow *flow, leat_time now)
{
    char text[LEAT_ADDR_TEXT_MAX];

    if (app->rebind_address) {
        app->addresses++;
    }
    if (!bind_flow(app, flow)) {
        flow->rebind_at = LEAT_TIME_NEVER;
        return;
    }
    flow->rebind_at = app->rebind_every ? now + app->rebind_every : LEAT_TIME_NEVER;
    printf("rebound to %s\n", leat_addr_format(&flow->local, text));
    fflush(stdout);
}

static leat_time rebind_due(udplink *app, leat_time now)
{
    leat_time next = LEAT_TIME_NEVER;

    for (size_t i = 0; i < FLOWS && app->rebind_after; i++) {
        link_flow *flow = &app->flows[i];

        if (flow->back >= 0 && flow->rebind_at <= now) {
            rebind_flow(app, flow, now);
        }
        if (flow->back >= 0 && flow->rebind_at < next) {
            next = flow->rebind_at;
        }
    }
    return next;
}

/* ---- datagrams ---------------------------------------------------------------------------------
 */

static void send_one(udplink *app, link_datagram *d, leat_time now)
{
    link_flow *flow = &app->flows[d->flow];
    link_direction *direction = d->up ? &app->up : &app->down;
    int fd = d->up ? flow->back : app->front;
    const leat_addr *to = d->up ? &app->to : &flow->client;

    if (flow->back >= 0 && link_sock_send(fd, d->data, d->len, to, d->ecn)) {
        direction->counts.sent++;
        capture(d->up ? app->server_pcap : app->client_pcap, now,
                d->up ? &flow->local : &app->front_local, to, d);
    } else {
        direction->counts.refused++;
    }
    link_later_give(&app->later, d);
}

static link_datagram *copy(udplink *app, const link_datagram *d)
{
    link_datagram *twin = link_later_take(&app->later);

    if (twin) {
        twin->flow = d->flow;
        twin->up = d->up;
        twin->ecn = d->ecn;
        twin->len = d->len;
        memcpy(twin->data, d->data, d->len);
    }
    return twin;
}

/* Decides what becomes of a datagram, which this consumes. */
static void take_in(udplink *app, link_datagram *d, leat_time now)
{
    link_fate fate = link_decide(d->up ? &app->up : &app->down, now, d->len, d->ecn);
    link_datagram *twin = fate.copies > 1 ? copy(app, d) : NULL;

    if (fate.copies == 0) {
        link_later_give(&app->later, d);
        return;
    }
    if (fate.corrupt) {
        d->data[fate.corrupt_at] ^= fate.corrupt_with;
    }
    if (fate.mark) {
        d->ecn = ECN_CE;
    }
    d->at = fate.at[0];
    link_later_add(&app->later, d);
    if (twin) {
        twin->at = fate.at[1];
        link_later_add(&app->later, twin);
    }
}

/* Takes one datagram from the front socket (flow NULL) or a flow's; false when there is none. */
static bool take_one(udplink *app, link_flow *from_flow, leat_time now)
{
    link_datagram *d = link_later_take(&app->later);
    link_flow *flow = from_flow;
    leat_addr from;
    int len = -1;

    if (!d) {
        return false;
    }
    len = link_sock_receive(flow ? flow->back : app->front, d->data, sizeof d->data - 1, &from,
                            &d->ecn);
    if (len < 0) {
        link_later_give(&app->later, d);
        return false;
    }
    d->len = (uint16_t)len;
    d->up = flow == NULL;
    if (!flow) {
        flow = find_flow(app, &from, now);
    } else if (!same_addr(&from, &app->to)) {
        flow = NULL; /* not the server's */
    }
    if (!flow) {
        link_later_give(&app->later, d);
        return true;
    }
    d->flow = (size_t)(flow - app->flows);
    if (d->up) {
        capture(app->client_pcap, now, &from, &app->front_local, d);
    } else {
        capture(app->server_pcap, now, &from, &flow->local, d);
    }
    take_in(app, d, now);
    return true;
}

/* ---- the loop ----------------------------------------------------------------------------------
 */

static void wait_for(udplink *app, leat_time next, const sigset_t *signals)
{
    struct pollfd fds[FLOWS + 1] = {{.fd = app->front, .events = POLLIN}};
    link_flow *flows[FLOWS + 1] = {NULL};
    leat_time now = leat_clock_now(), left = next > now ? next - now : 0;
    struct timespec limit = {(time_t)(left / LEAT_SECOND), (long)(left % LEAT_SECOND)};
    nfds_t count = 1;

    for (size_t i = 0; i < FLOWS; i++) {
        if (app->flows[i].back >= 0) {
            fds[count] = (struct pollfd){.fd = app->flows[i].back, .events = POLLIN};
            flows[count++] = &app->flows[i];
        }
    }
    if (ppoll(fds, count, next == LEAT_TIME_NEVER ? NULL : &limit, signals) <= 0) {
        return;
    }
    now = leat_clock_now();
    for (nfds_t i = 0; i < count; i++) {
        for (int n = 0; fds[i].revents && n < TAKE_AT_ONCE && take_one(app, flows[i], now); n++) {
        }
    }
}

static void run(udplink *app)
{
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t ours, before;

    sigemptyset(&ours);
    sigaddset(&ours, SIGTERM);
    sigaddset(&ours, SIGINT);
    sigprocmask(SIG_BLOCK, &ours, &before); /* let through while waiting */
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    while (!stopped) {
        leat_time now = leat_clock_now(), next = rebind_due(app, now), due;
        link_datagram *d;

        while ((d = link_later_due(&app->later, now)) != NULL) {
            send_one(app, d, now);
        }
        due = link_later_next(&app->later);
        wait_for(app, due < next ? due : next, &before);
    }
}

static void print_counts(const char *name, const link_counts *counts)
{
    printf("%s:", name);
#define COUNT_TEXT(member, text) printf(" " #member "=%" PRIu64, counts->member);
    LINK_COUNT_LIST(COUNT_TEXT)
#undef COUNT_TEXT
    printf("\n");
}

/* ---- options -----------------------------------------------------------------------------------
 */

static int usage(const char *wrong)
{
    if (wrong) {
        fprintf(stderr, "udplink: what is '%s'?\n", wrong);
    }
    printf("usage: udplink --to ADDR:PORT [--listen ADDR:PORT] [--seed N]\n"
           "               [--pcap-client FILE] [--pcap-server FILE]\n"
           "               [--rebind port|addr --rebind-after MS [--rebind-every MS]]\n"
           "               [[up.|down.]FAULT=NUMBER ...]\n\n"
           "Prints 'listening on ADDR:PORT'. up is from clients to the server. Faults:\n");
#define FAULT_TEXT(name, key, text) printf("  %-12s %s\n", key, text);
    LINK_FAULT_LIST(FAULT_TEXT)
#undef FAULT_TEXT
    return wrong ? 2 : 0;
}

static bool take_fault(link_faults *faults, const char *key, size_t len, double value)
{
#define FAULT_TAKE(name, text, help)                                                               \
    if (strlen(text) == len && memcmp(text, key, len) == 0) {                                      \
        faults->name = value;                                                                      \
        return true;                                                                               \
    }
    LINK_FAULT_LIST(FAULT_TAKE)
#undef FAULT_TAKE
    return false;
}

/* "up.loss=30", "delay=15". */
static bool parse_fault(const char *text, link_faults *up, link_faults *down)
{
    const char *equals = strchr(text, '=');
    bool to_up = true, to_down = true;
    char *end;
    double value;

    if (!equals) {
        return false;
    }
    value = strtod(equals + 1, &end);
    if (end == equals + 1 || *end || !isfinite(value) || value < 0 || value > 1e9) {
        return false;
    }
    if (strncmp(text, "up.", 3) == 0) {
        to_down = false;
        text += 3;
    } else if (strncmp(text, "down.", 5) == 0) {
        to_up = false;
        text += 5;
    }
    return (!to_up || take_fault(up, text, (size_t)(equals - text), value)) &&
           (!to_down || take_fault(down, text, (size_t)(equals - text), value));
}

static bool parse_ms(const char *text, leat_time *out)
{
    char *end;
    double value = strtod(text, &end);

    if (end == text || *end || !isfinite(value) || value < 0 || value > 1e9) {
        return false;
    }
    *out = (leat_time)llround(value * (double)LEAT_MILLISECOND);
    return true;
}

/* One option with its argument; false when it is none or bad. */
static bool parse_option(udplink *app, const char *name, const char *arg, uint64_t *seed)
{
    if (strcmp(name, "--to") == 0) {
        return leat_addr_parse(arg, &app->to) == LEAT_OK && app->to.family;
    }
    if (strcmp(name, "--listen") == 0) {
        return leat_addr_parse(arg, &app->listen) == LEAT_OK && app->listen.family;
    }
    if (strcmp(name, "--seed") == 0) {
        *seed = strtoull(arg, NULL, 0);
        return true;
    }
    if (strcmp(name, "--pcap-client") == 0) {
        return leat_pcap_open(arg, &app->client_pcap) == LEAT_OK;
    }
    if (strcmp(name, "--pcap-server") == 0) {
        return leat_pcap_open(arg, &app->server_pcap) == LEAT_OK;
    }
    if (strcmp(name, "--rebind") == 0) {
        app->rebind_address = strcmp(arg, "addr") == 0;
        return app->rebind_address || strcmp(arg, "port") == 0;
    }
    if (strcmp(name, "--rebind-after") == 0) {
        return parse_ms(arg, &app->rebind_after);
    }
    return strcmp(name, "--rebind-every") == 0 && parse_ms(arg, &app->rebind_every);
}

/* The first argument that is wrong, or NULL. */
static const char *parse(udplink *app, char **argv, link_faults *up, link_faults *down,
                         uint64_t *seed)
{
    for (char **at = argv; *at; at++) {
        if (strncmp(*at, "--", 2) != 0) {
            if (!parse_fault(*at, up, down)) {
                return *at;
            }
            continue;
        }
        if (!at[1] || !parse_option(app, at[0], at[1], seed)) {
            return *at;
        }
        at++;
    }
    return app->to.family ? NULL : "no --to";
}

static bool start(udplink *app, const link_faults *up, const link_faults *down, uint64_t seed)
{
    char text[LEAT_ADDR_TEXT_MAX];

    for (size_t i = 0; i < FLOWS; i++) {
        app->flows[i].back = -1;
    }
    if (!link_direction_init(&app->up, up, seed) ||
        !link_direction_init(&app->down, down, seed + OUTSIDE)) {
        fprintf(stderr, "udplink: out of memory\n");
        return false;
    }
    if (!app->listen.family) { /* loopback, of the server's family */
        app->listen.family = app->to.family;
        if (app->to.family == 4) {
            memcpy(app->listen.ip, (uint8_t[]){127, 0, 0, 1}, 4);
        } else {
            app->listen.ip[15] = 1;
        }
    }
    app->front = link_sock_open(&app->listen);
    if (app->front < 0) {
        return false;
    }
    app->front_local = link_sock_local(app->front);
    printf("listening on %s\n", leat_addr_format(&app->front_local, text));
    fflush(stdout);
    return true;
}

/* False when a capture is not whole. */
static bool release(udplink *app)
{
    leat_err client = leat_pcap_close(app->client_pcap);
    leat_err server = leat_pcap_close(app->server_pcap);

    for (size_t i = 0; i < FLOWS; i++) {
        if (app->flows[i].back >= 0) {
            close(app->flows[i].back);
        }
    }
    link_later_free(&app->later);
    free(app->up.departure);
    free(app->down.departure);
    return client == LEAT_OK && server == LEAT_OK;
}

int main(int argc, char **argv)
{
    static udplink app = {.front = -1};
    link_faults up = {0}, down = {0};
    uint64_t seed = 1;
    const char *wrong;
    bool ran;

    if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        return usage(argc < 2 ? "nothing" : NULL);
    }
    wrong = parse(&app, argv + 1, &up, &down, &seed);
    if (wrong) {
        return usage(wrong);
    }
    ran = start(&app, &up, &down, seed);
    if (ran) {
        run(&app);
        print_counts("up", &app.up.counts);
        print_counts("down", &app.down.counts);
    }
    if (!release(&app)) {
        fprintf(stderr, "udplink: a capture could not be written\n");
        return 1;
    }
    return ran ? 0 : 1;
}
