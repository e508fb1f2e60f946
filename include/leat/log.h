/* leat/log.h: an endpoint's events (leat/event.h) as lines of text, by level.
 *
 *     leat_log log;
 *     leat_log_init(&log, LEAT_LOG_INFO, print, NULL, NULL);
 *     settings.events_sink = &log.sink;
 *
 * Levels only filter: with none but errors asked for, an event costs a call and a comparison.
 * Another sink, a qlog writer say, may stand behind the log and gets every event.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_LOG_H
#define LEAT_LOG_H

#include <leat/event.h>

LEAT_BEGIN_DECLS

/* X(NAME, what) */
#define LEAT_LOG_LEVEL_LIST(X)                                                                     \
    X(ERROR, "a connection ended by a fault")                                                      \
    X(WARN, "a new path did not work; too many half-open connections")                             \
    X(INFO, "connections begin, complete their handshake, change their path, end")                 \
    X(DEBUG, "versions, parameters, keys, paths, datagram size, congestion state, drops")          \
    X(TRACE, "each packet and frame")

#define LEAT_LOG_LEVEL_ENUM(name, text) LEAT_LOG_##name,
typedef enum leat_log_level {
    LEAT_LOG_NOTHING,
    LEAT_LOG_LEVEL_LIST(LEAT_LOG_LEVEL_ENUM) LEAT_LOG_LEVELS
} leat_log_level;
#undef LEAT_LOG_LEVEL_ENUM

/* One line, terminated, without a newline, good until it returns. As any sink's emit, it must not
 * call back into the library. */
typedef void leat_log_fn(leat_log_level level, const char *line, void *user);

typedef struct leat_log {
    leat_event_sink sink; /* for leat_endpoint_settings.events_sink */
    leat_log_level level; /* this one and the graver ones; may be changed at any time */
    leat_log_fn *write;
    void *user;
    leat_event_sink *next; /* NULL: nobody */
} leat_log;

LEAT_API void leat_log_init(leat_log *log, leat_log_level level, leat_log_fn *write, void *user,
                            leat_event_sink *next);

/* "ERROR" and so on; a static string. */
LEAT_API const char *leat_log_level_name(leat_log_level level);

LEAT_END_DECLS

#endif
