/* input_table.c - delimited text read in pieces by several threads: always what one reader finds, field by field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/rng.h"
#include "container/input/csv.h"
#include "container/input/header.h"
#include "container/input/number.h"
#include "container/input/map/map.h"
#include "container/input/stream/stream.h"
#include "container/input/table/walk.h"
#include "input_files.h"

#include <math.h>

enum { COLUMNS = 7, MAX_BYTES = 5 << 20 };

static uint64_t drawn;

static uint32_t draw(uint32_t n)
{
    return ty_rng_u32(11, 12, 13, drawn++) % n;
}

typedef struct text {
    char *p;
    size_t n;
} text;

static void add(text *t, const char *s)
{
    size_t n = strlen(s);
    memcpy(t->p + t->n, s, n);
    t->n += n;
}

static const char *a_number(void)
{
    static const char *const forms[] = {"%.9g", "%.17g", "%.3f", "%.6e", "%g", "%.0f", "%.1f"};
    static char out[64];
    static const char *const odd[] = {"",
                                      "NA",
                                      "  12.5 ",
                                      "\"3.5\"",
                                      "\"-7\"",
                                      "inf",
                                      "-nan",
                                      "+4",
                                      "5.",
                                      ".25",
                                      "1e3",
                                      "007",
                                      "-0",
                                      "12345678901234567890",
                                      "0.00000000000000000001",
                                      "1234567890123456"};
    if (draw(12) == 0)
        return odd[draw(sizeof odd / sizeof odd[0])];
    double v = ((double)draw(2000001) - 1e6) / (double)(1 + draw(1000));
    snprintf(out, sizeof out, forms[draw(sizeof forms / sizeof forms[0])], v);
    return out;
}

static const char *a_text(bool stray)
{
    static const char *const plain[] = {"Oslo", "", "a b c", "x", "a text that is a good deal longer than others are"};
    static const char *const quoted[] = {
        "\"New York, NY\"", "\"\"", "\"the \"\"Hague\"\"\"", "\"two\nlines\"", "\"\"\"\"", "\"a\r\n,b\"", "\"\n\n\n\""};
    static const char *const strays[] = {"5\" pipe", "a\"b\"c", "x\"", "o\"\"o"};
    if (stray && draw(300) == 0)
        return strays[draw(4)];
    return draw(3) == 0 ? quoted[draw(7)] : plain[draw(5)];
}

/* Records of 7 columns: numbers in 1, 2, 4 and 6, text in 0 and 3, whole numbers in 5. */
static text make(size_t bytes, bool quotes, bool stray, bool crlf)
{
    text t = {malloc(bytes + 4096), 0};
    char whole[32];
    while (t.n < bytes) {
        for (int c = 0; c < COLUMNS; c++) {
            snprintf(whole, sizeof whole, "%d", (int)draw(1000000) - 500000);
            add(&t, c == 0 || c == 3 ? (quotes ? a_text(stray) : "abc") : c == 5 ? whole : a_number());
            add(&t, c < COLUMNS - 1 ? "," : crlf && draw(9) ? "\r\n" : "\n");
        }
        if (draw(200) == 0)
            add(&t, crlf ? "\r\n\n" : "\n\n");
    }
    if (draw(2))
        t.n--;
    return t;
}

typedef struct reference {
    int64_t n, n_missing, n_not_finite, first_missing, first_not_finite;
    double *x; /* [n, 4] */
    int64_t *whole, *line, min, max;
} reference;

