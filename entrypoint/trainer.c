/* trainer.c - the built-in trainer: open, train, write the model, tell. */
#include "base/log.h"
#include "compiler/exchange.h"
#include "entrypoint/doing.h"
#include "entrypoint/job.h"
#include "entrypoint/session.h"
#include "entrypoint/stop.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BEGIN_MS = 3000 }; /* all have been asked to stop by then, and whoever was to meet has met */

static void print_text(void (*write)(ty_session *s, ty_buf *out), ty_session *s)
{
    ty_buf text;
    ty_buf_init(&text, 1 << 16);
    write(s, &text);
    fflush(stdout);
    fputs(text.data, stderr);
    ty_buf_fini(&text);
}

static void print_summary(ty_session *s, ty_job_end end, bool exported)
{
    ty_buf text;
    ty_buf_init(&text, 1 << 16);
    ty_session_summary(s, end, exported, &text);
    fflush(stdout);
    fputs(text.data, stderr);
    ty_buf_fini(&text);
}

/* After a stop the weights so far are written too, unless a second request says to hurry. */
static bool wants_model(const ty_session *s, const ty_loop_result *result)
{
    return !result->stopped || (result->steps_done > 0 && ty_stop_count() < 2 && s->program);
}

/* Values of the data may be the cause; in debug mode it is known where what is not finite came from. */
static int explain(const ty_session *s, ty_error *err)
{
    ty_buf text;
    ty_session_explain_not_finite(s, err);
    if (err->code != TY_E_NOT_FINITE || s->check.n_bad == 0)
        return -1;
    ty_buf_init(&text, 1 << 16);
    ty_session_explain(s, &text);
    for (char *line = text.data; *line; line += strcspn(line, "\n") + 1)
        ty_error_detail(err, "%.*s", (int)strcspn(line, "\n"), line);
    ty_buf_fini(&text);
    return -1;
}

/* Until all are here a stop ends each rank by itself; from then on it costs a checkpoint, which takes all of them. So a
 * rank that is here no longer ends at once: were it alone in that, the others would have gone on without it. They
 * cannot have if the meeting stays without an end; then it ends a little later. */
static int begin_together(ty_company *company, ty_error *err)
{
    if (company)
        ty_stop_ends_after(BEGIN_MS);
    int rc = ty_company_meet(company, "begin", err);
    ty_stop_ends_after(TY_STOP_NEVER);
    return rc;
}

static int train(ty_session *s, ty_job_end *end, const char **phase, ty_error *err)
{
    ty_loop_result result = {0};
    ty_loop_calls calls = ty_session_calls(s);
    *phase = "train";
    if (begin_together(s->job->company, err) < 0)
        return -1;
    if (ty_loop_run(&s->loop, &calls, &result, err) < 0)
        return explain(s, err);
    s->steps_done = result.steps_done;
    *end = result.stopped ? TY_JOB_STOPPED : TY_JOB_COMPLETE;
    *phase = "export";
    if (ty_session_take_best(s, result.stopped, err) < 0)
        return -1;
    bool leads = ty_session_leads(s), exported = leads && wants_model(s, &result);
    ty_doing_now(leads ? TY_DOING_SAVE : TY_DOING_FINISHED);
    if (exported && ty_session_export(s, err) < 0)
        return -1;
    ty_outputs_close(s->outputs);
    s->outputs = NULL;
    if (leads)
        print_summary(s, *end, exported);
    if (s->served && ty_served_leave(s->served, err) < 0)
        return -1;
    return ty_company_meet(s->job->company, "end", err);
}

int ty_job_train(const ty_job *job, ty_job_end *end, ty_job_progress *progress, ty_error *err)
{
    ty_session s;
    const char *phase = "recipe";
    *end = TY_JOB_COMPLETE;
    int rc = ty_session_open(&s, job, &phase, err);
    if (rc == 0) {
        if (ty_session_leads(&s))
            print_text(ty_session_banner, &s);
        rc = train(&s, end, &phase, err);
    } else if (ty_stop_count() > 0) {
        /* The signal reaches our helpers too: a compiler that died of it is no fault. */
        *end = TY_JOB_STOPPED;
        *err = (ty_error){0};
        ty_log_info("train", "stopped on request in phase %s, before the first step", phase);
        rc = 0;
    }
    if (rc < 0) /* who waits for us on a GPU learns of it when we end; we wait for nobody */
        ty_program_let_go(s.program);
    if (progress)
        *progress = (ty_job_progress){phase, s.loop.accumulate > 0 ? (long long)s.steps_done : -1};
    ty_session_close(&s);
    return rc;
}
