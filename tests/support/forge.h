/* tests/support/forge.h: packets that a correct endpoint would never send, under its own good keys.
 *
 * `from` is a connection of a leat_pair: the packet is sealed as it would seal it, with its next
 * packet number, and handed to the other endpoint at once. What the connection itself knows of it
 * is only that the number is used.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_TESTS_FORGE_H
#define LEAT_TESTS_FORGE_H

#include "conn/conn.h"
#include "pair.h"

/* A payload spelt out: its bytes and how many they are. */
#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

/* A 1-RTT packet with this payload; before there are such keys, a 0-RTT packet. */
void leat_forge(leat_pair *pair, leat_conn *from, const void *payload, size_t len);

/* A packet of a space, whose keys `from` must have. Initials are padded to 1,200 bytes. */
void leat_forge_in(leat_pair *pair, leat_conn *from, leat_space space, const void *payload,
                   size_t len);

/* What is not as usual: members that are NULL or 0 are. */
typedef struct leat_forge_odd {
    const leat_cid *scid, *dcid;
    leat_span token;
    size_t size; /* of the datagram of an Initial, instead of 1,200 */
    uint32_t version;
    leat_packet_keys *keys;
    const uint64_t *number; /* instead of the next one, which stays unused */
    bool back;              /* it goes to `from` itself */
    leat_writer *into;      /* it goes nowhere, but here, behind what is there */
} leat_forge_odd;

/* A packet of a space; an Initial is padded. */
void leat_forge_odd_in(leat_pair *pair, leat_conn *from, leat_space space,
                       const leat_forge_odd *odd, const void *payload, size_t len);
void leat_forge_initial(leat_pair *pair, leat_conn *from, const leat_forge_odd *odd,
                        const void *payload, size_t len);

/* The same, with bits of the first byte set by hand, before protection. */
void leat_forge_first(leat_pair *pair, leat_conn *from, uint8_t or_bits, const void *payload,
                      size_t len);

/* Fills a payload: frames written with wire/frames.h. */
typedef struct leat_forge_payload {
    uint8_t data[1400];
    leat_writer w;
} leat_forge_payload;

static inline leat_writer *leat_forge_begin(leat_forge_payload *payload)
{
    leat_writer_init(&payload->w, payload->data, sizeof(payload->data));
    return &payload->w;
}

static inline void leat_forge_send(leat_pair *pair, leat_conn *from,
                                   const leat_forge_payload *payload)
{
    leat_forge(pair, from, payload->data, leat_writer_len(&payload->w));
}

#endif
