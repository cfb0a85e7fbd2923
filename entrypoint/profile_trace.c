/* profile_trace.c - timed calls as a time line in the Trace Event Format. See profile.h.
 *
 * Times are microseconds since the first timed step. Calls follow each other without a gap: what lies between two is
 * part of the one before.
 */
#include "base/json.h"
#include "entrypoint/profile.h"

/* Lanes are threads of one process. */
enum { PROCESS = 1, LANE_DATA = 0, LANE_TAPES = 1 };

static double us_of(int64_t ns)
{
    return (double)ns / 1000;
}

/* Names the process, or a lane. */
static void put_name(ty_json_writer *w, const char *what, int lane, const char *name)
{
    ty_json_open_map(w, NULL);
    ty_json_put_string(w, "ph", "M");
    ty_json_put_string(w, "name", what);
    ty_json_put_int(w, "pid", PROCESS);
    ty_json_put_int(w, "tid", lane);
    ty_json_open_map(w, "args");
    ty_json_put_string(w, "name", name);
    ty_json_close(w);
    ty_json_close(w);
}

static void open_event(ty_json_writer *w, const char *name, const char *category, int lane, int64_t start_ns,
                       int64_t ns)
{
    ty_json_open_map(w, NULL);
    ty_json_put_string(w, "ph", "X");
    ty_json_put_string(w, "name", name);
    ty_json_put_string(w, "cat", category);
    ty_json_put_int(w, "pid", PROCESS);
    ty_json_put_int(w, "tid", lane);
    ty_json_put_float(w, "ts", us_of(start_ns));
    ty_json_put_float(w, "dur", us_of(ns));
}

static void put_call(ty_json_writer *w, const ty_profile_call *c, int step, int64_t start_ns, int64_t ns)
{
    open_event(w, c->info.name, ty_work_text(c->facts.work), LANE_TAPES + (int)c->tape, start_ns, ns);
    ty_json_open_map(w, "args");
    ty_json_put_string(w, "layer", c->layer);
    ty_json_put_string(w, "phase", ty_profile_phase_text(c->facts.phase));
    ty_json_put_string(w, "what", c->facts.text);
    ty_json_put_string(w, "how", c->info.how);
    ty_json_put_float(w, "flop", c->facts.flop);
    ty_json_put_float(w, "bytes", c->bytes);
    ty_json_put_int(w, "threads", c->info.threads);
    ty_json_put_int(w, "step", step + 1);
    ty_json_close(w);
    ty_json_close(w);
}

static void put_run(ty_json_writer *w, const ty_profile *p, const ty_profile_run *r)
{
    int first = p->first_call[r->tape];
    int64_t at = r->start_ns;
    open_event(w, "wait for a batch", "data", LANE_DATA, r->wait_ns, r->start_ns - r->wait_ns);
    ty_json_close(w);
    for (int i = first; i < p->n_calls && p->call[i].tape == r->tape; i++) {
        put_call(w, &p->call[i], r->step, at, r->call_ns[i - first]);
        at += r->call_ns[i - first];
    }
}

static void put_lanes(ty_json_writer *w, const ty_profile *p)
{
    put_name(w, "process_name", 0, "trainyard profile");
    put_name(w, "thread_name", LANE_DATA, "data");
    if (p->call[0].tape == TY_RUN_MICRO)
        put_name(w, "thread_name", LANE_TAPES + TY_RUN_MICRO, "micro: gradient of a micro-batch");
    put_name(w, "thread_name", LANE_TAPES + TY_RUN_LAST, "last: gradient and update");
}

void ty_profile_trace(const ty_profile *p, ty_buf *out)
{
    ty_json_writer w;
    ty_json_writer_init(&w, out, TY_JSON_COMPACT);
    ty_json_open_map(&w, NULL);
    ty_json_put_string(&w, "displayTimeUnit", "ms");
    ty_json_open_list(&w, "traceEvents");
    put_lanes(&w, p);
    for (int i = 0; i < p->n_runs; i++)
        put_run(&w, p, &p->run[i]);
    ty_json_close(&w);
    ty_json_close(&w);
    ty_buf_addc(out, '\n');
}
