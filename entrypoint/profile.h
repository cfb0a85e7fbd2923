/* profile.h - where the time of a training step goes: every call of some steps on real batches, timed.
 *
 *     ty_session_open_for_steps(&s, err);
 *     ty_profile_measure(&s, 10, &p, err);        // trains some steps in memory; nothing is written
 *     p.layer[0]                                  // the layer that takes most
 *     ty_profile_trace(&p, &text);                // the same as a time line
 *
 * Times are wall time. The time of a call is the median over the timed steps, so that one interruption by another
 * process does not count; a row (layer, kind of work) adds up its calls, and all shares are of the sum of all calls.
 * Bytes are what must move at least: every element that is touched, once (ty_call_info). A call that finds its operands
 * in a cache can be faster than memory is.
 *
 * The floor of a call is the roofline's (Williams, Waterman, Patterson: Roofline, 2009): no less than its bytes take at
 * the speed of a copy and, for products, convolutions and recurrent layers, than its arithmetic takes at the speed of a
 * large product of 32-bit floats. Both speeds are measured here, before and after (ty_machine_measure). Generated loops
 * have the floor of memory alone, as in `trainyard plan`.
 *
 * Everything lies in the session's arena or belongs to its program.
 */
#ifndef TY_ENTRYPOINT_PROFILE_H
#define TY_ENTRYPOINT_PROFILE_H

#include "compiler/machine.h"
#include "entrypoint/session.h"

enum { TY_PROFILE_WARM_UP = 3, TY_PROFILE_MAX_STEPS = 10000 };

/* One call of a tape. Numbers are of one run of it. */
typedef struct ty_profile_call {
    ty_run tape;
    int times; /* runs of the tape a step: `accumulate` micro-batches are accumulate - 1 times MICRO, then LAST */
    ty_call_info info;
    ty_unit_facts facts;
    const char *layer;
    double bytes; /* read and written */
    double ms, floor_ms;
} ty_profile_call;

/* Calls of one layer or of one kind of work. Numbers are of a step. */
typedef struct ty_profile_row {
    const char *name;
    int calls;
    double ms, phase_ms[TY_N_PHASES], floor_ms, flop, bytes;
} ty_profile_row;

/* One run of a tape in a timed step. */
typedef struct ty_profile_run {
    ty_run tape;
    int step;                   /* 0 is the first that is timed */
    int64_t wait_ns, start_ns;  /* since the first timed step: asked for the batch; had it and began */
    int64_t total_ns, *call_ns; /* [n calls of the tape] */
} ty_profile_run;

typedef struct ty_profile {
    int n_steps;
    double step_ms, step_min_ms, step_max_ms; /* runs of tapes; the median first */
    double wait_ms;                           /* for batches; median */
    double calls_ms;                          /* sum of all calls of a step */
    double loss;                              /* of the last step; NAN if it is none */
    double load; /* average of the last minute before; more than nothing: others use the processors too */
    ty_machine_ceilings machine;
    ty_profile_call *call; /* in the order of the tapes */
    int n_calls;
    int first_call[TY_N_RUNS]; /* of a tape, in call[] */
    ty_profile_run *run;
    int n_runs;
    ty_profile_row *layer; /* the largest first; forward, gradient and update together */
    int n_layers;
    ty_profile_row *choice; /* library calls by what was chosen, "dot: native avx2"; the largest first */
    int n_choices;
    ty_profile_row work[TY_N_WORKS];
} ty_profile;

/* steps: 1 to TY_PROFILE_MAX_STEPS, behind TY_PROFILE_WARM_UP that are not counted. */
int ty_profile_measure(ty_session *s, int steps, ty_profile *out, ty_error *err);

/* profile_trace.c: appends all timed calls in the Trace Event Format, which Perfetto and chrome://tracing open: a
 * complete event a call with name, kind of work, layer, flop and bytes; a lane a tape, and one for waiting for data.
 * The format: "Trace Event Format", Google, docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU */
void ty_profile_trace(const ty_profile *p, ty_buf *out);
/* profile_html.c: the profile as a page (html.h): kinds of work, the roofline, the tape and the layers. */
int ty_profile_html(ty_session *s, const ty_profile *p, ty_buf *out, ty_error *err);
/* "micro", "last": as dumps call the tape. */
const char *ty_profile_tape_text(ty_run tape);
/* "forward", "gradient", "update". */
const char *ty_profile_phase_text(ty_phase phase);

#endif
