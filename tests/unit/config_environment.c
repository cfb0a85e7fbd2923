/* The variables beyond what contract_vectors.c compares: limits, odd names, merging, program settings, hardware. */
#include "config_tree.h"

#include "container/config/container_config.h"
#include "container/config/environment.h"
#include "container/config/python_json.h"

static ty_environment environment_of(tree *t, ty_container_config *c, const char *hyperparameters,
                                     const char *const *variables)
{
    const ty_hardware hardware = {.num_cpus = 2};
    const char *envp[16] = {ty_arena_printf(&t->arena, "SAGEMAKER_BASE_DIR=%s", t->base)};
    ty_environment e;
    ty_error err = {0};

    for (size_t i = 0; variables != NULL && variables[i] != NULL; i++)
        envp[i + 1] = variables[i];
    tree_write(t, "input/config/hyperparameters.json", hyperparameters);
    if (ty_container_config_read(c, &t->arena, envp, &err) < 0)
        fail_msg("%s: %s %s", hyperparameters, err.place, err.message);
    ty_environment_init(&e, &t->arena,
                        &(ty_environment_sources){&c->paths, &c->hyperparameters, &c->arguments, &c->resources,
                                                  &c->distribution, &c->channels, &c->program, &hardware,
                                                  &c->inherited});
    return e;
}

static void test_defaults(void **state)
{
    tree *t = *state;
    ty_container_config c;
    ty_environment e = environment_of(t, &c, "{}", NULL);

    assert_string_equal(ty_environment_get(&e, "SM_MODULE_NAME"), "None");
    assert_string_equal(ty_environment_get(&e, "SM_USER_ENTRY_POINT"), "");
    assert_string_equal(ty_environment_get(&e, "SM_MODULE_DIR"), c.paths.code);
    assert_string_equal(ty_environment_get(&e, "PYTHONPATH"), c.paths.code);
    assert_string_equal(ty_environment_get(&e, "SM_LOG_LEVEL"), "20");
    assert_string_equal(ty_environment_get(&e, "SM_NUM_GPUS"), "0");
    assert_string_equal(ty_environment_get(&e, "SM_CHANNELS"), "[]");
    assert_string_equal(ty_environment_get(&e, "SM_HPS"), "{}");
    assert_string_equal(ty_environment_get(&e, "SM_USER_ARGS"), "[]");
    assert_string_equal(ty_environment_get(&e, "SM_HOST_COUNT"), "1");
    assert_string_equal(ty_environment_get(&e, "SM_CURRENT_HOST_RANK"), "0");
    assert_null(ty_environment_get(&e, "SM_TOPOLOGY"));
    assert_int_equal(e.n_left_out, 0);
}

static void test_names(void **state)
{
    tree *t = *state;
    ty_container_config c;
    ty_environment e = environment_of(t, &c,
                                      "{\"a-b\": \"1\", \"a=b\": \"2\", \"Lr\": \"3\", \"lr\": \"4\", \"x_y\": \"5\", "
                                      "\"x-y\": \"6\", \"\\u00e4\\u4e2d\": \"7\"}",
                                      NULL);

    assert_string_equal(ty_environment_get(&e, "SM_HP_A-B"), "1");
    assert_null(ty_environment_get(&e, "SM_HP_A=B"));
    assert_non_null(ty_environment_get(&e, "SM_HP_A_B"));
    assert_string_equal(ty_environment_get(&e, "SM_HP_LR"), "4");
    assert_string_equal(ty_environment_get(&e, "SM_HP_X_Y"), "5"); /* a real name beats a made one */
    assert_string_equal(ty_environment_get(&e, "SM_HP_\xc3\x84\xe4\xb8\xad"), "7");
    assert_string_equal(ty_environment_get(&e, "SM_HP___"), "7");
    for (size_t i = 1; i < e.n_items; i++)
        assert_true(strcmp(e.items[i - 1].name, e.items[i].name) < 0);
}

/* 128 KiB a string is the kernel's limit: such variables are left out and named, the rest stays. */
static void test_too_long(void **state)
{
    tree *t = *state;
    ty_container_config c;
    size_t n = TY_ENVIRONMENT_STRING_MAX_BYTES - strlen("SM_HP_BIG=") - 1;
    char *big = calloc(1, n + 64), *text;

    memset(big, 'x', n);
    text = ty_arena_printf(&t->arena, "{\"big\": \"%s\", \"a\": \"1\"}", big);
    ty_environment e = environment_of(t, &c, text, NULL);
    assert_non_null(ty_environment_get(&e, "SM_HP_BIG"));
    assert_null(ty_environment_get(&e, "SM_HPS"));
    assert_null(ty_environment_get(&e, "SM_TRAINING_ENV"));
    assert_int_equal(e.n_left_out, 3); /* SM_HPS, SM_USER_ARGS, SM_TRAINING_ENV */
    big[n] = 'x';
    text = ty_arena_printf(&t->arena, "{\"big\": \"%s\", \"a\": \"1\"}", big);
    e = environment_of(t, &c, text, NULL);
    assert_null(ty_environment_get(&e, "SM_HP_BIG"));
    assert_string_equal(ty_environment_get(&e, "SM_HP_A"), "1");
    assert_int_equal(e.n_left_out, 4);
    free(big);
}

