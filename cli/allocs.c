/* cli/allocs.c: `leat allocs`: every heap call of a program, with its stack.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocs.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli.h"
#include "preload.h"

#define ALLOCS_OPTIONS(X)                                                                          \
    X(PER, "per", 0, "N", "the run does N operations: counts are told per operation")              \
    X(FROM, "from", 0, "N", "run twice, {} in the arguments being N and then --to's number:")      \
    X(TO, "to", 0, "N", "what the longer run has more, per operation more (no start-up costs)")    \
    X(TOP, "top", 'n', "N", "print the N stacks with the most allocations (default: 10)")          \
    X(JSON, "json", 'j', NULL, "print the result as JSON")                                         \
    X(FOLDED, "folded", 0, "FILE", "write folded stacks, for flame graph programs")                \
    X(SVG, "svg", 0, "FILE", "draw a flame graph")                                                 \
    X(PAUSED, "paused", 0, NULL, "count from the program's own leat_allocs_start() on")

enum allocs_id {
    LEAT_OPT_ALLOCS_FIRST = LEAT_OPT_COMMON_END,
    ALLOCS_OPTIONS(LEAT_CLI_OPTION_ENUM) LEAT_OPT_ALLOCS_END
};

static const leat_cli_option options[] = {
    ALLOCS_OPTIONS(LEAT_CLI_OPTION_ROW){LEAT_OPT_HELP, "help", 'h', NULL, "print this help"},
};

enum { OPTIONS = sizeof(options) / sizeof(options[0]) };

typedef struct asked {
    uint64_t per, from, to, top;
    bool json, paused, help;
    const char *folded, *svg;
    char **program;
    int words;
} asked;

static void print_help(void)
{
    puts("usage: leat allocs [OPTION...] -- PROGRAM [ARGUMENT...]\n\n"
         "Runs a dynamically linked program and counts its heap calls by call stack. Counts are\n"
         "exact. Each allocation costs the walk of its stack, 3 to 10 microseconds by its depth,\n"
         "and the table 5 MB. The program may link liballoccount.so, or find in it by dlsym():\n"
         "leat_allocs_start(), leat_allocs_stop() and leat_allocs_mark(name).\n");
    leat_cli_print_options(options, OPTIONS);
    leat_cli_print_exit_codes();
}

static bool take_option(asked *ask, int id)
{
    switch (id) {
    case LEAT_OPT_PER:
        return leat_cli_number("per", optarg, 1, UINT64_MAX / 2, &ask->per);
    case LEAT_OPT_FROM:
        return leat_cli_number("from", optarg, 0, UINT64_MAX / 2, &ask->from);
    case LEAT_OPT_TO:
        return leat_cli_number("to", optarg, 1, UINT64_MAX / 2, &ask->to);
    case LEAT_OPT_TOP:
        return leat_cli_number("top", optarg, 0, LEAT_STACKS, &ask->top);
    case LEAT_OPT_JSON:
        ask->json = true;
        return true;
    case LEAT_OPT_FOLDED:
        ask->folded = optarg;
        return true;
    case LEAT_OPT_SVG:
        ask->svg = optarg;
        return true;
    case LEAT_OPT_PAUSED:
        ask->paused = true;
        return true;
    case LEAT_OPT_HELP:
        ask->help = true;
        return true;
    default:
        return false;
    }
}

static bool parse(int argc, char **argv, asked *ask)
{
    leat_cli_parser parser;
    int dashes = 1, id;

    while (dashes < argc && strcmp(argv[dashes], "--") != 0) {
        dashes++;
    }
    leat_cli_parser_init(&parser, "allocs", options, OPTIONS);
    while ((id = leat_cli_option_next(&parser, dashes, argv)) != -1) {
        if (!take_option(ask, id)) {
            return false;
        }
    }
    if (ask->help) {
        return true;
    }
    if (optind < dashes) {
        leat_cli_error("the program and its arguments come after --");
        return false;
    }
    if (dashes + 1 >= argc) {
        leat_cli_error("allocs wants a program to run (try 'leat allocs --help')");
        return false;
    }
    if ((ask->from != 0 || ask->to != 0) && (ask->to <= ask->from || ask->per != 0)) {
        leat_cli_error("--to must be larger than --from, and --per does not go with them");
        return false;
    }
    ask->program = argv + dashes + 1;
    ask->words = argc - dashes - 1;
    return true;
}

/* ---- running ---- */

/* The arguments with {} replaced by a number; the caller frees all of it. NULL: no memory. */
static char **words_for(const asked *ask, uint64_t n)
{
    char **words = calloc((size_t)ask->words + 1, sizeof(*words));

    for (int i = 0; words && i < ask->words; i++) {
        const char *from = ask->program[i];
        const char *hole = ask->to ? strstr(from, "{}") : NULL;
        int len = hole ? asprintf(&words[i], "%.*s%llu%s", (int)(hole - from), from,
                                  (unsigned long long)n, hole + 2)
                       : asprintf(&words[i], "%s", from);

        if (len < 0) {
            words[i] = NULL;
            break;
        }
    }
    return words;
}

static void free_words(char **words)
{
    for (char **w = words; w && *w; w++) {
        free(*w);
    }
    free(words);
}

/* While the program runs: Ctrl-C reaches it too, and its counts are wanted; SIGTERM is passed on.
 */
static const int heeded[] = {SIGINT, SIGQUIT, SIGTERM};
enum { HEEDED = sizeof heeded / sizeof heeded[0] };

static volatile sig_atomic_t running; /* process ID of the program; 0: not yet known */

static void pass_on(int number)
{
    if (number == SIGTERM && running > 0) {
        kill((pid_t)running, number);
    }
}

