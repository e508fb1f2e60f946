/* io/group.c: see io/group.h.
 *
 * SPDX-License-Identifier: MIT
 */
#include "io/group.h"

#include <linux/filter.h>
#include <string.h>
#include <sys/socket.h>

#include "base/assert.h"

/* ---- boxes ---- */

leat_err leat_group_box_new(leat_ctx *ctx, leat_task_fn *run, leat_udp *owner, leat_group_box **out)
{
    leat_buf self;
    leat_group_box *box;

    *out = NULL;
    if (leat_buf_take(leat_ctx_mem(ctx), sizeof(*box), &self) != LEAT_OK) {
        return LEAT_ERR_NOMEM;
    }
    box = (leat_group_box *)(void *)self.data;
    box->self = self;
    box->owner = owner;
    box->head = box->count = 0;
    leat_task_init(&box->task, ctx, run);
    if (pthread_mutex_init(&box->lock, NULL) != 0) {
        leat_buf_release(&self);
        return LEAT_ERR_NOMEM;
    }
    *out = box;
    return LEAT_OK;
}

void leat_group_box_free(leat_group_box *box)
{
    leat_buf self;

    if (box) {
        self = box->self;
        leat_task_cancel(&box->task);
        pthread_mutex_destroy(&box->lock);
        leat_buf_release(&self);
    }
}

bool leat_group_box_put(leat_group_box *box, const uint8_t *data, size_t len,
                        const leat_recv_info *info)
{
    bool room;

    if (len > LEAT_GROUP_DATAGRAM) {
        return false;
    }
    pthread_mutex_lock(&box->lock);
    room = box->count < LEAT_GROUP_BOX;
    if (room) {
        leat_group_parcel *parcel = &box->parcels[(box->head + box->count++) % LEAT_GROUP_BOX];

        parcel->info = *info;
        parcel->info.segment = 0;
        parcel->len = len;
        memcpy(parcel->bytes, data, len);
    }
    pthread_mutex_unlock(&box->lock);
    if (room) {
        leat_ctx_post(box->task.ctx, &box->task);
    }
    return room;
}

leat_err leat_group_box_take(leat_group_box *box, leat_mem *mem, leat_buf *out,
                             leat_recv_info *info)
{
    leat_err err = LEAT_ERR_BLOCKED;

    pthread_mutex_lock(&box->lock);
    if (box->count > 0) {
        const leat_group_parcel *parcel = &box->parcels[box->head];

        err = leat_buf_take(mem, parcel->len, out);
        if (err == LEAT_OK) {
            memcpy(out->data, parcel->bytes, parcel->len);
            *info = parcel->info;
        }
        box->head = (box->head + 1) % LEAT_GROUP_BOX;
        box->count--;
    }
    pthread_mutex_unlock(&box->lock);
    return err;
}

/* ---- whose a datagram is ---- */

enum {
    FORM_LONG = 0x80, /* RFC 8999 s5.1 */
    SHORT_CID = 1,    /* where the destination ID begins */
    LONG_CID_LEN = 5,
    LONG_CID = 6
};

unsigned leat_group_member_of(const uint8_t *data, size_t len, unsigned count, unsigned self)
{
    if (len <= LONG_CID) {
        return self; /* not QUIC */
    }
    if (!(data[0] & FORM_LONG)) {
        return data[SHORT_CID] % count;
    }
    return data[LONG_CID_LEN] > 0 ? data[LONG_CID] % count : self;
}

void leat_group_mark(uint8_t *cid, unsigned count, unsigned member)
{
    unsigned value = cid[0] - cid[0] % count + member;

    cid[0] = (uint8_t)(value <= UINT8_MAX ? value : value - count);
}

/* The program's view begins at the UDP payload; a load from behind its end ends the program with 0.
 */
bool leat_group_steer(int fd, unsigned count)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, FORM_LONG, 0, 2),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, LONG_CID),
        BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, SHORT_CID),
        BPF_STMT(BPF_ALU | BPF_MOD | BPF_K, count),
        BPF_STMT(BPF_RET | BPF_A, 0),
    };
    struct sock_fprog program;

    memset(&program, 0,
           sizeof(program)); /* with what lies between the members: all goes to the kernel */
    program.len = sizeof(code) / sizeof(code[0]);
    program.filter = code;
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program, sizeof(program)) == 0;
}
