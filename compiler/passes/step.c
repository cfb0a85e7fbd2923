/* step.c - see step.h.
 *
 * The step is built twice. In the draft every weight that may change is a leaf of its own, so that gradients are asked
 * for values that no simplification can step over. When all is there, and it is known which weights are trained and in
 * which order, the draft is carried over into the graph proper, in which each leaf is a slice of its arena.
 */
#include "compiler/passes/step.h"

#include "compiler/ir/build.h"
#include "compiler/ir/clone.h"
#include "compiler/model.h"
#include "compiler/passes/across.h"
#include "compiler/passes/clip.h"
#include "compiler/passes/optimizer.h"
#include "compiler/passes/parameters.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/precision.h"
#include "compiler/passes/range.h"
#include "compiler/passes/unmerged.h"
#include "compiler/passes/schedule.h"
#include "compiler/passes/step_draft.h"
#include "compiler/passes/tables.h"
#include "compiler/phases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEP_LEAF_SEED = -1, STEP_LEAF_DRAW = -2 };

/* ---- inputs and leaves ----------------------------------------------------------------------------------------------
 */

void ty_step_add_inputs(ty_step_draft *d)
{
    const ty_train_spec *spec = d->spec;
    d->input = TY_NEW_ARRAY(&d->arena, ty_val, spec->n_inputs + 1);
    for (int i = 0; i < spec->n_inputs; i++)
        d->input[i] = ty_b_input(d->g, ty_graph_add_input(d->g, spec->inputs[i].name, spec->inputs[i].type));
    ty_val valid = TY_NONE;
    d->rows = d->replica = TY_NONE;
    if (spec->eval_valid_rows || spec->train_valid_rows)
        valid = ty_b_input(d->g, ty_graph_add_input(d->g, "valid", ty_type_scalar(TY_I64)));
    if (ty_across_replicas(spec) > 1)
        d->replica = ty_b_input(d->g, ty_graph_add_input(d->g, TY_ACROSS_INPUT, ty_type_scalar(TY_I64)));
    d->n_inputs = ty_graph_n_inputs(d->g);
    if (valid == TY_NONE)
        return;
    int64_t batch = spec->inputs[0].type.dim[0];
    ty_val number = ty_b_iota(d->g, ty_type_make(TY_I64, 1, &batch), 0);
    if (d->replica != TY_NONE) /* rows of the replicas before it come first */
        number = ty_b_add(d->g, number, ty_b_mul_s(d->g, d->replica, (double)batch));
    d->rows = ty_b_lt(d->g, number, ty_b_broadcast(d->g, valid, 1, &batch));
}

static ty_val step_add_leaf(ty_step_draft *d, int what, ty_type type)
{
    char name[32]; /* no name of a model starts so */
    snprintf(name, sizeof name, "\x01leaf %d", d->n_leaves);
    d->leaf[d->n_leaves++] = what;
    return ty_b_input(d->g, ty_graph_add_input(d->g, name, type));
}

static void step_add_leaves(ty_step_draft *d)
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

