/* tokenizer.c - tokenizers from small files: what is refused and how, rows, text that is no UTF-8. That ids are right
 * is for tests/tokenizer/golden.sh. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/tokenizer/tokenizer.h"

#include <stdio.h>
#include <string.h>

#define WORDS \
    "\"model\": {\"type\": \"WordLevel\", \"unk_token\": \"?\", \"vocab\": {\"?\": 0, \"a\": 1, \"b\": 2, \"c\": 3}}"
#define BLANKS "\"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}"

static ty_tokenizer *make(const char *json)
{
    ty_tokenizer *t = NULL;
    ty_error err = {0};
    if (ty_tokenizer_parse("tokenizer.json", json, strlen(json), &t, &err) < 0) {
        print_error("%s: %s\n", err.place, err.message);
        fail();
    }
    return t;
}

static void assert_ids(const ty_tokenizer *t, const char *text, size_t n, const char *expected)
{
    int32_t ids[64];
    ty_error err = {0};
    char found[512] = "";
    int64_t count = ty_tokenizer_encode(t, text, n, true, ids, 64, &err);
    if (count < 0) {
        print_error("%s\n", err.message);
        fail();
    }
    for (int64_t i = 0; i < count; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), i ? " %d" : "%d", ids[i]);
    assert_string_equal(found, expected);
}

static void what_is_not_known_is_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *json, *says;
    } rows[] = {
        {"[]", "expected map"},
        {"{}", "\"model\" is missing"},
        {"{\"model\": {\"type\": \"CTC\"}}", "the model \"CTC\" is not known"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {}}}", "expected a list \"merges\""},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a b\"]}}", "is not in the vocabulary"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a\"]}}", "a merge is"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [], \"dropout\": 0.1}}",
         "a matter of chance"},
        {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": -1}, \"merges\": []}}", "the number of a token must be"},
        {"{\"model\": {\"type\": \"WordPiece\", \"vocab\": {\"a\": 0}}}",
         "the unknown token \"\" is not in the vocabulary"},
        {"{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\", 0]], \"unk_id\": 1}}", "unk_id is 1"},
        {"{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\"]]}}", "expected [\"token\", score]"},
        {"{" WORDS ", \"normalizer\": {\"type\": \"X\"}}", "the normalizer \"X\" is not known"},
        {"{" WORDS ", \"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"AAAA\"}}", "is damaged"},
        {"{" WORDS ", \"pre_tokenizer\": {\"type\": \"UnicodeScripts\"}}", "the pre-tokenizer \"UnicodeScripts\""},
        {"{" WORDS ", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"(\"}}}",
         "regular expression: "},
        {"{" WORDS ", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"a{2}+\"}}}",
         "a possessive interval"},
        {"{" WORDS ", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"[a&&b]\"}}}",
         "an intersection"},
        {"{" WORDS ", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"[a[b]]\"}}}",
         "within a class"},
        {"{" WORDS ", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"(?R)\"}}}", "a subroutine"},
        {"{" WORDS ", \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \" \"}, \"behavior\": \"x\"}}",
         "the behavior \"x\" is not known"},
        {"{" WORDS ", \"post_processor\": {\"type\": \"X\"}}", "the post-processor \"X\" is not known"},
        {"{" WORDS ", \"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": "
         "\"x\", \"type_id\": 0}}], \"special_tokens\": {}}}",
         "special_tokens has no ids for \"x\""},
        {"{" WORDS ", \"added_tokens\": [{\"id\": 7, \"content\": \"a\"}]}", "has the id 7 here, 1 in the vocabulary"},
        {"{" WORDS ", \"truncation\": {\"max_length\": 4, \"direction\": \"Up\"}}", "direction must be Left or Right"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_tokenizer *t = NULL;
        ty_error err = {0};
        if (ty_tokenizer_parse("tokenizer.json", rows[i].json, strlen(rows[i].json), &t, &err) == 0 ||
            strstr(err.message, rows[i].says) == NULL || strstr(err.place, "tokenizer.json") == NULL) {
            print_error("expected \"%s\", found \"%s\" at \"%s\"\n", rows[i].says, err.message, err.place);
            fail();
        }
    }
}

static void bytes_that_are_no_text_become_one_character(void **state)
{
    (void)state;
    ty_tokenizer *t =
        make("{\"model\": {\"type\": \"WordLevel\", \"unk_token\": \"?\", \"vocab\": {\"?\": 0, \"a\": 1, "
             "\"\xef\xbf\xbd\": 2, \"\xef\xbf\xbd\xef\xbf\xbd\": 3, \"\xef\xbf\xbd(\": 4}}, " BLANKS "}");
    assert_ids(t, "a \xff a \xf0\x9f\x98 \xc0\xaf \xe2\x28", 15, "1 2 1 2 3 4");
    assert_ids(t, "\xe2\x82", 2, "2");
    assert_ids(t, "", 0, "");
    assert_ids(t, "a\0a", 3, "0");
    ty_tokenizer_free(t);
}

static void rows_are_cut_and_filled_where_the_file_says(void **state)
{
    (void)state;
    static const char *const around =
        ", \"post_processor\": {\"type\": \"BertProcessing\", \"cls\": [\"<\", 8], \"sep\": [\">\", 9]}";
    char json[1024];
    int32_t ids[6];
    uint8_t mask[6], types[6];
    ty_error err = {0};
    snprintf(json, sizeof json, "{" WORDS ", " BLANKS "%s, \"padding\": {\"pad_id\": 5, \"pad_type_id\": 1}}", around);
    ty_tokenizer *t = make(json);
    assert_int_equal(ty_tokenizer_size(t), 10);
    assert_int_equal(ty_tokenizer_row(t, "a b", 3, 6, -1, ids, mask, types, &err), 4);
    assert_memory_equal(ids, ((int32_t[]){8, 1, 2, 9, 5, 5}), sizeof ids);
    assert_memory_equal(mask, ((uint8_t[]){1, 1, 1, 1, 0, 0}), 6);
    assert_memory_equal(types, ((uint8_t[]){0, 0, 0, 0, 1, 1}), 6);
    assert_int_equal(ty_tokenizer_row(t, "a b c a b c", 11, 4, -1, ids, mask, types, &err), 4);
    assert_memory_equal(ids, ((int32_t[]){8, 1, 2, 9}), 16);
    assert_int_equal(ty_tokenizer_row(t, "a", 1, 1, -1, ids, mask, types, &err), -1);
    assert_non_null(strstr(err.message, "no room for the 2 special ones"));
    ty_tokenizer_free(t);
    snprintf(json, sizeof json,
             "{" WORDS ", " BLANKS "%s, \"padding\": {\"pad_id\": 5, \"direction\": \"Left\"}, "
             "\"truncation\": {\"max_length\": 3, \"direction\": \"Left\"}}",
             around);
    t = make(json);
    assert_ids(t, "a b c", 5, "8 3 9");
    assert_int_equal(ty_tokenizer_row(t, "a b c", 5, 4, -1, ids, NULL, NULL, &err), 4);
    assert_memory_equal(ids, ((int32_t[]){8, 2, 3, 9}), 16);
    assert_int_equal(ty_tokenizer_row(t, "c", 1, 5, 7, ids, mask, NULL, &err), 3);
    assert_memory_equal(ids, ((int32_t[]){7, 7, 8, 3, 9}), 20);
    assert_memory_equal(mask, ((uint8_t[]){0, 0, 1, 1, 1}), 5);
    ty_tokenizer_free(t);
    t = make("{" WORDS ", " BLANKS "}");
    assert_int_equal(ty_tokenizer_row(t, "c", 1, 5, -1, ids, NULL, NULL, &err), -1);
    assert_non_null(strstr(err.help, "pad: ID"));
    ty_tokenizer_free(t);
}

/* A double array of two steps: 'b' becomes "a", everything else stays. */
static void characters_are_replaced_by_the_precompiled_table(void **state)
{
    (void)state;
    uint32_t unit[256] = {0};
    uint8_t bytes[4 + sizeof unit + 2] = {0, 4, 0, 0};
    unit[0] = 1u << 10;                                            /* begins at 1 */
    unit[1 ^ 'b'] = 'b' | 1u << 8 | (uint32_t)(1 ^ 'b' ^ 5) << 10; /* a text ends here: what it becomes is in unit 5 */
    unit[5] = 1u << 31;                                            /* the text at 0 */
    memcpy(bytes + 4, unit, sizeof unit);
    bytes[4 + sizeof unit] = 'a';
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char base64[2048], json[4096];
    size_t n = 0;
    for (size_t i = 0; i < sizeof bytes; i += 3) {
        uint32_t v = (uint32_t)bytes[i] << 16 | (i + 1 < sizeof bytes ? (uint32_t)bytes[i + 1] << 8 : 0) |
                     (i + 2 < sizeof bytes ? bytes[i + 2] : 0);
        for (int k = 18; k >= 0; k -= 6)
            base64[n++] = digits[v >> k & 63];
    }
    base64[n] = 0;
    snprintf(json, sizeof json,
             "{" WORDS ", " BLANKS ", \"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"%s\"}}",
             base64);
    ty_tokenizer *t = make(json);
    assert_ids(t, "a b c", 5, "1 1 3");
    ty_tokenizer_free(t);
}

