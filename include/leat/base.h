/* leat/base.h: what every other header of leat stands on: export marks, time, spans, errors.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_BASE_H
#define LEAT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#    define LEAT_API __attribute__((visibility("default")))
#else
#    define LEAT_API
#endif

#ifdef __cplusplus
#    define LEAT_BEGIN_DECLS extern "C" {
#    define LEAT_END_DECLS   }
#else
#    define LEAT_BEGIN_DECLS
#    define LEAT_END_DECLS
#endif

LEAT_BEGIN_DECLS

/* A point in time or a length of it, in nanoseconds. Points count from an origin of the caller's
 * choice (CLOCK_MONOTONIC in leat's own loop) and never step back: a context clamps a clock that
 * does. */
typedef uint64_t leat_time;

#define LEAT_TIME_NEVER  UINT64_MAX /* "no deadline" */
#define LEAT_MICROSECOND ((leat_time)1000)
#define LEAT_MILLISECOND ((leat_time)1000000)
#define LEAT_SECOND      ((leat_time)1000000000)

/* Bytes that somebody else owns. The comment of the function that hands one out says until when. */
typedef struct leat_span {
    const uint8_t *data;
    size_t len;
} leat_span;

/* The same, writable. */
typedef struct leat_mspan {
    uint8_t *data;
    size_t len;
} leat_mspan;

/* Every error that a function of leat returns: X(name, value, text). Transport error codes, which
 * travel on the wire, are another list (leat/transport_error.h). */
#define LEAT_ERROR_LIST(X)                                                                         \
    X(OK, 0, "no error")                                                                           \
    X(ERR_NOMEM, -1, "out of memory, or the context's memory limit is reached")                    \
    X(ERR_INVALID, -2, "an argument is not valid")                                                 \
    X(ERR_STATE, -3, "not possible in this state")                                                 \
    X(ERR_LIMIT, -4, "a limit of leat/limits.h or of the settings is reached")                     \
    X(ERR_BLOCKED, -5, "flow control or a full buffer: try again when told writable")              \
    X(ERR_CLOSED, -6, "the connection or stream is closed")                                        \
    X(ERR_MALFORMED, -7, "the input is not well formed")                                           \
    X(ERR_TRUNCATED, -8, "the input ends too early, or the output buffer is too small")            \
    X(ERR_CRYPTO, -9, "a cryptographic operation failed, or a packet is not authentic")            \
    X(ERR_TLS, -10, "the TLS handshake failed")                                                    \
    X(ERR_CERTIFICATE, -11, "a certificate or key cannot be used, or was not accepted")            \
    X(ERR_IO, -12, "an operating system call failed; errno says which way")                        \
    X(ERR_ADDRESS, -13, "the address or host name cannot be used")                                 \
    X(ERR_TIMEOUT, -14, "the peer did not answer in time")                                         \
    X(ERR_RESET, -15, "the peer reset the stream or the connection")                               \
    X(ERR_NOT_FOUND, -16, "no such thing")                                                         \
    X(ERR_UNSUPPORTED, -17, "not supported by this build or by the peer")

#define LEAT_ERROR_ENUM(name, value, text) LEAT_##name = (value),
typedef enum leat_err { LEAT_ERROR_LIST(LEAT_ERROR_ENUM) } leat_err;
#undef LEAT_ERROR_ENUM

/* The name ("LEAT_ERR_NOMEM") and the text of an error; for a value outside the list, "LEAT_ERR_?"
 * and "unknown error". Static strings; any thread. */
LEAT_API const char *leat_err_name(leat_err err);
LEAT_API const char *leat_err_text(leat_err err);

/* The version of the library as built, "0.1.0". Static string; any thread. */
LEAT_API const char *leat_version(void);

LEAT_END_DECLS

#endif
