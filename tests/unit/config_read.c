/* The whole of input/config: what may be missing, and how bad files are refused. */
#include "config_tree.h"

#include "container/config/container_config.h"

#define HOST "{\"current_host\": \"algo-1\", \"hosts\": [\"algo-1\"]}"

static int read_tree(tree *t, ty_container_config *c, const char *variable, ty_error *err)
{
    const char *envp[] = {ty_arena_printf(&t->arena, "SAGEMAKER_BASE_DIR=%s", t->base), variable, NULL};

    return ty_container_config_read(c, &t->arena, envp, err);
}

static void test_nothing_there(void **state)
{
    tree *t = *state;
    ty_container_config c;

    assert_int_equal(read_tree(t, &c, "TRAINING_JOB_NAME=local", NULL), 0);
    assert_int_equal(c.n_notices, 3);
    assert_contains(c.notices[0], "resourceconfig.json is not there: a single host is assumed");
    assert_int_equal(c.resources.n_hosts, 1);
    assert_int_equal(c.channels.n_items, 0);
    assert_int_equal(c.arguments.n_words, 0);
    assert_true(c.distribution.is_master);
    assert_string_equal(c.paths.model, tree_path(t, "model"));
}

/* On the platform a lost file must not turn each host of a cluster into a job of its own. */
static void test_managed_job_needs_resources(void **state)
{
    tree *t = *state;
    ty_container_config c;
    ty_error err = {0};

    assert_int_equal(read_tree(t, &c, "TRAINING_JOB_ARN=arn:aws:x", &err), -1);
    assert_int_equal(err.code, TY_E_NOT_FOUND);
    assert_int_equal(ty_error_exit_status(err.code), 66);
    assert_contains(err.message, "resourceconfig.json");
    tree_write(t, "input/config/resourceconfig.json", HOST);
    assert_int_equal(read_tree(t, &c, "TRAINING_JOB_ARN=arn:aws:x", NULL), 0);
    assert_int_equal(c.n_notices, 2);
}

static void test_checkpoint_path(void **state)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"{\"LocalPath\": \"/data/ckpt\"}", "/data/ckpt"},
        {"{\"LocalPath\": null}", NULL},
        {"{\"LocalPath\": \"\"}", NULL},
        {"{}", NULL},
        {"[]", NULL},
    };
    tree *t = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_container_config c;
        tree_write(t, "input/config/checkpointconfig.json", rows[i].text);
        assert_int_equal(read_tree(t, &c, NULL, NULL), 0);
        assert_string_equal(c.paths.checkpoints,
                            rows[i].expected == NULL ? tree_path(t, "checkpoints") : rows[i].expected);
    }
}

static void test_raw_false_is_told(void **state)
{
    tree *t = *state;
    ty_container_config c;

    tree_write(t, "input/config/hyperparameters.json", "{\"sagemaker_mpi_enabled\": \"False\"}");
    tree_write(t, "input/config/resourceconfig.json", HOST);
    tree_write(t, "input/config/inputdataconfig.json", "{}");
    assert_int_equal(read_tree(t, &c, NULL, NULL), 0);
    assert_int_equal(c.n_notices, 1);
    assert_contains(c.notices[0], "sagemaker_mpi_enabled");
}

static void test_bad_files(void **state)
{
    static const struct {
        const char *file, *text;
        ty_code code;
        const char *place, *message;
    } rows[] = {
        {"hyperparameters.json", "", TY_E_SYNTAX, "hyperparameters.json:1:1", ""},
        {"hyperparameters.json", "{\"a\": \"1\",\n}", TY_E_SYNTAX, "hyperparameters.json:2:1", ""},
        {"hyperparameters.json", "{\"a\": \"1\"", TY_E_SYNTAX, "hyperparameters.json:1:10", ""},
        {"hyperparameters.json", "{\"a\": \"1\"} x", TY_E_SYNTAX, "hyperparameters.json:1:12", ""},
        {"hyperparameters.json", "{\"a\": \"1\",\n \"a\": \"2\"}", TY_E_DUPLICATE, "hyperparameters.json:2:2", "\"a\""},
        {"hyperparameters.json", "{'a': 1}", TY_E_SYNTAX, "hyperparameters.json:1:2", ""},
        {"hyperparameters.json", "{\"a\": \"\xff\"}", TY_E_SYNTAX, "hyperparameters.json:1:", ""},
        {"hyperparameters.json", "[1, 2]", TY_E_TYPE, "hyperparameters.json:1:1", "expected"},
        {"hyperparameters.json", "null", TY_E_TYPE, "hyperparameters.json:1:1", "expected"},
        {"hyperparameters.json", "{\"sagemaker_program\": \"7.5\"}", TY_E_TYPE, "", "sagemaker_program"},
        {"hyperparameters.json", "{\"sagemaker_distribution_instance_groups\": \"g\"}", TY_E_TYPE, "",
         "found a string"},
        {"resourceconfig.json", "{\"hosts\": [\"a\"]", TY_E_SYNTAX, "resourceconfig.json:1:16", ""},
        {"resourceconfig.json", "{\"hosts\": [\"a\"]}", TY_E_MISSING_KEY, "resourceconfig.json:1:1", "current_host"},
        {"resourceconfig.json", "{\"hosts\": {\"a\": 1}, \"current_host\": \"a\"}", TY_E_TYPE,
         "resourceconfig.json:1:11", ""},
        {"inputdataconfig.json", "{\"train\": {\"TrainingInputMode\": \"File\"},}", TY_E_SYNTAX,
         "inputdataconfig.json:1:41", ""},
        {"inputdataconfig.json", "{\"train\": {}, \"train\": {}}", TY_E_DUPLICATE, "inputdataconfig.json:1:15",
         "train"},
        {"inputdataconfig.json", "{\"../x\": {}}", TY_E_RANGE, "inputdataconfig.json:1:2", "../x"},
        {"checkpointconfig.json", "{", TY_E_SYNTAX, "checkpointconfig.json:1:2", ""},
    };
    tree *t = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *path = ty_arena_printf(&t->arena, "input/config/%s", rows[i].file);
        ty_container_config c;
        ty_error err = {0};
        tree_write(t, path, rows[i].text);
        int rc = read_tree(t, &c, NULL, &err);
        if (rc != -1 || err.code != rows[i].code || strstr(err.place, rows[i].place) == NULL ||
            strstr(err.message, rows[i].message) == NULL)
            fail_msg("row %zu: %d E%04d %s: %s", i, rc, (int)err.code, err.place, err.message);
        assert_int_equal(ty_error_exit_status(err.code), 78);
        assert_int_equal(unlink(tree_path(t, path)), 0);
    }
}

static void test_not_a_file(void **state)
{
    tree *t = *state;
    ty_container_config c;
    ty_error err = {0};

    assert_int_equal(ty_file_mkdirs(tree_path(t, "input/config/hyperparameters.json"), 0777, NULL), 0);
    assert_int_equal(read_tree(t, &c, NULL, &err), -1);
    assert_contains(err.message, "hyperparameters.json");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_nothing_there),   TREE_TEST(test_managed_job_needs_resources),
        TREE_TEST(test_checkpoint_path), TREE_TEST(test_raw_false_is_told),
        TREE_TEST(test_bad_files),       TREE_TEST(test_not_a_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
