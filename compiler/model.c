/* model.c - model files behind one face: a table of formats, the first row that knows the file opens it.
 *
 * Inputs, outputs and weights are listed once at opening; everything else goes to the format's functions.
 */
#include "compiler/model.h"
#include "compiler/model_format.h"

#include "base/file.h"
#include "compiler/composites.h"
#include "compiler/import/cmodel_lists.h"
#include "compiler/import/onnx.h"
#include "compiler/ir/build.h"
#include "compiler/passes/adapt.h"
#include "compiler/passes/precision.h"
#include "compiler/passes/raise.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the table -------------------------------------------------------------------------------------------------- */

static const model_format *const model_formats[] = {&ty_model_cmodel, &ty_model_hf, &ty_model_keras,
                                                    &ty_model_tensorflow, &ty_model_onnx};

int ty_model_keep(const ty_model *m, const char *folder, ty_error *err)
{
    return m->format->keep ? m->format->keep(m->impl, folder, err) : 0;
}

void ty_model_drop_pages(const ty_model *m)
{
    if (m->format->drop_pages)
        m->format->drop_pages(m->impl);
}

bool ty_model_is_mapped(const ty_model *m)
{
    return m->format->is_mapped ? m->format->is_mapped(m->impl) : m->format->drop_pages != NULL;
}

static int model_refuse_missing(const char *path, int reason, ty_error *err)
{
    char graph[4096];
    int n = snprintf(graph, sizeof graph, "%s.meta", path);
    ty_error_errno(err, TY_E_NONE, reason, "model \"%s\"", path);
    return n > 0 && n < (int)sizeof graph && ty_file_exists(graph)
               ? ty_error_help(err, "a checkpoint of TensorFlow 1 is named by the file with its graph: %s", graph)
               : -1;
}

static int model_read_head(const char *path, uint8_t *head, size_t max, size_t *n, ty_error *err)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return model_refuse_missing(path, errno, err);
    *n = fread(head, 1, max, f);
    int reason = errno;
    bool failed = ferror(f) && reason != EISDIR;
    fclose(f);
    return failed ? ty_error_errno(err, TY_E_NONE, reason, "model \"%s\"", path) : 0;
}

