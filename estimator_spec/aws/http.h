/* http.h - one HTTP request at a time over libcurl, bounded in size and time.
 *
 * libcurl is opened when the first request is made: linked, it and what it brings would cost every start of every
 * program 4 ms. Proxies are as libcurl's environment says (https_proxy, no_proxy ...), certificates as AWS_CA_BUNDLE or
 * the system says; redirects are never followed, since a signature is for one host.
 *
 * Nothing here repeats anything (call.h does), prints anything, or puts a header's value into a message.
 */
#ifndef TY_ESTIMATOR_SPEC_AWS_HTTP_H
#define TY_ESTIMATOR_SPEC_AWS_HTTP_H

#include "base/arena.h"
#include "base/buf.h"
#include "estimator_spec/aws/headers.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

/* Why there is no answer. */
typedef enum ty_http_fault {
    TY_HTTP_FINE,
    TY_HTTP_UNREACHABLE, /* no such host, nobody listens, no way through the proxy */
    TY_HTTP_TIMEOUT,     /* nothing came for too long */
    TY_HTTP_BROKEN,      /* the connection ended before the answer did, or the answer is no HTTP */
    TY_HTTP_TLS,         /* who answered is not who was asked, or cannot speak TLS */
    TY_HTTP_STOPPED,     /* *stop was set */
    TY_HTTP_OURS,        /* a fault on this side: no libcurl, no memory, the sink failed, an answer beyond its limit */
} ty_http_fault;

typedef struct ty_http ty_http; /* a connection is kept for the next request to the same host; one thread at a time */

/* stop (may be NULL) is looked at while a request waits: not 0 ends it. */
int ty_http_new(const volatile sig_atomic_t *stop, ty_http **out, ty_error *err);
void ty_http_free(ty_http *http);
/* Looks at another one from now on: NULL to clear up behind what was stopped. */
void ty_http_set_stop(ty_http *http, const volatile sig_atomic_t *stop);

typedef struct ty_http_request {
    const char *method;
    const char *url;           /* http:// or https://, without user and password */
    const ty_headers *headers; /* Host included if it was signed */
    const void *body;          /* body_bytes of it; or a part of a file: */
    uint64_t body_bytes;
    int body_fd; /* used if body is NULL and body_bytes is not 0 */
    uint64_t body_offset;
    int connect_ms, idle_ms; /* idle_ms: this long without a byte in either direction ends the request */
    bool no_proxy;           /* link-local addresses: credentials never go through a proxy */
    /* Gets the body of an answer with status 200 to 299 piece by piece; NULL: it goes into answer->body. -1 with *err
     * set ends the request. */
    int (*sink)(void *ctx, const void *bytes, size_t n_bytes, ty_error *err);
    void *sink_ctx;
} ty_http_request;

typedef struct ty_http_answer {
    int status;         /* 0: no answer */
    bool is_repeated;   /* the request went out twice: a connection that was kept turned out to be closed */
    ty_headers headers; /* in the arena that was given */
    ty_buf body;        /* of the caller, initialised with its limit */
} ty_http_answer;

/* 0 whenever an answer has come whole, whatever its status. Else -1 and *fault: the message names the host and what
 * happened. */
int ty_http_send(ty_http *http, const ty_http_request *request, ty_arena *arena, ty_http_answer *answer,
                 ty_http_fault *fault, ty_error *err);

#endif
