/* test_pair.c: two sides, applications that do anything they may, and a network that loses,
 * repeats, reorders and delays: every byte comes out once and in order, every stream ends, no
 * memory stays.
 *
 * A frame in the network is the record of it at its sender. When it is drawn it arrives, or not,
 * and the sender learns either, rightly or wrongly.
 *
 * SPDX-License-Identifier: MIT
 */
#include "table_rig.h"

#define RUNS   40u
#define STEPS  1500u
#define IDS    1024u
#define FLIGHT 200u
#define MOST   6000u /* bytes an application writes at a time */

/* What the application of a side knows of a stream. */
typedef struct knowledge {
    uint64_t written, read;
    uint64_t reliable;              /* what reset_at promised */
    bool finished, reset, reset_at; /* its own sending part */
    bool stopped;                   /* wants no more, or has been told so of the peer's part */
    bool saw_end, saw_reset;
    bool opened, closed;
} knowledge;

typedef struct end_point {
    side *side;
    unsigned which; /* 0 client, 1 server */
    knowledge of[IDS];
} end_point;

typedef struct world {
    end_point ends[2];
    leat_prng prng;
    bool calm; /* no more loss, no new work: everything must come to its end */
} world;

static bool chance(world *w, uint64_t parts, uint64_t whole)
{
    return leat_prng_chance(&w->prng, parts, whole);
}

static uint64_t content(uint64_t id, unsigned sender)
{
    return id * 2 + sender;
}

static knowledge *about(end_point *e, uint64_t id)
{
    assert_true(id < IDS);
    return &e->of[id];
}

static leat_stream *any_stream(world *w, end_point *e)
{
    leat_streams *streams = &e->side->streams;
    size_t count = leat_hmap_count(&streams->by_id);
    leat_stream *stream;

    if (count == 0) {
        return NULL;
    }
    stream = leat_streams_first(streams);
    for (uint64_t skip = leat_prng_below(&w->prng, count); skip > 0; skip--) {
        stream = leat_streams_after(streams, stream);
    }
    return about(e, stream->id)->opened ? stream : NULL;
}

/* ---- the applications ---- */

static void app_write(world *w, end_point *e, leat_stream *stream)
{
    knowledge *k = about(e, stream->id);
    size_t want = (size_t)leat_prng_below(&w->prng, chance(w, 1, 4) ? MOST : 60);
    uint8_t bytes[MOST];
    size_t done = 0;
    leat_mspan span;
    leat_buf buf;

    rig_fill(bytes, content(stream->id, e->which), k->written, want);
    switch (leat_prng_below(&w->prng, 3)) {
    case 0:
        (void)leat_streams_write(stream, bytes, want, &done);
        break;
    case 1:
        if (want > 0 && leat_streams_reserve(stream, want, &span) == LEAT_OK) {
            memcpy(span.data, bytes, span.len);
            leat_streams_commit(stream, span.len);
            done = span.len;
        }
        break;
    default:
        assert_int_equal(leat_buf_take(e->side->rig.mem, want, &buf), LEAT_OK);
        memcpy(buf.data, bytes, want);
        if (leat_streams_append(stream, &buf) == LEAT_OK) {
            done = want;
        }
        leat_buf_release(&buf);
    }
    k->written += done;
}

static void app_read(end_point *e, leat_stream *stream, uint64_t most)
{
    knowledge *k = about(e, stream->id);

    while (most > 0) {
        leat_span span = leat_streams_peek(stream);
        size_t n = span.len < most ? span.len : (size_t)most;

        if (n == 0) {
            break;
        }
        rig_expect(span.data, content(stream->id, 1 - e->which), k->read, n);
        k->read += n;
        most -= n;
        leat_streams_consume(stream, n);
    }
    if (stream->recv.state == LEAT_RECV_DATA_READ && !stream->recv.stopped) {
        k->saw_end = true;
    }
}

static void app_open(world *w, end_point *e)
{
    leat_stream *stream;

    if (e->side->streams.local[0].opened + e->side->streams.local[1].opened > 100) {
        return;
    }
    if (leat_streams_open(&e->side->streams, chance(w, 1, 2), &stream) == LEAT_OK) {
        about(e, stream->id)->opened = true;
        assert_int_equal(leat_streams_set_priority(stream, (unsigned)leat_prng_below(&w->prng, 8),
                                                   chance(w, 1, 2)),
                         LEAT_OK);
    }
}

