/* cmodel_layer.c - classes of layers that a C source registers, and one call of such a layer. */
#include "compiler/import/cmodel_layer.h"

#include "compiler/import/cmodel_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYER_MAX_CLASSES = 256 };

struct cmodel_classes {
    ty_arena arena;
    cmodel_object object;
    const char *name[LAYER_MAX_CLASSES];
    cmodel_layer_fn *fn[LAYER_MAX_CLASSES];
    int n;
};

/* ---- classes ---------------------------------------------------------------------------------------------------- */

void cmodel_layer_define(ty_net *face, const char *class_name, cmodel_layer_fn *fn)
{
    cmodel_net *net = (cmodel_net *)face;
    cmodel_classes *s = net->layer ? net->layer->defines : NULL;
    if (net->failed)
        return;
    if (!s)
        cmodel_fail(net, TY_E_GRAPH, "trainyard_layer_register belongs into trainyard_layers()");
    else if (!class_name || !class_name[0] || !fn)
        cmodel_fail(net, TY_E_GRAPH, "a class needs a name and a function");
    else if (cmodel_classes_find(s, class_name))
        cmodel_fail(net, TY_E_GRAPH, "class %.100s is registered twice", class_name);
    else if (s->n == LAYER_MAX_CLASSES)
        cmodel_fail(net, TY_E_LIMIT, "more than %d classes", LAYER_MAX_CLASSES);
    else {
        s->name[s->n] = ty_arena_strdup(&s->arena, class_name);
        s->fn[s->n++] = fn;
    }
}

cmodel_layer_fn *cmodel_classes_find(const cmodel_classes *s, const char *class_name)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->name[i], class_name) == 0)
            return s->fn[i];
    return NULL;
}

int cmodel_classes_n(const cmodel_classes *s)
{
    return s->n;
}

const char *cmodel_classes_name(const cmodel_classes *s, int i)
{
    return s->name[i];
}

void cmodel_classes_free(cmodel_classes *s)
{
    if (!s)
        return;
    cmodel_unload(&s->object);
    ty_arena_fini(&s->arena);
    free(s);
}

static int layer_register(cmodel_classes *s, const char *path, ty_error *err)
{
    cmodel_layer layer = {.defines = s};
    cmodel_net *net = TY_NEW(&s->arena, cmodel_net);
    net->g = ty_graph_new();
    net->arena = &s->arena;
    net->seed = net->step = TY_NONE;
    net->layer = &layer;
    cmodel_layer_build(net, s->object.layers);
    ty_graph_free(net->g);
    if (!net->failed && s->n == 0)
        cmodel_fail(net, TY_E_MODEL_FILE, "trainyard_layers() registers no class");
    if (!net->failed)
        return 0;
    *err = net->error;
    return ty_error_at(err, "%s", path);
}

int cmodel_classes_open(const char *path, cmodel_classes **out, ty_error *err)
{
    cmodel_classes *s = calloc(1, sizeof *s);
    *out = NULL;
    if (!s)
        return ty_error_set(err, TY_E_LIMIT, "no memory for layers");
    ty_arena_init(&s->arena);
    int rc = cmodel_load(path, NULL, CMODEL_COMPILE_MS, &s->object, err);
    if (rc == 0 && !s->object.layers) {
        ty_error_set(err, TY_E_MODEL_FILE, "there is no function trainyard_layers in it");
        ty_error_at(err, "%s", path);
        rc = ty_error_help(err, "write: void trainyard_layers(ty_net *net) { trainyard_layer_register(...); }");
    }
    if (rc == 0)
        rc = layer_register(s, path, err);
    if (rc == 0)
        *out = s;
    else
        cmodel_classes_free(s);
    return rc;
}

/* ---- a call ----------------------------------------------------------------------------------------------------- */

void cmodel_layer_build(cmodel_net *net, cmodel_layer_fn *fn)
{
    net->face.calls = &cmodel_calls;
    fn(&net->face);
    if (!net->failed && net->n_scopes)
        cmodel_fail(net, TY_E_GRAPH, "the scope \"%s\" was not ended", net->scope);
}

