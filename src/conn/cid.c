/* conn/cid.c: see conn/cid.h. Searches are linear: the arrays have a handful of entries.
 *
 * SPDX-License-Identifier: MIT
 */
#include "conn/cid.h"

#include "base/assert.h"
#include "crypto/secret.h"

/* ---- given out by this side ---- */

void leat_local_cids_init(leat_local_cids *cids, const leat_cid *first)
{
    *cids = (leat_local_cids){.next_sequence = 1, .sent_end = 1, .want = 1};
    cids->entry[0] = (leat_local_cid){.sequence = 0, .cid = *first, .state = LEAT_CID_SENT};
}

static leat_local_cid *local_by_state(leat_local_cids *cids, leat_cid_state state)
{
    for (size_t i = 0; i < LEAT_LOCAL_CIDS_MAX; i++) {
        if (cids->entry[i].state == state) {
            return &cids->entry[i];
        }
    }
    return NULL;
}

static leat_local_cid *local_by_sequence(leat_local_cids *cids, uint64_t sequence)
{
    for (size_t i = 0; i < LEAT_LOCAL_CIDS_MAX; i++) {
        if (cids->entry[i].state != LEAT_CID_FREE && cids->entry[i].sequence == sequence) {
            return &cids->entry[i];
        }
    }
    return NULL;
}

leat_local_cid *leat_local_cids_wanted(leat_local_cids *cids)
{
    size_t issued = 0;

    for (size_t i = 0; i < LEAT_LOCAL_CIDS_MAX; i++) {
        issued += cids->entry[i].state != LEAT_CID_FREE;
    }
    return issued < cids->want ? local_by_state(cids, LEAT_CID_FREE) : NULL;
}

void leat_local_cids_fill(leat_local_cids *cids, leat_local_cid *entry, const leat_cid *cid)
{
    LEAT_ASSERT(entry->state == LEAT_CID_FREE);
    entry->sequence = cids->next_sequence++;
    entry->cid = *cid;
    entry->state = LEAT_CID_PENDING;
    cids->pending++;
}

void leat_local_cids_sent(leat_local_cids *cids, leat_local_cid *entry)
{
    LEAT_ASSERT(entry->state == LEAT_CID_PENDING);
    entry->state = LEAT_CID_SENT;
    cids->pending--;
    if (entry->sequence >= cids->sent_end) {
        cids->sent_end = entry->sequence + 1;
    }
}

void leat_local_cids_add_known(leat_local_cids *cids, const leat_cid *cid)
{
    LEAT_ASSERT(cids->next_sequence == 1);
    leat_local_cids_fill(cids, &cids->entry[1], cid);
    leat_local_cids_sent(cids, &cids->entry[1]);
}

leat_local_cid *leat_local_cids_pending(leat_local_cids *cids)
{
    return cids->pending > 0 ? local_by_state(cids, LEAT_CID_PENDING) : NULL;
}

void leat_local_cids_lost(leat_local_cids *cids, uint64_t sequence)
{
    leat_local_cid *entry = local_by_sequence(cids, sequence);

    if (entry && entry->state == LEAT_CID_SENT && sequence > 0) {
        entry->state = LEAT_CID_PENDING;
        cids->pending++;
    }
}

uint64_t leat_local_cids_retire(leat_local_cids *cids, uint64_t sequence, leat_span dcid,
                                leat_cid *retired)
{
    leat_local_cid *entry = local_by_sequence(cids, sequence);

    retired->len = 0;
    if (sequence >= cids->sent_end) {
        return LEAT_TE_PROTOCOL_VIOLATION;
    }
    if (!entry) {
        return LEAT_TE_NO_ERROR;
    }
    if (leat_cid_equal_span(&entry->cid, dcid)) {
        return LEAT_TE_PROTOCOL_VIOLATION;
    }
    *retired = entry->cid;
    cids->pending -= entry->state == LEAT_CID_PENDING;
    entry->state = LEAT_CID_FREE;
    return LEAT_TE_NO_ERROR;
}

void leat_local_cids_check(const leat_local_cids *cids)
{
    size_t pending = 0;

    for (size_t i = 0; i < LEAT_LOCAL_CIDS_MAX; i++) {
        const leat_local_cid *entry = &cids->entry[i];

        if (entry->state == LEAT_CID_FREE) {
            continue;
        }
        pending += entry->state == LEAT_CID_PENDING;
        LEAT_ASSERT(entry->sequence < cids->next_sequence);
        for (size_t j = i + 1; j < LEAT_LOCAL_CIDS_MAX; j++) {
            const leat_local_cid *other = &cids->entry[j];

            if (other->state != LEAT_CID_FREE) {
                LEAT_ASSERT(other->sequence != entry->sequence);
                LEAT_ASSERT(!leat_cid_equal(&other->cid, &entry->cid));
            }
        }
    }
    LEAT_ASSERT(pending == cids->pending);
    LEAT_ASSERT(cids->sent_end <= cids->next_sequence);
}

