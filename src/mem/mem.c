/* mem/mem.c: the memory of a context: its making and end, its dealings with the system, statistics.
 *
 * All memory comes through leat_mem_grow() and goes through leat_mem_shrink(); nothing else in leat
 * (the TLS library apart) calls the C library's heap. `system` counts what came less what went,
 * with the leat_mem itself and the headers, and never passes the limit: before a growth is refused,
 * by the limit or by the system, what is kept and wholly unused goes back to the system.
 *
 * Headers of blocks (leat_block) come in pages of their own, which stay until the end; one whose
 * memory went back waits on headers_unused.
 *
 * SPDX-License-Identifier: MIT
 */
#include "mem/core.h"

#include <stdlib.h>
#include <string.h>

#include <leat/limits.h>

#define PAGE 4096u

_Static_assert(sizeof(leat_headers) <= LEAT_HEADERS_BYTES, "headers come in pages");

void leat_mem_settings_init(leat_mem_settings *settings)
{
    settings->slab_size = LEAT_SLAB_SIZE_DEFAULT;
    settings->limit = 0;
}

leat_err leat_mem_new(const leat_mem_settings *settings, leat_mem **out)
{
    leat_mem_settings defaults;
    leat_mem *mem;

    *out = NULL;
    if (!settings) {
        leat_mem_settings_init(&defaults);
        settings = &defaults;
    }
    if (settings->slab_size < LEAT_SLAB_SIZE_MIN || settings->slab_size > LEAT_SLAB_SIZE_MAX ||
        (settings->slab_size & (settings->slab_size - 1)) != 0) {
        return LEAT_ERR_INVALID;
    }
    if (settings->limit && settings->limit < sizeof *mem) {
        return LEAT_ERR_NOMEM;
    }
    mem = (leat_mem *)calloc(1, sizeof *mem);
    if (!mem) {
        return LEAT_ERR_NOMEM;
    }
    mem->slab_size = settings->slab_size;
    mem->limit = settings->limit;
    mem->system = sizeof *mem;
    mem->system_high = mem->system;
    mem->grown = 1;
    *out = mem;
    return LEAT_OK;
}

static void free_all_blocks(leat_mem *mem)
{
    for (leat_headers *h = mem->headers; h; h = h->next) {
        for (size_t i = 0; i < LEAT_COUNT_OF(h->blocks); i++) {
            leat_block *block = &h->blocks[i];

            if (block->kind != LEAT_BLOCK_UNUSED) {
                LEAT_DCHECK(leat_block_refs(block) == 0);
                leat_block_free(block);
            }
        }
    }
}

void leat_mem_free(leat_mem *mem)
{
    if (!mem) {
        return;
    }
    LEAT_DCHECK(mem->obj_live == 0);
#if LEAT_MEM_GUARD
    leat_mem_check(mem);
#endif
    leat_mem_reclaim(mem);
    free_all_blocks(mem);
    while (mem->headers) {
        leat_headers *h = mem->headers;

        mem->headers = h->next;
        leat_mem_shrink(mem, h, LEAT_HEADERS_BYTES);
    }
    free(mem);
}

bool leat_mem_faulted(leat_mem *mem, leat_mem_fault kind)
{
    if (LEAT_LIKELY(mem->fault_kind != kind)) {
        return false;
    }
    mem->fault_seen++;
    if (mem->fault_seen != mem->fault_nth &&
        !(mem->fault_lasting && mem->fault_seen > mem->fault_nth)) {
        return false;
    }
    mem->fault_hits++;
    return true;
}

void leat_mem_fault_set(leat_mem *mem, leat_mem_fault kind, uint64_t nth, bool lasting)
{
    mem->fault_kind = kind;
    mem->fault_nth = nth;
    mem->fault_lasting = lasting;
    mem->fault_seen = 0;
    mem->fault_hits = 0;
    mem->fault_takes = kind == LEAT_MEM_FAULT_TAKE;
    leat_mem_set_fast(mem);
}

uint64_t leat_mem_fault_count(const leat_mem *mem)
{
    return mem->fault_hits;
}

