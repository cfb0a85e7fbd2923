/* tokens.c - windows over texts and files of tokens: which tokens they have, in which order, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/tokenizer/tokenizer.h"
#include "input_files.h"

#define MAX_TOKENS 16

static ty_dataset *open_windows(const char *name, ty_windows w, const ty_dataset *like, ty_error *err)
{
    ty_field f[2] = {ty_field_make("x"), ty_field_make("next")};
    f[1].member = "targets";
    f[1].dtype = TY_I32, f[1].dtype_given = true;
    ty_dataset *ds = NULL;
    return files_open(name, f, 2, (ty_data_source){.windows = w, .like = like}, &ds, err) < 0 ? NULL : ds;
}

/* The inputs and targets of samples as "1 2 3|2 3 4 ...". */
static const char *windows_of(const ty_dataset *ds, ty_pick pick)
{
    static char text[1024];
    int64_t x[MAX_TOKENS * 8], length = ds->field[0].type.dim[0];
    int32_t next[MAX_TOKENS * 8];
    void *const out[] = {x, next};
    ty_error err = {0};
    assert_ok(ty_dataset_read_all(ds, &pick, out, &err), &err);
    text[0] = 0;
    for (int64_t i = 0; i < pick.n * length; i++) {
        bool first = i % length == 0;
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%lld",
                 i == 0  ? ""
                 : first ? "|"
                         : " ",
                 (long long)x[i]);
        if (i % length != length - 1)
            assert_int_equal(next[i], x[i + 1]);
        else
            snprintf(text + strlen(text), sizeof text - strlen(text), ">%d", next[i]);
    }
    return text;
}

static const int64_t all[] = {0, 1, 2, 3, 4, 5, 6, 7};

static void bytes_and_characters_of_text(void **state)
{
    (void)state;
    ty_error err = {0};
    files_puts("t/a.txt", "abcab");
    files_puts("t/b.txt", "ca");
    ty_dataset *ds = open_windows("t", (ty_windows){.length = 3, .symbols = TY_SYMBOLS_BYTES}, NULL, &err);
    assert_ok(ds ? 0 : -1, &err);
    assert_string_equal(ds->format, "text");
    assert_int_equal(ds->n_samples, 2);
    assert_string_equal(windows_of(ds, (ty_pick){.sample = all, .n = 2}), "97 98 99>97|97 98 99>97");
    ty_dataset_close(ds);
    ds = open_windows("t", (ty_windows){.length = 2, .stride = 1, .end_token = "end"}, NULL, &err);
    assert_ok(ds ? 0 : -1, &err);
    assert_int_equal(ds->n_samples, 7);
    assert_int_equal(ds->field[0].max, 3);
    assert_string_equal(windows_of(ds, (ty_pick){.sample = all, .n = 7}), "0 1>2|1 2>0|2 0>1|0 1>3|1 3>2|3 2>0|2 0>3");
    char place[600];
    assert_non_null(strstr(ty_dataset_place(ds, 0, 6, place, sizeof place), "b.txt: tokens 0 to 1"));
    ty_tokenizer *t;
    int32_t ids[4];
    assert_ok(ty_tokenizer_parse("kept", ds->tokenizer, ds->tokenizer_bytes, &t, &err), &err);
    assert_int_equal(ty_tokenizer_encode(t, "cab", 3, true, ids, 4, &err), 3);
    assert_true(ids[0] == 2 && ids[1] == 0 && ids[2] == 1);
    ty_tokenizer_free(t);
    files_puts("other.txt", "bb cc");
    assert_null(open_windows("other.txt", (ty_windows){.length = 2}, ds, &err));
    assert_says(&err, "the character \" \" (U+0020) is not in the training data");
    files_puts("other.txt", "ccab");
    ty_dataset *other = open_windows("other.txt", (ty_windows){.length = 2}, ds, &err);
    assert_ok(other ? 0 : -1, &err);
    assert_string_equal(windows_of(other, (ty_pick){.sample = all, .n = 1}), "2 2>0");
    ty_dataset_close(other);
    ty_dataset_close(ds);
}

static void a_tokenizer_makes_tokens_of_text(void **state)
{
    (void)state;
    ty_error err = {0};
    char path[600];
    files_puts("w.json", "{\"pre_tokenizer\": {\"type\": \"Whitespace\"}, \"model\": {\"type\": \"WordLevel\", "
                         "\"unk_token\": \"?\", \"vocab\": {\"?\": 0, \"to\": 1, \"be\": 2, \"or\": 3, \"not\": 4}}}");
    files_puts("w.txt", "to be or not to be\n");
    snprintf(path, sizeof path, "%s", files_path("w.json"));
    ty_windows w = {.length = 2, .tokenizer = path, .end_token = "?"};
    ty_dataset *ds = open_windows("w.txt", w, NULL, &err);
    assert_ok(ds ? 0 : -1, &err);
    assert_string_equal(windows_of(ds, (ty_pick){.sample = all, .n = 3}), "1 2>3|3 4>1|1 2>0");
    ty_dataset_close(ds);
    w.end_token = "<s>";
    assert_null(open_windows("w.txt", w, NULL, &err));
    assert_says(&err, "end_token: \"<s>\" is no token of");
}

