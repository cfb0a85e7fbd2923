/* command_submit.c - `trainyard submit FILE`: a job file checked, packed and sent, and the job followed to its end. */
#define _GNU_SOURCE
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/quantity.h"
#include "entrypoint/command.h"
#include "entrypoint/follow.h"
#include "entrypoint/managed.h"
#include "entrypoint/submit.h"
#include "estimator_spec/aws/identity.h"
#include "estimator_spec/aws/sagemaker.h"
#include "estimator_spec/pack.h"
#include "estimator_spec/request.h"

#include <stdio.h>

enum { DRY_RUN, ARCHIVE, JSON, WAIT, LOGS, DOWNLOAD, EVERY, PROFILE, N_OPTIONS };

static const ty_option options[N_OPTIONS] = {
    [DRY_RUN] = {"--dry-run", NULL, "check everything that can be checked here, print the request, send nothing",
                 false},
    [ARCHIVE] = {"--archive", "FILE", "also write the packed source there", false},
    [JSON] = {"--json", NULL, "one JSON object on stdout: the request of a dry run, else the job", false},
    [WAIT] = {"--wait", NULL, "until the job is over; the exit status tells how it ended", false},
    [LOGS] = {"--logs", NULL, "wait, and print what its hosts print", false},
    [DOWNLOAD] = {"--download", "DIR", "wait, and fetch model.tar.gz and output.tar.gz", false},
    [EVERY] = {"--every", "S", "seconds between two looks (default 10)", false},
    [PROFILE] = {"--profile", "NAME", "of ~/.aws/config and ~/.aws/credentials; else AWS_PROFILE", false},
};

/* ---- the source ---- */

typedef struct packed {
    ty_buf bytes; /* empty if no archive goes along */
    ty_packed_file *files;
    int n_files;
} packed;

/* Fills *p, whose bytes have been initialised. */
static int pack(const ty_jobspec *job, const char *archive, packed *p, ty_arena *a, ty_error *err)
{
    p->n_files = 0;
    if (!job->source.is_packed)
        return 0;
    if (ty_pack_list(job, a, &p->files, &p->n_files, err) < 0 ||
        ty_pack_write(p->files, p->n_files, &p->bytes, err) < 0)
        return -1;
    return archive ? ty_file_write(archive, p->bytes.data, p->bytes.len, 0644, err) : 0;
}

static int tell_packed(const ty_jobspec *job, const packed *p, bool with_files, ty_error *err)
{
    char size[32], hex[TY_SHA256_HEX_BYTES];
    uint8_t digest[TY_SHA256_BYTES];
    if (!job->source.is_packed)
        return 0;
    if (ty_sha256_bytes(p->bytes.data, p->bytes.len, digest, err) < 0)
        return -1;
    for (int i = 0; with_files && i < p->n_files; i++)
        fprintf(stderr, "pack    %10llu  %s%s\n", (unsigned long long)p->files[i].n_bytes, p->files[i].name,
                p->files[i].is_folder ? "/" : "");
    fprintf(stderr, "upload  %10s  %s\n        sha256 %s\n", ty_bytes_text(p->bytes.len, size, sizeof size),
            job->source.uri, ty_sha256_hex(digest, hex));
    return 0;
}

/* ---- without a service ---- */

static int print_request(const ty_jobspec *job, bool on_one_line, ty_arena *a, ty_error *err)
{
    ty_doc body;
    ty_buf out;
    if (ty_jobspec_request(job, a, &body, err) < 0)
        return -1;
    ty_buf_init(&out, 1 << 24);
    if (on_one_line)
        ty_json_add_doc(&out, &body, TY_JSON_COMPACT);
    else
        ty_json_add_lines(&out, &body, 0);
    int rc = out.failed ? ty_error_set(err, TY_E_LIMIT, "the request does not fit") : 0;
    if (rc == 0)
        puts(out.data);
    ty_buf_fini(&out);
    return rc;
}

static int run_dry(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    ty_jobspec job;
    packed p;
    bool quiet = given->value[JSON] != NULL;
    if (ty_managed_load(given->words[0], a, &job, err) < 0)
        return -1;
    if (!quiet)
        ty_managed_warn(&job);
    ty_buf_init(&p.bytes, TY_PACK_MAX_BYTES);
    int rc = pack(&job, given->value[ARCHIVE], &p, a, err);
    if (rc == 0 && !quiet)
        rc = tell_packed(&job, &p, true, err);
    ty_buf_fini(&p.bytes);
    return rc < 0 ? -1 : print_request(&job, quiet, a, err);
}

/* ---- with one ---- */

typedef struct line {
    const ty_arguments_given *given;
    const volatile sig_atomic_t *stop;
    ty_aws *aws; /* NULL: nobody was asked yet */
    int64_t every_ms;
    bool waits;
} line;

static int open_client(line *l, const char *region, ty_error *err)
{
    ty_aws_options opened = {l->given->value[PROFILE], region, l->stop};
    return l->aws ? 0 : ty_aws_open(&opened, &l->aws, err);
}

static int find_role(void *ctx, const char *region, const char *name, ty_arena *a, const char **arn, ty_error *err)
{
    line *l = ctx;
    return open_client(l, region, err) < 0 ? -1 : ty_identity_find_role(l->aws, name, a, arn, err);
}

