/* recognise.h - which members of a request have keys: the rows of fields.def backwards. Private to from_request.c. */
#ifndef TY_ESTIMATOR_SPEC_RECOGNISE_H
#define TY_ESTIMATOR_SPEC_RECOGNISE_H

#include "base/arena.h"
#include "base/doc.h"

/* Under whose rules a body is read. */
typedef struct ty_recognise_as {
    const char *framework; /* a choice of framework.name */
    const char *region;    /* NULL: not known */
    bool plain;            /* source, distribution and compiler stay the hyperparameters that they are */
} ty_recognise_as;

/* The map of a job file. What follows from other keys is left out where that is plain here; ty_recognise_rest adds what
 * only shows in the request that this map comes to. Values that a key would refuse are not taken. */
ty_doc ty_recognise(const ty_doc *body, const ty_recognise_as *as, ty_arena *a);
/* made: the request of `job` so far. Adds the user's own hyperparameters and switches, takes away channels that keys
 * cannot say. */
void ty_recognise_rest(const ty_doc *body, const ty_doc *made, const ty_recognise_as *as, ty_doc *job, ty_arena *a);
/* "eu-west-1" as the body tells it, or NULL; the answer's ARN, if there is one, may tell it too. */
const char *ty_recognise_region(const ty_doc *body, const char *arn, ty_arena *a);
/* A hyperparameter as the text that its JSON string says; NULL: it is none. */
const char *ty_recognise_hyperparameter(const ty_doc *body, const char *name, ty_arena *a);

#endif
