/* tests/unit/conn/test_parts.c: the small parts of a connection, each alone: connection IDs, path,
 * datagram size, keys.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conn/cid.h"
#include "conn/path.h"
#include "conn/rekey.h"

static leat_cid cid_of(uint8_t fill)
{
    leat_cid cid = {.len = 8};

    memset(cid.data, fill, 8);
    return cid;
}

/* ---- IDs given out ---- */

static void local_ids_are_issued_up_to_the_peers_limit(void **state)
{
    leat_local_cids cids;
    leat_cid first = cid_of(1);
    leat_local_cid *entry;
    unsigned made = 0;

    (void)state;
    leat_local_cids_init(&cids, &first);
    assert_null(leat_local_cids_wanted(&cids));
    cids.want = 4;
    while ((entry = leat_local_cids_wanted(&cids)) != NULL) {
        leat_cid next = cid_of((uint8_t)(2 + made++));

        leat_local_cids_fill(&cids, entry, &next);
        leat_local_cids_check(&cids);
    }
    assert_int_equal(made, 3);
    assert_true(leat_local_cids_any_pending(&cids));
    for (unsigned i = 0; i < 3; i++) {
        entry = leat_local_cids_pending(&cids);
        assert_non_null(entry);
        leat_local_cids_sent(&cids, entry);
    }
    assert_false(leat_local_cids_any_pending(&cids));
    leat_local_cids_lost(&cids, 2);
    assert_int_equal(leat_local_cids_pending(&cids)->sequence, 2);
}

static void a_lost_frame_of_a_retired_id_is_not_sent_again(void **state)
{
    leat_local_cids cids;
    leat_cid first = cid_of(1), second = cid_of(2), retired;

    (void)state;
    leat_local_cids_init(&cids, &first);
    cids.want = 2;
    leat_local_cids_fill(&cids, leat_local_cids_wanted(&cids), &second);
    leat_local_cids_sent(&cids, leat_local_cids_pending(&cids));
    assert_int_equal(leat_local_cids_retire(&cids, 1, leat_cid_span(&first), &retired), 0);
    assert_true(leat_cid_equal(&retired, &second));
    leat_local_cids_lost(&cids, 1);
    assert_false(leat_local_cids_any_pending(&cids));
    assert_int_equal(leat_local_cids_retire(&cids, 1, leat_cid_span(&first), &retired), 0);
    assert_int_equal(retired.len, 0);
    assert_int_equal(leat_local_cids_retire(&cids, 2, leat_cid_span(&first), &retired),
                     LEAT_TE_PROTOCOL_VIOLATION);
    assert_int_equal(leat_local_cids_retire(&cids, 0, leat_cid_span(&first), &retired),
                     LEAT_TE_PROTOCOL_VIOLATION);
}

/* RFC 9000 s19.16: one that was made and not yet told is one that the peer cannot know of. */
static void retiring_an_id_before_it_is_told_is_an_error(void **state)
{
    leat_local_cids cids;
    leat_cid first = cid_of(1), second = cid_of(2), retired;

    (void)state;
    leat_local_cids_init(&cids, &first);
    cids.want = 2;
    leat_local_cids_fill(&cids, leat_local_cids_wanted(&cids), &second);
    assert_int_equal(leat_local_cids_retire(&cids, 1, leat_cid_span(&first), &retired),
                     LEAT_TE_PROTOCOL_VIOLATION);
    leat_local_cids_sent(&cids, leat_local_cids_pending(&cids));
    leat_local_cids_lost(&cids, 1); /* as it seems */
    assert_int_equal(leat_local_cids_retire(&cids, 1, leat_cid_span(&first), &retired), 0);
    assert_true(leat_cid_equal(&retired, &second));
    leat_local_cids_check(&cids);
}

/* ---- IDs of the peer ---- */

static leat_frame_new_connection_id frame_of(uint64_t sequence, uint64_t prior)
{
    leat_frame_new_connection_id frame = {.sequence = sequence, .retire_prior_to = prior};

    frame.cid = cid_of((uint8_t)(0x10 + sequence));
    memset(frame.reset_token, (int)sequence, sizeof(frame.reset_token));
    return frame;
}

