/* input_csv.c - delimited text: the scanner, columns, headers, missing values, and every refusal with its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/csv.h"
#include "input_files.h"

#include <cjson/cJSON.h>
#include <math.h>

static ty_field make(const char *name, const char *columns)
{
    ty_field f = ty_field_make(name);
    f.columns = columns;
    return f;
}

static ty_field make_label(const char *columns)
{
    ty_field f = make("label", columns);
    f.dtype = TY_I64;
    f.dtype_given = true;
    return f;
}

/* Parses text with one f32 field of the given columns; returns the values of all rows. */
static int read_floats(const char *text, const char *columns, ty_data_source extra, float *out, int64_t *rows,
                       ty_error *err)
{
    ty_field f = make("x", columns);
    ty_dataset *ds;
    files_puts("t.csv", text);
    extra.format = "csv";
    if (files_open("t.csv", &f, 1, extra, &ds, err) < 0)
        return -1;
    *rows = ds->n_samples;
    for (int64_t i = 0; i < ds->n_samples; i++)
        assert_int_equal(ty_dataset_read(ds, 0, &i, 1, out + i * ty_type_elems(&ds->field[0].type), err), 0);
    ty_dataset_close(ds);
    return 0;
}

static void fields_and_records_are_cut_by_rfc_4180(void **state)
{
    (void)state;
    static const struct {
        const char *text, *cut; /* fields in [], records end with ; */
    } rows[] = {
        {"a,b\nc,d\n", "[a][b];[c][d];"},
        {"a,b\r\nc,d", "[a][b];[c][d];"},
        {"a,\n,b\n", "[a][];[][b];"},
        {"\n\r\n\na\n\n", "[a];"},
        {"\"x,y\",\"say \"\"hi\"\"\"\r\n", "[x,y][say \"hi\"];"},
        {"\"line1\nline2\",\"\"\n", "[line1\nline2][];"},
        {"\xef\xbb\xbf"
         "a,b\n",
         "[a][b];"},
        {"a\rb,c\n", "[a\rb][c];"},
        {"a,b\r", "[a][b];"},
        {"a\"b,c\n", "[a\"b][c];"},
        {"\"\"\"\"\n", "[\"];"},
        {",", "[][];"},
        {"", ""},
        {"\r\n", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_error err = {0};
        ty_csv c;
        char out[256] = "", unquoted[64];
        assert_ok(ty_csv_init(&c, "t", rows[i].text, strlen(rows[i].text), ',', &err), &err);
        while (ty_csv_more(&c)) {
            ty_csv_field f;
            do {
                assert_ok(ty_csv_next(&c, &f, &err), &err);
                ty_csv_unquote(&f, unquoted);
                strcat(strcat(strcat(out, "["), unquoted), "]");
            } while (!f.last);
            strcat(out, ";");
        }
        assert_string_equal(out, rows[i].cut);
    }
}

static void delimiters_are_guessed_from_the_first_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        char want;
    } rows[] = {{"a,b\n1;2;3\n", ','}, {"\n\n1;2\n", ';'}, {"1\t2,5\t3\n", '\t'}, {"7\n", ','}, {"\";;;\",1\n", ','}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(ty_csv_guess_delimiter(rows[i].text, strlen(rows[i].text)), rows[i].want);
}

static void numbers_of_all_kinds_are_read(void **state)
{
    (void)state;
    ty_error err = {0};
    float v[64];
    int64_t rows;
    assert_ok(read_floats("1,2.5,-3e2\r\n 4 ,\"5\",\"6.25\"\n+7,.5,1e-2", "0-2", (ty_data_source){0}, v, &rows, &err),
              &err);
    const float want[] = {1, 2.5f, -300, 4, 5, 6.25f, 7, 0.5f, 0.01f};
    assert_int_equal(rows, 3);
    assert_memory_equal(v, want, sizeof want);
}

static void columns_are_chosen_by_number_range_and_name(void **state)
{
    (void)state;
    static const struct {
        const char *columns;
        float want[4];
        int n;
    } rows[] = {{"0-3", {1, 2, 3, 4}, 4}, {"-1", {4}, 1},        {"3, 0-1", {4, 1, 2}, 3}, {"-3--2", {2, 3}, 2},
                {"c,a", {3, 1}, 2},       {"wide name", {4}, 1}, {"b,0,0", {2, 1, 1}, 3},  {"2--1", {3, 4}, 2}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_error err = {0};
        float v[8];
        int64_t n;
        assert_ok(read_floats("a,b,c, wide name\n1,2,3,4\n", rows[i].columns, (ty_data_source){0}, v, &n, &err), &err);
        assert_int_equal(n, 1);
        assert_memory_equal(v, rows[i].want, sizeof(float) * (size_t)rows[i].n);
    }
}

