/* command_status.c - `trainyard status`, `describe`, `list`, `stop` and `logs`: managed training jobs, looked at and
 * ended from here. */
#define _GNU_SOURCE
#include "base/json.h"
#include "entrypoint/command.h"
#include "entrypoint/follow.h"
#include "estimator_spec/aws/sagemaker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WHERE_OPTIONS                                                                                      \
    [PROFILE] = {"--profile", "NAME", "of ~/.aws/config and ~/.aws/credentials; else AWS_PROFILE", false}, \
    [REGION] = {"--region", "REGION", "such as eu-west-1; else AWS_REGION, or the profile's", false}

enum { PROFILE, REGION, FIRST };

static int open_client(const ty_arguments_given *g, const volatile sig_atomic_t *stop, ty_aws **aws, ty_error *err)
{
    ty_aws_options options = {g->value[PROFILE], g->value[REGION], stop};
    return ty_aws_open(&options, aws, err);
}

/* ---- describe ---- */

static bool is_time(const ty_doc *d)
{
    size_t n = d->key ? strlen(d->key) : 0;
    return (d->kind == TY_DOC_FLOAT || d->kind == TY_DOC_INT) && n >= 4 &&
           (strcmp(d->key + n - 4, "Time") == 0 || strcmp(d->key, "Timestamp") == 0);
}

/* As YAML, but for no machine: --json is. */
static void print_tree(const ty_doc *d, int indent, bool in_list)
{
    char time[32];
    ty_buf text;
    for (size_t i = 0; i < ty_doc_len(d); i++) {
        const ty_doc *item = ty_doc_at(d, i);
        printf("%*s", in_list && i == 0 ? 0 : indent, "");
        if (d->kind == TY_DOC_LIST)
            fputs("- ", stdout);
        else
            printf("%s:", item->key);
        if (ty_doc_len(item) > 0) {
            if (d->kind == TY_DOC_MAP)
                putchar('\n');
            print_tree(item, indent + 2, d->kind == TY_DOC_LIST);
            continue;
        }
        ty_buf_init(&text, TY_ANSWER_MAX_BYTES);
        if (item->kind == TY_DOC_STRING)
            ty_buf_adds(&text, item->string);
        else if (is_time(item))
            ty_buf_adds(&text, ty_follow_time(item->kind == TY_DOC_INT ? (double)item->integer : item->number, time));
        else
            ty_json_add_doc(&text, item, TY_JSON_SPACED);
        fputs(d->kind == TY_DOC_MAP ? " " : "", stdout);
        ty_follow_put(stdout, text.data);
        putchar('\n');
        ty_buf_fini(&text);
    }
}

static int print_json(const ty_doc *d, ty_error *err)
{
    ty_buf text;
    ty_buf_init(&text, 2 * TY_ANSWER_MAX_BYTES);
    int rc = ty_json_add_doc(&text, d, TY_JSON_SPACED);
    if (rc == 0)
        puts(text.data);
    ty_buf_fini(&text);
    return rc < 0 ? ty_error_set(err, TY_E_LIMIT, "the description is larger than any") : 0;
}

enum { DESCRIBE_JSON = FIRST, N_DESCRIBE };

static const ty_option describe_options[N_DESCRIBE] = {
    WHERE_OPTIONS,
    [DESCRIBE_JSON] = {"--json", NULL, "as the service sent it, one line on stdout", false},
};

static int run_describe(const ty_arguments_given *g, ty_arena *a, ty_error *err)
{
    ty_aws *aws;
    ty_doc *job;
    if (open_client(g, NULL, &aws, err) < 0)
        return -1;
    int rc = ty_sagemaker_describe(aws, g->words[0], a, &job, err);
    if (rc == 0 && g->value[DESCRIBE_JSON])
        rc = print_json(job, err);
    else if (rc == 0)
        print_tree(job, 0, false);
    ty_aws_close(aws);
    return rc;
}

/* ---- status ---- */

enum { STATUS_WAIT = FIRST, STATUS_EVERY, STATUS_JSON, N_STATUS };

static const ty_option status_options[N_STATUS] = {
    WHERE_OPTIONS,
    [STATUS_WAIT] = {"--wait", NULL, "until it is over; the exit status tells how it ended", false},
    [STATUS_EVERY] = {"--every", "S", "seconds between two looks (default 10)", false},
    [STATUS_JSON] = {"--json", NULL, "one JSON object on stdout", false},
};

