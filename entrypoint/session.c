/* session.c - opening a run, phase by phase. */
#include "entrypoint/budget.h"
#include "entrypoint/device.h"
#include "entrypoint/doing.h"
#include "entrypoint/session.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "entrypoint/export.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double ty_session_now_s(void)
{
    return (double)ty_clock_us() / 1e6;
}

static int open_recipe(ty_session *s, ty_error *err)
{
    if (ty_recipe_load(s->job->recipe_path, s->job->overrides, s->job->n_overrides, &s->arena, &s->recipe, err) < 0)
        return -1;
    if (!s->job->company && !s->job->served && s->recipe.processes_per_host > 1)
        ty_log_warning("recipe",
                       "processes_per_host is %lld: ranks are started by `train`; this is one process with "
                       "the whole batch",
                       (long long)s->recipe.processes_per_host);
    return 0;
}

static int check_folders(ty_session *s, ty_error *err)
{
    if (!ty_session_leads(s))
        return 0;
    return ty_export_check(s->job->model_folder, err);
}

static const char *compiled_folder(const ty_session *s)
{
    return s->job->compiled_folder ? s->job->compiled_folder : s->recipe.compiled;
}

static int open_model(ty_session *s, ty_error *err)
{
    const char *kept = s->compile_to ? NULL : compiled_folder(s);
    if (ty_model_open_as(s->recipe.model, kept, &s->recipe.choice, &s->model, err) < 0)
        return ty_file_exists(s->recipe.model)
                   ? -1
                   : ty_error_help(err, "`model` in %s is relative to its folder", s->recipe.path);
    if (ty_model_reseed(s->model, s->recipe.seed, err) < 0 || ty_session_find_fields(s, err) < 0)
        return -1;
    return ty_spec_plan_make(&s->recipe, s->model, &s->arena, &s->plan, err);
}

/* ---- compiling ---- */

const char *ty_session_cache_folder(const ty_session *s)
{
    const char *folder = s->recipe.cache ? s->recipe.cache : s->job->cache_folder;
    return folder && strcmp(folder, "none") != 0 ? folder : NULL;
}

int64_t ty_session_cache_bytes(void)
{
    const char *mb = getenv("TRAINYARD_CACHE_MB");
    return mb ? strtoll(mb, NULL, 10) << 20 : 0;
}

static int compile_once(ty_session *s, ty_error *err)
{
    const char *dump = s->job->dump_folder;
    if (!dump && s->recipe.debug != TY_DEBUG_NONE && s->job->output_folder)
        dump = ty_arena_printf(&s->arena, "%s/compiler", s->job->output_folder);
    bool interpreted = s->recipe.debug == TY_DEBUG_INTERPRET;
    ty_compile_options options = {.backend = interpreted ? TY_BACKEND_INTERPRETER : TY_BACKEND_CPU,
                                  .threads = (int)s->recipe.threads,
                                  .deterministic_strict = s->recipe.deterministic_strict,
                                  .tf32 = s->recipe.tf32,
                                  .dump_dir = dump,
                                  .cache_dir = ty_session_cache_folder(s),
                                  .cache_max_bytes = ty_session_cache_bytes(),
                                  .compiled_dir = compiled_folder(s),
                                  .output_dir = s->compile_to,
                                  .model_name = s->recipe.model,
                                  .cache_note = s->cache_note,
                                  .temporary_bytes = s->temporary_bytes,
                                  .plan_only = s->cache_note && !s->compile_to};
    ty_device_options(s, &options);
    if (ty_spec_build(&s->recipe, &s->plan, s->train, ty_device_replicas(s), ty_session_epoch_steps(s),
                      ty_session_all_steps(s), s->validation != NULL, &s->arena, &s->spec, err) < 0)
        return -1;
    s->spec.train_valid_rows |= ty_session_has_idle_rows(s);
    if ((s->job->served &&
         (ty_served_check_model(s->model, err) < 0 || ty_served_prepare(&s->spec, &s->served_rule, err) < 0)))
        return -1;
    return ty_compile_train(s->model, &s->spec, &options, &s->program, err) < 0
               ? -1
               : ty_session_compile_lengths(s, &options, err);
}

