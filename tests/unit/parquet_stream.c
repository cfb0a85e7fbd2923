/* parquet_stream.c - Parquet files as streams: row by row what data sets have of them by number, in memory of two row
 * groups; what is refused, and where.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/audio/plan.h"
#include "container/input/image/plan.h"
#include "container/input/map/map.h"
#include "container/input/prefetch.h"
#include "container/input/stream/stream.h"
#include "container/input/survey.h"
#include "golden_file.h"
#include "input_files.h"

#include <zlib.h>

enum { MOST_FIELDS = 8, BATCH = 7 };

static ty_arena maps; /* and paths, of one test */

/* A golden file under another name in the folder. */
static void take(const char *name, const char *as)
{
    ty_buf bytes;
    golden_read("parquet", name, &bytes);
    files_put(as, bytes.data, bytes.len);
    ty_buf_fini(&bytes);
}

/* files_path(), until the next test. */
static const char *kept_path(const char *name)
{
    return ty_arena_strdup(&maps, files_path(name));
}

static ty_field of(const char *name, const char *columns)
{
    ty_field f = ty_field_make(name);
    f.columns = columns;
    return f;
}

static ty_field filled(const char *name, double missing)
{
    ty_field f = ty_field_make(name);
    f.missing = missing, f.missing_given = true;
    return f;
}

static ty_field list(const char *name, int64_t n)
{
    ty_field f = filled(name, -1);
    f.max_length = n;
    return f;
}

static ty_field mapped(const char *name, ty_map_spec spec)
{
    ty_field f = ty_field_make(name);
    ty_error err = {0};
    spec.field = name, spec.scale = 1.0;
    assert_ok(ty_map_new(&spec, &maps, &f.map, &err), &err);
    return f;
}

static ty_stream_config config_of(const char *const *path, ty_field *fields, int n)
{
    return (ty_stream_config){.paths = path, .n_paths = 1, .fields = fields, .n_fields = n};
}

typedef struct reading {
    ty_stream *stream;
    ty_data_feed *feed;
    ty_prefetch *prefetch;
} reading;

static reading start(const ty_stream_config *c, ty_stream_order order, ty_position at)
{
    reading r;
    ty_error err = {0};
    order.n_rows = BATCH;
    order.tail = TY_TAIL_PAD;
    assert_ok(ty_stream_open(c, &r.stream, &err), &err);
    assert_ok(ty_stream_feed(r.stream, &order, &r.feed, &err), &err);
    ty_prefetch_config p = {.feed = r.feed, .start = at, .until_epoch = 1, .n_workers = 2};
    assert_ok(ty_prefetch_start(&p, &r.prefetch, &err), &err);
    return r;
}

static void stop(reading *r)
{
    ty_prefetch_stop(r->prefetch);
    ty_data_feed_close(r->feed);
    ty_stream_close(r->stream);
}

/* Row `row` of a batch is what the data set has as sample `sample`. */
static void check_row(const ty_dataset *ds, const ty_batch *b, int row, int64_t sample)
{
    static char wanted[1 << 16];
    ty_error err = {0};
    for (int i = 0; i < ds->n_fields; i++) {
        size_t n = ds->field[i].row_bytes;
        assert_true(n <= sizeof wanted && b->field[i].type.dtype == ds->field[i].type.dtype);
        assert_ok(ty_dataset_read(ds, i, &sample, 1, wanted, &err), &err);
        if (memcmp(wanted, (const char *)b->field[i].data + (size_t)row * n, n) != 0)
            fail_msg("row %lld of \"%s\" is another", (long long)sample, ds->field[i].name);
    }
}

/* From batch `first` on; all that follow, or by shards of records every n-th sample. Returns how many rows. */
static int64_t check_rows(const ty_dataset *ds, const ty_stream_config *c, ty_stream_order order, int64_t first)
{
    reading r = start(c, order, (ty_position){0, first});
    const ty_batch *b;
    ty_error err = {0};
    int64_t n = 0, each = order.n_shards > 0 ? order.n_shards : 1;
    for (;;) {
        assert_ok(ty_prefetch_next(r.prefetch, &b, &err), &err);
        if (!b)
            break;
        for (int i = 0; i < b->n_valid; i++, n++) {
            assert_int_equal(b->samples[i], first * BATCH + n * each + order.shard);
            check_row(ds, b, i, b->samples[i]);
        }
        ty_prefetch_release(r.prefetch, b);
    }
    stop(&r);
    return n;
}

