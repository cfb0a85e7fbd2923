/* step_update.c - what the tape LAST does with gradients: added up, unscaled, clipped; the schedule; weights and
 * moments renewed, whole groups at a time or, where replicas divide the work, piece by piece (shard.h). Part of step.c.
 */
#include "compiler/ir/build.h"
#include "compiler/passes/across.h"
#include "compiler/passes/clip.h"
#include "compiler/passes/constrain.h"
#include "compiler/passes/optimizer.h"
#include "compiler/passes/unmerged.h"
#include "compiler/passes/schedule.h"
#include "compiler/passes/step_draft.h"
#include "compiler/passes/tables.h"

/* What earlier micro-batches have gathered comes in; LAST leaves zeros for the next step. Returns what was there. */
static ty_val step_accumulate(ty_step_draft *d, int k)
{
    if (d->spec->accumulate == 1)
        return TY_NONE;
    int state = ty_params_add_state(&d->set, &d->set.group[k], d->g, "grad", TY_STATE_GRAD, false);
    ty_val sums = ty_b_state(d->g, state);
    d->grad[k] = ty_b_add(d->g, sums, d->grad[k]);
    ty_graph_add_assign(d->g, state, d->grad[k], TY_TAPE_MICRO);
    ty_graph_add_assign(d->g, state, ty_b_full_like(d->g, d->grad[k], 0), TY_TAPE_LAST);
    return sums;
}

/* The step's gradient, of all micro-batches and of all replicas. Rows of tables are of all already. */
static void step_whole_gradient(ty_step_draft *d)
{
    for (int k = 0; k < d->set.n_groups; k++) {
        ty_val sums = step_accumulate(d, k);
        if (d->set.group[k].by_rows)
            continue;
        if (ty_shard_is_asked(d->spec)) {
            ty_shard_cut(&d->set, &d->set.group[k], d->spec, &d->shards[k]);
            ty_shard_gradients(&d->set, &d->set.group[k], d->g, sums, d->replica, ty_across_wire(d->spec),
                               &d->shards[k]);
        } else if (ty_across_replicas(d->spec) > 1)
            d->grad[k] = ty_across_gradient(&d->set, &d->set.group[k], d->g, sums, d->spec);
    }
}

/* What a weight or a moment becomes in a step that may change nothing. */
static ty_val step_if_due(const ty_step_draft *d, ty_val old, ty_val v)
{
    return d->due == TY_NONE ? v : ty_b_select(d->g, d->due, v, old);
}

/* What the tape LAST leaves in a state, unless the step does not count. */
static void step_assign(ty_step_draft *d, int state, ty_val v)
{
    ty_graph_add_assign(d->g, state, ty_loss_scale_guard(d->g, &d->scale, ty_b_state(d->g, state), v), TY_TAPE_LAST);
}

/* Every so many updates, and at the steps that gather for the next one, the average takes the place of the weight. */
static ty_val step_overwritten(ty_step_draft *d, const ty_opt_clock *clock, ty_val average, ty_val p)
{
    ty_graph *g = d->g;
    if (d->spec->ema_overwrite == 0)
        return p;
    ty_val every = ty_b_scalar(g, TY_F64, (double)d->spec->ema_overwrite);
    ty_val whole = ty_b_mul(g, ty_b_unary(g, TY_OP_FLOOR, ty_b_div(g, clock->k, every)), every);
    return ty_b_select(g, ty_b_eq(g, whole, clock->k), average, p);
}

/* The average of the weights: after the first step the weights themselves, as in PyTorch's AveragedModel and Keras.
 * Returns what the weights are then. */
