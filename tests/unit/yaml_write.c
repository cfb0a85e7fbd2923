/* YAML that is written reads back as the same tree, without a doubt of readers of YAML 1.1. */
#include "base/json.h"
#include "base/yaml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void note_doubt(void *context, const ty_error *doubt)
{
    print_message("doubt: %s\n", doubt->message);
    ++*(int *)context;
}

/* JSON text, over YAML, is the same JSON text. */
static void comes_back(const char *json)
{
    ty_arena a;
    ty_doc *tree, *back;
    ty_error err = {0};
    ty_buf yaml, again;
    int n_doubts = 0;
    ty_arena_init(&a);
    ty_buf_init(&yaml, 1 << 20);
    ty_buf_init(&again, 1 << 20);
    assert_int_equal(ty_json_parse(&a, "x", json, strlen(json), NULL, &tree, &err), 0);
    for (size_t i = 0; i < ty_doc_len(tree); i++)
        ty_yaml_add_entry(&yaml, ty_doc_at(tree, i), 0);
    if (ty_yaml_parse(&a, "y", yaml.data, yaml.len, NULL, note_doubt, &n_doubts, &back, &err) < 0)
        print_message("%s: %s\n%s\n", err.place, err.message, yaml.data);
    assert_int_equal(err.code, TY_E_NONE);
    ty_json_add_doc(&again, back, TY_JSON_SPACED);
    assert_string_equal(again.data, json);
    assert_int_equal(n_doubts, 0);
    for (char *line = strtok(yaml.data, "\n"); line; line = strtok(NULL, "\n"))
        assert_true(strlen(line) <= 300);
    ty_buf_fini(&yaml);
    ty_buf_fini(&again);
    ty_arena_fini(&a);
}

static void trees_come_back(void **state)
{
    (void)state;
    comes_back("{\"a\": 1, \"b\": [1, 2.5, \"x\", null, true, {}], \"c\": {\"d\": []}}");
    comes_back(
        "{\"a\": \"\", \"\": \"\", \"b\": \" x\", \"c\": \"x \", \"d\": \"x: y\", \"e\": \"x #y\", \"f\": \"x:\"}");
    comes_back(
        "{\"yes\": \"yes\", \"on\": \"off\", \"null\": \"null\", \"~\": \"~\", \"1\": \"1\", \"1e-3\": \"1e-3\", "
        "\"0x1f\": \"0o17\", \".inf\": \".nan\", \"1:30\": \"1_000\", \"2026-03-14\": \"2026-03-14 09:26\", \"<<\": "
        "\"<<\", \"=\": \"=\", \"010\": \"010\"}");
    comes_back("{\"-\": \"- x\", \"? x\": \"? y\", \"&a\": \"*a\", \"!t\": \"!t\", \"%d\": \"%d\", \"@\": \"`\", "
               "\"[\": \"]\", "
               "\"{\": \"}\", \"a, b\": \"a, b\", \"'\": \"'\", \"---\": \"...\", \"|\": \">\"}");
    comes_back("{\"a\": \"line\\nline\\n\", \"b\": \"\\ttab\\r\", \"c\": \"\\u0001\x7f\", \"d\": \"\\\\ \\\"\"}");
    comes_back("{\"caf\xc3\xa9\": "
               "\"\xc2\x85\xe2\x80\xa8\xe2\x80\xa9\xef\xbb\xbf\xef\xbf\xbe\xf0\x9f\x98\x80\xee\x80\x80\xc2\x9f\"}");
    comes_back("{\"a\": 12345678901234567890, \"b\": -0.0, \"c\": 1e-05, \"d\": 1.5e+300, \"e\": -5}");
    comes_back("{\"s3\": \"s3://bucket/a b/c+d\", \"arn\": \"arn:aws:iam::111122223333:role/x\", \"r\": "
               "\" loss=([-+0-9.eE]+)\"}");
}

/* Where a line has no room, an item a line; also maps in lists and lists in lists. */
static void long_ones_are_broken(void **state)
{
    (void)state;
    char json[4096] = "{\"list\": [", *at = json + strlen(json);
    for (int i = 0; i < 12; i++)
        at += snprintf(at, 256, "%s{\"name\": \"a rather long name %d\", \"more\": [[\"%040d\", \"%040d\"], [%d]]}",
                       i ? ", " : "", i, i, i, i);
    strcpy(at,
           "], \"map\": {\"a\": {\"b\": \"0123456789012345678901234567890123456789012345678901234567890123456789\", "
           "\"c\": {\"d\": \"0123456789012345678901234567890123456789\"}}}}");
    comes_back(json);
}

/* What readers of YAML 1.1 take for dates and numbers, which ours does not doubt. */
static void dates_are_quoted(void **state)
{
    (void)state;
    static const char *const quoted[] = {"2026-03-14", "2026-03-14 09:26:53", "10:30", "yes", "1_000"};
    static const char *const plain[] = {"digits-2026-03-14", "s3://b/2026-03-14", "ml.c5.xlarge", "1.2.x"};
    for (size_t i = 0; i < sizeof quoted / sizeof quoted[0] + sizeof plain / sizeof plain[0]; i++) {
        size_t n = sizeof quoted / sizeof quoted[0];
        ty_buf out;
        ty_buf_init(&out, 1000);
        ty_yaml_add_string(&out, i < n ? quoted[i] : plain[i - n]);
        assert_int_equal(out.data[0] == '"', i < n);
        ty_buf_fini(&out);
    }
}

/* Bytes that are no UTF-8 never come from a reader; they must not be read past. */
static void broken_text_ends(void **state)
{
    (void)state;
    ty_buf out;
    ty_buf_init(&out, 1000);
    ty_yaml_add_string(&out, "\xf0\x9f");
    assert_string_equal(out.data, "\"\\xf0\\x9f\"");
    ty_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(trees_come_back), cmocka_unit_test(long_ones_are_broken),
                                       cmocka_unit_test(dates_are_quoted), cmocka_unit_test(broken_text_ends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
