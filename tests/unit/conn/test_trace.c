/* tests/unit/conn/test_trace.c: what a sink is told of each frame: its name and every number in it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <leat/event.h>

#include "conn/conn.h"
#include "echo.h"
#include "forge.h"

static leat_echo e;
static leat_event_type wanted = LEAT_EVENT_FRAME_RECEIVED;
static char told[1024]; /* of the frames since it was emptied */

static void tell(leat_event_sink *sink, const leat_event *event)
{
    const leat_event_frame *f = &event->frame;
    size_t n = strlen(told);

    (void)sink;
    if (event->type != wanted) {
        return;
    }
    n += (size_t)snprintf(told + n, sizeof(told) - n, "%s%s", n ? "; " : "", f->name);
    for (size_t i = 0; i < f->values; i++) {
        n += (size_t)snprintf(told + n, sizeof(told) - n, " %s=%llu", f->key[i],
                              (unsigned long long)f->value[i]);
    }
    if (f->data_key) {
        n += (size_t)snprintf(told + n, sizeof(told) - n, " %s=", f->data_key);
        for (size_t i = 0; i < f->data.len; i++) {
            n += (size_t)snprintf(told + n, sizeof(told) - n, "%02x", f->data.data[i]);
        }
    }
    assert_true(n < sizeof(told));
}

static leat_event_sink sink = {tell};

/* The client is told nothing of streams that it never opened. */
static bool to_server_alone(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    (void)pair, (void)data, (void)len;
    return to_server;
}

#define FRAME(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static const struct {
    const char *text;
    const uint8_t *bytes;
    size_t len;
} frames[] = {
    {"ping", FRAME(0x01)},
    {"reset_stream stream_id=0 error_code=7 final_size=10", FRAME(0x04, 0, 7, 10)},
    {"reset_stream_at stream_id=4 error_code=7 final_size=10 reliable_size=5",
     FRAME(0x24, 4, 7, 10, 5)},
    {"stop_sending stream_id=8 error_code=9", FRAME(0x05, 8, 9)},
    {"stream stream_id=12 offset=3 length=2 fin=1", FRAME(0x0f, 12, 3, 2, 'h', 'i')},
    {"max_data maximum=1000", FRAME(0x10, 0x43, 0xe8)},
    {"max_stream_data stream_id=16 maximum=1000", FRAME(0x11, 16, 0x43, 0xe8)},
    {"max_streams stream_type=0 maximum=5", FRAME(0x12, 5)},
    {"max_streams stream_type=1 maximum=6", FRAME(0x13, 6)},
    {"data_blocked limit=5", FRAME(0x14, 5)},
    {"stream_data_blocked stream_id=20 limit=5", FRAME(0x15, 20, 5)},
    {"streams_blocked stream_type=0 limit=5", FRAME(0x16, 5)},
    {"streams_blocked stream_type=1 limit=6", FRAME(0x17, 6)},
    {"retire_connection_id sequence_number=1", FRAME(0x19, 1)},
    {"path_challenge data=0102030405060708", FRAME(0x1a, 1, 2, 3, 4, 5, 6, 7, 8)},
    {"datagram length=2", FRAME(0x31, 2, 'h', 'i')},
    {"ack_frequency sequence_number=0 ack_eliciting_threshold=4 requested_max_ack_delay=20000 "
     "reordering_threshold=1",
     FRAME(0x40, 0xaf, 0, 4, 0x80, 0, 0x4e, 0x20, 1)},
    {"connection_close error_code=10 trigger_frame_type=0 reason=7768793f",
     FRAME(0x1c, 10, 0, 4, 'w', 'h', 'y', '?')},
};

static void every_frame_is_told_of_with_its_numbers(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    e.setup.server.events_sink = &sink;
    e.setup.server.conn.max_datagram_frame_size = 65535;
    e.setup.server.conn.min_ack_delay = LEAT_MILLISECOND;
    leat_echo_connect(&e);
    leat_echo_settle(&e, LEAT_SECOND);
    e.pair.filter = to_server_alone;
    for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
        told[0] = '\0';
        leat_forge(&e.pair, e.pair.conn, frames[i].bytes, frames[i].len);
        leat_ctx_turn(e.pair.ctx, e.pair.now);
        assert_string_equal(told, frames[i].text);
    }
    leat_pair_free(&e.pair);
}

/* The server's first flight is lost, and so are the client's probes: the server's own probe brings
 * the ACK again, 999 ms old. */
static bool the_servers_probe_is_the_first_that_passes(leat_pair *pair, bool to_server,
                                                       uint8_t *data, size_t *len)
{
    unsigned *count = pair->user;

    (void)data, (void)len;
    return to_server ? ++count[0] == 1 : ++count[1] > 1;
}

static bool ack_is_told(void *arg)
{
    (void)arg;
    return strstr(told, "ack ack_delay=999") != NULL;
}

static void ask_for_a_late_ack(leat_endpoint_settings *of, leat_event_type type)
{
    unsigned count[2] = {0, 0};

    e.setup.delay = 20 * LEAT_MILLISECOND;
    of->events_sink = &sink;
    wanted = type;
    told[0] = '\0';
    leat_pair_init(&e.pair, &e.setup);
    e.pair.filter = the_servers_probe_is_the_first_that_passes;
    e.pair.user = count;
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    assert_true(leat_pair_run(&e.pair, ack_is_told, NULL, 1100 * LEAT_MILLISECOND));
    assert_non_null(strstr(told, "ack ack_delay=999000000"));
    leat_pair_free(&e.pair);
    wanted = LEAT_EVENT_FRAME_RECEIVED;
}

static void an_ack_of_the_handshake_has_one_delay_at_both_ends(void **state)
{
    (void)state;
    leat_echo_prepare(&e);
    ask_for_a_late_ack(&e.setup.server, LEAT_EVENT_FRAME_SENT);
    leat_echo_prepare(&e);
    ask_for_a_late_ack(&e.setup.client, LEAT_EVENT_FRAME_RECEIVED);
}

/* As others write and read it, too. */
static void an_ack_of_the_handshake_has_the_exponent_that_others_give_it(void **state)
{
    static const leat_frame_ack ack = {.delay = 10};

    (void)state;
    leat_echo_prepare(&e);
    leat_echo_connect(&e);
    e.pair.conn->peer.ack_delay_exponent = 5;
    assert_int_equal(leat_conn_ack_delay(e.pair.conn, LEAT_SPACE_INITIAL, &ack), 80000);
    assert_int_equal(leat_conn_ack_delay(e.pair.conn, LEAT_SPACE_HANDSHAKE, &ack), 80000);
    assert_int_equal(leat_conn_ack_delay(e.pair.conn, LEAT_SPACE_APP, &ack), 320000);
    leat_echo_finish(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_frame_is_told_of_with_its_numbers),
        cmocka_unit_test(an_ack_of_the_handshake_has_one_delay_at_both_ends),
        cmocka_unit_test(an_ack_of_the_handshake_has_the_exponent_that_others_give_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