static void headers_are_found_or_declared(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        ty_csv_header mode;
        int64_t rows;
    } rows[] = {{"a,b\n1,2\n", TY_CSV_HEADER_AUTO, 1}, {"1,2\n3,4\n", TY_CSV_HEADER_AUTO, 2},
                {"1,2\n3,4\n", TY_CSV_HEADER_YES, 1},  {"1,2\n3,4\n", TY_CSV_HEADER_NO, 2},
                {",NA\n3,4\n", TY_CSV_HEADER_AUTO, 2}, {"a,b\n", TY_CSV_HEADER_AUTO, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_error err = {0};
        float v[8];
        int64_t n;
        assert_ok(read_floats(rows[i].text, "0-1", (ty_data_source){.csv_header = rows[i].mode}, v, &n, &err), &err);
        assert_int_equal(n, rows[i].rows);
    }
}

/* Two fields with scale, offset, shape and integer type: what a recipe for digits says. */
static void fields_get_their_type_shape_and_scale(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_field f[2] = {make("image", "0-3"), make_label("4")};
    f[0].shape_given = true;
    f[0].rank = 3;
    f[0].dim[0] = 1, f[0].dim[1] = 2, f[0].dim[2] = 2;
    f[0].scale = 0.0625;
    f[1].offset = -1;
    files_puts("t.csv", "16,8,4,0,10\n0,1,2,3,1\n5,6,7,8,5.0\n");
    ty_dataset *ds;
    assert_ok(files_open("t.csv", f, 2, (ty_data_source){0}, &ds, &err), &err);
    char text[160];
    assert_string_equal(ty_type_text(&ds->field[0].type, text, sizeof text), "f32[1,2,2]");
    assert_string_equal(ty_type_text(&ds->field[1].type, text, sizeof text), "i64[]");
    const int64_t pick[3] = {2, 0, 0};
    float image[12];
    int64_t label[3];
    assert_ok(ty_dataset_read(ds, 0, pick, 3, image, &err), &err);
    assert_ok(ty_dataset_read(ds, 1, pick, 3, label, &err), &err);
    const float want[12] = {0.3125f, 0.375f, 0.4375f, 0.5f, 1, 0.5f, 0.25f, 0, 1, 0.5f, 0.25f, 0};
    const int64_t want_label[3] = {4, 9, 9};
    assert_memory_equal(image, want, sizeof want);
    assert_memory_equal(label, want_label, sizeof want_label);
    assert_true(ds->field[1].is_integer);
    assert_int_equal(ds->field[1].min, 0);
    assert_int_equal(ds->field[1].max, 9);
    assert_int_equal(ds->field[1].max_sample, 0);
    assert_string_equal(ty_dataset_summary(ds, text, sizeof text), "3 samples, 1 file, 34 B csv");
    ty_dataset_close(ds);
}

static void every_type_holds_its_values(void **state)
{
    (void)state;
    for (int d = 0; d < TY_N_DTYPES; d++) {
        ty_error err = {0};
        ty_field f = make("x", "0-1");
        f.dtype = (ty_dtype)d;
        f.dtype_given = true;
        files_puts("t.csv", "1,0\n0,1\n");
        ty_dataset *ds;
        assert_ok(files_open("t.csv", &f, 1, (ty_data_source){0}, &ds, &err), &err);
        assert_int_equal(ds->field[0].row_bytes, 2 * ty_dtype_bytes((ty_dtype)d));
        uint8_t v[32] = {0}, one[8] = {0}, zero[8] = {0};
        const int64_t both[2] = {0, 1};
        size_t size = ty_dtype_bytes((ty_dtype)d);
        assert_ok(ty_dataset_read(ds, 0, both, 2, v, &err), &err);
        memcpy(one, v, size);
        assert_memory_not_equal(one, zero, size);
        assert_memory_equal(v + size, zero, size);
        assert_memory_equal(v + 2 * size, zero, size);
        assert_memory_equal(v + 3 * size, one, size);
        ty_dataset_close(ds);
    }
}

