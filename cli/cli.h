/* cli/cli.h: what the subcommands of `leat` share.
 *
 * Memory: malloc at start-up alone. While files travel nothing here allocates; what comes and goes
 * with requests is taken from the context's memory.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CLI_CLI_H
#define LEAT_CLI_CLI_H

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <leat/event.h>
#include <leat/h3.h>
#include <leat/log.h>
#include <leat/loop.h>

/* Exit codes, for scripts: X(name, code, text). The man page and the help print this list. */
#define LEAT_CLI_EXIT_LIST(X)                                                                      \
    X(OK, 0, "all went well")                                                                      \
    X(FAILURE, 1, "something failed that no other code names")                                     \
    X(USAGE, 2, "a bad option, URL or argument")                                                   \
    X(NOT_FOUND, 3, "the server has no such file (404, 410)")                                      \
    X(STATUS, 4, "the server answered with a status that brings no whole file")                    \
    X(FILE, 5, "a local file or folder cannot be read or written")                                 \
    X(ADDRESS, 6, "a host cannot be found, or an address cannot be used")                          \
    X(TIMEOUT, 7, "the peer does not answer")                                                      \
    X(CERTIFICATE, 8, "a certificate or key cannot be used, or was not accepted")                  \
    X(BROKEN, 9, "the connection or a transfer broke")                                             \
    X(MEMORY, 10, "out of memory")                                                                 \
    X(INTERRUPTED, 130, "interrupted by a signal")

#define LEAT_CLI_EXIT_ENUM(name, code, text) LEAT_EXIT_##name = (code),
typedef enum leat_cli_exit { LEAT_CLI_EXIT_LIST(LEAT_CLI_EXIT_ENUM) } leat_cli_exit;
#undef LEAT_CLI_EXIT_ENUM

/* ---- subcommands ---- */

int leat_cli_allocs_run(int argc, char **argv);
int leat_cli_compare(int argc, char **argv);
int leat_cli_get(int argc, char **argv);
int leat_cli_rtp(int argc, char **argv);
int leat_cli_serve(int argc, char **argv);
int leat_cli_bench(int argc, char **argv);
int leat_cli_perf(int argc, char **argv);

/* What a peer sent, fit to be printed: bytes that a terminal might act on become '?', and what is
 * too long is cut. Returns out. */
enum { LEAT_CLI_SAFE = 128 };
const char *leat_cli_safe(leat_span text, char out[LEAT_CLI_SAFE]);

/* "leat: …" and a newline on stderr. */
void leat_cli_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* At start-up, before there is anything to clean up: says so and exits. */
_Noreturn void leat_cli_no_memory(void);
/* Zeroed memory at start-up, which is there or the command is over. */
void *leat_cli_alloc(size_t count, size_t size);

/* What failed, in words; errno's for LEAT_ERR_IO. */
const char *leat_cli_why(leat_err err);
/* Out of memory has an exit code of its own; anything else is `otherwise`. */
leat_cli_exit leat_cli_exit_of(leat_err err, leat_cli_exit otherwise);

/* A loop, or an exit code after a message. */
leat_cli_exit leat_cli_loop_new(leat_loop **out);

/* Has SIGINT, SIGTERM and SIGHUP call `handler`; but not SIGHUP where it is ignored (nohup). No
 * SA_RESTART: what waits is to end. */
void leat_cli_catch_signals(void (*handler)(int number));

/* ---- options.c ---- */

/* One option: the long name, its short letter (0: none), what its argument is called (NULL: none)
 * and its help. `id` is what leat_cli_option_next() returns. */
typedef struct leat_cli_option {
    int id;
    const char *name;
    char letter;
    const char *arg;
    const char *help;
} leat_cli_option;

