/* step.c - see step.h.
 *
 * The step is built twice. In the draft every weight that may change is a leaf of its own, so that gradients are asked
 * for values that no simplification can step over. When all is there, and it is known which weights are trained and in
 * which order, the draft is carried over into the graph proper, in which each leaf is a slice of its arena.
 */
#include "compiler/passes/step.h"

#include "base/suggest.h"
#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/model.h"
#include "compiler/passes/clip.h"
#include "compiler/passes/loss.h"
#include "compiler/passes/metric.h"
#include "compiler/passes/optimizer.h"
#include "compiler/passes/parameters.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/penalty.h"
#include "compiler/passes/range.h"
#include "compiler/passes/schedule.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_TRAIN ((uint32_t)(TY_TAPE_MICRO | TY_TAPE_LAST))

typedef struct step_draft {
    const ty_model *m;
    const ty_train_spec *spec;
    ty_graph *g;
    ty_arena arena; /* working memory, of the build */
    ty_param_set set;
    ty_val *input; /* spec->inputs */
    ty_val rows;   /* bool[batch] by "valid", or TY_NONE */
    int n_inputs;  /* of the step; those behind are leaves */
    int *leaf;     /* by input number - n_inputs: number of the weight (+ n_params: of its average), or STEP_LEAF_... */
    int n_leaves;
    ty_val seed, draw; /* leaves for random numbers */
    ty_model_values train, eval;
    ty_loss_sums *train_term, *eval_term; /* one a term */
    ty_val loss;                          /* of one micro-batch */
    ty_val grad[TY_PARAM_MAX_GROUPS];     /* flat, of loss / accumulate */
    int ema_state[TY_PARAM_MAX_GROUPS];
    int step_state, seed_state, micro_state; /* the latter two -1 without random numbers */
} step_draft;

enum { STEP_LEAF_SEED = -1, STEP_LEAF_DRAW = -2 };

/* Tapes that train: MICRO exists only with micro-batches. */
static uint32_t step_train_tapes(const step_draft *d)
{
    return d->spec->accumulate > 1 ? STEP_TRAIN : (uint32_t)TY_TAPE_LAST;
}

/* ---- inputs and leaves ----------------------------------------------------------------------------------------------
 */

static int step_find_input(const step_draft *d, const char *name)
{
    for (int i = 0; i < d->spec->n_inputs; i++)
        if (strcmp(d->spec->inputs[i].name, name) == 0)
            return i;
    return -1;
}

static void step_add_inputs(step_draft *d)
{
    const ty_train_spec *spec = d->spec;
    d->input = TY_NEW_ARRAY(&d->arena, ty_val, spec->n_inputs + 1);
    for (int i = 0; i < spec->n_inputs; i++)
        d->input[i] = ty_b_input(d->g, ty_graph_add_input(d->g, spec->inputs[i].name, spec->inputs[i].type));
    d->n_inputs = spec->n_inputs;
    d->rows = TY_NONE;
    if (!spec->eval_valid_rows || spec->n_inputs == 0)
        return;
    ty_val valid = ty_b_input(d->g, ty_graph_add_input(d->g, "valid", ty_type_scalar(TY_I64)));
    int64_t batch = spec->inputs[0].type.dim[0];
    ty_val number = ty_b_iota(d->g, ty_type_make(TY_I64, 1, &batch), 0);
    d->rows = ty_b_lt(d->g, number, ty_b_broadcast(d->g, valid, 1, &batch));
    d->n_inputs++;
}

static ty_val step_add_leaf(step_draft *d, int what, ty_type type)
{
    char name[32]; /* no name of a model starts so */
    snprintf(name, sizeof name, "\x01leaf %d", d->n_leaves);
    d->leaf[d->n_leaves++] = what;
    return ty_b_input(d->g, ty_graph_add_input(d->g, name, type));
}

static void step_add_leaves(step_draft *d)
{
    d->leaf = TY_NEW_ARRAY(&d->arena, int, 2 * d->set.n_params + 2);
    d->seed = step_add_leaf(d, STEP_LEAF_SEED, ty_type_scalar(TY_I64));
    d->draw = step_add_leaf(d, STEP_LEAF_DRAW, ty_type_scalar(TY_I64));
    for (int i = 0; i < d->set.n_params; i++) {
        ty_param *p = &d->set.param[i];
        if (p->same_as != i) {
            p->leaf = d->set.param[p->same_as].leaf;
            p->eval_leaf = d->set.param[p->same_as].eval_leaf;
        } else if (p->role != TY_PARAM_CONSTANT) {
            p->leaf = step_add_leaf(d, i, p->type);
            bool averaged = d->spec->use_ema && p->role == TY_PARAM_CANDIDATE;
            p->eval_leaf = averaged ? step_add_leaf(d, i + d->set.n_params, p->type) : p->leaf;
        }
    }
}

