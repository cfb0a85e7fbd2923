/* identity.c - see identity.h. Both services take forms and answer in XML. */
#define _GNU_SOURCE
#include "estimator_spec/aws/identity.h"

#include "estimator_spec/aws/sign.h"
#include "estimator_spec/aws/xml.h"

#include <string.h>

enum { MAX_FORM_BYTES = 1 << 12, ACCOUNT_DIGITS = 12 };

typedef struct question {
    const ty_service *service;
    const char *operation, *version;
    const char *url, *region; /* NULL: this region's */
    const char *key, *value;  /* NULL: none */
} question;

/* *out is the element OPERATIONResult. */
static int ask(ty_aws *aws, const question *q, ty_arena *arena, const ty_xml **out, ty_error *err)
{
    const ty_header type = {"content-type", "application/x-www-form-urlencoded; charset=utf-8"};
    ty_call call = {.service = q->service,
                    .url = q->url,
                    .region = q->region ? q->region : ty_aws_region(aws),
                    .operation = q->operation,
                    .method = "POST",
                    .path = "/",
                    .query = "",
                    .headers = &type,
                    .n_headers = 1,
                    .body_fd = -1,
                    .errors_in_xml = true};
    ty_buf form;
    ty_answer answer;
    ty_xml *root;
    bool is_own;
    ty_buf_init(&form, MAX_FORM_BYTES);
    ty_answer_init(&answer);
    ty_buf_addf(&form, "Action=%s&Version=%s", q->operation, q->version);
    if (q->key) {
        ty_buf_addf(&form, "&%s=", q->key);
        ty_uri_encode(&form, q->value, strlen(q->value), false);
    }
    call.body = form.data;
    call.body_bytes = form.len;
    int rc = form.failed ? ty_error_set(err, TY_E_LIMIT, "%s: the question is too long", q->operation) : 0;
    if (rc == 0 && !call.url)
        rc = ty_aws_endpoint(aws, q->service, NULL, arena, &call.url, &is_own, err);
    if (rc == 0)
        rc = ty_aws_send(aws, &call, arena, &answer, err);
    if (rc == 0)
        rc = ty_xml_parse(arena, q->service->title, answer.http.body.data, answer.http.body.len, &root, err);
    if (rc == 0)
        *out = ty_xml_find(root, ty_arena_printf(arena, "%sResult", q->operation));
    ty_answer_fini(&answer);
    ty_buf_fini(&form);
    return rc;
}

int ty_identity_find(ty_aws *aws, ty_arena *arena, ty_identity *out, ty_error *err)
{
    const question q = {.service = &ty_service_sts, .operation = "GetCallerIdentity", .version = "2011-06-15"};
    const ty_xml *result;
    if (ask(aws, &q, arena, &result, err) < 0)
        return -1;
    *out = (ty_identity){ty_xml_text(result, "Account"), ty_xml_text(result, "Arn")};
    /* It becomes part of a bucket's name. */
    if (strlen(out->account) != ACCOUNT_DIGITS || strspn(out->account, "0123456789") != ACCOUNT_DIGITS)
        return ty_error_set(err, TY_E_SERVICE, "STS GetCallerIdentity: the answer has no account of twelve digits");
    return 0;
}

/* IAM is one service for a whole partition. */
static int find_iam(ty_aws *aws, ty_arena *arena, question *q, ty_error *err)
{
    static const struct {
        const char *partition, *host, *region;
    } rows[] = {{"aws", "iam.amazonaws.com", "us-east-1"},
                {"aws-cn", "iam.cn-north-1.amazonaws.com.cn", "cn-north-1"},
                {"aws-us-gov", "iam.us-gov.amazonaws.com", "us-gov-west-1"}};
    bool is_own;
    if (ty_aws_endpoint(aws, q->service, NULL, arena, &q->url, &is_own, err) < 0)
        return -1;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(ty_region_partition(ty_aws_region(aws)), rows[i].partition) == 0) {
            q->region = rows[i].region;
            if (!is_own)
                q->url = ty_arena_printf(arena, "https://%s", rows[i].host);
        }
    return 0;
}

int ty_identity_find_role(ty_aws *aws, const char *name, ty_arena *arena, const char **arn, ty_error *err)
{
    question q = {
        .service = &ty_service_iam, .operation = "GetRole", .version = "2010-05-08", .key = "RoleName", .value = name};
    const ty_xml *result;
    if (find_iam(aws, arena, &q, err) < 0)
        return -1;
    if (ask(aws, &q, arena, &result, err) < 0) {
        if (err && err->code == TY_E_CREDENTIALS) /* the policies that it is about are of little use here */
            err->help[0] = 0;
        return ty_error_help(err, "write the role's ARN (arn:aws:iam::ACCOUNT:role/NAME); then IAM is not asked");
    }
    *arn = ty_xml_text(ty_xml_find(result, "Role"), "Arn");
    if (!**arn)
        return ty_error_set(err, TY_E_SERVICE, "IAM GetRole: the answer has no ARN");
    return 0;
}
