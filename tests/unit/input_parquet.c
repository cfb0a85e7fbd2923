/* input_parquet.c - Parquet files as data sets: columns of several files, nulls, lists, pictures and sounds; what is
 * refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/audio/plan.h"
#include "container/input/format.h"
#include "container/input/image/plan.h"
#include "container/input/map/map.h"
#include "container/input/survey.h"
#include "golden_file.h"
#include "input_files.h"

#include <math.h>

/* A golden file under another name in the folder. */
static void take(const char *name, const char *as)
{
    ty_buf bytes;
    golden_read("parquet", name, &bytes);
    files_put(as, bytes.data, bytes.len);
    ty_buf_fini(&bytes);
}

static ty_field of(const char *name, const char *columns)
{
    ty_field f = ty_field_make(name);
    f.columns = columns;
    return f;
}

static ty_map *classes(ty_arena *a)
{
    ty_map_spec spec = {.field = "label", .way = TY_MAP_CLASSES, .scale = 1.0};
    ty_map *m;
    ty_error err = {0};
    assert_ok(ty_map_new(&spec, a, &m, &err), &err);
    return m;
}

/* In the second file they stand in another order, b is 64 bits wide and n a double. */
static void columns_are_found_by_name_in_each_file(void **state)
{
    (void)state;
    take("table1.parquet", "d/1.parquet"), take("table2.parquet", "d/2.parquet");
    ty_arena a;
    ty_arena_init(&a);
    ty_field f[4] = {of("features", "a,b"), of("label", NULL), of("n", "n"), of("b", "1")};
    f[1].map = classes(&a);
    ty_dataset *ds;
    ty_error err = {0};
    float x[4][2], n[4];
    int64_t y[4], b[4], pick[4] = {3, 0, 2, 1};
    char place[256];
    assert_ok(files_open("d", f, 4, (ty_data_source){0}, &ds, &err), &err);
    assert_string_equal(ds->format, "parquet");
    assert_true(ds->n_samples == 4 && ds->field[0].type.rank == 1 && ds->field[0].type.dtype == TY_F32);
    assert_true(ds->field[2].type.dtype == TY_I64 && ds->field[3].type.dtype == TY_I64 && ds->field[3].max == 40);
    ty_dataset_close(ds);
    f[2].dtype = TY_F32, f[2].dtype_given = true;
    assert_ok(files_open("d", f, 4, (ty_data_source){0}, &ds, &err), &err);
    assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = pick, .n = 4}, (void *[]){x, y, n, b}, &err), &err);
    assert_true(x[0][0] == 4.5f && x[0][1] == 40 && y[0] == 1 && n[0] == 6 && b[0] == 40);
    assert_true(x[1][0] == 1.5f && x[1][1] == 10 && y[1] == 0 && n[1] == 7 && b[1] == 10);
    assert_true(x[3][0] == 2.5f && y[3] == 1 && b[3] == 20);
    assert_non_null(strstr(ty_dataset_place(ds, 0, 2, place, sizeof place), "1.parquet: row 2"));
    assert_non_null(strstr(ty_dataset_place(ds, 0, 3, place, sizeof place), "2.parquet: row 0"));
    ty_dataset_close(ds);
    assert_ok(files_open("d", f, 4, (ty_data_source){.types_only = true}, &ds, &err), &err);
    assert_true(ds->is_partial && ds->n_samples == 3 && ds->field[0].type.dim[0] == 2);
    ty_dataset_close(ds);
    for (int threads = 1; threads < 4; threads++) { /* spans of one row: any thread may begin anywhere */
        assert_ok(files_open("d", f, 4, (ty_data_source){.n_threads = threads, .span_bytes = 1}, &ds, &err), &err);
        assert_true(ds->n_samples == 4 && ds->field[3].min == 10 && ds->field[3].max_sample == 3);
        ty_dataset_close(ds);
    }
    ty_arena_fini(&a);
}