static void missing_and_not_finite_values_are_counted(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_field f[2] = {make("x", "0-1"), make_label("2")};
    f[1].missing = -1;
    f[1].missing_given = true;
    files_puts("t.csv", "1,,0\nna,nan,\n-inf,4,N/A\n?,5,3\n");
    ty_dataset *ds;
    assert_ok(files_open("t.csv", f, 2, (ty_data_source){0}, &ds, &err), &err);
    assert_int_equal(ds->field[0].n_missing, 3);
    assert_int_equal(ds->field[0].first_missing, 0);
    assert_int_equal(ds->field[0].n_not_finite, 2);
    assert_int_equal(ds->field[0].first_not_finite, 1);
    assert_int_equal(ds->field[1].n_missing, 2);
    assert_int_equal(ds->field[1].min, -1);
    assert_int_equal(ds->field[1].min_sample, 1);
    const int64_t all[4] = {0, 1, 2, 3};
    float x[8];
    int64_t label[4];
    assert_ok(ty_dataset_read(ds, 0, all, 4, x, &err), &err);
    assert_ok(ty_dataset_read(ds, 1, all, 4, label, &err), &err);
    assert_true(x[0] == 1.0f && isnan(x[1]) && isnan(x[2]) && isnan(x[3]) && isinf(x[4]) && isnan(x[6]) &&
                x[7] == 5.0f);
    const int64_t want[4] = {0, -1, -1, 3};
    assert_memory_equal(label, want, sizeof want);
    ty_dataset_close(ds);
}

/* Blank lines, quoted line ends and headers move lines against samples; places must not. */
static void places_name_file_and_line(void **state)
{
    (void)state;
    ty_error err = {0};
    ty_field f = make_label("0");
    files_puts("p/a.csv", "label,text\n1,x\n\n2,\"two\nlines\"\n3,y\n\n\n4,z\n");
    files_puts("p/b.csv", "label,text\n5,x\n6,y\n");
    ty_dataset *ds;
    assert_ok(files_open("p", &f, 1, (ty_data_source){0}, &ds, &err), &err);
    static const char *const want[] = {"p/a.csv:2", "p/a.csv:4", "p/a.csv:6", "p/a.csv:9", "p/b.csv:2", "p/b.csv:3"};
    assert_int_equal(ds->n_samples, 6);
    for (int64_t i = 0; i < 6; i++) {
        char place[400];
        assert_string_equal(ty_dataset_place(ds, 0, i, place, sizeof place) + strlen(files_folder) + 1, want[i]);
    }
    assert_int_equal(ty_dataset_check_range(ds, 0, 1, 6, "label", &err), 0);
    assert_int_equal(ty_dataset_check_range(ds, 0, 0, 4, "label", &err), -1);
    assert_int_equal(err.code, TY_E_DATA_VALUE);
    assert_says(&err, "field \"label\": found 6, expected 0 to 4 (label)");
    assert_says(&err, "p/b.csv:3");
    err = (ty_error){0};
    assert_int_equal(ty_dataset_check_range(ds, 0, 0, 5, "label", &err), -1);
    assert_says(&err, "offset: -1");
    ty_dataset_close(ds);
}

