/* credentials.c - the order of the providers, and those that need nothing but what is on this machine. */
#define _GNU_SOURCE
#include "estimator_spec/aws/credentials.h"

#include "base/json.h"
#include "estimator_spec/aws/provider.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void ty_credentials_drop(ty_credentials *c)
{
    ty_secret_drop(&c->secret);
    ty_secret_drop(&c->token);
    *c = (ty_credentials){0};
}

/* ---- filling ---- */

int64_t ty_time_parse(const char *iso)
{
    struct tm t = {0};
    const char *at = strptime(iso, "%Y-%m-%dT%H:%M:%S", &t);
    int hours = 0, minutes = 0;
    char sign = '+';
    if (!at)
        return -1;
    if (*at == '.')
        at += 1 + strspn(at + 1, "0123456789");
    if (*at && strcmp(at, "Z") != 0 && sscanf(at, "%c%2d:%2d", &sign, &hours, &minutes) != 3)
        return -1;
    int64_t offset_s = (hours * 60 + minutes) * 60;
    return (timegm(&t) - (sign == '-' ? -offset_s : offset_s)) * 1000;
}

/* Keys go into headers: letters, digits and the few signs of tokens alone, so that nothing can add a line. */
static bool is_printable(const char *text)
{
    for (; *text; text++)
        if (!isgraph((unsigned char)*text))
            return false;
    return true;
}

int ty_provider_fill(ty_credentials *out, const char *access_key, const char *secret, const char *token,
                     const char *expires, const char *source, ty_error *err)
{
    ty_credentials_drop(out);
    snprintf(out->source, sizeof out->source, "%s", source);
    if (!access_key || !*access_key || !secret || !*secret)
        return ty_error_set(err, TY_E_CREDENTIALS, "%s: the %s is missing", source,
                            access_key && *access_key ? "secret access key" : "access key id");
    if (strlen(access_key) >= sizeof out->access_key || !is_printable(access_key) || !is_printable(secret) ||
        (token && !is_printable(token)))
        return ty_error_set(err, TY_E_CREDENTIALS, "%s: a key or token holds blanks or control characters", source);
    snprintf(out->access_key, sizeof out->access_key, "%s", access_key);
    if (expires && *expires && (out->expires_ms = ty_time_parse(expires)) < 0)
        return ty_error_set(err, TY_E_CREDENTIALS, "%s: the time of expiration cannot be read", source);
    if (ty_secret_set(&out->secret, secret, strlen(secret), err) < 0 ||
        ty_secret_set(&out->token, token ? token : "", token ? strlen(token) : 0, err) < 0)
        return -1;
    return 1;
}

static const char *string_at(const ty_doc *map, const char *key)
{
    const ty_doc *d = ty_doc_find(map, key);
    return d && d->kind == TY_DOC_STRING ? d->string : NULL;
}

int ty_provider_fill_json(ty_credentials *out, ty_arena *arena, const char *text, size_t len, const char *token_key,
                          const char *source, ty_error *err)
{
    ty_doc *d;
    ty_error own = {0}; /* its excerpt would show the text */
    if (ty_json_parse(arena, source, text, len, NULL, &d, &own) < 0 || d->kind != TY_DOC_MAP)
        return ty_error_set(err, TY_E_CREDENTIALS, "%s: the answer is no JSON object", source);
    if (!string_at(d, "AccessKeyId") && string_at(d, "Message"))
        return ty_error_set(err, TY_E_CREDENTIALS, "%s: %s", source, string_at(d, "Message"));
    return ty_provider_fill(out, string_at(d, "AccessKeyId"), string_at(d, "SecretAccessKey"), string_at(d, token_key),
                            string_at(d, "Expiration"), source, err);
}

/* ---- what is on this machine ---- */

