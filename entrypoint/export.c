/* export.c - the model folder, in one order: model, weights, list. */
#include "entrypoint/export.h"

#include "base/arena.h"
#include "base/file.h"
#include "base/quantity.h"
#include "container/output/modeldir.h"
#include "container/output/safetensors.h"
#include "base/version.h"

#include <string.h>

#define WEIGHTS_NAME "model.safetensors"

enum { MAX_METRICS = 64 };

int ty_export_check(const char *folder, ty_error *err)
{
    return ty_modeldir_check(folder, err) < 0 ? ty_error_wrap(err, "model folder") : 0;
}

static int write_files(const ty_export *e, ty_modeldir *md, ty_error *err)
{
    static const ty_safetensors_meta meta[] = {{"format", "pt"}};
    if (e->write_model(e->ctx, ty_modeldir_path(md, e->model_name), err) < 0 ||
        ty_modeldir_add(md, e->model_name, strncmp(e->format, "onnx", 4) == 0 ? "onnx" : "model", err) < 0)
        return -1;
    if (e->data_name && ty_modeldir_add(md, e->data_name, "onnx data", err) < 0)
        return -1;
    if (ty_safetensors_write(ty_modeldir_path(md, WEIGHTS_NAME), e->weights, e->n_weights, meta, 1, err) < 0)
        return -1;
    return ty_modeldir_add(md, WEIGHTS_NAME, "safetensors", err);
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
                         .metrics = metrics,
                         .n_metrics = n};
    if (ty_modeldir_open(e->folder, &md, err) < 0)
        return ty_error_wrap(err, "model folder");
    int rc = write_files(e, md, err);
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
        }
    ty_arena_fini(&a);
}