static void print_status(const ty_doc *job)
{
    static const struct {
        const char *word, *key;
    } times[] = {{"created", "CreationTime"}, {"started", "TrainingStartTime"}, {"ended", "TrainingEndTime"}};
    char time[32];
    const ty_doc *steps = ty_doc_find(job, "SecondaryStatusTransitions"),
                 *metrics = ty_doc_find(job, "FinalMetricDataList");
    const ty_doc *last = ty_doc_at(steps, ty_doc_len(steps) ? ty_doc_len(steps) - 1 : 0);
    printf("%s: %s, %s", ty_job_text(job, "TrainingJobName"), ty_job_text(job, "TrainingJobStatus"),
           ty_job_text(job, "SecondaryStatus"));
    if (*ty_job_text(last, "StatusMessage") && !ty_job_is_over(job)) {
        fputs(": ", stdout);
        ty_follow_put(stdout, ty_job_text(last, "StatusMessage"));
    }
    putchar('\n');
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        if (ty_job_number(job, times[i].key) > 0)
            printf("%-8s %s\n", times[i].word, ty_follow_time(ty_job_number(job, times[i].key), time));
    for (size_t i = 0; i < ty_doc_len(metrics); i++) {
        printf("metric   ");
        ty_follow_put(stdout, ty_job_text(ty_doc_at(metrics, i), "MetricName"));
        printf(" = %g\n", ty_job_number(ty_doc_at(metrics, i), "Value"));
    }
    if (*ty_job_text(job, "FailureReason")) {
        fputs("reason   ", stdout);
        ty_follow_put(stdout, ty_job_text(job, "FailureReason"));
        putchar('\n');
    }
}

static int print_status_json(const ty_doc *job, ty_error *err)
{
    static const char *const keys[] = {"TrainingJobName", "TrainingJobArn",     "TrainingJobStatus", "SecondaryStatus",
                                       "FailureReason",   "CreationTime",       "TrainingStartTime", "TrainingEndTime",
                                       "ModelArtifacts",  "FinalMetricDataList"};
    ty_buf text;
    ty_json_writer w;
    ty_buf_init(&text, TY_ANSWER_MAX_BYTES);
    ty_json_writer_init(&w, &text, TY_JSON_SPACED);
    ty_json_open_map(&w, NULL);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (ty_doc_find(job, keys[i]))
            ty_json_put_doc(&w, keys[i], ty_doc_find(job, keys[i]));
    ty_json_close(&w);
    bool failed = text.failed;
    if (!failed)
        puts(text.data);
    ty_buf_fini(&text);
    return failed ? ty_error_set(err, TY_E_LIMIT, "the description is larger than any") : 0;
}

static int run_status(const ty_arguments_given *g, ty_arena *a, ty_error *err)
{
    ty_aws *aws;
    ty_doc *job;
    int64_t every_ms;
    bool waits = g->value[STATUS_WAIT] != NULL;
    if (ty_follow_read_every(g->value[STATUS_EVERY], &every_ms, err) < 0 ||
        open_client(g, waits ? ty_follow_watch_interrupt() : NULL, &aws, err) < 0)
        return -1;
    int status = waits ? ty_follow_job(&(ty_follow){.aws = aws, .job = g->words[0], .every_ms = every_ms}, err) : 0;
    int rc = status < 0 ? -1 : ty_sagemaker_describe(aws, g->words[0], a, &job, err);
    if (rc == 0 && g->value[STATUS_JSON])
        rc = print_status_json(job, err);
    else if (rc == 0)
        print_status(job);
    ty_aws_close(aws);
    return rc < 0 ? -1 : status;
}

/* ---- list ---- */

enum { LIST_CONTAINS = FIRST, LIST_STATUS, LIST_MOST, LIST_JSON, N_LIST };

static const ty_option list_options[N_LIST] = {
    WHERE_OPTIONS,
    [LIST_CONTAINS] = {"--contains", "TEXT", "jobs with this in their names", false},
    [LIST_STATUS] = {"--status", "STATUS", "InProgress, Completed, Failed, Stopping or Stopped", false},
    [LIST_MOST] = {"--max", "N", "at most so many (default 20)", false},
    [LIST_JSON] = {"--json", NULL, "one JSON object a job on stdout", false},
};

static int print_summary(void *ctx, const ty_doc *summary, ty_error *err)
{
    const bool *as_json = ctx;
    char time[32];
    if (*as_json)
        return print_json(summary, err);
    printf("%-20s %-11s %s\n", ty_follow_time(ty_job_number(summary, "CreationTime"), time),
           ty_job_text(summary, "TrainingJobStatus"), ty_job_text(summary, "TrainingJobName"));
    return 0;
}

static int check_status(const char *status, ty_error *err)
{
    static const char *const known[] = {"InProgress", "Completed", "Failed", "Stopping", "Stopped"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!status || strcmp(status, known[i]) == 0)
            return 0;
    return ty_error_set(err, TY_E_USAGE, "--status is InProgress, Completed, Failed, Stopping or Stopped, not \"%s\"",
                        status);
}

