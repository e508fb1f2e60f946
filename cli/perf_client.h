/* cli/perf_client.h: the state of `leat perf client`, for its files.
 *
 * perf_client.c has options, start and end; perf_load.c what goes over streams and connections;
 * perf_http.c requests over HTTP/3; perf_report.c what is printed, perf_lines.c while several
 * connections run.
 *
 * A perf_client is one connection (in handshake mode one after the other) with a socket of its own.
 * Several share a thread's loop; several threads share nothing.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CLI_PERF_CLIENT_H
#define LEAT_CLI_PERF_CLIENT_H

#include "perf.h"

typedef enum perf_mode { PERF_UPLOAD, PERF_DOWNLOAD, PERF_REQUESTS, PERF_HANDSHAKES } perf_mode;

/* Times by size, in steps of a thirty-second part: quantiles to 3 %, without memory of its own. */
enum { PERF_HISTOGRAM_PARTS = 32, PERF_HISTOGRAM = 64 * PERF_HISTOGRAM_PARTS };
typedef struct perf_histogram {
    uint64_t count;
    uint64_t buckets[PERF_HISTOGRAM];
} perf_histogram;

void perf_histogram_add(perf_histogram *h, leat_time value);
/* The value below which `part` (0 to 1) of them lie. */
leat_time perf_histogram_quantile(const perf_histogram *h, double part);

typedef struct perf_stream perf_stream;
typedef struct perf_thread perf_thread;

typedef struct perf_client {
    leat_cli_common common;
    perf_mode mode;
    uint64_t bytes;     /* -n; 0: by time */
    uint64_t count;     /* requests or handshakes; 0: by time */
    leat_time time;     /* -t */
    leat_time interval; /* -i; 0: no lines */
    uint64_t parallel;  /* streams, requests or handshakes at once */
    uint64_t rate;      /* requests a second; 0: the next when one is done */
    uint64_t up, down;  /* bytes of a request and its answer */
    const char *path;   /* asked for over HTTP/3; NULL: the perf protocol */
    uint64_t connections, threads;
    uint64_t busy_poll;  /* microseconds */
    bool pin;            /* each thread has a core */
    bool own_loop;       /* connections that the server's loop of the thread's number answers */
    const char *ca_path; /* NULL: the certificate is not checked */
    const char *alpn;    /* NULL: perf */
    const char *host;
    uint16_t port;
    bool json;

    perf_thread *thread;
    size_t thread_number;
    bool reports; /* the only connection prints its lines itself; several: perf_lines.c */
    leat_loop *loop;
    leat_udp *udp;
    leat_tls_config *tls;
    leat_addr remote;
    leat_conn *conn; /* NULL in handshake mode */
    leat_http *http; /* or NULL */
    leat_perf_source source;
    leat_timer end_timer, interval_timer, rate_timer;
    leat_time began;   /* of the measuring; 0: not yet */
    leat_time ended;   /* 0: not yet */
    bool winding_down; /* no new work; what runs is waited for */
    bool blocked;      /* by the streams that the server allows */
    bool over;
    leat_cli_exit exit_code;
    perf_stream *streams; /* those that run */
    uint64_t running;     /* streams, requests or handshakes that are not done */
    uint64_t started;     /* so far */
    uint64_t done;
    uint64_t moved; /* bytes of content, both ways */
    leat_cli_steady steady;
    perf_histogram times;

    leat_time line_from; /* what the last line said */
    uint64_t line_moved, line_done;
    leat_conn_stats_data line_stats; /* one of several */
    unsigned lines;
    leat_conn_stats_data last; /* of the connection when it ended */
} perf_client;

/* ---- perf_client.c ---- */

/* This one's work is done: the thread ends with its last. */
void perf_client_over(perf_client *c);
/* Ends all threads. Signal handlers too. */
void perf_stop_all(void);

/* ---- perf_load.c ---- */

/* Starts the first connection. */
leat_err perf_load_start(perf_client *c);
/* No new work from now on; `over` is set when what runs is done. */
void perf_load_stop(perf_client *c);
/* With a rate: starts what is due. */
void perf_load_start_due(perf_client *c);
/* Bytes moved so far, as far as this end knows. */
uint64_t perf_load_moved(const perf_client *c);

/* Starts what may be started now. */
void perf_load_start_more(perf_client *c);
/* A request that was due at `opened` has its answer. */
void perf_load_answered(perf_client *c, leat_time opened);
/* When the next is to start; with --rate it may be later, or have been before. */
leat_time perf_load_due(const perf_client *c);
/* Ends everything with a message. */
void perf_load_fail(perf_client *c, leat_cli_exit exit_code, const char *what);
void perf_load_closed(perf_client *c, const leat_close_info *info);

/* ---- perf_http.c ---- */

/* Takes the connection, which has just been told connected. */
leat_err perf_http_attach(perf_client *c, leat_conn *conn);
/* False: not now, or never. */
bool perf_http_request(perf_client *c);

/* ---- perf_lines.c: of several connections ---- */

/* Before the first begins. */
void perf_lines_open(const perf_client *asked);
/* By the connection's thread: its measuring begins, an interval is over, its loop has ended. */
void perf_lines_begin(perf_client *c);
void perf_lines_tell(perf_client *c, leat_time now);
void perf_lines_end(perf_client *c);
/* All have ended: the rest of an interval, when it is worth a line. */
void perf_lines_close(leat_time ended);

/* ---- perf_report.c ---- */

void perf_histogram_merge(perf_histogram *h, const perf_histogram *more);
void perf_report_begin(perf_client *c);
/* A line for the time since the last. */
void perf_report_line(perf_client *c, leat_time now);
void perf_report_end(perf_client *c);

#endif