static int model_detect(const char *path, const model_format **out, ty_error *err)
{
    uint8_t head[64];
    size_t n = 0;
    if (model_read_head(path, head, sizeof head, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof model_formats / sizeof *model_formats; i++)
        if (model_formats[i]->matches(path, head, n)) {
            *out = model_formats[i];
            return 0;
        }
    ty_error_set(err, TY_E_MODEL_FILE,
                 "model: expected an ONNX, Keras or TensorFlow file, a Hugging Face folder or C source, found %s",
                 n ? "something else" : "nothing in it");
    ty_error_at(err, "%s", path);
    return ty_error_help(err,
                         "save it as *.keras or with tf.saved_model.save, or export it to ONNX with its weights, or "
                         "write a model.c; of a checkpoint of TensorFlow 1 name the .meta file");
}

int ty_model_open(const char *path, ty_model **out, ty_error *err)
{
    return ty_model_open_kept(path, NULL, out, err);
}

int ty_model_open_kept(const char *path, const char *kept, ty_model **out, ty_error *err)
{
    return ty_model_open_as(path, kept, NULL, out, err);
}

/* Classes and their labels are Hugging Face's. */
static int model_check_class(const ty_model *m, const ty_model_choice *choice, ty_error *err)
{
    if (m->format == &ty_model_hf || (!choice->architecture && !choice->labels))
        return 0;
    ty_error_set(err, TY_E_CONFIG, "%s: a model of the format %s has its network in its file",
                 choice->architecture ? "architecture" : "labels", m->text);
    return ty_error_help(err, "leave the key out; folders of Hugging Face name a class");
}

/* A choice that the format would pass over in silence. */
static int model_check_choice(const ty_model *m, const ty_model_choice *choice, ty_error *err)
{
    const char *key = choice->train_signature ? "train_signature" : "signature";
    if (choice->layers && m->format != &ty_model_keras) {
        ty_error_set(err, TY_E_CONFIG, "layers: a model of the format %s names no classes of layers", m->text);
        return ty_error_help(err, "leave the key out; Keras files do");
    }
    if (model_check_class(m, choice, err) < 0)
        return -1;
    if (m->format == &ty_model_tensorflow || (!choice->signature && !choice->train_signature))
        return 0;
    ty_error_set(err, TY_E_CONFIG, "%s: a model of the format %s has no signatures", key, m->text);
    return ty_error_help(err, "leave the key out; files of TensorFlow have signatures");
}

/* What is wrong with Keras' layers is told when they are imported, all at once; then it has no outputs yet. */
static int model_check_outputs(const ty_model *m, const char *path, ty_error *err)
{
    if (m->n_outputs > 0 || m->format == &ty_model_keras)
        return 0;
    ty_error_set(err, TY_E_MODEL_FILE, "expected a model with at least one output, found none");
    ty_error_at(err, "%s", path);
    return ty_error_help(err, "nothing could be computed or trained; a frozen graph's outputs are the nodes that no "
                              "other node uses");
}

int ty_model_open_as(const char *path, const char *kept, const ty_model_choice *choice, ty_model **out, ty_error *err)
{
    const model_format *format = NULL;
    *out = NULL;
    if (model_detect(path, &format, err) < 0)
        return -1;
    ty_model *m = calloc(1, sizeof *m);
    if (!m)
        return ty_error_set(err, TY_E_LIMIT, "no memory for a model");
    ty_arena_init(&m->arena);
    m->format = format;
    if (choice)
        m->choice = *choice;
    if (format->open(m, path, kept, err) < 0 || model_check_choice(m, &m->choice, err) < 0 ||
        model_check_outputs(m, path, err) < 0) {
        ty_model_free(m);
        return -1;
    }
    *out = m;
    return 0;
}

int ty_model_recipe_of(const char *path, const ty_model_choice *choice, ty_arena *a, const char **out, ty_error *err)
{
    const model_format *format;
    ty_model *m;
    *out = NULL;
    if (!ty_file_exists(path) || model_detect(path, &format, err) < 0 || !format->has_recipes)
        return 0; /* what is wrong with a file is said where it is opened */
    if (format->read_recipe)
        return format->read_recipe(path, choice, a, out, err);
    const ty_model_choice known = {.layers = format == &ty_model_keras ? choice->layers : NULL};
    if (ty_model_open_as(path, NULL, &known, &m, err) < 0)
        return -1;
    *out = m->recipe ? ty_arena_strdup(a, m->recipe) : NULL;
    ty_model_free(m);
    return 0;
}

void ty_model_free(ty_model *m)
{
    if (!m)
        return;
    if (m->impl)
        m->format->close(m->impl);
    ty_arena_fini(&m->arena);
    free(m);
}

/* ---- questions -------------------------------------------------------------------------------------------------- */

const char *ty_model_format(const ty_model *m)
{
    return m->text;
}

int ty_model_n_inputs(const ty_model *m)
{
    return m->n_inputs;
}

const ty_model_value *ty_model_input(const ty_model *m, int i)
{
    return &m->input[i];
}

int ty_model_n_outputs(const ty_model *m)
{
    return m->n_outputs;
}

const ty_model_value *ty_model_output(const ty_model *m, int i)
{
    return &m->output[i];
}

int ty_model_n_weights(const ty_model *m)
{
    return m->n_weights;
}

const ty_model_value *ty_model_weight(const ty_model *m, int i)
{
    return &m->weight[i];
}

int64_t ty_model_n_nodes(const ty_model *m)
{
    return m->n_nodes;
}

bool ty_model_trains_itself(const ty_model *m)
{
    return m->own_step;
}

const char *ty_model_recipe(const ty_model *m)
{
    return m->recipe;
}

int ty_model_n_facts(const ty_model *m)
{
    return m->n_facts;
}

const ty_model_preparation *ty_model_preparation_of(const ty_model *m)
{
    return m->preparation;
}

void ty_model_name_classes(ty_model *m, const char *const *names, int64_t n)
{
    m->class_name = TY_NEW_ARRAY(&m->arena, const char *, n);
    m->n_classes = n;
    for (int64_t i = 0; i < n; i++)
        m->class_name[i] = ty_arena_strdup(&m->arena, names[i]);
}

bool ty_model_weights_are_beside(const ty_model *m)
{
    return m->format->weights_beside;
}

const char *const *ty_model_companions(const ty_model *m, int *n)
{
    *n = m->n_companions;
    return m->companion;
}

const ty_model_fact *ty_model_fact_at(const ty_model *m, int i)
{
    return &m->fact[i];
}

int ty_model_n_warnings(const ty_model *m)
{
    return m->n_warnings;
}

const ty_model_warning *ty_model_warning_at(const ty_model *m, int i)
{
    return &m->warning[i];
}

static int model_find(const ty_model_value *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return i;
    return -1;
}

int ty_model_find_input(const ty_model *m, const char *name)
{
    return model_find(m->input, m->n_inputs, name);
}

int ty_model_find_output(const ty_model *m, const char *name)
{
    return model_find(m->output, m->n_outputs, name);
}

int ty_model_find_weight(const ty_model *m, const char *name)
{
    return model_find(m->weight, m->n_weights, name);
}

int ty_model_reseed(ty_model *m, uint64_t seed, ty_error *err)
{
    return m->format->reseed ? m->format->reseed(m, seed, err) : 0;
}

bool ty_model_weight_is_running(const ty_model *m, int weight)
{
    return m->running[weight];
}

/* A model is imported into a draft of its own, in which what it is bound to are inputs, and raised from there. */
typedef struct model_draft {
    ty_graph *g;
    ty_val *bound; /* by input of the draft */
    int n_bound;
    ty_model_adapter *adapters; /* [n_adapters]: what the caller asked for */
    ty_adapter *adapter;        /* the same by inputs of the draft */
    int n_adapters;
} model_draft;

/* Constants stay constants, since importers look at them. */
static ty_val model_bind(model_draft *d, const ty_graph *g, ty_val v)
{
    if (v == TY_NONE)
        return TY_NONE;
    const void *data = ty_graph_const_data(g, v);
    if (data)
        return ty_b_const(d->g, *ty_graph_type(g, v), data);
    char name[32];
    snprintf(name, sizeof name, "bound %d", d->n_bound);
    d->bound[d->n_bound++] = v;
    return ty_b_input(d->g, ty_graph_add_input(d->g, name, *ty_graph_type(g, v)));
}

static const ty_val *model_bind_all(model_draft *d, ty_graph *g, const ty_val *v, int n)
{
    ty_val *out = TY_NEW_ARRAY(ty_graph_arena(d->g), ty_val, n + 1);
    for (int i = 0; i < n; i++)
        out[i] = model_bind(d, g, v[i]);
    return out;
}

/* A graph that stands for the draft between two passes, with the same inputs. */
static ty_graph *model_between(const model_draft *d, ty_val **same)
{
    ty_graph *g = ty_graph_new();
    *same = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, d->n_bound + 1);
    for (int i = 0; i < d->n_bound; i++) {
        const ty_input *input = ty_graph_input(d->g, i);
        (*same)[i] = ty_b_input(g, ty_graph_add_input(g, input->name, input->type));
    }
    return g;
}

