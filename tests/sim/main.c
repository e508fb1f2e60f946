/* tests/sim/main.c: leat-sim: runs seeds, each in a process of its own.
 *
 * Each seed is run in a child that is forked from the same state, so that it does not matter how
 * many ran before: GnuTLS keeps the state of its generator for the life of a process.
 *
 * SPDX-License-Identifier: MIT
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/assert.h"
#include "chance.h"
#include "fault.h"
#include "run.h"

enum { JOBS_MAX = 64, FAILURES_MAX = 20, CPU_SECONDS = 300 };

typedef struct job {
    pid_t pid; /* 0: free */
    uint64_t seed;
} job;

typedef struct program {
    leat_sim_options options;
    leat_sim_identity identity;
    uint64_t seed, count;
    long jobs_most;
    const char *set; /* --plan */
    uint64_t size;
    bool has_size, plain, digests, shrink;
    char **argv;

    job jobs[JOBS_MAX];
    leat_sim_result *results; /* shared with the children */
    uint64_t failed, first_failed;
    uint64_t endings[LEAT_SIM_ENDINGS];
    leat_sim_result total;
} program;

static const char usage[] =
    "leat-sim: a client and a server on a virtual network in virtual time, replayed from a seed\n"
    "  --seed N        the first seed (1)\n"
    "  --count M       how many, one after the other (1)\n"
    "  --jobs J        how many at a time (processors)\n"
    "  --plain         begin with the plain plan, not with one drawn from the seed\n"
    "  --plan K=V,...  change numbers of the plan\n"
    "  --size BYTES    the size of the file\n"
    "  --shrink        make a plan that fails (or the first of several) as small as it can be and\n"
    "                  still fails\n"
    "  --fault NAME    put in a fault that the run must find; --faults: which there are, and what\n"
    "                  is said of each\n"
    "  --check N       walk all containers each N steps (1)\n"
    "  --pcap FILE     write a capture; --keylog FILE: and the keys\n"
    "  --trace         print what happens; --digest: print each seed's digest\n"
    "  --show          print the plan and do nothing\n"
    "  --help          this, and the names in a plan\n";

static uint64_t number(const char *text)
{
    char *end;
    uint64_t value = strtoull(text, &end, 0);

    if (end == text || *end) {
        fprintf(stderr, "leat-sim: %s is not a number\n", text);
        exit(2);
    }
    return value;
}

static void make_plan(program *p, uint64_t seed)
{
    leat_sim_plan *plan = &p->options.plan;
    const char *wrong;

    if (p->plain) {
        leat_sim_plan_plain(plan);
    } else {
        leat_sim_plan_random(plan, seed);
    }
    if (p->has_size) {
        plan->size = p->size;
    }
    if (p->set && !leat_sim_plan_set(plan, p->set, &wrong)) {
        fprintf(stderr, "leat-sim: the plan cannot be read from \"%s\" on\n", wrong);
        exit(2);
    }
    p->options.seed = seed;
}

/* Once, before any child: all runs have the same certificate. */
static void make_identity(leat_sim_identity *id)
{
    static const char *const hosts[] = {"localhost"};
    leat_tls_self_signed request = {.hosts = hosts,
                                    .host_count = 1,
                                    .not_before = LEAT_SIM_EPOCH - 3600,
                                    .not_after = LEAT_SIM_EPOCH + 10 * 365 * INT64_C(86400)};
    leat_tls_error error;

    leat_sim_chance_seed(0);
    if (leat_tls_make_self_signed(&request, id->cert, &id->cert_len, id->key, &id->key_len,
                                  &error) != LEAT_OK) {
        fprintf(stderr, "leat-sim: no certificate: %s\n", error.text);
        exit(2);
    }
    if (leat_sim_chance_drawn() == 0) {
        fprintf(stderr, "leat-sim: the TLS library took its random bytes elsewhere\n");
        exit(2);
    }
}

