/* cli/rtp_carry.h: what `leat rtp send` and `leat rtp recv` share: flows between UDP ports and an
 * RTP-over-QUIC session, their numbers, and where these are shown.
 *
 *     rtp_send.c    the sending command: connects, connects again, follows its own address
 *     rtp_recv.c    the receiving one: listens, serves one connection
 *     rtp_carry.c   flows: sockets, and packets from one side to the other
 *     rtp_session.c the session that carries them: its beginning and its end
 *     rtp_stats.c   numbers, as a line on a terminal or as JSON lines, and the rate for an encoder
 *
 * Memory is taken at the start. What a packet needs comes from the context's pools.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CLI_RTP_CARRY_H
#define LEAT_CLI_RTP_CARRY_H

#include <leat/report.h>
#include <leat/roq.h>

#include "rtp.h"

enum { CARRY_FLOWS = 32, CARRY_LINE = 49152, CARRY_WHY = 128 };

typedef struct carry carry;

/* Packets between a program's UDP ports and one flow. */
typedef struct carry_flow {
    carry *app;
    uint64_t id;
    bool id_given;
    leat_roq_flow_settings settings;
    leat_roq_flow *flow; /* NULL: no session */
    leat_addr media;     /* send: where RTP comes in; recv: where it goes to */
    leat_addr rtcp_to;   /* where RTCP goes; family 0, send: back to whoever sends it */
    leat_addr rtcp_in;   /* recv: where RTCP comes in; family 0: where the program's answers come */
    bool mux;            /* RTCP shares the port of RTP */
    int fd, rtcp_fd;     /* -1: none */
    leat_watch *watch, *rtcp_watch;
    leat_addr seen, rtcp_seen; /* who sent here last */
    leat_report_source source; /* recv: loss and jitter of the newest source */
    bool source_known;
    uint32_t clock_rate;
    uint64_t in_packets, in_bytes;   /* from UDP to QUIC */
    uint64_t out_packets, out_bytes; /* from QUIC to UDP */
    uint64_t refused;                /* from UDP, and not taken: no RTP, no session, no room */
    uint64_t unsent;                 /* to UDP, and not taken by the system */
    leat_roq_stats past;             /* of sessions that are over */
} carry_flow;

/* Somebody who reads lines, and what of the last one he has not taken yet. */
typedef struct carry_reader {
    int fd; /* -1: none */
    size_t len;
    char rest[CARRY_LINE];
} carry_reader;

/* What is counted over an interval. */
typedef struct carry_sum {
    uint64_t sent, sent_bytes, acked, lost, dropped, received, received_bytes;
} carry_sum;

struct carry {
    leat_cli_server server; /* of the sender, too: what it has of loop, socket and settings */
    bool sender;
    leat_roq *roq; /* the session; NULL: none */
    carry_flow flows[CARRY_FLOWS];
    size_t flow_count;
    const char *alpn;

    /* Numbers. */
    leat_timer stats_timer;
    leat_time interval;
    leat_time started, last;
    bool live;        /* a line on a terminal; otherwise JSON lines, unless quiet */
    carry_reader out; /* standard output */
    const char *log_path;
    carry_reader log; /* JSON lines go there too */
    bool log_failed;  /* it took one no more */
    carry_sum before;
    uint64_t missing_before;
    uint64_t reconnects;
    uint64_t unknown; /* streams and datagrams of flows that there are not here */
    leat_time unknown_said;
    bool ending;            /* nothing new is begun; the next line is the last */
    bool ended;             /* it is written */
    leat_cli_steady steady; /* heap calls, by the bytes carried */
    uint64_t estimate;      /* bits a second that the path is believed to carry; 0: not known */

    /* For the encoder. */
    carry_reader encoder; /* a socket or a file */
    leat_addr estimate_to;
    uint64_t estimate_told;
    leat_timer estimate_timer; /* tells it again */
};

/* Options that both commands know: X(ID, name, letter, argument, help). */
#define CARRY_OPTIONS(X)                                                                           \
    X(FLOW, "flow", 'f', "N", "its flow identifier (default: 1, 2 and so on)")                     \
    X(DATAGRAMS, "datagrams", 0, NULL, "its packets go in QUIC datagrams (the default)")           \
    X(STREAM_PER, "stream-per", 0, "WHAT",                                                         \
      "its packets go on streams: one per packet, per frame (of video), or per flow")              \
    X(LIFETIME, "lifetime", 0, "SECONDS",                                                          \
      "its packets are of no use after that (default 0.2; 0: never)")                              \
    X(QUEUE, "queue", 0, "BYTES", "of its packets that may wait (default 1M)")                     \
    X(URGENCY, "urgency", 0, "N", "0 first to 7 last, for its streams (default 3)")                \
    X(RTCP_MUX, "rtcp-mux", 0, NULL, "its RTCP shares the port of RTP (default: one port up)")     \
    X(RTCP_TO, "rtcp-to", 0, "URL", "send its RTCP there")                                         \
    X(CLOCK_RATE, "clock-rate", 0, "HZ", "of its RTP timestamps, for the jitter (default 90000)")  \
    X(INTERVAL, "interval", 'i', "SECONDS", "between lines of statistics (default 1)")             \
    X(LOG, "log", 0, "FILE", "append the statistics to FILE, for leat rtp plot")

