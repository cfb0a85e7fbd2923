/* s3_list.c - the keys under a prefix, page by page, and the names that they get below a folder. */
#define _GNU_SOURCE
#include "estimator_spec/aws/s3_parts.h"
#include "estimator_spec/aws/sign.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_QUERY_BYTES = 1 << 16, MAX_NAME_BYTES = 255 };

static int ask_for_page(ty_s3 *s3, const ty_s3_place *at, const char *token, ty_arena *arena, ty_s3_page *out,
                        ty_error *err)
{
    ty_buf query;
    ty_answer answer;
    ty_buf_init(&query, MAX_QUERY_BYTES);
    ty_buf_adds(&query, "list-type=2&encoding-type=url&prefix=");
    ty_uri_encode(&query, at->key, strlen(at->key), false);
    if (token) {
        ty_buf_adds(&query, "&continuation-token=");
        ty_uri_encode(&query, token, strlen(token), false);
    }
    ty_call call = {.operation = "ListObjectsV2", .method = "GET", .query = query.data, .body_fd = -1};
    ty_answer_init(&answer);
    int rc = ty_s3_send(s3, &(ty_s3_place){at->bucket, ""}, &call, arena, &answer, err);
    if (rc == 0)
        rc = ty_s3_read_page(answer.http.body.data, answer.http.body.len, arena, out, err);
    ty_answer_fini(&answer);
    ty_buf_fini(&query);
    return rc;
}

/* Hands over a page. Keys rise, and begin with the prefix: else a page would have come twice, or from elsewhere. */
static int hand_over(const ty_s3_place *at, const ty_s3_page *page,
                     int (*take)(void *ctx, const ty_s3_object *object, ty_error *err), void *ctx, ty_error *err)
{
    size_t n = strlen(at->key);
    for (size_t i = 0; i < page->n; i++) {
        if (strncmp(page->objects[i].key, at->key, n) != 0)
            return ty_error_set(err, TY_E_SERVICE,
                                "S3 ListObjectsV2: \"%.200s\" was listed, which does not begin with "
                                "\"%.200s\"",
                                page->objects[i].key, at->key);
        if (take(ctx, &page->objects[i], err) < 0)
            return -1;
    }
    return 0;
}

int ty_s3_list(ty_s3 *s3, const ty_s3_place *at, int (*take)(void *ctx, const ty_s3_object *object, ty_error *err),
               void *ctx, ty_error *err)
{
    ty_arena pages[2]; /* a page's token is used after the page before it is gone */
    ty_arena_init(&pages[0]);
    ty_arena_init(&pages[1]);
    const char *token = NULL;
    int rc = 0;
    for (int turn = 0; rc == 0; turn ^= 1) {
        ty_s3_page page;
        ty_arena_fini(&pages[turn]);
        ty_arena_init(&pages[turn]);
        rc = ask_for_page(s3, at, token, &pages[turn], &page, err);
        if (rc == 0)
            rc = hand_over(at, &page, take, ctx, err);
        if (rc < 0 || !page.next)
            break;
        if (token && strcmp(token, page.next) == 0)
            rc = ty_error_set(err, TY_E_SERVICE, "S3 ListObjectsV2: the same page comes again and again");
        token = page.next;
    }
    ty_arena_fini(&pages[0]);
    ty_arena_fini(&pages[1]);
    return rc;
}

/* ---- names ---- */

/* What of a key is its name: see s3.h. */
static const char *rest_of(const char *prefix, const char *key)
{
    size_t n = strlen(prefix);
    const char *rest = key + n;
    bool is_at_border = n == 0 || prefix[n - 1] == '/' || *rest == '/';
    if (is_at_border && strspn(rest, "/") < strlen(rest))
        return rest;
    const char *slash = memrchr(prefix, '/', n > 0 && prefix[n - 1] == '/' ? n - 1 : n);
    return slash ? key + (slash + 1 - prefix) : key;
}

int ty_s3_name_below(const char *prefix, const char *key, ty_arena *arena, const char **name, ty_error *err)
{
    const char *at = rest_of(prefix, key);
    char *out = ty_arena_alloc(arena, strlen(at) + 1), *end = out;
    while (*at) {
        size_t n = strcspn(at, "/");
        if ((n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.') || n > MAX_NAME_BYTES)
            return ty_error_set(err, TY_E_REFUSED, "the key \"%.300s\" cannot be a file: %s", key,
                                n > MAX_NAME_BYTES ? "a part of it has more than 255 bytes"
                                                   : "\".\" and \"..\" lead out of their folder");
        memcpy(end, at, n);
        end += n;
        at += n;
        if (*at == '/' && n > 0)
            *end++ = '/';
        at += *at == '/';
    }
    *end = 0;
    *name = out;
    if (!*out)
        return ty_error_set(err, TY_E_REFUSED, "the key \"%.300s\" cannot be a file: nothing is left of it", key);
    return 0;
}
