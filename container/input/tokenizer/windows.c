/* windows.c - data sets of windows over a row of tokens (windows.h). */
#include "container/input/tokenizer/windows.h"

#include "base/file.h"
#include "base/hash.h"
#include "base/rng.h"
#include "container/input/convert.h"
#include "container/input/format.h"
#include "container/input/tokenizer/corpus.h"

#include <stdio.h>
#include <string.h>

enum { WINDOWS_STREAM = 0x77696e64 }; /* of random numbers: "wind" */

typedef struct windows_impl {
    ty_corpus corpus;
    ty_windows w;
    bool *is_target; /* of a field */
} windows_impl;

static int64_t windows_stride(const ty_windows *w)
{
    return w->stride > 0 ? w->stride : w->length;
}

/* ---- reading ---- */

static void windows_read_at(const ty_dataset *ds, int field, int64_t start, void *out)
{
    const windows_impl *impl = ds->impl;
    ty_corpus_read(&impl->corpus, start + impl->is_target[field], impl->w.length, (ty_dtype)ds->field[field].type.dtype,
                   out);
}

static int windows_read(const ty_dataset *ds, int field, const int64_t *samples, int64_t n, void *out, ty_error *err)
{
    (void)err;
    const windows_impl *impl = ds->impl;
    uint8_t *dst = out;
    for (int64_t i = 0; i < n; i++, dst += ds->field[field].row_bytes)
        windows_read_at(ds, field, samples[i] * windows_stride(&impl->w), dst);
    return 0;
}

static int windows_read_all(const ty_dataset *ds, const ty_pick *pick, void *const *out, ty_error *err)
{
    (void)err;
    const windows_impl *impl = ds->impl;
    bool random = impl->w.random && pick->augment;
    uint64_t n_starts = (uint64_t)(impl->corpus.n - impl->w.length);
    for (int64_t i = 0; i < pick->n; i++) {
        int64_t sample = pick->sample[i];
        int64_t start = random ? (int64_t)ty_rng_below(pick->seed, WINDOWS_STREAM, (uint32_t)pick->epoch,
                                                       (uint64_t)sample * 4, n_starts)
                               : sample * windows_stride(&impl->w);
        for (int f = 0; f < ds->n_fields; f++)
            windows_read_at(ds, f, start, (uint8_t *)out[f] + (size_t)i * ds->field[f].row_bytes);
    }
    return 0;
}

static void windows_place(const ty_dataset *ds, int field, int64_t sample, char *out, size_t n)
{
    const windows_impl *impl = ds->impl;
    int64_t at = sample * windows_stride(&impl->w) + impl->is_target[field];
    const ty_corpus_part *p = ty_corpus_find(&impl->corpus, at);
    snprintf(out, n, "%s: tokens %lld to %lld", p->file->path, (long long)(at - p->first),
             (long long)(at - p->first + impl->w.length - 1));
}

static void windows_close(ty_dataset *ds)
{
    windows_impl *impl = ds->impl;
    if (impl != NULL)
        ty_corpus_close(&impl->corpus);
}

static const ty_dataset_ops windows_ops = {
    .read = windows_read, .read_all = windows_read_all, .place = windows_place, .close = windows_close};

/* ---- opening ---- */

static int windows_is_target(const ty_field *f, bool *out, ty_error *err)
{
    static const char *const usual[] = {"targets", "target", "labels", "label", "y"};
    const char *what = f->member != NULL ? f->member : f->name;
    *out = false;
    for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
        *out |= strcmp(what, usual[i]) == 0;
    if (*out || f->member == NULL || strcmp(what, "inputs") == 0)
        return 0;
    ty_error_set(err, TY_E_CONFIG, "field \"%s\": a window has \"inputs\" and \"targets\", no \"%s\"", f->name, what);
    return ty_error_help(err, "member: inputs, or member: targets");
}

static int windows_field(ty_dataset *ds, const ty_field *f, int i, ty_error *err)
{
    windows_impl *impl = ds->impl;
    ty_field_info *info = &ds->field[i];
    ty_dtype dtype = f->dtype_given ? f->dtype : TY_I64;
    int64_t length = impl->w.length;
    if (f->scale != 1 || f->offset != 0 || f->columns != NULL || f->max_length > 0)
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": tokens take no scale, offset, columns or max_length",
                            f->name);
    if (f->shape_given && (f->rank != 1 || f->dim[0] != length))
        return ty_error_set(err, TY_E_CONFIG, "field \"%s\": its shape is [%lld], as `window` says", f->name,
                            (long long)length);
    info->type = ty_type_make(dtype, 1, &length);
    info->row_bytes = ty_type_bytes(&info->type);
    info->is_integer = ty_dtype_is_integer(dtype);
    return windows_is_target(f, &impl->is_target[i], err);
}

/* A token that no field's type can hold, or that no window has. */
static int windows_range(ty_dataset *ds, int i, ty_error *err)
{
    const windows_impl *impl = ds->impl;
    const ty_corpus *c = &impl->corpus;
    ty_field_info *info = &ds->field[i];
    int64_t low, high, stride = windows_stride(&impl->w);
    if (c->max_at < 0)
        return 0;
    info->min = c->min;
    info->max = c->max;
    info->min_sample = c->min_at / stride < ds->n_samples ? c->min_at / stride : ds->n_samples - 1;
    info->max_sample = c->max_at / stride < ds->n_samples ? c->max_at / stride : ds->n_samples - 1;
    ty_integer_range((ty_dtype)info->type.dtype, &low, &high);
    if (!info->is_integer || c->max <= high)
        return 0;
    ty_error_set(err, TY_E_DATA_VALUE, "field \"%s\": token %lld does not fit %s", info->name, (long long)c->max,
                 ty_dtype_text((ty_dtype)info->type.dtype));
    return ty_error_at(err, "%s", ty_corpus_find(c, c->max_at)->file->path);
}

