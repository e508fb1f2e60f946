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

enum { OPEN_TRIES = 8 };

/* O_NONBLOCK: opening a FIFO must not wait for its writer. */
enum { OPEN_FLAGS = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK };

static const char index_name[] = "index.html";

_Static_assert(LEAT_CLI_NAME_MOST + 1 + sizeof index_name <= LEAT_CLI_NAME_ROOM,
               "the name of an index fits behind any other");

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

unsigned leat_cli_name_of(leat_span path, leat_cli_name *out)
{
    const uint8_t *query = memchr(path.data, '?', path.len);
    size_t slashes;
    int n;

    if (query) {
        path.len = (size_t)(query - path.data);
    }
    if (path.len == 0 || path.data[0] != '/') {
        return 404;
    }
    n = leat_cli_percent_decode(path, out->text, LEAT_CLI_NAME_MOST);
    if (n < 0) {
        return 404;
    }
    slashes = strspn(out->text, "/");
    out->len = (size_t)n - slashes;
    memmove(out->text, out->text + slashes, out->len + 1);
    if (names_parent(out->text)) {
        return 403;
    }
    if (out->len == 0) {
        strcpy(out->text, ".");
        out->len = 1;
    }
    return 200;
}

static leat_cli_file_id identity(const struct stat *st)
{
    return (leat_cli_file_id){.device = st->st_dev,
                              .inode = st->st_ino,
                              .size = (uint64_t)st->st_size,
                              .written = st->st_mtim,
                              .changed = st->st_ctim};
}

bool leat_cli_file_identify(int fd, leat_cli_file_id *out)
{
    struct stat st;

    if (fstat(fd, &st) != 0) {
        return false;
    }
    *out = identity(&st);
    return true;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool leat_cli_file_same(const leat_cli_file_id *a, const leat_cli_file_id *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           same_time(&a->written, &b->written) && same_time(&a->changed, &b->changed);
}

unsigned leat_cli_file_open(int root, leat_cli_name *name, leat_cli_file *out)
{
    struct stat st;

    *out = (leat_cli_file){.fd = -1};
    for (int folder = 0; folder < 2; folder++) {
        out->fd = open_beneath(root, name->text);
        if (out->fd < 0) {
            return status_of(errno);
        }
        if (fstat(out->fd, &st) == 0 && S_ISREG(st.st_mode)) {
            out->size = (uint64_t)st.st_size;
            out->type = type_of(name->text);
            out->id = identity(&st);
            return 200;
        }
        close(out->fd);
        out->fd = -1;
        if (!S_ISDIR(st.st_mode) || folder) {
            return 403;
        }
        snprintf(name->text + name->len, sizeof name->text - name->len, "/%s", index_name);
    }
    return 403;
}
