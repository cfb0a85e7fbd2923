/* command_data.c - `trainyard data VERB PATH`: what training data are, before anything is trained on them. Each verb is
 * in a file of its own. */
#include "entrypoint/command_data_pack.h"

#include "container/input/bytes.h"
#include "container/input/media.h"
#include "container/input/format.h"
#include "container/input/map/map.h"
#include "entrypoint/found.h"
#include "entrypoint/verbs.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATA_PICTURE_SIDE = 64, DATA_SOUND_FRAMES = 8000 };

static const ty_option options[TY_N_DATA_OPTIONS] = {
    [TY_DATA_FORMAT] =
        {"--format", "NAME",
         "csv, npy, npz, idx, parquet, arrow, tfrecord, recordio, mxnet, libsvm, jsonlines, lines, text, "
         "tokens, images or audio (default: found)",
         false},
    [TY_DATA_HEADER] = {"--header", "YES", "csv: yes or no: whether the first line names the columns (default: found)",
                        false},
    [TY_DATA_MISSING_VALUES] =
        {"--missing-values", "A,B",
         "csv: what says that there is no value; \"NA,\": NA and nothing (default: the usual ones)", false},
    [TY_DATA_INDEX_BASE] = {"--index-base", "BASE", "libsvm: zero or one (default: one if no index 0 occurs)", false},
    [TY_DATA_FILES] = {"--files", "PATTERN", "of a folder: only files that match, such as \"*.npy\" (default: all)",
                       false},
    [TY_DATA_SKIP_BAD] = {"--skip-bad", "N", "leave out records that are bad, up to N of them (default: refused)",
                          false},
    [TY_DATA_TARGET] = {"--target", "FIELD", "stats: which field the others are compared with", false},
    [TY_DATA_ROWS] = {"--rows", "N", "head: how many samples (default 5)", false},
    [TY_DATA_FILE_BYTES] = {"--file-bytes", "N", "convert: how large a file may become (default 150000000)", false},
    [TY_DATA_SVG] = {"--svg", "FILE", "stats: draw the distributions there", false},
    [TY_DATA_HTML] = {"--html", "FILE", "stats: the same as a page, with a few pictures where the data have them",
                      false},
    [TY_DATA_JSON] = {"--json", NULL, "check, stats, plan: one JSON object on stdout", false},
    [TY_DATA_INTO] = {"--into", "FOLDER", "serve-pipe: where the FIFOs are made", false},
    [TY_DATA_CHANNEL] = {"--channel", "NAME", "serve-pipe: the channel's name (default training)", false},
    [TY_DATA_EPOCHS] = {"--epochs", "N", "serve-pipe: how many (default: until it is stopped)", false},
    [TY_DATA_SHUFFLE] =
        {"--shuffle", "SEED",
         "serve-pipe: objects, or lines of a manifest, in a new order each epoch; pack: files in another "
         "order",
         false},
    [TY_DATA_WRAP] = {"--wrap", NULL, "serve-pipe: each object as one RecordIO record", false},
    [TY_DATA_ATTRIBUTES] = {"--attributes", "A,B-ref", "serve-pipe: PATH is an augmented manifest; send these", false},
    [TY_DATA_SHARD] = {"--shard", "I/N", "serve-pipe: every N-th object from I on, as ShardedByS3Key", false},
    [TY_DATA_OUT] = {"--out", "FOLDER", "pack: where the files shall be", false},
    [TY_DATA_DIR] = {"--data-dir", "DIR", "plan: folder that has the channels as folders or files", false},
    [TY_DATA_HOSTS] = {"--hosts", "N", "plan: how many hosts the job has (default 1)", false},
    [TY_DATA_PROCESSES] = {"--processes", "N", "plan: how many processes on each (default 1)", false},
    [TY_DATA_MODE] = {"--mode", "MODE", "plan: File, FastFile or Pipe (default: as the data lie here)", false},
    [TY_DATA_SHARDED] = {"--sharded", NULL, "plan: each host has files of its own (ShardedByS3Key)", false},
    [TY_DATA_RECIPE] = {"--recipe", "FILE", "check, head, stats: fields as this recipe's data.train declares them",
                        false},
    [TY_DATA_PREPROCESSING] = {"--preprocessing", "FILE",
                               "stats: write what the recipe's transforms learn of these data (preprocessing.json)",
                               false},
    [TY_DATA_SIZE] = {"--size", "SIZE", "pack: how large a file may become (default 150MB)", false},
    [TY_DATA_TOKENIZER] = {"--tokenizer", "FILE", "tokenize: a tokenizer.json", false},
    [TY_DATA_SYMBOLS] = {"--symbols", "NAME", "tokenize: bytes or characters, in place of a tokenizer", false},
    [TY_DATA_END_TOKEN] = {"--end-token", "TOKEN", "tokenize: the token that follows each file", false},
    [TY_DATA_WINDOW] = {"--window", "N", "text and files of tokens: how many tokens a sample has", false},
    [TY_DATA_COMPRESSED] = {"--compressed", NULL, "serve-pipe: do not inflate what is compressed", false},
};

