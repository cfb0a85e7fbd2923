/* keras_weights.c - weights: declared by layers, numbered and named as Keras does, bound to the tensors of the file.
 *
 * A weights file of Keras 3 has a group for each layer (saving_lib.py): "layers/dense_1" of a model's list, "cell" or
 * "forward_layer" where a layer keeps another one, and in it "vars/0", "vars/1" ... : what is trained first, then what
 * is not, each in the order of creation. Legacy files list the weights of each layer of the outermost model by name;
 * all that are trained come first, then the others (legacy_h5_format.py).
 */
#include "compiler/import/keras/keras_walk.h"

#include <stdio.h>
#include <string.h>

/* ---- declaring ----------------------------------------------------------------------------------------------------
 */

static void weights_append(ty_keras *m, keras_weight *w)
{
    if (m->n_weights == m->weights_room) {
        m->weights_room = m->weights_room ? 2 * m->weights_room : 64;
        keras_weight **bigger = TY_NEW_ARRAY(&m->arena, keras_weight *, m->weights_room);
        if (m->n_weights)
            memcpy(bigger, m->weight, sizeof *bigger * (size_t)m->n_weights);
        m->weight = bigger;
    }
    w->number = m->n_weights;
    m->weight[m->n_weights++] = w;
}

/* The path of the variable; where two layers have the same one, the models that they lie in go in front. */
static const char *weights_name(ty_keras *m, const keras_layer *layer, const char *label)
{
    const char *name = ty_arena_printf(&m->arena, "%s/%s", layer->path, label);
    for (const keras_layer *p = layer->parent; p && p != m->root && ty_names_find(&m->weight_names, name) >= 0;
         p = p->parent)
        name = ty_arena_printf(&m->arena, "%s/%s", p->name, name);
    for (int i = 1; ty_names_find(&m->weight_names, name) >= 0; i++)
        name = ty_arena_printf(&m->arena, "%s/%s_%d", layer->path, label, i);
    ty_names_put(&m->weight_names, name, m->n_weights);
    return name;
}

/* A value in place of the weight, while the model is opened. */
static void weights_stand_in(keras_walk *w, const keras_weight *weight)
{
    char name[40];
    if (weight->number >= w->stand_in_room) {
        int room = 2 * weight->number + 64;
        ty_val *bigger = TY_NEW_ARRAY(&w->arena, ty_val, room);
        for (int i = 0; i < room; i++)
            bigger[i] = i < w->stand_in_room ? w->stand_in[i] : TY_NONE;
        w->stand_in = bigger;
        w->stand_in_room = room;
    }
    snprintf(name, sizeof name, "weight %d", weight->number);
    w->stand_in[weight->number] = ty_b_input(w->g, ty_graph_add_input(w->g, name, weight->type));
}

void keras_stand_ins(keras_walk *w)
{
    for (int i = 0; i < w->m->n_weights; i++)
        weights_stand_in(w, w->m->weight[i]);
}

static void weights_attach(ty_keras *m, keras_layer *layer, keras_weight *weight)
{
    keras_weight **list = TY_NEW_ARRAY(&m->arena, keras_weight *, layer->n_weights + 1);
    if (layer->n_weights)
        memcpy(list, layer->weight, sizeof *list * (size_t)layer->n_weights);
    list[layer->n_weights++] = weight;
    layer->weight = list;
}

static const ty_doc *weights_setting(const ty_doc *config, const char *key)
{
    const ty_doc *d = key ? ty_doc_find(config, key) : NULL;
    return d && d->kind != TY_DOC_NULL ? d : NULL;
}

static bool weights_shape_ok(keras_call *c, const keras_spec *spec)
{
    for (int i = 0; i < spec->rank; i++)
        if (spec->dim[i] <= 0) {
            keras_fail(c, TY_E_SHAPE, "its weight \"%s\" would have %lld elements along axis %d", spec->label,
                       (long long)spec->dim[i], i);
            return false;
        }
    if (ty_dims_elems_checked(spec->rank, spec->dim, 8) < 0) {
        keras_fail(c, TY_E_LIMIT, "its weight \"%s\" would not fit into memory", spec->label);
        return false;
    }
    return true;
}

