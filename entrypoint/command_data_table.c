/* command_data_table.c - delimited text as tf.train.Examples: a column whose numbers are all whole becomes integers,
 * one of other numbers floats, one of text bytes.
 *
 * A data set has columns of numbers only, and as floats; so the files, which it has checked, are walked again: once to
 * see which numbers are whole, once to write.
 */
#include "container/input/bytes.h"
#include "container/input/header.h"
#include "container/input/number.h"
#include "container/output/example.h"
#include "entrypoint/command_data_pack.h"

#include <stdlib.h>
#include <string.h>

typedef struct table table;
typedef int table_visit(table *t, int column, const ty_csv_field *field, ty_error *err);

struct table {
    const ty_data_opened *data;
    ty_shards *shards;
    ty_example_writer example;
    bool *is_broken; /* [n_parts]: a number of the column is not whole */
    const char **name;
    bool has_header;
    char *text; /* room for a field */
    size_t room;
};

static void table_trim(const ty_csv_field *f, const char **p, const char **end)
{
    *p = f->text;
    *end = f->text + f->n;
    while (*p < *end && (**p == ' ' || **p == '\t'))
        (*p)++;
    while (*p < *end && ((*end)[-1] == ' ' || (*end)[-1] == '\t'))
        (*end)--;
}

static bool table_is_missing(const table *t, const char *p, const char *end)
{
    const ty_csv_missing *m = &t->data->source.csv_missing;
    double v;
    return ty_csv_is_missing(m, p, (size_t)(end - p)) ||
           (end > p && ty_number_scan(p, end, &v) == end && ty_csv_is_missing_number(m, v));
}

static int table_look(table *t, int column, const ty_csv_field *field, ty_error *err)
{
    const char *p, *end;
    int64_t v;
    (void)err;
    table_trim(field, &p, &end);
    if (!table_is_missing(t, p, end) && ty_integer_scan(p, end, &v) != end)
        t->is_broken[column] = true;
    return 0;
}

static int table_put_text(table *t, int column, const ty_csv_field *field, ty_error *err)
{
    if (field->n == 0)
        return 0;
    if (field->n + 1 > t->room) {
        free(t->text);
        t->room = field->n * 2 + 64;
        t->text = malloc(t->room);
        if (t->text == NULL)
            return ty_error_set(err, TY_E_LIMIT, "no memory for a field of %zu bytes", field->n);
    }
    ty_example_add_bytes(&t->example, t->name[column], t->text, ty_csv_unquote(field, t->text));
    return 0;
}

static int table_put(table *t, int column, const ty_csv_field *field, ty_error *err)
{
    const char *p, *end;
    double real;
    int64_t whole;
    if (t->data->survey.part[column].is_text)
        return table_put_text(t, column, field, err);
    table_trim(field, &p, &end);
    if (table_is_missing(t, p, end))
        return 0;
    if (!t->is_broken[column] && ty_integer_scan(p, end, &whole) == end)
        ty_example_add_ints(&t->example, t->name[column], &whole, 1);
    else if (ty_number_scan(p, end, &real) == end)
        ty_example_add_floats(&t->example, t->name[column], &(float){(float)real}, 1);
    else
        return ty_error_set(err, TY_E_DATA_VALUE, "expected a number, found \"%.*s\"", (int)field->n, field->text);
    return 0;
}

static int table_record(table *t, ty_csv *c, table_visit *visit, ty_error *err)
{
    ty_csv_field field = {.last = false};
    int column = 0, n = t->data->survey.n_parts;
    for (; !field.last; column++) {
        if (ty_csv_next(c, &field, err) < 0)
            return -1;
        if (column < n && visit(t, column, &field, err) < 0)
            return ty_csv_at(c, field.line, field.column, err);
    }
    if (column == n)
        return 0;
    ty_error_set(err, TY_E_DATA, "expected %d fields, found %d", n, column);
    return ty_csv_at(c, field.line, 1, err);
}

/* As the data set does it: the first file says whether names stand in front of the data. */
static int table_skip_header(table *t, int file, ty_csv *c, ty_error *err)
{
    ty_csv_header mode = t->data->source.csv_header;
    ty_csv_first first;
    ty_arena a;
    ty_csv behind = *c;
    if (!ty_csv_more(&behind))
        return 0;
    ty_arena_init(&a);
    int rc = ty_csv_first_record(&behind, &t->data->source.csv_missing, &a, &first, err);
    bool may_be = file == 0 || t->has_header;
    if (rc == 0 && (mode == TY_CSV_HEADER_YES || (mode == TY_CSV_HEADER_AUTO && may_be && !first.is_data))) {
        *c = behind;
        t->has_header = true;
    }
    ty_arena_fini(&a);
    return rc;
}

static int table_end_record(table *t, ty_error *err)
{
    const ty_buf *record = ty_example_record(&t->example);
    if (record == NULL)
        return ty_error_set(err, TY_E_LIMIT, "row %lld is too large for a record", (long long)t->shards->n_records);
    return ty_shards_add(t->shards, record->data, record->len, err);
}

static int table_walk_file(table *t, int index, table_visit *visit, bool writes, ty_error *err)
{
    const ty_data_file *file = &t->data->ds->files[index];
    ty_bytes bytes;
    ty_csv c;
    if (ty_bytes_open(file->path, NULL, &bytes, err) < 0)
        return -1;
    const char *text = (const char *)bytes.data;
    char delimiter = ty_csv_delimiter(&t->data->source, file->name, text, bytes.n);
    int rc = ty_csv_init(&c, file->path, text, bytes.n, delimiter, err);
    rc = rc == 0 ? table_skip_header(t, index, &c, err) : rc;
    while (rc == 0 && ty_csv_more(&c)) {
        ty_example_clear(&t->example);
        rc = table_record(t, &c, visit, err);
        if (rc == 0 && writes)
            rc = table_end_record(t, err);
    }
    ty_bytes_close(&bytes);
    return rc;
}

static int table_walk(table *t, table_visit *visit, bool writes, ty_error *err)
{
    int rc = 0;
    t->has_header = false;
    for (int i = 0; rc == 0 && i < t->data->ds->n_files; i++)
        rc = table_walk_file(t, i, visit, writes, err);
    return rc;
}

int ty_data_convert_table(const ty_data_opened *data, ty_shards *shards, ty_error *err)
{
    table t = {.data = data, .shards = shards};
    const ty_data_survey *s = &data->survey;
    ty_arena a;
    ty_arena_init(&a);
    t.is_broken = TY_NEW_ARRAY(&a, bool, s->n_parts);
    t.name = TY_NEW_ARRAY(&a, const char *, s->n_parts);
    for (int i = 0; i < s->n_parts; i++)
        t.name[i] = s->part[i].name != NULL ? s->part[i].name : ty_arena_printf(&a, "column %d", i);
    ty_example_writer_init(&t.example, (size_t)1 << 30);
    int rc = table_walk(&t, table_look, false, err);
    if (rc == 0)
        rc = table_walk(&t, table_put, true, err);
    ty_example_writer_fini(&t.example);
    free(t.text);
    ty_arena_fini(&a);
    return rc;
}
