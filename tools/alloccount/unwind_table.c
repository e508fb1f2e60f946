/* tools/alloccount/unwind_table.c: reads .eh_frame_hdr and .eh_frame (Linux Standard Base, chapter
 * 10; DWARF 4, section 6.4) for the one question of unwind_table.h.
 *
 * The module is found by _dl_find_object(), which takes no lock; its binary search table leads to
 * the description of the function (FDE), that to what it has in common with others (CIE). Both hold
 * small programs whose instructions say, from which address on, how the frame is laid out: they are
 * run as far as the address. Only the table's usual form is read, which is what GNU and LLVM
 * linkers write.
 *
 * SPDX-License-Identifier: MIT
 */
#include "unwind_table.h"

#ifdef __x86_64__

#    include <dlfcn.h>
#    include <stdbool.h>
#    include <stddef.h>
#    include <string.h>

enum {
    RBP = 6,
    RSP = 7,
    RETURN = 16,
    PCREL_SDATA4 = 0x1b,
    UDATA4 = 0x03,
    DATAREL_SDATA4 = 0x3b,
    STATES = 8 /* remembered at once */
};

/* Where a register of the caller's is. */
typedef enum where { SAME, SAVED, UNDEFINED, ELSEWHERE } where;

typedef struct state {
    uint64_t cfa_register; /* or BY_EXPRESSION */
    int64_t cfa_offset;
    where rbp, ret;
    int64_t rbp_at, ret_at; /* when SAVED: from the CFA */
} state;

#    define BY_EXPRESSION UINT64_MAX

typedef struct reader {
    const uint8_t *at, *end;
} reader;

static uint64_t fixed(reader *r, unsigned bytes)
{
    uint64_t value = 0;

    if ((size_t)(r->end - r->at) < bytes) {
        r->at = r->end;
        return 0;
    }
    memcpy(&value, r->at, bytes);
    r->at += bytes;
    return value;
}

static uint64_t uleb(reader *r)
{
    uint64_t value = 0;

    for (unsigned shift = 0; r->at < r->end && shift < 64; shift += 7) {
        uint8_t byte = *r->at++;

        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            break;
        }
    }
    return value;
}

static int64_t sleb(reader *r)
{
    uint64_t value = 0;

    for (unsigned shift = 0; r->at < r->end && shift < 64;) {
        uint8_t byte = *r->at++;

        value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
        if (!(byte & 0x80)) {
            value |= byte & 0x40 && shift < 64 ? ~(uint64_t)0 << shift : 0;
            break;
        }
    }
    return (int64_t)value;
}

static void skip(reader *r, uint64_t bytes)
{
    r->at = bytes > (uint64_t)(r->end - r->at) ? r->end : r->at + bytes;
}

/* ---- the instructions ---- */

typedef struct program {
    uint64_t code_align;
    int64_t data_align;
    uintptr_t loc, wanted; /* runs while loc <= wanted */
    state now, first;      /* first: after the CIE's part */
    state kept[STATES];
    unsigned kept_count;
    bool strange; /* an instruction that is not read here */
} program;

static void set_saved(program *p, uint64_t reg, where how, int64_t at)
{
    if (reg == RBP) {
        p->now.rbp = how;
        p->now.rbp_at = at;
    } else if (reg == RETURN) {
        p->now.ret = how;
        p->now.ret_at = at;
    }
}

static void restore(program *p, uint64_t reg)
{
    if (reg == RBP) {
        p->now.rbp = p->first.rbp;
        p->now.rbp_at = p->first.rbp_at;
    } else if (reg == RETURN) {
        p->now.ret = p->first.ret;
        p->now.ret_at = p->first.ret_at;
    }
}

static void push_state(program *p)
{
    if (p->kept_count == STATES) {
        p->strange = true;
        return;
    }
    p->kept[p->kept_count++] = p->now;
}

static void pop_state(program *p)
{
    if (p->kept_count == 0) {
        p->strange = true;
        return;
    }
    p->now = p->kept[--p->kept_count];
}