/* ---- one seed ---- */

/* A run that never ends must name its seed too. */
static void limit_cpu(uint64_t size)
{
    rlim_t seconds = CPU_SECONDS + size / 1000000;
    struct rlimit limit = {.rlim_cur = seconds, .rlim_max = seconds + 5};

    setrlimit(RLIMIT_CPU, &limit);
}

/* The end of a child. What libraries do at exit() takes as long as a small run, and nothing needs
 * it but the search for leaks. */
static _Noreturn void leave(void)
{
#ifdef __SANITIZE_ADDRESS__
    exit(0);
#else
    fflush(NULL);
    _exit(0);
#endif
}

static void start(program *p, job *j, size_t slot, uint64_t seed)
{
    make_plan(p, seed);
    fflush(NULL);
    *j = (job){.pid = fork(), .seed = seed};
    if (j->pid < 0) {
        perror("leat-sim: fork");
        exit(2);
    }
    if (j->pid == 0) {
        limit_cpu(p->options.plan.size);
        leat_sim_run(&p->options, &p->results[slot]);
        leave();
    }
}

static void add_up(program *p, const leat_sim_result *r)
{
    p->endings[r->ending]++;
    p->total.took += r->took;
#define ADD(name) p->total.name += r->name;
    LEAT_SIM_TOTAL_LIST(ADD)
#undef ADD
}

static void fail(program *p, uint64_t seed, int status)
{
    if (p->failed++ == 0) {
        p->first_failed = seed;
    }
    make_plan(p, seed);
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "seed %" PRIu64 ": ended by signal %d\n", seed, WTERMSIG(status));
    }
    fprintf(stderr, "seed %" PRIu64 " FAILED; replay: %s --seed %" PRIu64 "%s%s%s", seed,
            p->argv[0], seed, p->plain ? " --plain" : "", p->set ? " --plan " : "",
            p->set ? p->set : "");
    if (p->options.fault) {
        fprintf(stderr, " --fault %s", leat_sim_fault_name(p->options.fault));
    }
    if (p->has_size) {
        fprintf(stderr, " --size %" PRIu64, p->size);
    }
    fprintf(stderr, "\n  plan: ");
    leat_sim_plan_print(&p->options.plan, stderr);
}

static void finish(program *p, pid_t pid, int status)
{
    for (size_t slot = 0; slot < JOBS_MAX; slot++) {
        job *j = &p->jobs[slot];

        if (j->pid != pid) {
            continue;
        }
        j->pid = 0;
        if (status != 0) {
            fail(p, j->seed, status);
            return;
        }
        add_up(p, &p->results[slot]);
        if (p->digests) {
            printf("seed %" PRIu64 ": %016" PRIx64 "\n", j->seed, p->results[slot].digest);
        }
    }
}

static job *free_job(program *p, size_t *slot)
{
    for (*slot = 0; *slot < (size_t)p->jobs_most; ++*slot) {
        if (p->jobs[*slot].pid == 0) {
            return &p->jobs[*slot];
        }
    }
    return NULL;
}

static void run_all(program *p)
{
    uint64_t next = 0, running = 0;
    int status;
    size_t slot;
    pid_t pid;
    job *j;

    while (next < p->count || running > 0) {
        if (next < p->count && p->failed < FAILURES_MAX && (j = free_job(p, &slot)) != NULL) {
            start(p, j, slot, p->seed + next++);
            running++;
            continue;
        }
        if (running == 0) {
            return;
        }
        pid = wait(&status);
        finish(p, pid, status);
        running--;
    }
}

/* ---- a smaller plan ---- */

enum { WORDS_MAX = 200 };

/* What a failure says, without its numbers: the same fault says the same. */
static void words_of(const char *text, char out[WORDS_MAX])
{
    const char *from = strstr(text, " s: ");
    size_t n = 0;

    for (from = from ? from + 4 : text; *from && *from != '\n' && n + 1 < WORDS_MAX; from++) {
        if (!(*from >= '0' && *from <= '9')) {
            out[n++] = *from;
        }
    }
    out[n] = 0;
}

