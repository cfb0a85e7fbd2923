/* input_opening.h - files of records, most of them ordinary, some of them not, and what a data set says of them. For
 * tests that open the same files in several ways.
 */
#ifndef TY_TESTS_UNIT_INPUT_OPENING_H
#define TY_TESTS_UNIT_INPUT_OPENING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/hash.h"
#include "container/output/protobuf.h"
#include "input_files.h"

#include <math.h>

static uint64_t drawn;

static inline uint32_t draw(uint32_t below)
{
    drawn = drawn * 6364136223846793005U + 1442695040888963407U;
    return (uint32_t)((drawn >> 33) % below);
}

/* ---- files ---- */

static inline ty_buf new_buf(void)
{
    ty_buf b;
    ty_buf_init(&b, 1 << 22);
    return b;
}

static inline void put(ty_buf *b, const void *bytes, size_t n)
{
    if (ty_buf_add(b, bytes, n) < 0)
        abort();
}

static inline void put_says(ty_buf *b, const char *text)
{
    put(b, text, strlen(text));
}

/* An entry of a map: {1: name, 2: {kind: list}}. */
static inline void put_entry(ty_buf *map, int number, const char *name, int kind, const ty_buf *list)
{
    ty_buf value = new_buf(), entry = new_buf();
    ty_proto_put_bytes(&value, kind, list->data, list->len);
    ty_proto_put_bytes(&entry, 1, name, strlen(name));
    ty_proto_put_bytes(&entry, 2, value.data, value.len);
    ty_proto_put_bytes(map, number, entry.data, entry.len);
    ty_buf_fini(&value);
    ty_buf_fini(&entry);
}

static inline void put_floats(ty_buf *map, int number, const char *name, int kind, const float *v, int n)
{
    ty_buf list = new_buf();
    ty_proto_put_bytes(&list, 1, (const char *)v, (size_t)n * sizeof *v);
    put_entry(map, number, name, kind, &list);
    ty_buf_fini(&list);
}

static inline void put_frame(ty_buf *file, const ty_buf *payload)
{
    uint64_t n = payload->len;
    uint32_t sums[2] = {ty_crc32c_mask(ty_crc32c(0, &n, 8)), ty_crc32c_mask(ty_crc32c(0, payload->data, payload->len))};
    put(file, &n, 8);
    put(file, &sums[0], 4);
    put(file, payload->data, payload->len);
    put(file, &sums[1], 4);
}

static inline void put_part(ty_buf *file, uint32_t kind, const char *payload, size_t n)
{
    uint32_t head[2] = {0xced7230a, kind << 29 | (uint32_t)n};
    put(file, head, 8);
    put(file, payload, n);
    put(file, "   ", (4 - n % 4) % 4);
}

/* x: three floats, some of them no numbers; n: an integer that some lack; late: nobody has it at first; text: of any
 * length, sometimes a TFRecord file, whose frames are none of this one. */
static inline void add_example(ty_buf *file, int row)
{
    float x[3] = {(float)row, draw(50) ? 0.5F : NAN, (float)draw(1000)};
    ty_buf features = new_buf(), list = new_buf(), example = new_buf(), text = new_buf();
    put_floats(&features, 1, "x", 2, x, 3);
    if (draw(10)) {
        ty_proto_put_varint(&list, 1 << 3);
        ty_proto_put_varint(&list, draw(100000));
        put_entry(&features, 1, "n", 3, &list);
    }
    if (row > 100 && draw(3) == 0)
        put_floats(&features, 1, "late", 2, x, 1);
    for (uint32_t i = draw(40); i > 0; i--)
        put_says(&text, "some text ");
    for (int i = 0; i < 30 && file->len % 8 == 0; i++)
        put_frame(&text, &(ty_buf){.data = features.data, .len = (size_t)i});
    ty_buf_clear(&list);
    ty_proto_put_bytes(&list, 1, text.data, text.len);
    put_entry(&features, 1, "text", 1, &list);
    ty_proto_put_bytes(&example, 1, features.data, features.len);
    put_frame(file, &example);
    ty_buf_fini(&text);
    ty_buf_fini(&list);
    ty_buf_fini(&features);
    ty_buf_fini(&example);
}

/* x: three floats, in one part or in several. */
static inline void add_record(ty_buf *file, int row)
{
    float x[3] = {(float)row, 0.5F, (float)draw(1000)};
    ty_buf record = new_buf();
    put_floats(&record, 1, "x", 2, x, 3);
    size_t cut = draw(5) ? 0 : record.len / 2, at = 0;
    for (; cut > 0 && at + cut < record.len; at += cut)
        put_part(file, at == 0 ? 1 : 2, record.data + at, cut);
    put_part(file, at == 0 ? 0 : 3, record.data + at, record.len - at);
    ty_buf_fini(&record);
}