static int run_list(const ty_arguments_given *g, ty_arena *a, ty_error *err)
{
    (void)a;
    ty_aws *aws;
    bool as_json = g->value[LIST_JSON] != NULL;
    int most = g->value[LIST_MOST] ? atoi(g->value[LIST_MOST]) : 20;
    ty_sagemaker_filter filter = {g->value[LIST_CONTAINS], g->value[LIST_STATUS], most};
    if (most < 1 || most > 1000000)
        return ty_error_set(err, TY_E_USAGE, "--max takes a number from 1, not \"%s\"", g->value[LIST_MOST]);
    if (check_status(filter.status, err) < 0 || open_client(g, NULL, &aws, err) < 0)
        return -1;
    int rc = ty_sagemaker_list(aws, &filter, print_summary, &as_json, err);
    ty_aws_close(aws);
    return rc;
}

/* ---- stop ---- */

enum { STOP_WAIT = FIRST, STOP_EVERY, N_STOP };

static const ty_option stop_options[N_STOP] = {
    WHERE_OPTIONS,
    [STOP_WAIT] = {"--wait", NULL, "until it is over", false},
    [STOP_EVERY] = {"--every", "S", "seconds between two looks (default 10)", false},
};

static int run_stop(const ty_arguments_given *g, ty_arena *a, ty_error *err)
{
    (void)a;
    ty_aws *aws;
    int64_t every_ms;
    bool waits = g->value[STOP_WAIT] != NULL;
    if (ty_follow_read_every(g->value[STOP_EVERY], &every_ms, err) < 0 ||
        open_client(g, waits ? ty_follow_watch_interrupt() : NULL, &aws, err) < 0)
        return -1;
    int rc = ty_sagemaker_stop(aws, g->words[0], err);
    if (rc == 0)
        fprintf(stderr, "%s was told to stop; it has two minutes to write a checkpoint and its model\n", g->words[0]);
    if (rc == 0 && waits) /* stopped is what was wanted */
        rc = ty_follow_job(&(ty_follow){.aws = aws, .job = g->words[0], .every_ms = every_ms}, err) < 0 ? -1 : 0;
    ty_aws_close(aws);
    return rc;
}

/* ---- logs ---- */

enum { LOGS_FOLLOW = FIRST, LOGS_EVERY, N_LOGS };

static const ty_option logs_options[N_LOGS] = {
    WHERE_OPTIONS,
    [LOGS_FOLLOW] = {"--follow", NULL, "until the job is over; the exit status tells how it ended", false},
    [LOGS_EVERY] = {"--every", "S", "seconds between two looks (default 10)", false},
};

static int print_logs(ty_aws *aws, const char *name, ty_arena *a, ty_error *err)
{
    ty_doc *job;
    ty_joblog *log = ty_joblog_new(name);
    int rc =
        log ? ty_joblog_read(log, aws, ty_follow_print_line, NULL, err) : ty_error_set(err, TY_E_LIMIT, "no memory");
    ty_joblog_free(log);
    /* Nothing logged, or no such job? */
    return rc < 0 ? -1 : ty_sagemaker_describe(aws, name, a, &job, err);
}

static int run_logs(const ty_arguments_given *g, ty_arena *a, ty_error *err)
{
    ty_aws *aws;
    int64_t every_ms;
    bool follows = g->value[LOGS_FOLLOW] != NULL;
    if (ty_follow_read_every(g->value[LOGS_EVERY], &every_ms, err) < 0 ||
        open_client(g, follows ? ty_follow_watch_interrupt() : NULL, &aws, err) < 0)
        return -1;
    ty_follow follow = {.aws = aws, .job = g->words[0], .logs = true, .every_ms = every_ms, .metrics = true};
    int rc = follows ? ty_follow_job(&follow, err) : print_logs(aws, g->words[0], a, err);
    ty_aws_close(aws);
    return rc;
}

/* ---- the rows ---- */

#define ENDS                                 \
    "exit status after --wait or --follow\n" \
    "  0 completed, 3 stopped, 4 failed, 5 stopped because its time was up\n"

const ty_command_row ty_command_status = {
    "status", "NAME",    "what a managed training job is doing", ENDS, status_options, N_STATUS, 1, 1, false,
    false,    run_status};
const ty_command_row ty_command_describe = {"describe",
                                            "NAME",
                                            "all that the service says of a training job",
                                            NULL,
                                            describe_options,
                                            N_DESCRIBE,
                                            1,
                                            1,
                                            false,
                                            false,
                                            run_describe};
const ty_command_row ty_command_list = {
    "list", "", "managed training jobs, newest first", NULL, list_options, N_LIST, 0, 0, false, false, run_list};
const ty_command_row ty_command_stop = {
    "stop", "NAME", "stop a managed training job", NULL, stop_options, N_STOP, 1, 1, false, false, run_stop};
const ty_command_row ty_command_logs = {
    "logs", "NAME",  "what a training job's hosts have printed", ENDS, logs_options, N_LOGS, 1, 1, false,
    false,  run_logs};