static reference refer(text t)
{
    static const int place[COLUMNS] = {-1, 0, 1, -1, 2, -1, 3};
    reference r = {.first_missing = -1, .first_not_finite = -1, .min = INT64_MAX, .max = INT64_MIN};
    size_t room = t.n / COLUMNS + 1;
    r.x = malloc(room * 4 * sizeof *r.x);
    r.whole = malloc(room * sizeof *r.whole);
    r.line = malloc(room * sizeof *r.line);
    ty_csv c;
    ty_csv_field f;
    assert_int_equal(ty_csv_init(&c, "t", t.p, t.n, ',', NULL), 0);
    for (; ty_csv_more(&c); r.n++) {
        r.line[r.n] = c.line;
        for (int k = 0; k < COLUMNS; k++) {
            assert_int_equal(ty_csv_next(&c, &f, NULL), 0);
            assert_int_equal(f.last, k == COLUMNS - 1);
            const char *p = f.text, *end = p + f.n;
            while (p < end && *p == ' ')
                p++;
            while (end > p && end[-1] == ' ')
                end--;
            if (k == 5)
                assert_ptr_equal(ty_integer_scan(p, end, &r.whole[r.n]), end);
            if (place[k] < 0)
                continue;
            double *v = &r.x[r.n * 4 + place[k]];
            if (ty_csv_is_missing(NULL, p, (size_t)(end - p))) {
                *v = (double)NAN;
                r.first_missing = r.n_missing++ ? r.first_missing : r.n;
                continue;
            }
            assert_ptr_equal(ty_number_scan(p, end, v), end);
            if (!isfinite(*v))
                r.first_not_finite = r.n_not_finite++ ? r.first_not_finite : r.n;
        }
        r.min = r.whole[r.n] < r.min ? r.whole[r.n] : r.min;
        r.max = r.whole[r.n] > r.max ? r.whole[r.n] : r.max;
    }
    return r;
}

static void compare(const ty_dataset *ds, const reference *r)
{
    assert_int_equal(ds->n_samples, r->n);
    assert_int_equal(ds->field[0].n_missing, r->n_missing);
    assert_int_equal(ds->field[0].first_missing, r->first_missing);
    assert_int_equal(ds->field[0].n_not_finite, r->n_not_finite);
    assert_int_equal(ds->field[0].first_not_finite, r->first_not_finite);
    assert_int_equal(ds->field[1].min, r->min);
    assert_int_equal(ds->field[1].max, r->max);
    assert_int_equal(r->whole[ds->field[1].min_sample], r->min);
    for (int64_t i = 0; i < r->n; i++) {
        double x[4];
        int64_t whole;
        char place[600], end[32];
        assert_int_equal(ty_dataset_read(ds, 0, &i, 1, x, NULL), 0);
        assert_int_equal(ty_dataset_read(ds, 1, &i, 1, &whole, NULL), 0);
        for (int k = 0; k < 4; k++)
            if (memcmp(&x[k], &r->x[i * 4 + k], 8) != 0 && !(isnan(x[k]) && isnan(r->x[i * 4 + k])))
                fail_msg("record %lld, value %d: %.17g, expected %.17g", (long long)i, k, x[k], r->x[i * 4 + k]);
        assert_int_equal(whole, r->whole[i]);
        if (i % 997 != 0)
            continue;
        snprintf(end, sizeof end, ":%lld", (long long)r->line[i]);
        ty_dataset_place(ds, 0, i, place, sizeof place);
        assert_string_equal(strrchr(place, ':'), end);
    }
}

static void check(text t)
{
    ty_field fields[2] = {ty_field_make("x"), ty_field_make("whole")};
    fields[0].columns = "1,2,4,6";
    fields[0].dtype = TY_F64;
    fields[1].columns = "5";
    fields[1].dtype = TY_I64;
    fields[0].dtype_given = fields[1].dtype_given = true;
    reference r = refer(t);
    files_put("t.csv", t.p, t.n);
    for (int threads = 1; threads <= 4; threads += threads) {
        ty_dataset *ds;
        ty_error err = {0};
        ty_data_source src = {.csv_header = TY_CSV_HEADER_NO, .csv_delimiter = ',', .n_threads = threads};
        if (files_open("t.csv", fields, 2, src, &ds, &err) < 0)
            fail_msg("%s", files_error(&err));
        compare(ds, &r);
        ty_dataset_close(ds);
    }
    free(r.x);
    free(r.whole);
    free(r.line);
    free(t.p);
}

static void pieces_make_one_table(void **state)
{
    (void)state;
    check(make(MAX_BYTES / 2, true, false, false));
    check(make(MAX_BYTES / 2, true, false, true));
    check(make(MAX_BYTES / 3, false, false, false));
}

static void a_quote_inside_a_field_is_text(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++)
        check(make(MAX_BYTES / 2, true, true, i == 2));
}

