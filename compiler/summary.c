/* summary.c - what a model is: layers with shapes, weights and arithmetic, and everything that cannot be trained.
 *
 * The graph is the one that training would build, up to the loss: the model in training mode, raised, and its gradient.
 * In place of a loss stands a weighted sum of the outputs, whose weights are an input, so that nothing folds away.
 * It is built once more with another batch, and only forward: what differs between the two shapes of a value is its
 * batch. Arithmetic is counted on the lowered graph, where nothing is hidden in composites.
 */
#include "compiler/import/names.h"
#include "compiler/ir/build.h"
#include "compiler/model.h"
#include "compiler/ops/work.h"
#include "compiler/passes/passes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUMMARY_BATCH = 2, SUMMARY_OTHER_DIM = 64 };

/* The model in a graph of its own. */
typedef struct summary_draft {
    ty_graph *g;
    int64_t batch;
    ty_val *leaf; /* by weight; TY_NONE: a constant */
    ty_model_values values;
    uint32_t n_forward; /* nodes before the gradient */
} summary_draft;

typedef struct summarizer {
    const ty_model *m;
    const ty_summary_options *opt;
    ty_arena *a;
    ty_model_summary *out;
} summarizer;

/* ---- shapes ---- */

static bool summary_is_batch(const ty_model *m, const ty_model_value *v, int axis)
{
    if (axis == 0)
        return true;
    for (int i = 0; i < ty_model_n_inputs(m) && v->dim_name[axis]; i++) {
        const ty_model_value *other = ty_model_input(m, i);
        if (other->rank > 0 && other->dim[0] < 0 && other->dim_name[0] &&
            strcmp(other->dim_name[0], v->dim_name[axis]) == 0)
            return true;
    }
    return false;
}

/* A usual size, or the largest that the model takes if that is smaller. */
static int64_t summary_usual(const summarizer *s)
{
    const ty_model_preparation *p = ty_model_preparation_of(s->m);
    bool is_short = p && p->max_length > 0 && p->max_length < SUMMARY_OTHER_DIM;
    return is_short ? p->max_length : SUMMARY_OTHER_DIM;
}

static void summary_assume(summarizer *s, const char *name)
{
    for (int i = 0; i < s->out->n_assumed; i++)
        if (strcmp(s->out->assumed[i].name, name) == 0)
            return;
    ty_free_dim *list = TY_NEW_ARRAY(s->a, ty_free_dim, s->out->n_assumed + 1);
    if (s->out->n_assumed)
        memcpy(list, s->out->assumed, sizeof *list * (size_t)s->out->n_assumed);
    list[s->out->n_assumed++] = (ty_free_dim){name, summary_usual(s)};
    s->out->assumed = list;
}

static int64_t summary_dim(summarizer *s, const ty_model_value *v, int axis, int64_t batch)
{
    const char *name = v->dim_name[axis] ? v->dim_name[axis] : "?";
    if (v->dim[axis] >= 0)
        return v->dim[axis];
    if (summary_is_batch(s->m, v, axis))
        return batch;
    for (int i = 0; i < s->opt->n_dims; i++)
        if (strcmp(s->opt->dims[i].name, name) == 0)
            return s->opt->dims[i].value;
    summary_assume(s, name);
    return summary_usual(s);
}

static int summary_bind_inputs(summarizer *s, const summary_draft *d, ty_val *inputs, ty_error *err)
{
    for (int i = 0; i < ty_model_n_inputs(s->m); i++) {
        const ty_model_value *v = ty_model_input(s->m, i);
        if (v->rank < 0 || v->dtype >= TY_N_DTYPES) {
            ty_error_set(err, TY_E_SHAPE, "input \"%s\": the file gives no %s", v->name,
                         v->rank < 0 ? "shape" : "element type that is known here");
            return ty_error_help(err, "export the model with a type and a shape for each input");
        }
        ty_type type = {.dtype = (uint8_t)v->dtype, .rank = (uint8_t)v->rank};
        for (int k = 0; k < v->rank; k++)
            type.dim[k] = summary_dim(s, v, k, d->batch);
        inputs[i] = ty_b_input(d->g, ty_graph_add_input(d->g, v->name, type));
    }
    return ty_graph_failed(d->g, err) ? -1 : 0;
}

