/* metadata.c - credentials that the machine itself has: a container's service, and an EC2 instance's.
 *
 * Both are addresses that only this machine can reach. Anything else over plain http is refused, as is a proxy.
 */
#define _GNU_SOURCE
#include "base/file.h"
#include "estimator_spec/aws/provider.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_ANSWER_BYTES = 1 << 16, CONTAINER_MS = 2000, ATTEMPTS = 3, TOKEN_LIFE_S = 21600 };

static const char *from_environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* One request; *status 0: no answer. The body goes into *out. */
static int ask(const ty_provider_place *at, const char *method, const char *url, const ty_headers *headers,
               int timeout_ms, ty_buf *out, int *status, ty_error *err)
{
    ty_http_request request = {.method = method,
                               .url = url,
                               .headers = headers,
                               .body_fd = -1,
                               .connect_ms = timeout_ms,
                               .idle_ms = timeout_ms,
                               .no_proxy = true};
    ty_http_answer answer = {.body = *out};
    ty_http_fault fault;
    int rc = ty_http_send(at->caller->http, &request, at->arena, &answer, &fault, err);
    *out = answer.body;
    *status = answer.status;
    return rc;
}

/* ---- containers ---- */

static bool is_allowed(const char *url)
{
    static const char *const hosts[] = {"169.254.170.2", "169.254.170.23", "[fd00:ec2::23]", "localhost", "[::1]"};
    if (strncmp(url, "https://", 8) == 0)
        return true;
    if (strncmp(url, "http://", 7) != 0 || strchr(url, '@'))
        return false;
    const char *host = url + 7;
    size_t n = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":/?#");
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++)
        if (strlen(hosts[i]) == n && strncmp(hosts[i], host, n) == 0)
            return true;
    int a, b, c, end = 0;
    return sscanf(host, "127.%d.%d.%d%n", &a, &b, &c, &end) == 3 && (size_t)end == n;
}

