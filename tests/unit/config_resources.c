/* resourceconfig.json in every age and shape, and what distribution follows from it. */
#include "config_tree.h"

#include "container/config/distribution.h"
#include "container/config/python_json.h"

#define GROUPS                                                                                                        \
    "\"instance_groups\": [{\"instance_group_name\": \"a\", \"instance_type\": \"x\", \"hosts\": [\"h2\", \"h1\"]}, " \
    "{\"instance_group_name\": \"b\", \"hosts\": [\"h3\"]}]"

static void test_three_keys(void **state)
{
    tree *t = *state;
    ty_resources r;

    assert_int_equal(
        ty_resources_init(&r, &t->arena,
                          tree_parse(t, "{\"current_host\": \"algo-10\", \"hosts\": [\"algo-1\", "
                                        "\"algo-10\", \"algo-2\"], \"network_interface_name\": \"ethwe\"}"),
                          NULL),
        0);
    assert_int_equal(r.n_hosts, 3);
    assert_int_equal(r.host_index, 1);
    assert_string_equal(r.network_interface, "ethwe");
    assert_string_equal(r.instance_type, "local");
    assert_string_equal(r.current_group, "homogeneousCluster");
    assert_int_equal(r.n_groups, 0);
}

static void test_nulls_are_absent(void **state)
{
    tree *t = *state;
    ty_resources r;

    assert_int_equal(
        ty_resources_init(&r, &t->arena,
                          tree_parse(t, "{\"current_host\": \"h\", \"hosts\": [\"h\"], \"topology\": null, "
                                        "\"instance_groups\": null, \"current_group_name\": null, "
                                        "\"current_instance_group\": \"mine\", "
                                        "\"network_interface_name\": null, \"later\": {\"x\": [1]}}"),
                          NULL),
        0);
    assert_string_equal(r.current_group, "mine");
    assert_string_equal(r.network_interface, "eth0");
    assert_int_equal(r.topology.kind, TY_VALUE_NULL);
}

static void test_group_names_prefer(void **state)
{
    tree *t = *state;
    ty_resources r;

    assert_int_equal(ty_resources_init(
                         &r, &t->arena,
                         tree_parse(t, "{\"current_host\": \"h1\", \"hosts\": [\"h1\", \"h2\", \"h3\"], "
                                       "\"current_group_name\": \"a\", \"current_instance_group\": \"b\", " GROUPS "}"),
                         NULL),
                     0);
    assert_string_equal(r.current_group, "a");
    assert_int_equal(r.n_groups, 2);
    assert_string_equal(ty_resources_group(&r, "a")->hosts[0], "h2");
    assert_string_equal(ty_resources_group(&r, "b")->instance_type, "");
    assert_null(ty_resources_group(&r, "c"));
}

static void test_no_file(void **state)
{
    tree *t = *state;
    ty_resources r;

    assert_int_equal(ty_resources_init(&r, &t->arena, NULL, NULL), 0);
    assert_int_equal(r.n_hosts, 1);
    assert_string_equal(r.current_host, r.hosts[0]);
    assert_int_equal(r.whole.n, 2);
}

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        ty_code code;
        const char *place, *message, *help;
    } rows[] = {
        {"[]", TY_E_TYPE, "test.json:1:1", "expected", ""},
        {"{}", TY_E_MISSING_KEY, "test.json:1:1", "\"hosts\" is missing", ""},
        {"{\"hosts\": [\"a\"]}", TY_E_MISSING_KEY, "test.json:1:1", "\"current_host\" is missing", ""},
        {"{\"hosts\": \"a\", \"current_host\": \"a\"}", TY_E_TYPE, "test.json:1:11", "list", ""},
        {"{\"hosts\": [],\n\"current_host\": \"a\"}", TY_E_RANGE, "test.json:1:11", "empty", ""},
        {"{\"hosts\": [1], \"current_host\": \"a\"}", TY_E_TYPE, "test.json:1:12", "string", ""},
        {"{\"hosts\": [\"\"], \"current_host\": \"a\"}", TY_E_RANGE, "test.json:1:12", "empty string", ""},
        {"{\"hosts\": [\"a\", \"b\", \"a\"], \"current_host\": \"a\"}", TY_E_RANGE, "test.json:1:11",
         "\"a\" is listed twice", ""},
        {"{\"hosts\": [\"algo-1\"],\n \"current_host\": \"algo_1\"}", TY_E_CONFIG, "test.json:2:18", "\"algo_1\"",
         "did you mean \"algo-1\"?"},
        {"{\"hosts\": [\"a\"], \"current_host\": null}", TY_E_MISSING_KEY, "test.json:1:1", "current_host", ""},
        {"{\"hosts\": [\"a\"], \"current_host\": \"a\", \"network_interface_name\": 3}", TY_E_TYPE, "test.json:1:65",
         "3", ""},
        {"{\"hosts\": [\"a\"], \"current_host\": \"a\", \"instance_groups\": {}}", TY_E_TYPE, "test.json:1:58", "list",
         ""},
        {"{\"hosts\": [\"a\"], \"current_host\": \"a\", \"instance_groups\": [{\"hosts\": []}]}", TY_E_MISSING_KEY,
         "test.json:1:59", "instance_group_name", ""},
        {"{\"hosts\": [\"a\"], \"current_host\": \"a\", \"instance_groups\": [{\"instance_group_name\": \"g\"}]}",
         TY_E_MISSING_KEY, "test.json:1:59", "\"hosts\"", ""},
        {"{\"hosts\": [\"a\"], \"current_host\": \"a\", \"instance_groups\": ["
         "{\"instance_group_name\": \"g\", \"hosts\": [\"a\"]},{\"instance_group_name\": \"g\", \"hosts\": []}]}",
         TY_E_RANGE, "test.json:1:104", "\"g\" is listed twice", ""},
    };
    tree *t = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_resources r;
        ty_error err = {0};
        assert_int_equal(ty_resources_init(&r, &t->arena, tree_parse(t, rows[i].text), &err), -1);
        assert_int_equal(err.code, rows[i].code);
        assert_contains(err.message, rows[i].message);
        assert_string_equal(err.place, rows[i].place);
        assert_contains(err.help, rows[i].help);
    }
}

