/* s3.c - see s3.h: places, addresses, calls that find their region, and those of one request. */
#define _GNU_SOURCE
#include "estimator_spec/aws/s3.h"

#include "base/doc_builder.h"
#include "base/log.h"
#include "estimator_spec/aws/s3_parts.h"
#include "estimator_spec/aws/sign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

enum { MAX_HOPS = 2, MAX_URL_BYTES = 1 << 14 };

static bool is_required_only(ty_aws *aws, const char *variable, const char *key)
{
    const char *value = getenv(variable);
    if (!value || !*value)
        value = ty_aws_setting(aws, key);
    return value && strcasecmp(value, "when_required") == 0;
}

static ty_s3_style style_of(const char *word)
{
    return !word                              ? TY_S3_AUTO
           : strcasecmp(word, "path") == 0    ? TY_S3_PATH
           : strcasecmp(word, "virtual") == 0 ? TY_S3_VIRTUAL
                                              : TY_S3_AUTO;
}

int ty_s3_open(ty_aws *aws, const ty_s3_options *options, ty_s3 **out, ty_error *err)
{
    ty_s3 *s3 = calloc(1, sizeof *s3);
    *out = NULL;
    if (!s3)
        return ty_error_set(err, TY_E_LIMIT, "no memory");
    s3->aws = aws;
    s3->options = *options;
    s3->options.owner = options->owner ? strdup(options->owner) : NULL;
    s3->options.notes = options->notes && *options->notes ? strdup(options->notes) : NULL;
    s3->style = style_of(ty_aws_setting(aws, "s3.addressing_style"));
    s3->sends_checksums = !is_required_only(aws, "AWS_REQUEST_CHECKSUM_CALCULATION", "request_checksum_calculation");
    s3->asks_for_checksums = !is_required_only(aws, "AWS_RESPONSE_CHECKSUM_VALIDATION", "response_checksum_validation");
    *out = s3;
    return 0;
}

void ty_s3_close(ty_s3 *s3)
{
    if (!s3)
        return;
    free((char *)s3->options.owner);
    free((char *)s3->options.notes);
    free(s3);
}

void ty_s3_tell(const ty_s3 *s3, uint64_t done_bytes, uint64_t total_bytes)
{
    if (s3->options.progress)
        s3->options.progress(s3->options.progress_ctx, done_bytes, total_bytes);
}

int64_t ty_s3_parse_date(const char *text)
{
    struct tm t = {0};
    const char *end = strptime(text, "%a, %d %b %Y %H:%M:%S", &t);
    return end && strcmp(end, " GMT") == 0 ? (int64_t)timegm(&t) * 1000 : -1;
}

/* ---- places ---- */

