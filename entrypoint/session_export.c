/* session_export.c - the trained model: its weights by name, in the format in which it came, with what goes with it. */
#include "base/json.h"
#include "container/input/map/map.h"
#include "container/input/tokenizer/tokenizer.h"
#include "entrypoint/adapter.h"
#include "entrypoint/export.h"
#include "entrypoint/front.h"
#include "entrypoint/session.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct weights {
    const ty_named_tensor *items; /* sorted by name */
    size_t n;
} weights;

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const ty_named_tensor *)a)->name, ((const ty_named_tensor *)b)->name);
}

static const void *find_weight(void *ctx, const char *name, const ty_type *type)
{
    const weights *w = ctx;
    ty_named_tensor key = {.name = name};
    const ty_named_tensor *found = bsearch(&key, w->items, w->n, sizeof *w->items, compare_names);
    return found && ty_type_same(&found->type, type) ? found->data : NULL;
}

/* ---- adapters: what they have learnt goes into the matrices that they belong to ---- */

static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n > k && strcmp(name + n - k, end) == 0;
}

static const ty_model_value *find_matrix(const ty_session *s, const char *left)
{
    size_t n = strlen(left) - strlen(TY_LORA_LEFT);
    for (int i = 0; i < ty_model_n_weights(s->model); i++) {
        const ty_model_value *w = ty_model_weight(s->model, i);
        if (strlen(w->name) == n && strncmp(w->name, left, n) == 0)
            return w;
    }
    return NULL;
}

/* W + alpha / rank L R. W may lie unaligned in its file. */
static float *merge(ty_session *s, const ty_model_value *w, const float *left, const float *right, int64_t rank)
{
    int64_t rows = w->dim[0], columns = w->dim[1];
    float *out = ty_arena_alloc(&s->arena, (size_t)(rows * columns) * sizeof *out);
    float scale = (float)(s->recipe.lora.alpha / (double)rank);
    memcpy(out, w->data, (size_t)(rows * columns) * sizeof *out);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < rank; k++) {
            float factor = scale * left[i * rank + k], *row = out + i * columns;
            const float *from = right + k * columns;
            for (int64_t j = 0; j < columns; j++)
                row[j] += factor * from[j];
        }
    return out;
}

/* items are sorted by name: the right factor follows the left one. Returns how many are left. */
static size_t merge_adapters(ty_session *s, ty_named_tensor *items, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const ty_model_value *w = NULL;
        if (i + 1 < n && ends_with(items[i].name, TY_LORA_LEFT) && ends_with(items[i + 1].name, TY_LORA_RIGHT))
            w = find_matrix(s, items[i].name);
        if (!w) {
            items[kept++] = items[i];
            continue;
        }
        float *merged = merge(s, w, items[i].data, items[i + 1].data, items[i].type.dim[1]);
        items[kept++] = (ty_named_tensor){.name = w->name, .type = ty_type_make(TY_F32, 2, w->dim), .data = merged};
        i++;
    }
    qsort(items, kept, sizeof *items, compare_names);
    return kept;
}

/* Where the weights' only place is the file beside the model, those that stay as they are go there, too. */
static size_t add_others(ty_session *s, ty_named_tensor *items, size_t n)
{
    size_t all = n;
    for (int i = 0; i < ty_model_n_weights(s->model); i++) {
        const ty_model_value *v = ty_model_weight(s->model, i);
        const ty_named_tensor key = {.name = v->name};
        if (bsearch(&key, items, n, sizeof *items, compare_names))
            continue;
        items[all++] = (ty_named_tensor){v->name, ty_type_make(v->dtype, v->rank, v->dim), (void *)(uintptr_t)v->data};
    }
    qsort(items, all, sizeof *items, compare_names);
    return all;
}

static weights list_weights(ty_session *s)
{
    weights w = {.n = (size_t)ty_program_n_tensors(s->program)};
    ty_named_tensor *items = TY_NEW_ARRAY(&s->arena, ty_named_tensor, w.n + (size_t)ty_model_n_weights(s->model));
    for (size_t i = 0; i < w.n; i++) {
        bool trained;
        ty_tensor t = ty_program_tensor(s->program, (int)i, &items[i].name, &trained);
        items[i].type = t.type;
        items[i].data = t.data;
    }
    qsort(items, w.n, sizeof *items, compare_names);
    if (s->recipe.lora.rank > 0)
        w.n = merge_adapters(s, items, w.n);
    if (ty_model_weights_are_beside(s->model))
        w.n = add_others(s, items, w.n);
    w.items = items;
    return w;
}

/* What was trained, before any of it is merged. */
static int make_adapter(ty_session *s, ty_adapter_files *out, ty_error *err)
{
    int n = ty_program_n_tensors(s->program), kept = 0;
    ty_named_tensor *items = TY_NEW_ARRAY(&s->arena, ty_named_tensor, n);
    for (int i = 0; i < n; i++) {
        bool trained;
        ty_tensor t = ty_program_tensor(s->program, i, &items[kept].name, &trained);
        items[kept].type = t.type;
        items[kept].data = t.data;
        kept += trained;
    }
    return ty_adapter_make(items, (size_t)kept, &s->recipe.lora, ty_model_preparation_of(s->model)->is_turned,
                           s->recipe.model, &s->arena, out, err);
}

