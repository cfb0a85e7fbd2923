/* role.c - credentials of a role: STS AssumeRole with those of another profile, and AssumeRoleWithWebIdentity. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "base/file.h"
#include "estimator_spec/aws/provider.h"
#include "estimator_spec/aws/sign.h"
#include "estimator_spec/aws/xml.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_FORM_BYTES = 1 << 17, MAX_TOKEN_BYTES = 1 << 16, MAX_CHAIN = 8 };

static void add_field(ty_buf *form, const char *name, const char *value)
{
    if (!value || !*value)
        return;
    ty_buf_addf(form, "%s%s=", form->len ? "&" : "", name);
    ty_uri_encode(form, value, strlen(value), false);
}

static const char *session_name(const ty_provider_place *at, const char *given)
{
    return given && *given ? given : ty_arena_printf(at->arena, "trainyard-%lld", (long long)ty_clock_utc_ms() / 1000);
}

/* ---- the call ---- */

static int take_answer(const ty_provider_place *at, const ty_buf *body, const char *operation, const char *source,
                       ty_credentials *out, ty_error *err)
{
    ty_xml *root;
    if (ty_xml_parse(at->arena, "STS", body->data, body->len, &root, err) < 0)
        return -1;
    const ty_xml *c = ty_xml_find(ty_xml_find(root, ty_arena_printf(at->arena, "%sResult", operation)), "Credentials");
    return ty_provider_fill(out, ty_xml_text(c, "AccessKeyId"), ty_xml_text(c, "SecretAccessKey"),
                            ty_xml_text(c, "SessionToken"), ty_xml_text(c, "Expiration"), source, err);
}

/* Posts the form, signed with `as` (NULL: not signed). */
static int ask_sts(const ty_provider_place *at, const char *operation, const ty_buf *form, const ty_credentials *as,
                   const char *source, ty_credentials *out, ty_error *err)
{
    const ty_header type = {"content-type", "application/x-www-form-urlencoded; charset=utf-8"};
    ty_call call = {.service = &ty_service_sts,
                    .region = at->profile->region ? at->profile->region : "us-east-1",
                    .operation = operation,
                    .method = "POST",
                    .path = "/",
                    .query = "",
                    .headers = &type,
                    .n_headers = 1,
                    .body = form->data,
                    .body_bytes = form->len,
                    .body_fd = -1,
                    .errors_in_xml = true};
    ty_answer answer;
    bool is_own;
    if (ty_profile_endpoint(at->profile, call.service, call.region, at->arena, &call.url, &is_own, err) < 0)
        return -1;
    ty_answer_init(&answer);
    int rc = ty_call_send(at->caller, &call, as, at->arena, &answer, err);
    if (rc == 0)
        rc = take_answer(at, &answer.http.body, operation, source, out, err);
    ty_answer_fini(&answer);
    return rc < 0 ? ty_error_wrap(err, "%s", source) : rc;
}

/* ---- AssumeRole ---- */

static int find_of_source(const ty_provider_place *at, const char *source, ty_credentials *out, ty_error *err)
{
    static const struct {
        const char *name;
        ty_provider *provider;
    } rows[] = {{"Environment", ty_provider_environment},
                {"EcsContainer", ty_provider_container},
                {"Ec2InstanceMetadata", ty_provider_instance}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcasecmp(rows[i].name, source) != 0)
            continue;
        ty_profile anybody = *at->profile;
        anybody.is_given = false; /* the environment is what was asked for */
        ty_provider_place place = {&anybody, at->name, false, at->caller, at->arena};
        int rc = rows[i].provider(&place, out, err);
        return rc ? rc : ty_error_set(err, TY_E_CREDENTIALS, "credential_source = %s has no credentials", source);
    }
    return ty_error_set(err, TY_E_CREDENTIALS,
                        "credential_source is one of Environment, EcsContainer and "
                        "Ec2InstanceMetadata, not \"%s\"",
                        source);
}

static bool has_keys(const ty_provider_place *at, const char *profile)
{
    return ty_profile_get(at->profile, profile, "aws_access_key_id") != NULL;
}

/* Whether following source_profile from here comes back to a profile that was passed already. */
static bool goes_round(const ty_provider_place *at)
{
    const char *name = at->name;
    for (int i = 0; i < MAX_CHAIN; i++) {
        const char *next = ty_profile_get(at->profile, name, "source_profile");
        if (!next || (has_keys(at, next) && (i > 0 || strcmp(next, name) == 0)))
            return false;
        name = next;
    }
    return true;
}

