/* keras_write.c - files of Keras written again: nothing but weights and what the optimizer keeps changes, and that is
 * where Keras looks for it. The files are those of tests/golden/keras/make.py; tests/import/keras_files.sh shows what
 * we write to Keras itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "keras_files.h"

#include "base/zip.h"
#include "compiler/import/keras/keras_write.h"

static int sink(void *ctx, const void *bytes, size_t n, ty_error *err)
{
    return ty_buf_add(ctx, bytes, n) < 0 ? ty_error_set(err, TY_E_LIMIT, "full") : 0;
}

/* Writes and opens what came out. */
static keras_file write_again(const keras_file *f, const keras_value *v, int n, const keras_trained *t)
{
    const char *path = ty_arena_printf(&arena, "%s/out%s", folder, keras_file_suffix(f));
    keras_file again;
    ty_error err = {0};
    ty_buf out;
    ty_buf_init(&out, 1 << 22);
    if (keras_file_write(f, v, n, t, sink, &out, &err) < 0)
        fail_msg("%s", err.message);
    assert_int_equal(ty_file_write(path, out.data, out.len, 0644, &err), 0);
    ty_buf_fini(&out);
    if (keras_file_open(path, &arena, &again, &err) < 0)
        fail_msg("%s", err.message);
    return again;
}

static void assert_same_tensor(const keras_tensor *a, const keras_tensor *b)
{
    assert_string_equal(a->path, b->path);
    assert_true(ty_type_same(&a->type, &b->type));
    assert_memory_equal(a->data, b->data, ty_type_bytes(&a->type));
}

static void assert_same_text(const ty_doc *a, const ty_doc *b)
{
    assert_true((a == NULL) == (b == NULL));
    if (!a)
        return;
    assert_int_equal(a->source->len, b->source->len);
    assert_memory_equal(a->source->text, b->source->text, a->source->len);
}

static void nothing_changes_without_values(void **state)
{
    (void)state;
    static const char *const names[] = {"trained.keras",   "trained.h5",   "types.keras", "types_1_10.keras",
                                        "old_group.keras", "cut_names.h5", "apart.json"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        keras_file f = open_file(names[i]), again = write_again(&f, NULL, 0, NULL);
        assert_int_equal(again.n_tensors, f.n_tensors);
        for (int k = 0; k < f.n_tensors; k++)
            assert_same_tensor(&f.tensor[k], &again.tensor[k]);
        assert_same_text(f.config, again.config);
        if (f.form == KERAS_ZIP)
            assert_same_text(f.metadata, again.metadata);
        if (f.form == KERAS_LEGACY)
            assert_same_text(f.compile, again.compile);
        keras_file_close(&f), keras_file_close(&again);
    }
}

/* Every kind of number and of storage takes other values, in place. */
static void weights_change_where_they_are(void **state)
{
    (void)state;
    static const char *const names[] = {"types.keras", "types_1_10.keras", "trained.h5", "old_group.keras"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        keras_file f = open_file(names[i]);
        keras_value v[32];
        for (int k = 0; k < f.n_tensors; k++) {
            size_t n = ty_type_bytes(&f.tensor[k].type);
            uint8_t *data = ty_arena_copy(&arena, f.tensor[k].data, n);
            for (size_t b = 0; b < n; b++)
                data[b] = f.tensor[k].type.dtype == TY_BOOL ? !data[b] : data[b] ^ 0x15;
            v[k] = (keras_value){f.tensor[k].path, NULL, f.tensor[k].type, data};
        }
        keras_file again = write_again(&f, v, f.n_tensors, NULL);
        assert_int_equal(again.n_tensors, f.n_tensors);
        for (int k = 0; k < f.n_tensors; k++)
            assert_memory_equal(again.tensor[k].data, v[k].data, ty_type_bytes(&v[k].type));
        assert_same_text(f.config, again.config);
        keras_file_close(&f), keras_file_close(&again);
    }
}

static void members_keep_their_order_and_are_stored(void **state)
{
    (void)state;
    static const char *const expected[] = {"metadata.json", "config.json", "model.weights.h5"};
    static const char *const names[] = {"trained.keras", "apart.json"};
    for (int i = 0; i < 2; i++) {
        keras_file f = open_file(names[i]);
        ty_buf out;
        ty_zip z;
        ty_zip_walk walk = {0};
        ty_zip_entry e;
        ty_buf_init(&out, 1 << 22);
        assert_int_equal(keras_file_write(&f, NULL, 0, NULL, sink, &out, NULL), 0);
        assert_int_equal(ty_zip_open((uint8_t *)out.data, out.len, &z, NULL), 0);
        for (int k = 0; k < 3; k++) {
            assert_int_equal(ty_zip_next(&z, &walk, &e, NULL), 1);
            assert_int_equal(e.method, 0);
            assert_int_equal(e.name_bytes, strlen(expected[k]));
            assert_memory_equal(e.name, expected[k], e.name_bytes);
        }
        ty_buf_fini(&out);
        keras_file_close(&f);
    }
}

