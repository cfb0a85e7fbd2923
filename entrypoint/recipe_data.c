/* recipe_data.c - the sections below `data`: sets of samples and their fields. */
#include "entrypoint/recipe_reader.h"

#include "base/quantity.h"

#include <string.h>

static int read_shape(recipe_reader *rd, const ty_doc *node, ty_field *f)
{
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    size_t n = node->kind == TY_DOC_LIST ? node->n_items : 1;
    if (n > TY_SAMPLE_MAX_RANK)
        return ty_doc_error(node, rd->err, TY_E_RANGE, NULL, "a sample has at most %d dimensions", TY_SAMPLE_MAX_RANK);
    f->shape_given = true;
    f->rank = (int)n;
    for (size_t i = 0; i < n; i++) {
        const ty_doc *dim = node->kind == TY_DOC_LIST ? &node->items[i] : node;
        if (ty_doc_int(dim, &f->dim[i], rd->err) < 0)
            return ty_error_wrap(rd->err, "shape");
        if (f->dim[i] < 1 || f->dim[i] > (int64_t)1 << 40)
            return ty_doc_error(dim, rd->err, TY_E_RANGE, NULL, "a dimension must be at least 1");
    }
    return 0;
}

/* 64, "0-63" or [0, 3]: the text that ty_columns_resolve reads. */
static int read_columns(recipe_reader *rd, const ty_doc *node, const char **out)
{
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    if (node->kind == TY_DOC_MAP)
        return ty_doc_error(node, rd->err, TY_E_TYPE, NULL, "expected columns such as 0-63, found a map");
    const char *text = node->kind == TY_DOC_LIST ? "" : node->raw;
    for (uint32_t i = 0; node->kind == TY_DOC_LIST && i < node->n_items; i++)
        text = ty_arena_printf(rd->a, "%s%s%s", text, i ? "," : "", node->items[i].raw);
    *out = text;
    return 0;
}

static int read_field(recipe_reader *rd, const char *path, const char *name, const ty_doc *node, ty_field *out)
{
    recipe_field f = {0};
    const char *what = ty_arena_printf(rd->a, "%s.fields.%s", path, name);
    if (ty_recipe_bind(rd, what, ty_recipe_field_section.rows, ty_recipe_field_section.n_rows, node, &f) < 0)
        return -1;
    *out = ty_field_make(name);
    out->member = f.member;
    out->file = f.file;
    out->scale = f.scale;
    out->offset = f.offset;
    out->max_length = f.max_length;
    if (f.pair && f.words)
        return ty_doc_error(f.words, rd->err, TY_E_CONFIG, NULL, "%s: give one of pair and words", what);
    if (read_columns(rd, f.columns, &out->columns) < 0 || read_shape(rd, f.shape, out) < 0 ||
        read_columns(rd, f.pair ? f.pair : f.words, &out->part[TY_PART_SECOND]) < 0 ||
        read_columns(rd, f.answer, &out->part[TY_PART_ANSWER]) < 0 ||
        read_columns(rd, f.answer_start, &out->part[TY_PART_PLACE]) < 0)
        return ty_error_wrap(rd->err, "%s", what);
    if (f.type && !ty_dtype_parse(f.type, &out->dtype)) {
        ty_doc_error(ty_doc_find(node, "type"), rd->err, TY_E_RANGE, NULL, "unknown type \"%s\"", f.type);
        return ty_error_help(rd->err,
                             "known are: float32, float64, float16, bfloat16, int8 to int64, uint8 to uint64, bool");
    }
    out->dtype_given = f.type != NULL;
    out->missing_given = f.missing && (f.missing->kind == TY_DOC_INT || f.missing->kind == TY_DOC_FLOAT);
    if (out->missing_given && ty_doc_float(f.missing, &out->missing, rd->err) < 0)
        return ty_error_wrap(rd->err, "missing");
    if (ty_recipe_read_transforms(rd, node, &f, out) < 0)
        return ty_error_wrap(rd->err, "%s", what);
    if (ty_recipe_read_image(rd, what, f.image, out) < 0 || ty_recipe_read_audio(rd, what, f.audio, out) < 0)
        return -1;
    if (ty_field_check(out, rd->err) < 0) {
        char place[256];
        return ty_error_at(rd->err, "%s", ty_doc_place(node, place, sizeof place));
    }
    return 0;
}