/* Numbers lie in blocks unless records may be left out: then they are made of the columns, row by row. */
static void blocks_have_what_columns_have(void **state)
{
    enum { ROWS = 23, MOST = 4 };
    static const struct {
        const char *columns;
        ty_dtype dtype;
        double scale, offset, missing;
        bool fills;
    } rows[] = {
        {"f32,weights", TY_F32, 1, 0, 0, false}, /* a list: never in a block, and refused by both */
        {"f32", TY_F32, 1, 0, 0, false},         {"f64,f32,half,dec9", TY_F32, 1, 0, 0, false},
        {"f64,i32", TY_F64, 0.25, -3, 0, false}, {"i8,u8,i16", TY_I32, 1, 0, 0, false},
        {"i64", TY_I64, 1, 0, 0, false},         {"u8", TY_U8, 1, 0, 0, false},
        {"i16", TY_I64, 2, 1, 0, false},         {"bool,u8", TY_BF16, 1, 0, 0, false},
        {"some_i32", TY_I64, 1, 0, 7, true},     {"some_i32", TY_I16, 3, 1, 7, true},
        {"some_f64", TY_F32, 2, 1, -1, true},    {"some_f64,f32,none", TY_F32, 2, 1, -1, true},
        {"some_dec", TY_F16, 1, 0, 0.5, true},   {"some_i32", TY_F32, 1, 0, 0, false}, /* nulls */
        {"i32,i16", TY_I16, 1, 0, 0, false},                                           /* does not fit */
        {"f64", TY_I64, 1, 0, 0, false},                                               /* not whole */
    };
    (void)state;
    take("plain.parquet", "p.parquet");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_field f = of("x", rows[i].columns);
        ty_dataset *ds[2];
        ty_error err[2] = {0};
        char x[2][ROWS * MOST * 8];
        int64_t all[ROWS];
        f.dtype = rows[i].dtype, f.dtype_given = true;
        f.scale = rows[i].scale, f.offset = rows[i].offset;
        f.missing = rows[i].missing, f.missing_given = rows[i].fills;
        for (int k = 0; k < ROWS; k++)
            all[k] = k * 5 % ROWS;
        int rc = files_open("p.parquet", &f, 1, (ty_data_source){0}, &ds[0], &err[0]);
        int other = files_open("p.parquet", &f, 1, (ty_data_source){.skip_bad = true}, &ds[1], &err[1]);
        if (rc < 0 || other < 0) {
            bool is_whole = other == 0 && ds[1]->bad.n == 0;
            if (rc == 0 || is_whole)
                fail_msg("%s: %s%s", rows[i].columns, err[0].message, err[1].message);
            if (other == 0)
                ty_dataset_close(ds[1]);
            continue;
        }
        assert_true(ds[0]->n_samples == ROWS && ds[1]->n_samples == ROWS);
        assert_memory_equal(&ds[0]->field[0].type, &ds[1]->field[0].type, sizeof ds[0]->field[0].type);
        for (int k = 0; k < 2; k++)
            assert_ok(ty_dataset_read(ds[k], 0, all, ROWS, x[k], &err[k]), &err[k]);
        const ty_field_info *a = &ds[0]->field[0], *b = &ds[1]->field[0];
        if (memcmp(x[0], x[1], ROWS * a->row_bytes) != 0)
            fail_msg("%s: other rows", rows[i].columns);
        bool one = !strchr(rows[i].columns, ','),
             filled = rows[i].fills; /* what stands for a null is in a block's range */
        if ((!filled && (a->min != b->min || a->max != b->max)) || a->n_not_finite != b->n_not_finite ||
            a->first_not_finite != b->first_not_finite || (one && a->n_missing != b->n_missing) ||
            (one && !filled && a->min_sample != b->min_sample))
            fail_msg("%s: other ranges", rows[i].columns);
        for (int k = 0; k < 2; k++)
            ty_dataset_close(ds[k]);
    }
}