void keras_add_weight_to(keras_call *c, keras_layer *part, const keras_spec *spec)
{
    keras_walk *walk = c->walk;
    if (c->failed || !part || !weights_shape_ok(c, spec))
        return;
    const ty_doc *config = spec->from ? spec->from : c->config;
    keras_weight *w = TY_NEW(&walk->m->arena, keras_weight);
    w->label = spec->label;
    w->layer = part;
    w->name = weights_name(walk->m, part, spec->label);
    w->place = "";
    w->type = ty_type_make(spec->dtype ? spec->dtype : TY_F32, spec->rank, spec->dim);
    w->initializer = weights_setting(config, spec->initializer);
    w->initializer_absent = spec->initializer_absent;
    w->ones_lo = spec->ones_lo;
    w->ones_hi = spec->ones_hi;
    w->in_axes = spec->in_axes;
    w->out_axes = spec->out_axes;
    w->regularizer = weights_setting(config, spec->regularizer);
    w->constraint = weights_setting(config, spec->constraint);
    w->is_statistic = spec->is_statistic;
    w->trainable = part->trainable && !spec->is_statistic && ty_dtype_is_float((ty_dtype)w->type.dtype);
    weights_append(walk->m, w);
    weights_attach(walk->m, part, w);
    weights_stand_in(walk, w);
}

void keras_add_weight(keras_call *c, const keras_spec *spec)
{
    keras_add_weight_to(c, c->layer, spec);
}

/* ---- sublayers ----------------------------------------------------------------------------------------------------
 */

static void weights_add_sub(ty_keras *m, keras_layer *parent, keras_layer *sub)
{
    keras_layer **list = TY_NEW_ARRAY(&m->arena, keras_layer *, parent->n_subs + 1);
    if (parent->n_subs)
        memcpy(list, parent->sub, sizeof *list * (size_t)parent->n_subs);
    list[parent->n_subs++] = sub;
    parent->sub = list;
}

keras_layer *keras_sub(keras_call *c, const char *attribute, const ty_doc *serialized, const char *name)
{
    ty_keras *m = c->walk->m;
    if (c->failed)
        return NULL;
    if (!serialized || serialized->kind != TY_DOC_MAP) {
        keras_fail(c, TY_E_MODEL_FILE, "expected the configuration of a layer as \"%s\"", attribute);
        return NULL;
    }
    int before = m->faults.n_all;
    const char *group = ty_arena_printf(&m->arena, "%s/%s", c->layer->group, attribute);
    keras_layer *sub = keras_make_layer(m, c->layer, serialized, name, group);
    if (sub->what == KERAS_IS_UNKNOWN || m->faults.n_all > before) {
        c->failed = c->quiet = true;
        return NULL;
    }
    weights_add_sub(m, c->layer, sub);
    return sub;
}

keras_layer *keras_part(keras_call *c, const char *attribute, const char *name, const char *class_name)
{
    ty_keras *m = c->walk->m;
    if (c->failed)
        return NULL;
    keras_layer *part = TY_NEW(&m->arena, keras_layer);
    *part = *c->layer;
    part->what = class_name ? KERAS_IS_ROW : KERAS_IS_PART;
    part->row = class_name ? keras_find_row(class_name) : NULL;
    part->class_name = class_name ? class_name : c->layer->class_name;
    part->name = ty_arena_strdup(&m->arena, name);
    part->path = ty_arena_printf(&m->arena, "%s/%s", c->layer->path, name);
    part->group = ty_arena_printf(&m->arena, "%s/%s", c->layer->group, attribute);
    part->parent = c->layer;
    part->data = NULL;
    part->created = false;
    part->weight = NULL, part->sub = NULL, part->net = NULL, part->note = NULL, part->op = NULL;
    part->n_weights = part->n_subs = 0;
    if (class_name && !part->row) {
        keras_fail(c, TY_E_INTERNAL, "has a part of class %s, which has no row", class_name);
        return NULL;
    }
    weights_add_sub(m, c->layer, part);
    return part;
}

/* ---- values -------------------------------------------------------------------------------------------------------
 */

