/* text_lists.c - lists of texts in Parquet and Arrow (tests/golden/words), by number and as streams, beside the same
 * rows in JSON Lines; as nothing of ours has counted them; what is refused, and where.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "container/input/image/plan.h"
#include "container/input/map/map.h"
#include "container/input/prefetch.h"
#include "container/input/stream/stream.h"
#include "container/input/survey.h"
#include "golden_file.h"
#include "input_files.h"

enum { ROWS = 60, LENGTH = 8, BATCH = 7, N_FIELDS = 8, MAX_ROW = 1 << 14 };

static ty_arena maps; /* of one test */
static char tokenizer[512];

static void put_tokenizer(void)
{
    files_puts(
        "tokenizer.json",
        "{\"pre_tokenizer\": {\"type\": \"Whitespace\"}, \"post_processor\": {\"type\": \"BertProcessing\", "
        "\"cls\": [\"[CLS]\", 8], \"sep\": [\"[SEP]\", 9]}, \"model\": {\"type\": \"WordLevel\", \"unk_token\": "
        "\"?\", \"vocab\": {\"?\": 0, \"EU\": 1, \"rejects\": 2, \"New\": 3, \"York\": 4, \"none\": 5, \".\": 6, "
        "\"a\": 7}}}");
    snprintf(tokenizer, sizeof tokenizer, "%s", files_path("tokenizer.json"));
}

static void take(const char *name, const char *as)
{
    ty_buf bytes;
    golden_read("words", name, &bytes);
    files_put(as, bytes.data, bytes.len);
    ty_buf_fini(&bytes);
}

static ty_field mapped(const char *name, const char *member, ty_map_spec spec)
{
    ty_field f = ty_field_make(name);
    ty_error err = {0};
    f.member = member;
    spec.field = name, spec.scale = 1.0;
    assert_ok(ty_map_new(&spec, &maps, &f.map, &err), &err);
    return f;
}

static ty_field classes(void)
{
    return mapped("classes", "tokens",
                  (ty_map_spec){.way = TY_MAP_CLASSES,
                                .missing = TY_MISSING_TEXT,
                                .missing_text = "none",
                                .max_length = LENGTH,
                                .pad = -1});
}

/* All that a text may become, of the last words as of the first, of no word at all, and of lists in lists. */
static void declare(ty_field f[N_FIELDS])
{
    f[0] = classes();
    f[1] = mapped("words", "tokens",
                  (ty_map_spec){.way = TY_MAP_VOCABULARY,
                                .missing = TY_MISSING_MOST_FREQUENT,
                                .max_size = 6,
                                .n_oov = 1,
                                .max_length = LENGTH});
    f[2] = mapped("last", "tokens",
                  (ty_map_spec){.way = TY_MAP_HASH,
                                .bins = 1000,
                                .missing = TY_MISSING_TEXT,
                                .missing_text = "",
                                .max_length = 320,
                                .left = true});
    f[3] = mapped("said", NULL,
                  (ty_map_spec){.way = TY_MAP_HASH,
                                .bins = 7,
                                .missing = TY_MISSING_TEXT,
                                .missing_text = "none",
                                .one_hot = 7,
                                .one_row = true});
    f[4] = ty_field_make("label");
    f[4].dtype = TY_I64, f[4].dtype_given = true;
    ty_map_spec pieces = {.way = TY_MAP_TOKENIZER,
                          .tokenizer = tokenizer,
                          .missing = TY_MISSING_TEXT,
                          .missing_text = "none",
                          .max_length = 16};
    f[5] = mapped("pieces", "tokens", pieces);
    pieces.parts = 1u << TY_PART_SECOND;
    f[6] = mapped("pair", "tokens", pieces);
    pieces.way = TY_MAP_TAGS;
    f[7] = mapped("tags", NULL, pieces);
    f[6].part[TY_PART_SECOND] = f[7].part[TY_PART_SECOND] = "tokens";
}

