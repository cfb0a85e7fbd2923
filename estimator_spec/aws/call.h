/* call.h - one call of a service: signed, sent, repeated where that helps, its error told in words.
 *
 * Repeated is what botocore repeats in its standard mode: three attempts in all (AWS_MAX_ATTEMPTS), after a random part
 * of 50 ms, 100 ms ... or, when the service asks to slow down, of 1 s, 2 s ... up to 20 s. A clock that is wrong is
 * corrected once by the service's Date. Certificates that are not trusted are not asked again.
 */
#ifndef TY_ESTIMATOR_SPEC_AWS_CALL_H
#define TY_ESTIMATOR_SPEC_AWS_CALL_H

#include "estimator_spec/aws/credentials.h"
#include "estimator_spec/aws/http.h"

struct ty_caller {
    ty_http *http;
    const volatile sig_atomic_t *stop; /* may be NULL; not 0 ends calls and pauses */
    int64_t skew_ms;                   /* the services' clock minus ours, as far as it is known */
    int max_attempts;
    uint64_t jitter; /* private: where the random numbers stand */
};

/* Fills *c, with the number of attempts that the environment says. */
int ty_caller_init(ty_caller *c, const volatile sig_atomic_t *stop, ty_error *err);
void ty_caller_fini(ty_caller *c);
/* Waits; -1 as soon as it is stopped. */
int ty_caller_pause(ty_caller *c, int64_t ms);

typedef struct ty_call {
    const ty_service *service;
    const char *url, *region;          /* "https://host[:port][/base]" without a slash at its end */
    const char *operation;             /* in messages: "DescribeTrainingJob" */
    const char *method, *path, *query; /* both encoded; path begins with "/" */
    const ty_header *headers;          /* beside host, date, token and, for S3, the body's hash */
    size_t n_headers;
    const void *body; /* or body_bytes of a file, from body_offset: */
    uint64_t body_bytes;
    int body_fd;
    uint64_t body_offset;
    const char *payload; /* hex of the body's SHA-256; NULL: it is computed (of `body` only) */
    bool is_s3;          /* signed by S3's rules */
    bool errors_in_xml;
    int (*sink)(void *ctx, const void *bytes, size_t n_bytes, ty_error *err); /* as in http.h */
    /* Called before each attempt after the first: takes back what the sink has got. May be NULL without a sink. */
    int (*rewind)(void *ctx, ty_error *err);
    void *sink_ctx;
} ty_call;

typedef struct ty_answer {
    ty_http_answer http;
    char code[96];        /* the service's word for its error: "ThrottlingException"; "" without one */
    char request_id[160]; /* "" if none came */
    int attempts;
    bool is_unsure; /* an attempt ended without an answer or with 5xx: it may have been carried out all the same */
} ty_answer;

enum { TY_ANSWER_MAX_BYTES = 8 << 20 };

void ty_answer_init(ty_answer *a);
void ty_answer_fini(ty_answer *a); /* overwrites the body, which may hold credentials */

/* as: NULL leaves the request without a signature. 0 with a status of 200 to 299. On failure *answer has the last
 * status and code, and the error one of these: TY_E_CREDENTIALS (who we are is not accepted, or may not do it),
 * TY_E_NOT_FOUND, TY_E_REFUSED (the request is wrong), TY_E_SERVICE (it cannot be reached, fails or throttles),
 * TY_E_STOPPED. The message names service, operation, the service's words and its request id. */
int ty_call_send(ty_caller *c, const ty_call *call, const ty_credentials *as, ty_arena *arena, ty_answer *answer,
                 ty_error *err);

#endif
