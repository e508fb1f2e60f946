/* leat/limits.h: every limit of leat in one place.
 *
 * X(NAME, default, least, most, unit and reason). Each row becomes LEAT_<NAME>_DEFAULT, _MIN, _MAX.
 * A setting outside its bounds is refused with LEAT_ERR_INVALID; reaching a limit at run time gives
 * back-pressure or a clear error, as the reason says.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_LIMITS_H
#define LEAT_LIMITS_H

/* clang-format off */
#define LEAT_LIMIT_LIST(X)                                                                         \
    X(SLAB_SIZE, 65536, 4096, 1048576,                                                             \
      "bytes a slab: small buffers rarely need a new one, and it fits a cache")                    \
    /* rows below: one a limit; keep the groups together */                                        \
    X(KEY_CACHE, 256, 1, 65536,                                                                    \
      "expanded keys a context keeps for each cipher, about 1 KB each: connections hot at once")   \
    X(TLS_MESSAGE, 65536, 16384, 131072,                                                           \
      "bytes of one TLS handshake message: a chain of nine certificates and room to spare")        \
    X(TLS_POST_MESSAGE, 65536, 1024, 131072,                                                       \
      "bytes of one TLS message after the handshake, never stored: a ticket is below 64 KiB")      \
    X(STREAM_SEND_BUFFER, 1048576, 1024, 1073741824,                                               \
      "bytes a stream buffers until acknowledged: 1 Gbit/s at 8 ms are in flight")                 \
    X(STREAM_RECV_GAPS, 2048, 16, 65536,                                                           \
      "holes in a stream's received data at least, and one for each 2400 bytes of the largest "    \
      "window: with every second packet lost a full window has fewer")                             \
    X(STREAM_SEND_RANGES, 65536, 16, 1048576,                                                      \
      "ranges lost or acknowledged out of order in a stream: less than the packets in flight")     \
    X(ACK_RANGES, 256, 8, 4096,                                                                    \
      "ranges of packet numbers kept a space: older ones count as received, so late packets "      \
      "among them are lost; heavy reordering needs some hundreds")                                 \
    X(ACK_RANGES_WRITTEN, 64, 1, 1024,                                                             \
      "ranges in one ACK frame: older ones were in ACKs before; 300 bytes at most")                \
    X(SENT_PACKETS, 65536, 64, 1048576,                                                            \
      "packets outstanding a space: 64 bytes each; 65536 of 1452 bytes are 95 MB in flight")       \
    X(SENT_FRAMES, 262144, 256, 4194304,                                                           \
      "frames outstanding a space: 24 bytes each; four a packet outstanding")                      \
    X(CWND, 1073741824, 16384, 1073741824,                                                         \
      "bytes of the congestion window at most: 85 Gbit/s at 100 ms; 64-bit sums stay exact")       \
    X(PACER_BURST, 65536, 2400, 1048576,                                                           \
      "bytes a paced batch at most: one GSO send carries 64 KiB")                                  \
    X(HTTP_HEADER_BYTES, 16384, 1024, 65536,                                                       \
      "bytes of names and values in one HTTP head received: what common servers accept")           \
    X(HTTP_HEADER_FIELDS, 128, 16, 1024,                                                           \
      "fields in one HTTP head received: 32 bytes of bookkeeping each")                            \
    X(HTTP_REQUESTS, 128, 1, 65536,                                                                \
      "requests that a client may have open at once: the RFC's least is 100 (RFC 9114 s6.1)")      \
    X(FILE_CACHE, 16777216, 0, 1073741824,                                                         \
      "bytes of files that each loop of leat serve keeps in memory: some thousand pages of a site")\
    X(FILE_CACHE_FILES, 1024, 1024, 1024,                                                          \
      "files among them: a search that finds many of one hash still costs less than an open")      \
    X(FILE_CACHE_FILE, 65536, 65536, 65536,                                                        \
      "bytes of such a file at most: reading more costs so much that opening it no longer counts") \
    X(QPACK_TABLE, 4096, 0, 65536,                                                                 \
      "bytes of QPACK dynamic table for the peer: what HTTP/2 used; each entry costs memory")      \
    X(CONN_MEMORY, 67108864, 262144, 1073741824,                                                   \
      "bytes that one connection may retain, all told: four times the largest window")             \
    X(CONN_WINDOW, 8388608, 0, 268435456,                                                          \
      "bytes that the peer may send on all streams before more is read: 1 Gbit/s at 64 ms")        \
    X(STREAM_WINDOW, 4194304, 0, 268435456,                                                        \
      "the same on one stream: half of it, so that one slow reader does not stop all")             \
    X(OPEN_STREAMS, 128, 0, 65536,                                                                 \
      "streams of a kind that the peer may have open at once: about 600 bytes each")               \
    X(DATAGRAM_FRAME, 0, 0, 65535,                                                                 \
      "bytes of a DATAGRAM frame taken from the peer: none unless asked for; 65535 is any")        \
    X(DATAGRAM_QUEUE, 256, 1, 65536,                                                               \
      "datagrams that wait to be sent: 256 of 1200 bytes are 25 ms of 100 Mbit/s")                 \
    X(DATAGRAM_EARLY, 16, 16, 16,                                                                  \
      "datagrams kept that came before the application knows of the connection: more are dropped") \
    X(LOCAL_CIDS, 4, 2, 8,                                                                         \
      "connection IDs that the peer holds in reserve: a path each, as others give out")            \
    X(REMOTE_CIDS, 4, 2, 4,                                                                        \
      "connection IDs of the peer's that are kept: active_connection_id_limit")                    \
    X(VERSIONS, 2, 1, 4,                                                                           \
      "versions of QUIC that a connection offers: as many as there are, and two to come")          \
    X(RETIRING_CIDS, 8, 8, 8,                                                                      \
      "retired and not yet acknowledged: twice REMOTE_CIDS, as RFC 9000 s5.1.2 asks; more closes") \
    X(PATHS, 4, 4, 4,                                                                              \
      "paths of a connection at once: the active one, the one before, one to move to, one probed") \
    X(PATH_RESPONSES, 2, 2, 2,                                                                     \
      "PATH_CHALLENGEs kept until answered: a flood of them is answered by its newest")            \
    X(EARLY_PACKETS, 16, 16, 16,                                                                   \
      "datagrams kept that came before their keys: a server's first flight, reordered")            \
    X(INBOUND_QUEUE, 4096, 64, 65536,                                                              \
      "receive calls that wait for a connection's turn: more are dropped, as a full socket would") \
    X(CRYPTO_BUFFER, 65536, 4096, 131072,                                                          \
      "CRYPTO bytes ahead of what TLS has read, a level: RFC 9000 s7.5 asks for 4096")             \
    X(CLOSE_REASON, 256, 0, 1024,                                                                  \
      "bytes of a reason phrase sent or kept: one line for a person")                              \
    X(EARLY_TICKETS, 65536, 0, 16777216,                                                           \
      "newest tickets that a server takes early data with, 9 bytes each: a quarter of an hour of " \
      "70 handshakes a second")                                                                    \
    X(SESSION, 65536, 1024, 131072,                                                                \
      "bytes of a session handed to the application: a chain of nine certificates is in it")       \
    X(SESSIONS_PENDING, 4, 4, 4,                                                                   \
      "sessions of one connection that wait to be told: a server sends one or two tickets")        \
    X(TOKEN, 512, 64, 1024,                                                                        \
      "bytes of an address validation token kept for the next connection: leaves an Initial room") \
    X(CONNS, 65536, 1, 16777216,                                                                   \
      "connections of one endpoint at once: new ones are refused beyond that")                     \
    X(HANDSHAKES, 4096, 1, 1048576,                                                                \
      "of these, not yet confirmed: about 60 KB each while TLS runs")                              \
    X(RETRY_ABOVE, 1024, 0, 1048576,                                                               \
      "half-open connections with which a server asks for Retry: a quarter of HANDSHAKES, 60 MB")  \
    X(CID_LEN, 8, 4, 20,                                                                           \
      "bytes of the connection IDs given out: 8 random bytes do not collide among 2^24")           \
    X(RECENT_DCIDS, 4096, 4096, 4096,                                                              \
      "first destination IDs remembered after the handshake, 8 bytes each: a late copy of the "    \
      "datagram that began it begins nothing; 2 s of the handshakes of a busy core")               \
    X(STATELESS_QUEUE, 64, 1, 4096,                                                                \
      "answers without a connection that wait to be sent: more are dropped")                       \
    X(SOCKET_BUFFER, 4194304, 4096, 1073741824,                                                    \
      "bytes of a UDP socket's kernel buffers, each way: 1 Gbit/s for 32 ms")                      \
    X(UDP_SOCKETS, 4, 4, 4,                                                                        \
      "sockets of one endpoint of the loop: a path each, as PATHS")                                \
    X(UDP_PAYLOAD, 1452, 1200, 65527,                                                              \
      "bytes a datagram sent: 1200 is QUIC's floor (RFC 9000 s14), 1452 fits IPv6 on Ethernet")    \
    X(TWCC_RECORD, 8192, 64, 65536,                                                                \
      "arrivals that a TWCC recorder keeps, 4 bytes each: 500 ms of 150 Mbit/s")                   \
    X(CCFB_STREAMS, 256, 1, 1024,                                                                  \
      "streams of RFC 8888 feedback at once: those of a large conference; more are not reported")  \
    X(CCFB_RECORD, 2048, 64, 32768,                                                                \
      "arrivals kept of each such stream, 4 bytes each: 500 ms of 40 Mbit/s")                      \
    X(FB_HISTORY, 8192, 64, 65536,                                                                 \
      "sent packets remembered until feedback tells of them, 16 bytes each: 1 s of 80 Mbit/s")     \
    X(NACK_MISSING, 512, 16, 4096,                                                                 \
      "numbers missing at once that are asked for: the oldest are given up for newer ones")        \
    X(RESEND_PACKETS, 1024, 16, 32768,                                                             \
      "packets kept to be sent again: 1 s of 10 Mbit/s")                                           \
    X(JITTER_PACKETS, 1024, 16, 32768,                                                             \
      "packets that wait to be played: 1 s of 10 Mbit/s")                                          \
    X(JITTER_BYTES, 2097152, 1500, 268435456,                                                      \
      "bytes of the packets that wait to be played: 2 s of 8 Mbit/s; one packet at least")         \
    X(ROQ_FLOWS, 64, 1, 65536,                                                                     \
      "flows of an RTP-over-QUIC session open at once: audio and video of some 30 participants")   \
    X(ROQ_PACKET, 262144, 1500, 16777216,                                                          \
      "bytes of one RTP packet taken from a stream: a key frame of 4 Mbit/s video in one")         \
    X(ROQ_UNREAD, 4194304, 65536, 268435456,                                                       \
      "bytes of packets that have come in part, of a session: sixteen of the largest")             \
    X(ROQ_UNKNOWN, 16, 0, 1024,                                                                    \
      "streams, and datagrams, of flows not open yet that wait: 100 ms of what comes at first")    \
    X(ROQ_QUEUE_BYTES, 1048576, 1500, 268435456,                                                   \
      "bytes of a flow's packets that wait to be sent: 1 s of 8 Mbit/s")                           \
    X(ROQ_QUEUE_PACKETS, 1024, 1, 65536,                                                           \
      "packets of a flow that wait to be sent: about 150 bytes each besides their own")            \
    X(ESTIMATE_START, 300000, 10000, 1000000000,                                                   \
      "bits a second before anything is known of a path: what nearly any carries")                 \
    X(ESTIMATE_MIN_RATE, 30000, 5000, 1000000000,                                                  \
      "bits a second below which no estimate goes: audio still works")                             \
    X(ESTIMATE_MAX_RATE, 100000000, 5000, 1000000000,                                              \
      "bits a second above which no estimate goes: more than encoders make of video")              \
    X(ESTIMATE_WINDOW, 12000, 12000, 12000,                                                        \
      "bytes in flight that an estimate always lets out: ten packets, so that feedback goes on")   \
    X(PACE_PACKETS, 1024, 16, 32768,                                                               \
      "packets of each kind that wait in a pacer, 24 bytes each: 1 s of 10 Mbit/s")
/* clang-format on */

#define LEAT_LIMIT_ENUM(name, def, least, most, reason)                                            \
    LEAT_##name##_DEFAULT = (def), LEAT_##name##_MIN = (least), LEAT_##name##_MAX = (most),
enum leat_limits { LEAT_LIMIT_LIST(LEAT_LIMIT_ENUM) };
#undef LEAT_LIMIT_ENUM

#endif
