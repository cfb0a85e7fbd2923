/* Who trains: hosts and ranks out of resourceconfig.json, reserved hyperparameters and the recipe. */
#include "config_tree.h"

#include "entrypoint/cluster.h"

#define THREE "{\"current_host\": \"algo-2\", \"hosts\": [\"algo-1\", \"algo-2\", \"algo-3\"]}"
#define ONE   "{\"current_host\": \"algo-1\", \"hosts\": [\"algo-1\"]}"
#define MIXED                                                                                                          \
    "{\"current_host\": \"algo-3\", \"current_group_name\": \"gpus\", \"current_instance_type\": \"ml.g5.12xlarge\", " \
    "\"hosts\": [\"algo-1\", \"algo-2\", \"algo-3\", \"algo-4\"], \"instance_groups\": ["                              \
    "{\"instance_group_name\": \"data\", \"instance_type\": \"ml.c5.xlarge\", \"hosts\": [\"algo-2\"]},"               \
    "{\"instance_group_name\": \"gpus\", \"instance_type\": \"ml.g5.12xlarge\", \"hosts\": [\"algo-3\", \"algo-1\"]}," \
    "{\"instance_group_name\": \"more\", \"instance_type\": \"ml.p3.16xlarge\", \"hosts\": [\"algo-4\"]}]}"

#define RECIPE "model: m.onnx\nloss: mse\ndata: {train: {fields: [x, t]}}\n"

typedef struct given {
    const char *resources, *hyperparameters;
    const char *recipe; /* lines of it; NULL: a program */
    int gpus;
} given;

static int make(tree *t, const given *g, ty_cluster *c, ty_error *err)
{
    ty_container_config *config = TY_NEW(&t->arena, ty_container_config);
    ty_recipe *recipe = TY_NEW(&t->arena, ty_recipe);
    ty_hardware hardware = {.num_cpus = 4, .num_gpus = g->gpus};
    *err = (ty_error){0};
    if (ty_resources_init(&config->resources, &t->arena, tree_parse(t, g->resources), err) < 0 ||
        ty_hyperparameters_init(&config->hyperparameters, &t->arena,
                                tree_parse(t, g->hyperparameters ? g->hyperparameters : "{}"), err) < 0 ||
        ty_distribution_init(&config->distribution, &t->arena, &config->resources, &config->hyperparameters.framework,
                             err) < 0)
        fail_msg("%s", err->message);
    if (g->recipe) {
        const char *text = ty_arena_printf(&t->arena, "%s%s", g->recipe, RECIPE);
        if (ty_recipe_parse("train.yaml", text, strlen(text), "/job", NULL, 0, &t->arena, recipe, err) < 0)
            fail_msg("%s %s", err->place, err->message);
    }
    return ty_cluster_make(c, &t->arena, config, &hardware, g->recipe ? recipe : NULL, err);
}