/* What both ends of a transfer can be told: X(ID, name, letter, argument, help). */
#define LEAT_CLI_COMMON_OPTIONS(X)                                                                 \
    X(ALPN, "alpn", 0, "LIST", "application protocols, best first: h3, hq-interop")                \
    X(CIPHERS, "ciphers", 0, "LIST",                                                               \
      "TLS ciphers, best first: aes-128-gcm, aes-256-gcm, chacha20-poly1305")                      \
    X(GROUPS, "groups", 0, "LIST", "key exchange groups, best first: x25519, p256, p384")          \
    X(VERSIONS, "versions", 0, "LIST", "versions of QUIC, best first: v1, v2")                     \
    X(IDLE_TIMEOUT, "idle-timeout", 0, "SECONDS", "close a connection that is silent for so long") \
    X(WINDOW, "window", 0, "BYTES",                                                                \
      "flow-control window of a stream at first; the connection's is double")                      \
    X(SEND_BUFFER, "send-buffer", 0, "BYTES", "bytes a stream buffers until acknowledged")         \
    X(UDP_PAYLOAD, "udp-payload", 0, "BYTES", "largest datagram sent (1200 to 65527)")             \
    X(CONGESTION, "congestion", 0, "NAME",                                                         \
      "congestion control: cubic (the default), newreno, bbr")                                     \
    X(KEY_UPDATE, "key-update", 0, "N", "update the keys every N packets")                         \
    X(NO_OFFLOAD, "no-offload", 0, NULL, "one datagram a packet: no GSO, no GRO")                  \
    X(KEYLOG, "keylog", 0, "FILE", "append TLS secrets to FILE (default: $SSLKEYLOGFILE)")         \
    X(QLOG, "qlog", 0, "DIR", "write a qlog file a connection into DIR (default: $QLOGDIR)")       \
    X(LOG_LEVEL, "log-level", 0, "LEVEL",                                                          \
      "tell on stderr what connections go through: error, warn, info, debug, trace")               \
    X(STATS, "stats", 0, NULL, "print statistics of each connection when it ends")                 \
    X(QUIET, "quiet", 'q', NULL, "print errors only")                                              \
    X(VERBOSE, "verbose", 'v', NULL, "say more")                                                   \
    X(HELP, "help", 'h', NULL, "print this help")

#define LEAT_CLI_OPTION_ENUM(id, name, letter, arg, help) LEAT_OPT_##id,
enum leat_cli_common_id {
    LEAT_OPT_FIRST = 256,
    LEAT_CLI_COMMON_OPTIONS(LEAT_CLI_OPTION_ENUM) LEAT_OPT_COMMON_END
};
#define LEAT_CLI_OPTION_ROW(id, name, letter, arg, help) {LEAT_OPT_##id, name, letter, arg, help},

enum { LEAT_CLI_ALPN_MOST = 2 };

typedef struct leat_cli_common {
    const char *alpn[LEAT_CLI_ALPN_MOST];
    size_t alpn_count;
    leat_tls_settings tls; /* ciphers and groups; the rest is the command's */
    leat_conn_settings conn;
    bool no_offload, stats, quiet, verbose, help;
    const char *keylog_path, *qlog_dir;
    leat_keylog *keylog;
    leat_qlog *qlog;
    leat_log log; /* level LEAT_LOG_NOTHING: there is none */
} leat_cli_common;

void leat_cli_common_init(leat_cli_common *common);
/* Takes an option of LEAT_CLI_COMMON_OPTIONS; false after a message. */
bool leat_cli_common_take(leat_cli_common *common, int id, const char *arg);
/* Opens key log and qlog, and fills in tls.alpn and tls.keylog; an exit code after a message. */
leat_cli_exit leat_cli_common_open(leat_cli_common *common);
/* For an endpoint's settings: the log, the qlog, both or NULL. */
struct leat_event_sink *leat_cli_common_sink(leat_cli_common *common);
/* Warns, once, of a key log or qlog files that could not be written: a server may run for long. Any
 * thread of it. */
void leat_cli_common_warn(const leat_cli_common *common);
/* Closes them. Returns exit_code, or LEAT_EXIT_FILE instead of LEAT_EXIT_OK after a message, when
 * one of them could not be written. */
leat_cli_exit leat_cli_common_close(leat_cli_common *common, leat_cli_exit exit_code);

enum { LEAT_CLI_OPTIONS_MOST = 64 };

/* The next option by getopt_long: its id, -1 at the end, '?' after a message. */
typedef struct leat_cli_parser {
    struct option longs[LEAT_CLI_OPTIONS_MOST + 1];
    char shorts[3 * LEAT_CLI_OPTIONS_MOST + 2];
    const leat_cli_option *options;
    size_t count;
    const char *command;
} leat_cli_parser;

void leat_cli_parser_init(leat_cli_parser *parser, const char *command,
                          const leat_cli_option *options, size_t count);
int leat_cli_option_next(leat_cli_parser *parser, int argc, char **argv);
/* Prints options and exit codes for --help. */
void leat_cli_print_options(const leat_cli_option *options, size_t count);
void leat_cli_print_exit_codes(void);

/* Arguments; each prints a message and returns false. `what` is the option's name. */
bool leat_cli_number(const char *what, const char *text, uint64_t least, uint64_t most,
                     uint64_t *out); /* with k, M, G: powers of 1024 */
enum leat_cli_zero { LEAT_CLI_NOT_ZERO, LEAT_CLI_ZERO_TOO };
bool leat_cli_seconds(const char *what, const char *text, enum leat_cli_zero zero,
                      leat_time *out); /* "2", "0.5" */

