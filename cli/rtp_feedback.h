/* cli/rtp_feedback.h: what `leat rtp feedback` holds, and its statistics.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_CLI_RTP_FEEDBACK_H
#define LEAT_CLI_RTP_FEEDBACK_H

#include <leat/ccfb.h>
#include <leat/report.h>
#include <leat/twcc.h>

#include "rtp.h"

enum {
    FEEDBACK_SOURCES = 31,   /* with statistics: as many as a receiver report has blocks */
    FEEDBACK_MTU_MAX = 9000, /* jumbo frames */
};

/* X(name, what it counts) */
#define FEEDBACK_STAT_LIST(X)                                                                      \
    X(packets, "RTP packets")                                                                      \
    X(bytes, "their bytes, headers too")                                                           \
    X(without_ext, "RTP packets without the extension")                                            \
    X(bad, "datagrams that are neither RTP nor RTCP, or broken")                                   \
    X(rtcp, "RTCP packets received")                                                               \
    X(feedback_packets, "feedback packets sent")                                                   \
    X(feedback_bytes, "bytes of feedback datagrams sent")                                          \
    X(send_errors, "feedback datagrams that the system refused")

#define FEEDBACK_STAT_MEMBER(name, text) uint64_t name;
typedef struct feedback_stats {
    FEEDBACK_STAT_LIST(FEEDBACK_STAT_MEMBER)
} feedback_stats;

typedef struct feedback {
    leat_addr listen, rtcp_listen, to;
    bool rfc8888, reduced, json, quiet;
    uint8_t ext_id;
    uint32_t clock_rate;
    leat_time interval, end;
    size_t mtu;
    const char *pcap_path;

    leat_mem *mem;
    leat_pcap *pcap;
    int fd, rtcp_fd;
    uint32_t ssrc;
    leat_twcc_recorder twcc;
    leat_ccfb_recorder ccfb;
    leat_fb_policy policy;
    leat_report_source sources[FEEDBACK_SOURCES];
    size_t source_count;
    leat_addr local, peer; /* the peer: where RTP last came from */
    feedback_stats sum, last;
    leat_cli_steady steady;
    leat_time started, next_line;
    uint8_t in[LEAT_CLI_DATAGRAM];
    uint8_t out[FEEDBACK_MTU_MAX];
} feedback;

/* ---- rtp_feedback_stats.c ---------------------------------------------------------------------
 */

/* The line of each second: drawn again on a terminal, JSON otherwise. */
void feedback_print_line(feedback *a, leat_time now);
/* The sums at the end. */
void feedback_print_sums(const feedback *a, leat_time now);

#endif
