/* Transforms of fields: what is declared and kept (preprocessing.json), read back; words and numbers learnt from JSON
 * Lines, whose texts have escapes, or from plain lines.
 *
 * The first byte chooses: 0 mod 4 is a preprocessing.json and nothing else; else the second byte chooses transforms and
 * the rest is the data, which lie in memory only. What was learnt must be the same when it was written and read back,
 * and every sample that was not refused when the data were opened can be read.
 *
 * Of tokens there are all parts, of one text and of two, and places of answers, by two tokenizers: one with special
 * tokens, and one without, which cuts and fills at the beginning and whose id 0 is a word.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memfd_create */
#endif
#include "base/json.h"
#include "container/input/dataset.h"
#include "container/input/map/map.h"
#include "entrypoint/preprocessing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { N_FIELDS = 3, ROW_BYTES = 1 << 16 };

static int put_file(const uint8_t *data, size_t n, char path[64])
{
    int fd = memfd_create("fuzz", 0);
    snprintf(path, 64, "/proc/self/fd/%d", fd);
    if (fd < 0 || write(fd, data, n) != (ssize_t)n)
        abort();
    return fd;
}

static void read_back(const uint8_t *data, size_t size)
{
    char path[64];
    int fd = put_file(data, size, path);
    ty_arena a;
    ty_error err = {0};
    ty_preprocessing p;
    ty_arena_init(&a);
    if (ty_preprocessing_read(path, &a, &p, &err) < 0) {
        if (err.code == TY_E_NONE || !err.message[0])
            abort();
    } else {
        ty_buf text;
        ty_buf_init(&text, 1 << 20);
        for (int i = 0; i < p.data.n_fields; i++)
            if (p.data.fields[i].map) {
                ty_map_describe(p.data.fields[i].map, &text);
                ty_map_fingerprint(p.data.fields[i].map);
            }
        ty_buf_fini(&text);
    }
    ty_arena_fini(&a);
    close(fd);
}

/* ---- tokenizers ---- */

#define TOKENIZER_MODEL                                                                                               \
    "\"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}, \"model\": {\"type\": \"WordPiece\", \"unk_token\": \"?\", " \
    "\"continuing_subword_prefix\": \"\", \"max_input_chars_per_word\": 20, \"vocab\": {\"a\": 0, \"b\": 1, \"ab\": " \
    "2, "                                                                                                             \
    "\"0\": 3, \"1\": 4, \"\xc3\xa9\": 5, \"?\": 6, \"[MASK]\": 7, \"[CLS]\": 8, \"[SEP]\": 9, \"[PAD]\": 10}}}"

#define TOKENIZER_SPECIAL(id, text) \
    "{\"id\": " id ", \"content\": \"" text "\", \"special\": true, \"normalized\": false}"

static const char *const tokenizer_text[] = {
    "{\"added_tokens\": [" TOKENIZER_SPECIAL("6", "?") "," TOKENIZER_SPECIAL("7", "[MASK]") "," TOKENIZER_SPECIAL(
        "8", "[CLS]") "," TOKENIZER_SPECIAL("9",
                                            "[SEP]") "," TOKENIZER_SPECIAL("10",
                                                                           "[PAD]") "], \"post_processor\": {\"type\": "
                                                                                    "\"BertProcessing\", \"cls\": "
                                                                                    "[\"[CLS]\", 8], \"sep\": "
                                                                                    "[\"[SEP]\", 9]}, " TOKENIZER_MODEL,
    "{\"truncation\": {\"direction\": \"Left\", \"max_length\": 6}, \"padding\": {\"direction\": \"Left\", \"pad_id\": "
    "0, \"pad_type_id\": 1, \"pad_token\": \"a\"}, " TOKENIZER_MODEL};

/* Files stay: they are read whenever a map is made. */
static const char *tokenizer_path(bool is_bare)
{
    static char path[2][64];
    if (path[is_bare][0] == 0)
        put_file((const uint8_t *)tokenizer_text[is_bare], strlen(tokenizer_text[is_bare]), path[is_bare]);
    return path[is_bare];
}

/* ---- learnt ---- */

/* A pair has three special tokens, one text two, which are all that some rows have room for. */
static ty_map_spec tokens_of(ty_token_part part, bool has_second, bool is_bare)
{
    bool has_tags = part == TY_TOKENS_TAGS;
    ty_map_spec spec = {.way = has_tags ? TY_MAP_TAGS : TY_MAP_TOKENIZER,
                        .token_part = part,
                        .parts = has_second || has_tags ? 1u << TY_PART_SECOND : 0,
                        .tokenizer = tokenizer_path(is_bare),
                        .max_length = has_second ? 6
                                      : part % 2 ? 2
                                                 : 5,
                        .start = -1};
    if (has_second) {
        spec.missing = TY_MISSING_TEXT;
        spec.missing_text = has_tags ? "0" : "";
    }
    return spec;
}

/* Of a pair: where a third text is in its second one, and has_place: where it is said to be. */
static ty_map_spec answer_of(ty_token_part part, bool has_place)
{
    return (ty_map_spec){.way = TY_MAP_ANSWER,
                         .token_part = part,
                         .parts = 1u << TY_PART_SECOND | 1u << TY_PART_ANSWER | (has_place ? 1u << TY_PART_PLACE : 0),
                         .tokenizer = tokenizer_path(false),
                         .max_length = has_place ? 12 : 6,
                         .start = -1};
}

