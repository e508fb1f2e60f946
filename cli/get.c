/* cli/get.c: `leat get`: options, files and their groups, the loop, the end.
 *
 * All URLs of one host and port share a connection. Sockets are opened and closed between two turns
 * of the loop, since events must not do it.
 *
 * SPDX-License-Identifier: MIT
 */
#include "get.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

static const leat_time TICKET_WAIT = LEAT_SECOND;
static const leat_time MIGRATE_AGAIN = 10 * LEAT_MILLISECOND;

#define GET_OPTIONS(X)                                                                             \
    X(OUTPUT, "output", 'o', "FILE", "write to FILE ('-': standard output); once for each URL")    \
    X(REMOTE_NAME, "remote-name", 'O', NULL, "write to a file named as the URL's last part")       \
    X(OUTPUT_DIR, "output-dir", 0, "DIR", "the folder for --remote-name")                          \
    X(HEAD, "head", 'I', NULL, "ask for the head alone and print it")                              \
    X(INSECURE, "insecure", 'k', NULL, "accept any certificate")                                   \
    X(CA, "ca", 0, "FILE", "believe the authorities in FILE, PEM (default: the system's)")         \
    X(CONNECT_TIMEOUT, "connect-timeout", 0, "SECONDS", "give up connecting (default: 10)")        \
    X(CONNECT_TO, "connect-to", 0, "ADDR:PORT", "connect there, whatever the URL's host")          \
    X(BIND, "bind", 0, "ADDR:PORT", "send from there")                                             \
    X(MIGRATE, "migrate", 0, "SECONDS",                                                            \
      "move to another local port so long after the handshake, in the middle of what goes on")     \
    X(NO_PREFERRED_ADDRESS, "no-preferred-address", 0, NULL,                                       \
      "stay where the connection began, whichever address the server prefers")                     \
    X(SESSION_FILE, "session-file", 0, "FILE",                                                     \
      "resume the session in FILE with the first URL's host, and keep the next one there")         \
    X(NO_EARLY_DATA, "no-early-data", 0, NULL, "do not ask by 0-RTT when the session allows it")   \
    X(KEY_UPDATE_AT, "key-update-at", 0, "BYTES",                                                  \
      "update the keys once, when so many bytes have come on a connection")                        \
    X(PARALLEL, "parallel", 0, "N", "requests at once on a connection (default: 100)")             \
    X(IPV4, "ipv4", '4', NULL, "use IPv4 only")                                                    \
    X(IPV6, "ipv6", '6', NULL, "use IPv6 only")

enum get_id {
    LEAT_OPT_GET_FIRST = LEAT_OPT_COMMON_END,
    GET_OPTIONS(LEAT_CLI_OPTION_ENUM) LEAT_OPT_GET_END
};

static const leat_cli_option options[] = {GET_OPTIONS(LEAT_CLI_OPTION_ROW)
                                              LEAT_CLI_COMMON_OPTIONS(LEAT_CLI_OPTION_ROW)};

enum { OPTIONS = sizeof options / sizeof options[0] };

static volatile sig_atomic_t interrupted;
static leat_loop *volatile signalled_loop; /* NULL once it goes: signals may come until the end */

static void on_signal(int number)
{
    (void)number;
    interrupted = 1;
    if (signalled_loop) {
        leat_loop_stop(signalled_loop);
    }
}

/* ---- options ---- */

static void print_help(void)
{
    puts("usage: leat get URL... [OPTION...]\n\n"
         "Fetches files over HTTP/3, or hq-interop with --alpn. All URLs of one host and port\n"
         "share a connection. Without -o or -O the file goes to standard output. A file that does\n"
         "not come whole is not left behind.\n");
    leat_cli_print_options(options, OPTIONS);
    leat_cli_print_exit_codes();
}

static bool take_addr(const char *what, const char *arg, leat_addr *out)
{
    if (leat_addr_parse(arg, out) == LEAT_OK) {
        return true;
    }
    leat_cli_error("--%s wants ADDR:PORT or [ADDR6]:PORT, not '%s'", what, arg);
    return false;
}

