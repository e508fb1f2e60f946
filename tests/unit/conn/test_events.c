/* tests/unit/conn/test_events.c: what sinks of both ends are told of what a connection goes
 * through: versions, Retry, keys, paths, connection IDs, ECN, 0-RTT.
 *
 * SPDX-License-Identifier: MIT
 */
#include "early_rig.h"

#include <stdio.h>
#include <string.h>

#include <leat/event.h>

#include "conn/migrate.h"
#include "forge.h"

/* What both ends are told, an event a line: "c key_updated client_1rtt_secret 1 local_update". */
static char told[1 << 16];
static size_t told_len;
static unsigned wanted; /* bits of enum leat_event_type */

typedef struct side {
    unsigned parameters[2]; /* of the peer, of this side */
    uint64_t phase_sent, phase_received;
    unsigned marks[4];       /* packets received, by mark */
    uint64_t acked_marks[3]; /* ect0, ect1, ce of the newest ACK received */
    unsigned spins, spin_bits_sent[2];
    unsigned frames; /* since the last packet */
    unsigned frames_of_sent;
    uint32_t path_sent;
} side;
static side sides[2];

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(told + told_len, sizeof(told) - told_len, format, args);
    va_end(args);
    assert_true(n >= 0 && (size_t)n < sizeof(told) - told_len);
    told_len += (size_t)n;
}

static void say_hex(leat_span bytes)
{
    for (size_t i = 0; i < bytes.len; i++) {
        say("%02x", bytes.data[i]);
    }
}

static void say_versions(const char *whose, leat_span list)
{
    say(" %s", whose);
    for (size_t i = 0; i + 4 <= list.len; i += 4) {
        say(" %02x%02x%02x%02x", list.data[i], list.data[i + 1], list.data[i + 2],
            list.data[i + 3]);
    }
}

static void note_frame(side *s, const leat_event *e)
{
    s->frames++;
    for (size_t i = 0; e->type == LEAT_EVENT_FRAME_RECEIVED && i < e->frame.values; i++) {
        static const char *const keys[] = {"ect0", "ect1", "ce"};

        for (int k = 0; k < 3; k++) {
            if (strcmp(e->frame.key[i], keys[k]) == 0) {
                s->acked_marks[k] = e->frame.value[i];
            }
        }
    }
}

static void note_packet(side *s, const leat_event *e)
{
    const leat_event_packet *p = &e->packet;
    bool one_rtt = strcmp(p->type, "1RTT") == 0;

    if (e->type == LEAT_EVENT_PACKET_SENT) {
        s->frames_of_sent = s->frames;
        s->path_sent = p->path;
        s->phase_sent = one_rtt ? p->key_phase : 0;
        s->spin_bits_sent[p->spin] += one_rtt;
    } else {
        s->phase_received = one_rtt ? p->key_phase : 0;
        s->marks[p->ecn]++;
    }
    s->frames = 0;
}

static void say_event(const leat_event *e)
{
    static const char *const fates[] = {"none", "offered", "accepted", "rejected"};

    say("%s%s ", e->no_conn ? "e" : e->server ? "s" : "c", leat_event_name(e->type));
    switch (e->type) {
    case LEAT_EVENT_VERSION_INFORMATION:
        say_versions("server", e->versions.server);
        say_versions("client", e->versions.client);
        say(" chosen %08x", e->versions.chosen);
        break;
    case LEAT_EVENT_PACKET_SENT:
    case LEAT_EVENT_PACKET_RECEIVED:
        say("%s token %zu", e->packet.type, e->packet.token.len);
        say_versions("versions", e->packet.versions);
        break;
    case LEAT_EVENT_KEY_UPDATED:
    case LEAT_EVENT_KEY_DISCARDED:
        say("%s %u %s", e->key.name, (unsigned)e->key.phase, e->key.trigger);
        break;
    case LEAT_EVENT_HANDSHAKE:
        say("%d resumed %d %s", e->handshake.confirmed, e->handshake.resumed,
            fates[e->handshake.early]);
        break;
    case LEAT_EVENT_CONNECTION_ID:
        say("%s ", e->cid.local ? "local" : "remote");
        say_hex(e->cid.from);
        say(" ");
        say_hex(e->cid.to);
        break;
    case LEAT_EVENT_PATH:
        say("%u %s", e->path.id, e->path.gone ? "gone" : "added");
        break;
    case LEAT_EVENT_MIGRATION:
        say("%u %s", e->migration.path, e->migration.state);
        break;
    case LEAT_EVENT_PACKET_LOST:
        say("%s %s", e->packet.type, e->packet.trigger);
        break;
    default:
        break;
    }
    say("\n");
}

