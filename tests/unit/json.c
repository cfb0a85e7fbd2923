/* JSON: what is taken, what is refused and where, what is written. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"

#include <cjson/cJSON.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static ty_arena arena;

static int start(void **state)
{
    (void)state;
    ty_arena_init(&arena);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    ty_arena_fini(&arena);
    return 0;
}

static ty_doc *parse(const char *text)
{
    ty_doc *d;
    ty_error err = {0};
    if (ty_json_parse(&arena, "t.json", text, strlen(text), NULL, &d, &err) < 0)
        fail_msg("refused %s: %s at %s", text, err.message, err.place);
    return d;
}

static const char *written(const ty_doc *d, int style)
{
    ty_buf out;
    ty_buf_init(&out, 1 << 20);
    assert_int_equal(ty_json_add_doc(&out, d, style), 0);
    char *text = ty_arena_strdup(&arena, out.data);
    ty_buf_fini(&out);
    return text;
}

/* The y_ cases of JSONTestSuite (Seriot, "Parsing JSON is a Minefield"), but for the one key with a NUL. */
static const char *const accepted[] = {
    "[[]   ]",
    "[\"\"]",
    "[]",
    "[\"a\"]",
    "[false]",
    "[null, 1, \"1\", {}]",
    "[null]",
    "[1\n]",
    " [1]",
    "[1,null,null,null,2]",
    "[2] ",
    "[123e65]",
    "[0e+1]",
    "[0e1]",
    "[ 4]",
    "[20e1]",
    "[-0]",
    "[-123]",
    "[-1]",
    "[-0.000000000000000000000000000000000000000000000000000000000000000000000000000001]",
    "[1E22]",
    "[1E-2]",
    "[1E+2]",
    "[123e45]",
    "[123.456e78]",
    "[1e-2]",
    "[1e+2]",
    "[123]",
    "[123.456789]",
    "{\"asd\":\"sdf\", \"dfg\":\"fgh\"}",
    "{\"asd\":\"sdf\"}",
    "{\"\":0}",
    "{}",
    "{\"min\": -1.0e+28, \"max\": 1.0e+28}",
    "{\"x\":[{\"id\": \"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}], \"id\": "
    "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}",
    "{\"a\":[]}",
    "{\"title\":\"\\u041f\\u043e\\u043b\\u0442\\u043e\\u0440\\u0430\"}",
    "{\n\"a\": \"b\"\n}",
    "[\"\\u0060\\u012a\\u12AB\"]",
    "[\"\\uD801\\udc37\"]",
    "[\"\\ud83d\\ude39\\ud83d\\udc8d\"]",
    "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]",
    "[\"\\\\u0000\"]",
    "[\"\\\"\"]",
    "[\"a/*b*/c/*d//e\"]",
    "[\"\\\\a\"]",
    "[\"\\\\n\"]",
    "[\"\\u0012\"]",
    "[\"\\uFFFF\"]",
    "[\"asd\"]",
    "[ \"asd\"]",
    "[\"\\uDBFF\\uDFFF\"]",
    "[\"new\\u00A0line\"]",
    "[\"\xf4\x8f\xbf\xbf\"]",
    "[\"\xef\xbf\xbf\"]",
    "[\"\\u002c\"]",
    "[\"\xcf\x80\"]",
    "[\"asd \"]",
    "\" \"",
    "[\"\\uD834\\uDd1e\"]",
    "[\"\\u0821\"]",
    "[\"\\u0123\"]",
    "[\"\xe2\x80\xa8\"]",
    "[\"\xe2\x80\xa9\"]",
    "[\"\\u0061\\u30af\\u30EA\\u30b9\"]",
    "[\"new\\u000Aline\"]",
    "[\"\x7f\"]",
    "[\"\\uA66D\"]",
    "[\"\\u005C\"]",
    "[\"\xe2\x8d\x82\xe3\x88\xb4\xe2\x8d\x82\"]",
    "[\"\\uDBFF\\uDFFE\"]",
    "[\"\\u200B\"]",
    "[\"\\u2064\"]",
    "[\"\\uFDD0\"]",
    "[\"\\u0022\"]",
    "[\"a\x7f"
    "a\"]",
    "false",
    "42",
    "-0.1",
    "null",
    "\"asd\"",
    "true",
    "\"\"",
    "[\"a\"]\n",
    "[true]",
    " [] ",
};