static void app_reset(world *w, knowledge *k, leat_stream *stream)
{
    uint64_t reliable = leat_prng_between(&w->prng, 0, k->written);

    if (chance(w, 1, 3)) {
        k->reset = true;
        leat_streams_reset(stream, stream->id);
    } else if (leat_streams_reset_at(stream, stream->id, reliable) == LEAT_OK) {
        k->reliable = k->reset_at && k->reliable < reliable ? k->reliable : reliable;
        k->reset_at = true;
        k->reset = k->reset || reliable == 0;
    }
}

static void app_step(world *w, end_point *e)
{
    leat_stream *stream = any_stream(w, e);
    knowledge *k;

    if (!stream || chance(w, 1, 10)) {
        app_open(w, e);
        return;
    }
    k = about(e, stream->id);
    if (chance(w, 1, 2)) {
        app_read(e, stream, leat_prng_below(&w->prng, 8000));
    } else if (chance(w, 8, 10)) {
        app_write(w, e, stream);
    } else if (chance(w, 2, 3)) {
        k->finished = leat_streams_finish(stream) == LEAT_OK || k->finished;
    } else if (chance(w, 1, 2)) {
        app_reset(w, k, stream);
    } else {
        k->stopped = true;
        leat_streams_stop(stream, stream->id + 1);
    }
}

/* Ends what is open, reads what is there. */
static void app_wind_up(end_point *e)
{
    leat_streams *streams = &e->side->streams;
    leat_stream *next;

    for (leat_stream *s = leat_streams_first(streams); s; s = next) {
        knowledge *k = about(e, s->id);

        next = leat_streams_after(streams, s);
        if (k->opened) {
            k->finished = leat_streams_finish(s) == LEAT_OK || k->finished;
            app_read(e, s, UINT64_MAX);
        }
    }
}

static void app_events(world *w, end_point *e)
{
    leat_streams *streams = &e->side->streams;
    leat_stream *stream;
    unsigned events;

    while ((stream = leat_streams_next_event(streams, &events)) != NULL) {
        knowledge *k = about(e, stream->id);

        assert_false(k->closed);
        if (events & LEAT_STREAM_EVENT_OPENED) {
            assert_false(k->opened);
            k->opened = true;
        }
        assert_true(k->opened);
        if (events & LEAT_STREAM_EVENT_RESET) {
            assert_true(stream->recv.reset_code == stream->id ||
                        stream->recv.reset_code == stream->id + 1);
            k->saw_reset = true;
        }
        if ((events & LEAT_STREAM_EVENT_READABLE) && (w->calm || chance(w, 1, 2))) {
            app_read(e, stream, UINT64_MAX);
        }
        if (events & LEAT_STREAM_EVENT_STOPPED) {
            assert_int_equal(stream->stop_code, stream->id + 1);
            k->reset = true;
        }
        if (events & LEAT_STREAM_EVENT_WRITABLE) {
            /* There was room when it arose; the application may have filled it since. */
            assert_true(leat_stream_send_writable(&stream->send) <= stream->send.buffer_max);
        }
        if (events & LEAT_STREAM_EVENT_CLOSED) {
            k->closed = true;
        }
        leat_streams_told(streams, stream, events);
        leat_streams_check(streams);
    }
    streams->available = 0;
}

/* ---- the network ---- */

static uint64_t arrive_data(end_point *to, const record *r)
{
    uint64_t code;
    leat_buf packet;

    assert_int_equal(leat_buf_take(to->side->rig.mem, r->len, &packet), LEAT_OK);
    memcpy(packet.data, r->bytes, r->len);
    code = leat_streams_on_stream(&to->side->streams, r->id, r->value, &packet, r->fin);
    leat_buf_release(&packet);
    return code;
}