/* ---- the graph ---- */

static bool summary_is_leaf(const ty_model *m, int i)
{
    const ty_model_value *w = ty_model_weight(m, i);
    return w->dtype < TY_N_DTYPES && ty_dtype_is_float(w->dtype) &&
           (w->trainable_hint || ty_model_weight_is_running(m, i));
}

static void summary_bind_weights(const summarizer *s, summary_draft *d)
{
    char name[32];
    for (int i = 0; i < ty_model_n_weights(s->m); i++) {
        const ty_model_value *w = ty_model_weight(s->m, i);
        d->leaf[i] = TY_NONE;
        if (!summary_is_leaf(s->m, i))
            continue;
        ty_type type = {.dtype = (uint8_t)w->dtype, .rank = (uint8_t)w->rank};
        memcpy(type.dim, w->dim, sizeof w->dim);
        snprintf(name, sizeof name, "\x01weight %d", i); /* no name of a model starts so */
        d->leaf[i] = ty_b_input(d->g, ty_graph_add_input(d->g, name, type));
    }
}

/* A new draft with what the model is bound to. */
static int summary_begin(summarizer *s, summary_draft *d, int64_t batch, ty_model_binding *b, ty_error *err)
{
    *d = (summary_draft){.g = ty_graph_new(), .batch = batch};
    d->leaf = TY_NEW_ARRAY(s->a, ty_val, ty_model_n_weights(s->m) + 1);
    ty_val *inputs = TY_NEW_ARRAY(s->a, ty_val, ty_model_n_inputs(s->m) + 1);
    *b = (ty_model_binding){.mode = TY_MODEL_TRAIN, .inputs = inputs, .weights = d->leaf};
    if (summary_bind_inputs(s, d, inputs, err) < 0)
        return -1;
    b->seed = ty_b_input(d->g, ty_graph_add_input(d->g, "\x01seed", ty_type_scalar(TY_I64)));
    b->step = ty_b_input(d->g, ty_graph_add_input(d->g, "\x01step", ty_type_scalar(TY_I64)));
    summary_bind_weights(s, d);
    return ty_graph_failed(d->g, err) ? -1 : 0;
}

static int summary_draft_forward(summarizer *s, summary_draft *d, int64_t batch, ty_error *err)
{
    ty_model_binding b;
    if (summary_begin(s, d, batch, &b, err) < 0 || ty_model_import(s->m, d->g, &b, &d->values, err) < 0)
        return -1;
    d->n_forward = ty_graph_n_nodes(d->g);
    return 0;
}

static bool summary_is_float(const ty_graph *g, ty_val v)
{
    return v != TY_NONE && ty_dtype_is_float((ty_dtype)ty_graph_type(g, v)->dtype);
}

/* Sum over the outputs that are asked for (skip[i] is false) of output times an input of its type. */
static ty_val summary_loss(const summarizer *s, summary_draft *d, const bool *skip)
{
    ty_val loss = TY_NONE;
    char name[32];
    for (int i = 0; i < ty_model_n_outputs(s->m); i++) {
        ty_val y = d->values.outputs[i];
        if (skip[i] || !summary_is_float(d->g, y))
            continue;
        const ty_type *type = ty_graph_type(d->g, y);
        snprintf(name, sizeof name, "\x01of %d", i);
        ty_val share = ty_b_input(d->g, ty_graph_add_input(d->g, name, *type));
        ty_val sum = ty_b_cast(d->g, ty_b_sum(d->g, ty_b_mul(d->g, y, share), (1u << type->rank) - 1, false), TY_F32);
        loss = loss == TY_NONE ? sum : ty_b_add(d->g, loss, sum);
    }
    return loss;
}

/* Gradients of all trainable weights become outputs of the graph. The model's own are told apart by their tape, EVAL.
 */
