/* call.c - see call.h. */
#define _GNU_SOURCE
#include "estimator_spec/aws/call.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/version.h"
#include "estimator_spec/aws/refusal.h"
#include "estimator_spec/aws/sign.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    DEFAULT_ATTEMPTS = 3,
    CONNECT_MS = 20000,
    IDLE_MS = 60000,
    MAX_WAIT_MS = 20000,
    MAX_ADDED_MS = 5000,     /* by x-amz-retry-after */
    SKEW_MS = 4 * 60 * 1000, /* below it a signature is refused for another reason */
    SLICE_MS = 200,
};

int ty_caller_init(ty_caller *c, const volatile sig_atomic_t *stop, ty_error *err)
{
    const char *attempts = getenv("AWS_MAX_ATTEMPTS");
    int n = attempts ? atoi(attempts) : 0;
    *c = (ty_caller){.stop = stop,
                     .max_attempts = n > 0 && n <= 100 ? n : DEFAULT_ATTEMPTS,
                     .jitter = (uint64_t)ty_clock_ns() ^ (uint64_t)getpid() << 32};
    return ty_http_new(stop, &c->http, err);
}

void ty_caller_fini(ty_caller *c)
{
    ty_http_free(c->http);
    c->http = NULL;
}

int ty_caller_pause(ty_caller *c, int64_t ms)
{
    for (int64_t end = ty_clock_ms() + ms, left; (left = end - ty_clock_ms()) > 0;) {
        if (c->stop && *c->stop)
            return -1;
        poll(NULL, 0, (int)(left < SLICE_MS ? left : SLICE_MS));
    }
    return c->stop && *c->stop ? -1 : 0;
}

void ty_answer_init(ty_answer *a)
{
    *a = (ty_answer){0};
    ty_buf_init(&a->http.body, TY_ANSWER_MAX_BYTES);
}

void ty_answer_fini(ty_answer *a)
{
    explicit_bzero(a->http.body.data, a->http.body.len);
    ty_buf_fini(&a->http.body);
}

/* ---- one attempt ---- */

/* "host[:port]" and, behind it, the path that the endpoint itself has. */
static const char *host_of(const char *url, ty_arena *arena, const char **base)
{
    const char *host = strstr(url, "://") + 3;
    size_t n = strcspn(host, "/");
    *base = host + n;
    return ty_arena_strndup(arena, host, n);
}

static int hash_body(const ty_call *call, ty_arena *arena, const char **hex, ty_error *err)
{
    uint8_t digest[TY_SHA256_BYTES];
    *hex = call->payload;
    if (*hex)
        return 0;
    if (ty_sha256_bytes(call->body ? call->body : "", call->body ? call->body_bytes : 0, digest, err) < 0)
        return -1;
    *hex = ty_sha256_hex(digest, ty_arena_alloc(arena, TY_SHA256_HEX_BYTES));
    return 0;
}

/* The headers to be signed, then Authorization and what is not signed. */
static int make_headers(const ty_caller *c, const ty_call *call, const ty_credentials *as, const char *path,
                        const char *host, ty_arena *arena, ty_headers *h, ty_error *err)
{
    const char *payload;
    char *time = ty_arena_alloc(arena, TY_SIGN_TIME_BYTES);
    ty_buf authorization;
    if (hash_body(call, arena, &payload, err) < 0)
        return -1;
    h->n = 0;
    for (size_t i = 0; i < call->n_headers; i++)
        ty_headers_add(h, call->headers[i].name, call->headers[i].value);
    ty_headers_add(h, "host", host);
    if (as) {
        ty_headers_add(h, "x-amz-date", ty_sign_time(ty_clock_utc_ms() + c->skew_ms, time));
        if (call->is_s3)
            ty_headers_add(h, "x-amz-content-sha256", payload);
        if (ty_secret_is_set(&as->token))
            ty_headers_add(h, "x-amz-security-token", ty_secret_reveal(&as->token));
        ty_sign_key key = {as->access_key, &as->secret, call->region, call->service->signs_as, time};
        ty_sign_request request = {call->method, path, call->query, h->at, h->n, payload, call->is_s3};
        ty_buf_init(&authorization, 1 << 14);
        int rc = ty_sign(&key, &request, &authorization, err);
        ty_headers_add(h, "authorization", ty_arena_strdup(arena, authorization.data));
        ty_buf_fini(&authorization);
        if (rc < 0)
            return -1;
    }
    ty_headers_add(h, "user-agent", "trainyard/" TY_VERSION);
    ty_headers_add(h, "accept-encoding", "identity");
    return 0;
}

static int send_once(ty_caller *c, const ty_call *call, const ty_credentials *as, ty_arena *arena, ty_answer *answer,
                     ty_http_fault *fault, ty_error *err)
{
    const char *base, *host = host_of(call->url, arena, &base);
    const char *path = ty_arena_printf(arena, "%s%s", base, call->path);
    ty_headers headers;
    *fault = TY_HTTP_OURS;
    if (make_headers(c, call, as, path, host, arena, &headers, err) < 0)
        return -1;
    const char *url = ty_arena_printf(arena, "%.*s%s%s%s", (int)(base - call->url), call->url, path,
                                      *call->query ? "?" : "", call->query);
    ty_http_request request = {.method = call->method,
                               .url = url,
                               .headers = &headers,
                               .body = call->body,
                               .body_bytes = call->body_bytes,
                               .body_fd = call->body_fd,
                               .body_offset = call->body_offset,
                               .connect_ms = CONNECT_MS,
                               .idle_ms = IDLE_MS,
                               .sink = call->sink,
                               .sink_ctx = call->sink_ctx};
    ty_buf_clear(&answer->http.body);
    return ty_http_send(c->http, &request, arena, &answer->http, fault, err);
}

