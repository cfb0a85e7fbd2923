/* input_lines.c - LibSVM and JSON Lines as data sets: what lines mean, what is decided from all of them, refusals. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "container/input/format.h"
#include "container/input/map/map.h"
#include "container/input/stream/stream.h"
#include "input_files.h"

#include <cjson/cJSON.h>
#include <math.h>

static ty_field member(const char *name, const char *of, ty_dtype dtype)
{
    ty_field f = ty_field_make(name);
    f.member = of;
    f.dtype = dtype;
    f.dtype_given = dtype != TY_N_DTYPES;
    return f;
}

/* ---- LibSVM ---- */

static void lines_become_dense_rows(void **state)
{
    (void)state;
    files_puts("d/a.libsvm", "# two files of one channel\n+1 1:0.5 3:-2e-3 # comment\n\n-1:2.5 qid:7 2:1\r\n");
    files_puts("d/b.libsvm", "0.25\n1 4:nan 1:+inf");
    ty_field f[4] = {ty_field_make("label"), ty_field_make("weight"), member("group", "qid", TY_I32),
                     member("x", "features", TY_N_DTYPES)};
    f[2].missing = -1, f[2].missing_given = true;
    ty_dataset *ds;
    ty_error err = {0};
    assert_ok(files_open("d", f, 4, (ty_data_source){0}, &ds, &err), &err);
    assert_string_equal(ds->format, "libsvm");
    assert_int_equal(ds->n_samples, 4);
    assert_int_equal(ds->field[3].type.dim[0], 4);
    assert_int_equal(ds->field[3].n_not_finite, 2);
    static const int64_t all[] = {0, 1, 2, 3};
    static const float labels[] = {1, -1, 0.25f, 1}, weights[] = {1, 2.5f, 1, 1};
    static const int32_t groups[] = {-1, 7, -1, -1};
    float label[4], weight[4], x[4][4];
    int32_t group[4];
    void *const to[] = {label, weight, group, x};
    assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = all, .n = 4}, to, &err), &err);
    assert_memory_equal(label, labels, sizeof labels);
    assert_memory_equal(weight, weights, sizeof weights);
    assert_memory_equal(group, groups, sizeof groups);
    assert_true(x[0][0] == 0.5f && x[0][1] == 0 && x[0][2] == -2e-3f && x[0][3] == 0);
    assert_true(x[1][1] == 1 && x[2][0] == 0 && isinf(x[3][0]) && isnan(x[3][3]));
    char place[600];
    ty_dataset_place(ds, 0, 1, place, sizeof place);
    assert_non_null(strstr(place, "a.libsvm:4"));
    ty_dataset_close(ds);
}

/* Base and width are those of the training data, whatever others have. */
static void what_was_decided_once_stays(void **state)
{
    (void)state;
    files_puts("train.libsvm", "1 0:5 4:6\n0 1:7\n");
    files_puts("small.libsvm", "1 1:8\n");
    files_puts("large.libsvm", "1 1:8\n0 5:1\n");
    ty_field f = member("x", "features", TY_N_DTYPES);
    ty_dataset *train, *other;
    ty_error err = {0};
    int64_t first = 0;
    float x[5];
    assert_ok(files_open("train.libsvm", &f, 1, (ty_data_source){0}, &train, &err), &err);
    assert_int_equal(train->field[0].type.dim[0], 5);
    assert_ok(files_open("small.libsvm", &f, 1, (ty_data_source){.like = train}, &other, &err), &err);
    assert_int_equal(other->field[0].type.dim[0], 5);
    assert_ok(ty_dataset_read(other, 0, &first, 1, x, &err), &err);
    assert_true(x[0] == 0 && x[1] == 8);
    ty_dataset_close(other);
    assert_ok(files_open("small.libsvm", &f, 1, (ty_data_source){0}, &other, &err), &err); /* alone: from one on */
    assert_int_equal(ty_type_elems(&other->field[0].type), 1);
    ty_dataset_close(other);
    assert_int_equal(files_open("large.libsvm", &f, 1, (ty_data_source){.like = train}, &other, &err), -1);
    assert_says(&err, "the index 5 is beyond a row of 5 numbers, whose indexes begin at 0");
    assert_says(&err, "large.libsvm:2");
    err = (ty_error){0};
    assert_int_equal(files_open("train.libsvm", &f, 1, (ty_data_source){.index_base = TY_INDEX_BASE_ONE}, &other, &err),
                     -1);
    assert_says(&err, "index_base: zero");
    f.shape_given = true, f.rank = 1, f.dim[0] = 9;
    assert_ok(files_open("small.libsvm", &f, 1, (ty_data_source){.index_base = TY_INDEX_BASE_ZERO}, &other, &err),
              &err);
    assert_int_equal(other->field[0].type.dim[0], 9);
    ty_dataset_close(other);
    ty_dataset_close(train);
}

