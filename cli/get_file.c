/* cli/get_file.c: one file from its request to its name on the disk.
 *
 * A file is whole when the peer's message has ended in order and, where a length was announced, so
 * many bytes have come. Everything else discards what was written.
 *
 * SPDX-License-Identifier: MIT
 */
#include "get.h"

#include <inttypes.h>
#include <unistd.h>

enum { PARTIAL = 206 };

static leat_span text(const char *s)
{
    return (leat_span){(const uint8_t *)s, strlen(s)};
}

static const char *target(const get_file *file)
{
    return file->output.path ? file->output.path : "standard output";
}

/* Ends a file that did not come, with a message that names its URL. */
static void fail(get_file *file, leat_cli_exit code, const char *what, const char *why)
{
    if (file->over) {
        return;
    }
    file->over = true;
    leat_cli_progress_stop(&file->group->app->progress);
    leat_cli_error("%s: %s%s%s", file->url.text, what, why ? ": " : "", why ? why : "");
    get_failed(file->group->app, code);
    leat_cli_output_discard(&file->output, &file->group->app->writer);
}

static void fail_output(get_file *file)
{
    char what[512];

    snprintf(what, sizeof what, "cannot write %s", target(file));
    fail(file, LEAT_EXIT_FILE, what, strerror(file->output.error));
    if (file->x) {
        leat_http_cancel(file->x, LEAT_H3_REQUEST_CANCELLED);
    }
}

/* ---- asking ---- */

static leat_err ask_for(get_group *group, get_file *file)
{
    static char agent[64];
    leat_http_field field = {text("user-agent"), {NULL, 0}};
    leat_http_request_head head = {.method = text(group->app->head ? "HEAD" : "GET"),
                                   .authority = text(file->url.authority),
                                   .path = text(file->url.path),
                                   .fields = &field,
                                   .field_count = 1};

    snprintf(agent, sizeof agent, "leat/%s", leat_version());
    field.value = text(agent);
    return leat_http_request(group->http, &head, file, &file->x);
}

void get_ask(get_group *group)
{
    get_app *app = group->app;

    while (group->next < app->file_count && group->active < app->parallel) {
        get_file *file = &app->files[group->next];
        leat_err err;

        if (file->group != group) {
            group->next++;
            continue;
        }
        err = ask_for(group, file);
        if (err == LEAT_ERR_BLOCKED) {
            return;
        }
        group->next++;
        if (err == LEAT_OK) {
            group->active++;
            continue;
        }
        fail(file,
             err == LEAT_ERR_LIMIT ? LEAT_EXIT_USAGE : leat_cli_exit_of(err, LEAT_EXIT_BROKEN),
             "cannot be asked for",
             err == LEAT_ERR_LIMIT ? "the URL is too long for a request" : leat_err_text(err));
        group->left--;
    }
    if (group->left == 0) {
        group->state = GET_FINISHED;
    }
}

void get_forget(get_group *group)
{
    get_app *app = group->app;

    group->next = app->file_count;
    group->left = group->active = group->lost = 0;
    for (size_t i = app->file_count; i-- > 0;) {
        if (app->files[i].group == group) {
            app->files[i].over = false;
            group->next = i;
            group->left++;
            app->progress.files_done--;
        }
    }
}

/* ---- answers ---- */

/* A terminal might act on a byte outside ASCII: it is shown as '?'. */
static void print_value(leat_span value, bool terminal)
{
    for (size_t i = 0; i < value.len; i++) {
        putchar(terminal && value.data[i] > '~' ? '?' : value.data[i]);
    }
}

static void print_head(const leat_http_head *head)
{
    bool terminal = isatty(STDOUT_FILENO) == 1;

    printf("HTTP/3 %u\n", head->status);
    for (size_t i = 0; i < head->field_count; i++) {
        const leat_http_field *f = &head->fields[i];

        printf("%.*s: ", (int)f->name.len, (const char *)f->name.data);
        print_value(f->value, terminal);
        putchar('\n');
    }
    putchar('\n');
    fflush(stdout);
}

static void fail_status(get_file *file, unsigned status)
{
    char what[64];
    bool missing = status == 404 || status == 410;

    if (missing) {
        snprintf(what, sizeof what, "no such file on the server (%u)", status);
    } else {
        snprintf(what, sizeof what, "the server answered %u", status);
    }
    fail(file, missing ? LEAT_EXIT_NOT_FOUND : LEAT_EXIT_STATUS, what, NULL);
}

static void expect(get_file *file, uint64_t length)
{
    leat_cli_progress *progress = &file->group->app->progress;

    file->length = length;
    if (length != LEAT_HTTP_LENGTH_UNKNOWN) {
        progress->expected += length;
        progress->lengths++;
    }
    progress->expected_known = progress->lengths == progress->files;
}

static void on_response(leat_http_exchange *x, const leat_http_head *head, void *user)
{
    get_group *group = user;
    get_file *file = leat_http_exchange_user(x);

    if (group->app->head) {
        print_head(head);
    }
    if (head->status < 200 || head->status > 299) {
        fail_status(file, head->status);
        return;
    }
    if (group->app->head) {
        return;
    }
    if (head->status == PARTIAL) {
        fail(file, LEAT_EXIT_STATUS, "the server answered 206, a part of what was asked for", NULL);
        return;
    }
    expect(file, head->content_length);
    if (!leat_cli_output_open(&file->output, &group->app->writer)) {
        fail_output(file);
    }
}