static void files_of_tokens(void **state)
{
    (void)state;
    ty_error err = {0};
    uint16_t small[] = {5, 6, 7, 65535, 9};
    uint32_t wide[] = {1, 70000, 3};
    files_put("s.bin", small, sizeof small);
    files_put("w.bin", wide, sizeof wide);
    ty_dataset *ds = open_windows("s.bin", (ty_windows){.length = 2}, NULL, &err);
    assert_ok(ds ? 0 : -1, &err);
    assert_string_equal(ds->format, "tokens");
    assert_string_equal(windows_of(ds, (ty_pick){.sample = all, .n = 2}), "5 6>7|7 65535>9");
    assert_int_equal(ty_dataset_check_range(ds, 0, 0, 99, "id of an embedding with 100 rows", &err), -1);
    assert_says(&err, "s.bin: tokens 2 to 3");
    ty_dataset_close(ds);
    ds = open_windows("w.bin", (ty_windows){.length = 2, .wide = true}, NULL, &err);
    assert_ok(ds ? 0 : -1, &err);
    assert_string_equal(windows_of(ds, (ty_pick){.sample = all, .n = 1}), "1 70000>3");
    ty_dataset_close(ds);
    files_put("odd.bin", small, 7);
    assert_null(open_windows("odd.bin", (ty_windows){.length = 2}, NULL, &err));
    assert_says(&err, "expected a multiple of 2 bytes, a uint16 a token, found 7 bytes");
    assert_null(open_windows("s.bin", (ty_windows){.length = 5}, NULL, &err));
    assert_says(&err, "there are 5 tokens, but a window needs 6");
    static const char npy[] = "\x93NUMPY\x01\x00\x4a"
                              "\x00{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }"
                              "                \n\x04\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff";
    files_put("n.npy", npy, sizeof npy - 1);
    assert_null(open_windows("n.npy", (ty_windows){.length = 2}, NULL, &err));
    assert_says(&err, "token 2 is -1, expected 0 or more");
    files_puts("c.csv", "1,2\n");
    assert_null(open_windows("c.csv", (ty_windows){.length = 5, .symbols = TY_SYMBOLS_BYTES}, NULL, &err));
    ty_field f = ty_field_make("x");
    ty_dataset *none;
    err = (ty_error){0};
    assert_int_equal(
        files_open("c.csv", &f, 1, (ty_data_source){.format = "csv", .windows = {.length = 2}}, &none, &err), -1);
    assert_says(&err, "samples of csv data are no windows");
    assert_int_equal(files_open("c.csv", &f, 1, (ty_data_source){.format = "text"}, &none, &err), -1);
    assert_says(&err, "window: 128");
}

/* Places are anywhere, the same for the same epoch, others in another; evaluation reads in steps. */
static void random_starts_are_a_function_of_seed_epoch_and_sample(void **state)
{
    (void)state;
    ty_error err = {0};
    uint16_t tokens[2000];
    for (int i = 0; i < 2000; i++)
        tokens[i] = (uint16_t)i;
    files_put("r.bin", tokens, sizeof tokens);
    ty_dataset *ds = open_windows("r.bin", (ty_windows){.length = 1, .stride = 10, .random = true}, NULL, &err);
    assert_ok(ds ? 0 : -1, &err);
    assert_int_equal(ds->n_samples, 200);
    char first[1024], one[64];
    ty_pick pick = {.sample = all, .n = 8, .seed = 3, .epoch = 1, .augment = true};
    snprintf(first, sizeof first, "%s", windows_of(ds, pick));
    assert_string_equal(windows_of(ds, pick), first);
    pick.n = 1;
    snprintf(one, sizeof one, "%s|", windows_of(ds, pick));
    assert_memory_equal(first, one, strlen(one));
    pick.n = 8, pick.epoch = 2;
    assert_string_not_equal(windows_of(ds, pick), first);
    pick.augment = false;
    assert_string_equal(windows_of(ds, pick), "0>1|10>11|20>21|30>31|40>41|50>51|60>61|70>71");
    ty_dataset_close(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_and_characters_of_text),
        cmocka_unit_test(a_tokenizer_makes_tokens_of_text),
        cmocka_unit_test(files_of_tokens),
        cmocka_unit_test(random_starts_are_a_function_of_seed_epoch_and_sample),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