static int compile(ty_session *s, ty_error *err)
{
    double start = ty_session_now_s();
    ty_doing_now(TY_DOING_COMPILE);
    s->is_checked = s->recipe.debug != TY_DEBUG_NONE;
    int rc = ty_device_agree(s, ty_budget_fit(s, err), err);
    if (rc == 0)
        rc = compile_once(s, err);
    if (rc < 0 && ty_device_give_up(s, err))
        rc = ty_budget_fit(s, err) < 0 ? -1 : compile_once(s, err);
    if (rc < 0 && s->on_gpu && err->code == TY_E_LIMIT)
        rc = ty_device_fit(s, err) ? compile_once(s, err) : ty_device_refuse(s, err);
    ty_doing_waits(NULL); /* of GPUs, to be connected */
    if (rc < 0)
        return -1;
    if (ty_session_agree_on_schedule(s, err) < 0)
        return -1;
    s->loop.in_flight = s->is_checked ? 1 : ty_program_in_flight(s->program, TY_RUN_LAST);
    s->inputs = TY_NEW_ARRAY(&s->arena, const void *, s->plan.n_feeds + 1);
    s->inputs[s->plan.n_feeds] = &s->valid;
    s->times.compile_s = ty_session_now_s() - start;
    return 0;
}

/* ---- resuming ---- */

/* States are numbered groups of weights. Settings that sort weights into groups (sparse_rows, no_decay, lr_scale) can
 * leave names and sizes of all states as they are and put others of the same size into them. */
static void hash_layout(ty_session *s)
{
    s->layout = TY_FNV_START;
    for (int i = 0; i < ty_program_n_tensors(s->program); i++) {
        const char *name;
        const char *data = ty_program_tensor(s->program, i, &name, NULL).data;
        s->layout = ty_fnv1a(s->layout, name, strlen(name) + 1);
        for (size_t k = 0; k < s->n_state; k++) {
            ptrdiff_t offset = data - (const char *)s->state[k].data;
            if (offset < 0 || offset >= (ptrdiff_t)ty_type_bytes(&s->state[k].type))
                continue;
            s->layout = ty_fnv1a(s->layout, s->state[k].name, strlen(s->state[k].name) + 1);
            s->layout = ty_fnv1a(s->layout, &offset, sizeof offset);
        }
    }
}

static void list_state(ty_session *s)
{
    s->n_state = (size_t)ty_program_n_states(s->program);
    s->state = TY_NEW_ARRAY(&s->arena, ty_named_tensor, s->n_state);
    for (size_t i = 0; i < s->n_state; i++) {
        ty_tensor t = ty_program_state(s->program, (int)i, &s->state[i].name);
        s->state[i].type = t.type;
        s->state[i].data = t.data;
    }
    hash_layout(s);
}

static int remove_checkpoints(ty_session *s, ty_error *err)
{
    ty_checkpoint_entry *list;
    size_t n = 0;
    if (ty_checkpoints_list(s->checkpoints.dir, &s->arena, &list, &n, err) < 0)
        return -1;
    /* Each manifest goes first: a half-deleted checkpoint must not look whole. */
    for (size_t i = 0; i < n; i++)
        if (ty_file_remove(ty_arena_printf(&s->arena, "%s/%s", list[i].path, TY_MANIFEST_NAME), err) < 0 ||
            ty_file_remove_tree(list[i].path, err) < 0)
            return -1;
    if (n > 0)
        ty_log_info("checkpoint", "removed %zu older checkpoint%s (--fresh)", n, n == 1 ? "" : "s");
    return 0;
}

static void log_notes(const ty_checkpoint_notes *notes, const char *what)
{
    for (size_t i = 0; i < notes->n_lines; i++)
        ty_log_info("checkpoint", "%s%s", what, notes->lines[i]);
}

void ty_session_plan_hash(const ty_session *s, char hash[TY_MANIFEST_HASH_BYTES])
{
    snprintf(hash, TY_MANIFEST_HASH_BYTES, "%.47s.%016llx", ty_program_hash(s->program), (unsigned long long)s->layout);
}

