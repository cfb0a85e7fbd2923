/* joblog.c - see joblog.h. Each stream holds one page; the oldest line of all pages is next. */
#define _GNU_SOURCE
#include "estimator_spec/aws/joblog.h"

#include "base/json.h"
#include "estimator_spec/aws/sagemaker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STREAMS = 10000, MAX_BODY_BYTES = 1 << 16, STREAMS_A_PAGE = 50 };
#define GROUP "/aws/sagemaker/TrainingJobs"

typedef struct stream {
    char *name, *host, *token; /* token: behind the page at hand; NULL before the first */
    ty_arena page;
    const ty_doc *events; /* of the page; NULL: none is held */
    size_t next;
    bool is_at_end; /* for this round */
} stream;

struct ty_joblog {
    char *job;
    stream *streams;
    int n_streams;
};

ty_joblog *ty_joblog_new(const char *job)
{
    ty_joblog *log = calloc(1, sizeof *log);
    if (log && !(log->job = strdup(job))) {
        free(log);
        log = NULL;
    }
    return log;
}

void ty_joblog_free(ty_joblog *log)
{
    if (!log)
        return;
    for (int i = 0; i < log->n_streams; i++) {
        stream *s = &log->streams[i];
        free(s->name);
        free(s->host);
        free(s->token);
        ty_arena_fini(&s->page);
    }
    free(log->streams);
    free(log->job);
    free(log);
}

/* ---- which streams there are ---- */

/* "algo-1" of "JOB/algo-1-1490000000". */
static char *host_of(const char *name)
{
    const char *slash = strchr(name, '/'), *from = slash ? slash + 1 : name, *dash = strrchr(from, '-');
    return strndup(from, dash && dash > from ? (size_t)(dash - from) : strlen(from));
}

static int add_stream(ty_joblog *log, const char *name, ty_error *err)
{
    for (int i = 0; i < log->n_streams; i++)
        if (strcmp(log->streams[i].name, name) == 0)
            return 0;
    if (log->n_streams == MAX_STREAMS)
        return ty_error_set(err, TY_E_LIMIT, "more than %d log streams", MAX_STREAMS);
    stream *more = realloc(log->streams, (size_t)(log->n_streams + 1) * sizeof *more);
    if (!more)
        return ty_error_set(err, TY_E_LIMIT, "no memory");
    log->streams = more;
    stream *s = &more[log->n_streams++];
    *s = (stream){.name = strdup(name), .host = host_of(name)};
    ty_arena_init(&s->page);
    return s->name && s->host ? 0 : ty_error_set(err, TY_E_LIMIT, "no memory");
}

static int ask(ty_aws *aws, const char *target, const ty_buf *body, ty_arena *arena, ty_doc **out, bool *is_absent,
               ty_error *err)
{
    ty_answer answer = {0};
    int rc = ty_aws_json(aws, &ty_service_logs, target, body, arena, out, &answer, err);
    *is_absent = rc < 0 && strcmp(answer.code, "ResourceNotFoundException") == 0;
    return rc;
}

static int ask_for_streams(ty_joblog *log, ty_aws *aws, const char *token, ty_arena *arena, ty_doc **out,
                           bool *is_absent, ty_error *err)
{
    ty_buf body;
    ty_json_writer w;
    char prefix[256];
    snprintf(prefix, sizeof prefix, "%s/", log->job);
    ty_buf_init(&body, MAX_BODY_BYTES);
    ty_json_writer_init(&w, &body, TY_JSON_COMPACT);
    ty_json_open_map(&w, NULL);
    ty_json_put_string(&w, "logGroupName", GROUP);
    ty_json_put_string(&w, "logStreamNamePrefix", prefix);
    ty_json_put_string(&w, "orderBy", "LogStreamName");
    ty_json_put_int(&w, "limit", STREAMS_A_PAGE);
    if (token)
        ty_json_put_string(&w, "nextToken", token);
    ty_json_close(&w);
    int rc = ask(aws, "Logs_20140328.DescribeLogStreams", &body, arena, out, is_absent, err);
    ty_buf_fini(&body);
    return rc;
}

