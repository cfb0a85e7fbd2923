/* command_train.c - `trainyard train RECIPE`: the built-in trainer without a container. */
#include "base/file.h"
#include "container/config/paths.h"
#include "entrypoint/cache_folder.h"
#include "entrypoint/command.h"
#include "entrypoint/job.h"
#include "entrypoint/overrides.h"
#include "entrypoint/recipe.h"
#include "entrypoint/served.h"
#include "entrypoint/stop.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ORIGIN, DATA_DIR, OUTPUT_DIR, FRESH, PROGRESS, COMPILED, DUMP, SERVERS, WORKER, SERVER_MODE, N_OPTIONS };

static const ty_option options[N_OPTIONS] = {
    [ORIGIN] = {"--origin", NULL, "print every setting with its origin, and end", false},
    [DATA_DIR] = {"--data-dir", "DIR", "folder that has the channels as folders or files", false},
    [OUTPUT_DIR] = {"--output-dir", "DIR", "where everything is written: model/, checkpoints/, output/ (default run)",
                    false},
    [FRESH] = {"--fresh", NULL, "remove older checkpoints and metrics and start anew", false},
    [PROGRESS] = {"--progress", "MODE", "auto, plain, bar, none or json", false},
    [COMPILED] = {"--compiled", "DIR", "use kernels that `trainyard compile` left there, and no C compiler", false},
    [DUMP] = {"--dump-dir", "DIR", "write graphs, kernels and memory plan of the compiler there", false},
    [SERVERS] = {"--servers", "ADDRESSES", "weights live in these parameter servers (host:port,host:port)", false},
    [WORKER] = {"--worker", "K/N", "with --servers: this is worker K of N, each with its own data (default 0/1)",
                false},
    [SERVER_MODE] = {"--server-mode", "MODE", "with --servers: async (default), bounded:STEPS, sync or sync:BACKUP",
                     false},
};

static int print_origin(const char *path, const ty_recipe_override *overrides, int n, ty_arena *a, ty_error *err)
{
    ty_recipe recipe;
    ty_buf text;
    if (ty_recipe_load(path, overrides, n, a, &recipe, err) < 0)
        return -1;
    ty_buf_init(&text, 1 << 20);
    ty_recipe_print_origin(&recipe, &text);
    fputs(text.data, stdout);
    ty_buf_fini(&text);
    return 0;
}

/* What was refused before it wrote anything leaves no empty folders: those that stand there go, the innermost first. */
static void remove_empty(const ty_paths *paths, const ty_job *job)
{
    const char *const folder[] = {job->model_folder, job->checkpoint_folder, job->output_folder, paths->output,
                                  paths->base};
    for (size_t i = 0; i < sizeof folder / sizeof *folder; i++)
        rmdir(folder[i]);
}

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    ty_paths paths;
    ty_job_end end;
    const char *base = given->value[OUTPUT_DIR] ? given->value[OUTPUT_DIR] : "run";
    ty_job job = {.recipe_path = given->words[0],
                  .data_folder = given->value[DATA_DIR],
                  .dump_folder = given->value[DUMP],
                  .fresh = given->value[FRESH] != NULL,
                  .progress = given->value[PROGRESS],
                  .compiled_folder = given->value[COMPILED],
                  .cache_folder = ty_cache_folder(a)};
    if (ty_overrides_take(given, a, &job, err) < 0)
        return -1;
    if (given->value[ORIGIN])
        return print_origin(job.recipe_path, job.overrides, job.n_overrides, a, err);
    ty_served_options served;
    uint8_t key[TY_SEAL_KEY_BYTES];
    if (given->value[SERVERS]) {
        if (ty_served_parse(given->value[SERVERS], given->value[WORKER], given->value[SERVER_MODE], a, &served, err) <
                0 ||
            ty_served_key(key, err) < 0)
            return -1;
        served.key = key;
        job.served = &served;
    }
    ty_paths_init(&paths, a, base);
    job.model_folder = paths.model;
    job.checkpoint_folder = paths.checkpoints;
    job.output_folder = paths.output_data;
    job.tensorboard_folder = ty_arena_printf(a, "%s/tensorboard", paths.output);
    bool is_new = !ty_file_exists(base);
    int rc = ty_stop_install(err) < 0 || ty_file_mkdirs(base, 0755, err) < 0 ? -1 : ty_job_train(&job, &end, NULL, err);
    if (rc < 0 && is_new)
        remove_empty(&paths, &job);
    if (rc < 0)
        return -1;
    return end == TY_JOB_COMPLETE ? 0 : 128 + ty_stop_signal();
}

const ty_command_row ty_command_train = {
    "train",
    "RECIPE|MODEL [--key=value ...]",
    "train a model as a recipe says",
    "Settings are keys of the recipe by dotted name, or aliases such as --lr, --epochs, --batch_size\n"
    "(`trainyard help recipe`). A run that was stopped goes on from its newest checkpoint.\n\n"
    "    trainyard train train.yaml --data-dir=data --epochs=5\n"
    "    trainyard train train.yaml --optimizer.adamw.lr=3e-4 --origin\n\n"
    "A model file may stand for a recipe; --data and --validation name files or folders of arrays or tables, --target\n"
    "what the model's output is compared with (`data.train.target` in `trainyard help recipe`).\n\n"
    "    trainyard train model.onnx --data=train.csv --target=label --loss=mse\n",
    options,
    N_OPTIONS,
    1,
    1,
    true,
    false,
    run};