static const struct {
    const char *from, *to, *path;
} files[] = {{"lists1.parquet", "p/1.parquet", "p"},
             {"lists2.parquet", "p/2.parquet", "p"},
             {"lists1.arrow", "a/1.arrow", "a"},
             {"lists2.arrow", "a/2.arrow", "a"},
             {"coded.arrow", "coded.arrow", "coded.arrow"},
             {"views.arrow", "views.arrow", "views.arrow"},
             {"saved/data-00000-of-00002.arrow", "saved/1.arrow", "saved"},
             {"saved/data-00001-of-00002.arrow", "saved/2.arrow", "saved"}};
static const char *const tables[] = {"p", "a", "coded.arrow", "views.arrow", "saved"};

static int setup(void **state)
{
    ty_arena_init(&maps);
    if (files_setup(state) < 0)
        return -1;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        take(files[i].from, files[i].to);
    take("words.jsonl", "words.jsonl");
    put_tokenizer();
    return 0;
}

static int teardown(void **state)
{
    ty_arena_fini(&maps);
    return files_teardown(state);
}

/* ---- as JSON Lines ---- */

/* Each has learnt for itself. */
static ty_dataset *open_lines(ty_field f[N_FIELDS])
{
    ty_dataset *ds;
    ty_error err = {0};
    declare(f);
    assert_ok(files_open("words.jsonl", f, N_FIELDS, (ty_data_source){0}, &ds, &err), &err);
    assert_true(ds->n_samples == ROWS);
    return ds;
}

static void check_row(const char *path, const ty_dataset *lines, int64_t sample, int field, const void *found)
{
    char wanted[MAX_ROW];
    ty_error err = {0};
    assert_true(lines->field[field].row_bytes <= sizeof wanted);
    assert_ok(ty_dataset_read(lines, field, &sample, 1, wanted, &err), &err);
    if (memcmp(wanted, found, lines->field[field].row_bytes) != 0)
        fail_msg("%s: row %lld of \"%s\" is another", path, (long long)sample, lines->field[field].name);
}

static void rows_are_those_of_json_lines(void **state)
{
    (void)state;
    ty_field f[2][N_FIELDS];
    ty_dataset *lines = open_lines(f[0]), *ds;
    for (size_t k = 0; k < sizeof tables / sizeof tables[0]; k++)
        for (int threads = 1; threads < 4; threads += 2) {
            ty_error err = {0};
            char found[MAX_ROW];
            declare(f[1]);
            assert_ok(files_open(tables[k], f[1], N_FIELDS, (ty_data_source){.n_threads = threads, .span_bytes = 1},
                                 &ds, &err),
                      &err);
            assert_true(ds->n_samples == ROWS);
            for (int i = 0; i < N_FIELDS; i++) {
                assert_memory_equal(&ds->field[i].type, &lines->field[i].type, sizeof ds->field[i].type);
                for (int64_t row = 0; row < ROWS; row++) {
                    assert_ok(ty_dataset_read(ds, i, &row, 1, found, &err), &err);
                    check_row(tables[k], lines, row, i, found);
                }
            }
            ty_dataset_close(ds);
        }
    ty_dataset_close(lines);
}

static int64_t check_stream(const char *name, size_t block_bytes, const ty_dataset *lines)
{
    ty_field f[N_FIELDS];
    const char *path = files_path(name);
    ty_stream *s;
    ty_data_feed *feed;
    ty_prefetch *prefetch;
    const ty_batch *b;
    ty_error err = {0};
    int64_t seen = 0;
    declare(f);
    ty_stream_config c = {.paths = &path, .n_paths = 1, .fields = f, .n_fields = N_FIELDS, .block_bytes = block_bytes};
    ty_stream_order order = {.n_rows = BATCH, .tail = TY_TAIL_PAD};
    assert_ok(ty_stream_open(&c, &s, &err), &err);
    assert_ok(ty_stream_feed(s, &order, &feed, &err), &err);
    assert_ok(ty_prefetch_start(&(ty_prefetch_config){.feed = feed, .until_epoch = 1, .n_workers = 2}, &prefetch, &err),
              &err);
    while (ty_prefetch_next(prefetch, &b, &err) == 0 && b) {
        for (int row = 0; row < b->n_valid; row++, seen++)
            for (int i = 0; i < N_FIELDS; i++)
                check_row(name, lines, seen, i,
                          (const char *)b->field[i].data + (size_t)row * lines->field[i].row_bytes);
        ty_prefetch_release(prefetch, b);
    }
    assert_ok(err.code ? -1 : 0, &err);
    ty_prefetch_stop(prefetch);
    ty_data_feed_close(feed);
    ty_stream_close(s);
    return seen;
}