/* The credentials with which the role is asked for. */
static int find_source(const ty_provider_place *at, ty_credentials *out, ty_error *err)
{
    const char *profile = ty_profile_get(at->profile, at->name, "source_profile");
    const char *source = ty_profile_get(at->profile, at->name, "credential_source");
    if (!profile == !source)
        return ty_error_set(err, TY_E_CREDENTIALS,
                            "profile \"%s\" has a role_arn, and %s source_profile %s "
                            "credential_source; it needs one",
                            at->name, profile ? "both" : "neither", profile ? "and" : "nor");
    if (source)
        return find_of_source(at, source, out, err);
    if (!ty_profile_has(at->profile, profile))
        return ty_error_set(err, TY_E_CREDENTIALS, "profile \"%s\" has source_profile \"%s\", which is not there",
                            at->name, profile);
    if (goes_round(at))
        return ty_error_set(err, TY_E_CREDENTIALS, "source_profile of \"%s\" leads in a circle", at->name);
    ty_provider_place place = {at->profile, profile, true, at->caller, at->arena};
    /* Keys of the source's own come before its role: a profile may be its own source. */
    int rc = has_keys(at, profile) ? ty_provider_keys(&place, out, err) : 0;
    if (rc == 0 && has_keys(at, profile))
        rc = ty_provider_config(&place, out, err);
    if (rc == 0)
        rc = ty_provider_find(&place, false, out, err);
    return rc ? rc : ty_error_set(err, TY_E_CREDENTIALS, "source_profile \"%s\" has no credentials", profile);
}

static int assume(const ty_provider_place *at, const char *role, ty_credentials *out, ty_error *err)
{
    const ty_profile *p = at->profile;
    const char *source = ty_arena_printf(at->arena, "role \"%s\" of profile \"%s\"", role, at->name);
    ty_credentials with = {0};
    ty_buf form;
    if (find_source(at, &with, err) < 0) {
        ty_credentials_drop(&with);
        return -1;
    }
    ty_buf_init(&form, MAX_FORM_BYTES);
    add_field(&form, "Action", "AssumeRole");
    add_field(&form, "Version", "2011-06-15");
    add_field(&form, "RoleArn", role);
    add_field(&form, "RoleSessionName", session_name(at, ty_profile_get(p, at->name, "role_session_name")));
    add_field(&form, "ExternalId", ty_profile_get(p, at->name, "external_id"));
    add_field(&form, "DurationSeconds", ty_profile_get(p, at->name, "duration_seconds"));
    int rc = ask_sts(at, "AssumeRole", &form, &with, source, out, err);
    ty_buf_fini(&form);
    ty_credentials_drop(&with);
    return rc;
}

int ty_provider_role(const ty_provider_place *at, ty_credentials *out, ty_error *err)
{
    const char *role = ty_profile_get(at->profile, at->name, "role_arn");
    if (!role || ty_profile_get(at->profile, at->name, "web_identity_token_file") ||
        (at->is_source && has_keys(at, at->name)))
        return 0;
    if (ty_profile_get(at->profile, at->name, "mfa_serial")) {
        ty_error_set(err, TY_E_CREDENTIALS, "profile \"%s\" needs a code of its mfa_serial", at->name);
        return ty_error_help(err,
                             "let AWS's tools ask for it: a profile with the line \"credential_process = aws "
                             "configure export-credentials --profile %s\"",
                             at->name);
    }
    return assume(at, role, out, err);
}

/* ---- AssumeRoleWithWebIdentity ---- */

static const char *setting(const ty_provider_place *at, const char *variable, const char *key)
{
    const char *value = at->is_source || at->profile->is_given ? NULL : getenv(variable);
    return value && *value ? value : ty_profile_get(at->profile, at->name, key);
}

static int exchange_token(const ty_provider_place *at, const char *path, const char *role, ty_credentials *out,
                          ty_error *err)
{
    const char *source = ty_arena_printf(at->arena, "role \"%s\" by the token in %s", role, path);
    ty_buf token, form;
    ty_buf_init(&token, MAX_TOKEN_BYTES);
    ty_buf_init(&form, MAX_FORM_BYTES);
    int rc = ty_file_read(path, &token, err);
    if (rc < 0)
        ty_error_wrap(err, "web identity");
    while (token.len > 0 && isspace((unsigned char)token.data[token.len - 1]))
        token.data[--token.len] = 0;
    add_field(&form, "Action", "AssumeRoleWithWebIdentity");
    add_field(&form, "Version", "2011-06-15");
    add_field(&form, "RoleArn", role);
    add_field(&form, "RoleSessionName", session_name(at, setting(at, "AWS_ROLE_SESSION_NAME", "role_session_name")));
    add_field(&form, "WebIdentityToken", token.data);
    if (rc == 0)
        rc = ask_sts(at, "AssumeRoleWithWebIdentity", &form, NULL, source, out, err);
    explicit_bzero(token.data, token.len);
    explicit_bzero(form.data, form.len);
    ty_buf_fini(&token);
    ty_buf_fini(&form);
    return rc;
}

int ty_provider_web_identity(const ty_provider_place *at, ty_credentials *out, ty_error *err)
{
    const char *path = setting(at, "AWS_WEB_IDENTITY_TOKEN_FILE", "web_identity_token_file");
    const char *role = setting(at, "AWS_ROLE_ARN", "role_arn");
    if (!path)
        return 0;
    if (role)
        return exchange_token(at, path, role, out, err);
    return ty_error_set(err, TY_E_CREDENTIALS,
                        "a web identity token is given, but neither AWS_ROLE_ARN nor a "
                        "role_arn in profile \"%s\"",
                        at->name);
}
