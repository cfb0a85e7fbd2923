/* sagemaker.h - training jobs: made, looked at, listed, stopped. */
#ifndef TY_ESTIMATOR_SPEC_AWS_SAGEMAKER_H
#define TY_ESTIMATOR_SPEC_AWS_SAGEMAKER_H

#include "estimator_spec/aws/client.h"

typedef struct ty_sagemaker_created {
    const char *arn; /* in the arena; "" if it is not known */
    bool may_exist;  /* after a failure: nobody knows whether the job was made all the same */
} ty_sagemaker_created;

/* Sends CreateTrainingJob with `body`, a JSON object. A name that is taken is an error, but not when an earlier attempt
 * of this very call may have got through and the job that is there is the one that was asked for: then that is the job.
 */
int ty_sagemaker_create(ty_aws *aws, const char *name, const ty_doc *body, ty_arena *arena,
                        ty_sagemaker_created *created, ty_error *err);
/* What DescribeTrainingJob says. TY_E_NOT_FOUND if there is no such job. */
int ty_sagemaker_describe(ty_aws *aws, const char *name, ty_arena *arena, ty_doc **out, ty_error *err);
/* Asks the platform to stop a job, which takes up to minutes. A job that is over already is an error. */
int ty_sagemaker_stop(ty_aws *aws, const char *name, ty_error *err);

typedef struct ty_sagemaker_filter {
    const char *contains, *status; /* NULL: any */
    int most;                      /* jobs */
} ty_sagemaker_filter;

/* Newest first. take gets a summary: TrainingJobName, TrainingJobStatus, CreationTime (seconds since 1970) ... */
int ty_sagemaker_list(ty_aws *aws, const ty_sagemaker_filter *filter,
                      int (*take)(void *ctx, const ty_doc *summary, ty_error *err), void *ctx, ty_error *err);

/* ---- what a description says ---- */

/* A string of it; "" if there is none. */
const char *ty_job_text(const ty_doc *job, const char *key);
/* A number of it (times are seconds since 1970); 0 if there is none. */
double ty_job_number(const ty_doc *job, const char *key);
/* Completed, Failed or Stopped. Stopping is not. */
bool ty_job_is_over(const ty_doc *job);
int ty_job_hosts(const ty_doc *job); /* at least 1 */

#endif
