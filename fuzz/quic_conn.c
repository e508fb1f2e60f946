/* fuzz/quic_conn.c: the connection as a state machine. The input is a list of operations on a
 * client and a server that are joined: packets with any frames under good keys from either side,
 * datagrams of any bytes, time, loss, what applications do, other addresses. TLS is a handshake of
 * four messages and the cipher changes nothing (support/), so that the fuzzer reaches the frames.
 *
 * After each operation the connections' walkers run and their memory is within the budget; at the
 * end nothing is left.
 *
 * SPDX-License-Identifier: MIT
 */
#include <string.h>

#include "support/world.h"

static void forge(world *w, fuzz_input *in, uint8_t op)
{
    static const leat_space spaces[] = {LEAT_SPACE_APP, LEAT_SPACE_APP, LEAT_SPACE_HANDSHAKE,
                                        LEAT_SPACE_INITIAL};
    size_t len = fuzz_byte(in) * (op & 0x10 ? 5u : 1u);
    leat_span payload = fuzz_bytes(in, len);

    world_forge(w, (op & 0x04) != 0, spaces[op >> 6], payload);
}

/* A STREAM frame of many bytes, which an input would have to carry otherwise. */
static void forge_data(world *w, fuzz_input *in, bool from_server)
{
    uint8_t payload[1400];
    uint64_t id = fuzz_byte(in) & 31, offset = (uint64_t)fuzz_byte(in) * 257;
    size_t want = fuzz_byte(in) * 5u;
    leat_data_fit fit;
    leat_writer out;

    leat_writer_init(&out, payload, sizeof(payload));
    fit = leat_frame_fit_stream(leat_writer_left(&out), id, offset, want);
    leat_frame_write_stream_head(&out, id, offset, &fit, want % 3 == 0);
    leat_writer_zero(&out, fit.len);
    world_forge(w, from_server, LEAT_SPACE_APP, (leat_span){payload, leat_writer_len(&out)});
}

static leat_stream *stream_of(world_app *a, uint8_t which)
{
    return a->streams[which % WORLD_STREAMS];
}

static void write_some(leat_stream *s, size_t len)
{
    static const uint8_t data[4096];
    size_t written;

    leat_stream_write(s, data, len, &written);
}

static void on_stream(leat_stream *s, uint8_t what, uint8_t how)
{
    leat_mspan room;

    switch (what % 8) {
    case 0:
        write_some(s, how * 16u);
        break;
    case 1:
        if (leat_stream_reserve(s, how + 1u, &room) == LEAT_OK) {
            memset(room.data, 0, room.len);
            leat_stream_commit(s, room.len < how ? room.len : how);
        }
        break;
    case 2:
        leat_stream_finish(s);
        break;
    case 3:
        leat_stream_reset(s, how);
        break;
    case 4:
        leat_stream_stop(s, how);
        break;
    case 5:
        leat_stream_set_priority(s, how & 7, how >> 7);
        break;
    default: {
        leat_span span = leat_stream_peek(s);

        leat_stream_consume(s, span.len < how ? span.len : how);
        break;
    }
    }
}

static void act(world *w, fuzz_input *in, bool server)
{
    world_app *a = &w->apps[server];
    uint8_t what = fuzz_byte(in), how = fuzz_byte(in);
    static const uint8_t data[1300];
    leat_datagram_options options = {.lifetime = how & 1 ? LEAT_MILLISECOND : 0, .notify = how & 2};
    leat_stream *s;

    if (!a->conn) {
        return;
    }
    switch (what >> 5) {
    case 0:
        if (leat_stream_open(a->conn, how & 1, &s) == LEAT_OK) {
            for (size_t i = 0; i < WORLD_STREAMS; i++) {
                if (!a->streams[i]) {
                    a->streams[i] = s;
                    break;
                }
            }
            write_some(s, how * 4u);
        }
        break;
    case 1:
        leat_conn_send_datagram(a->conn, (leat_span){data, how * 5u}, &options);
        break;
    case 2:
        a->lazy = how & 1;
        break;
    case 3:
        if (how < 8) {
            leat_conn_close(a->conn, how, (leat_span){data, how});
        } else {
            leat_conn_update_keys(a->conn);
        }
        break;
    default:
        if ((s = stream_of(a, what)) != NULL) {
            on_stream(s, how, what);
        }
        break;
    }
}

static void move(world *w, fuzz_input *in)
{
    uint8_t how = fuzz_byte(in);
    leat_addr to = w->client_addr;

    if (how & 1) {
        to.port = (uint16_t)(40000 + how);
    } else {
        to.ip[3] = how;
    }
    if (how & 2 && w->apps[0].conn) {
        leat_conn_migrate(w->apps[0].conn, &to);
    } else {
        w->client_addr = to; /* a NAT */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static world w;
    fuzz_input in = {data, data + size};
    leat_addr stranger = {.family = 4, .port = 9, .ip = {10, 9, 9, 9}};

    world_open(&w, fuzz_byte(&in) & 1);
    for (int ops = 0; fuzz_left(&in) && ops < 200; ops++) {
        uint8_t op = fuzz_byte(&in);

        switch (op & 0x0f) {
        case 8:
            world_advance(&w, (leat_time)(op >> 4) * (op >> 4) * LEAT_MILLISECOND);
            break;
        case 9:
            act(&w, &in, false);
            break;
        case 10:
            act(&w, &in, true);
            break;
        case 11:
            w.drop = op >> 4;
            break;
        case 12: {
            leat_span raw = fuzz_bytes(&in, fuzz_byte(&in) * 5u);

            world_inject(&w, op & 0x10, op & 0x20 ? &stranger : &w.client_addr, raw);
            break;
        }
        case 13:
            move(&w, &in);
            break;
        case 14:
            forge_data(&w, &in, op & 0x10);
            break;
        case 15:
            world_advance(&w, (leat_time)(op >> 4) * LEAT_SECOND);
            break;
        default:
            forge(&w, &in, op);
            break;
        }
        world_settle(&w);
    }
    world_close(&w);
    return 0;
}
