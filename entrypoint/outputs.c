/* outputs.c - one report, four readers. */
#include "entrypoint/outputs.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "container/output/events.h"
#include "container/output/metrics.h"
#include "container/output/progress.h"
#include "base/version.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_VALUES = 64, N_SPLITS = 2 };

#define EVENT_FILES "events.out.tfevents."

struct ty_outputs {
    ty_metrics_file *file;
    ty_events *events[N_SPLITS]; /* by ty_split; validation's is opened with its first report */
    const char *folder;
    int64_t resume_step;
    ty_progress progress;
    const char *bottleneck; /* that was told last */
    bool warned;
    ty_arena arena;
};

static double now_s(void)
{
    return (double)ty_clock_us() / 1e6;
}

static void warn_once(ty_outputs *o, const ty_error *err)
{
    if (!o->warned)
        ty_log_warning("output", "%s; training goes on without", err->message);
    o->warned = true;
}

static const char *split_folder(ty_outputs *o, int split)
{
    return ty_arena_printf(&o->arena, "%s/%s", o->folder, split == TY_SPLIT_TRAIN ? "train" : "validation");
}

/* Event files as TensorBoard's rule names them; all else in the folder is somebody else's. */
static int remove_events(ty_outputs *o, int split, size_t *n_removed, ty_error *err)
{
    const char *folder = split_folder(o, split);
    ty_file_entry *entry;
    size_t n = 0;
    if (ty_file_is_folder(folder) && ty_file_list(folder, &o->arena, &entry, &n, err) < 0)
        return -1;
    for (size_t i = 0; i < n; i++) {
        if (entry[i].kind != 'f' || strncmp(entry[i].name, EVENT_FILES, strlen(EVENT_FILES)) != 0)
            continue;
        if (ty_file_remove(ty_arena_printf(&o->arena, "%s/%s", folder, entry[i].name), err) < 0)
            return -1;
        ++*n_removed;
    }
    return 0;
}

/* Steps of earlier runs beside those of this one would be two curves in one. */
static int remove_earlier(ty_outputs *o, const char *metrics_path, ty_error *err)
{
    size_t n = 0;
    bool had_metrics = ty_file_exists(metrics_path);
    if (ty_file_remove(metrics_path, err) < 0)
        return -1;
    for (int split = 0; o->folder && split < N_SPLITS; split++)
        if (remove_events(o, split, &n, err) < 0)
            return -1;
    if (had_metrics || n > 0)
        ty_log_info("output", "removed %s%s%zu event file%s of earlier runs (--fresh)",
                    had_metrics ? "metrics.jsonl" : "", had_metrics ? " and " : "", n, n == 1 ? "" : "s");
    return 0;
}

int ty_outputs_open(const ty_outputs_config *c, ty_outputs **out, ty_error *err)
{
    ty_progress_mode mode;
    if (ty_progress_mode_parse(c->progress ? c->progress : "auto", &mode, err) < 0)
        return -1;
    ty_outputs *o = calloc(1, sizeof *o);
    if (!o)
        return ty_error_set(err, TY_E_LIMIT, "out of memory");
    ty_arena_init(&o->arena);
    o->folder = c->tensorboard_folder ? ty_arena_strdup(&o->arena, c->tensorboard_folder) : NULL;
    o->resume_step = c->resumed ? c->first_step : -1;
    ty_metrics_header header = {.ts_s = ty_events_now(),
                                .version = TY_VERSION,
                                .config_digest = c->config_digest,
                                .model_digest = "",
                                .world_size = c->world_size > 0 ? c->world_size : 1,
                                .seed = c->seed,
                                .resumed_step = o->resume_step};
    if ((c->fresh && remove_earlier(o, c->metrics_path, err) < 0) ||
        ty_metrics_file_open(c->metrics_path, &header, &o->file, err) < 0 ||
        (o->folder &&
         ty_events_open(split_folder(o, TY_SPLIT_TRAIN), o->resume_step, &o->events[TY_SPLIT_TRAIN], err) < 0)) {
        ty_outputs_close(o);
        return -1;
    }
    ty_progress_init(&o->progress, STDERR_FILENO, mode, c->first_step, c->total_steps, now_s());
    *out = o;
    return 0;
}

