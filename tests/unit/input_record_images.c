/* input_record_images.c - encoded pictures in records: tf.train.Example, SageMaker's Record, MXNet's .rec. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "container/input/image/plan.h"
#include "container/input/survey.h"
#include "container/output/protobuf.h"
#include "input_files.h"

/* ---- writing ---- */

static void put(ty_buf *b, const void *bytes, size_t n)
{
    if (ty_buf_add(b, bytes, n) < 0)
        abort();
}

static ty_buf new_buf(void)
{
    ty_buf b;
    ty_buf_init(&b, 1 << 20);
    return b;
}

/* `outer` gets inner as field `number`; inner is done with. */
static void nest(ty_buf *outer, int number, ty_buf *inner)
{
    ty_proto_put_bytes(outer, number, inner->data, inner->len);
    ty_buf_fini(inner);
}

/* 2 x 2 pixels of one grey, or the first of them. */
static const char *grey(uint8_t v)
{
    static char bytes[4][16];
    static int next;
    char *p = memcpy(bytes[next++ % 4], "P5 2 2 255\n", 11);
    return memset(p + 11, v, 4), p;
}

enum { GREY = 15 };

static void put_entry(ty_buf *map, int number, const char *name, ty_buf *value)
{
    ty_buf entry = new_buf();
    ty_proto_put_bytes(&entry, 1, name, strlen(name));
    nest(&entry, 2, value);
    nest(map, number, &entry);
}

static void put_example(ty_buf *file, const char *picture, size_t n, int label)
{
    ty_buf list = new_buf(), feature = new_buf(), features = new_buf(), example = new_buf();
    ty_proto_put_bytes(&list, 1, picture, n);
    nest(&feature, 1, &list);
    put_entry(&features, 1, "picture", &feature);
    list = new_buf(), feature = new_buf();
    put(&list, (uint8_t[]){1 << 3, (uint8_t)label}, 2);
    nest(&feature, 3, &list);
    put_entry(&features, 1, "label", &feature);
    nest(&example, 1, &features);
    uint64_t length = example.len;
    uint32_t sums[2] = {ty_crc32c_mask(ty_crc32c(0, &length, 8)),
                        ty_crc32c_mask(ty_crc32c(0, example.data, example.len))};
    put(file, &length, 8);
    put(file, &sums[0], 4);
    put(file, example.data, example.len);
    put(file, &sums[1], 4);
    ty_buf_fini(&example);
}

static void put_part(ty_buf *file, uint32_t kind, const void *payload, size_t n)
{
    put(file, (uint32_t[]){0xced7230a, kind << 29 | (uint32_t)n}, 8);
    put(file, payload, n);
    put(file, "   ", (4 - n % 4) % 4);
}

static void put_record(ty_buf *file, const char *picture, size_t n, float label)
{
    ty_buf bytes = new_buf(), value = new_buf(), floats = new_buf(), record = new_buf();
    ty_proto_put_bytes(&bytes, 1, picture, n);
    nest(&value, 9, &bytes);
    put_entry(&record, 1, "picture", &value);
    value = new_buf();
    ty_proto_put_bytes(&floats, 1, &label, 4);
    nest(&value, 2, &floats);
    put_entry(&record, 2, "values", &value);
    put_part(file, 0, record.data, record.len);
    ty_buf_fini(&record);
}

static ty_buf mxnet(uint32_t flag, const float *labels, const char *picture, size_t n)
{
    ty_buf b = new_buf();
    struct {
        uint32_t flag;
        float label;
        uint64_t id[2];
    } header = {flag, flag ? -1 : labels[0], {7, 0}};
    put(&b, &header, 24);
    put(&b, labels, flag * 4);
    put(&b, picture, n);
    return b;
}

static void put_mxnet(ty_buf *file, uint32_t flag, const float *labels, const char *picture, size_t n)
{
    ty_buf b = mxnet(flag, labels, picture, n);
    put_part(file, 0, b.data, b.len);
    ty_buf_fini(&b);
}

static void save(const char *name, ty_buf *file)
{
    files_put(name, file->data, file->len);
    ty_buf_fini(file);
}