static bool within_limit(leat_mem *mem, size_t size)
{
    if (!mem->limit) {
        return true;
    }
    if (size > mem->limit) {
        return false;
    }
    if (mem->system > mem->limit - size) {
        leat_mem_reclaim_some(mem, mem->system - (mem->limit - size));
    }
    return mem->system <= mem->limit - size;
}

void *leat_mem_grow(leat_mem *mem, size_t size)
{
    void *p;

    if (leat_mem_faulted(mem, LEAT_MEM_FAULT_GROWTH) || !within_limit(mem, size)) {
        return NULL;
    }
    p = aligned_alloc(size % PAGE == 0 ? PAGE : 64, size);
    if (!p && leat_mem_reclaim_some(mem, size) > 0) { /* the system's limit, not ours */
        p = aligned_alloc(size % PAGE == 0 ? PAGE : 64, size);
    }
    if (!p) {
        return NULL;
    }
    mem->system += size;
    if (mem->system > mem->system_high) {
        mem->system_high = mem->system;
    }
    mem->grown++;
    return p;
}

void leat_mem_shrink(leat_mem *mem, void *p, size_t size)
{
    leat_guard_show(p, size);
    free(p);
    mem->system -= size;
}

static bool grow_headers(leat_mem *mem)
{
    leat_headers *h = (leat_headers *)leat_mem_grow(mem, LEAT_HEADERS_BYTES);

    if (!h) {
        return false;
    }
    memset(h, 0, sizeof *h);
    h->next = mem->headers;
    mem->headers = h;
    for (size_t i = LEAT_COUNT_OF(h->blocks); i-- > 0;) {
        h->blocks[i].next = mem->headers_unused;
        mem->headers_unused = &h->blocks[i];
    }
    return true;
}

leat_block *leat_block_new(leat_mem *mem, leat_block_kind kind, size_t size, leat_block **kept)
{
    leat_block *block;
    uint8_t *data;

    if (!mem->headers_unused && !grow_headers(mem)) {
        return NULL;
    }
    data = (uint8_t *)leat_mem_grow(mem, size);
    if (!data) {
        return NULL;
    }
    /* Only now: growing may have put headers of reclaimed blocks on the list. */
    block = mem->headers_unused;
    mem->headers_unused = block->next;
    memset(block, 0, sizeof *block);
    block->data = data;
    block->sliced = data;
    block->size = size;
    block->mem = mem;
    block->kept = kept;
    block->kind = kind;
#if LEAT_MEM_GUARD
    if (!leat_guard_block_init(block)) {
        leat_block_free(block);
        return NULL;
    }
#endif
    return block;
}

void leat_block_free(leat_block *block)
{
    leat_mem *mem = block->mem;

#if LEAT_MEM_GUARD
    leat_guard_block_done(block);
#endif
    leat_mem_shrink(mem, block->data, block->size);
    memset(block, 0, sizeof *block);
    block->kind = LEAT_BLOCK_UNUSED;
    block->next = mem->headers_unused;
    mem->headers_unused = block;
}

static size_t reclaim_blocks(leat_block **kept, size_t want)
{
    size_t freed = 0;

    while (freed < want && *kept) {
        leat_block *block = *kept;

        *kept = block->next;
        freed += block->size;
        leat_block_free(block);
    }
    return freed;
}

static size_t reclaim_regions(leat_mem *mem, unsigned shift, size_t want)
{
    void **kept = &mem->regions_kept[shift];
    size_t size = (size_t)1 << shift;
    size_t freed = 0;

    while (freed < want && *kept) {
        void *p = *kept;

        *kept = *leat_region_link(p, shift);
        leat_mem_shrink(mem, p, size);
        freed += size;
    }
    return freed;
}

size_t leat_mem_reclaim_some(leat_mem *mem, size_t want)
{
    size_t freed = 0;

    if (mem->own_current && leat_block_refs(mem->own_current) == 0) {
        freed += mem->own_current->size;
        leat_block_free(mem->own_current);
        mem->own_current = NULL;
    }
    for (unsigned i = LEAT_OWN_CLASSES; i-- > 0 && freed < want;) {
        freed += reclaim_blocks(&mem->own_kept[i], want - freed);
    }
    for (unsigned s = LEAT_REGION_SHIFTS; s-- > 0 && freed < want && leat_region_is_own(mem, s);) {
        freed += reclaim_regions(mem, s, want - freed);
    }
    if (freed < want) {
        freed += reclaim_blocks(&mem->slabs_kept, want - freed);
    }
    return freed;
}

