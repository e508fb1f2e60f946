/* leat/pace.h: what goes first, how fast, and what does not fit. */
#include "media_test.h"

#include <leat/limits.h>
#include <leat/pace.h>

typedef struct rig {
    leat_mem *mem;
    leat_pace pace;
} rig;

/* 1000 bytes take a millisecond. */
static void set_up(rig *r, size_t packets)
{
    r->mem = new_mem();
    assert_int_equal(leat_pace_init(&r->pace, r->mem, packets, 8000000), LEAT_OK);
}

static void tear_down(rig *r)
{
    leat_pace_free(&r->pace);
    leat_mem_free(r->mem);
}

static void push(rig *r, leat_pace_kind kind, uintptr_t name, uint32_t size)
{
    assert_int_equal(leat_pace_push(&r->pace, kind, (void *)name, size, 0), LEAT_OK);
}

static uintptr_t pop(rig *r, leat_time now)
{
    leat_pace_item item;

    return leat_pace_pop(&r->pace, now, &item) ? (uintptr_t)item.packet : 0;
}

static void the_important_go_first_and_the_old_before_the_new(void **state)
{
    rig r;

    (void)state;
    set_up(&r, 0);
    push(&r, LEAT_PACE_PADDING, 7, 1000);
    push(&r, LEAT_PACE_RETRANSMISSION, 5, 1000);
    push(&r, LEAT_PACE_VIDEO, 3, 1000);
    push(&r, LEAT_PACE_VIDEO, 4, 1000);
    push(&r, LEAT_PACE_AUDIO, 1, 100);
    push(&r, LEAT_PACE_AUDIO, 2, 100);
    push(&r, LEAT_PACE_RETRANSMISSION, 6, 1000);
    assert_int_equal(leat_pace_queued(&r.pace), 5200);
    for (uintptr_t name = 1; name <= 7; name++) {
        assert_int_equal(pop(&r, LEAT_SECOND * name), name);
    }
    assert_int_equal(pop(&r, LEAT_SECOND * 9), 0);
    assert_int_equal(leat_pace_queued(&r.pace), 0);
    assert_int_equal(leat_pace_deadline(&r.pace), LEAT_TIME_NEVER);
    tear_down(&r);
}

/* A thousand packets of a millisecond each, asked for whenever the deadline says so: they take a
 * second, less what may be made up for. */
static void packets_leave_at_the_rate(void **state)
{
    leat_time now = LEAT_SECOND, last = now;
    unsigned left = 0;
    rig r;

    (void)state;
    set_up(&r, 1024);
    for (uintptr_t i = 1; i <= 1000; i++) {
        push(&r, LEAT_PACE_VIDEO, i, 1000);
    }
    assert_int_equal(leat_pace_queue_time(&r.pace), LEAT_SECOND);
    while (leat_pace_deadline(&r.pace) != LEAT_TIME_NEVER) {
        leat_time next = leat_pace_deadline(&r.pace);

        now = next > now ? next : now;
        while (pop(&r, now)) {
            left++;
            last = now;
        }
    }
    assert_int_equal(left, 1000);
    /* Five milliseconds at once, and the first of the others with them; one each millisecond. */
    assert_int_equal(last - LEAT_SECOND, 994 * MS);
    tear_down(&r);
}

static void a_pause_is_not_made_up_for(void **state)
{
    rig r;

    (void)state;
    set_up(&r, 64);
    push(&r, LEAT_PACE_VIDEO, 1, 1000);
    assert_int_equal(pop(&r, LEAT_SECOND), 1);
    for (uintptr_t i = 2; i <= 20; i++) {
        push(&r, LEAT_PACE_VIDEO, i, 1000);
    }
    for (uintptr_t i = 2; i <= 7; i++) { /* 5 ms, and the packet that goes over it */
        assert_int_equal(pop(&r, 100 * LEAT_SECOND), i);
    }
    assert_int_equal(pop(&r, 100 * LEAT_SECOND), 0);
    assert_int_equal(leat_pace_deadline(&r.pace), 100 * LEAT_SECOND + MS);
    tear_down(&r);
}

static void audio_does_not_wait_and_the_others_wait_for_it(void **state)
{
    rig r;

    (void)state;
    set_up(&r, 64);
    for (uintptr_t i = 1; i <= 10; i++) {
        push(&r, LEAT_PACE_AUDIO, i, 1000);
    }
    push(&r, LEAT_PACE_VIDEO, 11, 1000);
    assert_int_equal(leat_pace_deadline(&r.pace), 0);
    for (uintptr_t i = 1; i <= 10; i++) {
        assert_int_equal(pop(&r, LEAT_SECOND), i);
    }
    assert_int_equal(pop(&r, LEAT_SECOND), 0);
    /* Ten milliseconds of audio, of which five were to be had. */
    assert_int_equal(leat_pace_deadline(&r.pace), LEAT_SECOND + 5 * MS);
    assert_int_equal(pop(&r, LEAT_SECOND + 5 * MS), 11);
    tear_down(&r);
}

