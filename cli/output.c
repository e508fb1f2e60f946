/* cli/output.c: where downloads go.
 *
 * A regular file is written as FILE.part in the same folder and renamed when it is whole, so a
 * broken download never looks like a file. The part is locked, so that two downloads cannot mix in
 * it; one that a killed process has left is taken over. Devices, pipes and standard output are
 * written directly. Bytes come a packet at a time; a borrowed buffer gathers them into larger
 * writes, and when all buffers are lent out they are written as they come.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

bool leat_cli_writer_init(leat_cli_writer *writer)
{
    writer->memory = malloc((size_t)LEAT_CLI_BUFFERS * LEAT_CLI_BUFFER);
    writer->free_count = 0;
    if (!writer->memory) {
        leat_cli_error("out of memory");
        return false;
    }
    for (size_t i = 0; i < LEAT_CLI_BUFFERS; i++) {
        writer->free[writer->free_count++] = writer->memory + i * LEAT_CLI_BUFFER;
    }
    return true;
}

void leat_cli_writer_free(leat_cli_writer *writer)
{
    free(writer->memory);
    writer->memory = NULL;
}

bool leat_cli_output_init(leat_cli_output *out, const char *path)
{
    struct stat st;

    *out = (leat_cli_output){.path = path, .fd = -1};
    if (!path || strcmp(path, "-") == 0) {
        out->path = NULL;
        return true;
    }
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        return true;
    }
    out->part = malloc(strlen(path) + sizeof ".part");
    if (!out->part) {
        leat_cli_error("out of memory");
        return false;
    }
    sprintf(out->part, "%s.part", path);
    return true;
}

static bool failed(leat_cli_output *out)
{
    if (out->error == 0) {
        out->error = errno;
    }
    return false;
}

/* Opens and locks the part. Between the two another process may have renamed or removed it: then
 * the lock is on a file that has no name here any more, and it has to be opened again. */
static int open_part(const char *path)
{
    for (;;) {
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        struct stat locked, named;

        if (fd < 0) {
            return -1;
        }
        if (flock(fd, LOCK_EX | LOCK_NB) != 0 || fstat(fd, &locked) != 0) {
            int error = errno == EWOULDBLOCK ? EBUSY : errno; /* another download is at it */

            close(fd);
            errno = error;
            return -1;
        }
        if (stat(path, &named) == 0 && named.st_ino == locked.st_ino &&
            named.st_dev == locked.st_dev && ftruncate(fd, 0) == 0) {
            return fd;
        }
        close(fd);
    }
}

bool leat_cli_output_open(leat_cli_output *out, leat_cli_writer *writer)
{
    if (!out->path) {
        out->fd = STDOUT_FILENO;
    } else if (out->part) {
        out->fd = open_part(out->part);
    } else {
        out->fd = open(out->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
    }
    if (out->fd < 0) {
        return failed(out);
    }
    if (writer->free_count) {
        out->buffer = writer->free[--writer->free_count];
    }
    return true;
}

static bool write_all(leat_cli_output *out, const uint8_t *data, size_t len)
{
    while (len) {
        ssize_t n = write(out->fd, data, len);

        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return failed(out);
        }
        data += n;
        len -= (size_t)n;
    }
    return true;
}

static bool flush(leat_cli_output *out)
{
    size_t n = out->fill;

    out->fill = 0;
    return n == 0 || write_all(out, out->buffer, n);
}

bool leat_cli_output_write(leat_cli_output *out, leat_span data)
{
    if (out->error) {
        return false;
    }
    if (!out->buffer || data.len >= LEAT_CLI_BUFFER) {
        return flush(out) && write_all(out, data.data, data.len);
    }
    if (data.len > LEAT_CLI_BUFFER - out->fill && !flush(out)) {
        return false;
    }
    memcpy(out->buffer + out->fill, data.data, data.len);
    out->fill += data.len;
    return true;
}

static void give_back(leat_cli_output *out, leat_cli_writer *writer)
{
    if (out->buffer) {
        writer->free[writer->free_count++] = out->buffer;
        out->buffer = NULL;
        out->fill = 0;
    }
}

bool leat_cli_output_commit(leat_cli_output *out, leat_cli_writer *writer)
{
    bool good = out->error == 0 && flush(out);

    give_back(out, writer);
    if (good && out->part && rename(out->part, out->path) != 0) {
        good = failed(out);
    }
    /* The lock goes with the descriptor: not before the part has its name, or is gone. */
    if (!good && out->part) {
        unlink(out->part);
    }
    if (out->path && out->fd >= 0 && close(out->fd) != 0 && good) {
        good = failed(out); /* some file systems tell only now that there was no room */
        if (out->part) {
            unlink(out->path);
        }
    }
    out->fd = -1;
    return good;
}

void leat_cli_output_discard(leat_cli_output *out, leat_cli_writer *writer)
{
    give_back(out, writer);
    if (out->fd >= 0 && out->path) {
        if (out->part) {
            unlink(out->part);
        }
        close(out->fd);
    }
    out->fd = -1;
}

void leat_cli_output_free(leat_cli_output *out)
{
    free(out->part);
    out->part = NULL;
}
