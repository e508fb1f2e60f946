/* io/qlog.c: a sink of events that keeps a qlog file for each connection.
 *
 * DIR/ODCID_client.sqlog, DIR/ODCID_server.sqlog. A file begins with CONNECTION_STARTED and ends
 * with CONNECTION_CLOSED. Records gather in a buffer of the connection's and go to its file when
 * the buffer is full and at the end; frames gather beside it until their packet comes. At most
 * LEAT_QLOG_FILES connections are logged at once; what begins beyond that is not logged.
 *
 * What an endpoint says without a connection (Retry, Version Negotiation, stateless reset, refusal)
 * goes to DIR/endpoint_server.sqlog, which is made when there is something to write.
 *
 * A file that cannot be made or written costs its connection nothing but the log; closing tells.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io/qlog.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/time.h"
#include "io/files.h"

enum { LEAT_QLOG_FILES = 256, CID_MAX = 20 };

typedef struct connection_log {
    leat_buf self;
    int fd;
    bool server;
    bool no_conn; /* the endpoint's */
    int error;    /* errno of what failed: nothing more is written */
    uint8_t odcid_len;
    uint8_t odcid[CID_MAX];
    leat_time started;
    size_t frames_len;
    size_t used;
    char frames[LEAT_QLOG_FRAMES_MAX];
    char text[2 * LEAT_QLOG_RECORD_MAX];
} connection_log;

struct leat_qlog {
    leat_event_sink sink;
    leat_mem *mem;
    leat_buf self;
    int error; /* errno of what failed first, of all files */
    size_t count;
    size_t last; /* the one that had the last event: most often it has the next */
    connection_log *logs[LEAT_QLOG_FILES];
    char dir[PATH_MAX];
};

/* ---- one connection's log -------------------------------------------------------------------- */

static void flush(connection_log *log)
{
    if (log->error == 0 && leat_io_write(log->fd, log->text, log->used) != LEAT_OK) {
        log->error = errno;
    }
    log->used = 0;
}

/* Room for one record. */
static leat_json begin_record(connection_log *log)
{
    if (sizeof(log->text) - log->used < LEAT_QLOG_RECORD_MAX) {
        flush(log);
    }
    return leat_json_begin(log->text + log->used, LEAT_QLOG_RECORD_MAX);
}

static void end_record(connection_log *log, const leat_json *json)
{
    if (!json->full) {
        log->used += json->len;
    }
}

static void add_frame(connection_log *log, const leat_event_frame *frame)
{
    leat_json json = leat_json_begin(log->frames, sizeof(log->frames));
    json.len = log->frames_len;
    leat_qlog_write_frame(&json, frame);
    if (!json.full) {
        log->frames_len = json.len;
    }
}

static void add_event(connection_log *log, const leat_event *event)
{
    leat_span frames = {0};
    if (event->type == LEAT_EVENT_PACKET_SENT || event->type == LEAT_EVENT_PACKET_RECEIVED) {
        frames = (leat_span){(const uint8_t *)log->frames, log->frames_len};
        log->frames_len = 0;
    }
    leat_json json = begin_record(log);
    leat_qlog_write_event(&json, event, leat_time_since(event->now, log->started), frames);
    end_record(log, &json);
}

/* Keeps the first. */
static void note_error(leat_qlog *qlog, int error)
{
    if (qlog->error == 0) {
        qlog->error = error;
    }
}

static void close_log(leat_qlog *qlog, connection_log *log)
{
    leat_buf self = log->self;
    flush(log);
    if (close(log->fd) != 0 && log->error == 0) {
        log->error = errno;
    }
    note_error(qlog, log->error);
    leat_buf_release(&self);
}

/* ---- the set of them ------------------------------------------------------------------------- */

static bool is_of(const connection_log *log, const leat_event *event)
{
    if (log->no_conn || event->no_conn) {
        return log->no_conn == event->no_conn;
    }
    return log->server == event->server && log->odcid_len == event->odcid.len &&
           memcmp(log->odcid, event->odcid.data, event->odcid.len) == 0;
}

static connection_log *find_log(leat_qlog *qlog, const leat_event *event)
{
    if (event->odcid.len == 0 && !event->no_conn) {
        return NULL;
    }
    if (qlog->last < qlog->count && is_of(qlog->logs[qlog->last], event)) {
        return qlog->logs[qlog->last];
    }
    for (size_t i = 0; i < qlog->count; i++) {
        if (is_of(qlog->logs[i], event)) {
            qlog->last = i;
            return qlog->logs[i];
        }
    }
    return NULL;
}