static void what_is_null_is_refused_or_filled_in(void **state)
{
    (void)state;
    take("nulls.parquet", "d/nulls.parquet");
    ty_arena a;
    ty_arena_init(&a);
    ty_field one = of("a", "a"), two = of("features", "a,b"), label = of("label", NULL);
    ty_dataset *ds;
    ty_error err = {0};
    float x[2], both[2][2];
    int64_t all[2] = {0, 1};
    label.map = classes(&a);
    assert_int_equal(files_open("d", &one, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "nulls.parquet: row 1");
    assert_says(&err, "missing: 0");
    assert_int_equal(files_open("d", &two, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "nulls.parquet: row 1");
    assert_says(&err, "field \"features\": column \"a\" has no value (null)");
    assert_int_equal(files_open("d", &label, 1, (ty_data_source){0}, &ds, &err), -1);
    err = (ty_error){0};
    assert_ok(files_open("d", &two, 1, (ty_data_source){.skip_bad = true}, &ds, &err), &err);
    assert_true(ds->n_samples == 1 && ds->bad.n == 1);
    ty_dataset_close(ds);
    one.missing = two.missing = -7, one.missing_given = two.missing_given = true;
    assert_ok(files_open("d", &one, 1, (ty_data_source){0}, &ds, &err), &err);
    assert_ok(ty_dataset_read(ds, 0, all, 2, x, &err), &err);
    assert_true(x[0] == 1 && x[1] == -7 && ds->field[0].n_missing == 1 && ds->field[0].first_missing == 1);
    ty_dataset_close(ds);
    assert_ok(files_open("d", &two, 1, (ty_data_source){0}, &ds, &err), &err);
    assert_ok(ty_dataset_read(ds, 0, all, 2, both, &err), &err);
    assert_true(both[0][0] == 1 && both[1][0] == -7 && both[1][1] == 2);
    ty_dataset_close(ds);
    ty_map_spec mean = {.field = "a", .way = TY_MAP_NUMBER, .scale = 1.0, .missing = TY_MISSING_MEAN};
    one = of("a", "a");
    assert_ok(ty_map_new(&mean, &a, &one.map, &err), &err);
    assert_ok(files_open("d", &one, 1, (ty_data_source){0}, &ds, &err), &err);
    assert_ok(ty_dataset_read(ds, 0, all, 2, x, &err), &err);
    assert_true(x[0] == 1 && x[1] == 1);
    ty_dataset_close(ds);
    ty_arena_fini(&a);
}

static void lists_are_rows_of_any_length(void **state)
{
    (void)state;
    take("lists.parquet", "lists.parquet");
    ty_field f[2] = {of("ids", NULL), of("same", NULL)};
    ty_dataset *ds;
    ty_error err = {0};
    int64_t ids[3][2], all[3] = {0, 1, 2};
    float same[3][2];
    assert_int_equal(files_open("lists.parquet", f, 2, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "lists.parquet: row 1");
    assert_says(&err, "expected 3 values, found 1");
    err = (ty_error){0};
    f[0].max_length = 2;
    assert_ok(files_open("lists.parquet", f, 2, (ty_data_source){0}, &ds, &err), &err);
    assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = all, .n = 3}, (void *[]){ids, same}, &err), &err);
    assert_true(ids[0][0] == 1 && ids[0][1] == 2 && ids[1][0] == 4 && ids[1][1] == 0 && ids[2][0] == 0);
    assert_true(same[1][0] == 3 && same[2][1] == 6);
    ty_dataset_close(ds);
    ty_field both = of("both", "ids,same");
    assert_int_equal(files_open("lists.parquet", &both, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "column \"ids\" holds lists, and can be a field alone");
}

static void bytes_are_pictures_or_sounds(void **state)
{
    (void)state;
    take("pictures.parquet", "p.parquet"), take("sounds.parquet", "s.parquet");
    ty_image_plan image = ty_image_plan_make();
    ty_audio_plan audio = ty_audio_plan_make();
    image.scale = 1.0, image.scale_given = true;
    ty_field f[2] = {of("image", NULL), of("label", NULL)};
    f[0].image = &image;
    ty_dataset *ds;
    ty_error err = {0};
    float x[3][4], wave[2][300];
    int64_t y[3], all[3] = {2, 0, 1};
    assert_ok(files_open("p.parquet", f, 2, (ty_data_source){0}, &ds, &err), &err);
    assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = all, .n = 3}, (void *[]){x, y}, &err), &err);
    assert_true(x[0][0] == 30 && x[1][3] == 10 && x[2][0] == 20 && y[0] == 0 && y[2] == 1);
    ty_dataset_close(ds);
    f[0] = of("audio", NULL);
    f[0].audio = &audio;
    assert_ok(files_open("s.parquet", f, 2, (ty_data_source){0}, &ds, &err), &err);
    assert_ok(ty_dataset_read(ds, 0, all + 1, 2, wave, &err), &err);
    assert_memory_equal(wave[0], wave[1], sizeof wave[0]);
    assert_true(wave[0][100] != 0);
    ty_dataset_close(ds);
    f[0].audio = NULL, f[0].image = &image, f[0].columns = "label";
    assert_int_equal(files_open("p.parquet", f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "a picture is the bytes of one column, and \"label\" has none");
}

