/* hyperparameters.h - all that is sent as HyperParameters: the file's own, and what its other sections come to.
 *
 * As the SDK's framework estimators do it: every value is JSON text (json.dumps), those of the platform begin with
 * sagemaker_. raw_hyperparameters are sent as they are typed.
 */
#ifndef TY_ESTIMATOR_SPEC_HYPERPARAMETERS_H
#define TY_ESTIMATOR_SPEC_HYPERPARAMETERS_H

#include "estimator_spec/job.h"

typedef struct ty_hyperparameter {
    const char *name;
    const char *text;   /* as sent */
    const char *origin; /* as in ty_field_value */
    const ty_doc *at;   /* NULL: derived */
} ty_hyperparameter;

/* By name as bytes. Refuses more than the service takes, and names that are given twice. */
int ty_hyperparameters(const ty_jobspec *job, ty_arena *a, ty_hyperparameter **out, int *n, ty_error *err);

#endif