ty_val keras_weight_value(keras_walk *w, const keras_weight *weight)
{
    if (w->is_opening)
        return weight->number < w->stand_in_room ? w->stand_in[weight->number] : TY_NONE;
    ty_val bound = w->weights ? w->weights[weight->number] : TY_NONE;
    return bound != TY_NONE ? bound : ty_b_const(w->g, weight->type, w->m->listed[weight->number].data);
}

static const keras_weight *weights_find(const keras_layer *layer, const char *label)
{
    for (int i = 0; i < layer->n_weights; i++)
        if (strcmp(layer->weight[i]->label, label) == 0)
            return layer->weight[i];
    return NULL;
}

ty_val keras_var_of(const keras_call *c, const keras_layer *part, const char *label)
{
    const keras_weight *w = weights_find(part, label);
    return w ? keras_weight_value(c->walk, w) : TY_NONE;
}

ty_val keras_var(const keras_call *c, const char *label)
{
    return keras_var_of(c, c->layer, label);
}

ty_val keras_var_now(const keras_call *c, const char *label)
{
    const keras_weight *w = weights_find(c->layer, label);
    for (int i = 0; w && i < c->walk->n_updates; i++)
        if (c->walk->update[i].weight == w->number)
            return c->walk->update[i].value;
    return keras_var(c, label);
}

void keras_update(keras_call *c, const char *label, ty_val value)
{
    keras_walk *walk = c->walk;
    const keras_weight *w = weights_find(c->layer, label);
    if (!w || value == TY_NONE)
        return;
    for (int i = 0; i < walk->n_updates; i++)
        if (walk->update[i].weight == w->number) {
            walk->update[i].value = value;
            return;
        }
    if (walk->n_updates == walk->updates_room) {
        walk->updates_room = walk->updates_room ? 2 * walk->updates_room : 16;
        ty_model_update *bigger = TY_NEW_ARRAY(&walk->arena, ty_model_update, walk->updates_room);
        if (walk->n_updates)
            memcpy(bigger, walk->update, sizeof *bigger * (size_t)walk->n_updates);
        walk->update = bigger;
    }
    walk->update[walk->n_updates++] = (ty_model_update){w->number, value};
}

/* ---- order --------------------------------------------------------------------------------------------------------
 */

typedef struct weights_list {
    keras_weight **at; /* NULL: they are counted */
    int n;
    uint32_t stamp;
} weights_list;

/* A layer's own, what is trained first, then those of its layers: Layer.weights. */
static void weights_collect(const keras_layer *layer, weights_list *out)
{
    for (int statistics = 0; statistics < 2; statistics++)
        for (int i = 0; i < layer->n_weights; i++) {
            keras_weight *w = layer->weight[i];
            if (w->is_statistic != (statistics == 1) || w->stamp == out->stamp)
                continue;
            w->stamp = out->stamp;
            if (out->at)
                out->at[out->n] = w;
            out->n++;
        }
    for (int i = 0; i < layer->n_subs; i++)
        weights_collect(layer->sub[i], out);
    for (int i = 0; layer->net && i < layer->net->n_layers; i++)
        weights_collect(layer->net->layer[i], out);
}

static weights_list weights_of(ty_keras *m, const keras_layer *layer)
{
    weights_list out = {NULL, 0, ++m->stamp};
    weights_collect(layer, &out);
    out = (weights_list){TY_NEW_ARRAY(&m->arena, keras_weight *, out.n + 1), 0, ++m->stamp};
    weights_collect(layer, &out);
    return out;
}

/* ---- tensors of the file ------------------------------------------------------------------------------------------
 */

static void weights_fault(ty_keras *m, const keras_weight *w, const char *message)
{
    ty_error err = {0};
    ty_error_set(&err, TY_E_MODEL_FILE, "%s", message);
    ty_error_at(&err, "%.120s: layer \"%.100s\" (%.60s)", m->file.path, w->layer->path, w->layer->class_name);
    keras_faults_add(&m->faults, &err);
}

static const keras_tensor *weights_find_tensor(const ty_keras *m, const char *path)
{
    int at = ty_names_find(&m->tensors, path);
    return at < 0 ? NULL : &m->file.tensor[at];
}