static ty_val step_average(ty_step_draft *d, int k, const ty_opt_clock *clock, ty_val p)
{
    if (d->spec->ema_decay == 0)
        return p;
    ty_graph *g = d->g;
    int state = d->ema_state[k] = ty_params_add_state(&d->set, &d->set.group[k], g, "ema", TY_STATE_MOMENT, true);
    ty_val first = ty_b_le(g, clock->k, ty_b_scalar(g, TY_F64, 1));
    ty_val share = ty_b_select(g, first, ty_b_scalar(g, TY_F64, 1), ty_b_scalar(g, TY_F64, 1 - d->spec->ema_decay));
    ty_val old = ty_b_state(g, state), step = ty_b_mul(g, ty_b_sub(g, p, old), ty_b_cast(g, share, TY_F32));
    ty_val average = ty_b_select(g, first, p, ty_b_add(g, old, step));
    step_assign(d, state, average);
    return step_overwritten(d, clock, average, p);
}

static ty_segments step_segments(const ty_param_group *group)
{
    return (ty_segments){group->n_members, group->by_rows ? &group->grad_elems : group->member_elems, NULL};
}

/* All gradients that the update reads; of the first n_own each replica has a part of its own. */
typedef struct step_gradients {
    ty_val *v, **place; /* place[i]: where v[i] comes from and belongs */
    ty_segments *segments;
    int n, n_own;
} step_gradients;

static void step_list_gradient(step_gradients *all, ty_val *place, ty_segments segments)
{
    all->v[all->n] = *place;
    all->place[all->n] = place;
    all->segments[all->n++] = segments;
}

static void step_list_pieces(step_gradients *all, ty_shards *s, bool whole)
{
    for (int i = 0; i < s->n; i++)
        if (s->piece[i].whole == whole)
            step_list_gradient(all, &s->piece[i].grad, (ty_segments){0});
}

static step_gradients step_list_gradients(ty_step_draft *d)
{
    int most = d->set.n_groups;
    for (int k = 0; k < d->set.n_groups; k++)
        most += d->shards[k].n;
    step_gradients all = {.v = TY_NEW_ARRAY(&d->arena, ty_val, most),
                          .place = TY_NEW_ARRAY(&d->arena, ty_val *, most),
                          .segments = TY_NEW_ARRAY(&d->arena, ty_segments, most)};
    for (int k = 0; k < d->set.n_groups; k++)
        step_list_pieces(&all, &d->shards[k], false);
    all.n_own = all.n;
    for (int k = 0; k < d->set.n_groups; k++) {
        step_list_pieces(&all, &d->shards[k], true);
        if (d->shards[k].n == 0)
            step_list_gradient(&all, &d->grad[k], step_segments(&d->set.group[k]));
    }
    return all;
}

static ty_val step_norm(ty_step_draft *d, const step_gradients *all)
{
    ty_val sum = ty_clip_squares(d->g, all->v + all->n_own, all->n - all->n_own);
    if (all->n_own) {
        ty_val own = ty_clip_squares(d->g, all->v, all->n_own);
        sum = ty_b_add(d->g, ty_b_all_reduce(d->g, own, ty_across_replicas(d->spec)), sum);
    }
    return ty_b_unary(d->g, TY_OP_SQRT, sum);
}

/* The part of a state that the update works on. */
static ty_val step_old(const ty_step_draft *d, const ty_param_group *group, int state)
{
    return group->by_rows ? ty_table_read(group, d->g, state) : ty_b_state(d->g, state);
}

/* v: the new part. */
static void step_renew(ty_step_draft *d, const ty_param_group *group, int state, ty_val v)
{
    v = ty_loss_scale_guard(d->g, &d->scale, step_old(d, group, state), v);
    ty_graph_add_assign(d->g, state, group->by_rows ? ty_table_write(group, d->g, state, v) : v, TY_TAPE_LAST);
}

/* Whether averages or constraints have a say in what the weights become. */
static bool step_follows_up(const ty_step_draft *d, const ty_param_group *group)
{
    return (d->spec->ema_decay != 0 && d->spec->ema_overwrite != 0) || ty_constrain_has_some(&d->set, group);
}

