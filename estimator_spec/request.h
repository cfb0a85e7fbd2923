/* request.h - a job as the body of CreateTrainingJob.
 *
 * The same body for the same settings: members in the order of fields.def, hyperparameters and variables by name,
 * channels, tags and metrics as the file has them.
 */
#ifndef TY_ESTIMATOR_SPEC_REQUEST_H
#define TY_ESTIMATOR_SPEC_REQUEST_H

#include "estimator_spec/job.h"

int ty_jobspec_request(const ty_jobspec *job, ty_arena *a, ty_doc *out, ty_error *err);
/* Appends a tree as JSON over several lines, two blanks a level. */
void ty_json_add_lines(ty_buf *out, const ty_doc *d, int indent);

#endif
