/* Transport parameters: bytes by hand, each check of RFC 9000 §18 and §7.4, the connection IDs of
 * §7.3, the largest legal set. */
#include "wire_test.h"

#include "wire/tparams.h"

static uint64_t decode(const char *hex, bool from_server, leat_tparams *out, const char **why)
{
    bytes in = bytes_hex(hex);
    uint64_t error = leat_tparams_decode((leat_span){in.data, in.len}, from_server, out, why);

    assert_int_equal(error != 0, *why != NULL);
    free(in.data); /* version_information must not be looked at after this */
    return error;
}

static void nothing_means_the_defaults_of_the_rfc(void **state)
{
    leat_tparams t;
    const char *why;

    (void)state;
    memset(&t, 0xff, sizeof t);
    assert_int_equal(decode("", true, &t, &why), 0);
    assert_int_equal(t.present, 0);
    assert_int_equal(t.max_idle_timeout, 0);
    assert_int_equal(t.max_udp_payload_size, 65527);
    assert_int_equal(t.initial_max_data, 0);
    assert_int_equal(t.initial_max_stream_data_bidi_local, 0);
    assert_int_equal(t.initial_max_stream_data_bidi_remote, 0);
    assert_int_equal(t.initial_max_stream_data_uni, 0);
    assert_int_equal(t.initial_max_streams_bidi, 0);
    assert_int_equal(t.initial_max_streams_uni, 0);
    assert_int_equal(t.ack_delay_exponent, 3);
    assert_int_equal(t.max_ack_delay, 25);
    assert_int_equal(t.active_connection_id_limit, 2);
    assert_int_equal(t.max_datagram_frame_size, 0);
    assert_int_equal(t.original_dcid.len, 0);
    assert_int_equal(t.version_information.available.len, 0);
    assert_int_equal(t.grease_id, 0);
}

static void defaults_are_not_written(void **state)
{
    uint8_t out[LEAT_TPARAMS_MAX];
    leat_tparams t;
    leat_writer w;

    (void)state;
    leat_tparams_init(&t);
    leat_writer_init(&w, out, sizeof out);
    assert_true(leat_tparams_encode(&t, &w));
    assert_int_equal(leat_writer_len(&w), 0);
    assert_int_equal(leat_tparams_size(&t), 0);
}

/* A server's set by hand, the parameters out of order. */
static const char server_hex[] =
    "0f 04 c1c2c3c4"                               /* initial_source_connection_id */
    "00 08 8394c8f03e515708"                       /* original_destination_connection_id */
    "02 10 000102030405060708090a0b0c0d0e0f"       /* stateless_reset_token */
    "01 04 80007530"                               /* max_idle_timeout 30000 */
    "03 02 45c0"                                   /* max_udp_payload_size 1472 */
    "04 04 81000000"                               /* initial_max_data 2^24 */
    "05 04 80100000 06 04 80100001 07 04 80100002" /* stream data */
    "08 02 4064 09 01 03"                          /* streams */
    "0a 01 04 0b 01 1a"                            /* ack_delay_exponent 4, max_ack_delay 26 */
    "0c 00"                                        /* disable_active_migration */
    "0d 2d c0000201 115c 20010db8000000000000000000000001 115d"
    "   04 d1d2d3d4 f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff" /* preferred_address */
    "0e 01 08"                                        /* active_connection_id_limit */
    "10 01 aa"                                        /* retry_source_connection_id */
    "20 04 8000ffff"                                  /* max_datagram_frame_size */
    "1d 00"                                           /* reset_stream_at */
    "c0000000ff04de1b 02 43e8"                        /* min_ack_delay 1000 */
    "6ab2 00"                                         /* grease_quic_bit, 0x2ab2 */
    "11 0c 6b3343cf 00000001 6b3343cf"                /* version_information */
    "401b 02 dead";                                   /* reserved: 31 * 0 + 27, in a longer form */

