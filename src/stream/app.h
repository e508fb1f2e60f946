/* stream/app.h: what the application does with a stream: the public calls of leat/quic.h come down
 * to these. None may be called on a stream whose CLOSED has been told. Contracts: leat/quic.h,
 * stream/send.h, stream/recv.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_STREAM_APP_H
#define LEAT_STREAM_APP_H

#include "stream/table.h"

/* LEAT_ERR_STATE also when the stream has no sending part. */
leat_err leat_streams_write(leat_stream *stream, const void *data, size_t len, size_t *written);
leat_err leat_streams_reserve(leat_stream *stream, size_t want, leat_mspan *out);
void leat_streams_commit(leat_stream *stream, size_t n);
leat_err leat_streams_append(leat_stream *stream, leat_buf *buf);
leat_err leat_streams_finish(leat_stream *stream);
void leat_streams_reset(leat_stream *stream, uint64_t code);
void leat_streams_reset_if_lost(leat_stream *stream, uint64_t code);
leat_err leat_streams_reset_at(leat_stream *stream, uint64_t code, uint64_t reliable);

leat_span leat_streams_peek(leat_stream *stream);
void leat_streams_consume(leat_stream *stream, size_t n);
void leat_streams_stop(leat_stream *stream, uint64_t code);
bool leat_streams_recv_done(const leat_stream *stream);
bool leat_streams_recv_whole(const leat_stream *stream);

/* LEAT_ERR_INVALID: urgency above 7. */
leat_err leat_streams_set_priority(leat_stream *stream, unsigned urgency, bool incremental);

#endif
