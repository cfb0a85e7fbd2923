/* input_tokens.c - rows of tokens as data sets and streams give them: pairs, words that are hidden, what a decoder has
 * read, tags of words. That ids are right is for tests/tokenizer/golden.sh; that losses are, for tests/import. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash.h"
#include "container/input/map/map.h"
#include "container/input/prefetch.h"
#include "container/input/stream/stream.h"
#include "container/output/protobuf.h"
#include "input_files.h"

enum { LENGTH = 8, MOST = 4 };

/* Ids: [PAD] 0, ? 1, [CLS] 2, [SEP] 3, [MASK] 4, a 5 ... j 14; special are the first five. */
static const char *put_tokenizer(void)
{
    static char path[512];
    char json[4096] = "{\"added_tokens\": [";
    static const char *const special[] = {"[PAD]", "?", "[CLS]", "[SEP]", "[MASK]"};
    for (int i = 0; i < 5; i++)
        snprintf(json + strlen(json), sizeof json - strlen(json),
                 "%s{\"id\": %d, \"content\": \"%s\", \"special\": true, \"single_word\": false, \"lstrip\": false, "
                 "\"rstrip\": false, \"normalized\": false}",
                 i ? ", " : "", i, special[i]);
    strcat(json, "], \"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}, \"post_processor\": {\"type\": "
                 "\"BertProcessing\", \"cls\": [\"[CLS]\", 2], \"sep\": [\"[SEP]\", 3]}, \"model\": {\"type\": "
                 "\"WordLevel\", \"unk_token\": \"?\", \"vocab\": {");
    for (int i = 0; i < 15; i++)
        snprintf(json + strlen(json), sizeof json - strlen(json), "%s\"%.*s\": %d", i ? ", " : "", i < 5 ? 6 : 1,
                 i < 5 ? special[i] : &"abcdefghij"[i - 5], i);
    strcat(json, "}}}");
    files_puts("tokenizer.json", json);
    snprintf(path, sizeof path, "%s", files_path("tokenizer.json"));
    return path;
}

typedef struct fields {
    ty_arena arena;
    ty_field field[MOST];
    int n;
} fields;

static int add(fields *f, const char *name, const char *of, const char *second, ty_map_spec spec, ty_error *err)
{
    ty_field *one = &f->field[f->n++];
    spec.field = name;
    spec.way = spec.token_part == TY_TOKENS_TAGS ? TY_MAP_TAGS : TY_MAP_TOKENIZER;
    spec.scale = 1;
    spec.tokenizer = spec.tokenizer ? spec.tokenizer : put_tokenizer();
    spec.max_length = spec.max_length ? spec.max_length : LENGTH;
    spec.parts = second ? 1u << TY_PART_SECOND : 0;
    *one = ty_field_make(name);
    one->member = one->columns = of;
    one->part[TY_PART_SECOND] = second;
    return ty_map_new(&spec, &f->arena, &one->map, err);
}

static void assert_row(const ty_dataset *ds, int field, int64_t sample, const char *expected)
{
    int64_t row[LENGTH];
    char found[256] = "";
    ty_error err = {0};
    assert_ok(ty_dataset_read(ds, field, &sample, 1, row, &err), &err);
    for (int64_t i = 0; i < ds->field[field].type.dim[0]; i++)
        snprintf(found + strlen(found), sizeof found - strlen(found), "%s%lld", i ? " " : "", (long long)row[i]);
    assert_string_equal(found, expected);
}

/* ---- pairs ---- */

static ty_buf new_buf(void)
{
    ty_buf b;
    ty_buf_init(&b, 1 << 20);
    return b;
}

/* A feature of one byte string. */
static void put_feature(ty_buf *features, const char *name, const char *text)
{
    ty_buf list = new_buf(), feature = new_buf(), entry = new_buf();
    ty_proto_put_bytes(&list, 1, text, strlen(text));
    ty_proto_put_bytes(&feature, 1, list.data, list.len);
    ty_proto_put_bytes(&entry, 1, name, strlen(name));
    ty_proto_put_bytes(&entry, 2, feature.data, feature.len);
    ty_proto_put_bytes(features, 1, entry.data, entry.len);
    ty_buf_fini(&list);
    ty_buf_fini(&feature);
    ty_buf_fini(&entry);
}