static ty_map_spec spec_of(unsigned how, const char *field)
{
    static const char *const words[] = {"a", "b", "\xc3\xa9"};
    ty_map_spec all[] = {
        {.way = TY_MAP_VOCABULARY, .n_oov = 1, .split = ' ', .max_length = 4},
        {.way = TY_MAP_CLASSES, .missing = TY_MISSING_MOST_FREQUENT},
        {.way = TY_MAP_HASH, .bins = 1000, .missing = TY_MISSING_TEXT, .missing_text = "", .max_length = 3},
        {.way = TY_MAP_BUCKETS, .n_quantiles = 4, .missing = TY_MISSING_MEDIAN},
        {.normalize = TY_NORMALIZE_STANDARD, .missing = TY_MISSING_MEAN},
        {.way = TY_MAP_VOCABULARY, .word = words, .n_words = 3, .one_hot = -1, .one_row = true, .n_oov = 2},
        {.log1p = true, .normalize = TY_NORMALIZE_MINMAX, .missing = TY_MISSING_NUMBER, .max_length = 3},
        {.way = TY_MAP_VOCABULARY, .max_size = 3, .min_count = 2, .n_oov = 3, .missing = TY_MISSING_MOST_FREQUENT},
    };
    enum { N_WAYS = sizeof all / sizeof all[0], N_PARTS = TY_TOKENS_END + 1 };
    unsigned way = how % (N_WAYS + 2 * N_PARTS);
    ty_map_spec spec = all[way % N_WAYS];
    if (way >= N_WAYS) {
        ty_token_part part = (way - N_WAYS) % N_PARTS;
        bool has_more = (way - N_WAYS) / N_PARTS == 1;
        spec = part >= TY_TOKENS_BEGIN ? answer_of(part, has_more) : tokens_of(part, has_more, how % 5 == 0);
    }
    spec.field = field;
    spec.scale = 1;
    return spec;
}

static void same_again(const ty_map *m, ty_arena *a)
{
    ty_buf text;
    ty_json_writer w;
    ty_doc *doc;
    ty_map *again;
    ty_error err = {0};
    ty_buf_init(&text, (size_t)16 << 20);
    ty_json_writer_init(&w, &text, TY_JSON_SPACED);
    ty_map_write(m, &w, NULL);
    if (text.failed || ty_json_parse(a, "kept", text.data, text.len, NULL, &doc, &err) < 0 ||
        ty_map_new(ty_map_declared(m), a, &again, &err) < 0 || ty_map_read(again, doc, &err) < 0 ||
        ty_map_fingerprint(again) != ty_map_fingerprint(m)) {
        fprintf(stderr, "kept: %.*s: %s\n", (int)text.len, text.data, err.message);
        abort();
    }
    ty_buf_fini(&text);
}

static void read_everything(const ty_dataset *ds)
{
    char place[400];
    void *rows[N_FIELDS];
    for (int f = 0; f < N_FIELDS; f++)
        rows[f] = malloc(ds->field[f].row_bytes + 1);
    for (int64_t i = 0; i < ds->n_samples && i < 64; i++)
        if (ty_dataset_read_all(ds, &(ty_pick){.sample = &i, .n = 1}, rows, NULL) < 0 ||
            ty_dataset_place(ds, 0, i, place, sizeof place)[0] == 0)
            abort();
    for (int f = 0; f < N_FIELDS; f++)
        free(rows[f]);
}

static void learn(unsigned format, unsigned how, const uint8_t *data, size_t size)
{
    static const char *const formats[] = {"jsonlines", "jsonlines", "lines", "csv"};
    static const char *const names[] = {"a", "b", "c"};
    static const char *const columns[] = {"0", "1", "0-1"};
    char path[64];
    int fd = put_file(data, size, path);
    ty_arena a;
    ty_error err = {0};
    ty_field f[N_FIELDS];
    ty_dataset *ds;
    ty_arena_init(&a);
    for (int i = 0; i < N_FIELDS; i++) {
        ty_map_spec spec = spec_of((how >> (2 * i)) + (unsigned)i, names[i]);
        f[i] = ty_field_make(names[i]);
        f[i].member = format == 2 ? "text" : NULL;
        f[i].columns = format == 3 ? columns[i] : NULL;
        if (spec.parts && format == 2) { /* whose samples have one text */
            spec = tokens_of(TY_TOKENS_IDS, false, false);
            spec.field = names[i], spec.scale = 1;
        }
        for (int k = 0; k < TY_N_TEXT_PARTS; k++)
            if (spec.parts & 1u << k)
                f[i].part[k] = (format == 3 ? columns : names)[(i + k + 1) % N_FIELDS];
        if (ty_map_new(&spec, &a, &f[i].map, &err) < 0)
            abort();
    }
    const char *paths[] = {path};
    ty_data_source src = {.paths = paths,
                          .n_paths = 1,
                          .format = formats[format],
                          .csv_header = TY_CSV_HEADER_NO,
                          .fields = f,
                          .n_fields = N_FIELDS,
                          .blank_lines = how & 128,
                          .skip_bad = how & 64,
                          .n_threads = 1,
                          .max_inflated_bytes = 1 << 20};
    if (ty_dataset_open(&src, &ds, &err) == 0) {
        bool is_small = true;
        for (int i = 0; i < N_FIELDS; i++) {
            is_small = is_small && ds->field[i].row_bytes < ROW_BYTES;
            same_again(f[i].map, &a);
        }
        if (is_small)
            read_everything(ds);
        ty_dataset_close(ds);
    } else if (err.code == TY_E_NONE || !err.message[0]) {
        abort();
    }
    ty_arena_fini(&a);
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    if (data[0] % 4 == 0)
        read_back(data + 1, size - 1);
    else
        learn(data[0] % 4, data[1], data + 2, size - 2);
    return 0;
}