/* Indexes of hundreds of millions: whole rows are refused, a part of them and the entries as they stand are read. */
static void wide_rows_are_not_made(void **state)
{
    (void)state;
    const char *path = files_path("wide.libsvm");
    files_puts("wide.libsvm", "1 2:5 60000000:7\n0 1:7\n1 5:1 6:2\n");
    ty_field f = member("x", "features", TY_N_DTYPES);
    f.max_length = 5;
    ty_dataset *ds;
    ty_stream *s;
    ty_error err = {0};
    static const int64_t all[] = {0, 1, 2};
    float x[3][5], wanted[3][5] = {{0, 5, 0, 0, 0}, {7, 0, 0, 0, 0}, {0, 0, 0, 0, 1}};
    assert_ok(files_open("wide.libsvm", &f, 1, (ty_data_source){0}, &ds, &err), &err);
    assert_ok(ty_dataset_read(ds, 0, all, 3, x, &err), &err);
    assert_memory_equal(x, wanted, sizeof x);
    assert_true(ty_dataset_work_bytes(ds) < 10000);
    ty_dataset_close(ds);

    files_puts("wide.libsvm", "1 2:5 300000000:7\n0 1:7\n");
    f.max_length = 0;
    ty_stream_config c = {.paths = &path, .n_paths = 1, .fields = &f, .n_fields = 1};
    assert_int_equal(ty_stream_open(&c, &s, &err), -1);
    assert_says(&err, "dense rows of 300000000 numbers, a place for each index, expected at most 67108864");
    ty_field pairs[2] = {member("i", "ids", TY_N_DTYPES), member("v", "values", TY_N_DTYPES)};
    pairs[0].max_length = pairs[1].max_length = 3;
    int64_t ids[2][3];
    err = (ty_error){0};
    assert_ok(files_open("wide.libsvm", pairs, 2, (ty_data_source){0}, &ds, &err), &err);
    assert_ok(ty_dataset_read(ds, 0, all, 2, ids, &err), &err);
    assert_true(ids[0][1] == 300000000 && ids[0][2] == 0 && ids[1][0] == 1);
    ty_dataset_close(ds);
}