static void a_servers_set_is_read(void **state)
{
    bytes in = bytes_hex(server_hex);
    leat_tparams t;
    const char *why;

    (void)state;
    assert_int_equal(leat_tparams_decode((leat_span){in.data, in.len}, true, &t, &why), 0);
    assert_null(why);
    assert_bytes(t.initial_scid.data, t.initial_scid.len, "c1c2c3c4");
    assert_bytes(t.original_dcid.data, t.original_dcid.len, "8394c8f03e515708");
    assert_bytes(t.retry_scid.data, t.retry_scid.len, "aa");
    assert_bytes(t.stateless_reset_token, 16, "000102030405060708090a0b0c0d0e0f");
    assert_int_equal(t.max_idle_timeout, 30000);
    assert_int_equal(t.max_udp_payload_size, 1472);
    assert_int_equal(t.initial_max_data, 1 << 24);
    assert_int_equal(t.initial_max_stream_data_bidi_local, 1 << 20);
    assert_int_equal(t.initial_max_stream_data_bidi_remote, (1 << 20) + 1);
    assert_int_equal(t.initial_max_stream_data_uni, (1 << 20) + 2);
    assert_int_equal(t.initial_max_streams_bidi, 100);
    assert_int_equal(t.initial_max_streams_uni, 3);
    assert_int_equal(t.ack_delay_exponent, 4);
    assert_int_equal(t.max_ack_delay, 26);
    assert_int_equal(t.active_connection_id_limit, 8);
    assert_int_equal(t.max_datagram_frame_size, 65535);
    assert_bytes(t.preferred_address.ipv4, 4, "c0000201");
    assert_int_equal(t.preferred_address.ipv4_port, 4444);
    assert_bytes(t.preferred_address.ipv6, 16, "20010db8000000000000000000000001");
    assert_int_equal(t.preferred_address.ipv6_port, 4445);
    assert_bytes(t.preferred_address.cid.data, t.preferred_address.cid.len, "d1d2d3d4");
    assert_bytes(t.preferred_address.reset_token, 16, "f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff");
    assert_int_equal(t.version_information.chosen, 0x6b3343cf);
    assert_bytes(t.version_information.available.data, t.version_information.available.len,
                 "000000016b3343cf");
    assert_int_equal(t.min_ack_delay, 1000);
    /* One bit for each of them: all were there. */
    assert_int_equal(t.present, (1 << LEAT_TPARAM_KINDS) - 1);
    free(in.data);
}

static void a_set_is_written_byte_for_byte(void **state)
{
    static const uint8_t grease[] = {0xde, 0xad};
    static const uint8_t versions[] = {0, 0, 0, 1, 0x6b, 0x33, 0x43, 0xcf};
    uint8_t out[LEAT_TPARAMS_MAX];
    leat_tparams t;
    leat_writer w;
    const char *why;

    (void)state;
    assert_int_equal(decode(server_hex, true, &t, &why), 0);
    t.version_information.available = (leat_span){versions, sizeof versions};
    t.grease_id = 27;
    t.grease = (leat_span){grease, sizeof grease};
    leat_writer_init(&w, out, sizeof out);
    assert_true(leat_tparams_encode(&t, &w));
    assert_bytes(out, leat_writer_len(&w),
                 "01 04 80007530 03 02 45c0 04 04 81000000 05 04 80100000 06 04 80100001"
                 "07 04 80100002 08 02 4064 09 01 03 0a 01 04 0b 01 1a 0e 01 08 20 04 8000ffff"
                 "00 08 8394c8f03e515708 0f 04 c1c2c3c4"
                 "02 10 000102030405060708090a0b0c0d0e0f 0c 00 1d 00 6ab2 00 10 01 aa"
                 "0d 2d c0000201 115c 20010db8000000000000000000000001 115d"
                 "   04 d1d2d3d4 f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"
                 "11 0c 6b3343cf 00000001 6b3343cf c0000000ff04de1b 02 43e8 1b 02 dead");
}

