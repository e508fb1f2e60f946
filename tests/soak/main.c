/* tests/soak/main.c: leat-soak, the program that soak.py runs: as a server and as a client.
 *
 *     leat-soak server LISTEN CERT KEY TICKET-KEY
 *     leat-soak client SECONDS WORKERS SEED ADDR:PORT [ADDR:PORT]
 *
 * Both end with what they have counted, a line each, and with status 1 when there was a fault.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "soak.h"

static int usage(void)
{
    fprintf(stderr, "usage: leat-soak server LISTEN CERT KEY TICKET-KEY\n"
                    "       leat-soak client SECONDS WORKERS SEED ADDR:PORT [ADDR:PORT]\n");
    return 2;
}

static bool number(const char *text, unsigned long least, unsigned long most, unsigned long *out)
{
    char *end;

    *out = strtoul(text, &end, 10);
    return *text && !*end && *out >= least && *out <= most;
}

static bool client_options(int argc, char **argv, soak_options *o)
{
    unsigned long seconds, workers, seed;

    if (argc < 6 || argc > 7 || !number(argv[2], 1, 1000000, &seconds) ||
        !number(argv[3], 1, 64, &workers) || !number(argv[4], 0, 1000000000, &seed)) {
        return false;
    }
    o->duration = seconds * LEAT_SECOND;
    o->workers = (unsigned)workers;
    o->seed = seed;
    for (int i = 5; i < argc; i++) {
        if (leat_addr_parse(argv[i], &o->to[o->ways++]) != LEAT_OK) {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    soak_options o = {.workers = 0};
    int status;

    if (argc == 6 && strcmp(argv[1], "server") == 0 &&
        leat_addr_parse(argv[2], &o.listen) == LEAT_OK) {
        o.cert = argv[3];
        o.key = argv[4];
        o.ticket_key = argv[5];
        status = soak_server(&o);
    } else if (argc > 1 && strcmp(argv[1], "client") == 0 && client_options(argc, argv, &o)) {
        status = soak_client(&o);
    } else {
        return usage();
    }
#define SOAK_TELL(name, text) printf(#name "=%llu\n", (unsigned long long)soak_count.name);
    SOAK_COUNT_LIST(SOAK_TELL)
#undef SOAK_TELL
    return status || soak_count.faults > 0;
}
