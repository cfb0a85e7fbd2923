/* command.h - a command of `trainyard`: one row of the table in trainyard.c, one file command_*.c.
 *
 * Conventions: results on stdout, messages on stderr; a wrong command line exits with 2 and a hint, `--help` anywhere
 * prints the command's page and exits with 0; --json where a program may want to read the result.
 */
#ifndef TY_ENTRYPOINT_COMMAND_H
#define TY_ENTRYPOINT_COMMAND_H

#include "base/arena.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

enum { TY_EXIT_USAGE_ERROR = 2 };

typedef struct ty_option {
    const char *name;  /* "--batch" */
    const char *value; /* "N": takes one; NULL: a flag */
    const char *help;
    bool repeats;
} ty_option;

/* Parsed arguments of a command. Values stand at the index of their option's row. */
enum { TY_MAX_OPTIONS = 64, TY_MAX_REPEATS = 64, TY_MAX_WORDS = 64 };

typedef struct ty_arguments_given {
    const char *value[TY_MAX_OPTIONS];    /* NULL: not given; a flag has "" */
    const char *repeated[TY_MAX_REPEATS]; /* of the option that repeats */
    int n_repeated;
    const char *words[TY_MAX_WORDS]; /* without options, NULL-terminated */
    int n_words;
    const char **rest; /* commands that take settings: all other --key=value, NULL-terminated; owned by main */
    int n_rest;
} ty_arguments_given;

typedef struct ty_command_row {
    const char *name;
    const char *words;   /* "RECIPE" */
    const char *summary; /* one line */
    const char *page;    /* more help, or NULL */
    const ty_option *options;
    size_t n_options;
    int min_words, max_words;
    bool takes_settings; /* unknown --key=value are settings */
    bool is_hidden;
    /* Returns the exit status, or -1 with *err set, which main tells (complain.h): as JSON where --json was given. The
     * arena lives until then. */
    int (*run)(const ty_arguments_given *given, ty_arena *a, ty_error *err);
} ty_command_row;

extern const ty_command_row ty_command_train, ty_command_evaluate, ty_command_check, ty_command_infer,
    ty_command_version, ty_command_explain, ty_command_compile, ty_command_cache, ty_command_plan, ty_command_profile,
    ty_command_replay, ty_command_graph, ty_command_doctor, ty_command_perf, ty_command_server, ty_command_job,
    ty_command_submit, ty_command_local, ty_command_status, ty_command_describe, ty_command_list, ty_command_stop,
    ty_command_logs, ty_command_model, ty_command_data;

#endif