size_t leat_mem_reclaim(leat_mem *mem)
{
    leat_block *current = mem->current;

    if (current && leat_block_refs(current) == 0) {
        mem->current = NULL;
        mem->cut = NULL;
        mem->cut_end = NULL;
        leat_mem_set_fast(mem);
        leat_block_keep(current);
    }
    return leat_mem_reclaim_some(mem, SIZE_MAX);
}

void leat_mem_stats_get(const leat_mem *mem, leat_mem_stats *out)
{
    memset(out, 0, sizeof *out);
    out->system = mem->system;
    out->system_high = mem->system_high;
    out->obj_live = mem->obj_live;
    out->grown = mem->grown;
    for (const leat_headers *h = mem->headers; h; h = h->next) {
        for (size_t i = 0; i < LEAT_COUNT_OF(h->blocks); i++) {
            const leat_block *block = &h->blocks[i];
            bool slab = block->kind == LEAT_BLOCK_SLAB;

            out->slabs += slab || block->kind == LEAT_BLOCK_REGIONS;
            out->slabs_free += slab && leat_block_refs(block) == 0;
            out->buf_live += leat_block_refs(block);
            out->buf_used += leat_block_used(block);
            out->buf_pinned += leat_block_refs(block) ? block->size : 0;
        }
    }
}

static size_t check_kept(const leat_block *kept, const leat_mem *mem, leat_block_kind kind)
{
    size_t n = 0;

    for (; kept; kept = kept->next) {
        LEAT_ASSERT(kept->mem == mem);
        LEAT_ASSERT(kept->kind == kind);
        LEAT_ASSERT(leat_block_refs(kept) == 0);
        n++;
    }
    return n;
}

static void check_block(const leat_mem *mem, const leat_block *block)
{
    LEAT_ASSERT(block->mem == mem);
    LEAT_ASSERT(block->data != NULL);
    LEAT_ASSERT(leat_block_refs(block) > 0 || leat_block_used(block) == 0);
    LEAT_ASSERT(block->sliced >= block->data);
    LEAT_ASSERT(block->sliced <= block->data + block->size);
#if LEAT_MEM_GUARD
    leat_guard_check_block(block);
#endif
}

/* Every block is where its references say: none on it, on a list of kept ones or current. And what
 * was taken from the system is all accounted for, but for regions of their own that are handed out.
 */
void leat_mem_check(const leat_mem *mem)
{
    size_t idle = 0;
    size_t kept = check_kept(mem->slabs_kept, mem, LEAT_BLOCK_SLAB);
    size_t bytes = sizeof *mem;

    for (unsigned i = 0; i < LEAT_OWN_CLASSES; i++) {
        kept += check_kept(mem->own_kept[i], mem, LEAT_BLOCK_OWN);
    }
    for (const leat_headers *h = mem->headers; h; h = h->next) {
        bytes += LEAT_HEADERS_BYTES;
        for (size_t i = 0; i < LEAT_COUNT_OF(h->blocks); i++) {
            const leat_block *block = &h->blocks[i];

            if (block->kind == LEAT_BLOCK_UNUSED) {
                continue;
            }
            check_block(mem, block);
            bytes += block->size;
            idle += block->kind != LEAT_BLOCK_REGIONS && leat_block_refs(block) == 0 &&
                    block != mem->current && block != mem->own_current;
        }
    }
    LEAT_ASSERT(idle == kept);
    LEAT_ASSERT(bytes <= mem->system);
    LEAT_ASSERT(mem->system <= mem->system_high);
    LEAT_ASSERT(mem->limit == 0 || mem->system_high <= mem->limit);
    LEAT_ASSERT(mem->cut <= mem->cut_end);
    LEAT_ASSERT(mem->region_cut <= mem->region_end);
}
