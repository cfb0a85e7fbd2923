/* submit.h - a job that is sent: its source to S3, its request to SageMaker; and what it leaves in S3, fetched.
 *
 * Nothing is sent before all of it is known to be right, as far as that can be known here; what was sent before
 * something failed is said in the error.
 */
#ifndef TY_ENTRYPOINT_SUBMIT_H
#define TY_ENTRYPOINT_SUBMIT_H

#include "estimator_spec/aws/client.h"
#include "estimator_spec/job.h"

typedef struct ty_submission {
    ty_aws *aws; /* in the job's region */
    const ty_jobspec *job;
    const ty_buf *archive; /* the packed source; NULL: none goes along */
    /* Filled, in the arena: */
    const char *name;
    const char *arn;
    const char *console; /* the job's page; NULL where that is not known */
} ty_submission;

int ty_submit(ty_submission *s, ty_arena *a, ty_error *err);

/* Whether model.tar.gz and output.tar.gz could be put there: the folder is made if need be, and holds neither. */
int ty_submit_prepare_download(const char *folder, ty_arena *a, ty_error *err);
/* Of a job that is over (what DescribeTrainingJob says): model.tar.gz and, if there is one, output.tar.gz; with output
 * that is not compressed the folder "model". A job that was stopped may have neither. */
int ty_submit_download(ty_aws *aws, const ty_doc *job, const char *folder, ty_arena *a, ty_error *err);

#endif
