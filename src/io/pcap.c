/* io/pcap.c: captures.
 *
 * The file (draft-ietf-opsawg-pcap): a header of 24 bytes, then records of a 16-byte header and a
 * packet, all in the writer's byte order, which the magic number shows. The link type says that
 * packets begin with their IP header. Records gather in a buffer and go out when it is full.
 *
 * SPDX-License-Identifier: MIT
 */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "io/files.h"
#include "net/udpip.h"

#define MAGIC_NANOSECONDS 0xa1b23c4du

enum {
    LINKTYPE_RAW = 101,
    SNAP_LENGTH = 65535 + LEAT_UDPIP_HEADERS_MAX,
    BUFFER = 256 * 1024,
};

typedef struct pcap_header {
    uint32_t magic;
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t reserved[2];
    uint32_t snap_length;
    uint32_t link_type;
} pcap_header;

typedef struct pcap_record {
    uint32_t seconds;
    uint32_t nanoseconds;
    uint32_t captured;
    uint32_t original;
} pcap_record;

_Static_assert(sizeof(pcap_header) == 24, "as the format has it");
_Static_assert(sizeof(pcap_record) == 16, "as the format has it");

struct leat_pcap {
    leat_mem *mem;
    leat_buf self;
    int fd;
    leat_err err; /* the first that happened: nothing is written after it */
    size_t used;
    uint8_t buffer[BUFFER];
};

static void flush(leat_pcap *pcap)
{
    if (pcap->err == LEAT_OK) {
        pcap->err = leat_io_write(pcap->fd, pcap->buffer, pcap->used);
    }
    pcap->used = 0;
}

leat_err leat_pcap_open(const char *path, leat_pcap **out)
{
    *out = NULL;
    leat_buf self;
    leat_mem *mem;
    leat_err err = leat_io_own(sizeof(leat_pcap), &mem, &self);
    if (err != LEAT_OK) {
        return err;
    }
    leat_pcap *pcap = (leat_pcap *)(void *)self.data;
    pcap->mem = mem;
    pcap->self = self;
    pcap->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (pcap->fd < 0) {
        leat_io_disown(mem, &self);
        return LEAT_ERR_IO;
    }
    pcap_header header = {
        .magic = MAGIC_NANOSECONDS,
        .version_major = 2,
        .version_minor = 4,
        .snap_length = SNAP_LENGTH,
        .link_type = LINKTYPE_RAW,
    };
    memcpy(pcap->buffer, &header, sizeof(header));
    pcap->used = sizeof(header);
    *out = pcap;
    return LEAT_OK;
}

void leat_pcap_write(leat_pcap *pcap, leat_time now, const leat_addr *src, const leat_addr *dst,
                     uint8_t ecn, leat_span payload)
{
    size_t headers = leat_udpip_headers(src->family);
    size_t packet = headers + payload.len;
    if (packet > SNAP_LENGTH) {
        return;
    }
    if (BUFFER - pcap->used < sizeof(pcap_record) + packet) {
        flush(pcap);
    }
    leat_udpip how = {.src = *src, .dst = *dst, .ecn = ecn};
    uint8_t *record = pcap->buffer + pcap->used;
    uint8_t *copy = record + sizeof(pcap_record) + headers;
    if (payload.len > 0) {
        memcpy(copy, payload.data, payload.len);
    }
    if (leat_udpip_build(&how, copy, payload.len) != LEAT_OK) {
        return;
    }
    pcap_record header = {
        .seconds = (uint32_t)(now / LEAT_SECOND),
        .nanoseconds = (uint32_t)(now % LEAT_SECOND),
        .captured = (uint32_t)packet,
        .original = (uint32_t)packet,
    };
    memcpy(record, &header, sizeof(header));
    pcap->used += sizeof(header) + packet;
}

leat_err leat_pcap_close(leat_pcap *pcap)
{
    if (pcap == NULL) {
        return LEAT_OK;
    }
    flush(pcap);
    leat_err err = pcap->err;
    if (close(pcap->fd) != 0 && err == LEAT_OK) {
        err = LEAT_ERR_IO;
    }
    leat_buf self = pcap->self;
    leat_io_disown(pcap->mem, &self);
    return err;
}
