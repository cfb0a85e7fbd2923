/* keras_model.c - a Keras model from opening to import. */
#include "compiler/import/keras/keras_walk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- opening ------------------------------------------------------------------------------------------------------
 */

static void model_fault(ty_keras *m, ty_code code, const char *help, const char *message)
{
    ty_error err = {0};
    ty_error_set(&err, code, "%s", message);
    ty_error_at(&err, "%s", m->file.path);
    if (help)
        ty_error_help(&err, "%s", help);
    keras_faults_add(&m->faults, &err);
}

static void model_take_faults(ty_keras *m, const keras_faults *from)
{
    for (int i = 0; i < from->n; i++)
        keras_faults_add(&m->faults, &from->at[i]);
    m->faults.n_all += from->n_all - from->n;
}

/* A name that no earlier entry has: outputs of one layer are told apart by their numbers. */
static const char *model_unique(ty_keras *m, const ty_model_value *list, int n, const char *name)
{
    for (int i = 0, copies = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0) {
            name = ty_arena_printf(&m->arena, "%s_%d", name, ++copies);
            i = -1;
        }
    return name;
}

static void model_list_inputs(ty_keras *m)
{
    const struct keras_net *net = m->root->net;
    char text[300];
    m->n_inputs = net->n_inputs;
    m->input = TY_NEW_ARRAY(&m->arena, ty_model_value, net->n_inputs + 1);
    for (int i = 0; i < net->n_inputs; i++) {
        const keras_port *port = &net->input[i];
        m->input[i] = (ty_model_value){
            .name = model_unique(m, m->input, i, port->name), .dtype = port->dtype, .rank = port->rank};
        memcpy(m->input[i].dim, port->dim, sizeof port->dim);
        if (port->rank > 0 && port->dim[0] < 0)
            m->input[i].dim_name[0] = "batch";
        if (port->rank <= 0) {
            snprintf(text, sizeof text, "input \"%.100s\" has no %s", port->name,
                     port->rank ? "shape: the model was never built" : "batch axis");
            model_fault(m, TY_E_SHAPE, "begin the model with keras.Input, or call it once before it is saved", text);
        } else if (port->dtype >= TY_N_DTYPES) {
            snprintf(text, sizeof text, "input \"%.100s\" holds strings", port->name);
            model_fault(m, TY_E_UNSUPPORTED, "leave preprocessing of text out of the model, and feed it numbers", text);
        }
    }
}

/* The model applied to inputs of stand-in sizes. Types of its outputs go to out. */
static void model_rehearse(ty_keras *m, int shift, ty_type *out)
{
    const struct keras_net *net = m->root->net;
    ty_graph *g = ty_graph_new();
    keras_walk w;
    keras_walk_init(&w, m, g);
    w.is_opening = true;
    w.training = true;
    w.seed = w.step = ty_b_scalar(g, TY_I64, 0);
    keras_stand_ins(&w);
    ty_val *inputs = TY_NEW_ARRAY(&w.arena, ty_val, net->n_inputs + 1),
           *outputs = TY_NEW_ARRAY(&w.arena, ty_val, net->n_outputs + 1),
           *masks = TY_NEW_ARRAY(&w.arena, ty_val, net->n_outputs + 1);
    for (int i = 0; i < net->n_inputs; i++) {
        ty_type t = {.dtype = (uint8_t)m->input[i].dtype, .rank = (uint8_t)m->input[i].rank};
        for (int k = 0; k < t.rank; k++)
            t.dim[k] =
                m->input[i].dim[k] >= 0 ? m->input[i].dim[k] : (k ? KERAS_STAND_IN_DIM : KERAS_STAND_IN_BATCH) + shift;
        inputs[i] = ty_b_input(g, ty_graph_add_input(g, m->input[i].name, t));
    }
    if (keras_walk_model(&w, inputs, outputs, masks))
        for (int i = 0; i < net->n_outputs; i++)
            out[i] = *ty_graph_type(g, outputs[i]);
    m->n_calls = w.n_calls;
    model_take_faults(m, &w.faults);
    keras_walk_fini(&w);
    ty_graph_free(g);
}

