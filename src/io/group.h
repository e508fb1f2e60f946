/* io/group.h: the sockets of a group: which has a datagram's connection, and handing it over.
 *
 * Every connection ID that a member's endpoint gives out tells its member: the first byte modulo
 * the number of members. The kernel steers by it (a classic BPF program on the reuseport group), so
 * a connection stays with its loop whatever address its peer moves to. A client's first packets go
 * to an ID that the client made up; the same rule sends all of them to one member.
 *
 * What lands wrong all the same (several connections in one message of GRO's, a kernel that does
 * not take the program) is copied into the box of the member that has it, since a buffer belongs to
 * one context; that member's loop is woken and takes it out. A box that is full drops, as a full
 * socket does. Its lock is taken for such datagrams alone.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_IO_GROUP_H
#define LEAT_IO_GROUP_H

#include <leat/loop.h>

#include <pthread.h>

enum { LEAT_GROUP_BOX = 64, LEAT_GROUP_DATAGRAM = 2048 };

typedef struct leat_group_parcel {
    leat_recv_info info;
    size_t len;
    uint8_t bytes[LEAT_GROUP_DATAGRAM];
} leat_group_parcel;

/* What other members have put here for one member. */
typedef struct leat_group_box {
    leat_buf self; /* the buffer that it lies in */
    leat_udp *owner;
    leat_task task; /* the owner's, posted when something was put in */
    pthread_mutex_t lock;
    uint32_t head, count; /* under the lock, as the parcels */
    leat_group_parcel parcels[LEAT_GROUP_BOX];
} leat_group_box;

/* In the context's memory; LEAT_ERR_NOMEM. `run` is called, in the owner's turn, when something was
 * put in. */
leat_err leat_group_box_new(leat_ctx *ctx, leat_task_fn *run, leat_udp *owner,
                            leat_group_box **out);
/* NULL is allowed. */
void leat_group_box_free(leat_group_box *box);

/* Any thread: copies a datagram into the box. False: it is full, or the datagram too large. */
bool leat_group_box_put(leat_group_box *box, const uint8_t *data, size_t len,
                        const leat_recv_info *info);
/* The owner: takes the oldest out into a buffer of its own. LEAT_ERR_NOMEM: dropped.
 * LEAT_ERR_BLOCKED: there is none. */
leat_err leat_group_box_take(leat_group_box *box, leat_mem *mem, leat_buf *out,
                             leat_recv_info *info);

/* Which of `count` members a datagram is for; `self` when it does not tell. */
unsigned leat_group_member_of(const uint8_t *data, size_t len, unsigned count, unsigned self);

/* Marks a connection ID as this member's. */
void leat_group_mark(uint8_t *cid, unsigned count, unsigned member);

/* Has the kernel steer the reuseport group of the socket, whose members are in it in order. False:
 * it does not. */
bool leat_group_steer(int fd, unsigned count);

#endif