static int weights_slot(const keras_weight *w)
{
    int slot = 0;
    for (int i = 0; i < w->layer->n_weights; i++) {
        const keras_weight *other = w->layer->weight[i];
        if (other == w)
            break;
        slot += other->is_statistic == w->is_statistic;
    }
    for (int i = 0; w->is_statistic && i < w->layer->n_weights; i++)
        slot += !w->layer->weight[i]->is_statistic;
    return slot;
}

static void weights_bind_place(ty_keras *m, keras_weight *w)
{
    w->place =
        ty_arena_printf(&m->arena, "%s%svars/%d", w->layer->group, w->layer->group[0] ? "/" : "", weights_slot(w));
    if (!m->file.has_weights)
        return;
    w->tensor = weights_find_tensor(m, w->place);
    char text[500];
    if (!w->tensor) {
        snprintf(text, sizeof text, "the file has no data set \"%.200s\" for the weight \"%.100s\"", w->place,
                 w->label);
        weights_fault(m, w, text);
    }
}

/* Tensors first[0 .. n) of one layer of a legacy file. */
static void weights_bind_legacy_layer(ty_keras *m, const keras_layer *layer, const weights_list *list,
                                      const keras_tensor *first, int n)
{
    char text[400];
    int at = 0;
    if (n != list->n) {
        snprintf(text, sizeof text, "the layer has %d weights, the file lists %d for \"%.100s\"", list->n, n,
                 n ? first->layer : layer->name);
        weights_fault(m, list->at[0], text);
        return;
    }
    for (int frozen = 0; frozen < 2; frozen++)
        for (int i = 0; i < list->n; i++)
            if (!list->at[i]->trainable == (frozen == 1)) {
                list->at[i]->tensor = &first[at++];
                list->at[i]->place = list->at[i]->tensor->path;
            }
}

/* The next run of tensors that one layer of the file lists, from *at on; NULL at the end. */
static const keras_tensor *weights_next_run(const ty_keras *m, int *at, int *n)
{
    const keras_file *f = &m->file;
    while (*at < f->n_tensors && !f->tensor[*at].layer)
        ++*at;
    int from = *at;
    while (*at < f->n_tensors && f->tensor[*at].layer && strcmp(f->tensor[*at].layer, f->tensor[from].layer) == 0)
        ++*at;
    *n = *at - from;
    return *n ? &f->tensor[from] : NULL;
}

static const keras_tensor *weights_named_run(const ty_keras *m, const char *layer, int *n)
{
    int at = 0;
    for (const keras_tensor *run = weights_next_run(m, &at, n); run; run = weights_next_run(m, &at, n))
        if (strcmp(run->layer, layer) == 0)
            return run;
    return NULL;
}

/* By name, or, where a name is missing, all in the order of the file, as Keras does. */
static void weights_bind_legacy(ty_keras *m)
{
    const struct keras_net *net = m->root->net;
    bool by_name = true;
    int n = 0, at = 0;
    for (int i = 0; i < net->n_layers; i++)
        if (weights_of(m, net->layer[i]).n)
            by_name = by_name && weights_named_run(m, net->layer[i]->name, &n);
    for (int i = 0; i < net->n_layers; i++) {
        weights_list list = weights_of(m, net->layer[i]);
        if (list.n == 0)
            continue;
        const keras_tensor *run =
            by_name ? weights_named_run(m, net->layer[i]->name, &n) : weights_next_run(m, &at, &n);
        weights_bind_legacy_layer(m, net->layer[i], &list, run, run ? n : 0);
    }
}

/* ---- bytes --------------------------------------------------------------------------------------------------------
 */

static double weights_read_number(const keras_tensor *t, int64_t i)
{
    switch (t->type.dtype) {
    case TY_F16:
        return ty_f16_to_f32(((const uint16_t *)t->data)[i]);
    case TY_BF16:
        return ty_bf16_to_f32(((const uint16_t *)t->data)[i]);
    case TY_F64:
        return ((const double *)t->data)[i];
    case TY_I32:
        return ((const int32_t *)t->data)[i];
    case TY_I64:
        return (double)((const int64_t *)t->data)[i];
    default:
        return ((const float *)t->data)[i];
    }
}

