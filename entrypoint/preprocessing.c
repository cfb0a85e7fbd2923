/* preprocessing.c - see preprocessing.h. */
#include "entrypoint/preprocessing.h"

#include "base/json.h"
#include "container/input/media.h"
#include "container/input/tokenizer/tokenizer.h"
#include "entrypoint/recipe_reader.h"

#include <string.h>

#define PREPROCESSING_MAX_BYTES ((size_t)2 << 30)

static const ty_doc_limits limits = {.max_bytes = PREPROCESSING_MAX_BYTES, .max_nodes = 1u << 26};
static const char *const headers[] = {"auto", "yes", "no"};
static const char *const index_bases[] = {"auto", "zero", "one"};

bool ty_preprocessing_is_needed(const ty_field *fields, int n, const ty_dataset *ds)
{
    for (int i = 0; i < n; i++)
        if (fields[i].map || (ds && i < ds->n_fields && (ds->field[i].image || ds->field[i].audio)))
            return true;
    return false;
}

/* ---- writing ---- */

static void put_text(ty_json_writer *w, const char *key, const char *text)
{
    if (text)
        ty_json_put_string(w, key, text);
}

static void put_number(ty_json_writer *w, const char *key, double v, double usual)
{
    if (v != usual)
        ty_json_put_float(w, key, v);
}

static void put_missing(const ty_field *f, const ty_map_spec *d, ty_json_writer *w)
{
    static const char *const words[] = {
        [TY_MISSING_MEAN] = "mean", [TY_MISSING_MEDIAN] = "median", [TY_MISSING_MOST_FREQUENT] = "most_frequent"};
    if (!d && f->missing_given)
        ty_json_put_float(w, "missing", f->missing);
    if (d && d->missing == TY_MISSING_NUMBER)
        ty_json_put_float(w, "missing", d->missing_number);
    else if (d && d->missing == TY_MISSING_TEXT)
        ty_json_put_string(w, "missing", d->missing_text);
    else if (d && d->missing != TY_MISSING_REFUSED)
        ty_json_put_string(w, "missing", words[d->missing]);
}

static void put_words(ty_json_writer *w, const char *key, const char *const *words, int64_t n)
{
    if (!words) {
        ty_json_put_string(w, key, "auto");
        return;
    }
    ty_json_open_list(w, key);
    for (int64_t i = 0; i < n; i++)
        ty_json_put_string(w, NULL, words[i]);
    ty_json_close(w);
}

static void put_buckets(const ty_map_spec *d, ty_json_writer *w)
{
    if (d->n_quantiles > 0) {
        ty_json_open_map(w, "buckets");
        ty_json_put_int(w, "quantiles", d->n_quantiles);
    } else
        ty_json_open_list(w, "buckets");
    for (int i = 0; i < d->n_boundaries; i++)
        ty_json_put_float(w, NULL, d->boundary[i]);
    ty_json_close(w);
}

static void put_way(const ty_map_spec *d, ty_json_writer *w)
{
    switch (d->way) {
    case TY_MAP_BUCKETS:
        put_buckets(d, w);
        break;
    case TY_MAP_CROSS:
        put_words(w, "cross", d->cross, d->n_cross);
        ty_json_put_int(w, "hash", d->bins);
        break;
    case TY_MAP_HASH:
        ty_json_put_int(w, "hash", d->bins);
        break;
    case TY_MAP_VOCABULARY:
        put_words(w, "vocabulary", d->word, d->n_words);
        ty_json_put_int(w, "oov", d->n_oov);
        if (d->max_size > 0)
            ty_json_put_int(w, "max_size", d->max_size);
        if (d->min_count > 0)
            ty_json_put_int(w, "min_count", d->min_count);
        break;
    case TY_MAP_CLASSES:
        put_words(w, "classes", d->word, d->n_words);
        break;
    case TY_MAP_TAGS:
        if (d->word)
            put_words(w, "classes", d->word, d->n_words);
        break;
    default:
        break;
    }
}

static void put_numbers(const ty_map_spec *d, ty_json_writer *w)
{
    if (d->is_clipped) {
        ty_json_open_list(w, "clip");
        ty_json_put_float(w, NULL, d->low);
        ty_json_put_float(w, NULL, d->high);
        ty_json_close(w);
    }
    if (d->log1p)
        ty_json_put_bool(w, "log1p", true);
    if (d->normalize == TY_NORMALIZE_GIVEN) {
        ty_json_open_map(w, "normalize");
        ty_json_put_float(w, "mean", d->mean);
        ty_json_put_float(w, "std", d->deviation);
        ty_json_close(w);
    } else if (d->normalize)
        ty_json_put_string(w, "normalize", d->normalize == TY_NORMALIZE_STANDARD ? "standard" : "minmax");
}

