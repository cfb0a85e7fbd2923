/* Windows over text and over files of tokens. The first byte chooses the format and what a token is, the second length
 * and stride; the rest is the file, which lies in memory only: cut in two at a 0xff 0xfe, where there is one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "container/input/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int put_file(const uint8_t *data, size_t n, char path[64])
{
    int fd = memfd_create("fuzz", 0);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    if (fd < 0 || write(fd, data, n) != (ssize_t)n)
        abort();
    return fd;
}

/* The targets are the inputs, one token further on, and no token is beyond what is said of all. */
static void read_everything(const ty_dataset *ds, int64_t length, bool random)
{
    int64_t *rows[2] = {malloc((size_t)length * 8), malloc((size_t)length * 8)};
    char place[400];
    for (int64_t i = 0; i < ds->n_samples && i < 64; i++) {
        ty_pick pick = {.sample = &i, .n = 1, .seed = 7, .epoch = 3, .augment = random};
        if (ty_dataset_read_all(ds, &pick, (void *const *)rows, NULL) < 0 ||
            memcmp(rows[0] + 1, rows[1], (size_t)(length - 1) * 8) != 0 ||
            ty_dataset_place(ds, 0, i, place, sizeof place)[0] == 0)
            abort();
        for (int64_t k = 0; k < length; k++)
            if (rows[0][k] < ds->field[0].min || rows[0][k] > ds->field[0].max || rows[1][k] < ds->field[1].min ||
                rows[1][k] > ds->field[1].max)
                abort();
    }
    free(rows[0]);
    free(rows[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    const uint8_t *cut = memmem(data + 2, size - 2, "\xff\xfe", 2), *end = data + size;
    const uint8_t *second = cut ? cut + 2 : end;
    char path[2][64];
    int fd[2] = {put_file(data + 2, (size_t)((cut ? cut : end) - data - 2), path[0]),
                 put_file(second, (size_t)(end - second), path[1])};
    const char *paths[] = {path[0], path[1]};
    bool random = data[0] & 8;
    int64_t length = 1 + data[1] % 16;
    ty_field f[2] = {ty_field_make("inputs"), ty_field_make("targets")};
    for (int i = 0; i < 2; i++) {
        f[i].dtype = TY_I64;
        f[i].dtype_given = true;
    }
    ty_data_source src = {.paths = paths,
                          .n_paths = cut ? 2 : 1,
                          .format = data[0] & 1 ? "tokens" : "text",
                          .fields = f,
                          .n_fields = 2,
                          .windows = {.length = length,
                                      .stride = data[1] / 16,
                                      .random = random,
                                      .symbols = data[0] & 2 ? TY_SYMBOLS_BYTES : TY_SYMBOLS_CHARACTERS,
                                      .tokenizer = data[0] & 4 ? "tests/golden/tokenizer/gpt2.json" : NULL,
                                      .end_token = data[0] & 16 ? "<|endoftext|>" : NULL,
                                      .wide = data[0] & 32},
                          .max_inflated_bytes = 1 << 20};
    ty_dataset *ds;
    ty_error err = {0};
    if (ty_dataset_open(&src, &ds, &err) == 0) {
        read_everything(ds, length, random);
        ty_dataset_close(ds);
    } else if (err.code == TY_E_NONE || !err.message[0]) {
        abort();
    }
    close(fd[0]);
    close(fd[1]);
    return 0;
}