static int distribution_of(tree *t, const char *extra, const char *framework, ty_distribution *d, ty_error *err)
{
    static ty_resources r;
    ty_value flags;

    assert_int_equal(ty_resources_init(&r, &t->arena,
                                       tree_parse(t, ty_arena_printf(&t->arena,
                                                                     "{\"current_host\": \"h1\", \"hosts\": [\"h1\", "
                                                                     "\"h2\", \"h3\"]%s}",
                                                                     extra)),
                                       NULL),
                     0);
    assert_true(ty_python_json_read(&t->arena, framework, strlen(framework), &flags));
    return ty_distribution_init(d, &t->arena, &r, &flags, err);
}

static void test_distribution(void **state)
{
    static const struct {
        const char *extra, *framework;
        size_t n_groups, n_hosts;
        const char *master;
        bool takes_part;
    } rows[] = {
        {"", "{}", 0, 3, "h1", false},
        {"", "{\"sagemaker_mpi_enabled\": true}", 1, 3, "h1", true},
        {"", "{\"sagemaker_mpi_enabled\": false}", 0, 3, "h1", false},
        {"", "{\"sagemaker_parameter_server_enabled\": 1}", 1, 3, "h1", true},
        {"", "{\"sagemaker_distributed_dataparallel_enabled\": \"True\"}", 1, 3, "h1", true},
        {"", "{\"sagemaker_pytorch_ddp_enabled\": true}", 1, 3, "h1", true},
        {"", "{\"sagemaker_pytorch_xla_multi_worker_enabled\": true}", 1, 3, "h1", true},
        {"", "{\"sagemaker_multi_worker_mirrored_strategy_enabled\": true}", 1, 3, "h1", true},
        {"", "{\"sagemaker_torch_distributed_enabled\": true}", 1, 3, "h1", true},
        {"", "{\"sagemaker_training_compiler_enabled\": true}", 0, 3, "h1", false},
        {", " GROUPS ", \"current_group_name\": \"a\"", "{}", 0, 0, "h1", false},
        {", " GROUPS ", \"current_group_name\": \"a\"", "{\"sagemaker_mpi_enabled\": true}", 1, 2, "h2", true},
        {", " GROUPS ", \"current_group_name\": \"a\"", "{\"sagemaker_distribution_instance_groups\": [\"b\"]}", 1, 1,
         "h3", false},
        {", " GROUPS ", \"current_group_name\": \"a\"", "{\"sagemaker_distribution_instance_groups\": [\"b\", \"a\"]}",
         2, 3, "h2", true},
        {", " GROUPS ", \"current_group_name\": \"a\"",
         "{\"sagemaker_distribution_instance_groups\": [], \"sagemaker_mpi_enabled\": true}", 0, 0, "h1", false},
    };
    tree *t = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_distribution d;
        assert_int_equal(distribution_of(t, rows[i].extra, rows[i].framework, &d, NULL), 0);
        assert_int_equal(d.n_groups, rows[i].n_groups);
        assert_int_equal(d.n_hosts, rows[i].n_hosts);
        assert_string_equal(d.master, rows[i].master);
        assert_int_equal(d.takes_part, rows[i].takes_part);
        assert_int_equal(d.is_master, strcmp(rows[i].master, "h1") == 0);
        assert_null(d.corrected_flag);
    }
}

static void test_raw_false(void **state)
{
    ty_distribution d;

    assert_int_equal(distribution_of(*state, "", "{\"sagemaker_mpi_enabled\": \"False\"}", &d, NULL), 0);
    assert_int_equal(d.n_groups, 0);
    assert_string_equal(d.corrected_flag, "sagemaker_mpi_enabled");
}

static void test_distribution_refused(void **state)
{
    static const char *const bad[] = {"\"g1\"", "{\"g1\": 1}", "[1]", "[\"a\", null]", "3"};
    tree *t = *state;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ty_distribution d;
        ty_error err = {0};
        const char *text = ty_arena_printf(&t->arena, "{\"sagemaker_distribution_instance_groups\": %s}", bad[i]);
        assert_int_equal(distribution_of(t, "", text, &d, &err), -1);
        assert_int_equal(err.code, TY_E_TYPE);
        assert_contains(err.message, "sagemaker_distribution_instance_groups");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_three_keys),
        TREE_TEST(test_nulls_are_absent),
        TREE_TEST(test_group_names_prefer),
        TREE_TEST(test_no_file),
        TREE_TEST(test_refused),
        TREE_TEST(test_distribution),
        TREE_TEST(test_raw_false),
        TREE_TEST(test_distribution_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
