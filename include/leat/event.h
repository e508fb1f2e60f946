/* leat/event.h: the trace of an endpoint, for qlog files, counters and debuggers.
 *
 * The core calls a sink's `emit` for each event, on the context's thread, while it works: a sink
 * must not call back into the library, and copies what it wants to keep. Frames come before the
 * packet that they are in: collect FRAME_SENT until PACKET_SENT (FRAME_RECEIVED comes after
 * PACKET_RECEIVED's keys have opened the packet and before PACKET_RECEIVED).
 *
 * Names follow draft-ietf-quic-qlog-quic-events where it has one; which revision, src/io/qlog.h
 * says. Spans and static strings in an event are good until emit returns.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_EVENT_H
#define LEAT_EVENT_H

#include <leat/quic.h>

LEAT_BEGIN_DECLS

/* X(NAME, member of leat_event's union, what happened) */
#define LEAT_EVENT_LIST(X)                                                                         \
    X(CONNECTION_STARTED, started, "a connection exists, by connect or by a first Initial")        \
    X(CONNECTION_CLOSED, closed, "the closed event is about to be told")                           \
    X(VERSION_INFORMATION, versions, "which versions each side has, and which one is spoken")      \
    X(PARAMETERS_SET, parameters, "transport parameters of one side are in force; once a side")    \
    X(PARAMETERS_RESTORED, parameters, "a client's 0-RTT goes by what it remembers of a server's") \
    X(PACKET_SENT, packet, "a packet was sealed for sending")                                      \
    X(PACKET_RECEIVED, packet, "a packet was opened and processed")                                \
    X(PACKET_BUFFERED, packet, "a packet waits for its keys")                                      \
    X(PACKET_DROPPED, dropped, "a packet or datagram was not processed")                           \
    X(PACKET_LOST, packet, "a packet sent was declared lost")                                      \
    X(FRAME_SENT, frame, "a frame of the packet that comes next")                                  \
    X(FRAME_RECEIVED, frame, "a frame of the packet that comes next")                              \
    X(METRICS_UPDATED, metrics, "RTT, window or bytes in flight changed")                          \
    X(CONGESTION_STATE, congestion, "the congestion controller changed its state")                 \
    X(ECN_STATE, ecn, "what is known of ECN on the path has changed")                              \
    X(MTU_UPDATED, mtu, "datagrams may be larger, or must be smaller")                             \
    X(SPIN_BIT, spin, "the spin bit of the packets to be sent turned")                             \
    X(KEY_UPDATED, key, "new packet protection keys are in use")                                   \
    X(KEY_DISCARDED, key, "keys were dropped")                                                     \
    X(HANDSHAKE, handshake, "the handshake is complete, or confirmed")                             \
    X(CONNECTION_ID, cid, "packets go to another connection ID")                                   \
    X(PATH, path, "a path was added, or forgotten")                                                \
    X(MIGRATION, migration, "a path is probed, or moved to")                                       \
    X(RETRY_MODE, retry_mode, "the endpoint begins or ends to ask for Retry; of no connection")

#define LEAT_EVENT_ENUM(name, member, text) LEAT_EVENT_##name,
typedef enum leat_event_type { LEAT_EVENT_LIST(LEAT_EVENT_ENUM) LEAT_EVENT_TYPES } leat_event_type;
#undef LEAT_EVENT_ENUM

/* Of a header what the packet has: a packet that was lost has a number and no more, Retry and
 * Version Negotiation have no number. */
typedef struct leat_event_packet {
    const char *type; /* "initial", "handshake", "0RTT", "1RTT", "retry", "version_negotiation",
                         "stateless_reset", "unknown" */
    uint64_t number;
    size_t len;     /* bytes of the whole packet */
    uint8_t pn_len; /* bytes of the packet number; 0: not told */
    uint8_t ecn;    /* the datagram's mark, as in leat_recv_info */
    bool ack_eliciting;
    bool spin;            /* 1RTT */
    bool mtu_probe;       /* sent to find out whether the path carries so large a datagram */
    uint64_t key_phase;   /* 1RTT: counted; the low bit is on the wire */
    uint32_t version;     /* long headers; 0: none */
    uint32_t path;        /* as leat_event_path's id */
    leat_span dcid, scid; /* data NULL: not told */
    leat_span token;      /* "initial", "retry"; empty: none */
    leat_span versions;   /* "version_negotiation": four bytes each, as on the wire */
    bool retry_token;     /* the token is from a Retry, not from NEW_TOKEN */
    const char *trigger;  /* PACKET_LOST: "reordering_threshold" or "time_threshold"; NULL */
} leat_event_packet;

typedef struct leat_event_ack_range {
    uint64_t first, last; /* both acknowledged */
} leat_event_ack_range;

/* A frame, with the numbers of its fields in the order in which RFC 9000 s19 lists them, each under
 * the name that qlog gives it. Three are not plain numbers: "fin" is 0 or 1, "stream_type" is 0 for
 * bidirectional and 1 for unidirectional, "ack_delay" is in nanoseconds. Names are static strings.
 */
