/* cli/output.c: where downloads go.
 *
 * A regular file is written under a name of its own in the same folder (.leat-XXXXXX, a name that
 * no other file has) and renamed when it is whole, so a broken download never looks like a file,
 * and no file of anybody's is touched before. Devices, pipes and standard output are written
 * directly. Bytes come a packet at a time; a borrowed buffer gathers them into larger writes, and
 * when all buffers are lent out they are written as they come.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
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

#define PART ".leat-XXXXXX"

/* The part's name before it has one: in the folder of the file. */
static char *part_template(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    char *part = malloc(folder + sizeof PART);

    if (part) {
        memcpy(part, path, folder);
        memcpy(part + folder, PART, sizeof PART);
    }
    return part;
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
    out->part = part_template(path);
    if (!out->part) {
        leat_cli_error("out of memory");
        return false;
    }
    return true;
}

static bool failed(leat_cli_output *out)
{
    if (out->error == 0) {
        out->error = errno;
    }
    return false;
}

/* Makes the part, with the permissions that a new file has. */
static int open_part(char *part)
{
    mode_t mask = umask(0);
    int fd;

    umask(mask);
    memcpy(part + strlen(part) + 1 - sizeof PART, PART, sizeof PART); /* it may be opened again */
    fd = mkostemp(part, O_CLOEXEC);
    if (fd >= 0 && fchmod(fd, 0666 & ~mask) != 0) {
        int error = errno;

        unlink(part);
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
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