/* A text that comes again has the ids it had, and so has one that differs in its last byte. */
static void texts_that_come_again(void **state)
{
    (void)state;
    ty_tokenizer *t = make("{" WORDS ", " BLANKS "}");
    static const char *const texts[] = {
        "a b c a b c a b c a b c a b c a b c a b c", "a b c a b c a b c a b c a b c a b c a b a",
        "c c c c c c c c c c c c c c c c c c c c c", "a",
        "b a a a a a a a a a a a a a a a a a a a a", "c b b b b b b b b b b b b b b b b b b b b"};
    static const char *const ids[] = {
        "1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3", "1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 3 1 2 1",
        "3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3", "1",
        "2 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "3 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2"};
    for (int i = 0; i < 200; i++) {
        int k = (i * i + i / 7) % 6;
        assert_ids(t, texts[k], strlen(texts[k]), ids[k]);
        assert_ids(t, texts[k], strlen(texts[k]), ids[k]);
    }
    ty_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_known_is_refused_by_name),
        cmocka_unit_test(bytes_that_are_no_text_become_one_character),
        cmocka_unit_test(rows_are_cut_and_filled_where_the_file_says),
        cmocka_unit_test(texts_that_come_again),
        cmocka_unit_test(characters_are_replaced_by_the_precompiled_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