/* Runs the present plan out of sight. False: it does not fail; else *words is why. */
static bool fails_with(program *p, char words[WORDS_MAX])
{
    char text[4096];
    size_t len = 0;
    ssize_t n;
    int status, ends[2];
    pid_t pid;

    fflush(NULL);
    if (pipe(ends) != 0 || (pid = fork()) < 0) {
        perror("leat-sim: fork");
        exit(2);
    }
    if (pid == 0) {
        limit_cpu(p->options.plan.size);
        if (dup2(ends[1], 2) < 0 || !freopen("/dev/null", "w", stdout)) {
            _exit(2);
        }
        leat_sim_run(&p->options, &p->results[0]);
        _exit(0);
    }
    close(ends[1]);
    while ((n = read(ends[0], text + len, sizeof(text) - 1 - len)) > 0) {
        len += (size_t)n;
    }
    close(ends[0]);
    text[len] = 0;
    LEAT_ASSERT(waitpid(pid, &status, 0) == pid);
    words_of(text, words);
    return status != 0;
}

/* Whether it fails as it did. */
static bool fails(program *p, const char *why)
{
    char words[WORDS_MAX];

    return fails_with(p, words) && strcmp(words, why) == 0;
}

/* Keeps a number of the plan only if the plan still fails with it. */
static bool try_number(program *p, const char *why, uint64_t *at, uint64_t value)
{
    uint64_t before = *at;

    if (before == value) {
        return false;
    }
    *at = value;
    if (fails(p, why)) {
        return true;
    }
    *at = before;
    return false;
}

/* Each number in turn as in the plain plan; where that will not do, nearer to it by halves. */
static bool shrink_once(program *p, const char *why)
{
    bool changed = false;
    uint64_t plain, *at;

    for (size_t i = 0; (at = leat_sim_plan_at(&p->options.plan, i, &plain)) != NULL; i++) {
        if (try_number(p, why, at, plain)) {
            changed = true;
            continue;
        }
        while (*at > plain && *at - plain > 1 &&
               try_number(p, why, at, plain + (*at - plain) / 2)) {
            changed = true;
        }
    }
    return changed;
}

static void shrink(program *p)
{
    char why[WORDS_MAX];

    make_plan(p, p->first_failed);
    if (!fails_with(p, why)) {
        fprintf(stderr, "seed %" PRIu64 " does not fail when it is run again\n", p->first_failed);
        return;
    }
    for (int pass = 0; pass < 4 && shrink_once(p, why); pass++) {
    }
    fprintf(stderr, "the smallest plan that fails:\n  %s --seed %" PRIu64 " --plain --plan ",
            p->argv[0], p->first_failed);
    leat_sim_plan_print(&p->options.plan, stderr);
}

/* ---- the whole ---- */

static void report(const program *p)
{
    static const char *const names[] = {
#define NAME(name, text) #name,
        LEAT_SIM_ENDING_LIST(NAME)
#undef NAME
    };

    printf("seeds %" PRIu64 " to %" PRIu64 ":", p->seed, p->seed + p->count - 1);
    for (size_t i = 0; i < LEAT_SIM_ENDINGS; i++) {
        printf(" %s %" PRIu64, names[i], p->endings[i]);
    }
    printf(" failed %" PRIu64 "\n", p->failed);
#define PRINT(name) printf("%s=%" PRIu64 " ", #name, p->total.name);
    LEAT_SIM_TOTAL_LIST(PRINT)
#undef PRINT
    printf("virtual_seconds=%.3f\n", (double)p->total.took / 1e9);
    if (p->count == 1) {
        printf("digest=%016" PRIx64 "\n", p->results[0].digest);
    }
}