static void streams_are_those_of_json_lines(void **state)
{
    static const size_t blocks[] = {0, 24, 61, 1000};
    (void)state;
    ty_field f[N_FIELDS];
    ty_dataset *lines = open_lines(f);
    for (size_t k = 0; k < sizeof tables / sizeof tables[0]; k++)
        for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
            assert_int_equal(check_stream(tables[k], blocks[i], lines), ROWS);
    ty_dataset_close(lines);
}

/* By pyarrow and Python. */
static void classes_are_as_others_count_them(void **state)
{
    (void)state;
    ty_buf text;
    golden_read("words", "classes.txt", &text);
    ty_buf_addc(&text, 0);
    for (size_t k = 0; k < sizeof tables / sizeof tables[0]; k++) {
        ty_field f = classes();
        ty_dataset *ds;
        ty_error err = {0};
        char *p = text.data;
        int64_t ids[LENGTH];
        assert_ok(files_open(tables[k], &f, 1, (ty_data_source){0}, &ds, &err), &err);
        for (int64_t row = 0; row < ROWS; row++) {
            assert_ok(ty_dataset_read(ds, 0, &row, 1, ids, &err), &err);
            for (int i = 0; i < LENGTH; i++)
                assert_int_equal(ids[i], strtoll(p, &p, 10));
        }
        assert_string_equal(p, "\n");
        ty_dataset_close(ds);
    }
    ty_buf_fini(&text);
}

/* ---- how many, and how long ---- */

static int64_t sum_of(const char *name, ty_measure what)
{
    ty_map_spec spec = {
        .way = TY_MAP_LENGTH, .measure = what, .in_all = true, .missing = TY_MISSING_TEXT, .missing_text = ""};
    ty_field f = mapped("n", "tokens", spec);
    ty_dataset *ds;
    ty_error err = {0};
    int64_t sum = 0, n;
    assert_ok(files_open(name, &f, 1, (ty_data_source){0}, &ds, &err), &err);
    assert_true(ds->field[0].type.rank == 0 && ds->field[0].type.dtype == TY_I64);
    for (int64_t row = 0; row < ds->n_samples; row++) {
        assert_ok(ty_dataset_read(ds, 0, &row, 1, &n, &err), &err);
        sum += n;
    }
    ty_dataset_close(ds);
    return sum;
}

static void lists_are_measured_as_a_whole(void **state)
{
    (void)state;
    files_puts("n.jsonl", "{\"tokens\": [\"K\\u00f6ln am\", null, \"\"]}\n{\"tokens\": []}\n{\"tokens\": null}\n"
                          "{\"tokens\": [\"a b c\"]}\n");
    assert_int_equal(sum_of("n.jsonl", TY_MEASURE_TEXTS), 4);
    assert_int_equal(sum_of("n.jsonl", TY_MEASURE_CHARACTERS), 12);
    assert_int_equal(sum_of("n.jsonl", TY_MEASURE_WORDS), 5);
    assert_int_equal(sum_of("n.jsonl", TY_MEASURE_FAULTS), 0);
    for (ty_measure what = TY_MEASURE_CHARACTERS; what <= TY_MEASURE_TEXTS; what++)
        for (size_t k = 0; k < sizeof tables / sizeof tables[0]; k++)
            assert_int_equal(sum_of(tables[k], what), sum_of("words.jsonl", what));
}

