/* tuner.c - see tuner.h. */
#include "container/input/tuner.h"

#include "base/log.h"

#include <string.h>

#define TUNER_STEP_SHARE 0.02 /* of waiting, that is worth a worker */
#define TUNER_ROOM_SHARE 0.5  /* of idle workers, that one is too many */
#define TUNER_GAIN       1.02 /* less is chance */
#define TUNER_BOTH_SHARE 0.05 /* of idle workers beside a step that waits, that shows an uneven rate */

/* The last change made it slower, or no faster: back, and never again in that direction. */
static bool tuner_regrets(ty_tuner *t, const ty_tuner_look *look)
{
    bool had_more = look->n_workers > t->changed_from;
    if (t->changed_from == 0)
        return false;
    if (had_more ? look->rate >= t->rate_before * TUNER_GAIN : look->rate * TUNER_GAIN >= t->rate_before)
        return false;
    if (had_more)
        t->highest = t->changed_from;
    else
        t->lowest = t->changed_from;
    return true;
}

int ty_tuner_depth(ty_tuner *t, const ty_tuner_look *look, int max_workers)
{
    int from = t->depth_from, n = look->depth;
    int highest = t->highest > 0 && t->highest < max_workers ? t->highest : max_workers;
    bool wants_worker = strcmp(look->cause, "parsing") == 0 && look->n_workers < highest;
    bool is_open = t->deepest == 0 && n < look->max_depth && !wants_worker;
    t->depth_from = 0;
    if (t->is_fixed || t->changed_from != 0)
        return n;
    if (from != 0 && look->rate < t->rate_before * TUNER_GAIN) {
        t->deepest = from;
        return from;
    }
    if (!is_open || look->step_share <= TUNER_STEP_SHARE || look->room_share <= TUNER_BOTH_SHARE)
        return n;
    t->depth_from = n;
    t->rate_before = look->rate;
    return 2 * n < look->max_depth ? 2 * n : look->max_depth;
}

int ty_tuner_decide(ty_tuner *t, const ty_tuner_look *look, int max_workers)
{
    int n = look->n_workers, next = n;
    int highest = t->highest > 0 && t->highest < max_workers ? t->highest : max_workers;
    int lowest = t->lowest > 0 ? t->lowest : 1;
    if (t->is_fixed)
        return n;
    if (tuner_regrets(t, look))
        next = t->changed_from;
    else if (look->step_share > TUNER_STEP_SHARE && strcmp(look->cause, "parsing") == 0 && n < highest)
        next = n + 1;
    else if (look->step_share <= TUNER_STEP_SHARE && look->room_share > TUNER_ROOM_SHARE && n > lowest)
        next = n - 1;
    bool is_regret = next == t->changed_from && next != n;
    t->changed_from = next != n && !is_regret ? n : 0;
    t->rate_before = look->rate;
    return next;
}

ty_prefetch_waits ty_prefetch_waits_between(const ty_prefetch_waits *before, const ty_prefetch_waits *after)
{
    ty_prefetch_waits w = *after;
    w.elapsed_ms -= before->elapsed_ms;
    w.step_ms -= before->step_ms;
    w.source_ms -= before->source_ms;
    w.draw_ms -= before->draw_ms;
    w.parse_ms -= before->parse_ms;
    w.room_ms -= before->room_ms;
    w.cause = ty_prefetch_cause(&w);
    return w;
}

static void tuner_tell_depth(const ty_tuner_look *look, int next)
{
    if (next > look->depth)
        ty_log_info("input",
                    "%d -> %d batches ahead: the step waited %.0f %% of the time and the threads %.0f %%, by turns",
                    look->depth, next, 100 * look->step_share, 100 * look->room_share);
    else if (next < look->depth)
        ty_log_info("input", "%d -> %d batches ahead: more were no faster", look->depth, next);
}

static void tuner_tell(ty_tuner *t, const ty_tuner_look *look, int next)
{
    double percent = 100 * look->step_share;
    bool waits = look->step_share > TUNER_STEP_SHARE, is_idle = !waits && look->room_share > TUNER_ROOM_SHARE;
    if (next > look->n_workers && waits)
        ty_log_info("input", "%d -> %d threads: the step waited %.0f %% of the time, for %s", look->n_workers, next,
                    percent, look->cause);
    else if (next < look->n_workers && is_idle)
        ty_log_info("input", "%d -> %d threads: they had nothing to do for %.0f %% of the time", look->n_workers, next,
                    100 * look->room_share);
    else if (next != look->n_workers)
        ty_log_info("input", "%d -> %d threads: %s", look->n_workers, next,
                    next > look->n_workers ? "fewer were slower" : "more were no faster");
    if (t->cause == NULL || strcmp(t->cause, look->cause) != 0) {
        if (look->step_share <= TUNER_STEP_SHARE)
            ty_log_info("input", "the step is what takes the time (it waited %.1f %%)", percent);
        else
            ty_log_info("input", "%s is what takes the time (the step waited %.0f %%)", look->cause, percent);
    }
    t->cause = look->cause;
}

void ty_tuner_batch(ty_tuner *t, ty_prefetch *p)
{
    ty_prefetch_waits now;
    if (++t->n < TY_TUNER_BATCHES)
        return;
    ty_prefetch_measure(p, &now);
    ty_prefetch_waits w = ty_prefetch_waits_between(&t->since, &now);
    if (w.elapsed_ms < (t->least_ms > 0 ? t->least_ms : TY_TUNER_LEAST_MS))
        return;
    ty_tuner_look look = {.step_share = w.step_ms / w.elapsed_ms,
                          .room_share = w.room_ms / (w.elapsed_ms * w.n_workers),
                          .rate = (double)t->n / w.elapsed_ms,
                          .cause = w.cause,
                          .n_workers = w.n_workers,
                          .depth = ty_prefetch_depth(p),
                          .max_depth = ty_prefetch_max_depth(p)};
    int depth = ty_tuner_depth(t, &look, ty_prefetch_max_workers(p)), next = look.n_workers;
    if (depth != look.depth) {
        ty_prefetch_set_depth(p, depth);
        tuner_tell_depth(&look, depth);
    } else
        next = ty_tuner_decide(t, &look, ty_prefetch_max_workers(p));
    tuner_tell(t, &look, next);
    if (next != look.n_workers)
        ty_prefetch_set_workers(p, next);
    t->since = now;
    t->n = 0;
}