int ty_provider_environment(const ty_provider_place *at, ty_credentials *out, ty_error *err)
{
    const char *key = getenv("AWS_ACCESS_KEY_ID"), *token = getenv("AWS_SESSION_TOKEN");
    if (at->is_source || at->profile->is_given || !key || !*key)
        return 0;
    return ty_provider_fill(out, key, getenv("AWS_SECRET_ACCESS_KEY"),
                            token && *token ? token : getenv("AWS_SECURITY_TOKEN"), getenv("AWS_CREDENTIAL_EXPIRATION"),
                            "the environment", err);
}

/* Keys of the profile in one of the files. */
int ty_provider_keys(const ty_provider_place *at, ty_credentials *out, ty_error *err)
{
    const ty_ini *ini = &at->profile->credentials;
    const char *key = ty_ini_get(ini, at->name, "aws_access_key_id");
    if (!key)
        return 0;
    return ty_provider_fill(out, key, ty_ini_get(ini, at->name, "aws_secret_access_key"),
                            ty_ini_get(ini, at->name, "aws_session_token"), NULL,
                            ty_arena_printf(at->arena, "profile \"%s\" in %s", at->name, ini->name), err);
}

int ty_provider_config(const ty_provider_place *at, ty_credentials *out, ty_error *err)
{
    const ty_profile *p = at->profile;
    const char *key = ty_profile_get(p, at->name, "aws_access_key_id");
    if (!key)
        return 0;
    return ty_provider_fill(out, key, ty_profile_get(p, at->name, "aws_secret_access_key"),
                            ty_profile_get(p, at->name, "aws_session_token"), NULL,
                            ty_arena_printf(at->arena, "profile \"%s\" in %s", at->name, p->config.name), err);
}

/* Its place in the chain is where botocore asks IAM Identity Center: who is meant to be asked must not be passed over
 * for whoever comes next. */
static int refuse_sso(const ty_provider_place *at, ty_credentials *out, ty_error *err)
{
    (void)out;
    if (!ty_profile_get(at->profile, at->name, "sso_session") &&
        !ty_profile_get(at->profile, at->name, "sso_start_url"))
        return 0;
    ty_error_set(err, TY_E_CREDENTIALS,
                 "profile \"%s\" signs in through IAM Identity Center, which only AWS's own "
                 "tools can do",
                 at->name);
    return ty_error_help(err,
                         "let them: a profile with the line \"credential_process = aws configure "
                         "export-credentials --profile %s\"",
                         at->name);
}

/* ---- the order ---- */

int ty_provider_find(const ty_provider_place *at, bool all, ty_credentials *out, ty_error *err)
{
    static const struct {
        ty_provider *provider;
        bool needs_profile;
    } order[] = {
        {ty_provider_environment, false}, {ty_provider_role, true},
        {ty_provider_web_identity, true}, {refuse_sso, true},
        {ty_provider_keys, true},         {ty_provider_process, true},
        {ty_provider_config, true},       {ty_provider_container, false},
        {ty_provider_instance, false},
    };
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
        int rc = all || order[i].needs_profile ? order[i].provider(at, out, err) : 0;
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int refuse_none(const ty_profile *p, ty_error *err)
{
    const char *disabled = getenv("AWS_EC2_METADATA_DISABLED");
    ty_error_set(err, TY_E_CREDENTIALS,
                 "no credentials were found: not in the environment, not in profile \"%s\" of %s and %s, not from a "
                 "container's service%s",
                 p->name, p->credentials.name, p->config.name,
                 disabled && strcasecmp(disabled, "true") == 0 ? "" : ", not from instance metadata");
    return ty_error_help(err,
                         "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or run `aws configure`");
}

int ty_credentials_find(const ty_profile *profile, ty_caller *caller, ty_credentials *out, ty_error *err)
{
    ty_arena arena;
    ty_arena_init(&arena);
    ty_provider_place at = {.profile = profile, .name = profile->name, .caller = caller, .arena = &arena};
    int rc = ty_provider_find(&at, true, out, err);
    if (rc == 0)
        rc = refuse_none(profile, err);
    ty_arena_wipe(&arena);
    if (rc < 0)
        ty_credentials_drop(out);
    return rc < 0 ? -1 : 0;
}