static int check_options(line *l, ty_arena *a, ty_error *err)
{
    const char *const *value = l->given->value;
    if (value[LOGS] && value[JSON])
        return ty_error_set(err, TY_E_USAGE, "--logs and --json both want stdout");
    if (ty_follow_read_every(value[EVERY], &l->every_ms, err) < 0)
        return -1;
    l->waits = value[WAIT] || value[LOGS] || value[DOWNLOAD];
    return value[DOWNLOAD] ? ty_submit_prepare_download(value[DOWNLOAD], a, err) : 0;
}

static int send_job(line *l, const ty_jobspec *job, ty_submission *s, ty_arena *a, ty_error *err)
{
    packed p;
    ty_buf_init(&p.bytes, TY_PACK_MAX_BYTES);
    int rc = pack(job, l->given->value[ARCHIVE], &p, a, err);
    if (rc == 0)
        rc = open_client(l, job->value[TY_FIELD_REGION].text, err);
    if (rc == 0 && !l->given->value[JSON])
        rc = tell_packed(job, &p, false, err);
    *s = (ty_submission){.aws = l->aws, .job = job, .archive = job->source.is_packed ? &p.bytes : NULL};
    if (rc == 0)
        rc = ty_submit(s, a, err);
    ty_buf_fini(&p.bytes);
    s->archive = NULL;
    return rc;
}

/* The name alone goes to stdout, for a script's next command; not where stdout is for the job's lines. */
static void tell_job(const line *l, const ty_submission *s)
{
    fprintf(stderr, "job     %s\narn     %s\n", s->name, s->arn);
    if (s->console)
        fprintf(stderr, "console %s\n", s->console);
    if (!l->given->value[LOGS] && !l->given->value[JSON])
        puts(s->name);
    fflush(stdout);
}

static int print_json(const ty_submission *s, const ty_doc *described, ty_error *err)
{
    static const char *const keys[] = {"TrainingJobStatus",  "SecondaryStatus",       "FailureReason",
                                       "ModelArtifacts",     "TrainingTimeInSeconds", "BillableTimeInSeconds",
                                       "FinalMetricDataList"};
    ty_buf text;
    ty_json_writer w;
    ty_buf_init(&text, TY_ANSWER_MAX_BYTES);
    ty_json_writer_init(&w, &text, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    ty_json_put_string(&w, "TrainingJobName", s->name);
    ty_json_put_string(&w, "TrainingJobArn", s->arn);
    ty_json_put_string(&w, "Console", s->console);
    ty_json_put_string(&w, "Source", s->job->source.is_packed ? s->job->source.uri : NULL);
    for (size_t i = 0; described && i < sizeof keys / sizeof keys[0]; i++)
        if (ty_doc_find(described, keys[i]))
            ty_json_put_doc(&w, keys[i], ty_doc_find(described, keys[i]));
    ty_json_close(&w);
    int rc = text.failed ? ty_error_set(err, TY_E_LIMIT, "the description is larger than any") : 0;
    if (rc == 0)
        puts(text.data);
    ty_buf_fini(&text);
    return rc;
}

/* To the job's end; its exit status, or -1. */
static int follow(const line *l, const ty_submission *s, ty_arena *a, ty_error *err)
{
    const char *const *value = l->given->value;
    ty_follow f = {.aws = l->aws,
                   .job = s->name,
                   .logs = value[LOGS] != NULL,
                   .is_new = true,
                   .every_ms = l->every_ms,
                   .metrics = true};
    ty_doc *described = NULL;
    int status = l->waits ? ty_follow_job(&f, err) : 0, rc = status < 0 ? -1 : 0;
    if (rc == 0 && (value[DOWNLOAD] || (l->waits && value[JSON])))
        rc = ty_sagemaker_describe(l->aws, s->name, a, &described, err);
    if (rc == 0 && value[DOWNLOAD] && status != TY_EXIT_JOB_FAILED)
        rc = ty_submit_download(l->aws, described, value[DOWNLOAD], a, err);
    if (rc == 0 && value[JSON])
        rc = print_json(s, described, err);
    return rc < 0 ? -1 : status;
}

static int run_online(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    line l = {.given = given, .stop = ty_follow_watch_interrupt()};
    ty_jobspec job;
    ty_jobspec_world world = ty_managed_world();
    ty_submission s;
    world.find_role = find_role;
    world.ctx = &l;
    int status = check_options(&l, a, err);
    if (status == 0)
        status = ty_managed_load_in(&world, given->words[0], a, &job, err);
    if (status == 0) {
        ty_managed_warn(&job);
        status = send_job(&l, &job, &s, a, err);
    }
    if (status == 0) {
        tell_job(&l, &s);
        status = follow(&l, &s, a, err);
    }
    ty_aws_close(l.aws);
    return status;
}

static int run(const ty_arguments_given *given, ty_arena *a, ty_error *err)
{
    return given->value[DRY_RUN] ? run_dry(given, a, err) : run_online(given, a, err);
}

const ty_command_row ty_command_submit = {
    "submit",
    "FILE",
    "check a job file, pack its source, and send it",
    "The name of the job goes to stdout, with --logs what its hosts print, and with --dry-run the request\n"
    "(CreateTrainingJob); what happens, and warnings, to stderr. Ctrl-C asks whether the job is to be stopped.\n\n"
    "exit status with --wait, --logs or --download\n"
    "  0 completed, 3 stopped, 4 failed, 5 stopped because its time was up\n\n"
    "    trainyard submit job.yaml --dry-run\n"
    "    trainyard submit job.yaml --logs --download out\n",
    options,
    N_OPTIONS,
    1,
    1,
    false,
    false,
    run};
