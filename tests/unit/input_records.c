/* input_records.c - frames of TFRecord and RecordIO, tf.train.Example, SageMaker's Record, and data sets of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "container/input/example.h"
#include "container/input/frame.h"
#include "container/input/record.h"
#include "container/input/survey.h"
#include "container/output/protobuf.h"
#include "input_files.h"

#include <cjson/cJSON.h>
#include <math.h>

/* ---- writing, as the formats' descriptions have it ---- */

static void put_bytes(ty_buf *b, const void *bytes, size_t n)
{
    if (ty_buf_add(b, bytes, n) < 0)
        abort();
}

static void put_field(ty_buf *b, int number, const ty_buf *body)
{
    ty_proto_put_bytes(b, number, body->data, body->len);
}

static void put_text(ty_buf *b, int number, const char *text)
{
    ty_proto_put_bytes(b, number, text, strlen(text));
}

static ty_buf new_buf(void)
{
    ty_buf b;
    ty_buf_init(&b, 1 << 20);
    return b;
}

/* list: the message of a list; kind: of ty_feature. */
static void put_entry(ty_buf *features, const char *name, int kind, const ty_buf *list)
{
    ty_buf feature = new_buf(), entry = new_buf();
    put_field(&feature, kind, list);
    put_text(&entry, 1, name);
    put_field(&entry, 2, &feature);
    put_field(features, 1, &entry);
    ty_buf_fini(&feature);
    ty_buf_fini(&entry);
}

static void put_ints(ty_buf *features, const char *name, int n, const int64_t *v, bool packed)
{
    ty_buf list = new_buf(), chunk = new_buf();
    for (int i = 0; i < n; i++) {
        if (!packed)
            ty_proto_put_varint(&list, 1 << 3);
        ty_proto_put_varint(packed ? &chunk : &list, (uint64_t)v[i]);
    }
    if (packed)
        put_field(&list, 1, &chunk);
    put_entry(features, name, TY_FEATURE_INTS, &list);
    ty_buf_fini(&list);
    ty_buf_fini(&chunk);
}

static void put_floats(ty_buf *features, const char *name, int n, const float *v)
{
    ty_buf list = new_buf(), chunk = new_buf();
    put_bytes(&chunk, v, (size_t)n * sizeof *v);
    put_field(&list, 1, &chunk);
    put_entry(features, name, TY_FEATURE_FLOATS, &list);
    ty_buf_fini(&list);
    ty_buf_fini(&chunk);
}

static void put_tfrecord(ty_buf *file, const void *payload, size_t n)
{
    uint64_t length = n;
    uint32_t sums[2] = {ty_crc32c_mask(ty_crc32c(0, &length, 8)), ty_crc32c_mask(ty_crc32c(0, payload, n))};
    put_bytes(file, &length, 8);
    put_bytes(file, &sums[0], 4);
    put_bytes(file, payload, n);
    put_bytes(file, &sums[1], 4);
}

static void put_part(ty_buf *file, uint32_t kind, const void *payload, size_t n)
{
    uint32_t head[2] = {0xced7230a, kind << 29 | (uint32_t)n};
    put_bytes(file, head, 8);
    put_bytes(file, payload, n);
    put_bytes(file, "   ", (4 - n % 4) % 4);
}

/* ---- frames ---- */

static void the_documented_bytes_are_read(void **state)
{
    (void)state;
    static const uint8_t bytes[] = "\0\0\0\0\0\0\0\0\x29\x03\x98\x07\xd8\xea\x82\xa2"
                                   "\x13\0\0\0\0\0\0\0\x0c\x91\x32\x1bThe Quick Brown Fox\x18\x0d\xe8\x3a";
    ty_frames f = {.bytes = bytes, .n = sizeof bytes - 1};
    ty_frame r;
    assert_int_equal(ty_frames_next(&f, &r, NULL), 1);
    assert_int_equal(r.n, 0);
    assert_int_equal(ty_frames_next(&f, &r, NULL), 1);
    assert_memory_equal(r.data, "The Quick Brown Fox", 19);
    assert_int_equal(r.at, 16);
    assert_int_equal(r.record, 1);
    assert_int_equal(ty_frames_next(&f, &r, NULL), 0);
}