/* ---- model ----------------------------------------------------------------------------------------------------------
 */

static int step_bind_inputs(const step_draft *d, ty_val *bound, ty_error *err)
{
    for (int i = 0; i < ty_model_n_inputs(d->m); i++) {
        const ty_model_value *v = ty_model_input(d->m, i);
        int k = step_find_input(d, v->name);
        if (k < 0) {
            ty_error_set(err, TY_E_CONFIG, "input \"%s\" of the model is bound to nothing", v->name);
            return ty_error_help(err, "give it a field of the data");
        }
        bound[i] = d->input[k];
        if (v->dtype < TY_N_DTYPES && !ty_dtype_is_float(v->dtype) == !ty_dtype_is_float(ty_b_dtype(d->g, bound[i])))
            bound[i] = ty_b_cast(d->g, bound[i], v->dtype);
    }
    return 0;
}

static int step_import(step_draft *d, ty_error *err)
{
    ty_val *inputs = TY_NEW_ARRAY(&d->arena, ty_val, ty_model_n_inputs(d->m) + 1);
    ty_val *weights = TY_NEW_ARRAY(&d->arena, ty_val, d->set.n_params + 1);
    if (step_bind_inputs(d, inputs, err) < 0)
        return -1;
    for (int i = 0; i < d->set.n_params; i++)
        weights[i] = d->set.param[i].leaf;
    ty_model_binding b = {.mode = d->spec->batch_norm_statistics ? TY_MODEL_TRAIN : TY_MODEL_EVAL,
                          .inputs = inputs,
                          .weights = weights,
                          .seed = d->seed,
                          .step = d->draw};
    if (ty_model_import(d->m, d->g, &b, &d->train, err) < 0)
        return -1;
    b.mode = TY_MODEL_EVAL;
    for (int i = 0; i < d->set.n_params; i++)
        weights[i] = d->set.param[i].eval_leaf;
    return ty_model_import(d->m, d->g, &b, &d->eval, err);
}

/* ---- loss -----------------------------------------------------------------------------------------------------------
 */

static int step_no_output(const step_draft *d, const char *name, ty_error *err)
{
    ty_suggestion near = {.word = name};
    for (int i = 0; i < ty_model_n_outputs(d->m); i++)
        ty_suggest_offer(&near, ty_model_output(d->m, i)->name);
    ty_error_set(err, TY_E_CONFIG, "the model has no output \"%s\"", name);
    const char *known = near.best ? near.best : ty_model_n_outputs(d->m) ? ty_model_output(d->m, 0)->name : NULL;
    return known ? ty_error_help(err, "the model has an output \"%s\"", known) : -1;
}

/* An input of the step that the loss or a metric names; NULL names none. */
static int step_operand(const step_draft *d, const char *name, ty_val *out, ty_error *err)
{
    *out = TY_NONE;
    if (!name)
        return 0;
    int i = step_find_input(d, name);
    if (i < 0)
        return ty_error_set(err, TY_E_CONFIG, "there is no input \"%s\"", name);
    *out = d->input[i];
    return 0;
}

static int step_operands(const step_draft *d, const char *output, const char *target, const char *weight,
                         ty_loss_operands *train, ty_loss_operands *eval, ty_error *err)
{
    int i = ty_model_find_output(d->m, output);
    if (i < 0)
        return step_no_output(d, output, err);
    *train = (ty_loss_operands){.output = d->train.outputs[i], .rows = TY_NONE};
    if (step_operand(d, target, &train->target, err) < 0 || step_operand(d, weight, &train->sample_weight, err) < 0)
        return -1;
    *eval = *train;
    eval->output = d->eval.outputs[i];
    eval->rows = d->rows;
    return 0;
}

/* A term's operands beside output, target and weights, which are the same in training and evaluation but for `other`.
 */
static int step_term_extras(step_draft *d, const ty_loss_term *t, ty_loss_operands *train, ty_loss_operands *eval,
                            ty_error *err)
{
    if (step_operand(d, t->input_lengths, &train->input_lengths, err) < 0 ||
        step_operand(d, t->target_lengths, &train->target_lengths, err) < 0)
        return -1;
    eval->input_lengths = train->input_lengths;
    eval->target_lengths = train->target_lengths;
    train->other = eval->other = TY_NONE;
    if (!t->other)
        return 0;
    int i = ty_model_find_output(d->m, t->other);
    if (i < 0)
        return step_no_output(d, t->other, err);
    train->other = d->train.outputs[i];
    eval->other = d->eval.outputs[i];
    return 0;
}

