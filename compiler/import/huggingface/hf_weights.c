/* hf_weights.c - see hf_weights.h. */
#include "compiler/import/huggingface/hf_weights.h"

#include "base/doc.h"
#include "base/json.h"
#include "compiler/import/names.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ONE_NAME   "model.safetensors"
#define INDEX_NAME "model.safetensors.index.json"

enum { MAX_FILES = 1000, MAX_WEIGHTS = 1 << 20, MAX_COMPARED = 8 };

typedef struct hf_weight {
    const ty_safetensors_entry *entry;
    float *converted; /* of 16 bits, once somebody has asked; else NULL */
} hf_weight;

struct hf_weights {
    ty_arena arena;
    const char *folder;
    ty_safetensors file[MAX_FILES];
    const char *file_name[MAX_FILES];
    int n_files;
    hf_weight *weight;
    size_t n_weights;
    ty_names names;
    struct {
        int a, b;
        bool same;
    } compared[MAX_COMPARED]; /* tables are large, and every build asks for the same ones */
    int n_compared;
};

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static int open_file(hf_weights *w, const char *name, ty_error *err)
{
    if (w->n_files == MAX_FILES)
        return ty_error_set(err, TY_E_LIMIT, "weights in more than %d files", MAX_FILES);
    w->file_name[w->n_files] = name;
    if (ty_safetensors_open(ty_arena_printf(&w->arena, "%s/%s", w->folder, name), &w->file[w->n_files], err) < 0)
        return -1;
    w->n_files++;
    return 0;
}

/* A name in the folder, and nothing that leads out of it. */
static int check_name(const ty_doc *d, const char *name, ty_error *err)
{
    size_t n = strlen(name), tail = strlen(".safetensors");
    if (n > tail && strcmp(name + n - tail, ".safetensors") == 0 && !strchr(name, '/') && name[0] != '.')
        return 0;
    return ty_doc_error(d, err, TY_E_MODEL_FILE, NULL, "expected the name of a safetensors file beside this one");
}

static int open_listed(hf_weights *w, const ty_doc *map, ty_error *err)
{
    ty_names seen;
    ty_names_init(&seen, &w->arena);
    for (size_t i = 0; i < ty_doc_len(map); i++) {
        const ty_doc *d = ty_doc_at(map, i);
        const char *name;
        if (ty_doc_string(d, &name, err) < 0 || check_name(d, name, err) < 0)
            return -1;
        if (ty_names_find(&seen, name) >= 0)
            continue;
        ty_names_put(&seen, name, 1);
        if (open_file(w, name, err) < 0)
            return -1;
    }
    return 0;
}

static int open_index(hf_weights *w, const char *path, ty_error *err)
{
    ty_doc *index;
    if (ty_json_read(&w->arena, path, NULL, &index, err) < 0)
        return -1;
    const ty_doc *map = ty_doc_find(index, "weight_map");
    if (!map)
        return ty_doc_error(index, err, TY_E_MODEL_FILE, NULL, "expected a key \"weight_map\", found none");
    return ty_doc_expect(map, TY_DOC_MAP, err) < 0 ? -1 : open_listed(w, map, err);
}

static int refuse_pickled(const char *folder, ty_error *err)
{
    ty_error_set(err, TY_E_UNSUPPORTED,
                 "the weights are in PyTorch's own format (pytorch_model.bin), a program that "
                 "would have to be run");
    ty_error_at(err, "%s", folder);
    return ty_error_help(err, "save the model again with Transformers, which writes model.safetensors: "
                              "AutoModel.from_pretrained(FOLDER).save_pretrained(OTHER)");
}

static int open_files(hf_weights *w, ty_error *err)
{
    const char *one = ty_arena_printf(&w->arena, "%s/%s", w->folder, ONE_NAME);
    const char *index = ty_arena_printf(&w->arena, "%s/%s", w->folder, INDEX_NAME);
    if (ty_file_exists(one))
        return open_file(w, ONE_NAME, err);
    if (ty_file_exists(index))
        return open_index(w, index, err);
    if (ty_file_exists(ty_arena_printf(&w->arena, "%s/pytorch_model.bin", w->folder)) ||
        ty_file_exists(ty_arena_printf(&w->arena, "%s/pytorch_model.bin.index.json", w->folder)))
        return refuse_pickled(w->folder, err);
    return 0;
}