static uint64_t arrive_control(leat_streams *streams, const record *r)
{
    switch (r->what) {
    case LEAT_CONTROL_RESET_STREAM:
        return leat_streams_on_reset_stream(streams, r->id, r->value, r->extra);
    case LEAT_CONTROL_RESET_STREAM_AT:
        return leat_streams_on_reset_stream_at(streams, r->id, r->code, r->extra, r->value);
    case LEAT_CONTROL_STOP_SENDING:
        return leat_streams_on_stop_sending(streams, r->id, r->value);
    case LEAT_CONTROL_MAX_STREAM_DATA:
        return leat_streams_on_max_stream_data(streams, r->id, r->value);
    case LEAT_CONTROL_STREAM_DATA_BLOCKED:
        return leat_streams_on_stream_data_blocked(streams, r->id, r->value);
    case LEAT_CONTROL_MAX_DATA:
        return leat_streams_on_max_data(streams, r->value);
    case LEAT_CONTROL_DATA_BLOCKED:
        return leat_streams_on_data_blocked(streams, r->value);
    case LEAT_CONTROL_MAX_STREAMS_BIDI:
    case LEAT_CONTROL_MAX_STREAMS_UNI:
        return leat_streams_on_max_streams(streams, r->what == LEAT_CONTROL_MAX_STREAMS_BIDI,
                                           r->value);
    case LEAT_CONTROL_STREAMS_BLOCKED_BIDI:
    case LEAT_CONTROL_STREAMS_BLOCKED_UNI:
        return leat_streams_on_streams_blocked(
            streams, r->what == LEAT_CONTROL_STREAMS_BLOCKED_BIDI, r->value);
    }
    fail();
    return 0;
}

static void arrive(end_point *to, const record *r)
{
    uint64_t code = r->what ? arrive_control(&to->side->streams, r) : arrive_data(to, r);

    assert_int_equal(code, 0);
    leat_streams_check(&to->side->streams);
}

static void network_step(world *w, end_point *from, end_point *to)
{
    side *s = from->side;
    size_t i;

    if (s->count == 0) {
        return;
    }
    i = chance(w, 1, 3) ? (size_t)leat_prng_below(&w->prng, s->count) : 0;
    if (w->calm || chance(w, 3, 4)) {
        arrive(to, &s->records[i]);
        if (!w->calm && chance(w, 1, 8)) {
            arrive(to, &s->records[i]); /* again */
        }
        if (w->calm || chance(w, 7, 8)) {
            side_acked(s, i);
            return;
        }
        if (chance(w, 1, 2)) {
            /* The acknowledgement is lost: it stays in flight, may come again, may be probed for.
             */
            if (chance(w, 1, 2)) {
                side_probe(s, i);
            }
            return;
        }
    }
    side_lost(s, i); /* rightly or wrongly */
}

static void send_some(world *w, end_point *e)
{
    for (uint64_t n = leat_prng_below(&w->prng, 6); n > 0 && e->side->count < FLIGHT; n--) {
        if (!side_send(e->side, (size_t)leat_prng_between(&w->prng, 1, 1300))) {
            return;
        }
    }
}

static void step(world *w)
{
    unsigned which = (unsigned)leat_prng_below(&w->prng, 2);
    end_point *e = &w->ends[which];

    e->side->now += LEAT_MILLISECOND;
    switch (leat_prng_below(&w->prng, 4)) {
    case 0:
        if (!w->calm) {
            app_step(w, e);
            leat_streams_check(&e->side->streams);
        }
        break;
    case 1:
        send_some(w, e);
        break;
    case 2:
        for (unsigned i = 0; i < 3; i++) {
            network_step(w, e, &w->ends[1 - which]);
        }
        break;
    default:
        app_events(w, e);
    }
}

static bool at_rest(const world *w)
{
    for (unsigned i = 0; i < 2; i++) {
        const side *s = w->ends[i].side;

        if (s->count > 0 || leat_hmap_count(&s->streams.by_id) > 0 || s->streams.zombies > 0 ||
            leat_streams_wants_send(&s->streams)) {
            return false;
        }
    }
    return true;
}

/* What one side wrote is what the other read, unless somebody gave the stream up. */
static void compare(world *w)
{
    for (uint64_t id = 0; id < IDS; id++) {
        for (unsigned i = 0; i < 2; i++) {
            const knowledge *sender = about(&w->ends[i], id);
            const knowledge *receiver = about(&w->ends[1 - i], id);

            assert_true(sender->closed == sender->opened);
            assert_true(receiver->read <= sender->written);
            if (sender->reset_at && !sender->reset && !receiver->stopped) {
                assert_true(receiver->read >= sender->reliable);
                assert_true(receiver->saw_reset || receiver->saw_end);
            } else if (sender->finished && !sender->reset && !receiver->stopped) {
                assert_int_equal(receiver->read, sender->written);
                assert_false(receiver->saw_reset);
            }
            if (receiver->saw_reset) {
                assert_true(sender->reset || sender->reset_at);
            }
        }
    }
}

