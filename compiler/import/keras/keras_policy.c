/* keras_policy.c - dtype policies of layers. Source: keras/src/dtype_policies/dtype_policy.py.
 *
 * A mixed policy computes in 16 bits and keeps weights in 32: the recipe's mixed precision. In Keras each layer has a
 * policy of its own; layers of float32 among mixed ones are what the recipe calls keep_float32.
 */
#include "compiler/import/keras/keras_walk.h"

#include <string.h>

const char *keras_policy_name(const ty_doc *config)
{
    const ty_doc *d = ty_doc_find(config, "dtype"), *inner = ty_doc_find(d, "config");
    const char *name = keras_string(d);
    if (!name)
        name = keras_string(ty_doc_find(inner, "name"));
    /* a map of policies whose default is all that it has */
    const ty_doc *map = ty_doc_find(inner, "policy_map");
    if (!name && map && ty_doc_len(map) == 0)
        name = keras_policy_name(inner);
    const ty_doc *otherwise = name ? NULL : ty_doc_find(inner, "default_policy");
    return name ? name : otherwise ? keras_string(ty_doc_find(ty_doc_find(otherwise, "config"), "name")) : NULL;
}

static bool policy_begins(const char *name, const char *with)
{
    return strncmp(name, with, strlen(with)) == 0;
}

bool keras_policy_ok(const char *name, const char **why)
{
    static const char *const quantized[] = {"int8", "int4", "float8", "gptq", "awq"};
    for (size_t i = 0; i < sizeof quantized / sizeof *quantized; i++)
        if (policy_begins(name, quantized[i]) && strstr(name, "_from_")) {
            *why = "save the model before it is quantized";
            return false;
        }
    *why = "use float32, mixed_float16 or mixed_bfloat16, which keep weights in float32";
    return strcmp(name, "float16") != 0 && strcmp(name, "bfloat16") != 0 && strcmp(name, "float64") != 0;
}

typedef struct policy_list {
    const ty_keras *m;
    ty_arena *a;
    ty_keras_policies *out;
    bool mixed;
} policy_list;

static void policy_keep(policy_list *l, const keras_layer *layer)
{
    const char **list = TY_NEW_ARRAY(l->a, const char *, l->out->n_float32 + 1);
    if (l->out->n_float32)
        memcpy(list, l->out->float32, sizeof *list * (size_t)l->out->n_float32);
    list[l->out->n_float32++] = ty_arena_strndup(l->a, layer->origin, strcspn(layer->origin, " "));
    l->out->float32 = list;
}

/* First whether anybody computes in 16 bits, then who does not. */
static void policy_visit(policy_list *l, const keras_layer *layer)
{
    const char *name = layer->what == KERAS_IS_ROW ? keras_policy_name(layer->config) : NULL;
    if (name && !l->mixed && strcmp(name, "mixed_float16") == 0)
        l->out->precision = TY_PRECISION_FLOAT16;
    else if (name && !l->mixed && strcmp(name, "mixed_bfloat16") == 0)
        l->out->precision = TY_PRECISION_BFLOAT16;
    else if (name && l->mixed && strcmp(name, "float32") == 0 && (layer->n_weights || layer->n_subs))
        policy_keep(l, layer);
    for (int i = 0; layer->net && i < layer->net->n_layers; i++)
        policy_visit(l, layer->net->layer[i]);
    for (int i = 0; i < layer->n_subs; i++)
        policy_visit(l, layer->sub[i]);
}

void ty_keras_read_policies(const ty_keras *m, ty_arena *a, ty_keras_policies *out)
{
    *out = (ty_keras_policies){.precision = TY_PRECISION_FLOAT32};
    policy_list l = {.m = m, .a = a, .out = out};
    policy_visit(&l, m->root);
    l.mixed = out->precision != TY_PRECISION_FLOAT32;
    if (l.mixed)
        policy_visit(&l, m->root);
}