static int step_term(step_draft *d, const ty_loss_term *t, ty_loss_sums *train_sums, ty_loss_sums *eval_sums,
                     ty_error *err)
{
    ty_loss_operands train, eval;
    if (ty_loss_is_penalty(t->kind)) {
        if (ty_penalty_operands(&d->set, t, &d->arena, &train, err) < 0)
            return ty_error_wrap(err, "loss %s", ty_loss_text(t->kind));
        eval = train;
    } else if (step_operands(d, t->output, t->target, t->sample_weight, &train, &eval, err) < 0 ||
               step_term_extras(d, t, &train, &eval, err) < 0) {
        return ty_error_wrap(err, "loss %s", ty_loss_text(t->kind));
    }
    return ty_loss_term_build(d->g, t, &train, train_sums, err) < 0 ||
                   ty_loss_term_build(d->g, t, &eval, eval_sums, err) < 0
               ? -1
               : 0;
}

static ty_val step_quotient(ty_graph *g, const ty_loss_term *t, const ty_loss_sums *s)
{
    ty_val v = ty_b_div(g, s->sum, s->count);
    return t->weight == 1 ? v : ty_b_mul_s(g, v, t->weight);
}

static ty_val step_total(const step_draft *d, const ty_loss_sums *terms)
{
    ty_val sum = TY_NONE;
    for (int i = 0; i < d->spec->n_loss; i++) {
        ty_val v = step_quotient(d->g, &d->spec->loss[i], &terms[i]);
        sum = i == 0 ? v : ty_b_add(d->g, sum, v);
    }
    return sum;
}

static int step_loss(step_draft *d, ty_error *err)
{
    const ty_train_spec *spec = d->spec;
    if (spec->n_loss < 1)
        return ty_error_set(err, TY_E_CONFIG, "loss: expected at least one term, found none");
    d->train_term = TY_NEW_ARRAY(&d->arena, ty_loss_sums, spec->n_loss);
    d->eval_term = TY_NEW_ARRAY(&d->arena, ty_loss_sums, spec->n_loss);
    ty_graph_origin(d->g, "loss");
    for (int i = 0; i < spec->n_loss; i++)
        if (step_term(d, &spec->loss[i], &d->train_term[i], &d->eval_term[i], err) < 0)
            return -1;
    d->loss = step_total(d, d->train_term);
    ty_graph_add_output(d->g, "loss", d->loss, step_train_tapes(d));
    ty_graph_origin(d->g, "");
    return ty_graph_failed(d->g, err) ? -1 : 0;
}

/* ---- gradient -------------------------------------------------------------------------------------------------------
 */

static ty_val step_flat(step_draft *d, const ty_param_group *group)
{
    ty_val *part = TY_NEW_ARRAY(&d->arena, ty_val, group->n_members);
    for (int i = 0; i < group->n_members; i++)
        part[i] = ty_b_flatten(d->g, d->set.param[group->member[i]].grad);
    return group->n_members == 1 ? part[0] : ty_b_concat(d->g, part, group->n_members, 0);
}

static int step_gradient(step_draft *d, ty_error *err)
{
    ty_val *wrt = TY_NEW_ARRAY(&d->arena, ty_val, d->set.n_params + 1);
    ty_val *grad = TY_NEW_ARRAY(&d->arena, ty_val, d->set.n_params + 1);
    int n = 0;
    for (int k = 0; k < d->set.n_groups; k++)
        for (int i = 0; i < d->set.group[k].n_members; i++)
            wrt[n++] = d->set.param[d->set.group[k].member[i]].leaf;
    ty_val share = d->spec->accumulate > 1 ? ty_b_mul_s(d->g, d->loss, 1.0 / d->spec->accumulate) : d->loss;
    if (ty_pass_autodiff(d->g, share, wrt, n, grad, err) < 0)
        return -1;
    ty_graph_origin(d->g, "gradient");
    for (int k = 0, at = 0; k < d->set.n_groups; k++) {
        for (int i = 0; i < d->set.group[k].n_members; i++)
            d->set.param[d->set.group[k].member[i]].grad = grad[at++];
        d->grad[k] = step_flat(d, &d->set.group[k]);
    }
    ty_graph_origin(d->g, "");
    return ty_graph_failed(d->g, err) ? -1 : 0;
}