static int summary_gradient(const summarizer *s, summary_draft *d, const bool *skip, ty_error *err)
{
    int n = ty_model_n_weights(s->m), n_wrt = 0;
    ty_val *wrt = TY_NEW_ARRAY(s->a, ty_val, n + 1), *grad = TY_NEW_ARRAY(s->a, ty_val, n + 1);
    ty_val loss = summary_loss(s, d, skip);
    for (int i = 0; i < n; i++)
        if (d->leaf[i] != TY_NONE && !ty_model_weight_is_running(s->m, i))
            wrt[n_wrt++] = d->leaf[i];
    if (loss != TY_NONE && n_wrt > 0 && ty_pass_autodiff(d->g, loss, wrt, n_wrt, grad, err) < 0)
        return -1;
    char name[32];
    for (int i = 0; i < n_wrt && loss != TY_NONE; i++) {
        snprintf(name, sizeof name, "\x01gradient %d", i);
        ty_graph_add_output(d->g, name, grad[i], TY_TAPE_LAST);
    }
    for (int i = 0; i < ty_model_n_outputs(s->m); i++)
        if (d->values.outputs[i] != TY_NONE)
            ty_graph_add_output(d->g, ty_model_output(s->m, i)->name, d->values.outputs[i], TY_TAPE_EVAL);
    for (int i = 0; i < d->values.n_updates; i++) {
        snprintf(name, sizeof name, "\x01update %d", i);
        ty_graph_add_output(d->g, name, d->values.updates[i].value, TY_TAPE_LAST);
    }
    return ty_graph_failed(d->g, err) ? -1 : 0;
}

/* ---- faults ---- */

static int summary_faults(summarizer *s)
{
    ty_error *faults = TY_NEW_ARRAY(s->a, ty_error, TY_SUMMARY_MAX_FAULTS);
    summary_draft d;
    ty_model_binding b;
    if (summary_begin(s, &d, s->out->batch, &b, &faults[0]) < 0)
        s->out->n_faults_all = 1;
    else
        s->out->n_faults_all = ty_model_faults(s->m, d.g, &b, faults, TY_SUMMARY_MAX_FAULTS);
    ty_graph_free(d.g);
    s->out->fault = faults;
    s->out->n_faults = s->out->n_faults_all < TY_SUMMARY_MAX_FAULTS ? s->out->n_faults_all : TY_SUMMARY_MAX_FAULTS;
    return s->out->n_faults_all;
}

static void summary_one_fault(summarizer *s, const ty_error *fault)
{
    s->out->fault = ty_arena_copy(s->a, fault, sizeof *fault);
    s->out->n_faults = s->out->n_faults_all = 1;
}

/* Which float outputs have no gradient, each tried alone. Returns how many have one. */
static int summary_try_outputs(summarizer *s, bool *skip)
{
    int n = ty_model_n_outputs(s->m), good = 0;
    const char **names = TY_NEW_ARRAY(s->a, const char *, n + 1);
    bool *others = TY_NEW_ARRAY(s->a, bool, n + 1);
    for (int i = 0; i < n; i++) {
        summary_draft d;
        ty_error ignored;
        memset(others, 1, sizeof *others * (size_t)n);
        others[i] = false;
        bool is_good =
            summary_draft_forward(s, &d, s->out->batch, &ignored) == 0 && summary_is_float(d.g, d.values.outputs[i]);
        skip[i] = is_good && summary_gradient(s, &d, others, &ignored) < 0;
        good += is_good && !skip[i];
        if (skip[i])
            names[s->out->n_untrainable++] = ty_model_output(s->m, i)->name;
        ty_graph_free(d.g);
    }
    s->out->untrainable = names;
    return good;
}