#define BIT TY_VERB_TAKES
#define READING                                                                                          \
    (BIT(TY_DATA_FORMAT) | BIT(TY_DATA_HEADER) | BIT(TY_DATA_MISSING_VALUES) | BIT(TY_DATA_INDEX_BASE) | \
     BIT(TY_DATA_SKIP_BAD) | BIT(TY_DATA_WINDOW))

static const ty_verb verbs[] = {
    {"check", "one file or folder", 1, READING | BIT(TY_DATA_FILES) | BIT(TY_DATA_RECIPE) | BIT(TY_DATA_JSON),
     ty_command_data_check},
    {"head", "one file or folder", 1, READING | BIT(TY_DATA_FILES) | BIT(TY_DATA_RECIPE) | BIT(TY_DATA_ROWS),
     ty_command_data_head},
    {"stats", "one file or folder", 1,
     READING | BIT(TY_DATA_FILES) | BIT(TY_DATA_TARGET) | BIT(TY_DATA_SVG) | BIT(TY_DATA_HTML) | BIT(TY_DATA_JSON) |
         BIT(TY_DATA_RECIPE) | BIT(TY_DATA_PREPROCESSING),
     ty_command_data_stats},
    {"convert", "a file or folder, and one to write to", 2, READING | BIT(TY_DATA_FILES) | BIT(TY_DATA_FILE_BYTES),
     ty_command_data_convert},
    {"plan", "a recipe", 1,
     BIT(TY_DATA_DIR) | BIT(TY_DATA_HOSTS) | BIT(TY_DATA_PROCESSES) | BIT(TY_DATA_MODE) | BIT(TY_DATA_SHARDED) |
         BIT(TY_DATA_JSON),
     ty_command_data_plan},
    {"pack", "files or folders", -1, READING | BIT(TY_DATA_OUT) | BIT(TY_DATA_SIZE) | BIT(TY_DATA_SHUFFLE),
     ty_command_data_pack},
    {"tokenize", "a text or a folder of texts, and a file to write to", 2,
     BIT(TY_DATA_TOKENIZER) | BIT(TY_DATA_SYMBOLS) | BIT(TY_DATA_END_TOKEN), ty_command_data_tokenize},
    {"serve-pipe", "files or a folder", -1,
     BIT(TY_DATA_INTO) | BIT(TY_DATA_CHANNEL) | BIT(TY_DATA_EPOCHS) | BIT(TY_DATA_SHUFFLE) | BIT(TY_DATA_WRAP) |
         BIT(TY_DATA_ATTRIBUTES) | BIT(TY_DATA_SHARD) | BIT(TY_DATA_COMPRESSED),
     ty_command_data_serve},
};

/* ---- opening ---- */

static int data_choice(const char *option, const char *text, const char *const *words, int *out, ty_error *err)
{
    if (!text)
        return 0;
    for (int i = 1; words[i]; i++)
        if (strcmp(text, words[i]) == 0) {
            *out = i;
            return 0;
        }
    return ty_error_set(err, TY_E_USAGE, "%s needs %s or %s, found \"%.100s\"", option, words[1], words[2], text);
}

