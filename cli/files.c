/* cli/files.c: from a request's path to an open file inside the served folder.
 *
 * The path is percent-decoded once. What then names a parent folder is refused outright; the rest
 * is opened by the kernel with RESOLVE_BENEATH, which fails at any step that would leave the
 * folder, be it by a symbolic link or by a folder that moves meanwhile. Kernels without openat2()
 * get a walk that follows no symbolic link at all. Only regular files are served; a folder stands
 * for its index.html.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PATH_MOST = 4096, OPEN_TRIES = 8 };

/* O_NONBLOCK: opening a FIFO must not wait for its writer. */
enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };

static const char index_name[] = "index.html";

static const char *type_of(const char *path)
{
    static const struct {
        const char *end, *type;
    } types[] = {
        {".html", "text/html; charset=utf-8"},
        {".txt", "text/plain; charset=utf-8"},
        {".css", "text/css"},
        {".js", "text/javascript"},
        {".json", "application/json"},
        {".svg", "image/svg+xml"},
        {".png", "image/png"},
        {".jpg", "image/jpeg"},
        {".mp4", "video/mp4"},
        {".wasm", "application/wasm"},
    };
    size_t len = strlen(path);

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        size_t n = strlen(types[i].end);

        if (len >= n && strcmp(path + len - n, types[i].end) == 0) {
            return types[i].type;
        }
    }
    return "application/octet-stream";
}

/* True when a segment of the path is "..". */
static bool names_parent(const char *path)
{
    while (*path) {
        size_t n = strcspn(path, "/");

        if (n == 2 && path[0] == '.' && path[1] == '.') {
            return true;
        }
        path += n;
        path += strspn(path, "/");
    }
    return false;
}

/* Component by component, following no link. Changes path while it works. */
static int open_walking(int root, char *path)
{
    int at = dup(root);

    while (at >= 0) {
        char *slash = strchr(path, '/');
        int next;

        if (slash) {
            *slash = 0;
        }
        next = openat(at, *path ? path : ".", OPEN_FLAGS | O_NOFOLLOW | (slash ? O_DIRECTORY : 0));
        close(at);
        if (!slash) {
            return next;
        }
        *slash = '/';
        path = slash + strspn(slash, "/");
        at = next;
    }
    return -1;
}

static int open_beneath(int root, char *path)
{
    static bool without; /* the kernel has no openat2(); atomic, as threads share it */
    struct open_how how = {.flags = OPEN_FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    bool walks = __atomic_load_n(&without, __ATOMIC_RELAXED);

    for (int i = 0; i < OPEN_TRIES && !walks; i++) {
        long fd = syscall(SYS_openat2, root, path, &how, sizeof how);

        if (fd >= 0) {
            return (int)fd;
        }
        if (errno == ENOSYS) {
            walks = true;
            __atomic_store_n(&without, true, __ATOMIC_RELAXED);
        } else if (errno != EAGAIN && errno != EINTR) { /* EAGAIN: something was moved meanwhile */
            return -1;
        }
    }
    return walks ? open_walking(root, path) : -1;
}

static unsigned status_of(int error)
{
    switch (error) {
    case ENOENT:
    case ENOTDIR:
    case ENAMETOOLONG:
        return 404;
    case EXDEV: /* it would leave the folder */
    case ELOOP:
    case EACCES:
    case EPERM:
    case ENXIO: /* a socket, or a FIFO */
        return 403;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EAGAIN:
        return 503;
    default:
        return 500;
    }
}

/* The path of a request as a relative one, decoded; the length, or -1. */
static int relative(leat_span path, char *out)
{
    const uint8_t *query = memchr(path.data, '?', path.len);
    char *from = out;
    int n;

    if (query) {
        path.len = (size_t)(query - path.data);
    }
    if (path.len == 0 || path.data[0] != '/') {
        return -1;
    }
    n = leat_cli_percent_decode(path, out, PATH_MOST);
    if (n < 0) {
        return -1;
    }
    while (*from == '/') {
        from++;
    }
    n -= (int)(from - out);
    memmove(out, from, (size_t)n + 1);
    return n;
}

unsigned leat_cli_file_open(int root, leat_span path, leat_cli_file *out)
{
    char name[PATH_MOST + sizeof index_name + 2];
    int n = relative(path, name);
    struct stat st;

    *out = (leat_cli_file){.fd = -1};
    if (n < 0) {
        return 404;
    }
    if (names_parent(name)) {
        return 403;
    }
    if (n == 0) {
        strcpy(name, ".");
        n = 1;
    }
    for (int folder = 0; folder < 2; folder++) {
        out->fd = open_beneath(root, name);
        if (out->fd < 0) {
            return status_of(errno);
        }
        if (fstat(out->fd, &st) == 0 && S_ISREG(st.st_mode)) {
            out->size = (uint64_t)st.st_size;
            out->type = type_of(name);
            return 200;
        }
        close(out->fd);
        out->fd = -1;
        if (!S_ISDIR(st.st_mode) || folder) {
            return 403;
        }
        snprintf(name + n, sizeof name - (size_t)n, "/%s", index_name);
    }
    return 403;
}