/* Every place where a file of three records can end, and every bit of its frames that can be wrong. */
static void cut_and_wrong_tfrecords_are_refused(void **state)
{
    (void)state;
    ty_buf file = new_buf();
    for (int i = 0; i < 3; i++)
        put_tfrecord(&file, "abcdef", 6);
    for (size_t n = 0; n <= file.len; n++) {
        ty_frames f = {.bytes = (uint8_t *)file.data, .n = n};
        ty_frame r;
        ty_error err = {0};
        int rc, whole = 0;
        while ((rc = ty_frames_next(&f, &r, &err)) == 1)
            whole++;
        assert_int_equal(whole, n / 22);
        assert_int_equal(rc, n % 22 ? -1 : 0);
        if (rc < 0)
            assert_says(&err, "the file ends within it");
    }
    for (size_t bit = 22 * 8; bit < 44 * 8; bit++) {
        file.data[bit / 8] ^= (char)(1 << bit % 8);
        ty_frames f = {.bytes = (uint8_t *)file.data, .n = file.len};
        ty_frame r;
        ty_error err = {0};
        bool in_payload = bit >= (22 + 12) * 8;
        assert_int_equal(ty_frames_next(&f, &r, &err), 1);
        assert_int_equal(ty_frames_next(&f, &r, &err), -1);
        assert_int_equal(err.code, in_payload ? TY_E_DATA_VALUE : TY_E_DATA);
        assert_says(&err, "record 1 at byte 22");
        if (in_payload) /* and goes on */
            assert_int_equal(ty_frames_next(&f, &r, &err), 1);
        file.data[bit / 8] ^= (char)(1 << bit % 8);
    }
    ty_buf_fini(&file);
}

static void parts_are_joined_in_both_ways(void **state)
{
    (void)state;
    ty_buf file = new_buf();
    put_part(&file, 0, "whole", 5);
    put_part(&file, 1, "", 0);
    put_part(&file, 2, "cd", 2);
    put_part(&file, 3, "e", 1);
    put_part(&file, 0, "", 0);
    for (int mxnet = 0; mxnet < 2; mxnet++) {
        ty_frames f = {
            .bytes = (uint8_t *)file.data, .n = file.len, .how = mxnet ? TY_FRAMES_RECORDIO_MXNET : TY_FRAMES_RECORDIO};
        ty_frame r;
        assert_int_equal(ty_frames_next(&f, &r, NULL), 1);
        assert_int_equal(r.n, 5);
        assert_int_equal(ty_frames_next(&f, &r, NULL), 1);
        const char *want = mxnet ? "\x0a\x23\xd7\xce"
                                   "cd\x0a\x23\xd7\xce"
                                   "e"
                                 : "cde";
        assert_int_equal(r.n, strlen(want));
        assert_memory_equal(r.data, want, r.n);
        assert_int_equal(ty_frames_next(&f, &r, NULL), 1);
        assert_int_equal(r.n, 0);
        assert_int_equal(ty_frames_next(&f, &r, NULL), 0);
        ty_frames_fini(&f);
    }
    ty_buf_fini(&file);
}