static void test_accepts_what_the_standard_allows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        const char *once = written(parse(accepted[i]), TY_JSON_COMPACT);
        assert_string_equal(written(parse(once), TY_JSON_COMPACT), once);
    }
}

/* cJSON as the second opinion on structure and strings. */
static void test_agrees_with_cjson(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        cJSON *ours = cJSON_Parse(written(parse(accepted[i]), TY_JSON_ASCII)), *theirs = cJSON_Parse(accepted[i]);
        if (theirs) /* it takes no number of more than 63 characters */
            assert_true(cJSON_Compare(ours, theirs, true));
        cJSON_Delete(ours);
        cJSON_Delete(theirs);
    }
}

/* Text, place, a word of the message. */
static const struct {
    const char *text, *place, *message;
} refused[] = {
    {"", "t.json:1:1", "expected a value, found end of file"},
    {"   \n ", "t.json:2:2", "found end of file"},
    {"[1,]", "t.json:1:4", "expected a value, found ']'"},
    {"[,1]", "t.json:1:2", "found ','"},
    {"[1 2]", "t.json:1:4", "expected ',' or ']', found '2'"},
    {"[1", "t.json:1:3", "found end of file"},
    {"[1}", "t.json:1:3", "expected ',' or ']'"},
    {"]", "t.json:1:1", "expected a value"},
    {"{\"a\"}", "t.json:1:5", "':' after the key"},
    {"{\"a\":}", "t.json:1:6", "expected a value"},
    {"{\"a\":1,}", "t.json:1:8", "a key in quotes, found '}'"},
    {"{a:1}", "t.json:1:2", "a key in quotes or '}'"},
    {"{1:1}", "t.json:1:2", "a key in quotes"},
    {"{'a':1}", "t.json:1:2", "a key in quotes"},
    {"{\"a\":1 \"b\":2}", "t.json:1:8", "',' or '}'"},
    {"{\"a\":1]", "t.json:1:7", "',' or '}'"},
    {"01", "t.json:1:2", "end of file after the value"},
    {"-", "t.json:1:2", "a digit"},
    {"-a", "t.json:1:2", "a digit"},
    {"+1", "t.json:1:1", "expected a value"},
    {".5", "t.json:1:1", "expected a value"},
    {"1.", "t.json:1:3", "a digit"},
    {"1.e1", "t.json:1:3", "a digit"},
    {"1e", "t.json:1:3", "a digit"},
    {"1e+", "t.json:1:4", "a digit"},
    {"0x10", "t.json:1:2", "end of file after"},
    {"NaN", "t.json:1:1", "expected a value"},
    {"Infinity", "t.json:1:1", "expected a value"},
    {"nul", "t.json:1:4", "expected null"},
    {"nulx", "t.json:1:4", "expected null, found 'x'"},
    {"True", "t.json:1:1", "expected a value"},
    {"\"abc", "t.json:1:5", "a closing quote"},
    {"\"a\nb\"", "t.json:1:3", "a closing quote"},
    {"\"a\tb\"", "t.json:1:3", "byte 0x09"},
    {"\"\\x\"", "t.json:1:3", "after a backslash"},
    {"\"\\u12g4\"", "t.json:1:6", "four hexadecimal digits"},
    {"\"\\ud800\"", "t.json:1:8", "a low surrogate"},
    {"\"\\ud800\\u0041\"", "t.json:1:14", "a low surrogate"},
    {"\"\\udc00\"", "t.json:1:8", "no low surrogate"},
    {"\"\\u0000\"", "t.json:1:8", "no NUL"},
    {"[1] x", "t.json:1:5", "end of file after the value, found 'x'"},
    {"{} {}", "t.json:1:4", "end of file after"},
    {"1 // no", "t.json:1:3", "end of file after"},
    {"/* no */ 1", "t.json:1:1", "expected a value"},
    {"\xef\xbb\xbf[]", "t.json:1:1", "expected a value"},
    {"[\"\xff\"]", "t.json:1:3", "byte 0xff is no UTF-8"},
    {"[\"\xc0\xaf\"]", "t.json:1:3", "no UTF-8"},
    {"[\"\xed\xa0\x80\"]", "t.json:1:3", "no UTF-8"},
    {"[\"\xf4\x90\x80\x80\"]", "t.json:1:3", "no UTF-8"},
    {"[\"\xe2\x82\"]", "t.json:1:3", "no UTF-8"},
    {"1e999", "t.json:1:1", "beyond the range of a double"},
    {"{\"a\":1,\n \"b\":2, \"a\":3}", "t.json:2:9", "duplicate key \"a\""},
    {"{\"a\":1,\"\\u0061\":3}", "t.json:1:8", "duplicate key \"a\""},
    {"[\"\xc3\xa9\xc3\xa9\", x]", "t.json:1:8", "found 'x'"}, /* columns count characters */
};