static void a_new_rate_holds_from_the_next_packet_on(void **state)
{
    rig r;

    (void)state;
    set_up(&r, 64);
    for (uintptr_t i = 1; i <= 10; i++) {
        push(&r, LEAT_PACE_VIDEO, i, 10000);
    }
    assert_int_equal(pop(&r, LEAT_SECOND), 1);
    assert_int_equal(leat_pace_deadline(&r.pace), LEAT_SECOND + 5 * MS); /* of ten, five are had */
    leat_pace_set_rate(&r.pace, 80000000);
    assert_int_equal(pop(&r, LEAT_SECOND + 5 * MS), 2);
    assert_int_equal(leat_pace_deadline(&r.pace), LEAT_SECOND + 6 * MS);
    leat_pace_set_rate(&r.pace, 0);
    assert_int_equal(leat_pace_deadline(&r.pace), LEAT_TIME_NEVER);
    assert_int_equal(pop(&r, 9 * LEAT_SECOND), 0);
    push(&r, LEAT_PACE_AUDIO, 99, 100);
    assert_int_equal(pop(&r, 9 * LEAT_SECOND), 99);
    tear_down(&r);
}

static void what_does_not_fit_is_refused_and_late_ones_are_dropped(void **state)
{
    leat_pace_item item;
    rig r;

    (void)state;
    set_up(&r, 16);
    for (unsigned round = 0; round < 5; round++) { /* the rings go round */
        for (uintptr_t i = 1; i <= 16; i++) {
            push(&r, LEAT_PACE_VIDEO, i, 100);
        }
        assert_int_equal(leat_pace_push(&r.pace, LEAT_PACE_VIDEO, NULL, 100, 0), LEAT_ERR_LIMIT);
        assert_int_equal(leat_pace_queued(&r.pace), 1600);
        push(&r, LEAT_PACE_AUDIO, 50, 7);
        assert_int_equal(pop(&r, LEAT_SECOND * (round + 1)), 50);
        for (uintptr_t i = 1; i <= 16; i++) {
            assert_true(leat_pace_drop(&r.pace, LEAT_PACE_VIDEO, &item));
            assert_int_equal((uintptr_t)item.packet, i);
            assert_int_equal(item.size, 100);
        }
        assert_false(leat_pace_drop(&r.pace, LEAT_PACE_VIDEO, &item));
        assert_int_equal(leat_pace_queued(&r.pace), 0);
    }
    tear_down(&r);
}

static void padding_has_room_when_nothing_waits(void **state)
{
    rig r;

    (void)state;
    set_up(&r, 16);
    assert_int_equal(leat_pace_room(&r.pace, LEAT_SECOND), 5001); /* 5 ms, and a byte */
    leat_pace_sent(&r.pace, LEAT_SECOND, 6000);
    assert_int_equal(leat_pace_room(&r.pace, LEAT_SECOND), 0);
    assert_int_equal(leat_pace_room(&r.pace, LEAT_SECOND + MS), 1);
    push(&r, LEAT_PACE_PADDING, 1, 100);
    assert_int_equal(leat_pace_room(&r.pace, LEAT_SECOND + 9 * MS), 0);
    tear_down(&r);
}

static void wrong_settings_are_refused(void **state)
{
    leat_mem *mem = new_mem();
    leat_pace pace;

    (void)state;
    assert_int_equal(leat_pace_init(&pace, mem, 100, 1000), LEAT_ERR_INVALID);
    assert_int_equal(leat_pace_init(&pace, mem, 8, 1000), LEAT_ERR_INVALID);
    assert_int_equal(leat_pace_init(&pace, mem, 0, 0), LEAT_ERR_INVALID);
    leat_pace_free(&pace);
    leat_mem_free(mem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_important_go_first_and_the_old_before_the_new),
        cmocka_unit_test(packets_leave_at_the_rate),
        cmocka_unit_test(a_pause_is_not_made_up_for),
        cmocka_unit_test(audio_does_not_wait_and_the_others_wait_for_it),
        cmocka_unit_test(a_new_rate_holds_from_the_next_packet_on),
        cmocka_unit_test(what_does_not_fit_is_refused_and_late_ones_are_dropped),
        cmocka_unit_test(padding_has_room_when_nothing_waits),
        cmocka_unit_test(wrong_settings_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