/* docs.aws.amazon.com: "General purpose bucket naming rules"; old buckets in us-east-1 may have capitals and "_". */
int ty_s3_check_bucket(const char *bucket, ty_error *err)
{
    size_t n = strlen(bucket);
    bool is_fine = n >= 3 && n <= 63 && !strstr(bucket, "..") && strchr("-._", bucket[0]) == NULL &&
                   strchr("-._", bucket[n - 1]) == NULL &&
                   strspn(bucket, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_") == n;
    if (is_fine)
        return 0;
    ty_error_set(err, TY_E_CONFIG, "\"%.100s\" is no name of a bucket", bucket);
    return ty_error_help(err, "names have 3 to 63 letters, digits, \".\" and \"-\"; access points are not supported");
}

int ty_s3_check_key(const char *key, ty_error *err)
{
    size_t n = strlen(key);
    if (n == 0)
        return ty_error_set(err, TY_E_CONFIG, "a key of an object is needed, but only a bucket is given");
    if (n > TY_S3_MAX_KEY_BYTES)
        return ty_error_set(err, TY_E_CONFIG, "the key has %zu bytes, but S3 allows %d: \"%.100s...\"", n,
                            TY_S3_MAX_KEY_BYTES, key);
    if (ty_utf8_fault(key, n))
        return ty_error_set(err, TY_E_CONFIG, "the key \"%.300s\" is no UTF-8, which S3 asks for", key);
    return 0;
}

int ty_s3_parse(const char *uri, ty_arena *arena, ty_s3_place *out, ty_error *err)
{
    if (strncmp(uri, "s3://", 5) != 0)
        return ty_error_set(err, TY_E_CONFIG, "\"%.200s\" does not begin with s3://", uri);
    size_t n = strcspn(uri + 5, "/");
    const char *rest = uri + 5 + n;
    out->bucket = ty_arena_strndup(arena, uri + 5, n);
    out->key = ty_arena_strdup(arena, *rest ? rest + 1 : "");
    return ty_s3_check_bucket(out->bucket, err);
}

int ty_s3_address(ty_s3 *s3, const char *bucket, const char *region, ty_arena *arena, const char **url,
                  const char **path, ty_error *err)
{
    bool is_own;
    if (ty_s3_check_bucket(bucket, err) < 0 ||
        ty_aws_endpoint(s3->aws, &ty_service_s3, region, arena, url, &is_own, err) < 0)
        return -1;
    /* A certificate for *.s3.REGION... holds for one name in front, without dots; hosts know no capitals. */
    bool fits_a_host = strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(bucket);
    bool is_in_path = s3->style == TY_S3_PATH || !fits_a_host || (s3->style == TY_S3_AUTO && is_own);
    *path = is_in_path ? ty_arena_printf(arena, "/%s", bucket) : "";
    if (!is_in_path) {
        const char *host = strstr(*url, "://") + 3;
        *url = ty_arena_printf(arena, "%.*s%s.%s", (int)(host - *url), *url, bucket, host);
    }
    return 0;
}

/* ---- calls ---- */

static const char *region_of(const ty_s3 *s3, const char *bucket)
{
    size_t n = s3->n_known < TY_S3_KNOWN_BUCKETS ? s3->n_known : TY_S3_KNOWN_BUCKETS;
    for (size_t i = 0; i < n; i++)
        if (strcmp(s3->known[i].bucket, bucket) == 0)
            return s3->known[i].region;
    return NULL;
}

static void remember(ty_s3 *s3, const char *bucket, const char *region)
{
    const char *known = region_of(s3, bucket);
    ty_s3_known *k = &s3->known[s3->n_known % TY_S3_KNOWN_BUCKETS];
    if (known && strcmp(known, region) == 0)
        return;
    if (known) /* it turned out to be another one */
        for (k = s3->known; k->region != known;)
            k++;
    else
        s3->n_known++;
    snprintf(k->bucket, sizeof k->bucket, "%s", bucket);
    snprintf(k->region, sizeof k->region, "%s", region);
}

/* The region where a refused call should have gone; NULL: it was in the right one, or nobody says. */
static const char *other_region(const ty_answer *answer, const char *region, ty_arena *arena)
{
    static const int statuses[] = {301, 307, 308, 400, 403};
    bool may_be = false;
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++)
        may_be |= answer->http.status == statuses[i];
    if (!may_be)
        return NULL;
    const char *told = ty_headers_get(&answer->http.headers, "x-amz-bucket-region");
    if (!told || !ty_region_is_valid(told))
        told = ty_s3_read_region(answer->http.body.data, answer->http.body.len, arena);
    return told && strcmp(told, region) != 0 ? ty_arena_strdup(arena, told) : NULL;
}

static const char *encode_path(const char *bucket_path, const char *key, ty_arena *arena)
{
    ty_buf path;
    ty_buf_init(&path, MAX_URL_BYTES);
    ty_buf_adds(&path, bucket_path);
    ty_buf_addc(&path, '/');
    ty_uri_encode(&path, key, strlen(key), true);
    const char *copy = path.failed ? NULL : ty_arena_strdup(arena, path.data);
    ty_buf_fini(&path);
    return copy;
}

