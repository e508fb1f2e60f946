/* qlog files: which connections have one, what the records say, and what a hostile peer's texts do.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include <leat/event.h>

#include "io/json.h"

static char folder[] = "/tmp/leat-qlog-XXXXXX";
static leat_mem *mem;
static leat_qlog *qlog;

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/leat-qlog-XXXXXX");
    return mkdtemp(folder) != NULL && leat_mem_new(NULL, &mem) == LEAT_OK &&
                   leat_qlog_open(folder, &qlog) == LEAT_OK
               ? 0
               : -1;
}

/* Removes what is in the folder, and tells how many files there were. */
static int empty_folder(void)
{
    DIR *dir = opendir(folder);
    int n = 0;
    for (struct dirent *d; (d = readdir(dir)) != NULL;) {
        if (d->d_name[0] != '.') {
            n += unlinkat(dirfd(dir), d->d_name, 0) == 0;
        }
    }
    closedir(dir);
    return n;
}

static int tear_down(void **state)
{
    (void)state;
    leat_qlog_close(qlog);
    empty_folder();
    leat_mem_free(mem);
    return rmdir(folder);
}

static const uint8_t cid[] = {0x83, 0x94, 0xc8, 0xf0};

static void emit(leat_event *event)
{
    leat_event_sink *sink = leat_qlog_sink(qlog);
    if (event->odcid.data == NULL) {
        event->odcid = (leat_span){cid, sizeof(cid)};
    }
    sink->emit(sink, event);
}

static void emit_started(bool server, leat_time now)
{
    static const uint8_t scid[] = {1, 2};
    leat_event e = {.type = LEAT_EVENT_CONNECTION_STARTED, .now = now, .server = server};
    e.started.remote = parse_addr("[2001:db8::1]:443");
    e.started.local = parse_addr("[::1]:999");
    e.started.version = 1;
    e.started.dcid = (leat_span){cid, sizeof(cid)};
    e.started.scid = (leat_span){scid, sizeof(scid)};
    emit(&e);
}

static void emit_closed(leat_time now)
{
    leat_event e = {.type = LEAT_EVENT_CONNECTION_CLOSED, .now = now};
    e.closed.kind = LEAT_CLOSE_IDLE;
    emit(&e);
}

static void emit_frame(leat_event_frame frame)
{
    leat_event e = {.type = LEAT_EVENT_FRAME_SENT, .frame = frame};
    emit(&e);
}

static void emit_packet(leat_event_type type, leat_time now, uint64_t number)
{
    leat_event e = {.type = type, .now = now};
    e.packet = (leat_event_packet){.type = "1RTT", .number = number, .len = 1252};
    emit(&e);
}

/* The text of the client's file; records begin with 0x1e, which is shown as '>'. */
static const char *file_text(const char *name)
{
    static char text[200000];
    char path[512];
    leat_buf buf;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(leat_file_read(mem, path, sizeof(text) - 1, &buf), LEAT_OK);
    memcpy(text, buf.data, buf.len);
    for (size_t i = 0; i < buf.len; i++) {
        text[i] = text[i] == 0x1e ? '>' : text[i];
    }
    leat_buf_release(&buf);
    return text;
}

/* The record that follows the nth separator (0: the header), without its line feed. */
static const char *record(const char *name, int n)
{
    static char out[100000];
    const char *text = file_text(name);
    for (; n >= 0; n--) {
        text = strchr(text, '>');
        assert_non_null(text);
        text++;
    }
    const char *end = strchr(text, '\n');
    assert_non_null(end);
    memcpy(out, text, (size_t)(end - text));
    out[end - text] = '\0';
    return out;
}

static int count_records(const char *name)
{
    int n = 0;
    for (const char *p = file_text(name); (p = strchr(p, '>')) != NULL; p++) {
        n++;
    }
    return n;
}

#define CLIENT "8394c8f0_client.sqlog"
#define SERVER "8394c8f0_server.sqlog"

