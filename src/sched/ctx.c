/* sched/ctx.c: making, ending and turning a context.
 *
 * A turn is: time, timers, posted tasks, queued tasks. Timers come before tasks, so that what a
 * timer schedules runs in the same turn.
 *
 * SPDX-License-Identifier: MIT
 */
#include "sched/ctx.h"

#include <string.h>

#include "base/assert.h"
#include "base/wipe.h"
#include "mem/mem.h"

/* The context lies aligned within a piece of its own memory; this stands before it. */
typedef struct ctx_piece {
    void *start;
    size_t size;
} ctx_piece;

void leat_ctx_settings_init(leat_ctx_settings *settings)
{
    memset(settings, 0, sizeof(*settings));
    leat_mem_settings_init(&settings->mem);
}

static leat_ctx *place_ctx(leat_mem *mem)
{
    size_t align = _Alignof(leat_ctx);
    size_t size = sizeof(leat_ctx) + align + sizeof(ctx_piece);
    uint8_t *start = leat_mem_take(mem, size);
    if (start == NULL) {
        return NULL;
    }
    uintptr_t at = ((uintptr_t)start + sizeof(ctx_piece) + align - 1) & ~(uintptr_t)(align - 1);
    leat_ctx *ctx = (leat_ctx *)at;
    memset(ctx, 0, sizeof(*ctx));
    ctx_piece piece = {.start = start, .size = size};
    memcpy((uint8_t *)ctx - sizeof(piece), &piece, sizeof(piece));
    return ctx;
}

leat_err leat_ctx_new(const leat_ctx_settings *settings, leat_ctx **out)
{
    *out = NULL;
    leat_ctx_settings defaults;
    if (settings == NULL) {
        leat_ctx_settings_init(&defaults);
        settings = &defaults;
    }
    leat_mem *mem = NULL;
    leat_err err = leat_mem_new(&settings->mem, &mem);
    if (err != LEAT_OK) {
        return err;
    }
    leat_ctx *ctx = place_ctx(mem);
    if (ctx == NULL) {
        leat_mem_free(mem);
        return LEAT_ERR_NOMEM;
    }
    ctx->mem = mem;
    ctx->wake = settings->wake;
    ctx->user = settings->user;
    ctx->armed = 1; /* before its first turn the owner sleeps */
    ctx->seeded = true;
    memcpy(ctx->seed, settings->seed, sizeof(ctx->seed));
    leat_ctx_tasks_init(ctx);
    *out = ctx;
    return LEAT_OK;
}

static void free_slots(leat_ctx *ctx)
{
    for (int slot = LEAT_CTX_SLOT_COUNT - 1; slot >= 0; slot--) {
        void *value = ctx->slots[slot].value;
        leat_ctx_slot_free_fn *free_fn = ctx->slots[slot].free;
        ctx->slots[slot].value = NULL;
        ctx->slots[slot].free = NULL;
        if (value != NULL && free_fn != NULL) {
            free_fn(ctx, value);
        }
    }
}

void leat_ctx_free(leat_ctx *ctx)
{
    if (ctx == NULL) {
        return;
    }
    LEAT_ASSERT(!ctx->turning);
    leat_ctx_drop_tasks(ctx);
    leat_ctx_drop_timers(ctx);
    free_slots(ctx);
    LEAT_ASSERT(!leat_ctx_has_tasks(ctx)); /* a slot's end may not schedule */
    LEAT_ASSERT(ctx->timers == NULL);
    leat_wipe(ctx->seed, sizeof(ctx->seed));
    leat_mem *mem = ctx->mem;
    ctx_piece piece;
    memcpy(&piece, (uint8_t *)ctx - sizeof(piece), sizeof(piece));
    leat_mem_give(mem, piece.start, piece.size);
    leat_mem_free(mem);
}

leat_mem *leat_ctx_mem(leat_ctx *ctx)
{
    return ctx->mem;
}

leat_time leat_ctx_now(const leat_ctx *ctx)
{
    return ctx->now;
}

void leat_ctx_set_now(leat_ctx *ctx, leat_time now)
{
    if (now > ctx->now) {
        ctx->now = now;
    }
}

/* Whether a turn now would run anything. */
static bool has_work(leat_ctx *ctx)
{
    return leat_ctx_has_tasks(ctx) || leat_ctx_timer_deadline(ctx) <= ctx->now ||
           leat_ctx_has_posted(ctx);
}

leat_time leat_ctx_turn(leat_ctx *ctx, leat_time now)
{
    LEAT_ASSERT(!ctx->turning);
    leat_ctx_set_now(ctx, now);
    if (!has_work(ctx)) {
        return leat_ctx_deadline(ctx);
    }
    ctx->turning = true;
    leat_ctx_disarm(ctx);
    leat_ctx_fire_timers(ctx);
    leat_ctx_take_posted(ctx);
    leat_ctx_run_tasks(ctx);
    ctx->turning = false;
    return leat_ctx_deadline(ctx);
}

leat_time leat_ctx_deadline(leat_ctx *ctx)
{
    if (leat_ctx_has_tasks(ctx)) {
        return ctx->now;
    }
    /* Within a turn the owner is awake and must not be woken. */
    bool posted = ctx->turning ? leat_ctx_has_posted(ctx) : !leat_ctx_arm(ctx);
    return posted ? ctx->now : leat_ctx_timer_deadline(ctx);
}

void leat_ctx_slot_set(leat_ctx *ctx, leat_ctx_slot slot, void *value,
                       leat_ctx_slot_free_fn *free_fn)
{
    LEAT_ASSERT(slot < LEAT_CTX_SLOT_COUNT);
    LEAT_ASSERT(value == NULL || ctx->slots[slot].value == NULL);
    ctx->slots[slot].value = value;
    ctx->slots[slot].free = value != NULL ? free_fn : NULL;
}

leat_err leat_ctx_seed_take(leat_ctx *ctx, uint8_t seed[LEAT_CTX_SEED_LEN])
{
    static const uint8_t none[LEAT_CTX_SEED_LEN];

    if (!ctx->seeded) {
        return LEAT_ERR_STATE;
    }
    if (memcmp(ctx->seed, none, sizeof(none)) == 0) {
        return LEAT_ERR_INVALID;
    }
    memcpy(seed, ctx->seed, LEAT_CTX_SEED_LEN);
    leat_wipe(ctx->seed, sizeof(ctx->seed));
    ctx->seeded = false;
    return LEAT_OK;
}