/* ---- tls.c ---- */

/* Both make a config, or give an exit code after a message. Without a path a client believes whom
 * the settings say, and a server makes a certificate for itself. */
leat_cli_exit leat_cli_tls_client(leat_tls_settings *settings, leat_mem *mem, const char *ca_path,
                                  leat_tls_config **out);
leat_cli_exit leat_cli_tls_server(leat_tls_settings *settings, leat_mem *mem, const char *cert_path,
                                  const char *key_path, leat_tls_config **out);

/* ---- cores.c ---- */

/* Keeps the calling thread on the core of that number among those that it may use, counted round
 * and round. False: the system does not allow it. Call it before the thread makes others. */
bool leat_cli_pin(size_t number);

/* ---- server.c: what servers are made of, in the order in which it is called ---- */

#define LEAT_CLI_SERVER_OPTIONS(X)                                                                 \
    X(LISTEN, "listen", 'l', "ADDR:PORT", "where to listen (default: :4433, any address)")         \
    X(CERT, "cert", 0, "FILE", "certificate chain, PEM (default: self-signed, made at start-up)")  \
    X(KEY, "key", 0, "FILE", "its private key, PEM")

/* Of servers that can be an array (leat_cli_server_run_all()). */
#define LEAT_CLI_THREAD_OPTIONS(X)                                                                 \
    X(THREADS, "threads", 0, "N",                                                                  \
      "threads, each with a loop and a socket of its own (default: 1)")                            \
    X(PIN, "pin", 0, NULL, "each thread on a core of its own")                                     \
    X(BUSY_POLL, "busy-poll", 0, "MICROSECONDS",                                                   \
      "look for packets so long before it sleeps: less delay for more processor time")

enum leat_cli_server_id {
    LEAT_OPT_SERVER_FIRST = LEAT_OPT_COMMON_END,
    LEAT_CLI_SERVER_OPTIONS(LEAT_CLI_OPTION_ENUM) LEAT_CLI_THREAD_OPTIONS(LEAT_CLI_OPTION_ENUM)
        LEAT_OPT_SERVER_END
};

typedef struct leat_cli_server {
    leat_cli_common common;
    const char *listen, *cert_path, *key_path;
    leat_loop *loop;
    leat_udp *udp;
    leat_tls_config *tls;
    uint64_t threads, busy_poll;
    bool pin;
    size_t number;           /* of its thread */
    leat_udp_group *group;   /* the sockets of all threads; NULL with one */
    leat_cli_exit exit_code; /* of its thread */
} leat_cli_server;

/* A server of several threads is an array of structs that begin with a leat_cli_server, one a
 * thread. The first is made as if it were alone; leat_cli_server_join() makes each of the others a
 * copy of it with a loop of its own, and each listens. */

void leat_cli_server_init(leat_cli_server *server);
/* Takes an option of LEAT_CLI_SERVER_, THREAD_ or COMMON_OPTIONS; false after a message. */
bool leat_cli_server_take(leat_cli_server *server, int id, const char *arg);
/* Whether the options go together; false after a message. */
bool leat_cli_server_check(const leat_cli_server *server);
/* Logs, loop, TLS; an exit code after a message. */
leat_cli_exit leat_cli_server_start(leat_cli_server *server);
/* Opens the socket. `endpoint` has what is the command's own: events, user, limits. */
leat_cli_exit leat_cli_server_listen(leat_cli_server *server, leat_endpoint_settings *endpoint);
/* The options of `first`, all that threads share, and a loop; an exit code after a message. */
leat_cli_exit leat_cli_server_join(leat_cli_server *server, const leat_cli_server *first);
/* Says where it listens, and runs until a signal or leat_cli_server_stop(). */
leat_cli_exit leat_cli_server_run(leat_cli_server *server);
/* The same for all threads. Each then calls `end` with its struct; `size` is theirs. Returns when
 * all have. */
leat_cli_exit leat_cli_server_run_all(leat_cli_server *first, size_t size,
                                      void (*end)(leat_cli_server *server));
/* Ends the loops. Any thread, signal handlers too. */
void leat_cli_server_stop(void);
/* Signals to end so far. */
int leat_cli_server_signals(void);
/* Closes every connection, and says so to the peers. */
void leat_cli_server_goodbye(leat_cli_server *server, uint64_t code);
/* Gives everything back, of the first one alone what they share, and last; as
 * leat_cli_common_close(). */
void leat_cli_server_leave(leat_cli_server *server);
leat_cli_exit leat_cli_server_release(leat_cli_server *server, leat_cli_exit exit_code);