ty_val cmodel_layer_weight(cmodel_net *net, const cmodel_value *v)
{
    if (!net->layer->weight)
        return cmodel_fail(net, TY_E_GRAPH, "weights belong into a layer's function");
    return net->layer->weight(net->layer->ctx, v->name, &v->type, v->init, v->is_buffer);
}

static ty_val layer_input(cmodel_net *net, const cmodel_call *c)
{
    const cmodel_layer *l = net->layer;
    int64_t i = c->args->count;
    if (!l)
        return cmodel_fail(net, TY_E_GRAPH, "a model takes ty_input, a layer ty_layer_input");
    if (i < 0 || i >= l->n_in)
        return cmodel_fail(net, TY_E_GRAPH, "the layer is called with %d tensors, there is no number %lld", l->n_in,
                           (long long)i);
    return l->in[i];
}

static ty_val layer_output(cmodel_net *net, const cmodel_call *c)
{
    cmodel_layer *l = net->layer;
    int64_t i = c->args->count;
    if (!l)
        return cmodel_fail(net, TY_E_GRAPH, "a model sets ty_output, a layer ty_layer_output");
    if (i < 0 || i > l->n_out || i >= (int)(sizeof l->out / sizeof *l->out))
        return cmodel_fail(net, TY_E_GRAPH, "outputs are numbered from 0 without gaps, found %lld", (long long)i);
    l->n_out = i == l->n_out ? l->n_out + 1 : l->n_out;
    return l->out[i] = c->in[0];
}

const cmodel_row cmodel_layer_rows[] = {
    {"layer_input", 0, 0, layer_input, 0},
    {"layer_output", 1, 1, layer_output, 0},
    {NULL, 0, 0, NULL, 0},
};

/* ---- its configuration ------------------------------------------------------------------------------------------ */

static const ty_doc *layer_setting(cmodel_net *net, const char *key)
{
    const ty_doc *d = net->layer && key ? ty_doc_find(net->layer->config, key) : NULL;
    return d && d->kind != TY_DOC_NULL ? d : NULL;
}

static void layer_refuse(cmodel_net *net, const char *key, const char *expected, const ty_doc *d)
{
    char found[100];
    cmodel_fail(net, TY_E_ATTRIBUTE, "%.100s: expected %s, found %s", key, expected,
                ty_doc_describe(d, found, sizeof found));
}

double cmodel_layer_number(ty_net *face, const char *key, double absent)
{
    cmodel_net *net = (cmodel_net *)face;
    const ty_doc *d = layer_setting(net, key);
    if (d && d->kind == TY_DOC_BOOL)
        return d->boolean;
    if (d && ty_doc_float(d, &absent, NULL) < 0)
        layer_refuse(net, key, "a number", d);
    return absent;
}

const char *cmodel_layer_setting(ty_net *face, const char *key, const char *absent)
{
    cmodel_net *net = (cmodel_net *)face;
    const ty_doc *d = layer_setting(net, key);
    if (d && d->kind != TY_DOC_STRING)
        layer_refuse(net, key, "a string", d);
    return d && d->kind == TY_DOC_STRING ? d->string : absent;
}

ty_shape cmodel_layer_settings(ty_net *face, const char *key)
{
    cmodel_net *net = (cmodel_net *)face;
    const ty_doc *d = layer_setting(net, key);
    ty_shape out = {0};
    bool sound = !d || (d->kind == TY_DOC_LIST && d->n_items <= TY_MODEL_MAX_RANK);
    for (uint32_t i = 0; d && sound && i < d->n_items; i++)
        sound = ty_doc_int(ty_doc_at(d, i), &out.dim[out.n++], NULL) == 0;
    if (!sound)
        layer_refuse(net, key, "a list of at most 8 whole numbers", d);
    return sound ? out : (ty_shape){0};
}