static void tell(leat_event_sink *sink, const leat_event *e)
{
    side *s = &sides[e->server];

    (void)sink;
    switch (e->type) {
    case LEAT_EVENT_FRAME_SENT:
    case LEAT_EVENT_FRAME_RECEIVED:
        note_frame(s, e);
        break;
    case LEAT_EVENT_PACKET_SENT:
    case LEAT_EVENT_PACKET_RECEIVED:
        note_packet(s, e);
        break;
    case LEAT_EVENT_PARAMETERS_SET:
        s->parameters[e->parameters.local]++;
        break;
    case LEAT_EVENT_SPIN_BIT:
        s->spins++;
        break;
    default:
        break;
    }
    if (wanted >> e->type & 1) {
        say_event(e);
    }
}

static leat_event_sink sink = {tell};
static leat_echo *e = &t.echo;

static void forget(void)
{
    told_len = 0;
    told[0] = '\0';
}

static void listen_for(unsigned events)
{
    memset(sides, 0, sizeof(sides));
    wanted = events;
    forget();
    e->setup.client.events_sink = e->setup.server.events_sink = &sink;
}

static void prepare_for(unsigned events)
{
    leat_echo_prepare(e);
    listen_for(events);
}

/* The texts come in this order, each alone on its line. */
static void in_order(const char *const *lines, size_t count)
{
    const char *at = told;

    for (size_t i = 0; i < count; i++) {
        const char *found = strstr(at, lines[i]);

        if (!found || (found != told && found[-1] != '\n')) {
            print_message("'%s' is missing behind the first %zu in:\n%s", lines[i], i, told);
            fail();
        }
        at = found + strlen(lines[i]);
    }
}
#define IN_ORDER(...)                                                                              \
    in_order((const char *const[]){__VA_ARGS__},                                                   \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void parameters_were_told_once(void)
{
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sides[i].parameters[0], 1);
        assert_int_equal(sides[i].parameters[1], 1);
    }
}

/* ---- versions, Retry ---- */

#define V1 "00000001"
#define V2 "6b3343cf"

static void prefer(leat_conn_settings *s, uint32_t first, uint32_t second)
{
    s->versions[0] = first;
    s->versions[1] = second;
    s->version_count = second ? 2 : 1;
}

static void a_server_tells_to_which_version_it_moves(void **state)
{
    (void)state;
    prepare_for(1u << LEAT_EVENT_VERSION_INFORMATION);
    prefer(&e->setup.server.conn, LEAT_QUIC_V2, LEAT_QUIC_V1);
    leat_echo_connect(e);
    IN_ORDER("cVERSION_INFORMATION  server client " V1 " " V2 " chosen " V1 "\n",
             "sVERSION_INFORMATION  server " V2 " " V1 " client chosen " V1 "\n",
             "sVERSION_INFORMATION  server " V2 " " V1 " client " V1 " " V2 " chosen " V2 "\n",
             "cVERSION_INFORMATION  server " V2 " " V1 " client " V1 " " V2 " chosen " V2 "\n");
    parameters_were_told_once();
    leat_echo_finish(e);
}