static void each_side_has_a_file_named_by_the_odcid(void **state)
{
    (void)state;
    emit_started(false, 1000);
    emit_started(true, 1000);
    emit_closed(2000);
    const char *header = record(CLIENT, 0);
    const char *begin =
        "{\"file_schema\":\"urn:ietf:params:qlog:file:sequential\","
        "\"serialization_format\":\"application/qlog+json-seq\",\"title\":\"leat\",\"trace\":{"
        "\"common_fields\":{\"group_id\":\"8394c8f0\",\"time_format\":\"relative_to_epoch\","
        "\"reference_time\":{\"clock_type\":\"monotonic\",\"epoch\":\"unknown\","
        "\"wall_clock_time\":\"20";
    assert_memory_equal(header, begin, strlen(begin));
    const char *end = "Z\"}},\"vantage_point\":{\"name\":\"leat\",\"type\":\"client\"},"
                      "\"event_schemas\":[\"urn:ietf:params:qlog:events:quic-12\"]}}";
    assert_string_equal(header + strlen(header) - strlen(end), end);
    leat_qlog_close(qlog); /* writes what is still open */
    qlog = NULL;
    assert_non_null(strstr(record(SERVER, 0), "\"type\":\"server\"}"));
    assert_int_equal(empty_folder(), 2);
}

static void events_are_written_with_their_data(void **state)
{
    (void)state;
    emit_started(false, 1000);
    leat_event e = {.type = LEAT_EVENT_METRICS_UPDATED, .now = 1000 + 12345678};
    e.metrics = (leat_event_metrics){.rtt_min = 1500000,
                                     .rtt_smoothed = 2000001,
                                     .rtt_latest = 3000000,
                                     .rtt_var = 7,
                                     .cwnd = 12000,
                                     .bytes_in_flight = 1252,
                                     .ssthresh = UINT64_MAX};
    emit(&e);
    e = (leat_event){.type = LEAT_EVENT_PACKET_LOST, .now = 1000 + LEAT_SECOND};
    e.packet = (leat_event_packet){.type = "1RTT", .number = 9, .trigger = "time_threshold"};
    emit(&e);
    e = (leat_event){.type = LEAT_EVENT_PACKET_DROPPED, .now = 500}; /* before the start: time 0 */
    e.dropped = (leat_event_dropped){
        .packet = "initial", .len = 9, .reason = "no keys", .trigger = "key_unavailable"};
    emit(&e);
    emit_closed(1000 + 2 * LEAT_SECOND);
    assert_string_equal(
        record(CLIENT, 1),
        "{\"time\":0.000000,\"name\":\"quic:connection_started\",\"data\":{"
        "\"local\":{\"ip_v6\":\"::1\",\"port_v6\":999,\"connection_ids\":[\"0102\"]},"
        "\"remote\":{\"ip_v6\":\"2001:db8::1\",\"port_v6\":443,"
        "\"connection_ids\":[\"8394c8f0\"]}}}");
    assert_string_equal(record(CLIENT, 2),
                        "{\"time\":12.345678,\"name\":\"quic:recovery_metrics_updated\",\"data\":{"
                        "\"min_rtt\":1.500000,\"smoothed_rtt\":2.000001,\"latest_rtt\":3.000000,"
                        "\"rtt_variance\":0.000007,\"pto_count\":0,\"congestion_window\":12000,"
                        "\"bytes_in_flight\":1252}}");
    assert_string_equal(record(CLIENT, 3),
                        "{\"time\":1000.000000,\"name\":\"quic:packet_lost\",\"data\":{"
                        "\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":9},"
                        "\"trigger\":\"time_threshold\"}}");
    assert_string_equal(record(CLIENT, 4),
                        "{\"time\":0.000000,\"name\":\"quic:packet_dropped\",\"data\":{"
                        "\"header\":{\"packet_type\":\"initial\"},\"raw\":{\"length\":9},"
                        "\"details\":{\"reason\":\"no keys\"},"
                        "\"trigger\":\"key_unavailable\"}}");
    assert_string_equal(record(CLIENT, 5),
                        "{\"time\":2000.000000,\"name\":\"quic:connection_closed\","
                        "\"data\":{\"initiator\":\"local\",\"trigger\":\"idle_timeout\"}}");
}

