/* cmodel_weights.c - see cmodel_weights.h. */
#include "compiler/import/cmodel_weights.h"

#include <string.h>

int cmodel_weights_open(const char *source_path, cmodel_weights *w, ty_error *err)
{
    *w = (cmodel_weights){0};
    ty_arena_init(&w->arena);
    size_t n = strlen(source_path);
    char *path = ty_arena_printf(&w->arena, "%.*s.safetensors", (int)(n > 2 ? n - 2 : n), source_path);
    if (!ty_file_exists(path))
        return 0;
    if (ty_safetensors_open(path, &w->file, err) < 0)
        return ty_error_wrap(err, "weights of %s", source_path);
    w->path = path;
    return 0;
}

void cmodel_weights_close(cmodel_weights *w)
{
    if (w->path)
        ty_safetensors_close(&w->file);
    ty_arena_fini(&w->arena);
    *w = (cmodel_weights){0};
}

int cmodel_weights_find(const cmodel_weights *w, const char *name, const ty_type *type, const void **data,
                        ty_error *err)
{
    char wants[160], has[160];
    const ty_safetensors_entry *e = w->path ? ty_safetensors_find(&w->file, name) : NULL;
    *data = e ? e->data : NULL;
    if (!e || ty_type_same(&e->type, type))
        return 0;
    if (e->type.dtype != TY_F32)
        ty_error_set(err, TY_E_UNSUPPORTED, "weight \"%s\": expected F32, found %s", name, e->dtype_text);
    else
        ty_error_set(err, TY_E_SHAPE, "weight \"%s\" is %s in the source and %s here", name,
                     ty_type_text(type, wants, sizeof wants), ty_type_text(&e->type, has, sizeof has));
    return ty_error_at(err, "%s", w->path);
}

int cmodel_weights_all_known(const cmodel_weights *w, bool (*known)(const void *ctx, const char *name), const void *ctx,
                             ty_error *err)
{
    for (size_t i = 0; w->path && i < w->file.n_entries; i++) {
        const char *name = w->file.entries[i].name;
        if (known(ctx, name))
            continue;
        ty_error_set(err, TY_E_MODEL_FILE, "the source has no weight \"%s\"", name);
        ty_error_at(err, "%s", w->path);
        return ty_error_help(err, "remove or rename it to start from the source's own initial weights");
    }
    return 0;
}
