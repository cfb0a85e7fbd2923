/* weight_list.c - see weight_list.h. */
#include "entrypoint/weight_list.h"

#include <stdlib.h>
#include <string.h>

bool ty_is_safetensors_name(const char *path)
{
    static const char suffix[] = ".safetensors";
    size_t n = strlen(path), k = sizeof suffix - 1;
    return n > k && strcmp(path + n - k, suffix) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const ty_listed_weight *)a)->name, ((const ty_listed_weight *)b)->name);
}

static void take_model(ty_weight_list *l, ty_listed_weight *list)
{
    bool is_onnx = strncmp(ty_model_format(l->model), "onnx", 4) == 0;
    for (int i = 0; i < ty_model_n_weights(l->model); i++) {
        const ty_model_value *w = ty_model_weight(l->model, i);
        if (is_onnx && (w->dtype >= TY_N_DTYPES || !ty_dtype_is_float(w->dtype)))
            continue;
        ty_listed_weight *out = &list[l->n++];
        *out = (ty_listed_weight){.name = w->name, .data = w->data};
        out->type.dtype = (uint8_t)w->dtype;
        out->type.rank = (uint8_t)w->rank;
        memcpy(out->type.dim, w->dim, sizeof *w->dim * (size_t)w->rank);
    }
}

static void take_tensors(ty_weight_list *l, ty_listed_weight *list)
{
    for (size_t i = 0; i < l->tensors.n_entries; i++) {
        const ty_safetensors_entry *e = &l->tensors.entries[i];
        list[l->n++] = (ty_listed_weight){e->name, e->type, e->data};
    }
}

int ty_weight_list_open(const char *path, const ty_model_choice *choice, ty_arena *a, ty_weight_list *out,
                        ty_error *err)
{
    *out = (ty_weight_list){0};
    bool is_tensors = ty_is_safetensors_name(path);
    if ((is_tensors ? ty_safetensors_open(path, &out->tensors, err)
                    : ty_model_open_as(path, NULL, choice, &out->model, err)) < 0)
        return -1;
    size_t n = is_tensors ? out->tensors.n_entries : (size_t)ty_model_n_weights(out->model);
    ty_listed_weight *list = TY_NEW_ARRAY(a, ty_listed_weight, n + 1);
    (is_tensors ? take_tensors : take_model)(out, list);
    qsort(list, (size_t)out->n, sizeof *list, by_name);
    out->weight = list;
    return 0;
}

void ty_weight_list_close(ty_weight_list *l)
{
    if (l->model)
        ty_model_free(l->model);
    else if (l->weight)
        ty_safetensors_close(&l->tensors);
    *l = (ty_weight_list){0};
}