static void surveys_tell_lists_of_texts(void **state)
{
    static const struct {
        const char *file, *names, *left_out;
        int text, list; /* which of the parts are, as bits */
    } rows[] = {{"p/1.parquet", "tokens tags said label ", "", 5, 7},
                {"a/2.arrow", "tokens tags said label ", "", 5, 7},
                {"coded.arrow", "tokens tags said label ", "", 5, 7},
                {"saved", "tokens tags said label ", "", 5, 7},
                {"texts.parquet", "tokens label ", "", 1, 0},
                {"album.parquet", "album.path label ", "album.bytes", 1, 1}};
    (void)state;
    take("texts.parquet", "texts.parquet"), take("album.parquet", "album.parquet");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ty_data_survey s;
        ty_error err = {0};
        char names[200] = "";
        int text = 0, list = 0;
        const char *path = files_path(rows[i].file);
        assert_ok(ty_data_survey_make(&(ty_data_source){.paths = &path, .n_paths = 1}, &maps, &s, &err), &err);
        for (int k = 0; k < s.n_parts; k++) {
            strcat(strcat(names, s.part[k].name), " ");
            text |= s.part[k].is_text << k, list |= s.part[k].is_list << k;
            assert_false(s.part[k].is_picture);
        }
        assert_string_equal(names, rows[i].names);
        assert_string_equal(s.left_out ? s.left_out : "", rows[i].left_out);
        assert_true(text == rows[i].text && list == rows[i].list && s.is_table == (list == 0));
    }
}

/* ---- refused ---- */

/* By number, and as a stream unless what it learns is told by the reading of it. */
static void refuse(const char *name, ty_field f, const char *place, const char *says, const char *help)
{
    ty_dataset *ds;
    ty_stream *s;
    const char *path = files_path(name), *all[] = {place, says, help};
    ty_stream_config c = {.paths = &path, .n_paths = 1, .fields = &f, .n_fields = 1};
    ty_error err = {0}, streamed = {0};
    assert_int_equal(files_open(name, &f, 1, (ty_data_source){0}, &ds, &err), -1);
    bool learns = f.map && !ty_map_is_settled(f.map);
    assert_int_equal(learns ? -1 : ty_stream_open(&c, &s, &streamed), -1);
    for (int i = 0; i < 3; i++) {
        assert_says(&err, all[i]);
        if (!learns)
            assert_says(&streamed, all[i]);
    }
}

static void what_does_not_fit_is_refused_with_its_place(void **state)
{
    (void)state;
    const char *plain = "column \"tokens\" holds lists of texts, which feed no model as they are";
    ty_map_spec hash = {.way = TY_MAP_HASH, .bins = 9};
    ty_image_plan image = ty_image_plan_make();
    ty_field picture = ty_field_make("tokens"), two = mapped("two", NULL, hash);
    two.columns = "tokens,label";
    picture.image = &image;
    refuse("p", ty_field_make("tokens"), "1.parquet", plain, "tokens: {vocabulary: auto, max_length: 128}");
    refuse("a", ty_field_make("tokens"), "1.arrow", plain, "tokens: {vocabulary: auto, max_length: 128}");
    refuse("p", picture, "1.parquet", "a picture is the bytes of one column, and \"tokens\" has none", "");
    refuse("p", two, "1.parquet", "column \"tokens\" holds lists, and can be a field alone", "");
    refuse("p", mapped("x", "tokens", hash), "1.parquet: row 0", "field \"x\": a value is missing", "");
    hash.missing = TY_MISSING_TEXT, hash.missing_text = "";
    refuse("p", mapped("x", "tokens", hash), "1.parquet: row 2", "field \"x\": expected 1 values, found 2",
           "max_length: N fills up short ones");
    hash.missing = TY_MISSING_REFUSED, hash.max_length = 4;
    refuse("p", mapped("x", "tokens", hash), "1.parquet: row 4", "field \"x\": a value is missing", "missing: a text");
    refuse("saved", mapped("x", "tokens", hash), "1.arrow: row 4", "field \"x\": a value is missing", "");
    refuse("p", mapped("x", "tokens", (ty_map_spec){.way = TY_MAP_NUMBER, .max_length = 4}), "1.parquet: row 1",
           "field \"x\": expected a number, found \"lamb\"", "");
    hash.missing = TY_MISSING_TEXT, hash.missing_text = "";
    take("texts.parquet", "p/3.parquet");
    refuse("p", mapped("x", "tokens", hash), "3.parquet", "column \"tokens\" holds texts here, and lists of texts in",
           "");
}

