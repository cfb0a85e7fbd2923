/* submit.c - see submit.h. */
#define _GNU_SOURCE
#include "entrypoint/submit.h"

#include "base/file.h"
#include "base/quantity.h"
#include "estimator_spec/aws/identity.h"
#include "estimator_spec/aws/s3.h"
#include "estimator_spec/aws/sagemaker.h"
#include "estimator_spec/request.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- names ---- */

/* A name that was given may be in use: then the upload would replace the source of a job that runs. */
static int check_name(const ty_submission *s, ty_arena *a, ty_error *err)
{
    ty_error own = {0};
    ty_doc *job;
    if (!s->job->value[TY_FIELD_NAME].at)
        return 0;
    if (ty_sagemaker_describe(s->aws, s->name, a, &job, &own) == 0) {
        ty_error_set(err, TY_E_REFUSED, "there is a training job \"%s\" already (%s); nothing was sent", s->name,
                     ty_job_text(job, "TrainingJobStatus"));
        return ty_error_help(err, "a name is used once: leave `name` out, and one is made from base_name and the time");
    }
    if (own.code == TY_E_NOT_FOUND || own.code == TY_E_CREDENTIALS || own.code == TY_E_REFUSED)
        return 0; /* who may not look may still create */
    *err = own;
    return -1;
}

static const char *console_page(const ty_submission *s, ty_arena *a)
{
    const char *region = ty_aws_region(s->aws), *host = ty_region_console(region);
    return host ? ty_arena_printf(a, "https://%s.%s/sagemaker/home?region=%s#/jobs/%s", region, host, region, s->name)
                : NULL;
}

/* ---- the account's own bucket ---- */

static bool is_in(const char *uri, const char *bucket)
{
    size_t n = strlen(bucket);
    return uri && strncmp(uri, "s3://", 5) == 0 && strncmp(uri + 5, bucket, n) == 0 &&
           (!uri[5 + n] || uri[5 + n] == '/');
}

static bool is_default(const ty_jobspec *job, const char *bucket)
{
    return !job->value[TY_FIELD_BUCKET].at && bucket && strcmp(bucket, job->value[TY_FIELD_BUCKET].text) == 0;
}

/* Whether anything goes to the bucket that the account has by default. */
static bool uses_default(const ty_jobspec *job)
{
    const char *bucket = job->value[TY_FIELD_BUCKET].text;
    return is_default(job, bucket) && (is_in(job->value[TY_FIELD_OUTPUT_PATH].text, bucket) ||
                                       (job->source.is_packed && is_default(job, job->source.bucket)));
}

static int check_account(const ty_submission *s, ty_arena *a, ty_error *err)
{
    const char *account = s->job->value[TY_FIELD_ACCOUNT].text;
    ty_identity who;
    if (ty_identity_find(s->aws, a, &who, err) < 0)
        return -1;
    if (strcmp(who.account, account) == 0)
        return 0;
    ty_error_set(err, TY_E_CONFIG, "the credentials are of account %s, the job's role and bucket of account %s",
                 who.account, account);
    return ty_error_help(err, "name a role of account %s, or a profile of account %s (--profile)", who.account,
                         account);
}

/* Anybody may own a bucket whose name can be guessed: s3 asks for it as the account's own. As the SDK. */
static int make_default(const ty_submission *s, ty_s3 *s3, ty_error *err)
{
    const char *bucket = s->job->value[TY_FIELD_BUCKET].text;
    if (ty_s3_make_bucket(s3, bucket, err) == 0)
        return 0;
    ty_error_wrap(err, "the account's bucket %s", bucket);
    return ty_error_help(err, "name another one with `bucket`, or places with `output` and `source.code_location`");
}

/* ---- bytes on their way ---- */

typedef struct progress {
    const char *what;
    int percent; /* shown last */
} progress;

enum { SHOWN_BYTES = 4 << 20 };

static void show_progress(void *ctx, uint64_t done, uint64_t total)
{
    progress *p = ctx;
    int percent = total ? (int)(done * 100 / total) : 100;
    if (total < SHOWN_BYTES || percent == p->percent || !isatty(STDERR_FILENO))
        return;
    p->percent = percent;
    fprintf(stderr, "\r%s %3d %%%s", p->what, percent, percent == 100 ? "\r\033[K" : "");
}

static int upload(const ty_submission *s, ty_s3 *s3, ty_error *err)
{
    const ty_jobspec_source *source = &s->job->source;
    ty_s3_place at = {source->bucket, source->key};
    /* The next attempt has another name, and so another key: parts that got through would serve nobody. */
    ty_s3_put_options put = {.kms_key = source->kms_key ? source->kms_key : "", .abort_on_failure = true};
    if (ty_s3_put_bytes(s3, &at, s->archive->data, s->archive->len, &put, err) < 0)
        return ty_error_wrap(err, "upload of the source");
    return 0;
}

/* In S3, before there is a job: the account's bucket made, the source sent. */
static int work_in(const ty_submission *s, bool is_own, bool makes, bool sends, ty_error *err)
{
    progress shown = {"upload", -1};
    ty_s3_options options = {.owner = is_own ? s->job->value[TY_FIELD_ACCOUNT].text : NULL,
                             .progress = show_progress,
                             .progress_ctx = &shown};
    ty_s3 *s3;
    if (ty_s3_open(s->aws, &options, &s3, err) < 0)
        return -1;
    int rc = makes ? make_default(s, s3, err) : 0;
    if (rc == 0 && sends)
        rc = upload(s, s3, err);
    ty_s3_close(s3);
    return rc;
}