static void version_negotiation_is_told_at_both_ends(void **state)
{
    (void)state;
    prepare_for(1u << LEAT_EVENT_VERSION_INFORMATION | 1u << LEAT_EVENT_PACKET_SENT |
                1u << LEAT_EVENT_PACKET_RECEIVED);
    prefer(&e->setup.server.conn, LEAT_QUIC_V2, 0);
    prefer(&e->setup.conn, LEAT_QUIC_V1, LEAT_QUIC_V2);
    leat_echo_connect(e);
    IN_ORDER("eVERSION_INFORMATION  server " V2 " client " V1 " chosen 00000000\n",
             "ePACKET_SENT version_negotiation token 0 versions " V2 " ",
             "cPACKET_RECEIVED version_negotiation token 0 versions " V2 " ",
             "cVERSION_INFORMATION  server " V2 " ", "cPACKET_SENT initial ");
    parameters_were_told_once();
    leat_echo_finish(e);
}

static void no_version_in_common_is_told(void **state)
{
    (void)state;
    prepare_for(1u << LEAT_EVENT_VERSION_INFORMATION);
    prefer(&e->setup.server.conn, LEAT_QUIC_V2, 0);
    prefer(&e->setup.conn, LEAT_QUIC_V1, 0);
    leat_echo_begin(e);
    assert_true(leat_pair_run(&e->pair, leat_echo_client_closed, e, 5 * LEAT_SECOND));
    assert_non_null(
        strstr(told, " client " V1 " chosen 00000000\ncVERSION_INFORMATION  server " V2));
    assert_string_equal(told + told_len - 9, "00000000\n");
    leat_pair_free(&e->pair);
}

static void a_retry_is_told_at_both_ends(void **state)
{
    (void)state;
    prepare_for(1u << LEAT_EVENT_PACKET_SENT | 1u << LEAT_EVENT_PACKET_RECEIVED |
                1u << LEAT_EVENT_CONNECTION_ID);
    e->setup.server.conn.wait_for_validation = true;
    leat_echo_connect(e);
    IN_ORDER("cPACKET_SENT initial token 0", "ePACKET_SENT retry token ",
             "cPACKET_RECEIVED retry token ", "cCONNECTION_ID remote ",
             "cPACKET_SENT initial token ", "sPACKET_RECEIVED initial token ",
             "cCONNECTION_ID remote ");
    assert_null(strstr(told, "retry token 0"));
    assert_null(strstr(told, "sPACKET_RECEIVED initial token 0"));
    parameters_were_told_once();
    leat_echo_finish(e);
}

/* ---- keys ---- */

static void a_key_update_is_told_by_both_ends_with_its_phases(void **state)
{
    (void)state;
    prepare_for(0);
    leat_echo_connect(e);
    leat_echo_settle(e, LEAT_SECOND);
    listen_for(1u << LEAT_EVENT_KEY_UPDATED | 1u << LEAT_EVENT_KEY_DISCARDED);
    assert_int_equal(leat_conn_update_keys(e->pair.conn), LEAT_OK);
    leat_echo_settle(e, 5 * LEAT_SECOND);
    assert_string_equal(told, "cKEY_DISCARDED client_1rtt_secret 0 local_update\n"
                              "cKEY_UPDATED client_1rtt_secret 1 local_update\n"
                              "sKEY_UPDATED client_1rtt_secret 1 remote_update\n"
                              "sKEY_DISCARDED server_1rtt_secret 0 remote_update\n"
                              "sKEY_UPDATED server_1rtt_secret 1 remote_update\n"
                              "cKEY_UPDATED server_1rtt_secret 1 local_update\n"
                              "sKEY_DISCARDED client_1rtt_secret 0 tls\n"
                              "cKEY_DISCARDED server_1rtt_secret 0 tls\n");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sides[i].phase_sent, 1);
        assert_int_equal(sides[i].phase_received, 1);
    }
    /* Two more, three PTOs apart (RFC 9001 §6.5): the keys before have gone by then. */
    leat_echo_bytes(e, 1000, LEAT_SECOND);
    leat_echo_settle(e, LEAT_SECOND);
    forget();
    for (int i = 0; i < 2; i++) {
        e->pair.now += leat_conn_rekey_wait(e->server.conn);
        leat_echo_settle(e, LEAT_SECOND);
        assert_int_equal(leat_conn_update_keys(e->server.conn), LEAT_OK);
        leat_echo_bytes(e, 1000, LEAT_SECOND);
        leat_echo_settle(e, LEAT_SECOND);
    }
    IN_ORDER("cKEY_DISCARDED server_1rtt_secret 1 tls\n",
             "sKEY_DISCARDED server_1rtt_secret 2 local_update\n",
             "cKEY_UPDATED server_1rtt_secret 3 remote_update\n");
    assert_int_equal(sides[0].phase_received, 3);
    leat_echo_finish(e);
}