/* ---- again? ---- */

/* splitmix64 (Steele, Lea, Flood 2014): 0 to 1. */
static double next_random(ty_caller *c)
{
    uint64_t z = c->jitter += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (double)((z ^ z >> 31) >> 11) / (double)(UINT64_C(1) << 53);
}

/* A random part of base * 2^(attempt - 1), at most of 20 s; at least what the service asks for, within 5 s more. */
static int64_t wait_ms(ty_caller *c, const ty_answer *answer, int attempt, bool is_throttled)
{
    double most = (is_throttled ? 1000 : 50) * (double)(UINT64_C(1) << (attempt < 20 ? attempt - 1 : 20));
    int64_t wait = (int64_t)(next_random(c) * (most < MAX_WAIT_MS ? most : MAX_WAIT_MS));
    const char *after = ty_headers_get(&answer->http.headers, "x-amz-retry-after");
    int64_t asked = after ? atoll(after) : 0, most_asked = wait + MAX_ADDED_MS;
    asked = asked < most_asked ? asked : most_asked;
    return asked > wait ? asked : wait;
}

/* Whether the service's clock is another than the one that was signed with; then that one is taken. */
static bool set_clock(ty_caller *c, const ty_answer *answer)
{
    struct tm t = {0};
    const char *date = ty_headers_get(&answer->http.headers, "date");
    if (!date || !strptime(date, "%a, %d %b %Y %H:%M:%S", &t))
        return false;
    int64_t skew_ms = (int64_t)timegm(&t) * 1000 - ty_clock_utc_ms();
    int64_t change_ms = skew_ms - c->skew_ms;
    if (change_ms > -SKEW_MS && change_ms < SKEW_MS)
        return false;
    c->skew_ms = skew_ms;
    ty_log_warning("aws", "this machine's clock is %lld s %s the services'; their time is used",
                   (long long)(skew_ms < 0 ? -skew_ms : skew_ms) / 1000, skew_ms < 0 ? "ahead of" : "behind");
    return true;
}

/* After attempt `attempt` has failed: 0 to go on, having waited, or -1. */
static int prepare_next(ty_caller *c, const ty_call *call, ty_answer *answer, int attempt, ty_refusal_kind kind,
                        bool *clock_was_set, ty_error *err)
{
    if (attempt >= c->max_attempts || kind == TY_REFUSAL_FINAL)
        return -1;
    if (kind == TY_REFUSAL_CLOCK) {
        if (*clock_was_set || !set_clock(c, answer))
            return -1;
        *clock_was_set = true;
    } else {
        int64_t ms = wait_ms(c, answer, attempt, kind == TY_REFUSAL_THROTTLED);
        ty_log_debug("aws", "attempt %d of %d failed, again in %lld ms: %s", attempt, c->max_attempts, (long long)ms,
                     err->message);
        if (ty_caller_pause(c, ms) < 0)
            return ty_error_set(err, TY_E_STOPPED, "%s %s: stopped", call->service->title, call->operation);
    }
    return call->rewind ? call->rewind(call->sink_ctx, err) : 0;
}

static ty_refusal_kind kind_of_fault(ty_http_fault fault)
{
    return fault == TY_HTTP_UNREACHABLE || fault == TY_HTTP_TIMEOUT || fault == TY_HTTP_BROKEN ? TY_REFUSAL_TRANSIENT
                                                                                               : TY_REFUSAL_FINAL;
}

int ty_call_send(ty_caller *c, const ty_call *call, const ty_credentials *as, ty_arena *arena, ty_answer *answer,
                 ty_error *err)
{
    bool clock_was_set = false;
    ty_error own = {0};
    err = err ? err : &own;
    answer->is_unsure = false;
    for (int attempt = 1;; attempt++) {
        ty_http_fault fault;
        ty_refusal_kind kind;
        answer->attempts = attempt;
        answer->code[0] = answer->request_id[0] = 0;
        *err = (ty_error){0};
        int rc = send_once(c, call, as, arena, answer, &fault, err);
        answer->is_unsure |= answer->http.is_repeated;
        if (rc == 0 && answer->http.status >= 200 && answer->http.status < 300)
            return 0;
        if (rc < 0) {
            ty_error_wrap(err, "%s %s", call->service->title, call->operation);
            kind = kind_of_fault(fault);
            answer->is_unsure |= fault != TY_HTTP_UNREACHABLE;
        } else {
            kind = ty_refusal_read(call, as, arena, answer, err);
            answer->is_unsure |= answer->http.status >= 500;
        }
        if (prepare_next(c, call, answer, attempt, kind, &clock_was_set, err) < 0) {
            if (attempt > 1 && err->code == TY_E_SERVICE)
                ty_error_wrap(err, "after %d attempts", attempt);
            return -1;
        }
    }
}