static void entries_become_ids_and_values(void **state)
{
    (void)state;
    files_puts("clicks.libsvm", "1 7:0.5 3:1\n0 2:4 117565:-1\n");
    ty_field f[2] = {member("feat_ids", "ids", TY_N_DTYPES), member("feat_vals", "values", TY_N_DTYPES)};
    ty_dataset *ds;
    ty_error err = {0};
    assert_ok(files_open("clicks.libsvm", f, 2, (ty_data_source){0}, &ds, &err), &err);
    assert_int_equal(ds->field[0].type.dtype, TY_I64);
    assert_int_equal(ds->field[0].max, 117565);
    static const int64_t both[] = {1, 0};
    int64_t ids[2][2];
    float values[2][2];
    assert_ok(ty_dataset_read(ds, 0, both, 2, ids, &err), &err);
    assert_ok(ty_dataset_read(ds, 1, both, 2, values, &err), &err);
    assert_true(ids[0][1] == 117565 && values[0][1] == -1);
    assert_true(ids[1][0] == 7 && ids[1][1] == 3 && values[1][0] == 0.5f); /* fields in their order */
    ty_dataset_close(ds);
    files_puts("clicks.libsvm", "1 7:0.5 7:1 # twice\n0:2 qid:3 2:4  117565:-1 \n");
    assert_ok(files_open("clicks.libsvm", f, 2, (ty_data_source){0}, &ds, &err), &err);
    assert_ok(ty_dataset_read(ds, 0, both, 2, ids, &err), &err);
    assert_true(ids[1][0] == 7 && ids[1][1] == 7);
    ty_dataset_close(ds);
    files_puts("uneven.libsvm", "1 7:0.5 3:1\n0 2:4\n");
    assert_int_equal(files_open("uneven.libsvm", f, 2, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "expected 2 values, found 1");
    assert_says(&err, "uneven.libsvm:2");
    f[0].max_length = f[1].max_length = 3;
    assert_ok(files_open("uneven.libsvm", f, 2, (ty_data_source){0}, &ds, &err), &err);
    assert_int_equal(ds->field[0].type.dim[0], 3);
    assert_ok(ty_dataset_read(ds, 0, (const int64_t[]){0}, 1, (int64_t[3]){0}, &err), &err);
    ty_dataset_close(ds);
    files_puts("uneven.libsvm", "1 7:0.5 7:1\n0 2:4\n");
    assert_int_equal(files_open("uneven.libsvm", f, 2, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "the index 7 stands twice");
}

/* An index alone is 1, and of a repeated index the last counts. */
static void lenient_lines_are_read(void **state)
{
    (void)state;
    files_puts("loose.libsvm", "1 7 3:2 7:4\n0 1:5 2:6\n");
    ty_field f[3] = {member("x", "features", TY_N_DTYPES), member("i", "ids", TY_N_DTYPES),
                     member("v", "values", TY_N_DTYPES)};
    ty_dataset *ds;
    ty_error err = {0};
    assert_int_equal(files_open("loose.libsvm", f, 3, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "strict: false");
    err = (ty_error){0};
    assert_ok(files_open("loose.libsvm", f, 3, (ty_data_source){.lenient = true}, &ds, &err), &err);
    static const int64_t both[] = {0, 1};
    int64_t ids[4];
    float values[4], rows[14], want[14] = {0, 0, 2, 0, 0, 0, 4, 5, 6};
    assert_ok(ty_dataset_read(ds, 0, both, 2, rows, &err), &err);
    assert_ok(ty_dataset_read(ds, 1, both, 2, ids, &err), &err);
    assert_ok(ty_dataset_read(ds, 2, both, 2, values, &err), &err);
    assert_memory_equal(rows, want, sizeof rows);
    assert_true(ids[0] == 3 && ids[1] == 7 && values[0] == 2 && values[1] == 4 && ids[3] == 2 && values[3] == 6);
    assert_true(ds->index.given && ds->index.base == 1 && ds->index.width == 7);
    ty_dataset_close(ds);
    /* What a model was trained with holds for what is read later. */
    ty_data_source later = {.lenient = true, .index = {true, 0, 9}};
    assert_ok(files_open("loose.libsvm", f, 1, later, &ds, &err), &err);
    assert_int_equal(ds->field[0].type.dim[0], 9);
    assert_int_equal(ds->index.base, 0);
    ty_dataset_close(ds);
    later.index.width = 7;
    assert_int_equal(files_open("loose.libsvm", f, 1, later, &ds, &err), -1);
    assert_says(&err, "the index 7 is beyond a row of 7 numbers, whose indexes begin at 0");
}

static void wrong_lines_are_refused_with_their_number(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says[2];
    } rows[] = {{"1 1:1\nx 1:1\n", {"expected a label, found \"x\"", ":2"}},
                {"1 1:1 1:2\n", {"the index 1 stands twice", ":1"}},
                {"1 5:1 2:0 5:2\n", {"the index 5 stands twice", ":1"}},
                {"1 -1:2\n", {"expected an index", ":1"}},
                {"1 7\n", {"expected index:value, found \"7\"", "7:1"}},
                {"1 7:\n", {"expected a value behind the index", ":1"}},
                {"1 7:a\n", {"expected a value behind the index, found \"a\"", ":1"}},
                {"1 7:1x\n", {"expected a blank behind the value, found \"x\"", ":1"}},
                {"1 99999999999999999999:1\n", {"expected an index", ":1"}},
                {"1 9000000000000000000:1\n", {"dense rows of 9000000000000000000 numbers", ":1"}},
                {"0 1:1\n1 300000000:1\n", {"fields ids and values, each with max_length: N", ":2"}},
                {"1: 2:1\n", {"expected a weight", ":1"}},
                {"1 qid:x 2:1\n", {"whole number behind qid:", ":1"}},
                {"1 qid:3x 2:1\n", {"blank behind the qid", ":1"}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_field f = member("x", "features", TY_N_DTYPES);
        ty_dataset *ds;
        ty_error err = {0};
        files_puts("wrong.libsvm", rows[i].text);
        assert_int_equal(files_open("wrong.libsvm", &f, 1, (ty_data_source){0}, &ds, &err), -1);
        assert_says(&err, rows[i].says[0]);
        assert_says(&err, rows[i].says[1]);
    }
    ty_field f = ty_field_make("features.x");
    ty_dataset *ds;
    ty_error err = {0};
    assert_int_equal(files_open("wrong.libsvm", &f, 1, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "label, weight, qid, features, ids and values");
}

static void text_is_told_apart_by_its_first_line(void **state)
{
    (void)state;
    static const struct {
        const char *text, *want;
    } rows[] = {
        {"1 1:2\n", "libsvm"}, {"# c\n\n-1.5 qid:3 7:1\n", "libsvm"}, {"1,2:3\n", "csv"},           {"a b c\n", "csv"},
        {"1\n0 1:1\n", "csv"}, {"{\"a\": 1}\n", "jsonlines"},         {"  {\"a\": 1}", "jsonlines"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        files_puts("part-0", rows[i].text);
        ty_data_file file = {.path = files_path("part-0"), .name = "part-0"};
        const ty_format *format;
        ty_error err = {0};
        assert_ok(ty_format_detect(&(ty_data_source){0}, &file, 1, &format, &err), &err);
        assert_string_equal(format->name, rows[i].want);
    }
}

/* ---- JSON Lines ---- */

static void objects_become_samples(void **state)
{
    (void)state;
    files_puts("j.jsonl",
               "{\"id\": 9007199254740993, \"text\": \"a\\\"b\", \"m\": [[1, 2.5], [-3e1, true]], \"y\": 1}\n"
               "\n{\"y\":0,\"m\":[[4,5],[6,7]],\"id\":-2,\"nested\":{\"m\":[1,{\"y\":2}]}}\r\n"
               "{\"m\": [[0, 0], [0, 0]], \"id\": 3, \"y\": null}");
    ty_field f[3] = {member("id", NULL, TY_I64), member("matrix", "m", TY_N_DTYPES), member("y", NULL, TY_U8)};
    f[1].shape_given = true, f[1].rank = 2, f[1].dim[0] = f[1].dim[1] = 2;
    f[2].missing = 9, f[2].missing_given = true;
    ty_dataset *ds;
    ty_error err = {0};
    assert_ok(files_open("j.jsonl", f, 3, (ty_data_source){0}, &ds, &err), &err);
    assert_int_equal(ds->n_samples, 3);
    static const int64_t all[] = {0, 1, 2};
    int64_t id[3];
    float m[3][4];
    uint8_t y[3];
    void *const to[] = {id, m, y};
    assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = all, .n = 3}, to, &err), &err);
    assert_true(id[0] == 9007199254740993 && id[1] == -2);
    assert_true(m[0][1] == 2.5f && m[0][2] == -30 && m[0][3] == 1 && m[1][3] == 7);
    assert_true(y[0] == 1 && y[1] == 0 && y[2] == 9);
    ty_dataset_close(ds);
}

static void wrong_objects_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says[2];
    } rows[] = {{"[1]\n", {"no JSON object", "j.jsonl:1"}},
                {"{\"x\": 1}\n{\"x\": 1\n", {"malformed at column 8", "j.jsonl:2"}},
                {"{\"x\": 1} 2\n", {"malformed at column 10", ":1"}},
                {"{\"x\" 1}\n", {"malformed at column", ":1"}},
                {"{\"x\": [1,]}\n", {"list is malformed", ":1"}},
                {"{\"x\": \"1\"}\n", {"list is malformed", ":1"}},
                {"{\"x\": [1 2]}\n", {"list is malformed", ":1"}},
                {"{\"x\": 1}\n{\"x\": [1, 2]}\n", {"expected 1 values, found 2", ":2"}},
                {"{\"x\": 1}\n{\"y\": 2}\n", {"the record has no \"x\"", ":2"}},
                {"{\"x\": \"a\n", {"malformed", ":1"}},
                {"{\"x\": {\"a\": [}]}}\n", {"malformed", ":1"}}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_field f = ty_field_make("x");
        ty_dataset *ds;
        ty_error err = {0};
        files_puts("j.jsonl", rows[i].text);
        assert_int_equal(files_open("j.jsonl", &f, 1, (ty_data_source){0}, &ds, &err), -1);
        assert_says(&err, rows[i].says[0]);
        assert_says(&err, rows[i].says[1]);
    }
}