static void parts_out_of_order_are_refused(void **state)
{
    (void)state;
    static const struct {
        int n;
        uint32_t kind[3];
        const char *says;
    } rows[] = {{1, {2}, "not the first one"},       {1, {3}, "not the first one"}, {2, {1, 0}, "before its last part"},
                {2, {1, 1}, "before its last part"}, {2, {1, 2}, "ends within it"}, {1, {1}, "ends within it"},
                {1, {5}, "not the first one"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_buf file = new_buf();
        for (int k = 0; k < rows[i].n; k++)
            put_part(&file, rows[i].kind[k], "ab", 2);
        ty_frames f = {.bytes = (uint8_t *)file.data, .n = file.len, .how = TY_FRAMES_RECORDIO};
        ty_frame r;
        ty_error err = {0};
        assert_int_equal(ty_frames_next(&f, &r, &err), -1);
        assert_says(&err, rows[i].says);
        ty_frames_fini(&f);
        ty_buf_fini(&file);
    }
}

static void lines_are_counted_and_blank_ones_left_out(void **state)
{
    (void)state;
    static const char text[] = "one\r\n\n  \t\r\ntwo\nthree";
    ty_frames f = {.bytes = (const uint8_t *)text, .n = sizeof text - 1, .how = TY_FRAMES_LINES};
    static const char *const want[] = {"one", "two", "three"};
    static const int line[] = {0, 3, 4};
    ty_frame r;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ty_frames_next(&f, &r, NULL), 1);
        assert_int_equal(r.n, strlen(want[i]));
        assert_memory_equal(r.data, want[i], r.n);
        assert_int_equal(r.record, line[i]);
    }
    assert_int_equal(ty_frames_next(&f, &r, NULL), 0);
}

/* ---- Example ---- */

static void the_documented_example_is_read(void **state)
{
    (void)state;
    static const uint8_t bytes[] =
        "\x0a\x23\x0a\x11\x0a\x05label\x12\x08\x12\x06\x0a\x04\x00\x00\x80\x3f\x0a\x0e\x0a\x03ids"
        "\x12\x07\x1a\x05\x0a\x03\x03\xac\x02";
    static const char *const names[] = {"ids", "nothing", "label"};
    ty_example x = {.name = names, .n = 3};
    ty_feature f[3];
    float label[2] = {0, 7};
    int64_t ids[2];
    for (int again = 0; again < 2; again++) {
        assert_int_equal(ty_example_find(&x, bytes, sizeof bytes - 1, f, NULL), 0);
        assert_int_equal(f[1].kind, TY_FEATURE_ABSENT);
        assert_int_equal(ty_feature_floats(&f[2], label, 2), 1);
        assert_true(label[0] == 1 && label[1] == 7);
        assert_int_equal(ty_feature_ints(&f[0], ids, 1), 2); /* one more than there is room for */
        assert_int_equal(ty_feature_ints(&f[0], ids, 2), 2);
        assert_true(ids[0] == 3 && ids[1] == 300);
        assert_int_equal(ty_feature_ints(&f[2], ids, 2), -1);
        assert_int_equal(ty_feature_floats(&f[1], label, 2), 0);
    }
}

/* Whatever is cut off or put in its place, nothing is read behind the record. */
static void damaged_examples_do_no_harm(void **state)
{
    (void)state;
    ty_buf features = new_buf(), whole = new_buf();
    put_ints(&features, "ids", 3, (int64_t[]){1, -1, 300}, true);
    put_floats(&features, "values", 2, (float[]){1, 2});
    put_field(&whole, 1, &features);
    static const char *const names[] = {"ids", "values"};
    for (size_t n = 0; n < whole.len; n++)
        for (int change = 0; change < 256; change++) {
            uint8_t *copy = malloc(whole.len); /* of its own size, so that a sanitizer sees its end */
            assert_non_null(copy);
            memcpy(copy, whole.data, whole.len);
            copy[n] = (uint8_t)change;
            ty_example x = {.name = names, .n = 2};
            ty_feature f[2];
            int64_t ids[8];
            float values[8];
            if (ty_example_find(&x, copy, whole.len, f, NULL) == 0) {
                ty_feature_ints(&f[0], ids, 8);
                ty_feature_floats(&f[1], values, 8);
            }
            free(copy);
        }
    ty_buf_fini(&features);
    ty_buf_fini(&whole);
}

/* ---- Record ---- */

