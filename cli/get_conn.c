/* cli/get_conn.c: finds a host, connects to it, and says why when that fails.
 *
 * A host may have several addresses of which some are dead. Each is first tried for a short time,
 * so that one without an answer costs little; if none answered, each is tried once more with its
 * share of the whole timeout.
 *
 * SPDX-License-Identifier: MIT
 */
#include "get.h"

#include <errno.h>
#include <stdarg.h>

static const leat_time FIRST_TRY = 300 * LEAT_MILLISECOND;

void get_group_failed(get_group *group, leat_cli_exit code, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    leat_cli_progress_stop(&group->app->progress);
    leat_cli_error("%s: %s", group->sample->url.authority, text);
    get_failed(group->app, code);
    group->state = GET_FINISHED;
}

/* ---- why it closed ---- */

static void closed_by_code(get_group *group, const leat_close_info *info, const char *who)
{
    const char *name =
        info->application ? leat_h3_error_name(info->code) : leat_transport_error_name(info->code);
    char reason[LEAT_CLI_SAFE];

    leat_cli_safe(info->reason, reason);
    if (!info->application && leat_transport_error_is_crypto(info->code)) {
        get_group_failed(group, LEAT_EXIT_BROKEN, "the TLS handshake failed: alert %u from %s%s%s",
                         leat_transport_error_alert(info->code), who, info->detail ? ": " : "",
                         info->detail ? info->detail : "");
    } else {
        get_group_failed(group, LEAT_EXIT_BROKEN, "%s closed the connection: %s (0x%llx)%s%s", who,
                         name, (unsigned long long)info->code, reason[0] ? ": " : "", reason);
    }
}

void get_closed(get_group *group, const leat_close_info *info)
{
    double seconds = (double)group->app->connect_timeout / (double)LEAT_SECOND;

    switch (info->kind) {
    case LEAT_CLOSE_HANDSHAKE_TIMEOUT:
        get_group_failed(group, LEAT_EXIT_TIMEOUT, "no answer within %g seconds", seconds);
        return;
    case LEAT_CLOSE_IDLE:
        get_group_failed(group, LEAT_EXIT_TIMEOUT, "%s",
                         group->http ? "the server went silent" : "no answer");
        return;
    case LEAT_CLOSE_RESET:
        get_group_failed(group, LEAT_EXIT_BROKEN, "the server forgot the connection (reset)");
        return;
    case LEAT_CLOSE_VERSION:
        get_group_failed(group, LEAT_EXIT_BROKEN, "the server speaks none of our QUIC versions");
        return;
    case LEAT_CLOSE_DROPPED:
        get_group_failed(group, LEAT_EXIT_BROKEN, "the connection was given up");
        return;
    case LEAT_CLOSE_PEER:
        closed_by_code(group, info, "the server");
        return;
    case LEAT_CLOSE_LOCAL:
        break;
    }
    if (info->err == LEAT_ERR_NOMEM) {
        get_group_failed(group, LEAT_EXIT_MEMORY, "leat closed the connection: %s",
                         info->detail ? info->detail : leat_err_text(info->err));
    } else if (info->err == LEAT_ERR_CERTIFICATE) {
        get_group_failed(group, LEAT_EXIT_CERTIFICATE, "%s",
                         info->detail ? info->detail : leat_err_text(info->err));
    } else {
        closed_by_code(group, info, "leat");
    }
}

/* ---- connecting ---- */

static bool answered_nothing(const leat_close_info *info)
{
    return info->kind == LEAT_CLOSE_HANDSHAKE_TIMEOUT || info->kind == LEAT_CLOSE_IDLE;
}

/* Attempts in all: each address once; with several, each once more. */
static size_t attempts_most(const get_group *group)
{
    return group->addr_count > 1 ? group->addr_count * 2 : 1;
}

static leat_time attempt_timeout(const get_group *group)
{
    leat_time whole = group->app->connect_timeout;

    if (group->addr_count == 1) {
        return whole;
    }
    if (group->attempts < group->addr_count) {
        return whole < FIRST_TRY ? whole : FIRST_TRY;
    }
    return whole / group->addr_count + 1;
}

/* Begins HTTP, and asks. */
static void begin(get_group *group, leat_conn *conn)
{
    leat_err err = leat_http_attach(conn, NULL, &get_http_events, group, &group->http);

    if (err != LEAT_OK) {
        get_group_failed(group, leat_cli_exit_of(err, LEAT_EXIT_BROKEN), "%s", leat_err_text(err));
        return;
    }
    group->state = GET_RUNNING;
    group->migrate_at = leat_clock_now() + group->app->migrate_after;
    get_ask(group);
}

static void on_connected(leat_conn *conn, void *user)
{
    get_group *group = user;
    get_app *app = group->app;

    if (app->common.verbose) {
        char remote[LEAT_ADDR_TEXT_MAX];
        leat_span alpn = leat_conn_alpn(conn);

        fprintf(stderr, "connected to %s, %.*s, %s\n",
                leat_addr_format(leat_conn_remote(conn), remote), (int)alpn.len,
                (const char *)alpn.data, leat_conn_cipher(conn));
    }
    begin(group, conn);
}

/* A session for the next time, before there was HTTP. */
static void on_ticket(leat_conn *conn, leat_span session, void *user)
{
    get_group *group = user;

    (void)conn;
    leat_cli_session_keep(&group->app->session, session);
}

