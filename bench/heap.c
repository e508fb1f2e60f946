/* bench/heap.c: see heap.h.
 *
 * A call belongs to whom its return address lies in: the command's own code is leat's (libleat is
 * linked into it), the libraries below are the TLS library's, anything else is the rest. A library
 * that has the C library allocate for it (strdup) therefore counts as the rest.
 *
 * SPDX-License-Identifier: MIT
 */
#include "heap.h"

#include <dlfcn.h>
#include <link.h>
#include <string.h>

/* GnuTLS and what it is made of. */
static const char *const tls_libraries[] = {
    "libgnutls",  "libnettle", "libhogweed",   "libgmp", "libtasn1",
    "libp11-kit", "libidn2",   "libunistring", "libffi",
};

typedef int range_fn(const void *from, const void *to, unsigned group);
typedef void group_fn(unsigned group, uint64_t *calls, uint64_t *bytes);

static range_fn *add_range;
static group_fn *read_group;
static bool counting;

static leat_bench_whose whose(const char *path)
{
    const char *name = strrchr(path, '/');

    name = name ? name + 1 : path;
    for (size_t i = 0; i < sizeof tls_libraries / sizeof tls_libraries[0]; i++) {
        if (strncmp(name, tls_libraries[i], strlen(tls_libraries[i])) == 0) {
            return LEAT_BENCH_TLS;
        }
    }
    return LEAT_BENCH_REST;
}

/* One loaded object: the first is the command. */
static int look_at(struct dl_phdr_info *info, size_t size, void *arg)
{
    bool *first = arg;
    leat_bench_whose owner = *first ? LEAT_BENCH_LEAT : whose(info->dlpi_name);

    (void)size;
    *first = false;
    for (int i = 0; owner != LEAT_BENCH_REST && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];

        if (part->p_type == PT_LOAD && (part->p_flags & PF_X)) {
            uintptr_t from = info->dlpi_addr + part->p_vaddr;

            add_range((const void *)from, (const void *)(from + part->p_memsz), owner);
        }
    }
    return 0;
}

bool leat_bench_heap_open(void)
{
    void *range = dlsym(RTLD_DEFAULT, "leat_allocs_range");
    void *group = dlsym(RTLD_DEFAULT, "leat_allocs_group");
    bool first = true;

    if (!range || !group) {
        return false;
    }
    memcpy(&add_range, &range, sizeof add_range);
    memcpy(&read_group, &group, sizeof read_group);
    dl_iterate_phdr(look_at, &first);
    counting = true;
    return true;
}

leat_bench_heap leat_bench_heap_now(void)
{
    leat_bench_heap heap = {{0}, {0}};

    for (unsigned i = 0; counting && i < LEAT_BENCH_WHOSE; i++) {
        read_group(i, &heap.calls[i], &heap.bytes[i]);
    }
    return heap;
}
