/* tests/oom/test_media.c: memory fails where media takes it: when an object is made, and when a new
 * stream begins.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <leat/ccfb.h>
#include <leat/jitter.h>
#include <leat/nack.h>
#include <leat/pace.h>
#include <leat/twcc.h>

#include "mem/mem.h"

static leat_mem *mem;

/* Each is tried with another take that fails. It makes its object, uses it and frees it; an error
 * is LEAT_ERR_NOMEM, and leaves an object that works. */
typedef leat_err try_fn(void);

static leat_err twcc_recorder(void)
{
    leat_twcc_recorder recorder;
    uint8_t out[64];
    leat_err err = leat_twcc_recorder_init(&recorder, mem, 1, 1024);

    if (err == LEAT_OK) {
        leat_twcc_record(&recorder, 2, 7, LEAT_SECOND);
        assert_true(leat_twcc_build(&recorder, out, sizeof(out)) > 0);
        leat_twcc_recorder_free(&recorder);
    }
    return err;
}

static leat_err twcc_sender(void)
{
    leat_twcc_sender sender;
    leat_err err = leat_twcc_sender_init(&sender, mem, 1024);

    if (err == LEAT_OK) {
        leat_twcc_sent(&sender, LEAT_SECOND, 1000);
        leat_twcc_sender_free(&sender);
    }
    return err;
}

/* Three streams begin; one that there is no memory for begins with its next packet. */
static leat_err ccfb_recorder(void)
{
    leat_ccfb_settings settings;
    leat_ccfb_recorder recorder;
    uint8_t out[256];
    leat_err err, first = LEAT_OK;

    leat_ccfb_settings_init(&settings);
    err = leat_ccfb_recorder_init(&recorder, mem, &settings);
    if (err != LEAT_OK) {
        return err;
    }
    for (uint32_t ssrc = 1; ssrc <= 3; ssrc++) {
        err = leat_ccfb_record(&recorder, ssrc, 9, LEAT_SECOND, 0);
        if (err != LEAT_OK) {
            first = err;
            assert_int_equal(leat_ccfb_record(&recorder, ssrc, 10, LEAT_SECOND, 0), LEAT_OK);
        }
    }
    assert_true(leat_ccfb_build(&recorder, 2 * LEAT_SECOND, out, sizeof(out)) > 0);
    leat_ccfb_recorder_free(&recorder);
    return first;
}

static leat_err ccfb_sender(void)
{
    leat_ccfb_sender sender;
    leat_err err, first = LEAT_OK;

    err = leat_ccfb_sender_init(&sender, mem, 4, 256);
    if (err != LEAT_OK) {
        return err;
    }
    for (uint32_t ssrc = 1; ssrc <= 3; ssrc++) {
        err = leat_ccfb_sent(&sender, ssrc, 9, LEAT_SECOND, 1000);
        if (err != LEAT_OK) {
            first = err;
            assert_int_equal(leat_ccfb_sent(&sender, ssrc, 10, LEAT_SECOND, 1000), LEAT_OK);
        }
    }
    leat_ccfb_sender_free(&sender);
    return first;
}

static leat_err nack(void)
{
    leat_nack_settings settings;
    leat_nack missing;
    leat_err err;

    leat_nack_settings_init(&settings);
    err = leat_nack_init(&missing, mem, &settings);
    if (err == LEAT_OK) {
        leat_nack_on_packet(&missing, 1, LEAT_SECOND);
        leat_nack_on_packet(&missing, 5, LEAT_SECOND);
        leat_nack_free(&missing);
    }
    return err;
}

/* A packet that waits is in a buffer of the caller's. */
static leat_err resend(void)
{
    leat_resend again;
    leat_buf buf;
    leat_span out;
    leat_err err = leat_resend_init(&again, mem, 16, 10000, LEAT_MILLISECOND);

    if (err != LEAT_OK) {
        return err;
    }
    err = leat_buf_take(mem, 100, &buf);
    if (err == LEAT_OK) {
        memset(buf.data, 1, buf.len);
        leat_resend_keep(&again, 3, LEAT_SECOND, &buf);
        assert_true(leat_resend_find(&again, 3, 2 * LEAT_SECOND, &out) && out.len == 100);
    }
    leat_resend_free(&again);
    return err;
}

static leat_err jitter(void)
{
    leat_jitter_settings settings;
    leat_jitter waiting;
    leat_rtp_packet packet;
    leat_buf buf;
    leat_err err;

    leat_jitter_settings_init(&settings, 90000);
    err = leat_jitter_init(&waiting, mem, &settings);
    if (err != LEAT_OK) {
        return err;
    }
    err = leat_buf_take(mem, 20, &buf);
    if (err == LEAT_OK) {
        memset(buf.data, 0, buf.len);
        buf.data[0] = 0x80;
        assert_int_equal(leat_rtp_parse((leat_span){buf.data, buf.len}, &packet), LEAT_OK);
        assert_int_equal(leat_jitter_push(&waiting, &packet, &buf, LEAT_SECOND), LEAT_OK);
        leat_jitter_check(&waiting);
    }
    leat_jitter_free(&waiting);
    return err;
}

static leat_err pacer(void)
{
    leat_pace pace;
    leat_err err = leat_pace_init(&pace, mem, 64, 1000000);

    if (err == LEAT_OK) {
        leat_pace_free(&pace);
    }
    return err;
}

static leat_err history(void)
{
    leat_fb_history sent;
    leat_err err = leat_fb_history_init(&sent, mem, 64);

    if (err == LEAT_OK) {
        leat_fb_history_free(&sent);
    }
    return err;
}

/* How many takes there are to fail. */
static uint64_t try_all(try_fn *fn, leat_mem_fault kind)
{
    uint64_t n = 1;
    bool hit;

    do {
        leat_mem_stats stats;
        leat_err err;

        assert_int_equal(leat_mem_new(NULL, &mem), LEAT_OK);
        leat_mem_fault_set(mem, kind, n, false);
        err = fn();
        hit = leat_mem_fault_count(mem) > 0;
        assert_int_equal(err, hit ? LEAT_ERR_NOMEM : LEAT_OK);
        leat_mem_fault_set(mem, LEAT_MEM_FAULT_NONE, 0, false);
        assert_int_equal(fn(), LEAT_OK); /* and then it works */
        leat_mem_stats_get(mem, &stats);
        assert_int_equal(stats.buf_live, 0);
        assert_int_equal(stats.obj_live, 0);
        leat_mem_check(mem);
        leat_mem_free(mem);
        n += hit;
    } while (hit);
    return n - 1;
}

static void memory_fails_for_media(void **state)
{
    static const struct {
        try_fn *fn;
        uint64_t takes;
    } kinds[] = {{twcc_recorder, 1}, {twcc_sender, 1}, {ccfb_recorder, 5},
                 {ccfb_sender, 5},   {nack, 1},        {resend, 2},
                 {jitter, 2},        {pacer, 1},       {history, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        assert_int_equal(try_all(kinds[i].fn, LEAT_MEM_FAULT_TAKE), kinds[i].takes);
        assert_true(try_all(kinds[i].fn, LEAT_MEM_FAULT_GROWTH) >= 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_fails_for_media),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
