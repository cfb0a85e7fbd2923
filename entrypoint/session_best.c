/* session_best.c - which evaluation was the best, when the lack of a better one ends the run, and the best's weights.
 *
 * The best one's checkpoint stays whatever `keep` says (ty_checkpoints.also), and so the best survives a run that is
 * interrupted. At the end its states are read back, by all ranks together, as at the start of a run that resumes.
 */
#include "base/log.h"
#include "entrypoint/session.h"
#include "entrypoint/stop.h"

#include <math.h>
#include <string.h>

/* Whether an evaluation here counts: not up to start_from. */
static bool counts(const ty_session *s, const ty_loop_position *at)
{
    const ty_span *from = &s->recipe.early.start_from;
    if (from->n == 0)
        return true;
    return from->epochs ? at->epoch > from->n || (at->epoch == from->n && at->batch > 0) : at->step > from->n;
}

static bool is_better(const ty_session *s, double value)
{
    double delta = s->recipe.early.min_delta;
    if (!isfinite(value))
        return false;
    return !s->has_best || (s->recipe.best_is_high ? value - delta > s->best : value + delta < s->best);
}

static int take_as_best(ty_session *s, int64_t step, double value)
{
    s->has_best = true;
    s->best = value;
    s->best_step = step;
    s->n_worse = 0;
    memcpy(s->best_values, s->latest, sizeof s->latest);
    s->n_best_values = s->n_latest;
    if (!s->recipe.export_best)
        return 0;
    s->checkpoints.also = step;
    return TY_LOOP_BETTER;
}

int ty_session_note_best(ty_session *s, const ty_loop_position *at)
{
    const ty_value_named *watched = &s->latest[s->recipe.best_value];
    if (!counts(s, at))
        return 0;
    if (s->loop.enough) /* resumed behind its end, and measured once more */
        return TY_LOOP_ENOUGH;
    if (is_better(s, watched->value))
        return take_as_best(s, at->step, watched->value);
    if (s->recipe.early.patience == 0 || ++s->n_worse < s->recipe.early.patience)
        return 0;
    if (ty_session_leads(s))
        ty_log_info("train", "step %lld: %s is no better after %lld evaluation%s: the run ends (early_stopping)",
                    (long long)at->step, watched->name, (long long)s->n_worse, s->n_worse == 1 ? "" : "s");
    return TY_LOOP_ENOUGH;
}

void ty_session_resume_best(ty_session *s)
{
    s->checkpoints.also = s->recipe.export_best && s->has_best ? s->best_step : 0;
    s->loop.enough = s->recipe.early.patience > 0 && s->n_worse >= s->recipe.early.patience;
}

/* ---- its weights ---- */

static bool wants_best(const ty_session *s)
{
    return s->recipe.export_best && s->has_best && s->best_step != s->steps_done;
}

/* Rank 0 reads what s->checkpoints asks for; of what is not in its folder the others are asked. */
static int read_states(ty_session *s, ty_checkpoint_restored *found, ty_error *err)
{
    ty_error ignored = {0};
    if (!ty_session_leads(s))
        return ty_session_answer_questions(s, err);
    int rc = ty_checkpoint_restore(&s->checkpoints, s->state, s->n_state, &s->arena, found, err);
    return ty_session_end_questions(s, rc < 0 ? &ignored : err) < 0 ? -1 : rc;
}

/* The states of this step. *was_read: on all ranks; else their content is undefined if *touched, and `why` says more on
 * rank 0. */
static int read_step(ty_session *s, int64_t step, bool *was_read, bool *touched, ty_error *why, ty_error *err)
{
    ty_checkpoint_restored found = {0};
    struct {
        int32_t was_read, touched;
    } news = {0};
    s->checkpoints.only = step;
    int rc = read_states(s, &found, ty_session_leads(s) ? why : err);
    s->checkpoints.only = 0;
    if (rc < 0 && !ty_session_leads(s))
        return -1;
    news.was_read = found.found;
    news.touched = rc < 0;
    if (ty_company_share(s->job->company, "best", &news, sizeof news, err) < 0)
        return -1;
    *was_read = news.was_read;
    *touched = news.touched;
    if (found.found)
        s->written = (ty_loop_position){step, found.state.epoch, found.state.batch};
    return news.was_read ? ty_session_share_state(s, err) : 0;
}

/* The best one's states, or else those of the last step. */
static int read_best(ty_session *s, bool *has_best, ty_error *err)
{
    ty_error why = {0};
    bool touched, has_last = true;
    if (read_step(s, s->best_step, has_best, &touched, &why, err) < 0)
        return -1;
    if (*has_best)
        return 0;
    if (ty_session_leads(s))
        ty_log_warning("export", "the checkpoint of the best evaluation, step %lld, %s%s: the last weights are written",
                       (long long)s->best_step, touched ? "cannot be read: " : "is gone", touched ? why.message : "");
    if (touched && read_step(s, s->steps_done, &has_last, &touched, &why, err) < 0)
        return -1;
    return has_last ? 0
                    : ty_error_set(err, TY_E_CHECKPOINT,
                                   "neither the best checkpoint, of step %lld, nor the last can be read",
                                   (long long)s->best_step);
}

/* What the best evaluation had measured, or measures now, if that was before the run resumed. */
static int recall_values(ty_session *s, ty_error *err)
{
    bool abandoned = false;
    if (s->n_best_values > 0) {
        memcpy(s->latest, s->best_values, sizeof s->latest);
        s->n_latest = s->n_best_values;
    } else if (ty_session_measure(s, &abandoned, err) < 0)
        return ty_error_wrap(err, "evaluation of step %lld", (long long)s->best_step);
    s->evaluated_step = abandoned ? -1 : s->best_step;
    return 0;
}

static int64_t epoch_of_last_step(const ty_session *s)
{
    return s->train_stream.is_on ? s->at.epoch : ty_loop_position_at(&s->loop, s->steps_done).epoch;
}

int ty_session_take_best(ty_session *s, bool stopped, ty_error *err)
{
    int requests = 0;
    bool has_best = false;
    s->written = (ty_loop_position){s->steps_done, epoch_of_last_step(s), 0};
    if (!wants_best(s))
        return 0;
    if (stopped && ty_company_stopping(s->job->company, ty_stop_count(), &requests, err) < 0)
        return -1;
    if (requests > 1 || ty_program_fetch_states(s->program, err) < 0)
        return requests > 1 ? 0 : -1;
    int rc = ty_session_gather_state(s, err);
    if (rc == 0)
        rc = read_best(s, &has_best, err);
    ty_program_states_changed(s->program);
    ty_session_release_state(s);
    return rc < 0 ? -1 : has_best ? recall_values(s, err) : 0;
}
