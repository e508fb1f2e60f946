/* tests/sim/begin.c: see sim.h: machines, keys and connections are made, and made again.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "chance.h"
#include "sim.h"

static const char *const side_names[] = {"client", "server"};

/* ---- settings ---- */

/* The server's keys: tickets, tokens and resets outlive its process, the memory of early data does
 * not. */
static void make_shared(leat_sim *s)
{
    uint8_t ticket_key[LEAT_TLS_TICKET_KEY];
    leat_shared_settings settings;

    memset(ticket_key, 0x5e, sizeof(ticket_key));
    leat_shared_settings_init(&settings);
    settings.ticket_key = (leat_span){ticket_key, sizeof(ticket_key)};
    LEAT_ASSERT(leat_shared_new(&settings, &s->shared) == LEAT_OK);
}

static void set_versions(leat_conn_settings *c, const leat_sim_end_plan *end)
{
    static const uint32_t lists[][2] = {{LEAT_QUIC_V1, LEAT_QUIC_V2},
                                        {LEAT_QUIC_V1, 0},
                                        {LEAT_QUIC_V2, 0},
                                        {LEAT_QUIC_V2, LEAT_QUIC_V1}};
    static const uint32_t first[] = {0, LEAT_QUIC_V1, LEAT_QUIC_V2};

    c->versions[0] = lists[end->versions % 4][0];
    c->versions[1] = lists[end->versions % 4][1];
    c->version_count = c->versions[1] ? 2 : 1;
    c->version = first[end->version % 3];
}

static leat_conn_settings conn_settings(const leat_sim_end_plan *end)
{
    leat_conn_settings c;

    leat_conn_settings_init(&c);
    c.idle_timeout = end->idle_ms * LEAT_MILLISECOND;
    c.keep_alive = end->keep_alive_ms * LEAT_MILLISECOND;
    c.handshake_timeout = end->handshake_ms * LEAT_MILLISECOND;
    c.max_data = end->max_data;
    c.max_stream_data_bidi_local = end->max_stream_data;
    c.max_stream_data_bidi_remote = end->max_stream_data;
    c.max_stream_data_uni = end->max_stream_data;
    c.max_streams_bidi = end->max_streams_bidi;
    c.max_streams_uni = end->max_streams_uni;
    c.max_ack_delay = end->max_ack_delay_ms * LEAT_MILLISECOND;
    c.min_ack_delay = end->min_ack_delay_us * LEAT_MICROSECOND;
    c.send_buffer = end->send_buffer;
    c.memory = end->memory;
    c.udp_payload = (uint16_t)end->udp_payload;
    c.congestion = (leat_congestion)(end->congestion % LEAT_CONGESTIONS);
    c.key_update_packets = end->key_update_packets;
    c.disable_ecn = end->no_ecn != 0;
    c.disable_spin = end->no_spin != 0;
    c.disable_grease = end->no_grease != 0;
    c.disable_reset_stream_at = end->no_reset_at != 0;
    c.disable_migration = end->no_migration != 0;
    c.ignore_preferred = end->ignore_preferred != 0;
    c.max_datagram_frame_size = end->datagram_frame;
    c.datagram_queue = (uint32_t)end->datagram_queue;
    c.datagram_urgency = (uint8_t)end->datagram_urgency;
    c.early_data = end->early_data && end->tickets;
    set_versions(&c, end);
    return c;
}

/* ---- machines ---- */

static void make_endpoint(leat_sim *s, leat_sim_machine *machine, int side, void *user)
{
    const leat_sim_end_plan *end = machine->plan;
    leat_endpoint_settings ep;

    leat_endpoint_settings_init(&ep);
    ep.conn = conn_settings(end);
    ep.cid_len = (uint8_t)end->cid_len;
    ep.events_sink = s->options->sink;
    ep.user = user;
    memset(ep.reset_key, 0x5e + side, sizeof(ep.reset_key)); /* both are kept over a restart */
    memset(ep.token_key, 0x70 + side, sizeof(ep.token_key));
    if (side == 1) {
        ep.server_tls = s->tls[1];
        ep.conn.wait_for_validation = s->plan->retry != 0;
        ep.conn.version = 0;
        ep.retry_above = s->plan->retry_above;
        ep.shared = end->tickets > 0 ? s->shared : NULL;
        ep.events = &leat_sim_door_events;
        ep.preferred_ip4 = s->plan->preferred ? s->client[0].net.preferred : ep.preferred_ip4;
    }
    if (leat_endpoint_new(machine->ctx, &ep, &machine->ep) != LEAT_OK) {
        leat_sim_fail("the %s's settings are refused", side_names[side]);
    }
}

