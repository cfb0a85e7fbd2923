/* weight_list.h - the named weights of a file, be it a model or a .safetensors file. */
#ifndef TY_ENTRYPOINT_WEIGHT_LIST_H
#define TY_ENTRYPOINT_WEIGHT_LIST_H

#include "compiler/compiler.h"
#include "base/safetensors.h"

typedef struct ty_listed_weight {
    const char *name;
    ty_type type;     /* dtype TY_N_DTYPES: an element type that we have not */
    const void *data; /* perhaps unaligned; NULL: the file has none */
} ty_listed_weight;

typedef struct ty_weight_list {
    const ty_listed_weight *weight; /* by name */
    int n;
    ty_model *model; /* NULL: the file is weights alone */
    ty_safetensors tensors;
} ty_weight_list;

/* Integers that ONNX files keep beside their weights (shapes, axes) are not listed. *out needs no close on failure. */
int ty_weight_list_open(const char *path, const ty_model_choice *choice, ty_arena *a, ty_weight_list *out,
                        ty_error *err);
void ty_weight_list_close(ty_weight_list *l);
/* Whether the name says that a file is .safetensors. */
bool ty_is_safetensors_name(const char *path);

#endif
