/* input_dataset.c - files of a channel, formats found out, arrays as samples, facts about fields. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/format.h"
#include "container/input/npy.h"
#include "input_files.h"

#include <math.h>

static void put_npy(const char *name, ty_dtype dtype, int rank, const int64_t *dim, const void *data)
{
    ty_tensor t = {.type = ty_type_make(dtype, rank, dim), .data = (void *)(uintptr_t)data};
    files_puts(name, ""); /* makes the folders */
    if (ty_npy_write(files_path(name), &t, NULL) < 0)
        abort();
}

static void files_are_listed_in_byte_order_and_hidden_ones_left_out(void **state)
{
    (void)state;
    static const char *const names[] = {"l/b.csv",   "l/a/z.csv",  "l/a.csv",      "l/B.csv",     "l/a-b.csv",
                                        "l/.hidden", "l/_SUCCESS", "l/a/_x/y.csv", "l/a/.x/y.csv"};
    static const char *const want[] = {"B.csv", "a-b.csv", "a.csv", "a/z.csv", "b.csv", "link.csv"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        files_puts(names[i], "1\n");
    files_puts("l/empty.csv", "");
    assert_int_equal(symlink("b.csv", files_path("l/link.csv")), 0);
    ty_arena arena;
    ty_data_file *files;
    int n;
    ty_error err = {0};
    char with_slash[600];
    snprintf(with_slash, sizeof with_slash, "%s/", files_path("l"));
    const char *paths[1] = {with_slash};
    ty_arena_init(&arena);
    assert_ok(ty_files_list(paths, 1, &arena, &files, &n, &err), &err);
    assert_int_equal(n, 6);
    for (int i = 0; i < n; i++)
        assert_string_equal(files[i].name, want[i]);
    assert_true(ty_file_matches(&files[3], "z.*") && ty_file_matches(&files[3], "a/*"));
    assert_false(ty_file_matches(&files[3], "a"));
    ty_arena_fini(&arena);
}

static void broken_channels_are_refused(void **state)
{
    (void)state;
    ty_field f = ty_field_make("x");
    ty_dataset *ds;
    ty_error err = {0};
    assert_int_equal(files_open("nowhere", &f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_int_equal(err.code, TY_E_CHANNEL);
    assert_says(&err, "nowhere");
    files_puts("e/empty.csv", "");
    err = (ty_error){0};
    assert_int_equal(files_open("e", &f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_int_equal(err.code, TY_E_CHANNEL);
    assert_says(&err, "no data files");
    files_puts("c/a.csv", "1\n");
    assert_int_equal(symlink(".", files_path("c/loop")), 0);
    err = (ty_error){0};
    assert_int_equal(files_open("c", &f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "circle");
    files_puts("d/a.csv", "1\n");
    assert_int_equal(symlink("gone", files_path("d/dangling")), 0);
    err = (ty_error){0};
    assert_int_equal(files_open("d", &f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "points nowhere");
    files_puts("m/a.csv", "1\n");
    err = (ty_error){0};
    assert_int_equal(files_open("m", &f, 1, (ty_data_source){.pattern = "*.tsv"}, &ds, &err), -1);
    assert_says(&err, "none of the 1 files matches the pattern \"*.tsv\"");
    assert_says(&err, "a.csv");
}

static void formats_are_found_by_declaration_type_name_and_content(void **state)
{
    (void)state;
    static const struct {
        const char *name, *format, *content_type, *bytes;
        size_t n;
        const char *want; /* or part of the error, after '!' */
    } rows[] = {
        {"a.csv", NULL, NULL, "1\n", 2, "csv"},
        {"a.TSV", NULL, "", "1\n", 2, "csv"},
        {"a.csv.gz", NULL, NULL, "1\n", 2, "csv"},
        {"a.npy", NULL, NULL, "\x93NUMPY", 6, "npy"},
        {"part-00000", NULL, NULL, "1,2\n", 4, "csv"},
        {"part-00001", NULL, NULL, "\x93NUMPY\1\0", 8, "npy"},
        {"part-00002", NULL, NULL, "PK\3\4", 4, "npz"},
        {"t-idx1-ubyte", NULL, NULL, "\0\0\x08\x01\0\0\0\1\5", 9, "idx"},
        {"part-00003", NULL, "text/csv; label_size=0", "\0\0", 2, "csv"},
        {"a.bin", "NPY", NULL, "\0\0", 2, "npy"},
        {"a.csv", NULL, NULL, "\x93NUMPY", 6, "!called csv, but its first bytes are those of npy"},
        {"a.bin", NULL, NULL, "\0\1\2\3", 4, "!say format"},
        {"a.gif", NULL, NULL, "GIF89a\1\0\1\0", 10, "!is a GIF picture, which is not read"},
        {"a.webp", NULL, NULL, "RIFF\0\0\0\0WEBPVP8 ", 16, "!pictures are JPEG, PNG, BMP, PGM or PPM"},
        {"a.parquet", NULL, NULL, "PAR1\0\0", 6, "parquet"},
        {"a.orc", NULL, NULL, "ORC\0\0\0", 6, "!an ORC table"},
        {"a.csv", "tfrecords", NULL, "1\n", 2, "!unknown data format \"tfrecords\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        files_put(rows[i].name, rows[i].bytes, rows[i].n);
        ty_data_file file = {.path = files_path(rows[i].name), .name = rows[i].name};
        ty_data_source src = {.format = rows[i].format, .content_type = rows[i].content_type};
        const ty_format *format = NULL;
        ty_error err = {0};
        int rc = ty_format_detect(&src, &file, 1, &format, &err);
        if (rows[i].want[0] == '!') {
            assert_int_equal(rc, -1);
            assert_says(&err, rows[i].want + 1);
        } else {
            assert_ok(rc, &err);
            assert_string_equal(format->name, rows[i].want);
        }
        unlink(file.path);
    }
    files_puts("f2/a.csv", "1\n");
    files_puts("f2/b.npy", "\x93NUMPY");
    ty_field f = ty_field_make("x");
    ty_dataset *ds;
    ty_error err = {0};
    assert_int_equal(files_open("f2", &f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "files of two formats: \"a.csv\" is csv, \"b.npy\" is npy");
}

static void declarations_are_checked(void **state)
{
    (void)state;
    struct {
        ty_field f;
        const char *says;
    } rows[] = {
        {ty_field_make(""), "no name"},
        {{.name = "x", .scale = 0}, "scale 0"},
        {{.name = "x", .scale = INFINITY}, "must be finite"},
        {{.name = "x", .scale = 1, .offset = NAN}, "must be finite"},
        {{.name = "x", .scale = 2, .dtype = TY_BOOL, .dtype_given = true}, "bool cannot be scaled"},
        {{.name = "x", .scale = 1, .shape_given = true, .rank = 8}, "8 dimensions"},
        {{.name = "x", .scale = 1, .shape_given = true, .rank = 1, .dim = {0}}, "dimension 0 of its shape is 0"},
        {{.name = "x", .scale = 1, .shape_given = true, .rank = 2, .dim = {INT64_MAX, 4}}, "too many elements"},
        {{.name = "x", .scale = 1, .shape_given = true, .rank = 2, .dim = {1, 3}, .columns = "0"}, "holds 3 values"},
    };
    files_puts("t.csv", "1\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_dataset *ds;
        ty_error err = {0};
        assert_int_equal(files_open("t.csv", &rows[i].f, 1, (ty_data_source){0}, &ds, &err), -1);
        assert_says(&err, rows[i].says);
    }
    ty_field twice[2] = {ty_field_make("x"), ty_field_make("x")};
    ty_dataset *ds;
    ty_error err = {0};
    assert_int_equal(files_open("t.csv", twice, 2, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "declared twice");
}

/* Parts of 2, 0 and 3 rows in three files; labels in two others; one read over all. */
static void arrays_of_several_files_are_one_dataset(void **state)
{
    (void)state;
    const float x[10] = {0, 1, 10, 11, 20, 21, 30, 31, 40, 41};
    const int64_t y[5] = {3, 1, 4, 1, 5};
    put_npy("n/x-0.npy", TY_F32, 2, (int64_t[]){2, 2}, x);
    put_npy("n/x-1.npy", TY_F32, 2, (int64_t[]){0, 2}, x);
    put_npy("n/x-2.npy", TY_F32, 2, (int64_t[]){3, 2}, x + 4);
    put_npy("n/y-0.npy", TY_I64, 1, (int64_t[]){4}, y);
    put_npy("n/y-1.npy", TY_I64, 1, (int64_t[]){1}, y + 4);
    ty_field f[2] = {ty_field_make("x"), ty_field_make("y")};
    ty_dataset *ds;
    ty_error err = {0};
    assert_ok(files_open("n", f, 2, (ty_data_source){0}, &ds, &err), &err);
    assert_int_equal(ds->n_samples, 5);
    assert_int_equal(ty_dataset_find(ds, "y"), 1);
    assert_int_equal(ty_dataset_find(ds, "z"), -1);
    const int64_t pick[5] = {4, 2, 1, 0, 3};
    float got_x[10];
    int64_t got_y[5];
    assert_ok(ty_dataset_read(ds, 0, pick, 5, got_x, &err), &err);
    assert_ok(ty_dataset_read(ds, 1, pick, 5, got_y, &err), &err);
    for (int i = 0; i < 5; i++) {
        assert_memory_equal(got_x + 2 * i, x + 2 * pick[i], 8);
        assert_int_equal(got_y[i], y[pick[i]]);
    }
    char place[400];
    assert_string_equal(ty_dataset_place(ds, 0, 2, place, sizeof place) + strlen(files_folder), "/n/x-2.npy: row 0");
    assert_int_equal(ty_dataset_check_range(ds, 1, 0, 4, "label", &err), -1);
    assert_says(&err, "found 5, expected 0 to 4");
    assert_says(&err, "n/y-1.npy: row 0");
    assert_int_equal(ty_dataset_read(ds, 0, (int64_t[1]){5}, 1, got_x, &err), -1);
    assert_int_equal(err.code, TY_E_INTERNAL);
    ty_dataset_close(ds);
}

static void array_types_are_converted_or_refused(void **state)
{
    (void)state;
    static const struct {
        ty_dtype from, to;
        double scale, offset, value, want;
        const char *says; /* NULL: accepted */
    } rows[] = {
        {TY_U8, TY_F32, 1.0 / 255, 0, 255, 1, NULL},
        {TY_F64, TY_F32, 1, 0, 0.1, (double)0.1f, NULL},
        {TY_F64, TY_I32, 1, 0, 7, 7, NULL},
        {TY_I64, TY_U8, 1, 0, 255, 255, NULL},
        {TY_I32, TY_F16, 2, 1, 5, 11, NULL},
        {TY_F16, TY_F64, 1, 0, 0.5, 0.5, NULL},
        {TY_U8, TY_I64, 1, -1, 1, 0, NULL},
        {TY_BOOL, TY_F32, 1, 0, 1, 1, NULL},
        {TY_U8, TY_BOOL, 1, 0, 1, 1, NULL},
        {TY_I64, TY_U8, 1, 0, 256, 0, "256 does not fit u8"},
        {TY_I64, TY_U32, 1, 0, -1, 0, "-1 does not fit u32"},
        {TY_F64, TY_I32, 1, 0, 7.5, 0, "7.5 does not fit i32: expected a whole number"},
        {TY_F64, TY_I64, 1, 0, 1e300, 0, "does not fit i64"},
        {TY_F64, TY_I64, 1, 0, NAN, 0, "does not fit i64"},
        {TY_U8, TY_BOOL, 1, 0, 2, 0, "2 does not fit bool"},
        {TY_I32, TY_I32, 0.5, 0, 3, 0, "1.5 does not fit i32"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint8_t stored[16], out[8];
        double values[2] = {0, rows[i].value}, got;
        ty_field f = ty_field_make("x");
        f.dtype = rows[i].to;
        f.dtype_given = true;
        f.scale = rows[i].scale;
        f.offset = rows[i].offset;
        if (rows[i].offset == -1)
            values[0] = 1;
        /* made by hand, so that the code under test is used in one direction only */
        for (int k = 0; k < 2; k++) {
            int64_t whole = isfinite(values[k]) && fabs(values[k]) < 1e18 ? (int64_t)values[k] : 0;
            uint16_t half = ty_f64_to_f16(values[k]);
            const void *p = rows[i].from == TY_F64   ? (void *)&values[k]
                            : rows[i].from == TY_F16 ? (void *)&half
                                                     : &whole;
            memcpy(stored + (size_t)k * ty_dtype_bytes(rows[i].from), p, ty_dtype_bytes(rows[i].from));
        }
        put_npy("t.npy", rows[i].from, 1, (int64_t[]){2}, stored);
        ty_dataset *ds;
        ty_error err = {0};
        int rc = files_open("t.npy", &f, 1, (ty_data_source){0}, &ds, &err);
        if (rows[i].says != NULL) {
            assert_int_equal(rc, -1);
            assert_says(&err, rows[i].says);
            assert_says(&err, "t.npy: row 1");
            continue;
        }
        assert_ok(rc, &err);
        assert_ok(ty_dataset_read(ds, 0, (int64_t[1]){1}, 1, out, &err), &err);
        switch (rows[i].to) {
        case TY_F32:
            got = (double)*(float *)(void *)out;
            break;
        case TY_F16:
            got = (double)ty_f16_to_f32(*(uint16_t *)(void *)out);
            break;
        case TY_F64:
            memcpy(&got, out, 8);
            break;
        default:
            got = rows[i].to == TY_I64   ? (double)*(int64_t *)(void *)out
                  : rows[i].to == TY_I32 ? (double)*(int32_t *)(void *)out
                                         : (double)out[0];
        }
        assert_true(got == rows[i].want);
        ty_dataset_close(ds);
    }
}

static void big_ids_stay_exact(void **state)
{
    (void)state;
    const int64_t ids[3] = {9007199254740993, INT64_MAX, INT64_MIN};
    put_npy("t.npy", TY_I64, 1, (int64_t[]){3}, ids);
    ty_field f = ty_field_make("x");
    ty_dataset *ds;
    ty_error err = {0};
    assert_ok(files_open("t.npy", &f, 1, (ty_data_source){0}, &ds, &err), &err);
    int64_t out[3];
    assert_ok(ty_dataset_read(ds, 0, (int64_t[3]){0, 1, 2}, 3, out, &err), &err);
    assert_memory_equal(out, ids, sizeof ids);
    assert_true(ds->field[0].min == INT64_MIN && ds->field[0].max == INT64_MAX && ds->field[0].max_sample == 1);
    ty_dataset_close(ds);
}

static void arrays_that_disagree_are_refused(void **state)
{
    (void)state;
    const float x[12] = {0};
    ty_field f[2] = {ty_field_make("x"), ty_field_make("y")};
    ty_dataset *ds;
    ty_error err = {0};
    put_npy("g/x.npy", TY_F32, 2, (int64_t[]){3, 2}, x);
    put_npy("g/y.npy", TY_F32, 1, (int64_t[]){4}, x);
    assert_int_equal(files_open("g", f, 2, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "field \"y\" has 4 samples, but field \"x\" has 3");
    f[1].file = "z*";
    assert_int_equal(files_open("g", f, 2, (ty_data_source){0}, &ds, &err), -1);
    assert_int_equal(err.code, TY_E_CHANNEL);
    put_npy("h/a.npy", TY_F32, 2, (int64_t[]){3, 2}, x);
    put_npy("h/b.npy", TY_F32, 2, (int64_t[]){3, 3}, x);
    assert_int_equal(files_open("h", f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "shapes must agree");
    assert_says(&err, "h/b.npy");
    put_npy("t.npy", TY_F32, 0, NULL, x);
    assert_int_equal(files_open("t.npy", f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "the array is one number");
    put_npy("t.npy", TY_F32, 2, (int64_t[]){3, 2}, x);
    f[0].shape_given = true;
    f[0].rank = 1;
    f[0].dim[0] = 3;
    assert_int_equal(files_open("t.npy", f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "a sample is f32[2] in the file, declared is f32[3]");
}

static void fingerprints_tell_data_and_declarations_apart(void **state)
{
    (void)state;
    uint64_t seen[5];
    for (int i = 0; i < 5; i++) {
        ty_field f = ty_field_make("x");
        f.columns = i == 1 ? "1" : "0";
        f.scale = i == 2 ? 2 : 1;
        files_puts("t.csv", i == 3 ? "1,2\n3,4\n5,6\n" : "1,2\n3,4\n");
        ty_dataset *ds;
        ty_error err = {0};
        assert_ok(files_open("t.csv", &f, 1, (ty_data_source){0}, &ds, &err), &err);
        seen[i] = ds->fingerprint;
        ty_dataset_close(ds);
    }
    assert_true(seen[4] == seen[0]);
    assert_true(seen[1] != seen[0] && seen[2] != seen[0] && seen[3] != seen[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_listed_in_byte_order_and_hidden_ones_left_out),
        cmocka_unit_test(broken_channels_are_refused),
        cmocka_unit_test(formats_are_found_by_declaration_type_name_and_content),
        cmocka_unit_test(declarations_are_checked),
        cmocka_unit_test(arrays_of_several_files_are_one_dataset),
        cmocka_unit_test(array_types_are_converted_or_refused),
        cmocka_unit_test(big_ids_stay_exact),
        cmocka_unit_test(arrays_that_disagree_are_refused),
        cmocka_unit_test(fingerprints_tell_data_and_declarations_apart),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