static void keys_of_the_handshake_come_and_go(void **state)
{
    (void)state;
    prepare_for(1u << LEAT_EVENT_KEY_UPDATED | 1u << LEAT_EVENT_KEY_DISCARDED);
    leat_echo_connect(e);
    leat_echo_settle(e, LEAT_SECOND);
    for (int end = 0; end < 2; end++) {
        for (int dir = 0; dir < 2; dir++) {
            static const char *const levels[] = {"initial", "handshake"};

            for (int level = 0; level < 2; level++) {
                char updated[64], discarded[64];

                snprintf(updated, sizeof(updated), "%cKEY_UPDATED %s_%s_secret 0 tls\n", "cs"[end],
                         dir ? "server" : "client", levels[level]);
                snprintf(discarded, sizeof(discarded), "%cKEY_DISCARDED %s_%s_secret 0 tls\n",
                         "cs"[end], dir ? "server" : "client", levels[level]);
                IN_ORDER(updated, discarded);
            }
        }
    }
    leat_echo_finish(e);
}

/* ---- 0-RTT ---- */

static void the_fate_of_early_data_is_told(void **state)
{
    leat_shared *other = make_shared(9, NULL); /* knows no ticket of the first */

    (void)state;
    prepare();
    first_connection();
    listen_for(1u << LEAT_EVENT_HANDSHAKE | 1u << LEAT_EVENT_PARAMETERS_RESTORED);
    e->pair.client->host.sink = e->pair.server->host.sink = &sink;
    connect_and_ask(1);
    answers_come(LEAT_SECOND, STREAM_SIZE);
    leat_echo_settle(e, LEAT_SECOND);
    IN_ORDER("cPARAMETERS_RESTORED \n", "cHANDSHAKE 0 resumed 1 accepted\n");
    IN_ORDER("sHANDSHAKE 0 resumed 1 accepted\n");
    parameters_were_told_once();
    close_it();
    another_server(other);
    e->pair.server->host.sink = &sink;
    listen_for(1u << LEAT_EVENT_HANDSHAKE);
    connect_and_ask(1);
    answers_come(LEAT_SECOND, STREAM_SIZE);
    IN_ORDER("cHANDSHAKE 0 resumed 0 rejected\n");
    finish();
    leat_shared_free(other);
}

/* ---- paths ---- */

static const leat_addr elsewhere = {.family = 4, .port = 50000, .ip = {192, 168, 7, 7}};

static void settled(unsigned events)
{
    prepare_for(0);
    leat_echo_connect(e);
    leat_echo_bytes(e, 100000, 5 * LEAT_SECOND);
    leat_echo_settle(e, LEAT_SECOND);
    listen_for(events);
}

#define OF_PATHS                                                                                   \
    (1u << LEAT_EVENT_PATH | 1u << LEAT_EVENT_MIGRATION | 1u << LEAT_EVENT_CONNECTION_ID)

static void a_migration_is_told_by_both_ends(void **state)
{
    (void)state;
    settled(OF_PATHS);
    assert_int_equal(leat_conn_migrate(e->pair.conn, &elsewhere), LEAT_OK);
    leat_echo_settle(e, 100 * LEAT_MILLISECOND);
    leat_echo_bytes(e, 1000, LEAT_SECOND);
    assert_int_equal(sides[0].path_sent, 1);
    assert_int_equal(sides[1].path_sent, 1);
    leat_echo_settle(e, 5 * LEAT_SECOND);
    IN_ORDER("cPATH 1 added\n", "cMIGRATION 1 probing_started\n",
             "cMIGRATION 1 probing_successful\n", "cMIGRATION 1 migration_started\n",
             "cCONNECTION_ID remote ", "cMIGRATION 1 migration_complete\n", "cPATH 0 gone\n");
    IN_ORDER("sPATH 1 added\n", "sMIGRATION 1 migration_started\n", "sCONNECTION_ID local ",
             "sCONNECTION_ID remote ", "sMIGRATION 1 migration_complete\n", "sPATH 0 gone\n");
    IN_ORDER("cCONNECTION_ID remote ", "cCONNECTION_ID local ");
    leat_echo_finish(e);
}

