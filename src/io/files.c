/* io/files.c: whole files.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io/files.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

leat_err leat_io_write(int fd, const void *data, size_t len)
{
    const uint8_t *p = data;
    while (len > 0) {
        ssize_t n = write(fd, p, len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return LEAT_ERR_IO;
        }
        p += n;
        len -= (size_t)n;
    }
    return LEAT_OK;
}

leat_err leat_io_own(size_t size, leat_mem **mem, leat_buf *self)
{
    leat_mem_settings settings;
    leat_mem_settings_init(&settings);
    settings.slab_size = LEAT_SLAB_SIZE_MIN;
    leat_err err = leat_mem_new(&settings, mem);
    if (err != LEAT_OK) {
        return err;
    }
    err = leat_buf_take(*mem, size, self);
    if (err != LEAT_OK) {
        leat_mem_free(*mem);
        return err;
    }
    memset(self->data, 0, size);
    return LEAT_OK;
}

void leat_io_disown(leat_mem *mem, leat_buf *self)
{
    int saved = errno;
    leat_buf_release(self);
    leat_mem_free(mem);
    errno = saved;
}

/* Reads len bytes, or fewer if the file has become shorter. */
static leat_err read_up_to(int fd, uint8_t *out, size_t len, size_t *got)
{
    *got = 0;
    while (*got < len) {
        ssize_t n = read(fd, out + *got, len - *got);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return LEAT_ERR_IO;
        }
        if (n == 0) {
            break;
        }
        *got += (size_t)n;
    }
    return LEAT_OK;
}

static leat_err read_open_file(leat_mem *mem, int fd, size_t max, leat_buf *out)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return LEAT_ERR_IO;
    }
    bool sized = S_ISREG(st.st_mode) && st.st_size > 0;
    if (sized && (uint64_t)st.st_size > max) {
        return LEAT_ERR_LIMIT;
    }
    /* A pipe, a device or a file of /proc tells no size: room for all that is allowed, and one byte
     * to see more. */
    size_t size = sized ? (size_t)st.st_size : max + 1;
    leat_err err = leat_buf_take(mem, size + 1, out);
    if (err != LEAT_OK) {
        return err;
    }
    size_t got;
    err = read_up_to(fd, out->data, size, &got);
    if (err == LEAT_OK && got > max) {
        err = LEAT_ERR_LIMIT;
    }
    if (err != LEAT_OK) {
        leat_buf_release(out);
        return err;
    }
    out->data[got] = 0;
    leat_buf_trim(out, got + 1);
    return LEAT_OK;
}

leat_err leat_file_read(leat_mem *mem, const char *path, size_t max, leat_buf *out)
{
    *out = (leat_buf){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return LEAT_ERR_IO;
    }
    leat_err err = read_open_file(mem, fd, max, out);
    int saved = errno;
    close(fd);
    errno = saved;
    return err;
}