static int send_to(ty_s3 *s3, const ty_s3_place *at, const char *region, ty_call call, ty_arena *arena,
                   ty_answer *answer, ty_error *err)
{
    ty_header headers[TY_S3_MAX_CALL_HEADERS + 1];
    const char *bucket_path;
    if (call.n_headers > TY_S3_MAX_CALL_HEADERS)
        return ty_error_set(err, TY_E_INTERNAL, "too many headers for %s", call.operation);
    if (call.n_headers > 0)
        memcpy(headers, call.headers, call.n_headers * sizeof headers[0]);
    bool is_making = strcmp(call.operation, "CreateBucket") == 0;
    if (s3->options.owner && !is_making)
        headers[call.n_headers++] = (ty_header){"x-amz-expected-bucket-owner", s3->options.owner};
    if (ty_s3_address(s3, at->bucket, region, arena, &call.url, &bucket_path, err) < 0)
        return -1;
    call.service = &ty_service_s3;
    call.region = region;
    call.path = encode_path(bucket_path, at->key, arena);
    call.headers = headers;
    call.query = call.query ? call.query : "";
    call.is_s3 = call.errors_in_xml = true;
    if (!call.path)
        return ty_error_set(err, TY_E_CONFIG, "the key is too long");
    return ty_aws_send(s3->aws, &call, arena, answer, err);
}

int ty_s3_send(ty_s3 *s3, const ty_s3_place *at, const ty_call *call, ty_arena *arena, ty_answer *answer, ty_error *err)
{
    const char *known = region_of(s3, at->bucket);
    char region[64];
    snprintf(region, sizeof region, "%s", known ? known : ty_aws_region(s3->aws));
    for (int hop = 0;; hop++) {
        answer->http.status = 0;
        answer->http.headers.n = 0;
        int rc = send_to(s3, at, region, *call, arena, answer, err);
        if (rc == 0) {
            remember(s3, at->bucket, region);
            return 0;
        }
        const char *other = other_region(answer, region, arena);
        if (!other || hop == MAX_HOPS)
            return ty_error_wrap(err, "s3://%s/%.300s", at->bucket, at->key);
        ty_log_debug("aws", "bucket %s is in %s, not %s", at->bucket, other, region);
        remember(s3, at->bucket, other);
        snprintf(region, sizeof region, "%s", other);
        if (call->rewind && call->rewind(call->sink_ctx, err) < 0)
            return -1;
    }
}

/* ---- the small ones ---- */

/* Sends a call without a body whose answer nobody reads; *status (may be NULL) is the answer's. */
static int send_plain(ty_s3 *s3, const ty_s3_place *at, const char *operation, const char *method, int *status,
                      ty_error *err)
{
    ty_arena arena;
    ty_answer answer;
    ty_call call = {.operation = operation, .method = method, .body_fd = -1};
    ty_arena_init(&arena);
    ty_answer_init(&answer);
    int rc = ty_s3_send(s3, at, &call, &arena, &answer, err);
    if (status)
        *status = answer.http.status;
    ty_answer_fini(&answer);
    ty_arena_fini(&arena);
    return rc;
}

int ty_s3_find_bucket(ty_s3 *s3, const char *bucket, ty_error *err)
{
    int status = 0;
    ty_error own = {0};
    if (region_of(s3, bucket))
        return 0;
    if (send_plain(s3, &(ty_s3_place){bucket, ""}, "HeadBucket", "HEAD", &status, &own) == 0)
        return 0;
    if (status == 404) {
        ty_error_set(err, TY_E_NOT_FOUND, "there is no bucket \"%s\"", bucket);
        return ty_error_help(err, "look at its name, and whether it is in this account and partition");
    }
    if (status >= 300 && status < 500) /* who may write need not be allowed to look; the next call tells */
        return 0;
    if (err)
        *err = own;
    return -1;
}

static int take_none(void *ctx, const void *bytes, size_t n_bytes, ty_error *err)
{
    (void)ctx, (void)bytes, (void)n_bytes, (void)err;
    return 0;
}

/* An answer to HEAD has no words: neither for the user, nor by which a wrong clock or an old token is seen and mended.
 * The same is asked by GET. 0: now it is answered. */
static int ask_for_words(ty_s3 *s3, const ty_s3_place *at, const char *operation, const char *query, ty_error *err)
{
    ty_arena arena;
    ty_answer answer;
    ty_header range = {"range", "bytes=0-0"};
    ty_error own = {0};
    ty_call call = {.operation = operation,
                    .method = "GET",
                    .query = query,
                    .headers = &range,
                    .n_headers = query ? 0 : 1,
                    .body_fd = -1,
                    .sink = take_none};
    ty_arena_init(&arena);
    ty_answer_init(&answer);
    int rc = ty_s3_send(s3, at, &call, &arena, &answer, &own);
    if (rc < 0 && answer.http.status == 416) /* it is there, and empty */
        rc = 0;
    if (rc < 0 && err)
        *err = own;
    ty_answer_fini(&answer);
    ty_arena_fini(&arena);
    return rc;
}

