/* Hyperparameters: what is the user's, what is the platform's, what cannot be. (Values: contract_vectors.c.) */
#include "config_tree.h"

#include "container/config/hyperparameters.h"
#include "container/config/python_json.h"
#include "container/config/python_text.h"

#include <math.h>

static void test_split(void **state)
{
    tree *t = *state;
    ty_hyperparameters h;

    assert_int_equal(ty_hyperparameters_init(&h, &t->arena,
                                             tree_parse(t, "{\"lr\": \"0.1\", \"sagemaker_program\": \"\\\"a.py\\\"\", "
                                                           "\"sagemaker_new\": \"x\", \"_tuning_objective_metric\": "
                                                           "\"loss\", \"default_user_module_name\": \"m\", "
                                                           "\"model_dir\": \"s3://b\", \"mp_parameters\": \"{}\", "
                                                           "\"sagemaker\": \"1\", \"Sagemaker_x\": \"1\"}"),
                                             NULL),
                     0);
    assert_int_equal(h.n_items, 9);
    assert_int_equal(h.user.n, 5);
    assert_int_equal(h.known.n, 3);
    assert_int_equal(h.framework.n, 1);
    assert_non_null(ty_value_get(&h.user, "sagemaker"));
    assert_non_null(ty_value_get(&h.user, "Sagemaker_x"));
    assert_string_equal(ty_value_text(ty_value_get(&h.known, "sagemaker_program")), "a.py");
    assert_string_equal(ty_hyperparameters_find(&h, "lr")->text, "0.1");
    assert_int_equal(ty_hyperparameters_find(&h, "sagemaker_new")->kind, TY_RESERVED_FRAMEWORK);
    assert_null(ty_hyperparameters_find(&h, "absent"));
}

static void test_none(void **state)
{
    tree *t = *state;
    ty_hyperparameters h;

    assert_int_equal(ty_hyperparameters_init(&h, &t->arena, NULL, NULL), 0);
    assert_int_equal(h.n_items, 0);
    assert_int_equal(h.user.kind, TY_VALUE_DICT);
}

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        ty_code code;
        const char *place, *message;
    } rows[] = {
        {"[]", TY_E_TYPE, "test.json:1:1", "expected"},
        {"\"x\"", TY_E_TYPE, "test.json:1:1", "expected"},
        {"{\"a\": \"1\",\n \"b\": \"\\\"x\\\\u0000y\\\"\"}", TY_E_RANGE, "test.json:2:7", "\"b\" holds a NUL"},
        {"{\"b\": \"{\\\"k\\\\u0000\\\": 1}\"}", TY_E_RANGE, "test.json:1:7", "NUL"},
    };
    tree *t = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_hyperparameters h;
        ty_error err = {0};
        assert_int_equal(ty_hyperparameters_init(&h, &t->arena, tree_parse(t, rows[i].text), &err), -1);
        assert_int_equal(err.code, rows[i].code);
        assert_string_equal(err.place, rows[i].place);
        assert_contains(err.message, rows[i].message);
    }
}

/* A NUL inside a list is escaped everywhere and does no harm. */
static void test_nul_in_list(void **state)
{
    tree *t = *state;
    ty_hyperparameters h;

    assert_int_equal(ty_hyperparameters_init(&h, &t->arena, tree_parse(t, "{\"a\": \"[\\\"\\\\u0000\\\"]\"}"), NULL),
                     0);
    assert_string_equal(h.items[0].text, "[\"\\u0000\"]");
}

static void test_depth(void **state)
{
    tree *t = *state;
    char text[200];
    ty_value v;

    for (int depth = TY_PYTHON_JSON_MAX_DEPTH; depth <= TY_PYTHON_JSON_MAX_DEPTH + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        assert_int_equal(ty_python_json_read(&t->arena, text, 2 * (size_t)depth, &v),
                         depth == TY_PYTHON_JSON_MAX_DEPTH);
    }
}

/* Every prefix of a text is read without touching what lies behind it, and is no JSON text itself. */
static void test_prefixes(void **state)
{
    static const char text[] = "{\"a\": [1.5e3, \"x\\u00e9\\ud83d\\ude00\\n\", true, NaN, -Infinity, {}], \"b\": null}";
    tree *t = *state;
    ty_value v;

    assert_true(ty_python_json_read(&t->arena, text, strlen(text), &v));
    for (size_t n = 0; n < strlen(text); n++) {
        char *exact = malloc(n + 1);
        memcpy(exact, text, n);
        assert_false(ty_python_json_read(&t->arena, exact, n, &v));
        free(exact);
    }
}

static void test_flags(void **state)
{
    static const struct {
        const char *json;
        bool on, corrected;
    } rows[] = {
        {"true", true, false},
        {"false", false, false},
        {"null", false, false},
        {"1", true, false},
        {"0", false, false},
        {"0.0", false, false},
        {"0.5", true, false},
        {"NaN", true, false},
        {"\"True\"", true, false},
        {"\"\"", false, false},
        {"\"False\"", false, true},
        {"\"false\"", false, true},
        {"\"0\"", false, true},
        {"\"no\"", false, true},
        {"\"yes\"", true, false},
        {"[]", false, false},
        {"[0]", true, false},
        {"{}", false, false},
        {"12345678901234567890", true, false},
    };
    tree *t = *state;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_value v;
        bool corrected;
        assert_true(ty_python_json_read(&t->arena, rows[i].json, strlen(rows[i].json), &v));
        assert_int_equal(ty_reserved_flag(&v, &corrected), rows[i].on);
        assert_int_equal(corrected, rows[i].corrected);
    }
    assert_false(ty_reserved_flag(NULL, NULL));
}

static void test_reserved_table(void **state)
{
    size_t n, known = 0;
    const ty_reserved_row *rows = ty_reserved_rows(&n);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        known += rows[i].kind == TY_RESERVED_KNOWN;
        assert_ptr_equal(ty_reserved_find(rows[i].key), &rows[i]);
    }
    assert_int_equal(known, 9);
    assert_int_equal(ty_reserved_kind_of("sagemaker_anything"), TY_RESERVED_FRAMEWORK);
    assert_int_equal(ty_reserved_kind_of("epochs"), TY_RESERVED_NOT);
}

static void test_json_spaced(void **state)
{
    tree *t = *state;
    ty_value v;
    ty_buf out;

    static const char text[] = "{\"b\":[1,2.0],\"a\":\"\\u00e9\\u007f\"}";
    assert_true(ty_python_json_read(&t->arena, text, strlen(text), &v));
    ty_buf_init(&out, 1024);
    assert_int_equal(ty_python_json(&out, &v), 0);
    assert_string_equal(out.data, "{\"b\": [1, 2.0], \"a\": \"\\u00e9\\u007f\"}");
    ty_buf_fini(&out);
    ty_buf_init(&out, 8);
    assert_int_equal(ty_python_json(&out, &v), -1);
    ty_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TREE_TEST(test_split),       TREE_TEST(test_none),           TREE_TEST(test_refused),
        TREE_TEST(test_nul_in_list), TREE_TEST(test_depth),          TREE_TEST(test_prefixes),
        TREE_TEST(test_flags),       TREE_TEST(test_reserved_table), TREE_TEST(test_json_spaced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
