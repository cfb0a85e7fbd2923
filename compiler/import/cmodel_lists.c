/* cmodel_lists.c - see cmodel_lists.h. */
#include "compiler/import/cmodel_lists.h"

#include <stdlib.h>
#include <string.h>

void cmodel_rehearse(const cmodel_source *s, cmodel_net *net, ty_arena *a, ty_model_mode mode)
{
    ty_graph *g = ty_graph_new();
    net->seed = net->step = mode == TY_MODEL_TRAIN ? ty_b_scalar(g, TY_I64, 0) : TY_NONE;
    net->free_dim = mode == TY_MODEL_TRAIN ? s->free_train : s->free_eval;
    net->g = g;
    net->arena = a;
    net->mode = mode;
    s->build(s->ctx, net);
    ty_graph_free(g);
}

/* ---- listing ---------------------------------------------------------------------------------------------------- */

static ty_model_value list_value(const cmodel_value *v)
{
    ty_model_value out = {.name = v->name, .dtype = (ty_dtype)v->type.dtype, .rank = v->type.rank};
    for (int i = 0; i < v->type.rank; i++) {
        out.dim[i] = v->dim_name[i] ? -1 : v->type.dim[i];
        out.dim_name[i] = v->dim_name[i];
    }
    return out;
}

/* The free dimension that was bound to these two numbers while listing; NULL: none was, as where dimensions are joined.
 */
static const char *list_free(const cmodel_source *s, const cmodel_net *net, int64_t train, int64_t eval)
{
    for (int i = 0; i < net->n_free; i++)
        if (train == s->free_train + i && eval == s->free_eval + i)
            return net->free_name[i];
    return net->n_free == 1 ? net->free_name[0] : NULL;
}

static int list_refuse(const cmodel_source *s, const char *what, const char *name, ty_error *err)
{
    ty_error_set(err, TY_E_MODEL_FILE, "%s \"%s\" differs between training and evaluation", what, name);
    ty_error_at(err, "%s", s->path);
    return ty_error_help(err, "declare the same inputs, outputs and weights every time model() is called");
}

static int list_outputs(const cmodel_source *s, const cmodel_net *train, const cmodel_net *eval, ty_cmodel_lists *l,
                        ty_error *err)
{
    for (int i = 0; i < train->output.n; i++) {
        const cmodel_value *a = &train->output.at[i], *b = i < eval->output.n ? &eval->output.at[i] : NULL;
        if (!b || strcmp(a->name, b->name) != 0 || a->type.rank != b->type.rank || a->type.dtype != b->type.dtype)
            return list_refuse(s, "output", a->name, err);
        ty_model_value *out = &l->output[i];
        *out = list_value(a);
        for (int k = 0; k < out->rank; k++)
            if (a->type.dim[k] != b->type.dim[k]) {
                out->dim[k] = -1;
                out->dim_name[k] = list_free(s, train, a->type.dim[k], b->type.dim[k]);
            }
    }
    return eval->output.n > train->output.n ? list_refuse(s, "output", eval->output.at[train->output.n].name, err) : 0;
}

static int list_inputs(const cmodel_source *s, const cmodel_net *train, const cmodel_net *eval, ty_cmodel_lists *l,
                       ty_error *err)
{
    for (int i = 0; i < train->input.n; i++) {
        if (i >= eval->input.n || strcmp(train->input.at[i].name, eval->input.at[i].name) != 0)
            return list_refuse(s, "input", train->input.at[i].name, err);
        l->input[i] = list_value(&train->input.at[i]);
    }
    return eval->input.n > train->input.n ? list_refuse(s, "input", eval->input.at[train->input.n].name, err) : 0;
}

/* Evaluation may use fewer weights than training, not others. */
static int list_weights(const cmodel_source *s, const cmodel_net *train, const cmodel_net *eval, ty_cmodel_lists *l,
                        ty_error *err)
{
    for (int i = 0; i < train->weight.n; i++) {
        const cmodel_value *w = &train->weight.at[i];
        l->weight[i] = list_value(w);
        l->weight[i].trainable_hint = !w->is_buffer;
        l->running[i] = w->update != TY_NONE;
    }
    for (int i = 0; i < eval->weight.n; i++) {
        const cmodel_value *w = &eval->weight.at[i];
        int k = 0;
        while (k < train->weight.n && strcmp(train->weight.at[k].name, w->name) != 0)
            k++;
        if (k == train->weight.n || !ty_type_same(&train->weight.at[k].type, &w->type))
            return list_refuse(s, "weight", w->name, err);
    }
    return 0;
}

static int list_all(const cmodel_source *s, const cmodel_net *train, const cmodel_net *eval, ty_arena *a,
                    ty_cmodel_lists *l, ty_error *err)
{
    *l = (ty_cmodel_lists){.n_inputs = train->input.n,
                           .n_outputs = train->output.n,
                           .n_weights = train->weight.n,
                           .n_calls = train->n_calls};
    l->input = TY_NEW_ARRAY(a, ty_model_value, l->n_inputs);
    l->output = TY_NEW_ARRAY(a, ty_model_value, l->n_outputs);
    l->weight = TY_NEW_ARRAY(a, ty_model_value, l->n_weights);
    l->running = TY_NEW_ARRAY(a, bool, l->n_weights);
    if (list_inputs(s, train, eval, l, err) < 0 || list_outputs(s, train, eval, l, err) < 0)
        return -1;
    return list_weights(s, train, eval, l, err);
}