/* ---- given out by the peer ---- */

void leat_remote_cids_init(leat_remote_cids *cids, const leat_cid *first)
{
    *cids = (leat_remote_cids){.current = 0, .seen_end = 1, .seen = 1};
    cids->entry[0] = (leat_remote_cid){.cid = *first, .used = true, .taken = true};
}

void leat_remote_cids_replace(leat_remote_cids *cids, const leat_cid *cid)
{
    LEAT_ASSERT(cids->entry[0].used && cids->entry[0].sequence == 0);
    cids->entry[0].cid = *cid;
}

void leat_remote_cids_set_token(leat_remote_cids *cids,
                                const uint8_t token[LEAT_STATELESS_RESET_TOKEN])
{
    LEAT_ASSERT(cids->entry[0].used && cids->entry[0].sequence == 0);
    cids->entry[0].has_token = true;
    memcpy(cids->entry[0].reset_token, token, LEAT_STATELESS_RESET_TOKEN);
}

static bool retire_sequence(leat_remote_cids *cids, uint64_t sequence)
{
    for (size_t i = 0; i < cids->retiring_count; i++) {
        if (cids->retiring[i].sequence == sequence) {
            return true;
        }
    }
    if (cids->retiring_count == LEAT_RETIRING_CIDS_MAX) {
        return false;
    }
    cids->retiring[cids->retiring_count++] = (leat_retiring){.sequence = sequence};
    return true;
}

leat_remote_cid *leat_remote_cids_find(leat_remote_cids *cids, uint64_t sequence)
{
    for (size_t i = 0; i < LEAT_REMOTE_CIDS_MAX; i++) {
        if (cids->entry[i].used && cids->entry[i].sequence == sequence) {
            return &cids->entry[i];
        }
    }
    return NULL;
}

leat_remote_cid *leat_remote_cids_fresh(leat_remote_cids *cids)
{
    leat_remote_cid *fresh = NULL;

    for (size_t i = 0; i < LEAT_REMOTE_CIDS_MAX; i++) {
        leat_remote_cid *entry = &cids->entry[i];

        if (entry->used && !entry->taken && (!fresh || entry->sequence < fresh->sequence)) {
            fresh = entry;
        }
    }
    return fresh;
}

void leat_remote_cids_use(leat_remote_cids *cids, const leat_remote_cid *entry)
{
    LEAT_ASSERT(entry->used);
    LEAT_ASSERT(entry->taken);
    cids->current = (uint8_t)(entry - cids->entry);
}

bool leat_remote_cids_retire(leat_remote_cids *cids, leat_remote_cid *entry)
{
    LEAT_ASSERT(entry->used && entry != &cids->entry[cids->current]);
    if (!retire_sequence(cids, entry->sequence)) {
        return false;
    }
    *entry = (leat_remote_cid){.used = false};
    return true;
}

/* Retires what lies below retire_prior_to; false when too many retirements are unacknowledged. */
static bool retire_below(leat_remote_cids *cids, leat_cids_change *change)
{
    for (size_t i = 0; i < LEAT_REMOTE_CIDS_MAX; i++) {
        leat_remote_cid *entry = &cids->entry[i];

        if (!entry->used || entry->sequence >= cids->retire_prior_to) {
            continue;
        }
        if (!retire_sequence(cids, entry->sequence)) {
            return false;
        }
        if (entry->has_token && entry->taken) {
            memcpy(change->dropped[change->dropped_count++], entry->reset_token,
                   LEAT_STATELESS_RESET_TOKEN);
        }
        *entry = (leat_remote_cid){.used = false};
    }
    return true;
}

/* Any of them. */
static leat_remote_cid *first_used(leat_remote_cids *cids)
{
    leat_remote_cid *entry = cids->entry;

    while (!entry->used) {
        entry++;
        LEAT_ASSERT(entry < cids->entry + LEAT_REMOTE_CIDS_MAX);
    }
    return entry;
}

/* The one in use went: one follows that no other path has, if there is any (s9.5). */
static void choose_current(leat_remote_cids *cids, leat_cids_change *change)
{
    leat_remote_cid *next = leat_remote_cids_fresh(cids);

    if (next) {
        next->taken = true;
        change->taken = next;
    } else {
        next = first_used(cids);
    }
    leat_remote_cids_use(cids, next);
}

