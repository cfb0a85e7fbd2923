/* loop.c - one step after another. */
#include "entrypoint/loop.h"

#include <math.h>
#include <stddef.h>

typedef struct loop {
    ty_loop_plan *plan;
    const ty_loop_calls *calls;
    ty_loop_result *result;
    double loss_sum; /* since the last report */
    int64_t n_steps;
    int64_t evaluated, saved; /* steps at which it was done last; -1: never */
    ty_step_result last;
    ty_loop_position at;                             /* after the last step that was begun */
    ty_loop_position reached[TY_LOOP_IN_FLIGHT + 1]; /* after those whose results are not taken, by step */
} loop;

ty_loop_position ty_loop_position_at(const ty_loop_plan *plan, int64_t step)
{
    int64_t batches = step * plan->accumulate;
    if (plan->batches_per_epoch == 0)
        return (ty_loop_position){step, plan->first_epoch, plan->first_batch};
    return (ty_loop_position){step, batches / plan->batches_per_epoch, batches % plan->batches_per_epoch};
}

bool ty_cadence_due(const ty_cadence *c, const ty_loop_position *before, const ty_loop_position *after)
{
    if (c->n <= 0)
        return false;
    return c->epochs ? after->epoch / c->n > before->epoch / c->n : after->step % c->n == 0;
}

static ty_loop_position *reached(loop *l, int64_t step)
{
    return &l->reached[step % (TY_LOOP_IN_FLIGHT + 1)];
}

static int refuse_not_finite(loop *l, int64_t step, const char *what, double value, ty_error *err)
{
    ty_loop_position at = *reached(l, step);
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

static int check_gradient(loop *l, int64_t step, ty_error *err)
{
    if (isfinite(l->last.grad_norm) || l->last.loss_scale > LEAST_LOSS_SCALE)
        return 0;
    return refuse_not_finite(l, step, "the norm of the gradient", l->last.grad_norm, err);
}

/* The position behind one more batch. */
static void count_batch(const ty_loop_plan *p, ty_loop_position *at, bool ends_epoch)
{
    at->batch++;
    if (p->batches_per_epoch > 0 ? at->batch == p->batches_per_epoch : ends_epoch)
        *at = (ty_loop_position){at->step, at->epoch + 1, 0};
}

static bool is_over(const ty_loop_plan *p, const ty_loop_position *at)
{
    bool by_steps = p->total_steps > 0 || p->batches_per_epoch > 0;
    return p->enough || (by_steps && at->step >= p->total_steps) ||
           (p->batches_per_epoch == 0 && at->epoch >= p->epochs);
}

bool ty_loop_is_over(const ty_loop_plan *plan)
{
    ty_loop_position at = ty_loop_position_at(plan, plan->first_step);
    return is_over(plan, &at);
}

/* *done: the step was made; else the epochs have ended within it. */
static int begin_step(loop *l, bool *done, ty_error *err)
{
    ty_loop_position at = l->at;
    *done = false;
    for (int64_t m = 0; m < l->plan->accumulate; m++) {
        if (m > 0 && is_over(l->plan, &at))
            return l->calls->drop ? l->calls->drop(l->calls->ctx, err) : 0;
        int rc = l->calls->batch(l->calls->ctx, m + 1 == l->plan->accumulate, err);
        if (rc < 0)
            return -1;
        if (rc == TY_LOOP_STOPPED) {
            l->result->stopped = true;
            return m > 0 && l->calls->drop ? l->calls->drop(l->calls->ctx, err) : 0;
        }
        count_batch(l->plan, &at, rc == TY_LOOP_EPOCH_ENDS);
    }
    at.step++;
    l->at = *reached(l, at.step) = at;
    *done = true;
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

/* *saves: the step is to be saved. */
static int evaluate(loop *l, const ty_loop_position *at, bool *saves, ty_error *err)
{
    if (!l->calls->evaluate || l->evaluated == at->step)
        return 0;
    l->evaluated = at->step;
    int rc = l->calls->evaluate(l->calls->ctx, at, err);
    *saves |= rc == TY_LOOP_BETTER;
    l->plan->enough |= rc == TY_LOOP_ENOUGH;
    return rc < 0 ? -1 : 0;
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
    ty_loop_position before = *reached(l, step), at = *reached(l, step + 1);
    l->loss_sum += l->last.loss;
    l->n_steps++;
    l->result->steps_done = at.step;
    l->result->last_loss = l->last.loss;
    if (l->calls->progress)
        l->calls->progress(l->calls->ctx, &at, &l->last);
    return ty_cadence_due(&p->report, &before, &at) ? report(l, &at, err) : 0;
}

static int take_until(loop *l, int64_t step, ty_error *err)
{
    while (l->result->steps_done < step)
        if (take(l, err) < 0)
            return -1;
    return 0;
}

/* What is due after a step that was begun. */
static int follow_up(loop *l, const ty_loop_position *before, ty_error *err)
{
    const ty_loop_plan *p = l->plan;
    const ty_loop_position *at = &l->at;
    bool evaluates = ty_cadence_due(&p->evaluate, before, at), saves = ty_cadence_due(&p->checkpoint, before, at);
    int64_t under_way = evaluates || saves || p->in_flight < 1 ? 0 : p->in_flight - 1;
    if (under_way >= TY_LOOP_IN_FLIGHT)
        under_way = TY_LOOP_IN_FLIGHT - 1;
    if (take_until(l, at->step - under_way, err) < 0 || (evaluates && evaluate(l, at, &saves, err) < 0))
        return -1;
    return saves ? save(l, at, err) : 0;
}

static int end(loop *l, ty_error *err)
{
    const ty_loop_position *at = &l->at;
    bool saves = true;
    if (take_until(l, at->step, err) < 0 || report(l, at, err) < 0)
        return -1;
    /* A stopped run that made no step has nothing to save; what it resumed from is still there. */
    if (l->result->stopped)
        return at->step > l->plan->first_step ? save(l, at, err) : 0;
    return evaluate(l, at, &saves, err) < 0 ? -1 : save(l, at, err);
}

/* All that a run has to do but its end. */
static int run(loop *l, ty_error *err)
{
    const ty_loop_calls *calls = l->calls;
    while (!is_over(l->plan, &l->at)) {
        ty_loop_position before = l->at;
        bool done;
        l->result->stopped = calls->stop_requested && calls->stop_requested(calls->ctx);
        if (l->result->stopped)
            return 0;
        if (begin_step(l, &done, err) < 0)
            return -1;
        if (l->result->stopped)
            return 0;
        if (!done)
            break;
        if (follow_up(l, &before, err) < 0)
            return -1;
    }
    if (l->plan->batches_per_epoch == 0)
        l->plan->total_steps = l->at.step;
    return 0;
}

int ty_loop_run(ty_loop_plan *plan, const ty_loop_calls *calls, ty_loop_result *result, ty_error *err)
{
    loop l = {.plan = plan,
              .calls = calls,
              .result = result,
              .evaluated = -1,
              .saved = plan->first_step > 0 ? plan->first_step : -1,
              .at = ty_loop_position_at(plan, plan->first_step)};
    *result = (ty_loop_result){.steps_done = plan->first_step, .last_loss = NAN};
    *reached(&l, plan->first_step) = l.at;
    return run(&l, err) < 0 ? -1 : end(&l, err);
}