static const char *block_value(char **block, const char *name, int *count)
{
    const char *value = NULL;

    *count = 0;
    for (; *block != NULL; block++)
        if (strncmp(*block, name, strlen(name)) == 0 && (*block)[strlen(name)] == '=') {
            value = *block + strlen(name) + 1;
            ++*count;
        }
    return value;
}

static void test_block(void **state)
{
    static const char *const variables[] = {
        "PATH=/bin", "SM_MODEL_DIR=/else", "PYTHONPATH=/lib/a:/lib/b", "SM_HP_A=old", "EMPTY=", NULL};
    tree *t = *state;
    ty_container_config c;
    ty_environment e = environment_of(t, &c, "{\"a\": \"new\"}", variables);
    char **block = ty_environment_block(&e, &t->arena, variables);
    int n;

    assert_string_equal(block_value(block, "PATH", &n), "/bin");
    assert_string_equal(block_value(block, "EMPTY", &n), "");
    assert_string_equal(block_value(block, "SM_HP_A", &n), "new");
    assert_int_equal(n, 1);
    assert_string_equal(block_value(block, "SM_MODEL_DIR", &n), c.paths.model);
    assert_int_equal(n, 1);
    assert_string_equal(block_value(block, "PYTHONPATH", &n),
                        ty_arena_printf(&t->arena, "%s:/lib/a:/lib/b", c.paths.code));
    assert_int_equal(n, 1);
}

static void test_program(void **state)
{
    static const char *const program[] = {"SAGEMAKER_PROGRAM=sub/run.sh", "AWS_REGION=eu-north-1", NULL};
    tree *t = *state;
    ty_container_config c;
    ty_environment e;

    environment_of(t, &c,
                   "{\"sagemaker_program\": \"\\\"train.py\\\"\", \"sagemaker_region\": \"\\\"eu-west-1\\\"\", "
                   "\"sagemaker_container_log_level\": \"30\"}",
                   NULL);
    assert_string_equal(c.program.entry_point, "train.py");
    assert_string_equal(c.program.module_name, "train");
    assert_string_equal(c.program.region, "eu-west-1");
    assert_null(c.program.s3_output);
    e = environment_of(t, &c,
                       "{\"sagemaker_program\": \"\\\"train.py\\\"\", \"sagemaker_submit_directory\": "
                       "\"\\\"/opt/ml/code\\\"\"}",
                       program);
    assert_string_equal(c.program.entry_point, "sub/run.sh");
    assert_string_equal(c.program.module_name, "sub/run.sh");
    assert_string_equal(c.program.submit_directory, "/opt/ml/code");
    assert_string_equal(ty_environment_get(&e, "SAGEMAKER_REGION"), "eu-north-1");
}

static void test_program_refused(void **state)
{
    const ty_inherited nothing = {0};
    tree *t = *state;
    ty_program p;
    ty_value known;
    ty_error err = {0};
    static const char text[] = "{\"sagemaker_program\": [\"a.py\"]}";

    assert_true(ty_python_json_read(&t->arena, text, strlen(text), &known));
    assert_int_equal(ty_program_init(&p, &t->arena, &known, &nothing, "/code", &err), -1);
    assert_int_equal(err.code, TY_E_TYPE);
    assert_contains(err.message, "\"sagemaker_program\": expected a string, found a list");
}

static void test_hardware(void **state)
{
    ty_hardware h = ty_hardware_detect();

    (void)state;
    assert_int_equal(h.num_cpus, sysconf(_SC_NPROCESSORS_ONLN));
    assert_in_range(h.num_gpus, 0, 1024);
    if (access("/dev/nvidiactl", F_OK) != 0)
        assert_int_equal(h.num_gpus, 0);
    assert_int_equal(h.num_neurons, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_defaults), TREE_TEST(test_names),           TREE_TEST(test_too_long), TREE_TEST(test_block),
        TREE_TEST(test_program),  TREE_TEST(test_program_refused), TREE_TEST(test_hardware),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
