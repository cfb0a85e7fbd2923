/* arrow.c - Arrow's files, value by value as pyarrow reads them (tests/golden/arrow), by number and as streams as the
 * same table is read from Parquet; what is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/arrow/arrow.h"
#include "container/input/parquet/opened.h"
#include "container/input/prefetch.h"
#include "container/input/stream/stream.h"
#include "container/input/survey.h"
#include "golden_file.h"
#include "input_files.h"
#include "parquet_spelled.h"

enum { MAX_BYTES = 1 << 22, ROWS = 23, BATCH = 7 };

static const char *path_of(const char *name)
{
    static char path[200];
    snprintf(path, sizeof path, "tests/golden/%s", name);
    return path;
}

static void spell_table(const char *name, const parquet_opened *o, ty_buf *out)
{
    parquet_room room = {0};
    parquet_values v = {0};
    for (int c = 0; c < o->file.n_columns; c++) {
        if (o->file.column[c].odd)
            continue;
        ty_buf_addf(out, "%s:", o->file.column[c].name);
        for (int g = 0; g < o->file.n_groups; g++) {
            ty_error err = {0};
            if (parquet_opened_read(o, g, c, 0, &room, &v, &err) < 0)
                fail_msg("%s: batch %d: %s", name, g, err.message);
            assert_int_equal(v.n_rows, o->file.group[g].n_rows);
            spell_rows(&v, out);
        }
        ty_buf_addc(out, '\n');
    }
    ty_buf_addc(out, 0);
    parquet_values_fini(&v);
    parquet_room_fini(&room);
}

static void values_are_as_pyarrow_reads_them(void **state)
{
    static const char *const files[][2] = {
        {"arrow/file.arrow", "parquet/types.txt"},      {"arrow/stream.arrow", "parquet/types.txt"},
        {"arrow/lz4.arrow", "parquet/types.txt"},       {"arrow/zstd.arrow", "parquet/types.txt"},
        {"arrow/other.arrow", "arrow/other.txt"},       {"arrow/nested.arrow", "parquet/nested.parquet.txt"},
        {"arrow/grids.arrow", "arrow/grids.txt"},       {"arrow/late.arrow", "arrow/late.txt"},
        {"arrow/replaced.arrow", "arrow/replaced.txt"}, {"arrow/grown.arrow", "arrow/grown.txt"},
        {"arrow/views.arrow", "arrow/views.txt"},       {"arrow/views_zstd.arrow", "arrow/views.txt"},
        {"arrow/polars.arrow", "arrow/polars.txt"}};
    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        for (int rests = 0; rests < 2; rests++) {
            ty_buf expected, found;
            ty_arena a;
            parquet_opened o;
            ty_error err = {0};
            golden_read(".", files[i][1], &expected);
            ty_buf_addc(&expected, 0);
            ty_buf_init(&found, MAX_BYTES);
            ty_arena_init(&a);
            assert_ok(parquet_opened_open(path_of(files[i][0]), -1, &a, &o, &err), &err);
            if (rests)
                parquet_opened_rest(&o);
            spell_table(files[i][0], &o, &found);
            compare_lines(files[i][0], found.data, expected.data);
            parquet_opened_close(&o);
            ty_arena_fini(&a);
            ty_buf_fini(&expected), ty_buf_fini(&found);
        }
}

/* ---- beside Parquet ---- */

static int declare(ty_field *f)
{
    f[0] = ty_field_make("numbers");
    f[0].columns = "f64,f32,half,dec9";
    f[1] = ty_field_make("i64");
    f[2] = ty_field_make("some_i32");
    f[2].missing = 7, f[2].missing_given = true;
    f[3] = ty_field_make("ids");
    f[3].max_length = 3, f[3].missing = -1, f[3].missing_given = true;
    return 4;
}

