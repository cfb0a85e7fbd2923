/* CSV as a dataset. The first byte chooses the declarations; the rest is the file, which lies in memory only. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "container/input/csv.h"
#include "container/input/dataset.h"
#include "container/input/table/walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void read_everything(const ty_dataset *ds)
{
    char place[400];
    for (int f = 0; f < ds->n_fields; f++) {
        void *row = malloc(ds->field[f].row_bytes);
        for (int64_t i = 0; i < ds->n_samples; i++) {
            if (ty_dataset_read(ds, f, &i, 1, row, NULL) < 0)
                abort();
            if (i < 100 && ty_dataset_place(ds, f, i, place, sizeof place)[0] == 0)
                abort();
        }
        free(row);
    }
}

/* Many records at once and one by one: the same rows. */
static void same_everything(const ty_dataset *a, const ty_dataset *b)
{
    if (a->n_samples != b->n_samples)
        abort();
    char place[2][400];
    for (int f = 0; f < a->n_fields; f++) {
        const ty_field_info *x = &a->field[f], *y = &b->field[f];
        size_t n = x->row_bytes;
        char *row = malloc(2 * n + 1);
        if (x->n_missing != y->n_missing || x->first_missing != y->first_missing || x->min != y->min ||
            x->max != y->max || x->min_sample != y->min_sample || x->max_sample != y->max_sample ||
            x->n_not_finite != y->n_not_finite || x->first_not_finite != y->first_not_finite)
            abort();
        for (int64_t i = 0; i < a->n_samples; i++) {
            ty_dataset_read(a, f, &i, 1, row, NULL);
            ty_dataset_read(b, f, &i, 1, row + n, NULL);
            ty_dataset_place(a, f, i, place[0], sizeof place[0]);
            ty_dataset_place(b, f, i, place[1], sizeof place[1]);
            if (memcmp(row, row + n, n) != 0 || strcmp(place[0], place[1]) != 0)
                abort();
        }
        free(row);
    }
}

static void compare(const ty_data_source *src, const ty_dataset *ds, const ty_error *err)
{
    ty_dataset *other;
    for (int way = 1; walk_ways_number(way); way++) {
        ty_error fault = {0};
        walk_ways_taken = way;
        if ((ty_dataset_open(src, &other, &fault) == 0) != (ds != NULL) || strcmp(fault.message, err->message) != 0 ||
            strcmp(fault.place, err->place) != 0)
            abort();
        if (ds) {
            same_everything(ds, other);
            ty_dataset_close(other);
        }
    }
    walk_ways_taken = 0;
}

/* The scanner alone: fields lie inside the text, lines never go back. */
static void scan(const char *text, size_t n, char delimiter)
{
    ty_csv c;
    ty_csv_field f = {0};
    int64_t line = 0;
    if (ty_csv_init(&c, "fuzz", text, n, delimiter, NULL) < 0)
        return;
    while (ty_csv_more(&c)) {
        if (ty_csv_next(&c, &f, NULL) < 0)
            return;
        if (f.text < text || f.text + f.n > text + n || f.line < line || f.column < 1)
            abort();
        line = f.line;
        char *out = malloc(f.n + 1);
        if (ty_csv_unquote(&f, out) > f.n)
            abort();
        free(out);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const columns[] = {"0--1", "0", "-1,0", "a,b", "1-2"};
    static const char delimiters[] = {0, ',', '\t', '|'};
    if (size < 1)
        return 0;
    unsigned choice = data[0];
    ty_field f[2] = {ty_field_make("x"), ty_field_make("y")};
    f[0].columns = columns[choice % 5];
    f[1].columns = "0";
    f[1].dtype_given = true;
    f[1].dtype = (ty_dtype)(choice % TY_N_DTYPES);
    f[1].missing_given = choice & 4;
    f[1].scale = choice & 8 && f[1].dtype != TY_BOOL ? 2 : 1;
    char path[64];
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)(size - 1))
        abort();
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const char *paths[1] = {path};
    ty_data_source src = {.paths = paths,
                          .n_paths = 1,
                          .format = "csv",
                          .fields = f,
                          .n_fields = 1 + (choice >> 7),
                          .csv_header = (ty_csv_header)(choice % 3),
                          .csv_delimiter = delimiters[choice >> 4 & 3],
                          .max_inflated_bytes = 1 << 20};
    ty_dataset *ds = NULL;
    ty_error err = {0};
    if (ty_dataset_open(&src, &ds, &err) == 0) {
        read_everything(ds);
        compare(&src, ds, &err);
        ty_dataset_close(ds);
    } else if (err.code == TY_E_NONE || !err.message[0]) {
        abort();
    } else
        compare(&src, NULL, &err);
    close(fd);
    scan((const char *)data + 1, size - 1, src.csv_delimiter != 0 ? src.csv_delimiter : ',');
    return 0;
}
