/* conn/log.c: events as lines: time, side, the connection's name, the event, and what is worth
 * saying of it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <leat/log.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <leat/transport_error.h>

#include "base/cursor.h"
#include "base/list.h"

#define LINE_MAX 320

typedef struct line {
    char text[LINE_MAX];
    size_t len;
} line;

static const uint8_t levels[LEAT_EVENT_TYPES] = {
    [LEAT_EVENT_CONNECTION_STARTED] = LEAT_LOG_INFO,
    [LEAT_EVENT_CONNECTION_CLOSED] = LEAT_LOG_INFO, /* or ERROR */
    [LEAT_EVENT_HANDSHAKE] = LEAT_LOG_INFO,
    [LEAT_EVENT_MIGRATION] = LEAT_LOG_INFO, /* or WARN, DEBUG */
    [LEAT_EVENT_RETRY_MODE] = LEAT_LOG_WARN,
    [LEAT_EVENT_VERSION_INFORMATION] = LEAT_LOG_DEBUG,
    [LEAT_EVENT_PARAMETERS_SET] = LEAT_LOG_DEBUG,
    [LEAT_EVENT_PARAMETERS_RESTORED] = LEAT_LOG_DEBUG,
    [LEAT_EVENT_PACKET_BUFFERED] = LEAT_LOG_DEBUG,
    [LEAT_EVENT_PACKET_DROPPED] = LEAT_LOG_DEBUG,
    [LEAT_EVENT_ECN_STATE] = LEAT_LOG_DEBUG,
    [LEAT_EVENT_MTU_UPDATED] = LEAT_LOG_DEBUG,
    [LEAT_EVENT_KEY_UPDATED] = LEAT_LOG_DEBUG,
    [LEAT_EVENT_KEY_DISCARDED] = LEAT_LOG_DEBUG,
    [LEAT_EVENT_CONGESTION_STATE] = LEAT_LOG_DEBUG,
    [LEAT_EVENT_CONNECTION_ID] = LEAT_LOG_DEBUG,
    [LEAT_EVENT_PATH] = LEAT_LOG_DEBUG,
};

static bool is_close_frame(const leat_close_info *c)
{
    return c->kind == LEAT_CLOSE_LOCAL || c->kind == LEAT_CLOSE_PEER;
}

