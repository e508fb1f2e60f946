/* cli/main.c: the leat command: finds the subcommand and hands over.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *text;
} command;

static int run_help(int argc, char **argv);
static int run_version(int argc, char **argv);

static const command commands[] = {
    {"serve", leat_cli_serve, "serve the files of a folder over HTTP/3 and hq-interop"},
    {"get", leat_cli_get, "fetch files"},
    {"perf", leat_cli_perf, "measure throughput, requests and handshakes over the network"},
    {"bench", leat_cli_bench, "measure what a message, a handshake, a stream cost"},
    {"allocs", leat_cli_allocs_run, "count the heap calls of any program by call stack"},
    {"compare", leat_cli_compare, "run builds in turns and say which is faster, beyond noise"},
    {"rtp", leat_cli_rtp, "RTP: over QUIC, answered with feedback, dumped and replayed"},
    {"version", run_version, "print the version"},
    {"help", run_help, "print this, or the help of a command"},
};

enum { COMMANDS = sizeof commands / sizeof commands[0] };

void leat_cli_error(const char *format, ...)
{
    va_list args;

    fputs("leat: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
}

void leat_cli_no_memory(void)
{
    leat_cli_error("out of memory");
    exit(LEAT_EXIT_MEMORY);
}

void *leat_cli_alloc(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (!memory) {
        leat_cli_no_memory();
    }
    return memory;
}

const char *leat_cli_why(leat_err err)
{
    return err == LEAT_ERR_IO ? strerror(errno) : leat_err_text(err);
}

leat_cli_exit leat_cli_exit_of(leat_err err, leat_cli_exit otherwise)
{
    bool memory =
        err == LEAT_ERR_NOMEM || (err == LEAT_ERR_IO && (errno == ENOMEM || errno == ENOBUFS));

    return memory ? LEAT_EXIT_MEMORY : otherwise;
}

leat_cli_exit leat_cli_loop_new(leat_loop **out)
{
    leat_err err = leat_loop_new(NULL, out);

    if (err == LEAT_OK) {
        return LEAT_EXIT_OK;
    }
    leat_cli_error("cannot start: %s", leat_cli_why(err));
    return leat_cli_exit_of(err, LEAT_EXIT_FAILURE);
}

void leat_cli_catch_signals(void (*handler)(int number))
{
    struct sigaction action = {.sa_handler = handler}, before;

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
        sigaction(SIGHUP, &action, NULL);
    }
}

const char *leat_cli_safe(leat_span text, char out[LEAT_CLI_SAFE])
{
    size_t n = text.len < LEAT_CLI_SAFE ? text.len : LEAT_CLI_SAFE - 1;

    for (size_t i = 0; i < n; i++) {
        uint8_t c = text.data[i];

        out[i] = (char)(c >= ' ' && c < 0x7f ? c : '?');
    }
    out[n] = 0;
    return out;
}

static const command *find(const char *name)
{
    for (size_t i = 0; i < COMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            return &commands[i];
        }
    }
    leat_cli_error("no such command: %s (try 'leat help')", name);
    return NULL;
}

static int run_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    printf("leat %s\n", leat_version());
    return LEAT_EXIT_OK;
}

static void print_commands(FILE *to)
{
    fputs("usage: leat COMMAND [ARGUMENT...]\n\n", to);
    for (size_t i = 0; i < COMMANDS; i++) {
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].text);
    }
    fputs("\n'leat COMMAND --help' says more.\n", to);
}

static int run_help(int argc, char **argv)
{
    static char help[] = "--help";
    const command *about;
    char *args[] = {NULL, help, NULL};

    if (argc < 2) {
        print_commands(stdout);
        return LEAT_EXIT_OK;
    }
    about = find(argv[1]);
    if (!about) {
        return LEAT_EXIT_USAGE;
    }
    if (about->run == run_help || about->run == run_version) {
        print_commands(stdout);
        return LEAT_EXIT_OK;
    }
    args[0] = argv[1];
    return about->run(2, args);
}

/* A standard descriptor that the caller has closed would be the next file's or socket's, and what
 * is printed would go there. It is taken by one that every read and write fails on. */
static bool take_closed_descriptors(void)
{
    static const int useless[] = {O_WRONLY, O_RDONLY, O_RDONLY};

    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", useless[fd]) != fd) {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    const command *chosen;

    if (!take_closed_descriptors()) {
        return LEAT_EXIT_FILE;
    }
    if (argc < 2) {
        print_commands(stderr);
        return LEAT_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--version") == 0) {
        return run_version(0, NULL);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        return run_help(1, argv);
    }
    chosen = find(argv[1]);
    return chosen ? chosen->run(argc - 1, argv + 1) : LEAT_EXIT_USAGE;
}
