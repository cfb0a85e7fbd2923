/* sagemaker.c - see sagemaker.h. */
#define _GNU_SOURCE
#include "estimator_spec/aws/sagemaker.h"

#include "base/json.h"

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

static bool is_same(const ty_doc *job, const ty_doc *body)
{
    const char *image = ty_job_text(ty_doc_find(body, "AlgorithmSpecification"), "TrainingImage");
    return strcmp(ty_job_text(job, "RoleArn"), ty_job_text(body, "RoleArn")) == 0 &&
           strcmp(ty_job_text(ty_doc_find(job, "AlgorithmSpecification"), "TrainingImage"), image) == 0;
}

int ty_sagemaker_create(ty_aws *aws, const char *name, const ty_doc *body, ty_arena *arena, const char **arn,
                        ty_error *err)
{
    ty_buf text;
    ty_doc *out;
    ty_answer answer = {0};
    ty_buf_init(&text, MAX_BODY_BYTES);
    int rc = ty_json_add_doc(&text, body, TY_JSON_COMPACT);
    rc = rc < 0
             ? ty_error_set(err, TY_E_LIMIT, "the request is larger than any that is taken")
             : ty_aws_json(aws, &ty_service_sagemaker, "SageMaker.CreateTrainingJob", &text, arena, &out, &answer, err);
    ty_buf_fini(&text);
    bool may_be_ours = rc < 0 && answer.is_unsure;
    if (may_be_ours) { /* no answer, or "taken" after an attempt without one: what is there? */
        ty_error ignored = {0};
        if (ty_sagemaker_describe(aws, name, arena, &out, &ignored) == 0 && is_same(out, body)) {
            *err = (ty_error){0};
            rc = 0;
        } else if (ignored.code != TY_E_NOT_FOUND && err->code != TY_E_REFUSED)
            ty_error_help(err, "the job may have been created all the same: `trainyard status %s` tells", name);
    }
    if (rc == 0)
        *arn = ty_job_text(out, "TrainingJobArn");
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