static int create_file(const leat_qlog *qlog, const leat_event *event)
{
    char path[PATH_MAX + 2 * CID_MAX + 16];
    leat_json name = leat_json_begin(path, sizeof(path) - 1);
    leat_json_raw(&name, qlog->dir);
    leat_json_raw(&name, "/");
    for (size_t i = 0; i < event->odcid.len && !event->no_conn; i++) {
        uint8_t byte = event->odcid.data[i];
        char pair[] = {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
        leat_json_bytes(&name, pair, sizeof(pair));
    }
    leat_json_raw(&name, event->no_conn ? "endpoint" : "");
    leat_json_raw(&name, event->server ? "_server.sqlog" : "_client.sqlog");
    path[name.len] = '\0';
    return open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
}

static uint64_t wall_clock_ms(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void open_log(leat_qlog *qlog, const leat_event *event)
{
    leat_buf self;
    bool named = event->no_conn || (event->odcid.len > 0 && event->odcid.len <= CID_MAX);
    if (qlog->count == LEAT_QLOG_FILES || !named ||
        leat_buf_take(qlog->mem, sizeof(connection_log), &self) != LEAT_OK) {
        return;
    }
    connection_log *log = (connection_log *)(void *)self.data;
    log->self = self;
    log->fd = create_file(qlog, event);
    if (log->fd < 0) {
        note_error(qlog, errno);
        leat_buf_release(&self);
        return;
    }
    log->server = event->server;
    log->error = 0;
    log->no_conn = event->no_conn;
    log->odcid_len = 0;
    if (!event->no_conn) {
        log->odcid_len = (uint8_t)event->odcid.len;
        memcpy(log->odcid, event->odcid.data, event->odcid.len);
    }
    log->started = event->now;
    log->frames_len = 0;
    log->used = 0;
    leat_json json = begin_record(log);
    leat_qlog_write_header(&json, event, wall_clock_ms());
    end_record(log, &json);
    qlog->logs[qlog->count++] = log;
}

static void end_log(leat_qlog *qlog, connection_log *log)
{
    size_t i = qlog->last; /* find_log() has just set it */
    LEAT_ASSERT(qlog->logs[i] == log);
    close_log(qlog, log);
    qlog->logs[i] = qlog->logs[--qlog->count];
}

static void emit(leat_event_sink *sink, const leat_event *event)
{
    leat_qlog *qlog = LEAT_CONTAINER_OF(sink, leat_qlog, sink);
    connection_log *log = find_log(qlog, event);
    if (log == NULL && (event->type == LEAT_EVENT_CONNECTION_STARTED || event->no_conn)) {
        open_log(qlog, event);
        log = find_log(qlog, event);
    }
    if (log == NULL) {
        return;
    }
    if (event->type == LEAT_EVENT_FRAME_SENT || event->type == LEAT_EVENT_FRAME_RECEIVED) {
        add_frame(log, &event->frame);
        return;
    }
    add_event(log, event);
    note_error(qlog, log->error);
    if (event->type == LEAT_EVENT_CONNECTION_CLOSED) {
        end_log(qlog, log);
    }
}

/* ---- opening and closing --------------------------------------------------------------------- */

static bool takes_files(const char *dir)
{
    struct stat st;
    if (stat(dir, &st) != 0) {
        return false;
    }
    if (!S_ISDIR(st.st_mode)) {
        errno = ENOTDIR;
        return false;
    }
    return access(dir, W_OK | X_OK) == 0;
}

leat_err leat_qlog_open(const char *dir, leat_qlog **out)
{
    *out = NULL;
    if (dir == NULL) {
        dir = secure_getenv("QLOGDIR");
    }
    if (dir == NULL || dir[0] == '\0') {
        return LEAT_OK;
    }
    leat_buf self;
    leat_mem *mem;
    if (strlen(dir) >= PATH_MAX) {
        return LEAT_ERR_INVALID;
    }
    if (!takes_files(dir)) {
        return LEAT_ERR_IO;
    }
    leat_err err = leat_io_own(sizeof(leat_qlog), &mem, &self);
    if (err != LEAT_OK) {
        return err;
    }
    leat_qlog *qlog = (leat_qlog *)(void *)self.data;
    qlog->sink.emit = emit;
    qlog->mem = mem;
    qlog->self = self;
    memcpy(qlog->dir, dir, strlen(dir) + 1);
    *out = qlog;
    return LEAT_OK;
}

struct leat_event_sink *leat_qlog_sink(leat_qlog *qlog)
{
    return qlog != NULL ? &qlog->sink : NULL;
}

int leat_qlog_error(const leat_qlog *qlog)
{
    return qlog != NULL ? qlog->error : 0;
}

leat_err leat_qlog_close(leat_qlog *qlog)
{
    if (qlog == NULL) {
        return LEAT_OK;
    }
    while (qlog->count > 0) {
        close_log(qlog, qlog->logs[--qlog->count]);
    }
    leat_buf self = qlog->self;
    errno = qlog->error;
    leat_err err = qlog->error == 0 ? LEAT_OK : LEAT_ERR_IO;
    leat_io_disown(qlog->mem, &self);
    return err;
}
