/* worker.c - from the files of a job to a running program or training. */
#define _GNU_SOURCE
#include "entrypoint/worker.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/home.h"
#include "base/json.h"
#include "base/log.h"
#include "container/config/container_config.h"
#include "container/config/environment.h"
#include "container/config/failure.h"
#include "entrypoint/code.h"
#include "entrypoint/complain.h"
#include "entrypoint/job.h"
#include "entrypoint/launch.h"
#include "entrypoint/locate.h"
#include "entrypoint/overrides.h"
#include "entrypoint/rank.h"
#include "entrypoint/report.h"
#include "entrypoint/script.h"
#include "entrypoint/stop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char **environ;

typedef struct worker {
    ty_arena arena;
    ty_container_config config;
    bool config_read;
    const char *const *args;
    ty_job_progress progress;
    bool is_rank;        /* of the built-in trainer */
    bool awaited;        /* other hosts wait for this one, and must be told if it cannot come */
    ty_launch_end first; /* that failed, of all ranks: where first.status is not 0 */
} worker;

/* ---- failing ---- */

/* A suggestion stands under the excerpt, which the failure file has no room for: it becomes the help. */
static void help_from_detail(ty_error *err)
{
    const char *suggestion = strstr(err->detail, "did you mean");
    if (suggestion && !err->help[0])
        ty_error_help(err, "%.*s", (int)strcspn(suggestion, "\n"), suggestion);
}

static int fail(worker *w, ty_error *err, int status)
{
    ty_failure failure = ty_failure_none();
    ty_error write_err = {0};
    ty_paths paths;
    ty_complain(err);
    ty_paths_init(&paths, &w->arena, getenv(TY_PATHS_BASE_VARIABLE));
    help_from_detail(err);
    failure.error = err;
    failure.phase = w->progress.phase;
    failure.step = w->progress.step;
    failure.exit_status = status;
    failure.time_ms = ty_clock_utc_ms();
    failure.host = w->config_read ? w->config.resources.current_host : NULL;
    if (err->code == TY_E_RANK) {
        failure.host = w->first.host[0] ? w->first.host : NULL;
        failure.phase = w->first.phase[0] ? w->first.phase : NULL;
        failure.rank = w->first.rank;
        failure.names_culprit = w->first.is_named;
        failure.step = w->first.step;
    }
    if (ty_file_mkdirs(paths.output, 0755, &write_err) < 0 ||
        ty_failure_write(&failure, paths.failure, paths.failure_json, NULL, &write_err) < 0)
        ty_log_warning("worker", "no failure file: %s", write_err.message);
    return status;
}

/* ---- the user's program ---- */

static char **program_environment(worker *w)
{
    const ty_container_config *c = &w->config;
    ty_hardware hardware = ty_hardware_detect();
    ty_environment e;
    ty_environment_sources sources = {&c->paths,    &c->hyperparameters, &c->arguments, &c->resources, &c->distribution,
                                      &c->channels, &c->program,         &hardware,     &c->inherited};
    ty_environment_init(&e, &w->arena, &sources);
    for (size_t i = 0; i < e.n_left_out; i++)
        ty_log_warning("script", "variable %s is too long for the system and is left out", e.left_out[i]);
    ty_log_info("script", "%zu variables SM_* and others are set", e.n_items);
    return ty_environment_block(&e, &w->arena, (const char *const *)environ);
}

/* The hyperparameters' arguments, then what stood on our own command line. */
static const char *const *program_arguments(worker *w)
{
    size_t n = w->config.arguments.n_words, n_extra = 0;
    while (w->args[n_extra])
        n_extra++;
    const char **out = TY_NEW_ARRAY(&w->arena, const char *, n + n_extra + 1);
    if (n > 0)
        memcpy(out, w->config.arguments.words, n * sizeof *out);
    memcpy(out + n, w->args, n_extra * sizeof *out);
    return out;
}

/* ---- several ranks ---- */

/* The agent's part of the worker, for a program or for ranks of the trainer. */
static int run_ranks(worker *w, ty_launch *launch, ty_error *err)
{
    launch->config = &w->config;
    w->awaited = false;
    w->progress.phase = "ranks";
    if (ty_launch_ranks(launch, &w->arena, &w->first, err) < 0)
        return w->first.status ? w->first.status : ty_error_exit_status(err->code);
    if (w->first.stopped && w->first.status > 128 && ty_stop_count() == 0)
        ty_note_stopped(w->first.status - 128);
    return w->first.status;
}

