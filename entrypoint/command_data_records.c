/* command_data_records.c - records that a TFRecord file can hold as they are: those of other TFRecord files byte by
 * byte, lines of text, and objects of JSON Lines, whose texts become bytes, whole numbers integers and others floats.
 *
 * A data set has numbers only, and one length of a list; so the files, which it has checked, are walked again. What a
 * record does not have, or has as null, its Example does not have either.
 */
#include "base/json.h"
#include "container/input/bytes.h"
#include "container/input/frame.h"
#include "container/output/example.h"
#include "entrypoint/command_data_pack.h"

#include <stdlib.h>
#include <string.h>

#define COPY_RECORD_BYTES ((size_t)1 << 30)

typedef struct copier copier;
typedef int copy_record(copier *c, const ty_frame *record, ty_error *err);

struct copier {
    const ty_data_opened *data;
    ty_shards *shards;
    ty_example_writer example;
    ty_buf whole, real; /* int64_t and float: numbers of a value on its way */
    bool *is_broken;    /* [n_parts]: a number of the key is not whole; found out by a walk that only looks */
    bool looks;
};

static int copy_add_example(copier *c, ty_error *err)
{
    const ty_buf *record = ty_example_record(&c->example);
    if (record == NULL)
        return ty_error_set(err, TY_E_LIMIT, "it is too large for a record");
    return ty_shards_add(c->shards, record->data, record->len, err);
}

static int copy_tfrecord(copier *c, const ty_frame *record, ty_error *err)
{
    return ty_shards_add(c->shards, record->data, record->n, err);
}

/* ---- lines ---- */

/* Without the mark of UTF-8 at the front of a file. */
static const char *copy_text(const ty_frame *record, size_t *n)
{
    bool is_marked = record->at == 0 && record->n >= 3 && memcmp(record->data, "\xef\xbb\xbf", 3) == 0;
    *n = record->n - (is_marked ? 3 : 0);
    return (const char *)record->data + (is_marked ? 3 : 0);
}

static int copy_line(copier *c, const ty_frame *record, ty_error *err)
{
    size_t n;
    const char *text = copy_text(record, &n);
    ty_example_clear(&c->example);
    ty_example_add_bytes(&c->example, "text", text, n);
    return copy_add_example(c, err);
}

/* ---- JSON Lines ---- */

static int copy_number(copier *c, int part, const ty_doc *v, ty_error *err)
{
    int64_t whole = v->kind == TY_DOC_INT ? v->integer : v->kind == TY_DOC_BOOL ? v->boolean : 0;
    double real = (double)whole;
    if (v->kind == TY_DOC_FLOAT) {
        real = v->number;
        c->is_broken[part] = true;
    } else if (v->kind != TY_DOC_INT && v->kind != TY_DOC_BOOL)
        return ty_error_set(err, TY_E_DATA_VALUE, "key \"%s\": expected a number, found \"%.40s\"",
                            v->key ? v->key : "", v->raw);
    ty_buf_add(&c->whole, &whole, sizeof whole);
    return ty_buf_add(&c->real, &(float){(float)real}, sizeof(float)) < 0
               ? ty_error_set(err, TY_E_LIMIT, "too many numbers")
               : 0;
}

/* Row by row; the reader allows no deep nesting. */
static int copy_numbers(copier *c, int part, const ty_doc *v, ty_error *err)
{
    if (v->kind != TY_DOC_LIST)
        return copy_number(c, part, v, err);
    for (uint32_t i = 0; i < v->n_items; i++)
        if (copy_numbers(c, part, &v->items[i], err) < 0)
            return -1;
    return 0;
}

static int copy_key_numbers(copier *c, int part, const ty_doc *v, ty_error *err)
{
    ty_buf_clear(&c->whole);
    ty_buf_clear(&c->real);
    if (copy_numbers(c, part, v, err) < 0)
        return -1;
    int64_t n = (int64_t)(c->real.len / sizeof(float));
    if (!c->is_broken[part])
        ty_example_add_ints(&c->example, v->key, (const int64_t *)(const void *)c->whole.data, n);
    else
        ty_example_add_floats(&c->example, v->key, (const float *)(const void *)c->real.data, n);
    return 0;
}

