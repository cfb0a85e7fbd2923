/* session_calls.c - what the loop does with a session: a batch, an evaluation, a checkpoint, a report. */
#include "base/log.h"
#include "entrypoint/doing.h"
#include "entrypoint/report_names.h"
#include "entrypoint/session.h"
#include "entrypoint/stop.h"
#include "entrypoint/tally.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The double that a person would write for a float: 0.01 for 0.01f, which is 0.00999999978. */
static double as_written(float value)
{
    char text[32];
    if (!isfinite(value))
        return value;
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value)
            break;
    }
    return strtod(text, NULL);
}

/* The first element of an output as a number; NAN if the program has no such output. */
static double read_number(const ty_session *s, ty_run run, const char *name)
{
    const ty_tensor *t = ty_program_output(s->started, run, name);
    if (!t || !t->data || ty_type_elems(&t->type) < 1)
        return NAN;
    switch (t->type.dtype) {
    case TY_F32:
        return *(const float *)t->data;
    case TY_F64:
        return *(const double *)t->data;
    case TY_I64:
        return (double)*(const int64_t *)t->data;
    case TY_I32:
        return *(const int32_t *)t->data;
    default:
        return NAN;
    }
}

void ty_session_point_inputs(ty_session *s, const ty_batch *batch, const int *fields)
{
    for (int i = 0; i < s->plan.n_feeds; i++)
        s->inputs[i] = batch->field[fields[i]].data;
    /* Counted over the rows of all ranks, of which ours come behind those of the ranks before us. */
    s->valid = ty_company_rank(s->job->company) * batch->n_rows + batch->n_valid;
    s->pushed_rows = s->spec.train_valid_rows ? batch->n_valid : batch->n_rows;
}

/* ---- checked steps ---- */

/* Rows of a value whose first axis is the batch are samples. */
static const char *find_sample(ty_session *s, const ty_bad_value *bad, const ty_batch *batch)
{
    char place[TY_ERROR_PLACE_BYTES];
    int64_t row = bad->index[0];
    if (bad->type.rank == 0 || bad->type.dim[0] != batch->n_rows || strcmp(bad->op, "state") == 0 ||
        batch == &s->train_stream.idle)
        return NULL;
    ty_prefetch_place(s->batches, batch, s->plan.n_feeds > 0 ? s->train_field[0] : 0, row, place, sizeof place);
    return ty_arena_printf(&s->check_arena, "sample %lld (%s)", (long long)batch->samples[row], place);
}

/* What is found belongs to a step: micro-batches add to it. */
static int run_checked(ty_session *s, ty_run run, const ty_batch *batch, ty_error *err)
{
    if (!s->in_step) {
        ty_arena_fini(&s->check_arena);
        ty_arena_init(&s->check_arena);
        s->check = (ty_check){0};
    }
    s->in_step = run == TY_RUN_MICRO;
    int known = s->check.n_bad;
    int rc = ty_program_run_checked(s->started, run, s->inputs, &s->check_arena, &s->check, err);
    for (int i = known; i < s->check.n_bad; i++)
        s->bad_sample[i] = find_sample(s, &s->check.bad[i], batch);
    return rc;
}

/* The loop refuses a loss; weights that are lost it would notice a step later. */
static int judge_checked(ty_session *s, const ty_step_result *result, ty_error *err)
{
    if (!s->is_checked || s->check.n_bad == 0 || !isfinite(result->loss))
        return 0;
    if (s->check.reached) {
        ty_error_set(err, TY_E_NOT_FINITE, "weights or moments are not finite after step %lld, its loss still is",
                     (long long)s->steps_done + 1);
        return ty_error_help(err, "lower the learning rate, add clip: {global_norm: 1.0}, or keep the named operation "
                                  "away from where its gradient is infinite");
    }
    if (!s->told_harmless && result->loss_scale == 0)
        ty_log_warning("debug", "step %lld: %s in layer %s (%s) is not finite, which reaches neither loss nor weights",
                       (long long)s->steps_done + 1, s->check.bad[0].result.text, s->check.bad[0].layer,
                       s->check.bad[0].op);
    s->told_harmless = true;
    return 0;
}

/* On GPUs ranks wait for each other within a run, where their agents do not see it. */
static void tell_wait(const ty_session *s, const char *what)
{
    if (s->on_gpu && s->job->company)
        ty_doing_waits(what);
}

