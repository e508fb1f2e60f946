/* leat/loop.h: a ready event loop for those who have none: epoll, UDP sockets, clock and
 * randomness.
 *
 * A loop owns a context, and one thread runs both. Each UDP socket serves one endpoint, which may
 * have more of them. A turn is: wait, read every socket that is ready into pooled buffers, one
 * leat_ctx_turn(), send what there is in batches.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_LOOP_H
#define LEAT_LOOP_H

#include <leat/quic.h>

LEAT_BEGIN_DECLS

typedef struct leat_loop leat_loop;
typedef struct leat_udp leat_udp;     /* a UDP socket of a loop, with its endpoint */
typedef struct leat_watch leat_watch; /* a file descriptor that a loop watches */

/* CLOCK_MONOTONIC in nanoseconds. Any thread. */
LEAT_API leat_time leat_clock_now(void);

/* Fills buf from the system's random device; LEAT_ERR_IO. Any thread. */
LEAT_API leat_err leat_entropy(void *buf, size_t len);

typedef struct leat_loop_settings {
    leat_mem_settings mem;
} leat_loop_settings;

LEAT_API void leat_loop_settings_init(leat_loop_settings *settings);

/* Makes a loop and its context, seeded from the system. NULL settings: defaults. LEAT_ERR_NOMEM,
 * LEAT_ERR_INVALID as leat_mem_new()'s, LEAT_ERR_IO. */
LEAT_API leat_err leat_loop_new(const leat_loop_settings *settings, leat_loop **out);

/* Closes the sockets, frees their endpoints, ends the context. Everything else made from the
 * context must have been freed, and watches removed. NULL is allowed. */
LEAT_API void leat_loop_free(leat_loop *loop);

LEAT_API leat_ctx *leat_loop_ctx(leat_loop *loop);

/* Runs turns until leat_loop_stop(). LEAT_ERR_IO when waiting fails. */
LEAT_API leat_err leat_loop_run(leat_loop *loop);

/* One turn that waits at most until `deadline` (LEAT_TIME_NEVER: as long as nothing happens). */
LEAT_API leat_err leat_loop_turn(leat_loop *loop, leat_time deadline);

/* Ends leat_loop_run() after the present turn, or the next one at once. From any thread or a signal
 * handler. */
LEAT_API void leat_loop_stop(leat_loop *loop);

/* Parses "ADDR:PORT", "[ADDR6]:PORT", ":PORT" (any address, IPv6 with IPv4 where there is) or
 * "PORT". Numbers only. LEAT_ERR_ADDRESS. */
LEAT_API leat_err leat_addr_parse(const char *text, leat_addr *out);

/* Looks a host name up, blocking. Writes at most max addresses, in the resolver's order, and how
 * many there are to *count. LEAT_ERR_ADDRESS. */
LEAT_API leat_err leat_addr_resolve(const char *host, uint16_t port, leat_addr *out, size_t max,
                                    size_t *count);

enum { LEAT_ADDR_TEXT_MAX = 72 };
/* Writes "1.2.3.4:567" or "[::1]:567", terminated; returns out. */
LEAT_API const char *leat_addr_format(const leat_addr *addr, char out[LEAT_ADDR_TEXT_MAX]);

/* Sockets on one address, one a loop and thread, for a server that uses many cores. Set `count` and
 * zero the rest; open all of them, with the same address, before any of their loops runs, and close
 * them when no loop runs any more. Each connection stays with the loop that accepted it, whatever
 * address its client moves to: the first byte of a connection ID tells the socket, so the settings
 * of the endpoints must not have a make_cid of their own; they should have one leat_shared. */
enum { LEAT_UDP_GROUP_MAX = 64 };
typedef struct leat_udp_group {
    unsigned count;   /* sockets, 1 to LEAT_UDP_GROUP_MAX */
    bool no_steering; /* for tests: the kernel spreads by address, and loops hand over */
    bool steered;     /* the rest is the library's. The kernel took the program that steers */
    unsigned opened;
    leat_udp *members[LEAT_UDP_GROUP_MAX];
} leat_udp_group;