int ty_recipe_read_field(ty_arena *a, const char *folder, const char *name, const ty_doc *node, ty_field *out,
                         ty_error *err)
{
    ty_recipe none = {.folder = folder};
    recipe_reader rd = {
        .a = a, .r = &none, .err = err, .settings = TY_NEW_ARRAY(a, ty_setting, ty_recipe_field_section.n_rows)};
    return read_field(&rd, "preprocessing", name, node, out);
}

static int read_fields(recipe_reader *rd, const char *path, const ty_doc *node, ty_recipe_data *out)
{
    bool is_list = node->kind == TY_DOC_LIST;
    if (!is_list && ty_doc_expect(node, TY_DOC_MAP, rd->err) < 0)
        return ty_error_wrap(rd->err, "%s.fields", path);
    ty_field *fields = TY_NEW_ARRAY(rd->a, ty_field, node->n_items + 1);
    for (uint32_t i = 0; i < node->n_items; i++) {
        const char *name;
        if (is_list && ty_doc_string(&node->items[i], &name, rd->err) < 0)
            return ty_error_wrap(rd->err, "%s.fields", path);
        if (is_list)
            fields[i] = ty_field_make(name);
        else if (read_field(rd, path, node->items[i].key, &node->items[i], &fields[i]) < 0)
            return -1;
    }
    if (node->n_items == 0)
        return ty_doc_error(node, rd->err, TY_E_RANGE, NULL, "\"%s.fields\" names no field", path);
    out->fields = fields;
    out->n_fields = (int)node->n_items;
    return ty_recipe_order_crosses(rd, node, fields, out->n_fields);
}

/* Windows over text and tokens. Validation has those of the training data unless it says otherwise, but never at random
 * places. */
static int read_windows(recipe_reader *rd, const ty_doc *node, const recipe_data *d, const ty_recipe_data *same,
                        ty_windows *out)
{
    static const char *const others[] = {"stride", "starts", "symbols", "tokenizer", "end_token", "token_type"};
    if (d->window > 0)
        *out = (ty_windows){.length = d->window,
                            .stride = d->stride,
                            .random = d->starts == 1 && !same,
                            .symbols = (ty_symbols)d->symbols,
                            .tokenizer = ty_recipe_path(rd, d->tokenizer),
                            .end_token = d->end_token,
                            .wide = d->token_type == 1};
    else if (same)
        *out = same->windows;
    out->random = out->random && !same;
    for (size_t i = 0; d->window == 0 && i < sizeof others / sizeof others[0]; i++) {
        const ty_doc *other = ty_doc_find(node, others[i]);
        if (other)
            return ty_doc_error_key(other, rd->err, TY_E_CONFIG, "say window: 128 beside it",
                                    "\"%s\" is about windows of tokens, and there are none", others[i]);
    }
    return 0;
}

/* true, false, or the size of a stream's buffer. */
static int read_shuffle(recipe_reader *rd, const ty_doc *node, bool is_train, ty_recipe_data *out)
{
    out->shuffle = is_train;
    out->shuffle_buffer = TY_SHUFFLE_BUFFER;
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    if (node->kind == TY_DOC_INT) {
        if (ty_doc_int(node, &out->shuffle_buffer, rd->err) < 0)
            return ty_error_wrap(rd->err, "shuffle");
        out->shuffle = out->shuffle_buffer > 0;
    } else if (ty_doc_bool(node, &out->shuffle, rd->err) < 0) {
        return ty_error_wrap(rd->err, "shuffle");
    }
    if (out->shuffle_buffer < 0 || out->shuffle_buffer > (int64_t)1 << 30)
        return ty_doc_error(node, rd->err, TY_E_RANGE, NULL, "a buffer for shuffling has 1 to %lld samples",
                            (long long)1 << 30);
    if (!is_train && out->shuffle)
        return ty_doc_error(node, rd->err, TY_E_CONFIG, NULL, "validation data is never shuffled");
    return 0;
}

int ty_recipe_read_markers(ty_arena *a, const ty_doc *node, ty_csv_missing *out, ty_error *err)
{
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    if (node->kind != TY_DOC_LIST)
        return ty_doc_error_key(node, err, TY_E_TYPE, "write [\"\", NA, -999]",
                                "missing_values: expected a list of texts and numbers");
    const char **text = TY_NEW_ARRAY(a, const char *, node->n_items + 1);
    for (uint32_t i = 0; i < node->n_items; i++) {
        const ty_doc *d = &node->items[i];
        if (d->kind == TY_DOC_LIST || d->kind == TY_DOC_MAP || !d->raw)
            return ty_doc_error(d, err, TY_E_TYPE, NULL, "missing_values: expected texts and numbers");
        text[i] = d->raw;
    }
    *out = (ty_csv_missing){text, (int)node->n_items};
    return 0;
}

