/* command_compile.c - `trainyard compile RECIPE --output DIR`: kernels for a machine without a C compiler. */
#include "base/file.h"
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

/* As a shell reads it back. */
static void print_word(const char *word)
{
    if (*word &&
        strspn(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=.,:/@%") == strlen(word)) {
        printf(" %s", word);
        return;
    }
    fputs(" '", stdout);
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*word);
    putchar('\'');
}

/* The training that finds them: with the same data and settings it is the same step. */
static void print_use(const ty_arguments_given *given, const char *folder, ty_arena *a)
{
    printf("%s: compiled kernels for this recipe and processors like this one\nuse them: trainyard train", folder);
    print_word(given->words[0]);
    if (given->value[DATA_DIR])
        print_word(ty_arena_printf(a, "--data-dir=%s", given->value[DATA_DIR]));
    for (int i = 0; i < given->n_rest; i++)
        print_word(given->rest[i]);
    print_word(ty_arena_printf(a, "--compiled=%s", folder));
    putchar('\n');
}

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    ty_job job = {.recipe_path = given->words[0], .data_folder = given->value[DATA_DIR]};
    const char *output = given->value[OUTPUT] ? given->value[OUTPUT] : "compiled";
    if (ty_overrides_take(given, a, &job, err) < 0)
        return -1;
    char *folder = ty_arena_strdup(a, output);
    for (size_t n = strlen(folder); n > 1 && folder[n - 1] == '/'; n--)
        folder[n - 1] = 0;
    const char *slash = strrchr(folder, '/');
    if (slash && slash > folder && ty_file_mkdirs(ty_arena_strndup(a, folder, (size_t)(slash - folder)), 0755, err) < 0)
        return -1;
    if (ty_job_compile(&job, folder, NULL, err) < 0)
        return -1;
    print_use(given, folder, a);
    return 0;
}

const ty_command_row ty_command_compile = {
    "compile",
    "RECIPE [--key=value ...]",
    "compile a recipe's kernels for machines without a C compiler",
    "The folder holds objects, what they were compiled for, and which features of the processor they need; all of it "
    "is\n"
    "checked when they are used. A model written in C lies there compiled, too, unless it includes files of its "
    "own.\n\n"
    "    trainyard compile train.yaml --data-dir=data --output=compiled\n"
    "    trainyard train train.yaml --data-dir=data --compiled=compiled\n",
    options,
    N_OPTIONS,
    1,
    1,
    true,
    false,
    run};
