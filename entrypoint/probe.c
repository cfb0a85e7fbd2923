/* probe.c - the training's loop for some steps, with a clock beside it. */
#include "entrypoint/probe.h"

#include <stdlib.h>
#include <string.h>

typedef struct prober {
    ty_loop_calls calls; /* the session's */
    double *result_s;    /* [n] when each result was taken */
    int n;
} prober;

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Sorts. The mean of the middle two where n is even. */
static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, compare_doubles);
    return (x[(n - 1) / 2] + x[n / 2]) / 2;
}

/* ---- the session's calls, timed ---- */

static int call_batch(void *ctx, bool last, ty_error *err)
{
    prober *p = ctx;
    return p->calls.batch(p->calls.ctx, last, err);
}

static int call_result(void *ctx, ty_step_result *result, ty_error *err)
{
    prober *p = ctx;
    int rc = p->calls.result(p->calls.ctx, result, err);
    p->result_s[p->n++] = ty_session_now_s();
    return rc;
}

static bool call_stop_requested(void *ctx)
{
    prober *p = ctx;
    return p->calls.stop_requested(p->calls.ctx);
}

static int run_steps(ty_session *s, int steps, ty_probe *out, ty_error *err)
{
    int n = TY_PROBE_WARM_UP + steps, under_way = s->loop.in_flight > 1 ? s->loop.in_flight - 1 : 0;
    ty_loop_result result;
    ty_loop_plan plan = s->loop;
    prober p = {.calls = ty_session_calls(s), .result_s = TY_NEW_ARRAY(&s->arena, double, n + under_way)};
    ty_loop_calls calls = {
        .ctx = &p, .batch = call_batch, .result = call_result, .stop_requested = call_stop_requested};
    double start_s = ty_session_now_s(), *each = TY_NEW_ARRAY(&s->arena, double, steps);
    plan.total_steps = n + under_way; /* results of the last ones come at once: they are not counted */
    plan.report = plan.evaluate = plan.checkpoint = (ty_cadence){0};
    if (ty_loop_run(&plan, &calls, &result, err) < 0)
        return -1;
    if (p.n < n)
        return ty_error_set(err, TY_E_STOPPED, "stopped after %d of %d steps", p.n, n);
    out->first_s = p.result_s[0] - start_s;
    for (int i = 0; i < steps; i++)
        each[i] = p.result_s[TY_PROBE_WARM_UP + i] - p.result_s[TY_PROBE_WARM_UP + i - 1];
    out->step_s = median(each, steps);
    out->step_min_s = each[0]; /* sorted now */
    out->step_max_s = each[steps - 1];
    return 0;
}

/* ---- batches of an evaluation ---- */

static int time_batches(ty_session *s, ty_prefetch *batches, double *each, int n, int *done, ty_error *err)
{
    const ty_batch *batch = NULL;
    int rc = 0;
    for (*done = 0; *done < n && rc == 0; (*done)++) {
        double start = ty_session_now_s();
        if (ty_prefetch_next(batches, &batch, err) < 0)
            return -1;
        if (!batch)
            return 0;
        ty_session_point_inputs(s, batch, s->validation_field);
        rc = ty_program_run_timed(s->program, TY_RUN_EVAL, s->inputs, NULL, err);
        ty_prefetch_release(batches, batch);
        each[*done] = ty_session_now_s() - start;
    }
    return rc;
}

/* The first batch warms up, where there are others. */
static int run_evaluation(ty_session *s, int steps, ty_probe *out, ty_error *err)
{
    ty_prefetch *batches = NULL;
    ty_data_feed *feed = NULL;
    ty_prefetch_config config = {.until_epoch = 1};
    double *each = TY_NEW_ARRAY(&s->arena, double, steps + 1);
    int n = 0;
    if (!s->validation)
        return 0;
    if (!s->validation_stream.is_on) {
        config.dataset = s->validation;
        config.sampler = ty_session_sampler(s, true);
    }
    int rc = s->validation_stream.is_on ? ty_session_start_evaluation(s, &batches, &feed, err)
                                        : ty_prefetch_start(&config, &batches, err);
    if (rc == 0)
        rc = time_batches(s, batches, each, steps + 1, &n, err);
    ty_prefetch_stop(batches);
    ty_data_feed_close(feed);
    if (rc == 0 && n > 0)
        out->batch_s = n > 1 ? median(each + 1, n - 1) : each[0];
    return rc;
}

int ty_probe_run(ty_session *s, int steps, double opened_s, ty_probe *out, ty_error *err)
{
    *out = (ty_probe){.n_steps = steps, .opening_s = ty_session_now_s() - opened_s, .compile_s = s->times.compile_s};
    if (getloadavg(&out->load, 1) != 1)
        out->load = 0;
    return run_steps(s, steps, out, err) < 0 ? -1 : run_evaluation(s, steps, out, err);
}