/* The draft with its gradient, of all outputs that have one. Returns 1 if faults were found instead. */
static int summary_draft_step(summarizer *s, summary_draft *d)
{
    ty_error fault = {0};
    bool *skip = TY_NEW_ARRAY(s->a, bool, ty_model_n_outputs(s->m) + 1);
    if (summary_draft_forward(s, d, s->out->batch, &fault) < 0) {
        if (summary_faults(s) == 0)
            summary_one_fault(s, &fault);
        return 1;
    }
    if (summary_gradient(s, d, skip, &fault) == 0)
        return 0;
    if (summary_try_outputs(s, skip) == 0) {
        s->out->n_untrainable = 0;
        summary_one_fault(s, &fault);
        return 1;
    }
    ty_error again = {0};
    ty_graph_free(d->g);
    if (summary_draft_forward(s, d, s->out->batch, &again) == 0 && summary_gradient(s, d, skip, &again) == 0)
        return 0;
    summary_one_fault(s, &again);
    return 1;
}

/* ---- layers ---- */

/* Nodes of one origin. */
typedef struct summary_origin {
    int layer;
    const char *op;
    int64_t n_numbers;
    double forward, backward;
    int n_nodes;
} summary_origin;

typedef struct summary_table {
    ty_names origins, layers;
    summary_origin *origin;
    ty_layer_facts *layer;
    ty_val *last; /* by layer: newest forward value */
    int n_origins, n_layers;
    const char *newest_text; /* the origin of the latest question, as the graph has it: neighbours share theirs */
    int newest;
} summary_table;

/* Exporters write each module with all that it lies in, "blocks/blocks.0/blocks.0.qkv/linear_3": what the next part
 * begins with goes, and the node's own name behind its module. Without a module the node's name is the layer. */
static const char *summary_module(ty_arena *a, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *end = slash ? slash : path + strlen(path), *out = "";
    for (const char *p = path; p < end;) {
        size_t n = strcspn(p, "/");
        const char *next = p + n < end ? p + n + 1 : end;
        bool again = next < end && strncmp(next, p, n) == 0 && (next[n] == '.' || next[n] == '/');
        if (!again)
            out = ty_arena_printf(a, "%s%s%.*s", out, *out ? "/" : "", (int)n, p);
        p = next;
    }
    return out;
}

/* Of C models: "dir/model.c:14 linear h.0.mlp.up" is layer "h.0.mlp.up", op "linear". Without a name the line is the
 * layer. */
static bool summary_split_line(ty_arena *a, const char *origin, const char **layer, const char **op)
{
    const char *space = strchr(origin, ' '), *colon = space;
    while (colon && colon > origin && *colon != ':')
        colon--;
    if (!space || colon <= origin + 2 || strncmp(colon - 2, ".c:", 3) != 0)
        return false;
    size_t n = strcspn(space + 1, " ");
    const char *file = space;
    while (file > origin && file[-1] != '/')
        file--;
    *op = ty_arena_strndup(a, space + 1, n);
    *layer = space[1 + n] ? space + 2 + n : ty_arena_strndup(a, file, (size_t)(space - file));
    return true;
}

/* Of Keras models: "tower/look (Conv2D)" is layer "tower/look", op "Conv2D". */
static bool summary_split_layer(ty_arena *a, const char *origin, const char **layer, const char **op)
{
    const char *open = strrchr(origin, '(');
    size_t n = strlen(origin);
    if (!open || open < origin + 2 || open[-1] != ' ' || origin[n - 1] != ')' || strchr(open, ' '))
        return false;
    *layer = ty_arena_strndup(a, origin, (size_t)(open - 1 - origin));
    *op = ty_arena_strndup(a, open + 1, (size_t)(origin + n - 1 - (open + 1)));
    return true;
}

/* "blocks.0/attn (MatMul #17)" is layer "blocks.0", op "MatMul". Without a path the whole text is the layer. */
static void summary_split(ty_arena *a, const char *origin, const char **layer, const char **op)
{
    const char *open = strrchr(origin, '('), *hash = open ? strstr(open, " #") : NULL;
    if (!hash && summary_split_layer(a, origin, layer, op))
        return;
    if (!hash && summary_split_line(a, origin, layer, op))
        return;
    *op = hash ? ty_arena_strndup(a, open + 1, (size_t)(hash - open - 1)) : "";
    bool has_path = hash && open - origin > 1;
    *layer = has_path ? summary_module(a, ty_arena_strndup(a, origin, (size_t)(open - origin - 1))) : origin;
}

