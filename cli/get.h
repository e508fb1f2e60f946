/* cli/get.h: the inside of `leat get`: files, and groups of files that share a connection.
 *
 * get.c reads the options and runs the loop, get_conn.c connects a group, get_file.c takes its
 * files through request, body and end.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CLI_GET_H
#define LEAT_CLI_GET_H

#include "cli.h"

typedef struct get_app get_app;
typedef struct get_group get_group;

typedef struct get_file {
    leat_cli_url url;
    leat_cli_output output;
    char *named; /* the output's path, when made here */
    get_group *group;
    leat_http_exchange *x; /* NULL: not asked for, or over */
    uint64_t length;       /* LEAT_HTTP_LENGTH_UNKNOWN until known */
    uint64_t received;
    bool over;
    bool whole;
} get_file;

typedef enum get_state {
    GET_WAITING,    /* its turn has not come */
    GET_CONNECTING, /* the handshake goes on */
    GET_RETRY,      /* this address failed: close the socket, try the next */
    GET_RUNNING,
    GET_FINISHED, /* everything came or failed: close the socket */
    GET_OVER
} get_state;

enum { GET_ADDRS = 8 };

/* The files of one host and port. */
struct get_group {
    get_app *app;
    const get_file *sample; /* one of its files: host, port, authority */
    get_state state;
    leat_addr addrs[GET_ADDRS];
    size_t addr_count;
    size_t attempts; /* made so far, see get_conn.c */
    leat_udp *udp;
    leat_conn *conn;
    leat_http *http;
    size_t next;          /* first file of the list that may still have to be asked for */
    size_t left;          /* files not over */
    size_t active;        /* asked for and not over */
    size_t lost;          /* over because the connection is */
    bool keys_updated;    /* by --key-update-at */
    bool early;           /* asked for with 0-RTT, before the handshake was complete */
    leat_time migrate_at; /* LEAT_TIME_NEVER: it has, or cannot */
    leat_time wait_until; /* with the session file: for a ticket, once all files have come */
    leat_cli_run run;
    leat_cli_steady steady;
};

struct get_app {
    leat_cli_common common;
    bool insecure, head, remote_names, only4, only6;
    bool serial; /* more than one file goes to standard output: one after the other */
    uint64_t parallel;
    uint64_t key_update_at; /* bytes; 0: not by this */
    leat_time connect_timeout;
    const char *ca_path, *folder, *session_path;
    leat_addr connect_to, bind; /* family 0: none */
    bool migrate;
    leat_time migrate_after;
    leat_loop *loop;
    leat_time wake; /* the loop's next turn ends by then */
    leat_tls_config *tls;
    leat_cli_session session; /* of the first group */
    get_file *files;
    size_t file_count;
    get_group *groups;
    size_t group_count;
    leat_cli_writer writer;
    leat_cli_progress progress;
    leat_cli_exit result; /* the first failure's */
};

/* Remembers the first failure. */
static inline void get_failed(get_app *app, leat_cli_exit code)
{
    if (app->result == LEAT_EXIT_OK) {
        app->result = code;
    }
}

/* Prints --stats for the group's connection, while it has one. */
static inline void get_print_stats(const get_group *group)
{
    if (group->app->common.stats && group->conn) {
        leat_cli_progress_stop(&group->app->progress);
        leat_cli_print_stats(group->conn, group->udp, &group->run, &group->steady);
    }
}

/* get_conn.c: starts a group, or goes on to its next address; the group's state tells what came of
 * it. */
void get_connect(get_group *group);
/* Moves to another local port. False: not yet; otherwise it is done or impossible, which is said.
 */
bool get_migrate(get_group *group);
/* Ends a group with one message for all files that it still has. */
void get_group_failed(get_group *group, leat_cli_exit code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* An attempt ended: true when another address is to be tried (the state is then GET_RETRY). */
bool get_try_next(get_group *group, const leat_close_info *info);
/* Why a connection closed, as an exit code and a message. */
void get_closed(get_group *group, const leat_close_info *info);

/* get_file.c */
extern const leat_http_events get_http_events;
/* None of the group's files was asked for yet, as at first. */
void get_forget(get_group *group);
/* Asks for as many files as may be asked for now. */
void get_ask(get_group *group);

#endif
