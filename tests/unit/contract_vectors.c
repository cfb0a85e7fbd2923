/* The vectors of tests/contract/vectors: what the original toolkit made of the same input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "container/config/container_config.h"
#include "container/config/environment.h"
#include "container/config/python_text.h"
#include "container/config/tf_config.h"

#include <stdio.h>
#include <string.h>

#define VECTORS "tests/contract/vectors/"

static int setup(void **state)
{
    static ty_arena arena;

    ty_arena_init(&arena);
    *state = &arena;
    return 0;
}

static int teardown(void **state)
{
    ty_arena_fini(*state);
    return 0;
}

static const ty_doc *read_json(ty_arena *a, const char *path)
{
    ty_error err = {0};
    ty_doc *doc;

    if (ty_json_read(a, path, NULL, &doc, &err) < 0)
        fail_msg("%s: %s %s", path, err.place, err.message);
    return doc;
}

static const char *member(const ty_doc *map, const char *key)
{
    const char *text = NULL;

    assert_int_equal(ty_doc_string(ty_doc_find(map, key), &text, NULL), 0);
    return text;
}

static const char *python_kind(const ty_value *v)
{
    static const char *const names[] = {"NoneType", "bool", "int", "float", "str", "list", "dict"};

    return names[v->kind];
}

/* {"k": "<file>"}, as hyperparameters.json would hold it. */
static void decode_one(ty_arena *a, const char *file, ty_hyperparameters *h)
{
    ty_error err = {0};
    ty_doc *doc;
    ty_buf text;

    ty_buf_init(&text, 1 << 16);
    ty_buf_adds(&text, "{\"k\": ");
    ty_json_add_string(&text, file, TY_JSON_COMPACT);
    ty_buf_adds(&text, "}");
    if (ty_json_parse(a, "vector", text.data, text.len, NULL, &doc, &err) < 0 ||
        ty_hyperparameters_init(h, a, doc, &err) < 0)
        fail_msg("%s: %s", file, err.message);
    ty_buf_fini(&text);
}

static void test_values(void **state)
{
    ty_arena *a = *state;
    const ty_doc *rows = read_json(a, VECTORS "values.json");

    assert_true(ty_doc_len(rows) > 100);
    for (size_t i = 0; i < ty_doc_len(rows); i++) {
        const ty_doc *row = ty_doc_at(rows, i);
        ty_hyperparameters h;
        ty_arguments arguments;
        ty_buf hps;

        decode_one(a, member(row, "file"), &h);
        ty_arguments_init(&arguments, a, &h.user);
        ty_buf_init(&hps, 1 << 16);
        ty_python_environment(&hps, &h.user);
        if (strcmp(python_kind(&h.items[0].value), member(row, "kind")) != 0 ||
            strcmp(h.items[0].text, member(row, "env")) != 0 || strcmp(hps.data, member(row, "hps")) != 0 ||
            arguments.n_words != 2 || strcmp(arguments.words[1], member(row, "arg")) != 0)
            fail_msg("value <%s>: %s, env <%s>, hps <%s>, arg <%s>; expected %s <%s> <%s> <%s>", member(row, "file"),
                     python_kind(&h.items[0].value), h.items[0].text, hps.data, arguments.words[1], member(row, "kind"),
                     member(row, "env"), member(row, "hps"), member(row, "arg"));
        ty_buf_fini(&hps);
    }
}

/* ---- whole jobs ---- */

static const char *const additions[] = {
    "PYTHONPATH",        "SM_HOST_COUNT",     "SM_CURRENT_HOST_RANK", "SM_MASTER_ADDR",  "SM_MASTER_PORT",
    "SM_INPUT_DATA_DIR", "SM_OUTPUT_FAILURE", "SM_SOURCE_DIR",        "SM_ENTRY_SCRIPT",
};

/* Whether `name` is `other` with '_' for some characters (not bytes). */
static bool is_shell_form(const char *name, const char *other)
{
    for (; *name != '\0' && *other != '\0'; name++) {
        if (*name != *other && *name != '_')
            return false;
        for (other++; ((unsigned char)*other & 0xc0) == 0x80; other++)
            ;
    }
    return *name == *other;
}