/* ---- states and update ----------------------------------------------------------------------------------------------
 */

static int step_add_scalar(step_draft *d, const char *name, ty_dtype dtype, const void *init)
{
    ty_segment segment = {name, ty_type_scalar(dtype), 0};
    ty_state state = {.name = name,
                      .type = segment.type,
                      .role = TY_STATE_COUNTER,
                      .segments = &segment,
                      .n_segments = 1,
                      .init = init ? &init : NULL};
    return ty_graph_add_state(d->g, &state);
}

/* What earlier micro-batches have gathered comes in; LAST leaves zeros for the next step. */
static void step_accumulate(step_draft *d)
{
    for (int k = 0; k < d->set.n_groups && d->spec->accumulate > 1; k++) {
        int state = ty_params_add_state(&d->set, &d->set.group[k], d->g, "grad", TY_STATE_GRAD, false);
        d->grad[k] = ty_b_add(d->g, ty_b_state(d->g, state), d->grad[k]);
        ty_graph_add_assign(d->g, state, d->grad[k], TY_TAPE_MICRO);
        ty_graph_add_assign(d->g, state, ty_b_full_like(d->g, d->grad[k], 0), TY_TAPE_LAST);
    }
}

/* The average of the weights: after the first step the weights themselves, as in PyTorch's AveragedModel and Keras. */
static void step_average(step_draft *d, int k, const ty_opt_clock *clock, ty_val p)
{
    if (d->spec->ema_decay == 0)
        return;
    ty_graph *g = d->g;
    int state = d->ema_state[k] = ty_params_add_state(&d->set, &d->set.group[k], g, "ema", TY_STATE_MOMENT, true);
    ty_val first = ty_b_le(g, clock->k, ty_b_scalar(g, TY_F64, 1));
    ty_val share = ty_b_select(g, first, ty_b_scalar(g, TY_F64, 1), ty_b_scalar(g, TY_F64, 1 - d->spec->ema_decay));
    ty_val old = ty_b_state(g, state), step = ty_b_mul(g, ty_b_sub(g, p, old), ty_b_cast(g, share, TY_F32));
    ty_graph_add_assign(g, state, ty_b_select(g, first, p, ty_b_add(g, old, step)), TY_TAPE_LAST);
}

static ty_segments step_segments(const ty_param_group *group)
{
    return (ty_segments){group->n_members, group->member_elems};
}

static void step_update_group(step_draft *d, int k, const ty_opt_clock *common)
{
    ty_param_group *group = &d->set.group[k];
    ty_opt_group what = {group->decay, step_segments(group)};
    ty_opt_clock clock = *common;
    if (group->lr_factor != 1)
        clock.lr = ty_b_mul_s(d->g, clock.lr, group->lr_factor);
    const ty_optimizer *o = &d->spec->optimizer;
    ty_opt_moments moments = ty_optimizer_moments(o);
    ty_val moment[TY_OPT_MAX_MOMENTS], next[TY_OPT_MAX_MOMENTS];
    int state[TY_OPT_MAX_MOMENTS];
    for (int i = 0; i < moments.n; i++) {
        const char *prefix = ty_arena_printf(&d->arena, "%s.%s", ty_optimizer_text(o->kind), moments.name[i]);
        state[i] = ty_params_add_state(&d->set, group, d->g, prefix, TY_STATE_MOMENT, false);
        moment[i] = ty_b_state(d->g, state[i]);
    }
    ty_val p = ty_b_state(d->g, group->state);
    p = ty_optimizer_update(d->g, o, &clock, &what, p, d->grad[k], moment, next);
    ty_graph_add_assign(d->g, group->state, p, TY_TAPE_LAST);
    step_average(d, k, &clock, p);
    for (int i = 0; i < moments.n; i++)
        ty_graph_add_assign(d->g, state[i], next[i], TY_TAPE_LAST);
}

/* The factor that the plateau lowers: the first number of its state. */
static ty_val step_plateau(step_draft *d)
{
    static const double start[TY_PLATEAU_NUMBERS] = {[TY_PLATEAU_FACTOR] = 1};
    static const void *init = start;
    int64_t n = TY_PLATEAU_NUMBERS;
    if (d->spec->schedule.kind != TY_SCHED_PLATEAU)
        return TY_NONE;
    ty_segment segment = {"plateau", ty_type_make(TY_F64, 1, &n), 0};
    ty_state state = {.name = "plateau",
                      .type = segment.type,
                      .role = TY_STATE_COUNTER,
                      .segments = &segment,
                      .n_segments = 1,
                      .init = &init};
    ty_val all = ty_b_state(d->g, ty_graph_add_state(d->g, &state));
    return ty_b_reshape(d->g, ty_b_slice_axis(d->g, all, 0, TY_PLATEAU_FACTOR, TY_PLATEAU_FACTOR + 1), 0, NULL);
}