static ty_image_plan plain(void)
{
    ty_image_plan p = ty_image_plan_make();
    p.scale = 1.0, p.scale_given = true;
    return p;
}

static ty_field picture(const char *name, const ty_image_plan *plan)
{
    ty_field f = ty_field_make(name);
    f.image = plan;
    return f;
}

static const char *const names[2] = {"t.tfrecord", "t.recordio"};

static void put_both(int n, const uint8_t *v, int bad)
{
    ty_buf example = new_buf(), record = new_buf();
    for (int i = 0; i < n; i++) {
        size_t bytes = i == bad ? GREY - 2 : GREY;
        put_example(&example, grey(v[i]), bytes, i);
        put_record(&record, grey(v[i]), bytes, (float)i);
    }
    save(names[0], &example);
    save(names[1], &record);
}

/* ---- tests ---- */

static void bytes_of_records_are_pictures(void **state)
{
    (void)state;
    put_both(3, (uint8_t[]){10, 20, 30}, -1);
    ty_image_plan plan = plain();
    ty_field f[2] = {picture("picture", &plan), ty_field_make("label")};
    f[1].dtype = TY_I64, f[1].dtype_given = true;
    for (int k = 0; k < 2; k++) {
        ty_dataset *ds;
        ty_error err = {0};
        float x[3][4];
        int64_t y[3], pick[3] = {2, 0, 1};
        assert_ok(files_open(names[k], f, 2, (ty_data_source){0}, &ds, &err), &err);
        assert_true(ds->field[0].type.rank == 3 && ds->field[0].type.dim[1] == 2 && ds->field[0].image);
        assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = pick, .n = 3}, (void *[]){x, y}, &err), &err);
        assert_true(x[0][0] == 30 && x[1][3] == 10 && x[2][1] == 20 && y[0] == 2 && y[2] == 1);
        ty_dataset_close(ds);
        ty_arena a;
        ty_data_survey survey;
        ty_arena_init(&a);
        const char *path = files_path(names[k]);
        assert_ok(ty_data_survey_make(&(ty_data_source){.paths = &path, .n_paths = 1}, &a, &survey, &err), &err);
        assert_true(survey.n_parts == 2 && survey.part[0].is_picture && !survey.part[1].is_picture);
        ty_arena_fini(&a);
    }
}

/* Sides are drawn anew in each epoch, alike whichever samples are read with it. */
static void pictures_in_records_are_augmented(void **state)
{
    (void)state;
    ty_buf file = new_buf();
    for (int i = 0; i < 16; i++)
        put_example(&file, "P5 2 1 255\n\x01\x02", 13, i);
    save("t.tfrecord", &file);
    ty_image_plan plan = plain();
    plan.flip_across = true;
    ty_field f = picture("picture", &plan);
    ty_dataset *ds;
    ty_error err = {0};
    float x[16][2], again[1][2], other[16][2], mine[16][2];
    int64_t all[16];
    int n_flipped = 0, n_changed = 0;
    for (int i = 0; i < 16; i++)
        all[i] = i;
    assert_ok(files_open("t.tfrecord", &f, 1, (ty_data_source){0}, &ds, &err), &err);
    ty_pick one = {all, 16, .seed = 5, .epoch = 1, .augment = true}, next = one, some = one;
    next.epoch = 2, some.sample = all + 9, some.n = 1;
    assert_ok(ty_dataset_read_all(ds, &one, (void *[]){x}, &err), &err);
    assert_ok(ty_dataset_read_all(ds, &next, (void *[]){other}, &err), &err);
    assert_ok(ty_dataset_read_all(ds, &some, (void *[]){again}, &err), &err);
    assert_ok(ty_dataset_read(ds, 0, all, 16, mine, &err), &err);
    for (int i = 0; i < 16; i++) {
        n_flipped += x[i][0] == 2;
        n_changed += x[i][0] != other[i][0];
        assert_true(mine[i][0] == 1 && x[i][0] + x[i][1] == 3);
    }
    assert_true(n_flipped > 0 && n_flipped < 16 && n_changed > 0 && again[0][0] == x[9][0]);
    ty_dataset_close(ds);
}