static void retire_prior_to_moves_to_the_next_id(void **state)
{
    leat_remote_cids cids;
    leat_cids_change change;
    leat_cid first = cid_of(0x10);
    leat_frame_new_connection_id frame = frame_of(1, 0);
    uint8_t token[16] = {9};

    (void)state;
    leat_remote_cids_init(&cids, &first);
    leat_remote_cids_set_token(&cids, token);
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0);
    assert_non_null(change.added);
    assert_int_equal(cids.current, 0);
    frame = frame_of(2, 1);
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0);
    assert_int_equal(change.dropped_count, 1);
    assert_memory_equal(change.dropped[0], token, 16);
    assert_int_equal(leat_remote_cids_current(&cids)->data[0], 0x11);
    assert_int_equal(leat_remote_cids_to_retire(&cids)->sequence, 0);
    leat_remote_cids_to_retire(&cids)->sent = true;
    assert_false(leat_remote_cids_any_to_retire(&cids));
    leat_remote_cids_retire_lost(&cids, 0);
    assert_true(leat_remote_cids_any_to_retire(&cids));
    leat_remote_cids_retire_acked(&cids, 0);
    assert_int_equal(cids.retiring_count, 0);
    leat_remote_cids_check(&cids);
}

/* s9.5: an ID that another path uses is not for this one, and its token counts already. */
static void the_next_id_is_one_that_no_path_has(void **state)
{
    leat_remote_cids cids;
    leat_cids_change change;
    leat_cid first = cid_of(0x10);
    leat_frame_new_connection_id frame = frame_of(1, 0);

    (void)state;
    leat_remote_cids_init(&cids, &first);
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0);
    assert_null(change.taken);
    leat_remote_cids_find(&cids, 1)->taken = true; /* by a path that is probed */
    frame = frame_of(3, 0);
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0);
    frame = frame_of(2, 0);
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0);
    assert_int_equal(leat_remote_cids_fresh(&cids)->sequence, 2);
    frame = frame_of(4, 1);
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0);
    assert_non_null(change.taken);
    assert_int_equal(change.taken->sequence, 2);
    assert_int_equal(leat_remote_cids_current(&cids)->data[0], 0x12);
    assert_int_equal(leat_remote_cids_fresh(&cids)->sequence, 3);
    leat_remote_cids_check(&cids);
    /* Of what is retired the tokens of IDs that were used are told alone. */
    frame = frame_of(5, 5);
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0);
    assert_int_equal(change.dropped_count, 2);
    assert_int_equal(change.dropped[0][0] + change.dropped[1][0], 1 + 2);
    assert_int_equal(change.taken->sequence, 5);
    leat_remote_cids_check(&cids);
}

static void a_late_id_is_retired_at_once(void **state)
{
    leat_remote_cids cids;
    leat_cids_change change;
    leat_cid first = cid_of(0x10);
    leat_frame_new_connection_id frame = frame_of(5, 5);

    (void)state;
    leat_remote_cids_init(&cids, &first);
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0);
    frame = frame_of(3, 0);
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0);
    assert_null(change.added);
    assert_int_equal(cids.retiring_count, 2);
    /* The same again asks for nothing new. */
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0);
    assert_int_equal(cids.retiring_count, 2);
    leat_remote_cids_check(&cids);
}

static void what_the_peer_may_not_do_with_ids(void **state)
{
    leat_remote_cids cids;
    leat_cids_change change;
    leat_cid first = cid_of(0x10), empty = {.len = 0};
    leat_frame_new_connection_id frame = frame_of(1, 0), other;

    (void)state;
    leat_remote_cids_init(&cids, &empty);
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), LEAT_TE_PROTOCOL_VIOLATION);
    leat_remote_cids_init(&cids, &first);
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0);
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0); /* a repeat */
    assert_null(change.added);
    other = frame;
    other.reset_token[0] ^= 1;
    assert_int_equal(leat_remote_cids_add(&cids, &other, &change), LEAT_TE_PROTOCOL_VIOLATION);
    other = frame;
    other.sequence = 2; /* one ID under two numbers */
    assert_int_equal(leat_remote_cids_add(&cids, &other, &change), LEAT_TE_PROTOCOL_VIOLATION);
    for (uint64_t s = 2; s < LEAT_REMOTE_CIDS_MAX; s++) {
        frame = frame_of(s, 0);
        assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0);
    }
    frame = frame_of(100, 0);
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change),
                     LEAT_TE_CONNECTION_ID_LIMIT_ERROR);
}

/* seed 1895 of the simulator: the frame was sent again for nothing and arrived after the ID had
 * been retired, which put it in use again while its retirement was still to be sent. */