/* "NA,?,": what stands between commas, here an empty field too. */
static ty_csv_missing data_missing(const ty_arguments_given *given, ty_arena *a)
{
    const char *p = given->value[TY_DATA_MISSING_VALUES];
    const char **text = TY_NEW_ARRAY(a, const char *, p ? strlen(p) + 1 : 1);
    int n = 0;
    for (; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        text[n++] = ty_arena_strndup(a, p, strcspn(p, ","));
    return (ty_csv_missing){n > 0 ? text : NULL, n};
}

static int data_source(const ty_arguments_given *given, ty_arena *a, ty_data_source *out, ty_error *err)
{
    static const char *const headers[] = {"auto", "yes", "no", NULL}, *const bases[] = {"auto", "zero", "one", NULL};
    int header = 0, base = 0;
    if (data_choice("--header", given->value[TY_DATA_HEADER], headers, &header, err) < 0 ||
        data_choice("--index-base", given->value[TY_DATA_INDEX_BASE], bases, &base, err) < 0)
        return -1;
    const char *bad = given->value[TY_DATA_SKIP_BAD];
    char *end = NULL;
    long long max_bad = bad ? strtoll(bad, &end, 10) : 0;
    if (bad && (end == bad || *end || max_bad < 1))
        return ty_error_set(err, TY_E_USAGE, "--skip-bad needs a number from 1 on, found \"%.100s\"", bad);
    const char *window = given->value[TY_DATA_WINDOW];
    long long length = window ? strtoll(window, &end, 10) : 0;
    if (window && (end == window || *end || length < 1))
        return ty_error_set(err, TY_E_USAGE, "--window needs a number from 1 on, found \"%.100s\"", window);
    *out = (ty_data_source){.csv_missing = data_missing(given, a),
                            .windows = {.length = length, .symbols = TY_SYMBOLS_BYTES},
                            .skip_bad = bad != NULL,
                            .max_bad = max_bad,
                            .paths = &given->words[1],
                            .n_paths = strcmp(given->words[0], "pack") == 0 ? given->n_words - 1 : 1,
                            .pattern = given->value[TY_DATA_FILES],
                            .format = given->value[TY_DATA_FORMAT],
                            .csv_header = (ty_csv_header)header,
                            .index_base = (ty_index_base)base};
    return 0;
}

/* Pictures of any size are looked at in one, and sounds of any length and rate. */
static ty_media data_media(bool all, ty_arena *a)
{
    ty_media m = {TY_NEW(a, ty_image_plan), TY_NEW(a, ty_audio_plan)};
    *m.image = ty_image_plan_make();
    m.image->height = m.image->width = DATA_PICTURE_SIDE;
    m.image->channels = 3;
    *m.audio = ty_audio_plan_make();
    m.audio->length = m.audio->rate = DATA_SOUND_FRAMES;
    m.audio->channels = 1;
    ty_media_decode_all(&m, all);
    return m;
}

/* counts: features that records do not have are counted, not refused. */
static ty_field data_field(const ty_data_survey *s, int i, bool counts, ty_media media, ty_arena *a)
{
    const ty_data_part *part = &s->part[i];
    const char *name = part->name ? part->name : ty_arena_printf(a, "column %d", i);
    ty_field f = ty_field_make(name);
    f.file = part->file;
    f.image = part->is_picture ? media.image : NULL;
    f.audio = part->is_sound ? media.audio : NULL;
    f.missing_given = s->is_table || (counts && !part->is_picture && !part->is_sound);
    f.missing = (double)NAN; /* which statistics count and leave out */
    if (s->is_table)
        f.columns = ty_arena_printf(a, "%d", i);
    return f;
}

/* What lines of LibSVM have. The longest is found by its colons, since a data set has rows of one length. */
typedef struct data_lines {
    int64_t longest;
    bool has_qid, has_weight;
} data_lines;

static void data_look_at_line(const char *p, const char *end, data_lines *out)
{
    int64_t n = 0;
    const char *comment = memchr(p, '#', (size_t)(end - p)), *first = p;
    end = comment ? comment : end;
    while (first < end && strchr(" \t", *first))
        first++;
    for (const char *c = p; (c = memchr(c, ':', (size_t)(end - c))) != NULL; c++) {
        bool is_qid = c - p > 4 && memcmp(c - 3, "qid", 3) == 0;
        bool is_weight =
            !is_qid && n == 0 && !memchr(first, ' ', (size_t)(c - first)) && !memchr(first, '\t', (size_t)(c - first));
        out->has_qid |= is_qid;
        out->has_weight |= is_weight;
        n += !is_qid && !is_weight;
    }
    out->longest = n > out->longest ? n : out->longest;
}

static int data_look_at_lines(const ty_data_source *source, ty_arena *a, data_lines *out, ty_error *err)
{
    ty_data_file *file;
    int n;
    if (ty_files_list(source->paths, source->n_paths, a, &file, &n, err) < 0)
        return -1;
    *out = (data_lines){.longest = 1};
    for (int i = 0; i < n; i++) {
        ty_bytes bytes;
        if (ty_bytes_open(file[i].path, NULL, &bytes, err) < 0)
            return -1;
        const char *p = (const char *)bytes.data, *end = p + bytes.n;
        for (const char *newline; p < end; p = newline + 1) {
            newline = memchr(p, '\n', (size_t)(end - p));
            newline = newline ? newline : end;
            data_look_at_line(p, newline, out);
        }
        ty_bytes_close(&bytes);
    }
    return 0;
}

/* Entries as they stand are what a converted file shall hold, not rows of mostly zeros: -1 stands behind the last. */
static int data_take_entries(const ty_data_source *source, ty_field *fields, int *n_fields, ty_arena *a, ty_error *err)
{
    data_lines lines;
    if (data_look_at_lines(source, a, &lines, err) < 0)
        return -1;
    static const char *const names[] = {"label", "weight", "qid", "ids", "values"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if ((i == 1 && !lines.has_weight) || (i == 2 && !lines.has_qid))
            continue;
        ty_field f = ty_field_make(names[i]);
        f.max_length = i >= 3 ? lines.longest : 0;
        f.missing_given = i == 3;
        f.missing = -1;
        fields[(*n_fields)++] = f;
    }
    return 0;
}

static bool data_is_written(const ty_arguments_given *given)
{
    return strcmp(given->words[0], "convert") == 0 || strcmp(given->words[0], "pack") == 0;
}

/* A text that is a target by its name. */
static bool data_takes_classes(const ty_data_survey *s, int i)
{
    return !s->part[i].is_list && s->part[i].name && ty_found_is_target(s->part[i].name);
}

/* Its texts become numbers of classes. */
static int data_name_classes(ty_field *f, ty_data_part *part, ty_arena *a, ty_error *err)
{
    ty_map_spec spec = {.field = f->name, .way = TY_MAP_CLASSES, .scale = 1.0};
    f->missing_given = part->is_text = false;
    return ty_map_new(&spec, a, &f->map, err);
}

/* in_all: of all texts of a sample, of which each may have another number. */
static int data_add_measure(ty_field text, ty_measure what, bool in_all, const char *suffix, ty_field *out, ty_arena *a,
                            ty_error *err)
{
    *out = text;
    out->name = ty_arena_printf(a, "%s%s", text.name, suffix);
    out->member = text.member ? text.member : text.name;
    out->missing_given = false;
    ty_map_spec spec = {.field = out->name,
                        .way = TY_MAP_LENGTH,
                        .scale = 1.0,
                        .measure = what,
                        .in_all = in_all,
                        .missing = TY_MISSING_TEXT,
                        .missing_text = ""};
    return ty_map_new(&spec, a, &out->map, err);
}

/* How long texts are, and how many a list has: `check` wants to know besides which are damaged, `stats` how many words
 * they have, of lists how many characters. */
static int data_measure_text(const ty_arguments_given *given, ty_data_opened *d, bool is_list, ty_field *fields, int *n,
                             ty_arena *a, ty_error *err)
{
    static const struct {
        ty_measure what;
        const char *suffix;
    } both[][2] = {{{TY_MEASURE_CHARACTERS, " (characters)"}, {TY_MEASURE_WORDS, " (words)"}},
                   {{TY_MEASURE_TEXTS, " (texts)"}, {TY_MEASURE_CHARACTERS, " (characters)"}}};
    ty_field text = fields[*n];
    bool checks = strcmp(given->words[0], "check") == 0, counts = strcmp(given->words[0], "stats") == 0;
    d->n_text++;
    for (int i = 0; i < (counts ? 2 : 1); i++)
        if (data_add_measure(text, both[is_list][i].what, is_list, counts ? both[is_list][i].suffix : "",
                             &fields[(*n)++], a, err) < 0)
            return -1;
    return checks ? data_add_measure(text, TY_MEASURE_FAULTS, is_list, " (damaged)", &fields[(*n)++], a, err) : 0;
}

int ty_data_check_folder(const char *folder, ty_error *err)
{
    const ty_format *named = ty_format_of_name(folder);
    if (!named || strcmp(named->name, "tfrecord") == 0)
        return 0;
    ty_error_set(err, TY_E_USAGE, "what is written is a folder of TFRecord files, and %s is called like a file of %s",
                 folder, named->name);
    return ty_error_help(err, "give the name of a folder, such as data/train");
}

bool ty_data_measures(const ty_data_opened *d, int i, ty_measure what)
{
    const ty_map_spec *spec = d->field[i].map ? ty_map_declared(d->field[i].map) : NULL;
    return spec && spec->way == TY_MAP_LENGTH && spec->measure == what;
}

/* Nothing was found that could be a field. */
static int data_refuse_empty(const ty_arguments_given *given, const ty_data_survey *s, ty_error *err)
{
    bool is_npz = strcmp(s->format, "npz") == 0;
    ty_error_set(err, TY_E_DATA, "%s",
                 is_npz ? "the zip archive holds no *.npy member, so it is no npz file" : "the data hold no values");
    ty_error_help(err,
                  is_npz ? "unpack it, if it holds files of another format"
                         : "check that the file is whole; --format says what it is, where that was found (%s) wrongly",
                  s->format);
    return ty_error_at(err, "%s", given->words[1]);
}

/* Labels are names of folders. */
static bool data_has_folders(const char *format)
{
    return strcmp(format, "images") == 0 || strcmp(format, "audio") == 0;
}

int ty_data_open(const ty_arguments_given *given, ty_arena *a, ty_data_opened *out, ty_error *err)
{
    ty_data_source source;
    *out = (ty_data_opened){.n_text = 0};
    if (data_source(given, a, &source, err) < 0 || ty_data_survey_make(&source, a, &out->survey, err) < 0)
        return -1;
    ty_field *fields = TY_NEW_ARRAY(a, ty_field, 2 * out->survey.n_parts + 8);
    bool is_written = data_is_written(given);
    bool copies = is_written && !source.skip_bad &&
                  (ty_data_copies_records(out->survey.format) || ty_format_is_columns(out->survey.format));
    ty_media media = data_media(strcmp(given->words[0], "check") == 0, a);
    out->source = source;
    if (is_written && strcmp(out->survey.format, "libsvm") == 0) {
        if (data_take_entries(&source, fields, &source.n_fields, a, err) < 0)
            return -1;
    } else {
        for (int i = 0; i < out->survey.n_parts; i++) {
            fields[source.n_fields] = data_field(&out->survey, i, !is_written || copies, media, a);
            bool is_folder = is_written && data_has_folders(out->survey.format) && out->survey.part[i].is_text;
            if (is_folder && data_name_classes(&fields[source.n_fields], &out->survey.part[i], a, err) < 0)
                return -1;
            if (!out->survey.part[i].is_text)
                source.n_fields++;
            else if (is_written && !copies)
                out->n_text++;
            else if (is_written || !data_takes_classes(&out->survey, i)) {
                bool is_list = out->survey.part[i].is_list;
                if (data_measure_text(given, out, is_list, fields, &source.n_fields, a, err) < 0)
                    return -1;
            } else if (data_name_classes(&fields[source.n_fields++], &out->survey.part[i], a, err) < 0)
                return -1;
        }
    }
    if (source.n_fields == 0)
        return data_refuse_empty(given, &out->survey, err);
    source.any_length = true;
    source.fields = out->field = fields;
    return ty_dataset_open(&source, &out->ds, err);
}

/* What the command line says counts, else what the recipe says. */
int ty_data_open_declared(const ty_arguments_given *given, ty_arena *a, ty_data_opened *out, ty_error *err)
{
    ty_data_source source;
    *out = (ty_data_opened){.n_text = 0};
    if (data_source(given, a, &source, err) < 0 ||
        ty_recipe_load(given->value[TY_DATA_RECIPE], NULL, 0, a, &out->recipe, err) < 0)
        return -1;
    const ty_recipe_data *d = &out->recipe.train;
    if (d->n_fields == 0)
        return ty_error_set(err, TY_E_CONFIG, "%s declares no fields in data.train", given->value[TY_DATA_RECIPE]);
    source.fields = d->fields;
    source.n_fields = d->n_fields;
    source.pattern = source.pattern ? source.pattern : d->pattern;
    source.windows = d->windows;
    source.lenient = d->lenient;
    source.csv_delimiter = d->delimiter ? d->delimiter[0] : 0;
    source.format = source.format ? source.format : d->format;
    source.csv_header = source.csv_header ? source.csv_header : (ty_csv_header)d->header;
    source.index_base = source.index_base ? source.index_base : (ty_index_base)d->index_base;
    source.csv_missing = source.csv_missing.text ? source.csv_missing : d->missing_values;
    source.skip_bad |= d->skip_bad;
    source.max_bad = source.max_bad ? source.max_bad : d->max_bad;
    out->source = source;
    out->field = d->fields;
    return ty_dataset_open(&source, &out->ds, err);
}

int ty_data_target(const ty_arguments_given *given, const ty_dataset *ds)
{
    const char *wanted = given->value[TY_DATA_TARGET];
    if (wanted)
        return ty_dataset_find(ds, wanted);
    for (int i = 0; i < ds->n_fields; i++)
        if (ty_found_is_target(ds->field[i].name))
            return i;
    return -1;
}

/* ---- the command ---- */

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    return ty_verbs_run(
        &ty_command_data, verbs, sizeof verbs / sizeof verbs[0],
        "write `trainyard data check PATH`, or head, stats, plan, convert, pack or serve-pipe in place of check", given,
        a, err);
}

