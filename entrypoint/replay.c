/* replay.c - see replay.h. */
#include "entrypoint/replay.h"

#include <math.h>

/* Between checkpoint and step only the plateau listens to evaluations, and only to those that were due. */
static int evaluate_if_due(void *ctx, const ty_loop_position *at, ty_error *err)
{
    ty_session *s = ctx;
    ty_loop_position before = ty_loop_position_at(&s->loop, at->step - 1);
    if (s->spec.schedule.kind != TY_SCHED_PLATEAU || !ty_cadence_due(&s->loop.evaluate, &before, at))
        return 0;
    return ty_session_calls(s).evaluate(s, at, err) < 0 ? -1 : 0;
}

static int run_before(ty_session *s, int64_t step, ty_error *err)
{
    ty_loop_plan plan = s->loop;
    ty_loop_calls all = ty_session_calls(s);
    ty_loop_calls calls = {
        .ctx = s, .batch = all.batch, .result = all.result, .evaluate = all.evaluate ? evaluate_if_due : NULL};
    ty_loop_result result;
    if (s->train_stream.is_on && s->spec.schedule.kind == TY_SCHED_PLATEAU)
        return ty_error_set(err, TY_E_CONFIG,
                            "a step of a stream cannot be replayed with the schedule plateau: which "
                            "evaluations came before it is not known");
    if (s->train_stream.is_on && s->loop.first_step >= step - 1)
        return 0;
    plan.total_steps = step - 1;
    s->is_checked = false;
    if (ty_loop_run(&plan, &calls, &result, err) < 0)
        return ty_error_wrap(err, "before the step to replay");
    if (result.steps_done < step - 1)
        return ty_error_set(err, TY_E_USAGE, "step %lld: the stream ends after step %lld", (long long)step,
                            (long long)result.steps_done);
    return 0;
}

int ty_replay_run(ty_session *s, ty_replay *out, ty_error *err)
{
    int64_t step = s->job->replay_step;
    ty_loop_calls calls = ty_session_calls(s);
    *out = (ty_replay){.at = ty_loop_position_at(&s->loop, step - 1), .from_step = s->loop.first_step};
    if (run_before(s, step, err) < 0)
        return -1;
    if (s->train_stream.is_on)
        out->at = (ty_loop_position){step - 1, s->at.epoch, s->at.batch};
    s->is_checked = true;
    s->told_harmless = true;
    s->steps_done = step - 1;
    int rc = 0;
    for (int64_t i = 0; i < s->recipe.accumulate && rc == 0; i++)
        rc = calls.batch(s, i + 1 == s->recipe.accumulate, err);
    if (rc == 0)
        rc = calls.result(s, &out->result, err);
    if (rc < 0 && err->code != TY_E_NOT_FINITE)
        return -1;
    *err = (ty_error){0};                           /* that something is not finite is the answer here */
    bool norm_counts = out->result.loss_scale == 0; /* else the step is skipped */
    out->is_wrong =
        s->check.reached || !isfinite(out->result.loss) || (norm_counts && !isfinite(out->result.grad_norm));
    return 0;
}