/* A while later when it cannot be now: the handshake is not confirmed. */
static void update_keys(get_group *group)
{
    uint64_t at = group->app->key_update_at;

    if (at > 0 && !group->keys_updated && group->run.body_bytes >= at) {
        group->keys_updated = leat_conn_update_keys(leat_http_conn(group->http)) == LEAT_OK;
    }
}

static size_t on_body(leat_http_exchange *x, leat_span data, void *user)
{
    get_group *group = user;
    get_file *file = leat_http_exchange_user(x);

    if (file->over || group->app->head) {
        return data.len; /* the text of an error */
    }
    file->received += data.len;
    group->run.body_bytes += data.len;
    group->app->progress.bytes += data.len;
    leat_cli_steady_add(&group->steady, data.len, leat_ctx_mem(leat_loop_ctx(group->app->loop)));
    update_keys(group);
    if (!leat_cli_output_write(&file->output, data)) {
        fail_output(file);
    }
    return data.len;
}

static void on_complete(leat_http_exchange *x, void *user)
{
    get_group *group = user;
    get_file *file = leat_http_exchange_user(x);

    if (file->over) {
        return;
    }
    if (group->app->head) {
        file->over = file->whole = true;
        return;
    }
    if (file->length != LEAT_HTTP_LENGTH_UNKNOWN && file->length != file->received) {
        char why[96];

        snprintf(why, sizeof why, "%" PRIu64 " of %" PRIu64 " bytes came", file->received,
                 file->length);
        fail(file, LEAT_EXIT_BROKEN, "the transfer broke", why);
        return;
    }
    if (!leat_cli_output_commit(&file->output, &group->app->writer)) {
        fail_output(file);
        return;
    }
    file->over = file->whole = true;
}

/* ---- ends ---- */

/* hq-interop has no status: leat's server resets the stream with the HTTP status as the code. */
static void fail_reset(get_group *group, get_file *file, uint64_t code)
{
    char why[96];

    if (group->conn && leat_conn_alpn(group->conn).len == strlen(LEAT_HTTP_ALPN_HQ) &&
        code >= 400 && code <= 599) {
        fail_status(file, (unsigned)code);
        return;
    }
    snprintf(why, sizeof why, "the server reset the stream, %s (0x%" PRIx64 ")",
             leat_h3_error_name(code), code);
    fail(file, LEAT_EXIT_BROKEN, "the transfer broke", why);
}

static const char *end_text(const leat_http_end *end)
{
    if (end->rejected) {
        return "the server is going away";
    }
    switch (end->err) {
    case LEAT_ERR_MALFORMED:
        return "what the server answered is not well formed";
    case LEAT_ERR_LIMIT:
        return "the head of the server's answer is too long";
    default:
        return leat_err_text(end->err);
    }
}

static void on_exchange_closed(leat_http_exchange *x, const leat_http_end *end, void *user)
{
    get_group *group = user;
    get_file *file = leat_http_exchange_user(x);

    file->x = NULL;
    group->active--;
    group->left--;
    group->app->progress.files_done++;
    if (!file->over && end->err == LEAT_ERR_CLOSED && end->code == 0) {
        group->lost++; /* with the connection, which says why when it closes */
        file->over = true;
        leat_cli_output_discard(&file->output, &group->app->writer);
    } else if (!file->over && end->err == LEAT_ERR_RESET) {
        fail_reset(group, file, end->code);
    } else if (!file->over) {
        fail(file, leat_cli_exit_of(end->err, LEAT_EXIT_BROKEN), "the transfer broke",
             end_text(end));
    }
    if (group->lost == 0) {
        get_ask(group);
    }
}

static void on_available(leat_http *http, void *user)
{
    (void)http;
    get_ask(user);
}

static void on_token(leat_http *http, leat_span token, void *user)
{
    get_group *group = user;

    (void)http;
    if (group == &group->app->groups[0]) {
        leat_cli_session_keep_token(&group->app->session, token);
    }
}

static void on_ticket(leat_http *http, leat_span session, void *user)
{
    get_group *group = user;

    (void)http;
    if (group == &group->app->groups[0]) {
        leat_cli_session_keep(&group->app->session, session);
    }
}

static void on_closed(leat_http *http, const leat_close_info *info, void *user)
{
    get_group *group = user;

    (void)http;
    if (group->state == GET_FINISHED || group->state == GET_OVER) {
        /* as it should */
    } else if (group->early && info->kind == LEAT_CLOSE_HANDSHAKE_TIMEOUT &&
               get_try_next(group, info)) {
        get_forget(group); /* nobody was there to be asked */
    } else {
        get_print_stats(group);
        get_closed(group, info);
    }
    group->http = NULL;
    group->conn = NULL;
}

const leat_http_events get_http_events = {
    .response = on_response,
    .body = on_body,
    .complete = on_complete,
    .exchange_closed = on_exchange_closed,
    .available = on_available,
    .token = on_token,
    .ticket = on_ticket,
    .closed = on_closed,
};