static void a_number_is_written_in_its_shortest_form_at_every_bound(void **state)
{
    static const struct {
        uint64_t value;
        const char *hex;
    } bounds[] = {
        {1, "04 01 01"},
        {63, "04 01 3f"},
        {64, "04 02 4040"},
        {16383, "04 02 7fff"},
        {16384, "04 04 80004000"},
        {1073741823, "04 04 bfffffff"},
        {1073741824, "04 08 c000000040000000"},
        {LEAT_VARINT_MAX, "04 08 ffffffffffffffff"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
        uint8_t out[LEAT_TPARAMS_MAX];
        leat_tparams t;
        leat_writer w;
        const char *why;

        leat_tparams_init(&t);
        t.initial_max_data = bounds[i].value;
        leat_writer_init(&w, out, sizeof out);
        assert_true(leat_tparams_encode(&t, &w));
        assert_bytes(out, leat_writer_len(&w), bounds[i].hex);
        assert_int_equal(decode(bounds[i].hex, false, &t, &why), 0);
        assert_int_equal(t.initial_max_data, bounds[i].value);
    }
}

/* ---- what is refused, and what is just allowed ---- */

#define TOKEN "000102030405060708090a0b0c0d0e0f"
#define IPV6  "20010db8000000000000000000000001"
#define CID20 "c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4"

static void every_check_refuses_what_it_should_and_no_more(void **state)
{
    static const struct {
        const char *hex;
        const char *what;
        bool refused;
    } cases[] = {
        /* form */
        {"01", "an id alone", true},
        {"40", "half an id", true},
        {"01 40", "half a length", true},
        {"01 02 40", "a value cut", true},
        {"01 ffffffffffffffff 00", "a length of 2^62 - 1", true},
        {"1b ffffffffffffffff 00", "the same of an unknown parameter", true},
        {"c000000000000001 8000000000 01 05", "trailing bytes that are no parameter", true},
        {"c000000000000001 80000001 05", "id and length in longer forms", false},
        /* numbers */
        {"04 00", "a number without content", true},
        {"04 02 05 00", "a number with a byte too many", true},
        {"04 02 0505 0100 0100 0100", "the same with bytes to follow", true},
        {"04 01 40", "a number cut short by its length", true},
        {"04 01 40 01 01 05 05 01 05 06 01 05", "the same with bytes to follow", true},
        {"04 03 800000", "a number of three bytes", true},
        {"04 09 c00000000000000500", "a number of nine bytes", true},
        {"04 08 c000000000000005", "a small number in eight bytes", false},
        {"04 02 4005", "a small number in two bytes", false},
        /* bounds */
        {"03 02 44af", "max_udp_payload_size of 1199", true},
        {"03 02 44b0", "max_udp_payload_size of 1200", false},
        {"03 08 ffffffffffffffff", "max_udp_payload_size of 2^62 - 1", false},
        {"08 08 d000000000000000", "initial_max_streams_bidi of 2^60", false},
        {"08 08 d000000000000001", "initial_max_streams_bidi above 2^60", true},
        {"09 08 d000000000000000", "initial_max_streams_uni of 2^60", false},
        {"09 08 d000000000000001", "initial_max_streams_uni above 2^60", true},
        {"0a 01 14", "ack_delay_exponent of 20", false},
        {"0a 01 15", "ack_delay_exponent of 21", true},
        {"0b 02 7fff", "max_ack_delay of 2^14 - 1", false},
        {"0b 04 80004000", "max_ack_delay of 2^14", true},
        {"c0000000ff04de1b 04 800061a8", "min_ack_delay of 25 ms, as max_ack_delay is", false},
        {"c0000000ff04de1b 04 800061a9", "min_ack_delay above max_ack_delay", true},
        {"c0000000ff04de1b 04 800061a9 0b 01 1a", "the same below a max_ack_delay of 26 ms", false},
        {"0e 01 02", "active_connection_id_limit of 2", false},
        {"0e 01 01", "active_connection_id_limit of 1", true},
        {"0e 01 00", "active_connection_id_limit of 0", true},
        {"0e 01 01 0100 0100 0100 01 01 01", "the same with bytes to follow", true},
        {"01 08 ffffffffffffffff", "max_idle_timeout of 2^62 - 1", false},
        {"04 08 ffffffffffffffff", "initial_max_data of 2^62 - 1", false},
        /* given twice */
        {"04 01 05 04 01 05", "a number twice", true},
        {"04 01 05 04 01 05 05 04 80000005 06 04 80000005", "the same with bytes to follow", true},
        {"0c 00 0c 00", "a flag twice", true},
        {"6ab2 00 6ab2 00", "grease_quic_bit twice", true},
        {"0f 01 aa 0f 01 bb", "a connection ID twice", true},
        {"0f 00 0f 00", "an empty connection ID twice", true},
        {"1b 00 1b 00", "an unknown parameter twice", true},
        {"1b 00 405a 00 401b 00", "the same in another form, not side by side", true},
        {"1b 00 3a 00", "two unknown ones", false},
        /* flags */
        {"0c 01 00", "disable_active_migration with content", true},
        {"6ab2 01 00", "grease_quic_bit with content", true},
        {"1d 01 00", "reset_stream_at with content", true},
        {"1d 00 1d 00", "reset_stream_at twice", true},
        /* connection IDs */
        {"0f 14" CID20, "a connection ID of 20 bytes", false},
        {"0f 15" CID20 "d5", "a connection ID of 21 bytes", true},
        {"00 15" CID20 "d5", "original_dcid of 21 bytes", true},
        {"10 15" CID20 "d5", "retry_scid of 21 bytes", true},
        {"0f 00", "an empty connection ID", false},
        /* stateless_reset_token */
        {"02 10" TOKEN, "a token", false},
        {"02 0f 000102030405060708090a0b0c0d0e", "a token of 15 bytes", true},
        {"02 11" TOKEN "10", "a token of 17 bytes", true},
        {"02 00", "an empty token", true},
        /* preferred_address */
        {"0d 2a c0000201 115c" IPV6 "115d 01 d1" TOKEN, "a preferred address", false},
        {"0d 3d c0000201 115c" IPV6 "115d 14" CID20 TOKEN, "the same, a cid of 20 bytes", false},
        {"0d 2a 00000000 0000" IPV6 "115d 01 d1" TOKEN, "one without IPv4", false},
        {"0d 29 c0000201 115c" IPV6 "115d 00" TOKEN, "one with an empty cid", true},
        {"0d 3e c0000201 115c" IPV6 "115d 15" CID20 "d5" TOKEN, "one with a cid of 21 bytes", true},
        {"0d 29 c0000201 115c" IPV6 "115d 01 d1 0001020304050607 08090a0b0c0d0e",
         "one a byte short", true},
        {"0d 2b c0000201 115c" IPV6 "115d 01 d1" TOKEN "00", "one with a byte too many", true},
        {"0d 18 c0000201 115c" IPV6 "115d", "one that ends at its cid", true},
        {"0d 00", "an empty one", true},
        {"0d 2a c0000201 115c" IPV6 "115d 01 d1" TOKEN "0f 00",
         "one from a server that uses an empty cid", true},
        {"0f 00 0d 2a c0000201 115c" IPV6 "115d 01 d1" TOKEN, "the same the other way round", true},
        {"0f 01 c1 0d 2a c0000201 115c" IPV6 "115d 01 d1" TOKEN, "one from a server that does not",
         false},
        {"0f 01 d1 0d 2a c0000201 115c" IPV6 "115d 01 d1" TOKEN,
         "one with the cid of the handshake", true},
        /* version_information, RFC 9368 */
        {"11 04 00000001", "a chosen version alone, from a server", false},
        {"11 00", "no chosen version", true},
        {"11 03 000001", "a chosen version cut", true},
        {"11 06 00000001 0000", "an available version cut", true},
        {"11 04 00000000", "chosen version 0", true},
        {"11 0c 00000001 00000001 00000000", "available version 0", true},
        /* unknown */
        {"21 03 010203 c0ff04de1b 01 00", "a parameter with a wide id that is cut", true},
        {"21 03 010203 c0000000ff04de1b 01 00", "unknown parameters with content", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        leat_tparams t;
        const char *why = "unset";
        uint64_t error = decode(cases[i].hex, true, &t, &why);

        if (error != (cases[i].refused ? LEAT_TE_TRANSPORT_PARAMETER_ERROR : 0)) {
            fail_msg("%s: %s", cases[i].what, why ? why : "accepted");
        }
        if (why && strlen(why) < 8) {
            fail_msg("%s: no reason given", cases[i].what);
        }
    }
}

static void the_text_says_what_was_wrong(void **state)
{
    leat_tparams t;
    const char *why;

    (void)state;
    decode("0e 01 01", true, &t, &why);
    assert_string_equal(why, "active_connection_id_limit below 2");
    decode("0c 01 00", true, &t, &why);
    assert_string_equal(why, "flag parameter with content");
    decode("04 01 05 04 01 05", true, &t, &why);
    assert_string_equal(why, "parameter given twice");
}

static void a_client_may_not_send_what_is_a_servers(void **state)
{
    static const char *const server_only[] = {"00 01 aa", "00 00", "02 10" TOKEN, "10 01 aa",
                                              "0d 2a c0000201 115c" IPV6 "115d 01 d1" TOKEN};
    static const char *const anybody[] = {"0f 01 aa", "0c 00", "6ab2 00",
                                          "11 08 00000001 00000001"};
    leat_tparams t;
    const char *why;

    (void)state;
    for (size_t i = 0; i < sizeof server_only / sizeof server_only[0]; i++) {
        assert_int_equal(decode(server_only[i], true, &t, &why), 0);
        assert_int_equal(decode(server_only[i], false, &t, &why),
                         LEAT_TE_TRANSPORT_PARAMETER_ERROR);
        assert_string_equal(why, "parameter that only a server may send");
    }
    for (size_t i = 0; i < sizeof anybody / sizeof anybody[0]; i++) {
        assert_int_equal(decode(anybody[i], false, &t, &why), 0);
    }
}

/* RFC 9368 §4: of a client's versions the chosen one is available. */
static void a_clients_chosen_version_is_among_the_available(void **state)
{
    leat_tparams t;
    const char *why;

    (void)state;
    assert_int_equal(decode("11 0c 00000001 6b3343cf 00000001", false, &t, &why), 0);
    assert_int_equal(decode("11 08 00000001 6b3343cf", false, &t, &why),
                     LEAT_TE_TRANSPORT_PARAMETER_ERROR);
    assert_int_equal(decode("11 04 00000001", false, &t, &why), LEAT_TE_TRANSPORT_PARAMETER_ERROR);
    assert_int_equal(decode("11 08 00000001 6b3343cf", true, &t, &why), 0);
}

/* The work for unknown parameters is bounded: so many are remembered, and the rest let pass. */
static void unknown_parameters_are_remembered_up_to_a_number(void **state)
{
    leat_tparams t;
    const char *why;

    (void)state;
    for (size_t count = 1; count < 30; count++) {
        bytes in = {malloc(2 * count + 2), 2 * count + 2};

        for (size_t i = 0; i < count; i++) {
            in.data[2 * i] = (uint8_t)(0x21 + i);
            in.data[2 * i + 1] = 0;
        }
        in.data[2 * count] = (uint8_t)(0x21 + count - 1);
        in.data[2 * count + 1] = 0;
        assert_int_equal(leat_tparams_decode((leat_span){in.data, in.len}, true, &t, &why),
                         count <= LEAT_TPARAMS_UNKNOWN_MAX ? LEAT_TE_TRANSPORT_PARAMETER_ERROR : 0);
        free(in.data);
    }
}

/* ---- sizes ---- */

static leat_tparams largest_set(void)
{
    static uint8_t versions[4 * LEAT_TPARAMS_VERSIONS_MAX];
    static uint8_t grease[LEAT_TPARAMS_GREASE_MAX];
    leat_tparams t;

    leat_tparams_init(&t);
    for (size_t i = 0; i < LEAT_TPARAM_NUMBERS; i++) {
        t.numbers[i] = UINT64_C(1) << 60;
    }
    t.ack_delay_exponent = 20;
    t.max_ack_delay = 16383;
    t.present = (1 << LEAT_TPARAM_KINDS) - 1;
    t.original_dcid.len = LEAT_CID_MAX;
    t.initial_scid.len = LEAT_CID_MAX;
    t.retry_scid.len = LEAT_CID_MAX;
    t.preferred_address.cid.len = LEAT_CID_MAX;
    memset(t.initial_scid.data, 0x11, LEAT_CID_MAX);
    memset(t.preferred_address.cid.data, 0x22, LEAT_CID_MAX); /* another one: it is checked */
    memset(versions, 0x1a, sizeof versions);
    t.version_information.chosen = 1;
    t.version_information.available = (leat_span){versions, sizeof versions};
    t.grease_id = LEAT_VARINT_MAX / 31 * 31 - 4;
    t.grease = (leat_span){grease, sizeof grease};
    return t;
}

static void the_largest_set_is_written_and_read(void **state)
{
    leat_tparams t = largest_set();
    leat_tparams got;
    uint8_t out[LEAT_TPARAMS_MAX];
    const char *why;
    leat_writer w;
    bytes in;

    (void)state;
    leat_writer_init(&w, out, sizeof out);
    assert_true(leat_tparams_encode(&t, &w));
    assert_int_equal(leat_writer_len(&w), leat_tparams_size(&t));
    in = bytes_copy(out, leat_writer_len(&w));
    assert_int_equal(leat_tparams_decode((leat_span){in.data, in.len}, true, &got, &why), 0);
    assert_int_equal(got.present, t.present);
    assert_memory_equal(got.numbers, t.numbers, sizeof t.numbers);
    free(in.data);
}

static void every_set_fits_its_size_to_the_byte(void **state)
{
    leat_tparams t = largest_set();
    size_t size = leat_tparams_size(&t);

    (void)state;
    for (size_t room = 0; room <= size; room++) {
        bytes out = {malloc(room), room};
        leat_writer w;

        leat_writer_init(&w, out.data, room);
        assert_int_equal(leat_tparams_encode(&t, &w), room == size);
        assert_true(leat_writer_ok(&w));
        assert_int_equal(leat_writer_len(&w), room == size ? size : 0);
        free(out.data);
    }
}

/* In exactly the room that lets it write without asking, with the longest scribble at the end. */
static void encoding_stays_within_the_room_promised(void **state)
{
    leat_tparams t = largest_set();
    bytes out = {malloc(LEAT_TPARAMS_MAX), LEAT_TPARAMS_MAX};
    leat_writer w;

    (void)state;
    leat_writer_init(&w, out.data, out.len);
    assert_true(leat_tparams_encode(&t, &w));
    free(out.data);
}

/* ---- §7.3 ---- */

static leat_cid cid_of(const char *text)
{
    leat_cid cid;

    leat_cid_set(&cid, (const uint8_t *)text, strlen(text));
    return cid;
}

static uint64_t check(const leat_tparams *t, bool from_server, const char *scid, const char *odcid,
                      const char *retry)
{
    leat_cid s = cid_of(scid);
    leat_cid o = cid_of(odcid);
    leat_cid r = cid_of(retry ? retry : "");
    const char *why = NULL;
    uint64_t error = leat_tparams_check_cids(t, from_server, &s, &o, retry ? &r : NULL, &why);

    assert_int_equal(error != 0, why != NULL);
    assert_true(error == 0 || error == LEAT_TE_TRANSPORT_PARAMETER_ERROR);
    return error;
}

static void a_clients_parameters_name_its_source_id(void **state)
{
    leat_tparams t;

    (void)state;
    leat_tparams_init(&t);
    assert_int_not_equal(check(&t, false, "scid", "", NULL), 0); /* absent */
    t.present = LEAT_TP_initial_scid;
    t.initial_scid = cid_of("scid");
    assert_int_equal(check(&t, false, "scid", "", NULL), 0);
    assert_int_not_equal(check(&t, false, "other", "", NULL), 0);
    t.initial_scid = cid_of("");
    assert_int_equal(check(&t, false, "", "", NULL), 0);
}

static void a_servers_parameters_name_all_ids_of_the_handshake(void **state)
{
    leat_tparams t;

    (void)state;
    leat_tparams_init(&t);
    t.present = LEAT_TP_initial_scid | LEAT_TP_original_dcid;
    t.initial_scid = cid_of("scid");
    t.original_dcid = cid_of("original");
    assert_int_equal(check(&t, true, "scid", "original", NULL), 0);
    assert_int_not_equal(check(&t, true, "scid", "another!", NULL), 0);
    assert_int_not_equal(check(&t, true, "scim", "original", NULL), 0);
    assert_int_not_equal(check(&t, true, "scid", "original", "retry"),
                         0); /* absent after a Retry */
    t.present |= LEAT_TP_retry_scid;
    t.retry_scid = cid_of("retry");
    assert_int_equal(check(&t, true, "scid", "original", "retry"), 0);
    assert_int_not_equal(check(&t, true, "scid", "original", "retro"), 0);
    assert_int_not_equal(check(&t, true, "scid", "original", NULL), 0); /* present without one */
    t.present = LEAT_TP_initial_scid;
    assert_int_not_equal(check(&t, true, "scid", "original", NULL), 0); /* original_dcid absent */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_means_the_defaults_of_the_rfc),
        cmocka_unit_test(defaults_are_not_written),
        cmocka_unit_test(a_servers_set_is_read),
        cmocka_unit_test(a_set_is_written_byte_for_byte),
        cmocka_unit_test(a_number_is_written_in_its_shortest_form_at_every_bound),
        cmocka_unit_test(every_check_refuses_what_it_should_and_no_more),
        cmocka_unit_test(the_text_says_what_was_wrong),
        cmocka_unit_test(a_client_may_not_send_what_is_a_servers),
        cmocka_unit_test(a_clients_chosen_version_is_among_the_available),
        cmocka_unit_test(unknown_parameters_are_remembered_up_to_a_number),
        cmocka_unit_test(the_largest_set_is_written_and_read),
        cmocka_unit_test(every_set_fits_its_size_to_the_byte),
        cmocka_unit_test(encoding_stays_within_the_room_promised),
        cmocka_unit_test(a_clients_parameters_name_its_source_id),
        cmocka_unit_test(a_servers_parameters_name_all_ids_of_the_handshake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