/* Of a group whose update is divided: piece by piece, so that one is handed on while the next is computed. */
static void step_update_shards(ty_step_draft *d, int k, const ty_opt_clock *clock, const int *state, int n_moments)
{
    ty_graph *g = d->g;
    const ty_param_group *group = &d->set.group[k];
    const ty_shards *s = &d->shards[k];
    const ty_opt_group what = {group->decay, {0}, false, TY_NONE};
    ty_val *weights = TY_NEW_ARRAY(&d->arena, ty_val, s->n), *part[TY_OPT_MAX_MOMENTS];
    for (int j = 0; j < n_moments; j++)
        part[j] = TY_NEW_ARRAY(&d->arena, ty_val, s->n);
    for (int i = 0; i < s->n && !ty_graph_failed(g, NULL); i++) {
        const ty_shard_piece *p = &s->piece[i];
        ty_val moment[TY_OPT_MAX_MOMENTS], next[TY_OPT_MAX_MOMENTS];
        ty_val old = ty_shard_weights(&d->set, group, g, d->replica, s, i);
        for (int j = 0; j < n_moments; j++)
            moment[j] = ty_b_slice_axis(g, ty_b_state(g, state[j]), 0, p->at, p->at + p->elems);
        weights[i] = ty_optimizer_update(g, &d->spec->optimizer, clock, &what, old, p->grad, moment, next);
        weights[i] = ty_loss_scale_guard(g, &d->scale, old, step_if_due(d, old, weights[i]));
        weights[i] = ty_shard_hand_on(&d->set, g, s, i, weights[i]);
        for (int j = 0; j < n_moments; j++)
            part[j][i] = ty_loss_scale_guard(g, &d->scale, moment[j], step_if_due(d, moment[j], next[j]));
    }
    if (ty_graph_failed(g, NULL))
        return;
    ty_val all = s->n == 1 ? weights[0] : ty_b_concat(g, weights, s->n, 0);
    if (!step_follows_up(d, group))
        ty_graph_add_assign(g, group->state, all, TY_TAPE_LAST);
    all = ty_constrain_group(&d->set, group, g, step_average(d, k, clock, all));
    if (step_follows_up(d, group))
        ty_graph_add_assign(g, group->state, all, TY_TAPE_LAST);
    for (int j = 0; j < n_moments; j++)
        ty_graph_add_assign(g, state[j], s->n == 1 ? part[j][0] : ty_b_concat(g, part[j], s->n, 0), TY_TAPE_LAST);
}

/* A state of which each replica has a part. */
static void step_note_parts(ty_step_draft *d, int k, int state)
{
    if (d->shards[k].n)
        d->parts[d->n_parts++] = (ty_step_parts){state, d->set.group[k].elems, &d->shards[k]};
}

static void step_update_group(ty_step_draft *d, int k, const ty_opt_clock *common)
{
    ty_param_group *group = &d->set.group[k];
    ty_opt_group what = {group->decay, step_segments(group), group->by_rows,
                         ty_unmerged_squares(&d->set, group, d->g, d->spec, d->grad[k])};
    ty_opt_clock clock = *common;
    if (group->lr_factor != 1)
        clock.lr = ty_b_mul_s(d->g, clock.lr, group->lr_factor);
    const ty_optimizer *o = &d->spec->optimizer;
    ty_opt_moments moments = ty_optimizer_moments(o);
    ty_val moment[TY_OPT_MAX_MOMENTS], next[TY_OPT_MAX_MOMENTS];
    int state[TY_OPT_MAX_MOMENTS];
    for (int i = 0; i < moments.n; i++) {
        const char *prefix = ty_arena_printf(&d->arena, "%s.%s", ty_optimizer_text(o->kind), moments.name[i]);
        state[i] = d->shards[k].n ? ty_shard_add_state(&d->set, group, d->g, prefix, &d->shards[k])
                                  : ty_params_add_state(&d->set, group, d->g, prefix, TY_STATE_MOMENT, false);
        moment[i] = d->shards[k].n ? TY_NONE : step_old(d, group, state[i]);
        step_note_parts(d, k, state[i]);
    }
    if (d->shards[k].n) {
        step_update_shards(d, k, &clock, state, moments.n);
        return;
    }
    ty_val old = step_old(d, group, group->state);
    ty_val p = ty_optimizer_update(d->g, o, &clock, &what, old, d->grad[k], moment, next);
    p = step_if_due(d, old, p);
    if (!step_follows_up(d, group))
        step_renew(d, group, group->state, p);
    p = ty_constrain_group(&d->set, group, d->g, step_average(d, k, &clock, p));
    if (step_follows_up(d, group))
        step_renew(d, group, group->state, p);
    for (int i = 0; i < moments.n; i++)
        step_renew(d, group, state[i], step_if_due(d, moment[i], next[i]));
}