static void test_refuses_with_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        ty_doc *d;
        ty_error err = {0};
        if (ty_json_parse(&arena, "t.json", refused[i].text, strlen(refused[i].text), NULL, &d, &err) == 0)
            fail_msg("accepted: %s", refused[i].text);
        assert_string_equal(err.place, refused[i].place);
        if (!strstr(err.message, refused[i].message))
            fail_msg("%s: expected \"%s\" in \"%s\"", refused[i].text, refused[i].message, err.message);
    }
}

static void test_nul_byte_in_the_text(void **state)
{
    (void)state;
    ty_doc *d;
    ty_error err = {0};
    assert_int_equal(ty_json_parse(&arena, "t.json", "[1\0]", 4, NULL, &d, &err), -1);
    assert_non_null(strstr(err.message, "byte 0x00"));
}

static void test_duplicates_in_big_maps(void **state)
{
    (void)state;
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    ty_buf_adds(&text, "{");
    for (int i = 0; i < 1000; i++)
        ty_buf_addf(&text, "\"k%d\":%d,\n", i, i);
    ty_buf_adds(&text, "\"k500\":1}");
    ty_doc *d;
    ty_error err = {0};
    assert_int_equal(ty_json_parse(&arena, "t.json", text.data, text.len, NULL, &d, &err), -1);
    assert_int_equal(err.code, TY_E_DUPLICATE);
    assert_string_equal(err.place, "t.json:1001:1");
    assert_non_null(strstr(err.detail, "it stands first in line 501"));
    ty_buf_fini(&text);
}

static int parse_with(const char *text, ty_doc_limits limits, ty_error *err)
{
    ty_doc *d;
    return ty_json_parse(&arena, "t.json", text, strlen(text), &limits, &d, err);
}