static inline leat_mem *leat_cli_server_mem(const leat_cli_server *server)
{
    return leat_ctx_mem(leat_loop_ctx(server->loop));
}

/* ---- stats.c ---- */

/* Heap calls of the whole process so far, when liballoccount.so is preloaded. */
typedef struct leat_cli_allocs {
    bool known;
    uint64_t now;
} leat_cli_allocs;
leat_cli_allocs leat_cli_allocs_now(void);

/* Heap calls, and the most memory that the context has had, between the first megabyte of a run and
 * the last: the steady state. */
typedef struct leat_cli_steady {
    uint64_t bytes; /* moved so far */
    uint64_t next;  /* when to look again */
    unsigned looks;
    leat_cli_allocs allocs_first, allocs_last; /* after the first megabyte, at the last whole one */
    uint64_t memory_first, memory_last;
} leat_cli_steady;
void leat_cli_steady_look(leat_cli_steady *steady, leat_mem *mem);
static inline void leat_cli_steady_add(leat_cli_steady *steady, size_t bytes, leat_mem *mem)
{
    steady->bytes += bytes;
    if (steady->bytes >= steady->next) {
        leat_cli_steady_look(steady, mem);
    }
}

/* Continues a JSON object with what was counted; nothing without the counter of heap calls, or
 * where less than two megabytes were moved. */
void leat_cli_steady_json(const leat_cli_steady *steady);

typedef struct leat_cli_run {
    leat_time started; /* clock */
    uint64_t body_bytes;
} leat_cli_run;

/* Takes what buffers a fast transfer needs once and gives them back, so that the memory does not
 * ask the system for them one by one while it runs. */
void leat_cli_warm(leat_mem *mem);

/* Everything known of a connection, the memory and the process, a line each on stderr. */
void leat_cli_print_stats(leat_conn *conn, const leat_udp *udp, const leat_cli_run *run,
                          const leat_cli_steady *steady);

/* Sizes and rates for people: "1.5 MiB". */
enum { LEAT_CLI_TEXT = 32 };
const char *leat_cli_bytes_text(uint64_t bytes, char out[LEAT_CLI_TEXT]);

/* ---- url.c ---- */

/* The parts of an https URL, in one block of memory of its own (made at start-up). */
typedef struct leat_cli_url {
    const char *text;      /* as given */
    const char *host;      /* a name, or an address without brackets */
    const char *authority; /* as in the URL, without user information */
    const char *path;      /* with the query, from '/' */
    const char *name;      /* the last segment of the path, percent-decoded; "" when there is none
                              that can be a file's name */
    uint16_t port;
} leat_cli_url;

/* False after a message. */
bool leat_cli_url_parse(const char *text, leat_cli_url *out);
void leat_cli_url_free(leat_cli_url *url);

/* Percent-decodes s once into out (cap bytes, terminated). -1: a bad escape, a zero byte, or too
 * long. */
int leat_cli_percent_decode(leat_span s, char *out, size_t cap);

/* ---- session.c: a TLS session and an address token in a file, and a server's ticket key ---- */

/* A file that is written whole, or not at all. */
typedef struct leat_cli_place {
    const char *path;  /* as given; NULL: none */
    char *real, *part; /* see part.c */
} leat_cli_place;

typedef struct leat_cli_session {
    leat_cli_place place;
    uint8_t *data;      /* room for a session, then for a token, made at start-up */
    size_t len;         /* 0: there is none yet */
    leat_span token;    /* proves the address in place of a Retry, once */
    bool fresh;         /* the session is not yet written */
    bool token_changed; /* came, or was used */
} leat_cli_session;

/* Without a file. */
void leat_cli_session_init(leat_cli_session *session);
/* Reads the file, if it is there. False after a message. */
bool leat_cli_session_load(leat_cli_session *session, const char *path);
/* Keeps a newer one. */
void leat_cli_session_keep(leat_cli_session *session, leat_span data);
void leat_cli_session_keep_token(leat_cli_session *session, leat_span token);
/* It is good for once. */
void leat_cli_session_token_used(leat_cli_session *session);
/* Writes what is fresh, readable by the owner alone. False after a message. */
bool leat_cli_session_save(leat_cli_session *session);
void leat_cli_session_free(leat_cli_session *session);

/* Reads a ticket key; makes one when there is no such file. False after a message. */
bool leat_cli_ticket_key(const char *path, uint8_t key[LEAT_TLS_TICKET_KEY]);
bool leat_cli_random(void *out, size_t len);
/* The keys of a server's tickets, tokens and stateless resets, those in the file or, NULL, new
 * ones. Without early_data no ticket allows 0-RTT. An exit code after a message. */
