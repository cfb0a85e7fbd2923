/* profile.h - which account, region and addresses are meant: environment variables and the files of AWS's tools.
 *
 * For every setting: option, environment, the profile in ~/.aws/credentials, the profile in ~/.aws/config. As botocore
 * does it, with AWS_REGION in front of AWS_DEFAULT_REGION, as all newer tools have it.
 */
#ifndef TY_ESTIMATOR_SPEC_AWS_PROFILE_H
#define TY_ESTIMATOR_SPEC_AWS_PROFILE_H

#include "estimator_spec/aws/ini.h"

typedef struct ty_profile {
    ty_ini config, credentials;
    const char *name;   /* "default" if nobody named one */
    bool is_given;      /* by an option: environment variables with keys do not count then */
    const char *region; /* NULL: none was found */
} ty_profile;

/* A service as it is named in three places. */
typedef struct ty_service {
    const char *title;    /* in messages: "SageMaker" */
    const char *signs_as; /* in signatures: "sagemaker" */
    const char *host;     /* "api.sagemaker": in front of .REGION.DOMAIN */
    const char *fips_host;
    const char *variable; /* AWS_ENDPOINT_URL_<...>, and in lower case in [services ...] */
} ty_service;
extern const ty_service ty_service_sagemaker, ty_service_logs, ty_service_sts, ty_service_iam, ty_service_s3;

/* Reads both files; absent ones are empty. wanted_profile and wanted_region may be NULL. A profile that was named and
 * is in neither file is an error that lists those that are. */
int ty_profile_read(ty_arena *arena, const char *wanted_profile, const char *wanted_region, ty_profile *out,
                    ty_error *err);
/* A key of this or of another profile (NULL: this one); NULL if there is none. */
const char *ty_profile_get(const ty_profile *p, const char *profile, const char *key);
bool ty_profile_has(const ty_profile *p, const char *profile);
/* The profile's region, or the error that says where one can be given. */
int ty_profile_region(const ty_profile *p, const char **region, ty_error *err);
/* Whether a text looks like a region and may become part of a host's name. */
bool ty_region_is_valid(const char *text);
/* "amazonaws.com", "amazonaws.com.cn" ...: the domain of a region's partition. */
const char *ty_region_domain(const char *region);
/* "aws", "aws-cn", "aws-us-gov" ...: as in ARNs. */
const char *ty_region_partition(const char *region);
/* "console.aws.amazon.com": where people look at it; NULL where that is not known. */
const char *ty_region_console(const char *region);
/* https://HOST, without a slash at its end, in the arena; *is_own: given by the user (then S3's buckets stand in the
 * path). */
int ty_profile_endpoint(const ty_profile *p, const ty_service *service, const char *region, ty_arena *arena,
                        const char **url, bool *is_own, ty_error *err);

#endif