/* Whether the frame repeats what is known: 1 the same, -1 in contradiction, 0 new. */
static int compare_known(const leat_remote_cids *cids, const leat_frame_new_connection_id *frame)
{
    for (size_t i = 0; i < LEAT_REMOTE_CIDS_MAX; i++) {
        const leat_remote_cid *entry = &cids->entry[i];
        bool same_id, same_sequence;

        if (!entry->used) {
            continue;
        }
        same_id = leat_cid_equal(&entry->cid, &frame->cid);
        same_sequence = entry->sequence == frame->sequence;
        if (same_id != same_sequence) {
            return -1;
        }
        if (same_id) {
            return entry->has_token && !leat_secret_equal(entry->reset_token, frame->reset_token,
                                                          LEAT_STATELESS_RESET_TOKEN)
                       ? -1
                       : 1;
        }
    }
    return 0;
}

/* Whether a sequence number has come before: one that is not held any more was retired by this
 * side, and a frame that was overtaken, or sent again for nothing, must not bring it back. Notes
 * it. */
static bool seen_before(leat_remote_cids *cids, uint64_t sequence)
{
    uint64_t back, bit;

    if (sequence >= cids->seen_end) {
        uint64_t ahead = sequence - cids->seen_end + 1;

        cids->seen = ahead < 64 ? cids->seen << ahead : 0;
        cids->seen_end = sequence + 1;
    }
    back = cids->seen_end - 1 - sequence;
    if (back >= 64) {
        return true;
    }
    bit = UINT64_C(1) << back;
    if (cids->seen & bit) {
        return true;
    }
    cids->seen |= bit;
    return false;
}

uint64_t leat_remote_cids_add(leat_remote_cids *cids, const leat_frame_new_connection_id *frame,
                              leat_cids_change *change)
{
    leat_remote_cid *slot = NULL;
    bool went = false;
    int known;

    change->added = change->taken = NULL;
    change->dropped_count = 0;
    if (leat_remote_cids_current(cids)->len == 0) {
        return LEAT_TE_PROTOCOL_VIOLATION;
    }
    known = compare_known(cids, frame);
    if (known < 0) {
        return LEAT_TE_PROTOCOL_VIOLATION;
    }
    if (seen_before(cids, frame->sequence) && known == 0) {
        known = 1;
    }
    if (frame->sequence < cids->retire_prior_to) {
        /* Late: its time was over before it came (§19.15). */
        if (known == 0 && !retire_sequence(cids, frame->sequence)) {
            return LEAT_TE_CONNECTION_ID_LIMIT_ERROR;
        }
        return LEAT_TE_NO_ERROR;
    }
    if (frame->retire_prior_to > cids->retire_prior_to) {
        cids->retire_prior_to = frame->retire_prior_to;
        if (!retire_below(cids, change)) {
            return LEAT_TE_CONNECTION_ID_LIMIT_ERROR;
        }
        went = !cids->entry[cids->current].used;
    }
    if (known == 0) {
        for (size_t i = 0; i < LEAT_REMOTE_CIDS_MAX && !slot; i++) {
            slot = cids->entry[i].used ? NULL : &cids->entry[i];
        }
        if (!slot) {
            return LEAT_TE_CONNECTION_ID_LIMIT_ERROR;
        }
        *slot = (leat_remote_cid){
            .sequence = frame->sequence, .cid = frame->cid, .used = true, .has_token = true};
        memcpy(slot->reset_token, frame->reset_token, LEAT_STATELESS_RESET_TOKEN);
        change->added = slot;
    }
    if (went) {
        choose_current(cids, change);
    }
    return LEAT_TE_NO_ERROR;
}

leat_retiring *leat_remote_cids_to_retire(leat_remote_cids *cids)
{
    for (size_t i = 0; i < cids->retiring_count; i++) {
        if (!cids->retiring[i].sent) {
            return &cids->retiring[i];
        }
    }
    return NULL;
}

void leat_remote_cids_retire_lost(leat_remote_cids *cids, uint64_t sequence)
{
    for (size_t i = 0; i < cids->retiring_count; i++) {
        if (cids->retiring[i].sequence == sequence) {
            cids->retiring[i].sent = false;
        }
    }
}

void leat_remote_cids_retire_acked(leat_remote_cids *cids, uint64_t sequence)
{
    for (size_t i = 0; i < cids->retiring_count; i++) {
        if (cids->retiring[i].sequence == sequence) {
            cids->retiring[i] = cids->retiring[--cids->retiring_count];
            return;
        }
    }
}

void leat_remote_cids_check(const leat_remote_cids *cids)
{
    LEAT_ASSERT(cids->current < LEAT_REMOTE_CIDS_MAX);
    LEAT_ASSERT(cids->entry[cids->current].used);
    LEAT_ASSERT(cids->entry[cids->current].taken);
    LEAT_ASSERT(cids->retiring_count <= LEAT_RETIRING_CIDS_MAX);
    for (size_t i = 0; i < LEAT_REMOTE_CIDS_MAX; i++) {
        if (cids->entry[i].used) {
            LEAT_ASSERT(cids->entry[i].sequence >= cids->retire_prior_to);
        }
    }
}