static void maps(void **state)
{
    static const struct {
        given given;
        ty_strategy strategy;
        const char *text;
        int self;
        bool starts;
        const char *tf_config;
    } rows[] = {
        /* the built-in trainer */
        {{ONE, NULL, "", 0}, TY_STRATEGY_ONE_DEVICE, "algo-1:1", 0, false, NULL},
        {{ONE, NULL, "", 8}, TY_STRATEGY_ONE_DEVICE, "algo-1:1", 0, false, NULL},
        {{ONE, NULL, "processes_per_host: 3\n", 0}, TY_STRATEGY_DATA_PARALLEL, "algo-1:3", 0, true, NULL},
        {{ONE, NULL, "strategy: tower\nprocesses_per_host: 2\n", 0}, TY_STRATEGY_TOWER, "algo-1:2", 0, true, NULL},
        {{ONE, NULL, "strategy: mirrored\ndevice: cpu\nprocesses_per_host: 2\n", 0},
         TY_STRATEGY_MIRRORED,
         "algo-1:2",
         0,
         true,
         NULL},
        {{THREE, NULL, "", 0}, TY_STRATEGY_DATA_PARALLEL, "algo-1:1 algo-2:1 algo-3:1", 1, true, NULL},
        {{THREE, "{\"sagemaker_mpi_enabled\": \"true\", \"sagemaker_mpi_num_of_processes_per_host\": \"2\"}", "", 0},
         TY_STRATEGY_DATA_PARALLEL,
         "algo-1:2 algo-2:2 algo-3:2",
         1,
         true,
         NULL},
        {{THREE,
          "{\"sagemaker_mpi_enabled\": \"true\", \"sagemaker_mpi_num_processes\": \"4\", "
          "\"sagemaker_mpi_num_of_processes_per_host\": \"2\"}",
          "", 0},
         TY_STRATEGY_DATA_PARALLEL,
         "algo-1:2 algo-2:2 algo-3:0",
         1,
         true,
         NULL},
        {{THREE, "{\"sagemaker_mpi_enabled\": \"False\"}", "", 0},
         TY_STRATEGY_DATA_PARALLEL,
         "algo-1:1 algo-2:1 algo-3:1",
         1,
         true,
         NULL},
        {{THREE, "{\"sagemaker_multi_worker_mirrored_strategy_enabled\": \"true\"}",
          "strategy: multi_worker_mirrored\n", 0},
         TY_STRATEGY_MULTI_WORKER_MIRRORED,
         "algo-1:1 algo-2:1 algo-3:1",
         1,
         true,
         "{\"cluster\": {\"worker\": [\"algo-1:8890\", \"algo-2:8890\", \"algo-3:8890\"]}, "
         "\"environment\": \"cloud\", \"task\": {\"index\": 1, \"type\": \"worker\"}}"},
        /* programs */
        {{THREE, NULL, NULL, 4}, TY_STRATEGY_ONE_DEVICE, "algo-2:1", 0, false, NULL},
        {{THREE, "{\"sagemaker_mpi_enabled\": \"true\"}", NULL, 4},
         TY_STRATEGY_DATA_PARALLEL,
         "algo-1:4 algo-2:4 algo-3:4",
         1,
         true,
         NULL},
        {{THREE, "{\"sagemaker_parameter_server_enabled\": \"true\", \"sagemaker_mpi_enabled\": \"true\"}", NULL, 4},
         TY_STRATEGY_PARAMETER_SERVER,
         "algo-1:1 algo-2:1 algo-3:1",
         1,
         false,
         "{\"cluster\": {\"master\": [\"algo-1:2222\"], \"ps\": [\"algo-1:2223\", \"algo-2:2223\", \"algo-3:2223\"], "
         "\"worker\": [\"algo-2:2222\", \"algo-3:2222\"]}, \"environment\": \"cloud\", "
         "\"task\": {\"index\": 0, \"type\": \"worker\"}}"},
        {{THREE, "{\"sagemaker_parameter_server_enabled\": \"true\"}", "processes_per_host: 2\n", 4},
         TY_STRATEGY_PARAMETER_SERVER,
         "algo-1:2+1 algo-2:2+1 algo-3:2+1",
         1,
         true,
         "{\"cluster\": {\"master\": [\"algo-1:2222\"], \"ps\": [\"algo-1:2223\", \"algo-2:2223\", \"algo-3:2223\"], "
         "\"worker\": [\"algo-2:2222\", \"algo-3:2222\"]}, \"environment\": \"cloud\", "
         "\"task\": {\"index\": 0, \"type\": \"worker\"}}"},
        {{ONE, NULL, "strategy: parameter_server\n", 0}, TY_STRATEGY_PARAMETER_SERVER, "algo-1:1+1", 0, true, NULL},
        {{ONE, "{\"sagemaker_parameter_server_enabled\": \"true\", \"sagemaker_mpi_enabled\": \"true\"}", NULL, 2},
         TY_STRATEGY_DATA_PARALLEL,
         "algo-1:2",
         0,
         true,
         NULL},
        /* groups of several kinds: own GPUs counted, others' by their type; hosts in the order of groups */
        {{MIXED,
          "{\"sagemaker_mpi_enabled\": \"true\", "
          "\"sagemaker_distribution_instance_groups\": \"[\\\"gpus\\\", \\\"more\\\"]\"}",
          NULL, 4},
         TY_STRATEGY_DATA_PARALLEL,
         "algo-3:4 algo-1:4 algo-4:8",
         0,
         true,
         NULL},
        {{MIXED,
          "{\"sagemaker_mpi_enabled\": \"true\", "
          "\"sagemaker_distribution_instance_groups\": \"[\\\"more\\\"]\"}",
          NULL, 4},
         TY_STRATEGY_ONE_DEVICE,
         "algo-3:1",
         0,
         false,
         NULL},
        /* ranks of ours: a GPU each, unless they compute on CPUs */
        {{MIXED, NULL, "", 4}, TY_STRATEGY_DATA_PARALLEL, "algo-1:4 algo-2:1 algo-3:4 algo-4:8", 2, true, NULL},
        {{THREE, NULL, "strategy: data_parallel\ndevice: gpu:0,1\n", 4},
         TY_STRATEGY_DATA_PARALLEL,
         "algo-1:2 algo-2:2 algo-3:2",
         1,
         true,
         NULL},
        {{THREE, NULL, "device: cpu\n", 4}, TY_STRATEGY_DATA_PARALLEL, "algo-1:1 algo-2:1 algo-3:1", 1, true, NULL},
        {{THREE, NULL, "distributed: {optimizer_sharding: true}\ndeterministic: strict\n", 4},
         TY_STRATEGY_DATA_PARALLEL,
         "algo-1:4 algo-2:4 algo-3:4",
         1,
         true,
         NULL},
    };
    tree *t = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_cluster c;
        ty_error err;
        if (make(t, &rows[i].given, &c, &err) < 0)
            fail_msg("row %zu: %s", i, err.message);
        if (c.strategy != rows[i].strategy || c.self != rows[i].self || c.starts_ranks != rows[i].starts)
            fail_msg("row %zu: %s, self %d, starts %d", i, ty_strategy_name(c.strategy), c.self, c.starts_ranks);
        assert_string_equal(ty_cluster_text(&c, &t->arena), rows[i].text);
        if (!rows[i].tf_config)
            assert_null(c.tf_config);
        else
            assert_string_equal(c.tf_config, rows[i].tf_config);
        int n = 0;
        for (int k = 0; k < c.n_hosts; n += c.host[k++].ranks)
            assert_int_equal(c.host[k].first_rank, n);
        assert_int_equal(n, c.n_ranks);
    }
}