static ty_opt_clock step_clock(step_draft *d)
{
    static const double one = 1;
    ty_val t = ty_b_cast(d->g, ty_b_state(d->g, d->step_state), TY_F64);
    ty_opt_clock clock = {.k = ty_b_add_s(d->g, t, 1), .product = TY_NONE};
    clock.lr = ty_schedule_build(d->g, &d->spec->schedule, d->spec->optimizer.lr, t, step_plateau(d));
    if (ty_optimizer_needs_product(&d->spec->optimizer)) {
        int state = step_add_scalar(d, "nadam.product", TY_F64, &one);
        clock.product = ty_b_state(d->g, state);
        ty_graph_add_assign(d->g, state, ty_optimizer_next_product(d->g, &d->spec->optimizer, &clock), TY_TAPE_LAST);
    }
    return clock;
}

static int step_update(step_draft *d, ty_error *err)
{
    ty_graph_origin(d->g, "update");
    for (int k = 0; k < d->set.n_groups; k++)
        d->set.group[k].state = ty_params_add_state(&d->set, &d->set.group[k], d->g, "param", TY_STATE_PARAM, true);
    d->step_state = step_add_scalar(d, "step", TY_I64, NULL);
    ty_graph_add_assign(d->g, d->step_state, ty_b_add_s(d->g, ty_b_state(d->g, d->step_state), 1), TY_TAPE_LAST);
    ty_opt_clock clock = step_clock(d);
    step_accumulate(d);
    ty_val norm = ty_clip_norm(d->g, d->grad, d->set.n_groups);
    ty_graph_add_output(d->g, "grad_norm", norm, TY_TAPE_LAST);
    ty_graph_add_output(d->g, "lr", ty_b_cast(d->g, clock.lr, TY_F32), TY_TAPE_LAST);
    ty_segments *segments = TY_NEW_ARRAY(&d->arena, ty_segments, d->set.n_groups);
    for (int k = 0; k < d->set.n_groups; k++)
        segments[k] = step_segments(&d->set.group[k]);
    ty_clip_apply(d->g, d->spec->clip, d->spec->clip_max, norm, d->grad, segments, d->set.n_groups);
    for (int k = 0; k < d->set.n_groups; k++)
        step_update_group(d, k, &clock);
    ty_graph_origin(d->g, "");
    return ty_graph_failed(d->g, err) ? -1 : 0;
}

/* ---- statistics -----------------------------------------------------------------------------------------------------
 */

static int step_buffers(step_draft *d, ty_error *err)
{
    for (int i = 0; i < d->train.n_updates; i++) {
        ty_param *p = &d->set.param[d->train.updates[i].weight];
        if (p->role != TY_PARAM_RUNNING)
            return ty_error_set(err, TY_E_INTERNAL, "weight \"%s\" is updated but no running statistic",
                                p->weight->name);
        ty_segment segment = {p->weight->name, p->type, 0};
        ty_state state = {.name = ty_arena_printf(&d->arena, "buffer.%s", p->weight->name),
                          .type = p->type,
                          .role = TY_STATE_BUFFER,
                          .segments = &segment,
                          .n_segments = 1,
                          .init = &p->weight->data};
        p->state = ty_graph_add_state(d->g, &state);
        ty_graph_add_assign(d->g, p->state, d->train.updates[i].value, step_train_tapes(d));
    }
    return ty_graph_failed(d->g, err) ? -1 : 0;
}

/* ---- evaluation -----------------------------------------------------------------------------------------------------
 */

static ty_val step_count_rows(const step_draft *d)
{
    if (d->rows != TY_NONE)
        return ty_loss_sum(d->g, ty_b_cast(d->g, d->rows, TY_F32), TY_NONE);
    const ty_type *t = &d->spec->inputs[0].type;
    return ty_b_scalar(d->g, TY_F32, t->rank ? (double)t->dim[0] : 1);
}

