/* conn/idle.c: an idle connection is small. Rings and queues keep what they have grown to while a
 * connection is in use; when nothing was sent or received for LEAT_IDLE_AFTER they give it back,
 * and take it again from the context's free lists when they need it. Expanded keys are in the
 * context's cache, not here.
 *
 * SPDX-License-Identifier: MIT
 */
#include "base/time.h"
#include "conn/conn.h"

#define LEAT_IDLE_AFTER (2 * LEAT_SECOND) /* longer than the pauses of a conversation */

leat_time leat_conn_shrink_at(const leat_conn *conn)
{
    if (conn->is_small || !conn->confirmed) {
        return LEAT_TIME_NEVER;
    }
    return leat_time_add(leat_time_max(conn->last_received, conn->last_sent), LEAT_IDLE_AFTER);
}

void leat_conn_shrink(leat_conn *conn)
{
    conn->is_small = true;
    leat_sent_shrink(&conn->app.sent);
    leat_acks_shrink(&conn->app.acks);
    leat_queue_shrink(&conn->inbound);
    leat_datagrams_shrink(&conn->datagrams);
    leat_news_shrink(&conn->news);
    leat_paths_shrink(&conn->paths);
    leat_conn_crypto_shrink(conn);
    leat_streams_shrink(&conn->streams);
}