static void refusals_say_where_what_and_how(void **state)
{
    (void)state;
    static const struct {
        const char *text, *columns;
        ty_csv_header mode;
        char delimiter;
        ty_code code;
        const char *says[3];
    } rows[] = {
        {"1,2,3\n4,5\n", "0", 0, 0, TY_E_DATA, {"has 2 fields, expected 3", "t.csv:2:3"}},
        {"1,2\n3,4,5\n", "0", 0, 0, TY_E_DATA, {"at least 3 fields, expected 2", "t.csv:2:5", "double quotes"}},
        {"1,2\n\n3,x\n", "1", 0, 0, TY_E_DATA_VALUE, {"expected a number, found \"x\"", "t.csv:3:3"}},
        {"a,1\n2,3\n", "0", 0, 0, TY_E_DATA_VALUE, {"found \"a\"", "t.csv:1:1", "header: yes"}},
        {"1,2 3\n", "1", 0, 0, TY_E_DATA_VALUE, {"found \"2 3\"", "t.csv:1:3"}},
        {"1,0x10\n", "1", 0, 0, TY_E_DATA_VALUE, {"found \"0x10\""}},
        {"1,\"2\n", "0", 0, 0, TY_E_DATA, {"no closing quote", "t.csv:1:3"}},
        {"1,\"2\"x\n", "0", 0, 0, TY_E_DATA, {"text follows a closing quote", "t.csv:1:6"}},
        {"1,2\n", "2", 0, 0, TY_E_CONFIG, {"column 2 does not exist", "2 columns", "0 to 1"}},
        {"1,2\n", "-3", 0, 0, TY_E_CONFIG, {"column -3 does not exist"}},
        {"1,2\n", "99999999999999999999", 0, 0, TY_E_CONFIG, {"does not exist"}},
        {"1,2\n", "1-0", 0, 0, TY_E_CONFIG, {"runs backwards"}},
        {"1,2\n", "0,,1", 0, 0, TY_E_CONFIG, {"empty"}},
        {"1,2\n", "age", 0, 0, TY_E_CONFIG, {"by name", "t.csv:1", "by number"}},
        {"a,b\n1,2\n", "c", 0, 0, TY_E_CONFIG, {"no column is named \"c\"", "column 1: \"b\""}},
        {"a,a\n1,2\n", "a", 0, 0, TY_E_CONFIG, {"stands twice"}},
        {"\xff\xfe"
         "1\0,\0",
         "0",
         0,
         0,
         TY_E_DATA,
         {"UTF-16", "iconv"}},
        {"1,2\n", "0", 0, '5', TY_E_CONFIG, {"delimiter cannot be '5'"}},
        {"\n\n", "0", 0, 0, TY_E_DATA, {"no records", "t.csv"}},
        {"1,2\n", "a", TY_CSV_HEADER_NO, 0, TY_E_CONFIG, {"no header line"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_error err = {0};
        float v[64];
        int64_t n;
        ty_data_source extra = {.csv_header = rows[i].mode, .csv_delimiter = rows[i].delimiter};
        if (read_floats(rows[i].text, rows[i].columns, extra, v, &n, &err) == 0) {
            print_error("row %zu was accepted\n", i);
            fail();
        }
        assert_int_equal(err.code, rows[i].code);
        for (int k = 0; k < 3 && rows[i].says[k] != NULL; k++)
            assert_says(&err, rows[i].says[k]);
    }
}

static void integer_fields_refuse_what_does_not_fit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        ty_dtype dtype;
        double scale;
        const char *says[2];
    } rows[] = {
        {"1\n2.5\n", TY_I64, 1, {"expected a whole number within 64 bits, found \"2.5\"", "t.csv:2:1"}},
        {"1\n\"\"\n", TY_I64, 1, {"missing: 0", "t.csv:2:1"}},
        {"1\nnan\n", TY_I64, 1, {"found \"nan\"", "t.csv:2:1"}},
        {"1\n1e30\n", TY_I64, 1, {"within 64 bits"}},
        {"1\n9223372036854775808\n", TY_I64, 1, {"within 64 bits"}},
        {"1\n256\n", TY_U8, 1, {"256, which does not fit u8", "t.csv:2"}},
        {"1\n-1\n", TY_U64, 1, {"-1, which does not fit u64", "t.csv:2"}},
        {"0\n2\n", TY_BOOL, 1, {"2, which does not fit bool"}},
        {"2\n3\n", TY_I32, 0.5, {"scaled is 1.5", "t.csv:2"}},
        {"2\nnan\n", TY_I32, 2, {"no whole number", "t.csv:2"}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_error err = {0};
        ty_field f = make("x", "0");
        f.dtype = rows[i].dtype;
        f.dtype_given = true;
        f.scale = rows[i].scale;
        files_puts("t.csv", rows[i].text);
        ty_dataset *ds;
        assert_int_equal(files_open("t.csv", &f, 1, (ty_data_source){0}, &ds, &err), -1);
        assert_int_equal(err.code, TY_E_DATA_VALUE);
        for (int k = 0; k < 2 && rows[i].says[k] != NULL; k++)
            assert_says(&err, rows[i].says[k]);
    }
}

static void check_vector(const cJSON *row)
{
    const char *path = files_vector("");
    char file[1100];
    snprintf(file, sizeof file, "%s%s", path, cJSON_GetObjectItem(row, "file")->valuestring);
    const cJSON *values = cJSON_GetObjectItem(row, "values"), *bad = cJSON_GetObjectItem(row, "bad_line");
    const char *paths[1] = {file};
    ty_field f = make("x", "0--1");
    ty_data_source src = {.paths = paths, .n_paths = 1, .fields = &f, .n_fields = 1};
    ty_dataset *ds;
    ty_error err = {0};
    if (bad != NULL) {
        char place[32];
        snprintf(place, sizeof place, ".csv:%d:", bad->valueint);
        assert_int_equal(ty_dataset_open(&src, &ds, &err), -1);
        assert_says(&err, place);
        return;
    }
    assert_ok(ty_dataset_open(&src, &ds, &err), &err);
    assert_int_equal(ds->n_samples, cJSON_GetArraySize(values));
    for (int64_t i = 0; i < ds->n_samples; i++) {
        float v[16];
        assert_ok(ty_dataset_read(ds, 0, &i, 1, v, &err), &err);
        for (int k = 0; k < ty_type_elems(&ds->field[0].type); k++) {
            const cJSON *want = cJSON_GetArrayItem(cJSON_GetArrayItem(values, (int)i), k);
            assert_true(cJSON_IsNull(want) ? isnan(v[k]) : v[k] == (float)want->valuedouble);
        }
    }
    ty_dataset_close(ds);
}

/* The one vector that holds text: compared by the scanner, header and all. */
static void check_text_vector(const cJSON *row)
{
    char file[1100], out[64];
    snprintf(file, sizeof file, "%s%s", files_vector(""), cJSON_GetObjectItem(row, "file")->valuestring);
    ty_buf text;
    ty_error err = {0};
    ty_csv c;
    ty_csv_field f;
    ty_buf_init(&text, 10000);
    assert_ok(ty_file_read(file, &text, &err), &err);
    assert_ok(ty_csv_init(&c, file, text.data, text.len, ',', &err), &err);
    const cJSON *values = cJSON_GetObjectItem(row, "values");
    for (int i = -1; i < cJSON_GetArraySize(values); i++) {
        const cJSON *record = i < 0 ? cJSON_GetObjectItem(row, "header") : cJSON_GetArrayItem(values, i);
        assert_true(ty_csv_more(&c));
        for (int k = 0; k < cJSON_GetArraySize(record); k++) {
            assert_ok(ty_csv_next(&c, &f, &err), &err);
            ty_csv_unquote(&f, out);
            assert_string_equal(out, cJSON_GetArrayItem(record, k)->valuestring);
        }
        assert_true(f.last);
    }
    assert_false(ty_csv_more(&c));
    ty_buf_fini(&text);
}

static void vectors_are_read_as_expected(void **state)
{
    (void)state;
    const char *path = files_vector("expected.json");
    if (path == NULL) {
        print_message("skip: no shared data at TY_SHARED or ../shared\n");
        skip();
    }
    ty_buf text;
    ty_buf_init(&text, 1 << 20);
    assert_int_equal(ty_file_read(path, &text, NULL), 0);
    cJSON *all = cJSON_Parse(text.data);
    int n = 0;
    const cJSON *row;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(all, "cases"))
    {
        if (strncmp(cJSON_GetObjectItem(row, "file")->valuestring, "csv/", 4) != 0)
            continue;
        n++;
        if (cJSON_GetObjectItem(row, "header") != NULL)
            check_text_vector(row);
        else
            check_vector(row);
    }
    assert_int_equal(n, 7);
    cJSON_Delete(all);
    ty_buf_fini(&text);
}

