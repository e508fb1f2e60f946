/* stream/stream.c: the pools, and the walker of one stream.
 *
 * SPDX-License-Identifier: MIT
 */
#include "stream/table.h"

void leat_stream_pools_init(leat_stream_pools *pools, leat_mem *mem)
{
    pools->mem = mem;
    leat_pool_init_aligned(&pools->streams, mem, sizeof(leat_stream), "streams");
    leat_pool_init_aligned(&pools->segments, mem, sizeof(leat_recv_segment), "segments");
    leat_pool_init(&pools->lines, mem, sizeof(leat_stream_lines), "lines");
}

void leat_stream_pools_free(leat_stream_pools *pools)
{
    leat_pool_free(&pools->streams);
    leat_pool_free(&pools->segments);
    leat_pool_free(&pools->lines);
}

void leat_stream_check(const leat_stream *stream)
{
    leat_stream_send_check(&stream->send);
    leat_stream_recv_check(&stream->recv);
    LEAT_ASSERT(stream->control != 0 || !leat_link_listed(&stream->control_link));
    LEAT_ASSERT((stream->events != 0) == leat_link_listed(&stream->event_link));
    LEAT_ASSERT((stream->queue != LEAT_STREAM_QUEUE_NONE) == leat_link_listed(&stream->send_link));
    if (!stream->in_table) {
        LEAT_ASSERT(stream->queue == LEAT_STREAM_QUEUE_NONE);
        LEAT_ASSERT(stream->control == 0);
    }
}