static int take_position(ty_session *s, const ty_checkpoint_restored *found, ty_error *err)
{
    const ty_train_state *state = &found->state;
    if (ty_session_check_run(s, state, err) < 0)
        return ty_error_at(err, "%s", found->path);
    char plan[TY_MANIFEST_HASH_BYTES];
    const char *layout = strrchr(state->plan_hash, '.');
    ty_session_plan_hash(s, plan);
    if (layout && strcmp(layout, strrchr(plan, '.')) != 0) {
        ty_error_set(err, TY_E_CHECKPOINT,
                     "the checkpoint of step %lld has other weights together: with another sparse_rows, no_decay, "
                     "weight_decay or lr_scale",
                     (long long)state->step);
        ty_error_at(err, "%s", found->path);
        return ty_error_help(err, "go on with the settings it was made with, or start anew (--fresh, or an empty "
                                  "checkpoint folder)");
    }
    if (state->plan_hash[0] && strcmp(state->plan_hash, plan) != 0)
        ty_log_warning("checkpoint",
                       "the recipe or the device has changed since the checkpoint: going on as it is now");
    s->loop.first_step = state->step / ty_session_updates(s);
    s->loop.first_epoch = state->epoch;
    s->loop.first_batch = state->batch;
    s->resumed = true;
    s->has_best = state->has_best;
    s->best = state->best_metric;
    s->best_step = state->best_step;
    s->n_worse = state->n_worse;
    ty_session_resume_best(s);
    ty_log_info("checkpoint",
                s->known_steps > 0 ? "resuming at step %lld of %lld from %s%s"
                                   : "resuming at step %lld%.0lld from %s%s",
                (long long)state->step, (long long)s->known_steps, found->path,
                found->skipped.n_lines ? " (newer ones were not valid)" : "");
    if (ty_loop_is_over(&s->loop))
        ty_log_info("checkpoint", "nothing is left to train: %s%s, --fresh starts anew",
                    s->loop.enough ? "no evaluation was better for long enough: " : "",
                    s->loop.enough ? "more patience goes on" : "more epochs or max_steps go on");
    return 0;
}

static void describe_checkpoints(ty_session *s)
{
    bool in_parts = s->recipe.checkpoint_sharded;
    s->checkpoints =
        (ty_checkpoints){.dir = s->job->checkpoint_folder,
                         .keep = (int)s->recipe.checkpoint_keep,
                         .rank = in_parts ? ty_company_rank(s->job->company) : 0,
                         .world_size = in_parts ? ty_company_size(s->job->company) : 1,
                         .on_error = s->recipe.checkpoint_stop_on_error ? TY_CHECKPOINT_STOP : TY_CHECKPOINT_WARN};
    ty_session_fetch_parts(s);
}

static int restore_newest(ty_session *s, ty_error *err)
{
    double start = ty_session_now_s();
    ty_checkpoint_restored found = {0};
    ty_checkpoint_notes notes = {0};
    if (ty_session_identify(s, err) < 0 || ty_checkpoints_open(&s->checkpoints, err) < 0 ||
        (s->job->fresh && remove_checkpoints(s, err) < 0))
        return ty_error_wrap(err, "checkpoint folder");
    if (ty_checkpoint_restore(&s->checkpoints, s->state, s->n_state, &s->arena, &found, err) < 0)
        return -1;
    log_notes(&found.skipped, "skipped ");
    if (found.found && take_position(s, &found, err) < 0)
        return -1;
    if (ty_checkpoints_tidy(&s->checkpoints, &s->arena, &notes, err) == 0)
        log_notes(&notes, "");
    s->times.restore_s = ty_session_now_s() - start;
    return 0;
}

/* Rank 0 restores, from its own host's folder; of what is not there the others are asked. */
static int restore_together(ty_session *s, ty_error *err)
{
    ty_error ignored = {0};
    if (!ty_session_leads(s)) {
        if (s->recipe.checkpoint_sharded && ty_checkpoints_open(&s->checkpoints, err) < 0)
            return -1;
        return ty_session_answer_questions(s, err);
    }
    int rc = restore_newest(s, err);
    return ty_session_end_questions(s, rc < 0 ? &ignored : err) < 0 ? -1 : rc;
}

static int restore(ty_session *s, ty_error *err)
{
    list_state(s);
    if (ty_session_list_served(s, err) < 0)
        return -1;
    describe_checkpoints(s);
    int rc = ty_session_gather_state(s, err);
    if (rc == 0)
        rc = restore_together(s, err);
    if (rc == 0)
        rc = ty_session_share_state(s, err);
    ty_session_release_state(s);
    if (rc < 0)
        return -1;
    ty_session_resume_best(s);
    s->steps_done = s->loop.first_step;
    return 0;
}

/* The newest state before the step that is replayed; the model's own weights where there is none. */
static int restore_to_replay(ty_session *s, ty_error *err)
{
    int64_t step = s->job->replay_step;
    ty_checkpoint_restored found = {0};
    if (step == 0)
        return 0;
    if (s->known_steps > 0 && step > s->known_steps && !s->train_stream.is_on)
        return ty_error_set(err, TY_E_USAGE, "step %lld: this recipe makes steps 1 to %lld", (long long)step,
                            (long long)s->known_steps);
    s->checkpoints = (ty_checkpoints){.dir = s->job->checkpoint_folder, .world_size = 1, .before = step};
    list_state(s);
    if (ty_session_identify(s, err) < 0 ||
        ty_checkpoint_restore(&s->checkpoints, s->state, s->n_state, &s->arena, &found, err) < 0)
        return -1;
    log_notes(&found.skipped, "skipped ");
    s->restored_from = found.path;
    return found.found ? take_position(s, &found, err) : 0;
}

