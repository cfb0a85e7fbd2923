/* joblog.h - the log of a training job: CloudWatch's streams of all its hosts, merged by time.
 *
 * A host writes a stream "JOB/algo-1-1490...", and another one when it was replaced. A page may be empty and be
 * followed by a full one: a stream is read to its present end when the token that comes is the one that was sent.
 * Tokens are kept, so nothing is read twice and nothing is left out, however many streams and pages there are.
 */
#ifndef TY_ESTIMATOR_SPEC_AWS_JOBLOG_H
#define TY_ESTIMATOR_SPEC_AWS_JOBLOG_H

#include "estimator_spec/aws/client.h"

typedef struct ty_joblog ty_joblog;

typedef struct ty_joblog_line {
    int64_t time_ms;
    const char *text;
    const char *host; /* "algo-1" */
    int stream;       /* 0, 1 ... in the order in which they became known */
    int n_streams;    /* known now */
} ty_joblog_line;

ty_joblog *ty_joblog_new(const char *job);
void ty_joblog_free(ty_joblog *log);
/* Hands over what is new, oldest first; a line's text lives until take returns. No stream yet is no error. */
int ty_joblog_read(ty_joblog *log, ty_aws *aws, int (*take)(void *ctx, const ty_joblog_line *line, ty_error *err),
                   void *ctx, ty_error *err);

#endif
