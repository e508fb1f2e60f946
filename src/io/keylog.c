/* io/keylog.c: TLS secrets in a file, in the format that SSLKEYLOGFILE made common.
 *
 * A line goes out with one write to a file opened for appending: processes that share the file do
 * not mix their lines.
 *
 * SPDX-License-Identifier: MIT
 */
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

void leat_keylog_write(void *user, const char *line)
{
    const leat_keylog *keylog = user;
    char newline = '\n';
    struct iovec parts[] = {
        {.iov_base = (void *)(uintptr_t)line, .iov_len = strlen(line)},
        {.iov_base = &newline, .iov_len = 1},
    };
    /* A log that cannot be written must not stop a handshake. */
    ssize_t ignored = writev(keylog->fd, parts, 2);
    (void)ignored;
}

void leat_keylog_close(leat_keylog *keylog)
{
    if (keylog == NULL) {
        return;
    }
    leat_buf self = keylog->self;
    close(keylog->fd);
    leat_io_disown(keylog->mem, &self);
}
