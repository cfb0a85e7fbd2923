/* command_info.c - `trainyard version` and `trainyard explain CODE`. */
#include "base/error.h"
#include "base/json.h"
#include "entrypoint/command.h"
#include "entrypoint/follow.h"
#include "base/version.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>
#include <zlib.h>

#ifndef TY_COMMIT
#define TY_COMMIT "unknown"
#endif

enum { VERBOSE, JSON, N_OPTIONS };

static const ty_option version_options[N_OPTIONS] = {
    [VERBOSE] = {"--verbose", NULL, "commit, compiler and libraries too", false},
    [JSON] = {"--json", NULL, "one JSON object on stdout", false},
};

typedef struct fact {
    const char *name, *value;
} fact;

static const char *yaml_version(void)
{
    static char text[32];
    int major, minor, patch;
    yaml_get_version(&major, &minor, &patch);
    snprintf(text, sizeof text, "%d.%d.%d", major, minor, patch);
    return text;
}

static void print_json(const fact *facts, size_t n)
{
    ty_buf out;
    ty_json_writer w;
    ty_buf_init(&out, 1 << 16);
    ty_json_writer_init(&w, &out, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    for (size_t i = 0; i < n; i++)
        ty_json_put_string(&w, facts[i].name, facts[i].value);
    ty_json_close(&w);
    puts(out.data);
    ty_buf_fini(&out);
}

static int run_version(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    (void)a, (void)err;
    const fact facts[] = {
        {"version", TY_VERSION},     {"commit", TY_COMMIT},   {"compiler", __VERSION__},
        {"libyaml", yaml_version()}, {"zlib", zlibVersion()},
    };
    size_t n = sizeof facts / sizeof facts[0];
    if (given->value[JSON]) {
        print_json(facts, n);
        return 0;
    }
    puts(TY_VERSION_LINE);
    for (size_t i = 1; i < n && given->value[VERBOSE]; i++)
        printf("%-9s %s\n", facts[i].name, facts[i].value);
    return 0;
}

/* Exit statuses that no error stands for. */
static const char *meaning_of_status(long status)
{
    static const struct {
        int status;
        const char *meaning;
    } rows[] = {
        {0, "Done. After `submit --wait`, `status --wait` or `logs --follow`: the training job completed."},
        {TY_EXIT_USAGE_ERROR, "The command line is wrong."},
        {TY_EXIT_JOB_STOPPED, "The training job that was waited for was stopped by somebody."},
        {TY_EXIT_JOB_FAILED, "The training job that was waited for failed; its reason was printed."},
        {TY_EXIT_JOB_OUT_OF_TIME, "The training job that was waited for was stopped because its time was up."},
        {64, "The command line of the container's `train` is wrong."},
        {65, "Data or a model are damaged, do not fit, or made a loss that is not finite."},
        {66, "An input is missing: a file, a folder or a channel."},
        {69, "A service could not be reached."},
        {70, "Something failed that should not: a fault of this program, of a library, or a lost rank."},
        {71, "A limit of the system was met, or its C compiler is missing."},
        {73, "An output cannot be written: the disk is full, or the folder is not to be written to."},
        {74, "Reading or writing failed."},
        {77, "The operating system or a service forbids it."},
        {78, "The configuration is wrong: the recipe, a hyperparameter, or what they say together."},
        {130, "Stopped by signal 2 (Ctrl-C), with a checkpoint; the same command goes on."},
        {137, "Killed by signal 9, often for want of memory; the same command goes on from the newest checkpoint."},
        {143, "Stopped by signal 15, with a checkpoint; the same command goes on."},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].status == status)
            return rows[i].meaning;
    return NULL;
}

static int run_explain(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    (void)a, (void)err;
    const char *text = given->words[0];
    char *end;
    text += toupper((unsigned char)*text) == 'E';
    long number = strtol(text, &end, 10);
    const char *meaning = *text && *end == 0 ? ty_error_meaning((ty_code)number) : NULL;
    const char *status = *text && *end == 0 && text == given->words[0] ? meaning_of_status(number) : NULL;
    if (status) {
        printf("exit status %ld: %s\n", number, status);
        return 0;
    }
    if (!meaning) {
        fprintf(stderr, "trainyard: there is no error \"%s\"; codes look like E0107, exit statuses like 78\n",
                given->words[0]);
        return TY_EXIT_USAGE_ERROR;
    }
    printf("E%04ld: %s\nexit status: %d%s\n", number, meaning, ty_error_exit_status((ty_code)number),
           (ty_code)number == TY_E_USAGE ? " of `train`, 2 of `trainyard`" : "");
    return 0;
}

const ty_command_row ty_command_version = {
    "version", "", "print the version", NULL, version_options, N_OPTIONS, 0, 0, false, false, run_version};
const ty_command_row ty_command_explain = {"explain",
                                           "CODE",
                                           "say what an error code or an exit status means",
                                           "    trainyard explain E0107\n    trainyard explain 4\n",
                                           NULL,
                                           0,
                                           1,
                                           1,
                                           false,
                                           false,
                                           run_explain};
