/* media/restart.h: when a stream's numbers begin anew.
 *
 * A number far from where the stream is may be damage, or another's. It is believed once a row of
 * packets came that follow each other: those before the last of the row are left out.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef LEAT_MEDIA_RESTART_H
#define LEAT_MEDIA_RESTART_H

#include <leat/rtp.h>

enum { LEAT_RESTART_ROW = 3 };

/* A far number came: whether it is the one that makes the row. Where a packet that is not far ends
 * a row, the owner sets count to 0. */
static inline bool leat_restart_on_far(leat_seq_restart *r, uint16_t seq, uint16_t row)
{
    r->count = seq == r->next ? r->count + 1 : 1;
    r->next = (uint16_t)(seq + 1);
    if (r->count < row) {
        return false;
    }
    r->count = 0;
    return true;
}

#endif