static void test_limits(void **state)
{
    (void)state;
    ty_error err = {0};
    assert_int_equal(parse_with("[[1]]", (ty_doc_limits){.max_depth = 2}, &err), 0);
    assert_int_equal(parse_with("[[[1]]]", (ty_doc_limits){.max_depth = 2}, &err), -1);
    assert_string_equal(err.message, "nested deeper than the limit of 2 levels");
    assert_string_equal(err.place, "t.json:1:3");
    assert_int_equal(parse_with("[1,2]", (ty_doc_limits){.max_bytes = 5}, &err), 0);
    assert_int_equal(parse_with("[1,2] ", (ty_doc_limits){.max_bytes = 5}, &err), -1);
    assert_non_null(strstr(err.message, "larger than the limit of 5"));
    assert_int_equal(parse_with("[1,2]", (ty_doc_limits){.max_nodes = 3}, &err), 0);
    assert_int_equal(parse_with("[1,2,3]", (ty_doc_limits){.max_nodes = 3}, &err), -1);
    assert_non_null(strstr(err.message, "more than the limit of 3 values"));
    char deep[70];
    memset(deep, '[', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    ty_doc *d;
    assert_int_equal(ty_json_parse(&arena, "t.json", deep, strlen(deep), NULL, &d, &err), -1);
    assert_string_equal(err.place, "t.json:1:65");
}

static void test_values_and_places(void **state)
{
    (void)state;
    ty_doc *d = parse("{\"i\": -7,\n  \"f\": 2.5e1, \"s\": \"h\\u00e9\\ud83d\\ude00\", \"l\": [true, null],\n \"big\": "
                      "9223372036854775808}");
    assert_int_equal(ty_doc_len(d), 5);
    const ty_doc *i = ty_doc_find(d, "i"), *f = ty_doc_find(d, "f"), *s = ty_doc_find(d, "s"), *l = ty_doc_find(d, "l");
    int64_t integer;
    double number;
    const char *string;
    assert_int_equal(ty_doc_int(i, &integer, NULL), 0);
    assert_int_equal(integer, -7);
    assert_int_equal(ty_doc_float(i, &number, NULL), 0);
    assert_true(number == -7);
    assert_int_equal(ty_doc_float(f, &number, NULL), 0);
    assert_true(number == 25);
    assert_string_equal(f->raw, "2.5e1");
    assert_int_equal(ty_doc_string(s, &string, NULL), 0);
    assert_string_equal(string, "h\xc3\xa9\xf0\x9f\x98\x80");
    assert_int_equal(f->line, 2);
    assert_int_equal(f->column, 8);
    assert_int_equal(f->key_line, 2);
    assert_int_equal(f->key_column, 3);
    assert_int_equal(f->width, 5);
    assert_int_equal(ty_doc_at(l, 0)->kind, TY_DOC_BOOL);
    assert_int_equal(ty_doc_at(l, 1)->kind, TY_DOC_NULL);
    assert_null(ty_doc_at(l, 2));
    assert_null(ty_doc_find(d, "x"));
    assert_null(ty_doc_find(l, "x"));
    assert_null(ty_doc_find(NULL, "x"));
    const ty_doc *big = ty_doc_find(d, "big");
    assert_int_equal(big->kind, TY_DOC_FLOAT);
    assert_string_equal(written(big, 0), "9223372036854775808");
    assert_int_equal(parse("9223372036854775807")->kind, TY_DOC_INT);
    assert_int_equal(parse("-9223372036854775808")->kind, TY_DOC_INT);
}

static void test_getters_say_what_was_found(void **state)
{
    (void)state;
    ty_doc *d = parse("{\n  \"epochs\": \"many\"}");
    int64_t integer;
    ty_error err = {0};
    assert_int_equal(ty_doc_int(ty_doc_find(d, "epochs"), &integer, &err), -1);
    char out[1024];
    ty_error_format(&err, out, sizeof out);
    assert_string_equal(out, "error[E0105]: t.json:2:13: key \"epochs\": expected integer, found string \"many\"\n"
                             "    2 |   \"epochs\": \"many\"}\n"
                             "      |             ^^^^^^\n");
}

static void test_excerpts_of_long_lines(void **state)
{
    (void)state;
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    ty_buf_adds(&text, "[");
    for (int i = 0; i < 1000; i++)
        ty_buf_adds(&text, "\"\xc3\xa9\", ");
    ty_buf_adds(&text, "oops, ");
    for (int i = 0; i < 1000; i++)
        ty_buf_adds(&text, "1, ");
    ty_doc *d;
    ty_error err = {0};
    assert_int_equal(ty_json_parse(&arena, "t.json", text.data, text.len, NULL, &d, &err), -1);
    assert_string_equal(err.place, "t.json:1:5002");
    char *second = strchr(err.detail, '\n') + 1;
    size_t caret_at = (size_t)(strchr(second, '^') - second), bytes = 0;
    char *shown = err.detail;
    for (size_t chars = 0; chars < caret_at; bytes++)
        chars += ((unsigned char)shown[bytes + 1] & 0xc0) != 0x80;
    assert_memory_equal(shown + bytes, "oops", 4);
    assert_true(strlen(err.detail) < 400);
    ty_buf_fini(&text);
}

static void test_styles(void **state)
{
    (void)state;
    ty_doc *d = parse("{\"b\":[1,2.0,\"\xc3\xa9\xf0\x9f\x98\x80\x7f\"],\"a\":{\"z\":null,\"y\":true}}");
    assert_string_equal(written(d, TY_JSON_COMPACT),
                        "{\"b\":[1,2.0,\"\xc3\xa9\xf0\x9f\x98\x80\x7f\"],\"a\":{\"z\":null,\"y\":true}}");
    assert_string_equal(written(d, TY_JSON_PYTHON),
                        "{\"b\": [1, 2.0, \"\\u00e9\\ud83d\\ude00\\u007f\"], \"a\": {\"z\": null, \"y\": true}}");
    assert_string_equal(written(d, TY_JSON_SORTED),
                        "{\"a\":{\"y\":true,\"z\":null},\"b\":[1,2.0,\"\xc3\xa9\xf0\x9f\x98\x80\x7f\"]}");
}

static const char *float_text(double value)
{
    static char text[64];
    ty_buf out;
    ty_buf_init(&out, 60);
    ty_json_add_float(&out, value);
    snprintf(text, sizeof text, "%s", out.data);
    ty_buf_fini(&out);
    return text;
}

/* As Python's repr. */
static void test_floats(void **state)
{
    (void)state;
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0, "0.0"},
        {-0.0, "-0.0"},
        {1, "1.0"},
        {0.1, "0.1"},
        {1e-3, "0.001"},
        {1e-4, "0.0001"},
        {1e-5, "1e-05"},
        {1.5e-7, "1.5e-07"},
        {100000, "100000.0"},
        {1e15, "1000000000000000.0"},
        {1e16, "1e+16"},
        {1.25e16, "1.25e+16"},
        {9007199254740993, "9007199254740992.0"},
        {1e100, "1e+100"},
        {DBL_MAX, "1.7976931348623157e+308"},
        {5e-324, "5e-324"}, /* subnormals: fewer digits suffice there */
        {-1.5e-323, "-1.5e-323"},
        {1e-310, "1e-310"},
        {2.225073858507201e-308, "2.225073858507201e-308"},
        {1.0 / 3, "0.3333333333333333"},
        {2.0 / 3, "0.6666666666666666"},
        {123.456, "123.456"},
        {0.1 + 0.2, "0.30000000000000004"},
        {-1234.5, "-1234.5"},
        {12345678901234567, "1.2345678901234568e+16"},
        {(double)INFINITY, "Infinity"},
        {-(double)INFINITY, "-Infinity"},
        {(double)NAN, "NaN"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(float_text(cases[i].value), cases[i].text);
    ty_buf out;
    ty_buf_init(&out, 60);
    ty_json_add_float32(&out, 0.1f);
    ty_buf_addc(&out, ' ');
    ty_json_add_float32(&out, 16777216.0f);
    ty_buf_addc(&out, ' ');
    ty_json_add_float32(&out, FLT_MAX);
    assert_string_equal(out.data, "0.1 16777216.0 3.4028235e+38");
    ty_buf_fini(&out);
}

static void test_floats_read_back(void **state)
{
    (void)state;
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        bits ^= bits << 13, bits ^= bits >> 7, bits ^= bits << 17;
        double value;
        memcpy(&value, &bits, 8);
        if (isfinite(value))
            assert_true(strtod(float_text(value), NULL) == value);
    }
}