/* Whether names say no more than the numbers of their classes do. */
static bool are_numbers(const char *const *names, int64_t n)
{
    char digits[24];
    bool same = true;
    for (int64_t i = 0; same && i < n; i++) {
        snprintf(digits, sizeof digits, "%lld", (long long)i);
        same = strcmp(names[i], digits) == 0;
    }
    return same;
}

/* The words that the labels are numbers of, if they are. */
static void name_classes(ty_session *s, const char *label)
{
    const ty_recipe_data *d = &s->recipe.train;
    for (int i = 0; i < d->n_fields; i++) {
        const ty_map *map = strcmp(d->fields[i].name, label) == 0 ? d->fields[i].map : NULL;
        int64_t n = map ? ty_map_n_ids(map) : 0;
        if (!map || !ty_map_is_settled(map) || n == 0 || !ty_map_word(map, 0))
            continue;
        const char **names = TY_NEW_ARRAY(&s->arena, const char *, n);
        for (int64_t k = 0; k < n; k++)
            names[k] = ty_map_word(map, k);
        if (!are_numbers(names, n))
            ty_model_name_classes(s->model, names, n);
    }
}

typedef struct model_writer {
    ty_session *session;
    weights weights;
} model_writer;

static int write_model(void *ctx, const char *path, ty_error *err)
{
    model_writer *w = ctx;
    ty_session *s = w->session;
    ty_model_moments moments;
    ty_program_moments(s->program, &s->spec, &moments);
    return ty_model_write_trained(s->model, path, find_weight, &w->weights, s->served ? NULL : &moments, err);
}

static int write_front(void *ctx, const char *model, const char *path, bool *is_written, ty_error *err)
{
    ty_session *s = ((model_writer *)ctx)->session;
    return ty_front_write(&s->plan, ty_spec_fields(&s->recipe, &s->plan, &s->recipe.train, &s->arena), s->train, model,
                          path, is_written, err);
}

static const char *recipe_json(ty_session *s)
{
    ty_buf text;
    ty_json_writer w;
    ty_buf_init(&text, 1 << 20);
    ty_json_writer_init(&w, &text, TY_JSON_COMPACT);
    ty_json_open_map(&w, NULL);
    for (int i = 0; i < s->recipe.n_settings; i++)
        if (strcmp(s->recipe.settings[i].value, "-") != 0)
            ty_json_put_string(&w, s->recipe.settings[i].key, s->recipe.settings[i].value);
    ty_json_close(&w);
    const char *out = text.failed ? NULL : ty_arena_strdup(&s->arena, text.data);
    ty_buf_fini(&text);
    return out;
}

int ty_session_export(ty_session *s, ty_error *err)
{
    double start = ty_session_now_s();
    int n_companions;
    const char *const *companions = ty_model_companions(s->model, &n_companions);
    if ((s->served && (ty_session_join(s, s->steps_done, err) < 0 || ty_served_settle(s->served, err) < 0)) ||
        ty_program_fetch_states(s->program, err) < 0)
        return -1;
    for (int i = 0; i < s->plan.n_feeds; i++)
        if (s->plan.feeds[i].is_label)
            name_classes(s, s->plan.feeds[i].field);
    ty_buf preprocessing;
    ty_buf_init(&preprocessing, (size_t)2 << 30);
    int rc = ty_session_preprocessing(s, &preprocessing, err);
    ty_buf tokenizer;
    ty_buf_init(&tokenizer, TY_TOKENIZER_MAX_FILE_BYTES);
    if (rc == 0)
        rc = ty_session_tokenizer(s, &tokenizer, err);
    ty_adapter_files adapter;
    if (rc == 0 && s->recipe.export_adapter)
        rc = make_adapter(s, &adapter, err);
    model_writer writer = {s, list_weights(s)};
    const char *format = ty_model_format(s->model);
    ty_value_named values[TY_SESSION_MAX_METRICS + 1];
    int n = s->evaluated_step >= 0 ? s->n_latest : 0;
    memcpy(values, s->latest, sizeof values[0] * (size_t)n);
    if (n == 0 && isfinite(s->last_loss))
        values[n++] = (ty_value_named){"loss", s->last_loss};
    ty_export e = {.folder = s->job->model_folder,
                   .tokenizer = tokenizer.len > 0 ? tokenizer.data : NULL,
                   .tokenizer_bytes = tokenizer.len,
                   .model_name = ty_model_artifact(s->model),
                   .adapter = s->recipe.export_adapter ? &adapter : NULL,
                   .companions = companions,
                   .n_companions = n_companions,
                   .data_name = ty_model_has_data_file(s->model) ? "model.onnx" TY_MODEL_DATA_SUFFIX : NULL,
                   .format = format,
                   .origin = s->recipe.model,
                   .recipe_json = recipe_json(s),
                   .step = s->written.step,
                   .epoch = s->written.epoch,
                   .has_index = s->train && s->train->index.given,
                   .index_base = s->train ? s->train->index.base : 0,
                   .index_width = s->train ? s->train->index.width : 0,
                   .preprocessing = preprocessing.len > 0 ? preprocessing.data : NULL,
                   .metrics = values,
                   .n_metrics = n,
                   .weights = writer.weights.items,
                   .n_weights = writer.weights.n,
                   .write_model = write_model,
                   .write_front = s->recipe.export_preprocessing && s->train ? write_front : NULL,
                   .ctx = &writer};
    if (rc == 0)
        rc = ty_export_write(&e, err);
    ty_buf_fini(&preprocessing);
    ty_buf_fini(&tokenizer);
    s->times.export_s = ty_session_now_s() - start;
    return rc;
}
