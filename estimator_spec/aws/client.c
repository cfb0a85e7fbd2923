/* client.c - see client.h. */
#define _GNU_SOURCE
#include "estimator_spec/aws/client.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

#include <stdlib.h>
#include <string.h>

enum { RENEW_MS = 10 * 60 * 1000 };

struct ty_aws {
    ty_arena arena; /* of the profile: it holds keys, so it is wiped */
    ty_profile profile;
    const char *region;
    ty_caller caller;
    ty_credentials credentials;
    bool is_known; /* credentials were found */
};

int ty_aws_open(const ty_aws_options *options, ty_aws **out, ty_error *err)
{
    ty_aws *aws = calloc(1, sizeof *aws);
    *out = NULL;
    if (!aws)
        return ty_error_set(err, TY_E_LIMIT, "no memory");
    ty_arena_init(&aws->arena);
    if (ty_profile_read(&aws->arena, options->profile, options->region, &aws->profile, err) < 0 ||
        ty_profile_region(&aws->profile, &aws->region, err) < 0 ||
        ty_caller_init(&aws->caller, options->stop, err) < 0) {
        ty_aws_close(aws);
        return -1;
    }
    *out = aws;
    return 0;
}

void ty_aws_close(ty_aws *aws)
{
    if (!aws)
        return;
    ty_credentials_drop(&aws->credentials);
    ty_caller_fini(&aws->caller);
    ty_arena_wipe(&aws->arena);
    free(aws);
}

const char *ty_aws_region(const ty_aws *aws)
{
    return aws->region;
}

ty_caller *ty_aws_caller(ty_aws *aws)
{
    return &aws->caller;
}

const char *ty_aws_setting(const ty_aws *aws, const char *key)
{
    return ty_profile_get(&aws->profile, NULL, key);
}

int ty_aws_endpoint(ty_aws *aws, const ty_service *service, const char *region, ty_arena *arena, const char **url,
                    bool *is_own, ty_error *err)
{
    return ty_profile_endpoint(&aws->profile, service, region ? region : aws->region, arena, url, is_own, err);
}

/* ---- who we are ---- */

static int find_credentials(ty_aws *aws, ty_error *err)
{
    ty_credentials found = {0};
    if (ty_credentials_find(&aws->profile, &aws->caller, &found, err) < 0)
        return -1;
    ty_credentials_drop(&aws->credentials);
    aws->credentials = found;
    aws->is_known = true;
    ty_log_debug("aws", "credentials of %s", found.source);
    return 0;
}

/* Finds them, or finds them again in time. What cannot be renewed is used as long as it is valid. */
static int settle_credentials(ty_aws *aws, ty_error *err)
{
    if (!aws->is_known)
        return find_credentials(aws, err);
    int64_t expires_ms = aws->credentials.expires_ms, now_ms = ty_clock_utc_ms() + aws->caller.skew_ms;
    if (expires_ms == 0 || now_ms < expires_ms - RENEW_MS)
        return 0;
    ty_error own = {0};
    if (find_credentials(aws, &own) == 0)
        return 0;
    if (now_ms < expires_ms)
        return 0;
    if (err)
        *err = own;
    return -1;
}

static bool has_expired(const ty_answer *a)
{
    static const char *const codes[] = {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strcmp(a->code, codes[i]) == 0)
            return true;
    return false;
}

int ty_aws_send(ty_aws *aws, const ty_call *call, ty_arena *arena, ty_answer *answer, ty_error *err)
{
    if (settle_credentials(aws, err) < 0)
        return -1;
    int rc = ty_call_send(&aws->caller, call, &aws->credentials, arena, answer, err);
    if (rc == 0 || !has_expired(answer) || aws->credentials.expires_ms == 0)
        return rc;
    ty_error ignored = {0};
    if (find_credentials(aws, &ignored) < 0 || (call->rewind && call->rewind(call->sink_ctx, err) < 0))
        return -1;
    return ty_call_send(&aws->caller, call, &aws->credentials, arena, answer, err);
}

/* ---- the JSON protocol ---- */

/* The value of four hex digits, or -1. */
static int hex4(const char *at)
{
    char digits[5] = "", *end;
    memcpy(digits, at, strnlen(at, 4));
    long value = strtol(digits, &end, 16);
    return end == digits + 4 && digits[0] != '-' && digits[0] != '+' ? (int)value : -1;
}

/* Log lines of programs hold anything: NUL and halves of pairs, which our reader refuses with all the rest of the page,
 * become signs that stand for them. All in place, escapes keep their length. */
static void mend_escapes(char *text)
{
    for (char *at = text; (at = strchr(at, '\\')) && at[1]; at += 2) {
        int c = at[1] == 'u' ? hex4(at + 2) : -1;
        bool is_high = c >= 0xd800 && c < 0xdc00;
        int low = is_high && at[6] == '\\' && at[7] == 'u' ? hex4(at + 8) : -1;
        if (low >= 0xdc00 && low < 0xe000)
            at += 6;
        else if (c == 0)
            memcpy(at + 2, "2400", 4);
        else if (c >= 0xd800 && c < 0xe000)
            memcpy(at + 2, "fffd", 4);
    }
}

static int take_json(const ty_call *call, ty_answer *answer, ty_arena *arena, ty_doc **out, ty_error *err)
{
    ty_error own = {0};
    ty_doc_limits limits = {.max_bytes = TY_ANSWER_MAX_BYTES};
    if (answer->http.body.len == 0) { /* what has nothing to say says nothing */
        *out = ty_doc_new_map(arena, call->operation);
        return 0;
    }
    mend_escapes(answer->http.body.data);
    if (ty_json_parse(arena, call->operation, answer->http.body.data, answer->http.body.len, &limits, out, &own) == 0)
        return 0;
    return ty_error_set(err, TY_E_SERVICE, "%s %s: the answer is no JSON: %s", call->service->title, call->operation,
                        own.message);
}

int ty_aws_json(ty_aws *aws, const ty_service *service, const char *target, const ty_buf *body, ty_arena *arena,
                ty_doc **out, ty_answer *answer, ty_error *err)
{
    const ty_header headers[] = {{"content-type", "application/x-amz-json-1.1"}, {"x-amz-target", target}};
    const char *dot = strrchr(target, '.');
    ty_call call = {.service = service,
                    .region = aws->region,
                    .operation = dot ? dot + 1 : target,
                    .method = "POST",
                    .path = "/",
                    .query = "",
                    .headers = headers,
                    .n_headers = 2,
                    .body = body->data,
                    .body_bytes = body->len,
                    .body_fd = -1};
    ty_answer own;
    bool is_own;
    if (ty_aws_endpoint(aws, service, NULL, arena, &call.url, &is_own, err) < 0)
        return -1;
    ty_answer_init(&own);
    int rc = ty_aws_send(aws, &call, arena, &own, err);
    if (rc == 0 && out)
        rc = take_json(&call, &own, arena, out, err);
    ty_answer_fini(&own);
    if (answer)
        *answer = own;
    return rc;
}