static void check_stream(const char *path, ty_field *fields, int n, const ty_dataset *ds)
{
    ty_stream *s;
    ty_data_feed *feed;
    ty_prefetch *prefetch;
    const ty_batch *b;
    ty_error err = {0};
    int64_t seen = 0;
    char wanted[1024];
    ty_stream_config c = {.paths = &path, .n_paths = 1, .fields = fields, .n_fields = n, .block_bytes = 100};
    ty_stream_order order = {.n_rows = BATCH, .tail = TY_TAIL_PAD};
    assert_ok(ty_stream_open(&c, &s, &err), &err);
    assert_string_equal(s->format, "arrow");
    assert_int_equal(s->n_records, ds->n_samples);
    assert_ok(ty_stream_feed(s, &order, &feed, &err), &err);
    assert_ok(ty_prefetch_start(&(ty_prefetch_config){.feed = feed, .until_epoch = 1, .n_workers = 2}, &prefetch, &err),
              &err);
    while (ty_prefetch_next(prefetch, &b, &err) == 0 && b) {
        for (int row = 0; row < b->n_valid; row++, seen++)
            for (int i = 0; i < n; i++) {
                size_t bytes = ds->field[i].row_bytes;
                assert_ok(ty_dataset_read(ds, i, &seen, 1, wanted, &err), &err);
                assert_memory_equal(wanted, (const char *)b->field[i].data + (size_t)row * bytes, bytes);
            }
        ty_prefetch_release(prefetch, b);
    }
    assert_int_equal(err.code, TY_E_NONE);
    assert_int_equal(seen, ds->n_samples);
    ty_prefetch_stop(prefetch);
    ty_data_feed_close(feed);
    ty_stream_close(s);
}

static void rows_are_those_of_parquet(void **state)
{
    static const char *const files[] = {"arrow/file.arrow", "arrow/stream.arrow", "arrow/lz4.arrow",
                                        "arrow/zstd.arrow"};
    (void)state;
    const char *parquet = "tests/golden/parquet/plain.parquet";
    ty_field f[4];
    int n = declare(f);
    ty_dataset *ds[2];
    ty_error err = {0};
    for (size_t k = 0; k < sizeof files / sizeof files[0]; k++) {
        const char *path = path_of(files[k]);
        char x[2][1024];
        assert_ok(ty_dataset_open(&(ty_data_source){.paths = &parquet, .n_paths = 1, .fields = f, .n_fields = n},
                                  &ds[0], &err),
                  &err);
        assert_ok(
            ty_dataset_open(&(ty_data_source){.paths = &path, .n_paths = 1, .fields = f, .n_fields = n}, &ds[1], &err),
            &err);
        assert_string_equal(ds[1]->format, "arrow");
        assert_true(ds[0]->n_samples == ROWS && ds[1]->n_samples == ROWS);
        for (int64_t row = 0; row < ROWS; row++)
            for (int i = 0; i < n; i++) {
                for (int side = 0; side < 2; side++)
                    assert_ok(ty_dataset_read(ds[side], i, &row, 1, x[side], &err), &err);
                assert_memory_equal(x[0], x[1], ds[0]->field[i].row_bytes);
            }
        check_stream(path, f, n, ds[0]);
        ty_dataset_close(ds[0]), ty_dataset_close(ds[1]);
    }
}

/* What save_to_disk of Hugging Face's datasets leaves: shards, and JSON about them. */
static void a_folder_of_datasets_is_data(void **state)
{
    (void)state;
    const char *path = "tests/golden/arrow/digits";
    ty_arena a;
    ty_data_survey s;
    ty_error err = {0};
    ty_arena_init(&a);
    assert_ok(ty_data_survey_make(&(ty_data_source){.paths = &path, .n_paths = 1}, &a, &s, &err), &err);
    assert_string_equal(s.format, "arrow");
    assert_true(s.n_parts == 2 && strcmp(s.part[0].name, "image") == 0 && strcmp(s.part[1].name, "label") == 0);
    ty_field f[2] = {ty_field_make("image"), ty_field_make("label")};
    ty_dataset *ds;
    assert_ok(ty_dataset_open(&(ty_data_source){.paths = &path, .n_paths = 1, .fields = f, .n_fields = 2}, &ds, &err),
              &err);
    assert_true(ds->n_samples == 320 && ds->n_files == 2 && ds->field[0].type.dim[0] == 64 && ds->field[1].max == 9);
    ty_dataset_close(ds);
    ty_arena_fini(&a);
}

/* ---- refused ---- */

