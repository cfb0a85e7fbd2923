/* from_request.h - the body of a CreateTrainingJob request, or an answer of DescribeTrainingJob, as a job file.
 *
 * The way back from request.h, by the same rows of fields.def: what a key says becomes that key (recognise.h), what
 * follows from other keys is left out, and what no key says goes into the section `request`, a merge patch. Which
 * framework's rules leave least to say is tried. The text is then read as job files are and its request compared with
 * the body: what is returned comes to the same request, member by member, or nothing is returned.
 *
 * An answer has more than a request: what the service adds is left out, and a comment of the file names it.
 */
#ifndef TY_ESTIMATOR_SPEC_FROM_REQUEST_H
#define TY_ESTIMATOR_SPEC_FROM_REQUEST_H

#include "estimator_spec/job.h"

/* Deeper ones would not fit a job file (yaml.h), and by the service's own limits no request has as many bytes and
 * values. */
enum { TY_REQUEST_MAX_DEPTH = 24, TY_REQUEST_MAX_BYTES = 1 << 20, TY_REQUEST_MAX_NODES = 8000 };

/* Appends the job file. name: of the text, in messages. world: as for a job file; the region may come from it. Refuses
 * what is no request, and what a job file must not say (limits, rules between values), with the reason. */
int ty_jobspec_from_request(const char *name, const char *text, size_t len, const ty_jobspec_world *world, ty_arena *a,
                            ty_buf *out, ty_error *err);

#endif
