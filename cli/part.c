/* cli/part.c: files that appear whole. What is written goes to a part in the same folder,
 * .leat-XXXXXX, a name that no other file has and that is short enough for every folder; rename()
 * then puts it where it belongs.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PART ".leat-XXXXXX"

enum { LINKS_MOST = 40 };

/* The folder of a path, with its '/', and a name in it. */
static char *beside(const char *path, const char *name)
{
    const char *slash = strrchr(path, '/');
    size_t folder = slash ? (size_t)(slash - path) + 1 : 0;
    size_t len = strlen(name) + 1;
    char *out = leat_cli_alloc(1, folder + len);

    memcpy(out, path, folder);
    memcpy(out + folder, name, len);
    return out;
}

/* ---- where a path leads ---- */

/* A link of /proc is no path: it stands for what a process has open. */
static bool is_descriptor(const char *link)
{
    int fd = open(link, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    struct statfs fs;
    bool yes = fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;

    if (fd >= 0) {
        close(fd);
    }
    return yes;
}

/* The same file by its folder's real path; as it is when there is no such folder. Frees path. */
static char *with_real_folder(char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    char *given = beside(path, ".");
    char *folder = realpath(given, NULL);
    char *out = path;

    if (folder) {
        out = leat_cli_alloc(1, strlen(folder) + strlen(name) + 2);
        sprintf(out, "%s/%s", strcmp(folder, "/") == 0 ? "" : folder, name);
        free(path);
    }
    free(given);
    free(folder);
    return out;
}

char *leat_cli_resolve(const char *path, bool *descriptor)
{
    char *at = beside("", path);
    char to[PATH_MAX];

    *descriptor = false;
    for (int i = 0; i < LINKS_MOST; i++) {
        ssize_t n = readlink(at, to, sizeof to - 1);
        char *next;

        if (n < 0) {
            break;
        }
        if (is_descriptor(at)) {
            *descriptor = true;
            return at;
        }
        to[n] = 0;
        next = beside(*to == '/' ? "" : at, to);
        free(at);
        at = next;
    }
    return with_real_folder(at);
}

/* ---- parts ---- */

char *leat_cli_part_name(const char *path)
{
    return beside(path, PART);
}

int leat_cli_part_open(char *part, unsigned mode)
{
    mode_t mask = umask(0);
    int fd;

    umask(mask);
    memcpy(part + strlen(part) + 1 - sizeof PART, PART, sizeof PART); /* it may be opened again */
    fd = mkostemp(part, O_CLOEXEC);
    if (fd >= 0 && fchmod(fd, mode & ~mask) != 0) {
        int error = errno;

        unlink(part);
        close(fd);
        errno = error;
        return -1;
    }
    return fd;
}
