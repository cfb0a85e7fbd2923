/* sign.h - Signature Version 4, by which AWS knows who sends a request.
 *
 * Source: "Authenticating Requests (AWS Signature Version 4)", docs.aws.amazon.com; judged by AWS's test vectors and by
 * botocore (tests/unit/aws_sign.c, tests/aws/sign.sh).
 *
 *     canonical request = method, path, sorted query, sorted headers, their names, hash of the body
 *     string to sign    = AWS4-HMAC-SHA256, time, date/region/service/aws4_request, SHA-256 of the canonical request
 *     key               = HMAC(HMAC(HMAC(HMAC("AWS4" + secret, date), region), service), "aws4_request")
 *
 * Every header given is signed: give host, x-amz-date, content-type and all x-amz-*, x-amz-security-token included, and
 * leave out what a proxy may change (user-agent, expect).
 */
#ifndef TY_ESTIMATOR_SPEC_AWS_SIGN_H
#define TY_ESTIMATOR_SPEC_AWS_SIGN_H

#include "base/buf.h"
#include "estimator_spec/aws/headers.h"
#include "estimator_spec/aws/secret.h"

#define TY_SIGN_TIME_BYTES       17 /* "20150830T123600Z" and the NUL */
#define TY_SIGN_UNSIGNED_PAYLOAD "UNSIGNED-PAYLOAD"

typedef struct ty_sign_key {
    const char *access_key;
    const ty_secret *secret;
    const char *region, *service; /* "eu-west-1", "sagemaker" */
    const char *time;             /* as in the header x-amz-date */
} ty_sign_key;

typedef struct ty_sign_request {
    const char *method;
    const char *path;  /* as it is sent, percent-encoded: "/a%20b"; "" counts as "/" */
    const char *query; /* as it is sent, without "?": "prefix=a%2Fb&list-type=2"; in any order */
    const ty_header *headers;
    size_t n_headers;
    const char *payload; /* hex of the body's SHA-256, or TY_SIGN_UNSIGNED_PAYLOAD (S3 alone takes it) */
    bool path_as_is;     /* S3: the path is signed as it is sent; others remove dots and slashes, and encode it again */
} ty_sign_request;

/* "20150830T123600Z"; returns out. */
const char *ty_sign_time(int64_t utc_ms, char out[TY_SIGN_TIME_BYTES]);
/* The canonical request; *names (may be NULL) gets "content-type;host;x-amz-date". */
int ty_sign_canonical(const ty_sign_request *request, ty_buf *out, ty_buf *names, ty_error *err);
/* The value of the header Authorization. It holds no secret, but is not to be printed either: it opens the door for
 * fifteen minutes. */
int ty_sign(const ty_sign_key *key, const ty_sign_request *request, ty_buf *authorization, ty_error *err);

/* Percent-encodes all but A-Z a-z 0-9 - . _ ~ and, with keep_slash, "/". */
int ty_uri_encode(ty_buf *out, const char *bytes, size_t n_bytes, bool keep_slash);

#endif
