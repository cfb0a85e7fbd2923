/* sagemaker.c - see sagemaker.h. */
#define _GNU_SOURCE
#include "estimator_spec/aws/sagemaker.h"

#include "base/clock.h"
#include "base/json.h"
#include "estimator_spec/tree.h"

#include <string.h>

enum { MAX_BODY_BYTES = 4 << 20, PAGE = 100 };

/* ---- what a description says ---- */

const char *ty_job_text(const ty_doc *job, const char *key)
{
    const ty_doc *d = ty_doc_find(job, key);
    return d && d->kind == TY_DOC_STRING ? d->string : "";
}

double ty_job_number(const ty_doc *job, const char *key)
{
    const ty_doc *d = ty_doc_find(job, key);
    return !d ? 0 : d->kind == TY_DOC_INT ? (double)d->integer : d->kind == TY_DOC_FLOAT ? d->number : 0;
}

bool ty_job_is_over(const ty_doc *job)
{
    static const char *const over[] = {"Completed", "Failed", "Stopped"};
    for (size_t i = 0; i < sizeof over / sizeof over[0]; i++)
        if (strcmp(ty_job_text(job, "TrainingJobStatus"), over[i]) == 0)
            return true;
    return false;
}

int ty_job_hosts(const ty_doc *job)
{
    const ty_doc *resources = ty_doc_find(job, "ResourceConfig"), *groups = ty_doc_find(resources, "InstanceGroups");
    double n = ty_job_number(resources, "InstanceCount");
    for (size_t i = 0; i < ty_doc_len(groups); i++)
        n += ty_job_number(ty_doc_at(groups, i), "InstanceCount");
    return n >= 1 && n < 1e6 ? (int)n : 1;
}

/* ---- calls ---- */

static int call_with_name(ty_aws *aws, const char *target, const char *name, ty_arena *arena, ty_doc **out,
                          ty_answer *answer, ty_error *err)
{
    ty_buf body;
    ty_json_writer w;
    ty_buf_init(&body, MAX_BODY_BYTES);
    ty_json_writer_init(&w, &body, TY_JSON_COMPACT);
    ty_json_open_map(&w, NULL);
    ty_json_put_string(&w, "TrainingJobName", name);
    ty_json_close(&w);
    int rc = ty_aws_json(aws, &ty_service_sagemaker, target, &body, arena, out, answer, err);
    ty_buf_fini(&body);
    return rc;
}

/* The service says of a job that is not there that the request is not valid. */
static int refine(const char *name, const char *region, const ty_answer *answer, ty_error *err)
{
    bool is_absent = strcmp(answer->code, "ResourceNotFound") == 0 ||
                     (strcmp(answer->code, "ValidationException") == 0 &&
                      (strstr(err->message, "not found") || strstr(err->message, "Could not find")));
    if (!is_absent)
        return -1;
    ty_error_set(err, TY_E_NOT_FOUND, "there is no training job \"%s\" in %s%s%s", name, region,
                 answer->request_id[0] ? " (request " : "", answer->request_id);
    if (answer->request_id[0])
        strncat(err->message, ")", sizeof err->message - strlen(err->message) - 1);
    return ty_error_help(err, "`trainyard list` shows the jobs there are; --region asks elsewhere");
}

int ty_sagemaker_describe(ty_aws *aws, const char *name, ty_arena *arena, ty_doc **out, ty_error *err)
{
    ty_answer answer = {0};
    if (call_with_name(aws, "SageMaker.DescribeTrainingJob", name, arena, out, &answer, err) < 0)
        return refine(name, ty_aws_region(aws), &answer, err);
    return 0;
}

int ty_sagemaker_stop(ty_aws *aws, const char *name, ty_error *err)
{
    ty_arena arena;
    ty_answer answer = {0};
    ty_arena_init(&arena);
    int rc = call_with_name(aws, "SageMaker.StopTrainingJob", name, &arena, NULL, &answer, err);
    ty_arena_fini(&arena);
    return rc < 0 ? refine(name, ty_aws_region(aws), &answer, err) : 0;
}

/* ---- create ---- */

enum { EARLY_S = 15 * 60 }; /* a clock that is further off is refused, and then corrected */

/* Whether all that is asked for is there; what is there may be more, such as defaults. */
static bool holds(const ty_doc *there, const ty_doc *asked)
{
    if (!there || there->kind != asked->kind)
        return false;
    if (asked->kind != TY_DOC_MAP && asked->kind != TY_DOC_LIST)
        return ty_tree_equal(there, asked);
    bool all = asked->kind == TY_DOC_MAP || ty_doc_len(there) == ty_doc_len(asked);
    for (size_t i = 0; all && i < ty_doc_len(asked); i++) {
        const ty_doc *item = ty_doc_at(asked, i);
        all = holds(asked->kind == TY_DOC_MAP ? ty_doc_find(there, item->key) : ty_doc_at(there, i), item);
    }
    return all;
}

/* Whether a job that is there is what was asked for since `begun_ms`. Disks are left out, which the service sizes as
 * it likes on some machines, and so are metrics and tags, which it does not give back as they were sent. */