static bool nothing_from_elsewhere(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)data, (void)len;
    return !to_server || !leat_addr_equal(&pair->from, &elsewhere);
}

static void a_path_that_leads_nowhere_is_told_to_be_given_up(void **state)
{
    (void)state;
    settled(OF_PATHS);
    e->pair.filter = nothing_from_elsewhere;
    assert_int_equal(leat_conn_migrate(e->pair.conn, &elsewhere), LEAT_OK);
    leat_echo_settle(e, 5 * LEAT_SECOND);
    assert_string_equal(told, "cPATH 1 added\ncMIGRATION 1 probing_started\n"
                              "cMIGRATION 1 probing_abandoned\ncPATH 1 gone\n");
    leat_echo_finish(e);
}

/* A NAT that gives another port: the client knows nothing, and goes on with its IDs. */
static void a_rebinding_is_told_by_the_server(void **state)
{
    (void)state;
    settled(OF_PATHS);
    e->pair.nat = e->pair.client_addr;
    e->pair.nat.port ^= 1;
    leat_echo_bytes(e, 1000, LEAT_SECOND);
    leat_echo_settle(e, 5 * LEAT_SECOND);
    IN_ORDER("sPATH 1 added\n", "sMIGRATION 0 probing_started\n",
             "sMIGRATION 1 migration_started\n", "sMIGRATION 1 migration_complete\n",
             "sPATH 0 gone\n");
    assert_null(strstr(told, "CONNECTION_ID"));
    assert_null(strchr(told, 'c') == told ? told : NULL);
    leat_echo_finish(e);
}

/* ---- ECN, spin bit ---- */

static bool mark_some(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    unsigned *count = pair->user;

    (void)data, (void)len;
    if (to_server && ++*count % 8 == 0) {
        pair->ecn = LEAT_ECN_CE;
    }
    return true;
}

static void marks_are_told_and_what_the_peer_counts(void **state)
{
    unsigned count = 0;

    (void)state;
    settled(0);
    e->pair.user = &count;
    e->pair.filter = mark_some;
    leat_echo_bytes(e, 100000, 5 * LEAT_SECOND);
    leat_echo_settle(e, LEAT_SECOND);
    assert_true(count >= 64);
    assert_int_equal(sides[1].marks[LEAT_ECN_CE], count / 8);
    assert_int_equal(sides[1].marks[LEAT_ECN_ECT0], count - count / 8);
    e->pair.filter = NULL;
    leat_echo_bytes(e, 1000, LEAT_SECOND); /* brings an ACK of all that was marked */
    assert_int_equal(sides[0].acked_marks[2], count / 8);
    assert_true(sides[0].acked_marks[0] > count - count / 8);
    assert_int_equal(sides[0].acked_marks[1], 0);
    leat_echo_finish(e);
}

static void each_turn_of_the_spin_bit_is_told(void **state)
{
    uint8_t seed = 0;

    (void)state;
    do { /* one connection of sixteen has it off */
        prepare_for(0);
        e->setup.seed = ++seed;
        leat_echo_connect(e);
        if (e->pair.conn->grease.spins && e->server.conn->grease.spins) {
            break;
        }
        leat_echo_finish(e);
    } while (seed < 100);
    leat_echo_settle(e, LEAT_SECOND);
    listen_for(0);
    leat_echo_bytes(e, 1 << 20, 10 * LEAT_SECOND);
    for (int i = 0; i < 2; i++) {
        assert_true(sides[i].spins > 4);
        assert_true(sides[i].spin_bits_sent[0] > 0 && sides[i].spin_bits_sent[1] > 0);
    }
    leat_echo_finish(e);
}

/* ---- what goes wrong ---- */

