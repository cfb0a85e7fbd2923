/* export.c - the model folder, in one order: model, weights, list. */
#include "entrypoint/export.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/quantity.h"
#include "container/input/tokenizer/tokenizer.h"
#include "container/output/modeldir.h"
#include "entrypoint/adapter.h"
#include "base/safetensors.h"
#include "base/version.h"

#include <string.h>

#define WEIGHTS_NAME       "model.safetensors"
#define PREPROCESSING_NAME "preprocessing.json"

enum { MAX_METRICS = 64, MAX_FOLDERS = 64 };

int ty_export_check(const char *folder, ty_error *err)
{
    return ty_modeldir_check(folder, err) < 0 ? ty_error_wrap(err, "model folder") : 0;
}

/* A model that is a folder: each file of it. */
static int list_model(const ty_export *e, ty_modeldir *md, const char *name, int depth, ty_error *err)
{
    const char *path = ty_modeldir_path(md, name);
    ty_arena arena;
    ty_file_entry *entry;
    size_t n;
    if (!ty_file_is_folder(path))
        return ty_modeldir_add(md, name, strncmp(e->format, "onnx", 4) == 0 ? "onnx" : "model", err);
    if (depth > MAX_FOLDERS)
        return ty_error_set(err, TY_E_LIMIT, "%s: folders nest deeper than %d levels", path, MAX_FOLDERS);
    ty_arena_init(&arena);
    int rc = ty_file_list(path, &arena, &entry, &n, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = list_model(e, md, ty_arena_printf(&arena, "%s/%s", name, entry[i].name), depth + 1, err);
    ty_arena_fini(&arena);
    return rc;
}

/* One of an earlier run would not be this model's. */
static int write_front(const ty_export *e, ty_modeldir *md, ty_error *err)
{
    ty_arena a;
    bool is_written = false;
    if (!e->write_front)
        return 0;
    ty_arena_init(&a);
    const char *model = ty_arena_strdup(&a, ty_modeldir_path(md, e->model_name));
    const char *path = ty_arena_strdup(&a, ty_modeldir_path(md, TY_FRONT_NAME));
    int rc = ty_file_remove(path, err);
    if (rc == 0)
        rc = e->write_front(e->ctx, model, path, &is_written, err);
    ty_arena_fini(&a);
    return rc == 0 && is_written ? ty_modeldir_add(md, TY_FRONT_NAME, "onnx", err) : rc;
}

static int write_files(const ty_export *e, ty_modeldir *md, ty_error *err)
{
    static const ty_safetensors_meta meta[] = {{"format", "pt"}};
    if (e->write_model(e->ctx, ty_modeldir_path(md, e->model_name), err) < 0 ||
        list_model(e, md, e->model_name, 0, err) < 0)
        return -1;
    if (e->data_name && ty_modeldir_add(md, e->data_name, "onnx data", err) < 0)
        return -1;
    if (e->preprocessing && (ty_file_write(ty_modeldir_path(md, PREPROCESSING_NAME), e->preprocessing,
                                           strlen(e->preprocessing), 0644, err) < 0 ||
                             ty_modeldir_add(md, PREPROCESSING_NAME, "preprocessing", err) < 0))
        return -1;
    if (write_front(e, md, err) < 0)
        return -1;
    if (ty_safetensors_write(ty_modeldir_path(md, WEIGHTS_NAME), e->weights, e->n_weights, meta, 1, err) < 0)
        return -1;
    if (ty_modeldir_add(md, WEIGHTS_NAME, "safetensors", err) < 0)
        return -1;
    if (!e->tokenizer)
        return 0;
    if (ty_file_write(ty_modeldir_path(md, TY_TOKENIZER_NAME), e->tokenizer, e->tokenizer_bytes, 0644, err) < 0)
        return -1;
    return ty_modeldir_add(md, TY_TOKENIZER_NAME, "tokenizer", err);
}

/* Tokenizers and settings that lay beside the model before; a tokenizer of the training's own goes before. */
static int write_companion(const ty_export *e, ty_modeldir *md, const char *path, ty_error *err)
{
    ty_file_view file;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (e->tokenizer && strcmp(name, TY_TOKENIZER_NAME) == 0)
        return 0;
    if (ty_file_map(path, &file, err) < 0)
        return -1;
    int rc = ty_file_write(ty_modeldir_path(md, name), file.bytes, file.n_bytes, 0644, err);
    ty_file_unmap(&file);
    return rc == 0 ? ty_modeldir_add(md, name, "companion", err) : rc;
}

static int write_companions(const ty_export *e, ty_modeldir *md, ty_error *err)
{
    for (int i = 0; i < e->n_companions; i++)
        if (write_companion(e, md, e->companions[i], err) < 0)
            return -1;
    return 0;
}

static int write_adapter(const ty_export *e, ty_modeldir *md, ty_error *err)
{
    static const ty_safetensors_meta meta[] = {{"format", "pt"}};
    const ty_adapter_files *f = e->adapter;
    if (!f)
        return 0;
    if (ty_modeldir_put(md, TY_ADAPTER_CONFIG, "adapter", f->config, strlen(f->config), err) < 0 ||
        ty_safetensors_write(ty_modeldir_path(md, TY_ADAPTER_WEIGHTS), f->tensors, f->n_tensors, meta, 1, err) < 0)
        return -1;
    return ty_modeldir_add(md, TY_ADAPTER_WEIGHTS, "adapter", err);
}

int ty_export_write(const ty_export *e, ty_error *err)
{
    ty_modeldir *md;
    ty_metric metrics[MAX_METRICS];
    size_t n = 0;
    for (; n < (size_t)e->n_metrics && n < MAX_METRICS; n++)
        metrics[n] = (ty_metric){e->metrics[n].name, e->metrics[n].value};
    ty_modelinfo info = {.format = e->format,
                         .origin = e->origin,
                         .recipe_json = e->recipe_json,
                         .version = TY_VERSION,
                         .step = e->step,
                         .epoch = e->epoch,
                         .has_index = e->has_index,
                         .index_base = e->index_base,
                         .index_width = e->index_width,
                         .metrics = metrics,
                         .n_metrics = n};
    if (ty_modeldir_open(e->folder, &md, err) < 0)
        return ty_error_wrap(err, "model folder");
    int rc = write_files(e, md, err);
    if (rc == 0)
        rc = write_companions(e, md, err);
    if (rc == 0)
        rc = write_adapter(e, md, err);
    if (rc == 0)
        rc = ty_modeldir_commit(md, &info, err);
    ty_modeldir_free(md);
    return rc < 0 ? ty_error_wrap(err, "writing the model") : 0;
}

void ty_export_list(const char *folder, ty_buf *out)
{
    ty_arena a;
    ty_file_entry *entries;
    size_t n = 0;
    ty_arena_init(&a);
    if (ty_file_list(folder, &a, &entries, &n, NULL) == 0)
        for (size_t i = 0; i < n; i++) {
            char size[32];
            if (entries[i].kind == 'f')
                ty_buf_addf(out, "  %s/%s  %s\n", folder, entries[i].name,
                            ty_bytes_text(entries[i].n_bytes, size, sizeof size));
            else if (entries[i].kind == 'd')
                ty_buf_addf(out, "  %s/%s/\n", folder, entries[i].name);
        }
    ty_arena_fini(&a);
}