/* The header Authorization, or NULL. */
static int read_token(const ty_provider_place *at, const char **token, ty_error *err)
{
    const char *file = from_environment("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    *token = getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if (file) {
        ty_buf text;
        ty_buf_init(&text, MAX_ANSWER_BYTES);
        int rc = ty_file_read(file, &text, err);
        while (text.len > 0 && isspace((unsigned char)text.data[text.len - 1]))
            text.len--;
        *token = ty_arena_strndup(at->arena, text.data, text.len);
        explicit_bzero(text.data, text.len);
        ty_buf_fini(&text);
        if (rc < 0)
            return ty_error_wrap(err, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    }
    if (*token && strpbrk(*token, "\r\n"))
        return ty_error_set(err, TY_E_CREDENTIALS, "the container's authorization token has more than one line");
    return 0;
}

static int ask_container(const ty_provider_place *at, const char *url, const ty_headers *headers, ty_buf *body,
                         ty_error *err)
{
    int status = 0, rc = -1;
    for (int i = 0; i < ATTEMPTS && rc < 0; i++) {
        if (i > 0 && ty_caller_pause(at->caller, 1000) < 0)
            break;
        ty_buf_clear(body);
        rc = ask(at, "GET", url, headers, CONTAINER_MS, body, &status, err);
        if (rc == 0 && status != 200)
            rc = ty_error_set(err, TY_E_CREDENTIALS, "it answers with status %d", status);
    }
    return rc;
}

int ty_provider_container(const ty_provider_place *at, ty_credentials *out, ty_error *err)
{
    const char *relative = from_environment("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"), *token;
    const char *url = from_environment("AWS_CONTAINER_CREDENTIALS_FULL_URI"), *source = "the container's credentials";
    ty_headers headers = {0};
    ty_buf body;
    if (!relative && !url)
        return 0;
    if (relative)
        url = ty_arena_printf(at->arena, "http://169.254.170.2%s", relative);
    if (!is_allowed(url))
        return ty_error_set(err, TY_E_CREDENTIALS,
                            "AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or an address of this machine");
    if (read_token(at, &token, err) < 0)
        return -1;
    ty_headers_add(&headers, "Accept", "application/json");
    if (token && *token)
        ty_headers_add(&headers, "Authorization", token);
    ty_buf_init(&body, MAX_ANSWER_BYTES);
    int rc = ask_container(at, url, &headers, &body, err);
    if (rc < 0)
        ty_error_wrap(err, "%s", source);
    else
        rc = ty_provider_fill_json(out, at->arena, body.data, body.len, "Token", source, err);
    explicit_bzero(body.data, body.len);
    ty_buf_fini(&body);
    return rc;
}

/* ---- instances ---- */

typedef struct instance {
    const ty_provider_place *at;
    const char *base;
    int timeout_ms;
    ty_headers headers; /* with the session's token */
    ty_buf body;
} instance;

/* 0 with the body, else -1: whoever is not on an instance gets no answer, which is no error. */
static int ask_instance(instance *m, const char *method, const char *path)
{
    ty_error ignored = {0};
    int status;
    ty_buf_clear(&m->body);
    int rc = ask(m->at, method, ty_arena_printf(m->at->arena, "%s/%s", m->base, path), &m->headers, m->timeout_ms,
                 &m->body, &status, &ignored);
    return rc == 0 && status == 200 && m->body.len > 0 ? 0 : -1;
}

static bool is_header_text(const char *text)
{
    for (; *text; text++)
        if (!isgraph((unsigned char)*text))
            return false;
    return true;
}

static int find_on_instance(instance *m, ty_credentials *out, ty_error *err)
{
    ty_arena *arena = m->at->arena;
    ty_headers_add(&m->headers, "x-aws-ec2-metadata-token-ttl-seconds", ty_arena_printf(arena, "%d", TOKEN_LIFE_S));
    if (ask_instance(m, "PUT", "latest/api/token") < 0 || !is_header_text(m->body.data))
        return 0;
    m->headers.n = 0;
    ty_headers_add(&m->headers, "x-aws-ec2-metadata-token", ty_arena_strdup(arena, m->body.data));
    if (ask_instance(m, "GET", "latest/meta-data/iam/security-credentials/") < 0)
        return 0;
    const char *role = ty_arena_strndup(arena, m->body.data, strcspn(m->body.data, "\r\n"));
    if (!is_header_text(role) || strpbrk(role, "/?#"))
        return 0;
    if (ask_instance(m, "GET", ty_arena_printf(arena, "latest/meta-data/iam/security-credentials/%s", role)) < 0)
        return 0;
    return ty_provider_fill_json(out, arena, m->body.data, m->body.len, "Token",
                                 ty_arena_printf(arena, "instance metadata, role \"%s\"", role), err);
}

int ty_provider_instance(const ty_provider_place *at, ty_credentials *out, ty_error *err)
{
    const char *disabled = getenv("AWS_EC2_METADATA_DISABLED"),
               *wait = from_environment("AWS_METADATA_SERVICE_TIMEOUT");
    const char *base = from_environment("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    const char *mode = from_environment("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
    if (disabled && strcasecmp(disabled, "true") == 0)
        return 0;
    if (!base)
        base = ty_profile_get(at->profile, NULL, "ec2_metadata_service_endpoint");
    if (!base)
        base = mode && strcasecmp(mode, "ipv6") == 0 ? "http://[fd00:ec2::254]" : "http://169.254.169.254";
    size_t n = strlen(base);
    instance m = {.at = at,
                  .base = ty_arena_strndup(at->arena, base, n > 0 && base[n - 1] == '/' ? n - 1 : n),
                  .timeout_ms = wait && atoi(wait) > 0 && atoi(wait) < 3600 ? atoi(wait) * 1000 : 1000};
    ty_buf_init(&m.body, MAX_ANSWER_BYTES);
    int rc = find_on_instance(&m, out, err);
    explicit_bzero(m.body.data, m.body.len);
    ty_buf_fini(&m.body);
    return rc;
}