static void add_events(ty_outputs *o, const ty_metrics_row *row)
{
    ty_error err = {0};
    int split = (int)row->split;
    if (!o->folder)
        return;
    if (!o->events[split] && ty_events_open(split_folder(o, split), o->resume_step, &o->events[split], &err) < 0) {
        warn_once(o, &err);
        return;
    }
    for (size_t i = 0; i < row->n_metrics; i++)
        if (ty_events_scalar(o->events[split], row->step, row->ts_s, row->metrics[i].name, (float)row->metrics[i].value,
                             &err) < 0)
            warn_once(o, &err);
}

int ty_outputs_add(ty_outputs *o, bool validation, int64_t step, int64_t epoch, const ty_value_named *values, int n,
                   ty_error *err)
{
    ty_metric metrics[MAX_VALUES];
    ty_metrics_row row = {.ts_s = ty_events_now(),
                          .step = step,
                          .epoch = epoch,
                          .split = validation ? TY_SPLIT_VALIDATION : TY_SPLIT_TRAIN,
                          .metrics = metrics};
    for (; row.n_metrics < (size_t)n && row.n_metrics < MAX_VALUES; row.n_metrics++)
        metrics[row.n_metrics] = (ty_metric){values[row.n_metrics].name, values[row.n_metrics].value};
    ty_progress_clear(&o->progress);
    if (ty_metrics_print(STDOUT_FILENO, &row, err) < 0)
        return -1;
    ty_error file_err = {0};
    if (ty_metrics_file_add(o->file, &row, &file_err) < 0)
        warn_once(o, &file_err);
    add_events(o, &row);
    return 0;
}

/* The name where it changes alone: texts are kept one by one. */
void ty_outputs_input(ty_outputs *o, int64_t step, double wait_share, const char *bottleneck)
{
    ty_events *e = o->events[TY_SPLIT_TRAIN];
    ty_error err = {0};
    double now = ty_events_now();
    if (!e)
        return;
    int rc = ty_events_scalar(e, step, now, "input/wait_share", (float)wait_share, &err);
    if (rc == 0 && (!o->bottleneck || strcmp(o->bottleneck, bottleneck) != 0))
        rc = ty_events_text(e, step, now, "input/bottleneck", bottleneck, &err);
    o->bottleneck = bottleneck;
    if (rc < 0)
        warn_once(o, &err);
}

void ty_outputs_progress(ty_outputs *o, char event, int64_t step, int64_t epoch, double loss,
                         const ty_outputs_pace *pace)
{
    ty_progress_state state = {.step = step,
                               .epoch = epoch,
                               .loss = loss,
                               .samples_per_s = pace->samples_per_s,
                               .data_share = pace->data_share,
                               .comm_share = pace->comm_share,
                               .compute_share = 1 - pace->data_share - (pace->comm_share > 0 ? pace->comm_share : 0),
                               .comm_ms = pace->comm_ms,
                               .data_cause = pace->data_cause};
    ty_progress_event what = event == 'c'   ? TY_PROGRESS_CHECKPOINT
                             : event == 'e' ? TY_PROGRESS_EPOCH
                                            : TY_PROGRESS_STEP;
    ty_progress_update(&o->progress, what, &state, now_s());
}

void ty_outputs_flush(ty_outputs *o)
{
    ty_error err = {0};
    for (int i = 0; i < N_SPLITS; i++)
        if (o->events[i] && ty_events_flush(o->events[i], &err) < 0)
            warn_once(o, &err);
}

void ty_outputs_close(ty_outputs *o)
{
    if (!o)
        return;
    ty_progress_clear(&o->progress);
    for (int i = 0; i < N_SPLITS; i++)
        ty_events_close(o->events[i], NULL);
    ty_metrics_file_close(o->file, NULL);
    ty_arena_fini(&o->arena);
    free(o);
}