static int start_run(ty_session *s, ty_run run, ty_error *err)
{
    tell_wait(s, "a step on GPUs");
    int rc = ty_program_start(s->started, run, s->inputs, err);
    tell_wait(s, NULL);
    return rc;
}

static int finish_run(const ty_session *s, ty_run run, ty_error *err)
{
    tell_wait(s, "a step on GPUs");
    int rc = ty_program_finish(s->started, run, err);
    tell_wait(s, NULL);
    return rc;
}

/* The result of the oldest step that s->started has begun. */
static int read_result(ty_session *s, ty_step_result *result, ty_error *err)
{
    ty_run run = TY_RUN_LAST;
    if (finish_run(s, run, err) < 0)
        return -1;
    s->n_open--;
    double norm = read_number(s, run, "grad_norm");
    bool has_norm = ty_program_output(s->started, run, "grad_norm") != NULL;
    double lr = as_written((float)read_number(s, run, "lr"));
    bool scaled = ty_program_output(s->started, run, "loss_scale") != NULL;
    *result = (ty_step_result){read_number(s, run, "loss"), lr, has_norm ? norm : -1,
                               scaled ? read_number(s, run, "loss_scale") : 0};
    return 0;
}

/* What is under way is finished, and its results are put aside, before another program runs. */
static int change_program(ty_session *s, ty_program *to, ty_error *err)
{
    int n = to != s->started ? ty_program_in_flight(s->started, TY_RUN_MICRO) : 0;
    for (int i = 0; i < n && s->in_step; i++)
        if (finish_run(s, TY_RUN_MICRO, err) < 0)
            return -1;
    while (to != s->started && s->n_open > 0)
        if (read_result(s, &s->result[s->n_results++], err) < 0)
            return -1;
    s->started = to;
    return 0;
}

static int next_batch(ty_session *s, const ty_batch **batch, ty_error *err)
{
    if (s->train_stream.is_on)
        return ty_session_next_batch(s, batch, err);
    if (ty_prefetch_next(s->batches, batch, err) < 0)
        return ty_error_wrap(err, "data.train");
    return *batch ? 0 : ty_error_set(err, TY_E_INTERNAL, "the training data ended early");
}

static int pass_batch(ty_session *s, const ty_batch *batch, bool *ends, ty_error *err)
{
    if (s->train_stream.is_on)
        return ty_session_pass_batch(s, batch, ends, err);
    ty_prefetch_release(s->batches, batch);
    return 0;
}

static int run_batch(ty_session *s, const ty_batch *batch, ty_run run, ty_error *err)
{
    ty_session_point_inputs(s, batch, s->train_field);
    if (change_program(s, ty_session_cut_inputs(s, batch, true), err) < 0 || ty_session_ask_epoch(s, batch, err) < 0 ||
        (s->served && ty_served_read(s->served, s->inputs, err) < 0))
        return -1;
    int rc = s->is_checked ? run_checked(s, run, batch, err) : start_run(s, run, err);
    s->in_step = run == TY_RUN_MICRO;
    s->n_open += rc == 0 && run == TY_RUN_LAST;
    return rc;
}

static int call_batch(void *ctx, bool last, ty_error *err)
{
    ty_session *s = ctx;
    const ty_batch *batch;
    bool ends = false;
    double start = ty_session_now_s();
    if (s->stop_err.code != TY_E_NONE) {
        *err = s->stop_err;
        return -1;
    }
    ty_doing_step(s->steps_done + 1);
    ty_doing_now(TY_DOING_DATA);
    int rc = next_batch(s, &batch, err);
    if (rc != 0)
        return rc;
    double ready = ty_session_now_s();
    ty_doing_now(TY_DOING_STEP);
    if (run_batch(s, batch, last ? TY_RUN_LAST : TY_RUN_MICRO, err) < 0 || pass_batch(s, batch, &ends, err) < 0)
        return -1;
    ty_tuner_batch(&s->tuner, s->batches);
    s->times.input_wait_s += ready - start;
    s->times.compute_s += ty_session_now_s() - ready;
    return ends ? TY_LOOP_EPOCH_ENDS : 0;
}