static bool take(get_app *app, int id, const char **outputs, size_t *output_count)
{
    switch (id) {
    case LEAT_OPT_OUTPUT:
        outputs[(*output_count)++] = optarg;
        return true;
    case LEAT_OPT_REMOTE_NAME:
        app->remote_names = true;
        return true;
    case LEAT_OPT_OUTPUT_DIR:
        app->folder = optarg;
        return true;
    case LEAT_OPT_HEAD:
        app->head = true;
        return true;
    case LEAT_OPT_INSECURE:
        app->insecure = true;
        return true;
    case LEAT_OPT_CA:
        app->ca_path = optarg;
        return true;
    case LEAT_OPT_CONNECT_TIMEOUT:
        return leat_cli_seconds("connect-timeout", optarg, LEAT_CLI_NOT_ZERO,
                                &app->connect_timeout);
    case LEAT_OPT_CONNECT_TO:
        return take_addr("connect-to", optarg, &app->connect_to);
    case LEAT_OPT_BIND:
        return take_addr("bind", optarg, &app->bind);
    case LEAT_OPT_MIGRATE:
        app->migrate = true;
        return leat_cli_seconds("migrate", optarg, LEAT_CLI_ZERO_TOO, &app->migrate_after);
    case LEAT_OPT_NO_PREFERRED_ADDRESS:
        app->common.conn.ignore_preferred = true;
        return true;
    case LEAT_OPT_SESSION_FILE:
        app->session_path = optarg;
        return true;
    case LEAT_OPT_NO_EARLY_DATA:
        app->common.conn.early_data = false;
        return true;
    case LEAT_OPT_KEY_UPDATE_AT:
        return leat_cli_number("key-update-at", optarg, 1, UINT64_MAX, &app->key_update_at);
    case LEAT_OPT_PARALLEL:
        return leat_cli_number("parallel", optarg, 1, UINT32_MAX, &app->parallel);
    case LEAT_OPT_IPV4:
        app->only4 = true;
        return true;
    case LEAT_OPT_IPV6:
        app->only6 = true;
        return true;
    default:
        return leat_cli_common_take(&app->common, id, optarg);
    }
}

/* Where a file goes: its -o, or its own name; NULL is standard output. False after a message. */
static bool name_output(get_app *app, get_file *file, const char *given)
{
    const char *folder = app->folder;
    char *path;

    if (given || !app->remote_names) {
        leat_cli_output_init(&file->output, given && strcmp(given, "-") != 0 ? given : NULL);
        return true;
    }
    if (file->url.name[0] == 0) {
        leat_cli_error("%s ends with nothing that can be a file's name: use -o", file->url.text);
        return false;
    }
    if (!folder) {
        leat_cli_output_init(&file->output, file->url.name);
        return true;
    }
    path = leat_cli_alloc(1, strlen(folder) + strlen(file->url.name) + 2);
    sprintf(path, "%s/%s", folder, file->url.name);
    file->named = path;
    leat_cli_output_init(&file->output, path);
    return true;
}

/* Two downloads into one file would ruin each other. Several to standard output, or to
 * another descriptor, go one by one. */
static bool check_outputs(get_app *app)
{
    size_t to_stdout = 0;

    for (size_t i = 0; i < app->file_count; i++) {
        const leat_cli_output *a = &app->files[i].output;

        to_stdout += a->given >= 0;
        for (size_t j = 0; a->part && j < i; j++) {
            const leat_cli_output *b = &app->files[j].output;

            if (b->part && strcmp(a->real, b->real) == 0) {
                leat_cli_error("two downloads would go to %s", a->path);
                return false;
            }
        }
    }
    if (to_stdout > 1) {
        app->serial = true;
        app->parallel = 1;
    }
    return true;
}

static bool make_files(get_app *app, char **urls, const char **outputs, size_t output_count)
{
    app->files = leat_cli_alloc(app->file_count, sizeof *app->files);
    for (size_t i = 0; i < app->file_count; i++) {
        get_file *file = &app->files[i];

        file->output.fd = -1;
        file->length = LEAT_HTTP_LENGTH_UNKNOWN;
        if (!leat_cli_url_parse(urls[i], &file->url) ||
            !name_output(app, file, i < output_count ? outputs[i] : NULL)) {
            return false;
        }
    }
    return check_outputs(app);
}

static bool same_host(const leat_cli_url *a, const leat_cli_url *b)
{
    return a->port == b->port && strcasecmp(a->host, b->host) == 0;
}