typedef struct leat_udp_settings {
    leat_addr local;  /* where to bind; family 0: any address and port, of the remote's family */
    leat_addr remote; /* family 0: not connected; otherwise the socket is connect()ed to it, which
                         is faster, and takes datagrams from there alone. Where a server would be
                         met elsewhere (RFC 9000 s9.6), another is opened by itself */
    int recv_buffer;  /* bytes asked of the kernel (SO_RCVBUF); the default is SOCKET_BUFFER's */
    int send_buffer;
    bool no_offload;       /* no GSO and GRO: one datagram a packet */
    leat_udp_group *group; /* or NULL: the only socket on its address. Borrowed. A port 0 is the
                              first one's for all. Not with a remote address */
    int busy_poll; /* microseconds that the loop looks again and again before it sleeps, and that
                      the kernel may poll the device for (SO_BUSY_POLL): for those who pay with
                      processor time for not being woken. The longest of a loop's sockets counts; 0:
                      it sleeps at once, and the system's setting */
} leat_udp_settings;

LEAT_API void leat_udp_settings_init(leat_udp_settings *settings);

/* Opens a socket and an endpoint on it; the loop owns both. The endpoint's want_send is called
 * before the loop's own. LEAT_ERR_IO (errno: address in use, no permission), LEAT_ERR_NOMEM,
 * LEAT_ERR_ADDRESS (neither address, or of two families), LEAT_ERR_INVALID (a group that is full or
 * cannot be), and leat_endpoint_new()'s. */
LEAT_API leat_err leat_udp_open(leat_loop *loop, const leat_udp_settings *udp,
                                const leat_endpoint_settings *endpoint, leat_udp **out);
/* Sends what waits, as far as the socket takes it, closes it and frees the endpoint. Not from an
 * event; from a watch's function, yes. NULL is allowed. */
LEAT_API void leat_udp_close(leat_udp *udp);
/* Opens another socket for the same endpoint: at a server's preferred address, say, or where a
 * client is to migrate to (leat_conn_migrate() with *local; settings.remote is leat_conn_remote()
 * then). *local: the address bound. Does nothing more when the first socket is bound to any address
 * and this port. Errors as leat_udp_open()'s, LEAT_ERR_LIMIT: LEAT_UDP_SOCKETS_MAX are open, and
 * LEAT_ERR_UNSUPPORTED: its first socket is one of a group. */
LEAT_API leat_err leat_udp_add(leat_udp *udp, const leat_udp_settings *settings, leat_addr *local);
/* Closes the socket there again, with what waits to be sent from it, if it is not the first one. */
LEAT_API void leat_udp_remove(leat_udp *udp, const leat_addr *local);
LEAT_API leat_endpoint *leat_udp_endpoint(leat_udp *udp);
/* The address that the first socket is bound to, with the port that the system chose. */
LEAT_API leat_addr leat_udp_local(const leat_udp *udp);
/* A sentence to print once when the kernel granted smaller socket buffers than asked for, with the
 * sysctl that raises them; NULL when it did not. Lives as long as the socket. */
LEAT_API const char *leat_udp_warning(const leat_udp *udp);

/* X(name, what it counts since the socket was opened) */
#define LEAT_UDP_STAT_LIST(X)                                                                      \
    X(recv_calls, "recvmmsg() calls that brought something")                                       \
    X(recv_messages, "messages received: one or, with GRO, several datagrams")                     \
    X(recv_datagrams, "datagrams received")                                                        \
    X(recv_bytes, "their bytes")                                                                   \
    X(recv_copied, "messages copied, because they were small for the buffer they came in")         \
    X(recv_dropped, "messages dropped: out of memory, or cut short by the system")                 \
    X(handed_over, "datagrams of another loop's connections, handed to it")                        \
    X(taken_over, "datagrams that other loops handed to this one")                                 \
    X(send_calls, "sendmmsg() calls")                                                              \
    X(send_messages, "messages sent: one or, with GSO, several datagrams")                         \
    X(send_datagrams, "datagrams sent")                                                            \
    X(send_bytes, "their bytes")                                                                   \
    X(send_blocked, "times that the socket's buffer was full")                                     \
    X(send_failed, "datagrams that the system refused, which are lost")                            \
    X(gso_failed, "1 when GSO failed and is off")

#define LEAT_UDP_STAT_MEMBER(name, text) uint64_t name;
typedef struct leat_udp_stats {
    LEAT_UDP_STAT_LIST(LEAT_UDP_STAT_MEMBER)
} leat_udp_stats;
#undef LEAT_UDP_STAT_MEMBER

