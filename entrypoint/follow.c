/* follow.c - see follow.h. */
#define _GNU_SOURCE
#include "entrypoint/follow.h"

#include "base/clock.h"
#include "base/error.h"
#include "entrypoint/command.h"
#include "estimator_spec/aws/sagemaker.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NEW_JOB_MS = 300 * 1000, PATIENT_ATTEMPTS = 15 };

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t interrupts;

/* What has been asked twice is not asked a third time: then the signal ends the process, wherever it is. SIGTERM counts
 * for two, for it comes from no one who could answer. */
static void note_interrupt(int signal_number)
{
    interrupts = signal_number == SIGTERM ? 2 : interrupts + 1;
    if (interrupts >= 2)
        signal(signal_number, SIG_DFL);
}

const volatile sig_atomic_t *ty_follow_watch_interrupt(void)
{
    struct sigaction action = {.sa_handler = note_interrupt}; /* without SA_RESTART: a question is left */
    sigaddset(&action.sa_mask, SIGINT);
    sigaddset(&action.sa_mask, SIGTERM);
    interrupts = 0;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return &interrupts;
}

int ty_follow_read_every(const char *text, int64_t *ms, ty_error *err)
{
    char *end;
    double s = text ? strtod(text, &end) : 10;
    if (text && (*end || end == text || !(s >= 0.01 && s <= 3600)))
        return ty_error_set(err, TY_E_USAGE, "--every takes seconds from 0.01 to 3600, not \"%s\"", text);
    *ms = (int64_t)(s * 1000);
    return 0;
}

/* ---- printing ---- */

const char *ty_follow_time(double seconds, char out[32])
{
    time_t whole = (time_t)seconds;
    struct tm t;
    out[0] = 0;
    if (seconds > 0 && gmtime_r(&whole, &t))
        strftime(out, 32, "%Y-%m-%d %H:%M:%S", &t);
    return out;
}

void ty_follow_put(FILE *out, const char *text)
{
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            fprintf(out, "\\x%02x", c);
        else
            fputc(c, out);
    }
}

int ty_follow_print_line(void *ctx, const ty_joblog_line *line, ty_error *err)
{
    (void)ctx, (void)err;
    static const int colours[] = {34, 35, 32, 36, 33};
    bool several = line->n_streams > 1, colour = several && isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    if (colour)
        printf("\033[%dm", colours[line->stream % 5]);
    if (several)
        printf("%s | ", line->host);
    ty_follow_put(stdout, line->text);
    fputs(colour ? "\033[0m\n" : "\n", stdout);
    return 0;
}

/* What was told of a job so far. */
typedef struct told {
    size_t n_steps;
    char last[512]; /* the last of them, with its words, which change while it lasts */
} told;

/* The platform's steps that are new, and the last one again when its words have changed. */
static void tell_steps(const ty_doc *job, told *t)
{
    const ty_doc *list = ty_doc_find(job, "SecondaryStatusTransitions");
    size_t n = ty_doc_len(list), from = n > t->n_steps ? t->n_steps : n - 1;
    char now[sizeof t->last], time[32];
    if (n == 0)
        return;
    const ty_doc *last = ty_doc_at(list, n - 1);
    snprintf(now, sizeof now, "%s %.400s", ty_job_text(last, "Status"), ty_job_text(last, "StatusMessage"));
    if (n == t->n_steps && strcmp(now, t->last) == 0)
        return;
    fflush(stdout);
    for (size_t i = from; i < n; i++) {
        const ty_doc *step = ty_doc_at(list, i);
        double when = i + 1 < n || !ty_job_number(job, "LastModifiedTime") ? ty_job_number(step, "StartTime")
                                                                           : ty_job_number(job, "LastModifiedTime");
        fprintf(stderr, "%s %s", ty_follow_time(when, time), ty_job_text(step, "Status"));
        fputs(*ty_job_text(step, "StatusMessage") ? " - " : "", stderr);
        ty_follow_put(stderr, ty_job_text(step, "StatusMessage"));
        fputc('\n', stderr);
    }
    t->n_steps = n;
    memcpy(t->last, now, sizeof now);
}

/* ---- the end ---- */

int ty_follow_exit_status(const ty_doc *job)
{
    const char *status = ty_job_text(job, "TrainingJobStatus"), *secondary = ty_job_text(job, "SecondaryStatus");
    if (strcmp(status, "Completed") == 0)
        return 0;
    if (strcmp(status, "Failed") == 0)
        return TY_EXIT_JOB_FAILED;
    bool is_late = strcmp(secondary, "MaxRuntimeExceeded") == 0 || strcmp(secondary, "MaxWaitTimeExceeded") == 0;
    return is_late ? TY_EXIT_JOB_OUT_OF_TIME : TY_EXIT_JOB_STOPPED;
}

static void report_metrics(const ty_doc *job)
{
    const ty_doc *metrics = ty_doc_find(job, "FinalMetricDataList");
    for (size_t i = 0; i < ty_doc_len(metrics); i++) {
        fputs("metric: ", stderr);
        ty_follow_put(stderr, ty_job_text(ty_doc_at(metrics, i), "MetricName"));
        fprintf(stderr, " = %g\n", ty_job_number(ty_doc_at(metrics, i), "Value"));
    }
}

