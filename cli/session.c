/* cli/session.c: secrets that outlive the command: a client's session, a server's ticket key. Both
 * are files that only their owner may read.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* All that the file has, up to cap bytes; -1: errno says why. */
static ssize_t read_all(const char *path, uint8_t *out, size_t cap)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n;

    if (fd < 0) {
        return -1;
    }
    while (len < cap && (n = read(fd, out + len, cap - len)) != 0) {
        if (n < 0 && errno != EINTR) {
            int error = errno;

            close(fd);
            errno = error;
            return -1;
        }
        len += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    return (ssize_t)len;
}

static bool write_all(int fd, const uint8_t *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);

        if (n < 0 && errno != EINTR) {
            return false;
        }
        data += n > 0 ? n : 0;
        len -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Under another name first, so that nobody reads half of it. */
static bool write_file(const char *path, const uint8_t *data, size_t len)
{
    char *part;
    int fd;
    bool good;

    if (asprintf(&part, "%s.%ld.part", path, (long)getpid()) < 0) {
        errno = ENOMEM;
        return false;
    }
    fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    good = fd >= 0 && write_all(fd, data, len);
    good = fd >= 0 && close(fd) == 0 && good && rename(part, path) == 0;
    if (!good) {
        int error = errno;

        unlink(part);
        errno = error;
    }
    free(part);
    return good;
}

/* ---- a client's session ---- */

bool leat_cli_session_load(leat_cli_session *session, const char *path)
{
    ssize_t n;

    session->path = path;
    session->data = malloc(LEAT_SESSION_MAX);
    if (!session->data) {
        leat_cli_error("out of memory");
        return false;
    }
    n = read_all(path, session->data, LEAT_SESSION_MAX);
    if (n < 0 && errno != ENOENT) {
        leat_cli_error("cannot read the session file %s: %s", path, strerror(errno));
        return false;
    }
    session->len = n > 0 ? (size_t)n : 0;
    return true;
}

void leat_cli_session_keep(leat_cli_session *session, leat_span data)
{
    if (session->data && data.len <= LEAT_SESSION_MAX) {
        memcpy(session->data, data.data, data.len);
        session->len = data.len;
        session->fresh = true;
    }
}

bool leat_cli_session_save(leat_cli_session *session)
{
    if (!session->fresh) {
        return true;
    }
    session->fresh = false;
    if (write_file(session->path, session->data, session->len)) {
        return true;
    }
    leat_cli_error("cannot write the session file %s: %s", session->path, strerror(errno));
    return false;
}

void leat_cli_session_free(leat_cli_session *session)
{
    if (session->data) {
        explicit_bzero(session->data, LEAT_SESSION_MAX);
        free(session->data);
        session->data = NULL;
    }
}

/* ---- a server's ticket key ---- */

bool leat_cli_random(void *out, size_t len)
{
    if (getrandom(out, len, 0) == (ssize_t)len) {
        return true;
    }
    leat_cli_error("no random bytes: %s", strerror(errno));
    return false;
}

bool leat_cli_ticket_key(const char *path, uint8_t key[LEAT_TLS_TICKET_KEY])
{
    uint8_t bytes[LEAT_TLS_TICKET_KEY + 1];
    ssize_t n = read_all(path, bytes, sizeof bytes);
    bool good = n == LEAT_TLS_TICKET_KEY;

    if (n < 0 && errno == ENOENT) {
        good = leat_cli_random(bytes, LEAT_TLS_TICKET_KEY);
        if (good && !write_file(path, bytes, LEAT_TLS_TICKET_KEY)) {
            leat_cli_error("cannot write the ticket key %s: %s", path, strerror(errno));
            good = false;
        }
    } else if (n < 0) {
        leat_cli_error("cannot read the ticket key %s: %s", path, strerror(errno));
    } else if (!good) {
        leat_cli_error("%s is no ticket key: it must have %d bytes", path, LEAT_TLS_TICKET_KEY);
    }
    if (good) {
        memcpy(key, bytes, LEAT_TLS_TICKET_KEY);
    }
    explicit_bzero(bytes, sizeof bytes);
    return good;
}