static void a_packet_that_breaks_a_rule_has_its_frames_to_itself(void **state)
{
    static const uint8_t frames[] = {0x01, 0x01, 0x1e}; /* HANDSHAKE_DONE, to a server */

    (void)state;
    settled(1u << LEAT_EVENT_PACKET_RECEIVED | 1u << LEAT_EVENT_PACKET_SENT);
    leat_forge(&e->pair, e->pair.conn, frames, sizeof(frames));
    leat_echo_settle(e, LEAT_SECOND);
    IN_ORDER("sPACKET_RECEIVED 1RTT", "sPACKET_SENT 1RTT", "cPACKET_RECEIVED 1RTT");
    assert_int_equal(sides[1].frames_of_sent, 1); /* CONNECTION_CLOSE */
    leat_pair_free(&e->pair);
}

static bool lose_the_first(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    unsigned *count = pair->user;

    (void)data, (void)len;
    return !to_server || ++*count != 1;
}

static void a_loss_is_told_with_what_showed_it(void **state)
{
    unsigned count = 0;

    (void)state;
    settled(1u << LEAT_EVENT_PACKET_LOST);
    e->pair.user = &count;
    e->pair.filter = lose_the_first;
    leat_echo_bytes(e, 20000, 5 * LEAT_SECOND);
    IN_ORDER("cPACKET_LOST 1RTT reordering_threshold\n");
    leat_echo_settle(e, LEAT_SECOND);
    forget();
    count = 0;
    leat_echo_bytes(e, 100, 5 * LEAT_SECOND); /* what follows is one probe */
    leat_echo_settle(e, LEAT_SECOND);
    IN_ORDER("cPACKET_LOST 1RTT time_threshold\n");
    leat_echo_finish(e);
}

/* ---- nothing depends on it ---- */

static void run_without_or_with(leat_event_sink *of, size_t bytes[2], uint64_t *last)
{
    unsigned count = 0;

    prepare_for(0);
    e->setup.client.events_sink = e->setup.server.events_sink = of;
    leat_echo_connect(e);
    e->pair.user = &count;
    e->pair.filter = mark_some;
    leat_echo_bytes(e, 300000, 5 * LEAT_SECOND);
    assert_int_equal(leat_conn_update_keys(e->pair.conn), LEAT_OK);
    assert_int_equal(leat_conn_migrate(e->pair.conn, &elsewhere), LEAT_OK);
    leat_echo_bytes(e, 300000, 5 * LEAT_SECOND);
    memcpy(bytes, e->pair.bytes, sizeof(e->pair.bytes));
    *last = leat_random_u64(&e->pair.client->host.shared->random);
    leat_echo_finish(e);
}

/* The same datagrams, and the same random numbers afterwards. */
static void a_run_is_the_same_with_a_sink_and_without(void **state)
{
    size_t without[2], with[2];
    uint64_t last_without, last_with;

    (void)state;
    run_without_or_with(NULL, without, &last_without);
    run_without_or_with(&sink, with, &last_with);
    assert_memory_equal(without, with, sizeof(with));
    assert_true(last_without == last_with);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_tells_to_which_version_it_moves),
        cmocka_unit_test(version_negotiation_is_told_at_both_ends),
        cmocka_unit_test(no_version_in_common_is_told),
        cmocka_unit_test(a_retry_is_told_at_both_ends),
        cmocka_unit_test(a_key_update_is_told_by_both_ends_with_its_phases),
        cmocka_unit_test(keys_of_the_handshake_come_and_go),
        cmocka_unit_test(the_fate_of_early_data_is_told),
        cmocka_unit_test(a_migration_is_told_by_both_ends),
        cmocka_unit_test(a_path_that_leads_nowhere_is_told_to_be_given_up),
        cmocka_unit_test(a_rebinding_is_told_by_the_server),
        cmocka_unit_test(marks_are_told_and_what_the_peer_counts),
        cmocka_unit_test(each_turn_of_the_spin_bit_is_told),
        cmocka_unit_test(a_packet_that_breaks_a_rule_has_its_frames_to_itself),
        cmocka_unit_test(a_loss_is_told_with_what_showed_it),
        cmocka_unit_test(a_run_is_the_same_with_a_sink_and_without),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