/* ---- what others wrote ---- */

static void vectors_are_read_as_expected(void **state)
{
    (void)state;
    const char *edge = files_vector("libsvm/edge.libsvm");
    if (edge == NULL) {
        print_message("skip: no shared data at TY_SHARED or ../shared\n");
        skip();
    }
    static const struct {
        const char *file, *place;
    } bad[] = {{"bad_value", ".libsvm:2"}, {"bad_negative_index", ".libsvm:1"}, {"bad_missing_colon", ".libsvm:1"}};
    ty_field f = member("x", "features", TY_N_DTYPES);
    ty_data_source src = {.paths = &edge, .n_paths = 1, .fields = &f, .n_fields = 1};
    ty_dataset *ds;
    ty_error err = {0};
    assert_ok(ty_dataset_open(&src, &ds, &err), &err);
    assert_int_equal(ds->n_samples, 8);
    int64_t first = 0;
    float x[256];
    assert_in_range(ty_type_elems(&ds->field[0].type), 8, 256);
    assert_ok(ty_dataset_read(ds, 0, &first, 1, x, &err), &err);
    assert_true(x[0] == 0.5f && x[2] == -0.002f && x[6] == 4);
    ty_dataset_close(ds);
    for (size_t i = 0; i < 3; i++) {
        char name[100];
        snprintf(name, sizeof name, "libsvm/%s.libsvm", bad[i].file);
        const char *path = files_vector(name);
        src.paths = &path;
        err = (ty_error){0};
        assert_int_equal(ty_dataset_open(&src, &ds, &err), -1);
        assert_says(&err, bad[i].place);
    }
    const char *train = files_shared("agaricus-libsvm/agaricus.txt.train");
    if (train == NULL)
        return;
    src.paths = &train;
    assert_ok(ty_dataset_open(&src, &ds, &err), &err);
    assert_string_equal(ds->format, "libsvm");
    assert_int_equal(ds->n_samples, 6513);
    ty_dataset_close(ds);
}