/* The factor that the plateau lowers: the first number of its state. */
static ty_val step_plateau(ty_step_draft *d)
{
    static const double start[TY_PLATEAU_NUMBERS] = {[TY_PLATEAU_FACTOR] = 1};
    int64_t n = TY_PLATEAU_NUMBERS;
    if (d->spec->schedule.kind != TY_SCHED_PLATEAU)
        return TY_NONE;
    ty_val all = ty_b_state(d->g, ty_graph_add_counter(d->g, "plateau", ty_type_make(TY_F64, 1, &n), start));
    return ty_b_reshape(d->g, ty_b_slice_axis(d->g, all, 0, TY_PLATEAU_FACTOR, TY_PLATEAU_FACTOR + 1), 0, NULL);
}

/* Steps that count, so many of which make an update. */
static ty_val step_counted(const ty_step_draft *d)
{
    return ty_b_cast(d->g, d->scale.on ? d->scale.updates : ty_b_state(d->g, d->step_state), TY_F64);
}

/* Updates before this step. */
static ty_val step_updates(const ty_step_draft *d, ty_val steps)
{
    return ty_b_unary(d->g, TY_OP_FLOOR, ty_b_div(d->g, steps, ty_b_scalar(d->g, TY_F64, d->spec->update_every)));
}

static void step_find_due(ty_step_draft *d)
{
    d->due = TY_NONE;
    if (d->spec->update_every <= 1)
        return;
    ty_val steps = step_counted(d), next = ty_b_add_s(d->g, steps, 1);
    d->due = ty_b_lt(d->g, step_updates(d, steps), step_updates(d, next));
}

static ty_opt_clock step_clock(ty_step_draft *d)
{
    static const double one = 1;
    ty_val t = ty_b_cast(d->g, ty_b_state(d->g, d->step_state), TY_F64);
    ty_val updates = d->scale.on ? step_counted(d) : t;
    if (d->due != TY_NONE)
        updates = step_updates(d, updates);
    ty_opt_clock clock = {.k = ty_b_add_s(d->g, updates, 1), .product = TY_NONE};
    clock.lr = ty_schedule_build(d->g, &d->spec->schedule, d->spec->optimizer.lr, t, step_plateau(d));
    if (ty_optimizer_needs_product(&d->spec->optimizer)) {
        int state = ty_graph_add_counter(d->g, "nadam.product", ty_type_scalar(TY_F64), &one);
        clock.product = ty_b_state(d->g, state);
        ty_val next = ty_optimizer_next_product(d->g, &d->spec->optimizer, &clock);
        step_assign(d, state, step_if_due(d, clock.product, next));
    }
    return clock;
}

/* With update_every the gradients of so many steps are gathered; weights follow the mean of them at the last. */
static ty_val step_gather(ty_step_draft *d, int k, ty_val grad)
{
    int state = ty_params_add_state(&d->set, &d->set.group[k], d->g, "sum", TY_STATE_MOMENT, false);
    ty_val old = ty_b_state(d->g, state), sum = ty_b_add(d->g, old, grad);
    ty_val rest = ty_b_select(d->g, d->due, ty_b_full_like(d->g, sum, 0), sum);
    ty_graph_add_assign(d->g, state, ty_loss_scale_guard(d->g, &d->scale, old, rest), TY_TAPE_LAST);
    return ty_b_mul_s(d->g, sum, 1.0 / d->spec->update_every);
}

