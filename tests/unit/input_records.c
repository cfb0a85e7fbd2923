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
    };
    return cmocka_run_group_tests_name("input_records", tests, files_setup, files_teardown);
}