/* A dense row is as wide as its farthest column says; to open the data costs what stands in them all the same. */
static void a_far_column_costs_nothing_to_open(void **state)
{
    (void)state;
    char *text = malloc(1 << 20);
    size_t n = 0;
    for (int i = 0; i < 20000; i++)
        n += (size_t)sprintf(text + n, "%d 1:%d 7:0.5 %d:-2e-3\n", i % 2, i, i == 777 ? 60000000 : 9);
    files_put("far.libsvm", text, n);
    free(text);
    ty_field f = ty_field_make("features");
    ty_dataset *ds;
    ty_error err = {0};
    assert_ok(files_open("far.libsvm", &f, 1, (ty_data_source){0}, &ds, &err), &err);
    assert_int_equal(ds->field[0].type.dim[0], 60000000);
    assert_int_equal(ds->n_samples, 20000);
    ty_dataset_close(ds);
}

/* Values are strtod's, and all fields of a line are of the same entries. */
static void entries_are_what_stands_there(void **state)
{
    (void)state;
    enum { LINES = 3000, MOST = 30 };
    static const char *const forms[] = {"%g", "%.9g", "%.17g", "%.0f", "%.3f", "%.4e"};
    char *text = malloc(LINES * MOST * 40);
    float *want = calloc(LINES * MOST, sizeof *want);
    int64_t *ids = calloc(LINES * MOST, sizeof *ids);
    size_t n = 0;
    uint64_t drawn = 0;
    for (int i = 0; i < LINES; i++) {
        int entries = (int)(ty_rng_u32(3, 4, 5, drawn++) % (MOST + 1)), index = 0;
        n += (size_t)sprintf(text + n, "%d", i);
        for (int k = 0; k < entries; k++) {
            uint32_t r = ty_rng_u32(3, 4, 5, drawn++);
            char value[64];
            index += 1 + (int)(r % 1000);
            snprintf(value, sizeof value, forms[r % 6], ((double)r - 2e9) / 1e6 / (1 + r % 977));
            n += (size_t)sprintf(text + n, "%s%d:%s", r % 13 ? " " : "\t ", index, value);
            ids[i * MOST + k] = index;
            want[i * MOST + k] = (float)strtod(value, NULL);
        }
        n += (size_t)sprintf(text + n, i % 7 ? "\n" : i % 2 ? " \r\n" : " # 5:6\n");
    }
    files_put("random.libsvm", text, n);
    ty_field f[3] = {ty_field_make("label"), ty_field_make("ids"), ty_field_make("values")};
    f[1].max_length = f[2].max_length = MOST;
    ty_dataset *ds;
    ty_error err = {0};
    assert_ok(files_open("random.libsvm", f, 3, (ty_data_source){0}, &ds, &err), &err);
    assert_int_equal(ds->n_samples, LINES);
    for (int64_t i = 0; i < LINES; i++) {
        float label, values[MOST];
        int64_t found[MOST];
        void *to[3] = {&label, found, values};
        assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = &i, .n = 1}, to, &err), &err);
        assert_true(label == (float)i);
        assert_memory_equal(found, ids + i * MOST, sizeof found);
        assert_memory_equal(values, want + i * MOST, sizeof values);
    }
    ty_dataset_close(ds);
    free(text);
    free(want);
    free(ids);
}

