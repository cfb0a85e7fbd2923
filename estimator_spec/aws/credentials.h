/* credentials.h - who we are to AWS, found where botocore finds it and in its order.
 *
 *     1. AWS_ACCESS_KEY_ID ... in the environment (not if a profile was given by an option)
 *     2. the profile's role_arn, with source_profile or credential_source: STS AssumeRole
 *     3. AWS_WEB_IDENTITY_TOKEN_FILE, or the profile's: STS AssumeRoleWithWebIdentity
 *     4. keys of the profile in ~/.aws/credentials
 *     5. the profile's credential_process
 *     6. keys of the profile in ~/.aws/config
 *     7. AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or ..._FULL_URI: ECS, EKS, SageMaker itself
 *     8. instance metadata, version 2 only
 *
 * Profiles of IAM Identity Center (SSO) are refused with the way around them.
 */
#ifndef TY_ESTIMATOR_SPEC_AWS_CREDENTIALS_H
#define TY_ESTIMATOR_SPEC_AWS_CREDENTIALS_H

#include "estimator_spec/aws/profile.h"
#include "estimator_spec/aws/secret.h"

typedef struct ty_caller ty_caller; /* call.h */

typedef struct ty_credentials {
    char access_key[160]; /* no secret, but nothing for a log either */
    ty_secret secret, token;
    int64_t expires_ms; /* UTC; 0: never */
    char source[200];   /* "the environment", "profile \"a\" in ~/.aws/credentials": for messages */
} ty_credentials;

void ty_credentials_drop(ty_credentials *c);

/* Fills *out (what it held is dropped). TY_E_CREDENTIALS if there are none, with the places that were looked at. The
 * caller's http connection is used for STS and for the services of containers and instances. */
int ty_credentials_find(const ty_profile *profile, ty_caller *caller, ty_credentials *out, ty_error *err);

/* Milliseconds since 1970 of "2026-01-05T10:11:12Z", with a fraction or an offset too; -1 if it is none. */
int64_t ty_time_parse(const char *iso);

#endif