/* Other hosts have read their own files, may have found nothing wrong with them, and would wait. */
static void tell_others(worker *w, const ty_error *trouble)
{
    ty_error ignored = {0};
    ty_launch launch = {.config = &w->config, .trouble = trouble};
    ty_launch_end end;
    ty_log_info("dist", "telling the other hosts that this one cannot begin");
    ty_launch_ranks(&launch, &w->arena, &end, &ignored);
}

/* Whether a program is one of several ranks; TF_CONFIG is set where there is a cluster to tell. */
static int map_program(worker *w, ty_cluster *cluster, ty_error *err)
{
    ty_hardware hardware = ty_hardware_detect();
    if (ty_cluster_make(cluster, &w->arena, &w->config, &hardware, NULL, err) < 0)
        return -1;
    if (cluster->tf_config)
        setenv("TF_CONFIG", cluster->tf_config, 1);
    w->awaited = cluster->starts_ranks && cluster->n_hosts > 1;
    return 0;
}

static int run_program_ranks(worker *w, const ty_cluster *cluster, const ty_command *command, ty_error *err)
{
    const char *const *argv = command->argv;
    if (command->path) {
        int n = 0;
        while (argv[n])
            n++;
        const char **other = TY_NEW_ARRAY(&w->arena, const char *, n + 1);
        memcpy(other, argv, (size_t)n * sizeof *other);
        other[0] = command->path;
        argv = other;
    }
    ty_launch launch = {
        .cluster = cluster, .argv = argv, .cwd = command->cwd, .by_mpirun = cluster->mpi_options != NULL};
    return run_ranks(w, &launch, err);
}

static int run_program(worker *w, const char *program, ty_error *err)
{
    ty_command command;
    ty_cluster cluster;
    ty_script script = {.program = program, .code_folder = w->config.paths.code, .args = program_arguments(w)};
    w->progress.phase = "script";
    environ = program_environment(w);
    if (map_program(w, &cluster, err) < 0 || ty_script_prepare(&script, &w->arena, &command, err) < 0)
        return ty_error_exit_status(err->code);
    if (cluster.starts_ranks)
        ty_script_as_rank(&command, cluster.data_parallel_library, &w->arena);
    const char *text = ty_command_text(&command, &w->arena);
    ty_log_info("script", "running: %s", text);
    if (cluster.starts_ranks)
        return run_program_ranks(w, &cluster, &command, err);
    ty_note_send(program, text);
    ty_stop_uninstall();
    if (ty_stop_count() > 0)
        return 128 + ty_stop_signal();
    int status;
    ty_script_execute(&command, &status, err);
    return status;
}

/* ---- the built-in trainer ---- */

static ty_job_channel *list_channels(worker *w)
{
    const ty_channels *c = &w->config.channels;
    ty_job_channel *out = TY_NEW_ARRAY(&w->arena, ty_job_channel, c->n_items);
    for (size_t i = 0; i < c->n_items; i++)
        out[i] = (ty_job_channel){.name = c->items[i].name,
                                  .path = c->items[i].path,
                                  .content_type = c->items[i].content_type,
                                  .mode = (ty_job_mode)c->items[i].mode,
                                  .sharded = c->items[i].sharded,
                                  .record_io = c->items[i].record_io};
    return out;
}

static bool is_true(const worker *w, const char *name, bool absent)
{
    const ty_hyperparameter *h = ty_hyperparameters_find(&w->config.hyperparameters, name);
    return h ? strcmp(h->text, "true") == 0 || strcmp(h->text, "1") == 0 : absent;
}

/* What clients of SageMaker's Training Compiler send. Its log lines are kept, since people search for them; whether it
 * is enabled changes nothing here, where everything is compiled. */
