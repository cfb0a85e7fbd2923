/* refusal.h - what a service's error means: whose fault it is, and whether asking again helps. */
#ifndef TY_ESTIMATOR_SPEC_AWS_REFUSAL_H
#define TY_ESTIMATOR_SPEC_AWS_REFUSAL_H

#include "estimator_spec/aws/call.h"

typedef enum ty_refusal_kind {
    TY_REFUSAL_FINAL,     /* the same request will be refused again */
    TY_REFUSAL_TRANSIENT, /* may work the next time */
    TY_REFUSAL_THROTTLED, /* may work later */
    TY_REFUSAL_CLOCK,     /* may work with the right time in it */
} ty_refusal_kind;

/* Reads code, request id and message of an answer with an error, and fills the error. What `as` keeps secret is taken
 * out of the message: services quote requests that were signed wrongly, tokens included. */
ty_refusal_kind ty_refusal_read(const ty_call *call, const ty_credentials *as, ty_arena *arena, ty_answer *answer,
                                ty_error *err);

#endif
