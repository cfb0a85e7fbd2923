/* http.c - see http.h. */
#define _GNU_SOURCE
#include "estimator_spec/aws/http.h"

#include "base/dl.h"

#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- libcurl ---- */

static struct curl_table {
    CURLcode (*global_init)(long);
    CURL *(*easy_init)(void);
    CURLcode (*setopt)(CURL *, CURLoption, ...);
    CURLcode (*perform)(CURL *);
    CURLcode (*getinfo)(CURL *, CURLINFO, ...);
    void (*reset)(CURL *);
    void (*cleanup)(CURL *);
    const char *(*strerror)(CURLcode);
    struct curl_slist *(*slist_append)(struct curl_slist *, const char *);
    void (*slist_free_all)(struct curl_slist *);
} curl;
static ty_error curl_error;
static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void open_curl(void)
{
    static const char *const names[] = {"libcurl.so.4", NULL};
#define SYMBOL(name, field)                             \
    {                                                   \
        name, offsetof(struct curl_table, field), false \
    }
    static const ty_dl_symbol symbols[] = {
        SYMBOL("curl_global_init", global_init),   SYMBOL("curl_easy_init", easy_init),
        SYMBOL("curl_easy_setopt", setopt),        SYMBOL("curl_easy_perform", perform),
        SYMBOL("curl_easy_getinfo", getinfo),      SYMBOL("curl_easy_reset", reset),
        SYMBOL("curl_easy_cleanup", cleanup),      SYMBOL("curl_easy_strerror", strerror),
        SYMBOL("curl_slist_append", slist_append), SYMBOL("curl_slist_free_all", slist_free_all),
    };
#undef SYMBOL
    void *handle;
    if (ty_dl_open(names, symbols, sizeof symbols / sizeof symbols[0], &curl, &handle, &curl_error) < 0) {
        ty_error_help(&curl_error, "install libcurl (Debian: libcurl4); services are reached through it");
        return;
    }
    if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        ty_error_set(&curl_error, TY_E_LIBRARY, "libcurl does not start");
}

struct ty_http {
    CURL *easy;
    const volatile sig_atomic_t *stop;
    char words[CURL_ERROR_SIZE]; /* libcurl's, about the last request */
};

int ty_http_new(const volatile sig_atomic_t *stop, ty_http **out, ty_error *err)
{
    *out = NULL;
    pthread_once(&curl_once, open_curl);
    if (curl_error.code != TY_E_NONE) {
        if (err)
            *err = curl_error;
        return -1;
    }
    ty_http *http = calloc(1, sizeof *http);
    if (http && (http->easy = curl.easy_init())) {
        http->stop = stop;
        *out = http;
        return 0;
    }
    free(http);
    return ty_error_set(err, TY_E_LIMIT, "no memory");
}

void ty_http_free(ty_http *http)
{
    if (!http)
        return;
    curl.cleanup(http->easy);
    free(http);
}

void ty_http_set_stop(ty_http *http, const volatile sig_atomic_t *stop)
{
    http->stop = stop;
}

/* ---- one exchange ---- */

typedef struct exchange {
    ty_http *http;
    const ty_http_request *request;
    ty_http_answer *answer;
    ty_arena *arena;
    ty_error *err;
    uint64_t sent_bytes;
    uint64_t moved_bytes; /* at the last look at the clock */
    bool is_ours;         /* *err has been set on this side */
    bool is_stopped;
} exchange;

static int fail_ours(exchange *x, const char *words)
{
    x->is_ours = true;
    return ty_error_set(x->err, TY_E_LIMIT, "%s", words);
}

static size_t take_header(char *line, size_t size, size_t n, void *ctx)
{
    exchange *x = ctx;
    size_t bytes = size * n;
    const char *colon = memchr(line, ':', bytes);
    if (bytes > 5 && memcmp(line, "HTTP/", 5) == 0) /* a new answer: after 100 Continue, or a proxy's */
        x->answer->headers.n = 0;
    else if (colon) {
        const char *value = colon + 1, *end = line + bytes;
        while (value < end && (*value == ' ' || *value == '\t'))
            value++;
        while (end > value && (end[-1] == '\n' || end[-1] == '\r' || end[-1] == ' '))
            end--;
        ty_headers_add(&x->answer->headers, ty_arena_strndup(x->arena, line, (size_t)(colon - line)),
                       ty_arena_strndup(x->arena, value, (size_t)(end - value)));
    }
    return bytes;
}

static size_t take_body(char *bytes, size_t size, size_t n, void *ctx)
{
    exchange *x = ctx;
    size_t n_bytes = size * n;
    long status = 0;
    curl.getinfo(x->http->easy, CURLINFO_RESPONSE_CODE, &status);
    if (x->request->sink && status >= 200 && status < 300) {
        if (x->request->sink(x->request->sink_ctx, bytes, n_bytes, x->err) == 0)
            return n_bytes;
        x->is_ours = true;
        return 0;
    }
    if (ty_buf_add(&x->answer->body, bytes, n_bytes) == 0)
        return n_bytes;
    fail_ours(x, "the answer is larger than any that is expected");
    return 0;
}

