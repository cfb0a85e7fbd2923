/* loop.c - one step after another. */
#include "entrypoint/loop.h"

#include <math.h>
#include <stddef.h>

typedef struct loop {
    const ty_loop_plan *plan;
    const ty_loop_calls *calls;
    ty_loop_result *result;
    double loss_sum; /* since the last report */
    int64_t n_steps;
    int64_t evaluated, saved; /* steps at which it was done last; -1: never */
    ty_step_result last;
} loop;

ty_loop_position ty_loop_position_at(const ty_loop_plan *plan, int64_t step)
{
    int64_t batches = step * plan->accumulate;
    return (ty_loop_position){step, batches / plan->batches_per_epoch, batches % plan->batches_per_epoch};
}

bool ty_cadence_due(const ty_cadence *c, const ty_loop_plan *plan, int64_t step)
{
    if (c->n <= 0)
        return false;
    if (!c->epochs)
        return step % c->n == 0;
    int64_t span = c->n * plan->batches_per_epoch;
    return step * plan->accumulate / span > (step - 1) * plan->accumulate / span;
}

static int refuse_not_finite(const loop *l, int64_t step, const char *what, double value, ty_error *err)
{
    ty_loop_position at = ty_loop_position_at(l->plan, step);
    ty_error_set(err, TY_E_NOT_FINITE, "%s is %s at step %lld (epoch %lld, batch %lld)", what,
                 isnan(value) ? "nan"
                 : value > 0  ? "inf"
                              : "-inf",
                 (long long)step + 1, (long long)at.epoch, (long long)at.batch);
    return ty_error_help(err,
                         "`trainyard replay %lld RECIPE` names the first layer; lower the learning rate, add clip: "
                         "{global_norm: 1.0}, or look for extreme values in the data",
                         (long long)step + 1);
}

/* A scaled gradient overflows now and then: the program has skipped the update and lowers the scale. A scale that has
 * fallen this far will not find finite gradients. */
#define LEAST_LOSS_SCALE 0x1p-14

static int check_gradient(const loop *l, int64_t step, ty_error *err)
{
    if (isfinite(l->last.grad_norm) || l->last.loss_scale > LEAST_LOSS_SCALE)
        return 0;
    return refuse_not_finite(l, step, "the norm of the gradient", l->last.grad_norm, err);
}

static int begin_step(loop *l, ty_error *err)
{
    for (int64_t m = 0; m < l->plan->accumulate; m++)
        if (l->calls->batch(l->calls->ctx, m + 1 == l->plan->accumulate, err) < 0)
            return -1;
    return 0;
}

static int report(loop *l, const ty_loop_position *at, ty_error *err)
{
    if (!l->calls->report || l->n_steps == 0)
        return 0;
    ty_loop_report r = {*at,       l->loss_sum / (double)l->n_steps, l->last.lr, l->last.grad_norm, l->last.loss_scale,
                        l->n_steps};
    l->loss_sum = 0;
    l->n_steps = 0;
    return l->calls->report(l->calls->ctx, &r, err);
}

static int evaluate(loop *l, const ty_loop_position *at, ty_error *err)
{
    if (!l->calls->evaluate || l->evaluated == at->step)
        return 0;
    l->evaluated = at->step;
    return l->calls->evaluate(l->calls->ctx, at, err);
}

static int save(loop *l, const ty_loop_position *at, ty_error *err)
{
    if (!l->calls->checkpoint || l->saved == at->step)
        return 0;
    l->saved = at->step;
    return l->calls->checkpoint(l->calls->ctx, at, err);
}

/* Takes the oldest step's result. */
static int take(loop *l, ty_error *err)
{
    const ty_loop_plan *p = l->plan;
    int64_t step = l->result->steps_done;
    if (l->calls->result(l->calls->ctx, &l->last, err) < 0)
        return -1;
    if (!isfinite(l->last.loss))
        return refuse_not_finite(l, step, "the loss", l->last.loss, err);
    if (check_gradient(l, step, err) < 0)
        return -1;
    ty_loop_position at = ty_loop_position_at(p, step + 1);
    l->loss_sum += l->last.loss;
    l->n_steps++;
    l->result->steps_done = at.step;
    l->result->last_loss = l->last.loss;
    if (l->calls->progress)
        l->calls->progress(l->calls->ctx, &at, &l->last);
    return ty_cadence_due(&p->report, p, at.step) ? report(l, &at, err) : 0;
}

static int take_until(loop *l, int64_t step, ty_error *err)
{
    while (l->result->steps_done < step)
        if (take(l, err) < 0)
            return -1;
    return 0;
}

/* What is due after a step that was begun. */
static int follow_up(loop *l, const ty_loop_position *at, ty_error *err)
{
    const ty_loop_plan *p = l->plan;
    bool evaluates = ty_cadence_due(&p->evaluate, p, at->step), saves = ty_cadence_due(&p->checkpoint, p, at->step);
    int64_t under_way = evaluates || saves || p->in_flight < 1 ? 0 : p->in_flight - 1;
    if (take_until(l, at->step - under_way, err) < 0 || (evaluates && evaluate(l, at, err) < 0))
        return -1;
    return saves ? save(l, at, err) : 0;
}

static int end(loop *l, const ty_loop_position *at, ty_error *err)
{
    if (take_until(l, at->step, err) < 0 || report(l, at, err) < 0)
        return -1;
    /* A stopped run that made no step has nothing to save; what it resumed from is still there. */
    if (l->result->stopped)
        return at->step > l->plan->first_step ? save(l, at, err) : 0;
    return evaluate(l, at, err) < 0 ? -1 : save(l, at, err);
}

int ty_loop_run(const ty_loop_plan *plan, const ty_loop_calls *calls, ty_loop_result *result, ty_error *err)
{
    loop l = {.plan = plan,
              .calls = calls,
              .result = result,
              .evaluated = -1,
              .saved = plan->first_step > 0 ? plan->first_step : -1};
    *result = (ty_loop_result){.steps_done = plan->first_step, .last_loss = NAN};
    ty_loop_position at = ty_loop_position_at(plan, plan->first_step);
    while (at.step < plan->total_steps) {
        result->stopped = calls->stop_requested && calls->stop_requested(calls->ctx);
        if (result->stopped)
            break;
        if (begin_step(&l, err) < 0)
            return -1;
        at = ty_loop_position_at(plan, at.step + 1);
        if (follow_up(&l, &at, err) < 0)
            return -1;
    }
    return end(&l, &at, err);
}