void ty_follow_report(const ty_doc *job, bool with_metrics)
{
    double trained = ty_job_number(job, "TrainingTimeInSeconds"), paid = ty_job_number(job, "BillableTimeInSeconds");
    int hosts = ty_job_hosts(job);
    const char *model = ty_job_text(ty_doc_find(job, "ModelArtifacts"), "S3ModelArtifacts");
    fflush(stdout);
    fprintf(stderr, "%s: %s", ty_job_text(job, "TrainingJobName"), ty_job_text(job, "TrainingJobStatus"));
    if (strcmp(ty_job_text(job, "SecondaryStatus"), ty_job_text(job, "TrainingJobStatus")) != 0)
        fprintf(stderr, " (%s)", ty_job_text(job, "SecondaryStatus"));
    if (*ty_job_text(job, "FailureReason")) {
        fputs(": ", stderr);
        ty_follow_put(stderr, ty_job_text(job, "FailureReason"));
    }
    fputc('\n', stderr);
    if (with_metrics)
        report_metrics(job);
    if (trained > 0)
        fprintf(stderr, "training: %.0f s on %d host%s\n", trained * hosts, hosts, hosts > 1 ? "s" : "");
    if (paid > 0)
        fprintf(stderr, "billable: %.0f s\n", paid * hosts);
    if (trained > 0 && paid > 0 && ty_doc_find(job, "EnableManagedSpotTraining") && paid < trained)
        fprintf(stderr, "spot: %.1f %% saved\n", (1 - paid / trained) * 100);
    if (*model && strcmp(ty_job_text(job, "TrainingJobStatus"), "Failed") != 0)
        fprintf(stderr, "model: %s\n", model);
}

/* ---- the loop ---- */

typedef struct watch {
    const ty_follow *f;
    ty_joblog *log;
    int64_t begun_ms;
    told told;
    bool is_told_to_stop; /* by us */
    bool is_last;         /* the job is over: this is the look for late lines */
    int status;
} watch;

/* On a terminal alone. A second Ctrl-C, the end of what is typed, and whatever is no yes are a no. */
static bool says_yes(const char *job)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char line[16] = "";
    if (interrupts > 1 || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return false;
    fprintf(stderr, "\nstop the training job %s too? [y/N] ", job);
    while (interrupts < 2)
        if (poll(&in, 1, 200) > 0)
            return read(STDIN_FILENO, line, sizeof line - 1) > 0 && (line[0] == 'y' || line[0] == 'Y');
    fputc('\n', stderr);
    return false;
}

/* 1: the job was told to stop, and is followed on; -1: it goes on without us. */
static int leave(watch *w, ty_error *err)
{
    const char *job = w->f->job;
    if (w->is_told_to_stop)
        return ty_error_set(err, TY_E_STOPPED, "the training job %s was told to stop, and is not waited for", job);
    if (says_yes(job)) {
        ty_follow_watch_interrupt();
        *err = (ty_error){0};
        w->is_told_to_stop = true;
        return ty_sagemaker_stop(w->f->aws, job, err) < 0 ? -1 : 1;
    }
    *err = (ty_error){0};
    ty_error_set(err, TY_E_STOPPED, "the training job %s goes on", job);
    return ty_error_help(err, "`trainyard logs %s --follow` watches it, `trainyard stop %s` stops it", job, job);
}

/* A job that was made a moment ago may not be seen yet, by us or by anybody. */
static bool is_too_early(const watch *w, const ty_error *err)
{
    return w->f->is_new && (err->code == TY_E_CREDENTIALS || err->code == TY_E_NOT_FOUND) &&
           ty_clock_ms() - w->begun_ms < NEW_JOB_MS;
}

/* 0 with *job, 1 if it cannot be looked at yet, or -1. */
static int look(const watch *w, ty_arena *arena, ty_doc **job, ty_error *err)
{
    if (ty_sagemaker_describe(w->f->aws, w->f->job, arena, job, err) == 0)
        return 0;
    return is_too_early(w, err) ? 1 : -1;
}

/* One look: 1 when there is nothing more to look at, 0 to go on, or -1. */
static int look_once(watch *w, ty_error *err)
{
    ty_arena arena;
    ty_doc *job = NULL;
    ty_arena_init(&arena);
    int rc = look(w, &arena, &job, err), seen = rc;
    if (seen == 0)
        tell_steps(job, &w->told);
    if (rc >= 0 && w->f->logs) {
        rc = ty_joblog_read(w->log, w->f->aws, ty_follow_print_line, NULL, err);
        if (rc < 0 && is_too_early(w, err))
            rc = 0;
    }
    fflush(stdout);
    if (rc >= 0 && seen == 0 && ty_job_is_over(job)) {
        rc = w->is_last || !w->f->logs;
        w->is_last = true;
        w->status = ty_follow_exit_status(job);
        if (rc == 1)
            ty_follow_report(job, w->f->metrics);
    } else if (rc > 0)
        rc = 0;
    ty_arena_fini(&arena);
    return rc;
}

/* Whoever waits for hours does not go because a service was slow for a minute. */
static void be_patient(ty_caller *caller)
{
    if (!getenv("AWS_MAX_ATTEMPTS"))
        caller->max_attempts = PATIENT_ATTEMPTS;
}

int ty_follow_job(const ty_follow *f, ty_error *err)
{
    watch w = {.f = f, .begun_ms = ty_clock_ms(), .log = ty_joblog_new(f->job)};
    int rc = w.log ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory");
    be_patient(ty_aws_caller(f->aws));
    while (rc == 0) {
        rc = look_once(&w, err);
        if (rc == 0)
            ty_caller_pause(ty_aws_caller(f->aws), f->every_ms);
        if (rc <= 0 && interrupts) {
            rc = leave(&w, err);
            if (rc > 0)
                rc = 0;
        }
    }
    if (rc < 0 && err->code == TY_E_SERVICE)
        ty_error_detail(err, "the training job %s goes on; `trainyard logs %s --follow` watches it", f->job, f->job);
    ty_joblog_free(w.log);
    return rc < 0 ? -1 : w.status;
}
