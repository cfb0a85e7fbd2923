/* described.h - what an answer of DescribeTrainingJob has more than the request that it is about. */
#ifndef TY_ESTIMATOR_SPEC_DESCRIBED_H
#define TY_ESTIMATOR_SPEC_DESCRIBED_H

#include "base/arena.h"
#include "base/doc.h"

/* Whether a tree is an answer: it has an ARN or a status. */
bool ty_described(const ty_doc *body);
/* The answer as a request: without what the service adds, and without defaults that it spells out. Their names, with
 * commas between, into *left_out. */
ty_doc ty_described_request(const ty_doc *body, ty_arena *a, const char **left_out);
/* A copy without nulls in maps, which mean the same as absent members; what lists hold stays. */
ty_doc ty_described_without_nulls(const ty_doc *d, ty_arena *a);

#endif
