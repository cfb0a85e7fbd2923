/* sign.c - see sign.h. */
#define _GNU_SOURCE
#include "estimator_spec/aws/sign.h"

#include "base/hash.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_CANONICAL_BYTES = 1 << 20, MAX_PAIRS = 256, MAX_SEGMENTS = 1024 };
#define ALGORITHM "AWS4-HMAC-SHA256"

int ty_uri_encode(ty_buf *out, const char *bytes, size_t n_bytes, bool keep_slash)
{
    for (size_t i = 0; i < n_bytes; i++) {
        unsigned char c = (unsigned char)bytes[i];
        bool plain = isascii(c) && (isalnum(c) || (c && strchr("-._~", c)) || (keep_slash && c == '/'));
        if (plain)
            ty_buf_addc(out, (char)c);
        else
            ty_buf_addf(out, "%%%02X", c);
    }
    return out->failed ? -1 : 0;
}

const char *ty_sign_time(int64_t utc_ms, char out[TY_SIGN_TIME_BYTES])
{
    time_t seconds = utc_ms / 1000;
    struct tm t;
    if (!gmtime_r(&seconds, &t) || strftime(out, TY_SIGN_TIME_BYTES, "%Y%m%dT%H%M%SZ", &t) == 0)
        out[0] = 0;
    return out;
}

/* ---- the path ---- */

/* RFC 3986, 5.2.4, with empty segments removed too; then encoded (for the second time, since it came encoded). */
static int add_plain_path(ty_buf *out, const char *path)
{
    struct segment {
        const char *text;
        size_t n_bytes;
    } stack[MAX_SEGMENTS];
    size_t n = 0, len = strlen(path);
    for (const char *at = path; *at;) {
        size_t bytes = strcspn(at, "/");
        bool is_dot = bytes == 1 && at[0] == '.', is_up = bytes == 2 && at[0] == '.' && at[1] == '.';
        if (is_up && n > 0)
            n--;
        else if (bytes > 0 && !is_dot && !is_up) {
            if (n == MAX_SEGMENTS)
                return -1;
            stack[n++] = (struct segment){at, bytes};
        }
        at += bytes + (at[bytes] == '/');
    }
    ty_buf_addc(out, '/');
    for (size_t i = 0; i < n; i++) {
        ty_uri_encode(out, stack[i].text, stack[i].n_bytes, false);
        if (i + 1 < n || path[len - 1] == '/')
            ty_buf_addc(out, '/');
    }
    return 0;
}

/* ---- the query ---- */

typedef struct pair {
    const char *key, *value;
    size_t key_bytes, value_bytes;
} pair;