/* ---- plain text ---- */

static ty_map *map_of(ty_arena *a, ty_map_spec spec)
{
    ty_map *map = NULL;
    ty_error err = {0};
    spec.scale = 1;
    assert_ok(ty_map_new(&spec, a, &map, &err), &err);
    return map;
}

/* Words of a line, as ids of a vocabulary that is learnt; the line as a whole, hashed. */
static void declare_texts(ty_arena *a, ty_field f[2])
{
    f[0] = member("words", "text", TY_N_DTYPES);
    f[0].map = map_of(a, (ty_map_spec){.field = "words",
                                       .way = TY_MAP_VOCABULARY,
                                       .n_oov = 1,
                                       .split = ' ',
                                       .max_length = 3,
                                       .pad = 9,
                                       .missing = TY_MISSING_TEXT,
                                       .missing_text = ""});
    f[1] = ty_field_make("text");
    f[1].map = map_of(a, (ty_map_spec){.field = "text",
                                       .way = TY_MAP_HASH,
                                       .bins = INT64_C(1) << 40,
                                       .missing = TY_MISSING_TEXT,
                                       .missing_text = ""});
}

static void put_texts(void)
{
    files_puts("texts/a.txt", "\xef\xbb\xbf"
                              "a b a\r\n\n  \nb a d c");
    files_puts("texts/b.txt", "\n\na\n");
}

static void plain_lines_become_samples(void **state)
{
    (void)state;
    ty_arena a;
    ty_field f[2];
    ty_dataset *ds;
    ty_error err = {0};
    int64_t words[3][3], hash[3];
    char place[600];
    ty_arena_init(&a);
    put_texts();
    declare_texts(&a, f);
    assert_ok(files_open("texts", f, 2, (ty_data_source){.format = "lines"}, &ds, &err), &err);
    assert_string_equal(ds->format, "lines");
    assert_int_equal(ds->n_samples, 3);
    static const int64_t all[] = {0, 1, 2}, wanted[] = {1, 2, 1, 2, 1, 3, 1, 9, 9}; /* a: 4 times, b: 2; d before c */
    void *const to[] = {words, hash};
    assert_ok(ty_dataset_read_all(ds, &(ty_pick){.sample = all, .n = 3}, to, &err), &err);
    assert_memory_equal(words, wanted, sizeof wanted);
    assert_true(hash[0] != hash[1] && hash[1] != hash[2]);
    ty_dataset_place(ds, 0, 1, place, sizeof place);
    assert_non_null(strstr(place, "a.txt:4"));
    ty_dataset_close(ds);
    ty_arena_fini(&a);
}

static void blank_lines_are_samples_where_asked_for(void **state)
{
    (void)state;
    ty_arena a;
    ty_field f[2];
    ty_dataset *ds;
    ty_error err = {0};
    int64_t hash[7];
    static const int64_t all[] = {0, 1, 2, 3, 4, 5, 6};
    ty_arena_init(&a);
    put_texts();
    declare_texts(&a, f);
    assert_ok(files_open("texts", f, 2, (ty_data_source){.format = "lines", .blank_lines = true}, &ds, &err), &err);
    assert_int_equal(ds->n_samples, 7);
    assert_ok(ty_dataset_read(ds, 1, all, 7, hash, &err), &err);
    assert_true(hash[1] == hash[4] && hash[4] == hash[5] && hash[1] != hash[0] && hash[1] != hash[6]);
    ty_dataset_close(ds);
    ty_arena_fini(&a);
}