leat_cli_exit leat_cli_shared_new(const char *ticket_key_path, bool early_data, leat_shared **out);

/* ---- files.c: the server's side of the disk ---- */

/* What a request's path names, under the served folder: decoded, without slashes in front. */
enum { LEAT_CLI_NAME_MOST = 4096, LEAT_CLI_NAME_ROOM = LEAT_CLI_NAME_MOST + 16 };
typedef struct leat_cli_name {
    size_t len;
    char text[LEAT_CLI_NAME_ROOM]; /* terminated; with room for the name of an index */
} leat_cli_name;

/* An HTTP status: 200, or 404 or 403 for a path that can name nothing here. */
unsigned leat_cli_name_of(leat_span path, leat_cli_name *out);

/* Which file it is, and its last change. */
typedef struct leat_cli_file_id {
    uint64_t device, inode, size;
    struct timespec written, changed;
} leat_cli_file_id;

typedef struct leat_cli_file {
    int fd;
    uint64_t size;
    const char *type; /* media type, static */
    leat_cli_file_id id;
} leat_cli_file;

/* Opens the file of that name under the folder `root`, never anything outside; may change the
 * name's text behind its length. Returns an HTTP status: 200 (the caller closes fd), 403, 404, 503
 * or 500. */
unsigned leat_cli_file_open(int root, leat_cli_name *name, leat_cli_file *out);
/* Of an open file. False: errno. */
bool leat_cli_file_identify(int fd, leat_cli_file_id *out);
bool leat_cli_file_same(const leat_cli_file_id *a, const leat_cli_file_id *b);

/* ---- part.c: files that appear whole ---- */

/* Where a path leads: without links, and without dots in the names of its folders; to be freed.
 * *descriptor: to something that a process has open, by a link of /proc, which is returned. */
char *leat_cli_resolve(const char *path, bool *descriptor);
/* The name of a part beside a file, to be opened; to be freed. */
char *leat_cli_part_name(const char *path);
/* Makes the part under a name that no other file has, with that mode less the umask. -1: errno. */
int leat_cli_part_open(char *part, unsigned mode);

/* ---- output.c: the client's side ---- */

/* A download's destination. What is written goes to `part` and becomes `real` only when whole. */
typedef struct leat_cli_output {
    const char *path; /* as given; NULL: standard output */
    char *real;       /* what it leads to */
    char *part;       /* NULL: written directly (a device, a pipe, standard output) */
    int given;        /* the descriptor of this process that it means; -1: none */
    int fd;           /* -1: not open */
    uint8_t *buffer;  /* borrowed from the writer while open, or NULL */
    size_t fill;
    int error; /* errno of what failed first */
} leat_cli_output;

/* Buffers that gather packets into larger writes: made at start-up, lent to open outputs. */
enum { LEAT_CLI_BUFFERS = 8, LEAT_CLI_BUFFER = 262144 };
typedef struct leat_cli_writer {
    uint8_t *memory;
    uint8_t *free[LEAT_CLI_BUFFERS];
    size_t free_count;
} leat_cli_writer;

void leat_cli_writer_init(leat_cli_writer *writer);
void leat_cli_writer_free(leat_cli_writer *writer);

/* At start-up: prepares; path is borrowed, NULL: standard output. */
void leat_cli_output_init(leat_cli_output *out, const char *path);
/* The others return false when something failed: out->error says what. */
bool leat_cli_output_open(leat_cli_output *out, leat_cli_writer *writer);
bool leat_cli_output_write(leat_cli_output *out, leat_span data);
/* Writes the rest out, and gives the file its name. */
bool leat_cli_output_commit(leat_cli_output *out, leat_cli_writer *writer);
/* Closes and leaves nothing behind. Harmless when not open. */
void leat_cli_output_discard(leat_cli_output *out, leat_cli_writer *writer);
void leat_cli_output_free(leat_cli_output *out);

/* ---- progress.c ---- */

/* One line on a terminal, redrawn by a timer; nothing anywhere else. */
typedef struct leat_cli_progress {
    leat_timer timer;
    bool on;
    bool drawn;
    leat_time started, last;
    uint64_t bytes, last_bytes;
    double rate;         /* bytes a second, smoothed */
    uint64_t expected;   /* bytes of the files whose length is known */
    size_t lengths;      /* files whose length is known */
    bool expected_known; /* of all */
    size_t files, files_done;
} leat_cli_progress;

void leat_cli_progress_start(leat_cli_progress *progress, leat_ctx *ctx, bool wanted, size_t files);
void leat_cli_progress_stop(leat_cli_progress *progress);

#endif