static void model_list_outputs(ty_keras *m, const ty_type *first, const ty_type *second)
{
    const struct keras_net *net = m->root->net;
    m->output = TY_NEW_ARRAY(&m->arena, ty_model_value, net->n_outputs + 1);
    for (int i = 0; i < net->n_outputs; i++) {
        ty_model_value *v = &m->output[i];
        *v = (ty_model_value){.name = model_unique(m, m->output, i, net->output[i].name),
                              .dtype = (ty_dtype)first[i].dtype,
                              .rank = first[i].rank};
        for (int k = 0; k < v->rank; k++)
            v->dim[k] = first[i].dim[k] == second[i].dim[k] ? first[i].dim[k] : -1;
        if (v->rank > 0 && v->dim[0] < 0)
            v->dim_name[0] = "batch";
    }
    m->n_outputs = net->n_outputs;
}

/* Of a model with faults there is what the file holds. */
static void model_list_tensors(ty_keras *m)
{
    m->n_listed = m->file.n_tensors;
    m->listed = TY_NEW_ARRAY(&m->arena, ty_model_value, m->n_listed + 1);
    m->running = TY_NEW_ARRAY(&m->arena, bool, m->n_listed + 1);
    for (int i = 0; i < m->n_listed; i++) {
        const keras_tensor *t = &m->file.tensor[i];
        m->listed[i] =
            (ty_model_value){.name = t->path, .dtype = (ty_dtype)t->type.dtype, .rank = t->type.rank, .data = t->data};
        memcpy(m->listed[i].dim, t->type.dim, sizeof t->type.dim);
    }
}

static void model_describe(ty_keras *m)
{
    const char *kind = m->root->what != KERAS_IS_NET ? m->class_name
                       : m->root->net->is_sequential ? "sequential"
                                                     : "functional";
    snprintf(m->text, sizeof m->text, "keras%s%.20s %.60s%s", m->file.version[0] ? " " : "", m->file.version, kind,
             m->file.form == KERAS_LEGACY ? ", HDF5"
             : m->file.has_weights        ? ""
                                          : ", without weights");
}

static void model_open_net(ty_keras *m)
{
    model_list_inputs(m);
    for (int i = 0; i < m->n_inputs; i++)
        if (m->input[i].rank <= 0 || m->input[i].dtype >= TY_N_DTYPES)
            return;
    int n = m->root->net->n_outputs;
    ty_type *first = TY_NEW_ARRAY(&m->arena, ty_type, n + 1), *second = TY_NEW_ARRAY(&m->arena, ty_type, n + 1);
    model_rehearse(m, 0, first);
    if (m->faults.n_all == 0)
        keras_bind_weights(m);
    if (m->faults.n_all)
        return;
    model_rehearse(m, KERAS_STAND_IN_SHIFT, second);
    if (m->faults.n_all)
        ty_error_help(&m->faults.at[0], "give the model's inputs fixed sizes where weights hang on them");
    else
        model_list_outputs(m, first, second);
}

int keras_open_parsed(const keras_file *file, const char *layers, int64_t max_initial, ty_keras **out, ty_error *err)
{
    ty_keras *m = calloc(1, sizeof *m);
    *out = NULL;
    if (!m)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a model");
    ty_arena_init(&m->arena);
    m->file = *file;
    m->max_initial = max_initial;
    ty_names_init(&m->weight_names, &m->arena);
    if (keras_open_classes(m, layers, err) < 0 || keras_read_tree(m, err) < 0) {
        ty_error_at(err, "%s", m->file.path);
        m->file = (keras_file){0}; /* still the caller's */
        ty_keras_free(m);
        return -1;
    }
    if (m->root->what == KERAS_IS_NET)
        model_open_net(m);
    if (m->faults.n_all)
        model_list_tensors(m);
    model_describe(m);
    *out = m;
    return 0;
}

int ty_keras_open(const char *path, const char *layers, ty_keras **out, ty_error *err)
{
    ty_arena arena;
    keras_file file = {0};
    *out = NULL;
    ty_arena_init(&arena);
    int rc = keras_file_open(path, &arena, &file, err);
    if (rc == 0 && (rc = keras_open_parsed(&file, layers, KERAS_MAX_INITIAL, out, err)) < 0)
        keras_file_close(&file);
    if (rc == 0)
        (*out)->file_arena = arena;
    else
        ty_arena_fini(&arena);
    return rc;
}

void ty_keras_free(ty_keras *m)
{
    if (!m)
        return;
    keras_close_classes(m);
    keras_file_close(&m->file);
    ty_arena_fini(&m->file_arena);
    ty_arena_fini(&m->arena);
    free(m);
}

/* ---- questions ----------------------------------------------------------------------------------------------------
 */

