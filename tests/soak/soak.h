/* tests/soak/soak.h: hours of mixed load over real sockets, as one program: a server, and a client
 * with many workers, each of which makes one connection after the other for one job after the
 * other.
 *
 * On the wire, ALPN "soak": a bidirectional stream of the client's begins with a head of 24 bytes
 * (key, bytes up, bytes down) and goes on with the bytes up; the server checks each of them and
 * then sends the bytes down, which the client checks. The bytes follow from key and offset alone. A
 * DATAGRAM has a key and bytes that follow from it; the server sends it back. ALPN "roq-14": media,
 * a packet of which follows from its SSRC and sequence number.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_SOAK_H
#define LEAT_TESTS_SOAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <leat/leat.h>

#define SOAK_ALPN "soak"

enum {
    SOAK_HEAD = 24,
    SOAK_CODE_DONE = 0,
    SOAK_CODE_FAULT = 0xbad,  /* what came is not what was sent */
    SOAK_CODE_CANCEL = 0xca,  /* the client gave a stream up on purpose */
    SOAK_CODE_LEAVING = 0x1ea /* the server is about to be restarted */
};

/* ---- content.c: bytes that follow from a key ---- */

void soak_fill(uint64_t key, uint64_t offset, uint8_t *out, size_t len);
bool soak_same(uint64_t key, uint64_t offset, const uint8_t *data, size_t len);
uint64_t soak_random(uint64_t *state);

/* ---- counts ---- */

/* X(name, what it counts) */
#define SOAK_COUNT_LIST(X)                                                                         \
    X(faults, "what must not be: printed when seen")                                               \
    X(conns, "connections begun or accepted")                                                      \
    X(connected, "of these, handshakes completed")                                                 \
    X(resumed, "of these, by a ticket")                                                            \
    X(early_accepted, "connections with 0-RTT")                                                    \
    X(early_rejected, "connections whose 0-RTT was rejected, and whose streams went on")           \
    X(resets, "connections that ended in a stateless reset")                                       \
    X(broken, "connections that ended otherwise before their job was done")                        \
    X(migrations, "moves to another path")                                                         \
    X(key_updates, "key updates")                                                                  \
    X(streams, "streams whose bytes were all seen, and right")                                     \
    X(retried, "streams begun again on another connection")                                        \
    X(cancelled, "streams given up on purpose")                                                    \
    X(bytes_up, "bytes checked by the server")                                                     \
    X(bytes_down, "bytes checked by the client")                                                   \
    X(bytes_resent, "stream bytes that QUIC sent again")                                           \
    X(datagrams, "DATAGRAMs sent")                                                                 \
    X(datagrams_back, "of these, seen again, and right")                                           \
    X(media, "RTP packets on a stream, all of which must arrive")                                  \
    X(media_arrived, "of these, acknowledged (client) or received (server)")                       \
    X(media_loose, "RTP packets in datagrams and on streams of their own")                         \
    X(media_loose_arrived, "of these, acknowledged or received")                                   \
    X(jobs, "jobs done")

#define SOAK_COUNT_MEMBER(name, text) uint64_t name;
typedef struct soak_counts {
    SOAK_COUNT_LIST(SOAK_COUNT_MEMBER)
} soak_counts;
#undef SOAK_COUNT_MEMBER

extern soak_counts soak_count;

/* Prints a line that begins with "FAULT" and counts it. */
void soak_fault(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* File descriptors that this process has open. */
unsigned soak_fds(void);

/* ---- media.c: both sides ---- */

typedef struct soak_media soak_media;

/* Sessions of one connection. The client's sends three flows: 1 must arrive, 2 and 3 may be late.
 */
soak_media *soak_media_begin(leat_conn *conn, bool client, uint32_t ssrc, void *user);
/* One packet on each flow. */
void soak_media_send(soak_media *media);
/* All that must arrive has been acknowledged. */
bool soak_media_settled(const soak_media *media);
leat_conn *soak_media_conn(soak_media *media);
/* Client: what the worker wants to know; the media is gone after the second. */
void soak_worker_ticket(void *user, bool media, leat_span session);
void soak_worker_closed(void *user, leat_conn *conn, const leat_close_info *info);
/* Server: the statistics of a connection that ends. */
void soak_server_closed(leat_conn *conn);

/* ---- server.c, client.c ---- */

typedef struct soak_options {
    const char *cert, *key; /* server: PEM files */
    const char *ticket_key; /* server: a file with LEAT_TLS_TICKET_KEY bytes */
    leat_addr listen;       /* server */
    leat_addr to[2];        /* client: the ways to the server */
    size_t ways;
    unsigned workers;
    leat_time duration; /* client */
    uint64_t seed;
} soak_options;

int soak_server(const soak_options *options);
int soak_client(const soak_options *options);

#endif