static void refuse(const void *bytes, size_t n, const char *says)
{
    ty_arena a;
    parquet_opened o;
    ty_error err = {0};
    files_put("x.arrow", bytes, n);
    ty_arena_init(&a);
    assert_int_equal(parquet_opened_open(files_path("x.arrow"), -1, &a, &o, &err), -1);
    assert_says(&err, "x.arrow");
    if (says)
        assert_says(&err, says);
    assert_true(err.message[0] && err.code != TY_E_INTERNAL);
    ty_arena_fini(&a);
}

static void files_that_end_early_are_refused(void **state)
{
    (void)state;
    ty_buf bytes;
    golden_read("arrow", "stream.arrow", &bytes);
    for (size_t n = 20; n + 8 < bytes.len; n += 97) { /* but at the end of a message */
        ty_arena a;
        parquet_opened o;
        ty_error err = {0};
        files_put("x.arrow", bytes.data, n);
        ty_arena_init(&a);
        int rc = parquet_opened_open(files_path("x.arrow"), -1, &a, &o, &err);
        assert_true(rc == -1 || o.file.n_rows < ROWS);
        parquet_opened_close(&o);
        ty_arena_fini(&a);
    }
    refuse(bytes.data, 200, "the file ends at byte 200");
    memset(bytes.data + 8, 0xee, 300);
    refuse(bytes.data, bytes.len, NULL);
    ty_buf_fini(&bytes);
    golden_read("arrow", "file.arrow", &bytes);
    for (size_t n = 16; n < bytes.len; n += n + 40 < bytes.len ? 97 : 1)
        refuse(bytes.data, n, "the footer of the Arrow file is damaged or missing");
    ty_buf_fini(&bytes);
}

/* Views that point where no bytes are: of buffer 9, behind the end, of a length below 0. */
static void views_that_point_outside_are_refused(void **state)
{
    static const struct {
        size_t at;
        uint32_t is;
    } changes[] = {{8, 9}, {12, 1 << 20}, {0, 0xfffffff0}, {8, 0xffffffff}, {12, 0xffffffff}};
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        ty_buf bytes;
        ty_arena a;
        parquet_opened o;
        parquet_room room = {0};
        parquet_values v = {0};
        ty_error err = {0};
        golden_read("arrow", "polars.arrow", &bytes);
        char *view = bytes.data;
        while (view + 16 < bytes.data + bytes.len && memcmp(view, "\r\0\0\0thir", 8) != 0) /* of 13 bytes */
            view++;
        assert_true(view + 16 < bytes.data + bytes.len);
        memcpy(view + changes[i].at, &changes[i].is, 4);
        files_put("x.arrow", bytes.data, bytes.len);
        ty_arena_init(&a);
        assert_ok(parquet_opened_open(files_path("x.arrow"), -1, &a, &o, &err), &err);
        assert_int_equal(parquet_opened_read(&o, 0, 0, 0, &room, &v, &err), -1);
        assert_says(&err, "it points outside of its buffers");
        parquet_opened_close(&o);
        parquet_values_fini(&v);
        parquet_room_fini(&room);
        ty_arena_fini(&a);
        ty_buf_fini(&bytes);
    }
}

static void columns_that_are_not_read_are_named(void **state)
{
    (void)state;
    const char *path = "tests/golden/arrow/file.arrow";
    ty_field f = ty_field_make("map");
    ty_dataset *ds;
    ty_error err = {0};
    ty_data_source source = {.paths = &path, .n_paths = 1, .fields = &f, .n_fields = 1};
    assert_int_equal(ty_dataset_open(&source, &ds, &err), -1);
    assert_says(&err, "column \"map\": it is a map, which is not read");
    path = "tests/golden/arrow/views.arrow";
    f = ty_field_make("away");
    assert_int_equal(ty_dataset_open(&source, &ds, &err), -1);
    assert_says(&err, "column \"away\": it holds views of lists, which is not read");
    path = "tests/golden/arrow/file.arrow";
    f = ty_field_make("nowhere");
    assert_int_equal(ty_dataset_open(&source, &ds, &err), -1);
    assert_says(&err, "its columns are bool, i8, u8");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_setup, files_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_are_as_pyarrow_reads_them),    TEST(rows_are_those_of_parquet),
        TEST(a_folder_of_datasets_is_data),        TEST(files_that_end_early_are_refused),
        TEST(columns_that_are_not_read_are_named), TEST(views_that_point_outside_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
