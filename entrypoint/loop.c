/* loop.c - one step after another. */
#include "entrypoint/loop.h"

#include <math.h>
#include <stddef.h>

typedef struct loop {
    const ty_loop_plan *plan;
    const ty_loop_calls *calls;
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

static int run_step(loop *l, int64_t step, ty_error *err)
{
    for (int64_t m = 0; m < l->plan->accumulate; m++)
        if (l->calls->batch(l->calls->ctx, m + 1 == l->plan->accumulate, &l->last, err) < 0)
            return -1;
    if (!isfinite(l->last.loss))
        return refuse_not_finite(l, step, "the loss", l->last.loss, err);
    if (check_gradient(l, step, err) < 0)
        return -1;
    l->loss_sum += l->last.loss;
    l->n_steps++;
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

/* What is due after a step. */
static int follow_up(loop *l, const ty_loop_position *at, ty_error *err)
{
    const ty_loop_plan *p = l->plan;
    if (l->calls->progress)
        l->calls->progress(l->calls->ctx, at, &l->last);
    if (ty_cadence_due(&p->report, p, at->step) && report(l, at, err) < 0)
        return -1;
    if (ty_cadence_due(&p->evaluate, p, at->step) && evaluate(l, at, err) < 0)
        return -1;
    return ty_cadence_due(&p->checkpoint, p, at->step) ? save(l, at, err) : 0;
}

int ty_loop_run(const ty_loop_plan *plan, const ty_loop_calls *calls, ty_loop_result *result, ty_error *err)
{
    loop l = {.plan = plan, .calls = calls, .evaluated = -1, .saved = plan->first_step > 0 ? plan->first_step : -1};
    *result = (ty_loop_result){.steps_done = plan->first_step, .last_loss = NAN};
    ty_loop_position at = ty_loop_position_at(plan, plan->first_step);
    while (at.step < plan->total_steps) {
        if (calls->stop_requested && calls->stop_requested(calls->ctx)) {
            result->stopped = true;
            /* A run that made no step has nothing to save; what it resumed from is still there. */
            return report(&l, &at, err) < 0 || (at.step > plan->first_step && save(&l, &at, err) < 0) ? -1 : 0;
        }
        if (run_step(&l, at.step, err) < 0)
            return -1;
        at = ty_loop_position_at(plan, at.step + 1);
        result->steps_done = at.step;
        result->last_loss = l.last.loss;
        if (follow_up(&l, &at, err) < 0)
            return -1;
    }
    return report(&l, &at, err) < 0 || evaluate(&l, &at, err) < 0 || save(&l, &at, err) < 0 ? -1 : 0;
}
