/* cli/rtp.h: what the parts of `leat rtp` share: addresses, sockets, capture files, printing.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CLI_RTP_H
#define LEAT_CLI_RTP_H

#include <sys/socket.h>

#include <leat/rtcp.h>
#include <leat/rtp.h>

#include "cli.h"

int leat_cli_rtp_feedback(int argc, char **argv);
int leat_cli_rtp_dump(int argc, char **argv);
int leat_cli_rtp_play(int argc, char **argv);
int leat_cli_rtp_plot(int argc, char **argv);
int leat_cli_rtp_recv(int argc, char **argv);
int leat_cli_rtp_send(int argc, char **argv);

enum { LEAT_CLI_DATAGRAM = 65536 };

/* True once SIGINT or SIGTERM came, after leat_cli_rtp_catch_signals(). */
extern volatile bool leat_cli_rtp_stopped;
void leat_cli_rtp_catch_signals(void);

/* ---- rtp_net.c --------------------------------------------------------------------------------
 */

/* Reads "udp://HOST:PORT", "udp://:PORT" or the same without "udp://"; `what` is the option's name.
 * False after a message. */
bool leat_cli_udp_url(const char *what, const char *text, leat_addr *out);

/* The same, for where datagrams go: the port is not 0. */
bool leat_cli_udp_target(const char *what, const char *text, leat_addr *out);

/* A UDP socket that does not block, bound to `local` (family 0: to any port, of the other's
 * family); it says when each datagram came. -1 after a message. */
int leat_cli_udp_open(const leat_addr *local, const leat_addr *remote);

/* What came with a datagram. */
typedef struct leat_cli_arrival {
    leat_addr from;
    leat_time at; /* when the kernel took it in, by leat_clock_now() */
    uint8_t ecn;
} leat_cli_arrival;

/* One datagram: its length. -1: none is there, or an error, which errno tells. */
ssize_t leat_cli_udp_recv(int fd, uint8_t *out, size_t cap, leat_cli_arrival *arrival);
bool leat_cli_udp_send(int fd, const uint8_t *data, size_t len, const leat_addr *to);
leat_addr leat_cli_udp_local(int fd);

/* ---- rtp_file.c -------------------------------------------------------------------------------
 */

/* A datagram of a capture. */
typedef struct leat_cli_datagram {
    leat_span data;
    uint64_t offset;    /* in the file, of its first byte */
    size_t cut;         /* bytes that it had behind those, and the capture has not */
    leat_time time;     /* since the first datagram */
    leat_addr from, to; /* family 0: not known */
} leat_cli_datagram;

typedef struct leat_cli_capture {
    const char *path;
    FILE *file;
    uint64_t at; /* offset in the file */
    bool rtpdump;
    bool swapped;  /* pcap of the other byte order */
    bool nano;     /* its times are in nanoseconds */
    uint32_t link; /* its link type */
    bool started;
    leat_time first;
    uint64_t skipped; /* packets that are no UDP, or fragments */
    uint8_t buffer[LEAT_CLI_DATAGRAM + 256];
} leat_cli_capture;

/* An exit code, after a message unless LEAT_EXIT_OK. */
leat_cli_exit leat_cli_capture_open(leat_cli_capture *capture, const char *path);
/* The next datagram; false at the end. What cannot be read makes a message with its offset. */
bool leat_cli_capture_next(leat_cli_capture *capture, leat_cli_datagram *out);
void leat_cli_capture_close(leat_cli_capture *capture);

/* ---- rtp_print.c ------------------------------------------------------------------------------
 */

typedef struct leat_cli_rtp_printer {
    FILE *to;
    bool json;
    uint64_t rtp, rtcp, other, bad;
} leat_cli_rtp_printer;

/* Prints a datagram packet by packet. Bad packets make a line on stderr with their offset in the
 * file. */
void leat_cli_rtp_print(leat_cli_rtp_printer *printer, const leat_cli_datagram *datagram);

#endif
