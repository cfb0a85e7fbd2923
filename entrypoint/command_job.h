/* command_job.h - what the verbs of `trainyard job` share: one table of options, of which each verb takes some.
 * Private to command_job*.c. */
#ifndef TY_ENTRYPOINT_COMMAND_JOB_H
#define TY_ENTRYPOINT_COMMAND_JOB_H

#include "entrypoint/command.h"

enum {
    TY_JOB_ORIGIN,
    TY_JOB_KEYS,
    TY_JOB_OUTPUT,
    TY_JOB_DATA_DIR,
    TY_JOB_PRICE,
    TY_JOB_STEPS,
    TY_JOB_SPEED,
    TY_JOB_NETWORK,
    TY_JOB_JSON,
    TY_N_JOB_OPTIONS
};

/* One verb each; words[1] is the file. */
int ty_job_from_sdk(const ty_arguments_given *given, ty_arena *a, ty_error *err);
int ty_job_estimate(const ty_arguments_given *given, ty_arena *a, ty_error *err);

#endif