static int read_length(recipe_reader *rd, const ty_doc *d, int64_t before, int64_t *out)
{
    if (ty_doc_int(d, out, rd->err) < 0)
        return ty_error_wrap(rd->err, "length_buckets");
    if (*out > before && *out <= (int64_t)1 << 26)
        return 0;
    return ty_doc_error(d, rd->err, TY_E_RANGE, NULL, "length_buckets: expected rising lengths from 1, found %lld",
                        (long long)*out);
}

/* auto, 64 or [64, 128]. Programs are compiled for all of them. */
static int read_length_buckets(recipe_reader *rd, const ty_doc *node, const ty_recipe_data *same, ty_recipe_data *out)
{
    enum { MAX_LENGTHS = 16 };
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    if (same)
        return ty_doc_error(node, rd->err, TY_E_CONFIG, NULL,
                            "length_buckets of data.train are those of validation too");
    out->length_auto = node->raw && strcmp(node->raw, "auto") == 0;
    if (out->length_auto)
        return 0;
    bool is_list = node->kind == TY_DOC_LIST;
    uint32_t n = is_list ? node->n_items : 1;
    if (n < 1 || n > MAX_LENGTHS)
        return ty_doc_error(node, rd->err, TY_E_LIMIT, NULL, "length_buckets: expected 1 to %d lengths, found %u",
                            MAX_LENGTHS, n);
    int64_t *length = TY_NEW_ARRAY(rd->a, int64_t, n);
    for (uint32_t i = 0; i < n; i++)
        if (read_length(rd, is_list ? &node->items[i] : node, i > 0 ? length[i - 1] : 0, &length[i]) < 0)
            return -1;
    out->length = length;
    out->n_lengths = (int)n;
    return 0;
}

/* Validation data that are a share of the training data: all of what these are, and nothing of its own. */
static int read_split(recipe_reader *rd, const ty_doc *node, double split, const ty_recipe_data *same,
                      ty_recipe_data *out)
{
    static const char *const own[] = {"channel", "path", "files", "format", "fields", "window", "access"};
    if (!same)
        return ty_doc_error(ty_doc_find(node, "split"), rd->err, TY_E_CONFIG, NULL,
                            "split is of data.validation: its share of the samples of data.train");
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        if (ty_doc_find(node, own[i])) {
            ty_doc_error(ty_doc_find(node, own[i]), rd->err, TY_E_CONFIG, NULL,
                         "data.validation is split from data.train, and has no %s of its own", own[i]);
            return ty_error_help(rd->err, "give one of them: split: 0 takes data of its own");
        }
    *out = *same;
    out->at = node;
    out->split = split;
    out->shuffle = false;
    return 0;
}

/* same: whose fields are taken when none are given; NULL for the training data, whose fields are then found in the
 * files (found.h). */