static int model_adapt(const model_draft *d, const ty_graph *raised, ty_graph *g, const ty_val *bound, ty_val *held,
                       int n, ty_error *err)
{
    if (ty_pass_adapt(raised, g, bound, d->adapter, d->n_adapters, held, n, err) < 0)
        return -1;
    for (int i = 0; i < d->n_adapters; i++) {
        d->adapters[i].is_met = d->adapter[i].is_met;
        d->adapters[i].is_read_by_others = d->adapter[i].is_read_by_others;
        d->adapters[i].sums_rows = d->adapter[i].sums_rows;
    }
    return 0;
}

/* What the draft gave, in g: raised, then with adapters, then in mixed precision, as far as those are wanted. */
static int model_carry_over(const model_draft *d, ty_graph *g, const ty_precision_rules *precision, ty_val *held, int n,
                            ty_error *err)
{
    bool adapts = d->n_adapters > 0;
    ty_val *bound = d->bound, *again = d->bound;
    ty_graph *raised = adapts || precision ? model_between(d, &bound) : g;
    ty_graph *adapted = !adapts ? raised : precision ? model_between(d, &again) : g;
    int rc = ty_pass_raise(d->g, raised, bound, held, n, err);
    if (rc == 0 && adapts)
        rc = model_adapt(d, raised, adapted, again, held, n, err);
    if (rc == 0 && precision)
        rc = ty_pass_precision(adapted, g, d->bound, precision, held, n, err);
    if (adapted != raised && adapted != g)
        ty_graph_free(adapted);
    if (raised != g)
        ty_graph_free(raised);
    return rc;
}