const char *ty_layer_of_origin(ty_arena *a, const char *origin)
{
    const char *layer, *op;
    summary_split(a, origin, &layer, &op);
    return layer;
}

static const char *summary_layer_of(const char *origin)
{
    size_t n = strlen(TY_ORIGIN_GRADIENT);
    while (strncmp(origin, TY_ORIGIN_GRADIENT, n) == 0)
        origin += n;
    return origin;
}

/* The row of an origin, made when `may_add`; -1 if there is none. */
static int summary_find(const summarizer *s, summary_table *t, const char *origin, bool may_add)
{
    if (origin == t->newest_text)
        return t->newest;
    const char *text = summary_layer_of(origin), *layer, *op;
    int at = text[0] ? ty_names_find(&t->origins, text) : -1;
    if (at < 0 && text[0] && may_add) {
        text = ty_arena_strdup(s->a, text); /* the graph will be gone */
        summary_split(s->a, text, &layer, &op);
        int row = ty_names_find(&t->layers, layer);
        if (row < 0) {
            row = t->n_layers++;
            t->layer[row] = (ty_layer_facts){.name = layer, .op = op};
            t->last[row] = TY_NONE;
            ty_names_put(&t->layers, layer, row);
        }
        at = t->n_origins++;
        t->origin[at] = (summary_origin){.layer = row, .op = op};
        ty_names_put(&t->origins, text, at);
    }
    t->newest_text = origin;
    return t->newest = at;
}

static void summary_begin_table(const summarizer *s, summary_table *t, uint32_t n)
{
    *t = (summary_table){.newest = -1};
    ty_names_init(&t->origins, s->a);
    ty_names_init(&t->layers, s->a);
    t->origin = TY_NEW_ARRAY(s->a, summary_origin, n + 1);
    t->layer = TY_NEW_ARRAY(s->a, ty_layer_facts, n + 1);
    t->last = TY_NEW_ARRAY(s->a, ty_val, n + 1);
}

/* The weight whose value a node's input is, or -1. */
static int summary_weight_of(const ty_graph *g, const int *weight_of_input, ty_val v)
{
    if (v == TY_NONE || ty_graph_op(g, ty_val_node(v)) != TY_OP_INPUT)
        return -1;
    return weight_of_input[ty_graph_attr(g, ty_val_node(v))->index];
}

/* Layers in the order of the file, their shapes, and the weights that each is the first to read. */
static void summary_forward(const summarizer *s, const summary_draft *d, const uint8_t *live, summary_table *t)
{
    const ty_graph *g = d->g;
    int n_weights = ty_model_n_weights(s->m);
    int *weight_of_input = TY_NEW_ARRAY(s->a, int, ty_graph_n_inputs(g) + 1);
    bool *read = TY_NEW_ARRAY(s->a, bool, n_weights + 1);
    memset(weight_of_input, -1, sizeof *weight_of_input * (size_t)ty_graph_n_inputs(g));
    for (int i = 0; i < n_weights; i++)
        if (d->leaf[i] != TY_NONE)
            weight_of_input[ty_graph_attr(g, ty_val_node(d->leaf[i]))->index] = i;
    for (uint32_t id = 0; id < d->n_forward; id++) {
        ty_op op = ty_graph_op(g, id);
        int at = live[id] && op != TY_OP_INPUT && op != TY_OP_CONST
                     ? summary_find(s, t, ty_graph_origin_of(g, id), true)
                     : -1;
        if (at < 0)
            continue;
        t->last[t->origin[at].layer] = ty_val_make(id, 0);
        t->origin[at].n_nodes++;
        for (uint32_t k = 0; k < ty_graph_node(g, id)->n_in; k++) {
            int w = summary_weight_of(g, weight_of_input, ty_graph_in(g, id, (int)k));
            if (w < 0 || read[w] || ty_model_weight_is_running(s->m, w))
                continue;
            read[w] = true;
            t->origin[at].n_numbers += ty_type_elems(ty_graph_type(g, d->leaf[w]));
        }
    }
}