static int read_data(recipe_reader *rd, const char *name, const ty_doc *node, const ty_recipe_data *same,
                     ty_recipe_data *out)
{
    recipe_data d = {0};
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    const char *path = ty_arena_printf(rd->a, "data.%s", name);
    if (ty_recipe_bind(rd, path, ty_recipe_data_section.rows, ty_recipe_data_section.n_rows, node, &d) < 0)
        return -1;
    if (d.split > 0)
        return read_split(rd, node, d.split, same, out);
    *out = (ty_recipe_data){.given = true,
                            .path = ty_recipe_path(rd, d.path),
                            .pattern = d.pattern,
                            .format = d.format,
                            .header = d.header,
                            .index_base = d.index_base,
                            .delimiter = d.delimiter,
                            .lenient = !d.strict,
                            .blank_lines = d.blank_lines,
                            .skip_bad = d.on_bad == 1,
                            .max_bad = d.max_bad,
                            .keep_index = d.keep_index,
                            .target = d.target,
                            .preprocessing = ty_recipe_path(rd, d.preprocessing),
                            .at = node,
                            .access = d.access,
                            .shard = d.shard,
                            .samples = d.samples,
                            .pipe_timeout = d.pipe_timeout,
                            .remainder = d.remainder};
    out->channel = d.channel ? d.channel : d.path ? NULL : ty_arena_strdup(rd->a, name);
    if (same && d.preprocessing)
        return ty_doc_error(ty_doc_find(node, "preprocessing"), rd->err, TY_E_CONFIG, NULL,
                            "validation data take the transforms of data.train: say preprocessing there");
    if (read_shuffle(rd, d.shuffle, !same, out) < 0 || read_length_buckets(rd, d.length_buckets, same, out) < 0 ||
        ty_recipe_read_markers(rd->a, d.missing_values, &out->missing_values, rd->err) < 0 ||
        ty_recipe_read_names(rd, d.attributes, "attributes", &out->attributes, &out->n_attributes) < 0)
        return -1;
    const ty_doc *remainder = ty_doc_find(node, "remainder");
    if (same && remainder && d.remainder != TY_REMAINDER_JOIN)
        return ty_doc_error(remainder, rd->err, TY_E_CONFIG, NULL,
                            "validation counts every sample once: its remainder is always join");
    if (read_windows(rd, node, &d, same, &out->windows) < 0)
        return -1;
    if (d.delimiter && strlen(d.delimiter) != 1)
        return ty_doc_error(ty_doc_find(node, "delimiter"), rd->err, TY_E_RANGE, NULL, "a delimiter is one character");
    bool wants_same = !d.fields || (d.fields->kind == TY_DOC_STRING && strcmp(d.fields->string, "same") == 0);
    if (!wants_same)
        return read_fields(rd, path, d.fields, out);
    if (!same && d.fields)
        return ty_doc_error(d.fields, rd->err, TY_E_MISSING_KEY, NULL, "\"data.train\" needs fields of its own");
    if (!same)
        return 0;
    out->fields = same->fields;
    out->n_fields = same->n_fields;
    if (!out->format)
        out->format = same->format;
    if (!ty_doc_find(node, "strict"))
        out->lenient = same->lenient;
    if (!out->missing_values.text)
        out->missing_values = same->missing_values;
    if (!ty_doc_find(node, "blank_lines"))
        out->blank_lines = same->blank_lines;
    if (!ty_doc_find(node, "keep_index"))
        out->keep_index = same->keep_index;
    if (!ty_doc_find(node, "on_bad")) {
        out->skip_bad = same->skip_bad;
        out->max_bad = same->max_bad;
    }
    return 0;
}

int ty_recipe_read_data(recipe_reader *rd, const ty_doc *node)
{
    static const ty_bind_row rows[] = {
        {"train", TY_BIND_NODE, 0, .required = true, .help = "training data"},
        {"validation", TY_BIND_NODE, sizeof(ty_doc *), .help = "data to evaluate on"},
    };
    const ty_doc *parts[2] = {0};
    if (ty_recipe_bind(rd, "data", rows, 2, node, parts) < 0 ||
        read_data(rd, "train", parts[0], NULL, &rd->r->train) < 0)
        return -1;
    if (!rd->r->train.given)
        return ty_doc_error(node, rd->err, TY_E_MISSING_KEY, NULL, "\"data.train\" is missing");
    if (read_data(rd, "validation", parts[1], &rd->r->train, &rd->r->validation) < 0)
        return -1;
    return ty_recipe_share_transforms(rd, &rd->r->train, &rd->r->validation);
}

/* "8 GiB", "500MB" or a number of bytes. */
int ty_recipe_read_memory(recipe_reader *rd, const ty_doc *node, uint64_t *out)
{
    if (!node || node->kind == TY_DOC_NULL)
        return 0;
    if (node->raw && ty_bytes_parse(node->raw, out))
        return 0;
    ty_doc_error(node, rd->err, TY_E_RANGE, NULL, "\"%s\": expected an amount of memory, found \"%s\"", node->key,
                 node->raw ? node->raw : "");
    return ty_error_help(rd->err, "write \"8 GiB\" or \"500 MB\"");
}

int ty_recipe_read_data_threads(recipe_reader *rd, const ty_doc *node)
{
    if (!node || node->kind == TY_DOC_NULL || (node->raw && strcmp(node->raw, "auto") == 0))
        return 0;
    if (ty_doc_int(node, &rd->r->data_threads, rd->err) < 0)
        return ty_error_wrap(rd->err, "data_threads");
    if (rd->r->data_threads >= 1 && rd->r->data_threads <= 64)
        return 0;
    return ty_doc_error(node, rd->err, TY_E_RANGE, NULL, "\"data_threads\": expected auto, or 1 to 64, found %lld",
                        (long long)rd->r->data_threads);
}