/* A record whose features are a float tensor of n values, with these keys (one a field, or packed) and this width. */
static ty_buf record_of(int n, int n_keys, const int64_t *key, bool packed, int64_t width)
{
    static const float values[] = {1, 2, 3, 4};
    ty_buf tensor = new_buf(), value = new_buf(), entry = new_buf(), record = new_buf(), keys = new_buf();
    ty_proto_put_varint(&tensor, 1 << 3 | 2);
    ty_proto_put_varint(&tensor, (uint64_t)n * sizeof *values);
    put_bytes(&tensor, values, (size_t)n * sizeof *values);
    for (int i = 0; i < n_keys; i++) {
        if (!packed)
            ty_proto_put_varint(&tensor, 2 << 3);
        ty_proto_put_varint(packed ? &keys : &tensor, (uint64_t)key[i]);
    }
    if (packed && n_keys > 0)
        put_field(&tensor, 2, &keys);
    if (width >= 0) {
        ty_proto_put_varint(&tensor, 3 << 3);
        ty_proto_put_varint(&tensor, (uint64_t)width);
    }
    put_field(&value, 2, &tensor);
    put_text(&entry, 1, "values");
    put_field(&entry, 2, &value);
    put_field(&record, 1, &entry);
    ty_buf_fini(&tensor);
    ty_buf_fini(&value);
    ty_buf_fini(&entry);
    ty_buf_fini(&keys);
    return record;
}

static void sparse_tensors_are_checked(void **state)
{
    (void)state;
    static const struct {
        int n, n_keys;
        int64_t key[4], width;
        const char *says; /* NULL: it is right */
    } rows[] = {{2, 2, {4, 1}, 5, NULL},
                {2, 0, {0}, 2, NULL},
                {2, 2, {0, 5}, 5, "a key is not below the width of 5"},
                {2, 3, {0, 1, 2}, 5, "3 keys for 2 values"},
                {2, 2, {0, 1}, -1, "without a shape"},
                {2, 0, {0}, 3, "its shape holds 3 values, found 2"}};
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        size_t k = i / 2;
        ty_buf record = record_of(rows[k].n, rows[k].n_keys, rows[k].key, i % 2, rows[k].width);
        ty_record_tensor t;
        ty_error err = {0};
        float out[5] = {0};
        int64_t scratch[8];
        int rc = ty_record_find((uint8_t *)record.data, record.len, "features", &t, &err);
        assert_int_equal(rc, rows[k].says ? -1 : 0);
        if (rows[k].says)
            assert_says(&err, rows[k].says);
        else
            ty_record_decode(&t, out, scratch);
        if (k == 0)
            assert_true(out[4] == 1 && out[1] == 2 && out[0] == 0);
        ty_buf_fini(&record);
    }
}

/* ---- data sets ---- */

/* Records of label f32, ids i64[2] and, in some, extra f32[record number % 3]. */
static void put_records(const char *name, int from, int n, bool packed)
{
    ty_buf file = new_buf();
    for (int i = from; i < from + n; i++) {
        ty_buf features = new_buf(), record = new_buf();
        put_floats(&features, "label", 1, (float[]){(float)i / 4});
        put_ints(&features, "ids", 2, (int64_t[]){i, (int64_t)1 << i % 40}, packed);
        put_floats(&features, "extra", i % 3, (float[]){(float)i, (float)-i});
        put_field(&record, 1, &features);
        put_tfrecord(&file, record.data, record.len);
        ty_buf_fini(&features);
        ty_buf_fini(&record);
    }
    files_put(name, file.data, file.len);
    ty_buf_fini(&file);
}

