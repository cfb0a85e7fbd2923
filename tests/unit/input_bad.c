/* input_bad.c - records that cannot be used: refused with their place, or left out, counted and named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "container/input/map/map.h"
#include "container/input/prefetch.h"
#include "container/input/stream/stream.h"
#include "input_files.h"

#include <math.h>

static ty_data_source leaving(int64_t max)
{
    return (ty_data_source){.skip_bad = true, .max_bad = max};
}

/* ---- what is learnt ---- */

/* Three fields that learn, and one that does not. In the order of the fields, so that one which refuses a record comes
 * behind one that would have learnt of it. */
static void learning_fields(ty_arena *a, ty_field f[4], bool is_csv)
{
    static const char *const columns[] = {"0", "1", "2", "3"};
    const ty_map_spec spec[3] = {
        {.field = "word", .way = TY_MAP_CLASSES, .scale = 1},
        {.field = "x", .scale = 1, .normalize = TY_NORMALIZE_STANDARD},
        {.field = "n", .scale = 1, .missing = TY_MISSING_MOST_FREQUENT},
    };
    ty_error err = {0};
    for (int i = 0; i < 4; i++) {
        f[i] = ty_field_make(i < 3 ? spec[i].field : "y");
        f[i].columns = is_csv ? columns[i] : NULL;
        if (i < 3)
            assert_ok(ty_map_new(&spec[i], a, &f[i].map, &err), &err);
    }
    f[2].dtype_given = f[3].dtype_given = true;
    f[2].dtype = f[3].dtype = TY_I64;
}

static void expect_learnt(const ty_field f[4])
{
    ty_map_settled s;
    assert_true(ty_map_is_settled(f[0].map) && ty_map_is_settled(f[1].map) && ty_map_is_settled(f[2].map));
    assert_string_equal(ty_map_word(f[0].map, 0), "a");
    assert_string_equal(ty_map_word(f[0].map, 1), "b");
    assert_null(ty_map_word(f[0].map, 2));
    ty_map_look(f[1].map, &s);
    assert_true(s.shift[0] == 3 && fabs(s.divisor[0] * s.divisor[0] - 2.0 / 3) < 1e-12);
    ty_map_look(f[2].map, &s);
    assert_true(s.fill[0] == 7);
}

/* Three rows are right, one of them without a number; the others are wrong in one field each, of any kind. */
static const char *const learnt_rows[][4] = {
    {"a", "2", "7", "1"},       {"z1", "1000", "5", "one"}, {"z2", "1000", "5.5", "1"},
    {"z3", "inf", "5", "1"},    {"b", "4", "7", "2"},       {"\xff", "1000", "5", "1"},
    {"z4", "1000", "5", "1.5"}, {"z5", "", "5", "1"},       {"a", "3", "", "3"},
};

enum { N_LEARNT_ROWS = sizeof learnt_rows / sizeof learnt_rows[0] };

static void put_learnt_rows(void)
{
    ty_buf csv, json;
    ty_buf_init(&csv, 1 << 16);
    ty_buf_init(&json, 1 << 16);
    for (int i = 0; i < N_LEARNT_ROWS; i++) {
        const char *const *c = learnt_rows[i];
        ty_buf_addf(&csv, "%s,%s,%s,%s\n", c[0], c[1], c[2], c[3]);
        ty_buf_addf(&json, "{\"word\": \"%s\"", c[0]);
        ty_buf_addf(&json, *c[1] == 'i' ? ", \"x\": 1e999" : *c[1] ? ", \"x\": %s" : "%s", c[1]);
        ty_buf_addf(&json, *c[2] ? ", \"n\": %s" : "%s", c[2]);
        ty_buf_addf(&json, *c[3] == 'o' ? ", \"y\": \"%s\"}\n" : ", \"y\": %s}\n", c[3]);
    }
    files_put("learn.csv", csv.data, csv.len);
    files_put("learn.jsonl", json.data, json.len);
    ty_buf_fini(&csv);
    ty_buf_fini(&json);
}

static void nothing_is_learnt_of_what_is_left_out(void **state)
{
    (void)state;
    static const char *const names[] = {"learn.csv", "learn.jsonl"};
    put_learnt_rows();
    for (int k = 0; k < 4; k++) {
        bool is_csv = k % 2 == 0, streams = k >= 2;
        const char *path = files_path(names[k % 2]);
        ty_arena a;
        ty_field f[4];
        ty_error err = {0};
        ty_arena_init(&a);
        learning_fields(&a, f, is_csv);
        if (streams) {
            ty_stream_config config = {.paths = &path, .n_paths = 1, .fields = f, .n_fields = 4, .skip_bad = true};
            ty_stream *s;
            assert_ok(ty_stream_open(&config, &s, &err), &err);
            ty_stream_close(s);
        } else {
            ty_dataset *ds;
            assert_ok(files_open(names[k], f, 4, leaving(6), &ds, &err), &err);
            assert_true(ds->n_samples == 3 && ds->bad.n == 6);
            ty_dataset_close(ds);
        }
        expect_learnt(f);
        ty_arena_fini(&a);
    }
}