static int copy_key_text(copier *c, const ty_doc *v, ty_error *err)
{
    if (v->kind == TY_DOC_LIST || v->kind == TY_DOC_MAP)
        return ty_error_set(err, TY_E_DATA_VALUE, "key \"%s\": expected a text, found a list or an object", v->key);
    ty_example_add_bytes(&c->example, v->key, v->raw, strlen(v->raw));
    return 0;
}

static int copy_keys(copier *c, const ty_doc *root, ty_error *err)
{
    const ty_data_survey *s = &c->data->survey;
    ty_example_clear(&c->example);
    for (int i = 0; i < s->n_parts; i++) {
        const ty_doc *v = ty_doc_find(root, s->part[i].name);
        if (!v || v->kind == TY_DOC_NULL)
            continue;
        if ((s->part[i].is_text ? copy_key_text(c, v, err) : copy_key_numbers(c, i, v, err)) < 0)
            return -1;
    }
    return c->looks ? 0 : copy_add_example(c, err);
}

static int copy_object(copier *c, const ty_frame *record, ty_error *err)
{
    ty_arena a;
    ty_doc *root;
    size_t n;
    const char *text = copy_text(record, &n);
    ty_arena_init(&a);
    int rc = ty_json_parse(&a, "line", text, n, NULL, &root, err);
    if (rc == 0)
        rc = copy_keys(c, root, err);
    ty_arena_fini(&a);
    return rc;
}

/* ---- files ---- */

static const struct copy_kind {
    const char *format;
    ty_framing how;
    copy_record *copy;
} copy_kinds[] = {{"tfrecord", TY_FRAMES_TFRECORD, copy_tfrecord},
                  {"lines", TY_FRAMES_LINES, copy_line},
                  {"jsonlines", TY_FRAMES_LINES, copy_object}};

static const struct copy_kind *copy_kind_of(const char *format)
{
    for (size_t i = 0; i < sizeof copy_kinds / sizeof copy_kinds[0]; i++)
        if (strcmp(copy_kinds[i].format, format) == 0)
            return &copy_kinds[i];
    return NULL;
}

bool ty_data_copies_records(const char *format)
{
    return copy_kind_of(format) != NULL;
}

static int copy_file(copier *c, const struct copy_kind *kind, const char *path, ty_error *err)
{
    ty_bytes bytes;
    ty_frame record;
    int more = 0, rc = 0;
    if (ty_bytes_open(path, NULL, &bytes, err) < 0)
        return -1;
    ty_frames f = {.bytes = bytes.data, .n = bytes.n, .how = kind->how};
    while (rc == 0 && (more = ty_frames_next(&f, &record, err)) == 1)
        if ((rc = kind->copy(c, &record, err)) < 0)
            ty_error_at(err, ty_frames_are_lines(kind->how) ? "%s:%lld" : "%s: record %lld", path,
                        (long long)record.record + ty_frames_are_lines(kind->how));
    if (more < 0)
        rc = ty_error_at(err, "%s", path);
    ty_frames_fini(&f);
    ty_bytes_close(&bytes);
    return rc;
}

static int copy_files(copier *c, ty_error *err)
{
    const struct copy_kind *kind = copy_kind_of(c->data->survey.format);
    for (int i = 0; i < c->data->ds->n_files; i++)
        if (copy_file(c, kind, c->data->ds->files[i].path, err) < 0)
            return -1;
    return 0;
}

int ty_data_convert_records(const ty_data_opened *data, ty_shards *shards, ty_error *err)
{
    copier c = {.data = data, .shards = shards};
    int rc = 0;
    c.is_broken = calloc((size_t)data->survey.n_parts + 1, sizeof *c.is_broken);
    if (!c.is_broken)
        return ty_error_set(err, TY_E_LIMIT, "no memory for %d keys", data->survey.n_parts);
    ty_buf_init(&c.whole, COPY_RECORD_BYTES);
    ty_buf_init(&c.real, COPY_RECORD_BYTES);
    ty_example_writer_init(&c.example, COPY_RECORD_BYTES);
    c.looks = strcmp(data->survey.format, "jsonlines") == 0;
    if (c.looks)
        rc = copy_files(&c, err);
    c.looks = false;
    if (rc == 0)
        rc = copy_files(&c, err);
    ty_example_writer_fini(&c.example);
    free(c.is_broken);
    ty_buf_fini(&c.whole);
    ty_buf_fini(&c.real);
    return rc;
}