static void real_tables_are_read(void **state)
{
    (void)state;
    const char *abalone = files_shared("abalone-csv/abalone.csv");
    if (abalone == NULL) {
        print_message("skip: no shared data at TY_SHARED or ../shared\n");
        skip();
    }
    ty_error err = {0};
    ty_field f[2] = {make("x", "1-7"), make("rings", "-1")};
    f[1].dtype = TY_I32;
    f[1].dtype_given = true;
    ty_data_source src = {.paths = &abalone, .n_paths = 1, .fields = f, .n_fields = 2};
    ty_dataset *ds;
    assert_ok(ty_dataset_open(&src, &ds, &err), &err);
    assert_int_equal(ds->n_samples, 4177);
    assert_int_equal(ds->field[1].min, 1);
    assert_int_equal(ds->field[1].max, 29);
    ty_dataset_close(ds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields_and_records_are_cut_by_rfc_4180),
        cmocka_unit_test(delimiters_are_guessed_from_the_first_line),
        cmocka_unit_test(numbers_of_all_kinds_are_read),
        cmocka_unit_test(columns_are_chosen_by_number_range_and_name),
        cmocka_unit_test(headers_are_found_or_declared),
        cmocka_unit_test(fields_get_their_type_shape_and_scale),
        cmocka_unit_test(every_type_holds_its_values),
        cmocka_unit_test(missing_and_not_finite_values_are_counted),
        cmocka_unit_test(places_name_file_and_line),
        cmocka_unit_test(refusals_say_where_what_and_how),
        cmocka_unit_test(integer_fields_refuse_what_does_not_fit),
        cmocka_unit_test_setup(vectors_are_read_as_expected, files_golden_vectors),
        cmocka_unit_test_setup(vectors_are_read_as_expected, files_shared_vectors),
        cmocka_unit_test(real_tables_are_read),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