static bool compiler_debugs(const worker *w)
{
    if (!ty_hyperparameters_find(&w->config.hyperparameters, "sagemaker_training_compiler_enabled"))
        return false;
    ty_log_info("config", "Found configuration for Training Compiler");
    if (!is_true(w, "sagemaker_training_compiler_enabled", false))
        return false;
    ty_log_info("config", "Configuring SM Training Compiler...");
    if (!is_true(w, "sagemaker_training_compiler_debug_mode", false))
        return false;
    ty_log_info("config", "Training Compiler set to debug mode");
    return true;
}

/* Hyperparameters first, arguments last: the later one wins. */
static int list_overrides(worker *w, ty_job *job, ty_error *err)
{
    const ty_hyperparameters *h = &w->config.hyperparameters;
    const ty_recipe_override *from_args;
    int n_args, n = 0;
    if (ty_overrides_parse(w->args, &w->arena, &from_args, &n_args, err) < 0)
        return -1;
    ty_recipe_override *out = TY_NEW_ARRAY(&w->arena, ty_recipe_override, h->n_items + (size_t)n_args + 1);
    if (compiler_debugs(w))
        out[n++] = (ty_recipe_override){"debug", "true", "hyperparameter \"sagemaker_training_compiler_debug_mode\""};
    n += ty_overrides_of_hyperparameters(h, &w->arena, out + n);
    memcpy(out + n, from_args, (size_t)n_args * sizeof *out);
    job->overrides = out;
    job->n_overrides = n + n_args;
    return 0;
}

/* LocalPath of tensorboardoutputconfig.json, or output/tensorboard. */
static const char *tensorboard_folder(worker *w)
{
    const char *file = ty_paths_config_file(&w->config.paths, &w->arena, "tensorboardoutputconfig.json");
    const char *folder = NULL;
    ty_doc *doc;
    if (ty_file_exists(file) && ty_json_read(&w->arena, file, NULL, &doc, NULL) == 0 && ty_doc_find(doc, "LocalPath"))
        ty_doc_string(ty_doc_find(doc, "LocalPath"), &folder, NULL);
    return folder && *folder ? folder : ty_arena_printf(&w->arena, "%s/tensorboard", w->config.paths.output);
}

static int make_job(worker *w, const char *recipe, ty_job *job, ty_error *err)
{
    const ty_container_config *c = &w->config;
    const ty_hyperparameter *named = ty_hyperparameters_find(&c->hyperparameters, "recipe");
    *job = (ty_job){
        .channels = list_channels(w),
        .n_channels = (int)c->channels.n_items,
        .pipe_state_folder = ty_arena_printf(&w->arena, "%s/pipe_state", c->paths.base),
        .data_folder = c->channels.n_items == 0 ? c->paths.input_data : NULL,
        .model_folder = c->paths.model,
        .checkpoint_folder = c->paths.checkpoints,
        .output_folder = c->paths.output_data,
        .tensorboard_folder = tensorboard_folder(w),
        .name = c->inherited.job_name,
        .cache_folder = getenv("TRAINYARD_CACHE_DIR"),
    };
    if (!recipe && named)
        recipe = named->text;
    return ty_recipe_locate(recipe, c->paths.code, job->channels, job->n_channels, &w->arena, &job->recipe_path, err) <
                       0 ||
                   list_overrides(w, job, err) < 0
               ? -1
               : 0;
}

/* The same executable as a rank, with the same arguments; by its own name, for those who look at ps, as long as it
 * still lies there. */
static const char *const *rank_command(worker *w)
{
    const char *self = ty_home_program();
    int n = 0;
    while (w->args[n])
        n++;
    const char **argv = TY_NEW_ARRAY(&w->arena, const char *, n + 3);
    argv[0] = access(self, X_OK) == 0 ? self : "/proc/self/exe";
    argv[1] = "rank";
    memcpy(argv + 2, w->args, (size_t)n * sizeof *argv);
    return argv;
}

static int map_ranks(worker *w, const ty_job *job, ty_recipe *recipe, ty_cluster *cluster, ty_error *err)
{
    ty_hardware hardware = {0}; /* the trainer's ranks are not counted by GPUs */
    return ty_recipe_load(job->recipe_path, job->overrides, job->n_overrides, &w->arena, recipe, err) < 0 ||
                   ty_cluster_make(cluster, &w->arena, &w->config, &hardware, recipe, err) < 0
               ? -1
               : 0;
}

