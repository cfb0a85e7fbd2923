/* YAML: the core schema, what is refused and where, what is doubtful, overrides. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/yaml.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static ty_arena arena;
static int n_warnings;
static ty_error last_warning;

static int start(void **state)
{
    (void)state;
    ty_arena_init(&arena);
    n_warnings = 0;
    return 0;
}

static int stop(void **state)
{
    (void)state;
    ty_arena_fini(&arena);
    return 0;
}

static void take_warning(void *context, const ty_error *warning)
{
    (void)context;
    n_warnings++;
    last_warning = *warning;
}

static ty_doc *parse(const char *text)
{
    ty_doc *d;
    ty_error err = {0};
    if (ty_yaml_parse(&arena, "t.yaml", text, strlen(text), NULL, take_warning, NULL, &d, &err) < 0)
        fail_msg("refused %s: %s at %s", text, err.message, err.place);
    return d;
}

static const char *as_json(const ty_doc *d)
{
    ty_buf out;
    ty_buf_init(&out, 1 << 16);
    assert_int_equal(ty_json_add_doc(&out, d, TY_JSON_COMPACT), 0);
    char *text = ty_arena_strdup(&arena, out.data);
    ty_buf_fini(&out);
    return text;
}

/* YAML beside the JSON that it means. */
static void test_meaning(void **state)
{
    (void)state;
    static const struct {
        const char *yaml, *json;
    } cases[] = {
        {"", "null"},
        {"# only a comment\n", "null"},
        {"---\na: 1\n...\n", "{\"a\":1}"},
        {"a:\nb: ~\nc: null\nd: Null\ne: NULL\nf: nULL",
         "{\"a\":null,\"b\":null,\"c\":null,\"d\":null,\"e\":null,\"f\":\"nULL\"}"},
        {"[true, True, TRUE, false, False, FALSE, tRUE]", "[true,true,true,false,false,false,\"tRUE\"]"},
        {"[yes, no, on, off, y, n, Yes]", "[\"yes\",\"no\",\"on\",\"off\",\"y\",\"n\",\"Yes\"]"},
        {"[0, -1, +7, 010, 0o17, 0xfF, -0x1, 0b1, 1_000]", "[0,-1,7,10,15,255,\"-0x1\",\"0b1\",\"1_000\"]"},
        {"[1.5, .5, -.5, 5., 1e3, 1e-3, 1E+3, +1.5e2, 1.2.3, e3, ., -, 1e]",
         "[1.5,0.5,-0.5,5.0,1000.0,0.001,1000.0,150.0,\"1.2.3\",\"e3\",\".\",\"-\",\"1e\"]"},
        {"[.inf, -.INF, +.Inf, .nan, .NAN, inf, nan]", "[Infinity,-Infinity,Infinity,NaN,NaN,\"inf\",\"nan\"]"},
        {"['1', \"true\", '~']", "[\"1\",\"true\",\"~\"]"},
        {"a: |\n  x\n  y\nb: >\n  x\n  y\n", "{\"a\":\"x\\ny\\n\",\"b\":\"x y\\n\"}"},
        {"1: a\ntrue: b\n? c\n: d", "{\"1\":\"a\",\"true\":\"b\",\"c\":\"d\"}"},
        {"inputs: {x: image}\ncolumns: 0-63\nshape: [1, 8, 8]",
         "{\"inputs\":{\"x\":\"image\"},\"columns\":\"0-63\",\"shape\":[1,8,8]}"},
        {"- a\n- - b\n  - c\n-\n", "[\"a\",[\"b\",\"c\"],null]"},
        {"time: 1:30\ndate: 2026-01-05", "{\"time\":\"1:30\",\"date\":\"2026-01-05\"}"},
        {"9223372036854775808", "9223372036854775808"},
        {"\xc3\xa9: \"\\u00e9\\x41\"", "{\"\xc3\xa9\":\"\xc3\xa9"
                                       "A\"}"},
        {"{\"a\": [1, {\"b\": null}]}", "{\"a\":[1,{\"b\":null}]}"},
        {"checkpoint: {every: 1 epoch, keep: 3}", "{\"checkpoint\":{\"every\":\"1 epoch\",\"keep\":3}}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(as_json(parse(cases[i].yaml)), cases[i].json);
}

static void test_refuses_with_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place, *message;
    } cases[] = {
        {"a: &x 1\n", "t.yaml:1:4", "anchors (&name) are not accepted"},
        {"a: &x [1]\n", "t.yaml:1:4", "anchors"},
        {"a: &x {b: 1}\n", "t.yaml:1:4", "anchors"},
        {"a: *x\n", "t.yaml:1:4", "aliases (*name) are not accepted"},
        {"a: !!str 1\n", "t.yaml:1:4", "tags are not accepted, found \"tag:yaml.org,2002:str\""},
        {"a: !x [1]\n", "t.yaml:1:4", "found \"!x\""},
        {"a: !!python/object {}\n", "t.yaml:1:4", "tags are not accepted"},
        {"--- 1\n--- 2\n", "t.yaml:2:1", "more than one document"},
        {"%YAML 1.1\n---\na: 1\n", "t.yaml:1:1", "directives"},
        {"%TAG ! tag:x,2000:\n---\na: 1\n", "t.yaml:1:1", "directives"},
        {"? [a]\n: b\n", "t.yaml:1:3", "a list or map cannot be a key"},
        {"{a: b}: c\n", "t.yaml:1:1", "a list or map cannot be a key"},
        {"<<: {a: 1}\n", "t.yaml:1:1", "merge keys (<<) are not accepted"},
        {"?\n: x\n", "t.yaml:1:2", "a key is missing"},
        {"a: 1\nb:\n  c: 1\n  d: 2\n  c: 3\n", "t.yaml:5:3", "duplicate key \"c\""},
        {"a: 1\n\"a\": 3\n", "t.yaml:2:1", "duplicate key \"a\""},
        {"a: \"\\0\"\n", "t.yaml:1:4", "a NUL character"},
        {"a: [1, 2\nb: 3\n", "t.yaml:2:2", "did not find expected ',' or ']'"},
        {"a: b: c\n", "t.yaml:1:5", "mapping values are not allowed in this context"},
        {"a: 1\n b: 2\n", "t.yaml:2:3", "mapping values are not allowed"},
        {"a:\n\t- 1\n", "t.yaml:2:1", "cannot start any token"},
        {"a: @x\n", "t.yaml:1:4", "cannot start any token"},
        {"a: \"x\n", "t.yaml:2:1", "unexpected end of stream"},
        {"a: \xff\n", "t.yaml", "invalid leading UTF-8 octet at byte 3"},
        {"a: \x01\n", "t.yaml", "control characters are not allowed"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ty_doc *d;
        ty_error err = {0};
        if (ty_yaml_parse(&arena, "t.yaml", cases[i].text, strlen(cases[i].text), NULL, NULL, NULL, &d, &err) == 0)
            fail_msg("accepted: %s", cases[i].text);
        if (!strstr(err.message, cases[i].message))
            fail_msg("%s: expected \"%s\" in \"%s\"", cases[i].text, cases[i].message, err.message);
        assert_string_equal(err.place, cases[i].place);
    }
}

static void test_limits(void **state)
{
    (void)state;
    ty_doc *d;
    ty_error err = {0};
    char deep[5000];
    memset(deep, '[', sizeof deep);
    assert_int_equal(ty_yaml_parse(&arena, "t.yaml", deep, sizeof deep, NULL, NULL, NULL, &d, &err), -1);
    assert_string_equal(err.message, "nested deeper than the limit of 32 levels");
    assert_string_equal(err.place, "t.yaml:1:33");
    ty_doc_limits limits = {.max_bytes = 3};
    assert_int_equal(ty_yaml_parse(&arena, "t.yaml", "a: 1", 4, &limits, NULL, NULL, &d, &err), -1);
    assert_non_null(strstr(err.message, "larger than the limit of 3"));
}

static void test_doubts(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message, *help;
    } cases[] = {
        {"a: no", "no is a string here; other YAML readers take it for false", "write \"no\" in quotes, or false"},
        {"a: On", "On is a string here; other YAML readers take it for true", "write \"On\" in quotes, or true"},
        {"a: 010", "010 is a decimal integer here; other YAML readers take it for an octal number",
         "write 10, or \"010\" in quotes"},
        {"a: 0o10", "0o10 is an octal integer here; other YAML readers take it for a string",
         "write 8, or \"0o10\" in quotes"},
        {"a: 1_000", "1_000 is a string here; other YAML readers take it for an integer",
         "write \"1_000\" in quotes, or the plain number"},
        {"a: 12:30:45", "12:30:45 is a string here; other YAML readers take it for a number to the base of 60",
         "write \"12:30:45\" in quotes, or the plain number"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        n_warnings = 0;
        parse(cases[i].text);
        assert_int_equal(n_warnings, 1);
        assert_string_equal(last_warning.message, cases[i].message);
        assert_string_equal(last_warning.help, cases[i].help);
        assert_string_equal(last_warning.place, "t.yaml:1:4");
    }
    n_warnings = 0;
    parse("[\"no\", 'on', 1e3, 1e-3, 0, 08, x_1, _1, 2026-01-05, 12:99, a:b, 0-63]\n");
    assert_int_equal(n_warnings, 0);
}

static void test_places(void **state)
{
    (void)state;
    ty_doc *d = parse("a: 1\nmap:\n  key:   \"value\"\n  list: [x, y]\n");
    const ty_doc *key = ty_doc_find(ty_doc_find(d, "map"), "key");
    assert_int_equal(key->line, 3);
    assert_int_equal(key->column, 10);
    assert_int_equal(key->key_column, 3);
    assert_int_equal(key->width, 7);
    assert_true(key->quoted);
    const ty_doc *y = ty_doc_at(ty_doc_find(ty_doc_find(d, "map"), "list"), 1);
    assert_int_equal(y->line, 4);
    assert_int_equal(y->column, 13);
    char place[64];
    assert_string_equal(ty_doc_place(y, place, sizeof place), "t.yaml:4:13");
}

static int override(ty_doc *d, const char *path, const char *text, ty_error *err)
{
    return ty_doc_override(&arena, d, path, text, "hyperparameter \"h\"", err);
}

static void test_overrides(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_doc *d = parse("optimizer: {adamw: {lr: 1e-3}}\nlayers: [{size: 1}, {size: 2}]\nepochs: 3\nnothing:\n");
    assert_int_equal(override(d, "optimizer.adamw.lr", "0.5", &err), 0);
    assert_int_equal(override(d, "optimizer.adamw.weight_decay", "1", &err), 0);
    assert_int_equal(override(d, "layers.1.size", "7", &err), 0);
    assert_int_equal(override(d, "epochs", "null", &err), 0);
    assert_int_equal(override(d, "nothing.at.all", "[1, {\"a\": \"b\"}]", &err), 0);
    assert_int_equal(override(d, "text", "", &err), 0);
    assert_int_equal(override(d, "quoted", "\"5\"", &err), 0);
    assert_int_equal(override(d, "plain", "a: b # c", &err), 0);
    assert_string_equal(as_json(d), "{\"optimizer\":{\"adamw\":{\"lr\":0.5,\"weight_decay\":1}},"
                                    "\"layers\":[{\"size\":1},{\"size\":7}],\"epochs\":null,"
                                    "\"nothing\":{\"at\":{\"all\":[1,{\"a\":\"b\"}]}},\"text\":\"\",\"quoted\":\"5\","
                                    "\"plain\":\"a: b # c\"}");
    const ty_doc *lr = ty_doc_find(ty_doc_find(ty_doc_find(d, "optimizer"), "adamw"), "lr");
    char place[64];
    assert_string_equal(ty_doc_place(lr, place, sizeof place), "hyperparameter \"h\"");
    const char *string;
    assert_int_equal(ty_doc_string(lr, &string, &err), 0); /* given as text, taken as text */
    assert_string_equal(string, "0.5");
}

static void test_overrides_that_fail(void **state)
{
    (void)state;
    static const struct {
        const char *path, *text, *message;
    } cases[] = {
        {"epochs.deep", "1", "found integer 3 before it"},
        {"layers.2.size", "1", "\"layers.2.size\": nothing stands at \"layers.2\": found list of 2"},
        {"layers.x", "1", "nothing stands at"},
        {"", "1", "a name is empty"},
        {"a..b", "1", "a name is empty"},
        {"a.", "1", "a name is empty"},
        {"a", "[1", "in [1"},
        {"a", "{b: *c}", "aliases"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ty_error err = {0};
        ty_doc *d = parse("layers: [{size: 1}, {size: 2}]\nepochs: 3\n");
        assert_int_equal(override(d, cases[i].path, cases[i].text, &err), -1);
        if (!strstr(err.message, cases[i].message))
            fail_msg("%s: expected \"%s\" in \"%s\"", cases[i].path, cases[i].message, err.message);
        assert_string_equal(err.place, "hyperparameter \"h\"");
    }
    char deep[200];
    for (size_t i = 0; i < sizeof deep; i++)
        deep[i] = i % 2 ? '.' : 'a';
    deep[sizeof deep - 1] = 0;
    ty_error err = {0};
    assert_int_equal(override(ty_doc_new_map(&arena, "arguments"), deep, "1", &err), -1);
}

static void test_trees_of_overrides_alone(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_doc *d = ty_doc_new_map(&arena, "arguments");
    assert_int_equal(override(d, "a.b", "1", &err), 0);
    assert_int_equal(override(d, "a.c", "x", &err), 0);
    assert_string_equal(as_json(d), "{\"a\":{\"b\":1,\"c\":\"x\"}}");
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, start, stop)
    const struct CMUnitTest tests[] = {
        TEST(test_meaning),
        TEST(test_refuses_with_place),
        TEST(test_limits),
        TEST(test_doubts),
        TEST(test_places),
        TEST(test_overrides),
        TEST(test_overrides_that_fail),
        TEST(test_trees_of_overrides_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