static void contradictions(void **state)
{
    static const struct {
        given given;
        int code;
        const char *says, *also;
    } rows[] = {
        {{THREE, "{\"sagemaker_mpi_enabled\": \"true\"}", "strategy: one_device\n", 0},
         TY_E_CONFIG,
         "strategy is one_device (train.yaml:1)",
         "\"sagemaker_mpi_enabled\" asks for data_parallel"},
        {{THREE, "{\"sagemaker_mpi_enabled\": \"true\", \"sagemaker_mpi_num_of_processes_per_host\": \"2\"}",
          "processes_per_host: 4\n", 0},
         TY_E_CONFIG,
         "processes_per_host is 4 (train.yaml:1)",
         "\"sagemaker_mpi_num_of_processes_per_host\" is 2"},
        {{THREE, NULL, "strategy: one_device\n", 0}, TY_E_CONFIG, "trains on one host", "this job has 3"},
        {{THREE, "{\"sagemaker_parameter_server_enabled\": \"true\"}", "strategy: data_parallel\n", 0},
         TY_E_CONFIG,
         "strategy is data_parallel (train.yaml:1)",
         "\"sagemaker_parameter_server_enabled\" asks for parameter_server"},
        {{THREE, NULL, "strategy: tower\n", 0}, TY_E_CONFIG, "trains on one host", "this job has 3"},
        {{ONE, NULL, "strategy: one_device\nprocesses_per_host: 2\n", 0},
         TY_E_CONFIG,
         "processes_per_host is 2",
         "strategy is one_device"},
        {{THREE, "{\"sagemaker_mpi_enabled\": \"true\", \"sagemaker_mpi_num_of_processes_per_host\": \"two\"}", "", 0},
         TY_E_TYPE,
         "sagemaker_mpi_num_of_processes_per_host",
         "found two"},
        {{THREE, "{\"sagemaker_mpi_enabled\": \"true\", \"sagemaker_mpi_num_processes\": \"9\"}", "", 0},
         TY_E_CONFIG,
         "sagemaker_mpi_num_processes",
         "room for 3 ranks"},
        {{THREE, "{\"sagemaker_mpi_enabled\": \"true\", \"sagemaker_mpi_num_of_processes_per_host\": \"99999\"}", NULL,
          0},
         TY_E_RANGE,
         "99999",
         "1 to 4096"},
    };
    tree *t = *state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_cluster c;
        ty_error err;
        assert_int_equal(make(t, &rows[i].given, &c, &err), -1);
        assert_int_equal(err.code, rows[i].code);
        assert_contains(err.message, rows[i].says);
        assert_contains(err.message, rows[i].also);
    }
}