int ty_step_bind_inputs(const ty_step_draft *d, ty_val *bound, ty_error *err)
{
    for (int i = 0; i < ty_model_n_inputs(d->m); i++) {
        const ty_model_value *v = ty_model_input(d->m, i);
        int k = ty_step_find_input(d, v->name);
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

static int step_import(ty_step_draft *d, ty_error *err)
{
    static const ty_dtype dtypes[TY_N_PRECISIONS] = {
        [TY_PRECISION_BFLOAT16] = TY_BF16, [TY_PRECISION_FLOAT16] = TY_F16};
    ty_precision_rules rules = {dtypes[d->spec->precision], d->spec->keep_float32, d->spec->n_keep_float32,
                                d->spec->keep_float32_must_meet, d->spec->match_eager};
    ty_val *inputs = TY_NEW_ARRAY(&d->arena, ty_val, ty_model_n_inputs(d->m) + 1);
    ty_val *weights = TY_NEW_ARRAY(&d->arena, ty_val, d->set.n_params + 1);
    if (ty_step_bind_inputs(d, inputs, err) < 0)
        return -1;
    for (int i = 0; i < d->set.n_params; i++)
        weights[i] = d->set.param[i].leaf;
    ty_model_adapter *adapters = TY_NEW_ARRAY(&d->arena, ty_model_adapter, d->set.n_adapters + 1);
    ty_step_bind_adapters(d, false, adapters);
    ty_model_binding b = {.mode = d->spec->batch_norm_statistics ? TY_MODEL_TRAIN : TY_MODEL_EVAL,
                          .inputs = inputs,
                          .weights = weights,
                          .seed = d->seed,
                          .step = d->draw,
                          .precision = d->spec->precision == TY_PRECISION_FLOAT32 ? NULL : &rules,
                          .adapters = adapters,
                          .n_adapters = d->set.n_adapters,
                          .batch_norm_replicas = d->spec->batch_norm_across ? ty_across_replicas(d->spec) : 1};
    if (ty_model_import(d->m, d->g, &b, &d->train, err) < 0 || ty_step_begin_adapters(d, adapters, err) < 0)
        return -1;
    ty_step_bind_adapters(d, true, adapters);
    b.mode = TY_MODEL_EVAL;
    rules.must_meet = false; /* evaluation has fewer layers */
    for (int i = 0; i < d->set.n_params; i++)
        weights[i] = d->set.param[i].eval_leaf;
    return ty_model_import(d->m, d->g, &b, &d->eval, err);
}

/* ---- gradient -------------------------------------------------------------------------------------------------------
 */

static ty_val step_flat(ty_step_draft *d, const ty_param_group *group)
{
    ty_val *part = TY_NEW_ARRAY(&d->arena, ty_val, group->n_members);
    for (int i = 0; i < group->n_members; i++)
        part[i] = ty_b_flatten(d->g, d->set.param[group->member[i]].grad);
    return group->n_members == 1 ? part[0] : ty_b_concat(d->g, part, group->n_members, 0);
}

/* What of a weight the loss is differentiated by: itself, or of a table what is gathered from it. Returns how many. */
static int step_sources(const ty_param *p, const ty_val **out)
{
    *out = p->n_gathers ? p->gather : p->n_lookups ? p->lookup : &p->leaf;
    return p->n_gathers ? p->n_gathers : p->n_lookups ? p->n_lookups : 1;
}

/* All of that, group after group. wrt NULL: only counts. */
static int step_wrt(const ty_step_draft *d, ty_val *wrt)
{
    int n = 0;
    for (int k = 0; k < d->set.n_groups; k++)
        for (int i = 0; i < d->set.group[k].n_members; i++) {
            const ty_val *values;
            int n_values = step_sources(&d->set.param[d->set.group[k].member[i]], &values);
            for (int j = 0; wrt && j < n_values; j++)
                wrt[n + j] = values[j];
            n += n_values;
        }
    return n;
}

/* Flat gradient of a group; grad: of its part of wrt. Returns how many of those it took. */
static int step_group_gradient(ty_step_draft *d, int k, const ty_val *grad)
{
    ty_param_group *group = &d->set.group[k];
    if (group->by_rows) {
        d->grad[k] = ty_table_gradient(&d->set, group, d->g, grad);
        return d->set.param[group->member[0]].n_gathers;
    }
    int at = 0;
    for (int i = 0; i < group->n_members; i++) {
        ty_param *p = &d->set.param[group->member[i]];
        const ty_val *values;
        p->grad = p->n_lookups ? ty_unmerged_gradient(&d->set, p, d->g, &grad[at]) : ty_precision_widen(d->g, grad[at]);
        at += step_sources(p, &values);
    }
    d->grad[k] = step_flat(d, group);
    return at;
}

static int step_gradient(ty_step_draft *d, ty_error *err)
{
    int n = step_wrt(d, NULL);
    ty_val *wrt = TY_NEW_ARRAY(&d->arena, ty_val, n + 1);
    ty_val *grad = TY_NEW_ARRAY(&d->arena, ty_val, n + 1);
    step_wrt(d, wrt);
    ty_val share = d->spec->accumulate > 1 ? ty_b_mul_s(d->g, d->loss, 1.0 / d->spec->accumulate) : d->loss;
    if (d->spec->precision == TY_PRECISION_FLOAT16)
        ty_loss_scale_begin(d->g, &d->scale);
    if (ty_pass_autodiff(d->g, ty_loss_scale_loss(d->g, &d->scale, share), wrt, n, grad, err) < 0)
        return -1;
    ty_graph_origin(d->g, "gradient");
    for (int k = 0, at = 0; k < d->set.n_groups; k++)
        at += step_group_gradient(d, k, &grad[at]);
    ty_tables_tell(&d->set, d->spec, d->g);
    ty_graph_origin(d->g, "");
    return ty_graph_failed(d->g, err) ? -1 : 0;
}

/* ---- statistics -----------------------------------------------------------------------------------------------------
 */

static int step_buffers(ty_step_draft *d, ty_error *err)
{
    int n = d->train.n_updates;
    ty_val *value = TY_NEW_ARRAY(&d->arena, ty_val, n);
    for (int i = 0; i < n; i++)
        value[i] = d->train.updates[i].value;
    if (!d->spec->batch_norm_across)
        ty_across_mean(d->g, value, n, ty_across_replicas(d->spec));
    for (int i = 0; i < n; i++) {
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
        ty_graph_add_assign(d->g, p->state, value[i], ty_step_train_tapes(d));
    }
    return ty_graph_failed(d->g, err) ? -1 : 0;
}

/* ---- random numbers -------------------------------------------------------------------------------------------------
 */

static bool step_is_live(ty_step_draft *d, ty_val v)
{
    uint8_t *live = TY_NEW_ARRAY(&d->arena, uint8_t, ty_graph_n_nodes(d->g) + 1);
    ty_graph_mark_live(d->g, TY_TAPE_ALL, live);
    return live[ty_val_node(v)];
}

/* Every micro-batch draws anew: its number is step * accumulate + micro. */
static int step_random(ty_step_draft *d, ty_error *err)
{
    d->seed_state = d->micro_state = -1;
    if (ty_graph_failed(d->g, err))
        return -1;
    if (!step_is_live(d, d->seed) && !step_is_live(d, d->draw))
        return 0;
    d->seed_state = ty_graph_add_counter(d->g, "seed", ty_type_scalar(TY_I64), &d->spec->seed);
    if (d->spec->accumulate > 1) {
        d->micro_state = ty_graph_add_counter(d->g, "micro", ty_type_scalar(TY_I64), NULL);
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
    bool is_float = ty_dtype_is_float((ty_dtype)p->type.dtype);
    bool aligned = (uintptr_t)p->weight->data % ty_dtype_bytes((ty_dtype)p->type.dtype) == 0;
    return aligned || is_float ? ty_b_const(g, p->type, p->weight->data) : ty_b_const_copy(g, p->type, p->weight->data);
}

static ty_val step_slice(ty_graph *g, const ty_param *p, int state)
{
    ty_val flat = ty_b_slice_axis(g, ty_b_state(g, state), 0, p->offset, p->offset + ty_type_elems(&p->type));
    return ty_b_reshape(g, flat, p->type.rank, p->type.dim);
}

static ty_val step_draw_number(const ty_step_draft *d, ty_graph *g)
{
    ty_val step = ty_b_state(g, d->step_state);
    if (d->micro_state < 0)
        return step;
    return ty_b_add(g, ty_b_mul_s(g, step, d->spec->accumulate), ty_b_state(g, d->micro_state));
}

/* The state of the averages of a trained weight's group. */
static int step_ema_state(const ty_step_draft *d, const ty_param *p)
{
    int k = 0;
    while (d->set.group[k].number != p->group)
        k++;
    return d->ema_state[k];
}

static ty_val step_replace_leaf(const ty_step_draft *d, ty_graph *g, int what)
{
    if (what == STEP_LEAF_SEED && d->replica != TY_NONE)
        return ty_across_seed(g, ty_b_state(g, d->seed_state), ty_b_input(g, d->n_inputs - 1));
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

static void step_place_params(ty_step_draft *d)
{
    for (int k = 0; k < d->set.n_groups; k++)
        for (int i = 0; i < d->set.group[k].n_members; i++)
            d->set.param[d->set.group[k].member[i]].state = d->set.group[k].state;
}

/* With what it reads. */
static void step_carry_early(ty_clone *c, uint32_t id)
{
    const ty_graph *g = c->from;
    if (c->map[ty_val_make(id, 0)] != TY_NONE)
        return;
    for (uint32_t i = 0; i < ty_graph_node(g, id)->n_in; i++)
        if (ty_graph_in(g, id, (int)i) != TY_NONE)
            step_carry_early(c, ty_val_node(ty_graph_in(g, id, (int)i)));
    ty_clone_node(c, id);
}

static void step_carry_node(const ty_step_draft *d, ty_clone *c, uint32_t id)
{
    int64_t input = ty_graph_op(d->g, id) == TY_OP_INPUT ? ty_graph_attr(d->g, id)->index : -1;
    if (input >= d->n_inputs)
        c->map[ty_val_make(id, 0)] = step_replace_leaf(d, c->to, d->leaf[input - d->n_inputs]);
    else if (c->map[ty_val_make(id, 0)] == TY_NONE)
        ty_clone_node(c, id);
}

static int step_carry_over(ty_step_draft *d, ty_graph **out, ty_error *err)
{
    uint32_t n = ty_graph_n_nodes(d->g);
    uint8_t *live = TY_NEW_ARRAY(&d->arena, uint8_t, n + 1);
    ty_graph_mark_live(d->g, TY_TAPE_ALL, live);
    const uint32_t **early = TY_NEW_ARRAY(&d->arena, const uint32_t *, n + 1);
    ty_across_find_early(d->g, live, &d->arena, early);
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
        if (live[id])
            step_carry_node(d, &c, id);
        for (int i = 0; early[id] && early[id][i] != TY_NONE && !ty_graph_failed(c.to, NULL); i++)
            step_carry_early(&c, early[id][i]);
    }
    return ty_clone_finish(&c, out, err);
}

/* ---- results --------------------------------------------------------------------------------------------------------
 */

static void step_list_weights(ty_step *s, const ty_step_draft *d)
{
    const ty_param_set *set = &d->set;
    bool averaged = d->spec->use_ema || d->spec->ema_written;
    s->n_weights = set->n_params;
    s->weights = TY_NEW_ARRAY(ty_graph_arena(s->g), ty_step_weight, set->n_params);
    for (int i = 0; i < set->n_params; i++) {
        const ty_param *p = &set->param[i], *at = &set->param[p->same_as];
        s->weights[i] = (ty_step_weight){.name = p->weight->name,
                                         .type = p->type,
                                         .state = averaged && at->trained ? step_ema_state(d, at) : at->state,
                                         .segment = at->segment,
                                         .offset = at->offset,
                                         .data = p->weight->data,
                                         .trained = at->trained};
    }
}

static void step_list_parts(ty_step *s, const ty_step_draft *d)
{
    ty_arena *a = ty_graph_arena(s->g);
    s->n_parts = d->n_parts;
    s->parts = TY_NEW_ARRAY(a, ty_step_parts, d->n_parts + 1);
    for (int i = 0; i < d->n_parts; i++) {
        ty_shards *shards = ty_arena_copy(a, d->parts[i].shards, sizeof *shards);
        shards->piece = ty_arena_copy(a, shards->piece, sizeof *shards->piece * (size_t)shards->n);
        s->parts[i] = (ty_step_parts){d->parts[i].state, d->parts[i].elems, shards};
    }
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
    if ((spec->use_ema || spec->ema_written) && spec->ema_decay == 0)
        return ty_error_set(err, TY_E_CONFIG, "ema: the averages are to be used, but their decay is 0");
    if ((unsigned)spec->precision >= TY_N_PRECISIONS)
        return ty_error_set(err, TY_E_INTERNAL, "precision: no kind %d", (int)spec->precision);
    if (spec->lora.rank < 0 || (spec->lora.rank > 0 && (!spec->lora.memory || !(fabs(spec->lora.alpha) < INFINITY))))
        return ty_error_set(err, TY_E_INTERNAL, "lora: a rank of %d, alpha %g", spec->lora.rank, spec->lora.alpha);
    if (spec->n_inputs < 1)
        return ty_error_set(err, TY_E_CONFIG, "inputs: expected at least one, found none");
    if ((spec->eval_valid_rows || spec->train_valid_rows) &&
        (spec->inputs[0].type.rank < 1 || spec->inputs[0].type.dim[0] < 1))
        return ty_error_set(err, TY_E_SHAPE, "input \"%s\": expected a batch as its first dim", spec->inputs[0].name);
    if (spec->update_every < 0 || spec->ema_overwrite < 0)
        return ty_error_set(err, TY_E_RANGE, "update_every, ema: expected no negative numbers of steps");
    return ty_unmerged_check(spec, err) < 0 ? -1 : ty_across_check(spec, err);
}

static int step_check_trained(const ty_step_draft *d, ty_error *err)
{
    if (d->set.n_groups > 0)
        return 0;
    ty_error_set(err, TY_E_CONFIG, "nothing to train: the loss depends on no weight that may change");
    return ty_error_help(err, "look at frozen and buffers, and at what the loss reads");
}

static int step_draft_model(ty_step_draft *d, ty_error *err)
{
    if (ty_params_classify(&d->set, d->m, d->spec, &d->arena, err) < 0)
        return -1;
    ty_step_add_inputs(d);
    step_add_leaves(d);
    if (ty_graph_failed(d->g, err))
        return -1;
    ty_phases_lap(&d->phases, "weights");
    if (step_import(d, err) < 0)
        return -1;
    ty_phases_lap(&d->phases, "import");
    return 0;
}

static int step_draft_parameters(ty_step_draft *d, ty_error *err)
{
    if (ty_step_loss(d, err) < 0)
        return -1;
    ty_phases_lap(&d->phases, "loss");
    if (ty_params_find_uses(&d->set, d->g, d->loss, err) < 0 ||
        ty_tables_find(&d->set, d->m, d->g, d->loss, d->spec, err) < 0)
        return -1;
    ty_unmerged_find(&d->set, d->g, d->loss, d->spec);
    ty_params_arrange(&d->set, d->spec);
    ty_phases_lap(&d->phases, "parameters");
    return step_check_trained(d, err);
}

static int step_draft_training(ty_step_draft *d, ty_error *err)
{
    if (step_gradient(d, err) < 0)
        return -1;
    ty_phases_lap(&d->phases, "gradient");
    if (ty_step_update(d, err) < 0 || step_buffers(d, err) < 0)
        return -1;
    ty_phases_lap(&d->phases, "update");
    if (ty_step_eval(d, err) < 0 || step_random(d, err) < 0)
        return -1;
    ty_phases_lap(&d->phases, "evaluation");
    return 0;
}

static int step_draft_all(ty_step_draft *d, ty_error *err)
{
    ty_phases_start(&d->phases);
    if (step_draft_model(d, err) < 0 || step_draft_parameters(d, err) < 0 || step_draft_training(d, err) < 0)
        return -1;
    step_place_params(d);
    return 0;
}

int ty_step_build(const ty_model *m, const ty_train_spec *spec, ty_step *out, ty_error *err)
{
    *out = (ty_step){0};
    if (step_check_spec(spec, err) < 0)
        return -1;
    if (ty_model_trains_itself(m))
        return ty_step_build_own(m, spec, out, err);
    ty_step_draft d = {.m = m, .spec = spec, .g = ty_graph_new()};
    ty_arena_init(&d.arena);
    int rc = step_draft_all(&d, err);
    if (rc == 0)
        rc = step_carry_over(&d, &out->g, err);
    if (rc == 0) {
        out->n_trained = d.set.n_trained;
        out->replicas = ty_across_replicas(spec);
        out->found = d.train.found;
        step_list_weights(out, &d);
        step_list_parts(out, &d);
        ty_phases_lap(&d.phases, "carry over");
        ty_range_list(out);
        ty_phases_lap(&d.phases, "ranges");
        out->phases = d.phases;
    }
    ty_graph_free(d.g);
    ty_arena_fini(&d.arena);
    return rc;
}

void ty_step_fini(ty_step *s)
{
    if (s->g)
        ty_graph_free(s->g);
    *s = (ty_step){0};
}
