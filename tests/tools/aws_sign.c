/* aws_sign - signs requests that stand on stdin as JSON, one a line, and prints the values of Authorization.
 *
 *     {"method": "GET", "path": "/a%20b", "query": "x=1", "headers": [["host", "h"]], "payload": "e3b0...", "s3":
 * false, "access_key": "AKID", "secret_key": "...", "region": "eu-west-1", "service": "logs", "time":
 * "20150830T123600Z"}
 */
#define _GNU_SOURCE
#include "base/json.h"
#include "estimator_spec/aws/sign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text_of(const ty_doc *map, const char *key)
{
    const char *text = "";
    ty_error err = {0};
    if (ty_doc_string(ty_doc_find(map, key), &text, &err) < 0) {
        fprintf(stderr, "aws_sign: %s: %s\n", key, err.message);
        exit(1);
    }
    return text;
}

static void sign_line(const ty_doc *d)
{
    ty_secret secret = {0};
    ty_headers headers = {0};
    ty_buf out;
    ty_error err = {0};
    const ty_doc *list = ty_doc_find(d, "headers");
    for (size_t i = 0; i < ty_doc_len(list); i++)
        ty_headers_add(&headers, ty_doc_at(ty_doc_at(list, i), 0)->string, ty_doc_at(ty_doc_at(list, i), 1)->string);
    ty_buf_init(&out, 1 << 16);
    const char *secret_text = text_of(d, "secret_key");
    ty_secret_set(&secret, secret_text, strlen(secret_text), NULL);
    ty_sign_key key = {text_of(d, "access_key"), &secret, text_of(d, "region"), text_of(d, "service"),
                       text_of(d, "time")};
    ty_sign_request request = {
        text_of(d, "method"),  text_of(d, "path"),           text_of(d, "query"), headers.at, headers.n,
        text_of(d, "payload"), ty_doc_find(d, "s3")->boolean};
    if (ty_sign(&key, &request, &out, &err) < 0)
        fprintf(stderr, "aws_sign: %s\n", err.message);
    puts(out.data);
    ty_buf_fini(&out);
    ty_secret_drop(&secret);
}

int main(void)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    while ((n = getline(&line, &cap, stdin)) > 0) {
        ty_arena a;
        ty_doc *d;
        ty_error err = {0};
        ty_arena_init(&a);
        if (ty_json_parse(&a, "stdin", line, (size_t)n, NULL, &d, &err) < 0) {
            fprintf(stderr, "aws_sign: %s\n", err.message);
            return 1;
        }
        sign_line(d);
        ty_arena_fini(&a);
    }
    free(line);
    return 0;
}