static void a_preferred_address_is_written_without_its_token(void **state)
{
    static const char *const begin = "{\"time\":0.000000,\"name\":\"quic:parameters_set\",";
    static const char *const end =
        "\"preferred_address\":{\"ip_v4\":\"192.0.2.1\",\"port_v4\":4433,"
        "\"connection_id\":\"8394c8f0\"}}}";
    leat_event e = {.type = LEAT_EVENT_PARAMETERS_SET};
    const char *text;

    (void)state;
    emit_started(false, 0);
    e.parameters.preferred_ip4 = parse_addr("192.0.2.1:4433");
    e.parameters.preferred_ip6.family = 6;
    e.parameters.preferred_cid = (leat_span){cid, sizeof(cid)};
    emit(&e);
    e.parameters = (leat_event_parameters){.local = true};
    emit(&e);
    emit_closed(0);
    text = record(CLIENT, 2);
    assert_int_equal(strncmp(text, begin, strlen(begin)), 0);
    assert_string_equal(text + strlen(text) - strlen(end), end);
    assert_null(strstr(record(CLIENT, 3), "preferred_address"));
}

static void frames_stand_in_their_packet(void **state)
{
    (void)state;
    static const leat_event_ack_range ranges[] = {{7, 9}, {2, 2}};
    static const uint8_t token[] = {0xab};
    emit_started(false, 0);
    emit_frame((leat_event_frame){.type = 2,
                                  .name = "ack",
                                  .key = {"ack_delay"},
                                  .value = {25000},
                                  .values = 1,
                                  .ranges = ranges,
                                  .range_count = 2});
    emit_frame((leat_event_frame){.type = 15,
                                  .name = "stream",
                                  .key = {"stream_id", "offset", "length", "fin"},
                                  .value = {4, 100, 20, 1},
                                  .values = 4});
    emit_frame((leat_event_frame){.type = 1, .name = "ping"});
    emit_packet(LEAT_EVENT_PACKET_SENT, 1, 5);
    emit_frame((leat_event_frame){
        .type = 7, .name = "new_token", .data_key = "token", .data = {token, 1}});
    emit_frame((leat_event_frame){.type = 0x13,
                                  .name = "max_streams",
                                  .key = {"stream_type", "maximum"},
                                  .value = {1, 8},
                                  .values = 2});
    emit_packet(LEAT_EVENT_PACKET_SENT, 2, 6);
    emit_packet(LEAT_EVENT_PACKET_SENT, 3, 7);
    emit_closed(4);
    assert_string_equal(strstr(record(CLIENT, 2), "\"frames\""),
                        "\"frames\":[{\"frame_type\":\"ack\",\"ack_delay\":0.025000,"
                        "\"acked_ranges\":[[7,9],[2]]},"
                        "{\"frame_type\":\"stream\",\"stream_id\":4,\"offset\":100,"
                        "\"raw\":{\"length\":20},\"fin\":true},"
                        "{\"frame_type\":\"ping\"}],\"raw\":{\"length\":1252}}}");
    assert_string_equal(
        strstr(record(CLIENT, 3), "\"frames\""),
        "\"frames\":[{\"frame_type\":\"new_token\",\"token\":{\"type\":\"resumption\","
        "\"raw\":{\"length\":1}}},{\"frame_type\":\"max_streams\",\"stream_type\":"
        "\"unidirectional\",\"maximum\":8}],\"raw\":{\"length\":1252}}}");
    assert_null(strstr(record(CLIENT, 4), "frames"));
}