static bool is_addition(const char *name, const ty_doc *expected)
{
    for (size_t i = 0; i < sizeof additions / sizeof additions[0]; i++)
        if (strcmp(additions[i], name) == 0)
            return true;
    for (size_t i = 0; i < ty_doc_len(expected); i++)
        if (is_shell_form(name, ty_doc_at(expected, i)->key))
            return true;
    return false;
}

static void compare_environment(const char *job, const ty_doc *expected, const ty_environment *e)
{
    for (size_t i = 0; i < ty_doc_len(expected); i++) {
        const ty_doc *row = ty_doc_at(expected, i);
        const char *found = ty_environment_get(e, row->key);
        if (found == NULL || strcmp(found, row->string) != 0)
            fail_msg("%s: %s is <%s>, expected <%s>", job, row->key, found == NULL ? "(unset)" : found, row->string);
    }
    for (size_t i = 0; i < e->n_items; i++)
        if (ty_doc_find(expected, e->items[i].name) == NULL && !is_addition(e->items[i].name, expected))
            fail_msg("%s: unexpected %s=%s", job, e->items[i].name, e->items[i].value);
}

static void check_job(ty_arena *a, const char *job)
{
    const ty_doc *expected = read_json(a, ty_arena_printf(a, VECTORS "jobs/%s/expected.json", job));
    const ty_doc *inherited = ty_doc_find(expected, "inherited"), *arguments = ty_doc_find(expected, "arguments");
    const ty_hardware hardware = {.num_cpus = 48, .num_gpus = 4};
    const char *envp[16] = {0};
    ty_container_config c;
    ty_environment e;
    ty_error err = {0};

    for (size_t i = 0; i < ty_doc_len(inherited); i++)
        envp[i] = ty_doc_at(inherited, i)->string;
    if (ty_container_config_read(&c, a, envp, &err) < 0)
        fail_msg("%s: %s %s", job, err.place, err.message);
    ty_environment_init(&e, a,
                        &(ty_environment_sources){&c.paths, &c.hyperparameters, &c.arguments, &c.resources,
                                                  &c.distribution, &c.channels, &c.program, &hardware, &c.inherited});
    compare_environment(job, ty_doc_find(expected, "environment"), &e);
    assert_int_equal(c.n_notices, 0);
    assert_int_equal(c.arguments.n_words, ty_doc_len(arguments));
    for (size_t i = 0; i < c.arguments.n_words; i++)
        assert_string_equal(c.arguments.words[i], ty_doc_at(arguments, i)->string);
    assert_null(c.arguments.words[c.arguments.n_words]);
}

static void test_job_example(void **state)
{
    check_job(*state, "example");
}

static void test_job_bare(void **state)
{
    check_job(*state, "bare");
}

static void test_job_hetero(void **state)
{
    check_job(*state, "hetero");
}

static void test_job_odd(void **state)
{
    check_job(*state, "odd");
}

/* ---- the small vectors of section 21 ---- */

static void test_argument_order(void **state)
{
    static const char text[] = "{\"T\": \"\", \"b\": \"2\", \"\": \"42\", \"U\": \"1\"}";
    static const char *const expected[] = {"", "42", "-T", "", "-U", "1", "-b", "2"};
    ty_arena *a = *state;
    ty_hyperparameters h;
    ty_arguments arguments;
    ty_doc *doc;

    assert_int_equal(ty_json_parse(a, "vector", text, strlen(text), NULL, &doc, NULL), 0);
    assert_int_equal(ty_hyperparameters_init(&h, a, doc, NULL), 0);
    ty_arguments_init(&arguments, a, &h.user);
    assert_int_equal(arguments.n_words, 8);
    for (size_t i = 0; i < 8; i++)
        assert_string_equal(arguments.words[i], expected[i]);
}