const ty_command_row ty_command_data = {
    "data",
    "VERB PATH... [TO]",
    "look at training data, and write them in a format that is quick to read",
    "check    reads all of it: format, samples, fields with types, ranges, missing values; the first fault with its "
    "place\n"
    "head     the first samples\n"
    "stats    the distribution of each field, drawn; what is constant, missing, or nearly the target\n"
    "plan     of a recipe: how a job reads its data, in which order and why, batches of an epoch, memory, threads\n"
    "convert  writes TFRecord files of tf.train.Example to a folder\n"
    "pack     the same of many small files, pictures and sounds too: files of about one size, named with their "
    "records\n"
    "tokenize  writes the tokens of texts to one file, uint16 or uint32 each, for format: tokens\n"
    "serve-pipe  feeds FOLDER/NAME_0, NAME_1 ... as the platform feeds a channel in Pipe mode\n\n"
    "PATH is a file, or a folder of files as a channel has them.\n\n"
    "    trainyard data check data/train\n"
    "    trainyard data stats train.csv --target=price --svg stats.svg\n"
    "    trainyard data stats train.csv --recipe=train.yaml --preprocessing=preprocessing.json\n"
    "    trainyard data plan train.yaml --data-dir=data --hosts=2 --processes=4\n"
    "    trainyard data convert clicks.libsvm data/train\n"
    "    trainyard data pack pictures --out=data/train --size=150MB --shuffle=1\n"
    "    trainyard data tokenize texts data/train/all.bin --tokenizer=tokenizer.json --end-token='<|endoftext|>'\n"
    "    trainyard data serve-pipe data/train --into=/opt/ml/input/data --epochs=3\n",
    options,
    TY_N_DATA_OPTIONS,
    1,
    TY_MAX_WORDS - 1,
    false,
    false,
    run};
