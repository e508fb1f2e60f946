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
    LINK_ETHERNET = 1,
    RECORD_MAX = 262144, /* what libpcap takes: no record is longer */
};

/* The links that leat reads: the bytes before IP, and where in them its Ethernet type stands. */
static const struct link {
    uint32_t type;
    int head, ether_at; /* -1: none; IP's own version tells */
} links[] = {
    {0, 4, -1},    /* NULL: BSD's loopback */
    {1, 14, 12},   /* Ethernet */
    {12, 0, -1},   /* raw IP, as some wrote it */
    {101, 0, -1},  /* raw IP */
    {108, 4, -1},  /* LOOP: OpenBSD's */
    {113, 16, 14}, /* Linux's cooked capture */
    {228, 0, -1},  /* IPv4 */
    {229, 0, -1},  /* IPv6 */
    {276, 20, 0},  /* the second version of Linux's */
};

static const struct link *link_of(uint32_t type)
{
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++) {
        if (links[i].type == type) {
            return &links[i];
        }
    }
    return NULL;
}

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
    if (!link_of(c->link)) {
        leat_cli_error("%s: offset 20: link type %u is none that leat reads", c->path, c->link);
        return LEAT_EXIT_FILE;
    }
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
    const struct link *link = link_of(c->link);
    size_t n = (size_t)link->head;

    if (s->len < n) {
        return false;
    }
    if (link->ether_at >= 0) {
        const uint8_t *type = s->data + link->ether_at;

        while (c->link == LINK_ETHERNET && s->len >= n + 4 &&
               (big16(type) == 0x8100 || big16(type) == 0x88a8)) {
            n += 4; /* a VLAN's tag */
            type += 4;
        }
        if (big16(type) != 0x0800 && big16(type) != 0x86dd) {
            return false;
        }
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
    out->cut = len > s.len ? len - s.len : 0;
    out->data = (leat_span){s.data + 8, len - out->cut - 8};
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

/* Reads a record's packet of n bytes, into the buffer as far as it has room; false: the file ends,
 * or it is too long to be one. */
static bool get_packet(leat_cli_capture *c, uint64_t record, size_t n)
{
    uint8_t rest[4096];
    size_t left = n > sizeof c->buffer ? n - sizeof c->buffer : 0;
    bool whole;

    if (n > RECORD_MAX) {
        complain(c, record, "a record longer than any packet: the rest cannot be read");
        return false;
    }
    whole = get(c, c->buffer, n - left);
    for (size_t some; whole && left > 0; left -= some) {
        some = left < sizeof rest ? left : sizeof rest;
        whole = get(c, rest, some);
    }
    if (!whole) {
        complain(c, record, "the file ends within a record");
    }
    return whole;
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
        s = (leat_span){c->buffer, n < sizeof c->buffer ? n : sizeof c->buffer};
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
    size_t len, whole;

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
    whole = big16(head + 2); /* 0: RTCP, which is never cut */
    out->cut = whole > len ? whole - len : 0;
    out->time = since_first(c, big32(head + 4) * LEAT_MILLISECOND);
    return true;
}

bool leat_cli_capture_next(leat_cli_capture *c, leat_cli_datagram *out)
{
    return c->rtpdump ? next_rtpdump(c, out) : next_pcap(c, out);
}