/* What the lowered graph computes, by layer and kind of work; per sample. */
static void summary_arithmetic(const summarizer *s, const ty_graph *lowered, const uint8_t *live, summary_table *t)
{
    double share = 1 / (double)s->out->batch;
    for (uint32_t id = 0; id < ty_graph_n_nodes(lowered); id++) {
        double flop = live[id] ? share * ty_node_flop(lowered, id) : 0;
        if (flop == 0)
            continue;
        const char *origin = ty_graph_origin_of(lowered, id);
        bool backward = strncmp(origin, TY_ORIGIN_GRADIENT, strlen(TY_ORIGIN_GRADIENT)) == 0;
        int at = summary_find(s, t, origin, false);
        if (at < 0)
            continue; /* of the sum that stands for the loss */
        (backward ? s->out->backward_flop : s->out->forward_flop)[ty_op_work(ty_graph_op(lowered, id))] += flop;
        *(backward ? &t->origin[at].backward : &t->origin[at].forward) += flop;
    }
}

/* "f32[N,64,2N]": other is the same value with a batch of one more. */
static const char *summary_shape(const summarizer *s, const ty_type *type, const ty_type *other)
{
    const char *text = ty_arena_printf(s->a, "%s[", ty_dtype_text((ty_dtype)type->dtype));
    for (int i = 0; i < type->rank; i++) {
        int64_t slope = other ? other->dim[i] - type->dim[i] : 0, rest = type->dim[i] - slope * s->out->batch;
        const char *comma = i ? "," : "";
        if (slope == 0)
            text = ty_arena_printf(s->a, "%s%s%lld", text, comma, (long long)type->dim[i]);
        else if (rest != 0)
            text = ty_arena_printf(s->a, "%s%s%lldN%+lld", text, comma, (long long)slope, (long long)rest);
        else if (slope == 1)
            text = ty_arena_printf(s->a, "%s%sN", text, comma);
        else
            text = ty_arena_printf(s->a, "%s%s%lldN", text, comma, (long long)slope);
    }
    return ty_arena_printf(s->a, "%s]", text);
}

/* The newest value of each layer in another draft of the same model; TY_NONE where there is none. */
static ty_val *summary_last(const summarizer *s, const summary_draft *d, summary_table *t)
{
    const ty_graph *g = d->g;
    ty_val *last = TY_NEW_ARRAY(s->a, ty_val, t->n_layers + 1);
    uint8_t *live = TY_NEW_ARRAY(s->a, uint8_t, ty_graph_n_nodes(g) + 1);
    for (int i = 0; i < t->n_layers; i++)
        last[i] = TY_NONE;
    ty_graph_mark_live(g, TY_TAPE_EVAL, live);
    t->newest_text = NULL;
    for (uint32_t id = 0; id < ty_graph_n_nodes(g); id++) {
        ty_op op = ty_graph_op(g, id);
        int at = live[id] && op != TY_OP_INPUT && op != TY_OP_CONST
                     ? summary_find(s, t, ty_graph_origin_of(g, id), false)
                     : -1;
        if (at >= 0)
            last[t->origin[at].layer] = ty_val_make(id, 0);
    }
    return last;
}

/* Shapes of the layers' results, held against those with a batch of one more. */
static void summary_shapes(summarizer *s, const summary_draft *d, summary_table *t)
{
    summary_draft more;
    ty_error ignored;
    int n_assumed = s->out->n_assumed;
    bool same = summary_draft_forward(s, &more, s->out->batch + 1, &ignored) == 0;
    for (int i = 0; same && i < ty_model_n_outputs(s->m); i++)
        if (more.values.outputs[i] != TY_NONE)
            ty_graph_add_output(more.g, ty_model_output(s->m, i)->name, more.values.outputs[i], TY_TAPE_EVAL);
    const ty_val *last = same ? summary_last(s, &more, t) : NULL;
    s->out->n_assumed = n_assumed;
    for (int i = 0; i < t->n_layers; i++) {
        const ty_type *type = ty_graph_type(d->g, t->last[i]);
        const ty_type *other = last && last[i] != TY_NONE ? ty_graph_type(more.g, last[i]) : NULL;
        t->layer[i].shape = summary_shape(s, type, other && other->rank == type->rank ? other : NULL);
    }
    ty_graph_free(more.g);
}