static void a_retired_id_does_not_come_back(void **state)
{
    leat_remote_cids cids;
    leat_cids_change change;
    leat_cid first = cid_of(0x10);
    leat_frame_new_connection_id frame = frame_of(1, 0);

    (void)state;
    leat_remote_cids_init(&cids, &first);
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0);
    assert_true(leat_remote_cids_retire(&cids, leat_remote_cids_find(&cids, 1)));
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0);
    assert_null(change.added);
    assert_null(leat_remote_cids_find(&cids, 1));
    leat_remote_cids_to_retire(&cids)->sent = true;
    leat_remote_cids_retire_acked(&cids, 1);
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0);
    assert_null(leat_remote_cids_find(&cids, 1));
    frame = frame_of(200, 0); /* far ahead: those between may still come, near it */
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0);
    frame = frame_of(199, 0);
    assert_int_equal(leat_remote_cids_add(&cids, &frame, &change), 0);
    assert_non_null(leat_remote_cids_find(&cids, 199));
    leat_remote_cids_check(&cids);
}

/* ---- path ---- */

/* Where paths beyond the first come from. */
typedef struct room {
    leat_mem *mem;
    leat_pool pool;
} room;

static void room_make(room *r)
{
    assert_int_equal(leat_mem_new(NULL, &r->mem), LEAT_OK);
    leat_pool_init(&r->pool, r->mem, (LEAT_PATHS_MAX - 1) * sizeof(leat_path), "paths");
}

static void room_end(room *r)
{
    leat_pool_free(&r->pool);
    leat_mem_free(r->mem);
}

static void three_times_what_came_may_go(void **state)
{
    leat_paths paths;
    leat_addr addr = {.family = 4};
    leat_path *path;

    (void)state;
    leat_paths_init(&paths, NULL, &addr, &addr, false); /* one path takes nothing from it */
    path = leat_paths_active(&paths);
    assert_int_equal(leat_path_allowance(path), 0);
    leat_path_on_received(path, 1200);
    leat_path_on_sent(path, 3599);
    assert_int_equal(leat_path_allowance(path), 1);
    leat_path_on_sent(path, 1);
    assert_int_equal(leat_path_allowance(path), 0);
    leat_path_on_sent(path, 100); /* more than allowed is not less than nothing */
    assert_int_equal(leat_path_allowance(path), 0);
    leat_path_validate(path);
    assert_true(leat_path_allowance(path) == SIZE_MAX);
}

static void the_newest_challenges_are_answered(void **state)
{
    leat_paths paths;
    leat_addr addr = {.family = 4};
    leat_path *path;

    (void)state;
    leat_paths_init(&paths, NULL, &addr, &addr, true);
    path = leat_paths_active(&paths);
    assert_null(leat_path_response(path));
    for (uint8_t i = 0; i < 10; i++) {
        uint8_t data[8] = {i};

        leat_path_challenged(path, data);
    }
    for (uint8_t i = 10 - LEAT_PATH_RESPONSES_MAX; i < 10; i++) {
        assert_int_equal(leat_path_response(path)[0], i);
        leat_path_responded(path);
    }
    assert_null(leat_path_response(path));
}

/* A peer without a fresh connection ID cannot follow yet: what it sends to where it is must arrive.
 */
static void the_path_where_the_peer_is_stays(void **state)
{
    leat_paths paths;
    leat_addr here = {.family = 4, .port = 1}, there = {.family = 4};
    room r;

    (void)state;
    room_make(&r);
    leat_paths_init(&paths, &r.pool, &here, &here, true);
    there.port = 2;
    paths.active = paths.fallback = leat_paths_index(&paths, leat_paths_add(&paths, &there, &here));
    leat_paths_at(&paths, paths.heard)->expire_at = 10;
    assert_null(leat_paths_expired(&paths, 20));
    assert_true(leat_paths_deadline(&paths) == LEAT_TIME_NEVER);
    for (uint16_t port = 3; port < 20; port++) {
        there.port = port;
        assert_non_null(leat_paths_add(&paths, &there, &here));
        assert_non_null(leat_paths_find(&paths, &here, &here));
    }
    paths.heard = paths.active; /* it has followed */
    assert_ptr_equal(leat_paths_expired(&paths, 20), leat_paths_find(&paths, &here, &here));
    leat_paths_check(&paths);
    leat_paths_free(&paths);
    room_end(&r);
}

