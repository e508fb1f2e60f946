/* tests/unit/endpoint/test_routable.c: connection IDs that route, by the draft's vector, and of an
 * endpoint that gives them out.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "conn/conn.h"
#include "echo.h"

/* Appendix B.1 of the draft. Its second row is misprinted: nine hex digits of a nonce. */
static const leat_routable first = {
    .config = 0, .server_id_len = 3, .nonce_len = 4, .server_id = {0xc4, 0x60, 0x5e}};

static void the_drafts_vector_comes_out(void **state)
{
    static const uint8_t want[] = {0x07, 0xc4, 0x60, 0x5e, 0x45, 0x04, 0xcc, 0x4f};
    uint8_t cid[8] = {0xff, 0xff, 0xff, 0xff, 0x45, 0x04, 0xcc, 0x4f};
    leat_routable r = first;
    leat_span id;

    (void)state;
    assert_int_equal(leat_routable_len(&r), sizeof(cid));
    leat_routable_make(cid, sizeof(cid), &r);
    assert_memory_equal(cid, want, sizeof(want));
    assert_true(leat_routable_read(&r, (leat_span){want, sizeof(want)}, &id));
    assert_int_equal(id.len, 3);
    assert_memory_equal(id.data, "\xc4\x60\x5e", 3);
}

static void configuration_and_length_are_told_apart(void **state)
{
    leat_routable r = first, other = first;
    uint8_t cid[8] = {0x1f, 0, 0, 0, 1, 2, 3, 4};
    leat_span id;

    (void)state;
    r.config = 5;
    r.hide_length = true;
    leat_routable_make(cid, sizeof(cid), &r);
    assert_int_equal(cid[0], 5 << 5 | 0x1f); /* as random as it came */
    assert_true(leat_routable_read(&r, (leat_span){cid, sizeof(cid)}, &id));
    assert_false(leat_routable_read(&r, (leat_span){cid, sizeof(cid) - 1}, &id));
    assert_false(leat_routable_read(&first, (leat_span){cid, sizeof(cid)}, &id));
    other.hide_length = true; /* so that the configuration alone tells them apart */
    assert_false(leat_routable_read(&other, (leat_span){cid, sizeof(cid)}, &id));
    r.hide_length = false; /* then 31 is not the length */
    assert_false(leat_routable_read(&r, (leat_span){cid, sizeof(cid)}, &id));
    assert_false(leat_routable_read(&r, (leat_span){NULL, 0}, &id));
}

static void lengths_out_of_bounds_are_refused(void **state)
{
    leat_routable r = first;

    (void)state;
    assert_int_equal(leat_routable_check(&r), LEAT_OK);
    r.server_id_len = 15;
    assert_int_equal(leat_routable_check(&r), LEAT_OK); /* 20 bytes in all */
    r.nonce_len = 5;
    assert_int_equal(leat_routable_check(&r), LEAT_ERR_INVALID);
    r = first;
    r.nonce_len = 3;
    assert_int_equal(leat_routable_check(&r), LEAT_ERR_INVALID);
    r = first;
    r.server_id_len = 0;
    assert_int_equal(leat_routable_check(&r), LEAT_ERR_INVALID);
    r = first;
    r.config = 7;
    assert_int_equal(leat_routable_check(&r), LEAT_ERR_INVALID);
}

/* ---- an endpoint ---- */

static leat_routable routable;
static unsigned routed, others;

/* What the balancer sees: the client's first IDs are its own choice, all later ones route. */
static bool balance(leat_pair *pair, bool to_server, uint8_t *data, size_t *len)
{
    leat_span cid = {data + 1, leat_routable_len(&routable)}, id;

    (void)pair, (void)len;
    if (!to_server) {
        return true;
    }
    if (data[0] & LEAT_FIRST_LONG) {
        cid = (leat_span){data + 6, data[5]};
    }
    if (leat_routable_read(&routable, cid, &id)) {
        assert_int_equal(id.len, routable.server_id_len);
        assert_memory_equal(id.data, routable.server_id, id.len);
        routed++;
    } else {
        assert_true(data[0] & LEAT_FIRST_LONG);
        others++;
    }
    return true;
}

static void check_endpoint(bool retry)
{
    leat_echo e;

    routable = (leat_routable){.config = 2,
                               .server_id_len = 5,
                               .nonce_len = 9,
                               .server_id = {0x35, 0x0d, 0x28, 0xb4, 0x20}};
    routed = others = 0;
    leat_echo_prepare(&e);
    e.setup.server.conn.wait_for_validation = retry;
    e.setup.server.make_cid = leat_routable_make;
    e.setup.server.make_cid_user = &routable;
    e.setup.server.cid_len = leat_routable_len(&routable);
    leat_pair_init(&e.pair, &e.setup);
    e.pair.filter = balance;
    leat_pair_connect(&e.pair, &e.setup, &leat_echo_client_events, &e.client);
    assert_true(leat_pair_run(&e.pair, leat_echo_both_connected, &e, 5 * LEAT_SECOND));
    leat_echo_bytes(&e, 100000, 20 * LEAT_SECOND);
    assert_true(routed > 20);
    assert_true(others <= 2);
    /* Those held in reserve too. */
    for (size_t i = 0; i < LEAT_REMOTE_CIDS_MAX; i++) {
        const leat_remote_cid *entry = &e.pair.conn->remote_cids.entry[i];
        leat_span id;

        assert_true(!entry->used || leat_routable_read(&routable, leat_cid_span(&entry->cid), &id));
    }
    leat_echo_finish(&e);
}

static void an_endpoint_gives_routable_ids_out(void **state)
{
    (void)state;
    check_endpoint(false);
}

static void so_it_does_in_a_retry(void **state)
{
    (void)state;
    check_endpoint(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_drafts_vector_comes_out),
        cmocka_unit_test(configuration_and_length_are_told_apart),
        cmocka_unit_test(lengths_out_of_bounds_are_refused),
        cmocka_unit_test(an_endpoint_gives_routable_ids_out),
        cmocka_unit_test(so_it_does_in_a_retry),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