static void step_eval_loss(step_draft *d)
{
    ty_val sum, count;
    if (d->spec->n_loss == 1) {
        double weight = d->spec->loss[0].weight;
        count = d->eval_term[0].count;
        sum = weight == 1 ? d->eval_term[0].sum : ty_b_mul_s(d->g, d->eval_term[0].sum, weight);
    } else {
        count = step_count_rows(d);
        sum = ty_b_mul(d->g, step_total(d, d->eval_term), count);
    }
    ty_graph_add_output(d->g, "loss.sum", sum, TY_TAPE_EVAL);
    ty_graph_add_output(d->g, "loss.count", count, TY_TAPE_EVAL);
}

static ty_metric_classes step_metric_classes(const step_draft *d, const char *output)
{
    for (int i = 0; i < d->spec->n_loss; i++) {
        const ty_loss_term *t = &d->spec->loss[i];
        bool has_classes =
            t->kind == TY_LOSS_SOFTMAX_CROSS_ENTROPY || t->kind == TY_LOSS_NLL || t->kind == TY_LOSS_MULTI_MARGIN;
        if (has_classes && strcmp(t->output, output) == 0)
            return (ty_metric_classes){t->class_axis, t->ignore_index, t->dense_labels};
    }
    return (ty_metric_classes){-1, -100, false};
}

static int step_metric(step_draft *d, const ty_metric *metric, ty_error *err)
{
    ty_loss_operands train, eval;
    ty_metric_parts parts;
    if (step_operands(d, metric->output, metric->target, NULL, &train, &eval, err) < 0)
        return ty_error_wrap(err, "metric \"%s\"", metric->name);
    ty_metric_classes classes = step_metric_classes(d, metric->output);
    if (ty_metric_build(d->g, metric, &eval, &classes, &parts, err) < 0)
        return -1;
    for (int i = 0; i < parts.n; i++) {
        const char *name = ty_arena_printf(&d->arena, "%s.%s", metric->name, parts.suffix[i]);
        ty_graph_add_output(d->g, name, parts.value[i], TY_TAPE_EVAL);
    }
    return 0;
}

static int step_eval(step_draft *d, ty_error *err)
{
    ty_graph_origin(d->g, "evaluation");
    step_eval_loss(d);
    for (int i = 0; i < d->spec->n_metrics; i++)
        if (step_metric(d, &d->spec->metrics[i], err) < 0)
            return -1;
    for (int i = 0; i < ty_model_n_outputs(d->m); i++)
        ty_graph_add_output(d->g, ty_model_output(d->m, i)->name, d->eval.outputs[i], TY_TAPE_EVAL);
    ty_graph_origin(d->g, "");
    return ty_graph_failed(d->g, err) ? -1 : 0;
}

/* ---- random numbers -------------------------------------------------------------------------------------------------
 */

static bool step_is_live(step_draft *d, ty_val v)
{
    uint8_t *live = TY_NEW_ARRAY(&d->arena, uint8_t, ty_graph_n_nodes(d->g) + 1);
    ty_graph_mark_live(d->g, TY_TAPE_ALL, live);
    return live[ty_val_node(v)];
}

/* Every micro-batch draws anew: its number is step * accumulate + micro. */
static int step_random(step_draft *d, ty_error *err)
{
    d->seed_state = d->micro_state = -1;
    if (ty_graph_failed(d->g, err))
        return -1;
    if (!step_is_live(d, d->seed) && !step_is_live(d, d->draw))
        return 0;
    d->seed_state = step_add_scalar(d, "seed", TY_I64, &d->spec->seed);
    if (d->spec->accumulate > 1) {
        d->micro_state = step_add_scalar(d, "micro", TY_I64, NULL);
        ty_val micro = ty_b_state(d->g, d->micro_state);
        ty_graph_add_assign(d->g, d->micro_state, ty_b_add_s(d->g, micro, 1), TY_TAPE_MICRO);
        ty_graph_add_assign(d->g, d->micro_state, ty_b_scalar(d->g, TY_I64, 0), TY_TAPE_LAST);
    }
    return ty_graph_failed(d->g, err) ? -1 : 0;
}

/* ---- from the draft to the graph ------------------------------------------------------------------------------------
 */

static ty_val step_constant(ty_graph *g, const ty_param *p)
{
    bool aligned = (uintptr_t)p->weight->data % ty_dtype_bytes((ty_dtype)p->type.dtype) == 0;
    return aligned ? ty_b_const(g, p->type, p->weight->data) : ty_b_const_copy(g, p->type, p->weight->data);
}

