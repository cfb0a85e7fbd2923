/* The tree's names, and making its folders. */
#include "config_tree.h"

#include "container/config/paths.h"

#include <sys/stat.h>

static void test_names(void **state)
{
    static const struct {
        const char *base, *expected_base, *model, *failure;
    } rows[] = {
        {NULL, "/opt/ml", "/opt/ml/model", "/opt/ml/output/failure"},
        {"", "/opt/ml", "/opt/ml/model", "/opt/ml/output/failure"},
        {"/x/y/", "/x/y", "/x/y/model", "/x/y/output/failure"},
        {"rel", "rel", "rel/model", "rel/output/failure"},
        {"/", "/", "/model", "/output/failure"},
        {"//", "/", "/model", "/output/failure"},
    };
    tree *t = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_paths p;
        ty_paths_init(&p, &t->arena, rows[i].base);
        assert_string_equal(p.base, rows[i].expected_base);
        assert_string_equal(p.model, rows[i].model);
        assert_string_equal(p.failure, rows[i].failure);
    }
}

static void test_all(void **state)
{
    tree *t = *state;
    ty_paths p;

    ty_paths_init(&p, &t->arena, NULL);
    assert_string_equal(p.input, "/opt/ml/input");
    assert_string_equal(p.input_config, "/opt/ml/input/config");
    assert_string_equal(p.input_data, "/opt/ml/input/data");
    assert_string_equal(p.code, "/opt/ml/code");
    assert_string_equal(p.checkpoints, "/opt/ml/checkpoints");
    assert_string_equal(p.output, "/opt/ml/output");
    assert_string_equal(p.output_data, "/opt/ml/output/data");
    assert_string_equal(p.output_intermediate, "/opt/ml/output/intermediate");
    assert_string_equal(p.failure_json, "/opt/ml/output/failure.json");
    assert_string_equal(p.success, "/opt/ml/output/success");
    assert_string_equal(ty_paths_channel(&p, &t->arena, "train"), "/opt/ml/input/data/train");
    assert_string_equal(ty_paths_config_file(&p, &t->arena, "a.json"), "/opt/ml/input/config/a.json");
}

static void test_create(void **state)
{
    tree *t = *state;
    ty_paths p;
    ty_error err = {0};

    ty_paths_init(&p, &t->arena, tree_path(t, "ml"));
    assert_int_equal(ty_paths_create(&p, NULL), 0);
    assert_int_equal(ty_paths_create(&p, NULL), 0);
    assert_true(ty_file_is_folder(p.output_data));
    assert_true(ty_file_is_folder(p.model));
    assert_false(ty_file_exists(p.checkpoints));

    tree_write(t, "other/output", "a file in the way");
    ty_paths_init(&p, &t->arena, tree_path(t, "other"));
    assert_int_equal(ty_paths_create(&p, &err), -1);
    assert_int_equal(err.code, TY_E_CREATE);
    assert_contains(err.message, p.output);
    assert_contains(err.message, "Not a directory");

    err = (ty_error){0};
    ty_paths_init(&p, &t->arena, tree_path(t, "no/such/parent"));
    assert_int_equal(ty_paths_create(&p, &err), -1);
    assert_int_equal(err.code, TY_E_CREATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TREE_TEST(test_names), TREE_TEST(test_all), TREE_TEST(test_create)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