typedef struct leat_event_frame {
    uint64_t type;    /* on the wire */
    const char *name; /* "stream" */
    const char *key[4];
    uint64_t value[4];
    size_t values;
    const char *data_key; /* NULL: no data */
    leat_span data;       /* reason phrase, connection ID, token, path data; not stream bytes */
    const leat_event_ack_range *ranges; /* ACK, newest first; at most the first LEAT_EVENT_RANGES */
    size_t range_count;
} leat_event_frame;

enum { LEAT_EVENT_RANGES = 32 };

typedef struct leat_event_metrics {
    leat_time rtt_latest, rtt_smoothed, rtt_min, rtt_var;
    uint64_t cwnd, bytes_in_flight, ssthresh; /* ssthresh UINT64_MAX: none yet */
    uint32_t pto_count;
} leat_event_metrics;

/* Lists of versions: four bytes each, in network order. */
typedef struct leat_event_versions {
    leat_span server, client; /* what each side speaks, best first; empty: not known */
    uint32_t chosen;          /* 0: none in common */
} leat_event_versions;

/* What the peer, or this side, says of itself in its transport parameters. RESTORED has what a
 * client may remember, no more. */
typedef struct leat_event_parameters {
    bool local;
    uint64_t max_idle_timeout_ms, max_udp_payload_size, initial_max_data;
    uint64_t initial_max_stream_data_bidi_local, initial_max_stream_data_bidi_remote;
    uint64_t initial_max_stream_data_uni, initial_max_streams_bidi, initial_max_streams_uni;
    uint64_t ack_delay_exponent, max_ack_delay_ms, active_connection_id_limit;
    uint64_t max_datagram_frame_size;
    bool disable_active_migration;
    bool grease_quic_bit;
    bool reset_stream_at;
    uint64_t min_ack_delay_us;                         /* 0: no ACK_FREQUENCY */
    leat_span original_dcid, initial_scid, retry_scid; /* data NULL: not said */
    uint32_t chosen_version;                           /* 0: no version_information */
    leat_span available_versions;                      /* four bytes each */
    leat_addr preferred_ip4, preferred_ip6;            /* port 0: none */
    leat_span preferred_cid;                           /* empty: no preferred address */
} leat_event_parameters;

typedef struct leat_event_started {
    leat_addr local, remote;
    uint32_t version;
    leat_span dcid, scid;
} leat_event_started;

typedef struct leat_event_dropped {
    const char *packet; /* as leat_event_packet's type */
    size_t len;
    const char *reason;  /* "not authentic", ... */
    const char *trigger; /* what sort of reason, as qlog sorts them: "decryption_failure", ... */
} leat_event_dropped;

typedef struct leat_event_congestion {
    const char *from, *to;
} leat_event_congestion;

typedef struct leat_event_mtu {
    uint16_t from, to;
} leat_event_mtu;

typedef struct leat_event_key {
    const char *name;    /* "client_1rtt_secret" and so on, as qlog names them */
    const char *trigger; /* "tls", "local_update", "remote_update" */
    uint64_t phase;
} leat_event_key;

typedef struct leat_event_handshake {
    bool confirmed;
    bool resumed;
    leat_early early; /* 0-RTT's fate */
    uint32_t version;
    leat_span alpn, cipher;
} leat_event_handshake;

/* local: the peer sends to another of the IDs that this side gave out. Else this side sends to
 * another of the peer's. */
typedef struct leat_event_cid {
    bool local;
    leat_span from, to;
} leat_event_cid;

/* The path of the handshake has id 0 and is not announced. */
typedef struct leat_event_path {
    uint32_t id;
    bool gone;
    leat_addr local, remote; /* local.family 0: not known yet */
    leat_span dcid, scid;    /* IDs that packets there and back carry; data NULL: not known */
} leat_event_path;

typedef struct leat_event_migration {
    const char *state; /* "probing_started", "probing_abandoned", "probing_successful",
                          "migration_started", "migration_abandoned", "migration_complete" */
    uint32_t path;     /* the one that it is about */
    leat_addr local, remote;
} leat_event_migration;

typedef struct leat_event_retry_mode {
    bool on;
    size_t half_open; /* connections accepted and not yet confirmed */
} leat_event_retry_mode;

typedef struct leat_event {
    leat_event_type type;
    leat_time now;
    leat_span odcid; /* the connection; empty when none is known */
    bool server;     /* which end speaks */
    bool no_conn;    /* the endpoint's, for which no connection is kept; odcid may still name one */
    union {
        leat_event_started started;
        leat_close_info closed;
        leat_event_versions versions;
        leat_event_parameters parameters;
        leat_event_packet packet;
        leat_event_dropped dropped;
        leat_event_frame frame;
        leat_event_metrics metrics;
        leat_event_congestion congestion;
        leat_event_congestion ecn;
        leat_event_mtu mtu;
        bool spin;
        leat_event_key key;
        leat_event_handshake handshake;
        leat_event_cid cid;
        leat_event_path path;
        leat_event_migration migration;
        leat_event_retry_mode retry_mode;
    };
} leat_event;

typedef struct leat_event_sink {
    void (*emit)(struct leat_event_sink *sink, const leat_event *event);
} leat_event_sink;

/* "packet_sent" for LEAT_EVENT_PACKET_SENT. Static strings; any thread. */
LEAT_API const char *leat_event_name(leat_event_type type);

LEAT_END_DECLS

#endif