/* Numbers of another type as those of the weight; NULL: no conversion is known. */
static const void *weights_convert(ty_keras *m, const keras_weight *w)
{
    ty_dtype from = (ty_dtype)w->tensor->type.dtype, to = (ty_dtype)w->type.dtype;
    bool is_known = ty_dtype_is_float(from) || from == TY_I32 || from == TY_I64;
    if (from == to)
        return w->tensor->data;
    if (!is_known || to != TY_F32)
        return NULL;
    int64_t n = ty_type_elems(&w->type);
    float *out = TY_NEW_ARRAY(&m->arena, float, n + 1);
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)weights_read_number(w->tensor, i);
    return out;
}

static const void *weights_data(ty_keras *m, const keras_weight *w, int64_t *initial)
{
    char text[500], expected[160], found[160];
    ty_error err = {0};
    const void *data = NULL;
    if (w->tensor) {
        bool fits = ty_type_same_shape(&w->tensor->type, &w->type);
        data = fits ? weights_convert(m, w) : NULL;
        snprintf(text, sizeof text, "weight \"%.60s\": expected %s, found %s in data set \"%.160s\"", w->label,
                 ty_type_text(&w->type, expected, sizeof expected), ty_type_text(&w->tensor->type, found, sizeof found),
                 w->place);
        if (!data)
            weights_fault(m, w, text);
        return data;
    }
    *initial += ty_type_elems(&w->type);
    if (*initial > m->max_initial) {
        snprintf(text, sizeof text, "more than %lld numbers in weights that the file does not have",
                 (long long)m->max_initial);
        weights_fault(m, w, text);
        return NULL;
    }
    data = keras_initialize(&m->arena, w, m->seed, &err);
    if (!data) {
        ty_error_at(&err, "%.120s: layer \"%.100s\" (%.60s)", m->file.path, w->layer->path, w->layer->class_name);
        keras_faults_add(&m->faults, &err);
    }
    return data;
}

static void weights_list_one(ty_keras *m, keras_weight *w, int64_t *initial)
{
    /* counters are of whatever integer type the file has them */
    if (w->tensor && !ty_dtype_is_float((ty_dtype)w->type.dtype) && !ty_dtype_is_float((ty_dtype)w->tensor->type.dtype))
        w->type.dtype = w->tensor->type.dtype;
    ty_model_value *v = &m->listed[w->number];
    ty_error err = {0};
    *v = (ty_model_value){
        .name = w->name, .dtype = (ty_dtype)w->type.dtype, .rank = w->type.rank, .trainable_hint = w->trainable};
    memcpy(v->dim, w->type.dim, sizeof v->dim);
    m->running[w->number] = w->is_statistic && ty_dtype_is_float(v->dtype);
    v->data = weights_data(m, w, initial);
    if (keras_constrain(w->constraint, &w->type, &v->constraint, &err) < 0) {
        ty_error_at(&err, "%.120s: layer \"%.100s\" (%.60s)", m->file.path, w->layer->path, w->layer->class_name);
        keras_faults_add(&m->faults, &err);
    }
}

static void weights_index_tensors(ty_keras *m)
{
    ty_names_init(&m->tensors, &m->arena);
    for (int i = 0; i < m->file.n_tensors; i++)
        ty_names_put(&m->tensors, m->file.tensor[i].path, i);
}

void keras_bind_weights(ty_keras *m)
{
    weights_list all = weights_of(m, m->root);
    for (int i = 0; i < all.n; i++)
        all.at[i]->number = i;
    m->weight = all.at;
    m->n_weights = all.n;
    weights_index_tensors(m);
    for (int i = 0; i < all.n; i++)
        all.at[i]->tensor = NULL;
    if (m->file.n_tensors && m->file.tensor[0].layer) /* weights alone may have either form */
        weights_bind_legacy(m);
    else
        for (int i = 0; i < all.n; i++)
            weights_bind_place(m, all.at[i]);
    m->listed = TY_NEW_ARRAY(&m->arena, ty_model_value, all.n + 1);
    m->running = TY_NEW_ARRAY(&m->arena, bool, all.n + 1);
    m->n_listed = all.n;
    int64_t initial = 0;
    for (int i = 0; i < all.n; i++)
        if (m->faults.n_all == 0)
            weights_list_one(m, all.at[i], &initial);
}