static void bad_pictures_in_records_have_a_place(void **state)
{
    (void)state;
    put_both(3, (uint8_t[]){10, 20, 30}, 1);
    ty_image_plan plan = plain(), deep = plan;
    deep.decode_all = true;
    for (int k = 0; k < 2; k++) {
        ty_field f = picture("picture", &deep), late = picture("picture", &plan);
        ty_dataset *ds;
        ty_error err = {0};
        float x[3][4];
        int64_t all[3] = {0, 1, 2};
        assert_int_equal(files_open(names[k], &f, 1, (ty_data_source){0}, &ds, &err), -1);
        assert_says(&err, "record 1 at byte");
        assert_says(&err, "its pixels take 4 bytes, found 2");
        err = (ty_error){0};
        assert_ok(files_open(names[k], &late, 1, (ty_data_source){0}, &ds, &err), &err);
        assert_int_equal(ty_dataset_read_all(ds, &(ty_pick){.sample = all, .n = 3}, (void *[]){x}, &err), -1);
        assert_says(&err, "record 1 at byte");
        ty_dataset_close(ds);
        err = (ty_error){0};
        assert_ok(files_open(names[k], &late, 1, (ty_data_source){.skip_bad = true}, &ds, &err), &err);
        assert_true(ds->n_samples == 2 && ds->bad.n == 1);
        assert_ok(ty_dataset_read(ds, 0, all, 2, x, &err), &err);
        assert_true(x[0][0] == 10 && x[1][0] == 30);
        ty_dataset_close(ds);
    }
    ty_field f = picture("label", &plan);
    ty_dataset *ds;
    ty_error err = {0};
    assert_int_equal(files_open("t.tfrecord", &f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "a picture is a byte string");
}

static void means_are_of_all_records(void **state)
{
    (void)state;
    put_both(2, (uint8_t[]){10, 30}, -1);
    ty_image_plan plan = plain();
    plan.mean_of_data = true;
    ty_field f = picture("picture", &plan);
    ty_dataset *ds, *other;
    ty_error err = {0};
    float x[2][4];
    int64_t all[2] = {0, 1};
    assert_ok(files_open("t.tfrecord", &f, 1, (ty_data_source){0}, &ds, &err), &err);
    assert_ok(ty_dataset_read(ds, 0, all, 2, x, &err), &err);
    assert_true(x[0][0] == -1 && x[1][0] == 1);
    put_both(2, (uint8_t[]){20, 40}, -1);
    assert_ok(files_open("t.tfrecord", &f, 1, (ty_data_source){.like = ds}, &other, &err), &err);
    assert_ok(ty_dataset_read(other, 0, all, 2, x, &err), &err);
    assert_true(x[0][0] == 0 && x[1][0] == 2);
    ty_dataset_close(other);
    ty_dataset_close(ds);
}

static void mxnets_records_are_read(void **state)
{
    (void)state;
    ty_buf file = new_buf(), b = mxnet(1, (float[]){1}, "P5 2 2  255\n\x0a\x23\xd7\xce", 16);
    put_part(&file, 1, b.data, 40); /* what its writer cuts out where it parts */
    put_part(&file, 3, b.data + 44, 0);
    put_mxnet(&file, 0, (float[]){2}, grey(7), GREY);
    ty_buf_fini(&b);
    save("t.rec", &file);
    files_puts("t.idx", "0\t0\n1\t56\n");
    ty_field f[2] = {ty_field_make("image"), ty_field_make("label")};
    ty_dataset *ds;
    ty_error err = {0};
    float x[3][4];
    int64_t y[3], all[3] = {0, 1, 2};
    assert_ok(files_open(NULL, f, 2, (ty_data_source){.format = "mxnet"}, &ds, &err), &err);
    assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = all, .n = 2}, (void *[]){x, y}, &err), &err);
    assert_true(x[0][0] == 10.0f / 255 && x[0][3] == 206.0f / 255 && x[1][0] == 7.0f / 255 && y[0] == 1 && y[1] == 2);
    ty_dataset_close(ds);

    file = new_buf();
    put_mxnet(&file, 0, (float[]){3}, grey(7), GREY);
    put_mxnet(&file, 1, (float[]){5}, grey(9), GREY);
    save("t.rec", &file);
    for (int k = 0; k < 2; k++) {
        err = (ty_error){0};
        assert_ok(
            files_open(NULL, f, 2, (ty_data_source){.content_type = k ? "application/x-recordio" : NULL}, &ds, &err),
            &err);
        assert_string_equal(ds->format, "mxnet");
        assert_true(ds->n_samples == 2 && ds->field[1].type.dtype == TY_I64 && ds->field[1].max == 5);
        assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = all, .n = 2}, (void *[]){x, y}, &err), &err);
        assert_true(x[0][0] == 7.0f / 255 && x[1][0] == 9.0f / 255 && y[0] == 3 && y[1] == 5);
        ty_dataset_close(ds);
    }
    file = new_buf();
    put_mxnet(&file, 2, (float[]){0.5f, 2}, grey(7), GREY);
    save("t.rec", &file);
    err = (ty_error){0};
    assert_ok(files_open(NULL, f, 2, (ty_data_source){0}, &ds, &err), &err);
    assert_true(ds->field[1].type.dtype == TY_F32 && ds->field[1].type.dim[0] == 2);
    assert_ok(ty_dataset_read(ds, 1, all, 1, x, &err), &err);
    assert_true(x[0][0] == 0.5f && x[0][1] == 2);
    ty_dataset_close(ds);

    file = new_buf();
    put_mxnet(&file, 0, (float[]){1}, grey(7), GREY);
    put_part(&file, 0, "\xff\xff\xff\x7f-------------------------", 29);
    put_part(&file, 0, "short", 5);
    save("t.rec", &file);
    err = (ty_error){0};
    assert_int_equal(files_open(NULL, f, 2, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "its header says 2147483647 labels, but there is room for 1");
    err = (ty_error){0};
    assert_ok(files_open(NULL, f, 2, (ty_data_source){.skip_bad = true}, &ds, &err), &err);
    assert_true(ds->n_samples == 1 && ds->bad.n == 2);
    ty_dataset_close(ds);
    f[1].name = "id";
    err = (ty_error){0};
    assert_int_equal(files_open(NULL, f, 2, (ty_data_source){.skip_bad = true}, &ds, &err), -1);
    assert_says(&err, "MXNet's records have");
}