/* The stream of a path has what the data set of it has, however its bytes are cut into blocks. */
static void check_like(const char *name, ty_field *fields, ty_field *streamed, int n)
{
    static const size_t blocks[] = {0, 24, 61, 1000, 4096};
    const char *path = kept_path(name);
    ty_dataset *ds;
    ty_error err = {0};
    ty_stream_config c = config_of(&path, streamed, n);
    assert_ok(files_open(name, fields, n, (ty_data_source){0}, &ds, &err), &err);
    assert_string_equal(ds->format, "parquet");
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        c.block_bytes = blocks[i];
        assert_int_equal(check_rows(ds, &c, (ty_stream_order){0}, 0), ds->n_samples);
    }
    int64_t late = ds->n_samples / BATCH / 2;
    assert_int_equal(check_rows(ds, &c, (ty_stream_order){0}, late), ds->n_samples - late * BATCH);
    int64_t all = 0;
    for (int64_t shard = 0; shard < 3; shard++)
        all += check_rows(ds, &c, (ty_stream_order){.shard_by = TY_SHARD_RECORDS, .shard = shard, .n_shards = 3}, 0);
    assert_int_equal(all, ds->n_samples);
    ty_dataset_close(ds);
}

static void check_alike(const char *name, ty_field *fields, int n)
{
    check_like(name, fields, fields, n);
}

static void numbers_stream_as_they_lie(void **state)
{
    (void)state;
    ty_field digits[2] = {of("image", "0-63"), of("label", NULL)};
    digits[0].scale = 0.0625;
    take("digits.parquet", "d/1.parquet"), take("digits.parquet", "d/2.parquet");
    check_alike("d", digits, 2);
    static const char *const files[] = {"plain",  "gzip",  "split", "zstd",     "brotli",
                                        "snappy", "delta", "lz4",   "one_group"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char from[64], to[64];
        snprintf(from, sizeof from, "%s.parquet", files[i]);
        snprintf(to, sizeof to, "all/%02zu.parquet", i);
        take(from, to);
    }
    ty_field reals[MOST_FIELDS] = {of("mixed", "f64,f32,half,dec9"),
                                   of("f32", NULL),
                                   of("small", "bool,u8,i16"),
                                   of("i64", NULL),
                                   of("whole", "i32,i8"),
                                   filled("some_i32", 7),
                                   filled("some_f64", -0.5)};
    reals[7] = of("filled", "some_f64,f32,none"), reals[7].missing = 3, reals[7].missing_given = true;
    check_alike("all", reals, MOST_FIELDS);
    static const char *const gaps[] = {"empty", "plain", "empty", "empty", "zstd", "empty"}; /* without rows */
    for (size_t i = 0; i < sizeof gaps / sizeof gaps[0]; i++) {
        char from[64], to[64];
        snprintf(from, sizeof from, "%s.parquet", gaps[i]);
        snprintf(to, sizeof to, "gaps/%zu.parquet", i);
        take(from, to);
    }
    ty_field few[2] = {of("i32", NULL), list("ids", 4)};
    check_alike("gaps", few, 2);
}

static void files_may_be_compressed_as_a_whole(void **state)
{
    (void)state;
    ty_buf bytes;
    golden_read("parquet", "digits.parquet", &bytes);
    gzFile file = gzopen(files_path("1.parquet"), "wb");
    assert_int_equal(gzwrite(file, bytes.data, (unsigned)bytes.len), (int)bytes.len);
    assert_int_equal(gzclose(file), Z_OK);
    ty_field digits[2] = {of("image", "0-63"), of("label", NULL)};
    check_alike("1.parquet", digits, 2);
    ty_parquet_memory m = ty_parquet_measure(files_path("1.parquet"), digits, 2);
    assert_true(m.group_bytes > 0 && m.growth > 1);
    ty_buf_fini(&bytes);
}

static void lists_and_texts_stream_as_they_lie(void **state)
{
    (void)state;
    take("plain.parquet", "t/1.parquet"), take("zstd.parquet", "t/2.parquet");
    ty_field rows[MOST_FIELDS] = {
        list("ids", 3),
        list("weights", 5),
        mapped("text", (ty_map_spec){.way = TY_MAP_HASH, .bins = 1000}),
        mapped("some_text",
               (ty_map_spec){.way = TY_MAP_HASH, .bins = 50, .missing = TY_MISSING_TEXT, .missing_text = "none"}),
        of("f32", NULL),
    };
    check_alike("t", rows, 5);
    /* What is learnt of all rows, by each for itself. */
    ty_field learns[2][3];
    for (int i = 0; i < 2; i++) {
        learns[i][0] = mapped("text", (ty_map_spec){.way = TY_MAP_VOCABULARY});
        learns[i][1] = mapped("repeats", (ty_map_spec){.way = TY_MAP_CLASSES});
        learns[i][2] = mapped("some_i32", (ty_map_spec){.way = TY_MAP_NUMBER, .missing = TY_MISSING_MEAN});
    }
    check_like("t", learns[0], learns[1], 3);
}

