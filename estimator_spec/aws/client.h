/* client.h - an account and a region to work in: who we are, found once and renewed in time, and calls with it.
 *
 *     ty_aws *aws;
 *     if (ty_aws_open(&(ty_aws_options){.profile = NULL, .region = NULL}, &aws, err) < 0) ...
 *     ty_json_call ...
 *     ty_aws_close(aws);
 *
 * Credentials are looked for at the first call that needs them. They are renewed ten minutes before they expire, and
 * once when a service says that they have. One thread at a time.
 */
#ifndef TY_ESTIMATOR_SPEC_AWS_CLIENT_H
#define TY_ESTIMATOR_SPEC_AWS_CLIENT_H

#include "base/doc.h"
#include "estimator_spec/aws/call.h"

typedef struct ty_aws ty_aws;

typedef struct ty_aws_options {
    const char *profile, *region;      /* NULL: as the environment and the files say */
    const volatile sig_atomic_t *stop; /* may be NULL */
} ty_aws_options;

int ty_aws_open(const ty_aws_options *options, ty_aws **out, ty_error *err);
void ty_aws_close(ty_aws *aws);

const char *ty_aws_region(const ty_aws *aws);
ty_caller *ty_aws_caller(ty_aws *aws);
/* A key of the profile, "s3.addressing_style"; NULL if there is none. */
const char *ty_aws_setting(const ty_aws *aws, const char *key);
/* As ty_profile_endpoint, of this region or another (NULL: this). */
int ty_aws_endpoint(ty_aws *aws, const ty_service *service, const char *region, ty_arena *arena, const char **url,
                    bool *is_own, ty_error *err);
/* Sends a call that has its url, signed as we are. */
int ty_aws_send(ty_aws *aws, const ty_call *call, ty_arena *arena, ty_answer *answer, ty_error *err);

/* One call of the JSON protocol: target "SageMaker.DescribeTrainingJob", body a JSON object. *out (may be NULL) is the
 * answer as a tree in the arena; *answer (may be NULL) what ty_call_send tells, without the body. */
int ty_aws_json(ty_aws *aws, const ty_service *service, const char *target, const ty_buf *body, ty_arena *arena,
                ty_doc **out, ty_answer *answer, ty_error *err);

#endif
