/* show.h - a job with every value and where it came from. */
#ifndef TY_ESTIMATOR_SPEC_SHOW_H
#define TY_ESTIMATOR_SPEC_SHOW_H

#include "estimator_spec/job.h"

typedef struct ty_jobspec_setting {
    const char *key; /* "resources.volume_gb", "inputs.train.s3", "hyperparameters.lr" */
    const char *value;
    const char *origin; /* "job.yaml:4", "default", "derived from role", "environment AWS_REGION" */
} ty_jobspec_setting;

/* In the order of fields.def. Defaults of sections that the file does not have are left out. */
int ty_jobspec_settings(const ty_jobspec *job, ty_arena *a, ty_jobspec_setting **out, int *n, ty_error *err);

#endif