static void put_example(ty_buf *file, const char *one, const char *two)
{
    ty_buf features = new_buf(), example = new_buf();
    put_feature(&features, "one", one);
    put_feature(&features, "two", two);
    ty_proto_put_bytes(&example, 1, features.data, features.len);
    uint64_t n = example.len;
    uint32_t head = ty_crc32c_mask(ty_crc32c(0, &n, 8)), tail = ty_crc32c_mask(ty_crc32c(0, example.data, example.len));
    ty_buf_add(file, &n, 8);
    ty_buf_add(file, &head, 4);
    ty_buf_add(file, example.data, example.len);
    ty_buf_add(file, &tail, 4);
    ty_buf_fini(&features);
    ty_buf_fini(&example);
}

static const char *const pairs[][2] = {
    {"a b", "c"}, {"a b c d e f", "g"}, {"a", "b c d e f g h"}, {"a b c d", "e f g h"}};
enum { N_PAIRS = 4 };

static void put_pairs(void)
{
    ty_buf records = new_buf();
    char csv[1024] = "one,two\n", json[1024] = "";
    for (int i = 0; i < N_PAIRS; i++) {
        snprintf(csv + strlen(csv), sizeof csv - strlen(csv), "%s,%s\n", pairs[i][0], pairs[i][1]);
        snprintf(json + strlen(json), sizeof json - strlen(json), "{\"two\": \"%s\", \"one\": \"%s\"}\n", pairs[i][1],
                 pairs[i][0]);
        put_example(&records, pairs[i][0], pairs[i][1]);
    }
    files_puts("p.csv", csv);
    files_puts("p.jsonl", json);
    files_put("p.tfrecord", records.data, records.len);
    ty_buf_fini(&records);
}

static void declare_pairs(fields *f, const char *one, const char *two)
{
    ty_error err = {0};
    *f = (fields){.n = 0};
    ty_arena_init(&f->arena);
    assert_ok(add(f, "ids", one, two, (ty_map_spec){0}, &err), &err);
    assert_ok(add(f, "types", one, two, (ty_map_spec){.token_part = TY_TOKENS_TYPES}, &err), &err);
    assert_ok(add(f, "mask", one, two, (ty_map_spec){.token_part = TY_TOKENS_MASK}, &err), &err);
    assert_ok(add(f, "alone", one, NULL, (ty_map_spec){0}, &err), &err);
}

static void two_texts_are_one_row_in_every_format(void **state)
{
    (void)state;
    static const char *const names[] = {"p.csv", "p.jsonl", "p.tfrecord"};
    put_pairs();
    for (int i = 0; i < 3; i++) {
        fields f;
        ty_dataset *ds;
        ty_error err = {0};
        declare_pairs(&f, "one", "two");
        assert_ok(files_open(names[i], f.field, f.n, (ty_data_source){0}, &ds, &err), &err);
        assert_int_equal(ds->n_samples, N_PAIRS);
        assert_int_equal(ds->field[1].max, 1);
        assert_row(ds, 0, 0, "2 5 6 3 7 3 0 0");
        assert_row(ds, 1, 0, "0 0 0 0 1 1 0 0");
        assert_row(ds, 2, 0, "1 1 1 1 1 1 0 0");
        assert_row(ds, 3, 0, "2 5 6 3 0 0 0 0");
        /* Five places for two texts: the shorter one stays whole, or each has its half and the second one more. */
        assert_row(ds, 0, 1, "2 5 6 7 8 3 11 3");
        assert_row(ds, 0, 2, "2 5 3 6 7 8 9 3");
        assert_row(ds, 0, 3, "2 5 6 3 9 10 11 3");
        assert_row(ds, 3, 3, "2 5 6 7 8 3 0 0"); /* two fields of one feature, and more */
        ty_dataset_close(ds);
        ty_arena_fini(&f.arena);
    }
}

/* All rows of one epoch of a stream are those of the data set. */
static void assert_same_rows(ty_stream *s, const ty_dataset *ds)
{
    ty_data_feed *feed;
    ty_prefetch *p;
    const ty_batch *b;
    ty_error err = {0};
    int64_t wanted[LENGTH], n = 0;
    assert_ok(ty_stream_feed(s, &(ty_stream_order){.n_rows = 3, .tail = TY_TAIL_PAD}, &feed, &err), &err);
    assert_ok(ty_prefetch_start(&(ty_prefetch_config){.feed = feed, .until_epoch = 1, .n_workers = 1}, &p, &err), &err);
    while (ty_prefetch_next(p, &b, &err) == 0 && b) {
        for (int64_t row = 0; row < b->n_valid; row++, n++)
            for (int i = 0; i < ds->n_fields; i++) {
                assert_ok(ty_dataset_read(ds, i, &n, 1, wanted, &err), &err);
                assert_memory_equal((const char *)b->field[i].data + (size_t)row * sizeof wanted, wanted,
                                    sizeof wanted);
            }
        ty_prefetch_release(p, b);
    }
    assert_int_equal(n, ds->n_samples);
    ty_prefetch_stop(p);
    ty_data_feed_close(feed);
}