static int take_head(const ty_answer *answer, ty_s3_object *out, ty_error *err)
{
    const char *length = ty_headers_get(&answer->http.headers, "content-length");
    const char *etag = ty_headers_get(&answer->http.headers, "etag");
    const char *modified = ty_headers_get(&answer->http.headers, "last-modified");
    char *end = NULL;
    out->n_bytes = length ? strtoull(length, &end, 10) : 0;
    if (!length || *end || length[0] == '-' || !etag || strlen(etag) >= sizeof out->etag)
        return ty_error_set(err, TY_E_SERVICE, "S3 HeadObject: the answer names no size or no ETag");
    strcpy(out->etag, etag);
    out->modified_ms = modified ? ty_s3_parse_date(modified) : -1;
    return 0;
}

static int head_once(ty_s3 *s3, const ty_s3_place *at, ty_s3_object *out, int *status, ty_error *err)
{
    ty_arena arena;
    ty_answer answer;
    ty_call call = {.operation = "HeadObject", .method = "HEAD", .body_fd = -1};
    ty_arena_init(&arena);
    ty_answer_init(&answer);
    int rc = ty_s3_send(s3, at, &call, &arena, &answer, err);
    if (rc == 0)
        rc = take_head(&answer, out, err);
    *status = answer.http.status;
    ty_answer_fini(&answer);
    ty_arena_fini(&arena);
    return rc;
}

int ty_s3_head(ty_s3 *s3, const ty_s3_place *at, ty_s3_object *out, ty_error *err)
{
    int status;
    *out = (ty_s3_object){.key = at->key, .modified_ms = -1};
    if (ty_s3_check_key(at->key, err) < 0)
        return -1;
    if (head_once(s3, at, out, &status, err) == 0)
        return 0;
    if (status < 300 || status >= 500 || ask_for_words(s3, at, "HeadObject", NULL, err) < 0)
        return -1;
    return head_once(s3, at, out, &status, err);
}

int ty_s3_remove(ty_s3 *s3, const ty_s3_place *at, ty_error *err)
{
    if (ty_s3_check_key(at->key, err) < 0)
        return -1;
    return send_plain(s3, at, "DeleteObject", "DELETE", NULL, err);
}

int ty_s3_make_bucket(ty_s3 *s3, const char *bucket, ty_error *err)
{
    ty_arena arena;
    ty_answer answer;
    int status = 0;
    const char *region = ty_aws_region(s3->aws);
    ty_s3_place at = {bucket, ""};
    if (send_plain(s3, &at, "HeadBucket", "HEAD", &status, err) == 0)
        return 0;
    if (status == 400 || status == 403) {
        if (ask_for_words(s3, &at, "HeadBucket", "list-type=2&max-keys=0", err) == 0)
            return 0;
        if (err && strstr(err->message, "AccessDenied"))
            err->help[0] = 0;
        return ty_error_help(err, "a bucket of this name may belong to another account; name one of your own");
    }
    if (status != 404)
        return -1;
    ty_arena_init(&arena);
    ty_answer_init(&answer);
    const char *where = ty_arena_printf(&arena,
                                        "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                                        "<LocationConstraint>%s</LocationConstraint></CreateBucketConfiguration>",
                                        region);
    bool is_default = strcmp(region, "us-east-1") == 0; /* which has no name for itself here */
    ty_call call = {.operation = "CreateBucket",
                    .method = "PUT",
                    .body = is_default ? NULL : where,
                    .body_bytes = is_default ? 0 : strlen(where),
                    .body_fd = -1};
    int rc = ty_s3_send(s3, &at, &call, &arena, &answer, err);
    if (rc < 0 && strcmp(answer.code, "BucketAlreadyOwnedByYou") == 0) /* made by somebody of ours, or by an attempt */
        rc = 0;
    ty_answer_fini(&answer);
    ty_arena_fini(&arena);
    return rc;
}
