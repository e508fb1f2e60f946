/* tests/support/echo.h: a pair with an application on each side: the server echoes, the client
 * counts.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_ECHO_H
#define LEAT_TESTS_ECHO_H

#include "pair.h"

/* What one side's application was told. */
typedef struct leat_echo_app {
    leat_conn *conn;
    unsigned connected, closed, opened, stream_closed, reset, stopped, tokens, available;
    size_t received;
    bool end;
    leat_close_info info; /* its texts are in `detail` */
    char detail[256];
    leat_stream *stream; /* the last that the peer opened */
    uint64_t code;       /* of the last reset or stop */
} leat_echo_app;

typedef struct leat_echo {
    leat_pair pair;
    leat_pair_setup setup;
    leat_echo_app client, server;
} leat_echo;

extern const leat_conn_events leat_echo_client_events;
extern const leat_conn_events leat_echo_server_events;

/* Defaults; the setup may then be changed. */
void leat_echo_prepare(leat_echo *echo);
/* Makes endpoints and starts the connection. */
void leat_echo_begin(leat_echo *echo);
/* And runs the handshake. */
void leat_echo_connect(leat_echo *echo);
/* Runs until nothing happens for so long. */
void leat_echo_settle(leat_echo *echo, leat_time time);
/* Both ends find out what datagrams the path carries, as if they had something to send. */
void leat_echo_find_size(leat_echo *echo);
/* Prepares with defaults, connects, lets what follows a handshake settle, and finds the size. */
void leat_echo_establish(leat_echo *echo);
/* Runs on for so long, also when nothing happens. */
void leat_echo_pass(leat_echo *echo, leat_time time);
/* The server's connection, before its application knows of it, too. */
leat_conn *leat_echo_server_conn(leat_echo *echo);
bool leat_echo_client_connected(void *echo);
bool leat_echo_both_connected(void *echo);
bool leat_echo_both_closed(void *echo);
bool leat_echo_client_closed(void *echo);
/* Writes n bytes on a new stream, as room comes, and reads them back. */
void leat_echo_bytes(leat_echo *echo, size_t n, leat_time timeout);
/* The client writes n bytes, at most 100,000, on a new stream: they find room. */
void leat_echo_write(leat_echo *echo, size_t n);
/* Closes from the client if that has not happened, waits the closing period out, and sees that
 * nothing is left. */
void leat_echo_finish(leat_echo *echo);

#endif
