/* provider.h - the places where credentials are found, for credentials.c alone.
 *
 * Each returns 1 with *out filled, 0 if credentials are not configured there, or -1 if they are but cannot be had.
 */
#ifndef TY_ESTIMATOR_SPEC_AWS_PROVIDER_H
#define TY_ESTIMATOR_SPEC_AWS_PROVIDER_H

#include "base/doc.h"
#include "estimator_spec/aws/call.h"
#include "estimator_spec/aws/credentials.h"

typedef struct ty_provider_place {
    const ty_profile *profile;
    const char *name; /* of the profile that is looked at: that of `profile`, or a source of it */
    bool is_source;   /* the environment does not count for it */
    ty_caller *caller;
    ty_arena *arena; /* wiped after use */
} ty_provider_place;

typedef int ty_provider(const ty_provider_place *at, ty_credentials *out, ty_error *err);
ty_provider ty_provider_environment, ty_provider_role, ty_provider_web_identity, ty_provider_keys, ty_provider_process,
    ty_provider_config, ty_provider_container, ty_provider_instance;

/* All providers of a profile, and with `all` those that need none, in their order. */
int ty_provider_find(const ty_provider_place *at, bool all, ty_credentials *out, ty_error *err);

/* Fills *out from texts; token and expires may be NULL. Returns 1, or -1 if one is missing. */
int ty_provider_fill(ty_credentials *out, const char *access_key, const char *secret, const char *token,
                     const char *expires, const char *source, ty_error *err);
/* The same from JSON; token_key is "Token" or "SessionToken". The text itself is never quoted. */
int ty_provider_fill_json(ty_credentials *out, ty_arena *arena, const char *text, size_t len, const char *token_key,
                          const char *source, ty_error *err);

#endif
