/* program.h - what the job says about the user's program (script mode). Whether there is one, and how it is run, is
 * decided in entrypoint/. */
#ifndef TY_CONTAINER_CONFIG_PROGRAM_H
#define TY_CONTAINER_CONFIG_PROGRAM_H

#include "container/config/inherited.h"
#include "container/config/value.h"

typedef struct ty_program {
    const char *entry_point;      /* "train.py", relative to the code folder; NULL if the job names none */
    const char *module_name;      /* "train": the entry point without a final ".py"; "None" without one, as ever */
    const char *submit_directory; /* where the code comes from: s3://, a folder or a tar; the code folder by default */
    const char *framework_module; /* "module:function" to be run in its place; NULL if none */
    const char *region;           /* "" if nobody says */
    const char *s3_output;        /* base of the intermediate output; NULL if none */
    const char *sdk_job_name;     /* "" if not given */
    const char *tuning_metric;    /* that a tuning job watches; NULL outside of one */
    ty_value log_level;           /* Python logging number, 20 by default */
} ty_program;

/* known: ty_hyperparameters.known. code: the code folder. TY_E_TYPE for a setting that is no string. */
int ty_program_init(ty_program *p, ty_arena *a, const ty_value *known, const ty_inherited *inherited, const char *code,
                    ty_error *err);

#endif