static void put_transforms(const ty_map_spec *d, ty_json_writer *w)
{
    const char split[2] = {d->split, 0};
    put_way(d, w);
    put_numbers(d, w);
    put_number(w, "pad", d->pad, 0);
    if (d->left)
        ty_json_put_string(w, "side", "left");
    if (d->split)
        ty_json_put_string(w, "split", split);
    if (d->tokenizer) {
        /* Nothing is hidden from a model that is applied. */
        ty_token_part part = d->token_part == TY_TOKENS_MASKED ? TY_TOKENS_IDS : d->token_part;
        ty_json_put_string(w, "tokenizer", TY_TOKENIZER_NAME);
        ty_json_put_string(w, "tokens", ty_token_parts[part]);
        if (d->token_part == TY_TOKENS_HIDDEN)
            put_number(w, "hidden", d->hidden, TY_MAP_HIDDEN);
        if (d->token_part == TY_TOKENS_PREVIOUS)
            ty_json_put_int(w, "start", d->start);
    }
    const char *hot = d->one_row ? "multi_hot" : "one_hot";
    if (d->one_hot < 0)
        ty_json_put_string(w, hot, "auto");
    else if (d->one_hot > 0)
        ty_json_put_int(w, hot, d->one_hot);
}

static void put_channels(ty_json_writer *w, const char *key, const double *v, int n)
{
    ty_json_open_list(w, key);
    for (int c = 0; c < n; c++)
        ty_json_put_float(w, NULL, v[c]);
    ty_json_close(w);
}

/* As the data have settled it, without what varies in training alone. Pictures that had to be alike are such again. */
static void put_image(const ty_image_plan *p, bool is_u8, ty_json_writer *w)
{
    static const char *const fits[] = {"stretch", "cover", "contain", NULL, "none"};
    static const char *const filters[] = {"bilinear", "bicubic", "lanczos", "box", "nearest"};
    ty_json_open_map(w, "image");
    if (!p->all_alike) {
        ty_json_open_list(w, "size");
        ty_json_put_int(w, NULL, p->height);
        ty_json_put_int(w, NULL, p->width);
        ty_json_close(w);
        if (p->fit == TY_IMAGE_SHORTER)
            ty_json_put_int(w, "resize", p->shorter);
        else
            ty_json_put_string(w, "resize", fits[p->fit]);
    }
    ty_json_put_int(w, "channels", p->channels);
    ty_json_put_string(w, "filter", filters[p->filter]);
    ty_json_put_string(w, "layout", p->hwc ? "hwc" : "chw");
    put_number(w, "reducing_gap", p->gap, 2);
    if (p->max_pixels > 0)
        ty_json_put_int(w, "max_pixels", p->max_pixels);
    if (!is_u8) {
        ty_json_put_float(w, "scale", p->scale);
        put_channels(w, "mean", p->mean, p->channels);
        put_channels(w, "std", p->std, p->channels);
    }
    ty_json_close(w);
}

/* The same of a sound. Others of another rate are brought to that of the training data, even if those were alike. */
static void put_audio(const ty_audio_plan *p, ty_json_writer *w)
{
    static const char *const crops[] = {"start", "center", "center"}, *const pads[] = {"end", "center", "start"};
    static const char *const norms[] = {"none", "standard", "peak"}, *const layouts[] = {"auto", "t", "ct", "tc"};
    ty_json_open_map(w, "audio");
    ty_json_put_int(w, "sample_rate", p->rate);
    if (!p->length_alike) {
        ty_json_put_int(w, "length", p->length);
        ty_json_put_string(w, "crop", crops[p->crop]);
        ty_json_put_string(w, "pad", pads[p->pad]);
    }
    ty_json_put_int(w, "channels", p->channels);
    ty_json_put_string(w, "normalize", norms[p->normalize]);
    ty_json_put_string(w, "layout", layouts[p->layout]);
    put_number(w, "scale", p->scale, 1);
    put_number(w, "max_seconds", p->max_seconds, TY_AUDIO_MAX_SECONDS);
    ty_json_close(w);
}