static void streams_have_pairs_too(void **state)
{
    (void)state;
    static const char *const rows[][4] = {
        {"p.jsonl", "one", "two", "p.jsonl"}, {"p.tfrecord", "one", "two", "p.tfrecord"}, {"n.csv", "0", "1", "p.csv"}};
    put_pairs();
    char csv[1024];
    for (int i = 0, at = 0; i < N_PAIRS; i++)
        at += snprintf(csv + at, sizeof csv - (size_t)at, "%s,%s\n", pairs[i][0], pairs[i][1]);
    files_puts("n.csv", csv);
    for (int i = 0; i < 3; i++) {
        fields f, g;
        ty_dataset *ds;
        ty_stream *s;
        ty_error err = {0};
        char place[512];
        const char *path = place;
        declare_pairs(&f, rows[i][1], rows[i][2]);
        declare_pairs(&g, "one", "two");
        snprintf(place, sizeof place, "%s", files_path(rows[i][0]));
        assert_ok(files_open(rows[i][3], g.field, g.n, (ty_data_source){0}, &ds, &err), &err);
        ty_stream_config c = {.paths = &path, .n_paths = 1, .fields = f.field, .n_fields = f.n};
        assert_ok(ty_stream_open(&c, &s, &err), &err);
        assert_same_rows(s, ds);
        ty_stream_close(s);
        ty_dataset_close(ds);
        ty_arena_fini(&f.arena);
        ty_arena_fini(&g.arena);
    }
}

/* ---- hidden words ---- */

enum { N_TEXTS = 400 };

typedef struct hidden_rows {
    int64_t ids[N_TEXTS][LENGTH], masked[N_TEXTS][LENGTH], hidden[N_TEXTS][LENGTH];
} hidden_rows;

static void read_hidden(const ty_dataset *ds, ty_pick pick, hidden_rows *out)
{
    ty_error err = {0};
    void *const to[] = {out->ids, out->masked, out->hidden};
    assert_ok(ty_dataset_read_all(ds, &pick, to, &err), &err);
}

static ty_dataset *open_hidden(fields *f, double share)
{
    ty_dataset *ds;
    ty_error err = {0};
    ty_map_spec masked = {.token_part = TY_TOKENS_MASKED, .hidden = share}, hidden = masked;
    hidden.token_part = TY_TOKENS_HIDDEN;
    FILE *file = fopen(files_path("h.csv"), "w");
    fputs("text\n", file);
    for (int i = 0; i < N_TEXTS; i++)
        fprintf(file, "a b c %c\n", "defghij"[i % 7]);
    fclose(file);
    *f = (fields){.n = 0};
    ty_arena_init(&f->arena);
    assert_ok(add(f, "ids", "text", NULL, (ty_map_spec){0}, &err), &err);
    assert_ok(add(f, "masked", "text", NULL, masked, &err), &err);
    assert_ok(add(f, "hidden", "text", NULL, hidden, &err), &err);
    assert_ok(files_open("h.csv", f->field, f->n, (ty_data_source){0}, &ds, &err), &err);
    return ds;
}

/* What is hidden are words, and nothing else is changed; returns how many are, and under what: the mask token, another
 * word, itself. */
static int count_hidden(const hidden_rows *r, int under[3])
{
    int n = 0;
    for (int i = 0; i < N_TEXTS; i++)
        for (int k = 0; k < LENGTH; k++) {
            if (r->hidden[i][k] == -100) {
                assert_int_equal(r->masked[i][k], r->ids[i][k]);
                continue;
            }
            assert_true(k >= 1 && k <= 4);
            assert_int_equal(r->hidden[i][k], r->ids[i][k]);
            assert_in_range(r->masked[i][k], 0, 14);
            under[r->masked[i][k] == 4 ? 0 : r->masked[i][k] == r->ids[i][k] ? 2 : 1]++;
            n++;
        }
    for (int i = 0; i < N_TEXTS; i++) {
        bool any = false;
        for (int k = 0; k < LENGTH; k++)
            any = any || r->hidden[i][k] != -100;
        assert_true(any);
    }
    return n;
}