static inline void add_json(ty_buf *file, int row)
{
    char text[200], late[32] = "";
    if (row > 100 && draw(3) == 0)
        snprintf(late, sizeof late, ", \"late\": %u", draw(9));
    snprintf(text, sizeof text, "{\"x\": [%d, 0.5, %u], \"n\": %s%u%s}\n%s", row, draw(1000), draw(10) ? "1" : "2",
             draw(1000), late, draw(20) ? "" : " \r\n\n\n");
    put_says(file, text);
}

static inline void add_libsvm(ty_buf *file, int row)
{
    char text[64];
    snprintf(text, sizeof text, "%s%d", draw(20) ? "" : "# a comment\n\n", row % 2);
    put_says(file, text);
    for (uint32_t i = 0, index = 0; i < 1 + draw(8); i++) {
        index = draw(60) ? index + 1 + draw(9) : draw(2) * 100 + 1 + i; /* sometimes they fall */
        snprintf(text, sizeof text, " %u:%u.5", index, draw(50));
        put_says(file, text);
    }
    put_says(file, draw(9) ? "\n" : "\r\n");
}

static const struct opening_format {
    const char *format, *name;
    void (*add)(ty_buf *file, int row);
    ty_field fields[3];
    int n_fields;
} formats[] = {
    {"tfrecord", "a.tfrecord", add_example, {{.name = "x"}, {.name = "n", .missing_given = true}, {.name = "late"}}, 3},
    {"recordio", "a.recordio", add_record, {{.name = "x"}}, 1},
    {"jsonlines",
     "a.jsonl",
     add_json,
     {{.name = "x"}, {.name = "n", .dtype_given = true, .dtype = TY_I64}, {.name = "late"}},
     3},
    {"libsvm", "a.libsvm", add_libsvm, {{.name = "features"}, {.name = "label"}}, 2},
    {"libsvm", "a.libsvm", add_libsvm, {{.name = "ids", .max_length = 5}, {.name = "values", .max_length = 5}}, 2},
};
enum { N_FORMATS = sizeof formats / sizeof formats[0] };

/* ---- on the disk ---- */

/* Several files: a long one, an empty one, a short one. */
static inline ty_buf make(const struct opening_format *f)
{
    static const int rows[] = {400, 0, 3};
    ty_buf long_one = new_buf();
    for (int k = 2; k >= 0; k--) {
        char name[64];
        ty_buf_clear(&long_one);
        for (int i = 0; i < rows[k]; i++)
            f->add(&long_one, i);
        snprintf(name, sizeof name, "%d-%s", k, f->name);
        if (rows[k] > 0)
            files_put(name, long_one.data ? long_one.data : "", long_one.len);
    }
    return long_one;
}

static inline void forget(const struct opening_format *f)
{
    for (int k = 0; k < 3; k++) {
        char name[64];
        snprintf(name, sizeof name, "%d-%s", k, f->name);
        unlink(files_path(name));
    }
}

/* A bit that is wrong, a piece that is missing, twice there or of zeros, an end that is cut off. */
static inline void damage(ty_buf *b, int how)
{
    uint32_t at = draw((uint32_t)b->len), n = 1 + draw(60);
    n = at + n > b->len ? (uint32_t)b->len - at : n;
    if (how == 0)
        b->data[at] ^= (char)(1 << draw(8));
    else if (how == 1)
        memset(b->data + at, 0, n);
    else if (how == 2)
        b->len = at + 1;
    else {
        memmove(b->data + at, b->data + at + n, b->len - at - n);
        b->len -= n;
    }
}

/* ---- what a data set says ---- */

static inline uint64_t hash_fields(const ty_dataset *ds)
{
    uint64_t h = 0;
    for (int i = 0; i < ds->n_fields; i++) {
        const ty_field_info *f = &ds->field[i];
        const int64_t facts[] = {f->type.rank,          f->type.dtype,    f->type.rank ? f->type.dim[0] : 0,
                                 f->is_integer,         f->min,           f->max,
                                 f->min_sample,         f->max_sample,    f->n_missing,
                                 f->n_not_finite,       f->first_missing, f->first_not_finite,
                                 (int64_t)f->row_bytes, ds->index.base,   ds->index.width};
        h = ty_fnv1a(h, facts, sizeof facts);
    }
    return h;
}

static inline uint64_t hash_samples(const ty_dataset *ds)
{
    uint64_t h = 0;
    for (int i = 0; i < ds->n_fields; i++)
        for (int64_t k = 0; k < ds->n_samples; k++) {
            char row[4096];
            ty_error err = {0};
            assert_true(ds->field[i].row_bytes <= sizeof row);
            assert_ok(ty_dataset_read(ds, i, &k, 1, row, &err), &err);
            h = ty_fnv1a(h, row, ds->field[i].row_bytes);
        }
    return h;
}

#endif