/* What the draft is asked for, in a row: outputs, masks, penalties, updates. */
static ty_val *model_hold(const ty_model *m, ty_graph *g, const ty_model_values *v, int *n)
{
    int n_masks = v->masks ? m->n_outputs : 0, at = 0;
    ty_val *held = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, m->n_outputs + n_masks + v->n_penalties + v->n_updates + 2);
    for (int i = 0; i < m->n_outputs; i++)
        held[at++] = v->outputs[i];
    for (int i = 0; i < n_masks; i++)
        held[at++] = v->masks[i];
    for (int i = 0; i < v->n_penalties; i++)
        held[at++] = v->penalties[i];
    for (int i = 0; i < v->n_updates; i++)
        held[at++] = v->updates[i].value;
    if (v->loss)
        held[at++] = *v->loss;
    *n = at;
    return held;
}

static int model_raise(const ty_model *m, const model_draft *d, ty_graph *g, const ty_precision_rules *precision,
                       ty_model_values *values, ty_error *err)
{
    int n;
    ty_val *held = model_hold(m, g, values, &n), *masks = held + m->n_outputs;
    ty_val *penalties = masks + (values->masks ? m->n_outputs : 0), *value = penalties + values->n_penalties;
    ty_model_update *updates = TY_NEW_ARRAY(ty_graph_arena(g), ty_model_update, values->n_updates + 1);
    if (model_carry_over(d, g, precision, held, n, err) < 0)
        return -1;
    for (int i = 0; i < values->n_updates; i++)
        updates[i] = (ty_model_update){values->updates[i].weight, value[i]};
    *values = (ty_model_values){.outputs = held,
                                .updates = updates,
                                .n_updates = values->n_updates,
                                .masks = values->masks ? masks : NULL,
                                .penalties = penalties,
                                .n_penalties = values->n_penalties,
                                .loss = values->loss ? value + values->n_updates : NULL};
    return ty_composites_count(g, held, n, &values->found, err);
}

static int model_input_number(const model_draft *d, ty_val v)
{
    return (int)ty_graph_attr(d->g, ty_val_node(v))->index;
}

static void model_bind_adapters(model_draft *d, const ty_graph *g, const ty_model_binding *b,
                                const ty_model_binding *own)
{
    d->adapters = b->adapters;
    d->n_adapters = b->n_adapters;
    d->adapter = TY_NEW_ARRAY(ty_graph_arena(d->g), ty_adapter, b->n_adapters + 1);
    for (int i = 0; i < b->n_adapters; i++) {
        const ty_model_adapter *a = &b->adapters[i];
        d->adapter[i] = (ty_adapter){.weight = model_input_number(d, own->weights[a->weight]),
                                     .left = model_input_number(d, model_bind(d, g, a->left)),
                                     .right = model_input_number(d, model_bind(d, g, a->right)),
                                     .scale = a->scale};
    }
}

int ty_model_import(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_model_values *values, ty_error *err)
{
    model_draft d = {.g = ty_graph_new()};
    d.bound = TY_NEW_ARRAY(ty_graph_arena(d.g), ty_val, m->n_inputs + m->n_weights + 2 + 2 * b->n_adapters);
    ty_model_binding own = {.mode = b->mode, .inputs = model_bind_all(&d, g, b->inputs, m->n_inputs)};
    if (b->weights)
        own.weights = model_bind_all(&d, g, b->weights, m->n_weights);
    own.seed = model_bind(&d, g, b->seed);
    own.step = model_bind(&d, g, b->step);
    own.batch_norm_replicas = b->batch_norm_replicas;
    model_bind_adapters(&d, g, b, &own);
    int rc = m->format->import(m, d.g, &own, values, err);
    if (rc == 0)
        rc = model_raise(m, &d, g, b->precision, values, err);
    ty_graph_free(d.g);
    return rc;
}

