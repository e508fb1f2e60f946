/* The context itself: settings, memory, time, seed, slots.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sched_fixture.h"

static void context_is_made_from_its_own_memory(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    assert_int_equal((uintptr_t)ctx % _Alignof(leat_ctx), 0);
    leat_mem_stats stats;
    leat_mem_stats_get(leat_ctx_mem(ctx), &stats);
    assert_true(stats.obj_live >= sizeof(leat_ctx));
    assert_int_equal(leat_ctx_now(ctx), 0);
    assert_int_equal(leat_ctx_deadline(ctx), LEAT_TIME_NEVER);
    leat_ctx_free(ctx);
}

static void settings_that_cannot_be_are_refused(void **state)
{
    (void)state;
    leat_ctx_settings settings;
    leat_ctx *ctx = (leat_ctx *)&settings;
    leat_ctx_settings_init(&settings);
    settings.mem.slab_size = 1000;
    assert_int_equal(leat_ctx_new(&settings, &ctx), LEAT_ERR_INVALID);
    assert_null(ctx);
    leat_ctx_settings_init(&settings);
    settings.mem.limit = 64; /* not even the context fits */
    assert_int_equal(leat_ctx_new(&settings, &ctx), LEAT_ERR_NOMEM);
    assert_null(ctx);
}

static void freeing_no_context_is_allowed(void **state)
{
    (void)state;
    leat_ctx_free(NULL);
}

static void seed_is_given_out_once_and_wiped(void **state)
{
    (void)state;
    leat_ctx_settings settings;
    leat_ctx *ctx;
    leat_ctx_settings_init(&settings);
    memset(settings.seed, 0x5a, sizeof(settings.seed));
    assert_int_equal(leat_ctx_new(&settings, &ctx), LEAT_OK);
    uint8_t seed[LEAT_CTX_SEED_LEN] = {0};
    assert_int_equal(leat_ctx_seed_take(ctx, seed), LEAT_OK);
    assert_memory_equal(seed, settings.seed, sizeof(seed));
    memset(settings.seed, 0, sizeof(settings.seed));
    assert_memory_equal(ctx->seed, settings.seed, sizeof(ctx->seed));
    assert_int_equal(leat_ctx_seed_take(ctx, seed), LEAT_ERR_STATE);
    leat_ctx_free(ctx);

    assert_int_equal(leat_ctx_new(NULL, &ctx), LEAT_OK);
    assert_int_equal(leat_ctx_seed_take(ctx, seed), LEAT_ERR_INVALID); /* none was given */
    leat_ctx_free(ctx);
}

static int slots_freed[2];
static int slots_freed_count;

static void free_slot(leat_ctx *ctx, void *value)
{
    assert_null(leat_ctx_slot_get(ctx, LEAT_CTX_SLOT_SPARE));
    slots_freed[slots_freed_count++] = *(int *)value;
}

static void slots_are_freed_last_first(void **state)
{
    (void)state;
    leat_ctx *ctx = new_ctx();
    int first = 1;
    int last = 2;
    int borrowed = 3;
    slots_freed_count = 0;
    assert_null(leat_ctx_slot_get(ctx, LEAT_CTX_SLOT_RAND));
    leat_ctx_slot_set(ctx, LEAT_CTX_SLOT_SPARE, &last, free_slot);
    leat_ctx_slot_set(ctx, LEAT_CTX_SLOT_RAND, &first, free_slot);
    leat_ctx_slot_set(ctx, LEAT_CTX_SLOT_CONN, &borrowed, NULL);
    leat_ctx_slot_set(ctx, LEAT_CTX_SLOT_TLS, &borrowed, free_slot);
    leat_ctx_slot_set(ctx, LEAT_CTX_SLOT_TLS, NULL, NULL); /* taken back: not freed */
    assert_ptr_equal(leat_ctx_slot_get(ctx, LEAT_CTX_SLOT_RAND), &first);
    leat_ctx_free(ctx);
    assert_int_equal(slots_freed_count, 2);
    assert_int_equal(slots_freed[0], 2);
    assert_int_equal(slots_freed[1], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(context_is_made_from_its_own_memory),
        cmocka_unit_test(settings_that_cannot_be_are_refused),
        cmocka_unit_test(freeing_no_context_is_allowed),
        cmocka_unit_test(seed_is_given_out_once_and_wiped),
        cmocka_unit_test(slots_are_freed_last_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