static void world_init(world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    leat_prng_seed(&w->prng, seed);
    for (unsigned i = 0; i < 2; i++) {
        leat_streams_settings settings = side_settings(i == 1);

        settings.max_data = leat_prng_between(&w->prng, 1000, 40000);
        settings.max_stream_data_bidi_local = leat_prng_between(&w->prng, 0, 9000);
        settings.max_stream_data_bidi_remote = leat_prng_between(&w->prng, 200, 9000);
        settings.max_stream_data_uni = leat_prng_between(&w->prng, 200, 9000);
        settings.max_streams_bidi = leat_prng_between(&w->prng, 1, 12);
        settings.max_streams_uni = leat_prng_between(&w->prng, 1, 12);
        settings.window_max = chance(w, 1, 2) ? 0 : 200000;
        settings.stream_window_max = chance(w, 1, 2) ? 0 : 50000;
        settings.send_buffer = (size_t)leat_prng_between(&w->prng, 1000, 20000);
        if (settings.max_stream_data_bidi_local < 200) {
            settings.max_stream_data_bidi_local = 200;
        }
        w->ends[i].side = side_new_with(&settings, 16 << 20);
        w->ends[i].which = i;
    }
    for (unsigned i = 0; i < 2; i++) {
        leat_streams_peer peer = side_parameters(&w->ends[1 - i].side->streams.settings);

        leat_streams_set_peer(&w->ends[i].side->streams, &peer);
    }
}

static void all_bytes_cross_whatever_happens(void **state)
{
    uint64_t seed = rig_seed("all_bytes_cross_whatever_happens", 1);

    (void)state;
    for (uint64_t run = 0; run < RUNS; run++) {
        world *w = malloc(sizeof *w);
        uint64_t calm_steps = 0;

        assert_non_null(w);
        world_init(w, seed + run);
        for (unsigned i = 0; i < STEPS; i++) {
            step(w);
        }
        w->calm = true;
        while (!at_rest(w)) {
            app_wind_up(&w->ends[0]);
            app_wind_up(&w->ends[1]);
            step(w);
            if (++calm_steps > 100000) {
                fail_msg("does not come to rest: seed %llu", (unsigned long long)(seed + run));
            }
        }
        app_events(w, &w->ends[0]);
        app_events(w, &w->ends[1]);
        compare(w);
        side_free(w->ends[0].side);
        side_free(w->ends[1].side);
        free(w);
    }
}

/* The connection may end at any moment. */
static void an_end_in_the_middle_leaves_nothing(void **state)
{
    uint64_t seed = rig_seed("an_end_in_the_middle_leaves_nothing", 1000);

    (void)state;
    for (uint64_t run = 0; run < 3 * RUNS; run++) {
        world *w = malloc(sizeof *w);

        assert_non_null(w);
        world_init(w, seed + run);
        for (uint64_t i = leat_prng_below(&w->prng, STEPS / 2); i > 0; i--) {
            step(w);
        }
        for (unsigned i = 0; i < 2; i++) {
            leat_streams_close_all(&w->ends[i].side->streams);
            if (chance(w, 1, 2)) {
                app_events(w, &w->ends[i]);
            }
            side_free(w->ends[i].side);
        }
        free(w);
    }
}

/* Short streams one after the other: memory is asked for at first alone. */
static void short_streams_take_no_new_memory(void **state)
{
    world *w = malloc(sizeof *w);
    leat_mem_stats before, after;

    (void)state;
    assert_non_null(w);
    world_init(w, 5);
    w->calm = true;
    for (unsigned i = 0; i < 200; i++) {
        end_point *e = &w->ends[0];
        leat_stream *stream;

        while (leat_streams_open(&e->side->streams, true, &stream) != LEAT_OK) {
            step(w);
        }
        about(e, stream->id)->opened = true;
        app_write(w, e, stream);
        while (leat_hmap_count(&e->side->streams.by_id) > 0) {
            app_wind_up(&w->ends[0]);
            app_wind_up(&w->ends[1]);
            step(w);
        }
        if (i == 100) {
            leat_mem_stats_get(e->side->rig.mem, &before);
        }
    }
    leat_mem_stats_get(w->ends[0].side->rig.mem, &after);
    assert_int_equal(before.grown, after.grown);
    side_free(w->ends[0].side);
    side_free(w->ends[1].side);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_bytes_cross_whatever_happens),
        cmocka_unit_test(an_end_in_the_middle_leaves_nothing),
        cmocka_unit_test(short_streams_take_no_new_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
