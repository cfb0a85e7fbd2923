/* refusal.c - see refusal.h. Codes as in botocore's retries/standard.py and AWS's "Common Errors". */
#define _GNU_SOURCE
#include "estimator_spec/aws/refusal.h"

#include "base/json.h"
#include "estimator_spec/aws/xml.h"

#include <stdio.h>
#include <string.h>

typedef struct meaning {
    const char *code;
    ty_refusal_kind kind;
    ty_code error;
    const char *help;
} meaning;

#define THROTTLED(code)                                                                         \
    {                                                                                           \
        code, TY_REFUSAL_THROTTLED, TY_E_SERVICE, "the account asks too often; try again later" \
    }
#define TRANSIENT(code)                                \
    {                                                  \
        code, TY_REFUSAL_TRANSIENT, TY_E_SERVICE, NULL \
    }
#define CLOCK_HELP  "look at this machine's clock, and whether access key and secret key belong together"
#define EXPIRED     "get new credentials: the session's token has run out"
#define NOT_ALLOWED "the policies of this user or role do not allow it; the message names what is missing"
#define UNKNOWN_KEY "this access key does not exist there: look at the region's partition, and at AWS_SESSION_TOKEN"

#define OTHER_REGION "the bucket is in another region: give that one with --region or AWS_REGION"

static const meaning meanings[] = {
    THROTTLED("Throttling"),
    THROTTLED("ThrottlingException"),
    THROTTLED("ThrottledException"),
    THROTTLED("RequestThrottledException"),
    THROTTLED("TooManyRequestsException"),
    THROTTLED("ProvisionedThroughputExceededException"),
    THROTTLED("TransactionInProgressException"),
    THROTTLED("RequestLimitExceeded"),
    THROTTLED("BandwidthLimitExceeded"),
    THROTTLED("LimitExceededException"),
    THROTTLED("RequestThrottled"),
    THROTTLED("SlowDown"),
    THROTTLED("PriorRequestNotComplete"),
    THROTTLED("EC2ThrottledException"),
    TRANSIENT("RequestTimeout"),
    TRANSIENT("RequestTimeoutException"),
    {"RequestTimeTooSkewed", TY_REFUSAL_CLOCK, TY_E_CREDENTIALS, CLOCK_HELP},
    {"RequestExpired", TY_REFUSAL_CLOCK, TY_E_CREDENTIALS, CLOCK_HELP},
    {"InvalidSignatureException", TY_REFUSAL_CLOCK, TY_E_CREDENTIALS, CLOCK_HELP},
    {"SignatureDoesNotMatch", TY_REFUSAL_CLOCK, TY_E_CREDENTIALS, CLOCK_HELP},
    {"AuthFailure", TY_REFUSAL_CLOCK, TY_E_CREDENTIALS, CLOCK_HELP},
    {"ExpiredToken", TY_REFUSAL_FINAL, TY_E_CREDENTIALS, EXPIRED},
    {"ExpiredTokenException", TY_REFUSAL_FINAL, TY_E_CREDENTIALS, EXPIRED},
    {"TokenRefreshRequired", TY_REFUSAL_FINAL, TY_E_CREDENTIALS, EXPIRED},
    {"AccessDenied", TY_REFUSAL_FINAL, TY_E_CREDENTIALS, NOT_ALLOWED},
    {"AccessDeniedException", TY_REFUSAL_FINAL, TY_E_CREDENTIALS, NOT_ALLOWED},
    {"UnauthorizedOperation", TY_REFUSAL_FINAL, TY_E_CREDENTIALS, NOT_ALLOWED},
    {"UnrecognizedClientException", TY_REFUSAL_FINAL, TY_E_CREDENTIALS, UNKNOWN_KEY},
    {"InvalidClientTokenId", TY_REFUSAL_FINAL, TY_E_CREDENTIALS, UNKNOWN_KEY},
    {"InvalidAccessKeyId", TY_REFUSAL_FINAL, TY_E_CREDENTIALS, UNKNOWN_KEY},
    {"MissingAuthenticationToken", TY_REFUSAL_FINAL, TY_E_CREDENTIALS, NULL},
    {"ResourceNotFound", TY_REFUSAL_FINAL, TY_E_NOT_FOUND, NULL},
    {"ResourceNotFoundException", TY_REFUSAL_FINAL, TY_E_NOT_FOUND, NULL},
    {"NoSuchBucket", TY_REFUSAL_FINAL, TY_E_NOT_FOUND, "the bucket does not exist; names are unique in the world"},
    {"NoSuchEntity", TY_REFUSAL_FINAL, TY_E_NOT_FOUND, NULL},
    {"NoSuchKey", TY_REFUSAL_FINAL, TY_E_NOT_FOUND, NULL},
    {"NoSuchUpload", TY_REFUSAL_FINAL, TY_E_NOT_FOUND, NULL},
    TRANSIENT("InternalError"),
    TRANSIENT("ServiceUnavailable"),
    TRANSIENT("OperationAborted"),
    {"NotFound", TY_REFUSAL_FINAL, TY_E_NOT_FOUND, NULL},
    {"PermanentRedirect", TY_REFUSAL_FINAL, TY_E_CONFIG, OTHER_REGION},
    {"TemporaryRedirect", TY_REFUSAL_FINAL, TY_E_CONFIG, OTHER_REGION},
    {"AuthorizationHeaderMalformed", TY_REFUSAL_FINAL, TY_E_CONFIG, OTHER_REGION},
    {"IllegalLocationConstraintException", TY_REFUSAL_FINAL, TY_E_CONFIG, OTHER_REGION},
    {"AllAccessDisabled", TY_REFUSAL_FINAL, TY_E_CREDENTIALS, NOT_ALLOWED},
    {"BucketAlreadyExists", TY_REFUSAL_FINAL, TY_E_REFUSED, "somebody else has a bucket of this name; choose another"},
    {"InvalidObjectState", TY_REFUSAL_FINAL, TY_E_REFUSED, "the object is archived; restore it first"},
    {"ResourceLimitExceeded", TY_REFUSAL_FINAL, TY_E_REFUSED,
     "the account's quota: ask for more under Service Quotas, or wait for other jobs to end"},
};

