/* keras_custom.c - layers of classes that a C source brings (trainyard/model.h, "layers of Keras models"). */
#include "compiler/import/cmodel_layer.h"
#include "compiler/import/keras/keras_walk.h"

#include <string.h>

typedef struct custom_call {
    keras_call *c;
    cmodel_net net;
} custom_call;

/* The layer that a weight belongs to: scopes ("dense.kernel") are layers that the class keeps under that attribute. */
static keras_layer *custom_owner(keras_call *c, const char *name, const char **label)
{
    const char *dot = strrchr(name, '.');
    *label = dot ? dot + 1 : name;
    if (!dot)
        return c->layer;
    char *attribute = ty_arena_strndup(&c->walk->m->arena, name, (size_t)(dot - name));
    for (char *p = attribute; *p; p++)
        *p = *p == '.' ? '/' : *p;
    for (int i = 0; i < c->layer->n_subs; i++)
        if (strcmp(c->layer->sub[i]->name, attribute) == 0)
            return c->layer->sub[i];
    return c->walk->is_opening ? keras_part(c, attribute, attribute, NULL) : NULL;
}

static bool custom_declares(const keras_layer *layer, const char *label)
{
    for (int i = 0; i < layer->n_weights; i++)
        if (strcmp(layer->weight[i]->label, label) == 0)
            return true;
    return false;
}

static ty_val custom_weight(void *ctx, const char *name, const ty_type *type, ty_init init, bool is_buffer)
{
    keras_call *c = ((custom_call *)ctx)->c;
    ty_keras *m = c->walk->m;
    const char *label;
    keras_layer *layer = custom_owner(c, name, &label);
    if (layer && !custom_declares(layer, label) && c->walk->is_opening) {
        keras_spec spec = {.label = ty_arena_strdup(&m->arena, label), .rank = type->rank, .is_statistic = is_buffer};
        memcpy(spec.dim, type->dim, sizeof spec.dim);
        keras_add_weight_to(c, layer, &spec);
        if (!c->failed)
            layer->weight[layer->n_weights - 1]->start = ty_arena_copy(&m->arena, &init, sizeof init);
    }
    ty_val v = layer ? keras_var_of(c, layer, label) : TY_NONE;
    if (v != TY_NONE && !ty_type_same(ty_graph_type(c->g, v), type))
        return ty_graph_fail(c->g, TY_E_SHAPE, "weight \"%.100s\" had another shape in an earlier call", name);
    return v != TY_NONE ? v : ty_graph_fail(c->g, TY_E_GRAPH, "weight \"%.100s\" was not declared before", name);
}

static void custom_update(keras_call *c, const cmodel_value *v)
{
    const char *label;
    keras_layer *own = c->layer, *owner = v->update == TY_NONE ? NULL : custom_owner(c, v->name, &label);
    if (!owner)
        return;
    c->layer = owner; /* whose weight it is */
    keras_update(c, label, v->update);
    c->layer = own;
}

static void custom_finish(custom_call *call, const cmodel_layer *layer)
{
    keras_call *c = call->c;
    c->walk->n_random = call->net.n_random;
    if (call->net.failed && !c->failed) {
        c->failed = true;
        c->err = call->net.error;
        c->err.place[0] = 0;
        ty_error_detail(&c->err, "at %s", call->net.error.place);
        return;
    }
    for (int i = 0; i < layer->n_out; i++)
        keras_set(c, i, layer->out[i]);
    for (int i = 0; i < call->net.weight.n && c->training; i++)
        custom_update(c, &call->net.weight.at[i]);
    if (layer->n_out == 0)
        keras_fail(c, TY_E_MODEL_FILE, "its function sets no output");
}

static void custom_apply(keras_call *c)
{
    keras_walk *w = c->walk;
    cmodel_layer layer = {.weight = custom_weight, .config = c->config, .in = c->in, .n_in = c->n_in};
    custom_call *call = TY_NEW(&w->arena, custom_call);
    layer.ctx = call;
    call->c = c;
    call->net = (cmodel_net){.g = c->g,
                             .arena = &w->arena,
                             .mode = c->training ? TY_MODEL_TRAIN : TY_MODEL_EVAL,
                             .seed = w->seed,
                             .step = w->step,
                             .n_random = w->n_random,
                             .layer = &layer};
    cmodel_layer_build(&call->net, c->layer->custom);
    custom_finish(call, &layer);
}

void keras_create_none(keras_call *c);

static const keras_row custom_row = {"custom", KERAS_MASK_STOP, keras_create_none, custom_apply, 0};

bool keras_find_custom(ty_keras *m, keras_layer *layer)
{
    layer->custom = m->classes ? cmodel_classes_find(m->classes, layer->class_name) : NULL;
    if (layer->custom)
        layer->row = &custom_row;
    return layer->custom != NULL;
}

int keras_open_classes(ty_keras *m, const char *path, ty_error *err)
{
    return path ? cmodel_classes_open(path, &m->classes, err) : 0;
}

void keras_close_classes(ty_keras *m)
{
    cmodel_classes_free(m->classes);
}

const void *keras_initialize_custom(ty_arena *a, const keras_weight *weight, uint64_t seed)
{
    float *out = TY_NEW_ARRAY(a, float, ty_type_elems(&weight->type) + 1);
    cmodel_initialize(weight->name, &weight->type, *weight->start, seed, out);
    return out;
}
