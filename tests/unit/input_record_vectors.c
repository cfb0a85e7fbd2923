/* input_record_vectors.c - files of records that others wrote: the vectors of tests/golden and of the shared data,
 * whose contents are known value by value, and real data sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "container/input/example.h"
#include "container/input/frame.h"
#include "container/input/record.h"
#include "input_files.h"

#include <cjson/cJSON.h>
#include <math.h>

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
        cmocka_unit_test_setup(vectors_are_read_as_expected, files_golden_vectors),
        cmocka_unit_test_setup(vectors_are_read_as_expected, files_shared_vectors),
        cmocka_unit_test(real_files_are_read),
    };
    return cmocka_run_group_tests_name("input_record_vectors", tests, files_setup, files_teardown);
}
