/* cli/rtp_session.c: a session of RTP over QUIC that carries a command's flows: its beginning, what
 * comes for flows that this side does not have, and its end.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rtp_carry.h"

#include <ctype.h>

static const leat_time SAY_EVERY = 10 * LEAT_SECOND; /* that there is an unknown flow */

/* ---- the beginning ---- */

leat_err carry_attach(carry *app, leat_conn *conn, const leat_roq_events *events)
{
    leat_err err = leat_roq_attach(conn, NULL, events, app, &app->roq);

    for (size_t i = 0; err == LEAT_OK && i < app->flow_count; i++) {
        carry_flow *flow = &app->flows[i];

        err = leat_roq_flow_open(app->roq, flow->id, &flow->settings, &flow->flow);
    }
    return err;
}

/* ---- the end ---- */

/* What the old session has counted is kept; what waited in it is gone. */
static void keep_counts(carry_flow *flow)
{
    leat_roq_stats now;

    leat_roq_flow_stats(flow->flow, &now);
#define KEEP(name, text) flow->past.name += now.name;
    LEAT_ROQ_STAT_LIST(KEEP)
#undef KEEP
    flow->past.queue_packets = flow->past.queue_bytes = flow->past.queue_delay = 0;
}

void carry_detach(carry *app)
{
    for (size_t i = 0; i < app->flow_count; i++) {
        if (app->flows[i].flow) {
            keep_counts(&app->flows[i]);
            app->flows[i].flow = NULL;
        }
    }
    app->roq = NULL;
}

const char *carry_why(const leat_close_info *info, char out[CARRY_WHY])
{
    size_t len = info->reason.len < CARRY_WHY - 1 ? info->reason.len : CARRY_WHY - 1;

    if (!info->application) {
        return info->detail ? info->detail : leat_err_text(info->err);
    }
    if (len == 0) {
        return leat_roq_error_text(info->code);
    }
    for (size_t i = 0; i < len; i++) {
        out[i] = isprint(info->reason.data[i]) ? (char)info->reason.data[i] : '?';
    }
    out[len] = 0;
    return out;
}

bool carry_over(carry *app, leat_roq *roq)
{
    leat_cli_run run = {.started = app->started};

    if (app->server.common.stats) {
        leat_cli_print_stats(leat_roq_conn(roq), app->server.udp, &run, &app->steady);
    }
    if (roq != app->roq) {
        return false;
    }
    carry_detach(app);
    return true;
}

/* ---- flows of the other side's ---- */

void carry_on_unknown(leat_roq *roq, uint64_t id, void *user)
{
    carry *app = user;
    leat_time now = leat_clock_now();
    char text[64];

    (void)roq;
    app->unknown++;
    if (app->unknown == 1 || now - app->unknown_said >= SAY_EVERY) {
        app->unknown_said = now;
        snprintf(text, sizeof text, "%llu, for which there is no %s", (unsigned long long)id,
                 app->sender ? "--in" : "--out");
        carry_say(app, "unknown flow", text);
    }
}
