/* cmodel_weights.c - see cmodel_weights.h. Nothing in the file is trusted: every offset is checked against its size. */
#include "compiler/import/cmodel_weights.h"

#include "base/json.h"

#include <inttypes.h>
#include <string.h>

#define METADATA "__metadata__"

static int weights_header(cmodel_weights *w, ty_error *err)
{
    uint64_t n = 0;
    for (int i = 0; i < 8 && w->file.n_bytes >= 8; i++)
        n |= (uint64_t)w->file.bytes[i] << (8 * i);
    if (w->file.n_bytes < 8 || n > w->file.n_bytes - 8)
        return ty_error_set(err, TY_E_MODEL_FILE, "expected a header within %zu bytes, found a length of %" PRIu64,
                            w->file.n_bytes, n);
    if (ty_json_parse(&w->arena, w->path, (const char *)w->file.bytes + 8, (size_t)n, NULL, &w->header, err) < 0 ||
        ty_doc_expect(w->header, TY_DOC_MAP, err) < 0)
        return -1;
    w->data = w->file.bytes + 8 + n;
    w->n_data_bytes = w->file.n_bytes - 8 - n;
    return 0;
}

int cmodel_weights_open(const char *source_path, cmodel_weights *w, ty_error *err)
{
    *w = (cmodel_weights){0};
    ty_arena_init(&w->arena);
    size_t n = strlen(source_path);
    char *path = ty_arena_printf(&w->arena, "%.*s.safetensors", (int)(n > 2 ? n - 2 : n), source_path);
    if (!ty_file_exists(path))
        return 0;
    if (ty_file_map(path, &w->file, err) < 0)
        return ty_error_wrap(err, "weights of %s", source_path);
    w->path = path;
    if (weights_header(w, err) == 0)
        return 0;
    ty_error_at(err, "%s", path);
    return ty_error_wrap(err, "weights of %s", source_path);
}

void cmodel_weights_close(cmodel_weights *w)
{
    if (w->path)
        ty_file_unmap(&w->file);
    ty_arena_fini(&w->arena);
    *w = (cmodel_weights){0};
}

static int weights_read_type(const ty_doc *tensor, ty_type *type, ty_error *err)
{
    const ty_doc *dtype = ty_doc_find(tensor, "dtype"), *shape = ty_doc_find(tensor, "shape");
    const char *text = "";
    if (!dtype || !shape)
        return ty_doc_error(tensor, err, TY_E_MODEL_FILE, NULL, "expected dtype and shape");
    if (ty_doc_string(dtype, &text, err) < 0 || ty_doc_expect(shape, TY_DOC_LIST, err) < 0)
        return -1;
    if (strcmp(text, "F32") != 0)
        return ty_doc_error(dtype, err, TY_E_UNSUPPORTED, NULL, "expected F32, found %s", text);
    if (ty_doc_len(shape) > TY_MAX_RANK)
        return ty_doc_error(shape, err, TY_E_SHAPE, NULL, "more than %d dimensions", TY_MAX_RANK);
    *type = (ty_type){.dtype = TY_F32, .rank = (uint8_t)ty_doc_len(shape)};
    for (int i = 0; i < type->rank; i++)
        if (ty_doc_int(ty_doc_at(shape, (size_t)i), &type->dim[i], err) < 0)
            return -1;
    return 0;
}

static int weights_read_range(const cmodel_weights *w, const ty_doc *tensor, uint64_t n_bytes, uint64_t *begin,
                              ty_error *err)
{
    const ty_doc *offsets = ty_doc_find(tensor, "data_offsets");
    int64_t lo = 0, hi = 0;
    if (!offsets || ty_doc_len(offsets) != 2)
        return ty_doc_error(tensor, err, TY_E_MODEL_FILE, NULL, "expected data_offsets [begin, end]");
    if (ty_doc_int(ty_doc_at(offsets, 0), &lo, err) < 0 || ty_doc_int(ty_doc_at(offsets, 1), &hi, err) < 0)
        return -1;
    if (lo < 0 || hi < lo || (uint64_t)hi > w->n_data_bytes || (uint64_t)(hi - lo) != n_bytes)
        return ty_doc_error(offsets, err, TY_E_MODEL_FILE, NULL,
                            "expected %" PRIu64 " bytes within %" PRIu64 ", found [%" PRId64 ", %" PRId64 "]", n_bytes,
                            w->n_data_bytes, lo, hi);
    *begin = (uint64_t)lo;
    return 0;
}

int cmodel_weights_find(const cmodel_weights *w, const char *name, const ty_type *type, const void **data,
                        ty_error *err)
{
    ty_type found;
    uint64_t begin = 0;
    char has[160], wants[160];
    *data = NULL;
    const ty_doc *tensor = w->path ? ty_doc_find(w->header, name) : NULL;
    if (!tensor)
        return 0;
    if (weights_read_type(tensor, &found, err) < 0)
        return -1;
    if (!ty_type_same(&found, type))
        return ty_doc_error(tensor, err, TY_E_SHAPE, NULL, "weight \"%s\" is %s in the source and %s here", name,
                            ty_type_text(type, wants, sizeof wants), ty_type_text(&found, has, sizeof has));
    if (weights_read_range(w, tensor, ty_type_bytes(type), &begin, err) < 0)
        return -1;
    *data = w->data + begin;
    return 0;
}

int cmodel_weights_all_known(const cmodel_weights *w, bool (*known)(const void *ctx, const char *name), const void *ctx,
                             ty_error *err)
{
    for (size_t i = 0; w->path && i < ty_doc_len(w->header); i++) {
        const ty_doc *d = ty_doc_at(w->header, i);
        if (strcmp(d->key, METADATA) == 0 || known(ctx, d->key))
            continue;
        ty_doc_error_key(d, err, TY_E_MODEL_FILE, NULL, "the source has no weight \"%s\"", d->key);
        return ty_error_help(err, "remove or rename %s to start from the source's own initial weights", w->path);
    }
    return 0;
}