static void small_tables_of_every_length(void **state)
{
    (void)state;
    for (size_t bytes = 1; bytes < 600; bytes += 7)
        check(make(bytes, bytes % 2, bytes % 4 == 1, bytes % 3 == 0));
}

/* Of two bad records the first in the file is named, whoever comes upon it first. */
static void the_first_fault_is_told(void **state)
{
    (void)state;
    text t = make(MAX_BYTES / 2, false, false, false);
    size_t places[3] = {t.n / 5, t.n / 2, t.n - 100};
    for (int i = 0; i < 3; i++) {
        char *line = memchr(t.p + places[i], '\n', t.n - places[i]);
        memcpy(line + 1, "abcdefgh,x", 4); /* the text of column 0 runs over the delimiter behind it */
        line[1 + 3] = 'd';
    }
    int64_t line = 1;
    for (const char *p = t.p; p <= t.p + places[0] && (p = memchr(p, '\n', t.n)); p++)
        line++;
    files_put("t.csv", t.p, t.n);
    ty_field field = ty_field_make("x");
    field.columns = "1";
    for (int threads = 1; threads < 4; threads++) {
        ty_dataset *ds;
        ty_error err = {0};
        char expected[32];
        ty_data_source src = {.csv_header = TY_CSV_HEADER_NO, .csv_delimiter = ',', .n_threads = threads};
        assert_int_equal(files_open("t.csv", &field, 1, src, &ds, &err), -1);
        snprintf(expected, sizeof expected, "t.csv:%lld:", (long long)line);
        if (!strstr(files_error(&err), expected))
            fail_msg("expected %s\n%s", expected, files_error(&err));
    }
    free(t.p);
}

/* What Python's csv module reads in the same bytes (tests/golden/csv/make.py). */
static void cells_are_those_of_python(void **state)
{
    (void)state;
    static const char *const names[] = {"quotes", "crlf", "tabs", "random"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[300];
        ty_arena a;
        ty_doc *rows;
        ty_error err = {0};
        ty_file_view view;
        ty_csv c;
        ty_csv_field f;
        ty_arena_init(&a);
        snprintf(path, sizeof path, "tests/golden/csv/%s.json", names[i]);
        assert_int_equal(ty_json_read(&a, path, NULL, &rows, &err), 0);
        snprintf(path, sizeof path, "tests/golden/csv/%s.csv", names[i]);
        assert_int_equal(ty_file_map(path, &view, &err), 0);
        assert_int_equal(ty_csv_init(&c, path, (const char *)view.bytes, view.n_bytes, i == 2 ? '\t' : ',', &err), 0);
        uint32_t r = 0;
        for (; ty_csv_more(&c); r++) {
            assert_true(r < rows->n_items);
            uint32_t k = 0;
            do {
                assert_int_equal(ty_csv_next(&c, &f, &err), 0);
                char *cell = ty_arena_alloc(&a, f.n + 1);
                ty_csv_unquote(&f, cell);
                assert_true(k < rows->items[r].n_items);
                assert_string_equal(cell, rows->items[r].items[k++].string);
            } while (!f.last);
            assert_int_equal(k, rows->items[r].n_items);
        }
        assert_int_equal(r, rows->n_items);
        ty_file_unmap(&view);
        ty_arena_fini(&a);
    }
}

/* ---- what says that there is no value ---- */

/* As pandas' read_csv(na_values=["", "-", "n/a", "-999"], keep_default_na=False) has it, but that a text in quotes is
 * none: numbers count by their value, texts as they are written, and what is usual elsewhere is a text here. */
static const char marked[] = "1.5,7,one,4\n"
                             "-999,-999,-999,-999\n"
                             "-999.0,-,n/a,-\n"
                             ",,,\n"
                             "-999.5,-998,N/A,-9990e-1\n"
                             "9,5,\"n/a\",2\n";
enum { N_MARKED = 6 };