static bool is_same(const ty_doc *job, const ty_doc *body, int64_t begun_ms)
{
    static const char *const paths[] = {"RoleArn",
                                        "HyperParameters",
                                        "InputDataConfig",
                                        "OutputDataConfig.S3OutputPath",
                                        "AlgorithmSpecification.TrainingImage",
                                        "AlgorithmSpecification.AlgorithmName",
                                        "ResourceConfig.InstanceType",
                                        "ResourceConfig.InstanceCount",
                                        "ResourceConfig.InstanceGroups"};
    double created_s = ty_job_number(job, "CreationTime");
    if (created_s > 0 && created_s + EARLY_S < (double)begun_ms / 1000)
        return false;
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        const ty_doc *asked = ty_tree_find(body, paths[i]);
        if (asked && !holds(ty_tree_find(job, paths[i]), asked))
            return false;
    }
    return true;
}

/* After a call that failed, one attempt of which may have been carried out: the job that is there, if it is ours. */
static int find_created(ty_aws *aws, const char *name, const ty_doc *body, int64_t begun_ms, ty_arena *arena,
                        ty_doc **out, ty_sagemaker_created *created, ty_error *err)
{
    ty_error own = {0};
    if (ty_sagemaker_describe(aws, name, arena, out, &own) < 0) {
        created->may_exist = own.code != TY_E_NOT_FOUND;
        return -1;
    }
    if (!is_same(*out, body, begun_ms))
        return -1;
    *err = (ty_error){0};
    return 0;
}

int ty_sagemaker_create(ty_aws *aws, const char *name, const ty_doc *body, ty_arena *arena,
                        ty_sagemaker_created *created, ty_error *err)
{
    ty_buf text;
    ty_doc *out;
    ty_answer answer = {0};
    ty_error own = {0};
    err = err ? err : &own;
    int64_t begun_ms = ty_clock_utc_ms() + ty_aws_caller(aws)->skew_ms;
    *created = (ty_sagemaker_created){.arn = ""};
    ty_buf_init(&text, MAX_BODY_BYTES);
    int rc = ty_json_add_doc(&text, body, TY_JSON_COMPACT);
    rc = rc < 0
             ? ty_error_set(err, TY_E_LIMIT, "the request is larger than any that is taken")
             : ty_aws_json(aws, &ty_service_sagemaker, "SageMaker.CreateTrainingJob", &text, arena, &out, &answer, err);
    ty_buf_fini(&text);
    if (rc < 0 && answer.is_unsure)
        rc = find_created(aws, name, body, begun_ms, arena, &out, created, err);
    if (rc < 0 && strcmp(answer.code, "ResourceInUse") == 0)
        ty_error_help(err, "a name is used once: leave `name` out, and one is made from base_name and the time");
    if (rc == 0)
        created->arn = ty_job_text(out, "TrainingJobArn");
    return rc;
}

/* ---- list ---- */

static void write_list_body(ty_buf *body, const ty_sagemaker_filter *f, int left, const char *token)
{
    ty_json_writer w;
    ty_buf_clear(body);
    ty_json_writer_init(&w, body, TY_JSON_COMPACT);
    ty_json_open_map(&w, NULL);
    ty_json_put_int(&w, "MaxResults", left < PAGE ? left : PAGE);
    ty_json_put_string(&w, "SortBy", "CreationTime");
    ty_json_put_string(&w, "SortOrder", "Descending");
    if (f->contains)
        ty_json_put_string(&w, "NameContains", f->contains);
    if (f->status)
        ty_json_put_string(&w, "StatusEquals", f->status);
    if (*token)
        ty_json_put_string(&w, "NextToken", token);
    ty_json_close(&w);
}

int ty_sagemaker_list(ty_aws *aws, const ty_sagemaker_filter *filter,
                      int (*take)(void *ctx, const ty_doc *summary, ty_error *err), void *ctx, ty_error *err)
{
    ty_arena pages[2]; /* a page's token is used after the page before it is gone */
    ty_buf body;
    ty_buf_init(&body, MAX_BODY_BYTES);
    ty_arena_init(&pages[0]);
    ty_arena_init(&pages[1]);
    const char *token = "";
    int rc = 0, left = filter->most;
    for (int turn = 0; rc == 0 && left > 0; turn ^= 1) {
        ty_doc *out;
        ty_arena_fini(&pages[turn]);
        write_list_body(&body, filter, left, token);
        rc =
            ty_aws_json(aws, &ty_service_sagemaker, "SageMaker.ListTrainingJobs", &body, &pages[turn], &out, NULL, err);
        const ty_doc *jobs = rc == 0 ? ty_doc_find(out, "TrainingJobSummaries") : NULL;
        for (size_t i = 0; rc == 0 && left > 0 && i < ty_doc_len(jobs); i++, left--)
            rc = take(ctx, ty_doc_at(jobs, i), err);
        const char *next = rc == 0 ? ty_job_text(out, "NextToken") : "";
        if (!*next || strcmp(next, token) == 0)
            break;
        token = next;
    }
    ty_arena_fini(&pages[0]);
    ty_arena_fini(&pages[1]);
    ty_buf_fini(&body);
    return rc;
}