static void make_machine(leat_sim *s, leat_sim_machine *machine, const leat_sim_end_plan *end,
                         int side, void *user)
{
    leat_ctx_settings ctx;

    machine->plan = end;
    leat_ctx_settings_init(&ctx);
    ctx.mem.slab_size = end->slab_size;
    leat_prng_fill(&s->prng, ctx.seed, sizeof(ctx.seed));
    LEAT_ASSERT(leat_ctx_new(&ctx, &machine->ctx) == LEAT_OK);
    leat_ctx_set_now(machine->ctx, s->now);
    make_endpoint(s, machine, side, user);
}

static leat_sim_app *app_at_door(void *user, const leat_addr *remote)
{
    leat_sim_client *c = leat_sim_client_at(user, remote);

    if (!c) {
        leat_sim_fail("a connection from nowhere");
    }
    return &c->app[1];
}

/* Applications for the next connection, of which no other has the content. */
static void make_apps(leat_sim *s, leat_sim_client *c)
{
    c->plan = *s->plan;
    c->plan.end[1] = s->server_plan;
    c->plan.content = s->plan->content + c->index * 0x10001 + s->round * 0x1000003;
    for (int side = 0; side < 2; side++) {
        leat_sim_app_init(&c->app[side], &c->plan, side, leat_sim_machine_of(s, c, side)->ctx);
    }
    c->connect_at = s->now + c->index * s->plan->stagger_us * LEAT_MICROSECOND;
    c->phase = LEAT_SIM_WAITS;
    c->conn = NULL;
    c->starved = c->restarted = c->unheard = c->returned = c->reborn = false;
    c->reborn_at = LEAT_TIME_NEVER;
}

static FILE *open_keylog(const char *path)
{
    FILE *file = path ? fopen(path, "w") : NULL;

    if (path && !file) {
        leat_sim_fail("%s cannot be written", path);
    }
    return file;
}

void leat_sim_begin(leat_sim *s, const leat_sim_options *options, leat_sim_result *result)
{
    const leat_sim_plan *plan = &options->plan;

    s->options = options;
    s->plan = plan;
    s->result = result;
    s->now = s->began = LEAT_SECOND;
    s->restart_at = LEAT_TIME_NEVER;
    s->server_plan = plan->end[1];
    s->count = plan->clients < 1                      ? 1
               : plan->clients > LEAT_SIM_CLIENTS_MAX ? LEAT_SIM_CLIENTS_MAX
                                                      : plan->clients;
    *result = (leat_sim_result){.digest = 0};
    s->door = (leat_sim_door){app_at_door, s};
    leat_sim_chance_seed(options->seed);
    leat_sim_chance_time(s->now);
    leat_prng_seed(&s->prng, options->seed ^ UINT64_C(0x51a7e));
    if (options->pcap && leat_pcap_open(options->pcap, &s->pcap) != LEAT_OK) {
        leat_sim_fail("%s cannot be written", options->pcap);
    }
    s->keylog = open_keylog(options->keylog);
    leat_sim_tls(options, s->keylog, s->tls);
    make_shared(s);
    for (size_t i = 0; i < s->count; i++) {
        leat_sim_client *c = &s->client[i];

        c->index = i;
        leat_sim_net_init(&c->net, plan, i, options->seed + i * UINT64_C(0x9e3779b97f4a7c15));
        c->net.now = s->now;
        c->net.pcap = s->pcap;
        make_machine(s, &c->machine, &plan->end[0], 0, NULL);
    }
    make_machine(s, &s->server, &s->server_plan, 1, &s->door);
    for (size_t i = 0; i < s->count; i++) {
        make_apps(s, &s->client[i]);
    }
}

/* ---- connections ---- */

void leat_sim_connect(leat_sim *s, leat_sim_client *c)
{
    leat_conn_settings settings = conn_settings(c->machine.plan);
    leat_connect how = {
        .remote = c->net.addr[1],
        .local = c->net.addr[0],
        .server_name = "localhost",
        .tls = s->tls[0],
        .settings = &settings,
        .events = &leat_sim_app_events,
        .user = &c->app[0],
    };
    leat_err err;

    if (s->plan->resume) {
        how.session = c->app[0].keep[LEAT_SIM_SESSION];
    }
    if (s->plan->token) {
        how.token = c->app[0].keep[LEAT_SIM_TOKEN];
    }
    leat_ctx_set_now(c->machine.ctx, s->now + c->machine.ahead);
    err = leat_conn_connect(c->machine.ep, &how, &c->conn);
    if (err != LEAT_OK) {
        leat_sim_fail("connect gives %s", leat_err_name(err));
    }
    c->returned = how.session.len > 0;
    c->connect_at = LEAT_TIME_NEVER;
    c->phase = LEAT_SIM_RUNS;
    s->result->connections++;
    leat_sim_app_forget(&c->app[0]);
    leat_sim_app_begin(&c->app[0], c->conn);
}