void ty_keras_list(const ty_keras *m, ty_keras_lists *out)
{
    *out = (ty_keras_lists){.format = m->text,
                            .input = m->input,
                            .output = m->output,
                            .weight = m->listed,
                            .running = m->running,
                            .n_inputs = m->n_inputs,
                            .n_outputs = m->n_outputs,
                            .n_weights = m->n_listed,
                            .n_calls = m->n_calls};
}

const struct keras_file *ty_keras_file(const ty_keras *m)
{
    return &m->file;
}

const char *ty_keras_place(const ty_keras *m, int weight)
{
    return m->faults.n_all ? m->file.tensor[weight].path : m->weight[weight]->place;
}

int ty_keras_reseed(ty_keras *m, uint64_t seed, ty_error *err)
{
    m->seed = seed;
    for (int i = 0; i < m->n_weights && m->faults.n_all == 0; i++) {
        if (m->weight[i]->tensor)
            continue;
        const void *data = keras_initialize(&m->arena, m->weight[i], seed, err);
        if (!data)
            return -1;
        m->listed[i].data = data;
    }
    return 0;
}

/* ---- import -------------------------------------------------------------------------------------------------------
 */

static void model_take_values(const keras_walk *w, const ty_val *outputs, const ty_val *masks, ty_model_values *values)
{
    ty_arena *a = ty_graph_arena(w->g);
    int n = w->m->n_outputs;
    bool any = false;
    for (int i = 0; i < n; i++)
        any = any || masks[i] != TY_NONE;
    *values = (ty_model_values){.outputs = ty_arena_copy(a, outputs, sizeof *outputs * (size_t)n),
                                .masks = any ? ty_arena_copy(a, masks, sizeof *masks * (size_t)n) : NULL,
                                .n_updates = w->n_updates,
                                .n_penalties = w->n_penalties};
    values->updates =
        ty_arena_copy(a, w->update ? w->update : (ty_model_update[1]){{0}}, sizeof *w->update * (size_t)w->n_updates);
    values->penalties =
        ty_arena_copy(a, w->penalty ? w->penalty : (ty_val[1]){0}, sizeof *w->penalty * (size_t)w->n_penalties);
}

static int model_import(const ty_keras *model, ty_graph *g, const ty_model_binding *b, ty_model_values *values,
                        keras_faults *faults)
{
    ty_keras *m = (ty_keras *)(uintptr_t)model; /* layers are created by now: nothing of it changes */
    keras_walk w;
    keras_walk_init(&w, m, g);
    w.training = b->mode == TY_MODEL_TRAIN;
    w.weights = b->weights;
    w.seed = b->seed;
    w.step = b->step;
    w.replicas = b->batch_norm_replicas;
    ty_val *outputs = TY_NEW_ARRAY(&w.arena, ty_val, m->n_outputs + 1),
           *masks = TY_NEW_ARRAY(&w.arena, ty_val, m->n_outputs + 1);
    if (keras_walk_model(&w, b->inputs, outputs, masks))
        model_take_values(&w, outputs, masks, values);
    *faults = w.faults;
    keras_walk_fini(&w);
    return faults->n_all ? -1 : 0;
}

int ty_keras_import(const ty_keras *m, ty_graph *g, const ty_model_binding *b, ty_model_values *values, ty_error *err)
{
    *values = (ty_model_values){0};
    if (ty_graph_failed(g, err))
        return -1;
    if (m->faults.n_all)
        return keras_faults_result(&m->faults, err);
    keras_faults *faults = calloc(1, sizeof *faults);
    if (!faults)
        return ty_error_set(err, TY_E_LIMIT, "no memory for faults");
    int rc = model_import(m, g, b, values, faults);
    if (rc < 0)
        keras_faults_result(faults, err);
    free(faults);
    return rc;
}

int ty_keras_faults(const ty_keras *m, ty_graph *g, const ty_model_binding *b, ty_error *faults, int max)
{
    keras_faults *found = calloc(1, sizeof *found);
    ty_model_values values;
    if (!found)
        return 0;
    if (m->faults.n_all)
        *found = m->faults;
    else
        model_import(m, g, b, &values, found);
    int n = found->n_all < KERAS_MAX_FAULTS ? found->n_all : KERAS_MAX_FAULTS;
    for (int i = 0; i < found->n && i < max; i++)
        faults[i] = found->at[i];
    free(found);
    return n;
}
