/* cli/compare_run.c: see compare_run.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "compare_run.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"

static double seconds(struct timeval t)
{
    return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

/* Reads all that comes, keeping what fits. */
static size_t read_all(int fd, char *out, size_t cap)
{
    static char rest[4096];
    size_t len = 0;
    ssize_t n;

    for (;;) {
        n = len < cap ? read(fd, out + len, cap - len) : read(fd, rest, sizeof(rest));
        if (n > 0) {
            len += len < cap ? (size_t)n : 0;
        } else if (n == 0 || errno != EINTR) {
            return len;
        }
    }
}

static pid_t start(char *const *argv, int *out)
{
    int fds[2];
    pid_t child;

    if (pipe(fds) != 0) {
        return -1;
    }
    child = fork();
    if (child == 0) {
        dup2(fds[1], STDOUT_FILENO);
        close(fds[0]);
        close(fds[1]);
        execvp(argv[0], argv);
        leat_cli_error("cannot run %s: %s", argv[0], strerror(errno));
        _exit(127);
    }
    close(fds[1]);
    *out = fds[0];
    if (child < 0) {
        close(fds[0]);
    }
    return child;
}

static bool ended_well(const char *name, int status, bool *interrupted)
{
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return true;
    }
    *interrupted =
        WIFSIGNALED(status) && (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGTERM);
    if (WIFSIGNALED(status) && !*interrupted) {
        leat_cli_error("%s was ended by signal %d", name, WTERMSIG(status));
    } else if (WIFEXITED(status) && WEXITSTATUS(status) != 127) {
        leat_cli_error("%s ended with code %d", name, WEXITSTATUS(status));
    }
    return false;
}

bool leat_compare_run_once(char *const *argv, bool with_json, leat_compare_run *out,
                           bool *interrupted)
{
    static char text[LEAT_COMPARE_OUTPUT];
    leat_time began = leat_clock_now();
    struct rusage usage;
    size_t len;
    int fd, status;
    pid_t child = start(argv, &fd);

    *interrupted = false;
    out->count = 0;
    if (child < 0) {
        leat_cli_error("cannot start a process: %s", strerror(errno));
        return false;
    }
    len = read_all(fd, text, sizeof(text));
    close(fd);
    while (wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    leat_compare_add(out, "wall_seconds", (double)(leat_clock_now() - began) / 1e9);
    leat_compare_add(out, "cpu_seconds", seconds(usage.ru_utime) + seconds(usage.ru_stime));
    leat_compare_add(out, "max_rss_kib", (double)usage.ru_maxrss);
    if (!ended_well(argv[0], status, interrupted)) {
        return false;
    }
    if (with_json && !leat_compare_numbers(text, len, out)) {
        leat_cli_error("%s printed no JSON: run its benchmark with --json, or compare with --time",
                       argv[0]);
        return false;
    }
    return true;
}