static void test_strings(void **state)
{
    (void)state;
    ty_buf out;
    ty_buf_init(&out, 200);
    ty_json_add_string(&out, "a\"\\/\b\f\n\r\t\x01\xff\xe2\x82", TY_JSON_COMPACT);
    assert_string_equal(out.data, "\"a\\\"\\\\/\\b\\f\\n\\r\\t\\u0001\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    ty_buf_fini(&out);
}

static void test_writer(void **state)
{
    (void)state;
    ty_buf out;
    ty_buf_init(&out, 400);
    ty_json_writer w;
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "step", 3);
    ty_json_open_list(&w, "shape");
    ty_json_put_int(&w, NULL, 64);
    ty_json_put_int(&w, NULL, -1);
    ty_json_open_map(&w, NULL);
    ty_json_close(&w);
    ty_json_close(&w);
    ty_json_put_float(&w, "loss", 0.25);
    ty_json_put_float(&w, "bad", (double)NAN);
    ty_json_put_float32(&w, "f", 0.1f);
    ty_json_put_string(&w, "s", "x\n");
    ty_json_put_string(&w, "none", NULL);
    ty_json_put_bool(&w, "b", true);
    ty_json_put_doc(&w, "d", parse("[1]"));
    ty_json_close(&w);
    assert_string_equal(out.data, "{\"step\": 3, \"shape\": [64, -1, {}], \"loss\": 0.25, \"bad\": null, \"f\": 0.1, "
                                  "\"s\": \"x\\n\", \"none\": null, \"b\": true, \"d\": [1]}");
    assert_false(out.failed);
    ty_json_close(&w);
    assert_true(out.failed);
    ty_buf_clear(&out);
    ty_json_writer_init(&w, &out, TY_JSON_COMPACT);
    for (int i = 0; i < 40; i++)
        ty_json_open_list(&w, NULL);
    assert_true(out.failed);
    ty_buf_fini(&out);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, start, stop)
    const struct CMUnitTest tests[] = {
        TEST(test_accepts_what_the_standard_allows),
        TEST(test_agrees_with_cjson),
        TEST(test_refuses_with_place),
        TEST(test_nul_byte_in_the_text),
        TEST(test_duplicates_in_big_maps),
        TEST(test_limits),
        TEST(test_values_and_places),
        TEST(test_getters_say_what_was_found),
        TEST(test_excerpts_of_long_lines),
        TEST(test_styles),
        TEST(test_floats),
        TEST(test_floats_read_back),
        TEST(test_strings),
        TEST(test_writer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