void leat_sim_restart(leat_sim *s)
{
    s->restart_at = LEAT_TIME_NEVER;
    s->restarted = true;
    for (size_t i = 0; i < s->count; i++) {
        leat_sim_client *c = &s->client[i];

        if (c->phase == LEAT_SIM_WAITS) {
            continue;
        }
        c->restarted = true;
        c->unheard = !c->app[0].conn || !c->app[0].conn->confirmed;
        c->app[0].shutdown = c->app[1].shutdown = true;
    }
    leat_ctx_set_now(s->server.ctx, s->now + s->server.ahead);
    leat_endpoint_free(s->server.ep);
    leat_shared_free(s->shared);
    make_shared(s);
    make_endpoint(s, &s->server, 1, &s->door);
}

/* Its old connection lives on at the server, beside the new one. */
void leat_sim_rebear(leat_sim *s, leat_sim_client *c)
{
    leat_sim_ghost *ghost = calloc(1, sizeof(*ghost));

    LEAT_ASSERT(ghost != NULL);
    leat_sim_sum_up(s, c);
    ghost->plan = c->plan;
    ghost->has_token = leat_sim_has_token(c->app[1].conn);
    leat_ctx_set_now(s->server.ctx, s->now + s->server.ahead);
    leat_sim_app_move(&c->app[1], &ghost->app, &ghost->plan);
    c->ghost = ghost;
    c->app[0].shutdown = true;
    leat_ctx_set_now(c->machine.ctx, s->now + c->machine.ahead);
    leat_endpoint_free(c->machine.ep);
    leat_sim_app_free(&c->app[0]);
    make_endpoint(s, &c->machine, 0, NULL);
    make_apps(s, c);
    leat_sim_net_unconfirmed(&c->net);
    c->plan.content += 0x2000029;
    c->connect_at = s->now;
    c->reborn = true;
    s->result->reborn++;
}

static void lay_ghost(leat_sim_client *c)
{
    if (c->ghost) {
        leat_sim_app_free(&c->ghost->app);
        free(c->ghost);
        c->ghost = NULL;
    }
}

/* Endpoints that were closed or freed, and those whose settings are others now, are made anew. */
static void make_endpoints_again(leat_sim *s)
{
    bool server = (s->plan->closer == 1 && s->plan->close_how > 0) || s->plan->shrinks;

    for (size_t i = 0; i < s->count; i++) {
        leat_sim_machine *machine = &s->client[i].machine;

        if (s->closing && s->plan->closer == 0) {
            leat_endpoint_free(machine->ep);
            make_endpoint(s, machine, 0, NULL);
        }
    }
    if (s->plan->shrinks) {
        s->server_plan.max_data = s->server_plan.max_data / 2 + 1;
        s->server_plan.max_stream_data = s->server_plan.max_stream_data / 2 + 1;
        s->server_plan.max_streams_bidi = s->server_plan.max_streams_bidi / 2 + 1;
    }
    if (server || (s->closing && s->plan->closer == 1)) {
        leat_endpoint_free(s->server.ep);
        make_endpoint(s, &s->server, 1, &s->door);
    }
}

void leat_sim_next_round(leat_sim *s)
{
    s->round++;
    s->now += s->plan->again_after_us * LEAT_MICROSECOND;
    for (size_t i = 0; i < s->count; i++) {
        leat_ctx_set_now(s->client[i].machine.ctx, s->now + s->client[i].machine.ahead);
    }
    leat_ctx_set_now(s->server.ctx, s->now + s->server.ahead);
    make_endpoints_again(s);
    s->began = s->now;
    s->closing = s->early = s->restarted = false;
    s->restart_at = LEAT_TIME_NEVER;
    for (size_t i = 0; i < s->count; i++) {
        leat_sim_client *c = &s->client[i];
        leat_span kept[LEAT_SIM_KEEPS];

        lay_ghost(c);
        memcpy(kept, c->app[0].keep, sizeof(kept));
        memset(c->app[0].keep, 0, sizeof(kept));
        leat_sim_app_free(&c->app[0]);
        leat_sim_app_free(&c->app[1]);
        leat_sim_net_again(&c->net);
        make_apps(s, c);
        memcpy(c->app[0].keep, kept, sizeof(kept));
    }
}

static void free_machine(leat_sim_machine *machine)
{
    leat_endpoint_free(machine->ep);
    leat_ctx_free(machine->ctx);
}

void leat_sim_finish(leat_sim *s)
{
    for (size_t i = 0; i < s->count; i++) {
        leat_sim_client *c = &s->client[i];

        lay_ghost(c);
        leat_sim_app_free(&c->app[0]);
        leat_sim_app_free(&c->app[1]);
        free_machine(&c->machine);
        leat_sim_net_free(&c->net);
    }
    free_machine(&s->server);
    leat_shared_free(s->shared);
    if (leat_pcap_close(s->pcap) != LEAT_OK || (s->keylog && fclose(s->keylog) != 0)) {
        leat_sim_fail("the capture cannot be written");
    }
}