static void close_says_who_and_why(void **state)
{
    (void)state;
    static const struct {
        leat_close_info info;
        const char *data;
    } cases[] = {
        {{.kind = LEAT_CLOSE_LOCAL},
         "{\"initiator\":\"local\",\"connection_error\":\"no_error\","
         "\"trigger\":\"unspecified\"}}"},
        {{.kind = LEAT_CLOSE_PEER, .code = 10},
         "{\"initiator\":\"remote\",\"connection_error\":\"protocol_violation\","
         "\"trigger\":\"error\"}}"},
        {{.kind = LEAT_CLOSE_PEER,
          .application = true,
          .code = 256,
          .reason = {(const uint8_t *)"bye", 3}},
         "{\"initiator\":\"remote\",\"application_error\":\"unknown\",\"error_code\":256,"
         "\"reason\":\"bye\",\"trigger\":\"application\"}}"},
        {{.kind = LEAT_CLOSE_PEER, .code = 0x12a},
         "{\"initiator\":\"remote\",\"connection_error\":\"crypto_error_0x12a\","
         "\"trigger\":\"error\"}}"},
        {{.kind = LEAT_CLOSE_LOCAL, .code = 0x11, .detail = "why"},
         "{\"initiator\":\"local\",\"connection_error\":\"unknown\",\"error_code\":17,"
         "\"reason\":\"why\",\"trigger\":\"error\"}}"},
        {{.kind = LEAT_CLOSE_HANDSHAKE_TIMEOUT},
         "{\"initiator\":\"local\",\"reason\":\"handshake timeout\",\"trigger\":\"aborted\"}}"},
        {{.kind = LEAT_CLOSE_RESET, .code = 1},
         "{\"initiator\":\"local\",\"trigger\":\"stateless_reset\"}}"},
        {{.kind = LEAT_CLOSE_DROPPED}, "{\"initiator\":\"local\",\"trigger\":\"aborted\"}}"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        emit_started(false, 0);
        leat_event e = {.type = LEAT_EVENT_CONNECTION_CLOSED, .closed = cases[i].info};
        emit(&e);
        assert_string_equal(strstr(record(CLIENT, 2), "{\"initiator\""), cases[i].data);
    }
}

#define IS_RECORD(n, name, data)                                                                   \
    assert_string_equal(record(CLIENT, n),                                                         \
                        "{\"time\":0.000000,\"name\":\"quic:" name "\",\"data\":{" data "}}")

static void headers_say_what_the_packets_had(void **state)
{
    (void)state;
    static const uint8_t ids[] = {1, 2, 3}, token[] = {9, 9};
    static const uint8_t versions[] = {0x6b, 0x33, 0x43, 0xcf, 0, 0, 0, 1};
    leat_event e = {.type = LEAT_EVENT_PACKET_RECEIVED};
    emit_started(false, 0);
    e.packet = (leat_event_packet){.type = "initial",
                                   .len = 1200,
                                   .pn_len = 1,
                                   .version = 1,
                                   .dcid = {ids, 2},
                                   .scid = {ids, 0},
                                   .token = {token, 2},
                                   .retry_token = true};
    emit(&e);
    e.packet = (leat_event_packet){.type = "1RTT",
                                   .number = 7,
                                   .len = 99,
                                   .pn_len = 2,
                                   .spin = true,
                                   .key_phase = 3,
                                   .ecn = LEAT_ECN_CE,
                                   .dcid = {ids, 3}};
    emit(&e);
    e.packet = (leat_event_packet){.type = "version_negotiation",
                                   .len = 31,
                                   .dcid = {ids, 1},
                                   .scid = {ids, 2},
                                   .versions = {versions, 8}};
    emit(&e);
    e.type = LEAT_EVENT_PACKET_SENT;
    e.packet = (leat_event_packet){.type = "1RTT", .len = 1452, .mtu_probe = true, .path = 12};
    emit(&e);
    e.type = LEAT_EVENT_PACKET_BUFFERED;
    e.packet = (leat_event_packet){.type = "0RTT", .len = 500, .dcid = {ids, 1}};
    emit(&e);
    emit_closed(0);
    IS_RECORD(2, "packet_received",
              "\"header\":{\"packet_type\":\"initial\",\"packet_number_length\":1,"
              "\"packet_number\":0,\"token\":{\"type\":\"retry\",\"raw\":{\"length\":2}},"
              "\"version\":\"00000001\",\"scid\":\"\",\"dcid\":\"0102\"},"
              "\"raw\":{\"length\":1200}");
    IS_RECORD(3, "packet_received",
              "\"header\":{\"packet_type\":\"1RTT\",\"spin_bit\":true,\"key_phase\":3,"
              "\"packet_number_length\":2,\"packet_number\":7,\"dcid\":\"010203\"},"
              "\"raw\":{\"length\":99},\"ecn\":\"CE\"");
    IS_RECORD(4, "packet_received",
              "\"header\":{\"packet_type\":\"version_negotiation\",\"scid\":\"0102\","
              "\"dcid\":\"01\"},\"supported_versions\":[\"6b3343cf\",\"00000001\"],"
              "\"raw\":{\"length\":31}");
    assert_string_equal(record(CLIENT, 5),
                        "{\"time\":0.000000,\"name\":\"quic:packet_sent\",\"tuple\":\"12\","
                        "\"data\":{\"header\":{\"packet_type\":\"1RTT\",\"packet_number\":0},"
                        "\"raw\":{\"length\":1452},\"is_mtu_probe_packet\":true}}");
    IS_RECORD(6, "packet_buffered",
              "\"header\":{\"packet_type\":\"0RTT\",\"dcid\":\"01\"},\"raw\":{\"length\":500},"
              "\"trigger\":\"keys_unavailable\"");
}

static void what_a_connection_goes_through_is_written(void **state)
{
    (void)state;
    static const uint8_t ids[] = {1, 2, 3}, versions[] = {0, 0, 0, 1};
    leat_event e = {.type = LEAT_EVENT_VERSION_INFORMATION};
    emit_started(false, 0);
    e.versions = (leat_event_versions){.client = {versions, 4}, .chosen = 1};
    emit(&e);
    e = (leat_event){.type = LEAT_EVENT_KEY_DISCARDED};
    e.key = (leat_event_key){"server_1rtt_secret", "remote_update", 4};
    emit(&e);
    e = (leat_event){.type = LEAT_EVENT_HANDSHAKE};
    e.handshake = (leat_event_handshake){.resumed = true,
                                         .early = LEAT_EARLY_REJECTED,
                                         .alpn = {(const uint8_t *)"h3", 2},
                                         .cipher = {(const uint8_t *)"AES", 3}};
    emit(&e);
    e = (leat_event){.type = LEAT_EVENT_CONNECTION_ID};
    e.cid = (leat_event_cid){true, {ids, 1}, {ids, 3}};
    emit(&e);
    e = (leat_event){.type = LEAT_EVENT_PATH};
    e.path = (leat_event_path){.id = 2, .remote = parse_addr("1.2.3.4:5"), .dcid = {ids, 2}};
    emit(&e);
    e.path.gone = true;
    emit(&e);
    e = (leat_event){.type = LEAT_EVENT_MIGRATION};
    e.migration = (leat_event_migration){.state = "probing_started",
                                         .remote = parse_addr("1.2.3.4:5"),
                                         .local = parse_addr("[::1]:9")};
    emit(&e);
    e = (leat_event){.type = LEAT_EVENT_SPIN_BIT, .spin = true};
    emit(&e);
    emit_closed(0);
    IS_RECORD(2, "version_information",
              "\"client_versions\":[\"00000001\"],\"chosen_version\":\"00000001\"");
    IS_RECORD(3, "key_discarded",
              "\"key_type\":\"server_1rtt_secret\",\"key_phase\":4,\"trigger\":\"remote_update\"");
    IS_RECORD(4, "connection_state_updated",
              "\"new\":\"handshake_complete\",\"resumed\":true,\"early_data\":\"rejected\"");
    IS_RECORD(5, "alpn_information", "\"chosen_alpn\":{\"string_value\":\"h3\"}");
    IS_RECORD(6, "parameters_set", "\"early_data_enabled\":false,\"tls_cipher\":\"AES\"");
    IS_RECORD(7, "connection_id_updated",
              "\"initiator\":\"local\",\"old\":\"01\",\"new\":\"010203\"");
    IS_RECORD(8, "tuple_assigned",
              "\"tuple_id\":\"2\",\"tuple_remote\":{\"ip_v4\":\"1.2.3.4\",\"port_v4\":5,"
              "\"connection_ids\":[\"0102\"]},\"tuple_local\":{}");
    IS_RECORD(9, "tuple_assigned", "\"tuple_id\":\"2\"");
    IS_RECORD(10, "migration_state_updated",
              "\"new\":\"probing_started\",\"tuple_id\":\"\",\"tuple_remote\":{\"ip_v4\":"
              "\"1.2.3.4\",\"port_v4\":5},\"tuple_local\":{\"ip_v6\":\"::1\",\"port_v6\":9}");
    IS_RECORD(11, "spin_bit_updated", "\"state\":true");
}

static void what_belongs_to_no_connection_has_a_file_of_its_own(void **state)
{
    (void)state;
    leat_event e = {.type = LEAT_EVENT_PACKET_SENT, .server = true, .no_conn = true};
    e.packet = (leat_event_packet){.type = "retry", .len = 90};
    emit_started(true, 0); /* of the same ID: not mixed up */
    emit(&e);
    e = (leat_event){.type = LEAT_EVENT_RETRY_MODE, .server = true, .no_conn = true};
    e.odcid = (leat_span){cid, 0};
    e.retry_mode.on = true;
    emit(&e);
    leat_qlog_close(qlog);
    qlog = NULL;
    assert_int_equal(count_records(SERVER), 2);
    assert_null(strstr(record("endpoint_server.sqlog", 0), "group_id"));
    assert_string_equal(record("endpoint_server.sqlog", 1),
                        "{\"time\":0.000000,\"name\":\"quic:packet_sent\","
                        "\"group_id\":\"8394c8f0\",\"data\":{\"header\":{"
                        "\"packet_type\":\"retry\"},\"raw\":{\"length\":90}}}");
    assert_string_equal(record("endpoint_server.sqlog", 2),
                        "{\"time\":0.000000,\"name\":\"quic:server_listening\","
                        "\"data\":{\"retry_required\":true}}");
}

static void texts_of_a_peer_are_escaped(void **state)
{
    (void)state;
    static const uint8_t reason[] = "a\"b\\c\n\x1e\xff\x7f";
    emit_started(false, 0);
    emit_frame((leat_event_frame){.type = 0x1d,
                                  .name = "connection_close",
                                  .key = {"error_code"},
                                  .value = {3},
                                  .values = 1,
                                  .data_key = "reason",
                                  .data = {reason, sizeof(reason) - 1}});
    emit_packet(LEAT_EVENT_PACKET_SENT, 1, 5);
    emit_closed(4);
    assert_string_equal(
        strstr(record(CLIENT, 2), "\"frames\""),
        "\"frames\":[{\"frame_type\":\"connection_close\",\"error_space\":"
        "\"application\",\"error\":\"unknown\",\"error_code\":3,\"reason\":"
        "\"a\\\"b\\\\c\\u000a\\u001e\\u00ff\\u007f\"}],\"raw\":{\"length\":1252}}}");
}

static void more_frames_than_fit_are_left_out_and_no_more(void **state)
{
    (void)state;
    emit_started(false, 0);
    for (int i = 0; i < 2000; i++) {
        emit_frame((leat_event_frame){.type = 1, .name = "ping"});
    }
    emit_packet(LEAT_EVENT_PACKET_SENT, 1, 5);
    emit_packet(LEAT_EVENT_PACKET_SENT, 2, 6);
    emit_closed(4);
    assert_int_equal(count_records(CLIENT), 5);
    const char *text = record(CLIENT, 2);
    assert_string_equal(text + strlen(text) - 26, "}],\"raw\":{\"length\":1252}}}");
    assert_true(strlen(text) > 10000 && strlen(text) < 16384);
    assert_null(strstr(record(CLIENT, 3), "frames"));
}

static void many_records_reach_the_file_in_order(void **state)
{
    (void)state;
    emit_started(false, 0);
    for (uint64_t i = 0; i < 1000; i++) {
        emit_packet(LEAT_EVENT_PACKET_SENT, i * LEAT_MILLISECOND, i);
    }
    emit_closed(LEAT_SECOND);
    assert_int_equal(count_records(CLIENT), 1003);
    for (int i = 0; i < 1000; i += 37) {
        char expected[64];
        snprintf(expected, sizeof(expected), "\"packet_number\":%d}", i);
        assert_non_null(strstr(record(CLIENT, i + 2), expected));
    }
}

static void events_without_a_log_are_ignored(void **state)
{
    (void)state;
    emit_packet(LEAT_EVENT_PACKET_SENT, 1, 5); /* not started */
    emit_started(false, 0);
    emit_closed(1);
    emit_packet(LEAT_EVENT_PACKET_SENT, 2, 6); /* over */
    assert_int_equal(count_records(CLIENT), 3);
    leat_event none = {.type = LEAT_EVENT_PACKET_DROPPED, .odcid = {cid, 0}};
    emit(&none);
    uint8_t long_cid[30] = {0};
    leat_event large = {.type = LEAT_EVENT_CONNECTION_STARTED, .odcid = {long_cid, 30}};
    emit(&large);
    assert_int_equal(empty_folder(), 1);
}

static void connections_beyond_the_limit_have_no_log(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        uint8_t id[2] = {(uint8_t)(i >> 8), (uint8_t)i};
        leat_event e = {.type = LEAT_EVENT_CONNECTION_STARTED, .odcid = {id, 2}};
        e.started.remote = parse_addr("127.0.0.1:1");
        emit(&e);
    }
    leat_qlog_close(qlog);
    qlog = NULL;
    assert_int_equal(empty_folder(), 256);
}