bool get_try_next(get_group *group, const leat_close_info *info)
{
    group->attempts++;
    if (!answered_nothing(info) || group->attempts >= attempts_most(group)) {
        return false;
    }
    group->state = GET_RETRY;
    return true;
}

static void on_failed(leat_conn *conn, const leat_close_info *info, void *user)
{
    get_group *group = user;

    (void)conn;
    if (group->state != GET_FINISHED && !get_try_next(group, info)) {
        get_print_stats(group);
        get_closed(group, info);
    }
    group->conn = NULL;
}

static const leat_conn_events conn_events = {
    .connected = on_connected, .ticket = on_ticket, .closed = on_failed};

/* Looks the host up, unless it was told where to connect. */
static bool find_host(get_group *group)
{
    get_app *app = group->app;
    const leat_cli_url *url = &group->sample->url;
    leat_addr found[GET_ADDRS];
    size_t count = 0;

    if (app->connect_to.family) {
        group->addrs[group->addr_count++] = app->connect_to;
        return true;
    }
    if (leat_addr_resolve(url->host, url->port, found, GET_ADDRS, &count) != LEAT_OK || !count) {
        get_group_failed(group, LEAT_EXIT_ADDRESS, "there is no such host");
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        if ((app->only4 && found[i].family != 4) || (app->only6 && found[i].family != 6)) {
            continue;
        }
        group->addrs[group->addr_count++] = found[i];
    }
    if (group->addr_count == 0) {
        get_group_failed(group, LEAT_EXIT_ADDRESS, "the host has no IPv%c address",
                         app->only4 ? '4' : '6');
    }
    return group->addr_count > 0;
}

static leat_err open_socket(get_group *group, const leat_addr *remote)
{
    get_app *app = group->app;
    leat_udp_settings udp;
    leat_endpoint_settings endpoint;

    leat_udp_settings_init(&udp);
    udp.remote = *remote;
    udp.local = app->bind;
    udp.no_offload = app->common.no_offload;
    leat_endpoint_settings_init(&endpoint);
    endpoint.events_sink = leat_cli_common_sink(&app->common);
    return leat_udp_open(app->loop, &udp, &endpoint, &group->udp);
}

static leat_err connect_to(get_group *group, const leat_addr *remote)
{
    get_app *app = group->app;
    leat_conn_settings settings = app->common.conn;
    leat_connect how = {.remote = *remote,
                        .server_name = group->sample->url.host,
                        .tls = app->tls,
                        .settings = &settings,
                        .events = &conn_events,
                        .user = group};

    leat_err err;

    settings.handshake_timeout = attempt_timeout(group);
    settings.ask_after = LEAT_SECOND; /* a download alone would not notice a NAT that has rebound */
    if (group == &app->groups[0] && !app->session.fresh) {
        how.session = (leat_span){app->session.data, app->session.len};
        how.token = app->session.token;
    }
    err = leat_conn_connect(leat_udp_endpoint(group->udp), &how, &group->conn);
    if (err == LEAT_OK && how.token.len > 0) {
        leat_cli_session_token_used(&app->session);
    }
    group->early = err == LEAT_OK && leat_conn_early(group->conn) == LEAT_EARLY_OFFERED;
    return err;
}

bool get_migrate(get_group *group)
{
    leat_udp_settings udp;
    leat_addr local;
    leat_err err;

    leat_udp_settings_init(&udp);
    udp.remote = *leat_conn_remote(group->conn);
    udp.local = group->app->bind;
    udp.local.port = 0;
    udp.no_offload = group->app->common.no_offload;
    err = leat_udp_add(group->udp, &udp, &local);
    if (err == LEAT_OK) {
        err = leat_conn_migrate(group->conn, &local);
        if (err != LEAT_OK) {
            leat_udp_remove(group->udp, &local);
        }
    }
    if (err == LEAT_ERR_STATE || err == LEAT_ERR_BLOCKED) {
        return false; /* not confirmed, or no connection ID for it yet */
    }
    group->migrate_at = LEAT_TIME_NEVER;
    if (err != LEAT_OK) {
        leat_cli_progress_stop(&group->app->progress);
        leat_cli_error("%s: cannot move: %s", group->sample->url.authority, leat_cli_why(err));
    }
    return true;
}

void get_connect(get_group *group)
{
    char text[LEAT_ADDR_TEXT_MAX];
    const leat_addr *remote = NULL;
    leat_err err = LEAT_ERR_ADDRESS;

    if (group->addr_count == 0 && !find_host(group)) {
        return;
    }
    group->run.started = leat_clock_now();
    leat_ctx_set_now(leat_loop_ctx(group->app->loop), group->run.started);
    for (; group->attempts < attempts_most(group); group->attempts++) {
        remote = &group->addrs[group->attempts % group->addr_count];
        err = open_socket(group, remote);
        if (err == LEAT_OK) {
            err = connect_to(group, remote);
            if (err == LEAT_OK) {
                group->state = GET_CONNECTING;
                if (group->early) { /* only GET and HEAD are asked for: safe to be repeated */
                    begin(group, group->conn);
                }
                return;
            }
            leat_udp_close(group->udp);
            group->udp = NULL;
            break;
        }
    }
    get_group_failed(group, leat_cli_exit_of(err, LEAT_EXIT_ADDRESS), "cannot connect to %s: %s",
                     remote ? leat_addr_format(remote, text) : "it", leat_cli_why(err));
}