static void pictures_and_sounds_stream_as_they_lie(void **state)
{
    (void)state;
    take("pictures.parquet", "p.parquet"), take("sounds.parquet", "s.parquet");
    ty_image_plan image = ty_image_plan_make();
    ty_audio_plan audio = ty_audio_plan_make();
    image.scale = 1.0, image.scale_given = true;
    ty_field f[2] = {of("image", NULL), of("label", NULL)};
    f[0].image = &image;
    check_alike("p.parquet", f, 2);
    f[0] = of("audio", NULL);
    f[0].audio = &audio;
    check_alike("s.parquet", f, 2);
}

/* In the second file they stand in another order, b is 64 bits wide and n a double: known before the first row. */
static void columns_are_found_by_name_in_each_file(void **state)
{
    (void)state;
    take("table1.parquet", "d/1.parquet"), take("table2.parquet", "d/2.parquet");
    ty_field f[3] = {of("features", "a,b"), of("n", NULL), of("b", NULL)};
    f[1].dtype = TY_F32, f[1].dtype_given = true;
    check_alike("d", f, 3);
}

/* What the epoch ends with, or NULL. */
static const char *told(const ty_stream_config *c, int64_t *n_valid)
{
    static char text[sizeof(ty_error)];
    reading r = start(c, (ty_stream_order){0}, (ty_position){0});
    const ty_batch *b;
    ty_error err = {0};
    *n_valid = 0;
    while (ty_prefetch_next(r.prefetch, &b, &err) == 0 && b) {
        *n_valid += b->n_valid;
        ty_prefetch_release(r.prefetch, b);
    }
    stop(&r);
    snprintf(text, sizeof text, "%s: %s (%s)", err.place, err.message, err.help);
    return err.code ? text : NULL;
}

static void a_row_without_a_value_has_a_place(void **state)
{
    (void)state;
    take("digits.parquet", "d/1.parquet"), take("nulls.parquet", "n.parquet");
    const char *path = kept_path("n.parquet");
    ty_field two = of("features", "a,b"), one = of("a", NULL);
    int64_t n;
    ty_stream *s;
    ty_error err = {0};
    ty_stream_config c = config_of(&path, &two, 1);
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "n.parquet: row 1");
    assert_says(&err, "field \"features\": column \"a\" has no value (null)");
    assert_says(&err, "missing: 0");
    c.skip_bad = true, c.max_bad = 5;
    assert_null(told(&c, &n));
    assert_int_equal(n, 1);
    c = config_of(&path, &one, 1);
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "n.parquet: row 1");
}

static void files_that_do_not_fit_are_refused_before_a_row(void **state)
{
    (void)state;
    take("table1.parquet", "e/1.parquet"), take("table2.parquet", "e/2.parquet");
    const char *path = kept_path("e");
    ty_field n = of("n", NULL), a = of("a", NULL);
    ty_stream *s;
    ty_error err = {0};
    take("digits.parquet", "e/3.parquet");
    ty_stream_config c = config_of(&path, &n, 1);
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "3.parquet");
    assert_says(&err, "the file has no column \"n\", which \"");
    files_puts("e/3.parquet", "PAR1 and nothing else");
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "3.parquet");
    assert_says(&err, "the file does not end with PAR1");
    files_puts("e/3.parquet", "1,2,3\n");
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "it does not begin with PAR1");
    files_puts("e/3.parquet", "P");
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "3.parquet");
    c = (ty_stream_config){.channel = "train",
                           .input_folder = path,
                           .state_folder = path,
                           .format = "parquet",
                           .fields = &a,
                           .n_fields = 1};
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "channel \"train\" is in Pipe mode, and a file of parquet is read by columns");
}