static void room_for_several_goes_when_one_path_is_left(void **state)
{
    leat_paths paths;
    leat_addr here = {.family = 4, .port = 1}, there = {.family = 4, .port = 2};
    leat_path *moved_to;
    room r;

    (void)state;
    room_make(&r);
    leat_paths_init(&paths, &r.pool, &here, &here, true);
    leat_paths_shrink(&paths);
    moved_to = leat_paths_add(&paths, &there, &here);
    moved_to->sent = 17;
    leat_paths_shrink(&paths);
    assert_int_equal(leat_pool_live(&r.pool), 1); /* two are in use */
    paths.active = paths.fallback = paths.heard = leat_paths_index(&paths, moved_to);
    leat_paths_drop(&paths, leat_paths_find(&paths, &here, &here));
    leat_paths_shrink(&paths);
    assert_int_equal(leat_pool_live(&r.pool), 0);
    leat_paths_check(&paths);
    assert_ptr_equal(leat_paths_active(&paths), &paths.first);
    assert_int_equal(paths.first.sent, 17);
    assert_null(leat_paths_find(&paths, &here, &here));
    room_end(&r);
}

static void without_memory_there_is_one_path(void **state)
{
    leat_paths paths;
    leat_addr here = {.family = 4, .port = 1}, there = {.family = 4, .port = 2};
    room r;

    (void)state;
    room_make(&r);
    leat_paths_init(&paths, &r.pool, &here, &here, true);
    leat_mem_fault_set(r.mem, LEAT_MEM_FAULT_TAKE, 1, true);
    assert_null(leat_paths_add(&paths, &there, &here));
    leat_paths_check(&paths);
    leat_mem_fault_set(r.mem, LEAT_MEM_FAULT_NONE, 0, false);
    assert_non_null(leat_paths_add(&paths, &there, &here));
    leat_paths_free(&paths);
    room_end(&r);
}

/* ---- keys ---- */

typedef struct ends {
    leat_rekey a, b;
} ends;

static void set_up(ends *e, uint64_t packets)
{
    const leat_schedule *schedule = leat_schedule_for(LEAT_VERSION_1);
    uint8_t one[32] = {1}, two[32] = {2};

    leat_rekey_init(&e->a, packets);
    leat_rekey_init(&e->b, packets);
    leat_rekey_set_tx(&e->a, schedule, LEAT_AEAD_AES_128_GCM, one);
    leat_rekey_set_rx(&e->b, schedule, LEAT_AEAD_AES_128_GCM, one);
    leat_rekey_set_tx(&e->b, schedule, LEAT_AEAD_AES_128_GCM, two);
    leat_rekey_set_rx(&e->a, schedule, LEAT_AEAD_AES_128_GCM, two);
}

static void assert_same_key(const leat_packet_keys *a, const leat_packet_keys *b)
{
    assert_memory_equal(a->key, b->key, 16);
    assert_memory_equal(a->iv, b->iv, 12);
}

static void an_update_is_followed_and_answered(void **state)
{
    ends e;
    leat_packet_keys *keys;
    uint64_t error;

    (void)state;
    set_up(&e, 0);
    assert_false(leat_rekey_may_update(&e.a)); /* nothing acknowledged yet */
    leat_rekey_on_acked(&e.a, 3, 700);
    assert_true(leat_rekey_may_update(&e.a));
    assert_true(leat_rekey_should_update(&e.a, 700, 300)); /* it is the first */
    leat_rekey_update(&e.a, NULL, 10);
    assert_int_equal(e.a.tx_phase, 1);
    leat_rekey_on_acked(&e.a, 9, 800); /* of the phase before */
    assert_false(leat_rekey_may_update(&e.a));
    /* b receives number 10 in phase 1. */
    keys = leat_rekey_for(&e.b, true, 10);
    assert_ptr_equal(keys, &e.b.rx_next);
    assert_same_key(keys, &e.a.tx);
    assert_true(leat_rekey_on_opened(&e.b, NULL, keys, 10, 10, 20, 1000, 300, &error));
    assert_int_equal(error, LEAT_TE_NO_ERROR);
    assert_int_equal(e.b.rx_phase, 1);
    assert_int_equal(e.b.tx_phase, 1); /* it follows before it acknowledges (RFC 9001 s6.2) */
    assert_int_equal(e.b.tx_first_pn, 20);
    /* A late packet of the former phase has its keys until their time is over. */
    assert_ptr_equal(leat_rekey_for(&e.b, false, 9), &e.b.rx_prev);
    leat_rekey_on_time(&e.b, NULL, 1299);
    assert_ptr_equal(leat_rekey_for(&e.b, false, 9), &e.b.rx_prev);
    leat_rekey_on_time(&e.b, NULL, 1300);
    assert_ptr_equal(leat_rekey_for(&e.b, false, 9), &e.b.rx_next);
    /* a receives the answer: no further update of its own. */
    keys = leat_rekey_for(&e.a, true, 20);
    assert_same_key(keys, &e.b.tx);
    assert_true(leat_rekey_on_opened(&e.a, NULL, keys, 20, 20, 11, 1000, 300, &error));
    assert_int_equal(e.a.tx_phase, 1);
    assert_false(leat_rekey_may_update(&e.a)); /* an answer that acknowledges nothing */
    leat_rekey_on_acked(&e.a, 10, 1000);
    leat_rekey_on_acked(&e.a, 11, 1100);
    assert_true(leat_rekey_may_update(&e.a));
    /* The next one is for when the peer has dropped its former keys (s6.5). */
    assert_false(leat_rekey_should_update(&e.a, 1299, 300));
    assert_true(leat_rekey_should_update(&e.a, 1300, 300));
    leat_rekey_free(&e.a, NULL);
    leat_rekey_free(&e.b, NULL);
}