static int run_trainer(worker *w, const char *named, ty_error *err)
{
    ty_job job;
    ty_recipe recipe;
    ty_cluster cluster;
    ty_job_end end;
    w->progress.phase = "config";
    w->awaited = !w->is_rank && w->config.resources.n_hosts > 1;
    if (make_job(w, named, &job, err) < 0 || map_ranks(w, &job, &recipe, &cluster, err) < 0)
        return ty_error_exit_status(err->code);
    if (cluster.starts_ranks && !w->is_rank) {
        ty_launch launch = {.cluster = &cluster, .how = &recipe.distributed, .argv = rank_command(w)};
        return run_ranks(w, &launch, err);
    }
    w->awaited = false;
    int rc = w->is_rank ? ty_rank_train(&job, &recipe, &cluster, &end, &w->progress, err)
                        : ty_job_train(&job, &end, &w->progress, err);
    if (rc < 0)
        return ty_error_exit_status(err->code);
    return end == TY_JOB_COMPLETE ? 0 : 128 + ty_stop_signal();
}

/* ---- both ---- */

static int prepare(worker *w, ty_error *err)
{
    w->progress = (ty_job_progress){"config", -1};
    if (ty_log_from_environment(err) < 0 ||
        ty_container_config_read(&w->config, &w->arena, (const char *const *)environ, err) < 0)
        return -1;
    w->config_read = true;
    if (w->config.resources.n_hosts > 1)
        ty_log_set_label(w->config.resources.current_host);
    for (size_t i = 0; i < w->config.n_notices; i++)
        ty_log_info("config", "%s", w->config.notices[i]);
    if (w->config.program.framework_module)
        ty_log_warning("config",
                       "SAGEMAKER_TRAINING_MODULE (%s) names a Python framework's launcher and is not used here",
                       w->config.program.framework_module);
    return ty_paths_create(&w->config.paths, err);
}

static int fetch_code(worker *w, ty_error *err)
{
    ty_code_outcome outcome;
    w->progress.phase = "code";
    if (ty_code_fetch(w->config.program.submit_directory, w->config.paths.code, &outcome, err) < 0)
        return -1;
    if (outcome == TY_CODE_PRESENT)
        ty_log_info("code", "%s has content and is taken as it is", w->config.paths.code);
    else if (outcome == TY_CODE_FETCHED)
        ty_log_info("code", "%s was filled from %s", w->config.paths.code, w->config.program.submit_directory);
    return 0;
}

static int run_job(worker *w, ty_error *err)
{
    if (prepare(w, err) < 0)
        return ty_error_exit_status(err->code);
    const char *program = w->config.program.entry_point;
    bool is_named = program && *program, is_program = is_named && !ty_recipe_is_name(program);
    w->awaited = !w->is_rank && w->config.resources.n_hosts > 1 && !is_program;
    if (!w->is_rank && fetch_code(w, err) < 0)
        return ty_error_exit_status(err->code);
    if (is_program)
        return run_program(w, program, err);
    return run_trainer(w, is_named ? program : NULL, err);
}

static int run(const char *const *args, bool is_rank)
{
    worker w = {.args = args, .is_rank = is_rank, .first = {.rank = -1, .step = -1}};
    ty_error err = {0};
    ty_arena_init(&w.arena);
    ty_note_keep();
    int status = ty_stop_install(&err) < 0 ? ty_error_exit_status(err.code) : run_job(&w, &err);
    /* A stop reaches our helpers (compiler, installer) too: that they died of it is no fault. It may be seen to end
     * the helper before it is counted here. */
    if (err.code != TY_E_NONE)
        ty_stop_uninstall();
    bool helper_was_stopped = err.code != TY_E_NONE && ty_stop_count() > 0 && w.progress.step < 0;
    if (helper_was_stopped)
        status = 128 + ty_stop_signal();
    else if (err.code != TY_E_NONE && w.is_rank)
        ty_complain(&err);
    else if (err.code != TY_E_NONE) {
        if (w.awaited)
            tell_others(&w, &err);
        status = fail(&w, &err, status);
    }
    ty_arena_fini(&w.arena);
    return status;
}

int ty_worker_run(const char *const *args)
{
    return run(args, false);
}

int ty_worker_run_rank(const char *const *args)
{
    return run(args, true);
}