static void words_are_hidden_as_bert_has_it(void **state)
{
    (void)state;
    static hidden_rows first, again;
    int64_t all[N_TEXTS];
    fields f;
    ty_dataset *ds = open_hidden(&f, 0);
    int under[3] = {0}, n = 0;
    ty_pick pick = {.sample = all, .n = N_TEXTS, .seed = 3, .augment = true};
    for (int i = 0; i < N_TEXTS; i++)
        all[i] = i;
    for (pick.epoch = 0; pick.epoch < 10; pick.epoch++) {
        read_hidden(ds, pick, &first);
        n += count_hidden(&first, under);
    }
    /* 16,000 words in texts of four, of which one at least is hidden; four deviations either way. A random token is
     * itself, or the mask, once in 15 times each. */
    const int expected = 2400 + (int)(4000 * 0.52200625); /* 0.85 ^ 4 */
    assert_in_range(n, expected - 150, expected + 150);
    assert_in_range(under[0], (int)(n * (0.8 + 0.1 / 15)) - 106, (int)(n * (0.8 + 0.1 / 15)) + 106);
    assert_in_range(under[2], (int)(n * (0.1 + 0.1 / 15)) - 84, (int)(n * (0.1 + 0.1 / 15)) + 84);
    /* A function of seed, epoch and sample. */
    pick.epoch = 9;
    for (int i = 0; i < N_TEXTS; i++)
        all[i] = N_TEXTS - 1 - i;
    read_hidden(ds, pick, &again);
    for (int i = 0; i < N_TEXTS; i++)
        assert_memory_equal(again.masked[i], first.masked[N_TEXTS - 1 - i], sizeof *again.masked);
    pick.seed = 4;
    read_hidden(ds, pick, &first);
    assert_memory_not_equal(first.hidden, again.hidden, sizeof first.hidden);
    /* Evaluation hides the same words each time. */
    pick.augment = false;
    read_hidden(ds, pick, &first);
    pick.epoch = 2;
    read_hidden(ds, pick, &again);
    assert_memory_equal(&first, &again, sizeof first);
    assert_true(count_hidden(&first, under) > 100);
    ty_dataset_close(ds);
    ty_arena_fini(&f.arena);
    ds = open_hidden(&f, 0.9);
    read_hidden(ds, pick, &first);
    assert_in_range(count_hidden(&first, under), 1440 - 48, 1440 + 48);
    ty_dataset_close(ds);
    ty_arena_fini(&f.arena);
}

/* A tokenizer whose first id is a word's and which names no padding: that id is never hidden. */
static void rows_and_labels_hide_the_same_words(void **state)
{
    (void)state;
    static hidden_rows r;
    static const char path[] = "first.json";
    fields f = {.n = 0};
    ty_dataset *ds;
    ty_error err = {0};
    int64_t all[N_TEXTS];
    int under[3] = {0};
    char lines[N_TEXTS * 10 + 8] = "text\n";
    for (int i = 0; i < N_TEXTS; i++) {
        strcat(lines, i % 3 ? "x a b a\n" : "a b a x\n");
        all[i] = i;
    }
    files_puts("a.csv", lines);
    files_puts(path,
               "{\"added_tokens\": [{\"id\": 4, \"content\": \"[MASK]\", \"special\": true, \"single_word\": false, "
               "\"lstrip\": false, \"rstrip\": false, \"normalized\": false}], \"pre_tokenizer\": {\"type\": "
               "\"WhitespaceSplit\"}, \"model\": {\"type\": \"WordLevel\", \"unk_token\": \"?\", \"vocab\": "
               "{\"a\": 0, \"b\": 1, \"x\": 2, \"?\": 3, \"[MASK]\": 4}}}");
    ty_map_spec spec = {.tokenizer = files_path(path)};
    ty_arena_init(&f.arena);
    assert_ok(add(&f, "ids", "text", NULL, spec, &err), &err);
    spec.token_part = TY_TOKENS_MASKED, spec.hidden = 0.5;
    assert_ok(add(&f, "masked", "text", NULL, spec, &err), &err);
    spec.token_part = TY_TOKENS_HIDDEN;
    assert_ok(add(&f, "hidden", "text", NULL, spec, &err), &err);
    assert_ok(files_open("a.csv", f.field, f.n, (ty_data_source){0}, &ds, &err), &err);
    read_hidden(ds, (ty_pick){.sample = all, .n = N_TEXTS, .seed = 3, .augment = true}, &r);
    for (int i = 0; i < N_TEXTS; i++)
        for (int k = 0; k < LENGTH; k++) {
            assert_true(r.hidden[i][k] == -100 || (r.hidden[i][k] == r.ids[i][k] && r.ids[i][k] != 0));
            if (r.hidden[i][k] == -100)
                assert_int_equal(r.masked[i][k], r.ids[i][k]);
            else
                under[r.masked[i][k] == 4 ? 0 : 1]++;
        }
    assert_true(under[0] > under[1] && under[1] > 0);
    ty_dataset_close(ds);
    ty_arena_fini(&f.arena);
}