static void a_newer_phase_with_a_lower_number_is_an_error(void **state)
{
    ends e;
    uint64_t error;

    (void)state;
    set_up(&e, 0);
    assert_false(leat_rekey_on_opened(&e.b, NULL, &e.b.rx_next, 9, 10, 0, 0, 100, &error));
    assert_int_equal(error, LEAT_TE_KEY_UPDATE_ERROR);
    assert_true(leat_rekey_on_opened(&e.b, NULL, &e.b.rx_next, 10, 10, 0, 0, 100, &error));
    assert_int_equal(error, LEAT_TE_NO_ERROR);
    leat_rekey_free(&e.a, NULL);
    leat_rekey_free(&e.b, NULL);
}

static void limits_ask_for_an_update_and_then_forbid(void **state)
{
    ends e;

    (void)state;
    set_up(&e, 100);
    e.a.tx.sealed = 99;
    assert_false(leat_rekey_wants_update(&e.a));
    e.a.tx.sealed = 100;
    assert_true(leat_rekey_wants_update(&e.a));
    assert_false(leat_rekey_exhausted(&e.a, 1));
    e.a.packets = 0;
    assert_false(leat_rekey_wants_update(&e.a));
    e.a.tx.sealed = (1u << 23) - (1u << 20); /* seven eighths of 2^23 (RFC 9001 s6.6) */
    assert_true(leat_rekey_wants_update(&e.a));
    e.a.tx.sealed = (1u << 23) - 64;
    assert_false(leat_rekey_exhausted(&e.a, 64)); /* so many may still go */
    assert_true(leat_rekey_exhausted(&e.a, 65));
    e.a.forged = (UINT64_C(1) << 52) - 2;
    assert_false(leat_rekey_on_forged(&e.a));
    assert_true(leat_rekey_on_forged(&e.a));
    leat_rekey_free(&e.a, NULL);
    leat_rekey_free(&e.b, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(local_ids_are_issued_up_to_the_peers_limit),
        cmocka_unit_test(a_lost_frame_of_a_retired_id_is_not_sent_again),
        cmocka_unit_test(retire_prior_to_moves_to_the_next_id),
        cmocka_unit_test(retiring_an_id_before_it_is_told_is_an_error),
        cmocka_unit_test(the_next_id_is_one_that_no_path_has),
        cmocka_unit_test(a_late_id_is_retired_at_once),
        cmocka_unit_test(a_retired_id_does_not_come_back),
        cmocka_unit_test(what_the_peer_may_not_do_with_ids),
        cmocka_unit_test(three_times_what_came_may_go),
        cmocka_unit_test(the_newest_challenges_are_answered),
        cmocka_unit_test(the_path_where_the_peer_is_stays),
        cmocka_unit_test(room_for_several_goes_when_one_path_is_left),
        cmocka_unit_test(without_memory_there_is_one_path),
        cmocka_unit_test(an_update_is_followed_and_answered),
        cmocka_unit_test(a_newer_phase_with_a_lower_number_is_an_error),
        cmocka_unit_test(limits_ask_for_an_update_and_then_forbid),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