static void marked_fields(ty_arena *a, ty_field f[4])
{
    static const char *const columns[] = {"0", "1", "2", "3"};
    const ty_map_spec text = {
        .field = "text", .way = TY_MAP_VOCABULARY, .scale = 1, .missing = TY_MISSING_TEXT, .missing_text = "none"};
    const ty_map_spec mean = {.field = "mean", .scale = 1, .missing = TY_MISSING_MEAN};
    ty_error err = {0};
    for (int i = 0; i < 4; i++) {
        f[i] = ty_field_make(i == 0 ? "real" : i == 1 ? "whole" : i == 2 ? "text" : "mean");
        f[i].columns = columns[i];
        f[i].missing_given = i < 2;
        f[i].missing = i == 0 ? 100 : 77;
    }
    f[0].scale = 2;
    f[1].dtype_given = true;
    f[1].dtype = TY_I64;
    assert_ok(ty_map_new(&text, a, &f[2].map, &err), &err);
    assert_ok(ty_map_new(&mean, a, &f[3].map, &err), &err);
}

static void expect_marked(const ty_field f[4], const float *real, const int64_t *whole, const int64_t *text,
                          const float *mean)
{
    static const float want_real[] = {3, 200, 200, 200, -1999, 18}, want_mean[] = {4, 3, 3, 3, 3, 2};
    static const int64_t want_whole[] = {7, 77, 77, 77, -998, 5};
    static const char *const want_text[] = {"one", "none", "none", "none", "N/A", "n/a"};
    for (int i = 0; i < N_MARKED; i++) {
        assert_true(real[i] == want_real[i] && mean[i] == want_mean[i]);
        assert_int_equal(whole[i], want_whole[i]);
        assert_string_equal(ty_map_word(f[2].map, text[i]), want_text[i]);
    }
}

static void markers_say_what_is_missing(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "-", "n/a", "-999"};
    const ty_csv_missing missing = {texts, 4};
    ty_arena a;
    ty_field f[4];
    ty_error err = {0};
    ty_dataset *ds;
    ty_stream *s;
    ty_data_feed *feed;
    float real[N_MARKED], mean[N_MARKED];
    int64_t whole[N_MARKED], text[N_MARKED], all[N_MARKED] = {0, 1, 2, 3, 4, 5};
    void *out[] = {real, whole, text, mean};
    ty_arena_init(&a);
    files_puts("marked.csv", marked);
    marked_fields(&a, f);
    assert_ok(files_open("marked.csv", f, 4, (ty_data_source){.csv_missing = missing}, &ds, &err), &err);
    assert_int_equal(ds->field[0].n_missing, 3);
    assert_int_equal(ds->field[1].min, -998);
    assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = all, .n = N_MARKED}, out, &err), &err);
    expect_marked(f, real, whole, text, mean);
    ty_dataset_close(ds);

    marked_fields(&a, f);
    const char *path = files_path("marked.csv");
    ty_stream_config config = {.paths = &path, .n_paths = 1, .fields = f, .n_fields = 4, .csv_missing = missing};
    ty_draft draft = {.samples = all};
    assert_ok(ty_stream_open(&config, &s, &err), &err);
    assert_ok(ty_stream_feed(s, &(ty_stream_order){.n_rows = N_MARKED}, &feed, &err), &err);
    assert_ok(feed->ops->start(feed, (ty_position){0}, 1, &err), &err);
    assert_ok(feed->ops->open_draft(feed, &draft, &err), &err);
    assert_int_equal(feed->ops->take(feed, &draft, &err), 1);
    memset(real, 0, sizeof real);
    memset(whole, 0, sizeof whole);
    assert_ok(feed->ops->fill(feed, &draft, out, &err), &err);
    assert_int_equal(draft.n_valid, N_MARKED);
    expect_marked(f, real, whole, text, mean);
    feed->ops->close_draft(feed, &draft);
    ty_data_feed_close(feed);
    ty_stream_close(s);

    /* What is not listed is no marker. */
    marked_fields(&a, f);
    assert_int_equal(
        files_open("marked.csv", f, 4, (ty_data_source){.csv_missing = {(const char *[]){"?"}, 1}}, &ds, &err), -1);
    assert_non_null(strstr(err.message, "expected a"));
    ty_arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_make_one_table),        cmocka_unit_test(a_quote_inside_a_field_is_text),
        cmocka_unit_test(small_tables_of_every_length), cmocka_unit_test(the_first_fault_is_told),
        cmocka_unit_test(cells_are_those_of_python),    cmocka_unit_test(markers_say_what_is_missing),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