/* Gradients of a step that does not come about, and how many of its batches there were. */
static int call_drop(void *ctx, ty_error *err)
{
    ty_session *s = ctx;
    if (change_program(s, s->program, err) < 0 || ty_program_fetch_states(s->program, err) < 0)
        return -1;
    for (int i = 0; i < ty_program_n_states(s->program); i++) {
        const char *name;
        ty_tensor t = ty_program_state(s->program, i, &name);
        if (strncmp(name, "grad.", 5) == 0 || strcmp(name, "micro") == 0)
            memset(t.data, 0, ty_type_bytes(&t.type));
    }
    ty_program_states_changed(s->program);
    ty_log_info("data", "the last batches make no whole step of %lld: they are left out",
                (long long)s->recipe.accumulate);
    return 0;
}

/* Of the oldest step whose result nobody has taken. */
static int next_result(ty_session *s, ty_step_result *result, ty_error *err)
{
    if (s->n_results == 0)
        return read_result(s, result, err);
    *result = s->result[0];
    memmove(s->result, s->result + 1, sizeof s->result[0] * (size_t)--s->n_results);
    return 0;
}

static int call_result(void *ctx, ty_step_result *result, ty_error *err)
{
    ty_session *s = ctx;
    double start = ty_session_now_s();
    if (next_result(s, result, err) < 0)
        return -1;
    s->times.compute_s += ty_session_now_s() - start;
    double lr = result->lr;
    if (s->served && s->pushed_rows == 0) { /* a mean of nothing, which servers leave out */
        result->loss = isfinite(s->last_loss) ? s->last_loss : 0;
        result->grad_norm = -1;
    }
    if (s->served && ty_served_push(s->served, lr, s->pushed_rows, err) < 0)
        return -1;
    if (s->times.first_step_s == 0)
        s->times.first_step_s = ty_session_now_s() - s->times.started_s;
    return judge_checked(s, result, err);
}

/* ---- evaluation ---- */

/* What the batches so far add up to. */
typedef struct sums {
    double loss, loss_count;
    ty_tally metric[TY_SESSION_MAX_METRICS]; /* as the recipe's */
    int n;
} sums;

static int add_metric(const ty_session *s, ty_tally *tally, const char *metric, ty_error *err)
{
    char name[128];
    const ty_tensor *parts[TY_TALLY_MAX_PARTS] = {0};
    for (int i = 0; ty_tally_part(tally->kind, i); i++) {
        snprintf(name, sizeof name, "%s.%s", metric, ty_tally_part(tally->kind, i));
        parts[i] = ty_program_output(s->started, TY_RUN_EVAL, name);
    }
    return ty_tally_add(tally, parts, err) < 0 ? ty_error_wrap(err, "metric \"%s\"", metric) : 0;
}

static int add_sums(const ty_session *s, sums *all, ty_error *err)
{
    all->loss += read_number(s, TY_RUN_EVAL, "loss.sum");
    all->loss_count += read_number(s, TY_RUN_EVAL, "loss.count");
    for (int i = 0; i < all->n; i++)
        if (add_metric(s, &all->metric[i], s->plan.metrics[i].name, err) < 0)
            return -1;
    return 0;
}

static int finish_batch(const ty_session *s, sums *all, ty_error *err)
{
    return finish_run(s, TY_RUN_EVAL, err) < 0 ? -1 : add_sums(s, all, err);
}

static void free_sums(sums *all)
{
    for (int i = 0; i < all->n; i++)
        ty_tally_fini(&all->metric[i]);
}

/* The batches of an evaluation, in either form. */
typedef struct evaluated {
    ty_prefetch *batches;
    ty_data_feed *feed;
} evaluated;

/* NULL: there are no more. */
static int next_evaluated(ty_session *s, const evaluated *e, const ty_batch **batch, ty_error *err)
{
    return s->validation_stream.is_on ? ty_session_next_evaluated(s, e->batches, batch, err)
                                      : ty_prefetch_next(e->batches, batch, err);
}

/* An evaluation that the rate or the end of the run depends on is not repeated after resuming: it is finished. */
static int is_abandoned(const ty_session *s, bool *abandoned, ty_error *err)
{
    int requests;
    if (ty_company_stopping(s->job->company, ty_stop_count(), &requests, err) < 0)
        return -1;
    bool counts = s->spec.schedule.kind == TY_SCHED_PLATEAU || s->recipe.early.patience > 0 || s->recipe.export_best;
    *abandoned = requests > (counts ? 1 : 0);
    return 0;
}