/* A layer is called after its node with the most arithmetic, then the most weights, then the last one. */
static void summary_layers(summarizer *s, summary_table *t)
{
    const summary_origin **main = TY_NEW_ARRAY(s->a, const summary_origin *, t->n_layers + 1);
    for (int i = 0; i < t->n_origins; i++) {
        const summary_origin *o = &t->origin[i], *m = main[o->layer];
        ty_layer_facts *layer = &t->layer[o->layer];
        layer->n_nodes += o->n_nodes;
        layer->n_numbers += o->n_numbers;
        layer->forward_flop += o->forward;
        layer->backward_flop += o->backward;
        if (!m || o->forward > m->forward || (o->forward == m->forward && o->n_numbers >= m->n_numbers))
            main[o->layer] = o;
    }
    for (int i = 0; i < t->n_layers; i++) {
        t->layer[i].op = main[i]->op;
        s->out->n_trainable += t->layer[i].n_numbers;
    }
    s->out->layer = t->layer;
    s->out->n_layers = t->n_layers;
}

static void summary_weights(summarizer *s)
{
    for (int i = 0; i < ty_model_n_weights(s->m); i++) {
        const ty_model_value *w = ty_model_weight(s->m, i);
        int64_t elems = ty_dims_elems_checked(w->rank, w->dim, 1);
        if (elems <= 0 || w->dtype >= TY_N_DTYPES)
            continue;
        s->out->weight_bytes += (size_t)elems * ty_dtype_bytes(w->dtype);
        s->out->n_numbers += ty_dtype_is_float(w->dtype) ? elems : 0;
    }
}

static int summary_count(summarizer *s, const summary_draft *d, ty_error *err)
{
    summary_table t;
    ty_graph *lowered;
    uint32_t n = ty_graph_n_nodes(d->g);
    uint8_t *live = TY_NEW_ARRAY(s->a, uint8_t, n + 1);
    ty_graph_mark_live(d->g, TY_TAPE_EVAL, live);
    summary_begin_table(s, &t, n);
    summary_forward(s, d, live, &t);
    if (ty_pass_lower(d->g, &lowered, err) < 0)
        return -1;
    uint8_t *needed = TY_NEW_ARRAY(s->a, uint8_t, ty_graph_n_nodes(lowered) + 1);
    ty_graph_mark_live(lowered, TY_TAPE_EVAL | TY_TAPE_LAST, needed);
    t.newest_text = NULL;
    summary_arithmetic(s, lowered, needed, &t);
    ty_graph_free(lowered);
    summary_shapes(s, d, &t);
    summary_layers(s, &t);
    s->out->found = d->values.found;
    return 0;
}

/* If no dim is free the file's own batch counts. */
static int64_t summary_batch(const ty_model *m, const ty_summary_options *opt)
{
    bool free_batch = false;
    int64_t first = 1;
    for (int i = 0; i < ty_model_n_inputs(m); i++) {
        const ty_model_value *v = ty_model_input(m, i);
        for (int k = 0; k < v->rank; k++)
            free_batch |= v->dim[k] < 0 && summary_is_batch(m, v, k);
        first = i == 0 && v->rank > 0 && v->dim[0] > 0 ? v->dim[0] : first;
    }
    return !free_batch ? first : opt->batch > 0 ? opt->batch : SUMMARY_BATCH;
}

int ty_model_summarize(const ty_model *m, const ty_summary_options *opt, ty_arena *a, ty_model_summary *out,
                       ty_error *err)
{
    summarizer s = {m, opt, a, out};
    summary_draft d = {0};
    *out = (ty_model_summary){.batch = summary_batch(m, opt)};
    summary_weights(&s);
    int rc = summary_draft_step(&s, &d) ? 0 : summary_count(&s, &d, err);
    if (d.g)
        ty_graph_free(d.g);
    return rc;
}
