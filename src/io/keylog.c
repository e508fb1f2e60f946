/* io/keylog.c: TLS secrets in a file, in the format that SSLKEYLOGFILE made common.
 *
 * A line goes out with one write to a file opened for appending: processes that share the file do
 * not mix their lines.
 *
 * SPDX-License-Identifier: MIT
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "io/files.h"

struct leat_keylog {
    leat_mem *mem;
    leat_buf self;
    int fd;
    int error; /* errno of the first line that could not be written; atomic, as any thread writes */
};

leat_err leat_keylog_open(const char *path, leat_keylog **out)
{
    *out = NULL;
    if (path == NULL) {
        path = secure_getenv("SSLKEYLOGFILE");
    }
    if (path == NULL || path[0] == '\0') {
        return LEAT_OK;
    }
    leat_buf self;
    leat_mem *mem;
    leat_err err = leat_io_own(sizeof(leat_keylog), &mem, &self);
    if (err != LEAT_OK) {
        return err;
    }
    leat_keylog *keylog = (leat_keylog *)(void *)self.data;
    *keylog = (leat_keylog){.mem = mem, .self = self};
    keylog->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (keylog->fd < 0) {
        leat_io_disown(mem, &self);
        return LEAT_ERR_IO;
    }
    *out = keylog;
    return LEAT_OK;
}

/* Keeps the first. */
static void note_error(leat_keylog *keylog, int error)
{
    int none = 0;
    __atomic_compare_exchange_n(&keylog->error, &none, error, false, __ATOMIC_RELAXED,
                                __ATOMIC_RELAXED);
}

void leat_keylog_write(void *user, const char *line)
{
    leat_keylog *keylog = user;
    char newline = '\n';
    struct iovec parts[] = {
        {.iov_base = (void *)(uintptr_t)line, .iov_len = strlen(line)},
        {.iov_base = &newline, .iov_len = 1},
    };
    size_t len = parts[0].iov_len + parts[1].iov_len;
    ssize_t n;
    do {
        n = writev(keylog->fd, parts, 2);
    } while (n < 0 && errno == EINTR);
    /* A log that cannot be written must not stop a handshake. */
    if (n < 0 || (size_t)n < len) {
        note_error(keylog, n < 0 ? errno : ENOSPC);
    }
}

int leat_keylog_error(const leat_keylog *keylog)
{
    return keylog != NULL ? __atomic_load_n(&keylog->error, __ATOMIC_RELAXED) : 0;
}

leat_err leat_keylog_close(leat_keylog *keylog)
{
    if (keylog == NULL) {
        return LEAT_OK;
    }
    leat_buf self = keylog->self;
    if (close(keylog->fd) != 0) {
        note_error(keylog, errno);
    }
    int error = leat_keylog_error(keylog);
    leat_io_disown(keylog->mem, &self);
    errno = error;
    return error == 0 ? LEAT_OK : LEAT_ERR_IO;
}
