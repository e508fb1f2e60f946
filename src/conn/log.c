/* conn/log.c: events as lines: time, side, the connection's name, the event, and what is worth
 * saying of it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/log.h>

#include <stdarg.h>
#include <stdio.h>

#include "base/list.h"

#define LINE_MAX 256

typedef struct line {
    char text[LINE_MAX];
    size_t len;
} line;

static const uint8_t levels[LEAT_EVENT_TYPES] = {
    [LEAT_EVENT_CONNECTION_STARTED] = LEAT_LOG_INFO,
    [LEAT_EVENT_CONNECTION_CLOSED] = LEAT_LOG_INFO, /* or ERROR */
    [LEAT_EVENT_HANDSHAKE] = LEAT_LOG_INFO,
    [LEAT_EVENT_PACKET_DROPPED] = LEAT_LOG_WARN,
    [LEAT_EVENT_RETRY_MODE] = LEAT_LOG_WARN,
    [LEAT_EVENT_ECN_STATE] = LEAT_LOG_DEBUG,
    [LEAT_EVENT_MTU_UPDATED] = LEAT_LOG_DEBUG,
    [LEAT_EVENT_PARAMETERS_SET] = LEAT_LOG_DEBUG,
    [LEAT_EVENT_KEY_UPDATED] = LEAT_LOG_DEBUG,
    [LEAT_EVENT_KEY_DISCARDED] = LEAT_LOG_DEBUG,
    [LEAT_EVENT_CONGESTION_STATE] = LEAT_LOG_DEBUG,
};

/* What has no row is of each packet. */
static leat_log_level level_of(const leat_event *e)
{
    if (e->type == LEAT_EVENT_CONNECTION_CLOSED && e->closed.err != LEAT_OK) {
        return LEAT_LOG_ERROR;
    }
    return levels[e->type] ? (leat_log_level)levels[e->type] : LEAT_LOG_TRACE;
}

__attribute__((format(printf, 2, 3))) static void put(line *l, const char *format, ...)
{
    va_list args;
    int n;

    va_start(args, format);
    n = vsnprintf(l->text + l->len, sizeof(l->text) - l->len, format, args);
    va_end(args);
    if (n > 0) {
        l->len += (size_t)n < sizeof(l->text) - l->len ? (size_t)n : sizeof(l->text) - l->len - 1;
    }
}

/* Of a peer's text only what a terminal prints as it is. */
static void put_text(line *l, leat_span text)
{
    for (size_t i = 0; i < text.len && i < 80; i++) {
        put(l, "%c", text.data[i] >= 0x20 && text.data[i] < 0x7f ? text.data[i] : '?');
    }
}

static void put_packet(line *l, const leat_event_packet *p)
{
    put(l, " %s %llu, %zu bytes", p->type, (unsigned long long)p->number, p->len);
}

static void put_frame(line *l, const leat_event_frame *f)
{
    put(l, " %s", f->name);
    for (size_t i = 0; i < f->values; i++) {
        put(l, " %s %llu", f->key[i], (unsigned long long)f->value[i]);
    }
}

static void put_closed(line *l, const leat_close_info *c)
{
    put(l, " %s code %#llx", c->application ? "application" : "transport",
        (unsigned long long)c->code);
    if (c->err != LEAT_OK) {
        put(l, ", %s", leat_err_text(c->err));
    }
    if (c->detail) {
        put(l, ": %s", c->detail);
    } else if (c->reason.len > 0) {
        put(l, ": ");
        put_text(l, c->reason);
    }
}

static void put_event(line *l, const leat_event *e)
{
    switch (e->type) {
    case LEAT_EVENT_CONNECTION_CLOSED:
        put_closed(l, &e->closed);
        break;
    case LEAT_EVENT_PACKET_SENT:
    case LEAT_EVENT_PACKET_RECEIVED:
    case LEAT_EVENT_PACKET_LOST:
        put_packet(l, &e->packet);
        break;
    case LEAT_EVENT_PACKET_DROPPED:
        put(l, " %s, %zu bytes: %s", e->dropped.packet, e->dropped.len, e->dropped.reason);
        break;
    case LEAT_EVENT_FRAME_SENT:
    case LEAT_EVENT_FRAME_RECEIVED:
        put_frame(l, &e->frame);
        break;
    case LEAT_EVENT_CONGESTION_STATE:
        put(l, " %s to %s", e->congestion.from, e->congestion.to);
        break;
    case LEAT_EVENT_ECN_STATE:
        put(l, " %s to %s", e->ecn.from, e->ecn.to);
        break;
    case LEAT_EVENT_MTU_UPDATED:
        put(l, " %u to %u", e->mtu.from, e->mtu.to);
        break;
    case LEAT_EVENT_KEY_UPDATED:
    case LEAT_EVENT_KEY_DISCARDED:
        put(l, " %s, %s", e->key.name, e->key.trigger);
        break;
    case LEAT_EVENT_HANDSHAKE:
        put(l, " %s, ", e->handshake.confirmed ? "confirmed" : "complete");
        put_text(l, e->handshake.alpn);
        break;
    case LEAT_EVENT_RETRY_MODE:
        put(l, " %s, %zu half-open", e->retry_mode.on ? "on" : "off", e->retry_mode.half_open);
        break;
    case LEAT_EVENT_METRICS_UPDATED:
        put(l, " rtt %.3f ms, cwnd %llu, in flight %llu", (double)e->metrics.rtt_smoothed / 1e6,
            (unsigned long long)e->metrics.cwnd, (unsigned long long)e->metrics.bytes_in_flight);
        break;
    default:
        break;
    }
}

static void emit(leat_event_sink *sink, const leat_event *e)
{
    leat_log *log = LEAT_CONTAINER_OF(sink, leat_log, sink);
    leat_log_level level = level_of(e);
    line l = {.len = 0};

    if (level <= log->level) {
        put(&l, "%.6f %s ", (double)e->now / 1e9, e->server ? "server" : "client");
        for (size_t i = 0; i < e->odcid.len && i < 4; i++) {
            put(&l, "%02x", e->odcid.data[i]);
        }
        put(&l, " %s", leat_event_name(e->type));
        put_event(&l, e);
        log->write(level, l.text, log->user);
    }
    if (log->next) {
        log->next->emit(log->next, e);
    }
}

void leat_log_init(leat_log *log, leat_log_level level, leat_log_fn *write, void *user,
                   leat_event_sink *next)
{
    *log = (leat_log){.sink = {emit}, .level = level, .write = write, .user = user, .next = next};
}

#define LEVEL_NAME(name, text) [LEAT_LOG_##name] = #name,
static const char *const upper_names[LEAT_LOG_LEVELS] = {LEAT_LOG_LEVEL_LIST(LEVEL_NAME)};
#undef LEVEL_NAME

const char *leat_log_level_name(leat_log_level level)
{
    return (unsigned)level < LEAT_LOG_LEVELS && upper_names[level] ? upper_names[level] : "?";
}
