/* cli/rtp_file.c: captures: pcap (any link that carries IP) and rtpdump.
 *
 * pcap (draft-ietf-opsawg-pcap): a header of 24 bytes, then records of 16 bytes and a packet.
 * rtpdump: a line "#!rtpplay1.0 ADDR/PORT", 16 bytes, then records of 8 bytes (length, length of
 * the packet or 0 for RTCP, milliseconds) and a packet. A record that cannot be makes a message
 * with its offset; reading goes on behind it where its length says, and ends where that cannot be
 * known.
 *
 * SPDX-License-Identifier: MIT
 */
#include "rtp.h"

#include <errno.h>

enum {
    MAGIC_MICRO = 0xa1b2c3d4u,
    MAGIC_NANO = 0xa1b23c4du,
    MAGIC_NG = 0x0a0d0d0a,
    LINK_NULL = 0,
    LINK_ETHERNET = 1,
    LINK_RAW_OLD = 12,
    LINK_RAW = 101,
    LINK_LOOP = 108,
    LINK_SLL = 113,
    LINK_IPV4 = 228,
    LINK_IPV6 = 229,
    LINK_SLL2 = 276,
};

static uint32_t big16(const uint8_t *p)
{
    return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t big32(const uint8_t *p)
{
    return big16(p) << 16 | big16(p + 2);
}

/* A word of a pcap file, which is in its writer's byte order. */
static uint32_t word(const leat_cli_capture *c, const uint8_t *p)
{
    uint32_t big = big32(p);

    return c->swapped ? big : __builtin_bswap32(big);
}

static bool get(leat_cli_capture *c, uint8_t *out, size_t n)
{
    size_t got = fread(out, 1, n, c->file);

    c->at += got;
    return got == n;
}

static void complain(const leat_cli_capture *c, uint64_t offset, const char *what)
{
    leat_cli_error("%s: offset %llu: %s", c->path, (unsigned long long)offset, what);
}

/* ---- opening ----------------------------------------------------------------------------------
 */

static leat_cli_exit open_pcap(leat_cli_capture *c, const uint8_t head[4])
{
    uint8_t rest[20];
    uint32_t magic = big32(head);

    c->swapped = magic == MAGIC_MICRO || magic == MAGIC_NANO; /* big-endian */
    magic = word(c, head);
    if (magic == MAGIC_NG) {
        leat_cli_error("%s is pcapng: make it pcap with 'editcap -F pcap'", c->path);
        return LEAT_EXIT_FILE;
    }
    if (magic != MAGIC_MICRO && magic != MAGIC_NANO) {
        leat_cli_error("%s: offset 0: neither pcap nor rtpdump", c->path);
        return LEAT_EXIT_FILE;
    }
    if (!get(c, rest, sizeof rest)) {
        complain(c, c->at, "the pcap header ends too early");
        return LEAT_EXIT_FILE;
    }
    c->nano = magic == MAGIC_NANO;
    c->link = word(c, rest + 16) & 0xffff;
    return LEAT_EXIT_OK;
}

static leat_cli_exit open_rtpdump(leat_cli_capture *c)
{
    uint8_t head[16];
    int byte;

    do { /* the first line */
        byte = fgetc(c->file);
        c->at++;
    } while (byte != '\n' && byte != EOF && c->at < 512);
    if (byte != '\n' || !get(c, head, sizeof head)) {
        complain(c, c->at, "the rtpdump header ends too early");
        return LEAT_EXIT_FILE;
    }
    c->rtpdump = true;
    return LEAT_EXIT_OK;
}

leat_cli_exit leat_cli_capture_open(leat_cli_capture *c, const char *path)
{
    uint8_t head[4];

    c->path = path;
    c->at = 0;
    c->rtpdump = c->started = c->swapped = c->nano = false;
    c->skipped = 0;
    c->file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!c->file) {
        leat_cli_error("cannot read %s: %s", path, strerror(errno));
        return LEAT_EXIT_FILE;
    }
    if (!get(c, head, sizeof head)) {
        complain(c, c->at, "too short for a capture");
        return LEAT_EXIT_FILE;
    }
    return memcmp(head, "#!rt", 4) == 0 ? open_rtpdump(c) : open_pcap(c, head);
}

void leat_cli_capture_close(leat_cli_capture *c)
{
    if (c->file && c->file != stdin) {
        fclose(c->file);
    }
    c->file = NULL;
}

/* ---- from a frame to its UDP payload ----------------------------------------------------------
 */