static size_t give_body(char *out, size_t size, size_t n, void *ctx)
{
    exchange *x = ctx;
    const ty_http_request *r = x->request;
    uint64_t left = r->body_bytes - x->sent_bytes, room = size * n;
    size_t bytes = (size_t)(left < room ? left : room);
    if (r->body)
        memcpy(out, (const char *)r->body + x->sent_bytes, bytes);
    else if (bytes > 0) {
        ssize_t got = pread(r->body_fd, out, bytes, (off_t)(r->body_offset + x->sent_bytes));
        if (got <= 0) {
            fail_ours(x, got < 0 ? "the file that is being sent cannot be read any more"
                                 : "the file that is being sent has become shorter");
            return CURL_READFUNC_ABORT;
        }
        bytes = (size_t)got;
    }
    x->sent_bytes += bytes;
    return bytes;
}

/* libcurl goes back when a kept connection turns out to be closed and it tries again. */
static int seek_body(void *ctx, curl_off_t offset, int origin)
{
    exchange *x = ctx;
    if (origin != SEEK_SET)
        return CURL_SEEKFUNC_CANTSEEK;
    x->answer->is_repeated |= x->sent_bytes > 0;
    x->sent_bytes = (uint64_t)offset;
    return CURL_SEEKFUNC_OK;
}

static int look(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)a, (void)b, (void)c, (void)d;
    exchange *x = ctx;
    x->is_stopped = x->http->stop && *x->http->stop;
    return x->is_stopped;
}

static void set_method(exchange *x)
{
    CURL *e = x->http->easy;
    const ty_http_request *r = x->request;
    if (r->body_bytes > 0 || strcmp(r->method, "PUT") == 0 || strcmp(r->method, "POST") == 0) {
        curl.setopt(e, CURLOPT_UPLOAD, 1L);
        curl.setopt(e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)r->body_bytes);
        curl.setopt(e, CURLOPT_READFUNCTION, give_body);
        curl.setopt(e, CURLOPT_READDATA, x);
        curl.setopt(e, CURLOPT_SEEKFUNCTION, seek_body);
        curl.setopt(e, CURLOPT_SEEKDATA, x);
    }
    if (strcmp(r->method, "HEAD") == 0)
        curl.setopt(e, CURLOPT_NOBODY, 1L);
    curl.setopt(e, CURLOPT_CUSTOMREQUEST, r->method);
}

static void set_options(exchange *x, struct curl_slist *headers)
{
    CURL *e = x->http->easy;
    const ty_http_request *r = x->request;
    const char *bundle = getenv("AWS_CA_BUNDLE");
    curl.setopt(e, CURLOPT_URL, r->url);
    curl.setopt(e, CURLOPT_HTTPHEADER, headers);
    curl.setopt(e, CURLOPT_ERRORBUFFER, x->http->words);
    curl.setopt(e, CURLOPT_NOSIGNAL, 1L);
    curl.setopt(e, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl.setopt(e, CURLOPT_PATH_AS_IS, 1L); /* keys of S3 may hold "//" and ".." */
    curl.setopt(e, CURLOPT_CONNECTTIMEOUT_MS, (long)r->connect_ms);
    curl.setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl.setopt(e, CURLOPT_LOW_SPEED_TIME, (long)(r->idle_ms + 999) / 1000);
    curl.setopt(e, CURLOPT_HEADERFUNCTION, take_header);
    curl.setopt(e, CURLOPT_HEADERDATA, x);
    curl.setopt(e, CURLOPT_WRITEFUNCTION, take_body);
    curl.setopt(e, CURLOPT_WRITEDATA, x);
    curl.setopt(e, CURLOPT_XFERINFOFUNCTION, look);
    curl.setopt(e, CURLOPT_XFERINFODATA, x);
    curl.setopt(e, CURLOPT_NOPROGRESS, 0L);
    curl.setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
    if (bundle && *bundle)
        curl.setopt(e, CURLOPT_CAINFO, bundle);
    if (r->no_proxy)
        curl.setopt(e, CURLOPT_NOPROXY, "*");
    set_method(x);
}

static struct curl_slist *make_list(const ty_headers *h)
{
    struct curl_slist *list = NULL;
    ty_buf line;
    ty_buf_init(&line, 1 << 16);
    /* curl's own additions: it would wait for "100 Continue", and take a type for the body. */
    list = curl.slist_append(list, "Expect:");
    if (!ty_headers_get(h, "content-type"))
        list = curl.slist_append(list, "Content-Type:");
    for (size_t i = 0; i < h->n; i++) {
        ty_buf_clear(&line);
        ty_buf_addf(&line, h->at[i].value[0] ? "%s: %s" : "%s;", h->at[i].name, h->at[i].value);
        list = curl.slist_append(list, line.data);
    }
    explicit_bzero(line.data, line.len);
    ty_buf_fini(&line);
    return list;
}

static void drop_list(struct curl_slist *list)
{
    for (struct curl_slist *at = list; at; at = at->next)
        explicit_bzero(at->data, strlen(at->data)); /* tokens */
    curl.slist_free_all(list);
}

/* ---- what went wrong ---- */

static ty_http_fault fault_of(CURLcode code)
{
    static const struct {
        CURLcode code;
        ty_http_fault fault;
    } rows[] = {
        {CURLE_COULDNT_RESOLVE_PROXY, TY_HTTP_UNREACHABLE},
        {CURLE_COULDNT_RESOLVE_HOST, TY_HTTP_UNREACHABLE},
        {CURLE_COULDNT_CONNECT, TY_HTTP_UNREACHABLE},
        {CURLE_OPERATION_TIMEDOUT, TY_HTTP_TIMEOUT},
        {CURLE_SSL_CONNECT_ERROR, TY_HTTP_TLS},
        {CURLE_PEER_FAILED_VERIFICATION, TY_HTTP_TLS},
        {CURLE_SSL_CERTPROBLEM, TY_HTTP_TLS},
        {CURLE_SSL_CACERT_BADFILE, TY_HTTP_TLS},
        {CURLE_SSL_CIPHER, TY_HTTP_TLS},
        {CURLE_SSL_ISSUER_ERROR, TY_HTTP_TLS},
        {CURLE_URL_MALFORMAT, TY_HTTP_OURS},
        {CURLE_UNSUPPORTED_PROTOCOL, TY_HTTP_OURS},
        {CURLE_OUT_OF_MEMORY, TY_HTTP_OURS},
        {CURLE_READ_ERROR, TY_HTTP_OURS},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].code == code)
            return rows[i].fault;
    return TY_HTTP_BROKEN;
}

