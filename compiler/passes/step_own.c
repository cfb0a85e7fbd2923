/* step_own.c - the step of a model that trains itself: gradients, optimizer, schedule and assignments are in the file,
 * as TensorFlow's @tf.function with a tape has them. It is compiled as it is.
 *
 * All variables are states, each of its own: what is a moment and what a counter only the file knows. What the step
 * assigns they become. Evaluation applies the model with the same states, and judges it by the recipe's loss and
 * metrics.
 */
#include "compiler/ir/build.h"
#include "compiler/passes/across.h"
#include "compiler/passes/range.h"
#include "compiler/passes/step.h"
#include "compiler/passes/step_draft.h"
#include "compiler/phases.h"

#include <string.h>

/* Keys of training that would be passed over in silence. */
static int own_check(const ty_train_spec *spec, ty_error *err)
{
    const struct {
        bool given;
        const char *key;
    } keys[] = {
        {spec->accumulate > 1, "accumulate"},
        {ty_across_replicas(spec) > 1, "several replicas"},
        {spec->precision != TY_PRECISION_FLOAT32, "precision"},
        {spec->clip != TY_CLIP_NONE, "clip"},
        {spec->ema_decay > 0, "ema"},
        {spec->n_frozen > 0, "frozen"},
        {spec->lora.rank > 0, "lora"},
        {spec->n_lr_scale > 0, "lr_scale"},
        {spec->sparse_all || spec->n_sparse_rows > 0, "sparse_rows"},
        {spec->train_valid_rows, "remainder: join"},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].given) {
            ty_error_set(err, TY_E_CONFIG, "%s: the model's own training step is compiled as it is", keys[i].key);
            return ty_error_help(err, "leave it out, or leave train_signature out and give loss and optimizer");
        }
    return 0;
}

static ty_type own_type(const ty_model_value *w)
{
    return ty_type_make(w->dtype, w->rank, w->dim);
}

/* A state for every variable; the values are what they hold before the step. */
static void own_states(ty_step_draft *d, ty_val *weights, int *state)
{
    for (int i = 0; i < ty_model_n_weights(d->m); i++) {
        const ty_model_value *w = ty_model_weight(d->m, i);
        ty_segment segment = {w->name, own_type(w), 0};
        ty_state s = {.name = ty_arena_printf(&d->arena, "own.%s", w->name),
                      .type = segment.type,
                      .role = w->trainable_hint ? TY_STATE_PARAM : TY_STATE_BUFFER,
                      .segments = &segment,
                      .n_segments = 1,
                      .init = &w->data};
        state[i] = ty_graph_add_state(d->g, &s);
        ty_graph_origin(d->g, w->name);
        weights[i] = ty_b_state(d->g, state[i]);
    }
    d->step_state = ty_graph_add_counter(d->g, "step", ty_type_scalar(TY_I64), NULL);
    d->seed_state = ty_graph_add_counter(d->g, "seed", ty_type_scalar(TY_I64), &d->spec->seed);
    d->seed = ty_b_state(d->g, d->seed_state);
    d->draw = ty_b_state(d->g, d->step_state);
    ty_graph_add_assign(d->g, d->step_state, ty_b_add_s(d->g, d->draw, 1), TY_TAPE_LAST);
    ty_graph_origin(d->g, "");
}

static int own_import(ty_step_draft *d, const ty_val *weights, ty_error *err)
{
    ty_val *inputs = TY_NEW_ARRAY(&d->arena, ty_val, ty_model_n_inputs(d->m) + 1);
    if (ty_step_bind_inputs(d, inputs, err) < 0)
        return -1;
    ty_model_binding b = {
        .mode = TY_MODEL_TRAIN, .inputs = inputs, .weights = weights, .seed = d->seed, .step = d->draw};
    if (ty_model_import(d->m, d->g, &b, &d->train, err) < 0)
        return -1;
    b.mode = TY_MODEL_EVAL;
    return ty_model_import(d->m, d->g, &b, &d->eval, err);
}

/* New values, and how many numbers of weights they train. */
static int64_t own_assign(ty_step_draft *d, const int *state, bool *assigned)
{
    int64_t n_trained = 0;
    for (int i = 0; i < d->train.n_updates; i++) {
        int w = d->train.updates[i].weight;
        ty_graph_add_assign(d->g, state[w], d->train.updates[i].value, TY_TAPE_LAST);
        assigned[w] = true;
        if (ty_model_weight(d->m, w)->trainable_hint)
            n_trained += ty_type_elems(ty_graph_type(d->g, d->train.updates[i].value));
    }
    return n_trained;
}

/* The loss as f32; the file may say it in another type, or not at all (a training operation of TensorFlow 1). */
static void own_loss(ty_step_draft *d)
{
    ty_val *loss = TY_NEW(&d->arena, ty_val);
    *loss = d->train.loss ? ty_b_cast(d->g, *d->train.loss, TY_F32) : ty_b_scalar(d->g, TY_F32, 0);
    d->own_loss = loss;
}

static void own_list_weights(const ty_step_draft *d, ty_step *out, const int *state, const bool *assigned)
{
    out->n_weights = ty_model_n_weights(d->m);
    out->weights = TY_NEW_ARRAY(ty_graph_arena(d->g), ty_step_weight, out->n_weights);
    for (int i = 0; i < out->n_weights; i++) {
        const ty_model_value *w = ty_model_weight(d->m, i);
        out->weights[i] = (ty_step_weight){.name = w->name,
                                           .type = own_type(w),
                                           .state = state[i],
                                           .data = w->data,
                                           .trained = assigned[i] && w->trainable_hint};
    }
}

static int own_build(ty_step_draft *d, ty_step *out, ty_error *err)
{
    int n = ty_model_n_weights(d->m);
    ty_val *weights = TY_NEW_ARRAY(&d->arena, ty_val, n + 1);
    int *state = TY_NEW_ARRAY(&d->arena, int, n + 1);
    bool *assigned = TY_NEW_ARRAY(&d->arena, bool, n + 1);
    ty_phases_start(&d->phases);
    ty_step_add_inputs(d);
    own_states(d, weights, state);
    if (ty_graph_failed(d->g, err) || own_import(d, weights, err) < 0)
        return -1;
    ty_phases_lap(&d->phases, "import");
    out->found = d->train.found;
    out->n_trained = own_assign(d, state, assigned);
    if (d->train.n_updates == 0) {
        ty_error_set(err, TY_E_CONFIG, "the training signature assigns no variable");
        return ty_error_help(err, "let the exported function apply the optimizer, or leave train_signature out");
    }
    own_loss(d);
    d->train = d->eval; /* terms are of evaluation alone */
    if (ty_step_loss(d, err) < 0 || ty_step_eval(d, err) < 0)
        return -1;
    ty_phases_lap(&d->phases, "evaluation");
    own_list_weights(d, out, state, assigned);
    return ty_graph_failed(d->g, err) ? -1 : 0;
}

int ty_step_build_own(const ty_model *m, const ty_train_spec *spec, ty_step *out, ty_error *err)
{
    *out = (ty_step){0};
    if (own_check(spec, err) < 0)
        return -1;
    ty_step_draft d = {.m = m, .spec = spec, .g = ty_graph_new(), .micro_state = -1};
    ty_arena_init(&d.arena);
    int rc = own_build(&d, out, err);
    out->phases = d.phases;
    out->replicas = 1;
    ty_arena_fini(&d.arena);
    if (rc < 0) {
        ty_graph_free(d.g);
        *out = (ty_step){0};
        return -1;
    }
    out->g = d.g;
    ty_range_list(out);
    return 0;
}
