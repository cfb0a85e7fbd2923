/* keras_file.c - files of Keras opened: every form, every type and storage, every refusal. The files are those of
 * tests/golden/keras/make.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "keras_files.h"

static void archives_are_opened(void **state)
{
    (void)state;
    keras_file f = open_file("trained.keras");
    assert_int_equal(f.form, KERAS_ZIP);
    assert_string_equal(ty_doc_find(f.config, "class_name")->string, "Sequential");
    assert_string_equal(ty_doc_find(ty_doc_find(f.compile, "optimizer"), "class_name")->string, "Adam");
    assert_non_null(f.metadata);
    assert_memory_equal(f.version, "3.", 2);
    assert_true(f.has_weights);
    assert_int_equal(f.n_tensors, 14);
    assert_type(tensor_of(&f, "layers/dense/vars/0"), "f32[3,4]");
    assert_type(tensor_of(&f, "layers/dense_1/vars/1"), "f32[2]");
    assert_string_equal(f.tensor[4].path, "optimizer/vars/0");
    assert_type(&f.tensor[4], "i64[]");
    assert_string_equal(f.tensor[13].path, "optimizer/vars/9");
    keras_file_close(&f);
    keras_file_close(&f);
    f = open_file("old_group.keras");
    assert_type(tensor_of(&f, "layers/dense/vars/0"), "f32[3,4]");
    keras_file_close(&f);
}

static void legacy_files_are_opened(void **state)
{
    (void)state;
    keras_file f = open_file("trained.h5");
    assert_int_equal(f.form, KERAS_LEGACY);
    assert_string_equal(ty_doc_find(f.config, "class_name")->string, "Sequential");
    assert_string_equal(ty_doc_find(f.compile, "loss")->string, "mse");
    assert_int_equal(f.n_tensors, 14);
    assert_string_equal(f.tensor[0].path, "model_weights/first/small/first/kernel");
    assert_string_equal(f.tensor[0].layer, "first");
    assert_string_equal(f.tensor[4].path, "optimizer_weights/adam/iteration");
    assert_null(f.tensor[4].layer);
    keras_file_close(&f);
    f = open_file("cut_names.h5"); /* "b" is listed before "a" */
    assert_string_equal(f.version, "2.3.1");
    assert_int_equal(f.n_tensors, 4);
    assert_string_equal(f.tensor[0].path, "model_weights/b/b/k:0");
    assert_string_equal(f.tensor[3].path, "model_weights/a/a/b:0");
    assert_true(*(const float *)f.tensor[3].data == 'a');
    keras_file_close(&f);
}

static void configuration_and_weights_may_lie_apart(void **state)
{
    (void)state;
    static const char *const names[] = {"apart.json", "apart.weights.h5"};
    for (int i = 0; i < 2; i++) {
        keras_file f = open_file(names[i]);
        assert_int_equal(f.form, KERAS_CONFIG);
        assert_string_equal(ty_doc_find(f.config, "class_name")->string, "Sequential");
        assert_true(f.has_weights);
        assert_type(tensor_of(&f, "layers/dense_1/vars/0"), "f32[4,2]");
        keras_file_close(&f);
    }
    const char *unpacked = path_of("unpacked");
    assert_int_equal(ty_file_mkdirs(unpacked, 0755, NULL), 0);
    assert_int_equal(ty_file_copy(path_of("apart.json"), path_of("unpacked/config.json"), NULL), 0);
    assert_true(keras_file_matches(unpacked, NULL, 0));
    keras_file f = open_file("unpacked");
    assert_int_equal(f.form, KERAS_FOLDER);
    assert_false(f.has_weights);
    assert_int_equal(f.n_tensors, 0);
    keras_file_close(&f);
    assert_int_equal(ty_file_copy(path_of("apart.weights.h5"), path_of("unpacked/model.weights.h5"), NULL), 0);
    f = open_file("unpacked");
    assert_int_equal(f.n_tensors, 6);
    keras_file_close(&f);
}

static double number(const keras_tensor *t, int i)
{
    switch (t->type.dtype) {
    case TY_F16:
        return ty_f16_to_f32(((const uint16_t *)t->data)[i]);
    case TY_BF16:
        return ty_bf16_to_f32(((const uint16_t *)t->data)[i]);
    case TY_F32:
        return ((const float *)t->data)[i];
    case TY_F64:
        return ((const double *)t->data)[i];
    case TY_I32:
        return ((const int32_t *)t->data)[i];
    case TY_I64:
        return (double)((const int64_t *)t->data)[i];
    case TY_U16:
        return ((const uint16_t *)t->data)[i];
    default:
        return ((const int8_t *)t->data)[i];
    }
}