/* scheme://host:port of a URL. */
static const char *origin_of(const char *url, char out[256])
{
    const char *host = strstr(url, "://");
    size_t bytes = host ? (size_t)(host + 3 - url) + strcspn(host + 3, "/?#") : strlen(url);
    snprintf(out, 256, "%.*s", (int)(bytes < 255 ? bytes : 255), url);
    return out;
}

static int explain(exchange *x, CURLcode code, ty_http_fault *fault)
{
    char origin[256];
    const char *words = x->http->words[0] ? x->http->words : curl.strerror(code);
    origin_of(x->request->url, origin);
    *fault = x->is_stopped ? TY_HTTP_STOPPED : x->is_ours ? TY_HTTP_OURS : fault_of(code);
    switch (*fault) {
    case TY_HTTP_STOPPED:
        return ty_error_set(x->err, TY_E_STOPPED, "stopped while waiting for %s", origin);
    case TY_HTTP_UNREACHABLE:
        ty_error_set(x->err, TY_E_SERVICE, "%s cannot be reached: %s", origin, words);
        return ty_error_help(x->err, "look at the network, the region, https_proxy and AWS_ENDPOINT_URL");
    case TY_HTTP_TIMEOUT:
        return ty_error_set(x->err, TY_E_SERVICE, "%s does not answer: %s", origin, words);
    case TY_HTTP_TLS:
        ty_error_set(x->err, TY_E_SERVICE, "%s is not trusted: %s", origin, words);
        return ty_error_help(x->err, "a proxy that opens TLS, or an endpoint of your own, needs its certificate in the "
                                     "file that AWS_CA_BUNDLE names; also look at this machine's clock");
    case TY_HTTP_OURS:
        return x->is_ours ? -1 : ty_error_set(x->err, TY_E_CONFIG, "%s cannot be asked: %s", origin, words);
    default:
        return ty_error_set(x->err, TY_E_SERVICE, "the answer of %s broke off: %s", origin, words);
    }
}

int ty_http_send(ty_http *http, const ty_http_request *request, ty_arena *arena, ty_http_answer *answer,
                 ty_http_fault *fault, ty_error *err)
{
    ty_error own = {0};
    exchange x = {.http = http, .request = request, .answer = answer, .arena = arena, .err = err ? err : &own};
    struct curl_slist *headers = make_list(request->headers);
    long status = 0;
    answer->status = 0;
    answer->is_repeated = false;
    answer->headers.n = 0;
    http->words[0] = 0;
    curl.reset(http->easy);
    set_options(&x, headers);
    CURLcode code = curl.perform(http->easy);
    curl.getinfo(http->easy, CURLINFO_RESPONSE_CODE, &status);
    drop_list(headers);
    *fault = TY_HTTP_FINE;
    if (code != CURLE_OK)
        return explain(&x, code, fault);
    answer->status = (int)status;
    return 0;
}