/* ---- what a decoder has read ---- */

static void a_decoder_reads_what_was_before(void **state)
{
    (void)state;
    fields f = {.n = 0};
    ty_dataset *ds;
    ty_error err = {0};
    ty_arena_init(&f.arena);
    files_puts("d.csv", "text\na b\na b c d e f g h\n");
    assert_ok(add(&f, "labels", "text", NULL, (ty_map_spec){.pad = -100}, &err), &err);
    assert_ok(add(&f, "before", "text", NULL, (ty_map_spec){.token_part = TY_TOKENS_PREVIOUS, .start = -1}, &err),
              &err);
    assert_ok(add(&f, "begun", "text", NULL, (ty_map_spec){.token_part = TY_TOKENS_PREVIOUS, .start = 7}, &err), &err);
    assert_ok(add(&f, "high", "text", NULL, (ty_map_spec){.token_part = TY_TOKENS_PREVIOUS, .start = 99}, &err), &err);
    assert_ok(files_open("d.csv", f.field, f.n, (ty_data_source){0}, &ds, &err), &err);
    assert_row(ds, 0, 0, "2 5 6 3 -100 -100 -100 -100");
    assert_row(ds, 1, 0, "0 2 5 6 3 0 0 0");
    assert_row(ds, 2, 0, "7 2 5 6 3 0 0 0");
    assert_int_equal(ds->field[1].max, 14);
    assert_int_equal(ds->field[3].max, 99); /* the model must have it, too */
    assert_row(ds, 0, 1, "2 5 6 7 8 9 10 3");
    assert_row(ds, 1, 1, "0 2 5 6 7 8 9 10");
    ty_dataset_close(ds);
    /* The place of each id is that of the label behind it, on whichever side rows are filled up. */
    f.n = 0;
    assert_ok(add(&f, "labels", "text", NULL, (ty_map_spec){.pad = -100, .left = true}, &err), &err);
    ty_map_spec before = {.token_part = TY_TOKENS_PREVIOUS, .start = 7, .left = true};
    assert_ok(add(&f, "before", "text", NULL, before, &err), &err);
    assert_ok(files_open("d.csv", f.field, f.n, (ty_data_source){0}, &ds, &err), &err);
    assert_row(ds, 0, 0, "-100 -100 -100 -100 2 5 6 3");
    assert_row(ds, 1, 0, "0 0 0 0 7 2 5 6");
    assert_row(ds, 0, 1, "2 5 6 7 8 9 10 3");
    assert_row(ds, 1, 1, "7 2 5 6 7 8 9 10");
    ty_dataset_close(ds);
    ty_arena_fini(&f.arena);
}

/* ---- tags ---- */

static ty_dataset *open_tags(fields *f, const char *lines, ty_map_spec spec, ty_error *err)
{
    ty_dataset *ds = NULL;
    files_puts("t.jsonl", lines);
    *f = (fields){.n = 0};
    ty_arena_init(&f->arena);
    *err = (ty_error){0};
    spec.token_part = TY_TOKENS_TAGS;
    assert_ok(add(f, "ids", "words", NULL, (ty_map_spec){0}, err), err);
    assert_ok(add(f, "tags", "tags", "words", spec, err), err);
    return files_open("t.jsonl", f->field, f->n, (ty_data_source){0}, &ds, err) < 0 ? NULL : ds;
}

static void a_tag_is_at_its_words_first_piece(void **state)
{
    (void)state;
    fields f;
    ty_error err;
    ty_dataset *ds = open_tags(&f,
                               "{\"words\": [\"a\", \"b c\", \"d\"], \"tags\": [2, 0, -100]}\n"
                               "{\"words\": [\"a b c d e f g\", \"h\"], \"tags\": [7, 1]}\n"
                               "{\"words\": [], \"tags\": []}\n",
                               (ty_map_spec){0}, &err);
    assert_ok(ds ? 0 : -1, &err);
    assert_row(ds, 0, 0, "2 5 6 7 8 3 0 0");
    assert_row(ds, 1, 0, "-100 2 0 -100 -100 -100 -100 -100");
    assert_row(ds, 1, 1, "-100 7 -100 -100 -100 -100 -100 -100");
    assert_row(ds, 1, 2, "-100 -100 -100 -100 -100 -100 -100 -100");
    assert_int_equal(ds->field[1].max, 7);
    ty_dataset_close(ds);
    ty_arena_fini(&f.arena);
    static const char named[] = "{\"words\": [\"a\", \"b\"], \"tags\": [\"O\", \"B-X\"]}\n";
    ds = open_tags(&f, named, (ty_map_spec){0}, &err);
    assert_ok(ds ? 0 : -1, &err);
    assert_row(ds, 1, 0, "-100 1 0 -100 -100 -100 -100 -100");
    ty_dataset_close(ds);
    ty_arena_fini(&f.arena);
    static const char *const order[] = {"O", "I-X", "B-X"};
    ds = open_tags(&f, named, (ty_map_spec){.word = order, .n_words = 3}, &err);
    assert_ok(ds ? 0 : -1, &err);
    assert_row(ds, 1, 0, "-100 0 2 -100 -100 -100 -100 -100");
    assert_int_equal(ds->field[1].max, 2);
    ty_dataset_close(ds);
    ty_arena_fini(&f.arena);
}

