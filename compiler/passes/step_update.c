/* step_update.c - what the tape LAST does with gradients: added up, unscaled, clipped; the schedule; weights and
 * moments renewed, whole groups at a time or, where replicas divide the work, piece by piece (shard.h). Part of step.c.
 */
#include "compiler/ir/build.h"
#include "compiler/passes/across.h"
#include "compiler/passes/clip.h"
#include "compiler/passes/optimizer.h"
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

/* What the tape LAST leaves in a state, unless the step does not count. */
static void step_assign(ty_step_draft *d, int state, ty_val v)
{
    ty_graph_add_assign(d->g, state, ty_loss_scale_guard(d->g, &d->scale, ty_b_state(d->g, state), v), TY_TAPE_LAST);
}

/* The average of the weights: after the first step the weights themselves, as in PyTorch's AveragedModel and Keras. */
static void step_average(ty_step_draft *d, int k, const ty_opt_clock *clock, ty_val p)
{
    if (d->spec->ema_decay == 0)
        return;
    ty_graph *g = d->g;
    int state = d->ema_state[k] = ty_params_add_state(&d->set, &d->set.group[k], g, "ema", TY_STATE_MOMENT, true);
    ty_val first = ty_b_le(g, clock->k, ty_b_scalar(g, TY_F64, 1));
    ty_val share = ty_b_select(g, first, ty_b_scalar(g, TY_F64, 1), ty_b_scalar(g, TY_F64, 1 - d->spec->ema_decay));
    ty_val old = ty_b_state(g, state), step = ty_b_mul(g, ty_b_sub(g, p, old), ty_b_cast(g, share, TY_F32));
    step_assign(d, state, ty_b_select(g, first, p, ty_b_add(g, old, step)));
}

static ty_segments step_segments(const ty_param_group *group)
{
    return (ty_segments){group->n_members, group->by_rows ? &group->grad_elems : group->member_elems};
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

/* Of a group whose update is divided: piece by piece, so that one is handed on while the next is computed. */
static void step_update_shards(ty_step_draft *d, int k, const ty_opt_clock *clock, const int *state, int n_moments)
{
    ty_graph *g = d->g;
    const ty_param_group *group = &d->set.group[k];
    const ty_shards *s = &d->shards[k];
    const ty_opt_group what = {group->decay, {0}, false};
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
        weights[i] = ty_loss_scale_guard(g, &d->scale, old, weights[i]);
        weights[i] = ty_shard_hand_on(&d->set, g, s, i, weights[i]);
        for (int j = 0; j < n_moments; j++)
            part[j][i] = ty_loss_scale_guard(g, &d->scale, moment[j], next[j]);
    }
    if (ty_graph_failed(g, NULL))
        return;
    ty_val all = s->n == 1 ? weights[0] : ty_b_concat(g, weights, s->n, 0);
    ty_graph_add_assign(g, group->state, all, TY_TAPE_LAST);
    step_average(d, k, clock, all);
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
    ty_opt_group what = {group->decay, step_segments(group), group->by_rows};
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
    ty_val p = step_old(d, group, group->state);
    p = ty_optimizer_update(d->g, o, &clock, &what, p, d->grad[k], moment, next);
    step_renew(d, group, group->state, p);
    step_average(d, k, &clock, p);
    for (int i = 0; i < moments.n; i++)
        step_renew(d, group, state[i], next[i]);
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

static ty_opt_clock step_clock(ty_step_draft *d)
{
    static const double one = 1;
    ty_val t = ty_b_cast(d->g, ty_b_state(d->g, d->step_state), TY_F64);
    ty_val updates = d->scale.on ? ty_b_cast(d->g, d->scale.updates, TY_F64) : t;
    ty_opt_clock clock = {.k = ty_b_add_s(d->g, updates, 1), .product = TY_NONE};
    clock.lr = ty_schedule_build(d->g, &d->spec->schedule, d->spec->optimizer.lr, t, step_plateau(d));
    if (ty_optimizer_needs_product(&d->spec->optimizer)) {
        int state = ty_graph_add_counter(d->g, "nadam.product", ty_type_scalar(TY_F64), &one);
        clock.product = ty_b_state(d->g, state);
        step_assign(d, state, ty_optimizer_next_product(d->g, &d->spec->optimizer, &clock));
    }
    return clock;
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
    ty_opt_clock clock = step_clock(d);
    ty_val norm = step_norm(d, &all);
    ty_graph_add_output(d->g, "grad_norm", norm, TY_TAPE_LAST);
    ty_graph_add_output(d->g, "lr", ty_b_cast(d->g, clock.lr, TY_F32), TY_TAPE_LAST);
    ty_clip_apply(d->g, d->spec->clip, d->spec->clip_max, norm, all.v, all.segments, all.n);
    for (int i = 0; i < all.n; i++)
        *all.place[i] = all.v[i];
    for (int k = 0; k < d->set.n_groups; k++)
        step_update_group(d, k, &clock);
    ty_loss_scale_end(d->g, &d->scale);
    ty_graph_origin(d->g, "");
    return ty_graph_failed(d->g, err) ? -1 : 0;
}