static void a_record_of_mxnets_own_is_read(void **state)
{
    (void)state;
    const char *path = files_shared("images-misc/test_image_0.rec");
    if (path == NULL) {
        puts("skip: no ../shared");
        skip();
    }
    ty_field f[2] = {ty_field_make("image"), ty_field_make("label")};
    ty_data_source src = {.paths = &path, .n_paths = 1, .fields = f, .n_fields = 2};
    ty_dataset *ds;
    ty_error err = {0};
    assert_ok(ty_dataset_open(&src, &ds, &err), &err);
    assert_true(ds->n_samples == 1 && ds->field[0].type.dim[0] == 3 && ds->field[1].max == 0);
    ty_dataset_close(ds);
}

static void pictures_are_refused_where_there_are_none(void **state)
{
    (void)state;
    static const char *const files[][2] = {
        {"a.csv", "1,2\n3,4\n"}, {"a.libsvm", "1 1:2\n"}, {"a.jsonl", "{\"x\": 1}\n"}};
    ty_image_plan plan = plain();
    ty_field f = picture("x", &plan);
    f.columns = "0";
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        ty_dataset *ds;
        ty_error err = {0};
        files_puts(files[i][0], files[i][1]);
        assert_int_equal(files_open(files[i][0], &f, 1, (ty_data_source){0}, &ds, &err), -1);
        assert_says(&err, "field \"x\" has image:, but");
        assert_int_equal(err.code, TY_E_CONFIG);
    }
}

int main(void)
{
#define FILES(test) cmocka_unit_test_setup_teardown(test, files_setup, files_teardown)
    const struct CMUnitTest tests[] = {
        FILES(bytes_of_records_are_pictures),
        FILES(pictures_in_records_are_augmented),
        FILES(bad_pictures_in_records_have_a_place),
        FILES(means_are_of_all_records),
        FILES(mxnets_records_are_read),
        FILES(a_record_of_mxnets_own_is_read),
        FILES(pictures_are_refused_where_there_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
