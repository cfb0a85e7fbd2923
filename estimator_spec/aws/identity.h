/* identity.h - whose account this is, and what a role there is called: STS GetCallerIdentity, IAM GetRole. */
#ifndef TY_ESTIMATOR_SPEC_AWS_IDENTITY_H
#define TY_ESTIMATOR_SPEC_AWS_IDENTITY_H

#include "estimator_spec/aws/client.h"

typedef struct ty_identity {
    const char *account; /* twelve digits */
    const char *arn;     /* "arn:aws:sts::111122223333:assumed-role/..." */
} ty_identity;

/* Who signs our requests. Needs no permission. Strings live in the arena. */
int ty_identity_find(ty_aws *aws, ty_arena *arena, ty_identity *out, ty_error *err);
/* The ARN of a role of this account that is given by name: IAM alone knows the path that stands in front of it. */
int ty_identity_find_role(ty_aws *aws, const char *name, ty_arena *arena, const char **arn, ty_error *err);

#endif