enum {
    HELP = 256,
    SEED,
    COUNT,
    JOBS,
    PLAIN,
    PLAN,
    SIZE,
    CHECK,
    PCAP,
    KEYLOG,
    TRACE,
    DIGEST,
    SHOW,
    SHRINK,
    FAULT,
    FAULTS
};

static void read_options(program *p, int argc, char **argv)
{
    static const struct option options[] = {
        {"help", no_argument, NULL, HELP},
        {"seed", required_argument, NULL, SEED},
        {"count", required_argument, NULL, COUNT},
        {"jobs", required_argument, NULL, JOBS},
        {"plain", no_argument, NULL, PLAIN},
        {"plan", required_argument, NULL, PLAN},
        {"size", required_argument, NULL, SIZE},
        {"check", required_argument, NULL, CHECK},
        {"pcap", required_argument, NULL, PCAP},
        {"keylog", required_argument, NULL, KEYLOG},
        {"trace", no_argument, NULL, TRACE},
        {"digest", no_argument, NULL, DIGEST},
        {"show", no_argument, NULL, SHOW},
        {"shrink", no_argument, NULL, SHRINK},
        {"fault", required_argument, NULL, FAULT},
        {"faults", no_argument, NULL, FAULTS},
        {NULL, 0, NULL, 0},
    };
    bool show = false;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case HELP:
            fputs(usage, stdout);
            leat_sim_plan_help(stdout);
            exit(0);
        case SEED:
            p->seed = number(optarg);
            break;
        case COUNT:
            p->count = number(optarg);
            break;
        case JOBS:
            p->jobs_most = (long)number(optarg);
            break;
        case PLAIN:
            p->plain = true;
            break;
        case PLAN:
            p->set = optarg;
            break;
        case SIZE:
            p->size = number(optarg);
            p->has_size = true;
            break;
        case CHECK:
            p->options.check = number(optarg);
            break;
        case PCAP:
            p->options.pcap = optarg;
            break;
        case KEYLOG:
            p->options.keylog = optarg;
            break;
        case TRACE:
            p->options.sink = &leat_sim_trace;
            break;
        case DIGEST:
            p->digests = true;
            break;
        case SHOW:
            show = true;
            break;
        case FAULT:
            p->options.fault = leat_sim_fault_find(optarg);
            if (p->options.fault < 0) {
                fprintf(stderr, "leat-sim: there is no fault %s\n", optarg);
                exit(2);
            }
            break;
        case FAULTS:
            for (int i = 1; leat_sim_fault_name(i); i++) {
                printf("%s %s\n", leat_sim_fault_name(i), leat_sim_fault_text(i));
            }
            exit(0);
        case SHRINK:
            p->shrink = true;
            break;
        default:
            fputs(usage, stderr);
            exit(2);
        }
    }
    make_plan(p, p->seed);
    if (show) {
        leat_sim_plan_print(&p->options.plan, stdout);
        exit(0);
    }
}

int main(int argc, char **argv)
{
    static program p = {.seed = 1, .count = 1, .options = {.check = 1}};

    p.argv = argv;
    p.jobs_most = sysconf(_SC_NPROCESSORS_ONLN);
    read_options(&p, argc, argv);
    p.jobs_most = p.jobs_most < 1 ? 1 : p.jobs_most > JOBS_MAX ? JOBS_MAX : p.jobs_most;
    p.options.check = p.options.check > 0 ? p.options.check : 1;
    p.results = mmap(NULL, JOBS_MAX * sizeof(*p.results), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p.results == MAP_FAILED) {
        perror("leat-sim: mmap");
        return 2;
    }
    p.options.identity = &p.identity;
    make_identity(&p.identity);
    leat_sim_prepare(&p.identity);
    run_all(&p);
    if (p.shrink && p.failed > 0) {
        shrink(&p);
    }
    report(&p);
    return p.failed > 0;
}