static void put_declared(const ty_field *f, const ty_field_info *info, ty_json_writer *w)
{
    const ty_map_spec *d = f->map ? ty_map_declared(f->map) : NULL;
    int64_t max_length = d ? d->max_length : f->max_length;
    ty_json_open_map(w, "declared");
    put_text(w, "columns", f->columns);
    put_text(w, "member", f->member);
    put_text(w, d && d->way == TY_MAP_TAGS ? "words" : "pair", f->part[TY_PART_SECOND]);
    put_text(w, "answer", f->part[TY_PART_ANSWER]);
    put_text(w, "answer_start", f->part[TY_PART_PLACE]);
    put_text(w, "file", f->file);
    if (f->dtype_given)
        ty_json_put_string(w, "type", ty_dtype_text(f->dtype));
    if (f->shape_given) {
        ty_json_open_list(w, "shape");
        for (int k = 0; k < f->rank; k++)
            ty_json_put_int(w, NULL, f->dim[k]);
        ty_json_close(w);
    }
    put_number(w, "scale", d ? d->scale : f->scale, 1);
    put_number(w, "offset", d ? d->offset : f->offset, 0);
    put_missing(f, d, w);
    if (max_length > 0)
        ty_json_put_int(w, "max_length", max_length);
    if (d)
        put_transforms(d, w);
    if (info->image)
        put_image(info->image, info->type.dtype == TY_U8, w);
    if (info->audio)
        put_audio(info->audio, w);
    ty_json_close(w);
}

static void put_field(const ty_field *f, const ty_field_info *info, ty_json_writer *w)
{
    ty_json_open_map(w, f->name);
    put_declared(f, info, w);
    ty_json_put_string(w, "type", ty_dtype_text((ty_dtype)info->type.dtype));
    ty_json_open_list(w, "shape");
    for (int k = 0; k < info->type.rank; k++)
        ty_json_put_int(w, NULL, info->type.dim[k]);
    ty_json_close(w);
    if (f->map)
        ty_map_write(f->map, w, "settled");
    ty_json_close(w);
}

static void put_feeds(const ty_spec_plan *plan, ty_json_writer *w)
{
    ty_json_open_map(w, "inputs");
    for (int i = 0; i < plan->n_feeds; i++)
        if (plan->feeds[i].input)
            ty_json_put_string(w, plan->feeds[i].name, plan->feeds[i].field);
    ty_json_close(w);
    ty_json_open_list(w, "targets");
    for (int i = 0; i < plan->n_feeds; i++)
        if (!plan->feeds[i].input)
            ty_json_put_string(w, NULL, plan->feeds[i].field);
    ty_json_close(w);
}

static void put_missing_values(const ty_csv_missing *m, ty_json_writer *w)
{
    if (!m->text)
        return;
    ty_json_open_list(w, "missing_values");
    for (int i = 0; i < m->n; i++)
        ty_json_put_string(w, NULL, m->text[i]);
    ty_json_close(w);
}

int ty_preprocessing_write(const ty_recipe_data *d, const ty_field *fields, const ty_dataset *ds,
                           const ty_spec_plan *plan, ty_buf *out, ty_error *err)
{
    ty_json_writer w;
    ty_json_writer_init(&w, out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "version", 1);
    ty_json_open_map(&w, "data");
    ty_json_put_string(&w, "format", ds->format);
    ty_json_put_string(&w, "header", headers[d->header]);
    put_text(&w, "delimiter", d->delimiter);
    put_missing_values(&d->missing_values, &w);
    if (d->blank_lines)
        ty_json_put_bool(&w, "blank_lines", true);
    ty_json_put_string(&w, "index_base", index_bases[d->index_base]);
    ty_json_close(&w);
    if (plan)
        put_feeds(plan, &w);
    ty_json_open_map(&w, "fields");
    for (int i = 0; i < ds->n_fields; i++)
        put_field(&fields[i], &ds->field[i], &w);
    ty_json_close(&w);
    ty_json_close(&w);
    ty_buf_addc(out, '\n');
    return out->failed ? ty_error_set(err, TY_E_LIMIT, TY_PREPROCESSING_NAME " grows beyond its limit") : 0;
}

/* ---- reading ---- */

static int read_document(const char *path, ty_arena *a, ty_doc **out, ty_error *err)
{
    int64_t version = 0;
    if (ty_json_read(a, path, &limits, out, err) < 0)
        return -1;
    const ty_doc *v = ty_doc_find(*out, "version"), *fields = ty_doc_find(*out, "fields");
    if (!v || ty_doc_int(v, &version, err) < 0 || version != 1 || !fields || fields->kind != TY_DOC_MAP) {
        ty_error_set(err, TY_E_CONFIG, "the file is no " TY_PREPROCESSING_NAME " of version 1");
        return ty_error_at(err, "%s", path);
    }
    return 0;
}

static int read_channels(const ty_doc *image, const char *key, double out[4], int *n, ty_error *err)
{
    const ty_doc *d = ty_doc_find(image, key);
    if (!d || d->kind != TY_DOC_LIST || d->n_items < 1 || d->n_items > 4)
        return ty_doc_error(image, err, TY_E_CONFIG, NULL, "no %s is kept for its pictures", key);
    *n = (int)d->n_items;
    for (int c = 0; c < *n; c++)
        if (ty_doc_float(&d->items[c], &out[c], err) < 0)
            return -1;
    return 0;
}