static int find_streams(ty_joblog *log, ty_aws *aws, ty_error *err)
{
    ty_arena arena;
    ty_arena_init(&arena); /* of all pages: names and tokens, some 200 bytes a stream */
    const char *token = NULL;
    int rc;
    for (;;) {
        ty_doc *out;
        bool is_absent;
        rc = ask_for_streams(log, aws, token, &arena, &out, &is_absent, err);
        if (rc < 0) {
            rc = is_absent ? 0 : rc; /* nothing was logged yet */
            break;
        }
        const ty_doc *list = ty_doc_find(out, "logStreams");
        for (size_t i = 0; rc == 0 && i < ty_doc_len(list); i++)
            rc = add_stream(log, ty_job_text(ty_doc_at(list, i), "logStreamName"), err);
        const char *next = ty_job_text(out, "nextToken");
        if (rc < 0 || !*next || (token && strcmp(token, next) == 0))
            break;
        token = next;
    }
    ty_arena_fini(&arena);
    return rc;
}

/* ---- their pages ---- */

static int ask_for_page(stream *s, ty_aws *aws, ty_doc **out, bool *is_absent, ty_error *err)
{
    ty_buf body;
    ty_json_writer w;
    ty_buf_init(&body, MAX_BODY_BYTES);
    ty_json_writer_init(&w, &body, TY_JSON_COMPACT);
    ty_json_open_map(&w, NULL);
    ty_json_put_string(&w, "logGroupName", GROUP);
    ty_json_put_string(&w, "logStreamName", s->name);
    ty_json_put_bool(&w, "startFromHead", true);
    if (s->token)
        ty_json_put_string(&w, "nextToken", s->token);
    ty_json_close(&w);
    ty_arena_fini(&s->page);
    ty_arena_init(&s->page);
    int rc = ask(aws, "Logs_20140328.GetLogEvents", &body, &s->page, out, is_absent, err);
    ty_buf_fini(&body);
    return rc;
}

/* Until the stream holds a line, or is at its end. */
static int fill(stream *s, ty_aws *aws, ty_error *err)
{
    while (!s->is_at_end && (!s->events || s->next >= ty_doc_len(s->events))) {
        ty_doc *out;
        bool is_absent;
        s->events = NULL;
        s->next = 0;
        if (ask_for_page(s, aws, &out, &is_absent, err) < 0) {
            s->is_at_end = true;
            return is_absent ? 0 : -1;
        }
        const char *token = ty_job_text(out, "nextForwardToken");
        s->events = ty_doc_find(out, "events");
        /* A token that comes back is the end, but what came with it is to be shown: a page is read once. */
        s->is_at_end = !*token || (s->token && strcmp(token, s->token) == 0);
        char *copy = strdup(token);
        if (!copy)
            return ty_error_set(err, TY_E_LIMIT, "no memory");
        free(s->token);
        s->token = *copy ? copy : NULL;
        if (!*copy)
            free(copy);
    }
    return 0;
}

static const ty_doc *head_of(const stream *s)
{
    return s->events && s->next < ty_doc_len(s->events) ? ty_doc_at(s->events, s->next) : NULL;
}

/* The stream with the oldest line; -1: none has one. */
static int pick(const ty_joblog *log)
{
    int best = -1;
    for (int i = 0; i < log->n_streams; i++) {
        const ty_doc *head = head_of(&log->streams[i]);
        if (head &&
            (best < 0 || ty_job_number(head, "timestamp") < ty_job_number(head_of(&log->streams[best]), "timestamp")))
            best = i;
    }
    return best;
}

int ty_joblog_read(ty_joblog *log, ty_aws *aws, int (*take)(void *ctx, const ty_joblog_line *line, ty_error *err),
                   void *ctx, ty_error *err)
{
    if (find_streams(log, aws, err) < 0)
        return -1;
    for (int i = 0; i < log->n_streams; i++) {
        log->streams[i].is_at_end = false;
        if (fill(&log->streams[i], aws, err) < 0)
            return -1;
    }
    for (int at; (at = pick(log)) >= 0;) {
        stream *s = &log->streams[at];
        const ty_doc *head = head_of(s);
        ty_joblog_line line = {.time_ms = (int64_t)ty_job_number(head, "timestamp"),
                               .text = ty_job_text(head, "message"),
                               .host = s->host,
                               .stream = at,
                               .n_streams = log->n_streams};
        s->next++;
        if (take(ctx, &line, err) < 0 || fill(s, aws, err) < 0)
            return -1;
    }
    return 0;
}