static void words_for_mpirun(void **state)
{
    tree *t = *state;
    ty_cluster c;
    ty_error err;
    given g = {THREE, "{\"sagemaker_mpi_enabled\": \"true\", \"sagemaker_mpi_custom_mpi_options\": \"-x A=1\"}", NULL,
               0};
    assert_int_equal(make(t, &g, &c, &err), 0);
    assert_string_equal(c.mpi_options, "-x A=1");
    g.hyperparameters = "{\"sagemaker_mpi_enabled\": \"true\", \"sagemaker_mpi_custom_mpi_options\": \"\"}";
    assert_int_equal(make(t, &g, &c, &err), 0);
    assert_null(c.mpi_options);
    assert_string_equal(c.strategy_at, "hyperparameter \"sagemaker_mpi_enabled\"");
    assert_false(c.data_parallel_library);
}

/* SageMaker's data parallel library: words, processes a host and the instance type that its client sends. */
static void library(void **state)
{
    tree *t = *state;
    ty_cluster c;
    ty_error err;
    given g = {THREE,
               "{\"sagemaker_distributed_dataparallel_enabled\": \"true\", "
               "\"sagemaker_distributed_dataparallel_custom_mpi_options\": \"-verbose\", "
               "\"sagemaker_instance_type\": \"ml.p3.16xlarge\", \"sagemaker_mpi_custom_mpi_options\": \"-x A=1\"}",
               NULL, 8};
    assert_int_equal(make(t, &g, &c, &err), 0);
    assert_true(c.data_parallel_library && c.starts_ranks);
    assert_string_equal(c.mpi_options, "-verbose");
    assert_string_equal(c.instance_type, "ml.p3.16xlarge");
    assert_string_equal(ty_cluster_text(&c, &t->arena), "algo-1:8 algo-2:8 algo-3:8");
    g.hyperparameters = "{\"sagemaker_distributed_dataparallel_enabled\": \"true\", "
                        "\"sagemaker_mpi_num_of_processes_per_host\": \"2\"}";
    assert_int_equal(make(t, &g, &c, &err), 0);
    assert_string_equal(ty_cluster_text(&c, &t->arena), "algo-1:2 algo-2:2 algo-3:2");
    assert_int_equal(c.host[2].room, 2);
    assert_null(c.mpi_options);
}

int main(void)
{
    const struct CMUnitTest tests[] = {TREE_TEST(maps), TREE_TEST(contradictions), TREE_TEST(words_for_mpirun),
                                       TREE_TEST(library)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