/* ---- the optimizer's ---- */

/* Moments whose numbers say what they are: letter, and number of the weight. */
static const void *find_moment(void *ctx, const char *moment, const char *weight, const ty_type *type)
{
    static const char *const weights[] = {"first/kernel", "first/bias", "second/kernel", "second/bias"};
    (void)ctx;
    float base = 0;
    for (int i = 0; i < 4; i++)
        if (strcmp(weights[i], weight) == 0)
            base = (float)(i + 1);
    int64_t n = ty_type_elems(type);
    float *out = TY_NEW_ARRAY(&arena, float, n);
    for (int64_t i = 0; i < n; i++)
        out[i] = base + 100 * (float)moment[0];
    return base > 0 ? out : NULL;
}

static keras_weight weights[4] = {
    {.name = "first/kernel"}, {.name = "first/bias"}, {.name = "second/kernel"}, {.name = "second/bias"}};
static const keras_weight *const trained_weights[4] = {&weights[0], &weights[1], &weights[2], &weights[3]};

static keras_trained trained_by(const ty_model_moments *moments, const keras_file *f)
{
    for (int i = 0; i < 4; i++)
        weights[i].type = f->tensor[i].type;
    return (keras_trained){moments, trained_weights, 4};
}

static void moments_go_where_keras_keeps_them(void **state)
{
    (void)state;
    static const char *const names[] = {"untrained.keras", "trained.keras", "trained.h5", "apart.json"};
    ty_model_moments moments = {"keras_adam", 17, 0.25, find_moment, NULL};
    for (int i = 0; i < 4; i++) {
        keras_file f = open_file(names[i]);
        keras_trained t = trained_by(&moments, &f);
        keras_file again = write_again(&f, NULL, 0, &t);
        const keras_tensor *o = again.tensor + 4;
        assert_int_equal(again.n_tensors, 14);
        assert_type(&o[0], "i64[]");
        assert_int_equal(*(const int64_t *)o[0].data, 17);
        assert_true(*(const float *)o[1].data == 0.25f);
        for (int k = 0; k < 8; k++) {
            assert_true(ty_type_same(&o[2 + k].type, &f.tensor[k / 2].type));
            assert_true(*(const float *)o[2 + k].data == (float)(k / 2 + 1) + 100 * (float)"mv"[k % 2]);
        }
        for (int k = 0; k < 4; k++)
            assert_same_tensor(&f.tensor[k], &again.tensor[k]);
        keras_file_close(&f), keras_file_close(&again);
    }
}

/* With another optimizer than the file's, what the file has of its own stays. */
static void moments_of_another_optimizer_are_left_out(void **state)
{
    (void)state;
    ty_model_moments moments = {"keras_sgd", 17, 0.25, find_moment, NULL};
    keras_file f = open_file("trained.keras");
    keras_trained t = trained_by(&moments, &f);
    keras_file again = write_again(&f, NULL, 0, &t);
    for (int k = 0; k < f.n_tensors; k++)
        assert_same_tensor(&f.tensor[k], &again.tensor[k]);
    keras_file_close(&f), keras_file_close(&again);
}

/* A configuration alone gets weights, in groups that say whose they are. */
static void weights_are_added(void **state)
{
    (void)state;
    assert_int_equal(ty_file_mkdirs(path_of("alone"), 0755, NULL), 0);
    assert_int_equal(ty_file_copy(path_of("apart.json"), path_of("alone/config.json"), NULL), 0);
    keras_file f = open_file("alone");
    float data[12];
    keras_value v[3];
    for (int i = 0; i < 12; i++)
        data[i] = (float)i;
    v[0] = (keras_value){"layers/dense/vars/0", "first", ty_type_make(TY_F32, 2, (int64_t[]){3, 4}), data};
    v[1] = (keras_value){"layers/dense/vars/1", "first", ty_type_make(TY_F32, 1, (int64_t[]){4}), data + 4};
    v[2] = (keras_value){"layers/lookup/vars/0", "lookup", ty_type_make(TY_BF16, 1, (int64_t[]){4}), data + 1};
    keras_file again = write_again(&f, v, 3, NULL);
    assert_int_equal(again.form, KERAS_ZIP);
    assert_string_equal(again.version, "3.10.0");
    assert_int_equal(again.n_tensors, 3);
    for (int i = 0; i < 3; i++) {
        assert_string_equal(again.tensor[i].path, v[i].path);
        assert_true(ty_type_same(&again.tensor[i].type, &v[i].type));
        assert_memory_equal(again.tensor[i].data, v[i].data, ty_type_bytes(&v[i].type));
    }
    assert_same_text(f.config, again.config);
    keras_file_close(&f), keras_file_close(&again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_changes_without_values),
        cmocka_unit_test(weights_change_where_they_are),
        cmocka_unit_test(members_keep_their_order_and_are_stored),
        cmocka_unit_test(moments_go_where_keras_keeps_them),
        cmocka_unit_test(moments_of_another_optimizer_are_left_out),
        cmocka_unit_test(weights_are_added),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