/* ---- answers ---- */

/* Places of first and last tokens as "4-5 ..."; records have a question, a text, an answer and perhaps its place. */
static const char *answers_of(const char *name, const char *const parts[3], ty_error *err)
{
    static char found[256];
    static const ty_token_part ends[] = {TY_TOKENS_BEGIN, TY_TOKENS_END};
    fields f = {.n = 0};
    ty_dataset *ds = NULL;
    int64_t at[2];
    *err = (ty_error){0};
    found[0] = 0;
    ty_arena_init(&f.arena);
    for (int i = 0; i < 2; i++) {
        ty_field *one = &f.field[f.n++];
        ty_map_spec spec = {.field = i ? "end" : "begin",
                            .way = TY_MAP_ANSWER,
                            .scale = 1,
                            .tokenizer = put_tokenizer(),
                            .max_length = 10,
                            .token_part = ends[i],
                            .parts =
                                1u << TY_PART_SECOND | 1u << TY_PART_ANSWER | (parts[2] ? 1u << TY_PART_PLACE : 0)};
        *one = ty_field_make(spec.field);
        one->member = one->columns = "q";
        memcpy(one->part, parts, sizeof one->part);
        assert_ok(ty_map_new(&spec, &f.arena, &one->map, err), err);
    }
    if (files_open(name, f.field, f.n, (ty_data_source){0}, &ds, err) == 0) {
        assert_int_equal(ds->field[0].type.rank, 0);
        assert_int_equal(ds->field[0].max, 9);
        for (int64_t k = 0; k < ds->n_samples; k++) {
            for (int i = 0; i < 2; i++)
                assert_ok(ty_dataset_read(ds, i, &k, 1, &at[i], err), err);
            snprintf(found + strlen(found), sizeof found - strlen(found), "%s%lld-%lld", k ? " " : "", (long long)at[0],
                     (long long)at[1]);
        }
        ty_dataset_close(ds);
    }
    ty_arena_fini(&f.arena);
    return found;
}

static void an_answer_is_a_place_in_the_row(void **state)
{
    (void)state;
    ty_error err;
    static const char *const flat[] = {"text", "answer", "start"}, *const unsaid[] = {"text", "answer", NULL};
    static const char *const nested[] = {"text", "answers.text", "answers.answer_start"};
    /* [CLS] a b [SEP] c d e c d [SEP]: the second "c d"; the first; a text of one token; one that is cut off; none. */
    files_puts("a.csv", "q,text,answer,start\na b,c d e c d,c d,6\na b,c d e c d,c d,0\na,h,h,0\n"
                        "a b,c d e f g h i j,i j,12\na b,c d e,,\n");
    assert_string_equal(answers_of("a.csv", flat, &err), "7-8 4-5 3-3 0-0 0-0");
    assert_string_equal(answers_of("a.csv", unsaid, &err), "4-5 4-5 3-3 0-0 0-0");
    files_puts("a.jsonl",
               "{\"q\": \"a b\", \"text\": \"\u00e4\u4e2d c d  e\", \"answers\": {\"text\": [\"d  e\", \"d\"], "
               "\"answer_start\": [5, 5]}}\n"
               "{\"answers\": {\"answer_start\": [], \"text\": []}, \"q\": \"a b\", \"text\": \"c d\"}\n");
    assert_string_equal(answers_of("a.jsonl", nested, &err), "6-7 0-0");
    files_puts("a.csv", "q,text,answer,start\na b,c d e,c d,1\n");
    assert_string_equal(answers_of("a.csv", flat, &err), "");
    assert_says(&err, "the answer \"c d\" is not where it is said to be, at character 1");
    files_puts("a.csv", "q,text,answer,start\na b,c d e,f,\n");
    assert_string_equal(answers_of("a.csv", unsaid, &err), "");
    assert_says(&err, "the text does not have the answer \"f\"");
    assert_non_null(strstr(err.place, "a.csv:2"));
    files_puts("a.jsonl", "{\"q\": [\"a\", \"b\"], \"text\": \"c\", \"answers\": {\"text\": [\"c\"]}}\n");
    assert_string_equal(answers_of("a.jsonl", nested, &err), "");
    assert_says(&err, "expected one question and one text");
    files_puts("a.jsonl", "{\"q\": \"a\", \"text\": \"c\", \"answers\": {\"text\" [\"c\"]}}\n");
    assert_string_equal(answers_of("a.jsonl", nested, &err), "");
    assert_says(&err, "the line is no JSON object");
}