/* Skips the link's header; false: no IP. */
static bool skip_link(const leat_cli_capture *c, leat_span *s)
{
    size_t n, type_at;

    switch (c->link) {
    case LINK_RAW:
    case LINK_RAW_OLD:
    case LINK_IPV4:
    case LINK_IPV6:
        return true;
    case LINK_NULL:
    case LINK_LOOP:
        n = 4;
        type_at = SIZE_MAX;
        break;
    case LINK_ETHERNET:
        n = 14;
        type_at = 12;
        break;
    case LINK_SLL:
        n = 16;
        type_at = 14;
        break;
    case LINK_SLL2:
        n = 20;
        type_at = 0;
        break;
    default:
        return false;
    }
    if (s->len < n) {
        return false;
    }
    while (c->link == LINK_ETHERNET && s->len >= n + 4 &&
           (big16(s->data + type_at) == 0x8100 || big16(s->data + type_at) == 0x88a8)) {
        n += 4; /* a VLAN's tag */
        type_at += 4;
    }
    if (type_at != SIZE_MAX && big16(s->data + type_at) != 0x0800 &&
        big16(s->data + type_at) != 0x86dd) {
        return false;
    }
    s->data += n;
    s->len -= n;
    return true;
}

static bool open_udp(leat_span s, leat_cli_datagram *out)
{
    size_t len;

    if (s.len < 8) {
        return false;
    }
    out->from.port = (uint16_t)big16(s.data);
    out->to.port = (uint16_t)big16(s.data + 2);
    len = big16(s.data + 4);
    if (len < 8) {
        return false;
    }
    len = len < s.len ? len : s.len;
    out->data = (leat_span){s.data + 8, len - 8};
    return true;
}

/* The UDP payload of an IP packet; false: it has none, or is a fragment. */
static bool open_ip(leat_span s, leat_cli_datagram *out)
{
    size_t head, len;

    if (s.len >= 20 && s.data[0] >> 4 == 4) {
        head = (size_t)(s.data[0] & 15) * 4;
        len = big16(s.data + 2);
        if (head < 20 || len < head || head > s.len || s.data[9] != 17 ||
            (big16(s.data + 6) & 0x3fff) != 0) {
            return false;
        }
        out->from.family = out->to.family = 4;
        memcpy(out->from.ip, s.data + 12, 4);
        memcpy(out->to.ip, s.data + 16, 4);
    } else if (s.len >= 40 && s.data[0] >> 4 == 6 && s.data[6] == 17) {
        head = 40;
        len = big16(s.data + 4) + 40;
        out->from.family = out->to.family = 6;
        memcpy(out->from.ip, s.data + 8, 16);
        memcpy(out->to.ip, s.data + 24, 16);
    } else {
        return false;
    }
    len = len < s.len ? len : s.len;
    return open_udp((leat_span){s.data + head, len - head}, out);
}

/* ---- records ----------------------------------------------------------------------------------
 */

/* Reads a record's packet of n bytes into the buffer; false: the file ends, or it is too long to be
 * one. */
static bool get_packet(leat_cli_capture *c, uint64_t record, size_t n)
{
    if (n > sizeof c->buffer) {
        complain(c, record, "a record longer than any datagram: the rest cannot be read");
        return false;
    }
    if (!get(c, c->buffer, n)) {
        complain(c, record, "the file ends within a record");
        return false;
    }
    return true;
}

static leat_time since_first(leat_cli_capture *c, leat_time t)
{
    if (!c->started) {
        c->started = true;
        c->first = t;
    }
    return t > c->first ? t - c->first : 0;
}

static bool next_pcap(leat_cli_capture *c, leat_cli_datagram *out)
{
    for (;;) {
        uint64_t record = c->at;
        uint8_t head[16];
        size_t n;
        leat_span s;

        if (!get(c, head, sizeof head)) {
            if (c->at != record) {
                complain(c, record, "the file ends within a record");
            }
            return false;
        }
        n = word(c, head + 8);
        if (!get_packet(c, record, n)) {
            return false;
        }
        *out = (leat_cli_datagram){.offset = 0};
        out->time = since_first(c, word(c, head) * LEAT_SECOND +
                                       (leat_time)word(c, head + 4) * (c->nano ? 1 : 1000));
        s = (leat_span){c->buffer, n};
        if (skip_link(c, &s) && open_ip(s, out)) {
            out->offset = record + sizeof head + (uint64_t)(out->data.data - c->buffer);
            return true;
        }
        c->skipped++;
    }
}

static bool next_rtpdump(leat_cli_capture *c, leat_cli_datagram *out)
{
    uint64_t record = c->at;
    uint8_t head[8];
    size_t len;

    if (!get(c, head, sizeof head)) {
        if (c->at != record) {
            complain(c, record, "the file ends within a record");
        }
        return false;
    }
    len = big16(head);
    if (len < sizeof head) {
        complain(c, record, "a record shorter than its own header: the rest cannot be read");
        return false;
    }
    len -= sizeof head;
    if (!get_packet(c, record, len)) {
        return false;
    }
    *out = (leat_cli_datagram){.data = {c->buffer, len}, .offset = record + sizeof head};
    out->time = since_first(c, big32(head + 4) * LEAT_MILLISECOND);
    return true;
}

bool leat_cli_capture_next(leat_cli_capture *c, leat_cli_datagram *out)
{
    return c->rtpdump ? next_rtpdump(c, out) : next_pcap(c, out);
}