static void records_of_several_files_are_samples(void **state)
{
    (void)state;
    put_records("t/a.tfrecord", 0, 5, true);
    put_records("t/b.tfrecord", 5, 4, false);
    ty_field f[3] = {ty_field_make("label"), ty_field_make("word"), ty_field_make("extra")};
    f[1].member = "ids";
    f[1].dtype = TY_I32, f[1].dtype_given = true;
    f[2].max_length = 3;
    f[2].missing = -9, f[2].missing_given = true;
    ty_dataset *ds;
    ty_error err = {0};
    assert_ok(files_open("t", f, 3, (ty_data_source){0}, &ds, &err), &err);
    assert_string_equal(ds->format, "tfrecord");
    assert_int_equal(ds->n_samples, 9);
    assert_int_equal(ds->field[0].type.rank, 0);
    assert_int_equal(ds->field[1].type.dim[0], 2);
    assert_int_equal(ds->field[1].min, 0);
    assert_int_equal(ds->field[1].max, 256);
    assert_int_equal(ds->field[1].max_sample, 8);
    static const int64_t samples[] = {8, 0, 5, 5};
    int32_t words[4][2];
    float extra[4][3], label[4];
    assert_ok(ty_dataset_read(ds, 0, samples, 4, label, &err), &err);
    assert_ok(ty_dataset_read(ds, 1, samples, 4, words, &err), &err);
    assert_ok(ty_dataset_read(ds, 2, samples, 4, extra, &err), &err);
    for (int i = 0; i < 4; i++) {
        int s = (int)samples[i];
        assert_true(label[i] == (float)s / 4 && words[i][0] == s && words[i][1] == 1 << s);
        for (int k = 0; k < 3; k++)
            assert_true(extra[i][k] == (k >= s % 3 ? -9 : k == 0 ? (float)s : (float)-s));
    }
    char place[300];
    ty_dataset_place(ds, 0, 6, place, sizeof place);
    assert_non_null(strstr(place, "b.tfrecord: record 1 at byte "));
    ty_dataset_close(ds);
}