static ty_val step_slice(ty_graph *g, const ty_param *p, int state)
{
    ty_val flat = ty_b_slice_axis(g, ty_b_state(g, state), 0, p->offset, p->offset + ty_type_elems(&p->type));
    return ty_b_reshape(g, flat, p->type.rank, p->type.dim);
}

static ty_val step_draw_number(const step_draft *d, ty_graph *g)
{
    ty_val step = ty_b_state(g, d->step_state);
    if (d->micro_state < 0)
        return step;
    return ty_b_add(g, ty_b_mul_s(g, step, d->spec->accumulate), ty_b_state(g, d->micro_state));
}

/* The state of the averages of a trained weight's group. */
static int step_ema_state(const step_draft *d, const ty_param *p)
{
    int k = 0;
    while (d->set.group[k].number != p->group)
        k++;
    return d->ema_state[k];
}

static ty_val step_replace_leaf(const step_draft *d, ty_graph *g, int what)
{
    if (what == STEP_LEAF_SEED)
        return ty_b_state(g, d->seed_state);
    if (what == STEP_LEAF_DRAW)
        return step_draw_number(d, g);
    bool averaged = what >= d->set.n_params;
    const ty_param *p = &d->set.param[averaged ? what - d->set.n_params : what];
    if (p->state < 0)
        return step_constant(g, p);
    ty_graph_origin(g, p->weight->name);
    return p->trained ? step_slice(g, p, averaged ? step_ema_state(d, p) : p->state) : ty_b_state(g, p->state);
}

static void step_place_params(step_draft *d)
{
    for (int k = 0; k < d->set.n_groups; k++)
        for (int i = 0; i < d->set.group[k].n_members; i++)
            d->set.param[d->set.group[k].member[i]].state = d->set.group[k].state;
}

static int step_carry_over(step_draft *d, ty_graph **out, ty_error *err)
{
    uint32_t n = ty_graph_n_nodes(d->g);
    uint8_t *live = TY_NEW_ARRAY(&d->arena, uint8_t, n + 1);
    ty_graph_mark_live(d->g, TY_TAPE_ALL, live);
    ty_clone c = {.from = d->g, .to = ty_graph_new(), .map = malloc(4 * sizeof(ty_val) * ((size_t)n + 1))};
    if (!c.map)
        ty_graph_fail(c.to, TY_E_LIMIT, "no memory to copy a graph of %u nodes", n);
    for (size_t i = 0; c.map && i < 4 * (size_t)n; i++)
        c.map[i] = TY_NONE;
    for (int i = 0; i < d->n_inputs; i++)
        ty_graph_add_input(c.to, ty_graph_input(d->g, i)->name, ty_graph_input(d->g, i)->type);
    for (int i = 0; i < ty_graph_n_states(d->g); i++)
        ty_graph_add_state(c.to, ty_graph_state(d->g, i));
    for (uint32_t id = 0; c.map && id < n; id++) {
        int64_t input = ty_graph_op(d->g, id) == TY_OP_INPUT ? ty_graph_attr(d->g, id)->index : -1;
        if (live[id] && input >= d->n_inputs)
            c.map[ty_val_make(id, 0)] = step_replace_leaf(d, c.to, d->leaf[input - d->n_inputs]);
        else if (live[id])
            ty_clone_node(&c, id);
    }
    return ty_clone_finish(&c, out, err);
}

/* ---- results --------------------------------------------------------------------------------------------------------
 */

static void step_list_weights(ty_step *s, const step_draft *d)
{
    const ty_param_set *set = &d->set;
    s->n_weights = set->n_params;
    s->weights = TY_NEW_ARRAY(ty_graph_arena(s->g), ty_step_weight, set->n_params);
    for (int i = 0; i < set->n_params; i++) {
        const ty_param *p = &set->param[i], *at = &set->param[p->same_as];
        s->weights[i] = (ty_step_weight){.name = p->weight->name,
                                         .type = p->type,
                                         .state = d->spec->use_ema && at->trained ? step_ema_state(d, at) : at->state,
                                         .segment = at->segment,
                                         .offset = at->offset,
                                         .data = p->weight->data,
                                         .trained = at->trained};
    }
}

static void step_list_ranges(ty_step *s)
{
    s->n_inputs = ty_graph_n_inputs(s->g);
    s->ranges = TY_NEW_ARRAY(ty_graph_arena(s->g), ty_step_range, s->n_inputs);
    ty_range_find(s->g, s->ranges);
}