/* Samples of other hosts come in another order, and what was learnt is the same. */
static void tags_are_the_same_in_any_order(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "{\"words\": [\"a\", \"b\"], \"tags\": [10, 2]}\n{\"words\": [\"c\", \"d\"], \"tags\": [-100, 0]}\n",
        "{\"words\": [\"c\", \"d\"], \"tags\": [-100, 0]}\n{\"words\": [\"a\", \"b\"], \"tags\": [10, 2]}\n"};
    uint64_t found[2];
    for (int i = 0; i < 2; i++) {
        fields f;
        ty_error err;
        ty_dataset *ds = open_tags(&f, lines[i], (ty_map_spec){0}, &err);
        assert_ok(ds ? 0 : -1, &err);
        assert_int_equal(ds->field[1].max, 10);
        found[i] = ty_map_fingerprint(f.field[1].map);
        ty_dataset_close(ds);
        ty_arena_fini(&f.arena);
    }
    assert_true(found[0] == found[1]);
}

/* ---- what is missing ---- */

static void what_is_missing_is_filled_in(void **state)
{
    (void)state;
    fields f = {.n = 0};
    ty_dataset *ds;
    ty_error err = {0};
    ty_arena_init(&f.arena);
    assert_ok(add(&f, "ids", "one", "two", (ty_map_spec){.missing = TY_MISSING_TEXT, .missing_text = "j"}, &err), &err);
    files_puts("f.jsonl", "{\"one\": \"a\", \"two\": \"b\"}\n{\"one\": \"a\"}\n{\"one\": null, \"two\": \"b\"}\n");
    assert_ok(files_open("f.jsonl", f.field, f.n, (ty_data_source){0}, &ds, &err), &err);
    assert_row(ds, 0, 0, "2 5 3 6 3 0 0 0");
    assert_row(ds, 0, 1, "2 5 3 14 3 0 0 0");
    assert_row(ds, 0, 2, "2 14 3 6 3 0 0 0");
    ty_dataset_close(ds);
    ty_arena_fini(&f.arena);
}

/* ---- refusals ---- */

static void assert_no_tags(const char *lines, ty_map_spec spec, const char *says)
{
    fields f;
    ty_error err;
    ty_dataset *ds = open_tags(&f, lines, spec, &err);
    if (ds)
        fail_msg("taken, though %s", says);
    assert_says(&err, says);
    assert_non_null(strstr(err.place, "t.jsonl"));
    ty_arena_fini(&f.arena);
}

static void assert_no_field(const char *second, ty_map_spec spec, const char *says)
{
    fields f = {.n = 0};
    ty_error err = {0};
    ty_arena_init(&f.arena);
    assert_int_equal(add(&f, "x", "text", second, spec, &err), -1);
    assert_says(&err, says);
    ty_arena_fini(&f.arena);
}