/* Before another program runs, what is under way is added up. */
static int start_evaluated(ty_session *s, const ty_batch *batch, int *under_way, sums *all, ty_error *err)
{
    ty_session_point_inputs(s, batch, s->validation_field);
    ty_program *program = ty_session_cut_inputs(s, batch, false);
    for (; program != s->started && *under_way > 0; --*under_way)
        if (finish_batch(s, all, err) < 0)
            return -1;
    return change_program(s, program, err) < 0 ? -1 : start_run(s, TY_RUN_EVAL, err);
}

/* Batches are begun, and their results added up when as many are under way as may be. */
static int evaluate_batches(ty_session *s, const evaluated *e, sums *all, bool *abandoned, ty_error *err)
{
    const ty_batch *batch = NULL;
    int under_way = 0, rc;
    while ((rc = next_evaluated(s, e, &batch, err)) == 0 && batch) {
        if (is_abandoned(s, abandoned, err) < 0)
            return -1;
        if (*abandoned)
            break;
        rc = start_evaluated(s, batch, &under_way, all, err);
        ty_session_release(&s->validation_stream, e->batches, batch);
        if (rc == 0 && ++under_way == ty_program_in_flight(s->started, TY_RUN_EVAL)) {
            under_way--;
            rc = finish_batch(s, all, err);
        }
        if (rc < 0)
            return -1;
    }
    while (rc == 0 && under_way-- > 0)
        rc = finish_batch(s, all, err);
    return rc;
}

/* All ranks take part in each batch of an evaluation: those whose host has fewer add rows that do not count. */
static int agree_on_batches(ty_session *s, ty_sampler_config *config, ty_error *err)
{
    int64_t rows = config->batch_size * config->n_shards;
    config->epoch_batches = (config->n_samples + rows - 1) / rows;
    return ty_company_most(s->job->company, "batches of an evaluation", &config->epoch_batches, err);
}

static int start_evaluation(ty_session *s, evaluated *e, ty_error *err)
{
    ty_prefetch_config config = {.dataset = s->validation, .sampler = ty_session_sampler(s, true), .until_epoch = 1};
    if (s->validation_stream.is_on)
        return ty_session_start_evaluation(s, &e->batches, &e->feed, err);
    if (s->validation_sharded && agree_on_batches(s, &config.sampler, err) < 0)
        return -1;
    if (ty_session_set_ring(s, s->validation, config.sampler.batch_size, &config, err) < 0)
        return ty_error_wrap(err, "data.validation");
    return ty_prefetch_start(&config, &e->batches, err);
}

static int run_evaluation(ty_session *s, sums *all, bool *abandoned, ty_error *err)
{
    evaluated e = {0};
    int rc = start_evaluation(s, &e, err);
    if (rc == 0)
        rc = evaluate_batches(s, &e, all, abandoned, err);
    ty_prefetch_stop(e.batches);
    ty_data_feed_close(e.feed);
    return rc;
}

static void take_results(ty_session *s, sums *all)
{
    s->latest[0] = (ty_value_named){"loss", all->loss / all->loss_count};
    for (int i = 0; i < all->n; i++)
        s->latest[i + 1] = (ty_value_named){s->plan.metrics[i].name, ty_tally_value(&all->metric[i])};
    s->n_latest = all->n + 1;
}

/* Tells the plateau, whose numbers are a state of the program and so in every checkpoint. */
static int note_plateau(ty_session *s, int64_t step, ty_error *err)
{
    const char *metric = s->recipe.schedule.metric ? s->recipe.schedule.metric : "loss";
    if (s->spec.schedule.kind != TY_SCHED_PLATEAU)
        return 0;
    if (ty_program_fetch_states(s->program, err) < 0)
        return -1;
    for (size_t i = 0; i < s->n_state; i++)
        for (int k = 0; k < s->n_latest && strcmp(s->state[i].name, "plateau") == 0; k++)
            if (strcmp(s->latest[k].name, metric) == 0 &&
                ty_plateau_note(&s->spec.schedule, s->spec.optimizer.lr, s->state[i].data, s->latest[k].value))
                ty_log_info("train", "step %lld: %s is on a plateau, the learning rate falls", (long long)step, metric);
    ty_program_states_changed(s->program);
    return 0;
}