static int step_check_spec(const ty_train_spec *spec, ty_error *err)
{
    if (spec->accumulate < 1)
        return ty_error_set(err, TY_E_RANGE, "accumulate: expected 1 or more, found %d", spec->accumulate);
    if ((unsigned)spec->optimizer.kind >= TY_N_OPTIMIZER_KINDS)
        return ty_error_set(err, TY_E_INTERNAL, "optimizer: no kind %d", (int)spec->optimizer.kind);
    if (!(spec->ema_decay >= 0 && spec->ema_decay < 1))
        return ty_error_set(err, TY_E_RANGE, "ema: expected a decay of at least 0 and below 1, found %g",
                            spec->ema_decay);
    if (spec->use_ema && spec->ema_decay == 0)
        return ty_error_set(err, TY_E_CONFIG, "ema: the averages are to be used, but their decay is 0");
    if (spec->n_inputs < 1)
        return ty_error_set(err, TY_E_CONFIG, "inputs: expected at least one, found none");
    if (spec->eval_valid_rows && (spec->inputs[0].type.rank < 1 || spec->inputs[0].type.dim[0] < 1))
        return ty_error_set(err, TY_E_SHAPE, "input \"%s\": expected a batch as its first dim", spec->inputs[0].name);
    return 0;
}

static int step_check_trained(const step_draft *d, ty_error *err)
{
    if (d->set.n_groups > 0)
        return 0;
    ty_error_set(err, TY_E_CONFIG, "nothing to train: the loss depends on no weight that may change");
    return ty_error_help(err, "look at frozen and buffers, and at what the loss reads");
}

static int step_draft_all(step_draft *d, ty_error *err)
{
    if (ty_params_classify(&d->set, d->m, d->spec, &d->arena, err) < 0)
        return -1;
    step_add_inputs(d);
    step_add_leaves(d);
    if (ty_graph_failed(d->g, err) || step_import(d, err) < 0 || step_loss(d, err) < 0)
        return -1;
    if (ty_params_find_uses(&d->set, d->g, d->loss, err) < 0)
        return -1;
    ty_params_arrange(&d->set, d->spec);
    if (step_check_trained(d, err) < 0 || step_gradient(d, err) < 0 || step_update(d, err) < 0 ||
        step_buffers(d, err) < 0 || step_eval(d, err) < 0 || step_random(d, err) < 0)
        return -1;
    step_place_params(d);
    return 0;
}

int ty_step_build(const ty_model *m, const ty_train_spec *spec, ty_step *out, ty_error *err)
{
    *out = (ty_step){0};
    if (step_check_spec(spec, err) < 0)
        return -1;
    step_draft d = {.m = m, .spec = spec, .g = ty_graph_new()};
    ty_arena_init(&d.arena);
    int rc = step_draft_all(&d, err);
    if (rc == 0)
        rc = step_carry_over(&d, &out->g, err);
    if (rc == 0) {
        out->n_trained = d.set.n_trained;
        step_list_weights(out, &d);
        step_list_ranges(out);
    }
    ty_graph_free(d.g);
    ty_arena_fini(&d.arena);
    return rc;
}

/* ---- inference ------------------------------------------------------------------------------------------------------
 */

static int step_infer_inputs(const ty_model *m, ty_graph *g, const ty_binding *inputs, int n_inputs, ty_val *bound,
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

static int step_infer(const ty_model *m, const ty_binding *inputs, int n_inputs, ty_graph *g, ty_error *err)
{
    ty_val *bound = TY_NEW_ARRAY(ty_graph_arena(g), ty_val, ty_model_n_inputs(m) + 1);
    if (step_infer_inputs(m, g, inputs, n_inputs, bound, err) < 0)
        return -1;
    ty_model_values values;
    ty_model_binding b = {.mode = TY_MODEL_EVAL, .inputs = bound};
    b.seed = b.step = ty_b_scalar(g, TY_I64, 0);
    if (ty_model_import(m, g, &b, &values, err) < 0)
        return -1;
    for (int i = 0; i < ty_model_n_outputs(m); i++)
        ty_graph_add_output(g, ty_model_output(m, i)->name, values.outputs[i], TY_TAPE_EVAL);
    return ty_graph_failed(g, err) ? -1 : 0;
}

static void step_list_constants(ty_step *s, const ty_model *m)
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
    if (step_infer(m, inputs, n_inputs, out->g, err) < 0) {
        ty_step_fini(out);
        return -1;
    }
    step_list_constants(out, m);
    step_list_ranges(out);
    return 0;
}

void ty_step_fini(ty_step *s)
{
    if (s->g)
        ty_graph_free(s->g);
    *s = (ty_step){0};
}
