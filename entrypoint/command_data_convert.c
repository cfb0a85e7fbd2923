/* command_data_convert.c - `trainyard data convert` and `pack`: any data as TFRecord files of tf.train.Example.
 *
 * Whole numbers are written as integers, all else as floats, text as bytes, pictures and sounds as they are encoded; a
 * number or text that is missing has no feature. LibSVM becomes label, ids and values, as click models read them, each
 * line as long as it is.
 */
#include "container/input/convert.h"
#include "container/input/format.h"
#include "container/output/example.h"
#include "container/output/shards.h"
#include "entrypoint/command_data_pack.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONVERT_RECORD_BYTES ((size_t)1 << 30)

typedef struct converter {
    const ty_dataset *ds;
    const ty_field *declared; /* [ds->n_fields] */
    ty_shards *shards;
    ty_example_writer example;
    bool is_libsvm;
    int64_t n_entries; /* LibSVM: of this line */
    void *row;
    double *v;
    float *f;
    int64_t *whole;
} converter;

/* LibSVM's entries end where the filling begins. */
static int64_t convert_elems(converter *c, const ty_field_info *f)
{
    int64_t n = ty_type_elems(&f->type);
    if (!c->is_libsvm || (strcmp(f->name, "ids") != 0 && strcmp(f->name, "values") != 0))
        return n;
    if (f->is_integer) {
        for (c->n_entries = 0; c->n_entries < n && c->whole[c->n_entries] >= 0;)
            c->n_entries++;
    }
    return c->n_entries;
}

typedef struct convert_media {
    ty_example_writer *example;
    const char *name;
} convert_media;

static int convert_encoded(void *ctx, const uint8_t *bytes, size_t n, ty_error *err)
{
    const convert_media *m = ctx;
    (void)err;
    ty_example_add_bytes(m->example, m->name, bytes, n);
    return 0;
}

/* Names of folders stay names. */
static bool convert_is_class(const converter *c, int field)
{
    const ty_map *map = c->declared[field].map;
    return map && ty_map_declared(map)->way == TY_MAP_CLASSES;
}

static int convert_field(converter *c, int field, int64_t sample, ty_error *err)
{
    const ty_field_info *f = &c->ds->field[field];
    int64_t n = ty_type_elems(&f->type);
    if (f->image || f->audio)
        return ty_dataset_encoded(c->ds, field, sample, convert_encoded, &(convert_media){&c->example, f->name}, err);
    if (ty_dataset_read(c->ds, field, &sample, 1, c->row, err) < 0)
        return -1;
    if (f->is_integer) {
        ty_convert_to_i64((ty_dtype)f->type.dtype, c->row, c->whole, n);
        const char *word = convert_is_class(c, field) ? ty_map_word(c->declared[field].map, c->whole[0]) : NULL;
        if (word)
            ty_example_add_bytes(&c->example, f->name, word, strlen(word));
        else
            ty_example_add_ints(&c->example, f->name, c->whole, convert_elems(c, f));
        return 0;
    }
    ty_convert_to_f64((ty_dtype)f->type.dtype, c->row, c->v, n);
    for (int64_t i = 0; i < n; i++)
        c->f[i] = (float)c->v[i];
    if (n != 1 || f->n_missing == 0 || !isnan(c->v[0]))
        ty_example_add_floats(&c->example, f->name, c->f, convert_elems(c, f));
    return 0;
}

static int convert_sample(converter *c, int64_t sample, ty_error *err)
{
    ty_example_clear(&c->example);
    for (int i = 0; i < c->ds->n_fields; i++)
        if (convert_field(c, i, sample, err) < 0)
            return -1;
    const ty_buf *record = ty_example_record(&c->example);
    if (record == NULL)
        return ty_error_set(err, TY_E_LIMIT, "sample %lld is too large for a record", (long long)sample);
    return ty_shards_add(c->shards, record->data, record->len, err);
}

static int convert_all(converter *c, ty_error *err)
{
    size_t row = 8, elems = 1;
    for (int i = 0; i < c->ds->n_fields; i++) {
        size_t n = (size_t)ty_type_elems(&c->ds->field[i].type);
        row = c->ds->field[i].row_bytes > row ? c->ds->field[i].row_bytes : row;
        elems = n > elems ? n : elems;
    }
    c->row = malloc(row);
    c->v = malloc(elems * sizeof *c->v);
    c->f = malloc(elems * sizeof *c->f);
    c->whole = malloc(elems * sizeof *c->whole);
    ty_example_writer_init(&c->example, CONVERT_RECORD_BYTES);
    int rc = c->row && c->v && c->f && c->whole ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory for a sample");
    for (int64_t s = 0; rc == 0 && s < c->ds->n_samples; s++)
        rc = convert_sample(c, s, err);
    ty_example_writer_fini(&c->example);
    free(c->row);
    free(c->v);
    free(c->f);
    free(c->whole);
    return rc;
}

int ty_data_convert_into(const ty_data_opened *data, ty_shards *shards, ty_error *err)
{
    if (ty_format_is_columns(data->survey.format) && !data->source.skip_bad)
        return ty_data_convert_parquet(data, shards, err);
    if (data->survey.is_table)
        return ty_data_convert_table(data, shards, err);
    if (ty_data_copies_records(data->survey.format) && !data->source.skip_bad)
        return ty_data_convert_records(data, shards, err);
    if (data->n_text > 0) {
        ty_error_set(err, TY_E_USAGE, "texts of %s are not written where bad records are left out",
                     data->survey.format);
        return ty_error_help(err, "leave out --skip-bad, and mend or remove the records that are refused");
    }
    converter c = {.ds = data->ds,
                   .declared = data->field,
                   .shards = shards,
                   .is_libsvm = strcmp(data->survey.format, "libsvm") == 0};
    return convert_all(&c, err);
}

/* ---- the command ---- */

int ty_data_file_bytes(const ty_arguments_given *given, int option, const char *name, uint64_t *out, ty_error *err)
{
    const char *text = given->value[option];
    *out = TY_DATA_SHARD_BYTES;
    if (text == NULL || ty_bytes_parse(text, out))
        return 0;
    ty_error_set(err, TY_E_USAGE, "%s needs a number of bytes, found \"%.100s\"", name, text);
    return ty_error_help(err, "write %s=150MB or %s=128MiB", name, name);
}

void ty_data_print_shards(const ty_shards *s, const char *what, const char *folder)
{
    printf("%lld %s in %d file%s of %s\n", (long long)s->n_records, what, s->n_files, s->n_files == 1 ? "" : "s",
           folder);
}

int ty_command_data_convert(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    ty_data_opened d;
    ty_shards shards;
    uint64_t max_bytes;
    const char *folder = given->words[2];
    if (ty_data_check_folder(folder, err) < 0 ||
        ty_data_file_bytes(given, TY_DATA_FILE_BYTES, "--file-bytes", &max_bytes, err) < 0 ||
        ty_data_open(given, a, &d, err) < 0)
        return -1;
    int rc = ty_shards_open(&shards, folder, max_bytes, err);
    if (rc == 0)
        rc = ty_data_convert_into(&d, &shards, err);
    if (rc == 0)
        rc = ty_shards_commit(&shards, err);
    ty_shards_abandon(&shards);
    if (rc == 0)
        ty_data_print_shards(&shards, "samples", folder);
    ty_dataset_close(d.ds);
    return rc;
}