static void a_full_disk_is_told_when_the_qlog_is_closed(void **state)
{
    (void)state;
    struct rlimit before, none;
    leat_event e = {.type = LEAT_EVENT_CONNECTION_STARTED};
    e.started.remote = parse_addr("127.0.0.1:1");
    emit(&e);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = before;
    none.rlim_cur = 10;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    leat_err err = leat_qlog_close(qlog);
    int error = errno;
    setrlimit(RLIMIT_FSIZE, &before); /* before anything is printed into a file */
    qlog = NULL;
    assert_int_equal(err, LEAT_ERR_IO);
    assert_int_equal(error, EFBIG);
}

static void a_full_disk_can_be_asked_for_before(void **state)
{
    (void)state;
    struct rlimit before, none;
    leat_event e = {.type = LEAT_EVENT_CONNECTION_STARTED};
    e.started.remote = parse_addr("127.0.0.1:1");
    emit(&e);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = before;
    none.rlim_cur = 10;
    assert_int_equal(leat_qlog_error(NULL), 0);
    assert_int_equal(leat_qlog_error(qlog), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    e = (leat_event){.type = LEAT_EVENT_CONNECTION_CLOSED};
    emit(&e);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(leat_qlog_error(qlog), EFBIG);
}

static void qlog_is_off_unless_asked(void **state)
{
    (void)state;
    leat_qlog *other = qlog;
    unsetenv("QLOGDIR");
    assert_int_equal(leat_qlog_open(NULL, &other), LEAT_OK);
    assert_null(other);
    assert_null(leat_qlog_sink(other));
    setenv("QLOGDIR", folder, 1);
    assert_int_equal(leat_qlog_open(NULL, &other), LEAT_OK);
    assert_non_null(other);
    leat_qlog_close(other);
    unsetenv("QLOGDIR");
    assert_int_equal(leat_qlog_open("/no/such/folder", &other), LEAT_ERR_IO);
    assert_int_equal(errno, ENOENT);
    assert_null(other);
}

static void qlog_files_go_into_folders_alone(void **state)
{
    (void)state;
    char path[64];
    leat_qlog *other = qlog;
    snprintf(path, sizeof(path), "%s/program", folder);
    int fd = open(path, O_WRONLY | O_CREAT, 0755);
    assert_true(fd >= 0);
    close(fd);
    errno = 0;
    assert_int_equal(leat_qlog_open(path, &other), LEAT_ERR_IO);
    assert_int_equal(errno, ENOTDIR);
    assert_null(other);
}

/* Every number as large as it can be: no buffer on the way is too small for it. */
static void the_largest_parameters_are_written_whole(void **state)
{
    (void)state;
    leat_event e = {.type = LEAT_EVENT_PARAMETERS_SET};
    memset(&e.parameters, 0xff, sizeof(e.parameters));
    e.parameters.local = e.parameters.disable_active_migration = true;
    e.parameters.preferred_ip4.family = 4;
    e.parameters.preferred_ip6.family = 6;
    uint8_t longest[20];
    memset(longest, 0xcc, sizeof(longest));
    e.parameters.original_dcid = e.parameters.initial_scid = e.parameters.retry_scid =
        e.parameters.preferred_cid = (leat_span){longest, sizeof(longest)};
    uint8_t versions[64];
    memset(versions, 0xff, sizeof(versions));
    e.parameters.available_versions = (leat_span){versions, sizeof(versions)};
    e.parameters.grease_quic_bit = e.parameters.reset_stream_at = true;
    emit_started(false, 0);
    emit(&e);
    emit_closed(1);
    const char *text = record(CLIENT, 2);
    assert_non_null(strstr(text, "\"name\":\"quic:parameters_set\""));
    unsigned numbers = 0;
    for (const char *at = text; (at = strstr(at, ":18446744073709551615")) != NULL; at++) {
        numbers++;
    }
    assert_int_equal(numbers, 13);
    assert_non_null(strstr(text, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"));
    assert_non_null(strstr(text, "\"cccccccccccccccccccccccccccccccccccccccc\"}"));
    assert_string_equal(text + strlen(text) - 14, "\"ffffffff\"]}}}");
}

static void numbers_are_written_in_full(void **state)
{
    (void)state;
    char text[128];
    leat_json json = leat_json_begin(text, sizeof(text));
    leat_json_put_u64(&json, "a", 0);
    leat_json_put_u64(&json, "b", UINT64_MAX);
    leat_json_put_ms(&json, "c", 0);
    leat_json_put_ms(&json, "d", UINT64_MAX);
    assert_false(json.full);
    text[json.len] = '\0';
    assert_string_equal(text, "\"a\":0,\"b\":18446744073709551615,\"c\":0.000000,"
                              "\"d\":18446744073709.551615");
    json = leat_json_begin(text, 7);
    leat_json_put_u64(&json, "a", 123);
    assert_false(json.full);
    leat_json_raw(&json, "x");
    assert_true(json.full);
    leat_json_raw(&json, "");
    assert_int_equal(json.len, 7);
}

int main(void)
{
#define QLOG_TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        QLOG_TEST(each_side_has_a_file_named_by_the_odcid),
        QLOG_TEST(events_are_written_with_their_data),
        QLOG_TEST(a_preferred_address_is_written_without_its_token),
        QLOG_TEST(frames_stand_in_their_packet),
        QLOG_TEST(close_says_who_and_why),
        QLOG_TEST(headers_say_what_the_packets_had),
        QLOG_TEST(what_a_connection_goes_through_is_written),
        QLOG_TEST(what_belongs_to_no_connection_has_a_file_of_its_own),
        QLOG_TEST(texts_of_a_peer_are_escaped),
        QLOG_TEST(the_largest_parameters_are_written_whole),
        QLOG_TEST(more_frames_than_fit_are_left_out_and_no_more),
        QLOG_TEST(many_records_reach_the_file_in_order),
        QLOG_TEST(events_without_a_log_are_ignored),
        QLOG_TEST(connections_beyond_the_limit_have_no_log),
        QLOG_TEST(a_full_disk_is_told_when_the_qlog_is_closed),
        QLOG_TEST(a_full_disk_can_be_asked_for_before),
        QLOG_TEST(qlog_is_off_unless_asked),
        QLOG_TEST(qlog_files_go_into_folders_alone),
        cmocka_unit_test(numbers_are_written_in_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