static int list_weights(hf_weights *w, ty_error *err)
{
    size_t n = 0;
    for (int i = 0; i < w->n_files; i++)
        n += w->file[i].n_entries;
    if (n > MAX_WEIGHTS)
        return ty_error_set(err, TY_E_LIMIT, "more than %d weights", MAX_WEIGHTS);
    w->weight = TY_NEW_ARRAY(&w->arena, hf_weight, n + 1);
    for (int i = 0; i < w->n_files; i++)
        for (size_t k = 0; k < w->file[i].n_entries; k++) {
            const ty_safetensors_entry *e = &w->file[i].entries[k];
            if (ty_names_find(&w->names, e->name) >= 0) {
                ty_error_set(err, TY_E_MODEL_FILE, "weight \"%s\" is in two files", e->name);
                return ty_error_at(err, "%s/%s", w->folder, w->file_name[i]);
            }
            ty_names_put(&w->names, e->name, (int)w->n_weights);
            w->weight[w->n_weights++].entry = e;
        }
    return 0;
}

int hf_weights_open(const char *folder, hf_weights **out, ty_error *err)
{
    *out = NULL;
    hf_weights *w = calloc(1, sizeof *w);
    if (!w)
        return ty_error_set(err, TY_E_LIMIT, "no memory to list weights");
    ty_arena_init(&w->arena);
    ty_names_init(&w->names, &w->arena);
    w->folder = ty_arena_strdup(&w->arena, folder);
    if (open_files(w, err) < 0 || list_weights(w, err) < 0) {
        hf_weights_free(w);
        return -1;
    }
    *out = w;
    return 0;
}

void hf_weights_free(hf_weights *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n_weights; i++)
        free(w->weight[i].converted);
    for (int i = 0; i < w->n_files; i++)
        ty_safetensors_close(&w->file[i]);
    ty_arena_fini(&w->arena);
    free(w);
}

/* ---- questions --------------------------------------------------------------------------------------------------- */

size_t hf_weights_n(const hf_weights *w)
{
    return w->n_weights;
}

const ty_safetensors_entry *hf_weights_at(const hf_weights *w, size_t i)
{
    return w->weight[i].entry;
}

int hf_weights_find(const hf_weights *w, const char *name)
{
    return ty_names_find(&w->names, name);
}

bool hf_weights_same(hf_weights *w, int a, int b)
{
    const ty_safetensors_entry *x = w->weight[a].entry, *y = w->weight[b].entry;
    for (int i = 0; i < w->n_compared; i++)
        if (w->compared[i].a == a && w->compared[i].b == b)
            return w->compared[i].same;
    bool same = ty_type_same(&x->type, &y->type) && memcmp(x->data, y->data, x->n_bytes) == 0;
    if (w->n_compared < MAX_COMPARED) {
        w->compared[w->n_compared].a = a;
        w->compared[w->n_compared].b = b;
        w->compared[w->n_compared++].same = same;
    }
    return same;
}

/* Entries lie as the file has them, perhaps at odd addresses. */
static void widen(const ty_safetensors_entry *e, float *out)
{
    const uint8_t *from = e->data;
    int64_t n = ty_type_elems(&e->type);
    bool is_bf16 = e->type.dtype == TY_BF16;
    for (int64_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, from + 2 * i, 2);
        out[i] = is_bf16 ? ty_bf16_to_f32(half) : ty_f16_to_f32(half);
    }
}

int hf_weights_data(hf_weights *w, int i, const void **out, ty_error *err)
{
    hf_weight *x = &w->weight[i];
    const ty_safetensors_entry *e = x->entry;
    bool is_half = e->type.dtype == TY_BF16 || e->type.dtype == TY_F16;
    if (e->type.dtype == TY_F32) {
        *out = e->data;
        return 0;
    }
    if (!is_half) {
        ty_error_set(err, TY_E_UNSUPPORTED, "weight \"%s\": expected F32, BF16 or F16, found %s", e->name,
                     e->dtype_text);
        return ty_error_at(err, "%s", w->folder);
    }
    if (!x->converted) {
        x->converted = malloc((size_t)ty_type_elems(&e->type) * sizeof(float) + 1);
        if (!x->converted)
            return ty_error_set(err, TY_E_LIMIT, "no memory for weight \"%s\"", e->name);
        widen(e, x->converted);
    }
    *out = x->converted;
    return 0;
}

bool hf_weights_are_mapped(const hf_weights *w)
{
    for (size_t i = 0; i < w->n_weights; i++)
        if (w->weight[i].converted)
            return false;
    return true;
}

void hf_weights_drop_pages(const hf_weights *w)
{
    for (int i = 0; i < w->n_files; i++)
        madvise((void *)(uintptr_t)w->file[i].view.bytes, w->file[i].view.n_bytes, MADV_DONTNEED);
}
