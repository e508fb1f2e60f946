/* cli/allocs_symbols.c: names for addresses, by libdw, which reads debug information where there is
 * some and the dynamic symbols otherwise. A caller is a return address: one byte before it lies the
 * call.
 *
 * SPDX-License-Identifier: MIT
 */
#include "allocs.h"

#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* Names are kept by address, and each text once. */
typedef struct name {
    uint64_t address;
    char *text;
} name;

struct leat_allocs_names {
    Dwfl *dwfl;
    name *sorted;
    size_t count;
};

static char *no_debug_files; /* where to look for debug information: only in the files themselves */

static const Dwfl_Callbacks callbacks = {
    .find_elf = dwfl_linux_proc_find_elf,
    .find_debuginfo = dwfl_standard_find_debuginfo,
    .debuginfo_path = &no_debug_files,
};

/* One report a module: its lowest map tells where the file begins. */
static void report_modules(Dwfl *dwfl, const leat_allocs_file *file)
{
    dwfl_report_begin(dwfl);
    for (size_t i = 0; i < file->map_count; i++) {
        const leat_allocs_map *map = &file->maps[i];
        bool first = true;

        for (size_t k = 0; k < i; k++) {
            first &= strcmp(file->maps[k].path, map->path) != 0;
        }
        if (first) {
            const char *base = strrchr(map->path, '/');

            dwfl_report_elf(dwfl, base ? base + 1 : map->path, map->path, -1,
                            map->from - map->offset, false);
        }
    }
    dwfl_report_end(dwfl, NULL, NULL);
}

static char *describe(Dwfl *dwfl, const leat_allocs_file *file, uint64_t address)
{
    Dwfl_Module *module = dwfl ? dwfl_addrmodule(dwfl, address - 1) : NULL;
    const char *symbol = module ? dwfl_module_addrname(module, address - 1) : NULL;
    char *text = NULL;
    int n = -1;

    if (symbol) {
        return strdup(symbol);
    }
    for (size_t i = 0; i < file->map_count && n < 0; i++) {
        const leat_allocs_map *map = &file->maps[i];

        if (address >= map->from && address < map->to) {
            const char *base = strrchr(map->path, '/');

            n = asprintf(&text, "%s+0x%lx", base ? base + 1 : map->path,
                         address - map->from + map->offset);
        }
    }
    if (n < 0) {
        n = asprintf(&text, "0x%lx", address);
    }
    return n < 0 ? NULL : text;
}

static int by_address(const void *a, const void *b)
{
    uint64_t x = ((const name *)a)->address, y = ((const name *)b)->address;

    return (x > y) - (x < y);
}

/* All addresses, each once, sorted. */
static bool gather(leat_allocs_names *names, const leat_allocs_file *file)
{
    size_t most = 0, kept = 0;

    for (size_t i = 0; i < file->stack_count; i++) {
        most += file->stacks[i].depth;
    }
    names->sorted = calloc(most + 1, sizeof(*names->sorted));
    if (!names->sorted) {
        return false;
    }
    for (size_t i = 0; i < file->stack_count; i++) {
        for (uint32_t k = 0; k < file->stacks[i].depth; k++) {
            names->sorted[names->count++].address = file->stacks[i].callers[k];
        }
    }
    qsort(names->sorted, names->count, sizeof(*names->sorted), by_address);
    for (size_t i = 0; i < names->count; i++) {
        if (kept == 0 || names->sorted[kept - 1].address != names->sorted[i].address) {
            names->sorted[kept++] = names->sorted[i];
        }
    }
    names->count = kept;
    return true;
}

static const char *find(const leat_allocs_names *names, uint64_t address)
{
    const name key = {.address = address};
    const name *found = bsearch(&key, names->sorted, names->count, sizeof(key), by_address);

    return found && found->text ? found->text : "?";
}

leat_allocs_names *leat_allocs_name(leat_allocs_file *file)
{
    leat_allocs_names *names = calloc(1, sizeof(*names));

    if (!names || !gather(names, file)) {
        leat_cli_error("out of memory");
        free(names);
        return NULL;
    }
    names->dwfl = dwfl_begin(&callbacks);
    if (names->dwfl) {
        report_modules(names->dwfl, file);
    }
    for (size_t i = 0; i < names->count; i++) {
        names->sorted[i].text = describe(names->dwfl, file, names->sorted[i].address);
    }
    for (size_t i = 0; i < file->stack_count; i++) {
        for (uint32_t k = 0; k < file->stacks[i].depth; k++) {
            file->stacks[i].names[k] = find(names, file->stacks[i].callers[k]);
        }
    }
    return names;
}

void leat_allocs_names_free(leat_allocs_names *names)
{
    if (!names) {
        return;
    }
    for (size_t i = 0; i < names->count; i++) {
        free(names->sorted[i].text);
    }
    free(names->sorted);
    dwfl_end(names->dwfl);
    free(names);
}