/* ---- csv ---- */

static const char table[] = "1,10\n"
                            "2,20,30\n"   /* one too many */
                            "3\n"         /* one too few */
                            "4,forty\n"   /* no number */
                            "5,\n"        /* nothing */
                            "6,\"6\"0\n"  /* text behind a quote */
                            "7,\"7\n\"\n" /* a line end in a number is a blank */
                            "x,80\n"      /* the last */
                            "9,90\n";

static void csv_fields(ty_field f[2])
{
    f[0] = ty_field_make("a");
    f[0].columns = "0";
    f[0].dtype_given = true;
    f[0].dtype = TY_I64;
    f[1] = ty_field_make("b");
    f[1].columns = "1";
}

static void csv_rows_are_left_out(void **state)
{
    (void)state;
    ty_field f[2];
    ty_dataset *ds;
    ty_error err = {0};
    char place[400];
    csv_fields(f);
    files_puts("rows.csv", table);
    assert_int_equal(files_open("rows.csv", f, 2, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "rows.csv:2:");
    err = (ty_error){0};
    assert_ok(files_open("rows.csv", f, 2, leaving(6), &ds, &err), &err);
    assert_int_equal(ds->n_samples, 3);
    assert_int_equal(ds->bad.n, 6);
    assert_non_null(strstr(ds->bad.first, "rows.csv:2:"));
    int64_t a[3], want[3] = {1, 7, 9};
    float b[3];
    assert_ok(ty_dataset_read(ds, 0, (int64_t[]){0, 1, 2}, 3, a, &err), &err);
    assert_ok(ty_dataset_read(ds, 1, (int64_t[]){0, 1, 2}, 3, b, &err), &err);
    assert_memory_equal(a, want, sizeof a);
    assert_true(b[0] == 10 && b[1] == 7 && b[2] == 90);
    /* What bad rows held is known of no field, and the lines of the others are right. */
    assert_int_equal(ds->field[0].min, 1);
    assert_int_equal(ds->field[0].max, 9);
    assert_int_equal(ds->field[1].n_missing, 0);
    assert_non_null(strstr(ty_dataset_place(ds, 0, 2, place, sizeof place), "rows.csv:10"));
    assert_non_null(strstr(ty_dataset_summary(ds, place, sizeof place), "6 bad records left out"));
    ty_dataset_close(ds);
}

static void one_more_than_allowed_is_refused(void **state)
{
    (void)state;
    ty_field f[2];
    ty_dataset *ds;
    ty_error err = {0};
    csv_fields(f);
    files_puts("more.csv", table);
    assert_int_equal(files_open("more.csv", f, 2, leaving(5), &ds, &err), -1);
    assert_says(&err, "one bad record more than the 5 that may be left out");
    assert_says(&err, "more.csv:9:1");
    assert_says(&err, "the first was ");
    assert_says(&err, "more.csv:2:");
}

static void an_open_quote_is_no_bad_row(void **state)
{
    (void)state;
    ty_field f[2];
    ty_dataset *ds;
    ty_error err = {0};
    csv_fields(f);
    files_puts("open.csv", "1,2\n3,\"4\n5,6\n");
    assert_int_equal(files_open("open.csv", f, 2, leaving(100), &ds, &err), -1);
    assert_says(&err, "no closing quote");
}

/* ---- lines ---- */

static void libsvm_lines_are_left_out(void **state)
{
    (void)state;
    ty_field f[2] = {ty_field_make("label"), ty_field_make("features")};
    ty_dataset *ds;
    ty_error err = {0};
    char place[400];
    files_puts("x.libsvm", "1 1:2 3:4\n0 900:x\n0 1:1 1:2\n-1 2:5\n0 -3:1\nnonsense\n1 3:9\n");
    assert_int_equal(files_open("x.libsvm", f, 2, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "x.libsvm:2");
    err = (ty_error){0};
    assert_ok(files_open("x.libsvm", f, 2, leaving(0), &ds, &err), &err);
    assert_int_equal(ds->n_samples, 3);
    assert_int_equal(ds->bad.n, 4);
    assert_int_equal(ds->field[1].type.dim[0], 3); /* the index 900 stood on a bad line */
    float rows[9], want[9] = {2, 0, 4, 0, 5, 0, 0, 0, 9};
    assert_ok(ty_dataset_read(ds, 1, (int64_t[]){0, 1, 2}, 3, rows, &err), &err);
    assert_memory_equal(rows, want, sizeof rows);
    assert_non_null(strstr(ty_dataset_place(ds, 0, 2, place, sizeof place), "x.libsvm:7"));
    ty_dataset_close(ds);
}

static void json_lines_are_left_out(void **state)
{
    (void)state;
    ty_field f[1] = {ty_field_make("v")};
    ty_dataset *ds;
    ty_error err = {0};
    files_puts("x.jsonl", "{\"v\": 1}\n{\"v\": \n{\"w\": 2}\n{\"v\": [1, 2]}\n{\"v\": \"text\"}\n{\"v\": 5}\n");
    assert_ok(files_open("x.jsonl", f, 1, leaving(4), &ds, &err), &err);
    assert_int_equal(ds->n_samples, 2);
    assert_int_equal(ds->bad.n, 4);
    float v[2];
    assert_ok(ty_dataset_read(ds, 0, (int64_t[]){0, 1}, 2, v, &err), &err);
    assert_true(v[0] == 1 && v[1] == 5);
    ty_dataset_close(ds);
}

/* ---- records ---- */

static size_t put_record(uint8_t *out, const char *payload, size_t n)
{
    uint64_t length = n;
    uint32_t crc;
    memcpy(out, &length, 8);
    crc = ty_crc32c_mask(ty_crc32c(0, out, 8));
    memcpy(out + 8, &crc, 4);
    memcpy(out + 12, payload, n);
    crc = ty_crc32c_mask(ty_crc32c(0, payload, n));
    memcpy(out + 12 + n, &crc, 4);
    return n + 16;
}

/* Example {v: int64 of one byte}; the last byte is the value. */
static size_t put_example(uint8_t *out, char value)
{
    char example[] = "\x0a\x0c\x0a\x0a\x0a\x01v\x12\x05\x1a\x03\x0a\x01\x00";
    example[sizeof example - 2] = value;
    return put_record(out, example, sizeof example - 1);
}

enum { EXAMPLE_BYTES = 30 };

static int open_examples(const uint8_t *bytes, size_t n, ty_data_source extra, ty_dataset **ds, ty_error *err)
{
    ty_field f[1] = {ty_field_make("v")};
    files_put("x.tfrecord", bytes, n);
    return files_open("x.tfrecord", f, 1, extra, ds, err);
}

static void damaged_payloads_are_left_out(void **state)
{
    (void)state;
    uint8_t bytes[8 * EXAMPLE_BYTES];
    ty_dataset *ds;
    ty_error err = {0};
    char place[400];
    size_t n = 0;
    for (char i = 0; i < 8; i++)
        n += put_example(bytes + n, (char)(i + 10));
    assert_int_equal(n, sizeof bytes);
    bytes[0 * EXAMPLE_BYTES + 20] ^= 1;                /* the first of all: nothing is known of the fields yet */
    bytes[3 * EXAMPLE_BYTES + EXAMPLE_BYTES - 1] ^= 1; /* the checksum itself */
    put_record(bytes + 5 * EXAMPLE_BYTES, "\x0a\x0c\x0a\x0a\x0a\x01w\x12\x05\x1a\x03\x0a\x01\x00", 14); /* no v */
    assert_int_equal(open_examples(bytes, n, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "record 0 at byte 0");
    err = (ty_error){0};
    assert_ok(open_examples(bytes, n, leaving(3), &ds, &err), &err);
    assert_int_equal(ds->n_samples, 5);
    assert_int_equal(ds->bad.n, 3);
    int64_t v[5], want[5] = {11, 12, 14, 16, 17};
    assert_ok(ty_dataset_read(ds, 0, (int64_t[]){0, 1, 2, 3, 4}, 5, v, &err), &err);
    assert_memory_equal(v, want, sizeof v);
    assert_int_equal(ds->field[0].min, 11);
    assert_non_null(strstr(ty_dataset_place(ds, 0, 4, place, sizeof place), "record 7 at byte 210"));
    ty_dataset_close(ds);
}

/* What an evaluation takes of a stream: its first epoch, again and again. */
static void evaluate(ty_stream *stream, int64_t n_want)
{
    ty_stream_order order = {.n_rows = 4, .tail = TY_TAIL_PAD};
    ty_data_feed *feed;
    ty_draft draft = {0};
    ty_error err = {0};
    int64_t samples[4], v[4], n = 0;
    draft.samples = samples;
    assert_ok(ty_stream_feed(stream, &order, &feed, &err), &err);
    assert_ok(feed->ops->open_draft(feed, &draft, &err), &err);
    assert_ok(feed->ops->start(feed, (ty_position){0}, 1, &err), &err);
    int rc = feed->ops->take(feed, &draft, &err);
    for (; rc == 1; rc = feed->ops->take(feed, &draft, &err)) {
        assert_ok(feed->ops->fill(feed, &draft, (void *[]){v}, &err), &err);
        n += draft.n_valid;
    }
    assert_ok(rc, &err);
    assert_int_equal(n, n_want);
    feed->ops->close_draft(feed, &draft);
    ty_data_feed_close(feed);
}

static void evaluations_count_anew(void **state)
{
    (void)state;
    uint8_t bytes[8 * EXAMPLE_BYTES];
    ty_field f[1] = {ty_field_make("v")};
    ty_stream *stream;
    ty_error err = {0};
    size_t n = 0;
    for (char i = 0; i < 8; i++)
        n += put_example(bytes + n, i);
    bytes[3 * EXAMPLE_BYTES + 20] ^= 1;
    bytes[6 * EXAMPLE_BYTES + 20] ^= 1;
    files_put("x.tfrecord", bytes, n);
    const char *path = files_path("x.tfrecord");
    ty_stream_config c = {.paths = &path, .n_paths = 1, .fields = f, .n_fields = 1, .skip_bad = true, .max_bad = 2};
    assert_ok(ty_stream_open(&c, &stream, &err), &err);
    for (int i = 0; i < 5; i++)
        evaluate(stream, 6);
    assert_int_equal(stream->bad.n, 10);
    ty_stream_close(stream);
}

static void lost_frames_are_refused_all_the_same(void **state)
{
    (void)state;
    uint8_t bytes[4 * EXAMPLE_BYTES];
    ty_dataset *ds;
    ty_error err = {0};
    size_t n = 0;
    for (char i = 0; i < 4; i++)
        n += put_example(bytes + n, i);
    bytes[2 * EXAMPLE_BYTES] ^= 1; /* a length */
    assert_int_equal(open_examples(bytes, n, leaving(100), &ds, &err), -1);
    assert_says(&err, "record 2 at byte 60");
    assert_says(&err, "the checksum of its length");
    bytes[2 * EXAMPLE_BYTES] ^= 1;
    err = (ty_error){0};
    assert_int_equal(open_examples(bytes, n - 1, leaving(100), &ds, &err), -1);
    assert_says(&err, "record 3 at byte 90");
    assert_says(&err, "the file ends within it");
}

/* ---- files that change ---- */

/* A mapped file that is made shorter names itself, where it is read and where it is opened. */
static void a_file_made_shorter_is_named(void **state)
{
    (void)state;
    enum { N = 200000 };
    uint8_t *bytes = malloc((size_t)N * EXAMPLE_BYTES);
    assert_non_null(bytes);
    size_t n = 0;
    for (int i = 0; i < N; i++)
        n += put_example(bytes + n, (char)(i % 100));
    for (int i = 0; i < 3; i++) { /* what is forgotten is no fault of the next one's */
        ty_dataset *ds;
        ty_error err = {0};
        assert_ok(open_examples(bytes, n, (ty_data_source){0}, &ds, &err), &err);
        assert_int_equal(truncate(files_path("x.tfrecord"), 100 * EXAMPLE_BYTES), 0);
        int64_t v[2];
        assert_ok(ty_dataset_read(ds, 0, (int64_t[]){0, 99}, 2, v, &err), &err);
        assert_int_equal(v[1], 99);
        assert_int_equal(ty_dataset_read(ds, 0, (int64_t[]){N - 1, 5}, 2, v, &err), -1);
        assert_says(&err, "expected 6000000 bytes, as when it was opened, found 3000");
        assert_says(&err, "x.tfrecord");
        void *out[1] = {v};
        err = (ty_error){0};
        assert_int_equal(ty_dataset_read_all(ds, &(ty_pick){.sample = (int64_t[]){5}, .n = 1}, out, &err), -1);
        ty_dataset_close(ds);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_learnt_of_what_is_left_out),
        cmocka_unit_test(csv_rows_are_left_out),
        cmocka_unit_test(one_more_than_allowed_is_refused),
        cmocka_unit_test(an_open_quote_is_no_bad_row),
        cmocka_unit_test(libsvm_lines_are_left_out),
        cmocka_unit_test(json_lines_are_left_out),
        cmocka_unit_test(damaged_payloads_are_left_out),
        cmocka_unit_test(a_file_made_shorter_is_named),
        cmocka_unit_test(evaluations_count_anew),
        cmocka_unit_test(lost_frames_are_refused_all_the_same),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
