/* infer.c - the model as it is applied: no loss, no states, all weights constants. See step.h. */
#include "compiler/ir/build.h"
#include "compiler/model.h"
#include "compiler/passes/range.h"
#include "compiler/passes/step.h"

#include <string.h>

static int infer_inputs(const ty_model *m, ty_graph *g, const ty_binding *inputs, int n_inputs, ty_val *bound,
                        ty_error *err)
{
    for (int i = 0; i < ty_model_n_inputs(m); i++) {
        const char *name = ty_model_input(m, i)->name;
        int k = 0;
        while (k < n_inputs && strcmp(inputs[k].name, name) != 0)
            k++;
        if (k == n_inputs)
            return ty_error_set(err, TY_E_CONFIG, "input \"%s\" of the model is bound to nothing", name);
        bound[i] = ty_b_input(g, ty_graph_add_input(g, name, inputs[k].type));
    }
    return ty_graph_failed(g, err) ? -1 : 0;
}

static int infer_graph(const ty_model *m, const ty_binding *inputs, int n_inputs, ty_step *out, ty_error *err)
{
    ty_graph *g = out->g;
    ty_val *bound = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, ty_model_n_inputs(m) + 1);
    if (infer_inputs(m, g, inputs, n_inputs, bound, err) < 0)
        return -1;
    ty_model_values values;
    ty_model_binding b = {.mode = TY_MODEL_EVAL, .inputs = bound};
    b.seed = b.step = ty_b_scalar(g, TY_I64, 0);
    if (ty_model_import(m, g, &b, &values, err) < 0)
        return -1;
    out->found = values.found;
    for (int i = 0; i < ty_model_n_outputs(m); i++)
        ty_graph_add_output(g, ty_model_output(m, i)->name, values.outputs[i], TY_TAPE_EVAL);
    return ty_graph_failed(g, err) ? -1 : 0;
}

static void infer_list_constants(ty_step *s, const ty_model *m)
{
    s->n_weights = ty_model_n_weights(m);
    s->weights = TY_NEW_ARRAY(ty_graph_arena(s->g), ty_step_weight, s->n_weights);
    for (int i = 0; i < s->n_weights; i++) {
        const ty_model_value *w = ty_model_weight(m, i);
        s->weights[i] = (ty_step_weight){.name = w->name, .data = w->data, .state = -1};
        s->weights[i].type = (ty_type){.dtype = (uint8_t)w->dtype, .rank = (uint8_t)w->rank};
        memcpy(s->weights[i].type.dim, w->dim, sizeof w->dim);
    }
}

int ty_step_build_infer(const ty_model *m, const ty_binding *inputs, int n_inputs, ty_step *out, ty_error *err)
{
    *out = (ty_step){.g = ty_graph_new()};
    if (infer_graph(m, inputs, n_inputs, out, err) < 0) {
        ty_step_fini(out);
        return -1;
    }
    infer_list_constants(out, m);
    ty_range_list(out);
    return 0;
}