/* ---- starting ---- */

static const char *tensorboard_folder(ty_session *s)
{
    const char *folder = s->recipe.tensorboard;
    if (!folder)
        return s->job->tensorboard_folder;
    if (strcmp(folder, "none") == 0)
        return NULL;
    return folder[0] == '/' ? folder : ty_arena_printf(&s->arena, "%s/%s", s->job->output_folder, folder);
}

static int open_outputs(ty_session *s, ty_error *err)
{
    if (!ty_session_leads(s))
        return 0;
    ty_outputs_config config = {
        .metrics_path = ty_arena_printf(&s->arena, "%s/metrics.jsonl", s->job->output_folder),
        .tensorboard_folder = tensorboard_folder(s),
        .progress = s->job->progress,
        .config_digest = ty_program_hash(s->program),
        .seed = (uint64_t)s->recipe.seed,
        .world_size = s->job->served ? s->job->served->workers : ty_company_size(s->job->company),
        .first_step = s->loop.first_step,
        .total_steps = s->known_steps,
        .resumed = s->resumed,
        .fresh = s->job->fresh,
    };
    return ty_outputs_open(&config, &s->outputs, err);
}

/* Each includes those before it. */
typedef enum phase_need { FOR_PLAN, FOR_COMPILE, FOR_STEPS, FOR_RUN } phase_need;

static const struct {
    const char *name;
    int (*run)(ty_session *s, ty_error *err);
    phase_need need;
} phases[] = {
    {"recipe", open_recipe, FOR_PLAN},
    {"model", open_model, FOR_PLAN},
    {"model", check_folders, FOR_RUN},
    {"data", ty_session_open_data, FOR_PLAN},
    {"data", ty_session_agree_on_data, FOR_PLAN},
    {"device", ty_device_choose, FOR_PLAN},
    {"data", ty_session_choose_batch, FOR_PLAN},
    {"data", ty_session_share_batch, FOR_PLAN},
    {"data", ty_session_plan_steps, FOR_PLAN},
    {"data", ty_session_find_lengths, FOR_PLAN},
    {"compile", compile, FOR_COMPILE},
    {"data", ty_session_check_ranges, FOR_STEPS},
    {"data", ty_session_measure_lengths, FOR_STEPS},
    {"restore", restore, FOR_RUN},
    {"restore", restore_to_replay, FOR_STEPS},
    {"servers", ty_session_open_served, FOR_RUN},
    {"data", ty_session_start_batches, FOR_STEPS},
    {"output", open_outputs, FOR_RUN},
};

static int open_to(ty_session *s, phase_need need, const char **phase, ty_error *err)
{
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        if (phases[i].need > need)
            continue;
        *phase = phases[i].name;
        if (phases[i].run(s, err) < 0)
            return -1;
    }
    return 0;
}

int ty_session_open(ty_session *s, const ty_job *job, const char **phase, ty_error *err)
{
    *s = (ty_session){.job = job, .evaluated_step = -1};
    s->times.started_s = ty_session_now_s();
    ty_arena_init(&s->arena);
    return open_to(s, job->plan_only ? FOR_PLAN : FOR_RUN, phase, err);
}

int ty_session_open_to_compile(ty_session *s, ty_error *err)
{
    const char *phase;
    return open_to(s, FOR_COMPILE, &phase, err);
}

int ty_session_open_for_steps(ty_session *s, ty_error *err)
{
    const char *phase;
    return open_to(s, FOR_STEPS, &phase, err);
}

void ty_session_close(ty_session *s)
{
    ty_served_close(s->served, s->loop.total_steps > 0 && s->steps_done == s->loop.total_steps);
    ty_outputs_close(s->outputs);
    ty_prefetch_stop(s->batches);
    ty_session_close_lengths(s);
    ty_program_free(s->program);
    ty_session_close_streams(s);
    if (!s->validation_stream.is_on)
        ty_dataset_close(s->validation);
    if (!s->train_stream.is_on)
        ty_dataset_close(s->train);
    ty_model_free(s->model);
    ty_arena_fini(&s->check_arena);
    ty_arena_fini(&s->arena);
}