static void columns_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    take("table1.parquet", "d/1.parquet"), take("table2.parquet", "d/2.parquet"), take("digits.parquet", "e/2.parquet");
    take("table1.parquet", "e/1.parquet"), take("lists.parquet", "g/2.parquet");
    ty_field label = of("label", NULL), other = of("age", NULL), more = of("more", "n");
    ty_dataset *ds;
    ty_error err = {0};
    assert_int_equal(files_open("d", &label, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "column \"label\" holds text, which feeds no model as it is");
    assert_int_equal(files_open("d", &other, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "field \"age\": the file has no column \"age\"");
    assert_says(&err, "its columns are a, b, label, n");
    assert_int_equal(files_open("e", &more, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "2.parquet");
    assert_says(&err, "the file has no column \"n\", which");
    files_puts("d/3.parquet", "PAR1 and nothing else");
    assert_int_equal(files_open("d", &more, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "3.parquet");
    assert_says(&err, "the file does not end with PAR1");
}

static void surveys_tell_tables_from_the_rest(void **state)
{
    static const struct {
        const char *file, *names;
        bool is_table;
        int text, picture, sound; /* which of the parts are, as bits */
    } rows[] = {
        {"table1.parquet", "a b label n ", true, 4, 0, 0},
        {"lists.parquet", "ids same ", false, 0, 0, 0},
        {"pictures.parquet", "image image.path label ", false, 2, 1, 0},
        {"sounds.parquet", "audio label ", false, 0, 0, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_arena a;
        ty_data_survey s;
        ty_error err = {0};
        char names[200] = "";
        int text = 0, picture = 0, sound = 0;
        take(rows[i].file, rows[i].file);
        const char *path = files_path(rows[i].file);
        ty_arena_init(&a);
        assert_ok(ty_data_survey_make(&(ty_data_source){.paths = &path, .n_paths = 1}, &a, &s, &err), &err);
        for (int k = 0; k < s.n_parts; k++) {
            strcat(strcat(names, s.part[k].name), " ");
            text |= s.part[k].is_text << k, picture |= s.part[k].is_picture << k, sound |= s.part[k].is_sound << k;
        }
        assert_string_equal(names, rows[i].names);
        assert_true(s.is_table == rows[i].is_table && text == rows[i].text && picture == rows[i].picture &&
                    sound == rows[i].sound);
        ty_arena_fini(&a);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_setup, files_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(columns_are_found_by_name_in_each_file), TEST(what_is_null_is_refused_or_filled_in),
        TEST(blocks_have_what_columns_have),          TEST(lists_are_rows_of_any_length),
        TEST(bytes_are_pictures_or_sounds),           TEST(columns_that_do_not_fit_are_refused),
        TEST(surveys_tell_tables_from_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