LEAT_API void leat_udp_stats_get(const leat_udp *udp, leat_udp_stats *out);

typedef void leat_watch_fn(leat_watch *watch, int fd, uint32_t ready, void *user);
enum { LEAT_WATCH_READ = 1, LEAT_WATCH_WRITE = 2 };

/* Calls fn in the loop's turns while fd is ready (level-triggered), before events of connections;
 * an error or hang-up counts as ready for both. fd stays the caller's. LEAT_ERR_IO, LEAT_ERR_NOMEM.
 */
LEAT_API leat_err leat_watch_add(leat_loop *loop, int fd, uint32_t want, leat_watch_fn *fn,
                                 void *user, leat_watch **out);
LEAT_API leat_err leat_watch_set(leat_watch *watch, uint32_t want);
/* From its own function too. Before fd is closed. NULL is allowed. */
LEAT_API void leat_watch_remove(leat_watch *watch);

/* Reads a whole file into a buffer; *out is one byte longer than the file and ends with a zero.
 * LEAT_ERR_IO (errno), LEAT_ERR_LIMIT (more than max bytes), LEAT_ERR_NOMEM. */
LEAT_API leat_err leat_file_read(leat_mem *mem, const char *path, size_t max, leat_buf *out);

/* A key log for leat_tls_config: appends lines to a file, as SSLKEYLOGFILE asks. path NULL: the
 * variable's value. *out is NULL when neither is set. LEAT_ERR_IO. */
typedef struct leat_keylog leat_keylog;
LEAT_API leat_err leat_keylog_open(const char *path, leat_keylog **out);
/* For leat_tls_settings.keylog, with the leat_keylog as keylog_user. Any thread. */
LEAT_API void leat_keylog_write(void *keylog, const char *line);
/* errno of the first line that could not be written, 0 while there is none: for those who do not
 * wait for the end. Any thread. NULL: 0. */
LEAT_API int leat_keylog_error(const leat_keylog *keylog);
/* Closes. LEAT_ERR_IO: a line could not be written, errno says why the first was not. NULL is
 * allowed. */
LEAT_API leat_err leat_keylog_close(leat_keylog *keylog);

/* A sink that writes one qlog file (JSON-SEQ) a connection into a folder, named by the original
 * destination connection ID and the side. dir NULL: QLOGDIR's value; *out is NULL when neither is
 * set. LEAT_ERR_IO. */
struct leat_event_sink;
typedef struct leat_qlog leat_qlog;
LEAT_API leat_err leat_qlog_open(const char *dir, leat_qlog **out);
/* For leat_endpoint_settings; NULL for NULL. Its endpoints must be freed before the qlog is closed.
 */
LEAT_API struct leat_event_sink *leat_qlog_sink(leat_qlog *qlog);
/* errno of the first file that could not be made, or was not whole when its connection closed; 0
 * while there is none. On the thread of its endpoints. NULL: 0. */
LEAT_API int leat_qlog_error(const leat_qlog *qlog);
/* Writes the rest out and closes. LEAT_ERR_IO: a file could not be made or written, errno says why
 * the first was not. NULL is allowed. */
LEAT_API leat_err leat_qlog_close(leat_qlog *qlog);

/* A capture file: pcap with raw IP packets, times in nanoseconds, which Wireshark reads (together
 * with a key log). The IP and UDP headers are made up from the addresses. LEAT_ERR_IO,
 * LEAT_ERR_NOMEM. */
typedef struct leat_pcap leat_pcap;
LEAT_API leat_err leat_pcap_open(const char *path, leat_pcap **out);
/* Appends a datagram. Does nothing when the families of the addresses differ, or after an error. */
LEAT_API void leat_pcap_write(leat_pcap *pcap, leat_time now, const leat_addr *src,
                              const leat_addr *dst, uint8_t ecn, leat_span payload);
/* From now on every datagram that the socket receives, and each that it is given to send, goes into
 * the capture; NULL ends it. Borrowed: must outlive the socket or be taken from it. */
LEAT_API void leat_udp_capture(leat_udp *udp, leat_pcap *pcap);
/* Writes the rest out and closes. LEAT_ERR_IO: not all could be written. NULL is allowed. */
LEAT_API leat_err leat_pcap_close(leat_pcap *pcap);

LEAT_END_DECLS

#endif