/* Of the options common to all transfers, those that they know; two mean something else here. */
#define CARRY_COMMON_OPTIONS(X)                                                                    \
    X(ALPN, "alpn", 0, "NAME", "the protocol's name, if another was agreed on (default roq-14)")   \
    X(CIPHERS, "ciphers", 0, "LIST",                                                               \
      "TLS ciphers, best first: aes-128-gcm, aes-256-gcm, chacha20-poly1305")                      \
    X(GROUPS, "groups", 0, "LIST", "key exchange groups, best first: x25519, p256, p384")          \
    X(VERSIONS, "versions", 0, "LIST", "versions of QUIC, best first: v1, v2")                     \
    X(IDLE_TIMEOUT, "idle-timeout", 0, "SECONDS",                                                  \
      "take a connection that is silent for so long for lost (default 5)")                         \
    X(UDP_PAYLOAD, "udp-payload", 0, "BYTES", "largest datagram sent (1200 to 65527)")             \
    X(CONGESTION, "congestion", 0, "NAME",                                                         \
      "congestion control in place of the estimate: bbr, cubic, newreno")                          \
    X(NO_OFFLOAD, "no-offload", 0, NULL, "one datagram a packet: no GSO, no GRO")                  \
    X(KEYLOG, "keylog", 0, "FILE", "append TLS secrets to FILE (default: $SSLKEYLOGFILE)")         \
    X(QLOG, "qlog", 0, "DIR", "write a qlog file a connection into DIR (default: $QLOGDIR)")       \
    X(LOG_LEVEL, "log-level", 0, "LEVEL",                                                          \
      "tell on stderr what connections go through: error, warn, info, debug, trace")               \
    X(STATS, "stats", 0, NULL, "print statistics of each connection when it ends")                 \
    X(QUIET, "quiet", 'q', NULL, "print errors only, and the address listened on")                 \
    X(VERBOSE, "verbose", 'v', NULL, "say more")                                                   \
    X(HELP, "help", 'h', NULL, "print this help")

/* ---- rtp_carry.c ----------------------------------------------------------------------------- */

/* What each of the two commands has of its own. Exit codes other than LEAT_EXIT_OK come after a
 * message; argv are the arguments behind the options. */
typedef struct carry_command {
    const char *name; /* "rtp send" */
    const leat_cli_option *options;
    size_t option_count;
    void (*help)(void);
    bool (*take)(carry *app, int id); /* an option, its argument in optarg; false after a message */
    leat_cli_exit (*check)(carry *app, int argc, char **argv);
    leat_cli_exit (*start)(carry *app, char **argv);
    leat_cli_exit (*run)(carry *app);
    leat_cli_exit (*release)(carry *app, leat_cli_exit exit_code); /* whether it started or not */
} carry_command;

/* The command from its arguments to its exit code. */
int carry_main(carry *app, const carry_command *command, int argc, char **argv);

/* Defaults; a connection that takes datagrams and has room for many streams. */
void carry_init(carry *app, bool sender);
/* A flow for a new --in or --out. NULL after a message. */
carry_flow *carry_add_flow(carry *app, const leat_addr *media);
/* Takes an option of CARRY_OPTIONS, for the newest flow or all to come; false after a message.
 * `first` is the id of CARRY_OPTIONS' first row. */
bool carry_take(carry *app, int id, int first, const char *arg);
/* Numbers the flows that have no number; false after a message. */
bool carry_finish_flows(carry *app);
/* Opens the UDP ports; an exit code after a message. */
leat_cli_exit carry_open_ports(carry *app); /* For leat_roq_events. */
void carry_on_packet(leat_roq_flow *flow, leat_span packet, const leat_roq_arrival *how,
                     void *user);
void carry_close_ports(carry *app);

/* ---- rtp_session.c --------------------------------------------------------------------------- */

/* The session is there: opens its flows. */
leat_err carry_attach(carry *app, leat_conn *conn, const leat_roq_events *events);
/* The session is over. */
void carry_detach(carry *app);
/* A session's `closed`: prints the statistics asked for; false: it was not the present one, which
 * is detached. */
bool carry_over(carry *app, leat_roq *roq);
/* Why a connection was closed, in words: the peer's where it had some. */
const char *carry_why(const leat_close_info *info, char out[CARRY_WHY]);
/* For leat_roq_events: counts it, and says it now and then. */
void carry_on_unknown(leat_roq *roq, uint64_t id, void *user);

/* ---- rtp_stats.c ----------------------------------------------------------------------------- */

/* Appends JSON lines to a file. False after a message. */
bool carry_log_open(carry *app, const char *path);
void carry_stats_start(carry *app);
void carry_stats_stop(carry *app);
/* An event as a JSON line ("connected", "closed", …), or a line for a person. detail may be
 * NULL.
 */
void carry_say(carry *app, const char *event, const char *detail);
/* Opens where estimates go: "udp://HOST:PORT", "fd:N". False after a message. */
bool carry_estimate_open(carry *app, const char *text);
void carry_estimate_set(carry *app, uint64_t estimate);

#endif