static int prepare_places(const ty_submission *s, ty_arena *a, ty_error *err)
{
    bool uses = uses_default(s->job), sends = s->archive != NULL;
    bool is_own = uses && sends && is_default(s->job, s->job->source.bucket);
    if (uses && (check_account(s, a, err) < 0 || work_in(s, true, true, is_own, err) < 0))
        return -1;
    return sends && !is_own ? work_in(s, false, false, true, err) : 0;
}

/* ---- the job ---- */

int ty_submit(ty_submission *s, ty_arena *a, ty_error *err)
{
    ty_doc body;
    ty_sagemaker_created created = {0};
    if (ty_jobspec_request(s->job, a, &body, err) < 0)
        return -1;
    s->name = ty_job_text(&body, "TrainingJobName"); /* `request` may have another one */
    s->console = console_page(s, a);
    if (check_name(s, a, err) < 0 || prepare_places(s, a, err) < 0) {
        ty_error_detail(err, "no training job was created");
        return -1;
    }
    int rc = ty_sagemaker_create(s->aws, s->name, &body, a, &created, err);
    s->arn = created.arn;
    if (rc == 0)
        return 0;
    if (created.may_exist)
        ty_error_detail(err, "nobody can say whether the training job %s was created: `trainyard status %s` will",
                        s->name, s->name);
    else
        ty_error_detail(err, "no training job was created");
    if (s->archive)
        ty_error_detail(err, "the source was uploaded and stays at %s", s->job->source.uri);
    return -1;
}

/* ---- what it left ---- */

int ty_submit_prepare_download(const char *folder, ty_arena *a, ty_error *err)
{
    static const char *const names[] = {"model.tar.gz", "output.tar.gz", "model"};
    if (ty_file_mkdirs(folder, 0755, err) < 0)
        return ty_error_wrap(err, "--download");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *path = ty_arena_printf(a, "%s/%s", folder, names[i]);
        if (!ty_file_exists(path))
            continue;
        ty_error_set(err, TY_E_CREATE, "--download: %s is there already", path);
        return ty_error_help(err, "name another folder, or move it away");
    }
    return ty_file_try(ty_arena_printf(a, "%s/%s", folder, names[0]), err) < 0 ? ty_error_wrap(err, "--download") : 0;
}

static void tell_file(const char *path, uint64_t n_bytes)
{
    char size[32];
    fprintf(stderr, "download: %s, %s\n", path, ty_bytes_text(n_bytes, size, sizeof size));
}

/* 1: it is not there. */
static int fetch(ty_s3 *s3, const char *uri, const char *path, ty_arena *a, ty_error *err)
{
    ty_s3_place at;
    ty_s3_object object;
    ty_error own = {0};
    if (ty_s3_parse(uri, a, &at, err) < 0)
        return -1;
    if (ty_s3_get(s3, &at, path, &object, &own) == 0) {
        tell_file(path, object.n_bytes);
        return 0;
    }
    *err = own;
    return own.code == TY_E_NOT_FOUND ? 1 : -1;
}

static int fetch_folder(ty_s3 *s3, const char *uri, const char *folder, ty_arena *a, ty_error *err)
{
    ty_s3_place at;
    ty_s3_folder how = {0};
    if (ty_s3_parse(uri, a, &at, err) < 0)
        return -1;
    if (ty_s3_get_folder(s3, &at, folder, &how, err) < 0)
        return err->code == TY_E_NOT_FOUND ? 1 : -1;
    tell_file(folder, how.n_bytes);
    return 0;
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static int fetch_both(ty_s3 *s3, const ty_doc *job, const char *folder, ty_arena *a, ty_error *err)
{
    const char *model = ty_job_text(ty_doc_find(job, "ModelArtifacts"), "S3ModelArtifacts");
    const char *output = ty_job_text(ty_doc_find(job, "OutputDataConfig"), "S3OutputPath");
    bool is_packed = ends_with(model, ".tar.gz"),
         is_complete = strcmp(ty_job_text(job, "TrainingJobStatus"), "Completed") == 0;
    size_t n = strlen(output);
    const char *slash = n > 0 && output[n - 1] == '/' ? "" : "/";
    if (!*model && !is_complete)
        return 0;
    if (!*model)
        return ty_error_set(err, TY_E_NOT_FOUND, "the job has no model");
    int rc = is_packed ? fetch(s3, model, ty_arena_printf(a, "%s/model.tar.gz", folder), a, err)
                       : fetch_folder(s3, model, ty_arena_printf(a, "%s/model", folder), a, err);
    if (rc < 0 || (rc > 0 && is_complete))
        return -1;
    if (!is_packed || strncmp(output, "s3://", 5) != 0)
        return 0;
    const char *uri =
        ty_arena_printf(a, "%s%s%s/output/output.tar.gz", output, slash, ty_job_text(job, "TrainingJobName"));
    rc = fetch(s3, uri, ty_arena_printf(a, "%s/output.tar.gz", folder), a, err);
    if (rc > 0)
        fprintf(stderr, "download: the job left no output.tar.gz\n");
    return rc < 0 ? -1 : 0;
}

int ty_submit_download(ty_aws *aws, const ty_doc *job, const char *folder, ty_arena *a, ty_error *err)
{
    progress shown = {"download", -1};
    ty_s3 *s3;
    if (ty_s3_open(aws, &(ty_s3_options){.progress = show_progress, .progress_ctx = &shown}, &s3, err) < 0)
        return -1;
    int rc = fetch_both(s3, job, folder, a, err);
    ty_s3_close(s3);
    if (rc < 0) {
        ty_error_wrap(err, "download to %s", folder);
        ty_error_detail(err, "the training job is over (%s); its model lies at %s",
                        ty_job_text(job, "TrainingJobStatus"),
                        ty_job_text(ty_doc_find(job, "ModelArtifacts"), "S3ModelArtifacts"));
    }
    return rc;
}