int ty_session_measure(ty_session *s, bool *abandoned, ty_error *err)
{
    sums all = {.n = s->recipe.n_metrics};
    double start = ty_session_now_s();
    for (int i = 0; i < all.n; i++)
        all.metric[i].kind = s->plan.metrics[i].kind;
    ty_doing_now(TY_DOING_EVALUATE);
    int rc = run_evaluation(s, &all, abandoned, err);
    s->times.evaluate_s += ty_session_now_s() - start;
    if (rc == 0 && !*abandoned)
        take_results(s, &all);
    free_sums(&all);
    return rc;
}

static int call_evaluate(void *ctx, const ty_loop_position *at, ty_error *err)
{
    ty_session *s = ctx;
    bool abandoned = false;
    if (!s->validation)
        return 0;
    int rc = ty_session_is_last(s, at->step) ? ty_session_join(s, at->step, err) : 0;
    if (rc == 0 && s->served)
        rc = ty_served_settle(s->served, err);
    if (rc == 0)
        rc = ty_session_measure(s, &abandoned, err);
    if (rc < 0)
        return ty_error_wrap(err, "evaluation after step %lld", (long long)at->step);
    if (abandoned)
        return 0;
    s->evaluated_step = at->step;
    int outcome = ty_session_note_best(s, at);
    if (note_plateau(s, at->step, err) < 0)
        return -1;
    if (!s->outputs) /* another rank's; or replay: only the rate follows */
        return outcome;
    ty_outputs_flush(s->outputs);
    return ty_outputs_add(s->outputs, true, at->step, at->epoch, s->latest, s->n_latest, err) < 0 ? -1 : outcome;
}

/* ---- checkpoints ---- */

static bool saves_parts(const ty_session *s)
{
    return s->job->company && s->recipe.checkpoint_sharded;
}

static int save(ty_session *s, const ty_loop_position *at, ty_error *err)
{
    ty_error save_err = {0};
    double start = ty_session_now_s();
    ty_train_state state = {.step = at->step * ty_session_updates(s),
                            .epoch = at->epoch,
                            .batch = at->batch,
                            .seed = (uint64_t)s->recipe.seed,
                            .has_best = s->has_best,
                            .best_metric = s->has_best ? s->best : 0,
                            .best_step = s->best_step,
                            .n_worse = s->n_worse};
    if ((s->served && (ty_session_join(s, at->step, err) < 0 || ty_served_settle(s->served, err) < 0 ||
                       ty_served_fetch(s->served, err) < 0)) ||
        ty_program_fetch_states(s->program, err) < 0)
        return ty_error_wrap(err, "checkpoint of step %lld", (long long)at->step);
    ty_session_plan_hash(s, state.plan_hash);
    memcpy(state.recipe_hash, s->run_hash, sizeof state.recipe_hash);
    memcpy(state.run, s->run_text, sizeof state.run);
    if (s->outputs)
        ty_outputs_flush(s->outputs);
    int rc = saves_parts(s) ? ty_session_save_parts(s, &state, &save_err)
                            : ty_checkpoint_save(&s->checkpoints, &state, s->state, s->n_state, &save_err);
    if (s->served && rc == 0)
        ty_served_save(s->served);
    s->times.checkpoint_s += ty_session_now_s() - start;
    if (rc == 0) {
        ty_log_info("checkpoint", "step %lld saved", (long long)at->step);
        return 0;
    }
    if (ty_checkpoints_must_stop(&s->checkpoints) || ty_stop_count() > 0) {
        *err = save_err;
        return -1;
    }
    ty_log_warning("checkpoint", "%s; training goes on", save_err.message);
    return 0;
}

/* Rank 0 writes, and the others go on, unless each writes its part; states that are kept in parts are gathered by all.
 */
static int call_checkpoint(void *ctx, const ty_loop_position *at, ty_error *err)
{
    ty_session *s = ctx;
    ty_doing_now(TY_DOING_SAVE);
    int rc = ty_session_gather_state(s, err);
    if (rc == 0 && (ty_session_leads(s) || saves_parts(s)))
        rc = save(s, at, err);
    ty_session_release_state(s);
    return rc;
}

/* ---- reports ---- */

