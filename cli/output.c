/* cli/output.c: where downloads go.
 *
 * A regular file is written as a part (part.c) and renamed when it is whole, so a broken download
 * never looks like a file, and no file of anybody's is touched before. Devices, pipes, standard
 * output and what else this process has open already (/dev/stdout, /proc/self/fd/3) are written
 * directly. Bytes come a packet at a time; a borrowed buffer gathers them into larger writes, and
 * when all buffers are lent out they are written as they come.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void leat_cli_writer_init(leat_cli_writer *writer)
{
    writer->memory = leat_cli_alloc(LEAT_CLI_BUFFERS, LEAT_CLI_BUFFER);
    writer->free_count = 0;
    for (size_t i = 0; i < LEAT_CLI_BUFFERS; i++) {
        writer->free[writer->free_count++] = writer->memory + i * LEAT_CLI_BUFFER;
    }
}

void leat_cli_writer_free(leat_cli_writer *writer)
{
    free(writer->memory);
    writer->memory = NULL;
}

/* Finds out what the path is: standard output (path NULL), something to be written directly, or a
 * file. Of that `real` is told, without the links that it is reached by, so that two paths to one
 * file can be seen to be one. */
void leat_cli_output_init(leat_cli_output *out, const char *path)
{
    bool descriptor;
    struct stat at, own;
    int fd;

    *out = (leat_cli_output){.path = path, .fd = -1, .given = path ? -1 : STDOUT_FILENO};
    if (!path) {
        return;
    }
    out->real = leat_cli_resolve(out->path, &descriptor);
    if (descriptor) {
        fd = (int)strtol(strrchr(out->real, '/') + 1, NULL, 10);
        if (stat(out->path, &at) == 0 && fstat(fd, &own) == 0 && at.st_dev == own.st_dev &&
            at.st_ino == own.st_ino) {
            out->given = fd;
        }
    } else if (stat(out->path, &at) != 0 || S_ISREG(at.st_mode)) {
        out->part = leat_cli_part_name(out->real);
    }
}

static bool failed(leat_cli_output *out)
{
    if (out->error == 0) {
        out->error = errno;
    }
    return false;
}

/* A name that no file can have is told now, not when all has come. */
static int open_part(leat_cli_output *out)
{
    struct stat st;
    int found = lstat(out->real, &st);

    if (found != 0 && errno != ENOENT) {
        return -1;
    }
    if (found == 0 && S_ISDIR(st.st_mode)) { /* "": the folder itself */
        errno = EISDIR;
        return -1;
    }
    return leat_cli_part_open(out->part, 0666);
}

bool leat_cli_output_open(leat_cli_output *out, leat_cli_writer *writer)
{
    if (out->given >= 0) {
        out->fd = fcntl(out->given, F_DUPFD_CLOEXEC, 0);
    } else if (out->part) {
        out->fd = open_part(out);
    } else {
        out->fd = open(out->path, O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOCTTY);
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

        if (n < 0 && errno == EAGAIN) { /* a pipe that somebody has set so: waited for as any */
            n = poll(&(struct pollfd){.fd = out->fd, .events = POLLOUT}, 1, -1) < 0 ? -1 : 0;
        }
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
    if (good && out->part && rename(out->part, out->real) != 0) {
        good = failed(out);
    }
    if (!good && out->part) {
        unlink(out->part);
    }
    if (out->fd >= 0 && close(out->fd) != 0 && good) {
        good = failed(out); /* some file systems tell only now that there was no room */
        if (out->part) {
            unlink(out->real);
        }
    }
    out->fd = -1;
    return good;
}

void leat_cli_output_discard(leat_cli_output *out, leat_cli_writer *writer)
{
    give_back(out, writer);
    if (out->fd >= 0) {
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
    free(out->real);
    out->part = out->real = NULL;
}