static meaning meaning_of(const char *code, int status)
{
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strcmp(meanings[i].code, code) == 0)
            return meanings[i];
    if (status == 429)
        return (meaning)THROTTLED("");
    if (status == 500 || status == 502 || status == 503 || status == 504)
        return (meaning)TRANSIENT("");
    ty_code error = status == 401 || status == 403 ? TY_E_CREDENTIALS : status == 404 ? TY_E_NOT_FOUND : TY_E_REFUSED;
    return (meaning){"", TY_REFUSAL_FINAL, status >= 500 ? TY_E_SERVICE : error, NULL};
}

/* ---- reading ---- */

/* "com.amazonaws.sagemaker#ResourceInUse:http://..." is ResourceInUse. */
static void take_code(ty_answer *a, const char *text)
{
    const char *hash = strchr(text, '#');
    text = hash ? hash + 1 : text;
    snprintf(a->code, sizeof a->code, "%.*s", (int)strcspn(text, ": \t\r\n"), text);
}

static const char *string_at(const ty_doc *map, const char *key)
{
    const ty_doc *d = ty_doc_find(map, key);
    return d && d->kind == TY_DOC_STRING ? d->string : NULL;
}

static const char *read_json(ty_arena *arena, ty_answer *a)
{
    ty_doc *d = NULL;
    ty_error ignored = {0};
    if (ty_json_parse(arena, "answer", a->http.body.data, a->http.body.len, NULL, &d, &ignored) < 0)
        return NULL;
    const char *code = string_at(d, "__type"), *message = string_at(d, "message");
    if (!code)
        code = string_at(d, "code");
    if (code && !a->code[0])
        take_code(a, code);
    return message ? message : string_at(d, "Message");
}

static const char *read_xml(ty_arena *arena, ty_answer *a)
{
    ty_xml *root = NULL;
    ty_error ignored = {0};
    if (a->http.body.len == 0 ||
        ty_xml_parse(arena, "answer", a->http.body.data, a->http.body.len, &root, &ignored) < 0)
        return NULL;
    const ty_xml *error = ty_xml_find(root, "Error");
    if (!error)
        error = root; /* S3's is the whole document */
    take_code(a, ty_xml_text(error, "Code"));
    const char *id = ty_xml_text(root, "RequestId");
    if (!a->request_id[0])
        snprintf(a->request_id, sizeof a->request_id, "%s", id);
    return ty_xml_text(error, "Message");
}

static void read_headers(ty_answer *a)
{
    static const char *const names[] = {"x-amzn-requestid", "x-amz-request-id", "x-amzn-request-id"};
    const char *code = ty_headers_get(&a->http.headers, "x-amzn-errortype");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *id = ty_headers_get(&a->http.headers, names[i]);
        if (id && !a->request_id[0])
            snprintf(a->request_id, sizeof a->request_id, "%s", id);
    }
    if (code)
        take_code(a, code);
}

/* ---- telling ---- */

static void blot_out(char *text, const ty_secret *secret)
{
    const char *word = ty_secret_reveal(secret);
    size_t n = strlen(word);
    for (char *at = text; n > 0 && (at = strstr(at, word)); at += n)
        memset(at, '*', n);
}

/* A signature that is quoted opens the door for as long as its time is right. */
static void blot_out_signatures(char *text)
{
    for (char *at = text; (at = strstr(at, "Signature="));) {
        at += strlen("Signature=");
        memset(at, '*', strspn(at, "0123456789abcdef"));
    }
}

ty_refusal_kind ty_refusal_read(const ty_call *call, const ty_credentials *as, ty_arena *arena, ty_answer *answer,
                                ty_error *err)
{
    answer->code[0] = answer->request_id[0] = 0;
    read_headers(answer);
    const char *message = call->errors_in_xml ? read_xml(arena, answer) : read_json(arena, answer);
    meaning m = meaning_of(answer->code, answer->http.status);
    char *words = ty_arena_strdup(arena, message && *message ? message : "no reason is given");
    if (as) {
        blot_out(words, &as->token);
        blot_out(words, &as->secret);
        blot_out_signatures(words);
    }
    ty_error_set(err, m.error, "%s %s: %s%s%.900s (HTTP %d%s%s)", call->service->title, call->operation, answer->code,
                 answer->code[0] ? ": " : "", words, answer->http.status, answer->request_id[0] ? ", request " : "",
                 answer->request_id);
    if (m.help)
        ty_error_help(err, "%s", m.help);
    return m.kind;
}