static void records_that_do_not_fit_are_refused_with_their_place(void **state)
{
    (void)state;
    put_records("r.tfrecord", 0, 9, true);
    static const struct {
        const char *member;
        ty_dtype dtype;
        int64_t shape;
        const char *says[3];
    } rows[] = {{"none", TY_F32, 0, {"no \"none\"", "r.tfrecord: record 0 at byte 0", "missing: 0"}},
                {"extra", TY_F32, 0, {"expected 1 values, found 2", "record 2 at byte", "max_length"}},
                {"ids", TY_F32, 3, {"expected 3 values, found 2", "record 0", NULL}},
                {"ids", TY_U8, 0, {"256 does not fit its type, which ends at 255", "record 8", NULL}},
                {"label", TY_I64, 0, {"expected a whole number, found 0.25", "record 1", NULL}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_field f = ty_field_make("x");
        f.member = rows[i].member;
        f.dtype = rows[i].dtype, f.dtype_given = true;
        f.shape_given = rows[i].shape > 0, f.rank = 1, f.dim[0] = rows[i].shape;
        if (strcmp(rows[i].member, "extra") == 0) /* begins with an empty one */
            f.missing_given = true;
        ty_dataset *ds;
        ty_error err = {0};
        assert_int_equal(files_open("r.tfrecord", &f, 1, (ty_data_source){0}, &ds, &err), -1);
        for (int k = 0; k < 3 && rows[i].says[k]; k++)
            assert_says(&err, rows[i].says[k]);
    }
}

static void a_survey_names_the_features(void **state)
{
    (void)state;
    put_records("s.tfrecord", 0, 2, true);
    const char *path = files_path("s.tfrecord");
    ty_arena a;
    ty_data_survey survey;
    ty_error err = {0};
    ty_arena_init(&a);
    assert_ok(ty_data_survey_make(&(ty_data_source){.paths = &path, .n_paths = 1}, &a, &survey, &err), &err);
    assert_string_equal(survey.format, "tfrecord");
    assert_int_equal(survey.n_parts, 3);
    assert_string_equal(survey.part[1].name, "ids");
    ty_arena_fini(&a);
}

/* ---- what others wrote ---- */

static cJSON *vectors(void)
{
    const char *path = files_vector("expected.json");
    if (path == NULL) {
        print_message("skip: no shared data at TY_SHARED or ../shared\n");
        skip();
    }
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    assert_int_equal(ty_file_read(path, &text, NULL), 0);
    cJSON *all = cJSON_Parse(text.data);
    ty_buf_fini(&text);
    return all;
}

static ty_buf read_vector(const cJSON *row)
{
    ty_buf bytes;
    char file[1100];
    snprintf(file, sizeof file, "%s%s", files_vector(""), cJSON_GetObjectItem(row, "file")->valuestring);
    ty_buf_init(&bytes, 1 << 20);
    assert_int_equal(ty_file_read(file, &bytes, NULL), 0);
    return bytes;
}

static void check_payload(const cJSON *want, const ty_frame *r)
{
    if (cJSON_IsObject(want)) {
        assert_int_equal(r->n, cJSON_GetObjectItem(want, "len")->valueint);
        assert_int_equal(ty_crc32c(0, r->data, r->n), (uint32_t)cJSON_GetObjectItem(want, "crc32c")->valuedouble);
        return;
    }
    assert_int_equal(2 * r->n, strlen(want->valuestring));
    for (size_t i = 0; i < r->n; i++) {
        char hex[3];
        snprintf(hex, sizeof hex, "%02x", r->data[i]);
        assert_memory_equal(hex, want->valuestring + 2 * i, 2);
    }
}

/* Counts of whole records, what is in them, and where the bad ones begin. */
static void check_frames(const cJSON *row, ty_framing how)
{
    ty_buf bytes = read_vector(row);
    const cJSON *payloads = cJSON_GetObjectItem(row, "payloads"), *ok = cJSON_GetObjectItem(row, "records_ok");
    const cJSON *bad = cJSON_GetObjectItem(row, "bad_offset"), *n = cJSON_GetObjectItem(row, "records");
    ty_frames f = {.bytes = (uint8_t *)bytes.data, .n = bytes.len, .how = how};
    ty_frame r;
    ty_error err = {0};
    int whole = 0, rc;
    while ((rc = ty_frames_next(&f, &r, &err)) != 0) {
        if (rc < 0 && bad) {
            char place[40];
            snprintf(place, sizeof place, " at byte %d: ", bad->valueint);
            assert_says(&err, place);
        }
        if (rc < 0 && err.code != TY_E_DATA_VALUE)
            break;
        if (rc == 1 && payloads)
            check_payload(cJSON_GetArrayItem(payloads, whole), &r);
        whole += rc == 1;
    }
    assert_int_equal(whole, (ok ? ok : n)->valueint);
    assert_true((rc < 0) == (ok != NULL && err.code != TY_E_DATA_VALUE));
    ty_frames_fini(&f);
    ty_buf_fini(&bytes);
}

static double number(const cJSON *row, const char *name, int64_t k)
{
    return cJSON_GetArrayItem(cJSON_GetObjectItem(row, name), (int)k)->valuedouble;
}

static void check_examples(const cJSON *row)
{
    char file[1100];
    snprintf(file, sizeof file, "%s%s", files_vector(""), cJSON_GetObjectItem(row, "file")->valuestring);
    const char *paths[] = {file};
    ty_field f[3] = {ty_field_make("label"), ty_field_make("ids"), ty_field_make("values")};
    ty_data_source src = {.paths = paths, .n_paths = 1, .fields = f, .n_fields = 3};
    const cJSON *rows = cJSON_GetObjectItem(row, "rows");
    ty_dataset *ds;
    ty_error err = {0};
    assert_ok(ty_dataset_open(&src, &ds, &err), &err);
    assert_int_equal(ds->n_samples, cJSON_GetArraySize(rows));
    for (int64_t i = 0; i < ds->n_samples; i++) {
        const cJSON *want = cJSON_GetArrayItem(rows, (int)i);
        float label, values[4];
        int64_t ids[4];
        assert_ok(ty_dataset_read(ds, 0, &i, 1, &label, &err), &err);
        assert_ok(ty_dataset_read(ds, 1, &i, 1, ids, &err), &err);
        assert_ok(ty_dataset_read(ds, 2, &i, 1, values, &err), &err);
        assert_true(label == (float)number(want, "label", 0));
        for (int k = 0; k < 4; k++)
            assert_true(ids[k] == (int64_t)number(want, "ids", k) && values[k] == (float)number(want, "values", k));
    }
    ty_dataset_close(ds);
}

/* label=[2.0]; label=[3.0]; nothing; ids without a list; label=[4.0, 5.0] in two chunks. */
static void check_odd(const cJSON *row)
{
    static const int counts[] = {1, 1, 0, 0, 2};
    static const char *const names[] = {"label", "ids"};
    ty_buf bytes = read_vector(row);
    ty_frames f = {.bytes = (uint8_t *)bytes.data, .n = bytes.len};
    ty_example x = {.name = names, .n = 2};
    ty_feature found[2];
    ty_frame r;
    float label[2];
    for (int i = 0; i < 5; i++) {
        assert_int_equal(ty_frames_next(&f, &r, NULL), 1);
        assert_int_equal(ty_example_find(&x, r.data, r.n, found, NULL), 0);
        assert_int_equal(ty_feature_floats(&found[0], label, 2), counts[i]);
        if (counts[i] > 0)
            assert_true(label[0] == (i == 0 ? 2.0f : i == 1 ? 3.0f : 4.0f));
        if (i == 3)
            assert_int_equal(found[1].kind, TY_FEATURE_ABSENT);
    }
    assert_true(label[1] == 5.0f);
    ty_buf_fini(&bytes);
}

static void check_tensor(const cJSON *row, const ty_frame *r, int i)
{
    const cJSON *dense = cJSON_GetObjectItem(row, "features"), *keys = cJSON_GetObjectItem(row, "keys");
    ty_record_tensor t;
    ty_error err = {0};
    assert_ok(ty_record_find(r->data, r->n, "features", &t, &err), &err);
    int64_t n = ty_record_elems(&t);
    double *out = calloc((size_t)n, 8), *scratch = calloc((size_t)t.n + 1, 16);
    assert_non_null(out);
    assert_non_null(scratch);
    ty_record_decode(&t, out, scratch);
    const cJSON *want = cJSON_GetArrayItem(dense ? dense : cJSON_GetObjectItem(row, "values"), i);
    assert_int_equal(t.n, cJSON_GetArraySize(want));
    double sum = 0, sum_wanted = 0;
    for (int64_t k = 0; k < t.n; k++) {
        int64_t at = keys ? (int64_t)cJSON_GetArrayItem(cJSON_GetArrayItem(keys, i), (int)k)->valuedouble : k;
        double v = t.dtype == TY_F32   ? (double)((float *)(void *)out)[at]
                   : t.dtype == TY_F64 ? out[at]
                                       : (double)((int64_t *)(void *)out)[at];
        double w = cJSON_GetArrayItem(want, (int)k)->valuedouble;
        assert_true(t.dtype == TY_F32 ? (float)v == (float)w : v == w);
        sum_wanted += v;
    }
    for (int64_t k = 0; keys && k < n; k++)
        sum += (double)((float *)(void *)out)[k];
    assert_true(!keys || (n == 20 && fabs(sum - sum_wanted) < 1e-6));
    free(out);
    free(scratch);
}

static void check_records(const cJSON *row)
{
    ty_buf bytes = read_vector(row);
    ty_frames f = {.bytes = (uint8_t *)bytes.data, .n = bytes.len, .how = TY_FRAMES_RECORDIO};
    ty_frame r;
    int n = 0;
    while (ty_frames_next(&f, &r, NULL) == 1)
        check_tensor(row, &r, n++);
    assert_int_equal(n, cJSON_GetObjectItem(row, "records")->valueint);
    ty_buf_fini(&bytes);
}

static void vectors_are_read_as_expected(void **state)
{
    (void)state;
    cJSON *all = vectors();
    int n = 0;
    const cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(all, "cases"))
    {
        const char *name = cJSON_GetObjectItem(row, "file")->valuestring;
        const cJSON *mode = cJSON_GetObjectItem(row, "mode");
        bool is_tfrecord = strncmp(name, "tfrecord/", 9) == 0, is_frame = strncmp(name, "recordio/", 9) == 0;
        bool is_record = strncmp(name, "record_pb/", 10) == 0;
        n += is_tfrecord || is_frame || is_record;
        if (is_frame)
            check_frames(row, mode && strcmp(mode->valuestring, "mxnet") == 0 ? TY_FRAMES_RECORDIO_MXNET
                                                                              : TY_FRAMES_RECORDIO);
        else if (is_record)
            check_records(row);
        else if (is_tfrecord && cJSON_GetObjectItem(row, "rows"))
            check_examples(row);
        else if (is_tfrecord && strstr(name, "odd"))
            check_odd(row);
        else if (is_tfrecord)
            check_frames(row, TY_FRAMES_TFRECORD);
    }
    assert_int_equal(n, 9 + 7 + 4);
    cJSON_Delete(all);
}