/* What bounded the rate since the last report. */
static void report_input(ty_session *s, int64_t step, double share)
{
    ty_prefetch_waits now, w;
    if (!s->batches || !(share >= 0))
        return;
    ty_prefetch_measure(s->batches, &now);
    w = ty_prefetch_waits_between(&s->reported_waits, &now);
    s->reported_waits = now;
    ty_outputs_input(s->outputs, step, share < 1 ? share : 1, w.cause);
}

static int call_report(void *ctx, const ty_loop_report *r, ty_error *err)
{
    ty_session *s = ctx;
    if (!s->outputs)
        return 0;
    double busy = s->times.compute_s + s->times.input_wait_s;
    double rows = (double)(r->n_steps * s->recipe.accumulate * s->recipe.batch_size);
    double span = busy - s->times.reported_s, waited = ty_company_waited_s(s->job->company);
    double waited_ms = 1e3 * (waited - s->times.reported_comm_s) / (double)r->n_steps;
    double input_share = (s->times.input_wait_s - s->times.reported_input_s) / span;
    double data_ms = 1e3 * (s->times.input_wait_s - s->times.reported_input_s) / (double)r->n_steps;
    s->times.reported_s = busy;
    s->times.reported_input_s = s->times.input_wait_s;
    s->times.reported_comm_s = waited;
    const struct {
        bool known;
        double value;
    } reports[TY_N_REPORTS] = {
        [TY_REPORT_LOSS] = {true, r->mean_loss},
        [TY_REPORT_LR] = {!isnan(r->lr), r->lr}, /* of a step of the model's own: unknown */
        [TY_REPORT_GRAD_NORM] = {r->grad_norm >= 0, r->grad_norm},
        [TY_REPORT_LOSS_SCALE] = {r->loss_scale > 0, r->loss_scale},
        [TY_REPORT_SAMPLES_PER_S] = {span > 0, rows / span},
        [TY_REPORT_DATA_MS] = {true, data_ms},
        [TY_REPORT_COMM_MS] = {ty_session_sees_waits(s), waited_ms},
        [TY_REPORT_BAD] = {s->recipe.train.skip_bad, (double)ty_session_bad(s, false)->n},
    };
    report_input(s, r->at.step, input_share);
    ty_value_named values[TY_N_REPORTS];
    int n = 0;
    for (int i = 0; i < TY_N_REPORTS; i++)
        if (reports[i].known)
            values[n++] = (ty_value_named){ty_report_name((ty_report)i), reports[i].value};
    return ty_outputs_add(s->outputs, false, r->at.step, r->at.epoch, values, n, err);
}

static void call_progress(void *ctx, const ty_loop_position *at, const ty_step_result *last)
{
    ty_session *s = ctx;
    double busy = s->times.compute_s + s->times.input_wait_s;
    double steps = (double)(at->step - s->loop.first_step), waited = ty_company_waited_s(s->job->company);
    double rows = steps * (double)(s->recipe.accumulate * s->recipe.batch_size);
    ty_outputs_pace pace = {.comm_share = ty_session_sees_waits(s) ? 0 : -1};
    if (busy > 0) {
        pace.samples_per_s = rows / busy;
        pace.data_share = s->times.input_wait_s / busy;
        pace.data_cause = pace.data_share > 0.02 ? ty_session_input_cause(s) : NULL;
    }
    if (busy > 0 && ty_session_sees_waits(s)) {
        pace.comm_share = waited / busy;
        pace.comm_ms = 1e3 * waited / steps;
    }
    s->steps_done = at->step;
    s->last_loss = last->loss;
    if (!s->outputs)
        return;
    char event = at->batch == 0 ? 'e' : 's';
    ty_outputs_progress(s->outputs, event, at->step, at->epoch, last->loss, &pace);
}

static bool call_stop_requested(void *ctx)
{
    ty_session *s = ctx;
    int requests = 0;
    ty_company_stopping(s->job->company, ty_stop_count(), &requests, &s->stop_err);
    return requests > 0;
}

ty_loop_calls ty_session_calls(ty_session *s)
{
    return (ty_loop_calls){
        .ctx = s,
        .batch = call_batch,
        .drop = call_drop,
        .result = call_result,
        .evaluate = s->validation && (ty_session_leads(s) || !ty_served_is_job(s->job->served)) ? call_evaluate : NULL,
        .checkpoint = call_checkpoint,
        .report = call_report,
        .progress = call_progress,
        .stop_requested = call_stop_requested};
}