/* A stream of them gives what the data set gives, with what that has learnt. */
static void plain_lines_stream(void **state)
{
    (void)state;
    enum { N = 7 };
    ty_arena a;
    ty_field f[2];
    ty_dataset *ds;
    ty_stream *s;
    ty_data_feed *feed;
    ty_error err = {0};
    int64_t samples[N], words[N][3], hash[N], from_files[N];
    static const int64_t all[] = {0, 1, 2, 3, 4, 5, 6};
    ty_arena_init(&a);
    put_texts();
    declare_texts(&a, f);
    for (int blank = 0; blank < 2; blank++) {
        ty_data_source src = {.format = "lines", .blank_lines = blank};
        assert_ok(files_open("texts", f, 2, src, &ds, &err), &err);
        int n = (int)ds->n_samples;
        assert_ok(ty_dataset_read(ds, 1, all, n, from_files, &err), &err);
        ty_dataset_close(ds);
        const char *path = files_path("texts");
        ty_stream_config c = {
            .paths = &path, .n_paths = 1, .format = "lines", .blank_lines = blank, .fields = f, .n_fields = 2};
        ty_stream_order order = {.n_rows = N, .tail = TY_TAIL_PAD};
        assert_ok(ty_stream_open(&c, &s, &err), &err);
        assert_ok(ty_stream_feed(s, &order, &feed, &err), &err);
        ty_draft draft = {.samples = samples};
        void *out[] = {words, hash};
        if (feed->ops->open_draft)
            assert_ok(feed->ops->open_draft(feed, &draft, &err), &err);
        assert_ok(feed->ops->start(feed, (ty_position){0, 0}, 1, &err), &err);
        assert_int_equal(feed->ops->take(feed, &draft, &err), 1);
        assert_ok(feed->ops->fill(feed, &draft, out, &err), &err);
        assert_int_equal(draft.n_valid, n);
        assert_memory_equal(hash, from_files, (size_t)n * sizeof *hash);
        if (feed->ops->close_draft)
            feed->ops->close_draft(feed, &draft);
        ty_data_feed_close(feed);
        ty_stream_close(s);
    }
    ty_arena_fini(&a);
}

static void lines_are_texts_and_nothing_else(void **state)
{
    (void)state;
    ty_arena a;
    ty_field f[2];
    ty_dataset *ds;
    ty_error err = {0};
    ty_data_source src = {.format = "lines"};
    ty_arena_init(&a);
    put_texts();
    declare_texts(&a, f);
    f[0].member = "label";
    assert_int_equal(files_open("texts", f, 2, src, &ds, &err), -1);
    assert_says(&err, "lines have no \"label\"");
    f[0].member = "text";
    f[0].map = NULL;
    err = (ty_error){0};
    assert_int_equal(files_open("texts", f, 2, src, &ds, &err), -1);
    assert_says(&err, "nothing says what becomes of the text");
    f[0].map = map_of(&a, (ty_map_spec){.field = "words", .normalize = TY_NORMALIZE_STANDARD});
    err = (ty_error){0};
    assert_int_equal(files_open("texts", f, 1, src, &ds, &err), -1);
    assert_says(&err, "a.txt:1");
    ty_arena_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_far_column_costs_nothing_to_open),
        cmocka_unit_test(entries_are_what_stands_there),
        cmocka_unit_test(lines_become_dense_rows),
        cmocka_unit_test(what_was_decided_once_stays),
        cmocka_unit_test(wide_rows_are_not_made),
        cmocka_unit_test(entries_become_ids_and_values),
        cmocka_unit_test(lenient_lines_are_read),
        cmocka_unit_test(wrong_lines_are_refused_with_their_number),
        cmocka_unit_test(text_is_told_apart_by_its_first_line),
        cmocka_unit_test(objects_become_samples),
        cmocka_unit_test(wrong_objects_are_refused),
        cmocka_unit_test(plain_lines_become_samples),
        cmocka_unit_test(blank_lines_are_samples_where_asked_for),
        cmocka_unit_test(plain_lines_stream),
        cmocka_unit_test(lines_are_texts_and_nothing_else),
        cmocka_unit_test_setup(vectors_are_read_as_expected, files_golden_vectors),
        cmocka_unit_test_setup(vectors_are_read_as_expected, files_shared_vectors),
    };
    return cmocka_run_group_tests_name("input_lines", tests, files_setup, files_teardown);
}