static void types_and_storage_are_read(void **state)
{
    (void)state;
    static const char *const types[] = {"f16[2,3]",   "f32[2,3]", "f64[2,3]", "f32[2,3]",  "f64[2,3]", "f16[2,3]",
                                        "i32[2,3]",   "i64[2,3]", "u16[2,3]", "i8[2,3]",   "bool[3]",  "bf16[2,3]",
                                        "f32[20,30]", "f32[]",    "f32[0,3]", "f32[20,30]"};
    static const double numbers[] = {1.5, -2, 0.25, 4, 5, 6}, whole[] = {1, -2, 0, 4, 5, 6};
    static const char *const names[] = {"types.keras", "types_1_10.keras"};
    for (int k = 0; k < 2; k++) {
        keras_file f = open_file(names[k]);
        assert_int_equal(f.n_tensors, 16);
        for (int i = 0; i < 16; i++) {
            assert_type(&f.tensor[i], types[i]);
            const double *expected = i >= 6 && i < 10 ? whole : numbers;
            for (int j = 0; j < 6 && i != 8 && i != 10 && (i < 10 || i == 11); j++)
                assert_true(number(&f.tensor[i], j) == expected[j]);
        }
        for (int j = 0; j < 600; j++)
            assert_true(number(&f.tensor[12], j) == j && number(&f.tensor[15], j) == j);
        assert_memory_equal(f.tensor[10].data, "\1\0\1", 3);
        assert_true(number(&f.tensor[13], 0) == 7);
        keras_file_close(&f);
    }
}

/* Each names the file and, below it, the place; and says what was found. */
static void hostile_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *name, *says;
    } rows[] = {
        {"bad_soft.keras", "model.weights.h5: \"/layers/b\" is a soft link, expected a group or a data set"},
        {"bad_external.keras", "model.weights.h5: \"/layers/a\" is a link into another file"},
        {"bad_virtual.keras", "data set \"/layers/a/vars/0\": is virtual"},
        {"bad_storage.keras", "data set \"/layers/a/vars/0\": keeps its data in another file"},
        {"bad_filter.keras", "data set \"/layers/a/vars/0\": is packed with filter 32000, expected deflate"},
        {"bad_cycle.keras", "/layers/a/again/a/again"},
        {"bad_deep.keras", "groups more than 32 deep"},
        {"bad_bomb.keras", "data set \"/layers/a/vars/0\": claims 274877906944 bytes, 0 are stored"},
        {"bad_claim.keras", "claims 4194304 bytes, 0 are stored"},
        {"bad_rank.keras", "has 9 dimensions, at most 8 are read"},
        {"bad_text.keras", "data set \"layers/a/vars/0\": expected numbers"},
        {"bad_link.keras", "zip: member \"assets/link\": is a symbolic link"},
        {"bad_traversal.keras", "zip: member \"../../tmp/keras-was-here\": has a name with a part \".\" or \"..\""},
        {"bad_absolute.keras", "zip: member \"/tmp/keras-was-here\": has an absolute name"},
        {"bad_twice.keras", "zip: member \"config.json\": is there twice"},
        {"bad_inflation.keras", "zip: member \"config.json\": 305762 bytes would inflate to 314572800"},
        {"bad_config.keras", "expected a value, found end of file"},
        {"bad_depth.keras", "nested deeper than the limit"},
        {"bad_nothing.keras", "expected the configuration of a Keras model"},
        {"bad_missing.keras", "expected a member \"model.weights.h5\" in the archive, found none"},
        {"bad_h5.keras", "expected the signature of HDF5"},
        {"bad_cut.keras", "no HDF5 file can be opened in these 3000 bytes (HDF5 says: "},
        {"bad_listed.h5", "group \"model_weights/a\" lists the weight \"../../x\", but there is no data set"},
        {"bad_alone.h5", "these are weights alone, expected an attribute \"model_config\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        keras_file f;
        ty_error err = {0};
        if (keras_file_open(path_of(rows[i].name), &arena, &f, &err) == 0)
            fail_msg("%s is taken", rows[i].name);
        if (!strstr(err.message, rows[i].says))
            fail_msg("%s: \"%s\" does not say \"%s\"", rows[i].name, err.message, rows[i].says);
        if (!strstr(err.message, rows[i].name) && !strstr(err.place, rows[i].name))
            fail_msg("%s is not named: \"%s\" at \"%s\"", rows[i].name, err.message, err.place);
        assert_null(f.impl);
    }
    assert_false(ty_file_exists("/tmp/keras-was-here"));
}

static void other_files_are_refused(void **state)
{
    (void)state;
    keras_file f;
    ty_error err = {0};
    assert_int_equal(ty_file_write(path_of("text.keras"), "no archive", 10, 0644, NULL), 0);
    assert_int_equal(keras_file_open(path_of("text.keras"), &arena, &f, &err), -1);
    assert_non_null(strstr(err.message, "expected a zip archive or an HDF5 file, found neither in its 10 bytes"));
    assert_int_equal(keras_file_open(path_of("absent.keras"), &arena, &f, &err), -1);
    assert_non_null(strstr(err.message, "absent.keras"));
    assert_int_equal(keras_file_open(path_of("absent.keras"), &arena, &f, NULL), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(archives_are_opened),
        cmocka_unit_test(legacy_files_are_opened),
        cmocka_unit_test(configuration_and_weights_may_lie_apart),
        cmocka_unit_test(types_and_storage_are_read),
        cmocka_unit_test(hostile_files_are_refused),
        cmocka_unit_test(other_files_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