static int windows_count(ty_dataset *ds, ty_error *err)
{
    const windows_impl *impl = ds->impl;
    int64_t n = impl->corpus.n, needed = impl->w.length + 1;
    if (n < needed) {
        ty_error_set(err, TY_E_DATA, "there are %lld tokens, but a window needs %lld: one more than its inputs",
                     (long long)n, (long long)needed);
        return ty_error_at(err, "%s", ds->files[0].path);
    }
    ds->n_samples = (n - needed) / windows_stride(&impl->w) + 1;
    return 0;
}

/* Text that a tokenizer.json has, or will have, to be kept with the model. */
static int windows_keep(ty_dataset *ds, ty_error *err)
{
    const windows_impl *impl = ds->impl;
    ty_buf text;
    ty_buf_init(&text, TY_TOKENIZER_MAX_FILE_BYTES);
    int rc = 0;
    if (impl->w.tokenizer != NULL)
        rc = ty_file_read(impl->w.tokenizer, &text, err);
    else if (impl->corpus.symbol != NULL)
        rc = ty_corpus_describe(&impl->corpus, &text, err);
    if (rc == 0 && text.len > 0) {
        ds->tokenizer = ty_arena_strndup(&ds->arena, text.data, text.len);
        ds->tokenizer_bytes = text.len;
    }
    ty_buf_fini(&text);
    return rc;
}

static uint64_t windows_hash(const ty_dataset *ds)
{
    const ty_windows *w = &((const windows_impl *)ds->impl)->w;
    int64_t numbers[5] = {w->length, windows_stride(w), w->random, (int64_t)w->symbols, w->wide};
    uint64_t h = ty_fnv1a(TY_FNV_START, numbers, sizeof numbers);
    h = ty_fnv1a(h, ds->tokenizer != NULL ? ds->tokenizer : "", ds->tokenizer_bytes);
    return w->end_token != NULL ? ty_fnv1a(h, w->end_token, strlen(w->end_token)) : h;
}

static int windows_open(ty_dataset *ds, const ty_data_source *src, bool is_text, ty_error *err)
{
    windows_impl *impl = TY_NEW(&ds->arena, windows_impl);
    ds->impl = impl;
    ds->ops = &windows_ops;
    impl->w = src->windows;
    impl->is_target = TY_NEW_ARRAY(&ds->arena, bool, src->n_fields);
    if (impl->w.length < 1 || impl->w.length > (int64_t)1 << 26 || impl->w.stride < 0) {
        ty_error_set(err, TY_E_CONFIG, "%s needs to know how many tokens a sample has", ds->format);
        return ty_error_help(err, "say window: 128 in the recipe, or format: lines, where each line is a sample");
    }
    for (int i = 0; i < src->n_fields; i++)
        if (windows_field(ds, &src->fields[i], i, err) < 0)
            return -1;
    ds->is_partial = src->types_only;
    if (src->types_only)
        return 0;
    ty_bytes_options options = {.no_map = src->no_map, .max_inflated_bytes = src->max_inflated_bytes};
    bool same = src->like != NULL && src->like->ops == &windows_ops;
    const ty_corpus *like = same ? &((const windows_impl *)src->like->impl)->corpus : NULL;
    int rc =
        is_text
            ? ty_corpus_open_text(&impl->w, &options, ds->files, ds->n_files,
                                  like != NULL && like->symbol != NULL ? like : NULL, &ds->arena, &impl->corpus, err)
            : ty_corpus_open_tokens(&impl->w, &options, ds->files, ds->n_files, &ds->arena, &impl->corpus, err);
    if (rc < 0 || windows_count(ds, err) < 0 || windows_keep(ds, err) < 0)
        return -1;
    for (int i = 0; i < src->n_fields; i++)
        if (windows_range(ds, i, err) < 0)
            return -1;
    ds->settings = windows_hash(ds);
    ds->stats.n_files = ds->n_files;
    for (int i = 0; i < ds->n_files; i++)
        ds->stats.file_bytes += ds->files[i].n_bytes;
    ds->stats.memory_bytes = impl->corpus.owned_bytes;
    return 0;
}

int ty_dataset_open_text(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    return windows_open(ds, src, true, err);
}

int ty_dataset_open_tokens(ty_dataset *ds, const ty_data_source *src, ty_error *err)
{
    return windows_open(ds, src, false, err);
}

int ty_survey_windows(const ty_data_source *src, const ty_data_file *files, int n_files, ty_arena *a,
                      ty_data_survey *out, ty_error *err)
{
    (void)files, (void)n_files, (void)err;
    if (src->windows.length < 1) {
        ty_error_set(err, TY_E_CONFIG, "text and tokens need to know how many tokens a sample has");
        return ty_error_help(err, "say window: 128 in the recipe, --window=128 here; or format: lines in the recipe, "
                                  "where each line is a sample");
    }
    out->part = TY_NEW_ARRAY(a, ty_data_part, 2);
    out->part[0].name = "inputs";
    out->part[1].name = "targets";
    out->n_parts = 2;
    return 0;
}
