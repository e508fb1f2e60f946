/* cli/server.c: what every server of the command is made of: where it listens, who it is, the loop
 * that it runs in.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <errno.h>
#include <signal.h>

static volatile sig_atomic_t signals;
static leat_loop *signalled_loop;

static void on_signal(int number)
{
    (void)number;
    signals++;
    leat_loop_stop(signalled_loop);
}

void leat_cli_server_init(leat_cli_server *server)
{
    *server = (leat_cli_server){.listen = ":4433"};
    leat_cli_common_init(&server->common);
}

bool leat_cli_server_take(leat_cli_server *server, int id, const char *arg)
{
    switch (id) {
    case LEAT_OPT_LISTEN:
        server->listen = arg;
        return true;
    case LEAT_OPT_CERT:
        server->cert_path = arg;
        return true;
    case LEAT_OPT_KEY:
        server->key_path = arg;
        return true;
    default:
        return leat_cli_common_take(&server->common, id, arg);
    }
}

bool leat_cli_server_check(const leat_cli_server *server)
{
    if (!server->cert_path != !server->key_path) {
        leat_cli_error("--cert and --key go together");
        return false;
    }
    return true;
}

leat_cli_exit leat_cli_server_start(leat_cli_server *server)
{
    leat_cli_exit exit_code = leat_cli_common_open(&server->common);

    if (exit_code == LEAT_EXIT_OK) {
        exit_code = leat_cli_loop_new(&server->loop);
    }
    if (exit_code != LEAT_EXIT_OK) {
        return exit_code;
    }
    signalled_loop = server->loop;
    return leat_cli_tls_server(&server->common.tls, leat_cli_server_mem(server), server->cert_path,
                               server->key_path, &server->tls);
}

leat_cli_exit leat_cli_server_listen(leat_cli_server *server, leat_endpoint_settings *endpoint)
{
    leat_udp_settings udp;
    leat_err err;

    leat_udp_settings_init(&udp);
    udp.no_offload = server->common.no_offload;
    if (leat_addr_parse(server->listen, &udp.local) != LEAT_OK) {
        leat_cli_error("--listen wants ADDR:PORT, [ADDR6]:PORT, :PORT or PORT, not '%s'",
                       server->listen);
        return LEAT_EXIT_USAGE;
    }
    endpoint->server_tls = server->tls;
    endpoint->conn = server->common.conn;
    if (server->common.qlog) {
        endpoint->events_sink = leat_qlog_sink(server->common.qlog);
    }
    err = leat_udp_open(server->loop, &udp, endpoint, &server->udp);
    if (err != LEAT_OK) {
        leat_cli_error("cannot listen on %s: %s", server->listen, leat_cli_why(err));
        return leat_cli_exit_of(err, err == LEAT_ERR_IO || err == LEAT_ERR_ADDRESS
                                         ? LEAT_EXIT_ADDRESS
                                         : LEAT_EXIT_FAILURE);
    }
    return LEAT_EXIT_OK;
}

leat_cli_exit leat_cli_server_run(leat_cli_server *server)
{
    const char *warning = leat_udp_warning(server->udp);
    leat_addr addr = leat_udp_local(server->udp);
    char local[LEAT_ADDR_TEXT_MAX];

    leat_cli_catch_signals(on_signal);
    leat_cli_warm(leat_cli_server_mem(server));
    leat_cli_allocs_now();
    if (warning && server->common.verbose) {
        fprintf(stderr, "%s\n", warning);
    }
    fprintf(stderr, "listening on %s\n", leat_addr_format(&addr, local));
    fflush(stderr);
    if (leat_loop_run(server->loop) != LEAT_OK) {
        leat_cli_error("the loop failed: %s", strerror(errno));
        return LEAT_EXIT_FAILURE;
    }
    return LEAT_EXIT_OK;
}

int leat_cli_server_signals(void)
{
    return signals;
}

void leat_cli_server_goodbye(leat_cli_server *server, uint64_t code)
{
    leat_endpoint_close(leat_udp_endpoint(server->udp), code);
    leat_loop_turn(server->loop, 0); /* sends the CONNECTION_CLOSE frames */
}

leat_cli_exit leat_cli_server_release(leat_cli_server *server, leat_cli_exit exit_code)
{
    leat_loop_free(server->loop);
    leat_tls_config_free(server->tls);
    return leat_cli_common_close(&server->common, exit_code);
}