static void real_files_are_read(void **state)
{
    (void)state;
    const char *criteo = files_shared("criteo-ctr/criteo_deepfm_10k.tfrecord");
    if (criteo == NULL) {
        print_message("skip: no shared data at TY_SHARED or ../shared\n");
        skip();
    }
    ty_error err = {0};
    ty_field f[3] = {ty_field_make("label"), ty_field_make("ids"), ty_field_make("values")};
    f[0].dtype = TY_I32, f[0].dtype_given = true;
    ty_data_source src = {.paths = &criteo, .n_paths = 1, .fields = f, .n_fields = 3};
    ty_dataset *ds;
    assert_ok(ty_dataset_open(&src, &ds, &err), &err);
    assert_int_equal(ds->n_samples, 10000);
    assert_int_equal(ds->field[1].type.dim[0], 39);
    assert_int_equal(ds->field[1].max, 117565);
    int64_t ones = 0;
    for (int64_t i = 0; i < ds->n_samples; i++) {
        int32_t label;
        assert_ok(ty_dataset_read(ds, 0, &i, 1, &label, &err), &err);
        ones += label;
    }
    assert_int_equal(ones, 2553);
    ty_dataset_close(ds);
    static const char *const files[] = {"complete_records.pr", "split_records.pr", "xgb_dense_train.pb",
                                        "xgb_sparse_train.pb"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char name[100];
        snprintf(name, sizeof name, "recordio-protobuf/%s", files[i]);
        const char *path = files_shared(name);
        ty_field features = ty_field_make("features");
        src = (ty_data_source){.paths = &path, .n_paths = 1, .fields = &features, .n_fields = 1};
        assert_ok(ty_dataset_open(&src, &ds, &err), &err);
        assert_string_equal(ds->format, "recordio");
        assert_int_equal(ds->n_samples, 5);
        ty_dataset_close(ds);
    }
    const char *corrupted = files_shared("recordio-protobuf/corrupted_split_records.pr");
    ty_field features = ty_field_make("features");
    src = (ty_data_source){.paths = &corrupted, .n_paths = 1, .fields = &features, .n_fields = 1};
    assert_int_equal(ty_dataset_open(&src, &ds, &err), -1);
    assert_says(&err, "record 3 at byte 264");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documented_bytes_are_read),
        cmocka_unit_test(cut_and_wrong_tfrecords_are_refused),
        cmocka_unit_test(parts_are_joined_in_both_ways),
        cmocka_unit_test(parts_out_of_order_are_refused),
        cmocka_unit_test(lines_are_counted_and_blank_ones_left_out),
        cmocka_unit_test(the_documented_example_is_read),
        cmocka_unit_test(damaged_examples_do_no_harm),
        cmocka_unit_test(sparse_tensors_are_checked),
        cmocka_unit_test(records_of_several_files_are_samples),
        cmocka_unit_test(records_that_do_not_fit_are_refused_with_their_place),
        cmocka_unit_test(a_survey_names_the_features),
        cmocka_unit_test_setup(vectors_are_read_as_expected, files_golden_vectors),
        cmocka_unit_test_setup(vectors_are_read_as_expected, files_shared_vectors),
        cmocka_unit_test(real_files_are_read),
    };
    return cmocka_run_group_tests_name("input_records", tests, files_setup, files_teardown);
}