/* What an application closes with is its own affair, and that it said nothing for long. */
static bool is_fault(const leat_close_info *c)
{
    if (is_close_frame(c)) {
        return !c->application && c->code != LEAT_TE_NO_ERROR;
    }
    return c->kind != LEAT_CLOSE_IDLE && c->kind != LEAT_CLOSE_DROPPED;
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* That a path has become another is worth a line, how it came to that for who looks closer. */
static leat_log_level level_of_migration(const char *state)
{
    if (is(state, "migration_abandoned") || is(state, "probing_abandoned")) {
        return LEAT_LOG_WARN;
    }
    return is(state, "migration_started") || is(state, "migration_complete") ? LEAT_LOG_INFO
                                                                             : LEAT_LOG_DEBUG;
}

/* What has no row is of each packet. */
static leat_log_level level_of(const leat_event *e)
{
    if (e->type == LEAT_EVENT_CONNECTION_CLOSED && is_fault(&e->closed)) {
        return LEAT_LOG_ERROR;
    }
    if (e->type == LEAT_EVENT_MIGRATION) {
        return level_of_migration(e->migration.state);
    }
    if (e->no_conn && e->type == LEAT_EVENT_PACKET_SENT) {
        return LEAT_LOG_DEBUG; /* Retry and its like */
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

static void put_hex(line *l, leat_span bytes, size_t most)
{
    for (size_t i = 0; i < bytes.len && i < most; i++) {
        put(l, "%02x", bytes.data[i]);
    }
}

static void put_addr(line *l, const leat_addr *addr)
{
    if (addr->family == 4) {
        put(l, "%u.%u.%u.%u:%u", addr->ip[0], addr->ip[1], addr->ip[2], addr->ip[3], addr->port);
    } else if (addr->family == 6) {
        put(l, "[");
        for (size_t i = 0; i < 16; i += 2) {
            put(l, "%s%x", i ? ":" : "", addr->ip[i] << 8 | addr->ip[i + 1]);
        }
        put(l, "]:%u", addr->port);
    } else {
        put(l, "*");
    }
}

static void put_way(line *l, const leat_addr *local, const leat_addr *remote)
{
    put_addr(l, local);
    put(l, " to ");
    put_addr(l, remote);
}

static void put_version(line *l, uint32_t version)
{
    if (version == LEAT_QUIC_V1) {
        put(l, "QUIC v1");
    } else if (version == LEAT_QUIC_V2) {
        put(l, "QUIC v2");
    } else {
        put(l, "version %#x", (unsigned)version);
    }
}

static void put_versions(line *l, const char *whose, leat_span list)
{
    if (list.len > 0) {
        put(l, ", %s:", whose);
    }
    for (size_t i = 0; i + 4 <= list.len; i += 4) {
        put(l, " %#x", (unsigned)leat_load_u32(list.data + i));
    }
}

static void put_packet(line *l, const leat_event_packet *p)
{
    put(l, " %s", p->type);
    if (p->token.len > 0) {
        put(l, " with a token,");
    }
    if (p->versions.len == 0 && !is(p->type, "retry") && !is(p->type, "stateless_reset")) {
        put(l, " %llu,", (unsigned long long)p->number);
    }
    put(l, " %zu bytes", p->len);
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
    static const char *const kinds[] = {
        [LEAT_CLOSE_LOCAL] = "here",
        [LEAT_CLOSE_PEER] = "by the peer",
        [LEAT_CLOSE_IDLE] = "idle timeout",
        [LEAT_CLOSE_HANDSHAKE_TIMEOUT] = "handshake timeout",
        [LEAT_CLOSE_RESET] = "stateless reset by the peer",
        [LEAT_CLOSE_VERSION] = "no version in common",
        [LEAT_CLOSE_DROPPED] = "the endpoint was freed",
    };

    put(l, " %s", kinds[c->kind]);
    if (!is_close_frame(c)) {
        return;
    }
    put(l, ", %s code %#llx", c->application ? "application" : "transport",
        (unsigned long long)c->code);
    if (!c->application && c->code != LEAT_TE_NO_ERROR) {
        put(l, " (%s)", leat_transport_error_name(c->code));
    }
    if (c->detail) {
        put(l, ": %s", c->detail);
    } else if (c->reason.len > 0) {
        put(l, ": ");
        put_text(l, c->reason);
    }
}

static void put_handshake(line *l, const leat_event_handshake *h)
{
    static const char *const fates[] = {
        [LEAT_EARLY_NONE] = "",
        [LEAT_EARLY_OFFERED] = ", 0-RTT offered",
        [LEAT_EARLY_ACCEPTED] = ", 0-RTT accepted",
        [LEAT_EARLY_REJECTED] = ", 0-RTT rejected",
    };

    put(l, " %s, ", h->confirmed ? "confirmed" : "complete");
    put_version(l, h->version);
    put(l, ", ");
    put_text(l, h->alpn);
    put(l, ", ");
    put_text(l, h->cipher);
    put(l, "%s%s", h->resumed ? ", resumed" : "", fates[h->early]);
}

static void put_cids(line *l, const leat_event_cid *c)
{
    put(l, " of %s ", c->local ? "ours" : "the peer's");
    put_hex(l, c->from, SIZE_MAX);
    put(l, " to ");
    put_hex(l, c->to, SIZE_MAX);
}

static void put_path(line *l, const leat_event_path *p)
{
    put(l, " %u %s, ", (unsigned)p->id, p->gone ? "gone" : "added");
    put_way(l, &p->local, &p->remote);
}

static void put_parameters(line *l, const leat_event_parameters *p)
{
    put(l, " %s: data %llu, streams %llu and %llu, datagrams %llu, idle %llu ms",
        p->local ? "ours" : "the peer's", (unsigned long long)p->initial_max_data,
        (unsigned long long)p->initial_max_streams_bidi,
        (unsigned long long)p->initial_max_streams_uni,
        (unsigned long long)p->max_datagram_frame_size, (unsigned long long)p->max_idle_timeout_ms);
}

static void put_event(line *l, const leat_event *e)
{
    switch (e->type) {
    case LEAT_EVENT_CONNECTION_STARTED:
        put(l, " ");
        put_way(l, &e->started.local, &e->started.remote);
        put(l, ", ");
        put_version(l, e->started.version);
        break;
    case LEAT_EVENT_VERSION_INFORMATION:
        put(l, e->versions.chosen ? " chosen " : " none in common");
        if (e->versions.chosen) {
            put_version(l, e->versions.chosen);
        }
        put_versions(l, "server", e->versions.server);
        put_versions(l, "client", e->versions.client);
        break;
    case LEAT_EVENT_PARAMETERS_SET:
    case LEAT_EVENT_PARAMETERS_RESTORED:
        put_parameters(l, &e->parameters);
        break;
    case LEAT_EVENT_CONNECTION_CLOSED:
        put_closed(l, &e->closed);
        break;
    case LEAT_EVENT_PACKET_SENT:
    case LEAT_EVENT_PACKET_RECEIVED:
    case LEAT_EVENT_PACKET_BUFFERED:
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
        put(l, " %s %llu, %s", e->key.name, (unsigned long long)e->key.phase, e->key.trigger);
        break;
    case LEAT_EVENT_SPIN_BIT:
        put(l, " %d", e->spin);
        break;
    case LEAT_EVENT_HANDSHAKE:
        put_handshake(l, &e->handshake);
        break;
    case LEAT_EVENT_CONNECTION_ID:
        put_cids(l, &e->cid);
        break;
    case LEAT_EVENT_PATH:
        put_path(l, &e->path);
        break;
    case LEAT_EVENT_MIGRATION:
        put(l, " %s on path %u, ", e->migration.state, (unsigned)e->migration.path);
        put_way(l, &e->migration.local, &e->migration.remote);
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
        put_hex(&l, e->odcid, 4);
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