static void make_groups(get_app *app)
{
    app->groups = leat_cli_alloc(app->file_count, sizeof *app->groups);
    for (size_t i = 0; i < app->file_count; i++) {
        get_file *file = &app->files[i];
        size_t g = 0;

        while (g < app->group_count && !same_host(&app->groups[g].sample->url, &file->url)) {
            g++;
        }
        if (g == app->group_count) {
            app->groups[app->group_count++] = (get_group){.app = app, .sample = file, .next = i};
        }
        file->group = &app->groups[g];
        file->group->left++;
    }
}

/* hq-interop has no HEAD, so it is not offered when heads are asked for. */
static bool choose_alpn(get_app *app)
{
    leat_cli_common *common = &app->common;
    size_t kept = 0;

    if (common->alpn_count == 0) {
        common->alpn[common->alpn_count++] = LEAT_HTTP_ALPN_H3;
    }
    for (size_t i = 0; i < common->alpn_count; i++) {
        if (!app->head || strcmp(common->alpn[i], LEAT_HTTP_ALPN_HQ) != 0) {
            common->alpn[kept++] = common->alpn[i];
        }
    }
    common->alpn_count = kept;
    if (kept == 0) {
        leat_cli_error("--head needs h3: hq-interop can only ask for whole files");
    }
    return kept > 0;
}

static leat_cli_exit parse(get_app *app, int argc, char **argv)
{
    const char **outputs = leat_cli_alloc((size_t)argc, sizeof *outputs);
    size_t output_count = 0;
    leat_cli_parser parser;
    leat_cli_exit exit_code = LEAT_EXIT_USAGE;
    int id;

    leat_cli_parser_init(&parser, "get", options, OPTIONS);
    while ((id = leat_cli_option_next(&parser, argc, argv)) != -1) {
        if (id == '?' || !take(app, id, outputs, &output_count)) {
            goto out;
        }
    }
    if (app->common.help) {
        exit_code = LEAT_EXIT_OK;
        goto out;
    }
    app->file_count = (size_t)(argc - optind);
    if (app->file_count == 0) {
        leat_cli_error("no URL given (try 'leat get --help')");
        goto out;
    }
    if (output_count > app->file_count) {
        leat_cli_error("more -o than URLs");
        goto out;
    }
    if (app->only4 && app->only6) {
        leat_cli_error("-4 and -6 exclude each other");
        goto out;
    }
    if (app->head && (output_count || app->remote_names)) {
        leat_cli_error("--head prints the head: -o and -O are for files");
        goto out;
    }
    if (choose_alpn(app) && make_files(app, argv + optind, outputs, output_count)) {
        make_groups(app);
        exit_code = LEAT_EXIT_OK;
    }
out:
    free(outputs);
    return exit_code;
}

/* ---- start-up ---- */

static leat_cli_exit make_tls(get_app *app)
{
    leat_tls_settings *tls = &app->common.tls;

    tls->verify = tls->verify_host = !app->insecure;
    tls->system_ca = !app->ca_path && !app->insecure;
    return leat_cli_tls_client(tls, leat_ctx_mem(leat_loop_ctx(app->loop)), app->ca_path,
                               &app->tls);
}

static leat_cli_exit start(get_app *app)
{
    leat_cli_exit exit_code = leat_cli_common_open(&app->common);

    if (exit_code == LEAT_EXIT_OK) {
        exit_code = leat_cli_loop_new(&app->loop);
    }
    if (exit_code != LEAT_EXIT_OK) {
        return exit_code;
    }
    leat_cli_writer_init(&app->writer);
    if (app->session_path) {
        if (!leat_cli_session_load(&app->session, app->session_path)) {
            return LEAT_EXIT_FILE;
        }
        app->common.tls.tickets = 1;
    }
    signalled_loop = app->loop;
    leat_cli_catch_signals(on_signal);
    signal(SIGPIPE, SIG_IGN); /* a reader that went away is an error of write() */
    leat_cli_warm(leat_ctx_mem(leat_loop_ctx(app->loop)));
    leat_cli_allocs_now();
    leat_cli_progress_start(&app->progress, leat_loop_ctx(app->loop), !app->common.quiet,
                            app->file_count);
    return make_tls(app);
}

/* ---- running ---- */

