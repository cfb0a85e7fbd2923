/* follow.h - watching a managed training job from here: its status, its log, its end. */
#ifndef TY_ENTRYPOINT_FOLLOW_H
#define TY_ENTRYPOINT_FOLLOW_H

#include "estimator_spec/aws/client.h"
#include "estimator_spec/aws/joblog.h"

#include <stdio.h>

/* Exit statuses of who waits for a job. */
enum { TY_EXIT_JOB_STOPPED = 3, TY_EXIT_JOB_FAILED = 4, TY_EXIT_JOB_OUT_OF_TIME = 5 };

typedef struct ty_follow {
    ty_aws *aws;
    const char *job;
    bool logs;        /* lines of all hosts on stdout; else changes of status alone, on stderr */
    bool is_new;      /* made a moment ago: for five minutes the right to look at it may still be on its way */
    int64_t every_ms; /* how often it is looked at */
    bool metrics;     /* its last ones, in the report */
} ty_follow;

/* Ctrl-C and SIGTERM set it; after a second one, a third ends the process as usual. Must be called before the client is
 * opened with this flag. */
const volatile sig_atomic_t *ty_follow_watch_interrupt(void);
/* Seconds that an option gives (NULL: 10), as milliseconds. */
int ty_follow_read_every(const char *text, int64_t *ms, ty_error *err);
/* Until the job is over. Returns the exit status that tells how it ended, or -1. After Ctrl-C, on a terminal, asks once
 * whether the job is to be stopped; the job goes on if it is not, and *err says how to look at it again. err is not
 * NULL. */
int ty_follow_job(const ty_follow *f, ty_error *err);
/* The exit status of a job that is over. */
int ty_follow_exit_status(const ty_doc *job);

/* A line of a job's log on stdout: with its host if there are several, in that host's colour on a terminal. */
int ty_follow_print_line(void *ctx, const ty_joblog_line *line, ty_error *err);
/* What came of a job that is over, on stderr: result, reason, seconds that are paid for. */
void ty_follow_report(const ty_doc *job, bool with_metrics);
/* "2026-01-05 10:11:12" (UTC) of seconds since 1970; "" of 0. Returns out. */
const char *ty_follow_time(double seconds, char out[32]);
/* Text of a service for a terminal: control characters become \xNN. */
void ty_follow_put(FILE *out, const char *text);

#endif
