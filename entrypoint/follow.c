/* follow.c - see follow.h. */
#define _GNU_SOURCE
#include "entrypoint/follow.h"

#include "base/clock.h"
#include "base/error.h"
#include "entrypoint/command.h"
#include "estimator_spec/aws/sagemaker.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NEW_JOB_MS = 300 * 1000 };

/* ---- Ctrl-C ---- */

static volatile sig_atomic_t interrupted;

static void note_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

const volatile sig_atomic_t *ty_follow_watch_interrupt(void)
{
    struct sigaction once = {.sa_handler = note_interrupt, .sa_flags = (int)SA_RESETHAND};
    interrupted = 0;
    sigaction(SIGINT, &once, NULL);
    return &interrupted;
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

static const ty_doc *last_transition(const ty_doc *job, size_t *n)
{
    const ty_doc *list = ty_doc_find(job, "SecondaryStatusTransitions");
    *n = ty_doc_len(list);
    return *n ? ty_doc_at(list, *n - 1) : NULL;
}

/* The newest step of the platform, if it is another one than was told before. */
static void tell_transition(const ty_doc *job, char told[512])
{
    size_t n;
    char now[512], time[32];
    const ty_doc *t = last_transition(job, &n);
    if (!t)
        return;
    snprintf(now, sizeof now, "%zu %s %.400s", n, ty_job_text(t, "Status"), ty_job_text(t, "StatusMessage"));
    if (strcmp(now, told) == 0)
        return;
    memcpy(told, now, sizeof now);
    fflush(stdout);
    fprintf(stderr, "%s %s", ty_follow_time(ty_job_number(job, "LastModifiedTime"), time), ty_job_text(t, "Status"));
    fputs(*ty_job_text(t, "StatusMessage") ? " - " : "", stderr);
    ty_follow_put(stderr, ty_job_text(t, "StatusMessage"));
    fputc('\n', stderr);
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

void ty_follow_report(const ty_doc *job)
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

static bool says_yes(const char *job)
{
    char line[16] = "";
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
        return false;
    fprintf(stderr, "\nstop the training job %s too? [y/N] ", job);
    return fgets(line, sizeof line, stdin) && (line[0] == 'y' || line[0] == 'Y');
}

/* 1: the job was told to stop, and is followed on; -1: it goes on without us. */
static int leave(const ty_follow *f, ty_error *err)
{
    if (says_yes(f->job)) {
        ty_follow_watch_interrupt();
        *err = (ty_error){0};
        return ty_sagemaker_stop(f->aws, f->job, err) < 0 ? -1 : 1;
    }
    ty_error_set(err, TY_E_STOPPED, "the training job %s goes on", f->job);
    return ty_error_help(err, "`trainyard logs %s --follow` watches it, `trainyard stop %s` stops it", f->job, f->job);
}

/* 0 with *job, 1 if it cannot be looked at yet, or -1. */
static int look(const ty_follow *f, int64_t begun_ms, ty_arena *arena, ty_doc **job, ty_error *err)
{
    if (ty_sagemaker_describe(f->aws, f->job, arena, job, err) == 0)
        return 0;
    bool too_early = f->is_new && err->code == TY_E_CREDENTIALS && ty_clock_ms() - begun_ms < NEW_JOB_MS;
    return too_early ? 1 : -1;
}

typedef struct watch {
    const ty_follow *f;
    ty_joblog *log;
    int64_t begun_ms;
    char told[512];
    bool is_last; /* the job is over: this is the look for late lines */
    int status;
} watch;

/* One look: 1 when there is nothing more to look at, 0 to go on, or -1. */
static int look_once(watch *w, ty_error *err)
{
    ty_arena arena;
    ty_doc *job = NULL;
    ty_arena_init(&arena);
    int rc = look(w->f, w->begun_ms, &arena, &job, err), seen = rc;
    if (seen == 0)
        tell_transition(job, w->told);
    if (rc >= 0 && w->f->logs)
        rc = ty_joblog_read(w->log, w->f->aws, ty_follow_print_line, NULL, err);
    fflush(stdout);
    if (rc >= 0 && seen == 0 && ty_job_is_over(job)) {
        rc = w->is_last || !w->f->logs;
        w->is_last = true;
        w->status = ty_follow_exit_status(job);
        if (rc == 1)
            ty_follow_report(job);
    } else if (rc > 0)
        rc = 0;
    ty_arena_fini(&arena);
    return rc;
}

int ty_follow_job(const ty_follow *f, ty_error *err)
{
    watch w = {.f = f, .begun_ms = ty_clock_ms(), .log = ty_joblog_new(f->job)};
    int rc = w.log ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory");
    while (rc == 0) {
        rc = look_once(&w, err);
        if (rc == 0)
            ty_caller_pause(ty_aws_caller(f->aws), f->every_ms);
        if (rc <= 0 && interrupted) {
            rc = leave(f, err);
            if (rc > 0)
                rc = 0;
        }
    }
    ty_joblog_free(w.log);
    return rc < 0 ? -1 : w.status;
}