/* Any byte of a file may be another: it is refused by name, or what is read lies in what was read. */
static void damaged_files_are_refused_by_name(void **state)
{
    static const char *const names[] = {"lists2.parquet", "lists1.arrow", "coded.arrow"};
    static const uint8_t changes[] = {0xff, 0x01};
    (void)state;
    int n_refused = 0, n_read = 0;
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        ty_buf bytes;
        golden_read("words", names[k], &bytes);
        for (size_t i = 0; i < 2 * bytes.len; i += 3) {
            ty_field f = mapped(
                "x", "tokens",
                (ty_map_spec){
                    .way = TY_MAP_HASH, .bins = 9, .missing = TY_MISSING_TEXT, .missing_text = "", .max_length = 4});
            ty_dataset *ds;
            ty_error err = {0};
            char kept = bytes.data[i / 2];
            bytes.data[i / 2] = (char)((uint8_t)kept ^ changes[i % 2]);
            files_put("x", bytes.data, bytes.len);
            bytes.data[i / 2] = kept;
            if (files_open("x", &f, 1, (ty_data_source){.format = "parquet", .n_threads = 1}, &ds, &err) == 0) {
                ty_dataset_close(ds);
                n_read++;
                continue;
            }
            assert_true(err.code != TY_E_NONE && err.code != TY_E_INTERNAL);
            assert_true(strstr(files_error(&err), "x") != NULL && err.message[0]);
            n_refused++;
        }
        ty_buf_fini(&bytes);
    }
    assert_true(n_refused > 200 && n_read > 200);
}

/* Offsets of lists, and of their texts, that fall, or end behind what there is. */
static void offsets_that_make_no_sense_are_refused(void **state)
{
    static const struct {
        int32_t offsets[4]; /* as they lie in the first batch */
        int k;
        int32_t is;
    } changes[] = {{{3, 3, 7, 12}, 2, 2},          {{3, 3, 7, 12}, 2, -1}, {{52, 52, 53, 55}, 3, 56},
                   {{52, 52, 53, 55}, 3, 1 << 30}, {{0, 4, 5, 58}, 2, 3},  {{0, 4, 5, 58}, 1, -4},
                   {{0, 4, 5, 58}, 3, 1 << 20}};
    (void)state;
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        ty_buf bytes;
        golden_read("words", "lists1.arrow", &bytes);
        char *at = bytes.data, *end = bytes.data + bytes.len - sizeof changes[i].offsets;
        while (at < end && memcmp(at, changes[i].offsets, sizeof changes[i].offsets) != 0)
            at++;
        assert_true(at < end);
        memcpy(at + 4 * changes[i].k, &changes[i].is, 4);
        files_put("a/1.arrow", bytes.data, bytes.len);
        ty_buf_fini(&bytes);
        refuse("a", classes(), "1.arrow", "column \"tokens\": its offsets do not rise, or go beyond what there is",
               "make it anew");
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(rows_are_those_of_json_lines),      TEST(streams_are_those_of_json_lines),
        TEST(classes_are_as_others_count_them),  TEST(lists_are_measured_as_a_whole),
        TEST(surveys_tell_lists_of_texts),       TEST(what_does_not_fit_is_refused_with_its_place),
        TEST(damaged_files_are_refused_by_name), TEST(offsets_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