/* The norm that limits the whole gradient, with unmerged rows. */
static ty_val step_rows_norm(ty_step_draft *d)
{
    ty_val sum = ty_b_scalar(d->g, TY_F32, 0);
    for (int k = 0; k < d->set.n_groups; k++) {
        ty_segments s = step_segments(&d->set.group[k]);
        ty_val *norm = TY_NEW_ARRAY(&d->arena, ty_val, s.n);
        s.squares = ty_unmerged_square_sums(&d->set, &d->set.group[k], d->g);
        ty_segment_norms(d->g, d->grad[k], &s, norm);
        for (int i = 0; i < s.n; i++)
            sum = ty_b_add(d->g, sum, ty_b_square(d->g, norm[i]));
    }
    return ty_b_unary(d->g, TY_OP_SQRT, sum);
}

static bool step_has_rows(const ty_step_draft *d)
{
    for (int i = 0; i < d->set.n_params; i++)
        if (d->set.param[i].n_lookups)
            return true;
    return false;
}

/* Gathers and clips all gradients, and brings them to their places. */
static void step_clip(ty_step_draft *d, step_gradients *all, ty_val norm)
{
    bool rows = step_has_rows(d);
    ty_clip_kind kind = d->spec->clip;
    for (int i = 0; i < all->n && d->due != TY_NONE; i++)
        all->v[i] = step_gather(d, (int)(all->place[i] - d->grad), all->v[i]);
    if (d->due != TY_NONE)
        norm = step_norm(d, all);
    if (rows && kind == TY_CLIP_KERAS_GLOBAL_NORM)
        norm = step_rows_norm(d);
    for (int k = 0; k < d->set.n_groups && rows; k++)
        for (int i = 0; i < all->n; i++)
            if (all->place[i] == &d->grad[k])
                all->segments[i].squares = ty_unmerged_square_sums(&d->set, &d->set.group[k], d->g);
    ty_clip_apply(d->g, kind, d->spec->clip_max, norm, all->v, all->segments, all->n);
    for (int i = 0; i < all->n; i++)
        *all->place[i] = all->v[i];
    for (int k = 0; k < d->set.n_groups && rows && kind == TY_CLIP_VALUE; k++)
        d->grad[k] = ty_unmerged_clip(&d->set, &d->set.group[k], d->g, d->spec->clip_max, d->grad[k]);
}

int ty_step_update(ty_step_draft *d, ty_error *err)
{
    ty_graph_origin(d->g, "update");
    for (int k = 0; k < d->set.n_groups; k++)
        d->set.group[k].state = ty_params_add_state(&d->set, &d->set.group[k], d->g, "param", TY_STATE_PARAM, true);
    d->step_state = ty_graph_add_counter(d->g, "step", ty_type_scalar(TY_I64), NULL);
    ty_graph_add_assign(d->g, d->step_state, ty_b_add_s(d->g, ty_b_state(d->g, d->step_state), 1), TY_TAPE_LAST);
    step_whole_gradient(d);
    d->parts = TY_NEW_ARRAY(&d->arena, ty_step_parts, d->set.n_groups * TY_OPT_MAX_MOMENTS + 1);
    step_gradients all = step_list_gradients(d);
    int replicas = ty_across_replicas(d->spec);
    ty_loss_scale_unscale(d->g, &d->scale, all.v, all.n, all.n_own, replicas);
    step_find_due(d);
    ty_opt_clock clock = step_clock(d);
    ty_unmerged_unscale(&d->set, d->g, &d->scale);
    ty_val norm = step_norm(d, &all);
    ty_graph_add_output(d->g, "grad_norm", norm, TY_TAPE_LAST);
    ty_graph_add_output(d->g, "lr", ty_b_cast(d->g, clock.lr, TY_F32), TY_TAPE_LAST);
    step_clip(d, &all, norm);
    for (int k = 0; k < d->set.n_groups; k++)
        step_update_group(d, k, &clock);
    ty_loss_scale_end(d->g, &d->scale);
    ty_graph_origin(d->g, "");
    return ty_graph_failed(d->g, err) ? -1 : 0;
}