/* Another length is seen when the file is opened again, damage when its pages are read: rows before have gone out. */
static void a_file_that_changes_is_refused_by_name(void **state)
{
    (void)state;
    take("digits.parquet", "d/1.parquet"), take("digits.parquet", "d/2.parquet");
    const char *path = kept_path("d");
    ty_field f[1] = {of("label", NULL)};
    ty_stream_config c = config_of(&path, f, 1);
    ty_buf bytes;
    int64_t n;
    golden_read("parquet", "digits.parquet", &bytes);
    uint32_t footer;
    memcpy(&footer, bytes.data + bytes.len - 8, sizeof footer);
    memset(bytes.data + 4, 0xff, bytes.len - footer - 12);
    files_put("d/2.parquet", bytes.data, bytes.len);
    const char *text = told(&c, &n);
    assert_non_null(text);
    assert_non_null(strstr(text, "2.parquet"));
    assert_non_null(strstr(text, "column \"label\""));
    assert_true(n > 0 && n <= 320);
    take("digits.parquet", "d/2.parquet");
    reading r;
    ty_error err = {0};
    ty_stream_order order = {.n_rows = BATCH, .tail = TY_TAIL_PAD};
    assert_ok(ty_stream_open(&c, &r.stream, &err), &err);
    take("table1.parquet", "d/2.parquet");
    assert_ok(ty_stream_feed(r.stream, &order, &r.feed, &err), &err);
    ty_prefetch_config p = {.feed = r.feed, .until_epoch = 1, .n_workers = 1};
    assert_ok(ty_prefetch_start(&p, &r.prefetch, &err), &err);
    const ty_batch *b;
    while (ty_prefetch_next(r.prefetch, &b, &err) == 0 && b)
        ty_prefetch_release(r.prefetch, b);
    stop(&r);
    assert_says(&err, "2.parquet");
    assert_says(&err, "when the channel was listed");
    ty_buf_fini(&bytes);
}

/* Shuffled in a buffer each row comes once; an epoch may be left at any point. */
static void all_rows_come_once_when_shuffled(void **state)
{
    (void)state;
    take("digits.parquet", "d/1.parquet"), take("digits.parquet", "d/2.parquet");
    const char *path = kept_path("d");
    ty_field f[2] = {of("image", "0-63"), of("label", NULL)};
    ty_stream_config c = config_of(&path, f, 2);
    bool seen[640] = {false}, in_order = true;
    reading r = start(&c, (ty_stream_order){.shuffle_rows = 100, .seed = 3}, (ty_position){0});
    const ty_batch *b;
    ty_error err = {0};
    int64_t n = 0;
    for (;; n++) {
        assert_ok(ty_prefetch_next(r.prefetch, &b, &err), &err);
        if (!b)
            break;
        for (int i = 0; i < b->n_valid; i++) {
            assert_true(b->samples[i] < 640 && !seen[b->samples[i]]);
            seen[b->samples[i]] = true;
            in_order = in_order && b->samples[i] == n * BATCH + i;
        }
        ty_prefetch_release(r.prefetch, b);
    }
    for (int i = 0; i < 640; i++)
        assert_true(seen[i]);
    assert_false(in_order);
    stop(&r);
    for (int batches = 0; batches < 4; batches++) { /* row groups are on their way */
        r = start(&c, (ty_stream_order){0}, (ty_position){0});
        for (int i = 0; i < batches; i++) {
            assert_ok(ty_prefetch_next(r.prefetch, &b, &err), &err);
            ty_prefetch_release(r.prefetch, b);
        }
        stop(&r);
    }
}

/* What memory they take is told by the footer, and what has been read is no more than that. */
static void memory_is_known_before(void **state)
{
    (void)state;
    take("digits.parquet", "1.parquet");
    const char *path = kept_path("1.parquet");
    ty_field f[2] = {of("image", "0-63"), of("label", NULL)}, none = of("nothing", NULL);
    ty_parquet_memory all = ty_parquet_measure(path, NULL, 0), both = ty_parquet_measure(path, f, 2),
                      one = ty_parquet_measure(path, f + 1, 1);
    assert_true(all.growth == both.growth && all.group_bytes == both.group_bytes);
    assert_true(all.group_bytes == one.group_bytes * 65 && one.growth * 65 > all.growth * 0.999);
    assert_true(ty_parquet_measure(path, &none, 1).group_bytes == 0);
    assert_true(ty_parquet_measure("nowhere", NULL, 0).growth == 1.0);
    ty_dataset *ds;
    ty_error err = {0};
    assert_ok(files_open("1.parquet", f, 2, (ty_data_source){.skip_bad = true}, &ds, &err), &err);
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    double ratio = (double)ds->stats.memory_bytes / (all.growth * (double)st.st_size);
    assert_true(ratio > 0.99 && ratio < 1.3);
    ty_dataset_close(ds);
}

static int maps_fini(void **state)
{
    ty_arena_fini(&maps);
    ty_arena_init(&maps);
    return files_teardown(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, files_setup, maps_fini)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(numbers_stream_as_they_lie),
        TEST(files_may_be_compressed_as_a_whole),
        TEST(lists_and_texts_stream_as_they_lie),
        TEST(pictures_and_sounds_stream_as_they_lie),
        TEST(columns_are_found_by_name_in_each_file),
        TEST(a_row_without_a_value_has_a_place),
        TEST(files_that_do_not_fit_are_refused_before_a_row),
        TEST(a_file_that_changes_is_refused_by_name),
        TEST(all_rows_come_once_when_shuffled),
        TEST(memory_is_known_before),
    };
    ty_arena_init(&maps);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
