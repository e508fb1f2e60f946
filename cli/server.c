/* cli/server.c: what every server of the command is made of: where it listens, who it is, the loop
 * that it runs in.
 *
 * SPDX-License-Identifier: MIT
 */
#include "cli.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

static int signals; /* atomic */
static leat_loop *loops[LEAT_UDP_GROUP_MAX];
static volatile size_t loop_count; /* 0 before they go: signals may come until the end */

void leat_cli_server_stop(void)
{
    for (size_t i = 0; i < loop_count; i++) {
        leat_loop_stop(loops[i]);
    }
}

static void on_signal(int number)
{
    (void)number;
    __atomic_add_fetch(&signals, 1, __ATOMIC_RELAXED);
    leat_cli_server_stop();
}

void leat_cli_server_init(leat_cli_server *server)
{
    *server = (leat_cli_server){.listen = ":4433", .threads = 1};
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
    case LEAT_OPT_THREADS:
        return leat_cli_number("threads", arg, 1, LEAT_UDP_GROUP_MAX, &server->threads);
    case LEAT_OPT_PIN:
        return server->pin = true;
    case LEAT_OPT_BUSY_POLL:
        return leat_cli_number("busy-poll", arg, 0, 1000000, &server->busy_poll);
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

/* One socket needs no group. */
static leat_cli_exit prepare_threads(leat_cli_server *server)
{
    static leat_udp_group group;

    if (server->threads == 1) {
        return LEAT_EXIT_OK;
    }
    if (server->common.qlog) {
        leat_cli_error("qlog files are written with --threads 1 alone");
        return LEAT_EXIT_USAGE;
    }
    group.count = (unsigned)server->threads;
    server->group = &group;
    return LEAT_EXIT_OK;
}

leat_cli_exit leat_cli_server_join(leat_cli_server *server, const leat_cli_server *first)
{
    *server = *first;
    server->loop = NULL;
    server->udp = NULL;
    return leat_cli_loop_new(&server->loop);
}

leat_cli_exit leat_cli_server_start(leat_cli_server *server)
{
    leat_cli_exit exit_code = leat_cli_common_open(&server->common);

    if (exit_code == LEAT_EXIT_OK) {
        exit_code = prepare_threads(server);
    }
    if (exit_code == LEAT_EXIT_OK) {
        exit_code = leat_cli_loop_new(&server->loop);
    }
    if (exit_code != LEAT_EXIT_OK) {
        return exit_code;
    }
    return leat_cli_tls_server(&server->common.tls, leat_cli_server_mem(server), server->cert_path,
                               server->key_path, &server->tls);
}

leat_cli_exit leat_cli_server_listen(leat_cli_server *server, leat_endpoint_settings *endpoint)
{
    leat_udp_settings udp;
    leat_err err;

    leat_udp_settings_init(&udp);
    udp.no_offload = server->common.no_offload;
    udp.group = server->group;
    udp.busy_poll = (int)server->busy_poll;
    if (leat_addr_parse(server->listen, &udp.local) != LEAT_OK) {
        leat_cli_error("--listen wants ADDR:PORT, [ADDR6]:PORT, :PORT or PORT, not '%s'",
                       server->listen);
        return LEAT_EXIT_USAGE;
    }
    endpoint->server_tls = server->tls;
    endpoint->conn = server->common.conn;
    endpoint->events_sink = leat_cli_common_sink(&server->common);
    err = leat_udp_open(server->loop, &udp, endpoint, &server->udp);
    if (err != LEAT_OK) {
        leat_cli_error("cannot listen on %s: %s", server->listen, leat_cli_why(err));
        return leat_cli_exit_of(err, err == LEAT_ERR_IO || err == LEAT_ERR_ADDRESS
                                         ? LEAT_EXIT_ADDRESS
                                         : LEAT_EXIT_FAILURE);
    }
    return LEAT_EXIT_OK;
}

/* ---- running ---- */

static void (*at_the_end)(leat_cli_server *server);

static void give_up(leat_cli_server *server, const char *what)
{
    leat_cli_error("%s: %s", what, strerror(errno));
    server->exit_code = LEAT_EXIT_FAILURE;
    leat_cli_server_stop();
}

static void *run_one(void *user)
{
    leat_cli_server *server = user;

    server->exit_code = LEAT_EXIT_OK;
    if (server->pin && !leat_cli_pin(server->number)) {
        give_up(server, "cannot choose the core of a thread");
    } else if (leat_loop_run(server->loop) != LEAT_OK) {
        give_up(server, "the loop failed");
    }
    if (at_the_end) {
        at_the_end(server);
    }
    return NULL;
}

static void tell_start(const leat_cli_server *server)
{
    const char *warning = leat_udp_warning(server->udp);
    leat_addr addr = leat_udp_local(server->udp);
    char local[LEAT_ADDR_TEXT_MAX];

    if (warning && server->common.verbose) {
        fprintf(stderr, "%s\n", warning);
    }
    fprintf(stderr, "listening on %s\n", leat_addr_format(&addr, local));
    fflush(stderr);
}

leat_cli_exit leat_cli_server_run_all(leat_cli_server *first, size_t size,
                                      void (*end)(leat_cli_server *server))
{
    leat_cli_server *servers[LEAT_UDP_GROUP_MAX];
    pthread_t threads[LEAT_UDP_GROUP_MAX];
    size_t started = 1;
    leat_cli_exit exit_code = LEAT_EXIT_OK;

    at_the_end = end;
    for (size_t i = 0; i < first->threads; i++) {
        servers[i] = (leat_cli_server *)(void *)((char *)first + i * size);
        servers[i]->number = i;
        leat_cli_warm(leat_cli_server_mem(servers[i]));
        loops[i] = servers[i]->loop;
    }
    loop_count = first->threads;
    leat_cli_catch_signals(on_signal);
    signal(SIGPIPE, SIG_IGN); /* a reader of the log that went away is no reason to end */
    leat_cli_allocs_now();    /* looks its symbol up while there is one thread */
    tell_start(first);
    while (started < first->threads &&
           pthread_create(&threads[started], NULL, run_one, servers[started]) == 0) {
        started++;
    }
    if (started < first->threads) {
        leat_cli_error("cannot start %llu threads", (unsigned long long)first->threads);
        exit_code = LEAT_EXIT_FAILURE;
        leat_cli_server_stop();
    }
    run_one(first);
    for (size_t i = 1; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    loop_count = 0;
    for (size_t i = 0; i < started && exit_code == LEAT_EXIT_OK; i++) {
        exit_code = servers[i]->exit_code;
    }
    return exit_code;
}

leat_cli_exit leat_cli_server_run(leat_cli_server *server)
{
    return leat_cli_server_run_all(server, 0, NULL);
}

int leat_cli_server_signals(void)
{
    return __atomic_load_n(&signals, __ATOMIC_RELAXED);
}

void leat_cli_server_goodbye(leat_cli_server *server, uint64_t code)
{
    leat_endpoint_close(leat_udp_endpoint(server->udp), code);
    leat_loop_turn(server->loop, 0); /* sends the CONNECTION_CLOSE frames */
}

void leat_cli_server_leave(leat_cli_server *server)
{
    leat_loop *loop = server->loop;

    server->loop = NULL; /* no signal is to find it half gone */
    leat_loop_free(loop);
}

leat_cli_exit leat_cli_server_release(leat_cli_server *server, leat_cli_exit exit_code)
{
    leat_cli_server_leave(server);
    leat_tls_config_free(server->tls);
    return leat_cli_common_close(&server->common, exit_code);
}
