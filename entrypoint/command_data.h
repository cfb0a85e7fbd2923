/* command_data.h - what the verbs of `trainyard data` share. Private to command_data*.c. */
#ifndef TY_ENTRYPOINT_COMMAND_DATA_H
#define TY_ENTRYPOINT_COMMAND_DATA_H

#include "container/input/files.h"
#include "container/input/format.h"
#include "container/input/map/map.h"
#include "container/input/survey.h"
#include "entrypoint/command.h"
#include "entrypoint/recipe.h"

enum {
    TY_DATA_FORMAT,
    TY_DATA_HEADER,
    TY_DATA_MISSING_VALUES,
    TY_DATA_INDEX_BASE,
    TY_DATA_SKIP_BAD,
    TY_DATA_FILES,
    TY_DATA_TARGET,
    TY_DATA_ROWS,
    TY_DATA_FILE_BYTES,
    TY_DATA_SVG,
    TY_DATA_HTML,
    TY_DATA_JSON,
    TY_DATA_INTO,
    TY_DATA_CHANNEL,
    TY_DATA_EPOCHS,
    TY_DATA_SHUFFLE,
    TY_DATA_WRAP,
    TY_DATA_ATTRIBUTES,
    TY_DATA_SHARD,
    TY_DATA_COMPRESSED,
    TY_DATA_OUT,
    TY_DATA_SIZE,
    TY_DATA_TOKENIZER,
    TY_DATA_SYMBOLS,
    TY_DATA_END_TOKEN,
    TY_DATA_WINDOW,
    TY_DATA_DIR,
    TY_DATA_HOSTS,
    TY_DATA_PROCESSES,
    TY_DATA_MODE,
    TY_DATA_SHARDED,
    TY_DATA_RECIPE,
    TY_DATA_PREPROCESSING,
    TY_N_DATA_OPTIONS
};

/* Data with the fields that their files hold: arrays by name, each column of a table that holds numbers. */
typedef struct ty_data_opened {
    ty_data_source source; /* as it was opened; its fields are gone */
    ty_data_survey survey;
    ty_dataset *ds;
    const ty_field *field; /* of ds */
    int n_text;            /* columns that hold text: their lengths are looked at, or they are left out */
    ty_recipe recipe;      /* of ty_data_open_declared */
} ty_data_opened;

/* words[1] is a file or folder; for `pack` all words behind the verb are. *out is closed with
 * ty_dataset_close(out->ds). */
int ty_data_open(const ty_arguments_given *given, ty_arena *a, ty_data_opened *out, ty_error *err);
/* The same with the fields of --recipe, whose transforms learn of these data. */
int ty_data_open_declared(const ty_arguments_given *given, ty_arena *a, ty_data_opened *out, ty_error *err);
/* With the recipe's fields if there is one, else with those found. */
int ty_data_open_looked(const ty_arguments_given *given, ty_arena *a, ty_data_opened *out, ty_error *err);
/* The files of --files of a folder of several Parquet or Arrow files, of which nothing is to be learned: each may be
 * looked at by itself, so that one is in memory at a time. *n 0: it is none. */
int ty_data_column_files(const ty_arguments_given *given, ty_arena *a, ty_data_file **files, int *n, ty_error *err);
/* One of them. */
int ty_data_open_one(const ty_arguments_given *given, const char *path, ty_arena *a, ty_data_opened *out,
                     ty_error *err);
/* A picture or sound that nobody has declared: what is read of it is of a size that says nothing. */
bool ty_data_is_media(const ty_arguments_given *given, const ty_field_info *f);
/* Whether field i is a length of texts, and of what. */
bool ty_data_measures(const ty_data_opened *d, int i, ty_measure what);
/* Number of the field that --target names, or that is called as targets are; -1: none. */
int ty_data_target(const ty_arguments_given *given, const ty_dataset *ds);

/* convert and pack write a folder: one that is called like a file of another format is refused. */
int ty_data_check_folder(const char *folder, ty_error *err);

/* One verb each. */
int ty_command_data_check(const ty_arguments_given *given, ty_arena *a, ty_error *err);
int ty_command_data_head(const ty_arguments_given *given, ty_arena *a, ty_error *err);
int ty_command_data_stats(const ty_arguments_given *given, ty_arena *a, ty_error *err);
int ty_command_data_convert(const ty_arguments_given *given, ty_arena *a, ty_error *err);
int ty_command_data_pack(const ty_arguments_given *given, ty_arena *a, ty_error *err);
int ty_command_data_tokenize(const ty_arguments_given *given, ty_arena *a, ty_error *err);
int ty_command_data_plan(const ty_arguments_given *given, ty_arena *a, ty_error *err);
int ty_command_data_serve(const ty_arguments_given *given, ty_arena *a, ty_error *err);

#endif