/* Of labels, whose padding is -100. */
static void assert_no_type(ty_token_part part, ty_dtype dtype, const char *says)
{
    fields f = {.n = 0};
    ty_dataset *ds;
    ty_error err = {0};
    ty_arena_init(&f.arena);
    bool has_tags = part == TY_TOKENS_TAGS;
    assert_ok(add(&f, "x", "tags", has_tags ? "words" : NULL, (ty_map_spec){.token_part = part}, &err), &err);
    f.field[0].dtype_given = true;
    f.field[0].dtype = dtype;
    files_puts("y.jsonl", "{\"words\": [\"a\"], \"tags\": [\"b\"]}\n");
    assert_int_equal(files_open("y.jsonl", f.field, f.n, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, says);
    ty_arena_fini(&f.arena);
}

static void what_no_row_can_hold_is_refused(void **state)
{
    (void)state;
    static const char whole[] = "filled up with -100, which u8 does not hold";
    assert_no_field("two", (ty_map_spec){.max_length = 2}, "a row of 2 tokens has no room for the 3 special ones");
    assert_no_field(NULL, (ty_map_spec){.max_length = 1}, "a row of 1 tokens has no room for the 2 special ones");
    assert_no_field("two", (ty_map_spec){.max_length = 1, .token_part = TY_TOKENS_TAGS}, "room for the 2 special ones");
    files_puts("single.json", "{\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": [{\"Sequence\": "
                              "{\"id\": \"A\", \"type_id\": 0}}], \"pair\": [], \"special_tokens\": {}}, \"model\": "
                              "{\"type\": \"WordLevel\", \"unk_token\": \"?\", \"vocab\": {\"?\": 0}}}");
    assert_no_field("two", (ty_map_spec){.tokenizer = files_path("single.json")},
                    "says nothing, or too much, of pairs");
    assert_no_type(TY_TOKENS_NEXT, TY_U8, whole);
    assert_no_type(TY_TOKENS_HIDDEN, TY_U8, whole);
    assert_no_type(TY_TOKENS_TAGS, TY_U8, whole);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    static const char *const order[] = {"O"};
    ty_map_spec given = {.word = order, .n_words = 1}, masked = {.token_part = TY_TOKENS_MASKED};
    assert_no_tags("{\"words\": [\"a\"], \"tags\": [0]}\n{\"words\": [\"a\", \"b\"], \"tags\": [1]}\n",
                   (ty_map_spec){0}, "1 tags for 2 words");
    assert_no_tags("{\"words\": [\"a\"], \"tags\": [\"B\"]}\n", given, "\"B\" is none of its 1 classes");
    assert_no_tags("{\"words\": [\"a\", null], \"tags\": [0, 1]}\n", (ty_map_spec){0}, "a value is missing");
    assert_no_tags("{\"words\": [\"a\", \"b\"], \"tags\": [-100, -100]}\n", (ty_map_spec){0},
                   "no word has a tag that counts: all are -100");
    assert_no_tags("{\"words\": [\"a\"], \"tags\": [0.5]}\n{\"words\": [\"a\"]}\n", (ty_map_spec){0},
                   "0 tags for 1 words");
    assert_no_field(NULL, (ty_map_spec){.token_part = TY_TOKENS_TAGS}, "tags of which words?");
    assert_no_field(NULL, (ty_map_spec){.token_part = TY_TOKENS_PREVIOUS, .start = INT64_MAX}, "is no id");
    masked.hidden = 1.5;
    assert_no_field(NULL, masked, "expected a share between 0 and 1, found 1.5");
    masked.hidden = 0, masked.max_length = 1 << 20;
    assert_no_field(NULL, masked, "at most 524287");
    files_puts("none.json", "{\"model\": {\"type\": \"WordLevel\", \"unk_token\": \"?\", \"vocab\": {\"?\": 0}}}");
    assert_no_field(NULL, (ty_map_spec){.token_part = TY_TOKENS_HIDDEN, .tokenizer = files_path("none.json")},
                    "has no token that hides others");
    fields f;
    ty_dataset *ds;
    ty_error err = {0};
    declare_pairs(&f, "one", "two");
    files_puts("p.jsonl", "{\"one\": \"a\", \"two\": \"b\"}\n{\"one\": \"a\"}\n");
    assert_int_equal(files_open("p.jsonl", f.field, f.n, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "field \"ids\": a value is missing");
    assert_non_null(strstr(err.place, "p.jsonl:2"));
    files_puts("p.jsonl", "{\"one\": \"a\", \"two\": \"b\"}\n{\"three\": \"a\"}\n");
    err = (ty_error){0};
    assert_int_equal(files_open("p.jsonl", f.field, f.n, (ty_data_source){0}, &ds, &err), -1);
    assert_says(&err, "field \"ids\": a value is missing");
    err = (ty_error){0};
    files_puts("p.txt", "a\n");
    assert_int_equal(files_open("p.txt", f.field, f.n, (ty_data_source){.format = "lines"}, &ds, &err), -1);
    assert_says(&err, "lines data hold no two texts of a sample");
    ty_arena_fini(&f.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_texts_are_one_row_in_every_format),
        cmocka_unit_test(streams_have_pairs_too),
        cmocka_unit_test(words_are_hidden_as_bert_has_it),
        cmocka_unit_test(a_decoder_reads_what_was_before),
        cmocka_unit_test(a_tag_is_at_its_words_first_piece),
        cmocka_unit_test(an_answer_is_a_place_in_the_row),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(rows_and_labels_hide_the_same_words),
        cmocka_unit_test(tags_are_the_same_in_any_order),
        cmocka_unit_test(what_is_missing_is_filled_in),
        cmocka_unit_test(what_no_row_can_hold_is_refused),
    };
    return cmocka_run_group_tests(tests, files_setup, files_teardown);
}