static int compare_text(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
    return order ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static int compare_pairs(const void *a, const void *b)
{
    const pair *p = a, *q = b;
    int order = compare_text(p->key, p->key_bytes, q->key, q->key_bytes);
    return order ? order : compare_text(p->value, p->value_bytes, q->value, q->value_bytes);
}

static int add_query(ty_buf *out, const char *query)
{
    pair pairs[MAX_PAIRS];
    size_t n = 0;
    if (!*query)
        return 0;
    for (const char *at = query;; at++) {
        size_t bytes = strcspn(at, "&");
        const char *equals = memchr(at, '=', bytes);
        if (n == MAX_PAIRS)
            return -1;
        pairs[n++] = (pair){.key = at,
                            .key_bytes = equals ? (size_t)(equals - at) : bytes,
                            .value = equals ? equals + 1 : at,
                            .value_bytes = equals ? bytes - (size_t)(equals - at) - 1 : 0};
        at += bytes;
        if (!*at)
            break;
    }
    qsort(pairs, n, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < n; i++) {
        ty_buf_adds(out, i ? "&" : "");
        ty_buf_add(out, pairs[i].key, pairs[i].key_bytes);
        ty_buf_addc(out, '=');
        ty_buf_add(out, pairs[i].value, pairs[i].value_bytes);
    }
    return 0;
}

/* ---- the headers ---- */

/* By name in lower case; those of the same name stay in the order in which they were given. */
static int compare_headers(const void *a, const void *b)
{
    const ty_header *const *p = a, *const *q = b;
    int order = strcasecmp((*p)->name, (*q)->name);
    return order ? order : (*p > *q) - (*p < *q);
}

static void add_lower(ty_buf *out, const char *name)
{
    for (; *name; name++)
        ty_buf_addc(out, (char)tolower((unsigned char)*name));
}

/* Without blanks at its ends, and with one blank where there were several. */
static void add_trimmed(ty_buf *out, const char *value)
{
    bool is_first = true;
    for (;;) {
        value += strspn(value, " \t\n\r\v\f");
        size_t bytes = strcspn(value, " \t\n\r\v\f");
        if (bytes == 0)
            return;
        ty_buf_adds(out, is_first ? "" : " ");
        ty_buf_add(out, value, bytes);
        value += bytes;
        is_first = false;
    }
}

static int add_headers(ty_buf *out, ty_buf *names, const ty_sign_request *r)
{
    const ty_header *sorted[TY_MAX_HEADERS];
    if (r->n_headers > TY_MAX_HEADERS)
        return -1;
    for (size_t i = 0; i < r->n_headers; i++)
        sorted[i] = &r->headers[i];
    qsort(sorted, r->n_headers, sizeof *sorted, compare_headers);
    for (size_t i = 0; i < r->n_headers; i++) {
        bool again = i > 0 && strcasecmp(sorted[i]->name, sorted[i - 1]->name) == 0;
        if (again)
            ty_buf_addc(out, ',');
        else {
            ty_buf_adds(out, i ? "\n" : "");
            add_lower(out, sorted[i]->name);
            ty_buf_addc(out, ':');
            ty_buf_adds(names, i ? ";" : "");
            add_lower(names, sorted[i]->name);
        }
        add_trimmed(out, sorted[i]->value);
    }
    ty_buf_addc(out, '\n');
    return 0;
}

static int add_canonical(const ty_sign_request *r, ty_buf *out, ty_buf *names)
{
    ty_buf_addf(out, "%s\n", r->method);
    if (r->path_as_is)
        ty_buf_adds(out, *r->path ? r->path : "/");
    else if (add_plain_path(out, r->path) < 0)
        return -1;
    ty_buf_addc(out, '\n');
    if (add_query(out, r->query ? r->query : "") < 0)
        return -1;
    ty_buf_addc(out, '\n');
    if (add_headers(out, names, r) < 0)
        return -1;
    ty_buf_addf(out, "\n%s\n%s", names->data, r->payload);
    return out->failed || names->failed ? -1 : 0;
}

int ty_sign_canonical(const ty_sign_request *request, ty_buf *out, ty_buf *names, ty_error *err)
{
    ty_buf own;
    ty_buf_init(&own, 1 << 14);
    int rc = add_canonical(request, out, names ? names : &own);
    ty_buf_fini(&own);
    return rc < 0 ? ty_error_set(err, TY_E_LIMIT, "the request is too large to be signed") : 0;
}

/* ---- the signature ---- */

/* HMAC chain over the scope: key[0] = "AWS4" + secret, then date, region, service, "aws4_request". */
static int make_key(const ty_sign_key *k, uint8_t key[TY_SHA256_BYTES], ty_error *err)
{
    char date[9] = "";
    memcpy(date, k->time, strnlen(k->time, 8));
    const char *const steps[] = {date, k->region, k->service, "aws4_request"};
    ty_buf first;
    ty_buf_init(&first, 1 << 12);
    ty_buf_addf(&first, "AWS4%s", ty_secret_reveal(k->secret));
    int rc = first.failed ? ty_error_set(err, TY_E_LIMIT, "the secret key is longer than any") : 0;
    for (int i = 0; rc == 0 && i < 4; i++) {
        uint8_t next[TY_SHA256_BYTES];
        rc = ty_hmac_sha256(i ? (const void *)key : first.data, i ? TY_SHA256_BYTES : first.len, steps[i],
                            strlen(steps[i]), next, err);
        memcpy(key, next, sizeof next);
    }
    explicit_bzero(first.data, first.len);
    ty_buf_fini(&first);
    return rc;
}

static int sign_text(const ty_sign_key *k, const ty_buf *canonical, const char *scope, char hex[TY_SHA256_HEX_BYTES],
                     ty_error *err)
{
    uint8_t digest[TY_SHA256_BYTES], key[TY_SHA256_BYTES] = {0}, code[TY_SHA256_BYTES];
    char text[512], hash[TY_SHA256_HEX_BYTES];
    if (ty_sha256_bytes(canonical->data, canonical->len, digest, err) < 0 || make_key(k, key, err) < 0)
        return -1;
    int n = snprintf(text, sizeof text, ALGORITHM "\n%s\n%s\n%s", k->time, scope, ty_sha256_hex(digest, hash));
    int rc = (size_t)n >= sizeof text ? ty_error_set(err, TY_E_LIMIT, "region or service is longer than any")
                                      : ty_hmac_sha256(key, sizeof key, text, (size_t)n, code, err);
    explicit_bzero(key, sizeof key);
    if (rc == 0)
        ty_sha256_hex(code, hex);
    return rc;
}

int ty_sign(const ty_sign_key *key, const ty_sign_request *request, ty_buf *authorization, ty_error *err)
{
    ty_buf canonical, names;
    char scope[256], hex[TY_SHA256_HEX_BYTES];
    ty_buf_init(&canonical, MAX_CANONICAL_BYTES);
    ty_buf_init(&names, 1 << 14);
    snprintf(scope, sizeof scope, "%.8s/%s/%s/aws4_request", key->time, key->region, key->service);
    int rc = ty_sign_canonical(request, &canonical, &names, err);
    if (rc == 0)
        rc = sign_text(key, &canonical, scope, hex, err);
    if (rc == 0 && ty_buf_addf(authorization, ALGORITHM " Credential=%s/%s, SignedHeaders=%s, Signature=%s",
                               key->access_key, scope, names.data, hex) < 0)
        rc = ty_error_set(err, TY_E_LIMIT, "the request is too large to be signed");
    ty_buf_fini(&canonical);
    ty_buf_fini(&names);
    return rc;
}
