/* Records as data sets: LibSVM, JSON Lines, TFRecord, RecordIO. The first byte chooses format and declarations; the
 * rest is the file, which lies in memory only. Opened with several threads it is what it is with one. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "container/input/dataset.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void read_everything(const ty_dataset *ds)
{
    char place[400];
    for (int f = 0; f < ds->n_fields; f++) {
        void *row = malloc(ds->field[f].row_bytes + 1);
        for (int64_t i = 0; i < ds->n_samples && i < 64 && row; i++) {
            if (ty_dataset_read(ds, f, &i, 1, row, NULL) < 0 || ty_dataset_place(ds, f, i, place, sizeof place)[0] == 0)
                abort();
        }
        free(row);
    }
}

/* LibSVM's rows are as wide as the largest index says: those of a few bytes may take hundreds of megabytes. */
static bool has_small_rows(const ty_dataset *ds)
{
    size_t bytes = 0;
    for (int f = 0; f < ds->n_fields; f++)
        bytes += ds->field[f].row_bytes;
    return bytes < 1 << 20;
}

/* NULL: refused, with *err. */
static ty_dataset *open_with(ty_data_source src, int n_threads, ty_error *err)
{
    ty_dataset *ds;
    src.n_threads = n_threads;
    *err = (ty_error){0};
    return ty_dataset_open(&src, &ds, err) == 0 ? ds : NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const formats[] = {"libsvm", "jsonlines", "tfrecord", "recordio"};
    if (size == 0)
        return 0;
    int fd = memfd_create("fuzz", 0);
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)(size - 1))
        abort();
    bool entries = data[0] & 4;
    ty_field f[3] = {ty_field_make("label"), ty_field_make(entries ? "ids" : "features"), ty_field_make("values")};
    for (int i = 0; i < 3; i++) {
        f[i].max_length = data[0] & 8 ? 5 : 0;
        f[i].missing_given = data[0] & 16;
    }
    f[0].dtype = data[0] & 32 ? TY_I32 : TY_F32;
    f[0].dtype_given = true;
    const char *paths[] = {path};
    ty_data_source src = {.paths = paths,
                          .n_paths = 1,
                          .format = formats[data[0] % 4],
                          .fields = f,
                          .n_fields = entries ? 3 : 2,
                          .max_inflated_bytes = 1 << 20,
                          .span_bytes = 20};
    ty_error err, err_of_many;
    ty_dataset *ds = open_with(src, 1, &err), *many = open_with(src, 3, &err_of_many);
    if (!ds != !many || strcmp(err.message, err_of_many.message) != 0 || strcmp(err.place, err_of_many.place) != 0 ||
        (ds && ds->fingerprint != many->fingerprint))
        abort();
    if (many)
        ty_dataset_close(many);
    if (ds) {
        if (has_small_rows(ds))
            read_everything(ds);
        ty_dataset_close(ds);
    } else if (!err.message[0])
        abort();
    close(fd);
    return 0;
}
