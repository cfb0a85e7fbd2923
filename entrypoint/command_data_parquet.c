/* command_data_parquet.c - Parquet as tf.train.Examples: a column is a feature. Whole numbers are integers,
 * other numbers floats, texts and bytes bytes; lists are as long as they are, and a null has no feature.
 */
#include "container/input/parquet/opened.h"
#include "container/output/example.h"
#include "entrypoint/command_data_pack.h"

#include <stdlib.h>
#include <string.h>

/* A row group on its way. */
typedef struct group_writer {
    const parquet_file *file;
    parquet_values *value; /* [n_columns] */
    parquet_room page;
    ty_example_writer example;
    ty_shards *shards;
    void *room; /* elements of a list that has nulls in it, and of numbers in another form */
    size_t room_bytes;
} group_writer;

static void *group_room(group_writer *w, size_t bytes)
{
    if (bytes > w->room_bytes) {
        free(w->room);
        w->room = malloc(bytes);
        w->room_bytes = w->room ? bytes : 0;
    }
    return w->room;
}

static void group_put(group_writer *w, const char *name, const parquet_values *v, const int64_t *at, int64_t n,
                      void *room)
{
    bool is_whole = v->form == PARQUET_AS_I32 || v->form == PARQUET_AS_I64;
    for (int64_t i = 0; is_whole && i < n; i++)
        ((int64_t *)room)[i] = parquet_whole(v, at[i]);
    for (int64_t i = 0; !is_whole && v->form != PARQUET_AS_BYTES && i < n; i++)
        ((float *)room)[i] = (float)parquet_number(v, at[i]);
    if (is_whole)
        ty_example_add_ints(&w->example, name, room, n);
    else if (v->form != PARQUET_AS_BYTES)
        ty_example_add_floats(&w->example, name, room, n);
    else {
        ty_example_begin_bytes(&w->example);
        for (int64_t i = 0; i < n; i++) {
            const parquet_span *s = (const parquet_span *)v->v + at[i];
            ty_example_one_of_bytes(&w->example, s->n > 0 ? v->bytes + s->at : (const uint8_t *)"", (size_t)s->n);
        }
        ty_example_end_bytes(&w->example, name);
    }
}

/* Elements that are there. */
static int group_column(group_writer *w, int column, int64_t row, ty_error *err)
{
    const parquet_values *v = &w->value[column];
    int64_t from = v->first ? v->first[row] : row, to = v->first ? v->first[row + 1] : row + 1, n = 0;
    int64_t *at = group_room(w, (size_t)(to - from + 1) * (sizeof *at + sizeof(int64_t)));
    if (at == NULL)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a list of %lld values", (long long)(to - from));
    for (int64_t i = from; i < to; i++)
        if (!v->null || !v->null[i])
            at[n++] = i;
    if (n > 0 || (v->first && to == from))
        group_put(w, w->file->column[column].name, v, at, n, at + n);
    return 0;
}

static int group_row(group_writer *w, int64_t row, ty_error *err)
{
    ty_example_clear(&w->example);
    for (int c = 0; c < w->file->n_columns; c++)
        if (!w->file->column[c].odd && group_column(w, c, row, err) < 0)
            return -1;
    const ty_buf *record = ty_example_record(&w->example);
    if (record == NULL)
        return ty_error_set(err, TY_E_LIMIT, "row %lld of a row group is too large for a record", (long long)row);
    return ty_shards_add(w->shards, record->data, record->len, err);
}

static int group_write(group_writer *w, const parquet_opened *o, int group, ty_error *err)
{
    int rc = 0;
    for (int c = 0; rc == 0 && c < w->file->n_columns; c++)
        if (!w->file->column[c].odd)
            rc = parquet_opened_read(o, group, c, 0, &w->page, &w->value[c], err);
    for (int64_t row = 0; rc == 0 && row < w->file->group[group].n_rows; row++)
        rc = group_row(w, row, err);
    return rc;
}

static int file_write(group_writer *w, const ty_data_file *file, ty_error *err)
{
    ty_arena a;
    parquet_opened o;
    ty_arena_init(&a);
    int rc = parquet_opened_open(file->path, file->n_bytes, &a, &o, err), n = o.file.n_columns;
    w->file = &o.file;
    w->value = TY_NEW_ARRAY(&a, parquet_values, n + 1);
    for (int g = 0; rc == 0 && g < o.file.n_groups; g++)
        rc = group_write(w, &o, g, err);
    for (int c = 0; c < n; c++)
        parquet_values_fini(&w->value[c]);
    w->value = NULL;
    parquet_opened_close(&o);
    ty_arena_fini(&a);
    return rc < 0 ? ty_error_at(err, "%s", file->path) : 0;
}

int ty_data_convert_parquet(const ty_data_opened *data, ty_shards *shards, ty_error *err)
{
    group_writer w = {.shards = shards};
    int rc = 0;
    ty_example_writer_init(&w.example, (size_t)1 << 30);
    for (int i = 0; rc == 0 && i < data->ds->n_files; i++)
        rc = file_write(&w, &data->ds->files[i], err);
    ty_example_writer_fini(&w.example);
    free(w.room);
    parquet_room_fini(&w.page);
    return rc;
}