static void run_extended(program *p, reader *r, uint8_t op)
{
    uint64_t reg;

    switch (op) {
    case 0x00: /* nop */
        return;
    case 0x02: /* advance_loc1, 2, 4 */
    case 0x03:
    case 0x04:
        p->loc += fixed(r, op == 0x04 ? 4 : op - 1u) * p->code_align;
        return;
    case 0x05: /* offset_extended */
        reg = uleb(r);
        set_saved(p, reg, SAVED, (int64_t)uleb(r) * p->data_align);
        return;
    case 0x06: /* restore_extended */
        restore(p, uleb(r));
        return;
    case 0x07: /* undefined */
        set_saved(p, uleb(r), UNDEFINED, 0);
        return;
    case 0x08: /* same_value */
        set_saved(p, uleb(r), SAME, 0);
        return;
    case 0x09: /* register */
        set_saved(p, uleb(r), ELSEWHERE, 0);
        uleb(r);
        return;
    case 0x0a:
        push_state(p);
        return;
    case 0x0b:
        pop_state(p);
        return;
    case 0x0c: /* def_cfa */
        p->now.cfa_register = uleb(r);
        p->now.cfa_offset = (int64_t)uleb(r);
        return;
    case 0x0d: /* def_cfa_register */
        p->now.cfa_register = uleb(r);
        return;
    case 0x0e: /* def_cfa_offset */
        p->now.cfa_offset = (int64_t)uleb(r);
        return;
    case 0x0f: /* def_cfa_expression */
        p->now.cfa_register = BY_EXPRESSION;
        skip(r, uleb(r));
        return;
    case 0x10: /* expression, val_expression */
    case 0x16:
        set_saved(p, uleb(r), ELSEWHERE, 0);
        skip(r, uleb(r));
        return;
    case 0x11: /* offset_extended_sf */
        reg = uleb(r);
        set_saved(p, reg, SAVED, sleb(r) * p->data_align);
        return;
    case 0x2e: /* GNU_args_size: for the unwinding of exceptions alone */
        uleb(r);
        return;
    default:
        p->strange = true;
        return;
    }
}

static void run(program *p, reader r)
{
    while (r.at < r.end && p->loc <= p->wanted && !p->strange) {
        uint8_t op = *r.at++;

        switch (op & 0xc0) {
        case 0x40: /* advance_loc */
            p->loc += (op & 0x3fu) * p->code_align;
            break;
        case 0x80: /* offset */
            set_saved(p, op & 0x3f, SAVED, (int64_t)uleb(&r) * p->data_align);
            break;
        case 0xc0: /* restore */
            restore(p, op & 0x3f);
            break;
        default:
            run_extended(p, &r, op);
        }
    }
}

/* ---- the entries ---- */

/* An entry's bytes after its length; empty when it is not of the usual form. */
static reader entry(const uint8_t *at)
{
    uint32_t len;

    memcpy(&len, at, sizeof len);
    return len == 0xffffffffu ? (reader){at, at} : (reader){at + 4, at + 4 + len};
}

/* Reads the CIE up to its instructions; false: not of the usual form. */
static bool read_cie(reader *r, program *p)
{
    uint64_t id = fixed(r, 4);
    uint8_t version = (uint8_t)fixed(r, 1);
    const char *augmentation = (const char *)r->at;
    uint64_t len;
    reader data;

    while (r->at < r->end && *r->at) {
        r->at++;
    }
    skip(r, 1);
    p->code_align = uleb(r);
    p->data_align = sleb(r);
    if (id != 0 || (version != 1 && version != 3) ||
        (version == 1 ? fixed(r, 1) : uleb(r)) != RETURN || r->at >= r->end ||
        augmentation[0] != 'z') {
        return false;
    }
    len = uleb(r);
    data = *r;
    skip(r, len);
    data.end = r->at;
    for (const char *c = augmentation + 1; *c; c++) {
        uint8_t encoding;

        switch (*c) {
        case 'R':
            if (fixed(&data, 1) != PCREL_SDATA4) {
                return false;
            }
            break;
        case 'L':
            skip(&data, 1);
            break;
        case 'P': /* a routine's address, four bytes in position-independent code */
            encoding = (uint8_t)fixed(&data, 1);
            if ((encoding & 0x0f) != 0x0b && (encoding & 0x0f) != 0x03) {
                return false;
            }
            skip(&data, 4);
            break;
        default: /* S: a signal frame */
            return false;
        }
    }
    return true;
}