static void test_tf_config(void **state)
{
    static const char *const ab[] = {"a", "b"}, *const three[] = {"algo-1", "algo-2", "algo-3"};
    ty_arena *a = *state;

#define PS "{\"cluster\": {\"master\": [\"a:2222\"], \"ps\": [\"a:2223\", \"b:2223\"], \"worker\": [\"b:2222\"]}, "
    assert_string_equal(ty_tf_config_parameter_server(a, ab, 2, 1, false),
                        PS "\"environment\": \"cloud\", \"task\": {\"index\": 0, \"type\": \"worker\"}}");
    assert_string_equal(ty_tf_config_parameter_server(a, ab, 2, 0, false),
                        PS "\"environment\": \"cloud\", \"task\": {\"index\": 0, \"type\": \"master\"}}");
    assert_string_equal(ty_tf_config_parameter_server(a, ab, 2, 1, true),
                        PS "\"environment\": \"cloud\", \"task\": {\"index\": 1, \"type\": \"ps\"}}");
    assert_null(ty_tf_config_parameter_server(a, ab, 1, 0, false));
    assert_null(ty_tf_config_parameter_server(a, ab, 1, 0, true));
    assert_string_equal(ty_tf_config_mirrored(a, ab, 1, 0),
                        "{\"cluster\": {\"worker\": [\"a:8890\"]}, \"environment\": \"cloud\", "
                        "\"task\": {\"index\": 0, \"type\": \"worker\"}}");
    assert_string_equal(ty_tf_config_mirrored(a, three, 2, 1),
                        "{\"cluster\": {\"worker\": [\"algo-1:8890\", \"algo-2:8890\"]}, \"environment\": \"cloud\", "
                        "\"task\": {\"index\": 1, \"type\": \"worker\"}}");
    assert_string_equal(
        ty_tf_config_parameter_server(a, three, 3, 2, false),
        "{\"cluster\": {\"master\": [\"algo-1:2222\"], \"ps\": [\"algo-1:2223\", \"algo-2:2223\", "
        "\"algo-3:2223\"], \"worker\": [\"algo-2:2222\", \"algo-3:2222\"]}, \"environment\": \"cloud\", "
        "\"task\": {\"index\": 1, \"type\": \"worker\"}}");
}

/* g1 [h3, h1], g2 [h2]; only g1 is distributed. */
static void check_group_member(ty_arena *a, const char *host, const char *group, bool takes_part, bool is_master)
{
    const char *text =
        ty_arena_printf(a,
                        "{\"current_host\": \"%s\", \"hosts\": [\"h1\", \"h2\", \"h3\"], "
                        "\"current_group_name\": \"%s\", \"instance_groups\": ["
                        "{\"instance_group_name\": \"g1\", \"instance_type\": \"x\", \"hosts\": [\"h3\", \"h1\"]}, "
                        "{\"instance_group_name\": \"g2\", \"instance_type\": \"y\", \"hosts\": [\"h2\"]}]}",
                        host, group);
    static const char hyper[] = "{\"sagemaker_distribution_instance_groups\": \"[\\\"g1\\\"]\"}";
    ty_hyperparameters h;
    ty_resources r;
    ty_distribution d;
    ty_doc *doc;

    assert_int_equal(ty_json_parse(a, "hyper", hyper, strlen(hyper), NULL, &doc, NULL), 0);
    assert_int_equal(ty_hyperparameters_init(&h, a, doc, NULL), 0);
    assert_int_equal(ty_json_parse(a, "resources", text, strlen(text), NULL, &doc, NULL), 0);
    assert_int_equal(ty_resources_init(&r, a, doc, NULL), 0);
    assert_int_equal(ty_distribution_init(&d, a, &r, &h.framework, NULL), 0);
    assert_int_equal(d.n_hosts, 2);
    assert_string_equal(d.hosts[0], "h3");
    assert_string_equal(d.hosts[1], "h1");
    assert_string_equal(d.master, "h3");
    assert_int_equal(d.takes_part, takes_part);
    assert_int_equal(d.is_master, is_master);
    assert_int_equal(r.n_groups, 2);
}

static void test_groups(void **state)
{
    check_group_member(*state, "h1", "g1", true, false);
    check_group_member(*state, "h3", "g1", true, true);
    check_group_member(*state, "h2", "g2", false, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_values, setup, teardown),
        cmocka_unit_test_setup_teardown(test_job_example, setup, teardown),
        cmocka_unit_test_setup_teardown(test_job_bare, setup, teardown),
        cmocka_unit_test_setup_teardown(test_job_hetero, setup, teardown),
        cmocka_unit_test_setup_teardown(test_job_odd, setup, teardown),
        cmocka_unit_test_setup_teardown(test_argument_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tf_config, setup, teardown),
        cmocka_unit_test_setup_teardown(test_groups, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