int cmodel_list_all(const cmodel_source *s, ty_arena *a, cmodel_net *net, ty_cmodel_lists *out, ty_error *err)
{
    cmodel_net *eval = TY_NEW(a, cmodel_net), *both[] = {net, eval};
    *net = (cmodel_net){0};
    for (int i = 0; i < 2; i++) {
        cmodel_rehearse(s, both[i], a, i ? TY_MODEL_EVAL : TY_MODEL_TRAIN);
        if (!both[i]->failed)
            continue;
        *err = both[i]->error;
        return -1;
    }
    return list_all(s, net, eval, a, out, err);
}

/* ---- import ----------------------------------------------------------------------------------------------------- */

static int find_value(const ty_model_value *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i].name, name) == 0)
            return i;
    return -1;
}

static ty_val bind_input(cmodel_net *net, const char *name, const ty_type *declared, const char *const *free_name)
{
    const ty_cmodel_lists *l = net->lists;
    char wants[160], has[160];
    int i = find_value(l->input, l->n_inputs, name);
    if (i < 0 || net->binding->inputs[i] == TY_NONE)
        return cmodel_fail(net, TY_E_GRAPH, "input \"%s\" was not declared when the file was opened", name);
    const ty_type *bound = ty_graph_type(net->g, net->binding->inputs[i]);
    bool fits = bound->rank == declared->rank && bound->dtype == declared->dtype;
    for (int k = 0; fits && k < declared->rank; k++)
        fits = free_name[k] || bound->dim[k] == declared->dim[k];
    if (fits)
        return net->binding->inputs[i];
    return cmodel_fail(net, TY_E_SHAPE, "input \"%s\" is declared %s and given %s", name,
                       ty_type_text(declared, wants, sizeof wants), ty_type_text(bound, has, sizeof has));
}

static ty_val bind_weight(cmodel_net *net, const char *name, const ty_type *type)
{
    const ty_cmodel_lists *l = net->lists;
    char was[160], now[160];
    int i = find_value(l->weight, l->n_weights, name);
    if (i < 0)
        return cmodel_fail(net, TY_E_GRAPH, "weight \"%s\" was not declared when the file was opened", name);
    ty_type listed = ty_type_make(l->weight[i].dtype, l->weight[i].rank, l->weight[i].dim);
    if (!ty_type_same(&listed, type))
        return cmodel_fail(net, TY_E_SHAPE, "weight \"%s\" was %s when the file was opened and is now %s", name,
                           ty_type_text(&listed, was, sizeof was), ty_type_text(type, now, sizeof now));
    ty_val given = net->binding->weights ? net->binding->weights[i] : TY_NONE;
    return given != TY_NONE ? given : ty_b_const(net->g, *type, l->weight[i].data);
}

static int import_values(const cmodel_source *s, const ty_cmodel_lists *l, const cmodel_net *net,
                         ty_model_values *values, ty_error *err)
{
    ty_arena *a = ty_graph_arena(net->g);
    ty_val *outputs = TY_NEW_ARRAY(a, ty_val, l->n_outputs);
    ty_model_update *updates = TY_NEW_ARRAY(a, ty_model_update, net->weight.n);
    *values = (ty_model_values){.outputs = outputs, .updates = updates};
    for (int i = 0; i < net->output.n || i < l->n_outputs; i++) {
        const char *name = i < net->output.n ? net->output.at[i].name : l->output[i].name;
        if (i >= net->output.n || i >= l->n_outputs || strcmp(name, l->output[i].name) != 0)
            return list_refuse(s, "output", name, err);
        outputs[i] = net->output.at[i].val;
    }
    for (int i = 0; i < net->weight.n; i++)
        if (net->weight.at[i].update != TY_NONE)
            updates[values->n_updates++] = (ty_model_update){
                find_value(l->weight, l->n_weights, net->weight.at[i].name), net->weight.at[i].update};
    return 0;
}

int cmodel_import_bound(const cmodel_source *s, const ty_cmodel_lists *lists, ty_graph *g, const ty_model_binding *b,
                        ty_model_values *values, ty_error *err)
{
    cmodel_net *net = calloc(1, sizeof *net);
    if (!net)
        return ty_error_set(err, TY_E_LIMIT, "no memory to import a model");
    net->seed = b->seed;
    net->step = b->step;
    net->binding = b;
    net->lists = lists;
    net->bound_input = bind_input;
    net->bound_weight = bind_weight;
    net->g = g;
    net->arena = ty_graph_arena(g);
    net->mode = b->mode;
    s->build(s->ctx, net);
    int rc = net->failed ? -1 : import_values(s, lists, net, values, err);
    if (net->failed && err)
        *err = net->error;
    free(net);
    return rc;
}
