/* command_compile.c - `trainyard compile RECIPE --output DIR`: kernels for a machine without a C compiler. */
#include "base/file.h"
#include "base/log.h"
#include "entrypoint/command.h"
#include "entrypoint/job.h"
#include "entrypoint/overrides.h"

#include <stdio.h>
#include <string.h>

enum { OUTPUT, DATA_DIR, N_OPTIONS };

static const ty_option options[N_OPTIONS] = {
    [OUTPUT] = {"--output", "DIR", "folder that is made for the compiled kernels (default compiled)", false},
    [DATA_DIR] = {"--data-dir", "DIR", "folder that has the channels as folders or files: shapes come from the data",
                  false},
};

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    bool hit;
    ty_job job = {.recipe_path = given->words[0], .data_folder = given->value[DATA_DIR]};
    const char *output = given->value[OUTPUT] ? given->value[OUTPUT] : "compiled";
    if (ty_log_from_environment(err) < 0 ||
        ty_overrides_parse(given->rest, a, &job.overrides, &job.n_overrides, err) < 0)
        return -1;
    char *folder = ty_arena_strdup(a, output);
    for (size_t n = strlen(folder); n > 1 && folder[n - 1] == '/'; n--)
        folder[n - 1] = 0;
    const char *slash = strrchr(folder, '/');
    if (slash && slash > folder && ty_file_mkdirs(ty_arena_strndup(a, folder, (size_t)(slash - folder)), 0755, err) < 0)
        return -1;
    if (ty_job_compile(&job, folder, NULL, &hit, err) < 0)
        return -1;
    printf("%s: compiled kernels for this recipe and processors like this one\n"
           "use them: trainyard train %s --compiled=%s\n",
           folder, job.recipe_path, folder);
    return 0;
}

const ty_command_row ty_command_compile = {
    "compile",
    "RECIPE [--key=value ...]",
    "compile a recipe's kernels for machines without a C compiler",
    "The folder holds objects, what they were compiled for, and which features of the processor they need; all of it "
    "is\n"
    "checked when they are used. A model written in C is compiled when it is opened and still needs a C compiler.\n\n"
    "    trainyard compile train.yaml --data-dir=data --output=compiled\n"
    "    trainyard train train.yaml --data-dir=data --compiled=compiled\n",
    options,
    N_OPTIONS,
    1,
    1,
    true,
    false,
    run};