/* The FDE that begins last at or before `address`, by the binary search table; NULL: none, or a
 * table of another form (*strange). */
static const uint8_t *find_fde(uintptr_t address, bool *strange)
{
    struct dl_find_object object;
    const uint8_t *header;
    int32_t pair[2];
    uint32_t count, low = 0, high;

    *strange = false;
    if (_dl_find_object((void *)address, &object) != 0 || !object.dlfo_eh_frame) {
        return NULL;
    }
    header = object.dlfo_eh_frame;
    if (header[0] != 1 || header[1] != PCREL_SDATA4 || header[2] != UDATA4 ||
        header[3] != DATAREL_SDATA4) {
        *strange = true;
        return NULL;
    }
    memcpy(&count, header + 8, sizeof count);
    for (high = count; low < high;) {
        uint32_t middle = low + (high - low) / 2;

        memcpy(pair, header + 12 + 8 * (size_t)middle, sizeof pair);
        if ((uintptr_t)header + (uintptr_t)(intptr_t)pair[0] <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) {
        return NULL;
    }
    memcpy(pair, header + 12 + 8 * (size_t)(low - 1), sizeof pair);
    return header + pair[1];
}

/* ---- the answer ---- */

static leat_unwind_rule answer(const program *p)
{
    const state *s = &p->now;
    leat_unwind_rule rule = {.kind = LEAT_UNWIND_OTHER};

    if (p->strange) {
        return rule;
    }
    if (s->ret == UNDEFINED) {
        rule.kind = LEAT_UNWIND_END;
        return rule;
    }
    if (s->ret != SAVED || s->ret_at != -8 || (s->rbp != SAME && s->rbp != SAVED) ||
        (s->cfa_register != RSP && s->cfa_register != RBP) || s->cfa_offset < 0 ||
        s->cfa_offset > INT32_MAX || s->rbp_at < INT16_MIN || s->rbp_at > 0) {
        return rule;
    }
    rule.kind = s->cfa_register == RSP ? LEAT_UNWIND_BY_SP : LEAT_UNWIND_BY_FP;
    rule.offset = (int32_t)s->cfa_offset;
    rule.saved = s->rbp == SAVED ? (int16_t)s->rbp_at : 0;
    return rule;
}

leat_unwind_rule leat_unwind_rule_of(uintptr_t ip)
{
    const leat_unwind_rule other = {.kind = LEAT_UNWIND_OTHER}, end = {.kind = LEAT_UNWIND_END};
    program p = {.wanted = ip - 1, .now = {.cfa_register = BY_EXPRESSION}};
    bool strange;
    const uint8_t *fde = find_fde(ip - 1, &strange);
    reader r, cie;
    int32_t begin;
    uint32_t cie_back;
    const uint8_t *begin_at;

    if (!fde) {
        return strange ? other : end;
    }
    r = entry(fde);
    cie_back = (uint32_t)fixed(&r, 4);
    cie = entry(fde + 4 - cie_back);
    if (!read_cie(&cie, &p)) {
        return other;
    }
    begin_at = r.at;
    begin = (int32_t)fixed(&r, 4);
    p.loc = (uintptr_t)begin_at + (uintptr_t)(intptr_t)begin;
    if (ip - 1 - p.loc >= fixed(&r, 4)) {
        return end; /* between functions that have an entry */
    }
    skip(&r, uleb(&r)); /* augmentation data: read_cie() saw the z that stands for it */
    run(&p, cie);
    p.first = p.now;
    run(&p, r);
    return answer(&p);
}

#else

typedef int leat_no_unwind_table; /* a file may not be empty */

#endif