bool ty_model_has_data_file(const ty_model *m)
{
    return m->format->has_data_file && m->format->has_data_file(m);
}

/* ---- writing, checking ------------------------------------------------------------------------------------------ */

const char *ty_model_artifact(const ty_model *m)
{
    return m->artifact;
}

int ty_model_write(const ty_model *m, const char *path, ty_find_weight *find, void *ctx, ty_error *err)
{
    return ty_model_write_trained(m, path, find, ctx, NULL, err);
}

int ty_model_write_trained(const ty_model *m, const char *path, ty_find_weight *find, void *ctx,
                           const ty_model_moments *moments, ty_error *err)
{
    ty_file_writer w;
    if (m->format->write_to)
        return m->format->write_to(m, path, find, ctx, err);
    if (!m->format->write)
        return ty_error_set(err, TY_E_UNSUPPORTED, "models of this format (%s) are not written back", m->text);
    if (ty_file_writer_open(&w, path, 0644, err) < 0)
        return -1;
    int rc = m->format->write_trained ? m->format->write_trained(m, path, &w, find, ctx, moments, err)
                                      : m->format->write(m, path, &w, find, ctx, err);
    if (rc < 0) {
        ty_file_writer_abandon(&w);
        return -1;
    }
    return ty_file_writer_commit(&w, err);
}

void ty_model_take_lists(ty_model *m, const ty_cmodel_lists *l)
{
    snprintf(m->text, sizeof m->text, "%s", l->format);
    m->n_nodes = l->n_calls;
    m->input = l->input;
    m->n_inputs = l->n_inputs;
    m->output = l->output;
    m->n_outputs = l->n_outputs;
    m->weight = l->weight;
    m->n_weights = l->n_weights;
    m->running = l->running;
}

int ty_model_first_fault(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_error *faults, int max)
{
    ty_model_values values;
    ty_error first;
    if (m->format->import(m, g, b, &values, &first) == 0)
        return 0;
    if (max > 0)
        faults[0] = first;
    return 1;
}

static int model_bind_batch(const ty_model *m, ty_graph *g, int64_t batch, ty_val *inputs, ty_error *err)
{
    for (int i = 0; i < m->n_inputs; i++) {
        const ty_model_value *v = &m->input[i];
        if (v->rank < 0 || v->dtype >= TY_N_DTYPES)
            return ty_error_set(err, TY_E_SHAPE, "input \"%s\": the file gives no %s", v->name,
                                v->rank < 0 ? "shape" : "element type that is known here");
        ty_type type = {.dtype = (uint8_t)v->dtype, .rank = (uint8_t)v->rank};
        for (int k = 0; k < v->rank; k++)
            type.dim[k] = v->dim[k] < 0 ? batch : v->dim[k];
        inputs[i] = ty_b_input(g, ty_graph_add_input(g, v->name, type));
    }
    return ty_graph_failed(g, err) ? -1 : 0;
}

int ty_model_faults(const ty_model *m, ty_graph *g, const ty_model_binding *b, ty_error *faults, int max)
{
    return m->format->check(m, g, b, faults, max);
}

int ty_model_count_composites(const ty_model *m, int64_t batch, ty_composite_count *out, ty_error *err)
{
    ty_graph *g = ty_graph_new();
    ty_val *inputs = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, m->n_inputs + 1);
    ty_model_binding b = {.mode = TY_MODEL_TRAIN, .inputs = inputs};
    ty_model_values values;
    b.seed = b.step = ty_b_scalar(g, TY_I64, 0);
    int rc = model_bind_batch(m, g, batch, inputs, err);
    if (rc == 0)
        rc = ty_model_import(m, g, &b, &values, err);
    if (rc == 0)
        *out = values.found;
    ty_graph_free(g);
    return rc;
}