static void heed(struct sigaction was[HEEDED])
{
    struct sigaction action = {.sa_handler = pass_on};

    running = 0;
    for (unsigned i = 0; i < HEEDED; i++) {
        sigaction(heeded[i], &action, &was[i]);
    }
}

static void heed_no_more(const struct sigaction was[HEEDED])
{
    for (unsigned i = 0; i < HEEDED; i++) {
        sigaction(heeded[i], &was[i], NULL);
    }
}

static void be_program(const asked *ask, char **words, const char *library, const char *file)
{
    setenv("LD_PRELOAD", library, 1);
    setenv("LEAT_ALLOCS_STACKS", file, 1);
    if (ask->paused) {
        setenv("LEAT_ALLOCS_PAUSED", "1", 1);
    }
    execvp(words[0], words);
    leat_cli_error("cannot run %s: %s", words[0], strerror(errno));
    _exit(127);
}

/* Runs it once and reads what it left. */
static leat_cli_exit run_once(const asked *ask, uint64_t n, leat_allocs_file *out, double *seconds)
{
    char file[] = "/tmp/leat-allocs-XXXXXX", library[PATH_MAX];
    char **words = words_for(ask, n);
    struct sigaction was[HEEDED];
    leat_time began;
    int status = 0, fd;
    pid_t child;

    if (!words || !words[0] || !leat_cli_preload_path(library, sizeof(library)) ||
        (fd = mkstemp(file)) < 0) {
        free_words(words);
        return LEAT_EXIT_FAILURE;
    }
    close(fd);
    began = leat_clock_now();
    heed(was);
    child = fork();
    if (child == 0) {
        heed_no_more(was);
        be_program(ask, words, library, file);
    }
    running = (sig_atomic_t)child;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    heed_no_more(was);
    *seconds = (double)(leat_clock_now() - began) / 1e9;
    free_words(words);
    if (child < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 127) ||
        !leat_allocs_read(file, out)) {
        unlink(file);
        return LEAT_EXIT_FAILURE;
    }
    unlink(file);
    if (out->stack_count == 0 && out->allocs == 0 && out->map_count == 0) {
        leat_cli_error("the program left no counts: is it statically linked, or set-user-ID?");
        leat_allocs_free(out);
        return LEAT_EXIT_FAILURE;
    }
    if (!WIFEXITED(status) && ask->to) {
        leat_cli_error("the program was ended by signal %d: no two runs to compare",
                       WTERMSIG(status));
        leat_allocs_free(out);
        return LEAT_EXIT_FAILURE;
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        leat_cli_error("the program ended badly (%s %d); its counts follow",
                       WIFEXITED(status) ? "code" : "signal",
                       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
    }
    return LEAT_EXIT_OK;
}

/* ---- reporting ---- */

typedef void print_fn(const leat_allocs_file *file, const asked *ask, FILE *to);

static void print_folded(const leat_allocs_file *file, const asked *ask, FILE *to)
{
    (void)ask;
    leat_allocs_print_folded(file, to);
}

static void print_svg(const leat_allocs_file *file, const asked *ask, FILE *to)
{
    leat_allocs_print_svg(file, ask->program[0], to);
}

static bool write_file(const leat_allocs_file *file, const asked *ask, const char *path,
                       print_fn *print)
{
    FILE *to;

    if (!path) {
        return true;
    }
    to = fopen(path, "w");
    if (to) {
        print(file, ask, to);
    }
    if (!to || fclose(to) != 0) {
        leat_cli_error("cannot write %s: %s", path, strerror(errno));
        return false;
    }
    return true;
}

static leat_cli_exit report(leat_allocs_file *file, const asked *ask,
                            const leat_allocs_scale *scale)
{
    leat_allocs_sort(file);
    if (ask->json) {
        leat_allocs_print_json(file, scale, (size_t)ask->top, stdout);
    } else {
        leat_allocs_print_table(file, scale, (size_t)ask->top, stdout);
    }
    return write_file(file, ask, ask->folded, print_folded) &&
                   write_file(file, ask, ask->svg, print_svg)
               ? LEAT_EXIT_OK
               : LEAT_EXIT_FILE;
}

static leat_cli_exit run_and_report(const asked *ask)
{
    leat_allocs_file file, shorter = {.lost = 0};
    leat_allocs_names *names = NULL, *shorter_names = NULL;
    leat_allocs_scale scale = {.per = (double)ask->per};
    double seconds = 0;
    leat_cli_exit code;

    if (ask->to) {
        code = run_once(ask, ask->from, &shorter, &seconds);
        if (code != LEAT_EXIT_OK) {
            return code;
        }
        shorter_names = leat_allocs_name(&shorter);
        scale.per = (double)(ask->to - ask->from);
    }
    code = run_once(ask, ask->to, &file, &scale.seconds);
    if (code == LEAT_EXIT_OK) {
        names = leat_allocs_name(&file);
        code = names && (!ask->to || (shorter_names && leat_allocs_subtract(&file, &shorter)))
                   ? report(&file, ask, &scale)
                   : LEAT_EXIT_FAILURE;
        leat_allocs_free(&file);
    }
    leat_allocs_free(&shorter);
    leat_allocs_names_free(names);
    leat_allocs_names_free(shorter_names);
    return code;
}

int leat_cli_allocs_run(int argc, char **argv)
{
    asked ask = {.top = 10};

    if (!parse(argc, argv, &ask)) {
        return LEAT_EXIT_USAGE;
    }
    if (ask.help) {
        print_help();
        return LEAT_EXIT_OK;
    }
    return run_and_report(&ask);
}