static void finish_group(get_group *group)
{
    if (group->http) {
        get_print_stats(group);
        leat_http_close(group->http, LEAT_H3_NO_ERROR);
    }
    leat_udp_close(group->udp); /* sends the CONNECTION_CLOSE; closed events come now */
    group->udp = NULL;
    group->state = GET_OVER;
}

/* All files may be there before the ticket for the next time: waits for it, a little. */
static bool wait_for_ticket(get_app *app, get_group *group)
{
    leat_time now = leat_clock_now();

    if (!app->session_path || group != &app->groups[0] || app->session.fresh || !group->http ||
        app->result != LEAT_EXIT_OK) {
        return false;
    }
    if (group->wait_until == 0) {
        group->wait_until = now + TICKET_WAIT;
    }
    app->wake = group->wait_until;
    return now < group->wait_until;
}

/* Moves a group's connection when it is time to. */
static void migrate(get_app *app, get_group *group)
{
    leat_time now = leat_clock_now();

    if (!app->migrate || group->migrate_at == LEAT_TIME_NEVER || group->state != GET_RUNNING) {
        return;
    }
    if (now >= group->migrate_at && !get_migrate(group)) {
        group->migrate_at = now + MIGRATE_AGAIN;
    }
    if (group->migrate_at < app->wake) {
        app->wake = group->migrate_at;
    }
}

/* What could not be done inside events. Returns whether a group is still at work. */
static bool work(get_app *app)
{
    bool busy = false;

    app->wake = LEAT_TIME_NEVER;
    for (size_t i = 0; i < app->group_count; i++) {
        get_group *group = &app->groups[i];

        if (group->state == GET_RETRY) {
            leat_udp_close(group->udp);
            group->udp = NULL;
            group->state = GET_WAITING;
        }
        if (group->state == GET_WAITING && !(app->serial && busy)) {
            get_connect(group);
        }
        migrate(app, group);
        if (group->state == GET_FINISHED && !wait_for_ticket(app, group)) {
            finish_group(group);
        }
        busy |= group->state != GET_OVER;
    }
    return busy;
}

static leat_cli_exit run(get_app *app)
{
    while (!interrupted && work(app)) {
        if (leat_loop_turn(app->loop, app->wake) != LEAT_OK) {
            leat_cli_error("the loop failed: %s", strerror(errno));
            return LEAT_EXIT_FAILURE;
        }
    }
    leat_cli_progress_stop(&app->progress);
    if (!leat_cli_session_save(&app->session)) {
        get_failed(app, LEAT_EXIT_FILE);
    }
    if (interrupted) {
        leat_cli_error("interrupted");
        return LEAT_EXIT_INTERRUPTED;
    }
    return app->result;
}

static leat_cli_exit release(get_app *app, leat_cli_exit exit_code)
{
    for (size_t i = 0; i < app->group_count; i++) {
        if (app->groups[i].udp) {
            app->groups[i].state = GET_FINISHED; /* it has nothing more to tell */
            finish_group(&app->groups[i]);
        }
    }
    signalled_loop = NULL;
    leat_loop_free(app->loop);
    for (size_t i = 0; i < app->file_count && app->files; i++) {
        leat_cli_output_discard(&app->files[i].output, &app->writer);
        leat_cli_output_free(&app->files[i].output);
        leat_cli_url_free(&app->files[i].url);
        free(app->files[i].named);
    }
    leat_tls_config_free(app->tls);
    leat_cli_session_free(&app->session);
    leat_cli_writer_free(&app->writer);
    free(app->groups);
    free(app->files);
    return leat_cli_common_close(&app->common, exit_code);
}

int leat_cli_get(int argc, char **argv)
{
    get_app app = {.connect_timeout = 10 * LEAT_SECOND, .parallel = 100};
    leat_cli_exit exit_code;

    leat_cli_common_init(&app.common);
    app.common.conn.early_data = true; /* where --session-file has a session */
    exit_code = parse(&app, argc, argv);
    if (app.common.help && exit_code == LEAT_EXIT_OK) {
        print_help();
        return LEAT_EXIT_OK;
    }
    if (exit_code == LEAT_EXIT_OK) {
        exit_code = start(&app);
    }
    if (exit_code == LEAT_EXIT_OK) {
        exit_code = run(&app);
    }
    return release(&app, exit_code);
}
