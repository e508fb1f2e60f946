/* fuzz/support/standalone.c: runs a target without libFuzzer: each file of a corpus as it is, and
 * then a fixed number of changed ones, which follow from a seed. For CI, with any compiler.
 *
 *     TARGET RUNS SEED FILE-OR-FOLDER…
 *
 * A crash is replayed with the same arguments; LEAT_FUZZ_DUMP=FILE keeps the input of the moment
 * there.
 *
 * SPDX-License-Identifier: MIT
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/prng.h"
#include "fuzz.h"

#define INPUT_MAX 4096
#define FILES_MAX 4096

typedef struct input {
    uint8_t *data;
    size_t len;
} input;

static input corpus[FILES_MAX];
static size_t corpus_count;
static leat_prng prng;

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void load_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    input in = {malloc(INPUT_MAX), 0};

    if (!f || !in.data || corpus_count == FILES_MAX) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(2);
    }
    in.len = fread(in.data, 1, INPUT_MAX, f);
    fclose(f);
    corpus[corpus_count++] = in;
}

/* In the order of their names, so that a run follows from the seed. */
static void load(const char *path)
{
    static char *names[FILES_MAX];
    struct stat st;
    struct dirent *entry;
    size_t count = 0;
    DIR *dir;

    if (stat(path, &st) == 0 && !S_ISDIR(st.st_mode)) {
        load_file(path);
        return;
    }
    dir = opendir(path);
    if (!dir) {
        fprintf(stderr, "cannot read %s\n", path);
        exit(2);
    }
    while ((entry = readdir(dir)) != NULL && count < FILES_MAX) {
        if (entry->d_name[0] != '.') {
            names[count++] = strdup(entry->d_name);
        }
    }
    closedir(dir);
    qsort(names, count, sizeof(names[0]), by_name);
    for (size_t i = 0; i < count; i++) {
        char whole[4096];

        snprintf(whole, sizeof(whole), "%s/%s", path, names[i]);
        free(names[i]);
        load_file(whole);
    }
}

static size_t below(size_t n)
{
    return n ? (size_t)leat_prng_below(&prng, n) : 0;
}

/* One change: a byte, a bit, a piece doubled, cut, or of another input. */
static void change(uint8_t *data, size_t *len)
{
    static const uint8_t edge[] = {0x00, 0x01, 0x3f, 0x40, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
    size_t at = below(*len), n = 1 + below(16);
    const input *other = &corpus[below(corpus_count)];

    switch (below(6)) {
    case 0:
        if (*len > 0) {
            data[at] = edge[below(sizeof(edge))];
        }
        break;
    case 1:
        if (*len > 0) {
            data[at] ^= (uint8_t)(1u << below(8));
        }
        break;
    case 2:
        if (*len > 0) {
            data[at] = (uint8_t)below(256);
        }
        break;
    case 3: /* cut out */
        n = n < *len - at ? n : *len - at;
        memmove(data + at, data + at + n, *len - at - n);
        *len -= n;
        break;
    case 4: /* double */
        n = n < *len - at ? n : *len - at;
        n = n < INPUT_MAX - *len ? n : INPUT_MAX - *len;
        memmove(data + at + n, data + at, *len - at);
        *len += n;
        break;
    default: /* of another */
        if (other->len > 0) {
            size_t from = below(other->len), most = other->len - from;

            n = below(200) < most ? n : most;
            n = n < INPUT_MAX - at ? n : INPUT_MAX - at;
            n = n < most ? n : most;
            memcpy(data + at, other->data + from, n);
            *len = at + n > *len ? at + n : *len;
        }
        break;
    }
}

static void run(const uint8_t *data, size_t len)
{
    const char *dump = getenv("LEAT_FUZZ_DUMP");
    uint8_t *exact = malloc(len ? len : 1); /* so that a byte too far is seen */
    FILE *f = dump ? fopen(dump, "wb") : NULL;

    if (!exact) {
        exit(2);
    }
    if (f) {
        fwrite(data, 1, len, f);
        fclose(f);
    }
    memcpy(exact, data, len);
    LLVMFuzzerTestOneInput(exact, len);
    free(exact);
}

int main(int argc, char **argv)
{
    unsigned long runs = argc > 3 ? strtoul(argv[1], NULL, 10) : 0;
    unsigned long seed = argc > 3 ? strtoul(argv[2], NULL, 10) : 0;

    if (argc < 4) {
        fprintf(stderr, "usage: %s RUNS SEED FILE-OR-FOLDER...\n", argv[0]);
        return 2;
    }
    leat_prng_seed(&prng, seed);
    for (int i = 3; i < argc; i++) {
        load(argv[i]);
    }
    if (corpus_count == 0) {
        fprintf(stderr, "an empty corpus\n");
        return 2;
    }
    for (size_t i = 0; i < corpus_count; i++) {
        run(corpus[i].data, corpus[i].len);
    }
    for (unsigned long i = 0; i < runs; i++) {
        uint8_t data[INPUT_MAX];
        const input *in = &corpus[below(corpus_count)];
        size_t len = in->len;

        memcpy(data, in->data, len);
        for (size_t changes = 1 + below(8); changes > 0; changes--) {
            change(data, &len);
        }
        run(data, len);
    }
    printf("%zu files, %lu changed ones\n", corpus_count, runs);
    for (size_t i = 0; i < corpus_count; i++) {
        free(corpus[i].data);
    }
    return 0;
}