/* What `mean: auto` has learnt. */
static int settle_image(const ty_doc *fields, const ty_doc *entry, const ty_field *f, ty_error *err)
{
    ty_image_plan kept = *f->image;
    const ty_doc *image = ty_doc_find(ty_doc_find(entry, "declared"), "image");
    if (!f->image->mean_of_data)
        return 0;
    if (!image)
        return ty_doc_error(fields, err, TY_E_CONFIG, NULL, "nothing is kept for field \"%s\"", f->name);
    if (read_channels(image, "mean", kept.mean, &kept.n_mean, err) < 0 ||
        read_channels(image, "std", kept.std, &kept.n_std, err) < 0)
        return ty_error_wrap(err, "field \"%s\"", f->name);
    ty_image_plan_keep(f->image, &kept);
    return 0;
}

static int settle_field(const ty_doc *fields, const ty_field *f, ty_error *err)
{
    const ty_doc *entry = ty_doc_find(fields, f->name), *settled = ty_doc_find(entry, "settled");
    if (f->image)
        return settle_image(fields, entry, f, err);
    if (!f->map || ty_map_is_settled(f->map))
        return 0;
    if (!settled)
        return ty_doc_error(fields, err, TY_E_CONFIG, NULL, "nothing is kept for field \"%s\"", f->name);
    return ty_map_read(f->map, settled, err);
}

int ty_preprocessing_settle(const char *path, ty_arena *a, const ty_field *fields, int n, ty_error *err)
{
    ty_doc *doc;
    if (read_document(path, a, &doc, err) < 0)
        return -1;
    for (int i = 0; i < n; i++)
        if (settle_field(ty_doc_find(doc, "fields"), &fields[i], err) < 0)
            return ty_error_at(err, "%s", path);
    return 0;
}

static int choice_of(const ty_doc *map, const char *key, const char *const *choices)
{
    const ty_doc *d = ty_doc_find(map, key);
    for (int i = 0; d && d->kind == TY_DOC_STRING && i < 3; i++)
        if (strcmp(choices[i], d->string) == 0)
            return i;
    return 0;
}

static const char *text_of(const ty_doc *map, const char *key)
{
    const ty_doc *d = ty_doc_find(map, key);
    return d && d->kind == TY_DOC_STRING ? d->string : NULL;
}

static int read_inputs(const ty_doc *doc, ty_arena *a, ty_preprocessing *out, ty_error *err)
{
    const ty_doc *inputs = ty_doc_find(doc, "inputs");
    size_t n = ty_doc_len(inputs);
    out->input = TY_NEW_ARRAY(a, const char *, n + 1);
    out->field = TY_NEW_ARRAY(a, const char *, n + 1);
    out->n_inputs = (int)n;
    for (size_t i = 0; i < n; i++) {
        out->input[i] = inputs->items[i].key;
        if (ty_doc_string(&inputs->items[i], &out->field[i], err) < 0)
            return -1;
    }
    return 0;
}

int ty_preprocessing_read(const char *path, ty_arena *a, ty_preprocessing *out, ty_error *err)
{
    ty_doc *doc;
    *out = (ty_preprocessing){0};
    if (read_document(path, a, &doc, err) < 0)
        return -1;
    const ty_doc *data = ty_doc_find(doc, "data"), *fields = ty_doc_find(doc, "fields");
    out->data = (ty_recipe_data){.given = true,
                                 .format = text_of(data, "format"),
                                 .header = choice_of(data, "header", headers),
                                 .index_base = choice_of(data, "index_base", index_bases),
                                 .delimiter = text_of(data, "delimiter"),
                                 .blank_lines = ty_doc_find(data, "blank_lines") != NULL,
                                 .at = data};
    if (ty_recipe_read_markers(a, ty_doc_find(data, "missing_values"), &out->data.missing_values, err) < 0)
        return ty_error_at(err, "%s", path);
    ty_field *f = TY_NEW_ARRAY(a, ty_field, fields->n_items + 1);
    const char *slash = strrchr(path, '/'); /* files that fields name lie beside it */
    const char *folder = slash ? ty_arena_strndup(a, path, (size_t)(slash - path)) : ".";
    for (uint32_t i = 0; i < fields->n_items; i++) {
        const ty_doc *entry = &fields->items[i], *declared = ty_doc_find(entry, "declared");
        if (ty_recipe_read_field(a, folder, entry->key, declared, &f[i], err) < 0 ||
            settle_field(fields, &f[i], err) < 0)
            return ty_error_at(err, "%s", path);
    }
    out->data.fields = f;
    out->data.n_fields = (int)fields->n_items;
    return read_inputs(doc, a, out, err);
}
